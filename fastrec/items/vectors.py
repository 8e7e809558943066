"""Distances between the items of lists, and to those of histories, from vectors or categories of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import counted
from fastrec.exceptions import Argument, InputError, Place, Text
from fastrec.inputs.items import ItemTable
from fastrec.inputs.ragged import chosen_rows, read_only
from fastrec.items.slots import Slots
from fastrec.items.sums import group_cutoffs, launch_users, sum_rows
from fastrec.kernels import vectors as kernels

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
MARKS = {  # that often separate categories, and what to do then: no option can hold a comma
    "|": "add the option sep=|",
    ";": "add the option sep=;",
    ", ": "pass lists, or replace it by '|' and add the option sep=|",
}
MAX_EXPONENT = 400  # of 2, of numbers whose squares and their sums are doubles


def _rows_of(table: ItemTable, slots: Slots) -> Array:
    """Return the row of the table of each slot; -1 for items that it lacks."""
    assert table.codes is not None
    rows: Array = slots.spread(table.codes, np.arange(len(table.ids)), -1)
    return rows


def _vectors(table: ItemTable, slots: Slots, column: str) -> kernels.Dense | kernels.Sparse:
    """Return the vectors of slots, normalised."""
    matrix, known = table.vectors(column)
    rows = _rows_of(table, slots)
    there = (rows >= 0) & known[rows]
    if isinstance(matrix, np.ndarray):
        dense = matrix[rows]
        largest = np.maximum(dense.max(axis=1, initial=0.0), -dense.min(axis=1, initial=0.0))
        if (shifts := _shifts(largest)).any():
            dense = np.ldexp(dense, shifts[:, None])
        lengths = np.sqrt(np.einsum("ij,ij->i", dense, dense))
        dense /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return kernels.Dense(dense, np.where(there, 1 + (lengths > 0), 0).astype(np.int8))
    at, ends = chosen_rows(np.asarray(matrix.indptr, np.int64), rows)
    values = np.asarray(matrix.data, np.float64)[at]
    of_slots = np.repeat(np.arange(slots.n), np.diff(ends))
    largest = np.zeros(slots.n)
    np.maximum.at(largest, of_slots, np.abs(values))
    if (shifts := _shifts(largest)).any():
        values = np.ldexp(values, shifts[of_slots])
    lengths = np.sqrt(np.bincount(of_slots, weights=values * values, minlength=slots.n))
    kinds = np.where(there, 1 + (lengths > 0), 0).astype(np.int8)
    values = values / np.where(lengths > 0, lengths, 1.0)[of_slots]
    return kernels.Sparse(ends, np.asarray(matrix.indices, np.int64)[at], values, kinds, int(matrix.shape[1]))


def _shifts(largest: Array) -> Array:
    """Return the powers of 2 that move vectors to numbers whose squares neither overflow nor underflow.

    0 for usual vectors: a power of 2 would leave the bits of their cosines in any case.
    """
    exponents = np.frexp(largest)[1]
    shifts: Array = np.where(np.abs(exponents) > MAX_EXPONENT, -exponents, 0)
    return shifts


def _coded(table: ItemTable, slots: Slots, column: str) -> kernels.Coded:
    """Return the values of the columns of vectors as codes."""
    matrix, known = table.vectors(column)
    if not isinstance(matrix, np.ndarray):
        raise InputError(f"distance=hamming needs vectors in a list or an array, the items column {column!r} is sparse")
    codes, n = np.zeros(matrix.shape, np.int64), 0
    for at in range(matrix.shape[1]):
        distinct, own = np.unique(matrix[:, at], return_inverse=True)
        codes[:, at] = own + n
        n += len(distinct)
    rows = _rows_of(table, slots)
    return kernels.Coded(codes[rows], (rows >= 0) & known[rows], n)


def _sets(sides: BatchSides, slots: Slots, column: str, sep: str | None) -> kernels.Sets:
    """Return the sets of categories of slots."""
    table = sides.read_items()
    codes, indptr, names = table.categories(column, sep)
    note_unseparated(sides, column, names, sep)
    numbers: dict[tuple[int, ...], int] = {}
    parts = [tuple(sorted(codes[indptr[i] : indptr[i + 1]].tolist())) for i in range(len(table.ids))]
    own = np.array([numbers.setdefault(part, len(numbers)) if part else -1 for part in parts], np.int64)
    ends = np.cumsum([0, *map(len, numbers)])
    rows = _rows_of(table, slots)
    flat = np.array([code for part in numbers for code in part], np.int64)
    return kernels.Sets(np.where(rows >= 0, own[rows], -1), ends, flat)


KERNELS = {
    kernels.Dense: kernels.diversity_of_dense,
    kernels.Sparse: kernels.diversity_of_sparse,
    kernels.Coded: kernels.diversity_of_columns,
    kernels.Sets: kernels.diversity_of_sets,
}
FEATURES_OF_DISTANCES = (
    "distance=cosine and distance=hamming read vectors, distance=jaccard reads categories; name a column, as in "
    "intra_list_diversity(column=genres, distance=jaccard)@10"
)


def has_features(features: Any) -> Array:
    """Return which slots have features."""
    if isinstance(features, kernels.Sets):
        return features.of_slots >= 0
    return features.known if isinstance(features, kernels.Coded) else features.kinds > 0


def note_unseparated(sides: BatchSides, column: str, names: Sequence[Any], sep: str | None) -> None:
    """Hint at a separator if most categories of a column hold one, and none is named."""
    for mark, mend in MARKS.items() if sep is None else ():
        held = [name for name in names if isinstance(name, str) and mark in name]
        if 2 * len(held) > len(names):
            found = f"{len(held):,} of {len(names):,} categories in the items column {column!r} hold {mark!r}"
            sides.hints.append(f"{found}, such as {held[0]!r}: if it separates categories, {mend}")


def note_missing(sides: BatchSides, featured: Array) -> None:
    """Count the rows of lists with an item that has no features."""
    rows = sides.slots.of_rows
    sides.note("rec_rows_without_features", 0 if featured.all() else int(np.count_nonzero(~featured[rows])))


def refuse_missing(
    sides: BatchSides, slots: Slots, featured: Array, indptr: Array, where: tuple[str, str, int | None]
) -> None:
    """Raise InputError for rows within k of items without features; `where` are the side, the column and k."""
    name, column, k = where
    if featured.all():
        return
    rows = slots.of_rows
    if k is not None and not featured[rows].all():
        rows = rows[np.arange(len(rows)) - np.repeat(indptr[:-1], np.diff(indptr)) < k]
    without = np.unique(rows[~featured[rows]])
    if len(without):
        codes, known = slots.items(without), sides.read_items().codes
        assert known is not None
        absent = codes[~np.isin(codes, known)]
        lack = f" without a value in the items column {column!r}"
        if len(absent):
            lack = Text(" that ", Place("items"), " lacks")
        found = absent if len(absent) else codes
        such = f"found {counted(len(found), 'item')} of {name}, such as item {sides.names.item(int(found[0]))},"
        raise InputError(such, lack, "; leave them out with ", Argument("no_features", ("drop",)))


def fill_diversity(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill mean distances of pairs, or numbers of items with features; keys are (what, distance, column, ..., k)."""
    slots, recs = sides.slots, sides.recs
    for (distance, column, sep, policy), wanted, cuts, at in group_cutoffs([key[1:] for key in keys]):
        if column not in sides.read_items().columns:
            why = f" has no column {column!r}; {FEATURES_OF_DISTANCES}; {sides.read_items().columns_like(column)}"
            raise InputError(Place("items"), why)
        if distance == "jaccard":
            features: Any = _sets(sides, slots, column, sep)
        else:
            features = (_coded if distance == "hamming" else _vectors)(sides.read_items(), slots, column)
        note_missing(sides, has_features(features))
        if policy == "error":
            for nth in wanted:
                where = "the lists", column, keys[nth][-1]
                refuse_missing(sides, slots, has_features(features), recs.indptr, where)
        found = np.empty((2, len(cuts), recs.n_users))
        kernel, work = KERNELS[type(features)], 64 * len(slots.of_rows)
        given = *map(_as_read_only, (slots.of_rows, recs.indptr, cuts, *features)), found
        launch_users(kernel, recs.n_users, *given, work=work, n_threads=sides.n_threads)
        for nth, place in zip(wanted, at, strict=True):
            out[nth] = found[0 if keys[nth][0] == "distance" else 1, place]


def _as_read_only(part: Any) -> Any:
    return read_only(part) if isinstance(part, np.ndarray) else part


def fill_distance(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill sums over relevant items of 1 - mean cosine to the history; keys are (what, min_gain, column, policy, k).

    "sum" is this sum, "past" the rows of the history with a vector, "listed" the items within k with one.
    """
    slots, recs = sides.slots, sides.recs
    history = sides.read_history()
    past = Slots.of(history.items)
    for (least, column, policy), wanted, cuts, at in group_cutoffs([key[1:] for key in keys]):
        vectors, of_past = (_vectors(sides.read_items(), own, column) for own in (slots, past))
        if not isinstance(vectors, kernels.Dense):
            raise InputError(f"expected=history needs vectors in a list or an array, the column {column!r} is sparse")
        note_missing(sides, vectors.kinds > 0)
        if policy == "error":
            for nth in wanted:
                where = "the lists", column, keys[nth][-1]
                refuse_missing(sides, slots, vectors.kinds > 0, recs.indptr, where)
            refuse_missing(sides, past, of_past.kinds > 0, history.indptr, ("history", column, None))
        distances, counts = np.empty(len(recs.items)), np.empty(recs.n_users)
        past_slots = past.of_rows.astype(slots.of_rows.dtype, copy=False)
        rows = slots.of_rows, recs.indptr, past_slots, history.indptr
        given, work = (*map(read_only, (*rows, *vectors, *of_past)), distances, counts), 64 * len(distances)
        launch_users(kernels.distance_to_past, recs.n_users, *given, work=work, n_threads=sides.n_threads)
        sums = sum_rows(np.where(sides.is_hit(least), distances, 0.0), recs.indptr, cuts, "one", sides.n_threads)
        listed = sum_rows((vectors.kinds > 0)[slots.of_rows] * 1.0, recs.indptr, cuts, "one", sides.n_threads)
        for nth, place in zip(wanted, at, strict=True):
            out[nth] = {"sum": sums[place], "past": counts, "listed": listed[place]}[keys[nth][0]]

"""Counts of impressions and clicks: by rank, by rank and user, and by query, item and rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.counterfactual.impressions import MAX_RANK, Impressions, refuse_rank
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.ragged import read_only
from fastrec.inputs.row_groups import refuse_many
from fastrec.inputs.users import Keys, encode_key, number_codes
from fastrec.kernels import position as kernels
from fastrec.runtime.launcher import launch
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.clusters import MOMENTS

Array = np.ndarray[Any, Any]
ROWS_PER_TASK = 1 << 20  # fewer are not worth a thread
ROWS_PER_CHUNK = 1 << 15
RankTables = tuple[Array, Mapping[str, Mapping[Any, Array]]]  # of all rows, {grouping: {label: table}}
MAX_KEYS = 1 << 26  # rows of a table by group and rank: 3 GB


def _edges(n: int, n_threads: int) -> Array:
    """Return edges of ranges that cover n, one per thread."""
    n_parts = max(1, min(n_threads, n // ROWS_PER_TASK))
    return read_only(n * np.arange(n_parts + 1, dtype=np.int64) // n_parts)


def _over_chunks(n: int, work: Callable[[int, int], Any], n_threads: int) -> list[Any]:
    """Call work(first, last) for short ranges that cover n, in threads; their rows stay in the cache."""
    edges = _edges(n, n_threads).tolist()

    def of_range(part: int) -> list[Any]:
        last = edges[part + 1]
        return [work(at, min(at + ROWS_PER_CHUNK, last)) for at in range(edges[part], last, ROWS_PER_CHUNK)]

    n_parts = len(edges) - 1
    return [found for part in run_in_threads(of_range, range(n_parts), n_parts) for found in part]


# By rank


def count_rows(rows: Impressions, n_threads: int) -> Array:
    """Return impressions and clicks by rank, int64 (highest rank, MOMENTS); the moments of users are 0."""
    clicks, ranks = read_only(rows.clicks), read_only(rows.ranks)
    n, edges = len(ranks), _edges(len(ranks), n_threads)
    counts = np.zeros((len(edges) - 1, kernels.LANES, MAX_RANK, 2), np.int64)
    highest = np.empty(len(counts), np.int64)
    launch(kernels.count_ranks, len(counts), clicks, ranks, counts, highest, edges, work=n, n_threads=n_threads)
    if highest.min() < 0:
        refuse_rank(rows.where, ranks, -1 - int(highest[highest < 0][0]))
    table = np.zeros((highest.max(), MOMENTS), np.int64)
    for own in counts.reshape(-1, MAX_RANK, 2)[:, : len(table)]:
        table[:, 0] += own.sum(axis=1)
        table[:, 1] += own[:, 1]
    return table


def count_keys(keys: Array, clicks: Array, n_keys: int) -> Array:
    """Return the same by integer keys, without users."""
    table = np.zeros((n_keys, MOMENTS), np.int64)
    table[:, 0] = np.bincount(keys, minlength=n_keys)
    table[:, 1] = np.bincount(keys[clicks.astype(bool)], minlength=n_keys)
    return table


def table_by_rank(ranks: Array, columns: Array, n_ranks: int) -> Array:
    """Return a table by rank from the ranks that occur and their columns, (n, 2) or (n, MOMENTS)."""
    table = np.zeros((n_ranks, MOMENTS), np.int64)
    table[ranks - 1, : columns.shape[1]] = columns
    return table


def add_tables(tables: Sequence[Array]) -> Array:
    """Return the sum of tables by rank, the longest of which sets the highest rank."""
    total = np.zeros((max(map(len, tables)), MOMENTS), np.int64)
    for table in tables:
        total[: len(table)] += table
    return total


def join_tables(parts: Sequence[RankTables]) -> RankTables:
    """Return the sums of tables by rank of all rows, and of the labels of each grouping, up to the highest rank."""
    whole = add_tables([table for table, _ in parts])
    blank = np.zeros_like(whole)
    joined: dict[str, dict[Any, Array]] = {}
    for grouping in parts[0][1]:
        labels = {label for _, groups in parts for label in groups[grouping]}
        joined[grouping] = {
            label: add_tables([blank, *(groups[grouping][label] for _, groups in parts if label in groups[grouping])])
            for label in sorted(labels, key=lambda label: (isinstance(label, str), label))
        }
    return whole, joined


# By query, item and rank


class PairCounts(NamedTuple):
    """Impressions and clicks of each (query, item) at each rank, in the order of queries, items, ranks."""

    queries: Array  # (n_queries,): their ids, ascending
    items: Array  # (n_items,): their ids, ascending
    item_of: Array  # int64 (n_pairs,): position in items
    cells: kernels.PairCells

    @property
    def n_ranks(self) -> int:
        """The highest rank."""
        return int(self.cells.ranks.max(initial=-1)) + 1

    def columns(self) -> dict[str, Array]:
        """Return the cells as columns: query, item, rank, impressions, clicks."""
        of_pairs = np.repeat(np.arange(len(self.queries)), np.diff(self.cells.queries))
        pairs = np.repeat(np.arange(len(self.item_of)), np.diff(self.cells.indptr))
        return {
            "query": self.queries[of_pairs[pairs]],
            "item": self.items[self.item_of[pairs]],
            "rank": self.cells.ranks + 1,
            "impressions": self.cells.shown,
            "clicks": self.cells.clicked,
        }


def count_pairs(rows: Impressions, n_threads: int) -> PairCounts:
    """Return the counts of rows with keys "query" and "item"."""
    clicks, ranks = read_only(rows.clicks), rows.ranks
    n = len(ranks)
    lowest, n_ranks = _bounds(ranks, n_threads) if n else (1, 0)
    if lowest < 1 or n_ranks > MAX_RANK:
        refuse_rank(rows.where, ranks, int(((ranks < 1) | (ranks > MAX_RANK)).argmax()))
    query, item = (encode_key(rows.keys[name], name, n) for name in ("query", "item"))
    code, split = _pair_codes(query.codes, item.codes, n_threads)
    packed = np.empty(n, np.int32)

    def pack(first: int, last: int) -> None:
        np.multiply(ranks[first:last] - 1, 2, out=packed[first:last], casting="same_kind")
        packed[first:last] += clicks[first:last]

    _over_chunks(n, pack, n_threads)
    grouping = group_rows(code, n_threads)
    packed = grouping.take(packed)
    lengths, cells = _count_cells(packed, grouping.indptr, n_ranks, n_threads)
    of_query, of_item = split(grouping.ids)
    return _ordered(query, item, of_query, of_item, grouping.indptr[:-1], lengths, cells, n_threads)


def _bounds(values: Array, n_threads: int) -> tuple[int, int]:
    """Return the smallest and the largest of some integers."""
    found = _over_chunks(len(values), lambda first, last: _smallest_and_largest(values[first:last]), n_threads)
    return min(low for low, _ in found), max(high for _, high in found)


def _smallest_and_largest(values: Array) -> tuple[int, int]:
    return int(values.min()), int(values.max())


def _pair_codes(query: Array, item: Array, n_threads: int) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return an integer for each pair of codes, ascending with both, and what splits it again."""
    numbered: list[tuple[Array, Array | None, int]] = []  # codes, the distinct ones if they were numbered, the lowest
    for codes in (query, item):
        low, high = _bounds(codes, n_threads) if len(codes) else (0, 0)
        if high - low < 1 << 31:
            numbered.append((codes, None, low))
        else:
            numbers, distinct = number_codes(codes)
            numbered.append((numbers, distinct, 0))
            high, low = len(distinct) - 1, 0
        size = high - low + 1
    (queries, _, lowest), (items, _, least) = numbered
    pairs = np.empty(len(query), np.int64)

    def join(first: int, last: int) -> None:
        own = pairs[first:last]
        np.subtract(queries[first:last], lowest, out=own, dtype=np.int64)
        own *= size
        own += items[first:last]
        own -= least

    _over_chunks(len(pairs), join, n_threads)

    def split(some: Array) -> tuple[Array, Array]:
        first, second = np.divmod(some, size)
        return _codes_of(first, *numbered[0][1:]), _codes_of(second, *numbered[1][1:])

    return pairs, split


def _codes_of(numbers: Array, distinct: Array | None, lowest: int) -> Array:
    """Return the codes that were numbered, or moved to begin at 0."""
    return numbers + lowest if distinct is None else distinct[numbers]


def _count_cells(packed: Array, indptr: Array, n_ranks: int, n_threads: int) -> tuple[Array, Array]:
    """Return the number of cells of each pair, and the cells from where its rows began."""
    n = len(packed)
    lengths = np.zeros(len(indptr) - 1, np.int64)
    cells = np.empty((3, n), np.int32 if n < 1 << 31 else np.int64)
    edges = read_only(np.searchsorted(indptr, _edges(n, n_threads)))
    given = read_only(packed), read_only(indptr), n_ranks, lengths, cells, edges
    launch(kernels.count_cells, len(edges) - 1, *given, work=4 * n, n_threads=n_threads)
    return lengths, cells


def _ordered(
    query: Keys,
    item: Keys,
    of_query: Array,
    of_item: Array,
    starts: Array,
    lengths: Array,
    cells: Array,
    n_threads: int,
) -> PairCounts:
    """Return counts in the order of queries and items."""
    ascending = np.lexsort((of_item, of_query)) if _falls(of_query, of_item) else np.arange(len(of_query))
    of_query, of_item = of_query[ascending], of_item[ascending]
    indptr = np.concatenate([[0], np.cumsum(lengths[ascending])])
    moved = np.empty((3, indptr[-1]), np.int64)
    n = int(indptr[-1])
    edges = read_only(np.searchsorted(indptr, _edges(n, n_threads)))
    given = *map(read_only, (starts, ascending, indptr, cells)), moved, edges
    launch(kernels.move_cells, len(edges) - 1, *given, work=3 * n, n_threads=n_threads)
    begins = np.flatnonzero(np.diff(of_query, prepend=of_query[:1] - 1))
    numbers, items = number_codes(of_item)
    return PairCounts(
        query.name_of(of_query[begins]),
        item.name_of(items),
        numbers,
        kernels.PairCells(*map(read_only, (np.append(begins, len(of_query)), indptr, *moved))),
    )


def _falls(of_query: Array, of_item: Array) -> bool:
    """Return whether pairs are not in the order of queries and items."""
    steps = np.diff(of_query)
    return bool(((steps < 0) | ((steps == 0) & (np.diff(of_item) < 0))).any())


def join_pairs(parts: Sequence[dict[str, Array]], n_threads: int) -> PairCounts:
    """Return the sum of counts in columns; see `PairCounts.columns`."""
    keys: dict[str, Array] = {}
    for name in ("query", "item"):
        columns = [own[name] for own in parts if len(own[name])]
        kinds = {own.dtype.kind in "iu" for own in columns}
        if len(kinds) > 1:
            raise InputTypeError(f"the ids of {name} must be all integers or all strings to be merged, found both")
        form = np.int64 if kinds <= {True} else object
        keys[name] = np.concatenate([np.zeros(0, form), *(own.astype(form) for own in columns)])
    rank, shown, clicked = (
        np.concatenate([np.asarray(own[name], np.int64) for own in parts]) for name in ("rank", "impressions", "clicks")
    )
    n = len(rank)
    query, item = (encode_key(keys[name], name, n) for name in ("query", "item"))
    order = np.lexsort((rank, item.codes, query.codes))
    of_query, of_item, rank = query.codes[order].astype(np.int64), item.codes[order].astype(np.int64), rank[order]
    new = np.ones(n, bool)
    pair = np.ones(n, bool)
    pair[1:] = (np.diff(of_query) != 0) | (np.diff(of_item) != 0)
    new[1:] = pair[1:] | (np.diff(rank) != 0)
    at = np.flatnonzero(new)
    cells = np.stack([rank[at] - 1, *(np.add.reduceat(own[order], at) if n else own for own in (shown, clicked))])
    starts = np.flatnonzero(pair[at])
    lengths = np.diff(np.append(starts, len(at)))
    return _ordered(query, item, of_query[at][starts], of_item[at][starts], starts, lengths, cells, n_threads)


def check_keys(n_groups: int, n_ranks: int) -> None:
    """Raise InputError if a grouping of rows has too many labels, or a table by group and rank would be too large."""
    refuse_many("the grouping of rows", n_groups)
    if n_groups * n_ranks > MAX_KEYS:
        raise InputError(
            f"{n_groups:,} groups times {n_ranks:,} ranks are more than {MAX_KEYS:,} counts: use coarser groups"
        )

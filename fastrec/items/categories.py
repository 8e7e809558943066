"""Categories of the items of lists and histories, from a column of the table of items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.inputs.ragged import chosen_rows, longest_row, read_only
from fastrec.items.slots import Slots
from fastrec.items.sums import group_cutoffs, launch_users, sum_values
from fastrec.items.vectors import note_missing, note_unseparated, refuse_missing
from fastrec.kernels import categories as kernels
from fastrec.metrics.rank_weights import rank_weights

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
FORMS = ("kl", "js", "hellinger")  # of divergence, by their codes in the kernel


class _OfLists:
    """The lists of a batch and their categories in a column."""

    def __init__(self, sides: BatchSides, column: str, sep: str | None) -> None:
        self.sides, self.column = sides, column
        self.slots = sides.slots
        self._codes, self._indptr, names = sides.read_items().categories(column, sep)
        note_unseparated(sides, column, names, sep)
        self.n = len(names)
        self.categories, self.featured = self.of_slots(self.slots)

    def of_slots(self, slots: Slots) -> tuple[kernels.CategoriesOfSlots, Array]:
        """Return the categories of slots, and which slots have any."""
        table = self.sides.read_items()
        assert table.codes is not None
        rows = slots.spread(table.codes, np.arange(len(table.ids)), -1)
        at, indptr = chosen_rows(self._indptr, rows)
        codes, lengths = self._codes[at], np.diff(indptr)
        only = np.where(lengths > 1, kernels.SEVERAL, kernels.NONE).astype(np.int32)
        only[lengths == 1] = codes[indptr[:-1][lengths == 1]]
        return kernels.CategoriesOfSlots(read_only(indptr), read_only(codes), self.n, read_only(only)), lengths > 0

    def count_featured(self, slots: Slots, featured: Array, indptr: Array, cuts: Array) -> Array:
        """Return the rows with categories up to each cut-off, (n_cuts, n_users)."""
        values = featured[:, None].astype(np.float64)
        counts: Array = sum_values(slots.of_rows, indptr, cuts, values, self.sides.n_threads)[0]
        return counts

    def run(self, kernel: Callable[..., Any], *arguments: Any) -> None:
        """Run a kernel over all users."""
        n_users = self.sides.recs.n_users
        work = 8 * len(self.slots.of_rows) + n_users
        launch_users(kernel, n_users, *arguments, work=work, n_threads=self.sides.n_threads)


def _by_column(keys: Sequence[Any], sides: BatchSides) -> dict[tuple[str, str | None], _OfLists]:
    """Return the categories of each column of keys (..., column, sep, policy, k); check those that refuse gaps."""
    found = {}
    for *_, column, sep, policy, k in keys:
        if (column, sep) not in found:
            found[column, sep] = _OfLists(sides, column, sep)
            note_missing(sides, found[column, sep].featured)
        own = found[column, sep]
        if policy == "error":
            refuse_missing(sides, own.slots, own.featured, sides.recs.indptr, ("the lists", column, k))
    return found


def fill_categories(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill statistics of the categories of lists; keys are (what, ..., column, sep, policy, k)."""
    by_column, indptr = _by_column(keys, sides), sides.recs.indptr
    for (what, *options, column, sep, _), wanted, cuts, at in group_cutoffs(keys):
        own = by_column[column, sep]
        found = np.empty((len(cuts), len(indptr) - 1))
        rows = own.slots.of_rows, indptr
        if what == "all":
            found[:] = own.n
        elif what == "featured":
            found = own.count_featured(own.slots, own.featured, indptr, cuts)
        elif what == "distinct":
            given = map(read_only, (*rows, np.ones(len(rows[0]), bool), cuts))
            own.run(kernels.count_categories, *given, *own.categories, found)
        else:
            base, weight = options
            weights = rank_weights(weight, longest_row(indptr))[1:]
            given = map(read_only, (*rows, weights, cuts))
            own.run(kernels.entropy_of_categories, *given, *own.categories, found)
            found = found if base == 2 else found * _nats(base)
        out[wanted] = found[at]


def fill_categories_of_hits(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill the number of distinct categories of relevant items; keys are (min_gain, column, sep, policy, k)."""
    by_column, indptr = _by_column(keys, sides), sides.recs.indptr
    for (least, column, sep, _), wanted, cuts, at in group_cutoffs(keys):
        own = by_column[column, sep]
        found = np.empty((len(cuts), len(indptr) - 1))
        given = map(read_only, (own.slots.of_rows, indptr, sides.is_hit(least), cuts))
        own.run(kernels.count_categories, *given, *own.categories, found)
        out[wanted] = found[at]


def fill_calibration(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill divergences of lists from histories, (what, form, alpha, base, weight, column, sep, policy, k).

    "value" is the divergence, "defined" is 1 where both sides have categories.
    """
    by_column, recs = _by_column(keys, sides), sides.recs
    is_shared = any((own.categories.only == kernels.SEVERAL).any() for own in by_column.values())
    history = sides.read_history(ordered=is_shared)  # whole weights have the same sum in any order
    past = Slots.of(history.items)
    for others, wanted, cuts, at in group_cutoffs([key[1:] for key in keys]):
        form, alpha, base, weight, column, sep, policy = others
        own = by_column[column, sep]
        categories, featured = own.of_slots(past)
        if policy == "error":
            refuse_missing(sides, past, featured, history.indptr, ("history", column, None))
        found = np.empty((2, len(cuts), recs.n_users))
        weights = rank_weights(weight, longest_row(recs.indptr))[1:]
        arrays = own.slots.of_rows, recs.indptr, past.of_rows, history.indptr, weights
        lists, code = kernels.ListsAndPast(*map(read_only, arrays)), (FORMS.index(form), float(alpha))
        own.run(kernels.miscalibrate, lists, read_only(cuts), own.categories, categories, *code, found)
        if form == "hellinger":
            np.sqrt(found[0], out=found[0])
        elif base != 2:
            found[0] *= _nats(base)
        for nth, place in zip(wanted, at, strict=True):
            out[nth] = found[0 if keys[nth][0] == "value" else 1, place]


def _nats(base: Any) -> float:
    """Return what bits are in units of another base."""
    return math.log(2.0) / (1.0 if base == "e" else math.log(base))

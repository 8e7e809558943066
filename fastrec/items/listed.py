"""The rows of the truth that lists hold, found once per batch, and statistics of them at several cut-offs at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import MADE, BatchSides
from fastrec.items.sums import cuts_of
from fastrec.kernels import listed as kernels
from fastrec.kernels.ideal_gains import GradedLists
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

__all__ = ["ListedRows", "fill_by_cutoffs", "graded_lists", "longest_of"]

Array = np.ndarray[Any, Any]
STEPS_PER_ROW = 8
_sort_gains = Entry(kernels.sort_gains, "sort_gains", allocates=False)


@functools.cache
def _find_listed(ids: str) -> Entry:
    return Entry(kernels.find_listed, f"find_listed-{ids}", allocates=True)


class ListedRows(NamedTuple):
    """The rows of the truth that lists hold, as kernels take them, and which row of the truth each of them is."""

    listed: kernels.Listed
    rows: Array  # int64 (n_truth_rows,): of the truth

    @classmethod
    def of(cls, sides: BatchSides) -> ListedRows:
        """Find the rows."""
        recs, truth = sides["recs"], sides["truth"]
        n = len(truth.items)
        lengths = np.diff(recs.indptr).astype(np.int64)
        spare = np.zeros(truth.n_users, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int32)
        listed = kernels.Listed(np.asarray(truth.indptr, np.int64), *spare, lengths)
        items = read_only(truth.items.astype(np.int64, copy=False))
        given = read_only(recs.items), read_only(recs.indptr), items, listed
        run = _find_listed(str(recs.items.dtype)).suited_to(STEPS_PER_ROW * (len(recs.items) + n), *given, 0, 0)
        over_users(functools.partial(run, *given), truth.n_users, sides["n_threads"])
        return cls(listed, truth.indptr[truth.users] + listed.sources)


MADE["listed rows"] = ListedRows.of


def longest_of(*lengths: Array) -> int:
    """Return the largest of some lengths; 0 without any."""
    return max(int(own.max(initial=0)) for own in lengths)


def graded_lists(sides: BatchSides, gains: Array, relevant: Array, discounts: Array, missing: float) -> GradedLists:
    """Return the listed rows with their gains, and the gains of the best order of the relevant rows.

    `gains` and `relevant` are those of the rows of the truth; a row that is not relevant has the gain `missing`.
    """
    truth, (listed, rows) = sides["truth"], sides["listed rows"]
    starts = np.append(0, np.cumsum(relevant))[truth.indptr].astype(np.int64)
    ideals = gains[relevant]
    if truth.extra is not None:
        sort = _sort_gains.suited_to(STEPS_PER_ROW * len(ideals), ideals, read_only(starts), 0, 0)
        over_users(functools.partial(sort, ideals, read_only(starts)), truth.n_users, sides["n_threads"])
    own = np.where(relevant, gains, missing)[rows]
    arrays = (listed.starts, listed.counts, listed.ranks, own, listed.n_rec, ideals, starts, discounts)
    return GradedLists(*map(read_only, arrays))


def fill_by_cutoffs(
    keys: Sequence[tuple[Any, ...]], out: Array, fill: Callable[[tuple[Any, ...], Array, Array], None]
) -> None:
    """Fill the statistics of keys (cut-off, *others) by calls fill(others, ascending cut-offs, their own rows)."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for nth, (_, *others) in enumerate(keys):
        places.setdefault(tuple(others), []).append(nth)
    for key, at in places.items():
        cuts, position = cuts_of([keys[nth][0] for nth in at])
        rows = out[at[0] : at[0] + len(at)]
        if [at[0] + nth for nth in position] == at:  # neighbours, in ascending order
            fill(key, read_only(cuts), rows)
            continue
        found = np.empty((len(cuts), out.shape[1]))
        fill(key, read_only(cuts), found)
        for nth, own in zip(at, position, strict=True):
            out[nth] = found[own]

"""The rows of a user's truth that are in the user's list, in the order of their ranks.

Most statistics of a list follow from these rows, which are few, and from the length of the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import FINE
from fastrec.kernels.hits import SLOTS_PER_ID, SMALL_ROWS, SMALL_TABLE, find_hits, order_by_rank, sort_descending
from fastrec.runtime.compiler import helper

__all__ = ["Cuts", "Listed", "count_within", "find_listed", "read_values", "sort_gains"]

Array = np.ndarray[Any, Any]


class Listed(NamedTuple):
    """The listed rows of the truth; those of user u are at `starts[u]` to `starts[u] + counts[u]`.

    Those of neighbours mostly touch each other, so that they stay in faster caches than the truth.
    """

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_truth_rows,), ascending
    sources: Array  # int32 (n_truth_rows,): the place of each row among those of the user's truth, from 0
    places: Array  # int64 (n_truth_rows,): its place among all rows of the truth; or empty
    n_rec: Array  # int64 (n_users,): lengths of the lists
    at_fault: Array  # bool (1,): whether the rows of a user are at fault


class Cuts(NamedTuple):
    """Cut-offs, and room for a statistic of lists that changes only at listed rows."""

    ranks: Array  # int64 (n_cutoffs,), ascending
    within: Array  # int64 (n_cutoffs, n_users): listed rows within a cut-off
    slots: Array  # int64 (n_cutoffs, n_users): where `values` has the value after these rows
    values: Array  # float64 (n_truth_rows + n_users,): from starts[u] + u on, before user u's first row and after each


def find_listed(items, indptr, truth, truth_indptr, listed, lowest, first, last):
    """Find the rows of the truth that are listed. Users whose rows are at fault have none: their error comes later.

    With a `lowest` id of -1, ids below 0 are places without an item; with 0 they are at fault.
    """
    longest, most = 0, 0
    for u in range(first, last):
        longest = max(longest, listed.n_rec[u])
        most = max(most, listed.n_rec[u] + truth_indptr[u + 1] - truth_indptr[u])
    bits = SMALL_TABLE
    if most > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * most:
            bits += 1
    table, base = np.zeros(1 << bits, np.int32), np.int64(1)
    marks = np.empty(longest + 1, np.int32)
    at = truth_indptr[first]
    for u in range(first, last):
        start, end = truth_indptr[u], truth_indptr[u + 1]
        row, ranks, sources = items[indptr[u] : indptr[u + 1]], listed.ranks[at:end], listed.sources[at:end]
        code, _, hits, base = find_hits(row, truth[start:end], lowest, table, base, ranks, sources)
        if code != FINE:
            listed.at_fault[0], hits = True, 0
        order_by_rank(ranks, sources, hits, len(row), marks)
        listed.starts[u], listed.counts[u] = at, hits
        if len(listed.places) > 0:
            for nth in range(hits):
                listed.places[at + nth] = start + sources[nth]
        at += hits


def count_within(listed, cuts, first, last):
    """Count the listed rows of each user within the cut-offs."""
    for u in range(first, last):
        rows, start = 0, listed.starts[u]
        for nth in range(len(cuts.ranks)):
            while rows < listed.counts[u] and listed.ranks[start + rows] <= cuts.ranks[nth]:
                rows += 1
            cuts.within[nth, u], cuts.slots[nth, u] = rows, start + u + rows


@helper
def read_values(cuts, out, first, last):
    """Write the value of each user at each cut-off, from those after each listed row."""
    for nth in range(len(out)):
        row, slots = out[nth, first:last], cuts.slots[nth, first:last]
        for i in range(len(row)):
            row[i] = cuts.values[np.uint64(slots[i])]


def sort_gains(gains, indptr, first, last):
    """Sort the gains of each user in descending order."""
    for u in range(first, last):
        sort_descending(gains[indptr[u] : indptr[u + 1]])

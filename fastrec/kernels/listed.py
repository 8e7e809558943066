"""The rows of a user's truth that are in the user's list, in the order of their ranks.

Most statistics of a list follow from these rows, which are few, and from the length of the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import FINE
from fastrec.kernels.hits import SLOTS_PER_ID, SMALL_ROWS, SMALL_TABLE, find_hits, order_by_rank, sort_descending

__all__ = ["Listed", "find_listed", "sort_gains"]

Array = np.ndarray[Any, Any]


class Listed(NamedTuple):
    """The listed rows of the truth; those of user u are at `starts[u]` to `starts[u] + counts[u]`."""

    starts: Array  # int64 (n_users + 1,), those of the truth
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_truth_rows,), ascending
    sources: Array  # int32 (n_truth_rows,): the place of each row among those of the user's truth, from 0
    n_rec: Array  # int64 (n_users,): lengths of the lists
    at_fault: Array  # bool (1,): whether the rows of a user are at fault


def find_listed(items, indptr, truth, listed, lowest, first, last):
    """Find the rows of the truth that are listed. Users whose rows are at fault have none: their error comes later.

    With a `lowest` id of -1, ids below 0 are places without an item; with 0 they are at fault.
    """
    longest, most = 0, 0
    for u in range(first, last):
        longest = max(longest, listed.n_rec[u])
        most = max(most, listed.n_rec[u] + listed.starts[u + 1] - listed.starts[u])
    bits = SMALL_TABLE
    if most > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * most:
            bits += 1
    table, base = np.zeros(1 << bits, np.int32), np.int64(1)
    marks = np.empty(longest + 1, np.int32)
    for u in range(first, last):
        start, end = listed.starts[u], listed.starts[u + 1]
        row, ranks, sources = items[indptr[u] : indptr[u + 1]], listed.ranks[start:end], listed.sources[start:end]
        code, _, hits, base = find_hits(row, truth[start:end], lowest, table, base, ranks, sources)
        listed.counts[u] = hits if code == FINE else 0
        if code != FINE:
            listed.at_fault[0] = True
        order_by_rank(ranks, sources, listed.counts[u], len(row), marks)


def sort_gains(gains, indptr, first, last):
    """Sort the gains of each user in descending order."""
    for u in range(first, last):
        sort_descending(gains[indptr[u] : indptr[u + 1]])

"""The rows of a user's truth that are in the user's list, in the order of their ranks.

Most statistics of a list follow from these rows, which are few, and from the length of the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .hits import sort_descending
from .jit import njit

Array = np.ndarray[Any, Any]


class Listed(NamedTuple):
    """The listed rows of the truth; those of user u are at `starts[u]` to `starts[u] + counts[u]`.

    They are events, as in `fastrec.inputs.hits.Hits`: an event of rank 0 opens each user. One loop can thus walk
    along the events of all users. An inner loop per user would have an unpredictable length, which costs more than its
    rows. Events of neighbours touch each other.
    """

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_truth_rows + n_users,), ascending within a user
    sources: Array  # int32, likewise: the place of each row among those of the user's truth, from 0
    places: Array  # int64, likewise: its place among all rows of the truth, 0 for what opens a user; or empty
    n_rec: Array  # int64 (n_users,): lengths of the lists


@njit(cache=True)
def find_last(listed, last_events, bucket):
    """Find the last event of each user within some ascending cut-offs, and in the whole list: (n_cutoffs + 1, n_users).

    `bucket` has the first cut-off that includes a rank.
    """
    last_events[:] = 0
    u, past, starts = -1, len(bucket) - 1, listed.starts
    for at in range(starts[-1] + listed.counts[-1] if len(starts) > 0 else 0):
        rank = listed.ranks[at]
        is_row = rank > 0
        u += not is_row
        last_events[bucket[min(rank, past)], u] += is_row
    for u in range(len(starts)):
        last_events[0, u] += starts[u] - 1
    for nth in range(1, len(last_events)):
        for u in range(len(starts)):
            last_events[nth, u] += last_events[nth - 1, u]


@njit(cache=True)
def sort_gains(gains, indptr):
    """Sort the gains of each user in descending order."""
    for u in range(len(indptr) - 1):
        sort_descending(gains[indptr[u] : indptr[u + 1]])

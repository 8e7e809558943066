"""The rows of a user's truth that are in the user's list, in the order of their ranks.

Most statistics of a list follow from these rows, which are few, and from the length of the list.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import FINE
from fastrec.kernels.hits import SLOTS_PER_ID, SMALL_ROWS, SMALL_TABLE, find_hits, order_by_rank, sort_descending
from fastrec.runtime.compiler import helper

__all__ = ["Listed", "events_of", "find_last", "find_listed", "sort_gains"]

Array = np.ndarray[Any, Any]


class Listed(NamedTuple):
    """The listed rows of the truth; those of user u are at `starts[u]` to `starts[u] + counts[u]`.

    They are events, as in `fastrec.kernels.hits.Scratch`: an event of rank 0 opens each user. One loop can thus walk
    along the events of all users. An inner loop per user would have an unpredictable length, which costs more than its
    rows. Events of neighbours touch each other within the ranges of `find_listed`; other kernels that walk along events
    must take these ranges, as between them lies memory that nobody wrote.
    """

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_truth_rows + n_users,), ascending within a user
    sources: Array  # int32, likewise: the place of each row among those of the user's truth, from 0
    places: Array  # int64, likewise: its place among all rows of the truth, 0 for what opens a user; or empty
    n_rec: Array  # int64 (n_users,): lengths of the lists
    at_fault: Array  # bool (1,): whether the rows of a user are at fault


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
    at = truth_indptr[first] + first
    for u in range(first, last):
        start, end = truth_indptr[u], truth_indptr[u + 1]
        listed.ranks[at] = 0
        at += 1
        row, room = items[indptr[u] : indptr[u + 1]], at + (end - start)
        ranks, sources = listed.ranks[at:room], listed.sources[at:room]
        code, _, hits, base = find_hits(row, truth[start:end], lowest, table, base, ranks, sources)
        if code != FINE:
            listed.at_fault[0], hits = True, 0
        order_by_rank(ranks, sources, hits, len(row), marks)
        listed.starts[u], listed.counts[u] = at, hits
        if len(listed.places) > 0:
            for nth in range(hits):
                listed.places[at + nth] = start + sources[nth]
        at += hits


@helper
def events_of(lists, first, last):
    """Return the ends of the range of the events of some users."""
    return lists.starts[first] - 1, lists.starts[last - 1] + lists.counts[last - 1]


def find_last(listed, last_events, bucket, first, last):
    """Find the last event of each user within some ascending cut-offs, and in the whole list.

    `bucket` has the first cut-off that includes a rank.
    """
    for nth in range(len(last_events)):
        row = last_events[nth, first:last]
        for i in range(len(row)):
            row[i] = 0
    begin, end = events_of(listed, first, last)
    u, ranks, past = first - 1, listed.ranks[begin:end], len(bucket) - 1
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        u += not is_row
        last_events[bucket[min(ranks[at], past)], u] += is_row
    own, starts = last_events[0, first:last], listed.starts[first:last]
    for i in range(len(own)):
        own[i] += starts[i] - 1
    for nth in range(1, len(last_events)):
        own, before = last_events[nth, first:last], last_events[nth - 1, first:last]
        for i in range(len(own)):
            own[i] += before[i]


def sort_gains(gains, indptr, first, last):
    """Sort the gains of each user in descending order."""
    for u in range(first, last):
        sort_descending(gains[indptr[u] : indptr[u + 1]])

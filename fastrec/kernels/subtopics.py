"""Sums along lists of what their items add on subtopics, in the order of the list and in a greedy ideal order.

Each function works on a range of users, so that ranges can run in threads, and writes one number per user.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


class Covered(NamedTuple):
    """Items of users with the subtopics that each covers: the lists, or all relevant items.

    The subtopics of a user are numbered from 0, in ascending order.
    """

    indptr: Array  # int64 (n_users + 1,): items of users
    starts: Array  # int64 (n_items,): the first subtopic of each item
    stops: Array  # int64 (n_items,): past the last one
    subtopics: Array  # int64 (n_rows,)
    seen_at: Array  # int64 (n_users + 1,): where the counts of a user's subtopics are


class Novelty(NamedTuple):
    """How much an item that covers a subtopic adds."""

    limit: int  # ranks
    powers: Array  # float64 (longest list or truth + 1,): after so many earlier items
    weights: Array  # float64 (longest + 1,): of ranks, 0 for rank 0


@helper
def sum_of_new(covered, powers, at, seen, counts):
    """Return what an item adds, and write how many of its subtopics earlier items have covered so often.

    Terms are added from the smallest, so that the sum does not depend on the numbers of subtopics.
    """
    most = 0
    for row in range(covered.starts[at], covered.stops[at]):
        times = seen[covered.subtopics[row]]
        counts[times] += 1
        most = max(most, times)
    total = 0.0
    for times in range(most, -1, -1):
        total += counts[times] * powers[times]
        counts[times] = 0
    return total


@helper
def see(covered, at, seen):
    """Count the subtopics of an item as covered once more."""
    for row in range(covered.starts[at], covered.stops[at]):
        seen[covered.subtopics[row]] += 1


def sum_novelty(covered, novelty, seen, counts, out, first, last):
    """Sum over ranks what the items of each list add, times the weight of the rank."""
    for u in range(first, last):
        start, stop = covered.indptr[u], covered.indptr[u + 1]
        own = seen[covered.seen_at[u] : covered.seen_at[u + 1]]
        own[:] = 0
        spare = counts[start + u : stop + u + 1]
        total = 0.0
        for at in range(start, min(start + novelty.limit, stop)):
            total += sum_of_new(covered, novelty.powers, at, own, spare) * novelty.weights[at - start + 1]
            see(covered, at, own)
        out[u] = total


def sum_greedily(covered, novelty, seen, counts, out, first, last):
    """Sum the same over an ideal order: the item that adds most comes next, of equal ones the first.

    The sum of a user counts each item once; `counts` marks those that were taken.
    """
    for u in range(first, last):
        start, stop = covered.indptr[u], covered.indptr[u + 1]
        own = seen[covered.seen_at[u] : covered.seen_at[u + 1]]
        own[:] = 0
        taken = counts[0, start + u : stop + u + 1]
        spare = counts[1, start + u : stop + u + 1]
        taken[:] = 0
        total = 0.0
        for rank in range(1, min(novelty.limit, stop - start) + 1):
            best, most = -1, -1.0
            for at in range(start, stop):
                if taken[at - start] == 0:
                    value = sum_of_new(covered, novelty.powers, at, own, spare)
                    if value > most:
                        best, most = at, value
            taken[best - start] = 1
            total += most * novelty.weights[rank]
            see(covered, best, own)
        out[u] = total


def count_covered(covered, novelty, seen, _, out, first, last):
    """Count the subtopics that the items of each list cover."""
    for u in range(first, last):
        start, stop = covered.indptr[u], covered.indptr[u + 1]
        own = seen[covered.seen_at[u] : covered.seen_at[u + 1]]
        own[:] = 0
        for at in range(start, min(start + novelty.limit, stop)):
            see(covered, at, own)
        found = 0
        for times in own:
            found += times > 0
        out[u] = found


def count_pairs(covered, novelty, _, __, out, first, last):
    """Count the pairs of a listed item and a subtopic that it covers."""
    for u in range(first, last):
        start, stop = covered.indptr[u], covered.indptr[u + 1]
        found = 0
        for at in range(start, min(start + novelty.limit, stop)):
            found += covered.stops[at] - covered.starts[at]
        out[u] = found


def sum_precisions(covered, novelty, seen, sizes, out, first, last):
    """Sum over subtopics the average precision of the list for each; `sizes` are the items that cover it."""
    for u in range(first, last):
        start, stop = covered.indptr[u], covered.indptr[u + 1]
        own = seen[covered.seen_at[u] : covered.seen_at[u + 1]]
        own[:] = 0
        total = 0.0
        for at in range(start, min(start + novelty.limit, stop)):
            see(covered, at, own)
            for row in range(covered.starts[at], covered.stops[at]):
                subtopic = covered.subtopics[row]
                total += own[subtopic] / (at - start + 1) / sizes[covered.seen_at[u] + subtopic]
        out[u] = total

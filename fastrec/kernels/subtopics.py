"""Sums along lists of what their items add on subtopics, in the order of the list and in a greedy ideal order.

Kinds of sums are named in KINDS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .list_order import longest_row

Array = np.ndarray[Any, Any]
KINDS = ("novelty", "ideal", "covered", "pairs", "precisions")
NOVELTY, IDEAL, COVERED, PAIRS, PRECISIONS = range(5)


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


@njit(forceinline=True)
def sum_of_new(own, powers, seen, counts):
    """Return what an item with its `own` subtopics adds, given how often earlier items have covered each.

    Terms are added from the smallest, so that the sum does not depend on the numbers of subtopics.
    """
    most = 0
    for row in range(len(own)):
        times = seen[own[row]]
        counts[times] += 1
        most = max(most, times)
    total = 0.0
    for times in range(most, -1, -1):
        total += counts[times] * powers[times]
        counts[times] = 0
    return total


@njit(forceinline=True)
def see(own, seen):
    """Count the subtopics of an item as covered once more."""
    for row in range(len(own)):
        seen[own[row]] += 1


@njit
def sum_greedily(covered, novelty, u, seen, taken, counts):
    """Return the sum of what items add in an ideal order: the item that adds most comes next, of equal ones the first.

    The sum of a user counts each item once; `taken` marks those that were.
    """
    start, stop = covered.indptr[u], covered.indptr[u + 1]
    taken[: stop - start] = 0
    total = 0.0
    for rank in range(1, min(novelty.limit, stop - start) + 1):
        best, most = -1, -1.0
        for at in range(start, stop):
            if taken[at - start] == 0:
                own = covered.subtopics[covered.starts[at] : covered.stops[at]]
                value = sum_of_new(own, novelty.powers, seen, counts)
                if value > most:
                    best, most = at, value
        taken[best - start] = 1
        total += most * novelty.weights[rank]
        see(covered.subtopics[covered.starts[best] : covered.stops[best]], seen)
    return total


@njit
def sum_in_order(covered, novelty, kind, sizes, u, seen, counts):
    """Return a sum along the list of a user: what items add times the weight of the rank, pairs, or precisions."""
    start, total = covered.indptr[u], 0.0
    for at in range(start, min(start + novelty.limit, covered.indptr[u + 1])):
        own = covered.subtopics[covered.starts[at] : covered.stops[at]]
        if kind == NOVELTY:
            total += sum_of_new(own, novelty.powers, seen, counts) * novelty.weights[at - start + 1]
        elif kind == PAIRS:
            total += len(own)
        if kind != PAIRS:
            see(own, seen)
        if kind == PRECISIONS:
            for row in range(len(own)):
                total += seen[own[row]] / (at - start + 1) / sizes[covered.seen_at[u] + own[row]]
    return total


@njit(allocates=True)
def sum_of_users(covered, novelty, kind, sizes, out, first, last):
    """Write the sums of some users."""
    longest = longest_row(covered.indptr, first, last)
    room, taken = np.empty(longest_row(covered.seen_at, first, last), np.int64), np.empty(longest, np.int64)
    counts = np.zeros(longest + 1, np.int64)
    for u in range(first, last):
        seen = room[: covered.seen_at[u + 1] - covered.seen_at[u]]
        seen[:] = 0
        if kind == IDEAL:
            out[u] = sum_greedily(covered, novelty, u, seen, taken, counts)
            continue
        out[u] = sum_in_order(covered, novelty, kind, sizes, u, seen, counts)
        if kind == COVERED:
            found = 0
            for times in seen:
                found += times > 0
            out[u] = found


@njit(parallel=True, cache=True)
def sum_subtopics(
    first, last, edges, kind, indptr, starts, stops, subtopics, seen_at, limit, powers, weights, sizes, out
):
    """Write a number of each user to out (n_users,), of users edges[task]..edges[task + 1]-1 for tasks first..last-1.

    By kind it is the sum of what the items of the list add, times the weight of the rank (NOVELTY); the same over an
    ideal order (IDEAL); how many subtopics the items cover (COVERED); pairs of an item and a subtopic (PAIRS); the sum
    over subtopics of the average precision for each, which `sizes` items cover (PRECISIONS). See `Covered`, `Novelty`.
    """
    for task in prange(first, last):
        covered, novelty = Covered(indptr, starts, stops, subtopics, seen_at), Novelty(limit, powers, weights)
        sum_of_users(covered, novelty, kind, sizes, out, edges[task], edges[np.int64(task) + 1])

"""Exposure: how many lists hold each item, up to each cut-off, for some of the users."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange

Array = np.ndarray[Any, Any]
USERS_AT_ONCE = 64


@njit
def count_lists_of_users(items, indptr, users, cuts, counts):
    """Count the lists of some users."""
    for u in users:
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                counts[items[at], c] += 1
                at += 1


@njit(parallel=True, cache=True)
def count_lists(first, last, edges, items, indptr, users, cuts, counts):
    """Count the lists that hold each slot between the cut-offs: into counts (n_tasks, n_slots, n_cuts).

    Those of users[edges[task]:edges[task + 1]] go to counts[task], for tasks first..last-1.
    """
    for task in prange(first, last):
        own = users[edges[task] : edges[np.int64(task) + 1]]
        count_lists_of_users(items, indptr, own, cuts, counts[np.int64(task)])


@njit
def add_by_rank(items, indptr, users, cuts, weights, sums):
    """Add the weights of ranks in the lists of some users."""
    for u in users:
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                sums[items[at], c, 0] += weights[at - indptr[u], 0]
                sums[items[at], c, 1] += weights[at - indptr[u], 1]
                at += 1


@njit
def add_by_length(items, indptr, users, cuts, weights, sums):
    """Add the weights of the lengths up to each cut-off of the lists of some users."""
    for u in users:
        for c in range(len(cuts)):
            length = min(cuts[c], indptr[u + 1] - indptr[u])
            for at in range(indptr[u], indptr[u] + length):
                sums[items[at], c, 0] += weights[length - 1, 0]
                sums[items[at], c, 1] += weights[length - 1, 1]


@njit(parallel=True, cache=True)
def add_weights(first, last, edges, items, indptr, users, cuts, weights, by_length, sums):
    """Add to each slot the weight of its rank, or of the length of the list up to each cut-off.

    Weights are integers (n_ranks, 2). Those of users[edges[task]:edges[task + 1]] go to sums[task], int64 (n_tasks,
    n_slots, n_cuts, 2), for tasks first..last-1.
    """
    for task in prange(first, last):
        own, into = users[edges[task] : edges[np.int64(task) + 1]], sums[np.int64(task)]
        if by_length:
            add_by_length(items, indptr, own, cuts, weights, into)
        else:
            add_by_rank(items, indptr, own, cuts, weights, into)


class Walks(NamedTuple):
    """Walks along lists, up to a cut-off each."""

    cuts: Array  # int64 (n_walks,)
    levels: Array  # integers (n_walks, n_slots): the level of each slot
    values: Array  # float64 (n_walks, n_levels, 4): what an item of the level adds to four sums
    offsets: Array  # float64 (n_walks, 4): where the sums start
    rows: Array  # int64 (n_walks, 4): where they go, -1 for nowhere


@njit
def add_effects_of_users(items, indptr, users, walks, effects, first, last):
    """Write the sums of users[first:last].

    All walks take some users together, whose lists then stay in the cache.
    """
    for start in range(first, last, USERS_AT_ONCE):
        for w in range(len(walks.cuts)):
            levels, values = walks.levels[w], walks.values[w]
            for u in users[start : min(start + USERS_AT_ONCE, last)]:
                end = min(indptr[u] + walks.cuts[w], indptr[u + 1])
                if end == indptr[u]:
                    continue
                one, two = walks.offsets[w, 0], walks.offsets[w, 1]
                three, four = walks.offsets[w, 2], walks.offsets[w, 3]
                for item in items[indptr[u] : end]:
                    level = levels[np.uint64(item)]
                    one += values[level, 0]
                    two += values[level, 1]
                    three += values[level, 2]
                    four += values[level, 3]
                for i, total in enumerate((one, two, three, four)):
                    if walks.rows[w, i] >= 0:
                        effects[walks.rows[w, i], u] = total


@njit(parallel=True, cache=True)
def add_effects(first, last, edges, items, indptr, users, cuts, levels, values, offsets, rows, effects):
    """Sum values along the lists of users, as `Walks` says: into effects (n_rows, n_users).

    Tasks first..last-1 take users[edges[task]:edges[task + 1]].
    """
    for task in prange(first, last):
        walks = Walks(cuts, levels, values, offsets, rows)
        add_effects_of_users(items, indptr, users, walks, effects, edges[task], edges[np.int64(task) + 1])

"""Exposure: how many lists hold each item, up to each cut-off, for some of the users."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
USERS_AT_ONCE = 64


def count_lists(items, indptr, users, cuts, counts, first, last):
    """Count the lists of users[first:last] that hold each slot between the cut-offs: into counts (n_slots, n_cuts)."""
    for u in users[first:last]:
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                counts[items[at], c] += 1
                at += 1


def add_weights(items, indptr, users, cuts, weights, sums, first, last):
    """Add the weight of its rank, as integers weights (n_ranks, 2), to each slot: into sums (n_slots, n_cuts, 2)."""
    for u in users[first:last]:
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                sums[items[at], c, 0] += weights[at - indptr[u], 0]
                sums[items[at], c, 1] += weights[at - indptr[u], 1]
                at += 1


def add_by_length(items, indptr, users, cuts, weights, sums, first, last):
    """Add the weight of the length of the list up to each cut-off to the slots that it holds; as in `add_weights`."""
    for u in users[first:last]:
        for c in range(len(cuts)):
            length = min(cuts[c], indptr[u + 1] - indptr[u])
            for at in range(indptr[u], indptr[u] + length):
                sums[items[at], c, 0] += weights[length - 1, 0]
                sums[items[at], c, 1] += weights[length - 1, 1]


class Walks(NamedTuple):
    """Walks along lists, up to a cut-off each."""

    cuts: Array  # int64 (n_walks,)
    levels: Array  # integers (n_walks, n_slots): the level of each slot
    values: Array  # float64 (n_walks, n_levels, 4): what an item of the level adds to four sums
    offsets: Array  # float64 (n_walks, 4): where the sums start
    rows: Array  # int64 (n_walks, 4): where they go, -1 for nowhere


def add_effects(items, indptr, users, walks, effects, first, last):
    """Sum values along the lists of users[first:last]: into effects (n_rows, n_users).

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

"""Exposure: how many lists hold each item, up to each cut-off, for some of the users."""

from __future__ import annotations

from typing import Any

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


def add_effects(items, indptr, users, cuts, levels, values, rows, offsets, effects, first, last):
    """Sum the values of the levels of slots along lists, in walks up to a cut-off each.

    Walk w gives slot s the four values (w, levels[w, s], 4); their sums + offsets (w, 4) go to the rows (w, 4) of
    effects (n_rows, n_users), -1 for none. All walks take some users together, whose lists then stay in the cache.
    """
    for start in range(first, last, USERS_AT_ONCE):
        for w in range(len(cuts)):
            for u in users[start : min(start + USERS_AT_ONCE, last)]:
                end = min(indptr[u] + cuts[w], indptr[u + 1])
                if end == indptr[u]:
                    continue
                one, two, three, four = offsets[w, 0], offsets[w, 1], offsets[w, 2], offsets[w, 3]
                for at in range(indptr[u], end):
                    level = levels[w, items[at]]
                    one += values[w, level, 0]
                    two += values[w, level, 1]
                    three += values[w, level, 2]
                    four += values[w, level, 3]
                for i, total in enumerate((one, two, three, four)):
                    if rows[w, i] >= 0:
                        effects[rows[w, i], u] = total

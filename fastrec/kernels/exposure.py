"""Exposure: how many lists hold each item, up to each cut-off, for some of the users."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


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

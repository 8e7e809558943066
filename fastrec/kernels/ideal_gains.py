"""Gains of lists against those of the best order, rank by rank: measures of trec_eval for graded judgements.

Each function works on a range of users, so that ranges can run in threads, and writes one number per user.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


class GradedLists(NamedTuple):
    """The gains of lists and of the best orders of users."""

    gains: Array  # float64 (n_rows,): of the lists, 0 for items that are not relevant
    indptr: Array  # int64 (n_users + 1,)
    ideals: Array  # float64: of relevant items, falling within a user
    ideal_indptr: Array  # int64 (n_users + 1,)


@helper
def discounted(gain, rank):
    """Return the gain of a rank, divided by its logarithm."""
    return gain / math.log2(rank + 1.0)


def mean_at_hits(lists, cutoff, out, first, last):
    """Write the mean of nDCG at the ranks of relevant items; those not listed have the DCG of the list's end."""
    for u in range(first, last):
        start, best = lists.indptr[u], lists.ideal_indptr[u]
        n = min(cutoff, lists.indptr[u + 1] - start)
        n_rel = lists.ideal_indptr[u + 1] - best
        dcg, ideal, total = 0.0, 0.0, 0.0
        hits = 0
        for i in range(max(n, n_rel)):
            if i < n_rel:
                ideal += discounted(lists.ideals[best + i], i + 1)
            if i < n and lists.gains[start + i] > 0.0:
                dcg += discounted(lists.gains[start + i], i + 1)
                total += dcg / ideal
                hits += 1
        out[u] = (total + (n_rel - hits) * (dcg / ideal)) / n_rel if n_rel > 0 else 0.0


def mean_at_levels(lists, cutoff, out, first, last):
    """Write the mean of nDCG at the ranks where the ideal gain falls, and at the end of a list longer than that."""
    for u in range(first, last):
        start, best = lists.indptr[u], lists.ideal_indptr[u]
        n = min(cutoff, lists.indptr[u + 1] - start)
        n_rel = lists.ideal_indptr[u + 1] - best
        dcg, ideal, total = 0.0, 0.0, 0.0
        levels = 0
        for i in range(max(n, n_rel)):
            if i < n:
                dcg += discounted(lists.gains[start + i], i + 1)
            if i < n_rel:
                ideal += discounted(lists.ideals[best + i], i + 1)
                if i + 1 == n_rel or lists.ideals[best + i + 1] < lists.ideals[best + i]:
                    total += dcg / ideal
                    levels += 1
        if n > n_rel + 1 and n_rel > 0:
            total += dcg / ideal
            levels += 1
        out[u] = total / levels if levels > 0 else 0.0


def sum_by_lost_gain(lists, cutoff, out, first, last):
    """Write the sum over hits of gain / log2(2 + the gain that the list lacks down to there), over all gain.

    A rank of the best order counts as at least 1, also past its end.
    """
    for u in range(first, last):
        start, best = lists.indptr[u], lists.ideal_indptr[u]
        n = min(cutoff, lists.indptr[u + 1] - start)
        n_rel = lists.ideal_indptr[u + 1] - best
        reachable, found, total, every = 0.0, 0.0, 0.0, 0.0
        for i in range(n):
            gain = lists.gains[start + i]
            found += gain
            reachable += max(lists.ideals[best + i], 1.0) if i < n_rel else 1.0
            total += gain / math.log2(2.0 + max(reachable - found, 0.0))  # not below 0, but for copies of an item
        for i in range(n_rel):
            every += lists.ideals[best + i]
        out[u] = total / every if n_rel > 0 else 0.0

"""Statistics of the judged items of lists: preferences, inferred and interpolated precision, what is not judged.

Each function works on a range of users, so that ranges can run in threads, and writes one number per user.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
RELEVANT: Final = 1
NOT_RELEVANT: Final = 0  # judged; below 0: not judged
UNKNOWN: Final = -1  # not in the truth
POOLED: Final = -2  # in the truth with a negative gain: in the pool that was to be judged
EPSILON: Final = 0.00001


class JudgedLists(NamedTuple):
    """The lists of users, with a kind for each row, and the judgements of users."""

    kinds: Array  # int8 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    n_rel: Array  # int64 (n_users,): relevant items of the truth
    n_other: Array  # int64 (n_users,): items of the truth that were judged not relevant


def count_judged(judged, cutoff, _, out, first, last):
    """Count the judged items within a cut-off."""
    for u in range(first, last):
        start = judged.indptr[u]
        count = 0
        for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
            count += judged.kinds[at] >= NOT_RELEVANT
        out[u] = count


def sum_preferences(judged, cutoff, parameter, out, first, last):
    """Sum over hits the share of judged others that they are above: of n_rel, or of n_other if fewer (parameter 0)."""
    for u in range(first, last):
        start, n_rel = judged.indptr[u], judged.n_rel[u]
        most = n_rel if parameter > 0.0 else min(n_rel, judged.n_other[u])
        others = 0
        total = 0.0
        for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
            kind = judged.kinds[at]
            if kind == NOT_RELEVANT:
                others += 1
            elif kind == RELEVANT:
                total += 1.0 - min(others, n_rel) / most if others > 0 else 1.0
        out[u] = total


def sum_inferred(judged, cutoff, _, out, first, last):
    """Sum over hits the precision that the judged items above them let expect."""
    for u in range(first, last):
        start = judged.indptr[u]
        hits, others, pooled = 0, 0, 0
        total = 0.0
        for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
            kind = judged.kinds[at]
            others += kind == NOT_RELEVANT
            pooled += kind == POOLED
            if kind == RELEVANT:
                rank = at - start + 1.0
                share = (hits + EPSILON) / (hits + others + 2 * EPSILON)
                total += 1.0 / rank + (hits + others + pooled) / rank * share
                hits += 1
        out[u] = total


@helper
def best_precision(judged, cutoff, u, least):
    """Return the largest precision at ranks with at least so many hits."""
    start = judged.indptr[u]
    hits = 0
    best = 0.0
    for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
        if judged.kinds[at] == RELEVANT:
            hits += 1
            if hits >= least:
                best = max(best, hits / (at - start + 1))
    return best


def find_precision(judged, cutoff, parameter, out, first, last):
    """Find the largest precision at ranks with so many hits: the parameter x n_rel + 0.9, rounded down."""
    for u in range(first, last):
        out[u] = best_precision(judged, cutoff, u, math.floor(parameter * judged.n_rel[u] + 0.9))


def find_precision_nearest(judged, cutoff, parameter, out, first, last):
    """Find the largest precision at ranks with so many hits: the parameter x n_rel, rounded, halves up."""
    for u in range(first, last):
        least = parameter * judged.n_rel[u]
        out[u] = best_precision(judged, cutoff, u, math.floor(least) + (least - math.floor(least) >= 0.5))


def find_median(judged, cutoff, _, out, first, last):
    """Find the median rank of the hits, 0 without one."""
    for u in range(first, last):
        start = judged.indptr[u]
        end = min(start + cutoff, judged.indptr[u + 1])
        hits = 0
        for at in range(start, end):
            hits += judged.kinds[at] == RELEVANT
        nth, twice = 0, 0
        for at in range(start, end):
            if judged.kinds[at] == RELEVANT:
                if nth == (hits - 1) // 2:
                    twice += at - start + 1
                if nth == hits // 2:
                    twice += at - start + 1
                nth += 1
        out[u] = twice / 2


def sum_residual(judged, cutoff, parameter, out, first, last):
    """Sum the weights (1 - p) p^(r - 1) of ranks that are not judged, and past the end; p is the parameter."""
    for u in range(first, last):
        start = judged.indptr[u]
        going_on = 1.0
        total = 0.0
        for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
            if judged.kinds[at] < NOT_RELEVANT:
                total += going_on
            going_on *= parameter
        out[u] = min((1.0 - parameter) * total + going_on, 1.0)  # it may be above by rounding


def sum_by_misses(judged, cutoff, _, out, first, last):
    """Sum 1 / log2(2 + m) over hits, with m items above them that are not relevant."""
    for u in range(first, last):
        start = judged.indptr[u]
        misses = 0
        total = 0.0
        for at in range(start, min(start + cutoff, judged.indptr[u + 1])):
            if judged.kinds[at] == RELEVANT:
                total += 1.0 / math.log2(2.0 + misses)
            else:
                misses += 1
        out[u] = total

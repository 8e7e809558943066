"""Statistics of the judged items of lists: preferences, inferred and interpolated precision, what is not judged.

Each function works on a range of users, so that ranges can run in threads. It walks along the listed rows of the truth
once and writes a number for each user and each cut-off: into out (n_cutoffs, n_users).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from fastrec.kernels.listed import read_values
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
RELEVANT: Final = 1
NOT_RELEVANT: Final = 0  # judged
POOLED: Final = -1  # in the truth with a negative gain: in the pool that was to be judged
EPSILON: Final = 0.00001
LEVELS: Final = 11
NEAREST: Final = 1.0  # how a number of hits is rounded: 0 is up


class JudgedLists(NamedTuple):
    """The listed rows of the truth, with a kind for each, and the judgements of users."""

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32: from each start on, ascending
    kinds: Array  # int8, likewise
    n_rec: Array  # int64 (n_users,): lengths of the lists
    n_rel: Array  # int64 (n_users,): relevant items of the truth
    n_other: Array  # int64 (n_users,): items of the truth that were judged not relevant
    weights: Array  # float64 (longest list + 1,): of ranks, for functions that weigh ranks


def count_judged(judged, cuts, _, out, first, last):
    """Count the judged items within a cut-off."""
    for u in range(first, last):
        start, at = judged.starts[u], judged.starts[u] + u
        count = 0
        cuts.values[at] = count
        for row in range(start, start + judged.counts[u]):
            at += 1
            count += judged.kinds[row] >= NOT_RELEVANT
            cuts.values[at] = count
    read_values(cuts, out, first, last)


def sum_preferences(judged, cuts, parameters, out, first, last):
    """Sum over hits the share of judged others that they are above: of n_rel, or of n_other if fewer (parameter 0)."""
    for u in range(first, last):
        n_rel = judged.n_rel[u]
        most = n_rel if parameters[0] > 0.0 else min(n_rel, judged.n_other[u])
        start, at = judged.starts[u], judged.starts[u] + u
        others, total = 0, 0.0
        cuts.values[at] = total
        for row in range(start, start + judged.counts[u]):
            at += 1
            if judged.kinds[row] == NOT_RELEVANT:
                others += 1
            elif judged.kinds[row] == RELEVANT:
                total += 1.0 - min(others, n_rel) / most if others > 0 else 1.0
            cuts.values[at] = total
    read_values(cuts, out, first, last)


def sum_inferred(judged, cuts, _, out, first, last):
    """Sum over hits the precision that the judged items above them let expect."""
    for u in range(first, last):
        start, at = judged.starts[u], judged.starts[u] + u
        hits, others, pooled, total = 0, 0, 0, 0.0
        cuts.values[at] = total
        for row in range(start, start + judged.counts[u]):
            at += 1
            rank, kind = judged.ranks[row], judged.kinds[row]
            others += kind == NOT_RELEVANT
            pooled += kind == POOLED
            if kind == RELEVANT:
                share = (hits + EPSILON) / (hits + others + 2 * EPSILON)
                total += 1.0 / rank + (hits + others + pooled) / rank * share
                hits += 1
            cuts.values[at] = total
    read_values(cuts, out, first, last)


@helper
def hits_of_level(level, n_rel, rounding):
    """Return how many hits have a recall of a level: rounded up as in trec_eval 9, or to the nearest, halves up."""
    least = level * n_rel
    if rounding == NEAREST:
        return math.floor(least) + (least - math.floor(least) >= 0.5)
    return math.floor(least + 0.9)


def find_precision(judged, cuts, parameters, out, first, last):
    """Find the largest precision at the ranks with a level of recall; the parameters are the rounding and the level."""
    for u in range(first, last):
        least = hits_of_level(parameters[1], judged.n_rel[u], parameters[0])
        start, at = judged.starts[u], judged.starts[u] + u
        hits, best = 0, 0.0
        cuts.values[at] = best
        for row in range(start, start + judged.counts[u]):
            at += 1
            if judged.kinds[row] == RELEVANT:
                hits += 1
                if hits >= least:
                    best = max(best, hits / judged.ranks[row])
            cuts.values[at] = best
    read_values(cuts, out, first, last)


def mean_precision_of_levels(judged, cuts, parameters, out, first, last):
    """Write the mean of `find_precision` at recall 0, 0.1, ..., 1; the parameter is the rounding."""
    least, best = np.empty(LEVELS, np.int64), np.empty(LEVELS)
    for u in range(first, last):
        start = judged.starts[u]
        if judged.counts[u] == 0:
            out[:, u] = 0.0
            continue
        for level in range(LEVELS):
            least[level] = hits_of_level(level / 10, judged.n_rel[u], parameters[0])
        at, hits, before = start, 0, 0
        for nth in range(len(out)):
            while at < start + cuts.within[nth, u]:
                hits += judged.kinds[at] == RELEVANT
                at += 1
            if nth > 0 and hits == before:
                out[nth, u] = out[nth - 1, u]
                continue
            own, level, largest = hits, LEVELS - 1, 0.0
            for back in range(at - 1, start - 1, -1):
                if judged.kinds[back] == RELEVANT:
                    while level >= 0 and least[level] > own:
                        best[level] = largest
                        level -= 1
                    largest = max(largest, own / judged.ranks[back])
                    own -= 1
            total = 0.0
            for _ in range(level + 1):
                total += largest
            for upper in range(level + 1, LEVELS):
                total += best[upper]
            out[nth, u] = total / LEVELS
            before = hits


def find_median(judged, cuts, _, out, first, last):
    """Find the median rank of the hits, 0 without one."""
    most = 0
    for u in range(first, last):
        most = max(most, judged.counts[u])
    ranks = np.empty(most, np.int64)
    for u in range(first, last):
        start, at = judged.starts[u], judged.starts[u] + u
        hits, median = 0, 0.0
        cuts.values[at] = median
        for row in range(start, start + judged.counts[u]):
            at += 1
            if judged.kinds[row] == RELEVANT:
                ranks[hits] = judged.ranks[row]
                hits += 1
                median = (ranks[(hits - 1) // 2] + ranks[hits // 2]) / 2
            cuts.values[at] = median
    read_values(cuts, out, first, last)


def sum_residual(judged, cuts, _, out, first, last):
    """Sum the weights (1 - p) p^(r - 1) of ranks that are not judged, and of those past the end; weights[r] is p^r."""
    for u in range(first, last):
        start, at = judged.starts[u], judged.starts[u] + u
        known, total = 0, 0.0  # down to which rank all weights are added
        cuts.values[at] = judged.weights[known]
        for row in range(start, start + judged.counts[u]):
            at += 1
            if judged.kinds[row] >= NOT_RELEVANT:
                total += judged.weights[known] - judged.weights[judged.ranks[row] - 1]
                known = np.int64(judged.ranks[row])
            cuts.values[at] = total + judged.weights[known]
    read_values(cuts, out, first, last)


def sum_by_misses(judged, cuts, _, out, first, last):
    """Sum 1 / log2(2 + m) over hits, with m items above that are not relevant; weights[r] is 1 / log2(r + 1)."""
    for u in range(first, last):
        start, at = judged.starts[u], judged.starts[u] + u
        hits, total = 0, 0.0
        cuts.values[at] = total
        for row in range(start, start + judged.counts[u]):
            at += 1
            if judged.kinds[row] == RELEVANT:
                total += judged.weights[judged.ranks[row] - hits]
                hits += 1
            cuts.values[at] = total
    read_values(cuts, out, first, last)

"""Statistics of the judged items of lists: preferences, inferred and interpolated precision, what is not judged.

Each kernel walks once along the events of all users, without a branch where a user begins, see
`fastrec.kernels.listed.Listed`. It writes the statistic after each event: that of a list which is cut below the event.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from .jit import njit

Array = np.ndarray[Any, Any]
RELEVANT: Final = 1
NOT_RELEVANT: Final = 0  # judged
POOLED: Final = -1  # in the truth with a negative gain: in the pool that was to be judged
EPSILON: Final = 0.00001
NEAREST: Final = 1.0  # how a number of hits is rounded: 0 is up


class JudgedLists(NamedTuple):
    """The listed rows of the truth as events, with a kind for each, and the judgements of users."""

    counts: Array  # int64 (n_users,): listed rows
    ranks: Array  # int32 (n_events,): 0 opens a user, whose ranks ascend
    kinds: Array  # int8 (n_events,): anything for what opens a user
    n_rec: Array  # int64 (n_users,): lengths of the lists
    n_rel: Array  # int64 (n_users,): relevant items of the truth
    n_other: Array  # int64 (n_users,): items of the truth that were judged not relevant
    weights: Array  # float64 (longest list + 1,): of ranks, for functions that weigh ranks


@njit(cache=True)
def count_judged(judged, _, values):
    """Count the judged items within a cut-off."""
    count = 0
    ranks, kinds = judged.ranks, judged.kinds
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        count = (count if is_row else 0) + (is_row & (kinds[at] >= NOT_RELEVANT))
        values[at] = count


@njit(cache=True)
def sum_preferences(judged, parameters, values):
    """Sum over hits the share of judged others that they are above: of n_rel, or of n_other if fewer (parameter 0)."""
    u, others, total, by_all = -1, 0, 0.0, parameters[0] > 0.0
    ranks, kinds, n_rels, n_others = judged.ranks, judged.kinds, judged.n_rel, judged.n_other
    for at in range(len(ranks)):
        is_row, kind = ranks[at] > 0, kinds[at]
        u += not is_row
        n_rel = n_rels[u]
        most = n_rel if by_all else min(n_rel, n_others[u])
        others = (others if is_row else 0) + (is_row & (kind == NOT_RELEVANT))
        share = 1.0 - min(others, n_rel) / most if others > 0 else 1.0
        total = (total if is_row else 0.0) + (share if is_row & (kind == RELEVANT) else 0.0)
        values[at] = total


@njit(cache=True)
def sum_inferred(judged, _, values):
    """Sum over hits the precision that the judged items above them let expect."""
    hits, others, pooled, total = 0, 0, 0, 0.0
    ranks, kinds = judged.ranks, judged.kinds
    for at in range(len(ranks)):
        is_row, kind, rank = ranks[at] > 0, kinds[at], max(np.int64(ranks[at]), np.int64(1))
        is_hit = is_row & (kind == RELEVANT)
        hits = hits if is_row else 0
        others = (others if is_row else 0) + (is_row & (kind == NOT_RELEVANT))
        pooled = (pooled if is_row else 0) + (is_row & (kind == POOLED))
        share = (hits + EPSILON) / (hits + others + 2 * EPSILON)
        term = 1.0 / rank + (hits + others + pooled) / rank * share
        total = (total if is_row else 0.0) + (term if is_hit else 0.0)
        hits += is_hit
        values[at] = total


@njit
def hits_of_level(level, n_rel, rounding):
    """Return how many hits have a recall of a level: rounded up as in trec_eval 9, or to the nearest, halves up."""
    least = level * n_rel
    if rounding == NEAREST:
        return math.floor(least) + (least - math.floor(least) >= 0.5)
    return math.floor(least + 0.9)


@njit(cache=True, allocates=True)
def mean_precision_of_levels(judged, parameters, values):
    """Write the mean, over levels of recall, of the largest precision at the ranks with this recall or more.

    The parameters are the rounding and the levels.
    """
    rounding, levels, u, hits = parameters[0], parameters[1:], -1, 0
    best = np.zeros(len(levels))
    ranks, kinds, n_rels = judged.ranks, judged.kinds, judged.n_rel
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        is_hit = is_row & (kinds[at] == RELEVANT)
        u += not is_row
        hits = (hits if is_row else 0) + is_hit
        precision = (hits if is_hit else 0) / max(int(ranks[at]), 1)
        total = 0.0
        for nth in range(len(levels)):
            is_deep = hits >= hits_of_level(levels[nth], n_rels[u], rounding)
            best[nth] = max(best[nth] if is_row else 0.0, precision if is_deep else 0.0)
            total += best[nth]
        values[at] = total / len(levels)


@njit(cache=True, allocates=True)
def find_median(judged, _, values):
    """Find the median rank of the hits, 0 without one."""
    ranks_of_hits, hits = np.empty(judged.counts.max() + 1 if len(judged.counts) else 0, np.int64), 0
    ranks, kinds = judged.ranks, judged.kinds
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        hits = hits if is_row else 0
        ranks_of_hits[hits] = ranks[at]  # the next hit takes the place of a row that is none
        hits += is_row & (kinds[at] == RELEVANT)
        middle = ranks_of_hits[max(hits - 1, 0) >> 1] + ranks_of_hits[hits >> 1]
        values[at] = middle / 2 if hits > 0 else 0.0


@njit(cache=True)
def sum_residual(judged, _, values):
    """Sum the weights (1 - p) p^(r - 1) of ranks that are not judged, and of those past the end; weights[r] is p^r."""
    known, total = np.int64(0), 0.0  # down to which rank all weights are added
    ranks, kinds, weights = judged.ranks, judged.kinds, judged.weights
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        is_judged = is_row & (kinds[at] >= NOT_RELEVANT)
        known = known if is_row else np.int64(0)
        between = weights[known] - weights[max(rank, np.int64(1)) - 1]
        total = (total if is_row else 0.0) + (between if is_judged else 0.0)
        known = rank if is_judged else known
        values[at] = total + weights[known]


@njit(cache=True)
def sum_by_misses(judged, _, values):
    """Sum 1 / log2(2 + m) over hits, with m items above that are not relevant; weights[r] is 1 / log2(r + 1)."""
    hits, total = 0, 0.0
    ranks, kinds, weights = judged.ranks, judged.kinds, judged.weights
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        is_hit = is_row & (kinds[at] == RELEVANT)
        hits = hits if is_row else 0
        weight = weights[ranks[at] - hits]
        total = (total if is_row else 0.0) + (weight if is_hit else 0.0)
        hits += is_hit
        values[at] = total

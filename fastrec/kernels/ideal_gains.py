"""Gains of lists against those of the best order, rank by rank: measures of trec_eval for graded judgements.

Each function works on a range of users, so that ranges can run in threads, and writes a number for each user and each
of several ascending cut-offs, given as `Cuts` or as an array: into out (n_cutoffs, n_users).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.listed import events_of, read_values
from fastrec.kernels.runs import two_sum
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


class GradedLists(NamedTuple):
    """The listed rows of the truth as events, with their gains, and the gains of the best order of each user."""

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_events,): 0 opens a user, whose ranks ascend
    gains: Array  # float64 (n_events,): 0 for items that are not relevant, anything for what opens a user
    n_rec: Array  # int64 (n_users,): lengths of the lists
    ideals: Array  # float64: of relevant items, falling within a user
    ideal_starts: Array  # int64 (n_users + 1,)
    discounts: Array  # float64: 1 / log2(rank + 1), from rank 0 on
    ideal_dcg: Array  # float64: from ideal_starts[u] + u on, the DCG of the best order of user u at each rank from 0


def add_ideals(lists, first, last):
    """Write the DCG of the best order of each user at each rank."""
    for u in range(first, last):
        start, total = lists.ideal_starts[u], 0.0
        lists.ideal_dcg[start + u] = total
        for rank in range(1, lists.ideal_starts[u + 1] - start + 1):
            total += lists.ideals[start + rank - 1] * lists.discounts[rank]
            lists.ideal_dcg[start + u + rank] = total


def mean_at_hits(lists, cuts, out, first, last):
    """Write the mean of nDCG at the ranks of relevant items; those not listed have the DCG of the list's end."""
    u, hits, dcg, total = first - 1, 0, 0.0, 0.0
    begin, end = events_of(lists, first, last)
    ranks, gains, values = lists.ranks[begin:end], lists.gains[begin:end], cuts.values[begin:end]
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        is_hit = is_row & (gains[at] > 0.0)
        u += not is_row
        n_rel, offset = lists.ideal_starts[u + 1] - lists.ideal_starts[u], lists.ideal_starts[u] + u
        hits = (hits if is_row else 0) + is_hit
        discounted = gains[at] * lists.discounts[rank]
        dcg = (dcg if is_row else 0.0) + (discounted if is_hit else 0.0)
        ndcg = dcg / lists.ideal_dcg[offset + min(rank, n_rel)]
        total = (total if is_row else 0.0) + (ndcg if is_hit else 0.0)
        mean = (total + (n_rel - hits) * (dcg / lists.ideal_dcg[offset + n_rel])) / n_rel
        values[at] = mean if hits > 0 else 0.0
    read_values(cuts, out, first, last)


@helper
def next_fall(ideals, i, n_rel):
    """Return how many gains of the best order there are down to where those at i end."""
    while i + 1 < n_rel and ideals[i + 1] == ideals[i]:
        i += 1
    return i + 1


def mean_at_levels(lists, cuts, out, first, last):
    """Write the mean of nDCG at the ranks where the ideal gain falls, and at the end of a list longer than that."""
    for u in range(first, last):
        start, n_rel = lists.ideal_starts[u], lists.ideal_starts[u + 1] - lists.ideal_starts[u]
        ideals, ideal_dcg = lists.ideals[start : start + n_rel], lists.ideal_dcg[start + u :]
        for nth in range(len(out)):
            n, at, end = min(cuts.cutoffs[nth], lists.n_rec[u]), lists.starts[u], cuts.last[nth, u] + 1
            if at == end:
                out[nth, u] = 0.0
                continue
            dcg, total = 0.0, 0.0
            i, levels = 0, 0
            while i < n_rel:
                i = next_fall(ideals, i, n_rel)
                while at < end and lists.ranks[at] <= i:
                    dcg += lists.gains[at] * lists.discounts[lists.ranks[at]]
                    at += 1
                total += dcg / ideal_dcg[i]
                levels += 1
            if n > n_rel + 1 and levels > 0:
                while at < end:
                    dcg += lists.gains[at] * lists.discounts[lists.ranks[at]]
                    at += 1
                total += dcg / ideal_dcg[n_rel]
                levels += 1
            out[nth, u] = total / levels if levels > 0 else 0.0


def sum_by_lost_gain(lists, cuts, out, first, last):
    """Write the sum over hits of gain / log2(2 + the gain that the list lacks down to there), over all gain.

    A rank of the best order counts as at least 1, also past its end.
    """
    for u in range(first, last):
        best, n_rel = lists.ideal_starts[u], lists.ideal_starts[u + 1] - lists.ideal_starts[u]
        start, count = lists.starts[u], lists.counts[u]
        cuts.values[start - 1] = 0.0
        if count == 0:
            continue
        every = 0.0
        for i in range(n_rel):
            every += lists.ideals[best + i]
        lost, rest, total = 0.0, 0.0, 0.0
        known = 0
        for at in range(start, start + count):
            rank, gain = lists.ranks[at], lists.gains[at]
            while known < min(rank, n_rel):
                lost, error = two_sum(lost, max(lists.ideals[best + known], 1.0))
                rest += error
                known += 1
            lost, error = two_sum(lost, -gain)
            rest += error
            lacking = lost + (rest + max(rank - n_rel, 0))
            total += gain / math.log2(2.0 + max(lacking, 0.0))  # not below 0, but for copies of an item
            cuts.values[at] = total / every if n_rel > 0 else 0.0
    read_values(cuts, out, first, last)


class DepthWeights(NamedTuple):
    """Weights of the depths of two lists."""

    terms: Array  # p^(d - 1) / d, for d from 0 (where it is 0)
    harmonic: Array  # their sums up to d
    weights: Array  # sums of p^(j - 1) for j <= d


@helper
def place_in_ideal(ideals, gain, taken):
    """Return the next free place, from 1, among those of a gain in falling gains, and note that it is taken."""
    low = 0
    high = len(ideals) if ideals[0] > gain else 0  # most gains are the largest
    while low < high:
        middle = (low + high) // 2
        if ideals[middle] > gain:
            low = middle + 1
        else:
            high = middle
    taken[low] += 1
    return low + taken[low]


@helper
def place_listed(lists, u, ideals, taken, rank_of, places):
    """Write the place in the ideal of each listed row, and the rank of each place."""
    for at in range(lists.counts[u]):
        gain = lists.gains[lists.starts[u] + at]
        places[at] = place_in_ideal(ideals, gain, taken) if gain == gain else 0  # noqa: PLR0124 - not NaN
        rank_of[places[at]] = lists.ranks[lists.starts[u] + at]


@helper
def sum_of_range(values, first, last):
    """Return the sum of values[first:last], in four sums, so that none waits for the one before."""
    sums = (0.0, 0.0, 0.0, 0.0)
    while first + 4 <= last:
        sums = (
            sums[0] + values[first],
            sums[1] + values[first + 1],
            sums[2] + values[first + 2],
            sums[3] + values[first + 3],
        )
        first += 4
    total = (sums[0] + sums[1]) + (sums[2] + sums[3])
    for at in range(first, last):
        total += values[at]
    return total


@helper
def share_of_best(total, depth, n_rel, depths, is_normalized):
    """Return the overlap of two lists down to a depth: divided by the weights, or by the overlap of the ideal."""
    if not is_normalized:
        return total / depths.weights[depth]
    best = depths.weights[n_rel] + n_rel * (depths.harmonic[depth] - depths.harmonic[n_rel])
    return min(total / best, 1.0)


@helper
def add_overlap(lists, u, n, depths, orders, state):
    """Go down to depth n, or to the last row above it where only rows change the overlap.

    Return the state of the user there: next row, depth, overlap, places that agree, sum.
    """
    rank_of, places = orders
    at, depth, common, in_place, total = state
    start, n_rel = lists.starts[u], len(rank_of) - 1
    while depth < n:
        if depth >= n_rel:  # only a row can add to what is common
            next_rank = np.int64(lists.ranks[start + at]) if at < lists.counts[u] else np.int64(n + 1)
            if next_rank > n:
                break
            total += common * sum_of_range(depths.terms, depth + 1, next_rank)
            depth = next_rank - 1
        depth += 1
        if depth <= n_rel:
            common += 1 <= rank_of[depth] <= depth
            in_place += rank_of[depth] == depth
        if at < lists.counts[u] and lists.ranks[start + at] == depth:
            common += 1 <= places[at] < depth
            at += 1
        total += depths.terms[depth] * common
    return at, depth, common, in_place, total


def overlap_with_ideal(lists, depths, is_normalized, cutoffs, out, first, last):
    """Write the overlap of lists with ideal lists: relevant items by falling gain, equal gains as in the list.

    The gains of items that are not relevant are NaN.
    """
    most, most_listed = 0, 0
    for u in range(first, last):
        most = max(most, lists.ideal_starts[u + 1] - lists.ideal_starts[u])
        most_listed = max(most_listed, lists.counts[u])
    taken, rank_of, places = np.empty(most, np.int64), np.empty(most + 1, np.int64), np.empty(most_listed, np.int64)
    for u in range(first, last):
        if lists.counts[u] == 0:
            out[:, u] = 0.0
            continue
        ideals = lists.ideals[lists.ideal_starts[u] : lists.ideal_starts[u + 1]]
        n_rel, start = len(ideals), lists.starts[u]
        rank_of[0] = 0
        for place in range(n_rel):
            taken[place], rank_of[place + 1] = 0, 0
        place_listed(lists, u, ideals, taken, rank_of, places)
        first_rank = np.int64(lists.ranks[start])  # nothing is common above it
        state = (np.int64(0), first_rank - 1, np.int64(0), np.int64(0), 0.0)
        for nth in range(len(cutoffs)):
            n = min(cutoffs[nth], lists.n_rec[u])
            if n_rel == 0 or n < first_rank:
                out[nth, u] = 0.0
                continue
            state = add_overlap(lists, u, n, depths, (rank_of[: n_rel + 1], places), state)
            _, depth, common, in_place, total = state
            found, whole = common, total + common * sum_of_range(depths.terms, depth + 1, n + 1)
            for d in range(n + 1, n_rel + 1):
                found += 1 <= rank_of[d] <= n
                whole += depths.terms[d] * found
            if is_normalized and in_place == n_rel:
                out[nth, u] = 1.0  # without the rounding of sums
            else:
                out[nth, u] = share_of_best(whole, max(n, n_rel), n_rel, depths, is_normalized)

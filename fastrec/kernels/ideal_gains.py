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
    """The listed rows of the truth as events, with their gains, and the best order of the relevant items of each user.

    Users who all have gains of 1 share the best order of the user with the most relevant items.
    """

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_events,): 0 opens a user, whose ranks ascend
    gains: Array  # float64 (n_events,): 0 for items that are not relevant, anything for what opens a user
    n_rec: Array  # int64 (n_users,): lengths of the lists
    n_rel: Array  # int64 (n_users,): relevant items
    ideals: Array  # float64: the gains of the best orders, falling within each
    ideal_starts: Array  # int64 (n_users,): where the best order of each user starts
    orders: Array  # int64 (n_orders + 1,): where each best order starts, and their end


class IdealSums(NamedTuple):
    """Sums along the best orders at each rank from 0 on; those of user u start at `starts[u]`."""

    starts: Array  # int64 (n_users,)
    discounts: Array  # float64: 1 / log2(rank + 1), from rank 0 on
    dcg: Array  # float64 (n_ideals + n_orders,)
    falls: Array  # int64, likewise: the rank down to which gains equal that at the next rank
    gains: Array  # float64, likewise: sums of gains
    counted: Array  # float64 (2, likewise): sums of gains, of which each counts as at least 1, and what rounding lost


def add_ideals(lists, sums, first, last):
    """Write the sums along some best orders."""
    for order in range(first, last):
        start, end = lists.orders[order], lists.orders[order + 1]
        dcg, gains, counted, rest = 0.0, 0.0, 0.0, 0.0
        for at in range(start, end + 1):
            own = at + order
            if at > start:
                ideal = lists.ideals[at - 1]
                dcg += ideal * sums.discounts[at - start]
                gains += ideal
                counted, error = two_sum(counted, max(ideal, 1.0))
                rest += error
            sums.dcg[own], sums.gains[own], sums.counted[0, own], sums.counted[1, own] = dcg, gains, counted, rest
        fall = end - start
        for at in range(end - 1, start - 1, -1):
            sums.falls[at + order] = fall
            if at > start and lists.ideals[at] != lists.ideals[at - 1]:
                fall = at - start


def mean_at_hits(lists, sums, cuts, out, first, last):
    """Write the mean of nDCG at the ranks of relevant items; those not listed have the DCG of the list's end."""
    u, hits, dcg, total = first - 1, 0, 0.0, 0.0
    begin, end = events_of(lists, first, last)
    ranks, gains, values = lists.ranks[begin:end], lists.gains[begin:end], cuts.values[begin:end]
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        is_hit = is_row & (gains[at] > 0.0)
        u += not is_row
        n_rel, own = lists.n_rel[u], sums.starts[u]
        hits = (hits if is_row else 0) + is_hit
        discounted = gains[at] * sums.discounts[rank]
        dcg = (dcg if is_row else 0.0) + (discounted if is_hit else 0.0)
        ndcg = dcg / sums.dcg[own + min(rank, n_rel)]
        total = (total if is_row else 0.0) + (ndcg if is_hit else 0.0)
        mean = (total + (n_rel - hits) * (dcg / sums.dcg[own + n_rel])) / n_rel
        values[at] = mean if hits > 0 else 0.0
    read_values(cuts, out, first, last)


@helper
def dcg_down_to(lists, sums, rank, at, end, dcg):
    """Return the DCG of a list down to a rank, and the next event, from those at a rank above."""
    while at < end and lists.ranks[at] <= rank:
        dcg += lists.gains[at] * sums.discounts[lists.ranks[at]]
        at += 1
    return at, dcg


def mean_at_levels(lists, sums, cuts, out, first, last):
    """Write the mean of nDCG at the ranks where the ideal gain falls, and at the end of a list longer than that."""
    for u in range(first, last):
        n_rel, own = lists.n_rel[u], sums.starts[u]
        at, end = lists.starts[u], lists.starts[u] + lists.counts[u]
        dcg, above = 0.0, 0.0
        rank, levels = 0, 0  # down to where all cut-offs to come have the same nDCG
        for nth in range(len(out)):
            n = min(cuts.cutoffs[nth], lists.n_rec[u])
            while rank < n_rel and min(sums.falls[own + rank], n_rel) <= n:
                rank = min(sums.falls[own + rank], n_rel)
                at, dcg = dcg_down_to(lists, sums, rank, at, end, dcg)
                above += dcg / sums.dcg[own + rank]
                levels += 1
            at, dcg = dcg_down_to(lists, sums, n, at, end, dcg)
            if dcg == 0.0:
                out[nth, u] = 0.0
                continue
            total, count, fall = above, levels, rank
            while fall < n_rel:
                fall = min(sums.falls[own + fall], n_rel)
                total += dcg / sums.dcg[own + fall]
                count += 1
            if n > n_rel + 1:
                total += dcg / sums.dcg[own + n_rel]
                count += 1
            out[nth, u] = total / count


@helper
def discount_past(discounts, lost):
    """Return 1 / log2(2 + the gain that was lost), which the discounts of ranks have for whole numbers."""
    if lost < len(discounts) - 1 and lost == math.floor(lost):
        return discounts[np.int64(lost) + 1]
    return 1.0 / math.log2(2.0 + lost)


def sum_by_lost_gain(lists, sums, cuts, out, first, last):
    """Write the sum over hits of gain / log2(2 + the gain that the list lacks down to there), over all gain.

    A rank of the best order counts as at least 1, also past its end.
    """
    u, found, rest, total = first - 1, 0.0, 0.0, 0.0
    begin, end = events_of(lists, first, last)
    ranks, gains, values = lists.ranks[begin:end], lists.gains[begin:end], cuts.values[begin:end]
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        u += not is_row
        n_rel, own = lists.n_rel[u], sums.starts[u]
        gain = gains[at] if is_row else 0.0
        found, error = two_sum(found if is_row else 0.0, gain)
        rest = (rest if is_row else 0.0) + error
        best = own + min(rank, n_rel)
        lost, error = two_sum(sums.counted[0, best], -found)
        lacking = lost + ((sums.counted[1, best] - rest + error) + max(rank - n_rel, 0))
        # not below 0, but for copies of an item
        total = (total if is_row else 0.0) + gain * discount_past(sums.discounts, max(lacking, 0.0))
        values[at] = total / sums.gains[own + n_rel] if total > 0.0 else 0.0
    read_values(cuts, out, first, last)


class DepthWeights(NamedTuple):
    """Sums of the weights of the depths 1 to d of two lists, at d."""

    terms: Array  # of p^(j - 1) / j
    rest: Array  # what these sums lost by rounding
    weights: Array  # of p^(j - 1)


@helper
def terms_between(depths, first, last):
    """Return the sum of the terms of depths first + 1 to last, to 2^-100."""
    return (depths.terms[last] - depths.terms[first]) + (depths.rest[last] - depths.rest[first])


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
def share_of_best(total, depth, n_rel, depths, is_normalized):
    """Return the overlap of two lists down to a depth: divided by the weights, or by the overlap of the ideal."""
    if not is_normalized:
        return total / depths.weights[depth]
    best = depths.weights[n_rel] + n_rel * terms_between(depths, n_rel, depth)
    return min(total / best, 1.0)


def overlap_with_ideal(lists, depths, is_normalized, cutoffs, out, first, last):
    """Write the overlap of lists with ideal lists: relevant items by falling gain, equal gains as in the list.

    An item is common to both lists from the deeper of its rank and its place in the ideal on. The gains of items that
    are not relevant are NaN.
    """
    most = 0
    for u in range(first, last):
        most = max(most, lists.n_rel[u])
    taken = np.empty(most, np.int64)  # places of the ideal, noted at the first of those with the same gain
    for u in range(first, last):
        n_rel, ideals = lists.n_rel[u], lists.ideals[lists.ideal_starts[u] : lists.ideal_starts[u] + lists.n_rel[u]]
        taken[:n_rel] = 0
        at, end = lists.starts[u], lists.starts[u] + lists.counts[u]
        total, depth, common, in_place = 0.0, n_rel, 0, 0
        for nth in range(len(cutoffs)):
            n = min(cutoffs[nth], lists.n_rec[u])
            above, depth = depth, max(n, n_rel)
            total += common * terms_between(depths, above, depth)
            while at < end and lists.ranks[at] <= n:
                rank, gain = np.int64(lists.ranks[at]), lists.gains[at]
                at += 1
                if gain == gain:  # noqa: PLR0124 - not NaN
                    place = place_in_ideal(ideals, gain, taken)
                    total += terms_between(depths, max(rank, place) - 1, depth)
                    common += 1
                    in_place += rank == place
            if is_normalized and in_place == n_rel:
                out[nth, u] = 1.0 if n_rel > 0 else 0.0  # without the rounding of sums
            else:
                out[nth, u] = share_of_best(total, depth, n_rel, depths, is_normalized) if total > 0.0 else 0.0

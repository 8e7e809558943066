"""Gains of lists against those of the best order, rank by rank: measures of trec_eval for graded judgements.

Most kernels write the measure after each event: that of a list which is cut below the event.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import njit
from .runs import NO_SUM, added, two_sum

Array = np.ndarray[Any, Any]


class GradedLists(NamedTuple):
    """The listed rows of the truth as events, with their gains, and the best order of the relevant items of each user.

    Users who all have gains of 1 share the best order of the user with the most relevant items.
    """

    starts: Array  # int64 (n_users,)
    counts: Array  # int64 (n_users,)
    ranks: Array  # int32 (n_events,): 0 opens a user, whose ranks ascend
    gains: Array  # float64 (n_events,): 0 or NaN for items that are not relevant, anything for what opens a user
    n_rec: Array  # int64 (n_users,): lengths of the lists
    n_rel: Array  # int64 (n_users,): relevant items
    ideals: Array  # float64: the gains of the best orders, falling within each
    ideal_starts: Array  # int64 (n_users,): where the best order of each user starts
    orders: Array  # int64 (n_orders + 1,): where each best order starts, and their end


class IdealSums(NamedTuple):
    """Sums along the best orders at each rank from 0 on; those of user u start at `starts[u]`.

    Divisors are 1 at rank 0, so that no quotient needs a test for 0: compilers make a branch of such a test, which
    processors cannot predict.
    """

    starts: Array  # int64 (n_users,)
    discounts: Array  # float64: 1 / log2(rank + 1), from rank 0 on
    dcg: Array  # float64 (n_ideals + n_orders,); 1 at rank 0
    falls: Array  # int64, likewise: the last rank with the gain of the next rank
    levels: Array  # int64, likewise: how many gains differ from the next rank on
    shares: Array  # float64, likewise: the sum of DCG at rank 1 / DCG at the last rank of each of these gains
    gains: Array  # float64, likewise: sums of gains; 1 at rank 0
    counted: Array  # float64 (3, likewise): sums of gains, of which each counts as at least 1, in the parts of `added`


@njit(cache=True)
def add_ideals(lists, sums):
    """Write the sums along the best orders."""
    for order in range(len(lists.orders) - 1):
        start, end = lists.orders[order], lists.orders[order + 1]
        dcg, gains, counted = 0.0, 0.0, NO_SUM
        for at in range(start, end + 1):
            own = at + order
            if at > start:
                ideal = lists.ideals[at - 1]
                dcg += ideal * sums.discounts[at - start]
                gains += ideal
                counted = added(counted, max(ideal, 1.0))
            sums.dcg[own], sums.gains[own] = dcg, gains
            sums.counted[0, own], sums.counted[1, own], sums.counted[2, own] = counted
        sums.dcg[start + order], sums.gains[start + order] = 1.0, 1.0
        own, fall, levels, share = start + order, end - start, 0, 0.0
        sums.falls[own + fall], sums.levels[own + fall], sums.shares[own + fall] = fall, 0, 0.0
        for rank in range(end - start - 1, -1, -1):
            if rank + 1 == end - start or lists.ideals[start + rank] != lists.ideals[start + rank + 1]:
                fall, levels, share = rank + 1, levels + 1, share + sums.dcg[own + 1] / sums.dcg[own + rank + 1]
            sums.falls[own + rank], sums.levels[own + rank], sums.shares[own + rank] = fall, levels, share


@njit(cache=True)
def mean_at_hits(lists, sums, values):
    """Write the mean of nDCG at the ranks of relevant items; those not listed have the DCG of the list's end."""
    u, hits, dcg, total = -1, 0, 0.0, 0.0
    ranks, gains, n_rels, starts = lists.ranks, lists.gains, lists.n_rel, sums.starts
    discounts, ideal_dcg = sums.discounts, sums.dcg
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        is_hit = is_row & (gains[at] > 0.0)
        u += not is_row
        n_rel, own = n_rels[u], starts[u]
        hits = (hits if is_row else 0) + is_hit
        discounted = gains[at] * discounts[rank]
        dcg = (dcg if is_row else 0.0) + (discounted if is_hit else 0.0)
        total = (total if is_row else 0.0) + (dcg if is_hit else 0.0) / ideal_dcg[own + min(rank, n_rel)]
        values[at] = (total + (n_rel - hits) * (dcg / ideal_dcg[own + n_rel])) / max(n_rel, 1)


@njit(cache=True)
def sum_at_levels(lists, sums, values):
    """Write the sum of nDCG at the ranks where the ideal gain falls, for a list without gain past the event."""
    u, level, dcg, above = -1, 0, 0.0, 0.0  # down to rank `level` the sum is final, and `above`
    ranks, gains, n_rels, starts = lists.ranks, lists.gains, lists.n_rel, sums.starts
    discounts, ideal_dcg, falls, levels, shares = sums.discounts, sums.dcg, sums.falls, sums.levels, sums.shares
    for at in range(len(ranks)):
        rank = np.int64(ranks[at])
        if rank == 0:
            u, level, dcg, above = u + 1, 0, 0.0, 0.0
        n_rel, own = n_rels[u], starts[u]
        fall = min(falls[own + level], n_rel)
        while level < n_rel and fall < rank:
            above += dcg / ideal_dcg[own + fall]
            level, fall = fall, min(falls[own + fall], n_rel)
        dcg += gains[at] * discounts[rank]
        if level == n_rel:
            values[at] = above
        elif fall == n_rel:  # divided, so that the best order has exactly 1
            values[at] = above + dcg / ideal_dcg[own + n_rel]
        else:
            share = dcg / ideal_dcg[own + 1] * shares[own + level]
            values[at] = min(above + share, np.float64(levels[own]))  # it may be above by rounding


@njit(cache=True)
def share_of_best_dcg(lists, sums, values):
    """Write the DCG as a share of that of the best order of all relevant items."""
    u, dcg = -1, 0.0
    ranks, gains, n_rels, starts = lists.ranks, lists.gains, lists.n_rel, sums.starts
    discounts, ideal_dcg = sums.discounts, sums.dcg
    for at in range(len(ranks)):
        is_row = ranks[at] > 0
        u += not is_row
        dcg = (dcg if is_row else 0.0) + gains[at] * discounts[ranks[at]]
        values[at] = dcg / ideal_dcg[starts[u] + n_rels[u]]


@njit
def discount_past(discounts, lost):
    """Return 1 / log2(2 + the gain that was lost), which the discounts of ranks have for whole numbers."""
    if lost < len(discounts) - 1 and lost == math.floor(lost):
        return discounts[np.int64(lost) + 1]
    return 1.0 / math.log2(2.0 + lost)


@njit(cache=True)
def sum_by_lost_gain(lists, sums, values):
    """Write the sum over hits of gain / log2(2 + the gain that the list lacks down to there), over all gain.

    A rank of the best order counts as at least 1, also past its end.
    """
    u, found, total = -1, NO_SUM, 0.0
    ranks, gains, n_rels, starts = lists.ranks, lists.gains, lists.n_rel, sums.starts
    discounts, ideal_gains, counted = sums.discounts, sums.gains, sums.counted
    for at in range(len(ranks)):
        is_row, rank = ranks[at] > 0, np.int64(ranks[at])
        u += not is_row
        n_rel, own = n_rels[u], starts[u]
        gain = gains[at] if is_row else 0.0
        found = added(found if is_row else NO_SUM, gain)
        best = own + min(rank, n_rel)
        lost, error = two_sum(counted[0, best], -found[0])
        more, rest = two_sum(counted[1, best], -found[1])
        lacking = lost + (more + (error + (rest + (counted[2, best] - found[2])))) + max(rank - n_rel, 0)
        # not below 0, but for copies of an item
        total = (total if is_row else 0.0) + gain * discount_past(discounts, max(lacking, 0.0))
        values[at] = total / ideal_gains[own + n_rel]


class DepthWeights(NamedTuple):
    """Sums of the weights of the depths 1 to d of two lists, at d."""

    terms: Array  # of p^(j - 1) / j
    rest: Array  # what these sums lost by rounding
    weights: Array  # of p^(j - 1)


@njit
def terms_between(depths, first, last):
    """Return the sum of the terms of depths first + 1 to last, without the rounding of running sums."""
    return (depths.terms[last] - depths.terms[first]) + (depths.rest[last] - depths.rest[first])


@njit
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


@njit
def share_of_best(total, depth, n_rel, depths, is_normalized):
    """Return the overlap of two lists down to a depth: divided by the weights, or by the overlap of the ideal."""
    if not is_normalized:
        return total / depths.weights[depth]
    best = depths.weights[n_rel] + n_rel * terms_between(depths, n_rel, depth)
    return min(total / best, 1.0)


@njit
def place_listed(lists, u, ideals, taken, ranks, places):
    """Write the ranks of the listed relevant items, and their places in the ideal; return how many there are."""
    taken[: len(ideals)] = 0
    n = 0
    for at in range(lists.starts[u], lists.starts[u] + lists.counts[u]):
        gain = lists.gains[at]
        if gain == gain:  # noqa: PLR0124 - not NaN
            ranks[n], places[n] = lists.ranks[at], place_in_ideal(ideals, gain, taken)
            n += 1
    return n


@njit(cache=True, allocates=True)
def overlap_with_ideal(lists, depths, is_normalized, cutoffs, out):
    """Write the overlap of lists with ideal lists: relevant items by falling gain, equal gains as in the list.

    An item is common to both lists from the deeper of its rank and its place in the ideal on. Writes a number for each
    ascending cut-off and user, into out (n_cutoffs, n_users). The gains of items that are not relevant are NaN.
    """
    n_users, most, most_listed = len(lists.n_rel), 0, 0
    for u in range(n_users):
        most, most_listed = max(most, lists.n_rel[u]), max(most_listed, lists.counts[u])
    taken = np.empty(most, np.int64)  # places of the ideal, noted at the first of those with the same gain
    ranks, places = np.empty(most_listed, np.int64), np.empty(most_listed, np.int64)
    for u in range(n_users):
        n_rel, start = lists.n_rel[u], lists.ideal_starts[u]
        n_hits = place_listed(lists, u, lists.ideals[start : start + n_rel], taken, ranks, places)
        for nth in range(len(cutoffs)):
            n = min(cutoffs[nth], lists.n_rec[u])
            depth, total, in_place, at = max(n, n_rel), 0.0, 0, 0
            while at < n_hits and ranks[at] <= n:
                total += terms_between(depths, max(ranks[at], places[at]) - 1, depth)
                in_place += ranks[at] == places[at]
                at += 1
            if at == 0:
                out[nth, u] = 0.0
            elif is_normalized and in_place == n_rel:
                out[nth, u] = 1.0  # without the rounding of sums
            else:
                out[nth, u] = share_of_best(total, depth, n_rel, depths, is_normalized)

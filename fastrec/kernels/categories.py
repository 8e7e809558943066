"""Categories of lists: distinct ones, their entropy, and how far their shares are from those of a history.

Items are slots. An item's weight is shared equally among its categories. Kernels that take tasks first..last-1 write
what belongs to users edges[task]..edges[task + 1]-1 of each task.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange

Array = np.ndarray[Any, Any]


NONE, SEVERAL = -1, -2
MAX_VISITED = 128  # categories: all are visited for each user, as this costs less than to note those seen


class CategoriesOfSlots(NamedTuple):
    """The categories of each slot, end to end."""

    indptr: Array  # int64 (n_slots + 1,)
    codes: Array  # int64
    n: int
    only: Array  # int32 (n_slots,): the code of a slot of one category, NONE or SEVERAL


class Shares(NamedTuple):
    """Working memory: the weight of each category, and the categories that have one."""

    weights: Array  # float64 (n,), zeros
    seen: Array  # int64 (n,)
    all_seen: bool


@njit
def none_seen(shares):
    """Return how many categories to visit before any was seen."""
    return len(shares.seen) if shares.all_seen else 0


@njit
def sort_seen(shares, n_seen):
    """Bring the categories seen into ascending order, by insertion: a user has few."""
    for i in range(1, 0 if shares.all_seen else n_seen):
        code, at = shares.seen[i], i
        while at > 0 and shares.seen[at - 1] > code:
            shares.seen[at] = shares.seen[at - 1]
            at -= 1
        shares.seen[at] = code


@njit
def add_items(slots, start, end, weights, categories, shares, n_seen):
    """Add the items slots[start:end] to the shares; return the number of categories seen.

    `weights` are those of the items, of which some may be 0; without any, each item weighs 1.
    """
    ends, codes, only = categories.indptr, categories.codes, categories.only
    own, seen, all_seen = shares.weights, shares.seen, shares.all_seen
    for at in range(start, end):
        weight = weights[at - start] if len(weights) > 0 else 1.0
        slot = slots[at]
        code, n = only[slot], 1
        if code < 0:
            n = ends[slot + 1] - ends[slot] if code == SEVERAL else 0
        for i in range(n if weight > 0 else 0):
            category = codes[ends[slot] + i] if code < 0 else code
            known = own[category]
            own[category] = known + weight / n
            if not all_seen and known == 0.0:
                seen[n_seen] = category
                n_seen += 1
    return n_seen


@njit
def total_of(shares, n_seen):
    """Return the sum of the weights."""
    total, weights, seen = 0.0, shares.weights, shares.seen
    for i in range(n_seen):
        total += weights[seen[i]]
    return total


@njit
def clear(shares, n_seen):
    """Remove all weights."""
    weights, seen = shares.weights, shares.seen
    for i in range(n_seen):
        weights[seen[i]] = 0.0


@njit
def sum_of_logs(shares, n_seen, total):
    """Return the sum of weight * log2(total / weight)."""
    found, weights, seen = 0.0, shares.weights, shares.seen
    for i in range(n_seen):
        weight = weights[seen[i]]
        if weight > 0:
            found += weight * math.log2(total / weight)
    return found


@njit(allocates=True)
def count_categories_of_users(slots, indptr, chosen, cuts, categories, counts, first, last):
    """Write the counts of some users."""
    ends, codes, only = categories.indptr, categories.codes, categories.only
    latest = np.full(categories.n, -1)  # the last user with each category
    for u in range(first, last):
        found, at = 0, indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                code = only[slot]
                if chosen[at] and code >= 0:
                    found += latest[code] != u
                    latest[code] = u
                elif chosen[at] and code == SEVERAL:
                    for i in range(ends[slot], ends[slot + 1]):
                        found += latest[codes[i]] != u
                        latest[codes[i]] = u
                at += 1
            counts[c, u] = found


@njit(parallel=True, cache=True)
def count_categories(first, last, edges, slots, indptr, chosen, cuts, ends, codes, n, only, counts):
    """Count the distinct categories of chosen rows up to each cut-off: into counts (n_cuts, n_users)."""
    for task in prange(first, last):
        own = CategoriesOfSlots(ends, codes, n, only)
        count_categories_of_users(slots, indptr, chosen, cuts, own, counts, edges[task], edges[np.int64(task) + 1])


@njit(allocates=True)
def entropy_of_users(slots, indptr, weights, cuts, categories, bits, first, last):
    """Write the entropies of some users."""
    shares = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    for u in range(first, last):
        n_seen, at = none_seen(shares), indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            n_seen = add_items(slots, at, end, weights[at - indptr[u] :], categories, shares, n_seen)
            at = end
            total = total_of(shares, n_seen)
            bits[c, u] = sum_of_logs(shares, n_seen, total) / total if total > 0 else 0.0
        clear(shares, n_seen)


@njit(parallel=True, cache=True)
def entropy_of_categories(first, last, edges, slots, indptr, weights, cuts, ends, codes, n, only, bits):
    """Write the entropy of the shares of the categories up to each cut-off, in bits: into bits (n_cuts, n_users).

    `weights` are those of the ranks.
    """
    for task in prange(first, last):
        own = CategoriesOfSlots(ends, codes, n, only)
        entropy_of_users(slots, indptr, weights, cuts, own, bits, edges[task], edges[np.int64(task) + 1])


@njit
def smoothed_divergence(past, n_past, listed, totals, alpha):
    """Return the divergence of the past from the list, smoothed by alpha of the past, in bits."""
    found, ratio, seen, of_past, of_list = 0.0, totals[0] / totals[1], past.seen, past.weights, listed.weights
    for i in range(n_past):
        p = of_past[seen[i]]
        if p > 0:
            q = of_list[seen[i]] * ratio
            found += p * math.log2(p / ((1 - alpha) * q + alpha * p))
    return found / totals[0]


@njit
def symmetric_divergence(past, n_past, listed, n_listed, totals, in_roots):
    """Return the Jensen-Shannon divergence of past and list in bits, or the squared Hellinger distance."""
    found, of_past, of_list, seen, others = 0.0, past.weights, listed.weights, past.seen, listed.seen
    for i in range(n_past + n_listed):
        code = seen[i] if i < n_past else others[i - n_past]
        if (i < n_past) != (of_past[code] > 0):
            continue  # not of the past, or met before
        p, q = of_past[code] / totals[0], of_list[code] / totals[1]
        if in_roots:
            found += (math.sqrt(p) - math.sqrt(q)) ** 2 / 2
            continue
        middle = (p + q) / 2
        if p > 0:
            found += p * math.log2(p / middle) / 2
        if q > 0:
            found += q * math.log2(q / middle) / 2
    return found


class ListsAndPast(NamedTuple):
    """Items of lists and of histories by slot, and the weights of ranks."""

    slots: Array
    indptr: Array
    past_slots: Array
    past_indptr: Array
    weights: Array


@njit(allocates=True)
def miscalibrate_users(lists, cuts, categories, past_categories, form, found, first, last):
    """Write the divergences of some users."""
    listed = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    past = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    for u in range(first, last):
        n_past = none_seen(past)
        start, end = lists.past_indptr[u], lists.past_indptr[u + 1]
        n_past = add_items(lists.past_slots, start, end, lists.weights[:0], past_categories, past, n_past)
        sort_seen(past, n_past)  # so that the order of the history leaves the bits of the sums
        in_past = total_of(past, n_past)
        n_listed, at = none_seen(listed), lists.indptr[u]
        for c in range(len(cuts)):
            end = min(lists.indptr[u] + cuts[c], lists.indptr[u + 1])
            weights = lists.weights[at - lists.indptr[u] :]
            n_listed = add_items(lists.slots, at, end, weights, categories, listed, n_listed)
            at = end
            found[:, c, u] = 0.0
            totals = (in_past, total_of(listed, n_listed))
            if totals[0] > 0 and totals[1] > 0:
                found[1, c, u] = 1.0
                if form[0] == 0:
                    found[0, c, u] = smoothed_divergence(past, n_past, listed, totals, form[1])
                else:
                    found[0, c, u] = symmetric_divergence(past, n_past, listed, n_listed, totals, form[0] == 2)
        clear(past, n_past)
        clear(listed, n_listed)


@njit(parallel=True, cache=True)
def miscalibrate(first, last, edges, lists, cuts, categories, past_categories, code, alpha, found):
    """Write the divergence of the categories of histories and lists up to each cut-off to found (2, n_cuts, n_users).

    The second number is 1 where both have categories, else 0. Codes: 0 smoothed, 1 Jensen-Shannon, 2 Hellinger.
    """
    for task in prange(first, last):
        start, end, form = edges[task], edges[np.int64(task) + 1], (code, alpha)
        miscalibrate_users(lists, cuts, categories, past_categories, form, found, start, end)

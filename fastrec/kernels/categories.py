"""Categories of lists: distinct ones, their entropy, and how far their shares are from those of a history.

Items are slots. An item's weight is shared equally among its categories. Each function works on a range of users, so
that ranges can run in threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

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


@helper
def none_seen(shares):
    """Return how many categories to visit before any was seen."""
    return len(shares.seen) if shares.all_seen else 0


@helper
def add_weight(code, weight, shares, n_seen):
    """Add a weight to a category; return the number of categories seen."""
    known = shares.weights[code]
    shares.weights[code] = known + weight
    if not shares.all_seen and known == 0.0:
        shares.seen[n_seen] = code
        n_seen += 1
    return n_seen


@helper
def sort_seen(shares, n_seen):
    """Bring the categories seen into ascending order, by insertion: a user has few."""
    for i in range(1, 0 if shares.all_seen else n_seen):
        code, at = shares.seen[i], i
        while at > 0 and shares.seen[at - 1] > code:
            shares.seen[at] = shares.seen[at - 1]
            at -= 1
        shares.seen[at] = code


@helper
def add_item(slot, weight, categories, shares, n_seen):
    """Add an item to the shares; return the number of categories seen."""
    code = categories.only[slot]
    if code >= 0:
        return add_weight(code, weight, shares, n_seen)
    if code == SEVERAL:
        start, end = categories.indptr[slot], categories.indptr[slot + 1]
        for at in range(start, end):
            n_seen = add_weight(categories.codes[at], weight / (end - start), shares, n_seen)
    return n_seen


@helper
def total_of(shares, n_seen):
    """Return the sum of the weights."""
    total = 0.0
    for i in range(n_seen):
        total += shares.weights[shares.seen[i]]
    return total


@helper
def clear(shares, n_seen):
    """Remove all weights."""
    for i in range(n_seen):
        shares.weights[shares.seen[i]] = 0.0


def count_categories(slots, indptr, chosen, cuts, categories, counts, first, last):
    """Count the distinct categories of chosen rows up to each cut-off: into counts (n_cuts, n_users)."""
    shares = Shares(np.zeros(categories.n), np.empty(categories.n, np.int64), False)  # noqa: FBT003
    for u in range(first, last):
        n_seen, at = 0, indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                if chosen[at]:
                    n_seen = add_item(slots[at], 1.0, categories, shares, n_seen)
                at += 1
            counts[c, u] = n_seen
        clear(shares, n_seen)


def entropy_of_categories(slots, indptr, cuts, categories, weights, bits, first, last):
    """Write the entropy of the shares of the categories up to each cut-off, in bits: into bits (n_cuts, n_users).

    `weights` are those of the ranks.
    """
    shares = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    for u in range(first, last):
        n_seen, at = none_seen(shares), indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                if weights[at - indptr[u]] > 0:
                    n_seen = add_item(slots[at], weights[at - indptr[u]], categories, shares, n_seen)
                at += 1
            total, sum_of_logs = total_of(shares, n_seen), 0.0
            for i in range(n_seen):
                weight = shares.weights[shares.seen[i]]
                if weight > 0:
                    sum_of_logs += weight * math.log2(total / weight)
            bits[c, u] = sum_of_logs / total if total > 0 else 0.0
        clear(shares, n_seen)


@helper
def smoothed_divergence(past, n_past, listed, totals, alpha):
    """Return the divergence of the past from the list, smoothed by alpha of the past, in bits."""
    found, ratio = 0.0, totals[0] / totals[1]
    for i in range(n_past):
        p = past.weights[past.seen[i]]
        if p > 0:
            q = listed.weights[past.seen[i]] * ratio
            found += p * math.log2(p / ((1 - alpha) * q + alpha * p))
    return found / totals[0]


@helper
def symmetric_divergence(past, n_past, listed, n_listed, totals, in_roots):
    """Return the Jensen-Shannon divergence of past and list in bits, or the squared Hellinger distance."""
    found = 0.0
    for i in range(n_past + n_listed):
        code = past.seen[i] if i < n_past else listed.seen[i - n_past]
        if (i < n_past) != (past.weights[code] > 0):
            continue  # not of the past, or met before
        p, q = past.weights[code] / totals[0], listed.weights[code] / totals[1]
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


def miscalibrate(lists, cuts, categories, past_categories, form, found, first, last):
    """Write the divergence of the categories of histories and lists up to each cut-off to found (2, n_cuts, n_users).

    The second number is 1 where both have categories, else 0. `form` is (code, alpha); codes: 0 smoothed, 1
    Jensen-Shannon, 2 Hellinger.
    """
    listed = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    past = Shares(np.zeros(categories.n), np.arange(categories.n), categories.n <= MAX_VISITED)
    for u in range(first, last):
        n_past = none_seen(past)
        for at in range(lists.past_indptr[u], lists.past_indptr[u + 1]):
            n_past = add_item(lists.past_slots[at], 1.0, past_categories, past, n_past)
        sort_seen(past, n_past)  # so that the order of the history leaves the bits of the sums
        in_past = total_of(past, n_past)
        n_listed, at = none_seen(listed), lists.indptr[u]
        for c in range(len(cuts)):
            end = min(lists.indptr[u] + cuts[c], lists.indptr[u + 1])
            while at < end:
                weight = lists.weights[at - lists.indptr[u]]
                if weight > 0:
                    n_listed = add_item(lists.slots[at], weight, categories, listed, n_listed)
                at += 1
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

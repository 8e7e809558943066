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


class CategoriesOfSlots(NamedTuple):
    """The categories of each slot, end to end."""

    indptr: Array  # int64 (n_slots + 1,)
    codes: Array  # int64
    n: int


class Shares(NamedTuple):
    """Working memory: the weight of each category, and the categories that have one."""

    weights: Array  # float64 (n,), zeros
    seen: Array  # int64 (n,)


@helper
def add_item(slot, weight, categories, shares, n_seen):
    """Add an item to the shares; return the number of categories seen."""
    start, end = categories.indptr[slot], categories.indptr[slot + 1]
    if end - start > 1:
        weight = weight / (end - start)
    for at in range(start, end):
        code = categories.codes[at]
        known = shares.weights[code]
        if known == 0.0:
            shares.seen[n_seen] = code
            n_seen += 1
        shares.weights[code] = known + weight
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
    shares = Shares(np.zeros(categories.n), np.empty(categories.n, np.int64))
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
    shares = Shares(np.zeros(categories.n), np.empty(categories.n, np.int64))
    for u in range(first, last):
        n_seen, at = 0, indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                if weights[at - indptr[u]] > 0:
                    n_seen = add_item(slots[at], weights[at - indptr[u]], categories, shares, n_seen)
                at += 1
            total, sum_of_logs = total_of(shares, n_seen), 0.0
            for i in range(n_seen):
                weight = shares.weights[shares.seen[i]]
                sum_of_logs += weight * math.log2(total / weight)
            bits[c, u] = sum_of_logs / total if total > 0 else 0.0
        clear(shares, n_seen)


@helper
def smoothed_divergence(past, n_past, listed, totals, alpha):
    """Return the divergence of the past from the list, smoothed by alpha of the past, in bits."""
    found = 0.0
    for i in range(n_past):
        p = past.weights[past.seen[i]] / totals[0]
        q = listed.weights[past.seen[i]] / totals[1]
        found += p * math.log2(p / ((1 - alpha) * q + alpha * p))
    return found


@helper
def symmetric_divergence(past, n_past, listed, n_listed, totals, in_roots):
    """Return the Jensen-Shannon divergence of past and list in bits, or the squared Hellinger distance."""
    found = 0.0
    for i in range(n_past + n_listed):
        code = past.seen[i] if i < n_past else listed.seen[i - n_past]
        if i >= n_past and past.weights[code] > 0:
            continue
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
    listed = Shares(np.zeros(categories.n), np.empty(categories.n, np.int64))
    past = Shares(np.zeros(categories.n), np.empty(categories.n, np.int64))
    for u in range(first, last):
        n_past = 0
        for at in range(lists.past_indptr[u], lists.past_indptr[u + 1]):
            n_past = add_item(lists.past_slots[at], 1.0, past_categories, past, n_past)
        n_listed, at = 0, lists.indptr[u]
        for c in range(len(cuts)):
            end = min(lists.indptr[u] + cuts[c], lists.indptr[u + 1])
            while at < end:
                weight = lists.weights[at - lists.indptr[u]]
                if weight > 0:
                    n_listed = add_item(lists.slots[at], weight, categories, listed, n_listed)
                at += 1
            found[:, c, u] = 0.0
            if n_past > 0 and n_listed > 0:
                totals = (total_of(past, n_past), total_of(listed, n_listed))
                found[1, c, u] = 1.0
                if form[0] == 0:
                    found[0, c, u] = smoothed_divergence(past, n_past, listed, totals, form[1])
                else:
                    found[0, c, u] = symmetric_divergence(past, n_past, listed, n_listed, totals, form[0] == 2)
        clear(past, n_past)
        clear(listed, n_listed)

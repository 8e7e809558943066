"""Clicks of users in their lists, and sums of the weights of clicks.

Each function works on a range of users, so that ranges can run in threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.hits import sort_descending
from fastrec.kernels.list_order import find, longest_row, sort_by_id
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
FEW_ITEMS = 64  # of a truth; more are looked up in their order, by halving
WORDS = 16  # of 64 bits, one for each hash of an item
GOLDEN = 0x9E3779B97F4A7C15
EXPONENTS = 2048  # of a double


class UserItems(NamedTuple):
    """Lists, or a truth, of all users."""

    items: Array
    indptr: Array  # int64 (n_users + 1,)


class Clicks(NamedTuple):
    """Hits of users in their lists, by rank. Those of a user begin at the user's first row of the truth."""

    ranks: Array  # int32 (n_truth_rows,), from 1
    sources: Array  # int32 (n_truth_rows,): rows of the user's truth, from 0
    counts: Array  # int64 (n_users,)


class Lookup(NamedTuple):
    """Working memory to look up items of a truth."""

    order: Array  # int64 (longest truth,)
    spare: Array  # int64 (longest truth,)
    none: Array  # float64 (longest truth,)
    present: Array  # uint64 (WORDS,): a bit for each hash of an item


@helper
def find_clicks_of_user(recs, truth, u, deepest, lookup, clicks):
    """Write the hits of a user within the rank `deepest`; return how many."""
    start = truth.indptr[u]
    own = truth.items[start : truth.indptr[u + 1]]
    row = recs.items[recs.indptr[u] : min(recs.indptr[u] + deepest, recs.indptr[u + 1])]
    n, present = len(own), lookup.present
    if n > FEW_ITEMS:
        sort_by_id(lookup.order, lookup.spare, own, lookup.none)
    for word in range(WORDS):
        present[word] = 0
    multiplier, low, one = np.uint64(GOLDEN), np.uint64(63), np.uint64(1)
    for i in range(n):
        bit = np.uint64(own[i]) * multiplier >> np.uint64(54)  # of WORDS * 64
        present[bit >> np.uint64(6)] |= one << (bit & low)
    found = 0
    for j in range(len(row)):
        item = row[j]
        bit = np.uint64(item) * multiplier >> np.uint64(54)
        if present[bit >> np.uint64(6)] >> (bit & low) & one == 0:
            continue
        at = n
        if n > FEW_ITEMS:
            at = find(item, own, lookup.order, n)
            at = n if at < 0 else at
        else:
            for i in range(n):
                if own[i] == item:
                    at = i
                    break
        if at < n and found < n:  # a copy in the list, which the evaluation rejects, may come again
            clicks.ranks[start + found] = j + 1
            clicks.sources[start + found] = at
            found += 1
    return found


def find_clicks(recs, truth, deepest, clicks, first, last):
    """Write the hits of users within the rank `deepest`."""
    n = longest_row(truth.indptr, first, last)
    lookup = Lookup(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.zeros(WORDS, np.uint64))
    for u in range(first, last):
        clicks.counts[u] = find_clicks_of_user(recs, truth, u, deepest, lookup, clicks)


def sum_clicks(clicks, truth_indptr, weights, cuts, discounts, sums, first, last):
    """Sum weights of clicks, times the discount of their rank, up to the cut-offs: into sums (n_cuts, n_users)."""
    for u in range(first, last):
        total = 0.0
        start = truth_indptr[u]
        at = start
        end = start + clicks.counts[u]
        for c in range(len(cuts)):
            while at < end and clicks.ranks[at] <= cuts[c]:
                total += weights[start + clicks.sources[at]] * discounts[clicks.ranks[at] - 1]
                at += 1
            sums[c, u] = total


def sum_weights(weights, indptr, sums, first, last):
    """Sum the weights of the rows of each user in ascending order, so that the order of rows has no effect."""
    ordered = np.empty(longest_row(indptr, first, last))
    for u in range(first, last):
        row = weights[indptr[u] : indptr[u + 1]]
        for i in range(len(row)):
            ordered[i] = row[i]
        sort_descending(ordered[: len(row)])
        total = 0.0
        for i in range(len(row) - 1, -1, -1):
            total += ordered[i]
        sums[u] = total


def add_digits(bits, digits):
    """Add the significands of doubles from 0, given as int64, by exponent: their upper and lower half."""
    for at in range(len(bits)):
        exponent = bits[at] >> 52
        significand = bits[at] & ((1 << 52) - 1)
        if exponent > 0:
            significand |= 1 << 52
        digits[exponent, 0] += significand >> 26
        digits[exponent, 1] += significand & ((1 << 26) - 1)

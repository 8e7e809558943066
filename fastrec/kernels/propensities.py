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


class ClickSums(NamedTuple):
    """What to sum over the clicks of a user: weights of a source, times discounts of ranks, up to cut-offs."""

    weights: Array  # float64 (n_sources, n_truth_rows)
    sources: Array  # int64 (n_series,)
    discounts: Array  # float64 (n_series, deepest rank)
    cuts: Array  # int64 (n_cuts,), ascending
    sums: Array  # float64 (n_series, n_cuts, n_users)


class Lookup(NamedTuple):
    """Working memory to look up items of a truth."""

    order: Array  # int64 (longest truth,)
    spare: Array  # int64 (longest truth,)
    none: Array  # float64 (longest truth,)
    present: Array  # uint64 (WORDS,): a bit for each hash of an item


@helper
def find_clicks(recs, truth, u, deepest, lookup, ranks, rows):
    """Write the ranks of a user's hits within the rank `deepest`, and their rows of the truth; return how many."""
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
            ranks[found] = j + 1
            rows[found] = start + at
            found += 1
    return found


def sum_clicks(recs, truth, wanted, first, last):
    """Sum over the hits of users, as `wanted` says."""
    n, deepest = longest_row(truth.indptr, first, last), wanted.discounts.shape[1]
    lookup = Lookup(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.zeros(WORDS, np.uint64))
    ranks, rows = np.empty(n, np.int64), np.empty(n, np.int64)
    for u in range(first, last):
        found = find_clicks(recs, truth, u, deepest, lookup, ranks, rows)
        for series in range(len(wanted.sources)):
            weights, discounts = wanted.weights[wanted.sources[series]], wanted.discounts[series]
            total, at = 0.0, 0
            for c in range(len(wanted.cuts)):
                while at < found and ranks[at] <= wanted.cuts[c]:
                    total += weights[rows[at]] * discounts[ranks[at] - 1]
                    at += 1
                wanted.sums[series, c, u] = total


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


def add_digits(bits, squares, digits):
    """Add the significands of doubles from 0 by exponent, their upper and lower half: into digits (2, EXPONENTS, 2).

    `bits` are those of numbers, `squares` those of their squares.
    """
    for at in range(len(bits)):
        for of in range(2):
            number = squares[at] if of else bits[at]
            exponent = number >> 52
            significand = number & ((1 << 52) - 1)
            if exponent > 0:
                significand |= 1 << 52
            digits[of, exponent, 0] += significand >> 26
            digits[of, exponent, 1] += significand & ((1 << 26) - 1)

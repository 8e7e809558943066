"""Clicks of users in their lists, and sums of the weights of clicks.

Kernels that take tasks first..last-1 write what belongs to users edges[task]..edges[task + 1]-1 of each task.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .hits import sort_descending
from .items import find_all, new_lookup
from .jit import njit, prange
from .list_order import longest_row

Array = np.ndarray[Any, Any]
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


@njit(allocates=True)
def sum_clicks_of_users(recs, truth, wanted, first, last):
    """Write the sums of some users."""
    weights, sources, discounts, cuts, sums = wanted
    (items, indptr), (known, known_indptr), deepest = recs, truth, discounts.shape[1]
    lookup, n = new_lookup(longest_row(known_indptr, first, last)), min(longest_row(indptr, first, last), deepest)
    at_hits, rows = np.empty(n, np.int64), np.empty(n, np.int64)
    for u in range(first, last):
        start = known_indptr[u]
        row = items[indptr[u] : min(indptr[u] + deepest, indptr[u + 1])]
        found = find_all(row, known[start : known_indptr[u + 1]], lookup, at_hits, rows)
        for series in range(len(sources)):
            source, total, at = sources[series], 0.0, 0
            for c in range(len(cuts)):
                while at < found and at_hits[at] < cuts[c]:
                    total += weights[source, start + rows[at]] * discounts[series, at_hits[at]]
                    at += 1
                sums[series, c, u] = total


@njit(parallel=True, cache=True)
def sum_clicks(first, last, edges, recs, recs_indptr, truth, truth_indptr, weights, sources, discounts, cuts, sums):
    """Sum over the hits of users, as `ClickSums` says: into sums (n_series, n_cuts, n_users)."""
    for task in prange(first, last):
        lists, wanted = UserItems(recs, recs_indptr), ClickSums(weights, sources, discounts, cuts, sums)
        sum_clicks_of_users(lists, UserItems(truth, truth_indptr), wanted, edges[task], edges[np.int64(task) + 1])


@njit(allocates=True)
def sum_weights_of_users(weights, indptr, sums, first, last):
    """Write the sums of some users."""
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


@njit(parallel=True, cache=True)
def sum_weights(first, last, edges, weights, indptr, sums):
    """Sum the weights of the rows of each user in ascending order, so that the order of rows has no effect."""
    for task in prange(first, last):
        sum_weights_of_users(weights, indptr, sums, edges[task], edges[np.int64(task) + 1])


@njit(cache=True)
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

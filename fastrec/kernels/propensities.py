"""Clicks of users in their lists, and sums of the weights of clicks.

Each function works on a range of users, so that ranges can run in threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.hits import sort_descending
from fastrec.kernels.list_order import find, longest_row, sort_by_id

Array = np.ndarray[Any, Any]
FEW_ITEMS = 16  # of a truth; more are looked up in their order, by halving
GOLDEN = 0x9E3779B97F4A7C15


class Rows(NamedTuple):
    """Lists, or a truth, of all users."""

    items: Array
    indptr: Array  # int64 (n_users + 1,)


class Clicks(NamedTuple):
    """Hits of users in their lists, by rank. Those of a user begin at the user's first row of the truth."""

    ranks: Array  # int64 (n_truth_rows,), from 1
    sources: Array  # int64 (n_truth_rows,): rows of the truth
    counts: Array  # int64 (n_users,)


def find_clicks(recs, truth, deepest, clicks, first, last):
    """Write the hits of users within the rank `deepest`."""
    truth_indptr, indptr = truth.indptr, recs.indptr
    n_truth = longest_row(truth_indptr, first, last)
    order = np.empty(n_truth, np.int64)
    spare = np.empty(n_truth, np.int64)
    none = np.empty(n_truth)
    for u in range(first, last):
        start = truth_indptr[u]
        own = truth.items[start : truth_indptr[u + 1]]
        if len(own) > FEW_ITEMS:
            sort_by_id(order, spare, own, none)
        present = np.uint64(0)  # a bit for each hash of an item of the truth
        for i in range(len(own)):
            present |= np.uint64(1) << (np.uint64(own[i]) * np.uint64(GOLDEN) >> np.uint64(58))
        found = 0
        row = recs.items[indptr[u] : min(indptr[u] + deepest, indptr[u + 1])]
        for j in range(len(row)):
            item = row[j]
            if present >> (np.uint64(item) * np.uint64(GOLDEN) >> np.uint64(58)) & np.uint64(1) == 0:
                continue
            at = -1
            if len(own) > FEW_ITEMS:
                at = find(item, own, order, len(own))
            else:
                for i in range(len(own)):
                    if own[i] == item:
                        at = i
                        break
            if at >= 0 and found < len(own):  # a copy in the list, which the evaluation rejects, may come again
                clicks.ranks[start + found] = j + 1
                clicks.sources[start + found] = start + at
                found += 1
        clicks.counts[u] = found


def sum_clicks(clicks, truth_indptr, weights, cuts, discounts, sums, first, last):
    """Sum weights of rows of the truth that are clicks, times the discount of their rank, up to the cut-offs: into sums (n_cuts, n_users)."""
    for u in range(first, last):
        total = 0.0
        at = truth_indptr[u]
        end = at + clicks.counts[u]
        for c in range(len(cuts)):
            while at < end and clicks.ranks[at] <= cuts[c]:
                total += weights[clicks.sources[at]] * discounts[clicks.ranks[at] - 1]
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

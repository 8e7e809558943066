"""Pairs of rows with different labels, by merging: how many have their scores in the same order; ranks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import njit
from .runs import NO_SUM, added

Array = np.ndarray[Any, Any]


@njit
def rising_pairs(labels, weights, spare_labels, spare_weights):
    """Return the sum over i < j with labels[i] < labels[j] of the products of their weights, and sort by label.

    Both runs of a merge are ascending, so all rows of the left one that were passed are below the next of the right.
    """
    n = len(labels)
    total = weights[:0].sum()
    width = 1
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle, stop = start + width, min(start + 2 * width, n)
            below = weights[:0].sum()
            i, at = start, start
            for j in range(middle, stop):
                while i < middle and labels[i] < labels[j]:
                    below += weights[i]
                    spare_labels[at], spare_weights[at] = labels[i], weights[i]
                    i, at = i + 1, at + 1
                total += below * weights[j]
                # equal labels of the left run may follow: their order changes no sum
                spare_labels[at], spare_weights[at] = labels[j], weights[j]
                at += 1
            while i < middle:
                spare_labels[at], spare_weights[at] = labels[i], weights[i]
                i, at = i + 1, at + 1
            for k in range(start, stop):
                labels[k], weights[k] = spare_labels[k], spare_weights[k]
        width *= 2
    return total


@njit
def pairs_of_runs(keys, weights, start, stop):
    """Return the sum over pairs of rows with different keys, where equal keys are neighbours, of their weights."""
    total = weights[:0].sum()
    before = weights[:0].sum()
    i = start
    while i < stop:
        key, own = keys[i], weights[i]
        i += 1  # a NaN is not equal to itself
        while i < stop and keys[i] == key:
            own += weights[i]
            i += 1
        total += before * own
        before += own
    return total


@njit(cache=True)
def count_pairs_of_users(indptr, labels, scores, weights, spare, sums):
    """Write for each user the pairs with different labels whose scores rise with them, are tied, and all of them.

    A fourth row takes the pairs with different scores. Rows of a user are in ascending order of (score, label);
    `labels` and `weights` are put in another order. `spare` are arrays like them, of the length of the longest user.
    `sums` is (4, n_users).
    """
    for u in range(len(indptr) - 1):
        start, stop = indptr[u], indptr[u + 1]
        first = start
        tied = weights[:0].sum()
        while first < stop:
            last = first + 1
            while last < stop and scores[last] == scores[first]:
                last += 1
            tied += pairs_of_runs(labels, weights, first, last)
            first = last
        sums[3, u] = pairs_of_runs(scores, weights, start, stop)
        own, of_rows = labels[start:stop], weights[start:stop]
        rising = rising_pairs(own, of_rows, spare[0], spare[1])
        sums[0, u] = rising - tied  # rows of a tie are in the order of their labels
        sums[1, u] = tied
        sums[2, u] = pairs_of_runs(labels, weights, start, stop)


@njit(cache=True)
def rank_rows_of_users(indptr, values, weights, order, ranks):
    """Write the rank of each row among those of its user, less their mean, and twice that; equal values share a rank.

    `order` has the rows of each user by ascending value. A row counts as often as its weight says.
    """
    for u in range(len(indptr) - 1):
        start, stop = indptr[u], indptr[u + 1]
        total = 0.0
        for at in range(start, stop):
            total += weights[order[at]]
        below = 0.0
        first = start
        while first < stop:
            value, last, tied = values[order[first]], first, 0.0
            while last < stop and (last == first or values[order[last]] == value):  # a NaN is not equal to itself
                tied += weights[order[last]]
                last += 1
            for at in range(first, last):
                ranks[order[at]] = 2.0 * below + tied - total
            below += tied
            first = last


@njit(cache=True)
def multiply_ranks_of_users(indptr, labels, scores, weights, sums):
    """Write for each user the weighted sums of the products of two ranks: of label and score, labels, scores.

    `sums` is (3, n_users).
    """
    for u in range(len(indptr) - 1):
        both, of_labels, of_scores = NO_SUM, NO_SUM, NO_SUM
        for at in range(indptr[u], indptr[u + 1]):
            label, score, weight = labels[at], scores[at], weights[at]
            both = added(both, weight * (label * score))
            of_labels = added(of_labels, weight * (label * label))
            of_scores = added(of_scores, weight * (score * score))
        sums[0, u] = both[0] + (both[1] + both[2])
        sums[1, u] = of_labels[0] + (of_labels[1] + of_labels[2])
        sums[2, u] = of_scores[0] + (of_scores[1] + of_scores[2])

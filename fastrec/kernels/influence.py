"""Effects of users' rows on metrics of the order of all rows: each row is found among the distinct scores.

A row is searched among the scores of its *bin*, one of many equally wide ranges of scores, so that most rows need a few
steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .sorting import sum_before

Array = np.ndarray[Any, Any]
ROWS_PER_BLOCK = 256  # whose loads from memory overlap


class Guide(NamedTuple):
    """Distinct scores, ascending; those of bin b are at `starts[b]` to `starts[b + 1] - 1`."""

    scores: Array  # float64 (n,)
    starts: Array  # int64 (n_bins + 1,)
    lowest: float  # half of the lowest finite score
    factor: float  # bins per half of a score
    shift: int  # bin b is in part `b >> shift` of the bins


@njit
def bin_of(score, lowest, factor, n_bins):
    """Return the bin of a score; halves of scores have a finite distance."""
    at = (score * 0.5 - lowest) * factor
    if not at > 0.0:  # NaN is minus infinity times 0
        return 0
    return np.int64(at) if at < n_bins else n_bins - 1


@njit
def find_scores(known, scores, first, low, high, n):
    """Write the positions of n scores, from the first, to `low`.

    A score that is not there, as the weights of its rows are too small, has the position of a neighbour. Each loop
    takes one step for all scores, so that their loads from memory overlap.
    """
    last = len(known.scores) - 1
    for i in range(n):
        low[i] = bin_of(np.float64(scores[first + i]), known.lowest, known.factor, len(known.starts) - 1)
    for i in range(n):
        own = low[i]
        low[i] = known.starts[own]
        high[i] = known.starts[own + 1]
    longest = np.int64(2)
    while longest > 1:
        longest = np.int64(1)
        for i in range(n):
            middle = min((low[i] + high[i]) >> 1, last)
            reached = known.scores[middle] <= np.float64(scores[first + i])
            low[i] = middle if reached else low[i]
            high[i] = high[i] if reached else middle
            longest = max(longest, high[i] - low[i])
    for i in range(n):
        low[i] = min(low[i], last)


@njit
def part_of(known, score):
    """Return the part of the bins that a score is in."""
    own = bin_of(np.float64(score), known.lowest, known.factor, len(known.starts) - 1)
    return own >> known.shift


@njit
def count_classes_of_users(positive, indptr, weights, members, classes):
    """Do as `count_classes` does for some users."""
    for i in range(len(members)):
        rows, positives = np.int64(0), np.int64(0)
        for row in range(indptr[members[i]], indptr[members[i] + 1]):
            if len(weights) == 0 or weights[row] > 0.0:
                rows += 1
                positives += positive[row]
        classes[i, 0], classes[i, 1] = rows - positives, positives


@njit(parallel=True, cache=True)
def count_classes(first, last, positive, indptr, weights, members, edges, classes):
    """Count the negative and positive rows of the users edges[r]..edges[r + 1]-1 of ranges first..last-1.

    User i is `members[i]` and has a row of `classes`, int64 (n_users, 2). Rows of weight 0 are none; `weights` is of
    length 0 if all are 1.
    """
    for task in prange(first, last):
        start, end = edges[np.int64(task)], edges[np.int64(task) + 1]
        count_classes_of_users(positive, indptr, weights, members[start:end], classes[start:end])


@njit
def count_parts(known, scores, indptr, weights, members, places):
    """Count the rows of users in each part of the bins; return how many there are."""
    for i in range(len(members)):
        for row in range(indptr[members[i]], indptr[members[i] + 1]):
            if len(weights) == 0 or weights[row] > 0.0:
                places[part_of(known, scores[row])] += 1
    return sum_before(places)


@njit
def move_rows(known, positive, scores, indptr, weights, members, places, moved):
    """Move the rows of users to the next place of their part: their scores, `user << 1 | class`, and weights."""
    to_scores, to_owners, to_weights = moved
    for i in range(len(members)):
        for row in range(indptr[members[i]], indptr[members[i] + 1]):
            if len(weights) == 0 or weights[row] > 0.0:
                part = part_of(known, scores[row])
                place = places[part]
                places[part] = place + 1
                to_scores[place] = scores[row]
                to_owners[place] = i << 1 | (1 if positive[row] else 0)
                if len(weights) > 0:
                    to_weights[place] = weights[row]


@njit(allocates=True)
def add_slopes_of_users(known, slopes, factor, positive, scores, indptr, weights, members, sums):
    """Do as `add_slopes` does for some users. Rows of a part of the bins are looked up together: it fits a cache."""
    n_rows = np.int64(0)
    for i in range(len(members)):
        sums[i] = 0
        n_rows += indptr[members[i] + 1] - indptr[members[i]]
    own_scores, owners = np.empty(n_rows, scores.dtype), np.empty(n_rows, np.uint32)  # users at once are few
    own_weights = np.empty(n_rows if len(weights) > 0 else 0, weights.dtype)
    places = np.zeros(((len(known.starts) - 2) >> known.shift) + 1, np.int64)
    n_rows = count_parts(known, scores, indptr, weights, members, places)
    move_rows(known, positive, scores, indptr, weights, members, places, (own_scores, owners, own_weights))
    low, high = np.empty(ROWS_PER_BLOCK, np.int64), np.empty(ROWS_PER_BLOCK, np.int64)
    for first in range(0, n_rows, ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, n_rows - first)
        find_scores(known, own_scores, first, low, high, n)
        for i in range(n):
            owner = np.int64(owners[first + i])
            weight = 1.0
            if len(weights) > 0:
                weight = own_weights[first + i]
            sums[owner >> 1] += np.int64(np.rint(weight * slopes[low[i], owner & 1] * factor))


@njit(parallel=True, cache=True)
def add_slopes(first, last, known, slopes, factor, positive, scores, indptr, weights, members, edges, sums):
    """Write the sums of the slopes of users' rows, times weights and `factor`, as integers: the same in any order.

    They are written for users edges[r]..edges[r + 1]-1 of ranges first..last-1: user i is `members[i]`, and `sums` is
    int64 (n_users,). `slopes` is float64 (n, 2), by class: 0 for negative rows. `weights` is of length 0 if all are 1.
    """
    for task in prange(first, last):
        start, end = edges[np.int64(task)], edges[np.int64(task) + 1]
        own, to = members[start:end], sums[start:end]
        add_slopes_of_users(known, slopes, factor, positive, scores, indptr, weights, own, to)

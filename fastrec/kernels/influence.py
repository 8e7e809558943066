"""Effects of users' rows on metrics of the order of all rows: each row is found among the distinct scores.

A row is searched among the scores of its *bin*, one of many equally wide ranges of scores, so that most rows need a few
steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange

Array = np.ndarray[Any, Any]
ROWS_PER_BLOCK = 256  # whose loads from memory overlap


class Guide(NamedTuple):
    """Distinct scores, ascending; those of bin b are at `starts[b]` to `starts[b + 1] - 1`."""

    scores: Array  # float64 (n,)
    starts: Array  # int64 (n_bins + 1,)
    lowest: float  # half of the lowest finite score
    factor: float  # bins per half of a score


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


@njit(allocates=True)
def take_slopes_of_rows(known, slopes, factor, positive, scores, weights, values):
    """Do as `take_slopes` does for some rows."""
    low, high = np.empty(ROWS_PER_BLOCK, np.int64), np.empty(ROWS_PER_BLOCK, np.int64)
    for first in range(0, len(scores), ROWS_PER_BLOCK):
        n = min(ROWS_PER_BLOCK, len(scores) - first)
        find_scores(known, scores, first, low, high, n)
        for i in range(n):
            row = first + i
            weight = 1.0
            if len(weights) > 0:
                weight = weights[row]
            values[row] = np.int64(np.rint(weight * slopes[low[i], 1 if positive[row] else 0] * factor))


@njit(parallel=True, cache=True)
def take_slopes(first, last, known, slopes, factor, positive, scores, weights, edges, values):
    """Write the slope of each row, times its weight and `factor`, as an integer: their sums are the same in any order.

    Ranges first..last-1 have rows edges[r]:edges[r + 1]. `slopes` is float64 (n, 2), by class: 0 for negative rows.
    `weights` is of length 0 if all are 1.
    """
    for task in prange(first, last):
        start, end = edges[np.int64(task)], edges[np.int64(task) + 1]
        own = weights[start:end]
        to = values[start:end]
        take_slopes_of_rows(known, slopes, factor, positive[start:end], scores[start:end], own, to)

"""Effects of users' rows on metrics of the order of all rows: each row is found among the distinct scores.

A row is searched among the scores of its *bin*, one of many equally wide ranges of scores, so that most rows need a few
steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


class OwnRows(NamedTuple):
    """Rows of users of one batch."""

    positive: Array  # bool (n_rows,)
    scores: Array  # float32 or float64
    indptr: Array  # int64 (n_users + 1,)


class Guide(NamedTuple):
    """Distinct scores, ascending; those of bin b are at `starts[b]` to `starts[b + 1] - 1`."""

    scores: Array  # float64 (n,)
    starts: Array  # int64 (n_bins + 1,)
    lowest: float  # half of the lowest finite score
    factor: float  # bins per half of a score
    shift: int  # bin b is in part `b >> shift` of the bins


def write_slopes_of_auc(negatives, positives, sums, area, slopes):
    """Write the slopes of the area under the ROC curve, float64 (n, 2): of negative and positive rows of each score.

    `negatives` and `positives` are the rows or weights of each score, ascending, and `sums` (2,) their sums.
    """
    n_negatives, n_positives = sums
    below = negatives.dtype.type(0)
    for i in range(len(slopes)):
        below += negatives[i]
        slopes[i, 1] = ((below - negatives[i] / 2) / n_negatives - area) / n_positives
    above = positives.dtype.type(0)
    for i in range(len(slopes) - 1, -1, -1):
        above += positives[i]
        slopes[i, 0] = ((above - positives[i] / 2) / n_positives - area) / n_negatives


def add_bounds(slopes, negatives, positives, bounds):
    """Add the slopes of all rows, whatever their signs: float64 (n, 2, n_metrics) to (n_metrics,)."""
    for i in range(len(slopes)):
        for m in range(len(bounds)):
            bounds[m] += abs(slopes[i, 0, m]) * negatives[i] + abs(slopes[i, 1, m]) * positives[i]


@helper
def bin_of(score, lowest, factor, n_bins):
    """Return the bin of a score; halves of scores have a finite distance."""
    at = (score * 0.5 - lowest) * factor
    if not at > 0.0:  # NaN is minus infinity times 0
        return 0
    return np.int64(at) if at < n_bins else n_bins - 1


def write_starts(scores, lowest, factor, starts):
    """Write where the scores of each bin begin."""
    n_bins = len(starts) - 1
    done = 0
    for i in range(len(scores)):
        own = bin_of(scores[i], lowest, factor, n_bins)
        while done <= own:
            starts[done] = i
            done += 1
    while done <= n_bins:
        starts[done] = len(scores)
        done += 1


@helper
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


@helper
def part_of(known, score):
    """Return the part of the bins that a score is in."""
    own = bin_of(np.float64(score), known.lowest, known.factor, len(known.starts) - 1)
    return own >> known.shift


@helper
def count_parts(known, log, weights, members, places, classes):
    """Count the rows of users in each part of the bins, and note their classes."""
    for i in range(len(members)):
        u = members[i]
        classes[i, 0] = False
        classes[i, 1] = False
        for row in range(log.indptr[u], log.indptr[u + 1]):
            if weights is not None:
                if not weights[row] > 0.0:
                    continue
            places[part_of(known, log.scores[row])] += 1
            classes[i, 1 if log.positive[row] else 0] = True


@helper
def move_rows(known, log, weights, members, places, moved):
    """Move the rows of users to the next place of their part: their scores, `user << 1 | class`, and weights."""
    scores, owners, own_weights = moved
    for i in range(len(members)):
        u = members[i]
        for row in range(log.indptr[u], log.indptr[u + 1]):
            if weights is not None:
                if not weights[row] > 0.0:
                    continue
            part = part_of(known, log.scores[row])
            place = places[part]
            places[part] = place + 1
            scores[place] = log.scores[row]
            owners[place] = i << 1 | (1 if log.positive[row] else 0)
            if weights is not None:
                own_weights[place] = weights[row]


def add_effects(known, slopes, factors, log, weights, members, room, found):
    """Write the effects of the rows of users on metrics, and which classes these rows are of.

    `slopes` is float64 (n, 2, n_metrics), by class: 0 for negative rows. `weights` is None or those of rows. User i is
    `members[i]`; `found` has effects times `factors`, int64 (n_users, n_metrics), which are the same for any order of
    the rows, and classes, bool (n_users, 2). `room` has arrays for the places of parts, for the moved rows, and for
    the positions of some scores. Rows of a part of the bins are looked up together: that part fits a cache.
    """
    places, moved, low, high = room
    scores, owners, own_weights = moved
    effects, classes = found
    count_parts(known, log, weights, members, places, classes)
    n_rows = 0
    for part in range(len(places)):
        count = places[part]
        places[part] = n_rows
        n_rows += count
    move_rows(known, log, weights, members, places, moved)
    for i in range(len(members)):
        for m in range(effects.shape[1]):
            effects[i, m] = 0
    for first in range(0, n_rows, len(low)):
        n = min(len(low), n_rows - first)
        find_scores(known, scores, first, low, high, n)
        for i in range(n):
            owner = np.int64(owners[first + i])
            weight = 1.0
            if weights is not None:
                weight = own_weights[first + i]
            for m in range(effects.shape[1]):
                effects[owner >> 1, m] += np.int64(np.rint(weight * slopes[low[i], owner & 1, m] * factors[m]))

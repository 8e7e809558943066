"""Effects of rows on metrics of the order of all rows, from which clustered errors and paired tests follow.

The *slope* of a metric in the weight of a row depends on its class and its score only. The slopes of all rows, times
their weights, add to 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrec.inputs.ragged import chosen_rows, read_only
from fastrec.kernels.sorting import write_values
from fastrec.metrics.intervals import NO_ERROR, RowError
from fastrec.runtime.launcher import call
from fastrec.runtime.threads import once, run_in_threads
from fastrec.scored.areas import Pairs, pairs_by_score
from fastrec.scored.sorting import Runs, scores_of, sort_in_buckets

Array = np.ndarray[Any, Any]
SUM_BITS, LARGEST_EXPONENT = 61, 1000  # of sums in 64 bits; of factors
PAIR_BITS = 62  # of twice the pairs of all rows


@dataclass(frozen=True)
class BatchRows:
    """Rows of users of one batch."""

    positive: Array  # bool (n_rows,)
    scores: Array  # float32 or float64
    weights: Array | None
    indptr: Array  # int64 (n_users + 1,)
    n_threads: int

    def of_users(self, members: Array) -> BatchRows:
        """Return the rows of some users, given by their ascending positions."""
        first, last = int(members[0]), int(members[-1]) + 1
        if last - first == len(members):
            indptr = self.indptr[first : last + 1]
            own: Any = slice(*indptr[[0, -1]].tolist())
            indptr = indptr - indptr[0]
        else:
            own, indptr = chosen_rows(self.indptr, members)
        weights = None if self.weights is None else self.weights[own]
        return BatchRows(self.positive[own], self.scores[own], weights, indptr, self.n_threads)

    def sums(self, values: Array) -> Array:
        """Return the sums of integers of the rows of each user, int64 (n_users,)."""
        sums, having = np.zeros(len(self.indptr) - 1, np.int64), np.diff(self.indptr) > 0
        sums[having] = np.add.reduceat(values, self.indptr[:-1][having], dtype=np.int64)
        return sums

    @once
    def classes(self) -> Array:
        """The negative and positive rows of users, int64 (n_users, 2); rows of weight 0 are none."""
        sizes, positive = np.diff(self.indptr), self.positive
        if self.weights is not None:
            sizes, positive = self.sums(self.weights > 0), positive & (self.weights > 0)
        positives = self.sums(positive)
        return np.stack([sizes - positives, positives], axis=1)


# Slopes


def pairs_of_scores(runs: Runs, shift: int) -> Array:
    """Return twice the ordered pairs of a negative and a positive row of each score, ties half: float64 (n, 2).

    They are rounded to multiples of `2 ** shift` and divided by it.
    """
    pairs = np.empty((len(runs.scores), 2))
    for column, counts in enumerate(pairs_by_score(runs.positives, runs.negatives)):
        pairs[:, column] = (counts + (1 << shift - 1)) >> shift if shift else counts
    return pairs


def slopes_of_auc(runs: Runs, area: float) -> Array:
    """Return the slopes of the area under the ROC curve in the weights of rows, float64 (n, 2)."""
    slopes, sizes = np.empty((len(runs.scores), 2)), (runs.negatives.sum(), runs.positives.sum())
    for column, pairs in enumerate(pairs_by_score(runs.positives, runs.negatives)):
        slopes[:, column] = (pairs / 2 / sizes[1 - column] - area) / sizes[column]
    return slopes


def slopes_of_precision(runs: Runs, area: float) -> Array:
    """Return the slopes of average precision, the mean over positives of the precision at their score.

    A row changes the precision at all scores up to its own, and a positive row is one more in the mean.
    """
    true, false = (np.cumsum(own[::-1])[::-1].astype(np.float64) for own in (runs.positives, runs.negatives))
    reached = true + false
    share = runs.positives / reached / reached
    slopes = np.empty((len(runs.scores), 2))
    slopes[:, 1] = (true / reached - area + np.cumsum(share * false)) / true[0]
    slopes[:, 0] = -np.cumsum(share * true) / true[0]
    return slopes


def squares_by_class(runs: Runs, slopes: Array) -> list[float]:
    """Return the sums over negative and over positive rows of the squares of their slopes times their weights."""
    columns = zip(slopes.T, (runs.negative_squares, runs.positive_squares), strict=True)
    return [float((own**2 * squares).sum()) for own, squares in columns]


def error_of_rows(runs: Runs, slopes: Array) -> RowError:
    """Return the standard error of a metric of independent rows, from its slopes; NaN for a class of fewer than two."""
    least, n_rows = min(runs.negative_rows, runs.positive_rows), runs.negative_rows + runs.positive_rows
    if least < 2:
        return NO_ERROR
    return RowError(math.sqrt(sum(squares_by_class(runs, slopes)) * n_rows / (n_rows - 1)), float(n_rows - 1), least)


# Effects


def factor_for(slopes: Array, runs: Runs) -> float:
    """Return a power of 2 that makes the slopes of all rows, whatever their signs, fill most bits of an integer."""
    bound = float((np.abs(slopes[:, 0]) * runs.negatives + np.abs(slopes[:, 1]) * runs.positives).sum())
    return math.ldexp(1.0, min(SUM_BITS - math.frexp(bound)[1], LARGEST_EXPONENT))


def values_of_rows(scores: Array, table: Array, factor: float, rows: BatchRows) -> Array:
    """Return the numbers of rows, times their weights and a factor, as integers (n_rows,): they add in any order.

    `table`, float64 (n, 2), has the numbers of negative and positive rows of each of the distinct scores, ascending.
    """
    order, values = np.empty(len(rows.scores), np.uint64), np.empty(len(rows.scores), np.int64)
    keys, buckets = sort_in_buckets(rows.positive, rows.scores, rows.n_threads, order)
    weights, parts = np.empty(0) if rows.weights is None else rows.weights, buckets.parts()
    given = *map(read_only, (weights, scores, table)), factor, values

    def write(at: int) -> None:
        own, below = keys[parts[at]], parts[at].start < buckets.n_below
        columns = own, scores_of(own >> 1, below=below), order[parts[at]]
        call(write_values, *map(read_only, columns), *given, work=8 * len(own))

    run_in_threads(write, range(len(parts)), rows.n_threads)
    return values


def spare_bits(n_rows: int) -> int:
    """Return the last bits that counts of pairs lose, so that those of so many rows add up in 63 bits; mostly 0."""
    return max(0, 2 * n_rows.bit_length() - PAIR_BITS)


def effects_on_auc(sums: Array, shift: int, classes: Array, pairs: Pairs) -> Array:
    """Return the effects of users, from twice the ordered pairs that their rows are in: float64 (n_users,).

    The slope of a row is its placement less the area (DeLong et al. 1988), over the rows of its class. `sums` are
    divided by `2 ** shift`. Pairs that all users order alike give exactly 0.
    """
    positives, negatives, twice = map(float, (pairs.positives, pairs.negatives, pairs.twice))
    size = 2.0 * positives * negatives
    expected = classes[:, 0] * positives + classes[:, 1] * negatives
    return (sums * math.ldexp(1.0, shift) - 2.0 * twice / size * expected) / size

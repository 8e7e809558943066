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
from fastrec.kernels import influence as kernels
from fastrec.metrics.intervals import NO_ERROR, RowError
from fastrec.runtime.launcher import edges_of, launch
from fastrec.runtime.threads import once
from fastrec.scored.areas import Pairs
from fastrec.scored.sorting import Runs

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
    below, above = np.cumsum(runs.negatives), np.cumsum(runs.positives[::-1])[::-1]
    for column, counts in ((0, 2 * above - runs.positives), (1, 2 * below - runs.negatives)):
        pairs[:, column] = (counts + (1 << shift - 1)) >> shift if shift else counts
    return pairs


def slopes_of_auc(runs: Runs, area: float) -> Array:
    """Return the slopes of the area under the ROC curve in the weights of rows, float64 (n, 2)."""
    slopes = np.empty((len(runs.scores), 2))
    n_negatives, n_positives = runs.negatives.sum(), runs.positives.sum()
    below, above = np.cumsum(runs.negatives), np.cumsum(runs.positives[::-1])[::-1]
    slopes[:, 1] = ((below - runs.negatives / 2) / n_negatives - area) / n_positives
    slopes[:, 0] = ((above - runs.positives / 2) / n_positives - area) / n_negatives
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


def error_of_rows(runs: Runs, slopes: Array) -> RowError:
    """Return the standard error of a metric of independent rows, from its slopes; NaN for a class of fewer than two."""
    if min(runs.negative_rows, runs.positive_rows) < 2:
        return NO_ERROR
    n_rows = runs.negative_rows + runs.positive_rows
    squares = slopes**2
    spread = (squares[:, 0] * runs.negative_squares).sum() + (squares[:, 1] * runs.positive_squares).sum()
    least = min(runs.negative_rows, runs.positive_rows)
    return RowError(math.sqrt(float(spread) * n_rows / (n_rows - 1)), float(n_rows - 1), least)


# Effects


def guide_to(scores: Array) -> kernels.Guide:
    """Return distinct, ascending scores with their bins."""
    finite = scores[np.searchsorted(scores, -np.inf, "right") : np.searchsorted(scores, np.inf)]
    lowest, highest = (float(finite[at]) / 2 for at in (0, -1)) if len(finite) else (0.0, 0.0)
    n_bins = max(1, len(scores))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factor = float(np.float64(n_bins) / np.float64(highest - lowest))
        factor = factor if math.isfinite(factor) else 0.0
        bins = np.nan_to_num((scores / 2 - lowest) * factor, nan=0.0, posinf=n_bins, neginf=0.0)
    sizes = np.bincount(np.clip(bins, 0, n_bins - 1).astype(np.int64), minlength=n_bins)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return kernels.Guide(read_only(scores), read_only(starts), lowest, factor)


def factor_for(slopes: Array, runs: Runs) -> float:
    """Return a power of 2 that makes the slopes of all rows, whatever their signs, fill most bits of an integer."""
    bound = float((np.abs(slopes[:, 0]) * runs.negatives + np.abs(slopes[:, 1]) * runs.positives).sum())
    return math.ldexp(1.0, min(SUM_BITS - math.frexp(bound)[1], LARGEST_EXPONENT))


def sums_of_users(known: kernels.Guide, slopes: Array, factor: float, rows: BatchRows) -> Array:
    """Return the sums of the slopes of users' rows times their weights and a factor, int64 (n_users,).

    `slopes` is (n, 2), of negative and positive rows of each score. Rows are rounded, so that the sums are the same
    for any order of rows.
    """
    n = len(rows.scores)
    weights, edges = np.empty(0) if rows.weights is None else rows.weights, edges_of(n, rows.n_threads)
    values = np.empty(n, np.int64)
    columns = map(read_only, (rows.positive, rows.scores, weights, edges))
    given = (known, read_only(slopes), factor, *columns, values)
    launch(kernels.take_slopes, len(edges) - 1, *given, work=8 * n, n_threads=rows.n_threads)
    return rows.sums(values)


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

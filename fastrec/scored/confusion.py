"""Confusion matrices at thresholds of the score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import is_number
from fastrec.exceptions import InputError, shown
from fastrec.inputs.arrow import refuse_other_indexes
from fastrec.inputs.columns import (
    check_classes,
    check_lengths,
    check_numbers,
    check_row_weights,
    check_scores,
    refuse_nan,
)
from fastrec.inputs.ragged import as_array, check_indptr, read_only
from fastrec.kernels.confusion import count_users
from fastrec.metrics import confusion as formulas
from fastrec.metrics.statistics import ratio
from fastrec.runtime.launcher import launch
from fastrec.runtime.limits import resolve_threads
from fastrec.show.numbers import rate, shown_count
from fastrec.show.tables import Table
from fastrec.show.text import as_text

Floats = NDArray[np.float64]
Array = np.ndarray[Any, Any]
MAX_BETA = 1000.0
MAX_THRESHOLDS = 1 << 24
ROWS_PER_BLOCK = 1 << 16
MAX_BLOCKS = 64
MAX_BLOCK_CELLS = 1 << 22  # blocks times thresholds
SHOWN = 20  # rows of a table in `repr`


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Confusion:
    """Rows counted by label and by whether their score reaches a threshold, as returned by `confusion_matrix`.

    Attributes
    ----------
    thresholds : float64 (T,), in the order passed.
    tp, fp, fn, tn : int64 (T,), or (n_users, T) with `indptr`; float64 sums of weights with `sample_weight`.
        `tp` are the rows with label 1 and score >= threshold, `fp` those with label 0, `fn` and `tn` the rows below
        the threshold with labels 1 and 0.

    Every method returns a float64 array of the shape of `tp`. Its value for a denominator of 0 is `zero_division`: 0, 1
    or nan.

    Examples
    --------
    >>> fastrec.confusion_matrix([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1], [0.5, 0.25])
    threshold  tp  fp  fn  tn  precision  recall
          0.5   1   1   1   1     0.5000  0.5000
         0.25   2   1   0   1     0.6667  1.0000
    """

    thresholds: Floats
    tp: Array
    fp: Array
    fn: Array
    tn: Array

    def precision(self, zero_division: float = 0.0) -> Floats:
        """Return the share of the rows at or above the threshold that are positive: tp / (tp + fp)."""
        return self._share(formulas.precision, zero_division)

    def recall(self, zero_division: float = 0.0) -> Floats:
        """Return the share of the positives that are at or above the threshold: tp / (tp + fn)."""
        return self._share(formulas.recall, zero_division)

    def specificity(self, zero_division: float = 0.0) -> Floats:
        """Return the share of the negatives that are below the threshold: tn / (tn + fp)."""
        return self._share(formulas.specificity, zero_division)

    def fpr(self, zero_division: float = 0.0) -> Floats:
        """Return the false positive rate, the share of the negatives at or above the threshold: fp / (fp + tn)."""
        return self._share(formulas.fpr, zero_division)

    def accuracy(self, zero_division: float = 0.0) -> Floats:
        """Return the share of the rows on the correct side of the threshold: (tp + tn) / (tp + fp + fn + tn)."""
        return self._share(formulas.accuracy, zero_division)

    def f_beta(self, beta: float = 1.0, zero_division: float = 0.0) -> Floats:
        """Return the weighted harmonic mean of precision and recall (van Rijsbergen 1979, ch. 7).

        (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp), with beta from 0 to 1000.
        """
        square = check_beta(beta) ** 2
        return self._share(lambda cells: formulas.f_beta(cells, square), zero_division)

    def mcc(self, zero_division: float = 0.0) -> Floats:
        """Return the correlation of label and prediction (Matthews 1975).

        (tp tn - fp fn) / sqrt((tp + fp) (tp + fn) (tn + fp) (tn + fn)).
        """
        return np.asarray(self._share(formulas.CountedCells.mcc, zero_division).clip(-1.0, 1.0))

    def _share(self, formula: Callable[[formulas.CountedCells], formulas.Share], zero_division: float) -> Floats:
        """Return the share of a formula; `zero_division` for denominators of 0."""
        return divided(formula(formulas.CountedCells(self.tp, self.fp, self.fn, self.tn)), zero_division)

    def __repr__(self) -> str:
        """Return an aligned table of the thresholds; one line if there is a table per user."""
        if self.tp.ndim == 2:
            return f"Confusion({len(self.tp):,} users, {len(self.thresholds):,} thresholds)"
        columns = (self.thresholds, self.tp, self.fp, self.fn, self.tn, self.precision(), self.recall())
        rows = [
            [f"{threshold:g}", *map(shown_count, counts), rate(precision), rate(recall)]
            for threshold, *counts, precision, recall in zip(*(c[:SHOWN].tolist() for c in columns), strict=True)
        ]
        head = ["threshold", "tp", "fp", "fn", "tn", "precision", "recall"]
        return as_text([Table("", head, rows, 0, more_rows(len(self.thresholds), "thresholds"))])


def confusion_matrix(
    labels: Any,
    scores: Any,
    thresholds: Any,
    *,
    indptr: Any = None,
    sample_weight: Any = None,
    n_threads: int | None = None,
) -> Confusion:
    """Count rows by label and by whether `score >= threshold`, at all thresholds in one pass over the rows.

    Scores are compared without rounding. The float32 nearest to 0.1 is slightly above the double 0.1 and reaches it.
    The float32 nearest to 0.7 is slightly below the double 0.7 and does not reach it, but reaches `np.float32(0.7)`.

    Parameters
    ----------
    labels : array (n,), bool or numbers
        1 for a positive, 0 for a negative row.
    scores : array (n,), float32 or float64
        Other numbers are converted, integers up to 2^53. Infinities are scores, -0.0 equals 0.0.
    thresholds : array (T,) of numbers, or one number
        In any order; infinities are allowed, and every score reaches -inf. Numbers are compared as doubles: a float32
        of 0.7 is below 0.7.
    indptr : integer array (n_users + 1,), optional
        Rows of user u are `indptr[u]:indptr[u + 1]`; counts are then per user, (n_users, T).
    sample_weight : array (n,) of numbers, optional
        Rows are weighted instead of counted; each weight is 0, or from 1e-100 to 1e100.
    n_threads : int, optional
        The result has the same bits for any number of threads.

    Returns
    -------
    Confusion
        `thresholds`, `tp`, `fp`, `fn`, `tn`, and `precision()`, `recall()`, `specificity()`, `fpr()`, `accuracy()`,
        `f_beta()`, `mcc()`. A user without rows has zeros everywhere.

    Raises
    ------
    InputError
        If a label is not 0 or 1, a score or threshold is NaN, there is no threshold, a weight is negative or not
        finite, or lengths differ.
    InputTypeError
        If any of them does not hold numbers.

    Examples
    --------
    >>> table = fastrec.confusion_matrix(
    ...     [1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1], [0.5, 0.25], indptr=[0, 2, 4]
    ... )
    >>> table.tp.tolist()
    [[1, 1], [0, 1]]
    >>> table.recall().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    refuse_other_indexes({"labels": labels, "scores": scores, "sample_weight": sample_weight})
    positive, values = check_classes(labels).view(np.uint8), check_scores(scores)
    check_lengths(positive, values, "scores")
    limits = _check_thresholds(thresholds)
    weights = None if sample_weight is None else check_row_weights(sample_weight, len(values))
    users = None if indptr is None else check_indptr(indptr, len(values), "indptr")
    rows = _blocks(len(values), len(limits)) if users is None else users
    cells = _count(positive, values, weights, rows, limits, resolve_threads(n_threads))
    if users is None:  # add blocks in their order, so that sums of weights are reproducible
        cells = cells.sum(axis=1)
    return Confusion(limits, *(cells if weights is not None else cells.astype(np.int64)))


# Checks


def _check_thresholds(thresholds: Any) -> Floats:
    array = as_array(thresholds, "thresholds")
    numbers = check_numbers(array[None] if array.ndim == 0 else thresholds, "thresholds")
    limits = np.ascontiguousarray(numbers, dtype=np.float64)
    if not 0 < len(limits) <= MAX_THRESHOLDS:
        raise InputError(f"thresholds must be from 1 to {MAX_THRESHOLDS:,} numbers, found {len(limits):,}")
    refuse_nan(limits, "thresholds", "position")
    return limits


def _check_zero_division(value: Any) -> float:
    if not (isinstance(value, bool) or is_number(value)) or not (value in {0, 1} or value != value):  # noqa: PLR0124 - NaN
        raise InputError(f"zero_division must be 0, 1 or float('nan'), found {shown(value)}")
    return float(value)


def check_beta(beta: Any) -> float:
    """Return beta as a float, or raise an error."""
    if not (isinstance(beta, bool) or is_number(beta)) or not 0 <= beta <= MAX_BETA:
        raise InputError(f"beta must be a number from 0 to {MAX_BETA:g}, found {shown(beta)}")
    return float(beta)


# Counts


def _blocks(n_rows: int, n_thresholds: int) -> NDArray[np.int64]:
    """Return the ends of blocks of rows, which do not depend on the number of threads, as sums must not."""
    n_blocks = max(1, min(n_rows // ROWS_PER_BLOCK, MAX_BLOCKS, MAX_BLOCK_CELLS // n_thresholds))
    return np.arange(n_blocks + 1, dtype=np.int64) * n_rows // n_blocks


def _count(
    labels: Array, scores: Array, weights: Floats | None, indptr: Array, limits: Floats, n_threads: int
) -> Floats:
    """Return tp, fp, fn and tn of each user, (4, n_users, T); threads take ranges of users."""
    order = np.argsort(limits, kind="stable")
    cells = np.empty((4, len(indptr) - 1, len(limits)))
    cost = indptr + np.arange(len(indptr)) * len(limits)
    n_ranges = 1 if cost[-1] < ROWS_PER_BLOCK else min(4 * n_threads, len(indptr) - 1)
    edges = np.searchsorted(cost, cost[-1] * np.arange(n_ranges + 1) // n_ranges)
    own = np.zeros(0) if weights is None else weights
    columns = edges, labels, scores, indptr, own, limits[order], order
    launch(count_users, n_ranges, *map(read_only, columns), cells, work=32 * int(cost[-1]), n_threads=n_threads)
    return cells


# Ratios


def divided(share: formulas.Share, zero_division: Any) -> Floats:
    """Return numerators divided by denominators; `zero_division` for denominators of 0."""
    values: Floats = ratio(*share, undefined=_check_zero_division(zero_division))
    return values


def more_rows(n: int, what: str) -> list[str]:
    """Return the line that says how many rows are not shown, if any."""
    return [f"... {n - SHOWN:,} more {what}"] if n > SHOWN else []

"""Confusion matrices and their formulas: for arrays of counts, for the rows of a user, and for sums over users.

A formula returns numerator and denominator; `fastrec.metrics.statistics.ratio` divides them and decides about 0 / 0.
Weights make every sum a rounded one, so there are two kinds of cells, and each adds only what was summed itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Share = tuple[Any, Any]


class CountedCells(NamedTuple):
    """The four cells as arrays; `tn` may be missing where no formula needs it."""

    tp: Any
    fp: Any
    fn: Any
    tn: Any = None

    @property
    def positives(self) -> Any:
        """Rows of the positive class."""
        return self.tp + self.fn

    @property
    def negatives(self) -> Any:
        """Rows of the negative class."""
        return self.tn + self.fp

    @property
    def right(self) -> Any:
        """Rows on the correct side."""
        return self.tp + self.tn

    @property
    def rows(self) -> Any:
        """All rows."""
        return self.right + self.fp + self.fn

    def weighted(self, square: float) -> Any:
        """Return (1 + square) tp + square fn + fp."""
        return (1 + square) * self.tp + square * self.fn + self.fp

    def mcc(self) -> Share:
        """Return the covariance of label and prediction, and the root of the product of their variances."""
        tp, fp, fn, tn = (counts.astype(np.float64) for counts in self)
        # two roots, because the product of four sums may overflow; paired so that 1 and -1 are exact
        right = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
        wrong = np.sqrt((tp + fp) * (tn + fp)) * np.sqrt((tp + fn) * (tn + fn))
        return tp * tn - fp * fn, np.where(tp * tn >= fp * fn, right, wrong)


class SummedCells(NamedTuple):
    """The two cells at or above a threshold, and sums of rows: what kernels sum for each user."""

    tp: Any
    fp: Any
    positives: Any
    negatives: Any
    below: Any
    rows: Any = None

    @property
    def tn(self) -> Any:
        """Negative rows below the threshold."""
        return self.negatives - self.fp

    @property
    def right(self) -> Any:
        """Rows on the correct side."""
        return self.tp + self.negatives - self.fp

    def weighted(self, square: float) -> Any:
        """Return (1 + square) tp + square fn + fp."""
        return square * self.positives + self.tp + self.fp

    def mcc(self) -> tuple[Any, tuple[Any, Any, Any, Any]]:
        """Return the covariance of label and prediction, and four sums, whose product is that of their variances."""
        covariance = self.tp * self.negatives - self.fp * self.positives  # = tp tn - fp fn
        return covariance, (self.tp + self.fp, self.positives, self.negatives, self.below)


Cells = CountedCells | SummedCells


def precision(cells: Cells) -> Share:
    """Return the positive share of the rows at or above the threshold."""
    return cells.tp, cells.tp + cells.fp


def recall(cells: Cells) -> Share:
    """Return the share of the positive rows that are at or above the threshold."""
    return cells.tp, cells.positives


def specificity(cells: Cells) -> Share:
    """Return the share of the negative rows that are below the threshold."""
    return cells.tn, cells.negatives


def fpr(cells: Cells) -> Share:
    """Return the share of the negative rows that are at or above the threshold."""
    return cells.fp, cells.negatives


def accuracy(cells: Cells) -> Share:
    """Return the share of the rows on the correct side of the threshold."""
    return cells.right, cells.rows


def error_rate(cells: SummedCells) -> Share:
    """Return the share of the rows on the wrong side of the threshold."""
    return cells.positives - cells.tp + cells.fp, cells.rows


def f_beta(cells: Cells, square: float) -> Share:
    """Return the harmonic mean of precision and recall, with beta^2 = `square` as the weight of recall."""
    return (1 + square) * cells.tp, cells.weighted(square)


def f_of_rates(p: Any, r: Any, square: float) -> Share:
    """Return the harmonic mean of a precision and a recall that do not come from one matrix."""
    return (1 + square) * p * r, square * p + r

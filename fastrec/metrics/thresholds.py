"""Metrics of scored, labelled rows at a threshold: functions of the confusion matrix of `score >= threshold`.

TP and FP are the positive and negative rows with a score of at least `threshold`, FN and TN those below it, P = TP + FN
and N = TN + FP; with `sample_weight` these are sums of weights. `average=row` counts all rows at once, `average=user`
takes the mean over users of each user's own value. Numbers are compared as doubles: a float32 of 0.7 is below 0.7.
Values are float64, without unit, NaN without rows.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

from fastrec.metrics import confusion
from fastrec.metrics.confusion import Share, SummedCells
from fastrec.metrics.declaration import score_metric
from fastrec.metrics.dual import differentiable
from fastrec.metrics.kinds import Finite, NotNegative
from fastrec.metrics.row_statistics import RowStatistics
from fastrec.metrics.rows import Average
from fastrec.metrics.statistics import Ratio, Row, maximum, minimum, ratio, sqrt

ZeroDivision = Literal["0", "1", "nan"]
ROUNDING = 2.0**-50  # relative; a root of four factors and two roots of two factors differ by less


def at_threshold(s: RowStatistics, share: tuple[Row, Row], average: str, zero_division: str) -> Ratio:
    """Return a formula of a confusion matrix; `zero_division` is its value if the denominator is 0."""
    numerator, denominator = share
    value, counted = _defined(s, numerator / denominator, denominator, zero_division)
    if average == "user":
        return s.mean(value, counted)
    function = functools.partial(ratio, undefined=float(zero_division))
    return Ratio(function, share, s.where(counted, value), s.rows / s.rows)


def of_matrix(
    s: RowStatistics, threshold: float, formula: Callable[[SummedCells], Share], average: str, zero_division: str
) -> Ratio:
    """Return a formula of all cells: it returns its value, and a number that is 0 where it has none."""
    cells = s.cells(threshold)
    value, counted = _defined(s, *formula(cells), zero_division)
    if average == "user":
        return s.mean(value, counted)

    def function(*sums: Any) -> Any:
        value, defined = formula(SummedCells(*sums))
        return value if defined else float(zero_division)

    return Ratio(function, cells[:-1], s.where(counted, value), s.rows / s.rows)


def _defined(s: RowStatistics, value: Row, denominator: Row, zero_division: str) -> tuple[Row, Row]:
    """Return a user's own value, with `zero_division` for a denominator of 0, and whether it counts."""
    defined, has_rows = denominator / denominator, s.rows / s.rows
    value = value + (1.0 if zero_division == "1" else 0.0) * (has_rows - defined)
    return value, defined if zero_division == "nan" else has_rows


@score_metric(range=(0, 1), formula="TP / (TP + FP)", source="van Rijsbergen 1979, ch. 7", needs="classes")
def precision(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Share of the rows with a score of at least `threshold` that are positive.

    Formula: TP / (TP + FP), counted over all rows or as a mean over users. `zero_division` is the value if no row
    reaches the threshold: 0, 1 or nan (with `average=user`, `nan` leaves such users out).

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.9, 0.6, 0.2], metrics="precision(threshold=0.5)"
    ... )
    >>> report["precision(threshold=0.5)"]
    0.5
    """
    return at_threshold(s, confusion.precision(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="TP / P", source="van Rijsbergen 1979, ch. 7", needs="classes")
def recall(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Share of the positive rows that have a score of at least `threshold` (sensitivity).

    Formula: TP / (TP + FN); `zero_division` if there is no positive row, as in `precision`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.9, 0.6, 0.2], metrics="recall(threshold=0.5)"
    ... )
    >>> report["recall(threshold=0.5)"]
    0.5
    """
    return at_threshold(s, confusion.recall(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="TN / N", source="Swets 1963", needs="classes")
def specificity(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Share of the negative rows that have a score below `threshold`.

    Formula: TN / (TN + FP); `zero_division` if there is no negative row, as in `precision`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0], [0.9, 0.6, 0.2], metrics="specificity(threshold=0.5)"
    ... )
    >>> report["specificity(threshold=0.5)"]
    0.5
    """
    return at_threshold(s, confusion.specificity(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="FP / N", source="Swets 1963", needs="classes", direction="lower")
def fpr(s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0") -> Ratio:
    """False positive rate: share of the negative rows that have a score of at least `threshold`.

    Formula: FP / (TN + FP); `zero_division` if there is no negative row, as in `precision`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0], [0.9, 0.6, 0.2], metrics="fpr(threshold=0.5)"
    ... )
    >>> report["fpr(threshold=0.5)"]
    0.5
    """
    return at_threshold(s, confusion.fpr(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="(TP + TN) / (P + N)", source="Swets 1963", needs="classes")
def accuracy(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Share of the rows on the correct side of `threshold`.

    Formula: (TP + TN) / (P + N); `zero_division` if there is no row.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0, 1], [0.9, 0.6, 0.2, 0.7], metrics="accuracy(threshold=0.5)"
    ... )
    >>> report["accuracy(threshold=0.5)"]
    0.75
    """
    return at_threshold(s, confusion.accuracy(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="(1 + b^2) P R / (b^2 P + R)", source="van Rijsbergen 1979, ch. 7", needs="classes")
def f_beta(
    s: RowStatistics,
    *,
    threshold: Finite,
    beta: NotNegative = 1.0,
    average: Average = "row",
    zero_division: ZeroDivision = "0",
) -> Ratio:
    """Weighted harmonic mean of precision and recall at `threshold`.

    Formula: (1 + beta^2) TP / (beta^2 (TP + FN) + TP + FP); `zero_division` if no row is positive or reaches the
    threshold, as in `precision`.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.9, 0.6, 0.2], metrics="f_beta(threshold=0.5, beta=2)"
    ... )
    >>> report["f_beta(threshold=0.5, beta=2)"]
    0.5
    """
    return at_threshold(s, confusion.f_beta(s.cells(threshold), beta * beta), average, zero_division)


@score_metric(range=(0, 1), formula="2 TP / (P + TP + FP)", source="van Rijsbergen 1979, ch. 7", needs="classes")
def f1(s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0") -> Ratio:
    """Harmonic mean of precision and recall at `threshold`; see `f_beta`.

    Formula: 2 TP / (2 TP + FP + FN).

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 1], [0.9, 0.6, 0.2], metrics="f1(threshold=0.5)"
    ... )
    >>> report["f1(threshold=0.5)"]
    0.5
    """
    return f_beta(s, threshold=threshold, average=average, zero_division=zero_division)


@score_metric(
    range=(-1, 1),
    formula="(TP TN - FP FN) / sqrt((TP + FP) P N (TN + FN))",
    source="Matthews 1975",
    needs="classes",
)
def mcc(s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0") -> Ratio:
    """Matthews correlation between the label and the prediction `score >= threshold`.

    Formula: (TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)); `zero_division` if a factor is 0.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0, 1], [0.9, 0.6, 0.2, 0.7], metrics="mcc(threshold=0.5)"
    ... )
    >>> round(report["mcc(threshold=0.5)"], 12)
    0.57735026919
    """
    return of_matrix(s, threshold, _matthews, average, zero_division)


def _matthews(cells: SummedCells) -> Share:
    covariance, (a, b, c, d) = cells.mcc()
    if isinstance(covariance, Row):
        largest = sys.float_info.max  # not infinite, of which the product with 0 is NaN
        root = _within(sqrt(minimum(a * b * c, largest) * d), sqrt(a * b) * sqrt(c * d))
        return ratio(covariance, root), root
    product = a * b * c * d
    return _correlation(covariance, product), product


def _within(usual: Row, safe: Row) -> Row:
    """Return `usual`, or close to `safe` where a product in `usual` is too large or small for a double.

    Elsewhere both differ by their rounding.
    """
    return minimum(maximum(usual, safe * (1 - ROUNDING)), safe * (1 + ROUNDING))


def _slopes_of_correlation(covariance: Any, product: Any) -> tuple[Any, Any]:
    if not product:
        return 0.0, 0.0
    root, unit = _root_in_units(product)
    scale = 1 / (Fraction(root) * unit)  # the same rounding in all slopes
    return scale, -scale * covariance / (2 * product)


@differentiable(_slopes_of_correlation)
def _correlation(covariance: Any, product: Any) -> Any:
    root, unit = _root_in_units(product)
    return ratio(covariance / unit, root)


def _root_in_units(square: Fraction) -> tuple[float, Fraction]:
    """Return the root of a number in units of a power of 2, also of one that is too large or small for a double."""
    number = Fraction(square)
    unit = Fraction(2) ** ((number.numerator.bit_length() - number.denominator.bit_length()) // 2)
    return sqrt(number / (unit * unit)), unit


@score_metric(
    range=(0, 1), formula="(TP / P + TN / N) / 2", source="Brodersen et al. 2010; Kelleher et al. 2015", needs="classes"
)
def balanced_accuracy(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Mean of recall and specificity at `threshold`: the accuracy if both classes had as many rows.

    Formula: (TP / (TP + FN) + TN / (TN + FP)) / 2; `zero_division` if a class has no row, as in `precision`.
    scikit-learn takes the recall of the other class then.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0], [0.9, 0.6, 0.2], metrics="balanced_accuracy(threshold=0.5)"
    ... )
    >>> report["balanced_accuracy(threshold=0.5)"]
    0.75
    """
    return of_matrix(s, threshold, _mean_of_rates, average, zero_division)


def _mean_of_rates(cells: SummedCells) -> Share:
    pairs = cells.positives * cells.negatives
    value = (ratio(*confusion.recall(cells)) + ratio(*confusion.specificity(cells))) / 2
    return value * ratio(pairs, pairs), pairs  # 0 for a user of one class


@score_metric(range=(0, 1), formula="sqrt(TP / P x TN / N)", source="Kubat & Matwin 1997", needs="classes")
def g_mean(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Geometric mean of recall and specificity at `threshold`: 0 if all rows of a class are on the wrong side.

    Formula: sqrt(TP / (TP + FN) x TN / (TN + FP)); `zero_division` if a class has no row, as in `precision`. A value of
    0 over all rows has no standard error, as the root has no slope there.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0], [0.9, 0.6, 0.2], metrics="g_mean(threshold=0.5)"
    ... )
    >>> round(report["g_mean(threshold=0.5)"], 12)
    0.707106781187
    """
    return of_matrix(s, threshold, _root_of_rates, average, zero_division)


def _root_of_rates(cells: SummedCells) -> Share:
    product = ratio(*confusion.recall(cells)) * ratio(*confusion.specificity(cells))
    value = _root(product) if isinstance(product, Row) or product else 0.0
    return value, cells.positives * cells.negatives


@differentiable(lambda square: (1 / (2 * _root(square)),))
def _root(square: Any) -> Any:
    if isinstance(square, Row):
        return sqrt(square)
    root, unit = _root_in_units(square)
    return root * float(unit)


@score_metric(
    range=(-1, 1),
    formula="2 (TP TN - FP FN) / ((TP + FP) N + (TN + FN) P)",
    source="Cohen 1960",
    needs="classes",
)
def cohen_kappa(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Agreement of the label and the prediction `score >= threshold` beyond that by chance.

    Formula: (a - e) / (1 - e), with the accuracy a and the accuracy e of predictions that are drawn in their order
    regardless of the labels, which is 2 (TP TN - FP FN) / ((TP + FP) N + (TN + FN) P). `zero_division` if all rows have
    one label and the same prediction.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0, 1], [0.9, 0.6, 0.2, 0.7], metrics="cohen_kappa(threshold=0.5)"
    ... )
    >>> report["cohen_kappa(threshold=0.5)"]
    0.5
    """
    return of_matrix(s, threshold, _kappa, average, zero_division)


def _kappa(cells: SummedCells) -> Share:
    rows = cells.positives + cells.negatives  # shares, so that no product of weights overflows
    tp, fp, p, n, below = (ratio(own, rows) for own in cells[:5])
    by_chance = (tp + fp) * n + below * p
    return ratio(2 * (tp * n - fp * p), by_chance), by_chance


@score_metric(
    range=(0, 1),
    formula="(FP + FN) / (P + N)",
    source="Hamming 1950",
    needs="classes",
    direction="lower",
    aliases=("hamming_loss",),
)
def hamming(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Hamming distance: share of the rows on the wrong side of `threshold`, 1 - `accuracy`.

    Formula: (FP + FN) / (P + N); `zero_division` if there is no row.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0, 1], [0.9, 0.6, 0.2, 0.7], metrics="hamming(threshold=0.5)"
    ... )
    >>> report["hamming(threshold=0.5)"]
    0.25
    """
    return at_threshold(s, confusion.error_rate(s.cells(threshold)), average, zero_division)


@score_metric(range=(0, 1), formula="FP / N", source="Swets 1963", needs="classes", direction="lower")
def fallout(
    s: RowStatistics, *, threshold: Finite, average: Average = "row", zero_division: ZeroDivision = "0"
) -> Ratio:
    """Share of the negative rows that have a score of at least `threshold`; another name of `fpr`.

    Formula: FP / (TN + FP); `zero_division` if there is no negative row, as in `precision`. Without `threshold`, the
    name is that of the metric of ranks.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 0, 0], [0.9, 0.6, 0.2], metrics="fallout(threshold=0.5)"
    ... )
    >>> report["fallout(threshold=0.5)"]
    0.5
    """
    return fpr(s, threshold=threshold, average=average, zero_division=zero_division)

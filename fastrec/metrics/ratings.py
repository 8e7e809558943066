"""Errors of predicted ratings: labels are the targets, scores the predictions, any finite numbers.

`average=row` uses all rows at once, `average=user` is the mean over users of each user's own value. `sample_weight`
weights the sums. Values are float64 in the unit of the ratings (its square for `mse`, none for `mape` and `r2`), NaN
without rows.
"""

from __future__ import annotations

import math
from typing import Any

from fastrec.metrics.declaration import score_metric
from fastrec.metrics.dual import differentiable
from fastrec.metrics.kinds import AboveZero
from fastrec.metrics.row_statistics import RowStatistics
from fastrec.metrics.rows import Average, averaged
from fastrec.metrics.statistics import Over, Ratio, over, ratio, sqrt

EQUAL = 2**-90  # targets are equal if their variance is at most that times their mean square: rounding of the sums


@score_metric(
    range=(0, None),
    formula="mean of |prediction - target|",
    source="Gauss 1809; Herlocker et al. 2004",
    needs="targets",
    direction="lower",
)
def mae(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Mean absolute error.

    Formula: sum of w |prediction - target| / sum of w.

    Examples
    --------
    >>> fastrec.evaluate_scores([4.0, 2.0], [3.5, 3.0], metrics="mae")["mae"]
    0.75
    """
    return averaged(s, s.absolutes, s.rows, average)


@score_metric(
    range=(0, None),
    formula="mean of (prediction - target)^2",
    source="Gauss 1809; Herlocker et al. 2004",
    needs="targets",
    direction="lower",
)
def mse(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Mean squared error.

    Formula: sum of w (prediction - target)^2 / sum of w.

    Examples
    --------
    >>> fastrec.evaluate_scores([4.0, 2.0], [3.5, 3.0], metrics="mse")["mse"]
    0.625
    """
    return averaged(s, s.squares, s.rows, average)


@score_metric(
    range=(0, None),
    formula="square root of the mean of (prediction - target)^2",
    source="Gauss 1809; Herlocker et al. 2004",
    needs="targets",
    direction="lower",
)
def rmse(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Root of the mean squared error.

    Formula: sqrt(sum of w (prediction - target)^2 / sum of w), over all rows, or the mean of the users' own.

    Examples
    --------
    >>> round(fastrec.evaluate_scores([4.0, 2.0], [3.5, 3.0], metrics="rmse")["rmse"], 12)
    0.790569415042
    """
    own = _root(s.squares, s.rows)
    has_rows = s.rows / s.rows
    if average == "user":
        return s.mean(own, has_rows)
    return Ratio(_root, (s.squares, s.rows), s.where(has_rows, own), has_rows)


def _slopes(squares: Any, rows: Any) -> tuple[float, float]:
    root, total = _root(squares, rows), float(rows)
    return (1 / (2 * root * total), -root / (2 * total)) if root else (0.0, 0.0)


@differentiable(_slopes)
def _root(squares: Any, rows: Any) -> Any:
    return sqrt(over(squares, rows))


@score_metric(
    range=(0, None),
    formula="mean of |prediction - target| / |target|",
    source="de Myttenaere et al. 2016",
    needs="targets",
    direction="lower",
    aliases=("mean_absolute_percentage_error",),
)
def mape(s: RowStatistics, *, eps: AboveZero = 2.0**-52, average: Average = "row") -> Ratio:
    """Mean absolute percentage error, as a share: 0.1 is 10 %.

    Formula: sum of w |prediction - target| / max(|target|, eps) / sum of w. Targets nearer to 0 than `eps` count with
    `eps`, the machine epsilon as in scikit-learn (1.17e-6 in TorchMetrics): one target of 0 makes the value huge.

    Examples
    --------
    >>> fastrec.evaluate_scores([4.0, 2.0], [3.5, 3.0], metrics="mape")["mape"]
    0.3125
    """
    return averaged(s, s.relative_errors(eps), s.rows, average)


@score_metric(
    range=(-math.inf, 1),
    formula="1 - sum of (prediction - target)^2 / sum of (target - mean target)^2",
    source="Wright 1921",
    needs="targets",
    aliases=("r2_score", "r_squared"),
)
def r2(s: RowStatistics, *, average: Average = "row") -> Ratio:
    """Coefficient of determination: share of the variance of the targets that the predictions explain.

    Formula: 1 - sum of w (prediction - target)^2 / sum of w (target - mean target)^2; 0 is as good as always predicting
    the mean, and worse predictions are below 0. It is NaN if all targets are equal; users with equal targets are left
    out with `average=user`. Sums have the digits of two doubles;
    targets near 10^12 with a variance of 1 still lose half of the digits.

    Examples
    --------
    >>> round(fastrec.evaluate_scores([3, -0.5, 2, 7], [2.5, 0.0, 2, 8], metrics="r2")["r2"], 12)
    0.948608137045
    """
    spread = s.spread
    own, counted = spread / spread - s.squares / spread, spread / spread
    if average == "user":
        return s.mean(own, counted)
    rows = (s.squares, *s.targets(0), *s.targets(1), *s.targets(2))
    return Ratio(_determination, rows, s.where(counted, own), s.rows / s.rows)


def _determination(errors: Any, *sums: Any) -> Any:
    rows, total, squares = (first + rest for first, rest in zip(sums[::2], sums[1::2], strict=True))
    spread = squares - ratio(total * total, rows)
    is_spread = getattr(spread, "value", spread) > EQUAL * getattr(squares, "value", squares)
    return 1 - errors / spread if is_spread else math.nan


@score_metric(
    range=(0, 1),
    formula="P(predictions are in the order of the targets | targets differ)",
    source="Zhan et al. 2022 (D2Q)",
    needs="targets",
)
def xauc(s: RowStatistics, *, average: Average = "row") -> Ratio | Over:
    """Share of the pairs of rows with different targets that the predictions order correctly: AUC of graded labels.

    Formula: pairs with target_i < target_j and prediction_i < prediction_j, equal predictions counting as half, over
    all pairs with different targets; exact, from integer counts. With targets of 0 and 1 it is `auc`. `average=user` is
    the mean over users of the share of each user's pairs, without users whose targets are all equal. A pair weighs the
    product of the weights of its rows. Only the order of predictions counts, and only `average=user` has a standard
    error.

    Examples
    --------
    >>> report = fastrec.evaluate_scores([1, 2, 3], [0.2, 0.1, 0.3], metrics="xauc")
    >>> round(report["xauc"], 12)
    0.666666666667
    """
    won, pairs = (s.provided("graded_pairs", name) for name in ("won", "all"))
    own, counted = won / (2 * pairs), pairs / pairs
    if average == "user":
        return s.mean(own, counted)
    has_rows = s.rows / s.rows
    return Over("graded_rows", lambda rows: rows.xauc(), None, s.where(counted, own), has_rows)

"""Errors of predicted ratings, and their order: labels are the targets, scores the predictions, any finite numbers.

`average=row` uses all rows at once, `average=user` is the mean over users of each user's own value. `sample_weight`
weights the sums. Values are float64 in the unit of the ratings (its square for `mse`, none for `mape` and `r2`), NaN
without rows.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from fastrec.metrics.declaration import score_metric
from fastrec.metrics.dual import differentiable
from fastrec.metrics.kinds import AboveZero
from fastrec.metrics.row_statistics import GRADED_ROWS, TARGET_SUMS, RowStatistics
from fastrec.metrics.rows import Average, averaged
from fastrec.metrics.statistics import Exact, Measure, Over, Ratio, Row, over, ratio, sqrt

EqualScores = Literal["zero", "drop"]
EqualTargets = Literal["drop", "zero", "nan"]
FAR = 2**-40  # targets of a smaller variance over mean square have slopes of rounding errors


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

    Formula: sqrt(sum of w (prediction - target)^2 / sum of w), over all rows, or the mean of the users' own. Squares
    are doubles: that of an error below 1e-162 is 0, and an error above 1e154 is too large.

    Examples
    --------
    >>> report = fastrec.evaluate_scores([4.0, 2.0], [3.5, 3.0], metrics="rmse")
    >>> round(report["rmse"], 12)
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
    out with `average=user`. Over rows it is the exact value, rounded once. It has no standard error if the mean of the
    targets is over 1024 times their standard deviation: subtract a constant from targets and predictions.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [3, -0.5, 2, 7], [2.5, 0.0, 2, 8], metrics="r2"
    ... )
    >>> round(report["r2"], 12)
    0.948608137045
    """
    own, counted = s.differ - s.unexplained, s.differ
    if average == "user":
        return s.mean(own, counted)
    rows = (s.squares, s.targets(0), s.targets(1), s.targets(2))
    exact = Exact(TARGET_SUMS, lambda sums: sums.r2(), lambda sums: not sums.is_far())
    return Ratio(_determination, rows, s.where(counted, own), s.rows / s.rows, exact=exact)


def _determination(errors: Any, rows: Any, total: Any, squares: Any) -> Any:
    spread = squares - ratio(total * total, rows)
    is_near = getattr(spread, "value", spread) > FAR * getattr(squares, "value", squares)
    return 1 - errors / spread if is_near else math.nan


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
    return Over(GRADED_ROWS, lambda rows: rows.xauc(), None, s.where(counted, own), has_rows)


@score_metric(
    range=(-1, 1),
    formula="(pairs in the right order - pairs in the wrong order) / sqrt(pairs with different targets x predictions)",
    source="Kendall 1945; Stuart 1953",
    needs="targets",
    aliases=("kendall",),
)
def kendall_tau(
    s: RowStatistics,
    *,
    variant: Literal["b", "c"] = "b",
    constant: EqualScores = "zero",
    constant_targets: EqualTargets = "drop",
    average: Average = "row",
) -> Ratio | Over:
    """Rank correlation of predictions with targets by pairs of rows: 1 for the same order, -1 for the opposite one.

    Formula: (C - D) / sqrt(T S) (`variant=b`). C pairs of rows are in the right order and D in the wrong one, T pairs
    have different targets and S different predictions; exact, from integer counts. `variant=c` is
    2 (C - D) / (n^2 (m - 1) / m) for n rows with m different targets or predictions, whichever are fewer. Both are
    those of SciPy's `kendalltau`. A pair weighs the product of the weights of its rows. Over all rows the value is NaN
    if all targets or all predictions are equal. With `average=user`, users with equal targets are left out
    (`constant_targets=drop`), count as 0 (`zero`), or make the value NaN (`nan`). Users with equal predictions only
    count as 0 (`constant=zero`) or are left out (`drop`). Only `average=user` has a standard error.

    Examples
    --------
    Two of three pairs are in the right order:

    >>> report = fastrec.evaluate_scores(
    ...     [1, 2, 3], [0.2, 0.1, 0.3], metrics="kendall_tau"
    ... )
    >>> round(report["kendall_tau"], 12)
    0.333333333333
    """
    balance, targets, scores, rows, levels = (
        s.provided("graded_pairs", name) for name in ("balance", "all", "of_scores", "rows", "levels")
    )
    if variant == "b":
        own, whole = _correlation(balance, targets, scores), _tau_b_of
    else:
        own, whole = _tau_c(balance, rows, levels), _tau_c_of
    return _rank_correlation(s, own, (targets, scores), whole, (constant, constant_targets), average)


@score_metric(
    range=(-1, 1),
    formula="correlation of the ranks of predictions and targets",
    source="Spearman 1904",
    needs="targets",
    aliases=("spearman", "spearmanr"),
)
def spearman_rho(
    s: RowStatistics,
    *,
    constant: EqualScores = "zero",
    constant_targets: EqualTargets = "drop",
    average: Average = "row",
) -> Ratio | Over:
    """Correlation of the ranks of predictions and targets: 1 for the same order, -1 for the opposite one.

    Formula: sum of w a b / sqrt(sum of w a^2 x sum of w b^2), with the ranks a of the predictions and b of the targets,
    less their means; equal values share their mean rank. That is SciPy's `spearmanr`. A row of weight w counts as w
    rows. `constant`, `constant_targets` and the value over all rows are as for `kendall_tau`. Only `average=user` has a
    standard error.

    Examples
    --------
    >>> report = fastrec.evaluate_scores(
    ...     [1, 2, 3], [0.2, 0.1, 0.3], metrics="spearman_rho"
    ... )
    >>> report["spearman_rho"]
    0.5
    """
    both, targets, scores = (s.provided("graded_ranks", name) for name in ("both", "labels", "scores"))
    own = _correlation(both, targets, scores)
    return _rank_correlation(s, own, (targets, scores), _rho_of, (constant, constant_targets), average)


def _correlation(product: Any, targets: Any, scores: Any) -> Any:
    """Return product / sqrt(targets x scores): of equal numbers exactly 1, and without an overflow."""
    return _within_one(product / scores * sqrt(scores / targets))


def _tau_c(balance: Any, rows: Any, levels: Any) -> Any:
    return _within_one(2 * balance * levels / (rows * rows * (levels - 1)))


def _within_one(value: Any) -> Any:
    """Return a value from -1 to 1 that rounding may have put past them."""
    return np.maximum(np.minimum(value, 1.0), -1.0)


def _tau_b_of(rows: Any) -> float:
    balance, targets, scores = rows.balance()
    return float(_correlation(balance, targets, scores)) if targets and scores else math.nan


def _tau_c_of(rows: Any) -> float:
    balance, targets, scores = rows.balance()
    return float(_tau_c(balance, *rows.size())) if targets and scores else math.nan


def _rho_of(rows: Any) -> float:
    both, targets, scores = rows.products_of_ranks()
    return float(_correlation(both, targets, scores)) if targets and scores else math.nan


def _rank_correlation(
    s: RowStatistics, own: Row, spreads: tuple[Row, Row], whole: Measure, constant: tuple[str, str], average: str
) -> Ratio | Over:
    """Return a correlation over all rows, or its mean over users by the policies for equal scores and targets."""
    has_rows, has_targets, has_scores = (s.any_of(row) for row in (s.rows, *spreads))
    own = s.only(has_targets, own)
    counted = has_rows if constant[1] == "zero" else has_targets
    if constant[0] == "drop":
        counted = counted - has_targets * (1.0 - has_scores)
    if average == "row":
        return Over(GRADED_ROWS, whole, None, s.where(counted, own), has_rows)
    return s.mean(own, counted)._replace(spoils=has_rows - has_targets if constant[1] == "nan" else None)

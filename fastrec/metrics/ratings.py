"""Errors of predicted ratings: labels are the targets, scores the predictions, any finite numbers.

`average=row` uses all rows at once, `average=user` is the mean over users of each user's own value. `sample_weight`
weights the sums. Values are float64 in the unit of the ratings (its square for `mse`), NaN without rows.
"""

from __future__ import annotations

from typing import Any

from fastrec.metrics.declaration import score_metric
from fastrec.metrics.dual import differentiable
from fastrec.metrics.rows import Average, averaged
from fastrec.metrics.row_statistics import RowStatistics
from fastrec.metrics.statistics import Ratio, over, sqrt


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

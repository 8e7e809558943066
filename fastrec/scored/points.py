"""Points of ROC and precision-recall curves: one rate where another reaches a limit, and the equal error rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fastrec.metrics.confusion import SummedCells, precision, recall, specificity

Array = np.ndarray[Any, Any]
RATES = {"precision": precision, "recall": recall, "specificity": specificity}
ROUNDING = 2.0**-50  # relative bound per row: sums of weights and a quotient of them


def _share(name: str, tp: Any, fp: Any, positives: Any, negatives: Any) -> tuple[Any, Any]:
    """Return the numerator and the denominator of a rate."""
    return RATES[name](SummedCells(tp, fp, positives, negatives, None))


class CumulativeRows(NamedTuple):
    """Weights of both classes at or above each distinct score, from no row on, scores descending.

    `exact` returns the sums of weights at places as integers of one unit, those of all rows last. Rounding never
    decides whether a rate reaches a limit.
    """

    tp: Array
    fp: Array
    rows: int
    exact: Callable[[Array], list[tuple[int, int]]]

    def rate(self, name: str) -> Array:
        """Return a rate at each place; NaN for 0 / 0."""
        up, down = _share(name, self.tp, self.fp, self.tp[-1], self.fp[-1])
        with np.errstate(invalid="ignore"):
            share: Array = np.true_divide(up, down)
        return share

    def reaching(self, name: str, limit: float, *, last: bool) -> int | None:
        """Return the last or the first place where the double nearest to a rate is at least the limit."""
        rates = self.rate(name)
        slack = 0.0 if self.tp.dtype.kind == "i" else (self.rows + 1) * ROUNDING  # quotients of counts round once
        sure = np.flatnonzero(rates >= limit + slack)
        bound = int(sure[-1 if last else 0]) if len(sure) else None
        near = np.flatnonzero(np.abs(rates - limit) <= slack)
        if bound is not None:
            near = near[near > bound] if last else near[near < bound]
        if not len(near):
            return bound
        near = near[::-1] if last else near
        *sums, whole = self.exact(near)
        for at, (tp, fp) in zip(near.tolist(), sums, strict=True):
            up, down = _share(name, tp, fp, *whole)
            if down and float(Fraction(up, down)) >= limit:
                return int(at)
        return bound


def rate_where(curve: CumulativeRows, name: str, other: str, limit: float) -> float:
    """Return the largest value of one rate at the thresholds where the other is at least the limit; NaN without rows.

    It is 0 if the other never is. The threshold above all scores counts, except for precision, which it does not have.
    """
    needed = [curve.tp[-1] > 0] + ([curve.fp[-1] > 0] if "specificity" in (name, other) else [])
    if not all(needed):
        return math.nan
    is_last = name == "recall" or other == "specificity"  # the best of the allowed thresholds is the lowest
    at = curve.reaching(other, limit, last=is_last)
    if at is None:
        return 0.0
    allowed = slice(at + 1) if is_last else slice(at, None)  # precision may be best at any of them
    return float(np.nanmax(curve.rate(name)[allowed], initial=0.0))


def equal_error_rate(curve: CumulativeRows, interpolation: str) -> float:
    """Return the rate at which as many positives as negatives are on the wrong side; NaN for one class.

    Between two thresholds the rates change on straight lines (`linear`), or the threshold with the smallest distance of
    the two rates has their mean (`nearest`; of two with the same distance the higher one).
    """
    if not (curve.tp[-1] > 0 and curve.fp[-1] > 0):
        return math.nan
    wrong, missed = curve.fp / curve.fp[-1], (curve.tp[-1] - curve.tp) / curve.tp[-1]
    after = int((wrong >= missed).argmax())
    before = after - 1
    gaps = missed[before] - wrong[before], wrong[after] - missed[after]
    if interpolation == "linear":
        share = gaps[0] / (gaps[0] + gaps[1])
        return float(wrong[before] + share * (wrong[after] - wrong[before]))
    at = before if _is_nearer(curve, before, after, gaps) else after
    return float((wrong[at] + missed[at]) / 2)


def _is_nearer(curve: CumulativeRows, before: int, after: int, gaps: tuple[Any, Any]) -> bool:
    """Return whether the rates are at most as far apart before the crossing as after it."""
    if abs(gaps[0] - gaps[1]) > (curve.rows + 1) * ROUNDING:
        return bool(gaps[0] < gaps[1])
    *points, (positives, negatives) = curve.exact(np.array([before, after]))
    distances = [abs(fp * positives - (positives - tp) * negatives) for tp, fp in points]
    return distances[0] <= distances[1]

"""Areas under a part of the ROC curve: between two false or true positive rates, or over a logarithmic axis.

Between two points the curve is a straight line: tied rows count with the mean over their orders.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fastrec.scored.areas import area_up_to, cumulative
from fastrec.scored.sorting import Runs

Array = np.ndarray[Any, Any]
ROUNDING = 2.0**-40  # relative, of areas of weighted rows: more than any has


class CurvePart(NamedTuple):
    """Part of a ROC curve from one rate to another, and what its area is divided by."""

    side: str  # the rate that it limits: "fpr" or "tpr"
    low: float
    high: float
    scale: str  # "mcclish", "width" or "raw"

    @property
    def limits(self) -> tuple[Fraction, Fraction]:
        """The limits as false positive rates, those of the reversed curve for limits of the true positive rate."""
        low, high = Fraction(self.low), Fraction(self.high)
        return (low, high) if self.side == "fpr" else (1 - high, 1 - low)

    def of(self, runs: Runs) -> Runs:
        """Return runs whose false positive rate has the limits.

        With classes and order reversed, the part right of the curve between two true positive rates is below it.
        """
        if self.side == "fpr":
            return runs
        return runs._replace(scores=-runs.scores[::-1], positives=runs.negatives[::-1], negatives=runs.positives[::-1])

    def scaled(self, area: Any) -> float:
        """Return the area as the scale has it.

        McClish's correction has 1/2 for chance and 1 for a perfect order. Above a lower limit, it would fall below 0
        for orders worse than chance, so these have the area over twice that of chance.
        """
        low, high = self.limits
        if self.scale != "mcclish":
            return float(min(area / (high - low), 1) if self.scale == "width" else area)
        chance = (high * high - low * low) / 2
        if low and area < chance:
            return float(max(0, area / (2 * chance)))
        return float(min(1, (1 + (area - chance) / (high - low - chance)) / 2))

    def slope(self, area: Any) -> float:
        """Return the slope of the scaled area in the area; at that of chance, where there are two, that above it."""
        low, high = self.limits  # exact, so that no narrow part is empty
        chance = (high * high - low * low) / 2
        is_worse = low > 0 and area < chance
        own = {"mcclish": 2 * (chance if is_worse else high - low - chance), "width": high - low, "raw": Fraction(1)}
        return float(1 / own[self.scale])


def _counted_area(runs: Runs, part: CurvePart) -> Fraction:
    """Return the exact area of a part of the curve of counted rows, whose false positive rate has the limits."""
    low, high = (area_up_to(runs, limit) for limit in part.limits)
    return high - low


def area_of_part(runs: Runs, part: CurvePart) -> float:
    """Return the area under a part of the curve, exact for counted rows; NaN for one class."""
    if runs.positives.dtype.kind == "i":
        has_classes = runs.positives.any() and runs.negatives.any()
        return part.scaled(_counted_area(part.of(runs), part)) if has_classes else math.nan
    curve = _curve(runs)
    if curve is None:
        return math.nan
    x, y = curve if part.side == "fpr" else (curve[1], 1 - curve[0])
    return part.scaled(Fraction(_area(*_between(x, y, part.low, part.high))))


def _area(x: Array, y: Array) -> float:
    """Return the area below straight lines between points."""
    return float((np.diff(x) * (y[1:] + y[:-1])).sum()) / 2


def log_area(runs: Runs, low: float, high: float, interpolation: str) -> float:
    """Return the mean true positive rate over the logarithm of the false positive rate; NaN for one class.

    Between two points the curve is straight in the false positive rate (`linear`) or in its logarithm (`log`).
    """
    curve = _curve(runs)
    if curve is None:
        return math.nan
    x, y = _between(*curve, low, high)
    wide = np.diff(x) > 0
    left, step = x[:-1][wide], np.diff(x)[wide]
    start, rise = y[:-1][wide], np.diff(y)[wide]
    width = _log_ratio(left, x[1:][wide])
    risen = rise / 2 * width if interpolation == "log" else rise * (1 - left / step * width)
    area = start * width + risen
    return min(float(area.sum()) / float(_log_ratio(np.float64(low), np.float64(high))), 1.0)


def _log_ratio(low: Any, high: Any) -> Any:
    """Return ln(high / low), with all digits for near numbers and for a ratio beyond the largest double."""
    with np.errstate(over="ignore"):
        growth = (high - low) / low
    return np.where(np.isfinite(growth), np.log1p(growth), np.log(high) - np.log(low))


def _curve(runs: Runs) -> tuple[Array, Array] | None:
    """Return false and true positive rates from 0 to 1; None for one class."""
    negatives, positives = cumulative(runs.negatives), cumulative(runs.positives)
    if not (negatives[-1] > 0 and positives[-1] > 0):
        return None
    return negatives / negatives[-1], positives / positives[-1]


def _between(x: Array, y: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return the points of a curve between two places of x, with those at its ends."""
    first, last = int(np.searchsorted(x, low, side="right")), int(np.searchsorted(x, high, side="left"))
    ends = _height(x, y, low, first), _height(x, y, high, last)
    inner = slice(first, max(first, last))
    return np.r_[low, x[inner], high], np.r_[ends[0], y[inner], ends[1]]


def _height(x: Array, y: Array, at: float, after: int) -> float:
    """Return the height at a place up to the point `after`: where the curve rises there, the end within the part."""
    if x[after - 1] >= at:
        return float(y[after - 1])
    share = (at - x[after - 1]) / (x[after] - x[after - 1])
    return float(y[after - 1] + share * (y[after] - y[after - 1]))


def slopes_of_part(runs: Runs, part: CurvePart) -> Array | None:
    """Return the slopes of the area in the weight of a negative and a positive row of each score, float64 (n, 2).

    None for one class. A positive row adds its share of the range, from the curve's false positive rate at its score to
    the upper limit. A negative row moves the thresholds of all larger rates: it adds the height of the curve at its
    score, at most at the limits. Rows of a tie add their mean. For the whole curve these are the slopes of DeLong.
    """
    own = part.of(runs)
    curve = _curve(own)
    if curve is None:
        return None
    x, y = curve
    low, high = map(float, part.limits)
    first, last = int(np.searchsorted(x, low, side="right")), int(np.searchsorted(x, high, side="left"))
    bottom, top = _height(x, y, low, first), _height(x, y, high, last)
    area = _area(*_between(x, y, low, high))
    places = np.clip((x[1:] + x[:-1]) / 2, low, high)
    levels = np.where(x[1:] <= low, bottom, np.where(x[:-1] >= high, top, (y[1:] + y[:-1]) / 2))
    for at in np.flatnonzero(((x[:-1] < low) & (x[1:] > low)) | ((x[:-1] < high) & (x[1:] > high))):
        left, right = x[at], x[at + 1]
        below, above = max(low - left, 0.0), max(right - high, 0.0)
        inside = right - left - below - above
        within = max(left, low), min(right, high), max(y[at], bottom), min(y[at + 1], top)
        places[at] = (below * low + inside * (within[0] + within[1]) / 2 + above * high) / (right - left)
        levels[at] = (below * bottom + inside * (within[2] + within[3]) / 2 + above * top) / (right - left)
    slopes = np.empty((len(places), 2))
    slopes[::-1, 1] = (high - places - area) / own.positives.sum()
    slopes[::-1, 0] = (levels - (1 - high) * top - low * bottom - area) / own.negatives.sum()
    is_counted = own.positives.dtype.kind == "i"
    slopes *= part.slope(_counted_area(own, part) if is_counted else area * (1 + ROUNDING))
    return slopes if part.side == "fpr" else np.ascontiguousarray(slopes[::-1, ::-1])

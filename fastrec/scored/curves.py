"""ROC and precision-recall curves, of rows and of lists, break-even point, and comparison of two curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fastrec.checks import with_article
from fastrec.exceptions import InputError, InputTypeError
from fastrec.scored.areas import auc_of_pairs, cumulative, pairs_of_counts, step_area
from fastrec.scored.auc import no_threads_if_small, read_rows
from fastrec.scored.score_counts import ScoreCounts
from fastrec.scored.sorting import Runs
from fastrec.show.charts import curve_chart
from fastrec.show.numbers import rate
from fastrec.show.shown import Charted
from fastrec.show.tables import Chart, Section

Array = np.ndarray[Any, Any]
CURVES = "Curves"  # section of a page
PLACES = 1024  # columns of a chart of a page: a quarter of a unit of its width
DRAWN = (
    "A curve is drawn with the first, last, lowest and highest point in each of 1,024 columns, which leaves the "
    "picture as it is. Areas are those of all points."
)
EQUAL = 1e-12  # curves no further apart than this are equal: such gaps are rounding


# Curves


class RateCurve(Charted):
    """Curve of rates: unpacks into arrays, has an area, and a page of a report shows it."""

    _unpacked: ClassVar[tuple[str, ...]]  # fields
    _missing: ClassVar[str]  # line in the place of a curve without an area

    def __iter__(self) -> Iterator[Array]:
        return iter([getattr(self, name) for name in self._unpacked])

    def _in_report(self) -> list[Section]:
        picture = picture_of(self, PLACES)
        if picture is None:
            return [Section(CURVES, lines=[self._missing])]
        x, y = picture.x, picture.y
        if picture.is_steps:  # a step goes up or down where it begins
            x, y = np.append(x[:1], np.repeat(x, 2)[:-1]), np.repeat(y, 2)
        points, rule, lines = list(zip(x.tolist(), y.tolist(), strict=True)), [], []
        if picture.reference is not None:  # the curve is of rows, which may be many
            rule, lines = list(zip((0.0, 1.0), picture.reference[1], strict=True)), [DRAWN]
        chart = Chart(picture.title, curve_chart(picture.title, picture.axes, points, rule))
        return [Section(CURVES, charts=[chart], lines=lines)]


@dataclass(frozen=True, eq=False)
class RocCurve(RateCurve):
    """Points of a ROC curve by descending threshold; unpacks into ``fpr, tpr, thresholds``.

    A point holds the rates of rows with ``score >= threshold``. The first point has threshold inf and no rows.
    ``false_positives`` and ``true_positives`` are the numerators of the rates: rows, or weights in a common unit.
    """

    fpr: Array
    tpr: Array
    thresholds: Array
    false_positives: Array
    true_positives: Array

    _unpacked = "fpr", "tpr", "thresholds"
    _missing = "No ROC curve: all rows are of one class."

    @property
    def area(self) -> float:
        """Area by the trapezoidal rule: the AUC. Without weights it uses integers, so it has the same bits as `auc`."""
        return auc_of_pairs(pairs_of_counts(np.diff(self.true_positives)[::-1], np.diff(self.false_positives)[::-1]))


@dataclass(frozen=True, eq=False)
class PrCurve(RateCurve):
    """Points of a precision-recall curve by ascending threshold; unpacks into ``precision, recall, thresholds``.

    A point holds the values of rows with ``score >= threshold``. The last point, precision 1 and recall 0, has no
    threshold. ``true_positives`` and ``false_positives`` are rows, or weights in a common unit.
    """

    precision: Array
    recall: Array
    thresholds: Array
    true_positives: Array
    false_positives: Array

    _unpacked = "precision", "recall", "thresholds"
    _missing = "No precision-recall curve: no row is positive."

    @property
    def area(self) -> float:
        """Area under the steps: the average precision; 0 without positives."""
        return step_area(self.true_positives[::-1], self.false_positives[::-1])


@dataclass(frozen=True, eq=False)
class InterpolatedPrCurve(RateCurve):
    """Mean precision of lists at levels of recall, as `interpolated_pr_curve` returns it; unpacks into both.

    It unpacks into ``precision, recall``. ``low`` and ``high`` are the 95 % interval of each mean over users, NaN
    without one. ``users`` were counted. ``groups`` are {grouping: {label: InterpolatedPrCurve}}.
    """

    precision: Array
    recall: Array
    low: Array
    high: Array
    users: int
    groups: Mapping[str, Mapping[Any, InterpolatedPrCurve]]

    _unpacked = "precision", "recall"
    _missing = "No interpolated precision-recall curve: no user counts."

    @property
    def area(self) -> float:
        """Mean of the precisions: with 11 levels the eleven-point average."""
        return float(self.precision.mean())


class Picture(NamedTuple):
    """What pages and matplotlib show of a curve in the unit square."""

    title: str  # of a page
    legend: str
    axes: tuple[str, str]
    x: Array  # ascending
    y: Array
    reference: tuple[str, tuple[float, float]] | None = None  # a line to compare with: name, heights at both ends
    is_steps: bool = False


def picture_of(curve: RateCurve, n_columns: int) -> Picture | None:
    """Return what a picture of so many columns shows, or None if the curve has no area."""
    axes = "recall", "precision"
    if isinstance(curve, PrCurve) and curve.true_positives[0] > 0:
        share = float(curve.precision[0])  # at the lowest threshold, which all rows reach
        area, base = rate(curve.area), f"base rate {rate(share)}"
        title = f"Precision-recall curve, average precision {area}, {base}"
        x, y = visible(curve.recall[::-1], curve.precision[::-1], n_columns)
        return Picture(title, f"AP {area}", axes, x, y, (base, (share, share)), is_steps=True)
    if isinstance(curve, InterpolatedPrCurve) and not math.isnan(curve.area):
        name = f"{len(curve.recall)}-point average {rate(curve.area)}"
        title = f"Interpolated precision-recall curve of lists, {name}"
        return Picture(title, name, axes, curve.recall, curve.precision)
    if isinstance(curve, RocCurve) and not math.isnan(curve.area):
        area, axes = rate(curve.area), ("false positive rate", "true positive rate")
        x, y = visible(curve.fpr, curve.tpr, n_columns)
        return Picture(f"ROC curve, area {area}", f"AUC {area}", axes, x, y, ("chance", (0.0, 1.0)))
    return None


def visible(x: Array, y: Array, n_columns: int) -> tuple[Array, Array]:
    """Return the points of a curve in [0, 1], x ascending, that a picture of so many columns can show.

    These are the first, last, lowest and highest point per column. The picture is the same as with all points (Jugel
    et al. 2014, M4).
    """
    column = np.floor(x * n_columns)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    by_height = np.lexsort((y, column))
    points = np.unique(np.concatenate([starts, ends, by_height[starts], by_height[ends]]))
    return x[points], y[points]


def _count_scores(labels: Any, scores: Any, sample_weight: Any) -> Runs:
    rows = read_rows(labels, scores, sample_weight)
    threads = no_threads_if_small(len(rows.labels), None)
    return ScoreCounts.of_rows(*rows, n_threads=threads).runs(n_threads=threads)


def _share(part: Array) -> Array:
    """Return cumulative counts divided by the last, the total; NaN if that is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(part / part[-1])


def roc_curve(labels: Any, scores: Any, *, sample_weight: Any = None, thin: bool = False) -> RocCurve:
    """Return the points of the ROC curve, with the rates at every distinct score, in scikit-learn's order.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Tied rows are one threshold.
    sample_weight : array (n,), optional
        Finite, at least 0, not all 0; rows of weight 0 give no threshold.
    thin : bool
        Leave out points on a straight line between their neighbours. Without weights, integers decide and the area
        stays exactly the same. With weights, only points inside horizontal or vertical segments are left out.

    Returns
    -------
    RocCurve
        ``fpr``, ``tpr``, ``thresholds`` (float64, descending, the first inf), and ``.area``. A rate is NaN if its class
        has no rows.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import roc_curve
    >>> fpr, tpr, thresholds = curve = roc_curve(
    ...     [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    ... )
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.35, 0.1])
    >>> curve.area
    0.75
    """
    return roc_of_runs(_count_scores(labels, scores, sample_weight), thin=thin)


def roc_of_runs(counts: Runs, *, thin: bool) -> RocCurve:
    """Return the `roc_curve` of the counts of rows by score."""
    false, true = cumulative(counts.negatives), cumulative(counts.positives)
    thresholds = np.concatenate([[math.inf], counts.scores[::-1]])
    if thin:
        kept = _corners(false, true)
        false, true, thresholds = false[kept], true[kept], thresholds[kept]
    return RocCurve(_share(false), _share(true), thresholds, false, true)


def _corners(across: Array, up: Array) -> Array:
    """Return a mask of the points of a rising line that are not straight between their neighbours; it has both ends."""
    kept = np.ones(len(across), bool)
    kept[:-1] = (np.diff(across) != 0) | (np.diff(up) != 0)  # a sum of weights may lose a small one
    at = np.flatnonzero(kept)
    right, rise = np.diff(across[at]), np.diff(up[at])
    if across.dtype.kind == "i":
        if max(int(across[-1]), int(up[-1])) >= 1 << 31:
            right, rise = right.astype(object), rise.astype(object)  # products exceed 2^62
        kept[at[1:-1]] = right[1:] * rise[:-1] != right[:-1] * rise[1:]
    else:
        kept[at[1:-1]] = ~np.any([(step[1:] == 0) & (step[:-1] == 0) for step in (right, rise)], axis=0)
    return kept


def pr_curve(labels: Any, scores: Any, *, sample_weight: Any = None, thin: bool = False) -> PrCurve:
    """Return the points of the precision-recall curve at every distinct score, in scikit-learn's order.

    Parameters
    ----------
    labels, scores, sample_weight
        As for `roc_curve`.
    thin : bool
        Keep only the first and the last of the points with the same recall. The area stays exactly the same.

    Returns
    -------
    PrCurve
        ``precision`` and ``recall``, with a last point (1, 0) that has no threshold, ``thresholds`` (float64,
        ascending), and ``.area``. Recall is NaN without positives, except at the last point.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import pr_curve
    >>> precision, recall, thresholds = curve = pr_curve(
    ...     [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    ... )
    >>> precision.round(3).tolist(), recall.tolist(), thresholds.tolist()
    ([0.5, 0.667, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0], [0.1, 0.35, 0.4, 0.8])
    >>> round(curve.area, 4)
    0.8333
    """
    return pr_of_runs(_count_scores(labels, scores, sample_weight), thin=thin)


def pr_of_runs(counts: Runs, *, thin: bool) -> PrCurve:
    """Return the `pr_curve` of the counts of rows by score."""
    false, true = cumulative(counts.negatives), cumulative(counts.positives)
    kept = np.ones(len(true), bool)
    if thin:
        kept[2:-1] = (true[2:-1] != true[1:-2]) | (true[2:-1] != true[3:])
    false, true, thresholds = false[kept], true[kept], counts.scores[::-1][kept[1:]]
    precision, recall = np.ones(len(true)), _share(true)
    precision[1:] = true[1:] / (true + false)[1:]
    recall[0] = 0.0
    return PrCurve(*(np.ascontiguousarray(each[::-1]) for each in (precision, recall, thresholds, true, false)))


def break_even_point(labels: Any, scores: Any, *, sample_weight: Any = None) -> float:
    """Return the precision among the P highest-scored rows, for P positives, where it equals the recall.

    If the P highest rows end within ties, the tied rows count in proportion. The value is the mean over all orders of
    the tied rows: the expected R-precision.

    Parameters
    ----------
    labels, scores, sample_weight
        As for `roc_curve`; with weights, the highest rows up to the weight of all positives.

    Returns
    -------
    float
        In [0, 1]; NaN without positives.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import break_even_point
    >>> break_even_point([1, 0, 1, 0, 0], [0.9, 0.8, 0.8, 0.8, 0.1])
    0.6666666666666666
    """
    counts = _count_scores(labels, scores, sample_weight)
    hits = cumulative(counts.positives)
    if not hits[-1] > 0:
        return math.nan
    rows = hits + cumulative(counts.negatives)
    at = int(np.searchsorted(rows, hits[-1]))  # the first threshold with as many rows as positives
    numbers = hits[at - 1], hits[at], rows[at] - rows[at - 1], hits[-1] - rows[at - 1], hits[-1]
    before, after, size, room, total = (Fraction(number.item()) for number in numbers)  # products may vanish
    return float((before * size + room * (after - before)) / (size * total))


class CurveComparison(NamedTuple):
    """Which of two curves is above the other, and the points (x, y) where they cross."""

    dominates: Literal["first", "second", "neither", "equal"]
    crossings: Array  # (n, 2)


def compare_curves(first: RocCurve | PrCurve, second: RocCurve | PrCurve) -> CurveComparison:
    """Find whether one curve is nowhere below the other, or where they cross.

    ROC curves are lines between their points. A curve that dominates is better at every false positive rate and for
    every cost of errors (Provost & Fawcett 2001). Precision-recall curves are steps with the average precision as
    area. Curves no further apart than 1e-12 count as equal.

    Parameters
    ----------
    first, second : two RocCurve or two PrCurve
        Of any rows, each with both classes (ROC) or with a positive (precision-recall).

    Returns
    -------
    CurveComparison
        ``dominates``: ``"first"`` if it is nowhere below and somewhere above, ``"second"`` likewise, ``"equal"``, or
        ``"neither"`` if they cross. ``crossings``: float64 (n, 2), the points (fpr, tpr) or (recall, precision)
        where the higher curve changes, by ascending x. If both curves have a vertical step at an x, y is the middle of
        the range that both steps cover.

    Raises
    ------
    InputTypeError
        If the curves are not of the same kind.
    InputError
        If a curve has no rates, because a class has no rows.

    Examples
    --------
    >>> from fastrec.scored.curves import compare_curves, roc_curve
    >>> labels = [1, 0, 0, 1]
    >>> constant = roc_curve(labels, [1, 1, 1, 1])
    >>> compare_curves(roc_curve(labels, [4, 2, 1, 3]), constant).dominates
    'first'
    >>> compare_curves(roc_curve(labels, [4, 3, 2, 1]), constant)
    CurveComparison(dominates='neither', crossings=array([[0.5, 0.5]]))
    """
    for name, curve in (("first", first), ("second", second)):
        if not isinstance(curve, (RocCurve, PrCurve)):
            raise InputTypeError(
                f"the {name} curve must be a RocCurve or a PrCurve, found {with_article(type(curve).__name__)}"
            )
        if any(len(values) < 2 or np.isnan(values).any() for values in list(curve)[:2]):
            raise InputError(f"the {name} curve has no rates: a class has no rows")
    if isinstance(first, RocCurve) and isinstance(second, RocCurve):  # tpr - fpr is a function of fpr + tpr
        along = np.unique(np.concatenate([first.fpr + first.tpr, second.fpr + second.tpr]))
        heights = [np.interp(along, each.fpr + each.tpr, each.tpr - each.fpr) for each in (first, second)]
        gap, after = _turns(*heights)
        share = gap[after - 1] / (gap[after - 1] - gap[after])
        x, y = (own[after - 1] + share * (own[after] - own[after - 1]) for own in (along, heights[0]))
        return _comparison(gap, (x - y) / 2, (x + y) / 2)
    if isinstance(first, PrCurve) and isinstance(second, PrCurve):
        levels = np.unique(np.concatenate([first.recall, second.recall]))[1:]
        heights = [_steps_at(each, levels) for each in (first, second)]
        gap, after = _turns(*heights)
        low = np.max([np.minimum(own[after - 1], own[after]) for own in heights], axis=0)
        high = np.min([np.maximum(own[after - 1], own[after]) for own in heights], axis=0)
        return _comparison(gap, levels[after - 1], (low + high) / 2)
    raise InputTypeError(
        f"the curves must be of the same kind, found {type(first).__name__} and {type(second).__name__}"
    )


def _steps_at(curve: PrCurve, levels: Array) -> Array:
    """Return the precision at the highest threshold with a recall of at least each level."""
    recall, precision = curve.recall[::-1], curve.precision[::-1]
    return np.asarray(precision[np.minimum(np.searchsorted(recall, levels - EQUAL), len(recall) - 1)])


def _turns(heights: Array, other: Array) -> tuple[Array, Array]:
    """Return how far the first curve is above the second, 0 where they are equal, and the places where this turns.

    At such a place, the higher curve is another one than before.
    """
    gap = np.where(np.abs(heights - other) > EQUAL, heights - other, 0.0)
    places = np.flatnonzero(gap)
    return gap, np.asarray(places[1:][np.diff(gap[places] > 0)])


def _comparison(gap: Array, x: Array, y: Array) -> CurveComparison:
    above, below = bool((gap > 0).any()), bool((gap < 0).any())
    dominates: Literal["first", "second", "neither", "equal"]
    dominates = ("neither" if below else "first") if above else ("second" if below else "equal")
    return CurveComparison(dominates, np.column_stack([x, y]))

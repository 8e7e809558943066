"""ROC and precision-recall curves, of rows and of lists, break-even point, and comparison of two curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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


@dataclass(frozen=True, eq=False)
class RocCurve(Charted):
    """Points of a ROC curve by descending threshold; unpacks into ``fpr, tpr, thresholds``.

    A point holds the rates of rows with ``score >= threshold``. The first point has threshold inf and no rows.
    ``false_positives`` and ``true_positives`` are the numerators of the rates: rows, or weights in a common unit.
    """

    fpr: Array
    tpr: Array
    thresholds: Array
    false_positives: Array
    true_positives: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.fpr, self.tpr, self.thresholds))

    @property
    def area(self) -> float:
        """Area by the trapezoidal rule: the AUC. Without weights it uses integers, so it has the same bits as `auc`."""
        new_positives, new_negatives = np.diff(self.true_positives)[::-1], np.diff(self.false_positives)[::-1]
        if self.true_positives.dtype.kind == "i":
            return auc_of_pairs(pairs_of_counts(new_positives, new_negatives))
        return float((np.diff(self.fpr) * (self.tpr[1:] + self.tpr[:-1])).sum()) / 2 if len(self.fpr) > 1 else math.nan

    def _in_report(self) -> list[Section]:
        if math.isnan(self.area):
            return [Section(CURVES, lines=["No ROC curve: all rows are of one class."])]
        title = f"ROC curve, area {rate(self.area)}"
        x, y = visible(self.fpr, self.tpr, PLACES)
        axes = "false positive rate", "true positive rate"
        return [_section(title, curve_chart(title, axes, _pairs(x, y), [(0.0, 0.0), (1.0, 1.0)]))]


@dataclass(frozen=True, eq=False)
class PrCurve(Charted):
    """Points of a precision-recall curve by ascending threshold; unpacks into ``precision, recall, thresholds``.

    A point holds the values of rows with ``score >= threshold``. The last point, precision 1 and recall 0, has no
    threshold. ``true_positives`` and ``false_positives`` are rows, or weights in a common unit.
    """

    precision: Array
    recall: Array
    thresholds: Array
    true_positives: Array
    false_positives: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.precision, self.recall, self.thresholds))

    @property
    def area(self) -> float:
        """Area under the steps: the average precision; 0 without positives."""
        return step_area(self.true_positives[::-1], self.false_positives[::-1])

    def _in_report(self) -> list[Section]:
        if not self.true_positives[0] > 0:
            return [Section(CURVES, lines=["No precision-recall curve: no row is positive."])]
        share = float(self.precision[0])  # at the lowest threshold, which all rows reach
        title = f"Precision-recall curve, average precision {rate(self.area)}, base rate {rate(share)}"
        x, y = visible(self.recall[::-1], self.precision[::-1], PLACES)
        before = np.append(x[:1], x[:-1])  # a step goes up or down where it begins
        steps = [
            point for old, new, height in zip(before, x, y, strict=True) for point in ((old, height), (new, height))
        ]
        return [_section(title, curve_chart(title, ("recall", "precision"), steps, [(0.0, share), (1.0, share)]))]


@dataclass(frozen=True, eq=False)
class InterpolatedPrCurve(Charted):
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

    def __iter__(self) -> Iterator[Array]:
        return iter((self.precision, self.recall))

    @property
    def area(self) -> float:
        """Mean of the precisions: with 11 levels the eleven-point average."""
        return float(self.precision.mean())

    def _in_report(self) -> list[Section]:
        if math.isnan(self.area):
            return [Section(CURVES, lines=["No interpolated precision-recall curve: no user counts."])]
        title = f"Interpolated precision-recall curve of lists, {named_area(self)}"
        svg = curve_chart(title, ("recall", "precision"), _pairs(self.recall, self.precision), [])
        return [Section(CURVES, charts=[Chart(title, svg)])]


def named_area(curve: InterpolatedPrCurve) -> str:
    """Return the area of a curve of lists as written in titles and legends."""
    return f"{len(curve.recall)}-point average {rate(curve.area)}"


def _section(title: str, svg: str) -> Section:
    return Section(CURVES, charts=[Chart(title, svg)], lines=[DRAWN])


def _pairs(x: Array, y: Array) -> list[tuple[float, float]]:
    return list(zip(x.tolist(), y.tolist(), strict=True))


def visible(x: Array, y: Array, n_columns: int) -> tuple[Array, Array]:
    """Return the points of a curve in [0, 1], x monotone, that a picture of so many columns can show.

    These are the first, last, lowest and highest point per column. The picture is the same as with all points (Jugel
    et al. 2014, M4).
    """
    column = np.floor(x * n_columns)
    starts = np.flatnonzero(np.r_[True, column[1:] != column[:-1]])
    lengths = np.diff(np.r_[starts, len(x)])
    kept = [starts, starts + lengths - 1]
    for extreme in (np.minimum, np.maximum):
        at = np.flatnonzero(y == np.repeat(extreme.reduceat(y, starts), lengths))
        kept.append(at[np.r_[True, column[at[1:]] != column[at[:-1]]]])
    points = np.unique(np.concatenate(kept))
    return x[points], y[points]


def _count_scores(labels: Any, scores: Any, sample_weight: Any) -> Runs:
    rows = read_rows(labels, scores, sample_weight)
    seen = ScoreCounts(weighted=rows.weights is not None)
    threads = no_threads_if_small(len(rows.labels), None)
    seen.add(*rows, n_threads=threads)
    return seen.runs(n_threads=threads)


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
    right, rise = np.diff(across), np.diff(up)
    if across.dtype.kind == "i":
        if max(int(across[-1]), int(up[-1])) >= 1 << 31:
            right, rise = right.astype(object), rise.astype(object)  # products exceed 2^62
        kept[1:-1] = right[1:] * rise[:-1] != right[:-1] * rise[1:]
    else:
        level = (rise[1:] == 0) & (rise[:-1] == 0)
        upright = (right[1:] == 0) & (right[:-1] == 0)
        kept[1:-1] = ~(level | upright)
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
    before, after = hits[at - 1].item(), hits[at].item()
    size, room = (rows[at] - rows[at - 1]).item(), (hits[-1] - rows[at - 1]).item()
    return float((before * size + room * (after - before)) / (size * hits[-1].item()))


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
    if isinstance(first, RocCurve) and isinstance(second, RocCurve):
        return _compare_lines(first, second)
    if isinstance(first, PrCurve) and isinstance(second, PrCurve):
        return _compare_steps(first, second)
    raise InputTypeError(
        f"the curves must be of the same kind, found {type(first).__name__} and {type(second).__name__}"
    )


def _compare_lines(first: RocCurve, second: RocCurve) -> CurveComparison:
    """Compare ROC curves: they never fall, so tpr - fpr is a function of fpr + tpr."""
    along = np.unique(np.concatenate([first.fpr + first.tpr, second.fpr + second.tpr]))
    heights, other = (np.interp(along, each.fpr + each.tpr, each.tpr - each.fpr) for each in (first, second))
    gap = heights - other
    crossings = []
    for before, after, at in _changes(gap):
        share = gap[before] / (gap[before] - gap[after]) if after == before + 1 else 1.0
        start = before if after == before + 1 else at
        end = after if after == before + 1 else at
        x = along[start] + share * (along[end] - along[start])
        y = heights[start] + share * (heights[end] - heights[start])
        crossings.append(((x - y) / 2, (x + y) / 2))
    return _comparison(gap, crossings)


def _compare_steps(first: PrCurve, second: PrCurve) -> CurveComparison:
    """Compare precision-recall curves: precision at a recall is that of the highest threshold that reaches it."""
    levels = np.unique(np.concatenate([first.recall, second.recall]))[1:]
    values, other = (_steps_at(each, levels) for each in (first, second))
    gap = values - other
    crossings = []
    for _, after, at in _changes(gap):
        low = max(min(each[at], each[after]) for each in (values, other))
        high = min(max(each[at], each[after]) for each in (values, other))
        crossings.append((levels[at], (low + high) / 2))
    return _comparison(gap, crossings)


def _steps_at(curve: PrCurve, levels: Array) -> Array:
    """Return the precision at the highest threshold with a recall of at least each level."""
    recall, precision = curve.recall[::-1], curve.precision[::-1]
    return precision[np.minimum(np.searchsorted(recall, levels - EQUAL), len(recall) - 1)]


def _changes(gap: Array) -> list[tuple[int, int, int]]:
    """Find sign changes of a gap: the last place of the old sign, the first of the new sign, the place before it."""
    signs = np.sign(np.where(np.abs(gap) > EQUAL, gap, 0.0))
    places = np.flatnonzero(signs)
    turns = np.flatnonzero(signs[places][1:] != signs[places][:-1])
    return [(int(places[turn]), int(places[turn + 1]), int(places[turn + 1]) - 1) for turn in turns]


def _comparison(gap: Array, crossings: list[tuple[float, float]]) -> CurveComparison:
    above, below = bool((gap > EQUAL).any()), bool((gap < -EQUAL).any())
    dominates: Literal["first", "second", "neither", "equal"]
    dominates = ("neither" if below else "first") if above else ("second" if below else "equal")
    return CurveComparison(dominates, np.array(crossings, np.float64).reshape(-1, 2))

"""Plots of scored rows with matplotlib (extra `plot`): ROC, precision-recall and calibration curves."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import check_choice, whole_number
from fastrec.exceptions import InputError, shown
from fastrec.inputs.columns import check_classes, check_lengths, check_row_weights, check_scores
from fastrec.scored.curves import pr_curve, roc_curve
from fastrec.scored.score_counts import bins_of_ties
from fastrec.show.numbers import rate
from fastrec.show.plots import COLOURS, STYLES, check_target, own_axes, with_grid

__all__ = ["plot_calibration", "plot_pr", "plot_roc"]

Array = np.ndarray[Any, Any]
Floats = NDArray[np.float64]
COLUMNS = 2000  # more than the pixels across a picture
CURVE = "fastrec curve"  # marks our curves on axes that may hold others
STRATEGIES = ("uniform", "quantile")
MAX_BINS = 1 << 20
MIN_MARKER, MAX_MARKER = 12.0, 90.0  # areas in square points


def plot_roc(labels: Any, scores: Any, *, ax: Any = None, label: str | None = None, sample_weight: Any = None) -> Any:
    """Draw the ROC curve: true positive rate against false positive rate, with its area in the legend.

    Parameters
    ----------
    labels, scores, sample_weight : arrays (n,)
        As in `roc_curve`.
    ax : matplotlib axes, optional
        Axes to draw on; a new figure by default. One axes can hold several curves.
    label : str, optional
        Name in the legend, before the area.

    Returns
    -------
    The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError, InputTypeError
        As `roc_curve`; if only one class has rows; if `ax` or `label` has another type.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = fastrec.plot_roc([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], label="model")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['chance', 'model (AUC 0.7500)']
    """
    check_target(ax, label, "plot_roc")
    curve = roc_curve(labels, scores, sample_weight=sample_weight, thin=True)
    if math.isnan(curve.area):
        raise InputError("a ROC curve needs rows of both classes, found at most one class")
    ax = own_axes(ax)
    _draw_reference(ax, [0, 1], [0, 1], "chance")
    _draw_curve(ax, *_visible(curve.fpr, curve.tpr), _named(label, f"AUC {rate(curve.area)}"))
    return _finish(ax, "False positive rate", "True positive rate", "lower right")


def plot_pr(labels: Any, scores: Any, *, ax: Any = None, label: str | None = None, sample_weight: Any = None) -> Any:
    """Draw the precision-recall curve in steps, with the average precision in the legend.

    The dotted line is the share of positives: the precision of a random order.

    Parameters, result and errors are those of `plot_roc`, but rows of one class are an error only if none is positive.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = fastrec.plot_pr([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['base rate 0.5000', 'AP 0.8333']
    """
    check_target(ax, label, "plot_pr")
    curve = pr_curve(labels, scores, sample_weight=sample_weight, thin=True)
    if not curve.true_positives[0] > 0:
        raise InputError("a precision-recall curve needs a positive row, found none")
    share = float(curve.precision[0])  # at the lowest threshold, which all rows reach
    ax = own_axes(ax)
    _draw_reference(ax, [0, 1], [share, share], f"base rate {rate(share)}")
    x, y = _visible(curve.recall[::-1], curve.precision[::-1])
    _draw_curve(ax, x, y, _named(label, f"AP {rate(curve.area)}"), steps=True)
    return _finish(ax, "Recall", "Precision", "best")


class CalibrationBins(NamedTuple):
    """Statistics of rows binned by score, without empty bins."""

    mean_score: Floats
    positive_share: Floats
    rows: NDArray[np.int64]
    ece: float


def plot_calibration(
    labels: Any,
    scores: Any,
    *,
    ax: Any = None,
    bins: int = 15,
    strategy: str = "uniform",
    label: str | None = None,
    sample_weight: Any = None,
) -> Any:
    """Draw the share of positives against the mean score, bin by bin, with the expected calibration error.

    The area of a marker grows with the number of rows in its bin; a bin without rows has no marker. If most scores are
    near 0, `strategy="quantile"` and `ax.set_xlim` show more.

    Parameters
    ----------
    labels, scores, sample_weight : arrays (n,)
        Labels 0 or 1, scores in [0, 1], weights of rows.
    ax, label
        As in `plot_roc`.
    bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        ``uniform``: bins of the same width; bin b holds scores in [b / bins, (b + 1) / bins), the last one also 1.
        ``quantile``: bins of the same weight, cut where rows in order of their scores pass each multiple of W / bins,
        for a total weight W; equal scores are in the bin of the first.

    Returns
    -------
    The axes. The legend gives ECE = sum over bins of |sum of w (score - label)| / sum of w.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InputError, InputTypeError
        If labels are not 0 or 1, scores are not in [0, 1], lengths differ, no row has weight, or an option is unknown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = fastrec.plot_calibration([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], bins=2)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['perfect', 'ECE 0.1750']
    """
    check_target(ax, label, "plot_calibration")
    found = bin_scores(labels, scores, bins=bins, strategy=strategy, sample_weight=sample_weight)
    ax = own_axes(ax)
    _draw_reference(ax, [0, 1], [0, 1], "perfect")
    colour = _draw_curve(ax, found.mean_score, found.positive_share, _named(label, f"ECE {rate(found.ece)}"), width=1.1)
    areas = MIN_MARKER + (MAX_MARKER - MIN_MARKER) * found.rows / found.rows.max()
    ax.scatter(
        found.mean_score, found.positive_share, s=areas, color=colour, edgecolors="white", linewidths=0.6, zorder=3
    )
    x_label = "Mean score of bin (marker area: rows in bin)"
    return _finish(ax, x_label, "Share of positives in bin", "upper left")


def bin_scores(labels: Any, scores: Any, *, bins: int, strategy: str, sample_weight: Any = None) -> CalibrationBins:
    """Return mean score, share of positives and number of rows of each bin with weight; see `plot_calibration`."""
    positive, values = check_classes(labels), check_scores(scores).astype(np.float64)
    check_lengths(positive, values, "scores")
    outside = (values < 0) | (values > 1)
    if outside.any():
        at = int(outside.argmax())
        raise InputError(f"scores must lie in [0, 1] to be calibrated, found {values[at]} at row {at}")
    weights = np.ones(len(values)) if sample_weight is None else check_row_weights(sample_weight, len(values))
    if not weights.any():
        raise InputError("labels must have at least one row with weight, found none")
    bin_of = _bin_of_rows(values, weights, _check_bins(bins), strategy)
    weight, score, hits, gap = (
        np.bincount(bin_of, weights * part, bins) for part in (1.0, values, positive, values - positive)
    )
    full = weight > 0
    ece = float(np.abs(gap).sum() / weight.sum())
    return CalibrationBins(
        score[full] / weight[full], hits[full] / weight[full], np.bincount(bin_of, minlength=bins)[full], ece
    )


def _bin_of_rows(scores: Floats, weights: Floats, bins: int, strategy: str) -> NDArray[np.int64]:
    check_choice("strategy", strategy, STRATEGIES)
    if strategy == "uniform":
        return np.searchsorted(np.arange(1, bins) / bins, scores, side="right")
    order, starts, bin_of_tie = bins_of_ties(scores, weights, bins)
    bin_of = np.empty(len(scores), np.int64)
    bin_of[order] = np.repeat(bin_of_tie, np.diff(np.r_[starts, len(scores)]))
    return bin_of


def _check_bins(bins: Any) -> int:
    number = whole_number(bins)
    if number is None or not 1 <= number <= MAX_BINS:
        raise InputError(f"bins must be an integer from 1 to {MAX_BINS:,}, found {shown(bins)}")
    return number


# Drawing


def _named(label: str | None, value: str) -> str:
    return value if label is None else f"{label} ({value})"


def _draw_curve(ax: Any, x: Array, y: Array, label: str, *, steps: bool = False, width: float = 1.8) -> str:
    """Draw a curve in our next colour, and return the colour."""
    before = sum(line.get_gid() == CURVE for line in ax.get_lines())
    colour = COLOURS[before % len(COLOURS)]
    style = STYLES[before % len(STYLES)]
    drawstyle = "steps-pre" if steps else "default"
    ax.plot(x, y, linestyle=style, color=colour, linewidth=width, label=label, gid=CURVE, drawstyle=drawstyle)
    return colour


def _draw_reference(ax: Any, x: list[float], y: list[float], label: str) -> None:
    """Draw a reference line, once per axes."""
    if all(line.get_label() != label for line in ax.get_lines()):
        ax.plot(x, y, ":", color="0.45", linewidth=1.3, label=label, zorder=1)


def _finish(ax: Any, x_label: str, y_label: str, legend: str) -> Any:
    ax.set(xlabel=x_label, ylabel=y_label, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    ax.set_aspect("equal")
    ax.legend(loc=legend, fontsize="small")
    return with_grid(ax, "both")


def _visible(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the points of a curve, x monotone, that a picture can show: first, last, lowest, highest per column.

    The picture is the same as with all points (Jugel et al. 2014, M4).
    """
    column = np.floor(x * COLUMNS)
    starts = np.flatnonzero(np.r_[True, column[1:] != column[:-1]])
    lengths = np.diff(np.r_[starts, len(x)])
    kept = [starts, starts + lengths - 1]
    for extreme in (np.minimum, np.maximum):
        at = np.flatnonzero(y == np.repeat(extreme.reduceat(y, starts), lengths))
        kept.append(at[np.r_[True, column[at[1:]] != column[at[:-1]]]])
    points = np.unique(np.concatenate(kept))
    return x[points], y[points]

"""Plots of scored rows with matplotlib (extra `plot`): ROC, precision-recall and calibration curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, InputTypeError
from fastrec.scored.calibration import Binned, bin_rows, check_bins, read_rows_to_bin
from fastrec.scored.curves import InterpolatedPrCurve, PrCurve, named_area, pr_curve, roc_curve, visible
from fastrec.show.numbers import rate
from fastrec.show.plots import COLOURS, STYLES, check_target, own_axes, with_grid

Array = np.ndarray[Any, Any]
COLUMNS = 2000  # more than the pixels across a picture
CURVE = "fastrec curve"  # marks our curves on axes that may hold others
LEVEL = 0.95  # of intervals, which pictures with matplotlib leave out
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
    _draw_curve(ax, *visible(curve.fpr, curve.tpr, COLUMNS), _named(label, f"AUC {rate(curve.area)}"))
    return _finish(ax, "False positive rate", "True positive rate", "lower right")


def plot_pr(
    labels: Any, scores: Any = None, *, ax: Any = None, label: str | None = None, sample_weight: Any = None
) -> Any:
    """Draw the precision-recall curve in steps, with the average precision in the legend.

    The dotted line is the share of positives: the precision of a random order. In place of labels and scores it takes
    a curve: a result of `pr_curve`, or of `interpolated_pr_curve` for lists. That one is a line with its 95 %
    intervals, and the legend has the mean of its precisions.

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
    if isinstance(labels, (PrCurve, InterpolatedPrCurve)):
        if scores is not None or sample_weight is not None:
            raise InputTypeError("plot_pr takes a curve alone, found scores or sample_weight too")
        curve = labels
    elif scores is None:
        raise InputTypeError("plot_pr needs labels and scores, or a curve")
    else:
        curve = pr_curve(labels, scores, sample_weight=sample_weight, thin=True)
    if isinstance(curve, InterpolatedPrCurve):
        return _draw_interpolated(curve, ax, label)
    if not curve.true_positives[0] > 0:
        raise InputError("a precision-recall curve needs a positive row, found none")
    share = float(curve.precision[0])  # at the lowest threshold, which all rows reach
    ax = own_axes(ax)
    _draw_reference(ax, [0, 1], [share, share], f"base rate {rate(share)}")
    x, y = visible(curve.recall[::-1], curve.precision[::-1], COLUMNS)
    _draw_curve(ax, x, y, _named(label, f"AP {rate(curve.area)}"), steps=True)
    return _finish(ax, "Recall", "Precision", "best")


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

    The area of a marker grows with the number of rows in its bin, or their weight; a bin without rows has no marker. If
    most scores are near 0, `strategy="quantile"` and `ax.set_xlim` show more. `calibration_curve` has the numbers, with
    intervals, and groups of rows.

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
    number = check_bins(bins, strategy)
    rows = read_rows_to_bin(labels, scores, sample_weight=sample_weight)
    return draw_calibration(bin_rows(rows, number, strategy, LEVEL), ax, label)


def draw_calibration(found: Binned, ax: Any, label: str | None) -> Any:
    """Draw bins, as `plot_calibration` does."""
    ax = own_axes(ax)
    _draw_reference(ax, [0, 1], [0, 1], "perfect")
    x, y, rows = (column[:-1] for column in (found.mean_score, found.mean_label, found.rows))
    colour = _draw_curve(ax, x, y, _named(label, f"ECE {rate(found.ece)}"), width=1.1)
    areas = MIN_MARKER + (MAX_MARKER - MIN_MARKER) * rows / rows.max()
    ax.scatter(x, y, s=areas, color=colour, edgecolors="white", linewidths=0.6, zorder=3)
    x_label = "Mean score of bin (marker area: rows in bin)"
    return _finish(ax, x_label, "Share of positives in bin", "upper left")


# Drawing


def _draw_interpolated(curve: InterpolatedPrCurve, ax: Any, label: str | None) -> Any:
    """Draw the curve of lists with its intervals."""
    if math.isnan(curve.area):
        raise InputError("an interpolated precision-recall curve needs a user who counts, found none")
    ax = own_axes(ax)
    colour = _draw_curve(ax, curve.recall, curve.precision, _named(label, named_area(curve)))
    if not np.isnan(curve.low).any():
        ax.fill_between(curve.recall, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    return _finish(ax, "Recall", "Precision", "best")


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

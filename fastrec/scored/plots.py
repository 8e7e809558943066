"""Plots of scored rows with matplotlib (extra `plot`): ROC, precision-recall and calibration curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.exceptions import InputError, InputTypeError
from fastrec.scored.calibration import Binned
from fastrec.scored.curves import InterpolatedPrCurve, PrCurve, RateCurve, RocCurve, picture_of, pr_curve, roc_curve
from fastrec.show.numbers import rate
from fastrec.show.plots import COLOURS, STYLES, check_target, own_axes, with_grid

Array = np.ndarray[Any, Any]
COLUMNS = 2000  # more than the pixels across a picture
CURVE = "fastrec curve"  # marks our curves on axes that may hold others
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
    return _draw(curve, ax, label, "a ROC curve needs rows of both classes, found at most one class")


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
    if isinstance(curve, PrCurve):
        return _draw(curve, ax, label, "a precision-recall curve needs a positive row, found none")
    return _draw(curve, ax, label, "an interpolated precision-recall curve needs a user who counts, found none")


def draw_calibration(found: Binned, ax: Any, label: str | None) -> Any:
    """Draw the share of positives against the mean score, bin by bin, with the expected calibration error."""
    ax = own_axes(ax)
    _draw_reference(ax, (0.0, 1.0), "perfect")
    x, y, rows = (column[:-1] for column in (found.mean_score, found.mean_label, found.rows))
    colour = _draw_line(ax, x, y, _named(label, f"ECE {rate(found.ece)}"), width=1.1)
    areas = MIN_MARKER + (MAX_MARKER - MIN_MARKER) * rows / rows.max()
    ax.scatter(x, y, s=areas, color=colour, edgecolors="white", linewidths=0.6, zorder=3)
    x_label = "Mean score of bin (marker area: rows in bin)"
    return _finish(ax, x_label, "Share of positives in bin", "upper left")


# Drawing


def _draw(curve: RateCurve, ax: Any, label: str | None, lack: str) -> Any:
    """Draw a curve with its line to compare with, or its intervals; `lack` is the error if it has no area."""
    picture = picture_of(curve, COLUMNS)
    if picture is None:
        raise InputError(lack)
    ax = own_axes(ax)
    if picture.reference is not None:
        name, heights = picture.reference
        _draw_reference(ax, heights, name)
    colour = _draw_line(ax, picture.x, picture.y, _named(label, picture.legend), steps=picture.is_steps)
    if isinstance(curve, InterpolatedPrCurve) and not np.isnan(curve.low).any():
        ax.fill_between(curve.recall, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    legend = "lower right" if isinstance(curve, RocCurve) else "best"
    x_label, y_label = map(str.capitalize, picture.axes)
    return _finish(ax, x_label, y_label, legend)


def _named(label: str | None, value: str) -> str:
    return value if label is None else f"{label} ({value})"


def _draw_line(ax: Any, x: Array, y: Array, label: str, *, steps: bool = False, width: float = 1.8) -> str:
    """Draw a curve in our next colour, and return the colour."""
    before = sum(line.get_gid() == CURVE for line in ax.get_lines())
    colour = COLOURS[before % len(COLOURS)]
    style = STYLES[before % len(STYLES)]
    drawstyle = "steps-pre" if steps else "default"
    ax.plot(x, y, linestyle=style, color=colour, linewidth=width, label=label, gid=CURVE, drawstyle=drawstyle)
    return colour


def _draw_reference(ax: Any, heights: tuple[float, float], label: str) -> None:
    """Draw a reference line, once per axes."""
    if all(line.get_label() != label for line in ax.get_lines()):
        ax.plot((0.0, 1.0), heights, ":", color="0.45", linewidth=1.3, label=label, zorder=1)


def _finish(ax: Any, x_label: str, y_label: str, legend: str) -> Any:
    ax.set(xlabel=x_label, ylabel=y_label, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    ax.set_aspect("equal")
    ax.legend(loc=legend, fontsize="small")
    return with_grid(ax, "both")

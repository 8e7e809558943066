"""Plots of estimates and differences with their intervals, with matplotlib (extra `plot`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrec.exceptions import InputError, InputTypeError
from fastrec.metrics.directions import Direction
from fastrec.runtime.extras import require

Floats = NDArray[np.float64]
Families = Mapping[str, Sequence[tuple[int, Mapping[str, Any]]]]  # metrics at several cut-offs: (k, row), ascending
# distinct for every kind of colour vision (Okabe & Ito 2008)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", (0, (6, 2)), (0, (6, 2, 1.5, 2)), (0, (3, 1.5)))  # distinct in print, and where curves overlap


def draw_estimates(rows: Sequence[Mapping[str, Any]], families: Families, ax: Any = None) -> Any:
    """Draw rows of `Report.to_rows`, as lines if all belong to families of cut-offs; see `Report.plot`."""
    check_target(ax, None, "plot")
    if families and sum(map(len, families.values())) == len(rows):
        return _draw_cutoffs(families, own_axes(ax))
    ax = own_axes(ax, (6.4, 1.2 + 0.32 * len(rows)))
    places = np.arange(len(rows))
    means = np.array([row["mean"] for row in rows])
    ax.barh(places, means, height=0.6, color=COLOURS[0], alpha=0.35)
    ax.errorbar(means, places, xerr=_margins(rows, means), fmt="o", color=COLOURS[0], markersize=4, capsize=3)
    ax.set_yticks(places, [_plain(row["metric"]) for row in rows])
    ax.invert_yaxis()
    ax.set_xlabel("Mean over users, 95 % interval")
    return with_grid(ax, "x")


def _draw_cutoffs(families: Families, ax: Any) -> Any:
    """Draw a line for each metric, with cut-offs at equal distances."""
    cutoffs = sorted({k for own in families.values() for k, _ in own})
    spread = 0.06 * (np.arange(len(families)) - (len(families) - 1) / 2)  # so that intervals do not hide each other
    for n, ((name, own), shift) in enumerate(zip(families.items(), spread, strict=True)):
        rows = [row for _, row in own]
        means = np.array([row["mean"] for row in rows])
        places = np.array([cutoffs.index(k) for k, _ in own]) + shift
        style = {"color": COLOURS[n % len(COLOURS)], "linestyle": STYLES[n % len(STYLES)], "label": _plain(name)}
        ax.errorbar(places, means, yerr=_margins(rows, means), marker="o", markersize=4, capsize=3, **style)
    ax.set_xticks(np.arange(len(cutoffs)), [str(k) for k in cutoffs])
    ax.set(xlabel="k", ylabel="Mean over users, 95 % interval")
    ax.legend(fontsize="small")
    return with_grid(ax, "both")


def draw_values(rows: Sequence[Mapping[str, Any]], ax: Any = None) -> Any:
    """Draw values of a policy with their intervals below each other; see `PolicyEstimates.plot`."""
    check_target(ax, None, "plot")
    ax = own_axes(ax, (6.4, 1.2 + 0.4 * len(rows)))
    values = np.array([row["value"] for row in rows])
    places = np.arange(len(rows))
    ax.errorbar(values, places, xerr=_margins(rows, values), fmt="o", color=COLOURS[0], capsize=3)
    units = {row["unit"] for row in rows}
    mixed, per = len(units) > 1, f" per {rows[0]['unit']}" if len(units) == 1 else ""
    ax.set_yticks(places, [f"{row['estimator']} (per {row['unit']})" if mixed else row["estimator"] for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel(f"Value of the policy{per}, 95 % interval")
    return with_grid(ax, "x")


def draw_differences(
    rows: Sequence[tuple[Mapping[str, Any], bool]], metrics: Sequence[str], metric: str | None, ax: Any = None
) -> Any:
    """Draw rows of a comparison, each with whether it is significant; see `Comparison.plot`."""
    check_target(ax, None, "plot")
    by_metric = {name: [pair for pair in rows if pair[0]["metric"] == name] for name in metrics}
    if metric is not None:
        return _draw_forest(metric, by_metric[metric], own_axes(ax, (6.4, 1.4 + 0.36 * len(by_metric[metric]))))
    if ax is not None:
        raise InputError(f"ax takes one metric: plot(metric=..., ax=ax), one of {', '.join(metrics)}")
    import matplotlib.pyplot as plt

    n_columns = min(3, len(metrics))
    n_rows = -(-len(metrics) // n_columns)
    size = (1.6 + 3.6 * n_columns, n_rows * (1.2 + 0.34 * max(map(len, by_metric.values()))))
    panels = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False, sharey=True)[1].ravel()
    for panel, (name, own) in zip(panels, by_metric.items(), strict=False):
        _draw_forest(name, own, panel)
    for panel in panels[len(metrics) :]:
        panel.remove()
    return panels[: len(metrics)]


def _draw_forest(metric: str, rows: Sequence[tuple[Mapping[str, Any], bool]], ax: Any) -> Any:
    """Draw differences below each other, with filled markers if significant."""
    for place, (row, filled) in enumerate(rows):
        # around its own middle: rounding, or a bootstrap of few rounds, may leave the difference outside its interval
        middle, margin = row["low"] / 2 + row["high"] / 2, row["high"] / 2 - row["low"] / 2
        if not math.isnan(margin):
            ax.errorbar([middle], [place], xerr=[margin], fmt="none", ecolor=COLOURS[0], capsize=3)
        face = COLOURS[0] if filled else "white"
        ax.plot([row["difference"]], [place], "o", color=COLOURS[0], markerfacecolor=face)
    ax.axvline(0, linestyle=":", color="0.45", linewidth=1.3, zorder=1)
    ax.set_yticks(range(len(rows)), [_plain(f"{row['system']} − {row['baseline']}") for row, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_title(_plain(metric), fontsize="medium")
    direction = Direction(rows[0][0]["direction"], rows[0][0]["target"])
    ax.set_xlabel(f"Difference {direction.of_difference}".rstrip() + "\n(filled: significant)")
    return with_grid(ax, "x")


def draw_band(ranks: Any, middle: Floats, low: Floats, high: Floats, ax: Any = None, label: str | None = None) -> Any:
    """Draw a curve over ranks with its interval as a band; several calls with the same axes take other colours."""
    is_own, ax = ax is None, own_axes(ax, (6.4, 4.0))
    if is_own:
        ax.locator_params(axis="x", integer=True)
    n = len(ax.get_lines())
    colour, style = COLOURS[n % len(COLOURS)], STYLES[n % len(STYLES)]
    name = None if label is None else _plain(label)
    ax.plot(ranks, middle, marker="o", markersize=4, color=colour, linestyle=style, label=name)
    ax.fill_between(ranks, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    if label is not None:
        ax.legend(fontsize="small")
    return with_grid(ax, "both")


def _margins(rows: Sequence[Mapping[str, Any]], middle: Floats) -> Floats:
    """Return how far intervals reach to both sides: (2, n); 0 without an interval."""
    low, high = (np.array([row[name] for row in rows]) for name in ("low", "high"))
    margins: Floats = np.nan_to_num(np.stack([middle - low, high - middle]))
    return margins


def _plain(text: str) -> str:
    """Escape a string in which matplotlib would read a formula."""
    return text.replace("$", r"\$")


# Axes


def check_target(ax: Any, label: Any, what: str) -> None:
    """Reject invalid `ax` and `label` before any work."""
    if label is not None and not isinstance(label, str):
        raise InputTypeError(f"label must be a string, found {type(label).__name__}")
    require("matplotlib.pyplot", "plot", what=what)
    if ax is not None and not hasattr(ax, "get_lines"):
        raise InputTypeError(f"ax must be one matplotlib axes, found {type(ax).__name__}")


def own_axes(ax: Any, size: tuple[float, float] = (5.4, 5.0)) -> Any:
    """Return the axes to draw on; by default new ones, of a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def with_grid(ax: Any, axis: str) -> Any:
    """Draw thin lines at the ticks, behind everything else, and return the axes."""
    ax.grid(visible=True, axis=axis, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax

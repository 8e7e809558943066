"""Pictures of scored rows, by their drawn data."""

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrec.exceptions import InputError, InputTypeError, MissingExtraError
from fastrec.report.calibration import calibration_curve
from fastrec.scored.curves import pr_curve, roc_curve, visible
from fastrec.scored.plots import COLUMNS, plot_pr, plot_roc
from fastrec.show.plots import COLOURS

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'fastrec-eval[plot]'")


def plot_calibration(labels: Any, scores: Any, *, ax: Any = None, label: str | None = None, **options: Any) -> Any:
    return calibration_curve(labels, scores, **options).plot(ax, label=label)


PLOTS = [plot_roc, plot_pr, plot_calibration]
LABELS, SCORES = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]


@pytest.fixture(autouse=True)
def pyplot() -> Iterator[Any]:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def random_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    scores = rng.random(n, np.float32)
    return rng.random(n) < scores**2, scores


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn(ax: Any, at: int = -1) -> tuple[list[float], list[float]]:
    line = ax.get_lines()[at]
    return list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))


# Drawn data


def test_a_roc_curve() -> None:
    ax = plot_roc(LABELS, SCORES)
    assert drawn(ax) == ([0, 0, 0.5, 0.5, 1], [0, 0.5, 0.5, 1, 1])
    assert legend(ax) == ["chance", "AUC 0.7500"]
    assert drawn(ax, 0) == ([0, 1], [0, 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("False positive rate", "True positive rate")
    assert ax.get_aspect() == 1


def test_a_precision_recall_curve() -> None:
    ax = plot_pr(LABELS, SCORES)
    line = ax.get_lines()[-1]
    recall, precision = line.get_xdata(), line.get_ydata()
    assert line.get_drawstyle() == "steps-pre"  # between two recalls precision is that of the larger one
    assert (np.diff(recall) >= 0).all()
    assert (np.diff(recall) * precision[1:]).sum() == pytest.approx(5 / 6, abs=1e-15)
    assert legend(ax) == ["base rate 0.5000", "AP 0.8333"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Recall", "Precision")


def test_a_calibration_curve() -> None:
    ax = plot_calibration([0, 0, 1, 1, 0], [0.1, 0.2, 0.3, 0.9, 1.0], bins=4)
    x, y = drawn(ax)
    assert x == pytest.approx([0.15, 0.3, 0.95], abs=1e-15)  # no row in the third bin
    assert y == [0, 1, 0.5]
    (markers,) = ax.collections
    assert markers.get_offsets().tolist() == pytest.approx(np.c_[x, y])
    one, two = markers.get_sizes()[1], markers.get_sizes()[0]
    assert markers.get_sizes().tolist() == [two, one, two]
    assert two > one > 0
    assert legend(ax) == ["perfect", "ECE 0.3800"]  # (.3 + .7 + .9) / 5
    assert "rows in bin" in ax.get_xlabel()


@pytest.mark.parametrize("plot", PLOTS)
def test_every_picture_is_readable(plot: Any) -> None:
    ax = plot(LABELS, SCORES, label="model")
    assert legend(ax)[-1].startswith("model (")
    for low, high in (ax.get_xlim(), ax.get_ylim()):
        assert -0.02 < low <= 0 and 1 <= high < 1.02
    assert ax.xaxis.get_gridlines()[0].get_visible()
    ax.figure.canvas.draw()
    assert plot(LABELS, SCORES).figure is not ax.figure


@pytest.mark.parametrize("plot", PLOTS)
def test_weights_count(plot: Any) -> None:
    """A weight of 2 draws the same as a double row."""
    labels, scores = np.array([1, 0, 1, 0, 0]), np.array([0.9, 0.8, 0.7, 0.1, 0.7])
    weights = np.array([1, 2, 1, 3, 1])
    weighed = plot(labels, scores, sample_weight=weights)
    repeated = plot(np.repeat(labels, weights), np.repeat(scores, weights))
    assert legend(weighed) == legend(repeated)
    for one, other in zip(drawn(weighed), drawn(repeated), strict=True):
        assert one == pytest.approx(other, abs=1e-15)
    assert legend(weighed) != legend(plot(labels, scores))


# Axes


@pytest.mark.parametrize("plot", PLOTS)
def test_several_curves_on_one_axes(plot: Any, pyplot: Any) -> None:
    labels, scores = random_rows(500)
    figure, axes = pyplot.subplots(1, 2)
    for at in range(len(COLOURS) + 2):
        assert plot(labels, scores ** (at + 1), ax=axes[1], label=f"model {at}") is axes[1]
    curves = axes[1].get_lines()[1:]
    assert [line.get_color() for line in curves] == [*COLOURS, *COLOURS[:2]]
    assert len({(line.get_color(), str(line._unscaled_dash_pattern)) for line in curves}) == len(curves)
    assert len(legend(axes[1])) == 1 + len(curves)  # one line to compare with
    assert not axes[0].get_lines()
    assert pyplot.get_fignums() == [figure.number]


def test_base_rates_that_differ_are_all_drawn() -> None:
    ax = plot_pr([1, 0], [0.5, 0.4], label="a")
    plot_pr([1, 0, 0, 0], [0.5, 0.4, 0.3, 0.2], label="b", ax=ax)
    assert [text for text in legend(ax) if "base" in text] == ["base rate 0.5000", "base rate 0.2500"]


@pytest.mark.parametrize("plot", PLOTS)
def test_lines_of_others_are_left_alone(plot: Any, pyplot: Any) -> None:
    _, ax = pyplot.subplots()
    ax.plot([0, 1], [1, 0], label="theirs")
    plot(LABELS, SCORES, ax=ax)
    assert "theirs" in legend(ax)
    assert ax.get_lines()[-1].get_color() == COLOURS[0]


# Many rows


@pytest.mark.thorough
@pytest.mark.parametrize("plot", [plot_roc, plot_pr])
def test_many_rows_are_few_points(plot: Any) -> None:
    labels, scores = random_rows(300_000)
    x, y = drawn(plot(labels, scores))
    assert len(x) <= 4 * (COLUMNS + 1)
    curve = roc_curve(labels, scores) if plot is plot_roc else pr_curve(labels, scores)
    whole = np.c_[curve.fpr, curve.tpr] if plot is plot_roc else np.c_[curve.recall, curve.precision]
    assert {*zip(x, y, strict=True)} <= {*map(tuple, whole.tolist())}
    assert (min(x), max(x)) == (whole[:, 0].min(), whole[:, 0].max())
    assert (min(y), max(y)) == (whole[:, 1].min(), whole[:, 1].max())


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=60))
def test_each_column_keeps_its_first_last_lowest_and_highest(points: list[tuple[int, int]]) -> None:
    x, y = np.array(sorted(points, key=lambda point: point[0]), float).T
    x /= 4 * COLUMNS
    kept = list(zip(*visible(x, y, COLUMNS), strict=True))
    for column in {*np.floor(x * COLUMNS)}:
        own, left = (
            [point for point in some if math.floor(point[0] * COLUMNS) == column]
            for some in (list(zip(x, y, strict=True)), kept)
        )
        assert len(left) <= 4
        assert (left[0], left[-1]) == (own[0], own[-1])
        assert {end(v for _, v in left) for end in (min, max)} == {end(v for _, v in own) for end in (min, max)}


# Errors


@pytest.mark.parametrize("plot", PLOTS)
def test_a_missing_matplotlib_is_named(plot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    name = "plot" if plot is plot_calibration else plot.__name__
    with pytest.raises(
        MissingExtraError, match=re.escape(f"{name} needs matplotlib: pip install 'fastrec-eval[plot]'")
    ):
        plot(LABELS, SCORES)


@pytest.mark.parametrize("plot", PLOTS)
def test_several_axes_are_no_axes(plot: Any, pyplot: Any) -> None:
    with pytest.raises(InputTypeError, match="ax must be one matplotlib axes, found ndarray"):
        plot(LABELS, SCORES, ax=pyplot.subplots(1, 2)[1])


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": 3}, "label must be a string, found int"),
        ({"labels": [0, 1, 2, 1]}, "labels must be 0 or 1, found 2"),
        ({"scores": [0.5, math.nan, 0.2, 0.1]}, "scores must not be NaN"),
        ({"scores": [0.5]}, "scores"),
        ({"sample_weight": [1, 1, -1, 1]}, "sample_weight"),
        ({"sample_weight": [1, 1]}, "sample_weight"),
        ({"sample_weight": [0, 0, 0, 0]}, "weight"),
    ],
)
def test_bad_input_draws_nothing(plot: Any, change: dict[str, Any], message: str, pyplot: Any) -> None:
    _, ax = pyplot.subplots()
    with pytest.raises((InputError, InputTypeError), match=message):
        plot(**{"labels": LABELS, "scores": SCORES, "ax": ax, **change})
    assert not ax.get_lines()
    with pytest.raises((InputError, InputTypeError), match=message):
        plot(**{"labels": LABELS, "scores": SCORES, **change})
    assert len(pyplot.get_fignums()) == 1  # no empty figure is left


@pytest.mark.parametrize("labels", [[], [0, 0], [1, 1]])
def test_curves_that_do_not_exist(labels: list[int]) -> None:
    scores = [0.5, 0.4][: len(labels)]
    with pytest.raises(InputError, match="a ROC curve needs rows of both classes"):
        plot_roc(labels, scores)
    if 1 in labels:
        assert legend(plot_pr(labels, scores)) == ["base rate 1.0000", "AP 1.0000"]
    else:
        with pytest.raises(InputError, match="a precision-recall curve needs a positive row"):
            plot_pr(labels, scores)

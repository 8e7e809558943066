"""Interpolated precision-recall curves of lists: numbers, groups, pictures, pages, errors."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.exceptions import InputError, InputTypeError
from support import oracle
from support.interval_oracle import mean_interval

DRAW = np.random.default_rng(5)
RECS = [DRAW.permutation(30)[: DRAW.integers(1, 12)].tolist() for _ in range(40)]
TRUTH = [DRAW.permutation(30)[: DRAW.integers(0, 6)].tolist() for _ in range(40)]
ROWS = [[(item, 1.0) for item in own] for own in TRUTH]


def naive(level: Fraction, rounding: str, users: list[int]) -> list[float]:
    call: dict[str, Any] = {"options": {"level": float(level), "rounding": rounding}, "no_truth": "skip"}
    found = oracle.evaluate([RECS[u] for u in users], [ROWS[u] for u in users], "iprec_at_recall", **call)
    return [value for value in found.per_user if value is not None]


@pytest.mark.parametrize("rounding", ["up", "nearest"])
@pytest.mark.parametrize("levels", [2, 11, 101])
def test_precisions_are_means_over_users(levels: int, rounding: Any) -> None:
    labels = np.arange(40) % 3
    curve = fastrec.interpolated_pr_curve(RECS, TRUTH, levels, rounding=rounding, groups=labels)
    parts = {None: curve, **dict(enumerate(curve.groups["group"][label] for label in range(3)))}
    for group, own in parts.items():
        users = [u for u in range(40) if group is None or labels[u] == group]
        for at, (precision, recall) in enumerate(zip(*own, strict=True)):
            assert recall == at / (levels - 1)
            values = naive(Fraction(at, levels - 1), rounding, users)
            assert own.users == len(values)
            assert precision == pytest.approx(np.mean(values), abs=1e-12)
            wanted = mean_interval(values, (0, 1))
            assert (own.low[at], own.high[at]) == pytest.approx(wanted, abs=1e-12)
        assert (np.diff(own.precision) <= 0).all()
    if levels == 11:
        average = fastrec.evaluate(RECS, TRUTH, f"eleven_point_average(rounding={rounding})")
        assert curve.area == pytest.approx(next(iter(average.values())), abs=1e-12)


def test_options_are_those_of_evaluate() -> None:
    """Policies, columns of frames and gains reach the metric."""
    pandas = pytest.importorskip("pandas")
    lists = pandas.DataFrame({"u": [1, 1, 2], "i": [7, 8, 9], "s": [0.2, 0.9, 0.5]})
    truth = pandas.DataFrame({"u": [1, 3], "i": [7, 7], "g": [2.0, 1.0]})
    names = {"user": "u", "item": "i", "score": "s", "gain": "g"}
    curve = fastrec.interpolated_pr_curve(lists, truth, 2, min_gain=2, no_truth="zero", **names)
    assert (curve.precision.tolist(), curve.users) == ([1 / 6, 1 / 6], 3)


def test_pictures_and_pages() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    curve = fastrec.interpolated_pr_curve(RECS, TRUTH)
    ax = fastrec.plot_pr(curve, label="model")
    assert fastrec.plot_pr(fastrec.interpolated_pr_curve([[1, 9]], [[1]], 3), ax=ax) is ax
    first, second = ax.get_lines()
    assert np.array_equal(first.get_xdata(), curve.recall) and np.array_equal(first.get_ydata(), curve.precision)
    assert second.get_ydata().tolist() == [1, 1, 1]
    assert len(ax.collections) == 1  # one user has no interval
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"model (11-point average {curve.area:.4f})", "3-point average 1.0000"]
    drawn = fastrec.plot_pr(fastrec.pr_curve([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]))
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["base rate 0.5000", "AP 0.8333"]
    plt.close("all")
    page = fastrec.evaluate(RECS, TRUTH, "ndcg@5").to_html(curves=[curve])
    assert page is not None
    assert f"Interpolated precision-recall curve of lists, 11-point average {curve.area:.4f}" in page


@pytest.mark.parametrize("levels", [1, 1002, 2.5, True, "11"])
def test_wrong_levels(levels: Any) -> None:
    with pytest.raises(InputError, match="levels must be an integer from 2 to 1001, found"):
        fastrec.interpolated_pr_curve(RECS, TRUTH, levels)


def test_curves_that_cannot_be_drawn() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    curve = fastrec.pr_curve([1, 0], [0.9, 0.8])
    with pytest.raises(InputTypeError, match="takes a curve alone, found scores"):
        fastrec.plot_pr(curve, [0.5, 0.4])
    with pytest.raises(InputTypeError, match="needs labels and scores, or a curve"):
        fastrec.plot_pr([1, 0])
    with pytest.warns(fastrec.FastrecWarning):
        nobody = fastrec.interpolated_pr_curve([[1]], [[]])
    with pytest.raises(InputError, match="needs a user who counts"):
        fastrec.plot_pr(nobody)
    with pytest.warns(fastrec.FastrecWarning):
        page = fastrec.evaluate([[1]], [[]], "ndcg").to_html(curves=[nobody])
    assert page is not None and "no user counts" in page

"""Calibration by bin of scores: bins, intervals, groups, and curves on the pages of reports."""

import json
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.exceptions import InputError, InputTypeError
from fastrec.metrics.intervals import wilson
from support import score_oracle

Array = np.ndarray[Any, Any]
COLUMNS = ["lower", "upper", "rows", "mean_score", "mean_label", "low", "high", "gap", "users"]
STRATEGIES = ["uniform", "quantile"]


def log(n: int, seed: int = 0) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    scores = draw.random(n) ** 2
    users = draw.integers(0, max(1, n // 20), n)
    return {
        "labels": (draw.random(n) < scores).astype(np.int8),
        "scores": scores,
        "users": users,
        "devices": draw.choice(["phone", "tv", "web"], n),
        "weights": draw.choice([0.0, 0.5, 1.0, 3.0], n),
    }


# Bins


ROWS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1 / 3, 2 / 15, 0.5, 0.7, 0.7 - 2.0**-53, 1.0, 1.0 - 2.0**-53]),
        st.sampled_from([1.0, 0.5, 2.0, 3.25, 0.0]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=14,
).filter(lambda rows: any(weight for *_, weight, _ in rows))


def test_float32_scores_are_binned_as_they_are() -> None:
    edge = np.float32(1 / 15)
    below, above = np.nextafter(edge, np.float32(0)), np.nextafter(edge, np.float32(1))
    assert below < 1 / 15 < above
    assert fastrec.calibration_curve([0, 1], np.array([below, above])).rows.tolist() == [1, 1]


def naive_interval(own: list[tuple[score_oracle.Row, int]], level: float) -> tuple[float, float]:
    """Return the score interval of the effective number of rows of rows with users, as the documentation has it."""
    weight = sum(row.weight for row, _ in own)
    share = Fraction(sum(row.weight * Fraction(row.label) for row, _ in own), weight)
    size = Fraction(weight * weight, sum(row.weight**2 for row, _ in own))
    users: dict[int, list[Fraction]] = {}
    for row, user in own:
        if row.weight:
            parts = users.setdefault(user, [Fraction(0), Fraction(0)])
            parts[0] += row.weight
            parts[1] += row.weight * Fraction(row.label)
    if len(users) < 2:
        return math.nan, math.nan
    if share in (0, 1):
        size = min(size, Fraction(weight * weight, sum(w * w for w, _ in users.values())))
    else:
        spread = sum((hits - share * w) ** 2 for w, hits in users.values())
        variance = Fraction(len(users), len(users) - 1) * spread / weight**2
        size = min(size, share * (1 - share) / variance) if variance else size
    low, high = wilson(np.array([float(share * size)]), np.array([float(size)]), level)
    return float(low[0]), float(high[0])


@settings(deadline=None)
@given(ROWS, st.sampled_from([1, 2, 3, 10, 15]), st.sampled_from(STRATEGIES), st.booleans())
def test_bins_and_clustered_intervals_are_those_of_the_oracle(
    drawn: list[tuple[int, float, float, int]], bins: int, strategy: str, weighted: bool
) -> None:
    labels, scores, weights, users = map(list, zip(*drawn, strict=True))
    weights = weights if weighted else [1.0] * len(labels)
    found = fastrec.calibration_curve(
        labels,
        scores,
        bins=bins,
        strategy=strategy,
        user_ids=users,
        sample_weight=weights if weighted else None,
        level=0.9,
    )
    rows = tuple(score_oracle.Row(*row) for row in zip(labels, scores, map(Fraction, weights), strict=True))
    bin_of = {"uniform": score_oracle.uniform_bins, "quantile": score_oracle.quantile_bins}[strategy](rows, bins)
    numbers = sorted({bin_of[row.score] for row in rows if row.weight})
    assert found.bins.tolist() == numbers
    assert found.ece == pytest.approx(float(score_oracle.ece(rows, bins=bins, strategy=strategy)), abs=1e-12)
    for at, number in enumerate(numbers):
        own = [(row, user) for row, user in zip(rows, users, strict=True) if bin_of[row.score] == number]
        seen = [row.score for row, _ in own if row.weight]
        edges = (number / bins, (number + 1) / bins) if strategy == "uniform" else (min(seen), max(seen))
        assert (found.lower[at], found.upper[at]) == edges
        weight = sum(row.weight for row, _ in own)
        assert found.rows[at] == pytest.approx(float(weight), rel=1e-12)
        score = float(sum(row.weight * Fraction(row.score) for row, _ in own) / weight)
        label = float(sum(row.weight * Fraction(row.label) for row, _ in own) / weight)
        assert (found.mean_score[at], found.mean_label[at]) == pytest.approx((score, label), abs=1e-12)
        assert found.gap[at] == pytest.approx(score - label, abs=1e-12)
        interval = (found.low[at], found.high[at])
        assert interval == pytest.approx(naive_interval(own, 0.9), abs=1e-9, nan_ok=True)
        assert found.users is not None
        assert found.users[at] == len({user for row, user in own if row.weight})


@pytest.mark.parametrize("bins", [3, 7, 10, 49])
def test_a_score_on_an_edge_is_in_the_bin_above_as_in_ece(bins: int) -> None:
    edges = np.arange(bins + 1) / bins
    found = fastrec.calibration_curve(np.ones(bins + 1), edges, bins=bins)
    assert found.rows.tolist() == [1] * (bins - 1) + [2]
    below = np.nextafter(edges[1:], 0)
    assert fastrec.calibration_curve(np.ones(bins), below, bins=bins).rows.tolist() == [1] * bins
    scores = np.r_[edges, below]
    labels = np.arange(len(scores)) % 2
    name = f"ece(bins={bins})"
    report = fastrec.evaluate_scores(labels, scores, metrics=[name])
    assert fastrec.calibration_curve(labels, scores, bins=bins).ece == pytest.approx(report[name], abs=1e-15)


def test_quantile_bins_never_cut_equal_scores() -> None:
    found = fastrec.calibration_curve([0, 1, 0, 1, 1, 0], [0.2, 0.2, 0.2, 0.2, 0.2, 0.9], bins=3, strategy="quantile")
    assert (found.bins.tolist(), found.rows.tolist()) == ([0, 2], [5, 1])
    assert (found.lower.tolist(), found.upper.tolist()) == ([0.2, 0.9], [0.2, 0.9])


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_the_metrics_of_reports_overall_and_by_group(strategy: str, weighted: bool) -> None:
    rows = log(3_000)
    weight = rows["weights"] if weighted else None
    found = fastrec.calibration_curve(
        rows["labels"], rows["scores"], strategy=strategy, row_groups={"device": rows["devices"]}, sample_weight=weight
    )
    names = [f"ece(strategy={strategy})", "calibration"]
    for own, chosen in [(found, slice(None)), *((own, rows["devices"] == at) for at, own in by_device(found).items())]:
        some = None if weight is None else weight[chosen]
        report = fastrec.evaluate_scores(
            rows["labels"][chosen], rows["scores"][chosen], metrics=names, sample_weight=some
        )
        assert [own.ece, own.calibration] == pytest.approx([report[name] for name in names], abs=1e-14)


def by_device(found: fastrec.CalibrationCurve) -> dict[Any, fastrec.CalibrationCurve]:
    assert list(found.groups["device"]) == ["phone", "tv", "web"]
    return found.groups["device"]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_group_is_as_if_alone(weighted: bool) -> None:
    rows = log(2_000)
    weight = rows["weights"] if weighted else None
    more = {"strategy": "quantile", "bins": 7}
    found = fastrec.calibration_curve(
        rows["labels"], rows["scores"], row_groups=rows["devices"], user_ids=rows["users"], sample_weight=weight, **more
    )
    for label, own in found.groups["row_group"].items():
        some = rows["devices"] == label
        alone = fastrec.calibration_curve(
            rows["labels"][some],
            rows["scores"][some],
            user_ids=rows["users"][some],
            sample_weight=None if weight is None else weight[some],
            **more,
        )
        assert own.to_json() == alone.to_json()


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("given", [("weights",), ("users",), ("weights", "users")])
def test_order_and_threads_change_no_bit(strategy: str, given: tuple[str, ...]) -> None:
    rows = log(200_000)
    order = np.random.default_rng(1).permutation(200_000)
    if len(given) == 2:  # sums of the weights of a user round in the order of the rows
        order = np.lexsort((np.arange(200_000), rows["users"]))

    def found(at: Any, n_threads: int) -> str | None:
        more = {"sample_weight": rows["weights"][at]} if "weights" in given else {}
        more |= {"user_ids": rows["users"][at]} if "users" in given else {}
        pair = rows["labels"][at], rows["scores"][at]
        return fastrec.calibration_curve(*pair, strategy=strategy, n_threads=n_threads, **more).to_json()

    one = found(slice(None), 1)
    assert [found(slice(None), 4), found(order, 2)] == [one, one]


def test_min_gain_says_which_rows_are_positive() -> None:
    stars, scores = np.array([1.0, 0.7, 3, 5], np.float32), [0.1, 0.2, 0.8, 0.9]
    found = fastrec.calibration_curve(stars, scores, min_gain=3, bins=2)
    assert found.mean_label.tolist() == [0, 1]
    name = "ece(bins=2)"
    for gain in (0.7, 1.0):  # 0.7 as a float32 is below 0.7
        report = fastrec.evaluate_scores(stars, scores, metrics=[name], min_gain=gain)
        assert fastrec.calibration_curve(stars, scores, min_gain=gain, bins=2).ece == pytest.approx(report[name])


def test_scikit_learn_agrees_except_on_edges() -> None:
    theirs = pytest.importorskip("sklearn.calibration", reason="scikit-learn is not installed").calibration_curve
    for seed in range(20):
        rows = log(1_000, seed)
        for strategy in STRATEGIES:  # without ties its quantiles, which lie between scores, cut where ours do
            share, score = theirs(rows["labels"], rows["scores"], n_bins=10, strategy=strategy)
            found = fastrec.calibration_curve(rows["labels"], rows["scores"], bins=10, strategy=strategy)
            assert found.mean_label == pytest.approx(share, abs=1e-12)
            assert found.mean_score == pytest.approx(score, abs=1e-12)
    labels, scores = [0, 1, 1], [0.25, 0.5, 0.75]
    assert theirs(labels, scores, n_bins=2)[0].tolist() == [0.5, 1.0]  # 0.5 is in the bin below
    assert fastrec.calibration_curve(labels, scores, bins=2).mean_label.tolist() == [0.0, 1.0]


# Intervals


def test_intervals_of_rows_are_those_of_wilson() -> None:
    found = fastrec.calibration_curve([0] * 70 + [1] * 30, [0.3] * 100)
    assert (found.low[0], found.high[0]) == pytest.approx((0.2189488529, 0.3958485463), abs=1e-10)
    alike = fastrec.calibration_curve([0] * 70 + [1] * 30, [0.3] * 100, sample_weight=[0.25] * 100)
    assert (alike.low[0], alike.high[0]) == pytest.approx((found.low[0], found.high[0]), abs=1e-12)
    own = fastrec.calibration_curve([0, 0], [0.3, 0.3], user_ids=["ann", "ann"])
    assert math.isnan(own.low[0])


def share_covered(n_samples: int, *, clustered: bool) -> float:
    """Return how often the intervals of bins hold the true share, for users who differ in their rates."""
    hits = rows = 0
    draw = np.random.default_rng(5)
    for _ in range(n_samples):
        users = np.repeat(np.arange(150), draw.integers(1, 30, 150))
        scores = draw.choice([0.15, 0.45, 0.75], len(users))
        taste = draw.beta(1, 1, 150)[users]  # of mean 1 / 2
        labels = draw.random(len(users)) < 2 * taste * scores * (0.5 / 0.75)
        found = fastrec.calibration_curve(labels, scores, bins=10, user_ids=users if clustered else None)
        truth = np.array([0.15, 0.45, 0.75]) * (0.5 / 0.75)
        hits += int(((found.low <= truth) & (truth <= found.high)).sum())
        rows += 3
    return hits / rows


def test_intervals_over_users_cover_where_those_of_rows_do_not() -> None:
    assert 0.935 < share_covered(700, clustered=True) < 0.965
    assert share_covered(200, clustered=False) < 0.9


def test_rows_without_a_label_are_in_no_group_and_counted() -> None:
    labels, scores, users = [0, 1, 1, 0, 1], [0.1, 0.9, 0.8, 0.3, 0.6], [1, 1, 2, 2, 3]
    plans = ["a", None, "b", "a", None]
    found = fastrec.calibration_curve(labels, scores, row_groups={"plan": plans}, user_ids=users)
    assert {label: own.rows.sum() for label, own in found.groups["plan"].items()} == {"a": 2, "b": 1}
    assert found.ungrouped == {"plan": 2}
    assert "without a label, in no group: 2 rows" in repr(found)
    weighted = fastrec.calibration_curve(labels, scores, row_groups={"plan": plans}, sample_weight=[1, 0.25, 1, 1, 0])
    assert weighted.ungrouped == {"plan": 0.25}
    whole = fastrec.calibration_curve(labels, scores, row_groups={"plan": [1, 1, 2, 2, 2]}, sample_weight=[0.1] * 5)
    assert whole.ungrouped == {"plan": 0} and "without a label" not in repr(whole)
    assert fastrec.calibration_curve(labels, scores, row_groups=[None] * 5).groups == {"row_group": {}}


@pytest.mark.parametrize("weights", [(1e-100, 1e100), (1e100, 1e100), (1e-100, 1e-100)])
def test_weights_of_any_size_have_intervals_over_users(weights: tuple[float, float]) -> None:
    pair = [0, 1, 1, 0, 1, 1], [0.5] * 6
    one, other = weights
    found = fastrec.calibration_curve(*pair, user_ids=[1, 1, 1, 2, 2, 2], sample_weight=[one] * 3 + [other] * 3)
    assert 0 < found.low[0] < found.mean_label[0] < found.high[0] < 1


# Forms


def test_tables_fit_80_columns_and_frames_have_all_bins() -> None:
    rows = log(5_000)
    found = fastrec.calibration_curve(
        rows["labels"],
        rows["scores"],
        row_groups={"device": rows["devices"]},
        user_ids=rows["users"],
        strategy="quantile",
    )
    text = repr(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "\nBy device\n" in text and "users as clusters" in text
    frame = found.to_frame("pandas")
    assert len(frame) == 4 * 15
    assert list(frame["group"].dropna().unique()) == ["phone", "tv", "web"]
    assert list(frame.columns)[3:] == COLUMNS
    document = json.loads(found.to_json())
    assert [row["group"] for row in document["errors"]] == [None, "phone", "tv", "web"]
    assert document["rows"][0]["mean_label"] == found.mean_label[0]
    assert found.to_markdown().count("| scores |") == 4
    assert "\\toprule" in found.to_latex()


def test_a_picture_has_a_curve_per_group() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    rows = log(500)
    ax = fastrec.calibration_curve(rows["labels"], rows["scores"], row_groups=rows["devices"]).plot()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [name.split(" (")[0] for name in names] == ["perfect", "phone", "tv", "web"]
    matplotlib.pyplot.close("all")


def test_a_group_without_a_positive_row_has_no_finite_calibration() -> None:
    found = fastrec.calibration_curve([0, 0, 1], [0.1, 0.2, 0.9], row_groups=[1, 1, 2])
    assert found.groups["row_group"][1].calibration == math.inf
    assert json.loads(found.to_json())["errors"][1]["calibration"] == "Infinity"
    page = found.to_html()
    assert page is not None and "Calibration by row_group" in page


# Pages


def test_a_page_shows_curves_of_the_same_rows() -> None:
    rows = log(4_000)
    pair = rows["labels"], rows["scores"]
    report = fastrec.evaluate_scores(*pair, user_ids=rows["users"], metrics=["auc", "average_precision"])
    curves = [
        fastrec.roc_curve(*pair),
        fastrec.pr_curve(*pair),
        fastrec.calibration_curve(*pair, row_groups={"device": rows["devices"]}),
        fastrec.ctr_by_rank(rows["labels"], rows["users"] % 5 + 1),
        fastrec.position_bias(rows["labels"], rows["users"] % 2 + 1, rows["users"] % 3, rows["users"] % 7),
    ]
    page = report.to_html(curves=curves)
    assert page is not None
    titles = re.findall(r"<h2>([^<]+)", page)
    shown = ["Curves", "Calibration", "Calibration by device", "Clicks by rank", "Position bias"]
    assert titles == ["Metrics", *shown, "Definitions", "Settings", "Data"]
    assert f"ROC curve, area {report['auc']:.4f}" in page
    assert f"average precision {report['average_precision']:.4f}" in page
    assert "Curves" not in str(report.to_html())


def test_a_page_of_many_rows_stays_small() -> None:
    rows = log(200_000)
    report = fastrec.evaluate_scores(rows["labels"], rows["scores"], metrics="auc")
    curves = [curve(rows["labels"], rows["scores"], thin=True) for curve in (fastrec.roc_curve, fastrec.pr_curve)]
    without, page = (report.to_html(curves=some) for some in ((), curves))
    assert without is not None and page is not None
    assert len(page) - len(without) < 150_000


def test_curves_of_one_class_are_a_line() -> None:
    report = fastrec.evaluate_scores([0, 0], [0.1, 0.2], metrics="log_loss")
    pair = [0, 0], [0.1, 0.2]
    page = report.to_html(curves=[fastrec.roc_curve(*pair), fastrec.pr_curve(*pair)])
    assert page is not None
    assert "No ROC curve: all rows are of one class." in page
    assert "No precision-recall curve: no row is positive." in page


@pytest.mark.parametrize("curves", [3, [3], fastrec.roc_curve([0, 1], [0.1, 0.2]), "roc"])
def test_other_values_are_no_curves(curves: Any) -> None:
    report = fastrec.evaluate_scores([0, 1], [0.1, 0.2], metrics="auc")
    with pytest.raises(InputTypeError, match="curves must be"):
        report.to_html(curves=curves)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_users_add_in_batches_and_bytes(weighted: bool) -> None:
    rows = log(2_000)
    order = np.argsort(rows["users"], kind="stable")
    rows = {name: own[order] for name, own in rows.items()}

    def evaluated(at: Any) -> fastrec.ScoreEvaluator:
        made = fastrec.ScoreEvaluator("log_loss").keep_score_counts(needed=False, users=True)
        more = {"sample_weight": rows["weights"][at]} if weighted else {}
        groups = {"row_groups": {"device": rows["devices"][at]}, "groups": {"part": rows["users"][at] % 2}}
        made.update(rows["labels"][at], rows["scores"][at], user_ids=rows["users"][at], **groups, **more)
        return made

    whole = evaluated(slice(None)).users_by_bin
    assert list(whole) == [None, ("part", 0), ("part", 1), *(("device", own) for own in ("phone", "tv", "web"))]
    parts = [evaluated(rows["users"] % 3 == part) for part in (2, 0, 1)]
    first = fastrec.ScoreEvaluator.from_bytes(parts[0].to_bytes()).keep_score_counts(needed=False, users=True)
    for other in parts[1:]:
        first.merge(other)
    found = first.users_by_bin
    assert found.keys() == whole.keys()
    assert all(found[key].tolist() == whole[key].tolist() for key in whole)
    assert whole[None][-1, 2] == len(set(rows["users"][rows["weights"] > 0] if weighted else rows["users"]))


# Errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [0.5, 1.5]}, r"scores must lie in \[0, 1\] to be calibrated, found 1.5 at row 1"),
        ({"scores": [0.5, 1.5], "strategy": "quantile"}, r"scores must lie in \[0, 1\]"),
        ({"scores": [0.5]}, "same length, found 2 and 1"),
        ({"labels": [], "scores": []}, "at least one row with weight"),
        ({"sample_weight": [0, 0]}, "at least one row with weight"),
        ({"labels": [0, 2]}, "labels must be 0 or 1, found 2"),
        ({"labels": [0, math.inf], "min_gain": 1}, "labels must be finite, found inf"),
        ({"min_gain": 0}, "min_gain must be finite and above 0"),
        ({"min_gain": "1"}, "min_gain must be a number"),
        ({"bins": 0}, "bins must be an integer from 1"),
        ({"strategy": "equal"}, "strategy"),
        ({"level": 1}, "level must lie between 0 and 1"),
        ({"row_groups": ["a"]}, r"row_groups must have one label per row, 2; found shape \(1,\)"),
        ({"row_groups": {1: ["a", "b"]}}, "names of row_groups must be strings"),
        ({"user_ids": [1]}, "user_ids"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    with pytest.raises((InputError, InputTypeError), match=message):
        fastrec.calibration_curve(**{"labels": [0, 1], "scores": [0.2, 0.6], **change})

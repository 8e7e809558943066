"""Comparisons of models on one log: effects of users' rows against small changes of their weights, and coverage."""

from __future__ import annotations

import contextlib
import math
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

import fastrec
from fastrec import ScoreEvaluator
from fastrec.evaluation import row_reports
from fastrec.evaluation.rows import RowEvaluation
from support.processes import check, run

Array = np.ndarray[Any, Any]
OF_ALL_ROWS = [
    "auc",
    "average_precision",
    "gauc",
    "log_loss",
    "brier",
    "normalized_entropy",
    "calibration",
    "precision(threshold=0.5)",
    "f1(threshold=0.5)",
    "auc(min_fpr=0.1, max_fpr=0.8)",
    "auc(min_tpr=0.4, scale=raw)",
    "balanced_accuracy(threshold=0.5)",
    "g_mean(threshold=0.5)",
    "cohen_kappa(threshold=0.5)",
    "hamming(threshold=0.5)",
    "mape(eps=0.5)",
    "r2",
]


class Log(NamedTuple):
    """Rows of users that are alike, as each user has a rate of clicks, and the scores of two models."""

    labels: Array
    one: Array
    other: Array
    indptr: Array

    @property
    def users(self) -> Array:
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def report(self, scores: Array, metrics: Any = None, **more: Any) -> fastrec.Report:
        return fastrec.evaluate_scores(self.labels, scores, self.indptr, metrics or OF_ALL_ROWS, per_user=True, **more)


def make_log(seed: int, n_users: int = 40, levels: int = 20) -> Log:
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 9, n_users)
    taste = np.repeat(draw.normal(size=n_users), lengths)
    labels = draw.random(len(taste)) < 1 / (1 + np.exp(-taste))
    one, other = ((taste + 2 * draw.normal(size=len(taste))) for _ in range(2))
    one, other = (np.floor(levels / (1 + np.exp(-own))) / levels * 0.98 + 0.01 for own in (one, other))
    return Log(labels, one, other, np.concatenate([[0], np.cumsum(lengths)]))


def slope(log: Log, scores: Array, metric: str, user: int, weights: Array) -> float:
    """Return the slope of a metric in the weight of all rows of a user."""
    change, values = 1e-4, []
    for factor in (1 + change, 1 - change):
        own = np.where(log.users == user, weights * factor, weights)
        values.append(fastrec.evaluate_scores(log.labels, scores, log.indptr, metric, sample_weight=own)[metric])
    return (values[0] - values[1]) / (2 * change)


@pytest.mark.parametrize("metric", OF_ALL_ROWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_effects_are_slopes_in_the_weights_of_users(metric: str, weighted: bool) -> None:
    log = make_log(3, 25)
    weights = np.random.default_rng(1).integers(1, 4, len(log.labels)).astype(float) if weighted else None
    report = log.report(log.one, metric, sample_weight=weights)
    effects = report.effects[metric][None]
    counted = ~np.isnan(effects)
    own = np.ones(len(log.labels)) if weights is None else weights
    for user in np.flatnonzero(counted):
        wanted = report[metric] + counted.sum() * slope(log, log.one, metric, user, own)
        assert effects[user] == pytest.approx(wanted, abs=2e-5), user
    assert effects[counted].mean() == pytest.approx(report[metric], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_error_of_auc_is_that_of_clusters(seed: int) -> None:
    """Obuchowski 1997: U / (U - 1) times the sum over users of their squared influence."""
    log = make_log(seed)
    row = fastrec.compare_scores(log.labels, {"a": log.one, "b": log.other}, "auc", indptr=log.indptr, test="t").rows[0]
    own = np.zeros(len(log.indptr) - 1)
    for scores, sign in ((log.other, 1), (log.one, -1)):
        area = fastrec.auc(log.labels, scores)
        for at, user in enumerate(log.users):
            others = scores[log.labels != log.labels[at]]
            won = np.mean((scores[at] > others) + 0.5 * (scores[at] == others))
            placement = won if log.labels[at] else 1 - won
            own[user] += sign * (placement - area) / (log.labels == log.labels[at]).sum()
    present = np.diff(log.indptr) > 0
    n = present.sum()
    error = math.sqrt(n / (n - 1) * np.sum(own[present] ** 2))
    statistics = pytest.importorskip("scipy.stats")
    assert row.users == n
    assert (row.high - row.low) / 2 == pytest.approx(error * statistics.t(n - 1).isf(0.025), rel=1e-9)
    assert row.p_value == pytest.approx(2 * statistics.t(n - 1).sf(abs(row.difference) / error), rel=1e-9)


@pytest.mark.parametrize("weights", [None, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_effects_are_the_same_bits_on_any_threads(dtype: Any, weights: Any) -> None:
    log, draw = make_log(4, 500, levels=300), np.random.default_rng(0)
    own = None if weights is None else draw.integers(0, 4, len(log.labels)).astype(weights)
    call = {"sample_weight": own, "metrics": ["auc", "average_precision"]}
    one, other = (log.report(log.one.astype(dtype), **call, n_threads=n).effects for n in (1, 3))
    for metric, effects in one.items():
        np.testing.assert_array_equal(other[metric][None], effects[None])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("levels", [2, 300, "close"])
def test_sorted_rows_and_rows_that_are_looked_up_have_the_same_effects(dtype: Any, levels: int | str) -> None:
    """Scores of which many are close together and others far away leave too many moves to insertion."""
    log = make_log(6, 900, levels=300 if levels == "close" else int(levels))
    scores = log.one.astype(dtype)
    if levels == "close":
        scores = np.random.default_rng(0).permutation(len(scores)).astype(dtype)
        scores = np.where(scores == 0, np.finfo(dtype).max, scores * np.finfo(dtype).tiny)
    ordered = [log.report(scores, "auc", n_threads=n).effects["auc"][None] for n in (1, 2)]
    looked_up = RowEvaluation(["auc"], per_user=True)
    rows = looked_up.prepare(log.labels, scores, log.indptr, {})
    looked_up.add(rows, None)  # a second pass may not follow
    looked_up.second_pass(rows)
    wanted = looked_up.report().effects["auc"][None]
    for found in ordered:
        np.testing.assert_array_equal(found, wanted)


def test_without_users_the_test_of_auc_is_that_of_delong() -> None:
    log = make_log(5, 200)
    found = fastrec.compare_scores(log.labels, {"a": log.one, "b": log.other}, ["auc", "log_loss"], test="bootstrap")
    row = found.rows[0]
    test = fastrec.auc_test(log.labels, log.other, log.one)
    assert row.difference == pytest.approx(test.difference) and row.users == len(log.labels)
    assert (row.high - row.low) / 2 / 1.96 == pytest.approx(test.std_error, rel=0.05)
    assert f"{len(log.labels):,} rows compared" in repr(found) and "users compared" not in repr(found)
    with pytest.raises(fastrec.InputError, match="gauc needs users"):
        fastrec.compare_scores(log.labels, {"a": log.one, "b": log.other}, "gauc")


def test_rows_without_users_are_called_rows_in_every_form() -> None:
    log = make_log(6)
    found = fastrec.compare_scores(log.labels, {"a": log.one, "b": log.other}, "brier", baseline="a", test="t")
    n = len(log.labels)
    assert f"Means over {n} rows." in found.to_markdown(form="paper")
    head = found.to_markdown().splitlines()[0]
    assert " rows |" in head and "users" not in head
    page = str(found.to_html())
    assert "1 comparison over all rows: " in page and "Differences over all rows" in page
    assert "Unpaired: rows counted on one side only." in page
    report = fastrec.evaluate_scores(log.labels, log.one, metrics="auc", row_groups=log.users % 2)
    assert report.to_markdown(form="paper").startswith("| rows | auc |")


def test_groups_are_compared_by_the_effects_on_their_own_numbers() -> None:
    log = make_log(7, 120)
    groups = np.where(np.arange(120) % 3 == 0, "new", "old")
    whole = fastrec.compare_scores(
        log.labels, {"a": log.one, "b": log.other}, OF_ALL_ROWS, indptr=log.indptr, groups={"age": groups}, test="t"
    )
    for label in ("new", "old"):
        chosen = np.isin(log.users, np.flatnonzero(groups == label))
        part = fastrec.compare_scores(
            log.labels[chosen],
            {"a": log.one[chosen], "b": log.other[chosen]},
            OF_ALL_ROWS,
            user_ids=log.users[chosen],
            test="t",
        )
        rows = [row for row in whole.segments["age"] if row.group == label]
        for row, wanted in zip(rows, part.rows, strict=True):
            for name in ("mean", "baseline_mean", "difference", "low", "high", "p_value", "users"):
                assert getattr(row, name) == pytest.approx(getattr(wanted, name), rel=1e-9, abs=1e-12), (label, name)


def test_frames_arrays_and_reports_give_the_same_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    log = make_log(9)
    frame = pandas.DataFrame({"user_id": log.users, "label": log.labels, "x": log.one, "y": log.other})
    frame = frame.sample(frac=1, random_state=0)
    models = {"a": log.one, "b": log.other}
    wanted = fastrec.compare_scores(log.labels, models, OF_ALL_ROWS, user_ids=log.users)
    reports = {
        name: fastrec.evaluate_scores(log.labels, own, user_ids=log.users, metrics=OF_ALL_ROWS, per_user=True)
        for name, own in models.items()
    }
    assert fastrec.compare(reports).rows == wanted.rows
    of_frame = fastrec.compare_scores(frame, {"a": "x", "b": "y"}, OF_ALL_ROWS)
    for row, own in zip(of_frame.rows, wanted.rows, strict=True):
        assert row.users == own.users and row.mean == pytest.approx(own.mean, rel=1e-12)
        assert row.low == pytest.approx(own.low, rel=1e-9) and row.p_value == pytest.approx(own.p_value, abs=0.01)


def test_saved_reports_and_batches(tmp_path: Any) -> None:
    log = make_log(11)
    models = {"a": log.one, "b": log.other}
    reports = {name: log.report(own) for name, own in models.items()}
    for name, own in reports.items():
        own.save(tmp_path / name)
    loaded = {name: fastrec.load(tmp_path / name) for name in models}
    assert fastrec.compare(loaded).rows == fastrec.compare(reports).rows

    def in_batches(scores: Array) -> fastrec.Report:
        whole = fastrec.ScoreEvaluator(OF_ALL_ROWS, per_user=True)
        for first, last in ((0, 15), (15, 40)):
            part, rows = fastrec.ScoreEvaluator(OF_ALL_ROWS, per_user=True), slice(*log.indptr[[first, last]])
            part.update(log.labels[rows], scores[rows], log.indptr[first : last + 1] - log.indptr[first])
            whole.merge(fastrec.ScoreEvaluator.from_bytes(part.to_bytes()))
        return whole.result()

    batched = fastrec.compare({name: in_batches(own) for name, own in models.items()})
    whole = {row.metric: row for row in fastrec.compare(reports).rows}
    assert batched.left_out.keys() == {name for name in OF_ALL_ROWS if name.startswith(("auc", "average_precision"))}
    assert "made from batches" in batched.left_out["auc"]
    for row in batched.rows:
        assert row.difference == whole[row.metric].difference
        assert row.low == pytest.approx(whole[row.metric].low, rel=1e-9)


def test_a_metric_of_the_order_of_all_rows_in_one_report_alone() -> None:
    log = make_log(12)
    asked = {"a": ["auc", "mrr", "log_loss"], "b": ["mrr", "log_loss"]}
    reports = {"a": log.report(log.one, asked["a"]), "b": log.report(log.other, asked["b"])}
    assert ["units" in own.settings for own in reports.values()] == [True, False]
    shared = fastrec.compare({"a": log.report(log.one, asked["b"]), "b": reports["b"]})
    assert fastrec.compare(reports).rows == shared.rows
    assert fastrec.compare(reports, metrics="mrr").rows[0]._replace(p_corrected=1.0) in [
        row._replace(p_corrected=1.0) for row in shared.rows
    ]


def test_a_report_from_batches_is_compared_with_one_of_a_single_call() -> None:
    log, metrics = make_log(14), ["auc", "mrr", "log_loss"]
    batches = fastrec.ScoreEvaluator(metrics, per_user=True)
    for first, last in ((0, 15), (15, 40)):
        rows = slice(*log.indptr[[first, last]])
        batches.update(log.labels[rows], log.other[rows], log.indptr[first : last + 1] - log.indptr[first])
    reports = {"a": log.report(log.one, metrics), "b": batches.result()}
    assert [own.settings["units"] for own in reports.values()] == ["users", "rows"]
    found = fastrec.compare(reports)
    assert found.left_out.keys() == {"auc"} and "made from batches" in found.left_out["auc"]
    whole = fastrec.compare({"a": reports["a"], "b": log.report(log.other, metrics)})
    assert [row.difference for row in found.rows] == [row.difference for row in whole.rows if row.metric != "auc"]
    with pytest.raises(fastrec.InputError, match="auc has no effects of users in a report made from batches"):
        fastrec.compare(reports, metrics="auc")


def test_equal_models_differ_nowhere() -> None:
    log = make_log(13)
    found = fastrec.compare_scores(log.labels, {"a": log.one, "b": log.one * 1.0}, OF_ALL_ROWS, indptr=log.indptr)
    assert {(row.difference, row.p_value) for row in found.rows} == {(0.0, 1.0)}


def test_the_scale_of_scores_does_not_matter_to_auc() -> None:
    log = make_log(15)
    one = fastrec.compare_scores(log.labels, {"a": log.one, "b": log.other}, "auc", indptr=log.indptr)
    models = {"a": log.one * 1000, "b": -1 / log.other}
    assert fastrec.compare_scores(log.labels, models, "auc", indptr=log.indptr).rows == one.rows


@pytest.mark.thorough
def test_coverage_with_rows_that_are_alike() -> None:
    """Two models of equal skill: 5 % of clustered intervals miss 0, and far more of those that take rows as
    independent.
    """
    draw, missed, missed_by_rows, rounds = np.random.default_rng(17), 0, 0, 2000
    for _ in range(rounds):
        n_users, n_rows = 80, 12
        bias = 2 * draw.normal(size=(2, n_users, 1))
        labels = draw.random((n_users, n_rows)) < 1 / (1 + np.exp(-2 * draw.normal(size=(n_users, 1))))
        scores = (labels + bias + draw.normal(size=(2, n_users, n_rows))).reshape(2, -1)
        models = {"a": scores[0], "b": scores[1]}
        indptr = np.arange(n_users + 1) * n_rows
        row = fastrec.compare_scores(labels.ravel(), models, "auc", indptr=indptr, test="t").rows[0]
        missed += not row.low <= 0 <= row.high
        test = fastrec.auc_test(labels.ravel(), scores[0], scores[1])
        missed_by_rows += test.p_value < 0.05
    assert 0.035 <= missed / rounds <= 0.065
    assert missed_by_rows / rounds > 0.3


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    ({"a": [0.1, 0.2]}, {}, "scores must be a dict of two models or more"),
    ([[0.1, 0.2], [0.1, 0.2]], {}, "scores must be a dict of two models or more"),
    ({1: [0.1, 0.2], 2: [0.1, 0.2]}, {}, "with strings as names, found a dict of 1, 2"),
    ({"a": [0.1, 0.2], "b": [0.1]}, {}, "scores must have one score per row for every model, found 2 in 'a', 1 in 'b'"),
    ({"a": [0.1], "b": [0.1]}, {}, "labels must have one label per score, 1; found 2"),
    ({"a": [0.1, 0.2], "b": [0.1, math.nan]}, {}, r"scores\['b'\] must not be NaN, found NaN at row 1"),
    ({"a": [0.1, 0.2], "b": ["x", "y"]}, {}, r"scores\['b'\] must be numbers"),
    ({"a": [0.1, 0.2], "b": [0.3, 0.1]}, {"baseline": "c"}, "baseline='c' is not one of the reports"),
    ({"a": [0.1, 0.2], "b": "b"}, {}, r"scores\['b'\] names a column, so labels must be a data frame, found a list"),
]


@pytest.mark.parametrize(("scores", "call", "message"), WRONG, ids=range(len(WRONG)))
def test_errors_say_what_is_wrong(scores: Any, call: dict[str, Any], message: str) -> None:
    with pytest.raises((fastrec.InputError, fastrec.InputTypeError), match=message):
        fastrec.compare_scores([0, 1], scores, "auc", **call)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_models_side_by_side_and_in_turn_have_the_same_bits(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    side_by_side = mock.Mock(wraps=row_reports.run_side_by_side)
    monkeypatch.setattr(row_reports, "run_side_by_side", side_by_side)
    log = make_log(3)
    models = {"one": log.one, "other": log.other, "third": log.one + log.other}
    metrics = ["auc", "log_loss(average=user)", "gauc"]
    call = {"metrics": metrics, "indptr": log.indptr, "n_threads": n_threads}
    models = {name: 1 / (1 + np.exp(-own)) for name, own in models.items()}
    together = fastrec.compare_scores(log.labels, models, **call)
    assert side_by_side.call_count == (1 < n_threads < 6)
    monkeypatch.setattr(row_reports, "ROWS_SIDE_BY_SIDE", 0)
    assert fastrec.compare_scores(log.labels, models, **call).rows == together.rows
    assert side_by_side.call_count == (1 < n_threads < 6)


def test_metrics_of_the_caller_are_not_evaluated_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code need not be fit for threads."""
    side_by_side = mock.Mock(wraps=row_reports.run_side_by_side)
    monkeypatch.setattr(row_reports, "run_side_by_side", side_by_side)
    log = make_log(4)
    models = {"one": log.one, "other": log.other}
    if "share_of_clicks" not in {own["name"] for own in fastrec.catalogue()}:

        @fastrec.score_metric(range=(0, 1), source="this test")
        def share_of_clicks(s: Any) -> Any:
            """Return the share of positive rows."""
            return s.positives / s.rows

    for metrics, times in ((["auc", "share_of_clicks"], 0), (["auc"], 1)):
        fastrec.compare_scores(log.labels, models, metrics, indptr=log.indptr, n_threads=2)
        assert side_by_side.call_count == times


@pytest.mark.parametrize("few", [0, 10**6])
def test_the_error_is_that_of_the_first_model_with_one(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that are no numbers are found before evaluation, NaN within it."""
    monkeypatch.setattr(row_reports, "ROWS_SIDE_BY_SIDE", few)
    labels, right, nan, text = [0, 1, 0, 1], [0.1, 0.9, 0.3, 0.4], [0.1, math.nan, 0.3, 0.4], ["a", "b", "c", "d"]
    for first, second, error in ((nan, text, fastrec.InputError), (text, nan, fastrec.InputTypeError)):
        with pytest.raises(error, match="b") as found:
            fastrec.compare_scores(labels, {"a": right, "b": first, "c": second}, "auc", n_threads=2)
        assert "scores['b']" in str(found.value)


def test_scores_of_a_frame_are_columns_of_it() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": [0, 1, 0], "b": [0.1, 0.2, 0.3]})
    for other in (np.zeros(3), frame["b"]):
        with pytest.raises(
            fastrec.InputTypeError, match=r"labels is a data frame, so scores\['a'\] must name a column"
        ):
            fastrec.compare_scores(frame, {"b": "b", "a": other}, "auc")
    with pytest.raises(fastrec.InputError, match=r"no column 'c'.*scores\['c'\]=... names another"):
        fastrec.compare_scores(frame, {"b": "b", "c": "c"}, "auc")


def test_users_without_weight_count_in_all_metrics() -> None:
    log = make_log(25, 30)
    weights = np.where(log.users % 3 == 0, 0.0, 2.0)
    models, metrics = {"a": log.one, "b": log.other}, ["auc", "average_precision", "log_loss", "calibration"]
    options: dict[str, Any] = {"user_ids": log.users, "test": "t"}
    found = fastrec.compare_scores(log.labels, models, metrics, user_weight=weights, **options)
    present, kept = len(set(log.users)), len(set(log.users[weights > 0]))
    assert {row.users for row in found.rows} == {present} and kept < present
    report = fastrec.evaluate_scores(log.labels, log.one, user_ids=log.users, metrics=metrics, user_weight=weights)
    assert {report.estimates[metric].users for metric in metrics} == {present}
    part = fastrec.compare_scores(
        log.labels[weights > 0],
        {name: own[weights > 0] for name, own in models.items()},
        metrics,
        user_ids=log.users[weights > 0],
        test="t",
    )
    grown = math.sqrt(present / (present - 1) / (kept / (kept - 1)))  # the divisor of the variance
    quantiles = [pytest.importorskip("scipy.stats").t(n - 1).isf(0.025) for n in (present, kept)]
    for row, own in zip(found.rows, part.rows, strict=True):
        assert row.difference == pytest.approx(own.difference, rel=1e-9)
        factor = grown * quantiles[0] / quantiles[1]
        assert row.high - row.low == pytest.approx((own.high - own.low) * factor, rel=1e-9)


def test_reports_of_logs_with_other_rows_are_warned_of() -> None:
    log = make_log(27)
    same = log.report(log.one, "auc")
    fewer = Log(*(own[:-1] for own in log[:3]), np.append(log.indptr[:-1], log.indptr[-1] - 1))
    flipped = Log(np.append(~log.labels[:1], log.labels[1:]), *log[1:])
    for other, what in ((fewer, "rows: "), (flipped, "positive rows: ")):
        with pytest.warns(fastrec.FastrecWarning, match=f"the logs differ in the number of {what}"):
            found = fastrec.compare({"a": same, "b": other.report(other.other, "auc")})
        assert any(what in warning for warning in found.warnings)
    longer = Log(*log[:3], np.append(log.indptr, log.indptr[-1]))
    reports = {"a": log.report(log.one, "auc", user_ids=np.arange(40))}
    reports["b"] = longer.report(longer.other, "auc", user_ids=np.arange(41))
    with pytest.warns(fastrec.FastrecWarning, match="the logs differ in the number of users: 40 in a, 41 in b"):
        fastrec.compare(reports)


def test_logs_of_equal_counts_with_other_labels_or_weights_are_warned_of() -> None:
    labels, users, scores = np.tile([1, 0, 0], 20), np.repeat(np.arange(20), 3), np.linspace(0, 1, 60)
    weights = np.tile([1.0, 2.0, 3.0], 20)
    moved = labels.reshape(20, 3).copy()
    moved[:2] = [[1, 1, 0], [0, 0, 0]]
    alike: dict[str, Any] = {"user_ids": users, "metrics": "auc", "per_user": True}
    for changed, weight, match in (
        (moved.ravel(), None, "the labels of a and b differ: not all rows have the same user and label"),
        (np.tile([0, 1, 0], 20), None, "the labels of a and b differ, or the rows of a user are in another order"),
        (labels, weights[::-1], "the labels of a and b differ: the rows are the same, but not all of their weights"),
        (labels, weights, None),
    ):
        a = fastrec.evaluate_scores(labels, scores, sample_weight=None if weight is None else weights, **alike)
        b = fastrec.evaluate_scores(changed, scores[::-1], sample_weight=weight, **alike)
        with contextlib.nullcontext() if match is None else pytest.warns(fastrec.FastrecWarning, match=match):
            assert fastrec.compare({"a": a, "b": b}).warnings or match is None


@pytest.mark.parametrize("test", ["randomization", "bootstrap", "t"])
def test_a_class_of_one_user_has_no_interval(test: Any) -> None:
    labels, users = [0, 1, 0, 1, 0, 0], [1, 1, 2, 1, 3, 3]  # only user 1 has positive rows
    models = {"a": [0.1, 0.2, 0.3, 0.4, 0.3, 0.1], "b": [0.3, 0.2, 0.1, 0.6, 0.2, 0.2]}
    metrics = ["auc", "log_loss"]
    found = fastrec.compare_scores(labels, models, metrics, user_ids=users, groups=[1] * 6, test=test)
    for rows in (found.rows, found.segments["group"]):
        auc, log_loss = rows
        assert math.isnan(auc.low) and math.isnan(auc.high) and math.isnan(auc.p_value) and math.isnan(auc.detectable)
        assert math.isfinite(auc.difference) and log_loss.low < log_loss.high and log_loss.p_value <= 1
    assert "no interval and no p-value where fewer than two users count, or have rows of a class" in found.notes()
    assert math.isnan(fastrec.compare_scores(labels[:2], {"a": [0.1, 0.2], "b": [0.2, 0.1]}, "auc").rows[0].p_value)


def test_rows_of_one_class_are_named_as_the_reason() -> None:
    models = {"a": [0.1, 0.2], "b": [0.3, 0.1]}
    for label, reason in ((0, "no row is positive"), (1, "all rows are positive")):
        found = fastrec.compare_scores([label] * 2, models, ["auc", "log_loss"])
        assert found.left_out == {"auc": f"has no value in one of the reports; its mean is NaN, as {reason}"}
        report = fastrec.evaluate_scores([label] * 2, models["a"], metrics=["auc", "ks", "log_loss"])
        assert f"no value for auc, ks: {reason}" in repr(report)
    wanted = "the log of a has no rows, so there is nothing to compare"
    with pytest.warns(fastrec.FastrecWarning, match="no rows"), pytest.raises(fastrec.InputError, match=wanted):
        fastrec.compare_scores([], {"a": [], "b": []}, "auc")


def test_one_user_has_no_interval() -> None:
    found = fastrec.compare_scores([0, 1, 0], {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]}, "auc", indptr=[0, 3])
    assert math.isnan(found.rows[0].low) and math.isnan(found.rows[0].p_value)


@pytest.mark.parametrize("at", [0.0, 0.5, 0.999])
@pytest.mark.parametrize("metric", ["auc", "average_precision", "log_loss"])
def test_rows_without_weight_count_for_nothing(at: float, metric: str) -> None:
    log = make_log(19)
    extra = [np.append(own, at) for own in (log.one, log.other)]
    labels, users = np.append(log.labels, True), np.append(log.users, 3)
    weights = np.append(np.ones(len(log.labels)), 0)
    models = {"a": extra[0], "b": extra[1]}
    found = fastrec.compare_scores(labels, models, metric, user_ids=users, sample_weight=weights, test="t").rows[0]
    models = {"a": log.one, "b": log.other}
    ones = np.ones(len(log.labels))
    wanted = fastrec.compare_scores(log.labels, models, metric, user_ids=log.users, sample_weight=ones, test="t").rows[
        0
    ]
    assert (found.users, found.mean) == (wanted.users, pytest.approx(wanted.mean, abs=1e-12))
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def test_positive_rows_without_weight_have_no_effects() -> None:
    labels, scores, weights = [0, 1, 0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [1, 0, 1, 0, 0, 1]
    report = fastrec.evaluate_scores(
        labels, scores, [0, 2, 4, 6], "average_precision", sample_weight=weights, per_user=True
    )
    assert np.isnan(report.effects["average_precision"][None]).all()


def test_effects_are_not_ranked() -> None:
    """Users without influence have the difference of the means, which ranks would count as wins."""
    log = make_log(21)
    models = {"a": log.one, "b": log.other}
    options = {"indptr": log.indptr, "test": "wilcoxon"}
    found = fastrec.compare_scores(log.labels, models, ["auc", "log_loss(average=user)"], **options)
    assert [row.metric for row in found.rows] == ["log_loss(average=user)"]
    assert "choose another test" in found.left_out["auc"]


def test_a_model_that_predicts_nothing_has_no_effects() -> None:
    labels, models = [0, 1, 0, 1, 1, 0], {"a": [0.1, 0.1, 0.3, 0.4, 0.5, 0.6], "b": [0.2, 0.1, 0.95, 0.4, 0.95, 0.3]}
    found = fastrec.compare_scores(labels, models, ["precision(threshold=0.9)", "auc"], indptr=[0, 2, 4, 6])
    assert "0 / 0" in found.left_out["precision(threshold=0.9)"]


@pytest.mark.parametrize("missing", ["drop", "zero"])
def test_a_group_without_effects_on_one_side_has_no_interval(missing: Any) -> None:
    draw = np.random.default_rng(0)
    labels, indptr, groups = draw.random(60) < 0.5, np.arange(0, 61, 2), np.repeat(["a", "b"], 15)
    one, other = draw.random(60), draw.random(60) * 0.5
    other[30:] = draw.random(30)
    metric = "precision(threshold=0.6, zero_division=1)"
    reports = {
        name: fastrec.evaluate_scores(labels, own, indptr, metric, per_user=True, groups={"g": groups})
        for name, own in (("one", one), ("other", other))
    }
    first, second = fastrec.compare(reports, missing=missing).segments["g"]
    assert math.isnan(first.low) and math.isnan(first.p_value) and first.verdict is None
    assert second.low < second.difference < second.high


def test_metrics_may_be_a_generator() -> None:
    log = make_log(23)
    models = {"a": log.one, "b": log.other}
    found = fastrec.compare_scores(log.labels, models, (name for name in ("auc", "brier")), indptr=log.indptr)
    assert [row.metric for row in found.rows] == ["auc", "brier"]


def test_a_log_whose_users_are_not_named_is_warned_of() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": [0, 1, 0, 1], "score": [0.1, 0.2, 0.3, 0.4], "userId": [1, 1, 2, 2]})
    frame["other"] = frame["score"] + 0.1
    wanted = "rows are taken as independent, but column 'userId' may hold users: pass user='userId' to use it"
    with pytest.warns(fastrec.FastrecWarning, match=wanted):
        report = fastrec.evaluate_scores(frame, metrics="auc")
    assert len(report.warnings) == 1
    with pytest.warns(fastrec.FastrecWarning, match=wanted):
        found = fastrec.compare_scores(frame, {"a": "score", "b": "other"}, "auc")
    assert len([line for line in found.warnings if "userId" in line]) == 1
    assert fastrec.evaluate_scores(frame, metrics="auc", user="userId").warnings == []
    assert fastrec.evaluate_scores(frame, metrics="auc", row_by="userId").warnings == []
    assert fastrec.evaluate_scores(frame.assign(user_id=1), metrics="log_loss").warnings == []
    assert fastrec.evaluate_scores(frame.assign(uid=1), metrics="auc").warnings == []  # either may hold them


CLIPPED = "log_loss .* clip scores to .* differs: 1.2e-07 in a, 2.2e-16 in b; .* pass all scores as float64"


@pytest.mark.parametrize("metric", ["log_loss", "normalized_entropy(average=user)"])
def test_scores_that_are_clipped_by_other_epsilons_are_warned_of(metric: str, tmp_path: Any) -> None:
    log = make_log(24)
    scores = np.round(log.one)
    models = {"a": scores.astype(np.float32), "b": scores}
    with pytest.warns(fastrec.FastrecWarning, match=CLIPPED):
        found = fastrec.compare_scores(log.labels, models, metric, indptr=log.indptr)
    assert len(found.warnings) == 1 and found.rows[0].difference != 0
    evaluators = {}
    cut = int(log.indptr[20])
    for name, own in models.items():
        evaluators[name] = ScoreEvaluator(metric, per_user=True)
        for rows in (slice(0, cut), slice(cut, None)):
            part = ScoreEvaluator(metric, per_user=True)
            part.update(log.labels[rows], own[rows], user_ids=log.users[rows])
            evaluators[name].merge(part)
    with pytest.warns(fastrec.FastrecWarning, match=CLIPPED):
        fastrec.compare({name: own.result() for name, own in evaluators.items()})
    sent = {name: ScoreEvaluator.from_bytes(own.to_bytes()) for name, own in evaluators.items()}
    for name, own in sent.items():
        own.result().save(tmp_path / name)
    for reports in (
        {name: own.result() for name, own in sent.items()},
        {name: fastrec.load(tmp_path / name) for name in models},
        {name: fastrec.load(tmp_path / name).with_groups({}) for name in models},
    ):
        with pytest.warns(fastrec.FastrecWarning, match=CLIPPED):
            fastrec.compare(reports)


def test_scores_that_are_clipped_alike_or_not_at_all_are_not_warned_of() -> None:
    log = make_log(25)
    single, double = log.one.astype(np.float32), np.round(log.one)
    for models in (
        {"a": single, "b": log.other},
        {"a": double, "b": log.other},
        {"a": double.astype(np.float32), "b": single},
    ):
        assert fastrec.compare_scores(log.labels, models, "log_loss", indptr=log.indptr).warnings == ()
    models = {"a": single, "b": double}
    assert fastrec.compare_scores(log.labels, models, ["auc", "brier"], indptr=log.indptr).warnings == ()


def test_students_test_does_not_load_scipy() -> None:
    code = """
Launcher.way = ""  # Numba loads SciPy
row = fastrec.compare_scores([0, 1, 0, 1], {"a": [1, 2, 3, 4], "b": [2, 1, 3, 4]}, "auc", test="t").rows[0]
import sys
print(row.p_value > 0, "scipy" in sys.modules)
"""
    check(run(code), "True False")

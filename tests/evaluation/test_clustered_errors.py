"""Standard errors of auc, average_precision and mcc over users: definition, jackknife, coverage, laws, words."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

import fastrec
from fastrec.files import job, resources

Array = np.ndarray[Any, Any]
OF_ORDER = ["auc", "average_precision"]
METRICS = [*OF_ORDER, "mcc(threshold=0.6)"]
CLUSTERED = "intervals of auc, average_precision: over users, whose rows count together (clustered)"
OF_ROWS = "intervals of auc, average_precision: rows are taken as independent"


class Log(NamedTuple):
    """Rows of users that are alike, as each user has a taste that labels and scores share."""

    labels: Array
    scores: Array
    users: Array

    @property
    def indptr(self) -> Array:
        return np.concatenate([[0], np.cumsum(np.bincount(self.users))])

    def report(self, metrics: Any = OF_ORDER, **more: Any) -> fastrec.Report:
        return fastrec.evaluate_scores(self.labels, self.scores, user_ids=self.users, metrics=metrics, **more)

    def part(self, chosen: Array) -> Log:
        return Log(self.labels[chosen], self.scores[chosen], self.users[chosen])


def make_log(draw: np.random.Generator, n_users: int, n_rows: int, digits: int = 9) -> Log:
    taste = draw.normal(size=(n_users, 1))
    labels = draw.random((n_users, n_rows)) < 1 / (1 + np.exp(-taste - 0.8 * draw.normal(size=(n_users, n_rows))))
    scores = 1 / (1 + np.exp(-0.5 - 1.3 * taste - draw.normal(size=(n_users, n_rows))))
    return Log(labels.ravel(), scores.ravel().round(digits), np.repeat(np.arange(n_users), n_rows))


def obuchowski(log: Log, weights: Array | None = None) -> float:
    """The error of the AUC of clustered rows (Obuchowski 1997), row by row, with U / (U - 1) over all users."""
    own = np.ones(len(log.labels)) if weights is None else weights

    def placed(at: int) -> float:
        others = log.labels != log.labels[at]
        ahead = np.sign(log.scores[at] - log.scores[others]) * (1 if log.labels[at] else -1)
        return float(np.average((ahead + 1) / 2, weights=own[others]))

    placements = np.array([placed(at) for at in range(len(log.labels))])
    area = np.average(placements[log.labels], weights=own[log.labels])
    sums: dict[int, float] = {}
    for at, user in enumerate(log.users.tolist()):
        share = own[at] / own[log.labels == log.labels[at]].sum()
        sums[user] = sums.get(user, 0.0) + share * (placements[at] - area)
    return math.sqrt(len(sums) / (len(sums) - 1) * sum(each**2 for each in sums.values()))


@pytest.mark.parametrize("digits", [1, 9])
@pytest.mark.parametrize("weighted", ["", "rows", "users", "both"])
def test_the_error_of_auc_is_that_of_clusters(digits: int, weighted: str) -> None:
    draw = np.random.default_rng(digits)
    log = make_log(draw, 30, 7, digits)
    log = log.part(draw.random(len(log.labels)) < 0.8)
    of_rows = draw.integers(1, 5, len(log.labels)) * 0.37
    of_users = (draw.integers(1, 4, 30) * 0.61)[log.users]
    given = {"sample_weight": of_rows} if weighted in ("rows", "both") else {}
    given |= {"user_weight": of_users} if weighted in ("users", "both") else {}
    together = np.prod(list(given.values()), axis=0) if given else None
    groups = np.where(log.users % 3 == 0, "new", "old")
    report = log.report(groups={"age": groups}, **given)
    assert report.std_error("auc") == pytest.approx(obuchowski(log, together), rel=1e-9)
    for label, own in report.groups["age"].items():
        chosen = groups == label
        weights = None if together is None else together[chosen]
        assert own["auc"].std_error == pytest.approx(obuchowski(log.part(chosen), weights), rel=1e-9)


def test_rows_that_stand_for_themselves_have_delongs_error() -> None:
    """One row per user: only the divisors differ."""
    log = make_log(np.random.default_rng(2), 400, 1)
    apart = fastrec.evaluate_scores(log.labels, log.scores, metrics=OF_ORDER)
    for metric in OF_ORDER:
        assert log.report().std_error(metric) == pytest.approx(apart.std_error(metric), rel=5e-3)


@pytest.mark.parametrize("metric", METRICS)
def test_errors_agree_with_the_jackknife(metric: str) -> None:
    log = make_log(np.random.default_rng(3), 150, 8)
    left_out = np.array([log.part(log.users != user).report(metric)[metric] for user in range(150)])
    jackknife = math.sqrt(149 / 150 * np.sum((left_out - left_out.mean()) ** 2))
    assert log.report(metric).std_error(metric) == pytest.approx(jackknife, rel=0.03)


@pytest.mark.parametrize(
    "rounds", [pytest.param(400, id="quick"), pytest.param(4000, id="long", marks=pytest.mark.thorough)]
)
def test_intervals_cover_where_those_of_rows_do_not(rounds: int) -> None:
    """Intervals of 95 % over users, whose rows are alike; DeLong's takes the rows as independent."""
    draw = np.random.default_rng(4)
    truth = make_log(draw, 40_000, 12).report(METRICS)
    held, held_by_rows = dict.fromkeys(METRICS, 0), 0
    for _ in range(rounds):
        log = make_log(draw, 300, 12)
        report = log.report(METRICS)
        for metric in METRICS:
            low, high = report.interval(metric)
            held[metric] += low <= truth[metric] <= high
        low, high = fastrec.evaluate_scores(log.labels, log.scores, metrics="auc").interval("auc")
        held_by_rows += low <= truth["auc"] <= high
    slack = 0.015 if rounds >= 4000 else 0.03
    assert all(abs(count / rounds - 0.95) <= slack for count in held.values()), held
    assert held_by_rows / rounds < 0.9


def test_an_expected_calibration_error_of_right_scores_is_never_right() -> None:
    """Why ece has no interval: a sum of distances is above 0 even if every score is right, by many errors."""
    draw = np.random.default_rng(5)
    values = []
    for _ in range(100):
        scores = draw.random(3000)
        values.append(fastrec.evaluate_scores(draw.random(3000) < scores, scores, metrics="ece")["ece"])
    assert min(values) > 2 * np.std(values)


# Laws


def bits(report: fastrec.Report) -> Any:
    """Return the bits of errors and effects, users by id."""
    assert report.user_ids is not None
    order = np.argsort(report.user_ids)
    effects = {name: {key: own[order].tobytes() for key, own in by.items()} for name, by in report.effects.items()}
    errors = {name: float(one.std_error).hex() for name, one in report.estimates.items()}
    by_group = {
        (name, str(label), metric): float(one.std_error).hex()
        for name, by in report.groups.items()
        for label, own in by.items()
        for metric, one in own.items()
    }
    return effects, errors, by_group


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scores", [np.float32, np.float64])
def test_all_routes_give_the_same_bits(tmp_path: Path, weighted: bool, scores: Any) -> None:
    """Threads, the order of users, arrays, frames, files in memory, in a database and streamed."""
    pa, parquet, csv = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet", "pyarrow.csv"))
    pytest.importorskip("pyarrow")
    draw = np.random.default_rng(6)
    log = make_log(draw, 120, 9, 3)
    log = log._replace(scores=log.scores.astype(scores))
    table = pa.table(
        {"user_id": log.users, "label": log.labels, "score": log.scores, "plan": log.users % 3}
        | ({"weight": draw.integers(0, 4, len(log.labels)) * 0.37} if weighted else {})
    )
    given: dict[str, Any] = {"sample_weight": "weight"} if weighted else {}
    call: dict[str, Any] = {"metrics": METRICS, "per_user": True, "by": "plan", **given}
    wanted = bits(fastrec.evaluate_scores(table, **call, n_threads=1))
    assert wanted[0].keys() == set(METRICS) and all(set(by) == {None, "plan"} for by in wanted[0].values())
    assert bits(fastrec.evaluate_scores(table, **call, n_threads=4)) == wanted
    mixed = table.take(np.argsort(draw.random(120)[log.users], kind="stable"))
    assert bits(fastrec.evaluate_scores(mixed, **call)) == wanted
    weights = {"sample_weight": table["weight"].to_numpy()} if weighted else {}
    arrays = (log.labels, log.scores, log.indptr, METRICS)
    by_pointers = fastrec.evaluate_scores(
        *arrays, user_ids=np.arange(120), groups={"plan": np.arange(120) % 3}, per_user=True, **weights
    )
    assert bits(by_pointers) == wanted
    parquet.write_table(mixed, tmp_path / "log.parquet")
    assert bits(fastrec.evaluate_files(tmp_path / "log.parquet", **call)) == wanted
    by_user = call | {"by": pa.table({"user_id": np.arange(120), "plan": np.arange(120) % 3})}  # no column of the log
    assert bits(fastrec.evaluate_files(tmp_path / "log.parquet", **by_user)) == wanted
    with mock.patch.object(job, "COPIES", 1 << 40):
        assert bits(fastrec.evaluate_files(tmp_path / "log.parquet", **call)) == wanted
    for batch_rows in (50, 10_000):
        with (
            mock.patch.object(job, "COPIES", 10**9),
            mock.patch.object(resources.Resources, "batch_rows", lambda *_, n=batch_rows: n),
        ):
            assert bits(fastrec.evaluate_files(tmp_path / "log.parquet", **call)) == wanted
    if scores is np.float64:
        csv.write_csv(mixed, tmp_path / "log.csv")
        assert bits(fastrec.evaluate_files(tmp_path / "log.csv", **call)) == wanted


def test_reports_of_files_can_be_compared(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    draw = np.random.default_rng(7)
    one = make_log(draw, 100, 6)
    other = one._replace(scores=(one.scores + 0.2 * draw.random(len(one.scores))) / 1.2)
    reports = {}
    for name, log in {"one": one, "other": other}.items():
        frame = {"user_id": log.users, "label": log.labels * 1, "score": log.scores, "plan": log.users % 2}
        pandas.DataFrame(frame).to_csv(tmp_path / f"{name}.csv", index=False)
        found = fastrec.evaluate_files(tmp_path / f"{name}.csv", metrics=METRICS, by="plan", per_user=True)
        found.save(tmp_path / name)
        reports[name] = fastrec.load(tmp_path / name)
    found = fastrec.compare(reports, test="t")
    models = {"one": one.scores, "other": other.scores}
    wanted = fastrec.compare_scores(
        one.labels, models, METRICS, user_ids=one.users, groups={"plan": one.users % 2}, test="t"
    )
    assert found.rows == wanted.rows and not found.left_out
    assert [row.low for row in found.segments["plan"]] == [row.low for row in wanted.segments["plan"]]


# What is said


def test_a_report_says_what_its_intervals_take_as_independent(tmp_path: Path) -> None:
    log = make_log(np.random.default_rng(8), 40, 5)
    of_users = log.report(["auc", "average_precision", "log_loss"])
    of_rows = fastrec.evaluate_scores(log.labels, log.scores, metrics=OF_ORDER)
    of_batches = fastrec.ScoreEvaluator(OF_ORDER)
    of_batches.update(log.labels, log.scores, user_ids=log.users)
    batched = of_batches.result()
    assert batched.std_error("auc") == of_rows.std_error("auc") != of_users.std_error("auc")
    said = {of_users: CLUSTERED, of_rows: OF_ROWS, batched: f"{OF_ROWS}, as batches do not give the rows a second time"}
    for report, line in said.items():
        assert line in repr(report).splitlines()
        assert line in (report.to_markdown() or "") and line in (report.to_html() or "")
        units = "users" if report is of_users else "rows"
        assert report.settings["units"] == units
        assert json.loads(report.to_json() or "")["settings"]["units"] == units
        report.save(tmp_path / "report")
        assert repr(fastrec.load(tmp_path / "report")) == repr(report)
    assert "intervals of" not in repr(log.report(["log_loss", "gauc"]))
    assert "units" not in log.report("log_loss").settings


def test_merged_evaluators_take_rows_as_independent() -> None:
    log = make_log(np.random.default_rng(9), 40, 5)
    first, second = fastrec.ScoreEvaluator(OF_ORDER, per_user=True), fastrec.ScoreEvaluator(OF_ORDER, per_user=True)
    for part, chosen in ((first, log.users < 20), (second, log.users >= 20)):
        part.update(log.labels[chosen], log.scores[chosen], user_ids=log.users[chosen])
    report = first.merge(fastrec.ScoreEvaluator.from_bytes(second.to_bytes())).result()
    assert report.settings["units"] == "rows" and not report.effects


@pytest.mark.parametrize(
    ("labels", "users"), [([1, 0, 1, 0], [1, 1, 1, 1]), ([1, 0, 1, 0], [1, 2, 1, 1]), ([1, 0, 0, 0], [1, 2, 1, 2])]
)
def test_few_users_of_a_class_have_no_interval(labels: list[int], users: list[int]) -> None:
    report = fastrec.evaluate_scores(labels, [0.1, 0.2, 0.3, 0.4], user_ids=users, metrics="auc")
    assert math.isnan(report.std_error("auc"))
    assert "no interval for auc: a class has rows of fewer than two users" in repr(report)


def test_scores_of_any_size_are_found() -> None:
    """Infinite and huge scores, and such as are close together, are each found among the distinct scores."""
    draw = np.random.default_rng(10)
    places = draw.integers(0, 12, 400)
    labels, users = draw.random(400) < (places + 2) / 16, draw.integers(0, 40, 400)
    wanted = fastrec.evaluate_scores(labels, places * 1.0, user_ids=users, metrics=OF_ORDER)
    tiny, huge = np.finfo(float).smallest_subnormal, np.finfo(float).max
    for levels in (
        [-np.inf, -huge, -huge / 2, -1.0, -tiny, 0.0, tiny, 1.0, np.nextafter(1, 2), 2.0, huge, np.inf],
        [-np.inf, *(np.arange(10) * tiny), np.inf],
        [*(1 + np.arange(11) * 2.0**-52), 1e300],
    ):
        found = fastrec.evaluate_scores(labels, np.array(levels)[places], user_ids=users, metrics=OF_ORDER)
        assert [found.std_error(name) for name in OF_ORDER] == [wanted.std_error(name) for name in OF_ORDER]

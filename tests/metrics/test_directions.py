"""Directions of metrics: declared once, and followed by comparisons, gates, tables and pages."""

import dataclasses
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrec
from fastrec.exceptions import InputError, MetricError
from fastrec.metrics import declaration
from support.command_line import Done, run_fastrec
from support.pages import Page

LOWER = {
    "fallout",
    "log_loss",
    "brier",
    "normalized_entropy",
    "ece",
    "fpr",
    "mae",
    "mse",
    "rmse",
    "hamming",
    "eer",
    "mape",
}
TARGETS = {"calibration": 1.0}
HIGHER = {"hits", "hit_rate", "precision", "recall", "f_beta", "f1", "r_precision", "mrr", "arhr", "map", "cg", "dcg"}
HIGHER |= {
    "ndcg",
    "rbp",
    "err",
    "accuracy",
    "specificity",
    "mcc",
    "limited_auc",
    "auc",
    "gauc",
    "average_precision",
    "ks",
    "balanced_accuracy",
    "g_mean",
    "cohen_kappa",
    "log_auc",
    "r2",
    "xauc",
    "recall_at_precision",
    "precision_at_recall",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
}
HIGHER |= {"user_coverage", "aplt", "novelty", "epc", "efd", "intra_list_diversity", "category_coverage", "serendipity"}
HIGHER |= {"category_entropy", "unexpectedness", "item_coverage", "shannon_entropy", "personalization"}
HIGHER |= {"ips", "snips"}
HIGHER |= {"utility", "set_ap", "mar", "mean_precision", "mean_recall", "ncrr"}
HIGHER |= {"insq", "inst", "bpm", "nerr", "compatibility", "ndcg_rel", "rndcg", "normalized_gain"}
HIGHER |= {"bpref", "inf_ap", "iprec_at_recall", "eleven_point_average", "bin_g"}
HIGHER |= {"ordered_pair_accuracy", "kendall_tau", "spearman_rho"}
HIGHER |= {"alpha_dcg", "err_ia", "nrbp", "subtopic_recall", "precision_ia", "map_ia"}
LOWER |= {"coverage_error", "ndpm", "gini", "rsp", "reo", "miscalibration", "average_relevance_position", "median_rank"}
TARGETS |= {"popularity_lift": 0.0}
NEITHER = {"popularity", "repeat_ratio", "overlap", "rbo", "num_ret", "num_rel"}
NEITHER |= {"judged", "unjudged", "num_nonrel_judged_ret", "rbp_residual"}
N_USERS, ROWS_OF_USER = 60, 8
PER_USER, OVER_ROWS = "calibration(average=user)", "calibration"


@pytest.fixture
def own() -> Iterator[Callable[..., Any]]:
    """A function that declares a metric until the end of a test: hits within k, under a name and in a direction."""
    declared = []

    def declare(name: str, **options: Any) -> None:
        declared.append(name)
        fastrec.ranking_metric(range=(0, None), name=name, **options)(lambda s: s.hits)

    yield declare
    for name in declared:
        declaration.DECLARED["lists"].pop(name, None)
    declaration.forget_parsed()


def log_of(factor: float, seed: int = 0, **options: Any) -> fastrec.Report:
    """Evaluate scores near a share of positives that differs by user, times a factor; the log is always the same."""
    chance = np.random.default_rng(7)
    shares = np.repeat(chance.uniform(0.3, 0.5, N_USERS), ROWS_OF_USER)
    labels = (chance.random(shares.shape) < shares).astype(int)
    labels[::ROWS_OF_USER] = 1
    noise = np.random.default_rng(seed).uniform(-0.02, 0.02, shares.shape)
    scores = factor * labels.mean() * (1 + noise)
    indptr = np.arange(0, len(labels) + 1, ROWS_OF_USER)
    options = {"metrics": [PER_USER, OVER_ROWS, "auc"], "per_user": True} | options
    return fastrec.evaluate_scores(labels, scores, indptr, **options)


def lists_of(hits: list[int], metrics: list[str], **options: Any) -> fastrec.Report:
    """Evaluate users with this many relevant items among three."""
    recs = [[*range(n), *range(10, 13 - n)] for n in hits]
    return fastrec.evaluate(recs, [[0, 1, 2]] * len(hits), metrics, per_user=True, **options)


# Declarations


def test_every_metric_has_the_direction_that_it_should() -> None:
    """A second list by hand, so that someone thinks about the direction of each new metric."""
    for metric in fastrec.catalogue():
        name = metric["name"]
        kind = "lower" if name in LOWER else "target" if name in TARGETS else "higher" if name in HIGHER else "none"
        assert (kind == "none") == (name in NEITHER), name
        assert (metric["direction"], metric["target"]) == (kind, TARGETS.get(name)), name
        assert metric["higher_is_better"] == {"higher": True, "lower": False}.get(kind), name


@pytest.mark.parametrize(
    ("options", "direction", "target", "higher"),
    [
        ({}, "higher", None, True),
        ({"higher_is_better": True}, "higher", None, True),
        ({"higher_is_better": False}, "lower", None, False),
        ({"direction": "higher"}, "higher", None, True),
        ({"direction": "lower"}, "lower", None, False),
        ({"direction": "none"}, "none", None, None),
        ({"direction": 2}, "target", 2.0, None),
        ({"direction": np.float32(0.5)}, "target", 0.5, None),
    ],
)
def test_a_metric_of_ones_own_says_its_direction(
    own: Any, options: dict[str, Any], direction: str, target: float | None, higher: bool | None
) -> None:
    own("mine", **options)
    entry = next(metric for metric in fastrec.catalogue() if metric["name"] == "mine")
    assert (entry["direction"], entry["target"], entry["higher_is_better"]) == (direction, target, higher)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"direction": "up"}, "direction must be 'higher', 'lower', 'none' or the best value, a number; found 'up'"),
        ({"direction": True}, "direction must be .*; found True"),
        ({"direction": math.nan}, "direction must be .*; found nan"),
        ({"direction": math.inf}, "direction must be .*; found inf"),
        ({"direction": np.timedelta64(1, "D")}, r"direction must be .*; found .*timedelta64\(1,'D'\)"),
        ({"direction": 10**400}, "direction must be .*; found 1000"),
        ({"direction": [1]}, r"direction must be .*; found \[1\]"),
        ({"direction": -1}, r"direction=-1 is outside range=\(0.0, None\)"),
        ({"direction": "lower", "higher_is_better": False}, "direction and higher_is_better say the same: pass one"),
        ({"higher_is_better": "lower"}, "higher_is_better must be True or False, found 'lower'"),
    ],
)
def test_a_direction_that_cannot_be(own: Any, options: dict[str, Any], says: str) -> None:
    with pytest.raises(MetricError, match=says):
        own("mine", **options)


# Comparisons: the value of each user


def test_nearer_to_the_target_is_better() -> None:
    old, new = log_of(1.68), log_of(1.09)
    row = fastrec.compare({"old": old, "new": new}, "old", PER_USER).rows[0]
    far, near = ([abs(x - 1) for x in report.per_user[PER_USER].tolist()] for report in (old, new))
    assert row.difference == pytest.approx(statistics.fmean(near) - statistics.fmean(far), abs=1e-12)
    assert row.difference < 0 and row.low < row.difference < row.high < 0
    assert (row.mean, row.baseline_mean) == pytest.approx((new[PER_USER], old[PER_USER]), abs=1e-12)
    wins = sum(a < b for a, b in zip(near, far, strict=True))
    assert (row.wins, row.losses) == (wins, N_USERS - wins)
    assert (row.direction, row.target, row.verdict) == ("target", 1.0, "better")
    back = fastrec.compare({"old": old, "new": new}, "new", PER_USER).rows[0]
    assert (back.difference, back.p_value, back.verdict) == (-row.difference, row.p_value, "worse")


def test_both_sides_of_a_target_are_equally_far(own: Any) -> None:
    own("near_two", direction=2)
    over, under, exact = (lists_of(hits, ["near_two"]) for hits in ([3] * 20, [1] * 20, [2] * 20))
    found = fastrec.compare({"over": over, "under": under, "exact": exact})
    rows = {(row.system, row.baseline): row for row in found.rows}
    same = rows["under", "over"]
    assert (same.difference, same.ties, same.verdict) == (0, 20, "not clear")
    assert (same.mean, same.baseline_mean) == (1, 3)
    for baseline in ("over", "under"):
        row = rows["exact", baseline]
        assert (row.difference, row.wins, row.verdict) == (-1, 20, "better")


def test_distances_are_tied_where_values_are_equal_but_for_rounding() -> None:
    """Close to the target, the difference of two distances has fewer digits than the values."""
    from fastrec.report.significance import pair_differences

    values = 1 + np.array([1e-13, 0.3, -0.2])
    differences, largest = pair_differences(values * (1 + 2.0**-50), values, 1.0)
    assert differences.tolist() == [0, 0, 0] and largest == 0
    differences, largest = pair_differences(np.array([0.5, 1.5]), np.array([1.0, 0.5]), 1.0)
    assert differences.tolist() == [0.5, 0] and largest == 1


def test_a_metric_without_a_direction_gets_no_verdict(own: Any) -> None:
    own("listed", direction="none")
    reports = {"a": lists_of([1] * 30, ["listed", "hits"]), "b": lists_of([3] * 29 + [1], ["listed", "hits"])}
    found = fastrec.compare(reports, "a")
    row, directed = found.rows
    assert (row.difference, row.p_value) == (directed.difference, directed.p_value) and row.p_value < 0.01
    assert (row.verdict, row.wins, row.losses, row.ties) == (None, None, None, 1)
    assert (directed.verdict, directed.wins, directed.losses, directed.ties) == ("better", 29, 0, 1)
    assert "listed: neither is better, so there is no verdict" in repr(found)
    head, *shown = Page(found.to_html()).tables["Differences to a"]
    assert shown[0][head.index("verdict")] == "–" and shown[0][head.index("wins")] == "–"
    assert "better in 1, worse in 0" in found.to_html() and "1 has no verdict" in found.to_html()
    assert json.loads(found.to_json())["rows"][0]["wins"] is None


def test_no_difference_is_no_verdict() -> None:
    """Signed ranks may distinguish two systems with equal means: neither is then the worse one."""
    pytest.importorskip("scipy")
    few, many = [3] * 4 + [0] * 12, [0] * 4 + [1] * 12
    reports = {"a": lists_of(few, ["hits"]), "b": lists_of(many, ["hits"])}
    row = fastrec.compare(reports, "a", test="wilcoxon", level=0.5).rows[0]
    assert row.difference == 0 and row.verdict == "not clear"


@pytest.mark.filterwarnings("ignore:no truth item")
def test_users_who_are_missing_get_no_good_value(own: Any) -> None:
    own("near_two", direction=2)
    own("loss", direction="higher")
    declaration.DECLARED["lists"]["loss"] = dataclasses.replace(
        declaration.DECLARED["lists"]["loss"], range=(-9.0, 0.0)
    )
    declaration.forget_parsed()
    reports = {name: lists_of([0, 0, 0], ["near_two", "loss", "hits"]) for name in "ab"}
    found = fastrec.compare(reports, missing="zero")
    assert [row.metric for row in found.rows] == ["hits"]
    assert list(found.left_out) == ["near_two", "loss"]
    assert all("missing='zero'" in why for why in found.left_out.values())


def test_a_metric_that_is_declared_elsewhere_is_left_out(own: Any) -> None:
    own("passing", direction="lower")
    reports = {name: lists_of([1, 2], ["passing", "hits"]) for name in "ab"}
    declaration.DECLARED["lists"].pop("passing")
    declaration.forget_parsed()
    found = fastrec.compare(reports)
    assert [row.metric for row in found.rows] == ["hits"] and "ranking_metric" in found.left_out["passing"]
    with pytest.raises(InputError, match="passing is not declared here"):
        fastrec.compare(reports, metrics="passing")


# Comparisons: ratios of sums


def without_effects(report: fastrec.Report) -> fastrec.Report:
    """Return a report as one made from batches, or by an earlier version."""
    report.effects.clear()
    return report


def test_a_ratio_of_sums_is_judged_by_the_standard_errors_of_both() -> None:
    """Where reports have no effects of users."""
    old, new = without_effects(log_of(1.68)), without_effects(log_of(1.09))
    row = fastrec.compare({"old": old, "new": new}, "old", OVER_ROWS).rows[0]
    assert (row.mean, row.baseline_mean) == (new[OVER_ROWS], old[OVER_ROWS])
    difference = abs(new[OVER_ROWS] - 1) - abs(old[OVER_ROWS] - 1)
    error = old.std_error(OVER_ROWS) + new.std_error(OVER_ROWS)
    of_users = stats.t(N_USERS - 1)
    margin = of_users.ppf(0.975) * error
    assert row.difference == pytest.approx(difference, abs=1e-15)
    assert (row.low, row.high) == pytest.approx((difference - margin, difference + margin), abs=1e-12)
    assert row.p_value == pytest.approx(2 * of_users.sf(abs(difference) / error), rel=1e-9)
    assert row.detectable == pytest.approx((of_users.ppf(0.975) + of_users.ppf(0.8)) * error, abs=1e-12)
    assert (row.users, row.unpaired, row.wins, row.ties, row.losses) == (N_USERS, 0, None, None, None)
    assert (row.direction, row.target, row.verdict) == ("target", 1.0, "better")
    assert fastrec.compare({"old": old, "new": new}, "new", OVER_ROWS).rows[0].verdict == "worse"
    same = fastrec.compare({"old": old, "new": without_effects(log_of(1.68))}, "old", OVER_ROWS).rows[0]
    assert (same.difference, same.p_value, same.verdict) == (0, 1, "not clear")


@pytest.mark.parametrize("factors", [(1.4, 1.3), (0.7, 1.2), (0.9, 0.95), (2.0, 1.9)])
def test_the_interval_of_a_ratio_is_never_too_short(factors: tuple[float, float]) -> None:
    """It contains the interval of the jackknife, which leaves out one user on both sides at a time."""
    chance = np.random.default_rng(3)
    labels = (chance.random((N_USERS, ROWS_OF_USER)) < 0.4).astype(int)
    systems = [factor * 0.4 * chance.uniform(0.5, 1.5, labels.shape) for factor in factors]
    indptr = np.arange(0, labels.size + 1, ROWS_OF_USER)
    one, other = (
        fastrec.evaluate_scores(labels.ravel(), s.ravel(), indptr, metrics=OVER_ROWS, per_user=True) for s in systems
    )
    row = fastrec.compare({"other": other, "one": one}, "other").rows[0]

    def gap(users: Any) -> float:
        first, second = (abs(s[users].sum() / labels[users].sum() - 1) for s in systems)
        return float(first - second)

    left_out = np.array([gap(np.arange(N_USERS) != user) for user in range(N_USERS)])
    error = math.sqrt((N_USERS - 1) / N_USERS * ((left_out - left_out.mean()) ** 2).sum())
    assert row.difference == pytest.approx(gap(np.arange(N_USERS)), abs=1e-12)
    assert row.high - row.low >= 0.99 * 2 * statistics.NormalDist().inv_cdf(0.975) * error


def test_how_a_ratio_is_judged_does_not_depend_on_the_data() -> None:
    """If every user has as many positive rows, the ratio of sums is also the mean of the users' ratios."""
    labels, indptr = np.tile([1, 0], 20), np.arange(0, 41, 2)
    chance = np.random.default_rng(0)
    one, other = (
        fastrec.evaluate_scores(labels, chance.random(40) * most, indptr, metrics=OVER_ROWS, per_user=True)
        for most in (0.9, 0.5)
    )
    assert one[OVER_ROWS] == pytest.approx(np.nanmean(one.per_user[OVER_ROWS]), abs=1e-12)
    row = fastrec.compare({"other": other, "one": one}, "other").rows[0]
    assert row.difference == pytest.approx(abs(one[OVER_ROWS] - 1) - abs(other[OVER_ROWS] - 1), abs=1e-12)
    assert row.wins is None


def test_ratios_within_segments() -> None:
    groups = {"half": ["a", "b"] * (N_USERS // 2)}
    old, new = log_of(1.68, groups=groups), log_of(1.09, groups=groups)
    found = fastrec.compare({"old": old, "new": new}, "old", OVER_ROWS)
    for row in found.segments["half"]:
        ours, theirs = (report.groups["half"][row.group][OVER_ROWS] for report in (new, old))
        assert (row.mean, row.baseline_mean, row.users) == (ours.mean, theirs.mean, N_USERS // 2)
        assert row.difference == pytest.approx(abs(ours.mean - 1) - abs(theirs.mean - 1), abs=1e-15)
        assert row.verdict == "better"


@pytest.mark.filterwarnings("ignore:the labels of a and b differ")
def test_ratios_need_the_same_users() -> None:
    reports = {}
    for name, users in (("a", ["u", "v", "w"]), ("b", ["u", "v", "x"])):
        evaluator = fastrec.ScoreEvaluator([OVER_ROWS, PER_USER], per_user=True)
        evaluator.update([1, 0, 1, 0, 1, 0], [0.5, 0.4, 0.6, 0.3, 0.9, 0.1], [0, 2, 4, 6], user_ids=users)
        reports[name] = evaluator.result()
    found = fastrec.compare(reports)
    assert [row.metric for row in found.rows] == [PER_USER]
    assert "the same users" in found.left_out[OVER_ROWS]


# Metrics that are left out


def test_a_metric_without_values_of_users_is_left_out() -> None:
    reports = {"old": without_effects(log_of(1.68)), "new": without_effects(log_of(1.09))}
    found = fastrec.compare(reports, "old")
    assert "auc" not in {row.metric for row in found.rows}
    why = found.left_out["auc"]
    assert "auc" in repr(found) and why in repr(found)
    assert json.loads(found.to_json())["left_out"]["auc"] == why
    assert ["auc", why] in Page(found.to_html()).tables["Not compared"]
    assert why in found.to_markdown()
    with pytest.raises(InputError, match="auc has no effects of users in a report made from batches"):
        fastrec.compare(reports, "old", "auc")
    with pytest.raises(InputError, match="not a plain mean"):
        reports["old"].interval("auc", method="bootstrap")


def test_an_auc_that_is_nan_is_left_out_too() -> None:
    report = fastrec.evaluate_scores(
        [1, 1], [0.1, 0.2], [0, 1, 2], metrics=["auc", "log_loss(average=user)"], per_user=True
    )
    found = fastrec.compare({"a": report, "b": report})
    assert list(found.left_out) == ["auc"] and len(found.rows) == 1


# Tables and pages


def test_pages_and_tables_show_the_direction() -> None:
    metrics = [PER_USER, OVER_ROWS, "mae(average=user)", "auc"]
    old, new = (without_effects(log_of(factor, metrics=metrics)) for factor in (1.68, 1.09))
    found = fastrec.compare({"old": old, "new": new}, "old")
    page = Page(found.to_html())
    head, *rows = page.tables["Differences to old"]
    verdicts = {row[0]: row[head.index("verdict")] for row in rows}
    assert verdicts[PER_USER] == verdicts[OVER_ROWS] == "▲ better"
    head, *rows = page.tables["Definitions of the metrics"]
    better = {row[0]: row[head.index("better")] for row in rows}
    assert better == {PER_USER: "nearer to 1", OVER_ROWS: "nearer to 1", "mae(average=user)": "lower"}
    head, *rows = Page(new.to_html()).tables["Definitions of the metrics"]
    assert {row[0]: row[head.index("better")] for row in rows} == better | {"auc": "higher"}
    for text in (repr(found), found.to_markdown(), found.to_html()):
        assert "lower is better: mae(average=user)" in text
        assert f"{PER_USER}: nearer to 1 is better" in text and "distance to it" in text
        assert f"{OVER_ROWS}: nearer to 1 is better" in text and "standard errors" in text
    matrix = Page(fastrec.compare({"old": old, "new": new}).to_html()).tables
    (cells,) = (rows for title, rows in matrix.items() if title.startswith(f"{PER_USER}: "))
    assert cells[2][1].endswith("▲") and cells[1][2].endswith("▼")


def test_plots_say_where_lower_or_nearer_is_better() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    old, new = (log_of(factor, metrics=[PER_USER, "mae(average=user)"]) for factor in (1.68, 1.09))
    found = fastrec.compare({"old": old, "new": new}, "old")
    assert "distance to 1" in found.plot(PER_USER).get_xlabel()
    assert "lower is better" in found.plot("mae(average=user)").get_xlabel()


# The command line


def run(*arguments: Any) -> Done:
    return run_fastrec(*arguments)


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    """Two logs of the same rows, as arguments of `compare`: one promises far too much, one a little."""
    chance = np.random.default_rng(0)
    named = []
    for name, factor in (("old", 1.68), ("new", 1.09)):
        path = tmp_path / f"{name}.csv"
        lines = ["user_id,label,score"]
        for user, row in itertools.product(range(40), range(5)):
            lines.append(f"{user},{int(row < 2)},{factor * 0.4 * chance.uniform(0.98, 1.02)}")
        path.write_text("\n".join(lines) + "\n")
        named.append(f"{name}={path}")
    return named


@pytest.mark.parametrize("metric", [PER_USER, OVER_ROWS])
def test_the_gate_of_a_target(logs: list[str], metric: str) -> None:
    arguments = ("compare", *logs, "-m", metric, "--fail-if-worse", metric)
    assert run(*arguments, "--baseline", "old").exit_code == 0
    result = run(*arguments, "--baseline", "new")
    assert result.exit_code == 1
    assert f"old is worse than new: {metric} +0.5" in result.stderr and "in the distance to 1" in result.stderr
    text = run("compare", *logs, "-m", metric, "--baseline", "old").stdout
    assert "nearer to 1 is better" in text


def test_the_gate_of_a_metric_that_is_left_out(logs: list[str]) -> None:
    result = run("compare", *logs, "-m", f"{PER_USER},ks", "--baseline", "old", "--fail-if-worse", "ks")
    assert result.exit_code == 2 and "--fail-if-worse ks: is a number of all" in result.stderr
    document = json.loads(run("compare", *logs, "-m", f"{PER_USER},ks", "--format", "json").stdout)
    assert list(document["left_out"]) == ["ks"] and {row["metric"] for row in document["rows"]} == {PER_USER}


def test_the_gate_of_a_metric_without_a_direction(own: Any, tmp_path: Path) -> None:
    own("listed", direction="none")
    for name in ("a", "b", "truth"):
        (tmp_path / f"{name}.csv").write_text("user_id,item_id\n1,1\n2,2\n")
    files = [f"{name}={tmp_path / name}.csv" for name in "ab"]
    result = run(
        "compare",
        *files,
        "--truth",
        tmp_path / "truth.csv",
        "-m",
        "listed",
        "--baseline",
        "a",
        "--fail-if-worse",
        "listed",
    )
    assert result.exit_code == 2
    assert "--fail-if-worse listed: the metric declares neither higher nor lower values as better" in result.stderr


def test_a_floor_for_an_error_is_refused(logs: list[str]) -> None:
    """It would pass the worse model and fail the better one."""
    path = logs[0].partition("=")[2]
    result = run("evaluate", path, "-m", "log_loss", "--fail-under", "log_loss=0.5")
    assert result.exit_code == 2 and "--fail-under log_loss: lower is better" in result.stderr
    result = run("evaluate", path, "-m", "calibration", "--fail-under", "calibration=0.5")
    assert result.exit_code == 2 and "--fail-under calibration: nearer to 1 is better" in result.stderr
    saved = f"{path}.fastrec"
    assert run("evaluate", path, "-m", "log_loss,calibration", "--save", saved).exit_code == 0
    result = run("report", saved, "--fail-under", "log_loss=0.5")
    assert result.exit_code == 2 and "--fail-under log_loss: lower is better" in result.stderr
    assert run("report", saved, "--fail-under", "calibration=0.5").exit_code == 2


def test_the_list_of_metrics_shows_directions() -> None:
    assert "nearer to 1 is better" in run("metrics", "calibration").stdout
    assert "lower is better" in run("metrics", "log_loss").stdout
    everything = run("metrics").stdout
    assert everything.count("lower is better") == len(LOWER) + 1  # fallout of lists and of rows
    assert everything.count("nearer to 1 is better") == 1
    document = json.loads(run("metrics", "--format", "json").stdout)
    assert {metric["name"]: metric["target"] for metric in document if metric["direction"] == "target"} == TARGETS

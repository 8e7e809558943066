"""Intervals of reports: worked values, definitions in plain Python, notes, files, bits, and coverage by simulation."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrec
from fastrec.report.estimates import Estimate
from support.interval_oracle import mean_interval, one_value, student, wilson

pytestmark = pytest.mark.filterwarnings("ignore:no truth item is in its user's list")
METRIC = "brier(average=user)"  # from 0 to 1
NO_HITS = "few users with a hit: the interval may be too narrow"
FEW_VALUES = "few users differ: the interval may be too narrow"
DRAWS = 10_000
DRAW = np.random.default_rng(0)
SPREAD = DRAW.beta(0.5, 0.5, 100)


def report_of(values: Any, metric: str = METRIC, **options: Any) -> fastrec.Report:
    """Return a report on users with one row each, whose `brier` are these values."""
    n = len(values)
    return fastrec.evaluate_scores(np.zeros(n), np.sqrt(values), np.arange(n + 1), metric, **options)


def estimate_of(values: Any, **options: Any) -> Estimate:
    return report_of(values, **options).estimates[METRIC]


def hits_of(ones: int, n: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return lists and truth of users, of whom some have a hit."""
    return [[1]] * n, [[1]] * ones + [[2]] * (n - ones)


def test_worked_values() -> None:
    one = estimate_of([0.2, 0.5, 0.9])
    assert one.uncut_interval() == pytest.approx((-0.339067, 1.405734), abs=5e-7)
    assert one.interval() == (0, 1)
    for ones, ends in ((5, (0.565518, 1)), (4, (0.375535, 0.963776))):
        found = fastrec.evaluate(*hits_of(ones, 5), "hit_rate@1").interval("hit_rate@1")
        assert found == pytest.approx(ends, abs=5e-7)
    clopper_pearson = Estimate(1.0, 0.0, 5, kind="one value", range=(0, 1)).interval()
    assert clopper_pearson == pytest.approx((stats.beta.ppf(0.025, 5, 1), 1), abs=1e-12)
    assert clopper_pearson[0] == pytest.approx(0.478176, abs=5e-7)
    assert estimate_of([0.25] * 7).interval() == pytest.approx(one_value(0.25, 7, (0, 1)), abs=1e-12)


def test_shares_are_those_of_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for ones, n in ((0, 3), (1, 2), (4, 5), (30, 40), (40, 40)):
        found = fastrec.evaluate(*hits_of(ones, n), "hit_rate@1").interval("hit_rate@1", 0.9)
        assert found == pytest.approx(proportion.proportion_confint(ones, n, 0.1, "wilson"), abs=1e-12)
        assert wilson(ones, n, 0.9) == pytest.approx(found, abs=1e-12)
    lists, truth = (one + other for one, other in zip(hits_of(7, 9), hits_of(3, 8), strict=True))
    report = fastrec.evaluate(lists, truth, "hit_rate@1", groups=["x"] * 9 + ["y"] * 8)
    gap = report.groups["group"]["x"]["hit_rate@1"].difference()
    wanted = proportion.confint_proportions_2indep(7, 9, 3, 8, method="newcomb", compare="diff")
    assert gap == pytest.approx((7 / 9 - 3 / 8, *wanted), abs=1e-9)


def test_weights_have_the_degrees_of_kish() -> None:
    values, weights = [0.2, 0.5, 0.9, 0.4], [1.0, 2.0, 3.0, 4.0]
    one = estimate_of(values, user_weight=weights)
    assert (one.degrees, one.kind) == (pytest.approx(10**2 / 30 - 1), "student")
    assert one.interval(0.5) == pytest.approx(mean_interval(values, (0, 1), 0.5, weights), abs=1e-12)
    assert estimate_of([1, 1, 0, 1], user_weight=weights).kind == "student"
    log = ([0, 1, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.1, 0.5, 0.6], [0, 2, 4, 6])  # two users have pairs
    for metric, size in (("gauc", 9 / 5), ("auc", 64 / 30)):
        report = fastrec.evaluate_scores(*log, metric, user_weight=[1, 2, 5])
        assert report.estimates[metric].degrees == pytest.approx(size - 1)
    for same in (values, [1, 1, 0, 1], [0.5] * 4):
        assert repr(estimate_of(same, user_weight=[2.0] * 4)) == repr(estimate_of(same))
    far = estimate_of(values, user_weight=[1e6, 1, 1, 1])  # degrees near 0 count as 1
    assert far.uncut_interval() == pytest.approx(student(far.mean, far.std_error, 1), rel=1e-9)


@pytest.mark.parametrize(("n_positives", "note"), [(5, "fewer than 10 rows of a class: "), (10, "")])
def test_an_area_has_the_degrees_of_satterthwaite(n_positives: int, note: str) -> None:
    labels = [1] * n_positives + [0] * 500
    scores = np.random.default_rng(1).normal(labels).round(1).tolist()
    own, other = scores[:n_positives], scores[n_positives:]
    won = [[(a > b) + 0.5 * (a == b) for b in other] for a in own]
    a = np.var([sum(row) / 500 for row in won], ddof=1) / n_positives
    b = np.var([sum(column) / n_positives for column in zip(*won, strict=True)], ddof=1) / 500
    one = fastrec.evaluate_scores(labels, scores, metrics="auc").estimates["auc"]
    assert one.degrees == pytest.approx((a + b) ** 2 / (a**2 / (n_positives - 1) + b**2 / 499), rel=1e-9)
    assert one.interval() == pytest.approx(student(one.mean, math.sqrt(a + b), one.degrees, (0, 1)), rel=1e-9)
    assert one.note == (f"{note}the interval may be too narrow" if note else "")


@pytest.mark.parametrize("weight", [1, 0.1, 0.3, 3.3, 1e-3])
def test_rounding_is_neither_variance_nor_other_weights(weight: float) -> None:
    """Squares are rounded to 53 bits, so their sums leave an error of 1e-9 where all users are equal."""
    pointers, weights = np.arange(0, 21, 2), [weight] * 10
    metrics = ["mae", "log_loss", "normalized_entropy", "mse"]
    rows = fastrec.evaluate_scores([1, 0] * 10, [0.9, 0.1] * 10, pointers, metrics, user_weight=weights)
    means = ["f1(average=means)@3", "recall(average=pooled)@3", "map(mean=geometric)"]
    lists = fastrec.evaluate([[1, 2, 3]] * 10, [[1, 7, 8]] * 10, means, user_weight=weights)
    for one in (*rows.estimates.values(), *lists.estimates.values()):
        assert (one.std_error, one.note) == (0, "") and math.isnan(one.interval()[0])
    hits = fastrec.evaluate([[1]] * 5, [[1]] * 3 + [[2]] * 2, "hit_rate", user_weight=weights[:5])
    assert hits.interval("hit_rate") == pytest.approx((0.2307242813, 0.8823792257), abs=1e-9)


def test_notes_and_reasons() -> None:
    zeros = estimate_of([0.5] * 3 + [0] * 27)
    assert zeros.note == FEW_VALUES and estimate_of(1 - np.array([0.5] * 3 + [0] * 27)).note == FEW_VALUES
    assert fastrec.evaluate([[8, 5]] * 3 + [[8]] * 27, [[5]] * 30, "mrr").estimates["mrr"].note == NO_HITS
    assert [estimate_of(own).note for own in (SPREAD, [1] * 3 + [0] * 27, [0.5] * 30)] == ["", "", ""]
    equal = fastrec.evaluate([[1], [2]], [[1], [2]], "dcg@1")
    separate = fastrec.evaluate_scores([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4], metrics="auc")
    for report in (equal, separate):
        (name,) = report
        assert all(map(math.isnan, report.interval(name)))
        assert f"no interval for {name}: users or rows without variance" in repr(report)


def test_a_geometric_mean_has_the_interval_of_its_logarithm() -> None:
    name = "map(mean=geometric)"
    lists, truth = [[1, 2, 3, 4]] * 4, [[1], [2], [3], [2, 4]]
    logs = np.log(fastrec.evaluate(lists, truth, "map", per_user=True).per_user["map"])
    wanted = np.exp(student(logs.mean(), stats.sem(logs), 3))
    assert fastrec.evaluate(lists, truth, name).interval(name) == pytest.approx(np.minimum(wanted, 1), rel=1e-9)


def test_files_and_json_keep_intervals(tmp_path: Any) -> None:
    values = [0.1, 0.7, 1, 1, 0.5, 0.5]
    report = report_of(values, groups=["x", "x", "y", "y", "z", "z"])
    report.save(tmp_path / "report.fastrec")
    loaded = fastrec.load(tmp_path / "report.fastrec")
    assert repr((loaded.estimates, loaded.groups)) == repr((report.estimates, report.groups))
    by_label = report.groups["group"]
    assert [one[METRIC].kind for one in by_label.values()] == ["student", "wilson", "one value"]
    document = json.loads(loaded.to_json())
    for found, one in (
        (document["metrics"], report.estimates),
        *zip(document["groups"]["group"].values(), by_label.values(), strict=True),
    ):
        own = one[METRIC]
        assert (found[METRIC]["low"], found[METRIC]["high"]) == own.interval()
        assert [found[METRIC][name] for name in ("degrees", "kind", "range", "note")] == [
            own.degrees,
            own.kind,
            [0, 1],
            own.note,
        ]


def test_batches_merging_bytes_and_threads_change_no_bit() -> None:
    labels, weights = np.arange(100) % 3, np.arange(100) % 7 / 2
    wanted = report_of(SPREAD, groups=labels, user_weight=weights)
    evaluators = [fastrec.ScoreEvaluator(METRIC) for _ in range(3)]
    for part, evaluator in zip(np.array_split(DRAW.permutation(100), 3), evaluators, strict=True):
        given = {"groups": labels[part], "user_weight": weights[part]}
        evaluator.update(np.zeros(len(part)), np.sqrt(SPREAD[part]), np.arange(len(part) + 1), **given)
    one, *others = (fastrec.ScoreEvaluator.from_bytes(own.to_bytes()) for own in evaluators)
    merged = others[1].merge(one).merge(others[0]).result()
    for report in (merged, report_of(SPREAD, groups=labels, user_weight=weights, n_threads=2)):
        assert repr((report.estimates, report.groups)) == repr((wanted.estimates, wanted.groups))


# Coverage: each group of users is one draw


def coverage(report: fastrec.Report, truth: float | None = None) -> float:
    """Return the share of groups whose interval has the true value, by default that of all users together."""
    (name,) = report
    ends = np.array([own[name].interval() for own in report.groups["group"].values()])
    wanted = report[name] if truth is None else truth
    assert len(ends) == DRAWS and not np.isnan(ends).any()
    return float(((ends[:, 0] <= wanted) & (wanted <= ends[:, 1])).mean())


def of_draws(n: int) -> Any:
    return np.repeat(np.arange(DRAWS), n)


@pytest.mark.thorough
@pytest.mark.parametrize("n", [5, 10, 30])
@pytest.mark.parametrize("values", ["normal", "uniform"])
def test_means_are_covered(n: int, values: str) -> None:
    draw, size = np.random.default_rng(n), DRAWS * n
    if values == "uniform":
        assert coverage(report_of(draw.random(size), groups=of_draws(n)), 0.5) >= 0.93
    else:
        rows = (np.zeros(size), draw.normal(10, 1, size), np.arange(size + 1), "mae(average=user)")
        assert coverage(fastrec.evaluate_scores(*rows, groups=of_draws(n)), 10) >= 0.93


@pytest.mark.parametrize(("n", "p", "least"), [(5, 0.5, 0.93), (20, 0.9, 0.93), (5, 0.9, 0.9185), (10, 0.9, 0.9298)])
def test_shares_are_covered(n: int, p: float, least: float) -> None:
    """The exact coverage, as there are n + 1 cases."""
    chance = 0.0
    for ones in range(n + 1):
        low, high = fastrec.evaluate(*hits_of(ones, n), "hit_rate@1").interval("hit_rate@1")
        chance += stats.binom.pmf(ones, n, p) * (low <= p <= high)
    assert chance >= least - 5e-5


def draw_lists(n: int) -> Any:
    """Draw lists of ten items of users of different skill, and their relevant items."""
    draw, size = np.random.default_rng(n), DRAWS * n
    hits = draw.random((size, 10)) < draw.beta(1, 3, (size, 1))
    held = np.hstack([hits, np.arange(5) < draw.integers(1, 6, (size, 1))])  # up to five are never listed
    items = np.broadcast_to(np.arange(15), held.shape)
    return np.broadcast_to(np.arange(10), hits.shape).copy(), (items[held], np.append(0, held.sum(1).cumsum()))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("metric", "n"), [("recall(average=pooled)@10", 60), ("f1(average=pooled)@10", 60), ("map(mean=geometric)", 20)]
)
def test_metrics_of_lists_are_covered(metric: str, n: int) -> None:
    assert coverage(fastrec.evaluate(*draw_lists(n), metric, groups=of_draws(n))) >= 0.93


@pytest.mark.thorough
def test_few_hits_are_covered() -> None:
    """Of 100 users, 30 % have a hit, at any rank."""
    draw, size = np.random.default_rng(0), DRAWS * 100
    item = np.where(draw.random(size) < 0.3, draw.integers(0, 10, size), 99)
    lists = np.broadcast_to(np.arange(10), (size, 10)).copy()
    assert coverage(fastrec.evaluate(lists, item[:, None], "ndcg@10", groups=of_draws(100))) >= 0.93


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("metric", "n", "least"), [("auc", 60, 0.93), ("gauc", 60, 0.93), ("average_precision", 20, 0.92)]
)
def test_metrics_of_rows_are_covered(metric: str, n: int, least: float) -> None:
    """Users differ in their share of positive rows and in their scores."""
    draw, size = np.random.default_rng(n), DRAWS * n
    skill, shift = draw.beta(2, 3, (size, 1)), draw.normal(0, 0.5, (size, 1))
    labels = draw.random((size, 8)) < skill
    scores = draw.normal(labels + shift + skill)
    indptr = np.arange(0, 8 * size + 1, 8)
    assert (
        coverage(fastrec.evaluate_scores(labels.ravel(), scores.ravel(), indptr, metric, groups=of_draws(n))) >= least
    )

"""Comparisons: rows against plain Python, tests against SciPy and statsmodels, laws, simulations, bad input."""

import contextlib
import gc
import itertools
import json
import math
import random
import statistics
import weakref

import numpy as np
import pytest

import fastrec
from fastrec.report.significance import TESTS, correct, pair_differences, run_test

stats = pytest.importorskip("scipy.stats")
ROUNDS = 2_000


def reports_of(n_users=60, seed=0, names=("a", "b", "c"), **options):
    """Return reports of systems of rising quality on the same users, all with ids."""
    chance = random.Random(seed)
    truth = {f"u{user}": [chance.randrange(20)] for user in range(n_users)}
    found = {}
    for nth, name in enumerate(names):
        recs = {}
        for user, (held,) in truth.items():
            shown = chance.sample(range(20), 8)
            recs[user] = [held, *(item for item in shown if item != held)] if chance.random() < nth / 4 else shown
        found[name] = fastrec.evaluate(recs, truth, ["ndcg@5", "mrr"], per_user=True, **options)
    return found


def plain(x, y):
    """Return the expected row for two lists of values, in plain Python."""
    d = [a - b for a, b in zip(x, y, strict=True)]
    return {
        "mean": statistics.fmean(x),
        "baseline_mean": statistics.fmean(y),
        "difference": statistics.fmean(d),
        "wins": sum(a > 0 for a in d),
        "ties": sum(a == 0 for a in d),
        "losses": sum(a < 0 for a in d),
        "users": len(d),
    }


def test_rows_against_plain_python():
    reports = reports_of()
    comparison = fastrec.compare(reports, n_rounds=ROUNDS)
    assert [(row.metric, row.system, row.baseline) for row in comparison.rows] == [
        (metric, *pair) for metric in ("ndcg@5", "mrr") for pair in (("b", "a"), ("c", "a"), ("c", "b"))
    ]
    for row in comparison.rows:
        values = [reports[name].per_user[row.metric].tolist() for name in (row.system, row.baseline)]
        for name, wanted in plain(*values).items():
            assert getattr(row, name) == pytest.approx(wanted, abs=1e-12), name
        d = [a - b for a, b in zip(*values, strict=True)]
        error, student = statistics.stdev(d) / math.sqrt(len(d)), stats.t(len(d) - 1)
        margin = student.ppf(0.975) * error
        assert (row.low, row.high) == pytest.approx((row.difference - margin, row.difference + margin), abs=1e-12)
        step = 0.05 / (6 - sorted(row.p_value for row in comparison.rows).index(row.p_value))  # of Holm
        alike = [one for one in comparison.rows if one.p_value == row.p_value]
        step = 0.05 / (0.05 / step - alike.index(row))
        wanted = (student.ppf(1 - step / 2) + student.ppf(0.8)) * error
        assert (row.std_error, row.detectable) == pytest.approx((error, wanted), abs=1e-12)


def test_a_baseline_and_chosen_metrics():
    comparison = fastrec.compare(reports_of(), "b", "mrr", n_rounds=ROUNDS)
    assert [(row.metric, row.system, row.baseline) for row in comparison.rows] == [("mrr", "a", "b"), ("mrr", "c", "b")]
    assert comparison.rows[0].difference < 0 < comparison.rows[1].difference


@pytest.mark.parametrize("n", [2, 7, 40, 300])
def test_t_and_wilcoxon_are_those_of_scipy(n):
    d = np.random.default_rng(n).normal(0.2, 1, n)
    options = {"level": 0.9, "n_rounds": 10, "seed": 0, "n_threads": 1}
    student = stats.ttest_1samp(d, 0)
    interval = student.confidence_interval(0.9)
    found = run_test(d, "t", **options)
    assert found == pytest.approx((interval.low, interval.high, student.pvalue, stats.sem(d), 0), rel=1e-10)
    assert run_test(d, "wilcoxon", **options).p_value == pytest.approx(stats.wilcoxon(d).pvalue, rel=1e-10)


@pytest.mark.parametrize("n", [2, 5, 9, 12])
def test_all_signs_are_tried_if_they_are_few(n):
    d = np.random.default_rng(n).normal(0.5, 1, n)
    found = run_test(d, "randomization", level=0.95, n_rounds=2**n, seed=0, n_threads=1).p_value
    wanted = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=2**n).pvalue
    assert found == pytest.approx(wanted, rel=1e-10)
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in itertools.product((1, -1), repeat=n)]
    assert found == pytest.approx(sum(abs(s) >= abs(d.sum()) - 1e-12 for s in sums) / 2**n, rel=1e-10)


def expansion(n, level):
    """Return the normal quantile of the percentiles of the expanded bootstrap (Hesterberg 2015)."""
    return math.sqrt(n / (n - 1)) * stats.t(n - 1).ppf((1 + level) / 2)


@pytest.mark.thorough(except_for="^bootstrap")
@pytest.mark.parametrize("n", [40, 5000])
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar power")  # in SciPy 1.15
@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_resampling_comes_near_to_scipy(test, n):
    d = np.random.default_rng(n).gamma(0.5, size=n) - 0.5 + 0.7 / math.sqrt(n)
    found = run_test(d, test, level=0.95, n_rounds=20_000, seed=1, n_threads=1)
    if test == "randomization":
        other = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=2)
        assert found.p_value == pytest.approx(other.pvalue, abs=5 * math.sqrt(0.25 / 20_000))
    else:
        level = 1 - 2 * stats.norm.cdf(-expansion(n, 0.95))
        other = stats.bootstrap((d,), np.mean, confidence_level=level, n_resamples=20_000, method="percentile", rng=2)
        spread = d.std() / math.sqrt(n)
        assert found.low == pytest.approx(other.confidence_interval.low, abs=0.1 * spread)
        assert found.high == pytest.approx(other.confidence_interval.high, abs=0.1 * spread)


@pytest.mark.parametrize("n", [30, 100, 4095, 4096, 4097, 9000])
def test_draws_have_the_moments_they_should(n):
    """The mean of drawn sums is n times the mean, their variance n times the variance: every block, and the last.

    Percentiles of the normal quantile 1 are those of Student's quantile, expanded.
    """
    d = np.random.default_rng(n).normal(size=n)
    found = run_test(d, "bootstrap", level=0.6827, n_rounds=20_000, seed=3, n_threads=1)
    error = d.std() / math.sqrt(n)
    assert (found.low + found.high) / 2 == pytest.approx(d.mean(), abs=0.05 * error)
    assert (found.high - found.low) / 2 == pytest.approx(error * expansion(n, 0.6827), rel=0.04)


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
@pytest.mark.parametrize("n", [50, 5000])
def test_the_same_bits_for_any_threads_and_a_seed_of_its_own(test, n):
    d = np.random.default_rng(0).normal(0.01, 1, n)
    options = {"level": 0.95, "n_rounds": 3_001}
    one = run_test(d, test, seed=7, n_threads=1, **options)
    assert all(run_test(d, test, seed=7, n_threads=threads, **options) == one for threads in (2, 3, 8))
    assert run_test(d, test, seed=8, n_threads=1, **options) != one


@pytest.mark.parametrize("test", TESTS)
def test_users_in_any_order(test):
    reports = reports_of(names=("a", "b"))
    wanted = fastrec.compare(reports, test=test, n_rounds=ROUNDS)
    chance = random.Random(1)
    truth = {f"u{user}": [1] for user in range(60)}
    order = list(truth)
    chance.shuffle(order)
    position = {user: at for at, user in enumerate(reports["b"].user_ids.tolist())}
    shuffled = fastrec.report.report.Report(
        estimates=reports["b"].estimates,
        users=reports["b"].users,
        data=reports["b"].data,
        settings=reports["b"].settings,
        groups={},
        per_user={
            metric: values[[position[user] for user in order]] for metric, values in reports["b"].per_user.items()
        },
        user_ids=np.array(order),
        fastrec_version=reports["b"].fastrec_version,
    )
    found = fastrec.compare({"a": reports["a"], "b": shuffled}, test=test, n_rounds=ROUNDS)
    assert found.to_dict() == wanted.to_dict()


@pytest.mark.parametrize("test", TESTS)
def test_equal_systems_and_single_users(test):
    reports = reports_of(names=("a",))
    row = fastrec.compare({"a": reports["a"], "b": reports["a"]}, test=test).rows[0]
    q = 1 - 0.025 ** (1 / 60)  # 60 users without a difference, each of which can be from -1 to 1
    assert (row.low, row.high) == pytest.approx((-q, q), rel=1e-12)
    assert (row.difference, row.p_value, row.ties, row.note) == (0, 1, 60, "no user differs")
    alone = fastrec.evaluate([[1]], [[1]], "mrr", per_user=True)
    row = fastrec.compare({"a": alone, "b": alone}, test=test).rows[0]
    assert row.users == 1 and math.isnan(row.p_value) and math.isnan(row.p_corrected)


@pytest.mark.thorough(except_for="holm")
@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh"])
def test_corrections_are_those_of_statsmodels(correction):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    chance = np.random.default_rng(0)
    for n in (1, 2, 7, 50):
        p_values = chance.random(n) ** 3
        p_values[-1] = p_values[0]  # equal ones
        method = {"bh": "fdr_bh"}.get(correction, correction)
        wanted = multitest.multipletests(p_values, method=method)[1]
        assert correct(p_values.tolist(), correction) == pytest.approx(wanted.tolist(), abs=1e-10)
        with_hole = correct([math.nan, *p_values.tolist()], correction)
        assert math.isnan(with_hole[0]) and with_hole[1:] == pytest.approx(wanted.tolist(), abs=1e-10)
    assert correct([0.2, 0.01], "none") == [0.2, 0.01]


def test_less_is_better_for_errors():
    targets, n = np.arange(40) % 5, 40
    indptr = np.arange(0, n + 1, 2)
    near, far = (
        fastrec.evaluate_scores(targets, targets + shift, indptr, "mae(average=user)", per_user=True)
        for shift in (0.1, 0.5)
    )
    row = fastrec.compare({"far": far, "near": near}, n_rounds=ROUNDS).rows[0]
    assert row.difference < 0 and (row.wins, row.losses) == (20, 0)


def test_users_missing_on_one_side():
    truth = {user: [1] for user in range(6)}
    full = fastrec.evaluate({user: [1] for user in range(6)}, truth, "mrr", per_user=True, no_recs="skip")
    half = fastrec.evaluate({user: [2, 1] for user in range(3)}, truth, "mrr", per_user=True, no_recs="skip")
    reports = {"full": full, "half": half}
    dropped = fastrec.compare(reports, "full").rows[0]
    assert (dropped.users, dropped.unpaired, dropped.mean, dropped.baseline_mean) == (3, 3, 0.5, 1.0)
    zero = fastrec.compare(reports, "full", missing="zero").rows[0]
    assert (zero.users, zero.unpaired, zero.mean, zero.baseline_mean) == (6, 3, 0.25, 1.0)
    assert "up to 3 users counted on one side only (missing=drop)" in repr(fastrec.compare(reports))
    with pytest.raises(fastrec.InputError, match="only one of half and full counts 3 users"):
        fastrec.compare(reports, "full", missing="error")


@pytest.mark.filterwarnings("ignore:the truth of one and fewer differ")
def test_reports_on_different_users_are_paired_by_id():
    one = reports_of(names=("a",))["a"]
    fewer = fastrec.evaluate(
        {f"u{n}": [1] for n in range(30, 90)}, {f"u{n}": [1] for n in range(30, 90)}, ["mrr"], per_user=True
    )
    row = fastrec.compare({"one": one, "fewer": fewer}).rows[0]
    values = dict(zip(one.user_ids.tolist(), one.per_user["mrr"].tolist(), strict=True))
    assert row.users == 30 and row.unpaired == 60
    assert row.baseline_mean == pytest.approx(statistics.fmean(values[f"u{n}"] for n in range(30, 60)), abs=1e-12)


@pytest.mark.parametrize("labels", [lambda n: n % 3, lambda n: f"g{n % 3}"])
def test_segments(labels):
    n = 90
    truth = [[1]] * n
    chance = random.Random(0)
    groups = {"kind": [labels(at) for at in range(n)]}
    reports = {
        name: fastrec.evaluate(
            [chance.sample(range(5), 4) for _ in range(n)], truth, ["mrr", "ndcg@2"], per_user=True, groups=groups
        )
        for name in ("a", "b")
    }
    comparison = fastrec.compare(reports, n_rounds=ROUNDS)
    assert list(comparison.segments) == ["kind"] and len(comparison.segments["kind"]) == 6
    for row in comparison.segments["kind"]:
        mine = [at for at in range(n) if groups["kind"][at] == row.group]
        values = [reports[name].per_user[row.metric][mine].tolist() for name in ("b", "a")]
        for name, wanted in plain(*values).items():
            assert getattr(row, name) == pytest.approx(wanted, abs=1e-12), name
    p_values = [row.p_value for row in comparison.segments["kind"]]
    assert [row.p_corrected for row in comparison.segments["kind"]] == correct(p_values, "holm")
    where = "p-values are corrected within each, in .segments and .to_frame()"
    assert f"segments: kind; {where}" in repr(comparison) and where not in comparison.to_markdown()
    assert set(comparison.to_rows()[0]) == set(comparison.rows[0]._fields)


def test_lines_have_80_columns():
    reports = reports_of(names=("popularity", "neighbours"))
    text = repr(fastrec.compare(reports, "popularity", n_rounds=ROUNDS))
    assert max(map(len, text.splitlines())) <= 80
    assert [text.count(name) for name in ("interval  ", "corrected p\n", "wins  ties  losses")] == [1, 1, 1]


def test_forms_of_a_comparison():
    comparison = fastrec.compare(reports_of(), "a", n_rounds=ROUNDS)
    document = json.loads(comparison.to_json())
    assert document["schema"] == 1 and document["settings"]["baseline"] == "a"
    assert document["rows"][0]["p_value"] == comparison.rows[0].p_value
    assert "grouping" not in comparison.to_rows()[0]
    pytest.importorskip("polars")
    frame = comparison.to_frame("polars")
    assert frame["metric"].to_list() == ["ndcg@5", "ndcg@5", "mrr", "mrr"]
    page = comparison._repr_html_()
    assert page.count("<tr>") == 10 and "&lt;" not in page
    assert any(comparison.is_significant(row) for row in comparison.rows)


@pytest.mark.parametrize(
    ("n", "n_rounds", "words"),
    [
        (13, 10_000, "at most 10,000 rounds"),  # 2^13 signs
        (14, 10_000, "10,000 rounds"),
        (9, 512, "at most 512 rounds"),
        (9, 511, "511 rounds"),
        (17, 200_000, "200,000 rounds"),  # more signs than are ever tried
    ],
)
def test_rounds_are_the_most_where_all_signs_are_tried(n, n_rounds, words):
    """Two more users are ties, which have no sign."""
    users = range(n + 2)
    reports = {
        name: fastrec.evaluate(
            [[at] if at < 2 else [*above, at] for at in users], [[at] for at in users], "mrr", per_user=True
        )
        for name, above in (("a", []), ("b", [999]))
    }
    found = fastrec.compare(reports, n_rounds=n_rounds)
    assert f"test=randomization, {words}, seed 0" in repr(found)
    assert f"paired randomization test, {words}, p ≤ 0.05" in found.to_markdown(form="paper")
    is_exact = found.rows[0].p_value == 2.0 ** (1 - n)
    assert is_exact == words.startswith("at most")
    assert f"test=bootstrap, {n_rounds:,} rounds" in repr(fastrec.compare(reports, test="bootstrap", n_rounds=n_rounds))


def test_progress_counts_rows():
    seen = []
    fastrec.compare(reports_of(), n_rounds=10, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(n, 6) for n in range(1, 7)]


def without_values():
    return fastrec.evaluate([[1]], [[1]], "mrr")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"reports": [1, 2]}, fastrec.InputTypeError, "reports must be a dict"),
        (
            {"reports": without_values()},
            fastrec.InputTypeError,
            "reports must be a dict {name: report}, found a Report",
        ),
        ({"reports": {"a": 1, "b": 2}}, fastrec.InputTypeError, r"reports\['a'\] must be a Report, found int"),
        ({"drop": ("b", "c")}, fastrec.InputError, "two reports or more, found 1"),
        ({"add": without_values}, fastrec.InputError, "the report of x has no values per user"),
        ({"baseline": "z"}, fastrec.InputError, "baseline='z' is not one of the reports a, b, c"),
        ({"metrics": "recall@5"}, fastrec.MetricError, "recall@5"),
        ({"test": "chi"}, fastrec.InputError, "test must be one of randomization, bootstrap, t, wilcoxon; found 'chi'"),
        ({"correction": "sidak"}, fastrec.InputError, "correction must be one of"),
        ({"missing": "keep"}, fastrec.InputError, "missing must be one of drop, zero, error"),
        ({"metrics": []}, fastrec.InputError, "metrics must name at least one metric"),
        ({"metrics": 3}, fastrec.InputError, "metrics must name at least one metric, such as 'ndcg@10', found 3"),
        ({"metrics": {"mrr"}}, fastrec.InputTypeError, "metrics must be a list, found a set"),
        ({"progress": 3}, fastrec.InputTypeError, "progress must be callable as"),
        ({"baseline": ["a"]}, fastrec.InputError, "is not one of the reports"),
        ({"level": 1.0}, fastrec.InputError, "level must lie between 0 and 1"),
        ({"n_rounds": 0}, fastrec.InputError, "n_rounds must be an integer from 1 to 10000000, found 0"),
        ({"seed": -1}, fastrec.InputError, "seed must be an integer from 0"),
        ({"seed": 1.5}, fastrec.InputError, "found 1.5"),
    ],
)
def test_bad_input(change, error, match):
    reports = reports_of(10)
    for name in change.pop("drop", ()):
        del reports[name]
    if add := change.pop("add", None):
        reports["x"] = add()
    with pytest.raises(error, match=match):
        fastrec.compare(change.pop("reports", reports), **change)


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")
def test_reports_that_cannot_be_compared():
    one = reports_of(10, names=("a",))["a"]
    other = fastrec.evaluate({1: [1]}, {1: [1]}, "mrr", per_user=True)
    with pytest.raises(fastrec.InputError, match="paired by id, but ids are strings in one, integers in other"):
        fastrec.compare({"one": one, "other": other})
    with pytest.raises(fastrec.InputError, match="the report of plain has no user_ids"):
        fastrec.compare({"one": one, "plain": fastrec.evaluate([[1]], [[1]], "mrr", per_user=True)})
    skipping = reports_of(10, names=("a",), no_recs="skip")["a"]
    with pytest.raises(fastrec.InputError, match="no_recs is 'zero' in one and 'skip' in other"):
        fastrec.compare({"one": one, "other": skipping})
    far = fastrec.evaluate({"x": [1]}, {"x": [1]}, "mrr", per_user=True)
    with pytest.raises(fastrec.InputError, match="no user is in all reports: do the ids match"):
        fastrec.compare({"one": one, "far": far})
    two = fastrec.evaluate([[1]] * 2, [[1]] * 2, "mrr", per_user=True)
    three = fastrec.evaluate([[1]] * 3, [[1]] * 3, "mrr", per_user=True)
    with pytest.raises(fastrec.InputError, match="the same users, found 2 in two, 3 in three"):
        fastrec.compare({"two": two, "three": three})


def test_numbers_that_are_no_means_of_users_are_left_out():
    lists, truth = [[1, 2], [3], [5]], [[1], [3, 4, 5], [6, 5]]
    reports = {
        name: fastrec.evaluate(lists[::step], truth, ["mrr", "recall(average=pooled)@2"], per_user=True)
        for name, step in (("a", 1), ("b", -1))
    }
    comparison = fastrec.compare(reports)
    assert list(comparison.left_out) == ["recall(average=pooled)@2"] and len(comparison.rows) == 1
    assert "not a plain mean" in repr(comparison)
    assert comparison.left_out["recall(average=pooled)@2"].endswith("; recall@2, another metric, can be compared")
    rows = {"labels": [1, 0, 1, 1, 0], "scores": [0.9, 0.8, 0.3, 0.2, 0.1], "indptr": [0, 3, 5]}
    log = fastrec.evaluate_scores(**rows, metrics=["log_loss", "ece", "gauc"], per_user=True)
    compared = fastrec.compare({"a": log, "b": log})
    assert [row.metric for row in compared.rows] == ["log_loss", "gauc"]
    why = "is a number of all rows together without a known standard error, which compare needs; "
    assert compared.left_out["ece"] == f"{why}ece(average=user), another metric, can be compared"
    with pytest.raises(fastrec.InputError, match="is not a plain mean of users' values"):
        fastrec.compare(reports, metrics="recall(average=pooled)@2")


def labelled(users, label, n_users=4, **options):
    """Return the report of a system with lists of some users alone, whose labels are in these lists."""
    pandas = pytest.importorskip("pandas")
    truth = pandas.DataFrame({"user_id": range(n_users), "item_id": range(n_users)})
    rows = [(user, item, item + 1, label(user)) for user in users for item in range(n_users)]
    recs = pandas.DataFrame(rows, columns=["user_id", "item_id", "rank", "plan"])
    return fastrec.evaluate(recs, truth, "mrr", by="plan", per_user=True, **options)


@pytest.mark.parametrize(
    ("label", "wanted"), [(lambda user: 9 + user % 2, [9, 10]), (lambda user: "ab"[user % 2], ["a", "b"])]
)
def test_a_user_without_a_label_in_one_report_has_that_of_another(label, wanted):
    """User 3 has no list in b, so its label, a column of the lists, is in a alone."""
    whole, part = labelled(range(4), label), labelled(range(3), label)
    assert part.labels["plan"].tolist()[-1] == "(none)"
    same = fastrec.compare({"a": whole, "b": whole})
    for reports in ({"a": whole, "b": part}, {"b": part, "a": whole}, {"a": whole, "b": part, "c": part}):
        rows = fastrec.compare(reports).segments["plan"]
        assert list(dict.fromkeys(row.group for row in rows)) == wanted
        assert [row.users for row in rows if "a" in (row.system, row.baseline)][:2] == [2, 2]
        assert [row.group for row in same.segments["plan"]] == wanted
    last = fastrec.compare({"a": whole, "b": part}).segments["plan"][-1]
    assert (last.baseline_mean, last.mean) == (whole.groups["plan"][wanted[1]]["mrr"].mean, 0.25)


def test_users_without_a_label_in_all_reports_are_a_group():
    reports = {"a": labelled([0, 1, 2], lambda user: 9 + user % 2), "b": labelled([0, 2], lambda user: 9 + user % 2)}
    rows = fastrec.compare(reports).segments["plan"]
    assert [(row.group, row.users) for row in rows] == [("(none)", 1), ("10", 1), ("9", 2)]


def test_labels_that_are_no_integers_do_not_match_integers():
    reports = {"a": labelled(range(4), lambda user: user), "b": labelled(range(3), lambda user: f"0{user}")}
    with pytest.raises(fastrec.InputError, match=r"labels of groups\['plan'\] must be all integers or all strings"):
        fastrec.compare(reports)


def test_numbers_of_all_rows_are_not_compared_in_groups_of_other_users():
    """Rows of user 3 have no label in the log of b, so no group of b counts them."""
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame({"user_id": [0, 0, 1, 1, 2, 2, 3, 3], "label": [1, 0] * 4})
    log["plan"] = ["x"] * 4 + ["y"] * 4
    scores = {"a": [0.9, 0.1, 0.3, 0.6, 0.8, 0.2, 0.7, 0.4], "b": [0.5, 0.1, 0.8, 0.6, 0.3, 0.2, 0.1, 0.4]}
    metrics = ["auc", "calibration", "mrr"]
    reports = {
        name: fastrec.evaluate_scores(
            log.assign(score=own, plan=log["plan"].where((log["user_id"] < 3) | (name == "a"))),
            metrics=metrics,
            by="plan",
            per_user=True,
        )
        for name, own in scores.items()
    }
    found = fastrec.compare(reports, n_rounds=ROUNDS)
    assert [(row.metric, row.group, row.users) for row in found.segments["plan"]] == [("mrr", "x", 2), ("mrr", "y", 2)]
    assert list(found.left_out) == ["auc within groups", "calibration within groups"]
    assert "groups of the reports hold other users" in found.left_out["auc within groups"]
    same = fastrec.compare({"a": reports["a"], "b": reports["a"]}, n_rounds=ROUNDS)
    assert {row.metric for row in same.segments["plan"]} == set(metrics) and not same.left_out


def test_labels_must_agree():
    reports = {
        name: fastrec.evaluate([[1], [2]], [[1], [2]], "mrr", per_user=True, groups={"g": labels})
        for name, labels in (("a", [1, 2]), ("b", [2, 2]))
    }
    with pytest.raises(fastrec.InputError, match="user 0 is in group 2 of g in b, but in 1 in another report"):
        fastrec.compare(reports)


@pytest.mark.thorough
@pytest.mark.parametrize("test", TESTS)
def test_false_positives_of_equal_systems(test):
    """Of 2,000 pairs of systems with skewed differences of mean 0, the test calls about 5 % different at 5 %."""
    chance = np.random.default_rng(11)
    hits = 0
    for seed in range(2_000):
        d = chance.gamma(0.7, size=120) - chance.gamma(0.7, size=120)
        hits += run_test(d, test, level=0.95, n_rounds=999, seed=seed, n_threads=1).p_value <= 0.05
    assert 0.035 <= hits / 2_000 <= 0.065


@pytest.mark.thorough
@pytest.mark.parametrize("test", TESTS)
def test_intervals_cover_a_skewed_mean(test):
    """Values like reciprocal ranks: about 95 % of 2,000 samples have the true mean in their interval."""
    chance = np.random.default_rng(12)
    ranks = np.arange(1, 11)
    share = 1 / ranks / (1 / ranks).sum()
    true_mean = float((share / ranks).sum()) - 0.3
    covered = 0
    for seed in range(2_000):
        d = 1 / chance.choice(ranks, p=share, size=300) - 0.3
        found = run_test(d, test, level=0.95, n_rounds=999, seed=seed, n_threads=1)
        covered += found.low <= true_mean <= found.high
    assert 0.935 <= covered / 2_000 <= 0.965


@pytest.mark.thorough
def test_family_wise_errors_with_holm():
    """Ten equal systems, one of them the baseline: at most 6 % of 1,000 tables have any false finding."""
    chance = np.random.default_rng(13)
    wrong = 0
    for seed in range(1_000):
        values = chance.gamma(0.7, size=(10, 100))
        p_values = [
            run_test(other - values[0], "randomization", level=0.95, n_rounds=999, seed=seed, n_threads=1).p_value
            for other in values[1:]
        ]
        wrong += min(correct(p_values, "holm")) <= 0.05
    assert wrong / 1_000 <= 0.06


def test_intervals_of_a_report():
    report = reports_of(200, names=("a",))["a"]
    values = report.per_user["mrr"]
    low, high = report.interval("mrr", 0.9, "bootstrap", n_rounds=20_000, seed=2)
    other = stats.bootstrap((values,), np.mean, confidence_level=0.9, n_resamples=20_000, method="percentile", rng=1)
    spread = values.std() / math.sqrt(200)
    assert low == pytest.approx(other.confidence_interval.low, abs=0.1 * spread)
    assert high == pytest.approx(other.confidence_interval.high, abs=0.1 * spread)
    assert report.interval("mrr", 0.9, "bootstrap", seed=3) != report.interval("mrr", 0.9, "bootstrap", seed=4)
    assert report.interval("mrr", 0.9) == report.estimates["mrr"].interval(0.9)
    for k in (1, 2):  # no user has a hit, or all have it at rank 2
        equal = fastrec.evaluate([[7, 1], [7, 2]], [[1], [2]], f"mrr@{k}", per_user=True)
        (name,) = equal
        assert equal.interval(name, method="bootstrap") == (equal[name], equal[name])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("mrr", 0.95, "exact"), "method must be one of standard, bootstrap; found 'exact'"),
        (("mrr", 1.5, "bootstrap"), "level must lie between 0 and 1"),
        (("recall(average=pooled)@2", 0.95, "bootstrap"), "is not a plain mean of users' values"),
    ],
)
def test_intervals_that_cannot_be(arguments, match):
    lists, truth = [[1, 2], [3], [5]], [[1], [3, 4, 5], [6, 5]]
    report = fastrec.evaluate(lists, truth, ["mrr", "recall(average=pooled)@2"], per_user=True)
    with pytest.raises(fastrec.InputError, match=match):
        report.interval(*arguments)
    with pytest.raises(fastrec.InputError, match="per-user values were not kept"):
        fastrec.evaluate(lists, truth, "mrr").interval("mrr", 0.95, "bootstrap")


@pytest.mark.filterwarnings("ignore:the truth of a and b")
def test_what_is_shown_of_extreme_values_and_names():
    huge, tiny = (
        {
            name: fastrec.evaluate(([1, 2], [0, 1, 2]), ([1, 2], [0, 1, 2], gains), "dcg@1", per_user=True)
            for name, gains in (("a\n", first), ("b\x1b[31m", second))
        }
        for first, second in (([1e300, 1e290], [1e299, 1e300]), ([1e-300, 1e-310], [1e-300, 1e-300]))
    )
    for reports in (huge, tiny):
        text = repr(fastrec.compare(reports))
        assert len(text.splitlines()) == 9 and max(map(len, text.splitlines())) < 200 and "\x1b" not in text
    assert "+" in repr(fastrec.compare(tiny)).splitlines()[1]
    with pytest.warns(fastrec.FastrecWarning, match="the truth has no rows"):
        nobody = fastrec.evaluate([[1]], [[]], "mrr", per_user=True)
    assert "nan" not in repr(fastrec.compare({"a": nobody, "b": nobody}))


@pytest.mark.thorough
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n", [8, 13, 100])
def test_what_is_equal_but_for_rounding_is_equal(test, n):
    """Tenths work as well as integers, though 1.0 - 0.9 is not 0.2 - 0.1 in floating point."""
    chance = np.random.default_rng(n)
    options = {"level": 0.95, "n_rounds": 2_000, "seed": 3, "n_threads": 1}
    for _ in range(3 if test == "wilcoxon" else 100):  # SciPy takes a second for small samples with ties
        a, b = chance.integers(0, 11, (2, n))
        whole = run_test((a - b).astype(float), test, **options, magnitude=10.0)
        tenths = run_test(a / 10 - b / 10, test, **options, magnitude=1.0)
        assert tenths.p_value == pytest.approx(whole.p_value, rel=1e-9)
    noise = np.where(np.arange(n) < 3, 1.0 / 3, 1 - 2.0 / 3)  # the same number, rounded in two ways
    differences, magnitude = pair_differences(noise, np.full(n, 1.0 / 3))
    found, q = run_test(differences, test, **options, magnitude=magnitude, width=1.0), 1 - 0.025 ** (1 / n)
    assert found[:4] == pytest.approx((-q, q, 1.0, 0.0), rel=1e-12)


def test_wins_are_no_rounding():
    one, other = (
        fastrec.evaluate_scores([0.0] * 20, [value] * 20, list(range(0, 21, 2)), "mae(average=user)", per_user=True)
        for value in (1.0 / 3, 1 - 2.0 / 3)
    )
    assert one.per_user["mae(average=user)"][0] != other.per_user["mae(average=user)"][0]
    row = fastrec.compare({"one": one, "other": other}).rows[0]
    assert (row.wins, row.ties, row.losses, row.difference, row.p_value) == (0, 10, 0, 0.0, 1.0)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("shared", [True, False])
def test_one_user_of_huge_values_hides_no_others(test, shared):
    """Return 200 users, better for most, and one that is hopeless in both systems, a little less so in one if not
    shared."""
    chance = np.random.default_rng(0)
    values = {"old": chance.gamma(2, 1, 200), "new": chance.gamma(2, 0.5, 200)}
    reports = {
        name: fastrec.evaluate_scores(
            [0.0] * 201,
            [*own, 1e14 if shared or name == "old" else 1.001e14],
            range(202),
            metrics="mae(average=user)",
            per_user=True,
        )
        for name, own in values.items()
    }
    row = fastrec.compare(reports, "old", test=test, n_rounds=ROUNDS).rows[0]
    better = int((values["new"] < values["old"]).sum())
    assert (row.wins, row.ties, row.losses) == (better, int(shared), 200 - better + (not shared))
    if shared or test == "wilcoxon":  # which uses ranks
        assert row.p_value < 0.01
        wanted = (values["new"] - values["old"]).sum() / 201
        assert row.low < wanted < row.high if shared else row.difference > 0


def test_small_numbers_are_not_taken_for_means():
    for scale in (1.0, 1e-5, 1e-150):
        labels, scores = np.array([1, 2, 3, 4, 5]) * scale, np.array([2, 2, 3, 4, 7]) * scale
        report = fastrec.evaluate_scores(labels, scores, user_ids=[1, 1, 1, 2, 2], metrics="mae", per_user=True)
        assert not report.is_mean("mae")


def test_nothing_is_kept_after_a_comparison():
    reports = {
        name: fastrec.evaluate([[1], [2]], [[1], [2]], "mrr", per_user=True, groups={"g": [1, 2]}) for name in "ab"
    }
    fastrec.compare(reports)
    seen = weakref.ref(reports["a"])
    del reports
    gc.collect()
    assert seen() is None


@pytest.mark.filterwarnings("ignore::fastrec.FastrecWarning")
def test_ids_of_two_kinds_of_integers():
    big = 2**60
    one = fastrec.evaluate(
        [[1], [1], [2]], [[1]] * 3, "mrr", per_user=True, user_ids=np.array([2**63 + 1, big, big + 1], np.uint64)
    )
    other = fastrec.evaluate([[1], [2]], [[1]] * 2, "mrr", per_user=True, user_ids=np.array([big, big + 1]))
    row = fastrec.compare({"one": one, "other": other}, "one").rows[0]
    assert (row.users, row.unpaired, row.difference) == (2, 1, 0.0)


@pytest.mark.filterwarnings("ignore:the truth differs")
@pytest.mark.parametrize("ids", [[1, 2, 2**80], ["a", "b", "c\0"]])
def test_ids_that_no_array_holds_on_one_side_alone(ids):
    """They are objects in the report that has them, and integers or strings in the other."""
    a, b = (
        fastrec.evaluate({user: [1] for user in own}, {user: [1] for user in own}, "mrr", per_user=True)
        for own in (ids, ids[:2])
    )
    assert [a.user_ids.dtype == object, b.user_ids.dtype == object] == [True, False]
    for reports in ({"a": a, "b": b}, {"b": b, "a": a}):
        (row,) = fastrec.compare(reports).rows
        assert (row.users, row.unpaired) == (2, 1)
    others = fastrec.evaluate({(1, 2): [1]}, {(1, 2): [1]}, "mrr", per_user=True)
    with pytest.raises(fastrec.InputError, match=r"ids are (integers|strings) in a, objects in b"):
        fastrec.compare({"a": a, "b": others})


@pytest.mark.filterwarnings("ignore:the labels of a and b differ")
def test_users_of_several_columns():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"u": [1, 1, 2, 2], "s": [1, 1, 1, 1], "label": [1, 0, 1, 0], "score": [0.1, 0.2, 0.4, 0.3]})
    options = {"user": ["u", "s"], "per_user": True}
    one = fastrec.evaluate_scores(frame, metrics="gauc(weight=equal)", **options)
    far = fastrec.evaluate_scores(frame.with_columns(u=pl.col("u") + 10), metrics="gauc(weight=equal)", **options)
    assert fastrec.compare({"a": one, "b": one}).rows[0].ties == 2
    with pytest.raises(fastrec.InputError, match=r"do the ids match\? The first are \(1, 1\) in a"):
        fastrec.compare({"a": one, "b": far})


def test_only_metrics_that_read_the_size_of_the_catalogue_need_the_same():
    lists, truth, metrics = [[1, 2], [3, 4]], [[1], [5]], ["recall@2", "accuracy@2", "gini@2"]
    sized = {n: fastrec.evaluate(lists, truth, metrics, n_items=n, per_user=True) for n in (10, 12)}
    unsized = fastrec.evaluate(lists, truth, "recall@2", per_user=True)
    found = fastrec.compare({"few": sized[10], "many": sized[12]})
    assert [row.metric for row in found.rows] == ["recall@2"]
    assert {*found.left_out} == {"accuracy@2", "gini@2"}
    assert {*map(str, found.left_out.values())} == {"reads n_items, which differs: 10 in few, 12 in many"}
    assert fastrec.compare({"few": sized[10], "none": unsized}).left_out == {}
    same = fastrec.compare({"one": sized[10], "same": sized[10]})
    assert {row.metric for row in same.rows} == {*metrics} and same.left_out == {}
    with pytest.raises(fastrec.InputError, match=r"accuracy@2 reads n_items, which differs: 10 in few, 12 in many"):
        fastrec.compare({"few": sized[10], "many": sized[12]}, metrics="accuracy@2")


def test_kinds_of_reports_and_truths_that_differ():
    lists = fastrec.evaluate([[1, 2]], [[1]], "recall@1", per_user=True)
    rows = fastrec.evaluate_scores([1, 0], [0.2, 0.1], [0, 2], "recall@1", per_user=True)
    with pytest.raises(fastrec.InputError, match="reports must be made with the same settings"):
        fastrec.compare({"lists": lists, "rows": rows})
    other = fastrec.evaluate([[1, 2]], [[1, 5]], "recall@1", per_user=True)
    with pytest.warns(fastrec.FastrecWarning, match="the truth differs in the number of rows: 1 in lists, 2 in other"):
        fastrec.compare({"lists": lists, "other": other})
    two = [[1, 2], [3, 4]]
    truths = {"one": [[1, 2], []], "each": [[1], [3]], "graded": [{1: 1.0}, {3: 1.0}], "judged": [{1: 1.0}, {3: 0.0}]}
    made = {name: fastrec.evaluate(two, truth, "recall@1", per_user=True) for name, truth in truths.items()}
    for name, what in (
        ("one", "users with a relevant item: 2 in each, 1 in one"),
        ("graded", "rows with gains: 0 in each, 2 in graded"),
        ("judged", "rows that are not relevant: 0 in each, 1 in judged"),
    ):
        with pytest.warns(fastrec.FastrecWarning, match=f"the truth differs in the number of {what}"):
            fastrec.compare({"each": made["each"], name: made[name]})


@pytest.mark.parametrize(
    ("truth", "match"),
    [
        ([[1], [4]], "the truth of a and b differ: not all rows have the same user and item"),
        ([{1: 1.0}, {3: 1.0}], None),
        ([{1: 2.0}, {3: 1.0}], "the truth of a and b differ: the rows are the same, but not all of their gains"),
        ([["1"], ["3"]], "the ids of items are integers in a and strings in b, with the same digits"),
    ],
)
def test_truths_of_equal_counts_that_differ(tmp_path, truth, match):
    """Also of loaded reports; those without digests have counts alone."""
    given = [{1: 1.0}, {3: 1.0}] if isinstance(truth[0], dict) else [[1], [3]]
    lists = [["1", "2"], ["3", "4"]] if truth[0] == ["1"] else [[1, 2], [3, 4]]
    reports = {"a": fastrec.evaluate([[1, 2], [3, 4]], given, "recall@1", per_user=True)}
    reports["b"] = fastrec.evaluate(lists, truth, "recall@1", per_user=True)
    for name, report in reports.items():
        report.save(tmp_path / name)
    for systems in (reports, {name: fastrec.load(tmp_path / name) for name in reports}):
        lines = fastrec.compare(systems).warnings if match is None else ()
        assert not any("truth" in line for line in lines)
        with contextlib.nullcontext() if match is None else pytest.warns(fastrec.FastrecWarning, match=match):
            fastrec.compare(systems)
    reports["b"].digest = None
    assert not any("truth" in line for line in fastrec.compare(reports).warnings)


def test_reports_of_other_excluded_items(tmp_path):
    """Also loaded reports; those of earlier versions do not say what they exclude."""
    given = {
        "none": {},
        "history": {"history": [[3]], "exclude": "history"},
        "given": {"exclude": [[3]]},
    }
    made = {name: fastrec.evaluate([[1, 2]], [[1]], "recall@1", per_user=True, **one) for name, one in given.items()}
    for name, report in made.items():
        assert report.settings["exclude"] == name
        report.save(tmp_path / "report.fastrec")
        made[name] = fastrec.load(tmp_path / "report.fastrec")
    for one, other in itertools.combinations(made, 2):
        with pytest.raises(fastrec.InputError, match=f"exclude is '{one}' in {one} and '{other}' in {other}"):
            fastrec.compare({name: made[name] for name in (one, other)})
    del made["none"].settings["exclude"]
    assert fastrec.compare({name: made[name] for name in ("none", "given")}).rows
    made["none"].save(tmp_path / "report.fastrec")
    assert "exclude" not in fastrec.load(tmp_path / "report.fastrec").settings


def test_excluded_items_of_batches():
    def part(user, **given):
        evaluator = fastrec.Evaluator("recall@1")
        evaluator.update({user: [1, 2]}, {user: [1]}, **given)
        return fastrec.Evaluator.from_bytes(evaluator.to_bytes())

    plain, excluding = part("a"), part("b", exclude={"b": [2]})
    assert plain.result().settings["exclude"] == "none"
    with pytest.raises(fastrec.InputError, match="appears twice"):
        plain.update({"c": [1, 1]}, {"c": [1]}, exclude={"c": [2]})
    assert plain.merge(part("d")).result().settings["exclude"] == "none"
    assert fastrec.Evaluator("recall@1").merge(plain).result().settings["exclude"] == "none"
    assert plain.merge(excluding).result().settings["exclude"] == "given"


def test_missing_users_have_no_errors():
    half, full = (
        fastrec.evaluate_scores(
            [0.0] * n, [0.1] * n, user_ids=list(range(n)), metrics="mae(average=user)", per_user=True
        )
        for n in (1, 2)
    )
    differ = pytest.warns(fastrec.FastrecWarning, match="the logs differ in the number of rows: 1 in half, 2 in full")
    with differ:
        assert fastrec.compare({"half": half, "full": full}).rows[0].users == 1
    with differ, pytest.raises(fastrec.InputError, match="would give missing users a good value"):
        fastrec.compare({"half": half, "full": full}, missing="zero")


def test_significant_up_to_the_level():
    rows = fastrec.compare(reports_of(), "a", n_rounds=99, level=0.9, correction="none")
    row = rows.rows[0]
    assert rows.is_significant(row._replace(p_corrected=0.1)) and not rows.is_significant(
        row._replace(p_corrected=0.1001)
    )


def test_a_level_next_to_1_has_a_finite_interval():
    truth = [[1], [2], [3]] * 10
    recs = {"a": [[1], [9], [9]] * 10, "b": [[1], [2], [9]] * 10}
    reports = {name: fastrec.evaluate(own, truth, "recall", per_user=True) for name, own in recs.items()}
    (row,) = fastrec.compare(reports, test="t", level=1 - 1e-16, power=1e-20).rows
    (usual,) = fastrec.compare(reports, test="t", level=0.95).rows
    assert math.isfinite(row.low) and math.isfinite(row.high) and math.isfinite(row.detectable)
    assert row.low < usual.low < usual.high < row.high


def test_a_pooled_metric_is_left_out_even_where_it_equals_the_mean():
    """Here it happens by chance over all users, and not in the groups."""
    name, truth = "recall(average=pooled)", [[1], [1, 2, 3], [1], [1, 2, 3]]
    reports = {
        system: fastrec.evaluate(recs, truth, [name, "recall"], groups=["x", "x", "y", "y"], per_user=True)
        for system, recs in {"a": [[1], [9], [9], [1, 2, 3]], "b": [[9], [1, 2, 3], [1], [9]]}.items()
    }
    assert [report[name] for report in reports.values()] == [0.5, 0.5]
    found = fastrec.compare(reports)
    assert list(found.left_out) == [name] and {row.metric for row in found.all_rows()} == {"recall"}

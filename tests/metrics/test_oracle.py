"""The oracle itself: worked cases, closed forms and laws between metrics."""

import math
import statistics
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, find, given, settings
from hypothesis import strategies as st

from support import oracle, strategies, worked_cases
from support.strategies import Log
from support.worked_cases import Case, Refused


def run(text: str, recs: worked_cases.Recs, truth: worked_cases.Truth, **call: object) -> oracle.Result:
    metric, options, k = worked_cases.parse(text)
    return oracle.evaluate(recs, truth, metric, k=k, options=options, **call)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", worked_cases.CASES, ids=lambda case: case.name)
def test_worked_case(case: Case) -> None:
    result = run(case.metric, case.recs, case.truth, **case.call)
    assert worked_cases.agrees(result.value, case.expected, case.tolerance), result
    if case.std_error is not None:
        assert result.std_error is not None
        assert worked_cases.agrees(result.std_error, case.std_error, case.tolerance), result


@pytest.mark.parametrize("case", worked_cases.REFUSED, ids=lambda case: case.name)
def test_refused(case: Refused) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every refusal has its own words
        run(case.metric, case.recs, case.truth, **case.call)


def test_case_names_are_unique() -> None:
    names = [case.name for case in worked_cases.CASES]
    assert len(set(names)) == len(names)


def test_every_metric_has_a_worked_case() -> None:
    assert {worked_cases.parse(case.metric)[0] for case in worked_cases.CASES} == set(oracle.METRICS)


@pytest.mark.parametrize(
    "text", ["precision(denominator=n_rec)", "hits(denominator=k)", "ndcg(ideal=best)", "dcg(gain=log)"]
)
def test_unknown_option(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        run(text, [[1]], [[(1, 1.0)]])


def test_unknown_average() -> None:
    with pytest.raises(ValueError, match="pooled"):
        run("mrr(average=pooled)", [[1]], [[(1, 1.0)]])


def test_counts_and_per_user() -> None:
    users = worked_cases.KINDS
    recs, truth = [u[0] for u in users], [u[1] for u in users]
    # counted 1/2, skipped, zero, skipped
    result = run("recall", recs, truth)
    assert (result.users, result.no_truth, result.no_recs) == (2, 2, 1)
    assert result.per_user == [0.5, None, 0.0, None]
    # a NaN user is among the counted ones
    result = run("recall", recs, truth, no_truth="nan", no_recs="skip")
    assert (result.users, result.no_truth, result.no_recs) == (3, 2, 1)
    assert result.per_user[0] == 0.5
    assert result.per_user[2] is None
    assert all(v is not None and math.isnan(v) for v in (result.per_user[1], result.per_user[3]))


def test_pooled_keeps_the_values_of_the_users() -> None:
    recs, truth = [[1, 2], [1, 2, 3, 4]], [[(1, 1.0)], [(1, 1.0), (2, 1.0), (4, 1.0)]]
    # = 1/2 and 3/4, whatever the average
    assert run("precision(average=pooled)", recs, truth).per_user == [0.5, 0.75]
    # = 2 * 1 / (1 + 2) and 2 * 3 / (3 + 4)
    assert run("f1(average=means)", recs, truth).per_user == [2 / 3, 6 / 7]


def test_no_standard_error_of_nothing() -> None:
    recs, truth = [[1], [1]], [[(2, 1.0)], [(2, 1.0)]]
    # P = R = 0 has no derivative; 0 hits of 4 has
    assert run("f1(average=means)@2", recs, truth).std_error is None
    assert run("precision(average=pooled)@2", recs, truth).std_error == 0


def covariance(left: list[float], right: list[float]) -> float:
    """Return the sample covariance, in the textbook form."""
    a, b = statistics.fmean(left), statistics.fmean(right)
    return sum((x - a) * (y - b) for x, y in zip(left, right, strict=True)) / (len(left) - 1)


@pytest.mark.thorough
@given(strategies.logs(graded=False), st.integers(1, 5))
def test_delta_method_from_covariances(log: Log, k: int) -> None:
    """Standard errors from residuals equal those from the covariance matrix."""
    h = [run(f"hits@{k}", [r], [t], no_truth="zero").value for r, t in zip(log.recs, log.truth, strict=True)]
    n_rel = [float(len(rows)) for rows in log.truth]
    n = len(h)
    assume(n >= 2 and sum(h) > 0)
    a, b = statistics.fmean(h), statistics.fmean(n_rel)
    ratio = a / b
    variance = covariance(h, h) - 2 * ratio * covariance(h, n_rel) + ratio**2 * covariance(n_rel, n_rel)
    pooled = run(f"recall(average=pooled)@{k}", log.recs, log.truth, no_truth="zero")
    assert pooled.std_error == pytest.approx(math.sqrt(max(variance, 0) / n) / b, abs=1e-7)

    precisions = [x / k for x in h]
    recalls = [x / y if y else 0.0 for x, y in zip(h, n_rel, strict=True)]
    p, r = statistics.fmean(precisions), statistics.fmean(recalls)
    by_p, by_r = 2 * r**2 / (p + r) ** 2, 2 * p**2 / (p + r) ** 2
    variance = (
        by_p**2 * covariance(precisions, precisions)
        + 2 * by_p * by_r * covariance(precisions, recalls)
        + by_r**2 * covariance(recalls, recalls)
    )
    means = run(f"f1(average=means)@{k}", log.recs, log.truth, no_truth="zero")
    assert means.std_error == pytest.approx(math.sqrt(max(variance, 0) / n), abs=1e-7)


@pytest.mark.thorough
@given(strategies.logs(graded=False), strategies.cutoffs(), st.floats(0.25, 4))
def test_pooled_f_is_the_f_of_pooled_parts(log: Log, k: int | None, beta: float) -> None:
    def value(metric: str, **options: object) -> float:
        options["average"] = "pooled"
        return oracle.evaluate(log.recs, log.truth, metric, k=k, options=options).value

    p, r = value("precision"), value("recall")
    expected = (1 + beta**2) * p * r / (beta**2 * p + r) if p + r > 0 else p
    assert worked_cases.agrees(value("f_beta", beta=beta), expected)


@given(strategies.logs(), strategies.cutoffs(), strategies.min_gains(), st.sampled_from([0, 1, 7, 10**9]))
def test_limited_auc_closed_forms(log: Log, k: int | None, min_gain: float | None, extra: int) -> None:
    """Counting pairs gives [hM - Σ(r_j - j) + (n_rel-h)(M-(n-h))/2] / (n_rel M), or the form of the list."""
    for items, rows in zip(log.recs, log.truth, strict=True):
        relevant = {item for item, gain in rows if gain > 0 and (min_gain is None or gain >= min_gain)}
        if not items or not relevant:
            continue
        n_items = len({*items, *relevant}) + extra
        n, n_rel, rest = len(items[:k]), len(relevant), n_items - len(relevant)
        ranks = [rank for rank, item in enumerate(items[:k], start=1) if item in relevant]
        h, passed = len(ranks), sum(rank - j for j, rank in enumerate(ranks, start=1))
        tail = Fraction((n_rel - h) * (rest - (n - h)), 2)
        expected = float((h * rest - passed + tail) / (n_rel * rest)) if rest else 0.0
        call = {"k": k, "min_gain": min_gain, "n_items": n_items}
        assert oracle.evaluate([items], [rows], "limited_auc", **call).value == expected  # type: ignore[arg-type]
        expected = float(Fraction(h * (n - h) - passed, h * (n - h))) if h * (n - h) else 0.0
        call["options"] = {"unseen": "list_only"}  # type: ignore[assignment]
        assert oracle.evaluate([items], [rows], "limited_auc", **call).value == expected  # type: ignore[arg-type]


BOUNDED = ["hit_rate", "precision", "recall", "f1", "r_precision", "mrr", "map", "ndcg", "err(max_gain=4)"]
BOUNDED += ["map(denominator=hits)", "ndcg(gain=exp2)", "ndcg(ideal=list)", "ndcg(ideal=list_at_k)"]


@pytest.mark.thorough(except_for="^(ndcg|mrr)$")
@pytest.mark.parametrize("text", BOUNDED)
@settings(deadline=None)  # the first call of a kernel compiles it
@given(log=strategies.logs(), k=strategies.cutoffs(), min_gain=strategies.min_gains())
def test_between_zero_and_one(text: str, log: Log, k: int | None, min_gain: float | None) -> None:
    metric, options, _ = worked_cases.parse(text)
    per_user = oracle.evaluate(log.recs, log.truth, metric, k=k, options=options, min_gain=min_gain).per_user
    assert all(value is None or 0 <= value <= 1 + 1e-12 for value in per_user)


@pytest.mark.thorough
@given(log=strategies.logs(), data=st.data(), metric=st.sampled_from(["hits", "mrr", "map", "dcg", "ndcg"]))
def test_worst_and_best_enclose_every_tie_policy(log: Log, data: st.DataObject, metric: str) -> None:
    scores = data.draw(strategies.scores(log))
    k = data.draw(strategies.cutoffs())

    def values(ties: str) -> list[float]:
        result = oracle.evaluate(log.recs, log.truth, metric, k=k, scores=scores, ties=ties)
        return [value for value in result.per_user if value is not None]

    for ties in ("input", "id_asc", "id_desc"):
        for low, middle, high in zip(values("worst"), values(ties), values("best"), strict=True):
            assert low <= middle + 1e-12
            assert middle <= high + 1e-12


@given(log=strategies.logs(duplicates=True), data=st.data())
def test_excluded_items_leave_the_list(log: Log, data: st.DataObject) -> None:
    """`exclude` equals a list without these items, with duplicates first or miss."""
    seen = data.draw(strategies.seen_items(log))
    left = [[i for i in items if i not in out] for items, out in zip(log.recs, seen, strict=True)]
    for duplicates in ("first", "miss"):
        excluded = oracle.evaluate(log.recs, log.truth, "map", exclude=seen, duplicates=duplicates)
        shorter = oracle.evaluate(left, log.truth, "map", duplicates=duplicates)
        # repr, because NaN does not equal itself.
        assert repr(excluded) == repr(shorter)


@given(log=strategies.logs(), data=st.data())
def test_equal_weights_change_nothing(log: Log, data: st.DataObject) -> None:
    weight = data.draw(st.sampled_from([0.5, 1.0, 4.0]))
    for text in ("ndcg@5", "recall(average=pooled)@5", "f1(average=means)@5"):
        plain = run(text, log.recs, log.truth)
        weighted = run(text, log.recs, log.truth, weights=[weight] * len(log.recs))
        # Powers of two scale without rounding. repr, because NaN does not equal itself.
        assert repr(weighted) == repr(plain)


def some_user(wanted: Callable[[list[int], dict[int, float]], bool]) -> Callable[[Log], bool]:
    """Return whether a log has a user with this list and truth (id -> gain)."""
    return lambda log: any(wanted(recs, dict(rows)) for recs, rows in zip(log.recs, log.truth, strict=True))


AWKWARD: dict[str, Callable[[Log], bool]] = {
    "no users": lambda log: not log.recs,
    "empty list": some_user(lambda recs, truth: not recs and bool(truth)),
    "empty truth": some_user(lambda recs, truth: bool(recs) and not truth),
    "neither": some_user(lambda recs, truth: not recs and not truth),
    "one item": some_user(lambda recs, truth: len(recs) == 1),
    "long list": some_user(lambda recs, truth: len(recs) == strategies.LONGEST),
    "largest id": some_user(lambda recs, truth: strategies.MAX_ID in recs),
    "same low bits": some_user(lambda recs, truth: len(recs) > 1 and len({i % 2**32 for i in recs}) == 1),
    "truth larger than list": some_user(lambda recs, truth: 0 < len(recs) < len(truth)),
    "all hits": some_user(lambda recs, truth: len(recs) > 1 and all(truth.get(i, 0) > 0 for i in recs)),
    "no relevant item": some_user(lambda recs, truth: bool(truth) and all(g <= 0 for g in truth.values())),
    "gain not an integer": some_user(lambda recs, truth: any(g % 1 for g in truth.values())),
    "gain below zero listed": some_user(lambda recs, truth: any(truth.get(i, 0) < 0 for i in recs)),
}


@pytest.mark.thorough(except_for="empty truth|all hits")
@pytest.mark.parametrize("name", AWKWARD)
def test_logs_reach_the_awkward_cases(name: str) -> None:
    find(strategies.logs(), AWKWARD[name])


def twice(items: list[int]) -> bool:
    return len(set(items)) < len(items)


@pytest.mark.thorough
def test_logs_with_duplicates() -> None:
    def both(log: Log) -> bool:
        return any(
            twice(items) and twice([i for i, _ in rows]) for items, rows in zip(log.recs, log.truth, strict=True)
        )

    find(strategies.logs(duplicates=True), both)


@given(strategies.logs())
def test_logs_without_duplicates(log: Log) -> None:
    assert not any(twice(items) for items in log.recs)
    assert not any(twice([item for item, _ in rows]) for rows in log.truth)


@pytest.mark.thorough
@given(strategies.logs(graded=False), strategies.logs(integer=True))
def test_gains_of_logs(binary: Log, integer: Log) -> None:
    assert {gain for rows in binary.truth for _, gain in rows} <= {1.0}
    assert all(gain == int(gain) for rows in integer.truth for _, gain in rows)

"""Every metric, with every choice of its options, at several cut-offs, against the naive oracle.

`fastrec.catalogue()` generates the matrix: a new metric or choice fails until the oracle knows it. One call evaluates
all metrics of the matrix, so that they share everything that they can.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastrec
from fastrec.kernels.codes import BLOCK
from fastrec.kernels.hits import SMALL_ROWS
from fastrec.metrics.calls import parse
from fastrec.metrics.plan import Asked, make_plan
from support import oracle, strategies, worked_cases
from support.list_calls import (
    CI,
    Ask,
    check_estimate,
    check_user_values,
    flat,
    for_kind,
    random_log,
    recs_of,
    same,
    truth_of,
    write,
)
from support.strategies import Log
from support.worked_cases import Case, Refused

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

POLICIES = ["skip", "zero", "nan"]


def check_call(
    log: Log,
    asks: list[Ask],
    *,
    groups: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    **call: Any,
) -> None:
    """Every value, standard error, count and group of one call equals that of the oracle."""
    report = fastrec.evaluate(
        recs_of(log),
        truth_of(log),
        [ask.text for ask in asks],
        per_user=True,
        groups=groups,
        user_weight=weights,
        **call,
    )
    members = {label: [u for u, own in enumerate(groups or ()) if own == label] for label in set(groups or ())}
    assert set(report.groups.get("group", {})) == set(members)
    for ask in asks:
        name = parse(ask.text).text
        everyone = {"k": ask.k, "options": ask.options, **call}
        expected = oracle.evaluate(log.recs, log.truth, ask.name, weights=weights, **everyone)
        check_estimate(report.estimates[name], expected, ask.text)
        check_user_values(report.per_user[name], expected, ask.text)
        for label, users in members.items():
            recs, truth = [log.recs[u] for u in users], [log.truth[u] for u in users]
            own = None if weights is None else [weights[u] for u in users]
            expected = oracle.evaluate(recs, truth, ask.name, weights=own, **everyone)
            check_estimate(report.groups["group"][label][name], expected, f"{ask.text} of group {label}")


KINDS: dict[str, dict[str, Any]] = {"plain": {"graded": False}, "integer": {"integer": True}, "graded": {}}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@CI
@given(data=st.data())
def test_matrix_on_awkward_logs(kind: str, data: st.DataObject) -> None:
    log = data.draw(strategies.logs(**KINDS[kind]))
    labels = st.lists(st.sampled_from("ab"), min_size=len(log.recs), max_size=len(log.recs))
    check_call(
        log,
        for_kind(kind),
        min_gain=data.draw(st.sampled_from([None, 1.0, 2.25])),
        n_items=data.draw(st.sampled_from([2 * strategies.LONGEST, 10**9 + 7])),
        no_truth=data.draw(st.sampled_from(POLICIES)),
        no_recs=data.draw(st.sampled_from(POLICIES)),
        weights=data.draw(st.none() | strategies.weights(log)),
        groups=data.draw(st.none() | labels) or None,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_matrix_on_a_random_batch(kind: str, weighted: bool) -> None:
    n_users = 80
    log = random_log(kind, n_users, seed=3)
    draw = np.random.default_rng(5)
    weights = draw.choice([0.0, 0.25, 1.0, 7.3], n_users).tolist() if weighted else None
    check_call(
        log,
        for_kind(kind),
        n_items=100,
        weights=weights,
        groups=draw.choice(["a", "b", "c"], n_users).tolist(),
    )


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_many_users_and_long_lists(kind: str) -> None:
    """More users than a block of the kernels holds, and users with more ids than its small table holds."""
    log = random_log(kind, 1100, seed=8)
    draw = np.random.default_rng(13)
    gains = [1.0] if kind == "plain" else [0.0, 1.0, 2.0, 3.0, 4.0]
    for user, (n_rec, n_rel) in {0: (600, 5), 511: (3000, 700), 512: (5, 2000), 1099: (0, 900)}.items():
        log.recs[user] = draw.permutation(4000)[:n_rec].tolist()
        log.truth[user] = [(item, float(draw.choice(gains))) for item in draw.permutation(4000)[:n_rel].tolist()]
    assert max(len(items) for items in log.recs) > SMALL_ROWS
    assert len(log.recs) > 2 * BLOCK
    check_call(log, for_kind(kind)[::17], n_items=5000)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["accuracy", "specificity", "fallout", "mcc", "limited_auc"])
@CI
@given(log=strategies.logs(), k=strategies.cutoffs(), extra=st.sampled_from([0, 1, 2**40]))
def test_smallest_and_large_catalogues(name: str, log: Log, k: int | None, extra: int) -> None:
    sizes = [
        len({*items, *(item for item, gain in rows if gain > 0)})
        for items, rows in zip(log.recs, log.truth, strict=True)
    ]
    n_items = max([1, *sizes]) + extra
    check_call(log, [Ask(write(name, {}, k and min(k, 2**31 - 1)), name, {}, k)], n_items=n_items)


@CI
@given(log=strategies.logs(), k=st.sampled_from([4, 7, 2**31 - 1]), min_gain=st.sampled_from([0.75, 1.5, 3.0]))
def test_a_metrics_min_gain_goes_before_the_calls(log: Log, k: int, min_gain: float) -> None:
    asks = [
        Ask(write(name, {"min_gain": min_gain}, k), name, {"min_gain": min_gain}, k)
        for name in ("hits", "recall", "map", "ndcg", "r_precision")
    ]
    check_call(log, [*asks, *(Ask(f"{ask.name}@{k}", ask.name, {}, k) for ask in asks)], min_gain=2.0)


LOOKING = {"max_gain", "min_gain"}  # options, besides a gain other than binary, that make a metric use gains
OF_GAINS = {"ndcg_rel", "rndcg", "normalized_gain"}  # use gains without such an option


def takes_an_order(text: str) -> bool:
    """Return whether a metric has no closed form for tied scores."""
    return bool(make_plan((parse(text),), Asked(n_items=100)).not_linear)


@pytest.mark.thorough(except_for="graded")
@pytest.mark.parametrize("ties", ["input", "expected"])
@pytest.mark.parametrize("kind", ["integer", "graded"])
def test_any_gain_makes_every_row_of_the_truth_relevant(kind: str, ties: str) -> None:
    """Metrics that ignore gains see truth without rows; the others see rows that add nothing.

    A user whose rows all have gain 0 has no average relevance position or pair of gains, and else counts as 0
    (no_truth=zero). Rows of gain 0 are part of the ideal list of compatibility.
    """
    log = random_log(kind, 300, seed=4)
    items, indptr = recs_of(log)
    recs = items, indptr, np.random.default_rng(2).integers(0, 4, len(items)).astype(float)
    gained = truth_of(log)
    call: dict[str, Any] = {"n_items": 100, "ties": ties, "no_truth": "zero", "per_user": True}
    left_out = ("average_relevance_position", "compatibility", "ordered_pair_accuracy", "ndpm")
    asks = [ask for ask in for_kind(kind) if ask.name not in left_out]
    asks = [ask for ask in asks if ties == "input" or not takes_an_order(ask.text)]
    found = fastrec.evaluate(recs, gained, [ask.text for ask in asks], min_gain="any", **call)
    others = [
        ask.text
        for ask in asks
        if ask.options.get("gain", "binary") != "binary" or LOOKING & ask.options.keys() or ask.name in OF_GAINS
    ]
    blind = [ask.text for ask in asks if ask.text not in others]
    assert min(len(blind), len(others)) > 20
    for names, truth in ((blind, gained[:2]), (others, gained)):
        wanted = fastrec.evaluate(recs, truth, names, **call)
        for name in names:
            np.testing.assert_allclose(found.per_user[name], wanted.per_user[name], 1e-12, 1e-12, err_msg=name)
            assert same(found[name], wanted[name]), name
            assert found.estimates[name].users == wanted.estimates[name].users, name
    assert found.data["truth_rows_not_relevant"] == 0
    assert found.users["no_truth"] == int((np.diff(gained[1]) == 0).sum())


def test_any_gain_counts_gains_below_0_as_0() -> None:
    log = random_log("graded", 300, seed=4)
    items, indptr, gains = truth_of(log)
    texts = [ask.text for ask in for_kind("graded") if "min_gain" not in ask.options]
    call: dict[str, Any] = {"n_items": 100, "min_gain": "any", "per_user": True}
    found = fastrec.evaluate(recs_of(log), (items, indptr, gains), texts, **call)
    wanted = fastrec.evaluate(recs_of(log), (items, indptr, np.maximum(gains, 0.0)), texts, **call)
    assert [text for text in found if not same(found[text], wanted[text])] == []
    by_hand = fastrec.evaluate([[1, 2]], [{1: -1.0, 2: 0.0}], "compatibility(min_gain=any)")
    assert by_hand["compatibility(min_gain=any)"] == 1.0, "the ideal has equal gains in the order of the list"


@pytest.mark.parametrize("ties", ["input", "expected"])
def test_a_metric_may_count_any_gain_beside_others_that_do_not(ties: str) -> None:
    log = random_log("graded", 1100, seed=6)
    items, indptr = recs_of(log)
    recs = items, indptr, np.random.default_rng(2).integers(0, 4, len(items)).astype(float)
    names = ("hits", "recall", "map", "ndcg", "precision", "dcg")
    own = {least: [f"{name}(min_gain={least})@4" for name in names] for least in ("any", "2")}
    usual = [f"{name}@4" for name in names]
    found = fastrec.evaluate(recs, truth_of(log), [*usual, *own["any"], *own["2"]], per_user=True, ties=ties)
    asked: list[tuple[list[str], Any]] = [(usual, None), (own["any"], "any"), (own["2"], 2.0)]
    for texts, min_gain in asked:
        wanted = fastrec.evaluate(recs, truth_of(log), usual, per_user=True, ties=ties, min_gain=min_gain)
        for text, name in zip(texts, usual, strict=True):
            assert mean_bits_of(found, text) == mean_bits_of(wanted, name)
        if min_gain is None:
            assert (found.users, found.data) == (wanted.users, wanted.data)


def mean_bits_of(report: fastrec.Report, name: str) -> tuple[Any, ...]:
    assert report.per_user is not None
    return report.estimates[name], report.per_user[name].tobytes()


OWN_POLICIES = st.sampled_from(["skip", "zero", "nan"])
OWN_NO_TRUTH = OWN_POLICIES | st.sampled_from(["judged", "listed"])


@CI
@given(data=st.data())
def test_a_metrics_policies_go_before_the_calls(data: st.DataObject) -> None:
    log = data.draw(strategies.logs())
    labels = data.draw(st.lists(st.sampled_from("ab"), min_size=len(log.recs), max_size=len(log.recs)))
    weights = data.draw(
        st.none() | st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(labels), max_size=len(labels))
    )
    asks = []
    for name in ("hits", "recall", "precision", "ndcg", "f1"):
        options = data.draw(st.fixed_dictionaries({}, optional={"no_truth": OWN_NO_TRUTH, "no_recs": OWN_POLICIES}))
        asks.append(Ask(write(name, options, 3), name, options, 3))
        if name in ("precision", "f1"):
            options = {"average": "pooled", **options}
            asks.append(Ask(write(name, options, 3), name, options, 3))
    call = {"no_truth": data.draw(OWN_NO_TRUTH), "no_recs": data.draw(OWN_POLICIES)}
    check_call(log, asks, groups=labels, weights=weights, **call)


def test_judged_users_count_and_unknown_ones_do_not() -> None:
    lists, truth = {"a": [1], "b": [2], "c": [3]}, {"a": {1: 1.0}, "b": {2: 0.0}}
    assert fastrec.evaluate(lists, truth, "recall@1", no_truth="judged")["recall@1"] == 0.5
    assert fastrec.evaluate(lists, truth, "recall(no_truth=zero)@1")["recall(no_truth=zero)@1"] == 1 / 3
    rows = fastrec.evaluate_scores([1, 0, 0], [0.5, 0.5, 0.25], [0, 1, 3, 3], "hit_rate@1", no_truth="judged")
    assert rows["hit_rate@1"] == 0.5


def test_a_policy_of_a_metric_may_be_an_error() -> None:
    recs, truth = [[1], [2]], [[1], []]
    assert fastrec.evaluate(recs, truth, "recall@1", no_truth="zero")["recall@1"] == 0.5
    with pytest.raises(fastrec.InputError, match="user 1 has no relevant item, and no_truth='error'"):
        fastrec.evaluate(recs, truth, ["recall@1", "recall(no_truth=error)@1"])


# Worked cases


def run(case: Case | Refused) -> fastrec.Report:
    """Evaluate a worked case with fastrec."""
    call = dict(case.call)
    scores = call.pop("scores", None)
    log = Log(case.recs, case.truth)
    recs = recs_of(log) if scores is None else (*recs_of(log), flat(scores, np.float64)[0])
    return fastrec.evaluate(recs, truth_of(log), [case.metric], user_weight=call.pop("weights", None), **call)


def has_min_gain_below_zero(case: Case) -> bool:
    return bool(case.call.get("min_gain", 1) <= 0)


@pytest.mark.parametrize(
    "case",
    [case for case in worked_cases.CASES if not has_min_gain_below_zero(case)],
    ids=lambda case: case.name,
)
def test_worked_case(case: Case) -> None:
    report = run(case)
    assert worked_cases.agrees(report[case.metric], case.expected, case.tolerance)
    if case.std_error is not None:
        assert worked_cases.agrees(report.std_error(case.metric), case.std_error, case.tolerance)


@pytest.mark.parametrize(
    "case", [case for case in worked_cases.CASES if has_min_gain_below_zero(case)], ids=lambda case: case.name
)
def test_min_gain_not_above_zero_is_refused(case: Case) -> None:
    """The oracle treats such a `min_gain` as no limit; fastrec rejects it."""
    with pytest.raises(fastrec.InputError, match="min_gain must be finite and above 0"):
        run(case)


@pytest.mark.parametrize("case", worked_cases.REFUSED, ids=lambda case: case.name)
def test_refused(case: Refused) -> None:
    with pytest.raises(fastrec.InputError):
        run(case)


def test_ties_beyond_the_last_cutoff_do_not_matter() -> None:
    """They change neither a bit of a value, nor make a metric without a closed form an error."""
    scores = {1: 9.0, 2: 8.0, 3: 7.0, 4: 6.0, 5: 1.0, 6: 1.0}
    untied = {**scores, 6: 0.5}
    metrics = ["ndcg(ideal=list_at_k)@4", "mrr@4", "err(max_gain=2)@4", "ndcg@4", "map@4", "recall@4"]
    truth = [{2: 1.0, 4: 2.0, 5: 1.0}, {4: 1.0, 5: 1.0}]
    found = fastrec.evaluate([scores, scores], truth, metrics, per_user=True)
    wanted = fastrec.evaluate([untied, untied], truth, metrics, per_user=True)
    assert {name: found.per_user[name].tolist() for name in metrics} == {
        name: wanted.per_user[name].tolist() for name in metrics
    }
    assert found.per_user["mrr@4"].tolist() == [1 / 2, 1 / 4]
    with pytest.raises(fastrec.MetricError, match="has no closed form"):
        fastrec.evaluate([scores, scores], truth, "ndcg(ideal=list_at_k)@5")


@pytest.mark.parametrize("metric", ["ndcg", "mean_rank", "coverage_error", "ordered_pair_accuracy(average=pooled)"])
def test_users_whom_a_policy_makes_nan_are_counted(metric: str) -> None:
    (found,) = fastrec.evaluate([[1, 2], [3, 4]], [{1: 2.0, 2: 1.0}, {}], metric, no_truth="nan").estimates.values()
    assert math.isnan(found.mean)
    assert found.users == 2

"""The oracle of scored rows: worked cases, closed forms, other ways to the same number, scikit-learn."""

import itertools
import math
from fractions import Fraction
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import oracle, score_oracle, strategies, worked_cases
from support.score_oracle import Row
from support.strategies import ScoredLog
from support.worked_cases import ScoredCase

FEW = settings(derandomize=True, deadline=None, database=None, max_examples=40)


def run(text: str, log: ScoredLog, **call: Any) -> oracle.Result:
    metric, options, k = worked_cases.parse(text)
    return score_oracle.evaluate(log.labels, log.scores, metric, k=k, options=options, **call)


def run_case(case: ScoredCase) -> oracle.Result:
    return run(case.metric, ScoredLog(case.labels, case.scores), **case.call)


@pytest.mark.parametrize("case", worked_cases.SCORED_CASES, ids=lambda case: case.name)
def test_worked_case(case: ScoredCase) -> None:
    result = run_case(case)
    assert worked_cases.agrees(result.value, case.expected, case.tolerance), result
    if case.std_error is not None:
        assert result.std_error is not None
        assert worked_cases.agrees(result.std_error, case.std_error, case.tolerance), result


@pytest.mark.parametrize("case", worked_cases.SCORED_REFUSED, ids=lambda case: case.name)
def test_refused(case: ScoredCase) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - every refusal has its own words
        run_case(case)


def test_case_names_are_unique() -> None:
    names = [case.name for case in (*worked_cases.SCORED_CASES, *worked_cases.SCORED_REFUSED)]
    assert len(set(names)) == len(names)


def test_every_metric_has_a_worked_case() -> None:
    asked = [worked_cases.parse(case.metric)[:2] for case in worked_cases.SCORED_CASES]
    of_rows = {name for name, options in asked if score_oracle.is_of_rows(name, options)}
    assert of_rows == {*score_oracle.ROWS, *score_oracle.CLASSES, "gauc"}


# All orders


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), max_size=6))
def test_distinct_orders_stand_for_equally_many(gains: list[float]) -> None:
    everything = list(itertools.permutations(gains))
    distinct = score_oracle.orders_of_block(tuple(gains))
    assert {order: everything.count(order) for order in distinct} == dict.fromkeys(
        distinct, len(everything) // len(distinct)
    )
    assert set(distinct) == set(everything)


@FEW
@given(log=strategies.scored_logs(labels="integer"), k=st.none() | st.integers(1, 7), data=st.data())
def test_expected_is_the_mean_over_shuffled_rows(log: ScoredLog, k: int | None, data: st.DataObject) -> None:
    """Yield every order of all rows of a user, with ties in place: each order of the tied ones is equally frequent."""
    text = data.draw(st.sampled_from(["map", "ndcg(gain=exp2)", "err(max_gain=4)", "mrr", "limited_auc"]))
    metric, options, _ = worked_cases.parse(text)
    call = {"k": k, "options": options, "n_items": 20, "no_truth": "zero"}
    for labels, scores in zip(log.labels, log.scores, strict=True):
        rows = list(zip(labels, scores, strict=True))[:5]
        found = score_oracle.evaluate([[g for g, _ in rows]], [[s for _, s in rows]], metric, **call).value  # type: ignore[arg-type]
        values = [
            score_oracle.evaluate(
                [[gain for gain, _ in order]],
                [[score for _, score in order]],
                metric,
                ties="input",
                **call,  # type: ignore[arg-type]
            ).value
            for order in itertools.permutations(rows)
        ]
        assert found == pytest.approx(fmean(values), rel=1e-13, abs=1e-15)


def test_too_many_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="too many orders"):
        score_oracle.orders_of_block((1.0,) * 9)


CLOSED = ["hits", "hit_rate", "precision", "recall(denominator=min_k_n_rel)", "f_beta(beta=2)", "r_precision", "mrr"]
CLOSED += ["arhr", "arhr(denominator=n_rel)", "map", "map(denominator=n_rel)", "map(denominator=k)"]
CLOSED += ["map(denominator=hits)", "map(denominator=min_n_rel_n_rec)", "cg(gain=exp2)", "dcg(discount=log2_flat2)"]
CLOSED += ["ndcg", "ndcg(ideal=truth_uncut)", "ndcg(gain=[0, 1, 1, 5, 7], discount=[1, 0.5], ideal=list)", "rbp"]
CLOSED += ["limited_auc", "limited_auc(unseen=list_only)"]
CLOSED += ["err(max_gain=4)", "accuracy", "specificity", "fallout", "mcc"]


@st.composite
def tied_users(draw: st.DrawFn) -> tuple[tuple[tuple[float, ...], ...], list[float]]:
    """Draw tie blocks of one user, at most seven rows, and the gains of relevant items in no block."""
    gains = draw(st.sampled_from([[0.0, 1.0], [0.0, 1.0, 2.0, 4.0]]))
    rows = draw(st.lists(st.sampled_from(gains), max_size=7))
    cuts = sorted({0, len(rows), *draw(st.lists(st.integers(0, len(rows)), max_size=3))})
    unseen = draw(st.lists(st.sampled_from(gains[1:]), max_size=2))
    return tuple(tuple(rows[a:b]) for a, b in itertools.pairwise(cuts)), unseen


@pytest.mark.thorough
@FEW
@given(user=tied_users(), binary=st.booleans())
def test_closed_forms(user: tuple[tuple[tuple[float, ...], ...], list[float]], binary: bool) -> None:
    blocks, unseen = user
    if binary:
        blocks = tuple(tuple(float(gain > 0) for gain in block) for block in blocks)
        unseen = [1.0] * len(unseen)
    gains = [gain for block in blocks for gain in block]
    truth = tuple(sorted((gain for gain in [*gains, *unseen] if gain > 0), reverse=True))
    for k in (None, *range(1, len(gains) + 2)):
        orders = score_oracle.orders_of(blocks, truth, k, 12)
        for text in [*CLOSED, *(["ndcg(ideal=k)"] if binary else [])]:
            metric, options, _ = worked_cases.parse(text)
            found = score_oracle.closed_form(metric, orders[0], blocks, **options)
            assert found == pytest.approx(score_oracle.expected_value(metric, orders, options), rel=1e-13, abs=1e-14), (
                text,
                k,
            )


# Rows: other ways to the same number


def rows_of(log: ScoredLog) -> list[score_oracle.Rows]:
    return [
        tuple(Row(label, score, Fraction(1)) for label, score in zip(labels, scores, strict=True))
        for labels, scores in zip(log.labels, log.scores, strict=True)
    ]


@pytest.mark.thorough
@given(strategies.scored_logs(longest=12))
def test_forms_of_auc(log: ScoredLog) -> None:
    """Pairs, areas and ranks give exactly the same number."""
    for rows in rows_of(log):
        n_pos, n_neg = len(score_oracle.positives(rows)), len(score_oracle.negatives(rows))
        if n_pos and n_neg:
            found = score_oracle.auc(rows)
            assert found == score_oracle.roc_area(rows) == score_oracle.auc(rows, max_fpr=1.0)
            twice = score_oracle.twice_won([row.label for row in rows], [row.score for row in rows])
            assert found == Fraction(twice, 2 * n_pos * n_neg)
            mirrored = tuple(row._replace(score=-row.score) for row in rows)
            assert found == 1 - score_oracle.all_pairs(mirrored)  # type: ignore[operator]
            ranks = sum(
                sum(other.score < row.score for other in rows)
                + Fraction(1 + sum(other.score == row.score for other in rows), 2)
                for row in score_oracle.positives(rows)
            )
            assert found == (ranks - Fraction(n_pos * (n_pos + 1), 2)) / (n_pos * n_neg)
        else:
            assert score_oracle.auc(rows) is None


@FEW
@given(strategies.scored_logs(longest=12))
def test_interpolated_precision_by_small_steps(log: ScoredLog) -> None:
    """Return the integral of TP / (TP + FP) over recall, by the midpoint rule."""
    for rows in rows_of(log):
        n_pos = len(score_oracle.positives(rows))
        if not n_pos:
            assert score_oracle.average_precision(rows, interpolation="davis_goadrich") is None
            continue
        corners = [(0, 0), *((int(point.tp), int(point.fp)) for point in score_oracle.points(rows))]
        area, steps = 0.0, 400
        for (tp, fp), (next_tp, next_fp) in itertools.pairwise(corners):
            for step in range(steps):
                share = (step + 0.5) / steps
                hits, misses = tp + share * (next_tp - tp), fp + share * (next_fp - fp)
                area += (next_tp - tp) / steps * (hits / (hits + misses) if hits else 1.0)
        found = score_oracle.average_precision(rows, interpolation="davis_goadrich")
        assert found is not None
        assert float(found) == pytest.approx(area / n_pos, abs=1e-5)


TEXTS = ["auc", "auc(max_fpr=0.4)", "gauc", "gauc(weight=pairs)", "gauc(weight=positives)", "average_precision"]
TEXTS += ["average_precision(interpolation=trapezoid)", "average_precision(interpolation=davis_goadrich)", "log_loss"]
TEXTS += ["brier", "brier(average=user)", "normalized_entropy", "calibration", "ece", "ece(bins=3, strategy=quantile)"]
TEXTS += ["ks", "mcc(threshold=0.3)", "f1(threshold=0.5)", "specificity(threshold=0.5)", "rmse(average=user)", "mae"]


@pytest.mark.thorough
@FEW
@given(data=st.data(), log=strategies.scored_logs(scores="unit"))
def test_weights_are_repetitions(data: st.DataObject, log: ScoredLog) -> None:
    times = [data.draw(st.lists(st.integers(0, 3), min_size=len(own), max_size=len(own))) for own in log.labels]
    weights = [[float(n) for n in own] for own in times]

    def repeat(rows: list[list[float]]) -> list[list[float]]:
        return [
            [x for x, n in zip(own, counts, strict=True) for _ in range(n)]
            for own, counts in zip(rows, times, strict=True)
        ]

    for text in TEXTS:
        found = run(text, log, sample_weight=weights)
        again = run(text, ScoredLog(repeat(log.labels), repeat(log.scores)))
        assert worked_cases.agrees(found.value, again.value), text
        assert found.users == again.users


# scikit-learn


@pytest.mark.thorough(except_for="^[0-9]$")
@pytest.mark.parametrize("seed", range(40))
def test_scikit_learn(seed: int) -> None:
    rivals = pytest.importorskip("support.score_rivals")
    labels, scores, weights = rivals.awkward_rows(seed)
    log = ScoredLog([labels.tolist()], [scores.tolist()])
    own = None if weights is None else [weights.tolist()]
    present = labels if weights is None else labels[weights > 0]
    for text, rival in rivals.RIVALS.items():
        found = run(text, log, sample_weight=own).value
        if text.startswith(rivals.ONE_CLASS_IS_NAN) and len(set(present.tolist())) < 2:
            assert math.isnan(found), text
        else:
            assert worked_cases.agrees(found, rivals.ask(rival, labels, scores, weights)), (
                text,
                labels,
                scores,
                weights,
            )
    targets = np.random.default_rng(seed).choice([-1.0, 0.5, 3.0], len(labels))
    for text, rival in rivals.ERRORS.items():
        found = run(text, ScoredLog([targets.tolist()], log.scores), sample_weight=own).value
        assert worked_cases.agrees(found, rivals.ask(rival, targets, scores, weights)), text


@pytest.mark.thorough(except_for="^[0-9]$")
@pytest.mark.parametrize("seed", range(60))
def test_expected_gains_of_scikit_learn(seed: int) -> None:
    rivals = pytest.importorskip("support.score_rivals")
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 8))
    gains, scores = draw.choice([0.0, 1.0, 2.0, 3.0], n), draw.choice(rivals.POOL[:3], n)
    log = ScoredLog([gains.tolist()], [scores.tolist()])
    for k in (None, 1, 2, 3, n + 1):
        at = "" if k is None else f"@{k}"
        assert worked_cases.agrees(run(f"ndcg{at}", log, no_truth="zero").value, rivals.expected_ndcg(gains, scores, k))
        assert worked_cases.agrees(run(f"dcg{at}", log, no_truth="zero").value, rivals.expected_dcg(gains, scores, k))

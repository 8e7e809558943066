"""Coefficient of determination where sums of doubles lose digits: targets far from 0, tiny, and weights of any size."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import target_sums
from fastrec.exceptions import InputError
from fastrec.runtime.launcher import Launcher
from support import score_oracle

TEXTS = ["r2", "r2(average=user)"]
N = 120


class Log(NamedTuple):
    targets: Any
    predictions: Any
    weights: Any
    users: Any
    groups: Any

    def report(self, order: Any, *, users: bool = True) -> Any:
        """Evaluate the rows in an order, with users in groups or without."""
        call: dict[str, Any] = {"metrics": "r2", "row_groups": {"part": self.groups[order]}}
        if users:
            call = {"metrics": TEXTS, "user_ids": self.users[order], "groups": self.groups[order]}
        weights = None if self.weights is None else self.weights[order]
        return fastrec.evaluate_scores(self.targets[order], self.predictions[order], sample_weight=weights, **call)


def log_of(kind: str, *, weighted: bool) -> Log:
    draw = np.random.default_rng(len(kind))
    steps = draw.integers(-8, 9, N).astype(float)
    targets = {
        "far": 1e12 + steps,
        "last bits": 2.0**52 + steps,
        "tiny": 1e-200 * steps,
        "wide": steps * 10.0 ** draw.integers(-60, 60, N),
    }[kind]
    predictions = targets * 0.75 if kind in ("tiny", "wide") else targets + draw.integers(-4, 5, N)
    weights = draw.random(N) * 10.0 ** draw.integers(-9, 9, N) if weighted else None
    users = draw.integers(0, 6, N)
    return Log(targets, predictions, weights, users, users // 2)


def expected(log: Log, chosen: Any) -> float:
    weights = None if log.weights is None else log.weights[chosen].tolist()
    rows = score_oracle.rows_of(log.targets[chosen].tolist(), log.predictions[chosen].tolist(), weights, float)
    value = score_oracle.r2(rows)
    return math.nan if value is None else float(value)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["far", "last bits", "tiny", "wide"])
def test_the_value_is_the_exact_one_rounded_in_any_order_and_batches(kind: str, weighted: bool) -> None:
    log = log_of(kind, weighted=weighted)
    order = np.random.default_rng(0).permutation(N)
    whole, without_users = log.report(slice(None)), log.report(slice(None), users=False)
    assert whole["r2"] == expected(log, slice(None))
    assert whole["r2"] == without_users["r2"] == log.report(order)["r2"] == log.report(order, users=False)["r2"]
    for group in range(3):
        value = expected(log, log.groups == group)
        assert whole.groups["group"][group]["r2"].mean == without_users.groups["part"][group]["r2"].mean == value
    by_user = [expected(log, log.users == user) for user in range(6)]
    assert whole["r2(average=user)"] == pytest.approx(math.fsum(by_user) / 6, rel=1e-14)
    evaluators = [fastrec.ScoreEvaluator("r2") for _ in range(3)]
    for nth, evaluator in enumerate(evaluators):
        own = order[nth::3]
        weights = None if log.weights is None else log.weights[own]
        evaluator.update(log.targets[own], log.predictions[own], sample_weight=weights)
    last = fastrec.ScoreEvaluator.from_bytes(evaluators[2].to_bytes())
    assert last.merge(evaluators[0]).merge(evaluators[1]).result()["r2"] == whole["r2"]


def test_a_user_alone_has_the_value_over_rows() -> None:
    for targets in ([1e-200, 2e-200, 4e-200], [1e15, 1e15 + 0.125, 1e15], [3.0, 3.0 + 2.0**-50, 3.0]):
        predictions = [targets[0], targets[0], targets[2]]
        report = fastrec.evaluate_scores(targets, predictions, [0, 3], TEXTS)
        assert report["r2"] == pytest.approx(report["r2(average=user)"], rel=1e-14)
        assert not math.isnan(report["r2"])
    assert fastrec.evaluate_scores([1e-200, 2e-200], [1.0, 2.0], [0, 2], "r2")["r2"] == -math.inf
    report = fastrec.evaluate_scores([0.1, 0.1, 0.1], [0.0, 0.1, 0.2], [0, 3], TEXTS)
    assert all(math.isnan(report[text]) for text in TEXTS)


def test_no_standard_error_where_squares_have_lost_it() -> None:
    log = log_of("far", weighted=False)
    near = fastrec.evaluate_scores(log.targets - 1e12, log.predictions - 1e12, user_ids=log.users, metrics="r2")
    hundred = fastrec.evaluate_scores(
        log.targets - 1e12 + 100, log.predictions - 1e12 + 100, user_ids=log.users, metrics="r2"
    )
    assert hundred.std_error("r2") == pytest.approx(near.std_error("r2"), rel=1e-6)
    assert math.isnan(log.report(slice(None)).std_error("r2"))


def test_threads_and_compiled_code_leave_the_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_sums, "MIN_ROWS", 7)
    for weighted in (False, True):
        log = log_of("wide", weighted=weighted)
        rows = log.targets, log.predictions, log.weights
        found = []
        for entry in ("interpreted", "compiled"):
            monkeypatch.setattr(Launcher, "way", entry)
            for codes in (None, log.groups.astype(np.int32)):
                for n_threads in (1, 3):
                    sums = target_sums._sums_of_targets(*rows, codes, 3, n_threads)
                    found.append(np.sum([own.sums for own in sums], axis=0).tolist())
        assert all(own == found[0] for own in found)


def test_bytes_with_impossible_sums_are_refused() -> None:
    sums = target_sums.TargetSums(np.array([1, 3, 1, 0], object), weighted=False)
    with pytest.raises(InputError, match="expected sums of targets"):
        target_sums.TargetSums.unpack(sums.pack(), weighted=False)


def test_squares_that_overflow_are_an_error() -> None:
    with pytest.raises(fastrec.InputError, match="r2 of user 0 is too large for a double"):
        fastrec.evaluate_scores([1e160, 2e160, 3e160], [1e160, 2e160, 2e160], metrics="r2")

"""Intervals of metrics on random small lists, against an oracle in plain Python, and their laws.

`scripts/fuzz --target intervals` runs it for long, `test_fuzz` for a few seconds.
"""

import math
import random
from typing import Any, NamedTuple

import fastrec
from fuzz.calls import Finding
from support.interval_oracle import Interval, mean_interval

__all__ = ["Finding", "describe", "run_case"]

ANY = (0.0, math.inf)
RANGES: dict[str, Interval] = {"mrr": (0, 1), "ndcg@3": (0, 1), "hit_rate@2": (0, 1), "precision@2": (0, 1)}
RANGES |= {"recall(average=user)": (0, 1), "map": (0, 1), "hits@4": ANY, "dcg@4": ANY}
LEVELS = [0.5, 0.8, 0.95, 0.99]


class Case(NamedTuple):
    """Lists of users, their relevant items, weights and groups; `cut` splits them into two batches."""

    lists: list[list[int]]
    truth: list[list[int]]
    weights: list[float] | None
    groups: list[str]
    metrics: list[str]
    cut: int


def draw_case(seed: int) -> Case:
    r = random.Random(seed)
    n, size = r.choice([1, 2, 3, 5, 10, 40]), r.choice([2, 4, 12])
    lists = [r.sample(range(size), r.randint(1, min(size, 6))) for _ in range(n)]
    truth = [r.sample(range(size), r.randint(1, min(size, 4))) for _ in range(n)]
    if r.random() < 0.3:  # all users have the same value
        lists, truth = [lists[0]] * n, [truth[0]] * n
    alike = r.choice([0.5, 1.0, 3.0])
    weights = r.choice([None, [alike] * n, [r.choice([0.0, 0.25, 1.0, 7.5]) for _ in range(n)]])
    metrics = r.sample(list(RANGES), r.randint(1, 4))
    return Case(lists, truth, weights, r.choices("ab", k=n), metrics, r.randint(0, n))


def describe(seed: int) -> str:
    """Return the case of a seed for a replay."""
    return "\n".join(map(str, draw_case(seed)))


def run_case(seed: int) -> bool:
    """Check the intervals of one call; return whether there was one. Raise `Finding` for a wrong one."""
    case = draw_case(seed)
    try:
        return check(case)
    except AssertionError as error:
        raise Finding("wrong value", str(error)) from None
    except Exception as error:
        raise Finding("foreign error", repr(error)) from error


def check(case: Case) -> bool:
    options: dict[str, Any] = {"user_weight": case.weights, "groups": case.groups}
    report = fastrec.evaluate(case.lists, case.truth, case.metrics, per_user=True, **options)
    for metric in case.metrics:
        for group in (None, *set(case.groups)):
            inside = [n for n, own in enumerate(case.groups) if group in (None, own)]
            values = report.per_user[metric][inside].tolist()
            weights = None if case.weights is None else [case.weights[n] for n in inside]
            found = report.estimates[metric] if group is None else report.groups["group"][group][metric]
            check_interval(found, values, weights, RANGES[metric], f"{metric} of {group}")
    assert repr(in_batches(case).estimates) == repr(report.estimates), "batches change an estimate"
    return any(not math.isnan(one.interval()[0]) for one in report.estimates.values())


def check_interval(found: Any, values: list[float], weights: list[float] | None, limits: Interval, what: str) -> None:
    before = (found.mean, found.mean)
    for level in LEVELS:
        low, high = found.interval(level)
        wanted = mean_interval(values, limits, level, weights)
        for one, other in zip((low, high), wanted, strict=True):
            same = math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) or (math.isnan(one) and math.isnan(other))
            assert same, f"{what} at {level}: {low, high}, not {wanted}"
        if not math.isnan(low):
            assert limits[0] <= low <= before[0] and before[1] <= high <= limits[1], f"{what}: {low, high}, {before}"
            before = low, high


def in_batches(case: Case) -> Any:
    """Return the report of two batches that travelled as bytes and were merged."""
    parts = []
    for part in (slice(case.cut), slice(case.cut, None)):
        evaluator = fastrec.Evaluator(case.metrics)
        own = {"user_weight": None if case.weights is None else case.weights[part], "groups": case.groups[part]}
        if case.lists[part]:
            evaluator.update(case.lists[part], case.truth[part], **own)
        parts.append(fastrec.Evaluator.from_bytes(evaluator.to_bytes()))
    return parts[1].merge(parts[0]).result()

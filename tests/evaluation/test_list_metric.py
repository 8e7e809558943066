"""Metrics that are a plain Python function of one user's list."""

import functools
import math
import pickle
import random
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest

import fastrec
from fastrec.metrics.declaration import DECLARED


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    """Declare metrics for one test, as other tests look at all."""
    before = dict(DECLARED["lists"])
    fastrec.list_metric(range=(0, None))(plain_dcg)
    fastrec.list_metric(plain_recall)
    yield
    DECLARED["lists"].clear()
    DECLARED["lists"].update(before)


def plain_dcg(items: list[Any], gains: dict[Any, float], *, discount: Literal["log2", "none"] = "log2") -> float:
    """As `dcg`, in Python."""
    return sum(gains.get(item, 0) / (math.log2(at + 2) if discount == "log2" else 1) for at, item in enumerate(items))


def plain_recall(items: list[Any], gains: dict[Any, float]) -> float:
    """As `recall`, in Python."""
    return len({*items} & {*gains}) / len(gains)


def logs(seed: int, kind: str) -> tuple[Any, Any]:
    rng = random.Random(seed)
    name = {"integers": int, "strings": str}[kind]
    recs = {u: [name(i) for i in rng.sample(range(30), rng.randint(0, 12))] for u in range(40)}
    truth = {
        u: {name(rng.randrange(30)): rng.choice([-1, 0, 0.5, 1, 3]) for _ in range(rng.randint(0, 6))} for u in recs
    }
    return recs, truth


@pytest.mark.parametrize("kind", ["integers", "strings"])
@pytest.mark.parametrize("settings", [{}, {"min_gain": 1}, {"no_truth": "zero"}, {"no_recs": "skip"}])
def test_a_plain_function_has_the_values_of_the_built_in_metric(kind, settings):
    for seed in range(5):
        recs, truth = logs(seed, kind)
        report = fastrec.evaluate(
            recs, truth, ["plain_dcg", "dcg", "plain_recall", "recall"], k=[1, 5], per_user=True, **settings
        )
        for ours, plain in (("dcg@1", "plain_dcg@1"), ("dcg@5", "plain_dcg@5"), ("recall@5", "plain_recall@5")):
            np.testing.assert_allclose(report.per_user[plain], report.per_user[ours], rtol=1e-12)
            assert report.estimates[plain].users == report.estimates[ours].users


def test_items_are_as_passed_without_those_that_are_excluded_and_in_the_order_of_ties():
    seen = []

    @fastrec.list_metric(range=(0, None))
    def seen_items(items):
        seen.append(items)
        return len(items)

    given = {"a": {"x": 1.0, "y": 3.0, "z": 1.0}}
    assert fastrec.evaluate(given, metrics="seen_items", exclude={"a": ["y"]}, ties="id_desc")["seen_items"] == 2
    fastrec.evaluate(np.array([[7, 8, 7]]), metrics=["seen_items@3", "seen_items@1"], duplicates="miss")
    assert seen == [["z", "x"], [7, 8, None], [7]]
    with pytest.raises(fastrec.MetricError, match="seen_items has no closed form for the mean over orders of tied"):
        fastrec.evaluate(given, metrics="seen_items")


def test_a_function_may_change_what_it_gets_and_be_pickled():
    @fastrec.list_metric(range=(0, None))
    def taken(items, gains):
        return sum(gains.pop(items.pop(0), 0) for _ in items[:])

    for cutoffs in ([1, 3], [3, 1]):
        report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], "taken", k=cutoffs)
        assert (report["taken@1"], report["taken@3"]) == (1, 2)
    copied = pickle.loads(pickle.dumps(fastrec.Evaluator("plain_dcg")))
    copied.update([[1, 2]], [[1]])
    assert copied.result()["plain_dcg"] == 1


def test_options_of_a_plain_function():
    report = fastrec.evaluate([[1, 2]], [[2]], ["plain_dcg", "plain_dcg(discount=none)"])
    assert report["plain_dcg(discount=none)"] == 1 and report["plain_dcg"] == pytest.approx(1 / math.log2(3))
    with pytest.raises(fastrec.MetricError, match="discount=ln must be log2 or none"):
        fastrec.evaluate([[1, 2]], [[2]], "plain_dcg(discount=ln)")


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (lambda: 1 / 0, r"faulty of user 'a' raises ZeroDivisionError\('division by zero'\)"),
        (lambda: "x", "faulty of user 'a' must be a finite number, found 'x'"),
        (lambda: math.nan, "faulty of user 'a' must be a finite number, found nan"),
        (lambda: 2, r"faulty of user 'a' is not a number within range=\(0.0, 1.0\)"),
    ],
)
def test_values_that_are_refused(value, match):
    @fastrec.list_metric
    def faulty(items, gains):
        return value()

    with pytest.raises(fastrec.FastrecError, match=match):
        fastrec.evaluate({"a": ["x"]}, {"a": ["x"]}, "faulty")


def test_functions_that_are_refused():
    with pytest.raises(fastrec.MetricError, match="takes items, or items and gains, found the arguments: none"):
        fastrec.list_metric(lambda: 1)
    for function in (max, None):
        with pytest.raises(fastrec.MetricError, match="must be a function of items and gains, found"):
            fastrec.list_metric(name="own")(function)
    with pytest.raises(fastrec.MetricError, match="found the arguments: items, gains, k; options are keywords"):
        fastrec.list_metric(lambda items, gains, k: 1)
    with pytest.raises(fastrec.MetricError, match=r"pass its name, 'plain_recall@10'$"):
        fastrec.evaluate([[1]], [[1]], [plain_recall])
    with pytest.raises(fastrec.MetricError, match=r"found (?!.*pass its name)"):
        fastrec.evaluate([[1]], [[1]], [lambda items: 1])
    with pytest.raises(fastrec.MetricError, match=r"needs name=\.\.\., found functools.partial"):
        fastrec.list_metric(functools.partial(plain_recall))
    with pytest.raises(fastrec.InputTypeError, match=r"range, source and so on are passed by name, found \(0, 1\)"):
        fastrec.list_metric((0, 1))

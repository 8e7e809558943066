"""Lists of numbers with integers that a double would round, of which NumPy makes floats."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastrec

BIG = 2**53

CALLS: dict[str, Callable[[], Any]] = {
    "recs scores": lambda: fastrec.evaluate({1: {1: BIG, 3: BIG + 1, 4: 0.5}}, {1: [3]}, "mrr"),
    "recs scores, a float of another user": lambda: fastrec.evaluate(
        {1: {1: BIG, 3: BIG + 1}, 2: {1: 0.5}}, {1: [3], 2: [1]}, "mrr"
    ),
    "recs scores, beside indptr": lambda: fastrec.evaluate(([1, 3, 4], [0, 3], (BIG, BIG + 1, 0.5)), [[3]], "mrr"),
    "truth gains": lambda: fastrec.evaluate([[1, 3]], [{1: BIG, 3: BIG + 1, 4: 0.5}], "ndcg"),
    "subtopics subtopics": lambda: fastrec.evaluate(
        {1: [1, 3]}, {1: [1, 3]}, "alpha_ndcg", subtopics={1: {1: [BIG, 0.5], 3: [BIG + 1]}}
    ),
    "scores": lambda: fastrec.auc([0, 1, 0], [BIG, BIG + 1, 0.5]),
    "scores, of NumPy": lambda: fastrec.auc([0, 1, 0], [np.int64(BIG), np.int64(BIG + 1), np.nan]),
    "scores, of lists": lambda: fastrec.evaluate_scores([0, 1, 0], [BIG, BIG + 1, 0.5], metrics="auc"),
    "targets": lambda: fastrec.rmse([BIG + 1, 0.5], [BIG, 0.5]),
    "thresholds": lambda: fastrec.confusion_matrix([0, 1], [0.1, 0.9], thresholds=[0.5, BIG + 1]),
    "model": lambda: fastrec.evaluate_model([[BIG, BIG + 1, 0.5]], [[1]], "mrr"),
    "model, of arrays": lambda: fastrec.evaluate_model(
        [np.array([BIG, BIG + 1]), np.array([0.5, 1.0])], [[1], [1]], "mrr"
    ),
    "the answer of the model": lambda: fastrec.evaluate_model(
        lambda rows: [[BIG, BIG + 1, 0.5]] * len(rows), [[1]], "mrr", n_items=3
    ),
    "item_factors": lambda: fastrec.evaluate_model(([[1.0]], [[BIG], [BIG + 1], [0.5]]), [[1]], "mrr"),
    "item_bias": lambda: fastrec.evaluate_model(
        ([[1.0]], [[1.0], [2.0]]), [[1]], "mrr", user_bias=None, item_bias=[BIG + 1, 0.5]
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_integers_beside_floats_are_not_rounded(name: str) -> None:
    """The values BIG and BIG + 1 became one double, and their order was lost."""
    message = rf"^{name.partition(',')[0]} holds an integer past 2\*\*53, which would be rounded: {BIG + 1} at "
    with pytest.raises(fastrec.InputError, match=message):
        CALLS[name]()


def test_integers_on_both_sides_of_2_to_63_are_not_rounded() -> None:
    with pytest.raises(fastrec.InputError, match=rf"^scores holds an integer past .*: {2**63} at row 0$"):
        fastrec.evaluate_scores([0, 1, 0], [2**63, 2**63 + 1, 0], metrics="auc")


def test_exact_integers_beside_floats_are_numbers() -> None:
    assert fastrec.auc([0, 1, 0, 1], [BIG, 0.5, -BIG, float("inf")]) == 0.75
    assert fastrec.auc([0, 1, 0], [1, 2.0**60, True]) == 1.0

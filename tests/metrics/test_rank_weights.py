"""Weights of ranks: between whole ranks they continue those of whole ranks."""

from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.metrics.rank_weights import WEIGHTS, is_continuous, is_table, rank_weights, weight_between

FAMILIES = [("geometric", 0.8), ("inverse_square", 2.0, 100.0), ("inverse_square", 0.5, float("inf"))]


@pytest.mark.parametrize("weight", [*WEIGHTS, *FAMILIES], ids=str)
def test_weights_between_ranks_meet_those_of_whole_ranks(weight: Any) -> None:
    assert is_continuous(weight)
    assert not is_table(weight)
    own = [weight_between(weight, rank) for rank in range(1, 151)]
    np.testing.assert_allclose(own, rank_weights(weight, 150)[1:], rtol=1e-13, atol=1e-14)


def test_tables_have_weights_of_whole_ranks_alone() -> None:
    assert is_table((1.0, 0.5))
    assert not is_continuous((1.0, 0.5))
    assert not is_continuous(("multiple", 0.2))


def test_sums_of_reciprocals_follow_the_digamma_function() -> None:
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    ranks = np.linspace(1.0, 60.0, 300)
    expected = special.digamma(ranks) + np.euler_gamma
    np.testing.assert_allclose([weight_between("harmonic", rank) for rank in ranks], expected, rtol=1e-13, atol=1e-14)


def test_mean_precision_is_estimated_from_samples() -> None:
    draw = np.random.default_rng(0)
    scores, truth, metric = draw.random((40, 50)), [[user] for user in range(40)], "mean_precision@49"
    sampled = [
        fastrec.evaluate_model(scores, truth, metric, negatives=20, correct="rank", seed=seed)[metric]
        for seed in range(40)
    ]
    assert np.mean(sampled) == pytest.approx(fastrec.evaluate_model(scores, truth, metric)[metric], rel=0.1)

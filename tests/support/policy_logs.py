"""Random logs of slates for `policy_value`, and the comparison of its results with the oracle."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

import fastrec
from support.policy_oracle import Found, Row, Slate

__all__ = ["check", "draw_slates", "flat"]

TINY = 1e-300  # squares of values below it vanish


def flat(slates: Sequence[Slate]) -> dict[str, Any]:
    """The arguments of a log."""
    rows = [row for slate in slates for row in slate]
    rewards, logged, new, shown, expected = (np.array([row[at] for row in rows], np.float64) for at in range(5))
    indptr = np.cumsum([0, *map(len, slates)])
    given = {"rewards": rewards, "pscore": logged, "new_pscore": new, "indptr": indptr}
    return given | {"predictions": (shown, expected)}


def draw_slates(seed: int, n: int = 40, longest: int = 4, *, ragged: bool = True) -> list[Slate]:
    rng = random.Random(seed)
    return [
        [
            Row(
                rng.choice([0.0, 1.0, 1.0, -2.5, rng.random()]),
                rng.choice([0.05, 0.2, 0.5, 1.0, rng.uniform(0.01, 1)]),
                rng.choice([0.0, 0.1, 0.5, 1.0, rng.random()]),
                rng.random(),
                rng.random(),
            )
            for _ in range(rng.randint(0, longest) if ragged else longest)
        ]
        for _ in range(n)
    ]


def check(found: fastrec.PolicyEstimate, wanted: Found) -> None:
    """Compare a result with that of the oracle; squares of a spread carry the rounding of the values."""
    near(found.value, wanted.value, 1e-12 * wanted.size, "value")
    near(found.std_error, wanted.std_error, 1e-7 * wanted.error_size, "error")
    near(found.effective_sample_size, wanted.effective_sample_size, 0.0, "effective sample size")
    near(found.mean_weight, wanted.mean_weight, 0.0, "mean weight")
    near(found.mean_weight_error, wanted.mean_weight_error, 1e-7 * wanted.weight_size, "error of the mean weight")
    near(found.max_weight, wanted.max_weight, 0.0, "largest weight")
    assert found.clipped == wanted.clipped, f"{found.clipped} clipped rows, expected {wanted.clipped}"


def near(ours: float, theirs: float, tolerance: float, what: str) -> None:
    """Raise AssertionError unless numbers agree, or are both NaN."""
    if math.isnan(theirs):
        assert math.isnan(ours), f"{what}: {ours}, expected NaN"
    else:
        assert abs(ours - theirs) <= max(tolerance, 1e-10 * abs(theirs), TINY), f"{what}: {ours}, expected {theirs}"

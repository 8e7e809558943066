"""Sums of values in [-1, 1] keep 96 bits after the point."""

from fractions import Fraction

import numpy as np
import pytest

from fastrec.kernels.codes import BLOCK
from fastrec.kernels.sums import add_fixed

STEP = Fraction(1, 2**96)
DIGITS = [Fraction(1, 2**32), Fraction(1, 2**64), STEP]


def add(values: np.ndarray, scale: float = 1.0) -> tuple[int, list[Fraction]]:
    """Return how many values are outside, and the sums of values and squares."""
    total = np.zeros(6, np.int64)
    with np.errstate(all="ignore"):  # as kernels run in Python
        outside = add_fixed(values, scale, total)
    sums = [sum(int(digit) * step for digit, step in zip(own, DIGITS, strict=True)) for own in (total[:3], total[3:])]
    return int(outside), sums


@pytest.mark.parametrize("n", [0, 1, 7, BLOCK])
@pytest.mark.parametrize("smallest", [1.0, 1e-3, 1e-9])
def test_sums_are_exact_and_squares_rounded_to_a_step(n: int, smallest: float) -> None:
    rng = np.random.default_rng(n)
    values = rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(np.log(smallest), 0.0, n))
    outside, sums = add(values)
    assert outside == 0
    assert sums[0] == sum(map(Fraction, values.tolist()), Fraction(0))
    exact = sum((Fraction(value * value) for value in values.tolist()), Fraction(0))
    assert abs(sums[1] - exact) <= n * STEP / 2  # squares of small values have bits below


def test_tiny_values_are_rounded_to_a_step() -> None:
    for value in (2.0**-96, 0.75 * 2.0**-96, 2.0**-97, 2.0**-60 + 2.0**-97, -(2.0**-96), -0.75 * 2.0**-96, 0.0, -0.0):
        expected = round(Fraction(value) / STEP) * STEP
        assert add(np.array([value]))[1][0] == expected
        assert add(np.array([value] * BLOCK))[1][0] == BLOCK * expected


def test_scales_are_exact() -> None:
    values = np.random.default_rng(0).random(50) * 1000.0
    assert add(values, 2.0**-10)[1][0] == sum(map(Fraction, values.tolist())) / 2**10


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1, -1.1, 1e300])
def test_values_outside_add_nothing(bad: float) -> None:
    assert add(np.array([0.5, bad, 0.5, bad])) == (2, [0, 0])

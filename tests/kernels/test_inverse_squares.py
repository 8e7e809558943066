"""Sums of series keep their digits, near and far."""

from fractions import Fraction

import pytest

from fastrec.kernels.series import inverse_squares


@pytest.mark.parametrize("start", [1e-3, 0.5, 1.0, 2.5, 19.75, 20.0, 1e3, 1e6])
@pytest.mark.parametrize("n", [0, 1, 2, 19, 21, 300])
def test_a_sum_of_inverse_squares_has_all_its_digits(start: float, n: int) -> None:
    exact = sum((1 / (Fraction(start) + i) ** 2 for i in range(n)), Fraction(0))
    assert inverse_squares(start, n) == pytest.approx(float(exact), rel=1e-15, abs=0.0)


def test_an_infinite_sum_of_inverse_squares_is_the_trigamma_function() -> None:
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    starts = [1e-3, 0.5, 1.0, 7.25, 20.0, 1e3, 1e9]
    for n in (float("inf"), 1 << 62):
        found = [inverse_squares(start, n) for start in starts]
        assert found == pytest.approx(special.polygamma(1, starts).tolist(), rel=1e-15)

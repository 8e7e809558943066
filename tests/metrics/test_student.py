"""Quantiles and p-values of Student's distribution, against SciPy."""

import math

import pytest
from scipy import special

from fastrec.metrics.intervals import normal_quantile, student_p_value, student_quantile

DEGREES = [1, 1.3, 2, 3, 4.99, 5, 10, 29, 30, 99.5, 100, 101, 1e3, 9999, 10_001, 1e5, 1e6, 1e9]


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.9, 0.95, 0.99, 1 - 1e-6, 1 - 2.0**-40])
def test_quantiles_are_those_of_scipy(degrees: float, level: float) -> None:
    expected = -special.stdtrit(degrees, (1 - level) / 2)
    assert student_quantile(level, degrees) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("statistic", [0.0, 0.1, 1.0, math.sqrt(3), 2.0, -2.0, 5.0, 8.0])
def test_p_values_are_those_of_scipy(degrees: float, statistic: float) -> None:
    expected = 2 * special.stdtr(degrees, -abs(statistic))
    assert student_p_value(statistic, degrees) == pytest.approx(expected, rel=1e-11)


def test_limits() -> None:
    assert student_quantile(0.95, math.inf) == normal_quantile(0.95)
    assert student_quantile(0.95, 0.2) == student_quantile(0.95, 1)
    assert student_p_value(math.inf, 5) == 0
    assert student_p_value(2, math.inf) == pytest.approx(math.erfc(math.sqrt(2)), rel=1e-15)

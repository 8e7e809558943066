"""Dual numbers: slopes against closed forms and exact differences, and the rules where a formula has none."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastrec.metrics.dual import Dual, differentiable, slopes

FRACTIONS = st.fractions(-9, 9, max_denominator=99)
FORMULAS: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda a, b: 2 + a + b + 1,
    "difference": lambda a, b: 1 - a - b - Fraction(1, 2),
    "minus": lambda a, b: -(a - 3 * b),
    "product": lambda a, b: 0.3 * a * b * b,
    "quotient": lambda a, b: (a + 1) / (b * b + 1) / 3,
    "reciprocal": lambda a, b: 1 / (a * a + b * b + 1),
    "harmonic": lambda a, b: 1.25 * a * b / (0.25 * (a * a + 1) + b * b),
}


@given(a=FRACTIONS, b=FRACTIONS)
@pytest.mark.parametrize("name", FORMULAS)
def test_slopes_are_the_limit_of_differences(name: str, a: Fraction, b: Fraction) -> None:
    formula, step = FORMULAS[name], Fraction(1, 10**12)
    exact = lambda *at: formula(*(Dual(value, ()) for value in at)).value  # noqa: E731 - fractions, whatever the constants
    found = slopes(formula, [a, b])
    assert found is not None
    for slope, (da, db) in zip(found, ((step, 0), (0, step)), strict=True):
        difference = (exact(a + da, b + db) - exact(a - da, b - db)) / (2 * step)
        assert isinstance(slope, (int, Fraction))
        assert abs(slope - difference) < Fraction(1, 10**15)


@given(n=FRACTIONS, d=FRACTIONS.filter(bool))
def test_a_quotient_of_fractions_has_exact_slopes(n: Fraction, d: Fraction) -> None:
    assert slopes(lambda n, d: n / d, [n, d]) == (1 / d, -n / (d * d))


def test_a_constant_counts_with_its_exact_value() -> None:
    third = Fraction(1, 3)
    assert slopes(lambda a: 0.1 * a / a, [third]) == (0,)


def test_a_constant_result_has_no_slopes() -> None:
    assert slopes(lambda n, d: n / d if d else 0.0, [Fraction(0), Fraction(0)]) is None
    assert slopes(lambda a: a * 0, [Fraction(5)]) == (0,)


def test_a_division_by_zero_is_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        slopes(lambda n, d: n / d, [Fraction(1), Fraction(0)])


@pytest.mark.parametrize("kink", [abs, lambda a: max(a, 1), lambda a: a if a > 0 else -a])
def test_kinks_are_errors(kink: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        slopes(kink, [Fraction(0)])


def test_own_slopes_follow_the_chain_rule() -> None:
    logarithm = differentiable(lambda x: (1 / x,))(math.log)
    assert logarithm(2.0) == math.log(2.0)
    assert slopes(lambda a, b: logarithm(a * a * b), [Fraction(2), Fraction(8)]) == (1.0, 0.125)
    assert slopes(lambda a: 1 / logarithm(a), [1.5]) == (-1 / 1.5 / math.log(1.5) ** 2,)

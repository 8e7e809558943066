"""Dual numbers: a formula evaluated on them gives its value and its slopes, for standard errors by the delta method.

A dual number carries its slope in each argument of the formula (forward-mode differentiation). The rules:

- Slopes of + - * / are exact as long as the arguments are integers or fractions. Other numbers in a formula are
  constants and count with their exact value, so differences do not magnify any rounding.
- A function of other steps, such as a logarithm, gives its own slopes: see `differentiable`.
- A formula that returns a constant, such as its value for 0 / 0, has no slopes.
- Dual numbers have no order: a formula with a kink (`abs`, `min`) declares that it has no standard error.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Number = int | float | Fraction
Slopes = tuple[Number, ...]


class Dual:
    """A number and its slope in each argument."""

    __slots__ = ("slopes", "value")

    def __init__(self, value: Number, slopes: Slopes) -> None:
        self.value = value
        self.slopes = slopes

    def _constant(self, value: Number) -> Dual:
        return Dual(Fraction(value), (0,) * len(self.slopes))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __neg__(self) -> Dual:
        return Dual(-self.value, tuple(-slope for slope in self.slopes))

    def __add__(self, other: Dual | Number) -> Dual:
        other = other if isinstance(other, Dual) else self._constant(other)
        return Dual(self.value + other.value, tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True)))

    __radd__ = __add__

    def __sub__(self, other: Dual | Number) -> Dual:
        return self + -other

    def __rsub__(self, other: Number) -> Dual:
        return -self + other

    def __mul__(self, other: Dual | Number) -> Dual:
        other = other if isinstance(other, Dual) else self._constant(other)
        slopes = (other.value * a + self.value * b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Dual(self.value * other.value, tuple(slopes))

    __rmul__ = __mul__

    def __truediv__(self, other: Dual | Number) -> Dual:
        other = other if isinstance(other, Dual) else self._constant(other)
        fall = self.value / (other.value * other.value)
        slopes = (a / other.value - fall * b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Dual(self.value / other.value, tuple(slopes))

    def __rtruediv__(self, other: Number) -> Dual:
        return self._constant(other) / self


def differentiable(slopes: Callable[..., Slopes]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator of a function that gives it slopes, one per argument, and so lets it take dual numbers."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def on_duals(*arguments: Any) -> Any:
            if not isinstance(arguments[0], Dual):
                return function(*arguments)
            values = [each.value for each in arguments]
            own = slopes(*values)
            columns = zip(*(each.slopes for each in arguments), strict=True)
            return Dual(function(*values), tuple(sum(map(operator.mul, own, column)) for column in columns))

        return on_duals

    return decorate


def slopes(function: Callable[..., Any], at: Sequence[Number]) -> Slopes | None:
    """Return the slopes of a function in its arguments at a point; None if it returns a constant there."""
    units = (tuple(int(nth == own) for nth in range(len(at))) for own in range(len(at)))
    found = function(*map(Dual, at, units))
    return found.slopes if isinstance(found, Dual) else None

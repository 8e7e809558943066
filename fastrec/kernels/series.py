"""Sums of reciprocals and of inverse squares, to all digits, by their asymptotic series."""

from __future__ import annotations

import math
from typing import Final

from .jit import njit

FAR: Final = 20  # from here on the series have all digits of a double
EULER: Final = 0.5772156649015329


@njit
def reciprocals(n):
    """Return the sum of 1 / r over r = 1, ..., n."""
    if n < FAR:
        total = 0.0
        for rank in range(n, 0, -1):
            total += 1.0 / rank
        return total
    square = 1.0 / n / n
    rest = 1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    return math.log(n) + EULER + 0.5 / n - square * rest


@njit
def inverse_squares(start, n):
    """Return the sum of 1 / (start + i)^2 over i = 0, ..., n - 1, for a start above 0.

    `n` may be infinite. The difference of two trigamma functions is written so that close ones lose no digits.
    """
    steps = int(min(n, max(0, FAR - math.floor(start))))
    total = 0.0
    for i in range(steps - 1, -1, -1):
        total += 1.0 / (start + i) / (start + i)
    if steps == n:
        return total
    first, left = start + steps, float(n - steps)
    end = first + left
    share = 1.0 / (first * (first / left + 1.0))
    rest = _rest_of_inverse_squares(first) - _rest_of_inverse_squares(end)
    return total + (share * (1.0 + 0.5 * (1.0 / first + 1.0 / end)) + rest)


@njit
def _rest_of_inverse_squares(z):
    """Return the trigamma function without 1 / z + 1 / (2 z^2)."""
    square = 1.0 / z / z
    return square / z * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66)))))

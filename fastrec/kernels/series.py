"""Sums of reciprocals and of inverse squares, to all digits, by their asymptotic series."""

from __future__ import annotations

import math
from typing import Final

from fastrec.runtime.compiler import helper

__all__ = ["inverse_squares", "reciprocals"]

FAR: Final = 20  # from here on the series have all digits of a double
EULER: Final = 0.5772156649015329


@helper
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


@helper
def inverse_squares(start):
    """Return the sum of 1 / (start + i)^2 over all i >= 0: the trigamma function, for a start above 0."""
    steps = max(0, FAR - math.floor(start))
    z = start + steps
    square = 1.0 / z / z
    rest = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66))))
    total = (1.0 + 0.5 / z + square * rest) / z
    for i in range(steps - 1, -1, -1):
        total += 1.0 / (start + i) / (start + i)
    return total

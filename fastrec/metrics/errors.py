"""Standard errors in exact arithmetic, which round once, at the end."""

from __future__ import annotations

import math
from fractions import Fraction

Exact = int | Fraction


def variance_of_ratio(
    n_users: int, below: Exact, above: Exact, below_squares: Exact, products: Exact, above_squares: Exact
) -> tuple[Exact, Exact]:
    """Return the variance of a ratio of sums over at least two users, as numerator and denominator (delta method).

    It is U / (U - 1) * sum of (a_u - R b_u)^2 / B^2, with R = A / B. The arguments are the number of users U, the sums
    B and A, and the sums of b_u^2, a_u b_u and a_u^2.
    """
    spread = below * below * above_squares - 2 * below * above * products + above * above * below_squares
    return n_users * spread, (n_users - 1) * below**4


def root(numerator: int, denominator: int) -> float:
    """Return the square root of a variance. Rounding may have made it slightly negative, which counts as 0."""
    if numerator <= 0:
        return 0.0
    # scaled by a power of 4, which keeps tiny and huge variances within the range of a double
    shift = (numerator.bit_length() - denominator.bit_length()) // 2
    scaled = numerator / (denominator << 2 * shift) if shift >= 0 else (numerator << -2 * shift) / denominator
    return math.ldexp(math.sqrt(scaled), shift)

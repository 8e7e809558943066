"""Quantiles and tails of Student's distribution, and intervals of shares."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
SMALLEST = 1e-300  # in place of 0 in a continued fraction
MAX_STEPS = 10_000  # of one: it takes about the square root of the degrees
NEARLY_NORMAL = 1e4  # degrees from which a transformation to the normal distribution has all digits (Hill 1970)


def normal_quantile(level: float) -> float:
    """Return how many standard errors a normal interval of a level reaches to both sides."""
    # The lower tail keeps all digits of a level close to 1; (1 + level) / 2 would round them away.
    return -NormalDist().inv_cdf((1 - level) / 2)


def student_quantile(level: float, degrees: float) -> float:
    """Return how many standard errors an interval of a level reaches to both sides, by Student's distribution.

    Degrees of freedom below 1 count as 1, as the quantile grows without limit towards 0.
    """
    return quantile_of_p_value(1 - level, degrees)


@functools.lru_cache(maxsize=128)
def quantile_of_p_value(p_value: float, degrees: float) -> float:
    """Return the number of Student's distribution with a two-sided p-value, which keeps the digits of a small one."""
    z, degrees = -NormalDist().inv_cdf(p_value / 2), max(degrees, 1.0)
    if math.isinf(degrees):
        return z
    # The tail is convex, so Newton's steps approach the quantile from below once they are there (Cornish & Fisher).
    quantile = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    for _ in range(MAX_STEPS):
        tail = student_p_value(quantile, degrees)
        step = (tail - p_value) / (2 * _student_density(quantile, degrees))
        quantile += step
        if not abs(step) > 1e-14 * quantile:
            break
    return quantile


def student_p_value(statistic: float, degrees: float) -> float:
    """Return the chance that a number of Student's distribution is at least as far from 0 as a statistic."""
    t, degrees = abs(statistic), max(degrees, 1.0)
    if t == 0 or math.isinf(t):
        return float(t == 0)
    if degrees > NEARLY_NORMAL:
        shrunk = t * t if math.isinf(degrees) else (degrees - 0.5) * math.log1p(t * t / degrees)
        bent = 1 + (0.0 if math.isinf(degrees) else (shrunk + 3) / (48 * (degrees - 0.5) ** 2))
        return math.erfc(bent * math.sqrt(shrunk / 2))
    # The tail is the incomplete beta function of degrees / 2 and 1 / 2, here as t f(t) times a continued fraction.
    share = degrees / (degrees + t * t)
    factor = t * _student_density(t, degrees)
    if share < (degrees + 2) / (degrees + 5):
        return 2 * factor / degrees * _beta_fraction(degrees / 2, 0.5, share)
    return 1 - 2 * factor * _beta_fraction(0.5, degrees / 2, t * t / (degrees + t * t))


def _student_density(t: float, degrees: float) -> float:
    return (
        _gamma_ratio(degrees / 2)
        / math.sqrt(degrees * math.pi)
        * math.exp(-(degrees + 1) / 2 * math.log1p(t * t / degrees))
    )


def _gamma_ratio(x: float) -> float:
    """Return gamma(x + 1/2) / gamma(x), which keeps its digits for large x."""
    if x < 50:
        return math.gamma(x + 0.5) / math.gamma(x)
    y = 1 / (8 * x)
    return math.sqrt(x) * (1 - y * (1 - y * (0.5 + y * (2.5 - y * (2.625 + y * (49.875 - y * 43.3125))))))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by the method of Lentz (1976)."""
    numerator, denominator = 1.0, 1.0 / (1 - (a + b) * x / (a + 1))
    found = denominator
    for m in range(1, MAX_STEPS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            denominator = 1 / ((1 + term * denominator) or SMALLEST)
            numerator = (1 + term / numerator) or SMALLEST
            found *= numerator * denominator
        if abs(numerator * denominator - 1) < 1e-16:
            break
    return found


class RowError(NamedTuple):
    """Standard error of a metric of independent rows."""

    std_error: float
    degrees: float  # of freedom
    least: int  # rows of the smaller class


NO_ERROR = RowError(math.nan, math.nan, 0)


def kish_size(weight: Fraction, squares: Fraction) -> float:
    """Return the effective number of units of a sum of weights and the sum of their squares (Kish 1965)."""
    return float(weight * weight / squares) if squares else 0.0


def welch_degrees(first: float, degrees: float, second: float, other_degrees: float) -> float:
    """Return the degrees of freedom of a sum of two independent variances (Satterthwaite 1946, Welch 1947)."""
    if not first + second > 0:
        return float(min(degrees, other_degrees))
    share = first / (first + second)  # squares of the variances themselves might vanish
    total = share * share / degrees + (1 - share) ** 2 / other_degrees
    return 1 / total if total else math.inf


def one_value_interval(value: float, n: float, limits: tuple[float, float], level: float) -> tuple[float, float]:
    """Return an interval of the mean of a number within limits, if n independent ones have the same value.

    If the mean were further away, n such numbers would be seen with a probability below (1 - level) / 2. NaN without
    finite limits.
    """
    if math.isinf(limits[1] - limits[0]):
        return math.nan, math.nan
    q = 1 - ((1 - level) / 2) ** (1 / max(n, 1))
    return value - q * (value - limits[0]), value + q * (limits[1] - value)


def wilson(successes: Array, trials: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the score interval of shares (Wilson 1927); NaN for 0 trials."""
    z = normal_quantile(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = successes / trials
        middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
        half = z / (1 + z * z / trials) * np.sqrt(share * (1 - share) / trials + z * z / (4.0 * trials * trials))
    low, high = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
    low[successes == 0] = np.where(trials[successes == 0] > 0, 0.0, math.nan)  # exactly, without rounding
    high[successes == trials] = np.where(trials[successes == trials] > 0, 1.0, math.nan)
    return low, high

"""Intervals of means over users from their published definitions, in plain Python with quantiles of SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats

Interval = tuple[float, float]


def mean_interval(
    values: Sequence[float],
    limits: Interval = (-math.inf, math.inf),
    level: float = 0.95,
    weights: Sequence[float] | None = None,
) -> Interval:
    """Return the interval of a mean over users: Wilson's, that of one value, or Student's, cut to the limits."""
    w = [1.0] * len(values) if weights is None else weights
    total = math.fsum(w)
    if len(values) < 2 or not total:
        return math.nan, math.nan
    if 0 <= limits[0] <= limits[1] <= 1 and set(values) <= {0, 1} and len(set(w)) == 1:
        return wilson(sum(value == 1 for value in values), len(values), level)
    mean = math.fsum(a * b for a, b in zip(w, values, strict=True)) / total
    size = total**2 / math.fsum(a * a for a in w)  # of Kish
    if len({value for value, weight in zip(values, w, strict=True) if weight}) == 1:
        return one_value(mean, size, limits, level)
    squares = math.fsum((a * (b - mean)) ** 2 for a, b in zip(w, values, strict=True))
    error = math.sqrt(len(values) / (len(values) - 1) * squares) / total
    return student(mean, error, size - 1, limits, level)


def student(
    mean: float, error: float, degrees: float, limits: Interval = (-math.inf, math.inf), level: float = 0.95
) -> Interval:
    """Return mean ± t * error, cut to the limits (Student 1908)."""
    margin = float(stats.t.ppf((1 + level) / 2, max(degrees, 1))) * error
    return max(mean - margin, limits[0]), min(mean + margin, limits[1])


def one_value(value: float, n: float, limits: Interval, level: float = 0.95) -> Interval:
    """Return the means from which n users all have this value with a chance of at least (1 - level) / 2."""
    if math.isinf(limits[1]) or math.isinf(limits[0]):
        return math.nan, math.nan
    q = 1 - ((1 - level) / 2) ** (1 / n)
    return value - q * (value - limits[0]), value + q * (limits[1] - value)


def wilson(ones: int, n: int, level: float = 0.95) -> Interval:
    """Return the shares p with |ones / n - p| <= z * sqrt(p (1 - p) / n) (Wilson 1927)."""
    z = float(stats.norm.ppf((1 + level) / 2))
    middle, half = ones + z * z / 2, z * math.sqrt(ones * (n - ones) / n + z * z / 4)
    return (middle - half) / (n + z * z) if ones else 0.0, (middle + half) / (n + z * z) if ones < n else 1.0

"""Exact sums: the sums of kernels as Python integers, so that no order of adding or merging changes a bit.

A kernel keeps a sum as a few int64 digits (three for values in [-1, 1], many for any double). Here the digits become
one integer, a multiple of 2^-scale. Integers add and merge exactly, and are divided once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fastrec.metrics.dual import slopes
from fastrec.metrics.errors import root, variance_of_ratio

SQUARE_BITS = 52  # a square is rounded to 53 bits

Array = np.ndarray[Any, Any]


def sum_digits(fixed: Array, general: Array) -> Array:
    """Return integers from the digits of sums, object (n_groups, n_fixed + n_general, 2).

    `fixed` is int64 (groups, rows, 6): three digits of the sum, three of the sum of squares, base 2^32, after the
    point; `general` is int64 (groups, rows, 2, digits), in steps of 2^-GENERAL_SCALE. Up to 2^31 values fit into both.
    """
    n_groups, n_fixed = fixed.shape[:2]
    totals = np.zeros((n_groups, n_fixed + general.shape[1], 2), dtype=object)
    places = fixed.astype(object).reshape(n_groups, n_fixed, 2, 3)
    totals[:, :n_fixed] = places[..., 0] * (1 << 64) + places[..., 1] * (1 << 32) + places[..., 2]
    totals[:, n_fixed:] = join_digits(general[None])
    return totals


def join_digits(digits: Array) -> Array:
    """Return the integers of which the last axis holds base 2^32 digits, and the first axis parts, as objects."""
    joined = np.zeros(digits.shape[1:-1], object)
    places = np.argwhere(digits)
    for value, (_, *place, digit) in zip(digits[digits != 0].tolist(), places.tolist(), strict=True):
        joined[tuple(place)] += value << (32 * digit)
    return joined


def as_fraction(total: int, scale: int) -> Fraction:
    """Return total * 2^-scale."""
    return Fraction(int(total), 1 << scale)


def mean_and_error(n: int, total: int, squares: int, scale: int) -> tuple[float, float]:
    """Return mean and standard error (sample standard deviation / sqrt(n)) of n values; NaN if undefined."""
    if n == 0:
        return float("nan"), float("nan")
    mean = total / (n << scale)
    if n == 1:
        return mean, float("nan")
    # computed in integers: the difference of nearly equal sums carries only the rounding of each square
    spread = (n * squares << scale) - total * total
    if abs(spread) <= (n * squares << scale) >> SQUARE_BITS:
        return mean, 0.0
    return mean, root(spread, (n * n * (n - 1)) << (2 * scale))


def weighted_mean_and_error(
    n: int, weight: Fraction, weight_squares: Fraction, total: Fraction, cross: Fraction, squares: Fraction
) -> tuple[float, float]:
    """Return the weighted mean and its standard error, sqrt(n / (n - 1) * sum w^2 (v - mean)^2) / sum w.

    `total` = sum w v, `cross` = sum w^2 v, `squares` = sum w^2 v^2.
    """
    if n == 0 or weight == 0:
        return float("nan"), float("nan")
    mean = total / weight
    if n == 1:
        return float(mean), float("nan")
    return float(mean), _root(Fraction(*variance_of_ratio(n, weight, total, weight_squares, cross, squares)))


def combined_error(
    function: Callable[..., Any], means: Sequence[Fraction], covariance: Sequence[Sequence[Fraction]]
) -> float:
    """Return the standard error of a function of means by the delta method: sqrt(g' C g) for their covariance C.

    It is NaN if the function has no slopes g, see `fastrec.metrics.dual`.
    """
    found = slopes(function, means)
    if found is None:
        return math.nan
    exact = [Fraction(slope) for slope in found]
    terms = (a * c * b for a, line in zip(exact, covariance, strict=True) for b, c in zip(exact, line, strict=True))
    return _root(sum(terms, Fraction(0)))


def _root(variance: Fraction) -> float:
    return root(variance.numerator, variance.denominator)

"""Statistics of targets and predictions: relative errors, shares of the spread, and exact sums."""

from __future__ import annotations

import math

import numpy as np

from .codes import GENERAL_SCALE, TARGET_SCALE
from .jit import njit, prange
from .runs import NO_SUM, add_product, two_sum, weight_of
from .sums import add_digits

HALF = 27  # bits of the low half of the mantissa of a double
LOW = (1 << HALF) - 1


@njit
def sum_of_relative_errors(least, labels, scores, weights):
    """Return the sum of w |score - label| / max(|label|, least)."""
    total = 0.0
    for j in range(len(scores)):
        target = np.float64(labels[j])
        total += weight_of(weights, j) * (abs(np.float64(scores[j]) - target) / max(abs(target), least))
    return total


@njit
def sum_of_targets(parameter, labels, weights):
    """Return the sum of w label^power; the power is 0, 1 or 2."""
    total = 0.0
    for j in range(len(labels)):
        target = np.float64(labels[j])
        power = target if parameter == 1.0 else target * target
        total += weight_of(weights, j) * (1.0 if parameter == 0.0 else power)
    return total


@njit
def targets_differ(labels, weights):
    """Return 1 if two rows with weight have different targets, else 0."""
    first = -1
    for j in range(len(labels)):
        if weight_of(weights, j) > 0.0:
            first = j if first < 0 else first
            if labels[j] != labels[first]:
                return 1.0
    return 0.0


@njit
def mean_target(labels, weights):
    """Return the mean label of rows, a few of which have weight."""
    total, rows = NO_SUM, 0.0
    for j in range(len(labels)):
        total = add_product(total, weight_of(weights, j), np.float64(labels[j]))
        rows += weight_of(weights, j)
    return (total[0] + (total[1] + total[2])) / rows


@njit
def unexplained_share(labels, scores, weights):
    """Return the sum of w (score - label)^2 over that of w (label - mean)^2; 0 if all labels are equal.

    Differences are scaled, so that no square vanishes. Those from the mean have its rounding error taken out.
    """
    if targets_differ(labels, weights) == 0.0:
        return 0.0
    mean = mean_target(labels, weights)
    gap, error = 0.0, 0.0
    for j in range(len(labels)):
        if weight_of(weights, j) > 0.0:
            gap = max(gap, abs(np.float64(labels[j]) - mean))
            error = max(error, abs(np.float64(scores[j]) - np.float64(labels[j])))
    large, long = math.frexp(gap)[1], math.frexp(error)[1]
    errors, spread, rest, rows = NO_SUM, NO_SUM, NO_SUM, 0.0
    for j in range(len(labels)):
        weight, target = weight_of(weights, j), np.float64(labels[j])
        if weight > 0.0:
            gap, error = math.ldexp(target - mean, -large), math.ldexp(np.float64(scores[j]) - target, -long)
            errors = add_product(errors, weight, error * error)
            spread = add_product(spread, weight, gap * gap)
            rest = add_product(rest, weight, gap)
            rows += weight
    centred = (spread[0] - rest[0] * (rest[0] / rows)) + (spread[1] + spread[2])
    root = math.ldexp(1.0, min(max(long - large, -1000), 1000))  # Python raises an error beyond 2^1023
    return (errors[0] + (errors[1] + errors[2])) / np.float64(centred) * root * root


# Exact sums


@njit
def split(value):
    """Return the halves of the mantissa of a double, both with its sign, and the exponent of the low one."""
    fraction, exponent = math.frexp(value)
    mantissa = np.int64(fraction * 9007199254740992.0)  # 2^53
    magnitude = abs(mantissa)
    sign = np.int64(-1) if mantissa < 0 else np.int64(1)
    return sign * (magnitude >> HALF), sign * (magnitude & LOW), np.int64(exponent) - 53


@njit
def add_product_of(one, other, weight, is_weighted, digits):
    """Add the product of two doubles and a weight, which are split, to digits in steps of 2^-TARGET_SCALE."""
    at = one[2] + other[2] + (TARGET_SCALE - GENERAL_SCALE)
    first, second, third = one[1] * other[1], one[0] * other[1] + one[1] * other[0], one[0] * other[0]  # below 2^55
    if not is_weighted:
        if first != 0 or second != 0:  # not so for numbers of few digits, such as ratings
            add_digits(first, at, digits)
            add_digits(second, at + HALF, digits)
        add_digits(third, at + 2 * HALF, digits)
    else:
        at += weight[2]
        part, before = first, np.int64(0)
        for nth in range(4):  # digits of 27 bits, so that the products fit
            own = part & LOW if nth < 3 else part
            part = (part >> HALF) + (second if nth == 0 else third if nth == 1 else np.int64(0))
            add_digits(own * weight[1] + before, at + nth * HALF, digits)
            before = own * weight[0]
        add_digits(before, at + 4 * HALF, digits)


@njit
def add_some_targets(labels, scores, weights, codes, first, last, digits):
    """Do as `add_targets` does for rows first..last-1, whose digits are (n_codes, 4, N_TARGET_DIGITS)."""
    unit, is_weighted = split(1.0), len(weights) > 0
    for j in range(first, last):
        own = digits[codes[j] if len(codes) > 0 else 0]
        error, rest = two_sum(np.float64(scores[j]), -np.float64(labels[j]))
        target, gap, weight = split(np.float64(labels[j])), split(error), unit
        if is_weighted:
            weight = split(np.float64(weights[j]))
        add_product_of(unit, unit, weight, is_weighted, own[0])
        add_product_of(target, unit, weight, is_weighted, own[1])
        add_product_of(target, target, weight, is_weighted, own[2])
        add_product_of(gap, gap, weight, is_weighted, own[3])
        if rest != 0.0:
            more = split(rest)
            add_product_of(split(2.0 * error), more, weight, is_weighted, own[3])
            add_product_of(more, more, weight, is_weighted, own[3])


@njit(parallel=True, cache=True)
def add_targets(first, last, labels, scores, weights, codes, edges, digits):
    """Add the sums of w, w y, w y^2 and w (s - y)^2 over the rows of parts first..last-1 to digits, exactly.

    Part p has rows edges[p]..edges[p + 1]-1. If all weights are 1, or all codes 0, their array is of length 0. `digits`
    is int64 (n_parts, n_codes, 4, N_TARGET_DIGITS).
    """
    for part in prange(first, last):
        own = np.int64(part)
        add_some_targets(labels, scores, weights, codes, edges[own], edges[own + 1], digits[own])

"""Weights of ranks, by name, by family and parameter, or from a table."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

__all__ = ["FAMILIES", "WEIGHTS", "Weight", "rank_weights", "sum_of_reciprocals", "weight_of_family"]

Array = np.ndarray[Any, Any]
Weight = Any  # one of WEIGHTS, a family of FAMILIES and its parameter, or a table: a tuple of floats
WEIGHTS = ("one", "reciprocal", "rank", "log2", "log2_flat2", "harmonic")
FAMILIES = ("geometric", "inverse_square", "multiple")
FAR = 20  # from here on the asymptotic series below have all digits of a double
EULER = 0.5772156649015329
SERIES = (1.0, 1 / 2, 1 / 6, 0.0, -1 / 30, 0.0, 1 / 42, 0.0, -1 / 30, 0.0, 5 / 66)


def rank_weights(weight: Weight, n_ranks: int) -> Array:
    """Return weights of ranks 0 (always 0) to n_ranks, by Python's logarithm: NumPy's differs between processors."""
    ranks = range(1, n_ranks + 1)
    out = np.zeros(n_ranks + 1)
    if isinstance(weight, tuple) and weight and weight[0] in FAMILIES:
        out[1:] = _of_family(weight[0], weight[1], ranks)
    elif isinstance(weight, tuple):
        known = min(len(weight), n_ranks)
        out[1 : known + 1] = weight[:known]
    elif weight == "one":
        out[1:] = 1.0
    elif weight == "reciprocal":
        out[1:] = 1.0 / np.arange(1, n_ranks + 1)
    elif weight == "rank":
        out[1:] = np.arange(1, n_ranks + 1)
    elif weight == "log2":
        out[1:] = 1.0 / np.fromiter(map(math.log2, range(2, n_ranks + 2)), float, n_ranks)
    elif weight == "log2_flat2":
        out[1:] = 1.0 / np.maximum(np.fromiter(map(math.log2, ranks), float, n_ranks), 1.0)
    elif weight == "harmonic":  # the sum of 1 / r over the ranks above
        np.cumsum(1.0 / np.arange(1, n_ranks), out=out[2:])
    return out


def _of_family(family: str, parameter: float, ranks: range) -> list[float]:
    """Return the weights of ranks of a family with one parameter."""
    if family == "multiple":  # the weights of the ranks up to n add up to parameter x n + 0.9, rounded down
        ends = [0, *(math.floor(parameter * rank + 0.9) for rank in ranks)]
        return [float(end - start) for start, end in itertools.pairwise(ends)]
    scale = 1.0 if family == "geometric" else _sum_of_inverse_squares(2.0 * parameter)
    return [weight_of_family(family, parameter, rank) / scale for rank in ranks]


def weight_of_family(family: str, parameter: float, rank: float) -> float:
    """Return the weight of a rank that may lie between whole ranks, up to a factor."""
    if family == "geometric":
        return float((1.0 - parameter) * parameter ** (rank - 1))
    distance = rank + (2.0 * parameter - 1.0)
    return 1.0 / distance / distance


def _sum_of_inverse_squares(start: float) -> float:
    """Return the sum of 1 / (start + i)^2 over all i >= 0: the trigamma function."""
    steps = max(0, FAR - math.floor(start))
    z = start + steps
    first = [1.0 / (start + i) / (start + i) for i in range(steps)]
    return math.fsum(first + [factor / z ** (n + 1) for n, factor in enumerate(SERIES)])


def sum_of_reciprocals(n: int) -> float:
    """Return the sum of 1 / r over r = 1, ..., n."""
    if n < FAR:
        return math.fsum(1.0 / rank for rank in range(1, n + 1))
    square = 1.0 / n / n
    rest = 1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    return math.log(n) + EULER + 0.5 / n - square * rest

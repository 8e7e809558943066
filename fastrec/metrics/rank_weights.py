"""Weights of ranks, by name, by family and parameter, or from a table."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from fastrec.kernels.series import inverse_squares

__all__ = ["FAMILIES", "WEIGHTS", "Weight", "rank_weights", "weight_between"]

Array = np.ndarray[Any, Any]
Weight = Any  # one of WEIGHTS, a family of FAMILIES and its parameters, or a table: a tuple of floats
WEIGHTS = ("one", "reciprocal", "rank", "log2", "log2_flat2", "harmonic")
FAMILIES = ("geometric", "inverse_square", "multiple")


def rank_weights(weight: Weight, n_ranks: int) -> Array:
    """Return weights of ranks 0 (always 0) to n_ranks, by Python's logarithm: NumPy's differs between processors."""
    ranks = range(1, n_ranks + 1)
    out = np.zeros(n_ranks + 1)
    if isinstance(weight, tuple) and weight and weight[0] in FAMILIES:
        out[1:] = _of_family(weight, ranks)
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


def _of_family(weight: Weight, ranks: range) -> list[float]:
    """Return the weights of ranks of a family with parameters."""
    family, parameter = weight[:2]
    if family == "multiple":  # the weights of the ranks up to n add up to parameter x n + 0.9, rounded down
        ends = [0, *(math.floor(parameter * rank + 0.9) for rank in ranks)]
        return [float(end - start) for start, end in itertools.pairwise(ends)]
    return [weight_between(weight, rank) for rank in ranks]


def weight_between(weight: Weight, rank: float) -> float:
    """Return the weight of a rank that may lie between whole ranks, in a family that has such weights."""
    family, parameter = weight[:2]
    if family == "geometric":
        return float((1.0 - parameter) * parameter ** (rank - 1))
    depth = weight[2]  # ranks past it have no weight
    if rank > depth:
        return 0.0
    distance = rank + (2.0 * parameter - 1.0)
    return float(1.0 / distance / distance / _sum_of_inverse_squares(parameter, depth))


@functools.cache
def _sum_of_inverse_squares(parameter: float, depth: float) -> float:
    """Return the sum of 1 / (r + 2 parameter - 1)^2 over the ranks up to a depth."""
    rest = 0.0 if math.isinf(depth) else inverse_squares(2.0 * parameter + depth)
    return float(inverse_squares(2.0 * parameter) - rest)

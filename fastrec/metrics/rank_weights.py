"""Weights of ranks, by name, by family and parameter, or from a table."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastrec.kernels.series import inverse_squares

Array = np.ndarray[Any, Any]
Weight = Any  # one of WEIGHTS, a family of FAMILIES and its parameters, or a table: a tuple of floats
FAMILIES = ("geometric", "inverse_square", "multiple")
EULER = 0.5772156649015329
FAR = 20.0  # from here on, the asymptotic series has all digits


def _harmonic(rank: float) -> float:
    """Return the sum of 1 / r over the ranks above; between whole ranks, the digamma function + Euler's constant."""
    near = 0.0
    while rank < FAR:
        near += 1.0 / rank
        rank += 1.0
    series = 1 / 12 - (1 / 120 - (1 / 252 - 1 / (240 * rank**2)) / rank**2) / rank**2
    return EULER - near + math.log(rank) - 0.5 / rank - series / rank**2


_NAMED: dict[str, Callable[[float], float]] = {
    "one": lambda _: 1.0,
    "reciprocal": lambda rank: 1.0 / rank,
    "rank": float,
    "log2": lambda rank: 1.0 / math.log2(rank + 1.0),
    "log2_flat2": lambda rank: 1.0 / max(math.log2(rank), 1.0),
    "harmonic": _harmonic,
}
WEIGHTS = tuple(_NAMED)


def is_table(weight: Weight) -> bool:
    """Return whether the weights of ranks are listed one by one."""
    return isinstance(weight, tuple) and weight[:1] not in [(family,) for family in FAMILIES]


def is_continuous(weight: Weight) -> bool:
    """Return whether there are weights between whole ranks."""
    return not isinstance(weight, tuple) or weight[0] in ("geometric", "inverse_square")


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
    """Return the weight of a rank that may lie between whole ranks; `weight` is continuous."""
    if isinstance(weight, str):
        return _NAMED[weight](rank)
    family, parameter = weight[:2]
    if family == "geometric":
        return float((1.0 - parameter) * parameter ** (rank - 1))
    depth = weight[2]  # ranks past it have no weight
    if rank > depth:
        return 0.0
    distance = rank - 1.0 + 2.0 * parameter
    return float(1.0 / distance / distance / _sum_of_inverse_squares(parameter, depth))


@functools.cache
def _sum_of_inverse_squares(parameter: float, depth: float) -> float:
    """Return the sum of 1 / (r + 2 parameter - 1)^2 over the ranks up to a depth."""
    return float(inverse_squares(2.0 * parameter, depth))

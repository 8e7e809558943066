"""Statistics of the gains of lists against those of the best order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.ragged import read_only
from fastrec.items.listed import ListsAndTruth, fill_by_cutoffs, longest_of
from fastrec.items.sums import MAX_DEPTH, keep_short
from fastrec.kernels import ideal_gains as kernels
from fastrec.kernels.runs import two_sum
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def fill(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel and the `min_gain` of the formula."""
    for (name, least), values in zip(keys, out, strict=True):
        call(getattr(kernels, name), *sides.ideal_sums(least), values, work=2 * len(values))


def fill_orders(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill the number of relevant items, or of their levels of gain; a key has "n_rel" or "levels", and `min_gain`."""
    for (name, least), row in zip(keys, out, strict=True):
        lists, sums = sides.ideal_sums(least)
        row[:] = lists.n_rel if name == "n_rel" else np.minimum(sums.levels[sums.starts], lists.n_rel)


def fill_compatibility(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill overlaps with ideal lists; a key has a cut-off, p, whether to divide by the best overlap, `min_gain`."""
    lengths = sides.listed_rows.n_rec, np.diff(sides.truth.indptr)

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        p, is_normalized, least = key
        lists = sides.graded_lists(least, math.nan)
        given = lists, _depths(p, longest_of(*lengths)), is_normalized, cutoffs, found
        call(kernels.overlap_with_ideal, *given, work=len(lists.ranks) * (1 + len(cutoffs)))

    fill_by_cutoffs(keys, out, fill_one)


@keep_short
def _depths(p: float, deepest: int) -> kernels.DepthWeights:
    if deepest > MAX_DEPTH:
        raise MetricError(f"takes lists and cut-offs up to {MAX_DEPTH:,}, found {deepest:,}")
    powers = np.array([math.pow(p, d) for d in range(deepest)])
    terms = powers / np.arange(1, deepest + 1)
    sums = np.append(0.0, np.cumsum(terms))
    rest = np.append(0.0, np.cumsum(two_sum(sums[:-1], terms)[1]))
    return kernels.DepthWeights(*map(read_only, (sums, rest, np.append(0.0, np.cumsum(powers)))))

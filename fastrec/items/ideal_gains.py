"""Statistics of the gains of lists against those of the best order."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, MetricError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import MADE, BatchSides
from fastrec.items.listed import discounts_of_ranks, fill_by_cutoffs, longest_of
from fastrec.items.sums import MAX_DEPTH, keep_short
from fastrec.kernels import ideal_gains as kernels
from fastrec.kernels.runs import two_sum
from fastrec.metrics.graded import ORDERS, PROVIDER
from fastrec.metrics.providers import provider
from fastrec.metrics.user_models import COMPATIBILITY
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def _ideal_sums(sides: BatchSides, least: float) -> tuple[kernels.GradedLists, kernels.IdealSums]:
    least = max(least, 0.0)
    truth, gains, relevant = sides["truth"], sides["gains of truth"], sides["relevant rows"](least)
    given = () if truth.extra is None else (truth.users[relevant], gains[relevant], truth.n_users)
    if given and (too_large := np.isinf(np.bincount(*given))).any():
        user = sides["names"].user(int(too_large.argmax()))
        raise InputError(f"truth of user {user}: the gains add up to more than a double holds")
    lists = sides["graded lists"](least, 0.0)
    discounts = discounts_of_ranks(longest_of(lists.n_rec, lists.n_rel))
    n_orders = len(lists.orders) - 1
    n = len(lists.ideals) + n_orders
    starts = lists.ideal_starts + (np.arange(truth.n_users) if n_orders > 1 else 0)
    dcg, shares, gains_down_to, counted = np.empty(n), np.empty(n), np.empty(n), np.empty((3, n))
    falls, levels = np.empty((2, n), np.int64)
    tables = dcg, falls, levels, shares, gains_down_to, counted
    sums = kernels.IdealSums(read_only(starts), discounts, *tables)
    # users count, too: with one best order each part takes few steps, but there may be many parts
    call(kernels.add_ideals, lists, sums, work=4 * n + truth.n_users)
    return lists, sums


MADE["ideal sums"] = lambda sides: functools.cache(functools.partial(_ideal_sums, sides))


@provider(PROVIDER, sides=["recs", "truth"], by_part=True, by_event=True)
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel and the `min_gain` of the formula."""
    for (name, least), values in zip(keys, out, strict=True):
        call(getattr(kernels, name), *sides["ideal sums"](least), values, work=2 * len(values))


@provider(ORDERS, sides=["recs", "truth"], is_ordered=False, by_part=True)
def fill_orders(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill the number of relevant items, or of their levels of gain; a key has "n_rel" or "levels", and `min_gain`."""
    for (name, least), row in zip(keys, out, strict=True):
        lists, sums = sides["ideal sums"](least)
        row[:] = lists.n_rel if name == "n_rel" else np.minimum(sums.levels[sums.starts], lists.n_rel)


@provider(COMPATIBILITY, sides=["recs", "truth"], by_part=True)
def fill_compatibility(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill overlaps with ideal lists; a key has a cut-off, p, whether to divide by the best overlap, `min_gain`."""
    truth = sides["truth"]
    lengths = sides["listed rows"].n_rec, np.diff(truth.indptr)

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        p, is_normalized, least = key
        lists = sides["graded lists"](least, math.nan)
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

"""Statistics of the gains of lists against those of the best order."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, MetricError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import BatchSides
from fastrec.items.listed import fill_by_cutoffs, graded_lists, longest_of
from fastrec.items.sums import MAX_DEPTH
from fastrec.kernels import ideal_gains as kernels
from fastrec.kernels.runs import two_sum
from fastrec.metrics.graded import PROVIDER
from fastrec.metrics.providers import provider
from fastrec.metrics.rank_weights import rank_weights
from fastrec.metrics.user_models import COMPATIBILITY
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

Array = np.ndarray[Any, Any]


@functools.cache
def _entry(name: str) -> Entry:
    return Entry(getattr(kernels, name), name, allocates=name == "overlap_with_ideal")


def _graded(sides: BatchSides, least: float) -> tuple[kernels.GradedLists, kernels.IdealSums]:
    truth, gains, relevant = sides["truth"], sides["gains of truth"], sides["relevant rows"](max(least, 0.0))
    given = () if truth.extra is None else (truth.users[relevant], gains[relevant], truth.n_users)
    if given and (too_large := np.isinf(np.bincount(*given))).any():
        user = sides["names"].user(int(too_large.argmax()))
        raise InputError(f"truth of user {user}: the gains add up to more than a double holds")
    lists = graded_lists(sides, gains, relevant, 0.0)
    discounts = rank_weights("log2", longest_of(lists.n_rec, lists.n_rel))
    n_orders = len(lists.orders) - 1
    n = len(lists.ideals) + n_orders
    starts = lists.ideal_starts + (np.arange(truth.n_users) if n_orders > 1 else 0)
    sums = kernels.IdealSums(
        read_only(starts), read_only(discounts), np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty((2, n))
    )
    add = _entry("add_ideals").suited_to(4 * n, lists, sums, 0, 0)
    over_users(functools.partial(add, lists, sums), n_orders, sides["n_threads"])
    return lists, sums


@provider(PROVIDER, sides=["recs", "truth"], by_part=True)
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has a cut-off, the name of a kernel and the `min_gain` of the formula."""
    known = functools.cache(functools.partial(_graded, sides))

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        name, least = key
        lists, sums = known(least)
        given = lists, sums, sides["cuts"](*cutoffs.tolist()), found
        run = _entry(name).suited_to(2 * len(lists.ranks) + found.size, *given, 0, 0)
        over_users(functools.partial(run, *given), len(lists.n_rec), sides["n_threads"])

    fill_by_cutoffs(keys, out, fill_one)


@provider(COMPATIBILITY, sides=["recs", "truth"], by_part=True)
def fill_compatibility(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill overlaps with ideal lists; a key has a cut-off, p, whether to divide by the best overlap, `min_gain`."""
    truth = sides["truth"]
    gains = sides["gains of at least 0"]
    lengths = sides["listed rows"].n_rec, np.diff(truth.indptr)

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        p, is_normalized, least = key
        lists = graded_lists(sides, gains, sides["relevant rows"](least), math.nan)
        given = lists, _depths(p, longest_of(*lengths)), is_normalized, cutoffs, found
        steps = len(lists.ranks) + int(np.minimum(lengths[0], cutoffs[-1]).sum())
        run = _entry("overlap_with_ideal").suited_to(steps, *given, 0, 0)
        over_users(functools.partial(run, *given), truth.n_users, sides["n_threads"])

    fill_by_cutoffs(keys, out, fill_one)


@functools.lru_cache(maxsize=16)
def _depths(p: float, deepest: int) -> kernels.DepthWeights:
    if deepest > MAX_DEPTH:
        raise MetricError(f"takes lists and cut-offs up to {MAX_DEPTH:,}, found {deepest:,}")
    powers = np.array([math.pow(p, d) for d in range(deepest)])
    terms = powers / np.arange(1, deepest + 1)
    sums = np.append(0.0, np.cumsum(terms))
    rest = np.append(0.0, np.cumsum(two_sum(sums[:-1], terms)[1]))
    return kernels.DepthWeights(*map(read_only, (sums, rest, np.append(0.0, np.cumsum(powers)))))

"""Exposure of items: how many lists hold each item up to a cut-off, as counts that add and merge exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.users import alike, pack_ids, unpack_ids
from fastrec.metrics.rank_weights import Weight, is_table, rank_weights

Array = np.ndarray[Any, Any]
Key = tuple[int | None, Any]  # a cut-off, and the weight of a rank, "length" or "history"
PLACES = 26  # bits of the lower of the two integers that hold a weight
DENSE = 16  # a table of all counts may have so many entries per item


class Levels(NamedTuple):
    """The distinct positive exposures of items."""

    distinct: Array  # ascending: int64, or float64 for weights
    times: Array  # int64: the items with each
    of_items: Array  # int64 (n_items,): the position of the exposure of each item + 1, 0 for an item without exposure


class Effects(NamedTuple):
    """What each list adds to a metric: an offset, and the sum over its items of their values and weights of ranks."""

    values: Array  # float64 (n_levels + 1,), the first 0
    levels: Array  # int64 (n_items,), of the items of the exposure: positions in `values`
    k: int | None
    weight: Weight = "one"
    offset: float = 0.0
    by_length: bool = False  # divide the sum by the square root of the length of the list within k


class Exposure:
    """Counts of lists by item, of a set of users. They add and merge in any order with the same result.

    Each key has one number per item: the lists that hold it; sums of weights of ranks, or under "length" of
    1 / sqrt(length of the list), as two integers; under "history" the lists that hold it, of items of the history only.
    """

    weighted = False

    def __init__(
        self,
        keys: Sequence[Key],
        ids: Array | None = None,
        counts: Mapping[tuple[int, int], Array] | None = None,
        n_lists: int = 0,
        n_known: int = 0,
    ) -> None:
        self.keys = tuple(keys)
        self.ids = np.zeros(0, np.int64) if ids is None else ids  # items, ascending
        self._counts = dict(counts or {})  # (position of the key, step) -> int64 (n_ids,)
        self.n_lists = n_lists  # with an item
        self._n_known = n_known  # items of the history
        self._levels: dict[Key, Levels] = {}

    def merge(self, other: Exposure) -> None:
        """Add the lists of other users."""
        self.n_lists += other.n_lists
        self._levels = {}
        self._n_known = max(self._n_known, other._n_known)
        if not len(other.ids):
            return
        if not len(self.ids):
            self.ids, self._counts = other.ids, dict(other._counts)
            return
        mine, theirs = alike([self.ids, other.ids])
        ids, at = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
        counts = {}
        for name in {**self._counts, **other._counts}:
            counts[name] = np.zeros(len(ids), np.int64)
            for own, places in ((self._counts, at[: len(mine)]), (other._counts, at[len(mine) :])):
                if name in own:
                    counts[name][places] += own[name]
        self.ids, self._counts = ids, counts

    def pack(self) -> dict[str, Array]:
        """Return the counts as arrays."""
        order = sorted(self._counts)
        return {
            "names": np.array(order, np.int64).reshape(-1, 2),
            "counts": np.array([self._counts[name] for name in order], np.int64).reshape(len(order), len(self.ids)),
            "users": np.array([self.n_lists, self._n_known], np.int64),
            **pack_ids(self.ids, "ids"),
        }

    def lists_of_items(self, key: Key) -> Array:
        """Return the positive numbers of lists that hold an item, int64, in no particular order."""
        counts = self.lists_by_item(key)[1]
        return counts[counts > 0]

    def lists_by_item(self, key: Key) -> tuple[Array, Array]:
        """Return items in ascending order, and the lists that hold each, int64 (n_items,); some may be in none."""
        return self.ids, self._numbers(key, 0)

    def _numbers(self, key: Key, step: int) -> Array:
        return self._counts.get((self.keys.index(key), step), np.zeros(len(self.ids), np.int64))

    def exposures(self, key: Key) -> Array:
        """Return the exposure of each item: int64, or float64 for weights."""
        high = self._numbers(key, 0)
        if key[1] in ("one", "history"):
            return high
        scale = _exponent(key[1]) - PLACES
        found: Array = np.ldexp(high.astype(float), scale) + np.ldexp(
            self._numbers(key, 1).astype(float), scale - PLACES
        )
        return found

    def levels(self, key: Key) -> Levels:
        """Return the distinct exposures of items."""
        if key not in self._levels:
            self._levels[key] = _levels_of(self.exposures(key))
        return self._levels[key]

    def coverage(self, key: Key, n_items: float | None) -> float:
        """Return the number of distinct items / `n_items`, / the items of the history, or itself without both."""
        found = len(self.lists_of_items(key))
        if key[1] == "history":
            return found / self._n_known if self._n_known else math.nan
        if n_items is None:
            return float(found)
        _check_size(n_items, found)
        return found / n_items

    def gini(self, key: Key, n_items: float | None, correction: str) -> float:
        """Return the Gini index of the exposures of `n_items` items, of the shown ones without this number."""
        distinct, times, _ = self.levels(key)
        n, ranks = self._ranks(key, n_items)
        if not len(distinct):
            return math.nan
        divisor = n - 1 if correction == "n_minus_1" else n
        return _dot(distinct, times, ranks) / (divisor * _dot(distinct, times)) if divisor else 0.0

    def _ranks(self, key: Key, n_items: float | None) -> tuple[int, Array]:
        """Return the number of items, and 2 x mid-rank - n - 1 of each level."""
        times = self.levels(key).times
        shown = int(times.sum())
        n = shown if n_items is None else int(n_items)
        _check_size(n, shown)
        ends = np.cumsum(times)
        return n, (n - shown) + (ends - shown) + (ends - times)

    def entropy(self, key: Key, base: Any, n_items: float | None) -> float:
        """Return the entropy of the exposures, divided by log `n_items` if given."""
        distinct, times, _ = self.levels(key)
        if not len(distinct):
            return math.nan
        total = _dot(distinct, times)
        log = math.log2 if base == 2 else math.log
        pairs = zip(distinct.tolist(), times.tolist(), strict=True)
        bits = math.fsum(n * own * log(total / own) for own, n in pairs) / total
        unit = 1.0 if base in (2, "e") else math.log(base)
        if n_items is not None:
            _check_size(n_items, int(times.sum()))
            unit = log(n_items)
        return bits / unit if unit else 0.0

    def personalization(self, key: Key) -> float:
        """Return 1 - the mean overlap of the lists of two users, over all pairs of users."""
        n = self.n_lists
        if n < 2:
            return math.nan
        distinct, times, _ = self.levels(key)
        if key[1] == "length":
            return 1.0 - (_dot(distinct * distinct, times) - n) / (n * (n - 1))
        k = key[0]
        assert k is not None
        return 1.0 - _dot(distinct, distinct - 1, times) / (k * n * (n - 1))

    def gini_effects(self, key: Key, n_items: float | None, correction: str) -> Effects:
        """Return the effects of lists on the Gini index."""
        distinct, times, _ = self.levels(key)
        n, ranks = self._ranks(key, n_items)
        divisor = (n - 1 if correction == "n_minus_1" else n) or 1
        total = float(_dot(distinct, times)) or 1.0
        values = ranks / (divisor * total) - self.gini(key, n_items, correction) / total
        return self._effects(key, self.n_lists * values)

    def entropy_effects(self, key: Key, base: Any, n_items: float | None) -> Effects:
        """Return the effects of lists on the entropy."""
        distinct, times, _ = self.levels(key)
        total = float(_dot(distinct, times)) or 1.0
        unit = 1.0 if base == "e" else math.log(base)
        if n_items is not None:
            unit = math.log(n_items) or 1.0
        logs = np.array([math.log(total / own) for own in distinct.tolist()]) / unit
        return self._effects(key, self.n_lists / total * (logs - self.entropy(key, base, n_items)))

    def personalization_effects(self, key: Key) -> Effects:
        """Return the effects of lists on the personalization."""
        others, mean = max(self.n_lists - 1, 1), 1.0 - self.personalization(key)
        distinct = self.levels(key).distinct
        if key[1] == "length":
            found = self._effects(key, -2 * distinct / others)
            return found._replace(weight="one", offset=2 * mean + 2 / others, by_length=True)
        assert key[0] is not None
        return self._effects(key, -2 * (distinct - 1) / (key[0] * others))._replace(offset=2 * mean)

    def _effects(self, key: Key, values: Array) -> Effects:
        """Return effects from the value of each level."""
        return Effects(np.append(0.0, values), self.levels(key).of_items, *key)


def _levels_of(exposures: Array) -> Levels:
    shown = exposures > 0
    found = exposures[shown]
    of_items = np.zeros(len(exposures), np.int64)
    largest = found.max(initial=0)
    if found.dtype.kind == "i" and largest <= max(1 << 16, DENSE * len(found)):  # counts need no sorting
        times = np.bincount(found)
        distinct = np.flatnonzero(times)
        places = np.zeros(len(times), np.int64)
        places[distinct] = np.arange(1, len(distinct) + 1)
        of_items[shown] = places[found]
        return Levels(distinct, times[distinct], of_items)
    distinct, at, times = np.unique(found, return_inverse=True, return_counts=True)
    of_items[shown] = at + 1
    return Levels(distinct, times, of_items)


def fixed_weights(weight: Any, n: int) -> Array:
    """Return the weights of ranks, or of lengths, 1 to n, as two integers each, int64 (n, 2).

    They are in steps of 2^-26 and 2^-52 of the power of two below the largest weight. No positive weight becomes 0.
    """
    if weight == "length":
        weights = np.array([1.0 / math.sqrt(length) for length in range(1, n + 1)])
    else:
        weights = rank_weights(weight, n)[1:]
    steps = np.rint(np.ldexp(weights, 2 * PLACES - _exponent(weight))).astype(np.int64)
    steps = np.maximum(steps, weights > 0)
    return np.stack([steps >> PLACES, steps & (1 << PLACES) - 1], axis=1)


def _exponent(weight: Any) -> int:
    """Return the exponent of the power of two below the largest weight. Weights but those of a table descend."""
    largest = 1.0 if weight == "length" else max(weight) if is_table(weight) else float(rank_weights(weight, 1)[1])
    return math.frexp(largest)[1] - 1 if largest > 0 else 0


def _check_size(n_items: float, found: int) -> None:
    if n_items < found:
        raise MetricError(Argument("n_items", (int(n_items),)), f" is too small: the lists hold {found} distinct items")


def _dot(values: Array, *factors: Array) -> float:
    """Return the sum of products: exact for integers, of products rounded once for floats."""
    if values.dtype.kind == "f":
        return math.fsum((values * math.prod(factors)).tolist())
    largest = math.prod(int(abs(own).max(initial=0)) for own in (values, *factors))
    if largest * len(values) < 1 << 62:
        return int(math.prod(factors, start=values).sum())
    return sum(map(math.prod, zip(*(own.tolist() for own in (values, *factors)), strict=True)))  # of any size


def unpack_exposure(arrays: Mapping[str, Array], keys: Sequence[Key]) -> Exposure:
    """Undo `pack`; raise InputError for arrays that no `pack` writes."""
    names, counts, users = (arrays[name] for name in ("names", "counts", "users"))
    if names.ndim != 2 or names.shape[1] != 2 or counts.ndim != 2 or len(names) != len(counts) or users.shape != (2,):
        raise InputError("exposures of items have arrays of other shapes")
    if any(own.dtype.kind not in "iu" for own in (names, counts, users)) or counts.min(initial=0) < 0:
        raise InputError("exposures of items must be integers from 0")
    if names[:, 0].max(initial=-1) >= len(keys) or names.min(initial=0) < 0:
        raise InputError(f"exposures of items have {len(keys)} keys, found others")
    ids = unpack_ids(arrays, counts.shape[1], "ids")
    if ids is None or len(set(ids.tolist())) < len(ids):
        raise InputError("exposures of items must have one row per item")
    wide = {(int(at), int(step)): own.astype(np.int64) for (at, step), own in zip(names, counts, strict=True)}
    return Exposure(keys, ids, wide, int(users[0]), int(users[1]))

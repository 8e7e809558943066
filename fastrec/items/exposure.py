"""Exposure of items: how many lists hold each item up to a cut-off, as counts that add and merge exactly."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ids import spell
from fastrec.inputs.packed import pack_ids, unpack_ids
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.inputs.slots import Slots
from fastrec.inputs.users import Users, alike, as_labels
from fastrec.items.sums import UNCUT, cuts_of, sum_rows, sum_values
from fastrec.kernels import exposure as kernels
from fastrec.metrics.statistics import Weight, rank_weights
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads

__all__ = ["Effects", "Exposure", "Key", "collect_exposure", "effects_of_lists", "unpack_exposure"]

Array = np.ndarray[Any, Any]
Key = tuple[int | None, Any]  # a cut-off, and the weight of a rank, "length" or "history"
PLACES = 26  # bits of each of the two integers that hold the weight of a rank
ROWS_PER_TABLE = 1 << 20  # from which on a thread with a table of its own pays


class Effects(NamedTuple):
    """What each list adds to a metric: an offset, and the sum over its items of their values and weights of ranks."""

    values: Array  # float64, of the items of the exposure
    k: int | None
    weight: Weight = "one"
    offset: float = 0.0
    by_length: bool = False  # divide the sum by the square root of the length of the list within k


class Exposure:
    """Counts of lists by item, of a set of users. They add and merge in any order with the same result.

    Each key has one number per item: the lists that hold it, or sums of the weights of its ranks, as two integers in
    steps of 2^-26 and 2^-52; under "length" one number for each length of lists; under "history" the lists that hold
    it, of items of the history only.
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
        self._ids = np.zeros(0, np.int64) if ids is None else ids  # ascending
        self._counts = dict(counts or {})  # (position of the key, step or length) -> int64 (n_ids,)
        self.n_lists = n_lists  # with an item
        self._n_known = n_known  # items of the history
        self._sorted: dict[Key, Array] = {}

    def merge(self, other: Exposure) -> None:
        """Add the lists of other users."""
        self.n_lists += other.n_lists
        self._sorted = {}
        self._n_known = max(self._n_known, other._n_known)
        if not len(other._ids):
            return
        if not len(self._ids):
            self._ids, self._counts = other._ids, dict(other._counts)
            return
        mine, theirs = alike([self._ids, other._ids])
        ids, at = np.unique(np.concatenate([mine, theirs]), return_inverse=True)
        counts = {}
        for name in {**self._counts, **other._counts}:
            counts[name] = np.zeros(len(ids), np.int64)
            for own, places in ((self._counts, at[: len(mine)]), (other._counts, at[len(mine) :])):
                if name in own:
                    counts[name][places] += own[name]
        self._ids, self._counts = ids, counts

    def pack(self) -> dict[str, Array]:
        """Return the counts as arrays."""
        order = sorted(self._counts)
        return {
            "names": np.array(order, np.int64).reshape(-1, 2),
            "counts": np.array([self._counts[name] for name in order], np.int64).reshape(len(order), len(self._ids)),
            "users": np.array([self.n_lists, self._n_known], np.int64),
            **pack_ids(self._ids, "ids"),
        }

    def lists_of_items(self, key: Key, step: int = 0) -> Array:
        """Return the positive numbers of lists that hold an item, int64, in no particular order."""
        found = self._counts.get((self.keys.index(key), step), np.zeros(0, np.int64))
        return found[found > 0]

    def lists_by_item(self, key: Key) -> tuple[Array, Array]:
        """Return items in ascending order, and the lists that hold each, int64 (n_items,); some may be in none."""
        return self._ids, self._counts.get((self.keys.index(key), 0), np.zeros(len(self._ids), np.int64))

    def exposures(self, key: Key) -> Array:
        """Return the positive exposures of items, in ascending order: int64, or float64 for weights of ranks."""
        if key not in self._sorted:
            self._sorted[key] = np.sort(self._exposures(key))
        return self._sorted[key]

    def _exposures(self, key: Key) -> Array:
        if key[1] == "one":
            return self.lists_of_items(key)
        high, low = (self._counts.get((self.keys.index(key), step), np.zeros(0, np.int64)) for step in range(2))
        found = np.ldexp(high.astype(np.float64), -PLACES) + np.ldexp(low.astype(np.float64), -2 * PLACES)
        return found[found > 0]

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
        shown = self.exposures(key)
        n = len(shown) if n_items is None else int(n_items)
        _check_size(n, len(shown))
        if not len(shown):
            return math.nan
        ranks = np.arange(n - len(shown) + 1, n + 1)
        total = _total(shown)
        spread = _total(shown, 2 * ranks - n - 1)
        divisor = n - 1 if correction == "n_minus_1" else n
        return spread / (divisor * total) if divisor else 0.0

    def entropy(self, key: Key, base: Any, n_items: float | None) -> float:
        """Return the entropy of the exposures, divided by log `n_items` if given."""
        shown = self.exposures(key)
        if not len(shown):
            return math.nan
        total = _total(shown)
        distinct, starts = _runs(shown)
        log = math.log2 if base == 2 else math.log
        pairs = zip(distinct.tolist(), np.diff(starts).tolist(), strict=True)
        bits = math.fsum(n * own * log(total / own) for own, n in pairs) / total
        unit = 1.0 if base in (2, "e") else math.log(base)
        if n_items is not None:
            _check_size(n_items, len(shown))
            unit = log(n_items)
        return bits / unit if unit else 0.0

    def codes(self, strings: Sequence[Any] | None) -> Array:
        """Return the items in the numbering of a batch; -1 for items that it lacks."""
        if strings is None:
            return self._ids
        known = as_labels(spell(strings, np.arange(len(strings))))
        mine, known = alike([self._ids, known])
        order = np.argsort(known, kind="stable")
        at = np.minimum(np.searchsorted(known, mine, sorter=order), len(known) - 1)
        found: Array = np.where(known[order[at]] == mine, order[at], -1)
        return found

    def _exposures_of_ids(self, key: Key) -> Array:
        """Return the exposures of all items, float64."""
        at = self.keys.index(key)
        high = self._counts[at, 0].astype(np.float64)
        if key[1] == "one":
            return high
        found: Array = np.ldexp(high, -PLACES) + np.ldexp(self._counts[at, 1].astype(np.float64), -2 * PLACES)
        return found

    def gini_effects(self, key: Key, n_items: float | None, correction: str) -> Effects:
        """Return the effects of lists on the Gini index."""
        shown = self.exposures(key)
        distinct, starts = _runs(shown)
        n = len(shown) if n_items is None else int(n_items)
        divisor = (n - 1 if correction == "n_minus_1" else n) or 1
        mid_ranks = n - len(shown) + (starts[:-1] + starts[1:] + 1) / 2
        total = float(shown.sum()) or 1.0
        values = (2 * mid_ranks - n - 1) / (divisor * total) - self.gini(key, n_items, correction) / total
        return Effects(self._of_items(key, distinct, self.n_lists * values), *key)

    def entropy_effects(self, key: Key, base: Any, n_items: float | None) -> Effects:
        """Return the effects of lists on the entropy."""
        shown = self.exposures(key)
        distinct, _ = _runs(shown)
        total = float(shown.sum()) or 1.0
        unit = 1.0 if base == "e" else math.log(base)
        if n_items is not None:
            unit = math.log(n_items) or 1.0
        logs = np.array([math.log(total / own) for own in distinct.tolist()]) / unit
        values = self.n_lists / total * (logs - self.entropy(key, base, n_items))
        return Effects(self._of_items(key, distinct, values), *key)

    def _of_items(self, key: Key, distinct: Array, values: Array) -> Array:
        """Return the value of each item by its exposure, one of distinct ones; 0 for items without exposure."""
        found = self._exposures_of_ids(key)
        table = np.append(values, 0.0)
        return np.where(found > 0, table[np.searchsorted(distinct, found)], 0.0)

    def personalization_effects(self, key: Key) -> Effects:
        """Return the effects of lists on the personalization."""
        k, weight = key
        others, mean = max(self.n_lists - 1, 1), 1.0 - self.personalization(key)
        if weight == "length":
            at = self.keys.index(key)
            sums = np.zeros(len(self._ids))
            for place, length in sorted(self._counts):
                if place == at:
                    sums += self._counts[place, length] / math.sqrt(length)
            return Effects(-2 * sums / others, k, offset=2 * mean + 2 / others, by_length=True)
        assert k is not None
        return Effects(-2 * (self._exposures_of_ids(key) - 1) / (k * others), k, offset=2 * mean)

    def personalization(self, key: Key) -> float:
        """Return 1 - the mean overlap of the lists of two users, over all pairs of users."""
        n = self.n_lists
        if n < 2:
            return math.nan
        if key[1] == "length":
            return 1.0 - (self._shared_by_length(key) - n) / (n * (n - 1))
        lists = self.lists_of_items(key)
        k = key[0]
        assert k is not None
        return 1.0 - _total(lists, lists - 1) / (k * n * (n - 1))

    def _shared_by_length(self, key: Key) -> float:
        """Return the sum over items of the square of the sum over lists of 1 / sqrt(length)."""
        at = self.keys.index(key)
        sums = np.zeros(len(self._ids))
        for place, length in sorted(self._counts):
            if place == at:
                sums += self._counts[place, length] / math.sqrt(length)
        return math.fsum((sums * sums).tolist())


def effects_of_lists(
    exposure: Exposure, effects: Sequence[Effects], sides: Mapping[str, Any], users: Array, n_threads: int
) -> Iterator[Array]:
    """Yield the effects of the lists of some users, float64 (n_users,), on metrics of one cut-off and weight."""
    slots: Slots = sides["slots"]
    codes = exposure.codes(sides["names"].strings)
    values = np.stack([slots.spread(codes, own.values, 0.0) for own in effects], axis=1)
    indptr, rows = sides["recs"].indptr, slots.of_rows
    lengths = np.diff(indptr)[users]
    ends = np.concatenate([[0], np.cumsum(lengths)])
    if len(users) < len(indptr) - 1:
        rows = rows[np.arange(ends[-1]) + np.repeat(indptr[:-1][users] - ends[:-1], lengths)]
    cuts, _ = cuts_of([effects[0].k])
    if effects[0].weight == "one":
        sums = sum_values(rows, ends, cuts, values, n_threads)[:, 0]
    else:
        columns = np.ascontiguousarray(values.T)
        sums = np.stack([sum_rows(own[rows], ends, cuts, effects[0].weight, n_threads)[0] for own in columns])
    roots = np.sqrt(np.maximum(np.minimum(lengths, cuts[0]), 1))
    for own, total in zip(effects, sums, strict=True):
        yield own.offset + (total / roots if own.by_length else total)


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


def _runs(ascending: Array) -> tuple[Array, Array]:
    """Return distinct values, and where the run of each begins, followed by the number of values."""
    starts = np.flatnonzero(np.diff(ascending, prepend=-1))
    return ascending[starts], np.append(starts, len(ascending))


def _check_size(n_items: float, found: int) -> None:
    if n_items < found:
        raise MetricError(Argument("n_items", (int(n_items),)), f" is too small: the lists hold {found} distinct items")


def _total(values: Array, factors: Array | None = None) -> float:
    """Return the sum of values, times factors if given: exact for integers, rounded once for floats."""
    if values.dtype.kind == "f":
        return math.fsum((values if factors is None else values * factors).tolist())
    if factors is None:
        return int(values.sum())
    if len(values) and int(abs(factors).max()) * int(values.max()) * len(values) >= 1 << 62:
        pairs = zip(values.tolist(), factors.tolist(), strict=True)  # Python's integers have any size
        return float(sum(own * factor for own, factor in pairs))
    return int((values * factors).sum())


def collect_exposure(
    sides: Mapping[str, Any], _: float, keys: tuple[Any, ...], n_threads: int
) -> Iterator[tuple[Any, Exposure]]:
    """Yield the exposure of a batch, over all users and for each group."""
    users: Users = sides["users"]
    if users.weights is not None:
        raise InputError(
            Argument("user_weight"), " does not apply to metrics of the exposure of items: lists count once"
        )
    recs: FlatSide = sides["recs"]
    batch = _Batch(sides, keys, n_threads)
    yield None, batch.count(np.arange(recs.n_users))
    for codes in users.groups:
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for members in np.split(order, starts[1:]) if len(order) else ():
            yield users.keys[codes[members[0]] - 1], batch.count(members)


class _Batch:
    """The lists of a batch, by the slots of their items."""

    def __init__(self, sides: Mapping[str, Any], keys: tuple[Key, ...], n_threads: int) -> None:
        self._slots: Slots = sides["slots"]
        self._indptr: Array = sides["recs"].indptr
        self._strings = sides["names"].strings
        self._keys, self._n_threads = keys, n_threads
        self._known, self._n_known = None, 0
        if any(weight == "history" for _, weight in keys):
            codes = sides["counts"].codes
            self._known, self._n_known = self._slots.spread(codes, np.ones(len(codes), bool), False), len(codes)  # noqa: FBT003

    def count(self, users: Array) -> Exposure:
        """Return the exposure of the lists of some users."""
        lengths = np.diff(self._indptr)[users]
        n_lists = int(np.count_nonzero(lengths))
        if lengths.sum() >= self._slots.n:
            counts, own = _Counter(self._slots.of_rows, self._indptr, users, self._slots.n, self._n_threads), None
        else:  # few rows: tables of all slots would cost more than they hold
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            rows = np.arange(indptr[-1]) + np.repeat(self._indptr[:-1][users] - indptr[:-1], lengths)
            own, of_rows = np.unique(self._slots.of_rows[rows], return_inverse=True)
            counts = _Counter(of_rows, indptr, np.arange(len(users)), len(own), 1)
        found = counts.of(self._keys)
        if self._known is not None:
            shown = self._known if own is None else self._known[own]
            for nth, key in enumerate(self._keys):
                if key[1] == "history":
                    found[nth, 0] = found[nth, 0] * shown
        held = np.flatnonzero(
            functools.reduce(np.logical_or, (one > 0 for one in found.values()), np.zeros(counts.n, bool))
        )
        ids = self._slots.items(held if own is None else own[held])
        order = np.argsort(ids, kind="stable")
        ids = ids[order] if self._strings is None else as_labels(spell(self._strings, ids[order]))
        return Exposure(
            self._keys, ids, {name: one[held[order]] for name, one in found.items()}, n_lists, self._n_known
        )


class _Counter(NamedTuple):
    """Counts of the slots of the lists of some users."""

    of_rows: Array
    indptr: Array
    users: Array
    n: int
    n_threads: int

    def of(self, keys: Sequence[Key]) -> dict[tuple[int, int], Array]:
        """Return the numbers of all slots under each key; see `Exposure`."""
        found: dict[tuple[int, int], Array] = {}
        for weight in dict.fromkeys("one" if own == "history" else own for _, own in keys):
            names = ("one", "history") if weight == "one" else (weight,)
            at = [nth for nth, key in enumerate(keys) if key[1] in names]
            if weight == "length":
                for nth in at:
                    found |= {(nth, length): one for length, one in self._by_length(keys[nth][0])}
                continue
            cuts, columns = cuts_of([keys[nth][0] for nth in at])
            tables = [self.table(cuts, None)] if weight == "one" else self._weighted(cuts, weight)
            for step, table in enumerate(tables):
                up_to = np.cumsum(table, axis=1)
                found |= {(nth, step): up_to[:, column] for nth, column in zip(at, columns, strict=True)}
        return found

    def _by_length(self, k: int | None) -> Iterator[tuple[int, Array]]:
        """Yield the lists that hold each slot, by their length within k."""
        lengths = np.minimum(np.diff(self.indptr)[self.users], UNCUT if k is None else k)
        cuts, _ = cuts_of([k])
        for length in np.unique(lengths[lengths > 0]).tolist():
            yield length, self._replace(users=self.users[lengths == length]).table(cuts, None)[:, 0]

    def _weighted(self, cuts: Array, weight: Weight) -> list[Array]:
        """Return sums of weights of ranks, in two steps."""
        fixed = np.rint(np.ldexp(rank_weights(weight, longest_row(self.indptr))[1:], 2 * PLACES)).astype(np.int64)
        table = self.table(cuts, np.stack([fixed >> PLACES, fixed & (1 << PLACES) - 1], axis=1))
        return [table[:, :, 0], table[:, :, 1]]

    def table(self, cuts: Array, weights: Array | None) -> Array:
        """Return the table that a kernel fills, in threads with a table each."""
        rows = int(np.diff(self.indptr)[self.users].sum())
        n_parts = min(self.n_threads, max(1, rows // ROWS_PER_TABLE))
        edges = len(self.users) * np.arange(n_parts + 1) // n_parts
        name, dtype = ("count_lists", np.int32) if weights is None else ("add_weights", np.int64)
        shape = (self.n, len(cuts)) if weights is None else (self.n, len(cuts), 2)
        run = _entry(name, str(self.of_rows.dtype)).suited_to(rows + len(self.users))
        more = () if weights is None else (read_only(weights),)
        given = tuple(map(read_only, (self.of_rows, self.indptr, self.users, cuts))) + more

        def fill(part: int) -> Array:
            table = np.zeros(shape, dtype)
            run(*given, table, edges[part], edges[part + 1])
            return table

        tables = run_in_threads(fill, range(n_parts), n_parts)
        total: Array = np.asarray(np.sum(tables, axis=0, dtype=np.int64))
        return total


@functools.cache
def _entry(name: str, dtype: str) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{dtype}", allocates=True)

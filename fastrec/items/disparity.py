"""How unequally segments of items are shown or found: chances and hits of each segment, as counts that add exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import counted
from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.users import pack_ids, unpack_ids
from fastrec.items.popularity import SEGMENT, note_unseen, refuse_unknown, table_of_segments
from fastrec.items.sums import find_places
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.statistics import SIZES

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
Key = tuple[Any, ...]  # what, whether seen items are left out, column, min_gain, k, n_items, no_recs of the metric


class SegmentRates:
    """Numbers of chances of segments, and how many were taken. They add and merge in any order."""

    weighted = False

    def __init__(self, keys: Sequence[Key], counts: Mapping[tuple[int, str], tuple[int, int]] | None = None) -> None:
        self.keys = tuple(keys)
        self._counts = dict(counts or {})  # (position of the key, segment) -> taken, chances

    def merge(self, other: SegmentRates) -> None:
        """Add the counts of other users."""
        for name, (taken, chances) in other._counts.items():
            known = self._counts.get(name, (0, 0))
            self._counts[name] = known[0] + taken, known[1] + chances

    def pack(self) -> dict[str, Array]:
        """Return the counts as arrays."""
        order = sorted(self._counts)
        rows = [(at, *self._counts[at, label]) for at, label in order]
        return {
            "counts": np.array(rows, np.int64).reshape(-1, 3),
            **pack_ids(np.array([label for _, label in order] or [""]), "labels"),
        }

    def disparity(self, key: Key) -> float:
        """Return the standard deviation / the mean of the rates of segments; NaN if a segment has no chance."""
        at = self.keys.index(key)
        found = [self._counts[name] for name in sorted(self._counts) if name[0] == at]
        if not found or any(chances == 0 for _, chances in found):
            return math.nan
        rates = [taken / chances for taken, chances in found]
        mean = math.fsum(rates) / len(rates)
        spread = math.fsum((rate - mean) ** 2 for rate in rates) / len(rates)
        return math.sqrt(spread) / mean if mean else 0.0


def unpack_rates(arrays: Mapping[str, Array], keys: Sequence[Key]) -> SegmentRates:
    """Undo `pack`; raise InputError for arrays that no `pack` writes."""
    counts = arrays["counts"]
    if counts.ndim != 2 or counts.shape[1] != 3 or counts.dtype.kind not in "iu" or counts.min(initial=0) < 0:
        raise InputError("rates of segments must be integers from 0")
    labels = unpack_ids(arrays, max(len(counts), 1), "labels")
    if labels is None or counts[:, 0].max(initial=-1) >= len(keys):
        raise InputError("rates of segments must have one label each")
    rows = zip(counts.tolist(), labels.tolist(), strict=False)
    return SegmentRates(keys, {(at, str(label)): (taken, chances) for (at, taken, chances), label in rows})


class _Segments:
    """The segments of the items of a batch: a column of the table of items, or head and tail."""

    def __init__(self, sides: BatchSides, column: str | None, n_items: float | None) -> None:
        table = table_of_segments(sides, column)
        self.by_popularity = table is None
        self.names: list[str]
        if table is not None:
            assert table.codes is not None
            refuse_unknown(sides, sides.slots.mark(table.codes))
            codes, indptr, names = table.categories(column or SEGMENT)
            self.names = list(map(str, names))
            rows = np.repeat(np.arange(len(table.ids)), np.diff(indptr))
            self._items, self._codes = table.codes[rows], codes
            if (np.diff(indptr) > 1).any():
                raise InputError(f"items column {column or SEGMENT!r} must hold one segment per item, found several")
            self.sizes = np.bincount(codes, minlength=len(names))
            self._other = -1
        else:
            if n_items is None:
                raise MetricError("needs the size of the catalogue: ", *SIZES)
            self.names = ["head", "tail"]
            self._items = sides.popularity.head()
            self._codes = np.zeros(len(self._items), np.int64)
            known = len(sides.popularity.known(None, "users")[0])
            if n_items < known:
                raise MetricError(
                    Argument("n_items", (int(n_items),)), f" is too small: the history has {counted(known, 'item')}"
                )
            self.sizes = np.array([len(self._items), int(n_items) - len(self._items)])
            self._other = 1
        order = np.argsort(self._items, kind="stable")
        self._items, self._codes = self._items[order], self._codes[order]

    def of(self, items: Array) -> Array:
        """Return the segment of each item; -1 for none."""
        if not len(self._items):
            return np.full(len(items), self._other)
        at = np.minimum(np.searchsorted(self._items, items), len(self._items) - 1)
        found: Array = np.where(self._items[at] == items, self._codes[at], self._other)
        return found


def collect_rates(
    sides: BatchSides, _min_gain: float, keys: tuple[Any, ...], _n_threads: int
) -> Iterator[tuple[Any, SegmentRates]]:
    """Yield the rates of segments of a batch, over all users and for each group."""
    users = sides.users
    if users.weights is not None:
        raise InputError(Argument("user_weight"), " does not apply to rates of segments: users count once")
    n_users = sides.recs.n_users
    chosen: list[tuple[Any, Array]] = [(None, np.ones(n_users, bool))]
    for codes in users.groups:
        chosen += [(users.keys[code - 1], codes == code) for code in np.unique(codes).tolist()]
    counts: list[dict[tuple[int, str], tuple[int, int]]] = [{} for _ in chosen]
    for nth, key in enumerate(keys):
        segments, taken, chances, base = _events(sides, key)
        for (_, members), own in zip(chosen, counts, strict=True):
            n_base = int(np.count_nonzero(base & members))
            for code, label in enumerate(segments.names):
                possible = n_base * int(segments.sizes[code]) + _count(chances, members, code)
                own[nth, label] = _count(taken, members, code), possible
    for (group, _), own in zip(chosen, counts, strict=True):
        yield group, SegmentRates(keys, own)


def _count(events: tuple[Array, Array, int], members: Array, code: int) -> int:
    """Return the number of events of members in a segment, times their sign."""
    owners, codes, sign = events
    return sign * int(np.count_nonzero(members[owners] & (codes == code)))


Events = tuple[Array, Array, int]  # their users, their segments, and whether they add or subtract


def _events(sides: BatchSides, key: Key) -> tuple[_Segments, Events, Events, Array]:
    """Return segments, what was taken, corrections of the chances, and the users who have all items as chances."""
    what, without_seen, column, least, k, n_items, no_recs = key
    recs, truth, history = sides.recs, sides.truth, sides.history
    segments = _Segments(sides, column, n_items)
    within = np.ones(len(recs.items), bool) if k is None else recs.ranks <= k
    seen = np.zeros(len(recs.items), bool)
    if history is not None and without_seen:
        seen = find_places(recs, history, sides.n_threads) > 0
    listed = np.diff(recs.indptr) > 0
    if what == "shown":
        if segments.by_popularity:  # places without an item are refused: they would be in the tail
            note_unseen(sides, None)
        rows = within & ~seen
        taken = recs.users[rows], segments.of(recs.items[rows]), 1
        if history is None:
            return segments, taken, (np.zeros(0, np.int64), np.zeros(0, np.int64), 1), listed
        first = _first_copies(history)
        owners = history.users[first]
        there = listed[owners]
        return segments, taken, (owners[there], segments.of(history.items[first][there]), -1), listed
    rows = within & ~seen & sides.is_hit(least)
    relevant = is_relevant(truth.gains, least)
    if history is not None and without_seen:
        relevant &= find_places(truth, history, sides.n_threads) == 0
    if (no_recs or sides.no_recs) == "skip":
        relevant &= listed[truth.users]
    chances = truth.users[relevant], segments.of(truth.items[relevant]), 1
    nobody = np.zeros(recs.n_users, bool)
    return segments, (recs.users[rows], segments.of(recs.items[rows]), 1), chances, nobody


def _first_copies(side: FlatSide) -> Array:
    """Return the positions of the first copy of each item of each user."""
    order = np.lexsort((side.items, side.users))
    users, items = side.users[order], side.items[order]
    new = np.ones(len(order), bool)
    new[1:] = (users[1:] != users[:-1]) | (items[1:] != items[:-1])
    first: Array = order[new]
    return first

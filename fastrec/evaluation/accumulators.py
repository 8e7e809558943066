"""Accumulators: statistics over all users that are not sums of values per user, such as score counts of all rows.

An accumulator adds batches, merges and travels in any order with the same result, like the sums of a state. There is
one per kind, condition and group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastrec.exceptions import MetricError, shown
from fastrec.metrics.plan import Accumulated
from fastrec.metrics.providers import load_registered
from fastrec.metrics.row_statistics import SCORE_COUNTS

__all__ = [
    "ACCUMULATORS",
    "SCORE_COUNTS",
    "Accumulator",
    "AccumulatorKey",
    "AccumulatorKind",
    "Collected",
    "GroupKey",
    "Keys",
    "collect",
    "find_accumulator",
]

Array = np.ndarray[Any, Any]
GroupKey = tuple[str, str | int]
Keys = tuple[Hashable, ...]


class AccumulatorKey(NamedTuple):
    """Which accumulator of a state: its kind, the position of its condition, its group or None for all users."""

    kind: str
    condition: int
    group: GroupKey | None


class Accumulator(Protocol):
    """Mergeable statistics of a set of users."""

    @property
    def weighted(self) -> bool:
        """Whether users or rows have weights."""

    def merge(self, other: Any) -> None:
        """Add the users of another accumulator of the kind."""

    def pack(self) -> dict[str, Array]:
        """Return the statistics as arrays, equal for equal users in any order."""


Collected = tuple[GroupKey | None, Accumulator]


class AccumulatorKind(NamedTuple):
    """How to make, read and collect one kind of accumulator.

    `keys` are those of `Over`, of all metrics. `empty(keys, weighted)` makes one without users. `unpack(arrays, keys,
    weighted)` undoes `pack`. `collect(sides, min_gain, keys, n_threads)` yields those of a batch, over all users and
    for each group; `min_gain` is the least gain, or label, of a relevant item. `sides` are the names of those that it
    reads. `describe` returns what `Report.data` has of them, from pairs of such a least gain and an accumulator.
    """

    name: str
    empty: Callable[[Keys, bool], Accumulator]
    unpack: Callable[[dict[str, Array], Keys, bool], Accumulator]
    collect: Callable[[Any, float, Keys, int], Iterable[Collected]]
    sides: frozenset[str]
    describe: Callable[[Iterable[tuple[float, Any]]], Mapping[str, float]] | None = None


ACCUMULATORS: dict[str, AccumulatorKind] = {}


def find_accumulator(name: str) -> AccumulatorKind:
    """Return the kind of accumulators of a name."""
    if name not in ACCUMULATORS:
        load_registered()
    if name not in ACCUMULATORS:
        raise MetricError(f"accumulators of the kind {shown(name)} are not registered in this process")
    return ACCUMULATORS[name]


def collect(
    wanted: Sequence[Accumulated], sides: Mapping[str, Any], min_gains: Sequence[float], n_threads: int
) -> list[tuple[AccumulatorKey, Accumulator]]:
    """Return the accumulators of a batch."""
    return [
        (AccumulatorKey(kind, condition, group), found)
        for kind, condition, keys in wanted
        for group, found in find_accumulator(kind).collect(sides, min_gains[condition], keys, n_threads)
    ]

"""Accumulators: statistics over all users that are not sums of values per user, such as score counts of all rows.

An accumulator adds batches, merges and travels in any order with the same result, like the sums of a state. There is
one per kind, condition and group.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastrec.exceptions import MetricError, shown
from fastrec.inputs.sides import NamedSides
from fastrec.metrics.plan import Accumulated
from fastrec.metrics.row_statistics import GRADED_ROWS, SCORE_COUNTS, TARGET_SUMS

Array = np.ndarray[Any, Any]
GroupKey = tuple[str, str | int]
Keys = tuple[Any, ...]
USERS_BY_BIN = "users_by_bin"
OF_ROWS = frozenset({SCORE_COUNTS, GRADED_ROWS, TARGET_SUMS, USERS_BY_BIN})


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
"""The kinds of users by name, besides those of fastrec."""


@functools.cache
def _kinds_of_lists() -> Mapping[str, AccumulatorKind]:
    """Return the kinds of fastrec that collect lists."""
    from fastrec.items.counting import collect_exposure
    from fastrec.items.disparity import SegmentRates, collect_rates, unpack_rates
    from fastrec.items.exposure import Exposure, unpack_exposure
    from fastrec.items.propensities import WeightSums, collect_weights, describe_weights, unpack_weights

    of_recs = frozenset({"recs"})
    kinds: dict[str, tuple[Any, ...]] = {
        "exposure": (Exposure, unpack_exposure, collect_exposure, of_recs),
        "segment rates": (SegmentRates, unpack_rates, collect_rates, of_recs),
        "weights of clicks": (
            *(WeightSums, unpack_weights, collect_weights),
            *(frozenset({"truth", "propensity"}), describe_weights),
        ),
    }

    def kind_of(name: str, empty: Any, unpack: Any, *others: Any) -> AccumulatorKind:
        return AccumulatorKind(name, lambda keys, _: empty(keys), lambda arrays, keys, _: unpack(arrays, keys), *others)

    return {name: kind_of(name, *own) for name, own in kinds.items()}


@functools.cache
def _kinds_of_rows() -> Mapping[str, AccumulatorKind]:
    """Return the kinds of fastrec that collect scored rows."""
    from fastrec.evaluation.row_clusters import SumsByBin, collect_users_by_bin
    from fastrec.evaluation.row_rules import collect_graded_rows, collect_score_counts
    from fastrec.evaluation.target_sums import TargetSums, collect_targets
    from fastrec.scored.pairs import GradedRows
    from fastrec.scored.score_counts import ScoreCounts

    kinds: dict[str, tuple[Any, ...]] = {
        SCORE_COUNTS: (ScoreCounts, collect_score_counts),
        GRADED_ROWS: (GradedRows, collect_graded_rows),
        TARGET_SUMS: (TargetSums, collect_targets),
        USERS_BY_BIN: (SumsByBin, collect_users_by_bin),
    }

    def kind_of(name: str, kind: Any, collect_rows: Any) -> AccumulatorKind:
        return AccumulatorKind(
            name,
            lambda _, weighted: kind(weighted=weighted),
            lambda arrays, _, weighted: kind.unpack(arrays, weighted=weighted),
            collect_rows,
            frozenset({"rows"}),
        )

    return {name: kind_of(name, *own) for name, own in kinds.items()}


def find_accumulator(name: str) -> AccumulatorKind:
    """Return the kind of accumulators of a name."""
    if name in ACCUMULATORS:
        return ACCUMULATORS[name]
    kinds = _kinds_of_rows() if name in OF_ROWS else _kinds_of_lists()
    if name not in kinds:
        raise MetricError(f"accumulators of the kind {shown(name)} are not registered in this process")
    return kinds[name]


def collect(
    wanted: Sequence[Accumulated], sides: NamedSides | None, min_gains: Sequence[float], n_threads: int
) -> list[tuple[AccumulatorKey, Accumulator]]:
    """Return the accumulators of a batch, which has sides if any are wanted."""
    return [
        (AccumulatorKey(kind, condition, group), found)
        for kind, condition, keys in wanted
        for group, found in find_accumulator(kind).collect(sides, min_gains[condition], keys, n_threads)
    ]

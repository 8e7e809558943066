"""What becomes of the formula of a metric: the rows it reads, the condition under which users count, its sums."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastrec.metrics.declaration import Call
from fastrec.metrics.program import sides_of, walk
from fastrec.metrics.providers import find_provider
from fastrec.metrics.statistics import Combined, Over, Ratio, Row


@dataclass(frozen=True)
class Value:
    """How to compute the mean of one metric from the sums."""

    call: Call
    condition: int
    combined: Combined | None
    sums: tuple[int, ...]  # in its SumList
    on_arrays: bool = False
    ratio: Ratio | None = None
    over: Over | None = None

    @property
    def has_effects(self) -> bool:
        """Whether its standard error follows from the effects of users' lists."""
        return self.over is not None and self.over.effects is not None

    @property
    def has_influence(self) -> bool:
        """Whether it is a metric of the order of all rows on which users' rows have known effects."""
        return self.over is not None and self.over.influence is not None

    @property
    def is_mean_of_users(self) -> bool:
        """Whether the metric declares its mean as the mean over users with equal weights."""
        if self.ratio is not None:
            return self.ratio.is_mean
        return self.has_effects if self.over is not None else self.combined is None


@dataclass(frozen=True)
class ArrayFormula:
    """A formula that runs on arrays, and where the rows that it reads are stored."""

    call: Call
    position: int  # among the calls
    leaves: tuple[tuple[Hashable, int], ...]
    included: int
    counted: int


class Traced(NamedTuple):
    """The result of a formula on rows, None if it runs on arrays, and the rows that it consists of or reads."""

    result: Any
    rows: tuple[Row, ...]

    @property
    def leaves(self) -> Iterator[Row]:
        """The rows that are not computed from others."""
        return (row for row in walk(self.rows) if isinstance(row.key, tuple))

    @property
    def provided(self) -> Iterator[Row]:
        """The rows that providers fill."""
        return (row for row in self.leaves if row.key[0] == "provided")

    @property
    def filled(self) -> frozenset[str]:
        """The sides that providers of its statistics read."""
        return frozenset().union(*map(sides_of, self.provided))

    @property
    def is_of_order(self) -> bool:
        """Whether a provider or an accumulator of the metric depends on the order of lists."""
        names = {row.key[1] for row in self.provided}
        ordered = isinstance(self.result, Over) and self.result.is_ordered
        return ordered or any(find_provider(name).is_ordered for name in names)

    @property
    def sides(self) -> frozenset[str]:
        """The sides that the metric reads; a constant reads none."""
        more = self.result.sides if isinstance(self.result, Over) else frozenset()
        return more.union(*map(sides_of, self.rows))


class Condition(NamedTuple):
    """Which items are relevant, and which users count."""

    min_gain: float
    no_truth: str | None = None  # the policy of the call
    no_recs: str | None = None

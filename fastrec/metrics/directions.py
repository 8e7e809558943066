"""Direction of a metric: which of two values is better."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec.checks import is_number
from fastrec.exceptions import MetricError, shown

Kind = Literal["higher", "lower", "target", "none"]
Declared = Literal["higher", "lower", "none"] | float
Verdict = Literal["better", "worse", "not clear"]
SIGNS = {"higher": 1, "lower": -1, "target": -1, "none": 0}


class Direction(NamedTuple):
    """Which values are better: higher, lower, nearer to a target, or none."""

    kind: Kind
    target: float | None = None

    @property
    def words(self) -> str:
        """Subject of "is better": "higher", "lower", "nearer to 1" or "neither"."""
        if self.target is not None:
            return f"nearer to {self.target:g}"
        return "neither" if self.kind == "none" else self.kind

    @property
    def of_difference(self) -> str:
        """Words that follow a difference; empty if higher is better."""
        if self.target is not None:
            return f"in the distance to {self.target:g}"
        return "" if self.kind == "higher" else f"({self.words} is better)"

    @property
    def higher_is_better(self) -> bool | None:
        """True or False; None for a metric with a target, or without a direction."""
        return {"higher": True, "lower": False}.get(self.kind)

    @property
    def sign(self) -> int:
        """Sign of an improvement; 0 without a direction.

        Differences are between values or, with a target, between distances to it.
        """
        return SIGNS[self.kind]

    def verdict(self, difference: float, p_value: float, alpha: float) -> Verdict | None:
        """Judge a difference, significant if p is at most alpha; None without a p-value or a direction."""
        if math.isnan(p_value) or not self.sign:
            return None
        if p_value > alpha or difference == 0:
            return "not clear"
        return "better" if difference * self.sign > 0 else "worse"


def read_direction(direction: Any, higher_is_better: Any, within: tuple[float, float | None]) -> Direction:
    """Return the direction that a declaration gives in one of two ways; by default, higher is better.

    A number is the target, which must be within the range (low, high) of the metric.
    """
    if higher_is_better is not None:
        if direction is not None:
            raise MetricError("direction and higher_is_better say the same: pass one of them")
        if not isinstance(higher_is_better, (bool, np.bool_)):
            raise MetricError(f"higher_is_better must be True or False, found {shown(higher_is_better)}")
        return Direction("higher" if higher_is_better else "lower")
    if direction is None:
        return Direction("higher")
    kinds: dict[str, Kind] = {"higher": "higher", "lower": "lower", "none": "none"}
    if isinstance(direction, str) and direction in kinds:
        return Direction(kinds[direction])
    try:
        target = float(direction) if is_number(direction) else math.nan
    except OverflowError:  # an integer larger than any float
        target = math.inf
    if not math.isfinite(target):
        raise MetricError(
            f"direction must be 'higher', 'lower', 'none' or the best value, a number; found {shown(direction)}"
        )
    low, high = within
    if target < low or (high is not None and target > high):
        raise MetricError(f"direction={shown(direction)} is outside range={shown(within)}")
    return Direction("target", target)

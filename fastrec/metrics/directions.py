"""The direction of a metric: which of two values is the better one."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec.checks import is_number
from fastrec.exceptions import MetricError, shown

__all__ = ["Declared", "Direction", "Kind", "Verdict", "read_direction"]

Kind = Literal["higher", "lower", "target", "none"]
Declared = Literal["higher", "lower", "none"] | float
Verdict = Literal["better", "worse", "not clear"]
SIGNS = {"higher": 1, "lower": -1, "target": -1, "none": 0}


class Direction(NamedTuple):
    """Higher values are better, or lower ones, or those nearer to a target; or a metric has no direction."""

    kind: Kind
    target: float | None = None

    @property
    def words(self) -> str:
        """What is better, to be followed by "is better": "higher", "lower", "nearer to 1", "neither"."""
        if self.target is not None:
            return f"nearer to {self.target:g}"
        return "neither" if self.kind == "none" else self.kind

    @property
    def of_difference(self) -> str:
        """Words that follow a difference; empty where higher is better."""
        if self.target is not None:
            return f"in the distance to {self.target:g}"
        return "" if self.kind == "higher" else f"({self.words} is better)"

    @property
    def higher_is_better(self) -> bool | None:
        """None where a metric has a target, or no direction."""
        return {"higher": True, "lower": False}.get(self.kind)

    @property
    def sign(self) -> int:
        """The sign of a difference that is for the better; 0 without a direction.

        The difference is one of values or, with a target, of distances to it.
        """
        return SIGNS[self.kind]

    def verdict(self, difference: float, p_value: float, alpha: float) -> Verdict | None:
        """Judge a difference, significant where p is at most alpha; None without a p-value or a direction."""
        if math.isnan(p_value) or not self.sign:
            return None
        if p_value > alpha or difference == 0:
            return "not clear"
        return "better" if difference * self.sign > 0 else "worse"


def read_direction(direction: Any, higher_is_better: Any, within: tuple[float, float | None]) -> Direction:
    """The direction that a declaration gives in one of two ways; higher is better if in none.

    A number is the target, which must lie within the range (low, high) of the metric.
    """
    if higher_is_better is not None:
        if direction is not None:
            raise MetricError("direction says what higher_is_better does: give one of them")
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
    except OverflowError:  # an integer past every float
        target = math.inf
    if not math.isfinite(target):
        raise MetricError(
            f"direction must be 'higher', 'lower', 'none' or the best value, a number; found {shown(direction)}"
        )
    low, high = within
    if target < low or (high is not None and target > high):
        raise MetricError(f"direction={shown(direction)} is outside of range={shown(within)}")
    return Direction("target", target)

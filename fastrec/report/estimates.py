"""Estimates: a mean over users with its standard error, for all users and for groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import check_level, some_names
from fastrec.exceptions import Known, MetricError, MetricNotFoundError, Text, renamed, shown
from fastrec.metrics.calls import parse

__all__ = ["NOBODY", "ByMetric", "Effects", "Estimate", "GroupEstimate"]


Label = str | int
Effects = dict[str, dict[str | None, NDArray[np.float64]]]  # of users, by metric and grouping; None: over all users
V = TypeVar("V")


class Estimate(NamedTuple):
    """The mean of a metric over users, and its uncertainty.

    mean : NaN if nothing was counted, or if all weights are 0.
    std_error : standard error of the mean. NaN if it is not known, as for a mean over users with fewer than two users.
    users : number of users counted; 0 for rows without users.
    """

    mean: float
    std_error: float
    users: int

    def margin(self, level: float = 0.95) -> float:
        """Return half the width of the confidence interval: z * std_error, z the normal quantile of the level.

        >>> round(Estimate(mean=0.5, std_error=0.1, users=40).margin(), 3)
        0.196
        """
        # The lower tail keeps all digits of a level close to 1; (1 + level) / 2 would round them away.
        return -NormalDist().inv_cdf((1 - check_level(level)) / 2) * self.std_error

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the normal confidence interval: mean - margin, mean + margin. NaN without a standard error.

        >>> low, high = Estimate(mean=0.5, std_error=0.1, users=40).interval(level=0.99)
        >>> round(low, 3), round(high, 3)
        (0.242, 0.758)
        """
        margin = self.margin(level)
        return self.mean - margin, self.mean + margin


NOBODY = Estimate(math.nan, math.nan, 0)


class GroupEstimate(Estimate):
    """The mean of a metric over the users of a group, with the mean over all other users.

    rest : the estimate over all users outside the group. Its mean is NaN if there are none, and for metrics that need
        the order of all rows, such as `auc`.
    """

    rest: Estimate

    def __new__(cls, mean: float, std_error: float, users: int, rest: Estimate = NOBODY) -> Self:
        """Make the tuple of three, and set `rest` as an attribute."""
        made = super().__new__(cls, mean, std_error, users)
        made.rest = rest
        return made

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:  # type: ignore[override] # mypy has it final, Python does not
        return cls(*iterable)

    def _replace(self, **changes: Any) -> Self:
        rest = changes.pop("rest", self.rest)
        return type(self)(*Estimate(*self)._replace(**changes), rest=rest)

    def difference(self, level: float = 0.95) -> tuple[float, float, float]:
        """Return the difference between the means of the group and the rest, and its interval, low and high.

        Group and rest share no users, so the difference has the standard error sqrt(SE^2 + SE of the rest^2) (Welch
        1947) and a normal interval. NaN if a mean or a standard error is NaN.

        >>> group = GroupEstimate(0.5, 0.03, 40, rest=Estimate(0.4, 0.04, 60))
        >>> [round(number, 3) for number in group.difference()]
        [0.1, 0.002, 0.198]
        """
        found = Estimate(self.mean - self.rest.mean, math.hypot(self.std_error, self.rest.std_error), 0)
        return found.mean, *found.interval(level)


class ByMetric(dict[str, V]):
    """A dict by canonical metric name. Indexing accepts any spelling of the metric.

    `names` maps the names that another tool uses to canonical names.
    """

    def __init__(self, values: Mapping[str, V], names: Mapping[str, str]) -> None:
        super().__init__(values)
        self._names = names

    def __getitem__(self, name: str) -> V:
        if not isinstance(name, str):  # also catches values that cannot be hashed
            raise MetricNotFoundError(
                f"a metric must be a string such as 'ndcg@10', found {shown(name)}; ", self._known()
            )
        return super().__getitem__(name)

    def _known(self) -> str:
        return Text("this report has ", some_names(list(self), "list(report)") or "no metrics")

    def __missing__(self, name: str) -> V:
        if name in self._names:
            return self[self._names[name]]
        known = self._known()
        try:
            text = parse(name).text
        except MetricError as error:
            wrong = renamed(error.text, lambda part: "" if isinstance(part, Known) else part)
            raise MetricNotFoundError(wrong, "; ", known) from error
        if text not in self:
            raise MetricNotFoundError(f"{name!r} is not in this report; ", known)
        return self[text]

"""Estimates: a mean over users with its standard error, for all users and for groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import check_level, some_names
from fastrec.exceptions import Known, MetricError, MetricNotFoundError, Text, renamed, shown
from fastrec.metrics.calls import parse
from fastrec.metrics.intervals import one_value_interval, student_quantile, welch_degrees, wilson
from fastrec.show.numbers import with_interval

Label = str | int
MAX_LOGARITHM = 700.0  # whose exponential is a finite number
IntervalKind = Literal["student", "wilson", "one value", "log"]
Effects = dict[str, dict[str | None, NDArray[np.float64]]]  # of users, by metric and grouping; None: over all users
V = TypeVar("V")


class Estimate(NamedTuple):
    """The mean of a metric over users, and its uncertainty.

    mean : NaN if nothing was counted, or if all weights are 0.
    std_error : standard error of the mean. NaN if it is not known, as for a mean over users with fewer than two users.
    users : number of users counted; 0 for rows without users.
    degrees : degrees of freedom of the standard error. NaN stands for users - 1, or for a known error without users.
    kind : which interval holds for the mean, see `interval`: "student", "wilson", "one value" or "log".
    range : lowest and highest value of the metric, which end the interval.
    note : a reason to doubt the interval; usually empty.
    """

    mean: float
    std_error: float
    users: int
    degrees: float = math.nan
    kind: IntervalKind = "student"
    range: tuple[float, float] = (-math.inf, math.inf)
    note: str = ""

    def margin(self, level: float = 0.95) -> float:
        """Return half the width of Student's interval: t * std_error, t the quantile of Student's distribution.

        >>> round(Estimate(mean=0.5, std_error=0.1, users=40).margin(), 3)
        0.202
        """
        return student_quantile(check_level(level), self.degrees_of_freedom) * self.std_error

    @property
    def degrees_of_freedom(self) -> float:
        """The degrees of freedom of the standard error.

        >>> Estimate(mean=0.5, std_error=0.1, users=40).degrees_of_freedom
        39
        """
        if not math.isnan(self.degrees):
            return self.degrees
        return self.users - 1 if self.users else math.inf

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval, cut to the range of the metric. NaN without a standard error.

        "student" : mean ± t * std_error (Student 1908). NaN without variance, which then is not known.
        "wilson" : all values are 0 or 1. The score interval (Wilson 1927).
        "one value" : all n users have the same value v. With q = 1 - ((1 - level) / 2)^(1 / n) the ends are
            v - q (v - lowest value) and v + q (highest value - v), for any distribution. NaN without a finite range.
        "log" : of a geometric mean. mean * exp(± t * std_error / mean).

        >>> low, high = Estimate(mean=0.5, std_error=0.1, users=40).interval(level=0.99)
        >>> round(low, 3), round(high, 3)
        (0.229, 0.771)
        >>> low, high = Estimate(1.0, 0.0, 5, kind="wilson", range=(0, 1)).interval()
        >>> round(low, 3), high
        (0.566, 1.0)
        """
        low, high = self.uncut_interval(level)
        return max(low, self.range[0]), min(high, self.range[1])

    def uncut_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval before it is cut to the range of the metric.

        >>> low, high = Estimate(0.9, 0.1, 3, range=(0, 1)).uncut_interval()
        >>> round(low, 3), round(high, 3)
        (0.47, 1.33)
        """
        margin = self.margin(level)
        if self.kind == "wilson" and not math.isnan(margin):
            (low,), (high,) = wilson(np.array([self.mean * self.users]), np.array([self.users]), level)
            return float(low), float(high)
        if self.kind == "one value":
            return one_value_interval(self.mean, self.degrees_of_freedom + 1, self.range, level)
        if not self.std_error > 0:
            return math.nan, math.nan
        if self.kind == "log" and self.mean > 0:
            factor = math.exp(min(margin / self.mean, MAX_LOGARITHM))
            return self.mean / factor, self.mean * factor
        return self.mean - margin, self.mean + margin

    def is_symmetric(self, level: float = 0.95) -> bool:
        """Return whether the interval is the mean ± `margin`. An interval that is not known is.

        >>> Estimate(0.9, 0.1, 3, range=(0, 1)).is_symmetric()
        False
        """
        low, high = self.interval(level)
        margin = self.margin(level)
        return math.isnan(low) or (low, high) == (self.mean - margin, self.mean + margin)


def with_intervals(rows: Iterable[Iterable[Estimate]], level: float = 0.95) -> list[list[str]]:
    """Format the means of a table with their intervals: mean ± half the width, or with both ends for all of them."""
    cells = [list(row) for row in rows]
    symmetric = all(one.is_symmetric(level) for row in cells for one in row)
    return [[with_interval(one.mean, *one.interval(level), symmetric=symmetric) for one in row] for row in cells]


NOBODY = Estimate(math.nan, math.nan, 0)


class GroupEstimate(Estimate):
    """The mean of a metric over the users of a group, with the mean over all other users.

    rest : the estimate over all users outside the group. Its mean is NaN if there are none, and for metrics that need
        the order of all rows, such as `auc`.
    """

    rest: Estimate

    def __new__(cls, *fields: Any, rest: Estimate = NOBODY, **named: Any) -> Self:
        """Make the tuple of an estimate, and set `rest` as an attribute."""
        made = super().__new__(cls, *fields, **named)
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

        Group and rest share no users, so the difference has the standard error sqrt(SE^2 + SE of the rest^2) and the
        degrees of freedom of Welch (1947). Where one interval is not Student's, the ends follow from those of both
        (Newcombe 1998, method 10). NaN if a mean or an interval is NaN.

        >>> group = GroupEstimate(0.5, 0.03, 40, rest=Estimate(0.4, 0.04, 60))
        >>> [round(number, 3) for number in group.difference()]
        [0.1, 0.001, 0.199]
        """
        gap, rest = self.mean - self.rest.mean, self.rest
        width = min(self.range[1] - self.range[0], rest.range[1] - rest.range[0])
        (low, high), (low_rest, high_rest) = self.uncut_interval(level), rest.uncut_interval(level)
        if math.isnan(low + low_rest):
            return gap, math.nan, math.nan
        if self.kind == rest.kind == "student":
            ours, theirs = self.std_error**2, rest.std_error**2
            degrees = welch_degrees(ours, self.degrees_of_freedom, theirs, rest.degrees_of_freedom)
            found = Estimate(gap, math.sqrt(ours + theirs), 0, degrees, range=(-width, width))
            return gap, *found.interval(level)
        below, above = (
            math.hypot(self.mean - low, high_rest - rest.mean),
            math.hypot(high - self.mean, rest.mean - low_rest),
        )
        return gap, max(gap - below, -width), min(gap + above, width)


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

"""Result of an explanation: definitions, numbers and users of fastrec and other tools."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fastrec.report.estimates import Estimate
from fastrec.report.plain import plain_document
from fastrec.report.plans import known_calls, with_effects_of_settings
from fastrec.show.numbers import change, effect, one_figure, shown_count
from fastrec.show.shown import Shown
from fastrec.show.tables import Table, warning_lines

Array = np.ndarray[Any, Any]
OURS = "fastrec"
POLICIES = ("no_truth", "no_recs")  # a metric may have its own
ARITHMETIC = "arithmetic"  # the mean of metrics without the option `mean`


class UserDifference(NamedTuple):
    """User with another value in a tool than in fastrec.

    user : id, or position if users have no ids.
    ours, theirs : the values; NaN if the user was not counted.
    moved : how much this user moves the mean from ours to theirs; the sum over all users is the difference of the
        means. NaN if the number is not a mean of users' values, as for a pooled metric.
    """

    user: Any
    ours: float
    theirs: float
    moved: float


@dataclass(frozen=True)
class Side:
    """Meaning and number of a metric in one tool; fastrec is the first side.

    tool : name of the tool, as in ``like=``.
    version : version that the recipe was compared with.
    name : name of the metric in the tool.
    metric : the same metric in fastrec, with the options that differ from our default.
    options : everything that decides the value, policies included: {option: value as a string}.
    notes : what else to know about the tool.
    estimate : number on the data; None without data, or if there is no number.
    problem : why there is no number.
    steps : {option: change of the mean}. The options change from fastrec's to the tool's one after another, and the
        changes add up to the whole difference. NaN if there is no mean after a change; the next change includes it.
    n_different : number of users with another value, or counted on one side only.
    users : those that move the mean most, largest first.
    """

    tool: str
    version: str
    name: str
    metric: str
    options: Mapping[str, str]
    notes: tuple[str, ...] = ()
    estimate: Estimate | None = None
    problem: str = ""
    steps: Mapping[str, float] = field(default_factory=dict)
    n_different: int = 0
    users: tuple[UserDifference, ...] = ()


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """Result of `explain`: a metric in fastrec and other tools, side by side.

    metric : canonical name in fastrec.
    sides : {tool: Side}, fastrec first.
    absent : {tool: why it has no such metric}, if `like` was not given.
    warnings : reasons to doubt the numbers, as in `Report`; empty without data.
    brief : whether the printed form leaves out the notes on each tool, as if `like` was not given.
    unknown : tools of `absent` that only lack the metric, with no other reason.

    Examples
    --------
    >>> why = fastrec.explain("ndcg@3", like="rectools")
    >>> why.differing
    ['gain', 'ideal', 'min_gain', 'ties']
    >>> why.sides["rectools"].metric
    'ndcg(gain=binary, ideal=k)@3'
    >>> print(why.to_markdown().splitlines()[0])
    **ndcg@3 in fastrec and other tools (* differs from fastrec)**
    """

    metric: str
    sides: Mapping[str, Side]
    absent: Mapping[str, str]
    brief: bool = False
    warnings: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def ours(self) -> Side:
        """Side of fastrec."""
        return self.sides[OURS]

    @property
    def differing(self) -> list[str]:
        """Options that differ between the sides that have them."""
        return [name for name, values in self._options() if len(values) > 1]

    @property
    def same(self) -> dict[str, str]:
        """Options that are the same on all sides that have them: {option: value}."""
        return {name: values.pop() for name, values in self._options() if len(values) == 1}

    def _options(self) -> Iterator[tuple[str, set[str]]]:
        sides = self.sides.values()
        names = dict.fromkeys(name for side in sides for name in side.options)
        return ((name, {side.options[name] for side in sides if name in side.options}) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON; NaN is None.

        >>> fastrec.explain("ndcg@3", like="rectools").to_dict()["differing"]
        ['gain', 'ideal', 'min_gain', 'ties']
        """
        sides = {
            tool: side.__dict__
            | {"users": [user._asdict() for user in side.users], "notes": list(side.notes)}
            | {"options": dict(side.options), "steps": dict(side.steps)}
            for tool, side in self.sides.items()
        }
        document = {"metric": self.metric, "differing": self.differing, "same": self.same, "sides": sides}
        return plain_document(document | {"absent": dict(self.absent), "warnings": self.warnings})

    def tables(self) -> list[Table]:
        """Return the tables to show: definitions and, with data, numbers and users."""
        found = [self._definitions()]
        if self.ours.estimate is not None:
            found.append(self._numbers(self.ours.estimate.mean))
            if any(side.steps for side in self.sides.values()):
                found.append(self._steps())
            found += [self._users_of(side) for side in self.sides.values() if side.users]
        return found

    _printed = _tables = tables

    def _definitions(self) -> Table:
        names = self.differing
        rows = [
            [tool, *([self._option(side, name) for name in names] or [side.name])] for tool, side in self.sides.items()
        ]
        same = [f"{name}={value}" for name, value in self.same.items() if name != "metric"]
        lines = [f"the same on all sides: {', '.join(same)}"] if same else []
        for tool, side in self.sides.items():
            if tool != OURS and not self.brief:
                lines += [f"{side.name} of {side.version} is {side.metric} here", *(f"  {n}" for n in side.notes)]
        if self.unknown:
            lines.append(f"no such metric: {', '.join(self.unknown)}")
        lines += [f"{tool}: {why}" for tool, why in self.absent.items() if tool not in self.unknown]
        marks = "no option differs" if len(self.sides) > 1 else "no other tool has it"
        if names:
            marks = f"* differs from {OURS}"
        head = ["", *(names or ["name"])]
        return Table(f"{self.metric} in {OURS} and other tools ({marks})", head, rows, len(head), lines)

    def _option(self, side: Side, name: str) -> str:
        value = side.options.get(name, "")
        return f"{value}*" if value and value != self.ours.options.get(name) else value

    def _numbers(self, mean: float) -> Table:
        rows, lines = [], []
        for tool, side in self.sides.items():
            if side.estimate is None:
                lines.append(f"{tool}: no number: {side.problem}")
                continue
            gap = "" if tool == OURS else change(side.estimate.mean - mean)
            rows.append([tool, one_figure(side.estimate.mean), gap, shown_count(side.estimate.users)])
        lines += warning_lines(self.warnings)
        head = ["", "mean", "difference", "users"]
        if not any(side.estimate.users for side in self.sides.values() if side.estimate is not None):
            head, rows = head[:-1], [row[:-1] for row in rows]  # the rows have no users
        return Table("On these data", head, rows, notes=lines)

    def _steps(self) -> Table:
        names = [name for name in self.differing if any(name in side.steps for side in self.sides.values())]
        rows = [
            [tool, *(change(side.steps[name]) if name in side.steps else "" for name in names)]
            for tool, side in self.sides.items()
            if side.steps
        ]
        return Table("The difference, option by option, from left to right", ["", *names], rows)

    def _users_of(self, side: Side) -> Table:
        moved = any(not math.isnan(user.moved) for user in side.users)
        rows = [
            [str(user.user), one_figure(user.ours), one_figure(user.theirs), *([effect(user.moved)] if moved else [])]
            for user in side.users
        ]
        title = f"{side.tool}: the users that matter most, of {side.n_different:,} with another value"
        if with_effects_of_settings(known_calls([side.metric]), {"n_items": 1}):
            title = (
                f"{side.tool}: the lists that matter most, of {side.n_different:,} with another effect on the metric"
            )
        return Table(title, ["user", OURS, side.tool, *(["moves the mean by"] if moved else [])], rows)

"""Evaluation of lists on a cluster, but for the work of the engine: moving rows and running tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from fastrec.arguments.calls import ListSettings
from fastrec.arguments.groups import ListColumnNames
from fastrec.arguments.signature import pick
from fastrec.engines.job import Job
from fastrec.engines.side import (
    EngineSide,
    check_same_types,
    check_ties,
    columns_of_lists,
    listed_names,
    numbered_labels,
    or_usual,
    spelled,
    with_strings,
)
from fastrec.evaluation.lists import Evaluator, reads_popularity
from fastrec.exceptions import InputError
from fastrec.inputs.column_names import Columns, user_column
from fastrec.inputs.frames import extra_column
from fastrec.inputs.hints import LeftOpen, hints_of_columns, marks_rows
from fastrec.inputs.history import HistoryCounts
from fastrec.inputs.items import read_items
from fastrec.inputs.sides import NAMED, SIDES, with_logged
from fastrec.metrics.recipes import order_of
from fastrec.report.report import Report, record

__all__ = ["ListPlan", "plan_lists", "settings_of_tasks"]

AnySide = TypeVar("AnySide", bound=EngineSide)


class ListPlan(NamedTuple, Generic[AnySide]):
    """A checked evaluation of lists: the sides to move, the work on their rows, and the evaluator to merge into."""

    sides: dict[str, AnySide]
    job: Job
    evaluator: Evaluator
    numbered: set[str]  # the groupings whose integer labels tasks read as strings
    used: tuple[Any, ...]  # the columns that arguments name, and those of ids
    left: LeftOpen

    def report(self) -> Report:
        """Return the report of the evaluator, once it has the states of all partitions.

        Hints about unused columns follow from names and types: reading values would take another job. So there is none
        about marks, which are all 1 in a truth of only relevant rows.
        """
        report = self.evaluator.result()
        groups = {name: spelled(own, numbered=name in self.numbered) for name, own in report.groups.items()}
        report = report.with_groups(groups)
        if "truth" in self.sides:
            recs, truth = self.sides["recs"], self.sides["truth"]
            hints = hints_of_columns(
                recs.columns,
                truth.columns,
                self.used,
                self.left,
                lambda name: not marks_rows(name) and truth.holds_numbers(name),
            )
            record(report, hints)
        return report


def plan_lists(
    frames: tuple[Any, Any],
    metrics: Any,
    given: Mapping[str, Any],
    open_side: Callable[[str, Any], AnySide],
    collect: Callable[[Any], Any],
    count_history: Callable[[AnySide, str, str], HistoryCounts],
) -> ListPlan[AnySide]:
    """Check the arguments of a call, its lists and truth first, and the columns of all sides.

    `collect` gets the table of items and returns it in a form that `fastrec.evaluate` takes; `count_history` gets a
    history and its columns of users and items.
    """
    columns = Columns(**pick(ListColumnNames, given), by=given["by"])
    weight, per_user = given["user_weight"], given.get("per_user", False)
    user, item = user_column(columns.user), or_usual(columns.item, "item_id")
    passed, named = _sides_of_call(*frames, given)
    opened = {name: open_side(name, frame) for name, frame in passed.items()}
    items = None if given["items"] is None else read_items(collect(given["items"]), columns.item)
    options = settings_of_tasks(ListSettings, metrics, given) | {"items": items}
    counts = None
    if "history" in opened and reads_popularity(options):
        counts = count_history(opened["history"], user, item)
    arguments = {**pick(ListColumnNames, given), "by": given["by"], **named, "user_weight": weight}
    job = Job(Evaluator, options | {"history": counts}, arguments, (user,), given["n_threads"])
    columns = columns._replace(ordered_by=order_of(given["like"]))
    sides = {name: side.having(columns_of_lists(side, columns, weight)) for name, side in opened.items()}
    evaluator = job.check({name: side.all_columns() for name, side in sides.items()}, per_user=per_user)
    assert isinstance(evaluator, Evaluator)
    check_same_types(sides, {"user": user, "item": item}, items)
    roles = {name: extra_column(side.as_frame(), columns) for name, side in sides.items()}
    for name, side in sides.items():
        if SIDES[name].is_ordered and side.is_long(item):
            if roles[name][1] is None:
                raise InputError(f"{name} must have a column of ranks or scores, as {side.engine} rows have no order")
            check_ties(evaluator, side.engine)
    numbers = {role for role, column in roles.values() if column is not None}
    adds_gains = {"score", "gain"} <= numbers and evaluator.settings["ties"] == "expected"
    if adds_gains or evaluator._reads_sides:  # noqa: SLF001 - not an attribute for users
        job = job._replace(order=(item,))
    numbered = numbered_labels(sides, columns) - {user}
    job = job._replace(empty={name: with_strings(side.empty, numbered) for name, side in sides.items()})
    left = LeftOpen(order=False, gain="gain" not in numbers and evaluator.settings["min_gain"] != "any", sides=False)
    return ListPlan(sides, job, evaluator, numbered, (user, item, *columns.groupings(), weight), left)


def settings_of_tasks(group: type[Any], metrics: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the evaluators of tasks, without those that differ from task to task."""
    other = ("per_user", "n_threads", *SIDES)
    settings = {name: value for name, value in pick(group, given).items() if name not in other}
    return {"metrics": listed_names(metrics, "metrics"), **settings, "k": listed_names(given["k"], "k")}


def _sides_of_call(recs: Any, truth: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the frames of a call by side, and the sides that are named instead: exclude="history"."""
    passed = with_logged({"recs": recs, "truth": truth, **{name: given[name] for name in SIDES if name in given}})
    named = {name: side for name, side in passed.items() if isinstance(side, str) and (name, side) in NAMED}
    absent = {name for name, side in passed.items() if side is None and name != "recs"}
    return {name: side for name, side in passed.items() if name not in {*named, *absent}}, named

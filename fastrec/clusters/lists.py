"""Evaluation of lists on a cluster, but for the work of the engine: moving rows and running tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.api.evaluators import Evaluator
from fastrec.arguments import pick
from fastrec.checks import listed_in_order
from fastrec.clusters.job import Job
from fastrec.clusters.packets import Table, from_bytes, to_bytes
from fastrec.clusters.side import EngineSide, check_partitions, check_ties, or_usual, states_of_side
from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.arrow import read_ids
from fastrec.inputs.column_names import Columns, user_column
from fastrec.inputs.findings.columns import LeftOpen, hints_of_columns, marks_rows
from fastrec.inputs.frames import extra_column
from fastrec.inputs.ids import SPELL_ALIKE, kind_of_ids
from fastrec.inputs.items import ItemTable, read_items
from fastrec.inputs.sides import NAMED, SIDES, with_logged
from fastrec.inputs.users import NO_LABEL
from fastrec.items.history import HistoryCounts
from fastrec.metrics.recipes import order_of
from fastrec.report.report import Report, record


class ListPlan(NamedTuple):
    """A checked evaluation of lists: the sides to move, the work on their rows, and the evaluation to merge into."""

    sides: dict[str, EngineSide]
    job: Job
    evaluation: ListEvaluation
    numbered: set[str]  # the groupings whose integer labels tasks read as strings
    used: tuple[Any, ...]  # the columns that arguments name, and those of ids
    left: LeftOpen

    def report(self) -> Report:
        """Return the report of the evaluation, once it has the states of all partitions.

        Hints about unused columns follow from names and types: reading values would take another job. So there is none
        about marks, which are all 1 in a truth of only relevant rows.
        """
        report = self.evaluation.report()
        groups = {name: _spelled(own, numbered=name in self.numbered) for name, own in report.groups.items()}
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


def evaluate_lists(
    kind: type[EngineSide], frames: tuple[Any, Any], metrics: Any, given: Mapping[str, Any]
) -> tuple[Report, ListPlan]:
    """Evaluate lists and truth in data frames of an engine; return the report and how it was made."""
    n_partitions = check_partitions(given["n_partitions"])
    plan = _plan_lists(kind, frames, metrics, given, n_partitions)
    plan.job.merge(kind.run(list(plan.sides.values()), plan.job, Job.states, n_partitions), plan.evaluation)
    return plan.report(), plan


def _plan_lists(
    kind: type[EngineSide], frames: tuple[Any, Any], metrics: Any, given: Mapping[str, Any], n_partitions: int | None
) -> ListPlan:
    """Check the arguments of a call, its lists and truth first, and the columns of all sides."""
    arguments = pick(Evaluator.update_sides, given)
    columns = Columns(**{name: given[name] for name in Columns._fields if name in given})
    weight, per_user = given["user_weight"], given.get("per_user", False)
    user, item = user_column(columns.user), or_usual(columns.item, "item_id")
    passed, named = _sides_of_call(*frames, given)
    opened = {name: kind.open(name, frame) for name, frame in passed.items()}
    items = given["items"]
    if items is not None:
        items = read_items(kind.to_memory(items) if kind.is_frame(items) else items, columns.item)
    options = settings_of_tasks(ListEvaluation.__init__, metrics, given) | {"items": items}
    counts = None
    if "history" in opened and ListEvaluation(**options).reads_popularity:
        counts = _count_history(opened["history"], columns, n_partitions)
    job = Job(ListEvaluation, options | {"history": counts}, arguments | named, (user,), given["n_threads"])
    columns = columns._replace(ordered_by=order_of(given["like"]))
    sides = {name: side.having(_columns_of_lists(side, columns, weight)) for name, side in opened.items()}
    evaluation = job.check({name: side.all_columns() for name, side in sides.items()}, per_user=per_user)
    assert isinstance(evaluation, ListEvaluation)
    _check_same_types(sides, {"user": user, "item": item}, items)
    roles = {name: extra_column(side.as_frame(), columns) for name, side in sides.items()}
    for name, side in sides.items():
        if SIDES[name].is_ordered and side.is_long(item) and columns.item_sep is None:
            if roles[name][1] is None:
                raise InputError(f"{name} must have a column of ranks or scores, as {side.engine} rows have no order")
            check_ties(evaluation, side.engine)
    numbers = {role for role, column in roles.values() if column is not None}
    adds_gains = {"score", "gain"} <= numbers and evaluation.settings["ties"] == "expected"
    if adds_gains or evaluation.reads_sides:
        job = job._replace(order=(item,))
    numbered = _numbered_labels(sides, columns) - {user}
    job = job._replace(empty={name: _with_strings(side.empty, numbered) for name, side in sides.items()})
    left = LeftOpen(order=False, gain="gain" not in numbers and evaluation.settings["min_gain"] != "any", sides=False)
    return ListPlan(sides, job, evaluation, numbered, (user, item, *columns.groupings(), weight), left)


def _count_history(side: EngineSide, columns: Columns, n_partitions: int | None) -> HistoryCounts:
    """Return the users and rows of each item of a history."""
    import pyarrow as pa

    user, item = user_column(columns.user), or_usual(columns.item, "item_id")
    named = Columns(user=user, item=item, item_sep=columns.item_sep)

    def count(table: Table, n_threads: int | None) -> bytes:
        counts = HistoryCounts.read(table, named, n_threads or 1)
        n_users = np.where(np.arange(len(counts.users)) == 0, counts.n_users, 0)  # all of them beside the first item
        columns = {"item": pa.array(counts.ids), "users": counts.users, "rows": counts.rows, "n_users": n_users}
        return to_bytes(pa.record_batch(columns))

    parts = list(map(from_bytes, states_of_side(side.having([user, item]), (user,), count, n_partitions)))
    names = ("users", "rows", "n_users")
    whole = pa.Table.from_batches([part for part in parts if part.num_rows] or parts[:1])
    sums = whole.group_by("item").aggregate([(name, "sum") for name in names])
    users, rows, n_users = (sums.column(f"{name}_sum").to_numpy() for name in names)
    ids = read_ids(sums.column("item"), f"history column {item!r}")
    return HistoryCounts(ids, users, rows, int(n_users.sum()), int(rows.sum()))


def settings_of_tasks(constructor: Callable[..., Any], metrics: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the evaluations of tasks, without those that differ from task to task."""
    other = ("per_user", "n_threads", *SIDES)
    settings = {name: value for name, value in pick(constructor, given).items() if name not in other}
    return {"metrics": _listed_names(metrics, "metrics"), **settings, "k": _listed_names(given["k"], "k")}


def _sides_of_call(recs: Any, truth: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the frames of a call by side, and the sides that are named instead: exclude="history"."""
    passed = with_logged({"recs": recs, "truth": truth, **{name: given[name] for name in SIDES if name in given}})
    named = {name: side for name, side in passed.items() if isinstance(side, str) and (name, side) in NAMED}
    absent = {name for name, side in passed.items() if side is None and name != "recs"}
    return {name: side for name, side in passed.items() if name not in {*named, *absent}}, named


def _listed_names(value: Any, name: str) -> Any:
    """Return an argument that may be an iterator as a list, so that several readers get its values."""
    return listed_in_order(value, name) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _columns_of_lists(side: EngineSide, columns: Columns, user_weight: str | None) -> list[str]:
    """Return the columns that a side of lists may need."""
    extra = extra_column(side.as_frame(), columns)[1]
    judged = SIDES[side.name].judgement_column(columns, side.as_frame().has)
    of_users = (*columns.groupings(), user_weight) if SIDES[side.name].has_users else ()
    needed = (user_column(columns.user), or_usual(columns.item, "item_id"), extra, judged, *of_users)
    return [name for name in needed if name is not None]


def _check_same_types(sides: Mapping[str, EngineSide], roles: Mapping[str, str], items: ItemTable | None) -> None:
    """Raise if ids of a role have different types, so that they cannot match."""
    of_table = {} if items is None else {"item": {"items": kind_of_ids(items.ids)}}
    for role, name in roles.items():
        kinds = {side.name: side.kind_of_ids(name) for side in sides.values()} | of_table.get(role, {})
        if len(set(kinds.values())) > 1 and all(kinds.values()):
            found = ", ".join(f"{name}: {kind}" for name, kind in kinds.items())
            raise InputTypeError(f"{role} ids must be of one type on all sides, found {found}{SPELL_ALIKE}")


def _numbered_labels(sides: Mapping[str, EngineSide], columns: Columns) -> set[str]:
    """Return the columns to group by that hold integers.

    Tasks read labels of these as strings: else a partition in which a user lacks a label would do so by itself.
    """
    from pyarrow import types

    schemas = [side.empty.schema for side in sides.values()]
    kinds = {name: [own.field(name).type for own in schemas if name in own.names] for name in columns.groupings()}
    return {name for name, own in kinds.items() if all(map(types.is_integer, own))}


def _with_strings(empty: Table, names: Collection[str]) -> Table:
    """Return a table without rows with some columns of strings."""
    import pyarrow as pa

    kinds = [own.with_type(pa.string()) if own.name in names else own for own in empty.schema]
    return pa.schema(kinds).empty_table()


def _spelled(groups: Mapping[Any, Any], *, numbered: bool) -> dict[Any, Any]:
    """Return groups with their integer labels restored, if every user has a label."""
    if not numbered or NO_LABEL in groups:
        return dict(groups)
    return dict(sorted((int(label), estimates) for label, estimates in groups.items()))

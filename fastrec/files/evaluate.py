"""Evaluation of files: lists against truth, or scored rows, of any size."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fastrec.arguments import options_in, pick
from fastrec.checks import (
    MAX_ITEMS,
    check_path,
    check_progress,
    check_text,
    listed,
    nearest,
    shown_url,
    with_article,
)
from fastrec.evaluation.list_rules import read_no_truth
from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.files.columns import ITEMS, USERS, ListColumns, RowColumns
from fastrec.files.formats.base import Format
from fastrec.files.formats.recognise import AUTO, format_asked
from fastrec.files.job import EVALUATING
from fastrec.files.lists import evaluate_lists
from fastrec.files.opened import has_column
from fastrec.files.places import fetched
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.items import ITEM_ID, ItemTable
from fastrec.inputs.row_groups import check_apart
from fastrec.inputs.sides import SIDES
from fastrec.metrics.recipes import order_of
from fastrec.policies import BY_ID
from fastrec.report.report import Report
from fastrec.runtime.limits import read_size

if TYPE_CHECKING:
    from fastrec.evaluation.rows import RowEvaluation

LOG = "a log, without truth"
COLUMNS = "item rank score gain propensity logged_rank subtopic item_sep label sample_weight"  # one name each
SETTINGS = (*options_in(ListEvaluation.__init__), "one_class")  # of lists and of logs


def report_of_files(
    recs: Path, truth: Path | None, metrics: str | Iterable[str] | None, asked: dict[str, Any], given: dict[str, Any]
) -> Report:
    """Return the report of a call of `evaluate_files`.

    `asked` has all options of the call, `given` those that differ from their defaults.
    """
    paths = {"recs": recs, "truth": truth, **{name: asked[name] for name in asked if name in {*SIDES, USERS, ITEMS}}}
    for name, path in paths.items():
        if any(hasattr(path, part) for part in ("columns", "__arrow_c_stream__", "collect_schema")):
            kind = with_article(type(path).__name__)
            raise InputTypeError(f"{name} must be a path, found {kind}: evaluate takes data frames")
    folder, watch = asked["temp_directory"], _watch_for(asked["progress"])
    input_format = format_asked(asked["csv"], asked["input_format"])
    resources = Resources(read_size(asked["memory"]), folder, asked["n_threads"], watch, input_format)
    labels = read_user_labels(asked["by"], asked["user"])
    groupings = () if labels is not None else _names(asked["by"], "by") or ()
    row_by = tuple(dict.fromkeys(_names(asked["row_by"], "row_by") or ()))
    check_apart(groupings if labels is None else labels.groupings, row_by)
    users = _names(asked["user"], "user")
    names = {name: asked[name] for name in COLUMNS.split()}
    _check_given(check_text, **names)
    columns = {**names, "users": users, "by": groupings, "row_by": row_by, "weight": names["sample_weight"]}
    _check_given(check_path, **paths, temp_directory=folder)
    if paths.get(USERS) is not None and not groupings:
        raise InputError(
            Argument(USERS), " has labels of users, but no column of them is named: add ", Argument("by", (...,))
        )
    if folder is not None and not os.path.isdir(folder):
        raise InputError(Argument("temp_directory"), f" must be a folder, found {shown_url(os.fspath(folder))!r}")
    metrics, asked["k"] = _kept(metrics), _kept(asked["k"])
    given["k"] = asked["k"]
    tables = {name: path for name, path in paths.items() if path is not None}
    with contextlib.ExitStack() as places:
        if truth is None:
            tables = places.enter_context(fetched(tables, folder))
            if not is_of_lists(tables["recs"], metrics, asked):
                from fastrec.evaluation.rows import RowEvaluation
                from fastrec.files.rows import evaluate_log

                _reject(asked, ("rank", "gain", *(name for name in tables if name not in ("recs", USERS))), LOG)
                settings = _settings(RowEvaluation.__init__, LOG, given)
                tables = {"log": tables.pop("recs"), **tables}
                make = _maker(metrics, settings, weighted=asked["sample_weight"] is not None)
                if columns["item"] is None:
                    columns["item"] = _item_of_log(tables["log"], make(has_users=True), input_format)
                of_rows = RowColumns(**_given(columns, RowColumns), ratings=make(has_users=True).needs_targets)
                return evaluate_log(make, tables, of_rows, resources, labels).report
        _reject(asked, ("label", "sample_weight", "row_by"), "lists, with truth")
        settings = _settings(ListEvaluation.__init__, "lists, with truth", given)
        if users == ():
            raise InputTypeError(f"user must be the name of a column or several, found {shown(asked['user'])}")
        of_lists = ListColumns(**_given(columns, ListColumns), ordered_by=order_of(asked["like"]))
        make_lists = maker_of_lists(metrics, settings)
        tables = places.enter_context(fetched(tables, folder))
        return evaluate_lists(make_lists, tables, of_lists, resources, labels).report


def _kept(values: Any) -> Any:
    """Return values that can be read several times."""
    return list(values) if isinstance(values, Iterator) else values


def is_of_lists(recs: Path, metrics: Any, asked: Mapping[str, Any]) -> bool:
    """Return whether a file that comes without a truth holds lists, not a log of labelled rows.

    It does if no metric reads a truth, and neither an argument nor the file has labels. `asked` are arguments. Raise
    MetricError for wrong metrics.
    """
    if any(asked.get(name) is not None for name in ("label", "sample_weight", "row_by")) or metrics is None:
        return False
    of_lists = any(asked.get(name) is not None for name in (*SIDES, ITEMS) if name not in ("recs", "truth"))
    if not read_no_truth(metrics, *(asked.get(name) for name in ("like", "k", "min_gain")), of_lists=of_lists):
        return False
    return not has_column(recs, RowColumns().label, format_asked(asked.get("csv"), asked.get("input_format") or AUTO))


def _item_of_log(log: Path, evaluation: RowEvaluation, input_format: str | Format) -> str | None:
    """Return the usual column of items of a log if ties need it and the log has it, as for frames."""
    return ITEM_ID if evaluation.settings["ties"] in BY_ID and has_column(log, ITEM_ID, input_format) else None


def maker_of_lists(metrics: Any, settings: Mapping[str, Any]) -> Callable[[ItemTable | None], ListEvaluation]:
    """Return a function that makes the evaluation of lists, given the table of items. Wrong metrics raise at once."""
    own = {name: value for name, value in settings.items() if name not in (*SIDES, ITEMS)}
    if settings.get(ITEMS) is None:
        evaluation = ListEvaluation(metrics, **own)
        return lambda _: evaluation
    size = {} if own.get("n_items") is not None else {"n_items": MAX_ITEMS}
    ListEvaluation(metrics, **{**own, **size})
    return lambda items: ListEvaluation(metrics, **own, items=items)


def _settings(constructor: Callable[..., Any], what: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an evaluator that a call gives; raise for those of the other family."""
    own = options_in(constructor)
    for name in SETTINGS:
        if name not in own and given.get(name) is not None:
            raise InputTypeError(f"evaluate_files takes no argument {name!r} for {what}{nearest(name, list(own))}")
    return pick(constructor, given)


def _given(columns: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return the columns that a call names, of those of a kind."""
    names = (field.name for field in dataclasses.fields(kind))
    return {name: columns[name] for name in names if columns.get(name) is not None}


def _maker(metrics: Any, settings: dict[str, Any], *, weighted: bool) -> Callable[..., RowEvaluation]:
    """Return a function that makes an evaluation of a log with users or without; the usual metrics depend on it."""
    from fastrec.evaluation.rows import RowEvaluation, usual_of_rows

    if metrics is not None or settings.get("like") is not None:
        scorer = RowEvaluation(metrics, **settings)
        return lambda has_users: scorer  # noqa: ARG005 - called by name, too
    k = settings.pop("k", None)

    def make(has_users: bool) -> RowEvaluation:  # noqa: FBT001 - called by position
        return RowEvaluation(usual_of_rows(k, has_users=has_users, weighted=weighted), **settings)

    return make


def _check_given(check: Callable[[str, Any], Any], **arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            check(name, value)


def _names(names: Any, argument: str) -> tuple[str, ...] | None:
    """Return the names of columns in an argument, which may be one name or several."""
    if names is None:
        return None
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else listed(names, argument)
    return tuple(check_text(argument, name) for name in found)


def _watch_for(progress: Progress | None) -> Watch:
    """Return a `Watch` that reports rows of the evaluating stage only, not of the stages before."""
    check_progress(progress)

    def watch(stage: str, done: int, total: int) -> None:
        if progress is not None and stage == EVALUATING:
            progress(done, total)

    return watch


def _reject(asked: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    for name in names:
        if asked[name] is not None:
            raise InputError(f"{name} does not apply to {what}")

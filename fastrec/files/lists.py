"""Evaluation of lists and truth from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastrec.evaluation.lists import Evaluator, evaluate_at_once, review, take_counts
from fastrec.files.columns import ITEMS, ListColumns
from fastrec.files.faults import finished, named_as_in
from fastrec.files.hints import OpenSides, hints_of_lists
from fastrec.files.items import count_history_of, read_items_of
from fastrec.files.job import Data, Evaluated, FileJob, batches, roles_of_lists
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.inputs.column_names import Columns
from fastrec.inputs.history import HistoryCounts
from fastrec.inputs.items import ItemTable
from fastrec.inputs.sides import SIDES, shared_rows, with_logged
from fastrec.inputs.users import UserLabels
from fastrec.report.report import record

__all__ = ["evaluate_lists"]


def evaluate_lists(
    make_evaluator: Callable[[ItemTable | None], Evaluator],
    paths: Mapping[str, Path],
    columns: ListColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Evaluate the files of sides, "recs" at least, with the files "items" (columns) and "users" (labels) if given.

    The side `exclude` may be "history", and `logged` "truth". `make_evaluator` gets the table of items.
    """
    paths = with_logged(paths)
    shared = shared_rows(paths)
    own = {table: path for table, path in paths.items() if table not in shared}
    job = FileJob.open(own, columns, resources, watch, input_format, labels_by_user)
    found = _evaluate_whole_lists(make_evaluator, job, shared)
    if found is not None:
        return found
    with job.database(roles_of_lists) as loaded:
        con, files = loaded.con, loaded.files
        items = None
        if ITEMS in files:
            with named_as_in(files, streamed=False):
                items = read_items_of(con, files[ITEMS], loaded.ids["item"])
        evaluator = make_evaluator(items)
        numbers = list(dict.fromkeys(role for side in SIDES.values() for role in side.columns))
        data = Data.of(loaded, SIDES, numbers, watch)
        if "history" in files:
            take_counts(evaluator, lambda: count_history_of(con, files["history"], loaded.ids))
        given = _arguments(job, data.progress())
        for batch in batches(data):
            with named_as_in(files, streamed=loaded.streamed is not None):
                evaluator.update_sides({**batch, **shared}, **given)
        if evaluator._needs_review:  # noqa: SLF001 - not an attribute for users
            for batch in batches(data, again=True):
                review(evaluator, {**batch, **shared}, given)
        found = finished(evaluator.result(), columns.users, loaded.numbered)
        if "truth" in files:
            roles = {table: file.names for table, file in files.items()}
            listed = {table: [*file.source.columns] for table, file in files.items()}
            opened = OpenSides(con, files["recs"].source, files["truth"].source)
            record(found.report, hints_of_lists(job, evaluator, roles, listed, opened))
        return found


def _evaluate_whole_lists(
    make_evaluator: Callable[[ItemTable | None], Evaluator], job: FileJob[ListColumns], shared: Mapping[str, str]
) -> Evaluated | None:
    """Evaluate files that fit in memory and need no database; return None if they need one."""
    whole = job.read_whole()
    if whole is None:
        return None
    tables, evaluator = whole.tables, make_evaluator(whole.items)
    sides = {**tables, **shared}

    def update(progress: Progress | None) -> None:
        if "history" in tables:
            columns = Columns(user=list(job.columns.users), item=job.columns.item)
            take_counts(evaluator, lambda: HistoryCounts.read(tables["history"], columns, 1))
        evaluate_at_once(evaluator, sides, _arguments(job, progress))

    if not job.take_whole(whole.n_rows, update):
        evaluator.reset()
        return None
    for held in (tables, sides):
        held.clear()  # a database may need the memory
    found = finished(evaluator.result(), job.columns.users)
    record(found.report, hints_of_lists(job, evaluator, whole.names, whole.listed))
    return found


def _arguments(job: FileJob[ListColumns], progress: Progress | None) -> dict[str, Any]:
    """Return the arguments of `update_sides`."""
    columns = job.opened["recs"].columns  # as the format has them
    assert isinstance(columns, ListColumns)
    roles = ("item", "rank", "score", "gain", "propensity", "logged_rank", "subtopic")
    named = {role: getattr(columns, role) for role in roles}
    return {**named, "user": list(columns.users), "by": job.labels_by_user or columns.by or None, "progress": progress}

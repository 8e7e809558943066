"""Lists and truth from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fastrec.evaluation.lists import Evaluator
from fastrec.files.columns import ListColumns
from fastrec.inputs.users import UserLabels
from fastrec.report.report import record

if TYPE_CHECKING:
    pass
from fastrec.files.faults import finished, named_as_in
from fastrec.files.hints import hints_of_columns_in, hints_of_files, hints_of_files_columns, hints_of_tables, left_open
from fastrec.files.job import Data, Evaluated, FileJob, Opened, batches, roles_of_lists, select_sql
from fastrec.files.labels import LabelsOfUsers
from fastrec.files.resources import Resources

__all__ = ["evaluate_lists"]


Watch = Callable[[str, int, int], Any]  # told the stage, and the rows that are done and all rows of it
Progress = Callable[[int, int], Any]
Path = str | os.PathLike[str]


def evaluate_lists(
    evaluator: Evaluator,
    paths: Mapping[str, Path],
    columns: ListColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Lists, truth and, if given, seen items and labels of users from the files "recs", "truth", "seen", "users"."""
    job = FileJob(paths, columns, resources, watch, input_format, labels_by_user)
    found = _evaluate_whole_lists(evaluator, job)
    if found is not None:
        return found
    with job.database(roles_of_lists) as loaded:
        con, files, labels = loaded.con, loaded.files, loaded.labels
        sides = {table: file for table, file in files.items() if table != "users"}
        selects = {
            table: select_sql(file, ("rank", "score", "gain"), loaded.ids, labels) for table, file in sides.items()
        }
        data = Data(loaded, selects, watch)
        for batch in batches(data, ("user",)):
            with named_as_in(files, streamed=loaded.streamed is not None):
                _update_lists(evaluator, batch, labels_by_user or labels.columns, data.progress())
        found = finished(evaluator.result(), {"user": columns.user}, labels)
        recs, truth = files["recs"], files["truth"]
        opened = Opened(con, recs.source, truth.source)
        names = list(recs.source.columns), list(truth.source.columns)
        left = left_open(recs.names, truth.names, columns, evaluator)
        more = hints_of_files_columns(names, columns, left, lambda: opened)
        record(found.report, (*hints_of_tables(con, found.report, files), *more))
        return found


def _evaluate_whole_lists(evaluator: Evaluator, job: FileJob[ListColumns]) -> Evaluated | None:
    """The same of files that fit in memory and need no database; None if one is needed."""
    whole = job.read_whole()
    if whole is None or not job.take_whole(
        whole, lambda progress: _update_lists(evaluator, whole, job.labels_by_user, progress)
    ):
        return None
    left = left_open(whole["recs"].column_names, whole["truth"].column_names, job.columns, evaluator)
    whole.clear()  # a database may need the memory
    found = finished(evaluator.result(), {"user": job.columns.user}, LabelsOfUsers((), (), {}, None))
    record(found.report, (*hints_of_files(found.report, job), *hints_of_columns_in(job, left)))
    return found


def _update_lists(
    evaluator: Evaluator, tables: Mapping[str, Any], by: UserLabels | Sequence[str] | None, progress: Progress | None
) -> None:
    """Add tables whose columns are named by role."""
    names = {role: role for role in ("rank", "score") if role in tables["recs"].column_names}
    names |= {"gain": "gain"} if "gain" in tables["truth"].column_names else {}
    evaluator.update(
        tables["recs"],
        tables["truth"],
        exclude=tables.get("seen"),
        user="user",
        item="item",
        by=by or None,
        progress=progress,
        **names,
    )

"""Evaluation of lists and truth from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastrec.evaluation.lists import Evaluator
from fastrec.files.columns import ListColumns
from fastrec.files.faults import finished, named_as_in
from fastrec.files.hints import (
    OpenSides,
    explain_unmatched_files,
    explain_unmatched_tables,
    hints_of_parquet_columns,
    hints_of_unused_columns,
    left_open,
)
from fastrec.files.job import Data, Evaluated, FileJob, batches, roles_of_lists, select_sql
from fastrec.files.labels import LabelsOfUsers
from fastrec.files.opened import open_files
from fastrec.files.resources import Resources
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import UserLabels
from fastrec.report.report import record

__all__ = ["evaluate_lists"]


Watch = Callable[[str, int, int], Any]  # called with the stage, its rows that are done, and all its rows
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
    """Evaluate the files "recs" and "truth" and, if given, "exclude" (items to remove) and "users" (labels)."""
    job = FileJob(open_files(paths, columns, input_format), columns, resources, watch, labels_by_user)
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
        sides_of_hints = OpenSides(con, recs.source, truth.source)
        names = list(recs.source.columns), list(truth.source.columns)
        left = left_open(recs.names, truth.names, columns, evaluator)
        more = hints_of_unused_columns(names, columns, left, lambda: sides_of_hints)
        record(found.report, (*explain_unmatched_tables(con, found.report, files), *more))
        return found


def _evaluate_whole_lists(evaluator: Evaluator, job: FileJob[ListColumns]) -> Evaluated | None:
    """Evaluate files that fit in memory and need no database; return None if they need one."""
    whole = job.read_whole()
    if whole is None or not job.take_whole(
        whole.tables, lambda progress: _update_lists(evaluator, whole.tables, job.labels_by_user, progress)
    ):
        return None
    left = left_open(whole.tables["recs"].column_names, whole.tables["truth"].column_names, job.columns, evaluator)
    whole.tables.clear()  # a database may need the memory
    found = finished(evaluator.result(), {"user": job.columns.user}, LabelsOfUsers((), (), {}, None))
    more = hints_of_parquet_columns(job, (whole.listed["recs"], whole.listed["truth"]), left)
    record(found.report, (*explain_unmatched_files(found.report, job), *more))
    return found


def _update_lists(
    evaluator: Evaluator, tables: Mapping[str, Any], by: UserLabels | Sequence[str] | None, progress: Progress | None
) -> None:
    """Add tables with columns named by role to the evaluator."""
    names = {role: role for role in ("rank", "score") if role in tables["recs"].column_names}
    names |= {"gain": "gain"} if "gain" in tables["truth"].column_names else {}
    evaluator.update_sides(
        {name: table for name, table in tables.items() if name in SIDES},
        user="user",
        item="item",
        by=by or None,
        progress=progress,
        **names,
    )

"""Evaluation of scored rows from files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.evaluation.rows import ScoreEvaluator
from fastrec.exceptions import FastrecError
from fastrec.files.columns import RowColumns
from fastrec.files.faults import finished, named_as_in
from fastrec.files.job import Data, Evaluated, FileJob, batches, numbers_sql, roles_of_log, select_sql, users_of
from fastrec.files.labels import LabelsOfUsers
from fastrec.files.opened import open_files
from fastrec.files.resources import Resources
from fastrec.inputs.arrow import read_numbers
from fastrec.inputs.users import UserLabels
from fastrec.report.report import Report

__all__ = ["evaluate_log"]


Watch = Callable[[str, int, int], Any]  # called with the stage, its rows that are done, and all its rows
Progress = Callable[[int, int], Any]
Path = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


def evaluate_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    paths: Mapping[str, Path],
    columns: RowColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    curves: Callable[[Array, Array, Array | None], Any] | None = None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Evaluate labels and scores (or targets and predictions) of the file "log", with group labels also from "users".

    `make_evaluator` gets whether there are users; `curves` gets the labels, scores and weights of all rows.
    """
    label, score = columns.values
    job = FileJob(open_files(paths, columns, input_format), columns, resources, watch, labels_by_user)
    found = _evaluate_whole_log(make_evaluator, job, curves)
    if found is None and curves is None:
        found = _evaluate_parts_of_log(make_evaluator, job)
    if found is not None:
        return found
    with job.database(roles_of_log) as loaded:
        con, file, labels = loaded.con, loaded.files["log"], loaded.labels
        users = users_of(file.names)
        select = select_sql(file, (label, score, "weight"), loaded.ids, labels)
        evaluator = make_evaluator(bool(users))
        data = Data(loaded, {"log": select}, watch)
        for batch in batches(data, users):
            with named_as_in({"log": file}, streamed=loaded.streamed is not None):
                _update_log(evaluator, batch["log"], columns, labels_by_user or labels.columns, data.progress())
        found = finished(evaluator.result(), {role: file.names[role] for role in users}, labels)
        if curves is None:
            return found
        picked = ", ".join(numbers_sql(file, (label, score, "weight")))
        cursor = con.cursor()  # an older DuckDB closes a cursor that has no reference
        rows = cursor.sql(f"SELECT {picked} FROM log AS t").fetchnumpy()
        with named_as_in({"log": file}, streamed=False):
            drawn = curves(np.asarray(rows[label]), np.asarray(rows[score]), rows.get("weight"))
        return found._replace(curves=drawn)


def _evaluate_whole_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    job: FileJob[RowColumns],
    curves: Callable[[Array, Array, Array | None], Any] | None,
) -> Evaluated | None:
    """Evaluate a file that fits in memory and needs no database; return None if it needs one."""
    whole = job.read_whole()
    if whole is None:
        return None
    rows = whole.tables["log"]
    evaluator = make_evaluator(bool(users_of(rows.column_names)))
    if not job.take_whole(
        whole.tables, lambda progress: _update_log(evaluator, rows, job.columns, job.labels_by_user, progress)
    ):
        return None
    found = _finish_rows(evaluator.result(), users_of(rows.column_names), job.columns)
    if curves is None:
        return found
    label, score = (read_numbers(rows.column(role), role) for role in job.columns.values)
    weights = read_numbers(rows.column("weight"), "weight") if "weight" in rows.column_names else None
    return found._replace(curves=curves(label, score, weights))


def _evaluate_parts_of_log(
    make_evaluator: Callable[[bool], ScoreEvaluator], job: FileJob[RowColumns]
) -> Evaluated | None:
    """Evaluate a file of more rows than fit in memory, part by part; return None if it needs a database."""
    with contextlib.ExitStack() as stack:
        parts = job.cut_by_user(stack)
        if parts is None:
            return None
        evaluator = make_evaluator(True)  # noqa: FBT003 - a callable that is passed
        try:
            for batch in job.batches(parts):
                _update_log(evaluator, batch["log"], job.columns, job.labels_by_user, None)
        except (FastrecError, OSError):  # DuckDB says where the fault is
            return None
        return _finish_rows(evaluator.result(), parts.found["log"].users, job.columns)


def _finish_rows(report: Report, users: Sequence[str], columns: RowColumns) -> Evaluated:
    """Return the result for files that needed no database; `users` are the roles of columns of users."""
    names = dict(zip(users, columns.users or ("user_id",) * len(users), strict=True))
    return finished(report, names, LabelsOfUsers((), (), {}, None))


def _update_log(
    evaluator: ScoreEvaluator,
    rows: Any,
    columns: RowColumns,
    by: UserLabels | Sequence[str] | None,
    progress: Progress | None,
) -> None:
    """Add rows of a log, columns named by role, to the evaluator."""
    label, score = columns.values
    users = users_of(rows.column_names)
    evaluator.update(
        rows,
        user=(users if len(users) > 1 else users[0]) if users else None,
        label=label,
        score=score,
        item="item" if "item" in rows.column_names else None,
        sample_weight="weight" if "weight" in rows.column_names else None,
        by=by or None,
        progress=progress,
    )

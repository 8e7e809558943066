"""Evaluation of scored rows from files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastrec.evaluation.rows import ScoreEvaluator, add_and_review, read_batch, review
from fastrec.files.columns import RowColumns, users_of
from fastrec.files.faults import finished, named_as_in
from fastrec.files.job import Data, Evaluated, FileJob, batches, roles_of_log, select_sql
from fastrec.files.labels import LabelsOfUsers, segments_sql
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.inputs.hints import hints_of_rows
from fastrec.inputs.rows import Rows
from fastrec.inputs.users import UserLabels
from fastrec.report.report import record

__all__ = ["evaluate_log", "map_log"]


T = TypeVar("T")


def map_log(job: FileJob[Any], numbers: Sequence[str], work: Callable[[Any], T]) -> tuple[list[T], Sequence[str]]:
    """Return what `work` makes of the rows of a log, or of parts of whole users if they are many, and all columns.

    `numbers` are roles of columns of numbers.
    """
    found: list[T] = []
    whole = job.read_whole()
    if whole is not None and job.take_whole(whole.n_rows, lambda _: found.append(work(whole.tables["log"]))):
        return found, whole.listed["log"]
    with job.database(roles_of_log) as loaded:
        file = loaded.files["log"]
        select = select_sql(file, numbers, loaded.ids, loaded.labels, segments_sql(loaded.con, file))
        for batch in batches(Data(loaded, {"log": select}, job.watch), users_of(file.names)):
            with named_as_in({"log": file}, streamed=loaded.streamed is not None):
                found.append(work(batch["log"]))
        return found, list(file.source.columns)


def evaluate_log(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    paths: Mapping[str, Path],
    columns: RowColumns,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Evaluate labels and scores (or targets and predictions) of the file "log", with group labels also from "users".

    `make_evaluator` gets whether there are users.
    """
    label, score = columns.values
    job = FileJob.open(paths, columns, resources, watch, input_format, labels_by_user)
    found = _evaluate_log_in_memory(make_evaluator, job)
    if found is not None:
        return found
    with job.database(roles_of_log) as loaded:
        file, labels = loaded.files["log"], loaded.labels
        users = users_of(file.names)
        select = select_sql(file, (label, score, "weight"), loaded.ids, labels, segments_sql(loaded.con, file))
        evaluator = make_evaluator(bool(users))
        data = Data(loaded, {"log": select}, watch)
        by = labels_by_user or labels.columns
        for batch in batches(data, users):
            with named_as_in({"log": file}, streamed=loaded.streamed is not None):
                if loaded.streamed:
                    _pass_log(evaluator.update, batch["log"], columns, by, data.progress())
                else:
                    add_and_review(evaluator, _read_log(evaluator, batch, columns, by), data.progress())
        with named_as_in({"log": file}, streamed=loaded.streamed is not None):
            evaluator._check_all()  # noqa: SLF001 - not an attribute for users
        if loaded.streamed and users and evaluator._needs_review:  # noqa: SLF001 - not an attribute for users
            for batch in batches(data, users, again=True):
                _pass_log(functools.partial(review, evaluator), batch["log"], columns, by, None)
        found = _finished(evaluator, {role: file.names[role] for role in users}, labels, columns)
        return _hinted(found, columns, list(file.source.columns))


def _hinted(found: Evaluated, columns: RowColumns, names: Sequence[str]) -> Evaluated:
    """Return a result whose report has hints; `names` are all columns of the log."""
    record(found.report, hints_of_rows(names, columns.names) if columns.users is None else ())
    return found


def _evaluate_log_in_memory(
    make_evaluator: Callable[[bool], ScoreEvaluator], job: FileJob[RowColumns]
) -> Evaluated | None:
    """Evaluate a file that fits in memory; return None if it needs a database."""
    whole = job.read_whole()
    if whole is None:
        return None
    users = users_of(whole.names["log"])
    evaluator = make_evaluator(bool(users))

    def update(progress: Progress) -> None:
        """Read the rows, free the memory they were read into, and evaluate them."""
        add_and_review(evaluator, _read_log(evaluator, whole.tables, job.columns, job.labels_by_user), progress)

    if not job.take_whole(whole.n_rows, update):
        evaluator.reset()
        return None
    names = dict(zip(users, job.columns.users or ("user_id",) * len(users), strict=True))
    found = _finished(evaluator, names, LabelsOfUsers((), (), {}, None), job.columns)
    return _hinted(found, job.columns, whole.listed["log"])


def _finished(
    evaluator: ScoreEvaluator, users: Mapping[str, str], labels: LabelsOfUsers, columns: RowColumns
) -> Evaluated:
    """Return the result of all rows."""
    segments = _segments_of(columns)

    def named(kept: Mapping[tuple[str, Any] | None, T]) -> dict[tuple[str, Any] | None, T]:
        return {
            (segments[key[0]], key[1]) if key and key[0] in segments else key and labels.named(*key): own
            for key, own in kept.items()
        }

    found = finished(evaluator.result(), users, labels, segments)
    return found._replace(score_counts=named(evaluator.score_counts), users_by_bin=named(evaluator.users_by_bin))


def _segments_of(columns: RowColumns) -> dict[str, str]:
    """Return the columns to segment rows by: {role: column}."""
    return {f"row_by{nth}": name for nth, name in enumerate(columns.row_by)}


def _read_log(
    evaluator: ScoreEvaluator, tables: dict[str, Any], columns: RowColumns, by: UserLabels | Sequence[str] | None
) -> Rows:
    """Take the table "log" out of `tables` and return its checked rows: the evaluation needs the table's memory."""
    rows: Rows = _pass_log(functools.partial(read_batch, evaluator), tables.pop("log"), columns, by, None)
    return rows


def _pass_log(
    take: Callable[..., Any],
    rows: Any,
    columns: RowColumns,
    by: UserLabels | Sequence[str] | None,
    progress: Progress | None,
) -> Any:
    """Pass rows of a log, columns named by role, as arguments of `ScoreEvaluator.update`; return what comes back."""
    label, score = columns.values
    users = users_of(rows.column_names)
    return take(
        rows,
        user=(users if len(users) > 1 else users[0]) if users else None,
        label=label,
        score=score,
        item="item" if "item" in rows.column_names else None,
        sample_weight="weight" if "weight" in rows.column_names else None,
        by=by or None,
        row_by=list(_segments_of(columns)) or None,
        progress=progress,
    )

"""Evaluation of scored rows from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastrec.evaluation.rows import RowEvaluation
from fastrec.files.columns import RowColumns
from fastrec.files.job import Evaluated, FileJob, finished
from fastrec.files.reader import TableReader
from fastrec.files.resources import Path, Resources
from fastrec.inputs.findings.columns import hints_of_rows
from fastrec.inputs.users import UserLabels
from fastrec.report.report import Report, record

T = TypeVar("T")


def map_log(job: FileJob[Any], work: Callable[[Any, Mapping[str, str]], T]) -> tuple[list[T], TableReader]:
    """Return what `work` makes of the rows of a log, or of parts of whole users if they are many, and its reader."""
    found: list[T] = []
    with job.rows() as rows:
        reader = rows.readers["log"]
        rows.progress()
        for batch in rows.batches():
            with rows.named():
                found.append(work(batch["log"], reader.names))
        return found, reader


def evaluate_log(
    make_evaluation: Callable[[bool], RowEvaluation],
    paths: Mapping[str, Path],
    columns: RowColumns,
    resources: Resources,
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Evaluate labels and scores (or targets and predictions) of the file "log", with group labels also from "users".

    `make_evaluation` gets whether there are users.
    """
    with FileJob.open(paths, columns, resources).rows() as rows:
        evaluation = make_evaluation(bool(rows.users))
        given = arguments_of_log(columns, rows.users) | ({} if labels_by_user is None else {"by": labels_by_user})
        for batch in rows.batches():
            with rows.named():
                if rows.is_streamed:
                    evaluation.update(batch["log"], None, None, given)
                else:
                    evaluation.evaluate(evaluation.prepare(batch.pop("log"), None, None, given), rows.progress())
        with rows.named():
            evaluation.check_all()
        if rows.is_streamed and rows.users and evaluation.needs_second_pass:
            for batch in rows.batches():
                evaluation.second_pass(evaluation.prepare(batch["log"], None, None, given))
        found = finished(evaluation.report(), rows)
        names = rows.readers["log"].listed
        record(found.report, hints_of_rows(names, columns.names) if columns.users is None else ())
        counts, bins = _typed(evaluation.score_counts, found.report), _typed(evaluation.users_by_bin, found.report)
        return found._replace(score_counts=counts, users_by_bin=bins)


def _typed(kept: Mapping[tuple[str, Any] | None, T], report: Report) -> dict[tuple[str, Any] | None, T]:
    """Return what is kept of each group, with the labels of the report."""
    by_name = {name: {str(label): label for label in own} for name, own in report.groups.items()}
    return {key and (key[0], by_name.get(key[0], {}).get(str(key[1]), key[1])): own for key, own in kept.items()}


def arguments_of_log(columns: RowColumns, users: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of a batch; `users` are the columns that make a user."""
    return {
        "user": (list(users) if len(users) > 1 else users[0]) if users else None,
        "label": columns.label,
        "score": columns.score,
        "item": columns.item,
        "sample_weight": columns.weight,
        "by": columns.by or None,
        "row_by": columns.row_by or None,
        "progress": None,
    }

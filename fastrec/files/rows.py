"""Evaluation of scored rows from files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from fastrec.evaluation.rows import ScoreEvaluator, add_and_review, read_batch, review
from fastrec.files.columns import RowColumns, users_of
from fastrec.files.faults import finished, named_as_in
from fastrec.files.job import Data, Evaluated, FileJob, batches, roles_of_log
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.inputs.hints import hints_of_rows
from fastrec.inputs.users import UserLabels
from fastrec.report.report import record

__all__ = ["evaluate_log", "map_log"]


T = TypeVar("T")


def map_log(
    job: FileJob[Any], numbers: Sequence[str], work: Callable[[Any, Mapping[str, str]], T]
) -> tuple[list[T], Sequence[str]]:
    """Return what `work` makes of the rows of a log, or of parts of whole users if they are many, and all columns.

    `numbers` are roles of columns of numbers.
    """
    found: list[T] = []
    whole = job.read_whole()
    if whole is not None:
        rows, names = whole.tables["log"], whole.names["log"]
        if job.take_whole(whole.n_rows, lambda _: found.append(work(rows, names))):
            return found, whole.listed["log"]
    with job.database(roles_of_log) as loaded:
        file = loaded.files["log"]
        for batch in batches(Data.of(loaded, ["log"], numbers, job.watch)):
            with named_as_in({"log": file}, streamed=loaded.streamed is not None):
                found.append(work(batch["log"], file.names))
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
    job = FileJob.open(paths, columns, resources, watch, input_format, labels_by_user)
    found = _evaluate_log_in_memory(make_evaluator, job)
    if found is not None:
        return found
    with job.database(roles_of_log) as loaded:
        file, is_streamed = loaded.files["log"], loaded.streamed is not None
        evaluator = make_evaluator(bool(loaded.users))
        data = Data.of(loaded, ["log"], (*columns.values, "weight"), watch)
        given = _arguments(job, loaded.users)
        for batch in batches(data):
            with named_as_in(loaded.files, streamed=is_streamed):
                if is_streamed:
                    evaluator.update(batch["log"], **given)
                else:
                    add_and_review(evaluator, read_batch(evaluator, batch.pop("log"), **given), data.progress())
        with named_as_in(loaded.files, streamed=is_streamed):
            evaluator._check_all()  # noqa: SLF001 - not an attribute for users
        if is_streamed and loaded.users and evaluator._needs_review:  # noqa: SLF001 - not an attribute for users
            for batch in batches(data, again=True):
                review(evaluator, batch["log"], **given)
        found = _finished(evaluator, loaded.users, loaded.numbered)
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
    names = whole.names["log"]
    users = tuple(names[role] for role in users_of(names))
    evaluator = make_evaluator(bool(users))

    def update(progress: Progress) -> None:
        """Read the rows, free the memory they were read into, and evaluate them."""
        rows = read_batch(evaluator, whole.tables.pop("log"), **_arguments(job, users))
        add_and_review(evaluator, rows, progress)

    if not job.take_whole(whole.n_rows, update):
        evaluator.reset()
        return None
    return _hinted(_finished(evaluator, users), job.columns, whole.listed["log"])


def _finished(evaluator: ScoreEvaluator, users: Sequence[str], numbered: Collection[str] = ()) -> Evaluated:
    """Return the result of all rows."""
    found = finished(evaluator.result(), users, numbered)

    def typed(kept: Mapping[tuple[str, Any] | None, T]) -> dict[tuple[str, Any] | None, T]:
        """Return what is kept of each group, with the labels of the report."""
        by_name = {name: {str(label): label for label in own} for name, own in found.report.groups.items()}
        return {key and (key[0], by_name.get(key[0], {}).get(str(key[1]), key[1])): own for key, own in kept.items()}

    return found._replace(score_counts=typed(evaluator.score_counts), users_by_bin=typed(evaluator.users_by_bin))


def _arguments(job: FileJob[RowColumns], users: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of `ScoreEvaluator.update`."""
    columns = job.columns
    return {
        "user": (list(users) if len(users) > 1 else users[0]) if users else None,
        "label": columns.label,
        "score": columns.score,
        "item": columns.item,
        "sample_weight": columns.weight,
        "by": job.labels_by_user or columns.by or None,
        "row_by": columns.row_by or None,
        "progress": None,
    }

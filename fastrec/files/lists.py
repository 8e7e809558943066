"""Evaluation of lists and truth from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastrec.evaluation.lists import ListEvaluation
from fastrec.files.columns import ListColumns
from fastrec.files.hints import hints_of_lists
from fastrec.files.job import Evaluated, FileJob, FileRows, finished
from fastrec.files.resources import Path, Resources
from fastrec.inputs.column_names import Columns
from fastrec.inputs.items import ItemTable
from fastrec.inputs.sides import shared_rows, with_logged
from fastrec.inputs.users import UserLabels
from fastrec.items.history import HistoryCounts
from fastrec.report.report import record


def evaluate_lists(
    make_evaluation: Callable[[ItemTable | None], ListEvaluation],
    paths: Mapping[str, Path],
    columns: ListColumns,
    resources: Resources,
    labels_by_user: UserLabels | None = None,
) -> Evaluated:
    """Evaluate the files of sides, "recs" at least, with the files "items" (columns) and "users" (labels) if given.

    The side `exclude` may be "history", and `logged` "truth". `make_evaluation` gets the table of items.
    """
    paths = with_logged(paths)
    shared = shared_rows(paths)
    own = {table: path for table, path in paths.items() if table not in shared}
    job = FileJob.open(own, columns, resources)
    with job.rows() as rows:
        with rows.named():
            evaluation = make_evaluation(rows.items)
        if "history" in rows.readers and evaluation.reads_popularity:
            evaluation.counts_of_history = _count_history(rows, job.columns)
        given = _arguments(job, labels_by_user) | {"progress": rows.progress()}
        for batch in rows.batches():
            sides = {**batch, **shared}
            batch.clear()
            with rows.named():
                if rows.is_streamed:
                    evaluation.update(sides, given)
                else:
                    evaluation.evaluate(sides, given)
        if rows.is_streamed and evaluation.needs_second_pass:
            for batch in rows.batches():
                evaluation.second_pass(evaluation.prepare({**batch, **shared}, given))
        found = finished(evaluation.report(), rows)
        if "truth" in rows.readers:
            record(found.report, hints_of_lists(job, evaluation, rows.readers))
        return found


def _count_history(rows: FileRows, columns: ListColumns) -> HistoryCounts:
    """Return the users and rows of each item of a history, from parts of whole users."""
    named = Columns(user=list(columns.users), item=columns.item, item_sep=columns.item_sep)
    with rows.named():
        return HistoryCounts.joined([HistoryCounts.read(part["history"], named, 1) for part in rows.parts(["history"])])


def _arguments(job: FileJob[ListColumns], labels_by_user: UserLabels | None) -> dict[str, Any]:
    """Return the arguments of a batch."""
    columns = job.opened["recs"].columns  # as the format has them
    assert isinstance(columns, ListColumns)
    roles = ("item", "rank", "score", "gain", "propensity", "logged_rank", "subtopic", "item_sep")
    named = {role: getattr(columns, role) for role in roles}
    return {**named, "user": list(columns.users), "by": labels_by_user or columns.by or None}

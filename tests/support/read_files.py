"""The rows that evaluations get from files, and the errors that they raise."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple
from unittest import mock

import pytest

from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import InputError
from fastrec.files import job
from fastrec.files.calls import evaluate_files
from fastrec.files.columns import ListColumns, RowColumns
from fastrec.files.lists import evaluate_lists
from fastrec.files.resources import Resources
from fastrec.files.rows import evaluate_log

Side = list[tuple[list[Any], ...]]  # items and numbers of each user


class Logs(NamedTuple):
    """Lists, truth and seen items of the same users, ascending."""

    recs: Side
    truth: Side
    user_ids: Any
    groups: dict[str, Any]
    exclude: Side | None


def in_parts() -> Any:
    """Put all rows into parts."""
    return mock.patch.object(job, "COPIES", 1 << 40)


def fails(*paths: Any, metrics: Any = "mrr", error: type[Exception] = InputError, **options: Any) -> str:
    """Return the message of one line of an evaluation that fails."""
    with pytest.raises(error) as raised:
        evaluate_files(*paths, metrics=metrics, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def evaluate_logs(recs: Any, truth: Any, columns: ListColumns | None = None, *, input_format: str = "auto") -> None:
    """Evaluate files of lists, to see the error."""
    make, paths = (lambda _: ListEvaluation(["mrr"])), {"recs": recs, "truth": truth}
    with warnings.catch_warnings(action="ignore"):
        evaluate_lists(make, paths, columns or ListColumns(), Resources(input_format=input_format))


def evaluate_scored(path: Any, columns: RowColumns | None = None) -> None:
    """Evaluate a file of scored rows, to see the error."""
    evaluate_log(lambda _: RowEvaluation(["mae"]), {"log": path}, columns or RowColumns(), Resources())


def read_logs(
    recs: Any, truth: Any, columns: ListColumns | None = None, *, exclude: Any = None, **resources: Any
) -> Logs:
    """Evaluate files in parts; return the rows that are read."""
    columns, limits = columns or ListColumns(), Resources(**resources)
    paths = {"recs": recs, "truth": truth} | ({} if exclude is None else {"exclude": exclude})
    with in_parts(), warnings.catch_warnings(action="ignore"):
        found = evaluate_lists(lambda _: ListEvaluation(["mrr"], per_user=True, ties="input"), paths, columns, limits)
        with job.FileJob.open(paths, columns, limits).rows() as rows:
            batches = list(rows.batches())
    users = found.report.user_ids
    assert users is not None

    def side(table: str) -> Side:
        names = rows.readers[table].names
        roles = ["item", *(role for role in ("rank", "score", "gain") if role in names)]
        of_user: dict[Any, list[Any]] = {user: [] for user in users.tolist()}
        for batch in batches:
            columns_of_batch = (batch[table].column(names[role]).to_pylist() for role in ("user0", *roles))
            for user, *row in zip(*columns_of_batch, strict=True):
                if user in of_user:
                    of_user[user].append(row)
        if "rank" in roles:
            of_user = {user: [row[:1] for row in sorted(own, key=lambda row: row[1])] for user, own in of_user.items()}
            roles = ["item"]
        return [tuple([row[at] for row in own] for at in range(len(roles))) for own in of_user.values()]

    return Logs(side("recs"), side("truth"), users, found.groups, side("exclude") if exclude is not None else None)

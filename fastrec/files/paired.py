"""Evaluation of the scores of several models for the same rows: columns of one log, or logs whose rows match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import counted
from fastrec.evaluation.rows import RowEvaluation
from fastrec.exceptions import Argument, InputError, Text, joined
from fastrec.files.columns import USERS, ColumnError, RowColumns, users_of
from fastrec.files.faults import named_as_in
from fastrec.files.job import FileJob, finished
from fastrec.files.reader import ROW_NUMBER, TableReader
from fastrec.files.resources import Path, Resources
from fastrec.files.rows import arguments_of_log
from fastrec.files.types import row_codes
from fastrec.inputs.findings.columns import hints_of_rows
from fastrec.inputs.users import NO_LABEL
from fastrec.report.report import Report, record

Array = np.ndarray[Any, Any]
BY_ORDER = ("; rows match by their order unless ", Argument("row_key"), " names columns that identify a row")
TOO_LARGE = (
    "rows without users are compared in memory, and these do not fit: name the columns of users, or allow more memory"
)


def evaluate_paired(
    make_evaluation: Callable[[bool], RowEvaluation],
    logs: Sequence[Path],
    users: Path | None,
    columns: RowColumns,
    resources: Resources,
) -> list[Report]:
    """Return a report per model: for each column of scores of the only log, or for each log.

    `make_evaluation` gets whether there are users; without, each row is a user of its own. The file `users` has labels
    of users. Raise InputError unless all logs have the same rows, users, items, labels and weights, and the same groups
    where further logs have their columns, too.
    """
    paths = {f"log{nth or ''}": path for nth, path in enumerate(logs)} | ({} if users is None else {USERS: users})
    with FileJob.open(paths, columns, resources).rows(numbered=True) as rows:
        readers = {table: reader for table, reader in rows.readers.items() if table != USERS}
        _check_users(readers.values())
        if rows.is_streamed and not rows.users:
            raise InputError(TOO_LARGE)
        models = [(table, score) for table in readers for score in (columns.score, *columns.others)]
        evaluations = [make_evaluation(bool(rows.users)) for _ in models]
        given = arguments_of_log(columns, rows.users)
        reports: list[Report] = []
        for batch in rows.batches():
            parts = {table: _Log(reader, batch[table]) for table, reader in readers.items()}
            first, *others = parts.values()
            matched = dict(zip(parts, [first.rows, *(_matched(first, log, columns) for log in others)], strict=True))
            for (table, score), evaluation in zip(models, evaluations, strict=True):
                given |= {"score": score, "progress": rows.progress()}
                own = matched[table]
                with named_as_in({"log": readers[table]}, streamed=rows.is_streamed or bool(columns.keys)):
                    if rows.is_streamed:
                        evaluation.update(own, None, None, given)
                    else:
                        read = evaluation.prepare(own, None, None, given, alone=True)
                        evaluation.evaluate(read, given["progress"])
                        reports.append(evaluation.report())
        with rows.named():  # weights may be 0 in all batches
            reports = reports or [evaluation.report() for evaluation in evaluations]
        found = [finished(report, rows).report for report in reports]
        for report in found:
            record(report, hints_of_rows(readers["log"].listed, columns.names) if columns.users is None else ())
        return found


def _check_users(readers: Collection[TableReader]) -> None:
    """Raise if only some logs have users."""
    having = [reader for reader in readers if users_of(reader.names)]
    lacking = [reader for reader in readers if not users_of(reader.names)]
    if having and lacking:
        name = having[0].names["user0"]
        raise ColumnError(lacking[0].path, f": no column {name!r}, which {having[0].path} has", role="user")


class _Log(NamedTuple):
    """The rows of a log, or a part of them, and how errors name them."""

    reader: TableReader
    rows: Any  # pyarrow.Table

    def place(self, at: int) -> str:
        """Return how errors name a row."""
        return self.reader.place(self.rows.column(ROW_NUMBER)[int(at)].as_py())


def _matched(first: _Log, other: _Log, columns: RowColumns) -> Any:
    """Return the rows of another log in the order of the first; raise for other rows, or other values."""
    if columns.keys:
        at = _positions(first, other, columns.keys)
        other = other._replace(rows=other.rows.take(at))
    elif not first.rows.column(ROW_NUMBER).equals(other.rows.column(ROW_NUMBER)):
        raise _other_order(first, other, columns)
    _check_same(first, other, columns)
    rows = other.rows
    for name in {*columns.by}.difference(rows.column_names):  # further logs may lack groups
        rows = rows.append_column(name, first.rows.column(name))
    return rows


def _positions(first: _Log, other: _Log, keys: Sequence[str]) -> Array:
    """Return the position in another log of each row of the first, by its key; raise for other or repeated keys."""
    logs = (first, other)
    codes = row_codes([log.rows for log in logs], keys)
    for log, own in zip(logs, codes, strict=True):
        _, at, counts = np.unique(own, return_index=True, return_counts=True)
        again = at[counts > 1]
        if len(again):
            several = f": {counted(len(again), 'key')} in several rows, the first in {_row(log, again.min(), keys)}; "
            raise InputError(log.reader.path, several, Argument("row_key"), " must name columns that identify a row")
    _, mine, theirs = np.intersect1d(codes[0], codes[1], assume_unique=True, return_indices=True)
    wrong = []
    for one, lacking, known in zip(logs, logs[::-1], (mine, theirs), strict=True):
        left = np.setdiff1d(np.arange(len(one.rows)), known)
        if len(left):
            row = f", the first is {_row(one, left[0], keys)}"
            lacks = f" lacks {counted(len(left), 'row')} of "
            wrong.append(Text(lacking.reader.path, lacks, one.reader.path, row))
    if wrong:
        raise InputError("the rows of the files do not match: ", joined(wrong, "; "))
    positions: Array = theirs[np.argsort(mine)]
    return positions


def _other_order(first: _Log, other: _Log, columns: RowColumns) -> InputError:
    """Return the error about logs that have different numbers of rows, or rows of a part in other places."""
    logs = (first, other)
    longer = max(logs, key=lambda log: len(log.rows))
    same = min(len(log.rows) for log in logs)
    rows = [log.rows.slice(0, same) for log in logs]
    differ = [
        _differences(*(own.column(name) for own in rows)) for name in (ROW_NUMBER, *_shared(first, other, columns))
    ]
    at = int(np.append(np.logical_or.reduce(differ), True).argmax())
    mine, others = (log.reader.total for log in logs)
    has = f" has {counted(others, 'row')}, but {mine:,} in "
    says = f"; the first that does not match is {longer.place(at)}"
    return InputError(other.reader.path, has, first.reader.path, says, *BY_ORDER)


def _shared(first: _Log, other: _Log, columns: RowColumns) -> list[str]:
    """Return the columns that must be equal: all but scores; further logs may lack groups."""
    others = {columns.score, ROW_NUMBER, *columns.keys}
    return [name for name in first.rows.column_names if name not in others and name in other.rows.column_names]


def _check_same(first: _Log, other: _Log, columns: RowColumns) -> None:
    """Raise for users, items, labels, weights or groups that differ in matching rows."""
    for name in _shared(first, other, columns):
        mine, theirs = first.rows.column(name), other.rows.column(name)
        wrong = np.flatnonzero(_differences(mine, theirs))
        if not len(wrong):
            continue
        at = int(wrong[0])
        here, there = (_spelled(own[at].as_py()) for own in (mine, theirs))
        raise InputError(
            Text(other.reader.path, f": column {name!r}"),
            f" differs in {counted(len(wrong), 'row')} from ",
            first.reader.path,
            f", the first: {there} in {other.place(at)}",
            f", and {here} in {first.place(at)} of ",
            first.reader.path,
            *(() if columns.keys else BY_ORDER),
        )


def _spelled(value: Any) -> str:
    """Return a value for an error: a whole float as an integer, as files may hold it."""
    if value is None:
        return NO_LABEL
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _differences(one: Any, other: Any) -> Array:
    """Return whether the values of two columns differ; missing ones are equal."""
    from pyarrow import compute, types

    if types.is_dictionary(one.type) or types.is_dictionary(other.type) or one.type != other.type:
        kinds = (types.is_integer, types.is_floating, types.is_boolean)
        numeric = all(any(kind(own.type) for kind in kinds) for own in (one, other))
        one, other = (own.cast("double" if numeric else "large_string") for own in (one, other))
    differ = compute.fill_null(compute.not_equal(one, other), False)  # noqa: FBT003
    lacking = compute.not_equal(compute.is_null(one), compute.is_null(other))
    found: Array = compute.or_(differ, lacking).to_numpy()
    return found


def _row(log: _Log, at: int, keys: Sequence[str]) -> str:
    """Return the place and the key of a row."""
    return f"{log.place(at)} ({', '.join(f'{name} = {log.rows.column(name)[int(at)].as_py()}' for name in keys)})"

"""Evaluation of the scores of several models for the same rows: columns of one log, or logs whose rows match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.arguments.calls import RowBatch
from fastrec.arguments.signature import arguments_of
from fastrec.checks import counted
from fastrec.evaluation.rows import ScoreEvaluator, evaluate_rows_at_once
from fastrec.exceptions import Argument, InputError, Text, joined
from fastrec.files.columns import USERS, ColumnError, PairedColumns, users_of
from fastrec.files.faults import named_as_in
from fastrec.files.job import FileJob, finished
from fastrec.files.reader import ROW_NUMBER, TableReader
from fastrec.files.resources import Path, Progress, Resources
from fastrec.files.types import row_codes
from fastrec.inputs.hints import hints_of_rows
from fastrec.inputs.nulls import find_nulls
from fastrec.inputs.users import NO_LABEL
from fastrec.report.report import Report, record

Array = np.ndarray[Any, Any]
BY_ORDER = ("; rows match by their order unless ", Argument("row_key"), " names columns that identify a row")
TOO_LARGE = (
    "rows without users are compared in memory, and these do not fit: name the columns of users, or allow more memory"
)


def evaluate_paired(
    make_evaluator: Callable[[bool], ScoreEvaluator],
    logs: Sequence[Path],
    users: Path | None,
    columns: PairedColumns,
    resources: Resources,
) -> list[Report]:
    """Return a report per model: for each column of scores of the only log, or for each log.

    `make_evaluator` gets whether there are users; without, each row is a user of its own. The file `users` has labels
    of users. Raise InputError unless all logs have the same rows, users, items, labels and weights, and the same groups
    where further logs have their columns, too.
    """
    paths = {_numbered("log", nth): path for nth, path in enumerate(logs)} | ({} if users is None else {USERS: users})
    job = FileJob.open(paths, columns, resources)
    with job.rows(numbered=True) as rows:
        readers = {table: reader for table, reader in rows.readers.items() if table != USERS}
        first, *others = readers.values()
        _check_users(readers.values())
        if rows.is_streamed and not rows.users:
            raise InputError(TOO_LARGE)
        n_models = len(readers) + len(columns.others)
        evaluators = [make_evaluator(bool(rows.users)) for _ in range(n_models)]
        reports: list[Report] = []
        for batch in rows.batches():
            of_first, *of_others = (_Log(readers[table], batch[table]) for table in readers)
            matched = [of_first.rows, *(_Pair(of_first, log, columns).matched() for log in of_others)]
            for nth, evaluator in enumerate(evaluators):
                of_model = 0 if columns.others else nth
                given = _arguments(columns, rows.users, nth, rows.progress())
                with named_as_in({"log": [first, *others][of_model]}, streamed=rows.is_streamed or bool(columns.keys)):
                    if rows.is_streamed:
                        evaluator.update(matched[of_model], **given)
                    else:
                        own = matched[of_model]
                        reports.append(evaluate_rows_at_once(evaluator, own, None, None, given, alone=True))
        for evaluator in evaluators if rows.is_streamed else ():
            with rows.named():  # weights may be 0 in all batches
                reports.append(evaluator.result())
        found = [finished(report, rows).report for report in reports]
        for report in found:
            record(report, hints_of_rows(first.listed, columns.names) if columns.users is None else ())
        return found


def _check_users(readers: Iterable[TableReader]) -> None:
    """Raise if only some logs have users."""
    having = [reader for reader in readers if users_of(reader.names)]
    lacking = [reader for reader in readers if not users_of(reader.names)]
    if having and lacking:
        name = having[0].names["user0"]
        raise ColumnError(lacking[0].path, f": no column {name!r}, which {having[0].path} has", role="user")


def _numbered(name: str, nth: int) -> str:
    """Return the table of the log of a model."""
    return f"{name}{nth or ''}"


def _arguments(columns: PairedColumns, users: Sequence[str], nth: int, progress: Progress | None) -> dict[str, Any]:
    """Return the arguments for the rows of a model; `users` are the columns that make a user."""
    return dict.fromkeys(arguments_of(RowBatch)) | {
        "user": (list(users) if len(users) > 1 else users[0]) if users else None,
        "label": columns.label,
        "score": (columns.score, *columns.others)[nth if columns.others else 0],
        "sample_weight": columns.weight,
        "item": columns.item,
        "by": columns.by or None,
        "progress": progress,
    }


class _Log(NamedTuple):
    """The rows of a log, or a part of them, and how errors name them."""

    reader: TableReader
    rows: Any  # pyarrow.Table

    def place(self, at: int) -> str:
        """Return how errors name a row."""
        return self.reader.place(self.rows.column(ROW_NUMBER)[at].as_py())

    def refuse_null(self, name: str, column: Any) -> None:
        """Raise for a null in a column."""
        if column.null_count:
            place = self.place(int(find_nulls(column).argmax()))
            raise InputError(Text(self.reader.path, f": column {name!r}"), f" must not be null, found null in {place}")

    def numbers(self) -> Array:
        """Return the position of each row among those of the file."""
        positions: Array = self.rows.column(ROW_NUMBER).to_numpy()
        return positions


class _Pair(NamedTuple):
    """Two logs whose rows must match, by the columns `keys` or by their order."""

    first: _Log
    other: _Log
    columns: PairedColumns

    def matched(self) -> Any:
        """Return the rows of the other log in the order of the first; raise for other rows, or other values."""
        if not self.columns.keys:
            self._check_order()
            matched = self.other
        else:
            for log in (self.first, self.other):
                for name in self.columns.keys:
                    log.refuse_null(name, log.rows.column(name))
            keys, wanted = row_codes((self.first.rows, self.other.rows), self.columns.keys)
            _refuse_repeated(self.first, keys, self.columns.keys)
            _refuse_repeated(self.other, wanted, self.columns.keys)
            _, mine, others = np.intersect1d(keys, wanted, assume_unique=True, return_indices=True)
            self._refuse_unmatched(mine, others)
            matched = self.other._replace(rows=self.other.rows.take(others[np.argsort(mine)]))
        self._compare(matched)
        rows = matched.rows
        for name in {*self.columns.by}.difference(rows.column_names):  # further logs may lack groups
            rows = rows.append_column(name, self.first.rows.column(name))
        return rows

    def _check_order(self) -> None:
        """Raise for different numbers of rows, or rows of a part that have other places in the other log."""
        mine, others = self.first.reader.total, self.other.reader.total
        at = _first_difference(self.first.numbers(), self.other.numbers())
        if mine == others and at is None:
            return
        rows = [log.rows for log in (self.first, self.other)]
        differs = [
            _differences(*(own.slice(0, min(map(len, rows))).column(name) for own in rows)) for name in self._same()
        ]
        wrong = np.flatnonzero(np.logical_or.reduce(differs)) if differs else np.zeros(0, np.int64)
        longer = self.first if mine >= others else self.other
        at = int(wrong[0]) if len(wrong) else min(map(len, rows)) if at is None else at
        place = longer.place(min(at, len(longer.rows) - 1))
        has = f" has {counted(others, 'row')}, but {mine:,} in "
        raise InputError(
            self.other.reader.path,
            has,
            self.first.reader.path,
            f"; the first that does not match is {place}",
            *BY_ORDER,
        )

    def _same(self) -> list[str]:
        """Return the columns that must be equal: all but scores; further logs may lack groups."""
        scores = {self.columns.score, *self.columns.others, ROW_NUMBER, *self.columns.keys}
        there = self.other.rows.column_names
        return [name for name in self.first.rows.column_names if name not in scores and name in there]

    def _refuse_unmatched(self, mine: Array, others: Array) -> None:
        """Raise if rows of one log are not in the other."""
        found = []
        for one, other, known in ((self.first, self.other, mine), (self.other, self.first, others)):
            left = np.setdiff1d(np.arange(len(one.rows)), known)
            if len(left):
                lacks = f" lacks {counted(len(left), 'row')} of "
                row = f", the first is {_row(one, int(left[0]), self.columns.keys)}"
                found.append(Text(other.reader.path, lacks, one.reader.path, row))
        if found:
            raise InputError("the rows of the files do not match: ", joined(found, "; "))

    def _compare(self, other: _Log) -> None:
        """Raise for users, items, labels, weights or groups that differ in matching rows."""
        for name in self._same():
            mine, theirs = self.first.rows.column(name), other.rows.column(name)
            for log, own in () if name in self.columns.by else ((self.first, mine), (other, theirs)):
                log.refuse_null(name, own)
            wrong = np.flatnonzero(_differences(mine, theirs))
            if not len(wrong):
                continue
            at = int(wrong[0])
            here, there = (_spelled(own[at].as_py()) for own in (mine, theirs))
            raise InputError(
                Text(other.reader.path, f": column {name!r}"),
                f" differs in {counted(len(wrong), 'row')} from ",
                self.first.reader.path,
                f", the first: {there} in {other.place(at)}",
                f", and {here} in {self.first.place(at)} of ",
                self.first.reader.path,
                *(() if self.columns.keys else BY_ORDER),
            )


def _spelled(value: Any) -> str:
    """Return a value for an error: a whole float as an integer, as files may hold it."""
    if value is None:
        return NO_LABEL
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _first_difference(one: Array, other: Array) -> int | None:
    """Return where two arrays differ first; None if one begins like the other."""
    n = min(len(one), len(other))
    wrong = np.flatnonzero(one[:n] != other[:n])
    return int(wrong[0]) if len(wrong) else None


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


def _refuse_repeated(log: _Log, codes: Array, keys: Sequence[str]) -> None:
    """Raise if two rows of a log have the same key."""
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    again = first[counts > 1]
    if len(again):
        several = f": {counted(len(again), 'key')} in several rows, the first in {_row(log, int(again.min()), keys)}; "
        raise InputError(log.reader.path, several, Argument("row_key"), " must name columns that identify a row")


def _row(log: _Log, at: int, keys: Sequence[str]) -> str:
    """Return the place and the key of a row."""
    return f"{log.place(at)} ({', '.join(f'{name} = {log.rows.column(name)[at].as_py()}' for name in keys)})"

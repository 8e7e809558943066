"""Evaluation of the scores of several models for the same rows: columns of one log, or logs whose rows match."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrec.arguments.calls import RowBatch
from fastrec.arguments.signature import arguments_of
from fastrec.checks import counted
from fastrec.evaluation.rows import ScoreEvaluator, evaluate_rows_at_once
from fastrec.exceptions import Argument, InputError, Text, joined
from fastrec.files.columns import USERS, ColumnError, PairedColumns, users_of
from fastrec.files.database import run
from fastrec.files.faults import finished, named_as_in
from fastrec.files.formats.base import one_row, quoted, string_sql
from fastrec.files.job import Data, FileJob, batches, roles_of_log
from fastrec.files.resources import Path, Progress, Resources, Watch
from fastrec.files.tables import File, check_label_type, label_sql
from fastrec.inputs.hints import hints_of_rows
from fastrec.inputs.users import NO_LABEL
from fastrec.report.report import Report, record

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["evaluate_paired"]

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
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
) -> list[Report]:
    """Return a report per model: for each column of scores of the only log, or for each log.

    `make_evaluator` gets whether there are users; without, each row is a user of its own. The file `users` has labels
    of users. Raise InputError unless all logs have the same rows, users, items, labels and weights, and the same groups
    where further logs have their columns, too.
    """
    paths = {_numbered("log", nth): path for nth, path in enumerate(logs)} | ({} if users is None else {USERS: users})
    job = FileJob.open(paths, columns, resources, watch, input_format)
    whole = _evaluate_whole(make_evaluator, job)
    if whole is not None:
        return whole
    with job.database(_roles) as loaded:
        files, con = dict(loaded.files), loaded.con
        first, *others = (file for table, file in files.items() if table != USERS)
        of_users = users_of(first.names)
        if loaded.streamed is not None and not of_users:
            raise InputError(TOO_LARGE)
        for other in others:
            _Pair(con, first, other, loaded.ids).check()
        sources = _merge(con, [first, *others], columns, loaded.ids)
        ids = {role: type_ for role, type_ in loaded.ids.items() if not _is_key(role)}
        label, score = columns.values
        numbers = [label, "weight", *(_numbered(score, nth) for nth in range(len(sources)))]
        data = Data.of(loaded._replace(files={**files, "log": sources[0]}, ids=ids), ["log"], numbers, watch)
        evaluators = [make_evaluator(bool(of_users)) for _ in sources]
        reports: list[Report] = []
        for batch in batches(data):
            for nth, (evaluator, source) in enumerate(zip(evaluators, sources, strict=True)):
                numbered = loaded.streamed is None and not (nth and columns.keys)  # by key, the place is of the first
                with named_as_in({"log": source}, streamed=not numbered):
                    rows = _rows_of_model(batch["log"], columns, nth, sources[0].names[_numbered(score, nth)])
                    given = _arguments(columns, loaded.users, nth, data.progress())
                    if loaded.streamed is None:
                        reports.append(evaluate_rows_at_once(evaluator, rows, None, None, given, alone=True))
                    else:
                        evaluator.update(rows, **given)
        if loaded.streamed is not None:
            for evaluator, source in zip(evaluators, sources, strict=True):
                with named_as_in({"log": source}, streamed=True):  # weights may be 0 in all batches
                    reports.append(evaluator.result())
        return _finished(reports, loaded.users, columns, list(files["log"].source.columns), loaded.numbered)


def _finished(
    reports: Iterable[Report],
    users: Sequence[str],
    columns: PairedColumns,
    names: Sequence[str],
    numbered: Collection[str] = (),
) -> list[Report]:
    """Return reports on the log of all models, with hints; `names` are all columns of the first file."""
    found = [finished(report, users, numbered).report for report in reports]
    for report in found:
        record(report, hints_of_rows(names, columns.names) if columns.users is None else ())
    return found


def _roles(files: Mapping[str, File]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the roles of the columns that make users, and those of all ids; raise if only some files have users."""
    users, ids = roles_of_log(files)
    having, lacking = None, None
    for table, file in files.items():
        if table != USERS:
            having, lacking = (file, lacking) if users_of(file.names) else (having, file)
    if having is not None and lacking is not None:
        name = having.names["user0"]
        raise ColumnError(lacking.path, f": no column {name!r}, which {having.path} has", role="user")
    return users, (*ids, *filter(_is_key, files["log"].names))


def _numbered(name: str, nth: int) -> str:
    """Return the table of the log of a model, or the role of its scores in the first log."""
    return f"{name}{nth or ''}"


def _is_key(role: str) -> bool:
    return role.startswith("key")


def _evaluate_whole(
    make_evaluator: Callable[[bool], ScoreEvaluator], job: FileJob[PairedColumns]
) -> list[Report] | None:
    """Evaluate files that fit in memory and need no database; return None if they need one, or do not match."""
    whole = None if job.columns.keys else job.read_whole()
    if whole is None:
        return None
    rows, *others = whole.tables.values()
    names, *of_others = whole.names.values()
    if any(users_of(own) != users_of(names) for own in of_others):
        return None
    users = tuple(names[role] for role in users_of(names))
    same = [name for role, name in names.items() if not role.startswith(job.columns.values[1])]
    for nth, other in enumerate(others, 1):
        groups = {*job.columns.by}.difference(other.column_names)  # which further logs may lack
        if not all(rows.column(name).equals(other.column(name)) for name in same if name not in groups):
            return None
        rows = rows.append_column(_name_of_merged(nth), other.column(job.columns.score))
    reports: list[Report] = []

    def update(progress: Progress) -> None:
        for nth in range(len(job.columns.others) + len(whole.tables)):
            own = _rows_of_model(rows, job.columns, nth, _name_of_merged(nth))
            given = _arguments(job.columns, users, nth, progress)
            reports.append(evaluate_rows_at_once(make_evaluator(bool(users)), own, None, None, given, alone=True))

    if not job.take_whole(len(rows), update):
        return None
    return _finished(reports, users, job.columns, whole.listed["log"])


def _name_of_merged(nth: int) -> str:
    """Return the name of the scores of a further file, which no column of a file has."""
    return f"\1{nth}"


def _rows_of_model(rows: Any, columns: PairedColumns, nth: int, merged: str) -> Any:
    """Return the rows of a model: its scores take the place of those of the first file if they are of another."""
    if not nth or columns.others:
        return rows
    return rows.set_column(rows.column_names.index(columns.score), columns.score, rows.column(merged))


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


class _Pair(NamedTuple):
    """Two logs in a database, whose rows must match: `ids` has the types of the columns that make users and keys."""

    con: DuckDBPyConnection
    first: File
    other: File
    ids: Mapping[str, str]

    @property
    def keys(self) -> list[str]:
        """The roles of the columns that identify a row; without, rows match by their order."""
        return list(filter(_is_key, self.ids))

    def join(self, kind: str = "JOIN") -> str:
        """Return the SQL of rows `t` of the first file and rows `s` of the other that match."""
        same = [f"{self._cast('t', role)} = {self._cast('s', role)}" for role in self.keys] or ["t.rowid = s.rowid"]
        return f"{quoted(self.first.table)} AS t {kind} {quoted(self.other.table)} AS s ON {' AND '.join(same)}"

    def check(self) -> None:
        """Raise unless both files have the same rows, with the same users, items, labels, weights and groups."""
        if self.keys:
            self.check_distinct()
            self._swapped().check_distinct()
            found = [*self.unmatched(), *self._swapped().unmatched()]
            if found:
                raise InputError("the rows of the files do not match: ", joined(found, "; "))
        elif self.first.rows != self.other.rows:
            self._refuse_length()
        for role, wrong in self._differences().items():
            n, at = one_row(self.con, f"SELECT count(*), min(t.rowid) FROM {self.join()} WHERE {wrong}")
            if n:
                self._refuse_values(role, n, at)

    def _swapped(self) -> _Pair:
        return self._replace(first=self.other, other=self.first)

    def _cast(self, table: str, role: str) -> str:
        return f"CAST({table}.{quoted(role)} AS {self.ids.get(role, 'DOUBLE')})"

    def _differences(self) -> dict[str, str]:
        """Return {role: SQL of whether two matching rows differ in it}."""
        numbers = (role for role in ("label", "target", "weight") if role in self.first.names)
        roles = [*(role for role in self.ids if not _is_key(role)), *numbers]
        groupings = [role for role in self.first.names if role.startswith("by") and role in self.other.names]
        return {role: f"{self._cast('t', role)} <> {self._cast('s', role)}" for role in roles} | {
            role: f"{self._label('t', self.first, role)} <> {self._label('s', self.other, role)}" for role in groupings
        }

    def _label(self, table: str, file: File, role: str) -> str:
        """Return the SQL of the label that groups the user of a row, which may have none."""
        check_label_type(file, role)
        return f"coalesce({label_sql(file, role, f'{table}.')}, {string_sql(NO_LABEL)})"

    def check_distinct(self) -> None:
        """Raise if two rows of the first file have the same key."""
        file, listed = self.first, ", ".join(self._cast("t", role) for role in self.keys)
        groups = f"SELECT count(*) AS n, min(t.rowid) AS first FROM {quoted(file.table)} AS t GROUP BY {listed}"
        n, at = one_row(self.con, f"SELECT count(*), min(first) FROM ({groups} HAVING n > 1)")
        if n:
            several = f": {counted(n, 'key')} in several rows, the first in {self._row(at)}; "
            raise InputError(file.path, several, Argument("row_key"), " must name columns that identify a row")

    def _row(self, at: int) -> str:
        """Return the place and the key of a row of the first file."""
        listed = ", ".join(f"CAST({quoted(role)} AS VARCHAR)" for role in self.keys)
        values = one_row(self.con, f"SELECT {listed} FROM {quoted(self.first.table)} WHERE rowid = {at}")
        keys = (f"{self.first.names[role]} = {value}" for role, value in zip(self.keys, values, strict=True))
        return f"{self.first.source.place(at)} ({', '.join(keys)})"

    def unmatched(self) -> list[Text]:
        """Return that some rows of the first file are not in the other, if so."""
        n, at = one_row(self.con, f"SELECT count(*), min(t.rowid) FROM {self.join('ANTI JOIN')}")
        if not n:
            return []
        lacks = f" lacks {counted(n, 'row')} of "
        return [Text(self.other.path, lacks, self.first.path, f", the first is {self._row(at)}")]

    def _refuse_length(self) -> None:
        """Raise for files with different numbers of rows, which match by order."""
        differ = " OR ".join(self._differences().values())
        (at,) = one_row(self.con, f"SELECT min(t.rowid) FROM {self.join()} WHERE {differ}")
        longer = max(self.first, self.other, key=lambda file: file.rows)
        place = longer.source.place(min(self.first.rows, self.other.rows) if at is None else at)
        rows = f" has {counted(self.other.rows, 'row')}, but {self.first.rows:,} in "
        raise InputError(
            self.other.path, rows, self.first.path, f"; the first that does not match is {place}", *BY_ORDER
        )

    def _refuse_values(self, role: str, n: int, at: int) -> None:
        """Raise for users, items, labels, weights or groups that differ in matching rows."""
        none = string_sql(NO_LABEL)
        listed = ", ".join(f"coalesce(CAST({table}.{quoted(role)} AS VARCHAR), {none})" for table in "ts")
        row = f"SELECT s.rowid, {listed} FROM {self.join()} WHERE t.rowid = {at}"
        place, here, there = one_row(self.con, row)
        raise InputError(
            self.other.at(role),
            f" differs in {counted(n, 'row')} from ",
            self.first.path,
            f", the first: {there} in {self.other.source.place(place)}",
            f", and {here} in {self.first.source.place(at)} of ",
            self.first.path,
            *(() if self.keys else BY_ORDER),
        )


def _merge(con: DuckDBPyConnection, logs: Sequence[File], columns: PairedColumns, ids: Mapping[str, str]) -> list[File]:
    """Add the scores of further files to the table "log", and return the file of each model, by which errors name it.

    The first file has the columns of all scores.
    """
    first, *others = logs
    _, score = columns.values
    names, types = dict(first.names), dict(first.types)
    for nth, other in enumerate(others, 1):
        pair, role = _Pair(con, first, other, ids), _numbered(score, nth)
        run(con, f"CREATE TABLE merged AS SELECT t.*, s.{quoted(score)} AS {role} FROM {pair.join()} ORDER BY t.rowid")
        for table in (first.table, other.table):
            run(con, f"DROP TABLE {quoted(table)}")
        run(con, f"ALTER TABLE merged RENAME TO {quoted(first.table)}")
        names[role], types[role] = _name_of_merged(nth), other.types[score]
    log = replace(first, names=names, types=types)
    own = [log, *others] + [log] * len(columns.others)
    return [
        replace(log, path=file.path, source=file.source, names=names | {score: columns.others[nth - 1]})
        if nth and columns.others
        else replace(log, path=file.path, source=file.source)
        for nth, file in enumerate(own)
    ]

"""Reads lists, truth and scored logs from Parquet and CSV files, and writes files that are never half there.

A file is long: one row per user and item. DuckDB reads it, matches the users of both sides and orders the
rows; NumPy arrays come out. Ids are matched exactly: integers with integers, text with text, and a text id
keeps every character, so "007" is not 7. Text ids leave here as integer codes in the byte order of the texts,
which keeps `ties="id_desc"` meaningful. Rows are counted from 1 in messages, a header not counted.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.exceptions import FastrecError, InputError, InputTypeError, require, suggest_name
from fastrec.report import atomic_write

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGER_TYPES = frozenset((*SIGNED_TYPES, *(f"U{name}" for name in SIGNED_TYPES)))
TEXT_TYPES = frozenset(("VARCHAR", "UUID"))
Array = np.ndarray[Any, Any]
LARGEST_ID = 2**63 - 1
LARGEST_EXACT_FLOAT = 2**53
NO_LABEL = "(none)"
NOT_FLOATS = "write ids as integers (missing values make floats of them: drop those rows first) or as text"
HEADER_BYTES = 1 << 20
OTHER_ENDINGS = (".json", ".jsonl", ".ndjson", ".arrow", ".feather", ".ipc", ".avro", ".orc", ".xlsx", ".npz")


class ColumnError(InputError):
    """A file lacks a column, or has one that cannot be used; `role` is what the column was to be."""

    def __init__(self, message: str, role: str) -> None:
        super().__init__(message)
        self.role = role


@dataclass(frozen=True)
class Columns:
    """Which column holds what. `None` takes `rank`, `score`, `gain` where a file has a column of that name.

    The lists are ordered by the rank column, else by the score column, else as the rows stand in the file. A
    rank wins over a score, but a column that was named wins over one that was only found.
    """

    user: str = "user_id"
    item: str = "item_id"
    rank: str | None = None
    score: str | None = None
    gain: str | None = None
    by: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """Every column that may be read."""
        return {*filter(None, (self.user, self.item, self.rank, self.score, self.gain)), *self.by}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """{role: column} for the roles that `table` needs, of the columns found in the file."""
        wanted = {"user": self.user, "item": self.item}
        if table == "recs":
            wanted |= self._order(found)
        if table == "truth" and (self.gain is not None or "gain" in found):
            wanted["gain"] = self.gain if self.gain is not None else "gain"
        _check_found(wanted, path, found)
        if table != "seen":
            wanted |= {f"by{n}": name for n, name in enumerate(self.by) if name in found}
        return wanted

    def _order(self, found: Sequence[str]) -> dict[str, str]:
        """The column that orders the lists, if there is one."""
        if self.rank is not None:
            return {"rank": self.rank}
        if self.score is not None:
            return {"score": self.score}
        return next(({name: name} for name in ("rank", "score") if name in found), {})


@dataclass(frozen=True)
class ScoreColumns:
    """Which column of a scored log holds what.

    `users` may be several columns: each combination of their values is then a user. `None` takes `user_id` if there
    is such a column, and no users otherwise. With `ratings` the two main columns are targets and predictions.
    """

    label: str = "label"
    score: str = "score"
    ratings: bool = False
    users: tuple[str, ...] | None = None
    item: str | None = None
    weight: str | None = None
    by: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """Every column that may be read."""
        users = ("user_id",) if self.users is None else self.users
        return {*filter(None, (self.label, self.score, *users, self.item, self.weight)), *self.by}

    @property
    def values(self) -> tuple[str, str]:
        """The roles of the two main columns."""
        return ("target", "prediction") if self.ratings else ("label", "score")

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 - as in Columns
        """{role: column} of the columns found in the file."""
        users = self.users
        if users is None:  # labels to group by belong to users
            users = ("user_id",) if "user_id" in found or self.by else ()
        wanted = dict(zip(self.values, (self.label, self.score), strict=True))
        wanted |= {f"user{n}": name for n, name in enumerate(users)}
        wanted |= {role: name for role, name in (("item", self.item), ("weight", self.weight)) if name is not None}
        wanted |= {f"by{n}": name for n, name in enumerate(self.by)}
        _check_found(wanted, path, found)
        return wanted


def _check_found(wanted: Mapping[str, str], path: str, found: Sequence[str]) -> None:
    for role, name in wanted.items():
        if name not in found:
            raise ColumnError(f"{path}: no column {name!r}{suggest_name(name, found)}", role.rstrip("0123456789"))


class Logs(NamedTuple):
    """What the files hold, as `evaluate` takes it: everywhere the same users, in ascending order of ids."""

    recs: tuple[Array, ...]  # items, indptr and, when the lists are ordered by score, scores
    truth: tuple[Array, ...]  # items, indptr and, when there is a gain column, gains
    user_ids: Array  # int64, or text
    groups: dict[str, Array]  # column -> label of each user
    exclude: tuple[Array, ...] | None  # items, indptr
    item_texts: Array | None  # the text of each item code; None where items are integers


class ScoredLog(NamedTuple):
    """What a scored log holds, as `evaluate_scores` takes it: rows by user in ascending order, else as in the file."""

    path: str
    columns: Mapping[str, str]  # role -> column
    labels: Array  # or targets
    scores: Array  # or predictions
    weights: Array | None
    items: Array | None  # int64
    indptr: Array | None  # None without users
    users: dict[str, Array]  # column -> value of each user, int64 or text
    groups: dict[str, Array]  # column -> label of each user
    places: Array | None  # where in the file each row stands, from 0; None where that is its position here

    @property
    def user_ids(self) -> Array | None:
        """The id of each user: a tuple where several columns make one."""
        if len(self.users) < 2:
            return next(iter(self.users.values()), None)
        return _as_tuples(list(self.users.values()))

    def row(self, position: int) -> int:
        """The number in the file, from 1, of the row at a position."""
        return 1 + (position if self.places is None else int(self.places[position]))


def _as_tuples(columns: list[Array]) -> Array:
    ids = np.empty(len(columns[0]), dtype=object)
    ids[:] = list(zip(*(column.tolist() for column in columns), strict=True))
    return ids


@dataclass(frozen=True)
class _File:
    """A file that has been loaded into the DuckDB table `table`, one column per role."""

    table: str
    path: str
    is_csv: bool
    rows: int
    names: Mapping[str, str]  # role -> name of the column in the file
    types: Mapping[str, str]  # role -> DuckDB's type

    def at(self, role: str) -> str:
        return f"{self.path}: column {self.names[role]!r}"


@dataclass(frozen=True)
class _Ids:
    """What the ids of one file and role are: "integer", "text" or, for a CSV of integers, "open"."""

    where: str
    kind: str
    integers: int = 0  # how many of the text ids are integers
    example: str = ""


def read_logs(
    recs: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    columns: Columns | None = None,
    *,
    exclude: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
) -> Logs:
    """Lists, truth and, if given, already seen items from three files.

    The users are those of the lists and of the truth together; one missing in a file has no rows there.
    Users and items of `exclude` that are in neither file play no part.
    """
    columns = columns or Columns()
    paths = {"recs": recs, "truth": truth} | ({} if exclude is None else {"seen": exclude})
    for path in paths.values():
        _check_path(os.fspath(path))
    with _connection(n_threads) as con:
        files = {table: _load(con, table, os.fspath(path), columns) for table, path in paths.items()}
        if not files["truth"].rows:
            raise InputError(f"{files['truth'].path}: no rows: there is nothing to compare the lists with")
        _check_groupings(files, columns)
        user_kind = _joint_kind(con, "user", list(files.values()))
        item_kind = _joint_kind(con, "item", list(files.values()))
        user_ids, item_texts = _make_codes(con, files, user_kind, item_kind)
        groups = {name: _labels(con, files, f"by{n}", user_ids) for n, name in enumerate(columns.by)}
        return Logs(
            recs=_fetch_recs(con, files["recs"], user_ids, item_kind),
            truth=_fetch(con, files["truth"], len(user_ids), item_kind, value="gain", order="t.rowid"),
            user_ids=user_ids,
            groups=groups,
            exclude=_fetch(con, files["seen"], len(user_ids), item_kind) if "seen" in files else None,
            item_texts=item_texts,
        )


def read_scores(
    path: str | os.PathLike[str], columns: ScoreColumns | None = None, *, n_threads: int | None = None
) -> ScoredLog:
    """Labels and scores (or targets and predictions) from one file, whole."""
    columns = columns or ScoreColumns()
    path = os.fspath(path)
    _check_path(path)
    with _connection(n_threads) as con:
        file = _load(con, "log", path, columns)
        if not file.rows:
            raise InputError(f"{path}: no rows: there is nothing to evaluate")
        users = _number_users(con, file)
        ids = _as_tuples(list(users.values())) if len(users) > 1 else next(iter(users.values()), np.zeros(0))
        rows = _fetch_rows(con, file, columns.values)
        codes = rows.get("user_code")
        return ScoredLog(
            path=path,
            columns=file.names,
            labels=rows[columns.values[0]],
            scores=rows[columns.values[1]],
            weights=rows.get("weight"),
            items=rows.get("item"),
            indptr=None if codes is None else _pointers(codes, len(ids)),
            users=users,
            groups={name: _labels_of_log(con, file, f"by{n}", ids) for n, name in enumerate(columns.by)},
            places=rows.get("place"),
        )


@contextlib.contextmanager
def _connection(n_threads: int | None) -> Iterator[DuckDBPyConnection]:
    """An in-memory database of our own, which writes no temporary files and installs nothing."""
    duckdb = require("duckdb", "cli", what="reading files")
    config: dict[str, Any] = {
        "temp_directory": "",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
    }
    if n_threads is not None:
        config["threads"] = n_threads
    con = duckdb.connect(":memory:", config=config)
    try:
        con.execute("SET enable_progress_bar = false")
        yield con
    except (duckdb.InterruptException, RuntimeError) as error:
        if "interrupt" not in str(error).lower():
            raise
        raise KeyboardInterrupt from None  # what DuckDB makes of it while a query runs
    except duckdb.OutOfMemoryException as error:
        raise FastrecError(f"the files do not fit in memory: {_first_sentence(error)}") from error
    finally:
        con.close()


def _name(name: str) -> str:
    """A column name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    """A text, quoted for SQL."""
    return "'" + value.replace("'", "''") + "'"


def _literal_path(path: str) -> str:
    """The path such that DuckDB finds this one file: absolute (no "~", no URL), without glob patterns."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in os.path.abspath(path))


def _first_sentence(error: Exception) -> str:
    """DuckDB's message without its class, its advice and its prints of the query and of the line."""
    text = re.split(r"\n(?:Possible |LINE 1:)", str(error))[0]
    if "state machine reached an invalid state" in text:
        return "line ends of different kinds, or a quote where none belongs"
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: (?:CSV Error on Line: )?", "", text)
    text = re.sub(
        r"^(\d+)\nOriginal Line: .*?\n(?=Expected|Value|Invalid|Maximum)", r"line \1: ", text, flags=re.DOTALL
    )
    text = re.sub(r"Expected Number of Columns: (\d+) Found: (\d+)", r"\1 columns expected, \2 found", text)
    return " ".join(text.split())


def _one(con: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    row = con.execute(query).fetchone()
    assert row is not None  # every query given here is an aggregate
    return row


def _check_path(path: str) -> None:
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file")
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; give one Parquet or CSV file")
    if not os.path.isfile(path):
        raise InputError(f"{path}: is not a regular file; write the rows to a file first")
    if os.path.getsize(path) == 0:
        raise InputError(f"{path}: the file is empty, not even a header")


def _is_parquet(path: str) -> bool:
    """By the first bytes, not by the name; a name that promises something else is an error."""
    with open(path, "rb") as stream:
        magic = stream.read(4) == b"PAR1"
    ending = os.path.splitext(path)[1].lower()
    if ending in (".parquet", ".pq") and not magic:
        raise InputError(f"{path}: not a Parquet file (it does not begin with PAR1)")
    if ending in OTHER_ENDINGS and not magic:
        raise InputError(f"{path}: {ending} files are not read; give Parquet or CSV")
    return magic


def _load(con: DuckDBPyConnection, table: str, path: str, columns: Columns | ScoreColumns) -> _File:
    """Copy the wanted columns into a table named `table`, its columns named by role, and check them."""
    import duckdb

    is_csv = not _is_parquet(path)
    try:
        if is_csv:
            source, found = _csv_source(path, columns.names)
        else:
            source = f"read_parquet({_text(_literal_path(path))}, binary_as_string=true, hive_partitioning=false)"
            rows = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            found = {name: (_name(name), type_) for name, type_, *_ in rows}
        names = columns.roles(table, path, list(found))
        picked = ", ".join(f"{_readable(*found[name])} AS {_name(role)}" for role, name in names.items())
        con.execute(f"CREATE TEMP TABLE {_name(table)} AS SELECT {picked} FROM {source}")
        (rows_,) = _one(con, f"SELECT count(*) FROM {_name(table)}")
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as error:
        kind = "CSV" if is_csv else "Parquet"
        raise InputError(f"{path}: cannot be read as {kind}: {_first_sentence(error)}") from error
    file = _File(table, path, is_csv, rows_, names, {role: found[name][1] for role, name in names.items()})
    for role in names:
        _check_column(con, file, role)
    return file


def _readable(column: str, type_: str) -> str:
    """UUIDs and enumerations are read as their text; a decimal without places is an integer."""
    if type_ == "UUID" or type_.startswith("ENUM"):
        return f"CAST({column} AS VARCHAR)"
    if _is_integer(type_) and type_.startswith("DECIMAL"):
        return f"CAST({column} AS HUGEINT)"
    return column


def _is_integer(type_: str) -> bool:
    return type_ in INTEGER_TYPES or (type_.startswith("DECIMAL") and type_.endswith(",0)"))


def _is_text(type_: str) -> bool:
    return type_ in TEXT_TYPES or type_.startswith("ENUM")


def _is_number(type_: str) -> bool:
    return _is_integer(type_) or type_ in ("FLOAT", "DOUBLE", "BOOLEAN") or type_.startswith("DECIMAL")


def _check_groupings(files: Mapping[str, _File], columns: Columns) -> None:
    for n, name in enumerate(columns.by):
        if not any(f"by{n}" in file.names for file in files.values()):
            both = f"{files['truth'].path} nor {files['recs'].path}"
            raise InputError(f"neither {both} has the column {name!r} to group by")


def _csv_source(path: str, wanted: set[str]) -> tuple[str, dict[str, tuple[str, str]]]:
    """The SQL that reads the file with every column as text, and {name: (column in the SQL, type)}.

    Nothing is left to DuckDB's sniffer: it would take "007" for 7, a row that begins with "#" for a comment
    and uneven first rows for a preface to skip. The header tells the delimiter; quoting is that of RFC 4180.
    Columns are named by position, for SQL names ignore case and header names do not.
    """
    head, packed = _csv_head(path)
    names, delimiter = _csv_header(path, head, wanted)
    for name in names:
        if name in wanted and names.count(name) > 1:
            raise InputError(f"{path}: the header has the column {name!r} {names.count(name)} times")
    types = ", ".join(f"c{n}: 'VARCHAR'" for n in range(len(names)))
    source = (
        f"read_csv({_text(_literal_path(path))}, auto_detect=false, header=true, skip=0, comment='', "
        f"delim={_text(delimiter)}, quote='\"', escape='\"', hive_partitioning=false, "
        f"compression={'gzip' if packed else 'none'!r}, columns={{{types}}})"
    )
    return source, {name: (f"c{n}", "VARCHAR") for n, name in enumerate(names)}


def _csv_head(path: str) -> tuple[str, bool]:
    """The beginning of the file as text, and whether it is packed with gzip."""
    with open(path, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if packed else open(path, "rb") as stream:
            head = codecs.getincrementaldecoder("utf-8-sig")().decode(stream.read(HEADER_BYTES))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged gzip file: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither Parquet nor CSV in UTF-8: {error.reason}, byte {error.start}") from error
    if "\0" in head:
        raise InputError(f"{path}: neither Parquet nor CSV in UTF-8: it has zero bytes")
    return head, packed


def _csv_header(path: str, head: str, wanted: set[str]) -> tuple[list[str], str]:
    """Names and delimiter: the one that finds most of the wanted names, among equals most columns."""
    best: tuple[tuple[int, int], list[str], str] | None = None
    for delimiter in ",\t;|":
        try:
            names = next(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), [])
        except csv.Error as error:
            raise InputError(f"{path}: the header cannot be read as CSV: {error}") from error
        merit = (len(wanted.intersection(names)), len(names))
        if best is None or merit > best[0]:
            best = merit, names, delimiter
    assert best is not None
    if not best[1]:
        raise InputError(f"{path}: the first line is empty; a header with the column names is wanted there")
    return best[1], best[2]


def _check_column(con: DuckDBPyConnection, file: _File, role: str) -> None:
    """No nulls where a value is needed, and numbers where numbers are needed."""
    if not file.rows or role.startswith("by"):
        return
    column, table = _name(role), _name(file.table)
    empty, first = _one(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {column} IS NULL")
    if empty:
        rows = f"in {empty} rows, the first is row {first + 1}" if empty > 1 else f"in row {first + 1}"
        raise InputError(f"{file.at(role)} has no value (null) {rows} of {file.rows}")
    if role.startswith("user") or role == "item":
        return
    if _is_text(file.types[role]):
        _check_number_text(con, file, role)
    elif not _is_number(file.types[role]):
        raise InputTypeError(f"{file.at(role)} holds {file.types[role]}: a {role} must be a number")
    value = f"CAST({column} AS DOUBLE)"
    wrong = f"isnan({value})" if role == "score" else f"NOT isfinite({value})"
    bad, first = _one(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {wrong}")
    if bad:
        what = "NaN" if role == "score" else "NaN or infinite"
        raise InputError(f"{file.at(role)} is {what} in {bad} rows, the first is row {first + 1} of {file.rows}")
    if role in ("score", "label", "target", "prediction") and _is_integer(file.types[role]):
        (largest,) = _one(con, f"SELECT max(abs({value})) FROM {table}")
        if largest > LARGEST_EXACT_FLOAT:
            advice = "give a rank column" if file.table == "recs" else "they would be rounded"
            raise InputError(f"{file.at(role)} holds integers above 2^53, which {role}s cannot hold: {advice}")


def _check_number_text(con: DuckDBPyConnection, file: _File, role: str) -> None:
    column, table = _name(role), _name(file.table)
    bad, value, first = _one(
        con,
        f"SELECT count(*), arg_min({column}, rowid), min(rowid) FROM {table} "
        f"WHERE TRY_CAST({column} AS DOUBLE) IS NULL",
    )
    if bad:
        raise InputTypeError(f"{file.at(role)} must hold numbers; row {first + 1} holds {_short(value)}")


def _short(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:39] + "…")


def _joint_kind(con: DuckDBPyConnection, role: str, files: list[_File]) -> str:
    """What the ids of this role are in all the files, "integer" or "text"; an error if they cannot match."""
    ids = [_inspect_ids(con, file, role) for file in files if file.rows]
    texts = [one for one in ids if one.kind == "text"]
    integers = [one for one in ids if one.kind == "integer"]
    # A CSV of integers can be read as text too. That helps only if some text looks like an integer; where
    # none does, no id could ever be found on the other side.
    if texts and not any(one.integers for one in texts):
        integers += [one for one in ids if one.kind == "open"]
    if texts and integers:
        raise InputTypeError(
            f"{role} ids cannot be matched: {integers[0].where} holds integers, "
            f"{texts[0].where} holds text such as {texts[0].example}; write both as integers or both as text"
        )
    return "text" if texts else "integer"


def _inspect_ids(con: DuckDBPyConnection, file: _File, role: str) -> _Ids:
    type_, where = file.types[role], file.at(role)
    if _is_integer(type_):
        _check_id_range(con, file, role)
        return _Ids(where, "integer")
    if not _is_text(type_):
        advice = "ids must be integers or text"
        if type_.endswith("]"):
            advice = "one row per user and item is wanted"
        elif type_ in ("FLOAT", "DOUBLE") or type_.startswith("DECIMAL"):
            advice = NOT_FLOATS
        raise InputTypeError(f"{where} holds {type_}: {advice}")
    return _inspect_text_ids(con, file, role)


def _inspect_text_ids(con: DuckDBPyConnection, file: _File, role: str) -> _Ids:
    """A text is an integer id if writing the integer gives it back: "7" is; "007", "+7" and " 7" are not."""
    column, where = _name(role), file.at(role)
    is_integer = f"coalesce(CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}, false)"
    integers, example = _one(
        con,
        f"SELECT count(*) FILTER ({is_integer}), arg_min({column}, rowid) FILTER (NOT {is_integer}) "
        f"FROM {_name(file.table)}",
    )
    if not file.is_csv:
        return _Ids(where, "text", integers, _short(example) if example is not None else "digits")
    if integers == file.rows:
        _check_id_range(con, file, role)
        return _Ids(where, "open")
    is_decimal = rf"regexp_full_match({column}, '[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?')"
    decimals, decimal = _one(
        con,
        f"SELECT count(*) FILTER ({is_decimal}), arg_min({column}, rowid) FILTER ({is_decimal}) "
        f"FROM {_name(file.table)}",
    )
    if decimals and decimals + integers == file.rows:
        raise InputTypeError(f"{where} holds decimal numbers such as {_short(decimal)}: {NOT_FLOATS}")
    return _Ids(where, "text", integers, _short(example))


def _check_id_range(con: DuckDBPyConnection, file: _File, role: str) -> None:
    number = f"CAST({_name(role)} AS HUGEINT)"
    if file.types[role] == "UHUGEINT":
        number = _name(role)
    low, high = _one(con, f"SELECT min({number}), max({number}) FROM {_name(file.table)}")
    if high > LARGEST_ID:
        raise InputError(f"{file.at(role)} holds {high}, above 2^63 - 1: write these ids as text")
    if low < 0 and role == "item":
        raise InputError(f"{file.at(role)} holds {low}: item ids must not be negative; write these ids as text")
    if low < -LARGEST_ID:
        raise InputError(f"{file.at(role)} holds {low}, below -(2^63 - 1): write these ids as text")


def _make_codes(
    con: DuckDBPyConnection, files: Mapping[str, _File], user_kind: str, item_kind: str
) -> tuple[Array, Array | None]:
    """Make the tables `users` and, for text items, `items` (id, code), with codes in ascending order of ids.

    Returns the ids of users and the texts of items in that order.
    """
    for role, kind in (("user", user_kind), ("item", item_kind)):
        type_ = "BIGINT" if kind == "integer" else "VARCHAR"
        for file in files.values():
            con.execute(f"ALTER TABLE {_name(file.table)} ALTER {_name(role)} TYPE {type_}")
    user_ids = _number_ids(con, "user", ("recs", "truth"))
    item_texts = _number_ids(con, "item", ("recs", "truth")) if item_kind == "text" else None
    return user_ids.astype(np.int64 if user_kind == "integer" else np.str_), item_texts


def _number_ids(con: DuckDBPyConnection, role: str, tables: Sequence[str]) -> Array:
    """Make the table `users` or `items` of the ids in some tables; the ids in the order of their codes."""
    # Text compares by bytes here: no collation is set.
    union = " UNION ALL ".join(f"SELECT {_name(role)} AS id FROM {_name(table)}" for table in tables)
    con.execute(
        f"CREATE TEMP TABLE {role}s AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS code FROM "
        f"(SELECT DISTINCT id FROM ({union}))"
    )
    return np.asarray(con.execute(f"SELECT id FROM {role}s ORDER BY code").fetchnumpy()["id"])


def _fetch(
    con: DuckDBPyConnection,
    file: _File,
    n_users: int,
    item_kind: str,
    *,
    value: str | None = None,
    order: str | None = None,
) -> tuple[Array, ...]:
    """(items, indptr) of a table or, where it has the column `value`, (items, indptr, values)."""
    item = 't."item"' if item_kind == "integer" else "items.code"
    join = "" if item_kind == "integer" else ' JOIN items ON items.id = t."item"'
    picked = f"users.code AS user_code, {item} AS item"
    if value is not None and value in file.names:
        picked += f", {_number(con, file, value)} AS value"
    rows = con.execute(
        f'SELECT {picked} FROM {_name(file.table)} AS t JOIN users ON users.id = t."user"{join} '
        f"ORDER BY users.code{', ' + order if order else ''}"
    ).fetchnumpy()
    arrays = (_narrow(np.asarray(rows["item"], dtype=np.int64)), _pointers(rows["user_code"], n_users))
    return (*arrays, np.asarray(rows["value"])) if "value" in rows else arrays


def _pointers(codes: Array, n_users: int) -> Array:
    """Where the rows of each user begin and end; the codes of users ascend."""
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=n_users), out=indptr[1:])
    return indptr


def _narrow(items: Array) -> Array:
    """int32 where the ids fit: half the memory to read."""
    fits = items.size == 0 or items.max() < 2**31
    return items.astype(np.int32) if fits else items


def _number(con: DuckDBPyConnection, file: _File, role: str) -> str:
    """SQL for a column of numbers: ranks are BIGINT or DOUBLE, labels TINYINT if small, others FLOAT or DOUBLE."""
    column, type_ = f"t.{_name(role)}", file.types[role]
    if role == "label" and type_ in ("BOOLEAN", "TINYINT"):
        return f"CAST({column} AS TINYINT)"
    if role != "rank":
        return column if type_ == "FLOAT" else f"CAST({column} AS DOUBLE)"
    if _is_text(type_):
        same = f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}"
        (integers,) = _one(
            con, f"SELECT coalesce(bool_and(coalesce({same}, false)), true) FROM {_name(file.table)} AS t"
        )
        return f"CAST({column} AS {'BIGINT' if integers else 'DOUBLE'})"
    if type_ == "UBIGINT" or not _is_integer(type_):
        return f"CAST({column} AS DOUBLE)"
    return column


def _fetch_recs(con: DuckDBPyConnection, file: _File, user_ids: Array, item_kind: str) -> tuple[Array, ...]:
    """The lists in rank order; or, where there are scores, with the scores that `evaluate` orders them by."""
    n_users = len(user_ids)
    if "rank" not in file.names:
        return _fetch(con, file, n_users, item_kind, value="score", order="t.rowid")
    order = f"{_number(con, file, 'rank')}, t.rowid"
    items, indptr, ranks = _fetch(con, file, n_users, item_kind, value="rank", order=order)
    users = np.repeat(np.arange(n_users), np.diff(indptr))
    twice = np.flatnonzero((ranks[1:] == ranks[:-1]) & (users[1:] == users[:-1]))
    if twice.size:
        first = twice[0]
        user, rank = user_ids[users[first]], ranks[first]
        raise InputError(
            f"{file.at('rank')} holds a rank twice for one user: user {user.item()!r}, rank {rank.item():g} "
            f"({twice.size} such rows); to order by scores, with ties, name the score column"
        )
    return items, indptr


def _labels(con: DuckDBPyConnection, files: Mapping[str, _File], role: str, user_ids: Array) -> Array:
    """One label per user from a column of the truth, of the lists or of both; "(none)" where a user has none.

    Labels are integers if every one is an integer, else text.
    """
    having = [file for file in files.values() if role in file.names]
    rows = " UNION ALL ".join(
        f'SELECT "user", CAST({_name(role)} AS VARCHAR) AS label FROM {_name(file.table)}' for file in having
    )
    found = con.execute(
        "SELECT min(label) AS low, max(label) AS high "
        f'FROM users LEFT JOIN ({rows}) AS t ON users.id = t."user" GROUP BY users.code ORDER BY users.code'
    ).fetchnumpy()
    return _one_label_each(found, user_ids, " and ".join(file.at(role) for file in having))


def _one_label_each(found: Mapping[str, Array], user_ids: Array, where: str) -> Array:
    """The lowest label of each user, which must be the highest too."""
    low, high = (np.ma.filled(np.ma.asarray(found[name]), NO_LABEL) for name in ("low", "high"))
    differ = np.flatnonzero(low != high)
    if differ.size:
        user = user_ids[differ[0] : differ[0] + 1].tolist()[0]
        raise ColumnError(
            f"{where}: one value per user is wanted, but user {user!r} has {_short(low[differ[0]])} and "
            f"{_short(high[differ[0]])} ({differ.size} such users)",
            "by",
        )
    labels = low.astype(np.str_)
    try:
        integers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return integers if np.array_equal(integers.astype(np.str_), labels) else labels


# Scored logs


def _user_roles(file: _File) -> list[str]:
    return [role for role in file.names if role.startswith("user")]


def _number_users(con: DuckDBPyConnection, file: _File) -> dict[str, Array]:
    """Make the table `users` of the combinations of user columns, with codes in ascending order; their values."""
    roles = _user_roles(file)
    if not roles:
        return {}
    kinds = [_set_kind(con, file, role) for role in roles]
    listed = ", ".join(map(_name, roles))
    con.execute(
        f"CREATE TEMP TABLE users AS SELECT {listed}, row_number() OVER (ORDER BY {listed}) - 1 AS code "
        f"FROM (SELECT DISTINCT {listed} FROM log)"
    )
    found = con.execute(f"SELECT {listed} FROM users ORDER BY code").fetchnumpy()
    types = (np.int64 if kind == "integer" else np.str_ for kind in kinds)
    return {file.names[role]: np.asarray(found[role]).astype(type_) for role, type_ in zip(roles, types, strict=True)}


def _set_kind(con: DuckDBPyConnection, file: _File, role: str) -> str:
    """Make integers or text of the ids of a role; which of the two."""
    kind = _joint_kind(con, role, [file])
    type_ = "BIGINT" if kind == "integer" else "VARCHAR"
    con.execute(f"ALTER TABLE {_name(file.table)} ALTER {_name(role)} TYPE {type_}")
    return kind


def _join_users(file: _File) -> str:
    return "JOIN users ON " + " AND ".join(f"users.{_name(role)} = t.{_name(role)}" for role in _user_roles(file))


def _fetch_rows(con: DuckDBPyConnection, file: _File, values: tuple[str, str]) -> dict[str, Array]:
    """The columns of a scored log: its values, weight and item; with users also user_code and place, by user."""
    picked = {role: _number(con, file, role) for role in (*values, "weight") if role in file.names}
    joins, order = "", ""
    if "item" in file.names:
        picked["item"] = 't."item"'
        if _set_kind(con, file, "item") == "text":
            _number_ids(con, "item", ("log",))
            picked["item"], joins = "items.code", ' JOIN items ON items.id = t."item"'
    if _user_roles(file):
        picked |= {"user_code": "users.code", "place": "t.rowid"}
        joins, order = f"{joins} {_join_users(file)}", "ORDER BY users.code, t.rowid"
    elif joins:
        order = "ORDER BY t.rowid"
    columns = ", ".join(f"{value} AS {_name(name)}" for name, value in picked.items())
    rows = con.execute(f"SELECT {columns} FROM log AS t{joins} {order}").fetchnumpy()
    return {name: np.asarray(column) for name, column in rows.items()}


def _labels_of_log(con: DuckDBPyConnection, file: _File, role: str, user_ids: Array) -> Array:
    """One label per user from a column of a scored log; "(none)" where a user has none."""
    label = f"CAST(t.{_name(role)} AS VARCHAR)"
    found = con.execute(
        f"SELECT min({label}) AS low, max({label}) AS high FROM log AS t {_join_users(file)} "
        "GROUP BY users.code ORDER BY users.code"
    ).fetchnumpy()
    return _one_label_each(found, user_ids, file.at(role))


@contextlib.contextmanager
def output_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path`, whole, when the block ends well; devices are written directly."""
    final = os.path.realpath(path)
    if os.path.isdir(final):
        raise InputError(f"{os.fspath(path)}: is a folder; a file name is wanted")
    special = os.path.exists(final) and not os.path.isfile(final)
    with open(path, "wb") if special else atomic_write(path) as stream:
        yield stream

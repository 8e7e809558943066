"""Files as tables of a database: Parquet and CSV read by DuckDB, their columns found and checked.

Ids are matched exactly: integers with integers, text with text, and a text id keeps every character, so "007" is not
7. Rows are counted from 1 in messages, a header not counted.
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
from typing import TYPE_CHECKING, Any

from fastrec.exceptions import FastrecError, InputError, InputTypeError, require, suggest_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "ColumnError",
    "Columns",
    "File",
    "ScoreColumns",
    "check_groupings",
    "check_path",
    "estimate_bytes",
    "joint_kind",
    "load",
    "number_sql",
    "one_row",
    "open_database",
    "quoted",
    "short_text",
]

SIGNED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
INTEGER_TYPES = frozenset((*SIGNED_TYPES, *(f"U{name}" for name in SIGNED_TYPES)))
TEXT_TYPES = frozenset(("VARCHAR", "UUID"))
LARGEST_ID = 2**63 - 1
LARGEST_EXACT_FLOAT = 2**53
NOT_FLOATS = "write ids as integers (missing values make floats of them: drop those rows first) or as text"
HEADER_BYTES = 1 << 20
BYTES_PER_VALUE = 12
PACKED = 6  # times that gzip makes rows smaller
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
        wanted = {"user": self.user} if table == "users" else {"user": self.user, "item": self.item}
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

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """{role: column} of the columns found in the file."""
        users = self.users
        if users is None:  # labels to group by belong to users
            users = ("user_id",) if "user_id" in found or self.by else ()
        wanted = {f"user{n}": name for n, name in enumerate(users)}
        if table != "users":
            wanted |= dict(zip(self.values, (self.label, self.score), strict=True))
            wanted |= {role: name for role, name in (("item", self.item), ("weight", self.weight)) if name is not None}
        _check_found(wanted, path, found)
        return wanted | {f"by{n}": name for n, name in enumerate(self.by) if name in found}


def _check_found(wanted: Mapping[str, str], path: str, found: Sequence[str]) -> None:
    for role, name in wanted.items():
        if name not in found:
            raise ColumnError(f"{path}: no column {name!r}{suggest_name(name, found)}", role.rstrip("0123456789"))


@dataclass(frozen=True)
class File:
    """A file that has been loaded into the DuckDB table `table`, one column per role."""

    table: str
    path: str
    is_csv: bool
    rows: int
    names: Mapping[str, str]  # role -> name of the column in the file
    types: Mapping[str, str]  # role -> DuckDB's type

    def at(self, role: str) -> str:
        """What errors call the column of a role."""
        return f"{self.path}: column {self.names[role]!r}"


@dataclass(frozen=True)
class _Ids:
    """What the ids of one file and role are: "integer", "text" or, for a CSV of integers, "open"."""

    where: str
    kind: str
    integers: int = 0  # how many of the text ids are integers
    example: str = ""


@contextlib.contextmanager
def open_database(
    n_threads: int | None, folder: str | None = None, memory: int | None = None
) -> Iterator[DuckDBPyConnection]:
    """A database of our own, which installs nothing: in memory, without temporary files; or in a folder."""
    duckdb = require("duckdb", "cli", what="reading files")
    config: dict[str, Any] = {
        "temp_directory": "" if folder is None else folder,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "preserve_insertion_order": "true",
    }
    if n_threads is not None:
        config["threads"] = n_threads
    if memory is not None:
        config["memory_limit"] = f"{memory}B"
    con = duckdb.connect(":memory:" if folder is None else os.path.join(folder, "rows.duckdb"), config=config)
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


def quoted(name: str) -> str:
    """A column name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_sql(value: str) -> str:
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


def one_row(con: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The one row of an aggregate."""
    row = con.execute(query).fetchone()
    assert row is not None
    return row


def check_path(path: str) -> None:
    """The path must be that of a file with something in it."""
    if not os.path.exists(path):
        raise InputError(f"{path}: no such file")
    if os.path.isdir(path):
        raise InputError(f"{path}: is a folder; give one Parquet or CSV file")
    if not os.path.isfile(path):
        raise InputError(f"{path}: is not a regular file; write the rows to a file first")
    if os.path.getsize(path) == 0:
        raise InputError(f"{path}: the file is empty, not even a header")


def estimate_bytes(path: str, columns: Columns | ScoreColumns) -> int:
    """About what the wanted columns of a file take in memory."""
    duckdb = require("duckdb", "cli", what="reading files")
    if not _is_parquet(path):
        with open(path, "rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        return os.path.getsize(path) * (PACKED if packed else 1)
    try:
        with duckdb.connect() as con:
            query = "SELECT sum(num_rows) FROM parquet_file_metadata(?)"
            found = con.execute(query, [_literal_path(path)]).fetchone()
    except duckdb.Error:
        return 0  # reading it will say what is wrong
    return int(found[0]) * BYTES_PER_VALUE * len(columns.names) if found else 0


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


def load(con: DuckDBPyConnection, table: str, path: str, columns: Columns | ScoreColumns) -> File:
    """Copy the wanted columns into a table named `table`, its columns named by role, and check them."""
    import duckdb

    is_csv = not _is_parquet(path)
    try:
        if is_csv:
            source, found = _csv_source(path, columns.names)
        else:
            source = f"read_parquet({text_sql(_literal_path(path))}, binary_as_string=true, hive_partitioning=false)"
            rows = con.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            found = {name: (quoted(name), type_) for name, type_, *_ in rows}
        names = columns.roles(table, path, list(found))
        picked = ", ".join(f"{_readable(*found[name])} AS {quoted(role)}" for role, name in names.items())
        con.execute(f"CREATE TABLE {quoted(table)} AS SELECT {picked} FROM {source}")
        (rows_,) = one_row(con, f"SELECT count(*) FROM {quoted(table)}")
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as error:
        kind = "CSV" if is_csv else "Parquet"
        raise InputError(f"{path}: cannot be read as {kind}: {_first_sentence(error)}") from error
    file = File(table, path, is_csv, rows_, names, {role: found[name][1] for role, name in names.items()})
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


def check_groupings(files: Mapping[str, File], by: Sequence[str]) -> None:
    """Columns to group by must be in one of the files."""
    having = [file for table, file in files.items() if table != "seen"]
    for n, name in enumerate(by):
        if any(f"by{n}" in file.names for file in having):
            continue
        if len(having) == 1:
            raise ColumnError(f"{having[0].path}: no column {name!r} to group by", "by")
        paths = " nor ".join(file.path for file in having)
        raise InputError(f"neither {paths} has the column {name!r} to group by")


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
        f"read_csv({text_sql(_literal_path(path))}, auto_detect=false, header=true, skip=0, comment='', "
        f"delim={text_sql(delimiter)}, quote='\"', escape='\"', hive_partitioning=false, "
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


def _check_column(con: DuckDBPyConnection, file: File, role: str) -> None:
    """No nulls where a value is needed, and numbers where numbers are needed."""
    if not file.rows or role.startswith("by"):
        return
    column, table = quoted(role), quoted(file.table)
    empty, first = one_row(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {column} IS NULL")
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
    bad, first = one_row(con, f"SELECT count(*), min(rowid) FROM {table} WHERE {wrong}")
    if bad:
        what = "NaN" if role == "score" else "NaN or infinite"
        raise InputError(f"{file.at(role)} is {what} in {bad} rows, the first is row {first + 1} of {file.rows}")
    if role in ("score", "label", "target", "prediction") and _is_integer(file.types[role]):
        (largest,) = one_row(con, f"SELECT max(abs({value})) FROM {table}")
        if largest > LARGEST_EXACT_FLOAT:
            advice = "give a rank column" if file.table == "recs" else "they would be rounded"
            raise InputError(f"{file.at(role)} holds integers above 2^53, which {role}s cannot hold: {advice}")


def _check_number_text(con: DuckDBPyConnection, file: File, role: str) -> None:
    column, table = quoted(role), quoted(file.table)
    bad, value, first = one_row(
        con,
        f"SELECT count(*), arg_min({column}, rowid), min(rowid) FROM {table} "
        f"WHERE TRY_CAST({column} AS DOUBLE) IS NULL",
    )
    if bad:
        raise InputTypeError(f"{file.at(role)} must hold numbers; row {first + 1} holds {short_text(value)}")


def short_text(value: str) -> str:
    """A value as an error shows it."""
    return repr(value if len(value) <= 40 else value[:39] + "…")


def joint_kind(con: DuckDBPyConnection, role: str, files: list[File]) -> str:
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


def _inspect_ids(con: DuckDBPyConnection, file: File, role: str) -> _Ids:
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


def _inspect_text_ids(con: DuckDBPyConnection, file: File, role: str) -> _Ids:
    """A text is an integer id if writing the integer gives it back: "7" is; "007", "+7" and " 7" are not."""
    column, where = quoted(role), file.at(role)
    is_integer = f"coalesce(CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}, false)"
    integers, example = one_row(
        con,
        f"SELECT count(*) FILTER ({is_integer}), arg_min({column}, rowid) FILTER (NOT {is_integer}) "
        f"FROM {quoted(file.table)}",
    )
    if not file.is_csv:
        return _Ids(where, "text", integers, short_text(example) if example is not None else "digits")
    if integers == file.rows:
        _check_id_range(con, file, role)
        return _Ids(where, "open")
    is_decimal = rf"regexp_full_match({column}, '[+-]?[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?')"
    decimals, decimal = one_row(
        con,
        f"SELECT count(*) FILTER ({is_decimal}), arg_min({column}, rowid) FILTER ({is_decimal}) "
        f"FROM {quoted(file.table)}",
    )
    if decimals and decimals + integers == file.rows:
        raise InputTypeError(f"{where} holds decimal numbers such as {short_text(decimal)}: {NOT_FLOATS}")
    return _Ids(where, "text", integers, short_text(example))


def _check_id_range(con: DuckDBPyConnection, file: File, role: str) -> None:
    number = f"CAST({quoted(role)} AS HUGEINT)"
    if file.types[role] == "UHUGEINT":
        number = quoted(role)
    low, high = one_row(con, f"SELECT min({number}), max({number}) FROM {quoted(file.table)}")
    if high > LARGEST_ID:
        raise InputError(f"{file.at(role)} holds {high}, above 2^63 - 1: write these ids as text")
    if low < 0 and role == "item":
        raise InputError(f"{file.at(role)} holds {low}: item ids must not be negative; write these ids as text")
    if low < -LARGEST_ID:
        raise InputError(f"{file.at(role)} holds {low}, below -(2^63 - 1): write these ids as text")


def number_sql(con: DuckDBPyConnection, file: File, role: str) -> str:
    """SQL for a column of numbers: ranks are integers, labels TINYINT if small, others FLOAT or DOUBLE."""
    column, type_ = f"t.{quoted(role)}", file.types[role]
    if role == "label" and type_ in ("BOOLEAN", "TINYINT"):
        return f"CAST({column} AS TINYINT)"
    if role == "rank":
        return _rank_sql(con, file, column)
    return column if type_ == "FLOAT" else f"CAST({column} AS DOUBLE)"


def _rank_sql(con: DuckDBPyConnection, file: File, column: str) -> str:
    """Ranks as they are where they are integers; others by their place among all, which is all that matters of them."""
    type_ = file.types["rank"]
    if _is_integer(type_) and type_ != "UBIGINT":
        return column
    if _is_text(type_):
        same = f"coalesce(CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR) = {column}, false)"
        (integers,) = one_row(con, f"SELECT coalesce(bool_and({same}), true) FROM {quoted(file.table)} AS t")
        if integers:
            return f"CAST({column} AS BIGINT)"
        column = f"CAST({column} AS DOUBLE)"
    return f"dense_rank() OVER (ORDER BY {column})"

"""Files as SQL sources of rows with columns named by position, and the quoting of names and strings in SQL."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from fastrec.exceptions import InputError
from fastrec.files.columns import FileColumns
from fastrec.files.database import run
from fastrec.files.formats.heads import Beginning

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from fastrec.files.paths import Files, utf8_path
from fastrec.files.sizes import Size, size_of_text

__all__ = [
    "FILE",
    "NO_EXTENSIONS",
    "Format",
    "Source",
    "names_files",
    "one_row",
    "paths_sql",
    "quoted",
    "reader_sql",
    "refuse_other_folders",
    "string_sql",
    "text_source",
    "with_partitions",
]


AnyColumns = TypeVar("AnyColumns", bound=FileColumns)
# DuckDB would download an extension, or load one that it finds in a folder.
NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
COMPARED = ("DOUBLE", "TIMESTAMP")  # types in which a value may be equal to that in the name of a folder
FILE = "fastrec file"  # the column in which DuckDB names the file of a row, if it reads several files


class Format(ABC):
    """A format of files: how to recognise it, and how to read it."""

    name: str  # value of `input_format`
    title: str  # in messages
    endings: tuple[str, ...] = ()  # of the names of its files
    magic: bytes = b""  # begins each of its files; b"": text
    attempts: int = 1  # ways to open files, tried in order
    has_labels: bool = True  # whether a file can hold the labels of users
    ids_are_strings: bool = False  # whether ids are strings, even digits, unless other files have integers

    def has_magic(self, start: Beginning) -> bool:
        """Return whether a file begins like those of a format that is not text."""
        return start.first.startswith(self.magic)

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        """Return whether a text file is in this format; `names` are the columns that may be read."""
        return start.ending in self.endings

    def columns(self, columns: AnyColumns) -> AnyColumns:
        """Return the columns to read, from those that a call names."""
        return columns

    @abstractmethod
    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        """Return the SQL source of files."""

    def bound(self, columns: FileColumns) -> Format:
        """Return this format for files of which some columns are read."""
        return self

    def size(self, files: Files, names: Collection[str]) -> Size:
        """Estimate the size of the wanted columns."""
        return size_of_text(files, names)

    def place(self, path: str, position: int) -> str:
        """Return how errors name the row at a position of a file."""
        return f"row {position + 1}"

    def reason(self, path: str) -> str:
        """Return what is wrong with a file that DuckDB cannot read; "": what DuckDB says."""
        return ""


@dataclass(frozen=True)
class Source:
    """SQL that reads files.

    `variants` has one file of each kind of schema: its path, and {name: (column in the SQL, type)}.
    """

    files: Files
    format: Format
    sql: str
    variants: tuple[tuple[str, Mapping[str, tuple[str, str]]], ...]
    untyped: frozenset[str]  # columns of strings in a format without types
    filled: frozenset[str]  # the files that have more than a header
    n_rows: Mapping[str, int] = field(default_factory=dict)  # {path: rows}, if the rows were counted
    all_columns: str = ""  # SQL that reads all columns, if `sql` has only the wanted ones
    again: Callable[[], str] | None = None  # returns SQL for one more reading, if `sql` is a stream
    unreadable: frozenset[str] = frozenset()  # columns of types that DuckDB lacks; they are null

    def refusal(self, name: str) -> str:
        """Return what is wrong with a column of a type that DuckDB lacks; "" for others."""
        if name not in self.unreadable:
            return ""
        return f" holds {self.columns[name][1]}, which fastrec cannot read: write its values as numbers or as strings"

    @property
    def columns(self) -> Mapping[str, tuple[str, str]]:
        """{name: (column in the SQL, type)} of the first variant."""
        return self.variants[0][1]

    def place(self, position: int) -> str:
        """Return how errors name the row at a position: its row or line, and its file if there are several."""
        path, position = self._in_file(position)
        where = f" of {path}" if len(self.files.paths) > 1 else ""
        return f"{self.format.place(path, position)}{where}"

    @property
    def whole_sql(self) -> str:
        """SQL that reads all columns, also those that no argument names."""
        return self.all_columns or self.sql

    def file_sql(self) -> str | None:
        """Return the SQL of the file of a row, in 1 to 4 bytes; None if the rows of each file are known without it."""
        if len(self.files.paths) == 1 or self.n_rows:
            return None
        return (
            f"TRY_CAST({quoted(FILE)} AS ENUM ({', '.join(string_sql(utf8_path(path)) for path in self.files.paths)}))"
        )

    def find_lost(self, n_rows: Mapping[str, int]) -> str | None:
        """Return a file with more than a header but without rows in `n_rows` (as the field); None if there is none."""
        return next(
            (path for path in self.files.paths if path in self.filled and not n_rows.get(utf8_path(path))), None
        )

    def _in_file(self, position: int) -> tuple[str, int]:
        """Return the file of a row, and the position of the row in it."""
        if len(self.files.paths) == 1:
            return self.files.paths[0], position
        counts = self.n_rows
        if not counts:
            import duckdb

            query = f"SELECT {quoted(FILE)}, count(*) FROM {self.sql} GROUP BY ALL"
            with duckdb.connect(":memory:", config=NO_EXTENSIONS) as con:
                counts = dict(run(con, query).fetchall())
        for path in self.files.paths:
            rows = counts.get(utf8_path(path), 0)
            if position < rows:
                break
            position -= rows
        return path, position


# Names in SQL


def quoted(name: str) -> str:
    """Return a column name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def string_sql(value: str) -> str:
    """Return a string, quoted for SQL."""
    return "'" + value.replace("'", "''") + "'"


def one_row(con: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """Run a query and return its only row."""
    (row,) = run(con, query).fetchall()  # a result that is not read to its end blocks `con.register`
    return tuple(row)


def literal_path(path: str) -> str:
    """Return a path that DuckDB reads as this one file: absolute (no "~", no URL), without glob patterns."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in utf8_path(path))


def paths_sql(paths: Sequence[str]) -> str:
    """Return paths of files as a list in SQL."""
    return f"[{', '.join(string_sql(literal_path(path)) for path in paths)}]"


def reader_sql(function: str, paths: Sequence[str], options: str, *, name_files: bool) -> str:
    """Return the SQL of a reader of DuckDB for files."""
    naming = f", filename={string_sql(FILE)}" if name_files else ""
    return f"{function}({paths_sql(paths)}, {options}, hive_partitioning=false{naming})"


def _partitions(keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return {name: (SQL of the value in the path of the file, type)} for the keys of Hive partitions."""
    found = {}
    for key in keys:
        pattern = f"(?s).*/{re.escape(key)}=([^/]*)/"
        value = f"url_decode(regexp_extract({quoted(FILE)}, {string_sql(pattern)}, 1))"
        found[unquote(key)] = (f"nullif({value}, '__HIVE_DEFAULT_PARTITION__')", "VARCHAR")
    return found


def with_partitions(
    found: Mapping[str, tuple[str, str]], keys: Sequence[str]
) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Return the columns of a file and of its partitions, and the names of the latter.

    A column of the file comes first; `refuse_other_folders` compares it with the folders.
    """
    partitions = {name: column for name, column in _partitions(keys).items() if name not in found}
    return {**found, **partitions}, set(partitions)


def refuse_other_folders(con: DuckDBPyConnection, source: Source, names: Iterable[str]) -> None:
    """Raise if a file has one of these columns, its folder is named like it, and their values differ.

    Some programs write the column into the files, too. Numbers, dates and booleans may be spelled in two ways.
    """
    spelled = {(key, unquote(key)) for keys in source.files.keys for key in keys}
    for key, name in sorted((key, name) for key, name in spelled if name in {*names}):
        folder, own = _partitions([key])[name][0], source.columns[name][0]
        if own == folder:
            continue
        alike = [f"coalesce(TRY_CAST(own AS {kind}) = TRY_CAST(folder AS {kind}), false)" for kind in COMPARED]
        sql = source.sql if source.again is None else source.again()
        rows = f"SELECT CAST({own} AS VARCHAR) AS own, {folder} AS folder, {quoted(FILE)} AS file FROM {sql}"
        found = run(
            con,
            f"SELECT own, folder, file FROM ({rows}) WHERE folder IS DISTINCT FROM '' "
            f"AND lower(own) IS DISTINCT FROM lower(folder) AND NOT ({' OR '.join(alike)}) LIMIT 1",
        ).fetchone()
        if found is not None:
            value, text, place = found
            path = next((path for path in source.files.paths if utf8_path(path) == place), place)
            raise InputError(path, f": column {name!r} holds {value!r}, but the name of its folder says {text!r}")


def text_source(
    files: Files,
    format_: Format,
    sql: str,
    found: Mapping[str, tuple[str, str]],
    filled: Iterable[str],
    *,
    typed: bool = False,
) -> Source:
    """Return a source of text files that all have the same columns but may differ in their partitions."""
    variants, untyped = [], set() if typed else set(found)
    for keys in dict.fromkeys(files.keys):
        columns, partitions = with_partitions(found, keys)
        variants.append((files.paths[files.keys.index(keys)], columns))
        untyped |= partitions
    return Source(files, format_, sql, tuple(variants), frozenset(untyped), frozenset(filled))


def names_files(files: Files) -> bool:
    """Return whether rows must say which file they come from."""
    return len(files.paths) > 1 or any(files.keys)

"""Files as a source of rows in SQL, their columns named by position; the names of SQL."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from fastrec.files.database import run

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from fastrec.files.formats.recognise import TREC_COMMENT, lines_of
from fastrec.files.paths import Files, utf8_path

__all__ = [
    "FILE",
    "NO_EXTENSIONS",
    "ROWS_TO_ASK",
    "Source",
    "first_sentence",
    "names_files",
    "one_row",
    "paths_sql",
    "quoted",
    "reader_sql",
    "text_source",
    "text_sql",
    "with_partitions",
]


# An extension would be fetched, or be whatever lies in a folder.
NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
ROWS_TO_ASK = 100_000  # whether a column that nobody named may have been meant
FILE = "fastrec file"  # the column in which DuckDB names the file of a row, where there are several


@dataclass(frozen=True)
class Source:
    """SQL that reads files.

    `variants` has an example of each kind of files among them: its path, and {name: (column in the SQL, type)}.
    """

    files: Files
    format: str
    sql: str
    variants: tuple[tuple[str, Mapping[str, tuple[str, str]]], ...]
    untyped: frozenset[str]  # columns that hold texts only because there is no type
    filled: frozenset[str]  # the files that have something besides a header
    n_rows: Mapping[str, int] = field(default_factory=dict)  # of each file, where they were counted: {path: rows}

    @property
    def columns(self) -> Mapping[str, tuple[str, str]]:
        """{name: (column in the SQL, type)}."""
        return self.variants[0][1]

    def place(self, position: int) -> str:
        """What errors call the row at a position: its row or line, and where there are several files its file."""
        path, position = self._in_file(position)
        where = f" of {path}" if len(self.files.paths) > 1 else ""
        if self.format not in ("jsonl", "trec"):
            return f"row {position + 1}{where}"
        comments = TREC_COMMENT.encode() if self.format == "trec" else ()
        full = (
            number
            for number, line in enumerate(lines_of(path), 1)
            if line.strip() and not line.strip().startswith(comments)
        )
        return f"line {next(itertools.islice(full, position, None), position + 1)}{where}"

    def file_sql(self) -> str | None:
        """SQL for the file of a row, in 1 to 4 bytes; None where the rows of each file are known without it."""
        if len(self.files.paths) == 1 or self.n_rows:
            return None
        return f"TRY_CAST({quoted(FILE)} AS ENUM ({', '.join(text_sql(utf8_path(path)) for path in self.files.paths)}))"

    def find_lost(self, n_rows: Mapping[str, int]) -> str | None:
        """A file with something besides a header of which the reader makes no row; `n_rows` as in the field."""
        return next(
            (path for path in self.files.paths if path in self.filled and not n_rows.get(utf8_path(path))), None
        )

    def trim(self, con: DuckDBPyConnection) -> None:
        """Of rows that were copied keep those that hints ask for."""
        if self.n_rows:
            run(con, f"CREATE OR REPLACE TABLE {self.sql} AS SELECT * FROM {self.sql} LIMIT {ROWS_TO_ASK}")

    def _in_file(self, position: int) -> tuple[str, int]:
        """The file of a row, and the row's position in it."""
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
    """A column name, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def text_sql(value: str) -> str:
    """A text, quoted for SQL."""
    return "'" + value.replace("'", "''") + "'"


def one_row(con: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The one row of an aggregate."""
    row = run(con, query).fetchone()
    assert row is not None
    return row


def literal_path(path: str) -> str:
    """The path such that DuckDB finds this one file: absolute (no "~", no URL), without glob patterns."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in utf8_path(path))


def paths_sql(paths: Sequence[str]) -> str:
    """Paths of files as a list in SQL."""
    return f"[{', '.join(text_sql(literal_path(path)) for path in paths)}]"


def reader_sql(function: str, paths: Sequence[str], options: str, *, name_files: bool) -> str:
    """Return the SQL of a reader of DuckDB for files."""
    naming = f", filename={text_sql(FILE)}" if name_files else ""
    return f"{function}({paths_sql(paths)}, {options}, hive_partitioning=false{naming})"


def first_sentence(error: Exception) -> str:
    """DuckDB's message without its class, its advice and its prints of the query and of the line."""
    text = re.split(r"\n(?:Possible |Try |LINE 1:)", str(error))[0]
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: (?:CSV Error on Line: )?", "", text)
    text = re.sub(r'^JSON transform error in file ".*", in (?=line \d+: )', "", text, flags=re.DOTALL)
    text = re.sub(
        r"^(\d+)\nOriginal Line: .*?\n(?=Expected|Value|Invalid|Maximum)", r"line \1: ", text, flags=re.DOTALL
    )
    text = re.sub(r"Expected Number of Columns: (\d+) Found: (\d+)", r"\1 columns expected, \2 found", text)
    return " ".join(text.split())


def _partitions(keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """{name: (SQL for the text in the path of the file, type)} for the keys of Hive partitions."""
    found = {}
    for key in keys:
        pattern = f"(?s).*/{re.escape(key)}=([^/]*)/"
        value = f"url_decode(regexp_extract({quoted(FILE)}, {text_sql(pattern)}, 1))"
        found[unquote(key)] = (f"nullif({value}, '__HIVE_DEFAULT_PARTITION__')", "VARCHAR")
    return found


def with_partitions(
    found: Mapping[str, tuple[str, str]], keys: Sequence[str]
) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """The columns of a file and of its partitions, and the names of the latter; a column in the file wins."""
    partitions = {name: column for name, column in _partitions(keys).items() if name not in found}
    return {**found, **partitions}, set(partitions)


def text_source(
    files: Files, format_: str, sql: str, found: Mapping[str, tuple[str, str]], filled: Iterable[str]
) -> Source:
    """Where all files have the same columns, and may differ in their partitions."""
    variants, untyped = [], set() if format_ == "jsonl" else set(found)
    for keys in dict.fromkeys(files.keys):
        columns, partitions = with_partitions(found, keys)
        variants.append((files.paths[files.keys.index(keys)], columns))
        untyped |= partitions
    return Source(files, format_, sql, tuple(variants), frozenset(untyped), frozenset(filled))


def names_files(files: Files) -> bool:
    """Return whether rows must say which file they come from."""
    return len(files.paths) > 1 or any(files.keys)

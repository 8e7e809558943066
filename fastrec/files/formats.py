"""Formats of files: which files a path stands for, in which format they are, and the SQL that reads them.

A path is one file, a folder or a pattern; several files are read in the order of their names, as one table. Values
keep their types: nothing is left to a reader's guesses. A CSV or a TREC file has no types, so all its values are texts
here, and so are the values in the names of Hive partitions (`date=2024-01-01/`).
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import gzip
import io
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from fastrec.checks import check_choice, check_there, suggest_name
from fastrec.exceptions import FastrecError, InputError, InputTypeError, MissingFileError
from fastrec.files.database import run
from fastrec.files.delimited import read_batches, reason_of_csv
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "ATTEMPTS",
    "FILE",
    "FORMATS",
    "FORMAT_NAMES",
    "NO_EXTENSIONS",
    "ROWS_TO_ASK",
    "Files",
    "Source",
    "damages_of_parquet",
    "find_files",
    "first_sentence",
    "is_packed",
    "one_row",
    "open_source",
    "paths_sql",
    "quoted",
    "reason_of",
    "recognise",
    "text_sql",
    "unchanged",
    "utf8_path",
]

FORMAT_NAMES = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines", "trec": "TREC"}
FORMATS = ("auto", *FORMAT_NAMES)
JSON_ENDINGS = (".jsonl", ".ndjson")
DATA_ENDINGS = (".parquet", ".pq", ".csv", ".tsv", ".txt", ".run", ".trec", ".json", *JSON_ENDINGS)
OTHER_ENDINGS = (".arrow", ".feather", ".ipc", ".avro", ".orc", ".xlsx", ".npz")
HEAD_BYTES = 1 << 20
# An extension would be fetched, or be whatever lies in a folder.
NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
ROWS_TO_ASK = 100_000  # whether a column that nobody named may have been meant
FILE = "fastrec file"  # the column in which DuckDB names the file of a row, where there are several
TREC_COMMENT = "#"  # begins a line that is no row
TREC_RUN = 6  # columns, the last of which may have further words
TREC_ROLES = {  # the role of each column of a run and of judgements; None plays no part
    TREC_RUN: ("user", None, "item", "rank", "score", None),
    4: ("user", None, "item", "gain"),
}


class Files(NamedTuple):
    """The files that a path stands for, in the order of their names."""

    path: str  # as it was given
    paths: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]  # of each file: the names of its Hive partitions, as they stand in its folders

    def each(self) -> Iterator[Files]:
        """Every file by itself."""
        for path, keys in zip(self.paths, self.keys, strict=True):
            yield Files(path, (path,), (keys,))


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
            for number, line in enumerate(_lines(path), 1)
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


def utf8_path(path: str) -> str:
    """An absolute path as DuckDB and PyArrow take it; Python writes a name in UTF-8 otherwise if the locale is C."""
    return os.fsencode(os.path.abspath(path)).decode()


def _literal_path(path: str) -> str:
    """The path such that DuckDB finds this one file: absolute (no "~", no URL), without glob patterns."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in utf8_path(path))


def paths_sql(paths: Sequence[str]) -> str:
    """Paths of files as a list in SQL."""
    return f"[{', '.join(text_sql(_literal_path(path)) for path in paths)}]"


def _reader(function: str, paths: Sequence[str], options: str, *, name_files: bool) -> str:
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


# Which files


def find_files(path: str) -> Files:
    """The files of a path, each a regular file with something in it.

    A file that is called so is that file, whatever signs are in its name; a folder stands for all files in it and in
    its folders, but those whose names begin with "_" or "."; else a path with *, ? or [ is a pattern, where ** stands
    for any folders. Folders below a given folder, or from the first part of a pattern on, may be Hive partitions.
    """
    if os.path.isdir(path):
        paths, base = _files_in(path), path
        if not paths:
            raise InputError(f"{path}: no files in this folder")
    elif os.path.exists(path) or not glob.has_magic(path):
        _check_file(path)
        return Files(path, (path,), ((),))
    else:
        matches = glob.glob(path, recursive=True)
        paths = {file for match in matches for file in (_files_in(match) if os.path.isdir(match) else [match])}
        base = _literal_part(path)
        if not paths:
            raise MissingFileError(f"{path}: no such file, and no file matches this pattern")
    ordered = tuple(sorted(paths))
    for file in ordered:
        _check_file(file)
    folder = utf8_path(base or ".")
    return Files(path, ordered, tuple(_partition_keys(os.path.relpath(utf8_path(file), folder)) for file in ordered))


def _check_file(path: str) -> None:
    try:
        utf8_path(path)
    except UnicodeDecodeError:
        raise InputError(f"{path}: a name that is not UTF-8; rename the file, or read a link to it") from None
    try:
        check_there(path)
    except MissingFileError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not os.path.isfile(path):
        raise InputError(f"{path}: is not a regular file; write the rows to a file first")
    if os.path.getsize(path) == 0:
        raise InputError(f"{path}: the file is empty, not even a header")


def _files_in(folder: str) -> set[str]:
    """All files below a folder but those with hidden names; a folder that is linked to itself is read once."""
    found: set[str] = set()
    visited = set()
    for place, folders, names in os.walk(folder, followlinks=True, onerror=_fail):
        if os.path.realpath(place) in visited:
            folders.clear()
            continue
        visited.add(os.path.realpath(place))
        folders[:] = [name for name in folders if not name.startswith((".", "_")) or "=" in name]
        found.update(os.path.join(place, name) for name in names if not name.startswith((".", "_")))
    return found


def _fail(error: OSError) -> None:
    raise error


def _literal_part(pattern: str) -> str:
    """The folders that a pattern begins with, before its first *, ? or [."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern


def _partition_keys(path: str) -> tuple[str, ...]:
    folders = os.path.dirname(path).split(os.sep)
    return tuple(name.partition("=")[0] for name in folders if name.partition("=")[0] and "=" in name)


def _partitions(keys: Sequence[str]) -> dict[str, tuple[str, str]]:
    """{name: (SQL for the text in the path of the file, type)} for the keys of Hive partitions."""
    found = {}
    for key in keys:
        pattern = f"(?s).*/{re.escape(key)}=([^/]*)/"
        value = f"url_decode(regexp_extract({quoted(FILE)}, {text_sql(pattern)}, 1))"
        found[unquote(key)] = (f"nullif({value}, '__HIVE_DEFAULT_PARTITION__')", "VARCHAR")
    return found


@contextlib.contextmanager
def unchanged(paths: Iterable[str]) -> Iterator[None]:
    """An error if a file changes while the block reads it; this explains other errors better than they do."""
    before = {path: _stamp(path) for path in paths}
    try:
        yield
    except (FastrecError, OSError):
        _compare(before)
        raise
    _compare(before)


def _compare(before: Mapping[str, tuple[int, ...]]) -> None:
    for path, stamp in before.items():
        if _stamp(path) != stamp:
            raise InputError(f"{path}: changed while it was read; evaluate it when it is complete") from None


def _stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


# Which format


class _Head(NamedTuple):
    """How a text file begins."""

    path: str
    text: str
    packed: bool  # with gzip

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return next(self._lines(), "")

    @property
    def trec_fields(self) -> list[str]:
        """The columns of its first line, if it is TREC; none if it holds comments only."""
        lines = (line for line in self._lines() if not line.lstrip().startswith(TREC_COMMENT))
        return _fields(next(lines, ""))[:TREC_RUN]

    def _lines(self) -> Iterator[str]:
        return (line for line in re.split(r"[\r\n]+", self.text) if line.strip())


def recognise(files: Files, names: set[str], input_format: str) -> str:
    """The format of the files: the one that is named or, for "auto", what their first bytes and endings say."""
    check_choice("input_format", input_format, FORMATS)
    found = [_recognise(path, names, input_format) for path in files.paths]
    for path, format_ in zip(files.paths, found, strict=True):
        if format_ != found[0]:
            raise InputError(
                f"{path}: {FORMAT_NAMES[format_]}, but {files.paths[0]} is {FORMAT_NAMES[found[0]]}: files that are "
                "read together must be of one format"
            )
    return found[0]


def _recognise(path: str, names: set[str], input_format: str) -> str:
    """By the first bytes, not by the name; a name that promises something else is an error."""
    with open(path, "rb") as stream:
        magic = stream.read(4) == b"PAR1"
    ending = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    if input_format == "auto" and magic:
        return "parquet"
    if input_format == "parquet" or (input_format == "auto" and ending in (".parquet", ".pq")):
        if not magic:
            raise InputError(f"{path}: not a Parquet file (it does not begin with PAR1)")
        return "parquet"
    if input_format != "auto":
        return input_format
    if ending in OTHER_ENDINGS:
        raise InputError(f"{path}: {ending} files are not read; give Parquet, CSV or JSON lines")
    if ending in JSON_ENDINGS:
        return "jsonl"
    head = _read_head(path)
    if head.first_line.lstrip().startswith("{"):
        return "jsonl"
    if ending == ".json":
        raise InputError(f"{path}: not JSON lines: one object per line is wanted, as in {{'user_id': 1, 'item_id': 2}}")
    return "trec" if _is_trec(head.trec_fields, names) else "csv"


def _fields(line: str) -> list[str]:
    """The words of a line of TREC."""
    return re.findall(r"[^ \t\r\n]+", line)


def _is_trec(fields: list[str], names: set[str]) -> bool:
    """Whether a first line can only be that of a run or of judgements: its second column is fixed and holds nothing."""
    if len(fields) not in TREC_ROLES or fields[1].upper() not in ("Q0", "0") or names.intersection(fields):
        return False
    try:
        [float(number) for number in fields[3:5]]
    except ValueError:
        return False
    return True


def _read_head(path: str) -> _Head:
    packed = is_packed(path)
    try:
        with gzip.open(path, "rb") if packed else open(path, "rb") as stream:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(stream.read(HEAD_BYTES))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged gzip file: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: neither Parquet nor text in UTF-8: {error.reason}, byte {error.start}") from error
    if "\0" in text:
        raise InputError(f"{path}: neither Parquet nor text in UTF-8: it has zero bytes")
    return _Head(path, text, packed)


def is_packed(path: str) -> bool:
    """Whether a file is packed with gzip."""
    with open(path, "rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _read_heads(paths: Sequence[str]) -> list[_Head]:
    """How each text file begins; all or none are packed, and what is packed is whole."""
    heads = [_read_head(path) for path in paths]
    for head in heads:
        if head.packed != heads[0].packed:
            one, other = (heads[0].path, head.path) if heads[0].packed else (head.path, heads[0].path)
            raise InputError(f"{one} is packed with gzip and {other} is not: files read together must be alike")
        if head.packed:
            _check_gzip(head.path)
    return heads


def _check_gzip(path: str) -> None:
    """DuckDB does not look at the checksum."""
    try:
        with gzip.open(path, "rb") as stream:
            while stream.read(HEAD_BYTES):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged gzip file: {error}") from error


def _lines(path: str) -> Iterator[bytes]:
    stream: IO[bytes]
    with gzip.open(path, "rb") if is_packed(path) else open(path, "rb") as stream:  # type: ignore[assignment]
        yield from stream


def _compression(heads: Sequence[_Head]) -> str:
    return f"compression={'gzip' if heads[0].packed else 'uncompressed'!r}"


# Reading


ATTEMPTS = {"parquet": 1, "csv": 2, "jsonl": 1, "trec": 1}  # ways to read a format, each for what the last one cannot


def open_source(
    con: DuckDBPyConnection, files: Files, format_: str, roles: Mapping[str, str], names: set[str], attempt: int = 0
) -> Source:
    """What reads the files, and the columns that they have.

    `names` are the columns that may be read. `roles` is {role: name}: what the columns of a TREC file, which have no
    names, are to be called.
    """
    if format_ == "trec":
        return _open_trec(files, roles)
    if format_ == "csv":
        return _open_csv(con, files, names, attempt)
    return (_open_parquet if format_ == "parquet" else _open_json)(con, files, names)


def _with_partitions(
    found: Mapping[str, tuple[str, str]], keys: Sequence[str]
) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """The columns of a file and of its partitions, and the names of the latter; a column in the file wins."""
    partitions = {name: column for name, column in _partitions(keys).items() if name not in found}
    return {**found, **partitions}, set(partitions)


def _text_source(
    files: Files, format_: str, sql: str, found: Mapping[str, tuple[str, str]], filled: Iterable[str]
) -> Source:
    """Where all files have the same columns, and may differ in their partitions."""
    variants, untyped = [], set() if format_ == "jsonl" else set(found)
    for keys in dict.fromkeys(files.keys):
        columns, partitions = _with_partitions(found, keys)
        variants.append((files.paths[files.keys.index(keys)], columns))
        untyped |= partitions
    return Source(files, format_, sql, tuple(variants), frozenset(untyped), frozenset(filled))


def _open_parquet(con: DuckDBPyConnection, files: Files, names: set[str]) -> Source:
    """Columns are named by position: names in SQL ignore case, and DuckDB renames those that it cannot tell apart."""
    schemas = _schemas(con, files)
    first: dict[tuple[str, frozenset[str]], int] = {}
    for n, keys in enumerate(files.keys):
        first.setdefault((schemas[n], frozenset(keys)), n)
    variants, untyped, found = [], set(), {}
    for (schema, _), n in first.items():
        path = files.paths[n]
        own_names = _parquet_names(path)
        # DuckDB calls a nameless column C0, C1, ..., and refuses a file with another of that name, unless all are named
        rows = con.execute(f"DESCRIBE SELECT * FROM {_parquet_reader([path], own_names)}").fetchall()
        listed = own_names or [name for name, *_ in rows]
        for name in names:
            if listed.count(name) > 1:
                raise InputError(f"{path}: the file has the column {name!r} {listed.count(name)} times")
        found[schema] = [(name, type_) for name, (_, type_, *_) in zip(listed, rows, strict=True)]
        own = {name: (f"c{at}", type_) for at, (name, type_) in enumerate(found[schema])}
        columns, partitions = _with_partitions(own, files.keys[n])
        variants.append((path, columns))
        untyped |= partitions
    if len(found) > 1 and any(len({name.lower() for name, _ in columns}) < len(columns) for columns in found.values()):
        sql = _parquet_union(files, schemas, found)
    else:
        sql = _parquet_reader(files.paths, [name for name, _ in found[schemas[0]]], name_files=_names_files(files))
    rows = con.execute(f"SELECT file_name, num_rows FROM parquet_file_metadata({paths_sql(files.paths)})").fetchall()
    filled = {name for name, n_rows in rows if n_rows}
    filled = {path for path in files.paths if utf8_path(path) in filled}
    return Source(files, "parquet", sql, tuple(variants), frozenset(untyped), frozenset(filled))


def _parquet_reader(paths: Sequence[str], names: Sequence[str] = (), *, name_files: bool = False) -> str:
    """SQL that reads files by the schema of the first one, whose columns are called c0, c1, ... if they are given."""
    own = FILE
    while own.lower() in {name.lower() for name in names}:
        own += "_"
    naming = f", filename={text_sql(own)}" if name_files else ""
    sql = f"read_parquet({paths_sql(paths)}, binary_as_string=true, hive_partitioning=false{naming})"
    columns = [f"c{at}" for at in range(len(names))] + [quoted(FILE)] * name_files
    return f"{sql} AS t({', '.join(columns)})" if names else sql


def _parquet_union(files: Files, schemas: Sequence[str], found: Mapping[str, Sequence[tuple[str, str]]]) -> str:
    """SQL for files of several schemas with names that differ in case alone, as DuckDB matches columns by name.

    Files are read in their order, those of one schema that stand together at once. Columns are called as in the first
    file; one that is not in all files, or not of one type, is null, as it cannot be used.
    """
    parts = []
    for schema, group in itertools.groupby(range(len(files.paths)), schemas.__getitem__):
        at = {column: f"c{n}" for n, column in enumerate(found[schema])}
        shared = [column if all(column in other for other in found.values()) else None for column in found[schemas[0]]]
        picked = [f"{at[column] if column else 'NULL'} AS c{n}" for n, column in enumerate(shared)]
        names = [name for name, _ in found[schema]]
        reader = _parquet_reader([files.paths[n] for n in group], names, name_files=True)
        parts.append(f"SELECT {', '.join([*picked, quoted(FILE)])} FROM {reader}")
    return f"({' UNION ALL '.join(parts)})"


def _parquet_names(path: str) -> list[str]:
    """The names of columns as they stand in a file, of which DuckDB changes some; none of a damaged file."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        names: list[str] = parquet.read_schema(utf8_path(path)).names
    except damages_of_parquet():
        return []  # what matters of the damage, DuckDB says
    return names


def damages_of_parquet() -> tuple[type[Exception], ...]:
    """What PyArrow ends in on a damaged Parquet file, which may promise more rows than there is memory."""
    import pyarrow as pa

    return (OSError, ValueError, MemoryError, pa.ArrowException)


def _names_files(files: Files) -> bool:
    return len(files.paths) > 1 or any(files.keys)


def _schemas(con: DuckDBPyConnection, files: Files) -> list[str]:
    """What tells the schemas of the files apart."""
    if len(files.paths) == 1:
        return [""]
    rows = con.execute(
        "SELECT file_name, md5(CAST(list((name, type, type_length, num_children, converted_type, scale, precision, "
        f"logical_type)) AS VARCHAR)) FROM parquet_schema({paths_sql(files.paths)}) GROUP BY file_name"
    ).fetchall()
    schemas = dict(rows)
    return [schemas[utf8_path(path)] for path in files.paths]


# CSV


class _Header(NamedTuple):
    """The first row of a CSV."""

    names: list[str]
    delimiter: str
    n_lines: int
    is_all: bool  # whether there is nothing below


def _open_csv(con: DuckDBPyConnection, files: Files, names: set[str], attempt: int) -> Source:
    """Every column as text.

    Nothing is left to DuckDB's sniffer: it would take "007" for 7, a row that begins with "#" for a comment
    and uneven first rows for a preface to skip. The header tells the delimiter; quoting is that of RFC 4180.
    Columns are named by position, for SQL names ignore case and header names do not.

    DuckDB loses all rows where a line break in the header is not of the kind that ends the lines, and fails on some
    line breaks in values. Python's parser reads those files. It is slower, but DuckDB without its parallel reader would
    end without an error at a quote that is not closed.
    """
    heads = _read_heads(files.paths)
    headers = [_csv_header(head, names) for head in heads]
    (header, delimiter, *_), *others = headers
    for name in header:
        if name in names and header.count(name) > 1:
            raise InputError(f"{heads[0].path}: the header has the column {name!r} {header.count(name)} times")
    for head, other in zip(heads[1:], others, strict=True):
        _check_header(head, other, headers[0], heads[0].path)
    found = {name: (f"c{n}", "VARCHAR") for n, name in enumerate(header)}
    filled = [head.path for head, own in zip(heads, headers, strict=True) if not own.is_all]
    if attempt or any(one.n_lines > 1 for one in headers):
        sql, n_rows = _copy_rows(con, files, headers[0], packed=heads[0].packed)
        return replace(_text_source(files, "csv", sql, found, filled), n_rows=n_rows)
    types = ", ".join(f"c{n}: 'VARCHAR'" for n in range(len(header)))
    options = (
        f"auto_detect=false, header=true, skip=0, comment='', delim={text_sql(delimiter)}, quote='\"', escape='\"', "
        f"{_compression(heads)}, columns={{{types}}}"
    )
    sql = _reader("read_csv", files.paths, options, name_files=_names_files(files))
    return _text_source(files, "csv", sql, found, filled)


def _copy_rows(con: DuckDBPyConnection, files: Files, header: _Header, *, packed: bool) -> tuple[str, dict[str, int]]:
    """Copy rows as Python reads them into a table; its name, and how many rows each file has."""
    table = quoted(f"rows of {utf8_path(files.path)}")
    columns = [*(f"c{n}" for n in range(len(header.names))), quoted(FILE)]
    con.execute(f"CREATE OR REPLACE TABLE {table} ({', '.join(f'{column} VARCHAR' for column in columns)})")
    n_rows = dict.fromkeys(map(utf8_path, files.paths), 0)
    for path in files.paths:
        for batch in read_batches(path, header.delimiter, len(header.names), packed=packed):
            con.register("batch of rows", batch)
            run(con, f'INSERT INTO {table} SELECT *, {text_sql(utf8_path(path))} FROM "batch of rows"')
            n_rows[utf8_path(path)] += len(batch)
    con.unregister("batch of rows")
    return table, n_rows


def _csv_header(head: _Head, wanted: set[str]) -> _Header:
    """The header as read by the delimiter that finds most of the wanted names, among equals most columns."""
    best: tuple[tuple[int, int], _Header] | None = None
    failure: csv.Error | None = None
    for delimiter in ",\t;|":
        stream = io.StringIO(head.text, newline="")
        rows = csv.reader(stream, delimiter=delimiter)
        try:
            names = next(rows, [])
        except csv.Error as error:  # by the wrong delimiter a header may be one field, longer than may be
            failure = error
            continue
        merit = (len(wanted.intersection(names)), len(names))
        if best is None or merit > best[0]:
            best = merit, _Header(names, delimiter, rows.line_num, not stream.read().strip())
    if best is None:
        assert failure is not None
        raise InputError(f"{head.path}: the header cannot be read as CSV: {reason_of_csv(failure)}") from failure
    if not best[1].names:
        raise InputError(f"{head.path}: the first line is empty; a header with the column names is wanted there")
    return best[1]


def _check_header(head: _Head, found: _Header, wanted: _Header, first: str) -> None:
    """Files that are read together have the same header."""
    (names, delimiter, *_), (first_names, first_delimiter, *_) = found, wanted
    if (names, delimiter) == (first_names, first_delimiter):
        return
    lacking = [name for name in first_names if name not in names]
    more = [name for name in names if name not in first_names]
    if lacking:
        what = f"no column {lacking[0]!r}{suggest_name(lacking[0], names)}"
    elif more:
        what = f"the column {more[0]!r} is too much"
    elif names != first_names:
        what = "the same columns in another order"
    else:
        what = f"columns separated by {delimiter!r}, not by {first_delimiter!r}"
    raise InputError(f"{head.path}: the header is not that of {first}: {what}")


# JSON lines


def _open_json(con: DuckDBPyConnection, files: Files, names: set[str]) -> Source:
    """Each column in the one type that all its values have; what is missing in a line is null."""
    heads = _read_heads(files.paths)
    wanted = sorted(names)
    sql = _json_sql(files, heads, wanted)
    kinds_sql = (f"list(DISTINCT {_json_kind(f'c{n}')})" for n in range(len(wanted)))
    kinds = one_row(con, f"SELECT {', '.join(kinds_sql)} FROM {sql}")
    found = dict.fromkeys(_json_keys(heads), ("NULL", "VARCHAR"))
    filled = [head.path for head in heads if head.first_line]
    source = _text_source(files, "jsonl", sql, found, filled)
    for n, (name, values) in enumerate(zip(wanted, kinds, strict=True)):
        having = {kind for kind in values or () if kind is not None}
        if having or name in found:
            found[name] = _json_column(con, source, f"c{n}", name, having)
    return _text_source(files, "jsonl", sql, found, filled)


def _json_keys(heads: Sequence[_Head]) -> list[str]:
    """The keys in the first line of each file."""
    keys: list[str] = []
    for head in heads:
        with contextlib.suppress(ValueError, RecursionError):
            line = json.loads(head.first_line)
            keys += line if isinstance(line, dict) else []
    return keys


def _json_sql(files: Files, heads: Sequence[_Head], names: Sequence[str]) -> str:
    """SQL for the values of keys as columns c0, c1, ... of JSON."""
    naming = _names_files(files)
    columns = [f"c{n}" for n in range(len(names))] + [quoted(FILE)] * naming
    if "" not in names and len({name.lower() for name in (*names, FILE)}) > len(names):
        types = ", ".join(f"{quoted(name)}: 'JSON'" for name in names)
        options = f"records=true, {_compression(heads)}, columns={{{types}}}"
        return f"{_reader('read_ndjson', files.paths, options, name_files=naming)} AS t({', '.join(columns)})"
    # DuckDB's columns ignore case: take the values out of whole objects
    objects = _reader("read_ndjson_objects", files.paths, _compression(heads), name_files=naming)
    keys = "json_keys(json)"
    row = (
        f"CASE WHEN json_type(json) <> 'OBJECT' THEN error('one object is wanted') "
        f"WHEN len(list_distinct({keys})) < len({keys}) THEN error('a key twice in an object') ELSE json END"
    )
    pointers = [name.replace("~", "~0").replace("/", "~1") for name in names]
    values = [f"json_extract(row, {text_sql('/' + pointer)}) AS c{n}" for n, pointer in enumerate(pointers)]
    picked = ", ".join(values + [quoted(FILE)] * naming)
    inner = ", ".join([f"{row} AS row"] + [quoted(FILE)] * naming)
    return f"(SELECT {picked} FROM (SELECT {inner} FROM {objects}))"


def _json_kind(value: str) -> str:
    """SQL for what a value is. An integer of up to 15 digits is exact as a float too, a long one is not."""
    text = f"CAST({value} AS VARCHAR)"
    return (
        f"CASE json_type({value}) WHEN 'VARCHAR' THEN 'text' WHEN 'BOOLEAN' THEN 'true or false' "
        f"WHEN 'OBJECT' THEN 'an object' WHEN 'ARRAY' THEN 'a list' ELSE CASE "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{1,15}}') THEN 'an integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]{{16,18}}') THEN 'a long integer' "
        f"WHEN regexp_full_match({text}, '-?[0-9]+') THEN 'a huge integer' "
        f"WHEN {value} IS NOT NULL THEN 'a decimal number' END END"
    )


JSON_TYPES = (  # the first that has all kinds of a column
    ({"text"}, "VARCHAR"),
    ({"true or false"}, "BOOLEAN"),
    ({"an integer", "a long integer"}, "BIGINT"),
    ({"an integer", "a long integer", "a huge integer"}, "HUGEINT"),
    ({"an integer", "a decimal number"}, "DOUBLE"),
)


def _json_column(con: DuckDBPyConnection, source: Source, value: str, name: str, kinds: set[str]) -> tuple[str, str]:
    """The SQL and the type of a column with values of these kinds."""
    type_ = next((type_ for known, type_ in JSON_TYPES if kinds <= known), None)
    if type_ is None:
        _refuse_kinds(con, source, value, name)
    return f"CAST({value} ->> '$' AS {type_})", str(type_)


def _refuse_kinds(con: DuckDBPyConnection, source: Source, value: str, name: str) -> None:
    """Where a column with nested values, or with values of several kinds, first has each."""
    rows = run(
        con,
        f"SELECT kind, min(position) FROM (SELECT {_json_kind(value)} AS kind, row_number() OVER () - 1 AS position "
        f"FROM {source.sql}) WHERE kind IS NOT NULL GROUP BY kind ORDER BY 2",
    ).fetchall()
    nested = [(kind, row) for kind, row in rows if kind in ("an object", "a list")]
    found = ", ".join(f"{kind} in {source.place(row)}" for kind, row in nested[:1] or rows)
    wanted = "plain values are wanted" if nested else "values of one kind are wanted"
    raise InputTypeError(f"{source.files.path}: column {name!r} holds {found}: {wanted}")


# TREC


def _open_trec(files: Files, names: Mapping[str, str]) -> Source:
    """A run (qid Q0 docid rank score tag) or judgements (qid iter docid rel), separated by spaces and tabs.

    As in trec_eval, a tag may have further words, and lines that begin with # are comments.
    """
    heads = _read_heads(files.paths)
    counts = [len(head.trec_fields) for head in heads]
    for head, count in zip(heads, counts, strict=True):
        if count not in TREC_ROLES:
            raise InputError(
                f"{head.path}: the first line has {count} columns; "
                "a TREC run has 6 (qid Q0 docid rank score tag), TREC judgements have 4 (qid iter docid rel)"
            )
        if count != counts[0]:
            raise InputError(f"{head.path}: {count} columns, but {counts[0]} in {heads[0].path}")
    options = (
        "auto_detect=false, header=false, comment='', delim='', quote='', escape='', strict_mode=false, "
        f"{_compression(heads)}, columns={{line: 'VARCHAR'}}"
    )
    naming = f", {quoted(FILE)}" if _names_files(files) else ""
    lines = _reader("read_csv", files.paths, options, name_files=_names_files(files))
    blank = "' \t\r'"
    sql = (
        f"(SELECT string_split_regex(trim(line, {blank}), '[ \t]+') AS fields{naming} FROM {lines} "
        f"WHERE trim(line, {blank}) <> '' AND NOT starts_with(trim(line, {blank}), {TREC_COMMENT!r}))"
    )
    fits = f"len(fields) {'>=' if counts[0] == TREC_RUN else '='} {counts[0]}"
    found = {
        names[role]: (f"CASE WHEN {fits} THEN fields[{n}] ELSE error('columns') END", "VARCHAR")
        for n, role in enumerate(TREC_ROLES[counts[0]], 1)
        if role is not None and role in names
    }
    return _text_source(files, "trec", sql, found, [head.path for head in heads if head.first_line])


# Errors


def reason_of(files: Files, format_: str, error: Exception) -> str:
    """Why a file cannot be read: DuckDB's reason or, where that names no line or a wrong one, our own."""
    if format_ == "jsonl":
        return _json_reason(files.paths[0]) or first_sentence(error)
    if format_ == "trec":
        return _trec_reason(files.paths[0]) or first_sentence(error)
    return first_sentence(error)


def _json_reason(path: str) -> str:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=_object)
        except RecursionError:
            return f"line {number}: nested too deep"
        except ValueError as error:
            what = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(": line")[0]
            return f"line {number}: {what}"
        if line.startswith(codecs.BOM_UTF8):
            return f"line {number}: a byte order mark, which JSON has not: write the file without it"
        if not _is_text(value):
            return f"line {number}: an unpaired surrogate (\\ud800 to \\udfff), which is no character"
        if not isinstance(value, dict):
            return f"line {number}: one object is wanted, as in {{'user_id': 1, 'item_id': 2}}"
    return ""


def _is_text(value: Any) -> bool:
    """Whether all strings in a value of JSON can be written as UTF-8."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a key twice in an object with the keys {', '.join(repr(name) for name, _ in pairs)}")
    return found


def _trec_reason(path: str) -> str:
    wanted = 0
    for number, line in enumerate(_lines(path), 1):
        if line.lstrip().startswith(TREC_COMMENT.encode()):
            continue
        found = len(_fields(line.decode(errors="replace")))
        wanted = wanted or min(found, TREC_RUN)
        if found not in (0, wanted) and not found > wanted == TREC_RUN:
            return f"line {number}: {wanted} columns expected, {found} found"
    return ""

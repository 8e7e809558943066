"""Files that fit in memory: PyArrow reads their columns into tables, which take the way of data frames.

A fault, and whatever PyArrow may take in another way than DuckDB, is left to DuckDB, which says what is wrong and in
which row (fastrec.files.tables).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from fastrec.exceptions import InputError
from fastrec.files.columns import DoubtError
from fastrec.files.formats.csv import read_header
from fastrec.files.formats.parquet import damages_of_parquet
from fastrec.files.formats.text import chunks, parse_csv
from fastrec.files.opened import Opened
from fastrec.files.paths import utf8_path
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.inputs.strings import bytes_of, strings_of
from fastrec.inputs.values import arrow_of, fixed_width, values_of
from fastrec.runtime.extras import require
from fastrec.runtime.threads import run_in_threads

__all__ = ["TableInMemory", "is_readable", "read_tables"]

Array = np.ndarray[Any, Any]
SHARED_ROWS = 1 << 11  # of a row group, on average: between smaller ones, threads would wait
ROWS_AT_ONCE = 1 << 16  # larger pieces take new memory from the system each time
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
STRINGS = ("string", "large_string", "string_view")
NUMBERS = ("float", "double", *INTEGERS)
WIDEST = 8  # bytes of a value
LIKE_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*")  # a string that DuckDB may take for a number


class TableInMemory(NamedTuple):
    """The columns of a table."""

    rows: Any  # pyarrow.Table, columns named as in the files
    names: Mapping[str, str]  # {role: column}
    listed: tuple[str, ...]  # all columns of the first file

    def column(self, role: str) -> Any:
        """Return the column of a role."""
        return self.rows.column(self.names[role])

    def is_string(self, role: str) -> bool:
        """Return whether a column holds strings."""
        return str(self.column(role).type) in STRINGS


def is_readable(opened: Mapping[str, Opened]) -> bool:
    """Return whether PyArrow may read the files of each table."""
    return all(side.format.name in READERS and not side.may_read_folders for side in opened.values())


def read_tables(opened: Mapping[str, Opened], n_threads: int, n_bytes: int) -> dict[str, TableInMemory] | None:
    """Read the files of each table, of at most `n_bytes` each; return None if DuckDB must read them."""
    try:
        tables = {table: READERS[side.format.name](side, n_threads, n_bytes) for table, side in opened.items()}
        _check_tables(list(tables.values()))
    except (DoubtError, InputError):
        return None
    return tables


def _is_id(role: str) -> bool:
    return role == "item" or role.startswith(("user", "by", "row_by"))


def _check_tables(tables: list[TableInMemory]) -> None:
    """Raise DoubtError for a table without rows, ids of a role of two kinds, which cannot match, and negative items."""
    for role in {role for table in tables for role in table.names if _is_id(role)}:
        if len({table.is_string(role) for table in tables if role in table.names}) > 1:
            raise DoubtError
    if not all(len(table.rows) for table in tables):
        raise DoubtError
    for table in (table for table in tables if "item" in table.names and not table.is_string("item")):
        if any(values_of(chunk).min() < 0 for chunk in table.column("item").chunks if len(chunk)):
            raise DoubtError


def _with_folders(side: Opened, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the first file, and those in the names of its folders."""
    return tuple(dict.fromkeys((*names, *map(unquote, side.files.keys[0]))))


# Parquet


class _RowGroup(NamedTuple):
    """A row group of a file."""

    path: str
    metadata: Any  # of the file
    nth: int
    first: int  # of its rows among those of all files


def _read_parquet(side: Opened, n_threads: int, n_bytes: int) -> TableInMemory:
    """Read files that all have the wanted columns, of the same usual types."""
    pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
    listed: list[str] = []
    wanted: dict[str, tuple[str, Any]] = {}
    checked, groups, n_rows = None, [], 0
    try:
        for path in map(utf8_path, side.files.paths):
            metadata = parquet.read_metadata(pa.OSFile(path))
            schema = metadata.schema.to_arrow_schema()
            if schema != checked:
                own = _usual_columns(side, path, metadata, schema)
                wanted, listed, checked = wanted or own, listed or schema.names, schema
                if own != wanted:
                    raise DoubtError
            before = n_rows
            for nth in range(metadata.num_row_groups):
                groups.append(_RowGroup(path, metadata, nth, n_rows))
                n_rows += metadata.row_group(nth).num_rows
            if n_rows != before + metadata.num_rows:
                raise DoubtError  # PyArrow reads no more rows than a row group claims
        columns = {role: _Column(kind, n_rows) for role, (_, kind) in wanted.items()}

        def read(at: int) -> None:
            group = groups[at]
            with parquet.ParquetFile(pa.OSFile(group.path), metadata=group.metadata, pre_buffer=False) as file:
                done, names = group.first, [name for name, _ in wanted.values()]
                for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group.nth], columns=names, use_threads=False):
                    for name, column in zip(names, columns.values(), strict=True):
                        column.put(done, batch.column(name))
                    if sum(column.n_bytes for column in columns.values()) > n_bytes:
                        raise DoubtError
                    done += len(batch)
            if done != group.first + group.metadata.row_group(group.nth).num_rows:
                raise DoubtError

        n_threads = n_threads if n_rows >= SHARED_ROWS * len(groups) else 1
        run_in_threads(read, range(len(groups)), n_threads)
        names = {role: name for role, (name, _) in wanted.items()}
        whole = pa.table({names[role]: column.whole() for role, column in columns.items()})
        return TableInMemory(whole, names, _with_folders(side, listed))
    except damages_of_parquet() as error:
        raise DoubtError from error


def _usual_columns(side: Opened, path: str, metadata: Any, schema: Any) -> dict[str, tuple[str, Any]]:
    """Return {role: (column, type)} of a file; raise DoubtError for types that are converted."""
    leaves = [metadata.schema.column(at).path for at in range(len(metadata.schema))]
    found = {}
    for role, name in side.roles(path, schema.names).items():
        if leaves.count(name) != 1:
            raise DoubtError  # PyArrow reads the column "a.b" and the field b of a column a by the same name
        kind = schema.field(name).type
        usual = (*INTEGERS, *(STRINGS if _is_id(role) else () if role == "rank" else (*NUMBERS, "bool")))
        if str(kind) not in usual:
            raise DoubtError
        found[role] = name, kind
    return found


class _Column:
    """A column that threads write in pieces: numbers to one array, strings as they are read."""

    def __init__(self, kind: Any, n_rows: int) -> None:
        self._kind = kind
        width = np.int8 if str(kind) == "bool" else fixed_width(kind)
        self._values: Array | None = None if width is None else np.empty(n_rows, width)
        self.n_bytes = 0 if self._values is None else self._values.nbytes
        self._strings: dict[int, Any] = {}  # first row -> strings

    def put(self, first: int, chunk: Any) -> None:
        """Write a chunk of values from a row on; raise DoubtError for nulls."""
        if chunk.null_count:
            raise DoubtError
        if self._values is None:
            self._strings[first] = chunk
            self.n_bytes += bytes_of(chunk)
        else:
            self._values[first : first + len(chunk)] = values_of(chunk)

    def whole(self) -> Any:
        """Return all values as an Arrow array or column."""
        import pyarrow as pa

        if self._values is not None:
            return arrow_of(self._values)
        return pa.chunked_array([self._strings[first] for first in sorted(self._strings)], self._kind)


# Delimited text


def _read_text(side: Opened, n_threads: int, n_bytes: int) -> TableInMemory:
    """Read CSV files of one form; the strings of ids are integers if all of them spell integers."""
    pa = require("pyarrow", "cli", what="reading files")
    first, tables = read_header(side.files.paths[0], side.columns.names), []
    for path in side.files.paths:
        header = read_header(path, side.columns.names)
        names = side.roles(path, header.names)
        if (header.names, header.delimiter) != (first.names, first.delimiter):
            raise DoubtError
        if len({*header.names}) < len(header.names) or len({*names.values()}) < len(names):
            raise DoubtError
        kinds = {header.names.index(name): _kind_of(role) for role, name in names.items()}
        try:
            for chunk in chunks(path, header.start, header.delimiter):
                if "rank" in names and (b"0x" in chunk or b"0X" in chunk):
                    raise DoubtError  # PyArrow takes 0x7 for an integer
                rows = parse_csv(chunk, header.delimiter, len(header.names), kinds, use_threads=n_threads > 1)
                n_bytes -= WIDEST * len(names) * len(rows)
                if n_bytes < 0 or any(column.null_count for column in rows.columns):
                    raise DoubtError
                tables.append(rows.rename_columns(list(names)))
        except ValueError as error:  # of which pa.ArrowInvalid is one
            raise DoubtError from error
    if not tables:
        raise DoubtError
    whole = pa.concat_tables(tables)
    roles = list(names)
    columns = run_in_threads(lambda at: _converted(roles[at], whole.column(at)), range(len(names)), n_threads)
    return TableInMemory(pa.table(columns, list(names.values())), names, _with_folders(side, first.names))


def _converted(role: str, column: Any) -> Any:
    """Return a column of text as it is evaluated."""
    if _is_id(role):
        return _integers_of(column)
    if role != "rank":
        _check_exact(column)
    return column


def _kind_of(role: str) -> Any:
    import pyarrow as pa

    return pa.string() if _is_id(role) else pa.int64() if role == "rank" else pa.float64()


def _integers_of(strings: Any) -> Any:
    """Return ids as integers if all of them are written so, without spaces or leading zeros; else as they are.

    Raise DoubtError if the first one may be a number.
    """
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowInvalid):
        integers = [values_of(chunk.cast(pa.int64())) for chunk in strings.chunks]
        if not any(map(_has_leading_zeros, strings.chunks)):
            return arrow_of(np.concatenate(integers))
    if LIKE_NUMBER.fullmatch(strings[0].as_py()):
        raise DoubtError
    return strings


def _has_leading_zeros(chunk: Any) -> bool:
    """Return whether one of the strings, which spell integers, has a zero that none would write: as in 07, -0, 0x7."""
    offsets, data = strings_of(chunk)
    is_negative = data[offsets[:-1]] == ord("-")
    is_zero = data[offsets[:-1] + is_negative] == ord("0")
    return bool((is_zero & (np.diff(offsets) > 1)).any())


def _check_exact(column: Any) -> None:
    """Raise DoubtError for NaN, and for numbers so large that a float may round an integer."""
    for values in map(values_of, column.chunks):
        if len(values) and not (values.min() > -MAX_EXACT_INTEGER and values.max() < MAX_EXACT_INTEGER):
            raise DoubtError


READERS: dict[str, Callable[[Opened, int, int], TableInMemory]] = {"parquet": _read_parquet, "csv": _read_text}

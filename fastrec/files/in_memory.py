"""Parquet files that fit in memory: threads read row groups into flat arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.files.columns import TooLargeError
from fastrec.files.formats.parquet import PARQUET, ROWS_AT_ONCE, rows_at_once
from fastrec.files.paths import utf8_path
from fastrec.files.reader import TableReader, is_id
from fastrec.inputs.strings import bytes_of
from fastrec.inputs.values import arrow_of, fixed_width, values_of
from fastrec.runtime.extras import require
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
Table = Any  # pyarrow.Table
MOST_ROWS = 1 << 20  # of a piece: between smaller ones, threads wait for the one that loads kernels, 5 ms each time
MOST_BYTES = 1 << 25  # of the strings of a piece
SHARED_ROWS = 1 << 11  # of a row group, on average: between smaller ones, threads would wait
STRINGS = ("string", "large_string")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


class _OtherRowsError(Exception):
    """Rows that take the usual way: with nulls, or damaged."""


class _RowGroup(NamedTuple):
    """A row group of a file."""

    path: str
    metadata: Any  # of the file
    nth: int
    first: int  # of its rows among those of all files


def read_parquet(reader: TableReader, n_threads: int, n_bytes: int) -> Table | None:
    """Return all rows of usual types without nulls, None for others; raise TooLargeError past `n_bytes`."""
    if reader.format is not PARQUET or not reader.has_one_schema or not _are_usual(reader):
        return None
    pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
    groups, n_rows = [], 0
    try:
        for path, head in zip(reader.opened.files.paths, reader.heads, strict=True):
            before = n_rows
            for nth in range(head.metadata.num_row_groups):
                groups.append(_RowGroup(utf8_path(path), head.metadata, nth, n_rows))
                n_rows += head.metadata.row_group(nth).num_rows
            if n_rows != before + head.metadata.num_rows:
                return None
        columns = {name: _Column(kind, n_rows) for name, kind in reader.schema.items()}
        names, lost = list(columns), set[int]()  # the groups with other rows than they say
        strings = [name for name, column in columns.items() if column.is_string]

        def read(at: int) -> None:
            group = groups[at]
            n_here = group.metadata.row_group(group.nth).num_rows
            with parquet.ParquetFile(pa.OSFile(group.path), metadata=group.metadata, pre_buffer=False) as file:
                done = group.first
                rows = rows_at_once(file, strings if n_here > ROWS_AT_ONCE else [], MOST_ROWS, MOST_BYTES)
                for batch in file.iter_batches(rows, row_groups=[group.nth], columns=names, use_threads=False):
                    for name, column in columns.items():
                        column.put(done, batch.column(name))
                    if sum(column.n_bytes for column in columns.values()) > n_bytes:
                        raise TooLargeError(reader.path, ": the rows do not fit in memory")
                    done += len(batch)
            lost.update({at} if done != group.first + n_here else ())

        n_threads = n_threads if n_rows >= SHARED_ROWS * len(groups) else 1
        run_in_threads(read, range(len(groups)), n_threads)
        return None if lost else pa.table({name: column.whole() for name, column in columns.items()})
    except (_OtherRowsError, *PARQUET.damages()):  # the usual way says what is wrong
        return None


def _are_usual(reader: TableReader) -> bool:
    """Return whether all columns have types that an array holds, or are strings of ids."""
    for role, name in reader.names.items():
        usual = (
            (*INTEGERS, *STRINGS)
            if is_id(role)
            else (*INTEGERS, "float", "double", *(() if role == "rank" else ("bool",)))
        )
        if str(reader.heads[0].schema.field(name).type) not in usual:
            return False
    return True


class _Column:
    """A column that threads write in pieces: numbers to one array, strings as they are read."""

    def __init__(self, kind: Any, n_rows: int) -> None:
        self._kind = kind
        width = np.int8 if str(kind) == "bool" else fixed_width(kind)
        self._values: Array | None = None if width is None else np.empty(n_rows, width)
        self.is_string = self._values is None
        self.n_bytes = 0 if self._values is None else self._values.nbytes
        self._strings: dict[int, Any] = {}  # first row -> strings

    def put(self, first: int, chunk: Any) -> None:
        """Write a chunk of values from a row on; raise for nulls."""
        if chunk.null_count:
            raise _OtherRowsError
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

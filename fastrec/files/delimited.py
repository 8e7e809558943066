"""CSV read row by row with Python's own parser, for files that DuckDB's reader cannot read.

DuckDB guesses where rows begin in the middle of a file, and guesses the line ending from the first line. Line breaks
in quotes mislead both guesses; Python's parser does not guess.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator
from typing import Any

from fastrec.exceptions import InputError
from fastrec.files.formats.foreign import reason_of_csv
from fastrec.files.packing import unpacked

__all__ = ["read_batches"]

BATCH_ROWS = 1 << 13


def read_batches(path: str, delimiter: str, n_columns: int) -> Iterator[Any]:
    """Yield the rows below the header as PyArrow tables with string columns c0, c1, ...; an empty value is null."""
    import pyarrow as pa

    rows = _rows(path, delimiter, n_columns)
    while chunk := list(itertools.islice(rows, BATCH_ROWS)):
        columns = [pa.array([value or None for value in column], pa.string()) for column in zip(*chunk, strict=True)]
        yield pa.Table.from_arrays(columns, names=[f"c{n}" for n in range(n_columns)])


def _rows(path: str, delimiter: str, n_columns: int) -> Iterator[list[str]]:
    """Yield the rows below the header, without blank ones; an error names the line where the wrong row begins."""
    with unpacked(path) as (stream, _), io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        line = 1
        try:
            next(rows, None)
            line = rows.line_num + 1
            for row in rows:
                if row:
                    yield _checked(row, n_columns)
                line = rows.line_num + 1
        except csv.Error as error:
            raise InputError(path, f": cannot be read as CSV: line {line}: {reason_of_csv(error)}") from error
        except UnicodeDecodeError as error:
            line = _first_undecodable(path)
            raise InputError(path, f": cannot be read as CSV: line {line}: not UTF-8") from error


def _checked(row: list[str], n_columns: int) -> list[str]:
    if len(row) != n_columns:
        raise csv.Error(f"{n_columns} columns expected, {len(row)} found")
    return row


def _first_undecodable(path: str) -> int:
    """Return the number of the first line that is not UTF-8, from 1."""
    with unpacked(path) as (stream, _), io.TextIOWrapper(stream, "latin-1", newline="") as text:
        for number, line in enumerate(text, 1):
            try:
                line.encode("latin-1").decode()
            except UnicodeDecodeError:
                return number
    return number

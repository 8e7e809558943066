"""CSV files, read by PyArrow; Python's parser reads those with stray quotes, and says what is wrong."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from fastrec.exceptions import InputError
from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FileHead
from fastrec.files.formats.foreign import reason_of_csv
from fastrec.files.formats.heads import Head, lines_of, read_head
from fastrec.files.formats.text import StrayQuoteError, TextFormat, chunks, parse_csv
from fastrec.files.packing import unpacked
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.runtime.extras import require

__all__ = ["CSV", "Header", "read_header"]

ROWS_AT_ONCE = 1 << 13  # of Python's parser


class Header(NamedTuple):
    """The first row of a CSV, and how its values are written."""

    names: list[str]
    delimiter: str
    start: int  # bytes before the first row
    is_all: bool  # whether no rows follow


def read_header(path: str, wanted: Collection[str]) -> Header:
    """Read the header with the delimiter that gives most of the wanted names or, if equal, most columns."""
    return _header_of(read_head(path), wanted)


def _header_of(head: Head, wanted: Collection[str]) -> Header:
    best: tuple[tuple[int, int], Header] | None = None
    failure: csv.Error | None = None
    stream = io.StringIO(head.text, newline="")
    for delimiter in ",\t;|":
        stream.seek(0)
        try:
            names = next(csv.reader(stream, delimiter=delimiter), [])
        except csv.Error as error:  # with the wrong delimiter the header may be one field that is too long
            failure = error
            continue
        merit = (len(set(wanted).intersection(names)), len(names))
        if best is None or merit > best[0]:
            start = head.mark + len(head.text[: stream.tell()].encode())
            best = merit, Header(names, delimiter, start, not any(map(str.strip, stream)))
    if best is None:
        assert failure is not None
        raise InputError(head.path, f": the header cannot be read as CSV: {reason_of_csv(failure)}") from failure
    if not best[1].names:
        raise InputError(head.path, ": the first line is empty; expected a header with the column names")
    return best[1]


def _rows(path: str, header: Header) -> Iterator[list[str]]:
    """Yield the rows that Python's parser finds; raise ValueError with the line where a wrong row begins."""
    line = 1
    with unpacked(path) as (stream, _), io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
        rows = csv.reader(text, delimiter=header.delimiter, strict=True)
        try:
            next(rows, None)
            line = rows.line_num + 1
            for row in rows:
                if row:
                    yield _checked(row, len(header.names))
                line = rows.line_num + 1
        except csv.Error as error:
            raise ValueError(f"line {line}: {reason_of_csv(error)}") from error


def _checked(row: list[str], n_columns: int) -> list[str]:
    if len(row) != n_columns:
        raise csv.Error(f"{n_columns} columns expected, {len(row)} found")
    return row


def _parse(chunk: bytes, header: Header, wanted: Mapping[int, Any]) -> Any:
    """Return rows as a table: with numbers if all are plain, else with their strings."""
    import pyarrow as pa

    def parsed(kinds: Mapping[int, Any]) -> Any:
        return parse_csv(chunk, header.delimiter, len(header.names), kinds)

    may_be_hexadecimal = b"0x" in chunk or b"0X" in chunk  # which PyArrow takes for integers
    if not may_be_hexadecimal or pa.int64() not in wanted.values():
        with contextlib.suppress(pa.ArrowInvalid):
            rows = parsed(wanted)
            if all(map(_are_exact, rows.columns)):
                return rows
    return parsed(dict.fromkeys(wanted, pa.string()))


def _are_exact(column: Any) -> bool:
    """Return whether no number is so large that a double may have rounded an integer."""
    from pyarrow import compute

    if str(column.type) != "double":
        return True
    most = compute.max(compute.abs(column)).as_py()
    return most is None or most < MAX_EXACT_INTEGER


class _Csv(TextFormat):
    """CSV, which is any text that no other format recognises. `wanted` are the columns that may be read."""

    name, title = "csv", "CSV"
    endings = (".csv", ".tsv", ".txt")

    def __init__(self, wanted: Collection[str] = ()) -> None:
        self._wanted = wanted

    def bound(self, columns: FileColumns) -> _Csv:
        return _Csv(columns.names)

    def head(self, path: str) -> FileHead:
        pa = require("pyarrow", "cli", what="reading files")
        header = read_header(path, self._wanted)
        schema = pa.schema([pa.field(name, pa.string()) for name in header.names])
        return FileHead(schema, 0 if header.is_all else None)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        import pyarrow as pa

        header, n_rows = read_header(path, self._wanted), 0
        try:
            for chunk in chunks(path, header.start, header.delimiter):
                rows = _parse(chunk, header, wanted)
                yield from rows.to_batches()
                n_rows += len(rows)
        except StrayQuoteError:
            others = itertools.islice(_rows(path, header), n_rows, None)
            while some := list(itertools.islice(others, ROWS_AT_ONCE)):
                values = list(zip(*some, strict=True))
                columns = [pa.array([value or None for value in values[nth]], pa.string()) for nth in wanted]
                yield pa.RecordBatch.from_arrays(columns, names=[f"c{nth}" for nth in wanted])

    def reason(self, path: str) -> str:
        try:
            for _ in _rows(path, read_header(path, self._wanted)):
                pass
        except InputError:  # the file is damaged
            raise
        except UnicodeDecodeError:
            return f"line {_first_undecodable(path)}: not UTF-8"
        except ValueError as error:
            return str(error)
        return ""


def _first_undecodable(path: str) -> int:
    """Return the number of the first line that is not UTF-8, from 1."""
    return next(number for number, line in enumerate(lines_of(path), 1) if not _is_text(line))


def _is_text(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


CSV = _Csv()

"""CSV files, read by PyArrow; Python's parser reads those with stray quotes, and says what is wrong."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fastrec.checks import counted
from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FileHead
from fastrec.files.formats.dialect import QUOTE, Dialect, Header, dialect_of, parser_of, read_header
from fastrec.files.formats.foreign import reason_of_csv
from fastrec.files.formats.text import StrayQuoteError, TextFormat, chunks
from fastrec.files.packing import unpacked
from fastrec.files.text_values import are_exact
from fastrec.runtime.extras import require

ROWS_AT_ONCE = 1 << 13  # of Python's parser
AS_SHOWN = Dialect()


def _checked(row: list[str], n_columns: int) -> list[str]:
    if len(row) != n_columns:
        raise csv.Error(f"{n_columns} columns expected, {len(row)} found")
    return row


def _parse(chunk: bytes, header: Header, wanted: Mapping[int, Any], n_threads: int) -> Any:
    """Return rows as a table: with numbers if all are plain, else with their strings."""
    import pyarrow as pa

    may_be_hexadecimal = b"0x" in chunk or b"0X" in chunk  # which PyArrow takes for integers
    if not may_be_hexadecimal or pa.int64() not in wanted.values():
        with contextlib.suppress(pa.ArrowInvalid):
            rows = _parse_as(chunk, header, wanted, n_threads)
            if are_exact(rows.columns):
                return rows
    strings = _parse_as(chunk, header, dict.fromkeys(wanted, pa.string()), n_threads)
    return pa.table(
        [_with_points(own, header, kind) for own, kind in zip(strings.columns, wanted.values(), strict=True)],
        strings.column_names,
    )


def _parse_as(text: bytes, header: Header, kinds: Mapping[int, Any], n_threads: int) -> Any:
    """Return the columns at some positions of rows of CSV as a table; `kinds` are {position: type}. Empty: null."""
    import pyarrow as pa
    from pyarrow import csv

    names = [f"c{at}" for at in range(len(header.names))]
    # PyArrow drops a byte order mark that begins a text, here a value; it skips a blank line
    text = b"\n" + text if text.startswith(b"\xef\xbb\xbf") else text
    return csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(column_names=names, use_threads=n_threads > 1),
        csv.ParseOptions(delimiter=header.delimiter, quote_char=header.quote or False, newlines_in_values=b'"' in text),
        csv.ConvertOptions(
            column_types={names[at]: kind for at, kind in kinds.items()},
            include_columns=[names[at] for at in kinds],
            null_values=[""],
            strings_can_be_null=True,
            decimal_point=header.decimal,
        ),
    )


def _with_points(strings: Any, header: Header, kind: Any) -> Any:
    """Return strings of numbers with decimal points; raise ValueError where a comma is decimal and one has a point."""
    from pyarrow import compute, types

    if header.decimal == "." or types.is_string(kind):
        return strings
    having = strings.filter(compute.match_substring(strings, "."))
    if len(having):
        found = having[0].as_py()
        mend = "write it without, or pass csv={'decimal': '.'} (--decimal)"
        raise ValueError(f"{found!r} has a point, but commas are decimal: {mend}")
    return compute.replace_substring(strings, ",", ".")


class _Csv(TextFormat):
    """CSV, which is any text that no other format recognises. `wanted` are the columns that may be read."""

    name, title = "csv", "CSV"
    endings = (".csv", ".tsv", ".txt")
    mend = ": csv={'encoding': ...} (--encoding) names another encoding"

    def __init__(self, wanted: Collection[str] = (), dialect: Dialect = AS_SHOWN, n_threads: int = 1) -> None:
        self._wanted, self._dialect, self._n_threads = wanted, dialect, n_threads
        self.encoding = dialect.encoding or ""
        self.remarks: list[str] = []

    def bound(self, columns: FileColumns, n_threads: int) -> _Csv:
        return _Csv(columns.names, self._dialect, n_threads)

    def head(self, path: str) -> FileHead:
        pa = require("pyarrow", "cli", what="reading files")
        header = self._header(path)
        schema = pa.schema([pa.field(name, pa.string()) for name in header.names])
        return FileHead(schema, 0 if header.is_all else None)

    def _header(self, path: str) -> Header:
        return read_header(path, self._wanted, self._dialect)

    def rows(self, path: str) -> Iterator[list[str]]:
        header, line = self._header(path), 1
        with unpacked(path, self.encoding) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
            rows = parser_of(text, header)
            try:
                next(rows, None)
                line = header.n_before + rows.line_num + 1
                for row in rows:
                    if row:
                        yield _checked(row, len(header.names))
                    line = header.n_before + rows.line_num + 1
            except csv.Error as error:
                raise ValueError(f"line {line}: {reason_of_csv(error)}") from error

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        import pyarrow as pa

        header, n_rows, n_joined = self._header(path), 0, 0
        by_python = header.escape is not None or header.quote not in ("", QUOTE)
        try:
            delimiter = header.delimiter if header.quote else ""
            for chunk in () if by_python else chunks(path, header.start, delimiter, self.encoding):
                rows = _parse(chunk, header, wanted, self._n_threads)
                yield from rows.combine_chunks().to_batches()  # many small ones would wait for other threads
                n_rows += len(rows)
                if delimiter == "\t" and QUOTE.encode() in chunk:
                    n_joined += sum(map(bool, chunk.splitlines())) - len(rows)
        except StrayQuoteError:
            by_python = True
        others = itertools.islice(self.rows(path), n_rows, None) if by_python else iter(())
        while some := list(itertools.islice(others, ROWS_AT_ONCE)):
            values = list(zip(*some, strict=True))
            texts = [pa.array([value or None for value in values[nth]], pa.string()) for nth in wanted]
            columns = [_with_points(own, header, kind) for own, kind in zip(texts, wanted.values(), strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=[f"c{nth}" for nth in wanted])
        if n_joined:
            mend = "if quotes are characters like others, pass csv={'quote': ''} (--quote '')"
            remark = f"{path}: quotes hold {counted(n_joined, 'line break')}, which is rare where tabs separate: {mend}"
            self.remarks += [remark] if remark not in self.remarks else []


def csv_of(options: Any) -> _Csv:
    """Return the format of CSV files as the argument `csv` says."""
    return _Csv((), dialect_of(options))


CSV = _Csv()

"""CSV files, read by PyArrow; Python's parser reads those with stray quotes, and says what is wrong."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import itertools
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fastrec.checks import counted
from fastrec.exceptions import InputError
from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FileHead
from fastrec.files.formats.dialect import QUOTE, Dialect, Header, dialect_of, parser_of, read_header
from fastrec.files.formats.foreign import reason_of_csv
from fastrec.files.formats.heads import lines_of
from fastrec.files.formats.text import TextFormat
from fastrec.files.packing import unpacked
from fastrec.files.text_values import Spellings
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.runtime.extras import require

__all__ = ["CSV", "csv_of"]

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 13  # of Python's parser
BLOCK_BYTES = 1 << 20  # of a text; PyArrow reads no longer rows
SAMPLED_ROWS = 1 << 10
IN_INTEGERS = np.array([chr(code) in "0123456789xX" for code in range(256)])
AS_SHOWN = Dialect()


def _rows(path: str, header: Header, encoding: str) -> Iterator[list[str]]:
    """Yield the rows that Python's parser finds; raise ValueError with the line where a wrong row begins."""
    line = 1
    with unpacked(path, encoding) as stream, io.TextIOWrapper(stream, "utf-8-sig", newline="") as text:
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


def _checked(row: list[str], n_columns: int) -> list[str]:
    if len(row) != n_columns:
        raise csv.Error(f"{n_columns} columns expected, {len(row)} found")
    return row


class _NotPlainError(ValueError):
    """A text to read again as strings: PyArrow would take other values for numbers, or quotes come late."""


class _StrayQuoteError(ValueError):
    """A text with a quote that is not around a whole value, which Python's parser reads."""


class _CheckedText:
    """The rows of a CSV, checked as PyArrow reads them."""

    closed = False

    def __init__(self, stream: Any, header: Header, *, may_have_quotes: bool, has_integers: bool) -> None:
        self._stream, self._delimiter, self._quote = stream, ord(header.delimiter), header.quote.encode()
        self._may_have_quotes, self._has_integers = may_have_quotes, has_integers
        self._lock = threading.Lock()  # PyArrow reads in a thread, also when nobody waits for it
        self._tail, self._in_quotes, self.has_quotes = b"\n\n\n", False, False
        stream.read(header.start)

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes; raise for a quote or an integer that PyArrow reads in another way."""
        with self._lock:
            block: bytes = b"" if self.closed else self._stream.read(n_bytes)
        is_first = self._tail == b"\n\n\n"
        # the bytes before are seen again, as those after a quote or a zero matter
        text, self._tail = self._tail + (block or b"\n"), (self._tail + block)[-3:]
        data = np.frombuffer(text, np.uint8)
        has_quotes = bool(self._quote) and self._quote in text
        self.has_quotes |= has_quotes
        if has_quotes and not self._may_have_quotes:
            raise _NotPlainError
        is_end = (data == self._delimiter) | (data == ord("\n")) | (data == ord("\r")) | (data == ord(QUOTE))
        if has_quotes:
            self._check_quotes(data, is_end)
        if not block and self._in_quotes:
            raise _StrayQuoteError
        if self._has_integers and _has_odd_integers(text, data, is_end):
            raise _NotPlainError
        # PyArrow drops a byte order mark that begins a text, here a value; it skips a blank line
        return b"\n" + block if is_first and block.startswith(codecs.BOM_UTF8) else block

    def _check_quotes(self, data: Array, is_end: Array) -> None:
        """Raise unless each quote begins or ends a value, or is one of two in a value."""
        quotes = np.flatnonzero(data[2:-1] == ord(QUOTE)) + 2
        opening, closing = quotes[int(self._in_quotes) :: 2], quotes[1 - int(self._in_quotes) :: 2]
        if not (is_end[opening - 1].all() and is_end[closing + 1].all()):
            raise _StrayQuoteError
        self._in_quotes ^= len(quotes) % 2 == 1

    def close(self) -> None:
        """Wait for the thread that reads."""
        with self._lock:
            self.closed = True


def _has_odd_integers(text: bytes, data: Array, is_end: Array) -> bool:
    """Return whether PyArrow may read a value as an integer that is not written as one: 07, -0, 0x7, 7 and a blank."""
    is_zero, is_minus = data == ord("0"), data == ord("-")
    first = np.flatnonzero(is_end[:-2] & is_zero[1:-1]) + 2  # what follows a zero that begins a value
    after = np.flatnonzero(is_end[:-3] & is_minus[1:-2] & is_zero[2:-1]) + 3
    if IN_INTEGERS[data[first]].any() or (data[after] != ord(".")).any():
        return True
    if b" " not in text and b"\t" not in text:
        return False
    is_blank = (data == ord(" ")) | ((data == ord("\t")) & ~is_end)
    return bool((is_end[:-1] & is_blank[1:]).any() or (is_blank[:-1] & is_end[1:]).any())


def _without_first(batches: Iterable[Any], n_rows: int) -> Iterator[Any]:
    """Yield batches from a row on."""
    for batch in batches:
        if len(batch) > n_rows:
            yield batch.slice(n_rows)
        n_rows = max(n_rows - len(batch), 0)


def _with_points(rows: Any, header: Header, wanted: Mapping[int, Any]) -> Any:
    """Return rows with points in strings of numbers with decimal commas; raise ValueError where one has a point."""
    import pyarrow as pa
    from pyarrow import compute, types

    if header.decimal == ".":
        return rows
    columns = rows.columns
    for nth, kind in enumerate(wanted.values()):
        if types.is_string(columns[nth].type) and not types.is_string(kind):
            having = columns[nth].filter(compute.match_substring(columns[nth], "."))
            if len(having):
                mend = "but commas are decimal: write it without, or pass csv={'decimal': '.'} (--decimal)"
                raise ValueError(f"{having[0].as_py()!r} has a point, {mend}")
            columns[nth] = compute.replace_substring(columns[nth], ",", ".")
    return pa.RecordBatch.from_arrays(columns, rows.schema.names)


def _checked_numbers(rows: Any) -> bool:
    """Return True; raise where a double may be an integer that was rounded."""
    from pyarrow import compute, types

    for column in rows.columns:
        if types.is_floating(column.type) and (compute.max(compute.abs(column)).as_py() or 0) >= MAX_EXACT_INTEGER:
            raise _NotPlainError
    return True


def _plain_kinds(read: Callable[..., Iterator[Any]], wanted: Mapping[int, Any]) -> tuple[dict[int, Any], bool]:
    """Return types for the first attempt, and whether there may be quotes, from the first rows.

    Columns whose first values spell no integers are strings.
    """
    import pyarrow as pa

    kinds, may_have_quotes = dict(wanted), False
    for may_have_quotes in (False, True):
        with contextlib.suppress(_NotPlainError, _StrayQuoteError, pa.ArrowInvalid):
            rows = next(read(dict.fromkeys(wanted, pa.string()), may_have_quotes=may_have_quotes), None)
            first = [] if rows is None else rows.slice(0, SAMPLED_ROWS).columns
            for strings, nth in zip(first, wanted, strict=False):
                kinds[nth] = Spellings().add(strings).type if kinds[nth] == pa.int64() else kinds[nth]
            break
    return kinds, may_have_quotes


class _Csv(TextFormat):
    """CSV, which is any text that no other format recognises. `wanted` are the columns that may be read."""

    name, title = "csv", "CSV"
    endings = (".csv", ".tsv", ".txt")

    def __init__(self, wanted: Collection[str] = (), dialect: Dialect = AS_SHOWN, n_threads: int = 1) -> None:
        self._wanted, self._dialect, self._n_threads = wanted, dialect, n_threads
        self._encoding = dialect.encoding or ""
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

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        import pyarrow as pa

        header, n_rows = self._header(path), 0
        read = functools.partial(self._parsed, path, header)
        strings = dict.fromkeys(wanted, pa.string())
        by_python = header.is_all or header.escape is not None or header.quote not in ("", QUOTE)
        for kinds, may_have_quotes in () if by_python else (_plain_kinds(read, wanted), (strings, True)):
            try:
                for rows in _without_first(read(kinds, may_have_quotes=may_have_quotes), n_rows):
                    n_rows += len(rows)
                    yield _with_points(rows, header, wanted)
                self._remark_on_quotes(path, header, n_rows)
                return
            except _StrayQuoteError:
                break
            except (_NotPlainError, pa.ArrowInvalid) as error:
                if kinds is strings and "straddl" not in str(error):
                    raise
        others = itertools.islice(_rows(path, header, self._encoding), n_rows, None)
        while some := list(itertools.islice(others, ROWS_AT_ONCE)):
            values = list(zip(*some, strict=True))
            texts = [pa.array([value or None for value in values[nth]], pa.string()) for nth in wanted]
            yield _with_points(pa.RecordBatch.from_arrays(texts, [f"c{nth}" for nth in wanted]), header, wanted)

    def _parsed(self, path: str, header: Header, kinds: Mapping[int, Any], *, may_have_quotes: bool) -> Iterator[Any]:
        """Yield the rows that PyArrow parses, empty values as null."""
        import pyarrow as pa
        from pyarrow import csv

        names = [f"c{at}" for at in range(len(header.names))]
        with unpacked(path, self._encoding) as stream:
            own = {"may_have_quotes": may_have_quotes, "has_integers": pa.int64() in kinds.values()}
            text = _CheckedText(stream, header, **own)
            with contextlib.closing(text):
                yield from filter(
                    _checked_numbers,
                    csv.open_csv(
                        pa.PythonFile(text, "r"),
                        csv.ReadOptions(block_size=BLOCK_BYTES, column_names=names, use_threads=self._n_threads > 1),
                        csv.ParseOptions(
                            delimiter=header.delimiter,
                            quote_char=header.quote or False,
                            newlines_in_values=may_have_quotes and bool(header.quote),
                        ),
                        csv.ConvertOptions(
                            column_types={names[at]: kind for at, kind in kinds.items()},
                            include_columns=[names[at] for at in kinds],
                            null_values=[""],
                            strings_can_be_null=True,
                            decimal_point=header.decimal,
                        ),
                    ),
                )

    def _remark_on_quotes(self, path: str, header: Header, n_rows: int) -> None:
        """Note line breaks in quotes where tabs separate."""
        if header.delimiter != "\t" or not header.quote:
            return
        with unpacked(path, self._encoding) as stream:
            stream.read(header.start)
            n_joined = sum(1 for line in stream if line.strip(b"\r\n")) - n_rows
        if n_joined > 0:
            mend = "if quotes are characters like others, pass csv={'quote': ''} (--quote '')"
            remark = f"{path}: quotes hold {counted(n_joined, 'line break')}, which is rare where tabs separate: {mend}"
            self.remarks += [remark] if remark not in self.remarks else []

    def reason(self, path: str) -> str:
        try:
            for _ in _rows(path, self._header(path), self._encoding):
                pass
        except InputError:  # the file is damaged
            raise
        except UnicodeDecodeError:
            number = _first_undecodable(path, self._encoding)
            mend = "csv={'encoding': ...} (--encoding) names another encoding"
            where = f"after line {number - 1}" if self._encoding else f"line {number}"  # characters come in blocks
            return f"{where}: not {self._encoding or 'UTF-8'}: {mend}"
        except ValueError as error:
            return str(error)
        return ""


def csv_of(options: Any) -> _Csv:
    """Return the format of CSV files as the argument `csv` says."""
    return _Csv((), dialect_of(options))


def _first_undecodable(path: str, encoding: str) -> int:
    """Return the number of the first line that is not text, from 1."""
    number = 0
    with contextlib.suppress(UnicodeDecodeError):  # of another encoding than UTF-8
        for number, line in enumerate(lines_of(path, encoding), 1):
            if not _is_text(line):
                return number
    return number + 1


def _is_text(line: bytes) -> bool:
    """Return whether a line is UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


CSV = _Csv()

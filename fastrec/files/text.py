"""Delimited text that Arrow reads into memory, piece by piece in threads, if it gives what DuckDB would give.

Types are those of the first rows. Whatever Arrow might take in another way than DuckDB is left to DuckDB, as are
faults: DuckDB reads all columns as strings, and says what is wrong and in which row (fastrec.files.tables).
"""

from __future__ import annotations

import codecs
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.files.columns import USERS, DoubtError
from fastrec.files.formats.heads import RowForm
from fastrec.files.opened import Opened
from fastrec.files.packing import packing_of, unpacked
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.strings import MANY_STRINGS, MAX_ROWS, CollisionError, Numbering, ascending_numbers
from fastrec.inputs.values import arrow_of, values_of
from fastrec.runtime.extras import require
from fastrec.runtime.threads import run_in_threads

__all__ = ["MIN_BYTES", "TextRows", "find_text", "read_text"]

Array = np.ndarray[Any, Any]
Columns = dict[str, Any]  # of a piece by role: an array of numbers, an Arrow array of strings, or their `_Codes`
MIN_BYTES = 1 << 18  # of all files: DuckDB reads less as fast
PIECE_BYTES = 1 << 19
BYTES_PER_ROW = 16  # about
MAX_PACKED = 1032  # bytes that one byte of a gzip file can unpack to; more of zstd are left to DuckDB
INTEGER, FLOAT, STRING = "int64", "float64", "string"
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
LIKE_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*")  # any string that DuckDB may take for a number
INT32 = np.iinfo(np.int32)
LOWEST_ID = 1 - 2**63
NEWLINE, RETURN, QUOTE, SPACE, PLUS, MINUS, POINT, ZERO = map(ord, '\n\r" +-.0')


class TextRows(NamedTuple):
    """The columns to read from the files of a table."""

    paths: tuple[str, ...]
    form: RowForm
    headers: tuple[int, ...]  # bytes before the first row of each file
    names: dict[str, str]  # role -> column
    kinds: dict[str, str]  # role -> type

    @property
    def listed(self) -> tuple[str, ...]:
        """All columns of the files."""
        return self.form.names

    def is_string(self, role: str) -> bool:
        """Return whether the ids of a role are strings."""
        return self.kinds[role] == STRING


# Which files


def find_text(opened: Mapping[str, Opened]) -> dict[str, TextRows] | None:
    """Return the columns to read from the files of each table; None if DuckDB must read the files."""
    if USERS in opened or any(side.columns.by or side.format.magic for side in opened.values()):
        return None
    if sum(os.path.getsize(path) for side in opened.values() for path in side.files.paths) < MIN_BYTES:
        return None
    require("pyarrow", "cli", what="reading files")
    found = {}
    for table, side in opened.items():
        rows = _find(side)
        if rows is None:
            return None
        found[table] = rows
    for role in {role for rows in found.values() for role in rows.names if _is_id(role)}:
        if len({rows.is_string(role) for rows in found.values() if role in rows.names}) > 1:
            return None  # ids match only ids of the same kind
    return found


def _find(opened: Opened) -> TextRows | None:
    """Return the columns to read from files that have one form; else None."""
    if opened.may_read_folders:
        return None
    paths = opened.files.paths
    headers = []
    try:
        first = opened.format.form(paths[0], opened.columns)
        if first is None:
            return None
        for path in paths:  # the forms of many files would fill the memory
            form = opened.format.form(path, opened.columns)
            if form is None or form.layout != first.layout or packing_of(path) != packing_of(paths[0]):
                return None
            headers.append(form.header)
        names = opened.roles(paths[0], first.names)
    except InputError:
        return None
    if len({*first.names}) < len(first.names) or len({*names.values()}) < len(names):
        return None
    kinds = {}
    for role, name in names.items():
        kind = _kind(role, first.samples[first.names.index(name)])
        if kind is None:
            return None
        kinds[role] = kind
    return TextRows(paths, first, tuple(headers), names, kinds)


def _is_id(role: str) -> bool:
    return role == "item" or role.startswith(("user", "row_by"))


def _kind(role: str, values: Sequence[str]) -> str | None:
    """Return the type of the column of a role, judged by its first values; None in doubt."""
    if not values:
        return None
    if not _is_id(role):
        return INTEGER if role == "rank" else FLOAT
    if all(map(WHOLE_NUMBER.fullmatch, values)):
        return INTEGER
    return None if all(map(LIKE_NUMBER.fullmatch, values)) else STRING


# Pieces


class _Pieces:
    """Pieces of files, cut between lines; threads take them in turn."""

    def __init__(self, rows: TextRows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._taken = self._cut()
        sizes = [os.path.getsize(path) * (MAX_PACKED if packing_of(path) else 1) for path in rows.paths]
        self.n_most = sum(2 + 2 * size // PIECE_BYTES for size in sizes)

    def take(self) -> tuple[int, bytes] | None:
        """Return the next piece and its number; None if there is no more."""
        with self._lock:
            return next(self._taken, None)

    def _cut(self) -> Iterator[tuple[int, bytes]]:
        n, line_break = 0, self._rows.form.line_break
        for path, header in zip(self._rows.paths, self._rows.headers, strict=True):
            with unpacked(path) as (stream, _):
                stream.read(header)
                rest = b""
                while block := stream.read(PIECE_BYTES):
                    piece = rest + block
                    cut = piece.rfind(b"\n") + 1
                    rest = piece[cut:]
                    if len(rest) > PIECE_BYTES:
                        raise DoubtError  # a long line
                    if cut:
                        yield n, piece[:cut]
                        n += 1
                if rest:
                    yield n, rest + line_break
                    n += 1


# Bytes that Arrow takes in another way than DuckDB


def _check_bytes(piece: bytes, form: RowForm, *, has_integers: bool) -> int:
    """Return the number of lines; raise `DoubtError` for bytes that Arrow and DuckDB may take in different ways.

    Arrow takes `007` and ` 7` for 7, where a string would stay as it is. Bytes that most files lack are searched for:
    comparing all bytes of a piece takes several times as long.
    """
    data = np.frombuffer(piece, np.uint8)
    ends = data == NEWLINE
    n_lines = int(np.count_nonzero(ends))
    n_returns = 0
    if form.line_break != b"\n":
        returns = data == RETURN
        if returns[-1] or not np.array_equal(returns[:-1], ends[1:]):
            raise DoubtError
        n_returns = int(np.count_nonzero(returns))
    elif b"\r" in piece:
        raise DoubtError
    n_unusual = int(np.count_nonzero(data < SPACE)) - n_lines - n_returns
    if n_unusual != (piece.count(b"\t") if form.delimiter == "\t" else 0):
        raise DoubtError
    if not piece.isascii():
        _check_encoding(piece)
    has_quotes = b'"' in piece
    if has_quotes:
        _check_quotes(data, form)
    if has_integers:
        _check_integers(piece, ends, form, has_quotes=has_quotes)
    return n_lines


def _check_encoding(piece: bytes) -> None:
    try:
        codecs.utf_8_decode(piece, "strict", True)  # noqa: FBT003 - the decoder takes no keywords
    except UnicodeDecodeError:
        raise DoubtError from None


def _check_quotes(data: Array, form: RowForm) -> None:
    """Raise `DoubtError` for quotes that are not around whole fields; `data` ends with a line break."""
    at = np.flatnonzero(data == QUOTE)
    before, after = data[at[::2] - 1], data[at[1::2] + 1]  # of the first quote, the last byte, which ends a line, too
    cut = ord(form.delimiter)
    opens = (before == cut) | (before == NEWLINE)
    closes = (after == cut) | (after == NEWLINE) | (after == RETURN)
    if len(at) % 2 or not (opens.all() and closes.all()):
        raise DoubtError


def _check_integers(piece: bytes, ends: Array, form: RowForm, *, has_quotes: bool) -> None:
    """Raise `DoubtError` for fields that may be integers in an unusual form: spaces, plus signs, leading zeros, -0."""
    data, cut = np.frombuffer(piece, np.uint8), ord(form.delimiter)
    cuts = data == cut
    cuts |= ends
    first = np.concatenate(([True], cuts[:-1]))  # bytes of fields
    if has_quotes:
        first[1:] |= data[:-1] == QUOTE
    if b" " in piece:
        last = np.append(cuts[1:] | (data[1:] == RETURN) | (data[1:] == QUOTE), True)
        if ((first | last) & (data == SPACE)).any():
            raise DoubtError
    if b"+" in piece and (first & (data == PLUS)).any():
        raise DoubtError
    zeros = data == ZERO
    after = data[np.flatnonzero(first & zeros) + 1]  # the last byte is no zero: it ends a line
    if ((after >= ZERO) & (after != cut)).any():
        raise DoubtError  # a zero before a digit or a letter
    negative = first[:-2] & zeros[1:-1]
    negative &= data[:-2] == MINUS
    if (data[np.flatnonzero(negative) + 2] != POINT).any():
        raise DoubtError


# Columns


class _TableReader:
    """Reads the pieces of the files of a table into columns."""

    def __init__(self, rows: TextRows, left: _Left, numbered: Mapping[str, Numbering]) -> None:
        from pyarrow import csv

        self._rows, self._left = rows, left
        self._numbered = {role: numbering for role, numbering in numbered.items() if role in rows.kinds}
        self._pieces = _Pieces(rows)
        self._has_integers = INTEGER in rows.kinds.values()
        self.wide: set[str] = set()  # roles of integers that do not fit int32
        types = {name: _types()[rows.kinds[role]] for role, name in rows.names.items()}
        self._parse = csv.ParseOptions(
            delimiter=rows.form.delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=None
        )
        self._convert = csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[])

    def read(self, n_threads: int) -> list[_ReadPiece]:
        """Return the pieces in their order; raise `DoubtError` in doubt."""
        pieces = run_in_threads(self._take, range(self._pieces.n_most), n_threads)
        if self._pieces.take() is not None:
            raise DoubtError  # some rows were not read
        return sorted((piece for piece in pieces if piece), key=lambda piece: piece.nth)

    def _take(self, _: int) -> _ReadPiece | None:
        """Read the next piece."""
        taken = self._pieces.take()
        if taken is None:
            return None
        n, piece = taken
        n_lines = _check_bytes(piece, self._rows.form, has_integers=self._has_integers)
        table = self._columns_of(piece)
        if table.num_rows != n_lines:
            raise DoubtError
        self._left.take(table.nbytes, len(table))
        columns = {role: self._clean(role, values) for role, values in zip(self._rows.names, table, strict=True)}
        for role, numbering in self._numbered.items():
            codes = np.empty(len(table), np.int32)
            with numbering.list_of_thread() as nth:
                numbering.number(nth, columns[role], codes)
            columns[role] = _Codes(codes, nth)
        return _ReadPiece(n, n_lines, columns)

    def _columns_of(self, piece: bytes) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        names = list(self._rows.form.names)
        options = csv.ReadOptions(use_threads=False, block_size=len(piece) + 1, column_names=names)
        try:
            return csv.read_csv(pa.BufferReader(piece), options, self._parse, self._convert)
        except pa.ArrowInvalid as error:
            raise DoubtError from error

    def _clean(self, role: str, values: Any) -> Any:
        """Return the values of a column; raise `DoubtError` for those that DuckDB reads in another way or rejects."""
        kind, values = self._rows.kinds[role], values.combine_chunks()
        if kind == STRING:
            ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
            if not np.diff(ends).all():
                raise DoubtError  # an empty string
            return values
        numbers = values_of(values)
        if kind == FLOAT:
            clean = np.abs(numbers).max() < MAX_EXACT_INTEGER
        else:
            lowest = numbers.min()
            clean = lowest >= (0 if role == "item" else LOWEST_ID)
            if lowest < INT32.min or numbers.max() > INT32.max:
                self.wide.add(role)
        if not clean:
            raise DoubtError
        return numbers


def _types() -> dict[str, Any]:
    import pyarrow as pa

    return {INTEGER: pa.int64(), FLOAT: pa.float64(), STRING: pa.string()}


class _Left:
    """The bytes of memory that columns may still take, and the rows that they may still have."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes, self._n_rows = n_bytes, MAX_ROWS
        self._lock = threading.Lock()

    def take(self, n_bytes: int, n_rows: int) -> None:
        """Take bytes and rows; raise `DoubtError` if they are too many."""
        with self._lock:
            self._n_bytes -= n_bytes
            self._n_rows -= n_rows
            if min(self._n_bytes, self._n_rows) < 0:
                raise DoubtError


class _Codes(NamedTuple):
    """Numbers that one list of a numbering gave to strings."""

    codes: Array  # int32
    nth: int


class _ReadPiece(NamedTuple):
    """A piece that was read."""

    nth: int  # of the pieces of its table
    rows: int
    columns: Columns


# Tables


def read_text(found: Mapping[str, TextRows], n_threads: int, n_bytes: int) -> dict[str, Any] | None:
    """Read the files of each table as a PyArrow table of at most `n_bytes`; None if in doubt or without room."""
    left = _Left(n_bytes)
    n_rows = sum(os.path.getsize(path) for rows in found.values() for path in rows.paths) // BYTES_PER_ROW
    strings = {role for rows in found.values() for role in rows.kinds if rows.is_string(role)}
    numbered = {role: Numbering() for role in strings if n_rows >= MANY_STRINGS}
    try:
        readers = {table: _TableReader(rows, left, numbered) for table, rows in found.items()}
        with loading_kernels(n_rows):
            pieces = {table: reader.read(n_threads) for table, reader in readers.items()}
        final = ascending_numbers(numbered, n_threads)
    except (DoubtError, CollisionError, InputError, OSError):
        return None
    if not all(pieces.values()):
        return None
    wide = {role for reader in readers.values() for role in reader.wide}
    return {table: _table(rows, pieces.pop(table), wide, final, n_threads) for table, rows in found.items()}


def _table(
    rows: TextRows,
    pieces: list[_ReadPiece],
    wide: set[str],
    final: Mapping[str, tuple[list[Array], Any]],
    n_threads: int,
) -> Any:
    """Join pieces to a PyArrow table, a piece per thread at a time; `final` as `Numbering.ascending` returns it."""
    import pyarrow as pa

    starts = np.cumsum([0, *(piece.rows for piece in pieces)])
    kept = {role: _kept_as(kind, wide=role in wide) for role, kind in rows.kinds.items() if kind != STRING}
    kept |= {role: np.dtype(np.int32) for role in rows.kinds if role in final}
    whole = {role: np.empty(starts[-1], dtype) for role, dtype in kept.items()}

    def join(at: int) -> None:
        for role, out in whole.items():
            part, own = pieces[at].columns.pop(role), out[starts[at] : starts[at + 1]]
            if role in final:
                np.take(final[role][0][part.nth], part.codes, out=own, mode="clip")  # other modes need a copy
            else:
                own[:] = part

    run_in_threads(join, range(len(pieces)), n_threads)
    columns = []
    for role in rows.kinds:
        if role in final:
            columns.append(pa.DictionaryArray.from_arrays(arrow_of(whole[role]), final[role][1]))
        elif role in whole:
            columns.append(arrow_of(whole[role]))
        else:
            columns.append(pa.chunked_array([piece.columns.pop(role) for piece in pieces], pa.string()))
    return pa.Table.from_arrays(columns, names=list(rows.kinds))


def _kept_as(kind: str, *, wide: bool) -> np.dtype[Any]:
    """Return the type that numbers of a kind are kept in."""
    return np.dtype(np.float64 if kind == FLOAT else np.int64 if wide else np.int32)

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
from fastrec.files.formats.heads import SAMPLED_ROWS, Beginning, RowForm
from fastrec.files.opened import Opened
from fastrec.files.packing import unpacked
from fastrec.files.paths import Files
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.lines import count_lines, is_doubtful
from fastrec.inputs.strings import MANY_STRINGS, MAX_ROWS, CollisionError, Numbering, ascending_numbers
from fastrec.inputs.values import arrow_of, values_of
from fastrec.runtime.extras import require
from fastrec.runtime.limits import may_compile
from fastrec.runtime.threads import run_in_threads

__all__ = ["MIN_BYTES", "TextRows", "find_text", "read_text"]

Array = np.ndarray[Any, Any]
MIN_BYTES = 1 << 18  # of all files: DuckDB reads less as fast
PIECE_BYTES = 1 << 20
MORE_ROWS = 1.1  # than the first piece lets expect
BYTES_PER_ROW = 16  # about
MAX_PACKED = 1032  # bytes that one byte of a gzip file can unpack to; more of zstd are left to DuckDB
INTEGER, FLOAT, STRING = "int64", "float64", "string"
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
LIKE_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*")  # any string that DuckDB may take for a number
INT32 = np.iinfo(np.int32)
LOWEST_ID = 1 - 2**63


class TextRows(NamedTuple):
    """The columns to read from the files of a table."""

    files: Files
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
    if not may_compile():
        return None  # Python takes seconds per megabyte to check bytes
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
    paths, contents = opened.files.paths, opened.files.contents
    headers = []
    try:
        first = opened.format.form(Beginning(paths[0], contents), opened.columns, SAMPLED_ROWS)
        if first is None:
            return None
        headers.append(first.header)
        for path in paths[1:]:  # the forms of many files would fill the memory
            form = opened.format.form(Beginning(path, contents), opened.columns, 0)
            if form is None or form.layout != first.layout:
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
    return TextRows(opened.files, first, tuple(headers), names, kinds)


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


class _TextPiece(NamedTuple):
    """Whole lines of one file or of several."""

    data: bytes
    first: int  # the row of the table that begins the piece
    rows: int


class _Pieces:
    """Pieces of files, cut between lines; threads take them in turn."""

    def __init__(self, rows: TextRows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._taken = _together(self._cut())
        packing, sizes = rows.form.packing, [os.path.getsize(path) for path in rows.files.paths]
        self.n_most = sum(2 + 2 * size * (MAX_PACKED if packing else 1) // PIECE_BYTES for size in sizes)
        self.n_bytes = 0 if packing else sum(sizes)  # of all pieces; 0: not known
        self.n_rows = 0  # of the pieces that were taken

    def take(self) -> _TextPiece | None:
        """Return the next piece; None if there is no more."""
        with self._lock:
            data = next(self._taken, None)
            if data is None:
                return None
            first, rows = self.n_rows, count_lines(data)
            self.n_rows += rows
            return _TextPiece(data, first, rows)

    def _cut(self) -> Iterator[bytes]:
        line_break = self._rows.form.line_break
        for path, header in zip(self._rows.files.paths, self._rows.headers, strict=True):
            with unpacked(path, self._rows.files.contents) as (stream, _):
                stream.read(header)
                rest = b""
                while block := stream.read(PIECE_BYTES):
                    piece = rest + block
                    cut = piece.rfind(b"\n") + 1
                    rest = piece[cut:]
                    if len(rest) > PIECE_BYTES:
                        raise DoubtError  # a long line
                    if cut:
                        yield piece[:cut]
                if rest:
                    yield rest + line_break


def _together(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield neighbouring pieces as one while they are small, such as those of small files."""
    held: list[bytes] = []
    n_bytes = 0
    for piece in pieces:
        if held and n_bytes + len(piece) > PIECE_BYTES:
            yield b"".join(held)
            held, n_bytes = [], 0
        held.append(piece)
        n_bytes += len(piece)
    if held:
        yield b"".join(held)


# Bytes that Arrow takes in another way than DuckDB


def _check_bytes(lines: bytes, form: RowForm, *, has_integers: bool) -> None:
    """Raise `DoubtError` for bytes that Arrow and DuckDB may take in different ways.

    Arrow takes `007` and ` 7` for 7, where a string would stay as it is. The kernel knows bytes; what is not UTF-8 is
    found here.
    """
    if is_doubtful(lines, form.delimiter, form.line_break, has_integers=has_integers):
        raise DoubtError
    if not lines.isascii():
        if lines.startswith(codecs.BOM_UTF8):
            raise DoubtError  # Arrow leaves it out, since a piece is a file for it
        try:
            codecs.utf_8_decode(lines, "strict", True)  # noqa: FBT003 - the decoder takes no keywords
        except UnicodeDecodeError:
            raise DoubtError from None


# Columns


class _TableReader:
    """Reads the pieces of the files of a table, and writes each at its place in the columns."""

    def __init__(self, rows: TextRows, left: _Left, numbered: Mapping[str, Numbering]) -> None:
        from pyarrow import csv

        self._rows, self._left = rows, left
        self._numbered = {role: numbering for role, numbering in numbered.items() if role in rows.kinds}
        self._pieces = _Pieces(rows)
        self._has_integers = INTEGER in rows.kinds.values()
        self._columns: dict[str, _Column] = {}
        self._texts: list[tuple[int, str, Any]] = []  # strings without numbers: first row, role, values
        self._lists: list[tuple[str, int, int, int]] = []  # role, first row, end, list of the numbering
        types = {name: _types()[rows.kinds[role]] for role, name in rows.names.items()}
        self._parse = csv.ParseOptions(
            delimiter=rows.form.delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=None
        )
        self._convert = csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[],
            check_utf8=False,  # `_check_bytes` did
        )

    def read(self, n_threads: int) -> bool:
        """Read all rows, and return whether there are any; raise `DoubtError` in doubt."""
        self._take(0)  # alone: it tells how many rows to expect
        run_in_threads(self._take, range(1, self._pieces.n_most), n_threads)
        if self._pieces.take() is not None:
            raise DoubtError  # some rows were not read
        return self._pieces.n_rows > 0

    def _take(self, _: int) -> None:
        """Read the next piece."""
        piece = self._pieces.take()
        if piece is None:
            return
        _check_bytes(piece.data, self._rows.form, has_integers=self._has_integers)
        table = self._columns_of(piece.data)
        if table.num_rows != piece.rows:
            raise DoubtError
        self._left.take(table.nbytes, len(table))
        expected = 0 if piece.first else int(MORE_ROWS * piece.rows * self._pieces.n_bytes / len(piece.data))
        for role, values in zip(self._rows.names, table, strict=True):
            kept = self._clean(role, values.combine_chunks())
            if role in self._numbered:
                self._number(role, piece, kept, expected)
            elif self._rows.is_string(role):
                self._texts.append((piece.first, role, kept))
            else:
                self._column(role, kept.dtype, expected).put(piece.first, kept)

    def _column(self, role: str, dtype: np.dtype[Any], expected: int) -> _Column:
        """Return the column of a role; it is made with the first piece."""
        if role not in self._columns:
            self._columns[role] = _Column(dtype, expected)
        return self._columns[role]

    def _number(self, role: str, piece: _TextPiece, strings: Any, expected: int) -> None:
        """Write the numbers of strings."""
        last, codes = piece.first + piece.rows, np.empty(piece.rows, np.int32)
        with self._numbered[role].list_of_thread() as nth:
            self._numbered[role].number(nth, strings, codes)
        self._column(role, codes.dtype, expected).put(piece.first, codes)
        self._lists.append((role, piece.first, last, nth))

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
        """Return the values of a column; raise `DoubtError` for those that DuckDB reads in another way or rejects.

        Integers that fit are int32.
        """
        kind = self._rows.kinds[role]
        if kind == STRING:
            ends = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset)
            if not np.diff(ends).all():
                raise DoubtError  # an empty string
            return values
        numbers = values_of(values)
        if kind == FLOAT:
            if not (numbers.min() > -MAX_EXACT_INTEGER and numbers.max() < MAX_EXACT_INTEGER):
                raise DoubtError  # also for NaN
            return numbers
        lowest = numbers.min()
        if lowest < (0 if role == "item" else LOWEST_ID):
            raise DoubtError
        return numbers if lowest < INT32.min or numbers.max() > INT32.max else numbers.astype(np.int32)

    @property
    def types(self) -> dict[str, np.dtype[Any]]:
        """The types of the columns of numbers, by role."""
        return {role: column.dtype for role, column in self._columns.items()}

    def table(
        self, types: Mapping[str, np.dtype[Any]], final: Mapping[str, tuple[list[Array], Any]], n_threads: int
    ) -> Any:
        """Return the columns as a PyArrow table with these types; `final` as `Numbering.ascending` returns it."""
        import pyarrow as pa

        n_rows = self._pieces.n_rows
        whole = {role: column.whole(types[role], n_rows, n_threads) for role, column in self._columns.items()}

        def renumber(at: int) -> None:
            role, first, last, nth = self._lists[at]
            whole[role][first:last] = final[role][0][nth][whole[role][first:last]]

        run_in_threads(renumber, range(len(self._lists)), n_threads)
        self._texts.sort(key=lambda text: text[0])
        columns = []
        for role in self._rows.kinds:
            if role in final:
                columns.append(pa.DictionaryArray.from_arrays(arrow_of(whole[role]), final[role][1]))
            elif role in whole:
                columns.append(arrow_of(whole[role]))
            else:
                columns.append(pa.chunked_array([own for _, name, own in self._texts if name == role], pa.string()))
        return pa.Table.from_arrays(columns, names=list(self._rows.kinds))


class _Column:
    """A column of numbers that threads write in pieces. Memory that nothing is written to takes no room."""

    def __init__(self, dtype: np.dtype[Any], expected: int) -> None:
        self._values = np.empty(expected, dtype)
        self._apart: list[tuple[int, Array]] = []  # pieces past the expected rows, or of a wider type

    def put(self, first: int, values: Array) -> None:
        """Write values from a row on."""
        own = self._values[first : first + len(values)]
        if len(own) < len(values) or own.dtype.itemsize < values.dtype.itemsize:
            self._apart.append((first, values))
        else:
            own[:] = values

    @property
    def dtype(self) -> np.dtype[Any]:
        """The widest type of the pieces."""
        return np.result_type(self._values, *(values for _, values in self._apart))

    def whole(self, dtype: np.dtype[Any], n_rows: int, n_threads: int) -> Array:
        """Return all values in a type."""
        own = self._values[:n_rows]
        if not self._apart and own.dtype == dtype:
            return own
        out = np.empty(n_rows, dtype)
        out[: len(own)] = own

        def put(at: int) -> None:
            first, values = self._apart[at]
            out[first : first + len(values)] = values

        run_in_threads(put, range(len(self._apart)), n_threads)
        return out


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


# Tables


def read_text(found: Mapping[str, TextRows], n_threads: int, n_bytes: int) -> dict[str, Any] | None:
    """Read the files of each table as a PyArrow table of at most `n_bytes`; None if in doubt or without room."""
    left = _Left(n_bytes)
    n_rows = sum(os.path.getsize(path) for rows in found.values() for path in rows.files.paths) // BYTES_PER_ROW
    strings = {role for rows in found.values() for role in rows.kinds if rows.is_string(role)}
    numbered = {role: Numbering() for role in strings if n_rows >= MANY_STRINGS}
    try:
        readers = {table: _TableReader(rows, left, numbered) for table, rows in found.items()}
        with loading_kernels(n_rows):
            are_filled = [reader.read(n_threads) for reader in readers.values()]
        final = ascending_numbers(numbered, n_threads)
    except (DoubtError, CollisionError, InputError, OSError):
        return None
    if not all(are_filled):
        return None
    types: dict[str, np.dtype[Any]] = {}  # ids of a role have one type in all tables
    for reader in readers.values():
        types |= {role: np.promote_types(own, types.get(role, own)) for role, own in reader.types.items()}
    return {table: readers.pop(table).table(types, final, n_threads) for table in list(readers)}

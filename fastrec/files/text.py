"""Text files read straight into memory if all rows have one form and their values are clean.

This module notices possible faults but does not explain them: it then returns no table, and DuckDB reads the files,
which says what is wrong and in which row (fastrec.files.tables).
"""

from __future__ import annotations

import gzip
import os
import re
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.files.columns import USERS
from fastrec.files.opened import Opened
from fastrec.files.paths import is_packed
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.text import FLOAT, INTEGER, STRING, Buffers, DoubtError, RowForm, TextReader
from fastrec.inputs.values import arrow_of
from fastrec.runtime.extras import require
from fastrec.runtime.threads import run_in_threads

__all__ = ["MIN_BYTES", "TextRows", "find_text", "read_text"]

Array = np.ndarray[Any, Any]
MIN_BYTES = 1 << 18  # of all files: DuckDB reads less before the kernel is loaded
PIECE_BYTES = 1 << 22
BYTES_PER_ROW = 16  # about
MAX_PACKED = 1032  # bytes that one byte of a gzip file can unpack to
WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
LIKE_NUMBER = re.compile(r"\s*[+-]?[0-9.]+([eE][+-]?[0-9]+)?\s*")  # any string that DuckDB may take for a number
INT32 = np.iinfo(np.int32)


class TextRows(NamedTuple):
    """The columns to read from the files of a table."""

    paths: tuple[str, ...]
    form: RowForm
    headers: tuple[int, ...]  # bytes before the first row of each file
    names: dict[str, str]  # role -> column
    kinds: dict[str, int]  # role -> kind of field

    @property
    def listed(self) -> tuple[str, ...]:
        """All columns of the files."""
        return self.form.names

    def is_string(self, role: str) -> bool:
        """Return whether the ids of a role are strings."""
        return self.kinds[role] == STRING

    def roles_of(self, kind: int) -> list[str]:
        """Return the roles of the fields of a kind."""
        return [role for role, own in self.kinds.items() if own == kind]


# RowForms


def find_text(opened: Mapping[str, Opened]) -> dict[str, TextRows] | None:
    """Return the columns to read from the files of each table; None if DuckDB must read the files."""
    require("pyarrow", "cli", what="reading files")
    if USERS in opened or any(side.columns.by or side.format.magic for side in opened.values()):
        return None
    if sum(os.path.getsize(path) for side in opened.values() for path in side.files.paths) < MIN_BYTES:
        return None
    found = {}
    for table, side in opened.items():
        rows = _find(side)
        if rows is None:
            return None
        found[table] = rows
    for role in {role for rows in found.values() for role in rows.names if _is_id(role)}:
        having = [rows for rows in found.values() if role in rows.names]
        if len({(rows.is_string(role), rows.form.typed) for rows in having}) > 1:
            return None  # ids match only ids of the same kind
    return found


def _find(opened: Opened) -> TextRows | None:
    """Return the columns to read from files that have one form; else None."""
    try:
        forms = [opened.format.form(path, opened.columns) for path in opened.files.paths]
        first = forms[0]
        if first is None or any(form is None or form.rows != first.rows for form in forms):
            return None
        if len(set(map(is_packed, opened.files.paths))) > 1:
            return None
        names = opened.columns.roles(opened.table, opened.files.paths[0], first.names)
    except InputError:
        return None
    used = list(names.values())
    if len({*used}) < len(used) or any(first.names.count(name) > 1 for name in used):
        return None
    if {*used}.intersection(key for keys in opened.files.keys for key in keys):
        return None  # a Hive partition has the name of a column
    kinds = {role: _kind(role, first.samples[first.names.index(name)], first) for role, name in names.items()}
    if None in kinds.values():
        return None
    headers = tuple(form.header for form in forms if form is not None)
    return TextRows(
        opened.files.paths, first, headers, names, {role: kind for role, kind in kinds.items() if kind is not None}
    )


def _is_id(role: str) -> bool:
    return role == "item" or role.startswith("user")


def _kind(role: str, values: Sequence[Any], form: RowForm) -> int | None:
    """Return the kind of the field of a role, judged by its first values; None in doubt."""
    if not values:
        return None
    if role == "rank":
        return INTEGER
    if not _is_id(role):
        return FLOAT if not form.typed or all(type(value) in (int, float) for value in values) else None
    if form.typed:
        kinds = {type(value) for value in values}
        return INTEGER if kinds == {int} else STRING if kinds == {str} else None
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
        self.n_most = sum(
            2 + 2 * os.path.getsize(path) * (MAX_PACKED if is_packed(path) else 1) // PIECE_BYTES for path in rows.paths
        )

    def take(self, room: bytearray) -> tuple[int, int, int] | None:
        """Fill `room` with the next piece; return its number and the place of its rows; None if there is no more."""
        with self._lock:
            self._room = room
            return next(self._taken, None)

    def _cut(self) -> Iterator[tuple[int, int, int]]:
        n = 0
        newline = self._rows.form.line_break
        for path, header in zip(self._rows.paths, self._rows.headers, strict=True):
            rest, start, more = b"", header, True
            with gzip.open(path, "rb") if is_packed(path) else open(path, "rb", buffering=0) as stream:
                while more:
                    room = self._room
                    room[: len(rest)] = rest
                    end, more = _fill(stream, room, len(rest))
                    cut = room.rfind(b"\n", 0, end) + 1 if more else end
                    rest = bytes(room[cut:end])
                    if more and 2 * len(rest) > PIECE_BYTES:
                        raise DoubtError  # a long line; each piece takes at least half of its size from the file
                    if not more and cut > start and not room.startswith(b"\n", cut - 1):
                        room[cut : cut + len(newline)] = newline
                        cut += len(newline)
                    if cut > start:
                        yield n, start, cut
                        n += 1
                    start = max(0, start - cut)


def _fill(stream: Any, room: bytearray, at: int) -> tuple[int, bool]:
    """Read from a stream until the room is full; return where the bytes end, and whether more may follow."""
    with memoryview(room) as view:
        while at < PIECE_BYTES:
            n = stream.readinto(view[at:PIECE_BYTES])
            if not n:
                return at, False
            at += n
    return at, True


# Rows


class _TableReader:
    """Reads the pieces of the files of a table into columns."""

    def __init__(self, rows: TextRows, left: _Left) -> None:
        self._rows = rows
        self._reader = TextReader(rows.form, {rows.names[role]: kind for role, kind in rows.kinds.items()})
        self._pieces = _Pieces(rows)
        self.n_bytes = sum(map(os.path.getsize, rows.paths))
        self._left = left
        self._rooms: list[Buffers] = []

    def load(self) -> None:
        """Load the kernel."""
        self._reader.load(self.n_bytes)

    def read(self, n_threads: int) -> list[dict[str, Any]]:
        """Return {role: values} of each piece; raise `DoubtError` in doubt."""
        pieces = run_in_threads(self._take, range(self._pieces.n_most), n_threads)
        if self._pieces.take(self._room().data) is not None:
            raise DoubtError  # some rows were not read
        return [piece for _, piece in sorted((piece for piece in pieces if piece), key=lambda piece: piece[0])]

    def _room(self) -> Buffers:
        try:
            return self._rooms.pop()
        except IndexError:
            return self._reader.buffers(PIECE_BYTES)

    def _take(self, _: int) -> tuple[int, dict[str, Any]] | None:
        """Read the next piece; return its number and columns."""
        room = self._room()
        piece = self._pieces.take(room.data)
        if piece is None:
            return None
        n, first, last = piece
        columns = self._reader.read(room, first, last)
        found = {role: columns[name] for role, name in self._rows.names.items()}
        self._rooms.append(room)
        if self._rows.kinds.get("item") == INTEGER and found["item"].min() < 0:
            raise DoubtError
        self._left.take(sum(values.nbytes for values in found.values()))
        return n, found


class _Left:
    """The bytes of memory that columns may still take."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self._lock = threading.Lock()

    def take(self, n_bytes: int) -> None:
        """Take bytes; raise `DoubtError` if they are too many."""
        with self._lock:
            self._n_bytes -= n_bytes
            if self._n_bytes < 0:
                raise DoubtError


# Tables


def read_text(found: Mapping[str, TextRows], n_threads: int, n_bytes: int) -> dict[str, Any] | None:
    """Read the files of each table as a PyArrow table of at most `n_bytes`; None if in doubt or without room."""
    left = _Left(n_bytes)
    try:
        readers = {table: _TableReader(rows, left) for table, rows in found.items()}
        for reader in readers.values():
            reader.load()
        with loading_kernels(sum(reader.n_bytes for reader in readers.values()) // BYTES_PER_ROW):
            pieces = {table: reader.read(n_threads) for table, reader in readers.items()}
    except (DoubtError, OSError, EOFError, zlib.error):
        return None
    if not all(pieces.values()):
        return None
    narrow = {
        role
        for rows in found.values()
        for role in rows.roles_of(INTEGER)
        if all(_are_narrow(piece[role]) for own in pieces.values() for piece in own if role in piece)
    }
    return {table: _table(rows, pieces.pop(table), narrow) for table, rows in found.items()}


def _are_narrow(values: Array) -> bool:
    return bool(values.min() >= INT32.min and values.max() <= INT32.max)


def _table(rows: TextRows, pieces: list[dict[str, Any]], narrow: set[str]) -> Any:
    """Join the columns of pieces to a PyArrow table."""
    import pyarrow as pa

    columns = []
    for role, kind in rows.kinds.items():
        parts = [piece.pop(role) for piece in pieces]
        if kind == STRING:
            columns.append(pa.chunked_array(parts, pa.string()))
        else:
            columns.append(
                arrow_of(np.concatenate(parts, dtype=np.int32 if role in narrow else None, casting="unsafe"))
            )
    return pa.Table.from_arrays(columns, names=list(rows.kinds))

"""Parquet files read straight into memory if their columns are plain and clean.

This module notices possible faults but does not explain them: it then returns no table, and DuckDB reads the files,
which says what is wrong and in which row (fastrec.files.tables).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.files.columns import USERS, ColumnError, DoubtError, users_of
from fastrec.files.formats.parquet import PARQUET, damages_of_parquet, size_of_parquet
from fastrec.files.opened import Opened
from fastrec.files.paths import Files
from fastrec.files.sizes import WIDEST, Size
from fastrec.inputs.columns import MAX_EXACT_INTEGER
from fastrec.inputs.strings import MANY_STRINGS, MAX_ROWS, CollisionError, Numbering, ascending_numbers, bytes_of
from fastrec.inputs.values import arrow_of, fixed_width, values_of
from fastrec.runtime.extras import require
from fastrec.runtime.threads import run_in_threads

__all__ = [
    "ROWS_PER_PIECE",
    "Grouped",
    "Plain",
    "PlainTables",
    "WideError",
    "doubting",
    "find_plain",
    "groups_of",
    "read_plain",
    "size_of_plain",
    "without_narrow",
]

Array = np.ndarray[Any, Any]
EXACT_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
STRINGS = ("string", "large_string", "string_view")
INT32 = np.iinfo(np.int32)
PIECE_BYTES = 1 << 24  # of strings read at once, about
MIN_PIECE, ROWS_PER_PIECE = 1 << 10, 1 << 16  # larger pieces take new memory from the system each time
MIN_SHARED = 1 << 11  # rows of a row group, in the mean of a run: between smaller ones, threads would wait
NUMBERS = ("float", "double", *EXACT_INTEGERS)
BUFFER = 1 << 20  # bytes of a column that are read at once


class RowGroup(NamedTuple):
    """A row group of a file."""

    path: str
    metadata: Any  # of the file
    nth: int
    first: int  # of its rows among those of all files
    rows: int


class Plain(NamedTuple):
    """The columns to read from the files of a table."""

    files: Files
    listed: tuple[str, ...]  # all columns of the first file
    names: dict[str, str]  # role -> column
    types: dict[str, Any]  # role -> type in Arrow
    groups: tuple[RowGroup, ...]
    narrow: frozenset[str] = frozenset()  # roles of integers that fit int32, judged by the first rows

    @property
    def rows(self) -> int:
        """The number of rows of all files."""
        return sum(group.rows for group in self.groups)

    @property
    def users(self) -> tuple[str, ...]:
        """The roles of the columns that make users."""
        return users_of(self.names)

    def kept(self) -> dict[str, np.dtype[Any]]:
        """Return {role: type that values are kept in}, without strings."""
        kept = {role: _kept_as(role, kind, narrow=role in self.narrow) for role, kind in self.types.items()}
        return {role: width for role, width in kept.items() if width is not None}

    def batches(self, at: int, n_rows: int, roles: Iterable[str]) -> Generator[tuple[int, Any], None, None]:
        """Yield pieces of a row group, of at most so many rows: the first row among those of all files, and columns.

        Raise DoubtError for nulls, or if there are not as many rows as the file says.
        """
        import pyarrow.parquet as pq

        group, done = self.groups[at], 0
        names = [self.names[role] for role in roles]
        with pq.ParquetFile(
            self.files.source(group.path),
            metadata=group.metadata,
            buffer_size=BUFFER,
            pre_buffer=False,  # else PyArrow reads the row group before it decodes it
        ) as file:
            for batch in file.iter_batches(n_rows, row_groups=[group.nth], columns=names, use_threads=False):
                if done + batch.num_rows > group.rows or any(column.null_count for column in batch.columns):
                    raise DoubtError
                yield group.first + done, batch
                done += batch.num_rows
        if done != group.rows:
            raise DoubtError

    def pieces(
        self, at: int, n_rows: int, roles: Sequence[str] = ()
    ) -> Generator[tuple[int, dict[str, Array]], None, None]:
        """Yield the numbers of pieces of a row group by role: of all columns, or of some."""
        kept = {role: width for role, width in self.kept().items() if not roles or role in roles}
        for first, batch in self.batches(at, n_rows, kept):
            if batch.num_rows:
                yield first, {role: _held(batch.column(self.names[role]), width) for role, width in kept.items()}

    def is_string(self, role: str) -> bool:
        """Return whether the ids of a role are strings."""
        return str(self.types[role]) in STRINGS


class Grouped(NamedTuple):
    """The rows of a table by user, users by ascending id."""

    columns: dict[str, Array]  # role -> values of rows, without users
    ids: Array  # of users
    indptr: Array  # int64 (n_users + 1,)


class PlainTables:
    """Tables of plain columns in memory."""

    def __init__(self, found: Mapping[str, Plain]) -> None:
        self.found = found

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables."""
        return sum(plain.rows for plain in self.found.values())

    @property
    def names(self) -> dict[str, list[str]]:
        """The roles of the columns of each table."""
        return {table: list(plain.names) for table, plain in self.found.items()}

    @property
    def listed(self) -> dict[str, tuple[str, ...]]:
        """All columns of the files of each table."""
        return {table: plain.listed for table, plain in self.found.items()}


def groups_of(found: Mapping[str, Plain]) -> list[tuple[str, int]]:
    """Return the row groups of all tables, each as (table, its place there), the largest first.

    Threads that take them in this order end at about the same time.
    """
    groups = [(table, at) for table, plain in found.items() for at in range(len(plain.groups))]
    return sorted(groups, key=lambda own: -found[own[0]].groups[own[1]].rows)


def find_plain(opened: Mapping[str, Opened]) -> dict[str, Plain] | None:
    """Return the columns to read from the files of each table; None if DuckDB must read the files."""
    if any(side.columns.by or side.format is not PARQUET for side in opened.values()) or USERS in opened:
        return None
    found = {}
    for table, side in opened.items():
        plain = _open(side)
        if plain is None or not plain.rows:
            return None
        found[table] = plain
    narrow = set()
    for role in filter(_is_id_or_rank, next(iter(found.values())).names):
        having = [plain for plain in found.values() if role in plain.names]
        if len({plain.is_string(role) for plain in having}) > 1:
            return None  # ids match only ids of the same kind
        if all(_looks_narrow(plain, role) for plain in having):
            narrow.add(role)
    return {table: plain._replace(narrow=frozenset(narrow)) for table, plain in found.items()}


@contextlib.contextmanager
def doubting() -> Iterator[None]:
    """Turn faults of files into doubt: DuckDB reads the files again, and says what is wrong."""
    try:
        yield
    except damages_of_parquet() as error:
        raise DoubtError from error


def _is_id_or_rank(role: str) -> bool:
    return role in ("item", "rank") or role.startswith(("user", "row_by"))


def _looks_narrow(plain: Plain, role: str) -> bool:
    """Return whether the first 64-bit integers fit 32 bits.

    Column statistics would cover all rows, but PyArrow ends the process if it reads them from a damaged footer.
    """
    if str(plain.types[role]) != "int64":
        return False
    damages: tuple[type[Exception], ...] = (*damages_of_parquet(), DoubtError, StopIteration)
    try:
        with contextlib.closing(plain.batches(0, MIN_PIECE, [role])) as batches:
            first = next(batches)[1].column(0)
        return _are_held(values_of(first), np.dtype(np.int32))
    except damages:
        return False


def _open(opened: Opened) -> Plain | None:
    """Return files that all have the same wanted columns, of the usual types; else None."""
    if opened.may_read_folders:
        return None
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    groups: list[RowGroup] = []
    names: dict[str, str] = {}
    types: dict[str, Any] = {}
    first = 0
    damages: tuple[type[Exception], ...] = (*damages_of_parquet(), ColumnError)
    listed: list[str] = []
    checked: Any = None  # the schema of the last file, which is mostly that of all
    for path in opened.files.paths:
        try:
            metadata = parquet.read_metadata(opened.files.source(path))
            schema = metadata.schema.to_arrow_schema()
            own = names if schema == checked else opened.roles(path, schema.names)
        except damages:
            return None
        if schema != checked:
            leaves = [metadata.schema.column(at).path for at in range(len(metadata.schema))]
            if any(leaves.count(name) != 1 for name in own.values()):
                return None  # PyArrow reads the column "a.b" and the field b of a column a by the same name
            kinds = {role: schema.field(name).type for role, name in own.items()}
            if (checked and (own != names or kinds != types)) or not all(map(_is_usual, kinds, kinds.values())):
                return None
            names, types, checked = own, kinds, schema
            listed = listed or schema.names
        for nth in range(metadata.num_row_groups):
            rows = metadata.row_group(nth).num_rows
            groups.append(RowGroup(path, metadata, nth, first, rows))
            first += rows
    return Plain(opened.files, tuple(listed), names, types, tuple(groups))


def _is_usual(role: str, kind: Any) -> bool:
    """Return whether a column can be read without conversion."""
    name = str(kind)
    if _is_id_or_rank(role):
        return name in EXACT_INTEGERS or (name in STRINGS and role != "rank")
    return name in NUMBERS or (role == "label" and name == "bool")


def _kept_as(role: str, kind: Any, *, narrow: bool) -> np.dtype[Any] | None:
    """Return the type that values are kept in: as DuckDB gives them, or narrower; None for strings."""
    width = fixed_width(kind)
    if _is_id_or_rank(role):
        return np.dtype(np.int32) if narrow else width
    if role == "label" and str(kind) in ("bool", "int8"):
        return np.dtype(np.int8)
    return width if width == np.float32 else np.dtype(np.float64)


class _Room:
    """Memory for columns, and the bytes of strings read so far; threads ask it before they read more."""

    def __init__(self, size: Size, n_bytes: int) -> None:
        self._size = size._replace(text=0)
        self._n_bytes = n_bytes
        self._lock = threading.Lock()
        self.piece = PIECE_BYTES * max(size.values, 1) // max(size.text, 1)  # strings to read at once

    def holds(self, text: int) -> bool:
        """Return whether there is room for `text` more bytes of strings."""
        with self._lock:
            self._size = self._size.plus(Size(text=text))
            return self._size.n_bytes <= self._n_bytes


def size_of_plain(sides: Iterable[Plain]) -> Size:
    """Return the size of the wanted columns, from the footers and a sample of the strings."""
    size = Size()
    for plain in sides:
        metadata = {group.path: group.metadata for group in plain.groups}
        spared = plain.rows * sum(WIDEST - kept.itemsize for kept in plain.kept().values())
        own = size_of_parquet(plain.files, metadata.items(), set(plain.names.values()))
        size = size.plus(own).plus(Size(spared=spared))
    return size


def read_plain(found: Mapping[str, Plain], n_threads: int, size: Size, n_bytes: int) -> dict[str, Any] | None:
    """Read the files of each table as a PyArrow table of at most `n_bytes`; None if in doubt or without room."""
    for tables in (found, without_narrow(found)):
        with contextlib.suppress(WideError):
            return _read_tables(tables, n_threads, _Room(size, n_bytes))
    return None


def without_narrow(found: Mapping[str, Plain]) -> dict[str, Plain]:
    """Return the same columns, all integers as wide as in the files."""
    return {table: plain._replace(narrow=frozenset()) for table, plain in found.items()}


class WideError(Exception):
    """An integer that needs 64 bits in a column that was taken for narrow."""


def _read_tables(found: Mapping[str, Plain], n_threads: int, room: _Room) -> dict[str, Any] | None:
    """Read the files of each table; strings of one role get numbers in common if there are many."""
    rows = sum(plain.rows for plain in found.values())
    roles = {role for plain in found.values() for role in plain.types if plain.is_string(role)}
    numbered = {role: Numbering() for role in roles if MANY_STRINGS <= rows <= MAX_ROWS}
    damages: tuple[type[Exception], ...] = (*damages_of_parquet(), CollisionError, DoubtError)
    tables = {table: _Columns(plain, room, numbered) for table, plain in found.items()}
    runs = [(n_rows, columns, groups) for columns in tables.values() for groups, n_rows in columns.runs()]
    few = [run for run in runs if run[0] < MIN_SHARED * len(run[2])]  # in each row group
    many = [run for run in runs if run[0] >= MIN_SHARED * len(run[2])]
    many.sort(key=lambda run: -run[0])  # threads then end at about the same time

    def read(nth: int) -> None:
        _, columns, groups = many[nth]
        columns.read(groups)

    try:
        run_in_threads(read, range(len(many)), n_threads)
        for _, columns, groups in few:
            columns.read(groups)
        final = ascending_numbers(numbered, n_threads)
    except damages:
        return None
    return {table: columns.table(final, n_threads) for table, columns in tables.items()}


class _Columns:
    """Columns of a table, which threads fill, a run of row groups each."""

    def __init__(self, plain: Plain, room: _Room, numbered: Mapping[str, Numbering]) -> None:
        self._plain, self._room = plain, room
        self._numbered = {role: own for role, own in numbered.items() if role in plain.types}
        self._whole = {role: np.empty(plain.rows, width) for role, width in plain.kept().items()}
        self._codes = {role: np.empty(plain.rows, np.int32) for role in self._numbered}
        self._lists = {role: np.zeros(len(plain.groups), np.int64) for role in self._numbered}  # that gave the numbers
        others = [role for role in plain.types if role not in self._whole and role not in self._codes]
        self._chunks: dict[str, list[list[Any]]] = {role: [[] for _ in plain.groups] for role in others}
        n_strings = len(self._codes) + len(self._chunks)
        self._piece = max(MIN_PIECE, min(ROWS_PER_PIECE, room.piece // max(n_strings, 1)))  # rows to read at once

    def runs(self) -> Iterator[tuple[range, int]]:
        """Yield the places of neighbouring row groups to read at once, and their rows: a large one is alone."""
        first = n_rows = 0
        for at, group in enumerate(self._plain.groups):
            if at > first and n_rows + group.rows > self._piece:
                yield range(first, at), n_rows
                first, n_rows = at, 0
            n_rows += group.rows
        yield range(first, len(self._plain.groups)), n_rows

    def read(self, run: range) -> None:
        """Read a run in pieces that fit a cache; raise DoubtError in doubt or without room."""
        names = self._plain.names
        with contextlib.ExitStack() as stack:
            for role, numbering in self._numbered.items():
                self._lists[role][run.start : run.stop] = stack.enter_context(numbering.list_of_thread())
            pieces = (piece for at in run for piece in self._plain.batches(at, self._piece, names))
            if len(run) > 1:
                batches = [batch for _, batch in pieces]
                if batches:
                    self._take(_joined(batches, names), run.start, self._plain.groups[run.start].first)
                return
            for first, batch in pieces:
                self._take({role: batch.column(name) for role, name in names.items()}, run.start, first)

    def _take(self, found: Mapping[str, Any], at: int, first: int) -> None:
        """Keep the columns of a piece, whose rows begin at `first` among all rows, or those of groups from `at` on."""
        text = sum(bytes_of(found[role]) for role in (*self._codes, *self._chunks))
        if text and not self._room.holds(text):
            raise DoubtError
        for role, column in found.items():
            if role in self._whole:
                self._whole[role][first : first + len(column)] = _held(column, self._whole[role].dtype)
            elif role in self._codes:
                own = self._codes[role][first : first + len(column)]
                self._numbered[role].number(self._lists[role][at], column, own)
            else:
                self._chunks[role][at].append(column)

    def table(self, final: Mapping[str, tuple[list[Array], Any]], n_threads: int) -> Any:
        """Return a PyArrow table: columns named by role, strings with numbers as dictionaries."""
        import pyarrow as pa

        def renumber(at: int) -> None:
            group = self._plain.groups[at]
            for role, codes in self._codes.items():
                own = codes[group.first : group.first + group.rows]
                own[:] = final[role][0][self._lists[role][at]][own]

        run_in_threads(renumber, range(len(self._plain.groups)), n_threads)
        columns = []
        for role, kind in self._plain.types.items():
            if role in self._whole:
                columns.append(arrow_of(self._whole[role]))
            elif role in self._codes:
                columns.append(pa.DictionaryArray.from_arrays(arrow_of(self._codes[role]), final[role][1]))
            else:
                columns.append(pa.chunked_array([chunk for group in self._chunks[role] for chunk in group], kind))
        return pa.Table.from_arrays(columns, names=list(self._plain.types))


def _joined(batches: Sequence[Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the columns of batches by role."""
    import pyarrow as pa

    return {role: pa.concat_arrays([batch.column(name) for batch in batches]) for role, name in names.items()}


def _held(column: Any, kept: np.dtype[Any]) -> Array:
    """Return the values of a column; raise WideError or DoubtError for one that the type `kept` does not hold."""
    values = values_of(column)
    if len(values) and not _are_held(values, kept):
        raise WideError if kept == np.int32 else DoubtError
    return values.astype(kept, copy=False)


def _are_held(values: Array, kept: np.dtype[Any]) -> bool:
    """Return whether the type `kept` holds all of these values."""
    if values.dtype.kind == "f" or values.itemsize < 8:
        return True
    if kept == np.int32:
        return bool(values.min() >= INT32.min and values.max() <= INT32.max)
    if kept == np.float64:
        return bool(values.min() >= -MAX_EXACT_INTEGER and values.max() <= MAX_EXACT_INTEGER)
    return True

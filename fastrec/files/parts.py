"""Parquet files cut into parts, on disk if they do not fit in memory: each part has all rows of its users.

Row groups are cut by ranges of user ids while they are decoded, so that a part is read, grouped and evaluated in
memory: nothing is sorted on disk. Shuffled rows that fit in memory are cut there, since each part takes the memory of
the part before. Only files of plain, clean columns of numbers are cut; DuckDB sorts all others, and says what is wrong
with those that have a fault.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastrec.files.columns import DoubtError
from fastrec.files.formats.parquet import damages_of_parquet
from fastrec.files.parquet import Plain, WideError, groups_of, without_narrow
from fastrec.files.resources import Resources
from fastrec.inputs.grouping import in_parts
from fastrec.inputs.values import arrow_of
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.outputs import temporary_folder
from fastrec.runtime.threads import run_in_threads

__all__ = ["Parts", "cut_by_user", "cut_in_memory"]

Array = np.ndarray[Any, Any]
Tick = Callable[[int], Any]  # called with the rows that are done
MIN_PARTS, MAX_PARTS = 2, 256  # more would make many small reads
ROWS_PER_SAMPLE = 997  # rows for each user id in the sample that decides the ranges
MIN_PIECE, MAX_PIECE = 1 << 14, 1 << 20  # rows cut at once
BYTES_PER_CUT_ROW = 640  # of the memory, for each row that a thread cuts
BYTES_PER_ROW = 256  # of the memory, for each row of a part
LARGER = 2  # how many times as large as planned a part may be
ROWS_IN_MEMORY = 1 << 22  # of a part: smaller ones save memory, and take more steps of Python
PIECE_IN_MEMORY = 1 << 18  # rows cut at once
FIRST_ROWS = 1 << 13  # of a row group, which stand for all
FEW_EDGES = 32  # that are faster to compare with one by one than to search
LONG_RUN = 8  # rows of a user one after the other, on average, from which files are grouped by user


class _CutRows(NamedTuple):
    """Rows of a table that were cut together: where they are, by part."""

    first: int  # of its rows among those of the table
    at: Sequence[int]  # of each column, as `Store.append` returns it
    ends: Array  # int64 (n_parts + 1,): where the rows of each part begin


class Store(Protocol):
    """Keeps columns that threads append."""

    def append(self, columns: Iterable[Array]) -> Sequence[int]:
        """Keep columns; return where each is."""

    def read(self, at: int, first: int, out: Array) -> None:
        """Fill an array with the values of a column from `first` on."""


class _Kept:
    """A store in memory."""

    def __init__(self) -> None:
        self._columns: list[Array] = []
        self._lock = threading.Lock()

    def append(self, columns: Iterable[Array]) -> Sequence[int]:
        with self._lock:
            start = len(self._columns)
            self._columns += columns
            return range(start, len(self._columns))

    def read(self, at: int, first: int, out: Array) -> None:
        out[:] = self._columns[at][first : first + len(out)]


class _Spill:
    """A store in a temporary file."""

    def __init__(self, folder: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - `close` closes it
        self._lock = threading.Lock()
        self.close = self._file.close

    def append(self, columns: Iterable[Array]) -> Sequence[int]:
        starts = []
        with self._lock:
            for values in columns:
                starts.append(self._file.seek(0, os.SEEK_END))
                self._check(self._file.write(values.data), values)
        return starts

    def read(self, at: int, first: int, out: Array) -> None:
        self._file.seek(at + first * out.itemsize)
        self._check(self._file.readinto(out.data), out)

    def _check(self, n_bytes: int, values: Array) -> None:
        if n_bytes != values.nbytes:
            raise OSError("a temporary file took or gave too few bytes")


class _Table:
    """The rows of a table by part."""

    def __init__(self, plain: Plain, store: Store, edges: Array) -> None:
        self._plain, self._store, self._edges = plain, store, edges
        self._types = plain.kept()
        self._cuts: list[_CutRows] = []

    def cut(self, group: int, n_rows: int) -> None:
        """Cut a row group, in pieces of so many rows."""
        for first, columns in self._plain.pieces(group, n_rows):
            of_rows = _parts_of(columns[self._plain.users[0]], self._edges)
            moved, ends = in_parts((columns[role] for role in self._types), of_rows, len(self._edges) + 1)
            self._cuts.append(_CutRows(first, self._store.append(moved), ends))

    def arrange(self) -> Array:
        """Bring all that was cut into the order of the rows, and return the number of rows of each part."""
        self._cuts.sort(key=lambda cut: cut.first)
        sizes: Array = np.sum([np.diff(cut.ends) for cut in self._cuts], axis=0)
        return sizes

    def read(self, part: int) -> Any:
        """Return the rows of a part as a PyArrow table, columns named by role."""
        import pyarrow as pa

        sizes = [int(cut.ends[part + 1] - cut.ends[part]) for cut in self._cuts]
        whole = {role: np.empty(sum(sizes), kept) for role, kept in self._types.items()}
        done = 0
        for cut, size in zip(self._cuts, sizes, strict=True):
            for at, values in zip(cut.at, whole.values(), strict=True) if size else ():
                self._store.read(at, int(cut.ends[part]), values[done : done + size])
            done += size
        return pa.Table.from_arrays([arrow_of(values) for values in whole.values()], names=list(whole))


def _parts_of(users: Array, edges: Array) -> Array:
    """Return the part of each user id, uint16: the number of edges that are not above it."""
    if len(edges) > FEW_EDGES:
        return np.searchsorted(edges, users, side="right").astype(np.uint16)
    parts = np.zeros(len(users), np.uint16)
    for edge in edges:
        parts += users >= edge
    return parts


class Parts:
    """Tables in parts."""

    def __init__(self, found: Mapping[str, Plain], tables: Mapping[str, _Table], sizes: Array) -> None:
        self.found = found
        self._tables, self._sizes = tables, sizes

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables."""
        return int(self._sizes.sum())

    @property
    def largest(self) -> int:
        """The number of rows of the largest part."""
        return int(self._sizes.max())

    def batches(self, tick: Tick) -> Iterator[dict[str, Any]]:
        """Yield {table: rows} for each part, users in ascending order from part to part."""
        done = 0
        tick(done)
        for part, n_rows in enumerate(self._sizes.tolist()):
            if n_rows:
                with _doubting():
                    tables = {name: table.read(part) for name, table in self._tables.items()}
                yield tables
                done += n_rows
                tick(done)


def cut_by_user(
    stack: contextlib.ExitStack, found: Mapping[str, Plain], resources: Resources, tick: Tick
) -> Parts | None:
    """Cut the files of each table by user, in a folder that `stack` removes; None in doubt, or for too many parts."""
    if not found or not _can_cut(found, resources):
        return None
    with contextlib.ExitStack() as attempt, contextlib.suppress(DoubtError):
        folder = attempt.enter_context(temporary_folder(resources.temp_directory))
        for tables in (found, without_narrow(found)):
            with contextlib.suppress(WideError):
                with _doubting():
                    spill = attempt.enter_context(contextlib.closing(_Spill(folder)))
                parts = _cut_for_memory(tables, spill, resources, tick)
                stack.push(attempt.pop_all())
                return parts
    return None


@contextlib.contextmanager
def _doubting() -> Iterator[None]:
    """Turn faults of files into doubt: DuckDB reads the files again, and says what is wrong."""
    try:
        yield
    except damages_of_parquet() as error:
        raise DoubtError from error


def _can_cut(found: Mapping[str, Plain], resources: Resources) -> bool:
    return all(map(_has_plain_users, found.values())) and _n_parts(found, resources) <= MAX_PARTS


def _has_plain_users(plain: Plain) -> bool:
    """Return whether users have one id, and no column holds strings."""
    return len(plain.users) == 1 and not any(map(plain.is_string, plain.types))


def _n_parts(found: Mapping[str, Plain], resources: Resources) -> int:
    return 1 + sum(plain.rows for plain in found.values()) * BYTES_PER_ROW // resources.limit()


def _cut_for_memory(found: Mapping[str, Plain], spill: _Spill, resources: Resources, tick: Tick) -> Parts:
    """Cut tables into parts that fit in memory; raise `DoubtError` in doubt."""
    n_threads, n_parts = resolve_threads(resources.n_threads), _n_parts(found, resources)
    n_rows = min(max(resources.limit() // (BYTES_PER_CUT_ROW * n_threads), MIN_PIECE), MAX_PIECE)
    largest = _largest(found)
    parts = _cut(found, spill, _edges(_sample(largest, n_rows, n_threads), n_parts), n_rows, n_threads, tick)
    if parts.largest * BYTES_PER_ROW > LARGER * max(resources.limit(), BYTES_PER_ROW):
        raise DoubtError  # a user with many rows, or a sample that misleads
    return parts


def cut_in_memory(found: Mapping[str, Plain], n_threads: int, tick: Tick) -> Parts | None:
    """Cut the files of each table by user, in memory; None in doubt, and where it gains nothing."""
    n_parts = min(sum(plain.rows for plain in found.values()) // ROWS_IN_MEMORY, MAX_PARTS)
    if n_parts < MIN_PARTS or not all(map(_has_plain_users, found.values())):
        return None
    with contextlib.suppress(DoubtError):
        for tables in (found, without_narrow(found)):
            with contextlib.suppress(WideError):
                firsts = _first_users(_largest(tables), n_threads)
                if _are_grouped(firsts):
                    return None
                edges = _edges(np.sort(np.concatenate(firsts)), n_parts)
                return _cut(tables, _Kept(), edges, PIECE_IN_MEMORY, n_threads, tick)
    return None


def _first_users(plain: Plain, n_threads: int) -> list[Array]:
    """Return the users of the first rows of each row group."""

    def first_of(group: int) -> Array:
        with _doubting(), contextlib.closing(plain.pieces(group, FIRST_ROWS, plain.users)) as pieces:
            return next((columns[plain.users[0]] for _, columns in pieces), np.zeros(0, np.int64))

    return run_in_threads(first_of, range(len(plain.groups)), n_threads)


def _are_grouped(samples: Iterable[Array]) -> bool:
    """Return whether neighbouring rows mostly have the same user."""
    changes = sum(int(np.count_nonzero(users[1:] != users[:-1])) for users in samples)
    return changes * LONG_RUN < sum(map(len, samples))


def _largest(found: Mapping[str, Plain]) -> Plain:
    return max(found.values(), key=lambda plain: plain.rows)


def _cut(found: Mapping[str, Plain], store: Store, edges: Array, n_rows: int, n_threads: int, tick: Tick) -> Parts:
    """Cut tables at `edges`, the least user id of each part but the first, in pieces of so many rows."""
    tables = {name: _Table(plain, store, edges) for name, plain in found.items()}
    groups, done, lock = groups_of(found), 0, threading.Lock()
    tick(done)

    def cut(nth: int) -> None:
        nonlocal done
        name, at = groups[nth]
        with _doubting():
            tables[name].cut(at, n_rows)
        with lock:
            done += found[name].groups[at].rows
            tick(done)

    run_in_threads(cut, range(len(groups)), n_threads)
    return Parts(found, tables, np.sum([table.arrange() for table in tables.values()], axis=0))


def _edges(users: Array, n_parts: int) -> Array:
    """Return the least user id of each part but the first, so that parts are about equally large.

    `users` are those of a sample of the rows, ascending.
    """
    return np.unique(users[len(users) * np.arange(1, n_parts) // n_parts]) if len(users) else users


def _sample(plain: Plain, n_rows: int, n_threads: int) -> Array:
    """Return the user ids of a sample of all rows, ascending."""

    def sample(group: int) -> Array:
        users = [np.zeros(0, np.int64)]  # a row group may be empty
        with _doubting():
            for first, rows in plain.pieces(group, n_rows, plain.users):
                users.append(rows[plain.users[0]][-first % ROWS_PER_SAMPLE :: ROWS_PER_SAMPLE])
        return np.concatenate(users)

    users: Array = np.sort(np.concatenate(run_in_threads(sample, range(len(plain.groups)), n_threads)))
    return users

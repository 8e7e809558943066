"""Parquet files cut into parts, on disk if they do not fit in memory: each part has all rows of its users.

Row groups are cut by ranges of user ids while they are decoded, so that a part is read, grouped and evaluated in
memory: nothing is sorted on disk. Shuffled rows that fit in memory are cut there: each part of lists is evaluated in
the memory of the part before, and the parts of a log are grouped within a cache, and then evaluated together. Only
files of plain, clean columns of numbers are cut; DuckDB sorts all others, and says what is wrong with those that have a
fault.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from fastrec.files.columns import DoubtError
from fastrec.files.parquet import Grouped, Plain, PlainTables, WideError, doubting, groups_of, without_narrow
from fastrec.files.resources import Resources
from fastrec.inputs.grouping import Grouping, KeyParts, as_keys, group_rows, scatter_by, take_blocks
from fastrec.inputs.values import arrow_of
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.outputs import temporary_folder
from fastrec.runtime.threads import run_in_threads, share_threads

__all__ = ["ROWS_TO_EVALUATE", "ROWS_TO_GROUP", "Parts", "cut_by_user", "cut_in_memory"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")
Tick = Callable[[int], Any]  # called with the rows that are done
MIN_PARTS, MAX_PARTS = 2, 256  # more would make many small reads
ROWS_PER_SAMPLE = 997  # rows for each user id in the sample that decides the ranges
MIN_PIECE, MAX_PIECE = 1 << 14, 1 << 20  # rows cut at once
BYTES_PER_CUT_ROW = 640  # of the memory, for each row that a thread cuts
BYTES_PER_ROW = 256  # of the memory, for each row of a part
LARGER = 2  # how many times as large as planned a part may be
ROWS_TO_EVALUATE = 1 << 22  # of a part in memory: smaller ones save memory, and take more steps of Python
ROWS_TO_GROUP = 1 << 18  # of a part in memory whose rows are grouped: it fits a cache
PIECE_IN_MEMORY = 1 << 18  # rows cut at once
FIRST_ROWS = 1 << 13  # of a row group, which stand for all
GROUPS_TO_SAMPLE = 32  # row groups that tell whether a file is grouped by user
LONG_RUN = 8  # rows of a user one after the other, on average, from which files are grouped by user


class Store(Protocol):
    """Columns of a table. Rows that were cut together are stored together, by part. Threads may share a store."""

    def put(self, first: int, columns: Mapping[str, Array], parts: Array, starts: Array) -> None:
        """Keep the rows from `first` on; `parts` has the part of each, `starts` where each part begins among them."""

    def take(self, role: str, places: Array, indptr: Array) -> Array:
        """Return values of a column: block i begins at row places[i] and has indptr[i + 1] - indptr[i] rows."""

    def forget(self, role: str) -> None:
        """Free the memory of a column."""


class _Kept:
    """A store in memory."""

    def __init__(self, plain: Plain) -> None:
        self._columns = {role: np.empty(plain.rows, kept) for role, kept in plain.kept().items()}

    def put(self, first: int, columns: Mapping[str, Array], parts: Array, starts: Array) -> None:
        for role, values in columns.items():
            scatter_by(parts, starts, values, self._columns[role][first : first + len(values)])

    def take(self, role: str, places: Array, indptr: Array) -> Array:
        return take_blocks(self._columns[role], places, indptr, 1)

    def forget(self, role: str) -> None:
        del self._columns[role]


class _Spill:
    """A store in a temporary file."""

    def __init__(self, folder: str, plain: Plain) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - `close` closes it
        self._lock = threading.Lock()
        self._types = plain.kept()
        sizes = (plain.rows * kept.itemsize for kept in self._types.values())
        self._begins = dict(zip(self._types, itertools.accumulate(sizes, initial=0), strict=False))
        self.close = self._file.close

    def put(self, first: int, columns: Mapping[str, Array], parts: Array, starts: Array) -> None:
        for role, values in columns.items():
            moved = np.empty_like(values)
            scatter_by(parts, starts, values, moved)
            with self._lock:
                self._seek(role, first)
                self._check(self._file.write(moved.data), moved)

    def take(self, role: str, places: Array, indptr: Array) -> Array:
        values = np.empty(int(indptr[-1]), self._types[role])
        for place, (start, end) in zip(places.tolist(), itertools.pairwise(indptr.tolist()), strict=True):
            if start < end:
                with self._lock:
                    self._seek(role, place)
                    self._check(self._file.readinto(values[start:end].data), values[start:end])
        return values

    def forget(self, role: str) -> None:
        """Do nothing: the file is one."""

    def _seek(self, role: str, row: int) -> None:
        self._file.seek(self._begins[role] + row * self._types[role].itemsize)

    def _check(self, n_bytes: int, values: Array) -> None:
        if n_bytes != values.nbytes:
            raise OSError("a temporary file took or gave too few bytes")


class _Table:
    """The rows of a table by part."""

    def __init__(self, plain: Plain, store: Store, ranges: KeyParts) -> None:
        self.types, self.user = plain.kept(), plain.users[0]
        self._plain, self._store, self._ranges = plain, store, ranges
        self._cuts: list[tuple[int, Array]] = []  # of rows cut together: the first, and where each part begins
        self._places = np.zeros((0, ranges.n_parts + 1), np.int64)  # in the store: where parts of each cut begin

    def cut(self, group: int, n_rows: int) -> None:
        """Cut a row group, in pieces of so many rows."""
        for first, columns in self._plain.pieces(group, n_rows):
            parts, starts = self._ranges.find(columns[self.user])
            self._store.put(first, columns, parts, starts)
            self._cuts.append((first, starts))

    def arrange(self) -> Array:
        """Bring all that was cut into the order of the rows, and return the number of rows of each part."""
        self._cuts.sort(key=lambda cut: cut[0])
        self._places = np.stack([first + starts for first, starts in self._cuts])
        sizes: Array = np.diff(self._places, axis=1).sum(axis=0)
        return sizes

    def column(self, role: str, part: int) -> Array:
        """Return a column of the rows of a part."""
        places, ends = self._places[:, part], self._places[:, part + 1]
        return self._store.take(role, np.ascontiguousarray(places), np.append(0, np.cumsum(ends - places)))

    def forget(self, role: str) -> None:
        """Free the memory of a column."""
        self._store.forget(role)

    def read(self, part: int) -> Any:
        """Return the rows of a part as a PyArrow table, columns named by role."""
        import pyarrow as pa

        columns = [arrow_of(self.column(role, part)) for role in self.types]
        return pa.Table.from_arrays(columns, names=list(self.types))


class Parts(PlainTables):
    """Tables in parts."""

    def __init__(self, found: Mapping[str, Plain], tables: Mapping[str, _Table], sizes: Array) -> None:
        super().__init__(found)
        self._tables, self._sizes = dict(tables), sizes

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
                with doubting():
                    tables = {name: table.read(part) for name, table in self._tables.items()}
                yield tables
                done += n_rows
                tick(done)

    def take_grouped(self, n_threads: int) -> Grouped:
        """Return the rows of the only table by user, and free the memory of the parts."""
        ((_, own),) = self._tables.items()
        self._tables.clear()
        sizes, ends = self._sizes.tolist(), np.cumsum(self._sizes)

        def group(part: int, threads: int) -> Grouping:
            return group_rows(as_keys(own.column(own.user, part)), threads).ascending()

        groupings = share_threads(group, sizes, n_threads)
        own.forget(own.user)
        columns = {}
        for role, kept in own.types.items():
            if role != own.user:
                columns[role] = values = np.empty(ends[-1], kept)

                def move(part: int, _: int, role: str = role, values: Array = values) -> None:
                    values[ends[part] - sizes[part] : ends[part]] = groupings[part].take(own.column(role, part))

                share_threads(move, sizes, n_threads)
                own.forget(role)
        lengths = np.concatenate([np.diff(own.indptr) for own in groupings])
        return Grouped(columns, np.concatenate([own.ids for own in groupings]), np.append(0, np.cumsum(lengths)))


def cut_by_user(
    stack: contextlib.ExitStack, found: Mapping[str, Plain], resources: Resources, tick: Tick
) -> Parts | None:
    """Cut the files of each table by user, in a folder that `stack` removes; None in doubt, or for too many parts."""
    if not found or not _can_cut(found, resources):
        return None
    with contextlib.suppress(DoubtError):
        for tables in (found, without_narrow(found)):
            with contextlib.ExitStack() as attempt, contextlib.suppress(WideError):
                folder = attempt.enter_context(temporary_folder(resources.temp_directory))

                def spill(plain: Plain, attempt: contextlib.ExitStack = attempt, folder: str = folder) -> Store:
                    return attempt.enter_context(contextlib.closing(_Spill(folder, plain)))

                parts = _cut_for_memory(tables, spill, resources, tick)
                stack.push(attempt.pop_all())
                return parts
    return None


def _can_cut(found: Mapping[str, Plain], resources: Resources) -> bool:
    return all(map(_has_plain_users, found.values())) and _n_parts(found, resources) <= MAX_PARTS


def _has_plain_users(plain: Plain) -> bool:
    """Return whether users have one id, and no column holds strings."""
    return len(plain.users) == 1 and not any(map(plain.is_string, plain.types))


def _n_parts(found: Mapping[str, Plain], resources: Resources) -> int:
    return 1 + sum(plain.rows for plain in found.values()) * BYTES_PER_ROW // resources.limit()


def _cut_for_memory(
    found: Mapping[str, Plain], spill: Callable[[Plain], Store], resources: Resources, tick: Tick
) -> Parts:
    """Cut tables into parts that fit in memory; raise `DoubtError` in doubt."""
    n_threads, n_parts = resolve_threads(resources.n_threads), _n_parts(found, resources)
    n_rows = min(max(resources.limit() // (BYTES_PER_CUT_ROW * n_threads), MIN_PIECE), MAX_PIECE)
    largest = _largest(found)
    parts = _cut(found, spill, _edges(_sample(largest, n_rows, n_threads), n_parts), n_rows, n_threads, tick)
    if parts.largest * BYTES_PER_ROW > LARGER * max(resources.limit(), BYTES_PER_ROW):
        raise DoubtError  # a user with many rows, or a sample that misleads
    return parts


def cut_in_memory(
    found: Mapping[str, Plain],
    n_threads: int,
    tick: Tick,
    *,
    rows_per_part: int,
    if_grouped: Callable[[Mapping[str, Plain], Sequence[Array], int], T | None] = lambda *_: None,
) -> Parts | T | None:
    """Cut the files of each table by user, in memory; None in doubt, and where it gains nothing.

    Files that seem to be grouped by user are not cut, but passed to `if_grouped`, with the users of some rows and the
    number of threads.
    """
    n_parts = min(sum(plain.rows for plain in found.values()) // rows_per_part, MAX_PARTS)
    if n_parts < MIN_PARTS or not all(map(_has_plain_users, found.values())):
        return None
    with contextlib.suppress(DoubtError):
        for tables in (found, without_narrow(found)):
            with contextlib.suppress(WideError):
                largest = _largest(tables)
                groups = range(len(largest.groups))
                some = groups[:: -(-len(groups) // GROUPS_TO_SAMPLE)]
                firsts = _first_users(largest, some, n_threads)
                if _are_grouped(firsts):
                    return if_grouped(tables, firsts, n_threads)
                firsts += _first_users(largest, [at for at in groups if at not in some], n_threads)
                edges = _edges(np.sort(np.concatenate(firsts)), n_parts)
                return _cut(tables, _Kept, edges, PIECE_IN_MEMORY, n_threads, tick)
    return None


def _first_users(plain: Plain, groups: Sequence[int], n_threads: int) -> list[Array]:
    """Return the users of the first rows of some row groups."""

    def first_of(group: int) -> Array:
        with doubting(), contextlib.closing(plain.pieces(group, FIRST_ROWS, plain.users)) as pieces:
            return next((columns[plain.users[0]] for _, columns in pieces), np.zeros(0, np.int64))

    return run_in_threads(lambda nth: first_of(groups[nth]), range(len(groups)), n_threads)


def _are_grouped(samples: Iterable[Array]) -> bool:
    """Return whether neighbouring rows mostly have the same user."""
    changes = sum(int(np.count_nonzero(users[1:] != users[:-1])) for users in samples)
    return changes * LONG_RUN < sum(map(len, samples))


def _largest(found: Mapping[str, Plain]) -> Plain:
    return max(found.values(), key=lambda plain: plain.rows)


def _cut(
    found: Mapping[str, Plain],
    store: Callable[[Plain], Store],
    edges: Array,
    n_rows: int,
    n_threads: int,
    tick: Tick,
) -> Parts:
    """Cut tables at `edges`, the least user id of each part but the first, in pieces of so many rows."""
    ranges = KeyParts(edges.astype(np.int64))
    with doubting():
        tables = {name: _Table(plain, store(plain), ranges) for name, plain in found.items()}
    groups, done, lock = groups_of(found), 0, threading.Lock()
    tick(done)

    def cut(nth: int) -> None:
        nonlocal done
        name, at = groups[nth]
        with doubting():
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
        with doubting():
            for first, rows in plain.pieces(group, n_rows, plain.users):
                users.append(rows[plain.users[0]][-first % ROWS_PER_SAMPLE :: ROWS_PER_SAMPLE])
        return np.concatenate(users)

    users: Array = np.sort(np.concatenate(run_in_threads(sample, range(len(plain.groups)), n_threads)))
    return users

"""Files as tables: whole in memory, in a database, or in parts of users on disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.files.columns import (
    ITEMS,
    LABELLED,
    USERS,
    ImpressionColumns,
    ListColumns,
    RowColumns,
    SlateColumns,
    TooLargeError,
    users_of,
)
from fastrec.files.database import read_table
from fastrec.files.formats.base import quoted
from fastrec.files.in_memory import is_readable, read_tables
from fastrec.files.items import ID_TYPES, read_items_of
from fastrec.files.opened import Opened, open_files, size_of_sides
from fastrec.files.partitions import RowPartitions
from fastrec.files.paths import unchanged
from fastrec.files.sizes import Size, size_of_rows
from fastrec.files.tables import (
    File,
    check_groupings,
    joint_kind,
    label_sql,
    labels_are_strings,
    load,
    number_sql,
    open_database,
    string_bytes,
    used_bytes,
)
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.items import ItemTable
from fastrec.inputs.users import UserLabels
from fastrec.report.report import Report
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.memory import keep_freed_memory
from fastrec.runtime.outputs import temporary_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.scored.score_counts import ScoreCounts
from fastrec.files.labels import segment_sql, with_labels
from fastrec.files.resources import Progress, Resources, Watch

__all__ = [
    "EVALUATING",
    "Data",
    "Evaluated",
    "FileJob",
    "Whole",
    "batches",
    "roles_of_lists",
    "roles_of_log",
]


Array = np.ndarray[Any, Any]
T = TypeVar("T")
AnyColumns = TypeVar("AnyColumns", bound=ListColumns | RowColumns | ImpressionColumns | SlateColumns)
Roles = Callable[[Mapping[str, File]], tuple[tuple[str, ...], tuple[str, ...]]]  # -> roles of users, of ids
COPIES = 4  # of the columns, in memory at once while files are evaluated whole
ROWS_AT_ONCE = 1 << 16
BUFFERS_OF_JSON = 64_000_000  # more bytes that DuckDB may need to read long lines
PARTITIONING, EVALUATING = "partitioning", "evaluating"  # names of stages


def _begin(watch: Watch, n_rows: int) -> Progress:
    """Return a callback that turns progress in users into progress in rows, when all users are evaluated at once."""
    watch(EVALUATING, 0, n_rows)
    return lambda done, total: watch(EVALUATING, n_rows * done // total, n_rows)


class Evaluated(NamedTuple):
    """A report on files, and the columns of its users."""

    report: Report
    users: dict[str, Array]  # column -> id of each user; empty unless the report has values per user
    groups: dict[str, Array]  # column -> label of each user; likewise
    score_counts: Mapping[
        tuple[str, Any] | None, ScoreCounts
    ] = {}  # of all rows of a log (None) and of groups, if kept
    users_by_bin: Mapping[tuple[str, Any] | None, Array] = {}  # tables of `fastrec.scored.clusters`, likewise


class _Loaded(NamedTuple):
    """Checked tables of a database, and the types of their ids."""

    con: DuckDBPyConnection
    files: dict[str, File]
    ids: dict[str, str]  # role -> type in SQL
    users: tuple[str, ...]  # the columns that make users
    numbered: frozenset[str]  # the columns of labels of users that are integers if all labels spell integers
    streamed: Resources | None = None  # limits while rows are streamed; None: read all rows at once
    folder: str = ""  # for temporary files, if rows are streamed

    def text_of(self, file: File) -> int:
        """Return the bytes of the ids of a file that are strings."""
        roles = [role for role, type_ in self.ids.items() if type_ == "VARCHAR" and role in file.names]
        return string_bytes(self.con, file.table, roles)

    def size(self) -> Size:
        """Return the size of the rows to evaluate."""
        total = Size()
        for file in self.files.values():
            total = total.plus(size_of_rows(file.rows, len(file.names), self.text_of(file)))
        return total


class _Select(NamedTuple):
    """The SQL of the rows of a table, with columns c0, c1, ...: names in SQL ignore case and may not be empty."""

    sql: str
    names: list[str]  # of the columns


@dataclass
class Data:
    """Checked tables, and the SQL that reads their rows."""

    loaded: _Loaded
    selects: dict[str, _Select]
    watch: Watch
    cursor: Any = None
    partitions: RowPartitions | None = None  # all rows, once they were read for the first time, if they are streamed

    @classmethod
    def of(cls, loaded: _Loaded, tables: Iterable[str], numbers: Sequence[str], watch: Watch) -> Data:
        """Return the rows of tables, with labels of users; `numbers` are roles of columns of numbers."""
        files = {table: file for table, file in loaded.files.items() if table in {*tables, USERS}}
        return cls(loaded, {table: _select(loaded, file, numbers) for table, file in files.items()}, watch)

    @property
    def con(self) -> DuckDBPyConnection:
        """The connection to the database."""
        return self.loaded.con

    @property
    def rows(self) -> dict[str, int]:
        """{table: number of rows}."""
        return {table: self.loaded.files[table].rows for table in self.selects}

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables."""
        return sum(self.rows.values())

    def progress(self) -> Progress | None:
        """Return the callback for the users of a batch; None if rows are streamed."""
        return None if self.loaded.streamed else _begin(self.watch, self.n_rows)


class Whole(NamedTuple):
    """Files that were read without a database."""

    tables: dict[str, Any]  # columns named as in the files
    names: dict[str, Mapping[str, str]]  # {role: column} of each table
    listed: dict[str, tuple[str, ...]]  # all columns of the files of each table
    items: ItemTable | None  # the table of items, read by a database of its own

    @property
    def n_rows(self) -> int:
        """The number of rows of all tables."""
        return sum(map(len, self.tables.values()))


class FileJob(NamedTuple, Generic[AnyColumns]):
    """Arguments that the evaluation of lists and of rows share."""

    opened: Mapping[str, Opened]
    columns: AnyColumns
    resources: Resources
    watch: Watch
    labels_by_user: UserLabels | None

    @classmethod
    def open(
        cls,
        paths: Mapping[str, str | os.PathLike[str]],
        columns: AnyColumns,
        resources: Resources,
        watch: Watch,
        input_format: str,
        labels_by_user: UserLabels | None = None,
    ) -> FileJob[AnyColumns]:
        """Find and recognise the files of each table."""
        opened = open_files(paths, columns, input_format)
        return cls(opened, columns, resources, watch, labels_by_user)

    def database(self, roles: Roles) -> contextlib.AbstractContextManager[_Loaded]:
        """Open the files as tables of a database; `roles` as in `_database`."""
        return _database(self.opened, self.columns.by, self.resources, roles)

    def read_whole(self) -> Whole | None:
        """Read tables that fit in memory and need no database; return None if they need one."""
        keep_freed_memory()
        sides = {table: side for table, side in self.opened.items() if table != ITEMS}
        if not is_readable(sides):
            return None
        with self._unchanged():
            limit, size, items = self.resources.limit() // COPIES, size_of_sides(sides.values()), None
            if size.n_bytes > limit:
                return None
            with loading_kernels(size.values):
                tables = read_tables(sides, resolve_threads(self.resources.n_threads), limit)
            if tables is not None and ITEMS in self.opened:
                items = self._read_items(are_strings=tables["recs"].is_string("item"))
        if tables is None or (items is None and ITEMS in self.opened):
            return None
        rows, names, listed = (
            {table: getattr(own, part) for table, own in tables.items()} for part in ("rows", "names", "listed")
        )
        columns = next(iter(names.values()))
        try:
            rows = with_labels(rows, [columns[role] for role in users_of(columns)])
        except FastrecError:  # reading the files again raises it with their names
            return None
        return Whole(rows, names, listed, items)

    def _unchanged(self) -> contextlib.AbstractContextManager[None]:
        return unchanged({path: stamp for side in self.opened.values() for path, stamp in side.stamps.items()})

    def _read_items(self, *, are_strings: bool) -> ItemTable | None:
        """Return the table of items; None if it is large, or if its ids may match those of the lists in another way."""
        try:
            with open_database(self.resources.n_threads, memory=self.resources.of_database()) as con:
                file = load(con, self.opened[ITEMS])
                kind = joint_kind(con, "item", [file])
                return read_items_of(con, file, ID_TYPES[kind]) if (kind == "string") == are_strings else None
        except TooLargeError:
            return None

    def take_whole(self, n_rows: int, update: Callable[[Progress], Any]) -> bool:
        """Add tables of so many rows with `update` and return whether that worked.

        If it fails, reading the files again with DuckDB raises the error, with the file and the row.
        """
        try:
            update(_begin(self.watch, n_rows))
        except FastrecError:
            return False
        return True


def roles_of_lists(files: Mapping[str, File]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the roles of the columns that make users, and those of all ids."""
    users = users_of(dict.fromkeys(role for file in files.values() for role in file.names))
    return users, (*users, "item")


def roles_of_log(files: Mapping[str, File]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the roles of the columns that make users, and those of all ids, of a log, which may lack both."""
    names = files["log"].names
    users = users_of(names)
    return users, (*users, "item") if "item" in names else users


@contextlib.contextmanager
def _database(
    opened: Mapping[str, Opened], by: tuple[str, ...], resources: Resources, roles: Roles
) -> Iterator[_Loaded]:
    """Open files as tables of a database: in memory if they and their evaluation fit there, else on disk.

    `roles` checks the tables and returns the columns that make users and those that are ids. The database on disk is
    removed afterwards.
    """

    def read(con: DuckDBPyConnection, streamed: Resources | None, folder: str) -> _Loaded:
        files = {table: load(con, side) for table, side in opened.items()}
        users, of_ids = roles(files)
        check_groupings(files, by)
        ids = _types_of_ids(con, files, of_ids)
        having = [file for table, file in files.items() if table in LABELLED]
        numbered = {name for nth, name in enumerate(by) if not labels_are_strings(con, having, f"by{nth}")}
        named = next(iter(files.values())).names
        return _Loaded(con, files, ids, tuple(named[role] for role in users), frozenset(numbered), streamed, folder)

    n_bytes = size_of_sides(opened.values()).n_bytes
    with contextlib.ExitStack() as stack:
        loaded = _load_in_memory(stack, read, resources) if COPIES * n_bytes <= resources.limit() else None
        if loaded is None:
            n_threads = resolve_threads(resources.n_threads)
            try:
                loaded = _load_on_disk(stack, read, resources, n_threads)
            except TooLargeError:  # each reading thread has its own buffers, and those for JSON are large
                loaded = _load_on_disk(stack, read, resources, 1, BUFFERS_OF_JSON)
        yield loaded


def _load_on_disk(
    stack: contextlib.ExitStack,
    read: Callable[[DuckDBPyConnection, Resources, str], _Loaded],
    resources: Resources,
    n_threads: int,
    more: int = 0,
) -> _Loaded:
    """Load tables into a database on disk, which `stack` closes and removes."""
    with contextlib.ExitStack() as attempt:
        folder = attempt.enter_context(temporary_folder(resources.temp_directory))
        con = attempt.enter_context(open_database(n_threads, folder, resources.of_database() + more))
        loaded = read(con, resources, folder)
        stack.push(attempt.pop_all())
        return loaded


def _load_in_memory(
    stack: contextlib.ExitStack, read: Callable[[DuckDBPyConnection, None, str], _Loaded], resources: Resources
) -> _Loaded | None:
    """Load tables into memory, which `stack` closes; return None if they do not fit."""
    try:
        with contextlib.ExitStack() as attempt:
            con = attempt.enter_context(open_database(resources.n_threads, memory=resources.of_database()))
            loaded = read(con, None, "")
            if used_bytes(con) + COPIES * loaded.size().n_bytes > resources.limit():
                return None
            con.execute(f"SET memory_limit = '{resources.limit()}B'")
            stack.push(attempt.pop_all())
            return loaded
    except TooLargeError:
        return None


def _types_of_ids(con: DuckDBPyConnection, files: Mapping[str, File], roles: Sequence[str]) -> dict[str, str]:
    """Return {role: SQL type of its ids}, the same in all files."""
    types = {}
    for role in roles:
        kind = joint_kind(con, role, [file for file in files.values() if role in file.names])
        types[role] = ID_TYPES[kind]
    return types


def _select(loaded: _Loaded, file: File, numbers: Sequence[str]) -> _Select:
    """Return what reads the rows of a file; `numbers` are roles of columns of numbers."""
    picked: dict[str, str] = {}
    for role, name in file.names.items():
        if role in loaded.ids:
            sql = f"CAST(t.{quoted(role)} AS {loaded.ids[role]})"
        elif role in numbers:
            sql = number_sql(file, role)
        elif role.startswith("by"):
            sql = label_sql(file, role, "t.")
        elif role.startswith("row_by"):
            sql = segment_sql(loaded.con, file, role)
        else:
            continue
        picked.setdefault(name, sql)
    listed = ", ".join(f"{sql} AS c{nth}" for nth, sql in enumerate(picked.values()))
    return _Select(f"SELECT {listed} FROM {quoted(file.table)} AS t", list(picked))


def batches(data: Data, *, again: bool = False) -> Iterator[dict[str, Any]]:
    """Yield batches {table: rows}; each batch has all rows of its users. `again`: not for the first time."""
    resources, users = data.loaded.streamed, data.loaded.users
    if resources is None:
        read = (
            (table, read_table(data.con, sql).rename_columns(names)) for table, (sql, names) in data.selects.items()
        )
        yield with_labels(dict(read), users)
        return
    text = sum(data.loaded.text_of(data.loaded.files[table]) / max(rows, 1) for table, rows in data.rows.items())
    n_rows, done = resources.batch_rows(text), 0
    if users and not (again and data.partitions):
        data.partitions = _part(data, resources, n_rows)
    parts = _plain_batches(data, n_rows) if data.partitions is None else data.partitions.batches(n_rows)
    data.watch(EVALUATING, done, data.n_rows)
    for batch in parts:
        done += sum(len(rows) for rows in batch.values())
        yield with_labels(batch, users)
        data.watch(EVALUATING, done, data.n_rows)
    if not done:  # as rows that are read at once
        yield with_labels({table: _rows(data, table, 1).schema.empty_table() for table in data.selects}, users)


def _plain_batches(data: Data, n_rows: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of nobody as they come."""
    import pyarrow as pa

    return ({table: pa.table(rows)} for table in data.selects for rows in _rows(data, table, n_rows))


def _part(data: Data, resources: Resources, n_rows: int) -> RowPartitions:
    """Put the rows of all tables into parts of whole users, for batches of `n_rows` rows."""
    n_batches, done = -(-max(data.rows.values(), default=0) // n_rows), 0
    partitions = RowPartitions(data.loaded.folder, data.loaded.users, n_batches, resources.of_packing())
    for table in data.selects:

        def tick(added: int, before: int = done) -> None:
            data.watch(PARTITIONING, before + added, data.n_rows)

        tick(0)
        rows = _rows(data, table, min(n_rows, ROWS_AT_ONCE))
        partitions.add(table, rows.schema.empty_table(), rows, tick)
        done += data.rows[table]
    return partitions


def _rows(data: Data, table: str, n_rows: int) -> Any:
    """Return an Arrow reader of the rows of a table, about `n_rows` at once."""
    import pyarrow as pa

    data.cursor = data.con.cursor()  # an older DuckDB closes a cursor that has no reference
    rows, names = data.cursor.sql(data.selects[table].sql), data.selects[table].names
    # DuckDB renamed the method in version 2
    read = "to_arrow_reader" if hasattr(rows, "to_arrow_reader") else "fetch_arrow_reader"
    reader = getattr(rows, read)(n_rows)
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    named = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, named)

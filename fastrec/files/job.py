"""The rows of the files of a call: whole in memory, or in parts of users on disk."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.files.columns import ITEMS, USERS, FileColumns, TooLargeError, users_of
from fastrec.files.faults import named_as_in
from fastrec.files.ids import check_groupings, groupings_of_integers, joint_types
from fastrec.files.in_memory import read_parquet
from fastrec.files.items import read_items_of
from fastrec.files.labels import with_labels
from fastrec.files.opened import Opened, open_files
from fastrec.files.partitions import RowPartitions
from fastrec.files.paths import unchanged
from fastrec.files.reader import TableReader
from fastrec.files.resources import Progress, Resources, Watch
from fastrec.inputs.grouping import loading_kernels
from fastrec.inputs.items import ItemTable
from fastrec.inputs.strings import bytes_of
from fastrec.inputs.users import as_labels
from fastrec.report.order import sorted_by_user
from fastrec.report.report import Report, record
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.memory import keep_freed_memory
from fastrec.runtime.outputs import temporary_folder

if TYPE_CHECKING:
    from fastrec.scored.score_counts import ScoreCounts

Array = np.ndarray[Any, Any]
Table = Any  # pyarrow.Table
AnyColumns = TypeVar("AnyColumns", bound=FileColumns)
INTEGER = re.compile(r"-?[0-9]+")
COPIES = 4  # of the columns, in memory at once while files are evaluated whole
PARTITIONING, EVALUATING = "partitioning", "evaluating"  # names of stages


class Evaluated(NamedTuple):
    """A report on files, and the columns of its users."""

    report: Report
    users: dict[str, Array]  # column -> id of each user; empty unless the report has values per user
    groups: dict[str, Array]  # column -> label of each user; likewise
    score_counts: Mapping[
        tuple[str, Any] | None, ScoreCounts
    ] = {}  # of all rows of a log (None) and of groups, if kept
    users_by_bin: Mapping[tuple[str, Any] | None, Array] = {}  # tables of `fastrec.scored.clusters`, likewise


def finished(report: Report, rows: FileRows) -> Evaluated:
    """Return a report with the columns of its users."""
    report, users = _with_numbers(sorted_by_user(report), rows.numbered), rows.users
    record(report, [remark for reader in rows.readers.values() for remark in reader.format.remarks])
    ids = report.user_ids
    if ids is None or not report.has_values:
        return Evaluated(report, {}, {})
    columns = [ids] if len(users) == 1 else [as_labels(list(column)) for column in zip(*ids.tolist(), strict=True)]
    return Evaluated(report, dict(zip(users, columns, strict=True)), dict(report.labels))


def _with_numbers(report: Report, names: Collection[str]) -> Report:
    """Return a report with integers in place of the labels of some groupings, if all of them spell integers."""
    numbers = {
        name: {label: int(label) for label in own}
        for name, own in report.groups.items()
        if name in names and all(INTEGER.fullmatch(str(label)) for label in own)
    }
    if not numbers:
        return report
    groups: dict[str, Any] = {
        name: dict(sorted((numbers[name][label], own) for label, own in by.items())) if name in numbers else by
        for name, by in report.groups.items()
    }
    labels = {name: own.astype(np.int64) if name in numbers else own for name, own in report.labels.items()}
    return report.with_groups(groups, labels, {name: name for name in labels})


def _columns_of_users(readers: Mapping[str, TableReader]) -> tuple[str, ...]:
    names = next(iter(readers.values())).names
    return tuple(names[role] for role in users_of(names))


class FileRows(NamedTuple):
    """The rows of the files of a call."""

    readers: Mapping[str, TableReader]  # of each table
    items: ItemTable | None
    is_streamed: bool  # whether there are several batches
    n_rows: int  # of all tables
    parts: Callable[[Collection[str]], Iterator[dict[str, Table]]]  # returns batches {table: rows of whole users}
    watch: Watch
    numbered: frozenset[str] = frozenset()  # groupings of integers whose labels are strings, as a batch may lack some

    @property
    def users(self) -> tuple[str, ...]:
        """The columns that make users."""
        return _columns_of_users(self.readers)

    def batches(self) -> Iterator[dict[str, Table]]:
        """Yield batches of all tables of rows, with labels of users."""
        done, tables = 0, [table for table in self.readers if table != ITEMS]
        for batch in self.parts(tables):
            n_rows = sum(map(len, batch.values()))
            with self.named():
                labelled = with_labels(batch, self.users)
            batch.clear()
            if self.is_streamed:
                self.watch(EVALUATING, done, self.n_rows)
            yield labelled
            done += n_rows
            if self.is_streamed:
                self.watch(EVALUATING, done, self.n_rows)

    def named(self) -> contextlib.AbstractContextManager[None]:
        """Make the errors of a block name files."""
        return named_as_in(self.readers, streamed=self.is_streamed)

    def progress(self) -> Progress | None:
        """Return the callback for the users of a batch; None if there are several batches."""
        if self.is_streamed:
            return None
        self.watch(EVALUATING, 0, self.n_rows)
        return lambda done, total: self.watch(EVALUATING, self.n_rows * done // total, self.n_rows)


class FileJob(NamedTuple, Generic[AnyColumns]):
    """Arguments that the evaluation of lists and of rows share."""

    opened: Mapping[str, Opened]
    columns: AnyColumns
    resources: Resources

    @classmethod
    def open(
        cls,
        paths: Mapping[str, str | os.PathLike[str]],
        columns: AnyColumns,
        resources: Resources,
    ) -> FileJob[AnyColumns]:
        """Find and recognise the files of each table."""
        return cls(open_files(paths, columns, resources.input_format, resources.n_threads), columns, resources)

    @contextlib.contextmanager
    def rows(self, *, numbered: bool = False) -> Iterator[FileRows]:
        """Read the files: whole if they and their evaluation fit in memory, else into parts on disk.

        With `numbered`, a column has the position of each row.
        """
        keep_freed_memory()
        with self._unchanged():
            tables = {*self.opened} - {USERS} if numbered else set[str]()
            readers = {table: TableReader(side, numbered=table in tables) for table, side in self.opened.items()}
            check_groupings(readers, self.columns.by)
            sizes, limit = [reader.size for reader in readers.values()], self.resources.limit() // COPIES
            found = None
            if sum(size.n_bytes for size in sizes) <= limit:
                with loading_kernels(sum(size.values for size in sizes)), contextlib.suppress(TooLargeError):
                    found = self._read_whole(readers, limit)
        if found is not None:
            yield found
            return
        with temporary_folder(self.resources.temp_directory) as folder:
            with self._unchanged(), _naming_full_disks(folder):
                streamed = self._partition(readers, folder)
            yield streamed

    def _unchanged(self) -> contextlib.AbstractContextManager[None]:
        return unchanged({path: stamp for side in self.opened.values() for path, stamp in side.stamps.items()})

    def _read_whole(self, readers: Mapping[str, TableReader], limit: int) -> FileRows:
        """Read all rows; raise TooLargeError for a table with more bytes than the limit."""
        n_threads = resolve_threads(self.resources.n_threads)
        plain = {table: read_parquet(reader, n_threads, limit) for table, reader in readers.items() if table != ITEMS}
        held = {table: _read_batches(reader, limit) for table, reader in readers.items() if plain.get(table) is None}
        kinds = joint_types(readers)
        tables = {table: own for table, own in plain.items() if own is not None}
        tables |= {table: readers[table].table_of(held.pop(table), kinds[table]) for table in list(held)}
        tables = {table: tables[table] for table in readers}
        plain.clear()
        items = read_items_of(readers[ITEMS], tables.pop(ITEMS)) if ITEMS in readers else None
        n_rows = sum(len(rows) for table, rows in tables.items() if table != USERS)

        def parts(wanted: Collection[str]) -> Iterator[dict[str, Table]]:
            found = {table: rows for table, rows in tables.items() if table in wanted}
            if len(found) == len(tables):
                tables.clear()  # an evaluator may need the memory
            yield found

        return FileRows(readers, items, is_streamed=False, n_rows=n_rows, parts=parts, watch=self.resources.watch)

    def _partition(self, readers: Mapping[str, TableReader], folder: str) -> FileRows:
        """Put the rows of all tables into parts of whole users; read the table of items whole."""
        import pyarrow as pa

        sizes = {table: reader.size for table, reader in readers.items() if table != ITEMS}
        n_rows = {table: size.values // max(len(readers[table].schema), 1) for table, size in sizes.items()}
        text = sum(size.text / max(n_rows[table], 1) for table, size in sizes.items())
        longest = max(readers[table].values_per_row() for table in n_rows)
        of_batch, total = max(int(self.resources.batch_rows(text) / longest), 1), sum(n_rows.values())
        n_batches = -(-max(n_rows.values()) // of_batch)
        items = _read_batches(readers[ITEMS], self.resources.limit()) if ITEMS in readers else []
        partitions = RowPartitions(folder, _columns_of_users(readers), n_batches, self.resources)
        done = 0
        for table in n_rows:

            def tick(added: int, before: int = done) -> None:
                self.resources.watch(PARTITIONING, before + added, max(total, before + added))

            tick(0)
            partitions.add(table, readers[table].batches(checked=True), tick)
            done += partitions.n_rows[table]
        kinds = joint_types(readers)
        numbered = groupings_of_integers(readers, kinds, self.columns.by)
        for table, reader in readers.items():
            kinds[table] |= {name: pa.string() for name in numbered if name in reader.schema}
        table_of_items = None
        if ITEMS in readers:
            table_of_items = read_items_of(readers[ITEMS], readers[ITEMS].table_of(items, kinds[ITEMS]))

        def parts(wanted: Collection[str]) -> Iterator[dict[str, Table]]:
            found = False
            for batch in partitions.batches(of_batch, wanted):
                found = True
                yield {table: readers[table].table_of(rows, kinds[table], packed=True) for table, rows in batch.items()}
            if not found:  # as rows that are read at once
                yield {table: readers[table].table_of([], kinds[table], packed=True) for table in wanted}

        given: dict[str, Any] = {"n_rows": done, "parts": parts, "watch": self.resources.watch, "numbered": numbered}
        return FileRows(readers, table_of_items, is_streamed=True, **given)


def _read_batches(reader: TableReader, limit: int) -> list[Any]:
    """Return all rows of a table; raise TooLargeError if they have more bytes than the limit."""
    found, n_bytes = [], 0
    dictionaries: set[int] = set()
    for batch in reader.batches(checked=reader.numbered or reader.table == USERS):
        n_bytes += sum(_own_bytes(column, dictionaries) for column in batch.columns)
        if n_bytes > limit:
            raise TooLargeError(reader.path, ": the rows do not fit in memory")
        found.append(batch)
    return found


def _own_bytes(column: Any, dictionaries: set[int]) -> int:
    """Return the bytes of a column; a dictionary that several batches share counts once."""
    if not hasattr(column, "dictionary"):
        return bytes_of(column)
    place = next((buffer.address for buffer in column.dictionary.buffers()[::-1] if buffer is not None), 0)
    is_known = place in dictionaries
    dictionaries.add(place)
    return bytes_of(column.indices) + (0 if is_known else bytes_of(column.dictionary))


@contextlib.contextmanager
def _naming_full_disks(folder: str) -> Iterator[None]:
    """Name the folder of temporary files in an error of a disk that is full."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        advice = "name another folder (temp_directory, --temp-dir)"
        raise FastrecError(f"the folder for temporary files is full: {folder}; {advice}") from error

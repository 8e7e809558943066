"""Parquet files that Spark has written in buckets of users: tasks read them by themselves, and nothing is shuffled.

Spark names the bucket of a file in its name. Tasks trust no name: they hash the user of every row as Spark does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import printable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np

from fastrec.engines.job import Job, one_row
from fastrec.engines.packets import join_batches, with_plain_types
from fastrec.spark.bucket_hash import WIDTHS, hashes_of

if TYPE_CHECKING:
    from fastrec.spark.side import FrameSide

__all__ = ["MOUNTED", "find_buckets", "states_or_refusal"]

Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
Schema = Any  # pyarrow.Schema
NAME = re.compile(r".*_(\d{1,9})(?:\..*)?")  # of a file of a bucket, as Spark names it
MAX_BUCKETS = 100_000  # Spark's own limit, unless a setting raises it
MOUNTED = "file:"  # the beginning of URIs that all nodes read alike
FIRST_ROWS = 1 << 16  # of a file, which tell the number of buckets
FIRST_FILES = 8  # at most: small ones tell it together
ROWS_AT_ONCE = 1 << 20
READ_ALIKE = re.compile(r"({0})|list<\w+: ({0})>".format(r"int\d+|float|double|bool|string"))  # types


class OtherReaderError(Exception):
    """Raised for files that Spark must read: tasks cannot, or not as Spark does, or rows are in other buckets."""


def states_or_refusal(job: Job, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield what `Job.states` does, or the row of an error if Spark must read the files."""
    try:
        yield from job.states(batches)
    except OtherReaderError as error:
        yield one_row(state=None, error=OtherReaderError.__name__, message=str(error))


class BucketFiles(NamedTuple):
    """Where the rows of each user are: in the files of one bucket, on all sides."""

    number: int
    user: str  # the column
    files: Mapping[str, Sequence[Sequence[str]]]  # {side: the URIs of the files of each bucket}
    schemas: Mapping[str, Schema]  # {side: the columns to read}

    def tables(self, batches: Iterable[Batch], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
        """Yield {side: rows} for each bucket whose number is in the only column of `batches`.

        `empty` has the columns and types of each side.
        """
        for batch in batches:
            for bucket in batch.column(0).to_pylist():
                found = {side: self._read(side, bucket) for side in empty}
                if any(found.values()):
                    yield {side: join_batches(own, empty[side]) if own else empty[side] for side, own in found.items()}

    def _read(self, side: str, bucket: int) -> list[Batch]:
        """Return the rows of a bucket."""
        own = [read_columns(uri, self.schemas[side]) for uri in self.files[side][bucket]]
        for table in own:
            for hashed in hashes_of(table.column(self.user)):
                if np.any(hashed // self.number * self.number + bucket != hashed):  # NumPy is slower with %
                    raise OtherReaderError("users in a bucket that is not theirs")
        return [batch for table in own for batch in table.to_batches()]


def find_buckets(sides: Mapping[str, FrameSide], user: str) -> BucketFiles | None:
    """Return the buckets of sides that Spark would read from Parquet files; None if it must read or shuffle them."""
    kinds = [str(side.empty.schema.field(user).type) for side in sides.values()]
    if len({WIDTHS.get(kind) for kind in kinds}) > 1 or kinds[0] not in WIDTHS:  # equal users have equal hashes
        return None
    schemas = {name: side.empty.schema for name, side in sides.items()}
    if not all(READ_ALIKE.fullmatch(str(kind)) for schema in schemas.values() for kind in schema.types):
        return None
    try:
        named = {name: _named_buckets(side.frame.inputFiles(), schemas[name].names) for name, side in sides.items()}
        numbers = [_number_of_buckets(named[name], schemas[name].field(user)) for name in named]
    except OtherReaderError:
        return None
    number = min(numbers)
    if not 1 < number <= MAX_BUCKETS or any(other % number for other in numbers):
        return None
    files: dict[str, list[list[str]]] = {name: [[] for _ in range(number)] for name in named}
    for name, own in named.items():
        for bucket, uris in own.items():
            files[name][bucket % number] += uris
    return BucketFiles(number, user, files, schemas)


def _named_buckets(uris: Sequence[str], columns: Sequence[str]) -> dict[int, list[str]]:
    """Return {bucket: URIs} of files by their names; raise if one has none, or a folder gives a column its values.

    Raise for no files, too: Spark names none of a data frame in its memory.
    """
    found: dict[int, list[str]] = {}
    needed = {column.lower() for column in columns}  # as Spark compares names
    for uri in uris:
        *folders, name = unquote(uri).split("/")
        given = {unquote(folder.partition("=")[0]).lower() for folder in folders if "=" in folder}
        match = NAME.fullmatch(name)
        if match is None or not uri.startswith(MOUNTED) or given & needed:
            raise OtherReaderError(uri)
        found.setdefault(int(match[1]), []).append(uri)
    if not found:
        raise OtherReaderError
    return found


def _number_of_buckets(files: Mapping[int, Sequence[str]], user: Any) -> int:
    """Return the greatest divisor of all differences between the hash of a user and its bucket: the number of buckets.

    The first users tell it. If they are few, it may be a multiple of the number; then tasks refuse other users.
    """
    import pyarrow as pa

    number = n_rows = n_files = 0
    for bucket, uris in files.items():
        for uri in uris:
            if n_files >= FIRST_FILES or (n_rows >= FIRST_ROWS and number <= MAX_BUCKETS):  # more: rows of one user
                return number
            users = read_columns(uri, pa.schema([user]), FIRST_ROWS).column(0)
            for hashed in hashes_of(users):
                number = int(np.gcd.reduce(hashed.astype(np.int64) - bucket, initial=number))
            n_rows, n_files = n_rows + len(users), n_files + 1
    return number


def read_columns(uri: str, schema: Schema, n_rows: int | None = None) -> Table:
    """Return columns of a Parquet file, of all rows or of the first; raise unless they have the types of `schema`."""
    import pyarrow as pa
    from pyarrow import fs, parquet

    try:
        system, path = fs.FileSystem.from_uri(quote(uri, safe=printable))  # Java quotes nothing beyond ASCII
        with system.open_input_file(path) as source, parquet.ParquetFile(source, pre_buffer=False) as file:
            batches = file.iter_batches(n_rows or ROWS_AT_ONCE, columns=schema.names, use_threads=False)
            found = list(batches if n_rows is None else itertools.islice(batches, 1))
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:  # PyArrow's of damaged files, too
        raise OtherReaderError(uri) from error
    rows = with_plain_types(pa.Table.from_batches(found) if found else schema.empty_table())
    if rows.schema.names != schema.names or rows.schema.types != schema.types:
        raise OtherReaderError(uri)
    return rows

"""Parquet files that tasks of Spark read by themselves, from file systems that all nodes mount under the same path.

Spark reads all files that PyArrow may read in another way, and reports faults.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from string import printable
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from fastrec.engines.job import Job, one_row
from fastrec.engines.packets import with_plain_types

__all__ = [
    "MOUNTED",
    "WHOLE",
    "GroupShare",
    "OtherReaderError",
    "are_read_alike",
    "check_folders",
    "read_batches",
    "read_columns",
    "states_or_refusal",
]

Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
Schema = Any  # pyarrow.Schema
MOUNTED = "file:"  # the beginning of URIs that all nodes read alike
BYTES_AT_ONCE, MOST_ROWS = 1 << 25, 1 << 20  # before they are packed
READ_ALIKE = re.compile(r"({0})|list<\w+: ({0})>".format(r"int\d+|float|double|bool|string"))  # types


class OtherReaderError(Exception):
    """Raised for files that Spark must read: tasks cannot, or not as Spark does, or rows are in other buckets."""


class GroupShare(NamedTuple):
    """One of several equal shares of the row groups of a file."""

    nth: int
    of: int


WHOLE = GroupShare(0, 1)


def states_or_refusal(job: Job, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield what `Job.states` does, or the row of an error if Spark must read the files."""
    try:
        yield from job.states(batches)
    except OtherReaderError as error:
        yield one_row(state=None, error=OtherReaderError.__name__, message=str(error))


def are_read_alike(schemas: Mapping[str, Schema]) -> bool:
    """Return whether tasks and Spark read columns of these types alike."""
    return all(READ_ALIKE.fullmatch(str(kind)) for schema in schemas.values() for kind in schema.types)


def check_folders(uris: Sequence[str], columns: Sequence[str]) -> None:
    """Raise for files that tasks cannot reach, or if a folder gives a column its values.

    Raise for no files, too: Spark names none of a data frame in its memory.
    """
    needed = {column.lower() for column in columns}  # as Spark compares names
    for uri in uris:
        given = {unquote(folder.partition("=")[0]).lower() for folder in unquote(uri).split("/")[:-1] if "=" in folder}
        if not uri.startswith(MOUNTED) or given & needed:
            raise OtherReaderError(uri)
    if not uris:
        raise OtherReaderError


def read_batches(
    uri: str, schema: Schema, share: GroupShare = WHOLE, n_rows: int = 0, n_bytes: int = 0
) -> Generator[Batch, None, None]:
    """Yield columns of a share of a Parquet file, `n_rows` at a time; raise unless they have the types of `schema`.

    Raise if the file has another size than `n_bytes`, if given: its row groups may be others, too.
    """
    import pyarrow as pa
    from pyarrow import fs, parquet

    try:
        system, path = fs.FileSystem.from_uri(quote(uri, safe=printable))  # Java quotes nothing beyond ASCII
        with system.open_input_file(path) as source, parquet.ParquetFile(source, pre_buffer=False) as file:
            named = [name.lower() for name in file.schema_arrow.names]  # as Spark compares them
            if (n_bytes and source.size() != n_bytes) or any(named.count(own.lower()) > 1 for own in schema.names):
                raise OtherReaderError(uri)
            groups = [at for at in range(file.num_row_groups) if at * share.of // file.num_row_groups == share.nth]
            n_rows = n_rows or _rows_at_once(file.metadata)
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=schema.names, use_threads=False):
                yield from _as_spark(pa.Table.from_batches([batch]), schema, uri).to_batches()
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:  # PyArrow's of damaged files, too
        raise OtherReaderError(uri) from error


def _rows_at_once(metadata: Any) -> int:
    n_bytes = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
    n_rows: int = metadata.num_rows * BYTES_AT_ONCE // max(n_bytes, 1)
    return max(1, min(n_rows, MOST_ROWS))


def _as_spark(rows: Table, schema: Schema, uri: str) -> Table:
    """Return rows with the schema that Spark has; raise if their types mean something else.

    Spark does not tell large strings and lists from others.
    """
    import pyarrow as pa

    if sorted(rows.schema.names) != sorted(schema.names):
        raise OtherReaderError(uri)
    rows = with_plain_types(rows.select(schema.names))
    for own, wanted in zip(rows.schema.types, schema.types, strict=True):
        if str(own).removeprefix("large_") != str(wanted) and own != wanted:
            raise OtherReaderError(uri)
    return rows.cast(pa.schema([(own.name, own.type) for own in schema]))


def read_columns(uri: str, schema: Schema, n_rows: int | None = None) -> Table:
    """Return columns of a Parquet file, of all rows or of the first; raise as `read_batches` does."""
    import pyarrow as pa

    with contextlib.closing(read_batches(uri, schema, n_rows=n_rows or 0)) as batches:
        found = list(batches if n_rows is None else itertools.islice(batches, 1))
    return pa.Table.from_batches(found) if found else schema.empty_table()

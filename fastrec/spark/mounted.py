"""Parquet files that tasks of Spark read by themselves, from file systems that all nodes mount under the same path.

Whatever tasks might take in another way than Spark does is left to Spark, as are faults.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
ROWS_AT_ONCE = 1 << 20
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


def read_batches(uri: str, schema: Schema, share: GroupShare = WHOLE, n_rows: int = ROWS_AT_ONCE) -> Iterator[Batch]:
    """Yield columns of a share of a Parquet file; raise unless they have the types of `schema`."""
    import pyarrow as pa
    from pyarrow import fs, parquet

    try:
        system, path = fs.FileSystem.from_uri(quote(uri, safe=printable))  # Java quotes nothing beyond ASCII
        with system.open_input_file(path) as source, parquet.ParquetFile(source, pre_buffer=False) as file:
            groups = [at for at in range(file.num_row_groups) if at * share.of // file.num_row_groups == share.nth]
            for batch in file.iter_batches(n_rows, row_groups=groups, columns=schema.names, use_threads=False):
                rows = with_plain_types(pa.Table.from_batches([batch]))
                if rows.schema.names != schema.names or rows.schema.types != schema.types:
                    raise OtherReaderError(uri)
                yield from rows.to_batches()
    except (OSError, ValueError, MemoryError, pa.ArrowException) as error:  # PyArrow's of damaged files, too
        raise OtherReaderError(uri) from error


def read_columns(uri: str, schema: Schema, n_rows: int | None = None) -> Table:
    """Return columns of a Parquet file, of all rows or of the first; raise as `read_batches` does."""
    import pyarrow as pa

    batches = read_batches(uri, schema, n_rows=n_rows or ROWS_AT_ONCE)
    found = list(batches if n_rows is None else itertools.islice(batches, 1))
    return pa.Table.from_batches(found) if found else schema.empty_table()

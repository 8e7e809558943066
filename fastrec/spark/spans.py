"""Parquet files with rows in any order: tasks read and pack them, and Spark moves packets of users.

Spark itself hands rows to Python through Java, which takes longer than reading them with PyArrow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from fastrec.engines.job import Job, tables_of_packets
from fastrec.engines.packets import no_packets, pack
from fastrec.spark.mounted import (
    GroupShare,
    OtherReaderError,
    are_read_alike,
    check_folders,
    read_batches,
    read_columns,
)
from fastrec.spark.side import PACKETS, FrameSide, co_locate, number_of_buckets, start_task, usual_partitions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Spans", "find_spans", "move_spans", "tables_or_refusal"]

Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
SMALLEST_TASK, LARGEST_TASK = 1 << 24, 1 << 27  # bytes of files
OPEN_BYTES = 1 << 20  # that take about as long as opening a file
REFUSED = "refused"  # the side of a packet that a task yields in place of rows


class FileSpan(NamedTuple):
    """Row groups of a file that one task reads."""

    uri: str
    share: GroupShare
    n_bytes: int  # of the file


Spans = Mapping[str, Sequence[Sequence[FileSpan]]]  # {side: what each task reads}


def find_spans(sides: Mapping[str, FrameSide], n_tasks: int) -> Spans | None:
    """Return what tasks read of the files of each side, about `n_tasks` of each; None if Spark must read them."""
    if not are_read_alike({name: side.empty.schema for name, side in sides.items()}):
        return None
    found = {}
    try:
        for name, side in sides.items():
            uris = side.frame.inputFiles()
            check_folders(uris, side.empty.column_names)
            read_columns(uris[0], side.empty.schema, 1)  # raises where all files are probably such
            found[name] = _spans_of({uri: os.path.getsize(unquote(urlsplit(uri).path)) for uri in uris}, n_tasks)
    except (OtherReaderError, OSError):  # files that the driver does not have
        return None
    return found


def _spans_of(sizes: Mapping[str, int], n_tasks: int) -> list[list[FileSpan]]:
    """Cut large files into shares, and give several small ones to one task."""
    size = min(max(sum(sizes.values()) // n_tasks, SMALLEST_TASK), LARGEST_TASK)
    tasks: list[list[FileSpan]] = []
    left = 0
    for uri, n_bytes in sizes.items():
        n_shares = -(-max(n_bytes, 1) // size)
        for nth in range(n_shares):
            if left <= 0:
                tasks.append([])
                left = size
            tasks[-1].append(FileSpan(uri, GroupShare(nth, n_shares), n_bytes))
            left -= n_bytes // n_shares + OPEN_BYTES
    return tasks


def move_spans(
    session: SparkSession, spans: Spans, sides: Mapping[str, FrameSide], job: Job, n_partitions: int | None
) -> DataFrame:
    """Return packets of all sides, as `co_locate` does."""
    n_buckets = number_of_buckets(usual_partitions(session, n_partitions))
    parts = []
    for name, tasks in spans.items():
        numbers = session.range(0, len(tasks), 1, len(tasks))
        parts.append(numbers.mapInArrow(_packer(sides[name], tasks, job.keys, n_buckets), PACKETS))
    return co_locate(parts, n_partitions)


def _packer(
    side: FrameSide, tasks: Sequence[Sequence[FileSpan]], keys: tuple[str, ...], n_buckets: int
) -> Callable[[Iterator[Batch]], Iterator[Batch]]:
    """Return the function that packs the spans whose numbers it gets."""
    name, schema = side.name, side.empty.schema  # no data frame goes to a task

    def run(batches: Iterator[Batch]) -> Iterator[Batch]:
        start_task()
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        spans = (span for number in numbers for span in tasks[number])
        rows = (own for span in spans for own in read_batches(span.uri, schema, span.share, n_bytes=span.n_bytes))
        try:
            yield from pack(rows, name, keys, n_buckets)
        except OtherReaderError:
            yield _refusal()

    return run


def _refusal() -> Batch:
    import pyarrow as pa

    packet = {"side": REFUSED, "bucket": 0, "schema": b"", "rows": b""}
    return pa.RecordBatch.from_pylist([packet], no_packets().schema)


def tables_or_refusal(batches: Iterable[Batch], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield {side: rows} of packets, as `tables_of_packets` does; raise if a task could not read its files."""
    return tables_of_packets(map(_checked, batches), empty)


def _checked(batch: Batch) -> Batch:
    if REFUSED in batch.column(0).to_pylist():
        raise OtherReaderError("a task could not read its files as Spark does")
    return batch

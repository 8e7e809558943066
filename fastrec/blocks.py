"""Arrow rows in blocks of the users that belong together: a cluster moves few large values, not every row.

Users are dealt into *buckets* by a number that stands in the last column of the rows. A block is the rows of one bucket
as the bytes of an Arrow record batch, beside the bytes of their schema.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Block", "batches_of_buckets", "pack", "tables_of"]

Batch = Any  # pyarrow.RecordBatch
Table = Any  # pyarrow.Table
PACKED_BYTES = 1 << 25  # of rows that are packed together: more make larger blocks
BATCH_BYTES = 1 << 26  # of rows that are handed out together: fewer make more calls
SMALL = 1 << 16  # below, NumPy sorts numbers by their digits


class Block(NamedTuple):
    """Rows of one bucket, and where they were met."""

    side: str
    bucket: int
    schema: bytes
    rows: bytes


def tables_of(batches: Iterable[Batch], n_bytes: int) -> Iterator[Table]:
    """Batches put together until they have so many bytes; those without rows are left out."""
    import pyarrow as pa

    held: list[Batch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            size += batch.nbytes
        if size >= n_bytes:
            yield pa.Table.from_batches(held)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held)


def pack(batches: Iterable[Batch], side: str) -> Iterator[Batch]:
    """Blocks of the rows of some batches, whose last column is the bucket of each row; a row per block."""
    import pyarrow as pa

    for table in tables_of(batches, PACKED_BYTES):
        n_columns = table.num_columns - 1
        buckets = table.column(n_columns).to_numpy()
        order = np.argsort(buckets.astype(np.uint16) if buckets.max() < SMALL else buckets, kind="stable")
        buckets = buckets[order]
        rows = _narrow(table.select(range(n_columns))).combine_chunks().take(pa.array(order))
        (whole,) = rows.combine_chunks().to_batches()
        starts = np.flatnonzero(np.diff(buckets, prepend=-1))
        ends = [*starts[1:].tolist(), len(buckets)]
        parts = (whole.slice(start, end - start) for start, end in zip(starts.tolist(), ends, strict=True))
        yield pa.record_batch(
            {
                "side": pa.array([side] * len(starts)),
                "bucket": pa.array(buckets[starts], pa.int32()),
                "schema": pa.array([whole.schema.serialize().to_pybytes()] * len(starts), pa.binary()),
                "rows": pa.array([part.serialize().to_pybytes() for part in parts], pa.binary()),
            }
        )


def _narrow(table: Table) -> Table:
    """The table with 32 bits for integers, in columns or in lists, that fit: what travels is fewer bytes."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        for wide, narrow in ((pa.int64(), pa.int32()), (pa.list_(pa.int64()), pa.list_(pa.int32()))):
            if field.type.equals(wide):
                with contextlib.suppress(pa.ArrowInvalid):
                    table = table.set_column(at, field.name, table.column(at).cast(narrow))
    return table


def _read(block: Block, schemas: dict[bytes, Any]) -> Batch:
    import pyarrow as pa

    if block.schema not in schemas:
        schemas[block.schema] = pa.ipc.read_schema(pa.py_buffer(block.schema))
    return pa.ipc.read_record_batch(pa.py_buffer(block.rows), schemas[block.schema])


def _join(batches: Sequence[Batch], empty: Table) -> Table:
    """Batches as one table; of the types of `empty` where they are not of one width."""
    import pyarrow as pa

    if all(batch.schema.equals(batches[0].schema) for batch in batches[1:]):
        return pa.Table.from_batches(batches)
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(empty.schema) for batch in batches])


def batches_of_buckets(blocks: Iterable[Block], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Tables of whole buckets by side, from blocks in the order of buckets; `empty` where a side has none."""
    schemas: dict[bytes, Any] = {}
    held: dict[str, list[Batch]] = {}
    size, bucket = 0, -1

    def tables() -> dict[str, Table]:
        return {side: _join(held[side], none) if side in held else none for side, none in empty.items()}

    for block in blocks:
        if size >= BATCH_BYTES and block.bucket != bucket:
            yield tables()
            held, size = {}, 0
        bucket = block.bucket
        held.setdefault(block.side, []).append(_read(block, schemas))
        size += len(block.rows)
    if held:
        yield tables()

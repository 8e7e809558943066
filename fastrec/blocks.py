"""Arrow rows in blocks of the users that belong together: a cluster moves few large values, not every row.

Users are dealt into *buckets* by a number that stands in the last column of the rows. A block is the rows of one bucket
as the bytes of an Arrow record batch, beside the bytes of their schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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


def pack(batches: Iterable[Batch], side: str, keys: Mapping[str, Any]) -> Iterator[Batch]:
    """Blocks of the rows of some batches, whose last column is the bucket of each row.

    Besides the fields of `Block` a row has the columns `key0`, `key1`, ...: those that `keys` names, of the first row
    of the block and as the Arrow types given there. A hash of the keys must be what the buckets come from.
    """
    import pyarrow as pa

    for table in tables_of(batches, PACKED_BYTES):
        n_columns = table.num_columns - 1
        buckets = table.column(n_columns).to_numpy()
        order = np.argsort(buckets.astype(np.uint16) if buckets.max() < SMALL else buckets, kind="stable")
        buckets = buckets[order]
        rows = table.select(range(n_columns)).combine_chunks().take(pa.array(order))
        starts = np.flatnonzero(np.diff(buckets, prepend=-1))
        ends = np.append(starts[1:], len(buckets))
        first = rows.take(pa.array(starts))
        (whole,) = rows.combine_chunks().to_batches()
        parts = (whole.slice(start, end - start) for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
        packed = {
            "side": pa.array([side] * len(starts)),
            "bucket": pa.array(buckets[starts], pa.int32()),
            "schema": pa.array([rows.schema.serialize().to_pybytes()] * len(starts), pa.binary()),
            "rows": pa.array([part.serialize().to_pybytes() for part in parts], pa.binary()),
        }
        named = {f"key{nth}": first.column(name).cast(kind) for nth, (name, kind) in enumerate(keys.items())}
        yield from pa.table(packed | named).combine_chunks().to_batches()


def _read(block: Block, schemas: dict[bytes, Any]) -> Batch:
    import pyarrow as pa

    if block.schema not in schemas:
        schemas[block.schema] = pa.ipc.read_schema(pa.py_buffer(block.schema))
    return pa.ipc.read_record_batch(pa.py_buffer(block.rows), schemas[block.schema])


def batches_of_buckets(blocks: Iterable[Block], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Tables of whole buckets by side, from blocks in the order of buckets; those of `empty` where a side has no rows."""
    import pyarrow as pa

    schemas: dict[bytes, Any] = {}
    held: dict[str, list[Batch]] = {}
    size, bucket = 0, -1

    def tables() -> dict[str, Table]:
        return {side: pa.Table.from_batches(held[side]) if side in held else none for side, none in empty.items()}

    for block in blocks:
        if size >= BATCH_BYTES and block.bucket != bucket:
            yield tables()
            held, size = {}, 0
        bucket = block.bucket
        held.setdefault(block.side, []).append(_read(block, schemas))
        size += len(block.rows)
    if held:
        yield tables()

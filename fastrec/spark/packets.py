"""Arrow rows in packets of the users that belong together: a cluster moves few large values, not every row.

A hash of their ids deals users into *buckets*. A packet is the rows of one bucket as the bytes of an Arrow record
batch, beside the bytes of their schema.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.resampling import random_word

__all__ = ["Packet", "batches_of_buckets", "pack", "tables_of"]

Array = np.ndarray[Any, Any]
Batch = Any  # pyarrow.RecordBatch
Table = Any  # pyarrow.Table
PACKED_BYTES = 1 << 25  # of rows that are packed together: more make larger packets
BATCH_BYTES = 1 << 26  # of rows that are handed out together: fewer make more calls
SMALL = 1 << 16  # up to here NumPy sorts numbers by their digits


class Packet(NamedTuple):
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


def pack(batches: Iterable[Batch], side: str, users: Sequence[str], n_buckets: int) -> Iterator[Batch]:
    """Packets of the rows of some batches, a row per packet; `users` are the columns that make a user."""
    import pyarrow as pa

    for table in tables_of(batches, PACKED_BYTES):
        buckets = _hash([table.column(name) for name in users]) % np.uint64(n_buckets)
        buckets = buckets.astype(np.uint16 if n_buckets <= SMALL else np.int32)
        order = np.argsort(buckets, kind="stable")
        buckets = buckets[order].astype(np.int32)
        rows = _narrow(table).combine_chunks().take(pa.array(order))
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


def _hash(columns: Sequence[Any]) -> Array:
    """A number for each row that depends on the values of columns only, not on the width of integers; uint64 (n,)."""
    from pyarrow import types

    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        if types.is_integer(column.type):
            own = column.fill_null(0).to_numpy().astype(np.int64).view(np.uint64)
        else:  # a checksum of each distinct text
            encoded = column.combine_chunks().dictionary_encode()
            sums = [zlib.crc32(str(value).encode()) for value in encoded.dictionary.to_pylist()]
            own = np.array([*sums, 0], np.uint64)[encoded.indices.fill_null(len(sums)).to_numpy()]
        mixed = random_word(mixed ^ own)
    return mixed


def _narrow(table: Table) -> Table:
    """The table with 32 bits for integers, in columns or in lists, that fit: what travels is fewer bytes."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        for wide, narrow in ((pa.int64(), pa.int32()), (pa.list_(pa.int64()), pa.list_(pa.int32()))):
            if field.type.equals(wide):
                with contextlib.suppress(pa.ArrowInvalid):
                    table = table.set_column(at, field.name, table.column(at).cast(narrow))
    return table


def _read(packet: Packet, schemas: dict[bytes, Any]) -> Batch:
    import pyarrow as pa

    if packet.schema not in schemas:
        schemas[packet.schema] = pa.ipc.read_schema(pa.py_buffer(packet.schema))
    return pa.ipc.read_record_batch(pa.py_buffer(packet.rows), schemas[packet.schema])


def _join(batches: Sequence[Batch], empty: Table) -> Table:
    """Batches as one table; of the types of `empty` where they are not of one width."""
    import pyarrow as pa

    if all(batch.schema.equals(batches[0].schema) for batch in batches[1:]):
        return pa.Table.from_batches(batches)
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(empty.schema) for batch in batches])


def batches_of_buckets(packets: Iterable[Packet], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Tables of whole buckets by side, from packets in the order of buckets; `empty` where a side has none."""
    schemas: dict[bytes, Any] = {}
    held: dict[str, list[Batch]] = {}
    size, bucket = 0, -1

    def tables() -> dict[str, Table]:
        return {side: _join(held[side], none) if side in held else none for side, none in empty.items()}

    for packet in packets:
        if size >= BATCH_BYTES and packet.bucket != bucket:
            yield tables()
            held, size = {}, 0
        bucket = packet.bucket
        held.setdefault(packet.side, []).append(_read(packet, schemas))
        size += len(packet.rows)
    if held:
        yield tables()

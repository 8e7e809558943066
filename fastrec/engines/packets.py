"""Arrow rows packed into packets of users: a cluster moves a few large values faster than many rows.

A hash of the ids assigns users to *buckets*. A packet holds rows of one bucket as the bytes of an Arrow record batch,
and the bytes of their schema.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputTypeError
from fastrec.inputs.strings import bytes_of
from fastrec.kernels.resampling import random_word

__all__ = [
    "BUCKETS_PER_PARTITION",
    "Packet",
    "Work",
    "batches_of_buckets",
    "columns_lacking",
    "is_number",
    "is_string",
    "join_batches",
    "join_rows",
    "lists_of_tensors",
    "no_packets",
    "pack",
    "pack_parts",
    "pack_rows",
    "plain_types",
    "tables_of",
    "with_plain_types",
    "work_on",
]

Array = np.ndarray[Any, Any]
Batch = Any  # pyarrow.RecordBatch
Table = Any  # pyarrow.Table
Schema = Any  # pyarrow.Schema
Work = Callable[[Iterable[Batch]], Iterator[Batch]]  # of a task, on its packets in the order of buckets
BUCKETS_PER_PARTITION = 8  # enough for partitions of similar size, which tasks read bucket by bucket
PACKED_BYTES = 1 << 25  # of rows packed together: more give larger packets
BATCH_BYTES = 1 << 26  # of rows yielded together: fewer give more calls
SMALL = 1 << 16  # up to here NumPy uses a radix sort
HASHED_AT_ONCE = 1 << 14  # rows, which fit a cache


class Packet(NamedTuple):
    """Rows of one side and one bucket."""

    side: str
    bucket: int
    schema: bytes
    rows: bytes


def tables_of(batches: Iterable[Batch], n_bytes: int) -> Iterator[Table]:
    """Yield tables of batches that together have at least `n_bytes`; skip batches without rows."""
    import pyarrow as pa

    waiting: list[Batch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size += sum(map(bytes_of, batch.columns))
        if size >= n_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def pack(batches: Iterable[Batch], side: str, users: Sequence[str], n_buckets: int) -> Iterator[Batch]:
    """Pack the rows of batches and yield one row per packet; `users` are the columns that make a user."""
    import pyarrow as pa

    for encoded in tables_of(batches, PACKED_BYTES):
        table = with_plain_types(encoded).combine_chunks()
        buckets = _buckets([table.column(name) for name in users], n_buckets)
        order = np.argsort(buckets, kind="stable")
        buckets = buckets[order].astype(np.int32)
        (whole,) = _narrow(table).take(pa.array(order)).combine_chunks().to_batches()
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


def no_packets() -> Table:
    """Return a table of no packets."""
    import pyarrow as pa

    kinds = {"side": pa.string(), "bucket": pa.int32(), "schema": pa.binary(), "rows": pa.binary()}
    return pa.schema(list(kinds.items())).empty_table()


def pack_rows(tables: Iterable[Table], side: str, empty: Table, users: Sequence[str], n_buckets: int) -> Table:
    """Return the packets of rows, with the columns and types of `empty`; raise for rows of other kinds."""
    import pyarrow as pa

    batches = (batch for rows in tables for batch in _cast(rows, side, empty).to_batches())
    return pa.Table.from_batches(list(pack(batches, side, users, n_buckets)), no_packets().schema)


def _cast(rows: Table, side: str, empty: Table) -> Table:
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowException):
        own = with_plain_types(rows.select(empty.column_names))
        if all(map(_of_one_kind, own.schema.types, empty.schema.types)):
            return own.cast(empty.schema)
    schemas = [table.select(empty.column_names).schema for table in (rows, empty)]
    other = [own.name for own, wanted in zip(*schemas, strict=True) if own.type != wanted.type]
    found, wanted = (", ".join(f"{name} {own.field(name).type}" for name in other) for own in schemas)
    raise InputTypeError(f"{side}: a part of the rows has columns {found}, expected {wanted}: cast them to one type")


def _of_one_kind(found: Any, wanted: Any) -> bool:
    """Return whether a cast keeps the meaning of values: ids 20, 20.0 and "020" differ."""
    from pyarrow import types

    if hasattr(found, "value_type") and hasattr(wanted, "value_type"):
        return _of_one_kind(found.value_type, wanted.value_type)
    if types.is_null(found) or (types.is_integer(found) and types.is_floating(wanted)):
        return True
    if types.is_floating(found) and types.is_floating(wanted):
        return bool(found.bit_width <= wanted.bit_width)  # a cast would round without an error
    kinds = (types.is_integer, is_string, types.is_date)
    same = found.id == wanted.id or any(kind(found) and kind(wanted) for kind in kinds)
    return same and getattr(found, "tz", None) == getattr(wanted, "tz", None)


def is_number(kind: Any) -> bool:
    """Return whether a type is one of Arrow, of numbers or lists of numbers."""
    import pyarrow as pa
    from pyarrow import types

    kind = getattr(kind, "value_type", kind)
    return isinstance(kind, pa.DataType) and bool(types.is_integer(kind) or types.is_floating(kind))


def is_string(kind: Any) -> bool:
    """Return whether a type of Arrow is of strings."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def plain_types(schema: Schema) -> Schema:
    """Return a schema with plain values in place of dictionaries, views and lists of one size, which packets lack."""
    import pyarrow as pa
    from pyarrow import types

    def plain(kind: Any) -> Any:
        if types.is_dictionary(kind):
            return plain(kind.value_type)
        if types.is_string_view(kind):
            return pa.string()
        if types.is_large_list(kind):
            return pa.large_list(plain(kind.value_type))
        if types.is_list(kind) or types.is_fixed_size_list(kind):
            return pa.list_(plain(kind.value_type))
        return kind

    return pa.schema([own.with_type(plain(own.type)) for own in schema])


def with_plain_types(rows: Table) -> Table:
    """Return rows with the types of `plain_types`."""
    kinds = plain_types(rows.schema)
    return rows if kinds.equals(rows.schema) else rows.cast(kinds)


def lists_of_tensors(rows: Table) -> Table:
    """Return rows with lists in place of vectors, which some engines keep as tensors of one axis."""
    import pyarrow as pa

    for at, own in enumerate(rows.schema):
        if getattr(own.type, "ndim", None) == 1 or len(getattr(own.type, "shape", ())) == 1:
            stored = rows.column(at).combine_chunks().storage
            if pa.types.is_struct(stored.type):  # of vectors of several lengths
                stored = stored.field("data")
            rows = rows.set_column(at, own.name, stored.cast(pa.list_(stored.type.value_type)))
    return rows


def columns_lacking(rows: Table, names: list[str]) -> Table:
    """Return those of some columns that rows lack, a row each; none without rows, which may have lost all."""
    import pyarrow as pa

    return pa.table(
        {"name": pa.array([name for name in names if rows.num_rows and name not in rows.column_names], pa.string())}
    )


def pack_parts(side: str, empty: Table, users: Sequence[str], n_partitions: int, *tables: Table) -> Any:
    """Return the packets of rows for each partition; of one alone as themselves, as a task returns one result."""
    having = (table for table in tables if table.num_rows)  # an empty one may have lost its columns
    packets = pack_rows(having, side, empty, users, BUCKETS_PER_PARTITION * n_partitions)
    partitions = packets.column("bucket").to_numpy() % n_partitions
    parts = [packets.filter(partitions == nth) for nth in range(n_partitions)]
    return parts if n_partitions > 1 else parts[0]


def work_on(work: Work, *tables: Table) -> Table:
    """Return the rows that a task makes of its packets, which it reads one by one."""
    import pyarrow as pa

    packets = pa.concat_tables([no_packets(), *tables])
    order = np.argsort(packets.column("bucket").to_numpy(), kind="stable").tolist()
    made = list(work(batch for at in order for batch in packets.slice(at, 1).to_batches()))
    return pa.Table.from_batches(made) if made else pa.table({})


def join_rows(tables: Iterable[Table]) -> Table:
    """Return the rows that all tasks made."""
    import pyarrow as pa

    having = [table for table in tables if table.num_rows]
    return pa.concat_tables(having) if having else pa.table({})


def _buckets(columns: Sequence[Any], n_buckets: int) -> Array:
    """Return the bucket of each row, uint16 or int32 (n,): a hash of values only, not of the width of integers."""
    words = [_words_of(column) for column in columns]
    buckets = np.empty(len(words[0]), np.uint16 if n_buckets <= SMALL else np.int32)
    for first in range(0, len(buckets), HASHED_AT_ONCE):
        mixed: Any = np.uint64(0)
        for own in words:
            mixed = random_word(mixed ^ own[first : first + HASHED_AT_ONCE])
        buckets[first : first + HASHED_AT_ONCE] = mixed % np.uint64(n_buckets)
    return buckets


def _words_of(column: Any) -> Array:
    """Return ids as uint64 (n,): integers, or checksums of distinct strings; 0 for nulls."""
    from pyarrow import types

    if types.is_integer(column.type):
        column = column.fill_null(0) if column.null_count else column
        ids: Array = column.to_numpy().astype(np.int64, copy=False).view(np.uint64)
        return ids
    encoded = column.combine_chunks().dictionary_encode()
    sums = [zlib.crc32(str(value).encode()) for value in encoded.dictionary.to_pylist()]
    words: Array = np.array([*sums, 0], np.uint64)[encoded.indices.fill_null(len(sums)).to_numpy()]
    return words


def _narrow(table: Table) -> Table:
    """Return the table with the narrowest integers that hold its values, in columns and lists: fewer bytes travel."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        is_list = pa.types.is_list(field.type)
        kind = field.type.value_type if is_list else field.type
        if pa.types.is_integer(kind):
            column = table.column(at)
            ends = pc.min_max(pc.list_flatten(column) if is_list else column)
            narrow = next((own for own in (pa.int8(), pa.int16(), pa.int32()) if _holds(own, ends)), kind)
            if narrow.bit_width < kind.bit_width:
                with contextlib.suppress(pa.ArrowInvalid):  # of values beside a slice of lists, which a cast reads
                    table = table.set_column(at, field.name, column.cast(pa.list_(narrow) if is_list else narrow))
    return table


def _holds(kind: Any, ends: Any) -> bool:
    """Return whether a type of integers holds the least and the largest value, or none."""
    held = np.iinfo(kind.to_pandas_dtype())
    return all(end.as_py() is None or held.min <= end.as_py() <= held.max for end in ends.values())


def _read(packet: Packet, schemas: dict[bytes, Any]) -> Batch:
    import pyarrow as pa

    if packet.schema not in schemas:
        schemas[packet.schema] = pa.ipc.read_schema(pa.py_buffer(packet.schema))
    return pa.ipc.read_record_batch(pa.py_buffer(packet.rows), schemas[packet.schema])


def join_batches(batches: Sequence[Batch], empty: Table) -> Table:
    """Return batches as one table, with the types of `empty` if widths of batches differ or it has other kinds."""
    import pyarrow as pa

    first, wanted = batches[0].schema, plain_types(empty.schema)
    alike = all(batch.schema.equals(first) for batch in batches[1:])
    if alike and all(map(_of_one_kind, first.types, wanted.types)):
        return pa.Table.from_batches(batches)
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(wanted) for batch in batches])


def batches_of_buckets(packets: Iterable[Packet], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield {side: rows of whole buckets} from packets in the order of buckets; `empty` for a side without rows."""
    schemas: dict[bytes, Any] = {}
    waiting: dict[str, list[Batch]] = {}
    size, bucket = 0, -1

    def tables() -> dict[str, Table]:
        return {side: join_batches(waiting[side], none) if side in waiting else none for side, none in empty.items()}

    for packet in packets:
        if size >= BATCH_BYTES and packet.bucket != bucket:
            yield tables()
            waiting, size = {}, 0
        bucket = packet.bucket
        waiting.setdefault(packet.side, []).append(_read(packet, schemas))
        size += len(packet.rows)
    if waiting:
        yield tables()

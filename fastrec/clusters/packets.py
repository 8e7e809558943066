"""Arrow rows packed into packets of users: a cluster moves a few large values faster than many rows.

A hash of the ids assigns users to *buckets*. A packet holds rows of one bucket as the bytes of a stream of Arrow.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputTypeError
from fastrec.inputs.strings import bytes_of, hashes_of
from fastrec.kernels.resampling import random_word

Array = np.ndarray[Any, Any]
Batch = Any  # pyarrow.RecordBatch
Table = Any  # pyarrow.Table
BUCKETS_PER_PARTITION = 8  # enough for partitions of similar size, which tasks read bucket by bucket
PACKED_BYTES = 1 << 25  # of rows packed together: more give larger packets
BATCH_BYTES = 1 << 26  # of rows yielded together: fewer give more calls
SMALL = 1 << 16  # up to here NumPy uses a radix sort
HASHED_AT_ONCE = 1 << 14  # rows, which fit a cache


def packet_schema() -> Any:
    """Return the columns of packets and their types."""
    import pyarrow as pa

    return pa.schema([("side", pa.string()), ("bucket", pa.int32()), ("rows", pa.binary())])


def to_bytes(batch: Batch) -> bytes:
    """Return a record batch as the bytes of a stream of Arrow."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def from_bytes(data: bytes) -> Batch:
    """Return the record batch that `to_bytes` got."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as stream:
        return stream.read_next_batch()


def tables_of(batches: Iterable[Batch], n_bytes: int) -> Iterator[Table]:
    """Yield tables of batches that together have at least `n_bytes`; skip batches without rows."""
    import pyarrow as pa

    waiting: list[Batch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            if waiting and not batch.schema.equals(waiting[0].schema):
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
            waiting.append(batch)
            size += sum(map(bytes_of, batch.columns))
        if size >= n_bytes:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def pack(
    batches: Iterable[Batch], side: str, users: Sequence[str], n_buckets: int, n_bytes: int | None = None
) -> Iterator[Batch]:
    """Pack the rows of batches and yield one row per packet; `users` are the columns that make a user.

    Rows of about `n_bytes` are packed together. Without users, the rows packed together have one bucket.
    """
    import pyarrow as pa

    for nth, encoded in enumerate(tables_of(batches, n_bytes or PACKED_BYTES)):
        table = with_plain_types(encoded).combine_chunks()
        columns = [table.column(name) for name in users]
        buckets = _buckets(columns, n_buckets) if users else np.full(len(table), nth % n_buckets, np.int32)
        order = np.argsort(buckets, kind="stable")
        buckets = buckets[order].astype(np.int32)
        (whole,) = _narrow(table).take(pa.array(order)).combine_chunks().to_batches()
        edges = np.flatnonzero(np.diff(buckets, prepend=-1, append=-1)).tolist()
        rows = [to_bytes(whole.slice(start, end - start)) for start, end in itertools.pairwise(edges)]
        packets = {"side": [side] * len(rows), "bucket": buckets[edges[:-1]], "rows": rows}
        yield pa.RecordBatch.from_pydict(packets, packet_schema())


def pack_rows(tables: Iterable[Table], side: str, empty: Table, users: Sequence[str], n_buckets: int) -> Table:
    """Return the packets of rows, with the columns and types of `empty`; raise for rows of other kinds."""
    import pyarrow as pa

    batches = (batch for rows in tables for batch in _cast(rows, side, empty).to_batches())
    return pa.Table.from_batches(list(pack(batches, side, users, n_buckets)), packet_schema())


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


def is_string(kind: Any) -> bool:
    """Return whether a type of Arrow is of strings."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def plain_types(schema: Any) -> Any:
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
    """Return ids as uint64 (n,): integers, or hashes of strings; 0 for nulls."""
    from pyarrow import types

    if types.is_integer(column.type):
        column = column.fill_null(0) if column.null_count else column
        ids: Array = column.to_numpy().astype(np.int64, copy=False).view(np.uint64)
        return ids
    strings = column if is_string(column.type) else column.cast("string")
    return np.concatenate([np.zeros(0, np.uint64), *map(hashes_of, strings.chunks)])


def _narrow(table: Table) -> Table:
    """Return the table with the narrowest integers that hold its values, in columns and lists: fewer bytes travel."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        is_list = pa.types.is_list(field.type)
        kind = field.type.value_type if is_list else field.type
        for narrow in (pa.int8(), pa.int16(), pa.int32()) if pa.types.is_integer(kind) else ():
            if narrow.bit_width < kind.bit_width:
                with contextlib.suppress(pa.ArrowInvalid):  # of values that are too large
                    table = table.set_column(
                        at, field.name, table.column(at).cast(pa.list_(narrow) if is_list else narrow)
                    )
                    break
    return table


def join_batches(batches: Sequence[Batch], empty: Table) -> Table:
    """Return batches as one table, with the types of `empty` if widths of batches differ or it has other kinds."""
    import pyarrow as pa

    first, wanted = batches[0].schema, plain_types(empty.schema)
    alike = all(batch.schema.equals(first) for batch in batches[1:])
    if alike and all(map(_of_one_kind, first.types, wanted.types)):
        return pa.Table.from_batches(batches)
    return pa.concat_tables([pa.Table.from_batches([batch]).cast(wanted) for batch in batches])


def tables_of_packets(batches: Iterable[Batch], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield {side: rows of whole users} from packets in the order of buckets, read one by one: all may fill the memory.

    `empty` has the columns and types of each side.
    """
    waiting: dict[str, list[Batch]] = {}
    size, bucket = 0, -1

    def tables() -> dict[str, Table]:
        return {side: join_batches(waiting[side], none) if side in waiting else none for side, none in empty.items()}

    for packet in (batch.slice(at, 1).to_pydict() for batch in batches for at in range(batch.num_rows)):
        (side,), (own_bucket,), (rows,) = packet.values()
        if size >= BATCH_BYTES and own_bucket != bucket:
            yield tables()
            waiting, size = {}, 0
        bucket = own_bucket
        waiting.setdefault(side, []).append(from_bytes(rows))
        size += len(rows)
    if waiting:
        yield tables()

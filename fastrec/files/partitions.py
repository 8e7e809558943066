"""Rows that do not fit in memory, kept in a temporary file: a hash of their users puts them into parts.

The rows of a user are in one part, in the order in which they came. To sort 20 million rows by DuckDB instead, at a
limit of 100 MB, took 36 s and a peak of 530 MB, and this takes 8 s and 475 MB.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fastrec.clusters.packets import from_bytes, pack
from fastrec.exceptions import Argument, InputError
from fastrec.files.resources import Resources

Batch = Any  # pyarrow.RecordBatch
PARTS_PER_BATCH = 2  # users differ in length, so that parts do, too: several fill a batch better than one
MOST_SHARE = 4  # of the memory, for the rows of users that are read at once
MAX_PARTS = 1 << 14  # more make packets of a few rows


class _Packet(NamedTuple):
    """Where the rows of a part and a table are in the file."""

    start: int
    n_bytes: int
    n_rows: int


class RowPartitions:
    """Rows of tables in parts of whole users; `users` are the columns that make a user."""

    def __init__(self, folder: str, users: Sequence[str], n_batches: int, resources: Resources) -> None:
        self._path = os.path.join(folder, "parts")
        self._users = users
        self._n_parts = min(PARTS_PER_BATCH * n_batches, MAX_PARTS)
        self._resources = resources
        self._packets: dict[str, dict[int, list[_Packet]]] = {}  # table -> part -> packets
        self.n_rows: dict[str, int] = {}  # of each table

    def add(self, table: str, batches: Iterable[Batch], tick: Callable[[int], Any]) -> None:
        """Add the rows of a table; `tick` gets how many are added."""
        own: dict[int, list[_Packet]] = {}
        self._packets[table], self.n_rows[table] = own, 0
        with open(self._path, "ab") as file:
            for packed in pack(batches, table, self._users, self._n_parts, self._resources.of_packing()):
                for part, rows in zip(*(packed.column(name).to_pylist() for name in ("bucket", "rows")), strict=True):
                    n_rows = from_bytes(rows).num_rows
                    own.setdefault(part, []).append(_Packet(file.tell(), len(rows), n_rows))
                    file.write(rows)
                    self.n_rows[table] += n_rows
                tick(self.n_rows[table])

    def batches(self, n_rows: int, tables: Collection[str]) -> Iterator[dict[str, list[Batch]]]:
        """Yield {table: rows} of neighbouring parts with about `n_rows` rows of a table, or of one larger part."""
        packets = {table: own for table, own in self._packets.items() if table in tables}
        parts: list[int] = []
        sizes = dict.fromkeys(packets, 0)
        for part in range(self._n_parts):
            own = {table: sum(packet.n_rows for packet in kept.get(part, ())) for table, kept in packets.items()}
            if parts and any(sizes[table] + own[table] > n_rows for table in own):
                yield self._read(packets, parts)
                parts, sizes = [], dict.fromkeys(own, 0)
            if any(own.values()):
                parts.append(part)
                sizes = {table: sizes[table] + own[table] for table in own}
        if parts:
            yield self._read(packets, parts)

    def _read(self, packets: Mapping[str, Mapping[int, Sequence[_Packet]]], parts: Sequence[int]) -> Any:
        n_bytes = sum(packet.n_bytes for kept in packets.values() for part in parts for packet in kept.get(part, ()))
        if n_bytes > MOST_SHARE * self._resources.limit():
            what = f"some users have rows of {n_bytes / 1e6:,.0f} MB in all, and a user is evaluated at once: raise "
            raise InputError(what, Argument("memory", (...,)))
        found: dict[str, list[Batch]] = {}
        with open(self._path, "rb") as file:
            for table, kept in packets.items():
                found[table] = []
                for packet in (packet for part in parts for packet in kept.get(part, ())):
                    file.seek(packet.start)
                    found[table].append(from_bytes(file.read(packet.n_bytes)))
        return found

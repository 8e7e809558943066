"""Several streams of rows that are sorted by user, cut into batches that hold each user whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["batches_of_users"]

Table = Any  # pyarrow.Table
Key = tuple[Any, ...]


class _Stream:
    """The rows of one stream that were read and not handed out."""

    def __init__(self, reader: Any, users: tuple[str, ...]) -> None:
        import pyarrow as pa

        self._reader = reader
        self._users = users
        self.rows: Table = pa.table(reader.schema.empty_table())
        self.ended = False

    def read(self) -> None:
        """Read one more batch with rows, if there is one."""
        import pyarrow as pa

        for batch in self._reader:
            if batch.num_rows:
                self.rows = pa.concat_tables([self.rows, pa.table(batch)])
                return
        self.ended = True

    def user(self, row: int) -> Key:
        """The user of a row; texts as the bytes that they are sorted by."""
        values = (self.rows.column(name)[row].as_py() for name in self._users)
        return tuple(value.encode() if isinstance(value, str) else value for value in values)

    def take_before(self, user: Key) -> Table:
        """The rows of all users before one."""
        low, high = 0, self.rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if self.user(middle) < user:
                low = middle + 1
            else:
                high = middle
        return self.take(low)

    def take(self, n_rows: int) -> Table:
        """The first rows."""
        taken, self.rows = self.rows.slice(0, n_rows), self.rows.slice(n_rows)
        return taken


def batches_of_users(readers: Mapping[str, Any], users: tuple[str, ...]) -> Iterator[dict[str, Table]]:
    """Tables by name, from Arrow readers of rows in ascending order of the columns `users`.

    A user whose rows may go on in the next batch of any stream waits for it. Without columns of users rows are handed
    out as they come.
    """
    streams = {name: _Stream(reader, users) for name, reader in readers.items()}
    while True:
        for stream in streams.values():
            if not stream.ended and not stream.rows.num_rows:
                stream.read()
        going_on = [stream for stream in streams.values() if not stream.ended]
        if not going_on or not users:
            batch = {name: stream.take(stream.rows.num_rows) for name, stream in streams.items()}
        else:
            last = min(stream.user(stream.rows.num_rows - 1) for stream in going_on)
            batch = {name: stream.take_before(last) for name, stream in streams.items()}
        if any(rows.num_rows for rows in batch.values()):
            yield batch
        if not going_on:
            return
        for stream in going_on:
            if users and stream.rows.num_rows and stream.user(stream.rows.num_rows - 1) == last:
                stream.read()

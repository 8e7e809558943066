"""Batches of whole users, cut from several streams of rows that are sorted by user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["batches_of_users"]

Table = Any  # pyarrow.Table
Key = tuple[Any, ...]


class _Stream:
    """One stream, and its rows that were read but not handed out."""

    def __init__(self, reader: Any, users: tuple[str, ...]) -> None:
        import pyarrow as pa

        self._reader = reader
        self._users = users
        self.rows: Table = pa.table(reader.schema.empty_table())
        self.ended = False

    def read(self) -> None:
        """Read the next batch with rows, if there is one."""
        import pyarrow as pa

        for batch in self._reader:
            if batch.num_rows:
                self.rows = pa.concat_tables([self.rows, pa.table(batch)])
                return
        self.ended = True

    def user(self, row: int) -> Key:
        """Return the user of a row; strings as bytes, in the order of which rows are sorted."""
        values = (self.rows.column(name)[row].as_py() for name in self._users)
        return tuple(value.encode() if isinstance(value, str) else value for value in values)

    def take_before(self, user: Key) -> Table:
        """Take the rows of all users before `user`."""
        low, high = 0, self.rows.num_rows
        while low < high:
            middle = (low + high) // 2
            if self.user(middle) < user:
                low = middle + 1
            else:
                high = middle
        return self.take(low)

    def take(self, n_rows: int) -> Table:
        """Take the first rows."""
        taken, self.rows = self.rows.slice(0, n_rows), self.rows.slice(n_rows)
        return taken


def batches_of_users(readers: Mapping[str, Any], users: tuple[str, ...]) -> Iterator[dict[str, Table]]:
    """Yield {name: rows} from Arrow readers of rows in ascending order of the columns `users`.

    A user with more rows in the next batch of any stream waits for that batch. Without columns of users, rows are
    yielded as they come.
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

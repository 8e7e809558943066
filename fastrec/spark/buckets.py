"""Parquet files that Spark has written in buckets of users: tasks read them by themselves, and nothing is shuffled.

Spark names the bucket of a file in its name. Tasks trust no name: they hash the user of every row as Spark does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from fastrec.engines.packets import join_batches
from fastrec.spark.bucket_hash import WIDTHS, hashes_of
from fastrec.spark.mounted import OtherReaderError, are_read_alike, check_folders, read_columns

if TYPE_CHECKING:
    from fastrec.spark.side import FrameSide

__all__ = ["find_buckets"]

Table = Any  # pyarrow.Table
Batch = Any  # pyarrow.RecordBatch
Schema = Any  # pyarrow.Schema
NAME = re.compile(r".*_(\d{1,9})(?:\..*)?")  # of a file of a bucket, as Spark names it
MAX_BUCKETS = 100_000  # Spark's own limit, unless a setting raises it
FIRST_ROWS = 1 << 16  # of a file, which tell the number of buckets
FIRST_FILES = 8  # at most: small ones tell it together


class BucketFiles(NamedTuple):
    """Where the rows of each user are: in the files of one bucket, on all sides."""

    number: int
    user: str  # the column
    files: Mapping[str, Sequence[Sequence[str]]]  # {side: the URIs of the files of each bucket}
    schemas: Mapping[str, Schema]  # {side: the columns to read}

    def tables(self, batches: Iterable[Batch], empty: Mapping[str, Table]) -> Iterator[dict[str, Table]]:
        """Yield {side: rows} for each bucket whose number is in the only column of `batches`.

        `empty` has the columns and types of each side.
        """
        for batch in batches:
            for bucket in batch.column(0).to_pylist():
                found = {side: self._read(side, bucket) for side in empty}
                if any(found.values()):
                    yield {side: join_batches(own, empty[side]) if own else empty[side] for side, own in found.items()}

    def _read(self, side: str, bucket: int) -> list[Batch]:
        """Return the rows of a bucket."""
        own = [read_columns(uri, self.schemas[side]) for uri in self.files[side][bucket]]
        for table in own:
            for hashed in hashes_of(table.column(self.user)):
                if np.any(hashed // self.number * self.number + bucket != hashed):  # NumPy is slower with %
                    raise OtherReaderError("users in a bucket that is not theirs")
        return [batch for table in own for batch in table.to_batches()]


def find_buckets(sides: Mapping[str, FrameSide], user: str) -> BucketFiles | None:
    """Return the buckets of sides that Spark would read from Parquet files; None if it must read or shuffle them."""
    kinds = [str(side.empty.schema.field(user).type) for side in sides.values()]
    if len({WIDTHS.get(kind) for kind in kinds}) > 1 or kinds[0] not in WIDTHS:  # equal users have equal hashes
        return None
    schemas = {name: side.empty.schema for name, side in sides.items()}
    if not are_read_alike(schemas):
        return None
    try:
        named = {name: _named_buckets(side.frame.inputFiles(), schemas[name].names) for name, side in sides.items()}
        numbers = [_number_of_buckets(named[name], schemas[name].field(user)) for name in named]
    except OtherReaderError:
        return None
    number = min(numbers)
    if not 1 < number <= MAX_BUCKETS or any(other % number for other in numbers):
        return None
    files: dict[str, list[list[str]]] = {name: [[] for _ in range(number)] for name in named}
    for name, own in named.items():
        for bucket, uris in own.items():
            files[name][bucket % number] += uris
    return BucketFiles(number, user, files, schemas)


def _named_buckets(uris: Sequence[str], columns: Sequence[str]) -> dict[int, list[str]]:
    """Return {bucket: URIs} of files by their names; raise if one has none."""
    check_folders(uris, columns)
    found: dict[int, list[str]] = {}
    for uri in uris:
        match = NAME.fullmatch(unquote(uri).rpartition("/")[2])
        if match is None:
            raise OtherReaderError(uri)
        found.setdefault(int(match[1]), []).append(uri)
    return found


def _number_of_buckets(files: Mapping[int, Sequence[str]], user: Any) -> int:
    """Return the greatest divisor of all differences between the hash of a user and its bucket: the number of buckets.

    The first users tell it. If they are few, it may be a multiple of the number; then tasks refuse other users.
    """
    import pyarrow as pa

    number = n_rows = n_files = 0
    for bucket, uris in files.items():
        for uri in uris:
            if n_files >= FIRST_FILES or (n_rows >= FIRST_ROWS and number <= MAX_BUCKETS):  # more: rows of one user
                return number
            users = read_columns(uri, pa.schema([user]), FIRST_ROWS).column(0)
            for hashed in hashes_of(users):
                number = int(np.gcd.reduce(hashed.astype(np.int64) - bucket, initial=number))
            n_rows, n_files = n_rows + len(users), n_files + 1
    return number

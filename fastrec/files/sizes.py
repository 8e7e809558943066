"""About what the columns of files take in memory, before they are read: by their footers, and by a sample of each.

The estimate may be wrong, as a sample is: whoever reads the files counts what came, and stops when it is too much.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from fastrec.files.formats.parquet import damages_of_parquet
from fastrec.files.formats.recognise import is_packed
from fastrec.files.paths import Files, utf8_path
from fastrec.runtime.extras import require

__all__ = ["Size", "size_of_parquet", "size_of_rows", "size_of_text"]

BYTES_PER_VALUE = 12
STRING_COPIES, DISTINCT_COPIES = 0.35, 1.0  # of texts, and of those that differ, beside each copy of the values
SAMPLED_GROUPS, SAMPLED_ROWS = 4, 1024
SAMPLED_BYTES, UNPACKED_BYTES = 1 << 16, 1 << 22
SIZE_OF_MEMBER = 4  # bytes at the end of a gzip file that say how long its last member is, unpacked
USUAL_STRING = 12  # bytes of a text, and its delimiter, that BYTES_PER_VALUE covers


class Size(NamedTuple):
    """What some columns hold."""

    values: int = 0
    text: int = 0  # bytes of all texts
    distinct: int = 0  # bytes of the texts that differ, at most

    @property
    def n_bytes(self) -> int:
        """Bytes of a copy of the columns; evaluating them makes several."""
        of_texts = STRING_COPIES * self.text + DISTINCT_COPIES * min(self.text, self.distinct)
        return BYTES_PER_VALUE * self.values + int(of_texts)

    def plus(self, other: Size) -> Size:
        """Both together."""
        return Size(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def size_of_rows(rows: int, columns: int, text: int) -> Size:
    """Rows of some columns, any two of whose texts may differ."""
    return Size(rows * columns, text, text)


# Parquet


def size_of_parquet(files: Iterable[tuple[str, Any]], wanted: Collection[str]) -> Size:
    """The wanted columns of Parquet files, given with their metadata."""
    groups, size = [], Size()
    for path, metadata in files:
        leaves = [metadata.schema.column(at) for at in range(len(metadata.schema))]
        columns = [at for at, leaf in enumerate(leaves) if _is_in(leaf, wanted)]
        size = size.plus(Size(metadata.num_rows * len(columns)))
        strings = [leaves[at].path for at in columns if leaves[at].physical_type == "BYTE_ARRAY"]
        for nth in range(metadata.num_row_groups if strings else 0):
            group = metadata.row_group(nth)  # of whose columns PyArrow may end the process where a footer is damaged
            if group.num_rows:
                groups.append((path, metadata, nth, strings))
                size = size.plus(Size(distinct=group.total_byte_size))
    rows = sum(metadata.row_group(nth).num_rows for _, metadata, nth, _ in groups)
    return size.plus(Size(text=int(rows * _mean_texts(groups)))) if rows else size


def _is_in(leaf: Any, wanted: Collection[str]) -> bool:
    """Whether a leaf is a wanted column, or lies in one; a field of a struct may be called like a column."""
    if leaf.path == leaf.name:
        return leaf.name in wanted
    return any(leaf.path.startswith(f"{name}.") for name in wanted)


def _mean_texts(groups: Sequence[tuple[str, Any, int, list[str]]]) -> float:
    """Bytes of the texts of a row, on average, in the first rows of some of the row groups."""
    step = max(1, len(groups) // SAMPLED_GROUPS)
    found = [_first_strings(*group) for group in groups[::step]]
    require("pyarrow", "cli", what="reading files").default_memory_pool().release_unused()
    rows = sum(rows for rows, _ in found)
    return sum(n_bytes for _, n_bytes in found) / rows if rows else 0.0


def _first_strings(path: str, metadata: Any, nth: int, names: list[str]) -> tuple[int, int]:
    """How many rows were read at the beginning of a row group, and the bytes of their texts."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        with parquet.ParquetFile(
            utf8_path(path), metadata=metadata, buffer_size=SAMPLED_BYTES, pre_buffer=False
        ) as file:
            batches = file.iter_batches(SAMPLED_ROWS, row_groups=[nth], columns=names, use_threads=False)
            batch = next(iter(batches), None)
    except damages_of_parquet():  # reading it will say what is wrong
        return 0, 0
    return (0, 0) if batch is None else (batch.num_rows, batch.nbytes)


# Text


def size_of_text(files: Files, wanted: Collection[str]) -> Size:
    """The wanted columns of CSV, JSON lines or TREC files, by the first lines of each."""
    total = Size()
    for path in files.paths:
        total = total.plus(_size_of_text(path, wanted))
    return total


def _size_of_text(path: str, wanted: Collection[str]) -> Size:
    with open(path, "rb") as file:
        sample = file.read(SAMPLED_BYTES)
    n_bytes = os.path.getsize(path)
    if is_packed(path):
        sample, factor = _unpack(sample)
        n_bytes = max(int(n_bytes * factor), _size_of_last_member(path))
    lines = max(sample.count(b"\n"), sample.count(b"\r"), 1)
    head = sample.splitlines()[0] if sample else b""
    columns = max(2, sum(name.encode(errors="surrogatepass") in head for name in wanted))
    values = int(n_bytes * lines / max(len(sample), 1)) * columns
    return Size(values, max(0, n_bytes - USUAL_STRING * values))


def _unpack(sample: bytes) -> tuple[bytes, float]:
    """The beginning of a gzip file, unpacked, and how much longer that makes it."""
    stream = zlib.decompressobj(wbits=31)
    try:
        text = stream.decompress(sample, UNPACKED_BYTES)
    except zlib.error:  # reading it will say what is wrong
        return b"", 1.0
    used = len(sample) - len(stream.unconsumed_tail) - len(stream.unused_data)
    return text, len(text) / max(used, 1)


def _size_of_last_member(path: str) -> int:
    with open(path, "rb") as file:
        file.seek(-min(SIZE_OF_MEMBER, os.path.getsize(path)), os.SEEK_END)
        return int.from_bytes(file.read(), "little")

"""Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from fastrec.files.formats.base import FileHead, Format
from fastrec.files.paths import Files, utf8_path
from fastrec.files.sizes import SAMPLED_BYTES, Size
from fastrec.inputs.strings import bytes_of
from fastrec.runtime.extras import require

__all__ = ["PARQUET", "ROWS_AT_ONCE"]

ROWS_AT_ONCE = 1 << 16  # larger pieces take new memory from the system each time
BYTES_AT_ONCE, FIRST_ROWS = 1 << 22, 64
BUFFER = 1 << 20  # bytes of a column that are read at once, in place of the whole column of a row group
SAMPLED_FILES, SAMPLED_GROUPS, SAMPLED_ROWS = 64, 4, 1024
SPARED = {"BOOLEAN": 7, "INT32": 4, "FLOAT": 4}  # bytes that a value takes less than the widest


class _Parquet(Format):
    """Parquet."""

    name, title = "parquet", "Parquet"
    endings = (".parquet", ".pq")
    magic = b"PAR1"

    def head(self, path: str) -> FileHead:
        pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
        metadata = parquet.read_metadata(pa.OSFile(utf8_path(path)))
        return FileHead(metadata.schema.to_arrow_schema(), metadata.num_rows, metadata)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
        with parquet.ParquetFile(pa.OSFile(utf8_path(path)), pre_buffer=False, buffer_size=BUFFER) as file:
            schema = file.schema_arrow
            names = [schema.names[at] for at in wanted]
            rows = _rows_at_once(file, [name for name in names if not _is_narrow(schema.field(name).type)])
            for group in range(file.num_row_groups):  # PyArrow reads no more rows than a row group claims
                for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                    yield batch.select(names)  # "a.b" reads the field b of a column a, too

    def size(self, files: Files, names: Collection[str]) -> Size:
        parquet = require("pyarrow.parquet", "cli", what="reading files")
        try:
            return _size_of_parquet(parquet.read_metadata, files.paths, names)
        except self.damages():
            return Size()  # reading the file explains what is wrong


def _is_narrow(kind: Any) -> bool:
    """Return whether values of a type have few bytes each."""
    from pyarrow import types

    return bool(types.is_primitive(kind))


def _rows_at_once(file: Any, wide: list[str]) -> int:
    """Return how many rows to read at once: fewer of long strings and lists, some of which the first rows show."""
    if not wide:
        return ROWS_AT_ONCE
    batch = next(file.iter_batches(FIRST_ROWS, columns=wide, use_threads=False), None)
    n_bytes = 0 if batch is None else sum(map(bytes_of, batch.columns)) // max(len(batch), 1)
    return min(ROWS_AT_ONCE, 1 + BYTES_AT_ONCE // max(n_bytes, 1))


def _size_of_parquet(read_metadata: Callable[[str], Any], paths: Sequence[str], wanted: Collection[str]) -> Size:
    """Estimate the size of the wanted columns of files, from some of them if they are many."""
    sampled, groups, size = paths[:: -(-len(paths) // SAMPLED_FILES)], [], Size()
    for path in sampled:
        metadata = read_metadata(utf8_path(path))
        leaves = [metadata.schema.column(at) for at in range(len(metadata.schema))]
        columns = [leaf for leaf in leaves if _is_in(leaf, wanted)]
        spared = sum(SPARED.get(leaf.physical_type, 0) for leaf in columns)
        size = size.plus(Size(metadata.num_rows * len(columns), spared=metadata.num_rows * spared))
        strings = [leaf.path for leaf in columns if leaf.physical_type == "BYTE_ARRAY"]
        for nth in range(metadata.num_row_groups if strings else 0):
            group = metadata.row_group(nth)  # not of its columns: with a damaged footer PyArrow ends the process
            if group.num_rows:
                groups.append((path, metadata, nth, strings))
                size = size.plus(Size(distinct=group.total_byte_size))
    rows = sum(metadata.row_group(nth).num_rows for _, metadata, nth, _ in groups)
    size = size.plus(Size(text=int(rows * _mean_strings(groups)))) if rows else size
    n_bytes, n_sampled = (sum(map(os.path.getsize, some)) for some in (paths, sampled))
    return Size(*(value * n_bytes // n_sampled for value in size))


def _is_in(leaf: Any, wanted: Collection[str]) -> bool:
    """Return whether a leaf is a wanted column or lies in one; a field of a struct may have the name of a column."""
    if leaf.path == leaf.name:
        return leaf.name in wanted
    return any(leaf.path.startswith(f"{name}.") for name in wanted)


def _mean_strings(groups: Sequence[tuple[str, Any, int, list[str]]]) -> float:
    """Return the mean bytes of the strings of a row, from the first rows of some row groups."""
    step = max(1, len(groups) // SAMPLED_GROUPS)
    found = [_first_strings(*group) for group in groups[::step]]
    require("pyarrow", "cli", what="reading files").default_memory_pool().release_unused()
    rows = sum(rows for rows, _ in found)
    return sum(n_bytes for _, n_bytes in found) / rows if rows else 0.0


def _first_strings(path: str, metadata: Any, nth: int, names: list[str]) -> tuple[int, int]:
    """Return the number of rows sampled from the beginning of a row group, and the bytes of their strings."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        with parquet.ParquetFile(
            utf8_path(path), metadata=metadata, buffer_size=SAMPLED_BYTES, pre_buffer=False
        ) as file:
            batches = file.iter_batches(SAMPLED_ROWS, row_groups=[nth], columns=names, use_threads=False)
            batch = next(iter(batches), None)
    except PARQUET.damages():  # reading the file explains what is wrong
        return 0, 0
    return (0, 0) if batch is None else (batch.num_rows, sum(map(bytes_of, batch.columns)))


PARQUET = _Parquet()

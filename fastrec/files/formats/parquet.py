"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastrec.files.formats.base import FileHead, Format
from fastrec.files.paths import utf8_path
from fastrec.inputs.strings import bytes_of
from fastrec.runtime.extras import require

ROWS_AT_ONCE = 1 << 16  # larger pieces take new memory from the system each time
BYTES_AT_ONCE, FIRST_ROWS = 1 << 22, 64
BUFFER = 1 << 20  # bytes of a column that are read at once, in place of the whole column of a row group


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
        from pyarrow import types

        pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
        with parquet.ParquetFile(pa.OSFile(utf8_path(path)), pre_buffer=False, buffer_size=BUFFER) as file:
            schema = file.schema_arrow
            names = [schema.names[at] for at in wanted]
            rows = rows_at_once(file, [name for name in names if not types.is_primitive(schema.field(name).type)])
            for group in range(file.num_row_groups):  # PyArrow reads no more rows than a row group claims
                for batch in file.iter_batches(rows, row_groups=[group], columns=names, use_threads=False):
                    yield batch.select(names)  # "a.b" reads the field b of a column a, too


def rows_at_once(file: Any, wide: list[str], most: int = ROWS_AT_ONCE, most_bytes: int = BYTES_AT_ONCE) -> int:
    """Return how many rows to read at once: fewer of long strings and lists, some of which the first rows show."""
    if not wide:
        return most
    batch = next(file.iter_batches(FIRST_ROWS, columns=wide, use_threads=False), None)
    n_bytes = 0 if batch is None else sum(map(bytes_of, batch.columns)) // max(len(batch), 1)
    return min(most, 1 + most_bytes // max(n_bytes, 1))


PARQUET = _Parquet()

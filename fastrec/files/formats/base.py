"""What a format of files is: how to recognise it, and how to read its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from fastrec.files.columns import FileColumns
from fastrec.files.formats.heads import Beginning
from fastrec.inputs.strings import bytes_of
from fastrec.runtime.extras import require

AnyColumns = TypeVar("AnyColumns", bound=FileColumns)
Batch = Any  # pyarrow.RecordBatch
SAMPLED_FILES, SAMPLED_ROWS = 4, 1024
MANY_BITS = 1 << 10  # of values of different sizes
BYTES_PER_VALUE = 12  # of all that a column takes
STRING_COPIES = 1.35  # beside each copy of the values


class Size(NamedTuple):
    """An estimate of the size of some columns, from their heads and a sample, before they are read.

    It may be wrong: the readers count the bytes that they read, and stop when these are too many.
    """

    values: int
    text: int  # bytes of all strings
    spared: int = 0  # bytes that values narrower than 8 bytes do without

    @property
    def n_bytes(self) -> int:
        """Bytes of one copy of the columns; an evaluation makes several."""
        return BYTES_PER_VALUE * self.values - self.spared + int(STRING_COPIES * self.text)


class FileHead(NamedTuple):
    """What the beginning or the end of a file tells."""

    schema: Any  # pyarrow.Schema
    rows: int | None  # None: some, counted as they are read
    metadata: Any = None  # of Parquet


class Format(ABC):
    """A format of files, which are read in batches of rows."""

    name: str  # value of `input_format`
    title: str  # in messages
    endings: tuple[str, ...] = ()  # of the names of its files
    magic: bytes = b""  # begins each of its files; b"": text
    has_types: bool = True  # whether columns have types; if not, all are strings
    has_labels: bool = True  # whether a file can hold the labels of users
    remarks: Sequence[str] = ()  # about files that were read
    ids_are_strings: bool = False  # whether ids are strings, even digits, unless other files have integers

    def has_magic(self, start: Beginning) -> bool:
        """Return whether a file begins like those of a format that is not text."""
        return start.first.startswith(self.magic)

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        """Return whether a text file is in this format; `names` are the columns that may be read."""
        return start.ending in self.endings

    def columns(self, columns: AnyColumns, paths: Sequence[str]) -> AnyColumns:
        """Return the columns to read of files, from those that a call names."""
        return columns

    def bound(self, columns: FileColumns, n_threads: int) -> Format:
        """Return this format for files of which so many threads read some columns."""
        return self

    @abstractmethod
    def head(self, path: str) -> FileHead:
        """Return the schema and the number of rows of a file, at little cost."""

    @abstractmethod
    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Batch]:
        """Yield the rows of a file with the columns at some positions; `wanted` are {position: type}, in order.

        The types are those of the schema, except in formats without types: there numbers may be asked for. A batch
        has strings in their place if some of them are not plain.
        """

    def size(self, paths: Sequence[str], heads: Sequence[FileHead], names: Collection[str]) -> Size:
        """Estimate the size of some columns, that of strings from the first rows of some files."""
        from pyarrow import types

        values, spared, with_strings = 0, 0, []
        for path, head in zip(paths, heads, strict=True):
            own = {at: field.type for at, field in enumerate(head.schema) if field.name in names}
            rows = head.rows or 0
            values += rows * len(own)
            spared += rows * sum(max(8 - kind.bit_width // 8, 0) for kind in own.values() if types.is_primitive(kind))
            strings = {at: kind for at, kind in own.items() if holds_strings(kind)}
            if strings and rows:
                with_strings.append((path, strings, rows))
        some = with_strings[:: max(1, len(with_strings) // SAMPLED_FILES)]
        means = [self._mean_strings(path, at) for path, at, _ in some]
        text = int(sum(rows for *_, rows in with_strings) * sum(means) / max(len(means), 1))
        return Size(values, text, spared)

    def _mean_strings(self, path: str, wanted: Mapping[int, Any]) -> float:
        """Return the mean bytes of the strings of a row, from the first rows of a file; each code has 4 bytes."""
        try:
            batch = next(iter(self.batches(path, wanted)), None)
            rows: Any = None if batch is None else batch.slice(0, SAMPLED_ROWS)
            return sum(bytes_of(own) for own in rows.columns) / len(rows) if rows else 0.0
        except self.damages():
            return 0.0

    def place(self, path: str, position: int) -> str:
        """Return how errors name the row at a position of a file."""
        return f"row {position + 1}"

    def reason(self, path: str) -> str:
        """Return what is wrong with a file that cannot be read; "": what the reader says."""
        return ""

    @staticmethod
    def damages() -> tuple[type[Exception], ...]:
        """Return the errors of PyArrow for damaged files; MemoryError as such a file may claim too many rows."""
        pa = require("pyarrow", "cli", what="reading files")
        return (OSError, ValueError, MemoryError, OverflowError, pa.ArrowException)


def narrowest(schema: Any) -> int | None:
    """Return the position of a column whose rows can be counted at the least cost; None if there are no columns."""
    from pyarrow import types

    def width(at: int) -> int:
        kind = schema.field(at).type
        return kind.bit_width if types.is_primitive(kind) else MANY_BITS

    return min(range(len(schema)), key=width, default=None)


def holds_strings(kind: Any) -> bool:
    """Return whether a type of Arrow is of strings, encoded or not."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view))

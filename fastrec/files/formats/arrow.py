"""Arrow files, also called Feather (version 2), and files that hold a stream of Arrow batches."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.files.formats.base import FileHead, Format
from fastrec.files.formats.heads import Beginning
from fastrec.files.paths import utf8_path
from fastrec.runtime.extras import require

__all__ = ["ARROW"]

STREAM = b"\xff\xff\xff\xff"  # begins each message of a stream
END = STREAM + bytes(4)  # of a stream
MANY_BITS = 1 << 10
ROWS_AT_ONCE = 1 << 16
MAPPED_BATCH = 1 << 26  # bytes; batches of larger mean size are mapped, as one may not fit in memory


class _Arrow(Format):
    """Arrow files and streams. Each batch is checked: PyArrow itself trusts the lengths and codes that a file holds."""

    name, title = "arrow", "Arrow"
    endings = (".arrow", ".arrows", ".feather", ".ipc")
    magic = b"ARROW1"

    def has_magic(self, start: Beginning) -> bool:
        return super().has_magic(start) or start.first.startswith(STREAM)

    def head(self, path: str) -> FileHead:
        with _reader(path, ()) as (reader, *_):
            schema = reader.schema
        narrowest = min(range(len(schema)), key=lambda at: _width(schema.field(at).type), default=None)
        n_rows = 0
        if narrowest is not None:
            with _reader(path, [narrowest]) as (reader, source, free):
                n_rows = sum(len(batch) for batch in _batches(reader, source))
                if free:
                    free()
        return FileHead(schema, n_rows)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        with _reader(path, list(wanted)) as (reader, source, free):
            for batch in _batches(reader, source):
                n_rows = ROWS_AT_ONCE if free else len(batch)
                for start in range(0, len(batch), n_rows or 1):
                    rows = batch.slice(start, n_rows)
                    rows.validate(full=True)
                    yield rows
                    if free:
                        free()


def _width(kind: Any) -> int:
    """Return the bits of a value of a type, many if they vary."""
    from pyarrow import types

    return kind.bit_width if types.is_primitive(kind) else MANY_BITS


def _batches(reader: Any, source: Any) -> Iterator[Any]:
    """Yield the batches of an open file or stream."""
    if hasattr(reader, "get_batch"):
        yield from map(reader.get_batch, range(reader.num_record_batches))
        return
    yield from reader
    _check_end(source)


@contextlib.contextmanager
def _reader(path: str, at: Sequence[int]) -> Iterator[tuple[Any, Any, Callable[[], Any] | None]]:
    """Open a file with the columns at some positions, or all; return its reader, itself, what frees mapped memory."""
    pa = require("pyarrow", "cli", what="reading files")
    options = pa.ipc.IpcReadOptions(included_fields=list(at), use_threads=False)
    with pa.OSFile(utf8_path(path)) as source:
        if source.read(len(STREAM)) == STREAM:
            source.seek(0)
            yield pa.ipc.open_stream(source, options=options), source, None
            return
        reader = pa.ipc.open_file(source, options=options)
        if source.size() <= MAPPED_BATCH * reader.num_record_batches:
            yield reader, source, None
            return
    with open(path, "rb") as file:
        # not closed here: rows that are still in use point into it
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    source = pa.BufferReader(pa.py_buffer(mapped))
    free = (lambda: mapped.madvise(mmap.MADV_DONTNEED)) if hasattr(mapped, "madvise") else lambda: None
    yield pa.ipc.open_file(source, options=options), source, free


def _check_end(source: Any) -> None:
    """Raise unless a stream that was read ends the file with its mark: PyArrow takes one that was cut for whole."""
    at, size = source.tell(), source.size()
    source.seek(size - len(END))
    if source.read(len(END)) != END:
        raise ValueError("the stream has no end; it may have been cut, or its writer was not closed")
    if at != size:
        raise ValueError(f"the stream ends {size - at} bytes before the file")


ARROW = _Arrow()

"""Arrow files, also called Feather (version 2), and files that hold a stream of Arrow batches."""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.files.formats.base import FileHead, Format, narrowest
from fastrec.files.formats.heads import Beginning
from fastrec.files.paths import utf8_path
from fastrec.runtime.extras import require

STREAM = b"\xff\xff\xff\xff"  # begins each message of a stream
END = STREAM + bytes(4)  # of a stream
ROWS_AT_ONCE = 1 << 16
MARK_BYTES = 8  # of a file, before the messages of a stream
LENGTH_BYTES, NOT_COMPRESSED = 8, b"\xff" * 8  # of a buffer of a compressed batch, and in place of its length
COMPRESSORS = (b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")  # first bytes of a frame of zstd and of LZ4
MAPPED_BATCH = 1 << 26  # bytes; batches of larger mean size are mapped, as one may not fit in memory


class _Arrow(Format):
    """Arrow files and streams. Each batch is checked: PyArrow itself trusts the lengths and codes that a file holds."""

    name, title = "arrow", "Arrow"
    endings = (".arrow", ".arrows", ".feather", ".ipc")
    magic = b"ARROW1"

    def has_magic(self, start: Beginning) -> bool:
        return super().has_magic(start) or start.first.startswith(STREAM)

    def head(self, path: str) -> FileHead:
        with _opened(path, ()) as (schema, *_):
            pass
        column, n_rows = narrowest(schema), 0
        if column is not None:
            with _opened(path, [column]) as (_, batches, free):
                n_rows = sum(map(len, batches))
                if free:
                    free()
        return FileHead(schema, n_rows)

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        with _opened(path, list(wanted)) as (_, batches, free):
            for batch in batches:
                n_rows = ROWS_AT_ONCE if free else len(batch)
                for start in range(0, len(batch), n_rows or 1):
                    rows = batch.slice(start, n_rows)
                    rows.validate(full=True)
                    yield rows
                    if free:
                        free()


@contextlib.contextmanager
def _opened(path: str, at: Sequence[int]) -> Iterator[tuple[Any, Iterator[Any], Callable[[], Any] | None]]:
    """Open a file; return its schema, its batches with the columns at some positions, and what frees mapped memory.

    The schema is that of all columns if there are no positions.
    """
    pa = require("pyarrow", "cli", what="reading files")
    options = pa.ipc.IpcReadOptions(included_fields=list(at), use_threads=False)
    with pa.OSFile(utf8_path(path)) as source:
        if source.read(len(STREAM)) == STREAM:
            source.seek(0)
            reader = pa.ipc.open_stream(source, options=options)
            yield reader.schema, _whole_stream(reader, source), None
            return
        reader = pa.ipc.open_file(source, options=options)
        if source.size() <= MAPPED_BATCH * reader.num_record_batches:
            yield reader.schema, map(reader.get_batch, range(reader.num_record_batches)), None
            return
    with open(path, "rb") as file:
        # not closed here: rows that are still in use point into it
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    source = pa.BufferReader(pa.py_buffer(mapped))
    free = (lambda: mapped.madvise(mmap.MADV_DONTNEED)) if hasattr(mapped, "madvise") else lambda: None
    if _is_compressed(pa.ipc.MessageReader.open_stream(pa.BufferReader(pa.py_buffer(mapped).slice(MARK_BYTES)))):
        reader = pa.ipc.open_file(source, options=options)
        yield reader.schema, map(reader.get_batch, range(reader.num_record_batches)), free
    else:
        reader = pa.ipc.open_file(source)  # some columns would be copied, all are not
        batches = (reader.get_batch(nth).select(list(at)) for nth in range(reader.num_record_batches))
        yield reader.schema, batches, free


def _is_compressed(messages: Iterable[Any]) -> bool:
    """Return whether the buffers of the first batch begin with their length, and then as the compressors mark them."""
    for message in messages:
        if message.type == "record batch":
            start: bytes = message.body.slice(0, LENGTH_BYTES + MARK_BYTES).to_pybytes()
            return start.startswith(NOT_COMPRESSED) or start[LENGTH_BYTES:].startswith(COMPRESSORS)
    return False


def _whole_stream(reader: Any, source: Any) -> Iterator[Any]:
    """Yield the batches of a stream; raise unless its mark ends the file: PyArrow takes one that was cut for whole."""
    yield from reader
    at, size = source.tell(), source.size()
    source.seek(size - len(END))
    if source.read(len(END)) != END:
        raise ValueError("the stream has no end; it may have been cut, or its writer was not closed")
    if at != size:
        raise ValueError(f"the stream ends {size - at} bytes before the file")


ARROW = _Arrow()

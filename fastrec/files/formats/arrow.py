"""Arrow files, also called Feather (version 2), and files that hold a stream of Arrow batches."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from fastrec.files.formats.batches import BatchedFormat
from fastrec.files.formats.heads import Beginning
from fastrec.files.paths import utf8_path
from fastrec.runtime.extras import require

__all__ = ["ARROW"]

STREAM = b"\xff\xff\xff\xff"  # begins each message of a stream
END = STREAM + bytes(4)  # of a stream
MANY_BITS = 1 << 10
MAPPED_BATCH = 1 << 26  # bytes; batches of larger mean size are mapped, as one may not fit in memory


class _Arrow(BatchedFormat):
    """Arrow files and streams."""

    name, title = "arrow", "Arrow"
    endings = (".arrow", ".arrows", ".feather", ".ipc")
    magic = b"ARROW1"

    def has_magic(self, start: Beginning) -> bool:
        return super().has_magic(start) or start.first.startswith(STREAM)

    def head(self, path: str) -> tuple[Any, int]:
        with _reader(path, ()) as (reader, _, _):
            schema = reader.schema
        narrowest = min(range(len(schema)), key=lambda at: _width(schema.field(at).type), default=None)
        return schema, 0 if narrowest is None else sum(map(len, self.batches(path, [narrowest])))

    def batches(self, path: str, at: Sequence[int]) -> Iterator[Any]:
        with _reader(path, at) as (reader, source, is_stream):
            yield from reader if is_stream else map(reader.get_batch, range(reader.num_record_batches))
            if is_stream:
                _check_end(source)


def _width(kind: Any) -> int:
    """Return the bits of a value of a type, many if they vary."""
    from pyarrow import types

    return kind.bit_width if types.is_primitive(kind) else MANY_BITS


@contextlib.contextmanager
def _reader(path: str, at: Sequence[int]) -> Iterator[tuple[Any, Any, bool]]:
    """Open a file with the columns at some positions, or all; return its reader, itself, and whether it is a stream."""
    pa = require("pyarrow", "cli", what="reading files")
    options = pa.ipc.IpcReadOptions(included_fields=list(at), use_threads=False)
    with pa.OSFile(utf8_path(path)) as source:
        if source.read(len(STREAM)) == STREAM:
            source.seek(0)
            yield pa.ipc.open_stream(source, options=options), source, True
            return
        reader = pa.ipc.open_file(source, options=options)
        if source.size() <= MAPPED_BATCH * reader.num_record_batches:
            yield reader, source, False
            return
    with pa.memory_map(utf8_path(path)) as source:
        yield pa.ipc.open_file(source, options=options), source, False


def _check_end(source: Any) -> None:
    """Raise unless a stream that was read ends the file with its mark: PyArrow takes one that was cut for whole."""
    at, size = source.tell(), source.size()
    source.seek(size - len(END))
    if source.read(len(END)) != END:
        raise ValueError("the stream has no end; it may have been cut, or its writer was not closed")
    if at != size:
        raise ValueError(f"the stream ends {size - at} bytes before the file")


ARROW = _Arrow()

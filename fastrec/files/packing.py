"""Packed files, and their bytes unpacked."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, BinaryIO, NamedTuple

from fastrec.exceptions import InputError
from fastrec.runtime.extras import require

BLOCK = 1 << 16
UTF16_MARKS, MOST_BYTES = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), 4  # of a character in UTF-8


class _Packing(NamedTuple):
    name: str
    magic: bytes  # its first bytes
    ending: str


GZIP = _Packing("gzip", b"\x1f\x8b", ".gz")
ZSTD = _Packing("zstd", b"\x28\xb5\x2f\xfd", ".zst")
ENDINGS = (GZIP.ending, ZSTD.ending)
LONGEST_MAGIC = max(len(packing.magic) for packing in (GZIP, ZSTD))


def packing_in(file: BinaryIO) -> str:
    """Return how an open file is packed, "gzip" or "zstd", by its first bytes; empty if it is not.

    The file is still read from its first byte on.
    """
    first = file.read(LONGEST_MAGIC)
    file.seek(0)
    return next((packing.name for packing in (GZIP, ZSTD) if first.startswith(packing.magic)), "")


@contextlib.contextmanager
def unpacked(path: str, encoding: str = "") -> Iterator[IO[bytes]]:
    """Open a file for reading its bytes, unpacked; raise InputError where it is damaged.

    Text in an encoding, or in UTF-16 with a byte order mark, becomes UTF-8.
    """
    with open(path, "rb") as file:
        packing = packing_in(file)
        if not packing:
            yield _as_utf8(file, encoding)
            return
        try:
            with _OPEN[packing](file) as stream:
                yield _as_utf8(stream, encoding)
        except (EOFError, zlib.error, OSError) as error:
            raise InputError(path, f": damaged {packing} file: {error}") from error


def _as_utf8(stream: Any, encoding: str) -> Any:
    """Return a stream of text in UTF-8; bytes that are no UTF-16 stay as they are."""
    stream = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    if not encoding and stream.peek(len(codecs.BOM_UTF16))[: len(codecs.BOM_UTF16)] not in UTF16_MARKS:
        return stream
    return io.BufferedReader(_Transcoded(io.TextIOWrapper(stream, encoding or "utf-16", newline="")))


class _Transcoded(io.RawIOBase):
    """The characters of a text, in UTF-8."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._text.read(max(len(buffer) // MOST_BYTES, 1)).encode()
        buffer[: len(data)] = data
        return len(data)


def _open_zstd(source: Any) -> Any:
    pa = require("pyarrow", "cli", what="reading files packed with zstd")
    return io.BufferedReader(pa.CompressedInputStream(source, ZSTD.name))


_OPEN: dict[str, Callable[[IO[bytes]], Any]] = {GZIP.name: gzip.open, ZSTD.name: _open_zstd}


def start_of_packed(packed: bytes, packing: str, n_unpacked: int) -> tuple[bytes, float]:
    """Return the first bytes of a packed file, unpacked, and the ratio of unpacked to packed bytes.

    It unpacks at most about `n_unpacked` bytes. Of a damaged file it returns what comes before the damage.
    """
    if packing == GZIP.name:
        stream = zlib.decompressobj(wbits=31)
        try:
            text = stream.decompress(packed, n_unpacked)
        except zlib.error:
            return b"", 1.0
        return text, len(text) / max(len(packed) - len(stream.unconsumed_tail) - len(stream.unused_data), 1)
    pa = require("pyarrow", "cli", what="reading files packed with zstd")
    source, found = pa.BufferReader(packed), bytearray()
    with contextlib.suppress(OSError), _open_zstd(source) as unpacked_stream:
        while len(found) < n_unpacked and (block := unpacked_stream.read(BLOCK)):
            found += block
        packed = packed[: source.tell()]
    return bytes(found), len(found) / max(len(packed), 1)

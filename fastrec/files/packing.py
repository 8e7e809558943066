"""Packed files, and their bytes unpacked."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from fastrec.exceptions import InputError
from fastrec.runtime.extras import require

BLOCK = 1 << 16
UTF16_MARKS, MOST_BYTES = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), 4  # of a character in UTF-8
ENDINGS = (".gz", ".zst")
MAGICS = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}  # first bytes
DAMAGES = (EOFError, zlib.error, OSError)


def packing_in(file: BinaryIO) -> str:
    """Return how an open file is packed, "gzip" or "zstd", by its first bytes; empty if it is not.

    The file is still read from its first byte on.
    """
    first = file.read(max(map(len, MAGICS.values())))
    file.seek(0)
    return next((packing for packing, magic in MAGICS.items() if first.startswith(magic)), "")


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
            with _open(file, packing) as stream:
                yield _as_utf8(stream, encoding)
        except DAMAGES as error:
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


def _open(source: Any, packing: str) -> Any:
    if packing == "gzip":
        return gzip.open(source)
    pa = require("pyarrow", "cli", what="reading files packed with zstd")
    return io.BufferedReader(pa.CompressedInputStream(source, packing))


def start_of_packed(packed: bytes, packing: str, n_unpacked: int) -> bytes:
    """Return at least `n_unpacked` first bytes of a packed file, unpacked, or all before its end or a damage."""
    found = bytearray()
    with contextlib.suppress(*DAMAGES), _open(io.BytesIO(packed), packing) as stream:
        while len(found) < n_unpacked and (block := stream.read1(BLOCK)):
            found += block
    return bytes(found)

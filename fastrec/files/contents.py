"""Bytes of small files, read once: several readers look at each file, and opening it takes longer than reading it."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

__all__ = ["NOTHING_KEPT", "Contents"]

SMALL = 1 << 20  # bytes: of a larger file, reading takes longer than opening it again


class Contents:
    """Keeps the bytes of small files that it opens, at most `n_bytes` of all, until `forget`."""

    def __init__(self, n_bytes: int = 0) -> None:
        self._left = n_bytes
        self._kept: dict[str, bytes] = {}

    def open(self, path: str) -> BinaryIO:
        """Open a file to read its bytes."""
        if path in self._kept:
            return io.BytesIO(self._kept[path])
        stream = io.FileIO(path)
        size = os.fstat(stream.fileno()).st_size
        if not 0 < size <= min(SMALL, self._left):
            return io.BufferedReader(stream)
        with stream:
            kept = self._kept[path] = stream.readall()
        self._left -= len(kept)
        return io.BytesIO(kept)

    def kept(self, path: str) -> bytes | None:
        """Return the bytes of a file, if they are kept."""
        return self._kept.get(path)

    def forget(self) -> None:
        """Free the memory, and keep no more."""
        self._kept.clear()
        self._left = 0


NOTHING_KEPT = Contents()

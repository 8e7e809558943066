"""Estimates of the memory that the columns of files take, from their heads and a sample, before they are read.

An estimate from a sample may be wrong: the readers count the bytes that they read, and stop when these are too many.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from fastrec.files.packing import packing_in, start_of_packed
from fastrec.files.paths import Files

BYTES_PER_VALUE = 12  # of all that a column takes
STRING_COPIES = 1.35  # beside each copy of the values
SAMPLED_BYTES, UNPACKED_BYTES = 1 << 16, 1 << 22
SIZE_OF_MEMBER = 4  # bytes at the end of a gzip file with the unpacked length of its last member
USUAL_STRING = 12  # bytes of a string and its delimiter that BYTES_PER_VALUE covers


class Size(NamedTuple):
    """The size of some columns."""

    values: int = 0
    text: int = 0  # bytes of all strings
    spared: int = 0  # bytes that values narrower than 8 bytes do without

    @property
    def n_bytes(self) -> int:
        """Bytes of one copy of the columns; an evaluation makes several."""
        return BYTES_PER_VALUE * self.values - self.spared + int(STRING_COPIES * self.text)

    def plus(self, other: Size) -> Size:
        """Return the sum of both sizes."""
        return Size(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


def size_of_text(files: Files, wanted: Collection[str]) -> Size:
    """Estimate the size of the wanted columns of CSV, JSON lines or TREC files, from the first lines of each."""
    total = Size()
    for path in files.paths:
        total = total.plus(_size_of_text(path, wanted))
    return total


def _size_of_text(path: str, wanted: Collection[str]) -> Size:
    with open(path, "rb") as file:
        packing, sample, n_bytes = packing_in(file), file.read(SAMPLED_BYTES), file.seek(0, os.SEEK_END)
    if packing:
        sample, factor = start_of_packed(sample, packing, UNPACKED_BYTES)
        n_bytes = max(int(n_bytes * factor), _size_of_last_member(path) if packing == "gzip" else 0)
    lines = max(sample.count(b"\n"), sample.count(b"\r"), 1)
    head = sample.splitlines()[0] if sample else b""
    columns = max(2, sum(name.encode(errors="surrogatepass") in head for name in wanted))
    values = int(n_bytes * lines / max(len(sample), 1)) * columns
    return Size(values, max(0, n_bytes - USUAL_STRING * values))


def _size_of_last_member(path: str) -> int:
    with open(path, "rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - SIZE_OF_MEMBER))
        return int.from_bytes(file.read(), "little")

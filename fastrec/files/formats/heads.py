"""The beginning of files, and the lines of text files, which may be packed."""

from __future__ import annotations

import codecs
import functools
import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from fastrec.exceptions import InputError
from fastrec.files.formats.registry import FORMATS
from fastrec.files.packing import ENDINGS, unpacked

HEAD_BYTES = 1 << 20
MAGIC_BYTES = 16  # the longest magic
OTHER_PACKINGS = {"zip, as Excel files are": b"PK\x03\x04", "bz2": b"BZh", "xz": b"\xfd7zXZ\0"}


class Beginning:
    """First bytes and ending of a file, which tell its format."""

    def __init__(self, path: str) -> None:
        self.path = path
        name, ending = os.path.splitext(path.lower())
        self.ending = os.path.splitext(name)[1] if ending in ENDINGS else ending

    @functools.cached_property
    def first(self) -> bytes:
        """First bytes, enough for each magic."""
        with open(self.path, "rb") as stream:
            return stream.read(MAGIC_BYTES)

    @functools.cached_property
    def head(self) -> Head:
        """First megabyte as text; raises if the file is not text."""
        return read_head(self.path)


class Head(NamedTuple):
    """The beginning of a text file."""

    path: str
    text: str
    mark: int  # bytes of the byte order mark

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return next(self.lines(), "")

    def lines(self) -> Iterator[str]:
        """Yield the lines that are not blank."""
        lines = (found[0] for found in re.finditer(r"[^\r\n]+", self.text))
        return (line for line in lines if line.strip())


def read_head(path: str, encoding: str = "") -> Head:
    """Return the first megabyte of a file as text; raise if it is not text."""
    start = b""
    try:
        with unpacked(path, encoding) as stream:
            start = stream.read(HEAD_BYTES)
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError as error:
        raise InputError(path, f": {_no_text(start, f'{error.reason}, byte {error.start}')}") from error
    if "\0" in text:
        raise InputError(path, f": {_no_text(start, 'it has zero bytes')}")
    mark = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    return Head(path, text, mark)


def _no_text(start: bytes, why: str) -> str:
    for packing, magic in OTHER_PACKINGS.items():
        if start.startswith(magic):
            return f"packed with {packing}, which is not read: unpack it, or pack it with gzip or zstd"
    titles = [format_.title for format_ in FORMATS.values() if format_.magic]
    mend = "csv={'encoding': ...} (--encoding) names another encoding of text"
    return f"neither {', '.join(titles)} nor text in UTF-8: {why}; {mend}"


def lines_of(path: str, encoding: str = "") -> Iterator[bytes]:
    """Yield the lines of a file, unpacked."""
    with unpacked(path, encoding) as stream:
        yield from stream


def line_of(path: str, position: int, is_comment: Callable[[bytes], bool] = lambda _: False) -> str:
    """Return how errors name the line of a row, if each line that is not blank, nor begins a comment, is a row."""
    full = (number for number, line in enumerate(lines_of(path), 1) if line.strip() and not is_comment(line))
    return f"line {next(itertools.islice(full, position, None), position + 1)}"

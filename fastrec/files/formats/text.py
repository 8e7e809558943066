"""Text files in chunks of whole lines, and the formats of files of text whose columns have no types."""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from fastrec.exceptions import InputError
from fastrec.files.formats.base import FileHead, Format, Size
from fastrec.files.formats.heads import lines_of
from fastrec.files.packing import packing_in, start_of_packed, unpacked

CHUNK_BYTES = 1 << 22
LONGEST_LINE = 1 << 26  # bytes; what follows a quote that is not closed is one line
BYTES_AT_ONCE = 1 << 20  # they stay in a cache
SAMPLED_BYTES, UNPACKED_BYTES = 1 << 16, 1 << 26  # gzip packs a thousand bytes in one, at most
SIZE_OF_MEMBER = 4  # bytes at the end of a gzip file with the unpacked length of its last member
USUAL_STRING = 12  # bytes of a string and its delimiter that `Size` counts as a value


class StrayQuoteError(ValueError):
    """A text with a quote that is not around a whole value."""


class TextFormat(Format):
    """A format of text. The number of rows is known when they have been read."""

    has_types = False
    encoding = ""  # "": UTF-8
    mend = ""  # what to do about a file in another encoding

    @abstractmethod
    def rows(self, path: str) -> Iterator[object]:
        """Yield what Python reads as rows; raise ValueError with the line and what is wrong with it."""

    def reason(self, path: str) -> str:
        """Return what is wrong with the first line that is no row; "" if all lines are."""
        try:
            for _ in self.rows(path):
                pass
        except InputError:  # the file is damaged
            raise
        except UnicodeDecodeError:
            where, number = ("after line", 0) if self.encoding else ("line", 1)  # other encodings come in blocks
            with contextlib.suppress(UnicodeDecodeError):
                for line in lines_of(path, self.encoding):
                    line.decode()
                    number += 1
            return f"{where} {number}: not {self.encoding or 'UTF-8'}{self.mend}"
        except ValueError as error:
            return str(error)
        return ""

    def size(self, paths: Sequence[str], heads: Sequence[FileHead], names: Collection[str]) -> Size:
        """Estimate the size of the wanted columns, from the first lines of each file."""
        values, n_bytes = map(sum, zip(*(_size_of(path, names) for path in paths), strict=True))
        return Size(values, max(0, n_bytes - USUAL_STRING * values))


def _size_of(path: str, wanted: Collection[str]) -> tuple[int, int]:
    """Estimate how many values the wanted columns of a file have, and its bytes, unpacked."""
    with open(path, "rb") as file:
        packing, sample, n_bytes = packing_in(file), file.read(SAMPLED_BYTES), file.seek(0, os.SEEK_END)
        file.seek(max(0, n_bytes - SIZE_OF_MEMBER))
        last_member = int.from_bytes(file.read(), "little") if packing == "gzip" else 0
    if packing:
        packed, sample = sample, start_of_packed(sample, packing, UNPACKED_BYTES)
        n_bytes = max(n_bytes * len(sample) // len(packed), last_member)
    lines = max(sample.count(b"\n"), sample.count(b"\r"), 1)
    head = sample[:SAMPLED_BYTES].splitlines()[0] if sample else b""
    columns = max(2, sum(name.encode(errors="surrogatepass") in head for name in wanted))
    return int(n_bytes * lines / max(len(sample), 1)) * columns, n_bytes


def chunks(path: str, start: int, delimiter: str = "", encoding: str = "") -> Iterator[bytes]:
    """Yield a file from a byte on, unpacked, in chunks of whole lines; with a delimiter, quotes may hold line breaks.

    Raise StrayQuoteError before a chunk that has a stray quote.
    """
    with unpacked(path, encoding) as stream:
        stream.read(start)
        rest = b""
        while block := stream.read(CHUNK_BYTES):
            rest += block
            if delimiter and _has_stray_quotes(rest, delimiter):
                raise StrayQuoteError
            end = _end_of_lines(rest, may_be_quoted=bool(delimiter))
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > LONGEST_LINE:
                raise ValueError(f"a line has more than {LONGEST_LINE:,} bytes: is a quote not closed?")
        if rest:
            if delimiter and _is_open(rest):
                raise StrayQuoteError
            yield rest


def _end_of_lines(text: bytes, *, may_be_quoted: bool) -> int:
    """Return where the last whole line of a text ends."""
    end = _last_break(text, len(text))
    is_open = may_be_quoted and _is_open(text[:end])
    while is_open:
        before = _last_break(text, text.rindex(b'"', 0, end))
        is_open ^= _is_open(text[before:end])
        end = before
    return end


def _last_break(text: bytes, end: int) -> int:
    return max(text.rfind(b"\n", 0, end), text.rfind(b"\r", 0, end)) + 1


def _is_open(text: bytes) -> bool:
    return text.count(b'"') % 2 == 1


def _has_stray_quotes(text: bytes, delimiter: str) -> bool:
    """Return whether a quote is neither around a whole value nor doubled in one; the last may be open."""
    if b'"' not in text:
        return False
    data, is_open = np.frombuffer(text, np.uint8), False
    ends = np.zeros(256, bool)  # what may be beside a quote: ends of values, or the other of two quotes in a value
    ends[[ord(delimiter), *b'\r\n"']] = True
    for start in range(0, len(data), BYTES_AT_ONCE):
        quotes = np.flatnonzero(data[start : start + BYTES_AT_ONCE] == ord('"')) + start
        opening, closing = quotes[int(is_open) :: 2], quotes[1 - int(is_open) :: 2]
        before, after = data[opening[opening > 0] - 1], data[closing[closing < len(data) - 1] + 1]
        if not (ends[before].all() and ends[after].all()):
            return True
        is_open ^= len(quotes) % 2 == 1
    return False

"""Text files in chunks of whole lines, and the formats of files of text whose columns have no types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fastrec.files.formats.base import FileHead, Format
from fastrec.files.packing import unpacked
from fastrec.files.paths import Files
from fastrec.files.sizes import Size, size_of_text

__all__ = ["TextFormat", "chunks"]

CHUNK_BYTES = 1 << 23
LONGEST_LINE = 1 << 26  # bytes


class TextFormat(Format):
    """A format of text. The number of rows is known when they have been read."""

    has_types = False

    def size(self, files: Files, heads: Sequence[FileHead], names: Collection[str]) -> Size:
        """Estimate the size of the wanted columns, from the first lines of each file."""
        return size_of_text(files, names)


def chunks(path: str, start: int) -> Iterator[bytes]:
    """Yield a file from a byte on, unpacked, in chunks of whole lines."""
    with unpacked(path) as stream:
        stream.read(start)
        rest = b""
        while block := stream.read(CHUNK_BYTES):
            rest += block
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > LONGEST_LINE:
                raise ValueError(f"a line has more than {LONGEST_LINE:,} bytes")
        if rest:
            yield rest

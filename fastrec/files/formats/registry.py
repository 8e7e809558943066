"""The formats of files. Each describes itself in a module of its own, and registers there."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

from fastrec.files.columns import ListColumns, RowColumns
from fastrec.files.paths import Files
from fastrec.files.sizes import Size, size_of_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.files.formats.base import Source
    from fastrec.files.formats.heads import Beginning

__all__ = ["FORMATS", "Format", "register"]

AnyColumns = TypeVar("AnyColumns", bound=ListColumns | RowColumns)


class Format:
    """A format of files: how to recognise it, and how to read it."""

    name: str  # value of `input_format`
    title: str  # in messages
    endings: tuple[str, ...] = ()  # of the names of its files
    magic: bytes = b""  # begins each of its files; b"": text
    attempts: int = 1  # ways to open files, tried in order
    has_labels: bool = True  # whether a file can hold the labels of users
    ids_are_strings: bool = False  # whether ids are strings, even digits, unless other files have integers

    def begins(self, start: Beginning, names: Collection[str]) -> bool:
        """Return whether a text file is in this format; `names` are the columns that may be read."""
        return start.ending in self.endings

    def columns(self, columns: AnyColumns) -> AnyColumns:
        """Return the columns to read, from those that a call names."""
        return columns

    def open(self, con: DuckDBPyConnection, files: Files, columns: ListColumns | RowColumns, attempt: int) -> Source:
        """Return the SQL source of files."""
        raise NotImplementedError

    def size(self, files: Files, names: Collection[str]) -> Size:
        """Estimate the size of the wanted columns."""
        return size_of_text(files, names)

    def place(self, path: str, position: int) -> str:
        """Return how errors name the row at a position of a file."""
        return f"row {position + 1}"

    def reason(self, path: str) -> str:
        """Return what is wrong with a file that DuckDB cannot read; "": what DuckDB says."""
        return ""


FORMATS: dict[str, Format] = {}


def register(format_: Format) -> None:
    """Make a format known by its name."""
    FORMATS[format_.name] = format_

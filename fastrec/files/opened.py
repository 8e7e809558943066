"""The files of a call: found and recognised once, before anything reads rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from fastrec.files.columns import (
    ITEMS,
    USERS,
    FileColumns,
    ImpressionColumns,
    ItemColumns,
    ListColumns,
    RowColumns,
    SlateColumns,
)
from fastrec.files.formats.base import Format, Source
from fastrec.files.formats.recognise import AUTO, recognise
from fastrec.files.formats.registry import FORMATS
from fastrec.files.paths import Files, Stamp, find_files, stamps_of, unchanged
from fastrec.files.sizes import Size
from fastrec.inputs.items import ITEM_ID

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Opened", "open_files", "size_of_sides"]


@dataclass(frozen=True)
class Opened:
    """The files of a table. Their heads are not kept: those of many files would fill the memory."""

    table: str  # a side, "log", "users" (labels of users) or "items"
    files: Files
    format: Format
    columns: FileColumns  # as the format has them
    stamps: Mapping[str, Stamp]  # of each file; readers raise if these have changed

    @property
    def may_read_folders(self) -> bool:
        """Return whether a column that may be read is in the names of folders, as a Hive partition."""
        return not self.columns.names.isdisjoint(unquote(key) for keys in self.files.keys for key in keys)

    def roles(self, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} of a file; raise if it lacks one."""
        return self.columns.roles(self.table, path, found)

    def size(self) -> Size:
        """Estimate the size of the wanted columns."""
        return self.format.size(self.files, self.columns.names)

    def source(self, con: DuckDBPyConnection, attempt: int = 0) -> Source:
        """Return the SQL source of the files."""
        return self.format.open(con, self.files, self.columns, attempt)

    def each(self) -> Iterator[Opened]:
        """Yield every file by itself."""
        return (replace(self, files=file) for file in self.files.each())


def size_of_sides(sides: Iterable[Opened]) -> Size:
    """Estimate the size of the wanted columns of tables."""
    size = Size()
    for side in sides:
        size = size.plus(side.size())
    return size


def open_files(
    paths: Mapping[str, str | os.PathLike[str]],
    columns: ListColumns | RowColumns | ImpressionColumns | SlateColumns,
    input_format: str,
) -> dict[str, Opened]:
    """Find the files of each table, and recognise their format; raise for those that cannot be read together."""
    found = {table: find_files(os.fspath(path)) for table, path in paths.items()}
    stamps = {table: stamps_of(files.on_disk) for table, files in found.items()}
    unlabelled = [name for name, format_ in FORMATS.items() if not format_.has_labels]
    opened = {}
    for table, files in found.items():
        own = ItemColumns(columns.item or ITEM_ID) if table == ITEMS else columns
        asked = AUTO if table in (ITEMS, USERS) and input_format in unlabelled else input_format
        with unchanged(stamps[table]):
            format_ = recognise(files, own.names, asked)
        own = format_.columns(own)
        opened[table] = Opened(table, files, format_.bound(own), own, stamps[table])
    return opened

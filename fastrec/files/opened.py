"""The files of a call: found and recognised once, before anything reads rows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from fastrec.files.columns import ITEMS, USERS, FileColumns, ItemColumns, RowColumns
from fastrec.files.formats.base import Format
from fastrec.files.formats.recognise import AUTO, recognise
from fastrec.files.formats.registry import FORMATS
from fastrec.files.paths import Files, Stamp, find_files, stamps_of, unchanged
from fastrec.inputs.items import ITEM_ID
from fastrec.runtime.limits import resolve_threads


@dataclass(frozen=True)
class Opened:
    """The files of a table. Their heads are not kept: those of many files would fill the memory."""

    table: str  # a side, "log", "users" (labels of users) or "items"
    files: Files
    format: Format
    columns: FileColumns  # as the format has them
    stamps: Mapping[str, Stamp]  # of each file; readers raise if these have changed


def has_column(path: str | os.PathLike[str], name: str, input_format: str | Format) -> bool:
    """Return whether a file has a column; False for a damaged file, of which reading the rows says what is wrong."""
    opened = open_files({"log": path}, RowColumns(), input_format)["log"]
    try:
        return name in (*opened.format.head(opened.files.paths[0]).schema.names, *map(unquote, opened.files.keys[0]))
    except opened.format.damages():
        return False


def open_files(
    paths: Mapping[str, str | os.PathLike[str]],
    columns: FileColumns,
    input_format: str | Format,
    n_threads: int | None = None,
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
        own = format_.columns(own, files.paths)
        opened[table] = Opened(table, files, format_.bound(own, resolve_threads(n_threads)), own, stamps[table])
    return opened

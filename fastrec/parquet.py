"""Parquet files read straight into memory, where nothing in them needs a second look.

What may be wrong is noticed here and not explained: then there is no table, and DuckDB reads the files, which says what
is wrong and in which row (fastrec.tables).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import require
from fastrec.formats import Files, find_files, recognise, unchanged
from fastrec.inputs.values import arrow_of, fixed_width, values_of
from fastrec.launcher import run_in_threads
from fastrec.tables import LARGEST_EXACT_FLOAT, ColumnError, Columns, ScoreColumns

__all__ = ["Plain", "find_plain", "read_plain"]

Array = np.ndarray[Any, Any]
EXACT_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
TEXTS = ("string", "large_string", "string_view")
IDS_AND_RANKS = ("item", "rank")
NUMBERS = ("float", "double", *EXACT_INTEGERS)


class _Group(NamedTuple):
    """A row group of a file."""

    path: str
    metadata: Any  # of the file
    nth: int
    first: int  # of its rows among those of all files
    rows: int


class Plain(NamedTuple):
    """The files of a path, and the columns wanted of them."""

    files: Files
    names: dict[str, str]  # role -> column
    types: dict[str, Any]  # role -> type in Arrow
    groups: tuple[_Group, ...]

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(group.rows for group in self.groups)

    def is_text(self, role: str) -> bool:
        """Whether the ids of a role are texts."""
        return str(self.types[role]) in TEXTS


def find_plain(paths: Mapping[str, str], columns: Columns | ScoreColumns, input_format: str) -> dict[str, Plain] | None:
    """The files of each table; None if they are to be read otherwise."""
    if columns.by or "users" in paths:
        return None
    found = {}
    for table, path in paths.items():
        files = find_files(path)
        if recognise(files, columns.names, input_format) != "parquet":
            return None
        plain = _open(table, files, columns)
        if plain is None or not plain.rows:
            return None
        found[table] = plain
    for role in next(iter(found.values())).names:
        if role == "item" or role.startswith("user"):  # ids match only those of their kind
            kinds = {plain.is_text(role) for plain in found.values() if role in plain.names}
            if len(kinds) > 1:
                return None
    return found


def _open(table: str, files: Files, columns: Columns | ScoreColumns) -> Plain | None:
    """Files that have the wanted columns, the same in all of them and of the usual types."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    groups: list[_Group] = []
    names: dict[str, str] = {}
    types: dict[str, Any] = {}
    first = 0
    for path in files.paths:
        try:
            metadata = parquet.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
            own = columns.roles(table, path, schema.names)
        except (OSError, ValueError, ColumnError):
            return None
        if any(schema.names.count(name) > 1 for name in own.values()):
            return None
        kinds = {role: schema.field(name).type for role, name in own.items()}
        if (groups and (own != names or kinds != types)) or not all(map(_is_usual, kinds, kinds.values())):
            return None
        names, types = own, kinds
        for nth in range(metadata.num_row_groups):
            rows = metadata.row_group(nth).num_rows
            groups.append(_Group(path, metadata, nth, first, rows))
            first += rows
    if {*names.values()}.intersection(key for keys in files.keys for key in keys):
        return None  # a Hive partition takes the place of a column
    return Plain(files, names, types, tuple(groups))


def _is_usual(role: str, kind: Any) -> bool:
    """Whether a column can be taken as it is."""
    name = str(kind)
    if role == "item" or role.startswith("user"):
        return name in EXACT_INTEGERS or name in TEXTS
    if role == "rank":
        return name in EXACT_INTEGERS
    return name in NUMBERS or (role == "label" and name == "bool")


def _kept_as(role: str, kind: Any) -> np.dtype[Any] | None:
    """How values of fixed width are kept: the same as DuckDB gives them; None for texts."""
    width = fixed_width(kind)
    if role in IDS_AND_RANKS or role.startswith("user"):
        return width
    if role == "label" and str(kind) in ("bool", "int8"):
        return np.dtype(np.int8)
    return width if width == np.float32 else np.dtype(np.float64)


def read_plain(plain: Plain, n_threads: int) -> Any | None:
    """A PyArrow table, columns named by role, those of fixed width in one chunk; None if there is a doubt."""
    import pyarrow as pa

    kept = {role: _kept_as(role, kind) for role, kind in plain.types.items()}
    whole = {role: np.empty(plain.rows, width) for role, width in kept.items() if width is not None}

    def read(at: int) -> dict[str, Any] | None:
        return _read_group(plain, plain.groups[at], whole)

    try:
        with unchanged(plain.files.paths):
            parts = run_in_threads(read, range(len(plain.groups)), n_threads)
    except (OSError, ValueError):
        return None
    if any(part is None for part in parts):
        return None
    columns = []
    for role, kind in plain.types.items():
        if role in whole:
            columns.append(arrow_of(whole[role]))
        else:
            columns.append(pa.chunked_array([chunk for part in parts for chunk in part[role].chunks], kind))
    return pa.Table.from_arrays(columns, names=list(plain.types))


def _read_group(plain: Plain, group: _Group, whole: Mapping[str, Array]) -> dict[str, Any] | None:
    """Columns of a row group: those of fixed width go to their place among all rows, others are returned."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(group.path, metadata=group.metadata) as file:
        rows = file.read_row_group(group.nth, columns=list(plain.names.values()), use_threads=False)
    if rows.num_rows != group.rows or any(column.null_count for column in rows.columns):
        return None
    others = {}
    for role, name in plain.names.items():
        column = rows.column(name)
        if role not in whole:
            others[role] = column
            continue
        at = group.first
        for chunk in filter(len, column.chunks):
            values = values_of(chunk)
            if whole[role].dtype == np.float64 and not _are_exact(values):
                return None
            whole[role][at : at + len(values)] = values
            at += len(values)
    return others


def _are_exact(values: Array) -> bool:
    """Whether float64 holds all of these."""
    wide = values.dtype.kind in "iu" and values.itemsize == 8
    return not wide or bool((values <= LARGEST_EXACT_FLOAT).all() and (values >= -LARGEST_EXACT_FLOAT).all())

"""SQL sources of Parquet files."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrec.exceptions import InputError
from fastrec.inputs.strings import bytes_of
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FILE, Format, Source, names_files, paths_sql, quoted, string_sql, with_partitions
from fastrec.files.paths import Files, utf8_path
from fastrec.files.sizes import SAMPLED_BYTES, Size

__all__ = ["PARQUET", "damages_of_parquet"]

SAMPLED_FILES, SAMPLED_GROUPS, SAMPLED_ROWS = 64, 4, 1024
SPARED = {"BOOLEAN": 7, "INT32": 4, "FLOAT": 4}  # bytes that a value takes less than the widest


def _open_parquet(con: DuckDBPyConnection, files: Files, columns: FileColumns, *, binary_as_string: bool) -> Source:
    """Return the SQL source of Parquet files.

    Columns are named by position: names in SQL ignore case, and DuckDB renames columns that it cannot tell apart.
    """
    reader = functools.partial(_parquet_reader, binary_as_string=binary_as_string)
    footers = [_footer_of(path) for path in files.paths]
    schemas = [footer.schema for footer in footers]
    first: dict[tuple[str, frozenset[str]], int] = {}
    for n, keys in enumerate(files.keys):
        first.setdefault((schemas[n], frozenset(keys)), n)
    variants, untyped, found = [], set(), {}
    for (schema, _), n in first.items():
        path = files.paths[n]
        own_names = _names_of(path)
        # DuckDB calls nameless columns C0, C1, ..., and rejects another column of such a name, unless we name all
        rows = con.execute(f"DESCRIBE SELECT * FROM {reader([path], own_names)}").fetchall()
        listed = own_names or [name for name, *_ in rows]
        for name in listed if columns.reads_all else columns.names:
            if listed.count(name) > 1:
                raise InputError(path, f": the file has the column {name!r} {listed.count(name)} times")
        found[schema] = [(name, type_) for name, (_, type_, *_) in zip(listed, rows, strict=True)]
        own = {name: (f"c{at}", type_) for at, (name, type_) in enumerate(found[schema])}
        own, partitions = with_partitions(own, files.keys[n])
        variants.append((path, own))
        untyped |= partitions
    if len(found) > 1 and any(len({name.lower() for name, _ in kinds}) < len(kinds) for kinds in found.values()):
        sql = _parquet_union(files, schemas, found, reader)
    else:
        sql = reader(files.paths, [name for name, _ in found[schemas[0]]], name_files=names_files(files))
    filled = frozenset(path for path, footer in zip(files.paths, footers, strict=True) if footer.n_rows)
    return Source(files, PARQUET, sql, tuple(variants), frozenset(untyped), filled)


def _parquet_reader(
    paths: Sequence[str], names: Sequence[str] = (), *, binary_as_string: bool, name_files: bool = False
) -> str:
    """Return the SQL that reads files by the schema of the first; if `names` are given, its columns are c0, c1, ..."""
    own = FILE
    while own.lower() in {name.lower() for name in names}:
        own += "_"
    naming = f", filename={string_sql(own)}" if name_files else ""
    sql = f"read_parquet({paths_sql(paths)}, binary_as_string={binary_as_string}, hive_partitioning=false{naming})"
    columns = [f"c{at}" for at in range(len(names))] + [quoted(FILE)] * name_files
    return f"{sql} AS t({', '.join(columns)})" if names else sql


def _parquet_union(
    files: Files,
    schemas: Sequence[str],
    found: Mapping[str, Sequence[tuple[str, str]]],
    reader: Callable[..., str],
) -> str:
    """Return the SQL of files of several schemas, if names in one differ in case only: DuckDB matches columns by name.

    Files are read in order, neighbours of one schema at once. Columns are numbered as in the first file. A column that
    is not in all files, or not of one type, is null, as it cannot be used.
    """
    parts = []
    for schema, group in itertools.groupby(range(len(files.paths)), schemas.__getitem__):
        at = {column: f"c{n}" for n, column in enumerate(found[schema])}
        shared = [column if all(column in other for other in found.values()) else None for column in found[schemas[0]]]
        picked = [f"{at[column] if column else 'NULL'} AS c{n}" for n, column in enumerate(shared)]
        names = [name for name, _ in found[schema]]
        rows = reader([files.paths[n] for n in group], names, name_files=True)
        parts.append(f"SELECT {', '.join([*picked, quoted(FILE)])} FROM {rows}")
    return f"({' UNION ALL '.join(parts)})"


class _Footer(NamedTuple):
    """The footer of a file."""

    schema: str  # equal for equal schemas
    n_rows: int


def _footer_of(path: str) -> _Footer:
    """Return the footer of a file. A damaged one has a schema of its own: DuckDB reports the damage if it matters."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        metadata = parquet.read_metadata(utf8_path(path))
        text = str(metadata.schema).partition("\n")[2]  # without the first line, which has an address
        return _Footer(hashlib.sha256(text.encode()).hexdigest(), metadata.num_rows)  # texts may fill the memory
    except damages_of_parquet():
        return _Footer(path, 0)


def _names_of(path: str) -> list[str]:
    """Return the names of columns as spelled in a file, some of which DuckDB changes; empty for a damaged file."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        names: list[str] = parquet.read_schema(utf8_path(path)).names
    except damages_of_parquet():
        return []
    return names


def damages_of_parquet() -> tuple[type[Exception], ...]:
    """Return the errors of PyArrow for damaged Parquet files; MemoryError as such a file may claim too many rows."""
    import pyarrow as pa

    return (OSError, ValueError, MemoryError, pa.ArrowException)


# Size


def _size_of_parquet(read_metadata: Callable[[str], Any], paths: Sequence[str], wanted: Collection[str]) -> Size:
    """Estimate the size of the wanted columns of files, from some of them if they are many."""
    sampled, groups, size = paths[:: -(-len(paths) // SAMPLED_FILES)], [], Size()
    for path in sampled:
        metadata = read_metadata(utf8_path(path))
        leaves = [metadata.schema.column(at) for at in range(len(metadata.schema))]
        columns = [leaf for leaf in leaves if _is_in(leaf, wanted)]
        spared = sum(SPARED.get(leaf.physical_type, 0) for leaf in columns)
        size = size.plus(Size(metadata.num_rows * len(columns), spared=metadata.num_rows * spared))
        strings = [leaf.path for leaf in columns if leaf.physical_type == "BYTE_ARRAY"]
        for nth in range(metadata.num_row_groups if strings else 0):
            group = metadata.row_group(nth)  # not of its columns: with a damaged footer PyArrow ends the process
            if group.num_rows:
                groups.append((path, metadata, nth, strings))
                size = size.plus(Size(distinct=group.total_byte_size))
    rows = sum(metadata.row_group(nth).num_rows for _, metadata, nth, _ in groups)
    size = size.plus(Size(text=int(rows * _mean_strings(groups)))) if rows else size
    n_bytes, n_sampled = (sum(map(os.path.getsize, some)) for some in (paths, sampled))
    return Size(*(value * n_bytes // n_sampled for value in size))


def _is_in(leaf: Any, wanted: Collection[str]) -> bool:
    """Return whether a leaf is a wanted column or lies in one; a field of a struct may have the name of a column."""
    if leaf.path == leaf.name:
        return leaf.name in wanted
    return any(leaf.path.startswith(f"{name}.") for name in wanted)


def _mean_strings(groups: Sequence[tuple[str, Any, int, list[str]]]) -> float:
    """Return the mean bytes of the strings of a row, from the first rows of some row groups."""
    step = max(1, len(groups) // SAMPLED_GROUPS)
    found = [_first_strings(*group) for group in groups[::step]]
    require("pyarrow", "cli", what="reading files").default_memory_pool().release_unused()
    rows = sum(rows for rows, _ in found)
    return sum(n_bytes for _, n_bytes in found) / rows if rows else 0.0


def _first_strings(path: str, metadata: Any, nth: int, names: list[str]) -> tuple[int, int]:
    """Return the number of rows sampled from the beginning of a row group, and the bytes of their strings."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    try:
        with parquet.ParquetFile(
            utf8_path(path), metadata=metadata, buffer_size=SAMPLED_BYTES, pre_buffer=False
        ) as file:
            batches = file.iter_batches(SAMPLED_ROWS, row_groups=[nth], columns=names, use_threads=False)
            batch = next(iter(batches), None)
    except damages_of_parquet():  # reading the file explains what is wrong
        return 0, 0
    return (0, 0) if batch is None else (batch.num_rows, sum(map(bytes_of, batch.columns)))


class _Parquet(Format):
    """Parquet."""

    name, title = "parquet", "Parquet"
    endings = (".parquet", ".pq")
    magic = b"PAR1"
    attempts = 2  # binary columns as strings, which some programs write so, else as bytes, which only items may have

    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        return _open_parquet(con, files, columns, binary_as_string=not (attempt and columns.reads_all))

    def size(self, files: Files, names: Collection[str]) -> Size:
        parquet = require("pyarrow.parquet", "cli", what="reading files")
        try:
            return _size_of_parquet(parquet.read_metadata, files.paths, names)
        except damages_of_parquet():
            return Size()  # reading the file explains what is wrong


PARQUET = _Parquet()

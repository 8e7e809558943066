"""Tables that keep the files of earlier versions: the files of the current version of a Delta or Iceberg table."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from fastrec.checks import shown_url, with_article
from fastrec.exceptions import FastrecError, InputError, MissingFileError
from fastrec.inputs.table_folders import DELTA, ENDINGS, HUDI, METADATA, find_inside
from fastrec.runtime.extras import require

__all__ = ["Version", "check_apart", "partitions_of", "read_version"]

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # in the name of a folder
# Delta features under which the Parquet files alone have the table's rows, or which `_read_delta` checks
KNOWN_FEATURES = frozenset(("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"))

# Types of Delta, and those of the columns that DuckDB reads from files of these types; decimals have the same names
TYPES = {
    "string": "VARCHAR",
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "timestamp_ntz": "TIMESTAMP",
}


class Version(NamedTuple):
    """The current version of a table."""

    files: Mapping[str, tuple[str, ...]]  # {file below the folder: names of its Hive partitions, as folders spell them}
    unwritten: frozenset[str] = frozenset()  # columns of the table that no file has
    types: Mapping[str, str] = {}  # of the partitions, in SQL


def check_apart(path: str, files: Iterable[str]) -> None:
    """Raise if a folder or a pattern stands for files in a table, where those of earlier versions are, too."""
    if (found := find_inside(files)) is not None:
        why = f"{with_article(found.kind)} table, which may keep files of earlier versions"
        raise InputError(path, f": {found.file} is in {found.folder}, {why}: name that folder, or single files")


def partitions_of(name: str) -> list[tuple[str, str]]:
    """Return the name and the text of each Hive partition in the path of a file, as its folders spell them."""
    folders = (folder.partition("=") for folder in os.path.dirname(name).split(os.sep))
    return [(key, text) for key, equals, text in folders if key and equals]


# The current version of a table


def read_version(path: str, kind: str, folder: str, metadata: str) -> Version:
    """Return the current version of a table; raise if reading its Parquet files would give other rows.

    `path` is as it was given, `folder` absolute and in UTF-8. `metadata` is the metadata file of Iceberg, if given.
    """
    if kind == HUDI:
        raise _refused(path, "Hudi tables are not read")
    try:
        return _read_delta(path, folder) if kind == DELTA else _read_iceberg(path, folder, metadata)
    except FastrecError:
        raise
    except Exception as error:  # of the library: logs and manifests may be damaged in many ways
        why = str(error)
        if kind == DELTA:  # its messages may have colours and, below the first line, what called what
            why = re.sub(r"\x1b\[[0-9;]*m", "", why).strip().partition("\n")[0]
        raise InputError(path, f": cannot be read as {with_article(kind)} table: {why}") from error


def _refused(path: str, why: str) -> InputError:
    return InputError(path, f": {why}; write the rows as Parquet, or pass them to fastrec.evaluate as a frame")


def _name_below(path: str, folder: str, place: str, found: Container[str] = ()) -> str:
    """Return the name of a file below the folder of its table; raise if it is elsewhere, gone, or one of those found.

    Names are those of the targets of links.
    """
    local = os.path.join(folder, re.sub("^file:(//)?(?=/)", "", place))
    name = os.path.relpath(os.path.realpath(local), os.path.realpath(folder))
    if name.split(os.sep)[0] == os.pardir or "://" in local:
        link = f", a link to {os.path.realpath(local)}" if os.path.islink(local) else ""
        raise _refused(path, f"the table has the file {shown_url(place)}{link}, which is not in its folder")
    if not os.path.exists(local):
        raise MissingFileError(path, f": {name} is gone, but the current version of this table has it")
    if name in found:
        raise _refused(path, f"the table has the rows of {name} twice")
    return name


def _schema(path: str, folder: str, name: str) -> Any:
    """Return the schema of a Parquet file of a table."""
    pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        return parquet.read_schema(os.path.join(folder, name))
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(path, f": {name} cannot be read as Parquet: {error}") from error


# Delta


def _read_delta(path: str, folder: str) -> Version:
    real = os.path.realpath(folder).replace(os.sep, "/")
    if unquote(real) != real or re.search(r"[\\\x00-\x1f\x7f]", real):  # deltalake would read a folder of another name
        why = "a Delta table is not read if its path, without links, has a backslash, a control character or %XX"
        raise InputError(path, f": {why}: rename the folder")
    table = require("deltalake", "delta", what="reading Delta tables").DeltaTable(folder)
    actions = require("pyarrow", "cli", what="reading files").table(table.get_add_actions(flatten=True))
    metadata = table.metadata()
    features = {*(table.protocol().reader_features or ())}
    kinds = {field.name: field.type for field in table.schema().fields}
    types = {name: TYPES.get(kinds[name].type, kinds[name].type.upper()) for name in metadata.partition_columns}
    found = [f"the feature {name}" for name in sorted(features - KNOWN_FEATURES)]
    found += [f"the binary partition {name!r}" for name in types if types[name] == "BINARY"]  # folders escape its bytes
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append("column mapping")
    if not found and _has_vectors(table, features):
        found.append("deletion vectors")
    if found:
        raise _refused(path, f"version {table.version()} of this Delta table has {' and '.join(found)}")
    files: dict[str, tuple[str, ...]] = {}
    unwritten = kinds.keys() - types.keys()
    for at, place in enumerate(actions["path"].to_pylist()):
        name = _name_below(path, folder, unquote(place), files)
        parts = partitions_of(name)
        texts = {unquote(key): unquote(text) for key, text in parts}
        values = {column: actions[f"partition.{column}"][at] for column in metadata.partition_columns}
        if texts.keys() != values.keys() or not all(_is_value(texts[column], values[column]) for column in values):
            raise _refused(path, f"the folder of {name} is not the partition that the log of the Delta table has")
        files[name] = tuple(key for key, _ in parts)
        if unwritten or values:
            columns: set[str] = set()
            with contextlib.suppress(InputError):  # reading rows says why; the first copies of a store have no bytes
                columns.update(_schema(path, folder, name).names)
            for column in sorted(values.keys() & columns):
                raise _refused(path, f"the partition {column!r} of the Delta table is also a column of {name}")
            unwritten.difference_update(columns)
    return Version(files, frozenset(unwritten), types)


def _has_vectors(table: Any, features: set[str]) -> bool:
    """Return whether the log deletes rows by vectors; some logs do so without naming the feature."""
    try:
        return bool(table.deletion_vectors().read_all().num_rows)
    except Exception:  # of the library, which knows fewer features here than it does for files
        if "deletionVectors" in features:
            raise
        return False


def _is_value(text: str, value: Any) -> bool:
    """Return whether a text in the name of a folder is the value of a partition, a scalar of Arrow."""
    pa = require("pyarrow", "cli", what="reading files")
    if text == NO_VALUE or not value.is_valid:
        return text == NO_VALUE and not value.is_valid
    try:
        return bool(pa.scalar(text).cast(value.type) == value)
    except pa.ArrowException:
        return False


# Iceberg


def _read_iceberg(path: str, folder: str, file: str) -> Version:
    what = "reading Iceberg tables"
    io = require("pyiceberg.io.pyarrow", "iceberg", what=what).PyArrowFileIO()
    file = file or _newest_metadata(path, folder)
    _name_below(path, folder, file)  # before it is opened: it may be a link to anywhere
    if file.endswith(".gz"):
        name = os.path.basename(file)
        raise _refused(path, f"PyIceberg reads compressed metadata only from *.gz.metadata.json, not {name}")
    table = _read_metadata(path, io, file)
    snapshot = table.current_snapshot()
    if snapshot is None:
        if table.current_snapshot_id is not None:
            raise InputError(path, f": its metadata names no snapshot {table.current_snapshot_id}, which is current")
        return Version({})
    _absolute_below(path, folder, snapshot.manifest_list)  # before it is opened: it may be anywhere
    for manifest in snapshot.manifests(io):
        _absolute_below(path, folder, manifest.manifest_path)
    fields = {field.field_id: field.name for field in table.schema().fields}
    mapped = {name: each.field_id for each in table.name_mapping() or () for name in each.names}
    files: dict[str, tuple[str, ...]] = {}
    unwritten = {*fields.values()}
    for task in require("pyiceberg.table", "iceberg", what=what).DataScan(table, io).plan_files():
        name = _absolute_below(path, folder, task.file.file_path, files)
        if task.file.file_format != "PARQUET":
            raise _refused(path, f"{name} is not in Parquet")
        if task.delete_files:
            raise _refused(path, f"rows of {name} are deleted in other files")
        files[name] = ()  # all columns are in the files
        schema = _schema(path, folder, name)
        unwritten.difference_update(schema.names)
        for column in schema:
            known = (column.metadata or {}).get(b"PARQUET:field_id")
            if fields.get(mapped.get(column.name) if known is None else int(known)) != column.name:
                raise _refused(path, f"the table no longer has the column {column.name!r} of {name} under this name")
    return Version(files, frozenset(unwritten))


def _read_metadata(path: str, io: Any, file: str) -> Any:
    """Return the metadata in a file; raise with its first fault only: PyIceberg tells all, and shows the content."""
    read = require("pyiceberg.serializers", "iceberg", what="reading Iceberg tables").FromInputFile.table_metadata
    try:
        return read(io.new_input(file))
    except Exception as error:  # of PyIceberg, with one of Pydantic as its cause, or of reading bytes
        cause: Any = error.__cause__
        faults = cause.errors() if hasattr(cause, "errors") else ()
        texts = [".".join(map(str, faults[0]["loc"])), faults[0]["msg"]] if faults else [str(error)]
        why = ": ".join(text for text in texts if text)
        name = f"{METADATA}/{os.path.basename(file)}"
        raise InputError(path, f": {name} cannot be read as metadata of an Iceberg table: {why}") from error


def _absolute_below(path: str, folder: str, place: str, found: Container[str] = ()) -> str:
    """Return the name of a file below the folder; raise for relative paths: PyIceberg takes the current directory."""
    if not re.match(r"([\w+.-]+:/?)?/", place):
        raise _refused(path, f"the table has the file {place!r}, a relative path")
    return _name_below(path, folder, place, found)


def _newest_metadata(path: str, folder: str) -> str:
    """Return the path of the current metadata file: the newest one, and the one that the hint names if there is one."""
    place = os.path.join(folder, METADATA)
    names = [name for name in os.listdir(place) if name.endswith(ENDINGS)]
    numbers = {name: int(found[1]) for name in names if (found := re.match(r"v?(\d+)", name))}
    newest = sorted(name for name in numbers if numbers[name] == max(numbers.values()))
    hint = os.path.join(place, "version-hint.text")
    if os.path.exists(hint):
        _name_below(path, folder, hint)
        with open(hint, encoding="utf-8") as stream:
            said = stream.read().strip()
        newest = [name for name in newest if {said, f"v{said}"} & {name, name.partition(".")[0]}]
    if len(newest) != 1:
        raise InputError(path, ": the files in metadata/ do not tell the current version: name its metadata file")
    return os.path.join(place, newest[0])

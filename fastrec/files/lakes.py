"""Tables that keep the files of earlier versions: the files of the current version of a Delta or Iceberg table."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from fastrec.checks import shown_url, with_article
from fastrec.exceptions import FastrecError, InputError, MissingFileError
from fastrec.runtime.extras import require

__all__ = ["DELTA", "ICEBERG", "LOG", "MARKS", "Version", "check_apart", "find_table", "read_version"]

DELTA, ICEBERG, HUDI = "Delta", "Iceberg", "Hudi"
LOG, METADATA, ENDING = "_delta_log", "metadata", ".metadata.json"
MARKS = (  # kinds of tables, and what is in their folders
    (DELTA, LOG),
    (HUDI, ".hoodie"),
    (ICEBERG, f"{METADATA}/v[0-9]*{ENDING}"),
    (ICEBERG, f"{METADATA}/[0-9]*-*{ENDING}"),
)
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # in the name of a folder
# Features of Delta that leave files the rows and columns of the table, or that are checked by themselves.
KNOWN_FEATURES = frozenset(("columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"))


class Version(NamedTuple):
    """The current version of a table."""

    keys: Mapping[str, tuple[str, ...]]  # {file below the folder: names of its Hive partitions, as folders spell them}
    unwritten: frozenset[str] = frozenset()  # columns of the table that no file has: they were added since


# Which folders are tables


def find_table(path: str) -> tuple[str, str]:
    """Return the folder of a table and its kind; the path is that of the folder, or of an Iceberg metadata file."""
    if path.endswith(ENDING) and os.path.isfile(path):
        return os.path.normpath(os.path.join(os.path.dirname(path), os.pardir)), ICEBERG
    return path, _kind_of(path)


def _kind_of(folder: str) -> str:
    """Return the kind of table that a folder is; "" for any other path."""
    place = glob.escape(folder)
    return next((kind for kind, mark in MARKS if glob.glob(os.path.join(place, mark))), "")


def check_apart(path: str, files: Iterable[str]) -> None:
    """Raise if a folder or a pattern stands for files in a table, where those of earlier versions are, too."""
    checked = set()
    for file in files:
        folder = os.path.dirname(os.path.abspath(file))
        while folder not in checked:
            checked.add(folder)
            if kind := _kind_of(folder):
                why = f"{with_article(kind)} table, which may keep files of earlier versions"
                raise InputError(path, f": {file} is in {folder}, {why}: name that folder, or single files")
            folder = os.path.dirname(folder)


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
        raise InputError(path, f": cannot be read as {with_article(kind)} table: {error}") from error


def _refused(path: str, why: str) -> InputError:
    return InputError(path, f": {why}; write the rows as Parquet, or pass them to fastrec.evaluate as a frame")


def _name_below(path: str, folder: str, place: str) -> str:
    """Return the name of a file below the folder of its table; raise if it is elsewhere or gone."""
    local = os.path.join(folder, re.sub("^file:(//)?(?=/)", "", place))
    name = os.path.relpath(os.path.realpath(local), os.path.realpath(folder))
    if name.split(os.sep)[0] == os.pardir or "://" in local:
        raise _refused(path, f"the table has the file {shown_url(place)}, which is not in its folder")
    if not os.path.exists(local):
        raise MissingFileError(path, f": {name} is gone, but the current version of this table has it")
    return name


def _unwritten(columns: set[str], folder: str, names: Iterable[str]) -> frozenset[str]:
    """Return the columns that no Parquet file has; none if a file cannot be read: reading its rows says why."""
    pa, parquet = (require(name, "cli", what="reading files") for name in ("pyarrow", "pyarrow.parquet"))
    for name in names:
        if columns:
            try:
                columns = columns.difference(parquet.read_schema(os.path.join(folder, name)).names)
            except (OSError, ValueError, pa.ArrowException):
                return frozenset()
    return frozenset(columns)


# Delta


def _read_delta(path: str, folder: str) -> Version:
    table = require("deltalake", "delta", what="reading Delta tables").DeltaTable(folder)
    actions = require("pyarrow", "cli", what="reading files").table(table.get_add_actions(flatten=True))
    metadata = table.metadata()
    features = {*(table.protocol().reader_features or ())}
    found = [f"the feature {name}" for name in sorted(features - KNOWN_FEATURES)]
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        found.append("column mapping")
    if "deletionVectors" in features and table.deletion_vectors().read_all().num_rows:
        found.append("deletion vectors")
    if found:
        raise _refused(path, f"version {table.version()} of this Delta table has {' and '.join(found)}")
    keys = {}
    for at, place in enumerate(actions["path"].to_pylist()):
        name = _name_below(path, folder, unquote(place))
        parts = [part.partition("=") for part in os.path.dirname(name).split("/") if part.partition("=")[1]]
        texts = {unquote(key): unquote(text) for key, _, text in parts}
        values = {column: actions[f"partition.{column}"][at] for column in metadata.partition_columns}
        if texts.keys() != values.keys() or not all(_is_value(texts[column], values[column]) for column in values):
            raise _refused(path, f"the folder of {name} is not the partition that the log of the Delta table has")
        keys[name] = tuple(key for key, *_ in parts)
    columns = {field.name for field in table.schema().fields}.difference(metadata.partition_columns)
    return Version(keys, _unwritten(columns, folder, keys))


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
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    io = require("pyiceberg.io.pyarrow", "iceberg", what=what).PyArrowFileIO()
    file = file or _newest_metadata(path, os.path.join(folder, METADATA))
    table = require("pyiceberg.serializers", "iceberg", what=what).FromInputFile.table_metadata(io.new_input(file))
    snapshot = table.current_snapshot()
    if snapshot is None:
        return Version({})
    _name_below(path, folder, snapshot.manifest_list)  # before it is opened: it may be anywhere
    for manifest in snapshot.manifests(io):
        _name_below(path, folder, manifest.manifest_path)
    fields = {field.field_id: field.name for field in table.schema().fields}
    mapped = {name: each.field_id for each in table.name_mapping() or () for name in each.names}
    keys: dict[str, tuple[str, ...]] = {}
    for task in require("pyiceberg.table", "iceberg", what=what).DataScan(table, io).plan_files():
        name = _name_below(path, folder, task.file.file_path)
        if task.file.file_format != "PARQUET":
            raise _refused(path, f"{name} is not in Parquet")
        if task.delete_files:
            raise _refused(path, f"rows of {name} are deleted in other files")
        if name in keys:
            raise _refused(path, f"the table has the rows of {name} twice")
        keys[name] = ()  # all columns are in the files
        for column in parquet.read_schema(os.path.join(folder, name)):
            known = (column.metadata or {}).get(b"PARQUET:field_id")
            if fields.get(mapped.get(column.name) if known is None else int(known)) != column.name:
                raise _refused(path, f"the table no longer has the column {column.name!r} of {name} under this name")
    return Version(keys, _unwritten({*fields.values()}, folder, keys))


def _newest_metadata(path: str, folder: str) -> str:
    """Return the path of the current metadata file: the newest one, and the one that the hint names if there is one."""
    names = [name for name in os.listdir(folder) if name.endswith(ENDING)]
    numbers = {name: int(found[1]) for name in names if (found := re.match(r"v?(\d+)", name))}
    newest = sorted(name for name in numbers if numbers[name] == max(numbers.values()))
    hint = os.path.join(folder, "version-hint.text")
    if os.path.exists(hint):
        with open(hint, encoding="utf-8") as stream:
            said = stream.read().strip()
        newest = [name for name in newest if {said, f"v{said}"} & {name, name.removesuffix(ENDING)}]
    if len(newest) != 1:
        raise InputError(path, ": the files in metadata/ do not tell the current version: name its metadata file")
    return os.path.join(folder, newest[0])

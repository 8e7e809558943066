"""Tables that keep the files of earlier versions: the rows of the current version, which the libraries of them read."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
from abc import abstractmethod
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from fastrec.checks import shown_url, with_article
from fastrec.clusters.table_folders import DELTA, ENDINGS, HUDI, LOG, METADATA, find_inside
from fastrec.exceptions import FastrecError, InputError, MissingFileError
from fastrec.files.formats.base import FileHead, Format, narrowest
from fastrec.runtime.extras import require

ONE_PARTITION = {"datafusion.execution.target_partitions": "1"}  # else threads give the rows in any order
READ_FORMATS = ("PARQUET", "PUFFIN")  # PyArrow's reader of ORC ends the process for some damaged files


class Version(Format):
    """The current version of a table, whose files were checked: none is outside the folder of the table.

    It is the format of the path that names the table.
    """

    name = "table"
    files: tuple[str, ...] = ()  # that have the rows, or delete some of them; absolute
    schema: Any  # pyarrow.Schema

    @abstractmethod
    def rows(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield the rows of some columns as Arrow batches, always in the same order."""

    def head(self, path: str) -> FileHead:
        """Return the schema, and the number of rows that a column has: logs may tell another number."""
        column = narrowest(self.schema)
        return FileHead(self.schema, 0 if column is None else sum(map(len, self.batches(path, {column: None}))))

    def batches(self, path: str, wanted: Mapping[int, Any]) -> Iterator[Any]:
        """Yield the rows with the columns at some positions."""
        with _explained(path, self.title):
            yield from self.rows([self.schema.names[at] for at in wanted])


def check_apart(path: str, files: Iterable[str]) -> None:
    """Raise if a folder or a pattern stands for files in a table, where those of earlier versions are, too."""
    if (found := find_inside(files)) is not None:
        file, folder, kind = found
        why = f"{with_article(kind)} table, which may keep files of earlier versions"
        raise InputError(path, f": {file} is in {folder}, {why}: name that folder, or single files")


def read_version(path: str, kind: str, folder: str, metadata: str) -> Version:
    """Return the current version of a table; raise for files that are gone or not in its folder.

    `path` is as it was given, `folder` absolute and in UTF-8. `metadata` is the metadata file of Iceberg, if given.
    """
    if kind == HUDI:
        raise _refused(path, "Hudi tables are not read")
    table = _Delta if kind == DELTA else _Iceberg
    with _explained(path, table.title):
        return table(path, folder, metadata)


@contextlib.contextmanager
def _explained(path: str, title: str) -> Iterator[None]:
    """Raise an error of a library with its first line, without colours: deltalake tells below it what called what."""
    try:
        yield
    except FastrecError:
        raise
    except Exception as error:  # logs and manifests may be damaged in many ways
        why = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().partition("\n")[0]
        raise InputError(path, f": cannot be read as {title}: {why}") from error


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


# Delta


class _Delta(Version):
    """The current version of a Delta table; the rows of its newest files come first."""

    title = "a Delta table"

    def __init__(self, path: str, folder: str, _: str) -> None:
        real = os.path.realpath(folder).replace(os.sep, "/")
        if unquote(real) != real or re.search(r"[\\\x00-\x1f\x7f]", real):  # deltalake would read another folder
            why = "a Delta table is not read if its path, without links, has a backslash, a control character or %XX"
            raise InputError(path, f": {why}: rename the folder")
        deltalake = require("deltalake", "delta", what="reading Delta tables")
        pa = require("pyarrow", "cli", what="reading files")
        for file in _files_of_log(folder, "*"):
            _name_below(path, folder, file)  # before it is opened: it may be a link to anywhere
        self._table, self._query = deltalake.DeltaTable(folder), deltalake.QueryBuilder
        self.schema = pa.schema(self._table.schema())
        names: dict[str, None] = {}
        for place in pa.table(self._table.get_add_actions())["path"].to_pylist():
            names[_name_below(path, folder, unquote(place), names)] = None
        for vector in _vectors(path, folder) if names else ():
            names[_name_below(path, folder, vector)] = None
        self.files = tuple(os.path.join(folder, name) for name in names)

    def rows(self, names: Sequence[str]) -> Iterator[Any]:
        pa = require("pyarrow", "cli", what="reading files")
        columns = ", ".join('"{}"'.format(name.replace('"', '""')) for name in names)
        rows = self._query(ONE_PARTITION).register("rows", self._table).execute(f"SELECT {columns} FROM rows")
        yield from pa.RecordBatchReader.from_stream(rows)


def _files_of_log(folder: str, pattern: str) -> list[str]:
    return glob.glob(os.path.join(glob.escape(folder), LOG, "**", pattern), recursive=True)


def _vectors(path: str, folder: str) -> list[str]:
    """Return the files that may have deletion vectors; raise if the log names one by another path than these have.

    deltalake does not tell where vectors are, and would open them anywhere.
    """
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    found = []
    for file in _files_of_log(folder, "*.json"):
        with open(file, "rb") as lines:
            found += [json.loads(line).get("add", {}).get("deletionVector") for line in lines if line.strip()]
    for file in _files_of_log(folder, "*.parquet"):  # checkpoints
        with parquet.ParquetFile(file) as checkpoint:
            rows = checkpoint.read(["add.deletionVector"])
        found += rows["add"].combine_chunks().field("deletionVector").to_pylist() if rows.num_columns else []
    found = [vector for vector in found if vector]
    for vector in found:
        place = vector["pathOrInlineDv"]
        if vector["storageType"] == "p" or (vector["storageType"] == "u" and re.search(r"^/|\.\.|[\\:]", place[:-20])):
            raise _refused(path, "the table has a deletion vector that may not be in its folder")
    return glob.glob(os.path.join(glob.escape(folder), "**", "deletion_vector_*.bin"), recursive=True) if found else []


# Iceberg


class _Iceberg(Version):
    """The current version of an Iceberg table; its files come in the order of their names."""

    title = "an Iceberg table"

    def __init__(self, path: str, folder: str, file: str) -> None:
        arrow = require("pyiceberg.io.pyarrow", "iceberg", what="reading Iceberg tables")
        from pyiceberg.table import DataScan

        self._io = arrow.PyArrowFileIO()  # not the one that the metadata name
        file = file or _newest_metadata(path, folder)
        _name_below(path, folder, file)  # before it is opened: it may be a link to anywhere
        if file.endswith(".gz"):
            name = os.path.basename(file)
            raise _refused(path, f"PyIceberg reads compressed metadata only from *.gz.metadata.json, not {name}")
        self._metadata = _read_metadata(path, self._io, file)
        self.schema = arrow.schema_to_pyarrow(self._metadata.schema(), include_field_ids=False)
        snapshot = self._metadata.current_snapshot()
        if snapshot is None:
            if (number := self._metadata.current_snapshot_id) is not None:
                raise InputError(path, f": its metadata names no snapshot {number}, which is current")
            return
        _absolute_below(path, folder, snapshot.manifest_list)  # before it is opened: it may be anywhere
        for manifest in snapshot.manifests(self._io):
            _absolute_below(path, folder, manifest.manifest_path)
        tasks: dict[str, Any] = {}
        names: dict[str, None] = {}
        for task in DataScan(self._metadata, self._io).plan_files():
            tasks[_absolute_below(path, folder, task.file.file_path, tasks)] = task
            for each in (task.file, *task.delete_files):
                name = _absolute_below(path, folder, each.file_path)
                if each.file_format not in READ_FORMATS:
                    raise _refused(path, f"{name} is not in Parquet")
                names[name] = None
        self._tasks = [tasks[name] for name in sorted(tasks)]
        self.files = tuple(os.path.join(folder, name) for name in names)

    def rows(self, names: Sequence[str]) -> Iterator[Any]:
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        scan = ArrowScan(self._metadata, self._io, self._metadata.schema().select(*names), AlwaysTrue())
        for task in self._tasks:  # one by one: a scan reads all its files at once
            yield from scan.to_record_batches([task])


def _read_metadata(path: str, io: Any, file: str) -> Any:
    """Return the metadata in a file; raise with its first fault only: PyIceberg tells all, and shows the content."""
    from pyiceberg.serializers import FromInputFile

    try:
        return FromInputFile.table_metadata(io.new_input(file))
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

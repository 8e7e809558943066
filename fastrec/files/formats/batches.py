"""Formats whose files PyArrow reads in batches of rows, which DuckDB takes as streams."""

from __future__ import annotations

import functools
import itertools
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastrec.exceptions import InputError
from fastrec.files.database import run
from fastrec.inputs.strings import bytes_of, decoded, without_views
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from fastrec.files.columns import FileColumns
from fastrec.files.formats.base import FILE, Format, Source, quoted, with_partitions
from fastrec.files.formats.foreign import one_line
from fastrec.files.paths import Files, utf8_path
from fastrec.files.sizes import Size

__all__ = ["BatchedFormat"]

Batch = Any  # pyarrow.RecordBatch
ROWS_AT_ONCE = 1 << 16
SAMPLED_FILES, SAMPLED_ROWS = 4, 1024
_numbers = itertools.count()


class _Head(NamedTuple):
    """The columns and the number of rows of a file."""

    schema: Any  # pyarrow.Schema
    rows: int | None  # None: some, counted as they are read


class _Type(NamedTuple):
    """The type of a column: in SQL or, if DuckDB cannot read it, in Arrow."""

    name: str
    is_readable: bool


class BatchedFormat(Format):
    """A format whose files PyArrow reads in batches of rows.

    DuckDB takes the rows as a stream, so one batch of the wanted columns is in memory at a time. Each batch is checked:
    PyArrow itself trusts the lengths and codes that a file holds.
    """

    has_types: bool = True  # whether columns have types; if not, all are strings

    @abstractmethod
    def head(self, path: str) -> tuple[Any, int | None]:
        """Return the schema and the number of rows of a file, at little cost; None for rows to count while read."""

    @abstractmethod
    def batches(self, path: str, at: Sequence[int]) -> Iterator[Batch]:
        """Yield the batches of a file with only the columns at these positions, in ascending order."""

    def open(self, con: DuckDBPyConnection, files: Files, columns: FileColumns, attempt: int) -> Source:
        """Return the SQL source of files: a stream of the wanted columns, which are checked as they are read."""
        heads = [self._head_of(path) for path in files.paths]
        schemas = [head.schema.remove_metadata() for head in heads]  # PyArrow before 22 hashes none with metadata
        variants, untyped = [], set()
        types: dict[Any, list[_Type]] = {}
        first: dict[tuple[Any, frozenset[str]], int] = {}
        for n, (schema, keys) in enumerate(zip(schemas, files.keys, strict=True)):
            first.setdefault((schema, frozenset(keys)), n)
        for (schema, _), n in first.items():
            _check_names(files.paths[n], schema, columns)
            if schema not in types:
                try:
                    types[schema] = _types_of(con, schema)
                except UnicodeDecodeError as error:  # the name of a field of a struct
                    raise self._damaged(files.paths[n], error) from error
            kinds = enumerate(zip(schema.names, types[schema], strict=True))
            found = {name: (f"c{at}" if kind.is_readable else "NULL", kind.name) for at, (name, kind) in kinds}
            found, partitions = with_partitions(found, files.keys[n])
            variants.append((files.paths[n], found))
            untyped |= partitions if self.has_types else set(found)
        names, kinds_of_first = schemas[0].names, types[schemas[0]]
        readable = [at for at, kind in enumerate(kinds_of_first) if kind.is_readable]
        n_rows = {utf8_path(path): head.rows or 0 for path, head in zip(files.paths, heads, strict=True)}
        everything = _Rows(self, files, heads, readable, n_rows)
        wanted = [at for at in readable if columns.reads_all or names[at] in columns.names]
        return Source(
            files,
            self,
            _view(con, _Rows(self, files, heads, wanted, n_rows)),
            tuple(variants),
            frozenset(untyped),
            frozenset(path for path, head in zip(files.paths, heads, strict=True) if head.rows != 0),
            n_rows,
            all_columns=_view(con, everything),
            again=functools.partial(_view, con, _Rows(self, files, heads, wanted, n_rows)),
            unreadable=frozenset(names).difference(names[at] for at in readable),
        )

    def size(self, files: Files, names: Collection[str]) -> Size:
        """Estimate the size of the wanted columns, strings from the first rows of some files."""
        size, sampled = Size(), []
        for path in files.paths:
            try:
                schema, rows = self.head(path)
                wanted = [at for at, name in enumerate(schema.names) if name in names]
            except self._damages():  # reading the file explains what is wrong
                continue
            rows = rows or 0
            size = size.plus(Size(rows * len(wanted)))
            strings = [at for at in wanted if _holds_strings(schema.field(at).type)]
            if strings and rows:
                sampled.append((path, strings, rows))
        some = sampled[:: max(1, len(sampled) // SAMPLED_FILES)]
        means = [self._mean_strings(path, at) for path, at, _ in some]
        text = int(sum(rows for *_, rows in sampled) * sum(means) / max(len(means), 1))
        return size.plus(Size(text=text, distinct=text))

    def reason(self, path: str) -> str:
        """Return what PyArrow says about a damaged file."""
        try:
            schema, rows = self.head(path)
            found = sum(len(_checked(batch)) for batch in self.batches(path, range(len(schema))))
        except self._damages() as error:
            return one_line(error)
        return "" if found == rows else f"it has {found} rows, its metadata say {rows}"

    def _head_of(self, path: str) -> _Head:
        try:
            schema, rows = self.head(path)
            _ = schema.names  # raises if they are not UTF-8
            return _Head(schema, rows)
        except InputError:
            raise
        except self._damages() as error:
            raise self._damaged(path, error) from error

    def _damaged(self, path: str, error: Exception) -> InputError:
        return InputError(path, f": cannot be read as {self.title}: {one_line(error)}")

    def _mean_strings(self, path: str, at: Sequence[int]) -> float:
        """Return the mean bytes of the strings of a row, from the first rows of a file."""
        damages: tuple[type[Exception], ...] = (*self._damages(), StopIteration)
        try:
            batch = _checked(next(iter(self.batches(path, at)))).slice(0, SAMPLED_ROWS)
        except damages:
            return 0.0
        return float(sum(bytes_of(decoded(each)) for each in batch.columns) / max(len(batch), 1))

    @staticmethod
    def _damages() -> tuple[type[Exception], ...]:
        """Return the errors of PyArrow for damaged files."""
        pa = require("pyarrow", "cli", what="reading files")
        return (OSError, ValueError, MemoryError, OverflowError, pa.ArrowException)


class _Rows:
    """The rows of files as columns c0, c1, ..., numbered as in the first; DuckDB before version 2 reads them once.

    A column that a file lacks, or has in another type, is null, as it cannot be used. With Hive partitions, a column
    names the file. `n_rows` gets the rows of each file that has been read to its end.
    """

    def __init__(
        self,
        format_: BatchedFormat,
        files: Files,
        heads: Sequence[_Head],
        at: Sequence[int],
        n_rows: dict[str, int],
    ) -> None:
        import pyarrow as pa

        self._n_rows = n_rows
        self._format, self._files, self._schemas = format_, files, [head.schema for head in heads]
        first = heads[0].schema
        self._picked = [(f"c{nth}", first.field(nth)) for nth in at]
        self._kinds = [self._kind_of(field, nth) for nth, (_, field) in enumerate(self._picked)]
        fields = [pa.field(name, kind) for (name, _), kind in zip(self._picked, self._kinds, strict=True)]
        if any(files.keys):
            fields.append(pa.field(FILE, pa.dictionary(pa.int32(), pa.string())))
        self.schema = pa.schema(fields)

    def _kind_of(self, field: Any, nth: int) -> Any:
        """Return the type to read a column as: one of strings if files have several of these."""
        import pyarrow as pa

        found = [(schema, _position(schema, field, nth)) for schema in self._schemas]
        kinds = {schema.field(at).type for schema, at in found if at is not None}
        return _read_as(field.type) if kinds <= {field.type} else pa.large_string()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[Batch]:
        for path, schema in zip(self._files.paths, self._schemas, strict=True):
            own = [_position(schema, field, nth) for nth, (_, field) in enumerate(self._picked)]
            at, n_rows = sorted({position for position in own if position is not None}), 0
            for batch in self._format.batches(path, at):
                for start in range(0, len(_checked(batch)), ROWS_AT_ONCE):
                    yield self._named(
                        batch.slice(start, ROWS_AT_ONCE), [p if p is None else at.index(p) for p in own], path
                    )
                n_rows += len(batch)
            self._n_rows[utf8_path(path)] = n_rows

    def _named(self, batch: Batch, at: Sequence[int | None], path: str) -> Batch:
        """Return a batch with the columns of the stream, from those at some positions of the batch."""
        import pyarrow as pa

        columns = [
            pa.nulls(len(batch), kind) if nth is None else _cast(batch.column(nth), kind)
            for kind, nth in zip(self._kinds, at, strict=True)
        ]
        if len(columns) < len(self.schema):
            codes = pa.repeat(pa.scalar(0, pa.int32()), len(batch))
            columns.append(pa.DictionaryArray.from_arrays(codes, pa.array([utf8_path(path)])))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _position(schema: Any, field: Any, nth: int) -> int | None:
    """Return where a file has a column of the first file, at `nth` there; None if it lacks one of this type."""
    if nth < len(schema) and schema.field(nth).name == field.name and _are_alike(schema.field(nth).type, field.type):
        return nth
    found: list[int] = schema.get_all_field_indices(field.name)
    return found[0] if len(found) == 1 and _are_alike(schema.field(found[0]).type, field.type) else None


def _are_alike(one: Any, other: Any) -> bool:
    """Return whether types are equal, or both of strings, which DuckDB does not tell apart."""
    return bool(one == other) or (_holds_strings(one) and _holds_strings(other))


def _checked(batch: Batch) -> Batch:
    """Return a batch whose lengths, codes and strings are valid; raise ArrowInvalid otherwise."""
    batch.validate(full=True)
    return batch


def _check_names(path: str, schema: Any, columns: FileColumns) -> None:
    """Raise if a column that may be read is in a file several times."""
    for name in schema.names if columns.reads_all else sorted(columns.names):
        if schema.names.count(name) > 1:
            raise InputError(path, f": the file has the column {name!r} {schema.names.count(name)} times")


def _view(con: DuckDBPyConnection, rows: _Rows) -> str:
    """Make rows a view of the database; return its quoted name."""
    if not len(rows.schema):
        return "(SELECT NULL WHERE false)"
    name = f"rows of files {next(_numbers)}"
    con.register(name, rows)
    return quoted(name)


def _types_of(con: DuckDBPyConnection, schema: Any) -> list[_Type]:
    """Return the type of each column."""
    import duckdb
    import pyarrow as pa

    found: dict[Any, _Type] = {}
    for kind in (field.type for field in schema if field.type not in found):
        try:
            con.register("no rows", pa.schema([pa.field("c", _read_as(kind))]).empty_table())
            found[kind] = _Type(run(con, 'DESCRIBE SELECT * FROM "no rows"').fetchall()[0][1], is_readable=True)
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, NotImplementedError):
            found[kind] = _Type(str(kind), is_readable=False)
        finally:
            con.unregister("no rows")
    return [found[field.type] for field in schema]


def _read_as(kind: Any) -> Any:
    """Return the type that DuckDB gets in place of one with float16, which it lacks: that with float32.

    List views stay as they are, and cannot be read: PyArrow 26 casts some of their lists to empty ones.
    """
    import pyarrow as pa
    from pyarrow import types

    if types.is_float16(kind):
        return pa.float32()
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    if not is_list or (own := _read_as(kind.value_type)) == kind.value_type:
        return kind
    return pa.list_(own, kind.list_size) if types.is_fixed_size_list(kind) else pa.large_list(own)


def _cast(column: Any, kind: Any) -> Any:
    return column if column.type == kind else without_views(decoded(column)).cast(kind)


def _holds_strings(kind: Any) -> bool:
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view))

"""The rows of the files of a table in batches of Arrow: columns by name, of one type in all files.

Columns without types hold strings: those of numbers become numbers, and ids become integers if all of a table spell
integers. Errors name the file and the row.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from fastrec.clusters.packets import plain_types
from fastrec.exceptions import FastrecError, InputError, InputTypeError, Name, RowNumber, Text
from fastrec.files.columns import ITEMS, OF_ITEM, ColumnError, TooLargeError
from fastrec.files.formats.base import FileHead, Size, holds_strings
from fastrec.files.formats.foreign import one_line
from fastrec.files.opened import Opened
from fastrec.files.paths import utf8_path
from fastrec.files.text_values import Spellings, as_numbers, decimals_refused
from fastrec.files.types import common_type, holds_bytes, holds_lists, is_uuid, refusal_of, with_common_type
from fastrec.inputs.arrow import column_of_ids, column_of_labels, read_numbers
from fastrec.inputs.columns import refuse_nan
from fastrec.inputs.ids import integer_ids
from fastrec.inputs.strings import bytes_of, decoded, without_views
from fastrec.inputs.values import refuse_nulls, values_of

Array = np.ndarray[Any, Any]
Batch = Any  # pyarrow.RecordBatch
Table = Any  # pyarrow.Table
SAMPLED_ROWS = 1000
BYTES_AT_ONCE = 1 << 24  # of decoded strings
ROW_NUMBER = "\1row"  # the column of positions of rows, which no column of a file is called
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def is_label(role: str) -> bool:
    """Return whether the column of a role has labels to group by, which may be null."""
    return role.startswith(("by", "row_by"))


def is_id(role: str) -> bool:
    """Return whether the column of a role has ids or labels: integers or strings."""
    return role in ("item", "query", "slate") or role.startswith(("user", "by", "row_by", "key"))


class TableReader:
    """The files of a table: the columns that are needed, their rows, and how errors name both."""

    def __init__(self, opened: Opened, *, numbered: bool = False) -> None:
        self.opened, self.table, self.path = opened, opened.table, opened.files.path
        self.faults: dict[str, FastrecError] = {}  # of columns of items, which matter if a metric asks for them
        self.spellings: dict[str, Spellings] = {}  # of ids without a type, once all rows were read
        self.n_rows: list[int] = []  # of each file, as far as they were read
        self._seen: dict[str, set[bool]] = {}  # whether values of columns of numbers without a type are booleans
        self._heads = list(self._read_heads())
        self.numbered = numbered  # whether rows get their positions
        self.names, self.listed = self._find_names()  # {role: column}; all columns of the first file
        self._common: dict[str, Any] = {}  # {column: type that holds its values in all files}
        self.schema = self._common_schema()

    @property
    def heads(self) -> Sequence[FileHead]:
        """The head of each file."""
        return self._heads

    @property
    def has_one_schema(self) -> bool:
        """Return whether all files have the same columns of the same types, none of them in the names of folders."""
        in_folders = {unquote(key) for keys in self.opened.files.keys for key in keys}
        return not self.numbered and len(self._variants) == 1 and in_folders.isdisjoint(self.schema)

    @property
    def total(self) -> int:
        """The number of rows, as far as it is known."""
        return sum(self.n_rows) or sum(head.rows or 0 for head in self._heads)

    @functools.cached_property
    def size(self) -> Size:
        """An estimate of the size of the columns."""
        return self.opened.format.size(self.opened.files.paths, self._heads, self.schema)

    @property
    def format(self) -> Any:
        """The format of the files."""
        return self.opened.format

    @functools.cached_property
    def open_ids(self) -> dict[str, str]:
        """{column: role} of the ids without a type."""
        ids = {name: role for name, role in self.roles.items() if is_id(role) and self.is_untyped(name)}
        return {name: role for name, role in ids.items() if role != "item" or not self.has_cells}

    @property
    def has_cells(self) -> bool:
        """Return whether the column of items has cells of several ids."""
        return getattr(self.opened.columns, "item_sep", None) is not None

    @functools.cached_property
    def roles(self) -> dict[str, str]:
        """{column: role}, that of ids if a column has several."""
        found = {name: role for role, name in self.names.items() if not is_id(role)}
        return found | {name: role for role, name in self.names.items() if is_id(role)}

    def roles_of(self, name: str) -> list[str]:
        """Return all roles of a column."""
        return [role for role, own in self.names.items() if own == name]

    def at(self, role: str) -> Text:
        """Return how errors name the column of a role."""
        return Text(self.path, f": column {self.names[role]!r}")

    def place(self, position: int) -> str:
        """Return how errors name the row at a position: its row or line, and its file if there are several."""
        counts = self.n_rows or [head.rows or 0 for head in self._heads]
        path = self.opened.files.paths[-1]
        for path, rows in zip(self.opened.files.paths, counts, strict=False):  # noqa: B007 - used below
            if position < rows:
                break
            position -= rows
        where = f" of {path}" if len(self.opened.files.paths) > 1 else ""
        return f"{self.format.place(path, position)}{where}"

    # Columns

    def _read_heads(self) -> Iterator[FileHead]:
        """Yield the head of each file; equal schemas are one object."""
        latest = None
        for path in self.opened.files.paths:
            try:
                head = self.format.head(path)
                schema = head.schema
                if latest is None or not schema.equals(latest):
                    _ = schema.names  # raises if they are not UTF-8
                    latest = schema
            except FastrecError:
                raise
            except self.format.damages() as error:
                raise self._damaged(path, error) from error
            yield head._replace(schema=latest)

    def _damaged(self, path: str, error: Exception) -> InputError:
        reason = self.format.reason(path) or one_line(error)
        return InputError(path, f": cannot be read as {self.format.title}: ", reason)

    @functools.cached_property
    def _variants(self) -> dict[tuple[int, frozenset[str]], int]:
        """Return {schema and folders: the first file that has them}."""
        first: dict[tuple[int, frozenset[str]], int] = {}
        for nth, (head, keys) in enumerate(zip(self._heads, self.opened.files.keys, strict=True)):
            first.setdefault((id(head.schema), frozenset(keys)), nth)
        return first

    def _columns_of(self, nth: int) -> list[str]:
        """Return all columns of a file, also those in the names of its folders."""
        return list(dict.fromkeys((*self._heads[nth].schema.names, *map(unquote, self.opened.files.keys[nth]))))

    def _find_names(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return {role: column} and all columns of the first file; raise unless all files have the same ones."""
        paths = self.opened.files.paths
        columns = self.opened.columns
        first, names = paths[0], columns.roles(self.table, paths[0], self._columns_of(0))
        for nth in self._variants.values():
            self._check_once(nth, names)
            theirs = columns.roles(self.table, paths[nth], self._columns_of(nth)) if nth else names
            for name, role in {name: role for own in (names, theirs) for role, name in own.items()}.items():
                if (name in names.values()) != (name in theirs.values()):
                    lacking, having = (paths[nth], first) if name in names.values() else (first, paths[nth])
                    kind = role.rstrip("0123456789")
                    raise ColumnError(lacking, f": no column {name!r}, which {having} has", role=kind)
        return names, tuple(self._columns_of(0))

    def _check_once(self, nth: int, names: Mapping[str, str]) -> None:
        """Raise if a column that is needed is in a file several times."""
        listed = self._heads[nth].schema.names
        for name in names.values():
            if listed.count(name) > 1:
                path = self.opened.files.paths[nth]
                raise InputError(path, f": the file has the column {name!r} {listed.count(name)} times")

    def _is_in_folders(self, name: str, nth: int = 0) -> bool:
        return bool(self._heads[nth].schema.get_field_index(name) < 0)

    def is_untyped(self, name: str) -> bool:
        """Return whether a column has no type."""
        return not self.format.has_types or self._is_in_folders(name)

    def _common_schema(self) -> dict[str, Any]:
        """Return {column: type in which it is read}; raise for types that differ or are not read."""
        import pyarrow as pa

        found: dict[str, Any] = {}
        for name, role in self.roles.items():
            is_number = not is_id(role) and not role.startswith(OF_ITEM)
            if self.is_untyped(name):
                kind = (pa.int64() if role == "rank" else pa.float64()) if is_number else pa.string()
            else:
                kind = self._common[name] = self._common_type(role, name)
                if is_number and holds_strings(kind):
                    kind = pa.int64() if role == "rank" else pa.float64()
                with contextlib.suppress(FastrecError):  # which values raise, too, if there are any
                    kind = None if kind is None else self._as_in_frames(pa.nulls(0, kind), role).type
            if kind is not None:
                found[name] = kind
        return found

    def _common_type(self, role: str, name: str) -> Any:
        """Return the type of a column in all files; None for a column of items that cannot be read."""
        import pyarrow as pa

        kind, fault = None, None
        for nth in self._variants.values():
            own, refused = pa.string(), ""
            if not self._is_in_folders(name, nth):
                field = self._heads[nth].schema.field(name)
                own, refused = field.type, refusal_of(field)
            wanted = own if kind is None else common_type(kind, own, as_text=is_id(role))
            if wanted is None:
                refused = f"holds {own}, but {kind} in {self.opened.files.paths[0]}: files that are read together must "
                refused += "have the same types"
            if refused and fault is None:
                fault = InputTypeError(self.opened.files.paths[nth], f": column {name!r} ", refused)
            kind = kind if wanted is None else wanted
        if fault is not None and not role.startswith(OF_ITEM):
            raise fault
        if fault is not None:
            self.faults[name] = fault
            return None
        return pa.large_string() if (is_id(role) and holds_bytes(kind)) or is_uuid(kind) else kind

    # Rows

    def batches(self, *, checked: bool = False) -> Iterator[Batch]:
        """Yield all rows. With `checked`, errors name the rows of nulls and NaN, which readers of frames name later."""
        self.n_rows, self.spellings = [], {name: Spellings() for name in self.open_ids}
        self._seen = {}
        for nth, path in enumerate(self.opened.files.paths):
            first, here = sum(self.n_rows), 0
            self.n_rows.append(0)
            for batch in self._batches_of(nth, path):
                self.n_rows[-1] = here + len(batch)
                rows = self._converted(batch, nth, first + here)
                if checked:
                    self._check(rows, first + here)
                here += len(batch)
                yield rows
            expected = self._heads[nth].rows
            if expected is None and not here:
                raise InputError(path, ": no row was read, but the file has more than a header; write it as Parquet")
            if expected not in (None, here):
                raise InputError(path, f": it has {here} rows, its metadata say {expected}")

    def _batches_of(self, nth: int, path: str) -> Iterator[Batch]:
        """Yield the rows of a file, cut so that decoded strings fit in memory."""
        schema = self._heads[nth].schema
        at = sorted(schema.get_field_index(name) for name in self.schema if not self._is_in_folders(name, nth))
        wanted = {n: schema.field(n).type if self.format.has_types else self.schema[schema.names[n]] for n in at}
        if not wanted and len(schema):  # all columns are in the names of folders
            wanted = {0: schema.field(0).type}
        names = [schema.names[n] for n in wanted]
        try:
            for batch in self.format.batches(path, wanted):
                step = len(batch) and max(
                    1, min(len(batch), BYTES_AT_ONCE * len(batch) // max(_decoded_bytes(batch), 1))
                )
                for start in range(0, len(batch), step or 1):
                    yield batch.slice(start, step).rename_columns(names)
        except FastrecError:
            raise
        except MemoryError as error:
            raise TooLargeError(path, f": its rows do not fit in memory: {one_line(error)}") from error
        except self.format.damages() as error:
            raise self._damaged(path, error) from error

    def _converted(self, batch: Batch, nth: int, first: int) -> Batch:
        """Return rows with the columns and types of the table; `first` is the position of the first row."""
        import pyarrow as pa

        columns = {}
        for name, kind in self.schema.items():
            if self._is_in_folders(name, nth):
                column = self._repeated(nth, name, len(batch))
            else:
                column = batch.column(name)
                self._check_folder(nth, name, column)
            columns[name] = self._as_read(column, name, kind, first)
        if self.numbered:
            columns[ROW_NUMBER] = pa.array(np.arange(first, first + len(batch)))
        return pa.RecordBatch.from_pydict(columns)

    def _as_read(self, column: Any, name: str, kind: Any, first: int) -> Any:
        """Return a column in the type of the table; ids without a type as integers if all of them spell integers."""
        import pyarrow as pa

        role = self.roles[name]
        spells_numbers = holds_strings(column.type) and not holds_strings(kind)
        if not self.is_untyped(name) and not spells_numbers:
            try:
                column = with_common_type(column, self._common[name])
            except pa.ArrowInvalid as error:
                raise InputError(
                    self.at(role), f" cannot be read as {self._common[name]} in all files: {one_line(error)}"
                ) from None
            with self._rows_from(first):
                return self._as_in_frames(column, role)
        if name in self.spellings:
            return self.spellings[name].add(column)
        if role.startswith(OF_ITEM):
            return column
        with self._rows_from(first):
            return as_numbers(
                decoded(column), kind, self.at(role), role, self.table, self._seen.setdefault(name, set())
            )

    def _as_in_frames(self, column: Any, role: str) -> Any:
        """Return values of a type that data frames may hold, ids and labels as integers or strings."""
        import pyarrow as pa
        from pyarrow import types

        kind = column.type
        may_hold_lists = not is_id(role) or (role == "item" and self.table != ITEMS)
        if role.startswith(OF_ITEM) or (may_hold_lists and holds_lists(kind)):
            return column
        if not is_id(role):
            if not types.is_null(kind):
                read_numbers(pa.chunked_array([column.slice(0, 1)]), self.at(role))
            return column
        column = column if holds_strings(kind) else decoded(column)
        if is_label(role):
            column = column_of_labels(column, self.at(role))
        if not types.is_dictionary(column.type):
            column = column_of_ids(column, self.at(role))
        try:
            return column.cast(pa.int64()) if column.type == pa.uint64() else column
        except pa.ArrowInvalid:
            return integer_ids(values_of(column.drop_null()), self.at(role))  # raises

    def _check(self, rows: Batch, first: int) -> None:
        """Raise for nulls and NaN."""
        import pyarrow as pa

        for role, name in self.names.items():
            if is_label(role) or (role == "item" and self.has_cells):
                continue
            column = rows.column(name)
            with self._rows_from(first):
                if column.null_count:
                    refuse_nulls(pa.chunked_array([column]), self.at(role))
                if pa.types.is_floating(column.type):
                    refuse_nan(values_of(column), self.at(role))

    @contextlib.contextmanager
    def _rows_from(self, first: int) -> Iterator[None]:
        """Have errors of the block name the rows of a batch that begins at a position."""

        def placed(name: Name) -> object:
            return f" in {self.place(first + name.position)}" if isinstance(name, RowNumber) else name

        try:
            yield
        except FastrecError as error:
            raise error.renamed(placed) from error.__cause__

    def _folder_value(self, nth: int, name: str) -> str | None:
        """Return the value of a column in the names of the folders of a file."""
        for part in reversed(utf8_path(self.opened.files.paths[nth]).split(os.sep)[:-1]):
            key, equals, value = part.partition("=")
            if equals and unquote(key) == name:
                return None if unquote(value) == NO_VALUE else unquote(value)
        return None

    def _check_folder(self, nth: int, name: str, column: Any) -> None:
        """Raise if a file has a column, its folder is named like it, and their values differ.

        Some programs write the column into the files, too. Numbers, times and booleans may be spelled in two ways.
        """
        if name not in map(unquote, self.opened.files.keys[nth]):
            return
        said = self._folder_value(nth, name)
        wrong = np.flatnonzero(~_equal(column, said))
        if len(wrong) and said != "":
            found = f" holds {column[wrong[0]].as_py()!r}, but the name of its folder says {said!r}"
            raise InputError(self.opened.files.paths[nth], f": column {name!r}", found)

    def finish(self) -> None:
        """Raise for ids without a type that look like floats, once all rows were read."""
        for name, role in self.open_ids.items():
            if not is_label(role):
                decimals_refused(self.spellings[name], self.at(role))

    def table_of(self, batches: Sequence[Batch], kinds: Mapping[str, Any], *, packed: bool = False) -> Table:
        """Return batches, `packed` or not, as one table; `kinds` are {column: type} of ids without a type."""
        import pyarrow as pa

        wanted = {**self.schema, **kinds} | ({ROW_NUMBER: pa.int64()} if self.numbered else {})
        schema = pa.schema([pa.field(name, kind) for name, kind in wanted.items()])
        schema = plain_types(schema) if packed else schema
        columns = []
        for field in schema:
            chunks = [batch.column(field.name) for batch in batches]
            columns.append(pa.chunked_array([each.cast(field.type) for each in chunks], field.type))
        return pa.Table.from_arrays(columns, schema=schema)

    def has_lists(self, name: str) -> bool:
        """Return whether each row of a column holds a list."""
        return self.has_cells or holds_lists(self.schema[name])

    def values_per_row(self) -> float:
        """Return the mean number of values in lists of a row, from the first rows; 1 without lists."""
        lists = [name for name, kind in self.schema.items() if holds_lists(kind)]
        if not lists:
            return 1.0
        rows = self.first_rows(lists[:1], SAMPLED_ROWS).column(lists[0]).drop_null()
        return max(len(rows.combine_chunks().flatten()) / max(len(rows), 1), 1.0)

    def first_rows(self, names: Sequence[str], n_rows: int, files: Sequence[int] = ()) -> Table:
        """Return the first rows of some columns, as the files have them: of all files together, or of each given one.

        Files that lack a column are left out.
        """
        import pyarrow as pa

        found: list[Table] = []
        left = n_rows
        for nth in files or range(len(self._heads)):
            left = n_rows if files else n_rows - sum(map(len, found))
            schema = self._heads[nth].schema
            if left <= 0 or not {*names} <= {*self._columns_of(nth)}:
                continue
            at = {schema.get_field_index(name): name for name in names if not self._is_in_folders(name, nth)}
            wanted = {n: schema.field(n).type for n in sorted(at)}
            for batch in self.format.batches(self.opened.files.paths[nth], wanted):
                rows = pa.Table.from_batches([batch.slice(0, left).rename_columns([at[n] for n in wanted])])
                for name in names:
                    if name not in rows.column_names:
                        rows = rows.append_column(name, [self._repeated(nth, name, len(rows))])
                found.append(rows.select(names))
                left -= len(rows)
                if left <= 0:
                    break
        return (
            pa.concat_tables(found, promote_options="permissive") if found else pa.table({name: [] for name in names})
        )

    def _repeated(self, nth: int, name: str, n_rows: int) -> Any:
        """Return the value of a column in the names of folders for each row of a file."""
        import pyarrow as pa

        return pa.repeat(pa.scalar(self._folder_value(nth, name), pa.string()), n_rows)


def _decoded_bytes(batch: Batch) -> int:
    """Return the bytes of a batch if each code of a dictionary were its value."""
    total = 0
    for column in batch.columns:
        if hasattr(column, "dictionary"):
            mean = bytes_of(column.dictionary) // max(len(column.dictionary), 1)
            total += mean * len(column)
        else:
            total += bytes_of(column)
    return total


def _equal(column: Any, said: str | None) -> Array:
    """Return whether each value of a column is the one that the name of a folder says."""
    import pyarrow as pa
    from pyarrow import compute

    if said is None:
        return np.asarray(column.is_null())
    values, found = without_views(decoded(column)), np.zeros(len(column), bool)
    with contextlib.suppress(pa.ArrowException):  # of another type
        found = np.asarray(compute.equal(values, pa.scalar(said).cast(values.type)).fill_null(False))  # noqa: FBT003
    if holds_strings(values.type):
        with contextlib.suppress(pa.ArrowException):  # 04 is 4
            integers = compute.equal(values.cast(pa.int64()), pa.scalar(said).cast(pa.int64()))
            found = np.asarray(integers.fill_null(False))  # noqa: FBT003
    return found

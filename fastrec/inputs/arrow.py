"""Columns of data frames of any library as Arrow arrays, and these as NumPy arrays, without a copy where possible.

A column is a PyArrow ChunkedArray, which every library can export. Chunks and slices are handled here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import suggest_name, with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, Place, RowNumber, Text
from fastrec.inputs.ids import Strings, integer_ids
from fastrec.inputs.ragged import Ragged
from fastrec.inputs.sides import SIDES
from fastrec.inputs.strings import MANY_STRINGS, number_column, without_views
from fastrec.inputs.values import call_arrow, find_nulls, refuse_nulls, values_of
from fastrec.runtime.extras import require

Array = np.ndarray[Any, Any]
Column = Any  # a pyarrow.ChunkedArray
MAX_CODES = 2**31  # that an int32 can hold
WANTED_LABELS = (
    "labels to group by must be strings, integers, booleans or dates: convert the column, or cut its numbers into "
    "ranges (missing values turn integers into floats: astype('Int64') keeps integers)"
)
INSTEAD_OF_RANGES = "labels must be strings or integers: name the ranges, pd.cut(..., labels=[...]), or astype(str)"
NOT_FLOATS = "floats cannot hold large ids (missing values turn integers into floats): drop those rows, then astype"


class Frame(NamedTuple):
    """A table of any library that reads its columns on demand."""

    name: str  # of the argument
    columns: list[str]
    get: Callable[[str], Column]
    hint: str = ""  # where a missing column may be
    unordered: Collection[str] = ()  # columns that were read as lists and hold sets
    cut: Callable[[int], Any] | None = None  # returns the first rows, in the form of the library

    def head(self, n_rows: int) -> Frame:
        """Return the first rows."""
        own = self if self.cut is None else read_foreign(self.cut(n_rows), self.name)
        return own if isinstance(own, Frame) else self

    def has(self, column: str | None) -> bool:
        """Return whether there is a column of this name."""
        return column in self.columns

    def where(self, column: str) -> str:
        """Return the name of a column for errors."""
        return Text(Place(self.name, column))

    def read(self, column: str, *, nulls: bool = False, argument: str = "") -> Column:
        """Return a column; nulls are an error unless allowed. The error for a missing column names its `argument`."""
        if column not in self.columns:
            found = f"{self.name} has no column {column!r}{suggest_name(column, self.columns)}{self.hint}"
            named = argument and self.columns and not self.hint
            of_all = argument in ("user", "item") and self.name in SIDES
            names = " names the column in all frames: rename it in one of them if they differ"
            hint = ("; ", Argument(argument, (...,)), names if of_all else " names another")
            raise InputError(found, *(hint if named else ()))
        if self.columns.count(column) > 1:
            raise InputError(f"{self.name} has {self.columns.count(column)} columns named {column!r}")
        values = self.get(column)
        _check_valid(values, self.where(column))
        if not nulls:
            refuse_nulls(values, self.where(column))
        return values

    def read_scalars(self, column: str, *, nulls: bool = False, argument: str = "") -> Column:
        """Return a column with one value per row."""
        values = self.read(column, nulls=nulls, argument=argument)
        if list_column(values):
            raise InputTypeError(self.where(column), " holds lists, expected one value per row")
        return values


def refuse_other_indexes(given: Mapping[str, Any]) -> None:
    """Reject Series of one length with different indexes: fastrec matches them by position, pandas by index.

    Labels of groups may be several Series, {name: labels}, and ids a tuple of several.
    """
    first: dict[int, tuple[str, Any]] = {}
    for called, value in _each(given):
        if (index := index_of(value)) is None:
            continue
        other, wanted = first.setdefault(len(index), (called, index))
        if not index.equals(wanted):
            raise InputError(
                other,
                " and ",
                called,
                " are Series with different indexes, but Series are matched by position: bring them into one order "
                "with ",
                *(called, ".loc[", other, ".index], or, if they are in one order, pass ", called, ".to_numpy()"),
            )


def _each(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield arguments with their names, one by one where an argument holds several."""
    for name, value in given.items():
        if name.endswith("groups") and isinstance(value, Mapping):
            parts: Iterable[tuple[Any, Any]] = value.items()
        elif name.endswith("_ids") and isinstance(value, tuple):
            parts = enumerate(value)
        else:
            yield Text(name), value
            continue
        for key, one in parts:
            yield Text(name, f"[{key!r}]"), one


def index_of(value: Any) -> Any:
    """Return the index of a Series of pandas, also inside narwhals; None for anything else."""
    if value is None or isinstance(value, np.ndarray | list | tuple | dict):
        return None
    own = _unwrap(value)
    return own.index if _is_series(own) else None


def is_other_order(index: Any, ids: list[Any]) -> bool:
    """Return whether an index of pandas has the ids in another order. A default index has none."""
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return False
    labels = index.tolist()
    return labels != ids and len(labels) == len(ids) and set(labels) == set(ids)


def _unwrap(value: Any) -> Any:
    """Return the object that narwhals wraps; anything else as it is."""
    wrapped = type(value).__module__.partition(".")[0] == "narwhals" and hasattr(value, "to_native")
    return value.to_native() if wrapped else value


def _is_series(value: Any) -> bool:
    return _is_of_pandas(value) and hasattr(value, "index") and not hasattr(value, "columns")


def _is_of_pandas(value: Any) -> bool:
    """Return whether a value is of a class of pandas or of a subclass."""
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(value).__mro__)


def _is_of_polars(value: Any) -> bool:
    """Return whether a value is a data frame or a Series of Polars; a lazy frame is neither."""
    return type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "to_arrow")


def is_foreign(value: Any) -> bool:
    """Return whether a value is a data frame, a list of Spark rows or an Arrow array, without loading a library."""
    if value is None or isinstance(value, (np.ndarray, tuple, dict, Ragged, str, bytes)):
        return False
    value = _unwrap(value)
    if isinstance(value, list):
        return bool(value) and _is_spark_row(value[0])
    exports = ("__arrow_c_stream__", "__arrow_c_array__", "collect_schema")
    if any(hasattr(value, export) for export in exports) or _is_series(value) or _is_of_polars(value):
        return True
    return not hasattr(value, "indptr") and _as_narwhals(value) is not None


def open_foreign(value: Any, name: str) -> Any:
    """Return a data frame of any library as a Frame, an Arrow array as a column, and anything else as it is."""
    return read_foreign(value, name) if is_foreign(value) else value


def is_column(value: Any) -> bool:
    """Return whether a value is an opened column."""
    return type(value).__module__.partition(".")[0] == "pyarrow"


def chunked(value: Any) -> Any:
    """Return an Arrow array as a column; anything else as it is."""
    if type(value).__module__.partition(".")[0] != "pyarrow" or hasattr(value, "chunks"):
        return value
    import pyarrow as pa

    return pa.chunked_array([value])


def _is_spark_row(row: Any) -> bool:
    return isinstance(row, tuple) and hasattr(row, "__fields__") and hasattr(row, "asDict")


def _as_narwhals(value: Any) -> Any:
    """Return the value as a narwhals frame, or None if narwhals is not installed or does not know it."""
    if isinstance(value, Mapping) or importlib.util.find_spec("narwhals") is None:
        return None
    narwhals = importlib.import_module("narwhals.stable.v2")
    frame = narwhals.from_native(value, pass_through=True)
    return frame if isinstance(frame, (narwhals.DataFrame, narwhals.LazyFrame)) else None


def read_foreign(value: Any, name: str) -> Frame | Column:
    """Return a data frame as a Frame, an Arrow array as a column of lists."""
    value = _unwrap(value)
    arrow = require("pyarrow", "arrow", what=f"{name} as a data frame or an Arrow array")
    if isinstance(value, list):
        return _read_spark(value, name)
    if _is_series(value) and name == "recs" and (sets := _find_sets(value)):
        raise InputTypeError(
            f"recs[{value.index.tolist()[sets[0]]!r}] must be a list, best item first: a set has no order"
        )
    exports = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    if not exports and not _is_series(value) and not _is_of_polars(value):
        value = _collect(value, name)
    if _is_of_pandas(value) and hasattr(value, "columns"):
        index = [f"; {level!r} is its index: reset_index() makes it a column" for level in value.index.names if level]
        frame = _frame_of_objects(name, list(value.columns), lambda column: value[column], *index[:1])
        return frame._replace(cut=value.head)
    if _is_of_polars(value) and hasattr(value, "columns"):
        return Frame(
            name,
            value.columns,
            lambda column: _import_column(value.get_column(column), name, column),
            cut=value.head,
        )
    if not isinstance(value, arrow.Table):  # which keeps its chunks, as an export would not
        try:
            columns = _import(value)
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise InputTypeError(f"{name} cannot be read as an Arrow table or array: {error}") from None
        if not arrow.types.is_struct(columns.type):
            return columns
        _check_column(columns, name)
        value = arrow.Table.from_struct_array(columns)
    return Frame(name, _column_names(value, name), value.column, cut=lambda n_rows: value.slice(0, n_rows))


def _column_names(table: Any, name: str) -> list[str]:
    try:
        names: list[str] = table.column_names
    except UnicodeDecodeError as error:
        raise InputError(f"{name} has a column name that is not UTF-8: {error}") from None
    return names


def _collect(value: Any, name: str) -> Any:
    """Return a lazy frame, or a frame that narwhals knows, as a table."""
    frame = _as_narwhals(value)
    if frame is not None:
        return (frame.collect(backend="pyarrow") if hasattr(frame, "collect") else frame).to_arrow()
    if not hasattr(value, "collect"):
        raise InputTypeError(
            f"{name} is {with_article(type(value).__name__)}, which only narwhals can read: install narwhals, or "
            "convert it"
        )
    return value.collect()


def _import(value: Any) -> Column:
    """Import an object that exports an Arrow stream or array; a table becomes one column of structs."""
    import pyarrow as pa

    if _is_of_polars(value):  # its streams had other types than they said until 1.36
        if str(value.dtype) == "Object":  # which older ones cannot export without a crash
            raise TypeError("its values are Python objects")
        return pa.chunked_array([part.to_arrow() for part in value.get_chunks()])
    array = pa.chunked_array(value) if hasattr(value, "__arrow_c_stream__") else pa.array(value)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _frame_of_objects(name: str, columns: list[str], values: Callable[[str], Any], hint: str = "") -> Frame:
    """Return a frame of Python objects that notes columns of sets, which PyArrow turns into lists."""
    unordered: set[str] = set()

    def get(column: str) -> Column:
        own = values(column)
        array = _import_column(own, name, column)
        if list_column(array) and _find_sets(own):
            unordered.add(column)
        return array

    return Frame(name, columns, get, hint, unordered)


def _find_sets(values: Any) -> list[int]:
    """Return the positions of sets among values."""
    if not isinstance(values, list) and values.dtype.kind != "O":
        return []
    return [at for at, value in enumerate(values) if isinstance(value, (set, frozenset))]


def _import_column(series: Any, name: str, column: str) -> Column:
    import pyarrow as pa

    if str(getattr(series, "dtype", "")).startswith("Sparse"):
        raise InputTypeError(Place(name, column), f" is sparse: pass {name}[{column!r}].sparse.to_dense() in its place")
    try:
        return _import(series)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputTypeError(Place(name, column), f" cannot be read as one Arrow column: {error}") from None


def _read_spark(rows: Sequence[Any], name: str) -> Frame:
    """Read a list of Spark rows, as returned by `DataFrame.collect()`."""
    columns = list(rows[0].__fields__)
    for at, row in enumerate(rows):
        if not _is_spark_row(row) or list(row.__fields__) != columns:
            found = list(row.__fields__) if _is_spark_row(row) else type(row).__name__
            raise InputTypeError(f"{name}[{at}] must be a Row with the columns {columns} like {name}[0], found {found}")
    frame = _frame_of_objects(name, columns, lambda column: [row[columns.index(column)] for row in rows])
    return frame._replace(cut=lambda n_rows: rows[:n_rows])


def _check_column(column: Column, where: str) -> None:
    """Reject nulls and arrays with inconsistent parts."""
    _check_valid(column, where)
    refuse_nulls(column, where)


def _check_valid(column: Column, where: str) -> None:
    """Reject arrays with inconsistent parts: kernels trust offsets, indices and strings."""
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        broken = "holds a string that is not UTF-8" if "UTF8" in str(error) else "is not a valid Arrow array"
        raise InputError(where, f" {broken}: {error}") from None


def _join(parts: list[Array], kind: Any) -> Array:
    """Concatenate chunks; return a single chunk as it is."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def read_ids(column: Column, where: str, n_threads: int = 1) -> Array | Strings:
    """Return ids as int32 or int64, or as strings; anything else is an error."""
    from pyarrow import types

    if types.is_null(column.type) or not len(column):
        return np.zeros(0, np.int64)
    if types.is_dictionary(column.type):  # categories of pandas or Polars, or an encoded column of a file
        name = _kind_of_strings(column.type.value_type)
        if name is None or any(chunk.dictionary.null_count for chunk in column.chunks if len(chunk)):
            return read_ids(_without_views(column).cast(column.type.value_type), where)
        return _strings_of(_without_views(column).unify_dictionaries(), name)
    if (name := _kind_of_strings(column.type)) is not None:
        numbered = number_column(column, n_threads) if len(column) >= MANY_STRINGS else None
        if numbered is not None:
            return Strings(*numbered, name)
        return _strings_of(without_views(column).dictionary_encode(), name)  # one dictionary for all chunks
    return integer_ids(_flat(column_of_ids(column, where)), where)


def column_of_ids(column: Column, where: str) -> Column:
    """Return ids as integers or strings; anything else is an error."""
    from pyarrow import types

    if types.is_integer(column.type) or types.is_null(column.type):
        return column
    if _kind_of_strings(column.type) is not None:
        return without_views(column)
    if _is_whole_decimal(column.type):
        return _decimals_as_numbers(column, where)
    advice = f"; {NOT_FLOATS}" if types.is_floating(column.type) else ""
    if types.is_date(column.type) or types.is_timestamp(column.type):
        advice = ": write days as strings, such as '2024-01-31'"
    raise InputTypeError(where, f" must hold integers or strings, found {column.type}{advice}")


class Labels(NamedTuple):
    """Labels of rows to group users by; a null label is ignored."""

    ids: Array | Strings  # of the rows that have one
    valid: Array | None  # whether a row has one; None if all do
    where: str  # the name of the column, for errors

    def spread(self, codes: Array) -> Array:
        """Return the codes of labels at the rows that have a label, and 0 at the others."""
        if self.valid is None:
            return codes
        spread = np.zeros(len(self.valid), codes.dtype)
        spread[self.valid] = codes
        return spread


def read_labels(column: Column, where: str, n_threads: int = 1) -> Labels:
    """Return labels as integers or strings; booleans and dates become strings, as in a file."""
    import pyarrow as pa
    from pyarrow import types

    null = find_nulls(column)
    if null.any():
        column = _without_views(column).filter(pa.array(~null))
    held = column.type.value_type if types.is_dictionary(column.type) else column.type
    if getattr(held, "extension_name", "") == "pandas.interval":
        raise InputTypeError(where, " holds ranges of numbers, as of pd.cut; ", INSTEAD_OF_RANGES)
    if types.is_dictionary(column.type) and _kind_of_strings(held) is None:
        column = column.cast(held)
    ids = read_ids(column_of_labels(column, where), where, n_threads)
    return Labels(ids, ~null if null.any() else None, where)


def column_of_labels(column: Column, where: str) -> Column:
    """Turn booleans and dates into strings; leave integers and strings as they are."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = column.type
    if types.is_boolean(kind):
        return compute.if_else(column, "True", "False")
    if types.is_date(kind):
        return column.cast(pa.string())
    if types.is_timestamp(kind) and kind.tz is None:  # without trailing zeros of a needlessly small unit
        strings = compute.replace_substring_regex(column.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return compute.replace_substring_regex(strings, r"\.$", "")
    if types.is_dictionary(kind) or types.is_null(kind) or types.is_integer(kind) or _kind_of_strings(kind) is not None:
        return column
    if _is_whole_decimal(kind):
        return column
    raise InputTypeError(where, f" holds {kind}; {WANTED_LABELS}")


def _strings_of(column: Column, kind: str) -> Strings:
    """Return the strings of a column of chunks with one dictionary."""
    codes = _join([values_of(chunk.indices) for chunk in column.chunks if len(chunk)], np.int32)
    values = column.chunk(0).dictionary
    if codes.dtype == np.uint32 and len(values) <= MAX_CODES:
        codes = codes.view(np.int32)
    return Strings(integer_ids(codes, "codes"), values, kind)


def _kind_of_strings(kind: Any) -> str | None:
    """Return "strings" or "bytes" for an Arrow type; None for other types."""
    from pyarrow import types

    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "strings"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "bytes"
    return None


def _without_views(column: Column) -> Column:
    """Return a column of strings, encoded or not, without string views, which parts of PyArrow do not support."""
    import pyarrow as pa
    from pyarrow import types

    if not types.is_dictionary(column.type):
        return without_views(column)
    wide = without_views(pa.nulls(0, column.type.value_type)).type  # `pa.array` imports pandas
    if wide == column.type.value_type:
        return column
    parts = [pa.DictionaryArray.from_arrays(chunk.indices, without_views(chunk.dictionary)) for chunk in column.chunks]
    return pa.chunked_array(parts, pa.dictionary(column.type.index_type, wide))


def _flat(column: Column) -> Array:
    """Return a column of fixed width as an array; unpack booleans."""
    return _join([values_of(chunk) for chunk in column.chunks if len(chunk)], np.int64)


def read_numbers(column: Column, where: str, mend: str = "") -> Array:
    """Return a column of integers, floats or booleans as an array. `mend` ends the error for others."""
    from pyarrow import types

    encoded = types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if not len(column):
        return np.zeros(0)
    if types.is_decimal(kind):
        return _flat(_decimals_as_numbers(column.cast(kind) if encoded else column, where))
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InputTypeError(where, f" must hold numbers, found {kind}{mend}")
    return _flat(column.cast(kind) if encoded else column)


def _decimals_as_numbers(column: Column, where: str) -> Column:
    """Return decimals as the nearest doubles, or as integers if their type has no places, as in files."""
    import pyarrow as pa

    wanted = pa.float64() if column.type.scale else pa.int64()
    try:
        return column.cast(pa.string()).cast(wanted)  # by way of strings, as PyArrow itself rounds several times
    except pa.ArrowInvalid as error:
        raise InputError(where, f" holds an integer past 64 bits: {error}") from None


def _is_whole_decimal(kind: Any) -> bool:
    """Return whether a type is that of decimals without places, as databases may store integers."""
    from pyarrow import types

    return bool(types.is_decimal(kind) and not kind.scale)


def is_numeric(column: Column) -> bool:
    """Return whether a column holds integers or floats."""
    from pyarrow import types

    return bool(types.is_integer(column.type) or types.is_floating(column.type))


def list_column(column: Column) -> bool:
    """Return whether each row of a column holds a list."""
    from pyarrow import types

    checks = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(check(column.type) for check in checks)


def split_lists(column: Column, where: str, *, nulls: bool = False) -> tuple[Column, Array]:
    """Return the values of all lists end to end, and pointers into them; null lists are errors.

    Null values are errors unless allowed.
    """
    import pyarrow as pa

    _check_column(column, where)
    flat = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
    lengths = [values_of(call_arrow("list_value_length", chunk)) for chunk in column.chunks]
    indptr = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]), dtype=np.int64)
    if not nulls and (null := find_nulls(flat)).any():
        at = int(np.searchsorted(indptr, int(null.argmax()), side="right")) - 1
        row = RowNumber(at, f" in the list of row {at}, counted from 0", " in a list")
        raise InputError(where, " must not hold nulls, found null", row)
    return flat, indptr


def check_same_lengths(indptr: Array, wanted: Array, where: str) -> None:
    """Reject lists that are not as long as the lists of items."""
    if len(indptr) == len(wanted) and np.array_equal(indptr, wanted):
        return
    if len(indptr) != len(wanted):
        raise InputError(where, f" has {len(indptr) - 1} rows, but the items have {len(wanted) - 1}")
    wrong = np.diff(indptr) != np.diff(wanted)
    at = int(wrong.argmax())
    found, of = np.diff(indptr)[at], np.diff(wanted)[at]
    row = RowNumber(at, f" row {at}, counted from 0,", " a row")
    raise InputError(where, " must hold one value per item, but", row, f" has {found} for {of} items")

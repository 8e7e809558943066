"""Columns of data frames of any library, as Arrow arrays and from there as NumPy arrays, without a copy where one is.

A column is a PyArrow ChunkedArray: every library gives its columns as such, and chunks and slices are dealt with here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import suggest_name
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.ids import Strings, integer_ids
from fastrec.inputs.ragged import Ragged
from fastrec.inputs.strings import MANY_STRINGS, number_column
from fastrec.inputs.values import values_of
from fastrec.runtime.extras import require

__all__ = [
    "Frame",
    "Labels",
    "check_same_lengths",
    "is_column",
    "is_numeric",
    "list_column",
    "open_foreign",
    "read_ids",
    "read_labels",
    "read_numbers",
    "refuse_other_indexes",
    "split_lists",
]

Array = np.ndarray[Any, Any]
Column = Any  # a pyarrow.ChunkedArray
MAX_CODES = 2**31  # that int32 can hold
WANTED_LABELS = (
    "labels to group by are texts, integers, booleans or dates: make such a column of it, of numbers by cutting them "
    "into ranges (missing values make floats of integers: astype('Int64') keeps them)"
)
NOT_FLOATS = "floats cannot hold large ids (missing values make floats of integers): drop those rows, then astype"


class Frame(NamedTuple):
    """A table of any library, its columns read when they are asked for."""

    name: str  # the argument it was passed as
    columns: list[str]
    get: Callable[[str], Column]
    hint: str = ""  # where a missing column may be
    unordered: Collection[str] = ()  # columns that were read as lists and hold sets

    def has(self, column: str | None) -> bool:
        """Whether there is a column of this name."""
        return column in self.columns

    def where(self, column: str) -> str:
        """A column as errors call it."""
        return f"{self.name} column {column!r}"

    def read(self, column: str, *, nulls: bool = False) -> Column:
        """A column, without nulls unless these are allowed."""
        if column not in self.columns:
            raise InputError(f"{self.name} has no column {column!r}{suggest_name(column, self.columns)}{self.hint}")
        if self.columns.count(column) > 1:
            raise InputError(f"{self.name} has {self.columns.count(column)} columns of the name {column!r}")
        values = self.get(column)
        _check_valid(values, self.where(column))
        if not nulls:
            _refuse_nulls(values, self.where(column))
        return values


def refuse_other_indexes(sides: Mapping[str, Any]) -> None:
    """An error for Series of lists whose indexes differ: they are matched by position, and pandas would not do so."""
    indexes = {name: own.index for name, value in sides.items() if _is_series(own := _unwrap(value))}
    for name, index in indexes.items():
        first, wanted = next(iter(indexes.items()))
        if len(index) == len(wanted) and not index.equals(wanted):
            raise InputError(
                f"{first} and {name} are Series with different indexes, which are not looked at: bring them into one "
                f"order, as with {name}.loc[{first}.index], or pass data frames or dicts, which are matched by user"
            )


def _unwrap(value: Any) -> Any:
    """What narwhals has wrapped."""
    wrapped = type(value).__module__.partition(".")[0] == "narwhals" and hasattr(value, "to_native")
    return value.to_native() if wrapped else value


def _is_series(value: Any) -> bool:
    return _is_of_pandas(value) and hasattr(value, "index") and not hasattr(value, "columns")


def _is_of_pandas(value: Any) -> bool:
    """Whether a value is of a class of pandas, or of one that was made from such."""
    return any(kind.__module__.partition(".")[0] == "pandas" for kind in type(value).__mro__)


def _is_foreign(value: Any) -> bool:
    """Whether a value is a data frame, a list of Spark rows or an Arrow array; loads no library to find out."""
    if value is None or isinstance(value, (np.ndarray, tuple, dict, Ragged, str, bytes)):
        return False
    if isinstance(value, list):
        return bool(value) and _is_spark_row(value[0])
    if any(hasattr(value, export) for export in ("__arrow_c_stream__", "__arrow_c_array__", "collect_schema")):
        return True
    return not hasattr(value, "indptr") and _as_narwhals(value) is not None


def open_foreign(value: Any, name: str) -> Any:
    """A data frame of any library as a Frame, an Arrow array as a column; anything else as it is."""
    value = _unwrap(value)
    return _read_foreign(value, name) if _is_foreign(value) else value


def is_column(value: Any) -> bool:
    """Whether a value is a column that was opened."""
    return type(value).__module__.partition(".")[0] == "pyarrow"


def _is_spark_row(row: Any) -> bool:
    return isinstance(row, tuple) and hasattr(row, "__fields__") and hasattr(row, "asDict")


def _as_narwhals(value: Any) -> Any:
    """The value as a frame of narwhals, if that is installed and knows it."""
    if isinstance(value, Mapping) or importlib.util.find_spec("narwhals") is None:
        return None
    narwhals = importlib.import_module("narwhals.stable.v2")
    frame = narwhals.from_native(value, pass_through=True)
    return frame if isinstance(frame, (narwhals.DataFrame, narwhals.LazyFrame)) else None


def _read_foreign(value: Any, name: str) -> Frame | Column:
    """A data frame; or the column of lists that an Arrow array is."""
    arrow = require("pyarrow", "arrow", what=f"{name} as a data frame or an Arrow array")
    if isinstance(value, list):
        return _read_spark(value, name)
    if _is_series(value) and name == "recs" and (sets := _find_sets(value)):
        raise InputTypeError(
            f"recs[{value.index.tolist()[sets[0]]!r}] must be a list, best item first: a set has no order"
        )
    if not hasattr(value, "__arrow_c_stream__") and not hasattr(value, "__arrow_c_array__"):
        value = _collect(value, name)
    if isinstance(value, arrow.Table):  # chunks stay as they are: other tables share them out anew
        return Frame(name, _column_names(value, name), value.column)
    if _is_of_pandas(value) and hasattr(value, "columns"):
        index = [
            f"; {level!r} is its index: reset_index() makes a column of it" for level in value.index.names if level
        ]
        return _frame_of_objects(name, list(value.columns), lambda column: value[column], *index[:1])
    if type(value).__module__.partition(".")[0] == "polars" and hasattr(value, "columns"):
        return Frame(name, value.columns, lambda column: _import_column(value.get_column(column), name, column))
    try:
        columns = _import(value)
    except (arrow.ArrowException, TypeError, ValueError) as error:
        raise InputTypeError(f"{name} cannot be read as an Arrow table or array: {error}") from None
    if not arrow.types.is_struct(columns.type):
        return columns
    _check_column(columns, name)
    names = [field.name for field in columns.type]
    return Frame(name, names, lambda column: _field(columns, names.index(column)))


def _column_names(table: Any, name: str) -> list[str]:
    try:
        names: list[str] = table.column_names
    except UnicodeDecodeError as error:
        raise InputError(f"{name} has a column whose name is not UTF-8: {error}") from None
    return names


def _collect(value: Any, name: str) -> Any:
    """A lazy frame, or one that narwhals knows, as a table."""
    frame = _as_narwhals(value)
    if frame is not None:
        return (frame.collect(backend="pyarrow") if hasattr(frame, "collect") else frame).to_arrow()
    if not hasattr(value, "collect"):
        raise InputTypeError(f"{name} is a {type(value).__name__}, which only narwhals reads: install it, or convert")
    return value.collect()


def _import(value: Any) -> Column:
    """Whatever exports an Arrow stream or array, a table as one column of structs."""
    import pyarrow as pa

    if not hasattr(value, "__arrow_c_stream__"):
        return pa.chunked_array([pa.array(value)])
    return pa.chunked_array(value)


def _frame_of_objects(name: str, columns: list[str], values: Callable[[str], Any], hint: str = "") -> Frame:
    """A frame whose columns may hold any object: of sets PyArrow makes lists."""
    unordered: set[str] = set()

    def get(column: str) -> Column:
        own = values(column)
        array = _import_column(own, name, column)
        if list_column(array) and _find_sets(own):
            unordered.add(column)
        return array

    return Frame(name, columns, get, hint, unordered)


def _find_sets(values: Any) -> list[int]:
    """Where sets are among values."""
    if not isinstance(values, list) and values.dtype.kind != "O":
        return []
    return [at for at, value in enumerate(values) if isinstance(value, (set, frozenset))]


def _import_column(series: Any, name: str, column: str) -> Column:
    import pyarrow as pa

    try:
        array = pa.chunked_array(series) if hasattr(series, "__arrow_c_stream__") else pa.array(series)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise InputTypeError(f"{name} column {column!r} cannot be read as one Arrow column: {error}") from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _field(columns: Column, at: int) -> Column:
    """One field of a column of structs."""
    import pyarrow as pa

    parts = [chunk.field(at) for chunk in columns.chunks]
    return pa.chunked_array(parts, columns.type.field(at).type)


def _read_spark(rows: Sequence[Any], name: str) -> Frame:
    """A list of Spark rows, as `DataFrame.collect()` gives it."""
    columns = list(rows[0].__fields__)
    for at, row in enumerate(rows):
        if not _is_spark_row(row) or list(row.__fields__) != columns:
            found = list(row.__fields__) if _is_spark_row(row) else type(row).__name__
            raise InputTypeError(f"{name}[{at}] must be a Row with the columns {columns} like {name}[0], found {found}")
    return _frame_of_objects(name, columns, lambda column: [row[columns.index(column)] for row in rows])


def _check_column(column: Column, where: str) -> None:
    """An error for nulls, and for arrays whose parts do not fit."""
    _check_valid(column, where)
    _refuse_nulls(column, where)


def _check_valid(column: Column, where: str) -> None:
    """An error for arrays whose parts do not fit: kernels trust offsets, indices and texts."""
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        broken = "holds a text that is not UTF-8" if "UTF8" in str(error) else "is no valid Arrow array"
        raise InputError(f"{where} {broken}: {error}") from None


def _refuse_nulls(column: Column, where: str) -> None:
    if (null := _find_nulls(column)).any():
        found = f"found null in row {int(null.argmax())}, counted from 0 (in {null.sum()} of {len(column)} rows)"
        raise InputError(f"{where} must not be null, {found}")


def _find_nulls(column: Column) -> Array:
    """Which values are null, also by way of a dictionary, which the column does not count; empty if there are none."""
    encoded = [chunk for chunk in column.chunks if hasattr(chunk, "dictionary")]
    if not column.null_count and not any(chunk.dictionary.null_count for chunk in encoded):
        return np.zeros(0, bool)
    return np.concatenate([_nulls_of(chunk) for chunk in column.chunks])


def _nulls_of(chunk: Any) -> Array:
    encoded = hasattr(chunk, "dictionary")
    # of the indices, as PyArrow 26 ends the process over an encoded column of nothing but nulls
    null: Array = (chunk.indices if encoded else chunk).is_null().to_numpy(zero_copy_only=False)
    if not encoded:
        return null
    hidden = np.append(_nulls_of(chunk.dictionary), True)  # the last one for rows without a code
    return hidden[np.where(null, -1, chunk.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))]


def _join(parts: list[Array], kind: Any) -> Array:
    """Chunks end to end; one chunk as it is."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def read_ids(column: Column, where: str, n_threads: int = 1) -> Array | Strings:
    """Ids as int32 or int64, or as texts; anything else is an error."""
    from pyarrow import types

    if types.is_null(column.type) or not len(column):
        return np.zeros(0, np.int64)
    if types.is_dictionary(column.type):
        return _read_dictionary(column, where)
    if types.is_integer(column.type):
        return integer_ids(_flat(column), where)
    if (name := _kind_of_strings(column.type)) is not None:
        numbered = number_column(column, n_threads) if len(column) >= MANY_STRINGS else None
        if numbered is not None:
            return Strings(*numbered, name)
        return _texts_of(column.dictionary_encode(), name)  # one dictionary for all chunks
    advice = f"; {NOT_FLOATS}" if types.is_floating(column.type) else ""
    raise InputTypeError(f"{where} must hold integers or texts, found {column.type}{advice}")


class Labels(NamedTuple):
    """Labels of rows to group users by. A null says nothing of its user."""

    ids: Array | Strings  # of the rows that have one
    valid: Array | None  # whether a row has one; None where all do

    def spread(self, codes: Array) -> Array:
        """What stands for the labels, in the rows that these stand in; anything in the others."""
        if self.valid is None:
            return codes
        spread = np.zeros(len(self.valid), codes.dtype)
        spread[self.valid] = codes
        return spread


def read_labels(column: Column, where: str, n_threads: int = 1) -> Labels:
    """Labels as integers or texts; booleans and dates as texts, as a file has them."""
    import pyarrow as pa
    from pyarrow import types

    null = _find_nulls(column)
    if null.any():
        column = _without_views(column).filter(pa.array(~null))
    if types.is_dictionary(column.type) and _kind_of_strings(column.type.value_type) is None:
        column = column.cast(column.type.value_type)
    ids = read_ids(_labels_as_strings(column, where), where, n_threads)
    return Labels(ids, ~null if null.any() else None)


def _labels_as_strings(column: Column, where: str) -> Column:
    """Booleans and dates as texts; integers and texts as they are."""
    import pyarrow as pa
    from pyarrow import compute, types

    kind = column.type
    if types.is_boolean(kind):
        return compute.if_else(column, "True", "False")
    if types.is_date(kind):
        return column.cast(pa.string())
    if types.is_timestamp(kind) and kind.tz is None:  # without the zeros that a unit smaller than needed makes
        strings = compute.replace_substring_regex(column.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return compute.replace_substring_regex(strings, r"\.$", "")
    if types.is_dictionary(kind) or types.is_null(kind) or types.is_integer(kind) or _kind_of_strings(kind) is not None:
        return column
    raise InputTypeError(f"{where} holds {kind}; {WANTED_LABELS}")


def _texts_of(column: Column, kind: str) -> Strings:
    """Strings of a column whose chunks share one dictionary."""
    codes = _join([values_of(chunk.indices) for chunk in column.chunks if len(chunk)], np.int32)
    values = column.chunk(0).dictionary
    if codes.dtype == np.uint32 and len(values) <= MAX_CODES:
        codes = codes.view(np.int32)
    return Strings(integer_ids(codes, "codes"), values, kind)


def _read_dictionary(column: Column, where: str) -> Array | Strings:
    """A column that is encoded already: categories of pandas and Polars, or as a file had it."""
    from pyarrow import types

    name = _kind_of_strings(column.type.value_type)
    if name is None and not types.is_integer(column.type.value_type):
        raise InputTypeError(f"{where} must hold integers or texts, found categories of {column.type.value_type}")
    column = _without_views(column)
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if any(chunk.dictionary.null_count for chunk in chunks):  # that no row has, or it was refused
        return read_ids(column.cast(column.type.value_type), where)
    if name is None:
        parts = [values_of(chunk.dictionary)[values_of(chunk.indices)] for chunk in chunks]
        return integer_ids(_join(parts, np.int64), where)
    return _texts_of(column.unify_dictionaries(), name)


def _kind_of_strings(kind: Any) -> str | None:
    """What Python has for values of an Arrow type: texts, bytes, or neither."""
    from pyarrow import types

    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "texts"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "bytes"
    return None


def _without_views(column: Column) -> Column:
    """A column of texts, encoded or not, of a form that all of PyArrow works on."""
    import pyarrow as pa
    from pyarrow import types

    encoded = types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if not (types.is_string_view(kind) or types.is_binary_view(kind)):
        return column
    wide = pa.large_string() if types.is_string_view(kind) else pa.large_binary()
    if not encoded:
        return column.cast(wide)
    parts = [pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(wide)) for chunk in column.chunks]
    return pa.chunked_array(parts, pa.dictionary(column.type.index_type, wide))


def _flat(column: Column) -> Array:
    """A column of fixed width as an array; booleans are unpacked."""
    return _join([values_of(chunk) for chunk in column.chunks if len(chunk)], np.int64)


def read_numbers(column: Column, where: str) -> Array:
    """A column of integers, floats or booleans."""
    from pyarrow import types

    encoded = types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    if not len(column):
        return np.zeros(0)
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InputTypeError(f"{where} must hold numbers, found {kind}")
    return _flat(column.cast(kind) if encoded else column)


def is_numeric(column: Column) -> bool:
    """Whether a column holds integers or floats."""
    from pyarrow import types

    return bool(types.is_integer(column.type) or types.is_floating(column.type))


def list_column(column: Column) -> bool:
    """Whether each row holds a list."""
    from pyarrow import types

    checks = (
        types.is_list,
        types.is_large_list,
        types.is_fixed_size_list,
        types.is_list_view,
        types.is_large_list_view,
    )
    return any(check(column.type) for check in checks)


def split_lists(column: Column, where: str) -> tuple[Column, Array]:
    """The values of all lists end to end, and the pointers into them; neither lists nor values may be null."""
    import pyarrow as pa

    _check_column(column, where)
    parts, lengths = [], [np.zeros(1, np.int64)]
    for chunk in column.chunks:
        values, offsets = _values_of(chunk)
        parts.append(values)
        lengths.append(np.diff(offsets))
    flat = pa.chunked_array(parts, column.type.value_type)
    indptr = np.cumsum(np.concatenate(lengths), dtype=np.int64)
    if (null := _find_nulls(flat)).any():
        row = int(np.searchsorted(indptr, int(null.argmax()), side="right")) - 1
        raise InputError(f"{where} must not hold nulls, found null in the list of row {row}, counted from 0")
    return flat, indptr


def check_same_lengths(indptr: Array, wanted: Array, where: str) -> None:
    """An error if lists are not as long as those of the items."""
    if len(indptr) == len(wanted) and np.array_equal(indptr, wanted):
        return
    if len(indptr) != len(wanted):
        raise InputError(f"{where} has {len(indptr) - 1} rows, but there are items in {len(wanted) - 1}")
    wrong = np.diff(indptr) != np.diff(wanted)
    at = int(wrong.argmax())
    found, of = np.diff(indptr)[at], np.diff(wanted)[at]
    raise InputError(f"{where} must hold one value per item, but row {at}, counted from 0, has {found} for {of} items")


def _values_of(chunk: Any) -> tuple[Any, Array]:
    """The values that the lists of a chunk hold, and where each list begins among all values."""
    from pyarrow import types

    if types.is_list_view(chunk.type) or types.is_large_list_view(chunk.type):
        # lists in any order, which PyArrow's own cast gets wrong
        return chunk.flatten(), np.concatenate([[0], np.cumsum(values_of(chunk.sizes), dtype=np.int64)])
    if types.is_fixed_size_list(chunk.type):
        width = chunk.type.list_size
        offsets = (np.arange(len(chunk) + 1, dtype=np.int64) + chunk.offset) * width
    else:
        offsets = values_of(chunk.offsets)
    first = int(offsets[0])
    return chunk.values.slice(first, int(offsets[-1]) - first), offsets

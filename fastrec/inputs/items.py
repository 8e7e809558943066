"""The table of items: one row per item, with columns of numbers, categories or vectors that metrics ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import near_name, refuse_path, with_article
from fastrec.exceptions import FastrecError, InputError, InputTypeError, Name, Place, RowNumber, Text, renaming, shown
from fastrec.inputs.arrow import (
    Frame,
    chunked,
    index_of,
    is_column,
    is_numeric,
    is_other_order,
    list_column,
    open_foreign,
    read_ids,
    read_numbers,
    refuse_other_indexes,
    split_lists,
)
from fastrec.inputs.columns import check_numbers_of_items
from fastrec.inputs.ids import Ids, check_ids
from fastrec.inputs.ragged import check_indptr
from fastrec.inputs.tensors import refuse_unusual
from fastrec.inputs.values import find_nulls

Array = np.ndarray[Any, Any]
USUAL_CATEGORY = "category"
FOR_CATEGORIES = "; for categories, intra_list_diversity takes distance=jaccard"
ITEM_ID = "item_id"
MAX_WHOLE = 2.0**53  # floats below are exact integers
FORMS = f"a data frame or a dict of columns with {ITEM_ID!r}, or a dict {{item: {{column: value}}}}"


class Categories(NamedTuple):
    """The categories of each item: one or several."""

    codes: Array  # int64, end to end; ascending for each item, as the order of a set differs between processes
    indptr: Array  # int64 (n_items + 1,)
    names: list[Any]  # of the codes


class Vectors(NamedTuple):
    """The vector of each item."""

    matrix: Any  # float64 (n_items, n), or a CSR matrix; zeros for items without a vector
    known: Array  # bool (n_items,)


class ItemTable(NamedTuple):
    """Items and their columns. A metric reads a column as numbers, categories or vectors.

    `codes` are the items in the numbering of the lists, once lists are read.
    """

    ids: Ids
    columns: Mapping[str, Any]  # the error instead of a column that cannot be read
    codes: Array | None = None
    item: str | None = None  # the column of the ids

    def numbers(self, column: str) -> Array:
        """Return a column of numbers, float64 (n_items,); NaN for items without one."""
        where, value = self._read(column)
        _refuse_sparse(value, where, "one number per item")
        known = _known(value)
        values: Any = value[known] if _is_plain(value) else None
        if is_column(value):
            values = read_numbers(value.filter(_arrow(known)), where)
            missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
            known[known], values = ~missing, values[~missing]
        elif values is None:
            values = list(compress(value, known.tolist()))
        found, rows = np.full(len(known), np.nan), np.flatnonzero(known)
        found[known] = _check_flat(values, len(rows), where, rows, np.arange(1, len(rows) + 1))
        return found

    def categories(self, column: str, sep: str | None = None) -> Categories:
        """Return a column with one category per item, with lists of them, or with strings that `sep` separates."""
        where, value = self._read(column)
        _refuse_sparse(value, where, "categories")
        _refuse_padding(value, where)
        if sep is None and _is_plain(value) and value.dtype.kind in "iuU" and value.ndim == 1:
            kinds, codes = np.unique(value, return_inverse=True)
            _refuse_written_lists(kinds.tolist(), where)
            return Categories(codes, np.arange(len(codes) + 1), kinds.tolist())
        rows = value.to_pylist() if is_column(value) else value.tolist() if isinstance(value, np.ndarray) else value
        _refuse_written_lists(rows, where)
        labels: list[Any] = []
        indptr = [0]
        one_hot = isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] > 1  # or a row has copies
        for row, is_known in zip(rows, _known(value).tolist(), strict=True):
            several = isinstance(row, list | tuple | set | frozenset | np.ndarray)
            own = [] if not is_known else list(row) if several else [row]
            if sep is not None:
                own = [label for one in own for label in _separated(one, sep, where)]
            own = [label.item() if isinstance(label, np.generic) else label for label in own]
            own = [int(label) if _is_whole_float(label) else label for label in own]
            unusable = [label for label in own if isinstance(label, bool) or not isinstance(label, str | int)]
            if unusable:
                raise InputTypeError(where, f" must hold categories, strings or integers, found {shown(unusable[0])}")
            distinct = dict.fromkeys(own)
            one_hot = one_hot or len(distinct) < len(own)
            labels += distinct
            indptr.append(len(labels))
        if len({isinstance(label, str) for label in labels}) > 1:
            raise InputTypeError(where, " must hold all strings or all integers, found both")
        names = sorted(set(labels))
        if one_hot and set(names) <= {0, 1}:
            found = "found rows of 0 and 1, as in one-hot columns"
            raise InputError(where, f" must hold the categories of each item, {found}: pass the names of the columns")
        place = {label: code for code, label in enumerate(names)}
        codes = np.fromiter(map(place.__getitem__, labels), np.int64, len(labels))
        ends = np.array(indptr)
        order = np.lexsort((codes, np.repeat(np.arange(len(ends) - 1), np.diff(ends))))
        return Categories(codes[order], ends, names)

    def vectors(self, column: str) -> Vectors:
        """Return a column of vectors of one length, dense or in a CSR matrix."""
        where, value = self._read(column)
        if _is_sparse(value):
            return Vectors(_read_sparse(value, where), np.ones(len(self.ids), bool))
        if _is_plain(value) and value.ndim == 2:
            every = np.arange(len(value))
            matrix = _check_flat(value.reshape(-1), value.size, where, every, (every + 1) * value.shape[1])
            return Vectors(_check_finite(matrix.reshape(value.shape), where), np.ones(len(value), bool))
        known = _known(value)
        if is_column(value):
            if not list_column(value):
                raise InputError(where, f" must hold one vector per item, found {value.type}{FOR_CATEGORIES}")
            flat, indptr = split_lists(value.filter(_arrow(known)), where)
            rows, lengths = read_numbers(flat, where), np.diff(indptr)
        else:
            parts = [np.asarray(row) for row in compress(value, known.tolist())]
            if any(part.ndim != 1 for part in parts):
                raise InputError(where, f" must hold one vector per item, found {shown(value[0])}{FOR_CATEGORIES}")
            wrong = next((part for part in parts if part.dtype.kind not in "iufb"), None)
            if wrong is not None:
                raise InputTypeError(where, f" must hold vectors of numbers, found {shown(wrong.tolist())}")
            rows = np.concatenate(parts) if parts else np.zeros(0)
            lengths = np.array([part.size for part in parts])
        if len(set(lengths.tolist())) > 1:
            raise InputError(where, f" must hold vectors of one length, found {lengths.min()} and {lengths.max()}")
        numbers = _check_finite(_check_flat(rows, len(rows), where, np.flatnonzero(known), np.cumsum(lengths)), where)
        matrix = np.zeros((len(known), int(lengths.max(initial=0))))
        matrix[known] = numbers.reshape(len(lengths), -1) if len(lengths) else 0.0
        return Vectors(matrix, known)

    def columns_like(self, column: str) -> str:
        """Return what to say about a missing column: a similar one, else all columns."""
        near = near_name(column, list(self.columns))
        return f"did you mean {near!r}?" if near else f"columns: {', '.join(self.columns) or 'none'}"

    def _read(self, column: str) -> tuple[Text, Any]:
        """Return a column, and its name in errors."""
        where = Text(Place("items", column))
        if column not in self.columns:
            how = "name one, as in miscalibration(column=genre)@10; " if column == USUAL_CATEGORY else ""
            raise InputError(Place("items"), f" has no column {column!r}; {how}{self.columns_like(column)}")
        value = chunked(self.columns[column])
        if isinstance(value, FastrecError):
            raise value
        if isinstance(value, Iterator):
            raise InputTypeError(where, f" must be a list or an array, found {with_article(type(value).__name__)}")
        if hasattr(value, "columns"):
            raise InputTypeError(where, " must be a list or an array, found a data frame: pass its to_numpy()")
        refuse_unusual(value, where)
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.dtype == object):
            for row in {type(row): row for row in value}.values():
                refuse_unusual(row, where)
        is_other = isinstance(value, str | bytes | Mapping | AbstractSet) or not hasattr(value, "__len__")
        if is_other and not _is_sparse(value):
            raise InputTypeError(where, f" must be a list or an array, found {shown(value)}")
        if getattr(value, "ndim", 1) == 0:
            raise InputTypeError(where, f" must be a list or an array, found one value, {shown(value)}")
        n = value.shape[0] if hasattr(value, "shape") else len(value)
        if n != len(self.ids):
            raise InputError(where, f" must have one value per item, {len(self.ids)}; found {n}")
        return where, value


def _is_plain(value: Any) -> bool:
    """Return whether a column is an array of numbers or strings, and not of Python's objects."""
    return isinstance(value, np.ndarray) and value.dtype != object


def _is_sparse(value: Any) -> bool:
    """Return whether a column is a sparse matrix or array of SciPy."""
    return hasattr(value, "tocsr")


def _refuse_sparse(value: Any, where: str, wanted: str) -> None:
    if _is_sparse(value):
        raise InputTypeError(where, f" must hold {wanted}, found a sparse matrix")


def _refuse_padding(value: Any, where: str) -> None:
    """Reject negative numbers in a 2-D array: they may be categories, or the padding of rows."""
    if _is_plain(value) and value.ndim == 2 and value.dtype.kind in "if" and (value < 0).any():
        found = f"found {value[value < 0][0]}: if it pads short rows, pass lists of the categories"
        raise InputError(where, " must hold categories from 0 in a 2-D array, ", found)


def _refuse_written_lists(rows: Any, where: str) -> None:
    """Reject lists that were written as text, as pandas writes them to CSV: each spelling would be one category."""
    strings = [row for row in rows if isinstance(row, str)]
    if strings and all(row[:1] + row[-1:] in ("[]", "{}") for row in strings):
        mend = "save them as Parquet or JSON lines, or as text with a separator and the option sep"
        raise InputError(where, f" holds lists written as text, such as {shown(strings[0])}: {mend}")


def _read_sparse(value: Any, where: str) -> Any:
    """Return a sparse matrix in CSR form, with each cell once and columns in ascending order.

    SciPy reads a cell that is stored twice as the sum. The matrix of the caller stays as it is.
    """
    if len(value.shape) != 2:
        raise InputError(where, f" must hold one vector per item, found a sparse array of shape {value.shape}")
    matrix = value.tocsr()
    columns = matrix.indices
    indptr = check_indptr(matrix.indptr, len(columns), f"{where}.indptr")
    outside = (columns < 0) | (columns >= matrix.shape[1])
    if outside.any():
        found = f"found {columns[outside][0]}"
        raise InputError(where, f".indices must be columns of the matrix, from 0 to {matrix.shape[1] - 1}, {found}")
    numbers = _check_flat(matrix.data, len(columns), where, np.arange(matrix.shape[0]), indptr[1:])
    inside = np.ones(len(columns), bool)
    inside[indptr[:-1][np.diff(indptr) > 0]] = False  # the first of each row follows none
    if (inside[1:] & (columns[1:] <= columns[:-1])).any():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        numbers = _check_flat(matrix.data, len(matrix.data), where, np.arange(matrix.shape[0]), matrix.indptr[1:])
    _check_finite(numbers, where)
    return matrix


def _known(value: Any) -> Array:
    """Return which rows of a column have a value: None, NaN and the NA of pandas are none."""
    if is_column(value):
        null = find_nulls(value)
        known = ~null if len(null) else np.ones(len(value), bool)
        if is_numeric(value):
            known[known] = ~np.isnan(read_numbers(value.filter(_arrow(known)), ""))
        return known
    if _is_plain(value):
        missing = np.isnan(value) if value.dtype.kind == "f" and value.ndim == 1 else np.zeros(len(value), bool)
        return ~missing
    return np.array([not _is_missing(row) for row in value], bool)


def _is_missing(row: Any) -> bool:
    return row is None or (isinstance(row, float) and math.isnan(row)) or type(row).__name__ == "NAType"


def _arrow(mask: Array) -> Any:
    import pyarrow as pa

    return pa.array(mask)


def _is_whole_float(label: Any) -> bool:
    """Return whether a label is a float that pandas made of an integer, because another item has none."""
    return isinstance(label, float) and label.is_integer() and abs(label) < MAX_WHOLE


def _separated(label: Any, sep: str, where: str) -> list[str]:
    if not isinstance(label, str):
        raise InputTypeError(where, f" must hold strings with sep={sep}, found {shown(label)}")
    return [part for part in label.split(sep) if part]


def _check_flat(flat: Any, n: int, where: str, rows: Array, ends: Array) -> Array:
    """Return the n numbers of a column, end to end; errors name one of `rows`, whose numbers end before `ends`."""

    def at_row(name: Name) -> Name:
        if not isinstance(name, RowNumber):
            return name
        return RowNumber.at(int(rows[np.searchsorted(ends, name.position, side="right")]), "position")

    with renaming(at_row):
        return check_numbers_of_items(flat, n, where)


def _check_finite(numbers: Array, where: str) -> Array:
    if not np.isfinite(numbers).all():
        raise InputError(where, f" must hold finite numbers, found {numbers[~np.isfinite(numbers)][0]}")
    return numbers


def read_once(value: Any, name: str) -> Any:
    """Return a side that several batches read: a stream of Arrow, which can be read once, becomes a frame."""
    is_stream = hasattr(value, "__arrow_c_stream__") and not hasattr(value, "columns")
    return open_foreign(value, name) if is_stream and index_of(value) is None else value


def read_items(value: Any, item: str | None = None) -> ItemTable:
    """Return the table in any of its forms; `item` names the column of ids. Items must be distinct."""
    if isinstance(value, ItemTable):
        return value
    refuse_path("items", value)
    name = ITEM_ID if item is None else item
    opened = open_foreign(value, "items")
    if isinstance(opened, Frame):
        table = _read_frame(opened, name if opened.has(name) else ITEM_ID)
    elif isinstance(value, Mapping):
        known = name if name in value else ITEM_ID
        table = _read_columns(value, known) if known in value else _read_rows(value, name)
    else:
        raise InputTypeError(f"items must be {FORMS}; found {with_article(type(value).__name__)}")
    if not len(table.ids):
        raise InputError("items must have at least one row, found none")
    _refuse_copies(table.ids, Text(Place("items", table.item)))
    return table


def _read_frame(frame: Frame, item: str) -> ItemTable:
    ids = read_ids(frame.read(item), frame.where(item))
    others = [name for name in frame.columns if name != item]
    return ItemTable(ids, {name: _column(frame, name) for name in others}, item=item)


def _column(frame: Frame, name: str) -> Any:
    try:
        return frame.read(name, nulls=True)
    except FastrecError as error:
        return error


def _read_columns(columns: Mapping[Any, Any], item: str) -> ItemTable:
    if isinstance(columns[item], Mapping | AbstractSet):
        raise InputTypeError(f"items column {item!r} must be a list or an array, found {shown(columns[item])}")
    ids = check_ids(columns[item], f"items column {item!r}").copy()
    _refuse_other_indexes(columns, item, ids.tolist())
    return ItemTable(ids, {str(name): own for name, own in columns.items() if name != item}, item=item)


def _refuse_other_indexes(columns: Mapping[Any, Any], item: str, ids: list[Any]) -> None:
    """Reject Series whose index holds the items in another order than the ids, or is not that of the ids' Series."""
    own, apart = index_of(columns[item]), {f"items[{item!r}]": columns[item]}
    for name, column in columns.items():
        index = index_of(column)
        if index is None or (own is not None and index.equals(own)) or index.tolist() == ids:
            continue
        if is_other_order(index, ids):
            found = f"items[{name!r}] has an index with the items in another order, but columns are matched by position"
            mend = f"pass items[{name!r}].loc[items[{item!r}]], or, if it is in their order, items[{name!r}].to_numpy()"
            raise InputError(f"{found}: {mend}")
        apart[f"items[{name!r}]"] = column
    refuse_other_indexes(apart)


def _read_rows(rows: Mapping[Any, Any], item: str) -> ItemTable:
    wrong = next((row for row in rows.values() if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise InputTypeError(f"items must be {FORMS}; found a row that is {shown(wrong)}")
    ids, names = check_ids(list(rows), "items"), dict.fromkeys(name for row in rows.values() for name in row)
    column = item if item in names else ITEM_ID
    apart = next((key for key, row in rows.items() if not _is_id(row.get(column, key), key)), None)
    if apart is not None:
        found = f"the key {shown(apart)} for a row whose {column!r} is {shown(rows[apart][column])}"
        raise InputError(f"items has {found}, but keys must be the items: pass a data frame, or a dict by item")
    columns = {str(name): [row.get(name) for row in rows.values()] for name in names}
    return ItemTable(ids, columns, item=column if column in names else None)


def _is_id(value: Any, item: Any) -> bool:
    return isinstance(value, str | bytes | int | np.integer) and bool(value == item)


def _refuse_copies(ids: Ids, where: Text) -> None:
    values = ids if isinstance(ids, np.ndarray) else ids.codes
    distinct, first = np.unique(values, return_index=True)
    if len(distinct) < len(values):
        at = int(np.setdiff1d(np.arange(len(values)), first)[0])
        spelled = int(values[at]) if isinstance(ids, np.ndarray) else ids.values[int(values[at])].as_py()
        raise InputError(where, f" must have each item once, found {shown(spelled)} again", RowNumber.at(at))

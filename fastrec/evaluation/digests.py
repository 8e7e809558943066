"""Digests of the sides that all parts of an evaluation share: the table of items, and the counts of the history.

Merging compares them. They do not depend on the order of rows. The ids of items have one type in all parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.exceptions import Argument, FastrecError, InputError, InputTypeError, Place, Text
from fastrec.inputs.ids import Ids, kind_of_ids, spell
from fastrec.inputs.items import ItemTable
from fastrec.inputs.ragged import chosen_rows

if TYPE_CHECKING:
    from fastrec.items.history import HistoryCounts

Array = np.ndarray[Any, Any]
HISTORY, N_USERS, EXAMINATION, COLUMN = "history", "n_users", "examination", "items column "
BYTES = 16  # of a digest
STRINGS, BYTES_AS_IDS = "having strings as item ids", "having bytes as item ids"  # strings or bytes; bytes


class ReadColumns(dict[str, Any]):
    """The columns of a table of items. It notes in `used` which of them are read."""

    def __init__(self, columns: Mapping[str, Any], used: set[str]) -> None:
        super().__init__(columns)
        self._used = used

    def __getitem__(self, column: str) -> Any:
        self._used.add(f"{COLUMN}{column}")
        return super().__getitem__(column)


def check_same(mine: Mapping[str, str], theirs: Mapping[str, str], *, whole: bool) -> None:
    """Raise InputError if two parts of an evaluation read other sides. `whole`: both have read all that they need."""
    for name, own in mine.items():
        if own == theirs.get(name, own):
            continue
        if name == N_USERS:
            raise InputError("merge needs equal ", Argument(name), f", found {own} here and {theirs[name]} there")
        raise InputError("merge needs the same ", _spoken(name), " on both sides, found different ones")
    if whole and mine and theirs and (apart := sorted(mine.keys() ^ theirs.keys())):
        where = "here" if apart[0] in mine else "there"
        raise InputError(
            "merge needs metrics to read the same on both sides, but only those ", where, " read ", _spoken(apart[0])
        )


def check_type_of_ids(before: Mapping[str, bool], strings: Sequence[Any] | None) -> dict[str, bool]:
    """Return the type of the ids of items of a batch, which `strings` spell; raise if that of other batches differs.

    Evaluators of the first versions do not tell strings from bytes.
    """
    found = {STRINGS: strings is not None, BYTES_AS_IDS: strings is not None and isinstance(strings[0], bytes)}
    if any(before.get(name, own) != own for name, own in found.items()):
        kinds = f"found {_name_of_type(found)} after {_name_of_type(before)}"
        raise InputTypeError(f"item ids must be of one type in all batches, {kinds}")
    return found


def _name_of_type(found: Mapping[str, bool]) -> str:
    return "bytes" if found.get(BYTES_AS_IDS) else "strings" if found.get(STRINGS) else "integers"


def _spoken(name: str) -> Text:
    return Text(Place("items", name.removeprefix(COLUMN)) if name.startswith(COLUMN) else Place(name))


def digest_of_counts(counts: HistoryCounts) -> str:
    """Return a digest of the users and rows of each item of a history."""
    order, ids = _in_order(counts.ids)
    sizes = np.array([counts.n_users, counts.n_rows], np.int64)
    return _digest([*ids, *(own[order].astype(np.int64) for own in (counts.users, counts.rows)), sizes])


def digest_of_column(table: ItemTable, column: str) -> str:
    """Return a digest of a column, with the ids of its items: of its numbers, else its vectors, else its categories."""
    order, ids = _in_order(table.ids)
    is_sparse = getattr(table.columns[column], "format", None) == "csr"
    for values_of in (_vectors,) if is_sparse else (_numbers, _vectors, _categories):
        try:
            return _digest([*ids, *values_of(table, column, order)])
        except (FastrecError, NotImplementedError):  # pyarrow raises the second for some columns of strings
            continue
    return ""


def digest_of_curve(curve: Array) -> str:
    """Return a digest of the examination of ranks."""
    return _digest([np.where(np.isnan(curve), np.nan, curve)])


def _numbers(table: ItemTable, column: str, order: Array) -> Iterable[Array]:
    return [table.numbers(column)[order] + 0.0]  # -0.0 becomes 0.0


def _vectors(table: ItemTable, column: str, order: Array) -> Iterable[Array]:
    matrix, known = table.vectors(column)
    if isinstance(matrix, np.ndarray):
        return [known[order], matrix[order] + 0.0]
    rows = matrix[order].sorted_indices()
    return [rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data + 0.0]


def _categories(table: ItemTable, column: str, order: Array) -> Iterable[Array]:
    codes, indptr, names = table.categories(column)
    at, ends = chosen_rows(indptr, order)
    return [*_of_strings(list(map(repr, names))), ends, codes[at].astype(np.int64)]


def _in_order(ids: Ids) -> tuple[Array, list[Array]]:
    """Return the order of items by id, and arrays that hold the ids in this order."""
    kind = kind_of_ids(ids)
    if isinstance(ids, np.ndarray) and kind in ("none", "integers"):
        order = np.argsort(ids, kind="stable")
        return order, [ids[order].astype(np.int64)]
    listed = ids.tolist() if isinstance(ids, np.ndarray) else spell(ids.values.to_pylist(), ids.codes)
    order = np.array(sorted(range(len(listed)), key=listed.__getitem__), np.int64)
    return order, _of_strings([str(listed[at]) for at in order.tolist()])


def _of_strings(strings: list[str]) -> list[Array]:
    """Return the lengths of strings, and all their characters."""
    joined = "".join(strings).encode("utf-8", "surrogatepass")
    return [np.array(list(map(len, strings)), np.int64), np.frombuffer(joined, np.uint8)]


def _digest(arrays: Iterable[Array]) -> str:
    found = hashlib.blake2b(digest_size=BYTES)
    for array in arrays:
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()

"""Labels of rows that put them into segments, whatever their users: a position, a device, a category."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, InputError, InputTypeError, shown
from fastrec.inputs.arrow import Labels
from fastrec.inputs.grouping import Grouping, number_close
from fastrec.inputs.ids import Ids, Strings, encode_strings, kind_of_ids
from fastrec.inputs.strings import MANY_STRINGS, number_fixed
from fastrec.inputs.users import check_labels_of, spelled_labels

Array = np.ndarray[Any, Any]
MAX_SEGMENTS = 100_000  # of one grouping: each has sums, score counts and estimates of its own
NO_SEGMENT = -1
NULLS = (("isna", "dropna"), ("is_null", "drop_nulls"))  # of pandas and Polars


class RowGroups(NamedTuple):
    """The segments of the rows of one grouping."""

    name: str
    codes: Array  # int32 (n_rows,): positions in `labels`, NO_SEGMENT for rows without a label
    labels: list[str | int]  # ascending

    @property
    def keys(self) -> list[tuple[str, str | int]]:
        """The (grouping, label) of each code."""
        return [(self.name, label) for label in self.labels]

    @property
    def n_labelled(self) -> int:
        """The number of rows with a label."""
        return int(np.count_nonzero(self.codes != NO_SEGMENT))

    def taken_by(self, grouping: Grouping) -> RowGroups:
        """Return the segments of rows in the order of users."""
        return self._replace(codes=grouping.take(self.codes))


def read_row_groups(row_groups: Any, n_rows: int, n_threads: int = 1) -> tuple[RowGroups, ...]:
    """Read one label per row, or a dict of them by name; None and missing values of other libraries are no labels."""
    if row_groups is None:
        return ()
    is_named = isinstance(row_groups, Mapping)
    named = row_groups if is_named else {"row_group": row_groups}
    found = []
    for name, labels in named.items():
        if not isinstance(name, str):
            raise InputTypeError(f"the names of row_groups must be strings, found {shown(name)}")
        where = f"row_groups[{name!r}]" if is_named else "row_groups"
        read = labels if isinstance(labels, Labels) else _read(labels, where, n_rows)
        codes, own = _number(read.ids, where, n_threads)
        codes = codes if read.valid is None else _spread(codes, read.valid)
        if len(codes) != n_rows:
            raise InputError(where, f" must have one label per row, {n_rows}; found {len(codes)}")
        refuse_many(read.where, len(own))
        found.append(RowGroups(name, codes, own))
    return tuple(found)


def refuse_many(where: str, n: int) -> None:
    """Raise InputError for more segments than MAX_SEGMENTS."""
    if n > MAX_SEGMENTS:
        raise InputError(
            where,
            f" has {n:,} distinct labels, at most {MAX_SEGMENTS:,} are segments of rows: cut numbers into ranges, or "
            "join rare labels",
        )


def check_apart(of_users: Iterable[str], of_rows: Iterable[str]) -> None:
    """Raise InputError for a name of both a grouping of users and one of rows."""
    if both := sorted(set(of_users) & set(of_rows)):
        raise InputError(
            f"{shown(both[0])} names groups of users and segments of rows: pass it as one of ",
            Argument("by"),
            " and ",
            Argument("row_by"),
            ", or rename one",
        )


def _read(labels: Any, where: str, n_rows: int) -> Labels:
    """Return an array of labels as integers or strings, without those that are missing."""
    if isinstance(labels, Iterable) and not hasattr(labels, "__array__") and not hasattr(labels, "__len__"):
        labels = list(labels)
    missing, present = _without_nulls(labels)
    if not missing.any():
        return Labels(check_labels_of(labels, where, n_rows, "row"), None, where)
    n_present = len(missing) - int(missing.sum())
    return Labels(check_labels_of(present, where, n_present, "row"), ~missing, where)


def _without_nulls(labels: Any) -> tuple[Array, Any]:
    """Return which labels are missing, and the others."""
    for ask, drop in NULLS:
        if hasattr(labels, ask) and hasattr(labels, drop):
            missing = np.asarray(getattr(labels, ask)(), bool)
            if missing.ndim != 1:  # a table, whose shape is the error
                return np.zeros(0, bool), labels
            return missing, getattr(labels, drop)() if missing.any() else labels
    if hasattr(labels, "to_pylist") and labels.null_count:  # PyArrow, which cannot drop the nulls of every type
        labels = labels.to_pylist()
    is_plain = isinstance(labels, list | tuple) or (isinstance(labels, np.ndarray) and labels.dtype == object)
    if not is_plain or (isinstance(labels, np.ndarray) and labels.ndim != 1):
        return np.zeros(0, bool), labels
    missing = np.fromiter((label is None for label in labels), bool, len(labels))
    present = [label for label in labels if label is not None]
    return missing, np.fromiter(present, object, len(present))


def _number(labels: Ids, where: str, n_threads: int) -> tuple[Array, list[Any]]:
    """Return the code of each label, and the distinct labels."""
    if isinstance(labels, Strings) or labels.dtype == object:
        if kind_of_ids(labels) == "bytes":
            raise InputTypeError(f"the labels of {where} must be all integers or all strings, found bytes")
        (codes,), strings = encode_strings([labels])
        codes, used = _number_integers(codes, n_threads)
        return codes, spelled_labels(strings, np.array(used, np.int64)).tolist()
    if labels.dtype.kind == "U" and len(labels) >= MANY_STRINGS:
        codes, distinct = number_fixed(labels)
        order = np.argsort(distinct, kind="stable")
        return np.argsort(order).astype(np.int32)[codes], distinct[order].tolist()
    return _number_integers(labels, n_threads) if labels.dtype.kind in "iu" else _number_few(labels)


def _number_few(labels: Array) -> tuple[Array, list[str | int]]:
    distinct, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int32), distinct.tolist()


def _number_integers(labels: Array, n_threads: int) -> tuple[Array, list[Any]]:
    """Return the code of each integer: its distance from the lowest if they are close together, else by sorting."""
    if not len(labels):
        return np.zeros(0, np.int32), []
    lowest, highest = int(labels.min()), int(labels.max())
    if highest - lowest >= max(len(labels), MAX_SEGMENTS):
        return _number_few(labels)
    codes, counts = number_close(labels, lowest, highest - lowest + 1, n_threads)
    used = np.flatnonzero(counts)
    if len(used) < len(counts):
        codes = (np.cumsum(counts > 0, dtype=np.int32) - np.int32(1)).take(codes)
    return codes, [lowest + code for code in used.tolist()]


def _spread(codes: Array, valid: Array) -> Array:
    spread = np.full(len(valid), NO_SEGMENT, np.int32)
    spread[valid] = codes
    return spread

"""Item ids: integers as they are, anything else encoded jointly and exactly, never as floats or hashes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from fastrec.checks import is_whole, listed, with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, RowNumber, Text, joined, shown
from fastrec.inputs.ragged import as_array
from fastrec.inputs.strings import strings_of
from fastrec.inputs.tensors import is_tensor, plain_values, refuse_unusual
from fastrec.inputs.values import arrow_of, call_arrow, values_of

Array = np.ndarray[Any, Any]
MAX_ASCII = 127
MAX_WIDTH = 4  # times the mean length: a wider array is mostly padding
INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


@dataclass(frozen=True)
class Strings:
    """Ids of Arrow columns: codes into distinct strings, which are in no order and may be unused."""

    codes: Array  # int32 or int64 (n,)
    values: Any  # a pyarrow Array of strings or binaries
    kind: str  # "strings" or "bytes"

    def __len__(self) -> int:
        return len(self.codes)

    def having(self, codes: Array) -> Strings:
        """Return other codes of the same strings."""
        return replace(self, codes=codes)


Ids = Array | Strings  # int32, int64, objects (str or bytes), or strings of Arrow columns

SPELL_ALIKE = ": write all as integers, or all as strings"


class Spelled(Sequence[Any]):
    """Values of an Arrow array as Python objects, made on demand."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, at: Any) -> Any:
        return self._values[int(at)].as_py()

    def pick(self, codes: Array) -> list[Any]:
        """Return the values of many codes."""
        picked: list[Any] = call_arrow("take", self._values, arrow_of(codes)).to_pylist()
        return picked

    def end_to_end(self) -> tuple[Array, Array]:
        """Return the offsets of all values, and their bytes."""
        return strings_of(self._values)

    def pick_plain(self, codes: Array) -> Array | None:
        """Return the values of many codes as NumPy's strings; None if some are not ASCII, or much longer than most."""
        from pyarrow import types

        if not types.is_large_string(self._values.type):
            return None
        picked = strings_of(call_arrow("take", self._values, arrow_of(codes)))
        lengths, data = np.diff(picked.offsets), picked.data[picked.offsets[0] : picked.offsets[-1]]
        width = int(lengths.max(initial=1))
        if not len(data) or data.min() == 0 or data.max() > MAX_ASCII or width * len(codes) > MAX_WIDTH * len(data):
            return None
        points = np.zeros((len(codes), width), np.uint32)
        points[np.arange(width) < lengths[:, None]] = data
        return points.view(f"U{width}").ravel()


def spell(strings: Sequence[Any], codes: Array) -> list[Any]:
    """Return the strings of some codes."""
    return strings.pick(codes) if isinstance(strings, Spelled) else [strings[code] for code in codes.tolist()]


def kind_of_ids(ids: Ids) -> str:
    """Return the kind of some ids: "none", "integers", "strings" or "bytes"."""
    if len(ids) == 0:
        return "none"
    if isinstance(ids, Strings):
        return ids.kind
    if ids.dtype != object:
        return "integers"
    return "bytes" if isinstance(ids[0], bytes) else "strings"


def are_integers(role: str, sides: Iterable[tuple[str, Ids]]) -> bool:
    """Return whether the ids of users or items are integers; raise an error unless all sides have ids of one kind."""
    kinds, distinct = [], set()
    for name, ids in sides:
        kinds.append((name, kind_of_ids(ids)))
        distinct.add(kinds[-1][1])
    if len(distinct - {"none"}) > 1:
        found = joined((Text(Argument(name), f": {kind}") for name, kind in dict(kinds).items()), ", ")
        raise InputTypeError(f"{role} ids must be of one type on all sides, found ", found, SPELL_ALIKE)
    return distinct <= {"none", "integers"}


def check_ids(values: Any, name: str) -> Array:
    """Return ids as a 1-D array: int32 or int64 (no copy if they are), or an object array of strings.

    Raises InputTypeError for floats, booleans, masked arrays, mixed types, sets and dicts, and InputError for integers
    past 2^63 - 1. The ids of a set or a dict belong to no position: the order of a set differs between runs.
    """
    array: Array = values
    if type(values) is not np.ndarray:
        refuse_unusual(values, name, "fill it or drop the masked ids first")
        array = as_objects(values, name, "a list or an array of ids, each at its position")
    if array.ndim != 1:
        raise InputError(name, f" must be 1-D, found shape {array.shape}")
    if array.dtype.kind in "iu":
        return integer_ids(array, name)
    if array.dtype.kind in "UST":
        return _strings(array.tolist(), name)
    if array.dtype == object:
        return _objects(array.tolist(), name)
    if array.dtype.kind == "f":
        if array.size == 0:
            return np.zeros(0, np.int64)
        raise InputTypeError(
            name,
            f" must be integers or strings, found {array.dtype}: floats cannot hold large ids; "
            "convert ids before they become floats, e.g. ids.astype('int64')",
        )
    raise InputTypeError(name, f" must be integers or strings, found dtype {array.dtype}")


def as_objects(values: Any, name: str, wanted: str, mend: tuple[str | Argument, ...] = ()) -> Array:
    """Return an array as it is, and another collection as objects, without NumPy's guesses about mixed types."""
    if hasattr(values, "__array__") or is_tensor(values):
        return as_array(values, name)
    if isinstance(values, str | bytes | set | frozenset | Mapping) or not isinstance(values, Iterable):
        found = f", found {with_article(type(values).__name__)}: {shown(values)}"
        raise InputTypeError(name, f" must be {wanted}{found}", *mend)
    rows = plain_values(listed(values, name), name)
    return np.fromiter(rows, object, len(rows))


def _objects(values: list[Any], name: str) -> Array:
    kinds = set(map(type, values))
    if all(map(is_whole, kinds)):
        return _python_integers(values, name)
    if kinds <= {str} or kinds <= {bytes} or kinds <= {np.str_, str}:
        return _strings(values, name)
    if kinds & {float, np.float64, np.float32, np.float16}:
        at = next(at for at, value in enumerate(values) if isinstance(value, float | np.floating))
        row = RowNumber.at(at, "position")
        raise InputTypeError(name, " must be integers or strings, found a float", row, f": {shown(values[at])}")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    pairs = name.endswith(" items") and all(isinstance(value, tuple) and len(value) == 2 for value in values)
    mend = ": pass pairs of items and numbers as a dict, {item: number}" if pairs else ""
    raise InputTypeError(name, f" must be all integers or all strings, found {names}{mend}")


def _python_integers(values: list[Any], name: str) -> Array:
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        at = next(i for i, value in enumerate(values) if not INT64.min <= value <= INT64.max)
        raise InputError(
            name, f" must not exceed 2**63 - 1, found {shown(values[at])}", RowNumber.at(at, "position")
        ) from None


def _strings(values: list[Any], name: str) -> Array:
    if not all(isinstance(value, (str, bytes)) for value in values):
        at = next(i for i, value in enumerate(values) if not isinstance(value, (str, bytes)))
        raise InputTypeError(name, f" must be all strings, found {shown(values[at])}", RowNumber.at(at, "position"))
    return np.fromiter(values, object, len(values))


def integer_ids(array: Array, name: str) -> Array:
    """Return integers of any width and byte order as contiguous int32 or int64; raise an error if some do not fit."""
    if array.dtype == np.uint64 and array.size and int(array.max()) > INT64.max:
        at = int(array.argmax())
        raise InputError(name, f" must not exceed 2**63 - 1, found {array[at]}", RowNumber.at(at, "position"))
    small = array.dtype.itemsize < 4 or (array.dtype.kind == "i" and array.dtype.itemsize == 4)
    return np.ascontiguousarray(array, dtype=np.int32 if small else np.int64)


def match_widths(first: Array, second: Array) -> tuple[Array, Array]:
    """Return both integer arrays in one width; convert the shorter one if its values allow it."""
    if first.dtype == second.dtype:
        return first, second
    wide, narrow = (first, second) if first.dtype == np.int64 else (second, first)
    if len(wide) < len(narrow) and (not len(wide) or (wide.min() >= INT32.min and wide.max() <= INT32.max)):
        converted = wide.astype(np.int32)
        return (converted, second) if wide is first else (first, converted)
    return first.astype(np.int64, copy=False), second.astype(np.int64, copy=False)


def encode_strings(sides: Iterable[Ids]) -> tuple[list[Array], Sequence[Any]]:
    """Return codes for several arrays of strings, in the order of their UTF-8 bytes, and the strings."""
    parts = list(sides)
    if any(isinstance(part, Strings) for part in parts):
        return _join_strings([part if isinstance(part, Strings) else _as_arrow(part) for part in parts])
    arrays = [part for part in parts if not isinstance(part, Strings)]
    strings = sorted(set(chain.from_iterable(array.tolist() for array in arrays)))
    codes = {string: code for code, string in enumerate(strings)}
    dtype = np.int32 if len(strings) <= INT32.max else np.int64
    return [np.fromiter(map(codes.__getitem__, array.tolist()), dtype, len(array)) for array in arrays], strings


def _as_arrow(array: Array) -> Strings:
    """Return an object array in the form of an Arrow column."""
    import pyarrow as pa

    kind = kind_of_ids(array)
    values = pa.array(array.tolist(), pa.large_binary() if kind == "bytes" else pa.large_string())
    encoded = values.dictionary_encode()
    return Strings(values_of(encoded.indices), encoded.dictionary, kind)


def _join_strings(parts: list[Strings]) -> tuple[list[Array], Sequence[Any]]:
    """Encode all parts with one ascending list of strings; only distinct strings are compared and sorted."""
    import pyarrow as pa

    kind = pa.large_binary() if "bytes" in {part.kind for part in parts} else pa.large_string()
    values = [part.values if part.values.type == kind else part.values.cast(kind) for part in parts]
    if _are_one(values) and _ascends(values[0]):
        return [part.codes for part in parts], Spelled(values[0])
    from pyarrow import compute

    distinct = compute.unique(pa.chunked_array(values, kind))
    distinct = distinct.take(compute.sort_indices(distinct))
    ranks = [values_of(compute.index_in(own, value_set=distinct)) for own in values]
    return [_renumber(rank, part.codes) for rank, part in zip(ranks, parts, strict=True)], Spelled(distinct)


def _are_one(arrays: Sequence[Any]) -> bool:
    """Return whether Arrow arrays are the same memory, as those of files that are read together."""
    places = [(len(own), own.offset, *(part and part.address for part in own.buffers())) for own in arrays]
    return all(place == places[0] for place in places)


def _ascends(values: Any) -> bool:
    """Return whether no string of an Arrow array is null, and each comes after the one before."""
    after = call_arrow("less", values[:-1], values[1:])
    return bool(values.null_count == 0 and (not len(after) or call_arrow("all", after).as_py()))


def _renumber(ranks: Array, codes: Array) -> Array:
    """Return the rank of each code; the codes themselves if they are ranks already."""
    if len(ranks) == 0 or np.array_equal(ranks, np.arange(len(ranks))):
        return codes
    return ranks[codes]

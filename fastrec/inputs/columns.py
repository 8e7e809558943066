"""Checks of columns with one entry per row (scores, classes, weights), shared by all entry points."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fastrec.checks import is_whole
from fastrec.exceptions import InputError, InputTypeError, Place, RowNumber, Text
from fastrec.inputs.ids import integer_ids
from fastrec.inputs.ragged import as_array

Array = np.ndarray[Any, Any]
EXACT_BITS = 53  # of a double
MAX_EXACT_INTEGER = 2**EXACT_BITS  # a double holds every integer up to here
MAX_WEIGHT = 1e100
LABELS, SCORES, SAMPLE_WEIGHT = (Text(Place(name)) for name in ("labels", "scores", "sample_weight"))
NUMBER_FIRST = ": number the strings first, as pandas.factorize does"
WANTED_WEIGHTS = f"0 or from {1 / MAX_WEIGHT:g} to {MAX_WEIGHT:g}"


def _check_form(values: Any, name: str, n: int | None = None, mend: str = "") -> Array:
    """Return a 1-D array of numbers of at most 64 bits, as it is."""
    array = as_array(values, name)
    if n is not None and array.shape != (n,):
        raise InputError(name, f" must have one number per item, {n}; found shape {array.shape}")
    if array.ndim != 1:
        raise InputError(name, f" must be 1-D, found shape {array.shape}")
    if not len(array):
        return np.zeros(0)
    if array.dtype.kind not in "iufb" or array.dtype.itemsize > 8:
        hint = mend if array.dtype.kind == "U" else ""
        raise InputTypeError(name, f" must be numbers of at most 64 bits, found dtype {array.dtype}{hint}")
    return array


def check_numbers(values: Any, name: str, n: int | None = None, *, place: str = "row", mend: str = "") -> Array:
    """Return a 1-D array of numbers of at most 64 bits, as it is; reject integers that a double would round.

    `n` is their number, if items have them; `place` is what a message calls a position, and `mend` ends the error for
    strings.
    """
    array = _check_form(values, name, n, mend)
    refuse_rounded(array, name, place)
    refuse_rounded_list(values, array, name, place)
    return array


def check_numbers_of_items(values: Any, n: int, name: str, *, narrow: bool = False, mend: str = "") -> Array:
    """Return one number for each of n items, finite or infinite, as a contiguous array; NaN is an error.

    They are float64, or with `narrow` float32 if they come so.
    """
    array = check_numbers(values, name, n, place="position", mend=mend)
    out = np.ascontiguousarray(array, dtype=np.float32 if narrow and array.dtype == np.float32 else np.float64)
    refuse_nan(out, name, "position")
    return out


def check_floats(values: Any, name: str) -> Array:
    """Return numbers as contiguous float32 or float64; float16 becomes float32, integers become float64."""
    array = check_numbers(values, name)
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)


def check_scores(scores: Any, name: str = SCORES) -> Array:
    """Return scores as contiguous float32 or float64; NaN is an error."""
    array = check_floats(scores, name)
    refuse_nan(array, name)
    return array


def refuse_rounded(array: Array, name: str, place: str = "row") -> None:
    """Reject integers that a double would round, and name the first; a double may be rounded already."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not len(array):
        return
    if int(array.min()) >= -MAX_EXACT_INTEGER and int(array.max()) <= MAX_EXACT_INTEGER:
        return
    at = int(((array < -MAX_EXACT_INTEGER) | (array > MAX_EXACT_INTEGER)).argmax())
    raise InputError(says_rounded(name, int(array[at]), RowNumber.at(at, place)))


def refuse_rounded_list(values: Any, array: Array, name: str, place: str = "row") -> None:
    """Reject a list of numbers with an integer that its array has rounded, and name the first.

    NumPy makes floats of integers beside floats, and of integers on both sides of 2**63.
    """
    if not isinstance(values, list | tuple) or array.dtype != np.float64:
        return
    if not (np.abs(array) >= MAX_EXACT_INTEGER).any():
        return
    for at, value in enumerate(_values_of(values)):
        if is_whole(type(value)) and abs(int(value)) > MAX_EXACT_INTEGER:
            raise InputError(says_rounded(name, int(value), RowNumber.at(at, place)))


def _values_of(values: Any) -> Iterator[Any]:
    """Yield the numbers of a list, or of a list of lists or arrays."""
    for value in values:
        nested = isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim)
        yield from _values_of(value) if nested else (value,)


def says_rounded(name: str, found: int | str, row: RowNumber | str) -> Text:
    """Return the error message for an integer that a double would round."""
    return Text(name, f" holds an integer past 2**{EXACT_BITS}, which would be rounded: {found}", row)


def check_whole(numbers: Array, where: str, wanted: str, place: str = "row") -> Array:
    """Return numbers as int32 or int64; floats must be integers."""
    if numbers.dtype == bool:
        raise InputTypeError(where, f" must {wanted}, found booleans")
    if numbers.dtype.kind == "f":
        wrong = ~((np.floor(numbers) == numbers) & (abs(numbers) <= np.float64(MAX_EXACT_INTEGER)))
        if wrong.any():
            at = int(wrong.argmax())
            raise InputError(where, f" must {wanted}, found {numbers[at]}", RowNumber.at(at, place))
        return numbers.astype(np.int64)
    if numbers.dtype == np.uint32 and len(numbers) and numbers.max() < 2**31:
        return numbers.view(np.int32)
    return integer_ids(numbers, where)


def refuse_nan(array: Array, name: str, place: str = "row") -> None:
    """Reject NaN, and name the first."""
    # NaN is the one value for which min() is NaN
    with np.errstate(invalid="ignore"):
        if not len(array) or not np.isnan(array.min()):
            return
    raise InputError(name, " must not be NaN, found NaN", RowNumber.at(int(np.isnan(array).argmax()), place))


def check_classes(labels: Any) -> Array:
    """Return labels, which must be 0 or 1, as contiguous int8."""
    array = _check_form(labels, LABELS)
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array).view(np.int8)
    # for integers, minimum and maximum suffice and are faster than a mask
    if array.dtype.kind == "f" or array.min() < 0 or array.max() > 1:
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            at = int(wrong.argmax())
            raise InputError(LABELS, f" must be 0 or 1, found {array[at]}", RowNumber.at(at))
    return np.ascontiguousarray(array, dtype=np.int8)


def check_lengths(labels: Array, others: Array, name: str) -> None:
    """Reject arrays that do not hold one value per label."""
    if len(labels) != len(others):
        raise InputError(f"labels and {name} must have the same length, found {len(labels)} and {len(others)}")


def check_row_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return weights of rows as float64, each 0 or from 1e-100 to 1e100."""
    array = check_numbers(sample_weight, SAMPLE_WEIGHT)
    if len(array) != n_rows:
        raise InputError(SAMPLE_WEIGHT, f" must have one weight per row, {n_rows}; found {len(array)}")
    weights = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~((weights == 0) | ((weights >= 1 / MAX_WEIGHT) & (weights <= MAX_WEIGHT)))
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(SAMPLE_WEIGHT, f" must be {WANTED_WEIGHTS}, found {weights[at]}", RowNumber.at(at))
    return weights

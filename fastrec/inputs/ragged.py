"""The common internal layout: rows of different lengths, laid end to end."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.tensors import as_numpy, is_tensor, plain_values, refuse_unusual

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 16  # of which lengths stay in the cache


class Ragged:
    """Rows of different lengths in one flat array: row ``u`` is ``values[indptr[u]:indptr[u + 1]]``.

    This is the layout of a SciPy CSR matrix or an Arrow list array, without a number of columns. Neither an array of
    ``values`` nor a contiguous ``int64`` array ``indptr`` is copied.

    Parameters
    ----------
    values : array (n,), any dtype
        All rows, one after the other.
    indptr : integer array (n_rows + 1,)
        Where each row starts; ``indptr[0] == 0``, never decreasing, ``indptr[-1] == n``.

    Raises
    ------
    InputTypeError
        If ``indptr`` does not hold integers.
    InputError
        If it is empty, does not start at 0, decreases, or does not end at ``len(values)``.

    Examples
    --------
    >>> rows = fastrec.Ragged([7, 8, 9], [0, 2, 2, 3])
    >>> len(rows), rows[0].tolist(), rows[1].tolist()
    (3, [7, 8], [])
    """

    __slots__ = ("indptr", "values")

    def __init__(self, values: Any, indptr: Any, *, name: str = "indptr") -> None:
        self.values: Array = as_array(values, name.replace("indptr", "values"))
        if self.values.ndim != 1:
            raise InputError(f"{name}: the values must be 1-D, found shape {self.values.shape}")
        self.indptr: Array = check_indptr(indptr, len(self.values), name)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> Array:
        position = operator.index(row)
        if not -len(self) <= position < len(self):
            raise IndexError(f"row {position} is out of range for a Ragged with {len(self)} rows")
        position %= len(self)
        return self.values[self.indptr[position] : self.indptr[position + 1]]

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, {len(self.values)} values of {self.values.dtype})"


def as_array(values: Any, name: str) -> Array:
    """Return the values as an array; turn NumPy's errors into InputTypeError."""
    if type(values) is np.ndarray:
        return values
    refuse_unusual(values, name)
    if is_tensor(values):
        return as_numpy(values, name)
    if isinstance(values, (list, tuple)):
        values = plain_values(values, name)
    try:
        return np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - libraries of arrays have their own
        raise InputTypeError(name, f" cannot be converted to an array: {error}") from None


def longest_row(indptr: Array) -> int:
    """Return the length of the longest row; 0 if there are no rows."""
    longest = 0
    for first in range(0, len(indptr) - 1, ROWS_AT_ONCE):
        own = indptr[first : first + ROWS_AT_ONCE + 1]
        longest = max(longest, int((own[1:] - own[:-1]).max()))
    return longest


def chosen_rows(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Return the positions of the values of some rows, one row after the other, and their own `indptr`.

    A row below 0 is empty.
    """
    lengths = np.where(rows >= 0, np.diff(indptr)[rows], 0) if len(indptr) > 1 else np.zeros(len(rows), np.int64)
    own = np.concatenate([[0], np.cumsum(lengths)])
    starts = np.repeat(indptr[rows] - own[:-1], lengths)
    return np.arange(own[-1]) + starts, own


def check_indptr(indptr: Any, n_values: int, name: str) -> Array:
    """Return ``indptr`` as a contiguous int64 array, or raise an error that names the wrong element."""
    pointers = as_array(indptr, name)
    if pointers.ndim != 1 or len(pointers) == 0:
        raise InputError(f"{name} must be 1-D with one element more than there are users, found shape {pointers.shape}")
    if pointers.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must hold integers, found dtype {pointers.dtype}")
    if pointers.dtype == np.uint64 and int(pointers.max()) > np.iinfo(np.int64).max:
        raise InputError(f"{name} must not exceed 2**63 - 1, found {int(pointers.max())}")
    pointers = np.ascontiguousarray(pointers, dtype=np.int64)
    if pointers[0] != 0:
        are_sizes = bool((pointers > 0).all()) and int(pointers.sum()) == n_values
        mend = f"; these are the sizes of groups: pass np.r_[0, np.cumsum({name})]" if are_sizes else ""
        raise InputError(f"{name} must start at 0, found {name}[0] = {pointers[0]}{mend}")
    falls = pointers[1:] < pointers[:-1]
    if falls.any():
        at = int(falls.argmax())
        raise InputError(
            f"{name} must not decrease: {name}[{at}] = {pointers[at]} > {name}[{at + 1}] = {pointers[at + 1]}"
        )
    if pointers[-1] != n_values:
        raise InputError(f"{name} must end at the number of values, {n_values}; found {name}[-1] = {pointers[-1]}")
    return pointers


def read_only(array: Array) -> Array:
    """Return a contiguous, aligned, read-only view: the only form that kernels are compiled for."""
    view = np.ascontiguousarray(array).view()
    if not view.flags.aligned:
        view = view.copy()
    view.flags.writeable = False
    return view

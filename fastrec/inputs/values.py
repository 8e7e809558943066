"""Values and nulls of Arrow arrays as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.exceptions import InputError, RowNumber

Array = np.ndarray[Any, Any]


def fixed_width(kind: Any) -> np.dtype[Any] | None:
    """Return the NumPy dtype with the same memory layout as an Arrow type; None if there is none."""
    from pyarrow import types

    return np.dtype(kind.to_pandas_dtype()) if types.is_integer(kind) or types.is_floating(kind) else None


def values_of(chunk: Any) -> Array:
    """Return the values of an Arrow array without nulls; without a copy if NumPy has the same memory layout.

    PyArrow's own `to_numpy` imports pandas if it is installed.
    """
    kind = fixed_width(chunk.type)
    if kind is None or not len(chunk):
        unpacked: Array = chunk.to_numpy(zero_copy_only=False)
        return unpacked
    return np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)


def arrow_of(values: Array) -> Any:
    """Return integers or floats as an Arrow array, without a copy if contiguous; `pyarrow.array` imports pandas."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def call_arrow(name: str, *arrays: Any) -> Any:
    """Call a compute function of Arrow with its usual options.

    Importing `pyarrow.compute` takes long: that module makes a Python function of each compute function.
    """
    try:
        from pyarrow._compute import call_function
    except ImportError:  # not promised by PyArrow
        from pyarrow.compute import call_function
    return call_function(name, arrays)


def refuse_nulls(column: Any, where: str) -> None:
    """Reject a column with nulls, and name the row of the first."""
    if (null := find_nulls(column)).any():
        at = int(null.argmax())
        row = RowNumber(at, f" in row {at}, counted from 0 (in {null.sum()} of {len(column)} rows)")
        raise InputError(where, " must not be null, found null", row)


def find_nulls(column: Any) -> Array:
    """Return a mask of nulls, empty without any; `null_count` misses nulls in a dictionary, the mask has them."""
    encoded = [chunk for chunk in column.chunks if hasattr(chunk, "dictionary")]
    if not column.null_count and not any(chunk.dictionary.null_count for chunk in encoded):
        return np.zeros(0, bool)
    return np.concatenate([_nulls_of(chunk) for chunk in column.chunks])


def _nulls_of(chunk: Any) -> Array:
    encoded = hasattr(chunk, "dictionary")
    # from the indices: PyArrow 26 crashes on an encoded column that holds only nulls
    null: Array = (chunk.indices if encoded else chunk).is_null().to_numpy(zero_copy_only=False)
    if not encoded:
        return null
    hidden = np.append(_nulls_of(chunk.dictionary), True)  # the last entry is for rows without a code
    return hidden[np.where(null, -1, chunk.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64))]

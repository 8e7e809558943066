"""Nulls in Arrow columns, also those that a dictionary hides."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.exceptions import InputError, RowNumber

Array = np.ndarray[Any, Any]


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

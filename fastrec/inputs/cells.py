"""Cells of several ids in a column, as lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.exceptions import InputTypeError, shown
from fastrec.inputs.arrow import list_column, read_ids

Column = Any  # a pyarrow.ChunkedArray


def split_cells(column: Column, sep: Any, where: str) -> Column:
    """Return cells of several ids as lists of strings; a null has none. Lists stay, and cells that all have one id."""
    import pyarrow as pa
    from pyarrow import compute

    if not isinstance(sep, str) or not sep:
        raise InputTypeError(f"item_sep must be a string with at least one character, found {shown(sep)}")
    if list_column(column):
        return column
    read_ids(column.drop_null(), where)  # raises for values that are no ids
    cells = column.cast(pa.large_string()).fill_null("").combine_chunks()
    lists = compute.split_pattern(cells, sep)
    ids = compute.utf8_trim_whitespace(lists.flatten())
    of_cells = compute.list_parent_indices(lists).to_numpy()
    filled = compute.not_equal(ids, "")
    counts = np.bincount(of_cells[filled.to_numpy(zero_copy_only=False)], minlength=len(cells))
    if (counts == 1).all():
        return pa.chunked_array([ids.filter(filled)])
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
    return pa.chunked_array([pa.LargeListArray.from_arrays(offsets, ids.filter(filled))])

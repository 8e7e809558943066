"""The evidence of the columns of a data frame of lists."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.inputs.arrow import Frame, is_numeric, read_numbers
from fastrec.inputs.findings.columns import FIRST_ROWS, columns_to_look_at, evidence_of_columns
from fastrec.inputs.findings.evidence import Evidence

__all__ = ["evidence_of_frame"]

Array = np.ndarray[Any, Any]


def evidence_of_frame(
    frame: Frame, users: Array, items: Array, used: Collection[Any], role: str, name: str | None
) -> Iterator[Evidence]:
    """Yield evidence of the first rows of lists about the column that should order them.

    `users` and `items` have an integer for each row; the column `name` orders the lists in its role, or none does.
    """
    wanted = columns_to_look_at(frame.columns, used, role, name)
    head, numbers = frame.head(FIRST_ROWS) if wanted else frame, {}
    for column in dict.fromkeys(wanted):
        with contextlib.suppress(FastrecError):
            if is_numeric(values := head.read(column)):
                numbers[column] = read_numbers(values, column).astype(np.float64)[:FIRST_ROWS]
    if numbers:
        yield from evidence_of_columns(users[:FIRST_ROWS], items[:FIRST_ROWS], numbers, role, name)

"""Lines of delimited text, looked at as bytes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fastrec.kernels import text as kernels
from fastrec.runtime.launcher import call

__all__ = ["count_lines", "ends_in_quotes", "is_doubtful", "load_kernels"]


def count_lines(lines: bytes) -> int:
    """Return the number of line feeds."""
    return int(call(kernels.count_line_feeds, np.frombuffer(lines, np.uint8), work=8 * len(lines)))


def is_doubtful(lines: bytes, delimiter: str, line_break: bytes, *, has_integers: bool) -> bool:
    """Return whether readers may take some lines, which end with a line feed, in different ways.

    With `has_integers`, forms of integers count too: some readers take `007` and ` 7` for 7.
    """
    data, has_returns = np.frombuffer(lines, np.uint8), line_break != b"\n"
    given = data, np.uint8(ord(delimiter)), has_returns, b'"' in lines, has_integers
    return bool(call(kernels.is_doubtful, *given, work=8 * len(lines)))


def ends_in_quotes(blocks: Iterable[bytes], delimiter: str) -> bool:
    """Return whether a quote is open at the end of a text, which comes in blocks."""
    state = kernels.BEFORE_FIELD
    for block in blocks:
        if state == kernels.IN_QUOTES or b'"' in block:
            data = np.frombuffer(block, np.uint8)
            state = int(call(kernels.state_after, data, ord(delimiter), state, work=8 * len(block)))
        elif block:
            state = kernels.BEFORE_FIELD if block.endswith((delimiter.encode(), b"\n", b"\r")) else kernels.IN_FIELD
    return state == kernels.IN_QUOTES


def load_kernels() -> None:
    """Load the kernels of this module; compile them if there is no code on disk."""
    count_lines(b"1,2\n")
    is_doubtful(b"1,2\n", ",", b"\n", has_integers=True)
    ends_in_quotes([b'"1",2\n'], ",")

"""The form of text files that programs write: each row has its fields between the same literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["SAMPLED_ROWS", "RowForm"]

SAMPLED_ROWS = 1000


class RowForm(NamedTuple):
    """How every row of a file is written, judged by its first rows."""

    names: tuple[str, ...]  # of the columns
    literals: tuple[bytes, ...]  # before each field, and after the last one
    header: int  # bytes before the first row
    samples: tuple[Sequence[Any], ...]  # first values of each column: strings, or values of JSON
    typed: bool  # whether values have types, as in JSON

    @property
    def rows(self) -> tuple[tuple[str, ...], tuple[bytes, ...], bool]:
        """What files that are read together have in common."""
        return self.names, self.literals, self.typed

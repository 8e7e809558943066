"""Sums over users by bin of scores, from which the calibration of a log has intervals over users."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.evaluation.row_rules import positive_rows
from fastrec.exceptions import InputError
from fastrec.inputs.rows import RowSides
from fastrec.report.archive import pack_integers, unpack_integers

if TYPE_CHECKING:
    from fastrec.evaluation.accumulators import Collected, GroupKey, Keys

Array = np.ndarray[Any, Any]
BINS = 15  # as by default in the metric ece
SHAPE = (BINS + 1, 6)


class SumsByBin:
    """A table of `fastrec.scored.clusters` by bin, followed by a row for all bins together."""

    def __init__(self, table: Array | None = None, *, weighted: bool) -> None:
        self.table: Array = np.zeros(SHAPE, object if weighted else np.int64) if table is None else table
        self.weighted = weighted

    def merge(self, other: SumsByBin) -> None:
        """Add the sums of other users."""
        self.table = self.table + other.table

    def pack(self) -> dict[str, Array]:
        """Return the table as arrays."""
        return pack_integers(self.table)

    @classmethod
    def unpack(cls, arrays: dict[str, Array], *, weighted: bool) -> SumsByBin:
        """Restore sums from the arrays of `pack`."""
        table = unpack_integers(arrays, SHAPE)
        if table.min() < 0:
            raise InputError("sums over users must not be negative")
        return cls(table if weighted else table.astype(np.int64), weighted=weighted)


def collect_users_by_bin(sides: RowSides, least: float, _: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield the sums over all users of a batch, and over those of each group."""
    rows = sides.rows
    from fastrec.scored.calibration import user_sums_by_bin
    from fastrec.scored.clusters import RowsByUser

    positive, weights = positive_rows(rows, least)
    own, lengths = RowsByUser(positive, weights, rows.indptr), np.diff(rows.indptr)
    keys: list[GroupKey | None] = [None, *rows.users.keys]
    for codes in (np.zeros(len(lengths), np.int64), *rows.users.groups):
        present, numbers = np.unique(codes, return_inverse=True)
        groups = np.repeat(numbers.astype(np.int64), lengths)
        tables = user_sums_by_bin(own, rows.scores, groups, len(present), BINS, n_threads)
        for code, table in zip(present.tolist(), tables, strict=True):
            yield keys[code], SumsByBin(table, weighted=weights is not None)

"""Sums over users by bin of scores, from which the calibration of a log has intervals over users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastrec.evaluation.accumulators import ACCUMULATORS, AccumulatorKind, Collected, GroupKey, Keys
from fastrec.evaluation.row_rules import positive_rows
from fastrec.exceptions import InputError
from fastrec.inputs.rows import Rows
from fastrec.report.archive import pack_integers, unpack_integers

Array = np.ndarray[Any, Any]
USERS_BY_BIN = "users_by_bin"
BINS = 15  # as by default in the metric ece
SHAPE = (BINS + 1, 6)


class SumsByBin:
    """A table of `fastrec.scored.clusters` by bin, followed by a row for all bins together."""

    def __init__(self, table: Array, *, weighted: bool) -> None:
        self.table, self.weighted = table, weighted

    def merge(self, other: SumsByBin) -> None:
        """Add the sums of other users."""
        self.table = self.table + other.table

    def pack(self) -> dict[str, Array]:
        """Return the table as arrays."""
        return pack_integers(self.table)


def _empty(_: Keys, weighted: bool) -> SumsByBin:  # noqa: FBT001 - called by position
    return SumsByBin(np.zeros(SHAPE, object if weighted else np.int64), weighted=weighted)


def _unpack(arrays: dict[str, Array], _: Keys, weighted: bool) -> SumsByBin:  # noqa: FBT001 - called by position
    table = unpack_integers(arrays, SHAPE)
    if table.min() < 0:
        raise InputError("sums over users must not be negative")
    return SumsByBin(table if weighted else table.astype(np.int64), weighted=weighted)


def _collect(sides: Mapping[str, Any], least: float, _: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield the sums over all users of a batch, and over those of each group."""
    rows: Rows = sides["rows"]
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


ACCUMULATORS[USERS_BY_BIN] = AccumulatorKind(USERS_BY_BIN, _empty, _unpack, _collect, frozenset({"rows"}))

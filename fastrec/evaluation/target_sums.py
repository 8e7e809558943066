"""Exact sums of targets and errors over rows as an accumulator, from which `r2` is rounded once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.evaluation.exact import join_digits
from fastrec.evaluation.row_rules import weights_of
from fastrec.exceptions import InputError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.rows import RowSides
from fastrec.kernels.codes import N_TARGET_DIGITS
from fastrec.kernels.targets import add_targets
from fastrec.report.archive import pack_integers, unpack_integers
from fastrec.runtime.launcher import launch

if TYPE_CHECKING:
    from fastrec.evaluation.accumulators import Collected, Keys

Array = np.ndarray[Any, Any]
SHAPE = (4,)  # sums of w, w y, w y^2 and w (s - y)^2
ROWS_AT_ONCE = 1 << 26  # each adds less than 2^36 to a digit
MIN_ROWS = 1 << 14  # fewer are not divided among threads
FAR = 1 << 20  # mean square of targets over their variance


class TargetSums:
    """Sums over rows as integers in steps of 2^-TARGET_SCALE: the same for any split of rows and order of merging."""

    def __init__(self, sums: Array | None = None, *, weighted: bool) -> None:
        self.sums: Array = np.zeros(SHAPE, object) if sums is None else sums
        self.weighted = weighted

    def merge(self, other: TargetSums) -> None:
        """Add the sums of other rows."""
        self.sums = self.sums + other.sums

    def pack(self) -> dict[str, Array]:
        """Return the sums as arrays."""
        return pack_integers(self.sums)

    @classmethod
    def unpack(cls, arrays: dict[str, Array], *, weighted: bool) -> TargetSums:
        """Restore sums from the arrays of `pack`."""
        state = cls(unpack_integers(arrays, SHAPE), weighted=weighted)
        rows, _, squares, errors = state.sums.tolist()
        if min(rows, squares, errors, state._spread) < 0:
            raise InputError("expected sums of targets and of squares, found others")
        return state

    @property
    def _spread(self) -> int:
        """The sum of w times that of w (y - mean)^2."""
        rows, total, squares, _ = self.sums.tolist()
        return int(rows * squares - total * total)

    def r2(self) -> float:
        """Return the coefficient of determination; NaN if all targets are equal, -inf below all doubles."""
        rows, errors = self.sums[[0, 3]].tolist()
        if not self._spread:
            return math.nan
        try:
            return float(1 - Fraction(rows * errors, self._spread))
        except OverflowError:
            return -math.inf

    def is_far(self) -> bool:
        """Return whether targets are so far from 0 that rounded sums of their squares say little about their spread."""
        rows, _, squares, _ = self.sums.tolist()
        return bool(rows * squares > FAR * self._spread)


def _sums_of_targets(
    labels: Array, scores: Array, weights: Array | None, codes: Array | None, n_codes: int, n_threads: int
) -> list[TargetSums]:
    """Return the sums of the rows of each code."""
    own, of_rows = np.empty(0) if weights is None else weights, np.empty(0, np.int32) if codes is None else codes
    width = min(ROWS_AT_ONCE, max(MIN_ROWS, -(-len(labels) // n_threads)))
    edges = np.append(np.arange(0, len(labels), width), len(labels))
    digits = np.zeros((len(edges) - 1, n_codes, *SHAPE, N_TARGET_DIGITS), np.int64)
    given = (*map(read_only, (labels, scores, own, of_rows, edges)), digits)
    launch(add_targets, len(digits), *given, work=600 * len(labels), n_threads=n_threads)
    return [TargetSums(own, weighted=weights is not None) for own in join_digits(digits)]


def collect_targets(sides: RowSides, _: float, __: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield the sums over all rows of a batch, and over the rows of each group."""
    rows = sides.rows
    own = rows.labels, rows.scores, weights_of(rows)
    yield from ((None, found) for found in _sums_of_targets(*own, None, 1, n_threads))
    for codes in rows.users.groups if len(rows.indptr) > 1 else ():
        first, last = int(codes.min()), int(codes.max())
        of_rows = np.repeat(codes - np.int32(first), np.diff(rows.indptr))
        found = _sums_of_targets(*own, of_rows, last - first + 1, n_threads)
        yield from zip(rows.users.keys[first - 1 : last], found, strict=True)

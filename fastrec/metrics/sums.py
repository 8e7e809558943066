"""The sums of a plan: rows to add up over users, checks of rows, and the failures of both."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels import codes as op
from fastrec.kernels.program import Program
from fastrec.metrics.program import Extent, Writer
from fastrec.metrics.statistics import Row

Array = np.ndarray[Any, Any]
ANY_SIZE = 1 << 62


class Failure(NamedTuple):
    """A failure that a kernel found: a code of `kernels.codes`, the user, and a position or a row."""

    code: int
    user: int
    detail: int


class Sum(NamedTuple):
    """A row to add up over users."""

    condition: int
    row: Row
    metric: str
    fixed: bool = False  # within [-1, 1]


class Check(NamedTuple):
    """A row of a user-defined metric and its declared bounds, or a row that must be 0."""

    condition: int
    row: Row
    low: float
    high: float
    metric: str
    message: str = ""  # about the user, instead of "out of range"


class SumList:
    """Sums of one program: sums within [-1, 1] are numbered before general ones."""

    def __init__(self) -> None:
        self.sums: list[Sum] = []
        self.checks: list[Check] = []
        self._known: dict[Hashable, int] = {}

    def add(self, *sums: Sum) -> tuple[int, ...]:
        """Add sums that are not in the list yet, and return the places of all."""
        places = []
        for each in sums:
            key = (each.condition, each.row.identity, each.fixed)
            if key not in self._known:
                self._known[key] = len(self.sums)
                self.sums.append(each)
            places.append(self._known[key])
        return tuple(places)

    def ordered(self) -> list[int]:
        """Return the sums in the order of the totals."""
        return [i for fixed in (True, False) for i, each in enumerate(self.sums) if each.fixed is fixed]

    def places(self) -> dict[int, int]:
        """Return the place of each sum among the totals."""
        return {i: place for place, i in enumerate(self.ordered())}

    def sizes(self) -> dict[str, Any]:
        """Return the fields of a kernel's `Program` with the numbers of sums."""
        n_fixed = sum(each.fixed for each in self.sums)
        return {"n_fixed": n_fixed, "n_general": len(self.sums) - n_fixed}

    def scales(self) -> list[int]:
        """Return the step of each sum, as a power of 1/2."""
        return [op.FIXED_SCALE if self.sums[i].fixed else op.GENERAL_SCALE for i in self.ordered()]

    def rejected(self, failure: Failure) -> tuple[str, str]:
        """Return the metric with a value that a kernel rejected, and the message of its check."""
        if failure.code == op.OUT_OF_LIMITS:
            check = sorted(self.checks, key=lambda check: check.condition)[failure.detail]
            return check.metric, check.message
        fixed = failure.code == op.OUT_OF_RANGE
        return [each for each in self.sums if each.fixed is fixed][failure.detail].metric, ""


def rows_of_condition(sums: SumList, condition: int, stored: list[tuple[int, Row]]) -> tuple[Any, Any, Any]:
    """Return the rows of a condition to store, its checks, and the rows to sum with the numbers of their sums."""
    places = sums.places()
    summed = tuple((places[i], each.row) for i, each in enumerate(sums.sums) if each.condition == condition)
    checks = [(check.row, check.low, check.high) for check in sums.checks if check.condition == condition]
    return tuple(row for at, row in stored if at == condition), tuple(checks), summed


def program_of_sums(sums: SumList, writer: Writer) -> Program:
    """Return a program that adds given rows of users, and reads neither lists nor truth."""
    return Program(
        **writer.arrays(Extent(0, 0)),
        **sums.sizes(),
        stored_rows=np.zeros((0, 3), np.int64),
        find=False,
        n_items=ANY_SIZE,
        policies=np.full((1, 2), op.SKIP, np.int64),
        expected=False,
        refuse_ties=False,
    )

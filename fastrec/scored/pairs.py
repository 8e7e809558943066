"""Pairs of rows with graded labels: the share whose scores are in the same order, of users and of all rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputError
from fastrec.inputs.pairs import pairs_of_users

__all__ = ["GRADED_ROWS", "GradedRows", "fill_pairs"]

Array = np.ndarray[Any, Any]
GRADED_ROWS = "graded_rows"


def fill_pairs(sides: Any, keys: Sequence[tuple[Hashable, ...]], out: Array) -> None:
    """Fill twice the pairs of each user that are in the right order, ties half, and all pairs ("won", "all")."""
    rows = sides["rows"]
    same, tied, every = pairs_of_users(rows.indptr, rows.labels, rows.scores, rows.weights)
    for nth, (name,) in enumerate(keys):
        out[nth] = np.minimum(2 * same + tied, 2 * every) if name == "won" else every  # sums of weights are rounded


class GradedRows:
    """All rows so far with their labels: mergeable, with the same pairs for any split of rows and order of merging."""

    def __init__(self, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self._parts: list[tuple[Array, ...]] = []

    def add(self, labels: Array, scores: Array, weights: Array | None) -> None:
        """Add checked rows."""
        columns: tuple[Array, ...] = tuple(own.astype(np.float64) + 0.0 for own in (labels, scores))  # no -0.0
        if weights is not None:
            kept = weights > 0
            columns = (*(own[kept] for own in columns), weights[kept].astype(np.float64))
        self._parts.append(columns)

    def merge(self, other: GradedRows) -> None:
        """Add the rows of another state."""
        assert self.weighted == other.weighted
        self._parts += other._parts

    def pack(self) -> dict[str, Array]:
        """Return the rows as arrays, in the order of scores, labels and weights."""
        return dict(zip(("labels", "scores", "weights"), self._columns(), strict=False))

    @classmethod
    def unpack(cls, arrays: dict[str, Array], *, weighted: bool) -> GradedRows:
        """Restore a state from the arrays of `pack`."""
        state = cls(weighted=weighted)
        names = ("labels", "scores", "weights") if weighted else ("labels", "scores")
        columns = tuple(arrays[name] for name in names)
        lengths = {column.shape for column in columns}
        right = len(lengths) == 1 and all(column.dtype == np.float64 and column.ndim == 1 for column in columns)
        right = right and not any(np.isnan(column).any() for column in columns)
        if not right or (weighted and not ((columns[2] > 0) & np.isfinite(columns[2])).all()):
            raise InputError("expected rows with labels, scores and weights, found other arrays")
        state._parts.append(columns)
        return state

    def _columns(self) -> tuple[Array, ...]:
        """Return labels, scores and weights of all rows, sorted."""
        n = 3 if self.weighted else 2
        columns = tuple(np.concatenate([part[at] for part in self._parts] or [np.zeros(0)]) for at in range(n))
        order = np.lexsort((*columns[2:], *columns[:2]))
        self._parts = [tuple(column[order] for column in columns)]
        return self._parts[0]

    def xauc(self) -> float:
        """Return the share of the pairs with different labels whose scores are in the same order, ties half."""
        labels, scores, *weights = self._columns()
        indptr = np.array([0, len(labels)])
        same, tied, every = pairs_of_users(indptr, labels, scores, weights[0] if weights else None)[:, 0].tolist()
        return min((2 * same + tied) / (2 * every), 1.0) if every else math.nan

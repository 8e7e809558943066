"""Pairs and ranks of rows with graded labels: whether scores are in the same order, for users and for all rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import InputError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.rows import RowSides, pairs_of_users
from fastrec.kernels import pairs as kernels
from fastrec.metrics.providers import Fill
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def _order(indptr: Array, *columns: Array | None) -> Array:
    """Return the order of rows by user, then by the given columns."""
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.lexsort((*(own for own in columns[::-1] if own is not None), users))


def levels_of_users(indptr: Array, labels: Array, scores: Array, weights: Array | None) -> Array:
    """Return how many different labels or scores each user has, whichever are fewer, without rows of weight 0."""
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    kept = np.ones(len(users), bool) if weights is None else weights > 0
    users, found = users[kept], []
    for values in (labels[kept], scores[kept]):
        order = np.lexsort((values, users))
        own, of = values[order], users[order]
        is_new = np.ones(len(own), bool)
        is_new[1:] = (own[1:] != own[:-1]) | (of[1:] != of[:-1])
        found.append(np.bincount(of[is_new], minlength=len(indptr) - 1))
    return np.minimum(*found)


def weights_of_users(indptr: Array, weights: Array | None) -> Array:
    """Return the sum of the weights of the rows of each user, added in ascending order."""
    if weights is None:
        return np.diff(indptr)
    own = weights[_order(indptr, weights)].astype(np.float64)
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.bincount(users, own, minlength=len(indptr) - 1)


def _near_one(weights: Array, indptr: Array) -> Array:
    """Return weights divided by a power of two for each user, so that their products neither overflow nor vanish."""
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    largest = np.zeros(len(indptr) - 1)
    np.maximum.at(largest, users, weights)
    return np.ldexp(weights, -np.frexp(largest)[1][users])


def products_of_ranks(indptr: Array, labels: Array, scores: Array, weights: Array | None) -> Array:
    """Return the sums of the products of ranks of each user, (3, n_users): label and score, labels, scores.

    Ranks are twice those less their mean, so without weights the products are integers. Weights are divided by a power
    of two for each user. Sums do not depend on the order of the rows of a user.
    """
    order = _order(indptr, scores, labels, weights)
    labels, scores = labels[order].astype(np.float64), scores[order].astype(np.float64)
    own = np.ones(len(order)) if weights is None else _near_one(weights[order].astype(np.float64), indptr)
    indptr, own, work = read_only(np.asarray(indptr, np.int64)), read_only(own), 64 * len(order)
    ranks = np.zeros(len(order)), np.zeros(len(order))
    for values, ordered, out in (
        (labels, _order(indptr, labels, scores, own), ranks[0]),
        (scores, np.arange(len(order)), ranks[1]),
    ):
        given = (indptr, read_only(values), own, read_only(ordered.astype(np.int64)), out)
        call(kernels.rank_rows_of_users, *given, work=work)
    sums = np.zeros((3, len(indptr) - 1))
    call(kernels.multiply_ranks_of_users, indptr, *map(read_only, ranks), own, sums, work=work)
    return sums


def fill_pairs(sides: RowSides, keys: Sequence[tuple[Hashable, ...]], out: Array) -> None:
    """Fill numbers of the pairs of each user, by the keys of formulas.

    "won" is twice the pairs in the right order, ties half, "balance" the pairs in the right order less those in the
    wrong one, "all" those with different labels, "of_scores" those with different scores. "levels" is the number of
    different labels or scores, if fewer, and "rows" the sum of the weights of rows.
    """
    rows = sides.rows
    columns = rows.indptr, rows.labels, rows.scores, rows.weights
    same, tied, every, of_scores = pairs_of_users(*columns)
    for nth, (name,) in enumerate(keys):
        if name == "won":
            out[nth] = np.minimum(2 * same + tied, 2 * every)  # sums of weights are rounded
        elif name == "levels":
            out[nth] = levels_of_users(*columns)
        elif name == "rows":
            out[nth] = weights_of_users(rows.indptr, rows.weights)
        else:
            balance = np.where((every > 0) & (of_scores > 0), 2 * same + tied - every, 0)  # sums of weights are rounded
            out[nth] = {"balance": balance, "all": every, "of_scores": of_scores}[str(name)]


def fill_ranks(sides: RowSides, keys: Sequence[tuple[Hashable, ...]], out: Array) -> None:
    """Fill the sums of the products of the ranks of each user: "both", "labels" or "scores"."""
    rows = sides.rows
    products = products_of_ranks(rows.indptr, rows.labels, rows.scores, rows.weights)
    found = dict(zip(("both", "labels", "scores"), products, strict=True))
    for nth, (name,) in enumerate(keys):
        out[nth] = found[str(name)]


FILLS: Mapping[str, Fill] = {"graded_pairs": fill_pairs, "graded_ranks": fill_ranks}
"""The functions that fill the statistics of the providers of scored rows, by the name of the provider."""


class GradedRows:
    """All rows so far with their labels: mergeable, with the same pairs for any split of rows and order of merging."""

    def __init__(self, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self._parts: list[tuple[Array, ...]] = []

    @classmethod
    def of(cls, labels: Array, scores: Array, weights: Array | None) -> GradedRows:
        """Return checked rows."""
        rows = cls(weighted=weights is not None)
        columns: tuple[Array, ...] = tuple(own.astype(np.float64) + 0.0 for own in (labels, scores))  # no -0.0
        if weights is not None:
            kept = weights > 0
            columns = (*(own[kept] for own in columns), weights[kept].astype(np.float64))
        rows._parts.append(columns)
        return rows

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

    def _as_one_user(self) -> tuple[Array, Array, Array, Array | None]:
        labels, scores, *weights = self._columns()
        return np.array([0, len(labels)]), labels, scores, weights[0] if weights else None

    def xauc(self) -> float:
        """Return the share of the pairs with different labels whose scores are in the same order, ties half."""
        same, tied, every, _ = pairs_of_users(*self._as_one_user())[:, 0].tolist()
        return min((2 * same + tied) / (2 * every), 1.0) if every else math.nan

    def balance(self) -> tuple[float, float, float]:
        """Return the pairs in the right order less those in the wrong, and those with different labels and scores."""
        same, tied, every, of_scores = pairs_of_users(*self._as_one_user())[:, 0].tolist()
        return 2 * same + tied - every, every, of_scores

    def size(self) -> tuple[float, int]:
        """Return the sum of the weights of rows, and how many different labels or scores they have, if fewer."""
        columns = self._as_one_user()
        return float(weights_of_users(columns[0], columns[3])[0]), int(levels_of_users(*columns)[0])

    def products_of_ranks(self) -> tuple[float, float, float]:
        """Return the sums of the products of ranks: of label and score, labels, scores."""
        both, of_labels, of_scores = products_of_ranks(*self._as_one_user())[:, 0].tolist()
        return both, of_labels, of_scores

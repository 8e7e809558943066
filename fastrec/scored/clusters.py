"""Users as clusters of rows: exact sums over users of their rows and positive rows by key, and errors of shares.

A table has a row of `MOMENTS` columns per key: n rows, c of them positive, the users with such a row, and the sums over
users of n^2, n c and c^2. Tables of other users add. With weights, n and c are sums of weights, and all columns but the
users are integers in steps of 2^-STEP_BITS.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.grouping import group_rows
from fastrec.inputs.ragged import read_only
from fastrec.kernels.position import add_users
from fastrec.metrics.errors import root, variance_of_ratio
from fastrec.runtime.launcher import launch
from fastrec.scored.sorting import exact_sums, scale_of

Array = np.ndarray[Any, Any]
MOMENTS = 6
USERS = 2  # the column of the numbers of users
STEP_BITS = 3200  # for the square of any weight
DOUBLE_BITS = 1126  # any double is an integer in steps of 2^-1126, if its 53 bits are
LARGE_BITS = 1000  # of a number of rows that counts as infinite: rounded squares of weights may even cancel below 0
ROWS_PER_TASK = 1 << 20  # fewer are not worth a thread


def count_users(keys: Array, positive: Array, indptr: Array, n_keys: int, n_threads: int) -> Array:
    """Return a table by key, int64 (n_keys, MOMENTS), of rows without weights: keys int64, positive int8 or bool."""
    n = len(keys)
    n_parts = max(1, min(n_threads, n // ROWS_PER_TASK))
    edges = np.searchsorted(indptr, [n * at // n_parts for at in range(n_parts + 1)])
    tables = np.zeros((n_parts, n_keys, MOMENTS), np.int64)
    given = (*map(read_only, (keys, positive.view(np.int8), indptr, edges)), tables)
    launch(add_users, n_parts, *given, work=2 * n, n_threads=n_parts)
    return np.asarray(tables.sum(axis=0))


def weigh_users(keys: Array, positive: Array, weights: Array, indptr: Array, n_keys: int, n_threads: int) -> Array:
    """Return a table by key, object (n_keys, MOMENTS), of rows with weights; rows of weight 0 count for nothing."""
    table = np.zeros((n_keys, MOMENTS), object)
    kept = weights > 0
    if not kept.any():
        return table
    scale = scale_of(weights)
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    grouping = group_rows((users * n_keys + keys)[kept], n_threads)
    key_of, begins = grouping.ids % n_keys, grouping.indptr[:-1]
    own = grouping.take(weights[kept] * scale)
    n, c = (np.add.reduceat(column, begins) for column in (own, own * grouping.take(positive[kept])))
    table[:, USERS] = np.bincount(key_of, minlength=n_keys).tolist()
    unit = math.frexp(scale)[1] - 1
    for column, factors, values in ((0, 1, n), (1, 1, c), (3, 2, n * n), (4, 2, n * c), (5, 2, c * c)):
        table[:, column] = _sums(values, key_of, n_keys) << (STEP_BITS - DOUBLE_BITS - factors * unit)
    return table


def _sums(values: Array, codes: Array, n: int) -> Array:
    """Return exact sums of numbers of at least 0 by code: integers in steps of 2^-DOUBLE_BITS."""
    order = np.argsort(codes, kind="stable")
    sums, exponent = exact_sums(values[order], np.searchsorted(codes[order], np.arange(n), side="right"))
    return np.diff(np.array([0, *sums], object)) << (DOUBLE_BITS + exponent)


class RowsByUser(NamedTuple):
    """Rows of users, one after the other: whether each is positive, weights or None, and where users begin."""

    positive: Array
    weights: Array | None
    indptr: Array

    def table(self, keys: Array, n_keys: int, n_threads: int) -> Array:
        """Return the table by key of the rows."""
        if self.weights is None:
            return count_users(keys, self.positive, self.indptr, n_keys, n_threads)
        return weigh_users(keys, self.positive, self.weights, self.indptr, n_keys, n_threads)

    def tables(self, bins: Array, n_bins: int, groups: Array, n_groups: int, n_threads: int) -> Array:
        """Return tables by group and bin of the rows, (n_groups, n_bins + 1, MOMENTS): the last row is of all bins."""
        by_bin = self.table(groups * n_bins + bins, n_groups * n_bins, n_threads)
        whole = self.table(groups, n_groups, n_threads)
        return np.concatenate([by_bin.reshape(n_groups, n_bins, MOMENTS), whole[:, None]], axis=1)


def clustered_error(table: Array) -> Array:
    """Return the standard errors of the shares c / n of a table of counts; NaN for fewer than two users."""
    errors = np.full(len(table), math.nan)
    for at, (n, c, users, *squares) in enumerate(table.tolist()):
        if users > 1:
            numerator, denominator = variance_of_ratio(users, n, c, *squares)
            errors[at] = root(int(numerator), int(denominator))
    return errors


def effective_rows(table: Array, *, weighted: bool) -> Array:
    """Return how many independent rows tell as much about the shares p = c / n as the rows of users do.

    It is p (1 - p) / error^2 (Korn & Graubard 1998). If p is 0 or 1, no error can be seen, and the rows of a user count
    as one: n^2 / sum of n_u^2. It is infinite if all users have the same share, and NaN for fewer than two users.
    """
    sizes = np.full(len(table), math.nan)
    for at, (n, c, users, *squares) in enumerate(table.tolist()):
        if users > 1:
            above, below = n * n, squares[0]
            if 0 < c < n:
                numerator, denominator = variance_of_ratio(users, n, c, *squares)
                above, below = c * (n - c) * int(denominator), n * n * int(numerator)
            below <<= STEP_BITS if weighted else 0
            sizes[at] = above / below if above < below << LARGE_BITS else math.inf
    return sizes

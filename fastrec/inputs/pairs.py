"""Pairs of a user's rows with different labels, and how many of them have their scores in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels.pairs import count_pairs_of_users
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def pairs_of_users(indptr: Array, labels: Array, scores: Array, weights: Array | None) -> Array:
    """Return the pairs of rows of each user, (4, n_users), as `count_pairs_of_users` writes them.

    Without weights they are exact, int64. Sums of weights do not depend on the order of the rows of a user.
    """
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keys = (labels, scores, users) if weights is None else (weights, labels, scores, users)
    order = np.lexsort(keys)
    own = np.ones(len(order), np.int64) if weights is None else weights[order].astype(np.float64)
    ordered = labels[order].astype(np.float64)
    longest = longest_row(indptr)
    spare = np.empty(longest), np.empty(longest, own.dtype)
    sums = np.zeros((4, len(indptr) - 1), own.dtype)
    given = (read_only(indptr), ordered, read_only(scores[order].astype(np.float64)), own, spare, sums)
    call(count_pairs_of_users, *given, work=64 * len(order))
    return sums

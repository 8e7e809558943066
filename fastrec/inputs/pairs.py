"""Pairs of a user's rows with different labels, and how many of them have their scores in the same order."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels import pairs as kernels
from fastrec.runtime.compiler import Entry

__all__ = ["pairs_of_users"]

Array = np.ndarray[Any, Any]
STEPS_PER_ROW = 64


@functools.cache
def _entry(variant: str) -> Entry:
    return Entry(kernels.count_pairs_of_users, f"count_pairs_of_users-{variant}")


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
    count = _entry(f"{own.dtype}").suited_to(STEPS_PER_ROW * len(order))
    count(read_only(indptr), ordered, read_only(scores[order].astype(np.float64)), own, spare, sums)
    return sums

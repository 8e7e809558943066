"""Pairs of some rows with all rows, whose keys are sorted in ranges of scores; keys are those of `kernels.sorting`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit

Array = np.ndarray[Any, Any]
BLOCK = 64  # keys that are passed over at once


class KnownKeys(NamedTuple):
    """The sorted keys of all rows with scores in a range."""

    keys: Array
    negatives: Array  # int64: among the keys before each block of `BLOCK`
    below: int  # negatives of lower ranges
    above: int  # positives of this range and of higher ones


@njit(cache=True)
def add_known_pairs(keys, owners, known, shift, sums):
    """Do as `add_pairs` does for the pairs of some rows with all rows, which `known` has; it has these rows, too."""
    one = keys.dtype.type(1)
    half = (1 << shift) >> 1
    n = len(keys)
    n_known = len(known.keys)
    i = 0
    j = 0
    negatives = np.int64(0)  # among the known rows before j
    while i < n:
        start = i
        score = keys[i] >> one
        while i < n and keys[i] >> one == score:
            i += 1
        block = j // BLOCK + 1
        while block * BLOCK < n_known and known.keys[block * BLOCK] >> one < score:
            j = block * BLOCK
            negatives = known.negatives[block]
            block += 1
        while j < n_known and known.keys[j] >> one < score:
            negatives += 1 - np.int64(known.keys[j] & one)
            j += 1
        first = j
        positives = np.int64(0)
        while j < n_known and known.keys[j] >> one == score:
            positives += np.int64(known.keys[j] & one)
            j += 1
        of_negative = (2 * (known.above - (first - negatives)) - positives + half) >> shift
        tied = j - first - positives
        more = ((2 * (known.below + negatives) + tied + half) >> shift) - of_negative
        for at in range(start, i):
            sums[owners[at]] += of_negative + more * np.int64(keys[at] & one)
        negatives += tied

"""Lower bounds of the cost of reading the data: loops over the same arrays that only add.

`index` is the floor that "x floor" means everywhere. It is no memory floor: its index is signed, so that Numba handles
negative ones and the loop hardly vectorises, depending on the length of lists. `slices` and `flat` show by how much.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from bench.cases import Log

BLOCKS = 64  # of users, distributed over the threads
INDEX, SLICES, FLAT = 0, 1, 2


@njit(nogil=True, error_model="numpy")
def add_by_index(items, indptr, first, last):
    """Add all ids by index, the loop that anyone would write."""
    total = 0
    for u in range(first, last):
        for j in range(indptr[u], indptr[u + 1]):
            total += items[j]
    return total


@njit(nogil=True, error_model="numpy")
def add_by_slices(items, indptr, first, last):
    """Add all ids over a slice per user, indexed from 0."""
    total = 0
    for u in range(first, last):
        row = items[indptr[u] : indptr[u + 1]]
        for j in range(len(row)):
            total += row[j]
    return total


@njit(nogil=True, error_model="numpy")
def add_flat(items, indptr, first, last):
    """Add all ids without looking at users."""
    total = 0
    row = items[indptr[first] : indptr[last]]
    for j in range(len(row)):
        total += row[j]
    return total


@njit(parallel=True, nogil=True, error_model="numpy")
def _read(recs, rec_indptr, truth, truth_indptr, add):
    """Run one of the loops over blocks of users of lists and truth, on all threads; one driver compiles once."""
    n_users = len(rec_indptr) - 1
    totals = np.zeros(BLOCKS, np.int64)
    for b in prange(BLOCKS):
        first = b * n_users // BLOCKS
        last = (b + 1) * n_users // BLOCKS
        if add == INDEX:
            totals[b] = add_by_index(recs, rec_indptr, first, last) + add_by_index(truth, truth_indptr, first, last)
        elif add == SLICES:
            totals[b] = add_by_slices(recs, rec_indptr, first, last) + add_by_slices(truth, truth_indptr, first, last)
        else:
            totals[b] = add_flat(recs, rec_indptr, first, last) + add_flat(truth, truth_indptr, first, last)
    return totals.sum()


def index(log: Log) -> int:
    """Return the sum of all ids, by index: the floor."""
    return int(_read(*log, INDEX))


def slices(log: Log) -> int:
    """Return the sum of all ids, by slices."""
    return int(_read(*log, SLICES))


def flat(log: Log) -> int:
    """Return the sum of all ids, without users."""
    return int(_read(*log, FLAT))


def check(log: Log) -> None:
    """Compile the loops for this kind of log, and check that all of them read everything."""
    wanted = int(log.rec_items.sum(dtype=np.int64)) + int(log.truth_items.sum(dtype=np.int64))
    for read in (index, slices, flat):
        if read(log) != wanted:
            raise AssertionError(f"{read.__name__} did not read the whole log")

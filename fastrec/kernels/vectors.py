"""Distances between the items of a list, from their vectors or their sets of categories.

Items are slots. Vectors are normalised to length 1, zeros stay. Kernels that take tasks first..last-1 write what
belongs to users edges[task]..edges[task + 1]-1 of each task. Those of diversity write mean distances of pairs of items
up to each cut-off, and the items with features: into found (2, n_cuts, n_users).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange

Array = np.ndarray[Any, Any]


class Dense(NamedTuple):
    """A vector for each slot, and which slots have one: 0 none, 1 zeros, 2 another."""

    matrix: Array  # float64 (n_slots, n)
    kinds: Array  # int8 (n_slots,)


class Sparse(NamedTuple):
    """The same in CSR form."""

    indptr: Array  # int64 (n_slots + 1,)
    columns: Array  # int64
    values: Array  # float64
    kinds: Array
    n: int


@njit
def mean_distance(square, n, n_zeros):
    """Return the mean of 1 - cosine over pairs of n vectors, from the square of the length of their sum."""
    return 1 - (square - (n - n_zeros)) / (n * (n - 1)) if n > 1 else 0.0


@njit(allocates=True)
def dense_of_users(slots, indptr, cuts, vectors, found, first, last):
    """Write the diversity of some users."""
    matrix, kinds = vectors
    width = matrix.shape[1]
    total = np.zeros(width)
    for u in range(first, last):
        total[:] = 0.0
        n, n_zeros, at = 0, 0, indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                if kinds[slot] > 0:
                    n += 1
                    n_zeros += kinds[slot] == 1
                    for i in range(width):
                        total[i] += matrix[slot, i]
                at += 1
            square = 0.0
            for i in range(width):
                square += total[i] * total[i]
            found[0, c, u] = mean_distance(square, n, n_zeros)
            found[1, c, u] = n


@njit(parallel=True, cache=True)
def diversity_of_dense(first, last, edges, slots, indptr, cuts, matrix, kinds, found):
    """Write 1 - the mean cosine of the vectors of `Dense`."""
    for task in prange(first, last):
        dense_of_users(slots, indptr, cuts, Dense(matrix, kinds), found, edges[task], edges[np.int64(task) + 1])


@njit(allocates=True)
def sparse_of_users(slots, indptr, cuts, vectors, found, first, last):
    """Write the diversity of some users."""
    ends, columns, values, kinds, n_columns = vectors
    total = np.zeros(n_columns)
    for u in range(first, last):
        n, n_zeros, at, square = 0, 0, indptr[u], 0.0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                if kinds[slot] > 0:
                    n += 1
                    n_zeros += kinds[slot] == 1
                    for i in range(ends[slot], ends[slot + 1]):
                        column, value = columns[i], values[i]
                        square += value * (2 * total[column] + value)
                        total[column] += value
                at += 1
            found[0, c, u] = mean_distance(square, n, n_zeros)
            found[1, c, u] = n
        for at in range(indptr[u], indptr[u + 1]):
            for i in range(ends[slots[at]], ends[slots[at] + 1]):
                total[columns[i]] = 0.0


@njit(parallel=True, cache=True)
def diversity_of_sparse(first, last, edges, slots, indptr, cuts, ends, columns, values, kinds, n, found):
    """Write 1 - the mean cosine of the vectors of `Sparse`."""
    for task in prange(first, last):
        vectors = Sparse(ends, columns, values, kinds, n)
        sparse_of_users(slots, indptr, cuts, vectors, found, edges[task], edges[np.int64(task) + 1])


class Coded(NamedTuple):
    """The values of each slot in some columns as codes, which differ from column to column."""

    codes: Array  # int64 (n_slots, n_columns)
    known: Array  # bool (n_slots,)
    n: int  # codes of all columns


@njit(allocates=True)
def columns_of_users(slots, indptr, cuts, coded, found, first, last):
    """Write the diversity of some users."""
    codes, known, n_codes = coded
    counts, n_columns = np.zeros(n_codes, np.int64), codes.shape[1]
    for u in range(first, last):
        n, at, differing = 0, indptr[u], 0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                if known[slot]:
                    for i in range(n_columns):
                        code = codes[slot, i]
                        differing += n - counts[code]
                        counts[code] += 1
                    n += 1
                at += 1
            found[0, c, u] = differing / (n * (n - 1) / 2) if n > 1 else 0.0
            found[1, c, u] = n
        for at in range(indptr[u], indptr[u + 1]):
            if known[slots[at]]:
                for i in range(n_columns):
                    counts[codes[slots[at], i]] = 0


@njit(parallel=True, cache=True)
def diversity_of_columns(first, last, edges, slots, indptr, cuts, codes, known, n, found):
    """Write the mean number of columns of `Coded` in which pairs differ."""
    for task in prange(first, last):
        columns_of_users(slots, indptr, cuts, Coded(codes, known, n), found, edges[task], edges[np.int64(task) + 1])


class Sets(NamedTuple):
    """The set of categories of each slot, and the categories of each set, ascending."""

    of_slots: Array  # int64 (n_slots,); -1 without categories
    indptr: Array  # int64 (n_sets + 1,)
    codes: Array


@njit(forceinline=True)
def jaccard_distance(indptr, codes, a, b):
    """Return 1 - the share of common categories of two sets."""
    i, j, common = indptr[a], indptr[b], 0
    end_i, end_j = indptr[a + 1], indptr[b + 1]
    size = end_i - i + end_j - j
    while i < end_i and j < end_j:
        if codes[i] == codes[j]:
            common += 1
            i += 1
            j += 1
        elif codes[i] < codes[j]:
            i += 1
        else:
            j += 1
    return 1 - common / (size - common)


@njit(allocates=True)
def sets_of_users(slots, indptr, cuts, sets, found, first, last):
    """Write the diversity of some users."""
    of_slots, ends, codes = sets
    n_sets = len(ends) - 1
    counts, seen = np.zeros(n_sets, np.int64), np.empty(n_sets, np.int64)
    for u in range(first, last):
        n, n_seen, at, total = 0, 0, indptr[u], 0.0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                own = of_slots[slots[at]]
                if own >= 0:
                    for i in range(n_seen):
                        if seen[i] != own:
                            total += counts[seen[i]] * jaccard_distance(ends, codes, own, seen[i])
                    if counts[own] == 0:
                        seen[n_seen] = own
                        n_seen += 1
                    counts[own] += 1
                    n += 1
                at += 1
            found[0, c, u] = total / (n * (n - 1) / 2) if n > 1 else 0.0
            found[1, c, u] = n
        for i in range(n_seen):
            counts[seen[i]] = 0


@njit(parallel=True, cache=True)
def diversity_of_sets(first, last, edges, slots, indptr, cuts, of_slots, ends, codes, found):
    """Write the mean Jaccard distance of `Sets`."""
    for task in prange(first, last):
        sets_of_users(slots, indptr, cuts, Sets(of_slots, ends, codes), found, edges[task], edges[np.int64(task) + 1])


class Past(NamedTuple):
    """Items of lists and of histories by slot."""

    slots: Array
    indptr: Array
    past_slots: Array
    past_indptr: Array


@njit(allocates=True)
def distance_of_users(lists, vectors, past_vectors, distances, counts, first, last):
    """Write the distances of some users."""
    slots, indptr, past_slots, past_indptr = lists
    (matrix, kinds), (past_matrix, past_kinds) = vectors, past_vectors
    width = matrix.shape[1]
    total = np.zeros(width)
    for u in range(first, last):
        total[:] = 0.0
        n = 0
        for at in range(past_indptr[u], past_indptr[u + 1]):
            slot = past_slots[at]
            if past_kinds[slot] > 0:
                n += 1
                for i in range(width):
                    total[i] += past_matrix[slot, i]
        counts[u] = n
        for at in range(indptr[u], indptr[u + 1]):
            slot, dot = slots[at], 0.0
            if n > 0 and kinds[slot] > 0:
                for i in range(width):
                    dot += matrix[slot, i] * total[i]
                distances[at] = 1 - dot / n
            else:
                distances[at] = 0.0


@njit(parallel=True, cache=True)
def distance_to_past(
    first, last, edges, slots, indptr, past, past_indptr, matrix, kinds, past_matrix, past_kinds, distances, counts
):
    """Write 1 - the mean cosine of each row to the history of its user; 0 without vectors on one side.

    `counts` (n_users,) takes the rows of histories with a vector. The others are those of `Past`, and of two `Dense`.
    """
    for task in prange(first, last):
        lists, vectors = Past(slots, indptr, past, past_indptr), Dense(matrix, kinds)
        past_vectors = Dense(past_matrix, past_kinds)
        distance_of_users(lists, vectors, past_vectors, distances, counts, edges[task], edges[np.int64(task) + 1])

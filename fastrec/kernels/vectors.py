"""Distances between the items of a list, from their vectors or their sets of categories.

Items are slots. Vectors are normalised to length 1, zeros stay. Each function works on a range of users, so that ranges
can run in threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import helper

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


@helper
def mean_distance(square, n, n_zeros):
    """Return the mean of 1 - cosine over pairs of n vectors, from the square of the length of their sum."""
    return 1 - (square - (n - n_zeros)) / (n * (n - 1)) if n > 1 else 0.0


def diversity_of_dense(slots, indptr, cuts, vectors, found, first, last):
    """Write the mean distance of pairs up to each cut-off, and the items with a vector: found (2, n_cuts, n_users)."""
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


def diversity_of_sparse(slots, indptr, cuts, vectors, found, first, last):
    """As `diversity_of_dense`, for sparse vectors."""
    total = np.zeros(vectors.n)
    for u in range(first, last):
        n, n_zeros, at, square = 0, 0, indptr[u], 0.0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                if vectors.kinds[slot] > 0:
                    n += 1
                    n_zeros += vectors.kinds[slot] == 1
                    for i in range(vectors.indptr[slot], vectors.indptr[slot + 1]):
                        column, value = vectors.columns[i], vectors.values[i]
                        square += value * (2 * total[column] + value)
                        total[column] += value
                at += 1
            found[0, c, u] = mean_distance(square, n, n_zeros)
            found[1, c, u] = n
        for at in range(indptr[u], indptr[u + 1]):
            for i in range(vectors.indptr[slots[at]], vectors.indptr[slots[at] + 1]):
                total[vectors.columns[i]] = 0.0


class Coded(NamedTuple):
    """The values of each slot in some columns as codes, which differ from column to column."""

    codes: Array  # int64 (n_slots, n_columns)
    known: Array  # bool (n_slots,)
    n: int  # codes of all columns


def diversity_of_columns(slots, indptr, cuts, coded, found, first, last):
    """Write the mean number of columns in which pairs differ, and the number of items with columns."""
    counts = np.zeros(coded.n, np.int64)
    n_columns = coded.codes.shape[1]
    for u in range(first, last):
        n, at, differing = 0, indptr[u], 0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = slots[at]
                if coded.known[slot]:
                    for i in range(n_columns):
                        code = coded.codes[slot, i]
                        differing += n - counts[code]
                        counts[code] += 1
                    n += 1
                at += 1
            found[0, c, u] = differing / (n * (n - 1) / 2) if n > 1 else 0.0
            found[1, c, u] = n
        for at in range(indptr[u], indptr[u + 1]):
            if coded.known[slots[at]]:
                for i in range(n_columns):
                    counts[coded.codes[slots[at], i]] = 0


class Sets(NamedTuple):
    """The set of categories of each slot, and the categories of each set, ascending."""

    of_slots: Array  # int64 (n_slots,); -1 without categories
    indptr: Array  # int64 (n_sets + 1,)
    codes: Array


@helper
def jaccard_distance(sets, a, b):
    """Return 1 - the share of common categories of two sets."""
    i, j, common = sets.indptr[a], sets.indptr[b], 0
    end_i, end_j = sets.indptr[a + 1], sets.indptr[b + 1]
    size = end_i - i + end_j - j
    while i < end_i and j < end_j:
        if sets.codes[i] == sets.codes[j]:
            common += 1
            i += 1
            j += 1
        elif sets.codes[i] < sets.codes[j]:
            i += 1
        else:
            j += 1
    return 1 - common / (size - common)


def diversity_of_sets(slots, indptr, cuts, sets, found, first, last):
    """Write the mean Jaccard distance of pairs up to each cut-off, and the number of items with categories."""
    n_sets = len(sets.indptr) - 1
    counts, seen = np.zeros(n_sets, np.int64), np.empty(n_sets, np.int64)
    for u in range(first, last):
        n, n_seen, at, total = 0, 0, indptr[u], 0.0
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                own = sets.of_slots[slots[at]]
                if own >= 0:
                    for i in range(n_seen):
                        if seen[i] != own:
                            total += counts[seen[i]] * jaccard_distance(sets, own, seen[i])
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


class Past(NamedTuple):
    """Items of lists and of histories by slot."""

    slots: Array
    indptr: Array
    past_slots: Array
    past_indptr: Array


def distance_to_past(lists, vectors, past_vectors, distances, counts, first, last):
    """Write 1 - the mean cosine of each row to the history of its user; 0 without vectors on one side.

    `counts` (n_users,) takes the rows of histories with a vector.
    """
    width = vectors.matrix.shape[1]
    total = np.zeros(width)
    for u in range(first, last):
        total[:] = 0.0
        n = 0
        for at in range(lists.past_indptr[u], lists.past_indptr[u + 1]):
            slot = lists.past_slots[at]
            if past_vectors.kinds[slot] > 0:
                n += 1
                for i in range(width):
                    total[i] += past_vectors.matrix[slot, i]
        counts[u] = n
        for at in range(lists.indptr[u], lists.indptr[u + 1]):
            slot, dot = lists.slots[at], 0.0
            if n > 0 and vectors.kinds[slot] > 0:
                for i in range(width):
                    dot += vectors.matrix[slot, i] * total[i]
                distances[at] = 1 - dot / n
            else:
                distances[at] = 0.0

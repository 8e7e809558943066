"""Estimates of functions of a rank among all items from the rank among a sample of them (Krichene & Rendle 2020)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit

Array = np.ndarray[Any, Any]
NEGLIGIBLE = 2.0**-70  # a chance that changes no bit of a sum of chances


class Functions(NamedTuple):
    """Functions of a rank: the weight of the rank up to a cut-off, then 0."""

    weights: Array  # float64 (n_weights, longest rank + 1): weight of rank r at [r]
    of_rank: Array  # int64 (n_functions,): the row of weights
    known: Array  # int64 (n_functions,): items that are known to be above: the rank is 1 + these + other items above
    cutoffs: Array  # int64 (n_functions,)


@njit
def step_chances(chances, above, n_others, n_drawn):
    """Turn the chances that 0, 1, ... drawn items are above, if `above` of the others are, into those for one more.

    The item that moves is drawn with chance (n_drawn - s) / (n_others - above), if s of the items above are.
    """
    left = n_others - above
    for s in range(n_drawn, 0, -1):
        stays = chances[s] * ((left - n_drawn + s) / left)
        chances[s] = stays + chances[s - 1] * ((n_drawn - s + 1) / left)
    chances[0] *= (left - n_drawn) / left


@njit
def add_rank(chances, low, high, squares, sums):
    """Add the products of the chances of one rank, and the chances themselves."""
    for s in range(low, high):
        own = chances[s]
        sums[s] += own
        for t in range(low, s + 1):
            squares[s, t] += own * chances[t]


@njit
def mirror(squares, sums, n_drawn):
    """Add the sums over ranks in the other half, counted from the last: s drawn items above are n_drawn - s below."""
    for s in range(n_drawn + 1):
        other = n_drawn - s
        if s <= other:
            sums[s] += sums[other]
            sums[other] = sums[s]
        for t in range(s + 1):
            if s + t <= n_drawn:  # the mirror of [s, t] is [n_drawn - t, n_drawn - s]
                squares[s, t] += squares[n_drawn - t, other]
                squares[n_drawn - t, other] = squares[s, t]


@njit
def add_functions(chances, low, high, above, functions, out):
    """Add the chances of one rank times the functions of it."""
    for f in range(len(functions.cutoffs)):
        rank = 1 + functions.known[f] + above
        if rank <= functions.cutoffs[f]:
            weight = functions.weights[functions.of_rank[f], rank]
            for s in range(low, high):
                out[f, s] += chances[s] * weight


@njit
def add_mirrored(chances, low, high, above, n_drawn, functions, out):
    """Add the chances of a rank in the other half, given those of its mirror, times the functions of it."""
    for f in range(len(functions.cutoffs)):
        rank = 1 + functions.known[f] + above
        if rank <= functions.cutoffs[f]:
            weight = functions.weights[functions.of_rank[f], rank]
            for s in range(low, high):
                out[f, n_drawn - s] += chances[s] * weight


@njit
def decompose(matrix, n):
    """Replace the lower half of a symmetric matrix by that of its Cholesky decomposition."""
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j]
            for t in range(j):
                total -= matrix[i, t] * matrix[j, t]
            matrix[i, j] = np.sqrt(total) if i == j else total / matrix[j, j]


@njit
def solve(matrix, n, values):
    """Replace values b by the solution of M x = b, given the Cholesky decomposition of M."""
    for i in range(n):
        for t in range(i):
            values[i] -= matrix[i, t] * values[t]
        values[i] /= matrix[i, i]
    for i in range(n - 1, -1, -1):
        for t in range(i + 1, n):
            values[i] -= matrix[t, i] * values[t]
        values[i] /= matrix[i, i]


@njit(cache=True, allocates=True)
def estimate_functions(n_others, n_drawn, gamma, functions, out):
    """Write the estimate of each function for 0 to n_drawn drawn items above, float64 (n_functions, n_drawn + 1).

    `n_drawn` of the `n_others` other items are drawn uniformly, without replacement. The estimates have the least
    squared bias plus gamma times variance, on average over all ranks among these items.
    """
    size = n_drawn + 1
    chances, sums = np.zeros(size), np.zeros(size)
    matrix = np.zeros((size, size))
    chances[0] = 1.0
    out[:] = 0.0
    low, high = 0, 1
    for above in range(n_others // 2 + 1):
        while low < high - 1 and chances[low] < NEGLIGIBLE:
            low += 1
        while high < size and chances[high] >= NEGLIGIBLE:
            high += 1
        if 2 * above < n_others:
            add_rank(chances, low, high, matrix, sums)
            add_mirrored(chances, low, high, n_others - above, n_drawn, functions, out)
        add_functions(chances, low, high, above, functions, out)
        if 2 * above + 1 < n_others:
            step_chances(chances, above, n_others, n_drawn)
    mirror(matrix, sums, n_drawn)
    if n_others % 2 == 0:  # the rank in the middle is its own mirror
        add_rank(chances, low, high, matrix, sums)
    for s in range(size):
        for t in range(s + 1):
            matrix[s, t] *= 1.0 - gamma
        matrix[s, s] += gamma * sums[s]
    decompose(matrix, size)
    for f in range(len(out)):
        solve(matrix, size, out[f])

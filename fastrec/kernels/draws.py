"""Draws of items without replacement, uniformly or in proportion to weights.

Random numbers are a function of a seed, a row and a counter, so the draws of a user do not depend on other users.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit
from .resampling import STEP, random_word

Array = np.ndarray[Any, Any]


class Draw(NamedTuple):
    """What to draw for the users of a model."""

    n: int  # items for each user; 0: none are drawn, and the list is the whole catalogue
    seed: int
    rows: Array  # int64 (n_users,): rows of the model
    columns: Array  # int64 (n_items,): the items in an order that no rule for ties changes; candidates renumber them
    weights: Array  # int64 (n_items,): an item of weight 0 is not drawn; (0,): each has the same chance


@njit
def random_start(seed, row):
    """Return the counter from which the random numbers of a row begin."""
    return random_word(random_word(np.uint64(seed)) + np.uint64(row + 1) * np.uint64(STEP))


@njit
def random_below(start, nth, size):
    """Return the nth random number of a row, from 0 to size - 1; their chances differ by at most 1 / 2^64."""
    return np.int64(random_word(start + np.uint64(nth + 1) * np.uint64(STEP)) % np.uint64(size))


@njit
def draw_uniform(pool, n_pool, n, start):
    """Move n items, each as likely as any other, to the front of a pool of items (Fisher & Yates 1938)."""
    for nth in range(n):
        at = nth + random_below(start, nth, n_pool - nth)
        pool[nth], pool[at] = pool[at], pool[nth]


@njit
def sum_tree(tree, n):
    """Turn weights in tree[1..n] into a tree of partial sums (Fenwick 1994); return the sum."""
    total = np.int64(0)
    for at in range(1, n + 1):
        total += tree[at]
    for at in range(1, n + 1):
        parent = at + (at & -at)
        if parent <= n:
            tree[parent] += tree[at]
    return total


@njit
def find_in_tree(tree, n, target):
    """Return the item, from 0, in whose share of the sum a number lies."""
    at, step = 0, 1
    while step * 2 <= n:
        step *= 2
    while step > 0:
        if at + step <= n and tree[at + step] <= target:
            at += step
            target -= tree[at]
        step >>= 1
    return at


@njit
def draw_weighted(pool, n_pool, n, weights, tree, start):
    """Move n items to the front of a pool, drawn one after the other in proportion to the weights of those left.

    The weights are those of columns, all above 0 in the pool. The pool has room for n more items, the tree for n_pool
    + 1 sums.
    """
    for at in range(n_pool):
        tree[at + 1] = weights[pool[at]]
    left = sum_tree(tree, n_pool)
    for nth in range(n):
        at = find_in_tree(tree, n_pool, random_below(start, nth, left))
        weight = weights[pool[at]]
        left -= weight
        place = at + 1
        while place <= n_pool:
            tree[place] -= weight
            place += place & -place
        pool[n_pool + nth] = pool[at]
    for nth in range(n):
        pool[nth] = pool[n_pool + nth]

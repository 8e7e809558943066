"""Draws of items and estimates of the whole catalogue in plain Python, from their definitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def random_word(counter: int) -> int:
    """Return the output function of SplitMix64 (Steele, Lea & Flood 2014)."""
    z = ((counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def numbers_of(seed: int, row: int) -> Iterable[int]:
    """Yield the random numbers of a row of a model."""
    start = random_word((random_word(seed) + (row + 1) * STEP) & MASK)
    for nth in itertools.count(1):
        yield random_word((start + nth * STEP) & MASK)


def draw_items(left: Sequence[int], n: int, seed: int, row: int, weights: Mapping[int, int] | None = None) -> list[int]:
    """Return n of the items that are left, or all of them, drawn one after the other."""
    numbers = iter(numbers_of(seed, row))
    if weights is None:
        pool = list(left)
        n = min(n, len(pool))
        for nth in range(n):
            at = nth + next(numbers) % (len(pool) - nth)
            pool[nth], pool[at] = pool[at], pool[nth]
        return pool[:n]
    pool = [item for item in left if weights[item]]
    drawn: list[int] = []
    while pool and len(drawn) < n:
        target = next(numbers) % sum(weights[item] for item in pool)
        for item in pool:
            if target < weights[item]:
                break
            target -= weights[item]
        drawn.append(item)
        pool.remove(item)
    return drawn


def estimate_weights(
    listed: Sequence[tuple[int, float]], truth: Iterable[int], n_others: int, weight: Callable[..., float]
) -> dict[int, float]:
    """Return {relevant item: weight of its estimated rank in the catalogue}, the mean over all orders of equal scores.

    `listed` are items and scores of the sampled list, `weight` takes a rank, which may lie between whole ranks.
    """
    known = set(truth)
    n_drawn = sum(item not in known for item, _ in listed)
    found = {}
    for item, score in listed:
        if item not in known:
            continue
        others = [other for other, own in listed if own == score and other != item]
        above = [other for other, own in listed if own > score]
        values = []
        for order in itertools.permutations([item, *others]):
            first = [*above, *order[: order.index(item)]]
            of_truth = sum(other in known for other in first)
            drawn = Fraction(n_others * (len(first) - of_truth), n_drawn) if n_drawn else 0
            values.append(weight(1 + of_truth + drawn))
        found[item] = math.fsum(values) / len(values)
    return found

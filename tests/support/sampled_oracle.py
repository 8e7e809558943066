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


def chance(n_others: int, n_drawn: int, above: int, above_drawn: int) -> Fraction:
    """Return the chance that `above_drawn` of the drawn items are among the `above` first of the other items."""
    ways = math.comb(above, above_drawn) * math.comb(n_others - above, n_drawn - above_drawn)
    return Fraction(ways, math.comb(n_others, n_drawn))


def solve(matrix: list[list[float]], values: list[float]) -> list[float]:
    """Solve equations by Gauss's elimination, with the largest pivot of each column."""
    rows = [[*row, value] for row, value in zip(matrix, values, strict=True)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda row: abs(rows[row][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(i + 1, n):
            share = rows[j][i] / rows[i][i]
            rows[j] = [a - share * b for a, b in zip(rows[j], rows[i], strict=True)]
    found = [0.0] * n
    for i in reversed(range(n)):
        found[i] = (rows[i][n] - sum(rows[i][j] * found[j] for j in range(i + 1, n))) / rows[i][i]
    return found


def table_of(function: Callable[[int], float], n_others: int, n_drawn: int, gamma: float) -> list[float]:
    """Return the estimates f that minimise squared bias plus gamma times variance over ranks of the same weight.

    f = ((1 - gamma) A'A + gamma diag(c))^-1 A'b, with A[r, s] = sqrt(p) P(s | r), b[r] = sqrt(p) function(r) and
    c[s] = sum of p P(s | r).
    """
    p = 1 / (n_others + 1)
    rows = [[float(chance(n_others, n_drawn, a, s)) for s in range(n_drawn + 1)] for a in range(n_others + 1)]
    a_matrix = [[math.sqrt(p) * value for value in row] for row in rows]
    b = [math.sqrt(p) * function(1 + a) for a in range(n_others + 1)]
    size = n_drawn + 1
    matrix = [[(1 - gamma) * sum(row[s] * row[t] for row in a_matrix) for t in range(size)] for s in range(size)]
    for s in range(size):
        matrix[s][s] += gamma * sum(p * row[s] for row in rows)
    return solve(matrix, [sum(row[s] * own for row, own in zip(a_matrix, b, strict=True)) for s in range(size)])


class Estimated:
    """Estimates of the sum over relevant items of a function of their rank in the catalogue."""

    def __init__(self, correct: str, gamma: float = 0.1) -> None:
        self.correct, self.gamma = correct, gamma
        self._tables: dict[tuple[int, ...], list[float]] = {}

    def of_user(
        self, listed: Sequence[tuple[int, float]], truth: Iterable[int], n_others: int, function: Callable[..., float]
    ) -> dict[int, float]:
        """Return {relevant item: estimate}, the mean over all orders of equal scores.

        `listed` are items and scores of the sampled list, `function` takes a rank, which may lie between whole ranks.
        """
        known = set(truth)
        n_drawn = sum(item not in known for item, _ in listed)
        found = {}
        for item, score in listed:
            if item not in known:
                continue
            others = [(other, own) for other, own in listed if own == score and other != item]
            above = [other for other, own in listed if own > score]
            values = []
            for order in itertools.permutations([item, *(other for other, _ in others)]):
                first = [*above, *order[: order.index(item)]]
                of_truth = sum(other in known for other in first)
                values.append(self._estimate(of_truth, len(first) - of_truth, n_others, n_drawn, function))
            found[item] = math.fsum(values) / len(values)
        return found

    def _estimate(self, known: int, drawn: int, n_others: int, n_drawn: int, function: Callable[..., float]) -> float:
        if self.correct == "rank":
            return function(1 + known + (Fraction(n_others * drawn, n_drawn) if n_drawn else 0))
        key = (known, n_others, n_drawn, id(function))
        if key not in self._tables:
            self._tables[key] = table_of(lambda rank: function(rank + known), n_others, n_drawn, self.gamma)
        return self._tables[key][drawn]

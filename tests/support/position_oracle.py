"""Clicks by rank and position bias in plain Python, row by row, from their published definitions."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from scipy.stats import t as student

__all__ = ["Row", "adjacent", "ctr", "em", "interval_over_users", "pivot", "ratio_over_users", "score_interval"]

Z = 1.959963984540054  # of 95 %


class Row(NamedTuple):
    click: int
    rank: int
    query: Hashable
    item: Hashable


def score_interval(clicks: float, shown: float) -> tuple[float, float]:
    """Return the shares p with |clicks / shown - p| = z sqrt(p (1 - p) / shown) (Wilson 1927): of a quadratic."""
    if not shown:
        return math.nan, math.nan
    a, b, c = 1 + Z * Z / shown, -(2 * clicks / shown + Z * Z / shown), (clicks / shown) ** 2
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def interval_over_users(rows: Sequence[tuple[int, Hashable]]) -> tuple[float, float]:
    """Return the score interval of as many rows as users are worth (Korn & Graubard 1998), with Student's quantile."""
    ratio, error = ratio_over_users(rows)
    shown = Counter(user for _, user in rows)
    if len(shown) < 2:
        return math.nan, math.nan
    squared = ratio * (1 - ratio)
    worth = len(rows) ** 2 / sum(n * n for n in shown.values())
    if squared:
        worth = squared / error**2 if error else math.inf
    worth = min(worth, len(rows)) * (Z / student.ppf(0.975, len(shown) - 1)) ** 2
    return score_interval(ratio * worth, worth)


def ratio_over_users(rows: Iterable[tuple[int, Hashable]]) -> tuple[float, float]:
    """Return the ratio of clicks to rows (click, user), and its error, for users drawn with all their rows."""
    clicks, shown = Counter(), Counter()
    for click, user in rows:
        clicks[user] += click
        shown[user] += 1
    if not shown:
        return math.nan, math.nan
    ratio = Fraction(sum(clicks.values()), sum(shown.values()))
    if len(shown) < 2:
        return float(ratio), math.nan
    residuals = [(clicks[user] - ratio * shown[user]) / (Fraction(sum(shown.values())) / len(shown)) for user in shown]
    variance = sum(residual**2 for residual in residuals) / (len(shown) - 1) / len(shown)
    return float(ratio), math.sqrt(variance)


def highest(rows: Sequence[Row]) -> int:
    return max((row.rank for row in rows), default=0)


def rates(rows: Sequence[Row]) -> dict[tuple[Hashable, Hashable], dict[int, Fraction]]:
    """Return the click-through rate of each (query, item) at each rank."""
    found: dict[tuple[Hashable, Hashable], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.query, row.item][row.rank].append(row.click)
    return {
        pair: {rank: Fraction(sum(clicks), len(clicks)) for rank, clicks in by.items()} for pair, by in found.items()
    }


def ratio_of_shared(rows: Sequence[Row], rank: int, other: int) -> Fraction | None:
    """Agarwal et al. 2019, eq. 6: rates at both ranks, summed over the pairs that were shown at both."""
    shared = [by for by in rates(rows).values() if rank in by and other in by]
    below = sum((by[other] for by in shared), Fraction(0))
    return sum((by[rank] for by in shared), Fraction(0)) / below if below else None


def first_is_known(rows: Sequence[Row]) -> bool:
    return any(row.rank == 1 for row in rows)


def pivot(rows: Sequence[Row]) -> list[float]:
    curve = [ratio_of_shared(rows, rank, 1) for rank in range(2, highest(rows) + 1)]
    return [1.0 if first_is_known(rows) else math.nan, *(math.nan if own is None else float(own) for own in curve)]


def adjacent(rows: Sequence[Row]) -> list[float]:
    curve = [1.0 if first_is_known(rows) else math.nan]
    product: Fraction | None = Fraction(1) if first_is_known(rows) else None
    for rank in range(2, highest(rows) + 1):
        step = ratio_of_shared(rows, rank, rank - 1)
        product = None if product is None or step is None else product * step
        curve.append(math.nan if product is None else float(product))
    return curve


def ctr(rows: Sequence[Row]) -> list[float]:
    """Joachims et al. 2017, of a random order: the rate of a rank over that of rank 1."""
    clicks, shown = Counter(), Counter()
    for row in rows:
        clicks[row.rank] += row.click
        shown[row.rank] += 1
    curve = [1.0 if shown[1] else math.nan]
    for rank in range(2, highest(rows) + 1):
        known = shown[rank] and clicks[1]
        curve.append(float(Fraction(clicks[rank] * shown[1], shown[rank] * clicks[1])) if known else math.nan)
    return curve


class Parameter:
    """PyClick's `ParamEM`: one click in two impressions before any row."""

    def __init__(self) -> None:
        self.numerator, self.denominator = 1.0, 2.0

    def value(self) -> float:
        return self.numerator / self.denominator


def em(rows: Sequence[Row], n_rounds: int) -> list[float]:
    """PyClick's `PBM`, row by row: `PBMAttrEM.update` and `PBMExamEM.update`. Its examination, not relative to rank 1.

    PyClick knows ranks 1 to 10 only, and no parameter above 1 - 1e-6, which needs a million clicks in a row.
    """
    attraction: dict[Hashable, Parameter] = defaultdict(Parameter)
    examination: dict[int, Parameter] = defaultdict(Parameter)
    for _ in range(n_rounds):
        new_attraction: dict[Hashable, Parameter] = defaultdict(Parameter)
        new_examination: dict[int, Parameter] = defaultdict(Parameter)
        for row in rows:
            pair = row.query, row.item
            attr, exam = attraction[pair].value(), examination[row.rank].value()
            own, of_rank = new_attraction[pair], new_examination[row.rank]
            own.numerator += 1 if row.click else (1 - exam) * attr / (1 - exam * attr)
            own.denominator += 1
            of_rank.numerator += 1 if row.click else (1 - attr) * exam / (1 - exam * attr)
            of_rank.denominator += 1
        attraction, examination = new_attraction, new_examination
    return [examination[rank].value() if rank in examination else math.nan for rank in range(1, highest(rows) + 1)]

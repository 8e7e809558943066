"""The estimators of the value of a policy in plain Python, from their definitions, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import NamedTuple


class Row(NamedTuple):
    """A row of a log; predictions are 0 where there are none."""

    reward: float
    logged: float
    new: float
    shown: float = 0.0
    expected: float = 0.0


Slate = Sequence[Row]
Fractions = list[Fraction]


class Found(NamedTuple):
    value: float
    std_error: float
    effective_sample_size: float
    mean_weight: float
    mean_weight_error: float
    max_weight: float
    clipped: int
    size: float  # of the terms of the value, to which rounding is relative
    error_size: float  # of the terms of the error
    weight_size: float  # of the error of the mean weight


def ratio(row: Row) -> Fraction:
    return Fraction(row.new) / Fraction(row.logged)


def of_rows(slate: Slate) -> Fractions:
    return [ratio(row) for row in slate]


def running(slate: Slate) -> Fractions:
    return [math.prod(of_rows(slate[: t + 1]), start=Fraction(1)) for t in range(len(slate))]


def of_slate(slate: Slate) -> Fractions:
    return [math.prod(of_rows(slate), start=Fraction(1))]


WEIGHTS: dict[str, Callable[[Slate], Fractions]] = {
    **dict.fromkeys(("ips", "snips", "iips", "sniips", "dr"), of_rows),
    **dict.fromkeys(("rips", "snrips", "cascade_dr"), running),
    **dict.fromkeys(("sips", "snsips"), of_slate),
}
ESTIMATORS = tuple(WEIGHTS)


def cut(weight: Fraction, clip: float | None) -> Fraction:
    return weight if clip is None else min(weight, Fraction(clip))


def earned(name: str, slate: Slate, clip: float | None) -> Fraction:
    """What a slate earns, before any normalisation."""
    weights = [cut(own, clip) for own in WEIGHTS[name](slate)]
    if len(WEIGHTS[name]([])) == 1:
        return weights[0] * sum((Fraction(row.reward) for row in slate), Fraction(0))
    total = Fraction(0)
    before = Fraction(1)
    for row, weight in zip(slate, weights, strict=True):
        if name in ("dr", "cascade_dr"):
            total += weight * (Fraction(row.reward) - Fraction(row.shown)) + before * Fraction(row.expected)
            before = weight if name == "cascade_dr" else before
        else:
            total += weight * Fraction(row.reward)
    return total


def influences(name: str, slates: Sequence[Slate], clip: float | None) -> tuple[Fraction | None, Fractions]:
    """The value, and what each slate adds to n times the value, to first order."""
    n = len(slates)
    own = [earned(name, slate, clip) for slate in slates]
    if name in ("ips", "dr", "snips", "snsips"):
        if name in ("ips", "dr"):
            parts = [Fraction(len(slate)) for slate in slates]
        else:
            parts = [sum((cut(w, clip) for w in WEIGHTS[name](slate)), Fraction(0)) for slate in slates]
        if not sum(parts):
            return None, []
        value = sum(own) / sum(parts)
        return value, [value + (a - value * b) * n / sum(parts) for a, b in zip(own, parts, strict=True)]
    if name in ("sniips", "snrips"):
        found = [Fraction(0)] * n
        for p in range(max(map(len, slates), default=0)):
            there = [s for s in range(n) if len(slates[s]) > p]
            weight = {s: cut(WEIGHTS[name](slates[s])[p], clip) for s in there}
            if not sum(weight.values()):
                return None, []
            mean = sum(weight[s] * Fraction(slates[s][p].reward) for s in there) / sum(weight.values())
            for s in there:
                rest = weight[s] * (Fraction(slates[s][p].reward) - mean)
                found[s] += mean + len(there) * rest / sum(weight.values())
        return sum(found) / n, found
    return sum(own, Fraction(0)) / n, own


def sizes(name: str, slates: Sequence[Slate], clip: float | None) -> Fractions:
    """The size of the terms that each slate adds to n times the value."""
    n = len(slates)
    bare = [
        [Row(abs(row.reward), row.logged, row.new, -abs(row.shown), abs(row.expected)) for row in own] for own in slates
    ]
    own = [earned(name, slate, clip) for slate in bare]
    if name in ("ips", "dr"):
        parts = [Fraction(len(slate)) for slate in slates]
    elif name in ("snips", "snsips"):
        parts = [sum((cut(w, clip) for w in WEIGHTS[name](slate)), Fraction(0)) for slate in slates]
    elif name in ("sniips", "snrips"):
        found = [Fraction(0)] * n
        for p in range(max(map(len, slates), default=0)):
            there = [s for s in range(n) if len(slates[s]) > p]
            weight = {s: cut(WEIGHTS[name](slates[s])[p], clip) for s in there}
            mean = sum(weight[s] * Fraction(bare[s][p].reward) for s in there) / sum(weight.values())
            for s in there:
                found[s] += mean + len(there) * weight[s] * (Fraction(bare[s][p].reward) + mean) / sum(weight.values())
        return found
    else:
        return own
    value = sum(own) / sum(parts)
    return [(a + value * b) * n / sum(parts) for a, b in zip(own, parts, strict=True)]


def length_of(parts: Fractions) -> float:
    """The root of the sum of squares, divided by the number of values."""
    return root(sum(part * part for part in parts) / len(parts) ** 2) if parts else 0.0


def spread(parts: Fractions) -> float:
    """The standard error of the mean of values."""
    n = len(parts)
    if n < 2:
        return math.nan
    mean = sum(parts) / n
    variance = sum((part - mean) ** 2 for part in parts) / (n * (n - 1))
    return root(variance)


def root(value: Fraction) -> float:
    """The square root of a fraction of any size."""
    if not value:
        return 0.0
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2
    return math.ldexp(math.sqrt(value / Fraction(4) ** shift), shift)


def spread_over_users(parts: Fractions, users: Sequence[Hashable]) -> float:
    """The standard error of the mean of values that are drawn with all others of their user (Cochran 1977, 6.3)."""
    mean = sum(parts) / len(parts)
    rests: dict[Hashable, Fraction] = {}
    for part, user in zip(parts, users, strict=True):
        rests[user] = rests.get(user, Fraction(0)) + part - mean
    if len(rests) < 2:
        return math.nan
    squares = sum(rest**2 for rest in rests.values())
    return root(squares * len(rests) / (len(rests) - 1) / len(parts) ** 2)


def difference(
    name: str, slates: Sequence[Slate], baseline: Sequence[Slate], users: Sequence[Hashable], clip: float | None = None
) -> tuple[float, float]:
    """The difference of the values of two policies on the same slates, and its error over users."""
    value, parts = influences(name, slates, clip)
    other, others = influences(name, baseline, clip)
    if value is None or other is None:
        return math.nan, math.nan
    return float(value - other), spread_over_users([a - b for a, b in zip(parts, others, strict=True)], users)


def policy_value(name: str, slates: Sequence[Slate], clip: float | None = None) -> Found:
    n = len(slates)
    weights = [WEIGHTS[name](slate) for slate in slates]
    flat = [own for of in weights for own in of]
    used = [cut(own, clip) for own in flat]
    square = sum(own * own for own in used)
    size = float(sum(used) ** 2 / square) if square else 0.0 if flat else math.nan
    value, parts = influences(name, slates, clip) if n else (None, [])
    size_of = [] if value is None else sizes(name, slates, clip)
    mean, mean_error, mean_of = math.nan, math.nan, Fraction(0)
    if flat:
        mean_of = sum(flat) / len(flat)
        mean = float(mean_of)
        mean_error = spread([(sum(of) - mean_of * len(of)) * Fraction(n, len(flat)) for of in weights])
    return Found(
        math.nan if value is None else float(value),
        math.nan if value is None else spread(parts),
        size,
        mean,
        mean_error,
        float(max(flat)) if flat else math.nan,
        sum(
            len(slate) if len(WEIGHTS[name]([])) == 1 else 1
            for slate, of in zip(slates, weights, strict=True)
            for own in of
            if clip is not None and own > Fraction(clip)
        ),
        float(sum(size_of) / n) if n else 0.0,
        length_of(size_of),
        length_of([Fraction(n, len(flat)) * (sum(of) + mean_of * len(of)) for of in weights]) if flat else 0.0,
    )

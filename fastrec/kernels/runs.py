"""Formulas of runs of equal scores: for the rows of a user in kernels, and for all rows at once.

`distance`, `precision_in_run` and `log_series` branch on no value: `fastrec.scored` calls them with arrays, too.
"""

from __future__ import annotations

import math

import numpy as np

from .codes import STEP, TRAPEZOID
from .jit import njit

SPLIT = 2.0**27 + 1  # factor that splits a double into two halves of its digits
NO_SUM = (0.0, 0.0, 0.0)
SERIES_BELOW = 1e-3  # from here down, `log_series` is exact and the logarithm loses digits


@njit
def two_sum(one, other):
    """Return the rounded sum and its rounding error (Knuth 1997, The Art of Computer Programming 2, 4.2.2)."""
    whole = one + other
    new = whole - one
    return whole, (one - (whole - new)) + (other - new)


@njit
def added(parts, value):
    """Return a sum in three parts with a value added.

    The second part holds the rounding error of the first, the third that of the second.
    """
    first, rest = two_sum(parts[0], value)
    second, rest = two_sum(parts[1], rest)
    return first, second, parts[2] + rest


@njit
def add_product(parts, one, other):
    """Add the product of two numbers of moderate size, and its rounding error."""
    whole = one * other
    one_high, other_high = SPLIT * one, SPLIT * other
    one_high -= one_high - one
    other_high -= other_high - other
    one_low, other_low = one - one_high, other - other_high
    rest = one_low * other_low - (((whole - one_high * other_high) - one_low * other_high) - one_high * other_low)
    return added(added(parts, whole), rest)


@njit
def weight_of(weights, j):
    """Return the weight of a row, 1 without weights."""
    if weights is None:
        return 1.0
    else:
        return weights[j]


@njit
def log(x):
    """Return the natural logarithm of a number that is not negative."""
    return math.log(x) if x > 0.0 else -np.inf


@njit
def log_of_share(own, others):
    """Return log(own / (own + others)): near 1, only log1p of the other share keeps all digits."""
    rows = own + others
    return log(own / rows) if own < others else math.log1p(-others / rows)


@njit
def entropy(positives, negatives):
    """Return the cross entropy of always predicting the base rate, times the rows."""
    if positives == 0.0 or negatives == 0.0:
        return 0.0
    return -(positives * log_of_share(positives, negatives) + negatives * log_of_share(negatives, positives))


@njit
def distance(positives, negatives, hits, others):
    """Return the distance between the distributions of the classes after some positives and negatives."""
    return abs(hits / positives - others / negatives)


@njit
def precision_in_run(kind, before, after, own, growth):
    """Return the mean precision while recall rises over a run.

    `before` and `after` are the precision of the rows above the run and of all rows down to it, `own` is that of the
    run alone. `growth` is log(1 + x) / x for x rows in the run per row above, 0 for the first run. Davis & Goadrich
    (2006) interpolate as if positives and negatives were spread evenly over the run.
    """
    if kind == STEP:
        return after
    if kind == TRAPEZOID:
        return (before + after) / 2.0
    return (1.0 - growth) * own + growth * before


@njit
def log_series(x):
    """Return the first terms of the series of log(1 + x) / x."""
    return 1.0 + x * (-1 / 2 + x * (1 / 3 + x * (-1 / 4 + x * (1 / 5 + x * (-1 / 6)))))


@njit
def area_of_run(kind, hits, others, more_hits, more_others):
    """Return the part of the area under precision-recall that a run adds, in units of positives.

    `hits` and `others` count the positives and negatives above the run, `more_hits` and `more_others` those in it.
    """
    if more_hits == 0.0:
        return 0.0
    rows = hits + others
    after = (hits + more_hits) / (hits + more_hits + others + more_others)
    before, own, growth = after, after, 0.0
    if kind != STEP and rows > 0.0:
        before = hits / rows
        if kind != TRAPEZOID:
            own = more_hits / (more_hits + more_others)
            share = (more_hits + more_others) / rows
            growth = log_series(share) if share < SERIES_BELOW else math.log1p(share) / share
    return more_hits * precision_in_run(kind, before, after, own, growth)

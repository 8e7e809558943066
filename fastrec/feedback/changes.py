"""Changes between logs, and trends over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.feedback.measure import Measured, mean_of
from fastrec.feedback.rows import MIN_LOGS, OF_USERS, PAIRS, DriftStep, Trend, metric_of
from fastrec.inputs.users import alike
from fastrec.items.exposure import Exposure, Key
from fastrec.metrics.intervals import welch_degrees
from fastrec.report.estimates import Estimate

Array = np.ndarray[Any, Any]


def find_step(before: Measured, after: Measured, key: Key) -> DriftStep:
    """Return the change from a log to the next."""
    pairs = _same_users(before, after)
    changes = {column: _change(before, after, column, pairs) for column in after.levels}
    lists = f"shannon_entropy@{key[0]}"  # has a value for each user with a list
    both = mean_of(after.values[lists][pairs[1]] - before.values[lists][pairs[0]]).users
    shift = _shift(before.exposure, after.exposure, key)
    return DriftStep(after.name, before.name, both, changes, shift, after.own["overlap"], after.own["rbo"])


def _same_users(before: Measured, after: Measured) -> tuple[Array, Array]:
    """Return the positions of the users of both logs, in each; without ids users are the same by position."""
    first, second = before.user_ids, after.user_ids
    if first is None or second is None:
        shared = np.arange(min(len(next(iter(own.values.values()))) for own in (before, after)))
        return shared, shared
    first, second = alike([first, second])
    if object in (first.dtype, second.dtype):
        place = {user: at for at, user in enumerate(first.tolist())}
        found = [(place[user], at) for at, user in enumerate(second.tolist()) if user in place]
        return tuple(np.array(found, np.int64).reshape(-1, 2).T)  # type: ignore[return-value]
    _, at_first, at_second = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    return at_first, at_second


def _change(before: Measured, after: Measured, column: str, pairs: tuple[Array, Array]) -> Estimate:
    """Return the mean difference of the users of both logs; of a metric over all lists, the difference of the two."""
    name = metric_of(column)
    first, second = before.values[column], after.values[column]
    if name == PAIRS:
        return mean_of(second - first)
    here, there = first[pairs[0]], second[pairs[1]]
    if name in OF_USERS:
        return mean_of(there - here)
    (low, high), difference = before.levels[column].range, after.levels[column].mean - before.levels[column].mean
    found = _with_error(difference, before.levels[column], after.levels[column], here, there)
    return found._replace(range=(low - high, high - low))


def _with_error(difference: float, before: Estimate, after: Estimate, here: Array, there: Array) -> Estimate:
    """Return a difference with its standard error, and how many users it pairs; others vary independently."""
    shared = ~np.isnan(here - there)
    here, there = here[shared], there[shared]
    n = len(here)
    if n == before.users == after.users:
        return mean_of(there - here)._replace(mean=difference)
    variance = before.std_error**2 + after.std_error**2
    if n > 1:
        products = (here - math.fsum(here) / n) * (there - math.fsum(there) / n)
        variance -= 2 * n * math.fsum(products) / (n - 1) / (before.users * after.users)
    error = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
    spread = before.std_error**2, before.degrees_of_freedom, after.std_error**2, after.degrees_of_freedom
    return Estimate(difference, error, n, welch_degrees(*spread))


def _shift(before: Exposure | None, after: Exposure | None, key: Key) -> float:
    """Return the Jensen-Shannon divergence of two exposures, base 2."""
    if before is None or after is None:
        return math.nan
    (mine, own), (theirs, other) = before.lists_by_item(key), after.lists_by_item(key)
    if not own.any() or not other.any():
        return math.nan
    items, at = np.unique(np.concatenate(alike([mine, theirs])), return_inverse=True)
    p, q = np.zeros(len(items)), np.zeros(len(items))
    p[at[: len(mine)]], q[at[len(mine) :]] = own / own.sum(), other / other.sum()
    middle = (p + q) / 2
    parts = [part[part > 0] * np.log2(part[part > 0] / middle[part > 0]) for part in (p, q)]
    return min(max(math.fsum(np.concatenate(parts)) / 2, 0.0), 1.0)


def find_trend(levels: Sequence[Estimate]) -> Trend:
    """Return the slope of a level over the logs, which are one unit of time apart."""
    known = [(at, level) for at, level in enumerate(levels) if math.isfinite(level.mean)]
    n = len(known)
    if n < MIN_LOGS:
        return Trend(math.nan, math.nan, n, weighted=False)
    times, means = np.array([at for at, _ in known], float), np.array([level.mean for _, level in known])
    errors = np.array([level.std_error for _, level in known])
    weighted = bool(np.all(np.isfinite(errors) & (errors > 0)))
    weights = (errors.min() / errors) ** 2 if weighted else np.ones(n)
    total = math.fsum(weights)
    away = times - math.fsum(weights * times) / total
    width = math.fsum(weights * away * away)
    centre = math.fsum(weights * means) / total
    slope = math.fsum(weights * away * (means - centre)) / width
    if weighted:
        return Trend(slope, float(errors.min()) / math.sqrt(width), n, weighted)
    residuals = means - centre - slope * away
    return Trend(slope, math.sqrt(math.fsum(residuals**2) / (n - 2) / width), n, weighted)

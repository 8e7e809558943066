"""Effects of rows on metrics of the order of all rows, from which clustered errors and paired tests follow.

The *slope* of a metric in the weight of a row depends on its class and its score only. The slopes of all rows, times
their weights, add to 0.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import influence as kernels
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.sorting import Runs

__all__ = [
    "RowsOfUsers",
    "bounds_of",
    "effects_of_users",
    "error_of_rows",
    "guide_to",
    "slopes_of_auc",
    "slopes_of_precision",
]

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE, MOST_ROWS_AT_ONCE = 1 << 20, 1 << 25
SUM_BITS, LARGEST_EXPONENT = 61, 1000  # of sums in 64 bits; of factors
BINS_IN_CACHE, PART_BITS = 1 << 15, 8  # more bins are cut into 2 ** PART_BITS parts at most
ROWS_PER_BLOCK = 256  # whose loads from memory overlap
STEPS_PER_ROW = 8


class RowsOfUsers(NamedTuple):
    """Rows of users of one batch."""

    positive: Array  # bool (n_rows,)
    scores: Array  # float32 or float64
    weights: Array | None
    indptr: Array  # int64 (n_users + 1,)


@functools.cache
def _entry(name: str, variant: str) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{variant}")


# Slopes


def slopes_of_auc(runs: Runs, area: float) -> Array:
    """Return the slopes of the area under the ROC curve, float64 (n, 2): of negative and positive rows of each score.

    That of a row is its placement less the area (DeLong et al. 1988), over the weight of its class.
    """
    slopes = np.empty((len(runs.scores), 2))
    negatives, positives = read_only(runs.negatives), read_only(runs.positives)
    sums = negatives.sum(), positives.sum()
    write = _entry("write_slopes_of_auc", str(negatives.dtype)).suited_to(STEPS_PER_ROW * len(slopes))
    write(negatives, positives, sums, area, slopes)
    return slopes


def slopes_of_precision(runs: Runs, area: float) -> Array:
    """Return the slopes of average precision, the mean over positives of the precision at their score.

    A row changes the precision at all scores up to its own, and a positive row is one more in the mean.
    """
    true, false = (np.cumsum(own[::-1])[::-1].astype(np.float64) for own in (runs.positives, runs.negatives))
    reached = true + false
    share = runs.positives / reached / reached
    slopes = np.empty((len(runs.scores), 2))
    slopes[:, 1] = (true / reached - area + np.cumsum(share * false)) / true[0]
    slopes[:, 0] = -np.cumsum(share * true) / true[0]
    return slopes


def error_of_rows(runs: Runs, slopes: Array) -> float:
    """Return the standard error of a metric of independent rows, from its slopes; NaN for a class of fewer than two."""
    if min(runs.negative_rows, runs.positive_rows) < 2:
        return math.nan
    n_rows = runs.negative_rows + runs.positive_rows
    squares = slopes**2
    spread = (squares[:, 0] * runs.negative_squares).sum() + (squares[:, 1] * runs.positive_squares).sum()
    return math.sqrt(float(spread) * n_rows / (n_rows - 1))


# Effects


def guide_to(scores: Array) -> kernels.Guide:
    """Return distinct, ascending scores with their bins."""
    finite = scores[np.searchsorted(scores, -np.inf, "right") : np.searchsorted(scores, np.inf)]
    lowest, highest = (float(finite[at]) / 2 for at in (0, -1)) if len(finite) else (0.0, 0.0)
    n_bins = max(1, len(scores))
    with np.errstate(over="ignore", divide="ignore"):
        factor = float(np.float64(n_bins) / np.float64(highest - lowest))
    factor = factor if math.isfinite(factor) else 0.0
    starts = np.empty(n_bins + 1, np.int64)
    scores = read_only(scores)
    _entry("write_starts", "plain").suited_to(STEPS_PER_ROW * len(scores))(scores, lowest, factor, starts)
    shift = max(0, n_bins.bit_length() - (PART_BITS if n_bins > BINS_IN_CACHE else 0))
    return kernels.Guide(scores, read_only(starts), lowest, factor, shift)


def bounds_of(slopes: Array, runs: Runs) -> Array:
    """Return the sums of the slopes (n, 2, n_metrics) of all rows, whatever their signs: float64 (n_metrics,)."""
    bounds = np.zeros(slopes.shape[2])
    add = _entry("add_bounds", f"{runs.negatives.dtype}").suited_to(STEPS_PER_ROW * len(slopes))
    add(read_only(slopes), read_only(runs.negatives), read_only(runs.positives), bounds)
    return bounds


def effects_of_users(
    known: kernels.Guide, slopes: Array, bounds: Array, rows: RowsOfUsers, members: Array, n_threads: int
) -> tuple[Array, Array]:
    """Return the sums of the slopes of users' rows times their weights, and whether users have rows of each class.

    They are float64 (n_metrics, n_users) and bool (2, n_users). `slopes` is (n, 2, n_metrics). `bounds` (n_metrics,)
    are those of all rows: effects are summed as integers of so many bits, and so are the same for any order of rows.
    """
    factors = np.ldexp(1.0, np.minimum(SUM_BITS - np.frexp(bounds)[1], LARGEST_EXPONENT))
    effects, classes = np.empty((len(members), slopes.shape[2]), np.int64), np.empty((len(members), 2), bool)
    lengths = rows.indptr[members + 1] - rows.indptr[members]
    n_rows = int(lengths.sum())
    weights = None if rows.weights is None else read_only(rows.weights)
    entry = _entry("add_effects", f"{rows.scores.dtype}-{'plain' if weights is None else weights.dtype}")
    add = entry.suited_to(STEPS_PER_ROW * n_rows)
    log = kernels.OwnRows(read_only(rows.positive), read_only(rows.scores), read_only(rows.indptr))
    slopes, members, factors = read_only(slopes), read_only(members), read_only(factors)
    n_parts = (len(known.starts) - 2 >> known.shift) + 1
    steps = np.cumsum(lengths + 1)  # a user without rows takes one, too
    at_once = ROWS_AT_ONCE
    if n_parts > 1:  # the more rows at once, the more of them share a part
        at_once = min(max(at_once, -(-n_rows // n_threads)), MOST_ROWS_AT_ONCE)
    cuts = np.searchsorted(steps, np.arange(0, n_rows + len(members), at_once))
    edges = np.unique([*cuts.tolist(), len(members)])

    def work(at: int) -> None:
        own = slice(int(edges[at]), int(edges[at + 1]))
        n = int(lengths[own].sum())
        moved = (
            np.empty(n, rows.scores.dtype),
            np.empty(n, np.uint32),  # users at once, and so their numbers, are few
            np.empty(0 if weights is None else n, np.float64 if weights is None else weights.dtype),
        )
        room = np.zeros(n_parts, np.int64), moved, *np.empty((2, ROWS_PER_BLOCK), np.int64)
        add(known, slopes, factors, log, weights, members[own], room, (effects[own], classes[own]))

    run_in_threads(work, range(len(edges) - 1), n_threads)
    return (effects / factors).T, classes.T

"""Areas under curves of sorted rows: ROC, whole and partial, from pairs in the right order; precision-recall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import sorting as kernels
from fastrec.kernels.codes import DAVIS_GOADRICH, TRAPEZOID
from fastrec.kernels.runs import SERIES_BELOW, log_series, precision_in_run
from fastrec.runtime.launcher import launch
from fastrec.scored.sorting import Runs

Array = np.ndarray[Any, Any]
Interpolation = Literal["step", "trapezoid", "davis_goadrich"]
ROUNDING = 2.0**-53  # rounding two values in [0, 1] to doubles moves them apart by at most this
MAX_COUNTED = 1 << 31  # rows whose pairs 63 bits count


# Values


class Pairs(NamedTuple):
    """Pairs in a range of scores: twice the ordered pairs plus the tied ones; positives and negatives.

    They are sums of weights of rows with weights.
    """

    twice: Any
    positives: Any
    negatives: Any


def pairs_won(positives: Array, negatives: Array) -> list[Any]:
    """Return twice the pairs in the right order (ties half), and tied pairs, from counts by ascending score."""
    positives, negatives = _of_any_size(positives, negatives)
    won = positives * (2 * np.cumsum(negatives) - negatives)
    return [values.sum(keepdims=True).tolist()[0] for values in (won, positives * negatives)]


def _of_any_size(positives: Array, negatives: Array) -> tuple[Array, Array]:
    """Return counts whose products fit: only merged states have too many for 63 bits."""
    if positives.dtype.kind == "i" and int(positives.sum()) + int(negatives.sum()) > MAX_COUNTED:
        return positives.astype(object), negatives.astype(object)
    return positives, negatives


def pairs_of_counts(positives: Array, negatives: Array) -> Pairs:
    """Return the pairs of runs given by their positives and negatives."""
    return Pairs(pairs_won(positives, negatives)[0], positives.sum().item(), negatives.sum().item())


def pairs_by_score(positives: Array, negatives: Array) -> tuple[Array, Array]:
    """Return twice the ordered pairs that a negative row of each score is in, and a positive one; ties count half."""
    reached, left = np.cumsum(negatives), np.cumsum(positives[::-1])[::-1]
    return 2 * left - positives, 2 * reached - negatives


def squared_pairs(positives: Array, negatives: Array) -> list[int]:
    """Return the sums over negative rows and over positive ones of the squares of their `pairs_by_score`."""
    positives, negatives = _of_any_size(positives, negatives)
    each = pairs_by_score(positives, negatives)
    return [sum_of_squares(*columns) for columns in zip(each, (negatives, positives), strict=True)]


def sum_of_squares(pairs: Array, counts: Array | int = 1) -> int:
    """Return the exact sum of the squares of pairs, below 2^32 unless they are of Python's integers, times counts."""
    high, low = pairs >> 16, pairs & 0xFFFF  # whose squares add up in 63 bits for 2^31 rows
    return square_of(*(int((counts * product).sum()) for product in (high * high, high * low, low * low)))


def square_of(high: int, both: int, low: int) -> int:
    """Return a sum of squares of numbers h << 16 | l from those of h h, h l and l l."""
    return (high << 32) + (both << 17) + low


def placement_variances(twice: int, squares: Sequence[int], sizes: tuple[int, int]) -> list[Fraction]:
    """Return what negative and positive rows add to the variance of an area (DeLong, DeLong & Clarke-Pearson 1988).

    Given are the sum over the rows of either class of the pairs that each is in, doubled, the sums of their squares,
    and the rows of each class, at least two.
    """
    size = 2 * sizes[0] * sizes[1]
    return [Fraction(n * square - twice**2, n - 1) / size**2 for n, square in zip(sizes, squares, strict=True)]


def pairs_of_parts(keys: Array, edges: Array, n_threads: int) -> list[Pairs]:
    """Return the pairs of neighbouring parts of keys, each of them sorted; part p is `edges[p]:edges[p + 1]`."""
    found = np.empty((len(edges) - 1, 3), np.int64)
    given = (read_only(keys), read_only(edges), found)
    launch(kernels.count_pairs, len(found), *given, work=8 * len(keys), n_threads=n_threads)
    sizes = np.diff(edges).tolist()
    return [
        Pairs((high << kernels.LOW_BITS) + low, positives, size - positives)
        for size, (high, low, positives) in zip(sizes, found.tolist(), strict=True)
    ]


def auc_of_pairs(pairs: Pairs) -> float:
    """Return the area under the ROC curve; NaN without a pair."""
    size = 2 * pairs.positives * pairs.negatives
    return min(1.0, pairs.twice / size) if size else math.nan  # sums of weights are rounded


def area_up_to(runs: Runs, rate: Fraction) -> Fraction:
    """Return the exact area under the ROC curve of counted rows of both classes up to a false positive rate."""
    whole = pairs_of_counts(runs.positives, runs.negatives)
    room = rate * whole.negatives
    twice = Fraction(whole.twice)
    if room < whole.negatives:
        falls = np.cumsum(runs.negatives[::-1])
        cut = len(falls) - int(np.searchsorted(falls, math.floor(room), side="right"))  # the run that the limit cuts
        above = pairs_of_counts(runs.positives[cut:], runs.negatives[cut:])
        width = room - above.negatives
        rise = Fraction(int(runs.positives[cut - 1]), int(runs.negatives[cut - 1]))
        twice = above.twice + width * (2 * above.positives + width * rise)
    return Fraction(twice, 2 * whole.positives * whole.negatives)


def cumulative(values: Array) -> Array:
    """Return sums of the values at or above each score, scores descending, starting with 0."""
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(values[::-1])])


def precision_area(runs: Runs, interpolation: Interpolation) -> float:
    """Return the area under the precision-recall curve of runs."""
    hits, misses = cumulative(runs.positives), cumulative(runs.negatives)
    if not hits[-1] > 0:
        return 0.0
    if interpolation == "step":
        return step_area(hits, misses)
    precision = _precision_in_runs(interpolation, hits, hits + misses)
    return float((np.diff(hits) * precision).sum() / hits[-1])


def step_area(hits: Array, misses: Array) -> float:
    """Return the sum over thresholds of precision times the rise of recall, from cumulative counts that start with 0.

    Thresholds without a new hit add nothing and are left out, so thinning a curve leaves the area bit for bit equal.
    """
    new_hits = np.diff(hits)
    rises = new_hits > 0
    hits_there = hits[1:][rises]
    precision = hits_there / (hits_there + misses[1:][rises])
    return float((new_hits[rises] * precision).sum() / hits[-1]) if len(precision) else 0.0


def _precision_in_runs(interpolation: Interpolation, hits: Array, rows: Array) -> Any:
    """Return the mean precision while recall rises over each run, from cumulative counts that start with 0."""
    after = hits[1:] / rows[1:]
    if interpolation == "trapezoid":
        return precision_in_run(TRAPEZOID, np.concatenate([after[:1], after[:-1]]), after, after, 0.0)
    new = np.diff(rows)
    above = rows[2:] - new[1:]
    share = new[1:] / above
    before, growth = np.zeros((2, len(new)))
    before[1:] = hits[1:-1] / above
    with np.errstate(divide="ignore", invalid="ignore"):
        # NumPy's logarithm is many times as fast as Python's; its last bits are others than those of kernels
        growth[1:] = np.where(share < SERIES_BELOW, log_series(share), np.log1p(share) / share)
    slopes = np.divide(np.diff(hits), new, out=np.zeros(len(new)), where=new > 0)  # 0 where sums lose a small weight
    return precision_in_run(DAVIS_GOADRICH, before, after, slopes, growth)

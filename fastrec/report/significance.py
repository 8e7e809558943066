"""Tests and intervals for the mean of paired differences, and corrections for many of them.

Differences are rounded to multiples of 2^-40 of the largest value, or of more if sums would overflow. So differences
that only rounding tells apart are equal, and any number of threads gives the same bits. A user whose two values agree
to 2^-40 of themselves is a tie, and has no part in the size of a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.resampling import DRAWN, DRAWS, WORD, flip_signs, resample
from fastrec.metrics.intervals import one_value_interval, quantile_of_p_value, student_p_value, student_quantile
from fastrec.runtime.extras import require
from fastrec.runtime.launcher import launch

Array = np.ndarray[Any, Any]
TESTS = ("randomization", "bootstrap", "t", "wilcoxon")
CORRECTIONS = ("holm", "bonferroni", "bh", "none")
BITS = 60  # of the sum of all absolute differences: twice a sum and a total still fit
GRID = 40  # bits of the largest value: makes 0.3 - 0.2 and 0.2 - 0.1 equal
MAX_SIGNS = 1 << 16  # combinations of signs that are all tried
CELLS = 1 << 22  # counts of draws in memory at a time


class Weighed(NamedTuple):
    """Interval of a mean difference, its standard error, and the chance of one as large if the true difference is 0.

    p_floor : the smallest p-value that the test can give for so many users; 0 without a limit.
    """

    low: float
    high: float
    p_value: float
    std_error: float
    p_floor: float = 0.0


UNKNOWN = Weighed(math.nan, math.nan, math.nan, math.nan)


def pair_differences(ours: Array, theirs: Array, target: float | None = None) -> tuple[Array, float]:
    """Return the differences of pairs of values, and the largest value of pairs that differ.

    The difference of values that are equal up to rounding is 0. With a target, the differences are those of the
    distances to it, which carry the rounding of the values and of the target.
    """
    largest = np.maximum(np.abs(ours), np.abs(theirs))
    if target is not None:
        ours, theirs = np.abs(ours - target), np.abs(theirs - target)
        largest = np.maximum(largest, abs(target))
    differences = ours - theirs
    differences[np.abs(differences) <= np.ldexp(largest, -GRID)] = 0.0
    return differences, float(largest[differences != 0].max(initial=0.0))


def _on_grid(differences: Array, magnitude: float) -> Array:
    """Return differences of values up to a magnitude, rounded so that rounding errors vanish.

    They stay as they are if rounding would make one of them 0: over so many powers of ten, no two of them are equal up
    to rounding.
    """
    steps, scale = _whole(differences, magnitude)
    if ((steps == 0) & (differences != 0)).any():
        return differences
    found: Array = np.ldexp(steps.astype(float), -scale)
    return found


def run_test(
    differences: Array,
    test: str,
    *,
    level: float,
    n_rounds: int,
    seed: int,
    n_threads: int,
    magnitude: float | None = None,
    width: float = math.inf,
) -> Weighed:
    """Test whether the mean of float64 differences (n,) is 0, two-sided. NaN for fewer than two.

    `magnitude` is the largest value behind the differences, by default the largest difference. `width` is that of the
    range of the values, which limits the interval. Without variance, the interval is that of equal values.
    """
    if magnitude is None and len(differences):
        magnitude = float(np.abs(differences).max())
    if len(differences) < 2:
        return UNKNOWN
    floor = smallest_p_value(test, len(differences), int(np.count_nonzero(differences)), n_rounds)
    if not magnitude or not differences.any():
        ends = one_value_interval(0.0, len(differences), (-width, width), level)
        return Weighed(*ends, 1.0, 0.0, floor)
    differences = _on_grid(differences, magnitude)
    if test == "bootstrap":
        (low, high), p_value = _bootstrap(*_whole(differences, magnitude), level, n_rounds, seed, n_threads)
        return Weighed(low, high, p_value, _std_error(differences), floor)
    found = student_test(float(differences.mean()), _std_error(differences), len(differences), level, width)
    if test == "wilcoxon":
        wilcoxon = require("scipy.stats", "stats", what="test='wilcoxon'").wilcoxon
        p_value, floor = (float(wilcoxon(own).pvalue) for own in (differences, np.abs(differences)))
    elif test == "randomization":
        p_value = _randomization(_whole(differences, magnitude)[0], n_rounds, seed, n_threads)
    else:
        p_value = found.p_value
    return found._replace(p_value=p_value, p_floor=floor)


def tries_all_signs(n: int, n_rounds: int) -> bool:
    """Return whether the randomization test of n differences other than 0 tries all signs, and draws none."""
    return bool(2 ** min(n, 62) <= min(n_rounds, MAX_SIGNS))


def smallest_p_value(test: str, n: int, n_differ: int, n_rounds: int) -> float:
    """Return the smallest p-value of a test of n users, of whom some differ; 0 without a limit.

    Signs of m users give 2 / 2^m. If no user differs, m is n: the test could have seen as much.
    """
    if test == "t":
        return 0.0
    of_signs = min(1.0, 2 * 0.5 ** min(n_differ or n, 1000))
    if test == "wilcoxon":
        return of_signs
    if test == "randomization" and tries_all_signs(n_differ or n, n_rounds):
        return of_signs
    return 1 / (n_rounds + 1) if test == "randomization" else _expanded_p_value(1 / (n_rounds + 1), n)


def student_test(difference: float, std_error: float, n: int, level: float, width: float = math.inf) -> Weighed:
    """Test whether a difference with the standard error of n users is 0, two-sided, by Student's distribution.

    Without variance the p-value is 0 or 1, and the interval that of equal values.
    """
    if math.isnan(difference) or math.isnan(std_error) or n < 2:
        return UNKNOWN
    if std_error == 0:
        ends = one_value_interval(difference, n, (-width, width), level)
        return Weighed(*ends, float(difference == 0), 0.0)
    margin = student_quantile(level, n - 1) * std_error
    low, high = max(difference - margin, -width), min(difference + margin, width)
    return Weighed(low, high, student_p_value(difference / std_error, n - 1), std_error)


def detectable_difference(std_error: float, n: int, alpha: float, power: float) -> float:
    """Return the smallest true difference that a two-sided test of n users at a level alpha finds with this chance.

    NaN if no difference between two users is known, as without variance; 0 for a power that chance alone gives.
    """
    if n < 2 or std_error == 0:
        return math.nan
    if power <= alpha / 2:
        return 0.0
    of_power = math.copysign(quantile_of_p_value(2 * min(power, 1 - power), n - 1), power - 0.5)
    return (quantile_of_p_value(alpha, n - 1) + of_power) * std_error


def levels_of_steps(p_values: Sequence[float], correction: str, alpha: float) -> list[float]:
    """Return the level at which a correction tests each p-value, by its rank among them; NaN has that of all."""
    values = np.asarray(p_values, float)
    n = max(1, int(np.count_nonzero(~np.isnan(values))))
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.minimum(np.arange(1, len(values) + 1), n)  # NaN comes last
    steps = {"none": 1 + 0 * ranks, "bonferroni": 1 / n + 0 * ranks, "holm": 1 / (n + 1 - ranks), "bh": ranks / n}
    found: list[float] = (alpha * steps[correction]).tolist()
    return found


def correct(p_values: Sequence[float], correction: str) -> list[float]:
    """Correct p-values for their number. NaN stays NaN and does not count.

    holm : Holm (1979); bounds the chance of any false finding.
    bonferroni : multiply by the number of tests; bounds the same.
    bh : Benjamini & Hochberg (1995); bounds the expected share of false findings.
    """
    values = np.asarray(p_values, float)
    if correction == "none":
        return [float(value) for value in values]
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    n, ranks = len(order), np.arange(1, len(order) + 1)
    ordered = values[order]
    if correction == "bonferroni":
        ordered = ordered * n
    elif correction == "holm":
        ordered = np.maximum.accumulate(ordered * (n + 1 - ranks))
    else:
        ordered = np.minimum.accumulate((ordered * n / ranks)[::-1])[::-1]
    values[order] = np.minimum(ordered, 1.0)
    return [float(value) for value in values]


def _std_error(differences: Array) -> float:
    largest = float(np.abs(differences).max()) or 1.0  # squares of very large or small numbers would overflow or vanish
    return float((differences / largest).std(ddof=1)) * largest / math.sqrt(len(differences))


def _whole(differences: Array, magnitude: float) -> tuple[Array, int]:
    """Return differences of values up to a magnitude as integers, in steps of 2^-scale, and the scale."""
    scale = min(GRID, BITS - 1 - len(differences).bit_length()) - math.frexp(magnitude)[1]
    return np.rint(np.ldexp(differences, scale)).astype(np.int64), scale


def _randomization(values: Array, n_rounds: int, seed: int, n_threads: int) -> float:
    """Return the share of random signs that make a sum as large, (b + 1) / (B + 1).

    If there are fewer combinations of signs than rounds, it is the share of all combinations.
    """
    values = values[values != 0]
    total, n = int(values.sum()), len(values)
    least = abs(total) - 2 * n  # each value may be a step off, and counts in both sums
    if tries_all_signs(n, n_rounds):
        signs = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float(np.mean(np.abs(2 * (signs @ values) - total) >= least))
    chosen = np.empty(n_rounds, np.int64)
    n_words = -(-n_rounds // WORD)
    launch(flip_signs, n_words, values, np.uint64(_key(seed)), chosen, work=n * n_rounds, n_threads=n_threads)
    as_large = int(np.count_nonzero(np.abs(2 * chosen - total) >= least))
    return (as_large + 1) / (n_rounds + 1)


def _expanded_p_value(p_value: float, n: int) -> float:
    """Return a p-value of the bootstrap of n users that makes up for its spread, which is too small by (n - 1) / n.

    It is that of Student's distribution for the normal quantile of the p-value, times sqrt((n - 1) / n) (Hesterberg
    2015).
    """
    return student_p_value(NormalDist().inv_cdf(p_value / 2) * math.sqrt((n - 1) / n), n - 1) if p_value < 1 else 1.0


def _bootstrap(
    values: Array, scale: int, level: float, n_rounds: int, seed: int, n_threads: int
) -> tuple[tuple[float, float], float]:
    """Return the interval and the p-value from means of users drawn with replacement (Efron 1979), centred on 0.

    Percentiles and p-value are those of the expanded bootstrap (Hesterberg 2015), see `_expanded_p_value`.
    """
    n, total = len(values), int(values.sum())
    sums = np.empty(n_rounds, np.int64)
    # NumPy never changes the stream of RandomState. It decides only how many draws each range of users gets.
    stream = np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))
    sizes = np.diff(np.append(np.arange(0, n, DRAWN), n))
    at_once = max(1, CELLS // len(sizes))
    used = np.uint64(0)
    for first in range(0, n_rounds, at_once):
        own = sums[first : first + at_once]
        counts = stream.multinomial(n, sizes / n, size=len(own)).astype(np.int32)
        # One random word serves several draws from a full range, and one draw from the last.
        words = counts.astype(np.uint64) // np.where(sizes == DRAWN, DRAWS, 1).astype(np.uint64) + np.uint64(1)
        counters = np.cumsum(words.sum(axis=1), dtype=np.uint64)
        counters = used + np.append(np.uint64(0), counters[:-1])
        used = counters[-1] + words[-1].sum(dtype=np.uint64)
        arguments = (values, np.uint64(_key(seed)), counts, counters, own)
        launch(resample, len(own), *arguments, work=n * len(own), n_threads=n_threads)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * student_quantile(level, n - 1))
    low, high = np.ldexp(np.quantile(sums.astype(float), [tail, 1 - tail]), -scale) / n
    as_large = int(np.count_nonzero(np.abs(sums - total) >= abs(total) - 2 * n))
    return (float(low), float(high)), _expanded_p_value((as_large + 1) / (n_rounds + 1), n)


def _key(seed: int) -> int:
    """Return the start of the stream of a seed, far from those of neighbouring seeds."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])

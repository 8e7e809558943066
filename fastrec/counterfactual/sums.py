"""Sums over logged slates: exact integers that add in any order, and the estimates that follow from them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from fastrec.counterfactual.estimators import ESTIMATORS, Estimator
from fastrec.evaluation.exact import SQUARE_BITS, as_fraction, weighted_mean_and_error
from fastrec.inputs.ragged import longest_row
from fastrec.kernels import weights as kernels
from fastrec.kernels.codes import BLOCK, DIGITS, GENERAL_SCALE
from fastrec.metrics.errors import root
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads

__all__ = ["MAX_POSITIONS", "Fault", "SlateNumbers", "SlateSums", "add_slates"]

Array = np.ndarray[Any, Any]
MAX_POSITIONS = 128  # rows of a slate for sniips and snrips, which keep products of positions
SLATES_AT_ONCE = 16384  # between two checks for signals; their rows stay in the cache for all estimators
MIN_ROWS_OF_THREAD = 1 << 16
RATIOS_AT_ONCE = 4096  # new / logged propensities; they stay in the first cache
ROUNDED_BITS = 64
SMALLEST_WEIGHT = 1e-150  # that has a square
STEPS_PER_ROW, STEPS_PER_SLATE = 16, 64
EARNED, WEIGHED = 0, 1  # terms of `Positions.by_length`
EARNED_TWICE, WEIGHED_TWICE, BOTH = 0, 1, 2  # terms of `Positions.products`


class Fault(NamedTuple):
    """A slate that cannot be added."""

    code: int
    slate: int


class SlateNumbers(NamedTuple):
    """What sums say."""

    value: float
    std_error: float
    effective_sample_size: float
    mean_weight: float
    mean_weight_error: float


@dataclass
class PositionSums:
    """Sums per position: exact integers in steps of 2^-TERM_SCALE, as arrays of objects."""

    lengths: Array  # (n + 1,)
    by_length: Array  # (n, n, 2)
    products: Array  # (n, n, 3)

    def add(self, other: PositionSums) -> PositionSums:
        """Return the sum of both."""
        n = max(len(self.lengths), len(other.lengths)) - 1
        made = PositionSums(np.zeros(n + 1, object), np.zeros((n, n, 2), object), np.zeros((n, n, 3), object))
        for one in (self, other):
            own = len(one.lengths) - 1
            made.lengths[: own + 1] += one.lengths
            made.by_length[:own, :own] += one.by_length
            made.products[:own, :own] += one.products
        return made


@dataclass
class SlateSums:
    """The state of one estimator: counts, the largest weight, and exact sums. It merges without rounding."""

    name: str
    clip: float | None
    slates: int
    counts: tuple[int, ...]  # of `N_COUNTS`
    largest: float
    totals: tuple[tuple[int, int], ...]  # of `N_SUMS`: sum and sum of squares, in steps of 2^-GENERAL_SCALE
    positions: PositionSums | None

    @property
    def estimator(self) -> Estimator:
        """The definition."""
        return ESTIMATORS[self.name]

    @property
    def weights(self) -> int:
        """The number of weights: one per row, or one per slate."""
        return self.slates if self.estimator.is_whole else self.counts[kernels.COUNT_ROWS]

    @property
    def has_vanished(self) -> bool:
        """Whether the squares of all weights are rounded to 0, or to a few bits."""
        return 0 < min(self.largest, math.inf if self.clip is None else self.clip) < SMALLEST_WEIGHT

    def add(self, other: SlateSums) -> Self:
        """Return the sums over the slates of both."""
        joined = self.positions if other.positions is None else other.positions
        if self.positions is not None and other.positions is not None:
            joined = self.positions.add(other.positions)
        return type(self)(
            self.name,
            self.clip,
            self.slates + other.slates,
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
            max(self.largest, other.largest),
            tuple((a + c, b + d) for (a, b), (c, d) in zip(self.totals, other.totals, strict=True)),
            joined,
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the state as plain data, with integers of any size."""
        positions = self.positions
        return {
            "name": self.name,
            "clip": self.clip,
            "slates": self.slates,
            "counts": list(self.counts),
            "largest": self.largest,
            "totals": [list(pair) for pair in self.totals],
            "positions": None if positions is None else [own.tolist() for own in vars(positions).values()],
        }

    @classmethod
    def from_plain(cls, state: Mapping[str, Any]) -> Self:
        """Return the state that `to_plain` gave."""
        given = dict(state)
        positions = given.pop("positions")
        if positions is not None:
            n = len(positions[0]) - 1
            shapes = (n + 1,), (n, n, 2), (n, n, 3)
            parts = (np.array(own, object).reshape(shape) for own, shape in zip(positions, shapes, strict=True))
            positions = PositionSums(*parts)
        given |= {"counts": tuple(given["counts"]), "totals": tuple(map(tuple, given["totals"]))}
        return cls(**given, positions=positions)

    def numbers(self) -> SlateNumbers:
        """Return the estimates."""
        value, error = self._value()
        if self.has_vanished:
            return SlateNumbers(value, math.nan, math.nan, self._mean_weight()[0], math.nan)
        weight, square = self._sum(kernels.WEIGHT), self._sum(kernels.SQUARE)
        size = float(weight * weight / square) if square else (0.0 if self.weights else math.nan)
        return SlateNumbers(value, error, size, *self._mean_weight())

    def _sum(self, row: int) -> Fraction:
        return as_fraction(self.totals[row][0], GENERAL_SCALE)

    def _squares(self, row: int) -> Fraction:
        return as_fraction(self.totals[row][1], GENERAL_SCALE)

    def _value(self) -> tuple[float, float]:
        """Return the value and its standard error over slates, by the delta method if both parts of a ratio vary."""
        if not self.slates:
            return math.nan, math.nan
        if self.positions is not None:
            return _of_positions(self.positions, self.slates)
        value = self._sum(kernels.VALUE), self._squares(kernels.VALUE)
        divisor = self.estimator.divisor
        if divisor == kernels.SLATES:
            return ratio_and_error(self.slates, value, _ones(self.slates), value[0])
        if divisor == kernels.WEIGHTS:
            parts = self._sum(kernels.WEIGHT), self._squares(kernels.WEIGHT)
        else:
            parts = self._rows()
        return ratio_and_error(self.slates, value, parts, self._sum(kernels.CROSS))

    def _rows(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.counts[kernels.COUNT_ROWS]), Fraction(self.counts[kernels.COUNT_SQUARES])

    def _mean_weight(self) -> tuple[float, float]:
        """Return the mean weight before the clip, and its standard error over slates."""
        row = kernels.WEIGHT if self.clip is None else kernels.RAW
        found = self._sum(row), self._squares(row)
        if self.estimator.is_whole:
            return ratio_and_error(self.slates, found, _ones(self.slates), found[0])
        return ratio_and_error(self.slates, found, self._rows(), self._sum(kernels.RAW_BY_ROWS))


def _ones(n: int) -> tuple[Fraction, Fraction]:
    return Fraction(n), Fraction(n)


def ratio_and_error(
    n: int, above: tuple[Fraction, Fraction], below: tuple[Fraction, Fraction], cross: Fraction
) -> tuple[float, float]:
    """Return sum of a / sum of b over n slates, and its standard error by the delta method.

    error^2 = n / (n - 1) * sum of (a - ratio b)^2 / (sum of b)^2. For b = 1 that is the error of a mean.

    Parameters
    ----------
    n : number of slates
    above, below : the sum and the sum of squares of a, and of b
    cross : sum of a b
    """
    value, error = weighted_mean_and_error(n, below[0], below[1], above[0], cross, above[1])
    if error > 0:
        ratio = above[0] / below[0]
        spread = above[1] - 2 * ratio * cross + ratio * ratio * below[1]
        if spread * (1 << SQUARE_BITS) <= 4 * above[1]:  # no more than the rounding of squares and products
            error = 0.0
    return value, error


def _of_positions(sums: PositionSums, n: int) -> tuple[float, float]:
    """Return the sum over positions of (share of slates with it) * (sum of w r / sum of w), and its standard error.

    The influence of a slate is the sum over its positions p of ratio_p + (n_p / sum of w_p) (w r - ratio_p w). Their
    mean is the value, and their standard deviation / sqrt(n) its error.
    """
    lengths = [int(count) for count in sums.lengths]
    n_positions = len(lengths) - 1
    reached = [sum(lengths[p + 1 :]) for p in range(n_positions)]
    earned, weighed = ([_term(total) for total in sums.by_length[:, :, which].sum(axis=0)] for which in (0, 1))
    if not all(weighed):
        return math.nan, math.nan
    ratios = [a / b for a, b in zip(earned, weighed, strict=True)]
    value = sum((ratio * count for ratio, count in zip(ratios, reached, strict=True)), Fraction(0)) / n
    if n == 1:
        return float(value), math.nan
    slopes = [_rounded(count / b) for count, b in zip(reached, weighed, strict=True)]
    others = [_rounded(-ratio) * slope for ratio, slope in zip(ratios, slopes, strict=True)]
    levels = [Fraction(0), *itertools.accumulate(map(_rounded, ratios))]
    total = squares = size = Fraction(0)
    for length, count in enumerate(lengths):
        linear = Fraction(0)
        for p in range(length):
            own = sums.by_length[length - 1, p]
            linear += slopes[p] * _term(own[EARNED]) + others[p] * _term(own[WEIGHED])
        total += levels[length] * count + linear
        squares += levels[length] * (levels[length] * count + 2 * linear)
        size += levels[length] * levels[length] * count
    for p in range(n_positions):
        for q in range(n_positions):
            own, twice = sums.products[p, q], 1 if p == q else 2
            squares += 2 * slopes[p] * others[q] * _term(own[BOTH])
            if q <= p:
                part = slopes[p] * slopes[q] * _term(own[EARNED_TWICE])
                squares += twice * (part + others[p] * others[q] * _term(own[WEIGHED_TWICE]))
                size += twice * abs(part)
    spread = squares - total * total / n
    if spread * (1 << SQUARE_BITS) <= 4 * n_positions * size:
        return float(value), 0.0
    variance = spread / (n * (n - 1))
    return float(value), root(variance.numerator, variance.denominator)


def _term(total: int) -> Fraction:
    return as_fraction(int(total), kernels.TERM_SCALE)


def _rounded(value: Fraction) -> Fraction:
    """Round to a few bits more than a double has, over a power of 2: sums of other fractions grow without end."""
    bits = ROUNDED_BITS - value.numerator.bit_length() + value.denominator.bit_length()
    scale = Fraction(2) ** bits
    return math.floor(value * scale) / scale


# Adding


def add_slates(slates: kernels.Slates, names: list[str], clip: float | None, n_threads: int) -> list[SlateSums] | Fault:
    """Return the sums of several estimators, from one pass over the slates in threads; or the first fault."""
    n_slates = len(slates.indptr) - 1
    n_rows = len(slates.rewards)
    n_bins = max(1, min(n_threads, n_rows // MIN_ROWS_OF_THREAD))
    cuts = np.searchsorted(slates.indptr, np.arange(1, n_bins) * n_rows // n_bins).tolist()
    ends = [0, *cuts, n_slates]
    longest = longest_row(slates.indptr)
    made = [_Adding(name, clip, n_bins, longest) for name in names]
    run = _entry().suited_to(len(names) * (STEPS_PER_ROW * n_rows + STEPS_PER_SLATE * n_slates))

    def add(at: int) -> None:
        for first in range(ends[at], ends[at + 1], SLATES_AT_ONCE):
            last = min(first + SLATES_AT_ONCE, ends[at + 1])
            for one in made:
                run(slates, one.form, one.sums, one.positions, at, first, last)
            if any(one.sums.faults[at, 0] for one in made):
                return

    run_in_threads(add, range(n_bins), n_threads)
    faults = [Fault(*fault) for one in made for fault in one.sums.faults.tolist() if fault[0]]
    if faults:
        return min(faults, key=lambda fault: (fault.slate, fault.code))
    return [one.found(n_slates) for one in made]


@functools.cache
def _entry() -> Entry:
    return Entry(kernels.weigh_slates, "weigh_slates")


class _Adding:
    """The memory of one estimator while the kernel runs."""

    def __init__(self, name: str, clip: float | None, n_bins: int, longest: int) -> None:
        self._name, self._clip = name, clip
        self.form = ESTIMATORS[name].form(clip)
        block = np.zeros((n_bins, kernels.N_SUMS, BLOCK))
        largest = np.zeros(n_bins)
        ratios = np.empty((n_bins, max(longest, RATIOS_AT_ONCE)))
        self.sums = kernels.Sums(
            block,
            block.view(np.int64),
            ratios,
            ratios.view(np.int64),
            np.zeros((n_bins, 6), np.int64),
            np.zeros((n_bins, kernels.N_SUMS, 2, DIGITS), np.int64),
            np.zeros((n_bins, kernels.N_COUNTS), np.int64),
            largest,
            largest.view(np.int64),
            np.zeros((n_bins, 2), np.int64),
        )
        n = longest if self.form.by_position else 0
        self.positions = kernels.Positions(
            np.zeros((n_bins, 2, n)),
            np.zeros((n_bins, n + 1), np.int64),
            np.zeros((n_bins, n, n, 2, kernels.TERM_DIGITS), np.int64),
            np.zeros((n_bins, n, n, 3, kernels.TERM_DIGITS), np.int64),
        )

    def found(self, n_slates: int) -> SlateSums:
        """Return the sums of all bins."""
        totals = _integers(self.sums.totals)
        positions = None
        if self.form.by_position:
            lengths = self.positions.lengths.sum(axis=0).astype(object)
            positions = PositionSums(lengths, *map(_integers, self.positions[2:]))
        return SlateSums(
            self._name,
            self._clip,
            n_slates,
            tuple(self.sums.counts.sum(axis=0).tolist()),
            float(self.sums.largest.max()),
            tuple((int(own[0]), int(own[1])) for own in totals),
            positions,
        )


def _integers(digits: Array) -> Array:
    """Return the integers of which the last axis holds base 2^32 digits, and the first axis parts, as objects."""
    found = np.zeros(digits.shape[1:-1], object)
    places = np.argwhere(digits)
    for value, (_, *place, digit) in zip(digits[digits != 0].tolist(), places.tolist(), strict=True):
        found[tuple(place)] += value << (32 * digit)
    return found

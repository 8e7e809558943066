"""Sums over logged slates: exact integers that add in any order, and the estimates that follow from them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np

from fastrec.counterfactual.estimators import ESTIMATORS, Estimator
from fastrec.evaluation.engine import sum_exactly
from fastrec.evaluation.exact import SQUARE_BITS, as_fraction, join_digits, weighted_mean_and_error
from fastrec.inputs.ragged import longest_row
from fastrec.kernels import weights as kernels
from fastrec.kernels.codes import BLOCK, DIGITS, GENERAL_SCALE
from fastrec.metrics.errors import root
from fastrec.runtime.launcher import call
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
MAX_POSITIONS = 128  # rows of a slate for sniips and snrips, which keep products of positions
SLATES_AT_ONCE = 16384  # between two checks for signals; their rows stay in the cache for all estimators
MIN_ROWS_OF_THREAD = 1 << 16
RATIOS_AT_ONCE = 4096  # new / logged propensities; they stay in the first cache
ROUNDED_BITS = 64
SMALLEST_WEIGHT = 1e-150  # that has a square


class Fault(NamedTuple):
    """A slate that cannot be added."""

    code: int
    slate: int
    of_baseline: bool


class SlateNumbers(NamedTuple):
    """What sums say."""

    value: float
    std_error: float
    effective_sample_size: float
    effective_slates: float  # that decide about the error, by their weights or by what they earn
    mean_weight: float
    mean_weight_error: float


@dataclass
class Moments:
    """Exact sums that covariances over units, users or slates, need: integers in steps of 2^-GENERAL_SCALE, as objects.

    The terms of a policy are what a slate earns and its part of the divisor. By position they are these at each
    position, and whether the slate has it; in front of the first position stand all slates.
    """

    units: int
    sums: Array  # (n_positions, n_policies, n_terms)
    products: Array  # (n_positions, n_policies, n_terms) twice: of two terms of a unit

    @classmethod
    def of(cls, terms: Array, users: Array | None) -> Self:
        """Return the sums of terms, float64 (n_slates, ...); `users` has pointers to the slates of each."""
        shape, rows = terms.shape[1:], np.ascontiguousarray(terms.reshape(len(terms), -1).T)
        sums = sum_exactly(rows, None, 1)[0, :, 0]
        if users is not None:
            codes = np.repeat(np.arange(len(users) - 1), np.diff(users))
            orders = (np.lexsort((row, codes)) for row in rows)  # the order of slates changes no bit
            rows = np.stack([np.bincount(codes, row[order]) for row, order in zip(rows, orders, strict=True)])
        products = np.zeros((len(rows), len(rows)), object)
        for at, row in enumerate(rows):
            products[at, at:] = products[at:, at] = sum_exactly(row * rows[at:], None, 1)[0, :, 0]
        return cls(rows.shape[1], sums.reshape(shape), products.reshape(shape * 2))

    def add(self, other: Moments) -> Self:
        """Return the sums over the units of both."""
        shape = max(self.sums.shape, other.sums.shape)
        made = type(self)(self.units + other.units, np.zeros(shape, object), np.zeros(shape * 2, object))
        for one in (self, other):
            n = len(one.sums)
            made.sums[:n] += one.sums
            made.products[:n, :, :, :n] += one.products
        return made

    def of_policy(self, at: int) -> Self:
        """Return the sums of one policy."""
        own = slice(at, at + 1)
        return type(self)(self.units, self.sums[:, own], self.products[:, own, :, :, own])

    def error(self, *slopes: Array) -> float:
        """Return the standard error of a number by the delta method, from its slopes by term for each policy.

        error^2 = n / (n - 1) * sum over units of (sum of slope * term)^2. Terms of all units leave the number as it is
        if they grow alike, so the sum over units of what is squared is 0.
        """
        if self.units < 2:
            return math.nan
        exact = [_rounded(slope) for slope in np.stack(slopes, axis=1).ravel()]
        scale = max(slope.denominator for slope in exact)
        whole = np.array([int(slope * scale) for slope in exact], object)
        products = self.products.reshape(len(whole), -1)
        spread = int(whole @ products @ whole)
        if spread << SQUARE_BITS <= 4 * len(whole) * int(whole * whole @ products.diagonal()):  # rounding of products
            return 0.0
        return root(self.units * spread, (self.units - 1) * scale * scale << GENERAL_SCALE)


@dataclass
class SlateSums:
    """The state of one estimator: counts, the largest weight, and exact sums. It merges without rounding."""

    name: str
    clip: float | None
    slates: int
    counts: tuple[int, ...]  # of `N_COUNTS`
    largest: float
    totals: tuple[tuple[int, int], ...]  # of `N_SUMS`: sum and sum of squares, in steps of 2^-GENERAL_SCALE
    moments: Moments | None  # of the policy and of its baseline, by position, by user, or with a baseline
    by_user: bool
    baseline: Self | None

    @property
    def units(self) -> int:
        """The number of units that are taken as independent: users or slates."""
        return self.slates if not self.by_user else 0 if self.moments is None else self.moments.units

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
        return type(self)(
            self.name,
            self.clip,
            self.slates + other.slates,
            tuple(map(sum, zip(self.counts, other.counts, strict=True))),
            max(self.largest, other.largest),
            tuple((a + c, b + d) for (a, b), (c, d) in zip(self.totals, other.totals, strict=True)),
            _added(self.moments, other.moments),
            self.by_user,
            _added(self.baseline, other.baseline),
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the state as plain data, with integers of any size."""
        moments, baseline = self.moments, self.baseline
        return {
            **vars(self),
            "moments": None if moments is None else [moments.units, moments.sums.tolist(), moments.products.tolist()],
            "baseline": None if baseline is None else baseline.to_plain(),
        }

    @classmethod
    def from_plain(cls, state: Mapping[str, Any]) -> Self:
        """Return the state that `to_plain` gave."""
        made = cls(**{**state, "counts": tuple(state["counts"]), "totals": tuple(map(tuple, state["totals"]))})
        if made.moments is not None:
            units, *arrays = state["moments"]
            made.moments = Moments(units, *(np.array(array, object) for array in arrays))
        if made.baseline is not None:
            made.baseline = cls.from_plain(state["baseline"])
        return made

    def numbers(self) -> SlateNumbers:
        """Return the estimates."""
        value, error = self._value()
        if self.has_vanished:
            return SlateNumbers(value, math.nan, math.nan, math.nan, self._mean_weight()[0], math.nan)
        weight, square = self._sum(kernels.WEIGHT), self._sum(kernels.SQUARE)
        size = float(weight * weight / square) if square else (0.0 if self.weights else math.nan)
        squares = [(self._sum(row), self._squares(row)) for row in (kernels.SQUARE, kernels.VALUE_SQUARE)]
        least = min((float(total * total / twice) for total, twice in squares if twice), default=math.nan)
        return SlateNumbers(value, error, size, least, *self._mean_weight())

    def _sum(self, row: int) -> Fraction:
        return as_fraction(self.totals[row][0], GENERAL_SCALE)

    def _squares(self, row: int) -> Fraction:
        return as_fraction(self.totals[row][1], GENERAL_SCALE)

    def _value(self) -> tuple[float, float]:
        """Return the value and its standard error, by the delta method if both parts of a ratio vary."""
        found = self.ratio()
        if found is None:
            return math.nan, math.nan
        value, slopes = found
        if self.moments is not None and (self.by_user or self.estimator.by_position):
            others = [] if self.baseline is None else [0 * slopes]
            return float(value), self.moments.error(slopes, *others)
        return ratio_and_error(self.slates, *self._parts())

    def difference(self) -> tuple[float, float]:
        """Return the value less that of the baseline, and its standard error."""
        assert self.baseline is not None
        found, other = self.ratio(), self.baseline.ratio()
        if found is None or other is None or self.moments is None:
            return math.nan, math.nan
        error = math.nan if self.has_vanished or self.baseline.has_vanished else self.moments.error(found[1], -other[1])
        return float(found[0] - other[0]), error

    def _parts(self) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction], Fraction]:
        """Return what the value is the ratio of, each with its squares, and the products of both."""
        value, divisor = (self._sum(kernels.VALUE), self._squares(kernels.VALUE)), self.estimator.divisor
        if divisor == kernels.SLATES:
            return value, _ones(self.slates), value[0]
        weights = self._sum(kernels.WEIGHT), self._squares(kernels.WEIGHT)
        return value, weights if divisor == kernels.WEIGHTS else self._rows(), self._sum(kernels.CROSS)

    def ratio(self) -> tuple[Fraction, Array] | None:
        """Return the value, and its slopes by the terms of `Moments`; None if it divides by 0.

        By position it is the sum over positions of (share of slates with it) * (sum of w r / sum of w).
        """
        if not self.estimator.by_position:
            (above, _), (below, _), _ = self._parts()
            return (above / below, np.array([[1 / below, -above / below / below]])) if below else None
        if self.moments is None:
            return None
        terms = [[as_fraction(total, GENERAL_SCALE) for total in own] for own in self.moments.sums[:, 0]]
        (_, _, slates), *places = terms
        if not all(weights for _, weights, _ in places):
            return None
        value = sum((earned / weights * reached for earned, weights, reached in places), Fraction(0)) / slates
        slopes = [[0, 0, -value / slates]]
        for earned, weights, reached in places:
            ratio, slope = earned / weights / slates, reached / weights / slates
            slopes.append([slope, -earned / weights * slope, ratio])
        return value, np.array(slopes, object)

    def _rows(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.counts[kernels.COUNT_ROWS]), Fraction(self.counts[kernels.COUNT_SQUARES])

    def _mean_weight(self) -> tuple[float, float]:
        """Return the mean weight before the clip, and its standard error, as if all slates of a user were alike."""
        mean, error = self._mean_weight_of_slates()
        return mean, error * math.sqrt(self.slates / self.units) if self.units else error

    def _mean_weight_of_slates(self) -> tuple[float, float]:
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


def _added(one: Any, other: Any) -> Any:
    """Return the sum of two states, of which either may lack."""
    return other if one is None else one if other is None else one.add(other)


def _rounded(value: Fraction) -> Fraction:
    """Round to a few bits more than a double has, over a power of 2: sums of other fractions grow without end."""
    bits = ROUNDED_BITS - value.numerator.bit_length() + value.denominator.bit_length()
    scale = Fraction(2) ** bits
    return math.floor(value * scale) / scale


# Adding


def add_slates(
    policies: Sequence[kernels.Slates], users: Array | None, names: list[str], clip: float | None, n_threads: int
) -> list[SlateSums] | Fault:
    """Return the sums of several estimators, from one pass over the slates in threads; or the first fault.

    `policies` are the slates with the propensities of the new policy, and with those of a baseline, if there is one.
    `users` has pointers to the slates of each user.
    """
    indptr = policies[0].indptr
    n_slates, n_rows = len(indptr) - 1, len(policies[0].rewards)
    n_bins = max(1, min(n_threads, n_rows // MIN_ROWS_OF_THREAD))
    edges = np.arange(0, n_slates, min(SLATES_AT_ONCE, n_slates // n_bins + 1))
    if users is not None:
        edges = users[np.searchsorted(users, edges)]
    edges = np.unique(np.append(edges, n_slates))
    ends = np.searchsorted(indptr[edges], np.arange(n_bins + 1) * n_rows // n_bins)
    ends[-1] = len(edges) - 1
    made = [_Adding(name, clip, policies, users, n_bins) for name in names]
    made[0].load(work=len(names) * len(policies) * (16 * n_rows + 64 * n_slates))

    def add(at: int) -> None:
        for first, last in itertools.pairwise(edges[ends[at] : ends[at + 1] + 1].tolist()):
            for one in made:
                one.add(at, first, last)
            if any(sums.faults[at, 0] for one in made for sums in one.sums):
                return

    run_in_threads(add, range(n_bins), n_threads)
    faults = [
        Fault(code, slate, sums is not one.sums[0])
        for one in made
        for sums in one.sums
        for code, slate in sums.faults.tolist()
        if code
    ]
    if faults:
        return min(faults, key=lambda fault: (fault.slate, fault.code))
    return [one.found() for one in made]


class _Adding:
    """The memory of one estimator while the kernel runs."""

    def __init__(
        self, name: str, clip: float | None, policies: Sequence[kernels.Slates], users: Array | None, n_bins: int
    ) -> None:
        self._name, self._clip, self._policies, self._users = name, clip, policies, users
        self._form = ESTIMATORS[name].form(clip)
        self._has_moments = self._form.by_position or users is not None or len(policies) > 1
        self._moments: list[Moments | None] = [None] * n_bins
        self.sums = [_memory(n_bins, longest_row(policies[0].indptr)) for _ in policies]

    def load(self, *, work: int) -> None:
        """Load the kernel here, where an interrupt ends that at once, if there is enough work: add no slates."""
        call(kernels.weigh_slates, self._policies[0], self._form, self.sums[0], np.empty((0, 1, 2)), 0, 0, 0, work=work)

    def add(self, at: int, first: int, last: int) -> None:
        """Add the slates first:last to bin `at`."""
        indptr = self._policies[0].indptr[first : last + 1]
        n, longest = last - first if self._has_moments else 0, longest_row(indptr) if self._form.by_position else 1
        terms = [np.empty((n, longest, 2)) for _ in self._policies]
        for slates, sums, own in zip(self._policies, self.sums, terms, strict=True):
            call(kernels.weigh_slates, slates, self._form, sums, own, at, first, last, work=0)
        if not n or any(sums.faults[at, 0] for sums in self.sums):
            return
        if self._form.by_position:
            reached = (np.arange(longest + 1) <= np.diff(indptr)[:, None])[:, :, None]  # all slates come first
            terms = [np.concatenate([np.pad(one, ((0, 0), (1, 0), (0, 0))), reached], axis=2) for one in terms]
        users = self._users
        if users is not None:
            users = users[np.searchsorted(users, first) : np.searchsorted(users, last) + 1] - first
        self._moments[at] = _added(self._moments[at], Moments.of(np.stack(terms, axis=2), users))

    def found(self) -> SlateSums:
        """Return the sums of all bins."""
        moments = functools.reduce(_added, self._moments)
        made: SlateSums | None = None
        for policy in range(len(self.sums))[::-1]:
            own = moments if policy == 0 or moments is None else moments.of_policy(policy)
            sums, n_slates = self.sums[policy], len(self._policies[policy].indptr) - 1
            totals = tuple((int(own[0]), int(own[1])) for own in join_digits(sums.totals))
            counts, largest = tuple(sums.counts.sum(axis=0).tolist()), float(sums.largest.max())
            by_user = self._users is not None
            made = SlateSums(self._name, self._clip, n_slates, counts, largest, totals, own, by_user, made)
        assert made is not None
        return made


def _memory(n_bins: int, longest: int) -> kernels.Sums:
    block = np.zeros((n_bins, kernels.N_SUMS, BLOCK))
    largest = np.zeros(n_bins)
    ratios = np.empty((n_bins, max(longest, RATIOS_AT_ONCE)))
    return kernels.Sums(
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

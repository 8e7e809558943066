"""Importance weights of logged slates: what each slate earns under another policy, added exactly.

Values of a slate are doubles, added in the order of its rows. Sums over slates are exact. Each call works on a range
of slates and writes to a bin of its own, so that ranges can run in threads.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np

from .codes import BLOCK
from .jit import njit
from .sums import add_general, add_many

Array = np.ndarray[Any, Any]

# weights of rows
OF_ROW: Final = 0  # new / logged propensity of the row
RUNNING: Final = 1  # product of that over the rows of the slate up to this one
OF_SLATE: Final = 2  # product over all rows of the slate

# what an estimate divides by
SLATES: Final = 0
ROWS: Final = 1
WEIGHTS: Final = 2

# sums over slates, each with the sum of its squares
VALUE: Final = 0  # what the slate earns
WEIGHT: Final = 1  # its weights
SQUARE: Final = 2  # the squares of its weights
CROSS: Final = 3  # what it earns times its part of the divisor
RAW: Final = 4  # its weights before the clip
RAW_BY_ROWS: Final = 5  # these times its number of rows
VALUE_SQUARE: Final = 6  # the square of what it earns
N_SUMS: Final = 7

# counts
COUNT_ROWS: Final = 0
COUNT_CLIPPED: Final = 1  # rows with a clipped weight
COUNT_EMPTY: Final = 2  # slates without rows
COUNT_SQUARES: Final = 3  # squares of the numbers of rows
N_COUNTS: Final = 4

# faults
BAD_ROW: Final = 1
EXPLODED: Final = 2

MAX_PROPENSITY: Final = 1.0 + 1e-9
"""A propensity that was computed may be rounded past 1."""
MAX_VALUE: Final = 1e76
"""Largest reward, prediction, weight, and value of a slate: products of two stay far within a double."""


class Slates(NamedTuple):
    """Logged slates: the rows of slate s are indptr[s]:indptr[s + 1], first row first."""

    rewards: Array  # float64 (n_rows,), as are the others
    logged: Array  # propensity of the row under the policy that was logged
    new: Array  # propensity under the other policy
    shown: Array  # predicted reward of the row; (0,) without predictions
    expected: Array  # predicted reward under the other policy
    indptr: Array  # int64 (n_slates + 1,)


class Weighing(NamedTuple):
    """What an estimator adds."""

    weights: int  # OF_ROW, RUNNING or OF_SLATE
    divisor: int  # SLATES, ROWS or WEIGHTS
    clip: float  # inf for none
    predicted: bool
    by_position: bool
    is_plain: bool  # OF_ROW without clip and predictions
    raw: int  # the row of weights before the clip: RAW, or WEIGHT if `is_plain`
    sums: Array  # int64: those of the N_SUMS that are needed


class Sums(NamedTuple):
    """Sums, per bin."""

    block: Array  # float64 (bins, N_SUMS, BLOCK)
    bits: Array  # the same memory as int64
    ratios: Array  # float64 (bins, at least the rows of the longest slate): new / logged propensity of a few rows
    ratio_bits: Array  # the same memory as int64
    digits: Array  # int64 (bins, 6)
    totals: Array  # int64 (bins, N_SUMS, 2, DIGITS)
    counts: Array  # int64 (bins, N_COUNTS)
    largest: Array  # float64 (bins,): the largest weight, before the clip
    largest_bits: Array  # the same memory as int64
    faults: Array  # int64 (bins, 2): code, slate


@njit(cache=True)
def weigh_slates(slates, form, sums, terms, at, first, last):
    """Add the slates first:last to bin `at`, unless a row is invalid or a weight explodes.

    `terms`, float64 (slates, positions, 2), gets what each slate earns, and its part of the divisor: at each position
    if `by_position`, else over all rows, at position 0. It may have no slates otherwise.
    """
    block, counts, ratios, indptr = sums.block[at], sums.counts[at], sums.ratios[at], slates.indptr
    base, known = indptr[first], indptr[first]  # rows base:known have their ratios
    valid, largest = True, 0.0
    for start in range(first, last, BLOCK):
        n = min(BLOCK, last - start)
        low = 0
        while low < n:
            if indptr[start + low + 1] > known:
                base, known = indptr[start + low], min(indptr[start + low] + len(ratios), indptr[last])
                valid &= divide(slates, base, known, ratios)
                if form.weights == OF_ROW and valid:
                    find_largest(sums.ratio_bits[at, : known - base], sums.largest_bits, at)
            high = low + 1
            while high < n and indptr[start + high + 1] <= known:
                high += 1
            clipped, highest = 0, 0.0
            if form.is_plain:
                weigh_plainly(ratios, slates, block, base, start, low, high)
            elif form.weights == OF_SLATE:
                clipped, highest = weigh_whole(ratios, slates, form, block, base, start, low, high)
            else:
                clipped, highest = weigh_rows(ratios, slates, form, block, base, start, low, high)
            counts[COUNT_CLIPPED] += clipped
            largest = max(largest, highest)
            low = high
        fine = n
        if not (valid and are_moderate(block[VALUE], block[form.raw], n)):
            fine = find_fault(slates, form, block, start, n, sums.faults[at])
        if form.by_position:
            weighed = weigh_positions(slates, form, terms[start - first :], start, fine)
            if weighed < fine:
                sums.faults[at, 0] = EXPLODED
                sums.faults[at, 1] = start + weighed
        if sums.faults[at, 0] != 0:
            return
        add_block(slates, form, block, sums, terms[start - first :], at, start, n)
    sums.largest[at] = max(sums.largest[at], largest)


@njit
def divide(slates, first, last, ratios):
    """Write new / logged propensity of rows; return whether all are valid."""
    wrong = 0
    rewards, logged, new = slates.rewards[first:last], slates.logged[first:last], slates.new[first:last]
    for t in range(len(rewards)):
        wrong += not is_valid(rewards[t], logged[t], new[t])
        ratios[t] = new[t] / logged[t]
    return wrong == 0


@njit
def find_largest(bits, largest, at):
    """Raise largest[at] to the largest number of `bits`. Doubles from 0 are in the order of their bits."""
    found = largest[at]
    for t in range(len(bits)):
        found = max(found, bits[t])
    largest[at] = found


@njit(forceinline=True)
def is_moderate(value, weight):
    """Return whether the value and the weight of a slate are at most MAX_VALUE."""
    return (abs(value) <= MAX_VALUE) & (weight <= MAX_VALUE)


@njit
def are_moderate(values, weights, n):
    """Return whether the values and the weights of n slates are at most MAX_VALUE."""
    wrong = 0
    for i in range(n):
        wrong += not is_moderate(values[i], weights[i])
    return wrong == 0


@njit
def find_fault(slates, form, block, start, n, fault):
    """Write the code and the number of the first slate of a block that cannot be added; return how many can be."""
    for i in range(n):
        for t in range(slates.indptr[start + i], slates.indptr[start + i + 1]):
            if not is_valid(slates.rewards[t], slates.logged[t], slates.new[t]):
                fault[0] = BAD_ROW
            elif len(slates.shown) > 0:
                if not (abs(slates.shown[t]) <= MAX_VALUE and abs(slates.expected[t]) <= MAX_VALUE):
                    fault[0] = BAD_ROW
        if fault[0] == 0 and not is_moderate(block[VALUE, i], block[form.raw, i]):
            fault[0] = EXPLODED
        if fault[0] != 0:
            fault[1] = start + i
            return i
    return n


@njit
def add_block(slates, form, block, sums, terms, at, start, n):
    """Add what a block of slates earns and weighs."""
    counts, bits = sums.counts[at], sums.bits[at]
    pointers = slates.indptr[start : start + n + 1]
    empty, squares = 0, 0
    for i in range(n):
        rows = pointers[i + 1] - pointers[i]
        own = block[WEIGHT, i] if form.divisor == WEIGHTS else np.float64(rows if form.divisor == ROWS else 1)
        block[CROSS, i] = block[VALUE, i] * own
        if len(terms) > 0 and not form.by_position:
            terms[i, 0, 0], terms[i, 0, 1] = block[VALUE, i], own
        block[RAW_BY_ROWS, i] = block[form.raw, i] * rows
        block[VALUE_SQUARE, i] = block[VALUE, i] * block[VALUE, i]
        empty += rows == 0
        squares += rows * rows
    counts[COUNT_ROWS] += pointers[n] - pointers[0]
    counts[COUNT_EMPTY] += empty
    counts[COUNT_SQUARES] += squares
    for row in form.sums:
        if not add_many(block[row][:n], bits[row][:n], sums.digits[at], sums.totals[at, row]):
            add_each(block[row][:n], bits[row][:n], sums.totals[at, row])


@njit
def add_each(values, bits, total):
    """Add values of any size, and their squares."""
    for i in range(len(values)):
        add_general(values[i], bits[i], total)


@njit(forceinline=True)
def is_valid(reward, logged, new):
    """Return whether a row has a finite reward and propensities; one that was shown is above 0."""
    of_logged = (logged > 0.0) & (logged <= MAX_PROPENSITY)
    return of_logged & (new >= 0.0) & (new <= MAX_PROPENSITY) & (abs(reward) <= MAX_VALUE)


# These work on all slates of a block whose rows have their ratios, without slices of arrays: each slice, and each array
# passed to a function, counts a reference to it, which for a slate would take longer than its sums.


@njit
def weigh_plainly(ratios, slates, block, base, start, low, high):
    """Do the work of `weigh_rows` for weights of rows without clip and predictions, in half the time."""
    rewards, indptr = slates.rewards, slates.indptr
    for i in range(low, high):
        value, weight, square = 0.0, 0.0, 0.0
        for t in range(indptr[start + i], indptr[start + i + 1]):
            own = ratios[np.uint64(t - base)]
            value += own * rewards[np.uint64(t)]
            weight += own
            square += own * own
        block[VALUE, i] = value
        block[WEIGHT, i] = weight
        block[SQUARE, i] = square


@njit
def weigh_rows(ratios, slates, form, block, base, start, low, high):
    """Write what slates low..high-1 of a block earn with a weight per row, NaN for wrong predictions.

    Return how many rows are clipped, and the largest weight. Ratios begin at row `base`, the block at slate `start`.
    """
    rewards, indptr, shown, expected = slates.rewards, slates.indptr, slates.shown, slates.expected
    is_running, predicted, clip = form.weights == RUNNING, form.predicted, form.clip
    clipped, largest = 0, 0.0
    for i in range(low, high):
        value, weight, square, raw = 0.0, 0.0, 0.0, 0.0
        running, before, valid = 1.0, 1.0, True
        for t in range(indptr[start + i], indptr[start + i + 1]):
            row, own = np.uint64(t), ratios[np.uint64(t - base)]
            if is_running:
                running *= own
                own = running
            used = min(own, clip)
            clipped += own > clip
            raw += own
            largest = max(largest, own)
            weight += used
            square += used * used
            if predicted:
                valid &= (abs(shown[row]) <= MAX_VALUE) & (abs(expected[row]) <= MAX_VALUE)
                value += used * (rewards[row] - shown[row]) + before * expected[row]
                if is_running:
                    before = used
            else:
                value += used * rewards[row]
        block[VALUE, i] = value if valid else math.nan
        block[WEIGHT, i] = weight
        block[SQUARE, i] = square
        block[RAW, i] = raw
    return clipped, largest


@njit
def weigh_whole(ratios, slates, form, block, base, start, low, high):
    """Write what slates of a block earn with one weight each; return clipped rows and the largest weight."""
    rewards, indptr = slates.rewards, slates.indptr
    clipped, largest = 0, 0.0
    for i in range(low, high):
        total, own = 0.0, 1.0
        first, last = indptr[start + i], indptr[start + i + 1]
        for t in range(first, last):
            own *= ratios[np.uint64(t - base)]
            total += rewards[np.uint64(t)]
        used = min(own, form.clip)
        block[VALUE, i] = used * total
        block[WEIGHT, i] = used
        block[SQUARE, i] = used * used
        block[RAW, i] = own
        clipped += (last - first) * (own > form.clip)
        largest = max(largest, own)
    return clipped, largest


@njit
def weigh_positions(slates, form, terms, start, n):
    """Write the weighted rewards and the weights of n slates by position, 0 behind their ends.

    Return how many come before one with a magnitude above MAX_VALUE.
    """
    rewards, logged, new, indptr = slates.rewards, slates.logged, slates.new, slates.indptr
    for i in range(n):
        first, last = indptr[start + i], indptr[start + i + 1]
        running, largest = 1.0, 0.0
        for place in range(last - first, terms.shape[1]):
            terms[i, place, 0] = terms[i, place, 1] = 0.0
        for t in range(first, last):
            own = new[t] / logged[t]
            if form.weights == RUNNING:
                running *= own
                own = running
            used = min(own, form.clip)
            terms[i, t - first, 0] = used * rewards[t]
            terms[i, t - first, 1] = used
            largest = max(largest, abs(terms[i, t - first, 0]))
        if not (largest <= MAX_VALUE):
            return i
    return n

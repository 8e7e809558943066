"""Exact sums over users: values become integer digits, which add up to the same bits in any order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .codes import (
    BLOCK,
    COUNT_HITS,
    COUNT_LISTED,
    COUNT_RELEVANT,
    DIGITS,
    GENERAL_SCALE,
    N_DATA_COUNTS,
    OUT_OF_RANGE,
    OVERFLOW,
)
from .jit import njit, prange

Array = np.ndarray[Any, Any]
MAX_FIXED = 1.0 + 1e-9  # a ratio may round past its bound
MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # the bits of a double without its sign
MANY = 16  # users from which they are added together
HIGH = 24.0  # 1.5 * 2^4: a value up to 8 added to it is rounded to 2^-48, which is its last bit
BITS_OF_HIGH = np.uint64(0x4038000000000000)
LOW = 1.5 * 2.0**-44  # likewise for what is left of the value, rounded to 2^-96
BITS_OF_LOW = np.uint64(0x3D38000000000000)
N_ERROR = 3  # code, user, detail
MAX_BINADES = 20  # between values whose squares have no bit below the digits of `add_fixed`, see `add_many`


class Totals(NamedTuple):
    """The results of one task, which lie one after the other in an array, but for those of users."""

    errors: Array  # int64 (3,): code, user, detail
    data_counts: Array  # int64 (N_DATA_COUNTS,)
    fixed: Array  # int64 (n_groups + 1, n_fixed, 6)
    general: Array  # int64 (n_groups + 1, n_general, 2, DIGITS)
    counts: Array  # int64 (n_groups + 1, n_conditions, 4)
    stored: Array  # float64 (n_stored, n_users), of all tasks
    offset: int  # the column of the first user there


class SumRoom(NamedTuple):
    """The groups of users, the totals of a task, and working memory to add rows to them."""

    groups: Array  # int32 (n_groupings, n_users), see `fastrec.kernels.row_programs.UserNumbers`
    run_ends: Array  # int64 (n_groupings, BLOCK), see `find_runs`
    fixed: Array  # int64 (n_groups + 1, n_fixed, 6)
    general: Array  # int64 (n_groups + 1, n_general, 2, DIGITS)
    errors: Array  # int64 (3,): code, user, detail
    masked: Array  # float64 (BLOCK,): values under a mask
    digits: Array  # int64 (6,): of a sum


def size_of_totals(n_groups: int, n_fixed: int, n_general: int, n_conditions: int) -> int:
    """Return how many numbers the totals of a task take."""
    return (n_groups + 1) * (n_fixed * 6 + n_general * 2 * DIGITS + n_conditions * 4) + N_DATA_COUNTS + N_ERROR


@njit
def totals_of(own, stored, offset, n_groups, n_fixed, n_general, n_conditions):
    """Return the totals that the array of a task holds, or an array with a row per task."""
    n, fixed, tasks = n_groups + 1, N_ERROR + N_DATA_COUNTS, own.shape[:-1]
    general = fixed + n * n_fixed * 6
    counts = general + n * n_general * 2 * DIGITS
    return Totals(
        own[..., :N_ERROR],
        own[..., N_ERROR:fixed],
        own[..., fixed:general].reshape((*tasks, n, n_fixed, 6)),
        own[..., general:counts].reshape((*tasks, n, n_general, 2, DIGITS)),
        own[..., counts:].reshape((*tasks, n, n_conditions, 4)),
        stored,
        offset,
    )


@njit
def add_halves(high, low, n, digits):
    """Add the halves of n values, given as sums of bits, to base 2^32 digits after the point."""
    upper = np.uint64(high - n * BITS_OF_HIGH).view(np.int64)  # in steps of 2^-48
    lower = np.uint64(low - n * BITS_OF_LOW).view(np.int64)  # in steps of 2^-96
    digits[0] += upper >> 16
    digits[1] += ((upper & 0xFFFF) << 16) + (lower >> 32)
    digits[2] += lower & 0xFFFFFFFF


@njit
def add_fixed(row, scale, total):
    """Add row * scale, which must be in [-1, 1], and its squares, each rounded to 2^-96: exact, in any order.

    `scale` is a power of 2. `total` has three 32-bit digits of each. At most `BLOCK` values: their two halves of 48
    bits then fit into 64 bits. Adding a value to `HIGH` rounds it to 2^-48, and the bits of the sum are those of `HIGH`
    plus the rounded value as an integer. Returns how many values are NaN or outside the range; then nothing is added.
    """
    zero, n = np.uint64(0), np.uint64(len(row))
    high, low, high2, low2 = zero, zero, zero, zero  # they wrap around, as only unsigned integers may
    outside = np.int64(0)
    for i in range(len(row)):
        value = row[i] * scale
        outside += not (abs(value) <= MAX_FIXED)
        rounded = np.float64(value + HIGH)
        high += rounded.view(np.uint64)
        low += np.float64((value - (rounded - HIGH)) + LOW).view(np.uint64)
        square = value * value
        rounded = np.float64(square + HIGH)
        high2 += rounded.view(np.uint64)
        low2 += np.float64((square - (rounded - HIGH)) + LOW).view(np.uint64)
    if outside == 0:
        add_halves(high, low, n, total[:3])
        add_halves(high2, low2, n, total[3:])
    return outside


@njit
def first_outside(row):
    """Return the position of the first value that is not within [-1, 1]."""
    i = 0
    while abs(row[i]) <= MAX_FIXED:
        i += 1
    return i


@njit(forceinline=True)
def add_digits(mantissa, exponent, digits):
    """Add mantissa * 2^exponent to base 2^32 digits (Neal 2015); carries wait until the sum is read."""
    at = exponent + GENERAL_SCALE
    digit = at >> 5
    shift = np.uint64(at & 31)
    magnitude = np.uint64(abs(mantissa))
    low = (magnitude & np.uint64(0xFFFFFFFF)) << shift
    high = (magnitude >> np.uint64(32)) << shift
    sign = np.int64(1) if mantissa >= 0 else np.int64(-1)
    digits[digit] += sign * np.int64(low & np.uint64(0xFFFFFFFF))
    digits[digit + 1] += sign * np.int64((low >> np.uint64(32)) + (high & np.uint64(0xFFFFFFFF)))
    digits[digit + 2] += sign * np.int64(high >> np.uint64(32))


@njit(forceinline=True)
def add_general(value, bits, total):
    """Add any finite value and its square; return False for NaN and infinities."""
    if value == 0.0:
        return True
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        return False
    fraction = bits & 0xFFFFFFFFFFFFF
    mantissa = fraction | (np.int64(1) << 52) if exponent > 0 else fraction
    exponent = max(exponent, 1) - 1075
    add_digits(mantissa if bits >= 0 else -mantissa, exponent, total[0])
    # square the fraction in (0, 2), which neither overflows nor vanishes
    scaled = mantissa * 2.220446049250313e-16
    square = scaled * scaled
    add_digits(np.int64(square * 4503599627370496.0), 2 * (exponent + 52) - 52, total[1])
    return True


@njit
def add_many(row, bits, digits, total):
    """Add values of similar size and their squares, many at a time; if sizes differ, add nothing and return False."""
    largest, smallest = np.int64(0), np.int64(MAGNITUDE)
    for i in range(len(bits)):
        magnitude = bits[i] & MAGNITUDE
        largest = max(largest, magnitude)
        smallest = min(smallest, magnitude if magnitude > 0 else np.int64(MAGNITUDE))
    if largest == 0:
        return True
    exponent = (largest >> 52) - 1022  # all values are below 2^exponent
    if abs(exponent) > 512 or (largest >> 52) - (smallest >> 52) > MAX_BINADES:
        return False
    # a value is at least 2^-21 of that, so its last bit is 2^-73 and that of its square 2^-94 or more
    for d in range(6):
        digits[d] = 0
    add_fixed(row, math.ldexp(1.0, -int(exponent)), digits)
    for d in range(3):
        add_digits(digits[d], exponent - 32 * (d + 1), total[0])
        add_digits(digits[3 + d], 2 * exponent - 32 * (d + 1), total[1])
    return True


@njit
def add_values_of_row(row, digits, total):
    """Add values and their squares; return the position of one that is not finite, or -1."""
    bits = row.view(np.int64)
    if len(row) >= MANY and add_many(row, bits, digits, total):
        return -1
    for i in range(len(row)):
        if not add_general(row[i], bits[i], total):
            return i
    return -1


@njit
def has_no_zero(mask):
    """Return whether a mask is 0 nowhere."""
    zeros = np.int64(0)
    for i in range(len(mask)):
        zeros += mask[i] == 0.0
    return zeros == 0


@njit
def keep_masked(row, mask, out):
    """Write a row, with 0 where a mask is 0."""
    for i in range(len(row)):
        value = row[i]  # loaded in any case, so that the compiler does several at a time
        out[i] = value if mask[i] != 0.0 else 0.0


@njit
def find_runs(groups, first, n, run_ends):
    """Write where the runs of neighbours of one group end, among n users from `first` on."""
    for g in range(len(groups)):
        run = 0
        for i in range(1, n + 1):
            if i == n or groups[g, first + i] != groups[g, first + i - 1]:
                run_ends[g, run] = i
                run += 1


@njit
def add_row(rows, n, op, is_masked, room, first):
    """Add a row of n users from `first` on, with 0 where a mask is 0, to a sum of all users and of each group.

    `op` is the operation `ADD_UP`. Return False on an error.
    """
    row, place = rows[op[2], :n], op[4]
    if is_masked:
        keep_masked(row, rows[op[3]], room.masked)
        row = room.masked[:n]
    of_general = place - room.fixed.shape[1]
    for g in range(-1, len(room.groups)):  # -1 for all users: the whole block at once, else neighbours of one group
        end, run = 0, 0
        while end < n:
            i, end, group = end, n, 0
            if g >= 0:
                group, end = room.groups[g, first + i], room.run_ends[g, run]
                run += 1
            part = row[i:end]
            if of_general < 0:
                if add_fixed(part, 1.0, room.fixed[group, place]) > 0:
                    room.errors[0], room.errors[1] = OUT_OF_RANGE, first + i + first_outside(part)
                    room.errors[2] = place
                    return False
            else:
                outside = add_values_of_row(part, room.digits, room.general[group, of_general])
                if outside >= 0:
                    room.errors[0], room.errors[1], room.errors[2] = OVERFLOW, first + i + outside, of_general
                    return False
    return True


@njit(allocates=True)
def add_values_between(start, stop, values, groups, general):
    """Add the values of users start..stop-1; return a user with a value that is not finite, or -1."""
    digits = np.empty(6, np.int64)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        for row in range(len(values)):
            end = np.int64(first)
            while end < last:
                begin, end, group = end, np.int64(last), np.int64(0)
                if len(groups) > 0:
                    group = np.int64(groups[begin])
                    end = begin + 1
                    while end < last and groups[end] == group:
                        end += 1
                at = add_values_of_row(values[row, begin:end], digits, general[group, row])
                if at >= 0:
                    return begin + at
    return np.int64(-1)


@njit(parallel=True, cache=True)
def add_values(first, last, edges, values, groups, general, failed):
    """Add rows of values, float64 (n_rows, n_users), to the exact sums of `add_row`.

    Task t adds those of users edges[t]..edges[t + 1]-1 to general[t], as in `Totals`, and writes to failed[t] a user
    with a value that is not finite, or -1. `groups` is int32 (n_users,), or (0,).
    """
    for task in prange(first, last):
        t = np.int64(task)
        failed[t] = add_values_between(edges[t], edges[t + 1], values, groups, general[t])


@njit
def store_rows(stored_rows, stored, condition, rows, status, first, n):
    """Store per-user values under one condition, NaN if the user was not counted."""
    for j in range(len(stored_rows)):
        if stored_rows[j, 1] == condition:
            row = rows[stored_rows[j, 0]]
            out = stored[j, first : first + n]
            for i in range(n):
                out[i] = np.nan if status[i] >= 2 and stored_rows[j, 2] else row[i]


@njit
def add_data_counts(n_rel, n_rec, n_events, n, data_counts):
    """Add to the counts for the report: relevant items, those found, and users with a list and relevant items."""
    n_relevant, n_listed = np.int64(0), np.int64(0)
    for i in range(n):
        n_relevant += n_rel[i]
        n_listed += (n_rel[i] > 0) & (n_rec[i] > 0)
    data_counts[COUNT_HITS] += n_events - n
    data_counts[COUNT_RELEVANT] += n_relevant
    data_counts[COUNT_LISTED] += n_listed

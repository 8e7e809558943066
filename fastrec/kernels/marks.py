"""The pairs of every row from its place among the rows of the rarer class, so that no others are sorted.

The distinct keys of the rarer class, ascending, are *marks*. The *slot* of a row tells where it is among them: `2 * m`
between mark m and the one before, `2 * m + 1` at mark m. How many rows each slot has then tells how many rows of the
other class are below a mark.

The top bits of a key name its *range*. Each range is cut into equally wide bins, of which it has more than marks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.influence import effect_on_auc
from fastrec.kernels.sorting import fill_keys, first_nan, sum_before
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
BIN_BITS = 6  # of an entry of `Ranges`, for the size of bins
BINS_PER_ROW_BITS = 1  # bins per row, at least, as a power of 2
LOW_BITS = 21  # of a difference: its square is added in three parts
ROWS_PER_SUM = 1 << 19  # whose sums of parts fit into 63 bits
MOVES_PER_ROW = 4  # of rows that insertion sorts


class Ranges(NamedTuple):
    """Ranges of keys: key k is in range `k >> shift`."""

    shift: int
    bins: Array  # int64 (n_ranges,): `first bin << BIN_BITS | b`, whose bins have `2 ** b` possible keys each


class Marks(NamedTuple):
    """Distinct keys with their bins: those of bin b are at `starts[b]` to `starts[b + 1] - 1`."""

    ranges: Ranges
    starts: Array  # int32 (n_bins + 1,)
    keys: Array  # uint32 or uint64 (n_marks + 1,): the last is above all keys


@helper
def bin_of_key(key, ranges):
    """Return the bin of a key."""
    key = np.uint64(key)
    shift = np.uint64(ranges.shift)
    entry = np.uint64(ranges.bins[key >> shift])
    rest = key & ((np.uint64(1) << shift) - np.uint64(1))
    return (entry >> np.uint64(BIN_BITS)) + (rest >> (entry & np.uint64((1 << BIN_BITS) - 1)))


def choose_keys(bits, labels, label, infinity, keys, block):
    """Write the keys of the rows that have a label; return how many, or `-1 - i` if row i is the first NaN.

    `keys` has room for one more. `block` is room for some keys.
    """
    one = np.int8(1)
    at = np.uint64(0)
    for start in range(0, len(bits), len(block)):
        rows = bits[start : start + len(block)]
        own = labels[start : start + len(block)]
        if fill_keys(rows, block) > infinity:
            return np.int64(-1) - start - first_nan(rows, infinity)
        for i in range(len(rows)):
            keys[at] = block[i]
            at += np.uint64((own[i] & one) == label)
    return np.int64(at)


def plan_bins(keys, ranges):
    """Cut ranges into bins, as many as their share of some keys needs; return how many there are."""
    shift = np.uint64(ranges.shift)
    bins = ranges.bins
    bins[:] = 0
    for i in range(len(keys)):
        bins[np.uint64(keys[i]) >> shift] += 1
    n_bins = np.int64(0)
    for at in range(len(bins)):
        count = bins[at] << BINS_PER_ROW_BITS
        cuts = np.int64(0)
        while cuts < ranges.shift and np.int64(1) << cuts < count:
            cuts += 1
        bins[at] = n_bins << BIN_BITS | (ranges.shift - cuts)
        n_bins += np.int64(1) << cuts
    return n_bins


def sort_keys(keys, ranges, starts, ordered, bins):
    """Write keys in ascending order, and the starts of bins among them; return whether few moves were enough.

    `starts` has one more than bins. `bins` is room for those of keys.
    """
    starts[:] = 0
    for i in range(len(keys)):
        own = bin_of_key(keys[i], ranges)
        bins[i] = own
        starts[own] += 1
    sum_before(starts)
    for i in range(len(keys)):
        own = np.uint64(bins[i])
        ordered[np.uint64(starts[own])] = keys[i]
        starts[own] += 1
    for at in range(len(starts) - 1, 0, -1):
        starts[at] = starts[at - 1]
    starts[0] = 0
    left = MOVES_PER_ROW * len(keys)
    for i in range(1, len(keys)):
        key = ordered[i]
        j = i
        while j > 0 and ordered[j - 1] > key and left > 0:
            ordered[j] = ordered[j - 1]
            j -= 1
            left -= 1
        ordered[j] = key
    return left > 0 or len(keys) == 0


@helper
def all_differ(ordered):
    """Return whether no two sorted keys are equal, comparing many at a time."""
    n = np.int64(0)
    for i in range(1, len(ordered)):
        n += np.int64(ordered[i] == ordered[i - 1])
    return n == 0


def write_marks(ordered, marks, below):
    """Write the marks of sorted keys, and how many rows are below each; return how many there are.

    `marks.keys` may be `ordered` with one more. `marks.starts` has the starts of bins among the sorted keys. `below`
    (n_marks + 1,) ends with the number of rows.
    """
    n = len(ordered)
    if all_differ(ordered):
        for i in range(n):
            marks.keys[i] = ordered[i]
            below[i] = i
    else:
        n = 0
        done = np.uint64(0)
        for i in range(len(ordered)):
            key = ordered[i]
            if n > 0 and marks.keys[n - 1] == key:
                continue
            own = bin_of_key(key, marks.ranges)
            while done <= own:
                marks.starts[done] = n
                done += np.uint64(1)
            marks.keys[n] = key
            below[n] = i
            n += 1
        for at in range(np.int64(done), len(marks.starts)):
            marks.starts[at] = n
    marks.keys[n] = ~(marks.keys[n] ^ marks.keys[n])  # all bits
    below[n] = len(ordered)
    return n


@helper
def first_not_below(key, marks, low, high):
    """Return the first of the marks from low on that is not below a key, or high."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if marks.keys[middle] < key:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@helper
def find_slots(keys, marks, starts, slots):
    """Write the slots of keys. Each loop takes a step for all keys, so that their loads from memory overlap."""
    one = np.uint64(1)
    for i in range(len(slots)):
        starts[i] = marks.starts[bin_of_key(keys[i], marks.ranges)]
    beyond = 0
    for i in range(len(slots)):
        key = keys[i]
        at = np.uint64(starts[i])
        at += np.uint64(marks.keys[at] < key)
        at += np.uint64(marks.keys[at] < key)
        beyond += marks.keys[at] < key
        slots[i] = at << one | np.uint64(marks.keys[at] == key)
    if beyond == 0:
        return
    for i in range(len(slots)):
        at, key = np.uint64(slots[i]) >> one, keys[i]
        if marks.keys[at] < key:
            at = first_not_below(key, marks, at + one, np.uint64(marks.starts[bin_of_key(key, marks.ranges) + one]))
            slots[i] = at << one | np.uint64(marks.keys[at] == key)


def find_rows(bits, marks, slots, counts, room):
    """Write the slot of each row, and add up how many rows each slot has. `room` is for some keys and bins."""
    block, starts = room
    for start in range(0, len(bits), len(block)):
        rows = bits[start : start + len(block)]
        own = slots[start : start + len(block)]
        fill_keys(rows, block)
        find_slots(block, marks, starts, own)
        for i in range(len(own)):
            counts[np.uint64(own[i])] += 1


def write_pairs_of_slots(counts, below, label, pairs):
    """Write twice the ordered pairs that a row of each slot and label is in, those of a tie counting half.

    `pairs` is uint32 (n_slots, 2). `below` tells how many rows with the label of marks are below each mark. Returns
    twice the ordered pairs of all rows.
    """
    n_marks = len(below) - 1
    rows = below[n_marks]
    others = np.int64(0)
    for slot in range(len(counts)):
        others += counts[slot]
    others -= rows
    twice = np.int64(0)
    others_below = np.int64(0)
    for at in range(n_marks):
        own, tied = below[at], below[at + 1] - below[at]
        others_below += counts[2 * at]
        others_tied = counts[2 * at + 1] - tied
        if label == 1:
            pairs[2 * at, 0] = 2 * (rows - own)
            pairs[2 * at + 1, 0] = 2 * (rows - own) - tied
            pairs[2 * at + 1, 1] = 2 * others_below + others_tied
        else:
            pairs[2 * at, 1] = 2 * own
            pairs[2 * at + 1, 1] = 2 * own + tied
            pairs[2 * at + 1, 0] = 2 * (others - others_below) - others_tied
        twice += tied * pairs[2 * at + 1, label]
        others_below += others_tied
    pairs[2 * n_marks, 1 - label] = 0 if label == 1 else 2 * rows
    return twice


def take_pairs(slots, labels, pairs, values):
    """Write the pairs of each row, given `pairs[2 * slot + label]`. `values` may be `slots`."""
    one = np.uint64(1)
    for row in range(len(slots)):
        values[row] = pairs[np.uint64(slots[row]) << one | (np.uint64(labels[row]) & one)]


@helper
def sum_rows(slots, labels, pairs, room):
    """Write the sums of the pairs of rows up to each row, and those of their labels, to `room`."""
    one = np.uint64(1)
    total = np.int64(0)
    count = np.int64(0)
    for row in range(len(slots)):
        label = np.uint64(labels[row]) & one
        total += np.int64(pairs[np.uint64(slots[row]) << one | label])
        count += np.int64(label)
        room[0, row + 1] = total
        room[1, row + 1] = count


def write_effects(slots, labels, pairs, owners, totals, having, room):
    """Write the effects of owners on the AUC; the pairs of a row are `pairs[2 * slot + label]`.

    `totals` are those of `effect_on_auc`. `having` counts the owners that have a row of each class. `room` (2, n) is
    for sums up to each of some rows: those of owners are their differences, as loops over the few rows of each would
    end at random.
    """
    at_once = room.shape[1] - 1
    begin = owners.indptr[0]
    owner, sum_before, count_before = 0, np.int64(0), np.int64(0)
    for first in range(0, max(len(slots), 1), at_once):
        own = slots[first : first + at_once]
        sum_rows(own, labels[first : first + at_once], pairs, room)
        done = owners.indptr[0] + first
        while owner < len(owners.effects) and owners.indptr[owner + 1] <= done + len(own):
            end = owners.indptr[owner + 1]
            total, count = room[0, end - done] - sum_before, room[1, end - done] - count_before
            rest = end - begin - count
            having[0] += rest > 0
            having[1] += count > 0
            owners.effects[owner] = effect_on_auc(np.float64(total), rest, count, totals)
            owner, begin = owner + 1, end
            sum_before, count_before = room[0, end - done], room[1, end - done]
        sum_before -= room[0, len(own)]
        count_before -= room[1, len(own)]


def add_squares(labels, first, second, sums):
    """Add the squares of the differences of rows, d = high << LOW_BITS | low, to the sums of their label.

    `sums` is int64 (2, 3): of low * low, 2 * high * low, and high * high.
    """
    mask = (np.int64(1) << LOW_BITS) - 1
    low_low = np.int64(0)
    high_low = np.int64(0)
    high_high = np.int64(0)
    totals = np.int64(0), np.int64(0), np.int64(0)
    for i in range(len(labels)):
        difference = np.int64(first[i]) - np.int64(second[i])
        positive = -(np.int64(labels[i]) & 1)
        high, low = difference >> LOW_BITS, difference & mask
        totals = totals[0] + low * low, totals[1] + 2 * high * low, totals[2] + high * high
        low_low += positive & (low * low)
        high_low += positive & (2 * high * low)
        high_high += positive & (high * high)
    for nth, own in enumerate((low_low, high_low, high_high)):
        sums[0, nth] += totals[nth] - own
        sums[1, nth] += own

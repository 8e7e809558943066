"""The pairs of every row from its place among the rows of the rarer class, so that no others are sorted.

The distinct keys of the rarer class, ascending, are *marks*. The *slot* of a row tells where it is among them: `2 * m`
between mark m and the one before, `2 * m + 1` at mark m. How many rows each slot has then tells how many rows of the
other class are below a mark.

The top bits of a key name its *range*. Each range is cut into equally wide bins, of which it has more than marks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .influence import effect_on_auc
from .jit import njit, prange
from .sorting import KEYS_AT_ONCE, fill_keys, first_nan, sum_before

Array = np.ndarray[Any, Any]
BIN_BITS = 6  # of an entry of `Ranges`, for the size of bins
BINS_PER_ROW_BITS = 1  # bins per row, at least, as a power of 2
LOW_BITS = 21  # of a difference: its square is added in three parts
ROWS_PER_SUM = 1 << 19  # whose sums of parts fit into 63 bits
ROWS_AT_ONCE = 1 << 11  # whose sums stay in the L1 cache
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


@njit
def bin_of_key(key, ranges):
    """Return the bin of a key."""
    key = np.uint64(key)
    shift = np.uint64(ranges.shift)
    entry = np.uint64(ranges.bins[key >> shift])
    rest = key & ((np.uint64(1) << shift) - np.uint64(1))
    return (entry >> np.uint64(BIN_BITS)) + (rest >> (entry & np.uint64((1 << BIN_BITS) - 1)))


@njit(allocates=True)
def choose_keys_of_chunk(chunk, bits, labels, cuts, label, infinity, keys):
    """Do as `choose_keys` does for a chunk; return how many there are, or what it writes for a NaN."""
    one, block = np.int8(1), np.empty(KEYS_AT_ONCE, keys.dtype)
    at = np.uint64(0)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        rows = bits[start : min(start + len(block), cuts[chunk + 1])]
        if fill_keys(rows, block) > infinity:
            return cuts[chunk] - start - first_nan(rows, infinity) - 1
        for i in range(len(rows)):
            keys[at] = block[i]
            at += np.uint64((labels[start + i] & one) == label)
    return np.int64(at)


@njit(parallel=True, cache=True)
def choose_keys(first, last, bits, labels, cuts, label, infinity, starts, keys, found):
    """Write the keys of the rows of chunks first..last-1 that have a label: those of chunk c from keys[starts[c]] on.

    There is room for one more for each chunk. `found` tells how many there are, or `-1 - i` if row i of the chunk is
    its first NaN.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        found[own] = choose_keys_of_chunk(own, bits, labels, cuts, label, infinity, keys[starts[own] :])


@njit(cache=True)
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


@njit(cache=True)
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


@njit
def all_differ(ordered):
    """Return whether no two sorted keys are equal, comparing many at a time."""
    n = np.int64(0)
    for i in range(1, len(ordered)):
        n += np.int64(ordered[i] == ordered[i - 1])
    return n == 0


@njit(cache=True)
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


@njit
def first_not_below(key, marks, low, high):
    """Return the first of the marks from low on that is not below a key, or high."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if marks.keys[middle] < key:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@njit
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


@njit(allocates=True)
def find_rows_of_chunk(chunk, bits, cuts, marks, slots, counts):
    """Do as `find_rows` does for a chunk."""
    block, starts = np.empty(KEYS_AT_ONCE, bits.dtype), np.empty(KEYS_AT_ONCE, np.int32)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        end = min(start + len(block), cuts[chunk + 1])
        own = slots[start:end]
        fill_keys(bits[start:end], block)
        find_slots(block, marks, starts, own)
        for i in range(len(own)):
            counts[np.uint64(own[i])] += 1


@njit(parallel=True, cache=True)
def find_rows(first, last, bits, cuts, shift, bins, starts, keys, slots, counts):
    """Write the slot of each row of chunks first..last-1, and add up how many rows each slot has: counts[chunk, slot].

    Marks have the given `shift` and `bins` of ranges, `starts` and `keys`. Chunk c has rows cuts[c]:cuts[c + 1].
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        find_rows_of_chunk(own, bits, cuts, Marks(Ranges(shift, bins), starts, keys), slots, counts[own])


@njit(cache=True)
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


@njit
def take_pairs_of_chunk(chunk, slots, labels, cuts, pairs, values):
    """Do as `take_pairs` does for a chunk."""
    one = np.uint64(1)
    for row in range(cuts[chunk], cuts[chunk + 1]):
        values[row] = pairs[np.uint64(slots[row]) << one | (np.uint64(labels[row]) & one)]


@njit(parallel=True, cache=True)
def take_pairs(first, last, slots, labels, cuts, pairs, values):
    """Write the pairs of each row of chunks first..last-1, given `pairs[2 * slot + label]`. `values` may be `slots`."""
    for chunk in prange(first, last):
        take_pairs_of_chunk(np.int64(chunk), slots, labels, cuts, pairs, values)


@njit
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


@njit(allocates=True)
def write_effects_of_owners(begin, slots, labels, pairs, indptr, totals, effects, having):
    """Do as `write_effects` does for some owners; the first of all rows is that at `begin`.

    Sums of owners are differences of sums up to each of some rows, as loops over the few rows of each would end at
    random.
    """
    room, totals = np.zeros((2, ROWS_AT_ONCE + 1), np.int64), (totals[0], totals[1], totals[2])
    slots, labels = slots[indptr[0] - begin : indptr[-1] - begin], labels[indptr[0] - begin : indptr[-1] - begin]
    begin = indptr[0]
    owner, sum_before, count_before = 0, np.int64(0), np.int64(0)
    for first in range(0, max(len(slots), 1), ROWS_AT_ONCE):
        own = slots[first : first + ROWS_AT_ONCE]
        sum_rows(own, labels[first : first + ROWS_AT_ONCE], pairs, room)
        done = indptr[0] + first
        while owner < len(effects) and indptr[owner + 1] <= done + len(own):
            end = indptr[owner + 1]
            total, count = room[0, end - done] - sum_before, room[1, end - done] - count_before
            rest = end - begin - count
            having[0] += rest > 0
            having[1] += count > 0
            effects[owner] = effect_on_auc(np.float64(total), rest, count, totals)
            owner, begin = owner + 1, end
            sum_before, count_before = room[0, end - done], room[1, end - done]
        sum_before -= room[0, len(own)]
        count_before -= room[1, len(own)]


@njit(parallel=True, cache=True)
def write_effects(first, last, slots, labels, pairs, indptr, edges, totals, effects, having):
    """Write the effects on the AUC of owners edges[p]..edges[p + 1]-1 for each of the parts p of first..last-1.

    Owner i has rows indptr[i]..indptr[i + 1]-1, the first of which is that at `indptr[0]`. The pairs of a row are
    `pairs[2 * slot + label]`. `totals` (3,) are those of `effect_on_auc`. `having`, int64 (n_parts, 2), gets the number
    of owners that have a row of each class.
    """
    for part in prange(first, last):
        own = np.int64(part)
        start, end = edges[own], edges[own + 1]
        of_owners, to = indptr[start : end + 1], effects[start:end]
        write_effects_of_owners(indptr[0], slots, labels, pairs, of_owners, totals, to, having[own])


@njit
def add_squares_of_rows(labels, first, second, sums):
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


@njit(parallel=True, cache=True)
def add_squares(first, last, labels, one, other, cuts, sums):
    """Add the squared differences of two values of the rows cuts[c]:cuts[c + 1] for each of the chunks first..last-1.

    `sums` is int64 (n_chunks, 2, 3), see `add_squares_of_rows`.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        start, end = cuts[own], cuts[own + 1]
        add_squares_of_rows(labels[start:end], one[start:end], other[start:end], sums[own])

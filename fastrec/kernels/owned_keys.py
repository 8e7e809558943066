"""Rows with owners, such as users: moved into buckets by score, sorted, and counted in pairs of rows of both classes.

Keys are those of `kernels.sorting`: `key << 1 | label` without the key's top bit, which all keys of a bucket share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .sorting import KEYS_AT_ONCE, LOW_BITS, LOW_MASK, extremes, fill_keys, pairs_of_keys, sum_before

Array = np.ndarray[Any, Any]
COUNTS_PER_ROW = 12  # of the possible keys of a bucket: more are not worth counting each
MAX_COUNTED = MAX_SHORT = 1 << 31  # rows whose pairs 63 bits count, and whose places 31 bits do
MOVES_PER_ROW = 8  # of rows that insertion sorts
DIGIT_BITS = 11  # of keys that insertion would take too many moves to sort


@njit
def choose_rows(block, n_rows, shift, first, end, chosen):
    """Write which of the first `n_rows` keys of a block have a bin in first..end-1, ascending; return how many."""
    shift, first = np.uint64(shift), np.uint64(first)
    width = np.uint64(end) - first
    n = np.uint64(0)
    for i in range(n_rows):
        chosen[n] = i
        n += np.uint64((np.uint64(block[i]) >> shift) - first < width)
    return np.int64(n)


@njit(allocates=True)
def scatter_owned_chunk(chunk, bits, labels, cuts, indptr, owner, shift, bins, bucket_of, places, keys, owners):
    """Do as `scatter_owned` does for a chunk; its first row is that of `owner`."""
    block, chosen = np.empty(KEYS_AT_ONCE, keys.dtype), np.empty(KEYS_AT_ONCE, np.int32)
    one, places = np.uint64(1), places[chunk]
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        rows = bits[start : min(start + len(block), cuts[chunk + 1])]
        fill_keys(rows, block)
        n = choose_rows(block, len(rows), shift, bins[0], bins[1], chosen)
        for j in range(n):
            i = np.int64(chosen[j])
            key = np.uint64(block[i])
            bucket = bucket_of[key >> np.uint64(shift)]
            place = places[bucket]
            places[bucket] = place + 1
            keys[place] = key << one | (np.uint64(labels[start + i]) & one)
            while indptr[owner + 1] <= start + i:
                owner += 1
            owners[place] = owner


@njit(parallel=True, cache=True)
def scatter_owned(first, last, bits, labels, cuts, indptr, starts, shift, bins, bucket_of, places, keys, owners):
    """Do as `sorting.scatter` does for the rows of chunks first..last-1 with a bin in bins[0]..bins[1]-1.

    Owner i has rows indptr[i]:indptr[i + 1]. The owner of the first row of chunk c is `starts[c]`; `owners` gets those
    of the rows.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        scatter_owned_chunk(own, bits, labels, cuts, indptr, starts[own], shift, bins, bucket_of, places, keys, owners)


@njit
def place_of(key, lowest, cut):
    """Return the place of a row: rows of a lower score have lower places, of one place those of negative rows."""
    one = np.uint64(1)
    return ((np.uint64(key) >> one) - lowest) >> cut << one | (np.uint64(key) & one)


@njit(allocates=True)
def sort_by_place(keys, owners, taken, taken_owners, lowest, span):
    """Write keys and owners in ascending order of the keys; return whether few moves were enough.

    A place is named by the leading bits of the distance from the lowest score: there are about as many as rows.
    Insertion sorts the rows of neighbouring places.
    """
    room = 2
    while room <= len(keys):
        room *= 2
    cut = np.uint64(0)
    while span >> cut >= np.uint64(room) >> np.uint64(1):
        cut += np.uint64(1)
    places = np.zeros(room, np.int32)
    for i in range(len(keys)):
        places[place_of(keys[i], lowest, cut)] += 1
    sum_before(places)
    for i in range(len(keys)):
        own = place_of(keys[i], lowest, cut)
        at = places[own]
        places[own] = at + 1
        taken[at] = keys[i]
        taken_owners[at] = owners[i]
    left = MOVES_PER_ROW * len(keys)
    for i in range(1, len(keys)):
        key = taken[i]
        if taken[i - 1] > key:
            owner = taken_owners[i]
            j = i
            while j > 0 and taken[j - 1] > key and left > 0:
                taken[j] = taken[j - 1]
                taken_owners[j] = taken_owners[j - 1]
                j -= 1
                left -= 1
            taken[j] = key
            taken_owners[j] = owner
    return left > 0


@njit
def copy_rows(keys, owners, to_keys, to_owners):
    """Copy keys and owners."""
    for i in range(len(keys)):
        to_keys[i] = keys[i]
        to_owners[i] = owners[i]


@njit(allocates=True)
def sort_by_digits(keys, owners, taken, taken_owners, lowest, span):
    """Write keys and owners in ascending order of the keys, digit by digit of the distance from the lowest key."""
    counts, mask = np.empty(1 << DIGIT_BITS, np.int64), np.uint64((1 << DIGIT_BITS) - 1)
    copy_rows(keys, owners, taken, taken_owners)
    for cut in range(0, 8 * keys.itemsize, DIGIT_BITS):
        shift = np.uint64(cut)
        if span >> shift == np.uint64(0):
            break
        copy_rows(taken, taken_owners, keys, owners)
        counts[:] = 0
        for i in range(len(keys)):
            counts[(np.uint64(keys[i]) - lowest) >> shift & mask] += 1
        sum_before(counts)
        for i in range(len(keys)):
            own = (np.uint64(keys[i]) - lowest) >> shift & mask
            at = counts[own]
            counts[own] = at + 1
            taken[at] = keys[i]
            taken_owners[at] = owners[i]


@njit(allocates=True)
def sort_bucket(keys, owners):
    """Sort the rows of a bucket by key, `key << 1 | label`, in place."""
    if len(keys) == 0:
        return
    least, most = extremes(keys)
    taken, taken_owners = np.empty_like(keys), np.empty_like(owners)
    lowest, one = least >> np.uint64(1), np.uint64(1)
    few = len(keys) < MAX_SHORT
    if not few or not sort_by_place(keys, owners, taken, taken_owners, lowest, (most >> one) - lowest):
        sort_by_digits(keys, owners, taken, taken_owners, least, most - least)
    copy_rows(taken, taken_owners, keys, owners)


@njit(parallel=True, cache=True)
def sort_owned(first, last, keys, owners, edges):
    """Sort the rows edges[b]:edges[b + 1] of each of the buckets first..last-1 by key, in place."""
    for bucket in prange(first, last):
        start, end = edges[np.int64(bucket)], edges[np.int64(bucket) + 1]
        sort_bucket(keys[start:end], owners[start:end])


class Around(NamedTuple):
    """What the pairs of the rows of a bucket depend on, besides these rows."""

    below: int  # negatives of lower buckets
    above: int  # positives of this bucket and of higher ones
    shift: int  # pairs of a row are rounded to multiples of `2 ** shift`, and divided by that


@njit
def add_pairs(keys, owners, around, sums):
    """Add twice the ordered pairs that each sorted row is in, those of a tie counting half, to the sum of its owner."""
    one = keys.dtype.type(1)
    below, above, shift = around
    half = (1 << shift) >> 1
    n = len(keys)
    i = 0
    while i < n:
        start = i
        score = keys[i] >> one
        positives = np.int64(keys[i] & one)
        i += 1
        while i < n and keys[i] >> one == score:
            positives += np.int64(keys[i] & one)
            i += 1
        negatives = i - start - positives
        of_negative = (2 * above - positives + half) >> shift
        more = ((2 * below + negatives + half) >> shift) - of_negative
        for j in range(start, i):
            sums[owners[j]] += of_negative + more * np.int64(keys[j] & one)
        below += negatives
        above -= positives


@njit
def positives_of(keys):
    """Return how many keys have the label 1."""
    one = keys.dtype.type(1)
    n = np.int64(0)
    for i in range(len(keys)):
        n += np.int64(keys[i] & one)
    return n


@njit(parallel=True, cache=True)
def count_positives(first, last, keys, edges, positives):
    """Write how many of the keys edges[b]:edges[b + 1] of each of the buckets first..last-1 have the label 1."""
    for bucket in prange(first, last):
        own = np.int64(bucket)
        positives[own] = positives_of(keys[edges[own] : edges[own + 1]])


@njit
def write_pairs_of_keys(keys, pairs, around):
    """Write the pairs that `add_pairs` adds for each possible key, from the lowest score on; keys are in any order.

    Return twice the ordered pairs of the rows with each other, or -1 if `pairs` has no room, and the lowest key.
    """
    one = np.uint64(1)
    below, above, shift = around
    half = (1 << shift) >> 1
    least, most = extremes(keys)
    least = least >> one << one
    if (most - least | one) >= np.uint64(len(pairs)):
        return np.int64(-1), least
    used = np.int64(most - least | one) + 1
    pairs[:used] = 0
    for i in range(len(keys)):
        pairs[np.uint64(keys[i]) - least] += 1
    twice = np.int64(0)
    for at in range(0, used, 2):
        negatives, positives = pairs[at], pairs[at + 1]
        pairs[at] = (2 * above - positives + half) >> shift
        pairs[at + 1] = (2 * below + negatives + half) >> shift
        twice += positives * (2 * (below - around.below) + negatives)
        below += negatives
        above -= positives
    return twice, least


@njit
def add_pairs_of_keys(keys, owners, least, pairs, sums):
    """Add what `write_pairs_of_keys` wrote for the key of each row to the sum of its owner."""
    least = np.uint64(least)
    for i in range(len(keys)):
        sums[owners[i]] += pairs[np.uint64(keys[i]) - least]


@njit
def add_pairs_of_bucket(keys, owners, around, table, sums):
    """Add the pairs that the rows of a bucket are in, and return twice those within it: (high, low).

    Either they are counted in the table, for each possible key, or the rows are sorted.
    """
    twice, least = np.int64(-1), np.uint64(0)
    if 0 < len(keys) <= MAX_COUNTED:
        twice, least = write_pairs_of_keys(keys, table[: COUNTS_PER_ROW * len(keys)], around)
    if twice >= 0:
        add_pairs_of_keys(keys, owners, least, table, sums)
        return twice >> LOW_BITS, twice & LOW_MASK
    sort_bucket(keys, owners)
    add_pairs(keys, owners, around, sums)
    high, low, _ = pairs_of_keys(keys)
    return high, low


@njit(allocates=True)
def add_pairs_of_lane(lane, n_lanes, keys, owners, edges, below, above, shift, n_counts, sums, pairs):
    """Do as `add_pairs_of_buckets` does for a lane."""
    table = np.empty(n_counts, np.int64)
    for bucket in range(lane, len(pairs), n_lanes):
        start, end = edges[bucket], edges[bucket + 1]
        around = Around(below[bucket], above[bucket], shift)
        high, low = add_pairs_of_bucket(keys[start:end], owners[start:end], around, table, sums)
        pairs[bucket, 0], pairs[bucket, 1] = high, low


@njit(parallel=True, cache=True)
def add_pairs_of_buckets(first, last, n_lanes, keys, owners, edges, below, above, shift, n_counts, sums, pairs):
    """Add twice the ordered pairs that rows are in to the sums of their owners, for lanes first..last-1.

    Lane l takes each bucket b with b % n_lanes == l, and adds to the row l % len(sums) of `sums`, int64. Bucket b has
    rows edges[b]:edges[b + 1], and `below[b]` and `above[b]` of `Around`. Twice the pairs within it go to `pairs[b]`,
    int64 (n_buckets, 2), as (high, low). A table has `n_counts` counts.
    """
    for lane in prange(first, last):
        own = np.int64(lane)
        to = sums[own % len(sums)]
        add_pairs_of_lane(own, n_lanes, keys, owners, edges, below, above, shift, n_counts, to, pairs)

"""Rows with owners, such as users: moved into buckets by score, sorted, and counted in pairs of rows of both classes.

Keys are those of `kernels.sorting`: `key << 1 | label` without the key's top bit, which all keys of a bucket share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.sorting import extremes, fill_keys, sum_before
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
MOVES_PER_ROW = 8  # of rows that insertion sorts


class Owned(NamedTuple):
    """Who owns neighbouring rows."""

    indptr: Array  # int64 (n_owners + 1,): where the rows of each owner begin
    row: int  # the first of the neighbours
    owner: int  # of that row


class SomeBuckets(NamedTuple):
    """Neighbouring buckets: key k belongs to one of them if `first <= k >> shift < end`, to `bucket_of[k >> shift]`."""

    shift: int
    bucket_of: Array
    first: int
    end: int


@helper
def choose_rows(block, n_rows, buckets, chosen):
    """Write which of the first `n_rows` keys of a block are in some buckets, ascending; return how many."""
    shift, first = np.uint64(buckets.shift), np.uint64(buckets.first)
    width = np.uint64(buckets.end) - first
    n = np.uint64(0)
    for i in range(n_rows):
        chosen[n] = i
        n += np.uint64((np.uint64(block[i]) >> shift) - first < width)
    return np.int64(n)


def scatter_owned(bits, labels, owned, buckets, places, keys, owners, room):
    """Write `key << 1 | label` and the owner of each row in some buckets to the next place of its bucket.

    `room` is for some keys, and as many positions.
    """
    block, chosen = room
    shift = np.uint64(buckets.shift)
    one = np.uint64(1)
    owner = np.int64(owned.owner)
    for start in range(0, len(bits), len(block)):
        rows = bits[start : start + len(block)]
        own = labels[start : start + len(block)]
        fill_keys(rows, block)
        n = choose_rows(block, len(rows), buckets, chosen)
        for j in range(n):
            i = np.int64(chosen[j])
            key = np.uint64(block[i])
            bucket = buckets.bucket_of[key >> shift]
            place = places[bucket]
            places[bucket] = place + 1
            keys[place] = key << one | (np.uint64(own[i]) & one)
            while owned.indptr[owner + 1] <= owned.row + start + i:
                owner += 1
            owners[place] = owner


@helper
def place_of(key, lowest, cut):
    """Return the place of a row: rows of a lower score have lower places, of one place those of negative rows."""
    one = np.uint64(1)
    return ((np.uint64(key) >> one) - lowest) >> cut << one | (np.uint64(key) & one)


def sort_owned(keys, owners, bits, places, taken, taken_owners):
    """Write keys, `key << 1 | label`, and owners in ascending order of the keys.

    `places` counts the rows of each place, which the leading `bits` of the distance from the lowest score name: about
    as many as there are rows. Insertion sorts the rows of neighbouring places. Return whether few moves were enough.
    """
    least, most = extremes(keys)
    lowest = least >> np.uint64(1)
    span = (most >> np.uint64(1)) - lowest
    cut = np.uint64(0)
    while span >> cut >> np.uint64(bits) > np.uint64(0):
        cut += np.uint64(1)
    places[:] = 0
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


class Around(NamedTuple):
    """What the pairs of the rows of a bucket depend on, besides these rows."""

    below: int  # negatives of lower buckets
    above: int  # positives of this bucket and of higher ones
    shift: int  # pairs of a row are rounded to multiples of `2 ** shift`, and divided by that


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


def count_positives(keys):
    """Return how many keys have the label 1."""
    one = keys.dtype.type(1)
    n = np.int64(0)
    for i in range(len(keys)):
        n += np.int64(keys[i] & one)
    return n


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


def add_pairs_of_keys(keys, owners, least, pairs, sums):
    """Add what `write_pairs_of_keys` wrote for the key of each row to the sum of its owner."""
    least = np.uint64(least)
    for i in range(len(keys)):
        sums[owners[i]] += pairs[np.uint64(keys[i]) - least]

"""Sorting of all rows by score: floats as integers of the same order, and counts of tied rows by class.

A float's bits become an unsigned *key* that orders like the float: -0.0 is 0.0, infinities are at the ends. The top
bits of a key name its *bin*; neighbouring bins make a *bucket*, small enough to be sorted inside the caches. The output
is `key << 1 | label` without the key's top bit, which all keys of a bucket share.

Counts are integers of any size. A sum of products is kept as `(high, low)`, which means `high << 20 | low` and holds
for up to 2^40 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import njit, prange

Array = np.ndarray[Any, Any]
LOW_BITS = 20
LOW_MASK = (1 << LOW_BITS) - 1
ROWS_PER_CARRY = 1 << 20  # rows below 2^41 each: their sum stays below 2^61
KEYS_AT_ONCE = 1 << 10  # rows per loop that makes keys: they stay in the L1 cache


@njit
def fill_keys(bits, keys):
    """Write the keys of floats given as bits; return the largest bits without their sign, those of a NaN if any.

    A loop of its own without branches works on many rows at a time, and signs in random order cost no mispredictions.
    """
    kind = keys.dtype.type
    sign = kind(1) << kind(8 * keys.itemsize - 1)
    largest = kind(0)
    for i in range(len(bits)):
        row = bits[i]
        key = kind(~row) if row > sign else kind(row | sign)  # -0.0, the sign alone, is 0.0
        keys[i] = key
        largest = max(largest, kind(row & kind(sign - kind(1))))
    return largest


@njit(allocates=True)
def count_bins_of_chunk(chunk, bits, codes, cuts, infinity, shift, counts):
    """Count the rows of a chunk by bin; return whether there is a NaN in it."""
    shift, one, counts, block = np.uint64(shift), np.uint64(1), counts[chunk], np.empty(KEYS_AT_ONCE, bits.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        rows = bits[start : min(start + len(block), cuts[chunk + 1])]
        if fill_keys(rows, block) > infinity:
            return True
        if len(codes) > 0:
            for i in range(len(rows)):
                counts[np.uint64(codes[start + i] + 1) << one | np.uint64(block[i]) >> shift] += 1
        else:
            for i in range(len(rows)):
                counts[np.uint64(block[i]) >> shift] += 1
    return False


@njit(parallel=True, cache=True)
def count_bins(first, last, bits, codes, cuts, infinity, shift, counts, has_nan):
    """Count the rows of chunks first..last-1 by bin: `counts[chunk, bin]`, int64. Chunk c has rows cuts[c]:cuts[c + 1].

    Unless `codes` are (0,), there are two bins, of scores below 0 and others, for each code from -1 on. `has_nan`, bool
    (n_chunks,), says in which chunks there is a NaN, which ends their counts.
    """
    for chunk in prange(first, last):
        has_nan[chunk] = count_bins_of_chunk(np.int64(chunk), bits, codes, cuts, infinity, shift, counts)


@njit(allocates=True)
def count_rounded(chunk, labels, scores, cuts, infinity, shift, counts, span):
    """Count the rows of a chunk by bin and class; return whether there is a NaN in it."""
    shift, one = np.uint64(shift), np.uint64(1)
    lowest, end = np.uint64(span[0]), np.uint64(span[1])
    rounded, block = np.empty(KEYS_AT_ONCE, np.float32), np.empty(KEYS_AT_ONCE, np.uint32)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        own = labels[start : min(start + len(block), cuts[chunk + 1])]
        for i in range(len(own)):
            rounded[i] = np.float32(scores[start + i])
        bits = rounded[: len(own)].view(np.uint32)
        if fill_keys(bits, block) > infinity:
            return True
        lowest = min(lowest, np.uint64(block[: len(own)].min()) >> shift)
        end = max(end, (np.uint64(block[: len(own)].max()) >> shift) + one)
        for i in range(len(own)):
            counts[(np.uint64(block[i]) >> shift) << one | (np.uint64(own[i]) & one)] += 1
    span[0], span[1] = lowest, end
    return False


@njit(parallel=True, cache=True)
def count_classes_by_bin(first, last, labels, scores, cuts, infinity, shift, counts, spans, has_nan):
    """Count the rows of chunks first..last-1 by the bin of their float32 score and by class.

    They are added to `counts[chunk, 2 * bin + label]`, int64. `spans[chunk]` is widened to the bins found. `cuts` and
    `has_nan` are those of `count_bins`.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        has_nan[own] = count_rounded(own, labels, scores, cuts, infinity, shift, counts[own], spans[own])


@njit(allocates=True)
def scatter_chunk(chunk, bits, labels, codes, values, cuts, shift, bucket_of, places, keys, payload):
    """Do as `scatter` does for a chunk."""
    shift, one, places = np.uint64(shift), np.uint64(1), places[chunk]
    block = np.empty(KEYS_AT_ONCE, keys.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        end = min(start + len(block), cuts[chunk + 1])
        own = labels[start:end]
        fill_keys(bits[start:end], block)
        for i in range(len(own)):
            key = np.uint64(block[i])
            bucket = np.int64(bucket_of[key >> shift])
            if len(codes) > 0:
                bucket += 2 * (codes[start + i] + 1)
            place = places[bucket]
            places[bucket] = place + 1
            keys[place] = key << one | (np.uint64(own[i]) & one)
            if len(payload) > 0:
                payload[place] = values[start + i] if len(values) > 0 else np.uint64(start + i)


@njit(parallel=True, cache=True)
def scatter(first, last, bits, labels, codes, values, cuts, shift, bucket_of, places, keys, payload):
    """Write `key << 1 | label` of each row of chunks first..last-1 to the next of the places of its chunk and bucket.

    Key k belongs to bucket `bucket_of[k >> shift]`, with codes to that of two for each code from -1 on; `places` is
    int64 (n_chunks, n_buckets). `payload`, unless it is (0,), takes the values of rows, uint64 (n,), or their numbers
    if there are no values.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        scatter_chunk(own, bits, labels, codes, values, cuts, shift, bucket_of, places, keys, payload)


@njit
def pairs_of_keys(keys):
    """Return twice the ordered pairs of sorted rows, those of a tie counting half: (high, low, positives).

    In a tie negatives come before positives. A positive adds twice the negatives below it and once those tied with it:
    the negatives so far plus the negatives before its tie.
    """
    one = keys.dtype.type(1)
    before = np.int64(0)  # negatives before this tie
    negatives = np.int64(0)
    high = np.int64(0)
    low = np.int64(0)
    previous = keys[0] >> one if len(keys) > 0 else one
    for start in range(0, len(keys), ROWS_PER_CARRY):
        part = keys[start : start + ROWS_PER_CARRY]
        for i in range(len(part)):
            score = part[i] >> one
            positive = np.int64(part[i] & one)
            before = negatives if score != previous else before
            low += -positive & (negatives + before)
            negatives += 1 - positive
            previous = score
        high += low >> LOW_BITS
        low &= LOW_MASK
    return high, low, len(keys) - negatives


@njit(parallel=True, cache=True)
def count_pairs(first, last, keys, edges, pairs):
    """Write the pairs of the sorted rows of parts first..last-1, with ties: `pairs` is int64 (n_parts, 3).

    Part p has rows edges[p]:edges[p + 1], and takes what `pairs_of_keys` returns.
    """
    for part in prange(first, last):
        own = np.int64(part)
        pairs[own, 0], pairs[own, 1], pairs[own, 2] = pairs_of_keys(keys[edges[own] : edges[own + 1]])


@njit(cache=True)
def write_pairs(keys, rows, below, above, pairs, squares):
    """Write twice the ordered pairs that each row of a bucket is in, a tied one counting half, to `pairs[row]`.

    `keys` are sorted with their `rows`. If these are (0,), `squares`, int64 (2, 3), get the sums over negative and over
    positive rows of the products h h, h l and l l of pairs h << 16 | l instead. `below` are the negative rows of lower
    buckets, `above` the positive ones of this bucket and higher ones.
    """
    one = keys.dtype.type(1)
    end = 0
    while end < len(keys):
        start, score, positives = end, keys[end] >> one, np.int64(0)
        while end < len(keys) and keys[end] >> one == score:
            positives += np.int64(keys[end] & one)
            end += 1
        negatives = end - start - positives
        of_negatives, of_positives = 2 * above - positives, 2 * below + negatives
        if len(rows) > 0:
            for i in range(start, end):
                pairs[rows[i]] = of_positives if keys[i] & one else of_negatives
        else:
            add_squares(of_negatives, negatives, squares[0])
            add_squares(of_positives, positives, squares[1])
        below += negatives
        above -= positives


@njit
def add_squares(value, n, sums):
    """Add n times the products of the halves of a value."""
    high, low = value >> 16, value & 0xFFFF
    sums[0] += n * high * high
    sums[1] += n * high * low
    sums[2] += n * low * low


@njit(cache=True)
def write_values(keys, scores, rows, weights, known, table, factor, values):
    """Write a number of each row of a bucket, times its weight and a factor, to `values[row]` as an integer.

    `table`, float64 (n, 2), has the numbers of negative and positive rows of the known scores, float64 (n,), ascending.
    The keys of rows are sorted, with their scores; steps that double skip the known scores between two of them. A score
    that is not known, as the weights of its rows are too small, has the numbers of a neighbour. `weights` is (0,) if
    all are 1.
    """
    one = keys.dtype.type(1)
    at, last = 0, len(known) - 1
    for i in range(len(rows)):
        step = 1
        while step > 0:
            is_below = at + step <= last and known[at + step - 1] < scores[i]
            at += step if is_below else 0
            step = 2 * step if is_below else step >> 1
        weight = weights[rows[i]] if len(weights) > 0 else 1.0
        values[rows[i]] = np.int64(np.rint(weight * table[at, keys[i] & one] * factor))

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
from .runs import two_sum

Array = np.ndarray[Any, Any]
LOW_BITS = 20
LOW_MASK = (1 << LOW_BITS) - 1
ROWS_PER_CARRY = 1 << 20  # rows below 2^41 each: their sum stays below 2^61
LABEL_BIT = np.uint64(63)  # of a payload
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


@njit
def first_nan(bits, infinity):
    """Return the position of the first NaN, whose bits without the sign are above those of infinity."""
    magnitude = (np.uint64(1) << np.uint64(8 * bits.itemsize - 1)) - np.uint64(1)
    for i in range(len(bits)):
        if np.uint64(bits[i]) & magnitude > np.uint64(infinity):
            return i
    return -1


@njit
def extremes(keys):
    """Return the lowest and the highest key, comparing many at a time."""
    kind = keys.dtype.type
    lowest = keys[0]
    highest = keys[0]
    for i in range(len(keys)):
        lowest = min(lowest, kind(keys[i]))
        highest = max(highest, kind(keys[i]))
    return np.uint64(lowest), np.uint64(highest)


@njit(allocates=True)
def count_bins_of_chunk(chunk, bits, cuts, infinity, shift, counts):
    """Count the rows of a chunk by bin; return the position of the first NaN in it, or -1."""
    shift, counts, block = np.uint64(shift), counts[chunk], np.empty(KEYS_AT_ONCE, bits.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        rows = bits[start : min(start + len(block), cuts[chunk + 1])]
        if fill_keys(rows, block) > infinity:
            return start - cuts[chunk] + first_nan(rows, infinity)
        for i in range(len(rows)):
            counts[np.uint64(block[i]) >> shift] += 1
    return np.int64(-1)


@njit(parallel=True, cache=True)
def count_bins(first, last, bits, cuts, infinity, shift, counts, found):
    """Count the rows of chunks first..last-1 by bin: `counts[chunk, bin]`, int64. Chunk c has rows cuts[c]:cuts[c + 1].

    `found` gets the position of the first NaN in each chunk, or -1.
    """
    for chunk in prange(first, last):
        found[chunk] = count_bins_of_chunk(np.int64(chunk), bits, cuts, infinity, shift, counts)


@njit(allocates=True)
def count_rounded(chunk, labels, scores, cuts, infinity, shift, counts, span):
    """Count the rows of a chunk by bin and class; return the position of the first NaN in it, or -1."""
    shift, one = np.uint64(shift), np.uint64(1)
    lowest, end = np.uint64(span[0]), np.uint64(span[1])
    rounded, block = np.empty(KEYS_AT_ONCE, np.float32), np.empty(KEYS_AT_ONCE, np.uint32)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        own = labels[start : min(start + len(block), cuts[chunk + 1])]
        for i in range(len(own)):
            rounded[i] = np.float32(scores[start + i])
        bits = rounded[: len(own)].view(np.uint32)
        if fill_keys(bits, block) > infinity:
            return start - cuts[chunk] + first_nan(bits, infinity)
        least, most = extremes(block[: len(own)])
        lowest = min(lowest, least >> shift)
        end = max(end, (most >> shift) + one)
        for i in range(len(own)):
            counts[(np.uint64(block[i]) >> shift) << one | (np.uint64(own[i]) & one)] += 1
    span[0], span[1] = lowest, end
    return np.int64(-1)


@njit(parallel=True, cache=True)
def count_classes_by_bin(first, last, labels, scores, cuts, infinity, shift, counts, spans, found):
    """Count the rows of chunks first..last-1 by the bin of their float32 score and by class.

    They are added to `counts[chunk, 2 * bin + label]`, int64. `spans[chunk]` is widened to the bins found. `cuts` and
    `found` are those of `count_bins`.
    """
    for chunk in prange(first, last):
        own = np.int64(chunk)
        found[own] = count_rounded(own, labels, scores, cuts, infinity, shift, counts[own], spans[own])


@njit(allocates=True)
def scatter_chunk(chunk, bits, labels, cuts, shift, bucket_of, places, keys):
    """Do as `scatter` does for a chunk."""
    shift, one, places = np.uint64(shift), np.uint64(1), places[chunk]
    block = np.empty(KEYS_AT_ONCE, keys.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        end = min(start + len(block), cuts[chunk + 1])
        own = labels[start:end]
        fill_keys(bits[start:end], block)
        for i in range(len(own)):
            key = np.uint64(block[i])
            bucket = bucket_of[key >> shift]
            place = places[bucket]
            places[bucket] = place + 1
            keys[place] = key << one | (np.uint64(own[i]) & one)


@njit(parallel=True, cache=True)
def scatter(first, last, bits, labels, cuts, shift, bucket_of, places, keys):
    """Write `key << 1 | label` of each row of chunks first..last-1 to the next of the places of its chunk and bucket.

    Key k belongs to bucket `bucket_of[k >> shift]`; `places` is int64 (n_chunks, n_buckets).
    """
    for chunk in prange(first, last):
        scatter_chunk(np.int64(chunk), bits, labels, cuts, shift, bucket_of, places, keys)


@njit
def count_codes_of_chunk(chunk, codes, bits, cuts, counts):
    """Do as `count_codes` does for a chunk."""
    one, counts = np.uint64(1), counts[chunk]
    sign = one << np.uint64(8 * bits.itemsize - 1)
    for i in range(cuts[chunk], cuts[chunk + 1]):
        above = np.uint64(bits[i] <= sign)  # -0.0, the sign alone, is 0.0
        counts[np.uint64(codes[i] + 1) << one | above] += 1


@njit(parallel=True, cache=True)
def count_codes(first, last, codes, bits, cuts, counts):
    """Count the rows of each code from -1 on, those with a score below 0 first, for chunks first..last-1.

    `counts` is int64 (n_chunks, 2 * n_codes + 2): two counts per code.
    """
    for chunk in prange(first, last):
        count_codes_of_chunk(np.int64(chunk), codes, bits, cuts, counts)


@njit(allocates=True)
def scatter_chunk_by_code(chunk, bits, labels, codes, cuts, places, keys):
    """Do as `scatter_by_code` does for a chunk."""
    one, places = np.uint64(1), places[chunk]
    top = np.uint64(8 * keys.itemsize - 1)
    block = np.empty(KEYS_AT_ONCE, keys.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        end = min(start + len(block), cuts[chunk + 1])
        own, of_rows = labels[start:end], codes[start:end]
        fill_keys(bits[start:end], block)
        for i in range(len(own)):
            key = np.uint64(block[i])
            at = np.uint64(of_rows[i] + 1) << one | key >> top
            place = places[at]
            places[at] = place + 1
            keys[place] = key << one | (np.uint64(own[i]) & one)


@njit(parallel=True, cache=True)
def scatter_by_code(first, last, bits, labels, codes, cuts, places, keys):
    """Write `key << 1 | label` of each row of chunks first..last-1 to the next place of its code and its sign.

    `places` is like the counts of `count_codes`.
    """
    for chunk in prange(first, last):
        scatter_chunk_by_code(np.int64(chunk), bits, labels, codes, cuts, places, keys)


@njit(allocates=True)
def scatter_pairs_of_chunk(chunk, bits, labels, values, cuts, shift, bucket_of, places, keys, payload):
    """Do as `scatter_pairs` does for a chunk."""
    shift, one, places = np.uint64(shift), np.uint64(1), places[chunk]
    block = np.empty(KEYS_AT_ONCE, bits.dtype)
    for start in range(cuts[chunk], cuts[chunk + 1], len(block)):
        end = min(start + len(block), cuts[chunk + 1])
        own = labels[start:end]
        fill_keys(bits[start:end], block)
        for i in range(len(own)):
            key = np.uint64(block[i])
            bucket = bucket_of[key >> shift]
            place = places[bucket]
            places[bucket] = place + 1
            keys[place] = key
            value = np.uint64(values[start + i]) if len(values) > 0 else np.uint64(start + i)
            payload[place] = (np.uint64(own[i]) & one) << LABEL_BIT | value


@njit(parallel=True, cache=True)
def scatter_pairs(first, last, bits, labels, values, cuts, shift, bucket_of, places, keys, payload):
    """Do as `scatter` does, but write keys and, in `payload`, `label << 63 | value`.

    Values are uint64 (n,), or the numbers of rows if (0,). The bits of float64 weights are such values: the label is
    their sign then.
    """
    for chunk in prange(first, last):
        scatter_pairs_of_chunk(np.int64(chunk), bits, labels, values, cuts, shift, bucket_of, places, keys, payload)


@njit(cache=True)
def write_pairs_of_rows(keys, payload, below, above, pairs):
    """Write twice the ordered pairs that each row of a bucket is in, a tied one counting half, to `pairs[row]`.

    `keys` are sorted; `payload` are `label << 63 | row`. `below` are the negative rows of lower buckets, `above` the
    positive ones of this bucket and higher ones.
    """
    n = len(keys)
    row = (np.uint64(1) << LABEL_BIT) - np.uint64(1)
    end = 0
    while end < n:
        start, key, positives = end, keys[end], np.int64(0)
        while end < n and keys[end] == key:
            positives += np.int64(payload[end] >> LABEL_BIT)
            end += 1
        negatives = end - start - positives
        for i in range(start, end):
            is_positive = payload[i] >> LABEL_BIT > np.uint64(0)
            pairs[payload[i] & row] = 2 * below + negatives if is_positive else 2 * above - positives
        below += negatives
        above -= positives


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


@njit
def place_tie(state, rows, squares, totals, area):
    """Add the squared distances from `area` of the placements of a tie's rows, times their squared weights.

    Pairs are of (negatives, positives). `state` has those below the tie, then the sum of each class and its rounding
    error.
    """
    below, positives_below, sum_, rest, positive_sum, positive_rest = state
    above = totals[1] - positives_below - rows[1]
    apart = (above + rows[1] / 2.0) / totals[1] - area
    sum_, lost = two_sum(sum_, squares[0] * (apart * apart))
    rest += lost
    apart = (below + rows[0] / 2.0) / totals[0] - area
    positive_sum, lost = two_sum(positive_sum, squares[1] * (apart * apart))
    return below + rows[0], positives_below + rows[1], sum_, rest, positive_sum, positive_rest + lost


@njit
def place_row(state, positive, totals, area):
    """Do as `place_tie` does for one row of weight 1, whose class has no other sum."""
    below, positives_below, sum_, rest, positive_sum, positive_rest = state
    before = below if positive else totals[1] - positives_below
    apart = before / (totals[0] if positive else totals[1]) - area
    square = apart * apart
    sum_, lost = two_sum(sum_, 0.0 if positive else square)
    positive_sum, positive_lost = two_sum(positive_sum, square if positive else 0.0)
    below += 0.0 if positive else 1.0
    positives_below += 1.0 if positive else 0.0
    return below, positives_below, sum_, rest + lost, positive_sum, positive_rest + positive_lost


@njit
def load_placements(sums):
    """Return the state of `place_tie`."""
    return sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]


@njit(cache=True)
def place_runs(positives, negatives, positive_squares, negative_squares, totals, area, sums):
    """Add the distances of `place_tie` for score counts by ascending score. `totals`: all negatives and positives."""
    state = load_placements(sums)
    for i in range(len(positives)):
        rows = np.float64(negatives[i]), np.float64(positives[i])
        state = place_tie(state, rows, (np.float64(negative_squares[i]), np.float64(positive_squares[i])), totals, area)
    for at in range(len(sums)):
        sums[at] = state[at]


@njit(cache=True)
def place_keys(keys, totals, area, sums):
    """Add the distances of `place_tie` for the sorted keys of rows without weights: the bits of `place_runs`."""
    one = keys.dtype.type(1)
    state = load_placements(sums)
    n = len(keys)
    i = 0
    while i < n:
        score = keys[i] >> one
        positive = np.int64(keys[i] & one)
        start = i
        i += 1
        if i == n or keys[i] >> one != score:
            state = place_row(state, positive > 0, totals, area)
            continue
        while i < n and keys[i] >> one == score:
            positive += np.int64(keys[i] & one)
            i += 1
        rows = np.float64(i - start - positive), np.float64(positive)
        state = place_tie(state, rows, rows, totals, area)
    for at in range(len(sums)):
        sums[at] = state[at]


@njit(cache=True)
def write_runs(keys, scores, positives, negatives):
    """Write the distinct keys of sorted rows, `key >> 1`, with the counts of each class.

    Returns how many there are.
    """
    one = keys.dtype.type(1)
    at = -1
    for i in range(len(keys)):
        score = np.uint64(keys[i] >> one)
        if at < 0 or score != scores[at]:
            at += 1
            scores[at] = score
            positives[at] = 0
            negatives[at] = 0
        positive = np.int64(keys[i] & one)
        positives[at] += positive
        negatives[at] += 1 - positive
    return at + 1


@njit(cache=True)
def write_weighted_runs(keys, signed, scale, scores, columns, sizes):
    """Write the distinct keys of sorted rows with sums of weights and of their squares by class.

    `signed[i]` is the weight of row i, below 0 for a positive row. `columns`, float64 (4, n), takes the sums of
    positives and negatives, then those of their squares; `sizes` (2,) counts negatives and positives that have a
    weight. Returns how many distinct keys there are.
    """
    positives, negatives, positive_squares, negative_squares = columns[0], columns[1], columns[2], columns[3]
    n = len(keys)
    at = 0
    i = 0
    while i < n:
        score = keys[i]
        negative = 0.0
        negative_rest = 0.0
        positive = 0.0
        positive_rest = 0.0
        negative_square = 0.0
        positive_square = 0.0
        while i < n and keys[i] == score:
            own = signed[i]
            weight = abs(own) * scale
            if own < 0:
                positive, lost = two_sum(positive, weight)
                positive_rest += lost
                positive_square += weight * weight
                sizes[1] += 1
            else:
                negative, lost = two_sum(negative, weight)
                negative_rest += lost
                negative_square += weight * weight
                sizes[0] += weight > 0
            i += 1
        scores[at] = score
        negatives[at] = negative + negative_rest
        positives[at] = positive + positive_rest
        negative_squares[at] = negative_square
        positive_squares[at] = positive_square
        at += 1
    return at


@njit(cache=True)
def sum_weighted_pairs(positives, negatives, sums):
    """Add score counts, by ascending score, to `sums`.

    `sums` holds the negatives, the positives and twice the ordered pairs, each with its rounding error.
    """
    below = sums[0]
    below_rest = sums[1]
    above = sums[2]
    above_rest = sums[3]
    pairs = sums[4]
    pairs_rest = sums[5]
    for i in range(len(positives)):
        pairs, lost = two_sum(pairs, positives[i] * (2.0 * (below + below_rest) + negatives[i]))
        pairs_rest += lost
        below, lost = two_sum(below, negatives[i])
        below_rest += lost
        above, lost = two_sum(above, positives[i])
        above_rest += lost
    sums[0] = below
    sums[1] = below_rest
    sums[2] = above
    sums[3] = above_rest
    sums[4] = pairs
    sums[5] = pairs_rest

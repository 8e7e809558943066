"""Sums of differences under random signs, and sums of random draws, for tests and intervals by resampling.

Random numbers are a function of a counter (SplitMix64: Steele, Lea & Flood 2014), so any range of rounds can be
computed anywhere. Differences are integers, so that their sums have the same bits in any order.
"""

from __future__ import annotations

import numpy as np

from .jit import njit, prange

STEP = 0x9E3779B97F4A7C15  # from counter to counter: the golden ratio
WORD = 64  # rounds that share a random number per user, a bit each
SLICE = 1024  # users per pass, so few that their random numbers stay in the first-level cache
DRAWN = 4096  # users that one draw chooses from: as many as stay in the first-level cache
BITS = 12  # bits of a random number for one draw
DRAWS = 5  # draws from one random number


@njit
def random_word(counter):
    """Return 64 random bits, a function of the counter."""
    z = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(allocates=True)
def flip_word(values, seed, sums, w):
    """Write the sums of the rounds of one word."""
    n, words = len(values), np.empty(SLICE, np.uint64)
    own = sums[WORD * w : WORD * w + WORD]
    for r in range(len(own)):
        own[r] = 0
    for start in range(0, n, SLICE):
        part = values[start : start + SLICE]
        counter = seed + (np.uint64(w) * np.uint64(n) + np.uint64(start)) * np.uint64(STEP)
        for i in range(len(part)):
            words[i] = random_word(counter + np.uint64(i) * np.uint64(STEP))
        for r in range(len(own)):
            bit = np.uint64(1) << np.uint64(r)
            chosen = np.int64(0)
            for i in range(len(part)):
                chosen += part[i] if words[i] & bit else np.int64(0)
            own[r] += chosen


@njit(parallel=True, cache=True)
def flip_signs(first, last, values, seed, sums):
    """Write to `sums[r]` the sum of the values that a random sign keeps in round r, for words first..last-1 of rounds.

    Bit r % WORD of the random number of a user and a word keeps the user's value.
    """
    for w in prange(first, last):
        flip_word(values, seed, sums, np.int64(w))


@njit
def draw_full(part, n_draws, counter):
    """Return the sum of draws with replacement from DRAWN values."""
    low = np.uint64(DRAWN - 1)
    drawn = np.int64(0)
    n_words = n_draws // DRAWS
    for j in range(n_words):
        word = random_word(counter + np.uint64(j) * np.uint64(STEP))
        drawn += part[word & low]
        drawn += part[(word >> np.uint64(BITS)) & low]
        drawn += part[(word >> np.uint64(2 * BITS)) & low]
        drawn += part[(word >> np.uint64(3 * BITS)) & low]
        drawn += part[(word >> np.uint64(4 * BITS)) & low]
    word = random_word(counter + np.uint64(n_words) * np.uint64(STEP))
    for j in range(n_draws - n_words * DRAWS):
        drawn += part[(word >> np.uint64(j * BITS)) & low]
    return drawn


@njit
def draw_few(part, n_draws, counter):
    """Return the sum of draws with replacement from fewer values, each with the same chance to 2^-32."""
    size = np.uint64(len(part))
    drawn = np.int64(0)
    for j in range(n_draws):
        word = random_word(counter + np.uint64(j) * np.uint64(STEP))
        drawn += part[((word >> np.uint64(32)) * size) >> np.uint64(32)]
    return drawn


@njit
def resample_round(values, seed, counts, counter):
    """Return the sum of the draws of one round."""
    counter = seed + counter * np.uint64(STEP)
    total = np.int64(0)
    for b in range(len(counts)):
        part = values[DRAWN * b : DRAWN * b + DRAWN]
        n_draws = np.int64(counts[b])
        if len(part) == DRAWN:
            total += draw_full(part, n_draws, counter)
            counter += np.uint64(n_draws // DRAWS + 1) * np.uint64(STEP)
        else:
            total += draw_few(part, n_draws, counter)
    return total


@njit(parallel=True, cache=True)
def resample(first, last, values, seed, counts, counters, sums):
    """Write to `sums[r]`, for rounds first..last-1, the sum of as many draws with replacement as there are values.

    Of the draws of round r, `counts[r, b]` are from block b of DRAWN values. The random numbers of round r begin at
    `counters[r]`.
    """
    for r in prange(first, last):
        sums[r] = resample_round(values, seed, counts[r], counters[r])

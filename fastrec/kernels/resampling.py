"""Sums of differences under random signs, and sums of random draws, for tests and intervals by resampling.

Random numbers are a function of a counter (SplitMix64: Steele, Lea & Flood 2014), so any range of rounds can be
computed anywhere. Differences are integers, so that their sums have the same bits in any order.
"""

from __future__ import annotations

import numpy as np

from fastrec.runtime.compiler import helper

STEP = 0x9E3779B97F4A7C15  # from counter to counter: the golden ratio
WORD = 64  # rounds that share a random number per user, a bit each
SLICE = 1024  # users per pass, so few that their random numbers stay in the first-level cache
DRAWN = 4096  # users that one draw chooses from: as many as stay in the first-level cache
BITS = 12  # bits of a random number for one draw
DRAWS = 5  # draws from one random number


@helper
def random_word(counter):
    """Return 64 random bits, a function of the counter."""
    z = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def flip_bin(values, seed, sums, scratch, edges, at):
    """Write to `sums[r]`, for the rounds of some words, the sum of the values that a random bit chooses.

    The words are edges[at]..edges[at + 1]-1; `scratch` is uint64 (bins, SLICE). With the total t of all values and the
    sum s, 2 s - t is the sum under random signs.
    """
    n = len(values)
    words = scratch[at]
    for w in range(edges[at], edges[at + 1]):
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


@helper
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


@helper
def draw_few(part, n_draws, counter):
    """Return the sum of draws with replacement from fewer values, each with the same chance to 2^-32."""
    size = np.uint64(len(part))
    drawn = np.int64(0)
    for j in range(n_draws):
        word = random_word(counter + np.uint64(j) * np.uint64(STEP))
        drawn += part[((word >> np.uint64(32)) * size) >> np.uint64(32)]
    return drawn


def resample_bin(values, seed, counts, counters, sums, edges, at):
    """Write to `sums[r]`, for some rounds, the sum of as many draws with replacement as there are values.

    The rounds are edges[at]..edges[at + 1]-1. Of the draws of round r, `counts[r, b]` are from block b of DRAWN values.
    The random numbers of round r begin at `counters[r]`.
    """
    for r in range(edges[at], edges[at + 1]):
        counter = seed + counters[r] * np.uint64(STEP)
        total = np.int64(0)
        for b in range(counts.shape[1]):
            part = values[DRAWN * b : DRAWN * b + DRAWN]
            n_draws = np.int64(counts[r, b])
            if len(part) == DRAWN:
                total += draw_full(part, n_draws, counter)
                counter += np.uint64(n_draws // DRAWS + 1) * np.uint64(STEP)
            else:
                total += draw_few(part, n_draws, counter)
        sums[r] = total

"""Numbering of strings in order of first appearance, with a hash table that keeps every distinct string.

Strings are bytes, end to end, with offsets as in Arrow. Two are equal only if all their bytes are.
"""

from __future__ import annotations

import numpy as np

from fastrec.runtime.compiler import helper

MULTIPLIER = 0x9E3779B97F4A7C15  # odd, with bits as good as random: the golden ratio
HALF = 32  # bits
TOO_MANY_STEPS = 8  # per string; more mean that the strings were chosen to collide


@helper
def word_at(data, at):
    """Return eight bytes as a number; LLVM compiles this to one load."""
    word = np.uint64(data[at])
    for j in range(1, 8):
        word |= np.uint64(data[at + np.uint64(j)]) << np.uint64(8 * j)
    return word


@helper
def short_word(data, at, n):
    """Return a string of fewer than eight bytes as a number, distinct among strings of this length."""
    word = np.uint64(0)
    for j in range(n):
        word |= np.uint64(data[at + np.uint64(j)]) << np.uint64(8 * j)
    return word


@helper
def mixed(number, word):
    """Return a hash extended by another word."""
    number = (number ^ word) * np.uint64(MULTIPLIER)
    return number ^ (number >> np.uint64(HALF))


@helper
def ends_of(data, at, n):
    """Return the first and last eight bytes of a string; they may overlap, and cover strings of up to sixteen."""
    if n < 8:
        return short_word(data, at, n), np.uint64(0)
    return word_at(data, at), word_at(data, at + np.uint64(n - 8))


@helper
def hash_string(data, at, n, first, last):
    """Return a hash of all bytes of a string, given its ends."""
    number = mixed(mixed(np.uint64(n), first), last)
    for j in range(8, n - 8, 8):
        number = mixed(number, word_at(data, at + np.uint64(j)))
    return mixed(number, np.uint64(MULTIPLIER))


@helper
def same_middle(data, at, kept, start, n):
    """Return whether two strings whose ends agree also agree in between."""
    for j in range(8, n - 8, 8):
        if word_at(data, at + np.uint64(j)) != word_at(kept, start + np.uint64(j)):
            return False
    return True


@helper
def shift_of(table):
    """Return how far to shift a hash to get a slot of a table, whose size is a power of two."""
    shift = np.uint64(64)
    size = len(table)
    while size > 1:
        size //= 2
        shift -= np.uint64(1)
    return shift


def number_strings(offsets, data, codes, table, records, kept, distinct, n_bytes):
    """Number strings until a new one does not fit; return the strings done, the distinct ones and the bytes kept.

    The strings done are -1 if too many strings collide. `table` holds the number of the string at each slot, or -1.
    `records` has, for each distinct string, its start in `kept`, its length and its ends.
    """
    shift = shift_of(table)
    top = np.uint64(len(table) - 1)
    steps_left = TOO_MANY_STEPS * (len(codes) + 64)
    for i in range(len(codes)):
        at = np.uint64(offsets[i])
        n = np.int64(offsets[i + 1]) - np.int64(offsets[i])
        first, last = ends_of(data, at, n)
        slot = hash_string(data, at, n, first, last) >> shift
        own = np.int64(table[slot])
        while own >= 0:
            record = records[own]
            if record[2] == first and record[3] == last and record[1] == np.uint64(n):
                if same_middle(data, at, kept, record[0], n):
                    break
            slot = (slot + np.uint64(1)) & top
            own = np.int64(table[slot])
            steps_left -= 1
            if steps_left < 0:
                return np.int64(-1), distinct, n_bytes
        if own < 0:
            if distinct == len(records) or n_bytes + n > len(kept):
                return np.int64(i), distinct, n_bytes
            for j in range(n):
                kept[np.uint64(n_bytes + j)] = data[at + np.uint64(j)]
            own = distinct
            table[slot] = own
            record = records[own]
            record[0], record[1], record[2], record[3] = np.uint64(n_bytes), np.uint64(n), first, last
            n_bytes += n
            distinct += 1
        codes[i] = own
    return np.int64(len(codes)), distinct, n_bytes


def fill_table(table, records, kept, distinct):
    """Put the numbers of distinct strings into an empty table."""
    shift = shift_of(table)
    top = np.uint64(len(table) - 1)
    for own in range(distinct):
        record = records[own]
        slot = hash_string(kept, record[0], np.int64(record[1]), record[2], record[3]) >> shift
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & top
        table[slot] = own

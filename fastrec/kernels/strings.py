"""Numbering of strings in order of first appearance, with a hash table that keeps every distinct string.

Strings are bytes, end to end, with offsets as in Arrow. Two are equal only if all their bytes are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit

Array = np.ndarray[Any, Any]
MULTIPLIER = 0x9E3779B97F4A7C15  # odd, with bits as good as random: the golden ratio
HALF = 32  # bits
LONG = 16  # bytes: the key of a shorter string holds all its bytes
LENGTH_AT = 56  # of the bits of a key
AHEAD = 64  # strings whose slots are read before any is compared
MINUS, ZERO = 45, 48  # characters
MOST_DIGITS, MAX_INTEGER = 19, 2**63 - 1  # of 64 bits; 19 digits fit an unsigned one
TOO_MANY_STEPS = 8  # per string; more mean that the strings were chosen to collide


@njit(forceinline=True)
def word_at(data, at):
    """Return eight bytes as a number; LLVM compiles this to one load."""
    word = np.uint64(data[at])
    for j in range(1, 8):
        word |= np.uint64(data[at + np.uint64(j)]) << np.uint64(8 * j)
    return word


@njit(forceinline=True)
def short_word(data, at, n):
    """Return a string of fewer than eight bytes as a number, distinct among strings of this length."""
    word = np.uint64(0)
    for j in range(n):
        word |= np.uint64(data[at + np.uint64(j)]) << np.uint64(8 * j)
    return word


@njit
def mixed(number, word):
    """Return a hash extended by another word."""
    number = (number ^ word) * np.uint64(MULTIPLIER)
    return number ^ (number >> np.uint64(HALF))


@njit(forceinline=True)
def hash_string(data, at, n):
    """Return a hash of all bytes of a string of at least sixteen."""
    number = mixed(mixed(np.uint64(n), word_at(data, at)), word_at(data, at + np.uint64(n - 8)))
    for j in range(8, n - 8, 8):
        number = mixed(number, word_at(data, at + np.uint64(j)))
    return mixed(number, np.uint64(MULTIPLIER))


@njit(forceinline=True)
def key_of(data, at, n):
    """Return two numbers: all bytes of a string of fewer than sixteen and its length, or a hash and the length."""
    length = np.uint64(n) << np.uint64(LENGTH_AT)
    if n < 8:
        return short_word(data, at, n), length
    if n < LONG:
        last = word_at(data, at + np.uint64(n - 8)) >> np.uint64(8 * (LONG - 1 - n))
        return word_at(data, at), length | (last >> np.uint64(8))
    return hash_string(data, at, n), (np.uint64(LONG) << np.uint64(LENGTH_AT)) | np.uint64(n)


@njit
def is_long(last):
    """Return whether a key is a hash."""
    return last >> np.uint64(LENGTH_AT) == np.uint64(LONG)


@njit
def hash_key(first, last):
    """Return a hash of a key."""
    return first if is_long(last) else mixed(mixed(first, last), np.uint64(MULTIPLIER))


@njit
def same_bytes(data, at, kept, start, n):
    """Return whether two strings of `n` bytes, at least eight, are equal."""
    for j in range(0, n - 8, 8):
        if word_at(data, at + np.uint64(j)) != word_at(kept, start + np.uint64(j)):
            return False
    return word_at(data, at + np.uint64(n - 8)) == word_at(kept, start + np.uint64(n - 8))


@njit
def shift_of(table):
    """Return how far to shift a hash to get a slot of a table, whose size is a power of two."""
    shift = np.uint64(64)
    size = len(table)
    while size > 1:
        size //= 2
        shift -= np.uint64(1)
    return shift


class Numbered(NamedTuple):
    """The distinct strings so far, with room for more."""

    table: Array  # int32: the number of the string at each slot, or -1
    keys: Array  # uint64 (n, 2): the key of each distinct string
    ends: Array  # int64 (n + 1,): string i ends at `ends[i + 1]` of `kept`
    kept: Array  # uint8
    ahead: Array  # uint64 (AHEAD, 4): the keys and slots of a block of strings


@njit
def look_ahead(offsets, data, start, stop, shift, known):
    """Write the keys and slots of a block of strings to `known.ahead`, and read what the slots hold.

    The reads do not depend on each other, so that the processor waits for memory once per block, not once per string.
    """
    table, keys, ahead = known.table, known.keys, known.ahead
    for i in range(start, stop):
        first, last = key_of(data, np.uint64(offsets[i]), np.int64(offsets[i + 1]) - np.int64(offsets[i]))
        ahead[i - start, 0], ahead[i - start, 1] = first, last
        ahead[i - start, 2] = hash_key(first, last) >> shift
    for i in range(stop - start):
        ahead[i, 3] = np.uint64(max(table[ahead[i, 2]], 0))
    for i in range(stop - start):
        ahead[i, 3] = keys[ahead[i, 3], 0]


@njit(cache=True)
def number_strings(offsets, data, codes, known, distinct):
    """Number strings until a new one does not fit; return the strings done and the distinct ones.

    The strings done are -1 if too many strings collide.
    """
    table, keys, ends, kept, ahead = known
    shift = shift_of(table)
    top = np.uint64(len(table) - 1)
    steps_left = TOO_MANY_STEPS * (len(codes) + 64)
    for i in range(len(codes)):
        nth = i % AHEAD
        if nth == 0:
            look_ahead(offsets, data, i, min(i + AHEAD, len(codes)), shift, known)
        first, last, slot = ahead[nth, 0], ahead[nth, 1], ahead[nth, 2]
        at = np.uint64(offsets[i])
        n = np.int64(offsets[i + 1]) - np.int64(offsets[i])
        own = np.int64(table[slot])
        while own >= 0:
            if keys[own, 0] == first and keys[own, 1] == last:
                if not is_long(last) or same_bytes(data, at, kept, np.uint64(ends[own]), n):
                    break
            slot = (slot + np.uint64(1)) & top
            own = np.int64(table[slot])
            steps_left -= 1
            if steps_left < 0:
                return np.int64(-1), distinct
        if own < 0:
            start = ends[distinct]
            if distinct == len(keys) or start + n > len(kept):
                return np.int64(i), distinct
            for j in range(n):
                kept[np.uint64(start + j)] = data[at + np.uint64(j)]
            own = distinct
            table[slot] = own
            keys[own, 0], keys[own, 1] = first, last
            distinct += 1
            ends[distinct] = start + n
        codes[i] = own
    return np.int64(len(codes)), distinct


@njit(cache=True)
def fill_table(table, keys, distinct):
    """Put the numbers of distinct strings into an empty table."""
    shift = shift_of(table)
    top = np.uint64(len(table) - 1)
    for own in range(distinct):
        slot = hash_key(keys[own, 0], keys[own, 1]) >> shift
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & top
        table[slot] = own


@njit(forceinline=True)
def integer_at(data, at, n):
    """Return whether a string spells an integer of 64 bits as it is written, without spare zeros, and the integer."""
    is_negative = n > 0 and data[at] == MINUS
    first = np.int64(is_negative)
    leading_zero = n > first and data[at + np.uint64(first)] == ZERO
    if n == first or n > first + MOST_DIGITS or (leading_zero and n > 1):
        return False, np.uint64(0)
    value = np.uint64(0)
    for j in range(first, n):
        digit = np.uint64(data[at + np.uint64(j)]) - np.uint64(ZERO)
        if digit > np.uint64(9):
            return False, np.uint64(0)
        value = value * np.uint64(10) + digit
    if value > np.uint64(MAX_INTEGER) + np.uint64(is_negative):
        return False, np.uint64(0)
    return True, np.uint64(0) - value if is_negative else value


@njit(cache=True)
def hash_strings(offsets, data, words):
    """Write a hash of each string to `words`: the integer that it spells, as integers are not hashed."""
    for i in range(len(words)):
        at, n = np.uint64(offsets[i]), np.int64(offsets[i + 1]) - np.int64(offsets[i])
        is_integer, value = integer_at(data, at, n)
        if is_integer:
            words[i] = value
        else:
            first, last = key_of(data, at, n)
            words[i] = hash_key(first, last)

"""Hashes of rows to 128 bits, and their sums, which no order of rows or users changes.

A hash is two numbers of 64 bits, and a sum of hashes their two sums modulo 2^64. The sum over the rows of a user is
hashed with the id of the user, so that a row costs two multiplications, and one more with a number or a place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.strings import short_word, word_at
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
LOW, HIGH = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # odd, with bits as good as random
MAX_DIGITS = 19  # more do not fit int64


class HashedColumn(NamedTuple):
    """A column: integers and no hashes, or the hashes of distinct values and the place of each row among them."""

    codes: Array  # int64, int32 or uint8 (n,)
    hashes: Array  # uint64 (n_values, 2), or (0, 2)


@helper
def mixed(word):
    """Return 64 bits that depend on all bits of a word; others have others."""
    word = (word ^ (word >> np.uint64(32))) * np.uint64(LOW)
    return word ^ (word >> np.uint64(29))


@helper
def hash_bits(bits):
    """Return the hash of 64 bits; others have another."""
    low = mixed(bits + np.uint64(LOW))
    return low, mixed(low + np.uint64(HIGH))


@helper
def hash_cell(cells, row):
    """Return the hash of the value in a row."""
    if len(cells.hashes):
        code = np.uint64(cells.codes[row])
        return cells.hashes[code, 0], cells.hashes[code, 1]
    return hash_bits(np.uint64(np.int64(cells.codes[row])))


@helper
def hash_sum(low, high, user_low, user_high):
    """Return the hash of a sum of hashes of rows, and of the id of their user; other sums have another."""
    low = mixed(low + user_low)
    return low, mixed((high ^ low) + user_high)


@helper
def sum_hashes(items, first, last):
    """Return the sums of the hashes of the items in some rows."""
    low, high = np.uint64(0), np.uint64(0)
    for row in range(first, last):
        row_low, row_high = hash_cell(items, np.uint64(row))
        low += row_low
        high += row_high
    return low, high


@helper
def sum_hashes_in_order(items, first, last):
    """Return the sums of the hashes of the items in some rows, and those of items with their places."""
    low, high, placed_low, placed_high = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    place = np.uint64(0)
    for row in range(first, last):
        row_low, row_high = hash_cell(items, np.uint64(row))
        low += row_low
        high += row_high
        place += np.uint64(HIGH)
        word = mixed(row_low ^ place)
        placed_low += word
        placed_high += (word >> np.uint64(31)) ^ row_high
    return low, high, placed_low, placed_high


@helper
def sum_hashes_with_numbers(items, numbers, first, last):
    """Return the sums of the hashes of the items in some rows with their numbers; -0.0 is 0.0."""
    low, high = np.uint64(0), np.uint64(0)
    for row in range(first, last):
        row_low, row_high = hash_cell(items, np.uint64(row))
        word = mixed(row_high ^ np.float64(numbers[np.uint64(row)] + 0.0).view(np.uint64))
        low += word
        high += (word >> np.uint64(31)) ^ row_low
    return low, high


def add_hashes(users, indptr, items, numbers, in_order, sums, edges, at):
    """Add the hashes of users edges[at]..edges[at + 1]-1 to `sums[at]`: of their items, with numbers, and with places.

    `users` is a HashedColumn, empty without ids; `items` is that of the rows, and `numbers` has their floats, or
    nothing. Places are those among the rows of a user, and count only if rows are `in_order`.
    """
    own = sums[at]
    for user in range(edges[at], edges[at + 1]):
        first, last = indptr[user], indptr[user + 1]
        if last == first:
            continue
        user_low, user_high = np.uint64(LOW), np.uint64(HIGH)
        if len(users.codes):
            user_low, user_high = hash_cell(users, np.uint64(user))
        if in_order:
            low, high, placed_low, placed_high = sum_hashes_in_order(items, first, last)
            placed_low, placed_high = hash_sum(placed_low, placed_high, user_low, user_high)
            own[4] += placed_low
            own[5] += placed_high
        else:
            low, high = sum_hashes(items, first, last)
        low, high = hash_sum(low, high, user_low, user_high)
        own[0] += low
        own[1] += high
        if len(numbers):
            low, high = sum_hashes_with_numbers(items, numbers, first, last)
            low, high = hash_sum(low, high, user_low, user_high)
            own[2] += low
            own[3] += high


@helper
def integer_in(data, at, n):
    """Return whether a string is an integer of int64 as `str` writes it, and the integer."""
    minus = n > 0 and data[at] == np.uint8(ord("-"))
    start = 1 if minus else 0
    value = np.uint64(0)
    if n == start or n - start > MAX_DIGITS or (data[at + np.uint64(start)] == np.uint8(ord("0")) and n > 1):
        return False, value
    for j in range(start, n):
        digit = np.uint64(data[at + np.uint64(j)]) - np.uint64(ord("0"))
        if digit > np.uint64(9):
            return False, value
        value = value * np.uint64(10) + digit
    if value >> np.uint64(63):
        return False, value
    return True, np.uint64(0) - value if minus else value


def hash_strings(offsets, data, hashes, edges, at):
    """Write the hash of each of the strings edges[at]..edges[at + 1]-1; one that spells an integer has its hash."""
    for i in range(edges[at], edges[at + 1]):
        place, n = np.uint64(offsets[i]), np.int64(offsets[i + 1]) - np.int64(offsets[i])
        is_integer, value = integer_in(data, place, n)
        if is_integer:
            hashes[i, 0], hashes[i, 1] = hash_bits(value)
            continue
        low, high = np.uint64(n), np.uint64(n)
        for j in range(0, n - n % 8, 8):
            word = word_at(data, place + np.uint64(j))
            low, high = mixed((low ^ word) + np.uint64(LOW)), mixed((high ^ word) + np.uint64(HIGH))
        word = short_word(data, place + np.uint64(n - n % 8), n % 8)
        hashes[i, 0] = mixed((low ^ word) + np.uint64(LOW))
        hashes[i, 1] = mixed((high ^ word) + np.uint64(HIGH))

"""Hashes of users with their rows, and sums of these hashes, which no order of users changes.

A row has a hash of 64 bits. The sum over the rows of a user is hashed with the id of the user, to two numbers of 64
bits. So a row costs one multiplication, and one more with a number or for the order.
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
    hashes: Array  # uint64 (n_values,), or (0,)


@helper
def mixed(word):
    """Return 64 bits that depend on all bits of a word; others have others."""
    word = (word ^ (word >> np.uint64(32))) * np.uint64(LOW)
    return word ^ (word >> np.uint64(29))


@helper
def hash_bits(bits):
    """Return the hash of 64 bits; others have another."""
    return mixed(bits + np.uint64(LOW))


@helper
def hash_cell(cells, row):
    """Return the hash of the value in a row."""
    if len(cells.hashes):
        return cells.hashes[np.uint64(cells.codes[row])]
    return hash_bits(np.uint64(np.int64(cells.codes[row])))


@helper
def add_hash(own, part, of_rows, of_user):
    """Add the hash of a user to the sums of a part; others, or other sums of hashes of rows, have another."""
    low = mixed(of_rows * np.uint64(HIGH) + of_user)  # a user is no item
    own[part] += low
    own[part + 1] += mixed(low + np.uint64(HIGH))


@helper
def sum_hashes(items, first, last):
    """Return the sum of the hashes of the items in some rows."""
    total = np.uint64(0)
    for row in range(first, last):
        total += hash_cell(items, np.uint64(row))
    return total


@helper
def sum_hashes_in_order(items, first, last):
    """Return the sum of the hashes of the items in some rows, and a polynomial of them, which their order changes."""
    total, polynomial = np.uint64(0), np.uint64(LOW)
    for row in range(first, last):
        of_row = hash_cell(items, np.uint64(row))
        total += of_row
        polynomial = polynomial * np.uint64(HIGH) + of_row
    return total, polynomial


@helper
def sum_hashes_with_numbers(items, numbers, first, last):
    """Return the sum of the hashes of the items in some rows with their numbers; -0.0 is 0.0."""
    total = np.uint64(0)
    for row in range(first, last):
        bits = np.float64(numbers[np.uint64(row)] + 0.0).view(np.uint64)
        total += mixed(hash_cell(items, np.uint64(row)) ^ bits)
    return total


def add_hashes(users, indptr, items, numbers, in_order, sums, edges, at):
    """Add hashes of users edges[at]..edges[at + 1]-1 to `sums[at]`: of their items, with numbers, and in their order.

    `users` is a HashedColumn, empty without ids; `items` is that of the rows, and `numbers` has their floats, or
    nothing. The order among the rows of a user counts only if rows are `in_order`.
    """
    own = sums[at]
    for user in range(edges[at], edges[at + 1]):
        first, last = indptr[user], indptr[user + 1]
        if last == first:
            continue
        of_user = hash_cell(users, np.uint64(user)) if len(users.codes) else np.uint64(LOW)
        if in_order:
            total, polynomial = sum_hashes_in_order(items, first, last)
            add_hash(own, 4, polynomial, of_user)
        else:
            total = sum_hashes(items, first, last)
        add_hash(own, 0, total, of_user)
        if len(numbers):
            add_hash(own, 2, sum_hashes_with_numbers(items, numbers, first, last), of_user)


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
            hashes[i] = hash_bits(value)
            continue
        word = np.uint64(n)
        for j in range(0, n - n % 8, 8):
            word = mixed((word ^ word_at(data, place + np.uint64(j))) + np.uint64(HIGH))
        hashes[i] = mixed((word ^ short_word(data, place + np.uint64(n - n % 8), n % 8)) + np.uint64(HIGH))

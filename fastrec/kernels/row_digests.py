"""Hashes of users with their rows, and sums of these hashes, which no order of users changes.

A row has a hash of 64 bits. The sum over the rows of a user is hashed with the id of the user, to two numbers of 64
bits. So a row costs one multiplication, and one more with a number or for the order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .strings import short_word, word_at

Array = np.ndarray[Any, Any]
LOW, HIGH = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F  # odd, with bits as good as random
MAX_DIGITS = 19  # more do not fit int64


class HashedColumn(NamedTuple):
    """A column: integers and no hashes, or the hashes of distinct values and the place of each row among them."""

    codes: Array  # int64, int32 or uint8 (n,)
    hashes: Array  # uint64 (n_values,), or (0,)


@njit
def mixed(word):
    """Return 64 bits that depend on all bits of a word; others have others."""
    word = (word ^ (word >> np.uint64(32))) * np.uint64(LOW)
    return word ^ (word >> np.uint64(29))


@njit
def hash_bits(bits):
    """Return the hash of 64 bits; others have another."""
    return mixed(bits + np.uint64(LOW))


@njit
def hash_cell(cells, row):
    """Return the hash of the value in a row."""
    if len(cells.hashes):
        return cells.hashes[np.uint64(cells.codes[row])]
    return hash_bits(np.uint64(np.int64(cells.codes[row])))


@njit
def add_hash(own, part, of_rows, of_user):
    """Add the hash of a user to the sums of a part; others, or other sums of hashes of rows, have another."""
    low = mixed(of_rows * np.uint64(HIGH) + of_user)  # a user is no item
    own[part] += low
    own[part + 1] += mixed(low + np.uint64(HIGH))


@njit
def sum_hashes(items, first, last):
    """Return the sum of the hashes of the items in some rows."""
    total = np.uint64(0)
    for row in range(first, last):
        total += hash_cell(items, np.uint64(row))
    return total


@njit
def sum_hashes_in_order(items, first, last):
    """Return the sum of the hashes of the items in some rows, and a polynomial of them, which their order changes."""
    total, polynomial = np.uint64(0), np.uint64(LOW)
    for row in range(first, last):
        of_row = hash_cell(items, np.uint64(row))
        total += of_row
        polynomial = polynomial * np.uint64(HIGH) + of_row
    return total, polynomial


@njit
def sum_hashes_with_numbers(items, numbers, first, last):
    """Return the sum of the hashes of the items in some rows with their numbers; -0.0 is 0.0."""
    total = np.uint64(0)
    for row in range(first, last):
        bits = np.float64(numbers[np.uint64(row)] + 0.0).view(np.uint64)
        total += mixed(hash_cell(items, np.uint64(row)) ^ bits)
    return total


@njit
def add_users(users, indptr, items, numbers, in_order, own, start, stop):
    """Add hashes of users start..stop-1 to `own`, one of the `sums` of `add_hashes`."""
    for user in range(start, stop):
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


@njit(parallel=True, cache=True)
def add_hashes(first, last, user_codes, user_hashes, indptr, codes, hashes, numbers, in_order, sums, edges):
    """Add hashes of users edges[t]..edges[t + 1]-1 to `sums[t]`, uint64 (n_tasks, 6), for tasks t in first..last-1.

    A sum has two numbers of the items of users, two of these with numbers, and two of their order. The codes and hashes
    are those of a `HashedColumn`: of users, without codes if there are no ids, and of the items of rows. `numbers` has
    the floats of rows, or nothing. The order among the rows of a user counts only if rows are `in_order`.
    """
    for task in prange(first, last):
        users, items = HashedColumn(user_codes, user_hashes), HashedColumn(codes, hashes)
        at = np.int64(task)
        add_users(users, indptr, items, numbers, in_order, sums[at], edges[at], edges[at + 1])


@njit
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


@njit
def hash_range(offsets, data, hashes, start, stop):
    """Write the hashes of strings start..stop-1."""
    for i in range(start, stop):
        place, n = np.uint64(offsets[i]), np.int64(offsets[i + 1]) - np.int64(offsets[i])
        is_integer, value = integer_in(data, place, n)
        if is_integer:
            hashes[i] = hash_bits(value)
            continue
        word = np.uint64(n)
        for j in range(0, n - n % 8, 8):
            word = mixed((word ^ word_at(data, place + np.uint64(j))) + np.uint64(HIGH))
        hashes[i] = mixed((word ^ short_word(data, place + np.uint64(n - n % 8), n % 8)) + np.uint64(HIGH))


@njit(parallel=True, cache=True)
def hash_strings(first, last, offsets, data, hashes, edges):
    """Write the hashes, uint64 (n,), of strings edges[t]..edges[t + 1]-1, for tasks t in first..last-1.

    A string that spells an integer has the hash of the integer.
    """
    for task in prange(first, last):
        at = np.int64(task)
        hash_range(offsets, data, hashes, edges[at], edges[at + 1])

"""Rows of text that all have the form of the first one, read into columns in one pass over their bytes.

Numbers are read exactly: integers of up to 19 digits, and the nearest float, by the algorithm of Eisel and Lemire
("Number parsing at a gigabyte per second", 2021). The kernel stops at anything unusual instead of explaining it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.strings import word_at
from fastrec.runtime.compiler import helper, inlined

SKIPPED, SKIPPED_JSON, INTEGER, FLOAT, STRING = range(5)  # kinds of fields
BARE, QUOTED, EITHER = range(3)  # how fields are quoted
NEWLINE, QUOTE, PLUS, MINUS, POINT, ZERO = (ord(sign) for sign in '\n"+-.0')
ORDINARY, STOP, UNUSUAL = range(3)  # classes of bytes in a string
DOUBT = -1
MAX_INTEGER = 2**63 - 1
MAX_DIGITS = 19  # that fit 64 bits
EXACT_MANTISSA, EXACT_POWER = 1 << 53, 22  # floats hold integers and powers of ten up to these
MIN_POWER, MAX_POWER = -342, 308
HALF, LOW_HALF = 32, 2**32 - 1
LOW_BITS = 0x1FF  # of a product, which decide how it is rounded
ZEROS, ABOVE_NINE, LOW_HALVES, TOP_BITS = (0x0101010101010101 * byte for byte in (ZERO, 0x46, 0x0F, 0x80))
POSITIONS = 0x0001020304050607  # its highest byte is n after a shift by n bytes
EVERY_FOURTH = 0x000000FF000000FF  # byte
LOWER, LOWER_E = 0x20, ord("e")  # the bit of lower case
TRUE, NULL, FALSE = (int.from_bytes(word, "little") for word in (b"true", b"null", b"false"))
MAX_EXPONENT = 10_000  # larger ones are cut
INEXACT = 0x7FF  # the exponent of infinities


class FormOfRows(NamedTuple):
    """How rows are written, and the tables that reading numbers needs."""

    fields: Any  # kind, column, quoting and the end of the literal before each; after the last, that of the last one
    literals: Any  # end to end
    classes: Any  # of the bytes in bare strings, and in quoted ones
    scales: Any  # powers of ten as integers
    tens: Any  # as floats
    powers: Any  # their first 128 bits


class ColumnsOfRows(NamedTuple):
    """Columns of each kind, to be written."""

    integers: Any
    floats: Any  # with one more row
    bits: Any  # of the floats
    offsets: Any  # where strings end
    text: Any  # strings, end to end


@helper
def byte_at(data, at):
    """Return a byte; an unsigned position saves the test for one from the end."""
    return np.int64(data[np.uint64(at)])


@helper
def digit_at(data, at):
    """Return a byte as a digit; other bytes give other numbers."""
    return byte_at(data, at) - ZERO


@helper
def first_marked(marks):
    """Return the position of the first byte of a word whose highest bit is set; one must be."""
    lowest = (marks & (~marks + np.uint64(1))) >> np.uint64(7)
    return np.int64((lowest * np.uint64(POSITIONS)) >> np.uint64(56))


@helper
def eight_digits(word):
    """Return the number that the lower halves of eight bytes spell, the first byte its highest digit."""
    pairs = word * np.uint64(10) + (word >> np.uint64(8))
    mask = np.uint64(EVERY_FOURTH)
    high = (pairs & mask) * np.uint64(100 + (1_000_000 << 32))
    return (high + ((pairs >> np.uint64(16)) & mask) * np.uint64(1 + (10_000 << 32))) >> np.uint64(32)


@inlined
def read_digits(data, at, number, scales):
    """Return a number extended by the digits at a position, which is right for up to 19 digits, and their end."""
    while True:
        word = word_at(data, np.uint64(at))
        marks = ((word + np.uint64(ABOVE_NINE)) | (word - np.uint64(ZEROS))) & np.uint64(TOP_BITS)
        word &= np.uint64(LOW_HALVES)
        if marks != np.uint64(0):
            break
        number = number * scales[8] + eight_digits(word)
        at += 8
    n = first_marked(marks)
    if n == 0:
        return number, np.int64(at)
    return number * scales[n] + eight_digits(word << np.uint64(64 - 8 * n)), np.int64(at + n)


@inlined
def read_integer(data, at, scales):
    """Return an integer in canonical form and the position after it, `DOUBT` for other text."""
    negative = byte_at(data, at) == MINUS
    if negative:
        at += 1
    number, end = read_digits(data, at, np.uint64(0), scales)
    n = end - at
    if n == 0 or n > MAX_DIGITS or number > np.uint64(MAX_INTEGER):
        return np.int64(0), np.int64(DOUBT)
    if byte_at(data, at) == ZERO and (n > 1 or negative):
        return np.int64(0), np.int64(DOUBT)
    value = np.int64(number)
    return (-value if negative else value), end


@helper
def high_product(a, b):
    """Return the upper 64 bits of the product of two numbers of 64 bits."""
    half, low = np.uint64(HALF), np.uint64(LOW_HALF)
    a_low, a_high, b_low, b_high = a & low, a >> half, b & low, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & low)
    return a_high * b_high + (middle >> half) + (other >> half)


@helper
def leading_zeros(number):
    """Return the number of leading zero bits of a positive number."""
    n = np.uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if number >> np.uint64(64 - step) == np.uint64(0):
            number = number << np.uint64(step)
            n += np.uint64(step)
    return n


@helper
def float_bits(mantissa, power, powers):
    """Return the bits of the float nearest to mantissa * 10**power, and whether these are certain."""
    if power < MIN_POWER or power > MAX_POWER:
        return np.uint64(0), False
    zeros = leading_zeros(mantissa)
    mantissa = mantissa << zeros
    exponent = ((np.int64(217706) * power) >> 16) + 64 + 1023 - np.int64(zeros)
    low_bits, one = np.uint64(LOW_BITS), np.uint64(1)
    factor = powers[power - MIN_POWER, 0]
    high, low = high_product(mantissa, factor), mantissa * factor
    if high & low_bits == low_bits and low + mantissa < mantissa:
        factor = powers[power - MIN_POWER, 1]
        more = high_product(mantissa, factor)
        rest = mantissa * factor
        whole = low + more
        if whole < low:
            high += one
        if high & low_bits == low_bits and whole + one == np.uint64(0) and rest + mantissa < mantissa:
            return np.uint64(0), False
        low = whole
    top = high >> np.uint64(63)
    found = high >> (top + np.uint64(9))
    exponent -= np.int64(one ^ top)
    if low == np.uint64(0) and high & low_bits == np.uint64(0) and found & np.uint64(3) == one:
        return np.uint64(0), False
    found = (found + (found & one)) >> one
    if found >> np.uint64(53) > np.uint64(0):
        found = found >> one
        exponent += 1
    if exponent < 1 or exponent >= INEXACT:
        return np.uint64(0), False
    return (np.uint64(exponent) << np.uint64(52)) | (found & np.uint64(EXACT_MANTISSA // 2 - 1)), True


@helper
def read_first_digits(data, at, number, n_digits):
    """Extend a number by the digits that fit; return it, its number of digits, and that of those that did not fit."""
    n_cut = np.int64(0)
    digit = digit_at(data, at)
    while 0 <= digit <= 9:
        if n_digits < MAX_DIGITS:
            number = number * np.uint64(10) + np.uint64(digit)
            if number > np.uint64(0):
                n_digits += 1
        else:
            n_cut += 1
        at += 1
        digit = digit_at(data, at)
    return number, np.int64(n_digits), n_cut


@inlined
def read_exponent(data, at):
    """Return the exponent at a position, 0 if there is none, and the position after it, or `DOUBT`."""
    if byte_at(data, at) | LOWER != LOWER_E:
        return np.int64(0), np.int64(at)
    at += 1
    negative = byte_at(data, at) == MINUS
    if negative or byte_at(data, at) == PLUS:
        at += 1
    start = at
    power = np.int64(0)
    digit = digit_at(data, at)
    while 0 <= digit <= 9:
        power = min(10 * power + digit, np.int64(MAX_EXPONENT))
        at += 1
        digit = digit_at(data, at)
    if at == start:
        return np.int64(0), np.int64(DOUBT)
    return (-power if negative else power), np.int64(at)


@inlined
def read_float(data, at, columns, own, row, form):
    """Write the float at a position to its column if the text is a number of JSON.

    Return the position after it, or `DOUBT`, and whether the float is certain.
    """
    negative = byte_at(data, at) == MINUS
    if negative:
        at += 1
    mantissa, end = read_digits(data, at, np.uint64(0), form.scales)
    if end == at or (byte_at(data, at) == ZERO and end > at + 1):
        return np.int64(DOUBT), False
    n_digits, power, n_cut, start = end - at, np.int64(0), np.int64(0), end
    if byte_at(data, end) == POINT:
        start = end + 1
        mantissa, end = read_digits(data, start, mantissa, form.scales)
        if end == start:
            return np.int64(DOUBT), False
        power = start - end
        n_digits -= power
    if n_digits > MAX_DIGITS:
        mantissa, found, n_cut = read_first_digits(data, at, np.uint64(0), np.int64(0))
        power = n_cut
        if byte_at(data, start - 1) == POINT:
            mantissa, found, n_cut = read_first_digits(data, start, mantissa, found)
            power += n_cut - (end - start)
        n_cut = n_digits - found
    exponent, end = read_exponent(data, end)
    power += exponent
    if mantissa <= np.uint64(EXACT_MANTISSA) and -EXACT_POWER <= power <= EXACT_POWER and n_cut == 0:
        value = float(mantissa)
        value = value / form.tens[-power] if power < 0 else value * form.tens[power]
        columns.floats[own, row] = -value if negative else value
        return end, True
    if mantissa == np.uint64(0):
        columns.floats[own, row] = -0.0 if negative else 0.0
        return end, True
    nearest, certain = float_bits(mantissa, power, form.powers)
    if certain and n_cut > 0:
        other, certain = float_bits(mantissa + np.uint64(1), power, form.powers)
        certain = certain and nearest == other
    columns.bits[own, row] = nearest | (np.uint64(negative) << np.uint64(63))
    return end, certain


@inlined
def skip_json(data, at, columns, form):
    """Return the position after a number, true, false or null, or `DOUBT`; a float is written below the last row."""
    word = word_at(data, np.uint64(at))
    short = word & np.uint64(2**32 - 1)
    if short == np.uint64(TRUE) or short == np.uint64(NULL):
        return np.int64(at + 4)
    if word & np.uint64(2**40 - 1) == np.uint64(FALSE):
        return np.int64(at + 5)
    after, _ = read_float(data, at, columns, 0, columns.floats.shape[1] - 1, form)
    return np.int64(after)


@inlined
def end_of_string(data, at, classes, quoted):
    """Return where a string ends, or `DOUBT`."""
    while classes[quoted, data[np.uint64(at)]] == ORDINARY:
        at += 1
    return np.int64(at if classes[quoted, data[np.uint64(at)]] == STOP else DOUBT)


@inlined
def copy_string(data, start, end, text, own, at):
    """Copy a string, in words: up to seven bytes after it are copied, too."""
    for j in range(0, end - start, 8):
        word = word_at(data, np.uint64(start + j))
        for i in range(8):
            text[own, np.uint64(at + j + i)] = np.uint8((word >> np.uint64(8 * i)) & np.uint64(255))


@inlined
def match(data, at, literals, first, last):
    """Return the position after a literal, or `DOUBT` if there is another text."""
    for j in range(first, last):
        if data[np.uint64(at)] != literals[j]:
            return np.int64(DOUBT)
        at += 1
    return np.int64(at)


@inlined
def read_string(data, start, form, columns, own, row, quoted):
    """Copy a string to its column, if it has one (`own` >= 0); return the position after it, or `DOUBT`."""
    end = end_of_string(data, start, form.classes, quoted)
    if own < 0 or end < 0:
        return end
    if end == start:
        return np.int64(DOUBT)
    used = np.int64(columns.offsets[own, row])
    copy_string(data, start, end, columns.text, own, used)
    columns.offsets[own, row + 1] = used + end - start
    return end


@inlined
def read_field(data, start, form, nth, columns, row, quoted):
    """Read a field without its quotes; return the position after it, or `DOUBT`, and whether a float is certain."""
    kind, own = form.fields[nth, 0], form.fields[nth, 1]
    if kind == INTEGER:
        columns.integers[own, row], end = read_integer(data, start, form.scales)
        return np.int64(end), True
    if kind == FLOAT:
        return read_float(data, start, columns, own, row, form)
    if kind == SKIPPED_JSON and not quoted:
        return skip_json(data, start, columns, form), True
    own = own if kind == STRING else np.int64(-1)
    return read_string(data, start, form, columns, own, row, np.int64(quoted)), True


def read_rows(data, last, form, columns, hard, state):
    """Read rows up to `last`, where a line ends, into columns; return the number of rows, or `DOUBT`.

    `state` has the position of the first row, and gets the number of uncertain floats, which are listed in `hard` by
    column, row and place.
    """
    fields = form.fields
    at = np.int64(state[0])
    n_fields = len(fields) - 1
    n_hard = np.int64(0)
    row = np.int64(0)
    while at < last:
        begin = np.int64(0)
        for nth in range(n_fields):
            at = match(data, at, form.literals, begin, fields[nth, 3])
            begin = fields[nth, 3]
            if at < 0:
                return np.int64(DOUBT)
            quoting = fields[nth, 2]
            quoted = quoting != BARE and byte_at(data, at) == QUOTE
            if quoting == QUOTED and not quoted:
                return np.int64(DOUBT)
            start = at + np.int64(quoted)
            at, certain = read_field(data, start, form, nth, columns, row, quoted)
            if at < 0 or (quoted and byte_at(data, at) != QUOTE):
                return np.int64(DOUBT)
            if not certain:
                if n_hard == len(hard):
                    return np.int64(DOUBT)
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = fields[nth, 1], row, start, at
                n_hard += 1
            at += np.int64(quoted)
        at = match(data, at, form.literals, begin, fields[n_fields, 3])
        if at < 0:
            return np.int64(DOUBT)
        row += 1
    state[1] = n_hard
    return row

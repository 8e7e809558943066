"""Rows of text that all have the form of the first one, read into columns in one pass over their bytes.

Numbers are read exactly: integers of up to 19 digits, and the nearest float, by the algorithm of Eisel and Lemire
("Number parsing at a gigabyte per second", 2021). The kernel stops at anything unusual instead of explaining it.
"""

from __future__ import annotations

import numpy as np

from fastrec.runtime.compiler import helper

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
MAX_EXPONENT = 10_000  # larger ones are cut
INEXACT = 0x7FF  # the exponent of infinities


@helper
def digit_at(data, at):
    """Return a byte as a digit; other bytes give other numbers."""
    return np.int64(data[at]) - ZERO


@helper
def read_integer(data, at):
    """Return an integer in canonical form and the position after it, `DOUBT` for other text."""
    negative = data[at] == MINUS
    if negative:
        at += 1
    start = at
    number = np.uint64(0)
    digit = digit_at(data, at)
    while 0 <= digit <= 9:
        number = number * np.uint64(10) + np.uint64(digit)
        at += 1
        digit = digit_at(data, at)
    n = at - start
    if n == 0 or n > MAX_DIGITS or number > np.uint64(MAX_INTEGER):
        return np.int64(0), np.int64(DOUBT)
    if data[start] == ZERO and (n > 1 or negative):
        return np.int64(0), np.int64(DOUBT)
    value = np.int64(number)
    return (-value if negative else value), np.int64(at)


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
def read_digits(data, at, mantissa, n_digits):
    """Extend a mantissa by digits; return it, its number of digits, those that did not fit, and the position."""
    n_cut = 0
    digit = digit_at(data, at)
    while 0 <= digit <= 9:
        if n_digits < MAX_DIGITS:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            if mantissa > np.uint64(0):
                n_digits += 1
        else:
            n_cut += 1
        at += 1
        digit = digit_at(data, at)
    return mantissa, n_digits, n_cut, at


@helper
def read_exponent(data, at):
    """Return the exponent at a position, 0 if there is none, and the position after it, or `DOUBT`."""
    if data[at] != ord("e") and data[at] != ord("E"):
        return np.int64(0), np.int64(at)
    at += 1
    negative = data[at] == MINUS
    if negative or data[at] == PLUS:
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


@helper
def read_float(data, at, floats, bits, row, tens, powers):
    """Write the float at a position to `floats`, whose bits are `bits`, if the text is a number of JSON.

    Return the position after it, or `DOUBT`, and whether the float is certain.
    """
    negative = data[at] == MINUS
    if negative:
        at += 1
    start = at
    mantissa, n_digits, n_cut, at = read_digits(data, at, np.uint64(0), 0)
    if at == start or (data[start] == ZERO and at > start + 1):
        return np.int64(DOUBT), False
    power, n_lost = np.int64(n_cut), n_cut
    if data[at] == POINT:
        start = at + 1
        mantissa, n_digits, n_cut, at = read_digits(data, start, mantissa, n_digits)
        if at == start:
            return np.int64(DOUBT), False
        power -= at - start - n_cut
        n_lost += n_cut
    exponent, at = read_exponent(data, at)
    power += exponent
    if mantissa == np.uint64(0):
        value = 0.0
    elif n_lost == 0 and mantissa <= np.uint64(EXACT_MANTISSA) and -EXACT_POWER <= power <= EXACT_POWER:
        value = float(mantissa)
        value = value / tens[-power] if power < 0 else value * tens[power]
    else:
        found, certain = float_bits(mantissa, power, powers)
        if certain and n_lost > 0:
            other, certain = float_bits(mantissa + np.uint64(1), power, powers)
            certain = certain and found == other
        bits[row] = found | (np.uint64(negative) << np.uint64(63))
        return at, certain
    floats[row] = -value if negative else value
    return at, True


@helper
def skip_json(data, at, classes, floats, bits, tens, powers):
    """Return the position after a number, true, false or null, or `DOUBT`; the last row of `floats` is overwritten."""
    word = 0
    if data[at] == ord("t"):
        word = 4 if data[at + 1] == ord("r") and data[at + 2] == ord("u") and data[at + 3] == ord("e") else DOUBT
    elif data[at] == ord("n"):
        word = 4 if data[at + 1] == ord("u") and data[at + 2] == ord("l") and data[at + 3] == ord("l") else DOUBT
    elif data[at] == ord("f"):
        word = 5 if data[at + 1] == ord("a") and data[at + 2] == ord("l") and data[at + 3] == ord("s") else DOUBT
        if word > 0 and data[at + 4] != ord("e"):
            word = DOUBT
    if word != 0:
        return np.int64(at + word if word > 0 else DOUBT)
    after, _ = read_float(data, at, floats, bits, len(floats) - 1, tens, powers)
    return np.int64(after)


@helper
def end_of_string(data, at, classes, kind):
    """Return where a string ends, or `DOUBT`; `kind` is the column of the classes of bytes."""
    while classes[data[at], kind] == ORDINARY:
        at += 1
    return np.int64(at if classes[data[at], kind] == STOP else DOUBT)


def read_rows(data, last, form, literals, classes, integers, floats, bits, offsets, text, hard, tens, powers, state):
    """Read rows up to `last`, where a line ends, into columns; return the number of rows, or `DOUBT`.

    `form` has, for each field, its kind, column, quoting and the end of the literal before it, and in its last row the
    end of the literal after the last field. `state` has the position of the first row, and gets the number of uncertain
    floats, which are listed in `hard` by column, row and place.
    """
    at = np.int64(state[0])
    n_fields = len(form) - 1
    n_hard = np.int64(0)
    row = np.int64(0)
    while at < last:
        begin = np.int64(0)
        for nth in range(n_fields + 1):
            end = form[nth, 3]
            for j in range(begin, end):
                if data[at] != literals[j]:
                    return np.int64(DOUBT)
                at += 1
            begin = end
            if nth == n_fields:
                break
            kind, own, quoting = form[nth, 0], form[nth, 1], form[nth, 2]
            quoted = quoting != BARE and data[at] == QUOTE
            if quoting == QUOTED and not quoted:
                return np.int64(DOUBT)
            if quoted:
                at += 1
            if kind == INTEGER:
                number, at = read_integer(data, at)
                if at < 0:
                    return np.int64(DOUBT)
                integers[own, row] = number
            elif kind == FLOAT:
                start = at
                at, certain = read_float(data, at, floats[own], bits[own], row, tens, powers)
                if at < 0:
                    return np.int64(DOUBT)
                if not certain:
                    if n_hard == len(hard):
                        return np.int64(DOUBT)
                    hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = own, row, start, at
                    n_hard += 1
            elif kind == SKIPPED_JSON and not quoted:
                at = skip_json(data, at, classes, floats[0], bits[0], tens, powers)
                if at < 0:
                    return np.int64(DOUBT)
            else:
                start = at
                at = end_of_string(data, at, classes, np.int64(quoted))
                if at < 0:
                    return np.int64(DOUBT)
                if kind == STRING:
                    if at == start:
                        return np.int64(DOUBT)
                    used = np.int64(offsets[own, row])
                    for j in range(at - start):
                        text[own, used + j] = data[start + j]
                    offsets[own, row + 1] = used + at - start
            if quoted:
                if data[at] != QUOTE:
                    return np.int64(DOUBT)
                at += 1
        row += 1
    state[1] = n_hard
    return row

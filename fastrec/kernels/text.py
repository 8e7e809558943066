"""Bytes of delimited text that readers may take in different ways. All loops but that of quotes are vectorised."""

from __future__ import annotations

import numpy as np

from .jit import njit

NEWLINE, RETURN, QUOTE, SPACE, PLUS, MINUS, POINT, ZERO = map(ord, '\n\r" +-.0')
BEFORE_FIELD, IN_FIELD, IN_QUOTES, AFTER_QUOTE = range(4)


@njit
def ends_field(byte, delimiter):
    """Return whether a byte comes after a field."""
    return (byte == delimiter) | (byte == NEWLINE) | (byte == RETURN)


@njit
def is_unusual(before, byte, after, second, delimiter):
    """Return whether a byte begins or ends a field as no integer does: a space, a plus sign, a leading zero, -0."""
    begins = (before == delimiter) | (before == NEWLINE) | (before == QUOTE)
    is_zero = (byte == ZERO) & (after >= ZERO) & (after != delimiter)
    is_negative_zero = (byte == MINUS) & (after == ZERO) & (second != POINT)
    ends = (after == QUOTE) | ends_field(after, delimiter)
    return (begins & ((byte == PLUS) | is_zero | is_negative_zero)) | ((byte == SPACE) & (begins | ends))


@njit
def has_unusual_integers(data, delimiter):
    """Return whether a field may be an integer in an unusual form; `data` has at least three bytes."""
    n = len(data)
    found = is_unusual(np.uint8(NEWLINE), data[0], data[1], data[2], delimiter)
    before, own, after, second = data[: n - 3], data[1 : n - 2], data[2 : n - 1], data[3:]
    for i in range(np.uint64(len(second))):
        found |= is_unusual(before[i], own[i], after[i], second[i], delimiter)
    return found | is_unusual(data[n - 3], data[n - 2], data[n - 1], data[n - 1], delimiter)


@njit
def has_controls(data, delimiter, has_returns):
    """Return whether there are control characters besides line breaks, which are CR LF with `has_returns`, else LF."""
    found = has_returns & (data[0] == NEWLINE)
    before, after = data[:-1], data[1:]
    for i in range(np.uint64(len(after))):
        byte = before[i]
        is_break = (byte == NEWLINE) | (has_returns & (byte == RETURN))
        found |= (byte < SPACE) & (byte != delimiter) & ~is_break
        found |= has_returns & ((byte == RETURN) != (after[i] == NEWLINE))
    return found


@njit
def has_stray_quotes(data, delimiter):
    """Return whether a quote is not around a whole field."""
    before, is_open = np.uint8(NEWLINE), False
    after = data[1:]
    for i in range(np.uint64(len(after))):
        byte = data[i]
        if byte == QUOTE:
            if is_open:
                if not ends_field(after[i], delimiter):
                    return True
            elif before != delimiter and before != NEWLINE:
                return True
            is_open = not is_open
        before = byte
    return is_open


@njit(cache=True)
def is_doubtful(data, delimiter, has_returns, has_quotes, has_integers):
    """Return whether readers may take some of these whole lines in different ways; `data` ends with a line feed."""
    if len(data) < 3:
        return True
    return (
        has_controls(data, delimiter, has_returns)
        or (has_quotes and has_stray_quotes(data, delimiter))
        or (has_integers and has_unusual_integers(data, delimiter))
    )


@njit(cache=True)
def state_after(data, delimiter, state):
    """Return the state of a reader after some bytes: before a field, in one, in quotes, or after a quote in quotes.

    Two quotes in quotes are one character, and so is a quote in a field that begins with another character.
    """
    state = np.int64(state)
    for i in range(np.uint64(len(data))):
        byte = data[i]
        if state == IN_QUOTES:
            state = AFTER_QUOTE if byte == QUOTE else state
        elif byte == QUOTE and state != IN_FIELD:
            state = IN_QUOTES
        else:
            state = BEFORE_FIELD if ends_field(byte, delimiter) else IN_FIELD
    return state


@njit(cache=True)
def count_line_feeds(data):
    """Return how many bytes are line feeds."""
    found = 0
    for i in range(np.uint64(len(data))):
        found += data[i] == NEWLINE
    return np.int64(found)

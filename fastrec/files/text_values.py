"""Values of columns without types: strings as numbers, and ids that all spell integers as integers."""

from __future__ import annotations

import contextlib
import decimal
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, RowNumber, Text, shortened
from fastrec.inputs.columns import EXACT_BITS, MAX_EXACT_INTEGER, NUMBER_FIRST, says_rounded
from fastrec.inputs.sides import SIDES
from fastrec.inputs.strings import strings_of

Array = np.ndarray[Any, Any]
BOOLEANS = {"true": "1", "True": "1", "TRUE": "1", "false": "0", "False": "0", "FALSE": "0"}
NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE | re.ASCII)
INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
FIRST = 64
CANONICAL = r"^(?:0|-?[1-9][0-9]*)$"
DECIMAL = r"^[+-]?[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?$"
NUMERIC = np.array([chr(code) in "+-0123456789" for code in range(256)])
NOT_FLOATS = "write ids as integers (missing values turn them into floats: drop those rows first) or as strings"


def as_numbers(strings: Any, kind: Any, where: Text, role: str, table: str, seen: set[bool] | None = None) -> Any:
    """Return strings as an array of numbers; errors have the row among them. Null stays null.

    Booleans are 1 and 0. A double must hold each integer exactly, and ranks must be integers. `seen` tells, and gets,
    whether values are booleans: all must be, or none.
    """
    import pyarrow as pa

    seen = set() if seen is None else seen
    numbers = strings if strings.type == kind else _plain_numbers(strings.cast(pa.string()), kind)
    if numbers is None:
        texts = strings.to_pylist()
        numbers = pa.array([_number(text, where, row, role, table) for row, text in enumerate(texts)], kind)
        marked = [(row, text.strip(" \t") in BOOLEANS) for row, text in enumerate(texts) if text is not None]
    else:
        nulls = numbers.is_null().to_pylist() if numbers.null_count else [False]  # `to_numpy` would import pandas
        marked = [] if all(nulls) else [(nulls.index(False), False)]
    for row, is_boolean in marked:
        seen.add(is_boolean)
        if len(seen) > 1:
            found = f" must hold numbers or booleans, not both, found {shortened(str(strings[row]))}"
            raise InputTypeError(where, found, RowNumber.at(row))
    return numbers


def _plain_numbers(strings: Any, kind: Any) -> Any:
    """Return strings that Arrow reads as numbers; None if it does not, or may read others than are meant."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_integer(kind) and compute.any(compute.match_substring_regex(strings, "[xX]")).as_py():
        return None
    try:
        numbers = strings.cast(kind)
    except pa.ArrowInvalid:
        return None
    return numbers if are_exact([numbers]) else None


def are_exact(columns: Iterable[Any]) -> bool:
    """Return whether no float is so large that an integer may have been rounded."""
    from pyarrow import compute, types

    floats = [column for column in columns if types.is_floating(column.type)]
    return all((compute.max(compute.abs(column)).as_py() or 0) < MAX_EXACT_INTEGER for column in floats)


def _number(text: str | None, where: Text, row: int, role: str, table: str) -> float | int | None:
    """Return the number that a string spells."""
    if text is None:
        return None
    plain, is_rank = text.strip(" \t"), role == "rank"
    plain = plain if is_rank else BOOLEANS.get(plain, plain)
    if not NUMBER.fullmatch(plain):
        mend = NUMBER_FIRST if role == "subtopic" else ""
        raise InputTypeError(where, f" must hold numbers, found {shortened(text)}{mend}", RowNumber.at(row))
    if not INTEGER.fullmatch(plain):
        value = float(plain)
        if not is_rank:
            return value
        if not (value.is_integer() and abs(value) <= MAX_EXACT_INTEGER):
            raise InputError(where, f" must hold integers up to 2**{EXACT_BITS}, found {plain}", RowNumber.at(row))
    integer = int(decimal.Decimal(plain))
    if is_rank and not -(2**63) <= integer < 2**63:
        raise InputError(where, f" must hold integers of 64 bits, found {plain}", RowNumber.at(row))
    if not is_rank and abs(integer) > MAX_EXACT_INTEGER:
        advice = "; give a rank column" if table in SIDES and SIDES[table].is_ordered else ""
        raise InputError(says_rounded(where, plain, RowNumber.at(row)), advice)
    return integer if is_rank else float(integer)


class Spellings:
    """What the ids of a column without a type spell, over all its batches."""

    def __init__(self) -> None:
        self.all_integers = True
        self.any_integer = False
        self.all_decimals = True  # or integers
        self.example = ""  # an id that spells no integer

    def add(self, strings: Any) -> Any:
        """Return ids as int64 if all of a batch spell integers as these are written, else as they are."""
        import pyarrow as pa
        from pyarrow import compute

        integers = None
        with contextlib.suppress(pa.ArrowInvalid):
            strings.slice(0, FIRST).cast(pa.int64())  # PyArrow takes long to say that many strings are no integers
            integers = strings.cast(pa.int64())
        if integers is not None and not _has_other_spelling(strings):
            self.any_integer = self.any_integer or len(strings) > strings.null_count
            return integers
        self.all_integers = False
        if self.any_integer and not self.all_decimals:
            return strings  # nothing else is asked
        known = strings.drop_null()
        like_numbers = _begin_like_numbers(known)
        candidates = known.filter(pa.array(like_numbers))
        spells = compute.match_substring_regex(candidates, CANONICAL)
        self.any_integer = self.any_integer or bool(compute.any(spells).as_py())
        others = candidates.filter(compute.invert(spells))
        if len(candidates) < len(known):
            self.all_decimals, others = False, known.slice(int(like_numbers.argmin()), 1)
        if self.all_decimals:
            self.all_decimals = bool(compute.all(compute.match_substring_regex(others, DECIMAL)).as_py())
        if len(others):
            self.example = self.example or others[0].as_py()
        return strings


def _begin_like_numbers(strings: Any) -> Array:
    """Return whether the first character of each string is one with which a number begins."""
    offsets, data = strings_of(strings)
    first = np.zeros(len(strings), np.uint8)
    filled = np.diff(offsets) > 0
    first[filled] = data[offsets[:-1][filled]]
    return NUMERIC[first]


def decimals_refused(found: Spellings, where: Text) -> None:
    """Raise if ids are decimal numbers."""
    if not found.all_integers and found.all_decimals and found.example:
        raise InputTypeError(where, f" holds decimal numbers such as {shortened(found.example)}: {NOT_FLOATS}")


def _has_other_spelling(strings: Any) -> bool:
    """Return whether a string that spells an integer has a zero that none would write: as in 07, -0, 0x7."""
    if strings.null_count:
        strings = strings.drop_null()
    if not len(strings):
        return False
    offsets, data = strings_of(strings)
    is_negative = data[offsets[:-1]] == ord("-")
    is_zero = data[offsets[:-1] + is_negative] == ord("0")
    return bool((is_zero & (np.diff(offsets) > 1)).any())

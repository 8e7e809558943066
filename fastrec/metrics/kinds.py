"""Kinds of values that options of metrics take, as annotations of a formula's arguments.

A kind is the text that errors say. `NUMBERS` has which numbers the kinds of numbers allow.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Annotated, Final

TABLE: Final = "a table"
COLUMN: Final = "the name of a column of items"
SEPARATOR: Final = "the text between two categories, such as |"
ABOVE_ZERO: Final = "a number above 0"
ABOVE_ONE: Final = "a number above 1"
COUNT: Final = "an integer from 1 to 10000"
FINITE: Final = "a finite number"
FRACTION: Final = "a number above 0 and below 1"
GOAL: Final = "a number from 0.001 to 1000"
NOT_NEGATIVE: Final = "a number from 0 to 1000"
UNIT: Final = "a number from 0 to 1"
UP_TO_1000: Final = "a number above 0, at most 1000"  # powers of 2 with larger exponents are no doubles

Table = Annotated[tuple[float, ...], TABLE]
Column = Annotated[str, COLUMN]
Separator = Annotated[str, SEPARATOR]
AboveZero = Annotated[float, ABOVE_ZERO]
AboveOne = Annotated[float, ABOVE_ONE]
Count = Annotated[float, COUNT]
Finite = Annotated[float, FINITE]
Fraction = Annotated[float, FRACTION]
Goal = Annotated[float, GOAL]
NotNegative = Annotated[float, NOT_NEGATIVE]
Rate = Annotated[float, UNIT]
UpTo1000 = Annotated[float, UP_TO_1000]

NUMBERS: dict[str, Callable[[float], bool]] = {
    ABOVE_ZERO: lambda number: 0 < number <= sys.float_info.max,
    ABOVE_ONE: lambda number: 1 < number < math.inf,
    COUNT: lambda number: number.is_integer() and 1 <= number <= 10_000,
    FINITE: math.isfinite,
    FRACTION: lambda number: 0 < number < 1,
    GOAL: lambda number: 0.001 <= number <= 1000,
    NOT_NEGATIVE: lambda number: 0 <= number <= 1000,
    UNIT: lambda number: 0 <= number <= 1,
    UP_TO_1000: lambda number: 0 < number <= 1000,
}
KINDS = (TABLE, COLUMN, SEPARATOR, *NUMBERS)

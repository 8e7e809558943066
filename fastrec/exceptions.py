"""The errors and warnings of fastrec, and the names in their messages.

Each error is a `FastrecError` and also a built-in error such as ValueError, so callers may catch either.
A message says what was found, what was expected, and where. Its arguments, columns and rows are `Name`s, which files,
Spark, the command line and `mae` replace by their own; nothing reads a message.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

LONGEST = 1200  # characters of a message, which may quote values of any length
MAX_VALUE_LENGTH = 400  # characters of a quoted value


class Name:
    """A part of a message that has another name elsewhere; `str` gives the one in Python."""


@dataclass(frozen=True)
class Argument(Name):
    """An argument of a call, alone or with values to pass: ``ties='input' or 'worst'``, ``min_gain=...``."""

    name: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}={self.listed(shown)}" if self.values else self.name

    def listed(self, spell: Callable[[Any], str]) -> str:
        """Return the values as a string."""
        *others, last = ("..." if value is ... else spell(value) for value in self.values)
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True)
class Listing(Name):
    """Python expression that lists all names when a message shows only some."""

    code: str

    def __str__(self) -> str:
        return f": {self.code}"


@dataclass(frozen=True)
class Known(Name):
    """The known names, in the message of an unknown one."""

    text: Text

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Place(Name):
    """An argument with data, such as labels, or a column of it."""

    side: str
    column: str | None = None

    def __str__(self) -> str:
        return self.side if self.column is None else f"{self.side} column {self.column!r}"


@dataclass(frozen=True)
class GroupingName(Name):
    """The name of a grouping, which files have under that of its column."""

    name: str

    def __str__(self) -> str:
        return shown(self.name)


@dataclass(frozen=True)
class RowNumber(Name):
    """The row of a fault."""

    position: int  # from 0
    text: str  # " at row 3"
    unnumbered: str = ""  # in place of the text, where rows have no numbers

    def __str__(self) -> str:
        return self.text

    @classmethod
    def at(cls, position: int, word: str = "row") -> Self:
        """Return the row of a message that ends with it."""
        return cls(position, f" at {word} {position}")


class Text(str):  # noqa: SLOT000 - pickles keep the attributes of a dict
    """A string that keeps its parts, so that names among them can be replaced."""

    parts: tuple[object, ...]

    def __new__(cls, *parts: object) -> Self:
        """Join parts: names, strings, other texts."""
        flat = [own for part in parts for own in (part.parts if isinstance(part, Text) else (part,))]
        text = super().__new__(cls, "".join(map(str, flat)))
        text.parts = tuple(flat)
        return text

    def __getnewargs__(self) -> tuple[object, ...]:  # type: ignore[override] # for copies and pickles
        return self.parts

    def names(self) -> list[Name]:
        """Return the names in the text."""
        return [part for part in self.parts if isinstance(part, Name)]


def joined(texts: Iterable[str], separator: str) -> Text:
    """Join strings in a text."""
    return Text(*[part for text in texts for part in (separator, text)][1:])


def renamed(text: str, naming: Callable[[Name], object]) -> str:
    """Return a text with each name replaced by what `naming` makes of it: a string, or another name."""
    if not isinstance(text, Text):
        return text
    return Text(*(naming(part) if isinstance(part, Name) else part for part in text.parts))


_spellings: dict[str, str] = {}


@contextlib.contextmanager
def spelled(places: Mapping[str, str]) -> Iterator[None]:
    """Have errors and warnings of the block show beginnings of paths otherwise: {copies of files: their URLs}."""
    _spellings.update(places)
    try:
        yield
    finally:
        for place in places:
            _spellings.pop(place, None)


def located(text: str) -> str:
    """Return a text that shows paths as `spelled` says."""
    for place, shown_place in tuple(_spellings.items()):
        if place not in text:
            continue
        parts = text.parts if isinstance(text, Text) else (text,)
        text = Text(*(part.replace(place, shown_place) if isinstance(part, str) else part for part in parts))
        text = Text(text.replace(place, shown_place)) if place in text else text  # inside a name
    return text


class FastrecError(Exception):
    """Base class of the errors of fastrec. The message is one line; a very long one lacks its middle."""

    def __init__(self, *parts: object) -> None:
        self.text = Text(located(Text(*parts)))
        super().__init__(cut_line(self.text))

    def renamed(self, naming: Callable[[Name], object]) -> Self:
        """Return the error with other names in its message; see `renamed`."""
        other = copy.copy(self)
        FastrecError.__init__(other, renamed(self.text, naming))
        return other


@contextlib.contextmanager
def renaming(naming: Callable[[Name], object]) -> Iterator[None]:
    """Replace the names in the errors of the block."""
    try:
        yield
    except FastrecError as error:
        raise error.renamed(naming) from error.__cause__


class InputError(FastrecError, ValueError):
    """An argument or a file of the right type with an unusable value."""


class InputTypeError(FastrecError, TypeError):
    """An argument of an unusable type."""


class MetricError(InputError):
    """An unknown or unusable metric or option; the message names the nearest known one."""


class MissingFileError(InputError, FileNotFoundError):
    """A path to read that does not exist."""

    # OSError prints a system error number before its message, if it has one
    __str__ = Exception.__str__


class MetricNotFoundError(MetricError, KeyError):
    """A metric that a report does not have."""

    # KeyError prints the repr of its message, in quotes: right for a key, wrong for a sentence.
    __str__ = Exception.__str__


class FastrecWarning(UserWarning):
    """A correct result that is probably not what the caller meant. The message is one line."""

    def __init__(self, text: str) -> None:
        self.text = located(text)
        super().__init__(one_line(self.text))


def warn(lines: Iterable[str]) -> None:
    """Warn of each line, at the line of the program that called fastrec."""
    frame, level = inspect.currentframe(), 1  # `warnings.warn` skips no package before Python 3.12
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fastrec":
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(FastrecWarning(line), stacklevel=level)


class MissingExtraError(FastrecError, ImportError):
    """A feature that needs an optional package, which is not installed or cannot be imported."""


def one_line(text: str) -> str:
    """Return a text as one line: line breaks become spaces, control characters are escaped."""
    return shown_characters(" ".join(line.strip() for line in text.splitlines()))


def cut_line(text: str) -> str:
    """Return a text as one line of at most `LONGEST` characters; a longer one loses its middle."""
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 300]} … {line[-297:]}"


def shown_characters(text: str) -> str:
    """Escape unprintable characters, which a terminal might obey, except line breaks."""
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1] for character in text
    )


def shown(value: Any) -> str:
    """Return a value for a message: its repr, a long one without its middle; its type if repr fails.

    Python itself refuses to write integers of more than 4,300 digits.
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - repr of a foreign class
        return f"a value of type {type(value).__name__} that cannot be shown"
    return cut_value(text)


def shortened(value: Any) -> str:
    """Return a value for a message, a string of more than 40 characters without its end."""
    return shown(value if not isinstance(value, str) else str(value) if len(value) <= 40 else f"{value[:39]}…")


def shown_number(value: float) -> str:
    """Return a number for a message: with six digits if it has no more, else with all, as 1.0000000000000002 is not 1.

    >>> shown_number(1.5), shown_number(1 + 2**-52)
    ('1.5', '1.0000000000000002')
    """
    number, short = float(value), f"{value:g}"
    return short if float(short) == number else repr(number)


def cut_value(text: str) -> str:
    """Return the text of a value, a long one without its middle."""
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 100]} … {text[-97:]}"

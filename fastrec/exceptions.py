"""Every error that fastrec raises on purpose.

Each is a `FastrecError` and also the built-in error it is a kind of, so callers may catch either.
A message says what was found, what was wanted and where.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

LONGEST = 1000  # signs of a message: what was found may be as long as the caller likes
MAX_VALUE_LENGTH = 400  # of which a value that was given


class FastrecError(Exception):
    """Any error that fastrec raises on purpose. Its message is one line, the middle left out of a very long one."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut_line(message))


class InputError(FastrecError, ValueError):
    """An argument or a file has the right type and a value that cannot be used."""


class InputTypeError(FastrecError, TypeError):
    """An argument is of a type that cannot be used."""


class MetricError(InputError):
    """A metric text has an unknown name or option; the message names the nearest known one."""


class MissingFileError(InputError, FileNotFoundError):
    """A path that is to be read leads to no file."""

    # OSError prints a number of the system before its message, if it has one
    __str__ = Exception.__str__


class MetricNotFoundError(MetricError, KeyError):
    """A report was asked for a metric that it does not hold."""

    # KeyError prints the repr of its message, in quotes: right for a key, wrong for a sentence.
    __str__ = Exception.__str__


class FastrecWarning(UserWarning):
    """A result is right but probably not what was meant."""


def warn(lines: Iterable[str]) -> None:
    """Warn of each line, at the line of the program that called fastrec."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - warnings.warn counts frames, and skips no package before 3.12
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fastrec":
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(one_line(line), FastrecWarning, stacklevel=level)


class MissingExtraError(FastrecError, ImportError):
    """A feature needs an optional package that is not installed."""


def one_line(text: str) -> str:
    """Line ends become spaces, and what a terminal would obey is shown instead."""
    return shown_characters(" ".join(line.strip() for line in text.splitlines()))


def cut_line(text: str) -> str:
    """A text as a line of at most `LONGEST` signs, the middle left out of a longer one."""
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 300]} … {line[-297:]}"


def shown_characters(text: str) -> str:
    """What a terminal would obey, but for line ends, is shown instead."""
    return "".join(
        character if character.isprintable() or character == "\n" else repr(character)[1:-1] for character in text
    )


def shown(value: Any) -> str:
    """A value that a caller gave, for a message: its repr, the middle left out of a long one; its type if it has none.

    Python itself refuses to write whole numbers of more than 4,300 digits.
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - of somebody else's class
        return f"a value of type {type(value).__name__} that cannot be shown"
    return cut_value(text)


def cut_value(text: str) -> str:
    """A text that a caller gave, the middle left out of a long one."""
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 100]} … {text[-97:]}"

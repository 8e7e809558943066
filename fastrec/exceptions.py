"""The errors and warnings of fastrec.

Each error is a `FastrecError` and also a built-in error such as ValueError, so callers may catch either.
A message says what was found, what was expected, and where.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any

LONGEST = 1000  # characters of a message, which may quote values of any length
MAX_VALUE_LENGTH = 400  # characters of a quoted value


class FastrecError(Exception):
    """Base class of the errors of fastrec. The message is one line; a very long one lacks its middle."""

    def __init__(self, message: str = "") -> None:
        super().__init__(cut_line(message))


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
    """A correct result that is probably not what the caller meant."""


def warn(lines: Iterable[str]) -> None:
    """Warn of each line, at the line of the program that called fastrec."""
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - warnings.warn counts frames, and skips no package before 3.12
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "fastrec":
        frame, level = frame.f_back, level + 1
    for line in lines:
        warnings.warn(one_line(line), FastrecWarning, stacklevel=level)


class MissingExtraError(FastrecError, ImportError):
    """A feature that needs an optional package, which is not installed."""


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


def cut_value(text: str) -> str:
    """Return the text of a value, a long one without its middle."""
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 100]} … {text[-97:]}"

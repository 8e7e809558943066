"""How names of metrics and values of their options are written, and read again."""

from __future__ import annotations

import itertools
import re
from typing import Any


def plain_spelling(name: str) -> str:
    """Return a name in lower case, without the characters between words."""
    return re.sub(r"(?<=[A-Za-z0-9])[_.-](?=[A-Za-z0-9])", "", name).lower()


def unquoted(text: str) -> str:
    """Return a text without the quotes around it."""
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"" else text


def read_value(text: str) -> Any:
    """Return the value of an option that a string spells: a number, a list, or the text itself."""
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1]
        return [read_value(part.strip()) for part in inside.split(",")] if inside.strip() else []
    try:
        return float(text)
    except ValueError:
        return text


def split_outside_brackets(text: str, *, keep_empty: bool = False) -> list[str]:
    """Split at commas outside brackets; drop empty parts unless `keep_empty`."""
    ends, depth = [-1], 0
    for at, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            ends.append(at)
    parts = (text[start + 1 : end].strip() for start, end in itertools.pairwise([*ends, len(text)]))
    return [part for part in parts if part or keep_empty]


def print_value(value: Any) -> str:
    """Return the value of an option as written in the string of a metric."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(print_value, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)

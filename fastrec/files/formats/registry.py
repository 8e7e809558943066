"""The registered formats of files, by name."""

from __future__ import annotations

from typing import Any

FORMATS: dict[str, Any] = {}
"""{value of `input_format`: its `Format`}; see `fastrec.files.formats.base`."""


def register(format_: Any) -> None:
    """Make a format known by its name."""
    FORMATS[format_.name] = format_

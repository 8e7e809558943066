"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from fastrec.exceptions import one_line
from fastrec.show.tables import Table

__all__ = ["as_markdown", "bullets", "heading"]

SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\|[`"} | {"<": "&lt;"})


def as_markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown, each with its title in bold and a list of its notes."""
    parts: list[str] = []
    for table in tables:
        parts += [f"**{_escaped(table.title)}**"] if table.title else []
        parts += ["\n".join(_lines(table)), *([bullets(table.notes)] if table.notes else [])]
    return "\n\n".join(parts)


def bullets(lines: Iterable[str]) -> str:
    """Return a list of lines."""
    return "\n".join(f"- {_escaped(line)}" for line in lines)


def heading(title: str) -> str:
    """Return the heading of a document."""
    return f"# {_escaped(title)}"


def _lines(table: Table) -> list[str]:
    """Return the lines of a table without title and notes; numbers are right-aligned."""
    rule = ["---" if n < table.n_texts else "---:" for n in range(len(table.head))]
    head, *rows = ([_escaped(cell) for cell in row] for row in table.texts())
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def _escaped(text: str) -> str:
    """Return a string as one line with its special characters escaped."""
    return one_line(text).translate(SPECIAL)

"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from fastrec.exceptions import one_line
from fastrec.show.tables import Cell, Styled, Table, text_of

SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\|[`"} | {"<": "&lt;"})


def as_markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown, each with its title in bold and a list of its notes."""
    parts: list[str] = []
    for table in tables:
        parts += [f"**{_escaped(table.title)}**"] if table.title else []
        parts += ["\n".join(_lines(table)), *([bullets(table.notes)] if table.notes else [])]
    return "\n\n".join(parts)


def as_markdown_with_caption(table: Table) -> str:
    """Return a table as Markdown with its title as the caption below."""
    return "\n".join([*_lines(table), "", f"Table: {_escaped(table.title)}"])


def bullets(lines: Iterable[str]) -> str:
    """Return a list of lines."""
    return "\n".join(f"- {_escaped(line)}" for line in lines)


def heading(title: str) -> str:
    """Return the heading of a document."""
    return f"# {_escaped(title)}"


def _lines(table: Table) -> list[str]:
    """Return the lines of a table without title and notes; numbers are right-aligned."""
    rule = ["---" if n < table.n_texts else "---:" for n in range(len(table.head))]
    head, *rows = (list(map(_cell, row)) for row in (table.head, *table.rows))
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def _cell(cell: Cell) -> str:
    """Return a cell, bold and with its marks above if it is one of a paper."""
    if not isinstance(cell, Styled):
        return _escaped(text_of(cell))
    text = f"**{_escaped(cell.text)}**" if cell.is_bold else _escaped(cell.text)
    mark = _escaped(cell.mark).replace("*", r"\*")
    return f"{text}<sup>{mark}</sup>" if mark else text


def _escaped(text: str) -> str:
    """Return a string as one line with its special characters escaped."""
    return one_line(text).translate(SPECIAL)

"""Tables as aligned text, as `repr` prints them."""

from __future__ import annotations

from collections.abc import Iterable

from fastrec.exceptions import one_line
from fastrec.show.tables import Table


def as_text(tables: Iterable[Table]) -> str:
    """Return tables as aligned text, with their titles above and their notes below."""
    return "\n\n".join("\n".join(text_lines(table)) for table in tables)


def text_lines(table: Table) -> list[str]:
    """Return the lines of a table: a first column of text aligned left, all others right."""
    rows = [[cell if cell.isprintable() else one_line(cell) for cell in row] for row in table.texts()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = min(table.n_texts, 1)
    lines = (
        "  ".join([*map(str.ljust, row[:left], widths), *map(str.rjust, row[left:], widths[left:])]).rstrip()
        for row in rows
    )
    return [*([one_line(table.title)] if table.title else []), *lines, *map(_note, table.notes)]


def _note(text: str) -> str:
    """Return a note as one line that keeps its indent."""
    return " " * (len(text) - len(text.lstrip(" "))) + one_line(text)

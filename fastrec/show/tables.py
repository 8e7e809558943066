"""Tables and charts that results give to the writers of all media."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Chart", "Drawn", "Section", "Table", "text_of", "warning_lines", "with_notes"]


class Drawn(NamedTuple):
    """Table cell with a picture of its text."""

    text: str
    svg: str


def text_of(cell: str | Drawn) -> str:
    """Return a cell without its picture."""
    return cell.text if isinstance(cell, Drawn) else cell


class Table(NamedTuple):
    """Table of strings.

    title : caption.
    head : names of columns.
    rows : a cell per column; the first names the row.
    n_texts : number of columns, from the left, that hold text. Cells of the others begin with a number.
    notes : lines below the table.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str | Drawn]]
    n_texts: int = 1
    notes: Sequence[str] = ()

    def texts(self) -> list[list[str]]:
        """Return head and rows without pictures."""
        return [list(map(text_of, row)) for row in (self.head, *self.rows)]


class Chart(NamedTuple):
    """Picture with its caption."""

    title: str
    svg: str


class Section(NamedTuple):
    """Section of a page: charts side by side, above the tables."""

    title: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    lines: Sequence[str] = ()


def with_notes(tables: Sequence[Table], notes: Iterable[str]) -> list[Table]:
    """Return the tables with more notes below the last of them."""
    *others, last = tables
    return [*others, last._replace(notes=[*last.notes, *notes])]


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """Return a line per warning."""
    return [f"warning: {warning}" for warning in warnings]

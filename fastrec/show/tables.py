"""Tables and charts that results give to the writers of all media."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Drawn(NamedTuple):
    """Table cell with a picture of its text."""

    text: str
    svg: str


class Brief(NamedTuple):
    """Table cell whose second part narrow windows leave out."""

    short: str
    rest: str


class Styled(NamedTuple):
    """Table cell of a paper: a number, perhaps bold, with marks above it."""

    text: str
    is_bold: bool = False
    mark: str = ""


Cell = str | Drawn | Brief | Styled


def text_of(cell: Cell) -> str:
    """Return a cell as a string, without its picture."""
    if isinstance(cell, Drawn):
        return cell.text
    if isinstance(cell, Styled):
        return f"{cell.text}{cell.mark}"
    return f"{cell.short}{cell.rest}" if isinstance(cell, Brief) else cell


class Table(NamedTuple):
    """Table of strings.

    title : caption.
    head : names of columns.
    rows : a cell per column; the first names the row.
    n_texts : number of columns, from the left, that hold text. Cells of the others begin with a number.
    notes : lines below the table.
    n_shown, n_narrow : number of columns, from the left, that a page shows in a wide and in a narrow window until a
        reader asks for all; by default all.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_texts: int = 1
    notes: Sequence[str] = ()
    n_shown: int | None = None
    n_narrow: int | None = None

    def texts(self) -> list[list[str]]:
        """Return head and rows without pictures."""
        return [list(map(text_of, row)) for row in (self.head, *self.rows)]


class Chart(NamedTuple):
    """Picture with its caption."""

    title: str
    svg: str


class Section(NamedTuple):
    """Section of a page: charts side by side, above the tables.

    folded : label of a switch; the page shows charts and tables only after a reader presses it. "": no switch.
    """

    title: str
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    lines: Sequence[str] = ()
    folded: str = ""


class Lead(NamedTuple):
    """Lead of a page, below its title.

    headline : the finding in one sentence.
    findings : more of them.
    warnings : reasons to doubt the numbers, in a frame of their own.
    notes : how the numbers came about, in small print.
    """

    headline: str = ""
    findings: Sequence[str] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()


def with_notes(tables: Sequence[Table], notes: Iterable[str]) -> list[Table]:
    """Return the tables with more notes below the last of them."""
    *others, last = tables
    return [*others, last._replace(notes=[*last.notes, *notes])]


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """Return a line per warning."""
    return [f"warning: {warning}" for warning in warnings]


def with_warnings(table: Table, warnings: Iterable[str]) -> Table:
    """Return a table with warnings at the end of its title, so that they go where the caption goes."""
    return table._replace(title=" ".join([table.title, *(f"Warning: {warning}." for warning in warnings)]))

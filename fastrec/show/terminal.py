"""Tables and lines that fit a terminal without breaking a word, number or label. It draws with rich."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fastrec.exceptions import one_line, shown_characters
from fastrec.show.tables import Table

if TYPE_CHECKING:
    from rich.console import Console

GAP = 3  # spaces between columns
INDENT = "  "
KEPT = "\0"  # stands for a space that does not break a line
WHOLE = re.compile(r"(?<=\w)\([^()=]+=[^()]*\)| %")  # never broken: options of a metric, a number and its unit


class Sheet:
    """A console to draw on from top to bottom; `notes` names the columns that had no room."""

    def __init__(self, console: Console) -> None:
        self._console, self._n_tables = console, 0
        self._dropped: list[tuple[str, str]] = []  # tables and their columns that had no room

    def line(self, text: str = "", style: str = "") -> None:
        """Print a line unwrapped."""
        self._print(text, style)

    def text(self, text: str, style: str = "", hang: str = "") -> None:
        """Print a string wrapped to the width."""
        for line in wrap(text, self._console.width, hang):
            self._print(line, style)

    def marked(self, text: str) -> None:
        """Print a line of a table, with words that end in * in bold."""
        self._print(text, marked=True)

    def _print(self, text: str, style: str = "", *, marked: bool = False) -> None:
        from rich.text import Text

        line = Text(shown_characters(text), style=style)
        if marked:
            line.highlight_regex(r"\S+\*(?!\S)", "bold")
        self._console.print(line, soft_wrap=True)

    def table(self, table: Table, optional: Sequence[int] = (), n_labels: int | None = None) -> None:
        """Print a table with its title above and its notes below."""
        if table.title:
            self.text(table.title, "bold")
        head, *rows = table.texts()
        labels = table.n_texts if n_labels is None else n_labels
        fitted = fit(head, rows, self._console.width, n_labels=labels, optional=optional)
        for line in fitted.lines:
            self.marked(line)
        self._n_tables += 1
        if fitted.dropped:
            self._dropped.append((table.title or head[0], ", ".join(fitted.dropped)))
        if table.notes:
            self.notes(table.notes)

    def notes(self, lines: Iterable[str]) -> None:
        """Print lines below tables, first the names of dropped columns, with their tables if there are several."""
        if self._dropped:
            several = self._n_tables > 1
            found = (f"{names} in {table!r}" if several else names for table, names in self._dropped)
            self.text(f"no room in {self._console.width} columns for: {'; '.join(found)}", "dim")
        self._dropped, self._n_tables = [], 0
        for line in lines:
            self.text(line, "dim")


class Fitted(NamedTuple):
    """Lines of a table, and the columns dropped for lack of room."""

    lines: list[str]
    dropped: list[str]


def fit(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, n_labels: int = 1, optional: Sequence[int] = ()
) -> Fitted:
    """Return a table in at most `width` characters, with `n_labels` columns left-aligned and the others right-aligned.

    A table that is too wide loses the columns at the positions in `optional`, from 0, in this order. If it is still too
    wide, a table with optional columns becomes a block of lines per row, with all columns. A table without them becomes
    several tables that all begin with the labels, or blocks if labels and a number do not fit side by side.

    >>> for line in fit(
    ...     ["metric", "mean", "users"],
    ...     [["mrr", "0.5000", "1,200"]],
    ...     20,
    ...     optional=[2],
    ... ).lines:
    ...     print(line)
    metric     mean
    ───────────────
    mrr      0.5000
    """
    head, rows = [one_line(name) for name in head], [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(_size, column)) for column in zip(head, *rows, strict=True)]
    columns, dropped = list(range(len(head))), []
    for at in optional:
        if _width(widths, columns) > width:
            columns.remove(at)
            dropped.append(head[at])
    if _width(widths, columns) <= width:
        return Fitted(_table(head, rows, widths, columns, n_labels), dropped)
    parts = [] if optional else _parts(widths, width, n_labels)
    if not parts:
        return Fitted(_blocks(head, rows, width), [])
    tables = [_table(head, rows, widths, part, n_labels) for part in parts]
    return Fitted([line for n, table in enumerate(tables) for line in (*([""] if n else []), *table)], [])


def wrap(text: str, width: int, hang: str = "") -> list[str]:
    """Wrap a string between words. All lines keep its indent; from the second on they begin with `hang`.

    >>> wrap("left out: ndcg(gain=exp2, min_gain=4)@10, at 95 %", 30)
    ['left out:', 'ndcg(gain=exp2, min_gain=4)@10,', 'at 95 %']
    """
    indent = " " * (len(text) - len(text.lstrip(" ")))
    words = WHOLE.sub(lambda found: found[0].replace(" ", KEPT), one_line(text)).split(" ")
    lines = [indent + words[0]]
    for word in words[1:]:
        if _size(lines[-1]) + 1 + _size(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(indent + hang + word)
    return [line.rstrip().replace(KEPT, " ") for line in lines]


def shell_lines(command: str, width: int) -> list[str]:
    r"""Break a command into lines joined by backslashes; an option stays with its value.

    >>> shell_lines("fastrec evaluate recs.csv 'the truth.csv' -m mrr", 30)
    ['fastrec evaluate recs.csv \\', "    'the truth.csv' -m mrr"]
    """
    parts: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if parts and re.fullmatch(r"-\S+", parts[-1]):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return _joined(parts, width - 2, "    ", " \\")


def code_lines(line: str, width: int) -> list[str]:
    """Break a line of a Python example after commas in brackets, as the prompt accepts it.

    >>> code_lines('>>> f([1, 2], "a, b", k=3)', 22)
    ['>>> f([1, 2], "a, b",', '...     k=3)']
    """
    if not line.startswith(">>> ") or _size(line) <= width:
        return [line]
    parts, depth, quote = [""], 0, ""
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "([{") - (character in ")]}")
            if character == " " and depth and parts[-1].endswith(","):
                parts.append("")
                continue
        parts[-1] += character
    return _joined(parts, width, "...     ", "")


def _joined(parts: Sequence[str], width: int, hang: str, end: str) -> list[str]:
    """Join parts into lines that fit; all but the last end with `end`, all but the first begin with `hang`."""
    lines = [parts[0]]
    for part in parts[1:]:
        if _size(f"{lines[-1]} {part}") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(hang + part)
    return lines


def _size(text: str) -> int:
    """Return the columns of a terminal that a string takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _width(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[n] for n in columns) + GAP * (len(columns) - 1)


def _parts(widths: Sequence[int], width: int, n_labels: int) -> list[list[int]]:
    """Return the columns of as few tables as fit, of about equal widths; empty if labels and a number do not fit."""
    found = _packed(widths, width, n_labels)
    for narrower in range(width - 1, 0, -1):
        parts = _packed(widths, narrower, n_labels)
        if not 0 < len(parts) <= len(found):
            break
        found = parts
    return found


def _packed(widths: Sequence[int], width: int, n_labels: int) -> list[list[int]]:
    """Return the columns of tables that each take as many as fit; empty if labels and a number do not fit."""
    labels = list(range(n_labels))
    parts: list[list[int]] = []
    for n in range(n_labels, len(widths)):
        if _width(widths, [*labels, n]) > width:
            return []
        if not parts or _width(widths, [*parts[-1], n]) > width:
            parts.append(list(labels))
        parts[-1].append(n)
    return parts


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int], columns: Sequence[int], n_labels: int
) -> list[str]:
    """Return the lines of a table: head, rule and rows."""

    def line(cells: Sequence[str]) -> str:
        blanks = [" " * (widths[n] - _size(cells[n])) for n in columns]
        shown = [
            cells[n] + blank if n < n_labels else blank + cells[n] for n, blank in zip(columns, blanks, strict=True)
        ]
        return (" " * GAP).join(shown).rstrip()

    return [line(head), "─" * _width(widths, columns), *map(line, rows)]


def _blocks(head: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """Return a block of lines per row: its label, then name and value of each other column."""
    names = max(map(_size, head[1:]), default=0)
    lines: list[str] = []
    for row in rows:
        lines += [*([""] if lines else []), f"{head[0]}: {row[0]}" if head[0] else row[0]]
        for name, cell in zip(head[1:], map(str.strip, row[1:]), strict=True):
            beside = f"{INDENT}{name}{' ' * (names - _size(name))}{INDENT}{cell}"
            if cell:
                lines += [beside] if _size(beside) <= width else [INDENT + name, INDENT * 2 + cell]
    return lines

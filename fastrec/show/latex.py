"""Tables as LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastrec.exceptions import one_line
from fastrec.show.numbers import DASH
from fastrec.show.tables import Cell, Styled, Table, text_of

SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        DASH: "--",
        "†": r"\textdagger{}",
        "±": r"$\pm$",
        "≤": r"$\le$",
    }
)
IN_NUMBERS = SPECIAL | str.maketrans({"-": "$-$"})


def as_latex(tables: Iterable[Table]) -> str:
    """Return tables as LaTeX; their titles and notes are comments."""
    parts: list[str] = []
    for table in tables:
        parts += [_comments([table.title])] if table.title else []
        parts += ["\n".join(_lines(table)), *([_comments(table.notes)] if table.notes else [])]
    return "\n\n".join(parts)


def as_latex_float(table: Table) -> str:
    """Return a table as a LaTeX float whose caption is the title."""
    begin = [r"\begin{table}", r"\centering", rf"\caption{{{_escaped(table.title, SPECIAL)}}}"]
    return "\n".join([*begin, *_lines(table), r"\end{table}"])


def _comments(lines: Iterable[str]) -> str:
    return "\n".join(f"% {one_line(line)}" for line in lines)


def _lines(table: Table) -> list[str]:
    """Return the lines of a tabular without title and notes."""
    special = [SPECIAL if n < table.n_texts else IN_NUMBERS for n in range(len(table.head))]
    head = " & ".join(_escaped(name, SPECIAL) for name in table.head) + r" \\"
    rows = (_guarded(" & ".join(map(_cell, row, special))) + r" \\" for row in table.rows)
    columns = "l" * table.n_texts + "r" * (len(table.head) - table.n_texts)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return [begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end]


def _guarded(row: str) -> str:
    """Return a row whose first character is no argument of the end of the row, or of the rule, before it."""
    return f"{{}}{row}" if row.startswith(("[", "*", "(")) else row


def _cell(cell: Cell, special: Mapping[int, str]) -> str:
    """Return a cell, bold and with its marks above if it is one of a paper."""
    if not isinstance(cell, Styled):
        return _escaped(text_of(cell), special)
    text = _escaped(cell.text, special)
    mark = rf"\textsuperscript{{{_escaped(cell.mark, SPECIAL)}}}" if cell.mark else ""
    return rf"\textbf{{{text}}}{mark}" if cell.is_bold else f"{text}{mark}"


def _escaped(text: str, special: Mapping[int, str]) -> str:
    """Return a string as one line with its special characters escaped."""
    return one_line(text).translate(special)

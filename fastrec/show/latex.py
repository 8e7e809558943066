"""Tables as LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fastrec.exceptions import one_line
from fastrec.show.numbers import DASH
from fastrec.show.tables import Table

__all__ = ["as_latex"]

SPECIAL = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        DASH: "--",
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


def _comments(lines: Iterable[str]) -> str:
    return "\n".join(f"% {one_line(line)}" for line in lines)


def _lines(table: Table) -> list[str]:
    """Return the lines of a tabular without title and notes."""
    special = [SPECIAL if n < table.n_texts else IN_NUMBERS for n in range(len(table.head))]
    names, *cells = table.texts()
    head = " & ".join(_escaped(name, SPECIAL) for name in names) + r" \\"
    rows = (" & ".join(map(_escaped, row, special)) + r" \\" for row in cells)
    columns = "l" * table.n_texts + "r" * (len(table.head) - table.n_texts)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return [begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end]


def _escaped(text: str, special: Mapping[int, str]) -> str:
    """Return a string as one line with its special characters escaped."""
    return one_line(text).translate(special)

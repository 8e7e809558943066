"""Tables and charts as a self-contained HTML page, Markdown or LaTeX.

This module, and no other, escapes what users wrote.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fastrec.checks import check_text
from fastrec.exceptions import one_line

__all__ = [
    "Chart",
    "Drawn",
    "Section",
    "Table",
    "as_html",
    "as_latex",
    "as_markdown",
    "histogram",
    "html_page",
    "latex",
    "line_chart",
    "markdown",
    "markdown_text",
    "whisker",
]

CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n\r"}
DASH = "–"
FIRST_ROWS = 200  # rows shown until a reader asks for more, so that sorting stays quick
WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 10, 34  # margins of a chart
MAX_UNBROKEN = 24  # characters of a string; longer ones wrap
WHISKER = 120  # width of .w in STYLE
MIN_SPAN = 1e-300  # of an axis; a smaller one counts as 0, since 10 ** power would underflow
MAX_TICKS = 8  # cut-offs labelled under a chart
LATEX = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
}
MINUS = {"-": "$-$"}  # in numbers, in place of a hyphen
MARKDOWN = {character: f"\\{character}" for character in "\\|[`"} | {"<": "&lt;"}


class Drawn(NamedTuple):
    """Table cell with a picture of its text."""

    text: str
    svg: str


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
        return [[cell.text if isinstance(cell, Drawn) else cell for cell in row] for row in (self.head, *self.rows)]


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


# Markdown and LaTeX


def markdown(table: Table) -> list[str]:
    """Return lines of a Markdown table without title and notes; numbers are right-aligned."""
    rule = ["---" if n < table.n_texts else "---:" for n in range(len(table.head))]
    head, *rows = ([_escaped(cell, MARKDOWN) for cell in row] for row in table.texts())
    return [f"| {' | '.join(row)} |" for row in (head, rule, *rows)]


def latex(table: Table) -> list[str]:
    """Return lines of a LaTeX tabular with the rules of booktabs, without title and notes."""
    characters = [LATEX if n < table.n_texts else LATEX | MINUS for n in range(len(table.head))]
    names, *cells = table.texts()
    head = " & ".join(_escaped(name, LATEX) for name in names) + r" \\"
    rows = (" & ".join(map(_escaped, row, characters)) + r" \\" for row in cells)
    columns = "l" * table.n_texts + "r" * (len(table.head) - table.n_texts)
    begin, end = rf"\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
    return [begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end]


def as_markdown(tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Return tables as Markdown, then a list of notes."""
    lines = "\n".join(f"- {markdown_text(note)}" for note in notes)
    return "\n\n".join(["\n".join(markdown(table)) for table in tables] + ([lines] if lines else []))


def as_latex(tables: Iterable[Table], notes: Iterable[str] = ()) -> str:
    """Return tables as LaTeX, then notes as comments."""
    lines = "\n".join(f"% {one_line(note)}" for note in notes)
    return "\n\n".join(["\n".join(latex(table)) for table in tables] + ([lines] if lines else []))


def markdown_text(text: str) -> str:
    """Return a string as one line, escaped for Markdown."""
    return _escaped(text, MARKDOWN)


def _escaped(cell: str, characters: dict[str, str]) -> str:
    return "".join(characters.get(character, character) for character in one_line(cell))


# HTML


def html_page(title: str, sections: Iterable[Section], lead: Sequence[str] = ()) -> str:
    """Return an HTML document: light and dark, for screens and paper; a click on a column head sorts its table.

    It loads nothing, and its content security policy allows only its own script.
    """
    check_text("title", title)
    body = [f"<h1>{_text(title)}</h1>", *(f"<p class=lead>{_text(line)}" for line in lead)]
    numbered = [section for section in sections if section.tables or section.charts or section.lines]
    links = (f"<li><a href=#s{n}>{_text(section.title)}</a>" for n, section in enumerate(numbered))
    body.append(f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>')
    body += [_section(section, n) for n, section in enumerate(numbered)]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *body,
            f"</main><script>{SCRIPT}</script></body></html>\n",
        ]
    )


def as_html(table: Sequence[Sequence[str]], notes: Iterable[str], title: str = "") -> str:
    """Return a table of strings, its head first, and the notes below as HTML for notebooks."""
    head, *body = (
        "".join(f"<{cell}>{_text(text)}</{cell}>" for text in row)
        for cell, row in zip(["th"] + ["td"] * (len(table) - 1), table, strict=True)
    )
    rows = "".join(f"<tr>{row}</tr>" for row in body)
    lines = "".join(f"<div>{_text(note)}</div>" for note in notes)
    caption = f"<caption>{_text(title)}</caption>" if title else ""
    return f"<div><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{lines}</div>"


def _text(text: str) -> str:
    """Escape for HTML. Control characters and unpaired surrogates, which HTML cannot hold, become their numbers."""
    return html.escape(text.translate(CONTROLS).encode("utf-8", "backslashreplace").decode())


def _section(section: Section, n: int) -> str:
    parts = [f"<section id=s{n}><h2>{_text(section.title)}</h2>"]
    parts += [f"<p>{_text(line)}" for line in section.lines]
    if section.charts:
        parts += ["<div class=charts>", *map(_figure, section.charts), "</div>"]
    return "\n".join([*parts, *map(_table, section.tables), "</section>"])


def _figure(chart: Chart) -> str:
    return f"<figure>{chart.svg}<figcaption>{_text(chart.title)}</figcaption></figure>"


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none"{_width(table, n)}><button type="button">{_text(name)}</button></th>'
        for n, name in enumerate(table.head)
    )
    # HTML does not need the end tags of rows and cells: without them large tables are a third smaller.
    rows = "\n".join(
        f'<tr><th scope="row">{_cell(row[0])}' + "".join([f"<td>{_cell(cell)}" for cell in row[1:]])
        for row in table.rows
    )
    notes = "".join(f"<p class=note>{_text(note)}" for note in table.notes)
    caption = _text(table.title)
    return (
        f'<div class=scroll role="region" tabindex="0" aria-label="{caption}">'
        f'<table class="t{table.n_texts}" data-texts="{table.n_texts}">'
        f"<caption>{caption}</caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>{notes}"
    )


def _width(table: Table, column: int) -> str:
    """Return the minimum width of a column of strings: that of its longest, up to MAX_UNBROKEN."""
    if column >= table.n_texts:
        return ""
    longest = min(MAX_UNBROKEN, max([0, *(len(_content(row[column])) for row in table.rows)]))
    return f' style="min-width:min({longest}ch + 1.4rem,45vw)"'


def _content(cell: str | Drawn) -> str:
    return cell.text if isinstance(cell, Drawn) else cell


def _cell(cell: str | Drawn) -> str:
    if isinstance(cell, Drawn):
        return f"{_text(cell.text)}{cell.svg}"
    return _text(cell)


# Pictures


def whisker(low: float, middle: float, high: float, largest: float, kind: str = "") -> str:
    """Return a picture of an interval on a scale from -largest to largest; the text beside it has the numbers.

    kind : colour: "up", "down", or neither.
    """
    if not largest > 0 or not all(map(math.isfinite, (low, middle, high))):
        return ""
    left, at, right = (round((1 + number / largest) * WHISKER / 2) for number in (low, middle, high))
    return f"<svg class='w {kind}' aria-hidden=true><path d='M{left} 8H{right}M{at} 3v10'/></svg>"


def line_chart(title: str, names: Sequence[str], points: Sequence[tuple[float, float, float]]) -> str:
    """Return a chart of points (mean, low, high) from left to right; the vertical axis includes 0."""
    numbers = [number for point in points for number in point if math.isfinite(number)]
    axis = _Axis(min([0.0, *numbers]), max([0.0, *numbers]))
    step = (WIDTH - LEFT - RIGHT) / len(points)
    places = [LEFT + step * (n + 0.5) for n in range(len(points))]
    known = [(x, *point) for x, point in zip(places, points, strict=True) if math.isfinite(point[0])]
    line = "".join(f"{'L' if n else 'M'}{x:.1f} {axis.place(mean):.1f}" for n, (x, mean, _, _) in enumerate(known))
    dots = "".join(f'<circle cx="{x:.1f}" cy="{axis.place(mean):.1f}" r="3"/>' for x, mean, _, _ in known)
    whiskers = "".join(
        f"M{x:.1f} {axis.place(low):.1f}V{axis.place(high):.1f}" for x, _, low, high in known if math.isfinite(low)
    )
    every = -(-len(names) // MAX_TICKS)
    below = "".join(_label(x, name) for x, name in list(zip(places, names, strict=True))[::every])
    drawn = f'<path class="line" d="{line}"/><path class="bar" d="{whiskers}"/>{dots}'
    return _svg(title, f"{axis.drawn()}{drawn}{below}{_label((LEFT + WIDTH - RIGHT) / 2, 'k', 30)}")


def histogram(title: str, counts: Sequence[int], low: str, high: str) -> str:
    """Return a chart of counts in bins of equal width from low to high."""
    axis = _Axis(0.0, float(max([1, *counts])), decimals=0)
    step = (WIDTH - LEFT - RIGHT) / len(counts)
    bars = "".join(
        f"M{LEFT + n * step + 0.5:.1f} {axis.place(0):.1f}V{axis.place(count):.1f}h{step - 1:.1f}V{axis.place(0):.1f}z"
        for n, count in enumerate(counts)
        if count
    )
    ends = _label(LEFT, low, anchor="start") + _label(WIDTH - RIGHT, high, anchor="end")
    return _svg(title, f'{axis.drawn()}<path class="fill" d="{bars}"/>{ends}')


class _Axis:
    """Vertical axis with round numbers at its ticks."""

    def __init__(self, low: float, high: float, decimals: int | None = None) -> None:
        wide = (high - low) / 3.5 if high - low > MIN_SPAN else 1.0
        power = math.floor(math.log10(wide))
        step = next(size for size in (1, 2, 2.5, 5, 10) if size * 10.0**power >= wide * 0.999) * 10.0**power
        if decimals == 0:
            step = max(1.0, math.ceil(step))
        self._step, self._first = step, math.floor(low / step)
        self._last = max(math.ceil(high / step), self._first + 1)
        self._decimals = max(0, -power) + (2.5 * 10.0**power == step) if decimals is None else decimals

    def place(self, number: float) -> float:
        """Return the position of a number, from the top."""
        share = (number / self._step - self._first) / (self._last - self._first)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def drawn(self) -> str:
        """Return the grid lines with their numbers."""
        ticks = [n * self._step for n in range(self._first, self._last + 1)]
        grid = "".join(f"M{LEFT} {self.place(tick):.1f}H{WIDTH - RIGHT}" for tick in ticks)
        names = "".join(
            f'<text x="{LEFT - 5}" y="{self.place(tick) + 4:.1f}" text-anchor="end">{self._name(tick)}</text>'
            for tick in ticks
        )
        return f'<path class="grid" d="{grid}"/>{names}'

    def _name(self, tick: float) -> str:
        if abs(tick) >= 10_000 or self._decimals > 4:
            return f"{tick:.3g}"
        return f"{tick:.{self._decimals}f}"


def _label(x: float, name: str, down: int = 15, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + down}" text-anchor="{anchor}">{_text(name)}</text>'


def _svg(title: str, drawn: str) -> str:
    return f'<svg role="img" viewBox="0 0 {WIDTH} {HEIGHT}"><title>{_text(title)}</title>{drawn}</svg>'


STYLE = """
:root{color-scheme:light dark;--page:#fff;--ink:#1b1f24;--soft:#57606a;--rule:#d0d7de;--band:#f3f5f7;--mark:#0b5cad;
--up:#0072b2;--down:#c2410c}
@media(prefers-color-scheme:dark){:root{--page:#14181d;--ink:#e6e9ed;--soft:#a2abb6;--rule:#3a424c;--band:#1e242b;
--mark:#6cb6ff;--up:#6cb6ff;--down:#f7935a}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
td{overflow-wrap:normal}
main{max-width:80rem;margin:auto;padding:1rem clamp(1rem,3vw,2.5rem) 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.8rem 0 .4rem}
h2{font-size:1.2rem;margin:2.4rem 0 .5rem;padding-top:.6rem;border-top:1px solid var(--rule)}
p{margin:.4rem 0;max-width:60rem}
.lead{font-size:1.05rem}
.note{color:var(--soft);font-size:.85rem}
a{color:var(--mark)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;margin:.8rem 0;padding:0}
.scroll{overflow-x:auto;margin:.8rem 0;max-height:80vh;border:1px solid var(--rule);border-radius:6px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.5rem .7rem;font-weight:600;position:sticky;left:0}
th,td{padding:.28rem .7rem;text-align:right;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{position:sticky;top:0;z-index:2;background:var(--band);font-weight:600;
white-space:normal;overflow-wrap:normal;vertical-align:bottom}
tbody th{font-weight:500;position:sticky;left:0;background:var(--page);white-space:normal}
tbody tr:hover>*{background:var(--band)}
.t1 :is(th,td):nth-child(-n+1),.t2 :is(th,td):nth-child(-n+2),.t3 :is(th,td):nth-child(-n+3),
.t4 :is(th,td):nth-child(-n+4),.t5 :is(th,td):nth-child(-n+5),.t6 :is(th,td){text-align:left}
.t2 td:nth-child(-n+2),.t3 td:nth-child(-n+3),.t4 td:nth-child(-n+4),.t5 td:nth-child(-n+5),
.t6 td{white-space:normal;overflow-wrap:anywhere}
.t6 :is(th,td){vertical-align:top}
th button{all:unset;cursor:pointer}
:is(button,input,a,.scroll):focus-visible{outline:2px solid var(--mark);outline-offset:2px}
th button::after{content:"\\2195";opacity:.35;padding-left:.3em}
[aria-sort=ascending] button::after{content:"\\2191";opacity:1}
[aria-sort=descending] button::after{content:"\\2193";opacity:1}
.controls{display:flex;flex-wrap:wrap;gap:.4rem 1rem;align-items:center;font-size:.875rem;margin-top:1rem}
.controls :is(input,button){font:inherit;color:inherit;background:var(--band);border:1px solid var(--rule);
border-radius:6px;padding:.25rem .6rem;max-width:100%}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,19rem),1fr));gap:1rem;margin:1rem 0}
figure{margin:0;border:1px solid var(--rule);border-radius:6px;padding:.6rem;break-inside:avoid}
figcaption{font-size:.875rem;font-weight:500}
svg{display:block;width:100%;height:auto;max-width:30rem;fill:none}
svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.grid{stroke:var(--rule)}
.line{stroke:var(--mark);stroke-width:1.5}
.bar{stroke:var(--mark);stroke-width:1.5}
circle,.fill{fill:var(--mark)}
.w{display:inline-block;width:120px;height:16px;margin-left:.7rem;vertical-align:-3px;stroke:var(--soft);
stroke-width:2;background:linear-gradient(var(--soft),var(--soft)) center/1px 100% no-repeat}
.up{stroke:var(--up)}
.down{stroke:var(--down)}
@page{size:landscape;margin:12mm}
@media print{:root{color-scheme:light;--page:#fff;--ink:#000;--soft:#444;--rule:#bbb;--band:#eee;
--mark:#0b5cad;--up:#0072b2;--down:#c2410c}
main{max-width:none;padding:0}nav,.controls :is(label,button),th button::after{display:none}
.scroll{overflow:visible;max-height:none;
border:0}table{font-size:7pt}th,td{padding:.1rem .25rem;position:static!important;
min-width:0!important}tbody th{min-width:9ch!important}
thead{display:table-header-group}tr{break-inside:avoid}.w{width:120px;margin-left:.2rem;print-color-adjust:exact}}
"""

SCRIPT = """
"use strict";
const collator = new Intl.Collator("en", {numeric: true});
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], nTexts = Number(table.dataset.texts);
  let rows = [...body.rows], most = FIRST_ROWS, wanted = "", show = () => {};
  if (rows.length > 20) {
    const controls = document.createElement("div"), status = document.createElement("output");
    const label = document.createElement("label"), input = document.createElement("input");
    const more = document.createElement("button");
    const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
    show = () => {
      let found = 0;
      for (const row of rows) row.hidden = !texts.get(row).includes(wanted) || ++found > most;
      const shown = Math.min(found, most), all = rows.length.toLocaleString("en");
      status.textContent = `${shown.toLocaleString("en")} of ${all} rows shown`;
      more.hidden = found <= most;
    };
    controls.className = "controls";
    input.type = "search";
    label.append("Filter rows ", input);
    more.type = "button";
    more.textContent = "Show all";
    input.addEventListener("input", () => { wanted = input.value.trim().toLowerCase(); show(); });
    more.addEventListener("click", () => { most = Infinity; show(); });
    controls.append(label, status, more);
    table.parentElement.before(controls);
    show();
  }
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const isText = column < nTexts, before = head.getAttribute("aria-sort");
    const sign = before === "none" ? (isText ? 1 : -1) : before === "ascending" ? -1 : 1;
    const keys = new Map(rows.map(row => {
      const text = row.cells[column].textContent.trim();
      return [row, isText ? text : parseFloat(text.replaceAll(",", ""))];
    }));
    rows.sort((one, other) => {
      const a = keys.get(one), b = keys.get(other);
      if (isText) return sign * collator.compare(a, b);
      if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
      return a === b ? 0 : sign * (a - b);
    });
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    show();
    body.replaceChildren(...rows);
  }));
}
""".replace("FIRST_ROWS", str(FIRST_ROWS))

"""Tables and charts as HTML: a self-contained page, and tables for notebooks."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from fastrec.checks import check_text
from fastrec.exceptions import InputTypeError, shown
from fastrec.show.tables import Brief, Cell, Chart, Drawn, Lead, Section, Table, text_of, warning_lines

CONTROLS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n\r"}
MAX_UNBROKEN = 24  # characters of a string; longer ones wrap
MAX_LINE = 16  # characters of a line of a name with "_"; shorter names do not wrap
MAX_TEXTS = 90  # characters of unbroken strings beside each other
EMPTY = Lead()


def html_page(
    title: str, sections: Iterable[Section], lead: Lead = EMPTY, about: Mapping[str, str] | None = None
) -> str:
    """Return an HTML document: light and dark, for screens and paper; a click on a column head sorts its table.

    It loads nothing, and its content security policy allows only its own script. The same arguments give the same
    document: a date is there only if `about` has one.
    """
    check_text("title", title)
    facts = _checked({} if about is None else about)
    style, script = _shipped("page.css"), _shipped("page.js")
    body = [*_lead(title, lead, facts)]
    numbered = [section for section in sections if section.tables or section.charts or section.lines]
    links = (f"<li><a href=#s{n}>{escaped(section.title)}</a>" for n, section in enumerate(numbered))
    body.append(f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>')
    body += [_section(section, n) for n, section in enumerate(numbered)]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escaped(title)}</title>",
            f"<style>{style}</style></head><body><main>",
            *body,
            f"</main><script>{script}</script></body></html>\n",
        ]
    )


def _checked(about: Any) -> Mapping[str, str]:
    """Return facts about a page; raise InputTypeError unless they are strings by name."""
    is_form = isinstance(about, Mapping) and all(isinstance(text, str) for pair in about.items() for text in pair)
    if not is_form:
        raise InputTypeError(f"about must be strings by name, as in {{'date': '2026-01-31'}}, found {shown(about)}")
    return dict(about)


def _lead(title: str, lead: Lead, about: Mapping[str, str]) -> Iterator[str]:
    """Yield the title, the findings, the warnings, and how the numbers came about."""
    yield f"<header><h1>{escaped(title)}</h1>"
    if lead.headline:
        yield f"<p class=headline>{escaped(lead.headline)}"
    if lead.findings:
        yield f"<ul class=findings>{''.join(f'<li>{escaped(line)}' for line in lead.findings)}</ul>"
    if lead.warnings:
        lines = "".join(f"<p>{escaped(line)}" for line in warning_lines(lead.warnings))
        yield f'<div class=warnings role=note aria-label="Warnings">{lines}</div>'
    if about:
        facts = "".join(f"<div><dt>{escaped(name)}<dd>{escaped(text)}</div>" for name, text in about.items())
        yield f"<dl class=about>{facts}</dl>"
    yield from (f"<p class=note>{escaped(line)}" for line in lead.notes)
    yield "</header>"


def as_html(tables: Iterable[Table]) -> str:
    """Return tables with their titles and notes as HTML for notebooks."""
    return "".join(map(_in_notebook, tables))


def _in_notebook(table: Table) -> str:
    head, *rows = table.texts()
    heads = "".join(f"<th>{escaped(text)}</th>" for text in head)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(text)}</td>' for text in row)}</tr>" for row in rows)
    notes = "".join(f"<div>{escaped(note)}</div>" for note in table.notes)
    caption = f"<caption>{escaped(table.title)}</caption>" if table.title else ""
    return f"<div><table>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"


@functools.cache
def _shipped(name: str) -> str:
    """Return a file of this package, on lines of its own."""
    return f"\n{resources.files('fastrec.show').joinpath(name).read_text('utf-8')}"


def escaped(text: str) -> str:
    """Escape for HTML. Control characters and unpaired surrogates, which HTML cannot hold, become their numbers."""
    return html.escape(text.translate(CONTROLS).encode("utf-8", "backslashreplace").decode())


def _section(section: Section, n: int) -> str:
    parts = [f"<section id=s{n}><h2>{escaped(section.title)}</h2>"]
    parts += [f"<p>{escaped(line)}" for line in section.lines]
    parts += [f"<details><summary>{escaped(section.folded)}</summary>"] if section.folded else []
    if section.charts:
        parts += ["<div class=charts>", *map(_figure, section.charts), "</div>"]
    parts += map(_table, section.tables)
    return "\n".join([*parts, *(["</details>"] if section.folded else []), "</section>"])


def _figure(chart: Chart) -> str:
    return f"<figure><figcaption>{escaped(chart.title)}</figcaption>{chart.svg}</figure>"


def _table(table: Table) -> str:
    heads = "".join(
        f'<th scope="col" aria-sort="none"{_width(table, n)}><button type="button">{escaped(name)}</button></th>'
        for n, name in enumerate(table.head)
    )
    # HTML does not need the end tags of rows and cells: without them large tables are a third smaller.
    rows = "\n".join(
        f'<tr><th scope="row">{_cell(row[0])}' + "".join([f"<td>{_cell(cell)}" for cell in row[1:]])
        for row in table.rows
    )
    notes = "".join(f"<p class=note>{escaped(note)}" for note in table.notes)
    caption = escaped(table.title)
    switch, hidden = _switch(table)
    return (
        f'<div class=frame>{switch}<div class=scroll role="region" tabindex="0" aria-label="{caption}">'
        f'<table class="t{table.n_texts}{hidden}" data-texts="{table.n_texts}">'
        f"<caption>{caption}</caption>\n"
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div></div>{notes}"
    )


def _switch(table: Table) -> tuple[str, str]:
    """Return the switch that shows all columns, and the classes by which page.css hides those beyond it."""
    n = len(table.head)
    shown_, narrow = (n if limit is None else min(limit, n) for limit in (table.n_shown, table.n_narrow))
    if min(shown_, narrow) == n:
        return "", ""
    hidden = f"{f' w{shown_}' if shown_ < n else ''}{f' n{narrow}' if narrow < n else ''}"
    always = "" if shown_ < n else " narrow"
    return f'<details class="more{always}"><summary>All columns</summary></details>', hidden


def _width(table: Table, column: int) -> str:
    """Return the minimum width of a column of strings: that of its longest line, up to a share of the page."""
    if column >= table.n_texts:
        return ""
    most = min(MAX_UNBROKEN, MAX_TEXTS // table.n_texts)
    longest = max([0, *(_longest_line(text_of(row[column])) for row in table.rows)])
    return f' style="min-width:min({min(longest, most)}ch + 1.4rem,45vw)"'


def _longest_line(text: str) -> int:
    """Return the length of the longest line of a name that wraps behind "_", if it is long."""
    if len(text) <= MAX_LINE:
        return len(text)
    longest = line = 0
    for piece in (f"{part}_" for part in text.split("_")):
        line = len(piece) if line + len(piece) > MAX_LINE else line + len(piece)
        longest = max(longest, line)
    return min(longest, len(text))


def _cell(cell: Cell) -> str:
    if isinstance(cell, Brief):
        return f"{escaped(cell.short)}<i>{escaped(cell.rest)}</i>"
    # long names wrap behind "_" before they wrap anywhere
    return re.sub("[_(=]", r"\g<0><wbr>", escaped(text_of(cell))) + (cell.svg if isinstance(cell, Drawn) else "")

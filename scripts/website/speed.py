"""Tables and charts of speed, from the results of the benchmarks."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.field import RESULTS as FIELD_RESULTS
from bench.field import table_of_features, table_of_field
from bench.files import RESULTS as FILE_RESULTS
from bench.files import table_of_files
from bench.plan import PLAN_RESULTS, table_of_plan
from bench.report import ENGINE_RESULTS, SPARK_RESULTS, check_results, table, table_of_routes
from bench.run import RESULTS, ROUTE

LARGE = "10M rows"
OTHERS = {  # tool of the results -> words for its bar
    "fastrec": "fastrec",
    "recbole": "RecBole",
    "pytrec-eval-terrier": "trec_eval (pytrec_eval)",
    "rectools": "RecTools",
    "ranx": "ranx",
    "duckdb": "a query for DuckDB, written by hand",
    "polars": "a query for Polars, written by hand",
}
OTHERS_USERS = 1_000_000
PICTURE = "docs/assets/speed.svg"
OTHERS_TITLE = "Seconds for 6 metrics at 5 cut-offs of 1M lists of 100 items (logarithmic scale)"
STYLE = (
    "<style>text{font:13px sans-serif;fill:#24292f}.bar{fill:#3f51b5}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#7986cb}}</style>"
)
WIDTH, ROW, NUMBER = 420, 46, 110  # of a chart, its rows, and the words behind a bar, in its own units


def results(path: Path = RESULTS) -> dict[str, Any]:
    """Return the results of a benchmark, of a full run on a machine without other work."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    check_results(found)
    return found


def field() -> dict[str, Any]:
    """Return times and features of every tool."""
    found: dict[str, Any] = json.loads(FIELD_RESULTS.read_text(encoding="utf-8"))
    return found


def drawn(title: str, rows: Sequence[tuple[str, float, str]], style: str = "") -> str:
    """Return a chart with a bar per row (name, value, words), on a logarithmic scale that begins at 1."""
    longest = max(math.log10(value) for _, value, _ in rows)
    lines = []
    for n, (name, value, words) in enumerate(rows):
        y, width = n * ROW, max(math.log10(value) / longest * (WIDTH - NUMBER), 1)
        lines.append(
            f'<text x="0" y="{y + 14}">{html.escape(name)}</text>'
            f'<rect class="bar" x="0" y="{y + 20}" width="{width:.1f}" height="16"/>'
            f'<text x="{width + 8:.1f}" y="{y + 33}">{html.escape(words)}</text>'
        )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {len(rows) * ROW}"'
    return f'{head} role="img" aria-label="{html.escape(title)}">{style}{"".join(lines)}</svg>'


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """Return a chart with its title, for a page."""
    return f"<figure>{drawn(title, rows)}<figcaption>{html.escape(title)}</figcaption></figure>"


def time_of(tool: str) -> tuple[float, str]:
    """Return the seconds of a tool from flat arrays to values, and in words; ~ if they follow from fewer users."""
    (row,) = (row for row in field()["rows"] if (row["tool"], row["users"]) == (tool, OTHERS_USERS))
    seconds = float(row["prepared"] + row["evaluated"])
    words = f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return seconds, f"~ {words}" if row["extrapolated"] else words


def others() -> list[tuple[str, float, str]]:
    """Return the times of fastrec and of other tools: name, multiple of fastrec's time, seconds in words."""
    least, _ = time_of("fastrec")
    found = [(name, *time_of(tool)) for tool, name in OTHERS.items()]
    return [(name, max(seconds / least, 1.0), words) for name, seconds, words in found]


def link_of_others() -> str:
    """Return the Markdown that shows the picture of other tools, with its content in words."""
    text = f"{OTHERS_TITLE.partition(' (')[0]}: {', '.join(f'{name} {words}' for name, _, words in others())}"
    return f"![{text}]({PICTURE})"


def picture_of_others() -> str:
    """Return the chart of other tools as a file, with its own colours."""
    return drawn(OTHERS_TITLE, others(), STYLE) + "\n"


def chart_of_others() -> str:
    """Return the chart of other tools, for a page."""
    return bars(OTHERS_TITLE, others())


def chart_of_routes() -> str:
    """Return a chart of the rows per second of each form of input."""
    start = f"{ROUTE}{LARGE}: "
    found = [row for row in results()["rows"] if row["name"].startswith(start)]
    rates = [(row["name"].removeprefix(start).replace("`", ""), 1e7 / row["value"] / 1e6) for row in found]
    rows = [(name, rate, f"{rate:.3g}M rows/s") for name, rate in sorted(rates, key=lambda one: -one[1])]
    return bars(f"Millions of rows per second, for {LARGE} (logarithmic scale)", rows)


TABLES: dict[str, Callable[[], str]] = {
    "speed": lambda: table(results()),
    "routes": lambda: table_of_routes(results()),
    "spark": lambda: table(results(SPARK_RESULTS)),
    "engines": lambda: table(results(ENGINE_RESULTS)),
    "plan": lambda: table_of_plan(json.loads(PLAN_RESULTS.read_text(encoding="utf-8"))),
    "field": lambda: table_of_field(field()),
    "features": lambda: table_of_features(field()),
    "files": lambda: table_of_files(json.loads(FILE_RESULTS.read_text(encoding="utf-8"))),
}
CHARTS: dict[str, Callable[[], str]] = {"others": chart_of_others, "rates": chart_of_routes}

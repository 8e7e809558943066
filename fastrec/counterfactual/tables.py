"""Tables and charts of clicks and position bias by rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastrec.show.charts import line_chart
from fastrec.show.numbers import DASH, one_figure, shown_count, span
from fastrec.show.tables import Chart, Table

SHOWN = 30  # rows of `repr`
MAX_POINTS = 100  # of a chart
MEANINGS = {
    "method": "how the curve is computed",
    "n_rounds": "rounds of expectation maximisation",
    "level": "level of intervals",
    "n_samples": "draws of the bootstrap of queries",
    "seed": "seed of the draws",
}
Row = Mapping[str, Any]


def brief(table: Table) -> Table:
    """Return the first rows of a table, and a line that counts the others."""
    left = len(table.rows) - SHOWN
    return table if left <= 0 else table._replace(rows=table.rows[:SHOWN], notes=[f"{left:,} more ranks"])


def rank_table(title: str, rows: Sequence[Row]) -> Table:
    """Return the table of click-through rates by rank."""
    by_user = any("users" in row for row in rows)
    head = ["rank", "impressions", "clicks", "ratio", "interval", *(["users"] if by_user else [])]
    body = [
        [
            shown_count(row["rank"]),
            shown_count(row["impressions"]),
            shown_count(row["clicks"]),
            one_figure(row["ratio"]),
            span(row["ratio"], row["low"], row["high"]),
            *([shown_count(row["users"])] if by_user else []),
        ]
        for row in rows
    ]
    return Table(title, head, body, n_narrow=4)


def curve_table(rows: Sequence[Row]) -> Table:
    """Return the table of a curve of position bias."""
    with_examination = any(row["examination"] is not None for row in rows)
    head = ["rank", "curve", "interval", "pairs", "impressions", "clicks"]
    body = [
        [
            shown_count(row["rank"]),
            one_figure(row["curve"]),
            span(row["curve"], row["low"], row["high"]),
            shown_count(row["pairs"]),
            shown_count(row["impressions"]),
            shown_count(row["clicks"]),
            *([one_figure(row["examination"])] if with_examination else []),
        ]
        for row in rows
    ]
    return Table("", [*head, *(["examination"] if with_examination else [])], body, n_narrow=3)


def chart_of(title: str, rows: Iterable[Row], column: str) -> Chart:
    """Return a chart of a column by rank, with its intervals, for the first ranks."""
    some = [row for row, _ in zip(rows, range(MAX_POINTS), strict=False)]
    points = [(row[column], row["low"], row["high"]) for row in some]
    names = [str(row["rank"]) for row in some]
    return Chart(title, line_chart(title, names, points, "rank") if points else "")


def page_of_settings(settings: Mapping[str, Any]) -> Table:
    """Return the table of settings of a curve."""
    rows = [[name, MEANINGS[name], DASH if value is None else str(value)] for name, value in settings.items()]
    return Table("Settings", ["setting", "what it decides", "value"], rows, 3)

"""Charts of systems × metrics with their intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from fastrec.comparison.row import ComparisonRow
from fastrec.comparison.tables import KINDS
from fastrec.metrics.directions import Direction
from fastrec.report.estimates import Estimate
from fastrec.show.charts import Estimated, Interval, interval_chart
from fastrec.show.numbers import one_figure, percent, relative
from fastrec.show.tables import Chart

Rows = Sequence[ComparisonRow]
MAX_CHARTS = 6  # of a grouping
MAX_GROUPS = 24  # in a chart


def how_to_read(level: float, baseline: str | None) -> str:
    """Return a line on the charts."""
    if baseline is None:
        return f"Means of the systems, with intervals of {percent(level)}. Each metric has its own scale."
    return (
        f"Differences to {baseline}, with intervals of {percent(level)}; beside them the means and the relative "
        "differences. Each metric has its own scale. Blue is better, orange worse, grey not clear."
    )


def charts_of(
    rows: Rows, estimates: Mapping[str, Mapping[str, Estimate]], level: float, baseline: str | None
) -> list[Chart]:
    """Return a chart for each metric: differences to a baseline, or the means of all systems."""
    by_metric: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        by_metric.setdefault(row.metric, []).append(row)
    charts = []
    for metric, own in by_metric.items():
        title = f"{metric}: {Direction(own[0].direction, own[0].target).words} is better"
        lines = list(_means(own, estimates, level) if baseline is None else _differences(own))
        charts.append(Chart(title, interval_chart(title, lines, None if baseline is None else 0.0)))
    return charts


def charts_of_segments(segments: Mapping[str, Rows]) -> list[Chart]:
    """Return charts of the first differences to a baseline by group, for groups with users."""
    charts = []
    for grouping, rows in segments.items():
        by_pair: dict[tuple[str, str], list[ComparisonRow]] = {}
        for row in rows:
            if row.users:
                by_pair.setdefault((row.metric, row.system), []).append(row)
        for (metric, system), own in itertools.islice(by_pair.items(), MAX_CHARTS):
            if 1 < len(own) <= MAX_GROUPS:
                title = f"{metric} of {system} by {grouping}"
                charts.append(
                    Chart(title, interval_chart(title, [_difference(str(row.group), row) for row in own], 0.0))
                )
    return charts


def _differences(rows: Rows) -> Iterator[Interval]:
    """Yield the baseline at 0, then the difference of each system to it."""
    means = {row.baseline_mean for row in rows}
    texts = [one_figure(means.pop())] if len(means) == 1 else []
    yield Interval(rows[0].baseline, Estimated(0.0, math.nan, math.nan), texts, "flat")
    yield from (_difference(row.system, row) for row in rows)


def _difference(name: str, row: ComparisonRow) -> Interval:
    """Return the line of a difference, its colour by the verdict, beside it the mean and the relative difference."""
    texts = [one_figure(row.mean), *([] if math.isnan(row.relative) else [relative(row.relative)])]
    kind = "flat" if row.verdict == "not clear" else KINDS.get(row.verdict, "")
    return Interval(name, Estimated(row.difference, row.low, row.high), texts, kind)


def _means(rows: Rows, estimates: Mapping[str, Mapping[str, Estimate]], level: float) -> Iterator[Interval]:
    """Yield the mean of each system with its interval, if its estimate is known."""
    means = {name: mean for row in rows for name, mean in ((row.baseline, row.baseline_mean), (row.system, row.mean))}
    for name, mean in means.items():
        own = estimates.get(name, {}).get(rows[0].metric)
        found = Estimated(mean, math.nan, math.nan) if own is None else Estimated(own.mean, *own.interval(level))
        yield Interval(name, found, [one_figure(found.mean)])

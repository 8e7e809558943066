"""The page of a report, its findings in words and charts; and its table for a paper."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fastrec.checks import counted, listed, with_article
from fastrec.exceptions import InputTypeError
from fastrec.report.definitions import known_call
from fastrec.report.estimates import with_intervals
from fastrec.report.plain import rows_of
from fastrec.report.tables import cutoff_families, estimated, group_tables
from fastrec.show.charts import Estimated, Interval, interval_chart, line_chart
from fastrec.show.numbers import one_figure, span
from fastrec.show.shown import Charted
from fastrec.show.tables import Chart, Section, Table

if TYPE_CHECKING:
    from fastrec.report.estimates import Estimate
    from fastrec.report.values import ReportValues

MAX_CHARTS = 6  # of a grouping
MAX_GROUPS = 24  # in a chart


def findings(report: ReportValues) -> list[str]:
    """Return sentences on the first metric that has a value, over all users and in groups; none without a value."""
    name = next((name for name, one in report.estimates.items() if math.isfinite(one.mean)), None)
    if name is None:
        return []
    one, total = report.estimates[name], report.users["total"]
    words = f"{name} is {one_figure(one.mean)}"
    if math.isfinite(one.interval()[0]):
        words = f"{words} (95 % interval {span(one.mean, *one.interval())})"
    if total:
        of_all = "" if one.users == total else f"{one.users:,} of "
        words = f"{words} over {of_all}{counted(total, 'user')}"
    return [words, *_of_groups(report, name)]


def _of_groups(report: ReportValues, name: str) -> Iterator[str]:
    """Yield a sentence per grouping of users on its groups of several users with the highest and the lowest mean."""
    for grouping, by_label in report.groups.items():
        if grouping in report.row_groupings:
            continue  # users are in several segments, so their means are no comparison
        means = {str(label): own[name].mean for label, own in by_label.items() if own[name].users > 1}
        means = {label: mean for label, mean in means.items() if math.isfinite(mean)}
        if len(set(means.values())) > 1:
            low, high = (pick(means, key=means.__getitem__) for pick in (min, max))
            ends = f"highest for {high} ({one_figure(means[high])}) and lowest for {low} ({one_figure(means[low])})"
            yield f"By {grouping}, {name} is {ends}"


def summary(report: ReportValues) -> Section:
    """Return charts of metrics against cut-offs, a chart of the other metrics from 0 to 1, and the table of all."""
    rows = rows_of(report.estimates)
    families = cutoff_families(rows)
    charts = []
    for name, own in families.items():
        title = f"{name} at cut-offs k, with 95 % intervals"
        points = [(row["mean"], row["low"], row["high"]) for _, row in own]
        charts.append(Chart(title, line_chart(title, [str(k) for k, _ in own], points)))
    drawn = {row["metric"] for own in families.values() for _, row in own}
    shares = [row for row in rows if row["metric"] not in drawn and _is_share(row)]
    if len(shares) > 1:
        title = "Metrics from 0 to 1, with 95 % intervals"
        charts.append(Chart(title, interval_chart(title, [_line(row["metric"], row) for row in shares])))
    title = f"Metrics over all {'users' if report.users['total'] else 'rows'}"
    return Section("Metrics", [estimated(report)._replace(title=title, n_narrow=3)], charts)


def _is_share(row: Mapping[str, Any]) -> bool:
    """Return whether a metric has a value, and the range from 0 to 1."""
    call = known_call(row["metric"])
    return math.isfinite(row["mean"]) and call is not None and tuple(call.metric.range) == (0, 1)


def _line(name: str, row: Mapping[str, Any]) -> Interval:
    return Interval(name, Estimated(row["mean"], row["low"], row["high"]), [one_figure(row["mean"])])


def segments(report: ReportValues) -> Section:
    """Return charts of the first metrics by group, and the tables of groups."""
    charts = []
    families = {name.rpartition("@")[0] or name: name for name in reversed(report.estimates)}  # with the first cut-off
    known = [name for name in reversed(families.values()) if math.isfinite(report.estimates[name].mean)]
    for grouping, by_label in report.groups.items():
        for name in known[:MAX_CHARTS]:
            rows = {str(label): rows_of({name: own[name]})[0] for label, own in by_label.items() if own[name].users}
            if 1 < len(rows) <= MAX_GROUPS:
                title = f"{name} by {grouping}"
                lines = [_line(label, row) for label, row in rows.items()]
                charts.append(Chart(title, interval_chart(title, lines, report.estimates[name].mean)))
    reading = ["Means of groups, with 95 % intervals; the dashed line is the mean over all."] if charts else []
    return Section("Segments", [table._replace(n_narrow=4) for table in group_tables(report)], charts, reading)


def sections_of(curves: Iterable[Charted]) -> list[Section]:
    """Return the sections of curves; those of one title are one section."""
    if isinstance(curves, Charted) or not isinstance(curves, Iterable):
        raise InputTypeError(f"curves must be a list of curves, found {with_article(type(curves).__name__)}")
    joined: dict[str, Section] = {}
    for curve in listed(curves, "curves"):
        if not isinstance(curve, Charted):
            raise InputTypeError(
                "curves must be results of roc_curve, pr_curve, interpolated_pr_curve, calibration_curve, ctr_by_rank "
                f"or position_bias, found {with_article(type(curve).__name__)}"
            )
        for own in curve._in_report():  # noqa: SLF001 - of all results; not public
            known = joined.get(own.title, Section(own.title))
            joined[own.title] = Section(
                own.title,
                [*known.tables, *own.tables],
                [*known.charts, *own.charts],
                list(dict.fromkeys([*known.lines, *own.lines])),
            )
    return list(joined.values())


def paper_table(report: ReportValues) -> Table:
    """Return a table of metrics (columns) over all users and by group (rows); its title is the caption."""
    parts: dict[str, Mapping[str, Estimate]] = {"all": report.estimates}
    for grouping, by_label in report.groups.items():
        parts |= {f"{grouping}: {label}": own for label, own in by_label.items()}
    cells = with_intervals([own[metric] for metric in report.estimates] for own in parts.values())
    rows = [[name, *row] for name, row in zip(parts, cells, strict=True)]
    counts = {one.users for one in report.estimates.values()}
    least, most = min(counts), max(counts)
    users = counted(most, "user") if least == most else f"{least:,} to {counted(most, 'user')}"
    over = f" over {users}" if report.users["total"] else " over all rows"
    has_interval = any(len(cell.split()) > 1 for row in cells for cell in row)
    caption = f"Means{over}{' with 95 % intervals' if has_interval else ''}."
    return Table(caption, ["users" if report.users["total"] else "rows", *report.estimates], rows)

"""Tables and charts of a drift."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastrec.feedback.rows import MIN_LOGS, OF_USERS, PAIRS, DriftLog, DriftStep, Share, Trend, metric_of
from fastrec.report.definitions import definitions, known_call
from fastrec.report.estimates import Estimate, with_intervals
from fastrec.show.charts import line_chart
from fastrec.show.numbers import DASH, Gap, figures, one_figure, shown_count, shown_difference
from fastrec.show.tables import Chart, Table

WIDTH = 80  # of `repr`
MARK = "*: the 95 % interval of the change excludes 0"
MAX_NAME = 16  # characters of the name of a log below a chart
MAX_SHARES = 1_000  # rows of a table of shares
OWN = ("exposure shift", "overlap", "rbo")  # columns that only steps have
MEANINGS = {
    "share": "share of the exposure that the items of the segment get",
    "amplification": "share of exposure / share of the history; above 1 the segment is shown more than it was taken",
    "hhi": "Herfindahl-Hirschman index: sum of the squared shares of exposure of the providers",
    "provider_gini": "Gini index of the shares of exposure of the providers, those without exposure included",
    PAIRS: "mean Jaccard overlap of the lists of the given pairs of users",
}
OF_STEPS = {
    "exposure shift": "Jensen-Shannon divergence (base 2) of the exposure of items in the two logs, 0 to 1",
    "overlap": "mean Jaccard overlap of a user's two lists, over users with a list in both",
    "rbo": "mean rank-biased overlap of a user's two lists, over users with a list in both",
}


# Tables


def printed(logs: Sequence[DriftLog], of_steps: Sequence[DriftStep], of_trends: Mapping[str, Trend]) -> list[Table]:
    """Return the tables of `repr`, split so that each fits 80 columns."""
    return [part for table in whole(logs, of_steps, of_trends) for part in _split(table)]


def whole(logs: Sequence[DriftLog], of_steps: Sequence[DriftStep], of_trends: Mapping[str, Trend]) -> list[Table]:
    """Return the tables for terminals: levels, changes with *, trends if there are any."""
    columns = list(of_trends)
    heads = [column.rpartition("@")[0] for column in columns]
    rows = [
        [log.log, shown_count(log.users), *(one_figure(log.levels[column].mean) for column in columns)] for log in logs
    ]
    changes = [
        [_name(step), *_own_cells(step), *(_marked(step.changes[column]) for column in columns)] for step in of_steps
    ]
    tables = [Table("", ["log", "users", *heads], rows), Table("", ["step", "users", *OWN, *heads], changes)]
    if any(math.isfinite(trend.slope) for trend in of_trends.values()):
        tables.append(trends(of_trends)._replace(title=""))
    return tables


def _split(table: Table) -> Iterator[Table]:
    """Yield tables of the first column and as many others as fit."""
    widths = [max(map(len, column)) + 2 for column in zip(*table.texts(), strict=True)]
    part, used = [0], widths[0] - 2
    for at in range(1, len(widths)):
        if used + widths[at] > WIDTH and len(part) > 1:
            yield _columns(table, part)
            part, used = [0], widths[0] - 2
        part.append(at)
        used += widths[at]
    yield _columns(table, part)


def _columns(table: Table, places: Sequence[int]) -> Table:
    rows = [[row[at] for at in places] for row in table.rows]
    return table._replace(head=[table.head[at] for at in places], rows=rows)


def _name(step: DriftStep) -> str:
    return f"{step.before} to {step.log}"


def _own_cells(step: DriftStep) -> list[str]:
    numbers = step.exposure_shift, step.overlap.mean, step.rbo.mean
    return [shown_count(step.users), *map(one_figure, numbers)]


def _marked(change: Estimate) -> str:
    """Return a change, with * if its interval excludes 0."""
    low, high = change.interval()
    return shown_difference(Gap(change.mean, low, high))[0] + ("*" if low > 0 or high < 0 else " ")


def levels(logs: Sequence[DriftLog]) -> Table:
    """Return the table of levels with their margins, a row per log."""
    columns = list(logs[0].levels)
    cells = with_intervals([log.levels[column] for column in columns] for log in logs)
    rows = [[log.log, shown_count(log.users), *row] for log, row in zip(logs, cells, strict=True)]
    return Table("Levels, with 95 % intervals", ["log", "users", *columns], rows, n_narrow=3)


def steps(of_steps: Sequence[DriftStep]) -> list[Table]:
    """Return the tables of steps: consecutive lists, and changes of all levels with their intervals."""
    cells = with_intervals((step.overlap, step.rbo) for step in of_steps)
    rows = [
        [_name(step), shown_count(step.users), one_figure(step.exposure_shift), *row]
        for step, row in zip(of_steps, cells, strict=True)
    ]
    columns = list(of_steps[0].changes)
    changes = [[_name(step), *(_change(step.changes[column]) for column in columns)] for step in of_steps]
    return [
        Table("Consecutive lists, with 95 % intervals", ["step", "users in both", *OWN], rows, n_narrow=3),
        Table("Changes, with 95 % intervals", ["step", *columns], changes, n_narrow=2),
    ]


def _change(change: Estimate) -> str:
    text, interval = shown_difference(Gap(change.mean, *change.interval()))
    return text if interval == DASH else f"{text} ({interval})"


def trends(of_trends: Mapping[str, Trend]) -> Table:
    """Return the table of trends."""
    rows = [[column, *_slope(trend), shown_count(trend.logs)] for column, trend in of_trends.items()]
    return Table("Trends", ["trend", "slope per log", "standard error", "logs"], rows, n_narrow=3)


def _slope(trend: Trend) -> tuple[str, str]:
    end = trend.estimate.interval()
    return shown_difference(Gap(trend.slope, *end))[0], figures(max(map(abs, end)), trend.std_error)[0]


def shares(rows: Sequence[Share]) -> list[Table]:
    """Return a table of shares for each column of items: a row per label, in the order of the last log's shares."""
    tables = []
    for name in dict.fromkeys(row.column for row in rows):
        own = [row for row in rows if row.column == name]
        logs = list(dict.fromkeys(row.log for row in own))
        found = {(row.log, row.label): row for row in own}
        labels = sorted(dict.fromkeys(row.label for row in own), key=lambda label: -found[logs[-1], label].share)
        past = [] if math.isnan(own[0].history_share) else ["history"]
        title = f"Shares of exposure by {name}"
        if len(labels) > MAX_SHARES:
            title = f"{title}: the {MAX_SHARES:,} largest of {len(labels):,}"
        body = [
            [
                str(label),
                *(one_figure(found[logs[0], label].history_share) for _ in past),
                *(one_figure(found[log, label].share) for log in logs),
            ]
            for label in labels[:MAX_SHARES]
        ]
        tables.append(Table(title, [name, *past, *logs], body))
    return tables


# Notes


def notes(logs: Sequence[DriftLog], of_trends: Mapping[str, Trend], settings: Mapping[str, Any]) -> list[str]:
    """Return lines on what the numbers are."""
    columns = [metric_of(column) for column in of_trends]
    lines = [f"the first {settings['k']} items of each list"]
    if paired := [name for name in OF_USERS if name in columns]:
        lines.append(f"changes of {', '.join(paired)} pair the users of both logs; others are those of the levels")
    if "gini" not in columns:
        lines.append("no gini and no share of the catalogue: they need its size, from n_items or items")
    if len(logs) < MIN_LOGS:
        lines.append("no trend: two points have a slope without an error; three logs or more have both")
    elif of_trends:
        lines.append("trend: least squares, weighted by 1 / error^2 where all levels have an error")
    return [*lines, "falling numbers may be the season: only random lists tell exposure from taste"]


# A page


def pages(logs: Sequence[DriftLog], of_steps: Sequence[DriftStep]) -> tuple[list[Chart], list[Chart]]:
    """Return a chart of each column over the logs, and of each column that only steps have."""
    names = [_short(log.log) for log in logs]
    over_logs = [_chart(column, names, "log", [log.levels[column] for log in logs]) for column in logs[0].levels]
    own = {
        "exposure shift": [Estimate(step.exposure_shift, math.nan, 0) for step in of_steps],
        "overlap": [step.overlap for step in of_steps],
        "rbo": [step.rbo for step in of_steps],
    }
    to = names[1:]
    return over_logs, [_chart(f"{name}, from the log before", to, "log", found) for name, found in own.items()]


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _chart(title: str, names: Sequence[str], below: str, found: Iterable[Estimate]) -> Chart:
    points = [(one.mean, *one.interval()) for one in found]
    return Chart(title, line_chart(title, names, points, below))


def definitions_of(columns: Iterable[str], k: int) -> list[Table]:
    """Return tables that define the columns: metrics of fastrec, and those of drift."""
    known = [column for column in columns if known_call(column) is not None]
    rows = [[column, MEANINGS[metric_of(column)]] for column in columns if column not in known]
    rows += [[f"{name}@{k}", meaning] for name, meaning in OF_STEPS.items()]
    return [definitions(known), Table("Columns of a drift", ["column", "what it is"], rows, 2)]

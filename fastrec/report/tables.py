"""Tables and charts of a report: metrics, cut-offs, groups, values of users, counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import counted
from fastrec.metrics.declaration import LISTS
from fastrec.report.definitions import known_call
from fastrec.report.doubts import describe_one_class
from fastrec.report.plain import group_rows, rows_of
from fastrec.report.plans import known_calls, values_of_settings, with_effects_of_settings
from fastrec.show.numbers import (
    DASH,
    Gap,
    one_figure,
    rate,
    share,
    shown_count,
    shown_difference,
    span,
)
from fastrec.show.tables import Chart, Drawn, Section, Table

if TYPE_CHECKING:
    from fastrec.report.values import ReportValues

Array = np.ndarray[Any, Any]
Row = Mapping[str, Any]  # of `Report.to_rows`
BINS = 20
MAX_NAMED = 6  # rows in a note
HEAD = ["metric", "mean", "95 % interval", "users"]
FEW_USERS = "too few users are counted in the group or outside"
OF_GROUPS = [*HEAD, "difference to the rest", "its 95 % interval"]
NO_VALUES_OF_USERS = "a number of all lists together, so it has effects of lists and no values of users"
NO_VARIANCE = "users or rows without variance do not show how far the mean is from the true one"
NOT_REVIEWED = "the standard error needs the lists a second time, which batches do not give"
OF_USERS = "over users, whose rows count together (clustered)"
OF_ROWS = "rows are taken as independent"
QUANTILES = {"lowest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "highest": 1.0}
DATA = {
    "rec_rows": "rows of lists",
    "rec_rows_by_rank": "rows of lists ordered by ranks",
    "rec_rows_by_score": "rows of lists ordered by scores",
    "rec_rows_by_place": "rows of lists in the order of the rows",
    "rec_lists_with_gaps": "lists with gaps in their ranks",
    "truth_rows": "rows of truth",
    "truth_rows_with_gains": "rows of truth with gains",
    "truth_rows_not_relevant": "rows of truth that are not relevant",
    "truth_rows_in_history": "rows of truth with an item of the history",
    "truth_rows_in_exclude": "rows of truth with an item of exclude",
    "longest_list": "items of the longest list, fewer than the largest cut-off",
    "truth_rows_not_scored": "rows of truth with an item that the model does not score",
    "exclude_rows_not_scored": "rows of exclude with an item that the model does not score",
    "duplicates_in_recs": "duplicates in lists",
    "duplicates_in_truth": "duplicates in truth",
    "duplicates_in_reference": "duplicates in reference lists",
    "excluded_items": "items removed by exclude",
    "rec_rows_unseen": "rows of lists whose item has no popularity",
    "rec_rows_without_features": "rows of lists whose item has no category or vector",
    "users_without_history": "users without a history",
    "users_without_subtopics": "users with relevant items that cover no subtopic",
    "users_short_of_negatives": "users with fewer items left than negatives asks for, who get all of them",
    "effective_sample_size": "effective sample size of the weighted clicks",
    "largest_weight_share": "largest weight of a click, of the sum of weights",
    "clipped_rows": "clicks with a propensity below clip",
    "truth_users_with_recs": "users with truth who have a list",
    "truth_items_in_recs": "relevant items that are in the lists",
    "rows": "rows",
    "positive_rows": "positive rows",
    "rows_in_no_segment": "rows in no segment",
}
NOTED = {  # counts below printed reports, if they are not 0, and their names for a count of 1
    "truth_rows_not_relevant": "row of truth that is not relevant",
    "truth_rows_not_scored": "row of truth with an item that the model does not score",
    "exclude_rows_not_scored": "row of exclude with an item that the model does not score",
    "duplicates_in_recs": "duplicate in lists",
    "duplicates_in_truth": "duplicate in truth",
    "duplicates_in_reference": "duplicate in reference lists",
    "excluded_items": "item removed by exclude",
    "rec_rows_unseen": "row of lists whose item has no popularity",
    "rec_rows_without_features": "row of lists whose item has no category or vector",
    "users_without_history": "user without a history",
    "users_without_subtopics": "user with relevant items that cover no subtopic",
    "users_short_of_negatives": "user with fewer items left than negatives asks for, who gets all of them",
}
MEANS = (  # count of rows, label of their mean per user, count of users without rows
    ("rec_rows", "mean length of the lists", "no_recs"),
    ("rows", "mean number of rows per user", "no_rows"),
)


# Estimates


def estimated(report: ReportValues) -> Table:
    """Return the table of estimates over all users; of rows without users it has no number of users."""
    head = HEAD if report.users["total"] else HEAD[:-1]
    return Table("", head, [_estimate(row)[: len(head)] for row in rows_of(report.estimates)])


def group_tables(report: ReportValues) -> list[Table]:
    """Return a table for each grouping: estimates in groups with counted users, and the difference to all others."""
    tables = []
    for grouping, by_label in report.groups.items():
        rows = [row for label, own in by_label.items() for row in group_rows(grouping, label, own)]
        rows = [row for row in rows if row["users"] or not report.users["total"]]
        gaps = [Gap(row["difference"], row["difference_low"], row["difference_high"]) for row in rows]
        scales = scales_of(zip((row["metric"] for row in rows), gaps, strict=True))
        cells = [
            [str(row["group"]), *_estimate(row), *_drawn(gap, scales[row["metric"]])]
            for row, gap in zip(rows, gaps, strict=True)
        ]
        unknown = [row["metric"] for row, gap in zip(rows, gaps, strict=True) if math.isnan(gap.low)]
        head, notes = OF_GROUPS, [*_no_rest(report, unknown), *size_of_groups(report)]
        if grouping in report.row_groupings:  # the users of a segment are among those of others
            head = HEAD if report.users["total"] else HEAD[:-1]
            cells, notes = [row[: 1 + len(head)] for row in cells], in_several(report, [grouping])
        doubts = ((one.note, f"{name} of {label}") for label, own in by_label.items() for name, one in own.items())
        tables.append(Table(f"By {grouping}", [grouping, *head], cells, 2, [*notes, *lines_of_notes(doubts)]))
    return tables


def in_several(report: ReportValues, groupings: Iterable[str]) -> list[str]:
    """Return a line on the groupings of rows, if there are any."""
    names = ", ".join(name for name in groupings if name in report.row_groupings)
    if not names:
        return []
    found = [f"segments of rows by {names}{'; a user may be in several' if report.users['total'] else ''}"]
    lists = [name for name in report.estimates if (call := known_call(name)) and call.metric.family is LISTS]
    if lists:
        found.append(f"{', '.join(lists)} in a segment: of a user's rows there, in shorter lists than over all")
    return found


def _estimate(row: Row) -> list[str]:
    mean, low, high = row["mean"], row["low"], row["high"]
    return [row["metric"], one_figure(mean, high - low), span(mean, low, high), shown_count(row["users"])]


def _no_rest(report: ReportValues, metrics: Iterable[str]) -> list[str]:
    """Return notes on metrics without a difference to the rest, a line per reason."""
    calls = known_calls(dict.fromkeys(metrics))
    values = values_of_settings(calls, report.settings)
    reasons: dict[str, dict[str, None]] = {}
    for metric in metrics:
        reason = FEW_USERS
        if metric not in values:
            reason = f"{FEW_USERS}, or the metric is no mean over users"
        elif values[metric].over is not None:
            reason = "no mean over users" if calls[metric].metric.family is LISTS else "needs the order of all rows"
        reasons.setdefault(reason, {})[metric] = None
    return [f"{DASH} of {', '.join(names)}: {reason}" for reason, names in reasons.items()]


def size_of_groups(report: ReportValues) -> list[str]:
    """Return a line on the metrics that differ between groups of different sizes, if there are groups."""
    calls = known_calls(report.estimates if report.groups else ())
    values = values_of_settings(calls, report.settings)
    names = [name for name, value in values.items() if value.over is not None and value.over.by_size]
    verb = "depends" if len(names) == 1 else "depend"
    return [f"{', '.join(names)} {verb} on the number of users of a group"] if names else []


def scales_of(gaps: Iterable[tuple[str, Gap]]) -> dict[str, float]:
    """Return the largest absolute end of an interval for each metric."""
    found: dict[str, float] = {}
    for metric, gap in gaps:
        ends = [abs(end) for end in (gap.low, gap.high) if not math.isnan(end)]
        found[metric] = max([found.get(metric, 0.0), *ends])
    return found


def _drawn(gap: Gap, scale: float) -> list[str | Drawn]:
    """Return a difference, and its interval with a picture."""
    from fastrec.show.charts import whisker

    text, interval = shown_difference(gap)
    return [text, Drawn(interval, whisker(gap.low, gap.difference, gap.high, scale))]


def cutoff_families(rows: Iterable[Row]) -> dict[str, list[tuple[int, Row]]]:
    """Return rows of metrics that differ only in their cut-off, as (k, row), ascending."""
    families: dict[str, list[tuple[int, Row]]] = {}
    for row in rows:
        family, mark, k = row["metric"].rpartition("@")
        if mark and k.isdigit():
            families.setdefault(family, []).append((int(k), row))
    return {name: sorted(own, key=lambda pair: pair[0]) for name, own in families.items() if len(own) > 1}


def distributions(report: ReportValues) -> Section:
    """Return a histogram and quantiles of users' values for each metric; of numbers of all lists users have none."""
    from fastrec.show.charts import histogram

    charts, cells = [], []
    effects = with_effects_of_settings(known_calls(report.per_user), report.settings)
    lines = (
        [f"{', '.join(name for name in report.per_user if name in effects)}: {NO_VALUES_OF_USERS}"] if effects else []
    )
    for metric, values in report.per_user.items():
        if metric in effects:
            continue
        known = values[np.isfinite(values)]
        if not len(known):
            continue
        low, high = _bounds(metric, known)
        counts = np.histogram(known, bins=BINS, range=(low, high))[0]
        title = f"{metric}: {counted(len(known), 'user')} by value"
        charts.append(Chart(title, histogram(title, counts.tolist(), f"{low:g}", f"{high:.4g}")))
        quantiles = [one_figure(value) for value in np.quantile(known, list(QUANTILES.values())).tolist()]
        cells.append([metric, shown_count(len(known)), share(float(np.mean(known == 0))), *quantiles])
    head = ["metric", "users", "at 0", *QUANTILES]
    tables = [Table("Values of users", head, cells, n_narrow=4)] if cells else []
    folded = "Show histograms and quantiles" if cells else ""
    return Section("Distribution over users", tables, charts, lines, folded)


def _bounds(metric: str, known: Array) -> tuple[float, float]:
    """Return the ends of a histogram: 0 and 1 if the metric has this range."""
    call = known_call(metric)
    if call is not None and list(call.metric.range) == [0, 1]:
        return min(0.0, float(known.min())), max(1.0, float(known.max()))  # estimates may lie outside
    low, high = min(0.0, float(known.min())), float(known.max())
    return low, high if high > low else low + 1.0


# Counts


def count_tables(
    users: Mapping[str, int], meanings: Sequence[tuple[str, str, str]], data: Mapping[str, int | float]
) -> list[Table]:
    """Return tables of the users, by (count, meaning, policy), and of the data."""
    cells = [[meaning, policy, shown_count(users[name])] for name, meaning, policy in meanings if name in users]
    seen = [
        [_named(name), _as_written(name)(value) if isinstance(value, float) else shown_count(value)]
        for name, value in data.items()
    ]
    for rows, meaning, without in MEANS:
        if rows in data and (n := users["total"] - users.get(without, 0)):
            seen.append([meaning, rate(data[rows] / n)])
    nobody = "rows" in data and not users["total"]
    who = [] if nobody else [Table("Users", ["users", "policy", "number"], cells, 2)]
    return [*who, Table("Data", ["what", "number"], seen)]


def _named(name: str) -> str:
    """Return what an entry of the data says, with the options of metrics in its name."""
    kind, bracket, options = name.partition("(")
    return f"{DATA.get(kind, kind)}{bracket and ' ('}{options}"


def _as_written(name: str) -> Callable[[float], str]:
    """Return how to write an entry of the data that is no count."""
    return rate if name.startswith("effective_sample_size") else share


def notes_on_data(data: Mapping[str, int | float]) -> list[str]:
    """Return lines on the rows and users that were left out or lack something, and on the weights of rows, if any."""
    found = [counted(int(data[name]), one, DATA[name]) for name, one in NOTED.items() if data.get(name)]
    lines = [", ".join(found)] if found else []
    if "longest_list" in data:
        lines.append(f"the longest list has {counted(int(data['longest_list']), 'item')}: places after it are misses")
    for name, size in data.items():
        kind, bracket, options = name.partition("(")
        if kind == "rows_in_no_segment":
            lines.append(f"{counted(int(size), 'row')} without a value of {options[:-1]}: in no segment")
        if kind == "effective_sample_size":
            largest = share(data[f"largest_weight_share{bracket}{options}"])
            what = f"{bracket}{options} " if bracket else ""
            lines.append(f"{what}effective sample size {rate(size)}, largest weight {largest} of their sum")
    return lines


def order_of_lists(data: Mapping[str, int | float]) -> list[str]:
    """Return a line on the order of lists and the source of gains; nothing for lists passed in order."""
    words = {"rank": "ranks", "score": "scores", "place": "rows"}
    orders = [word for role, word in words.items() if data.get(f"rec_rows_by_{role}")]
    if not orders:
        return []
    given, rows = data.get("truth_rows_with_gains", 0), data["truth_rows"]
    gains = f"gains given in {given:,} of {rows:,} rows" if given else "all gains 1"
    if 0 < given == rows:
        gains = "gains as given"
    return [f"lists in the order of their {' and '.join(orders)}{f'; {gains}' if rows else ''}"]


def about_intervals(report: ReportValues) -> list[str]:
    """Return lines on the intervals of a report: what they take as independent, why some are missing, and notes."""
    notes = lines_of_notes((one.note, name) for name, one in report.estimates.items())
    return [*_units_of_intervals(report), *_why_no_interval(report), *notes]


def lines_of_notes(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line per note, from pairs of a note, which may be empty, and the name of a row."""
    names: dict[str, list[str]] = {}
    for note, name in pairs:
        names.setdefault(note, []).append(name)
    return [
        f"{', '.join(own[:MAX_NAMED])}{' and others' if len(own) > MAX_NAMED else ''}: {note}"
        for note, own in names.items()
        if note
    ]


def _why_no_interval(report: ReportValues) -> list[str]:
    """Return a line per reason why estimates have no mean, or a mean and no interval."""
    no_mean = [name for name, one in report.estimates.items() if math.isnan(one.mean)]
    one_class = describe_one_class(report.data)
    lines = [f"no value for {', '.join(no_mean)}: {one_class}"] if no_mean and one_class else []
    without = {
        name: one for name, one in report.estimates.items() if math.isfinite(one.mean) and math.isnan(one.interval()[0])
    }
    declared = values_of_settings(known_calls(without), report.settings)
    metrics: dict[str, list[str]] = {}
    for name, one in without.items():
        value = declared.get(name)
        over_rows = None if value is None else value.over
        has_effects = value is not None and value.has_effects
        if one.std_error == 0:
            reason = NO_VARIANCE
        elif over_rows is not None and over_rows.std_error is not None:
            of_users = report.settings.get("units") == "users"
            reason = f"a class has {'rows of fewer than two users' if of_users else 'fewer than two rows'}"
        elif over_rows is None and not report.users["total"]:
            reason = "rows have no users"
        elif (over_rows is None or has_effects) and one.users < 2:
            reason = "only one user is counted"
        elif has_effects:
            reason = NOT_REVIEWED
        else:
            reason = "this metric has no known standard error"
        metrics.setdefault(reason, []).append(name)
    return [*lines, *(f"no interval for {', '.join(names)}: {reason}" for reason, names in metrics.items())]


def _units_of_intervals(report: ReportValues) -> list[str]:
    """Return a line on what the intervals of metrics of the order of all rows take as independent: users or rows."""
    known = {name: one for name, one in report.estimates.items() if math.isfinite(one.std_error)}
    declared = values_of_settings(known_calls(known), report.settings)
    names = [name for name in known if name in declared and declared[name].has_influence]
    if not names or "units" not in report.settings:
        return []
    taken = OF_USERS if report.settings["units"] == "users" else OF_ROWS
    if taken is OF_ROWS and report.users["total"]:
        taken = f"{taken}, as batches do not give the rows a second time"
    return [f"interval{'s' if len(names) > 1 else ''} of {', '.join(names)}: {taken}"]

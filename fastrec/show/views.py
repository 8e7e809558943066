"""What people are shown of a report and of a comparison: tables and charts of plain rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import Call, print_value
from fastrec.show.html import DASH, Chart, Drawn, Section, Table, histogram, line_chart, whisker

__all__ = ["compared", "definitions", "estimated", "figures", "span"]

Array = np.ndarray[Any, Any]
Row = Mapping[str, Any]  # as `to_rows` of a report or of a comparison gives it
BINS = 20
MAX_ROWS = 14_000  # of differences on one page, for it to stay below 3 MB; those over all users count twice
MIN_ROWS = 1_000  # of a grouping, however many there are over all users
OF_GROUPS = ["metric", "mean", "95 % interval", "users", "difference to the rest", "its 95 % interval"]
QUANTILES = {"lowest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "highest": 1.0}
VERDICTS = {"better": "▲ better", "worse": "▼ worse", "not clear": "≈ not clear", None: DASH}
REVERSE: dict[str | None, str] = {"better": "worse", "worse": "better"}
LEGEND = (
    "Verdict: ▲ better, ▼ worse, ≈ not clear. The definitions say which values of a metric are better.",
    "Pictures have a scale for each metric: a line is the interval, the stroke across the difference, behind it 0.",
    "Unpaired: users counted on one side only.",
    "Detectable: the smallest true difference that these users would have shown with a chance of 80 %.",
)
KINDS = {"better": "up", "worse": "down"}
SIGNS: dict[str | None, str] = {"better": " ▲", "worse": " ▼"}
DATA = {
    "rec_rows": "rows of lists",
    "rec_rows_by_rank": "rows of lists ordered by ranks",
    "rec_rows_by_score": "rows of lists ordered by scores",
    "rec_rows_by_place": "rows of lists in the order of the rows",
    "rec_lists_with_gaps": "lists whose ranks have gaps",
    "truth_rows": "rows of truth",
    "truth_rows_with_gains": "rows of truth with gains",
    "truth_rows_not_relevant": "rows of truth that are not relevant",
    "duplicates_in_recs": "duplicates in lists",
    "duplicates_in_truth": "duplicates in truth",
    "excluded_items": "seen items removed",
    "truth_users_with_recs": "users with truth who have a list",
    "truth_items_in_recs": "relevant items that are in the lists",
    "rows": "rows",
    "positive_rows": "positive rows",
}
MEANS = (  # rows, what they are per user, and which users have none
    ("rec_rows", "mean length of the lists", "no_recs"),
    ("rows", "mean number of rows of a user", "no_rows"),
)
SETTINGS = {
    "min_gain": "gain from which an item is relevant",
    "n_items": "items in the catalogue",
    "ties": "order of items with equal scores",
    "no_truth": "users without a relevant item",
    "no_recs": "users without a list",
    "duplicates": "an item twice in a list",
    "one_class": "users with rows of one class, in gauc",
    "weighted": "whether users or rows have weights",
    "like": "conventions of",
    "names": "what that tool calls the metrics",
    "rank_gaps": "ranks that no item has",
    "baseline": "what all others are compared with",
    "test": "test of the mean difference, two-sided, on users",
    "correction": "correction of p-values for many comparisons",
    "level": "level of intervals and of significance",
    "n_rounds": "random rounds of the test",
    "seed": "seed of the random rounds",
    "missing": "users counted on one side only",
}


# Numbers


class Gap(NamedTuple):
    """A difference and its interval."""

    difference: float
    low: float
    high: float


def figures(leading: float, *numbers: float) -> list[str]:
    """Numbers with four decimals or, where these would hide the leading one, with four digits."""
    plain = leading == 0 or 1e-3 <= abs(leading) < 1e6
    return [DASH if math.isnan(number) else f"{number:z.4f}" if plain else f"{number:z.3e}" for number in numbers]


def span(leading: float, low: float, high: float) -> str:
    """An interval, in the form of its leading number."""
    texts = figures(leading, low, high)
    return DASH if DASH in texts else f"{texts[0]} {DASH} {texts[1]}"


def one_figure(number: float) -> str:
    """A number with four decimals, or with four digits where these would hide it."""
    return figures(number, number)[0]


def _signed(leading: float, *numbers: float) -> list[str]:
    texts = zip(numbers, figures(leading, *numbers), strict=True)
    return [f"+{text}" if number > 0 and float(text) != 0 else text for number, text in texts]


def shown_difference(gap: Gap) -> tuple[str, str]:
    """A difference and its interval; four decimals unless they would hide the interval."""
    leading = gap.difference if math.isnan(gap.low) else max(abs(gap.low), abs(gap.high))
    text, *ends = _signed(leading, *gap)
    return text, DASH if DASH in ends else f"{ends[0]} to {ends[1]}"


def p_value(number: float) -> str:
    """Four decimals, or two digits of one that these would show as 0."""
    return DASH if math.isnan(number) else f"{number:.1e}" if 0 < number < 5e-5 else f"{number:.4f}"


def count(number: int | None) -> str:
    """A number of users, where there is one."""
    return DASH if number is None else f"{number:,}"


def _share(number: float) -> str:
    return DASH if math.isnan(number) else f"{100 * number:.1f} %"


def _shown(value: object) -> str:
    """The value of a setting."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} is {text}" for name, text in value.items())
    return "not given" if value is None else print_value(value)


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """Warnings as people are shown them, a line each."""
    return [f"warning: {warning}" for warning in warnings]


# A report


def estimated(rows: Iterable[Row], *, with_users: bool = True) -> list[Table]:
    """Estimates as tables: over all users, then within groups of whom some were counted.

    `with_users` is False where rows belong to nobody.
    """
    head = ["metric", "mean", "95 % interval", *(["users"] if with_users else [])]
    overall, by_grouping = _by_grouping(rows)
    tables = [
        Table(
            f"Metrics over all {'users' if with_users else 'rows'}",
            head,
            [_estimate(row)[: len(head)] for row in overall],
        )
    ]
    for grouping, own in by_grouping.items():
        cells = [[str(row["group"]), *_estimate(row), *shown_difference(_rest_gap(row))] for row in own if row["users"]]
        tables.append(Table(f"Metrics by {grouping}", [grouping, *OF_GROUPS], cells, 2))
    return tables


def by_cutoff(rows: Iterable[Row]) -> Section:
    """A chart and rows for each metric that was evaluated at several cut-offs."""
    charts, cells = [], []
    for name, own in cutoff_families(_by_grouping(rows)[0]).items():
        points = [(row["mean"], row["low"], row["high"]) for _, row in own]
        title = f"{name} at cut-offs k, with 95 % intervals"
        charts.append(Chart(title, line_chart(title, [str(k) for k, _ in own], points)))
        cells += [[name, str(k), *_estimate(row)[1:]] for k, row in own]
    head = ["metric", "k", "mean", "95 % interval", "users"]
    return Section("Metric against cut-off", [Table("Metrics at cut-offs", head, cells)] if cells else [], charts)


def cutoff_families(rows: Iterable[Row]) -> dict[str, list[tuple[int, Row]]]:
    """Rows of metrics that differ in their cut-off only, as (k, row), ascending."""
    families: dict[str, list[tuple[int, Row]]] = {}
    for row in rows:
        family, mark, k = row["metric"].rpartition("@")
        if mark and k.isdigit():
            families.setdefault(family, []).append((int(k), row))
    return {name: sorted(own, key=lambda pair: pair[0]) for name, own in families.items() if len(own) > 1}


def distributions(per_user: Mapping[str, Array]) -> Section:
    """A histogram and quantiles of users' values, metric by metric."""
    charts, cells = [], []
    for metric, values in per_user.items():
        known = values[np.isfinite(values)]
        if not len(known):
            continue
        low, high = _bounds(metric, known)
        counts = np.histogram(known, bins=BINS, range=(low, high))[0]
        title = f"{metric}: {len(known):,} users by their value"
        charts.append(Chart(title, histogram(title, counts.tolist(), f"{low:g}", f"{high:.4g}")))
        quantiles = [one_figure(value) for value in np.quantile(known, list(QUANTILES.values())).tolist()]
        cells.append([metric, f"{len(known):,}", _share(float(np.mean(known == 0))), *quantiles])
    head = ["metric", "users", "at 0", *QUANTILES]
    return Section("Distribution over users", [Table("Values of users", head, cells)] if cells else [], charts)


def _bounds(metric: str, known: Array) -> tuple[float, float]:
    """From where to where a histogram goes: from 0 to 1 if the metric does."""
    call = known_call(metric)
    if call is not None and list(call.metric.range) == [0, 1]:
        return 0.0, 1.0
    low, high = min(0.0, float(known.min())), float(known.max())
    return low, high if high > low else low + 1.0


def by_group(rows: Iterable[Row]) -> Section:
    """Estimates within groups of whom some were counted, and how far each group is from all other users."""
    tables = []
    for grouping, found in _by_grouping(rows)[1].items():
        own = [row for row in found if row["users"]]
        gaps = [_rest_gap(row) for row in own]
        scales = _scales(zip((row["metric"] for row in own), gaps, strict=True))
        cells = [
            [str(row["group"]), *_estimate(row), *_drawn(gap, scales[row["metric"]])]
            for row, gap in zip(own, gaps, strict=True)
        ]
        tables.append(Table(f"By {grouping}", [grouping, *OF_GROUPS], cells, 2, _no_rest(gaps)))
    return Section("Segments", tables)


def _rest_gap(row: Row) -> Gap:
    return Gap(row["difference"], row["difference_low"], row["difference_high"])


def _no_rest(gaps: Iterable[Gap]) -> list[str]:
    """What it means where a difference to the rest is not shown."""
    unknown = any(math.isnan(gap.low) for gap in gaps)
    return [f"{DASH}: too few users are counted, here or elsewhere, or the order of all rows is needed"] * unknown


def facts(
    users: Mapping[str, int], meanings: Sequence[tuple[str, str, str]], data: Mapping[str, int | float]
) -> list[Table]:
    """Who was counted, by (count of users, what it means, policy), and what was seen in the data."""
    cells = [[meaning, policy, f"{users[count]:,}"] for count, meaning, policy in meanings if count in users]
    seen = [
        [DATA.get(name, name), _share(value) if isinstance(value, float) else f"{value:,}"]
        for name, value in data.items()
    ]
    for rows, meaning, without in MEANS:
        if rows in data and (n := users["total"] - users.get(without, 0)):
            seen.append([meaning, f"{data[rows] / n:.4f}"])
    nobody = "rows" in data and not users["total"]
    who = [] if nobody else [Table("Users", ["users", "policy", "number"], cells, 2)]
    return [*who, Table("Data", ["what", "number"], seen)]


def order_of_lists(data: Mapping[str, int | float]) -> list[str]:
    """What ordered the lists and where gains came from, a line; nothing of lists that were passed in their order."""
    words = {"rank": "ranks", "score": "scores", "place": "rows"}
    orders = [word for role, word in words.items() if data.get(f"rec_rows_by_{role}")]
    if not orders:
        return []
    given, rows = data.get("truth_rows_with_gains", 0), data["truth_rows"]
    gains = f"gains given in {given:,} of {rows:,} rows" if given else "all gains 1"
    if 0 < given == rows:
        gains = "gains as given"
    return [f"lists in the order of their {' and '.join(orders)}; {gains}"]


def why_no_interval(estimates: Mapping[str, Any], n_users: int) -> list[str]:
    """Why estimates have a mean and no interval, a line for each reason.

    `n_users` is 0 where rows belong to nobody.
    """
    metrics: dict[str, list[str]] = {}
    for name, one in estimates.items():
        if math.isfinite(one.mean) and math.isnan(one.std_error):
            reason = "no standard error is known for such a number"
            if one.users < 2:
                reason = "only one user is counted" if n_users else "rows without users, or few of a class, give none"
            metrics.setdefault(reason, []).append(name)
    return [f"no interval for {', '.join(names)}: {reason}" for reason, names in metrics.items()]


def definitions(metrics: Iterable[str]) -> Table:
    """What each metric is, as the catalogue says it; its cut-offs together."""
    cutoffs: dict[str, list[str]] = {}
    for text in metrics:
        family, mark, k = text.rpartition("@")
        cutoffs.setdefault(f"{family}@" if mark else text, []).extend([k] if mark else [])
    rows = [[f"{name}{', '.join(k)}", *_definition(name.removesuffix("@"))] for name, k in cutoffs.items()]
    head = ["metric", "what it is", "formula, of the default options", "options", "better", "source"]
    return Table("Definitions of the metrics", head, rows, len(head))


def _definition(text: str) -> list[str]:
    call = known_call(text)
    if call is None:
        return ["declared elsewhere", *[DASH] * 4]
    own = call.metric
    options = [*call.options, *((option.name, getattr(call, option.name)) for option in own.common)]
    given = ", ".join(f"{name}={print_value(value)}" for name, value in options if value is not None)
    better = own.direction.words
    return [own.summary.replace("`", ""), own.expression or DASH, given or DASH, better, own.source or DASH]


def settings_table(settings: Mapping[str, object]) -> Table:
    """The options of a call in words."""
    rows = [[name, SETTINGS.get(name, DASH), _shown(value)] for name, value in settings.items()]
    return Table("Settings", ["setting", "what it decides", "value"], rows, 3)


def _by_grouping(rows: Iterable[Row]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Rows over all users, and those of each grouping."""
    overall: list[Row] = []
    by_grouping: dict[str, list[Row]] = {}
    for row in rows:
        grouping = row.get("grouping")
        (overall if grouping is None else by_grouping.setdefault(grouping, [])).append(row)
    return overall, by_grouping


def _estimate(row: Row) -> list[str]:
    mean = row["mean"]
    return [row["metric"], *figures(mean, mean), span(mean, row["low"], row["high"]), f"{row['users']:,}"]


def known_call(text: str) -> Call | None:
    """The metric of a text; None for one that was declared elsewhere, as in a report that was loaded."""
    try:
        return parse(text)
    except MetricError:
        return None


# A comparison


def compared(rows: Iterable[Row], level: float) -> list[Table]:
    """Differences as tables, over all users and by segment; * marks those whose corrected p is at most 1 - level."""
    overall, by_grouping = _by_grouping(rows)
    names = ["metric", "system", "baseline"]
    head = ["mean", "baseline mean", "difference", f"{100 * level:g} % interval", "p", "p corrected"]
    head += ["wins", "ties", "losses", "users"]
    tables = [Table("Differences", [*names, *head], [_compared(row, level) for row in overall], 3)]
    for grouping, own in by_grouping.items():
        cells = [[str(row["group"]), *_compared(row, level)] for row in own]
        tables.append(Table(f"Differences by {grouping}", [grouping, *names, *head], cells, 4))
    return tables


def _compared(row: Row, level: float) -> list[str]:
    mark = "*" if _is_significant(row, level) else ""
    means = [one_figure(row[name]) for name in ("mean", "baseline_mean")]
    numbers = [*shown_difference(_gap(row)), p_value(row["p_value"])]
    counts = [count(row[name]) for name in ("wins", "ties", "losses", "users")]
    names = [row[name] for name in ("metric", "system", "baseline")]
    return [*names, *means, *numbers, f"{p_value(row['p_corrected'])}{mark}", *counts]


def alpha(level: float) -> float:
    """The p-value up to which a difference is significant: 1 - level, but for rounding."""
    return round(1 - level, 12)


def meaning_of_mark(level: float) -> str:
    """What * says beside a p-value or a difference."""
    return f"significant (*): a corrected p-value of at most {alpha(level):.4g}"


def _is_significant(row: Row, level: float) -> bool:
    return bool(row["p_corrected"] <= alpha(level))


def outcome(rows: Iterable[Row], level: float) -> str:
    """What a comparison found over all users, in two sentences."""
    overall = _by_grouping(rows)[0]
    verdicts = [row["verdict"] for row in overall]
    better, worse, unclear, none = map(verdicts.count, ("better", "worse", "not clear", None))
    words = f"{len(overall):,} comparison{'s' if len(overall) > 1 else ''} over all users"
    without = f"; {none:,} has no verdict" if none == 1 else f"; {none:,} have no verdict" if none else ""
    return (
        f"{words}: the system is better in {better:,}, worse in {worse:,}, and in {unclear:,} no difference is clear"
        f"{without}. Better and worse are said where the corrected p-value is at most {1 - level:.4g}."
    )


def differences(rows: Iterable[Row], level: float, baseline: str | None) -> tuple[Section, Section]:
    """All differences with drawn intervals, and those within segments."""
    overall, by_grouping = _by_grouping(rows)
    names = ["metric", "system", *(["baseline"] if baseline is None else [])]
    title = "Differences" if baseline is None else f"Differences to {baseline}"
    head = [*names, "verdict", "difference", f"{100 * level:g} % interval", "p corrected"]
    more = ["p", "mean", "baseline mean", "wins", "ties", "losses", "users", "unpaired", "detectable"]
    scales = _scales((row["metric"], _gap(row)) for row in overall)
    cells = [_full_row(row, scales[row["metric"]], names) for row in overall]
    table = Table(title, [*head, *more], cells, len(names) + 1, LEGEND)
    tables = []
    most = max(MIN_ROWS, (MAX_ROWS - 2 * len(overall)) // max(1, len(by_grouping)))
    for grouping, own in by_grouping.items():
        caption, kept = f"{title} by {grouping}", [row for row in own if row["users"]]
        if len(kept) > most:
            kept = sorted(kept, key=lambda row: (math.isnan(row["p_corrected"]), row["p_corrected"]))[:most]
            caption = f"{caption}: the {most:,} with the smallest corrected p-value, of {len(own):,}"
        scales = _scales((row["metric"], _gap(row)) for row in own)
        cells = [[str(row["group"]), *_short_row(row, scales[row["metric"]], names)] for row in kept]
        tables.append(Table(caption, [grouping, *head, "users"], cells, len(names) + 2))
    return Section("Differences over all users", [table]), Section("Segments", tables)


def _scales(gaps: Iterable[tuple[str, Gap]]) -> dict[str, float]:
    """The largest end of an interval of each metric."""
    found: dict[str, float] = {}
    for metric, gap in gaps:
        ends = [abs(end) for end in (gap.low, gap.high) if not math.isnan(end)]
        found[metric] = max([found.get(metric, 0.0), *ends])
    return found


def _gap(row: Row) -> Gap:
    return Gap(row["difference"], row["low"], row["high"])


def _drawn(gap: Gap, scale: float, kind: str = "") -> list[str | Drawn]:
    """A difference, and its interval with a picture."""
    text, interval = shown_difference(gap)
    return [text, Drawn(interval, whisker(gap.low, gap.difference, gap.high, scale, kind))]


def _short_row(row: Row, scale: float, names: Sequence[str]) -> list[str | Drawn]:
    verdict = row["verdict"]
    numbers = [*_drawn(_gap(row), scale, KINDS.get(verdict, "")), p_value(row["p_corrected"]), f"{row['users']:,}"]
    return [*(row[name] for name in names), VERDICTS[verdict], *numbers]


def _full_row(row: Row, scale: float, names: Sequence[str]) -> list[str | Drawn]:
    *short, users = _short_row(row, scale, names)
    more = [p_value(row["p_value"]), *map(one_figure, (row["mean"], row["baseline_mean"]))]
    counts = [count(row[name]) for name in ("wins", "ties", "losses")]
    return [*short, *more, *counts, users, f"{row['unpaired']:,}", one_figure(row["detectable"])]


def matrices(rows: Iterable[Row]) -> Section:
    """For each metric a table of every system against every other: the row's mean minus the column's."""
    overall = _by_grouping(rows)[0]
    systems = list(dict.fromkeys(name for row in overall for name in (row["baseline"], row["system"])))
    found: dict[str, dict[tuple[str, str], str]] = {}
    for row in overall:
        own = found.setdefault(row["metric"], {})
        verdict = row["verdict"]
        reverse = REVERSE.get(verdict)
        gap, system, baseline = _gap(row), row["system"], row["baseline"]
        own[system, baseline] = shown_difference(gap)[0] + SIGNS.get(verdict, "")
        own[baseline, system] = shown_difference(Gap(-gap.difference, -gap.high, -gap.low))[0] + SIGNS.get(reverse, "")
    tables = [
        Table(
            f"{metric}: row minus column; ▲ the row is better, ▼ worse, no mark: not clear",
            ["system", *systems],
            [[one, *("" if one == other else own[one, other] for other in systems)] for one in systems],
        )
        for metric, own in found.items()
    ]
    return Section("Every system against every other", tables)

"""Tables and charts that show the rows of a report or a comparison."""

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
MAX_ROWS = 14_000  # of differences on a page, to keep it below 3 MB; rows over all users count twice
MIN_ROWS = 1_000  # of a grouping, even if there are very many over all users
OF_GROUPS = ["metric", "mean", "95 % interval", "users", "difference to the rest", "its 95 % interval"]
QUANTILES = {"lowest": 0.0, "10 %": 0.1, "median": 0.5, "90 %": 0.9, "highest": 1.0}
VERDICTS = {"better": "▲ better", "worse": "▼ worse", "not clear": "≈ not clear", None: DASH}
REVERSE: dict[str | None, str] = {"better": "worse", "worse": "better"}
LEGEND = (
    "Verdict: ▲ better, ▼ worse, ≈ not clear. The definitions say which values of a metric are better.",
    "Each metric has its own scale: the line is the interval, the stroke across it the difference, the rule behind 0.",
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
    "rec_lists_with_gaps": "lists with gaps in their ranks",
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
MEANS = (  # count of rows, label of their mean per user, count of users without rows
    ("rec_rows", "mean length of the lists", "no_recs"),
    ("rows", "mean number of rows per user", "no_rows"),
)
SETTINGS = {
    "min_gain": "smallest gain of a relevant item",
    "n_items": "items in the catalogue",
    "ties": "order of items with equal scores",
    "no_truth": "users without a relevant item",
    "no_recs": "users without a list",
    "duplicates": "an item twice in a list",
    "one_class": "users with rows of one class, in gauc",
    "weighted": "whether users or rows have weights",
    "like": "tool whose conventions apply",
    "names": "names of the metrics in that tool",
    "rank_gaps": "ranks without an item",
    "baseline": "system that all others are compared with",
    "test": "test of the mean difference, two-sided, on users",
    "correction": "correction of p-values for many comparisons",
    "level": "level of intervals and of significance",
    "n_rounds": "random rounds of the test",
    "seed": "seed of the random rounds",
    "missing": "users counted on one side only",
}


# Numbers


class Gap(NamedTuple):
    """Difference with its interval."""

    difference: float
    low: float
    high: float


def figures(leading: float, *numbers: float) -> list[str]:
    """Format numbers with four decimals or, if these would hide the leading one, with four digits."""
    plain = leading == 0 or 1e-3 <= abs(leading) < 1e6
    return [DASH if math.isnan(number) else f"{number:z.4f}" if plain else f"{number:z.3e}" for number in numbers]


def span(leading: float, low: float, high: float) -> str:
    """Format an interval with the precision of its leading number."""
    texts = figures(leading, low, high)
    return DASH if DASH in texts else f"{texts[0]} {DASH} {texts[1]}"


def one_figure(number: float) -> str:
    """Format a number with four decimals, or with four digits if these would hide it."""
    return figures(number, number)[0]


def _signed(leading: float, *numbers: float) -> list[str]:
    texts = zip(numbers, figures(leading, *numbers), strict=True)
    return [f"+{text}" if number > 0 and float(text) != 0 else text for number, text in texts]


def shown_difference(gap: Gap) -> tuple[str, str]:
    """Format a difference and its interval, with four decimals unless these would hide the interval."""
    leading = gap.difference if math.isnan(gap.low) else max(abs(gap.low), abs(gap.high))
    text, *ends = _signed(leading, *gap)
    return text, DASH if DASH in ends else f"{ends[0]} to {ends[1]}"


def p_value(number: float) -> str:
    """Format a p-value with four decimals, or with two digits if these would show 0."""
    return DASH if math.isnan(number) else f"{number:.1e}" if 0 < number < 5e-5 else f"{number:.4f}"


def count(number: int | None) -> str:
    """Format a number of users, or a dash for None."""
    return DASH if number is None else f"{number:,}"


def _share(number: float) -> str:
    return DASH if math.isnan(number) else f"{100 * number:.1f} %"


def _shown(value: object) -> str:
    """Format the value of a setting."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} is {text}" for name, text in value.items())
    return "not given" if value is None else print_value(value)


def warning_lines(warnings: Iterable[str]) -> list[str]:
    """Return a line per warning."""
    return [f"warning: {warning}" for warning in warnings]


# A report


def estimated(rows: Iterable[Row], *, with_users: bool = True) -> list[Table]:
    """Return tables of estimates: over all users, then within groups with counted users.

    `with_users` is False if rows have no users.
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
    """Return a chart and rows for each metric evaluated at several cut-offs."""
    charts, cells = [], []
    for name, own in cutoff_families(_by_grouping(rows)[0]).items():
        points = [(row["mean"], row["low"], row["high"]) for _, row in own]
        title = f"{name} at cut-offs k, with 95 % intervals"
        charts.append(Chart(title, line_chart(title, [str(k) for k, _ in own], points)))
        cells += [[name, str(k), *_estimate(row)[1:]] for k, row in own]
    head = ["metric", "k", "mean", "95 % interval", "users"]
    return Section("Metric against cut-off", [Table("Metrics at cut-offs", head, cells)] if cells else [], charts)


def cutoff_families(rows: Iterable[Row]) -> dict[str, list[tuple[int, Row]]]:
    """Return rows of metrics that differ only in their cut-off, as (k, row), ascending."""
    families: dict[str, list[tuple[int, Row]]] = {}
    for row in rows:
        family, mark, k = row["metric"].rpartition("@")
        if mark and k.isdigit():
            families.setdefault(family, []).append((int(k), row))
    return {name: sorted(own, key=lambda pair: pair[0]) for name, own in families.items() if len(own) > 1}


def distributions(per_user: Mapping[str, Array]) -> Section:
    """Return a histogram and quantiles of users' values for each metric."""
    charts, cells = [], []
    for metric, values in per_user.items():
        known = values[np.isfinite(values)]
        if not len(known):
            continue
        low, high = _bounds(metric, known)
        counts = np.histogram(known, bins=BINS, range=(low, high))[0]
        title = f"{metric}: {number_of_users(len(known))} by value"
        charts.append(Chart(title, histogram(title, counts.tolist(), f"{low:g}", f"{high:.4g}")))
        quantiles = [one_figure(value) for value in np.quantile(known, list(QUANTILES.values())).tolist()]
        cells.append([metric, f"{len(known):,}", _share(float(np.mean(known == 0))), *quantiles])
    head = ["metric", "users", "at 0", *QUANTILES]
    return Section("Distribution over users", [Table("Values of users", head, cells)] if cells else [], charts)


def _bounds(metric: str, known: Array) -> tuple[float, float]:
    """Return the ends of a histogram: 0 and 1 if the metric has this range."""
    call = known_call(metric)
    if call is not None and list(call.metric.range) == [0, 1]:
        return 0.0, 1.0
    low, high = min(0.0, float(known.min())), float(known.max())
    return low, high if high > low else low + 1.0


def by_group(rows: Iterable[Row]) -> Section:
    """Return estimates within groups with counted users, and the difference of each to all other users."""
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
    """Return a note on missing differences to the rest, if there are any."""
    unknown = any(math.isnan(gap.low) for gap in gaps)
    return [
        f"{DASH}: too few users are counted in the group or outside, or the metric needs the order of all rows"
    ] * unknown


def number_of_users(n: int) -> str:
    """Return "1 user" or "n users"."""
    return f"{n:,} user{'' if n == 1 else 's'}"


def count_tables(
    users: Mapping[str, int], meanings: Sequence[tuple[str, str, str]], data: Mapping[str, int | float]
) -> list[Table]:
    """Return tables of the users, by (count, meaning, policy), and of the data."""
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
    """Return a line on the order of lists and the source of gains; nothing for lists passed in order."""
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
    """Return a line per reason why estimates have a mean and no interval.

    `n_users` is 0 if rows have no users.
    """
    metrics: dict[str, list[str]] = {}
    for name, one in estimates.items():
        if math.isfinite(one.mean) and math.isnan(one.std_error):
            reason = "this metric has no known standard error"
            if one.users < 2:
                reason = "only one user is counted" if n_users else "rows have no users, or a class has few rows"
            metrics.setdefault(reason, []).append(name)
    return [f"no interval for {', '.join(names)}: {reason}" for reason, names in metrics.items()]


def definitions(metrics: Iterable[str]) -> Table:
    """Return a table with the definition of each metric from the catalogue, one row for all its cut-offs."""
    cutoffs: dict[str, list[str]] = {}
    for text in metrics:
        family, mark, k = text.rpartition("@")
        cutoffs.setdefault(f"{family}@" if mark else text, []).extend([k] if mark else [])
    rows = [[f"{name}{', '.join(k)}", *_definition(name.removesuffix("@"))] for name, k in cutoffs.items()]
    head = ["metric", "what it is", "formula with default options", "options", "better", "source"]
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
    """Return a table of settings with their meaning."""
    rows = [[name, SETTINGS.get(name, DASH), _shown(value)] for name, value in settings.items()]
    return Table("Settings", ["setting", "what it decides", "value"], rows, 3)


def _by_grouping(rows: Iterable[Row]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Return the rows over all users, and those of each grouping."""
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
    """Parse a metric; None for one not declared in this process, as in a loaded report."""
    try:
        return parse(text)
    except MetricError:
        return None


# A comparison


def compared(rows: Iterable[Row], level: float) -> list[Table]:
    """Return tables of differences, over all users and by segment; * marks a corrected p of at most 1 - level."""
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
    """Return the largest significant p-value: 1 - level without its rounding error."""
    return round(1 - level, 12)


def meaning_of_mark(level: float) -> str:
    """Return the meaning of * beside a p-value or a difference."""
    return f"significant (*): a corrected p-value of at most {alpha(level):.4g}"


def _is_significant(row: Row, level: float) -> bool:
    return bool(row["p_corrected"] <= alpha(level))


def outcome(rows: Iterable[Row], level: float) -> str:
    """Return the outcome of a comparison over all users in two sentences."""
    overall = _by_grouping(rows)[0]
    verdicts = [row["verdict"] for row in overall]
    better, worse, unclear, none = map(verdicts.count, ("better", "worse", "not clear", None))
    words = f"{len(overall):,} comparison{'s' if len(overall) > 1 else ''} over all users"
    without = f"; {none:,} has no verdict" if none == 1 else f"; {none:,} have no verdict" if none else ""
    return (
        f"{words}: the system is better in {better:,}, worse in {worse:,}, and in {unclear:,} no difference is clear"
        f"{without}. Better and worse mean a corrected p-value of at most {1 - level:.4g}."
    )


def differences(rows: Iterable[Row], level: float, baseline: str | None) -> tuple[Section, Section]:
    """Return sections of all differences, over all users and within segments, with drawn intervals."""
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
    """Return the largest absolute end of an interval for each metric."""
    found: dict[str, float] = {}
    for metric, gap in gaps:
        ends = [abs(end) for end in (gap.low, gap.high) if not math.isnan(end)]
        found[metric] = max([found.get(metric, 0.0), *ends])
    return found


def _gap(row: Row) -> Gap:
    return Gap(row["difference"], row["low"], row["high"])


def _drawn(gap: Gap, scale: float, kind: str = "") -> list[str | Drawn]:
    """Return a difference, and its interval with a picture."""
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
    """Return a table per metric of every system against every other: mean of the row minus mean of the column."""
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

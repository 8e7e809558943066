"""Tables and sections of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from fastrec.checks import counted
from fastrec.comparison.row import ComparisonRow, reverse
from fastrec.exceptions import Argument, Text
from fastrec.report.significance import correct, smallest_p_value, tries_all_signs
from fastrec.report.tables import scales_of
from fastrec.report.values import MAX_ROUNDS
from fastrec.show.charts import whisker
from fastrec.show.numbers import DASH, Gap, one_figure, p_value, percent, relative, shown_count, shown_difference
from fastrec.show.tables import Brief, Cell, Drawn, Section, Table

MAX_ROWS = 14_000  # of differences on a page, to keep it below 3 MB; rows over all users count twice
MIN_ROWS = 1_000  # of a grouping, even if there are very many over all users
RESAMPLING = ("randomization", "bootstrap")
VERDICTS = {"better": "▲ better", "worse": "▼ worse", "not clear": "≈ not clear", None: DASH}
KINDS: dict[str | None, str] = {"better": "up", "worse": "down"}
SIGNS: dict[str | None, str] = {"better": " ▲", "worse": " ▼"}
LEGEND = (
    "Verdict: ▲ better, ▼ worse, ≈ not clear. The definitions say which values of a metric are better.",
    "Each metric has its own scale: the line is the interval, the stroke across it the difference, the rule behind 0.",
    "Unpaired: {units} counted on one side only.",
    "Detectable: the smallest true difference that these {units} would have shown with a chance of {power}.",
)


# Cells


def _gap_of(row: ComparisonRow) -> Gap:
    """Return the difference of a row with its interval."""
    return Gap(row.difference, row.low, row.high)


CELLS: dict[str, Callable[[ComparisonRow], str]] = {
    "metric": attrgetter("metric"),
    "system": attrgetter("system"),
    "baseline": attrgetter("baseline"),
    "pair": lambda row: f"{row.system} - {row.baseline}",
    "group": lambda row: str(row.group),
    "verdict": lambda row: VERDICTS[row.verdict],
    "mean": lambda row: one_figure(row.mean),
    "baseline mean": lambda row: one_figure(row.baseline_mean),
    "difference": lambda row: shown_difference(_gap_of(row))[0],
    "relative": lambda row: relative(row.relative),
    "interval": lambda row: shown_difference(_gap_of(row))[1],
    "p": lambda row: p_value(row.p_value, at_most=is_at_floor(row)),
    "p corrected": lambda row: p_value(row.p_corrected, at_most=is_at_floor(row)),
    "wins": lambda row: shown_count(row.wins),
    "ties": lambda row: shown_count(row.ties),
    "losses": lambda row: shown_count(row.losses),
    "users": lambda row: shown_count(row.users),
    "unpaired": lambda row: shown_count(row.unpaired),
    "detectable": lambda row: one_figure(row.detectable),
}


def row_cells(row: ComparisonRow, names: Iterable[str], level: float, blank: str = "") -> list[str]:
    """Return how values of a row are printed; * or `blank` follows the corrected p-value."""
    mark = "*" if is_significant(row, level) else blank
    return [CELLS[name](row) + (mark if name == "p corrected" else "") for name in names]


def alpha(level: float) -> float:
    """Return the largest significant p-value: 1 - level without its rounding error."""
    return round(1 - level, 12) or 1 - level


def is_at_floor(row: ComparisonRow) -> bool:
    """Return whether the p-value of a row is the smallest that the test can give."""
    return row.p_value <= row.p_floor < 1


def least_p_values(rows: Sequence[ComparisonRow], settings: Mapping[str, Any]) -> list[float]:
    """Return the smallest corrected p-value that each row of a table can have; NaN for rows without a test."""
    return correct([math.nan if math.isnan(row.p_value) else row.p_floor for row in rows], settings["correction"])


def what_helps(rows: Sequence[ComparisonRow], settings: Mapping[str, Any]) -> Text:
    """Return what would let a row of a table be significant: rounds if enough can be drawn, or users, or a test."""
    test = settings["test"]
    floors = [smallest_p_value(test, row.users, row.users - (row.ties or 0), MAX_ROUNDS) for row in rows]
    drawn = [row._replace(p_floor=row.p_floor and floor) for row, floor in zip(rows, floors, strict=True)]
    is_enough = test in RESAMPLING and any(p <= alpha(settings["level"]) for p in least_p_values(drawn, settings))
    more = Argument("n_rounds") if is_enough else "users"
    fewer = ", or fewer rows" if min(row.p_floor for row in rows) <= alpha(settings["level"]) else ""
    return Text("take more ", more, ", " if fewer else " or ", Argument("test", ("t",)), fewer)


def is_significant(row: ComparisonRow, level: float) -> bool:
    """Return whether the corrected p-value is at most 1 - level."""
    return row.p_corrected <= alpha(level)


def meaning_of_mark(level: float) -> str:
    """Return the meaning of * beside a p-value or a difference."""
    return f"significant (*): a corrected p-value of at most {alpha(level):.4g}"


def unit_of(settings: Mapping[str, Any]) -> str:
    """Return what a comparison pairs: a user, or a row of a log without users."""
    return "row" if settings.get("units") == "rows" else "user"


def shown_rounds(rows: Iterable[ComparisonRow], settings: Mapping[str, Any]) -> str:
    """Return how many rounds the test draws; "" if it draws none. With few users, randomization tries all signs."""
    test, n_rounds = settings["test"], settings["n_rounds"]
    if test not in RESAMPLING:
        return ""
    may_try_all = (tries_all_signs(row.users - (row.ties or 0), n_rounds) for row in rows if row.users > 1)
    return f"{'at most ' if test == 'randomization' and any(may_try_all) else ''}{n_rounds:,} rounds"


# Tables


def printed(rows: Iterable[ComparisonRow], level: float, notes: Sequence[str]) -> list[Table]:
    """Return the tables of `repr`: differences above, means below, so that lines of usual names have 80 columns."""
    rows = list(rows)
    differences = ["metric", "system", "baseline", "difference", "interval", "p corrected"]
    head = ["corrected p" if name == "p corrected" else name for name in differences]
    means = ["metric", "system", "mean", "baseline", "baseline mean", "p", "wins", "ties", "losses"]
    return [
        Table("", head, [row_cells(row, differences, level, blank=" ") for row in rows]),
        Table(
            "",
            ["mean" if name == "baseline mean" else name for name in means],
            [row_cells(row, means, level) for row in rows],
            notes=notes,
        ),
    ]


def compared(
    rows: Iterable[ComparisonRow], segments: Mapping[str, Iterable[ComparisonRow]], level: float, unit: str
) -> list[Table]:
    """Return the tables of Markdown and LaTeX: over all users, and by segment."""
    names = ["metric", "system", "baseline", "mean", "baseline mean", "difference", "interval", "p", "p corrected"]
    names += ["wins", "ties", "losses", "users"]
    head = _heads(names, level, unit)
    tables = [Table("", head, [row_cells(row, names, level) for row in rows], 3)]
    for grouping, own in segments.items():
        tables.append(Table("", [grouping, *head], [row_cells(row, ["group", *names], level) for row in own], 4))
    return tables


def _heads(names: Iterable[str], level: float, unit: str) -> list[str]:
    heads = {"interval": f"{percent(level)} interval", "users": f"{unit}s"}
    return [heads.get(name, name) for name in names]


# Sections of a page


def outcome(rows: Sequence[ComparisonRow], level: float, unit: str) -> str:
    """Return the outcome of a comparison over all users in two sentences."""
    verdicts = [row.verdict for row in rows]
    better, worse, unclear, none = map(verdicts.count, ("better", "worse", "not clear", None))
    words = f"{len(rows):,} comparison{'s' if len(rows) > 1 else ''} over all {unit}s"
    without = f"; {counted(none, 'has no verdict', 'have no verdict')}" if none else ""
    return (
        f"{words}: the system is better in {better:,}, worse in {worse:,}, not clear in {unclear:,}"
        f"{without}. Better and worse mean a corrected p-value of at most {alpha(level):.4g}."
    )


def differences(
    rows: Sequence[ComparisonRow],
    segments: Mapping[str, Sequence[ComparisonRow]],
    settings: Mapping[str, Any],
) -> tuple[Section, Section]:
    """Return sections of all differences, over all users and within segments, with drawn intervals."""
    level, baseline, unit = settings["level"], settings["baseline"], unit_of(settings)
    chance = percent(settings.get("power", 0.8))
    names = ["metric", "system", *(["baseline"] if baseline is None else []), "verdict"]
    numbers = ["difference", "relative", "interval", "p corrected"]
    means = ["mean", "baseline mean"]
    more = ["p", "wins", "ties", "losses", "users", "unpaired", "detectable"]
    title = "Differences" if baseline is None else f"Differences to {baseline}"
    columns = [*names, *numbers, *means, *more]
    overall = Table(
        title,
        _heads(columns, level, unit),
        _drawn(rows, rows, columns),
        len(names),
        [line.format(units=f"{unit}s", power=chance) for line in LEGEND],
        n_shown=columns.index("mean" if baseline is None else "p"),
        n_narrow=columns.index("difference" if baseline is None else "relative"),
    )
    tables = []
    most = max(MIN_ROWS, (MAX_ROWS - 2 * len(rows)) // max(1, len(segments)))
    for grouping, own in segments.items():
        caption, kept = f"{title} by {grouping}", [row for row in own if row.users]
        if len(kept) > most:
            kept = sorted(kept, key=lambda row: (math.isnan(row.p_corrected), row.p_corrected))[:most]
            caption = f"{caption}: the {most:,} with the smallest corrected p-value, of {len(own):,}"
        columns = [*names, *numbers, "users"]
        body = _drawn(kept, own, ["group", *columns])
        head, n_shown = (
            [grouping, *_heads(columns, level, unit)],
            columns.index("p corrected") + 1 if baseline is None else None,
        )
        n_narrow = columns.index("difference") + 1
        tables.append(Table(caption, head, body, len(names) + 1, n_shown=n_shown, n_narrow=n_narrow))
    return Section(f"Differences over all {unit}s", [overall]), Section("Segments", tables)


def _drawn(kept: Iterable[ComparisonRow], rows: Iterable[ComparisonRow], names: Sequence[str]) -> list[list[Cell]]:
    """Return the cells of the rows that are kept, with pictures of intervals on the scale of all rows of a metric."""
    scales = scales_of((row.metric, _gap_of(row)) for row in rows)

    def cell(row: ComparisonRow, name: str) -> Cell:
        text = CELLS[name](row)
        if name == "verdict":
            return Brief(text[:1], text[1:])
        if name != "interval":
            return text
        ends = row.low, row.difference, row.high
        return Drawn(text, whisker(*ends, scales[row.metric], KINDS.get(row.verdict, "")))

    return [[cell(row, name) for name in names] for row in kept]


def matrices(rows: Sequence[ComparisonRow]) -> Section:
    """Return a table per metric of every system against every other: mean of the row minus mean of the column."""
    systems = list(dict.fromkeys(name for row in rows for name in (row.baseline, row.system)))
    found: dict[str, dict[tuple[str, str], str]] = {}
    for row in rows:
        own = found.setdefault(row.metric, {})
        for one in (row, reverse(row)):
            own[one.system, one.baseline] = CELLS["difference"](one) + SIGNS.get(one.verdict, "")
    tables = [
        Table(
            f"{metric}: row minus column; ▲ the row is better, ▼ worse, no mark: not clear",
            ["system", *systems],
            [[one, *("" if one == other else own[one, other] for other in systems)] for one in systems],
        )
        for metric, own in found.items()
    ]
    return Section("Every system against every other", tables)

"""Result of a comparison, with a row for each metric and pair of systems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from fastrec._version import __version__
from fastrec.checks import check_text, counted, some_names
from fastrec.comparison.charts import charts_of, charts_of_segments, how_to_read
from fastrec.comparison.findings import findings
from fastrec.comparison.paper import paper_table
from fastrec.comparison.row import ComparisonRow
from fastrec.comparison.tables import (
    compared,
    differences,
    is_significant,
    matrices,
    meaning_of_mark,
    outcome,
    printed,
    shown_rounds,
    unit_of,
)
from fastrec.comparison.trade_offs import trade_offs
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.metrics.calls import parse
from fastrec.metrics.directions import Direction
from fastrec.report.definitions import definitions, settings_table
from fastrec.report.estimates import Estimate
from fastrec.report.plain import plain_document
from fastrec.report.tables import lines_of_notes
from fastrec.show.numbers import percent
from fastrec.show.shown import Published
from fastrec.show.tables import Lead, Section, Table, warning_lines, with_notes, with_warnings

Array = np.ndarray[Any, Any]
Test = Literal["randomization", "bootstrap", "t", "wilcoxon"]
Correction = Literal["holm", "bonferroni", "bh", "none"]
Missing = Literal["drop", "zero", "error"]
SEGMENT = ("grouping", "group")
MAX_CHARTS = 12  # at the head of a page
MEAN_NOTE = "difference, interval, test, wins and losses use each user's distance to it"
CLUSTERED_NOTE = "the difference is between the two distances to it"
RATIO_NOTE = (
    "a ratio of sums: the difference is between the two distances to it; interval and p are Student's, with the sum "
    "of both standard errors, which is an upper bound"
)


@dataclass(frozen=True, repr=False)
class Comparison(Published):
    """Result of `compare`: differences between systems, with intervals and tests.

    rows : over all users, metric by metric.
    segments : rows within each group, {grouping: rows}; p-values are corrected within each grouping.
    settings : test, correction, level, n_rounds, seed, missing, power, baseline; "clustered" lists the metrics of all
        rows together, which users enter with the effects of their rows; "units" is "rows" if each row is a user of its
        own.
    left_out : {metric: why it is not compared}; the key of a metric that only groups lack is "METRIC within groups",
        that of segments of rows "segments of rows by NAME".
    estimates : {system: {metric: Estimate}}, also of metrics that are not compared.
    warnings : reasons to doubt the numbers: those of each report, with its name, and those of the comparison.

    Examples
    --------
    >>> truth = [[1], [2], [3], [4], [5], [6], [7], [8]]
    >>> lists = [[1, 9], [2, 9], [3, 9], [4, 9], [5, 9], [6, 9], [7, 9], [9, 8]]
    >>> a = fastrec.evaluate(lists, truth, "mrr", per_user=True)
    >>> b = fastrec.evaluate(
    ...     [[9, item] for item in range(1, 9)], truth, "mrr", per_user=True
    ... )
    >>> fastrec.compare({"new": a, "old": b}, baseline="old")
    metric  system  baseline  difference            interval  corrected p
    mrr        new       old     +0.4375  +0.2897 to +0.5853    ≤ 0.0156*
    <BLANKLINE>
    metric  system    mean  baseline    mean         p  wins  ties  losses
    mrr        new  0.9375       old  0.5000  ≤ 0.0156     7     1       0
    test=randomization, at most 10,000 rounds, seed 0; correction=holm; intervals of 95 %
    8 users compared
    significant (*): a corrected p-value of at most 0.05

    In Markdown, too, * marks significant rows:

    >>> print(fastrec.compare({"new": a, "old": b}, baseline="old").to_markdown())
    ... # doctest: +NORMALIZE_WHITESPACE
    | metric | system | baseline | mean | baseline mean | difference | 95 % interval | p | p corrected
    | wins | ties | losses | users |
    | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
    | mrr | new | old | 0.9375 | 0.5000 | +0.4375 | +0.2897 to +0.5853 | ≤ 0.0156 | ≤ 0.0156* | 7 | 1 | 0 | 8 |
    <BLANKLINE>
    - test=randomization, at most 10,000 rounds, seed 0; correction=holm; intervals of 95 %
    - 8 users compared
    - significant (*): a corrected p-value of at most 0.05
    """

    _title = "Comparison"

    rows: tuple[ComparisonRow, ...]
    segments: Mapping[str, tuple[ComparisonRow, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    estimates: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)

    def all_rows(self) -> Iterator[ComparisonRow]:
        """Iterate over the rows over all users, then those of segments."""
        return itertools.chain(self.rows, *self.segments.values())

    def is_significant(self, row: ComparisonRow) -> bool:
        """Return whether the corrected p-value is at most 1 - level."""
        if not isinstance(row, ComparisonRow):
            raise InputTypeError(f"row must be a ComparisonRow, one of `rows`, found {shown(row)}")
        return is_significant(row, self._level)

    @property
    def _level(self) -> float:
        return float(self.settings["level"])

    def notes(self) -> list[str]:
        """Return lines on the test, the users, the directions of metrics, and what was left out."""
        return self._notes()

    def _notes(self, place_of_segments: str = "") -> list[str]:
        settings = self.settings
        how = f"test={settings['test']}"
        if rounds := shown_rounds(self.all_rows(), settings):
            how += f", {rounds}, seed {settings['seed']}"
        notes = [f"{how}; correction={settings['correction']}; intervals of {percent(self._level)}"]
        least, most = (pick(row.users for row in self.rows) for pick in (min, max))
        users = f"{'' if least == most else f'{least:,} to '}{self._number(most)} compared"
        if unpaired := max(row.unpaired for row in self.rows):
            users += f"; up to {counted(unpaired, 'user')} counted on one side only (missing={settings['missing']})"
        notes.append(users)
        if any(row.users and math.isnan(row.low) for row in self.all_rows()):
            few = self._number(2).removeprefix("2 ")
            notes.append(f"no interval and no p-value where fewer than two {few} count, or have rows of a class")
        if clustered := settings.get("clustered"):
            of = "rows, each on its own" if unit_of(settings) == "row" else "users, whose rows count together"
            some = {row.metric for row in self.rows} - set(clustered)
            notes.append(f"intervals and tests over {of}{': ' + ', '.join(clustered) if some else ''}")
        if self.segments:
            notes.append(f"segments: {', '.join(self.segments)}; p-values are corrected within each{place_of_segments}")
        return [
            *notes,
            *lines_of_notes((row.note, f"{row.metric} of {row.system}") for row in self.rows),
            *self._directions(),
            *(f"{metric}: {why}" for metric, why in self.left_out.items()),
        ]

    def _directions(self) -> Iterator[str]:
        """Return lines on metrics where higher is not simply better."""
        rows = {row.metric: row for row in self.rows}
        if lower := [metric for metric, row in rows.items() if row.direction == "lower"]:
            yield f"lower is better: {', '.join(lower)}"
        for metric, row in rows.items():
            words = f"{metric}: {Direction(row.direction, row.target).words} is better"
            if row.direction == "none":
                yield f"{words}, so there is no verdict"
            elif row.target is not None:
                clustered = metric in self.settings.get("clustered", ())
                yield f"{words}; {CLUSTERED_NOTE if clustered else RATIO_NOTE if row.ties is None else MEAN_NOTE}"

    def _number(self, n: int) -> str:
        """Return a number of what is compared: users, or rows without users."""
        return counted(n, unit_of(self.settings))

    def _lines(self, notes: Iterable[str]) -> list[str]:
        """Return the notes and the warnings."""
        return [*notes, *warning_lines(self.warnings)]

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict per row, over all users and by segment; "grouping" and "group" only with segments."""
        rows = [row._asdict() for row in self.all_rows()]
        return rows if self.segments else [{name: row[name] for name in row if name not in SEGMENT} for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        return plain_document(
            {
                "settings": dict(self.settings),
                "rows": [row._asdict() for row in self.rows],
                "segments": {name: [row._asdict() for row in rows] for name, rows in self.segments.items()},
                "left_out": dict(self.left_out),
                "warnings": self.warnings,
            }
        )

    def _printed(self) -> list[Table]:
        notes = [*self._notes(", in .segments and .to_frame()"), *legend_of_marks(self, self.rows)]
        return printed(self.rows, self._level, self._lines(notes))

    def _tables(self) -> list[Table]:
        notes = [*self.notes(), *legend_of_marks(self, self.all_rows())]
        return with_notes(compared(self.rows, self.segments, self._level, unit_of(self.settings)), self._lines(notes))

    def _paper(self) -> Table:
        table = paper_table(self.rows, self.estimates, self.left_out, self.settings)
        return with_warnings(table, self.warnings)

    def _lead(self) -> Lead:
        headline, *others = findings(self.rows, self.segments, self.settings["baseline"], self.estimates) or [""]
        notes = [outcome(self.rows, self._level, unit_of(self.settings)), *self.notes(), f"fastrec {__version__}"]
        return Lead(headline, others, self.warnings, notes)

    def _sections(self) -> list[Section]:
        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        against = trade_offs(self.estimates, metrics, self._level)
        left_out = Table("Not compared", ["metric", "why"], list(self.left_out.items()), 2)
        baseline = self.settings["baseline"]
        overall, segments = differences(self.rows, self.segments, self.settings)
        by_group = [] if baseline is None else charts_of_segments(self.segments)
        charts = charts_of(self.rows, self.estimates, self._level, baseline)
        more = Section("Charts of the other metrics", charts=charts[MAX_CHARTS:], folded="Show charts")
        return [
            overall._replace(charts=charts[:MAX_CHARTS], lines=[how_to_read(self._level, baseline)]),
            more,
            against.section,
            *([matrices(self.rows)] if baseline is None else []),
            segments._replace(charts=by_group, lines=[how_to_read(self._level, baseline)] if by_group else []),
            Section("Definitions", [definitions(dict.fromkeys([*metrics, *against.metrics]))]),
            Section("Settings", [settings_table(self.settings), *([left_out] if self.left_out else [])]),
        ]

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """Draw the differences over all users with their intervals, a panel for each metric; filled: significant.

        Parameters
        ----------
        metric : a compared metric; by default all of them, in a new figure
        ax : matplotlib axes, optional
            Where to draw the one metric; a new figure by default.

        Returns
        -------
        The axes of the metric; without `metric`, an array of axes (n_metrics,).

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InputError, InputTypeError
            If the metric is not compared, `ax` is not matplotlib axes, or `ax` is given for several metrics.
        """
        from fastrec.show.plots import draw_differences

        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        if metric is not None:
            check_text("metric", metric)
        wanted = metric if metric is None or metric in metrics else parse(metric).text
        if wanted is not None and wanted not in metrics:
            raise InputError(f"{metric!r} is not compared here, only {some_names(metrics)}")
        marked = [(row._asdict(), self.is_significant(row)) for row in self.rows]
        return draw_differences(marked, metrics, wanted, ax)


def legend_of_marks(comparison: Comparison, rows: Iterable[ComparisonRow]) -> list[str]:
    """Return the meaning of * if one of the rows has it."""
    return [meaning_of_mark(comparison.settings["level"])] if any(map(comparison.is_significant, rows)) else []

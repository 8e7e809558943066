"""Systems weighed against each other on the same users: differences, intervals, tests, segments."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec._version import __version__
from fastrec.checks import check_choice, check_progress, check_text, listed_in_order, some_names
from fastrec.exceptions import InputError, InputTypeError, MetricError, one_line, shown, warn
from fastrec.inputs.users import alike
from fastrec.metrics.declaration import Call, parse
from fastrec.metrics.directions import Direction, Kind, Verdict
from fastrec.report.archive import dump_json
from fastrec.report.plain import aligned, as_frame, plain_data, write_or_return
from fastrec.report.report import Report, check_resampling, why_no_mean
from fastrec.report.significance import (
    CORRECTIONS,
    TESTS,
    correct,
    detectable_by,
    detectable_difference,
    normal_test,
    pair_differences,
    run_test,
)
from fastrec.runtime.launch import resolve_threads
from fastrec.show.html import Section, Table, as_html, as_latex, as_markdown, html_page
from fastrec.show.views import (
    Gap,
    alpha,
    compared,
    count,
    definitions,
    differences,
    matrices,
    meaning_of_mark,
    one_figure,
    outcome,
    p_value,
    settings_table,
    shown_difference,
    warning_lines,
)

__all__ = ["Comparison", "ComparisonRow", "compare"]

Array = np.ndarray[Any, Any]
Test = Literal["randomization", "bootstrap", "t", "wilcoxon"]
Correction = Literal["holm", "bonferroni", "bh", "none"]
Missing = Literal["drop", "zero", "error"]
MISSING = ("drop", "zero", "error")
NAMES_OF_TOOL = ("like", "names")  # settings that do not change a number
SEGMENT = ("grouping", "group")
RESAMPLING = ("randomization", "bootstrap")
NO_MEAN = "is no plain mean of users' values, which is what is compared"
OF_EACH_USER = {"average": "user", "weight": "equal"}  # options with which a metric is such a mean
NO_VALUES = "has no value of a user, which is what is compared"
OF_USERS = "difference, interval, test, wins and losses are of each user's distance to it"
OF_SUMS = (
    "a ratio of sums: the difference is that of the two distances to it; interval and p are normal, with the sum of "
    "both standard errors, the most that it can be"
)
TRUTH_COUNTS: dict[str, Callable[[Report], int | float | None]] = {  # what the truth alone decides
    "rows of it": lambda report: report.data.get("truth_rows"),
    "rows of it that are not relevant": lambda report: report.data.get("truth_rows_not_relevant"),
    "users with a relevant item": lambda report: report.users["total"] - report.users.get("no_truth", 0),
    "rows of it with gains": lambda report: report.data.get("truth_rows_with_gains"),
    "copies in it": lambda report: report.data.get("duplicates_in_truth"),
}
KINDS = {"i": "integers", "u": "integers", "U": "texts"}


class ComparisonRow(NamedTuple):
    """One metric of one system against another.

    metric, system, baseline : what is compared.
    mean, baseline_mean : over the users that are compared.
    difference : mean - baseline_mean; of a metric with a target the difference of the distances to it, see `compare`.
    low, high : its interval.
    p_value : the chance of a difference as large where there is none, two-sided.
    p_corrected : the same for all rows of the table together.
    wins, ties, losses : users for whom the system is better, as good and worse. All are None for a ratio of sums; wins
        and losses are None for a metric without a direction.
    users : users that are compared.
    unpaired : users counted on one side only, which are left out or count as 0 there, as ``missing`` says.
    detectable : the smallest true difference that would have been found with a chance of 80 %.
    grouping, group : the segment; None for all users.
    direction, target : which values of the metric are better: "higher", "lower", those nearer to a "target", "none".
    verdict : "better", "worse" or "not clear", by the direction and the corrected p-value; None without either.
    """

    metric: str
    system: str
    baseline: str
    mean: float
    baseline_mean: float
    difference: float
    low: float
    high: float
    p_value: float
    p_corrected: float
    wins: int | None
    ties: int | None
    losses: int | None
    users: int
    unpaired: int
    detectable: float
    grouping: str | None = None
    group: str | int | None = None
    direction: Kind = "higher"
    target: float | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns.

    rows : over all users, metric by metric.
    segments : the same within each group, {grouping: rows}; corrected for each grouping on its own.
    settings : test, correction, level, n_rounds, seed, missing, baseline.
    left_out : {metric: why it is not compared}.
    warnings : each reason to doubt the numbers, a sentence each: those of the reports, named, and of the comparison.

    Examples
    --------
    >>> truth = [[1], [2], [3], [4]]
    >>> a = fastrec.evaluate([[1, 9], [2, 9], [9, 3], [4, 9]], truth, "mrr", per_user=True)
    >>> b = fastrec.evaluate([[9, 1], [9, 2], [9, 3], [9, 4]], truth, "mrr", per_user=True)
    >>> fastrec.compare({"new": a, "old": b}, baseline="old")
    metric  system    mean  baseline    mean  difference            interval       p  corrected  wins  ties  losses
    mrr        new  0.8750       old  0.5000     +0.3750  +0.1300 to +0.6200  0.2500    0.2500      3     1       0
    test=randomization, 10,000 rounds, seed 0; correction=holm; intervals of 95 %
    4 users compared
    """

    rows: tuple[ComparisonRow, ...]
    segments: Mapping[str, tuple[ComparisonRow, ...]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def all_rows(self) -> Iterator[ComparisonRow]:
        """Rows over all users, then those of segments."""
        return itertools.chain(self.rows, *self.segments.values())

    def is_significant(self, row: ComparisonRow) -> bool:
        """Whether the corrected p-value is at most 1 - level."""
        if not isinstance(row, ComparisonRow):
            raise InputTypeError(f"row must be a ComparisonRow, one of `rows`, found {shown(row)}")
        return row.p_corrected <= alpha(self.settings["level"])

    def __repr__(self) -> str:
        """An aligned table of the rows over all users, and how it was made; * marks what is significant."""
        return "\n".join([*aligned(self._table()), *map(one_line, self._lines(self._legend(self.rows)))])

    def _repr_html_(self) -> str:
        """The same as the text form, as an HTML table for notebooks."""
        return as_html(self._table(), self._lines(self._legend(self.rows)))

    def _table(self) -> list[list[str]]:
        """The cells of the shown table, its head first."""
        head = ["metric", "system", "mean", "baseline", "mean", "difference", "interval", "p", "corrected"]
        return [[*head, "wins", "ties", "losses"], *map(self._cells, self.rows)]

    def _cells(self, row: ComparisonRow) -> list[str]:
        means = [row.system, one_figure(row.mean), row.baseline, one_figure(row.baseline_mean)]
        gap = shown_difference(Gap(row.difference, row.low, row.high))
        p_values = [p_value(row.p_value), f"{p_value(row.p_corrected)}{'*' if self.is_significant(row) else ' '}"]
        return [row.metric, *means, *gap, *p_values, *map(count, (row.wins, row.ties, row.losses))]

    def notes(self) -> list[str]:
        """How the numbers were made, which values are better, and what was left out, a line each."""
        settings = self.settings
        rounds = f", {settings['n_rounds']:,} rounds, seed {settings['seed']}"
        how = f"test={settings['test']}{rounds if settings['test'] in RESAMPLING else ''}"
        notes = [f"{how}; correction={settings['correction']}; intervals of {100 * settings['level']:g} %"]
        least, most = (pick(row.users for row in self.rows) for pick in (min, max))
        compared = f"{most:,} users compared" if least == most else f"{least:,} to {most:,} users compared"
        if unpaired := max(row.unpaired for row in self.rows):
            compared += f"; up to {unpaired:,} users counted on one side only (missing={settings['missing']})"
        notes.append(compared)
        if any(row.users and math.isnan(row.low) for row in self.all_rows()):
            notes.append("no interval and no p-value where too few users are compared")
        if self.segments:
            notes.append(f"segments: {', '.join(self.segments)}; p-values of each are corrected on their own")
        return [*notes, *self._directions(), *(f"{metric}: {why}" for metric, why in self.left_out.items())]

    def _directions(self) -> Iterator[str]:
        """Lines on metrics of which higher values are not simply better."""
        rows = {row.metric: row for row in self.rows}
        if lower := [metric for metric, row in rows.items() if row.direction == "lower"]:
            yield f"lower is better: {', '.join(lower)}"
        for metric, row in rows.items():
            words = f"{metric}: {Direction(row.direction, row.target).words} is better"
            if row.direction == "none":
                yield f"{words}, so there is no verdict"
            elif row.target is not None:
                yield f"{words}; {OF_SUMS if row.ties is None else OF_USERS}"

    def _legend(self, rows: Iterable[ComparisonRow] | None = None) -> list[str]:
        """The notes, and what * means where one of the rows has it; by default any row."""
        marked = any(self.is_significant(row) for row in (self.all_rows() if rows is None else rows))
        return [*self.notes(), *([meaning_of_mark(self.settings["level"])] if marked else [])]

    def _lines(self, notes: Iterable[str]) -> list[str]:
        """The notes and the warnings."""
        return [*notes, *warning_lines(self.warnings)]

    def to_rows(self) -> list[dict[str, Any]]:
        """One dict per row, over all users and by segment; "grouping" and "group" only where there are segments."""
        rows = [row._asdict() for row in self.all_rows()]
        return rows if self.segments else [{name: row[name] for name in row if name not in SEGMENT} for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data that JSON can hold (schema 1); NaN is None."""
        document: dict[str, Any] = plain_data(
            {
                "schema": 1,
                "fastrec": __version__,
                "settings": dict(self.settings),
                "rows": [row._asdict() for row in self.rows],
                "segments": {name: [row._asdict() for row in rows] for name, rows in self.segments.items()},
                "left_out": dict(self.left_out),
                "warnings": self.warnings,
            }
        )
        return document

    def to_json(self, indent: int | None = None) -> str:
        """`to_dict` as strict JSON text; floats keep all their digits."""
        return dump_json(self.to_dict(), indent=indent)

    def to_frame(self, kind: str | None = None) -> Any:
        """`to_rows` as a data frame: "pandas", "polars" or "pyarrow", by default the first installed."""
        return as_frame(self.to_rows(), kind)

    def to_markdown(self) -> str:
        """The rows over all users, and by segment, as Markdown tables; * marks what is significant.

        >>> truth = [[1], [2], [3], [4]]
        >>> a = fastrec.evaluate([[1], [2], [3], [4]], truth, "mrr", per_user=True)
        >>> b = fastrec.evaluate([[1], [9], [9], [9]], truth, "mrr", per_user=True)
        >>> print(fastrec.compare({"new": a, "old": b}, baseline="old", test="t", level=0.9).to_markdown())
        ... # doctest: +NORMALIZE_WHITESPACE
        | metric | system | baseline | mean | baseline mean | difference | 90 % interval | p | p corrected
        | wins | ties | losses | users |
        | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | mrr | new | old | 1.0000 | 0.2500 | +0.7500 | +0.1617 to +1.3383 | 0.0577 | 0.0577* | 3 | 1 | 0 | 4 |
        <BLANKLINE>
        - test=t; correction=holm; intervals of 90 %
        - 4 users compared
        - significant (*): a corrected p-value of at most 0.1
        """
        return as_markdown(self._tables(), self._lines(self._legend()))

    def to_latex(self) -> str:
        """The tables of `to_markdown` for LaTeX, with the rules of the package booktabs; notes are comments."""
        return as_latex(self._tables(), self._lines(self._legend()))

    def _tables(self) -> list[Table]:
        return compared(self.to_rows(), float(self.settings["level"]))

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str = "Comparison") -> str | None:
        """A page for people: one HTML file that needs nothing else, no network and no library.

        It holds every difference with its interval drawn, whether it is better, worse or not clear, segments, the
        table of all pairs where there is no baseline, definitions, settings and what is not compared. Of very many
        rows of segments those with the smallest corrected p-values are kept, which the caption says.

        Parameters
        ----------
        path : where to write it; the file appears only when it is complete. By default the text is returned.
        title : of the page.

        Returns
        -------
        The text of the page, or None where it was written.
        """
        rows, level = self.to_rows(), float(self.settings["level"])
        left_out = Table("Not compared", ["metric", "why"], list(self.left_out.items()), 2)
        overall, segments = differences(rows, level, self.settings["baseline"])
        sections = [
            overall,
            *([matrices(rows)] if self.settings["baseline"] is None else []),
            segments,
            Section("Definitions", [definitions(dict.fromkeys(row.metric for row in self.rows))]),
            Section("Settings", [settings_table(self.settings), *([left_out] if self.left_out else [])]),
        ]
        lead = [outcome(rows, level), *self._lines(self.notes()), f"fastrec {__version__}"]
        return write_or_return(html_page(title, sections, lead), path)

    def plot(self, metric: str | None = None, ax: Any = None) -> Any:
        """Draw the differences over all users with their intervals, a panel for each metric; filled: significant.

        Parameters
        ----------
        metric : one of those that are compared; by default all of them, in a new figure
        ax : matplotlib axes, optional
            Where to draw the one metric; a new figure by default.

        Returns
        -------
        The axes of the metric; an array of axes (n_metrics,) without one.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InputError, InputTypeError
            If the metric is not compared, `ax` is something else, or `ax` is given for several metrics.
        """
        from fastrec.show.plots import draw_differences

        metrics = list(dict.fromkeys(row.metric for row in self.rows))
        if metric is not None:
            check_text("metric", metric)
        wanted = metric if metric is None or metric in metrics else parse(metric).text
        if wanted is not None and wanted not in metrics:
            raise InputError(f"{metric!r} is not compared here, but {some_names(metrics)} are")
        marked = [(row._asdict(), self.is_significant(row)) for row in self.rows]
        return draw_differences(marked, metrics, wanted, ax)


def compare(
    reports: Mapping[str, Report],
    baseline: str | None = None,
    metrics: str | Iterable[str] | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    level: float = 0.95,
    n_rounds: int = 10_000,
    seed: int = 0,
    n_threads: int | None = None,
    *,
    missing: Missing = "drop",
    progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    r"""Weigh systems that were evaluated on the same users: which differences are real, for whom, by how much.

    Parameters
    ----------
    reports : {name: report}, two or more, each with values of users: ``evaluate(..., per_user=True)``
        Users are paired by id, never by position where they have ids. Settings of all reports must be the same. A
        warning says where counts show that the truth differs: rows, those relevant or with gains, users. Truths that
        differ in items only go unnoticed.
    baseline : the system that all others are compared with; by default every pair is compared, the later with the
        earlier
    metrics : by default all that every report has and that can be compared: means of users' values, and metrics with a
        target; `Comparison.left_out` names the others
    test : of the mean difference, two-sided, on users
        ``randomization`` (signs of the differences drawn ``n_rounds`` times; Fisher 1935): p = (b + 1) / (B + 1), or
        exactly if there are no more signs than rounds, and at most 65,536; ``bootstrap`` (users drawn with replacement;
        Efron 1979); ``t`` (Student 1908); ``wilcoxon`` (1945), of signed ranks, which asks whether differences are
        symmetric around 0. These two need SciPy. A user whose values are equal to 2^-40 of themselves is a tie, as
        rounding makes no wins; tests weigh differences to 2^-40 of the largest value of the others.
    correction : for the rows over all users together, and for those of each grouping: ``holm`` (1979), ``bonferroni``,
        ``bh`` (Benjamini & Hochberg 1995: the share of false findings), ``none``
    level : of intervals: percentiles for ``bootstrap``, Student's for ``t``, else normal
    n_rounds, seed : of ``randomization`` and ``bootstrap``: the same bits for any number of threads, and for any order
        of users who have ids
    missing : users counted on one side only: ``drop``, the default, ``zero`` (0 on the other side; not for metrics of
        which 0 may be a good value: errors, and those with a target) or ``error``
    progress : called as progress(rows done, rows)

    Each metric declares its direction: higher values are better, or lower ones, or those nearer to a target t, or
    neither. With a target, compare takes each user's distance \|x - t\| in place of the value x. A metric with a target
    may be a ratio of sums, as ``calibration`` over all rows is (t = 1). It has no values of users to pair. Its
    difference is \|mean - t\| - \|baseline mean - t\|. The interval and the p-value are normal, with the sum of the two
    standard errors. No dependence between the systems makes the standard error larger, so the test may miss a small
    difference, but does not invent one; ``test`` is not used. A metric without a direction has no verdict.

    Returns
    -------
    Comparison
        A row per metric and pair; where all reports have groups, also within each group.

    Raises
    ------
    InputError, InputTypeError
        If a report has no values of users, settings differ, ids do not match, or a metric cannot be compared.
    """
    systems = _check_reports(reports)
    doubts = _doubts(systems)
    warn(doubts)
    check_progress(progress)
    settings: dict[str, Any] = {"baseline": baseline, "test": test, "correction": correction, "level": level}
    settings |= {"n_rounds": n_rounds, "seed": seed, "missing": missing}
    _check_settings(settings, systems)
    weighing = _Weighing(systems, settings, resolve_threads(n_threads))
    wanted, left_out = _choose_metrics(systems, metrics, weighing.why_not)
    pairs = [(later, earlier) for earlier, later in itertools.combinations(systems, 2)]
    if baseline is not None:
        pairs = [(name, baseline) for name in systems if name != baseline]
    tables: dict[str | None, list[tuple[str | None, Any]]] = {None: [(None, None)], **weighing.segments()}
    n_rows, done = len(wanted) * len(pairs) * sum(map(len, tables.values())), itertools.count(1)
    found: dict[str | None, tuple[ComparisonRow, ...]] = {}
    for grouping, segments in tables.items():
        rows = []
        for metric, pair, segment in itertools.product(wanted, pairs, segments):
            rows.append(weighing.row(metric, *pair, *segment))
            if progress is not None:
                progress(next(done), n_rows)
        corrected = correct([row.p_value for row in rows], correction)
        found[grouping] = tuple(_judged(row, p, settings["level"]) for row, p in zip(rows, corrected, strict=True))
    overall = found.pop(None)
    warnings = _warnings_of(systems)
    by_group = {str(name): rows for name, rows in found.items()}
    return Comparison(overall, by_group, settings, left_out, (*warnings, *doubts))


def _judged(row: ComparisonRow, p_corrected: float, level: float) -> ComparisonRow:
    verdict = Direction(row.direction, row.target).verdict(row.difference, p_corrected, alpha(level))
    return row._replace(p_corrected=p_corrected, verdict=verdict)


class _Weighing:
    """Pairs of systems on users in one order, which does not depend on how any report has them."""

    def __init__(self, systems: Mapping[str, Report], settings: Mapping[str, Any], n_threads: int) -> None:
        self._systems, self._settings, self._n_threads = systems, settings, n_threads
        self._places = dict(zip(systems, _places(systems), strict=True))
        self._n_users = 1 + max(int(places.max(initial=-1)) for places in self._places.values())
        self._inside: dict[tuple[str | None, Any], Array] = {}  # (grouping, group) -> its users
        self._values = functools.lru_cache(maxsize=len(systems))(self._values_of)

    def _values_of(self, system: str, metric: str) -> Array:
        """The value of each user, NaN where it has none."""
        values = np.full(self._n_users, math.nan)
        values[self._places[system]] = self._systems[system].per_user[metric]
        return values

    def segments(self) -> dict[str | None, list[tuple[str | None, Any]]]:
        """The groupings that all reports have, and the groups of each."""
        first, *others = self._systems.values()
        found: dict[str | None, list[tuple[str | None, Any]]] = {}
        for name in first.labels:
            if all(name in other.labels for other in others):
                labels, codes = self._join_labels(name)
                order = np.argsort(codes, kind="stable")
                ends = np.searchsorted(codes[order], np.arange(len(labels) + 1))
                found[name] = [(name, label) for label in labels]
                parts = np.split(order, ends)[1:-1]  # who has no label comes first
                self._inside |= dict(zip(found[name], parts, strict=True))
        return found

    def _join_labels(self, grouping: str) -> tuple[list[str | int], Array]:
        """The groups, and each user's, by position; a user must be in the same everywhere."""
        own = {name: report.labels[grouping] for name, report in self._systems.items()}
        kinds = {KINDS.get(labels.dtype.kind, "objects") for labels in own.values()}
        if len(kinds) > 1 or "objects" in kinds:
            raise InputError(f"the labels of groups[{grouping!r}] must be all integers or all texts")
        distinct, codes = np.unique(np.concatenate(list(own.values())), return_inverse=True)
        joined = np.full(self._n_users, -1)
        for name, part in zip(own, _split_like(codes, own.values()), strict=True):
            places = self._places[name]
            other = (joined[places] >= 0) & (joined[places] != part)
            if other.any():
                at = int(other.argmax())
                raise InputError(
                    f"user {_id_of(self._systems[name], at)!r} is in group {distinct[part[at]].item()!r} of {grouping} "
                    f"in {name} and in {distinct[joined[places][at]].item()!r} elsewhere"
                )
            joined[places] = part
        return distinct.tolist(), joined

    def row(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> ComparisonRow:
        """One row, its p-value not yet corrected."""
        where = metric, system, baseline, grouping, group
        found = self._of_sums(*where) if self._is_of_sums(metric) else self._of_users(*where)
        direction = parse(metric).metric.direction
        return ComparisonRow(
            metric=metric,
            system=system,
            baseline=baseline,
            p_corrected=found["p_value"],
            grouping=grouping,
            group=group,
            direction=direction.kind,
            target=direction.target,
            **found,
        )

    def _is_of_sums(self, metric: str) -> bool:
        """Whether a metric has a target and is a ratio of sums, even if it equals the mean of users' values here."""
        call = parse(metric)
        if call.metric.direction.target is None:
            return False
        return not (call.needs_users and all(report.is_mean(metric) for report in self._systems.values()))

    def why_not(self, metric: str) -> str:
        """Why a metric cannot be compared; empty if it can."""
        try:
            call = parse(metric)
        except MetricError:
            return "is not declared here, so which values are better is not known: call ranking_metric first"
        reports = self._systems.values()
        if not call.needs_users and all(np.isnan(report.per_user[metric]).all() for report in reports):
            return NO_VALUES
        if self._is_of_sums(metric):
            if any(len(places) < self._n_users for places in self._places.values()):
                return "is a ratio of sums, which is compared on the same users only"
            unknown = (report for report in reports if math.isnan(report[metric]))
            if (report := next(unknown, None)) is not None:
                return f"has no value in one of the reports{why_no_mean(report, metric)}"
        else:
            for report in reports:
                if not report.is_mean(metric):
                    return f"{NO_MEAN}{_plain_form(call)}{why_no_mean(report, metric)}"
        if self._settings["missing"] == "zero" and call.metric.is_good_at_zero:
            return "may be best at 0, so missing='zero' would score missing users as good"
        return ""

    def _of_sums(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> dict[str, Any]:
        """The numbers of a row for a metric with a target that is a ratio of sums: from its two estimates."""
        ours, theirs = (
            report.estimates[metric] if grouping is None else report.groups[grouping][group][metric]  # type: ignore[index]
            for report in (self._systems[system], self._systems[baseline])
        )
        unpaired = abs(ours.users - theirs.users)
        self._check_paired(unpaired, metric, system, baseline)
        target = parse(metric).metric.direction.target
        differences, _ = pair_differences(np.array([ours.mean]), np.array([theirs.mean]), target)
        difference = float(differences[0])
        level, std_error = self._settings["level"], ours.std_error + theirs.std_error
        return {
            "mean": ours.mean,
            "baseline_mean": theirs.mean,
            "difference": difference,
            **normal_test(difference, std_error, level)._asdict(),
            **dict.fromkeys(("wins", "ties", "losses")),
            "users": min(ours.users, theirs.users),
            "unpaired": unpaired,
            "detectable": detectable_by(std_error, level),
        }

    def _of_users(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> dict[str, Any]:
        """The numbers of a row for a mean of users' values, or of their distances to a target."""
        ours, theirs = self._values(system, metric), self._values(baseline, metric)
        if grouping is not None:
            inside = self._inside[grouping, group]
            ours, theirs = ours[inside], theirs[inside]
        counted, counted_there = ~np.isnan(ours), ~np.isnan(theirs)
        unpaired = int(np.count_nonzero(counted != counted_there))
        self._check_paired(unpaired, metric, system, baseline)
        used = counted | counted_there if self._settings["missing"] == "zero" else counted & counted_there
        ours, theirs = np.nan_to_num(ours[used]), np.nan_to_num(theirs[used])
        direction = parse(metric).metric.direction
        differences, magnitude = pair_differences(ours, theirs, direction.target)
        wins, losses = (int(np.count_nonzero(way * differences > 0)) for way in (direction.sign, -direction.sign))
        options: dict[str, Any] = {name: self._settings[name] for name in ("level", "n_rounds", "seed")}
        options |= {"n_threads": self._n_threads, "magnitude": magnitude}
        tested = run_test(differences, self._settings["test"], **options)
        return {
            **_means(ours, theirs, differences, direction.target),
            **tested._asdict(),
            "wins": wins if direction.sign else None,
            "ties": int(np.count_nonzero(differences == 0)),
            "losses": losses if direction.sign else None,
            "users": len(differences),
            "unpaired": unpaired,
            "detectable": detectable_difference(differences, self._settings["level"]),
        }

    def _check_paired(self, unpaired: int, metric: str, system: str, baseline: str) -> None:
        if unpaired and self._settings["missing"] == "error":
            raise InputError(
                f"{metric}: {unpaired} users are counted in {system} or {baseline} only; say what becomes of them with "
                "missing='drop' or 'zero'"
            )


def _means(ours: Array, theirs: Array, differences: Array, target: float | None) -> dict[str, float]:
    """The means of values of users, and their difference, or that of the distances to a target."""
    mean, mean_there = (float(values.mean()) if len(values) else math.nan for values in (ours, theirs))
    difference = 0.0
    if len(differences) == 0 or (differences.any() and target is None):
        difference = mean - mean_there
    elif differences.any():
        difference = float(np.abs(ours - target).mean()) - float(np.abs(theirs - target).mean())
    return {"mean": mean, "baseline_mean": mean_there, "difference": difference}


def _check_reports(reports: Any) -> dict[str, Report]:
    """Two reports or more with values of users and the same settings."""
    named = isinstance(reports, Mapping) and all(isinstance(name, str) for name in reports)
    if not named or isinstance(reports, Report):
        kind = type(reports).__name__
        raise InputTypeError(f"reports must be a dict {{name: report}}, found a {kind}: compare({{'a': a, 'b': b}})")
    if len(reports) < 2:
        raise InputError(f"compare needs two reports or more, found {len(reports)}")
    for name, report in reports.items():
        if not isinstance(report, Report):
            raise InputTypeError(f"reports[{name!r}] must be a Report, found {type(report).__name__}")
        if not report.has_values:
            raise InputError(f"the report of {name} has no values of users: evaluate(..., per_user=True)")
    (first, one), *others = reports.items()
    for name, other in others:
        for setting in sorted({*one.settings, *other.settings} - set(NAMES_OF_TOOL)):
            here, there = one.settings.get(setting, "absent"), other.settings.get(setting, "absent")
            if here != there:
                raise InputError(
                    f"reports must be made with the same settings, but {setting} is {shown(here)} in {first} and "
                    f"{shown(there)} in {name}"
                )
    return dict(reports)


def _doubts(systems: Mapping[str, Report]) -> list[str]:
    """What the reports together say against the numbers."""
    if any("truth_rows" not in report.data for report in systems.values()):
        return []  # logs, whose rows may be others in each
    for what, count_of in TRUTH_COUNTS.items():
        found = {name: n for name, report in systems.items() if (n := count_of(report)) is not None}
        if len(set(found.values())) > 1:
            return [f"the truth differs: {what} are {_listed(found)}"]
    return []


def _warnings_of(systems: Mapping[str, Report]) -> list[str]:
    """The warnings of all reports, each once with the systems that it is about."""
    about: dict[str, list[str]] = {}
    for name, report in systems.items():
        for line in report.warnings:
            about.setdefault(line, []).append(name)
    return [f"{', '.join(names)}: {line}" for line, names in about.items()]


def _plain_form(call: Call) -> str:
    """The form of a metric that is a plain mean of users' values, in brackets; empty where it has no other."""
    own = {name: value for name, value in OF_EACH_USER.items() if name in call.metric.options}
    options = dict(call.options) | own
    plain = replace(call, options=tuple(options.items()))
    return f" ({plain.text} is one)" if plain != call else ""


def _check_settings(settings: dict[str, Any], systems: Mapping[str, Report]) -> None:
    """Whether every argument can be; numbers become those of Python."""
    for name, choices in (("test", TESTS), ("correction", CORRECTIONS), ("missing", MISSING)):
        check_choice(name, settings[name], choices)
    baseline = settings["baseline"]
    if baseline is not None and (not isinstance(baseline, str) or baseline not in systems):
        raise InputError(f"baseline={shown(settings['baseline'])} is none of the reports: {some_names(list(systems))}")
    settings |= check_resampling(*(settings[name] for name in ("level", "n_rounds", "seed")))


def _choose_metrics(
    systems: Mapping[str, Report], metrics: str | Iterable[str] | None, why_not: Callable[[str], str]
) -> tuple[list[str], dict[str, str]]:
    """The metrics to compare, canonical, and why others are not."""
    first, *others = systems.values()
    if metrics is None:
        shared = [metric for metric in first if all(metric in other for other in others)]
        left_out = {metric: why for metric in shared if (why := why_not(metric))}
        if len(left_out) == len(shared):
            named = "; ".join(f"{metric} {why}" for metric, why in left_out.items())
            raise InputError(f"the reports have no metric in common that can be compared: {named or 'none is in all'}")
        return [metric for metric in shared if metric not in left_out], left_out
    single = isinstance(metrics, str) or not isinstance(metrics, Iterable)
    asked = [metrics] if single else listed_in_order(metrics, "metrics")
    if not asked or not all(isinstance(name, str) for name in asked):
        raise InputError(f"metrics must name at least one metric, such as 'ndcg@10', found {shown(metrics)}")
    wanted = list(dict.fromkeys(map(first.name_of, asked)))
    for metric in wanted:
        for name, report in systems.items():
            if metric not in report:
                raise InputError(f"{metric} is not in the report of {name}")
        if why := why_not(metric):
            raise InputError(f"{metric} {why}")
    return wanted, {}


def _places(systems: Mapping[str, Report]) -> list[Array]:
    """For each report the places of its users among all users, ascending by id; by position where there are no ids."""
    reports = list(systems.values())
    without = [name for name, report in systems.items() if report.user_ids is None]
    if len(without) == len(systems):
        sizes = {name: len(next(iter(report.per_user.values()))) for name, report in systems.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"without user_ids, reports must have the same users; found {_listed(sizes)}")
        return [np.arange(size) for size in sizes.values()]
    if without:
        raise InputError(f"users are paired by id, but the report of {without[0]} has no user_ids")
    ids = alike([report.user_ids for report in reports if report.user_ids is not None])
    if all(np.array_equal(ids[0], other) for other in ids[1:]) and ids[0].dtype != object:
        order = np.argsort(ids[0], kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return [places] * len(ids)
    kinds = {name: KINDS.get(own.dtype.kind, "objects") for name, own in zip(systems, ids, strict=True)}
    if len(set(kinds.values())) > 1:
        raise InputError(f"users are paired by id, but ids are {_listed(kinds)}")
    if ids[0].dtype == object:
        known = sorted(
            {user for own in ids for user in own.tolist()}, key=lambda user: (type(user).__name__, repr(user))
        )
        place = {user: at for at, user in enumerate(known)}
        codes = [np.array([place[user] for user in own.tolist()], np.int64) for own in ids]
    else:
        joined = np.unique(np.concatenate(ids), return_inverse=True)[1]
        codes = _split_like(joined, ids)
    shared = functools.reduce(np.intersect1d, codes)
    if len(shared) == 0:
        examples = _listed(
            {name: repr(own[:1].tolist()[0]) if len(own) else "none" for name, own in zip(systems, ids, strict=True)}
        )
        raise InputError(f"no user is in all reports: do the ids match? The first are {examples}")
    return codes


def _split_like(joined: Array, parts: Iterable[Array]) -> list[Array]:
    """Cut what was joined of parts into pieces as long as these."""
    return np.split(joined, np.cumsum([len(part) for part in parts])[:-1])


def _listed(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} in {name}" for name, value in found.items())


def _id_of(report: Report, position: int) -> Any:
    return position if report.user_ids is None else report.user_ids[position : position + 1].tolist()[0]

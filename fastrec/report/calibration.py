"""Calibration of scored rows by bin of scores: numbers with intervals, groups of rows, tables and charts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fastrec._version import __version__
from fastrec.checks import check_level, counted
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.row_groups import NO_SEGMENT, read_row_groups
from fastrec.report.plain import plain_document
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.calibration import Binned, bin_counts, bin_rows, check_bins, read_rows_to_bin
from fastrec.scored.plots import draw_calibration
from fastrec.scored.score_counts import ScoreCounts
from fastrec.show.charts import Estimated, Interval, interval_chart, reliability_chart
from fastrec.show.numbers import DASH, change, one_figure, percent, rate, shown_count, span
from fastrec.show.plots import check_target
from fastrec.show.shown import Charted, Exported
from fastrec.show.tables import Chart, Lead, Section, Table, with_notes

Array = np.ndarray[Any, Any]
GroupKey = tuple[str, Any]
MAX_CHARTS = 6  # of the groups of a grouping
MAX_GROUPS = 24  # in a chart
SHOWN = 30  # rows of `repr`
ROUNDING = 1e-9  # relative, of sums of weights
OF_BINS = ("lower", "upper", "rows", "mean_score", "mean_label", "low", "high")


class CalibrationCurve(Exported, Charted):
    """Scores and labels by bin of the scores, as returned by `calibration_curve`.

    Arrays have one number per bin that has rows, in ascending order of the scores.

    bins : number of the bin, from 0.
    lower, upper : edges of a uniform bin, which has the lower and not the upper one, except for the last bin. Of a
        quantile bin, its lowest and highest score.
    rows : number of rows, int64, or their weight, float64.
    mean_score, mean_label : the mean label is the share of positive rows.
    low, high : interval of the mean label.
    gap : mean score - mean label. Above 0, scores are too high.
    users : number of users with a row; None without users.
    ece : expected calibration error, as the metric `ece` of the same bins.
    calibration : sum of scores / sum of labels of all rows, as the metric `calibration`; inf without a positive row.
    groups : {grouping: {label: CalibrationCurve}}.
    ungrouped : {grouping: number of rows, or their weight, that have no label and are in no group}.
    settings : bins, strategy, level, interval ("rows" or "users").
    """

    _title = "Calibration"

    def __init__(self, found: Binned, groups: Mapping[str, Mapping[Any, Binned]], settings: Mapping[str, Any]) -> None:
        self._found, self._found_by_group, self.settings = found, groups, dict(settings)
        self.bins, self.lower, self.upper = found.numbers, found.lower, found.upper
        self.rows, self.mean_score, self.mean_label = (
            column[:-1] for column in (found.rows, found.mean_score, found.mean_label)
        )
        self.low, self.high = found.low[:-1], found.high[:-1]
        self.gap: Array = self.mean_score - self.mean_label
        self.users = None if found.users is None else found.users[:-1]
        self.ece = found.ece
        self.groups = {
            grouping: {label: CalibrationCurve(own, {}, settings) for label, own in by_label.items()}
            for grouping, by_label in groups.items()
        }
        self.ungrouped = {
            grouping: _rest(found.rows[-1], [own.rows[-1] for own in by_label.values()])
            for grouping, by_label in groups.items()
        }

    @property
    def calibration(self) -> float:
        """Sum of scores / sum of labels of all rows."""
        return _over(self._found.mean_score[-1], self._found.mean_label[-1])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict per bin, over all rows and for each group.

        Keys: "grouping", "group", "bin", "lower", "upper", "rows", "mean_score", "mean_label", "low", "high", "gap",
        and with users "users".
        """
        return [row for grouping, label, own in self._parts() for row in _rows_of(own, grouping, label)]

    def _parts(self) -> Iterator[tuple[str | None, Any, CalibrationCurve]]:
        yield None, None, self
        for grouping, by_label in self.groups.items():
            for label, own in by_label.items():
                yield grouping, label, own

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        errors = [
            {"grouping": grouping, "group": label, "ece": own.ece, "calibration": own.calibration}
            for grouping, label, own in self._parts()
        ]
        document = {"settings": self.settings, "ungrouped": self.ungrouped, "errors": errors, "rows": self.to_rows()}
        return plain_document(document)

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        """Draw the mean label against the mean score with matplotlib; one curve per group.

        The area of a marker grows with the number of rows in its bin, or their weight. If most scores are near 0,
        `strategy="quantile"` and `ax.set_xlim` show more. One axes can hold several curves.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        check_target(ax, label, "plot")
        groups = [(str(name), found) for by in self._found_by_group.values() for name, found in by.items()]
        curves: list[tuple[str | None, Binned]] = [*groups] or [(label, self._found)]
        for name, found in curves:
            ax = draw_calibration(found, ax, name)
        return ax

    def notes(self) -> list[str]:
        """Return lines on the numbers."""
        found, settings = self._found, self.settings
        rows = shown_count(found.rows[-1].item())
        weight = "rows" if self.rows.dtype.kind == "i" else "weight of all rows"
        score, label = (one_figure(column[-1].item()) for column in (found.mean_score, found.mean_label))
        total = f"{rows} {weight}" if weight == "rows" else f"{weight} {rows}"
        users = "" if found.users is None else f" of {counted(int(found.users[-1]), 'user')}"
        return [
            f"{total}{users}, {counted(settings['bins'], settings['strategy'] + ' bin')}",
            f"mean score {score}, mean label {label}, calibration {one_figure(self.calibration)}, ECE {rate(self.ece)}",
            f"intervals of {percent(settings['level'])}: Wilson 1927; {self._units()}",
        ]

    def _units(self) -> str:
        return "users as clusters" if self.settings["interval"] == "users" else "rows are taken as independent"

    def _group_tables(self) -> Iterator[Table]:
        """Yield a table for each grouping, with a row per group."""
        for grouping, by_label in self._found_by_group.items():
            head = [grouping, "calibration", "interval", "ECE", "mean label", "rows"]
            body = []
            for label, found in by_label.items():
                ratio, mean = _ratio_of(found), one_figure(found.mean_label[-1].item())
                interval, rows = span(*ratio) if math.isfinite(ratio.high) else DASH, found.rows[-1].item()
                body.append([str(label), one_figure(ratio.mean), interval, rate(found.ece), mean, shown_count(rows)])
            notes = ["interval of the calibration: from that of the mean label, for these scores", self._units()]
            if left := self.ungrouped[grouping]:
                what = counted(left, "row") if isinstance(left, int) else f"weight {shown_count(left)}"
                notes.append(f"without a label, in no group: {what}")
            yield Table(f"By {grouping}", head, body, notes=notes, n_narrow=3)

    def _printed(self) -> list[Table]:
        table, *others = with_notes([_brief(_table_of_bins(self))], self.notes())
        return [table, *others, *map(_brief, self._group_tables())]

    def _tables(self) -> list[Table]:
        parts = ((f"{grouping}: {label}" if grouping else "", own) for grouping, label, own in self._parts())
        tables = [_table_of_bins(own, title) for title, own in parts]
        return with_notes([*tables, *self._group_tables()], self.notes())

    def _lead(self) -> Lead:
        return Lead(notes=[*self.notes(), f"fastrec {__version__}"])

    def _sections(self) -> list[Section]:
        whole, *others = self._in_report()
        groups = [
            Section(
                f"{grouping}: {label}", [_table_of_bins(own, "By bin of scores")], [_chart_of_bins(own, "Reliability")]
            )
            for grouping, label, own in self._parts()
            if grouping is not None
        ]
        return [whole._replace(title="All rows", lines=()), *others, *groups]

    def _in_report(self) -> list[Section]:
        reading = ["Points on the dashed line are calibrated; below it, scores are too high.", *self.notes()]
        table, chart = _table_of_bins(self, "By bin of scores"), _chart_of_bins(self, "Reliability")
        found = [Section("Calibration", [table], [chart], reading)]
        for table, (grouping, by_label) in zip(self._group_tables(), self.groups.items(), strict=True):
            charts = _group_charts(grouping, by_label, self._found_by_group[grouping])
            reading = ["Sum of scores / sum of labels; the dashed line is 1. Above it, scores are too high."]
            found.append(Section(f"Calibration by {grouping}", [table._replace(title="Groups")], charts, reading))
        return found


def _rows_of(curve: CalibrationCurve, grouping: str | None, label: Any) -> Iterator[dict[str, Any]]:
    names = [*OF_BINS, "gap", *(["users"] if curve.users is not None else [])]
    columns = [curve.bins, *(getattr(curve, name) for name in names)]
    for row in zip(*(column.tolist() for column in columns), strict=True):
        yield {"grouping": grouping, "group": label, **dict(zip(["bin", *names], row, strict=True))}


def _table_of_bins(curve: CalibrationCurve, title: str = "") -> Table:
    head = ["scores", "mean score", "mean label", "interval", "gap", "rows"]
    digits = max(4, len(str(curve.settings["bins"])) + 1)  # that tell the edges of neighbours apart
    form = f".{digits}g" if curve.settings["strategy"] == "uniform" else ".4f"
    body = [
        [
            f"{row['lower']:{form}} {DASH} {row['upper']:{form}}",
            one_figure(row["mean_score"]),
            one_figure(row["mean_label"]),
            span(row["mean_label"], row["low"], row["high"]),
            change(row["gap"]),
            shown_count(row["rows"]),
        ]
        for row in _rows_of(curve, None, None)
    ]
    return Table(title, head, body, n_narrow=3)


def _ratio_of(found: Binned) -> Estimated:
    """Return the calibration of all rows, and what the ends of the interval of the mean label make of it."""
    score, low, high = (column[-1].item() for column in (found.mean_score, found.low, found.high))
    return Estimated(_over(score, found.mean_label[-1].item()), _over(score, high), _over(score, low))


def _chart_of_bins(curve: CalibrationCurve, title: str) -> Chart:
    level = percent(curve.settings["level"])
    points = [
        (x, Estimated(mean, low, high))
        for x, mean, low, high in zip(
            *(column.tolist() for column in (curve.mean_score, curve.mean_label, curve.low, curve.high)), strict=True
        )
    ]
    title = f"{title}, with {level} intervals"
    return Chart(title, reliability_chart(title, ("mean score of bin", "share of positives"), points))


def _group_charts(
    grouping: str, by_label: Mapping[Any, CalibrationCurve], found_by_label: Mapping[Any, Binned]
) -> list[Chart]:
    """Return a chart of the calibration of groups, and charts of the bins of the first groups."""
    charts = []
    lines = [(str(label), _ratio_of(found)) for label, found in list(found_by_label.items())[:MAX_GROUPS]]
    lines = [(name, ratio) for name, ratio in lines if math.isfinite(ratio.mean)]
    if len(lines) > 1:
        title = f"Calibration by {grouping}"
        drawn = [Interval(name, _finite(ratio), [one_figure(ratio.mean)]) for name, ratio in lines]
        charts.append(Chart(title, interval_chart(title, drawn, 1.0)))
    some = list(by_label.items())[:MAX_CHARTS]
    return charts + [_chart_of_bins(own, f"{grouping}: {label}") for label, own in some]


def _finite(ratio: Estimated) -> Estimated:
    """Return a ratio without its interval if an end is infinite."""
    return ratio if math.isfinite(ratio.high) else Estimated(ratio.mean, math.nan, math.nan)


def _rest(total: Any, parts: list[Any]) -> int | float:
    """Return the rows, or the weight of rows, of all that are in no part; sums of weights are rounded."""
    left = total.item() - math.fsum(part.item() for part in parts)
    if isinstance(total.item(), int):
        return int(left)
    return left if left > ROUNDING * total.item() else 0.0


def _over(score: float, label: float) -> float:
    """Return a quotient of numbers of at least 0."""
    if label:
        return float(score / label)
    return math.inf if score else math.nan


def _brief(table: Table) -> Table:
    """Return the first rows of a table, and a line that counts the others."""
    left = len(table.rows) - SHOWN
    return table if left <= 0 else table._replace(rows=table.rows[:SHOWN], notes=[f"{left:,} more", *table.notes])


def calibration_curve(
    labels: Any,
    scores: Any,
    *,
    bins: int = 15,
    strategy: str = "uniform",
    row_groups: Any = None,
    user_ids: Any = None,
    sample_weight: Any = None,
    min_gain: float | None = None,
    level: float = 0.95,
    n_threads: int | None = None,
) -> CalibrationCurve:
    """Compare mean score and share of positives in bins of the scores, of all rows and of groups of rows.

    Bins without rows are left out. `plot` of the result draws the bins, and the metric `ece` sums their gaps.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one. With `min_gain`, any finite numbers.
    scores : array (n,), float32 or float64
        In [0, 1].
    bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        ``uniform``: bins of the same width; bin b holds scores in [b / bins, (b + 1) / bins), the last one also 1.
        Edges are the doubles nearest to these quotients. ``quantile``: bins of the same weight, cut where rows in order
        of their scores pass each multiple of W / bins, for a total weight W; equal scores are never cut, all of them
        are in the bin of the first. Groups have quantiles of their own.
    row_groups : labels (n,) of rows, integers or strings, or a dict {grouping: labels}, optional
        Such as the position or the device; each label has a curve of its own, too. Rows with None are in no group.
    user_ids : array (n,) of integers or strings, or a tuple of several, optional
        The user of each row. Intervals then count users as clusters, since the rows of a user are alike.
    sample_weight : array (n,), optional
        Finite, at least 0, not all 0. Rows of weight 0 count for nothing.
    min_gain : float, optional
        The smallest label of a positive row.
    level : level of the intervals
    n_threads : threads to use; default: all that the machine grants

    Returns
    -------
    CalibrationCurve
        ``rows``, ``mean_score``, ``mean_label`` with ``low`` and ``high``, ``gap``; ``ece``; ``groups``;
        ``to_frame()``, ``to_html()``, ``plot()``.

    Raises
    ------
    InputError, InputTypeError
        If labels are not 0 or 1, scores are not in [0, 1], lengths differ, no row has weight, or an option is unknown.

    Notes
    -----
    The interval of a mean label p is the score interval (Wilson 1927) of the effective number of rows: their number;
    with weights (sum of w)^2 / sum of w^2 (Kish 1965); with users p (1 - p) / error^2 if that is less, for the error of
    p by the delta method over users (Korn & Graubard 1998). With users and a p of 0 or 1, the rows of a user count as
    one row. It is NaN for a bin with rows of one user only.

    Examples
    --------
    >>> found = fastrec.calibration_curve(
    ...     [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], bins=2
    ... )
    >>> found
    scores   mean score  mean label         interval      gap  rows
    0 – 0.5      0.2000      0.3333  0.0615 – 0.7923  -0.1333     3
    0.5 – 1      0.7333      0.6667  0.2077 – 0.9385  +0.0667     3
    6 rows, 2 uniform bins
    mean score 0.4667, mean label 0.5000, calibration 0.9333, ECE 0.1000
    intervals of 95 %: Wilson 1927; rows are taken as independent
    """
    number, level, threads = check_bins(bins, strategy), check_level(level), resolve_threads(n_threads)
    rows = read_rows_to_bin(
        labels, scores, sample_weight=sample_weight, user_ids=user_ids, row_groups=row_groups, min_gain=min_gain
    )
    how = (number, strategy, level, threads)
    tables: dict[str, dict[Any, Binned]] = {}
    for grouping in read_row_groups(row_groups, len(rows.labels), threads):
        by_label = group_rows(grouping.codes, threads)
        edges, positions = by_label.indptr.tolist(), by_label.take(np.arange(len(rows.labels)))
        parts = {
            code: rows.take(positions[slice(*edges[at : at + 2])]) for at, code in enumerate(by_label.ids.tolist())
        }
        tables[grouping.name] = {
            grouping.labels[code]: bin_rows(own, *how)
            for code, own in parts.items()
            if code != NO_SEGMENT and (own.weights is None or own.weights.any())
        }
    settings = {"bins": number, "strategy": strategy, "level": level}
    settings["interval"] = "rows" if user_ids is None else "users"
    return CalibrationCurve(bin_rows(rows, *how), tables, settings)


def calibration_of_counts(
    counts: Mapping[GroupKey | None, ScoreCounts], tables: Mapping[GroupKey | None, Array], bins: int, level: float
) -> CalibrationCurve:
    """Return the calibration in uniform bins of counts of rows by score, of all rows (None) and of groups.

    `tables` have the sums over users of `user_sums_by_bin`; without, intervals take rows as independent.
    """
    found: dict[GroupKey | None, Binned] = {
        key: bin_counts(own, bins, level, tables[key] if tables else None)
        for key, own in counts.items()
        if len(own.runs().scores)
    }
    groups: dict[str, dict[Any, Binned]] = {}
    for key, own in found.items():
        if key is not None:
            groups.setdefault(key[0], {})[key[1]] = own
    settings = {"bins": bins, "strategy": "uniform", "level": level, "interval": "users" if tables else "rows"}
    return CalibrationCurve(found[None], groups, settings)

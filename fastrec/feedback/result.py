"""Result of `drift`: rows per log and per step, trends, shares of segments and providers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastrec._version import __version__
from fastrec.feedback.rows import DriftLog, DriftStep, Share, Trend
from fastrec.feedback.tables import MARK, definitions_of, levels, notes, pages, printed, shares, steps, trends
from fastrec.report.definitions import settings_table
from fastrec.report.estimates import Estimate
from fastrec.report.plain import plain_document
from fastrec.show.shown import Exported
from fastrec.show.tables import Lead, Section, Table, warning_lines, with_notes


@dataclass(frozen=True, repr=False)
class Drift(Exported):
    """Result of `drift`: how a recommender's lists change from log to log.

    logs : a row per log: its name, `users` with a list, and `levels`, {column: Estimate}.
    steps : a row per step between two logs: `log`, `before`, `users` with a list in both, `changes`, {column:
        Estimate}, `exposure_shift`, and `overlap` and `rbo`, the estimates of a user's consecutive lists.
    trends : {column: Trend}, each with `slope`, `std_error`, `logs` and `weighted`.
    shares : a row per log and label of the columns of `by` and `provider`: `share` of exposure and `history_share`.
    settings : k, by, provider and n_items.
    warnings : reasons to doubt the numbers, each with its log.

    Columns are metrics such as ``"gini@10"``. With `by`, they include ``"share(genre=rock)@10"`` and, with a history,
    ``"amplification(genre=rock)@10"``; with `provider`, ``"hhi(brand)@10"`` and ``"provider_gini(brand)@10"``; with
    `pairs`, ``"pair_overlap@10"`` in place of the personalization.

    Examples
    --------
    >>> monday = {
    ...     "ann": ["tea", "milk"],
    ...     "bob": ["rum", "gin"],
    ...     "eve": ["tea", "gin"],
    ... }
    >>> tuesday = {
    ...     "ann": ["tea", "milk"],
    ...     "bob": ["tea", "gin"],
    ...     "eve": ["tea", "milk"],
    ... }
    >>> found = fastrec.drift(
    ...     {"monday": monday, "tuesday": tuesday}, k=2, n_items=5
    ... )
    >>> found.steps[0].overlap.mean
    0.5555555555555556
    >>> found.logs[1].levels["item_coverage@2"].mean
    0.6
    """

    _title = "Drift"

    logs: tuple[DriftLog, ...]
    steps: tuple[DriftStep, ...]
    trends: Mapping[str, Trend]
    shares: tuple[Share, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def to_rows(self) -> list[dict[str, Any]]:
        """Return a dict per number: "kind", "log", "before", "column", "value", "std_error", "low", "high", "users".

        Kinds are "level" and "share" of a log, "change" and "step" of a step, and "trend", which has no log. Intervals
        are of 95 %, normal; a trend whose error follows from residuals has none. "users" is None for numbers that are
        no estimates over users.
        """
        k = self.settings["k"]
        rows = []
        for log in self.logs:
            rows += [_row("level", log.log, None, column, level) for column, level in log.levels.items()]
        for step in self.steps:
            where = step.log, step.before
            rows += [_row("change", *where, column, change) for column, change in step.changes.items()]
            rows += [_row("step", *where, f"{name}@{k}", value) for name, value in _own(step)]
        rows += [_row_of_trend(column, trend) for column, trend in self.trends.items()]
        for share in self.shares:
            column = f"share({share.column}={share.label})@{k}"
            if column not in self.trends:
                rows.append(_row("share", share.log, None, column, _alone(share.share)))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        return plain_document(
            {
                "settings": dict(self.settings),
                "logs": [log._asdict() for log in self.logs],
                "steps": [step._asdict() for step in self.steps],
                "trends": {column: trend._asdict() for column, trend in self.trends.items()},
                "shares": [share._asdict() for share in self.shares],
                "warnings": self.warnings,
            }
        )

    def notes(self) -> list[str]:
        """Return lines on the numbers: what changes pair, which trends there are, what a table cannot say."""
        return notes(self.logs, self.trends, self.settings)

    def _lines(self) -> list[str]:
        return [*self.notes(), *warning_lines(self.warnings)]

    def _printed(self) -> list[Table]:
        return with_notes(printed(self.logs, self.steps, self.trends), [MARK, *self._lines()])

    def _tables(self) -> list[Table]:
        tables = [levels(self.logs), *steps(self.steps), trends(self.trends), *shares(self.shares)]
        return with_notes(tables, self._lines())

    def _lead(self) -> Lead:
        return Lead(warnings=self.warnings, notes=[*self.notes(), f"fastrec {__version__}"])

    def _sections(self) -> list[Section]:
        charts = pages(self.logs, self.steps)
        return [
            Section("Levels", [levels(self.logs)], charts[0]),
            Section("Steps", steps(self.steps), charts[1]),
            Section("Trends", [trends(self.trends)]),
            Section("Shares of exposure", shares(self.shares)),
            Section("Definitions", definitions_of(self.trends, self.settings["k"])),
            Section("Settings", [settings_table(self.settings)]),
        ]


def _own(step: DriftStep) -> Iterator[tuple[str, Estimate]]:
    yield from (("exposure_shift", _alone(step.exposure_shift)), ("overlap", step.overlap), ("rbo", step.rbo))


def _alone(value: float) -> Estimate:
    """Return a number without a standard error."""
    return Estimate(value, math.nan, 0)


def _row_of_trend(column: str, trend: Trend) -> dict[str, Any]:
    return _row("trend", None, None, column, trend.estimate)


def _row(kind: str, log: str | None, before: str | None, column: str, found: Estimate) -> dict[str, Any]:
    low, high = found.interval()
    numbers = {"value": found.mean, "std_error": found.std_error, "low": low, "high": high}
    return {"kind": kind, "log": log, "before": before, "column": column, **numbers, "users": found.users or None}

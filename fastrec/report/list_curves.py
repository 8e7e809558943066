"""Interpolated precision-recall curves of lists, from the values of a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec.checks import check_choice, whole_number
from fastrec.exceptions import Argument, InputError, shown
from fastrec.report.estimates import Estimate
from fastrec.report.report import Report
from fastrec.scored.curves import InterpolatedPrCurve

MAX_LEVELS = 1001


def metrics_of_levels(levels: Any, rounding: str) -> dict[str, float]:
    """Return the metric of each level of recall, and the level."""
    n = whole_number(levels)
    if n is None or not 2 <= n <= MAX_LEVELS:
        raise InputError(Argument("levels"), f" must be an integer from 2 to {MAX_LEVELS}, found {shown(levels)}")
    check_choice("rounding", rounding, ("up", "nearest"))
    steps = [at / (n - 1) for at in range(n)]
    return {f"iprec_at_recall(level={level!r}, rounding={rounding})": level for level in steps}


def curve_of_report(report: Report, metrics: Mapping[str, float]) -> InterpolatedPrCurve:
    """Return the curve of all users, with those of groups."""
    groups = {
        grouping: {label: _curve(own, metrics, {}) for label, own in by_label.items()}
        for grouping, by_label in report.groups.items()
    }
    return _curve(report.estimates, metrics, groups)


def _curve(
    estimates: Mapping[str, Estimate],
    metrics: Mapping[str, float],
    groups: Mapping[str, Mapping[Any, InterpolatedPrCurve]],
) -> InterpolatedPrCurve:
    found = [estimates[metric] for metric in metrics]
    low, high = np.array([one.interval() for one in found]).T
    precision, recall = np.array([one.mean for one in found]), np.array([*metrics.values()])
    return InterpolatedPrCurve(precision, recall, low, high, found[0].users, groups)

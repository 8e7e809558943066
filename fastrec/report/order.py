"""Reports with their users in the order of ids."""

from __future__ import annotations

from fastrec.inputs.grouping import order_of_ids
from fastrec.report.report import Report, clips_of, note_clips
from fastrec.report.values import parts_of


def sorted_by_user(report: Report) -> Report:
    """Return a report with values of users in the ascending order of their ids."""
    ids = report.user_ids
    order = order_of_ids(ids) if ids is not None and report.has_values else None
    if ids is None or order is None:
        return report
    parts = {
        "user_ids": ids[order],
        "per_user": {name: values[order] for name, values in report.per_user.items()},
        "labels": {name: own[order] for name, own in report.labels.items()},
        "effects": {metric: {name: own[order] for name, own in by.items()} for metric, by in report.effects.items()},
    }
    found = Report(**parts_of(report) | parts)
    note_clips(found, clips_of(report))
    return found

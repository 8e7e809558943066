"""Errors and reports that use the names of files: paths, columns, rows from 1."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping

from fastrec.exceptions import FastrecError, GroupingName, Name, Place, RowNumber, Text
from fastrec.files.columns import ITEMS
from fastrec.files.job import Evaluated
from fastrec.files.labels import LabelsOfUsers
from fastrec.files.tables import File
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import as_labels
from fastrec.report.doubts import doubts_of_groups
from fastrec.report.report import Report, record, sorted_by_user

__all__ = ["finished", "named_as_in"]

TABLES = {**{name: name for name in (*SIDES, ITEMS)}, "the frame": "log"}  # of data frames in messages
ROLES = {"labels": ("label", "target"), "scores": ("score", "prediction"), "sample_weight": ("weight",)}


def finished(
    report: Report, users: Mapping[str, str], labels: LabelsOfUsers, segments: Mapping[str, str] | None = None
) -> Evaluated:
    """Return the report with groups named as in the files, and the columns of its users.

    `segments` are the columns to segment rows by: {role: column}.
    """
    report = sorted_by_user(report)
    of_rows = {name: report.groups[role] for role, name in (segments or {}).items() if role in report.groups}
    groups = {} if labels.names else {name: own for name, own in report.groups.items() if name not in (segments or {})}
    for nth, (name, strings) in enumerate(zip(labels.names, labels.strings, strict=True)):
        by_code = report.groups.get(f"by{nth}", {})  # a report without users has no groups
        spelled = strings.tolist()
        found = {spelled[int(code)]: estimates for code, estimates in by_code.items()}
        if found:
            groups[name] = dict(sorted(found.items()))
    groups |= of_rows
    for role, name in (segments or {}).items():
        if (count := report.data.pop(f"rows_in_no_segment({role})", 0)) > 0:
            report.data[f"rows_in_no_segment({name})"] = count
    if of_rows:
        report.settings = {**report.settings, "row_groupings": list(of_rows)}
    ids = report.user_ids
    record(report, doubts_of_groups({name: groups[name] for name in labels.names if name in groups}))
    if ids is None or not report.has_values:
        return Evaluated(report.with_groups(groups), {}, {})
    columns = [ids] if len(users) == 1 else [as_labels(list(column)) for column in zip(*ids.tolist(), strict=True)]
    of_users = labels.of_users() if labels.names else dict(report.labels)
    named = {f"by{nth}": name for nth, name in enumerate(labels.names)} or {name: name for name in of_users}
    report = report.with_groups(groups, of_users, named)
    return Evaluated(report, dict(zip(users.values(), columns, strict=True)), of_users)


@contextlib.contextmanager
def named_as_in(files: Mapping[str, File], *, streamed: bool) -> Iterator[None]:
    """Make the errors of the block name files, their columns, and rows from 1; no rows if these were streamed."""
    try:
        yield
    except FastrecError as error:
        sides = [name.side for name in error.text.names() if isinstance(name, Place) and name.side in TABLES]
        table = TABLES[sides[0]] if sides else "log"
        of_rows = None if streamed and table != ITEMS else files.get(table)
        raise error.renamed(functools.partial(_name_in, files, of_rows)) from error.__cause__


def _name_in(files: Mapping[str, File], of_rows: File | None, name: Name) -> object:
    """Return the name of a column, of values or of a row in files; `of_rows` is the file of rows."""
    if isinstance(name, RowNumber):
        return name.unnumbered if of_rows is None else f" in {of_rows.source.place(name.position)}"
    if isinstance(name, GroupingName) and "log" in files:
        return GroupingName(files["log"].names.get(name.name, name.name))
    if not isinstance(name, Place):
        return name
    file = files.get(TABLES.get(name.side, "log"))
    if file is None:
        return name
    if name.column is not None:
        roles = {own: role for role, own in file.names.items()} if name.side == ITEMS else {}
        role = roles.get(name.column, name.column)
        return file.at(role) if role in file.names else name
    if name.side == ITEMS:
        return file.path
    known = next((role for role in ROLES.get(name.side, ()) if role in file.names), None)
    return name if known is None else Text(file.at(known), f": {known}s")

"""Errors and reports that use the names of files: paths, columns, rows from 1."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fastrec.exceptions import FastrecError, Name, Place, RowNumber, Text
from fastrec.files.columns import ITEMS, USERS
from fastrec.files.job import Evaluated
from fastrec.files.labels import typed_labels
from fastrec.files.tables import File
from fastrec.inputs.sides import SIDES
from fastrec.inputs.users import as_labels
from fastrec.report.order import sorted_by_user
from fastrec.report.report import Report

__all__ = ["finished", "named_as_in"]

TABLES = {**{name: name for name in (*SIDES, ITEMS, USERS)}, "the frame": "log"}  # of data frames in messages
ROLES = {"labels": ("label", "target"), "scores": ("score", "prediction"), "sample_weight": ("weight",)}


def finished(report: Report, users: Sequence[str], numbered: Collection[str] = ()) -> Evaluated:
    """Return a report with the columns of its users, of which `users` are the names.

    Labels in the groupings `numbered` are strings; they become integers if all spell integers.
    """
    report = sorted_by_user(report)
    integers: dict[str, dict[Any, Any]] = {
        name: dict(zip(own, typed_labels(list(map(str, own))).tolist(), strict=True))
        for name, own in report.groups.items()
        if name in numbered and own
    }
    if integers:
        groups = {
            name: dict(sorted((integers[name][label], own) for label, own in by.items())) if name in integers else by
            for name, by in report.groups.items()
        }
        labels = {name: typed_labels(own.tolist()) if name in integers else own for name, own in report.labels.items()}
        report = report.with_groups(groups, labels, {name: name for name in labels})
    ids = report.user_ids
    if ids is None or not report.has_values:
        return Evaluated(report, {}, {})
    columns = [ids] if len(users) == 1 else [as_labels(list(column)) for column in zip(*ids.tolist(), strict=True)]
    return Evaluated(report, dict(zip(users, columns, strict=True)), dict(report.labels))


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
    if not isinstance(name, Place):
        return name
    file = files.get(TABLES.get(name.side, "log"))
    if file is None:
        return name
    if name.column is not None:
        return Text(file.path, f": column {name.column!r}") if name.column in file.names.values() else name
    if name.side == ITEMS:
        return file.path
    known = next((role for role in ROLES.get(name.side, ()) if role in file.names), None)
    return name if known is None else Text(file.at(known), f": {known}s")

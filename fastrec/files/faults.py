"""Errors and reports that use the names of files: paths, columns, rows from 1."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from fastrec.exceptions import FastrecError
from fastrec.files.job import Evaluated
from fastrec.files.labels import LabelsOfUsers
from fastrec.files.tables import File
from fastrec.inputs.users import as_labels
from fastrec.report.report import Report

__all__ = ["finished", "named_as_in"]


def finished(report: Report, users: Mapping[str, str], labels: LabelsOfUsers) -> Evaluated:
    """Return the report with groups named as in the files, and the columns of its users."""
    groups = {} if labels.names else report.groups
    for nth, (name, strings) in enumerate(zip(labels.names, labels.strings, strict=True)):
        by_code = report.groups.get(f"by{nth}", {})  # a report without users has no groups
        spelled = strings.tolist()
        found = {spelled[int(code)]: estimates for code, estimates in by_code.items()}
        if found:
            groups[name] = dict(sorted(found.items()))
    ids = report.user_ids
    if ids is None or not report.has_values:
        return Evaluated(report.with_groups(groups), {}, {})
    columns = [ids] if len(users) == 1 else [as_labels(list(column)) for column in zip(*ids.tolist(), strict=True)]
    of_users = labels.of_users() if labels.names else dict(report.labels)
    report = report.with_groups(groups, of_users)
    return Evaluated(report, dict(zip(users.values(), columns, strict=True)), of_users)


@contextlib.contextmanager
def named_as_in(files: Mapping[str, File], *, streamed: bool) -> Iterator[None]:
    """Rewrite errors of the block so that they name files, their columns, and rows from 1."""
    tables = {"recs": "recs", "truth": "truth", "exclude": "seen", "the frame": "log"}

    def name_column(found: re.Match[str]) -> str:
        file = files[tables[found[1]]]
        return file.at(found[2]) if found[2] in file.names else found[0]

    def name_values(found: re.Match[str]) -> str:
        file = files.get("log")
        if file is None:
            return found[0]
        label, score = ("target", "prediction") if "target" in file.names else ("label", "score")
        role = {"scores": score, "sample_weight": "weight"}.get(found[1], label)
        return f"{file.at(role)}: {role}s"

    try:
        yield
    except FastrecError as error:
        message = re.sub(rf"\b({'|'.join(tables)}) column '(\w+)'", name_column, str(error))
        message = re.sub(r"^(labels|truth gains|scores|sample_weight)\b(?= must\b)", name_values, message)
        if streamed:
            message = re.sub(r" (?:at|in) row \d+", "", message)
        else:
            named = re.search(rf"\b({'|'.join(tables)}) column", str(error))
            file = files.get(tables[named[1]] if named else "log")
            message = re.sub(r"\b(?:at|in) row (\d+)", lambda at: f"in {_place(file, int(at[1]))}", message)
        raise type(error)(message) from None


def _place(file: File | None, position: int) -> str:
    return f"row {position + 1}" if file is None else file.source.place(position)

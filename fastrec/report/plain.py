"""A report as plain data: scalars by name, rows, numbers that JSON can hold."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrec._version import __version__
from fastrec.checks import shown_url
from fastrec.exceptions import InputError
from fastrec.report.estimates import Estimate, GroupEstimate

Label = str | int
SCALAR_CHARACTERS = {"@": "_at_", "(": ".", "=": "-", ")": "", "[": "", "]": "", "+": "", " ": ""}
OTHER_FORMATS = {  # by ending: the method that writes the format, and its name
    ".txt": ("str", "a table"),
    ".json": ("to_json", "JSON"),
    ".csv": ("to_rows", "CSV"),
    ".md": ("to_markdown", "Markdown"),
    ".html": ("to_html", "a page"),
    ".tex": ("to_latex", "LaTeX"),
}


def refuse_ending(path: str, *, by_command: bool = False) -> None:
    """Raise InputError if the path of a saved report has the ending of another format; name the method for that."""
    ending = os.path.splitext(path)[1].lower()
    if ending in OTHER_FORMATS:
        method, form = OTHER_FORMATS[ending]
        how = f"-o FILE{ending}" if by_command else f"call {method}"
        why = f": a saved report cannot end in {ending}: use .fastrec, or {how} to write {form}"
        raise InputError(shown_url(path), why)


def scalar_name(metric: str) -> str:
    """Return a canonical metric name in letters, digits and ``_ - .``; see `Report.to_scalars`."""
    in_tables = re.sub(r"\[[^\]]*\]", lambda table: table[0].replace(", ", "_"), metric)
    text = in_tables.replace(", ", ".")
    return "".join(
        SCALAR_CHARACTERS.get(
            character, character if re.match(r"[\w.-]", character, re.ASCII) else f"_x{ord(character):x}_"
        )
        for character in text
    )


def rows_of(estimates: Mapping[str, Estimate]) -> list[dict[str, Any]]:
    """Return a row for each estimate; see `Report.to_rows`."""
    rows = []
    for metric, estimate in estimates.items():
        low, high = estimate.interval()
        row = {"metric": metric, "mean": estimate.mean, "std_error": estimate.std_error, "low": low, "high": high}
        rows.append(row | {"users": estimate.users, "note": estimate.note})
    return rows


def group_rows(grouping: str | None, label: Label | None, estimates: Mapping[str, Estimate]) -> list[dict[str, Any]]:
    """Return the rows of a group. Rows over all users have a NaN difference, as nobody is left to compare with."""
    rows = []
    for row, estimate in zip(rows_of(estimates), with_rest(estimates).values(), strict=True):
        gap, low, high = estimate.difference()
        row |= {"grouping": grouping, "group": label}
        rows.append(row | {"difference": gap, "difference_low": low, "difference_high": high})
    return rows


def with_rest(estimates: Mapping[str, Estimate]) -> dict[str, GroupEstimate]:
    """Return estimates as group estimates. If nothing is known of the other users, the rest is NaN."""
    return {
        name: estimate if isinstance(estimate, GroupEstimate) else GroupEstimate(*estimate)
        for name, estimate in estimates.items()
    }


def plain_data(value: object) -> Any:
    """Return data that strict JSON can hold; `Report.to_dict` says how it writes NaN and infinities."""
    if isinstance(value, Estimate):
        rest = {"rest": value.rest} if isinstance(value, GroupEstimate) else {}
        value = value._asdict() | dict(zip(("low", "high"), value.interval(), strict=True)) | rest
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        plain = {str(key): plain_data(item) for key, item in value.items()}
        if len(plain) < len(value):
            raise InputError(f"two of these labels become the same string: {list(value)}")
        return plain
    if isinstance(value, list | tuple):
        return [plain_data(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plain_document(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result has for JSON: schema 1, the version of fastrec, and its content as plain data."""
    return {name: plain_data(value) for name, value in {"schema": 1, "fastrec": __version__, **content}.items()}


def number_of(value: Any) -> float:
    """Return the number that `plain_data` wrote."""
    return math.nan if value is None else float(value)

"""Hints about columns of files that no argument names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from fastrec.evaluation.lists import ListEvaluation
from fastrec.exceptions import FastrecError, Text
from fastrec.files.columns import ListColumns, users_of
from fastrec.files.formats.base import holds_strings
from fastrec.files.job import FileJob
from fastrec.files.reader import TableReader
from fastrec.files.text_values import as_numbers
from fastrec.files.types import row_codes
from fastrec.inputs.arrow import is_numeric, read_numbers
from fastrec.inputs.findings.columns import (
    FIRST_ROWS,
    FirstRows,
    LeftOpen,
    evidence_of_columns,
    evidence_of_slates,
    finite,
    hints_of_columns,
)
from fastrec.inputs.findings.evidence import Evidence, findings_of
from fastrec.inputs.sides import SIDES
from fastrec.inputs.strings import decoded

Array = np.ndarray[Any, Any]
SAMPLED_FILES = 64


def hints_of_lists(
    job: FileJob[ListColumns], evaluation: ListEvaluation, readers: Mapping[str, TableReader]
) -> tuple[str, ...]:
    """Return hints about columns of lists and truth that no argument names."""
    columns, lists, truth = job.columns, readers["recs"], readers["truth"]
    ids, used = (columns.users, (columns.item,)), {*columns.users, columns.item, *columns.by}
    role, name = SIDES["recs"].number_column(lists.opened.columns, lists.listed.__contains__)
    ungraded = "gain" not in truth.names and evaluation.settings["min_gain"] != "any"
    left = LeftOpen(not {"rank", "score"} & {*lists.names}, ungraded, columns.gain is None)
    evidence: list[Evidence] = []

    def has_gains(name: str) -> bool:
        numbers = _first_rows(truth, ()).numbers([name])
        return name in numbers and bool((numbers[name] != 1).any())

    folders = {unquote(key) for keys in lists.opened.files.keys for key in keys} - used - {name}
    if lists.opened.columns == columns and not lists.has_lists(columns.item):  # else the format orders lists
        evidence += evidence_of_columns(lists.listed, used | folders, role, name, _first_rows(lists, ids))
    for partition in sorted(folders):
        evidence.append(_evidence_of_folders(lists, columns, partition))
    hints = [*hints_of_columns(lists.listed, truth.listed, used, left, has_gains)]
    return (*(finding.text for finding in findings_of(evidence)), *hints)


def hints_of_log(log: TableReader) -> tuple[str, ...]:
    """Return hints about unused columns of a log of slates."""
    used = log.opened.columns.roles("log", "", log.listed)
    if users_of(used) != ("slate",) or "rank" in used:
        return ()
    evidence = evidence_of_slates(log.listed, {*used.values()}, _first_rows(log, [(used["slate"],)]))
    return tuple(finding.text for finding in findings_of(evidence))


def _first_rows(reader: TableReader, ids: Sequence[Sequence[str]]) -> FirstRows:
    """Return readers of the first rows of files; each of `ids` are columns that make one id together."""

    def numbers(columns: Sequence[Any]) -> dict[Any, Array]:
        found: dict[Any, Array] = {}
        for name in columns:
            with contextlib.suppress(FastrecError, *reader.format.damages()):  # an unused column may be damaged
                values = reader.first_rows([name], FIRST_ROWS).column(name)
                found[name] = _as_floats(values, name)
        return finite(found)

    def codes() -> list[Array]:
        return [row_codes([reader.first_rows(list(names), FIRST_ROWS)], names)[0] for names in ids]

    return FirstRows(codes, numbers)


def _as_floats(values: Any, name: str) -> Array:
    """Return numbers, booleans, or strings that spell them, as float64."""
    import pyarrow as pa

    if holds_strings(values.type):
        plain = [decoded(chunk).cast(pa.string()) for chunk in values.chunks]
        values = pa.chunked_array([as_numbers(each, pa.float64(), Text(name), "", "") for each in plain], pa.float64())
    if values.null_count or not (is_numeric(values) or pa.types.is_boolean(values.type)):
        return np.full(1, np.nan)
    return read_numbers(values, name).astype(np.float64)


def _evidence_of_folders(reader: TableReader, columns: ListColumns, partition: str) -> Evidence:
    """Return how many users have lists in several folders of a Hive partition, from the first rows of some files.

    None have if the folder follows from the item, as one of categories does.
    """
    names = [*columns.users, columns.item, partition]
    n_files = len(reader.heads)
    some = range(0, n_files, -(-n_files // SAMPLED_FILES))
    rows = reader.first_rows(names, FIRST_ROWS // len(some), some)
    users, items, folders = (row_codes([rows], own)[0] for own in (columns.users, [columns.item], [partition]))
    several, n_users = _in_several(users, folders)
    apart, _ = _in_several(items, folders)
    if len(np.unique(items)) < len(items) and not apart:
        several = 0
    return Evidence("several_lists", several, n_users, (), partition)


def _in_several(codes: Array, folders: Array) -> tuple[int, int]:
    """Return how many codes are in several folders, and how many there are."""
    pairs = np.unique(np.stack([codes, folders], 1), axis=0)
    _, counts = np.unique(pairs[:, 0], return_counts=True)
    return int((counts > 1).sum()), len(counts)

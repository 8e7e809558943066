"""Hints about files: ids that do not match, with examples, and columns that no argument names."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from fastrec.evaluation.lists import Evaluator
from fastrec.files.columns import ListColumns, SlateColumns
from fastrec.files.database import run
from fastrec.files.formats.base import Source, one_row
from fastrec.files.tables import BOOLEANS, open_database
from fastrec.inputs.findings.columns import FIRST_ROWS, columns_to_look_at, evidence_of_columns, evidence_of_slates
from fastrec.inputs.findings.evidence import Evidence, findings_of
from fastrec.inputs.hints import LeftOpen, hints_of_columns
from fastrec.inputs.sides import SIDES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

from fastrec.files.job import FileJob

__all__ = [
    "OpenSides",
    "hints_of_lists",
    "hints_of_log",
]

Array = np.ndarray[Any, Any]
SAMPLE = 1000


class OpenSides(NamedTuple):
    """Lists and truth, open to look at columns that no argument names."""

    con: DuckDBPyConnection
    recs: Source
    truth: Source


def hints_of_lists(
    job: FileJob[ListColumns],
    evaluator: Evaluator,
    roles: Mapping[str, Collection[str]],
    listed: Mapping[str, Sequence[str]],
    sides: OpenSides | None = None,
) -> tuple[str, ...]:
    """Return hints about columns of lists and truth that no argument names.

    `roles` are those of the used columns of each file, and `listed` all its columns. They mostly show that there is
    nothing to hint at; then no database opens the files if none has opened them as `sides`.
    """
    if "truth" not in roles:
        return ()
    columns, lists = job.columns, job.opened["recs"]
    ids, used = (columns.users, (columns.item,)), {*columns.users, columns.item, *columns.by}
    role, name = SIDES["recs"].number_column(lists.columns, listed["recs"].__contains__)
    ungraded = "gain" not in roles["truth"] and evaluator.settings["min_gain"] != "any"
    left = LeftOpen(not {"rank", "score"} & {*roles["recs"]}, ungraded, columns.gain is None)
    evidence: list[Evidence] = []
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened() -> OpenSides:
            if sides is not None:
                return sides
            con = stack.enter_context(open_database(job.resources.n_threads))
            return OpenSides(con, lists.source(con), job.opened["truth"].source(con))

        def has_gains(name: str) -> bool:
            _, _, numbers = _first_rows(opened().con, opened().truth, ids, [name])
            return name in numbers and bool((numbers[name] != 1).any())

        format_decides = lists.columns != columns  # what orders lists
        if wanted := () if format_decides else columns_to_look_at(listed["recs"], used, role, name):
            evidence += evidence_of_columns(*_first_rows(opened().con, opened().recs, ids, wanted), role, name)
        for partition in sorted({unquote(key) for keys in lists.files.keys for key in keys} - used - {name}):
            evidence.append(_evidence_of_folders(opened().con, opened().recs, columns, partition))
        hints = [*hints_of_columns(listed["recs"], listed["truth"], used, left, has_gains)]
    return (*(finding.text for finding in findings_of(evidence)), *hints)


def _evidence_of_folders(con: DuckDBPyConnection, recs: Source, columns: ListColumns, partition: str) -> Evidence:
    """Return how many of some users have lists in several folders of a Hive partition.

    None have if the folder follows from the item, as one of categories does.
    """
    who = ", ".join(recs.columns[user][0] for user in columns.users)
    item, folder, rows = recs.columns[columns.item][0], recs.columns[partition][0], recs.whole_sql
    some = f"SELECT DISTINCT {who} FROM {rows} LIMIT {SAMPLE}"
    rows = f"{rows} WHERE ({who}) IN ({some})"
    counts = f"SELECT count(DISTINCT {folder}) AS n FROM {rows} GROUP BY {who}"
    several, n_users = one_row(con, f"SELECT count(*) FILTER (n > 1), count(*) FROM ({counts})")
    items = f"SELECT count(*) > 1 AS again, count(DISTINCT {folder}) > 1 AS apart FROM {rows} GROUP BY {item}"
    again, apart = one_row(con, f"SELECT bool_or(again), bool_or(apart) FROM ({items})")
    several = 0 if again and not apart else several
    return Evidence("several_lists", several, n_users, (), partition)


def _first_rows(
    con: DuckDBPyConnection, source: Source, ids: tuple[Sequence[str], Sequence[str]], names: Sequence[str]
) -> tuple[Array, Array, dict[str, Array]]:
    """Return users and items of the first rows as integers, and the values of the columns that hold numbers only."""
    import duckdb

    keys = [", ".join(f"CAST({source.columns[name][0]} AS VARCHAR)" for name in own) for own in ids]
    hashes = [f"hash({own}) AS id{nth}" for nth, own in enumerate(keys)]
    values = [f"{_number_sql(source, name)} AS v{nth}" for nth, name in enumerate(names)]
    try:
        query = f"SELECT {', '.join([*hashes, *values])} FROM {source.whole_sql} LIMIT {FIRST_ROWS}"
        found = run(con, query).fetchnumpy()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # an unused column may be damaged
        return np.zeros(0, np.int64), np.zeros(0, np.int64), {}
    users, items = (np.unique(found[f"id{nth}"], return_inverse=True)[1] for nth in range(2))
    held = {name: found[f"v{nth}"] for nth, name in enumerate(names)}
    return users, items, {name: np.asarray(own) for name, own in held.items() if not np.ma.is_masked(own)}


def _number_sql(source: Source, name: str) -> str:
    """Return the SQL of the number in a column, null for other values; a boolean is 0 or 1."""
    column, kind = source.columns[name]
    text = f"CAST({column} AS VARCHAR)"
    value = f"TRY_CAST({text} AS DOUBLE)"
    if kind == "BOOLEAN" or name in source.untyped:
        value = f"coalesce({value}, CASE WHEN {text} IN {BOOLEANS} THEN CAST(lower({text}) = 'true' AS DOUBLE) END)"
    return value


def hints_of_log(job: FileJob[SlateColumns], names: Sequence[str]) -> tuple[str, ...]:
    """Return hints about unused columns of a log of slates; `names` are all its columns."""
    used = job.columns.roles("log", "", names)
    wanted = columns_to_look_at(names, {*used.values()}, "rank", None)
    if "user" not in used or "rank" in used or not wanted:
        return ()
    with open_database(job.resources.n_threads) as con:
        slates, _, numbers = _first_rows(con, job.opened["log"].source(con), ([used["user"]], [used["user"]]), wanted)
    return tuple(finding.text for finding in findings_of(evidence_of_slates(slates, numbers)))

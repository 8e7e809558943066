"""Hints about columns of files that no argument names."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from fastrec.evaluation.lists import Evaluator
from fastrec.files.columns import ListColumns, SlateColumns
from fastrec.files.database import run
from fastrec.files.formats.base import Source, one_row
from fastrec.files.tables import BOOLEANS, open_database
from fastrec.inputs.findings.columns import FIRST_ROWS, FirstRows, evidence_of_columns, evidence_of_slates, finite
from fastrec.inputs.findings.evidence import Evidence, findings_of
from fastrec.inputs.hints import LeftOpen, hints_of_columns
from fastrec.inputs.sides import SIDES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

from fastrec.files.job import FileJob

__all__ = ["OpenSides", "hints_of_lists", "hints_of_log"]

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
            numbers = _first_rows(lambda: (opened().con, opened().truth), ()).numbers([name])
            return name in numbers and bool((numbers[name] != 1).any())

        folders = {unquote(key) for keys in lists.files.keys for key in keys} - used - {name}
        if lists.columns == columns:  # else the format decides what orders lists
            rows = _first_rows(lambda: (opened().con, opened().recs), ids)
            evidence += evidence_of_columns(listed["recs"], used | folders, role, name, rows)
        for partition in sorted(folders):
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


def _first_rows(opened: Callable[[], tuple[DuckDBPyConnection, Source]], ids: Sequence[Sequence[str]]) -> FirstRows:
    """Return readers of a file; each of `ids` are columns that make one id together."""

    def read(columns: Mapping[Any, str]) -> dict[Any, Array]:
        import duckdb

        con, source = opened()
        values = [f"{sql} AS v{nth}" for nth, sql in enumerate(columns.values())]
        try:
            found = run(con, f"SELECT {', '.join(values)} FROM {source.whole_sql} LIMIT {FIRST_ROWS}").fetchnumpy()
        except duckdb.InterruptException:
            raise
        except duckdb.Error:  # an unused column may be damaged
            return {}
        held = {name: found[f"v{nth}"] for nth, name in enumerate(columns)}
        return {name: np.asarray(own) for name, own in held.items() if not np.ma.is_masked(own)}

    def numbers(columns: Sequence[Any]) -> dict[Any, Array]:
        return finite(read({name: _number_sql(opened()[1], name) for name in columns})) if columns else {}

    def codes() -> list[Array]:
        columns = opened()[1].columns
        texts = [", ".join(f"CAST({columns[name][0]} AS VARCHAR)" for name in own) for own in ids]
        found = read({nth: f"hash({text})" for nth, text in enumerate(texts)})
        return [np.unique(found[nth], return_inverse=True)[1] for nth in range(len(ids))]

    return FirstRows(codes, numbers)


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
    if "user" not in used or "rank" in used:
        return ()
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened() -> tuple[DuckDBPyConnection, Source]:
            con = stack.enter_context(open_database(job.resources.n_threads))
            return con, job.opened["log"].source(con)

        evidence = evidence_of_slates(names, {*used.values()}, _first_rows(opened, [(used["user"],)]))
        return tuple(finding.text for finding in findings_of(evidence))

"""Hints about files: ids that do not match, with examples, and columns that no argument names."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from fastrec.evaluation.lists import Evaluator
from fastrec.exceptions import Text, joined
from fastrec.files.columns import ListColumns, SlateColumns, users_of
from fastrec.files.database import run
from fastrec.files.formats.base import ROWS_TO_ASK, Source, one_row, quoted
from fastrec.files.tables import BOOLEANS, File, open_database, shortened
from fastrec.files.text import LIKE_NUMBER
from fastrec.inputs.findings.columns import FIRST_ROWS, columns_to_look_at, evidence_of_columns
from fastrec.inputs.findings.evidence import MOST, Evidence, findings_of
from fastrec.inputs.hints import LeftOpen, are_disordered, hints_of_columns, hints_of_slates
from fastrec.inputs.sides import SIDES
from fastrec.report.doubts import NO_USER
from fastrec.report.report import Report

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

from fastrec.files.job import FileJob, roles_of_lists

__all__ = [
    "OpenSides",
    "explain_unmatched_files",
    "explain_unmatched_tables",
    "hints_of_log",
    "hints_of_parquet_columns",
    "hints_of_unused_columns",
    "left_open",
    "sides_apart",
]

Array = np.ndarray[Any, Any]
SAMPLE = 1000
MAX_NUMBER = 64  # bytes of an integer that is looked for in another spelling


class OpenSides(NamedTuple):
    """Lists and truth, open to look at columns that no argument names."""

    con: DuckDBPyConnection
    recs: Source
    truth: Source


def _explain_respelled(con: DuckDBPyConnection, role: str, one: File, other: File) -> list[str]:
    """Explain that integer ids of one file are in the other in another spelling only, such as 007 or 1e+05.

    Return nothing if there are none, or if both files have ids that are no numbers.
    """
    if all(file.names[role] not in file.source.untyped for file in (one, other)):
        return []
    sides = [file for file in (one, other) if _are_numbers(con, role, f"(FROM {quoted(file.table)} LIMIT 1)")]
    if not sides:
        return []
    value = "CASE WHEN TRY_CAST(id AS DOUBLE) = TRY_CAST(id AS HUGEINT) THEN TRY_CAST(id AS HUGEINT) END"
    alone = f"(SELECT id, {value} AS value FROM {{}} ANTI JOIN {{}} USING (id))"
    is_short = f"strlen(CAST({quoted(role)} AS VARCHAR)) <= {MAX_NUMBER}"
    mine, theirs = (f"{_strings_sql(role, file)} WHERE {is_short}" for file in (one, other))
    query = (
        f"WITH mine AS ({mine}), theirs AS ({theirs}) "
        "SELECT count(DISTINCT a.value), min(a.id), arg_min(b.id, (a.id, b.id)) "
        f"FROM {alone.format('mine', 'theirs')} AS a JOIN {alone.format('theirs', 'mine')} AS b USING (value)"
    )
    n, first, second = one_row(con, query)
    if not n or not any(_are_numbers(con, role, quoted(file.table)) for file in sides):
        return []
    where = f"{_kind(role, one)} ids differ in spelling ({n:,} of them): {shortened(first)} in "
    return [Text(where, one.path, f", {shortened(second)} in ", other.path)]


def _kind(role: str, file: File) -> str:
    """Return what ids are called: of users or items, or by their column if several make users."""
    return role if role in ("user", "item") else repr(file.names[role])


def _are_numbers(con: DuckDBPyConnection, role: str, rows: str) -> bool:
    """Return whether all ids of some rows are spelled as numbers."""
    is_number = f"regexp_full_match({quoted(role)}, '{LIKE_NUMBER.pattern}')"
    return one_row(con, f"SELECT count(*) FROM {rows} WHERE NOT {is_number}") == (0,)


def _strings_sql(role: str, file: File) -> str:
    return f"SELECT DISTINCT CAST({quoted(role)} AS VARCHAR) AS id FROM {quoted(file.table)}"


def _show_ids(con: DuckDBPyConnection, role: str, one: File, other: File) -> list[str]:
    """Return an example of the ids of two files, unless one has half of the ids of the other."""
    sample = f"(SELECT id FROM ({_strings_sql(role, one)}) ORDER BY id LIMIT {SAMPLE})"
    (share,) = one_row(con, f"SELECT avg(CAST(id IN ({_strings_sql(role, other)}) AS INTEGER)) FROM {sample}")
    if share >= MOST:
        return []
    examples = joined((Text(_example(con, role, file), " in ", file.path) for file in (one, other)), " and ")
    return [Text(f"{_kind(role, one)} ids look like ", examples)]


def _example(con: DuckDBPyConnection, role: str, file: File) -> str:
    (found,) = one_row(con, f"SELECT min(id) FROM ({_strings_sql(role, file)})")
    return "nothing" if found is None else shortened(found)


def left_open(recs: Collection[str], truth: Collection[str], columns: ListColumns, evaluator: Evaluator) -> LeftOpen:
    """Return what the roles of the used columns leave open: the order, the gains."""
    ungraded = "gain" not in truth and evaluator.settings["min_gain"] != "any"
    return LeftOpen(not {"rank", "score"} & {*recs}, ungraded, columns.gain is None)


def _unmatched(report: Report) -> str | None:
    """Return the role of which the lists have no id of the truth: "user", "item" or None."""
    if report.data["truth_users_with_recs"] == 0:
        return "user"
    return "item" if report.data["truth_items_in_recs"] == 0 else None


def sides_apart(tables: Mapping[str, Any], among: Collection[str]) -> set[str]:
    """Return the sides `among` these of which no user has a list in tables with columns named by role."""
    return {name for name in among if not _share_users(_users_in(tables["recs"]), _users_in(tables[name]))}


def _users_in(table: Any) -> Any:
    """Return the user of each row, as a string if several columns make users."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [table.column(role) for role in users_of(table.column_names)]
    if len(columns) == 1:
        return columns[0]
    strings, separator = [own.cast(pa.large_string()) for own in columns], pa.scalar("\0", pa.large_string())
    return pc.binary_join_element_wise(*strings, separator)


def _share_users(recs: Any, other: Any) -> bool:
    """Return whether two columns have a user in common. Mostly the first rows decide."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.int64() if pa.types.is_integer(other.type) else pa.large_string()
    first = other.slice(0, SAMPLE).cast(kind, safe=False)
    pieces = (recs.slice(at, ROWS_TO_ASK).cast(kind, safe=False) for at in range(0, len(recs), ROWS_TO_ASK))
    if any(pc.any(pc.is_in(piece, value_set=first)).as_py() for piece in pieces):
        return True
    known, rest = pc.unique(recs.cast(kind, safe=False)), other.slice(SAMPLE).cast(kind, safe=False)
    return bool(pc.any(pc.is_in(rest, value_set=known)).as_py())


def explain_unmatched_tables(
    con: DuckDBPyConnection,
    report: Report,
    files: Mapping[str, File],
    apart: Collection[str],
    strings: Collection[str],
    explained: Collection[str],
) -> tuple[str, ...]:
    """Show ids if the lists have no user, or no item, of the truth, or no user of the sides `apart`.

    Explain, too, which integers differ in spelling among ids of the roles `strings`, which are strings. `explained` are
    the roles whose ids in the truth are known to differ.
    """
    import duckdb

    found: list[str] = []
    recs = files["recs"]
    users, role = users_of(recs.names), _unmatched(report)
    if role is not None and recs.rows and files["truth"].rows and role not in explained:
        for each in users if role == "user" else ("item",):
            found += _show_ids(con, each, recs, files["truth"])
    for name in sorted(apart):
        if recs.rows and files[name].rows:
            shown = (ids for each in users for ids in _show_ids(con, each, recs, files[name]))
            found += (Text(f"{NO_USER.format(name)}: ", ids) for ids in shown)
    said = {("truth", role), *(("truth", own) for own in explained), *((name, "user") for name in apart)}
    for each, (name, file) in itertools.product(strings, files.items()):
        own = "user" if each in users else each
        if file is not recs and each in file.names and (name, own) not in said and recs.rows and file.rows:
            with contextlib.suppress(duckdb.OutOfMemoryException):
                found += _explain_respelled(con, each, recs, file)
    return tuple(found)


def explain_unmatched_files(
    report: Report, job: FileJob[ListColumns], apart: Collection[str], explained: Collection[str]
) -> tuple[str, ...]:
    """Do what `explain_unmatched_tables` does, for files that no database has read yet."""
    needed = {"recs", *apart, *(() if _unmatched(report) in (None, *explained) else ("truth",))}
    if len(needed) == 1:
        return ()
    sides = job._replace(opened={table: job.opened[table] for table in job.opened if table in needed})
    with sides.database(roles_of_lists) as loaded:
        return explain_unmatched_tables(loaded.con, report, loaded.files, apart, (), explained)


def hints_of_unused_columns(
    job: FileJob[ListColumns],
    names: tuple[Sequence[str], Sequence[str]],
    left: LeftOpen,
    opened: Callable[[], OpenSides],
) -> tuple[str, ...]:
    """Return hints about columns of lists and truth that no argument names; `opened` opens the files."""

    def has_gains(name: str) -> bool:
        con, _, truth = opened()
        return _has_gains(con, truth, name)

    columns, lists = job.columns, job.opened["recs"]
    used = {*columns.users, columns.item, *columns.by}
    role, name = SIDES["recs"].number_column(lists.columns, names[0].__contains__)
    found: list[str] = []
    format_decides = lists.columns != columns  # what orders lists
    if wanted := () if format_decides else columns_to_look_at(names[0], used, role, name):
        con, recs, _ = opened()
        users, items, numbers = _first_rows(con, recs, (columns.users, (columns.item,)), wanted)
        found = [one.text for one in findings_of(evidence_of_columns(users, items, numbers, role, name))]
    partitions = {unquote(key) for keys in lists.files.keys for key in keys}
    if unused := sorted(partitions - used - {name}):
        con, recs, _ = opened()
        evidence = [_evidence_of_folders(con, recs, columns, name) for name in unused]
        found += [one.text for one in findings_of(evidence)]
    return (*found, *hints_of_columns(*names, used, left, has_gains))


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
    values = [
        f"TRY_CAST(CAST({source.columns[name][0]} AS VARCHAR) AS DOUBLE) AS v{nth}" for nth, name in enumerate(names)
    ]
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


def _has_gains(con: DuckDBPyConnection, truth: Source, name: str) -> bool:
    """Return whether an unused column holds only numbers or booleans, not all 1, in the first rows."""
    import duckdb

    column, kind = truth.columns[name]
    text = f"CAST({column} AS VARCHAR)"
    value = f"TRY_CAST({text} AS DOUBLE)"
    if kind == "BOOLEAN" or name in truth.untyped:
        value = f"coalesce({value}, CASE WHEN {text} IN {BOOLEANS} THEN CAST(lower({text}) = 'true' AS DOUBLE) END)"
    rows = f"SELECT {value} AS value FROM {truth.whole_sql} LIMIT {ROWS_TO_ASK}"
    try:
        numbers, graded = one_row(con, f"SELECT count(*) = count(value), bool_or(value <> 1) FROM ({rows})")
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # an unused column may be damaged
        return False
    return bool(numbers and graded)


def hints_of_parquet_columns(
    job: FileJob[ListColumns], names: tuple[Sequence[str], Sequence[str]], left: LeftOpen
) -> tuple[str, ...]:
    """Return hints about unused columns of Parquet files that no database has read.

    The names of columns mostly show that there is nothing to hint at; then no database is opened.
    """
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened() -> OpenSides:
            con = stack.enter_context(open_database(job.resources.n_threads))
            return OpenSides(con, job.opened["recs"].source(con), job.opened["truth"].source(con))

        return hints_of_unused_columns(job, names, left, opened)


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

        def is_disordered(name: str) -> bool:
            slates, _, numbers = _first_rows(*opened(), ([used["user"]], [used["user"]]), [name])
            indptr = np.append(0, np.cumsum(np.bincount(slates)))
            return name in numbers and are_disordered(numbers[name][np.argsort(slates, kind="stable")], indptr)

        return tuple(hints_of_slates(names, set(used.values()), is_disordered))

"""Why the ids of two files do not match, with examples."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastrec.evaluation.lists import Evaluator
from fastrec.files.columns import ListColumns
from fastrec.files.database import run
from fastrec.files.formats.base import ROWS_TO_ASK, Source, one_row, quoted
from fastrec.files.formats.recognise import recognise
from fastrec.files.formats.sources import open_source
from fastrec.files.paths import find_files, utf8_path
from fastrec.files.tables import File, open_database, short_text
from fastrec.inputs.hints import LeftOpen, are_disordered, hints_of_columns
from fastrec.report.report import Report
from fastrec.runtime.extras import require

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
from typing import TYPE_CHECKING

from fastrec.files.job import FileJob, Opened, roles_of_lists

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "explain_mismatch",
    "hints_of_columns_in",
    "hints_of_files",
    "hints_of_files_columns",
    "hints_of_tables",
    "left_open",
]

SAMPLE = 1000
ENOUGH = 0.5  # of the sample, that match once they are written alike
AS_WRITTEN = "{}"
# what two ways of writing an id may differ in, the smallest change first
CHANGES = (
    ("spaces around them", "trim({})"),
    ("upper and lower case", "lower({})"),
    ("leading zeros", "ltrim({}, '0')"),
    ("a trailing '.0'", r"regexp_replace({}, '\.0+$', '')"),
    ("quotes around them", "trim({}, '\"''')"),
    ("what stands before or after the digits", "ltrim(regexp_replace({}, '[^0-9]', '', 'g'), '0')"),
)


def explain_mismatch(con: DuckDBPyConnection, role: str, one: File, other: File) -> str | None:
    """What tells the ids of one file from those of the other: a difference in writing if one is found, and examples.

    None where most ids are in both files as they are written.
    """
    if _match(con, role, one, other, AS_WRITTEN) is not None:
        return None
    for difference, change in CHANGES:
        found = _match(con, role, one, other, change)
        if found is not None:
            first, second = found
            return (
                f"{role} ids differ in {difference}: {short_text(first)} in {one.path}, "
                f"{short_text(second)} in {other.path}"
            )
    examples = " and ".join(f"{_example(con, role, file)} in {file.path}" for file in (one, other))
    return f"{role} ids are such as {examples}"


def _texts(role: str, file: File) -> str:
    return f"SELECT DISTINCT CAST({quoted(role)} AS VARCHAR) AS id FROM {quoted(file.table)}"


def _match(con: DuckDBPyConnection, role: str, one: File, other: File, change: str) -> tuple[str, str] | None:
    """An example of each file, if most ids of a sample are found in the other once they are changed."""
    sample = f"(SELECT id FROM ({_texts(role, one)}) ORDER BY id LIMIT {SAMPLE})"
    query = (
        f"SELECT count(DISTINCT a.id) / (SELECT count(*) FROM {sample}), min(a.id), arg_min(b.id, a.id) "
        f"FROM {sample} AS a JOIN ({_texts(role, other)}) AS b "
        f"ON {change.format('a.id')} = {change.format('b.id')} AND {change.format('a.id')} <> ''"
    )
    share, first, second = one_row(con, query)
    return (first, second) if share is not None and share >= ENOUGH else None


def _example(con: DuckDBPyConnection, role: str, file: File) -> str:
    (found,) = one_row(con, f"SELECT min(id) FROM ({_texts(role, file)})")
    return "nothing" if found is None else short_text(found)


def left_open(recs: Collection[str], truth: Collection[str], columns: ListColumns, evaluator: Evaluator) -> LeftOpen:
    """What the roles of the columns that are used leave open."""
    ungraded = "gain" not in truth and evaluator.settings["min_gain"] != "any"
    return LeftOpen(not {"rank", "score"} & {*recs}, ungraded, columns.gain is None)


def _unmatched(report: Report) -> str | None:
    """The role of ids of which none of the truth is in the lists."""
    if report.data["truth_users_with_recs"] == 0:
        return "user"
    return "item" if report.data["truth_items_in_recs"] == 0 else None


def hints_of_tables(con: DuckDBPyConnection, report: Report, files: Mapping[str, File]) -> tuple[str, ...]:
    """Why no user, or no item, of the truth is in the lists."""
    role = _unmatched(report)
    if role is None or not (files["recs"].rows and files["truth"].rows):
        return ()
    why = explain_mismatch(con, role, files["recs"], files["truth"])
    return () if why is None else (why,)


def hints_of_files(report: Report, job: FileJob[ListColumns]) -> tuple[str, ...]:
    """The same for files that no database has read yet."""
    if _unmatched(report) is None:
        return ()
    sides = job._replace(paths={table: job.paths[table] for table in ("recs", "truth")})
    with sides.database(roles_of_lists) as loaded:
        return hints_of_tables(loaded.con, report, loaded.files)


def hints_of_files_columns(
    names: tuple[Sequence[str], Sequence[str]], columns: ListColumns, left: LeftOpen, opened: Callable[[], Opened]
) -> tuple[str, ...]:
    """What the columns of lists and truth, given by name, say that nobody named; files are opened to look at values."""

    def is_disordered(role: str, name: str) -> bool:
        con, recs, _ = opened()
        return _is_disordered(con, recs, columns.user, role, name)

    def has_gains(name: str) -> bool | None:
        con, _, truth = opened()
        return _has_gains(con, truth, name)

    used = {columns.user, columns.item, *columns.by}
    return tuple(hints_of_columns(*names, used, left, is_disordered, has_gains))


def _has_gains(con: DuckDBPyConnection, truth: Source, name: str) -> bool | None:
    """Whether a column that nobody asked for holds numbers other than 1, in the first rows; None without numbers."""
    import duckdb

    value = f"TRY_CAST(CAST({truth.columns[name][0]} AS VARCHAR) AS DOUBLE)"
    rows = f"SELECT {value} AS value FROM {truth.sql} LIMIT {ROWS_TO_ASK}"
    try:
        numbers, graded = one_row(con, f"SELECT count(*) = count(value), bool_or(value <> 1) FROM ({rows})")
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # a column that nobody asked for may be damaged
        return None
    return bool(graded) if numbers else None


def _is_disordered(con: DuckDBPyConnection, recs: Source, user: str, role: str, name: str) -> bool:
    """Whether a column tells another order than the rows, of which the first ones are asked."""
    import duckdb

    who, value = recs.columns[user][0], recs.columns[name][0]
    query = (
        f"SELECT hash(CAST({who} AS VARCHAR)) AS who, TRY_CAST(CAST({value} AS VARCHAR) AS DOUBLE) AS value "
        f"FROM {recs.sql} LIMIT {ROWS_TO_ASK}"
    )
    try:
        rows = run(con, query).fetchnumpy()
    except duckdb.InterruptException:
        raise
    except duckdb.Error:  # a column that nobody asked for may be damaged
        return False
    if np.ma.is_masked(rows["value"]):
        return False
    _, users = np.unique(rows["who"], return_inverse=True)
    indptr = np.append(0, np.cumsum(np.bincount(users)))
    return are_disordered(role, np.asarray(rows["value"])[np.argsort(users, kind="stable")], indptr)


def hints_of_columns_in(job: FileJob[ListColumns], left: LeftOpen) -> tuple[str, ...]:
    """The same of Parquet files that no database has read; their names of columns mostly say that there is nothing."""
    parquet = require("pyarrow.parquet", "cli", what="reading files")
    sides = {table: find_files(os.fspath(job.paths[table])) for table in ("recs", "truth")}
    recs, truth = (parquet.read_schema(utf8_path(files.paths[0])).names for files in sides.values())
    with contextlib.ExitStack() as stack:

        @functools.cache
        def opened() -> Opened:
            con = stack.enter_context(open_database(job.resources.n_threads))
            formats = (recognise(files, job.columns.names, job.input_format) for files in sides.values())
            sources = (
                open_source(con, files, format_, job.columns.usual, job.columns.names)
                for files, format_ in zip(sides.values(), formats, strict=True)
            )
            return Opened(con, *sources)

        return hints_of_files_columns((recs, truth), job.columns, left, opened)

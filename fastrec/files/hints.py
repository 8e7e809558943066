"""Why the ids of two files do not match, with examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrec.files.tables import File, one_row, quoted, short_text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["explain_mismatch"]

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

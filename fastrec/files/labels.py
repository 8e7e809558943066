"""Labels of users: from a column of a file, from a file of users, from a mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.exceptions import joined, shortened
from fastrec.files.columns import LABELLED, ColumnError
from fastrec.files.database import run
from fastrec.files.formats.base import one_row, quoted, string_sql
from fastrec.files.tables import File, check_label_type, label_sql, labels_are_strings
from fastrec.inputs.row_groups import MAX_SEGMENTS, refuse_many
from fastrec.inputs.users import NO_LABEL, as_labels

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["LabelsOfUsers", "segments_sql", "typed_labels"]


Array = np.ndarray[Any, Any]


class LabelsOfUsers(NamedTuple):
    """Labels to group users by.

    The table `labels` has the ids of the users and, for each grouping, the code of the label.
    """

    names: tuple[str, ...]  # of the groupings
    strings: tuple[Array, ...]  # of each grouping, by code: integers or strings
    users: Mapping[str, str]  # role -> type in SQL
    con: DuckDBPyConnection | None

    @classmethod
    def make(
        cls, con: DuckDBPyConnection, files: Sequence[File], names: tuple[str, ...], users: Mapping[str, str]
    ) -> LabelsOfUsers:
        """Find the one label of each user in the columns of files; "(none)" for users without one."""
        if not names:
            return cls((), (), users, con)
        files = [file for file in files if file.table in LABELLED]
        ids = ", ".join(f"CAST({quoted(role)} AS {type_}) AS {quoted(role)}" for role, type_ in users.items())
        listed = ", ".join(map(quoted, users))
        parts = []
        for file in files:
            roles = [f"by{nth}" if f"by{nth}" in file.names else None for nth in range(len(names))]
            columns = ", ".join(
                f"{'NULL' if role is None else label_sql(file, role)} AS by{nth}" for nth, role in enumerate(roles)
            )
            parts.append(f"SELECT {ids}, {columns} FROM {quoted(file.table)}")
        ends = ", ".join(f"min(by{nth}) AS low{nth}, max(by{nth}) AS high{nth}" for nth in range(len(names)))
        rows = " UNION ALL ".join(parts)
        run(con, f"CREATE TABLE ends AS SELECT {listed}, {ends} FROM ({rows}) GROUP BY {listed}")
        strings = []
        for nth in range(len(names)):
            _check_one_label(con, nth, [file for file in files if f"by{nth}" in file.names], list(users))
            label = f"coalesce(low{nth}, {string_sql(NO_LABEL)})"
            run(
                con,
                f"CREATE TABLE spellings{nth} AS SELECT label, row_number() OVER (ORDER BY label) - 1 AS code "
                f"FROM (SELECT DISTINCT {label} AS label FROM ends)",
            )
            spelled = [row[0] for row in con.execute(f"SELECT label FROM spellings{nth} ORDER BY code").fetchall()]
            strings.append(as_labels(spelled) if labels_are_strings(con, files, f"by{nth}") else typed_labels(spelled))
        codes = ", ".join(f"spellings{nth}.code AS by{nth}" for nth in range(len(names)))
        joins = " ".join(
            f"JOIN spellings{nth} ON spellings{nth}.label = coalesce(low{nth}, {string_sql(NO_LABEL)})"
            for nth in range(len(names))
        )
        run(con, f"CREATE TABLE labels AS SELECT {listed}, {codes} FROM ends {joins}")
        return cls(names, tuple(strings), users, con)

    @property
    def columns(self) -> list[str]:
        """The columns that hold codes."""
        return [f"by{nth}" for nth in range(len(self.names))]

    def named(self, grouping: str, label: str | int) -> tuple[str, str | int]:
        """Return the name and the label of a group of codes; one of names is as it is."""
        if not self.names:
            return grouping, label
        nth = self.columns.index(grouping)
        found: str | int = self.strings[nth][int(label)].item()
        return self.names[nth], found

    def join(self, select: str, file: File) -> str:
        """Return the SQL that adds the codes of the users' labels to the rows of a file `t`."""
        if not self.names or file.table not in LABELLED:
            return f"{select} FROM {quoted(file.table)} AS t"
        same = " AND ".join(
            f"labels.{quoted(role)} = CAST(t.{quoted(role)} AS {type_})" for role, type_ in self.users.items()
        )
        codes = ", ".join(f"labels.{column}" for column in self.columns)
        return f"{select}, {codes} FROM {quoted(file.table)} AS t JOIN labels ON {same}"

    def of_users(self) -> dict[str, Array]:
        """Return {grouping: label of each user}, users in ascending order."""
        if self.con is None or not self.names:
            return {}
        listed = ", ".join(map(quoted, self.users))
        codes = run(self.con, f"SELECT {', '.join(self.columns)} FROM labels ORDER BY {listed}").fetchnumpy()
        return {
            name: strings[np.asarray(codes[column])]
            for name, strings, column in zip(self.names, self.strings, self.columns, strict=True)
        }


def segments_sql(con: DuckDBPyConnection, file: File) -> list[str]:
    """Return the SQL of the columns to segment rows by: integers, or strings as an enumeration of their labels."""
    picked = []
    for role in (role for role in file.names if role.startswith("row_by")):
        check_label_type(file, role)
        label, column = label_sql(file, role), quoted(role)
        table = f"FROM {quoted(file.table)} WHERE {column} IS NOT NULL"
        found = run(con, f"SELECT DISTINCT {label} {table} LIMIT {MAX_SEGMENTS + 1}").fetchall()
        many = len(found) > MAX_SEGMENTS
        refuse_many(file.at(role), *one_row(con, f"SELECT count(DISTINCT {label}) {table}") if many else (len(found),))
        labels = [spelled for (spelled,) in found]
        is_integer = not labels_are_strings(con, [file], role) and typed_labels(labels).dtype.kind == "i"
        if is_integer or not labels:
            picked.append(f"CAST({column} AS BIGINT) AS {column}")
            continue
        run(con, f"CREATE TYPE {role}_labels AS ENUM (SELECT DISTINCT {label} {table})")
        picked.append(f"CAST({label} AS {role}_labels) AS {column}")
    return picked


def _check_one_label(con: DuckDBPyConnection, nth: int, files: Sequence[File], users: Sequence[str]) -> None:
    """Raise if a user has more than one label: a lowest and a highest one that differ.

    In SQL, as the rows of all files may not fit in memory; rows in memory ask `inputs.grouping.one_per_user`.
    """
    listed = ", ".join(map(quoted, users))
    (count,) = one_row(con, f"SELECT count(*) FROM ends WHERE low{nth} <> high{nth}")
    if not count:
        return
    *user, low, high = one_row(
        con, f"SELECT {listed}, low{nth}, high{nth} FROM ends WHERE low{nth} <> high{nth} ORDER BY {listed} LIMIT 1"
    )
    who = user[0] if len(user) == 1 else tuple(user)
    raise ColumnError(
        joined((file.at(f"by{nth}") for file in files), " and "),
        f": expected one value per user, but user {who!r} has "
        f"{shortened(low)} and {shortened(high)} ({count} such users)",
        role="by",
    )


def typed_labels(strings: list[str]) -> Array:
    """Return labels as integers if all of them are, else as strings."""
    labels = as_labels(strings)
    if labels.dtype == object:  # strings that end in NUL
        return labels
    try:
        integers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return integers if np.array_equal(integers.astype(np.str_), labels) else labels

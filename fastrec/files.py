"""Reads lists, truth and scored logs from files, and writes files that are never half there.

A file is long: one row per user and item. DuckDB reads it, matches the users of both sides and orders the
rows; NumPy arrays come out. Text ids leave here as integer codes in the byte order of the texts, which keeps
`ties="id_desc"` meaningful.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.report import atomic_write
from fastrec.tables import (
    ColumnError,
    Columns,
    File,
    ScoreColumns,
    check_groupings,
    check_path,
    joint_kind,
    load,
    number_sql,
    open_database,
    quoted,
    short_text,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "NO_LABEL",
    "ColumnError",
    "Columns",
    "Logs",
    "ScoreColumns",
    "ScoredLog",
    "output_file",
    "read_logs",
    "read_scores",
]

Array = np.ndarray[Any, Any]
NO_LABEL = "(none)"


class Logs(NamedTuple):
    """What the files hold, as `evaluate` takes it: everywhere the same users, in ascending order of ids."""

    recs: tuple[Array, ...]  # items, indptr and, when the lists are ordered by score, scores
    truth: tuple[Array, ...]  # items, indptr and, when there is a gain column, gains
    user_ids: Array  # int64, or text
    groups: dict[str, Array]  # column -> label of each user
    exclude: tuple[Array, ...] | None  # items, indptr
    item_texts: Array | None  # the text of each item code; None where items are integers


class ScoredLog(NamedTuple):
    """What a scored log holds, as `evaluate_scores` takes it: rows by user in ascending order, else as in the file."""

    path: str
    columns: Mapping[str, str]  # role -> column
    labels: Array  # or targets
    scores: Array  # or predictions
    weights: Array | None
    items: Array | None  # int64
    indptr: Array | None  # None without users
    users: dict[str, Array]  # column -> value of each user, int64 or text
    groups: dict[str, Array]  # column -> label of each user
    places: Array | None  # where in the file each row stands, from 0; None where that is its position here

    @property
    def user_ids(self) -> Array | None:
        """The id of each user: a tuple where several columns make one."""
        if len(self.users) < 2:
            return next(iter(self.users.values()), None)
        return _as_tuples(list(self.users.values()))

    def row(self, position: int) -> int:
        """The number in the file, from 1, of the row at a position."""
        return 1 + (position if self.places is None else int(self.places[position]))


def _as_tuples(columns: list[Array]) -> Array:
    ids = np.empty(len(columns[0]), dtype=object)
    ids[:] = list(zip(*(column.tolist() for column in columns), strict=True))
    return ids


def read_logs(
    recs: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    columns: Columns | None = None,
    *,
    exclude: str | os.PathLike[str] | None = None,
    n_threads: int | None = None,
) -> Logs:
    """Lists, truth and, if given, already seen items from three files.

    The users are those of the lists and of the truth together; one missing in a file has no rows there.
    Users and items of `exclude` that are in neither file play no part.
    """
    columns = columns or Columns()
    paths = {"recs": recs, "truth": truth} | ({} if exclude is None else {"seen": exclude})
    for path in paths.values():
        check_path(os.fspath(path))
    with open_database(n_threads) as con:
        files = {table: load(con, table, os.fspath(path), columns) for table, path in paths.items()}
        if not files["truth"].rows:
            raise InputError(f"{files['truth'].path}: no rows: there is nothing to compare the lists with")
        check_groupings(files, columns)
        user_kind = joint_kind(con, "user", list(files.values()))
        item_kind = joint_kind(con, "item", list(files.values()))
        user_ids, item_texts = _make_codes(con, files, user_kind, item_kind)
        groups = {name: _labels(con, files, f"by{n}", user_ids) for n, name in enumerate(columns.by)}
        return Logs(
            recs=_fetch_recs(con, files["recs"], user_ids, item_kind),
            truth=_fetch(con, files["truth"], len(user_ids), item_kind, value="gain", order="t.rowid"),
            user_ids=user_ids,
            groups=groups,
            exclude=_fetch(con, files["seen"], len(user_ids), item_kind) if "seen" in files else None,
            item_texts=item_texts,
        )


def read_scores(
    path: str | os.PathLike[str], columns: ScoreColumns | None = None, *, n_threads: int | None = None
) -> ScoredLog:
    """Labels and scores (or targets and predictions) from one file, whole."""
    columns = columns or ScoreColumns()
    path = os.fspath(path)
    check_path(path)
    with open_database(n_threads) as con:
        file = load(con, "log", path, columns)
        if not file.rows:
            raise InputError(f"{path}: no rows: there is nothing to evaluate")
        users = _number_users(con, file)
        ids = _as_tuples(list(users.values())) if len(users) > 1 else next(iter(users.values()), np.zeros(0))
        rows = _fetch_rows(con, file, columns.values)
        codes = rows.get("user_code")
        return ScoredLog(
            path=path,
            columns=file.names,
            labels=rows[columns.values[0]],
            scores=rows[columns.values[1]],
            weights=rows.get("weight"),
            items=rows.get("item"),
            indptr=None if codes is None else _pointers(codes, len(ids)),
            users=users,
            groups={name: _labels_of_log(con, file, f"by{n}", ids) for n, name in enumerate(columns.by)},
            places=rows.get("place"),
        )


def _make_codes(
    con: DuckDBPyConnection, files: Mapping[str, File], user_kind: str, item_kind: str
) -> tuple[Array, Array | None]:
    """Make the tables `users` and, for text items, `items` (id, code), with codes in ascending order of ids.

    Returns the ids of users and the texts of items in that order.
    """
    for role, kind in (("user", user_kind), ("item", item_kind)):
        type_ = "BIGINT" if kind == "integer" else "VARCHAR"
        for file in files.values():
            con.execute(f"ALTER TABLE {quoted(file.table)} ALTER {quoted(role)} TYPE {type_}")
    user_ids = _number_ids(con, "user", ("recs", "truth"))
    item_texts = _number_ids(con, "item", ("recs", "truth")) if item_kind == "text" else None
    return user_ids.astype(np.int64 if user_kind == "integer" else np.str_), item_texts


def _number_ids(con: DuckDBPyConnection, role: str, tables: Sequence[str]) -> Array:
    """Make the table `users` or `items` of the ids in some tables; the ids in the order of their codes."""
    # Text compares by bytes here: no collation is set.
    union = " UNION ALL ".join(f"SELECT {quoted(role)} AS id FROM {quoted(table)}" for table in tables)
    con.execute(
        f"CREATE TEMP TABLE {role}s AS SELECT id, row_number() OVER (ORDER BY id) - 1 AS code FROM "
        f"(SELECT DISTINCT id FROM ({union}))"
    )
    return np.asarray(con.execute(f"SELECT id FROM {role}s ORDER BY code").fetchnumpy()["id"])


def _fetch(
    con: DuckDBPyConnection,
    file: File,
    n_users: int,
    item_kind: str,
    *,
    value: str | None = None,
    order: str | None = None,
) -> tuple[Array, ...]:
    """(items, indptr) of a table or, where it has the column `value`, (items, indptr, values)."""
    item = 't."item"' if item_kind == "integer" else "items.code"
    join = "" if item_kind == "integer" else ' JOIN items ON items.id = t."item"'
    picked = f"users.code AS user_code, {item} AS item"
    if value is not None and value in file.names:
        picked += f", {number_sql(con, file, value)} AS value"
    rows = con.execute(
        f'SELECT {picked} FROM {quoted(file.table)} AS t JOIN users ON users.id = t."user"{join} '
        f"ORDER BY users.code{', ' + order if order else ''}"
    ).fetchnumpy()
    arrays = (_narrow(np.asarray(rows["item"], dtype=np.int64)), _pointers(rows["user_code"], n_users))
    return (*arrays, np.asarray(rows["value"])) if "value" in rows else arrays


def _pointers(codes: Array, n_users: int) -> Array:
    """Where the rows of each user begin and end; the codes of users ascend."""
    indptr = np.zeros(n_users + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=n_users), out=indptr[1:])
    return indptr


def _narrow(items: Array) -> Array:
    """int32 where the ids fit: half the memory to read."""
    fits = items.size == 0 or items.max() < 2**31
    return items.astype(np.int32) if fits else items


def _fetch_recs(con: DuckDBPyConnection, file: File, user_ids: Array, item_kind: str) -> tuple[Array, ...]:
    """The lists in rank order; or, where there are scores, with the scores that `evaluate` orders them by."""
    n_users = len(user_ids)
    if "rank" not in file.names:
        return _fetch(con, file, n_users, item_kind, value="score", order="t.rowid")
    order = f"{number_sql(con, file, 'rank')}, t.rowid"
    items, indptr, ranks = _fetch(con, file, n_users, item_kind, value="rank", order=order)
    users = np.repeat(np.arange(n_users), np.diff(indptr))
    twice = np.flatnonzero((ranks[1:] == ranks[:-1]) & (users[1:] == users[:-1]))
    if twice.size:
        first = twice[0]
        user, rank = user_ids[users[first]], ranks[first]
        raise InputError(
            f"{file.at('rank')} holds a rank twice for one user: user {user.item()!r}, rank {rank.item():g} "
            f"({twice.size} such rows); to order by scores, with ties, name the score column"
        )
    return items, indptr


def _labels(con: DuckDBPyConnection, files: Mapping[str, File], role: str, user_ids: Array) -> Array:
    """One label per user from a column of the truth, of the lists or of both; "(none)" where a user has none.

    Labels are integers if every one is an integer, else text.
    """
    having = [file for file in files.values() if role in file.names]
    rows = " UNION ALL ".join(
        f'SELECT "user", CAST({quoted(role)} AS VARCHAR) AS label FROM {quoted(file.table)}' for file in having
    )
    found = con.execute(
        "SELECT min(label) AS low, max(label) AS high "
        f'FROM users LEFT JOIN ({rows}) AS t ON users.id = t."user" GROUP BY users.code ORDER BY users.code'
    ).fetchnumpy()
    return _one_label_each(found, user_ids, " and ".join(file.at(role) for file in having))


def _one_label_each(found: Mapping[str, Array], user_ids: Array, where: str) -> Array:
    """The lowest label of each user, which must be the highest too."""
    low, high = (np.ma.filled(np.ma.asarray(found[name]), NO_LABEL) for name in ("low", "high"))
    differ = np.flatnonzero(low != high)
    if differ.size:
        user = user_ids[differ[0] : differ[0] + 1].tolist()[0]
        raise ColumnError(
            f"{where}: one value per user is wanted, but user {user!r} has {short_text(low[differ[0]])} and "
            f"{short_text(high[differ[0]])} ({differ.size} such users)",
            "by",
        )
    labels = low.astype(np.str_)
    try:
        integers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return integers if np.array_equal(integers.astype(np.str_), labels) else labels


# Scored logs


def _user_roles(file: File) -> list[str]:
    return [role for role in file.names if role.startswith("user")]


def _number_users(con: DuckDBPyConnection, file: File) -> dict[str, Array]:
    """Make the table `users` of the combinations of user columns, with codes in ascending order; their values."""
    roles = _user_roles(file)
    if not roles:
        return {}
    kinds = [_set_kind(con, file, role) for role in roles]
    listed = ", ".join(map(quoted, roles))
    con.execute(
        f"CREATE TEMP TABLE users AS SELECT {listed}, row_number() OVER (ORDER BY {listed}) - 1 AS code "
        f"FROM (SELECT DISTINCT {listed} FROM log)"
    )
    found = con.execute(f"SELECT {listed} FROM users ORDER BY code").fetchnumpy()
    types = (np.int64 if kind == "integer" else np.str_ for kind in kinds)
    return {file.names[role]: np.asarray(found[role]).astype(type_) for role, type_ in zip(roles, types, strict=True)}


def _set_kind(con: DuckDBPyConnection, file: File, role: str) -> str:
    """Make integers or text of the ids of a role; which of the two."""
    kind = joint_kind(con, role, [file])
    type_ = "BIGINT" if kind == "integer" else "VARCHAR"
    con.execute(f"ALTER TABLE {quoted(file.table)} ALTER {quoted(role)} TYPE {type_}")
    return kind


def _join_users(file: File) -> str:
    return "JOIN users ON " + " AND ".join(f"users.{quoted(role)} = t.{quoted(role)}" for role in _user_roles(file))


def _fetch_rows(con: DuckDBPyConnection, file: File, values: tuple[str, str]) -> dict[str, Array]:
    """The columns of a scored log: its values, weight and item; with users also user_code and place, by user."""
    picked = {role: number_sql(con, file, role) for role in (*values, "weight") if role in file.names}
    joins, order = "", ""
    if "item" in file.names:
        picked["item"] = 't."item"'
        if _set_kind(con, file, "item") == "text":
            _number_ids(con, "item", ("log",))
            picked["item"], joins = "items.code", ' JOIN items ON items.id = t."item"'
    if _user_roles(file):
        picked |= {"user_code": "users.code", "place": "t.rowid"}
        joins, order = f"{joins} {_join_users(file)}", "ORDER BY users.code, t.rowid"
    elif joins:
        order = "ORDER BY t.rowid"
    columns = ", ".join(f"{value} AS {quoted(name)}" for name, value in picked.items())
    rows = con.execute(f"SELECT {columns} FROM log AS t{joins} {order}").fetchnumpy()
    return {name: np.asarray(column) for name, column in rows.items()}


def _labels_of_log(con: DuckDBPyConnection, file: File, role: str, user_ids: Array) -> Array:
    """One label per user from a column of a scored log; "(none)" where a user has none."""
    label = f"CAST(t.{quoted(role)} AS VARCHAR)"
    found = con.execute(
        f"SELECT min({label}) AS low, max({label}) AS high FROM log AS t {_join_users(file)} "
        "GROUP BY users.code ORDER BY users.code"
    ).fetchnumpy()
    return _one_label_each(found, user_ids, file.at(role))


@contextlib.contextmanager
def output_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that becomes `path`, whole, when the block ends well; devices are written directly."""
    final = os.path.realpath(path)
    if os.path.isdir(final):
        raise InputError(f"{os.fspath(path)}: is a folder; a file name is wanted")
    special = os.path.exists(final) and not os.path.isfile(final)
    with open(path, "wb") if special else atomic_write(path) as stream:
        yield stream

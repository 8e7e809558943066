"""Tables of items in files, read whole into memory, and counts of the items of a history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.files.columns import OF_ITEM, users_of
from fastrec.files.database import read_table, run
from fastrec.files.formats.base import one_row, quoted
from fastrec.files.tables import File
from fastrec.inputs.arrow import read_ids
from fastrec.inputs.history import HistoryCounts
from fastrec.inputs.items import ItemTable, read_items

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ID_TYPES", "count_history_of", "read_items_of"]

ID_TYPES = {"integer": "BIGINT", "string": "VARCHAR"}  # kind of ids -> type in SQL
LONG_INTEGER = "[+-]?[0-9]{16,}"  # a double may round it
LEADING_ZERO = "[+-]?0[0-9].*"  # in codes, not in numbers


def read_items_of(con: DuckDBPyConnection, file: File, type_: str) -> ItemTable:
    """Return the loaded table of items; `type_` is the SQL type of the ids, which match those of the lists.

    Columns of formats without types hold integers if all values spell integers, floats if all spell numbers, else
    strings.
    """
    if not file.rows:
        raise InputError(file.path, ": a table of items must have at least one row, found none")
    table, item = quoted(file.table), f"CAST({quoted('item')} AS {type_})"
    copies = run(
        con,
        f"SELECT {item}, min(rowid), max(rowid) FROM {table} GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 LIMIT 1",
    ).fetchall()
    for twice, first, last in copies:
        places = f"{file.source.place(first)} and {file.source.place(last)}"
        raise InputError(file.at("item"), f" must have each item once, found {shown(twice)} in {places}")
    roles = {name: role for role, name in file.names.items() if role.startswith(OF_ITEM)}
    wanted = " holds objects or values of several kinds: expected values, or lists of values, of one kind"
    unusable = {
        name: file.source.refusal(name) or wanted
        for name, role in roles.items()
        if name in file.source.unreadable or file.types[role] == "JSON"
    }
    names = [name for name in file.source.columns if name in roles and name not in unusable]  # in the order of the file
    picked = [f"{_value_sql(con, file, roles[name])} AS c{n}" for n, name in enumerate(names)]
    found = read_table(con, f"SELECT {', '.join([f'{item} AS item', *picked])} FROM {table} ORDER BY rowid")
    read = read_items(found.rename_columns([file.names["item"], *names]), file.names["item"])
    faults = {name: InputTypeError(file.at(roles[name]), what) for name, what in unusable.items()}
    return read._replace(columns={**read.columns, **faults})


def count_history_of(con: DuckDBPyConnection, file: File, types: Mapping[str, str]) -> HistoryCounts:
    """Return the users and rows of each item of a loaded history; `types` are the SQL types of ids by role."""
    table = quoted(file.table)
    user, item = (
        ", ".join(f"CAST({quoted(role)} AS {types[role]})" for role in roles)
        for roles in (users_of(file.names), ("item",))
    )
    n_users_sql = f"count(DISTINCT ({user}))"
    query = f"SELECT {item} AS item, {n_users_sql} AS users, count(*) AS n FROM {table} GROUP BY 1 ORDER BY 1"
    found = read_table(con, query)
    (n_users,) = one_row(con, f"SELECT {n_users_sql} FROM {table}")
    users, counts = (found.column(name).to_numpy().astype(np.int64) for name in ("users", "n"))
    return HistoryCounts(read_ids(found.column("item"), file.at("item")), users, counts, n_users, int(counts.sum()))


def _value_sql(con: DuckDBPyConnection, file: File, role: str) -> str:
    """Return the SQL of a column."""
    column = quoted(role)
    if file.names[role] not in file.source.untyped:
        return column
    whole = f"CAST(TRY_CAST(trim({column}) AS BIGINT) AS VARCHAR) = trim({column})"
    inexact = f"regexp_full_match(trim({column}), '{LONG_INTEGER}|{LEADING_ZERO}')"
    number = f"TRY_CAST({column} AS DOUBLE) IS NOT NULL AND NOT {inexact}"
    integers, numbers = one_row(
        con,
        f"SELECT bool_and(coalesce({whole}, false)), bool_and({number}) FROM {quoted(file.table)} "
        f"WHERE {column} IS NOT NULL",
    )
    return f"CAST({column} AS BIGINT)" if integers else f"CAST({column} AS DOUBLE)" if numbers else column

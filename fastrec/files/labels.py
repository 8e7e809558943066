"""Labels of users from a file of users, and labels of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastrec.exceptions import InputTypeError, Place, shown
from fastrec.files.columns import LABELLED, USERS, ColumnError
from fastrec.files.types import plain_column, row_codes
from fastrec.inputs.ids import SPELL_ALIKE

Table = Any  # pyarrow.Table


def with_labels(tables: Mapping[str, Table], users: Sequence[str]) -> dict[str, Table]:
    """Return tables whose rows have the labels of the table "users"; `users` are the columns that make a user."""
    found = dict(tables)
    if USERS in tables:
        found |= {table: _labelled(tables[USERS], rows, users) for table, rows in tables.items() if table in LABELLED}
        del found[USERS]
    return found


def _labelled(labels: Table, rows: Table, users: Sequence[str]) -> Table:
    """Return rows with labels, some of which they may have already: for each user the first known one."""
    import pyarrow as pa
    from pyarrow import compute

    for user in users:
        _common_type(labels.column(user), rows.column(user), f"user ids in {user!r}")  # raises
    known, wanted = map(pa.array, row_codes((labels, rows), users))
    for name in (name for name in labels.column_names if name not in users):
        is_known = labels.column(name).is_valid()
        at = compute.index_in(wanted, known.filter(is_known.combine_chunks()))
        given = labels.column(name).filter(is_known).take(at)
        if name not in rows.column_names:
            rows = rows.append_column(name, given)
        else:
            given, own = _check_same(rows, name, given, users)
            rows = rows.set_column(rows.column_names.index(name), name, compute.coalesce(own, given))
    return rows


def _common_type(of_users: Any, of_rows: Any, what: str) -> Any:
    """Return the type of two columns, integers or strings; raise if they have values of both kinds."""
    import pyarrow as pa
    from pyarrow import types

    columns = of_users, of_rows
    are_integers = [types.is_integer(own.type) for own in columns if own.null_count < len(own)]
    if len({*are_integers}) > 1:
        first, second = ("integers" if own else "strings" for own in are_integers)
        found = f": {what} must be of one type in all files, found {first}, and {second} in the rows"
        raise InputTypeError(Place(USERS), found, SPELL_ALIKE)
    return pa.int64() if any(are_integers) else pa.large_string()


def _check_same(rows: Table, name: str, given: Any, users: Sequence[str]) -> tuple[Any, Any]:
    """Return the labels of the users and those of the rows; raise if a user has one label here, and another there."""
    from pyarrow import compute

    kind = _common_type(given, rows.column(name), f"labels in {name!r}")
    given, labels = plain_column(given, kind), plain_column(rows.column(name), kind)
    wrong = compute.fill_null(compute.not_equal(labels, given), False).to_numpy()  # noqa: FBT003
    if wrong.any():
        at = int(wrong.argmax())
        who = tuple(rows.column(user)[at].as_py() for user in users)
        found = " and ".join(shown(column[at].as_py()) for column in (given, labels))
        whose = f" must agree within a user, but user {who[0] if len(who) == 1 else who!r} has {found}"
        raise ColumnError(Place(USERS, name), whose, role="by")
    return given, labels

"""Which columns of a frame, a file or a table hold what, as users name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fastrec.checks import listed
from fastrec.exceptions import InputError, InputTypeError, shown


class Columns(NamedTuple):
    """Names of the columns of a frame; None takes the column of the usual name if there is one."""

    user: Any = None
    item: str | None = None
    rank: str | None = None
    score: str | None = None
    gain: str | None = None
    propensity: str | None = None
    logged_rank: str | None = None
    subtopic: str | None = None
    label: str | None = None
    by: Any = None
    row_by: Any = None
    item_sep: str | None = None  # what separates ids in a cell of items
    ordered_by: Any = "rank"  # the role that orders lists if no name is given and a frame has both

    def groupings(self) -> list[str]:
        """Return the columns to group users by."""
        return names_of(self.by, "by")

    def row_groupings(self) -> list[str]:
        """Return the columns to segment rows by."""
        return names_of(self.row_by, "row_by")


def user_column(name: Any) -> str:
    """Return the column of users where several cannot make a user together."""
    return "user_id" if name is None else one_name(name, "user")


def names_of(value: Any, argument: str) -> list[str]:
    """Return the columns that an argument names, one or several."""
    names = [] if value is None else [value] if isinstance(value, str) else value
    if argument == "user" and isinstance(names, set | frozenset):
        raise InputTypeError(f"user must be a list of columns, in the order of ids, found the set {shown(names)}")
    names = listed(names, argument) if isinstance(names, Iterable) else [names]
    if not all(isinstance(name, str) for name in names) or (not names and value is not None):
        raise InputTypeError(f"{argument} must be the name of a column or several, found {shown(value)}")
    return names


def refuse_columns(columns: Columns, why: str) -> None:
    """Reject named columns if the input has no columns."""
    for role, name in zip(columns._fields[:-2], columns, strict=False):
        if name is not None:
            raise InputError(f"{role}={shown(name)} names a column, but {why}")
    if columns.item_sep is not None:
        raise InputError(f"item_sep={shown(columns.item_sep)} is about cells of a column, but {why}")


def one_name(name: Any, role: str) -> str:
    """Return the one column that an argument names."""
    if not isinstance(name, str):
        raise InputTypeError(f"{role} must be the name of a column, found {shown(name)}")
    return name

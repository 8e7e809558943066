"""Names of the columns to read from files, by role."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fastrec.checks import suggest_name
from fastrec.exceptions import Argument, FastrecError, InputError, Text
from fastrec.inputs.items import ITEM_ID
from fastrec.inputs.sides import SIDES

USERS, ITEMS = "users", "items"  # tables besides sides and logs: labels of users, columns of items
LABELLED = frozenset((*(side.name for side in SIDES.values() if side.has_users), "log", USERS))  # may have labels
TREC = {4: "TREC judgements", 6: "lines of a TREC run"}  # by the number of columns
MULTIPLE = {"user": "user", "row_by": "row_by", "key": "row_key"}  # role -> argument that may name several columns
OF_ITEM = "column"  # begins the roles of columns of items


def users_of(roles: Iterable[str]) -> tuple[str, ...]:
    """Return the roles of the columns that make users."""
    return tuple(role for role in roles if role.startswith("user"))


class ColumnError(InputError):
    """A column that is missing or cannot be used. `role`: what the column was meant to hold."""

    def __init__(self, *parts: object, role: str = "") -> None:  # a pickled copy gets its role from its state
        super().__init__(*parts)
        self.role = role


class TooLargeError(FastrecError):
    """Rows that do not fit in the memory of a call."""


@dataclass(frozen=True)
class ListColumns:
    """Column names of recommended lists and their truth.

    `users` may name several columns: each combination of their values is then a user.
    `None`: use the column called `rank`, `score` or `gain` if the file has it. The rank column orders the lists, else
    the score column, else the order of rows in the file. A named column takes precedence over one that was only found.
    """

    users: tuple[str, ...] = ("user_id",)
    item: str = "item_id"
    rank: str | None = None
    score: str | None = None
    gain: str | None = None
    propensity: str | None = None
    logged_rank: str | None = None
    subtopic: str | None = None
    item_sep: str | None = None  # what separates ids in a cell of items
    by: tuple[str, ...] = ()
    ordered_by: str = "rank"  # which of `rank` and `score` goes first, if both are found and neither is named
    reads_all: ClassVar[bool] = False  # whether columns without a role are read

    @property
    def usual(self) -> dict[str, str]:
        """{role: column}, also for columns that no file has."""
        roles = ("rank", "score", "gain", "propensity", "logged_rank", "subtopic")
        named = {role: getattr(self, role) for role in roles}
        optional = {role: role if name is None else name for role, name in named.items()}
        return {"user": self.users[0], "item": self.item, **optional}

    @property
    def roles_of_users(self) -> dict[str, str]:
        """{role: column} of the columns that make users."""
        several = {f"user{n}": name for n, name in enumerate(self.users)}
        return several if len(several) > 1 else {"user": self.users[0]}

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        return {*self.usual.values(), *self.users, *self.by}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} for the roles that `table` needs; raise if the file lacks one."""
        wanted = self.roles_of_users
        if table in SIDES:
            role, name = SIDES[table].number_column(self, found.__contains__)
            wanted |= {"item": self.item} | ({} if name is None else {role: name})
            judged = SIDES[table].judgement_column(self, found.__contains__)
            wanted |= {} if judged is None else {SIDES[table].judgement: judged}
        _refuse_trec(wanted, path, found)
        _check_found(wanted, path, found)
        if table in LABELLED:
            wanted |= {f"by{n}": name for n, name in enumerate(self.by) if name in found}
        return wanted


@dataclass(frozen=True)
class RowColumns:
    """Column names of a scored log.

    `users` may name several columns: each combination of their values is then a user. `users=None`: use `user_id` if
    the file has it, else no users. With `ratings`, `label` and `score` hold targets and predictions.
    """

    label: str = "label"
    score: str = "score"
    ratings: bool = False
    users: tuple[str, ...] | None = None
    item: str | None = None
    weight: str | None = None
    by: tuple[str, ...] = ()
    row_by: tuple[str, ...] = ()  # columns with a label per row
    reads_all: ClassVar[bool] = False

    @property
    def usual(self) -> dict[str, str]:
        """{role: column} for the columns of a TREC run."""
        return {"user": "user_id", "item": "item_id" if self.item is None else self.item, "score": self.score}

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        users = ("user_id",) if self.users is None else self.users
        optional = (name for name in (self.item, self.weight) if name is not None)
        return {self.label, self.score, *users, *optional, *self.by, *self.row_by}

    @property
    def values(self) -> tuple[str, str]:
        """The roles of the columns `label` and `score`."""
        return ("target", "prediction") if self.ratings else ("label", "score")

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} for the roles that `table` needs; raise if the file lacks one."""
        users = self.users
        if users is None:  # group labels belong to users, so `by` needs a user column
            users = ("user_id",) if "user_id" in found or self.by else ()
        wanted = {f"user{n}": name for n, name in enumerate(users)}
        if table != USERS:
            wanted |= dict(zip(self.values, (self.label, self.score), strict=True))
            wanted |= {role: name for role, name in (("item", self.item), ("weight", self.weight)) if name is not None}
            wanted |= {f"row_by{n}": name for n, name in enumerate(self.row_by)}
        _check_found(wanted, path, found)
        return wanted | {f"by{n}": name for n, name in enumerate(self.by) if name in found}


@dataclass(frozen=True)
class PairedColumns(RowColumns):
    """Column names of a log with the scores of several models, and of further files with the same rows.

    `others` are the columns of the scores of further models in the only file. `keys` identify a row in all files.
    """

    others: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        return {*super().names, *self.others, *self.keys}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} for the roles that `table` needs; raise if the file lacks one."""
        own = super().roles(table, path, found)
        if table == USERS:
            return own
        _, score = self.values
        wanted = {f"{score}{n}": name for n, name in enumerate(self.others, 1)}
        wanted |= {f"key{n}": name for n, name in enumerate(self.keys)}
        _check_found(wanted, path, found)
        return own | wanted


@dataclass(frozen=True)
class ItemColumns:
    """Columns of a table of items: the ids, and all others."""

    item: str = ITEM_ID
    by: ClassVar[tuple[str, ...]] = ()
    reads_all: ClassVar[bool] = True

    @property
    def usual(self) -> dict[str, str]:
        """{role: column}, also for columns that no file has."""
        return {"item": self.item}

    @property
    def names(self) -> set[str]:
        """The columns that a file must have."""
        return {self.item}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 - as other columns
        """Return {role: column}; raise if the file has no ids. Names may differ in case only, which SQL ignores."""
        item = ITEM_ID if ITEM_ID in found and self.item not in found else self.item
        _check_found({"item": item}, path, found)
        others = sorted(name for name in found if name != item)
        return {"item": item} | {f"{OF_ITEM}{n}": name for n, name in enumerate(others)}


@dataclass(frozen=True)
class ImpressionColumns:
    """Column names of a log of impressions.

    With `query`, its rows are of queries and items. Without, they may be of users, by default of `user_id` if the file
    has it, and of the groups of the columns `groupings`, of which a row may lack a label.
    """

    label: str = "label"
    rank: str = "rank"
    users: tuple[str, ...] | None = None
    query: str | None = None
    item: str = "item_id"
    groupings: tuple[str, ...] = ()
    by: ClassVar[tuple[str, ...]] = ()  # columns with one label per user
    reads_all: ClassVar[bool] = False

    @property
    def usual(self) -> dict[str, str]:
        """{role: column} for the columns of a TREC run."""
        return {"user": "user_id", "item": self.item, "score": "score"}

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        own = ("user_id",) if self.users is None else self.users
        keys = (*own, *self.groupings) if self.query is None else (self.query, self.item)
        return {self.label, self.rank, *keys}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 - as other columns
        """Return {role: column}; raise if the file lacks one. The role of queries is "user"."""
        wanted = {"label": self.label, "rank": self.rank}
        if self.query is not None:
            wanted |= {"query": self.query, "item": self.item}
        else:
            users = self.users
            if users is None:
                users = ("user_id",) if "user_id" in found else ()
            wanted |= {f"user{n}": name for n, name in enumerate(users)}
            wanted |= {f"row_by{n}": name for n, name in enumerate(self.groupings)}
        _check_found(wanted, path, found)
        return {"user" if role == "query" else role: name for role, name in wanted.items()}


@dataclass(frozen=True)
class SlateColumns:
    """Column names of logged slates. `None`: use the column called as its role or `slate_id`, if the file has it.

    Without slates each row is one. `predictions` are the predicted reward of a row, and that of the new policy.
    """

    reward: str = "reward"
    pscore: str = "pscore"
    new_pscore: str = "new_pscore"
    slate: str | None = None
    rank: str | None = None
    predictions: tuple[str, str] | None = None
    user: str | None = None
    baseline_pscore: str | None = None
    item: ClassVar[str | None] = None
    by: ClassVar[tuple[str, ...]] = ()
    reads_all: ClassVar[bool] = False

    @property
    def usual(self) -> dict[str, str]:
        """{role: column}, also for columns that no file has."""
        own = {"reward": self.reward, "pscore": self.pscore, "new_pscore": self.new_pscore}
        predictions = dict(zip(("shown", "expected"), self.predictions or (), strict=False))
        return {**{role: given or usual for role, (given, usual) in self._optional.items()}, **own, **predictions}

    @property
    def _optional(self) -> dict[str, tuple[str | None, str]]:
        return {
            "item": (self.slate, "slate_id"),
            "rank": (self.rank, "rank"),
            "user": (self.user, "user_id"),
            "baseline_pscore": (self.baseline_pscore, "baseline_pscore"),
        }

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        return set(self.usual.values())

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 - as other columns
        """Return {role: column} for the roles that the file has; raise if it lacks one.

        Batches hold whole users: these are "user1" if there are any, and slates are their items, else "user".
        """
        wanted = self.usual
        for role, (given, usual) in self._optional.items():
            if given is None and usual not in found:
                del wanted[role]
        if "item" not in wanted:
            wanted.pop("rank", None)
        _check_found(wanted, path, found)
        renamed = {"user": "user1"} if "user" in wanted else {"item": "user"}
        return {renamed.get(role, role): column for role, column in wanted.items()}


FileColumns = ListColumns | RowColumns | ImpressionColumns | SlateColumns | ItemColumns


def _check_found(wanted: Mapping[str, str], path: str, found: Sequence[str]) -> None:
    for role, name in wanted.items():
        if name not in found:
            kind = role.rstrip("0123456789")
            several = several_names(MULTIPLE[kind], name, found) if kind != role and kind in MULTIPLE else ""
            swapped = "; it has gains, as a truth: the lists come first, are the two swapped?"
            is_truth = kind in ("rank", "score") and "gain" in found
            hint = several or (swapped if is_truth else suggest_name(name, found))
            is_named = {*wanted.values()} & {*found} or "did you mean" in hint
            if len(found) == 1 and (around := re.search(rf"{re.escape(name)}(\W)|(\W){re.escape(name)}", found[0])):
                between = around[1] or around[2]
                hint = f"; if {between!r} separates the columns, pass csv={{'delimiter': {between!r}}} (--delimiter)"
            elif any(map(is_number, map(str, found))) or not is_named:
                hint += "; is this the first row? A file begins with a line of names, such as user_id,item_id,score"
            raise ColumnError(path, f": no column {name!r}", hint, role="" if several else kind)


def several_names(argument: str, name: str, found: Collection[str]) -> str:
    """Return what to add to an error about a missing column whose name lists several with commas; "" for others."""
    names = [own.strip() for own in name.split(",")]
    return Text("; for several pass ", Argument(argument, (names,))) if len(names) > 1 and {*names} <= {*found} else ""


def _refuse_trec(wanted: Mapping[str, str], path: str, found: Sequence[str]) -> None:
    """Raise if a file without the columns begins like TREC, though no filler in its second column tells the format."""
    words = " ".join(map(str, found)).split()
    missing = next((name for name in wanted.values() if name not in found), None)
    if missing is None or len(words) not in TREC or not all(map(is_number, words[3:5])):
        return
    listed = f": no column {missing!r}; its columns are {', '.join(map(repr, found))}; if these are "
    raise ColumnError(path, listed, TREC[len(words)], ", pass ", Argument("input_format", ("trec",)))


def is_number(text: str) -> bool:
    """Return whether a string spells a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

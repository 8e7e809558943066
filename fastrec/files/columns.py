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
NUMBERS = ("rank", "score", "gain", "propensity", "logged_rank", "subtopic")
USUAL = {"item": ITEM_ID, **dict(zip(NUMBERS, NUMBERS, strict=True))}  # {role: column}


def users_of(roles: Collection[str]) -> tuple[str, ...]:
    """Return the roles of the columns that make users, else those of queries or slates, whose rows belong together."""
    kinds = ([role for role in roles if role.startswith(kind)] for kind in ("user", "query", "slate"))
    return tuple(next(filter(None, kinds), ()))


class ColumnError(InputError):
    """A column that is missing or cannot be used. `role`: what the column was meant to hold."""

    def __init__(self, *parts: object, role: str = "") -> None:  # a pickled copy gets its role from its state
        super().__init__(*parts)
        self.role = role


class TooLargeError(FastrecError):
    """Rows that do not fit in the memory of a call."""


class _AnyName(frozenset[str]):
    """The columns of a file that has all that may be read."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class FileColumns:
    """Names of the columns of files.

    `users` may name several columns: each combination of their values is then a user. `users=None`: use `user_id` if
    the file has it, else no users. The columns `by` have one label per user.
    """

    users: tuple[str, ...] | None = None
    item: str | None = None
    by: tuple[str, ...] = ()
    reads_all: ClassVar[bool] = False  # whether columns without a role are read
    in_trec: ClassVar[Sequence[str]] = ("item", "score")  # roles that columns of TREC may have, besides that of users
    multiple: ClassVar[Mapping[str, str]] = MULTIPLE  # {role: argument} that an error about a missing column names

    @property
    def usual(self) -> dict[str, str]:
        """{role: column}, also for columns that no file has."""
        user, *_ = self.users or ("user_id",)
        given = {role: getattr(self, role, None) for role in self.in_trec}
        return {"user": user, **{role: USUAL[role] if name is None else name for role, name in given.items()}}

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        return {*self.wanted(_AnyName()).values(), *self.by}

    def wanted(self, found: Collection[str]) -> dict[str, str]:
        """Return {role: column} for the roles of users; `found` are the columns of a file."""
        names = self.users
        if names is None:  # group labels belong to users, so `by` needs a user column
            names = ("user_id",) if "user_id" in found or self.by else ()
        return _numbered("user", names)

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} for the roles that `table` needs; raise if the file lacks one."""
        wanted = FileColumns.wanted(self, found) if table == USERS else self.wanted(found)
        _check_found(wanted, path, found, self.multiple)
        return wanted | self._labels(found)

    def _labels(self, found: Collection[str]) -> dict[str, str]:
        return {role: name for role, name in _numbered("by", self.by).items() if name in found}


@dataclass(frozen=True)
class ListColumns(FileColumns):
    """Column names of recommended lists and their truth.

    `None`: use the column called `rank`, `score` or `gain` if the file has it. The rank column orders the lists, else
    the score column, else the order of rows in the file. A named column takes precedence over one that was only found.
    """

    users: tuple[str, ...] = ("user_id",)
    item: str = ITEM_ID
    rank: str | None = None
    score: str | None = None
    gain: str | None = None
    propensity: str | None = None
    logged_rank: str | None = None
    subtopic: str | None = None
    item_sep: str | None = None  # what separates ids in a cell of items
    ordered_by: str = "rank"  # which of `rank` and `score` goes first, if both are found and neither is named
    in_trec: ClassVar[Sequence[str]] = tuple(USUAL)
    multiple: ClassVar[Mapping[str, str]] = {}  # some calls of lists take one column of users

    @property
    def names(self) -> set[str]:
        """All columns that may be read."""
        return {*self.usual.values(), *self.users, *self.by}

    def roles(self, table: str, path: str, found: Sequence[str]) -> dict[str, str]:
        """Return {role: column} for the roles that `table` needs; raise if the file lacks one."""
        if table not in SIDES:
            return super().roles(table, path, found)
        role, name = SIDES[table].number_column(self, found.__contains__)
        judged = SIDES[table].judgement_column(self, found.__contains__)
        wanted = self.wanted(found) | _known({"item": self.item, role: name, SIDES[table].judgement: judged})
        _refuse_trec(wanted, path, found)
        _check_found(wanted, path, found, self.multiple)
        return wanted | (self._labels(found) if table in LABELLED else {})


@dataclass(frozen=True)
class RowColumns(FileColumns):
    """Column names of a scored log, or of several with the same rows.

    With `ratings`, `label` and `score` hold targets and predictions. `others` are the columns of the scores of further
    models in the only log. `keys` identify a row in all logs.
    """

    label: str = "label"
    score: str = "score"
    ratings: bool = False
    weight: str | None = None
    row_by: tuple[str, ...] = ()  # columns with a label per row
    others: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def wanted(self, found: Collection[str]) -> dict[str, str]:
        """Return {role: column} for the roles of a log."""
        label, score = ("target", "prediction") if self.ratings else ("label", "score")
        named = {label: self.label, score: self.score, "item": self.item, "weight": self.weight}
        several = _numbered("row_by", self.row_by) | _numbered(score, self.others) | _numbered("key", self.keys)
        return super().wanted(found) | _known(named) | several


@dataclass(frozen=True)
class ItemColumns(FileColumns):
    """Columns of a table of items: the ids, and all others."""

    item: str = ITEM_ID
    reads_all: ClassVar[bool] = True

    def wanted(self, found: Collection[str]) -> dict[str, str]:
        """Return {role: column} for all columns. Names may differ in case only, which SQL ignores."""
        item = ITEM_ID if ITEM_ID in found and self.item not in found else self.item
        return {"item": item} | _numbered(OF_ITEM, sorted({*found} - {item}))


@dataclass(frozen=True)
class ImpressionColumns(FileColumns):
    """Column names of a log of impressions.

    With `query`, its rows are of queries and items. Without, they may be of users, and of the groups of the columns
    `groupings`, of which a row may lack a label.
    """

    label: str = "label"
    rank: str = "rank"
    query: str | None = None
    groupings: tuple[str, ...] = ()

    def wanted(self, found: Collection[str]) -> dict[str, str]:
        """Return {role: column} for the roles of a log."""
        wanted = {"label": self.label, "rank": self.rank}
        if self.query is not None:
            return wanted | {"query": self.query, "item": self.usual["item"]}
        return wanted | super().wanted(found) | _numbered("row_by", self.groupings)


@dataclass(frozen=True)
class SlateColumns(FileColumns):
    """Column names of logged slates. `None`: use the column called as its role or `slate_id`, if the file has it.

    Without slates each row is one. `predictions` are the predicted reward of a row, and that of the new policy.
    """

    reward: str = "reward"
    pscore: str = "pscore"
    new_pscore: str = "new_pscore"
    slate: str | None = None
    rank: str | None = None
    predictions: tuple[str, str] | None = None
    baseline_pscore: str | None = None
    multiple: ClassVar[Mapping[str, str]] = {}

    def wanted(self, found: Collection[str]) -> dict[str, str]:
        """Return {role: column} for the roles that a log has."""
        slate = _named_or_found(self.slate, "slate_id", found)
        rank = None if slate is None else _named_or_found(self.rank, "rank", found)
        baseline = _named_or_found(self.baseline_pscore, "baseline_pscore", found)
        named = {"slate": slate, "rank": rank, "baseline_pscore": baseline}
        rewards = {"reward": self.reward, "pscore": self.pscore, "new_pscore": self.new_pscore}
        predictions = dict(zip(("shown", "expected"), self.predictions or (), strict=False))
        return super().wanted(found) | _known(named) | rewards | predictions


def _named_or_found(name: str | None, usual: str, found: Collection[str]) -> str | None:
    return usual if name is None and usual in found else name


def _numbered(role: str, names: Iterable[str]) -> dict[str, str]:
    return {f"{role}{n}": name for n, name in enumerate(names)}


def _known(named: Mapping[str, str | None]) -> dict[str, str]:
    return {role: name for role, name in named.items() if name is not None}


def _check_found(wanted: Mapping[str, str], path: str, found: Sequence[str], multiple: Mapping[str, str]) -> None:
    for role, name in wanted.items():
        if name not in found:
            kind = role.rstrip("0123456789")
            several = several_names(multiple[kind], name, found) if kind != role and kind in multiple else ""
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

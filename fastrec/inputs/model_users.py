"""The users of a model: their sides, their rows of the model, and items as columns of its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import is_whole
from fastrec.exceptions import Argument, InputError, renaming
from fastrec.inputs.arrays import FlatSide, RawSide, read_side
from fastrec.inputs.arrow import Frame, open_foreign, refuse_other_indexes
from fastrec.inputs.column_names import refuse_columns, user_column
from fastrec.inputs.lists import AboutUsers, JoinedSides, Settings, join_sides, read_given
from fastrec.inputs.models import ModelCall, plain_ids
from fastrec.inputs.ragged import read_only
from fastrec.inputs.sides import READ_SIDES, mixed_forms
from fastrec.inputs.users import Users, check_keys
from fastrec.kernels import models as kernels

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 20
NO_ROWS = kernels.ItemRows(read_only(np.zeros(0, np.int32)), read_only(np.zeros(1, np.int64)))


class ModelColumns:
    """The columns of the scores by item."""

    def __init__(self, codes: Array) -> None:
        self.codes = codes  # the item of each column
        self._order = None if np.array_equal(codes, np.arange(len(codes))) else np.argsort(codes)
        self._ascending = codes if self._order is None else codes[self._order]

    def of(self, side: FlatSide | None) -> kernels.ItemRows:
        """Return the items of users as columns, -1 for items that the model lacks."""
        if side is None:
            return NO_ROWS
        columns = np.empty(len(side.items), np.int32)
        for first in range(0, len(columns), ROWS_AT_ONCE):  # whole columns of 64-bit numbers would take much memory
            items = side.items[first : first + ROWS_AT_ONCE]
            if self._order is None:
                found = np.where((items >= 0) & (items < len(self.codes)), items, -1)
            else:
                at = np.minimum(np.searchsorted(self._ascending, items), len(self.codes) - 1)
                found = np.where(self._ascending[at] == items, self._order[at], -1)
            columns[first : first + ROWS_AT_ONCE] = found
        return kernels.ItemRows(read_only(columns), read_only(side.indptr))


class ModelUsers(NamedTuple):
    """The sides of users, and the row of the model of each user; -1 for users that the model lacks."""

    joined: JoinedSides
    rows: Array
    columns: ModelColumns

    def part(self, at: Array) -> ModelUsers:
        """Return the users at some positions."""
        return self._replace(joined=_part_of_users(self.joined, at), rows=self.rows[at])


def read_users(
    call: ModelCall,
    given: Mapping[str, Any],
    about: AboutUsers,
    settings: Settings,
    known: Mapping[str, Any],
    *,
    keeps_others: bool = True,
) -> ModelUsers:
    """Read the sides of the users of a model, by default also those of users that it lacks, unless rows are chosen."""
    given = dict(given) if call.candidates is None else {**given, "candidates": call.candidates}
    _refuse_other_indexes(call, given)
    given = {name: open_foreign(side, name) for name, side in given.items()}
    given = {name: own._replace(name=name) if isinstance(own, Frame) else own for name, own in given.items()}
    matched = any(isinstance(side, Mapping | Frame) for side in given.values())
    if not any(isinstance(side, Frame) for side in given.values()):
        refuse_columns(about.columns._replace(**dict.fromkeys(about.elsewhere)), "no side of the call is a data frame")
    for role in ("rank", "score"):
        if getattr(about.columns, role) is not None and not isinstance(given.get("reference"), Frame):
            named = Argument(role, (getattr(about.columns, role),))
            raise InputError(named, " names a column of lists: with a model, only a data frame as reference has one")
    chosen = _chosen_rows(call, given, matched=matched)
    names = chosen if call.user_ids is None else call.user_ids[chosen]
    if matched:
        _check_forms(given, names)
        if call.user_ids is None and call.model.n_users is not None:
            _refuse_other_users(given, about, call.model.n_users)
        recs = _users_as_lists(names, given, about)
        with renaming(lambda name: "user_ids" if name == Argument("recs") else name):
            sides, users, evidence = read_given({"recs": recs, **given}, about._replace(user_ids=None), settings)
        assert users.ids is not None
        of_names = dict(zip(names.tolist(), chosen.tolist(), strict=True))
        rows = np.fromiter((of_names.get(user, -1) for user in users.ids.tolist()), np.int64, len(users.ids))
    else:
        given = {name: _as_tuple(read_side(side, name, READ_SIDES[name].numbers)) for name, side in given.items()}
        _check_numbers_of_users(given, len(chosen))
        ids = names if call.user_ids is not None or call.rows is not None else None
        nobody = (np.zeros(0, np.int64), np.zeros(len(chosen) + 1, np.int64))
        sides, users, evidence = read_given({"recs": nobody, **given}, about._replace(user_ids=ids), settings)
        rows = chosen
    sides["recs"] = RawSide(call.item_ids, np.zeros(len(rows) + 1, np.int64), None)
    with renaming(lambda name: "item_ids" if name == Argument("recs") else name):
        joined = join_sides(sides, users, known, evidence)._replace(order="score")
    if not call.has_item_ids:
        _refuse_other_items(joined, call.n_items)
    found = ModelUsers(joined, rows, ModelColumns(joined.sides["recs"].items))
    if "candidates" in joined.sides:
        _check_candidates(found)
    keeps_all = (keeps_others and call.rows is None) or (rows >= 0).all()
    return found if keeps_all else found.part(np.flatnonzero(rows >= 0))


def _part_of_users(given: JoinedSides, at: Array) -> JoinedSides:
    """Return the users at some positions, in this order; the report keeps its own order.

    Their ids are their positions if they have none, so that errors name them.
    """
    users, n_users = given.users, len(given.sides["recs"].indptr) - 1
    sides = {
        name: side.of_users(at) if name in READ_SIDES and len(side.indptr) == n_users + 1 else side
        for name, side in given.sides.items()
        if name != "recs"
    }
    sides["recs"] = given.sides["recs"]._replace(indptr=np.zeros(len(at) + 1, np.int64))
    ids = at if users.ids is None else users.ids[at]
    places = at if users.order is None else np.argsort(users.order)[at]
    order = np.argsort(places) if (places[1:] < places[:-1]).any() else None
    weights = None if users.weights is None else users.weights[at]
    codes, groups = np.unique(users.groups[:, at], return_inverse=True)
    keys = [users.keys[code - 1] for code in codes.tolist()]
    groups = (groups.reshape(users.groups.shape[0], len(at)) + 1).astype(np.int32)
    return given._replace(sides=sides, users=Users(ids, groups, keys, weights, order))


def _refuse_other_indexes(call: ModelCall, given: Mapping[str, Any]) -> None:
    """Raise InputError for Series with another index than the rows of the model, or than other Series."""
    indexed = dict(call.indexed)
    if "model" in indexed and call.rows is not None:
        indexed["model"] = indexed["model"].iloc[call.rows]
    refuse_other_indexes({"model": None, **given, **indexed})


def _check_forms(given: Mapping[str, Any], names: Array) -> None:
    """Raise InputTypeError unless sides that are matched by user are all dicts, or all data frames."""
    for kind, what in ((Mapping, "dicts"), (Frame, "data frames")):
        if any(isinstance(side, kind) for side in given.values()):
            wrong = next((name for name, side in given.items() if not isinstance(side, kind)), None)
            if wrong is not None:
                raise mixed_forms(given, what, wrong)
            if kind is Mapping:
                check_keys({"user_ids": names.tolist(), **given})


def _refuse_other_users(given: Mapping[str, Any], about: AboutUsers, n_users: int) -> None:
    """Raise InputError for users that are no row numbers, if these are the ids of users."""
    for name, side in given.items():
        lowest, highest = _range_of_users(side, about)
        if lowest < 0 or highest >= n_users:
            found = lowest if lowest < 0 else highest
            raise _no_number(f"{name} has user {found}, but", f"{n_users:,} users", "user_ids")


def _range_of_users(side: Any, about: AboutUsers) -> tuple[int, int]:
    """Return the lowest and the highest user of a dict or of a data frame; 0 for ids that other checks reject."""
    if isinstance(side, Mapping):
        return (min(side), max(side)) if side and all(is_whole(type(user)) for user in side) else (0, 0)
    import pyarrow as pa
    from pyarrow import compute

    column = side.read(user_column(about.columns.user), argument="user")
    if not pa.types.is_integer(column.type) or not len(column):
        return 0, 0
    found = compute.min_max(column).as_py()
    return found["min"], found["max"]


def _refuse_other_items(joined: JoinedSides, n_items: int) -> None:
    """Raise InputError for items that are no column numbers, if these are the ids of items."""
    for name, side in joined.sides.items():
        if name != "recs" and len(side.items) and side.items.max() >= n_items:
            at = int((side.items >= n_items).argmax())
            found = f"{_owner(joined, name, at)} has item {joined.names.item(side.items[at])}, but"
            raise _no_number(found, f"{n_items:,} items", "item_ids")


def _check_candidates(users: ModelUsers) -> None:
    """Raise InputError for candidates of users that the model lacks, as for candidates of all users."""
    side, joined = users.joined.sides["candidates"], users.joined
    unknown = users.columns.of(side).columns < 0
    if unknown.any():
        at = int(unknown.argmax())
        item = joined.names.item(side.items[at])
        raise InputError(f"{_owner(joined, 'candidates', at)} must be items of the model, found {item}")


def _owner(joined: JoinedSides, name: str, row: int) -> str:
    """Return the side of a row, and its user if the side has rows of users."""
    indptr = joined.sides[name].indptr
    if name not in READ_SIDES or len(indptr) != len(joined.sides["recs"].indptr):
        return "history" if name == "counts" else name
    return f"{name} of user {joined.names.user(int(np.searchsorted(indptr, row, side='right')) - 1)}"


def _no_number(found: str, known: str, argument: str) -> InputError:
    return InputError(
        f"{found} the {known} of the model are numbered from 0: name them with ", Argument(argument, (...,))
    )


def _as_tuple(side: RawSide) -> tuple[Any, ...]:
    return plain_ids(side.items), side.indptr, side.extra


def _chosen_rows(call: ModelCall, given: Mapping[str, Any], *, matched: bool) -> Array:
    """Return the rows of the model that are evaluated, or that sides may name."""
    if call.rows is not None:
        return call.rows
    if call.model.n_users is not None:
        return np.arange(call.model.n_users)
    if call.user_ids is not None:
        return np.arange(len(call.user_ids))
    if matched or not given:
        raise InputError(
            "a function as the model needs ",
            Argument("users", (...,)),
            " or ",
            Argument("user_ids", (...,)),
            ": the users that it scores",
        )
    name = next(iter(given))
    return np.arange(len(read_side(given[name], name, READ_SIDES[name].numbers).indptr) - 1)


def _users_as_lists(names: Array, given: Mapping[str, Any], about: AboutUsers) -> Any:
    """Return lists that name the users of a model, in the form of the other sides."""
    if not any(isinstance(side, Frame) for side in given.values()):
        return dict.fromkeys(names.tolist(), (0,))
    import pyarrow as pa

    user, item = user_column(about.columns.user), about.columns.item
    none = np.zeros(len(names), np.int64)
    ordering = {name: none + 1 for name in (about.columns.rank, about.columns.score) if name is not None}
    return pa.table({**ordering, item or "item_id": none, user: names.tolist()})


def _check_numbers_of_users(given: Mapping[str, tuple[Any, ...]], n_users: int) -> None:
    """Raise InputError unless sides that are matched by position have the users of the model."""
    for name, side in given.items():
        if len(side[1]) - 1 != n_users:
            raise InputError(
                f"the model and {name} must have the same users in the same order, found {n_users} and "
                f"{len(side[1]) - 1} users: choose rows of the model with ",
                Argument("users", (...,)),
                ", or match dicts or data frames with ",
                Argument("user_ids", (...,)),
            )

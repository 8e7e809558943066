"""Parts of the users of all sides, so that one part after the other takes memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.lists import JoinedSides
from fastrec.inputs.sides import READ_SIDES
from fastrec.inputs.users import Users

Array = np.ndarray[Any, Any]


def part_of_users(given: JoinedSides, at: Array) -> JoinedSides:
    """Return the users at some positions, in this order; the report keeps its own order.

    Their ids are their positions if they have none, so that errors name them.
    """
    users, n_users = given.users, len(given.sides["recs"].indptr) - 1
    sides = {
        name: take_rows(side, at) if name in READ_SIDES and len(side.indptr) == n_users + 1 else side
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


def take_rows(side: FlatSide, at: Array) -> FlatSide:
    """Return the rows of the users at some positions; those of neighbours are not copied."""
    if len(at) and at[-1] - at[0] == len(at) - 1 and (np.diff(at) == 1).all():
        return take_neighbours(side, at[0], at[-1] + 1)
    sizes = np.diff(side.indptr)[at]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = np.arange(ends[-1]) + np.repeat(side.indptr[at] - ends[:-1], sizes)
    return FlatSide(side.items[rows], ends, None if side.extra is None else side.extra[rows])


def take_neighbours(side: FlatSide, first: int, last: int) -> FlatSide:
    """Return the rows of the users first..last-1, without a copy."""
    ends = side.indptr[first : last + 1]
    rows = slice(ends[0], ends[-1])
    return FlatSide(side.items[rows], ends - ends[0], None if side.extra is None else side.extra[rows])

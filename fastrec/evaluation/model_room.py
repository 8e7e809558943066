"""How many users of a model are scored and ranked at a time, within a limit of memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fastrec.exceptions import Argument, InputError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.models import Model

DEFAULT_MEMORY = 1 << 29
SHARE_OF_PART = 4  # of the memory: one in so many bytes is for the users that are ranked together
MAX_USERS_OF_BLOCK, MIN_USERS_OF_BLOCK = 128, 8
BYTES_OF_BLOCK = 1 << 26  # of scores: blocks of users get smaller as the catalogue grows
MAX_USERS_OF_PART = 1 << 16
# bytes for a user who is ranked, found by experiment: per item of a whole list, per item of the first ones, per
# relevant item, and per item of another side
OF_WHOLE, OF_FIRST, OF_RELEVANT, OF_OTHER = 64, 40, 160, 16


class Room(NamedTuple):
    """Numbers of users and blocks."""

    users_of_block: int  # it depends on the model and on whether lists are whole only, and so do the bits of scores
    blocks: int  # that may be scored at a time
    users_of_part: int  # that are ranked together: whole blocks
    keeps_lists: bool  # whether the lists of all users have room until a second pass


def users_of_block(model: Model, *, whole: bool = False) -> int:
    """Return the number of users whose scores are computed together."""
    if whole:
        return max(1, min(MAX_USERS_OF_BLOCK, BYTES_OF_BLOCK // (model.n_items * OF_WHOLE)))
    fitting = BYTES_OF_BLOCK // (model.n_items * model.dtype.itemsize) // 8 * 8
    return max(MIN_USERS_OF_BLOCK, min(MAX_USERS_OF_BLOCK, fitting))


def find_room(
    model: Model, sides: Mapping[str, FlatSide], n_users: int, n_listed: int | None, memory: int | None
) -> Room:
    """Return the room for a model. `n_listed` is the number of first items that are kept, None for whole lists.

    Raises InputError if the memory is less than one block takes.
    """
    whole = n_listed is None
    n = users_of_block(model, whole=whole)
    of_user = model.n_items * OF_WHOLE if n_listed is None else min(n_listed, model.n_items) * OF_FIRST
    rows = {name: len(side.items) / max(n_users, 1) for name, side in sides.items() if name != "recs"}
    of_user += int(sum((OF_RELEVANT if name == "truth" else OF_OTHER) * count for name, count in rows.items()))
    of_block = n * model.n_items * model.dtype.itemsize * model.copies
    limit = DEFAULT_MEMORY if memory is None else memory
    of_part = max(limit // SHARE_OF_PART, n * of_user)
    if memory is not None and of_block + of_part > memory:
        needed = -(-max(of_block + n * of_user, of_block * SHARE_OF_PART // (SHARE_OF_PART - 1)) // 10**6)
        raise InputError(
            Argument("memory"), f" must be at least {needed} MB for {model.n_items:,} items, found {memory // 10**6} MB"
        )
    users = min(MAX_USERS_OF_PART, of_part // max(of_user, 1)) // n * n
    keeps = not whole or n_users * of_user <= limit
    return Room(n, max(1, (limit - of_part) // of_block), max(n, users), keeps)

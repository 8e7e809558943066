"""Lists of a model as metrics read them: relevant items at their ranks, and the first items."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.exceptions import Argument, InputError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.lists import Lists, Names
from fastrec.kernels import models as kernels

Array = np.ndarray[Any, Any]
USERS_AT_ONCE = 1 << 16


def place(ranked: kernels.Ranked, lists: Lists, ties: str, names: Names) -> Lists:
    """Return lists of the relevant items that are listed, by rank, with the lengths of the whole lists."""
    listed = np.concatenate([[0], np.cumsum(ranked.above >= 0)])
    indptr = listed[lists.truth_indptr].astype(np.int64)
    items, blocks = np.empty(indptr[-1], lists.truth_items.dtype), np.empty((2, indptr[-1]), np.int32)
    for first in range(0, lists.n_users, USERS_AT_ONCE):  # sorts and products of all users would take much memory
        last = min(first + USERS_AT_ONCE, lists.n_users)
        own, places = _place_some(ranked, lists, ties, names, first, last)
        part = slice(indptr[first], indptr[last])
        items[part] = lists.truth_items[own]
        blocks[:, part] = places
    return lists._replace(rec_items=items, rec_indptr=indptr, blocks=blocks, lengths=ranked.lengths)


def _place_some(
    ranked: kernels.Ranked, lists: Lists, ties: str, names: Names, first: int, last: int
) -> tuple[Array, Array]:
    """Return the rows of the relevant items of users first..last-1 that are listed, by rank, and their blocks."""
    start, end = lists.truth_indptr[first], lists.truth_indptr[last]
    at = start + np.flatnonzero(ranked.above[start:end] >= 0)
    users = np.searchsorted(lists.truth_indptr[first : last + 1], at, side="right") - 1 + first
    above, tied, before = ranked.above[at], ranked.tied[at], ranked.before[at]
    gains = np.ones(len(at)) if lists.gains is None else np.maximum(lists.gains[at], 0.0)
    if ties == "error":
        wrong = (tied > 1) & (gains > 0)
        if wrong.any():
            who = names.user(int(users[wrong.argmax()]))
            rule = Argument("ties", ("error",))
            raise InputError(f"user {who} has a relevant item with the same score as another item, and ", rule)
    elif ties in ("best", "worst"):
        above = above + _places_by_gain(users, above, tied, before, gains, best=ties == "best")
    elif ties != "expected":
        above = above + before
    if ties != "expected":
        tied = np.ones_like(tied)
    order = np.lexsort((before, above, users))  # tied items in the order of the list, as kernels add gains
    return at[order], np.stack([above[order], tied[order]])


def _places_by_gain(users: Array, above: Array, tied: Array, before: Array, gains: Array, *, best: bool) -> Array:
    """Return the places of relevant items among the items with their score, ordered by gain, then by column."""
    block = np.unique(np.stack([users, above]), axis=1, return_inverse=True)[1].reshape(-1)
    has_gain = gains > 0

    def count_earlier(*keys: Array) -> Array:
        """Count the items of the block with a gain that come before each item, in the order of the last key."""
        order = np.lexsort((*keys, block))
        counts = np.empty(len(order), np.int64)
        earlier: Array = np.cumsum(has_gain[order]) - has_gain[order]
        counts[order] = earlier - earlier[np.searchsorted(block[order], block[order])]
        return counts

    n_gains = np.bincount(block, has_gain)[block].astype(np.int64)
    places, others = count_earlier(before, -gains if best else gains), before - count_earlier(before)
    return np.where(has_gain, places, others + n_gains) if best else np.where(has_gain, places + tied - n_gains, others)


def flat_top(top: kernels.FirstItems, codes: Array, k: int) -> FlatSide:
    """Return the first k items of all users, end to end."""
    lengths = np.minimum(top.lengths, k)
    listed = np.arange(top.columns.shape[1]) < lengths[:, None]
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return FlatSide(codes[top.columns[listed]], indptr, top.scores[listed])


def find_tied(top: kernels.FirstItems) -> int | None:
    """Return the first user with equal scores among the first items; None without any."""
    same = (top.scores[:, 1:] == top.scores[:, :-1]) & (np.arange(1, top.scores.shape[1]) < top.lengths[:, None])
    return int(same.any(axis=1).argmax()) if same.any() else None

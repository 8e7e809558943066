"""Scored, labelled rows as flat arrays, grouped by user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.columns import check_numbers, check_row_weights, check_scores
from fastrec.exceptions import InputError
from fastrec.inputs.ids import check_ids
from fastrec.inputs.users import check_groups, check_user_ids, check_weights
from fastrec.ragged import check_indptr

__all__ = ["Rows", "User", "read_rows"]

Array = np.ndarray[Any, Any]
ROWS_WITHOUT_USERS = 4096  # rows that belong to nobody are summed this many at a time
INT8 = np.iinfo(np.int8)


class User(NamedTuple):
    """What is known of users: ids, groups, weights."""

    ids: Array | None
    groups: Array  # int32 (n_groupings, n_users)
    keys: list[tuple[str, str | int]]
    weights: Array | None


class Rows(NamedTuple):
    """Checked rows of users, end to end."""

    labels: Array  # int8 or float64 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    weights: Array | None
    items: Array | None  # int64 (n_rows,): ids in order, or None
    users: User
    grouped: bool  # whether rows belong to users at all
    order: Array | None = None  # where each row was passed, if rows had to be sorted by user

    def where(self, row: int) -> int:
        """Where a row was passed."""
        return row if self.order is None else int(self.order[row])


def read_rows(
    labels: Any,
    scores: Any,
    indptr: Any,
    *,
    user_ids: Any,
    item_ids: Any,
    sample_weight: Any,
    groups: Any,
    user_weight: Any,
) -> Rows:
    """Check all arguments; rows that are not sorted by user come out sorted, in their order within a user."""
    values = check_scores(scores)
    grades = check_labels(labels, len(values))
    weights = None if sample_weight is None else _check_weights(sample_weight, len(values))
    items = None if item_ids is None else _check_items(item_ids, len(values))
    if indptr is not None:
        pointers = check_indptr(indptr, len(values), "indptr")
        n_users = len(pointers) - 1
        codes, keys = check_groups(groups, n_users)
        users = User(check_user_ids(user_ids, n_users), codes, keys, check_weights(user_weight, n_users))
        return Rows(grades, values, pointers, weights, items, users, grouped=True)
    if user_ids is None:
        if groups is not None or user_weight is not None:
            raise InputError("groups and user_weight belong to users: give indptr, or user_ids with one key per row")
        pointers = np.append(np.arange(0, len(values), ROWS_WITHOUT_USERS, dtype=np.int64), len(values))
        codes, keys = check_groups(None, len(pointers) - 1)
        return Rows(grades, values, pointers, weights, items, User(None, codes, keys, None), grouped=False)
    return _group_rows(grades, values, weights, items, user_ids, groups, user_weight)


def _group_rows(
    labels: Array,
    scores: Array,
    weights: Array | None,
    items: Array | None,
    user_ids: Any,
    groups: Any,
    user_weight: Any,
) -> Rows:
    """Rows of one or several keys each, put together by key."""
    n = len(scores)
    ids, codes = _encode_keys(user_ids, n)
    order = None
    if n and (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(ids)))]).astype(np.int64)
    first = pointers[:-1] if order is None else order[pointers[:-1]]
    row_groups, keys = check_groups(groups, n)
    row_weights = check_weights(user_weight, n)
    for at, row in enumerate(row_groups):
        _check_agreement(row, row[first], codes, ids, "groups" if at == 0 else f"groups[{keys[row[0] - 1][0]!r}]")
    if row_weights is not None:
        _check_agreement(row_weights, row_weights[first], codes, ids, "user_weight")
    users = User(
        ids, np.ascontiguousarray(row_groups[:, first]), keys, None if row_weights is None else row_weights[first]
    )

    def sort(array: Array | None) -> Any:
        return array if array is None or order is None else array[order]

    parts = (sort(labels), sort(scores), pointers, sort(weights), sort(items))
    return Rows(*parts, users, grouped=True, order=order)


def _encode_keys(user_ids: Any, n: int) -> tuple[Array, Array]:
    """Distinct keys in ascending order, and the number of each row's key."""
    if not isinstance(user_ids, tuple):
        return _encode_key(user_ids, "user_ids", n)
    if not user_ids:
        raise InputError("user_ids must hold at least one key per row, found an empty tuple")
    parts = [_encode_key(part, f"user_ids[{at}]", n) for at, part in enumerate(user_ids)]
    codes = parts[0][1]
    size = len(parts[0][0])
    for distinct, own in parts[1:]:
        if size * len(distinct) >= 2**63:
            raise InputError("user_ids: too many combinations of keys")
        # codes are made small again after each key, so that their product fits
        present, codes = np.unique(codes * np.int64(len(distinct)) + own, return_inverse=True)
        size = len(present)
    order = np.argsort(codes, kind="stable")
    _, at = np.unique(codes[order], return_index=True)
    ids = np.empty(len(at), dtype=object)
    ids[:] = list(zip(*(distinct[own[order[at]]].tolist() for distinct, own in parts), strict=True))
    return ids, codes


def _encode_key(values: Any, name: str, n: int) -> tuple[Array, Array]:
    array = check_ids(values, name)
    if len(array) != n:
        raise InputError(f"{name} must have one key per row, {n}; found {len(array)}")
    if array.dtype == object:
        array = array.astype(str) if all(isinstance(key, str) and key[-1:] != "\0" for key in array) else array
    if len(array) and array.dtype != object and (array[1:] >= array[:-1]).all():
        starts = np.concatenate([[True], array[1:] != array[:-1]])
        return array[starts], np.cumsum(starts) - 1
    distinct, codes = np.unique(array, return_inverse=True)
    return distinct, codes.astype(np.int64)


def _check_agreement(values: Array, of_user: Array, codes: Array, ids: Array, name: str) -> None:
    wrong = values != of_user[codes]
    if wrong.any():
        at = int(wrong.argmax())
        who = ids[codes[at]]
        raise InputError(
            f"{name} must agree within a user, but rows of user {who.item() if isinstance(who, np.generic) else who!r} "
            f"differ, row {at} from the user's first"
        )


def check_labels(labels: Any, n: int) -> Array:
    """Labels as int8 where they are small whole numbers, else as float64; finite."""
    array = check_numbers(labels, "labels")
    if len(array) != n:
        raise InputError(f"labels must have one label per score, {n}; found {len(array)}")
    if array.dtype == bool:
        return np.ascontiguousarray(array).view(np.int8)
    if array.dtype == np.int8:
        return np.ascontiguousarray(array)
    if n == 0:
        return np.zeros(0, np.int8)
    low, high = array.min(), array.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        at = int((~np.isfinite(array)).argmax())
        raise InputError(f"labels must be finite, found {array[at]} at row {at}")
    if low >= INT8.min and high <= INT8.max:
        small: Array = array.astype(np.int8)
        if array.dtype.kind in "iu" or np.array_equal(small, array):
            return small
    return np.ascontiguousarray(array, dtype=np.float64)


def _check_weights(sample_weight: Any, n: int) -> Array:
    weights = check_row_weights(sample_weight, n)
    if n and not weights.any():
        raise InputError("sample_weight must not be 0 for all rows")
    return weights


def _check_items(item_ids: Any, n: int) -> Array:
    """Ids of items as int64 in the order of the ids."""
    items = check_ids(item_ids, "item_ids")
    if len(items) != n:
        raise InputError(f"item_ids must have one item per row, {n}; found {len(items)}")
    if items.dtype == object:
        return np.unique(items, return_inverse=True)[1].astype(np.int64)
    return items.astype(np.int64)

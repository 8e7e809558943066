"""Scored, labelled rows as flat arrays, grouped by user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import refuse_path, with_article
from fastrec.exceptions import Argument, InputError, InputTypeError, Place, RowNumber, Text
from fastrec.inputs.arrow import (
    Frame,
    Labels,
    list_column,
    open_foreign,
    read_ids,
    read_labels,
    read_numbers,
    refuse_other_indexes,
    split_lists,
)
from fastrec.inputs.column_names import Columns, names_of, one_name
from fastrec.inputs.columns import LABELS, SAMPLE_WEIGHT, SCORES, check_floats, check_numbers, check_row_weights
from fastrec.inputs.frames import FrameRows, spell_labels
from fastrec.inputs.grouping import Grouping, group_rows, one_per_user, order_of_ids
from fastrec.inputs.ragged import check_indptr, longest_row, read_only
from fastrec.inputs.row_groups import RowGroups, read_row_groups
from fastrec.inputs.sides import NamedSides
from fastrec.inputs.users import (
    Keys,
    UserLabels,
    Users,
    check_groups,
    check_labels_of,
    check_order_of_users,
    check_user_ids,
    check_weights,
    encode_key,
    encode_keys,
)
from fastrec.kernels.pairs import count_pairs_of_users
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]
ROWS_WITHOUT_USERS = 4096  # rows without users are summed this many at a time
INT8 = np.iinfo(np.int8)
VARYING = Text(
    "; evaluate_scores takes labels that vary within a user as ",
    Argument("row_groups"),
    " or ",
    Argument("row_by"),
    "; to compare models in a segment, pass its rows alone",
)


class Rows(NamedTuple):
    """Checked rows of users, end to end."""

    labels: Array  # int8 or float64 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    weights: Array | None
    items: Array | None  # int64 (n_rows,): ids in order, or None
    users: Users
    grouped: bool  # whether rows belong to users at all
    grouping: Grouping | None = None  # how rows were grouped by user; None if they were passed so
    segments: tuple[RowGroups, ...] = ()  # labels of rows, by grouping

    def where(self, row: int) -> int:
        """Return the position at which a row was passed."""
        return row if self.grouping is None else self.grouping.origin(row)

    def as_passed(self, values: Array) -> Array:
        """Return values of rows in the order in which rows were passed."""
        if self.grouping is None:
            return values
        out = np.empty_like(values)
        out[self.grouping.take(np.arange(len(values)))] = values
        return out


class RowSides(NamedSides):
    """What providers and accumulators read of scored rows."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows


def read_rows(
    labels: Any,
    scores: Any,
    indptr: Any,
    *,
    user_ids: Any,
    item_ids: Any,
    sample_weight: Any,
    groups: Any,
    row_groups: Any,
    user_weight: Any,
    n_threads: int,
) -> Rows:
    """Check all arguments and group rows by user; rows of a user keep their order.

    Kernels check the scores for NaN, because they read them anyway; see `fastrec.evaluation.row_rules.check_values`.
    """
    of_rows = {LABELS: labels, SCORES: scores, "user_ids": user_ids, "item_ids": item_ids, SAMPLE_WEIGHT: sample_weight}
    refuse_other_indexes({**of_rows, "row_groups": row_groups, "groups": groups, "user_weight": user_weight})
    values = check_floats(scores, SCORES)
    grades = check_labels(labels, len(values))
    weights = None if sample_weight is None else check_row_weights(sample_weight, len(values))
    items = None if item_ids is None else encode_key(item_ids, "item_ids", len(values)).codes.astype(np.int64)
    segments = read_row_groups(row_groups, len(values), n_threads)
    if indptr is not None:
        pointers = check_indptr(indptr, len(values), "indptr")
        n_users = len(pointers) - 1
        codes, keys = check_groups(groups, n_users)
        ids = check_user_ids(user_ids, n_users)
        check_order_of_users(None, ids, groups, user_weight)
        users = Users(ids, codes, keys, check_weights(user_weight, n_users, ids))
        return Rows(grades, values, pointers, weights, items, users, grouped=True, segments=segments)
    if user_ids is None:
        if groups is not None or user_weight is not None:
            raise InputError("groups and user_weight describe users: pass indptr, or user_ids with one key per row")
        pointers = np.append(np.arange(0, len(values), ROWS_WITHOUT_USERS, dtype=np.int64), len(values))
        codes, keys = check_groups(None, len(pointers) - 1)
        nobody = Users(None, codes, keys, None)
        return Rows(grades, values, pointers, weights, items, nobody, grouped=False, segments=segments)
    keys_of_rows = encode_keys(user_ids, len(values))
    grouping = group_rows(keys_of_rows.codes, n_threads)
    return Rows(
        labels=grouping.take(grades),
        scores=grouping.take(values),
        indptr=grouping.indptr,
        weights=None if weights is None else grouping.take(weights),
        items=None if items is None else grouping.take(items),
        users=_users_of_rows(keys_of_rows, grouping, groups, user_weight),
        grouped=True,
        grouping=grouping,
        segments=tuple(own.taken_by(grouping) for own in segments),
    )


def label_users(rows: Rows, labels: UserLabels) -> Rows:
    """Return rows with their users in groups by the labels of user ids."""
    if rows.users.keys:
        raise InputError("groups and by both label users: pass one of them")
    codes, keys = check_groups(labels.of(rows.users.ids), len(rows.indptr) - 1)
    return rows._replace(users=rows.users._replace(groups=codes, keys=keys))


def one_by_one(rows: Rows) -> Rows:
    """Return rows without users, each summed on its own, so that a sum over all is exact wherever they are cut."""
    n = len(rows.scores)
    codes, keys = check_groups(None, n)
    return rows._replace(indptr=np.arange(n + 1, dtype=np.int64), users=Users(None, codes, keys, None))


def read_frame(
    value: Any, columns: Columns, *, sample_weight: Any, user_weight: Any, with_items: bool, n_threads: int
) -> Rows:
    """Check the columns of a data frame of scored rows, long or with one row of lists per user."""
    refuse_path(LABELS, value)
    frame = open_foreign(value, "the frame")
    if not isinstance(frame, Frame):
        raise InputTypeError(
            SCORES, " must be given unless ", LABELS, f" is a data frame, found {with_article(type(value).__name__)}"
        )
    label = "label" if columns.label is None else one_name(columns.label, "label")
    score = "score" if columns.score is None else one_name(columns.score, "score")
    column = frame.read(label, argument="label")
    indptr = split_lists(column, frame.where(label))[1] if list_column(column) else None
    pointers = np.arange(1) if indptr is None else indptr
    rows = FrameRows(frame, Grouping(pointers[:0], pointers, None), lists=indptr is not None)

    def numbers(name: str, argument: str = "") -> Array:
        return read_numbers(rows.read(name, argument), frame.where(name))

    labels, scores = numbers(label), numbers(score, "score")
    weights = None if sample_weight is None else numbers(one_name(sample_weight, "sample_weight"))
    item = None if columns.item is None else one_name(columns.item, "item_id")
    if item is None and with_items and frame.has("item_id"):
        item = "item_id"
    items = None if item is None else read_ids(rows.read(item), frame.where(item), n_threads)
    users, order = _read_users(frame, columns, n_threads), None
    groups: Any = {
        name: read_labels(frame.read_scalars(name, nulls=True), frame.where(name), n_threads)
        for name in columns.groupings()
    }
    if user_weight is not None:
        name = one_name(user_weight, "user_weight")
        user_weight = read_numbers(frame.read_scalars(name), frame.where(name))
    row_groups = {
        name: read_labels(rows.read(name, nulls=True), frame.where(name), n_threads) for name in columns.row_groupings()
    }
    if indptr is not None:  # columns with one value per user
        n_users = len(indptr) - 1
        groups = {name: _spell(own, n_users) for name, own in groups.items()}
        if users is not None:
            keys = encode_keys(users, n_users)
            users, order = keys.name_of(keys.codes), order_of_ids(keys.codes)
    found = read_rows(
        labels,
        scores,
        indptr,
        user_ids=users,
        item_ids=items,
        sample_weight=weights,
        groups=groups or None,
        row_groups=row_groups or None,
        user_weight=user_weight,
        n_threads=n_threads,
    )
    return found if order is None else found._replace(users=found.users._replace(order=order))


def _read_users(frame: Frame, columns: Columns, n_threads: int) -> Any:
    """Return the key of each row, or several keys that identify a user together."""
    if columns.user is None and columns.by is None and not frame.has("user_id"):
        return None
    names = "user_id" if columns.user is None else columns.user
    ids = tuple(read_ids(frame.read_scalars(name), frame.where(name), n_threads) for name in names_of(names, "user"))
    return ids[0] if isinstance(names, str) else ids


def _spell(labels: Labels, n_users: int) -> Array:
    keys = encode_key(labels.ids, "groups", len(labels.ids))
    present = np.ones(n_users, bool) if labels.valid is None else labels.valid
    return spell_labels(keys.name_of(keys.codes), present)


def _users_of_rows(keys: Keys, grouping: Grouping, groups: Any, user_weight: Any) -> Users:
    """Return the users of rows; groups and weights must agree within a user."""
    n = int(grouping.indptr[-1])
    ids = keys.name_of(grouping.ids)
    labels = {}
    named = groups if isinstance(groups, Mapping) else {"group": groups}
    for name, given in named.items() if groups is not None else ():
        where = f"groups[{name!r}]" if isinstance(groups, Mapping) else "groups"
        where = given.where if isinstance(given, Labels) else where
        of_rows, valid = encode_labels(given, where, n)
        found, present = one_per_user(of_rows.codes, valid, grouping, keys.name_of, where, VARYING)
        labels[name] = spell_labels(of_rows.name_of(found[present]), present)
    codes, group_keys = check_groups(labels or None, len(ids))
    by_id = isinstance(user_weight, Mapping)
    weights = check_weights(user_weight, len(ids) if by_id else n, ids, by_row=not by_id)
    if weights is not None and not by_id:
        weights, _ = one_per_user(weights, None, grouping, keys.name_of, "user_weight")
    return Users(ids, codes, group_keys, weights, order_of_ids(grouping.ids))


def encode_labels(labels: Any, where: str, n: int) -> tuple[Keys, Array | None]:
    """Return the label of each row as an integer, and which rows have one."""
    if isinstance(labels, Labels):
        keys = encode_key(labels.ids, where, len(labels.ids))
        return keys._replace(codes=labels.spread(keys.codes)), labels.valid
    labels = check_labels_of(labels, where, n, "row")
    if labels.dtype.kind in "iu" and labels.dtype != np.uint64:  # codes are int64
        return Keys(labels, lambda some: some), None
    distinct, codes = np.unique(labels, return_inverse=True)
    return Keys(codes, lambda some: distinct[some]), None


def check_labels(labels: Any, n: int) -> Array:
    """Return finite labels, as int8 if they are small integers, else as float64."""
    array = check_numbers(labels, LABELS)
    if len(array) != n:
        one, per = Place("label"), Place("score")
        raise InputError(LABELS, " must have one ", one, " per ", per, f", {n}; found {len(array)}")
    if array.dtype == bool:
        return np.ascontiguousarray(array).view(np.int8)
    if array.dtype == np.int8:
        return np.ascontiguousarray(array)
    if n == 0:
        return np.zeros(0, np.int8)
    low, high = array.min(), array.max()
    if not (np.isfinite(low) and np.isfinite(high)):
        at = int((~np.isfinite(array)).argmax())
        raise InputError(LABELS, f" must be finite, found {array[at]}", RowNumber.at(at))
    if low >= INT8.min and high <= INT8.max:
        small: Array = array.astype(np.int8)
        if array.dtype.kind in "iu" or np.array_equal(small, array):
            return small
    return np.ascontiguousarray(array, dtype=np.float64)


def pairs_of_users(indptr: Array, labels: Array, scores: Array, weights: Array | None) -> Array:
    """Return the pairs of rows of each user, (4, n_users), as `count_pairs_of_users` writes them.

    Without weights they are exact, int64. Sums of weights do not depend on the order of the rows of a user.
    """
    users = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keys = (labels, scores, users) if weights is None else (weights, labels, scores, users)
    order = np.lexsort(keys)
    own = np.ones(len(order), np.int64) if weights is None else weights[order].astype(np.float64)
    ordered = labels[order].astype(np.float64)
    longest = longest_row(indptr)
    spare = np.empty(longest), np.empty(longest, own.dtype)
    sums = np.zeros((4, len(indptr) - 1), own.dtype)
    given = (read_only(indptr), ordered, read_only(scores[order].astype(np.float64)), own, spare, sums)
    call(count_pairs_of_users, *given, work=64 * len(order))
    return sums

"""Impressions: rows with a rank, a click or none, and whose or what they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, Place, RowNumber, Text, shown
from fastrec.inputs.arrow import (
    Frame,
    open_foreign,
    read_ids,
    read_labels,
    read_numbers,
    refuse_other_indexes,
)
from fastrec.inputs.column_names import Columns, one_name, refuse_columns
from fastrec.inputs.columns import LABELS, check_classes, check_numbers, check_whole
from fastrec.inputs.ids import Ids
from fastrec.inputs.ragged import read_only
from fastrec.inputs.row_groups import RowGroups, read_row_groups

Array = np.ndarray[Any, Any]
MAX_RANK = 1_000_000  # counts are a table by rank


class Impressions(NamedTuple):
    """Checked rows; `keys` are as passed."""

    clicks: Array  # int8 (n_rows,), 0 or 1
    ranks: Array  # int32 or int64 (n_rows,), not yet known to be from 1 to MAX_RANK
    where: str  # the name of the ranks, for errors
    keys: Mapping[str, Any]  # one value per row
    groups: tuple[RowGroups, ...]


def read_impressions(
    clicks: Any, ranks: Any, keys: Mapping[str, Any], row_groups: Any, columns: Columns, others: Mapping[str, Any]
) -> Impressions:
    """Read rows from arrays, or from the columns of a data frame.

    `keys` are arrays by the name of their argument, None if not given. Of a frame, `others` are the names of the
    columns of the same keys; without, users are read if there are any.
    """
    if isinstance(clicks, str | os.PathLike):
        advice = "the commands fastrec ctr and fastrec position-bias read files"
        raise InputTypeError(Text(Place("labels")), f" must be 1-D data, found a path, {shown(clicks)}: {advice}")
    frame = open_foreign(clicks, "the frame")
    if isinstance(frame, Frame):
        given = [
            name for name, value in {**keys, "ranks": ranks, "row_groups": row_groups}.items() if value is not None
        ]
        if given:
            raise InputError(f"{given[0]} must not be given with a data frame, whose columns hold it: name the column")
        return _read_frame(frame, columns, others)
    refuse_columns(columns, "the labels are no data frame")
    if ranks is None:
        raise InputTypeError(f"ranks must be given unless the labels are a data frame, found {shown(type(clicks))}")
    where = Text(Place("ranks"))
    refuse_other_indexes({LABELS: clicks, where: ranks, **keys, "row_groups": row_groups})
    found = check_classes(clicks)
    numbers = _whole(ranks, where)
    _check_length(found, len(numbers), where)
    groups = read_row_groups(row_groups, len(numbers))
    return Impressions(found, numbers, where, {name: own for name, own in keys.items() if own is not None}, groups)


def _read_frame(frame: Frame, columns: Columns, others: Mapping[str, Any]) -> Impressions:
    label = "label" if columns.label is None else one_name(columns.label, "label")
    rank = "rank" if columns.rank is None else one_name(columns.rank, "rank")
    where = frame.where(rank)

    def ids(name: Any, role: str) -> Ids:
        return read_ids(frame.read_scalars(one_name(name, role), argument=role), frame.where(name))

    keys: dict[str, Ids | tuple[Ids, ...]] = {role: ids(name, role) for role, name in others.items()}
    users = "user_id" if columns.user is None and frame.has("user_id") else columns.user
    if users is not None and not others:
        names = list(users) if isinstance(users, list | tuple) and users else [users]
        keys["user_ids"] = tuple(ids(name, "user") for name in names)
    clicks = check_classes(read_numbers(frame.read_scalars(label, argument="label"), frame.where(label)))
    ranks = _whole(read_numbers(frame.read_scalars(rank, argument="rank"), where), where)
    row_groups = {
        name: read_labels(frame.read_scalars(name, nulls=True), frame.where(name)) for name in columns.row_groupings()
    }
    _check_length(clicks, len(ranks), where)
    return Impressions(clicks, ranks, where, keys, read_row_groups(row_groups, len(ranks)))


def _check_length(clicks: Array, n: int, where: str) -> None:
    if len(clicks) != n:
        raise InputError(Text(Place("labels")), " and ", where, f" must have the same length, found {len(clicks)}, {n}")


def _whole(ranks: Any, where: str) -> Array:
    return read_only(check_whole(check_numbers(ranks, where), where, "be integers from 1"))


def refuse_rank(where: str, ranks: Array, at: int) -> None:
    """Raise InputError about the rank of a row."""
    advice = "; ranks count from 1: add 1" if ranks[at] == 0 else ""
    raise InputError(where, f" must be integers from 1 to {MAX_RANK:,}, found {ranks[at]}", RowNumber.at(at), advice)

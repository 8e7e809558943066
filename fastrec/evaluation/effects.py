"""The second pass over lists or rows: sums of the effects of users on a metric, once all batches were added.

A metric of all lists or rows is a function of those of all users. Its standard error follows from the effect of each
user on it, as the error of a mean follows from users' values (the delta method).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.accumulators import GroupKey
from fastrec.evaluation.engine import sum_exactly
from fastrec.evaluation.state import EffectSums, State
from fastrec.inputs.users import Users

Array = np.ndarray[Any, Any]


class Written(NamedTuple):
    """The effects of the users of a group on some metrics, which rows of an array stand for."""

    factors: dict[int, int]  # by row that has values: an effect is a value times this
    classes: list[int]  # how many users have each class of scored rows; lists have none


Write = Callable[[GroupKey | None, Array, Array], Written]


class GroupEffects(NamedTuple):
    """Sums of the effects of the users of a group of a batch."""

    group: GroupKey | None
    sums: dict[int, tuple[int, int]]  # by position of the metric: of effects, and of their squares
    classes: list[int]  # how many users have each class of scored rows; lists have none


def positions_by_code(codes: Array) -> list[Array]:
    """Return the positions of the users of each group, ascending by its code."""
    if not len(codes):
        return []
    order, ordered = np.arange(len(codes)), codes
    if (codes[1:] < codes[:-1]).any():  # codes of segments of rows ascend
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)


def effects_of_groups(
    places: list[int],
    users: Users,
    codes: Array | None,
    effects: Array,
    write: Write,
    n_threads: int,
) -> list[GroupEffects]:
    """Return the effects of the users of a batch on some metrics: of each group, or of all users without codes.

    `places` are the positions of the metrics, and `effects` has a row for each, float64 (n_places, n_users).
    `write(group, members, effects)` fills the columns of a group.
    """
    members_of = [np.arange(effects.shape[1])] if codes is None else positions_by_code(codes)
    code_of = [0 if codes is None else int(codes[members[0]]) for members in members_of]
    groups = [None if code == 0 else users.keys[code - 1] for code in code_of]
    written = [write(group, members, effects) for group, members in zip(groups, members_of, strict=True)]
    totals = sum_exactly(effects, codes, n_threads) if any(own.factors for own in written) else None
    found = []
    for code, group, own in zip(code_of, groups, written, strict=True):
        sums = {}
        for nth, factor in own.factors.items():
            assert totals is not None
            total, squares = totals[code, nth]
            sums[places[nth]] = total * factor, squares * factor**2
        found.append(GroupEffects(group, sums, own.classes))
    return found


def add_group_effects(state: State, found: Iterable[GroupEffects]) -> None:
    """Add the effects of users to a state."""
    for group, sums, classes in found:
        for at, own in sums.items():
            state.effects.setdefault(group, {}).setdefault(at, EffectSums()).add(own, classes)

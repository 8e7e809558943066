"""The second pass over lists or rows: sums of the effects of users on a metric, once all batches were added.

A metric of all lists or rows is a function of those of all users. Its standard error follows from the effect of each
user on it, as the error of a mean follows from users' values (the delta method).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastrec.evaluation.accumulators import GroupKey
from fastrec.evaluation.engine import sum_exactly
from fastrec.evaluation.sources import Scores
from fastrec.evaluation.state import EffectSums, State
from fastrec.inputs.lists import Lists
from fastrec.inputs.users import Users, positions_by_code

__all__ = ["add_effects_of_groups"]

Array = np.ndarray[Any, Any]
Write = Callable[[GroupKey | None, Array, Array], tuple[list[int], list[int]]]


def add_effects_of_groups(
    state: State,
    places: list[int],
    users: Users,
    codes: Array | None,
    effects: Array,
    write: Write,
    n_threads: int,
    like: Lists | Scores,
) -> dict[GroupKey | None, list[int]]:
    """Add the effects of the users of a batch on some metrics to a state: of each group, or of all users without codes.

    `places` are the positions of the metrics, and `effects` has a row for each, float64 (n_places, n_users).
    `write(group, members, effects)` fills the columns of a group; it returns the rows with effects, and how many
    users have each class of scored rows (lists have none). `like` is as in `sum_exactly`. Return the rows with effects
    by group.
    """
    members_of = [np.arange(effects.shape[1])] if codes is None else positions_by_code(codes)
    code_of = [0 if codes is None else int(codes[members[0]]) for members in members_of]
    groups = [None if code == 0 else users.keys[code - 1] for code in code_of]
    written = [write(group, members, effects) for group, members in zip(groups, members_of, strict=True)]
    totals = sum_exactly(effects, users.groups[:0] if codes is None else codes[None], n_threads, like)
    for code, group, (have, classes) in zip(code_of, groups, written, strict=True):
        for nth in have:
            own = state.effects.setdefault(group, {}).setdefault(places[nth], EffectSums())
            own.add(totals[code, nth], classes)
    return {group: have for group, (have, _) in zip(groups, written, strict=True)}

"""Standard errors of metrics of the exposure of items: a second pass over the lists, once all exposures are known.

Such a metric is a function of the lists of all users. Its standard error follows from the effect of each user's list on
it, as the error of a mean follows from users' values (the delta method).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.accumulators import AccumulatorKey, GroupKey
from fastrec.evaluation.engine import sum_exactly
from fastrec.evaluation.state import EffectSums, State
from fastrec.inputs.users import Users
from fastrec.items.exposure import Exposure, effects_of_lists
from fastrec.metrics.plan import Value

__all__ = ["find_effects"]

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """Some users of a batch, and the group that they are."""

    group: GroupKey | None
    members: Array


def find_effects(state: State, sides: Mapping[str, Any], users: Users, n_threads: int) -> dict[int, Array]:
    """Add the effects of the lists of a batch to a state, and return them by the position of the metric.

    They are float64 (n_users,), the metric's value + the effect of the user's list; NaN for users without a list.
    """
    wanted = [(at, value) for at, value in enumerate(state.plan.values) if value.has_effects]
    if not wanted or state.n_users == 0:
        return {}
    found: dict[int, Array] = {}
    listed = np.diff(sides["recs"].indptr) > 0
    for at, value in wanted:
        for nth, parts in enumerate(_groupings(users, len(listed))):
            effects = np.zeros(len(listed))
            known = [part for part in parts if math.isfinite(state.part(part.group).estimate(value)[0])]
            for group, members in known:
                effects[members] = _effects(state, value, group, sides, members, n_threads)
            effects[~listed] = 0.0
            codes = users.groups[nth - 1 : nth] if nth else np.zeros((0, len(listed)), np.int64)
            totals = sum_exactly(effects, codes, n_threads)
            for group, _ in known:
                row = 0 if group is None else users.keys.index(group) + 1
                state.effects.setdefault((at, group), EffectSums()).add(totals[row])
            if nth == 0:
                found[at] = np.where(listed, state.part().estimate(value)[0] + effects, np.nan)
    state.n_reviewed += len(listed)
    return found


def _groupings(users: Users, n_users: int) -> Iterator[list[Part]]:
    """Yield all users as one part, then the groups of each grouping."""
    yield [Part(None, np.arange(n_users))]
    for codes in users.groups:
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        yield [Part(users.keys[codes[members[0]] - 1], members) for members in np.split(order, starts[1:])]


def _effects(
    state: State, value: Value, group: GroupKey | None, sides: Mapping[str, Any], members: Array, n_threads: int
) -> Array:
    """Return the effects of the lists of some users on a metric of their group."""
    over = value.over
    assert over is not None and over.effects is not None
    exposure = state.accumulators[AccumulatorKey(over.accumulator, value.condition, group)]
    assert isinstance(exposure, Exposure)
    return effects_of_lists(exposure, over.effects(exposure), sides, members, n_threads)

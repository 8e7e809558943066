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
from fastrec.inputs.lists import Lists
from fastrec.inputs.users import Users
from fastrec.items.exposure import Effects, effects_of_lists

__all__ = ["find_effects"]

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """Some users of a batch, and the group that they are."""

    group: GroupKey | None
    members: Array


def find_effects(
    state: State, lists: Lists, sides: Mapping[str, Any], users: Users, n_threads: int
) -> dict[int, Array]:
    """Add the effects of the lists of a batch to a state, and return them by the position of the metric.

    They are float64 (n_users,), the metric's value + the effect of the user's list; NaN for users without a list.
    """
    wanted = [at for at, value in enumerate(state.plan.values) if value.has_effects]
    if not wanted or state.n_users == 0:
        return {}
    listed = np.diff(sides["recs"].indptr) > 0
    found: dict[int, Array] = {}
    for nth, parts in enumerate(_groupings(users, len(listed))):
        effects = np.zeros((len(wanted), len(listed)))
        known = {}
        for group, members in parts:
            known[group] = _effects(state, wanted, group, sides, members, n_threads)
            for at, own in known[group].items():
                effects[wanted.index(at), members] = own
        effects[:, ~listed] = 0.0
        codes = users.groups[nth - 1 : nth] if nth else users.groups[:0]
        totals = sum_exactly(effects, codes, n_threads, lists)
        for group, of_group in known.items():
            row = 0 if group is None else users.keys.index(group) + 1
            for at in of_group:
                state.effects.setdefault((at, group), EffectSums()).add(totals[row, wanted.index(at)])
        if nth == 0:
            for at in known[None]:
                mean = state.part().estimate(state.plan.values[at])[0]
                found[at] = np.where(listed, mean + effects[wanted.index(at)], np.nan)
    state.n_reviewed += len(listed)
    return found


def _groupings(users: Users, n_users: int) -> Iterator[list[Part]]:
    """Yield all users as one part, then the groups of each grouping."""
    yield [Part(None, np.arange(n_users))]
    for codes in users.groups:
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        parts = np.split(order, starts[1:]) if len(order) else []
        yield [Part(users.keys[codes[members[0]] - 1], members) for members in parts]


def _effects(
    state: State, wanted: list[int], group: GroupKey | None, sides: Mapping[str, Any], members: Array, n_threads: int
) -> dict[int, Array]:
    """Return the effects of the lists of some users on the metrics of their group that have a value."""
    together: dict[Any, dict[int, Effects]] = {}  # by exposure, cut-off and weight: one walk over the lists
    sums = state.part(group)
    for at in wanted:
        value = state.plan.values[at]
        assert value.over is not None and value.over.effects is not None
        exposure = state.accumulators[AccumulatorKey(value.over.accumulator, value.condition, group)]
        if math.isfinite(sums.estimate(value)[0]):
            effects = value.over.effects(exposure)
            together.setdefault((exposure, effects.k, effects.weight), {})[at] = effects
    found: dict[int, Array] = {}
    for (exposure, *_), own in together.items():
        values = effects_of_lists(exposure, list(own.values()), sides, members, n_threads)
        found |= dict(zip(own, values, strict=True))
    return found

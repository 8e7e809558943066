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
from fastrec.inputs.users import Users, positions_by_code
from fastrec.items.effects import add_effects
from fastrec.items.exposure import Effects

__all__ = ["find_effects"]

Array = np.ndarray[Any, Any]


class Part(NamedTuple):
    """Some users of a batch, and the group that they are."""

    group: GroupKey | None
    members: Array


def find_effects(
    state: State, lists: Lists, sides: Mapping[str, Any], n_threads: int, *, per_user: bool
) -> dict[int, Array]:
    """Add the effects of the lists of a batch to a state, and return values of users by the position of the metric.

    They are float64 (n_users,), the metric's value + the effect of the user's list; NaN for users without a list.
    """
    wanted = [at for at, value in enumerate(state.plan.values) if value.has_effects]
    if not wanted or state.n_users == 0:
        return {}
    users: Users = sides["users"]
    listed = np.diff(sides["recs"].indptr) > 0
    found: dict[int, Array] = {}
    for nth, parts in enumerate(_groupings(users, len(listed))):
        effects = np.zeros((len(wanted), len(listed)))
        known = {group: _write(state, wanted, group, sides, members, effects, n_threads) for group, members in parts}
        codes = users.groups[nth - 1 : nth] if nth else users.groups[:0]
        totals = sum_exactly(effects, codes, n_threads, lists)
        for group, rows in known.items():
            of_group = 0 if group is None else users.keys.index(group) + 1
            for row in rows:
                own = state.effects.setdefault(group, {}).setdefault(wanted[row], EffectSums())
                own.add(totals[of_group, row])
        if nth == 0 and per_user:
            for row in known[None]:
                mean = state.part().estimate(state.plan.values[wanted[row]])[0]
                found[wanted[row]] = np.where(listed, mean + effects[row], np.nan)
    state.n_reviewed += len(listed)
    return found


def _groupings(users: Users, n_users: int) -> Iterator[list[Part]]:
    """Yield all users as one part, then the groups of each grouping."""
    yield [Part(None, np.arange(n_users))]
    for codes in users.groups:
        yield [Part(users.keys[codes[members[0]] - 1], members) for members in positions_by_code(codes)]


def _write(
    state: State,
    wanted: list[int],
    group: GroupKey | None,
    sides: Mapping[str, Any],
    members: Array,
    out: Array,
    n_threads: int,
) -> list[int]:
    """Write effects of the lists of a group on the metrics that have a value, into rows of out; return these rows."""
    together: dict[Any, dict[int, Effects]] = {}  # by exposure
    sums = state.part(group)
    for row, at in enumerate(wanted):
        value = state.plan.values[at]
        assert value.over is not None and value.over.effects is not None
        if math.isfinite(sums.estimate(value)[0]):
            exposure = state.accumulators[AccumulatorKey(value.over.accumulator, value.condition, group)]
            together.setdefault(exposure, {})[row] = value.over.effects(exposure)
    for exposure, effects in together.items():
        add_effects(exposure, effects, sides, members, out, n_threads)
    return [row for effects in together.values() for row in effects]

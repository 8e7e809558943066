"""Effects of users' lists on metrics of the exposure of items, for the second pass over the lists."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from fastrec.evaluation.accumulators import AccumulatorKey, GroupKey
from fastrec.evaluation.effects import Written, add_group_effects, effects_of_groups
from fastrec.evaluation.state import State
from fastrec.items.effects import add_effects
from fastrec.items.exposure import Effects
from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]


def find_effects_on_exposure(state: State, sides: BatchSides, n_threads: int, *, per_user: bool) -> dict[int, Array]:
    """Add the effects of the lists of a batch to a state, and return values of users by the position of the metric.

    They are float64 (n_users,), the metric's value + the effect of the user's list; NaN for users without a list.
    """
    wanted = [at for at, value in enumerate(state.plan.values) if value.has_effects]
    if not wanted or state.n_users == 0:
        return {}
    users, listed = sides.users, np.diff(sides.recs.indptr) > 0
    found: dict[int, Array] = {}
    write = partial(_write, state, wanted, sides, n_threads)
    for codes in (None, *users.groups):
        effects = np.zeros((len(wanted), len(listed)))
        of_groups = effects_of_groups(wanted, users, codes, effects, write, n_threads)
        add_group_effects(state, of_groups)
        for at in of_groups[0].sums if codes is None and per_user else ():
            mean = state.part().estimate(state.plan.values[at]).mean
            found[at] = np.where(listed, mean + effects[wanted.index(at)], np.nan)
    state.n_reviewed += len(listed)
    return found


def _write(
    state: State,
    wanted: list[int],
    sides: BatchSides,
    n_threads: int,
    group: GroupKey | None,
    members: Array,
    out: Array,
) -> Written:
    """Write effects of the lists of a group on the metrics that have a value, into rows of out."""
    together: dict[Any, dict[int, Effects]] = {}  # by exposure
    sums = state.part(group)
    for row, at in enumerate(wanted):
        value = state.plan.values[at]
        assert value.over is not None and value.over.effects is not None
        if math.isfinite(sums.estimate(value).mean):
            exposure = state.accumulators[AccumulatorKey(value.over.accumulator, value.condition, group)]
            together.setdefault(exposure, {})[row] = value.over.effects(exposure)
    for exposure, effects in together.items():
        add_effects(exposure, effects, sides, members, out, n_threads)
    return Written({row: 1 for effects in together.values() for row in effects}, [])

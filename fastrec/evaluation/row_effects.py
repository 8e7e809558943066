"""Effects of users' rows on metrics over all rows, which stand for users' values in a paired comparison.

Such a metric is a function of the rows of all users. What a user's rows add to it, to first order (the delta method),
times the number of users, plus the metric, has the metric as its mean and its clustered variance as its variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.accumulators import AccumulatorKey, GroupKey
from fastrec.evaluation.effects import GroupEffects, Written, add_group_effects, effects_of_groups, positions_by_code
from fastrec.evaluation.row_rules import positive_rows
from fastrec.evaluation.state import State
from fastrec.inputs.rows import Rows
from fastrec.inputs.users import Users
from fastrec.metrics.row_statistics import SCORE_COUNTS
from fastrec.report.estimates import Effects
from fastrec.scored.influence import BatchRows

Array = np.ndarray[Any, Any]


def effects_on_ratios(state: State, kept: Array, labels: Mapping[str, Array]) -> Effects:
    """Return the effects on ratios of sums. `kept` has the values of users (n_kept, n_users), as the plan says."""
    found: Effects = {}
    values = [value for value in state.plan.values if value.call.text in state.plan.shares]
    for group, members in _parts(state.n_users, labels) if values and state.n_users else ():
        grouping = None if group is None else group[0]
        sums = state.part(group)
        for value in values:
            *at, counted = state.plan.shares[value.call.text]
            own = _out(found, value.call.text, grouping, state.n_users)
            if (line := sums.slopes(value)) is not None:
                mean, means, slopes = line
                each = mean + sum(
                    slope * (kept[row, members] - at_mean)
                    for row, at_mean, slope in zip(at, means, slopes, strict=True)
                )
                own[members] = np.where(kept[counted, members] == 1.0, each, np.nan)
    return found


def _parts(n_users: int, labels: Mapping[str, Array]) -> Iterator[tuple[GroupKey | None, Array]]:
    """Yield all users, then each group, with the positions of their users."""
    yield None, np.arange(n_users)
    for grouping, own in labels.items():
        distinct, codes = np.unique(own, return_inverse=True)
        for label, members in zip(distinct.tolist(), positions_by_code(codes), strict=True):
            yield (grouping, label), members


class ReviewedRows(NamedTuple):
    """The rows of a batch by class, as a condition takes them, and the positions of its metrics."""

    chosen: BatchRows
    condition: int
    places: list[int]

    def effects(
        self, state: State, users: Users, codes: Array | None, values: Array | None = None
    ) -> list[GroupEffects]:
        """Return the effects of users by group, or of all; `values` (n_places, n_users) get metric plus effect."""
        effects = np.zeros((len(self.places), len(self.chosen.indptr) - 1))
        write = partial(_write, state, self, values)
        return effects_of_groups(self.places, users, codes, effects, write, self.chosen.n_threads)


def _reviewed(state: State, rows: Rows, n_threads: int) -> Iterator[ReviewedRows]:
    """Yield the rows of a batch for each condition whose metrics have effects."""
    wanted: dict[int, list[int]] = {}  # positions of metrics by condition
    for at, value in enumerate(state.plan.values):
        if value.has_influence:
            wanted.setdefault(value.condition, []).append(at)
    for condition, places in wanted.items() if len(rows.indptr) > 1 else ():
        positive, weights = positive_rows(rows, state.plan.min_gains[condition])
        yield ReviewedRows(BatchRows(positive, rows.scores, weights, rows.indptr, n_threads), condition, places)


def find_effects_on_order(state: State, rows: Rows, n_threads: int, *, per_user: bool = False) -> Effects:
    """Add the effects of a batch on metrics of the order of all rows to a state, once this has all rows.

    Return the metric plus the effect for each user, in the order of reports, if these are kept; NaN for users without
    rows.
    """
    found: Effects = {}
    users, n_users = rows.users, len(rows.indptr) - 1
    for batch in _reviewed(state, rows, n_threads):
        for codes in (None, *users.groups):
            values = np.full((len(batch.places), n_users), np.nan) if per_user else None
            add_group_effects(state, batch.effects(state, users, codes, values))
            if values is not None:
                grouping = None if codes is None else users.keys[int(codes[0]) - 1][0]
                for own, at in zip(np.where(_having_rows(rows), values, np.nan), batch.places, strict=True):
                    of_users = own if users.order is None else own[users.order]
                    found.setdefault(state.plan.values[at].call.text, {})[grouping] = of_users
    state.n_reviewed += n_users
    return found


def effects_in_segments(state: State, rows: Rows, n_threads: int) -> list[GroupEffects]:
    """Return the effects of the rows of some segments, whose users are in groups.

    Threads may share the state: no two of them use the score counts of one segment.
    """
    batches = _reviewed(state, rows, n_threads)
    return [own for batch in batches for codes in rows.users.groups for own in batch.effects(state, rows.users, codes)]


def _write(
    state: State,
    batch: ReviewedRows,
    values: Array | None,
    group: GroupKey | None,
    members: Array,
    effects: Array,
) -> Written:
    """Write the effects of the users of a group. `values` gets the metric plus the effect."""
    counts: Any = state.accumulators[AccumulatorKey(SCORE_COUNTS, batch.condition, group)]
    sums = state.part(group)
    rows, own = batch.chosen.of_users(members), _run_of(members)
    factors = {}
    for nth, at in enumerate(batch.places):
        value = state.plan.values[at]
        assert value.over is not None and value.over.influence is not None
        found, factor = value.over.influence(counts, rows), sums.n_users(value)
        if found is not None:
            effects[nth, own] = found
            if values is not None:
                values[nth, own] = value.over.value(counts) + factor * found
            factors[nth] = factor
    return Written(factors, [int(np.count_nonzero(own)) for own in rows.classes.T])


def _run_of(members: Array) -> Array | slice:
    """Return ascending positions as a slice if they follow each other, as the users of segments do."""
    first, last = int(members[0]), int(members[-1])
    return slice(first, last + 1) if last - first + 1 == len(members) else members


def _having_rows(rows: Rows) -> Array:
    """Return which users have a row that counts, bool (n_users,)."""
    if rows.weights is None:
        return np.diff(rows.indptr) > 0
    before = np.concatenate([[0], np.cumsum(rows.weights > 0)])
    return before[rows.indptr[1:]] > before[rows.indptr[:-1]]


def _out(found: Effects, metric: str, grouping: str | None, n_users: int) -> Array:
    """Return the effects to write to; NaN for users that are not counted."""
    return found.setdefault(metric, {}).setdefault(grouping, np.full(n_users, np.nan))

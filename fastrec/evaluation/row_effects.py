"""Effects of users' rows on metrics over all rows, which stand for users' values in a paired comparison.

Such a metric is a function of the rows of all users. What a user's rows add to it, to first order (the delta method),
times the number of users, plus the metric, has the metric as its mean and its clustered variance as its variance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.accumulators import SCORE_COUNTS, AccumulatorKey, GroupKey
from fastrec.evaluation.row_rules import positive_rows
from fastrec.evaluation.state import State
from fastrec.inputs.rows import Rows
from fastrec.inputs.users import Users
from fastrec.report.estimates import Effects

__all__ = ["effects_on_order", "effects_on_ratios"]

Array = np.ndarray[Any, Any]


class UsersPart(NamedTuple):
    """All users, or a group of them."""

    group: GroupKey | None
    members: Array  # int64: their positions

    @property
    def grouping(self) -> str | None:
        return None if self.group is None else self.group[0]


def _parts(n_users: int, labels: Mapping[str, Array]) -> Iterator[UsersPart]:
    """Yield all users, then each group."""
    yield UsersPart(None, np.arange(n_users))
    for grouping, own in labels.items():
        distinct, codes = np.unique(own, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
        for label, members in zip(distinct.tolist(), np.split(order, ends[:-1]), strict=True):
            yield UsersPart((grouping, label), members)


def effects_on_ratios(state: State, kept: Array, labels: Mapping[str, Array]) -> Effects:
    """Return the effects on ratios of sums. `kept` has the values of users (n_kept, n_users), as the plan says."""
    found: Effects = {}
    values = [value for value in state.plan.values if value.call.text in state.plan.shares]
    for part in _parts(state.n_users, labels) if values and state.n_users else ():
        sums = state.part(part.group)
        for value in values:
            *at, counted = state.plan.shares[value.call.text]
            own = _out(found, value.call.text, part.grouping, state.n_users)
            if (line := sums.slopes(value)) is not None:
                mean, means, slopes = line
                each = mean + sum(
                    slope * (kept[row, part.members] - at_mean)
                    for row, at_mean, slope in zip(at, means, slopes, strict=True)
                )
                own[part.members] = np.where(kept[counted, part.members] == 1.0, each, np.nan)
    return found


def effects_on_order(state: State, rows: Rows, n_threads: int) -> Effects:
    """Return the effects on metrics of the order of all rows, of the users of the only batch, in their order."""
    found: Effects = {}
    values = [value for value in state.plan.values if value.over is not None and value.over.influence is not None]
    n_users = len(rows.indptr) - 1
    labels = Users(None, rows.users.groups, rows.users.keys, None).labels()
    for part in _parts(n_users, labels) if values else ():
        own, user_of = _rows_of(rows, part)
        for value in values:
            out = _out(found, value.call.text, part.grouping, n_users)
            mean = state.part(part.group).estimate(value)[0]
            assert value.over is not None and value.over.influence is not None
            positive, weights = positive_rows(own, state.plan.min_gains[value.condition])
            if not (np.isfinite(mean) and (positive if weights is None else positive & (weights > 0)).any()):
                continue
            counts = state.accumulators[AccumulatorKey(SCORE_COUNTS, value.condition, part.group)]
            each = value.over.influence(counts).of_rows(positive, own.scores, weights, n_threads)
            n_rows = np.bincount(user_of, None if weights is None else weights > 0, len(part.members))
            total = np.bincount(user_of, each, len(part.members))
            n = np.count_nonzero(n_rows)
            out[part.members] = np.where(n_rows > 0, mean + n * total, np.nan)
    order = rows.users.order
    return (
        found
        if order is None
        else {name: {grouping: own[order] for grouping, own in by.items()} for name, by in found.items()}
    )


def _out(found: Effects, metric: str, grouping: str | None, n_users: int) -> Array:
    """Return the effects to write to; NaN for users that are not counted."""
    return found.setdefault(metric, {}).setdefault(grouping, np.full(n_users, np.nan))


def _rows_of(rows: Rows, part: UsersPart) -> tuple[Rows, Array]:
    """Return the rows of some users, end to end, and the position of the user of each row among them."""
    lengths = np.diff(rows.indptr)[part.members]
    user_of = np.repeat(np.arange(len(part.members)), lengths)
    if part.group is None:
        return rows, user_of
    starts = np.cumsum(lengths) - lengths
    at = np.arange(len(user_of)) + np.repeat(rows.indptr[part.members] - starts, lengths)
    weights = rows.users.weights
    users = Users(None, np.zeros((0, len(lengths)), np.int64), [], None if weights is None else weights[part.members])
    return rows._replace(
        labels=rows.labels[at],
        scores=rows.scores[at],
        weights=None if rows.weights is None else rows.weights[at],
        indptr=np.append(starts, len(at)),
        users=users,
    ), user_of

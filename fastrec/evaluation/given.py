"""The rows of numbers that kernels only read: the weights of users, and what providers of statistics fill in."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.hits import Hits
from fastrec.metrics.plan import Plan
from fastrec.metrics.providers import Fill, Provider, find_provider

if TYPE_CHECKING:
    from fastrec.inputs.rows import RowSides
    from fastrec.items.listed import ListsAndTruth

Array = np.ndarray[Any, Any]
ProviderRows = tuple[Provider, list[tuple[Any, ...]], slice]  # the keys of a provider, and where their rows go
NO_EVENTS = np.zeros((0, 0)), np.zeros((0, 0), np.int32)


class GivenPart(NamedTuple):
    """The given numbers of some users, as in `fastrec.kernels.row_programs.UserNumbers`, and their hits."""

    rows: Array  # float64 (n_rows, n_users)
    events: Array  # float64 (n_rows_of_events, n_events)
    last: Array  # int32 or int64 (n_cutoffs + 1, n_users)
    hits: Hits | None  # None if no provider asks for hits


class GivenRows:
    """The given rows of a batch. The statistics of providers with `by_part` are filled for some users at a time."""

    def __init__(self, plan: Plan, sides: ListsAndTruth | RowSides | None, weights: Array | None, n_users: int) -> None:
        self._plan = plan
        self._sides = sides
        # of all users, float64 (n_rows, n_users), or (1, 0) without any
        self.whole = np.zeros((1, 0)) if weights is None else weights.reshape(1, -1)
        self._of_kept = [0]
        self._by_part: list[ProviderRows] = []
        self._by_event: list[ProviderRows] = []
        if plan.provided:
            self.whole = self._fill_whole(weights, n_users)
        self.in_parts = bool(self._by_part or self._by_event)  # whether `part` has more than `whole`

    def part(self, first: int, last: int) -> GivenPart:
        """Return what is given of the users first..last-1."""
        if not self.in_parts:
            return GivenPart(self.whole[:, first:last], *NO_EVENTS, None)
        places, sides = self._plan.places, cast("ListsAndTruth", self._sides).part(first, last)
        rows = np.empty((1 + len(places.rows), last - first))
        rows[self._of_kept] = self.whole[:, first:last]
        for own, keys, at in self._by_part:
            self._fill(own, keys, sides, rows[at], first)
        events, last_events = NO_EVENTS
        if self._by_event:
            events = np.empty((len(places.events), sides.hits.n_events))
            for own, keys, at in self._by_event:
                self._fill(own, keys, sides, events[at], first)
            last_events = sides.last_events(places.cutoffs)
        return GivenPart(rows, events, last_events, sides.hits_if_found)

    def _fill_whole(self, weights: Array | None, n_users: int) -> Array:
        """Return the weights and the statistics that take all users at once, and note where they and the others go."""
        whole: list[ProviderRows] = []
        for numbers in (self._plan.places.rows, self._plan.places.events):
            for name, group in itertools.groupby(numbers, lambda key: key[1]):
                own, keys = self._provider(str(name)), list(group)
                at = slice(numbers[keys[0]], numbers[keys[-1]] + 1)
                members = self._by_event if own.by_event else self._by_part if own.by_part else whole
                members.append((own, [key[2:] for key in keys], at))
        self._of_kept += [nth for *_, at in whole for nth in range(at.start, at.stop)]
        kept = np.empty((len(self._of_kept), n_users))
        kept[0] = 0.0 if weights is None else weights
        done = 1
        for own, keys, _ in whole:
            self._fill(own, keys, self._sides, kept[done : done + len(keys)], 0)
            done += len(keys)
        return kept

    def _provider(self, name: str) -> Provider:
        try:
            own = find_provider(name)
        except MetricError as error:
            raise self._asked_by(name, error) from None
        return own if own.fill is not None else own._replace(fill=_fill_of(own))

    def _fill(self, own: Provider, keys: Sequence[tuple[Any, ...]], sides: Any, rows: Array, first: int) -> None:
        """Have a provider fill rows of users from `first` on, or of their events, and check them."""
        if not own.is_trusted:
            rows.fill(np.nan)
        assert own.fill is not None
        try:
            own.fill(sides, keys, rows)
        except MetricError as error:
            raise self._asked_by(own.name, error) from None
        if own.is_trusted:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            is_sum_finite = np.isfinite(rows.sum())  # one pass, which mostly decides
        if not is_sum_finite and not np.isfinite(rows).all():
            nth, at = np.argwhere(~np.isfinite(rows))[0]
            user = np.searchsorted(sides.listed_rows.starts, at + 1, side="right") - 1 if own.by_event else at
            raise MetricError(
                f"{self._plan.askers[own.name]}: the provider {own.name} must fill finite numbers, "
                f"found {rows[nth, at]} for the user at position {first + user}"
            )

    def _asked_by(self, name: str, error: MetricError) -> MetricError:
        return MetricError(self._plan.askers[name], " ", error.text)


def _fill_of(own: Provider) -> Fill:
    """Return the function of a provider of fastrec."""
    if "rows" in own.sides:
        from fastrec.scored.pairs import FILLS
    else:
        from fastrec.items.providers import FILLS
    return FILLS[own.name]

"""The rows of numbers that kernels only read: the weights of users, and what providers of statistics fill in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.lists import Names
from fastrec.inputs.parts import take_rows
from fastrec.inputs.slots import BatchSides
from fastrec.kernels.listed import Listed
from fastrec.metrics.plan import Plan
from fastrec.metrics.providers import SIDES_OF_PARTS, Provider, find_provider

__all__ = ["GivenRows"]

Array = np.ndarray[Any, Any]
ProviderRows = tuple[Provider, list[tuple[Any, ...]], slice]  # the keys of a provider, and where their rows go


class GivenRows:
    """The given rows of a batch. The statistics of providers with `by_part` are filled for some users at a time."""

    def __init__(self, plan: Plan, sides: Mapping[str, Any], weights: Array | None, n_users: int) -> None:
        self._plan = plan
        self._sides = sides
        self._n_rows = 1 + len(plan.provided)
        self._kept = np.zeros((1, 0)) if weights is None else weights.reshape(1, -1)
        self._of_kept = [0]
        self._by_part: list[ProviderRows] = []
        if plan.provided:
            self._kept = self._fill_whole(weights, n_users)

    @property
    def in_parts(self) -> bool:
        """Whether `part` must be asked for the rows of some users at a time."""
        return bool(self._by_part)

    @property
    def whole(self) -> Array:
        """The rows of all users, float64 (n_rows, n_users), if none is filled in parts; (1, 0) if there are none."""
        return self._kept

    def part(self, first: int, last: int) -> tuple[Array, Listed | None]:
        """Return the rows of the users first..last-1, float64 (n_rows, last - first), and their hits.

        These are None if no provider asks for them, or if the rows of a user are at fault.
        """
        if not self._by_part:
            return self._kept[:, first:last], None
        rows = np.empty((self._n_rows, last - first))
        rows[self._of_kept] = self._kept[:, first:last]
        sides = self._sides_of(first, last)
        for own, keys, at in self._by_part:
            self._fill(own, keys, sides, rows[at], first)
        listed: Listed | None = sides.get("listed rows")
        return rows, None if listed is None or listed.at_fault[0] else listed

    def _fill_whole(self, weights: Array | None, n_users: int) -> Array:
        """Return the weights and the statistics that take all users at once, and note where they and the others go."""
        whole: list[ProviderRows] = []
        first = 1
        for name, group in itertools.groupby(self._plan.provided, lambda key: key[1]):
            keys = [key[2:] for key in group]
            at, first = slice(first, first + len(keys)), first + len(keys)
            own = self._provider(name)
            (self._by_part if own.by_part else whole).append((own, keys, at))
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
            return find_provider(name)
        except MetricError as error:
            raise self._asked_by(name, error) from None

    def _fill(
        self, own: Provider, keys: Sequence[tuple[Any, ...]], sides: Mapping[str, Any], rows: Array, first: int
    ) -> None:
        """Have a provider fill the rows of users from `first` on, and check them."""
        if not own.is_trusted:
            rows.fill(np.nan)
        try:
            own.fill(sides, keys, rows)
        except MetricError as error:
            raise self._asked_by(own.name, error) from None
        if own.is_trusted:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            is_sum_finite = np.isfinite(rows.sum())  # one pass, which mostly decides
        if not is_sum_finite and not np.isfinite(rows).all():
            nth, user = np.argwhere(~np.isfinite(rows))[0]
            raise MetricError(
                f"{self._plan.askers[own.name]}: the provider {own.name} must fill finite numbers, "
                f"found {rows[nth, user]} for the user at position {first + user}"
            )

    def _asked_by(self, name: str, error: MetricError) -> MetricError:
        return MetricError(self._plan.askers[name], " ", error.text)

    def _sides_of(self, first: int, last: int) -> BatchSides:
        """Return the lists and the truth of the users first..last-1."""
        at = np.arange(first, last)
        names: Names = self._sides["names"]
        names = names._replace(users=at if names.users is None else names.users[at])
        sides = {name: take_rows(self._sides[name], at).read_only() for name in SIDES_OF_PARTS}
        return BatchSides(sides, names=names, n_threads=1, lowest=self._sides["lowest"])

"""The lists and the truth of users, with what statistics at several cut-offs read of both, found once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.hits import Hits, find_hits
from fastrec.inputs.lists import Names
from fastrec.inputs.ragged import read_only
from fastrec.inputs.sides import NamedSides
from fastrec.items.sums import find_numbers, keep_short
from fastrec.kernels import ideal_gains as kernels
from fastrec.kernels.codes import COUNT, FIRST_EVENT, LISTED_ROWS, RANK, SOURCE
from fastrec.kernels.listed import Listed, find_last, sort_gains
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import rank_weights
from fastrec.runtime.launcher import call

Given = TypeVarTuple("Given")
T = TypeVar("T")
Array = np.ndarray[Any, Any]
MAX_NARROW = 1 << 31  # events whose numbers fit into int32


def keep_by_arguments(method: Callable[[ListsAndTruth, *Given], T]) -> Callable[[ListsAndTruth, *Given], T]:
    """Return a method whose results the object keeps; nothing of them refers to the object, so it is freed at once."""

    @functools.wraps(method)
    def kept_or_made(sides: ListsAndTruth, *given: *Given) -> T:
        key = method.__name__, *given
        if key not in sides.kept:
            sides.kept[key] = method(sides, *given)
        found: T = sides.kept[key]
        return found

    return kept_or_made


@dataclass(kw_only=True, eq=False)
class ListsAndTruth(NamedSides):
    """The lists and the truth of a batch of users, or of a part of them, and what follows from both.

    The rows of the truth that lists hold are events, see `fastrec.inputs.hits.Hits`. Without gains, the arrays that
    follow from the gains of rows have one value, which is that of all rows. `least` is the `min_gain` of a formula.
    """

    recs: FlatSide
    truth: FlatSide
    names: Names
    n_threads: int
    lowest: int  # as in `Lists`
    kept: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False)

    def part(self, first: int, last: int) -> ListsAndTruth:
        """Return the lists and the truth of the users first..last-1."""
        users = self.names.users
        names = self.names._replace(users=np.arange(first, last) if users is None else users[first:last])
        recs, truth = (side.part(first, last).read_only() for side in (self.recs, self.truth))
        return ListsAndTruth(recs=recs, truth=truth, names=names, n_threads=1, lowest=self.lowest)

    @functools.cached_property
    def gains_of_rows(self) -> Array:
        """The gain of each row of the lists, NaN for items that are not in the user's truth."""
        return find_numbers(self.recs, self.truth, self.truth.gains, self.n_threads)

    def is_hit(self, least: float) -> Array:
        """Return which rows of the lists hold an item that is relevant."""
        return is_relevant(self.gains_of_rows, least)

    @functools.cached_property
    def hits(self) -> Hits:
        """The rows of the truth that lists hold."""
        recs, truth = self.recs, self.truth
        narrow = recs.items.dtype == truth.items.dtype == np.int32
        items, wanted = (side.items.astype(np.int32 if narrow else np.int64, copy=False) for side in (recs, truth))
        rows, has_gains = (items, recs.indptr, wanted, truth.indptr), truth.extra is not None
        return find_hits(
            *rows, lowest=self.lowest, n_threads=1, places=has_gains
        )  # so that all events touch each other

    @property
    def hits_if_found(self) -> Hits | None:
        """The hits, if anything has asked for them."""
        return self.__dict__.get("hits")

    @functools.cached_property
    def listed_rows(self) -> Listed:
        """The rows of the truth that lists hold, each of their numbers by its name."""
        spans, events, places = self.hits.spans, self.hits.events, self.hits.places
        starts, counts, n_rec = spans[FIRST_EVENT], spans[COUNT], spans[LISTED_ROWS]
        return Listed(starts, counts, events[RANK], events[SOURCE], places, n_rec)

    @property
    def ranks_of_events(self) -> Array:
        """The rank of each event."""
        return self.listed_rows.ranks[: self.hits.n_events]

    def last_events(self, cutoffs: Sequence[int]) -> Array:
        """Return the last event of each user within ascending cut-offs, and the last of all."""
        listed = self.listed_rows
        width = np.int32 if len(listed.ranks) < MAX_NARROW else np.int64
        found = np.empty((len(cutoffs) + 1, self.truth.n_users), width)
        deepest = min(max([k for k in cutoffs if k != UNCUT], default=0), longest_of(listed.n_rec))
        bucket = np.searchsorted(cutoffs, np.arange(deepest + 2)).astype(np.int64)
        call(find_last, listed, found, bucket, work=8 * (len(listed.ranks) + found.size))
        return found

    @functools.cached_property
    def gains_of_truth(self) -> Array:
        """The gains of the rows of the truth."""
        return np.ones(1) if self.truth.extra is None else self.truth.extra

    @functools.cached_property
    def gains_from_0(self) -> Array:
        """The gains of the rows of the truth, 0 in place of those below."""
        return np.maximum(self.gains_of_truth, 0.0)

    @keep_by_arguments
    def relevant_rows(self, least: float) -> Array:
        """Return which rows of the truth are relevant."""
        return is_relevant(self.gains_of_truth, least)

    def of_events(self, values: Array) -> Array:
        """Return the values of events, given those of the rows of the truth, which follow from its gains.

        `values` has one for each row, or one for all. Events of rank 0 get an arbitrary one.
        """
        if self.truth.extra is None or not len(values):
            return self._events_of_value(values[0] if len(values) else values.dtype.type(0), values.dtype)
        found: Array = values[self.listed_rows.places[: self.hits.n_events]]
        return found

    @keep_by_arguments
    def _events_of_value(self, value: np.generic, dtype: np.dtype[Any]) -> Array:
        return np.full(self.hits.n_events, value, dtype)

    @keep_by_arguments
    def graded_lists(self, least: float, missing: float) -> kernels.GradedLists:
        """Return the listed rows with their gains, and the gains of the best order of the relevant rows.

        A row that is not relevant has the gain `missing`: 0.0 or `math.nan`, which is one object, so that what was made
        for it is found again.
        """
        truth, listed, gains = self.truth, self.listed_rows, self.gains_from_0
        relevant = self.relevant_rows(least)
        starts, is_whole = starts_among(relevant, truth.indptr), bool(relevant.all())
        n_rel, first = np.diff(starts), starts[:-1]
        if truth.extra is None:
            ideals = np.ones(longest_of(n_rel))
            starts, first = np.array([0, len(ideals)]), np.zeros(truth.n_users, np.int64)
        else:
            ideals = gains[relevant]
            call(sort_gains, ideals, read_only(starts), work=8 * len(ideals))
        own = self.of_events(gains if is_whole else np.where(relevant, gains, missing))
        arrays = (listed.starts, listed.counts, self.ranks_of_events, own, listed.n_rec, n_rel, ideals, first, starts)
        return kernels.GradedLists(*map(read_only, arrays))

    @keep_by_arguments
    def ideal_sums(self, least: float) -> tuple[kernels.GradedLists, kernels.IdealSums]:
        """Return the listed rows with their gains, and sums over the best order of the relevant rows."""
        least = max(least, 0.0)
        truth, relevant = self.truth, self.relevant_rows(least)
        own = () if truth.extra is None else (truth.users[relevant], truth.extra[relevant], truth.n_users)
        if own and (too_large := np.isinf(np.bincount(*own))).any():
            user = self.names.user(int(too_large.argmax()))
            raise InputError(f"truth of user {user}: the gains add up to more than a double holds")
        lists = self.graded_lists(least, 0.0)
        discounts = discounts_of_ranks(longest_of(lists.n_rec, lists.n_rel))
        n_orders = len(lists.orders) - 1
        n = len(lists.ideals) + n_orders
        starts = lists.ideal_starts + (np.arange(truth.n_users) if n_orders > 1 else 0)
        dcg, shares, gains_down_to, counted = np.empty(n), np.empty(n), np.empty(n), np.empty((3, n))
        falls, levels = np.empty((2, n), np.int64)
        tables = dcg, falls, levels, shares, gains_down_to, counted
        sums = kernels.IdealSums(read_only(starts), discounts, *tables)
        # users count, too: with one best order each part takes few steps, but there may be many parts
        call(kernels.add_ideals, lists, sums, work=4 * n + truth.n_users)
        return lists, sums


def starts_among(chosen: Array, indptr: Array) -> Array:
    """Return where the chosen rows of each user start among all chosen rows, int64 (n_users + 1,).

    `chosen` is bool (n_rows,), or has one value for all rows.
    """
    if chosen.all():
        return np.asarray(indptr, np.int64)
    if not chosen.any():
        return np.zeros(len(indptr), np.int64)
    starts: Array = np.append(0, np.cumsum(chosen))[indptr].astype(np.int64)
    return starts


def longest_of(*lengths: Array) -> int:
    """Return the largest of some lengths; 0 without any."""
    return max(int(own.max(initial=0)) for own in lengths)


@keep_short
def discounts_of_ranks(longest: int) -> Array:
    """Return 1 / log2(rank + 1) for ranks 0 (where it is 0) to `longest`."""
    discounts: Array = read_only(rank_weights("log2", longest))
    return discounts

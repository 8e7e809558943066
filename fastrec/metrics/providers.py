"""Providers of statistics: functions that fill numbers of users that the kernels of fastrec do not compute.

A formula reads them with `s.provided(name, *key)`. The plan collects the keys of all metrics, each provider fills its
rows once per batch or part of it, and the row program goes on with them as with any statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, MetricError
from fastrec.kernels.codes import UNCUT
from fastrec.metrics.declaration import forget_parsed

Array = np.ndarray[Any, Any]
Key = tuple[Hashable, ...]
Fill = Callable[[Any, Sequence[Key], Array], None]
Collects = Callable[[Key], tuple[str, Hashable]]


class Provider(NamedTuple):
    """A provider: the sides that it reads, and the function that fills its rows."""

    name: str
    sides: frozenset[str]
    is_ordered: bool = True
    fill: Fill | None = None  # None for those of fastrec: `fastrec.items.providers` and `fastrec.scored.pairs` have it
    collects: Collects | None = None
    by_part: bool = False
    is_trusted: bool = False  # to fill all rows with finite numbers, also where rows are at fault: nothing checks it
    by_event: bool = False


class Provided(NamedTuple):
    """Where kernels find what providers fill: rows of users from 1 on, and rows of events."""

    rows: dict[Key, int]  # by key
    events: dict[Key, int]  # by key without its cut-off
    cutoffs: tuple[int, ...]  # of keys of events, ascending

    @classmethod
    def of(cls, keys: Sequence[Key]) -> Provided:
        """Give keys ("provided", name, ...) their places."""
        of_events = [find_provider(str(key[1])).by_event for key in keys]
        rows = (key for key, is_event in zip(keys, of_events, strict=True) if not is_event)
        pairs = [_split(key) for key, is_event in zip(keys, of_events, strict=True) if is_event]
        return cls(
            {key: nth for nth, key in enumerate(rows, start=1)},
            {key: nth for nth, key in enumerate(dict.fromkeys(event for _, event in pairs))},
            tuple(sorted({cutoff for cutoff, _ in pairs})),
        )

    def place(self, key: Key) -> tuple[int, int]:
        """Return the row of a key, and the number of its cut-off among `cutoffs`: -1 for a row of users."""
        if key in self.rows:
            return self.rows[key], -1
        cutoff, event = _split(key)
        return self.events[event], self.cutoffs.index(cutoff)


def _split(key: Key) -> tuple[int, Key]:
    """Return the cut-off of a key of events, and the key without it."""
    kind, name, *others = key
    cutoff = others[0] if others else "none"
    if not (cutoff is None or isinstance(cutoff, int)):
        raise MetricError(f"the keys of the provider {name!r} must begin with a cut-off, found {cutoff!r}")
    return UNCUT if cutoff is None else cutoff, (kind, name, *others[1:])


def _of_sides(name: str, *sides: str, **options: Any) -> Provider:
    return Provider(name, frozenset(sides), **options)


def _of_parts(name: str, *, is_ordered: bool = True, by_event: bool = False) -> Provider:
    return Provider(name, frozenset(SIDES_OF_PARTS), is_ordered, by_part=True, is_trusted=True, by_event=by_event)


def _sums_of_weights(key: Key) -> tuple[str, Hashable]:
    """Return what to collect over all users for a key of weighted clicks."""
    _, column, clip, bounded, *_ = key
    return "weights of clicks", (column, clip, bounded)


SIDES_OF_PARTS = ("recs", "truth")  # of providers with `by_part`
BUILT_IN = (
    _of_parts("ideal gains", by_event=True),
    _of_parts("ideal orders", is_ordered=False),
    _of_parts("compatibility"),
    _of_parts("judgements", by_event=True),
    _of_parts("pairs of gains"),
    _of_parts("user models"),
    _of_sides("categories", "recs", "items"),
    _of_sides("categories of hits", "recs", "truth", "items"),
    _of_sides("calibration", "recs", "history", "items"),
    _of_sides("diversity", "recs", "items"),
    _of_sides("distance to history", "recs", "truth", "history", "items"),
    _of_sides("popularity", "recs", "popularity"),
    _of_sides("popularity of history", "history", "popularity"),
    _of_sides("popularity of hits", "recs", "truth", "popularity"),
    _of_sides("popularity of ranks", "recs", "popularity"),
    _of_sides("history", "recs", "history"),
    _of_sides("reference", "recs", "reference"),
    _of_sides("hits outside of reference", "recs", "truth", "reference"),
    _of_sides("subtopics", "recs", "truth", "subtopics"),
    _of_sides("inverse propensities", "recs", "truth", "propensity", collects=_sums_of_weights),
    _of_sides("ranks in the catalogue", "recs", "truth", "sampled", is_ordered=False),
    _of_sides("the rank in the catalogue", "recs", "truth", "sampled", is_ordered=False),
    _of_sides("graded_pairs", "rows", is_ordered=False),
    _of_sides("graded_ranks", "rows", is_ordered=False),
)
PROVIDERS = {own.name: own for own in BUILT_IN}


def provider(
    name: str,
    *,
    sides: Sequence[str],
    is_ordered: bool = True,
    collects: Collects | None = None,
    by_part: bool = False,
    by_event: bool = False,
) -> Callable[[Fill], Fill]:
    """Register a function as a provider of statistics.

    Parameters
    ----------
    name : its name, as in `s.provided(name, *key)`
    sides : names of the sides that it reads, such as ``"recs"``, ``"truth"``, ``"history"``, ``"items"`` or ``"rows"``
        A call without one of them gets an error that names the metric and the argument.
    is_ordered : whether the statistics depend on the order of the lists
        Their mean over the orders of tied scores is not known, so these are an error under ``ties="expected"``.
    collects : for a key the kind of an accumulator, and what it must collect over all users, for `Report.data`
    by_part : whether to call the function for some users at a time, in threads
        For numbers of a user that follow from the user's own list and truth. Only these two sides are there.
    by_event : whether the statistics at a cut-off change only at ranks with a row of the truth; needs `by_part`
        Formulas put the cut-off first: `s.provided(name, s.cutoff, *key)`. The function is called with the keys without
        cut-offs, once for all of these, and `out` is float64 (len(keys), n_events): it gets the numbers after each
        event of `sides["listed rows"]`, see `fastrec.kernels.listed.Listed`.

    The function is called as fill(sides, keys, out). `sides` are those of the batch, by name. recs, truth, exclude,
    history and reference are `FlatSide`, with items in one numbering, `users`, `ranks` and `gains`. Lists are ordered,
    without excluded items; a negative item is a miss. The truth has the rows that are not relevant, too. items is an
    `ItemTable`, rows is `Rows`. `keys` are the keys that formulas ask for. `out` is float64 (len(keys), n_users), to
    be filled with finite numbers.
    """
    if isinstance(sides, str):  # iterating would yield its characters
        raise InputTypeError(f"sides must be a list of names, found the string {sides!r}: write [{sides!r}]")
    if by_part and (more := [side for side in sides if side not in SIDES_OF_PARTS]):
        raise InputError(f"by_part=True gives a provider recs and truth only, found {more[0]!r} in sides")

    if by_event and not by_part:
        raise InputError("by_event=True needs by_part=True, found by_part=False")

    def register(fill: Fill) -> Fill:
        read = frozenset(sides)
        PROVIDERS[name] = Provider(name, read, is_ordered, fill, collects, by_part, by_event=by_event)
        forget_parsed()  # plans may have been made with another provider of this name
        return fill

    return register


def find_provider(name: str) -> Provider:
    """Return the provider of a name."""
    try:
        return PROVIDERS[name]
    except KeyError:
        raise MetricError(f"needs statistics of {name!r}, which no provider fills in this process") from None


def gains_in_lists(sides: Any) -> Array:
    """Return the gain of each row of the lists, float64 (n_rows,): NaN for items that are not in the user's truth.

    Includes gains of 0 and below, which are not relevant.
    """
    gains: Array = sides.gains_of_rows.copy()  # which the caller may change
    return gains


def is_relevant(gains: Array, min_gain: float) -> Array:
    """Return which gains make an item relevant, for the `min_gain` of a formula's statistics."""
    relevant: Array = ~np.isnan(gains) if min_gain < 0 else (gains > 0) & (gains >= min_gain)
    return relevant

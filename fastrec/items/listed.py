"""The rows of the truth that lists hold, found once per batch, and statistics of them at several cut-offs at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastrec.inputs.hits import Hits, find_hits
from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import MADE, BatchSides
from fastrec.items.sums import cuts_of, keep_short
from fastrec.kernels import listed as kernels
from fastrec.kernels.codes import COUNT, FIRST_EVENT, LISTED_ROWS, RANK, SOURCE
from fastrec.kernels.ideal_gains import GradedLists
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import rank_weights
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]
STEPS_PER_ROW = 8
MAX_NARROW = 1 << 31  # events whose numbers fit into int32


def _hits(sides: BatchSides) -> Hits:
    """Find the rows of the truth that lists hold."""
    recs, truth = sides["recs"], sides["truth"]
    narrow = recs.items.dtype == truth.items.dtype == np.int32
    items, wanted = (side.items.astype(np.int32 if narrow else np.int64, copy=False) for side in (recs, truth))
    rows, given = (items, recs.indptr, wanted, truth.indptr), truth.extra is not None
    return find_hits(*rows, lowest=sides["lowest"], n_threads=1, places=given)  # so that all events touch each other


def _listed(sides: BatchSides) -> kernels.Listed:
    """Return the rows of the truth that lists hold, each of their numbers by its name."""
    hits: Hits = sides["hits"]
    spans, events = hits.spans, hits.events
    starts, counts, n_rec = spans[FIRST_EVENT], spans[COUNT], spans[LISTED_ROWS]
    return kernels.Listed(starts, counts, events[RANK], events[SOURCE], hits.places, n_rec)


def _last_events(sides: BatchSides, cutoffs: Sequence[int]) -> Array:
    """Return the last event of each user within ascending cut-offs, and the last of all."""
    listed, n_users = sides["listed rows"], sides["truth"].n_users
    width = np.int32 if len(listed.ranks) < MAX_NARROW else np.int64
    found = np.empty((len(cutoffs) + 1, n_users), width)
    deepest = min(max([k for k in cutoffs if k != UNCUT], default=0), longest_of(listed.n_rec))
    bucket = np.searchsorted(cutoffs, np.arange(deepest + 2)).astype(np.int64)
    call(kernels.find_last, listed, found, bucket, work=8 * (len(listed.ranks) + found.size))
    return found


def _constant_events(sides: BatchSides, value: np.generic) -> Array:
    return np.full(sides["number of events"], value, value.dtype)


MADE["hits"] = _hits
MADE["listed rows"] = _listed
MADE["events of one value"] = lambda sides: functools.lru_cache(typed=True)(functools.partial(_constant_events, sides))
MADE["number of events"] = lambda sides: sides["hits"].n_events
MADE["last events"] = lambda sides: functools.partial(_last_events, sides)
# Without gains, the arrays that follow from the gains of rows have one value, which is that of all rows.
MADE["gains of truth"] = lambda sides: np.ones(1) if sides["truth"].extra is None else sides["truth"].extra
MADE["gains of at least 0"] = lambda sides: np.maximum(sides["gains of truth"], 0.0)
MADE["relevant rows"] = lambda sides: functools.cache(functools.partial(is_relevant, sides["gains of truth"]))


def of_listed(sides: BatchSides, values: Array) -> Array:
    """Return the values of events, given those of the rows of the truth, which follow from its gains.

    `values` has one for each row, or one for all. Events of rank 0 get an arbitrary one.
    """
    own: Array
    if sides["truth"].extra is None or not len(values):
        own = sides["events of one value"](values[0] if len(values) else values.dtype.type(0))
    else:
        own = values[sides["listed rows"].places[: sides["number of events"]]]
    return own


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


def _graded_lists(sides: BatchSides, least: float, missing: float) -> GradedLists:
    """Return the listed rows with their gains, and the gains of the best order of the relevant rows.

    `least` is the `min_gain` of a formula. A row that is not relevant has the gain `missing`: 0.0 or `math.nan`, which
    is one object, so that what was made for it is found again.
    """
    truth, listed = sides["truth"], sides["listed rows"]
    gains, relevant = sides["gains of at least 0"], sides["relevant rows"](least)
    starts, is_whole = starts_among(relevant, truth.indptr), bool(relevant.all())
    n_rel, first = np.diff(starts), starts[:-1]
    if truth.extra is None:
        ideals = np.ones(longest_of(n_rel))
        starts, first = np.array([0, len(ideals)]), np.zeros(truth.n_users, np.int64)
    else:
        ideals = gains[relevant]
        call(kernels.sort_gains, ideals, read_only(starts), work=8 * len(ideals))
    own = of_listed(sides, gains if is_whole else np.where(relevant, gains, missing))
    ranks = listed.ranks[: sides["number of events"]]
    arrays = (listed.starts, listed.counts, ranks, own, listed.n_rec, n_rel, ideals, first, starts)
    return GradedLists(*map(read_only, arrays))


MADE["graded lists"] = lambda sides: functools.cache(functools.partial(_graded_lists, sides))


@keep_short
def discounts_of_ranks(longest: int) -> Array:
    """Return 1 / log2(rank + 1) for ranks 0 (where it is 0) to `longest`."""
    discounts: Array = read_only(rank_weights("log2", longest))
    return discounts


def fill_by_cutoffs(
    keys: Sequence[tuple[Any, ...]], out: Array, fill: Callable[[tuple[Any, ...], Array, Array], None]
) -> None:
    """Fill the statistics of keys (cut-off, *others) by calls fill(others, ascending cut-offs, their own rows)."""
    for cuts, at, position in _by_others(tuple(keys)):
        key = tuple(keys[at[0]][1:])
        if position is None:
            fill(key, cuts, out[at[0] : at[-1] + 1])
            continue
        found = np.empty((len(cuts), out.shape[1]))
        fill(key, cuts, found)
        out[list(at)] = found[list(position)]


@functools.lru_cache(maxsize=64)
def _by_others(keys: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Array, tuple[int, ...], tuple[int, ...] | None], ...]:
    """Group keys (cut-off, *others) by their others.

    Return their ascending cut-offs, their rows, and the cut-off of each row; None if rows and cut-offs correspond one
    to one. Keys that are equal share a result, which therefore has none of their values but the cut-offs.
    """
    places: dict[tuple[Any, ...], list[int]] = {}
    for nth, (_, *others) in enumerate(keys):
        places.setdefault(tuple(others), []).append(nth)
    found: list[tuple[Array, tuple[int, ...], tuple[int, ...] | None]] = []
    for at in places.values():
        cuts, position = cuts_of([keys[nth][0] for nth in at])
        is_plain = [at[0] + nth for nth in position] == at
        found.append((read_only(cuts), tuple(at), None if is_plain else tuple(position)))
    return tuple(found)

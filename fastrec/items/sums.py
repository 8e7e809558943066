"""Sums along the lists of users, in threads: of values of items, of values of rows, of places in other lists."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.inputs.slots import MADE, BatchSides
from fastrec.kernels import items as kernels
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import Weight, rank_weights
from fastrec.runtime.launcher import edges_of, launch

T = TypeVar("T")
Array = np.ndarray[Any, Any]
AT_ONCE = 4  # values that kernels sum in one walk along the lists
FORMS = ("ext", "min", "truncated")  # of a rank-biased overlap, by their codes in the kernel
MAX_DEPTH = 10_000_000
MAX_KEPT = 1 << 14  # the longest tables that are kept, of 128 KB a column


def cuts_of(cutoffs: Sequence[int | None]) -> tuple[Array, list[int]]:
    """Return distinct cut-offs in ascending order, int64, and the position of each given one; None cuts nothing."""
    wanted = [UNCUT if k is None else k for k in cutoffs]
    cuts = np.array(sorted(set(wanted)), np.int64)
    return cuts, np.searchsorted(cuts, wanted).tolist()


def keep_short(make: Callable[..., T]) -> Callable[..., T]:
    """Return a function that keeps the tables that it has made lately, unless its last argument, a length, is large."""
    kept = functools.lru_cache(maxsize=16)(make)

    @functools.wraps(make)
    def kept_or_made(*given: Any) -> T:
        return (kept if given[-1] <= MAX_KEPT else make)(*given)

    return kept_or_made


def launch_users(driver: Callable[..., Any], n_users: int, *arguments: Any, work: int, n_threads: int) -> None:
    """Launch `driver(first, last, edges, *arguments)` over all users: edges[t]..edges[t + 1]-1 are those of task t."""
    edges = edges_of(n_users, n_threads)
    launch(driver, len(edges) - 1, edges, *arguments, work=work, n_threads=n_threads)


def sum_values(slots: Array, indptr: Array, cuts: Array, values: Array, n_threads: int) -> Array:
    """Return sums of values (n_slots, n_values) along each list up to the cut-offs, (n_values, n_cuts, n_users)."""
    n_users, n_values = len(indptr) - 1, values.shape[1]
    work, parts = (len(slots) + n_users) * min(n_values, AT_ONCE), []
    for first_value in range(0, n_values, AT_ONCE):
        table = np.zeros((len(values), AT_ONCE))
        own = values[:, first_value : first_value + AT_ONCE]
        table[:, : own.shape[1]] = own
        sums = np.empty((AT_ONCE, len(cuts), n_users))
        given = *map(read_only, (slots, indptr, cuts, table)), sums
        launch_users(kernels.sum_values, n_users, *given, work=work, n_threads=n_threads)
        parts.append(sums[: own.shape[1]])
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def sum_rows(values: Array, indptr: Array, cuts: Array, weight: Weight, n_threads: int) -> Array:
    """Return sums of values of rows, times the weight of their rank, up to the cut-offs, (n_cuts, n_users)."""
    n_users = len(indptr) - 1
    weights = rank_weights(weight, longest_row(indptr))[1:]
    sums = np.empty((len(cuts), n_users))
    given = *map(read_only, (values, indptr, cuts, weights)), sums
    launch_users(kernels.sum_rows, n_users, *given, work=len(values) + n_users, n_threads=n_threads)
    return sums


def history_of(sides: BatchSides, *, ordered: bool = True) -> FlatSide:
    """Return the history, with the items of each user in ascending order, so that sums have the same bits.

    Counts the users without a history for the report.
    """
    side: FlatSide = sides["history"]
    sides.note("users_without_history", int(np.count_nonzero(np.diff(side.indptr) == 0)))
    if not ordered:
        return side
    items = np.empty(len(side.items), side.items.dtype)
    given = read_only(side.items), read_only(side.indptr), items
    launch_users(kernels.order_items, side.n_users, *given, work=16 * len(items), n_threads=sides["n_threads"])
    return FlatSide(items, side.indptr, None)


def rows_without(sides: Mapping[str, Any], known: Array, cutoffs: Sequence[int | None]) -> Array:
    """Return the slots of rows of the lists, within the largest cut-off, that are not known."""
    slots = sides["slots"]
    if known.all():
        return np.zeros(0, np.int64)
    unknown = ~known[slots.of_rows]
    if None not in cutoffs and unknown.any():
        unknown &= sides["recs"].ranks <= max(k for k in cutoffs if k is not None)
    found: Array = slots.of_rows[unknown]
    return found


def is_hit(sides: Mapping[str, Any], least: float) -> Array:
    """Return which rows of the lists hold an item that is relevant, for the `min_gain` of a formula's statistics."""
    return is_relevant(sides["gains of rows"], least)


def _gains_of_rows(sides: BatchSides) -> Array:
    """Return the gain of each row of the lists, NaN for items that are not in the user's truth."""
    recs, truth = sides["recs"], sides["truth"]
    places = find_places(recs, truth, sides["n_threads"])
    gains = np.full(len(places), np.nan)
    gains[places > 0] = truth.gains[(truth.indptr[:-1][recs.users] + places - 1)[places > 0]]
    return gains


MADE["gains of rows"] = _gains_of_rows


def find_places(side: FlatSide, other: FlatSide, n_threads: int) -> Array:
    """Return the rank of each item of a side in the other side of its user, from 1, int64 (n_rows,); 0 without one."""
    places = np.empty(len(side.items), np.int64)
    given = side.items, side.indptr, other.items.astype(np.int64, copy=False), other.indptr
    work = 8 * (len(side.items) + len(other.items))
    launch_users(kernels.find_places, side.n_users, *map(read_only, given), places, work=work, n_threads=n_threads)
    return places


def rank_biased_overlap(
    places: Array, indptr: Array, lengths: Array, p: float, form: str, k: int | None, n_threads: int
) -> Array:
    """Return the rank-biased overlap of each user's list with another, 0 for users without one.

    `places` are the ranks of rows in the other list, 0 without one; `lengths` (2, n_users) are those of both lists.
    """
    deepest = int(lengths.max(initial=0))
    if form == "truncated" and k is not None:
        deepest = max(deepest, k)
    if deepest > MAX_DEPTH:
        raise MetricError(f"takes lists and cut-offs up to {MAX_DEPTH:,}, found {deepest:,}")
    powers = np.array([math.pow(p, d) for d in range(deepest + 1)])
    upper = powers[:-1]
    sums = np.cumsum(np.append(0.0, upper / np.arange(1, deepest + 1))), np.cumsum(np.append(0.0, upper))
    depths = *map(read_only, (powers, *sums)), k if form == "truncated" and k is not None else -1
    out = np.zeros(len(indptr) - 1)
    given = *map(read_only, (places, indptr, lengths)), p, *depths, FORMS.index(form), out
    launch_users(kernels.rank_biased_overlap, len(out), *given, work=8 * len(places) + len(out), n_threads=n_threads)
    return out

"""Sums along the lists of users, in threads: of values of items, of values of rows, of places in other lists."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels import items as kernels
from fastrec.metrics.program import UNCUT
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


def group_cutoffs(keys: Sequence[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], list[int], Array, list[int]]]:
    """Yield what keys have before their cut-offs, the positions of the keys that have it, and their `cuts_of`."""
    positions: dict[tuple[Any, ...], list[int]] = {}
    for nth, key in enumerate(keys):
        positions.setdefault(key[:-1], []).append(nth)
    for others, wanted in positions.items():
        yield others, wanted, *cuts_of([keys[nth][-1] for nth in wanted])


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


def order_items(side: FlatSide, n_threads: int) -> FlatSide:
    """Return a side with the items of each user in ascending order, so that sums have the same bits."""
    items = np.empty(len(side.items), side.items.dtype)
    given = read_only(side.items), read_only(side.indptr), items
    launch_users(kernels.order_items, side.n_users, *given, work=16 * len(items), n_threads=n_threads)
    return FlatSide(items, side.indptr, None)


def find_numbers(side: FlatSide, other: FlatSide, numbers: Array, n_threads: int) -> Array:
    """Return the number of the other side for each row of a side, float64 (n_rows,); NaN for rows that it lacks."""
    places = find_places(side, other, n_threads)
    found, there = np.full(len(places), math.nan), places > 0
    found[there] = numbers[(other.indptr[:-1][side.users] + places - 1)[there]]
    return found


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

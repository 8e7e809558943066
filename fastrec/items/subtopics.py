"""Statistics of the subtopics that the items of lists cover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import read_only
from fastrec.items.sums import find_places, launch_users
from fastrec.kernels import subtopics as kernels
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import Weight, rank_weights

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
MAX_RANKS = 10_000_000  # of a list that covers all subtopics


class CoveredBatch(NamedTuple):
    """The lists and the relevant items of a batch, with the subtopics that they cover."""

    lists: kernels.Covered
    relevant: kernels.Covered  # in ascending order of their subtopics
    n: Array  # int64 (n_users,): subtopics of each user
    sizes: Array  # int64 (n_subtopics,): the items that cover each subtopic, of all users end to end


def _distinct(values: Array) -> Array:
    """Return the distinct values in ascending order; `np.unique` hashes them, which takes many times as long."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _rows_of(side: FlatSide, truth: FlatSide, n_threads: int) -> Array:
    """Return the row of the truth with the user and the item of each row; the number of all its rows without one."""
    places = find_places(side, truth, n_threads)
    rows: Array = np.where(places > 0, truth.indptr[side.users] + places - 1, len(truth.items))
    return rows


def _read(sides: BatchSides, least: float) -> CoveredBatch:
    """Join the subtopics of relevant items with lists."""
    recs, truth, covering, n_threads = sides.recs, sides.truth, sides.subtopics, sides.n_threads
    assert covering is not None
    relevant = is_relevant(truth.gains, least)
    rows = _rows_of(covering, truth, n_threads)
    kept = np.append(relevant, False)[rows]
    rows, topics = rows[kept], covering.gains[kept] + 0.0  # its numbers; no -0.0
    known = _distinct(topics)
    n_known = max(len(known), 1)
    pairs = _distinct(rows * n_known + np.searchsorted(known, topics))
    rows = pairs // n_known
    users = truth.users
    numbers, sizes, n = _number(users[rows], pairs % n_known, recs.n_users)
    has_relevant = np.bincount(users[relevant], minlength=recs.n_users) > 0
    sides.note("users_without_subtopics", int(np.count_nonzero(has_relevant & (n == 0))))
    seen_at = np.append(0, np.cumsum(n))
    bounds = np.append(0, np.cumsum(np.bincount(rows, minlength=len(users) + 1)))
    listed = _rows_of(recs, truth, n_threads)
    own = np.asarray(recs.indptr, np.int64), bounds[listed], bounds[listed + 1], numbers, seen_at
    items = np.flatnonzero(np.diff(bounds))
    relevant_items = _in_order(users[items], bounds[items], bounds[items + 1], numbers, seen_at)
    return CoveredBatch(kernels.Covered(*map(read_only, own)), relevant_items, n, sizes)


def _number(users: Array, topics: Array, n_users: int) -> tuple[Array, Array, Array]:
    """Return the number of each row's subtopic among those of its user, the rows of each, and how many users have."""
    n_topics = int(topics.max(initial=0)) + 1
    pairs = users * n_topics + topics
    known = _distinct(pairs)
    of_all = np.searchsorted(known, pairs)
    n = np.bincount(known // n_topics, minlength=n_users).astype(np.int64)
    numbers = of_all - np.append(0, np.cumsum(n))[users]
    return numbers, np.bincount(of_all, minlength=len(known)).astype(np.int64), n


def _in_order(users: Array, starts: Array, stops: Array, numbers: Array, seen_at: Array) -> kernels.Covered:
    """Return the relevant items of users by ascending lists of their subtopics, so that their ids do not matter."""
    order = np.arange(len(starts))
    places, groups, depth = order.copy(), users, 0  # of items that the subtopics so far do not tell apart
    n_topics = int(numbers.max(initial=0)) + 2
    while len(places):
        items = order[places]
        at = starts[items] + depth
        ranks = groups * n_topics + np.where(at < stops[items], numbers[np.minimum(at, len(numbers) - 1)] + 1, 0)
        by = np.argsort(ranks)
        order[places], ranks = items[by], ranks[by]
        groups = np.cumsum(np.append(True, ranks[1:] != ranks[:-1]))
        alike = (np.bincount(groups)[groups] > 1) & (ranks % n_topics > 0)
        places, groups, depth = places[alike], groups[alike], depth + 1
    indptr = np.append(0, np.cumsum(np.bincount(users, minlength=len(seen_at) - 1))).astype(np.int64)
    return kernels.Covered(*map(read_only, (indptr, starts[order], stops[order], numbers, seen_at)))


def _novelty(covered: kernels.Covered, cutoff: int | None, alpha: float, weight: Weight) -> kernels.Novelty:
    longest = int(np.diff(covered.indptr).max(initial=0))
    powers = np.cumprod(np.append(1.0, np.full(longest, 1.0 - alpha)))
    return kernels.Novelty(
        UNCUT if cutoff is None else cutoff, read_only(powers), read_only(rank_weights(weight, longest))
    )


def _of_all(batch: CoveredBatch, cutoff: int | None, alpha: float, weight: Weight) -> Array:
    """Return the sums of lists of k items that cover all subtopics; without a cut-off k is the length of the list."""
    lengths = np.diff(batch.lists.indptr) if cutoff is None else np.full(len(batch.n), cutoff)
    longest = int(lengths.max(initial=0))
    if longest > MAX_RANKS:
        raise MetricError(f"needs k <= {MAX_RANKS}, found k = {longest}")
    powers = np.cumprod(np.append(1.0, np.full(max(longest - 1, 0), 1.0 - alpha)))
    sums = np.append(0.0, np.cumsum(powers[:longest] * rank_weights(weight, longest)[1:]))
    best: Array = batch.n * sums[lengths]
    return best


def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has their kind, a cut-off, `min_gain`, and for sums alpha and the weights of ranks."""
    known: dict[float, CoveredBatch] = {}
    for nth, (kind, cutoff, least, *parameters) in enumerate(keys):
        if least not in known:
            known[least] = _read(sides, least)
        batch = known[least]
        if kind == "n":
            out[nth] = batch.n
        elif kind == "all_subtopics":
            out[nth] = _of_all(batch, cutoff, *parameters)
        else:
            _run(batch, kind, cutoff, parameters, sides.n_threads, out[nth])


def _run(batch: CoveredBatch, kind: str, cutoff: int | None, parameters: list[Any], n_threads: int, out: Array) -> None:
    """Run a kernel over the users of a batch."""
    covered = batch.relevant if kind == "ideal" else batch.lists
    novelty = _novelty(covered, cutoff, *(parameters or (0.0, "one")))
    given = kernels.KINDS.index(kind), *covered, *novelty, read_only(batch.sizes), out
    work = 16 * (len(covered.subtopics) + len(covered.starts) + len(batch.n))
    launch_users(kernels.sum_subtopics, len(batch.n), *given, work=work, n_threads=n_threads)

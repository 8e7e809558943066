"""Statistics of the subtopics that the items of lists cover."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import BatchSides
from fastrec.kernels import subtopics as kernels
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant, provider
from fastrec.metrics.rank_weights import Weight, rank_weights
from fastrec.metrics.subtopics import SUBTOPICS
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

Array = np.ndarray[Any, Any]
MAX_RANKS = 10_000_000  # of a list that covers all subtopics
SUMS = {"covered": "count_covered", "pairs": "count_pairs"}


@functools.cache
def _entry(name: str) -> Entry:
    return Entry(getattr(kernels, name), name)


class CoveredBatch(NamedTuple):
    """The lists and the relevant items of a batch, with the subtopics that they cover."""

    lists: kernels.Covered
    relevant: kernels.Covered  # in ascending order of their subtopics
    n: Array  # int64 (n_users,): subtopics of each user
    sizes: Array  # int64 (n_subtopics,): the items that cover each subtopic, of all users end to end


def _keys(side: FlatSide, known: Array) -> Array:
    """Return a number for the user and the item of each row, -1 for other items than the known ones."""
    code = np.minimum(np.searchsorted(known, side.items), max(len(known) - 1, 0))
    here = known[code] == side.items if len(known) else np.zeros(len(side.items), bool)
    return np.where(here, side.users * len(known) + code, -1)


def _read(sides: BatchSides, least: float) -> CoveredBatch:
    """Join the subtopics of relevant items with lists."""
    recs, truth, covering = sides["recs"], sides["truth"], sides[SUBTOPICS]
    n_users = recs.n_users
    known = np.unique(truth.items[is_relevant(truth.gains, least)])
    good = np.unique(_keys(truth, known)[is_relevant(truth.gains, least)])
    keys = _keys(covering, known)
    kept = np.isin(keys, good) & (keys >= 0)
    users, keys, topics = covering.users[kept], keys[kept], covering.gains[kept] + 0.0  # its numbers; no -0.0
    order = np.lexsort((topics, keys))
    users, keys, topics = users[order], keys[order], topics[order]
    is_new = np.ones(len(keys), bool)
    is_new[1:] = (keys[1:] != keys[:-1]) | (topics[1:] != topics[:-1])
    users, keys, topics = users[is_new], keys[is_new], topics[is_new]
    numbers, sizes, n = _number(users, topics, n_users)
    has_relevant = np.bincount(truth.users[is_relevant(truth.gains, least)], minlength=n_users) > 0
    sides.note("users_without_subtopics", int(np.count_nonzero(has_relevant & (n == 0))))
    seen_at = np.append(0, np.cumsum(n))
    wanted = _keys(recs, known)
    lists = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    own = kernels.Covered(*map(read_only, (np.asarray(recs.indptr, np.int64), *lists, numbers, seen_at)))
    return CoveredBatch(own, _in_order(users, keys, numbers, n_users, seen_at), n, sizes)


def _number(users: Array, topics: Array, n_users: int) -> tuple[Array, Array, Array]:
    """Return the number of each row's subtopic among those of its user, the rows of each, and how many users have."""
    order = np.lexsort((topics, users))
    is_new = np.ones(len(order), bool)
    is_new[1:] = (users[order][1:] != users[order][:-1]) | (topics[order][1:] != topics[order][:-1])
    n = np.bincount(users[order][is_new], minlength=n_users).astype(np.int64)
    of_all = np.cumsum(is_new) - 1
    numbers = np.empty(len(order), np.int64)
    numbers[order] = of_all - np.append(0, np.cumsum(n))[users[order]]
    return numbers, np.bincount(of_all, minlength=int(n.sum())).astype(np.int64), n


def _in_order(users: Array, keys: Array, numbers: Array, n_users: int, seen_at: Array) -> kernels.Covered:
    """Return the relevant items of users by ascending lists of their subtopics, so that their ids do not matter."""
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
    stops = np.append(starts[1:], len(keys)) if len(starts) else starts
    order = np.arange(len(starts))
    places, groups, depth = order.copy(), users[starts], 0  # of items that the subtopics so far do not tell apart
    while len(places):
        items = order[places]
        at = starts[items] + depth
        topics = np.where(at < stops[items], numbers[np.minimum(at, len(numbers) - 1)], -1)
        by = np.lexsort((topics, groups))
        order[places], topics, groups = items[by], topics[by], groups[by]
        groups = np.cumsum(np.append(True, (groups[1:] != groups[:-1]) | (topics[1:] != topics[:-1])))
        alike = (np.bincount(groups)[groups] > 1) & (topics >= 0)
        places, groups, depth = places[alike], groups[alike], depth + 1
    indptr = np.append(0, np.cumsum(np.bincount(users[starts], minlength=n_users))).astype(np.int64)
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


@provider(SUBTOPICS, sides=["recs", "truth", SUBTOPICS])
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
            _run(batch, kind, cutoff, parameters, sides["n_threads"], out[nth])


def _run(batch: CoveredBatch, kind: str, cutoff: int | None, parameters: list[Any], n_threads: int, out: Array) -> None:
    """Run a kernel over the users of a batch."""
    covered = batch.relevant if kind == "ideal" else batch.lists
    name = {"novelty": "sum_novelty", "ideal": "sum_greedily", "precisions": "sum_precisions", **SUMS}[kind]
    room = len(covered.starts) + len(batch.n)
    spare = {"novelty": np.zeros(room, np.int64), "ideal": np.zeros((2, room), np.int64)}
    counts = spare.get(kind, read_only(batch.sizes))
    seen = np.zeros(int(batch.n.sum()), np.int64)
    given = covered, _novelty(covered, cutoff, *(parameters or (0.0, "one"))), seen, counts, out
    steps = 16 * (len(covered.subtopics) + room)
    over_users(functools.partial(_entry(name).suited_to(steps), *given), len(batch.n), n_threads)

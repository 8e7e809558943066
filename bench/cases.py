"""Seeded logs by size: lists, and truth that is partly in the lists.

Items are long-tailed: popularity ranks are cut into strata that grow with the rank. Every user gets items of some
strata as the list and items of others as the rest of the truth. So no item is there twice or a hit by chance,
without sorting or drawing again. Ids are a random permutation of the catalogue, so that the regular steps through the
strata leave no pattern in the ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

N_ITEMS = 100_000
ROWS_PER_CHUNK = 1 << 22  # memory beyond the log itself stays at some 200 MB
SPREAD = 0.8  # of the logarithm of truth sizes
TAIL = 3.0  # strata of equal traffic grow with this power of their number


class Log(NamedTuple):
    """Lists and truth of the same users in CSR form, best items first."""

    rec_items: Array  # int32 or int64 (n_rec_rows,)
    rec_indptr: Array  # int64 (n_users + 1,)
    truth_items: Array  # as rec_items (n_truth_rows,)
    truth_indptr: Array  # int64 (n_users + 1,)

    @property
    def n_users(self) -> int:
        """Number of users in the log."""
        return len(self.rec_indptr) - 1

    @property
    def recs(self) -> tuple[Array, Array]:
        """The lists as `fastrec.evaluate` takes them."""
        return self.rec_items, self.rec_indptr

    @property
    def truth(self) -> tuple[Array, Array]:
        """The truth as `fastrec.evaluate` takes it."""
        return self.truth_items, self.truth_indptr

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self)


def make_log(
    n_users: int,
    list_length: int | tuple[int, int],
    *,
    n_items: int = N_ITEMS,
    truth_mean: float = 9.0,
    hit_share: float = 0.15,
    seed: int = 1,
) -> Log:
    """Return a log with int32 ids in 0..n_items-1; lists have one length, or lengths drawn from low..high.

    Truth sizes are log-normal, at least 1 and at most a quarter of the strata; about `hit_share` of the truth is in
    the list.
    """
    rng = np.random.default_rng(seed)
    low, high = (list_length, list_length) if isinstance(list_length, int) else list_length
    n_strata = max(128, 1 << (2 * high - 1).bit_length())
    edges = _strata(n_items, n_strata)
    ids = rng.permutation(n_items).astype(np.int32)
    lengths = rng.integers(low, high + 1, n_users)
    sizes = np.exp(rng.normal(np.log(truth_mean) - SPREAD**2 / 2, SPREAD, n_users))
    sizes = np.clip(np.rint(sizes).astype(np.int64), 1, n_strata // 4)
    rec_indptr, truth_indptr = _indptr(lengths), _indptr(sizes)
    recs, truth = np.empty(rec_indptr[-1], np.int32), np.empty(truth_indptr[-1], np.int32)
    for first, last in _chunks(rec_indptr, truth_indptr):
        chunk = _make_chunk(rng, lengths[first:last], sizes[first:last], edges, hit_share)
        recs[rec_indptr[first] : rec_indptr[last]] = ids[chunk[0]]
        truth[truth_indptr[first] : truth_indptr[last]] = ids[chunk[1]]
    return Log(recs, rec_indptr, truth, truth_indptr)


def widen(log: Log, *, seed: int = 2) -> Log:
    """Return the same log with int64 ids: every item gets its own random id below 2^62."""
    rng = np.random.default_rng(seed)
    n_items = int(max(log.rec_items.max(initial=0), log.truth_items.max(initial=0))) + 1
    ids = np.zeros(0, np.int64)
    while len(ids) < n_items:
        ids = np.unique(np.concatenate([ids, rng.integers(0, 1 << 62, n_items - len(ids))]))
    rng.shuffle(ids)
    return log._replace(rec_items=ids[log.rec_items], truth_items=ids[log.truth_items])


def add_giant(log: Log, n_rows: int, *, seed: int = 3) -> Log:
    """Return the log with one more user in the middle: list and truth of `n_rows` items each, about 15 % shared."""
    rng = np.random.default_rng(seed)
    items = rng.permutation(2 * n_rows).astype(log.rec_items.dtype)
    shared = n_rows * 3 // 20
    truth = rng.permutation(items[n_rows - shared : 2 * n_rows - shared])
    return Log(
        *_insert(log.rec_items, log.rec_indptr, items[:n_rows], log.n_users // 2),
        *_insert(log.truth_items, log.truth_indptr, truth, log.n_users // 2),
    )


def first_users(log: Log, n_users: int) -> Log:
    """Return the log of the first users only."""
    n = min(n_users, log.n_users)
    rec_indptr, truth_indptr = log.rec_indptr[: n + 1], log.truth_indptr[: n + 1]
    return Log(log.rec_items[: rec_indptr[-1]], rec_indptr, log.truth_items[: truth_indptr[-1]], truth_indptr)


def save(log: Log, folder: Path) -> None:
    """Write the arrays of a log to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in log._asdict().items():
        np.save(folder / f"{name}.npy", array)


def load(folder: Path) -> Log:
    """Read a log that `save` wrote, straight into its arrays, without other memory."""
    return Log(*(np.load(folder / f"{name}.npy") for name in Log._fields))


def _make_chunk(
    rng: np.random.Generator, lengths: Array, sizes: Array, edges: Array, hit_share: float
) -> tuple[Array, Array]:
    """Return the popularity ranks of the lists and the truth of some users."""
    n_users, n_strata = len(lengths), len(edges) - 1
    rec_indptr, truth_indptr = _indptr(lengths), _indptr(sizes)
    start = rng.integers(0, n_strata, n_users, np.int32)
    step = rng.integers(0, n_strata // 2, n_users, np.int32) * 2 + 1  # odd: visits each stratum once

    def draw(users: Array, turns: Array) -> Array:
        """Draw an item of the stratum that each user visits at a turn."""
        stratum = (start[users] + step[users] * turns) & np.int32(n_strata - 1)
        width = edges[stratum + 1] - edges[stratum]
        return edges[stratum] + (rng.random(len(users), np.float32) * width).astype(np.int32)

    users = np.repeat(np.arange(n_users, dtype=np.int32), lengths)
    recs = draw(users, _counter(rec_indptr, users))
    users = np.repeat(np.arange(n_users, dtype=np.int32), sizes)
    nth = _counter(truth_indptr, users)
    hits = np.minimum(rng.binomial(sizes, hit_share), lengths).astype(np.int32)[users]
    truth = draw(users, lengths[users].astype(np.int32) + nth)
    hit = np.flatnonzero(nth < hits)
    truth[hit] = recs[rec_indptr[users[hit]] + _spread(rng, nth[hit], hits[hit], lengths[users[hit]])]
    return recs, truth[np.argsort(users + rng.random(len(users)))]  # the hits of a user anywhere in the truth


def _spread(rng: np.random.Generator, nth: Array, parts: Array, length: Array) -> Array:
    """Draw a position in 0..length-1 from the nth of `parts` equal parts; different parts never share a position."""
    low = nth * length // parts
    high = (nth + 1) * length // parts
    return low + (rng.random(len(nth)) * (high - low)).astype(np.int64)


def _strata(n_items: int, n_strata: int) -> Array:
    """Return the edges of the strata of popularity ranks, each at least one item wide."""
    if n_items < n_strata:
        raise ValueError(f"lists of this length need n_items of at least {n_strata}, found {n_items}")
    number = np.arange(n_strata + 1)
    return (number + (n_items - n_strata) * (number / n_strata) ** TAIL).astype(np.int32)


def _indptr(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _counter(indptr: Array, users: Array) -> Array:
    """Return 0, 1, 2, ... within each user."""
    return np.arange(len(users), dtype=np.int32) - indptr[users].astype(np.int32)


def _chunks(rec_indptr: Array, truth_indptr: Array) -> Iterator[tuple[int, int]]:
    rows = rec_indptr + truth_indptr
    n_users = len(rows) - 1
    first = 0
    while first < n_users:
        last = int(np.searchsorted(rows, rows[first] + ROWS_PER_CHUNK, side="right")) - 1
        last = min(max(last, first + 1), n_users)
        yield first, last
        first = last


def _insert(items: Array, indptr: Array, row: Array, user: int) -> tuple[Array, Array]:
    at = indptr[user]
    lengths = np.insert(np.diff(indptr), user, len(row))
    return np.concatenate([items[:at], row, items[at:]]), _indptr(lengths)

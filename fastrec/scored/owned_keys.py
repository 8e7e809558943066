"""Keys of rows with owners, such as users, and the pairs that the rows of each owner are in.

Pairs are counted in ranges of scores, one after the other in the same memory: the rows of a range move and are counted.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import owned_keys as kernels
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.areas import Pairs, joined_pairs, pairs_of_keys
from fastrec.scored.keys import SortedKeys
from fastrec.scored.sorting import FORMS, N_BUCKETS, STEPS_PER_ROW, Buckets, Form, key_buffer, plan_buckets

__all__ = ["n_sums", "pairs_of_owners", "sort_owned_rows"]

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 25  # of a range: fewer take less memory, and more passes over all rows
COUNTS_PER_ROW, MAX_COUNTS = 12, 1 << 22  # of the possible keys of a bucket: more are not worth counting each
MAX_COUNTED = MAX_SHORT = 1 << 31  # rows whose pairs 63 bits count, and whose places 31 bits do
MAX_NARROW = 1 << 32  # owners that 32 bits number
MAX_BUCKETS = 1 << 15  # 16 bits number them


@functools.cache
def _entry(name: str, variant: str) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{variant}")


class _InBuckets(NamedTuple):
    """Rows with owners, and their buckets."""

    bits: Array  # of scores
    labels: Array
    indptr: Array
    buckets: Buckets

    @classmethod
    def of(cls, labels: Array, scores: Array, indptr: Array, n_threads: int, n_buckets: int = N_BUCKETS) -> Self:
        """Make the buckets of checked rows; raise InputError if a score is NaN."""
        form = FORMS[scores.itemsize]
        bits = read_only(scores.view(form.bits))
        buckets = plan_buckets(bits, form, n_threads, n_buckets)
        return cls(bits, read_only(labels.view(np.int8)), read_only(indptr), buckets)

    @property
    def form(self) -> Form:
        """The layout of scores."""
        return FORMS[self.bits.itemsize]

    def kernel(self, name: str, n_rows: int, *variant: object) -> Any:
        """Return the kernel for so many rows."""
        found = _entry(name, "-".join(map(str, (self.form.width, *variant))))
        return found.suited_to(STEPS_PER_ROW * n_rows)

    def room(self, n_rows: int) -> tuple[Array, Array]:
        """Return room for the keys and the owners of so many rows."""
        narrow = len(self.indptr) - 1 <= MAX_NARROW
        return np.empty(n_rows, self.form.bits), np.empty(n_rows, np.uint32 if narrow else np.int64)

    def move(self, begin: int, end: int, keys: Array, owners: Array) -> None:
        """Write the keys and owners of the buckets of rows begin..end-1 by ascending bucket, unsorted within each."""
        own, scatter = self.buckets, self.kernel("scatter_owned", len(self.bits), owners.itemsize)
        bins = np.searchsorted(own.bucket_of, [own.edges.index(begin), own.edges.index(end)]).tolist()
        buckets = kernels.SomeBuckets(own.shift, own.bucket_of, *bins)

        def work(rows: slice, places: Array) -> None:
            owner = int(np.searchsorted(self.indptr, rows.start, side="right")) - 1
            owned = kernels.Owned(self.indptr, rows.start, owner)
            block = key_buffer(self.form)
            room = block, np.empty(len(block), np.int32)
            scatter(self.bits[rows], self.labels[rows], owned, buckets, places - begin, keys, owners, room)

        own.in_chunks(work)

    def sort(self, keys: Array, owners: Array) -> None:
        """Sort the rows of a bucket by key, in place."""
        n = len(keys)
        if not n:
            return
        bits = n.bit_length() - 1
        short = n < MAX_SHORT
        places = np.empty(2 << bits, np.int32 if short else np.int64)
        taken, taken_owners = np.empty_like(keys), np.empty_like(owners)
        if not self.kernel("sort_owned", n, owners.itemsize, short)(keys, owners, bits, places, taken, taken_owners):
            order = np.argsort(keys)  # many scores are close together
            taken, taken_owners = keys[order], owners[order]
        keys[:], owners[:] = taken, taken_owners

    def pairs(self, keys: Array, owners: Array, around: kernels.Around) -> tuple[int, Callable[[Array], Any]]:
        """Return twice the ordered pairs within a bucket, and a function that adds those of its rows to sums."""
        n = len(keys)
        if not n:
            return 0, lambda _: None
        if n <= MAX_COUNTED:
            pairs = np.empty(min(COUNTS_PER_ROW * n, MAX_COUNTS), np.int64)
            twice, least = self.kernel("write_pairs_of_keys", n)(keys, pairs, around)
            if twice >= 0:
                add = self.kernel("add_pairs_of_keys", n, owners.itemsize)
                return int(twice), functools.partial(add, keys, owners, least, pairs)
        self.sort(keys, owners)
        add = self.kernel("add_pairs", n, owners.itemsize)
        return pairs_of_keys(keys).twice, functools.partial(add, keys, owners, around)


def sort_owned_rows(labels: Array, scores: Array, indptr: Array, n_threads: int) -> tuple[SortedKeys, Array]:
    """Sort rows as `sort_rows` does, and return the owner of each sorted row; `indptr` is as in `pairs_of_owners`."""
    rows = _InBuckets.of(labels, scores, indptr, n_threads)
    keys, owners = rows.room(len(rows.bits))
    parts = rows.buckets.parts()
    rows.move(0, len(keys), keys, owners)
    run_in_threads(lambda at: rows.sort(keys[parts[at]], owners[parts[at]]), range(len(parts)), n_threads)
    edges = rows.buckets.edges
    return SortedKeys(keys, edges, edges[rows.buckets.n_below]), owners


def pairs_of_owners(labels: Array, scores: Array, indptr: Array, shift: int, n_threads: int) -> tuple[Pairs, Array]:
    """Return the pairs of all checked rows, and twice those that the rows of each owner are in: int64 (n_owners,).

    A pair counts for each of its two rows, a tied one half. What a row counts is rounded to multiples of `2 ** shift`,
    and the sums are divided by that. Owner i has rows indptr[i]:indptr[i + 1], the first of them row 0. Raise
    InputError if a score is NaN.
    """
    n_ranges = max(1, -(-len(labels) // ROWS_AT_ONCE))
    rows = _InBuckets.of(labels, scores, indptr, n_threads, min(N_BUCKETS * n_ranges, MAX_BUCKETS))
    ranges = _ranges(rows.buckets.edges)
    keys, owners = rows.room(max((end - begin for begin, end in ranges), default=0))
    sums, found = _Sums(indptr, n_threads), Pairs(0, 0, 0)
    n_positives = int(np.count_nonzero(rows.labels))
    for begin, end in ranges:
        edges = [at - begin for at in rows.buckets.edges if begin <= at <= end]
        rows.move(begin, end, keys, owners)
        buckets = [(keys[part], owners[part]) for part in itertools.starmap(slice, itertools.pairwise(edges))]
        around = kernels.Around(found.negatives, n_positives - found.positives, shift)
        found = joined_pairs([found, *sums.add(rows, buckets, around)])
    return found, sums.total()


class _Sums:
    """Sums of the pairs that rows are in, by owner. Threads share few arrays of them if owners are many."""

    def __init__(self, indptr: Array, n_threads: int) -> None:
        n_owners, n_rows = len(indptr) - 1, int(indptr[-1])
        n_arrays = n_sums(n_rows, n_owners, n_threads)
        self._sums = [np.full(n_owners, 0, np.int64) for _ in range(n_arrays)]  # `np.zeros` asks for no huge pages
        one_each = n_owners == n_rows and bool((np.diff(indptr) == 1).all())
        self._n_threads, self._free = n_threads, SimpleQueue[Array]()
        for own in self._sums * n_threads if one_each else self._sums:  # no two rows of one each add to one place
            self._free.put(own)

    def add(self, rows: _InBuckets, buckets: list[tuple[Array, Array]], around: kernels.Around) -> list[Pairs]:
        """Add the pairs of the rows of neighbouring buckets, given as keys and owners; return those of each bucket.

        `around` is that of the first bucket.
        """
        tasks = range(len(buckets))
        count = rows.kernel("count_positives", sum(len(keys) for keys, _ in buckets))
        positives = run_in_threads(lambda at: int(count(buckets[at][0])), tasks, self._n_threads)
        negatives = [len(own[0]) - n for own, n in zip(buckets, positives, strict=True)]
        below = list(itertools.accumulate(negatives, initial=around.below))
        above = list(itertools.accumulate(positives, lambda left, own: left - own, initial=around.above))

        def add_bucket(at: int) -> Pairs:
            twice, add = rows.pairs(*buckets[at], kernels.Around(below[at], above[at], around.shift))
            sums = self._free.get()
            try:
                add(sums)
            finally:
                self._free.put(sums)
            return Pairs(twice, positives[at], negatives[at])

        return run_in_threads(add_bucket, tasks, self._n_threads)

    def total(self) -> Array:
        """Return the sums over all threads."""
        for other in self._sums[1:]:
            self._sums[0] += other
        return self._sums[0]


def _ranges(edges: list[int]) -> list[tuple[int, int]]:
    """Return where ranges of neighbouring buckets begin and end, of about `ROWS_AT_ONCE` rows if no bucket has more."""
    found, begin = [], 0
    for start, end in itertools.pairwise(edges):
        if end - begin > ROWS_AT_ONCE and start > begin:
            found.append((begin, start))
            begin = start
    return [*found, (begin, edges[-1])] if edges[-1] else []


def n_sums(n_rows: int, n_owners: int, n_threads: int) -> int:
    """Return how many arrays of sums over owners so many rows are added to at once: many owners would need many."""
    return min(max(1, n_rows // max(1, 2 * n_owners)), n_threads)

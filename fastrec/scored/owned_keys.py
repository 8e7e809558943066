"""Keys of rows with owners, such as users, and the pairs that the rows of each owner are in.

Pairs are counted in ranges of scores, one after the other in the same memory: the rows of a range move and are counted.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, Self

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import owned_keys as kernels
from fastrec.kernels.sorting import LOW_BITS
from fastrec.runtime.launcher import launch
from fastrec.scored.areas import Pairs, joined_pairs
from fastrec.scored.keys import SortedKeys
from fastrec.scored.sorting import FORMS, N_BUCKETS, Buckets, plan_buckets

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 25  # of a range: fewer take less memory, and more passes over all rows
MAX_COUNTS = 1 << 22  # of the possible keys of a bucket: more are not worth counting each
MAX_NARROW = 1 << 32  # owners that 32 bits number
MAX_BUCKETS = 1 << 15  # 16 bits number them


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

    def room(self, n_rows: int) -> tuple[Array, Array]:
        """Return room for the keys and the owners of so many rows."""
        narrow = len(self.indptr) - 1 <= MAX_NARROW
        return np.empty(n_rows, self.bits.dtype), np.empty(n_rows, np.uint32 if narrow else np.int64)

    def move(self, first: int, end: int, keys: Array, owners: Array) -> Array:
        """Write the keys and owners of the rows of buckets first..end-1 by ascending bucket, unsorted within each.

        Return where these buckets begin among them, and where the last one ends.
        """
        own = self.buckets
        bins = read_only(np.searchsorted(own.bucket_of, [first, end]))
        owner_of = read_only(np.searchsorted(self.indptr, own.cuts[:-1], side="right") - 1)
        places = own.places - own.edges[first]
        rows = (self.bits, self.labels, own.cuts, self.indptr, owner_of)
        given = (*rows, own.shift, bins, own.bucket_of, places, keys, owners)
        launch(kernels.scatter_owned, len(places), *given, work=8 * len(self.bits), n_threads=len(places))
        return read_only(own.edges[first : end + 1] - own.edges[first])


def sort_owned_rows(labels: Array, scores: Array, indptr: Array, n_threads: int) -> tuple[SortedKeys, Array]:
    """Sort rows as `sort_rows` does, and return the owner of each sorted row; `indptr` is as in `pairs_of_owners`."""
    rows = _InBuckets.of(labels, scores, indptr, n_threads)
    keys, owners = rows.room(len(rows.bits))
    edges = rows.move(0, len(rows.buckets.edges) - 1, keys, owners)
    launch(kernels.sort_owned, len(edges) - 1, keys, owners, edges, work=8 * len(keys), n_threads=n_threads)
    return SortedKeys(keys, edges.tolist(), int(edges[rows.buckets.n_below])), owners


def pairs_of_owners(labels: Array, scores: Array, indptr: Array, shift: int, n_threads: int) -> tuple[Pairs, Array]:
    """Return the pairs of all checked rows, and twice those that the rows of each owner are in: int64 (n_owners,).

    A pair counts for each of its two rows, a tied one half. What a row counts is rounded to multiples of `2 ** shift`,
    and the sums are divided by that. Owner i has rows indptr[i]:indptr[i + 1], the first of them row 0. Raise
    InputError if a score is NaN.
    """
    n_ranges = max(1, -(-len(labels) // ROWS_AT_ONCE))
    rows = _InBuckets.of(labels, scores, indptr, n_threads, min(N_BUCKETS * n_ranges, MAX_BUCKETS))
    ranges, edges = _ranges(rows.buckets.edges), rows.buckets.edges
    keys, owners = rows.room(max((int(edges[end] - edges[first]) for first, end in ranges), default=0))
    one_each = len(indptr) == len(labels) + 1 and bool((np.diff(indptr) == 1).all())  # no two add to one place
    n_lanes = n_sums(len(labels), len(indptr) - 1, n_threads)
    sums = np.full((1 if one_each else n_lanes, len(indptr) - 1), 0, np.int64)  # `np.zeros` asks for no huge pages
    n_lanes, found = n_threads if one_each else n_lanes, Pairs(0, 0, 0)
    n_positives = int(np.count_nonzero(rows.labels))
    for first, end in ranges:
        own = rows.move(first, end, keys, owners)
        above = n_positives - found.positives
        found = joined_pairs([found, *_add_pairs(keys, owners, own, (found.negatives, above, shift), sums, n_lanes)])
    for other in sums[1:]:
        sums[0] += other
    return found, sums[0]


def _add_pairs(
    keys: Array, owners: Array, edges: Array, around: tuple[int, int, int], sums: Array, n_lanes: int
) -> list[Pairs]:
    """Add the pairs of the rows of neighbouring buckets to sums; return those within each bucket.

    `around` is that of the first bucket, as `kernels.Around` has it.
    """
    n_buckets, n_rows = len(edges) - 1, int(edges[-1])
    positives, pairs = np.empty(n_buckets, np.int64), np.empty((n_buckets, 2), np.int64)
    launch(kernels.count_positives, n_buckets, keys, edges, positives, work=8 * n_rows, n_threads=n_lanes)
    sizes = np.diff(edges)
    negatives = sizes - positives
    below = read_only(around[0] + np.cumsum(negatives) - negatives)
    above = read_only(around[1] - np.cumsum(positives) + positives)
    n_counts = min(kernels.COUNTS_PER_ROW * int(sizes.max(initial=0)), MAX_COUNTS)
    given = (n_lanes, keys, owners, edges, below, above, around[2], n_counts, sums, pairs)
    launch(kernels.add_pairs_of_buckets, n_lanes, *given, work=16 * n_rows, n_threads=n_lanes)
    counted = zip(pairs.tolist(), positives.tolist(), negatives.tolist(), strict=True)
    return [Pairs((high << LOW_BITS) + low, *own) for (high, low), *own in counted]


def _ranges(edges: Array) -> list[tuple[int, int]]:
    """Return the first bucket of each range and the one after its last.

    Ranges have about `ROWS_AT_ONCE` rows if no bucket has more.
    """
    found, first = [], 0
    for at, (start, end) in enumerate(itertools.pairwise(edges.tolist())):
        if end - edges[first] > ROWS_AT_ONCE and start > edges[first]:
            found.append((first, at))
            first = at
    return [*found, (first, len(edges) - 1)] if edges[-1] else []


def n_sums(n_rows: int, n_owners: int, n_threads: int) -> int:
    """Return how many arrays of sums over owners so many rows are added to at once: many owners would need many."""
    return min(max(1, n_rows // max(1, n_owners)), n_threads)

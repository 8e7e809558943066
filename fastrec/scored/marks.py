"""The pairs that rows, or those of owners such as users, are in.

If one class is small, only its rows are sorted, and all others are looked up among them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import marks as kernels
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import once, run_in_threads
from fastrec.scored.areas import Pairs
from fastrec.scored.influence import BatchRows, BatchUsers, SummedEffects, effects_on_auc, spare_bits
from fastrec.scored.keys import KeyRange, OrderedKeys, SortedKeys, sort_rows
from fastrec.scored.owned_keys import pairs_of_owners
from fastrec.scored.sorting import FORMS, SMALL_ROWS, STEPS_PER_ROW, key_buffer, refuse_found

__all__ = ["OwnedRows", "Owners", "owned_rows", "pairs_of_rows", "squared_differences"]

Array = np.ndarray[Any, Any]
MAX_ROWS_OF_MARKS = 1 << 19  # of the rarer class: they and their bins stay in the caches
MAX_ROWS = 1 << 30  # 31 bits count them, 32 twice the pairs of a row, and no sum of these needs rounding
ROWS_AT_ONCE = 1 << 11  # whose sums stay in the L1 cache
RANGE_BITS = 16  # at most: a table of ranges stays in the caches
ROWS_PER_RANGE_BITS = 4  # rows per range, at least, as a power of 2


class Owners(NamedTuple):
    """Owners of neighbouring rows, and room for their effects."""

    indptr: Array  # int64 (n_owners + 1,): where the rows of each begin; the first row is that at `indptr[0]`
    effects: Array  # float64 (n_owners,): on the AUC, see `effects_on_auc`

    @classmethod
    def of(cls, indptr: Array) -> Owners:
        """Return owners whose effects `owned_rows` writes."""
        return cls(read_only(indptr), np.empty(len(indptr) - 1))

    def part(self, first: int, last: int) -> Owners:
        """Return owners first..last-1."""
        return Owners(self.indptr[first : last + 1], self.effects[first:last])


@dataclass(frozen=True)
class OwnedRows(OrderedKeys):
    """Rows in their own order, with the effects of their owners; they are sorted if a number needs that."""

    labels: Array
    scores: Array
    counted: Pairs
    effects: Array | SummedEffects
    owners_by_class: list[int]  # that have a negative row, and that have a positive one
    n_threads: int

    @property
    def dtype(self) -> Any:
        """The type of keys."""
        return np.dtype(FORMS[self.scores.itemsize].bits)

    def pairs(self) -> Pairs:
        """Return the pairs of rows of both classes."""
        return self.counted

    @once
    def by_score(self) -> SortedKeys:
        """The same rows, sorted, without owners."""
        return sort_rows(self.labels, self.scores, self.n_threads)

    def ranges(self) -> list[KeyRange]:
        """Return ranges of neighbouring scores, ascending."""
        return self.by_score.ranges()

    def pairs_of_ranges(self) -> list[Pairs]:
        """Return the pairs of each range."""
        return self.by_score.pairs_of_ranges()


def owned_rows(labels: Array, scores: Array, owners: Owners, n_threads: int) -> OwnedRows:
    """Return checked rows with the effects of their owners; see `sort_rows`.

    The rows are kept as they are, so they must not change.
    """
    found = _looked_up(labels, scores, n_threads)
    if found is None:
        counted, having = _write_effects(labels, scores, owners, n_threads)
    else:
        counted, having = found.counted, found.write_effects(owners)
    return OwnedRows(labels, scores, counted, owners.effects, having, n_threads)


def _write_effects(labels: Array, scores: Array, owners: Owners, n_threads: int) -> tuple[Pairs, list[int]]:
    """Do as `_LookedUp.write_effects` does without marks; return the pairs of all rows, too."""
    indptr, shift = owners.indptr - owners.indptr[0], spare_bits(len(labels))
    pairs, sums = pairs_of_owners(labels, scores, indptr, shift, n_threads)
    if not pairs.positives * pairs.negatives:
        owners.effects[:] = 0.0
        return pairs, [0, 0]
    rows = BatchRows(labels.view(np.bool_), scores, None, indptr)
    classes = BatchUsers(rows, np.arange(len(owners.effects)), n_threads).classes
    owners.effects[:] = effects_on_auc(sums, shift, classes, pairs)
    return pairs, [int(np.count_nonzero(own)) for own in classes.T]


def pairs_of_rows(labels: Array, scores: Array, n_threads: int) -> tuple[Pairs, Array]:
    """Return the pairs of all checked rows, and twice those that each row is in, uint32 or int64 (n,); see `sort_rows`.

    A pair counts for each of its two rows, a tied one half.
    """
    found = _looked_up(labels, scores, n_threads)
    if found is None:
        return pairs_of_owners(labels, scores, np.arange(len(labels) + 1), 0, n_threads)
    return found.counted, found.pairs_of_rows()


def squared_differences(labels: Array, first: Array, second: Array, n_threads: int) -> list[int]:
    """Return the sums of the squared differences of two values of rows, of negative rows and of positive ones.

    Values are integers below 2^41.
    """
    classes, dtype = read_only(labels.view(np.int8)), np.result_type(first, second)
    columns = [read_only(own.astype(dtype, copy=False)) for own in (first, second)]
    add = _entry("add_squares", 8 * dtype.itemsize).suited_to(STEPS_PER_ROW * len(classes))

    def squares(at: int) -> list[int]:
        rows = slice(at * kernels.ROWS_PER_SUM, (at + 1) * kernels.ROWS_PER_SUM)
        sums = np.zeros((2, 3), np.int64)
        add(classes[rows], columns[0][rows], columns[1][rows], sums)
        return [sum(int(own) << kernels.LOW_BITS * nth for nth, own in enumerate(line)) for line in sums]

    found = run_in_threads(squares, range(-(-len(classes) // kernels.ROWS_PER_SUM)), n_threads)
    return [sum(own) for own in zip(*found, strict=True)]


class _LookedUp(NamedTuple):
    """Rows whose slots among marks are known."""

    labels: Array  # int8 (n,)
    slots: Array  # int32 (n,)
    pairs: Array  # uint32 (2 * n_slots,): twice the pairs of a row, at `2 * slot + label`
    counted: Pairs
    chunks: list[slice]  # of rows: a thread takes each
    kernel: Callable[[str], Any]

    def write_effects(self, owners: Owners) -> list[int]:
        """Write the effects of owners; return how many have a row of each class, or zeros if all rows are of one."""
        twice, *sizes = map(float, self.counted)
        if not sizes[0] * sizes[1]:
            owners.effects[:] = 0.0
            return [0, 0]
        first, write = int(owners.indptr[0]), self.kernel("write_effects")
        cuts = np.searchsorted(owners.indptr[:-1], [first + own.start for own in self.chunks[1:]]).tolist()
        edges = list(itertools.pairwise([0, *cuts, len(owners.effects)]))

        def write_part(at: int) -> Array:
            own, having = owners.part(*edges[at]), np.zeros(2, np.int64)
            rows = slice(*(own.indptr[[0, -1]] - first).tolist())
            room = np.zeros((2, ROWS_AT_ONCE + 1), np.int64)
            write(self.slots[rows], self.labels[rows], self.pairs, own, (*sizes, twice), having, room)
            return having

        having = np.sum(run_in_threads(write_part, range(len(edges)), len(edges)), axis=0)
        return [int(own) for own in having]

    def pairs_of_rows(self) -> Array:
        """Return twice the pairs that each row is in, which take the place of the slots."""
        values, take = self.slots.view(np.uint32), self.kernel("take_pairs")
        run_in_threads(
            lambda at: take(self.slots[own := self.chunks[at]], self.labels[own], self.pairs, values[own]),
            range(len(self.chunks)),
            len(self.chunks),
        )
        return values


@functools.cache
def _entry(name: str, variant: int) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{variant}")


def _looked_up(labels: Array, scores: Array, n_threads: int) -> _LookedUp | None:
    """Look rows up among those of the rarer class, or return None if it has many rows, or many scores close together.

    Raise InputError if a score is NaN.
    """
    classes, form = read_only(labels.view(np.int8)), FORMS[scores.itemsize]
    n, n_positive = len(classes), int(np.count_nonzero(classes))
    rarer = int(2 * n_positive <= n)
    if min(n_positive, n - n_positive) > MAX_ROWS_OF_MARKS or n > MAX_ROWS:
        return None
    n_chunks = 1 if n < SMALL_ROWS else n_threads
    chunks = [slice(n * at // n_chunks, n * (at + 1) // n_chunks) for at in range(n_chunks)]
    rows = _ByRarerClass(classes, read_only(scores.view(form.bits)), rarer, chunks)
    if (found := rows.marks()) is None:
        return None
    marks, below = found
    slots, counts = rows.slots(marks)
    pairs = np.empty((len(counts), 2), np.uint32)
    twice = int(rows.kernel("write_pairs_of_slots")(read_only(counts), below, rarer, pairs))
    counted = Pairs(twice, n_positive, n - n_positive)
    return _LookedUp(classes, slots, read_only(pairs.reshape(-1)), counted, chunks, rows.kernel)


class _ByRarerClass(NamedTuple):
    """Rows of which those with one label, the rarer one, are sorted."""

    labels: Array
    bits: Array  # of their scores
    rarer: int
    chunks: list[slice]

    def kernel(self, name: str) -> Any:
        """Return the kernel for so many rows."""
        return _entry(name, FORMS[self.bits.itemsize].width).suited_to(STEPS_PER_ROW * len(self.bits))

    def _chosen(self) -> Array:
        """Return the keys of the rarer class; raise InputError if a score is NaN."""
        choose, form = self.kernel("choose_keys"), FORMS[self.bits.itemsize]

        def choose_in(at: int) -> tuple[int, Array]:
            own = self.chunks[at]
            keys = np.empty(int(np.count_nonzero(self.labels[own] == self.rarer)) + 1, form.bits)
            n = choose(self.bits[own], self.labels[own], self.rarer, form.infinity, keys, key_buffer(form))
            return -1 - int(n), keys[:-1]

        found = run_in_threads(choose_in, range(len(self.chunks)), len(self.chunks))
        refuse_found([at for at, _ in found], [own.start for own in self.chunks])
        return np.concatenate([keys for _, keys in found])

    def marks(self) -> tuple[kernels.Marks, Array] | None:
        """Return the marks, and how many rows are below each; None if many scores are close together."""
        chosen, width = read_only(self._chosen()), FORMS[self.bits.itemsize].width
        range_bits = max(1, min(RANGE_BITS, len(self.bits).bit_length() - ROWS_PER_RANGE_BITS))
        ranges = kernels.Ranges(width - range_bits, np.empty(1 << range_bits, np.int64))
        n_bins = int(self.kernel("plan_bins")(chosen, ranges))
        ranges = ranges._replace(bins=read_only(ranges.bins))
        keys, starts = np.empty(len(chosen) + 1, chosen.dtype), np.empty(n_bins + 1, np.int32)
        if not self.kernel("sort_keys")(chosen, ranges, starts, keys, np.empty(len(chosen), np.uint32)):
            return None
        below = np.empty(len(keys), np.int64)
        n = int(self.kernel("write_marks")(keys[:-1], kernels.Marks(ranges, starts, keys), below))
        return kernels.Marks(ranges, read_only(starts), read_only(keys[: n + 1])), read_only(below[: n + 1])

    def slots(self, marks: kernels.Marks) -> tuple[Array, Array]:
        """Return the slot of each row, and how many rows each slot has."""
        slots, find = np.empty(len(self.bits), np.int32), self.kernel("find_rows")

        def find_in(at: int) -> Array:
            own, block = self.chunks[at], key_buffer(FORMS[self.bits.itemsize])
            counts = np.zeros(2 * len(marks.keys) - 1, np.int32)
            find(self.bits[own], marks, slots[own], counts, (block, np.empty(len(block), np.int32)))
            return counts

        found = run_in_threads(find_in, range(len(self.chunks)), len(self.chunks))
        return slots, sum(found[1:], start=found[0])

"""The pairs that rows, or those of owners such as users, are in.

If one class is small, only its rows are sorted, and all others are looked up among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import marks as kernels
from fastrec.runtime.launcher import call, launch
from fastrec.runtime.threads import once
from fastrec.scored.areas import Pairs
from fastrec.scored.influence import BatchRows, BatchUsers, SummedEffects, effects_on_auc, spare_bits
from fastrec.scored.keys import KeyRange, OrderedKeys, SortedKeys, sort_rows
from fastrec.scored.owned_keys import pairs_of_owners
from fastrec.scored.sorting import FORMS, SMALL_ROWS, chunks_of, refuse_found

Array = np.ndarray[Any, Any]
MAX_ROWS_OF_MARKS = 1 << 19  # of the rarer class: they and their bins stay in the caches
MAX_ROWS = 1 << 30  # 31 bits count them, 32 twice the pairs of a row, and no sum of these needs rounding
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
    n = len(classes)
    cuts = read_only(np.append(np.arange(0, n, kernels.ROWS_PER_SUM), n))
    sums = np.zeros((len(cuts) - 1, 2, 3), np.int64)
    launch(kernels.add_squares, len(sums), classes, *columns, cuts, sums, work=8 * n, n_threads=n_threads)
    wide = sums.astype(object).sum(axis=0)
    return [sum(int(own) << kernels.LOW_BITS * nth for nth, own in enumerate(line)) for line in wide]


class _LookedUp(NamedTuple):
    """Rows whose slots among marks are known."""

    labels: Array  # int8 (n,)
    slots: Array  # int32 (n,)
    pairs: Array  # uint32 (2 * n_slots,): twice the pairs of a row, at `2 * slot + label`
    counted: Pairs
    cuts: Array  # chunk c, of which a thread takes each, has rows cuts[c]:cuts[c + 1]

    def write_effects(self, owners: Owners) -> list[int]:
        """Write the effects of owners; return how many have a row of each class, or zeros if all rows are of one."""
        twice, *sizes = map(float, self.counted)
        if not sizes[0] * sizes[1]:
            owners.effects[:] = 0.0
            return [0, 0]
        n_parts = len(self.cuts) - 1
        inner = np.searchsorted(owners.indptr[:-1], owners.indptr[0] + self.cuts[1:-1])
        edges = read_only(np.concatenate([[0], inner, [len(owners.effects)]]))
        having, totals = np.zeros((n_parts, 2), np.int64), read_only(np.array([*sizes, twice]))
        given = (self.labels, self.pairs, owners.indptr, edges, totals, owners.effects, having)
        launch(kernels.write_effects, n_parts, self.slots, *given, work=8 * len(self.labels), n_threads=n_parts)
        return [int(own) for own in having.sum(axis=0)]

    def pairs_of_rows(self) -> Array:
        """Return twice the pairs that each row is in, which take the place of the slots."""
        values, n_chunks = self.slots.view(np.uint32), len(self.cuts) - 1
        given = (self.slots, self.labels, self.cuts, self.pairs, values)
        launch(kernels.take_pairs, n_chunks, *given, work=8 * len(values), n_threads=n_chunks)
        return values


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
    rows = _ByRarerClass(classes, read_only(scores.view(form.bits)), rarer, chunks_of(n, n_chunks))
    if (found := rows.marks()) is None:
        return None
    marks, below = found
    slots, counts = rows.slots(marks)
    pairs = np.empty((len(counts), 2), np.uint32)
    twice = int(call(kernels.write_pairs_of_slots, read_only(counts), below, rarer, pairs, work=8 * n))
    counted = Pairs(twice, n_positive, n - n_positive)
    return _LookedUp(classes, slots, read_only(pairs.reshape(-1)), counted, rows.cuts)


class _ByRarerClass(NamedTuple):
    """Rows of which those with one label, the rarer one, are sorted."""

    labels: Array
    bits: Array  # of their scores
    rarer: int
    cuts: Array  # chunk c has rows cuts[c]:cuts[c + 1]

    def _chosen(self) -> Array:
        """Return the keys of the rarer class; raise InputError if a score is NaN."""
        form, n_chunks, cuts = FORMS[self.bits.itemsize], len(self.cuts) - 1, self.cuts.tolist()
        sizes = [int(np.count_nonzero(self.labels[cuts[at] : cuts[at + 1]] == self.rarer)) for at in range(n_chunks)]
        starts = np.cumsum([0, *(size + 1 for size in sizes)])
        keys, found = np.empty(int(starts[-1]), form.bits), np.empty(n_chunks, np.int64)
        given = (self.bits, self.labels, self.cuts, self.rarer, form.infinity, read_only(starts), keys, found)
        launch(kernels.choose_keys, n_chunks, *given, work=8 * len(self.bits), n_threads=n_chunks)
        refuse_found(-1 - found, self.cuts)
        return np.concatenate([keys[start : start + n] for start, n in zip(starts.tolist(), sizes, strict=False)])

    def marks(self) -> tuple[kernels.Marks, Array] | None:
        """Return the marks, and how many rows are below each; None if many scores are close together."""
        chosen, width, work = read_only(self._chosen()), FORMS[self.bits.itemsize].width, 8 * len(self.bits)
        range_bits = max(1, min(RANGE_BITS, len(self.bits).bit_length() - ROWS_PER_RANGE_BITS))
        ranges = kernels.Ranges(width - range_bits, np.empty(1 << range_bits, np.int64))
        n_bins = int(call(kernels.plan_bins, chosen, ranges, work=work))
        ranges = ranges._replace(bins=read_only(ranges.bins))
        keys, starts = np.empty(len(chosen) + 1, chosen.dtype), np.empty(n_bins + 1, np.int32)
        bins = np.empty(len(chosen), np.uint32)
        if not call(kernels.sort_keys, chosen, ranges, starts, keys, bins, work=work):
            return None
        below = np.empty(len(keys), np.int64)
        n = int(call(kernels.write_marks, keys[:-1], kernels.Marks(ranges, starts, keys), below, work=work))
        return kernels.Marks(ranges, read_only(starts), read_only(keys[: n + 1])), read_only(below[: n + 1])

    def slots(self, marks: kernels.Marks) -> tuple[Array, Array]:
        """Return the slot of each row, and how many rows each slot has."""
        n_chunks, slots = len(self.cuts) - 1, np.empty(len(self.bits), np.int32)
        counts = np.zeros((n_chunks, 2 * len(marks.keys) - 1), np.int32)
        given = (self.bits, self.cuts, *marks.ranges, marks.starts, marks.keys, slots, counts)
        launch(kernels.find_rows, n_chunks, *given, work=8 * len(slots), n_threads=n_chunks)
        return slots, counts[0] if n_chunks == 1 else counts.sum(axis=0, dtype=np.int32)

"""Sorted keys of rows without weights, or those of many segments at once.

The rows of all segments are sorted in one array, through which each row moves once.

They take as many bytes as the scores. Score counts take 24 bytes per distinct score, so they are made of keys only for
the numbers that need them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import sorting as kernels
from fastrec.runtime.launcher import call, launch
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.areas import (
    Pairs,
    auc_of_pairs,
    auc_of_sums,
    joined_pairs,
    pairs_of_keys,
    pairs_of_parts,
    partial_of_blocks,
)
from fastrec.scored.partial import CurvePart, part_of_weights
from fastrec.scored.sorting import (
    FORMS,
    SMALL_ROWS,
    Runs,
    ScoredRows,
    bucket_runs,
    chunks_of,
    joined_runs,
    keys_in_buckets,
    plain_runs,
    weighted_runs,
)

Array = np.ndarray[Any, Any]
MAX_CODES = 512  # writing to more places at the same time is slow
ROWS_PER_CHUNK = 1 << 18  # fewer are not worth a thread
ROWS_PER_TASK = 1 << 18  # of codes that are sorted one after the other: each task takes some calls of Python


class KeyRange(NamedTuple):
    """Sorted keys of the rows with scores in a range, on one side of 0."""

    keys: Array  # uint32 or uint64 (n_rows,): `key << 1 | label` without the top bit of its key
    is_below: bool  # whether the scores are below 0

    def runs(self) -> tuple[Array, Array, Array]:
        """Return the distinct scores with their positives and negatives."""
        return bucket_runs(self.keys, FORMS[self.keys.itemsize], below=self.is_below)


class OrderedKeys(ABC):
    """Rows that are, or can be, ordered by ascending score."""

    @abstractmethod
    def ranges(self) -> list[KeyRange]:
        """Return ranges of neighbouring scores, ascending."""

    def pairs_of_ranges(self) -> list[Pairs]:
        """Return the pairs of each range."""
        return [pairs_of_keys(own.keys) for own in self.ranges()]

    def runs(self, n_threads: int = 1) -> Runs:
        """Return the distinct scores with the rows of each class."""
        ranges = self.ranges()
        found = run_in_threads(lambda at: ranges[at].runs(), range(len(ranges)), n_threads)
        return plain_runs(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def pairs(self) -> Pairs:
        """Return the pairs of rows of both classes."""
        return joined_pairs(self.pairs_of_ranges())

    def area(self, max_fpr: float | None = None) -> float:
        """Return the area under the ROC curve, up to a false positive rate below 1 if that is not None."""
        if max_fpr is None:
            return auc_of_pairs(self.pairs())
        ranges = self.ranges()
        return partial_of_blocks(self.pairs_of_ranges(), lambda at: plain_runs(*ranges[at].runs()), max_fpr)

    def add_placements(self, totals: tuple[float, float], area: float, sums: Array) -> None:
        """Add what the kernel `place_runs` adds for the runs."""
        for keys, _ in self.ranges():
            call(kernels.place_keys, read_only(keys), totals, area, sums, work=8 * len(keys))


@dataclass(frozen=True)
class SortedKeys(OrderedKeys):
    """Rows by ascending score in one array, each `key << 1 | label` without the top bit of its key."""

    keys: Array  # uint32 or uint64 (n_rows,)
    edges: list[int]  # where parts of neighbouring scores begin, and the number of rows
    n_below: int  # rows with a score below 0: no part has scores on both sides of 0
    counted: list[Pairs] | None = None  # of each part

    @property
    def dtype(self) -> Any:
        """The type of keys."""
        return self.keys.dtype

    def parts(self) -> list[slice]:
        """Return the rows of each part."""
        return [slice(*cut) for cut in zip(self.edges, self.edges[1:], strict=False)]

    def ranges(self) -> list[KeyRange]:
        """Return the keys of each part."""
        return [KeyRange(self.keys[part], part.start < self.n_below) for part in self.parts()]

    def pairs_of_ranges(self) -> list[Pairs]:
        """Return the pairs of each part."""
        return self.counted or super().pairs_of_ranges()


def sort_rows(labels: Array, scores: Array, n_threads: int) -> SortedKeys:
    """Sort checked rows; raise InputError if a score is NaN.

    Parameters
    ----------
    labels : array (n,), int8 or bool
        0 or 1.
    scores : array (n,), float32 or float64, contiguous
    """
    keys, buckets = keys_in_buckets(labels, scores, n_threads)
    parts = buckets.parts()
    run_in_threads(lambda at: keys[parts[at]].sort(), range(len(parts)), n_threads)
    counted, edges = pairs_of_parts(keys, buckets.edges, n_threads), buckets.edges.tolist()
    return SortedKeys(keys, edges, edges[buckets.n_below], counted)


def auc_of_rows(
    labels: Array, scores: Array, weights: Array | None = None, *, max_fpr: float | None = None, n_threads: int = 1
) -> float:
    """Return the `auc` of checked rows that are all in memory; no runs are kept.

    Parameters
    ----------
    labels : array (n,), int8 or bool
        0 or 1.
    scores : array (n,), float32 or float64, contiguous
    weights : array (n,), float32 or float64, finite and at least 0, optional
    max_fpr : float in (0, 1), optional
    n_threads : int

    Raises
    ------
    InputError
        If a score is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrec.scored.keys import auc_of_rows
    >>> auc_of_rows(np.array([0, 1], np.int8), np.array([0.25, 0.5]))
    1.0
    """
    if weights is not None:
        return _weighted_auc(ScoredRows(labels, scores, weights), max_fpr, n_threads)
    return sort_rows(labels, scores, n_threads).area(max_fpr)


def _weighted_auc(rows: ScoredRows, max_fpr: float | None, n_threads: int) -> float:
    if max_fpr is not None:
        runs = joined_runs(weighted_runs(rows, n_threads))
        return part_of_weights(runs, CurvePart("fpr", 0.0, max_fpr, "mcclish"))
    sums = np.zeros(6)
    for runs in weighted_runs(rows, n_threads):
        columns = read_only(runs.positives), read_only(runs.negatives)
        call(kernels.sum_weighted_pairs, *columns, sums, work=8 * len(runs.scores))
    return auc_of_sums(sums)


def sort_by_code(codes: Array, positive: Array, scores: Array, n_codes: int, n_threads: int) -> list[SortedKeys]:
    """Return the sorted keys of the rows of each code from 0 on; rows of code -1 are left out.

    Scores must not be NaN. More than `MAX_CODES` codes take long unless they ascend.
    """
    form, n = FORMS[scores.itemsize], len(scores)
    bits, classes, codes = (read_only(own) for own in (scores.view(form.bits), positive.view(np.int8), codes))
    n_chunks = max(1, min(n_threads, n // ROWS_PER_CHUNK))
    cuts, counts = chunks_of(n, n_chunks), np.zeros((n_chunks, 2 * n_codes + 2), np.int64)
    launch(kernels.count_codes, n_chunks, codes, bits, cuts, counts, work=8 * n, n_threads=n_chunks)
    sizes = counts.sum(axis=0)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    places = edges[:-1] + np.cumsum(counts, axis=0) - counts
    keys = np.empty(n, form.bits)
    given = (bits, classes, codes, cuts, places, keys)
    launch(kernels.scatter_by_code, n_chunks, *given, work=8 * n, n_threads=n_chunks)
    _sort_parts(keys, edges[2:], n_threads)
    starts, middles, ends = (edges[at::2].tolist() for at in (2, 3, 4))
    return [
        SortedKeys(keys[start:end], [0, middle - start, end - start], middle - start)
        for start, middle, end in zip(starts, middles, ends, strict=False)
    ]


def _sort_parts(keys: Array, edges: Array, n_threads: int) -> None:
    """Sort each part of keys in place: large ones on all threads, others side by side."""
    sizes = np.diff(edges)
    large = sizes > max(SMALL_ROWS, len(keys) // n_threads) if n_threads > 1 else np.zeros(len(sizes), bool)
    for at in np.flatnonzero(large).tolist():
        _sort_wide(keys[edges[at] : edges[at + 1]], n_threads)
    work = np.where(large, 0, sizes)
    tasks = np.cumsum(work) // ROWS_PER_TASK
    cuts = np.flatnonzero(np.diff(tasks, prepend=-1, append=tasks[-1:] + 1)).tolist()

    def sort(nth: int) -> None:
        for at in range(cuts[nth], cuts[nth + 1]):
            if work[at] > 1:
                keys[edges[at] : edges[at + 1]].sort()

    run_in_threads(sort, range(len(cuts) - 1), n_threads)


def _sort_wide(keys: Array, n_threads: int) -> None:
    """Sort keys on several threads, each of which picks a range of them."""
    sample = np.sort(keys[:: max(1, len(keys) // SMALL_ROWS)])
    cuts = sample[[len(sample) * at // n_threads for at in range(1, n_threads)]]

    def pick(at: int) -> Array:
        chosen = keys >= cuts[at - 1] if at else np.ones(len(keys), bool)
        if at < n_threads - 1:
            chosen &= keys < cuts[at]
        own: Array = np.sort(keys[chosen])
        return own

    np.concatenate(run_in_threads(pick, range(n_threads), n_threads), out=keys)

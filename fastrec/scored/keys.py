"""Sorted keys of rows without weights, or those of many segments at once.

The rows of all segments are sorted in one array, through which each row moves once.

They take as many bytes as the scores. Score counts take 24 bytes per distinct score, so they are made of keys only for
the numbers that need them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.kernels import sorting as kernels
from fastrec.runtime.launcher import call, launch
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.areas import Pairs, pairs_of_parts, square_of
from fastrec.scored.sorting import FORMS, NOTHING, Runs, bucket_runs, chunks_of, plain_runs, sort_in_buckets

Array = np.ndarray[Any, Any]
MAX_CODES = 512  # writing to more places at the same time is slow
ROWS_PER_CHUNK = 1 << 18  # fewer are not worth a thread
BELOW_AND_ABOVE = np.arange(2, dtype=np.uint16)  # two buckets of the rows of a code: scores below 0, and others
ROWS_PER_TASK = 1 << 18  # of codes that are sorted one after the other: each task takes some calls of Python


@dataclass(frozen=True)
class SortedKeys:
    """Rows by ascending score in one array, each `key << 1 | label` without the top bit of its key."""

    keys: Array  # uint32 or uint64 (n_rows,)
    edges: list[int]  # where parts of neighbouring scores begin, and the number of rows
    n_below: int  # rows with a score below 0: no part has scores on both sides of 0
    pairs_of_parts: list[Pairs]

    def _runs_of_part(self, at: int) -> tuple[Array, Array, Array]:
        """Return the distinct scores of a part with their positives and negatives."""
        start, end = self.edges[at : at + 2]
        return bucket_runs(self.keys[start:end], below=start < self.n_below)

    def runs(self, n_threads: int = 1) -> Runs:
        """Return the distinct scores with the rows of each class."""
        found = run_in_threads(self._runs_of_part, range(len(self.edges) - 1), n_threads)
        return plain_runs(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def pairs(self) -> Pairs:
        """Return the pairs of rows of both classes."""
        twice = positives = negatives = 0
        for part in self.pairs_of_parts:
            twice += part.twice + 2 * part.positives * negatives
            positives += part.positives
            negatives += part.negatives
        return Pairs(twice, positives, negatives)

    def squared_pairs(self) -> list[int]:
        """Return the `squared_pairs` of the runs."""
        squares, below, above = [0, 0], 0, self.pairs().positives
        for (start, end), pairs in zip(itertools.pairwise(self.edges), self.pairs_of_parts, strict=True):
            sums = np.zeros((2, 3), np.int64)
            given = read_only(self.keys[start:end]), read_only(NOTHING), np.int64(below), np.int64(above), sums[0], sums
            call(kernels.write_pairs, *given, work=8 * (end - start))
            squares = [own + square_of(*parts) for own, parts in zip(squares, sums.tolist(), strict=True)]
            below, above = below + pairs.negatives, above - pairs.positives
        return squares


def sort_rows(labels: Array, scores: Array, n_threads: int) -> SortedKeys:
    """Sort checked rows; raise InputError if a score is NaN.

    Parameters
    ----------
    labels : array (n,), int8 or bool
        0 or 1.
    scores : array (n,), float32 or float64, contiguous
    """
    keys, buckets = sort_in_buckets(labels, scores, n_threads)
    return SortedKeys(keys, buckets.edges.tolist(), buckets.n_below, pairs_of_parts(keys, buckets.edges, n_threads))


def sort_by_code(codes: Array, positive: Array, scores: Array, n_codes: int, n_threads: int) -> list[SortedKeys]:
    """Return the sorted keys of the rows of each code from 0 on; rows of code -1 are left out.

    Scores must not be NaN. More than `MAX_CODES` codes take long unless they ascend.
    """
    form, n, shift = FORMS[scores.itemsize], len(scores), 8 * scores.itemsize - 1
    bits, classes, codes = map(read_only, (scores.view(form.bits), positive.view(np.int8), codes))
    n_chunks = max(1, min(n_threads, n // ROWS_PER_CHUNK))
    cuts, counts = chunks_of(n, n_chunks), np.zeros((n_chunks, 2 * n_codes + 2), np.int64)
    given = (bits, codes, cuts, form.infinity, shift, counts, np.empty(n_chunks, np.bool_))
    launch(kernels.count_bins, n_chunks, *given, work=8 * n, n_threads=n_chunks)
    sizes = counts.sum(axis=0)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    places = edges[:-1] + np.cumsum(counts, axis=0) - counts
    keys = np.empty(n, form.bits)
    columns = (bits, classes, codes, NOTHING, cuts, shift, BELOW_AND_ABOVE, places, keys, NOTHING)
    launch(kernels.scatter, n_chunks, *columns, work=8 * n, n_threads=n_chunks)
    _sort_parts(keys, edges[2:], n_threads)
    pairs = pairs_of_parts(keys, edges[2:], n_threads)
    parts = zip(*(edges[at::2].tolist() for at in (2, 3, 4)), pairs[::2], pairs[1::2], strict=False)
    return [
        SortedKeys(keys[start:end], [0, middle - start, end - start], middle - start, of_parts)
        for start, middle, end, *of_parts in parts
    ]


def _sort_parts(keys: Array, edges: Array, n_threads: int) -> None:
    """Sort each part of keys in place, parts side by side."""
    tasks = np.cumsum(np.diff(edges)) // ROWS_PER_TASK
    cuts = np.flatnonzero(np.diff(tasks, prepend=-1, append=tasks[-1:] + 1)).tolist()

    def sort(nth: int) -> None:
        for at in range(cuts[nth], cuts[nth + 1]):
            keys[edges[at] : edges[at + 1]].sort()

    run_in_threads(sort, range(len(cuts) - 1), n_threads)

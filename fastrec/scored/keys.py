"""Sorted keys of rows without weights: those of many segments at once, in one array through which each row moves once.

They take as many bytes as the scores. Score counts take 24 bytes per distinct score, so they are made of keys only for
the numbers that need them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.runtime.threads import run_in_threads
from fastrec.scored.areas import Pairs, joined_pairs, pairs_of_keys
from fastrec.scored.sorting import FORMS, SMALL_ROWS, Runs, bucket_runs, kernel_for, key_buffer, plain_runs

__all__ = ["MAX_CODES", "SortedKeys", "sort_by_code"]

Array = np.ndarray[Any, Any]
MAX_CODES = 512  # writing to more places at the same time is slow
ROWS_PER_CHUNK = 1 << 18  # fewer are not worth a thread
ROWS_PER_TASK = 1 << 18  # of codes that are sorted one after the other: each task takes some calls of Python


class SortedKeys(NamedTuple):
    """Rows by ascending score, each `key << 1 | label` without the top bit of its key."""

    keys: Array  # uint32 or uint64 (n_rows,)
    n_below: int  # rows with a score below 0

    def parts(self) -> list[tuple[bool, Array]]:
        """Return the keys of scores below 0, and those of other scores, if there are any."""
        halves = (True, self.keys[: self.n_below]), (False, self.keys[self.n_below :])
        return [(below, own) for below, own in halves if len(own)]

    def runs(self) -> Runs:
        """Return the distinct scores with the rows of each class."""
        form = FORMS[self.keys.itemsize]
        parts = [bucket_runs(own, form, below=below) for below, own in self.parts()]
        if not parts:
            return plain_runs(np.empty(0), *np.empty((2, 0), np.int64))
        return plain_runs(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def pairs(self) -> Pairs:
        """Return the pairs of rows of both classes."""
        return joined_pairs([pairs_of_keys(own) for _, own in self.parts()])

    def add_placements(self, totals: tuple[float, float], area: float, sums: Array) -> None:
        """Add what the kernel `place_runs` adds for the runs."""
        place = kernel_for("place_keys", FORMS[self.keys.itemsize].width, len(self.keys))
        for _, own in self.parts():
            place(own, totals, area, sums)


def sort_by_code(codes: Array, positive: Array, scores: Array, n_codes: int, n_threads: int) -> list[SortedKeys]:
    """Return the sorted keys of the rows of each code from 0 on; rows of code -1 are left out.

    Scores must not be NaN. More than `MAX_CODES` codes take long unless they ascend.
    """
    form, n = FORMS[scores.itemsize], len(scores)
    bits, classes, codes = (read_only(own) for own in (scores.view(form.bits), positive.view(np.int8), codes))
    n_chunks = max(1, min(n_threads, n // ROWS_PER_CHUNK))
    chunks = [slice(n * at // n_chunks, n * (at + 1) // n_chunks) for at in range(n_chunks)]
    counts = np.zeros((n_chunks, 2 * n_codes + 2), np.int64)
    count = kernel_for("count_codes", form.width, n)
    run_in_threads(lambda at: count(codes[chunks[at]], bits[chunks[at]], counts[at]), range(n_chunks), n_threads)
    sizes = counts.sum(axis=0)
    edges = np.concatenate([[0], np.cumsum(sizes)])
    places = edges[:-1] + np.cumsum(counts, axis=0) - counts
    keys = np.empty(n, form.bits)
    scatter = kernel_for("scatter_by_code", form.width, n)

    def move(at: int) -> None:
        own = chunks[at]
        scatter(bits[own], classes[own], codes[own], places[at], keys, key_buffer(form))

    run_in_threads(move, range(n_chunks), n_threads)
    _sort_parts(keys, edges[2:], n_threads)
    starts, middles, ends = (edges[at::2].tolist() for at in (2, 3, 4))
    return [
        SortedKeys(keys[start:end], middle - start) for start, middle, end in zip(starts, middles, ends, strict=False)
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

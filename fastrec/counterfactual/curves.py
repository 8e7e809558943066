"""Curves of position bias from counts of (query, item) pairs, and their bootstrap over queries."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.counterfactual.counts import PairCounts
from fastrec.inputs.ragged import read_only
from fastrec.kernels import position as kernels
from fastrec.runtime.launcher import call, launch

Array = np.ndarray[Any, Any]
METHODS = {"ctr": kernels.CTR, "pivot": kernels.PIVOT, "adjacent": kernels.ADJACENT, "em": kernels.CTR}
STEP_BITS = 56  # of the sum of all shares: a query drawn 64 times still fits 63 bits
BLOCKS = 32  # of queries, with sums of their own; their number is fixed, so that it does not change the bits
CELLS_PER_TASK = 1 << 17  # fewer are not worth a thread in each round
NUMBERS_AT_ONCE = 1 << 22  # of draws of queries and their sums


class Curve(NamedTuple):
    """A curve, and what it is computed from."""

    curve: Array  # float64 (n_ranks,): examination relative to rank 1; NaN if unknown
    examination: Array | None  # float64 (n_ranks,): chance that a rank is examined, of method "em"
    pairs: Array  # int64 (n_ranks,): (query, item) that connect a rank


class Fitting:
    """A method and the counts that it is fitted to.

    Fits see only rank 1 and the ranks with rows: one row at a high rank would make each of many fits long.
    """

    def __init__(self, counts: PairCounts, method: str, n_rounds: int, n_threads: int) -> None:
        self._cells, self._method, self._n_rounds, self._n_threads = counts.cells, method, n_rounds, n_threads
        self._n_ranks, self._n_queries = counts.n_ranks, len(counts.queries)
        used = np.zeros(self._n_ranks, bool)
        used[counts.cells.ranks] = True
        used[:1] = True
        self._used, self._place_of = np.flatnonzero(used), np.cumsum(used) - 1
        self._entries = self._fill_entries()
        self._trials = _trials(counts.cells, self._place_of) if method == "em" else None

    def fit(self) -> Curve:
        """Return the curve of all queries."""
        once = np.ones((1, self._n_queries), np.int64)
        sums = self._weigh(once)[0]
        examination = None if self._trials is None else self._examination(self._trials, sums, once[0])
        curve = self._curve(sums, examination)
        pairs = np.zeros(self._n_ranks, np.int64)
        pairs[self._used] = sums[:, 2]
        return Curve(self._of_all_ranks(curve), None if examination is None else self._of_all_ranks(examination), pairs)

    def _of_all_ranks(self, values: Array) -> Array:
        """Return values of all ranks, NaN at those without rows."""
        found: Array = np.full(self._n_ranks, math.nan)
        found[self._used] = values
        return found

    def resample(self, n_samples: int, seed: int, known: Array) -> Array:
        """Return curves of queries drawn with replacement (Efron 1979), at some ranks: float64 (n_samples, n_known).

        `known` are positions of ranks with a value.
        """
        n = self._n_queries
        places: Array = self._place_of[known]
        key = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]

        found, at_once = (
            np.empty((n_samples, len(known))),
            NUMBERS_AT_ONCE // (n + 3 * len(self._used)) + self._n_threads,
        )
        for start in range(0, n_samples, at_once):
            n_now = min(at_once, n_samples - start)
            drawn, threads = np.empty((n_now, n), np.int64), self._n_threads
            launch(kernels.draw_queries, n_now, key, start, drawn, work=4 * n * n_now, n_threads=threads)
            sums = self._weigh(drawn)
            fits = None if self._trials is None else self._fits(self._trials, sums, drawn)
            for nth in range(n_now):
                found[start + nth] = self._curve(sums[nth], None if fits is None else fits[nth])[places]
        return found

    def _curve(self, sums: Array, examination: Array | None) -> Array:
        """Return the curve; `examination` is that of method "em"."""
        if examination is not None:
            return examination / examination[:1]
        here, there = sums[:, 0].astype(float), sums[:, 1].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            curve = here / there
            if self._method == "ctr":
                curve = curve / curve[:1]
        if len(curve) and sums[0, 2]:
            curve[0] = 1.0  # by definition, even without a click
        curve[~np.isfinite(curve)] = math.nan  # without a click at the rank compared with
        return np.cumprod(curve) if self._method == "adjacent" else curve

    def _fill_entries(self) -> tuple[Array, Array, Array]:
        """Return what each query adds to each rank: pointers by query, ranks, numbers."""
        n = len(self._cells.ranks)
        indptr, ranks = np.zeros(self._n_queries + 1, np.int64), np.empty(n, np.int64)
        entries, slots = np.empty((n, 3), np.int64), np.full(self._n_ranks, -1, np.int64)
        scale = math.ldexp(1.0, STEP_BITS - n.bit_length())
        given = self._cells, METHODS[self._method], scale, slots, indptr, ranks, entries
        call(kernels.fill_entries, *given, work=8 * n)
        used = int(indptr[-1])
        return read_only(indptr), read_only(self._place_of[ranks[:used]]), read_only(entries[:used].copy())

    def _weigh(self, drawn: Array) -> Array:
        """Return the sums by rank of the entries of queries, for each sample of these: (n_samples, n_ranks, 3)."""
        sums = np.zeros((len(drawn), len(self._used), 3), np.int64)
        given, work = (*self._entries, read_only(drawn), sums), 4 * len(self._entries[1]) * len(drawn)
        launch(kernels.weigh_entries, len(drawn), *given, work=work, n_threads=self._n_threads)
        return sums

    def _edges(self, trials: kernels.Trials) -> Array:
        """Return where blocks of queries begin, and the number of queries."""
        of_queries = trials.indptr[trials.queries]  # where the cells of each query begin
        edges = np.searchsorted(of_queries, len(trials.ranks) * np.arange(BLOCKS) // BLOCKS)
        return read_only(np.append(edges, self._n_queries))

    def _examination(self, trials: kernels.Trials, entries: Array, drawn: Array) -> Array:
        """Return the chance of examination of each rank after rounds of expectation maximisation."""
        n_cells, edges = len(trials.ranks), self._edges(trials)
        clicks, shown = 1.0 + entries[:, 0], 2.0 + entries[:, 1]
        attraction, sums = np.full(len(trials.indptr) - 1, 0.5), np.empty((BLOCKS, len(self._used)))
        n_threads = max(1, min(self._n_threads, n_cells // CELLS_PER_TASK))
        examination = np.full(len(self._used), 0.5)
        for _ in range(self._n_rounds):
            given = *trials, read_only(drawn), attraction, read_only(examination), sums, edges
            launch(kernels.expect, BLOCKS, *given, work=8 * n_cells, n_threads=n_threads)
            total = clicks.copy()
            for own in sums:
                total += own
            examination = total / shown
        examination[entries[:, 1] == 0] = math.nan
        return examination

    def _fits(self, trials: kernels.Trials, entries: Array, drawn: Array) -> Array:
        """Return what `_examination` does for each sample of queries."""
        examination, work = np.empty(entries.shape[:2]), 8 * len(trials.ranks) * self._n_rounds * len(drawn)
        given = *trials, read_only(drawn), read_only(entries), self._n_rounds, examination, self._edges(trials)
        launch(kernels.fit_samples, len(drawn), *given, work=work, n_threads=self._n_threads)
        examination[entries[:, :, 1] == 0] = math.nan
        return examination


def _trials(cells: kernels.PairCells, place_of: Array) -> kernels.Trials:
    """Return what expectation maximisation reads of cells, with the places of their ranks."""
    missed = cells.shown - cells.clicked
    kept = missed > 0
    before = np.concatenate([[0], np.cumsum(kept)])
    ranks, missed = place_of[cells.ranks[kept]].astype(np.int32), missed[kept]
    narrow = np.int32 if missed.max(initial=0) < 1 << 31 else np.int64
    totals = []
    for counts in (cells.clicked, cells.shown):
        up_to = np.concatenate([[0], np.cumsum(counts)])
        totals.append(np.diff(up_to[cells.indptr]).astype(float))
    clicks, shown = totals
    arrays = (cells.queries, before[cells.indptr], ranks, missed.astype(narrow), clicks + 1.0, shown + 2.0)
    return kernels.Trials(*map(read_only, arrays))

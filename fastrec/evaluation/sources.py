"""The two forms of checked input that kernels take: lists with truth, and scored rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.lists import Lists
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels import codes as op
from fastrec.kernels import hits
from fastrec.kernels.hits import Scratch, TieScratch
from fastrec.kernels.listed import Listed
from fastrec.kernels.program import Program
from fastrec.runtime.launch import Kernel
from fastrec.runtime.threads import import_late

__all__ = ["ListSource", "Scores"]

Array = np.ndarray[Any, Any]

POSITIVES = "fastrec.kernels.positives"  # only scored rows need it
CACHE_LINE = 64  # values that fill at least one cache line, whatever their size
PADDING = 8  # values between rows: loads wait for stores to addresses that differ by a multiple of 4096 bytes
NO_HITS = Listed(
    starts=np.zeros(0, np.int64),
    counts=np.zeros(0, np.int64),
    ranks=np.zeros(0, np.int32),
    sources=np.zeros(0, np.int32),
    places=np.zeros(0, np.int64),
    n_rec=np.zeros(0, np.int64),
    at_fault=np.zeros(1, bool),
)
"""Stands for hits that are not known."""


class ListSource(Lists):
    """Lists and truth in the form that kernels take."""

    __slots__ = ()

    def rows_before(self, users: Array) -> Array:
        """Return the number of rows of all users before each given user."""
        rows: Array = self.rec_indptr[users] + self.truth_indptr[users]
        return rows

    def tied_steps(self, k: int) -> int:
        """Return the steps of a sum over the ranks within k that each tied row may take."""
        if self.blocks is None:
            return 0
        tied = self.blocks[1, self.rec_indptr[0] : self.rec_indptr[-1]]
        return int(np.minimum(tied[tied > 1].astype(np.int64), k).sum())

    def part(self, first: int, last: int) -> ListSource:
        """Return the users first..last-1."""
        users = slice(first, last + 1)
        lengths = None if self.lengths is None else self.lengths[first:last]
        return self._replace(rec_indptr=self.rec_indptr[users], truth_indptr=self.truth_indptr[users], lengths=lengths)

    def with_hits(self, listed: Listed | None) -> ListSource:
        """Return these users with the hits of their whole lists. Lists of a model keep other rows, so ranks differ."""
        return self if self.lengths is not None else self._replace(listed=listed)

    def kernel(self) -> Kernel:
        """Return the kernel for lists with or without gains and ties. It takes ids of either width."""
        truth = "plain" if self.gains is None else "graded"
        tied = "" if self.blocks is None else "-tied"
        return Kernel("fastrec.kernels.lists", "evaluate_bin", f"{truth}{tied}")

    def arguments(self) -> tuple[Any, ...]:
        """Return the leading arguments of the kernel."""
        known = NO_HITS if self.listed is None else self.listed
        lists = hits.ListArrays(
            rec_items=read_only(self.rec_items.view(np.int32)),
            rec_indptr=read_only(self.rec_indptr),
            truth_items=read_only(self.truth_items.view(np.int32)),
            truth_indptr=read_only(self.truth_indptr),
            wide=self.rec_items.dtype == np.int64,
            lengths=read_only(np.zeros(0, np.int64) if self.lengths is None else self.lengths),
            hit_starts=read_only(known.starts),
            hit_counts=read_only(known.counts),
            hit_ranks=read_only(known.ranks),
            hit_sources=read_only(known.sources),
        )
        return lists, _maybe(self.blocks), _maybe(self.gains)

    def scratch(
        self, program: Program, n_groupings: int, blocks: Array, n_bins: int
    ) -> tuple[Scratch, TieScratch | None]:
        """Return working memory for the largest block. Pages that no block touches take no memory."""
        first, last = _edges(blocks, self.n_users)
        n_truth = int((self.truth_indptr[last] - self.truth_indptr[first]).max()) if program.find else 0
        n_list, n_relevant = self.longest if program.find else (0, 0)
        n_rows = n_list if self.lengths is None else longest_row(self.rec_indptr)
        n_ids = n_rows + n_relevant
        large = (hits.SLOTS_PER_ID * n_ids - 1).bit_length() if n_ids > hits.SMALL_ROWS else 0
        n_events = n_truth + op.BLOCK
        rows = _rows(program, n_bins)
        return Scratch(
            table=np.zeros((n_bins, 1 << max(hits.SMALL_TABLE, large)), np.int32),
            base=np.ones(n_bins, np.int64),
            positions=np.empty((n_bins, n_events), np.int32),
            sources=np.empty((n_bins, n_events), np.int32),
            marks=np.empty((n_bins, n_rows + 1), np.int32),
            status=np.zeros((n_bins, op.BLOCK), np.int64),
            rows=rows,
            ranks=np.empty((n_bins, 2, n_events), np.int32),
            gains=np.empty((n_bins, 2, 0 if self.gains is None else n_events)),
            bounds=np.zeros((n_bins, 2, 4, op.BLOCK + 1), np.int64),
            counts=np.empty((n_bins, len(program.cutoffs) + 1, op.BLOCK), np.int64),
            sums=np.zeros((n_bins, 3, n_events)),
            masked=np.empty((n_bins, op.BLOCK)),
            run_ends=np.empty((n_bins, n_groupings, op.BLOCK), np.int64),
            digits=np.empty((n_bins, 6), np.int64),
        ), None if self.blocks is None else _tie_scratch(program, n_bins, n_events, n_list)


class Scores(NamedTuple):
    """Scored, labelled rows of users; see `fastrec.kernels.rows`."""

    labels: Array  # int8 or float64 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    weights: Array | None  # float64 (n_rows,)
    ids: Array  # int64 (n_rows,), or empty
    graded: bool
    statistics: Array
    parameters: Array
    label_limits: Array  # ranges of labels and scores, which kernels check
    score_limits: Array
    bars: Array
    ties: int
    rank: bool

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.indptr) - 1

    @property
    def longest(self) -> tuple[int, int]:
        """The most rows of any user, twice: as the longest list and the longest truth."""
        rows = longest_row(self.indptr)
        return rows, rows

    def rows_before(self, users: Array) -> Array:
        """Return the number of rows of all users before each given user."""
        rows: Array = self.indptr[users]
        return rows

    def tied_steps(self, k: int) -> int:
        """Return the most steps of a sum over the ranks within k that each tied row may take."""
        rows = np.diff(self.indptr)
        return int((rows * np.minimum(rows, k)).sum()) if self.rank else 0

    def part(self, first: int, last: int) -> Scores:
        """Return the users first..last-1."""
        return self._replace(indptr=self.indptr[first : last + 1])

    def kernel(self) -> Kernel:
        """Return the kernel for these dtypes."""
        needs = "graded" if self.graded else "ranks" if self.rank else "statistics"
        parts = [str(self.labels.dtype), str(self.scores.dtype), needs]
        return Kernel(
            "fastrec.kernels.rows", "evaluate_score_bin", "-".join(parts + ["weighted"] * (self.weights is not None))
        )

    def arguments(self) -> tuple[Any, ...]:
        """Return the leading arguments of the kernel."""
        scores = read_only(self.scores)
        bits = scores.view(np.uint32 if scores.dtype == np.float32 else np.uint64)
        extra = import_late("fastrec.kernels.row_statistics").Extra(
            ids=read_only(self.ids),
            label_limits=read_only(self.label_limits),
            score_limits=read_only(self.score_limits),
            bars=read_only(self.bars),
            statistics=read_only(self.statistics),
            parameters=read_only(self.parameters),
            ties=self.ties,
            walk=self._walk,
        )
        labels = read_only(self.labels)
        log = import_late(POSITIVES).ScoreLog(labels, scores, bits, read_only(self.indptr))
        return log, _maybe(self.weights), extra, labels if self.graded else None

    @property
    def _walk(self) -> bool:
        """Whether a statistic needs the order of all rows, not only counts of positives."""
        kinds = self.statistics[:, 0]
        ordered = bool(((kinds >= op.FIRST_ORDER_STATISTIC) & (kinds <= op.LAST_ORDER_STATISTIC)).any())
        return bool((kinds == op.QUANTILE_GAPS).any()) or (ordered and self.weights is not None)

    def scratch(self, program: Program, n_groupings: int, blocks: Array, n_bins: int) -> tuple[Any, TieScratch | None]:
        """Return working memory for the largest block."""
        kernels = import_late(POSITIVES)
        lanes, radix, most_counted = kernels.LANES, kernels.DIGITS_OF_RADIX, kernels.MAX_COUNTED
        first, last = _edges(blocks, self.n_users)
        n_rows = int((self.indptr[last] - self.indptr[first]).max(initial=0))
        longest = longest_row(self.indptr)
        decided = self.rank and self.ties != op.EXPECTED
        sorts = self._walk or decided or longest > most_counted
        n_events = (n_rows if self.rank else 0) + op.BLOCK
        rows = _rows(program, n_bins)
        key = np.uint32 if self.scores.dtype == np.float32 else np.uint64
        return kernels.ScoreScratch(
            status=np.zeros((n_bins, op.BLOCK), np.int64),
            rows=rows,
            ranks=np.empty((n_bins, 2, n_events), np.int32),
            gains=np.empty((n_bins, 2, n_events if self.graded else 0)),
            bounds=np.zeros((n_bins, 2, 4, op.BLOCK + 1), np.int64),
            counts=np.empty((n_bins, len(program.cutoffs) + 1, op.BLOCK), np.int64),
            sums=np.zeros((n_bins, 3, max(n_events, n_rows if self.graded else 0))),
            padded=_aligned(n_bins, longest + lanes, self.scores.dtype),
            chosen=_aligned(n_bins, longest + lanes, self.scores.dtype),
            masked=np.empty((n_bins, op.BLOCK)),
            run_ends=np.empty((n_bins, n_groupings, op.BLOCK), np.int64),
            digits=np.empty((n_bins, 6), np.int64),
            terms=np.empty((n_bins, 2, (longest + 1) // 2 + 8)),
            places=np.empty((n_bins, 3, longest + 1), np.int32),
            marks=np.empty((n_bins, max(longest + 2, radix)), np.int32),
            packed=np.empty((n_bins, 2, longest if longest > 2 * most_counted else 0), np.uint64),
            keys=np.empty((n_bins, 2, longest if sorts else 0), key),
            order=np.empty((n_bins, 2, longest if sorts else 0), np.int32),
        ), _tie_scratch(program, n_bins, n_events, longest) if self.rank else None


def _maybe(array: Array | None) -> Array | None:
    return None if array is None else read_only(array)


def _edges(blocks: Array, n_users: int) -> tuple[Array, Array]:
    first = blocks * op.BLOCK
    return first, np.minimum(first + op.BLOCK, n_users)


def _rows(program: Program, n_bins: int) -> Array:
    rows = np.empty((n_bins, program.n_rows, op.BLOCK + PADDING))
    rows[:, : len(program.constants)] = program.constants[:, None]
    return rows


def _tie_scratch(program: Program, n_bins: int, n_events: int, longest: int) -> TieScratch:
    return TieScratch(
        above=np.empty((n_bins, 2, n_events), np.int32),
        tied=np.empty((n_bins, 2, n_events), np.int32),
        users=np.empty((n_bins, op.BLOCK), np.int32),
        cuts=np.empty((n_bins, len(program.cutoffs), 3, op.BLOCK), np.int32),
        n_cuts=np.zeros((n_bins, len(program.cutoffs)), np.int64),
        products=np.empty((n_bins, 2, longest + 1)),
    )


def _aligned(n_bins: int, n: int, dtype: np.dtype[Any]) -> Array:
    """Return memory for n values per bin. Each bin starts at a cache line, since loads across lines cost twice."""
    width = -(-n // CACHE_LINE) * CACHE_LINE
    memory = np.empty(n_bins * width + CACHE_LINE, dtype)
    first = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    return memory[first : first + n_bins * width].reshape(n_bins, width)

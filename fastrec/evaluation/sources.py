"""The two forms of checked input that kernels take: lists with truth, and scored rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.given import GivenPart
from fastrec.inputs.hits import STEPS_PER_ROW
from fastrec.inputs.lists import Lists
from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels import codes as op
from fastrec.kernels.hits import KnownRows, ListRows, copy_block_hits, find_block_hits, size_of_scratch
from fastrec.kernels.positives import LANES, MAX_COUNTED
from fastrec.kernels.program import Program
from fastrec.kernels.rows import ScoreRows, memory_of_rows, score_block

Array = np.ndarray[Any, Any]

CACHE_LINE = 64  # values that fill at least one cache line, whatever their size


class SourceRows(NamedTuple):
    """What the rows of some users are to a program; see `fastrec.kernels.users.evaluate_users`."""

    program: Program  # to run
    find: Callable[..., None]
    rows: NamedTuple
    n_events: int  # the most of a block of users
    longest: int  # one more than the rows of the longest list with tied scores, or 0
    indptr: Array  # int64 (n_users + 1,): of the rows of the truth
    gains: Array  # float64 (1, n_truth_rows), or (0,)
    given: Array  # float64 (n_given, n_users)
    steps: int  # to find the hits


class ListSource(Lists):
    """Lists and truth in the form that kernels take."""

    __slots__ = ()

    def part(self, first: int, last: int) -> ListSource:
        """Return the users first..last-1."""
        users = slice(first, last + 1)
        lengths = None if self.lengths is None else self.lengths[first:last]
        return self._replace(rec_indptr=self.rec_indptr[users], truth_indptr=self.truth_indptr[users], lengths=lengths)

    def costs(self) -> Array:
        """Return the number of rows of all users before each, int64 (n_users + 1,)."""
        rows: Array = (self.rec_indptr - self.rec_indptr[0]) + (self.truth_indptr - self.truth_indptr[0])
        return rows

    def tied(self) -> Array:
        """Return the number of rows in the tie block of each row that is in one with others."""
        if self.blocks is None:
            return np.zeros(0, np.int64)
        tied = self.blocks[1, self.rec_indptr[0] : self.rec_indptr[-1]]
        return tied[tied > 1].astype(np.int64)

    @property
    def is_graded(self) -> bool:
        """Whether gains differ."""
        return self.gains is not None

    def rows(self, program: Program, given: GivenPart, n_tasks: int) -> SourceRows:
        """Return the rows, and the kernel that finds their hits or copies known ones.

        Known hits are not those of the lists of a model, and have none of users at fault.
        """
        first, last, longest = self.truth_indptr[0], self.truth_indptr[-1], 0
        indptr = self.truth_indptr - first
        hits = given.hits if self.lengths is None and self.blocks is None else None
        if hits is not None and hits.fault is None:
            find, steps = copy_block_hits, int(indptr[-1])
            rows: NamedTuple = KnownRows(read_only(hits.spans), read_only(hits.events))
        else:
            n_rec, n_rel = longest_row(self.rec_indptr), longest_row(self.truth_indptr)
            find, steps = find_block_hits, STEPS_PER_ROW * int(self.costs()[-1])
            rows = ListRows(
                read_only(self.rec_items),
                read_only(self.rec_indptr),
                read_only(self.truth_items),
                read_only(self.truth_indptr),
                read_only(np.zeros((2, 0), np.int32) if self.blocks is None else self.blocks),
                read_only(np.zeros(0, np.int64) if self.lengths is None else np.ascontiguousarray(self.lengths)),
                self.lowest,
                n_rec,
                n_rel,
                np.zeros((n_tasks, size_of_scratch(n_rec, n_rel)), np.int32),
            )
            longest = 0 if self.blocks is None else self.longest[0] + 1
        gains = np.zeros(0) if self.gains is None else self.gains[None, first:last]
        return SourceRows(program, find, rows, _most_events(indptr), longest, indptr, gains, given.rows, steps)


class Scores(NamedTuple):
    """Scored, labelled rows of users; see `fastrec.kernels.rows.ScoreRows`."""

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

    @property
    def is_graded(self) -> bool:
        """Whether gains differ."""
        return self.graded

    def part(self, first: int, last: int) -> Scores:
        """Return the users first..last-1."""
        return self._replace(indptr=self.indptr[first : last + 1])

    def costs(self) -> Array:
        """Return the number of rows of all users before each, int64 (n_users + 1,)."""
        rows: Array = self.indptr - self.indptr[0]
        return rows

    def tied(self) -> Array:
        """Return the most rows in the tie block of each row."""
        rows = np.diff(self.indptr)
        return np.repeat(rows, rows) if self.rank else np.zeros(0, np.int64)

    def rows(self, program: Program, given: GivenPart, n_tasks: int) -> SourceRows:
        """Return what computes the statistics of users, and ranks their positives."""
        costs, longest, n_given = self.costs(), longest_row(self.indptr), len(given.rows)
        numbers = np.empty((n_given + len(self.statistics), self.n_users))
        if given.rows.shape[1]:
            numbers[:n_given] = given.rows
        n_sorted = longest if self._walk or (self.rank and self.ties != op.EXPECTED) or longest > MAX_COUNTED else 0
        settings = np.array([self.ties, self._walk, program.n_items, longest, n_sorted])
        narrow, terms = memory_of_rows(longest, n_sorted)
        rows = ScoreRows(
            read_only(self.labels),
            read_only(self.scores),
            read_only(self.indptr),
            read_only(np.zeros(0) if self.weights is None else self.weights[None]),
            read_only(self.ids),
            read_only(np.concatenate([self.bars, self.label_limits])),
            read_only(self.score_limits),
            read_only(self.statistics),
            read_only(self.parameters),
            read_only(settings),
            facts=numbers[n_given:],
            lanes=_aligned(2 * n_tasks, longest + LANES, self.scores.dtype).reshape(n_tasks, 2, -1),
            narrow=np.empty((n_tasks, narrow), np.int32),
            terms=np.empty((n_tasks, terms)),
            keys=np.empty((n_tasks, 2 * n_sorted), np.uint32 if self.scores.dtype == np.float32 else np.uint64),
        )
        own = slice(self.indptr[0], self.indptr[-1])
        gains = self.labels[own].astype(float)[None] if self.graded else np.zeros(0)
        program = program._replace(n_items=op.UNCUT)  # checked here
        steps = int(costs[-1]) * (1 + len(self.statistics))
        n_events, longest = (_most_events(costs), longest + 1) if self.rank else (op.BLOCK, 0)
        return SourceRows(program, score_block, rows, n_events, longest, costs, gains, numbers, steps)

    @property
    def _walk(self) -> bool:
        """Whether a statistic needs the order of all rows, not only counts of positives."""
        kinds = self.statistics[:, 0]
        ordered = bool(((kinds >= op.FIRST_ORDER_STATISTIC) & (kinds <= op.LAST_ORDER_STATISTIC)).any())
        return bool((kinds == op.QUANTILE_GAPS).any()) or (ordered and self.weights is not None)


def _most_events(indptr: Array) -> int:
    """Return the most events of a block of users: one of each user, and one of each row."""
    starts = np.append(indptr[: -1 : op.BLOCK], indptr[-1])
    return int(np.diff(starts).max(initial=0)) + op.BLOCK


def _aligned(n_bins: int, n: int, dtype: np.dtype[Any]) -> Array:
    """Return memory for n values per bin. Each bin starts at a cache line, since loads across lines cost twice."""
    width = -(-n // CACHE_LINE) * CACHE_LINE
    memory = np.empty(n_bins * width + CACHE_LINE, dtype)
    first = -(memory.ctypes.data // memory.itemsize) % CACHE_LINE
    return memory[first : first + n_bins * width].reshape(n_bins, width)


Source = ListSource | Scores

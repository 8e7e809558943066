"""The hits of users: the rows of the truth that lists hold, found by the kernels for a batch or a part of one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import longest_row, read_only
from fastrec.kernels.codes import BLOCK, COUNT, FINE, FIRST_EVENT
from fastrec.kernels.hits import find_top_hits, size_of_scratch
from fastrec.runtime.launcher import SMALL_WORK, launch

Array = np.ndarray[Any, Any]
STEPS_PER_ROW = 4


class RowFault(NamedTuple):
    """Why the rows of a user cannot be evaluated: a code of `fastrec.kernels.codes`, the user, a position."""

    code: int
    user: int
    detail: int


class Hits(NamedTuple):
    """The hits of users, as events.

    An event of rank 0 opens each user. One loop can thus walk along the events of all users. An inner loop per user
    would have an unpredictable length, which costs more than its rows. Events of neighbours touch each other within a
    task; between tasks may lie memory that nobody wrote.
    """

    spans: Array  # int64 (4, n_users): FIRST_EVENT, COUNT, RELEVANT, LISTED_ROWS
    events: Array  # int32 (2, n_events): RANK, SOURCE
    places: Array  # int64 (n_events,): the places of hits among the rows of the truth, or empty
    fault: RowFault | None  # the first one; users at fault have no hits

    @property
    def n_events(self) -> int:
        """The number of events up to the last one, those that nobody wrote included."""
        return int(self.spans[FIRST_EVENT, -1] + self.spans[COUNT, -1]) if self.spans.shape[1] else 0


def find_hits(
    recs: Array, indptr: Array, truth: Array, truth_indptr: Array, *, lowest: int, n_threads: int, places: bool = False
) -> Hits:
    """Find the hits of users; see `fastrec.kernels.hits.find_top_hits`."""
    n_users = len(indptr) - 1
    n_events = int(truth_indptr[-1] - truth_indptr[0]) + n_users
    rows = (indptr - indptr[0]) + (truth_indptr - truth_indptr[0])
    spans, events = np.empty((4, n_users), np.int64), np.empty((2, n_events), np.int32)
    where = np.zeros(n_events if places else 0, np.int64)
    edges = edges_of_blocks(rows, n_threads) * BLOCK
    edges[-1] = n_users
    faults = np.zeros((len(edges) - 1, 3), np.int64)
    longest = longest_row(indptr), longest_row(truth_indptr)
    scratch = np.zeros((len(faults), size_of_scratch(*longest)), np.int32)
    own = (*map(read_only, (edges, recs, indptr, truth, truth_indptr)), lowest, longest)
    work = STEPS_PER_ROW * int(rows[-1]) + n_users
    launch(find_top_hits, len(faults), *own, spans, events, where, faults, scratch, work=work, n_threads=n_threads)
    return Hits(spans, events, where, first_fault(faults))


def first_fault(faults: Array) -> RowFault | None:
    """Return the fault of the first user with one. `faults` is int64 (n_tasks, 3), with at most one of each task."""
    failed = faults[faults[:, 0] != FINE]
    return RowFault(*failed[failed[:, 1].argmin()].tolist()) if len(failed) else None


def edges_of_blocks(rows: Array, n_threads: int) -> Array:
    """Return int64 edges (n_tasks + 1,) of ranges of blocks with about the same number of rows.

    `rows` is int64 (n_users + 1,), the rows of all users before each.
    """
    n_blocks = -(-(len(rows) - 1) // BLOCK)
    if n_threads == 1 or n_blocks <= 1:
        return np.array([0, n_blocks])
    before = rows[np.minimum(np.arange(n_blocks + 1) * BLOCK, len(rows) - 1)] + np.arange(n_blocks + 1) * BLOCK
    n_tasks = max(min(n_threads if before[-1] >= SMALL_WORK else 1, n_blocks), 1)
    inner = np.searchsorted(before, before[-1] * np.arange(1, n_tasks) / n_tasks)
    return np.concatenate([[0], inner, [n_blocks]]).astype(np.int64)

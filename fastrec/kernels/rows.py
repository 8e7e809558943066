"""Evaluation of scored, labelled rows: AUC and other statistics of each user, and the ranks of the user's positives.

A positive needs how many rows of its user have a higher score (`above`) and how many the same (`tied`). Both are
integers, so the pairs won are exact. Row programs go on with the ranks as with those of lists.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import (
    ABOVE,
    BLOCK,
    COUNT_CONSTANT,
    COUNT_NO_NEGATIVES,
    COUNT_NO_POSITIVES,
    COUNT_NO_ROWS,
    FINE,
    LISTED_ROWS,
    N_DATA_COUNTS,
    RANK,
    SOURCE,
    TIED_ROWS,
    UNFINISHED,
)
from .hits import row_of
from .jit import njit
from .positives import (
    DIGITS_OF_RADIX,
    Outcomes,
    ScoreLog,
    ScoreScratch,
    all_equal,
    collect_scores,
    count_short_users,
)
from .row_statistics import asks_order, error_statistics, order_statistics, positives_of, row_statistics
from .sums import N_ERROR

Array = np.ndarray[Any, Any]
RULE, WALK, N_ITEMS, LONGEST, SORTED = range(5)  # of the settings


def memory_of_rows(longest: int, n_sorted: int) -> tuple[int, int]:
    """Return how many int32 and float64 the working memory of a task takes, beside scores and keys."""
    return 3 * (longest + 1) + max(longest + 2, DIGITS_OF_RADIX) + 2 * n_sorted, 2 * ((longest + 1) // 2 + 8)


@njit
def scratch_of_rows(settings, lanes, narrow, terms, keys):
    """Return working memory for one user after another."""
    longest, n_sorted = settings[LONGEST], settings[SORTED]
    marks = 3 * (longest + 1)
    order = marks + max(longest + 2, DIGITS_OF_RADIX)
    return ScoreScratch(
        lanes[0],
        lanes[1],
        terms.reshape((2, len(terms) // 2)),
        narrow[:marks].reshape((3, longest + 1)),
        narrow[marks:order],
        keys.reshape((2, n_sorted)),
        narrow[order : order + 2 * n_sorted].reshape((2, n_sorted)),
    )


@njit
def add_classes(log, out, first, last, counts):
    """Count users without rows, with one class only, and with both classes but equal scores."""
    for u in range(first, last):
        n_rows, n_rel = out.spans[LISTED_ROWS, u - out.first], positives_of(0, log, out, u)
        counts[COUNT_NO_ROWS] += n_rows == 0
        counts[COUNT_NO_POSITIVES] += (n_rows > 0) & (n_rel == 0)
        counts[COUNT_NO_NEGATIVES] += (n_rows > 0) & (n_rel == n_rows)
        if 0 < n_rel < n_rows:
            counts[COUNT_CONSTANT] += all_equal(log.scores[log.indptr[u] : log.indptr[u + 1]])


@njit
def rows_of_ties(ties, t):
    """Return the rows that rank positives: `above` and `tied`, or arrays that nothing uses."""
    if ties.ndim == 3:
        return ties[t, ABOVE], ties[t, TIED_ROWS]
    return ties, ties


class ScoreRows(NamedTuple):
    """Scored, labelled rows of users, what is computed of them, and working memory of tasks."""

    labels: Array  # int8 or float64 (n_rows,); user u has those from indptr[u] to indptr[u + 1]
    scores: Array  # float32 or float64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    weights: Array  # float64 (1, n_rows), or (0,) without weights
    ids: Array  # int64 (n_rows,) to break ties, or (0,)
    bars: Array  # as labels (n_conditions + 3,): the smallest positive label under each condition and any; limits
    limits: Array  # as scores (2,)
    statistics: Array  # int64 (n_statistics, 3): kind, parameter and condition; see `fastrec.kernels.codes`
    parameters: Array  # float64
    settings: Array  # int64 (5,): the rule for ties, whether all rows are sorted, the size of the catalogue, sizes
    facts: Array  # float64 (n_statistics, n_users): written
    lanes: Array  # as scores (n_tasks, 2, n)
    narrow: Array  # int32 (n_tasks, n)
    terms: Array  # float64 (n_tasks, n)
    keys: Array  # unsigned integers as wide as scores (n_tasks, n)


@njit(cache=True)
def score_block(t, b, hits, totals, rows):
    """Compute the statistics of block b of users, and write their positives in rank order to the memory of task t."""
    if totals[t, 0] != FINE:
        return
    totals[t, 0] = UNFINISHED
    events, (ranked,), (weights,) = hits.events[t], row_of(hits.ties, t), row_of(rows.weights, 0)
    above, tied = rows_of_ties(hits.ties, t)
    scores, keys, settings, n_bars = rows.scores, rows.keys, rows.settings, len(rows.bars) - 2
    log = ScoreLog(
        rows.labels,
        scores,
        scores.view(keys.dtype),
        rows.indptr,
        rows.ids,
        rows.bars[:n_bars],
        rows.statistics,
        rows.parameters,
        settings[RULE],
        settings[WALK] > 0,
        settings[N_ITEMS],
    )
    first, last = b * BLOCK, min(b * BLOCK + BLOCK, len(rows.indptr) - 1)
    out = Outcomes(first, hits.spans[t], events[RANK], events[SOURCE], above, tied, rows.facts)
    memory = scratch_of_rows(settings, rows.lanes[t], rows.narrow[t], rows.terms[t], keys[t])
    limits, fault = (rows.bars[n_bars:], rows.limits), (np.int64(FINE), np.int64(0), np.int64(0))
    if not count_short_users(log, limits, ranked, out, first, last):
        fault = collect_scores(log, limits, ranked, memory, out, first, last)
    if fault[0] != FINE:
        totals[t, 0], totals[t, 1], totals[t, 2] = fault
        return
    add_classes(log, out, first, last, totals[t, N_ERROR : N_ERROR + N_DATA_COUNTS])
    for condition in range(len(log.bars) - 1):
        row_statistics(condition, log, weights, out, first, last)
        error_statistics(condition, log, weights, out, memory.terms, first, last)
        if asks_order(condition, log):
            order_statistics(condition, log, weights, ranked, memory, out, first, last)
    totals[t, 0] = FINE

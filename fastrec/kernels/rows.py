"""Scored, labelled rows: rank each user's positives, then go on as for lists.

What a positive needs is how many rows of its user have a higher score (`above`) and how many the same (`tied`). Both
are whole numbers, so the pairs won are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.kernels.codes import (
    BLOCK,
    COUNT_CONSTANT,
    COUNT_NO_NEGATIVES,
    COUNT_NO_POSITIVES,
    COUNT_NO_ROWS,
    N_LISTED,
    N_RELEVANT,
)
from fastrec.kernels.lists import add_block, evaluate_condition, filter_block, ties_of
from fastrec.kernels.positives import all_equal, collect_scores
from fastrec.kernels.row_statistics import asks_order, error_statistics, order_statistics, row_statistics
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


@helper
def add_classes(bounds, log, first, n, data_counts):
    """Count the users that have no rows or one class only."""
    for i in range(n):
        n_rows, n_rel = bounds[N_LISTED, i], bounds[N_RELEVANT, i]
        data_counts[COUNT_NO_ROWS] += n_rows == 0
        data_counts[COUNT_NO_POSITIVES] += n_rows > 0 and n_rel == 0
        data_counts[COUNT_NO_NEGATIVES] += n_rows > 0 and n_rel == n_rows
        if 0 < n_rel < n_rows:
            data_counts[COUNT_CONSTANT] += all_equal(log.scores[log.indptr[first + i] : log.indptr[first + i + 1]])


def evaluate_score_bin(log, weights, extra, gains, program, users, totals, scratch, tie_scratch, blocks, starts, at):
    """Evaluate the users of blocks[starts[at]:starts[at + 1]] into bin `at` of the totals, or leave an error there.

    `weights` is None or float64 (n_rows,); `gains` is None where all relevant rows are worth the same, else the labels;
    `tie_scratch` is None where the ranks of positives are not needed.
    """
    n_users = len(log.indptr) - 1
    rows = scratch.rows[at]
    for b in blocks[starts[at] : starts[at + 1]]:
        first = b * BLOCK
        last = min(first + BLOCK, n_users)
        n = last - first
        if not collect_scores(log, extra, first, last, program.n_items, scratch, tie_scratch, at, totals.errors[at]):
            return
        for condition in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch
                if program.min_gains[condition] > 0.0:
                    which = 1
                    ranks, event_gains, bounds = scratch.ranks[at], scratch.gains[at], scratch.bounds[at]
                    least, expected = program.min_gains[condition], program.expected
                    filter_block(
                        ranks, event_gains, tie_scratch, at, expected, bounds, log.indptr, gains, first, n, least
                    )
            if condition == 0:
                add_classes(scratch.bounds[at, which], log, first, n, totals.data_counts[at])
            row_statistics(condition, log, weights, extra, first, n, scratch.bounds[at, which], rows)
            error_statistics(condition, log, weights, extra, first, n, scratch.terms[at], rows)
            if asks_order(condition, extra):
                order_statistics(condition, log, weights, extra, first, n, scratch, tie_scratch, at, which, rows)
            if tie_scratch is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            if not evaluate_condition(
                condition, ties, log.indptr, gains, program, users, totals, scratch, at, which, first, n
            ):
                return
        if not add_block(program, users, totals, scratch, at, first, n, (scratch.scaled[at], scratch.digits[at])):
            return

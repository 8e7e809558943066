"""Evaluation of scored, labelled rows: rank each user's positives, then go on as for lists.

A positive needs how many rows of its user have a higher score (`above`) and how many the same (`tied`). Both are
integers, so the pairs won are exact.
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
from fastrec.kernels.lists import Span, block_of, evaluate_condition, filter_block, ties_of
from fastrec.kernels.positives import all_equal, collect_scores, count_short_users
from fastrec.kernels.row_statistics import asks_order, error_statistics, order_statistics, row_statistics
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


@helper
def add_classes(block, log, data_counts):
    """Count users without rows, with one class only, and with both classes but equal scores."""
    n_empty, n_no_positives, n_no_negatives = np.int64(0), np.int64(0), np.int64(0)
    for i in range(block.n):
        n_rows, n_rel = block.bounds[N_LISTED, i], block.bounds[N_RELEVANT, i]
        n_empty += n_rows == 0
        n_no_positives += (n_rows > 0) & (n_rel == 0)
        n_no_negatives += (n_rows > 0) & (n_rel == n_rows)
    data_counts[COUNT_NO_ROWS] += n_empty
    data_counts[COUNT_NO_POSITIVES] += n_no_positives
    data_counts[COUNT_NO_NEGATIVES] += n_no_negatives
    for i in range(block.n):
        if 0 < block.bounds[N_RELEVANT, i] < block.bounds[N_LISTED, i]:
            u = block.first + i
            data_counts[COUNT_CONSTANT] += all_equal(log.scores[log.indptr[u] : log.indptr[u + 1]])


def evaluate_score_bin(log, weights, extra, gains, task, tie_scratch, at):
    """Evaluate the users of the blocks of bin `at` into its totals, or write an error there.

    `weights` is None or float64 (n_rows,). `gains` is None if all relevant rows have the same gain, else the labels.
    `tie_scratch` is None if the ranks of positives are not needed.
    """
    program, scratch, totals = task.program, task.scratch, task.totals
    n_users = len(log.indptr) - 1
    for b in task.blocks[task.starts[at] : task.starts[at + 1]]:
        span = Span(at, b * BLOCK, min(BLOCK, n_users - b * BLOCK))
        done = False
        if tie_scratch is None:
            done = count_short_users(log, extra, program.n_items, scratch, span)
        if not done and not collect_scores(log, extra, program.n_items, scratch, tie_scratch, span, totals.errors[at]):
            return
        for condition in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch
                if program.min_gains[condition] > 0.0:
                    which = 1
                    least = program.min_gains[condition]
                    filter_block(scratch, tie_scratch, program.expected, log.indptr, gains, span, least)
            block = block_of(scratch, task.users, log.indptr, span, which)
            if condition == 0:
                add_classes(block, log, totals.data_counts[at])
            row_statistics(condition, log, weights, extra, block)
            error_statistics(condition, log, weights, extra, block, scratch.terms[at])
            if asks_order(condition, extra):
                order_statistics(condition, log, weights, extra, block, scratch, tie_scratch, (at, which))
            if tie_scratch is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            if not evaluate_condition(condition, task, block, gains, ties, at):
                return

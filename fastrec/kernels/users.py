"""Evaluation of users: find the hits of one block of users after another, and run a row program over them.

A block's hits stay in the cache between the two.
"""

from __future__ import annotations

import numpy as np

from .jit import njit, prange

__all__ = ["evaluate_users"]


@njit(parallel=True, cache=True)
def evaluate_users(
    first,
    last,
    find,
    run,
    edges,
    spans,
    events,
    ties,
    rows,
    indptr,
    gains,
    groups,
    given,
    of_events,
    last_events,
    integers,
    floats,
    sizes,
    wide,
    narrow,
    floating,
    totals,
    stored,
):
    """Find the hits of users, run a row program over them, and add up its values.

    Task t takes the blocks edges[t]..edges[t + 1]-1 of BLOCK users each, and writes to totals[t]. The kernels `find`
    and `run` are compiled on their own; those that can fail do nothing after an error:
    find : `find_block_hits` (intersection of lists with the truth, of which `run` counts what is within the top K),
        `score_block` (AUC of users and the ranks of their positives), or `copy_block_hits`
    run : `run_block` (DCG, IDCG and all other metrics of ranks)

    spans, events, ties : int64 (n_tasks, 4, BLOCK), int32 (n_tasks, 2, n_events) and likewise, or (0,) without tied
        scores: the hits of a block, see `fastrec.inputs.hits.Hits`, and rows ABOVE and TIED_ROWS of ties
    rows : what `find` reads: `ListRows`, `ScoreRows` or `KnownRows`
    indptr : int64 (n_users + 1,), where the rows of the truth of each user start among `gains`
    gains : float64 (1, n_truth_rows), or (0,) if all rows of the truth have the gain 1
    groups : int32 (n_groupings, n_users), the group of each user in each grouping, from 1
    given : float64 (n_given, n_users), numbers of users
    of_events : float64 (n_given_of_events, n_events), numbers of events
    last_events : int32 or int64 (n_given_cutoffs + 1, n_users), the last event within each cut-off, of all
    integers, floats : the tables of the program, see `fastrec.kernels.program.pack`
    sizes : int64 (7,), see `fastrec.kernels.row_programs.Sizes`
    wide, narrow, floating : int64, int32 and float64 (n_tasks, n), working memory, see `memory_of`
    totals : int64 (n_tasks, n), 0 at first, see `fastrec.kernels.sums.Totals`
    stored : float64 (n_stored, n_users), values of users
    """
    for task in prange(first, last):
        t = np.int64(task)
        for b in range(edges[t], edges[t + 1]):
            find(t, b, spans, events, ties, totals, rows)
            run(
                t,
                b,
                edges,
                spans,
                events,
                ties,
                indptr,
                gains,
                groups,
                given,
                of_events,
                last_events,
                integers,
                floats,
                sizes,
                wide,
                narrow,
                floating,
                totals,
                stored,
            )

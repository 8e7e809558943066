"""Evaluation of users: find the hits of one block of users after another, and run a row program over them.

A block's hits stay in the cache between the two.
"""

from __future__ import annotations

import numpy as np

from .jit import njit, prange


@njit(parallel=True, cache=True)
def evaluate_users(first, last, find, run, edges, hits, rows, users, tables, memory, totals, stored):
    """Find the hits of users, run a row program over them, and add up its values.

    Task t takes the blocks edges[t]..edges[t + 1]-1 of BLOCK users each, and writes to totals[t]. The kernels `find`
    and `run` are compiled on their own, for arguments of the types of those that have the same names here. Those that
    can fail do nothing after an error:
    find : `find_block_hits` (intersection of lists with the truth, of which `run` counts what is within the top K),
        `score_block` (AUC of users and the ranks of their positives), or `copy_block_hits`
    run : `run_block` (DCG, IDCG and all other metrics of ranks)

    hits : `BlockHits`, written by `find`
    rows : what `find` reads, and its working memory: `ListRows`, `ScoreRows` (whose `facts`, which it writes, are rows
        of users.given), or `KnownRows`
    users, tables, memory : `UserNumbers`, `Tables` and `Memory`, see `fastrec.kernels.row_programs`
    totals : int64 (n_tasks, n), 0 at first, see `fastrec.kernels.sums.Totals`
    stored : float64 (n_stored, n_users), values of users
    """
    for task in prange(first, last):
        t = np.int64(task)
        for b in range(edges[t], edges[t + 1]):
            find(t, b, hits, totals, rows)
            run(t, b, edges, hits, users, tables, memory, totals, stored)

"""Parallel drivers: all bins at once, each on a thread of its own.

`evaluate` is the compiled kernel of one bin, passed in: called by name it would be compiled into the driver again.
"""

from __future__ import annotations

import numpy as np
from numba import prange


def evaluate_bins(evaluate, log, list_blocks, gains, program, users, totals, scratch, tie_scratch, blocks, bin_starts):
    """See `fastrec.kernels.ranking.evaluate_bin`."""
    for at in prange(len(bin_starts) - 1):
        own = blocks[bin_starts[at] : bin_starts[at + 1]]
        evaluate(log, list_blocks, gains, program, users, totals, scratch, tie_scratch, own, np.int64(at))


def evaluate_score_bins(
    evaluate, log, weights, extra, gains, program, users, totals, scratch, tie_scratch, blocks, bin_starts
):
    """See `fastrec.kernels.scores.evaluate_score_bin`."""
    for at in prange(len(bin_starts) - 1):
        own = blocks[bin_starts[at] : bin_starts[at + 1]]
        evaluate(log, weights, extra, gains, program, users, totals, scratch, tie_scratch, own, np.int64(at))


def flip_bins(flip, values, seed, sums, edges):
    """See `fastrec.kernels.resampling.flip_bin`."""
    for at in prange(len(edges) - 1):
        flip(values, seed, sums, edges[at], edges[at + 1])


def resample_bins(resample, values, seed, counts, counters, sums, edges):
    """See `fastrec.kernels.resampling.resample_bin`."""
    for at in prange(len(edges) - 1):
        resample(values, seed, counts, counters, sums, edges[at], edges[at + 1])

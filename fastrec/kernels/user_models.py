"""Gain per rank of users who read a list downwards and go on with a probability that depends on what they found."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from .codes import UNCUT
from .jit import njit
from .runs import two_sum
from .series import inverse_squares, reciprocals

INST: Final = 0  # goes on with ((x - 1) / x)^2, x = r + 2t - the gain so far
BPM: Final = 1  # goes on below a gain of t, and within k ranks
CUT: Final = 2  # goes on with 1 - g, within k ranks
RECIPROCAL: Final = 3  # goes on with (1 - g) r / (r + 1), within k ranks
PATIENCE: Final = 4  # goes on with (1 - g) p
GOAL: Final = 5  # goes on with (1 - g) ((r + 2t - 1) / (r + 2t))^2
WITHIN_K: Final = (BPM, CUT, RECIPROCAL)


class UserModel(NamedTuple):
    """How a user reads."""

    kind: int
    parameter: float  # t or p
    largest: float  # the gain that counts as 1
    goal: tuple[float, float]  # t times this gain: rounded, and the rest
    depth: int  # ranks past it do not exist


@njit
def goes_on(model, rank, gain, found, rest):
    """Return the probability of going on after a rank with a gain; all gains up to it are found + rest."""
    kind, parameter, share = model.kind, model.parameter, gain / model.largest
    if kind == INST:
        x = rank + 2.0 * parameter - found / model.largest
        return (x - 1.0) / x * ((x - 1.0) / x)
    if kind == BPM:
        return 1.0 if (found - model.goal[0]) + (rest - model.goal[1]) < 0.0 else 0.0
    if kind == CUT:
        return 1.0 - share
    if kind == RECIPROCAL:
        return (1.0 - share) * rank / (rank + 1.0)
    if kind == PATIENCE:
        return (1.0 - share) * parameter
    x = rank + 2.0 * parameter
    return (1.0 - share) * ((x - 1.0) / x * ((x - 1.0) / x))


@njit
def start_of_misses(model, n, found):
    """Return s: after rank n, a user with a goal goes on past m ranks without a gain with probability (s / (s + m))^2.

    All gains down to rank n are `found`; only INST reads them.
    """
    return n + 2.0 * model.parameter - (found / model.largest if model.kind == INST else 0.0)


@njit
def weight_of_misses(start, misses):
    """Return the sum of the weights of so many ranks without a gain, with s = `start`; the first weighs 1."""
    return 1.0 + start * start * inverse_squares(start + 1.0, misses - 1) if misses > 0 else 0.0


@njit
def weight_past(model, n, k, found):
    """Return the sum of the weights of the ranks past n that hold no gain; that of the first of them is 1."""
    kind, parameter, end = model.kind, model.parameter, model.depth
    if kind == RECIPROCAL:
        return (n + 1.0) * (reciprocals(k) - reciprocals(n))
    if kind in WITHIN_K:
        return float(k - n)
    if kind == PATIENCE:
        return -math.expm1((end - n) * math.log1p(parameter - 1.0)) / (1.0 - parameter)
    return weight_of_misses(start_of_misses(model, n, found), UNCUT if end >= UNCUT else end - n)


@njit(forceinline=True)
def mean_gain(model, sums, reach, n, k, found):
    """Return the gain per rank, from the sums of gains and of weights down to rank n, which the user leaves at `reach`.

    The ranks past n hold no gain. Some users stop at rank k for sure.
    """
    total, weights = sums
    if total == 0.0:
        return 0.0
    if reach > 0.0 and not (model.kind in WITHIN_K and n >= k):
        weights += reach * weight_past(model, n, k, found)
    return min(total / model.largest / weights, 1.0)  # it may be above by rounding


@njit(forceinline=True)
def pass_misses(model, n, last, reach, weights, sums):
    """Return the probability of going on and the sum of weights after ranks without a gain, past n down to `last`.

    All gains down to rank n are the two `sums`. Models with a goal have a closed form; the others go from rank to rank.
    """
    found, rest = sums
    if (model.kind == INST or model.kind == GOAL) and n < last:
        start = start_of_misses(model, n, found)
        left = start / (start + (last - n))
        return reach * left * left, weights + reach * weight_of_misses(start, last - n)
    while n < last and reach > 0.0:
        n += 1
        weights += reach
        reach *= goes_on(model, np.float64(n), 0.0, found, rest)
    return reach, weights


@njit(cache=True)
def expect_gain(lists, model, cutoffs, out):
    """Write the expected gain per rank: the mean of the gains of ranks, weighted by the probability of reaching them.

    `lists` has gains of 0 for items that are not relevant. Writes a number for each user and ascending cut-off, into
    out (n_cutoffs, n_users).
    """
    starts, counts, ranks, gains, n_recs = lists.starts, lists.counts, lists.ranks, lists.gains, lists.n_rec
    for u in range(len(starts)):
        at, end, n = starts[u], starts[u] + counts[u], np.int64(0)
        reach, found, rest, total, weights, mean = 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for nth in range(len(cutoffs)):
            k, before = min(cutoffs[nth] if cutoffs[nth] < UNCUT else n_recs[u], model.depth), at
            while at < end and ranks[at] <= k and reach > 0.0:
                rank, gain = np.int64(ranks[at]), gains[at]
                reach, weights = pass_misses(model, n, rank - 1, reach, weights, (found, rest))
                n = rank
                at += 1
                found, error = two_sum(found, gain)
                rest += error
                total += reach * gain
                weights += reach
                reach *= goes_on(model, np.float64(n), gain, found, rest)
            if at > before or model.kind in WITHIN_K:  # without a new row, only these change with k
                mean = mean_gain(model, (total, weights), reach, n, k, found)
            out[nth, u] = mean

"""Estimates of the metrics of the whole catalogue, from lists that hold a sample of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.arrays import FlatSide
from fastrec.items.sums import find_numbers
from fastrec.kernels import codes as op
from fastrec.kernels.gains import map_gain
from fastrec.metrics.providers import is_relevant
from fastrec.metrics.rank_weights import is_continuous, weight_between
from fastrec.policies import CORRECT

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]


class Rank(NamedTuple):
    """The rank of a relevant item in a sampled list, and how many items the sample is drawn from."""

    others: int
    drawn: int
    known: int  # items of the truth with a higher score, all of which are in the list
    above: int  # drawn items with a higher score
    tied: int  # drawn items with the same score
    tied_known: int  # items of the truth with the same score, itself included

    def mean_weight(self, cutoff: int | None, weight: Any) -> float:
        """Return the mean weight of the unbiased estimate of the rank, over all orders of equal scores.

        The estimate is 1 + items of the truth above + others x the share of drawn items above.
        """
        own, drawn = self.tied_known - 1, max(self.drawn, 1)  # 0 drawn of 0 others
        n = own + self.tied
        orders = (n + 1) * math.comb(n, own)
        terms = []
        for i in range(own + 1 if cutoff is None else min(own + 1, cutoff - self.known)):
            ways = math.comb(n - i, own - i)  # orders in which i items of the truth and j drawn ones come first
            for j in range(self.tied + 1):
                known, above = 1 + self.known + i, self.others * (self.above + j)
                if cutoff is not None and known * drawn + above > cutoff * drawn:
                    break
                if j:  # 10^5 pairs take 0.15 s by this recurrence, minutes by math.comb
                    ways = ways * ((i + j) * (self.tied - j + 1)) // (j * (n - i - j + 1))
                terms.append(ways / orders * weight_between(weight, known + above / drawn))
        return math.fsum(terms)


class SampledRanks:
    """The ranks of the relevant items of a batch among the drawn items."""

    def __init__(self, sides: BatchSides) -> None:
        lists, truth = sides.lists, sides.truth
        recs = FlatSide(lists.rec_items, lists.rec_indptr, None)
        gains = find_numbers(recs, truth, truth.gains, sides.n_threads)
        rows = np.flatnonzero(~np.isnan(gains))
        self.gains, self.users = gains[rows], recs.users[rows]
        self.n_users = lists.n_users
        above = recs.ranks[rows] - 1 if lists.blocks is None else lists.blocks[0][rows].astype(np.int64)
        tied = np.ones_like(above) if lists.blocks is None else lists.blocks[1][rows].astype(np.int64)
        listed = np.bincount(self.users, minlength=self.n_users)
        firsts = np.cumsum(listed) - listed
        starts = np.ones(len(rows), bool)  # of rows with one score
        starts[1:] = (self.users[1:] != self.users[:-1]) | (above[1:] != above[:-1])
        block = np.cumsum(starts) - 1
        known = np.flatnonzero(starts)[block] - firsts[self.users]
        tied_known = np.bincount(block, minlength=1)[block]
        drawn, others = _sizes(sides, listed)
        columns = (others[self.users], drawn[self.users], known, above - known, tied - tied_known, tied_known)
        distinct, self._which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        self._which = self._which.reshape(-1)
        self.ranks = [Rank(*row) for row in distinct.tolist()]

    def sums(self, keys: Sequence[Any]) -> list[Array]:
        """Return, for each key (cut-off, weight, gain, least gain), the estimated sum of each user."""
        sums = []
        for cutoff, weight, gain, least in keys:
            if not is_continuous(weight):
                raise MetricError(
                    "has a table of weights of whole ranks, and estimates lie between them: leave the metric out, or ",
                    Argument("correct", (CORRECT.default,)),
                )
            weights = np.array([rank.mean_weight(cutoff, weight) for rank in self.ranks])[self._which]
            rows = np.flatnonzero(is_relevant(self.gains, least) & (weights > 0))  # 0 x an infinite gain is NaN
            terms = weights[rows] * _map_gains(self.gains[rows], gain)
            sums.append(np.bincount(self.users[rows], terms, self.n_users))
        return sums


def _sizes(sides: BatchSides, listed: Array) -> tuple[Array, Array]:
    """Return how many items were drawn for each user, and from how many."""
    lengths = np.diff(sides.lists.rec_indptr) if sides.lists.lengths is None else sides.lists.lengths
    drawn = lengths - listed
    if sides.n_drawn_from is not None:
        return drawn, sides.n_drawn_from
    assert sides.sampled_from is not None
    n_truth, size = np.diff(sides.truth.indptr), Argument("sampled_from", (sides.sampled_from,))
    others = sides.sampled_from - n_truth
    if (wrong := drawn > others).any():
        user = int(wrong.argmax())
        raise InputError(
            f"recs of user {sides.names.user(user)} have {drawn[user]} items outside the truth, but ",
            size,
            f" leaves {max(int(others[user]), 0)} beside the {int(n_truth[user])} of the truth",
        )
    if (wrong := (drawn == 0) & (listed > 0) & (others > 0)).any():
        who = sides.names.user(int(wrong.argmax()))
        raise InputError(
            f"recs of user {who} have no item outside the truth, which tells nothing about the ranks among ", size
        )
    return drawn, others


def _map_gains(gains: Array, gain: Any) -> Array:
    """Return what formulas make of the gains of relevant items."""
    if gain == "binary":
        return np.ones(len(gains))
    gains = np.maximum(gains, 0.0)  # min_gain="any" makes those below 0 relevant, too
    if gain == "exp2":
        return np.array([map_gain(one, (op.EXP2,), ()) for one in gains.tolist()], float)
    return gains if gain == "linear" else np.array(gain)[gains.astype(np.int64)]


def fill_sums(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill estimated sums over relevant items; keys are (cut-off, weight, gain, least gain)."""
    out[:] = sides.sampled_ranks.sums(keys)


def fill_single(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill estimates about the only relevant item of each user; keys as in `fill_sums`."""
    truth = sides.truth
    for least in dict.fromkeys(key[-1] for key in keys):
        counts = np.bincount(truth.users[is_relevant(truth.gains, least)], minlength=truth.n_users)
        if (wrong := counts > 1).any():
            user = int(wrong.argmax())
            raise MetricError(
                f"has estimates for users with one relevant item only, found {counts[user]} of user "
                f"{sides.names.user(user)}: leave the metric out, or ",
                Argument("correct", (CORRECT.default,)),
            )
    out[:] = sides.sampled_ranks.sums(keys)

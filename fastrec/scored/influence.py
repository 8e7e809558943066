"""Effects of single rows on metrics over the order of all rows, from which clustered errors and paired tests follow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.threads import run_in_threads
from fastrec.scored.sorting import Runs

__all__ = ["Influence", "influence_on_auc", "influence_on_precision"]

Array = np.ndarray[Any, Any]
ROWS_AT_ONCE = 1 << 18


class Influence(NamedTuple):
    """The slope of a metric in the weight of a row, by class and score, times the weight of the class."""

    scores: Array  # the distinct scores (n,), ascending
    of_positives: Array  # float64 (n,)
    of_negatives: Array

    def of_rows(self, positive: Array, scores: Array, weights: Array | None, n_threads: int) -> Array:
        """Return the effect of each row, float64 (n_rows,): the slope times its weight. Effects of all rows add to 0.

        `positive` is bool, `scores` of a weight above 0 are among those of this object, `weights` are 1 by default.
        """
        found = np.empty(len(scores))

        def look_up(first: int) -> None:
            own = slice(first, first + ROWS_AT_ONCE)
            order = np.argsort(scores[own])  # neighbours are then searched in the same place, which a cache holds
            at = np.empty(len(order), np.int64)
            at[order] = np.minimum(np.searchsorted(self.scores, scores[own][order]), len(self.scores) - 1)
            found[own] = np.where(positive[own], self.of_positives[at], self.of_negatives[at])

        run_in_threads(look_up, range(0, len(scores), ROWS_AT_ONCE), n_threads)
        if weights is None:
            n_positives = int(np.count_nonzero(positive))
            return found / np.where(positive, max(n_positives, 1), max(len(positive) - n_positives, 1))
        shares = weights / weights.max()
        for chosen in (positive, ~positive):
            shares[chosen] /= shares[chosen].sum() or 1.0
        found *= shares
        return found


def influence_on_auc(runs: Runs, area: float) -> Influence:
    """Return what rows add to the area under the ROC curve: their placement less the area (DeLong et al. 1988)."""
    below = np.cumsum(runs.negatives) - runs.negatives / 2
    above = np.cumsum(runs.positives[::-1])[::-1] - runs.positives / 2
    return Influence(runs.scores, below / runs.negatives.sum() - area, above / runs.positives.sum() - area)


def influence_on_precision(runs: Runs, area: float) -> Influence:
    """Return what rows add to average precision, the mean over positives of the precision at their score.

    A row changes the precision at all scores up to its own, and a positive row is one more in the mean.
    """
    true, false = (np.cumsum(own[::-1])[::-1].astype(np.float64) for own in (runs.positives, runs.negatives))
    reached = true + false
    gained, lost = (np.cumsum(runs.positives * own / reached / reached) for own in (false, true))
    negatives_per_positive = float(false[:1].sum()) / float(true[0])
    return Influence(runs.scores, true / reached - area + gained, -lost * negatives_per_positive)

"""Metrics of graded lists that trec_eval has beside nDCG: its mean over several ranks, and gain by what is lacking.

In the docstrings `I_r` is the gain at rank r of the best order of the user's relevant items, 0 past its end; other
letters are those of `fastrec.metrics.lists`. A cut-off cuts the user's list alone. Gains are taken as they are; items
of gain 0, which `min_gain=any` makes relevant, do not count.
"""

from __future__ import annotations

from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.statistics import ListStatistics, Row, maximum, minimum

PROVIDER, ORDERS = "ideal gains", "ideal orders"


@ranking_metric(
    range=(0, 1),
    formula="mean of ndcg@r over the ranks r of relevant items",
    source="Buckley 2008; trec_eval 9.0.8, m_ndcg_rel",
)
def ndcg_rel(s: ListStatistics) -> Row:
    """Mean of nDCG over the ranks of the relevant items.

    Formula: (sum over hits r <= k of DCG_r / IDCG_r + (n_rel - h) DCG_n / IDCG) / n_rel. DCG_r and IDCG_r are the sums
    of gains / log2(rank + 1) up to rank r of the list and of the best order, n = min(k, n_rec), and IDCG is that of all
    relevant items.

    Examples
    --------
    nDCG is 0.63 at rank 2, where the only relevant item is:

    >>> round(fastrec.evaluate([[7, 1]], [[1]], "ndcg_rel")["ndcg_rel"], 12)
    0.630929753571
    """
    return s.provided(PROVIDER, s.cutoff, "mean_at_hits", s.min_gain)


@ranking_metric(
    range=(0, 1),
    formula="mean of ndcg@r over the ranks r where the ideal gain falls",
    source="Buckley 2008; trec_eval 9.0.8, m_Rndcg",
)
def rndcg(s: ListStatistics) -> Row:
    """Mean of nDCG over the numbers of relevant items of each grade and above.

    Formula: mean of DCG_r / IDCG_r over the ranks r with I_r > I_(r + 1), and over the end of the list if it has more
    than n_rel + 1 items within k. DCG_r and IDCG_r are the sums of gains / log2(rank + 1) up to rank r of the list and
    of the best order. With one grade it is the nDCG at rank n_rel, or the mean of this and nDCG.

    Examples
    --------
    nDCG is 0 at rank 1 and 0.17 at rank 2, where the grade falls:

    >>> round(fastrec.evaluate([[7, 1]], [{9: 3.0, 1: 1.0}], "rndcg")["rndcg"], 12)
    0.086882671436
    """
    n_rel = s.provided(ORDERS, "n_rel", s.min_gain)
    levels = s.provided(ORDERS, "levels", s.min_gain)
    at_levels = s.provided(PROVIDER, s.cutoff, "sum_at_levels", s.min_gain)
    at_end = s.provided(PROVIDER, s.cutoff, "share_of_best_dcg", s.min_gain)
    is_longer = minimum(maximum(s.within_k(s.n_rec) - n_rel - 1.0, 0.0), 1.0)
    return (at_levels + is_longer * at_end) / (levels + is_longer)


@ranking_metric(
    range=(0, 1),
    formula="sum of g_r / log2(2 + gain that the list lacks up to r), over all gain",
    source="Buckley 2008; trec_eval 9.0.8, m_G",
)
def normalized_gain(s: ListStatistics) -> Row:
    """G of trec_eval: gain discounted by how much more the best order would have found.

    Formula: sum over r <= k of g_r / log2(2 + sum over j <= r of (max(I_j, 1) - g_j)), over the sum of all I_j. With
    gains of 1 it is `bin_g`.

    Examples
    --------
    >>> report = fastrec.evaluate([[7, 8, 1, 2]], [[1, 2]], "normalized_gain")
    >>> report["normalized_gain"]
    0.5
    """
    return s.provided(PROVIDER, s.cutoff, "sum_by_lost_gain", s.min_gain)

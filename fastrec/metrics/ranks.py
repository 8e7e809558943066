"""Metrics of lists that other tools of retrieval have: counts, utilities, positions of hits.

Each reads the statistics of `fastrec.metrics.lists`, with the same letters in its docstring.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from fastrec.exceptions import MetricError
from fastrec.kernels.series import reciprocals
from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Finite
from fastrec.metrics.lists import Average, Gain
from fastrec.metrics.rank_weights import rank_weights
from fastrec.metrics.statistics import ListStatistics, Ratio, Row, ratio

MAX_SUMMED = 1_000_000  # ranks
PAIRS = "pairs of gains"


def _pooled(numerator: Any, denominator: Any, weight: Any) -> Any:
    """Divide the sums of users; NaN if those who count have no weight."""
    return ratio(numerator, denominator) if weight else math.nan


@ranking_metric(range=(0, None), formula="min(k, n_rec)", source="Buckley & Voorhees 2005", direction="none")
def num_ret(s: ListStatistics) -> Row:
    """Number of items among the first k.

    Formula: min(k, n_rec). Users without a relevant item count as `no_truth` says, as for `num_rel` and `hits`.
    trec_eval prints the sum over users; this is their mean.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3], [4]], [[2], [9]], ["num_ret", "num_ret@2"]
    ... )
    >>> report["num_ret@2"]
    1.5
    """
    return s.hits + (s.within_k(s.n_rec) - s.hits)  # hits, so that the truth is read, and other items


@ranking_metric(range=(0, None), formula="n_rel", source="Buckley & Voorhees 2005", direction="none")
def num_rel(s: ListStatistics) -> Row:
    """Number of relevant items in the truth, whatever the cut-off.

    Formula: n_rel. A user without a list counts as `no_recs` says, so with 0 by default. trec_eval prints the sum over
    users; this is their mean.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2], [3, 4]], [[2, 5], [9]], "num_rel")["num_rel"]
    1.5
    """
    return s.n_rel * s.one


@ranking_metric(
    range=(float("-inf"), None),
    formula="a h + b (n - h) + c (n_rel - h) + d (n_items - n - n_rel + h)",
    source="Hull 1998; trec_eval 9.0.8, m_utility",
)
def utility(s: ListStatistics, *, a: Finite = 1.0, b: Finite = -1.0, c: Finite = 0.0, d: Finite = 0.0) -> Row:
    """Worth of the first k: each recommended item earns or costs something, and so does each one that is left out.

    Formula: a h + b (n - h) + c (n_rel - h) + d (n_items - n - n_rel + h), with n = min(k, n_rec). The four weights are
    those of recommended relevant items, other recommended items, relevant items left out, and other items left out.
    Only d other than 0 needs `n_items`.

    Examples
    --------
    Two hits and one miss in the list, and one relevant item left out:

    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3]], [[1, 3, 9]], ["utility", "utility(a=2, c=-0.5)"]
    ... )
    >>> report["utility"], report["utility(a=2, c=-0.5)"]
    (1.0, 2.5)
    """
    n = s.within_k(s.n_rec)
    worth = a * s.hits + b * (n - s.hits) + c * (s.n_rel - s.hits)
    return worth + d * (s.n_items - n - s.n_rel + s.hits) if d else worth


@ranking_metric(
    range=(0, 1),
    formula="h^2 / (min(k, n_rec) n_rel)",
    source="Buckley & Voorhees 2005; trec_eval 9.0.8, m_set_map",
    aliases=("set_map",),
)
def set_ap(s: ListStatistics) -> Row:
    """Average precision of the first k as a set: precision times recall.

    Formula: h / n * h / n_rel, with n = min(k, n_rec).

    Examples
    --------
    >>> fastrec.evaluate([[1, 2, 3, 4]], [[1, 4, 9, 10]], "set_ap")["set_ap"]
    0.25
    """
    return s.hits * s.hits / (s.within_k(s.n_rec) * s.n_rel)


@ranking_metric(range=(0, 1), formula="sum over hits of recall@rank / n_rel", source="Evidently 0.7 (2025), MARKMetric")
def mar(s: ListStatistics, *, denominator: Literal["n_rel", "hits"] = "n_rel") -> Row:
    """Mean average recall: recall at the rank of each hit within k, added up and divided.

    Formula: sum over hits r <= k of recall@r / denominator = h (h + 1) / (2 n_rel) / denominator, with the denominator
    n_rel (`n_rel`), or h (`hits`). It does not depend on the ranks of the hits within k.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3, 4]], [[1, 4, 9, 10]], ["mar@4", "mar(denominator=hits)@4"]
    ... )
    >>> report["mar@4"], report["mar(denominator=hits)@4"]
    (0.1875, 0.375)
    """
    total = s.hits * (s.hits + 1) / (2 * s.n_rel)
    return total / (s.n_rel if denominator == "n_rel" else s.hits)


@ranking_metric(range=(0, 1), formula="sum of precision@r / k", source="Anelli et al. 2021 (Elliot), MAP")
def mean_precision(s: ListStatistics) -> Row:
    """Mean of precision@1, precision@2, ..., precision@k, which Elliot calls MAP.

    Formula: sum over r <= k of precision@r / k, also over ranks past the end of a short list. k is at most
    1,000,000.

    Examples
    --------
    Precisions 1, 1/2 and 2/3:

    >>> report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], "mean_precision@3")
    >>> round(report["mean_precision@3"], 12)
    0.722222222222
    """
    # a hit at rank r adds 1 / j to precision@j for all j from r to k
    if s.cutoff is None:
        total, best = s.rank_sum("reciprocal"), s.n_rec * s.rank_sum("reciprocal") - s.rank_sum("harmonic")
        return (s.hits * total - s.hit_sum("harmonic")) / best
    harmonic, k = float(reciprocals(s.cutoff)), s.cutoff
    if k > MAX_SUMMED:
        raise MetricError(f"takes cut-offs up to {MAX_SUMMED:,}")
    best_of_k = k * harmonic - float(rank_weights("harmonic", k).cumsum()[-1])  # k but for rounding: hits alone have 1
    return (s.hits * harmonic - s.hit_sum("harmonic")) / best_of_k


@ranking_metric(range=(0, 1), formula="sum of recall@r / k", source="Anelli et al. 2021 (Elliot), MAR")
def mean_recall(s: ListStatistics) -> Row:
    """Mean of recall@1, recall@2, ..., recall@k, which Elliot calls MAR.

    Formula: sum over r <= k of recall@r / k, also over ranks past the end of a short list.

    Examples
    --------
    Recalls 1/2, 1/2 and 1:

    >>> report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], "mean_recall@3")
    >>> round(report["mean_recall@3"], 12)
    0.666666666667
    """
    return (s.hits * (s.k + 1) - s.hit_sum("rank")) / (s.k * s.n_rel)


@ranking_metric(
    range=(0, 1),
    formula="sum over hits of 1 / rank / sum of 1 / r, r <= min(k, n_rel)",
    source="Salah et al. 2020 (Cornac), NCRR",
)
def ncrr(s: ListStatistics) -> Row:
    """Normalised cumulative reciprocal rank: `arhr` divided by that of the best possible order.

    Formula: sum over hits r <= k of 1 / r / sum over r <= min(k, n_rel) of 1 / r. Cornac cuts the divisor at the length
    of its list, which is the whole catalogue.

    Examples
    --------
    >>> round(fastrec.evaluate([[7, 1, 2]], [[1, 2]], "ncrr@3")["ncrr@3"], 12)
    0.555555555556
    """
    return s.hit_sum("reciprocal") / s.ideal_sum("binary", "reciprocal", "truth")


@ranking_metric(
    range=(0, None),
    formula="sum of g_r r / sum of g_r",
    source="Zhu 2004; Pasumarthi et al. 2019 (TF-Ranking), ARP",
    direction="lower",
    aliases=("mean_rank(gain=binary)",),
    no_recs="skip",
)
def average_relevance_position(s: ListStatistics, *, gain: Gain = "linear", average: Average = "user") -> Ratio:
    """Mean rank of the relevant items within k, weighted by their gains.

    Formula: sum over r <= k of gain(g_r) r / sum over r <= k of gain(g_r), over the users with a hit within k; the
    others have no value. `gain` as in `cg`; with `binary` it is the mean rank of the hits. `average=pooled` divides the
    sums over all these users, as TF-Ranking does.

    Examples
    --------
    A hit at rank 2; hits at ranks 1 (gain 2) and 2 (gain 1):

    >>> lists, truth = [[2, 3, 1], [3, 2, 1]], [{3: 1.0}, {3: 2.0, 2: 1.0}]
    >>> metrics = [
    ...     "average_relevance_position",
    ...     "average_relevance_position(average=pooled)",
    ...     "mean_rank",
    ... ]
    >>> [
    ...     round(value, 12)
    ...     for value in fastrec.evaluate(lists, truth, metrics).values()
    ... ]
    [1.666666666667, 1.5, 1.75]
    """
    ranks, gains = s.gain_sum(gain, "rank"), s.gain_sum(gain, "one")
    found = s.any_of(gains)
    if average == "user":
        return s.mean(ranks / gains, found)
    return Ratio(_pooled, (ranks, gains, found), s.where(found, ranks / gains), found)


@ranking_metric(
    range=(0, None),
    formula="rank of the last relevant item",
    source="Tsoumakas, Katakis & Vlahavas 2010",
    direction="lower",
    no_recs="skip",
)
def coverage_error(s: ListStatistics) -> Ratio:
    """Rank of the last relevant item: how far a user must read to find all of them.

    Formula: the rank of the last hit within k, over the users with all relevant items within k; the others have no
    value. scikit-learn counts the items with a score of at least the lowest of a relevant item: `ties=worst`.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3, 4], [5]], [[1, 3], [5, 9]], "coverage_error"
    ... )
    >>> report["coverage_error"]
    3.0
    """
    return s.mean(s.last_rank, s.one - s.any_of(s.n_rel - s.hits))


@ranking_metric(
    range=(0, 1),
    formula="pairs of listed items in the order of their gains / pairs with different gains",
    source="Pasumarthi et al. 2019 (TF-Ranking), OPA",
    aliases=("opa",),
    no_recs="skip",
)
def ordered_pair_accuracy(s: ListStatistics, *, average: Average = "user") -> Ratio:
    """Share of the pairs of listed items with different gains in which the item of the larger gain comes first.

    Formula: pairs i < j <= min(k, n_rec) with g_i > g_j / pairs with g_i != g_j, over the users with such a pair; the
    others have no value. Items that are not relevant have gain 0. `average=pooled` divides the sums over all these
    users, as TF-Ranking does. Of scored rows, `xauc` is the same.

    Examples
    --------
    One of two pairs, and all of three:

    >>> lists, truth = [[2, 3, 1], [3, 2, 1]], [{3: 1.0}, {3: 2.0, 2: 1.0}]
    >>> metrics = ["ordered_pair_accuracy", "ordered_pair_accuracy(average=pooled)"]
    >>> [
    ...     round(value, 12)
    ...     for value in fastrec.evaluate(lists, truth, metrics).values()
    ... ]
    [0.75, 0.8]
    """
    right, pairs = (s.provided(PAIRS, what, s.cutoff, s.min_gain) for what in ("right", "all"))
    found = s.any_of(pairs)
    if average == "user":
        return s.mean(right / pairs, found)
    return Ratio(_pooled, (right, pairs, found), s.where(found, right / pairs), found)


@ranking_metric(
    range=(0, 1),
    formula="pairs of listed items against the order of their gains / pairs with different gains",
    source="Yao 1995",
    direction="lower",
    no_recs="skip",
)
def ndpm(s: ListStatistics) -> Ratio:
    """Normalised distance-based performance measure: the share of pairs of listed items in the wrong order.

    Formula: pairs i < j <= min(k, n_rec) with g_i < g_j / pairs with g_i != g_j, over the users with such a pair; the
    others have no value. A list has no equal ranks, which would count half. So it is 1 - `ordered_pair_accuracy`.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[2, 3, 1], [3, 2, 1]], [{3: 1.0}, {3: 2.0, 2: 1.0}], "ndpm"
    ... )
    >>> report["ndpm"]
    0.25
    """
    right, pairs = (s.provided(PAIRS, what, s.cutoff, s.min_gain) for what in ("right", "all"))
    return s.mean((pairs - right) / pairs, s.any_of(pairs))

"""Metrics of recommended lists against held-out truth: the one place where each is declared.

A formula takes the statistics of every user's list at one cut-off, one number per user, and combines them with plain
arithmetic, in which 0 / 0 is 0. Its keyword-only arguments are the metric's options. Every metric also has the option
`min_gain`: the least gain of a relevant item, or `any`.

In the docstrings `h` is the number of hits within k, `n_rel` the number of the user's relevant items, `n_rec` the
length of the list, `g_r` the gain of the item at rank r (0 if it is not relevant), ranks count from 1. Without a
cut-off nothing is cut, and k alone means `n_rec`. Values are float64, without unit. The policies `no_truth` and
`no_recs` decide about users without relevant items or without a list, `ties` about tied scores.
"""

from __future__ import annotations

from typing import Literal

from fastrec.metrics.confusion import f_of_rates
from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Fraction, NotNegative, Table, UpTo1000
from fastrec.metrics.statistics import Combined, ListStatistics, Row, minimum, ratio, sqrt

Gain = Literal["linear", "exp2", "binary"] | Table
Discount = Literal["log2", "log2_flat2"] | Table
Ideal = Literal["truth", "truth_uncut", "list", "list_at_k", "k"]
Average = Literal["user", "pooled"]


def pooled(numerator: Row, denominator: Row) -> Combined:
    """Divide the sum of one statistic over all users by the sum of another."""
    return Combined(ratio, (numerator, denominator))


@ranking_metric(range=(0, None), formula="h", source="Salton & McGill 1983", aliases=("num_rel_ret",))
def hits(s: ListStatistics) -> Row:
    """Number of relevant items among the first k.

    Formula: h.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2, 3]], [[3, 1, 9]], ["hits@3", "hits@2"])["hits@3"]
    2.0
    """
    return s.hits


@ranking_metric(
    range=(0, 1),
    formula="1 if h >= 1 else 0",
    source="Deshpande & Karypis 2004",
    aliases=("hr", "hit", "hit_ratio", "success"),
)
def hit_rate(s: ListStatistics) -> Row:
    """Share of users with at least one relevant item among the first k.

    Formula: 1 if h >= 1, else 0. If "hit rate" means hits / all held-out items, use `recall(average=pooled)`.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2], [3, 4]], [[2], [9]], ["hit_rate@2"])["hit_rate@2"]
    0.5
    """
    return s.any_hit


@ranking_metric(range=(0, 1), formula="h / k", source="van Rijsbergen 1979, ch. 7", aliases=("p", "prec"))
def precision(
    s: ListStatistics,
    *,
    denominator: Literal["k", "min_k_n_rec", "min_k_n_rel", "min_k_n_rel_n_rec"] = "k",
    average: Average = "user",
) -> Row | Combined:
    """Share of the first k that is relevant.

    Formula: h / denominator, with the denominator k (the default, for short lists too), min(k, n_rec)
    (`min_k_n_rec`), min(k, n_rel) (`min_k_n_rel`) or min(k, n_rel, n_rec) (`min_k_n_rel_n_rec`). `average=pooled`
    divides the sum of hits by the sum of denominators, over all counted users.

    Examples
    --------
    A list of two at k = 4, one of them relevant:

    >>> report = fastrec.evaluate(
    ...     [[1, 2]],
    ...     [[2, 9]],
    ...     ["precision@4", "precision(denominator=min_k_n_rec)@4"],
    ... )
    >>> report["precision@4"], report["precision(denominator=min_k_n_rec)@4"]
    (0.25, 0.5)
    """
    denominators = {
        "k": s.k,
        "min_k_n_rec": s.within_k(s.n_rec),
        "min_k_n_rel": s.within_k(s.n_rel),
        "min_k_n_rel_n_rec": s.within_k(minimum(s.n_rel, s.n_rec)),
    }
    return _averaged(s.hits, denominators[denominator], average)


@ranking_metric(range=(0, 1), formula="h / n_rel", source="van Rijsbergen 1979, ch. 7", aliases=("r",))
def recall(
    s: ListStatistics,
    *,
    denominator: Literal["n_rel", "min_k_n_rel", "min_k_n_rel_n_rec", "listed"] = "n_rel",
    average: Average = "user",
) -> Row | Combined:
    """Share of the user's relevant items that are among the first k.

    Formula: h / denominator, with the denominator n_rel, min(k, n_rel) (`min_k_n_rel`: a perfect list of k always
    reaches 1), min(k, n_rel, n_rec) (`min_k_n_rel_n_rec`), or the relevant items anywhere in the list (`listed`, if
    only scored rows are known; relevant items elsewhere are unknown). `average=pooled` divides the sum of hits by the
    sum of denominators, over all counted users.

    Examples
    --------
    Three hits in ten recommended, five relevant:

    >>> report = fastrec.evaluate(
    ...     [list(range(10))],
    ...     [[0, 4, 9, 20, 30]],
    ...     ["recall", "precision", "f1"],
    ...     k=10,
    ... )
    >>> report["recall@10"], report["precision@10"], round(report["f1@10"], 12)
    (0.6, 0.3, 0.4)
    """
    denominators = {
        "n_rel": s.n_rel,
        "min_k_n_rel": s.within_k(s.n_rel),
        "min_k_n_rel_n_rec": s.within_k(minimum(s.n_rel, s.n_rec)),
        "listed": s.hits_in_list,
    }
    return _averaged(s.hits, denominators[denominator], average)


def _averaged(numerator: Row, denominator: Row, average: str) -> Row | Combined:
    return pooled(numerator, denominator) if average == "pooled" else numerator / denominator


@ranking_metric(range=(0, 1), formula="(1 + b^2) P R / (b^2 P + R)", source="van Rijsbergen 1979, ch. 7")
def f_beta(
    s: ListStatistics, *, beta: NotNegative = 1.0, average: Literal["user", "pooled", "means"] = "user"
) -> Row | Combined:
    """Weighted harmonic mean of precision and recall.

    Formula: (1 + beta^2) P R / (beta^2 P + R) = (1 + beta^2) h / (beta^2 n_rel + k) with P = h / k, R = h / n_rel;
    0 if both are 0. `average=pooled` pools P and R over all counted users; `means` takes their means over users.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3, 4]], [[1, 9]], ["f_beta(beta=2)@4"])
    >>> round(report["f_beta(beta=2)@4"], 12)
    0.416666666667
    """
    square = beta * beta
    if average == "user":
        return (1 + square) * s.hits / (square * s.n_rel + s.k)
    if average == "pooled":
        return pooled((1 + square) * s.hits, square * s.n_rel + s.k)

    return Combined(lambda p, r: ratio(*f_of_rates(p, r, square)), (s.hits / s.k, s.hits / s.n_rel))


@ranking_metric(range=(0, 1), formula="2 P R / (P + R)", source="van Rijsbergen 1979, ch. 7", aliases=("f1_score",))
def f1(s: ListStatistics, *, average: Literal["user", "pooled", "means"] = "user") -> Row | Combined:
    """Harmonic mean of precision and recall.

    Formula: 2 P R / (P + R) = 2 h / (n_rel + k); 0 if both are 0. `average` as in `f_beta`.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2, 3]], [[1]], ["f1@3"])["f1@3"]
    0.5
    """
    return f_beta(s, beta=1.0, average=average)


@ranking_metric(
    range=(0, 1),
    formula="hits in the first n_rel ranks / n_rel",
    source="Buckley & Voorhees 2000",
    aliases=("rprec",),
)
def r_precision(s: ListStatistics, *, multiple: UpTo1000 = 1.0) -> Row:
    """Precision at the rank that equals the number of relevant items, or a multiple of it.

    Formula: hits in the first m ranks / m, where m is n_rel by default, and in general `multiple` times n_rel + 0.9,
    rounded down, as in trec_eval. With a cut-off the list is cut to k first, but m stays.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3, 4]], [[1, 4]], ["r_precision", "r_precision(multiple=2)"]
    ... )
    >>> report["r_precision"], report["r_precision(multiple=2)"]
    (0.5, 0.5)
    """
    if multiple == 1.0:
        return s.hits_at_n_rel / s.n_rel
    hits, ranks = s.hits_at_multiple(multiple)
    return hits / ranks


@ranking_metric(
    range=(0, 1),
    formula="1 / rank of the first hit",
    source="Voorhees 1999",
    aliases=("rr", "reciprocal_rank", "recip_rank", "mean_reciprocal_rank"),
)
def mrr(s: ListStatistics) -> Row:
    """Mean reciprocal rank: 1 / rank of the first relevant item within k.

    Formula: 1 / min{r <= k : item at r is relevant}, 0 without one.

    Examples
    --------
    First hits at ranks 3, 2 and 1:

    >>> report = fastrec.evaluate(
    ...     [[7, 8, 1], [7, 1, 8], [1, 7, 8]], [[1], [1], [1]], ["mrr"]
    ... )
    >>> round(report["mrr"], 12)
    0.611111111111
    """
    return s.first_reciprocal


@ranking_metric(range=(0, None), formula="sum over hits of 1 / rank", source="Deshpande & Karypis 2004")
def arhr(s: ListStatistics, *, denominator: Literal["one", "n_rel"] = "one") -> Row:
    """Average reciprocal hit rank: 1 / rank summed over all hits within k.

    Formula: sum over hits r <= k of 1 / r, divided by the denominator, 1 (`one`) or n_rel (then the mean inverse rank
    of all relevant items).

    Examples
    --------
    >>> fastrec.evaluate([[1, 2, 3, 4]], [[1, 4]], ["arhr@4"])["arhr@4"]
    1.25
    """
    return s.hit_sum("reciprocal") / (s.one if denominator == "one" else s.n_rel)


@ranking_metric(
    range=(0, 1),
    formula="sum over hits of precision@rank / min(k, n_rel)",
    source="Buckley & Voorhees 2000",
    aliases=("map_cut(denominator=n_rel)", "mean_average_precision"),
)
def map(  # noqa: A001 - the field's name
    s: ListStatistics,
    *,
    denominator: Literal["min_k_n_rel", "n_rel", "k", "hits", "min_n_rel_n_rec", "min_k_n_rel_n_rec"] = "min_k_n_rel",
) -> Row:
    """Mean average precision: precision at the rank of each hit within k, added up and divided.

    Formula: sum over hits r <= k of precision@r / denominator. Denominators: min(k, n_rel), which is n_rel without a
    cut-off (`min_k_n_rel`); `n_rel`; `k`; the hits within k (`hits`); min(n_rel, n_rec) (`min_n_rel_n_rec`), or that
    cut at k too (`min_k_n_rel_n_rec`). Tools differ most in this choice.

    Examples
    --------
    A list [miss, hit, hit] with two relevant items at k = 3:

    >>> report = fastrec.evaluate(
    ...     [[7, 1, 2]], [[1, 2]], ["map@3", "map(denominator=k)@3"]
    ... )
    >>> round(report["map@3"], 12), round(report["map(denominator=k)@3"], 12)
    (0.583333333333, 0.388888888889)
    """
    if denominator == "hits":
        return s.mean_precision
    shorter = minimum(s.n_rel, s.n_rec)
    denominators = {
        "min_k_n_rel": s.within_k(s.n_rel),
        "n_rel": s.n_rel,
        "k": s.k,
        "min_n_rel_n_rec": shorter,
        "min_k_n_rel_n_rec": s.within_k(shorter),
    }
    return s.precision_sum / denominators[denominator]


@ranking_metric(range=(0, None), formula="sum of g_r", source="Järvelin & Kekäläinen 2002")
def cg(s: ListStatistics, *, gain: Gain = "linear") -> Row:
    """Cumulative gain of the first k.

    Formula: sum over r <= k of gain(g_r). `gain` is `linear` (g), `exp2` (2^g - 1), `binary` (1 for relevant items) or
    a table `[0, ...]` with the gain of the grades 0, 1, 2, ...

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3]], [{1: 3.0, 3: 2.0}], ["cg@3", "cg(gain=exp2)@3"]
    ... )
    >>> report["cg(gain=exp2)@3"]
    10.0
    """
    return s.gain_sum(gain, "one")


@ranking_metric(
    range=(0, None),
    formula="sum of g_r / log2(r + 1)",
    source="Järvelin & Kekäläinen 2002; the discount of Burges et al. 2005",
)
def dcg(s: ListStatistics, *, gain: Gain = "linear", discount: Discount = "log2") -> Row:
    """Discounted cumulative gain of the first k.

    Formula: sum over r <= k of gain(g_r) * c(r). `gain` as in `cg`; the discount c is `log2` (1 / log2(r + 1)),
    `log2_flat2` (1 / max(log2 r, 1): ranks 1 and 2 count in full) or a table with the weights of ranks 1, 2, ...,
    0 past its end.

    Examples
    --------
    Gains 2, 1, 0, 2 in the order of the list:

    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3, 4]], [{1: 2.0, 2: 1.0, 4: 2.0}], ["dcg@4"]
    ... )
    >>> round(report["dcg@4"], 12)
    3.492282869718
    """
    return s.gain_sum(gain, discount)


@ranking_metric(
    range=(0, 1),
    formula="dcg / ideal dcg",
    source="Järvelin & Kekäläinen 2002; the discount of Burges et al. 2005",
    aliases=("ndcg_cut",),
)
def ndcg(s: ListStatistics, *, gain: Gain = "linear", discount: Discount = "log2", ideal: Ideal = "truth") -> Row:
    """Normalised discounted cumulative gain: `dcg` divided by the `dcg` of the best possible order.

    Formula: dcg / ideal dcg, with `gain` (`linear`, `exp2`, `binary`, a table) and `discount` (`log2`, `log2_flat2`, a
    table) as in `dcg`. The ideal is the best order of all relevant items cut at k (`truth`), of all of them uncut
    (`truth_uncut`), of all gains in the user's whole list cut at k (`list`), of the first k's own gains (`list_at_k`),
    or k relevant items of gain 1 (`k`, for truth without gains, or `gain=binary`).

    Examples
    --------
    Gains 2, 1, 0, 2 in the order of the list:

    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3, 4]],
    ...     [{1: 2.0, 2: 1.0, 4: 2.0}],
    ...     ["ndcg@4", "ndcg(gain=exp2)@4"],
    ... )
    >>> round(report["ndcg@4"], 12), round(report["ndcg(gain=exp2)@4"], 12)
    (0.928339525463, 0.91287813964)
    """
    return s.gain_sum(gain, discount) / s.ideal_sum(gain, discount, ideal)


@ranking_metric(range=(0, None), formula="(1 - p) * sum of g_r p^(r - 1)", source="Moffat & Zobel 2008")
def rbp(s: ListStatistics, *, p: Fraction = 0.8, gain: Literal["linear", "binary"] = "linear") -> Row:
    """Rank-biased precision: the gain found by a user who goes on to the next rank with probability p.

    Formula: (1 - p) * sum over r <= k of g_r p^(r - 1); with `gain=binary` relevant items have gain 1.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3]], [[1, 3]], ["rbp(p=0.5)"])
    >>> round(report["rbp(p=0.5)"], 12)
    0.625
    """
    return s.gain_sum(gain, ("geometric", p))


@ranking_metric(range=(0, 1), formula="sum of R_r / r * product of (1 - R_i), i < r", source="Chapelle et al. 2009")
def err(s: ListStatistics, *, max_gain: UpTo1000) -> Row:
    """Expected reciprocal rank: 1 / rank at which a user who reads downwards stops.

    Formula: sum over r <= k of R_r / r * product over i < r of (1 - R_i), with the stop probability
    R = (2^g - 1) / 2^max_gain. `max_gain` is required, because a maximum from the data could not be merged. A gain
    above it is an error.

    Examples
    --------
    >>> report = fastrec.evaluate([[7, 1]], [{1: 1.0}], ["err(max_gain=1)"])
    >>> report["err(max_gain=1)"]
    0.25
    """
    return s.cascade(max_gain)


@ranking_metric(range=(0, 1), formula="(TP + TN) / n_items", source="Gunawardana & Shani 2009")
def accuracy(s: ListStatistics) -> Row:
    """Share of the catalogue that the first k classify correctly: recommended and relevant, or neither.

    Formula: (TP + TN) / n_items, with n = min(k, n_rec), TP = h, FP = n - h, FN = n_rel - h and
    TN = n_items - n - FN. Needs `n_items`.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2]], [[2, 9]], ["accuracy@2"], n_items=10)
    >>> report["accuracy@2"]
    0.8
    """
    return (s.n_items - _listed(s) - s.n_rel + s.hits + s.hits) / s.n_items


@ranking_metric(range=(0, 1), formula="TN / (TN + FP)", source="Schein et al. 2002")
def specificity(s: ListStatistics) -> Row:
    """Share of the non-relevant items that are not among the first k (true negative rate).

    Formula: TN / (TN + FP), counted as in `accuracy`. Needs `n_items`.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2]], [[2, 9]], ["specificity@2"], n_items=10)
    >>> report["specificity@2"]
    0.875
    """
    return (s.n_items - s.n_rel - _listed(s) + s.hits) / (s.n_items - s.n_rel)


@ranking_metric(range=(0, 1), formula="FP / (FP + TN)", source="Swets 1963", direction="lower")
def fallout(s: ListStatistics) -> Row:
    """Share of the non-relevant items that are among the first k (false positive rate).

    Formula: FP / (FP + TN), counted as in `accuracy`. Needs `n_items`.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2]], [[2, 9]], ["fallout@2"], n_items=10)["fallout@2"]
    0.125
    """
    return (_listed(s) - s.hits) / (s.n_items - s.n_rel)


@ranking_metric(
    range=(-1, 1),
    formula="(TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN))",
    source="Matthews 1975",
)
def mcc(s: ListStatistics) -> Row:
    """Matthews correlation of "among the first k" and "relevant" over the catalogue.

    Formula: (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)), counted as in `accuracy`. Needs `n_items`.

    Examples
    --------
    >>> fastrec.evaluate([[1, 2]], [[2, 9]], ["mcc@2"], n_items=10)["mcc@2"]
    0.375
    """
    listed = _listed(s)
    covariance = s.hits * s.n_items - listed * s.n_rel  # = TP TN - FP FN
    spread: Row = sqrt(listed * s.n_rel * (s.n_items - listed) * (s.n_items - s.n_rel))
    return covariance / spread


def _listed(s: ListStatistics) -> Row:
    return s.within_k(s.n_rec)


@ranking_metric(
    range=(0, 1),
    formula="ordered pairs / (n_rel (n_items - n_rel))",
    source="Schröder, Thiele & Lehner 2011",
)
def limited_auc(s: ListStatistics, *, unseen: Literal["tail_mean", "list_only"] = "tail_mean") -> Row:
    """Area under the ROC curve of the catalogue when only the first k of its order are known.

    Formula: pairs (relevant, not relevant) in the right order / all pairs. `unseen=tail_mean` places relevant items
    outside the list at the mean of the remaining ranks (needs `n_items`); `list_only` counts pairs within the first k.
    Both have their exact mean over the orders of tied items under ``ties="expected"``.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2]], [[2, 9]], ["limited_auc@2"], n_items=10)
    >>> report["limited_auc@2"]
    0.65625
    """
    if unseen == "list_only":
        return s.listed_pairs
    # the j-th hit, at rank r, is below r - j items that are not relevant; of the pairs outside the list half are right.
    # The squares of hits cancel, so that the mean over orders of ties is known
    not_relevant, listed = s.n_items - s.n_rel, _listed(s)
    right = s.hits * (listed + (s.n_items + 1)) / 2 - s.hit_sum("rank") + s.n_rel * (not_relevant - listed) / 2
    return right / (s.n_rel * not_relevant)

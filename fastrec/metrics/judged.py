"""Metrics of lists that tell items judged not relevant from items that nobody judged, and others of TREC.

A truth row whose item is not relevant, such as one of gain 0, says that the item was judged. A negative gain says that
it was in the pool to be judged, but was not. Items that the truth lacks are not judged. In the docstrings `n_other` is
the number of the user's items that were judged not relevant; other letters are those of `fastrec.metrics.lists`.
"""

from __future__ import annotations

from typing import Literal

from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Fraction, Rate
from fastrec.metrics.statistics import ListStatistics, Ratio, Row

Rounding = Literal["up", "nearest"]
PROVIDER = "judgements"
OF_JUDGED_ITEMS = frozenset({"count_judged", "sum_inferred", "sum_preferences", "sum_residual"})
"""The kernels that tell items judged not relevant from those that nobody judged; others find relevant items only."""


def _statistic(s: ListStatistics, kernel: str, *parameters: float) -> Row:
    return s.provided(PROVIDER, s.cutoff, kernel, tuple(map(float, parameters or (0.0,))), s.min_gain)


@ranking_metric(
    range=(0, 1),
    formula="sum over hits of 1 - min(others above, n_rel) / min(n_rel, n_other), over n_rel",
    source="Buckley & Voorhees 2004; trec_eval 9.0.8, m_bpref",
)
def bpref(s: ListStatistics, *, denominator: Literal["min_n_rel_n_other", "n_rel"] = "min_n_rel_n_other") -> Row:
    """Binary preference: how often relevant items are above those that were judged not relevant.

    Formula: sum over hits r <= k of 1 - min(o_r, n_rel) / denominator, over n_rel, where o_r of the items above were
    judged not relevant; without such items a hit adds 1. The denominator is min(n_rel, n_other), as in trec_eval
    (`min_n_rel_n_other`), or n_rel, as published (`n_rel`). Items that nobody judged do not matter.

    Examples
    --------
    Item 3 was judged not relevant, nobody judged item 7:

    >>> lists, truth = [[7, 3, 1, 2]], [{1: 1.0, 2: 1.0, 3: 0.0, 4: 0.0}]
    >>> report = fastrec.evaluate(
    ...     lists, truth, ["bpref", "bpref(denominator=n_rel)"]
    ... )
    >>> report["bpref"], report["bpref(denominator=n_rel)"]
    (0.5, 0.5)
    """
    return _statistic(s, "sum_preferences", denominator == "n_rel") / s.n_rel


@ranking_metric(
    range=(0, 1),
    formula="sum over hits of the expected precision / n_rel",
    source="Yilmaz & Aslam 2006; trec_eval 9.0.8, m_infap",
)
def inf_ap(s: ListStatistics) -> Row:
    """Inferred average precision, where only a sample of the pool was judged.

    Formula: sum over hits r <= k of 1 / r + (r - 1) / r * p_r * (h_r + e) / (h_r + o_r + 2e), over n_rel. h_r and o_r
    items above were judged relevant and not relevant, p_r is the share of the items above that are in the truth, and
    e = 0.00001. Rows of the truth with a negative gain are in the pool and not judged. If every item of a list was
    judged, it differs from `map` by e only.

    Examples
    --------
    >>> truth = [{1: 1.0, 2: 1.0, 3: 0.0, 4: -1.0}]
    >>> round(fastrec.evaluate([[3, 4, 1, 2]], truth, "inf_ap")["inf_ap"], 4)
    0.4792
    """
    return _statistic(s, "sum_inferred") / s.n_rel


@ranking_metric(
    range=(0, 1),
    formula="judged items among the first k / min(k, n_rec)",
    source="MacAvaney et al. 2022 (ir_measures), Judged",
    direction="none",
)
def judged(s: ListStatistics) -> Row:
    """Share of the first k that was judged, relevant or not.

    Formula: items among the first k with a row of gain 0 or more in the truth / min(k, n_rec). A low share says that
    other metrics take unknown items for misses.

    Examples
    --------
    >>> fastrec.evaluate([[7, 3, 1, 2]], [{1: 1.0, 3: 0.0}], "judged@3")["judged@3"]
    0.6666666666666666
    """
    return _statistic(s, "count_judged") / s.within_k(s.n_rec)


@ranking_metric(
    range=(0, 1),
    formula="items among the first k that nobody judged / k",
    source="trec_eval 9.0.8 (2023), m_unjudged",
    direction="none",
    aliases=("unj",),
)
def unjudged(s: ListStatistics) -> Row:
    """Share of k ranks with an item that nobody judged.

    Formula: items among the first k without a row of gain 0 or more in the truth / k. Ranks past the end of a short
    list count as judged.

    Examples
    --------
    >>> report = fastrec.evaluate([[7, 3, 1, 2]], [{1: 1.0, 3: 0.0}], "unjudged@5")
    >>> report["unjudged@5"]
    0.4
    """
    return (s.within_k(s.n_rec) - _statistic(s, "count_judged")) / s.k


@ranking_metric(
    range=(0, None),
    formula="judged items among the first k - h",
    source="Buckley & Voorhees 2005; trec_eval 9.0.8",
    direction="none",
)
def num_nonrel_judged_ret(s: ListStatistics) -> Row:
    """Number of items among the first k that were judged not relevant.

    Formula: items among the first k with a row of gain 0 or more in the truth that are not relevant. trec_eval prints
    the sum over users; this is their mean.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[7, 3, 1, 2]], [{1: 1.0, 3: 0.0}], "num_nonrel_judged_ret"
    ... )
    >>> report["num_nonrel_judged_ret"]
    1.0
    """
    return _statistic(s, "count_judged") - s.hits


@ranking_metric(
    range=(0, 1),
    formula="(1 - p) * sum of p^(r - 1) over ranks that nobody judged",
    source="Moffat & Zobel 2008; trec_eval 9.0.8, m_rbp_resid",
    direction="none",
)
def rbp_residual(s: ListStatistics, *, p: Fraction = 0.8, tail: Literal["always", "unjudged"] = "always") -> Row:
    """How much `rbp` would grow if all items that nobody judged were relevant, with gain 1.

    Formula: (1 - p) * sum of p^(r - 1) over the ranks r <= k of items that were not judged, + p^n with n = min(k,
    n_rec) for all ranks past the end. So rbp is between `rbp(gain=binary)` and this plus it. With `tail=unjudged` it is
    0 if every item was judged, as in trec_eval, whose p is 0.9.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[7, 3, 1]], [{1: 1.0, 3: 0.0}], "rbp_residual(p=0.5)"
    ... )
    >>> report["rbp_residual(p=0.5)"]
    0.625
    """
    residual = _statistic(s, "sum_residual", p)
    if tail == "always":
        return residual
    return s.only(s.within_k(s.n_rec) - _statistic(s, "count_judged"), residual)


@ranking_metric(
    range=(0, 1),
    formula="max of precision@r over ranks with recall@r >= level",
    source="Manning et al. 2008, ch. 8.4; trec_eval 9.0.8, m_iprec_at_recall",
    aliases=("interpolated_precision",),
)
def iprec_at_recall(s: ListStatistics, *, level: Rate = 0.1, rounding: Rounding = "up") -> Row:
    """Interpolated precision at a level of recall: the best precision at this recall or above.

    Formula: max of precision@r over the ranks r <= k with at least m hits, 0 without such a rank. m is `level`, from 0
    to 1, times n_rel: with `rounding=up` that + 0.9 rounded down, as in trec_eval 9, with `nearest` rounded, halves up,
    as in trec_eval 10.

    Examples
    --------
    >>> metrics = ["iprec_at_recall(level=0.5)", "iprec_at_recall(level=1)"]
    >>> fastrec.evaluate([[7, 1, 2]], [[1, 2]], metrics)["iprec_at_recall(level=1)"]
    0.6666666666666666
    """
    return _statistic(s, "mean_precision_of_levels", rounding == "nearest", level)


@ranking_metric(
    range=(0, 1),
    formula="mean of iprec_at_recall at the levels 0, 0.1, ..., 1",
    source="Manning et al. 2008, ch. 8.4; trec_eval 9.0.8, m_11pt_avg",
)
def eleven_point_average(s: ListStatistics, *, rounding: Rounding = "up") -> Row:
    """Mean of the interpolated precision at recall 0, 0.1, ..., 1.

    Formula: sum over the levels 0, 0.1, ..., 1 of `iprec_at_recall`, / 11. `rounding` is `up` or `nearest` as there.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 7, 2]], [[1, 2]], "eleven_point_average")
    >>> round(report["eleven_point_average"], 12)
    0.848484848485
    """
    return _statistic(s, "mean_precision_of_levels", rounding == "nearest", *(tenths / 10 for tenths in range(11)))


@ranking_metric(
    range=(0, 1),
    formula="sum over hits of 1 / log2(2 + misses above) / n_rel",
    source="Buckley 2008; trec_eval 9.0.8, m_binG",
)
def bin_g(s: ListStatistics) -> Row:
    """Gain of each relevant item, discounted by the number of misses above it.

    Formula: sum over hits r <= k of 1 / log2(2 + m_r), over n_rel, where m_r of the items above are not relevant.

    Examples
    --------
    >>> fastrec.evaluate([[7, 8, 1, 2]], [[1, 2]], "bin_g")["bin_g"]
    0.5
    """
    return _statistic(s, "sum_by_misses") / s.n_rel


@ranking_metric(
    range=(0, None),
    formula="median rank of the hits",
    source="Bordes et al. 2011",
    direction="lower",
    no_recs="skip",
)
def median_rank(s: ListStatistics) -> Ratio:
    """Median rank of the relevant items within k, as a mean over users.

    Formula: the median of the ranks r <= k of the hits, of an even number the mean of the middle two, over the users
    with a hit within k; the others have no value.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 7, 2, 8, 3], [4]], [[1, 2, 3], [9]], "median_rank"
    ... )
    >>> report["median_rank"]
    3.0
    """
    return s.mean(_statistic(s, "find_median"), s.any_hit)

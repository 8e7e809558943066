"""Metrics of lists whose items should cover many subtopics of what a user looks for: novelty and diversity.

`subtopics` says which subtopics an item covers for a user. In the docstrings n_s is the number of subtopics that the
user's relevant items cover, and v_r = sum over the subtopics of the item at rank r of (1 - alpha)^c, where c items
above cover the subtopic: what the item adds. Items that are not relevant cover nothing. Users without a subtopic have
no value. Other letters are those of `fastrec.metrics.lists`.
"""

from __future__ import annotations

from typing import Any, Literal

from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Fraction, Rate
from fastrec.metrics.statistics import ListStatistics, Ratio, Row

SUBTOPICS = "subtopics"


def _statistic(s: ListStatistics, kind: str, *parameters: Any) -> Row:
    return s.provided(SUBTOPICS, kind, s.cutoff, s.min_gain, *parameters)


def _of_subtopics(s: ListStatistics, value: Row) -> Ratio:
    """Return the mean over users with subtopics; the policy for users without a relevant item comes first."""
    has_subtopics = s.any_of(_statistic(s, "n"))
    return s.mean(value, has_subtopics, has_subtopics + (s.one - s.any_of(s.n_rel)))


def _divided(s: ListStatistics, denominator: str, alpha: float, weight: Any) -> Row:
    """Return the sum of what items add, times the weights of ranks, over a denominator."""
    total = _statistic(s, "novelty", alpha, weight)
    if denominator == "one":
        return total
    if denominator == "n_subtopics":
        return alpha * total / _statistic(s, "n")
    return total / _statistic(s, denominator, alpha, weight)


@ranking_metric(
    range=(0, None),
    formula="sum of v_r / log2(r + 1)",
    source="Clarke et al. 2008",
    direction="higher",
    aliases=("alpha_ndcg(denominator=ideal)",),
)
def alpha_dcg(
    s: ListStatistics, *, alpha: Rate = 0.5, denominator: Literal["one", "ideal", "all_subtopics"] = "one"
) -> Ratio:
    """Discounted cumulative gain of items that each add less on subtopics which items above have covered.

    Formula: sum over r <= k of v_r / log2(r + 1), / the denominator: 1 (`one`), that of a greedy ideal order
    (`ideal`, alpha-nDCG), or that of a list of k items which cover all subtopics (`all_subtopics`, as ndeval). The
    ideal takes the relevant item that adds most next; of equal ones the one whose subtopics come first in ascending
    order. An exact ideal is NP-hard, so a list may be better than the ideal.

    Examples
    --------
    Item 1 covers subtopics 1 and 2, item 2 covers 2, and item 3 covers 3:

    >>> covered = ([1, 1, 2, 3], [0, 4], [1, 2, 2, 3])
    >>> metrics = ["alpha_dcg", "alpha_ndcg"]
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3]], [[1, 2, 3]], metrics, subtopics=covered
    ... )
    >>> [round(value, 12) for value in report.values()]
    [2.815464876786, 0.977276475865]
    """
    return _of_subtopics(s, _divided(s, denominator, alpha, "log2"))


@ranking_metric(
    range=(0, None),
    formula="sum of v_r / r / (n_s * sum of (1 - alpha)^(r - 1) / r)",
    source="Chapelle et al. 2009; Clarke et al. 2011",
    direction="higher",
    aliases=("nerr_ia(denominator=ideal)",),
)
def err_ia(
    s: ListStatistics,
    *,
    alpha: Rate = 0.5,
    denominator: Literal["all_subtopics", "n_subtopics", "ideal"] = "all_subtopics",
) -> Ratio:
    """Intent-aware expected reciprocal rank: the mean over subtopics of the reciprocal rank at which a user stops.

    Formula: sum over r <= k of v_r / r, / that of a list of k items which cover all subtopics (`all_subtopics`, as
    ndeval and ir_measures), or / that of the greedy ideal of `alpha_dcg` (`ideal`, nERR-IA). `n_subtopics` is
    alpha * sum / n_s: the mean over subtopics of ERR, with the probability alpha to stop at an item that covers it.

    Examples
    --------
    >>> covered = ([1, 1, 2], [0, 3], [1, 2, 2])
    >>> report = fastrec.evaluate(
    ...     [[1, 2]],
    ...     [[1, 2]],
    ...     ["err_ia", "err_ia(denominator=n_subtopics)"],
    ...     subtopics=covered,
    ... )
    >>> [round(value, 12) for value in report.values()]
    [0.9, 0.5625]
    """
    return _of_subtopics(s, _divided(s, denominator, alpha, "reciprocal"))


@ranking_metric(
    range=(0, None),
    formula="(1 - (1 - alpha) p) * sum of v_r p^(r - 1) / n_s",
    source="Clarke, Kolla & Vechtomova 2009",
    direction="higher",
    aliases=("nnrbp(denominator=ideal)",),
)
def nrbp(
    s: ListStatistics,
    *,
    alpha: Rate = 0.5,
    p: Fraction = 0.5,
    denominator: Literal["all_subtopics", "ideal"] = "all_subtopics",
) -> Ratio:
    """Novelty- and rank-biased precision: what items add, for a user who goes on to the next rank with probability p.

    Formula: (1 - (1 - alpha) p) / n_s * sum over r <= k of v_r p^(r - 1), which is 1 for a list without end of items
    that cover all subtopics (`all_subtopics`), or the sum / that of the greedy ideal of `alpha_dcg` (`ideal`, nNRBP).

    Examples
    --------
    >>> covered = ([1, 1, 2], [0, 3], [1, 2, 2])
    >>> fastrec.evaluate([[1, 2]], [[1, 2]], "nrbp", subtopics=covered)["nrbp"]
    0.84375
    """
    weight = ("geometric", p)
    total = _statistic(s, "novelty", alpha, weight)
    if denominator == "ideal":
        return _of_subtopics(s, total / _statistic(s, "ideal", alpha, weight))
    scale = (1.0 - (1.0 - alpha) * p) / (1.0 - p)  # weights of ranks are (1 - p) p^(r - 1)
    return _of_subtopics(s, scale * total / _statistic(s, "n"))


@ranking_metric(
    range=(0, 1),
    formula="subtopics that the first k cover / n_s",
    source="Zhai, Cohen & Lafferty 2003",
    aliases=("strecall", "strec", "s_recall"),
)
def subtopic_recall(s: ListStatistics) -> Ratio:
    """Share of the subtopics that the first k items cover.

    Formula: subtopics that a relevant item within k covers / n_s.

    Examples
    --------
    >>> covered = ([1, 1, 2], [0, 3], [1, 2, 3])
    >>> report = fastrec.evaluate(
    ...     [[1, 9]], [[1, 2]], "subtopic_recall@2", subtopics=covered
    ... )
    >>> round(report["subtopic_recall@2"], 12)
    0.666666666667
    """
    return _of_subtopics(s, _statistic(s, "covered") / _statistic(s, "n"))


@ranking_metric(
    range=(0, 1),
    formula="pairs of an item within k and a subtopic that it covers / (k n_s)",
    source="Agrawal et al. 2009",
    aliases=("p_ia",),
)
def precision_ia(s: ListStatistics) -> Ratio:
    """Intent-aware precision: the mean over subtopics of the share of the first k that covers each.

    Formula: pairs of a relevant item within k and a subtopic that it covers / (k n_s).

    Examples
    --------
    >>> covered = ([1, 1, 2], [0, 3], [1, 2, 2])
    >>> report = fastrec.evaluate(
    ...     [[1, 9]], [[1, 2]], "precision_ia@2", subtopics=covered
    ... )
    >>> report["precision_ia@2"]
    0.5
    """
    return _of_subtopics(s, _statistic(s, "pairs") / (s.k * _statistic(s, "n")))


@ranking_metric(
    range=(0, 1),
    formula="mean over subtopics of the average precision of each",
    source="Agrawal et al. 2009",
)
def map_ia(s: ListStatistics) -> Ratio:
    """Intent-aware average precision: the mean over subtopics of the average precision for each.

    Formula: 1 / n_s * sum over subtopics of the sum over ranks r <= k that cover it of (covering items up to r) / r,
    over all relevant items that cover it.

    Examples
    --------
    >>> covered = ([1, 1, 2], [0, 3], [1, 2, 2])
    >>> fastrec.evaluate([[1, 9]], [[1, 2]], "map_ia", subtopics=covered)["map_ia"]
    0.75
    """
    return _of_subtopics(s, _statistic(s, "precisions") / _statistic(s, "n"))

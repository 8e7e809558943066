"""Metrics of lists that weigh each click by the inverse of its propensity: the one place where each is declared.

A relevant item is a click that somebody had to see first. Its propensity `p_i` is the probability of that, up to a
factor for `snips`; its weight is `w_i = 1 / max(p_i, clip)`. Every relevant item counts alike, whatever its gain.
"""

from __future__ import annotations

from typing import Any, Literal

from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import Column, Fraction, NotNegative
from fastrec.metrics.lists import Average, pooled
from fastrec.metrics.statistics import Combined, ListStatistics, Row

Of = Literal["recall", "precision", "dcg", "arhr", "rbp"]
PROVIDER = "inverse propensities"
WEIGHTS = {"recall": "one", "precision": "one", "dcg": "log2", "arhr": "reciprocal"}


def _clicks(s: ListStatistics, of: str, p: float, *source: Any) -> Row:
    """Return the sum over clicks within k of their weight times that of their rank."""
    weight: Any = ("geometric", p) if of == "rbp" else WEIGHTS[of]
    return s.provided(PROVIDER, "clicks", *source, s.min_gain, weight, s.cutoff)


def _mean(numerator: Row, denominator: Row, average: str) -> Row | Combined:
    return pooled(numerator, denominator) if average == "pooled" else numerator / denominator


@ranking_metric(
    range=(0, None),
    formula="sum of w_i l(r_i) / n_rel, k or 1",
    source="Joachims et al. 2017; Yang et al. 2018",
)
def ips(
    s: ListStatistics,
    *,
    of: Of = "recall",
    p: Fraction = 0.8,
    clip: NotNegative = 0.0,
    average: Average = "user",
    column: Column | None = None,
) -> Row | Combined:
    """Recall, precision, dcg, arhr or rbp with clicks weighted by inverse propensity: without bias if these are right.

    Formula: sum over relevant items i within k of w_i l(r_i), divided as the metric in `of` is, with
    w_i = 1 / max(p_i, clip). l(r) is 1 and the divisor n_rel (`recall`) or k (`precision`); l(r) is 1 / log2(r + 1)
    (`dcg`), 1 / r (`arhr`) or (1 - p) p^(r - 1) (`rbp`) without a divisor. Propensities are those of `logged`, else the
    `column` of `items`, by default "propensity"; they must be above 0 and at most 1. Values may exceed 1.
    `average=pooled` divides the sum over users by the sum of divisors. `Report.data` has the effective sample size.

    Examples
    --------
    >>> shop = {
    ...     5: {"propensity": 0.5},
    ...     3: {"propensity": 0.8},
    ...     6: {"propensity": 0.2},
    ... }
    >>> lists, truth = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[5], [3, 6], [3], []]
    >>> fastrec.evaluate(lists, truth, "ips@2", items=shop)["ips@2"]
    1.2916666666666667
    """
    divisors = {"recall": s.n_rel, "precision": s.k}
    return _mean(_clicks(s, of, p, column, clip, True), divisors.get(of, s.one), average)  # noqa: FBT003


@ranking_metric(
    range=(0, 1),
    formula="sum of w_i l(r_i) / sum of w_i",
    source="Swaminathan & Joachims 2015; Yang et al. 2018",
)
def snips(
    s: ListStatistics,
    *,
    of: Of = "recall",
    p: Fraction = 0.8,
    clip: NotNegative = 0.0,
    average: Average = "user",
    column: Column | None = None,
) -> Row | Combined:
    """Self-normalised `ips`: a weighted mean over the clicks, with little bias and less variance.

    Formula: sum over relevant items i within k of w_i l(r_i) / sum over all relevant items of w_i, with the same
    divisor for every `of`. A common factor of the propensities has no effect, so they may exceed 1. Options as in
    `ips`, but `of=precision` equals `of=recall`.

    Examples
    --------
    >>> shop = {
    ...     5: {"propensity": 0.5},
    ...     3: {"propensity": 0.8},
    ...     6: {"propensity": 0.2},
    ... }
    >>> lists, truth = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[5], [3, 6], [3], []]
    >>> report = fastrec.evaluate(
    ...     lists, truth, ["snips@2", "snips(clip=0.5)@2"], items=shop
    ... )
    >>> round(report["snips@2"], 12), round(report["snips(clip=0.5)@2"], 12)
    (0.733333333333, 0.794871794872)
    """
    source = column, clip, False
    total = s.provided(PROVIDER, "weights", *source, s.min_gain)
    return _mean(_clicks(s, of, p, *source), total, average)

"""Metrics of the exposure of items over all lists: the one place where each is declared.

In the docstrings `c_i` is the number of lists whose first k hold item i, `N` the sum of all `c_i`, `n` the size of the
catalogue (`n_items`, by default the rows of `items`) and `U` the number of users with a list. Each user's list counts
once. These metrics read no truth.
"""

from __future__ import annotations

from typing import Any, Literal

from fastrec.exceptions import MetricError
from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.items import Base, weight_of
from fastrec.metrics.kinds import Column, Fraction, Table
from fastrec.metrics.statistics import ListStatistics, Over

Discount = Literal["none", "log2", "log2_flat2", "rbp"] | Table


@ranking_metric(
    range=(0, None),
    formula="#{i: c_i > 0} / n",
    source="Herlocker et al. 2004; Ge et al. 2010",
    aliases=("catalog_coverage", "catalogue_coverage"),
)
def item_coverage(s: ListStatistics, *, denominator: Literal["n_items", "history", "one"] = "n_items") -> Over:
    """Share of the catalogue that is in at least one list.

    Formula: number of items with c_i > 0 / n. With `denominator=history`: number of recommended items of the history /
    items of the history. With `one`: the number itself (aggregate diversity, Adomavicius & Kwon 2012).

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[4, 5, 2], [3, 4, 5]], None, "item_coverage@3", n_items=6
    ... )
    >>> report["item_coverage@3"]
    0.6666666666666666
    """
    if denominator == "history":
        found = s.over_lists(
            lambda own: own.coverage((s.cutoff, "history"), None), "history", sides=["history", "popularity"]
        )
        return found._replace(by_size=True)
    n_items = s.n_items if denominator == "n_items" else None
    return s.over_lists(lambda own: own.coverage((s.cutoff, "one"), n_items))._replace(by_size=True)


@ranking_metric(
    range=(0, 1),
    formula="sum of (2j - n - 1) c_(j) / (n N)",
    source="Gini 1912; Castells et al. 2015",
    direction="lower",
)
def gini(
    s: ListStatistics,
    *,
    zeros: Literal["include", "exclude"] = "include",
    correction: Literal["none", "n_minus_1"] = "none",
    discount: Discount = "none",
    p: Fraction = 0.8,
) -> Over:
    """Gini index of the exposure of items: 0 if all items are shown equally often, near 1 if few are shown.

    Formula: sum over j of (2j - n - 1) c_(j) / (n N), c in ascending order. Items that no list holds are included,
    or left out with `zeros=exclude`: n is then the number of shown items. `correction=n_minus_1` divides by
    (n - 1) N: 1 - gini is then what Elliot and RankSys call Gini. `discount` counts ranks by a weight: 1 / log2(r + 1)
    (`log2`), the same with 1 for the first two (`log2_flat2`), (1 - p) p^(r - 1) (`rbp`) or a table; weights are
    rounded to 2^-52. NaN without lists. n (1 - gini) is the effective size of the catalogue.

    Examples
    --------
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> fastrec.evaluate(lists, None, "gini@3", n_items=6)["gini@3"]
    0.3888888888888889
    """
    key: Any = s.cutoff, weight_of(discount, p)
    n_items = s.n_items if zeros == "include" else None
    of = key, n_items, correction
    found = s.over_lists(lambda own: own.gini(*of), key[1], lambda own: own.gini_effects(*of))
    return found._replace(by_size=True)


@ranking_metric(range=(0, None), formula="-sum of (c_i / N) log(c_i / N)", source="Shannon 1948")
def shannon_entropy(
    s: ListStatistics,
    *,
    base: Base = 2.0,
    normalize: Literal["none", "n_items"] = "none",
    discount: Discount = "none",
    p: Fraction = 0.8,
) -> Over:
    """Entropy of the exposure of items: log n if all items are shown equally often, 0 if one item is.

    Formula: -sum over i of (c_i / N) log(c_i / N), to the `base`; `normalize=n_items` divides by log n. `discount` as
    in `gini`. NaN without lists.

    Examples
    --------
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> report = fastrec.evaluate(lists, None, "shannon_entropy@3")
    >>> round(report["shannon_entropy@3"], 12)
    1.974937501202
    """
    key: Any = s.cutoff, weight_of(discount, p)
    n_items = s.n_items if normalize == "n_items" else None
    of = key, base, n_items
    found = s.over_lists(lambda own: own.entropy(*of), key[1], lambda own: own.entropy_effects(*of))
    return found._replace(by_size=True)


@ranking_metric(range=(0, 1), formula="1 - mean overlap of two lists", source="Zhou et al. 2010")
def personalization(s: ListStatistics, *, overlap: Literal["k", "cosine"] = "k") -> Over:
    """How much the lists of different users differ: 1 - the mean overlap over all pairs of users.

    Formula: overlap of two lists = their common items / k, or with `overlap=cosine` / the root of the product of their
    lengths. Users without a list are left out. NaN with fewer than two users. Computed from c_i, without pairs:
    1 - sum of c_i (c_i - 1) / (k U (U - 1)).

    Examples
    --------
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> fastrec.evaluate(lists, None, "personalization@2")["personalization@2"]
    0.75
    """
    if overlap == "k" and s.cutoff is None:
        raise MetricError("needs a cut-off, as in personalization@10, or overlap=cosine")
    key: tuple[Any, str] = (s.cutoff, "length" if overlap == "cosine" else "one")
    return s.over_lists(lambda own: own.personalization(key), key[1], lambda own: own.personalization_effects(key))


def _over_segments(s: ListStatistics, what: str, exclude_seen: str, column: str | None) -> Over:
    """Return the disparity of the rates of segments; see `fastrec.items.disparity`."""
    no_recs = s.policy("no_recs", None) if what == "found" else None
    key = what, exclude_seen == "yes", column, s.min_gain, s.cutoff, s.size_of_catalogue, no_recs
    sides = frozenset(("popularity", "truth") if what == "found" else ("popularity",))
    value: Any = lambda own: own.disparity(key)  # noqa: E731 - as in the other metrics
    return Over("segment rates", value, None, s.where(0.0, 0.0), s.any_of(s.n_rec), key, sides)


@ranking_metric(
    range=(0, None),
    formula="std / mean over segments of shown / could have been shown",
    source="Zhu, Wang & Caverlee 2020",
    direction="lower",
)
def rsp(s: ListStatistics, *, exclude_seen: Literal["yes", "no"] = "yes", column: Column | None = None) -> Over:
    """Ranking-based statistical parity: how unequally the items of different segments are shown.

    Formula: standard deviation / mean over segments g of the items of g in the first k of all lists / the items of g
    that could have been shown: those that the user has not in the `history`. Items of lists that are in the history
    do not count, unless `exclude_seen=no`. For two segments |a - b| / (a + b). The `column` of `items` holds one
    segment per item, and items without one do not count; without it head and tail as in `aplt`. NaN if a segment has no
    item that could have been shown.

    Examples
    --------
    >>> shop = {
    ...     item: {"segment": "head" if item < 3 else "tail"}
    ...     for item in [1, 2, 3, 4, 5, 6]
    ... }
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> report = fastrec.evaluate(lists, None, "rsp@3", items=shop, history=history)
    >>> round(report["rsp@3"], 12)
    0.4
    """
    return _over_segments(s, "shown", exclude_seen, column)


@ranking_metric(
    range=(0, None),
    formula="std / mean over segments of hits / relevant items",
    source="Zhu, Wang & Caverlee 2020",
    direction="lower",
)
def reo(s: ListStatistics, *, exclude_seen: Literal["yes", "no"] = "yes", column: Column | None = None) -> Over:
    """Ranking-based equal opportunity: how unequally the relevant items of different segments are found.

    Formula: standard deviation / mean over segments g of the hits of g in the first k of all lists / the relevant items
    of g. Items that the user has in the `history` do not count, unless `exclude_seen=no`. `column` as in `rsp`. NaN if
    a segment has no relevant item.

    Examples
    --------
    >>> shop = {
    ...     item: {"segment": "head" if item < 3 else "tail"}
    ...     for item in [1, 2, 3, 4]
    ... }
    >>> report = fastrec.evaluate(
    ...     [[1, 3], [2, 4]], [[1, 4], [2, 4]], "reo@1", items=shop
    ... )
    >>> report["reo@1"]
    1.0
    """
    return _over_segments(s, "found", exclude_seen, column)

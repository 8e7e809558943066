"""Metrics of lists against data of items, past interactions and other lists: the one place where each is declared.

Formulas are as in `fastrec.metrics.lists`. In the docstrings `L` is the first k of a user's list, `n_rec` its length,
`f_i` the number of users of the history who have item i, `U` the number of users of the history with a row. `no_truth`
applies to metrics that read the truth. Without `no_recs`, these count users without a list as 0, and the others leave
them out.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from fastrec.metrics.declaration import ranking_metric
from fastrec.metrics.kinds import AboveOne, Column, Count, Fraction, Separator, Table
from fastrec.metrics.lists import Average, pooled
from fastrec.metrics.statistics import Combined, ListStatistics, Ratio, Row, maximum, minimum, over
from fastrec.policies import NoFeatures, NoHistory, Unseen

Base = Literal["e"] | AboveOne
Counts = Literal["users", "rows"]
Listed = Literal["n_rec", "k"]
RankDiscount = Literal["log2", "none", "rbp"] | Table
# Policies for items without popularity; the first is the usual one of the metric.
UnseenPopularity = Literal["zero", "drop", "one", "error"]
UnseenComplement = Literal["zero", "one", "error"]
UnseenDiscovery = Literal["max", "one", "error"]


def weight_of(discount: object, p: float) -> object:
    """Return the weights of ranks under the name that statistics know."""
    if discount == "rbp":
        return ("geometric", p)
    return "one" if discount == "none" else discount


def _length(s: ListStatistics, denominator: str) -> Row:
    return {"n_rec": s.within_k(s.n_rec), "k": s.k, "one": s.one}[denominator]


@ranking_metric(
    range=(0, 1), formula="1 if min(k, n_rec) >= min_items else 0", source="Herlocker et al. 2004", no_recs="zero"
)
def user_coverage(s: ListStatistics, *, min_items: Literal["k"] | Count = 1.0) -> Row:
    """Share of users with a list of at least `min_items` items.

    Formula: 1 if min(k, n_rec) >= min_items, else 0. `min_items=k` asks for a full list. Users of the truth without a
    list count as 0. To count users of a history instead, give the history as the truth.

    Examples
    --------
    >>> ask = "user_coverage(min_items=k)@3"
    >>> fastrec.evaluate([[4, 5, 2], [2]], None, ask)[ask]
    0.5
    """
    least = s.k if min_items == "k" else s.one * float(min_items)
    return maximum(minimum(s.within_k(s.n_rec) - least + 1.0, s.one), s.one * 0.0)


@ranking_metric(
    range=(0, None),
    formula="sum of f_i over L / min(k, n_rec)",
    source="Yin et al. 2012",
    direction="none",
    aliases=("arp",),
)
def popularity(
    s: ListStatistics,
    *,
    scale: Literal["count", "share", "max", "percentile"] = "count",
    counts: Counts = "users",
    unseen: UnseenPopularity | None = None,
    denominator: Listed = "n_rec",
    column: Column | None = None,
) -> Row | Ratio:
    """Mean popularity of the recommended items (average recommendation popularity).

    Formula: sum over L of the scaled f_i / min(k, n_rec), or / k with `denominator=k`. The popularity is the `column`
    of `items`, else the number of users of `history` who have the item; `counts=rows` counts repeated rows. `scale`:
    f_i itself (`count`), / U or with `counts=rows` / all rows (`share`), / the largest (`max`), or the mid-rank among
    items with a popularity, 1 for the most popular (`percentile`). An item without popularity counts as 0; as 1 user
    or row (`unseen=one`); not at all (`drop`: lists of such items alone are left out); or is an error.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> ask = ["popularity@3", "popularity(scale=share)@3"]
    >>> report = fastrec.evaluate(lists, None, ask, history=history)
    >>> report["popularity@3"], report["popularity(scale=share)@3"]
    (1.2916666666666667, 0.3229166666666667)
    """
    policy = s.unseen(unseen, "zero", get_args(UnseenPopularity))
    total = s.provided("popularity", ("popularity", scale, counts, column, policy), s.cutoff)
    if policy.policy != "drop":
        return total / _length(s, denominator)
    seen = s.provided("popularity", ("seen", counts, column), s.cutoff)
    return s.mean(total / (seen if denominator == "n_rec" else s.k), seen / seen)


@ranking_metric(
    range=(0, None),
    formula="items of L outside the head / min(k, n_rec)",
    source="Abdollahpouri et al. 2019",
    direction="higher",
)
def aplt(
    s: ListStatistics,
    *,
    denominator: Literal["n_rec", "k", "one"] = "n_rec",
    column: Column | None = None,
    tail: Column = "tail",
) -> Row:
    """Share of the recommended items that belong to the long tail.

    Formula: number of items of L in the tail / min(k, n_rec), / k, or / 1 (`denominator=one`: the number itself, ACLT).
    The tail are the items whose `column` of `items` holds `tail`, or nothing. Without such a column it is what
    `segment_items` with shares of 0.8 leaves: all items but the most popular ones with 80 % of the rows of `history`;
    equally popular items stay together, items that the history lacks are in the tail.

    Examples
    --------
    >>> segments = ["head"] * 2 + ["tail"] * 4
    >>> shop = {"item_id": [1, 2, 3, 4, 5, 6], "segment": segments}
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> fastrec.evaluate(lists, None, "aplt@3", items=shop)["aplt@3"]
    0.5416666666666666
    """
    return s.provided("popularity", ("tail", column, tail), s.cutoff) / _length(s, denominator)


@ranking_metric(
    range=(0, None),
    formula="sum of -log(f_i / U) over L / min(k, n_rec)",
    source="Zhou et al. 2010; Castells et al. 2011",
)
def novelty(
    s: ListStatistics,
    *,
    share: Counts = "users",
    unseen: Unseen | None = None,
    base: Base = 2.0,
    normalize: Literal["none", "max"] = "none",
    denominator: Listed = "n_rec",
    average: Average = "user",
    column: Column | None = None,
) -> Row | Ratio | Combined:
    """Mean self-information of the recommended items: rare items tell more.

    Formula: sum over L of -log(f_i / U) / min(k, n_rec), or / k with `denominator=k`; `share=rows` takes the rows of an
    item / all rows of the history. An item that the history lacks counts as if it had one user or row (`unseen=one`),
    as the largest known novelty (`max`), as 0 (`zero`), or not at all (`drop`). `normalize=max` divides by log U,
    with `share=rows` by the log of all rows. `average=pooled` is the sum over all lists / the number of their items.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> fastrec.evaluate(lists, None, "novelty@3", history=history)["novelty@3"]
    1.5416666666666667
    """
    policy = s.unseen(unseen, "one", get_args(Unseen))
    total = s.provided("popularity", ("information", share, base, normalize, column, policy), s.cutoff)
    seen = s.provided("popularity", ("seen", share, column), s.cutoff) if policy.policy == "drop" else None
    length = seen if seen is not None and denominator == "n_rec" else _length(s, denominator)
    if average == "pooled" and seen is not None:
        counted = s.any_of(seen)
        return Ratio(over, (s.only(counted, total), s.only(counted, length)), s.where(counted, total / length), counted)
    if average == "pooled":
        return pooled(total, length)
    return total / length if seen is None else s.mean(total / length, seen / seen)


def _with_history(s: ListStatistics, value: Row, no_history: NoHistory | None) -> Ratio:
    """Return the mean over users with a history; others as the policy says."""
    policy = s.policy("no_history", no_history) or "skip"
    has_history = s.any_of(s.provided("history", "rows"))
    found = s.mean(value, has_history, has_history)
    missing = s.one - has_history
    if policy == "zero":
        return s.mean(s.only(has_history, value), s.one)
    if policy == "nan":
        return found._replace(spoils=missing)
    return found._replace(refused=(missing, "has no history, and no_history=error")) if policy == "error" else found


@ranking_metric(
    range=(-1, None),
    formula="mean popularity of L / mean popularity of the history - 1",
    source="Abdollahpouri et al. 2019, 2020",
    direction=0.0,
)
def popularity_lift(
    s: ListStatistics,
    *,
    average: Literal["means", "user"] = "means",
    no_history: NoHistory | None = None,
    column: Column | None = None,
) -> Ratio:
    """How much more popular the recommended items are than those of the users' own histories.

    Formula: GAP of the lists / GAP of the histories - 1, where GAP is the mean over users of the mean of f_i / U over
    the items of a user; an item that the history lacks has f_i = 0. `average=user` is the mean over users of the ratio
    of their own means - 1. 0: the lists are as popular as the histories.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> report = fastrec.evaluate(lists, None, "popularity_lift@3", history=history)
    >>> round(report["popularity_lift@3"], 12)
    -0.56338028169
    """
    zero = s.unseen("zero", "zero", ("zero",))
    listed = s.provided("popularity", ("popularity", "share", "users", column, zero), s.cutoff)
    listed = listed / s.within_k(s.n_rec)
    past = s.provided("popularity of history", column)
    if average == "user":
        return _only_defined(s, _with_history(s, listed / past - s.one, no_history), s.any_of(past))
    found = _with_history(s, listed / past, no_history)
    rows = (s.only(found.counted, listed), s.only(found.counted, past))
    return found._replace(function=_lift, rows=rows, each=s.where(found.counted * s.any_of(past), listed / past - 1.0))


def _judged(s: ListStatistics, found: Ratio) -> Ratio:
    """Return a metric that reads the truth: its policy for users without a relevant item comes first."""
    if found.among is None:  # the policies apply to all users
        return found
    no_truth = s.one - s.any_of(s.n_rel)
    return found._replace(among=found.among + s.only(s.one - found.among, no_truth))


def _only_defined(s: ListStatistics, found: Ratio, defined: Row) -> Ratio:
    """Return the mean over the users with a history for whom the value is defined, and those whom a policy counts."""
    has_history = s.any_of(s.provided("history", "rows"))
    left_out = s.only(has_history, s.one - defined)
    counted = s.only(s.one - left_out, found.counted)
    return found._replace(
        rows=(s.only(counted, found.rows[0]), counted), counted=counted, each=s.where(counted, found.each)
    )


def _lift(listed: Any, past: Any) -> Any:
    return over(listed, past) - 1.0


@ranking_metric(range=(0, 1), formula="|L and history| / min(k, n_rec)", source="Li et al. 2023", direction="none")
def repeat_ratio(s: ListStatistics, *, no_history: NoHistory | None = None) -> Ratio:
    """Share of the recommended items that the user has in the history.

    Formula: number of items of L in the user's history / min(k, n_rec).

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> report = fastrec.evaluate(lists, None, "repeat_ratio@3", history=history)
    >>> report["repeat_ratio@3"]
    0.08333333333333333
    """
    return _with_history(s, s.provided("history", "common", s.cutoff) / s.within_k(s.n_rec), no_history)


def _of_reference(s: ListStatistics, value: Row) -> Ratio:
    """Return the mean over users with a list and a reference."""
    has_reference = s.any_of(s.provided("reference", "n", None))
    return s.mean(value, has_reference, has_reference)


@ranking_metric(range=(0, 1), formula="|L and R| / |L or R|", source="Jaccard 1901", direction="none")
def overlap(s: ListStatistics, *, denominator: Literal["union", "n_rec", "k", "min"] = "union") -> Ratio:
    """Share of the items that a user's list has in common with the reference.

    Formula: items in both L and the first k of the `reference` / items in either (`union`), / min(k, n_rec) (`n_rec`),
    / k, or / the length of the shorter one (`min`). Users without a list or without a reference are left out.

    Examples
    --------
    >>> lists, other = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[1, 2]] * 4
    >>> ask = "overlap(denominator=k)@2"
    >>> fastrec.evaluate(lists, None, ask, reference=other)[ask]
    0.25
    """
    common, listed = s.provided("reference", "common", s.cutoff), s.within_k(s.n_rec)
    others = s.provided("reference", "n", s.cutoff)
    divisors = {"union": listed + others - common, "n_rec": listed, "k": s.k, "min": minimum(listed, others)}
    return _of_reference(s, common / divisors[denominator])


@ranking_metric(range=(0, 1), formula="1 - |L and R| / min(k, n_rec)", source="Adamopoulos & Tuzhilin 2014")
def unexpectedness(s: ListStatistics, *, denominator: Listed = "n_rec") -> Ratio:
    """Share of the recommended items that are not in the reference.

    Formula: 1 - items in both L and the first k of the `reference` / min(k, n_rec), or / k with `denominator=k`. Users
    without a list or without a reference are left out.

    Examples
    --------
    >>> lists, other = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[1, 2]] * 4
    >>> report = fastrec.evaluate(lists, None, "unexpectedness@2", reference=other)
    >>> report["unexpectedness@2"]
    0.625
    """
    return _of_reference(s, s.one - s.provided("reference", "common", s.cutoff) / _length(s, denominator))


@ranking_metric(
    range=(0, 1),
    formula="see the source, eq. 32",
    source="Webber, Moffat & Zobel 2010",
    direction="none",
    aliases=("rank_biased_overlap",),
)
def rbo(s: ListStatistics, *, p: Fraction = 0.9, form: Literal["ext", "min", "truncated"] = "ext") -> Ratio:
    """Rank-biased overlap of a user's list and the reference: the agreement at every depth, upper ranks weigh more.

    Formula: with X_d the items in common in the first d of both, both cut at k: (1 - p) / p times the sum over depths d
    of p^d X_d / d, extrapolated past the end of the lists (`ext`, equation 32) or with no further agreement (`min`,
    equation 11). `truncated`: the sum over d <= k of p^(d - 1) X_d / d / the sum of p^(d - 1). Users without a list or
    without a reference are left out.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3]], None, "rbo@3", reference=[[2, 1, 4]])
    >>> round(report["rbo@3"], 12)
    0.63
    """
    return _of_reference(s, s.provided("reference", "rbo", p, form, s.cutoff))


def _discounted(s: ListStatistics, measure: tuple[object, ...], relevance: str, weight: object) -> Row:
    if relevance == "truth":
        total = s.provided("popularity of hits", measure, weight, s.min_gain, s.cutoff)
    else:
        total = s.provided("popularity of ranks", measure, weight, s.cutoff)
    return total / s.rank_sum(weight)


@ranking_metric(range=(0, 1), formula="sum of d(r) rel_r (1 - f_i / U) / sum of d(r)", source="Vargas & Castells 2011")
def epc(
    s: ListStatistics,
    *,
    discount: RankDiscount = "log2",
    p: Fraction = 0.8,
    relevance: Literal["truth", "none"] = "truth",
    unseen: UnseenComplement | None = None,
    column: Column | None = None,
) -> Row:
    """Expected popularity complement: relevant items count the more, the fewer users have them.

    Formula: sum over r <= min(k, n_rec) of d(r) rel_r (1 - f_i / U) / sum of d(r), with d(r) = 1 / log2(r + 1), 1
    (`discount=none`), (1 - p) p^(r - 1) (`rbp`) or a table; rel_r is 1 for relevant items, or for all
    (`relevance=none`). An item that the history lacks has f_i = 0, or 1 with `unseen=one`. With `relevance=truth`, a
    user without a list counts as 0; other tools leave such users out, as `no_recs=skip` does.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists, truth = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[5], [3, 6], [3], []]
    >>> round(fastrec.evaluate(lists, truth, "epc@3", history=history)["epc@3"], 12)
    0.312726853636
    """
    policy = s.unseen(unseen, "zero", get_args(UnseenComplement))
    return _discounted(s, ("rarity", column, policy), relevance, weight_of(discount, p))


@ranking_metric(
    range=(0, None),
    formula="sum of d(r) rel_r (-log2 of the share of rows) / sum of d(r)",
    source="Vargas & Castells 2011",
)
def efd(
    s: ListStatistics,
    *,
    discount: RankDiscount = "log2",
    p: Fraction = 0.8,
    relevance: Literal["truth", "none"] = "truth",
    unseen: UnseenDiscovery | None = None,
    column: Column | None = None,
) -> Row:
    """Expected free discovery: as `epc`, with the self-information of the share of an item in the rows of the history.

    Formula: sum over r <= min(k, n_rec) of d(r) rel_r (-log2(rows of i / all rows)) / sum of d(r). An item that the
    history lacks counts as the rarest known one (`unseen=max`), or as if it had one row (`one`). A user without a list
    counts as in `epc`.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists, truth = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[5], [3, 6], [3], []]
    >>> ask = "efd(unseen=one)@3"
    >>> round(fastrec.evaluate(lists, truth, ask, history=history)[ask], 12)
    1.152213444223
    """
    policy = s.unseen(unseen, "max", get_args(UnseenDiscovery))
    return _discounted(s, ("information", "rows", 2.0, "none", column, policy), relevance, weight_of(discount, p))


def _no_features(s: ListStatistics, own: NoFeatures | None) -> str:
    return s.policy("no_features", own) or "error"


def _featured(s: ListStatistics, value: Row, of: tuple[object, ...], policy: str) -> Row | Ratio:
    """Return a value over users whose list has an item with a category; those without are left out."""
    if policy == "error":
        return value
    featured = s.any_of(s.provided("categories", "featured", *of, policy, s.cutoff))
    return s.mean(value, featured)


@ranking_metric(range=(0, None), formula="categories of L / all categories", source="Zhai, Cohen & Lafferty 2003")
def category_coverage(
    s: ListStatistics,
    *,
    denominator: Literal["n_categories", "k"] = "n_categories",
    relevance: Literal["truth", "none"] = "none",
    column: Column = "category",
    sep: Separator | None = None,
    no_features: NoFeatures | None = None,
) -> Row | Ratio:
    """Share of all categories that occur in a user's list.

    Formula: distinct categories of the items of L / the categories of all `items`, or / k. With `relevance=truth` only
    relevant items of L count (subtopic recall). The `column` of `items` holds one category per item, a list of them,
    or strings that `sep` separates. An item without a category is an error, or with `no_features=drop` left out; lists
    of such items alone are then not counted.

    Examples
    --------
    >>> categories = ["A", "A|B", "B", "C", "A|C", "C"]
    >>> shop = {"item_id": [1, 2, 3, 4, 5, 6], "category": categories}
    >>> lists = [[4, 5, 2], [3, 4, 5], [2, 3], [2]]
    >>> ask = "category_coverage(sep=|)@3"
    >>> round(fastrec.evaluate(lists, None, ask, items=shop)[ask], 12)
    0.833333333333
    """
    of, policy = (column, sep), _no_features(s, no_features)
    if relevance == "truth":
        found = s.provided("categories of hits", s.min_gain, *of, policy, s.cutoff)
    else:
        found = s.provided("categories", "distinct", *of, policy, s.cutoff)
    whole = s.k if denominator == "k" else s.provided("categories", "all", *of, policy, None)
    return _featured(s, found / whole, of, policy)


@ranking_metric(range=(0, None), formula="-sum of q_c log q_c", source="Shannon 1948")
def category_entropy(
    s: ListStatistics,
    *,
    base: Base = 2.0,
    discount: RankDiscount = "none",
    p: Fraction = 0.8,
    column: Column = "category",
    sep: Separator | None = None,
    no_features: NoFeatures | None = None,
) -> Row | Ratio:
    """Entropy of the categories of a user's list.

    Formula: -sum over categories c of q_c log q_c, to the `base`, where q_c is the share of c in L: each item counts
    1, or with a `discount` the weight of its rank as in `epc`, shared equally among its categories. `column`, `sep` and
    `no_features` as in `category_coverage`.

    Examples
    --------
    >>> labels = {2: ["A", "B"], 4: ["C"], 5: ["A", "C"]}
    >>> shop = {item: {"category": own} for item, own in labels.items()}
    >>> ask = "category_entropy@3"
    >>> round(fastrec.evaluate([[4, 5, 2]], None, ask, items=shop)[ask], 12)
    1.459147917027
    """
    of, policy = (column, sep), _no_features(s, no_features)
    found = s.provided("categories", "entropy", base, weight_of(discount, p), *of, policy, s.cutoff)
    return _featured(s, found, of, policy)


@ranking_metric(
    range=(0, None),
    formula="sum of p_c log(p_c / ((1 - alpha) q_c + alpha p_c))",
    source="Steck 2018",
    direction="lower",
)
def miscalibration(
    s: ListStatistics,
    *,
    divergence: Literal["kl", "js", "hellinger"] = "kl",
    alpha: Fraction = 0.01,
    base: Base = 2.0,
    discount: Literal["none", "log2"] | Table = "none",
    column: Column = "category",
    sep: Separator | None = None,
    no_features: NoFeatures | None = None,
    no_history: NoHistory | None = None,
) -> Ratio:
    """How far the categories of a user's list are from those of the user's history.

    Formula: with p_c the share of category c in the history and q_c that in L (as in `category_entropy`), the
    Kullback-Leibler divergence sum of p_c log(p_c / ((1 - alpha) q_c + alpha p_c)) (`kl`), the Jensen-Shannon
    divergence of p and q (`js`) or their Hellinger distance (`hellinger`). 0: calibrated. Repeated rows of the history
    count each time. Users without a history, or without a category on one side, are left out. `column`, `sep` and
    `no_features` as in `category_coverage`, for the items of the history, too.

    Examples
    --------
    >>> shop = {1: "A", 2: "AB", 3: "B", 4: "C", 5: "AC", 6: "C"}
    >>> shop = {item: {"category": list(labels)} for item, labels in shop.items()}
    >>> ask, more = "miscalibration@3", {"items": shop, "history": [[1, 2, 3]]}
    >>> round(fastrec.evaluate([[4, 5, 2]], None, ask, **more)[ask], 12)
    1.067080173921
    """
    key = divergence, alpha, base, weight_of(discount, 0.8), column, sep, _no_features(s, no_features), s.cutoff
    found = _with_history(s, s.provided("calibration", "value", *key), no_history)
    return _only_defined(s, found, s.provided("calibration", "defined", *key))


@ranking_metric(
    range=(0, None),
    formula="mean distance over the pairs of L",
    source="Ziegler et al. 2005; Smyth & McClave 2001",
    aliases=("ild",),
)
def intra_list_diversity(
    s: ListStatistics,
    *,
    distance: Literal["cosine", "jaccard", "hamming"] = "cosine",
    single: Literal["zero", "skip"] = "zero",
    column: Column | None = None,
    sep: Separator | None = None,
    no_features: NoFeatures | None = None,
) -> Row | Ratio:
    """Mean distance between the items of a user's list.

    Formula: mean over the pairs of L of 1 - the cosine of their vectors (`cosine`, 0 to 2; zeros have cosine 0 to all),
    1 - the share of their categories that they have in common (`jaccard`, 0 to 1), or the number of columns of their
    dense vectors that differ (`hamming`). The `column` of `items` holds vectors ("features" by default) or categories
    ("category", or strings that `sep` separates). A list of one item counts as 0, or not at all (`single=skip`). An
    item without vector or category is an error, or with `no_features=drop` left out; lists of such items alone are then
    not counted.

    Examples
    --------
    >>> labels = {2: "AB", 4: "C", 5: "AC"}
    >>> shop = {item: {"category": list(own)} for item, own in labels.items()}
    >>> metric = "intra_list_diversity(distance=jaccard)@3"
    >>> round(fastrec.evaluate([[4, 5, 2]], None, metric, items=shop)[metric], 12)
    0.722222222222
    """
    usual = "category" if distance == "jaccard" else "features"
    policy = _no_features(s, no_features)
    key = distance, column or usual, sep, policy, s.cutoff
    value = s.provided("diversity", "distance", *key)
    if single == "zero" and policy == "error":
        return value
    featured = s.provided("diversity", "featured", *key)
    counted = featured - 1.0 if single == "skip" else featured
    return s.mean(value, s.any_of(maximum(counted, s.one * 0.0)))


@ranking_metric(
    range=(0, None), formula="sum over L of relevant x unexpected / k", source="Ge et al. 2010; Murakami et al. 2008"
)
def serendipity(
    s: ListStatistics,
    *,
    expected: Literal["popular", "reference", "rank", "history"] = "popular",
    denominator: Listed = "k",
    column: Column | None = None,
    no_features: NoFeatures | None = None,
    no_history: NoHistory | None = None,
) -> Row | Ratio:
    """Share of the recommended items that are relevant and unexpected.

    Formula: sum over L of rel_r x unexpected / k, or / min(k, n_rec) with `denominator=n_rec`. Unexpected is 1 for
    items that fewer users of the history have than the k-th most popular item, else 0 (`popular`); 1 for items that are
    not in the user's `reference`, else 0 (`reference`); max((n + 1 - r) / n - (n + 1 - q) / n, 0) for an item at rank r
    whose popularity is the q-th largest one (items of equal popularity share q, and no number is skipped), with 0 for
    the second term if the history lacks it and n = `n_items` (`rank`); or 1 - the mean cosine of the item's vector to
    those of the user's history (`history`). The `column` of `items` holds popularity or dense vectors.

    Examples
    --------
    >>> history = [[1, 2, 3], [1, 2], [1, 4], [1]]
    >>> lists, truth = [[4, 5, 2], [3, 4, 5], [2, 3], [2]], [[5], [3, 6], [3], []]
    >>> report = fastrec.evaluate(lists, truth, "serendipity@3", history=history)
    >>> report["serendipity@3"]
    0.1111111111111111
    """
    length = _length(s, denominator)
    if expected == "history":
        key = s.min_gain, column or "features", _no_features(s, no_features), s.cutoff
        total, past = s.provided("distance to history", "sum", *key), s.provided("distance to history", "past", *key)
        listed = s.provided("distance to history", "listed", *key)
        found = _with_history(s, total / (listed if denominator == "n_rec" else length), no_history)
        return _judged(s, _only_defined(s, found, s.any_of(past * listed)))
    if expected == "reference":
        return _judged(s, _of_reference(s, s.provided("hits outside of reference", s.min_gain, s.cutoff) / length))
    measure: tuple[object, ...] = ("rare", column, s.cutoff)
    if expected == "rank":
        measure = ("surprise", column, s.n_items)
    return s.provided("popularity of hits", measure, "one", s.min_gain, s.cutoff) / length

"""The naive evaluator of lists against items, histories and other lists, beside `oracle` for lists against truth.

Plain Python: dicts, `fractions`, `decimal` and `math`; nothing of the package under test. One function per metric, with
all its options in the signature, from the definition: pairs of users, pairs of items, a distribution per user. Counts
and shares are fractions, logarithms have 40 digits, and sums are `math.fsum`.

Fixed readings of the definitions:

- L is the first k items of a list. `n_rec` as a denominator is the length of L, and k without a cut-off is that too.
- The users are those of the lists and of the truth.
- Without a relevant item, `no_truth` rules a user; then without history or reference, the policy for these; then
  `no_recs` without a list.
- A repeated row of a history counts as often as it occurs in a mean or a distribution over this history, and once in
  sets and in the number of users of an item.
- A column "popularity" or "segment" of the items holds even if there is a history.
- An item without a value in the column of a metric, or with an empty one, is an item without features.
- Under `drop`, a user with no item left is not counted.
- The standard deviation over segments is that of a population.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from support.oracle import error_of_mean, pooled_ratio

Id = int | str
Number = int | float | Fraction
Options = Mapping[str, Any]
Distribution = dict[Any, Fraction]
DIGITS = 40


@dataclass(frozen=True)
class Shop:
    """Lists and everything that a metric may hold them against.

    `truth` is user -> item -> gain, `history` user -> items with repeats, `items` item -> columns ("popularity",
    "segment", "category" as labels, "features" as floats, "propensity"), `reference` user -> items, `logged` user ->
    item -> propensity, or with `examination`, a number per rank, the rank, `subtopics` user -> item -> the subtopics
    that it covers. `n_items` is the size of the catalogue, else the rows of `items`. `n_users` is the number of users
    behind a column "popularity".
    """

    lists: Mapping[Id, Sequence[Id]]
    truth: Mapping[Id, Mapping[Id, float]] | None = None
    history: Mapping[Id, Sequence[Id]] | None = None
    items: Mapping[Id, Mapping[str, Any]] | None = None
    reference: Mapping[Id, Sequence[Id]] | None = None
    n_items: int | None = None
    n_users: int | None = None
    logged: Mapping[Id, Mapping[Id, float]] | None = None
    examination: Sequence[float] | None = None
    subtopics: Mapping[Id, Mapping[Id, Sequence[float]]] | None = None


class Result(NamedTuple):
    """Result of `evaluate`.

    `value` is the number over the catalogue or the mean over the counted users; NaN if no user counts. `std_error` is
    None where there is none, NaN for fewer than two users. `per_user` holds None for a user who is not counted, and
    nothing for a metric of the catalogue. `users` is the number of counted users, or of users with a list.
    """

    value: float
    std_error: float | None
    users: int
    per_user: dict[Id, float | None]


# Numbers.


def ratio(numerator: Number, denominator: Number) -> Number:
    """The quotient, and 0 for 0/0."""
    return 0 if numerator == 0 and denominator == 0 else Fraction(numerator) / Fraction(denominator)


def log(x: Number, base: float | str = 2) -> float:
    """The logarithm to base 2, "e" or a number above 1, rounded once."""
    if base != "e" and not (isinstance(base, int | float) and base > 1):
        raise ValueError(f"a base is e or a number above 1, not {base}")
    exact = Fraction(x)
    with localcontext(prec=DIGITS):
        power = (Decimal(exact.numerator) / Decimal(exact.denominator)).ln()
        return float(power if base == "e" else power / Decimal(base).ln())


def entropy(distribution: Distribution, base: float | str = 2) -> float:
    """Sum of p log 1/p."""
    return math.fsum(float(p) * log(1 / p, base) for p in distribution.values() if p)


def of_choices(name: str, value: Any, *choices: str) -> None:
    if value not in choices:
        raise ValueError(f"{name} is one of {choices}, not {value}")


def rank_weight(rank: int, discount: str | Sequence[float], p: float = 0.8) -> Fraction:
    """d(rank), up to a factor; 0 past the end of a table."""
    if isinstance(discount, str):
        of_choices("discount", discount, "none", "log2", "log2_flat2", "rbp")
        return Fraction(
            {
                "none": 1.0,
                "log2": 1 / math.log2(rank + 1),
                "log2_flat2": 1 / max(math.log2(rank), 1),
                "rbp": p ** (rank - 1),
            }[discount]
        )
    return Fraction(discount[rank - 1]) if rank <= len(discount) else Fraction(0)


def denominator_of(denominator: str, counted: int, listed: int, k: int | None) -> int:
    """The `counted` items of L (n_rec), k (without a cut-off all `listed` items, counted or not) or one."""
    return {"n_rec": counted, "k": listed if k is None else k, "one": 1}[denominator]


def population_deviation(values: Sequence[Number]) -> float:
    mean = Fraction(sum(values)) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


# The sides.


def top(shop: Shop, user: Id, k: int | None) -> list[Id]:
    """L: the first k items of the user's list."""
    return list(shop.lists.get(user, ()))[:k]


def listed(shop: Shop, k: int | None) -> dict[Id, list[Id]]:
    """L of every user with a list."""
    return {user: top(shop, user, k) for user, items in shop.lists.items() if items}


def history_of(shop: Shop, user: Id) -> list[Id]:
    if shop.history is None:
        raise ValueError("history is needed")
    return list(shop.history.get(user, ()))


def reference_of(shop: Shop, user: Id) -> list[Id]:
    if shop.reference is None:
        raise ValueError("reference is needed")
    return list(shop.reference.get(user, ()))


def relevant_of(shop: Shop, user: Id) -> set[Id]:
    if shop.truth is None:
        raise ValueError("truth is needed")
    return {item for item, gain in shop.truth.get(user, {}).items() if gain > 0}


def covered_by(shop: Shop, user: Id) -> dict[Id, frozenset[float]]:
    """Relevant item -> its subtopics, for items that cover any."""
    if shop.subtopics is None:
        raise ValueError("subtopics are needed")
    own = shop.subtopics.get(user, {})
    return {item: frozenset(own[item]) for item in relevant_of(shop, user) if own.get(item)}


def catalogue_size(shop: Shop) -> int:
    if shop.n_items is None and shop.items is None:
        raise ValueError("n_items or items is needed")
    return len(shop.items or ()) if shop.n_items is None else shop.n_items


def column_of(shop: Shop, column: str | None, default: str) -> dict[Id, Any] | None:
    """Item -> value in the column; None if the column was not named and the default one is not there."""
    name = column or default
    values = {item: row[name] for item, row in (shop.items or {}).items() if row.get(name) is not None}
    if column is not None and not values:
        raise ValueError(f"items have no column {column}")
    return values or None


def needed_column(shop: Shop, column: str | None, default: str) -> dict[Id, Any]:
    values = column_of(shop, column, default)
    if values is None:
        raise ValueError(f"items have no column {default}")
    return values


class Popularity(NamedTuple):
    """Items with a count above 0, and the number of users (or rows) that the counts are a share of."""

    counts: dict[Id, Number]
    total: Number | None

    def share(self, count: Number) -> Number:
        if self.total is None:
            raise ValueError("n_users is needed")
        return ratio(count, self.total)


def popularity_table(shop: Shop, counts: str = "users", column: str | None = None) -> Popularity:
    """The column of the items, else users (or rows) of each item in the history."""
    of_choices("counts", counts, "users", "rows")
    n_history = None if shop.history is None else sum(bool(items) for items in shop.history.values())
    values = column_of(shop, column, "popularity")
    if values is not None:
        n_users = n_history if shop.n_users is None else shop.n_users
        total = n_users if counts == "users" else sum(map(Fraction, values.values()))
        if not any(value > 0 for value in values.values()):
            raise ValueError("no item has a popularity above 0")
        return Popularity({item: Fraction(value) for item, value in values.items() if value > 0}, total)
    if not n_history:
        raise ValueError("a history with rows, or a column of items with popularity, is needed")
    rows = [(user, item) for user, items in (shop.history or {}).items() for item in items]
    pairs = set(rows) if counts == "users" else rows
    return Popularity(dict(Counter(item for _, item in pairs)), n_history if counts == "users" else len(rows))


class Segments(NamedTuple):
    """Segment of an item, and the number of items of the catalogue in each; None is no segment."""

    of: dict[Id, str]
    unseen: str | None
    sizes: dict[str, int]

    def segment(self, item: Id) -> str | None:
        return self.of.get(item, self.unseen)


def head_and_tail(popularity: Popularity) -> dict[Id, str]:
    """The tail begins where more popular items have 80 % of the interactions; equal counts stay together."""
    rows = sum(popularity.counts.values())
    return {
        item: "tail"
        if Fraction(sum(other for other in popularity.counts.values() if other > count), rows) >= Fraction(8, 10)
        else "head"
        for item, count in popularity.counts.items()
    }


def segments_of(shop: Shop, column: str | None) -> Segments:
    """The column of the items, else head and tail by the popularity in rows, with unseen items in the tail."""
    labels = column_of(shop, column, "segment")
    if labels is not None:
        return Segments(labels, None, dict(Counter(labels.values())))
    of = head_and_tail(popularity_table(shop, "rows"))
    known = of if shop.items is None else shop.items
    if shop.items is None and shop.n_items is None:
        return Segments(of, "tail", {})
    more = catalogue_size(shop) - len(known)
    if more < 0:
        raise ValueError(f"n_items is smaller than the {len(known)} items")
    sizes = Counter({"head": 0, "tail": more})
    sizes.update(of.get(item, "tail") for item in known)
    return Segments(of, "tail", dict(sizes))


# The catalogue.


def exposure(lists: Iterable[Sequence[Id]], discount: str | Sequence[float] = "none", p: float = 0.8) -> Distribution:
    """c_i: lists that hold an item, or the sum of the weights of its ranks; only above 0."""
    counts: Distribution = {}
    for items in lists:
        for rank, item in enumerate(items, start=1):
            counts[item] = counts.get(item, Fraction(0)) + rank_weight(rank, discount, p)
    return {item: count for item, count in counts.items() if count > 0}


def item_coverage(shop: Shop, k: int | None, *, denominator: str = "n_items") -> float:
    """Items in any list over the items of the catalogue or of the history, or their number."""
    of_choices("denominator", denominator, "n_items", "history", "one")
    shown = {item for items in listed(shop, k).values() for item in items}
    if denominator == "one":
        return float(len(shown))
    if denominator == "history":
        known = {item for user in shop.history or () for item in history_of(shop, user)}
        return float(ratio(len(shown & known), len(known)))
    if len(shown) > catalogue_size(shop):
        raise ValueError(f"{len(shown)} items are in lists, more than n_items")
    return float(ratio(len(shown), catalogue_size(shop)))


def size_for_gini(shop: Shop, counts: Distribution, zeros: str) -> int:
    of_choices("zeros", zeros, "include", "exclude")
    n = len(counts) if zeros == "exclude" else catalogue_size(shop)
    if n < len(counts):
        raise ValueError(f"{len(counts)} items are in lists, more than n_items")
    return n


def correction_factor(n: int, correction: str) -> Fraction:
    of_choices("correction", correction, "none", "n_minus_1")
    return Fraction(1) if correction == "none" else Fraction(n, n - 1) if n > 1 else Fraction(0)


def gini_of(counts: Iterable[Fraction], n: int) -> Fraction:
    """Sum over j of (2j - n - 1) c_(j) / (n N), c ascending after the zeros of the other items."""
    above = sorted(counts)
    ascending = enumerate(above, start=n - len(above) + 1)
    return sum((2 * j - n - 1) * count for j, count in ascending) / (n * sum(above))


def gini(
    shop: Shop,
    k: int | None,
    *,
    zeros: str = "include",
    correction: str = "none",
    discount: str | Sequence[float] = "none",
    p: float = 0.8,
) -> float:
    """The Gini coefficient of exposure over all items, or over those in lists."""
    counts = exposure(listed(shop, k).values(), discount, p)
    n = size_for_gini(shop, counts, zeros)
    factor = correction_factor(n, correction)
    if not counts:
        return math.nan
    return float(factor * gini_of(counts.values(), n))


def gini_influence(
    shop: Shop,
    k: int | None,
    *,
    zeros: str = "include",
    correction: str = "none",
    discount: str | Sequence[float] = "none",
    p: float = 0.8,
) -> list[float]:
    """z_u = U * sum over L of d(r) ((2 r_i - n - 1) / (n N) - G / N), r_i the mid-rank of c_i among n items."""
    lists = listed(shop, k)
    counts = exposure(lists.values(), discount, p)
    n, total = size_for_gini(shop, counts, zeros), sum(counts.values())
    if not counts:
        return []
    every = [*counts.values(), *[Fraction(0)] * (n - len(counts))]
    value = gini_of(counts.values(), n)

    def derivative(item: Id) -> Fraction:
        count = counts.get(item, Fraction(0))
        return ((2 * mid_rank(count, every) - n - 1) / n - value) / total

    derivatives = {item: derivative(item) for item in {item for items in lists.values() for item in items}}
    factor = correction_factor(n, correction) * len(lists)
    return [
        float(factor * sum(rank_weight(r, discount, p) * derivatives[item] for r, item in enumerate(items, start=1)))
        for items in lists.values()
    ]


def entropy_scale(shop: Shop, base: float | str, normalize: str) -> float:
    of_choices("normalize", normalize, "none", "n_items")
    return 1.0 if normalize == "none" else log(catalogue_size(shop), base)


def shannon_entropy(
    shop: Shop,
    k: int | None,
    *,
    base: float | str = 2,
    normalize: str = "none",
    discount: str | Sequence[float] = "none",
    p: float = 0.8,
) -> float:
    """-sum of p_i log p_i, p_i = c_i / N."""
    counts = exposure(listed(shop, k).values(), discount, p)
    total = sum(counts.values())
    if normalize == "n_items":
        size_for_gini(shop, counts, "include")
    if not counts:
        return math.nan
    value = entropy({item: count / total for item, count in counts.items()}, base)
    return float(ratio(value, entropy_scale(shop, base, normalize)))


def entropy_influence(
    shop: Shop,
    k: int | None,
    *,
    base: float | str = 2,
    normalize: str = "none",
    discount: str | Sequence[float] = "none",
    p: float = 0.8,
) -> list[float]:
    """z_u = U / N * sum over L of d(r) (-log p_i - H)."""
    lists = listed(shop, k)
    counts = exposure(lists.values(), discount, p)
    total = sum(counts.values())
    value = entropy({item: count / total for item, count in counts.items()}, base)
    scale = entropy_scale(shop, base, normalize)
    factor = len(lists) / (scale * float(total)) if scale and total else 0.0
    above = {item: log(total / count, base) - value for item, count in counts.items()}
    return [
        factor
        * math.fsum(float(rank_weight(r, discount, p)) * above.get(item, 0.0) for r, item in enumerate(items, start=1))
        for items in lists.values()
    ]


def common_share(a: Sequence[Id], b: Sequence[Id], k: int | None, overlap: str) -> float:
    """Common items of two lists / k, or / the geometric mean of their lengths."""
    common = len(set(a) & set(b))
    return common / math.sqrt(len(a) * len(b)) if overlap == "cosine" or k is None else common / k


def personalization(shop: Shop, k: int | None, *, overlap: str = "k") -> float:
    """1 - mean over pairs of users of the share of common items."""
    of_choices("overlap", overlap, "k", "cosine")
    if k is None and overlap == "k":
        raise ValueError("without a cut-off, only overlap=cosine is defined")
    shares = [common_share(a, b, k, overlap) for a, b in itertools.combinations(listed(shop, k).values(), 2)]
    return 1 - math.fsum(shares) / len(shares) if shares else math.nan


def personalization_influence(shop: Shop, k: int | None, *, overlap: str = "k") -> list[float]:
    """2 h_u, h_u the mean share of common items with every other user."""
    lists = list(listed(shop, k).values())
    return [
        2 * math.fsum(common_share(a, b, k, overlap) for j, b in enumerate(lists) if j != i) / (len(lists) - 1)
        for i, a in enumerate(lists)
        if len(lists) > 1
    ]


def disparity(made: Mapping[str, int], possible: Mapping[str, int]) -> float:
    """Standard deviation over mean of the rates; for two segments |a - b| / (a + b)."""
    if any(chances == 0 for chances in possible.values()):
        return math.nan
    rates = [Fraction(made.get(segment, 0), chances) for segment, chances in possible.items()]
    return float(ratio(population_deviation(rates), sum(rates) / len(rates)))


def rsp(shop: Shop, k: int | None, *, exclude_seen: str = "yes", column: str | None = None) -> float:
    """Disparity between segments of items shown / items that could have been shown, those not in the user's history.

    `exclude_seen` is about the shown items: `no` also counts those of the history, which could not be shown.
    """
    of_choices("exclude_seen", exclude_seen, "yes", "no")
    segments = segments_of(shop, column)
    catalogue_size(shop)
    if not listed(shop, k):
        return math.nan
    shown: Counter[str | None] = Counter()
    possible = Counter(dict.fromkeys(segments.sizes, 0))
    for user, items in listed(shop, k).items():
        seen = set() if shop.history is None else set(history_of(shop, user))
        in_catalogue = seen if shop.items is None else seen & set(shop.items)
        possible.update(segments.sizes)
        possible.subtract(segments.segment(item) for item in in_catalogue if segments.segment(item) is not None)
        shown.update(segments.segment(item) for item in items if exclude_seen == "no" or item not in seen)
    return disparity({s: n for s, n in shown.items() if s is not None}, dict(possible))


def reo(
    shop: Shop, k: int | None, *, exclude_seen: str = "yes", column: str | None = None, no_recs: str = "zero"
) -> float:
    """Disparity between segments of hits / relevant items, without those of the user's history under `yes`."""
    of_choices("exclude_seen", exclude_seen, "yes", "no")
    if shop.truth is None:
        raise ValueError("truth is needed")
    segments = segments_of(shop, column)
    catalogue_size(shop)
    hits: Counter[str | None] = Counter()
    possible = Counter(dict.fromkeys(segments.sizes, 0))
    users = [user for user in shop.truth if relevant_of(shop, user) and (shop.lists.get(user) or no_recs == "zero")]
    if not users:
        return math.nan
    for user in users:
        seen = set() if exclude_seen == "no" or shop.history is None else set(history_of(shop, user))
        relevant = relevant_of(shop, user) - seen
        possible.update(segments.segment(item) for item in relevant if segments.segment(item) is not None)
        hits.update(segments.segment(item) for item in top(shop, user, k) if item in relevant)
    return disparity({s: n for s, n in hits.items() if s is not None}, dict(possible))


# Popularity of the items of a list.


def user_coverage(shop: Shop, user: Id, k: int | None, *, min_items: int | str = 1) -> Number:
    """1 if L has `min_items` items."""
    if min_items == "k" and k is None:
        raise ValueError("min_items=k needs a cut-off")
    return int(len(top(shop, user, k)) >= int(k or 0 if min_items == "k" else min_items))


def mid_rank(count: Number, counts: Iterable[Number]) -> Fraction:
    """Mean of the ranks that `count` has, 1 for the smallest; an absent count has half a rank."""
    others = list(counts)
    equal = others.count(count)
    return Fraction(2 * sum(other < count for other in others) + equal + 1, 2)


def scaled(count: Number, table: Popularity, scale: str) -> Number:
    of_choices("scale", scale, "count", "share", "max", "percentile")
    if scale == "share":
        return table.share(count)
    if scale == "max":
        return ratio(count, max(table.counts.values(), default=0))
    if scale == "percentile":
        return mid_rank(count, table.counts.values()) / len(table.counts) if count else 0
    return count


def seen_counts(items: Sequence[Id], table: Popularity, unseen: str, *choices: str) -> list[Number | None]:
    """The count of each item; for an unseen one 1 (one), None (zero, max: its value is special), or left out (drop)."""
    of_choices("unseen", unseen, *choices, "error")
    if unseen == "error" and any(item not in table.counts for item in items):
        raise ValueError("an item is not in the history")
    counts = [table.counts.get(item, 1 if unseen == "one" else None) for item in items]
    return [count for count in counts if count is not None] if unseen == "drop" else counts


def popularity(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    scale: str = "count",
    counts: str = "users",
    unseen: str = "zero",
    denominator: str = "n_rec",
    column: str | None = None,
) -> Number | None:
    """Mean of the scaled count of the items."""
    of_choices("denominator", denominator, "n_rec", "k")
    table = popularity_table(shop, counts, column)
    items = top(shop, user, k)
    found = seen_counts(items, table, unseen, "zero", "drop", "one")
    total = sum(Fraction(scaled(count or 0, table, scale)) for count in found)
    return ratio(total, denominator_of(denominator, len(found), len(items), k)) if found else None


def aplt(
    shop: Shop, user: Id, k: int | None, *, denominator: str = "n_rec", tail: str = "tail", column: str | None = None
) -> Number:
    """Share of the items in the tail; an item without a segment is in the tail."""
    of_choices("denominator", denominator, "n_rec", "k", "one")
    segments = segments_of(shop, column)
    items = top(shop, user, k)
    return ratio(
        sum(segments.segment(item) in (tail, None) for item in items),
        denominator_of(denominator, len(items), len(items), k),
    )


def mean_share(items: Sequence[Id], table: Popularity) -> Number:
    """Mean over items of their users / all users; 0 without items."""
    return ratio(sum(Fraction(table.share(table.counts.get(item, 0))) for item in items), len(items))


def popularity_lift_parts(shop: Shop, user: Id, k: int | None, column: str | None = None) -> tuple[Number, Number]:
    """Mean share of users over the list, and over the history."""
    table = popularity_table(shop, column=column)
    return mean_share(top(shop, user, k), table), mean_share(history_of(shop, user), table)


def popularity_lift(shop: Shop, user: Id, k: int | None, *, column: str | None = None) -> Number | None:
    """Popularity of the list over that of the history, minus 1."""
    of_list, of_history = popularity_lift_parts(shop, user, k, column)
    return ratio(of_list, of_history) - 1 if of_history else None


def novelty_parts(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    share: str = "users",
    unseen: str = "one",
    base: float | str = 2,
    normalize: str = "none",
    denominator: str = "n_rec",
    column: str | None = None,
) -> tuple[Number, int]:
    """Sum of the self-information of the items, and the denominator; (0, 0) if no item is left."""
    of_choices("denominator", denominator, "n_rec", "k")
    of_choices("normalize", normalize, "none", "max")
    table = popularity_table(shop, share, column)
    items = top(shop, user, k)
    found = seen_counts(items, table, unseen, "one", "drop", "zero", "max")
    special = information(min(table.counts.values()), table, base) if unseen == "max" else 0.0
    total = math.fsum(special if count is None else information(count, table, base) for count in found)
    scale = 1.0 if normalize == "none" else information(1, table, base)
    left_out = not found and unseen == "drop" and bool(items)
    return ratio(total, scale), 0 if left_out else denominator_of(denominator, len(found), len(items), k)


def information(count: Number, table: Popularity, base: float | str = 2) -> float:
    """-log of the share of users or rows."""
    return log(1 / Fraction(table.share(count)), base)


def novelty(shop: Shop, user: Id, k: int | None, **options: Any) -> Number | None:
    """Mean self-information of the items; the options are those of `novelty_parts`."""
    total, n = novelty_parts(shop, user, k, **options)
    return ratio(total, n) if n else None


def weighted_by_rank(
    shop: Shop,
    user: Id,
    k: int | None,
    worth: Callable[[Id], Number],
    discount: str | Sequence[float],
    relevance: str,
    p: float,
) -> Number:
    """Sum of d(r) rel_r worth / sum of d(r), over the ranks of L."""
    of_choices("relevance", relevance, "truth", "none")
    if isinstance(discount, str):
        of_choices("discount", discount, "log2", "none", "rbp")
    items = top(shop, user, k)
    relevant = relevant_of(shop, user) if relevance == "truth" else set(items)
    weights = [rank_weight(rank, discount, p) for rank in range(1, len(items) + 1)]
    gained = [w * Fraction(worth(item)) for w, item in zip(weights, items, strict=True) if item in relevant]
    return ratio(sum(gained), sum(weights))


def epc(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    discount: str | Sequence[float] = "log2",
    relevance: str = "truth",
    unseen: str = "zero",
    p: float = 0.8,
    column: str | None = None,
) -> Number:
    """Expected popularity complement: the worth of an item is 1 - its share of users."""
    table = popularity_table(shop, column=column)

    def worth(item: Id) -> Number:
        return 1 - Fraction(table.share(seen_counts([item], table, unseen, "zero", "one")[0] or 0))

    return weighted_by_rank(shop, user, k, worth, discount, relevance, p)


def efd(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    discount: str | Sequence[float] = "log2",
    relevance: str = "truth",
    unseen: str = "max",
    p: float = 0.8,
    column: str | None = None,
) -> Number:
    """Expected free discovery: the worth of an item is -log2 of its share of rows."""
    table = popularity_table(shop, "rows", column)

    def worth(item: Id) -> Number:
        count = seen_counts([item], table, unseen, "max", "one")[0]
        return information(min(table.counts.values()) if count is None else count, table)

    return weighted_by_rank(shop, user, k, worth, discount, relevance, p)


# Features and categories.


def labels(value: Any) -> list[Any]:
    """The distinct labels of an item, which has one or several."""
    return list(dict.fromkeys(value)) if isinstance(value, list | tuple | set) else [value]


def categories_of(shop: Shop, column: str | None) -> dict[Id, list[Any]]:
    return {item: labels(value) for item, value in needed_column(shop, column, "category").items() if value != []}


def with_features(items: Sequence[Id], features: Mapping[Id, Any], no_features: str) -> list[Id]:
    """The items that have features, or an error if one has none."""
    of_choices("no_features", no_features, "error", "drop")
    kept = [item for item in items if item in features]
    if no_features == "error" and len(kept) < len(items):
        raise ValueError(f"{len(items) - len(kept)} items have no features")
    return kept


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of two vectors; 0 if one is zero."""
    x, y = [Fraction(v) for v in a], [Fraction(v) for v in b]
    dot = sum(v * w for v, w in zip(x, y, strict=True))
    squares = sum(v * v for v in x) * sum(w * w for w in y)
    return float(dot) / math.sqrt(squares) if squares else 0.0


def distance_of(a: Any, b: Any, distance: str) -> Number:
    if distance == "cosine":
        return 1 - cosine(a, b)
    if distance == "jaccard":
        return 1 - Fraction(len(set(a) & set(b)), len(set(a) | set(b)))
    return sum(v != w for v, w in zip(a, b, strict=True))


def intra_list_diversity(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    distance: str = "cosine",
    single: str = "zero",
    column: str | None = None,
    no_features: str = "error",
) -> Number | None:
    """Mean distance over the pairs of items: of vectors (cosine, hamming) or of categories (jaccard)."""
    of_choices("distance", distance, "cosine", "jaccard", "hamming")
    of_choices("single", single, "zero", "skip")
    values = categories_of(shop, column) if distance == "jaccard" else needed_column(shop, column, "features")
    items = with_features(top(shop, user, k), values, no_features)
    pairs = [distance_of(values[a], values[b], distance) for a, b in itertools.combinations(items, 2)]
    if not items or (not pairs and single == "skip"):
        return None
    return ratio(math.fsum(pairs), len(pairs))


def category_coverage(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    denominator: str = "n_categories",
    relevance: str = "none",
    column: str | None = None,
    no_features: str = "error",
) -> Number | None:
    """Distinct categories in L, or of its relevant items, over those of all items or k."""
    of_choices("denominator", denominator, "n_categories", "k")
    of_choices("relevance", relevance, "none", "truth")
    categories = categories_of(shop, column)
    items = with_features(top(shop, user, k), categories, no_features)
    relevant = relevant_of(shop, user) if relevance == "truth" else set(items)
    found = {label for item in items if item in relevant for label in categories[item]}
    every = {label for of_item in categories.values() for label in of_item}
    whole = len(every) if denominator == "n_categories" else denominator_of("k", len(items), len(top(shop, user, k)), k)
    return ratio(len(found), whole) if items else None


def category_distribution(
    items: Sequence[Id], categories: Mapping[Id, list[Any]], weights: Sequence[Fraction]
) -> Distribution:
    """Share of each category, an item's weight shared equally among its categories; empty if all weights are 0."""
    sums: Distribution = {}
    for item, weight in zip(items, weights, strict=True):
        for label in categories.get(item, ()):
            sums[label] = sums.get(label, Fraction(0)) + weight / len(categories[item])
    total = sum(sums.values())
    return {label: weight / total for label, weight in sums.items()} if total else {}


def category_entropy(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    base: float | str = 2,
    discount: str | Sequence[float] = "none",
    p: float = 0.8,
    column: str | None = None,
    no_features: str = "error",
) -> Number | None:
    """Entropy of the categories of L; a dropped item keeps its rank."""
    if isinstance(discount, str):
        of_choices("discount", discount, "none", "log2", "rbp")
    categories, items = categories_of(shop, column), top(shop, user, k)
    with_features(items, categories, no_features)
    weights = [rank_weight(rank, discount, p) for rank in range(1, len(items) + 1)]
    distribution = category_distribution(items, categories, weights)
    return entropy(distribution, base) if distribution else None


def kullback_leibler(p: Distribution, q: Distribution, base: float | str) -> float:
    """Sum of p log p/q over the labels with p > 0."""
    return math.fsum(float(share) * log(share / q[label], base) for label, share in p.items() if share)


def mixed(a: Distribution, b: Distribution, weight: Fraction) -> Distribution:
    """(1 - weight) a + weight b."""
    return {label: (1 - weight) * a.get(label, 0) + weight * b.get(label, 0) for label in {**a, **b}}


def divergence_of(p: Distribution, q: Distribution, divergence: str, alpha: float, base: float | str) -> float:
    """kl of p from q smoothed by alpha of p; Jensen-Shannon divergence; Hellinger distance."""
    of_choices("divergence", divergence, "kl", "js", "hellinger")
    if divergence == "kl":
        return kullback_leibler(p, mixed(q, p, Fraction(alpha)), base)
    if divergence == "js":
        middle = mixed(p, q, Fraction(1, 2))
        return math.fsum([kullback_leibler(p, middle, base), kullback_leibler(q, middle, base)]) / 2
    roots = [(math.sqrt(p.get(label, 0)), math.sqrt(q.get(label, 0))) for label in {**p, **q}]
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in roots) / 2)


def miscalibration(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    divergence: str = "kl",
    alpha: float = 0.01,
    base: float | str = 2,
    discount: str | Sequence[float] = "none",
    column: str | None = None,
    no_features: str = "error",
) -> Number | None:
    """Divergence of the categories of the history from those of L; a dropped item keeps its rank."""
    if isinstance(discount, str):
        of_choices("discount", discount, "none", "log2")
    categories = categories_of(shop, column)
    past, items = history_of(shop, user), top(shop, user, k)
    with_features([*past, *items], categories, no_features)
    of_history = category_distribution(past, categories, [Fraction(1)] * len(past))
    weights = [rank_weight(rank, discount) for rank in range(1, len(items) + 1)]
    of_list = category_distribution(items, categories, weights)
    if not of_history or not of_list:
        return None
    return divergence_of(of_history, of_list, divergence, alpha, base)


# Unexpected items.


def unexpected_by_popularity(shop: Shop, items: Sequence[Id], k: int | None, column: str | None) -> list[Number]:
    """1 for an item with fewer users than the k-th most popular one, or with none."""
    counts = popularity_table(shop, column=column).counts
    most = sorted(counts.values(), reverse=True)[: len(items) if k is None else k]
    return [int(item not in counts or counts[item] < most[-1]) for item in items]


def unexpected_by_rank(shop: Shop, items: Sequence[Id], column: str | None) -> list[Number]:
    """How far the rank is above the dense rank of popularity, in shares of the catalogue; unseen items come last."""
    counts, n = popularity_table(shop, column=column).counts, catalogue_size(shop)
    levels = sorted(set(counts.values()), reverse=True)
    expected = [n - levels.index(counts[item]) if item in counts else 0 for item in items]
    return [max(Fraction(n + 1 - rank - by, n), 0) for rank, by in enumerate(expected, start=1)]


def unexpected_by_history(items: Sequence[Id], past: Sequence[Id], features: Mapping[Id, Any]) -> list[Number]:
    """1 - mean cosine to the rows of the history."""
    return [1 - math.fsum(cosine(features[item], features[old]) for old in past) / len(past) for item in items]


def serendipity(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    expected: str = "popular",
    denominator: str = "k",
    column: str | None = None,
    no_features: str = "error",
) -> Number | None:
    """Mean of relevant times unexpected."""
    of_choices("expected", expected, "popular", "reference", "rank", "history")
    of_choices("denominator", denominator, "k", "n_rec")
    items, relevant = top(shop, user, k), relevant_of(shop, user)
    listed = len(items)
    if expected == "popular":
        unexpected = unexpected_by_popularity(shop, items, k, column)
    elif expected == "rank":
        unexpected = unexpected_by_rank(shop, items, column)
    elif expected == "reference":
        reference = reference_of(shop, user)
        unexpected = [int(item not in reference) for item in items]
    else:
        features = needed_column(shop, column, "features")
        items = with_features(items, features, no_features)
        past = with_features(history_of(shop, user), features, no_features)
        if not items or not past:
            return None
        unexpected = unexpected_by_history(items, past, features)
    gained = [share for item, share in zip(items, unexpected, strict=True) if item in relevant]
    total = math.fsum(gained) if expected == "history" else sum(gained)
    return ratio(total, denominator_of(denominator, len(items), listed, k))


# Other lists.


def unexpectedness(shop: Shop, user: Id, k: int | None, *, denominator: str = "n_rec") -> Number:
    """1 - items of L that are in the first k of the reference / denominator."""
    of_choices("denominator", denominator, "n_rec", "k")
    items = top(shop, user, k)
    common = len(set(items) & set(reference_of(shop, user)[:k]))
    return 1 - ratio(common, denominator_of(denominator, len(items), len(items), k))


def overlap(shop: Shop, user: Id, k: int | None, *, denominator: str = "union") -> Number:
    """Items of L that are in the first k of the reference / denominator."""
    of_choices("denominator", denominator, "union", "n_rec", "k", "min")
    items, others = top(shop, user, k), reference_of(shop, user)[:k]
    common = len(set(items) & set(others))
    if denominator == "union":
        return ratio(common, len(set(items) | set(others)))
    if denominator == "min":
        return ratio(common, min(len(items), len(others)))
    return ratio(common, denominator_of(denominator, len(items), len(items), k))


def rbo(shop: Shop, user: Id, k: int | None, *, p: float = 0.9, form: str = "ext") -> Number:
    """Rank-biased overlap of L and the first k of the reference."""
    of_choices("form", form, "ext", "min", "truncated")
    if not 0 < p < 1:
        raise ValueError(f"p is between 0 and 1, not {p}")
    items, others = top(shop, user, k), reference_of(shop, user)[:k]
    return {"ext": rbo_ext, "min": rbo_min, "truncated": rbo_truncated}[form](items, others, p, k)


def common_to(a: Sequence[Id], b: Sequence[Id], depth: int) -> int:
    """X_d: items that both lists have in their first `depth`."""
    return len(set(a[:depth]) & set(b[:depth]))


def rbo_ext(a: Sequence[Id], b: Sequence[Id], p: float, _: int | None) -> float:
    """The extrapolated form, for lists of unequal lengths too (Webber et al. 2010, equation 32)."""
    s, l = sorted([len(a), len(b)])  # noqa: E741 - the names of the equation
    x = [common_to(a, b, d) for d in range(l + 1)]
    seen = math.fsum(x[d] / d * p**d for d in range(1, l + 1))
    assumed = math.fsum(x[s] * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * (seen + assumed) + ((x[l] - x[s]) / l + x[s] / s) * p**l


def rbo_min(a: Sequence[Id], b: Sequence[Id], p: float, _: int | None) -> float:
    """The lower bound: nothing below the longer list agrees (equation 11)."""
    depth = max(len(a), len(b))
    x = [common_to(a, b, d) for d in range(depth + 1)]
    seen = math.fsum((x[d] - x[depth]) * p**d / d for d in range(1, depth + 1))
    return (1 - p) / p * (seen - x[depth] * math.log1p(-p))


def rbo_truncated(a: Sequence[Id], b: Sequence[Id], p: float, k: int | None) -> float:
    """Weighted mean of X_d / d over the depths up to k, or to the end of the longer list without a cut-off."""
    depths = range(1, (k or max(len(a), len(b))) + 1)
    weights = [p ** (d - 1) for d in depths]
    return math.fsum(w * common_to(a, b, d) / d for w, d in zip(weights, depths, strict=True)) / math.fsum(weights)


def repeat_ratio(shop: Shop, user: Id, k: int | None) -> Number:
    """Share of L that is in the user's history."""
    items = top(shop, user, k)
    return ratio(len(set(items) & set(history_of(shop, user))), len(items))


# Clicks weighted by inverse propensity.


def propensity_of(shop: Shop, user: Id, item: Id, column: str | None = None) -> Fraction:
    """That of the click in `logged`, or the examination of its rank there; else the column of the items."""
    if shop.logged is not None and column is None:
        number = shop.logged.get(user, {}).get(item)
        if number is None:
            raise ValueError(f"no propensity of {item}")
        if shop.examination is None:
            return Fraction(number)
        if not (number == int(number) and 1 <= number <= len(shop.examination)):
            raise ValueError(f"a rank is an integer within the curve, not {number}")
        known = shop.examination[int(number) - 1]
        if math.isnan(known):
            raise ValueError("the examination of a rank is not known")
        return Fraction(known)
    known = (shop.items or {}).get(item, {}).get(column or "propensity")
    if known is None:
        raise ValueError(f"no propensity of {item}")
    return Fraction(known)


def click_weights(shop: Shop, user: Id, *, clip: float, at_most_one: bool, column: str | None) -> dict[Id, Fraction]:
    """Relevant item -> 1 / max(propensity, clip)."""
    found = {item: propensity_of(shop, user, item, column) for item in relevant_of(shop, user)}
    if any(p <= 0 or (at_most_one and p > 1) for p in found.values()):
        raise ValueError("a propensity is above 0, for ips at most 1")
    return {item: 1 / max(p, Fraction(clip)) for item, p in found.items()}


def click_weight_of_rank(of: str, rank: int, p: float) -> Fraction:
    """The worth of a click at a rank."""
    of_choices("of", of, "recall", "precision", "dcg", "arhr", "rbp")
    if of == "rbp":
        return (1 - Fraction(p)) * rank_weight(rank, "rbp", p)
    return {"dcg": rank_weight(rank, "log2"), "arhr": Fraction(1, rank)}.get(of, Fraction(1))


def weighted_clicks(shop: Shop, user: Id, k: int | None, of: str, p: float, weights: Mapping[Id, Fraction]) -> Fraction:
    """The sum of the worth of clicks in L times their weights."""
    items = top(shop, user, k)
    return sum(
        (weights[item] * click_weight_of_rank(of, rank, p) for rank, item in enumerate(items, 1) if item in weights),
        Fraction(0),
    )


def ips_parts(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    of: str = "recall",
    p: float = 0.8,
    clip: float = 0.0,
    column: str | None = None,
) -> tuple[Number, Number]:
    weights = click_weights(shop, user, clip=clip, at_most_one=True, column=column)
    n = len(top(shop, user, k))
    divisor = {"recall": len(weights), "precision": denominator_of("k", n, n, k)}.get(of, 1)
    return weighted_clicks(shop, user, k, of, p, weights), divisor


def ips(shop: Shop, user: Id, k: int | None, **options: Any) -> Number:
    """Clicks in L weighted by inverse propensity, divided as the metric is."""
    return ratio(*ips_parts(shop, user, k, **options))


def snips_parts(
    shop: Shop,
    user: Id,
    k: int | None,
    *,
    of: str = "recall",
    p: float = 0.8,
    clip: float = 0.0,
    column: str | None = None,
) -> tuple[Number, Number]:
    weights = click_weights(shop, user, clip=clip, at_most_one=False, column=column)
    return weighted_clicks(shop, user, k, of, p, weights), sum(weights.values())


def snips(shop: Shop, user: Id, k: int | None, **options: Any) -> Number:
    """The same, divided by the sum of the weights of all clicks."""
    return ratio(*snips_parts(shop, user, k, **options))


def weights_over_all(shop: Shop, *, clip: float = 0.0, column: str | None = None) -> dict[str, float]:
    """The effective sample size, the share of the largest weight and the clipped clicks, over all users."""
    users = list(shop.truth or ())
    found = [click_weights(shop, user, clip=clip, at_most_one=False, column=column) for user in users]
    weights = [weight for own in found for weight in own.values()]
    pairs = [(user, item) for user, own in zip(users, found, strict=True) for item in own]
    clipped = sum(propensity_of(shop, user, item, column) < Fraction(clip) for user, item in pairs)
    size, share = math.nan, math.nan
    if weights:
        size = float(sum(weights) ** 2 / sum(weight**2 for weight in weights))
        share = float(max(weights) / sum(weights))
    return {"effective_sample_size": size, "largest_weight_share": share, "clipped_rows": clipped}


CATALOGUE: dict[str, Callable[..., float]] = {
    "item_coverage": item_coverage,
    "gini": gini,
    "shannon_entropy": shannon_entropy,
    "personalization": personalization,
    "rsp": rsp,
    "reo": reo,
}
INFLUENCES: dict[str, Callable[..., list[float]]] = {
    "gini": gini_influence,
    "shannon_entropy": entropy_influence,
    "personalization": personalization_influence,
}
# Subtopics.


def additions(lists: Sequence[frozenset[float]], alpha: float) -> list[Fraction]:
    """What each of these sets of subtopics adds to those above."""
    return [
        sum(
            ((1 - Fraction(alpha)) ** sum(topic in other for other in lists[:at]) for topic in own),
            Fraction(0),
        )
        for at, own in enumerate(lists)
    ]


def greedy_order(covered: Mapping[Id, frozenset[float]], alpha: float) -> list[frozenset[float]]:
    """The set that adds most comes next; of equal ones the first in the order of their sorted subtopics."""
    left, order = sorted(covered.values(), key=sorted), []
    while left:
        gains = [additions([*order, own], alpha)[-1] for own in left]
        order.append(left.pop(gains.index(max(gains))))
    return order


def sum_of_additions(
    lists: Sequence[frozenset[float]], k: int | None, alpha: float, weight: Callable[[int], float]
) -> float:
    added = additions(lists[:k], alpha)
    return math.fsum(float(value) * weight(rank) for rank, value in enumerate(added, start=1))


def novelty_gain(
    shop: Shop, user: Id, k: int | None, alpha: float, denominator: str, weight: Callable[[int], float]
) -> float:
    """The sum of what the items of L add, over that of the greedy order or of a list that covers all subtopics."""
    covered, items = covered_by(shop, user), top(shop, user, k)
    total = sum_of_additions([covered.get(item, frozenset()) for item in items], k, alpha, weight)
    of_choices("denominator", denominator, "one", "ideal", "all_subtopics", "n_subtopics")
    everything = frozenset().union(*covered.values())
    if denominator == "one":
        return total
    if denominator == "n_subtopics":
        return alpha * total / len(everything)
    if denominator == "ideal":
        return float(ratio(Fraction(total), Fraction(sum_of_additions(greedy_order(covered, alpha), k, alpha, weight))))
    best = [everything] * (len(items) if k is None else k)
    return float(ratio(Fraction(total), Fraction(sum_of_additions(best, k, alpha, weight))))


def alpha_dcg(shop: Shop, user: Id, k: int | None, *, alpha: float = 0.5, denominator: str = "one") -> float | None:
    if not covered_by(shop, user):
        return None
    return novelty_gain(shop, user, k, alpha, denominator, lambda rank: 1 / math.log2(rank + 1))


def err_ia(
    shop: Shop, user: Id, k: int | None, *, alpha: float = 0.5, denominator: str = "all_subtopics"
) -> float | None:
    if not covered_by(shop, user):
        return None
    return novelty_gain(shop, user, k, alpha, denominator, lambda rank: 1 / rank)


def nrbp(
    shop: Shop, user: Id, k: int | None, *, alpha: float = 0.5, p: float = 0.5, denominator: str = "all_subtopics"
) -> float | None:
    covered = covered_by(shop, user)
    if not covered:
        return None
    if denominator == "ideal":
        return novelty_gain(shop, user, k, alpha, "ideal", lambda rank: p ** (rank - 1))
    of_choices("denominator", denominator, "all_subtopics")
    total = novelty_gain(shop, user, k, alpha, "one", lambda rank: p ** (rank - 1))
    return (1 - (1 - alpha) * p) * total / len(frozenset().union(*covered.values()))


def by_subtopic(shop: Shop, user: Id, k: int | None) -> dict[float, tuple[list[int], int]]:
    """Subtopic -> the ranks of L that cover it, and how many relevant items do."""
    covered = covered_by(shop, user)
    return {
        topic: (
            [rank for rank, item in enumerate(top(shop, user, k), start=1) if topic in covered.get(item, ())],
            sum(topic in own for own in covered.values()),
        )
        for topic in frozenset().union(*covered.values())
    }


def subtopic_recall(shop: Shop, user: Id, k: int | None) -> Number | None:
    found = by_subtopic(shop, user, k)
    return Fraction(sum(bool(ranks) for ranks, _ in found.values()), len(found)) if found else None


def precision_ia(shop: Shop, user: Id, k: int | None) -> Number | None:
    found, n = by_subtopic(shop, user, k), len(top(shop, user, k)) if k is None else k
    return ratio(sum(len(ranks) for ranks, _ in found.values()), n * len(found)) if found else None


def map_ia(shop: Shop, user: Id, k: int | None) -> Number | None:
    found = by_subtopic(shop, user, k)
    sums = [
        sum((Fraction(nth, rank) for nth, rank in enumerate(ranks, start=1)), Fraction(0)) / size
        for ranks, size in found.values()
    ]
    return sum(sums, Fraction(0)) / len(sums) if sums else None


OF_SUBTOPICS: dict[str, Callable[..., Number | None]] = {
    "alpha_dcg": alpha_dcg,
    "err_ia": err_ia,
    "nrbp": nrbp,
    "subtopic_recall": subtopic_recall,
    "precision_ia": precision_ia,
    "map_ia": map_ia,
}
USERS: dict[str, Callable[..., Number | None]] = {
    **OF_SUBTOPICS,
    "user_coverage": user_coverage,
    "popularity": popularity,
    "aplt": aplt,
    "popularity_lift": popularity_lift,
    "novelty": novelty,
    "epc": epc,
    "efd": efd,
    "intra_list_diversity": intra_list_diversity,
    "category_coverage": category_coverage,
    "category_entropy": category_entropy,
    "miscalibration": miscalibration,
    "serendipity": serendipity,
    "unexpectedness": unexpectedness,
    "overlap": overlap,
    "rbo": rbo,
    "repeat_ratio": repeat_ratio,
    "ips": ips,
    "snips": snips,
}
PARTS: dict[str, Callable[..., tuple[Number, Number]]] = {
    "novelty": novelty_parts,
    "popularity_lift": popularity_lift_parts,
    "ips": ips_parts,
    "snips": snips_parts,
}
CLICK_OPTIONS = ("of", "p", "clip", "column")
WITH_UNSEEN = ("popularity", "novelty", "epc", "efd")
WITH_FEATURES = ("intra_list_diversity", "category_coverage", "category_entropy", "miscalibration", "serendipity")


# From shops to one number.


def reads_truth(metric: str, options: Options) -> bool:
    relevance = options.get("relevance", "truth" if metric in ("epc", "efd") else "none")
    return metric in ("serendipity", "reo", "ips", "snips", *OF_SUBTOPICS) or relevance == "truth"


def reads_history(metric: str, options: Options) -> bool:
    """Reads the history of the user, not only the popularity."""
    own = ("popularity_lift", "miscalibration", "repeat_ratio")
    return metric in own or (metric == "serendipity" and options.get("expected") == "history")


def reads_reference(metric: str, options: Options) -> bool:
    own = ("unexpectedness", "overlap", "rbo")
    return metric in own or (metric == "serendipity" and options.get("expected") == "reference")


class Policies(NamedTuple):
    no_truth: str = "skip"
    no_recs: str | None = None  # zero for metrics that read the truth, else skip
    no_history: str = "skip"


def ruling(shop: Shop, user: Id, metric: str, options: Options, policies: Policies) -> str:
    """The treatment of the user: "count", or the policy of the user's case."""
    policy = "count"
    if reads_truth(metric, options) and not relevant_of(shop, user):
        policy = policies.no_truth
    elif (reads_reference(metric, options) and not reference_of(shop, user)) or (
        metric in OF_SUBTOPICS and not covered_by(shop, user)
    ):
        policy = "skip"
    elif reads_history(metric, options) and not history_of(shop, user):
        policy = policies.no_history
    elif not shop.lists.get(user):
        policy = policies.no_recs or ("zero" if reads_truth(metric, options) else "skip")
    if policy == "error":
        raise ValueError("a user has no truth, no history or no list")
    of_choices("policy", policy, "count", "skip", "zero", "nan")
    return policy


def users_of(shop: Shop) -> list[Id]:
    """Users of the lists and the truth."""
    return list(dict.fromkeys([*shop.lists, *(shop.truth or ())]))


def check_items(shop: Shop, unseen: str | None) -> None:
    """Refuse items twice in a list, and items that the table lacks unless `unseen` was given."""
    for items in shop.lists.values():
        if len(set(items)) < len(items):
            raise ValueError("an item is twice in a list")
        if shop.items is not None and unseen in (None, "error") and set(items) - set(shop.items):
            raise ValueError("an item of a list is not in the table of items")


def evaluate(
    shop: Shop,
    metric: str,
    *,
    k: int | None = None,
    options: Options | None = None,
    no_truth: str = "skip",
    no_recs: str | None = None,
    no_history: str = "skip",
    no_features: str = "error",
    unseen: str | None = None,
) -> Result:
    """One metric, by its bare name; `options` are the metric's own and override the policies of the call.

    `zero` counts a user as 0; a ratio of sums or of means then takes the missing side as 0. Bad data raise a
    ValueError; an unknown name or option a ValueError, a KeyError or a TypeError.
    """
    options = dict(options or {})
    policies = Policies(
        options.pop("no_truth", no_truth), options.pop("no_recs", no_recs), options.pop("no_history", no_history)
    )
    unseen = options.pop("unseen", unseen)
    check_items(shop, unseen)
    if metric in WITH_UNSEEN and unseen is not None:
        options["unseen"] = unseen
    if metric in WITH_FEATURES:
        options.setdefault("no_features", no_features)
    if metric in OF_SUBTOPICS and (shop.subtopics is None or shop.truth is None):
        raise ValueError("subtopics and a truth are needed")
    if metric in CATALOGUE:
        return evaluate_catalogue(shop, metric, k, options, policies)

    if metric in ("ips", "snips"):  # every click needs a propensity, whoever counts
        for user in shop.truth or ():
            PARTS[metric](shop, user, k, **{name: value for name, value in options.items() if name in CLICK_OPTIONS})

    average = options.pop("average", {"popularity_lift": "means"}.get(metric, "user"))
    if metric != "user_coverage":
        rulings = {user: ruling(shop, user, metric, options, policies) for user in users_of(shop)}
    else:
        rulings = dict.fromkeys(users_of(shop), "count")
    per_user: dict[Id, float | None] = {}
    for user, rule in rulings.items():
        value = USERS[metric](shop, user, k, **options) if rule == "count" else None
        fixed = {"zero": 0.0, "nan": math.nan}.get(rule)
        per_user[user] = fixed if value is None else float(value)
    both = {user for user, rule in rulings.items() if rule == "count"} if average == "means" else set()
    return summarise(shop, metric, average, k=k, options=options, per_user=per_user, both=both)


def evaluate_catalogue(shop: Shop, metric: str, k: int | None, options: Options, policies: Policies) -> Result:
    if metric == "reo":
        options = {**options, "no_recs": policies.no_recs or "zero"}
    value = CATALOGUE[metric](shop, k, **options)
    std_error = None
    if metric in INFLUENCES:
        influence = INFLUENCES[metric](shop, k, **options)
        centre = math.fsum(influence) / max(len(influence), 1)
        std_error = error_of_mean([z - centre for z in influence], [1.0] * len(influence))
    return Result(value, std_error, len(listed(shop, k)), {})


def summarise(
    shop: Shop,
    metric: str,
    average: str,
    *,
    k: int | None,
    options: Options,
    per_user: dict[Id, float | None],
    both: set[Id],
) -> Result:
    """Value and standard error over the counted users, in the form of `average`.

    Users in `both` count in both means of a ratio, also without a ratio of their own.
    """
    choices = {"popularity_lift": ("means", "user"), **dict.fromkeys(("novelty", "ips", "snips"), ("user", "pooled"))}
    of_choices("average", average, *choices.get(metric, ("user",)))
    values = {user: value or 0.0 for user, value in per_user.items() if value is not None or user in both}
    ones = [1.0] * len(values)
    if not values or any(math.isnan(value) for value in values.values()):
        return Result(math.nan, math.nan, len(values), per_user)
    if average == "user":
        mean = math.fsum(values.values()) / len(values)
        std_error = error_of_mean([value - mean for value in values.values()], ones)
        return Result(mean, std_error, len(values), per_user)
    parts = [tuple(map(Fraction, PARTS[metric](shop, user, k, **options))) for user in values]
    _, std_error = pooled_ratio(parts, ones)
    above, below = sum(a for a, _ in parts), sum(b for _, b in parts)
    shift = 1 if metric == "popularity_lift" else 0
    if metric in ("ips", "snips") and not below:  # as in precision without a cut-off, 0 of 0 items
        return Result(0.0, None, len(values), per_user)
    return Result(float(ratio(above, below) - shift) if below else math.nan, std_error, len(values), per_user)

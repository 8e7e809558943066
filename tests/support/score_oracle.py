"""The naive evaluator of scored rows, beside `oracle` for lists: plain Python, nothing of the package under test.

Ranking metrics: the rows of a user, highest score first, are the list, and its labels are the gains. A policy for ties
fixes one order, which `oracle` evaluates; under `expected` the value is the mean over all orders of tied rows, each
evaluated separately. Metrics of classes and errors: sums over rows by definition, with pairs counted one by one;
weights are fractions, so that rational values stay exact.

Fixed readings of the definitions:

- A row of weight 0 is no row: it adds nothing, and makes no class present and no score different.
- A user without rows (of weight above 0) has no value: means leave it out, and `gauc` does so like `drop`.
- Undefined values are NaN over rows and leave a user out, except that `average_precision` over rows is 0 without
  positives, and that `zero_division` decides metrics of classes at a threshold (of no rows at all they are NaN).
- A user with a NaN AUC under `one_class=nan` makes `gauc` NaN, whatever its weight, and is not counted.
- Edges of uniform bins are the doubles b / bins; thresholds are doubles too.
- The standard error of a value over rows is that of a ratio of sums over users (delta method); those of `auc`,
  `average_precision` by steps and `NOT_SUMS` follow from the slopes in `clustered_oracle`. Other values have none.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from support import oracle
from support.oracle import Item, Number, Result, User

DOUBLE_EPS = 2.0**-52
MAX_TIED = 8  # 8! orders of a block take long enough
HALF = Fraction(1, 2)


# Ranking metrics under ties=expected


class ExpectedUser(User):
    """A user in one order of ties, with all orders, and with the mean of the hits over these."""

    orders: Sequence[User] = ()
    mean_hits: Number = 0

    @property
    def n_hits(self) -> Any:
        return self.mean_hits


@functools.cache
def orders_of_block(gains: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """All distinct orders of tied gains: each represents the same number of orders of the rows."""
    if len(gains) > MAX_TIED:
        raise ValueError(f"{len(gains)} tied rows have too many orders")
    return tuple(sorted(set(itertools.permutations(gains))))


def tie_blocks(gains: Sequence[float], scores: Sequence[float]) -> tuple[tuple[float, ...], ...]:
    """The gains of each distinct score, highest score first; -0.0 equals 0.0."""
    if any(math.isnan(score) for score in scores):
        raise ValueError("a score is NaN")
    pairs = sorted(zip(scores, gains, strict=True), key=lambda pair: pair[0], reverse=True)
    return tuple(tuple(gain for _, gain in rows) for _, rows in itertools.groupby(pairs, key=lambda pair: pair[0]))


@functools.lru_cache(maxsize=4096)
def orders_of(
    blocks: tuple[tuple[float, ...], ...], truth: tuple[float, ...], k: int | None, n_items: int | None
) -> tuple[User, ...]:
    """The user in all orders of tied rows."""
    return tuple(
        User([gain for block in order for gain in block], list(truth), k, n_items)
        for order in itertools.product(*map(orders_of_block, blocks))
    )


def mean_of(values: Sequence[Number]) -> Number:
    """Exact if all values are."""
    if any(isinstance(value, float) for value in values):
        return math.fsum(values) / len(values)
    return Fraction(sum(values)) / len(values)


def expected_value(metric: str, orders: Sequence[User], options: Mapping[str, Any]) -> float | None:
    """The mean over the orders; None for a user without a value in one of them."""
    values = [oracle.METRICS[metric](u, **options) for u in orders]
    return None if None in values else float(mean_of(values))


def with_orders(orders: Sequence[User]) -> ExpectedUser:
    user = ExpectedUser(*orders[0])
    user.orders, user.mean_hits = orders, mean_of([u.n_hits for u in orders])
    return user


def parts_over_orders(metric: str, user: ExpectedUser, options: Mapping[str, Any]) -> tuple[Number, Number]:
    """The means over all orders of what a pooled metric adds up."""
    tops, bottoms = zip(*(oracle.parts_of(metric, u, options) for u in user.orders), strict=True)
    return mean_of(tops), mean_of(bottoms)


def evaluate_lists(
    recs: Sequence[Sequence[Item]],
    truth: Sequence[Sequence[tuple[Item, float]]],
    scores: Sequence[Sequence[float]],
    metric: str,
    *,
    k: int | None = None,
    options: Mapping[str, Any] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    no_truth: str = "skip",
    no_recs: str = "zero",
    exclude: Sequence[Sequence[Item]] | None = None,
    weights: Sequence[float] | None = None,
) -> Result:
    """`oracle.evaluate` of scored lists without duplicates, under ties=expected.

    A metric that is a function of several means (pooled, means) takes the means of expected values.
    """
    options = dict(options or {})
    min_gain = options.pop("min_gain", min_gain)
    no_truth, no_recs = options.pop("no_truth", no_truth), options.pop("no_recs", no_recs)
    average = "geometric" if options.pop("mean", None) == "geometric" else options.pop("average", "user")
    users: list[Sequence[User]] = []
    for i, (items, rows) in enumerate(zip(recs, truth, strict=True)):
        relevant = oracle.truth_gains(rows, min_gain, "error")
        seen = set() if exclude is None else set(exclude[i])
        kept = [(item, score) for item, score in zip(items, scores[i], strict=True) if item not in seen]
        gains = oracle.list_gains([item for item, _ in kept], relevant, "error")
        blocks = tie_blocks(gains, [score for _, score in kept])
        users.append(orders_of(blocks, tuple(sorted(relevant.values(), reverse=True)), k, n_items))
    rulings = [
        oracle.ruling(orders[0]._replace(n_judged=len(rows)), no_truth, no_recs)
        for orders, rows in zip(users, truth, strict=True)
    ]
    fixed = {"skip": None, "zero": 0.0, "nan": math.nan}
    per_user = [
        expected_value(metric, orders, options) if rule == "count" else fixed[rule]
        for orders, rule in zip(users, rulings, strict=True)
    ]
    value, std_error = oracle.summarise(
        metric,
        average,
        options=options,
        users=list(map(with_orders, users)),
        per_user=per_user,
        weights=weights,
        parts=parts_over_orders,
    )
    return Result(
        value=value,
        std_error=std_error,
        users=sum(v is not None for v in per_user),
        per_user=per_user,
        no_truth=sum(orders[0].n_rel == 0 for orders in users),
        no_recs=sum(orders[0].n_rel > 0 and orders[0].n_rec == 0 for orders in users),
    )


# Closed forms of the same, for blocks too long to go through all orders; `test_score_oracle` compares the two.


class Block(NamedTuple):
    """Tie block: rows above it, hits above it, its rows' gains, its ranks within the cut-off."""

    above: int
    hits_above: int
    gains: tuple[float, ...]
    slots: int

    @property
    def tied(self) -> int:
        return len(self.gains)

    @property
    def hits(self) -> int:
        return sum(gain > 0 for gain in self.gains)


def cut_blocks(blocks: Iterable[tuple[float, ...]], k: int | None) -> list[Block]:
    out: list[Block] = []
    above = hits = 0
    for gains in blocks:
        out.append(Block(above, hits, gains, max(0, (len(gains) if k is None else min(len(gains), k - above)))))
        above, hits = above + len(gains), hits + out[-1].hits
    return out


def harmonic(after: int, upto: int) -> Fraction:
    return sum((Fraction(1, rank) for rank in range(after + 1, upto + 1)), Fraction(0))


def closed_hits(blocks: Sequence[Block]) -> Fraction:
    """Sum of c m / t: each row of a block is equally likely at each of its ranks."""
    return sum((Fraction(b.hits * b.slots, b.tied) for b in blocks), Fraction(0))


def closed_hit_rate(blocks: Sequence[Block]) -> Fraction:
    """1 - product of the chances that all hits of a block fall past its slots."""
    miss = Fraction(1)
    for b in blocks:
        for i in range(b.hits):
            miss *= Fraction(max(0, b.tied - b.slots - i), b.tied - i)
    return 1 - miss


def closed_precision_sum(blocks: Sequence[Block]) -> Fraction:
    """Sum over ranks r of P(hit at r) (1 + E[hits above r | hit at r]) / r."""
    total = Fraction(0)
    for b in blocks:
        density = Fraction(b.hits - 1, b.tied - 1) if b.tied > 1 else Fraction(0)
        inside = b.slots * density + (1 + b.hits_above - (b.above + 1) * density) * harmonic(b.above, b.above + b.slots)
        total += Fraction(b.hits, b.tied) * inside
    return total


def closed_mean_precision(blocks: Sequence[Block]) -> Fraction:
    """E[precision sum / hits]: over the number x of hits that fall in the slots of the block that is cut."""
    last = max((i for i, b in enumerate(blocks) if b.slots > 0), default=None)
    if last is None:
        return Fraction(0)
    whole, cut = blocks[:last], blocks[last]
    before = closed_precision_sum(whole)
    value = Fraction(0)
    for x in range(max(0, cut.slots - (cut.tied - cut.hits)), min(cut.hits, cut.slots) + 1):
        ways = math.comb(cut.hits, x) * math.comb(cut.tied - cut.hits, cut.slots - x)
        inside = closed_precision_sum([cut._replace(gains=(1.0,) * x + (0.0,) * (cut.slots - x))])
        if cut.hits_above + x > 0:
            value += Fraction(ways, math.comb(cut.tied, cut.slots)) * (before + inside) / (cut.hits_above + x)
    return value


def closed_limited_auc(blocks: Sequence[Block], unseen: str, n_rel: int, n_items: int | None) -> Number:
    """E[right pairs / pairs]: over the number x of hits in the slots of the block that is cut, pairs inside it half."""
    nothing = Block(0, 0, (), 0)
    *whole, cut = [b for b in blocks if b.slots > 0] or [nothing]
    n, right = cut.above + cut.slots, Fraction(0)
    for b in whole:  # each hit is above the other items of later blocks, and of half of those of its own
        right -= b.hits * (b.above - b.hits_above + Fraction(b.tied - b.hits, 2))
    value = Fraction(0)
    for x in range(max(0, cut.slots - (cut.tied - cut.hits)), min(cut.hits, cut.slots) + 1):
        ways = Fraction(math.comb(cut.hits, x) * math.comb(cut.tied - cut.hits, cut.slots - x))
        h = cut.hits_above + x
        misses = n - h
        own = right - x * (cut.above - cut.hits_above + Fraction(cut.slots - x, 2))
        if unseen == "list_only":
            share = oracle.ratio(h * misses + own, h * misses)
        else:
            rest = (n_items or 0) - n_rel
            share = oracle.ratio(h * rest + own + Fraction((n_rel - h) * (rest - misses), 2), n_rel * rest)
        value += ways / math.comb(cut.tied, cut.slots) * share
    return value


def closed_first_reciprocal(blocks: Sequence[Block]) -> Fraction:
    """Only the first block with a hit counts: sum of P(first hit at its j-th rank) / rank."""
    first = next((b for b in blocks if b.hits > 0), None)
    if first is None:
        return Fraction(0)
    value, chance = Fraction(0), Fraction(first.hits, first.tied)
    for j in range(1, min(first.tied - first.hits + 1, first.slots) + 1):
        value += chance / (first.above + j)
        chance *= Fraction(first.tied - j - first.hits + 1, max(1, first.tied - j))
    return value


def closed_gain_sum(blocks: Sequence[Block], weight: Callable[[int], float]) -> float:
    """Sum of G / t times the weights of the block's slots."""
    return math.fsum(
        math.fsum(b.gains) / b.tied * weight(rank) for b in blocks for rank in range(b.above + 1, b.above + b.slots + 1)
    )


def closed_cascade(blocks: Sequence[Block], max_gain: float) -> float:
    """Stop probabilities through mean elementary symmetric polynomials of the others' probabilities to go on."""
    value, survival = Fraction(0), Fraction(1)
    for b in blocks:
        stops = [Fraction((2.0**gain - 1) / 2.0**max_gain) if gain > 0 else Fraction(0) for gain in b.gains]
        for i, stop in enumerate(stops):
            if stop == 0:
                continue
            means = [Fraction(1)] + [Fraction(0)] * (b.slots - 1)
            for size, other in enumerate((s for j, s in enumerate(stops) if j != i), start=1):
                for m in range(min(b.slots - 1, size), 0, -1):
                    means[m] = means[m] * Fraction(size - m, size) + means[m - 1] * Fraction(m, size) * (1 - other)
            for j in range(1, b.slots + 1):
                value += survival * stop / b.tied * means[j - 1] / (b.above + j)
        survival *= math.prod((1 - stop for stop in stops), start=Fraction(1))
    return float(value)


def ideal_sum(u: User, gain: Any, discount: Any, ideal: str) -> float:
    """The divisor of `oracle.ndcg`; the same in every order, so `list_at_k` has none."""
    v = oracle.with_gain(u, gain)
    best = {
        "truth": v.truth[: v.k],
        "truth_uncut": v.truth,
        "list": sorted(v.gains, reverse=True)[: v.k],
        "k": [oracle.gain_of(1, gain)] * v.k_alone,
    }[ideal]
    return oracle.discounted(best, discount)


LINEAR_IN_HITS = ("hits", "precision", "recall", "f_beta", "f1", "accuracy", "specificity", "fallout", "mcc")


def closed_form(metric: str, u: User, blocks: Sequence[tuple[float, ...]], **options: Any) -> float:
    """The expected value of a metric for one user with these tie blocks, highest score first."""
    own = cut_blocks(blocks, u.k)
    user = ExpectedUser(*u)
    user.mean_hits = closed_hits(own)
    if metric in LINEAR_IN_HITS:
        return float(oracle.METRICS[metric](user, **options))
    if metric == "r_precision":
        return float(oracle.ratio(closed_hits(cut_blocks(blocks, u.min_k(u.n_rel))), u.n_rel))
    if metric == "hit_rate":
        return float(closed_hit_rate(own))
    if metric == "mrr":
        return float(closed_first_reciprocal(own))
    if metric == "arhr":
        value = sum((Fraction(b.hits, b.tied) * harmonic(b.above, b.above + b.slots) for b in own), Fraction(0))
        return float(oracle.ratio(value, {"one": 1, "n_rel": u.n_rel}[options.get("denominator", "one")]))
    if metric == "map":
        denominator = options.get("denominator", "min_k_n_rel")
        if denominator == "hits":
            return float(closed_mean_precision(own))
        shorter = min(u.n_rel, u.n_rec)
        under = {"min_k_n_rel": u.min_k(u.n_rel), "n_rel": u.n_rel, "k": u.k_alone, "min_n_rel_n_rec": shorter}
        under["min_k_n_rel_n_rec"] = u.min_k(shorter)
        return float(oracle.ratio(closed_precision_sum(own), under[denominator]))
    if metric == "limited_auc":
        return float(closed_limited_auc(own, options.get("unseen", "tail_mean"), u.n_rel, u.n_items))
    if metric == "err":
        return closed_cascade(own, options["max_gain"])
    return closed_gains(metric, u, own, **options)


def closed_gains(
    metric: str,
    u: User,
    blocks: Sequence[Block],
    *,
    gain: Any = "linear",
    discount: Any = "log2",
    ideal: str = "truth",
    p: float = 0.8,
) -> float:
    mapped = [b._replace(gains=tuple(oracle.gain_of(grade, gain) for grade in b.gains)) for b in blocks]
    if metric == "cg":
        return closed_gain_sum(mapped, lambda rank: 1.0)
    if metric == "rbp":
        return (1 - p) * closed_gain_sum(mapped, lambda rank: p ** (rank - 1))
    total = closed_gain_sum(mapped, lambda rank: oracle.rank_weight(rank, discount))
    return total if metric == "dcg" else float(oracle.ratio(total, ideal_sum(u, gain, discount, ideal)))


# Rows


class Row(NamedTuple):
    """Scored row: whether it is positive (or its target, for errors), its score, its weight."""

    label: float
    score: float
    weight: Fraction


Rows = tuple[Row, ...]


def weight_of(rows: Iterable[Row]) -> Fraction:
    return sum((row.weight for row in rows), Fraction(0))


def positives(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.label == 1]


def negatives(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.label == 0]


def weighted(rows: Iterable[Row], value: Callable[[Row], Number]) -> Number:
    """Sum of weight times value, exact if the values are."""
    return total([row.weight * value(row) for row in rows])


def total(values: Sequence[Number]) -> Number:
    if any(isinstance(value, float) for value in values):
        return math.fsum(values)
    return sum(values, Fraction(0))


def quotient(numerator: Number, denominator: Number) -> Number | None:
    """The quotient, or None for a divisor of 0."""
    return None if denominator == 0 else oracle.ratio(numerator, denominator)


class Point(NamedTuple):
    """Weight of the positives and negatives with at least this score."""

    score: float
    tp: Fraction
    fp: Fraction


def points(rows: Iterable[Row]) -> list[Point]:
    """A point per distinct score, highest first."""
    out = []
    tp = fp = Fraction(0)
    for _, block in itertools.groupby(sorted(rows, key=lambda row: row.score, reverse=True), key=lambda row: row.score):
        tied = list(block)
        tp, fp = tp + weight_of(positives(tied)), fp + weight_of(negatives(tied))
        out.append(Point(tied[0].score, tp, fp))
    return out


# Order metrics of rows


@functools.lru_cache(maxsize=4096)
def all_pairs(rows: Rows) -> Fraction | None:
    """P(score of a positive > score of a negative) + 1/2 P(equal), pair by pair."""
    right = pairs = Fraction(0)
    for good in positives(rows):
        for bad in negatives(rows):
            pair = good.weight * bad.weight
            pairs += pair
            if good.score > bad.score:
                right += pair
            elif good.score == bad.score:
                right += pair * HALF
    return None if pairs == 0 else right / pairs


def auc(rows: Rows, *, scale: str = "mcclish", **limits: float) -> Number | None:
    """`all_pairs`; between two rates the area under (or right of) the ROC curve, standardised (McClish 1989)."""
    if not positives(rows) or not negatives(rows):
        return None
    side, low, high = limits_of(**limits)
    if (low, high) == (0, 1):
        return all_pairs(rows)
    return scaled(part_of_area(rows, side, low, high), side, low, high, scale)


def limits_of(**limits: float) -> tuple[str, Fraction, Fraction]:
    """The rate that has limits, and these."""
    side = "tpr" if "min_tpr" in limits or "max_tpr" in limits else "fpr"
    return side, Fraction(limits.get(f"min_{side}", 0)), Fraction(limits.get(f"max_{side}", 1))


def allows(metric: str, options: Mapping[str, Any]) -> bool:
    """Whether limits of the ROC curve are of one rate and in their order."""
    if metric not in ("auc", "log_auc"):
        return True
    names = {name[4:] for name in options if name[:4] in ("min_", "max_") and name != "min_gain"}
    given = {name: value for name, value in options.items() if name[4:] in names}
    if metric == "log_auc":
        given = {"min_fpr": 0.001, "max_fpr": 0.1} | given
    return len(names) < 2 and limits_of(**given)[1] < limits_of(**given)[2]


def part_of_area(rows: Rows, side: str, low: Fraction, high: Fraction) -> Fraction:
    """The integral of sensitivity over false positive rates, or of specificity over sensitivities."""
    if side == "fpr":
        return roc_area(rows, high) - roc_area(rows, low)
    mirrored = tuple(row._replace(label=1 - row.label, score=-row.score) for row in rows)
    return roc_area(mirrored, 1 - low) - roc_area(mirrored, 1 - high)


def scaled(area: Fraction, side: str, low: Fraction, high: Fraction, scale: str) -> Fraction:
    width = high - low
    chance = width * (low + high) / 2
    chance = chance if side == "fpr" else width - chance
    from_corner = low == 0 if side == "fpr" else high == 1
    if scale == "mcclish" and area < chance and not from_corner:
        return area / chance / 2
    return {"mcclish": HALF * (1 + (area - chance) / (width - chance)), "width": area / width, "raw": area}[scale]


def log_auc(
    rows: Rows, *, min_fpr: float = 0.001, max_fpr: float = 0.1, interpolation: str = "linear"
) -> Number | None:
    """Integral of TPR over the logarithm of FPR, over that of 1."""
    if not positives(rows) or not negatives(rows):
        return None
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    low, high = Fraction(min_fpr), Fraction(max_fpr)
    curve = [Point(math.inf, Fraction(0), Fraction(0)), *points(rows)]
    area = Fraction(0)
    for before, after in itertools.pairwise(curve):
        left, right = before.fp / n_neg, after.fp / n_neg
        start, stop = max(left, low), min(right, high)
        if stop <= start:
            continue
        slope = (after.tp - before.tp) / n_pos / (right - left)
        ends = [before.tp / n_pos + slope * (at - left) for at in (start, stop)]
        width = logarithm(stop / start)
        if interpolation == "log":
            area += width * (ends[0] + ends[1]) / 2
        else:
            area += slope * (stop - start) + (ends[0] - slope * start) * width
    return area / logarithm(high / low)


def logarithm(value: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def share_at(point: Point, name: str, everything: Point) -> Fraction | None:
    """A rate of the rows at or above a threshold; None for 0 / 0."""
    up, down = {
        "precision": (point.tp, point.tp + point.fp),
        "recall": (point.tp, everything.tp),
        "specificity": (everything.fp - point.fp, everything.fp),
    }[name]
    return None if down == 0 else up / down


def best_where(rows: Rows, name: str, other: str, at: float) -> Number | None:
    """The largest value of a rate at thresholds where the double nearest to another is at least `at`."""
    if not positives(rows) or (not negatives(rows) and "specificity" in (name, other)):
        return None
    curve = [Point(math.inf, Fraction(0), Fraction(0)), *points(rows)]
    shares = [(share_at(point, name, curve[-1]), share_at(point, other, curve[-1])) for point in curve]
    return max(
        (own for own, limit in shares if own is not None and limit is not None and float(limit) >= at), default=0
    )


def eer(rows: Rows, *, interpolation: str = "linear") -> Number | None:
    """The rate at which as many of the positives as of the negatives are on the wrong side."""
    if not positives(rows) or not negatives(rows):
        return None
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    curve = [Point(math.inf, Fraction(0), Fraction(0)), *points(rows)]
    rates = [(point.fp / n_neg, 1 - point.tp / n_pos) for point in curve]
    if interpolation == "nearest":
        return sum(min(rates, key=lambda own: abs(own[0] - own[1]))) / 2
    for (wrong, missed), (wrong2, missed2) in itertools.pairwise(rates):
        if wrong2 >= missed2:
            share = (missed - wrong) / (missed - wrong + wrong2 - missed2)
            return wrong + share * (wrong2 - wrong)
    raise AssertionError("the curve ends at 1")


def roc_area(rows: Rows, limit: Fraction = Fraction(1)) -> Fraction:
    """Trapezoids under the ROC curve from false positive rate 0 to the limit, which cuts the last one."""
    curve = [Point(math.inf, Fraction(0), Fraction(0)), *points(rows)]
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    area = Fraction(0)
    for before, after in itertools.pairwise(curve):
        left, right = before.fp / n_neg, after.fp / n_neg
        low, high = before.tp / n_pos, after.tp / n_pos
        if left < limit < right:
            high = low + (high - low) * (limit - left) / (right - left)
            right = limit
        if right <= limit:
            area += (right - left) * (low + high) / 2
    return area


def twice_won(labels: Sequence[float], scores: Sequence[float]) -> int:
    """2 x pairs in the right order, ties counting one half, for too many rows to go through their pairs."""
    won = below = 0
    pairs = sorted(zip(scores, labels, strict=True))
    for _, block in itertools.groupby(pairs, key=lambda pair: pair[0]):
        own = [label for _, label in block]
        n_pos, n_neg = own.count(1), own.count(0)
        won += n_pos * (2 * below + n_neg)
        below += n_neg
    return won


def delong_error(rows: Rows) -> float:
    """Standard error of `auc` (DeLong et al. 1988), from the placement of each row among those of the other class.

    For each class P / (P - 1) * sum of w² (placement - auc)² / (sum of w)², over its P rows; the root of their sum.
    """
    good, bad = positives(rows), negatives(rows)
    if len(good) < 2 or len(bad) < 2:
        return math.nan
    area = all_pairs(rows)
    assert area is not None

    def won(p: Row, n: Row) -> Fraction:
        return Fraction(1) if p.score > n.score else HALF if p.score == n.score else Fraction(0)

    of_good = [weighted(bad, lambda n, p=p: won(p, n)) / weight_of(bad) - area for p in good]  # type: ignore[misc]
    of_bad = [weighted(good, lambda p, n=n: won(p, n)) / weight_of(good) - area for n in bad]  # type: ignore[misc]
    return math.sqrt(spread_of_mean(of_good, good) + spread_of_mean(of_bad, bad))


def spread_of_mean(residuals: Sequence[Number], rows: Sequence[Row]) -> Number:
    squares = total([(row.weight * residual) ** 2 for row, residual in zip(rows, residuals, strict=True)])
    return Fraction(len(rows), len(rows) - 1) * squares / weight_of(rows) ** 2


def average_precision(rows: Rows, *, interpolation: str = "step") -> Number | None:
    """Area under precision over recall, a point per distinct score."""
    n_pos = weight_of(positives(rows))
    if n_pos == 0:
        return None
    curve = points(rows)
    if interpolation == "trapezoid":
        heights = [point.tp / (point.tp + point.fp) for point in curve]
        # recall 0 has the precision of the first threshold
        return (
            trapezoids([(Fraction(0), heights[0]), *zip((point.tp for point in curve), heights, strict=True)]) / n_pos
        )
    area = {"step": step_area, "davis_goadrich": interpolated_area}[interpolation]
    start = Point(math.inf, Fraction(0), Fraction(0))
    return total([area(before, after) for before, after in itertools.pairwise([start, *curve])]) / n_pos


def step_area(before: Point, after: Point) -> Fraction:
    """The gain in recall, times n_pos, with its precision."""
    return (after.tp - before.tp) * after.tp / (after.tp + after.fp)


def trapezoids(curve: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return sum(((x - w) * (y + v) / 2 for (w, v), (x, y) in itertools.pairwise(curve)), Fraction(0))


def interpolated_area(before: Point, after: Point) -> Fraction:
    """Integral of TP / (TP + FP) over TP, FP a straight line between the points (Davis & Goadrich 2006).

    With FP = a TP + b it is the integral of x / ((1 + a) x + b): x/(1+a) - b/(1+a)² log((1+a) x + b).
    """
    if after.tp == before.tp:
        return Fraction(0)
    slope = 1 + (after.fp - before.fp) / (after.tp - before.tp)
    offset = before.fp - (slope - 1) * before.tp
    area = (after.tp - before.tp) / slope
    if offset == 0:
        return area
    growth = (slope * after.tp + offset) / (slope * before.tp + offset)
    with localcontext() as context:
        context.prec = 60
        log = (Decimal(growth.numerator) / Decimal(growth.denominator)).ln()
    return area - offset / slope**2 * Fraction(log)


def ks(rows: Rows) -> Number | None:
    """Largest distance between the distributions of the scores of positives and negatives."""
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    if n_pos == 0 or n_neg == 0:
        return None
    return max(abs(point.tp / n_pos - point.fp / n_neg) for point in points(rows))


# Probabilities


def log_loss(rows: Rows, *, eps: float = DOUBLE_EPS) -> Number | None:
    """Mean of -log p of the label, p clipped to [eps, 1 - eps] with the eps of the scores' type."""
    return quotient(weighted(rows, lambda row: cross_entropy(row, eps)), weight_of(rows))


def cross_entropy(row: Row, eps: float) -> float:
    p = min(max(row.score, eps), 1 - eps)
    return -math.log(p) if row.label == 1 else -math.log1p(-p)


def brier(rows: Rows) -> Number | None:
    return quotient(weighted(rows, lambda row: (Fraction(row.score) - Fraction(row.label)) ** 2), weight_of(rows))


def normalized_entropy(rows: Rows, *, eps: float = DOUBLE_EPS) -> Number | None:
    """log_loss over the log loss of the base rate."""
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    if n_pos == 0 or n_neg == 0:
        return None
    loss = log_loss(rows, eps=eps)
    assert loss is not None
    rate, rest = n_pos / (n_pos + n_neg), n_neg / (n_pos + n_neg)
    return float(loss) / -(float(rate) * log_of(rate) + float(rest) * log_of(rest))


def log_of(share: Fraction) -> float:
    """log1p or log, to all digits, also of a share near 1."""
    return math.log(share) if share < HALF else math.log1p(float(share - 1))


def calibration(rows: Rows) -> Number | None:
    """Sum of scores over sum of labels."""
    return quotient(weighted(rows, lambda row: Fraction(row.score)), weight_of(positives(rows)))


def ece(rows: Rows, *, bins: int = 15, strategy: str = "uniform", norm: str = "l1") -> Number | None:
    """The mean over rows of the distance |mean of p - y| of a bin, or the root of its mean square, or the largest."""
    bin_of = {"uniform": uniform_bins, "quantile": quantile_bins}[strategy](rows, int(bins))
    members: dict[int, list[Row]] = {}
    for row in rows:
        members.setdefault(bin_of[row.score], []).append(row)
    sums = [
        (weighted(own, lambda row: Fraction(row.score) - Fraction(row.label)), weight_of(own))
        for own in members.values()
    ]
    if norm == "l1":
        return quotient(total([abs(gap) for gap, _ in sums]), weight_of(rows))
    distances = [(abs(Fraction(gap)) / weight, weight) for gap, weight in sums]
    if norm == "max":
        return max((distance for distance, _ in distances), default=None)
    mean = quotient(total([weight * distance**2 for distance, weight in distances]), weight_of(rows))
    return None if mean is None else root(Fraction(mean))


def uniform_bins(rows: Rows, bins: int) -> dict[float, int]:
    """Bin b holds the scores from b/bins up to, not including, (b+1)/bins; the last one is closed."""
    return {row.score: max(b for b in range(bins) if row.score >= b / bins) for row in rows}


def quantile_bins(rows: Rows, bins: int) -> dict[float, int]:
    """Rows by ascending score, cut at the multiples of W/bins; tied rows go into the bin of the first of them."""
    whole, below = weight_of(rows), Fraction(0)
    out: dict[float, int] = {}
    for row in sorted(rows, key=lambda row: row.score):
        out.setdefault(row.score, min(bins - 1, math.floor(below * bins / whole)))
        below += row.weight
    return out


# Classes at a threshold


class Counts(NamedTuple):
    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction


def counts_at(rows: Rows, threshold: float) -> Counts:
    """The confusion matrix of score >= threshold."""
    above = [row for row in rows if row.score >= threshold]
    below = [row for row in rows if row.score < threshold]
    return Counts(
        tp=weight_of(positives(above)),
        fp=weight_of(negatives(above)),
        fn=weight_of(positives(below)),
        tn=weight_of(negatives(below)),
    )


def f_beta_at(t: Counts, beta: float) -> tuple[Fraction, Fraction]:
    square = Fraction(beta) ** 2
    return (1 + square) * t.tp, (1 + square) * t.tp + square * t.fn + t.fp


def mcc_at(t: Counts) -> tuple[Number, Number]:
    product = (t.tp + t.fp) * (t.tp + t.fn) * (t.tn + t.fp) * (t.tn + t.fn)
    return t.tp * t.tn - t.fp * t.fn, root(product)


def root(value: Fraction) -> float:
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def kappa_at(t: Counts) -> tuple[Fraction, Fraction]:
    """The observed agreement and that by chance, from the shares of each class in labels and in predictions."""
    whole = sum(t)
    observed = quotient(t.tp + t.tn, whole)
    by_chance = quotient((t.tp + t.fp) * (t.tp + t.fn) + (t.tn + t.fn) * (t.tn + t.fp), whole**2)
    if observed is None or by_chance is None:
        return Fraction(0), Fraction(0)
    return Fraction(observed - by_chance), Fraction(1 - by_chance)


def mean_of_rates_at(t: Counts) -> tuple[Fraction, Fraction]:
    good, bad = t.tp + t.fn, t.tn + t.fp
    return t.tp * bad + t.tn * good, 2 * good * bad


def rates_at(t: Counts) -> tuple[Fraction, Fraction]:
    """The square of `g_mean`."""
    return t.tp * t.tn, (t.tp + t.fn) * (t.tn + t.fp)


CLASSES: dict[str, Callable[..., tuple[Number, Number]]] = {
    "precision": lambda t: (t.tp, t.tp + t.fp),
    "recall": lambda t: (t.tp, t.tp + t.fn),
    "specificity": lambda t: (t.tn, t.tn + t.fp),
    "fpr": lambda t: (t.fp, t.fp + t.tn),
    "accuracy": lambda t: (t.tp + t.tn, sum(t)),
    "f_beta": lambda t, beta=1: f_beta_at(t, beta),
    "f1": lambda t: f_beta_at(t, 1),
    "mcc": mcc_at,
    "balanced_accuracy": mean_of_rates_at,
    "g_mean": lambda t: (root(rates_at(t)[0]), root(rates_at(t)[1])),
    "cohen_kappa": kappa_at,
    "hamming": lambda t: (t.fp + t.fn, sum(t)),
    "fallout": lambda t: (t.fp, t.fp + t.tn),
}
NOT_SUMS = ("mcc", "balanced_accuracy", "g_mean", "cohen_kappa")  # of CLASSES: no ratio of sums over users


# Errors of predictions


def mse(rows: Rows) -> Number | None:
    return quotient(weighted(rows, lambda row: (Fraction(row.label) - Fraction(row.score)) ** 2), weight_of(rows))


def rmse(rows: Rows) -> Number | None:
    value = mse(rows)
    return None if value is None else root(Fraction(value))


def mae(rows: Rows) -> Number | None:
    return quotient(weighted(rows, lambda row: abs(Fraction(row.label) - Fraction(row.score))), weight_of(rows))


def mape(rows: Rows, *, eps: float = 2.0**-52) -> Number | None:
    def share(row: Row) -> Fraction:
        return abs(Fraction(row.label) - Fraction(row.score)) / max(abs(Fraction(row.label)), Fraction(eps))

    return quotient(weighted(rows, share), weight_of(rows))


def spread_of(rows: Rows) -> Fraction:
    """Sum of the squared distances of the targets from their mean."""
    mean = Fraction(quotient(weighted(rows, lambda row: Fraction(row.label)), weight_of(rows)) or 0)
    return Fraction(weighted(rows, lambda row: (Fraction(row.label) - mean) ** 2))


def r2(rows: Rows) -> Number | None:
    share = quotient(weighted(rows, lambda row: (Fraction(row.label) - Fraction(row.score)) ** 2), spread_of(rows))
    return None if share is None else 1 - Fraction(share)


def xauc(rows: Rows) -> Number | None:
    """The pairs with different labels whose scores are in their order, and half of those with equal scores."""
    right = pairs = Fraction(0)
    for low, high in itertools.permutations(rows, 2):
        if low.label < high.label:
            weight = low.weight * high.weight
            pairs += weight
            right += weight * (1 if low.score < high.score else HALF if low.score == high.score else 0)
    return quotient(right, pairs)


def kendall_tau(rows: Rows, *, variant: str = "b") -> float | None:
    """By comparing all pairs of rows."""
    balance = targets = scores = Fraction(0)
    for one, other in itertools.combinations(rows, 2):
        weight = one.weight * other.weight
        of_labels, of_scores = ((a > b) - (a < b) for a, b in zip(one[:2], other[:2], strict=True))
        balance += weight * of_labels * of_scores
        targets += weight * abs(of_labels)
        scores += weight * abs(of_scores)
    if not targets or not scores:
        return None
    if variant == "b":
        return float(balance) / (math.sqrt(targets) * math.sqrt(scores))
    levels = min(len({row.label for row in rows}), len({row.score for row in rows}))
    return float(2 * balance / (weight_of(rows) ** 2 * Fraction(levels - 1, levels)))


def spearman_rho(rows: Rows) -> float | None:
    """The correlation of mean ranks; a row of weight w is w rows."""

    def rank(own: float, values: Sequence[float]) -> Fraction:
        below = sum((row.weight for row, value in zip(rows, values, strict=True) if value < own), Fraction(0))
        tied = sum((row.weight for row, value in zip(rows, values, strict=True) if value == own), Fraction(0))
        return below + (tied + 1) / 2

    total = weight_of(rows)
    columns = []
    for values in ([row.label for row in rows], [row.score for row in rows]):
        ranks = [rank(own, values) for own in values]
        mean = sum(row.weight * own for row, own in zip(rows, ranks, strict=True)) / total
        columns.append([own - mean for own in ranks])
    both, targets, scores = (
        sum(row.weight * columns[a][at] * columns[b][at] for at, row in enumerate(rows))
        for a, b in ((0, 1), (0, 0), (1, 1))
    )
    return float(both) / (math.sqrt(targets) * math.sqrt(scores)) if targets and scores else None


def value_of_constant(rows: Rows, constant: str, constant_targets: str) -> float | None:
    """The value of a user without a rank correlation: the targets decide before the scores."""
    if len({row.label for row in rows}) == 1:
        return {"drop": None, "zero": 0.0, "nan": math.nan}[constant_targets]
    return {"drop": None, "zero": 0.0}[constant]


# One metric of all users


class Kind(NamedTuple):
    """Metric of rows: its value (None if undefined), and its parts over rows and of one user.

    `parts` are numerator and denominator of one user's rows, given all rows, if the value over rows is the sum of the
    numerators over the sum of the denominators.
    """

    value: Callable[..., Number | None]
    parts: Callable[[Rows, Rows], tuple[Number, Number]] | None = None
    over_rows: float = math.nan
    of_user: Callable[[Rows], float | None] = lambda rows: None


def mean_parts(value: Callable[[Rows], Number | None]) -> Callable[[Rows, Rows], tuple[Number, Number]]:
    """The parts of a mean over rows."""
    return lambda own, everything: (weight_of(own) * (value(own) or 0), weight_of(own))


def calibration_parts(own: Rows, everything: Rows) -> tuple[Number, Number]:
    return weighted(own, lambda row: Fraction(row.score)), weight_of(positives(own))


def entropy_parts(own: Rows, everything: Rows, *, eps: float) -> tuple[Number, Number]:
    """The entropy is that of the base rate of all rows, and moves with it as if the rate were constant."""
    rate = weight_of(positives(everything)) / weight_of(everything)
    loss = weighted(own, lambda row: cross_entropy(row, eps))
    if rate in (0, 1):
        return loss, 0
    entropy = weight_of(positives(own)) * log_of(rate) + weight_of(negatives(own)) * log_of(1 - rate)
    return loss, -entropy


ROWS: dict[str, Callable[..., Number | None]] = {
    "auc": auc,
    "average_precision": average_precision,
    "log_loss": log_loss,
    "brier": brier,
    "normalized_entropy": normalized_entropy,
    "calibration": calibration,
    "ece": ece,
    "ks": ks,
    "log_auc": log_auc,
    "eer": eer,
    "recall_at_precision": lambda rows, at: best_where(rows, "recall", "precision", at),
    "precision_at_recall": lambda rows, at: best_where(rows, "precision", "recall", at),
    "sensitivity_at_specificity": lambda rows, at: best_where(rows, "recall", "specificity", at),
    "specificity_at_sensitivity": lambda rows, at: best_where(rows, "specificity", "recall", at),
    "mae": mae,
    "mse": mse,
    "rmse": rmse,
    "mape": mape,
    "r2": r2,
    "xauc": xauc,
    "kendall_tau": kendall_tau,
    "spearman_rho": spearman_rho,
}
OF_ALL_ROWS = (  # no user has a value
    "auc",
    "log_auc",
    "eer",
    "recall_at_precision",
    "precision_at_recall",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
)
CORRELATIONS = ("kendall_tau", "spearman_rho")
ERRORS = ("mae", "mse", "rmse", "mape", "r2", "xauc", *CORRELATIONS)
PROBABILITIES = ("log_loss", "brier", "normalized_entropy", "ece")
DEFAULT_AVERAGE = "row"
MEANS = ("log_loss", "brier", "mae", "mse", "mape")


def is_of_rows(metric: str, options: Mapping[str, Any]) -> bool:
    """Return whether a metric is one of rows; otherwise it is one of ranks."""
    return metric in ROWS or metric == "gauc" or (metric in CLASSES and "threshold" in options)


def is_positive(label: float, min_gain: float | None) -> float:
    if min_gain is not None:
        return float(label >= min_gain)
    if label not in (0, 1):
        raise ValueError(f"label {label} is neither 0 nor 1, and there is no min_gain")
    return float(label)


def rows_of(
    labels: Sequence[float],
    scores: Sequence[float],
    weights: Sequence[float] | None,
    label_of: Callable[[float], float],
) -> Rows:
    """The rows of one user that have weight."""
    own = [1.0] * len(labels) if weights is None else weights
    rows = (
        Row(label_of(label), score, Fraction(weight)) for label, score, weight in zip(labels, scores, own, strict=True)
    )
    out = tuple(row for row in rows if row.weight)
    if any(math.isnan(row.score) for row in out):
        raise ValueError("a score is NaN")
    return out


def evaluate(
    labels: Sequence[Sequence[float]],
    scores: Sequence[Sequence[float]],
    metric: str,
    *,
    k: int | None = None,
    options: Mapping[str, Any] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    item_ids: Sequence[Sequence[Item]] | None = None,
    sample_weight: Sequence[Sequence[float]] | None = None,
    weights: Sequence[float] | None = None,
    ties: str = "expected",
    no_truth: str = "skip",
    one_class: str = "drop",
    eps: float = DOUBLE_EPS,
    errors: bool = True,
) -> Result:
    """One metric, by its bare name, over the labelled and scored rows of each user.

    `eps` is that of the scores' type. Without `errors` values over rows have none: those of areas take long. Over rows
    `users` is the number of users with rows; `per_user` holds the value of each of them also if the mean is over rows,
    but none for `auc`.
    """
    options = dict(options or {})
    if not is_of_rows(metric, options):
        if sample_weight is not None:
            raise ValueError(f"{metric} has no weights of rows")
        items = [list(range(len(own))) for own in labels] if item_ids is None else item_ids
        truth = [list(zip(own, gains, strict=True)) for own, gains in zip(items, labels, strict=True)]
        call: dict[str, Any] = {"k": k, "options": options, "min_gain": min_gain, "n_items": n_items}
        call |= {"no_truth": no_truth, "weights": weights}
        if ties == "expected":
            return evaluate_lists(items, truth, scores, metric, **call)
        return oracle.evaluate(items, truth, metric, scores=scores, ties=ties, **call)
    if k is not None:
        raise ValueError(f"{metric} has no cut-off")
    limit = options.pop("min_gain", min_gain)

    def label_of(label: float) -> float:
        return label if metric in ERRORS else is_positive(label, limit)

    rows_by_user = [
        rows_of(own, scores[u], None if sample_weight is None else sample_weight[u], label_of)
        for u, own in enumerate(labels)
    ]
    user_weights = [1.0] * len(labels) if weights is None else weights
    if metric == "gauc":
        return grouped_auc(rows_by_user, user_weights, one_class, **options)
    return averaged(metric, rows_by_user, user_weights, options, eps, errors=errors)


def averaged(
    metric: str,
    users: Sequence[Rows],
    weights: Sequence[float],
    options: dict[str, Any],
    eps: float,
    *,
    errors: bool = True,
) -> Result:
    """The value over all rows, or the mean of the users' values."""
    average = options.pop("average", DEFAULT_AVERAGE)
    if metric in PROBABILITIES and any(not 0 <= row.score <= 1 for rows in users for row in rows):
        raise ValueError(f"{metric} needs scores from 0 to 1")
    kind = kind_of(metric, options, eps)
    per_user: list[float | None] = []
    for rows in users:
        value = kind.value(rows) if rows else None
        per_user.append(float(value) if value is not None else kind.of_user(rows) if rows else None)
    if average == "user":
        is_nan = any(value is not None and math.isnan(value) for value in per_user)
        counted = [
            (value, weight)
            for value, weight in zip(per_user, weights, strict=True)
            if value is not None and not math.isnan(value)
        ]
        value, error = math.nan, math.nan
        if not is_nan and math.fsum(weight for _, weight in counted) > 0:
            value, error = oracle.mean_over_users([v for v, _ in counted], [w for _, w in counted])
        return Result(value, error, len(counted), per_user, 0, 0)
    if average != "row":
        raise ValueError(f"{metric} has no average={average}")
    everything = tuple(
        row._replace(weight=row.weight * Fraction(weight))
        for rows, weight in zip(users, weights, strict=True)
        for row in rows
        if weight > 0
    )
    found = kind.value(everything) if everything else None
    present = [(rows, weight) for rows, weight in zip(users, weights, strict=True) if rows]
    instead = kind.over_rows if present or metric == "average_precision" else math.nan
    value = instead if found is None else float(found)
    return Result(
        value,
        error_over_rows(metric, kind, present, everything, options) if errors else None,
        len(present),
        [None] * len(users) if metric in OF_ALL_ROWS else per_user,
        0,
        0,
    )


def error_over_rows(
    metric: str, kind: Kind, users: Sequence[tuple[Rows, float]], everything: Rows, options: Mapping[str, Any]
) -> float | None:
    """The standard error of a value over rows, or None."""
    if metric in ("auc", "average_precision", "r2", *NOT_SUMS):
        return error_by_slopes(metric, users, everything, options)
    if kind.parts is None or not everything:
        return math.nan
    parts = [kind.parts(rows, everything) for rows, _ in users]
    value, error = oracle.pooled_ratio(parts, [weight for _, weight in users])
    if metric != "rmse" or error is None:
        return error
    return error / (2 * math.sqrt(value)) if value > 0 else error  # if the mean is 0, all squares are


def error_by_slopes(
    metric: str, users: Sequence[tuple[Rows, float]], everything: Rows, options: Mapping[str, Any]
) -> float:
    """The standard error over users of a value that is smooth in the weights of rows."""
    from support import clustered_oracle  # which reads this module

    by_user = [tuple(row._replace(weight=row.weight * Fraction(own)) for row in rows) for rows, own in users]
    if metric == "mcc":
        if mcc_at(counts_at(everything, options["threshold"]))[1] == 0:
            return math.nan
        return clustered_oracle.error_over_users(
            clustered_oracle.slope_of_mcc(everything, options["threshold"]), by_user
        )
    if metric in NOT_SUMS:
        slope_at = clustered_oracle.slope_at_threshold(metric, everything, options["threshold"])
        return math.nan if slope_at is None else clustered_oracle.error_over_users(slope_at, by_user)
    if metric == "r2":
        slope = clustered_oracle.slope_of_r2(everything) if spread_of(everything) else None
        return math.nan if slope is None else clustered_oracle.error_over_users(slope, by_user)
    if options.get("interpolation", "step") != "step" or clustered_oracle.few_users_of_a_class(by_user):
        return math.nan
    if metric == "auc":
        slope = functools.partial(clustered_oracle.slope_of_auc, **options)
    else:
        slope = clustered_oracle.slope_of_precision
    return clustered_oracle.error_over_users(slope(everything), by_user)


def kind_of(metric: str, options: dict[str, Any], eps: float) -> Kind:
    """The metric with its options; for a metric of classes `zero_division` replaces 0/0."""
    inner = {name: value for name, value in options.items() if value != "none"}
    if "threshold" in inner:
        threshold = inner.pop("threshold")
        zero = float(inner.pop("zero_division", 0))

        def cells(rows: Rows) -> tuple[Number, Number]:
            return CLASSES[metric](counts_at(rows, threshold), **inner)

        return Kind(
            lambda rows: quotient(*cells(rows)),
            None if metric in NOT_SUMS else lambda own, everything: cells(own),
            over_rows=zero,
            of_user=lambda rows: None if math.isnan(zero) else zero,
        )
    if metric in CORRELATIONS:
        constants = inner.pop("constant", "zero"), inner.pop("constant_targets", "drop")
        value = functools.partial(ROWS[metric], **inner)
        return Kind(value, of_user=lambda rows: value_of_constant(rows, *constants))
    if metric in ("log_loss", "normalized_entropy"):
        inner["eps"] = eps
    value = functools.partial(ROWS[metric], **inner) if inner else ROWS[metric]
    if metric in MEANS or metric == "rmse":
        return Kind(value, mean_parts(mse if metric == "rmse" else value))
    if metric == "normalized_entropy":
        return Kind(value, functools.partial(entropy_parts, eps=eps))
    if metric == "calibration":
        return Kind(value, calibration_parts)
    return Kind(value, over_rows=0.0 if metric == "average_precision" else math.nan)


def grouped_auc(
    users: Sequence[Rows],
    user_weights: Sequence[float],
    policy: str,
    *,
    weight: str = "impressions",
    one_class: str = "call",
    constant: str = "half",
) -> Result:
    """Weighted mean of the users' AUCs, with an error by the delta method for a ratio of sums."""
    policy = policy if one_class == "call" else one_class
    per_user = [user_auc(rows, policy, constant) for rows in users]
    is_nan = any(value is not None and math.isnan(value) for value in per_user)
    counted = [
        (value, float(gauc_weight(rows, weight)) * own)
        for value, rows, own in zip(per_user, users, user_weights, strict=True)
        if value is not None and not math.isnan(value)
    ]
    values, weights = [value for value, _ in counted], [own for _, own in counted]
    if is_nan or math.fsum(weights) == 0:
        return Result(math.nan, math.nan, len(counted), per_user, 0, 0)
    return Result(*oracle.mean_over_users(values, weights), len(counted), per_user, 0, 0)


def user_auc(rows: Rows, one_class: str, constant: str) -> float | None:
    """A user's AUC, or the value of a policy; None for a user who is left out."""
    if not rows:
        return None
    value = all_pairs(rows)
    if value is None:
        if one_class == "error":
            raise ValueError("a user has one class")
        return {"drop": None, "half": 0.5, "zero": 0.0, "nan": math.nan}[one_class]
    if constant == "drop" and len({row.score for row in rows}) == 1:
        return None
    if constant not in ("half", "drop"):
        raise ValueError(f"unknown constant {constant}")
    return float(value)


def gauc_weight(rows: Rows, weight: str) -> Fraction:
    n_pos, n_neg = weight_of(positives(rows)), weight_of(negatives(rows))
    return {
        "impressions": n_pos + n_neg,
        "positives": n_pos,
        "negatives": n_neg,
        "pairs": n_pos * n_neg,
        "equal": Fraction(1),
    }[weight]

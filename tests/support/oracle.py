"""The naive evaluator, the reference of every fast path.

Plain Python: lists, dicts, `fractions` and `math`; no NumPy and nothing of the package under test.
Read it beside the definitions: one small function per metric, with all its options in the signature,
and sums in `Fraction` or `math.fsum`. Speed does not matter here.

Fixed readings of the definitions:

- An item is relevant if and only if its gain is > 0 and, when `min_gain` is given, at least `min_gain`.
  Every other item has gain 0 everywhere: in the list, in the ideal, in `n_rel`.
- `n_rec` is the length of the whole list (after `exclude` and `duplicates`), never of its first k.
- Without a cut-off, k is infinite inside min(k, x), and `n_rec` if a formula divides by k alone.
- 0/0 is 0.
- A list is built in this order: seen items out, order by score, duplicates.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Item = int | str
Number = int | float | Fraction
Table = Sequence[float]


class Result(NamedTuple):
    """Result of `evaluate`.

    `value` is the mean over the counted users, or the pooled form or form of means; NaN if no user counts.
    `std_error` is NaN for fewer than two users, and None if the delta method has no derivative (0/0).
    `per_user` holds None for a user who is not counted and NaN under the policy nan.
    `users` is the number of counted users, that is of values that are not None.
    `no_truth` and `no_recs` are numbers of users, whatever the policy.
    """

    value: float
    std_error: float | None
    users: int
    per_user: list[float | None]
    no_truth: int
    no_recs: int


class User(NamedTuple):
    """User in the form for metrics: gains by rank, gains of the relevant items (largest first), limits."""

    gains: list[float]
    truth: list[float]
    k: int | None = None
    n_items: int | None = None
    n_judged: int = 0  # rows in the truth, relevant or not
    n_other: int = 0  # rows in the truth that are judged not relevant: of gain 0 and more
    kinds: Sequence[str] = ()  # of each rank: "relevant", "other", "pooled" (in the truth, below 0) or "unknown"

    @property
    def n_rec(self) -> int:
        return len(self.gains)

    @property
    def n_rel(self) -> int:
        return len(self.truth)

    @property
    def top(self) -> list[float]:
        """The gains of the first k ranks."""
        return self.gains[: self.k]

    @property
    def hit_ranks(self) -> list[int]:
        """The ranks up to k that hold a relevant item, counted from 1."""
        return [rank for rank, gain in enumerate(self.top, start=1) if gain > 0]

    @property
    def n_hits(self) -> int:
        return len(self.hit_ranks)

    @property
    def k_alone(self) -> int:
        """k in a formula that divides only by it: the length of the list if there is no cut-off."""
        return self.n_rec if self.k is None else self.k

    def min_k(self, count: int) -> int:
        """min(k, count), with an infinite k if there is no cut-off."""
        return count if self.k is None else min(self.k, count)


def ratio(numerator: Number, denominator: Number) -> Number:
    """The quotient, and 0 for 0/0; exact if both are integers or fractions."""
    if numerator == 0 and denominator == 0:
        return 0
    if isinstance(numerator, float) or isinstance(denominator, float):
        return float(numerator) / float(denominator)
    return Fraction(numerator) / Fraction(denominator)


# Hits.


def hits(u: User) -> Number:
    """h_k."""
    return u.n_hits


def hit_rate(u: User) -> Number:
    """1 if h_k >= 1."""
    return 1 if u.n_hits >= 1 else 0


def precision_denominator(u: User, denominator: str) -> int:
    return {
        "k": u.k_alone,
        "min_k_n_rec": u.min_k(u.n_rec),
        "min_k_n_rel": u.min_k(u.n_rel),
        "min_k_n_rel_n_rec": u.min_k(min(u.n_rel, u.n_rec)),
    }[denominator]


def precision(u: User, *, denominator: str = "k") -> Number:
    """h_k / denominator."""
    return ratio(u.n_hits, precision_denominator(u, denominator))


def recall_denominator(u: User, denominator: str) -> int:
    return {
        "n_rel": u.n_rel,
        "min_k_n_rel": u.min_k(u.n_rel),
        "min_k_n_rel_n_rec": u.min_k(min(u.n_rel, u.n_rec)),
        "listed": sum(gain > 0 for gain in u.gains),
    }[denominator]


def recall(u: User, *, denominator: str = "n_rel") -> Number:
    """h_k / denominator."""
    return ratio(u.n_hits, recall_denominator(u, denominator))


def f_beta(u: User, *, beta: float = 1) -> Number:
    """(1+b²)h / (b² n_rel + k): the F of P = h/k and R = h/n_rel."""
    return ratio(*f_beta_parts(u, beta))


def f_beta_parts(u: User, beta: float) -> tuple[Fraction, Fraction]:
    """Numerator and denominator of the user's F; their sums over users are those of the pooled F."""
    square = Fraction(beta) ** 2
    return (1 + square) * u.n_hits, square * u.n_rel + u.k_alone


def f1(u: User) -> Number:
    """f_beta with beta = 1."""
    return f_beta(u, beta=1)


def r_precision(u: User, *, multiple: float = 1) -> Number:
    """Hits in the first m ranks of the list cut at k, divided by m = n_rel, or multiple x n_rel + 0.9 rounded down."""
    m = u.n_rel if multiple == 1 else math.floor(multiple * u.n_rel + 0.9)
    return ratio(sum(rank <= m for rank in u.hit_ranks), m)


def num_ret(u: User) -> Number:
    """Items within k."""
    return len(u.top)


def num_rel(u: User) -> Number:
    """n_rel."""
    return u.n_rel


def utility(u: User, *, a: float = 1, b: float = -1, c: float = 0, d: float = 0) -> Number:
    """a TP + b FP + c FN + d TN; the size of the catalogue matters for d only."""
    if d == 0:
        u = u._replace(n_items=u.n_rec + u.n_rel)
    return sum(Fraction(w) * count for w, count in zip((a, b, c, d), confusion(u), strict=True))


def set_ap(u: User) -> Number:
    """Precision over the listed items times recall."""
    return ratio(u.n_hits, len(u.top)) * ratio(u.n_hits, u.n_rel)


def mar(u: User, *, denominator: str = "n_rel") -> Number:
    """Sum of recall@r over the hits at r <= k, divided by the denominator."""
    total = sum(Fraction(hits_so_far, u.n_rel) for hits_so_far in range(1, u.n_hits + 1))
    return ratio(total, {"n_rel": u.n_rel, "hits": u.n_hits}[denominator])


def mean_precision(u: User) -> Number:
    """Mean of precision@1, ..., precision@k."""
    hits_of = [sum(rank <= cutoff for rank in u.hit_ranks) for cutoff in range(1, u.k_alone + 1)]
    return ratio(sum(Fraction(h, cutoff) for cutoff, h in enumerate(hits_of, start=1)), u.k_alone)


def mean_recall(u: User) -> Number:
    """Mean of recall@1, ..., recall@k."""
    hits_of = [sum(rank <= cutoff for rank in u.hit_ranks) for cutoff in range(1, u.k_alone + 1)]
    return ratio(sum(ratio(h, u.n_rel) for h in hits_of), u.k_alone)


# Ranks of hits.


def mrr(u: User) -> Number:
    """1 / rank of the first hit within k, else 0."""
    return Fraction(1, u.hit_ranks[0]) if u.hit_ranks else 0


def arhr(u: User, *, denominator: str = "one") -> Number:
    """Sum of 1/rank over the hits within k, divided by 1 or by n_rel."""
    return ratio(sum(Fraction(1, rank) for rank in u.hit_ranks), {"one": 1, "n_rel": u.n_rel}[denominator])


def ncrr(u: User) -> Number:
    """Sum of 1/rank over the hits within k, divided by that of hits at the first min(k, n_rel) ranks."""
    best = sum(Fraction(1, rank) for rank in range(1, u.min_k(u.n_rel) + 1))
    return ratio(sum(Fraction(1, rank) for rank in u.hit_ranks), best)


def map_(u: User, *, denominator: str = "min_k_n_rel") -> Number:
    """Sum of precision@r over the hits at r <= k, divided by the denominator."""
    total = sum(Fraction(hits_so_far, rank) for hits_so_far, rank in enumerate(u.hit_ranks, start=1))
    return ratio(
        total,
        {
            "min_k_n_rel": u.min_k(u.n_rel),
            "n_rel": u.n_rel,
            "k": u.k_alone,
            "hits": u.n_hits,
            "min_n_rel_n_rec": min(u.n_rel, u.n_rec),
            "min_k_n_rel_n_rec": u.min_k(min(u.n_rel, u.n_rec)),
        }[denominator],
    )


# What was judged.


def bpref(u: User, *, denominator: str = "min_n_rel_n_other") -> Number:
    """Mean over relevant items of 1 - min(judged others above, n_rel) / denominator; 0 for those not within k."""
    bottom = {"min_n_rel_n_other": min(u.n_rel, u.n_other), "n_rel": u.n_rel}[denominator]
    total = Fraction(0)
    for rank in u.hit_ranks:
        above = sum(kind == "other" for kind in u.kinds[: rank - 1])
        total += 1 - Fraction(min(above, u.n_rel), bottom) if above else 1
    return ratio(total, u.n_rel)


def inf_ap(u: User) -> Number:
    """Mean over relevant items of the expected precision at their rank: equation 2 of Yilmaz & Aslam."""
    e = Fraction(1, 100_000)
    total = Fraction(0)
    for rank in u.hit_ranks:
        above = u.kinds[: rank - 1]
        rel, other, pooled = (sum(kind == name for kind in above) for name in ("relevant", "other", "pooled"))
        total += Fraction(1, rank)
        if above:
            in_pool = Fraction(rel + other + pooled, rank - 1)
            total += Fraction(rank - 1, rank) * in_pool * (rel + e) / (rel + other + 2 * e)
    return ratio(total, u.n_rel)


def n_judged_within_k(u: User) -> int:
    return sum(kind in ("relevant", "other") for kind in u.kinds[: u.k])


def judged(u: User) -> Number:
    """Judged items among the first k, over min(k, n_rec)."""
    return ratio(n_judged_within_k(u), len(u.top))


def unjudged(u: User) -> Number:
    """Items among the first k that were not judged, over k."""
    return ratio(len(u.top) - n_judged_within_k(u), u.k_alone)


def num_nonrel_judged_ret(u: User) -> Number:
    """Items among the first k that were judged not relevant."""
    return sum(kind == "other" for kind in u.kinds[: u.k])


def rbp_residual(u: User, *, p: float = 0.8, tail: str = "always") -> Number:
    """Weights of the ranks within k that were not judged, and of all ranks past the end."""
    if tail == "unjudged" and n_judged_within_k(u) == len(u.top):
        return 0
    unknown = [rank for rank, kind in enumerate(u.kinds[: u.k], start=1) if kind in ("pooled", "unknown")]
    return math.fsum((1 - p) * p ** (rank - 1) for rank in unknown) + p ** len(u.top)


def iprec_at_recall(u: User, *, level: float = 0.1, rounding: str = "up") -> Number:
    """Largest precision at ranks within k with at least level x n_rel hits."""
    wanted = Fraction(level * u.n_rel)
    least = math.floor(level * u.n_rel + 0.9) if rounding == "up" else math.floor(wanted + Fraction(1, 2))
    return max((Fraction(h, rank) for h, rank in enumerate(u.hit_ranks, start=1) if h >= least), default=0)


def eleven_point_average(u: User, *, rounding: str = "up") -> Number:
    """Mean of the interpolated precision at 0, 0.1, ..., 1."""
    return ratio(sum(Fraction(iprec_at_recall(u, level=i / 10, rounding=rounding)) for i in range(11)), 11)


def bin_g(u: User) -> Number:
    """Sum over the hits within k of 1 / log2(2 + misses above), over n_rel."""
    total = math.fsum(1 / math.log2(2 + rank - h) for h, rank in enumerate(u.hit_ranks, start=1))
    return ratio(total, u.n_rel)


def median_rank(u: User) -> Number | None:
    """Median rank of the hits within k; None without one."""
    return statistics.median(map(Fraction, u.hit_ranks)) if u.hit_ranks else None


# Gains.


def gain_of(grade: float, gain: str | Table) -> float:
    """The grade itself, 2^grade - 1, 1 above 0, or table[grade]; a table needs integer grades within it."""
    if gain == "linear":
        return grade
    if gain == "binary":
        return float(grade > 0)
    if gain == "exp2":
        return math.pow(2, grade) - 1
    if isinstance(gain, str):
        raise TypeError(f"a gain is linear, exp2, binary or a table, not {gain}")
    if gain[0] != 0 or list(gain) != sorted(gain):
        raise ValueError(f"a gain table starts with 0 and does not decrease: {gain}")
    if grade != int(grade) or not 0 <= grade < len(gain):
        raise ValueError(f"grade {grade} is not in the gain table {gain}")
    return gain[int(grade)]


def with_gain(u: User, gain: str | Table) -> User:
    """The user with each grade, in the list and in the truth, replaced by its gain."""
    return u._replace(
        gains=[gain_of(grade, gain) for grade in u.gains],
        truth=sorted((gain_of(grade, gain) for grade in u.truth), reverse=True),
    )


def rank_weight(rank: int, discount: str | Table) -> float:
    """c(rank); 0 past the end of a table."""
    if discount == "log2":
        return 1 / math.log2(rank + 1)
    if discount == "log2_flat2":
        return 1 / max(math.log2(rank), 1)
    if isinstance(discount, str):
        raise TypeError(f"a discount is log2, log2_flat2 or a table, not {discount}")
    return discount[rank - 1] if rank <= len(discount) else 0.0


def discounted(gains: Sequence[float], discount: str | Table) -> float:
    """Sum of gain times weight, the first gain at rank 1."""
    return math.fsum(gain * rank_weight(rank, discount) for rank, gain in enumerate(gains, start=1))


def cg(u: User, *, gain: str | Table = "linear") -> Number:
    """Sum of the gains within k."""
    return math.fsum(with_gain(u, gain).top)


def dcg(u: User, *, gain: str | Table = "linear", discount: str | Table = "log2") -> Number:
    """Sum of gain times weight within k."""
    return discounted(with_gain(u, gain).top, discount)


def ndcg(u: User, *, gain: str | Table = "linear", discount: str | Table = "log2", ideal: str = "truth") -> Number:
    """dcg over the ideal dcg, with the ideal gains in descending order from rank 1.

    `ideal="k"` fills all k positions (n_rec positions without a cut-off) with gain_of(1); other grades
    than 1 raise there.
    """
    if ideal == "k" and gain != "binary" and any(grade != 1 for grade in u.truth):
        raise ValueError("ideal=k is for binary truth")
    v = with_gain(u, gain)
    if ideal == "truth":
        best = v.truth[: v.k]
    elif ideal == "truth_uncut":
        best = v.truth
    elif ideal == "list":
        best = sorted(v.gains, reverse=True)[: v.k]
    elif ideal == "list_at_k":
        best = sorted(v.top, reverse=True)
    elif ideal == "k":
        best = [gain_of(1, gain)] * v.k_alone
    else:
        raise ValueError(f"unknown ideal {ideal}")
    return ratio(discounted(v.top, discount), discounted(best, discount))


def ndcg_at(u: User, rank: int) -> float:
    """nDCG of the list within k at a rank that may be past its end: the ideal goes on there."""
    return ratio(discounted(u.top[:rank], "log2"), discounted(u.truth[:rank], "log2"))


def ndcg_rel(u: User) -> Number:
    """Mean of nDCG at the ranks of relevant items; the DCG at the end over the whole ideal for those not listed."""
    missing = ndcg_at(u, max(len(u.top), u.n_rel))
    total = math.fsum([*(ndcg_at(u, rank) for rank in u.hit_ranks), (u.n_rel - u.n_hits) * missing])
    return ratio(total, u.n_rel)


def rndcg(u: User) -> Number:
    """Mean of nDCG at the numbers of items of each grade and above, and at the end of a list longer than n_rel + 1."""
    ranks = [rank for rank in range(1, u.n_rel + 1) if rank == u.n_rel or u.truth[rank] < u.truth[rank - 1]]
    if len(u.top) > u.n_rel + 1 and ranks:
        ranks.append(len(u.top))
    return ratio(math.fsum(ndcg_at(u, rank) for rank in ranks), len(ranks))


def normalized_gain(u: User) -> Number:
    """Sum of gain / log2(2 + what the list lacks of the ideal, of 1 at least per rank), over all gain."""
    ideal = [max(gain, 1.0) for gain in u.truth] + [1.0] * len(u.top)
    lacking = [math.fsum([*ideal[:rank], *(-gain for gain in u.top[:rank])]) for rank in range(1, len(u.top) + 1)]
    return ratio(
        math.fsum(gain / math.log2(2 + lost) for gain, lost in zip(u.top, lacking, strict=True)), math.fsum(u.truth)
    )


def rbp(u: User, *, p: float = 0.8, gain: str = "linear") -> Number:
    """(1-p) * sum of gain * p^(rank-1) within k."""
    return (1 - p) * math.fsum(own * p ** (rank - 1) for rank, own in enumerate(with_gain(u, gain).top, start=1))


def relevance_positions(u: User, gain: str | Table) -> tuple[float, float]:
    """Sums of gain x rank and of gain within k."""
    gains = with_gain(u, gain).top
    return math.fsum(rank * own for rank, own in enumerate(gains, start=1)), math.fsum(gains)


def average_relevance_position(u: User, *, gain: str | Table = "linear") -> Number | None:
    """Mean rank within k weighted by gain; None without a gain."""
    ranks, gains = relevance_positions(u, gain)
    return ranks / gains if gains else None


def shares_of(u: User, max_gain: float) -> list[float]:
    """The gains within k, divided by max_gain; a gain above it anywhere in the truth raises."""
    if any(gain > max_gain for gain in u.truth):
        raise ValueError(f"a gain is larger than max_gain={max_gain}")
    return [gain / max_gain for gain in u.top]


FAR_RANK = 60  # up to here at least, ranks are walked one by one


def rest_of_squares(z: float) -> float:
    """Sum of 1 / (z + i)^2 over all i >= 0, to 1e-17 for z of 50 and more."""
    return 1 / z + 1 / (2 * z**2) + 1 / (6 * z**3) - 1 / (30 * z**5) + 1 / (42 * z**7) - 1 / (30 * z**9)


def coverage_error(u: User) -> Number | None:
    """Rank of the last hit; None unless all relevant items are within k."""
    return max(u.hit_ranks, default=0) if u.n_hits == u.n_rel else None


def pairs_of_gains(u: User) -> tuple[int, int]:
    """Pairs within k with different gains that are in falling order, and all of them."""
    pairs = [(one, other) for at, one in enumerate(u.top) for other in u.top[at + 1 :] if one != other]
    return sum(one > other for one, other in pairs), len(pairs)


def ordered_pair_accuracy(u: User) -> Number | None:
    """Share of pairs with different gains in falling order; None without such a pair."""
    right, pairs = pairs_of_gains(u)
    return Fraction(right, pairs) if pairs else None


def ndpm(u: User) -> Number | None:
    """Share of pairs with different gains in rising order."""
    right = ordered_pair_accuracy(u)
    return None if right is None else 1 - Fraction(right)


def insq(u: User, *, max_gain: float, t: float = 1, depth: str | float = "all") -> Number:
    """Sum of gain / (rank + 2t - 1)^2 within k, over the sum of 1 / (rank + 2t - 1)^2 over all ranks up to depth."""
    last = max(FAR_RANK, len(u.top)) if depth == "all" else int(depth)
    before = 2 * t - 1
    weights = [(rank + before) ** -2 for rank in range(1, last + 1)]
    total = math.fsum([*weights, *([rest_of_squares(last + 2 * t)] if depth == "all" else [])])
    return math.fsum(g * w for g, w in zip(shares_of(u, max_gain), weights, strict=False)) / total


def gain_per_rank(
    gains: Sequence[float], goes_on: Callable[[int, float, float], float], last: int, rest: Callable[[float], float]
) -> float:
    """Mean gain of ranks, weighted by the probability of reaching them: the product of going on from those above.

    goes_on(rank, its gain, the gain up to it); ranks after `last` weigh rest(gain) as much as the first of them.
    """
    reach, found, reached = 1.0, Fraction(0), []
    padded = [*gains[:last], *[0.0] * (last - len(gains))]
    for rank, gain in enumerate(padded, start=1):
        found += Fraction(gain) if gain else 0
        reached.append(reach)
        reach *= goes_on(rank, gain, float(found))
    total = math.fsum(w * g for w, g in zip(reached, padded, strict=True))
    return total / (math.fsum(reached) + reach * rest(float(found))) if gains else 0.0


def nothing(_: float) -> float:
    return 0.0


def squared_goal(rank: int, goal: float) -> float:
    return ((rank + goal - 1) / (rank + goal)) ** 2


def rest_of_goal(last: int, goal: float) -> float:
    """Weights of the ranks after the last, where the first one has weight 1 and they fall as inverse squares."""
    return (last + goal) ** 2 * rest_of_squares(last + goal)


def inst(u: User, *, max_gain: float, t: float = 1, depth: str | float = "all") -> Number:
    """The user goes on with ((x - 1) / x)^2, x = rank + 2t - the gain so far."""
    if t < 0.25:
        raise ValueError("t is below 0.25")
    is_open = depth == "all"
    last = max(FAR_RANK, len(u.top)) if is_open else int(depth)
    return gain_per_rank(
        shares_of(u, max_gain),
        lambda rank, _, found: squared_goal(rank, 2 * t - found),
        last,
        (lambda found: rest_of_goal(last, 2 * t - found)) if is_open else nothing,
    )


def last_rank(u: User, depth: str | float) -> int:
    return u.k_alone if depth == "all" else min(u.k_alone, int(depth))


def bpm(u: User, *, max_gain: float, t: float = 1, depth: str | float = "all") -> Number:
    """Gain up to the rank at which it reaches t, or the last one, per rank."""
    shares_of(u, max_gain)
    gains = [Fraction(gain) / Fraction(max_gain) for gain in u.top]
    last = last_rank(u, depth)
    enough = (rank for rank in range(1, last + 1) if sum(gains[:rank]) >= Fraction(t))
    end = next(enough, last)
    return ratio(sum(gains[:end]), end)


def nerr(
    u: User, *, max_gain: float, model: str = "reciprocal", p: float = 0.9, t: float = 1, depth: str | float = "all"
) -> Number:
    """The user stops with the gain as probability, or goes on with 1, rank / (rank + 1), p or that of insq."""
    gains = shares_of(u, max_gain)
    if model in ("cut", "reciprocal"):
        step = {"cut": lambda rank: 1.0, "reciprocal": lambda rank: rank / (rank + 1)}[model]
        return gain_per_rank(gains, lambda rank, gain, _: (1 - gain) * step(rank), last_rank(u, depth), nothing)
    is_open = depth == "all"
    last = max(FAR_RANK, len(gains)) if is_open else int(depth)
    rests = {"patience": lambda _: 1 / (1 - p), "goal": lambda _: rest_of_goal(last, 2 * t)}
    steps = {"patience": lambda rank: p, "goal": lambda rank: squared_goal(rank, 2 * t)}
    rest = rests[model] if is_open else nothing
    return gain_per_rank(gains, lambda rank, gain, _: (1 - gain) * steps[model](rank), last, rest)


def overlap(first: Sequence[Any], second: Sequence[Any], p: float, depth: int) -> float:
    """Truncated rank-biased overlap: mean agreement over depths, weighted by p^(depth - 1)."""
    agreement = [len({*first[:d]} & {*second[:d]}) / d for d in range(1, depth + 1)]
    weights = [p**d for d in range(depth)]
    return math.fsum(a * w for a, w in zip(agreement, weights, strict=True)) / math.fsum(weights)


def compatibility(u: User, *, p: float = 0.95, normalize: str = "yes") -> Number:
    """Overlap with the ideal list, whose equal gains are in the order of the list; items are named by their ranks."""
    listed = [(gain, rank) for rank, gain in enumerate(u.gains, start=1) if gain > 0]
    left = list(u.truth)
    for gain, _ in listed:
        left.remove(gain)
    named = [*listed, *((gain, u.n_rec + nth) for nth, gain in enumerate(left, start=1))]
    ideal = [name for _, name in sorted(named, key=lambda pair: (-pair[0], pair[1]))]
    own = list(range(1, len(u.top) + 1))
    depth = max(len(own), len(ideal))
    if not own or not ideal:
        return 0
    found = overlap(own, ideal, p, depth)
    return found / overlap(ideal, ideal, p, depth) if normalize == "yes" else found


def err(u: User, *, max_gain: float) -> Number:
    """Sum over the ranks within k of 1/rank * stop * product of (1 - stop) of the ranks above.

    stop = (2^gain - 1) / 2^max_gain; a gain above max_gain anywhere in the truth raises.
    """
    if any(gain > max_gain for gain in u.truth):
        raise ValueError(f"a gain is larger than max_gain={max_gain}")
    stops = [(2.0**gain - 1) / 2.0**max_gain for gain in u.top]
    reached = [math.prod(1 - stop for stop in stops[:above]) for above in range(len(stops))]
    return math.fsum(
        reach * stop / rank for rank, (stop, reach) in enumerate(zip(stops, reached, strict=True), start=1)
    )


# The catalogue.


class Confusion(NamedTuple):
    tp: int
    fp: int
    fn: int
    tn: int


def confusion(u: User) -> Confusion:
    """The first n = min(k, n_rec) ranks against the whole catalogue."""
    if u.n_items is None:
        raise ValueError("n_items is needed")
    n, h = u.min_k(u.n_rec), u.n_hits
    table = Confusion(tp=h, fp=n - h, fn=u.n_rel - h, tn=u.n_items - n - u.n_rel + h)
    if table.tn < 0:
        raise ValueError("n_items is smaller than the number of recommended and relevant items")
    return table


def accuracy(u: User) -> Number:
    """(TP + TN) / all."""
    t = confusion(u)
    return ratio(t.tp + t.tn, sum(t))


def specificity(u: User) -> Number:
    """TN / (TN + FP)."""
    t = confusion(u)
    return ratio(t.tn, t.tn + t.fp)


def fallout(u: User) -> Number:
    """FP / (FP + TN)."""
    t = confusion(u)
    return ratio(t.fp, t.fp + t.tn)


def mcc(u: User) -> Number:
    """(TP TN - FP FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN))."""
    t = confusion(u)
    product = (t.tp + t.fp) * (t.tp + t.fn) * (t.tn + t.fp) * (t.tn + t.fn)
    return ratio(t.tp * t.tn - t.fp * t.fn, math.sqrt(product))


def limited_auc(u: User, *, unseen: str = "tail_mean") -> Number:
    """Share of the pairs (relevant, not relevant) in the right order, by counting them.

    The first min(k, n_rec) ranks are seen. `tail_mean` puts all other items of the catalogue together after
    them, and a pair of two such items counts one half; `list_only` counts only pairs of seen items.
    """
    good = [(float(rank), 1) for rank in u.hit_ranks]
    bad = [(float(rank), 1) for rank, gain in enumerate(u.top, start=1) if gain <= 0]
    if unseen == "tail_mean":
        # One entry represents all unseen items of its kind: (rank, how many).
        table = confusion(u)
        good.append((math.inf, table.fn))
        bad.append((math.inf, table.tn))
    elif unseen != "list_only":
        raise ValueError(f"unknown unseen {unseen}")
    right = pairs = Fraction(0)
    for good_rank, good_count in good:
        for bad_rank, bad_count in bad:
            pairs += good_count * bad_count
            if good_rank < bad_rank:
                right += good_count * bad_count
            elif good_rank == bad_rank:
                right += Fraction(good_count * bad_count, 2)
    return ratio(right, pairs)


def kinds_of(items: Sequence[Item], gains: Sequence[float], rows: Mapping[Item, float]) -> list[str]:
    """The kind of each rank; a later copy of an item is no item, and so unknown."""
    kinds = []
    for at, (item, gain) in enumerate(zip(items, gains, strict=True)):
        if gain > 0:
            kinds.append("relevant")
        elif item not in rows or item in items[:at]:
            kinds.append("unknown")
        else:
            kinds.append("other" if rows[item] >= 0 else "pooled")
    return kinds


METRICS: dict[str, Callable[..., Number | None]] = {
    "hits": hits,
    "hit_rate": hit_rate,
    "precision": precision,
    "recall": recall,
    "f_beta": f_beta,
    "f1": f1,
    "r_precision": r_precision,
    "mrr": mrr,
    "arhr": arhr,
    "map": map_,
    "cg": cg,
    "dcg": dcg,
    "ndcg": ndcg,
    "rbp": rbp,
    "err": err,
    "accuracy": accuracy,
    "specificity": specificity,
    "fallout": fallout,
    "mcc": mcc,
    "limited_auc": limited_auc,
    "ndcg_rel": ndcg_rel,
    "rndcg": rndcg,
    "normalized_gain": normalized_gain,
    "bpref": bpref,
    "inf_ap": inf_ap,
    "judged": judged,
    "unjudged": unjudged,
    "num_nonrel_judged_ret": num_nonrel_judged_ret,
    "rbp_residual": rbp_residual,
    "iprec_at_recall": iprec_at_recall,
    "eleven_point_average": eleven_point_average,
    "bin_g": bin_g,
    "median_rank": median_rank,
    "num_ret": num_ret,
    "num_rel": num_rel,
    "utility": utility,
    "set_ap": set_ap,
    "mar": mar,
    "mean_precision": mean_precision,
    "mean_recall": mean_recall,
    "ncrr": ncrr,
    "average_relevance_position": average_relevance_position,
    "coverage_error": coverage_error,
    "ordered_pair_accuracy": ordered_pair_accuracy,
    "ndpm": ndpm,
    "insq": insq,
    "inst": inst,
    "bpm": bpm,
    "nerr": nerr,
    "compatibility": compatibility,
}


# From logs to users.


def truth_gains(
    rows: Sequence[tuple[Item, float]], min_gain: float | None, duplicates: str, *, least: float = 0
) -> dict[Item, float]:
    """Item -> gain of the relevant items, above `least`; an item given twice is an error or has its largest gain."""
    gains: dict[Item, float] = {}
    for item, gain in rows:
        if item in gains and duplicates == "error":
            raise ValueError(f"item {item} is twice in the truth")
        gains[item] = max(gain, gains.get(item, gain))
    return {item: gain for item, gain in gains.items() if gain > least and (min_gain is None or gain >= min_gain)}


def by_score(pairs: list[tuple[Item, float]], gains: Mapping[Item, float], ties: str) -> list[tuple[Item, float]]:
    """The (item, score) pairs, highest score first.

    Ties: in the order of the input (input), by gain as given ascending (worst) or descending (best), with 0 for items
    without one and then by id, by id alone (id_asc, id_desc), or an error (error).
    """
    scores = [score for _, score in pairs]
    if any(math.isnan(score) for score in scores):
        raise ValueError("a score is NaN")
    if ties == "error" and len(set(scores)) < len(scores):
        raise ValueError("scores are tied")
    # Sorting is stable, also in reverse, so equal scores keep the order made first.
    if ties in ("worst", "best"):
        sign = 1 if ties == "worst" else -1
        pairs = sorted(pairs, key=lambda pair: (sign * gains.get(pair[0], 0.0), pair[0]))
    elif ties in ("id_asc", "id_desc"):
        pairs = sorted(pairs, key=lambda pair: pair[0], reverse=ties == "id_desc")
    elif ties not in ("input", "error"):
        raise ValueError(f"unknown ties {ties}")
    return sorted(pairs, key=lambda pair: pair[1], reverse=True)


def list_gains(items: Sequence[Item], relevant: Mapping[Item, float], duplicates: str) -> list[float]:
    """The gain at each rank; later copies of an item are an error, removed (first) or misses (miss)."""
    if duplicates not in ("error", "first", "miss"):
        raise ValueError(f"unknown duplicates {duplicates}")
    gains: list[float] = []
    seen: set[Item] = set()
    for item in items:
        if item not in seen:
            gains.append(relevant.get(item, 0.0))
        elif duplicates == "error":
            raise ValueError(f"item {item} is twice in a list")
        elif duplicates == "miss":
            gains.append(0.0)
        seen.add(item)
    return gains


def ruling(u: User, no_truth: str, no_recs: str) -> str:
    """The treatment of the user: "count", or the policy of the user's case."""
    policy = no_truth if u.n_rel == 0 else no_recs if u.n_rec == 0 else "count"
    if policy == "judged":
        policy = "zero" if u.n_judged and (u.n_rec or no_recs != "skip") else "skip"
    if policy == "listed":
        policy = "zero" if u.n_rec else "skip"
    if policy == "error":
        raise ValueError("a user has no relevant item" if u.n_rel == 0 else "a user has no list")
    if policy not in ("count", "skip", "zero", "nan"):
        raise ValueError(f"unknown policy {policy}")
    return policy


# From users to one number.


def weighted_mean(values: Sequence[Number], weights: Sequence[float]) -> float:
    return math.fsum(w * float(v) for v, w in zip(values, weights, strict=True)) / math.fsum(weights)


def error_of_mean(residuals: Sequence[float], weights: Sequence[float]) -> float:
    """sqrt(n/(n-1) * sum(w² residual²)) / sum(w): without weights, standard deviation / sqrt(n)."""
    n = len(residuals)
    if n < 2:
        return math.nan
    terms = [w * residual for residual, w in zip(residuals, weights, strict=True)]
    squares = math.fsum(term * term for term in terms)  # a power may be rounded differently for a scaled term
    return math.sqrt(n / (n - 1) * squares) / math.fsum(weights)


def mean_over_users(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    mean = weighted_mean(values, weights)
    return mean, error_of_mean([value - mean for value in values], weights)


def geometric_mean(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """exp of the mean of logarithms, of 1e-5 for smaller values; its standard error is that of the mean x exp."""
    mean, error = mean_over_users([math.log(max(value, 1e-5)) for value in values], weights)
    return math.exp(mean), math.exp(mean) * error


def pooled_ratio(parts: Sequence[tuple[Number, Number]], weights: Sequence[float]) -> tuple[float, float | None]:
    """Sum of numerators over sum of denominators.

    Delta method: the ratio of the means A and B moves by (a - A/B * b) / B with a user (a, b). Its variance is
    (var a - 2 A/B cov ab + (A/B)² var b) / B².
    """
    mean_a = weighted_mean([a for a, _ in parts], weights)
    mean_b = weighted_mean([b for _, b in parts], weights)
    if mean_b == 0:
        return 0.0, None
    value = mean_a / mean_b
    return value, error_of_mean([(float(a) - value * float(b)) / mean_b for a, b in parts], weights)


def f_of_means(users: Sequence[User], weights: Sequence[float], beta: float) -> tuple[float, float | None]:
    """F of the mean precision P and the mean recall R; delta method with dF/dP and dF/dR."""
    precisions = [float(precision(u)) for u in users]
    recalls = [float(recall(u)) for u in users]
    p, r = weighted_mean(precisions, weights), weighted_mean(recalls, weights)
    bottom = beta**2 * p + r
    if bottom == 0:
        return 0.0, None
    by_p = (1 + beta**2) * r**2 / bottom**2
    by_r = (1 + beta**2) * beta**2 * p**2 / bottom**2
    residuals = [by_p * (a - p) + by_r * (b - r) for a, b in zip(precisions, recalls, strict=True)]
    return (1 + beta**2) * p * r / bottom, error_of_mean(residuals, weights)


def parts_of(metric: str, u: User, options: Mapping[str, Any]) -> tuple[Number, Number]:
    """Numerator and denominator that a pooled metric adds up."""
    if metric == "precision":
        return u.n_hits, precision_denominator(u, options.get("denominator", "k"))
    if metric == "recall":
        return u.n_hits, recall_denominator(u, options.get("denominator", "n_rel"))
    if metric in ("f_beta", "f1"):
        return f_beta_parts(u, options.get("beta", 1))
    if metric == "average_relevance_position":
        return relevance_positions(u, options.get("gain", "linear"))
    if metric == "ordered_pair_accuracy":
        return pairs_of_gains(u)
    raise ValueError(f"{metric} has no pooled form")


def value_of(u: User, metric: str, options: Mapping[str, Any]) -> float | None:
    """The user's value; None for a user without one, who is not counted."""
    value = METRICS[metric](u, **options)
    return None if value is None else float(value)


OF_RANKS = ("average_relevance_position", "coverage_error", "median_rank", "ndpm", "ordered_pair_accuracy")


def evaluate(
    recs: Sequence[Sequence[Item]],
    truth: Sequence[Sequence[tuple[Item, float]]],
    metric: str,
    *,
    k: int | None = None,
    options: Mapping[str, Any] | None = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    no_truth: str = "skip",
    no_recs: str | None = None,
    duplicates: str = "error",
    exclude: Sequence[Sequence[Item]] | None = None,
    scores: Sequence[Sequence[float]] | None = None,
    ties: str = "input",
    weights: Sequence[float] | None = None,
) -> Result:
    """One metric, by its bare name, over all users; `options` are the metric's own.

    `no_truth` is for users without a relevant item (with or without a list), `no_recs` for the others with an
    empty list after `exclude`: not counted (skip), value 0 for every metric (zero; a pooled metric adds no hits
    and its denominators), NaN, also for the whole (nan), or ValueError (error). Without `no_recs`, that is skip for
    metrics of ranks that have no value without a list, and zero for others. `exclude` are the seen items of
    each user. `scores` are parallel to `recs` and order the lists, highest first. `weights` are >= 0.
    `min_gain`, `no_truth` and `no_recs` among the options override those of the call. Bad data raise a
    ValueError; an unknown name or option a ValueError, a KeyError or a TypeError.
    """
    options = dict(options or {})
    min_gain = options.pop("min_gain", min_gain)
    no_truth, no_recs = options.pop("no_truth", no_truth), options.pop("no_recs", no_recs)
    no_recs = no_recs or ("skip" if metric in OF_RANKS else "zero")
    average = "geometric" if options.pop("mean", None) == "geometric" else options.pop("average", "user")
    users: list[User] = []
    for i, (items, rows) in enumerate(zip(recs, truth, strict=True)):
        relevant = truth_gains(rows, min_gain, duplicates)
        user_scores = [0.0] * len(items) if scores is None else scores[i]
        seen = set() if exclude is None else set(exclude[i])
        pairs = [pair for pair in zip(items, user_scores, strict=True) if pair[0] not in seen]
        if scores is not None:
            pairs = by_score(pairs, truth_gains(rows, None, duplicates, least=-math.inf), ties)
        listed = [item for item, _ in pairs]
        if duplicates == "first":
            listed = list(dict.fromkeys(listed))
        gains = list_gains(listed, relevant, duplicates)
        known = truth_gains(rows, None, duplicates, least=-math.inf)
        others = sum(gain >= 0 and item not in relevant for item, gain in known.items())
        user = User(gains, sorted(relevant.values(), reverse=True), k, n_items, len(rows), others)
        users.append(user._replace(kinds=kinds_of(listed, gains, known)))

    rulings = [ruling(u, no_truth, no_recs) for u in users]
    fixed = {"skip": None, "zero": 0.0, "nan": math.nan}
    per_user = [
        value_of(u, metric, options) if rule == "count" else fixed[rule] for u, rule in zip(users, rulings, strict=True)
    ]
    value, std_error = summarise(metric, average, options=options, users=users, per_user=per_user, weights=weights)
    return Result(
        value=value,
        std_error=std_error,
        users=sum(v is not None for v in per_user),
        per_user=per_user,
        no_truth=sum(u.n_rel == 0 for u in users),
        no_recs=sum(u.n_rel > 0 and u.n_rec == 0 for u in users),
    )


def summarise(
    metric: str,
    average: str,
    *,
    options: Mapping[str, Any],
    users: Sequence[User],
    per_user: Sequence[float | None],
    weights: Sequence[float] | None,
    parts: Callable[[str, Any, Mapping[str, Any]], tuple[Number, Number]] = parts_of,
) -> tuple[float, float | None]:
    """Value and standard error over the counted users, in the form of `average`; pooled metrics add up `parts`."""
    all_weights = [1.0] * len(users) if weights is None else weights
    counted = [
        (u, value, weight) for u, value, weight in zip(users, per_user, all_weights, strict=True) if value is not None
    ]
    values = [value for _, value, _ in counted]
    kept_users = [u for u, _, _ in counted]
    kept_weights = [weight for _, _, weight in counted]
    if math.fsum(kept_weights) == 0 or any(math.isnan(value) for value in values):
        return math.nan, math.nan
    if average == "user":
        return mean_over_users(values, kept_weights)
    if average == "geometric":
        return geometric_mean(values, kept_weights)
    if average == "pooled":
        return pooled_ratio([parts(metric, u, options) for u in kept_users], kept_weights)
    if average == "means" and metric in ("f_beta", "f1"):
        return f_of_means(kept_users, kept_weights, options.get("beta", 1))
    raise ValueError(f"{metric} has no average={average}")

"""Worked cases: a metric, a small log, and a value computed by hand.

`CASES` must hold for every evaluator, `REFUSED` must raise ValueError in every evaluator. The names in `call`
are those of `oracle.evaluate`; `scores` are parallel to `recs`, `weights` are one per user.
"""

import ast
import math
from typing import Any, NamedTuple

from support.known import COUNTS_ALL, OF_JUDGEMENTS

Recs = list[list[int]]
Truth = list[list[tuple[int, float]]]


class Case(NamedTuple):
    """Case with the value `expected` of `metric`, a string like "map(denominator=k)@3"."""

    name: str
    metric: str
    recs: Recs
    truth: Truth
    expected: float
    tolerance: float
    call: dict[str, Any]
    std_error: float | None = None


class Refused(NamedTuple):
    """Call that must raise ValueError."""

    name: str
    metric: str
    recs: Recs
    truth: Truth
    call: dict[str, Any]


def parse(text: str) -> tuple[str, dict[str, Any], int | None]:
    """Name, options and k of a metric string: `map(denominator=k)@3` is "map", {"denominator": "k"}, 3."""
    call, _, k = text.partition("@")
    tree = ast.parse(call if "(" in call else f"{call}()", mode="eval").body
    assert isinstance(tree, ast.Call)
    assert isinstance(tree.func, ast.Name)
    options = {
        word.arg: word.value.id if isinstance(word.value, ast.Name) else ast.literal_eval(word.value)
        for word in tree.keywords
        if word.arg is not None
    }
    return tree.func.id, options, int(k) if k else None


def agrees(value: float, expected: float, tolerance: float = 1e-12) -> bool:
    """Equal within the absolute tolerance, or both NaN."""
    return (math.isnan(value) and math.isnan(expected)) or abs(value - expected) <= tolerance


User = tuple[list[int], list[tuple[int, float]]]
# Relevant items that are in no list get numbers from here on.
UNSEEN = 1000


def graded(gains: list[float], unseen: list[float] | None = None) -> User:
    """A list 1, 2, ... with these gains by rank (0: not in the truth), and gains outside the list."""
    truth = [(item, gain) for item, gain in enumerate(gains, start=1) if gain != 0]
    truth += [(UNSEEN + i, gain) for i, gain in enumerate(unseen or [])]
    return list(range(1, len(gains) + 1)), truth


def binary(length: int, hit_ranks: list[int], n_rel: int) -> User:
    """A list of this length with hits at these ranks, and n_rel relevant items in all."""
    gains = [1.0 if rank in hit_ranks else 0.0 for rank in range(1, length + 1)]
    return graded(gains, [1.0] * (n_rel - len(hit_ranks)))


def case(
    name: str,
    metric: str,
    users: list[User],
    expected: float,
    *,
    tolerance: float = 1e-12,
    std_error: float | None = None,
    **call: Any,
) -> Case:
    recs, truth = [u[0] for u in users], [u[1] for u in users]
    return Case(name, metric, recs, truth, expected, tolerance, call, std_error)


def refused(name: str, metric: str, users: list[User], **call: Any) -> Refused:
    return Refused(name, metric, [u[0] for u in users], [u[1] for u in users], call)


# The numbered cases of the definitions.

TWO_QUERIES = [binary(10, [1, 2, 4, 7], 4), binary(10, [1, 3, 5], 3)]
MISS_HIT_HIT = [binary(3, [2, 3], 2)]
GRADES_4 = [graded([2, 1, 0, 2])]
GRADES_6 = [graded([3, 2, 3, 0, 1, 2])]
GRADES_6_AND_2 = [graded([3, 2, 3, 0, 1, 2], unseen=[3, 0])]
DEFINED = [
    # = (1/1 + 2/2 + 3/4 + 4/7) / 4
    case("1 first query", "map", TWO_QUERIES[:1], 0.8303571428571429),
    # = (1/1 + 2/3 + 3/5) / 3
    case("1 second query", "map", TWO_QUERIES[1:], 0.7555555555555555),
    # the mean of the two
    case("1 both", "map", TWO_QUERIES, 0.7929563492063492),
    # = (1/2 + 2/3) / 3
    case("2 map over k", "map(denominator=k)@3", MISS_HIT_HIT, 0.38888888888888884),
    # = (1/2 + 2/3) / 2
    case("2 map", "map@3", MISS_HIT_HIT, 0.5833333333333333),
    # = 1/2
    case("2 mrr", "mrr@3", MISS_HIT_HIT, 0.5),
    # = (1/2 + 1/3) / 2
    case("2 arhr over n_rel", "arhr(denominator=n_rel)@3", MISS_HIT_HIT, 0.4166666666666667),
    # = (1/1 + 2/3 + 3/6) / 3
    case("3", "map", [binary(6, [1, 3, 6], 3)], 0.7222222222222222),
    # = (1/1 + 2/2) / min(5, 3)
    case("4", "map@5", [binary(5, [1, 2], 3)], 0.6666666666666666),
    # = 2 + 1 + 0 + 2
    case("5 cg", "cg", GRADES_4, 5),
    # = 2/log2(2) + 1/log2(3) + 2/log2(5)
    case("5 dcg", "dcg", GRADES_4, 3.492282869718244),
    # the list in best order 2, 2, 1: 2/log2(2) + 2/log2(3) + 1/log2(4)
    case("5 ideal dcg", "dcg", [graded([2, 2, 1, 0])], 3.761859507142915),
    # = 3.492282869718244 / 3.761859507142915
    case("5 ndcg", "ndcg", GRADES_4, 0.9283395254626584),
    # = 3/log2(2) + 1/log2(3) + 3/log2(5)
    case("5 dcg exp2", "dcg(gain=exp2)", GRADES_4, 4.922959427791637),
    # = 3/log2(2) + 3/log2(3) + 1/log2(4)
    case("5 ideal dcg exp2", "dcg(gain=exp2)", [graded([2, 2, 1, 0])], 5.392789260714372),
    # = 4.922959427791637 / 5.392789260714372
    case("5 ndcg exp2", "ndcg(gain=exp2)", GRADES_4, 0.9128781396400242),
    # = 3 + 2 + 3 + 0 + 1 + 2
    case("6 cg", "cg@6", GRADES_6, 11),
    # = 3/log2(2) + 2/log2(3) + 3/log2(4) + 1/log2(6) + 2/log2(7)
    case("6 dcg", "dcg@6", GRADES_6, 6.861126688593502),
    # = 6.861126688593502 / dcg of 3, 3, 2, 2, 1, 0
    case("6 ndcg of the list", "ndcg(ideal=list)@6", GRADES_6, 0.9608081943360617),
    # the same with gains 7, 3, 7, 0, 1, 3
    case("6 ndcg of the list exp2", "ndcg(gain=exp2, ideal=list)@6", GRADES_6, 0.9488107485678985),
    # the list in best order 3, 3, 3, 2, 2, 1
    case("7 ideal dcg", "dcg@6", [graded([3, 3, 3, 2, 2, 1])], 8.384055178438263),
    # = 6.861126688593502 / 8.384055178438263
    case("7 ndcg", "ndcg@6", GRADES_6_AND_2, 0.8183541904922859),
    # gains 7, 3, 7, 0, 1, 3 over 7, 7, 7, 3, 3, 1
    case("7 ndcg exp2", "ndcg(gain=exp2)@6", GRADES_6_AND_2, 0.7812708867825168),
    # = (1/3 + 1/2 + 1/1) / 3
    case("8", "mrr", [binary(3, [3], 1), binary(3, [2], 1), binary(3, [1], 1)], 0.6111111111111112),
    # = (6 + 5 + 4) / (10 + 12 + 8)
    case(
        "9",
        "recall(average=pooled)@10",
        [
            binary(10, [1, 2, 3, 4, 5, 6], 10),
            binary(12, [2, 4, 6, 8, 10, 11], 12),
            binary(10, [1, 5, 9, 10], 8),
        ],
        0.5,
    ),
    # = 3/5
    case("10 recall", "recall@10", [binary(10, [1, 4, 8], 5)], 0.6),
    # = 3/10
    case("10 precision", "precision@10", [binary(10, [1, 4, 8], 5)], 0.3),
    # = 2 * 3 / (5 + 10)
    case("10 f1", "f1@10", [binary(10, [1, 4, 8], 5)], 0.4),
    # = 1/log2(2)
    case("12 rank 1", "ndcg", [binary(10, [1], 1)], 1),
    # = 1/log2(3)
    case("12 rank 2", "ndcg", [binary(10, [2], 1)], 0.6309297535714575),
    # = 1/log2(4)
    case("12 rank 3", "ndcg", [binary(10, [3], 1)], 0.5),
    # = 1/log2(11)
    case("12 rank 10", "ndcg", [binary(10, [10], 1)], 0.2890648263178879),
    # = 2/1 + 1/1 + 2/log2(4)
    case("15 dcg", "dcg(discount=log2_flat2)", GRADES_4, 4),
    # = 2/1 + 2/1 + 1/log2(3)
    case("15 ideal dcg", "dcg(discount=log2_flat2)", [graded([2, 2, 1, 0])], 4.630929753571458),
    # = 4 / 4.630929753571458
    case("15 ndcg", "ndcg(discount=log2_flat2)", GRADES_4, 0.8637574337885663),
]
# Hits: two users, A with h = 1, n_rec = 2, n_rel = 1 and B with h = 3, n_rec = 4, n_rel = 5.
A_AND_B = [binary(2, [2], 1), binary(4, [1, 2, 4], 5)]
SHORT = [binary(2, [1], 3)]
F_USERS = [binary(2, [1], 1), binary(2, [2], 4)]
HITS = [
    # = (1 + 3) / 2; deviations -1 and 1: sqrt(2 / 1) / sqrt(2)
    case("hits", "hits", A_AND_B, 2, std_error=1.0),
    # = (0 + 1) / 2; deviations -1/2 and 1/2: sqrt(1/2) / sqrt(2)
    case("hits cut", "hits@1", A_AND_B, 1 / 2, std_error=0.5),
    # = (0 + 1) / 2
    case("hit_rate", "hit_rate@1", A_AND_B, 1 / 2),
    # one user has no deviation
    case("one user", "hit_rate", A_AND_B[:1], 1, std_error=math.nan),
    # = (1/2 + 3/4) / 2: without a cut-off k is n_rec; deviations -1/8 and 1/8: sqrt(1/32) / sqrt(2)
    case("precision whole", "precision", A_AND_B, 5 / 8, std_error=1 / 8),
    # = (1 + 3) / (2 + 4); residuals 1 - 2/3 * 2 = -1/3 and 1/3: sqrt(2 * 2/9) / 6
    case("precision pooled whole", "precision(average=pooled)", A_AND_B, 2 / 3, std_error=1 / 9),
    # h / k = 1/4
    case("precision over k", "precision@4", SHORT, 1 / 4),
    # = 1 / min(4, 2)
    case("precision over min_k_n_rec", "precision(denominator=min_k_n_rec)@4", SHORT, 1 / 2),
    # = 1 / min(4, 3)
    case("precision over min_k_n_rel", "precision(denominator=min_k_n_rel)@4", SHORT, 1 / 3),
    # without a cut-off min(k, n_rel) is n_rel
    case("precision over n_rel", "precision(denominator=min_k_n_rel)", SHORT, 1 / 3),
    # = (1 + 2) / (min(3, 1) + min(3, 5))
    case("precision pooled over min", "precision(denominator=min_k_n_rel, average=pooled)@3", A_AND_B, 3 / 4),
    # = (1/1 + 2/5) / 2
    case("recall", "recall@3", A_AND_B, 7 / 10),
    # = (1/1 + 2/3) / 2
    case("recall over min_k_n_rel", "recall(denominator=min_k_n_rel)@3", A_AND_B, 5 / 6),
    # = (1 + 2) / (1 + 3)
    case("recall pooled over min", "recall(denominator=min_k_n_rel, average=pooled)@3", A_AND_B, 3 / 4),
    # = (1 + 2) / (1 + 5); residuals 1 - 1/2 and 2 - 5/2: sqrt(2 * 1/2) / 6
    case("recall pooled", "recall(average=pooled)@3", A_AND_B, 1 / 2, std_error=1 / 6),
    # h = 1, k = 2, n_rel = 4: (1 + 4) * 1 / (4 * 4 + 2)
    case("f_beta 2", "f_beta(beta=2)@2", F_USERS[1:], 5 / 18),
    # beta 0 is precision
    case("f_beta 0", "f_beta(beta=0)@4", SHORT, 1 / 4),
    # = (2*1/(1+2) + 2*1/(4+2)) / 2; deviations 1/6 and -1/6
    case("f1 of users", "f1@2", F_USERS, 1 / 2, std_error=1 / 6),
    # without a cut-off k is n_rec = 2
    case("f1 whole", "f_beta", F_USERS, 1 / 2),
    # P = 2/4, R = 2/5: 2 * 2 / (5 + 4); residuals 2 - 4/9 * 3 and 2 - 4/9 * 6: sqrt(2 * 8/9) / 9
    case("f1 pooled", "f1(average=pooled)@2", F_USERS, 4 / 9, std_error=4 / 27),
    # P = 1/2, R = 5/8: 2 * 5/16 / (9/8); dF/dR = 2 * (1/4) / (81/64) = 32/81, error of R = 3/8, of P = 0
    case("f1 of means", "f1(average=means)@2", F_USERS, 5 / 9, std_error=4 / 27),
    # = (1 + 4) * 1/2 * 5/8 / (4 * 1/2 + 5/8); dF/dR = 5 * 4 * (1/4) / (21/8)² = 320/441, error of R = 3/8
    case("f_beta 2 of means", "f_beta(beta=2, average=means)@2", F_USERS, 25 / 42, std_error=40 / 147),
    # no hit: 0/0 of P and R is 0
    case("f1 of nothing", "f1@2", [binary(2, [], 1)], 0),
    # hits at 1 and 3 among the first 3
    case("r_precision", "r_precision", [binary(5, [1, 3, 4], 3)], 2 / 3),
    # cut to 1 rank before: 1 of 3
    case("r_precision cut", "r_precision@1", [binary(5, [1, 3, 4], 3)], 1 / 3),
    # a list shorter than n_rel: 2 of 4
    case("r_precision short list", "r_precision", [binary(2, [1, 2], 4)], 1 / 2),
]
MAP_USER = [binary(4, [1, 3, 4], 5)]
RANKS = [
    # the first hit at 3 is past k
    case("mrr past k", "mrr@2", [binary(3, [3], 1)], 0),
    # = 1/2 + 1/4
    case("arhr", "arhr", [binary(4, [2, 4], 3)], 3 / 4),
    # = 1/2
    case("arhr cut", "arhr@3", [binary(4, [2, 4], 3)], 1 / 2),
    # = (1/2 + 1/4) / 3
    case("arhr over n_rel", "arhr(denominator=n_rel)", [binary(4, [2, 4], 3)], 1 / 4),
    # = (1/1 + 2/3) / min(3, 5)
    case("map over min_k_n_rel", "map@3", MAP_USER, 5 / 9),
    # = (1/1 + 2/3) / 5
    case("map over n_rel", "map(denominator=n_rel)@3", MAP_USER, 1 / 3),
    # = (1/1 + 2/3) / 3
    case("map over k", "map(denominator=k)@3", MAP_USER, 5 / 9),
    # = (1/1 + 2/3) / 2: the third hit is past k
    case("map over hits", "map(denominator=hits)@3", MAP_USER, 5 / 6),
    # = (1/1 + 2/3) / min(5, 4): the whole list, not its first 3
    case("map over min_n_rel_n_rec", "map(denominator=min_n_rel_n_rec)@3", MAP_USER, 5 / 12),
    # = (1/1 + 2/3 + 3/4) / 5
    case("map whole over min_k_n_rel", "map", MAP_USER, 29 / 60),
    # = 29/12 / 5
    case("map whole over n_rel", "map(denominator=n_rel)", MAP_USER, 29 / 60),
    # = 29/12 / n_rec
    case("map whole over k", "map(denominator=k)", MAP_USER, 29 / 48),
    # = 29/12 / 3
    case("map whole over hits", "map(denominator=hits)", MAP_USER, 29 / 36),
    # = 29/12 / min(5, 4)
    case("map whole over min_n_rel_n_rec", "map(denominator=min_n_rel_n_rec)", MAP_USER, 29 / 48),
    # no hit: 0/0
    case("map of nothing over hits", "map(denominator=hits)", [binary(2, [], 1)], 0),
]
NDCG_USER = [graded([0, 2, 1], unseen=[3])]
NOT_ABOVE_ZERO: list[User] = [([1, 2, 3], [(1, 0.0), (2, -1.0), (3, 1.0)])]
FAR = [binary(2, [2], 1)]
GAINS = [
    # = 2^2 - 1 + 2^1 - 1
    case("cg exp2 cut", "cg(gain=exp2)@2", GRADES_4, 4),
    # = table[2] + table[1] + table[0] + table[2]
    case("cg table", "cg(gain=[0, 1, 5])", GRADES_4, 11),
    # = 0.5 + 1.5: gains need not be integers
    case("cg fractions", "cg", [graded([0.5, 0, 1.5])], 2),
    # = 2 * 1 + 1 * 1/2, and 0 past the end of the table
    case("dcg discount table", "dcg(discount=[1, 0.5])", GRADES_4, 5 / 2),
    # = (1 + 5/2) / (5 + 1/2)
    case("ndcg tables", "ndcg(gain=[0, 1, 5], discount=[1, 0.5])", [graded([1, 2])], 7 / 11),
    # = 2/2 over 3 + 2/2
    case("ndcg of truth", "ndcg(discount=[1, 0.5, 0.25])@2", NDCG_USER, 1 / 4),
    # = 2/2 over 3 + 2/2 + 1/4
    case("ndcg of truth uncut", "ndcg(discount=[1, 0.5, 0.25], ideal=truth_uncut)@2", NDCG_USER, 4 / 17),
    # = 2/2 over 2 + 1/2
    case("ndcg of list", "ndcg(discount=[1, 0.5, 0.25], ideal=list)@2", NDCG_USER, 2 / 5),
    # = 1 + 2/2 over 3 + 2/2: the third is cut from the ideal
    case("ndcg of list cut", "ndcg(discount=[1, 0.5, 0.25], ideal=list)@2", [graded([1, 2, 3])], 1 / 2),
    # = 2/2 over 2
    case("ndcg of list at k", "ndcg(discount=[1, 0.5, 0.25], ideal=list_at_k)@2", NDCG_USER, 1 / 2),
    # = 1/2 over 1 + 1/2 + 1/4
    case("ndcg of k", "ndcg(discount=[1, 0.5, 0.25], ideal=k)@3", FAR, 2 / 7),
    # = 1/2 over 1 + 1/2: without a cut-off k is n_rec
    case("ndcg of k whole", "ndcg(discount=[1, 0.5, 0.25], ideal=k)", FAR, 1 / 3),
    # nothing relevant in the list: 0/0
    case("ndcg of an empty ideal", "ndcg(ideal=list)", [binary(2, [], 1)], 0),
    # = 0.2 * (1 + 0.8²)
    case("rbp", "rbp", [binary(3, [1, 3], 2)], 0.328),
    # = 1/2 * (2 + 1 * 1/2)
    case("rbp graded", "rbp(p=0.5)", [graded([2, 1])], 5 / 4),
    # = 1/2 * 2
    case("rbp cut", "rbp(p=0.5)@1", [graded([2, 1])], 1),
    # stops 7/8 and 3/8: 7/8 + 1/2 * 3/8 * 1/8
    case("err", "err(max_gain=3)", [graded([3, 2])], 115 / 128),
    # = 7/8
    case("err cut", "err(max_gain=3)@1", [graded([3, 2])], 7 / 8),
    # stops 0, 1/4 and 3/4: 1/2 * 1/4 + 1/3 * 3/4 * 3/4
    case("err with a miss", "err(max_gain=2)", [graded([0, 1, 2])], 5 / 16),
    # gains 2 and 3 of 1, 2, 3
    case("min_gain hits", "hits", [graded([1, 2, 3])], 2, min_gain=2),
    # the metric's own min_gain overrides that of the call: only 3
    case("min_gain of the metric", "hits(min_gain=3)", [graded([1, 2, 3])], 1, min_gain=2),
    # gain 1 becomes 0: 2/2 over 3 + 2/2
    case("min_gain ndcg", "ndcg(discount=[1, 0.5], min_gain=2)", NDCG_USER, 1 / 4),
    # gains 0 and -1 are never relevant, whatever min_gain says: 1 hit of 1
    case("gain not above zero", "precision", NOT_ABOVE_ZERO, 1 / 3, min_gain=-2),
    # they add nothing to the ideal: 1/2 over 1
    case("gain below zero", "ndcg(discount=[1, 0.5])", [([1, 2], [(1, -1.0), (2, 1.0)])], 1 / 2),
]
# n = 4, TP = 2, FP = 2, FN = 2, TN = 20 - 4 - 4 + 2 = 14
LOG2_3 = math.log2(3)
GRADED = [
    # gains 0, 1, 3 of 3, 1, 2: nDCG at rank 2 and 3, and at the end for the item that is not listed
    case(
        "ndcg_rel",
        "ndcg_rel",
        [graded([0, 1, 3], [2])],
        ((1 / LOG2_3) / (3 + 2 / LOG2_3) + 2 * (1 / LOG2_3 + 3 / 2) / (3 + 2 / LOG2_3 + 1 / 2)) / 3,
    ),
    # grades 3, 2, 1 fall after ranks 1, 2 and 3
    case(
        "rndcg",
        "rndcg",
        [graded([0, 1, 3], [2])],
        ((1 / LOG2_3) / (3 + 2 / LOG2_3) + (1 / LOG2_3 + 3 / 2) / (3 + 2 / LOG2_3 + 1 / 2)) / 3,
    ),
    # one grade: ranks 1 and 3, the end of a list longer than 2
    case("rndcg of one grade", "rndcg", [binary(3, [3], 1)], 1 / 4),
    # the best order has 3 + 2 + 1 in three ranks: 1 lacks 5 - 1, then 3 lacks 6 - 4
    case("normalized_gain", "normalized_gain", [graded([0, 1, 3], [2])], (1 / math.log2(6) + 3 / 2) / 6),
    # ranks past the ideal cost 1
    case("normalized_gain of one item", "normalized_gain", [binary(3, [3], 1)], 1 / 2),
]
SETS = [
    # two hits among four, five relevant
    case("num_ret", "num_ret", [binary(4, [1, 3], 5), binary(2, [], 1)], 3),
    case("num_ret cut", "num_ret@3", [binary(4, [1, 3], 5), binary(2, [], 1)], 2.5),
    case("num_rel", "num_rel@1", [binary(4, [1, 3], 5), binary(2, [], 1)], 3),
    # = 2 - 2, then 2 * 2 - 2 + 3 * 0.5
    case("utility", "utility", [binary(4, [1, 3], 5)], 0),
    case("utility weighted", "utility(a=2, c=0.5)", [binary(4, [1, 3], 5)], 3.5),
    # = 2 - 2 + 0.5 * (20 - 4 - 5 + 2)
    case("utility of the rest", "utility(d=0.5)", [binary(4, [1, 3], 5)], 6.5, n_items=20),
    # = 2/4 * 2/5
    case("set_ap", "set_ap", [binary(4, [1, 3], 5)], 0.2),
    # = 1/1 * 1/5
    case("set_ap cut", "set_ap@1", [binary(4, [1, 3], 5)], 0.2),
    # = (1/5 + 2/5) / 5 and / 2
    case("mar", "mar@4", [binary(4, [1, 3], 5)], 0.12),
    case("mar over hits", "mar(denominator=hits)@4", [binary(4, [1, 3], 5)], 0.3),
    # m = floor(0.4 * 5 + 0.9) = 2: 1 of 2; m = 10: 2 of 10
    case("r_precision of a part", "r_precision(multiple=0.4)", [binary(4, [1, 3], 5)], 0.5),
    case("r_precision of twice as many", "r_precision(multiple=2)", [binary(4, [1, 3], 5)], 0.2),
]
# ranks: not judged, judged not relevant, relevant, in the pool, relevant; a third relevant item is not listed
POOL: list[User] = [([7, 3, 1, 4, 2], [(1, 1.0), (2, 1.0), (9, 1.0), (3, 0.0), (4, -1.0), (8, 0.0)])]
EPS = 0.00001
JUDGED = [
    # = ((1 - 1/2) + (1 - 1/2)) / 3, then with 1 - 1/3 for both
    case("bpref", "bpref", POOL, 1 / 3),
    case("bpref as published", "bpref(denominator=n_rel)", POOL, 4 / 9),
    case("bpref cut", "bpref@4", POOL, 1 / 6),
    # nothing judged not relevant: 2 of 3 relevant items
    case("bpref without others", "bpref", [binary(5, [3, 5], 3)], 2 / 3),
    # = (1/3 + 2/3 * 1/2 * e / (1 + 2e) + 1/5 + 4/5 * 3/4 * (1 + e) / (2 + 2e)) / 3
    case(
        "inf_ap",
        "inf_ap",
        POOL,
        (1 / 3 + 1 / 3 * EPS / (1 + 2 * EPS) + 1 / 5 + 3 / 5 * (1 + EPS) / (2 + 2 * EPS)) / 3,
    ),
    case("judged", "judged", POOL, 0.6),
    case("judged cut", "judged@2", POOL, 0.5),
    case("unjudged", "unjudged@10", POOL, 0.2),
    case("num_nonrel_judged_ret", "num_nonrel_judged_ret", POOL, 1),
    # = 1/2 + 1/16 + 1/32
    case("rbp_residual", "rbp_residual(p=0.5)", POOL, 19 / 32),
    case("rbp_residual of one judged item", "rbp_residual(p=0.5)", [binary(1, [1], 1)], 1 / 2),
    case("rbp_residual of trec_eval", "rbp_residual(p=0.5, tail=unjudged)", [binary(1, [1], 1)], 0),
    # precisions 1/3 and 2/5 at recall 1/3 and 2/3
    case("iprec", "iprec_at_recall(level=0.2)", POOL, 2 / 5),
    case("iprec cut", "iprec_at_recall(level=0.2)@4", POOL, 1 / 3),
    case("iprec of all", "iprec_at_recall(level=1)", POOL, 0),
    # 0.4 * 3 + 0.9 is 2.1, and 0.4 * 3 is nearer to 1
    case("iprec up", "iprec_at_recall(level=0.4)", [binary(3, [1, 3], 3)], 2 / 3),
    case("iprec nearest", "iprec_at_recall(level=0.4, rounding=nearest)", [binary(3, [1, 3], 3)], 1),
    # = 2/5 at 0, 0.1, ..., 0.7: in floating point, 0.7 * 3 + 0.9 is below 3
    case("11 points", "eleven_point_average", POOL, 8 * 0.4 / 11),
    # = 2/5 at 0, 0.1, ..., 0.8, as 0.8 * 3 is nearer to 2
    case("11 points nearest", "eleven_point_average(rounding=nearest)", POOL, 9 * 0.4 / 11),
    # = (1/log2(4) + 1/log2(5)) / 3: two and three misses above
    case("bin_g", "bin_g", POOL, (1 / 2 + 1 / math.log2(5)) / 3),
    case("median_rank", "median_rank", [*POOL, binary(6, [2, 3, 6], 3), binary(2, [], 1)], 3.5),
]
POSITIONS = [
    # = (1/1 + 1/2 + 2/3 + 2/4 + 2/5) / 5: the list of four ends before rank 5
    case("mean_precision", "mean_precision@5", [binary(4, [1, 3], 5)], 46 / 75),
    # = (1/5 + 1/5 + 2/5 + 2/5 + 2/5) / 5
    case("mean_recall", "mean_recall@5", [binary(4, [1, 3], 5)], 0.32),
    # = (1 + 1/3) / (1 + 1/2 + 1/3 + 1/4)
    case("ncrr", "ncrr@4", [binary(4, [1, 3], 5)], 0.64),
    # the values that TF-Ranking asserts for scores [1, 3, 2] and [1, 2, 3], labels [0, 0, 1] and [0, 1, 2]
    case(
        "ARP of TF-Ranking", "average_relevance_position(average=pooled)", [graded([0, 1, 0]), graded([2, 1, 0])], 1.5
    ),
    case("ARP of its first list", "average_relevance_position(average=pooled)", [graded([0, 1, 0])], 2),
    # = (2 + 4/3) / 2: a user without a hit does not count
    case("ARP of users", "average_relevance_position", [graded([0, 1, 0]), graded([2, 1, 0]), graded([0], [1])], 5 / 3),
    # = (2 + 3/2) / 2
    case("mean rank", "average_relevance_position(gain=binary)", [graded([0, 1, 0]), graded([2, 1, 0])], 1.75),
    case("coverage_error", "coverage_error", [binary(4, [1, 3], 2), binary(3, [1], 2)], 3),
    # the values that TF-Ranking asserts for the lists of its ARP
    case("OPA of TF-Ranking", "ordered_pair_accuracy(average=pooled)", [graded([0, 1, 0]), graded([2, 1, 0])], 4 / 5),
    case("OPA of its first list", "ordered_pair_accuracy(average=pooled)", [graded([0, 1, 0])], 1 / 2),
    case("OPA of users", "ordered_pair_accuracy", [graded([0, 1, 0]), graded([2, 1, 0]), graded([1, 1])], 3 / 4),
    case("OPA of two ranks", "ordered_pair_accuracy@2", [graded([0, 1, 0])], 0),
    case("ndpm", "ndpm", [graded([0, 1, 0]), graded([2, 1, 0]), graded([1, 1])], 1 / 4),
]
SQUARES = math.pi**2 / 6  # the sum of 1 / r^2 over all ranks
USER_MODELS = [
    # = (1/2^2 + 1/4^2) / (pi^2/6 - 1)
    case("insq", "insq(max_gain=1)", [binary(4, [1, 3], 5)], (1 / 4 + 1 / 16) / (SQUARES - 1)),
    # = (2/4^2 + 1/5^2) / 4 / (pi^2/6 - 1 - 1/4 - 1/9)
    case("insq of two", "insq(max_gain=4, t=2)", [graded([2, 1])], (1 / 8 + 1 / 25) / 4 / (SQUARES - 49 / 36)),
    # = (1/1^2) / (pi^2/6)
    case("insq of half an item", "insq(max_gain=3, t=0.5)", [graded([3, 0])], 1 / SQUARES),
    # = 1/2^2 / (1/2^2 + 1/3^2): the list goes on past the last rank
    case("insq of two ranks", "insq(max_gain=1, depth=2)", [binary(4, [1, 3], 5)], 9 / 13),
    # x = 2, 3, 3: weights 1, 1/4, 1/9, then 4/9 of 1/3^2, 1/4^2, ...
    case("inst", "inst(max_gain=1)", [binary(3, [1, 3], 2)], (10 / 9) / (49 / 36 + 4 / 9 * (SQUARES - 5 / 4))),
    # gains 1/2 and 0: x = 2.5, 3.5; weights 1, 9/25
    case("inst of two ranks", "inst(max_gain=2, depth=2)", [graded([1, 0])], (1 / 2) / (34 / 25)),
    # a gain of 2 at rank 4; then after 2 ranks; then a gain of 1 at rank 1
    case("bpm", "bpm(max_gain=1, t=2)@5", [binary(5, [1, 4, 5], 3)], 2 / 4),
    case("bpm cut", "bpm(max_gain=1, t=2)@2", [binary(5, [1, 4, 5], 3)], 1 / 2),
    case("bpm past the end", "bpm(max_gain=2)@4", [graded([0, 1])], 1 / 8),
    # weights 1, 1/2 and none; then 1, 1 and none
    case("nerr", "nerr(max_gain=1)@3", [([7, 1, 2], [(1, 1.0), (2, 1.0)])], 1 / 3),
    case("nerr cut", "nerr(max_gain=1, model=cut)@3", [([7, 1, 2], [(1, 1.0), (2, 1.0)])], 1 / 2),
    # gains 1/4, 0: weights 1, 3/4, and 3/4 up to rank 4
    case("nerr past the end", "nerr(max_gain=4, model=cut)@4", [graded([1, 0])], 1 / 4 / (1 + 9 / 4)),
    # weights 1, 3/8, 3/16, ...: 1 + 3/4
    case("nerr of patience", "nerr(max_gain=4, model=patience, p=0.5)", [graded([1, 0])], 1 / 4 / (7 / 4)),
    # weights 1 = 4/2^2, then 3/4 of 4/3^2, 4/4^2, ...
    case("nerr of a goal", "nerr(max_gain=4, model=goal)", [graded([1, 0])], 1 / 4 / (1 + 3 * (SQUARES - 5 / 4))),
    # overlaps 0 and 2 of depths 1 and 2, with weights 1 and 1/2: 1/2 of 3/2
    case("compatibility", "compatibility(p=0.5)", [graded([1, 3])], 1 / 3),
    # one of two relevant items: overlaps 0 and 1 of the ideal's 1 and 2; then overlaps 1 and 1
    case("compatibility of a short list", "compatibility(p=0.5)", [graded([1], [2])], 1 / 6),
    case("compatibility of the best item", "compatibility(p=0.5)", [graded([2], [1])], 5 / 6),
    # the ideal of one item against itself: 1 + 1/4 + 1/12; here it is at rank 2: 1/4 + 1/12; all depths: 7/4
    case("compatibility past the ideal", "compatibility(p=0.5)", [binary(3, [2], 1)], 1 / 4),
    case("compatibility as it is", "compatibility(p=0.5, normalize=no)", [binary(3, [2], 1)], 4 / 21),
]
CATALOGUE = [binary(5, [1, 3, 5], 4)]
AUC_USER = [binary(4, [2, 3], 3)]
CONFUSION = [
    # = (2 + 14) / 20
    case("accuracy", "accuracy@4", CATALOGUE, 4 / 5, n_items=20),
    # = 14 / (14 + 2)
    case("specificity", "specificity@4", CATALOGUE, 7 / 8, n_items=20),
    # = 2 / (2 + 14)
    case("fallout", "fallout@4", CATALOGUE, 1 / 8, n_items=20),
    # = (2 * 14 - 2 * 2) / sqrt(4 * 4 * 16 * 16)
    case("mcc", "mcc@4", CATALOGUE, 3 / 8, n_items=20),
    # with n = 5, TP = 3, FP = 2, FN = 1, TN = 14: 17 / 20
    case("accuracy whole", "accuracy", CATALOGUE, 17 / 20, n_items=20),
    # = 14 / (14 + 2)
    case("specificity whole", "specificity", CATALOGUE, 7 / 8, n_items=20),
    # = 2 / (2 + 14)
    case("fallout whole", "fallout", CATALOGUE, 1 / 8, n_items=20),
    # = (3 * 14 - 2 * 1) / sqrt(5 * 4 * 16 * 15)
    case("mcc whole", "mcc", CATALOGUE, 40 / math.sqrt(4800), n_items=20),
    # k = 10 but n = 2: TP = 1, FP = 1, FN = 1, TN = 7
    case("accuracy short list", "accuracy@10", [binary(2, [1], 2)], 4 / 5, n_items=10),
    # n = 2, TP = 2, TN = FP = 0: 0/0
    case("specificity of nothing", "specificity", [binary(2, [1, 2], 2)], 0, n_items=2),
    # the same, 0 / sqrt(0)
    case("mcc of nothing", "mcc", [binary(2, [1, 2], 2)], 0, n_items=2),
    # M = 7: hits at 2 and 3 beat 6 each, the unseen relevant item draws with 5: (12 + 5/2) / (3 * 7)
    case("limited_auc", "limited_auc", AUC_USER, 29 / 42, n_items=10),
    # hit at 2 beats 6, two unseen relevant items draw with 6 each: (6 + 12/2) / (3 * 7)
    case("limited_auc cut", "limited_auc@2", AUC_USER, 4 / 7, n_items=10),
    # no hit: one unseen relevant item draws with 3 of 4
    case("limited_auc no hit", "limited_auc", [binary(1, [], 1)], 3 / 8, n_items=5),
    # all relevant: no pair
    case("limited_auc no pair", "limited_auc", [binary(2, [1, 2], 2)], 0, n_items=2),
    # hits at 2 and 3 beat 1 of 2 misses each: 2 / 4
    case("limited_auc list_only", "limited_auc(unseen=list_only)", AUC_USER, 1 / 2),
    # miss, hit: 0 of 1
    case("limited_auc list_only cut", "limited_auc(unseen=list_only)@2", AUC_USER, 0),
    # hit, miss, hit, miss: 2 + 1 of 4
    case("limited_auc list_only mixed", "limited_auc(unseen=list_only)", [binary(4, [1, 3], 2)], 3 / 4),
    # no miss: 0/0
    case("limited_auc list_only no pair", "limited_auc(unseen=list_only)", [binary(2, [1, 2], 2)], 0),
]
# One user of each kind: counted with recall 1/2; no relevant item; no list, one relevant item; neither.
KINDS: list[User] = [binary(2, [1], 2), ([1, 2], []), ([], [(1, 1.0)]), ([], [])]
POLICIES = [
    # = (1/2 + 0) / 2: no truth skipped, no list zero
    case("policies default", "recall", KINDS, 1 / 4),
    # = 1/2 alone
    case("no_recs skip", "recall", KINDS, 1 / 2, no_recs="skip"),
    # = (1/2 + 0 + 0 + 0) / 4
    case("no_truth zero", "recall", KINDS, 1 / 8, no_truth="zero"),
    case("no_truth nan", "recall", KINDS, math.nan, no_truth="nan", std_error=math.nan),
    case("no_recs nan", "recall", KINDS, math.nan, no_recs="nan"),
    case("no_recs nan pooled", "recall(average=pooled)", KINDS, math.nan, no_recs="nan"),
    # no_truth decides about a user with neither
    case("neither", "recall", KINDS[3:], 0, no_truth="zero", no_recs="error"),
    # no user is left
    case("nobody", "recall", KINDS[1:2], math.nan, std_error=math.nan),
    case("no users", "ndcg@10", [], math.nan, std_error=math.nan),
    # = (1 + 0) / (2 + 1)
    case("no_recs zero pooled recall", "recall(average=pooled)", KINDS, 1 / 3),
    # = (1 + 0 + 0 + 0) / (3 * 4)
    case("zero pooled precision", "precision(average=pooled)@3", KINDS, 1 / 12, no_truth="zero"),
    # = 2 * 1 / ((2 + 0 + 1 + 0) + (3 * 4))
    case("zero pooled f1", "f1(average=pooled)@3", KINDS, 2 / 15, no_truth="zero"),
    # P = 1/3 / 4, R = 1/2 / 4: 2 * 1/96 / (5/24)
    case("zero f1 of means", "f1(average=means)@3", KINDS, 1 / 10, no_truth="zero"),
    # an empty list would leave TN = 9 of 9, but zero is 0 for every metric
    case("zero specificity", "specificity", KINDS[2:3], 0, n_items=10),
    case("zero limited_auc", "limited_auc", KINDS[2:3], 0, n_items=10),
    # 1, 2, 3 -> 2, 3: the hit moves up to rank 1
    case("exclude", "mrr", [([1, 2, 3], [(2, 1.0)])], 1, exclude=[[1, 9]]),
    # h = 1 of the remaining n_rec = 2
    case("exclude n_rec", "precision", [([1, 2, 3], [(2, 1.0)])], 1 / 2, exclude=[[1]]),
    # everything excluded is a user without a list
    case("exclude all", "mrr", [([1, 2], [(2, 1.0)])], math.nan, exclude=[[1, 2]], no_recs="skip"),
    # the excluded item stays relevant: 1 hit of n_rel = 2
    case("exclude keeps the truth", "recall", [([1, 2], [(1, 1.0), (2, 1.0)])], 1 / 2, exclude=[[1]]),
    # 1, 1, 2 -> 1, 2: the hit at rank 2
    case("duplicates first", "mrr", [([1, 1, 2], [(2, 1.0)])], 1 / 2, duplicates="first"),
    # 1, -, 2: the hit at rank 3
    case("duplicates miss", "mrr", [([1, 1, 2], [(2, 1.0)])], 1 / 3, duplicates="miss"),
    # 2, - : one hit, not two, of n_rec = 2
    case("duplicates miss hit", "precision", [([2, 2], [(2, 1.0)])], 1 / 2, duplicates="miss"),
    # 2: one hit of n_rec = 1
    case("duplicates first hit", "precision", [([2, 2], [(2, 1.0)])], 1, duplicates="first"),
    # the larger of gains 1 and 3
    case("duplicates in truth", "cg", [([2], [(2, 1.0), (2, 3.0), (2, -1.0)])], 3, duplicates="first"),
    # merged to n_rel = 1
    case("duplicates in truth merged", "recall", [([2], [(2, 1.0), (2, 3.0)])], 1, duplicates="miss"),
    # = (1 * 1/2 + 3 * 3/4) / 4; residuals 1 * -3/16 and 3 * 1/16: sqrt(2 * 18/256) / 4
    case("weights", "precision", A_AND_B, 11 / 16, weights=[1.0, 3.0], std_error=3 / 32),
    # = (1 * 1 + 3 * 3) / (1 * 2 + 3 * 4)
    case("weights pooled", "precision(average=pooled)", A_AND_B, 5 / 7, weights=[1.0, 3.0]),
    # the weight of a user who is not counted has no effect
    case("weights skip", "recall", KINDS[:3], 1 / 8, weights=[1.0, 100.0, 3.0]),
]
GEOMETRIC = [
    # = sqrt(1/2 * 1/8)
    case("geometric mrr", "mrr(mean=geometric)", [binary(2, [2], 1), binary(8, [8], 1)], 0.25),
    # = cube root of 1 * 1/2 * 0.00001: a user without a hit counts with the floor; so does one without a list
    case(
        "geometric map",
        "map(mean=geometric)",
        [binary(2, [1], 1), binary(2, [2], 1), binary(2, [], 1)],
        0.000005 ** (1 / 3),
    ),
    case("geometric map without a list", "map(mean=geometric)", [binary(4, [4], 1), ([], [(1, 1.0)])], 0.0000025**0.5),
    # logarithms -log 4 and 0 deviate by log 2: 1/2 * sqrt(2 * 2 * (log 2)^2) / 2
    case(
        "geometric error", "mrr(mean=geometric)", [binary(4, [4], 1), binary(1, [1], 1)], 0.5, std_error=math.log(2) / 2
    ),
    # = (1/2^3 * 1)^(1/4)
    case(
        "geometric weighted",
        "mrr(mean=geometric)",
        [binary(2, [2], 1), binary(1, [1], 1)],
        0.125**0.25,
        weights=[3.0, 1.0],
    ),
]
TIED: list[User] = [([5, 2, 9], [(2, 1.0)])]
HALVING_DCG = "dcg(discount=[1, 0.5, 0.25])"
GRADED_TIE: list[User] = [([7, 5, 2], [(2, 1.0), (5, 2.0)])]
TIES = [
    # scores 1, 3, 2 order the list 2, 9, 5: the hit 9 at rank 2
    case("scores", "mrr", [([5, 2, 9], [(9, 1.0)])], 1 / 2, scores=[[1.0, 3.0, 2.0]], ties="error"),
    # 5, 2, 9
    case("ties input", "mrr", TIED, 1 / 2, scores=[[1.0] * 3], ties="input"),
    # 5, 9, 2
    case("ties worst", "mrr", TIED, 1 / 3, scores=[[1.0] * 3], ties="worst"),
    # 2, 5, 9
    case("ties best", "mrr", TIED, 1, scores=[[1.0] * 3], ties="best"),
    # 2, 5, 9
    case("ties id_asc", "mrr", TIED, 1, scores=[[1.0] * 3], ties="id_asc"),
    # 9, 5, 2
    case("ties id_desc", "mrr", TIED, 1 / 3, scores=[[1.0] * 3], ties="id_desc"),
    # -0.0 equals 0.0: 5 and 2 are tied before 9
    case("ties zeros", "mrr", TIED, 1 / 2, scores=[[-0.0, 0.0, -1.0]], ties="worst"),
    # only 2 and 9 are tied, after 5: 5, 9, 2
    case("ties block", "mrr", TIED, 1 / 3, scores=[[2.0, 1.0, 1.0]], ties="worst"),
    # infinities are scores: 9, 5, 2
    case("scores infinite", "mrr", TIED, 1 / 3, scores=[[0.0, -math.inf, math.inf]], ties="error"),
    # gains 0, 1, 2: 1/2 + 2/4
    case("ties worst graded", HALVING_DCG, GRADED_TIE, 1, scores=[[1.0] * 3], ties="worst"),
    # gains 2, 1, 0: 2 + 1/2
    case("ties best graded", HALVING_DCG, GRADED_TIE, 5 / 2, scores=[[1.0] * 3], ties="best"),
    # with min_gain 2 item 2 has gain 0 like 7: 7, 2, 5
    case("ties worst min_gain", "mrr", GRADED_TIE, 1 / 3, scores=[[1.0] * 3], ties="worst", min_gain=2),
    # 2 has its best score 3, its copy is closed up: 2, 5
    case(
        "scores duplicates first",
        "precision",
        [([2, 5, 2], [(2, 1.0)])],
        1 / 2,
        scores=[[1.0, 2.0, 3.0]],
        ties="input",
        duplicates="first",
    ),
]
CASES: list[Case] = [
    *DEFINED,
    *HITS,
    *RANKS,
    *GAINS,
    *GRADED,
    *SETS,
    *JUDGED,
    *POSITIONS,
    *USER_MODELS,
    *CONFUSION,
    *POLICIES,
    *GEOMETRIC,
    *TIES,
]
REFUSED: list[Refused] = [
    refused("no_truth", "recall", KINDS[:2], no_truth="error"),
    refused("no_truth and no list", "recall", KINDS[3:], no_truth="error", no_recs="zero"),
    refused("no_recs", "recall", KINDS[:3], no_recs="error"),
    refused("twice in a list", "recall", [([1, 1], [(1, 1.0)])]),
    refused("twice in the truth", "recall", [([1], [(1, 1.0), (1, 2.0)])]),
    refused("tied scores", "recall", TIED, scores=[[1.0, 2.0, 1.0]], ties="error"),
    refused("NaN score", "recall", TIED, scores=[[1.0, math.nan, 2.0]], ties="input"),
    refused("n_items missing", "accuracy", CATALOGUE),
    refused("n_items missing for the tail", "limited_auc", CATALOGUE),
    refused("n_items too small", "accuracy", CATALOGUE, n_items=5),
    refused("grade past the table", "cg(gain=[0, 1])", GRADES_4),
    refused("grade past the table, unseen", "cg(gain=[0, 1, 2])", NDCG_USER),
    refused("grade not an integer", "cg(gain=[0, 1, 2])", [graded([0.5])]),
    refused("table not from 0", "cg(gain=[1, 2, 3])", GRADES_4),
    refused("table decreasing", "cg(gain=[0, 2, 1])", GRADES_4),
    refused("gain above max_gain", "err(max_gain=1)", GRADES_4),
    refused("ideal=k graded", "ndcg(ideal=k)@3", GRADES_4),
]


# Scored rows.


class ScoredCase(NamedTuple):
    """Case for labels and scores of the rows of each user; `call` has the names of `score_oracle.evaluate`."""

    name: str
    metric: str
    labels: list[list[float]]
    scores: list[list[float]]
    expected: float
    tolerance: float
    call: dict[str, Any]
    std_error: float | None = None


ScoredUser = tuple[list[float], list[float]]


def scored(
    name: str,
    metric: str,
    users: list[ScoredUser],
    expected: float,
    *,
    tolerance: float = 1e-12,
    std_error: float | None = None,
    **call: Any,
) -> ScoredCase:
    labels, scores = [u[0] for u in users], [u[1] for u in users]
    return ScoredCase(name, metric, labels, scores, expected, tolerance, call, std_error)


def repeated(user: ScoredUser, times: int) -> ScoredUser:
    """Return every negative row several times."""
    rows = [row for row in zip(*user, strict=True) for _ in range(1 if row[0] else times)]
    return [label for label, _ in rows], [score for _, score in rows]


def as_scored(case: Case) -> ScoredCase | None:
    """Return the same lists and truth as scored rows; None if a relevant item is in no list, if the metric or the call
    is about lists, or if no score changes the metric."""
    call = dict(case.call)
    name = case.metric.partition("(")[0].partition("@")[0]
    if name in OF_JUDGEMENTS or (name in COUNTS_ALL and "@" not in case.metric):
        return None
    scores = call.pop("scores", [[float(-rank) for rank in range(len(items))] for items in case.recs])
    labels = [[dict(rows).get(item, 0.0) for item in items] for items, rows in zip(case.recs, case.truth, strict=True)]
    for items, rows in zip(case.recs, case.truth, strict=True):
        if not {item for item, gain in rows if gain > 0} <= set(items) or len(set(items)) < len(items):
            return None
    if set(call) & {"no_recs", "exclude", "duplicates"} or call.get("min_gain", 1) <= 0:
        return None
    if "scores" in case.call:
        call |= {"item_ids": case.recs}
    return ScoredCase(f"{case.name} scored", case.metric, labels, scores, case.expected, case.tolerance, call, None)


# The numbered cases of the definitions.

PAIRS: ScoredUser = ([0, 1, 1, 1, 0, 0, 1], [5, 4, 3, 3, 3, 2, 1])
RARE: ScoredUser = ([1] + [0] * 999, [0.1] * 1000)
TIED_ROWS: list[ScoredUser] = [([0, 1, 0, 1, 1], [3, 2, 2, 2, 1])]
TWO_USERS: list[ScoredUser] = [([1, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5]), ([1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6])]
SCORED_DEFINED = [
    # the positives beat 2, 1 1/2, 1 1/2 and 0 of 3 negatives: 5 of 12
    scored("11", "auc", [PAIRS], 5 / 12),
    scored("11 gauc", "gauc", [PAIRS], 5 / 12),
    # all pairs are there 10 times
    scored("13 auc", "auc", [repeated(PAIRS, 10)], 5 / 12, tolerance=0),
    # 3 positives and 2 negatives reach 3
    scored("13 precision before", "precision(threshold=3)", [PAIRS], 3 / 5),
    # = 3 / (3 + 10 * 2)
    scored("13 precision", "precision(threshold=3)", [repeated(PAIRS, 10)], 3 / 23),
    scored("14 accuracy", "accuracy(threshold=0.5)", [RARE], 0.999),
    scored("14 auc", "auc", [RARE], 0.5, tolerance=0),
    # orders of the tied 1, 0, 1: hits at 2 3 5, 2 4 5, 3 4 5: (1/2 + 2/3 + 3/5 + 1/2 + 2/4 + 3/5 + 1/3 + 2/4 + 3/5)/9
    scored("16 map", "map", TIED_ROWS, 0.5333333333333333),
    # = (1/2 + 1/2 + 1/3) / 3
    scored("16 mrr", "mrr", TIED_ROWS, 0.4444444444444444),
    # = 2/3 (1/log2(3) + 1/log2(4)) / (1 + 1/log2(3) + 1/log2(4))
    scored("16 ndcg", "ndcg@3", TIED_ROWS, 0.35381418265149556),
    # the negative stands at rank 2 in one order of three
    scored("16 hit_rate", "hit_rate@2", TIED_ROWS, 2 / 3),
    # two halves of 6 pairs
    scored("16 auc", "auc", TIED_ROWS, 1 / 6),
    # hits at 2 3, at 2, at 3: ((1/2 + 2/3) / 2 + 1/2 + 1/3) / 3
    scored("16 map over hits", "map(denominator=hits)@3", TIED_ROWS, 17 / 36),
    # = ((1/4 + 1/12 + 1/40) + (1/4 + 1/16 + 1/40) + (1/6 + 1/16 + 1/40)) / 3
    scored("16 err", "err(max_gain=1)", TIED_ROWS, 19 / 60),
    # = (2/3 + 1) / (2 + 2)
    scored("16 pooled", "precision(average=pooled)@2", [*TIED_ROWS, ([1], [0.5])], 5 / 12),
    # P = (1/3 + 1/2) / 2, R = (2/9 + 1) / 2
    scored("16 f1 of means", "f1(average=means)@2", [*TIED_ROWS, ([1], [0.5])], 55 / 111),
    # = (2/3 + 1/2) / 2
    scored("17 equal", "gauc(weight=equal)", TWO_USERS, 0.5833333333333333),
    # = (5 * 2/3 + 4 * 1/2) / 9
    scored("17 impressions", "gauc", TWO_USERS, 0.5925925925925926),
    # = (3 * 2/3 + 2 * 1/2) / 5
    scored("17 positives", "gauc(weight=positives)", TWO_USERS, 0.6),
    # = (2 * 2/3 + 2 * 1/2) / 4
    scored("17 negatives", "gauc(weight=negatives)", TWO_USERS, 7 / 12),
    # = (4 + 2) / (6 + 4)
    scored("17 pairs", "gauc(weight=pairs)", TWO_USERS, 3 / 5),
]
# A threshold of .6 ties a positive and a negative.
FOUR: ScoredUser = ([1, 0, 1, 0], [0.8, 0.6, 0.6, 0.2])
LIKED: ScoredUser = ([1, 1], [0.9, 0.1])
FLAT: ScoredUser = ([1, 0, 0], [0.5, 0.5, 0.5])
NOBODY: ScoredUser = ([], [])
# Of the docstrings of BinaryEER, BinaryRecallAtFixedPrecision, BinarySensitivityAtSpecificity, BinaryCalibrationError.
TORCH_EER: ScoredUser = ([0, 0, 1, 1, 1], [0.13, 0.26, 0.08, 0.19, 0.34])
TORCH_AT: ScoredUser = ([0, 1, 1, 0], [0, 0.5, 0.7, 0.8])
TORCH_RATES: ScoredUser = ([0, 1, 1, 1], [0, 0.5, 0.4, 0.1])
TORCH_BINS: ScoredUser = ([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75])
ORDERED_ROWS = [
    # the positives beat 2 and 1 1/2 of 2; components 1, 3/4 and 3/4, 1, each of variance 1/32: sqrt(1/64 + 1/64)
    # one user has no spread
    scored("auc", "auc", [FOUR], 7 / 8, std_error=math.nan),
    # the same rows in two users have the same area; placements of positives 1, 3/4, of negatives 3/4, 1, each less 7/8
    # and over 2: 1/16 - 1/16 in a user and -1/16 + 1/16 in the other
    scored("auc of rows", "auc", [([1, 0], [0.8, 0.6]), ([1, 0], [0.6, 0.2])], 7 / 8, std_error=0.0),
    # 1/16 + 1/16 in a user, -1/16 - 1/16 in the other: 2 / 1 * (1/8^2 + 1/8^2)
    scored("auc of users", "auc", [([1, 0], [0.8, 0.2]), ([0, 1], [0.6, 0.6])], 7 / 8, std_error=1 / 4),
    # the only negatives are those of one user
    scored("auc of few", "auc", [([1], [0.8]), ([0, 1, 0], [0.6, 0.6, 0.2])], 7 / 8, std_error=math.nan),
    # from (0, 1/2) to (1/2, 1): area 3/8 between 1/8 and 1/2
    scored("auc max_fpr", "auc(max_fpr=0.5)", [FOUR], 5 / 6),
    scored("auc of all", "auc(max_fpr=1)", [FOUR], 7 / 8),
    # from (1/4, 3/4) to (1/2, 1)
    scored("auc of a range", "auc(min_fpr=0.25, max_fpr=0.5, scale=raw)", [FOUR], 7 / 32),
    scored("auc of a width", "auc(min_fpr=0.25, max_fpr=0.5, scale=width)", [FOUR], 7 / 8),
    # chance has 1/4 * 3/8 = 3/32 of 8/32: (1 + 4/5) / 2
    scored("auc of a range scaled", "auc(min_fpr=0.25, max_fpr=0.5)", [FOUR], 9 / 10),
    # specificity falls from 1 to 1/2 while sensitivity rises from 1/2 to 1
    scored("auc of sensitivities", "auc(min_tpr=0.5, scale=raw)", [FOUR], 3 / 8),
    # chance has 1/8 of 1/2: (1 + 2/3) / 2
    scored("auc of sensitivities scaled", "auc(min_tpr=0.5)", [FOUR], 5 / 6),
    # integral of (1/2 + x) / x from 1/4 to 1/2, over log 2
    scored("log_auc", "log_auc(min_fpr=0.25, max_fpr=0.5)", [FOUR], 1 / 2 + 1 / (4 * math.log(2))),
    # = (3/4 + 1) / 2
    scored("log_auc log", "log_auc(min_fpr=0.25, max_fpr=0.5, interpolation=log)", [FOUR], 7 / 8),
    # FPR x and FNR 1/2 - x
    scored("eer", "eer", [FOUR], 1 / 4),
    # at .26 FPR 1/2 and FNR 2/3, at .19 FPR 1/2 and FNR 1/3: as near, and the first counts
    scored("eer of TorchMetrics", "eer(interpolation=nearest)", [TORCH_EER], 7 / 12),
    # FPR is 1/2 while FNR falls from 2/3 to 1/3
    scored("eer between", "eer", [TORCH_EER], 1 / 2),
    scored("eer of one class", "eer", [LIKED], math.nan),
    # at .5, 2 of 3 rows are positive; at 0, 2 of 4
    scored("recall_at_precision of TorchMetrics", "recall_at_precision(at=0.5)", [TORCH_AT], 1),
    scored("recall_at_precision above", "recall_at_precision(at=0.7)", [TORCH_AT], 0),
    # 9 of the 10 rows are positive, and 0.9 as a double is above 9/10
    scored(
        "recall_at_precision of 9 in 10",
        "recall_at_precision(at=0.9)",
        [([0] + [1] * 9, [float(n) for n in range(10, 0, -1)])],
        1,
    ),
    scored("precision_at_recall of TorchMetrics", "precision_at_recall(at=0.5)", [TORCH_AT], 2 / 3),
    scored("precision_at_recall of no positives", "precision_at_recall(at=0.5)", [([0], [1])], math.nan),
    scored("sensitivity_at_specificity of TorchMetrics", "sensitivity_at_specificity(at=0.5)", [TORCH_RATES], 1),
    # only the threshold above all scores has a specificity of 1
    scored("sensitivity_at_specificity of 1", "sensitivity_at_specificity(at=1)", [([0, 1], [2, 1])], 0),
    scored("specificity_at_sensitivity of TorchMetrics", "specificity_at_sensitivity(at=0.5)", [TORCH_RATES], 1),
    # = (1 * (2 + 1) + 3 * (2 / 2 + 1)) / (4 * 3): weights 1, 3 of the positives, 2, 1 of the negatives
    scored("auc weighted", "auc", [FOUR], 9 / 12, sample_weight=[[1, 2, 3, 1]]),
    scored("auc of one class", "auc", [LIKED], math.nan, std_error=math.nan),
    # one positive has no variance
    scored("auc of one positive", "auc", [FLAT], 1 / 2, std_error=math.nan),
    # gains 3 and 2 are positive, and the last is not: 1 of 2 pairs
    scored("auc min_gain", "auc(min_gain=2)", [([3, 1, 2], [3, 2, 1])], 1 / 2),
    # = 1/2 * 1 + 1/2 * 2/3
    scored("average_precision", "average_precision", [FOUR], 5 / 6),
    # = 1/2 * 1 + 1/2 * (1 + 2/3) / 2
    scored("average_precision trapezoid", "average_precision(interpolation=trapezoid)", [FOUR], 11 / 12),
    # = 1/2 * 1 + 1/2 * integral from 1 to 2 of x / (2x - 1) = 1/2 + 1/2 (1/2 + log(3) / 4)
    scored(
        "average_precision davis_goadrich",
        "average_precision(interpolation=davis_goadrich)",
        [FOUR],
        3 / 4 + math.log(3) / 8,
    ),
    # = (5/6 + 1/3) / 2: the user without positives is left out
    scored("average_precision of users", "average_precision(average=user)", [FOUR, ([0], [0.5]), FLAT], 7 / 12),
    scored("average_precision of nothing", "average_precision", [([0, 0], [1, 2])], 0),
    # at .8 it is 1/2 - 0, at .6 1 - 1/2
    scored("ks", "ks", [FOUR], 1 / 2),
    scored("ks of one class", "ks", [LIKED], math.nan),
]
GROUPED = [
    # = (4 * 7/8 + 3 * 1/2) / 7; the user of one class and the one of none are dropped
    scored("gauc", "gauc", [FOUR, LIKED, FLAT, NOBODY], 5 / 7),
    # = 7/8 alone
    scored("gauc constant", "gauc(constant=drop)", [FOUR, LIKED, FLAT], 7 / 8, std_error=math.nan),
    # = (4 * 7/8 + 2 * 1/2 + 3 * 1/2) / 9
    scored("gauc half", "gauc(one_class=half)", [FOUR, LIKED, FLAT], 2 / 3),
    # = (4 * 7/8 + 0 + 3 * 1/2) / 9
    scored("gauc zero", "gauc", [FOUR, LIKED, FLAT], 5 / 9, one_class="zero"),
    scored("gauc nan", "gauc", [FOUR, LIKED, FLAT], math.nan, one_class="nan"),
    # the metric's own policy overrides that of the call
    scored("gauc own policy", "gauc(one_class=drop)", [FOUR, LIKED, FLAT], 5 / 7, one_class="error"),
    # = (4 * 7/8 + 4 * 3 * 1/2) / (4 + 12)
    scored("gauc user weights", "gauc", [FOUR, FLAT], 19 / 32, weights=[1, 4]),
    # w = 7, auc 9/12, and w = 3, auc 1/2: (7 * 3/4 + 3 * 1/2) / 10
    scored("gauc weighted", "gauc", [FOUR, FLAT], 27 / 40, sample_weight=[[1, 2, 3, 1], [1, 1, 1]]),
    # residuals 7/8 - 11/16 = 3/16 and -3/16: sqrt(2 * 2 * 9/256) / 2
    scored("gauc error", "gauc(weight=equal)", [FOUR, FLAT], 11 / 16, std_error=3 / 16),
    scored("gauc of nobody", "gauc", [LIKED], math.nan, std_error=math.nan),
    # gains 1, 0, 2 at 3, 2, 1 with a limit of 2: 0 of 2 pairs
    scored("gauc min_gain", "gauc", [([1, 0, 2], [3, 2, 1])], 0, min_gain=2),
]
CHANCES = [
    # = -(log .8 + log .4 + log .6 + log .8) / 4
    scored("log_loss", "log_loss", [FOUR], -math.log(0.8 * 0.4 * 0.6 * 0.8) / 4),
    # the chances of a coin: log 2
    scored("log_loss coin", "log_loss(average=user)", [FLAT, LIKED], (math.log(2) - math.log(0.09) / 2) / 2),
    # clipped to 2^-52 of 1
    scored("log_loss certain", "log_loss", [([0], [1.0])], 52 * math.log(2)),
    scored("log_loss clipped", "log_loss", [([1, 0], [1.0, 0.0])], 2.0**-52, tolerance=1e-28),
    # = (.2² + .6² + .4² + .2²) / 4
    scored("brier", "brier", [FOUR], 0.15),
    # = (1 * .04 + 2 * .36 + 3 * .16 + 1 * .04) / 7
    scored("brier weighted", "brier", [FOUR], 1.28 / 7, sample_weight=[[1, 2, 3, 1]]),
    # a user counts like one row of 4 and like one of 2: ((.04 + .36 + .16 + .04)/4 + (.01 + .81)/2) / 2
    scored("brier of users", "brier(average=user)", [FOUR, LIKED, NOBODY], 0.28),
    # log loss / log 2
    scored("normalized_entropy", "normalized_entropy", [FOUR], -math.log(0.1536) / 4 / math.log(2)),
    scored("normalized_entropy of one class", "normalized_entropy", [LIKED], math.nan),
    # the user of one class is left out
    scored("normalized_entropy of users", "normalized_entropy(average=user)", [LIKED, ([1, 0], [0.5, 0.5])], 1),
    # = 2.2 / 2
    scored("calibration", "calibration", [FOUR], 1.1),
    # = (2.2 / 2 + 1.5 / 1) / 2
    scored("calibration of users", "calibration(average=user)", [FOUR, FLAT, ([0], [0.3])], 1.3),
    scored("calibration of no positives", "calibration", [([0], [0.3])], math.nan),
    # gaps -.2 in [.8, 1], .2 in [.6, .8), .2 in [.2, .4)
    scored("ece", "ece(bins=5)", [FOUR], 0.15),
    # = |2.2 - 2| / 4
    scored("ece of one bin", "ece(bins=1)", [FOUR], 0.05),
    # .2 and the tied .6, whose first row is the second of 4, then .8: 1.4 - 0 and .8 - 1
    scored("ece quantile", "ece(bins=2, strategy=quantile)", [([1, 0, 0, 0], [0.8, 0.6, 0.6, 0.2])], 0.4),
    # distances 1/4 of 2 rows and 19/60 of 3: .29, .2918 and .3167 in its docstring
    scored("ece of TorchMetrics", "ece(bins=2)", [TORCH_BINS], 0.29),
    scored("ece l2", "ece(bins=2, norm=l2)", [TORCH_BINS], math.sqrt((2 / 16 + 3 * 361 / 3600) / 5)),
    scored("ece max", "ece(bins=2, norm=max)", [TORCH_BINS], 19 / 60),
    # FLAT has |.5 - 1/3| in its only bin
    scored("ece max of users", "ece(bins=2, norm=max, average=user)", [TORCH_BINS, FLAT], (19 / 60 + 1 / 6) / 2),
    # the bins of "ece quantile" hold 3 rows and 1: 1.4 / 3 and .2
    scored(
        "ece quantile max", "ece(bins=2, strategy=quantile, norm=max)", [([1, 0, 0, 0], [0.8, 0.6, 0.6, 0.2])], 1.4 / 3
    ),
    # the same weighed 1, 1, 1, 4: .2 holds the first half and more: (4 * .2 + |.6 + .6 + .8 - 1|) / 7
    scored(
        "ece quantile weighted",
        "ece(bins=2, strategy=quantile)",
        [([1, 0, 0, 0], [0.8, 0.6, 0.6, 0.2])],
        1.8 / 7,
        sample_weight=[[1, 1, 1, 4]],
    ),
]
# At .6: TP 2, FP 1, FN 0, TN 1; LIKED: TP 1, FN 1; FLAT: FN 1, TN 2.
CHOSEN: ScoredUser = ([0, 1, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1])  # of scikit-learn's docstring of balanced_accuracy_score
PROPOSALS: ScoredUser = ([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15)  # a usual example of kappa
THRESHOLDS = [
    scored("threshold precision", "precision(threshold=0.6)", [FOUR], 2 / 3),
    scored("threshold recall", "recall(threshold=0.6)", [FOUR, LIKED], 3 / 4),
    scored("threshold specificity", "specificity(threshold=0.6)", [FOUR], 1 / 2),
    scored("threshold fpr", "fpr(threshold=0.6)", [FOUR], 1 / 2),
    scored("threshold accuracy", "accuracy(threshold=0.6)", [FOUR], 3 / 4),
    # = 2 * 2 / (2 * 2 + 0 + 1)
    scored("threshold f1", "f1(threshold=0.6)", [FOUR], 4 / 5),
    # = 5 * 2 / (5 * 2 + 4 * 0 + 1)
    scored("threshold f_beta", "f_beta(threshold=0.6, beta=2)", [FOUR], 10 / 11),
    # = (2 * 1 - 1 * 0) / sqrt(3 * 2 * 2 * 1)
    scored("threshold mcc", "mcc(threshold=0.6)", [FOUR], 1 / math.sqrt(3)),
    # = (2/2 + 1/2) / 2
    scored("threshold balanced_accuracy", "balanced_accuracy(threshold=0.6)", [FOUR], 3 / 4),
    # example of scikit-learn: recall 1/2, specificity 3/4
    scored("balanced_accuracy of scikit-learn", "balanced_accuracy(threshold=0.5)", [CHOSEN], 5 / 8),
    scored("balanced_accuracy of one class", "balanced_accuracy(threshold=0.5)", [LIKED], 0),
    # = sqrt(2/2 * 1/2)
    scored("threshold g_mean", "g_mean(threshold=0.6)", [FOUR], math.sqrt(1 / 2)),
    # = 0, as no row reaches it; two users, whose products have no slope
    scored("g_mean of nothing", "g_mean(threshold=0.95)", [FOUR, FOUR], 0, std_error=math.nan),
    # agreement 3/4, by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2
    scored("threshold cohen_kappa", "cohen_kappa(threshold=0.6)", [FOUR], 1 / 2),
    # 20 and 15 of 50 proposals that both readers accept or reject, 5 and 10 that one of them does: (.7 - .5) / .5
    scored("cohen_kappa of 50 proposals", "cohen_kappa(threshold=0.5)", [PROPOSALS], 0.4),
    scored("cohen_kappa of one class", "cohen_kappa(threshold=0.05, zero_division=nan)", [LIKED], math.nan),
    scored("threshold hamming", "hamming(threshold=0.6)", [FOUR], 1 / 4),
    scored("threshold fallout", "fallout(threshold=0.6)", [FOUR], 1 / 2),
    # = (1 + 3) / (1 + 3 + 2)
    scored("threshold weighted", "precision(threshold=0.6)", [FOUR], 2 / 3, sample_weight=[[1, 2, 3, 1]]),
    # = 2 * 1 / (2 * 1 + 2): FOUR has half the weight of 4 rows at .8 only
    scored("threshold above", "f1(threshold=0.7)", [FOUR], 2 / 3),
    scored("threshold of nothing", "precision(threshold=0.95)", [FOUR], 0),
    scored("threshold zero_division", "precision(threshold=0.95, zero_division=1)", [FOUR], 1),
    scored("threshold nan", "precision(threshold=0.95, zero_division=nan)", [FOUR], math.nan),
    # = (2/3 + 1 + 0) / 3
    scored("threshold of users", "precision(threshold=0.6, average=user)", [FOUR, LIKED, FLAT], 5 / 9),
    # = (2/3 + 1) / 2
    scored(
        "threshold left out", "precision(threshold=0.6, average=user, zero_division=nan)", [FOUR, LIKED, FLAT], 5 / 6
    ),
    # = (1 * 2 + 3 * 1) / (1 * 3 + 3 * 1)
    scored("threshold user weights", "precision(threshold=0.6)", [FOUR, LIKED], 5 / 6, weights=[1, 3]),
]
RATED: list[ScoredUser] = [([3, 1], [2, 1.5]), ([5], [2]), NOBODY]
RATINGS = [
    # = (1 + .5 + 3) / 3
    scored("mae", "mae", RATED, 1.5),
    # = (.75 + 3) / 2; deviations 9/8: sqrt(2 * 2 * 81/64) / 2
    scored("mae of users", "mae(average=user)", RATED, 1.875, std_error=9 / 8),
    # = (1 + .25 + 9) / 3
    scored("mse", "mse", RATED, 10.25 / 3),
    scored("mse of users", "mse(average=user)", RATED, (0.625 + 9) / 2),
    scored("rmse", "rmse", RATED, math.sqrt(10.25 / 3)),
    scored("rmse of users", "rmse(average=user)", RATED, (math.sqrt(0.625) + 3) / 2),
    # = (1 * 1 + 2 * .5 + 4 * 3) / 7
    scored("mae weighted", "mae", RATED, 2, sample_weight=[[1, 2], [4], []]),
    # = (1 * 1.5 + 3 * 3) / (1 * 2 + 3 * 1)
    scored("mae user weights", "mae", RATED, 2.1, weights=[1, 3, 1]),
    # = (1/3 + .5/1 + 3/5) / 3
    scored("mape", "mape", RATED, 43 / 90),
    # = (5/12 + 3/5) / 2
    scored("mape of users", "mape(average=user)", RATED, 61 / 120),
    # a target of 0 counts as 1/2: (1 / .5 + 1 / 2) / 2
    scored("mape of 0", "mape(eps=0.5)", [([0, 2], [1, 1])], 5 / 4),
    # = 1 - 1.5 / 29.1875: example of scikit-learn
    scored("r2", "r2", [([3, -0.5, 2, 7], [2.5, 0.0, 2, 8])], 1 - 1.5 / 29.1875),
    # errors 10.25, targets 3, 1, 5 with a spread of 8
    scored("r2 below 0", "r2", RATED, 1 - 10.25 / 8),
    # the user with one target is left out: 1 - 1.25 / 2
    scored("r2 of users", "r2(average=user)", RATED, 3 / 8),
    scored("r2 of equal targets", "r2", [([0.1, 0.1, 0.1], [0, 0.1, 0.2])], math.nan),
    # 10^8 more changes nothing but the scores' own digits
    scored(
        "r2 far from 0",
        "r2",
        [([1e8 + 3, 1e8 - 0.5, 1e8 + 2, 1e8 + 7], [1e8 + 2.5, 1e8, 1e8 + 2, 1e8 + 8])],
        1 - 1.5 / 29.1875,
    ),
    # targets 1 < 3 < 5, predictions 1.5, 2, 2: of the pairs one is tied
    scored("xauc", "xauc", RATED, 5 / 6),
    # the user with one row has no pair
    scored("xauc of users", "xauc(average=user)", RATED, 1),
    # the pairs 2 1, 2 3 and 1 3 weigh 2, 6 and 3, and only the first is in the wrong order
    scored("xauc weighted", "xauc", [([2, 1, 3], [1, 2, 3])], 9 / 11, sample_weight=[[2, 1, 3]]),
    scored("xauc of equal targets", "xauc", [([2, 2], [1, 2])], math.nan),
    # targets 1 < 3 < 5, predictions 1.5, 2, 2: two pairs are right, one is tied, (2 - 0) / sqrt(3 * 2)
    scored("kendall_tau", "kendall_tau", RATED, 2 / math.sqrt(6)),
    # two different predictions: 2 * 2 / (3^2 * 1 / 2)
    scored("kendall_tau c", "kendall_tau(variant=c)", RATED, 8 / 9),
    # the user with one row has no pair
    scored("kendall_tau of users", "kendall_tau(average=user)", RATED, 1),
    scored("kendall_tau zero", "kendall_tau(average=user, constant_targets=zero)", RATED, 1 / 2),
    scored("kendall_tau nan", "kendall_tau(average=user, constant_targets=nan)", RATED, math.nan),
    # the pairs 2 1, 2 3 and 1 3 weigh 2, 6 and 3, and only the first is in the wrong order
    scored("kendall_tau weighted", "kendall_tau", [([2, 1, 3], [1, 2, 3])], 7 / 11, sample_weight=[[2, 1, 3]]),
    # a user with equal predictions counts as 0 beside one in the right order, or not at all
    scored("kendall_tau constant", "kendall_tau(average=user)", [([1, 2], [3, 3]), ([1, 2], [1, 2])], 1 / 2),
    scored("kendall_tau drop", "kendall_tau(average=user, constant=drop)", [([1, 2], [3, 3]), ([1, 2], [1, 2])], 1),
    scored("kendall_tau of equal scores", "kendall_tau", [([1, 2], [3, 3])], math.nan),
    # ranks 1, 2, 3 and 1, 2.5, 2.5: 1.5 / sqrt(2 * 1.5)
    scored("spearman_rho", "spearman_rho", RATED, 1.5 / math.sqrt(3)),
    scored("spearman_rho of users", "spearman_rho(average=user)", RATED, 1),
    # 1 - 6 * (sum of squared differences of ranks 194) / (10 * 99): a usual example of textbooks
    scored(
        "spearman_rho of IQ and television",
        "spearman_rho",
        [([106, 86, 100, 101, 99, 103, 97, 113, 112, 110], [7, 0, 27, 50, 28, 29, 20, 12, 6, 17])],
        1 - 6 * 194 / 990,
    ),
    # the rows 1, 1, 2 with predictions 1, 1, 0
    scored("spearman_rho weighted", "spearman_rho", [([1, 2], [1, 0])], -1, sample_weight=[[2, 1]]),
    scored("spearman_rho of equal targets", "spearman_rho", [([2, 2], [1, 2])], math.nan),
    scored("rmse of nothing", "rmse", [NOBODY], math.nan),
]
SCORED_CASES: list[ScoredCase] = [
    *SCORED_DEFINED,
    *ORDERED_ROWS,
    *GROUPED,
    *CHANCES,
    *THRESHOLDS,
    *RATINGS,
    *filter(None, map(as_scored, CASES)),
]
SCORED_REFUSED: list[ScoredCase] = [
    scored("label 2", "auc", [([1, 2, 0], [1, 2, 3])], math.nan),
    scored("label 0.5", "log_loss", [([1, 0.5], [0.1, 0.2])], math.nan),
    scored("weights of rows in a ranking", "ndcg", [FOUR], math.nan, sample_weight=[[1, 1, 1, 1]]),
    scored("NaN score, auc", "auc", [([1, 0], [math.nan, 1])], math.nan),
    scored("NaN score, ranking", "ndcg", [([1, 0], [math.nan, 1])], math.nan),
    scored("score above 1", "log_loss", [([1, 0], [1.5, 0])], math.nan),
    scored("score below 0", "brier", [([1, 0], [0.5, -0.5])], math.nan),
    scored("infinite chance", "ece", [([1, 0], [0.5, math.inf])], math.nan),
    scored("one class", "gauc", [FOUR, LIKED], math.nan, one_class="error"),
    scored("one class of the metric", "gauc(one_class=error)", [FOUR, LIKED], math.nan),
    scored("tied rows", "mrr", TIED_ROWS, math.nan, ties="error"),
    scored("no relevant row", "mrr", [([0], [1])], math.nan, no_truth="error"),
]

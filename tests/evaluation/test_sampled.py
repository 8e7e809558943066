"""Samples of the catalogue: the laws of the draws, and estimates of the metrics of the whole catalogue."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.arguments import options_in
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.models import Working
from fastrec.inputs.models import read_call
from fastrec.items.sampled import Rank
from fastrec.metrics.rank_weights import weight_between
from support.bits import group_bits, mean_bits, user_bits
from support.list_calls import for_kind, of_sampled_lists
from support.sampled_oracle import draw_items, estimate_weights

N_ITEMS = 30
RANKED = ["recall@5", "ndcg@5", "precision@3", "arhr", "dcg@4", "rbp(p=0.5)", "ndcg", "f1@5", "cg(gain=exp2)@6"]


def draw_case(seed: int, n_users: int = 25, levels: int = 1000, most: int = 4) -> dict[str, Any]:
    """Draw scores, with ties if there are few levels, and items of users."""
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, levels, (n_users, N_ITEMS)).astype(float)
    truth = [
        {
            int(item): float(draw.choice([1, 2, 0.5]))
            for item in draw.permutation(N_ITEMS + 2)[: draw.integers(0, most + 1)]
        }
        for _ in range(n_users)
    ]
    exclude = [draw.permutation(N_ITEMS)[: draw.choice([0, 3, 22])].tolist() for _ in range(n_users)]
    return {"model": scores, "truth": truth, "exclude": exclude, "item_ids": range(N_ITEMS)}


def lists_of(model: Any, truth: Any, *, whole: bool = True, **given: Any) -> list[list[int]]:
    """Return the sampled lists of all users, in the order of users."""
    own = ("negatives", "seed", "sample", "correct", "ties", "history", "items", "n_threads")
    settings = {name: given.pop(name) for name in own if name in given}
    evaluation = ListEvaluation("gini", n_items=N_ITEMS + 5, **{"ties": "input", **settings})
    given = {**dict.fromkeys(options_in(fastrec.Evaluator.update_model)), **given}
    working = Working(None, whole=whole, reviewed=False, progress=None)
    parts = evaluation.prepare_model(read_call(model, {**given, "n_items": None}), truth, given, working)
    (prepared,) = parts
    lists = prepared.lists
    names = prepared.names.strings
    rows = np.split(lists.rec_items, lists.rec_indptr[1:-1])
    return [[item if names is None else names[item] for item in rows[at].tolist()] for at in parts.order.tolist()]


def wanted_lists(case: dict[str, Any], n: int, seed: int, weights: Any = None) -> list[list[int]]:
    """Return the items of sampled lists by the oracle, in ascending order."""
    found = []
    for row, (own, seen) in enumerate(zip(case["truth"], case["exclude"], strict=True)):
        left = [item for item in range(N_ITEMS) if item not in seen]
        others = [item for item in left if item not in own]
        found.append(sorted([*(item for item in left if item in own), *draw_items(others, n, seed, row, weights)]))
    return found


# Draws


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("negatives", [1, 5, 12, 1000])
def test_lists_are_those_of_the_oracle(seed: int, negatives: int) -> None:
    case = draw_case(seed)
    found = lists_of(**case, negatives=negatives, seed=seed)
    assert [sorted(row) for row in found] == wanted_lists(case, negatives, seed)
    for row, truth, seen in zip(found, case["truth"], case["exclude"], strict=True):
        assert len(set(row)) == len(row)
        assert not set(row) & set(seen)
        others = N_ITEMS - len({*seen, *truth} & set(range(N_ITEMS)))
        assert len(set(row) - set(truth)) == min(negatives, others)
        assert set(truth) - set(seen) - set(row) <= {N_ITEMS, N_ITEMS + 1}  # which the model lacks


@pytest.mark.parametrize("seed", range(8))
def test_weighted_draws_are_those_of_the_oracle(seed: int) -> None:
    case = draw_case(seed)
    counts = Counter(item for side in (case["truth"], case["exclude"]) for own in side for item in own)
    for negatives in (1, 4, 1000):
        found = lists_of(**case, negatives=negatives, seed=seed, sample="popularity")
        assert [sorted(row) for row in found] == wanted_lists(case, negatives, seed, counts)


def test_draws_follow_from_the_seed_and_the_row() -> None:
    case = draw_case(3, n_users=200)
    first = lists_of(**case, negatives=6, seed=5)
    assert lists_of(**case, negatives=6, seed=5) == first
    assert lists_of(**case, negatives=6, seed=5, n_threads=2) == first
    assert lists_of(**case, negatives=6, seed=6) != first
    order = np.random.default_rng(0).permutation(200)
    permuted = {name: [case[name][row] for row in order] for name in ("truth", "exclude")}
    again = lists_of(case["model"], **permuted, item_ids=case["item_ids"], users=order, negatives=6, seed=5)
    assert again == [first[row] for row in order]
    for ties in ("id_asc", "id_desc"):
        other = lists_of(**case, negatives=6, seed=5, ties=ties)
        assert [sorted(row) for row in other] == [sorted(row) for row in first]


def test_more_draws_add_items() -> None:
    case = draw_case(4)
    few, many = (lists_of(**case, negatives=n, seed=9) for n in (3, 10))
    assert all(set(a) <= set(b) for a, b in zip(few, many, strict=True))


def test_candidates_limit_the_draws() -> None:
    case = draw_case(5)
    own = list(range(3, 20))
    once = lists_of(**case, candidates=own, negatives=5, seed=2)
    each = lists_of(**case, candidates=[own] * len(case["truth"]), negatives=5, seed=2)
    assert once == each
    assert all(set(row) <= set(own) for row in once)


def test_names_do_not_change_the_draws() -> None:
    case = draw_case(6)
    plain = lists_of(**case, negatives=5, seed=2)
    users, items = [f"u{u}" for u in range(25)], [f"i{i:02}" for i in range(N_ITEMS)]
    sides = {
        name: {user: [f"i{item:02}" for item in row] for user, row in zip(users, case[name], strict=True)}
        for name in ("truth", "exclude")
    }
    named = lists_of(case["model"], **sides, user_ids=users, item_ids=items, negatives=5, seed=2)
    assert sorted(map(sorted, named)) == sorted(sorted(f"i{item:02}" for item in row) for row in plain)


def chi_square(found: Sequence[float], wanted: Sequence[float]) -> float:
    return sum((a - b) ** 2 / b for a, b in zip(found, wanted, strict=True))


def test_uniform_draws_are_uniform() -> None:
    """30 items in 20,000 draws of 7: each has the same frequency, and so has each pair."""
    n_users, drawn = 20_000, 7
    found = np.array(lists_of(np.zeros((n_users, N_ITEMS)), [[]] * n_users, negatives=drawn, seed=11))
    counts = np.bincount(found.ravel(), minlength=N_ITEMS)
    spread = 1 - drawn / N_ITEMS  # without replacement, counts vary less
    assert chi_square(counts, [n_users * drawn / N_ITEMS] * N_ITEMS) / spread < 58.3  # 99.9 % of 29 degrees
    held = np.zeros((n_users, N_ITEMS))
    held[np.arange(n_users)[:, None], found] = 1.0
    pairs = (held.T @ held)[np.triu_indices(N_ITEMS, 1)]
    share = drawn * (drawn - 1) / (N_ITEMS * (N_ITEMS - 1))
    assert abs(pairs / n_users - share).max() < 5 * math.sqrt(share / n_users)


def test_popular_items_are_drawn_in_proportion() -> None:
    """Of weights 1, 2, 3 and 6, two are drawn: P(a, b) = p_a p_b / (1 - p_a) + p_b p_a / (1 - p_b)."""
    n_users, weights = 30_000, [1, 2, 3, 6]
    history = {user: [item for item in range(4) for _ in range(weights[item])] for user in range(1)}
    scores = np.zeros((n_users, 5))
    truth: dict[int, list[int]] = {user: [] for user in range(n_users)}
    one = lists_of(scores, truth, history=history, negatives=1, sample="popularity", seed=3)
    counts = Counter(item for row in one for item in row)
    assert set(counts) == {0, 1, 2, 3}  # item 4 has no row
    assert chi_square([counts[i] for i in range(4)], [n_users * w / 12 for w in weights]) < 16.3  # 99.9 % of 3 degrees
    two = lists_of(scores, truth, history=history, negatives=2, sample="popularity", seed=4)
    pairs = Counter(tuple(sorted(row)) for row in two)
    p = [weight / 12 for weight in weights]
    known = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    wanted = [n_users * (p[a] * p[b] / (1 - p[a]) + p[b] * p[a] / (1 - p[b])) for a, b in known]
    assert chi_square([pairs[pair] for pair in known], wanted) < 20.5  # 99.9 % of 5 degrees


def test_a_column_of_popularity_comes_before_the_history() -> None:
    scores, truth = np.zeros((500, 4)), {user: [] for user in range(500)}
    items = {item: {"popularity": value} for item, value in enumerate([0.0, 0.25, 0.0, 0.75])}
    history = {0: [0, 2]}
    found = lists_of(scores, truth, items=items, history=history, negatives=1, sample="popularity")
    counts = Counter(item for row in found for item in row)
    assert set(counts) == {1, 3}
    assert 330 < counts[3] < 420
    huge = {item: {"popularity": value} for item, value in enumerate([1e149, 3e149, 1.0, 1e-149])}
    found = lists_of(scores, truth, items=huge, negatives=3, sample="popularity")
    assert all({0, 1} <= set(row) and len(row) == 3 for row in found)  # tiny ones keep a chance


# Reports of sampled lists


@pytest.mark.parametrize("ties", ["expected", "worst", "id_desc"])
@pytest.mark.parametrize("seed", range(4))
def test_reports_are_those_of_the_sampled_lists(seed: int, ties: str) -> None:
    """With many equal scores, for every metric that takes samples."""
    case = draw_case(seed, levels=8)
    texts = of_sampled_lists(ask.text for ask in for_kind("graded"))
    if ties == "expected":
        plan = ListEvaluation(texts, n_items=N_ITEMS + 2).plan(weighted=False)
        texts = [text for text in texts if ListEvaluation(text, n_items=40).calls[0].text not in plan.not_linear]
    rules: dict[str, Any] = {"ties": ties, "per_user": True, "no_recs": "skip"}
    found = fastrec.evaluate_model(**case, metrics=texts, negatives=6, seed=seed, **rules)
    lists = [
        {item: row[item] for item in own}
        for row, own in zip(case["model"].tolist(), wanted_lists(case, 6, seed), strict=True)
    ]
    wanted = fastrec.evaluate(lists, case["truth"], texts, n_items=N_ITEMS, **rules)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))
    assert user_bits(found) == user_bits(wanted)
    assert found.users == wanted.users


def test_metrics_of_items_read_the_sampled_lists() -> None:
    case = draw_case(2)
    texts = ["item_coverage", "item_coverage@3", "gini@5", "personalization@5"]
    found = fastrec.evaluate_model(**case, metrics=texts, negatives=6, seed=1, ties="input")
    lists = [
        sorted(own, key=lambda item: (-row[item], item))
        for row, own in zip(case["model"].tolist(), wanted_lists(case, 6, 1), strict=True)
    ]
    wanted = fastrec.evaluate(lists, case["truth"], texts, n_items=N_ITEMS)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))


def test_the_answers_of_a_function_are_sampled() -> None:
    """Its blocks are ranked in threads; the draws are those of its rows."""
    scores, truth = np.random.default_rng(1).integers(-3, 4, (20, N_ITEMS)), [[u] for u in range(20)]
    call: dict[str, Any] = {"negatives": 9, "seed": 4, "correct": "rank", "per_user": True}
    wanted = fastrec.evaluate_model(scores, truth, RANKED, **call)
    found = fastrec.evaluate_model(lambda rows: scores[rows], truth, RANKED, n_items=N_ITEMS, n_threads=3, **call)
    assert user_bits(found) == user_bits(wanted)


def test_few_items_left_are_all_taken_and_counted() -> None:
    case = draw_case(7)
    report = fastrec.evaluate_model(**case, metrics="recall@3", negatives=10)
    short = sum(
        N_ITEMS - len({*own, *seen} & set(range(N_ITEMS))) < 10
        for own, seen in zip(case["truth"], case["exclude"], strict=True)
    )
    assert 0 < short < 25
    assert report.data["users_short_of_negatives"] == short
    assert f"{short} users with fewer items left than negatives asks for" in repr(report)
    everything = fastrec.evaluate_model(**case, metrics=["recall@3", "mrr"], negatives=10**6, per_user=True)
    full = fastrec.evaluate_model(**case, metrics=["recall@3", "mrr"], per_user=True)
    assert user_bits(everything) == user_bits(full)


# Estimates


def functions_of(metric: str) -> Callable[..., float]:
    """Return the value of a rank, which may lie between whole ranks, in a metric."""
    k = float(metric.rpartition("@")[2]) if "@" in metric else math.inf
    name = metric.partition("@")[0].partition("(")[0]
    of_rank: dict[str, Callable[[Any], float]] = {
        "ndcg": lambda r: 1 / math.log2(r + 1),
        "dcg": lambda r: 1 / math.log2(r + 1),
        "arhr": lambda r: 1 / float(r),
        "mrr": lambda r: 1 / float(r),
        "rbp": lambda r: 0.5 * 0.5 ** (float(r) - 1),
    }
    return lambda rank: of_rank.get(name, lambda _: 1.0)(rank) if rank <= k else 0.0


def denominator_of(metric: str, gains: Sequence[float]) -> float:
    k = int(metric.rpartition("@")[2]) if "@" in metric else len(gains)
    name = metric.partition("@")[0].partition("(")[0]
    if name == "ndcg":
        best = sorted(gains, reverse=True)[:k]
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(best, start=1))
    return {"recall": len(gains), "precision": k, "f1": (len(gains) + k) / 2}.get(name, 1.0)


def wanted_value(metric: str, listed: Any, truth: dict[int, float], n_others: int) -> float:
    """Return the estimate of a metric of a user by the oracle."""
    relevant = {item: gain for item, gain in truth.items() if gain > 0}
    found = estimate_weights(listed, truth, n_others, FUNCTIONS[metric])
    terms = []
    for item, value in found.items():
        if item in relevant:
            gain = {"ndcg": relevant[item], "dcg": relevant[item], "rbp": relevant[item]}.get(
                re.split(r"[@(]", metric)[0], 1.0
            )
            gain = 2 ** relevant[item] - 1 if "exp2" in metric else gain
            terms.append(gain * value)
    return sum(terms) / denominator_of(metric, list(relevant.values()))


FUNCTIONS = {metric: functions_of(metric) for metric in [*RANKED, "mrr", "hit_rate@4"]}


@pytest.mark.parametrize("levels", [1000, 9])
def test_estimates_are_those_of_the_formulas(levels: int) -> None:
    """Also for equal scores, whose mean over all orders the oracle takes order by order."""
    case = draw_case(8, n_users=12, levels=levels)
    call: dict[str, Any] = {"negatives": 5, "seed": 2, "correct": "rank", "per_user": True, "no_truth": "zero"}
    found = fastrec.evaluate_model(**case, metrics=RANKED, **call)
    n_checked = 0
    for user, own in enumerate(wanted_lists(case, 5, 2)):
        truth, seen = case["truth"][user], case["exclude"][user]
        n_others = N_ITEMS - len({*truth, *seen} & set(range(N_ITEMS)))
        listed = [(item, case["model"][user, item]) for item in own]
        for metric in RANKED if truth else ():
            value = wanted_value(metric, listed, truth, n_others)
            assert found.per_user[metric][user] == pytest.approx(value, rel=1e-9, abs=1e-12), (metric, user)
            n_checked += 1
    assert n_checked > 70


def test_hit_rate_and_mrr_are_estimated_for_one_relevant_item() -> None:
    draw = np.random.default_rng(3)
    scores = draw.random((20, N_ITEMS))
    truth = [{int(item): 1.0} for item in draw.integers(0, N_ITEMS, 20)]
    metrics = ["hit_rate@4", "mrr"]
    found = fastrec.evaluate_model(scores, truth, metrics, negatives=6, seed=7, correct="rank", per_user=True)
    case = {"model": scores, "truth": truth, "exclude": [[]] * 20}
    for user, own in enumerate(wanted_lists(case, 6, 7)):
        listed = [(item, scores[user, item]) for item in own]
        for metric in metrics:
            value = wanted_value(metric, listed, truth[user], N_ITEMS - 1)
            assert found.per_user[metric][user] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("ties", ["expected", "best", "input"])
@pytest.mark.parametrize("correct", ["none", "rank"])
def test_lists_that_hold_a_sample_give_the_same_estimates(correct: str, ties: str) -> None:
    case = draw_case(9, levels=12)
    case = case | {"truth": [{i: g for i, g in own.items() if i < N_ITEMS} for own in case["truth"]]}
    case["exclude"] = [[]] * 25
    call: dict[str, Any] = {"correct": correct, "per_user": True, "ties": ties}
    found = fastrec.evaluate_model(**case, metrics=RANKED, negatives=6, seed=3, **call)
    lists = [
        {item: row[item] for item in own}
        for row, own in zip(case["model"].tolist(), wanted_lists(case, 6, 3), strict=True)
    ]
    wanted = fastrec.evaluate(lists, case["truth"], RANKED, sampled_from=N_ITEMS, **call)
    assert user_bits(found) == user_bits(wanted)
    assert mean_bits(dict(found.estimates)) == mean_bits(dict(wanted.estimates))


def mean_weight(rank: Rank, cutoff: int | None, weight: str) -> float:
    """Return the mean weight of an estimated rank, order by order of the truth and the drawn items with its score."""
    own, total = rank.tied_known - 1, Fraction(0)
    for i, j in itertools.product(range(own + 1), range(rank.tied + 1)):
        ways = Fraction(math.comb(own, i) * math.comb(rank.tied, j), math.comb(own + rank.tied, i + j))
        estimate = 1 + rank.known + i + Fraction(rank.others * (rank.above + j), max(rank.drawn, 1))
        if cutoff is None or estimate <= cutoff:
            total += ways * Fraction(weight_between(weight, float(estimate))) / (own + rank.tied + 1)
    return float(total)


@pytest.mark.parametrize("cutoff", [None, 1, 7, 200])
def test_ties_of_many_items_have_the_mean_of_all_orders(cutoff: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(4)
    for n_drawn in (0, 1, 9, 40):
        above, known = int(draw.integers(0, n_drawn + 1)), int(draw.integers(0, 4))
        own = Rank(100 * n_drawn, n_drawn, known, above, n_drawn - above, int(draw.integers(1, 9)))
        for weight in ("reciprocal", "log2", "one"):
            assert own.mean_weight(cutoff, weight) == pytest.approx(mean_weight(own, cutoff, weight), rel=1e-15)
    large = Rank(1000, 1000, 0, 0, 1000, 100)  # 100 relevant and 1,000 drawn items; all are drawn, so ranks are whole
    wanted = math.fsum(1 / rank for rank in range(1, min(cutoff or 1100, 1100) + 1)) / 1100
    sizes, comb = [], math.comb
    monkeypatch.setattr(math, "comb", lambda n, k: sizes.append(n) or comb(n, k))
    assert large.mean_weight(cutoff, "reciprocal") == pytest.approx(wanted, rel=1e-14)
    assert len(sizes) <= 101  # of numbers with hundreds of digits: 300,000 of them took 9 s


def test_all_items_as_the_sample_give_the_full_ranking() -> None:
    case = draw_case(10, levels=20)
    full = fastrec.evaluate_model(**case, metrics=RANKED, per_user=True)
    found = fastrec.evaluate_model(**case, metrics=RANKED, negatives=N_ITEMS, correct="rank", per_user=True)
    for metric in full:
        assert found.per_user[metric] == pytest.approx(full.per_user[metric], abs=1e-9, nan_ok=True)


def test_tables_of_weights_have_no_estimate() -> None:
    scores, call = np.random.default_rng(0).random((9, N_ITEMS)), {"negatives": 5, "correct": "rank"}
    with pytest.raises(
        fastrec.MetricError, match=r"table of weights of whole ranks.* leave the metric out, or correct="
    ):
        fastrec.evaluate_model(scores, [[1]] * 9, "dcg(discount=[1, 0.5, 0.25])", **call)
    with pytest.raises(fastrec.InputError, match="a gain table of 2 takes grades"):
        fastrec.evaluate_model(scores, [{1: 3.0}] * 9, "dcg(gain=[0, 2])", **call)
    with pytest.raises(fastrec.FastrecError, match=r"cg\(gain=exp2\)"):  # it was an OverflowError
        fastrec.evaluate_model(scores, [{1: 2000.0}] * 9, "cg(gain=exp2)", **call)


# Simulation


def simulate(rank: int, n_items: int, n_drawn: int, n_rounds: int, seed: int) -> tuple[Any, Any]:
    """Return lists in which the only relevant item, of this rank among all items, has its rank among drawn items."""
    draw = np.random.default_rng(seed)
    above = draw.hypergeometric(rank - 1, n_items - rank, n_drawn, n_rounds)
    lists = np.tile(np.arange(1, n_drawn + 2), (n_rounds, 1))
    lists[np.arange(n_rounds), above] = 0
    return lists, above


def test_the_estimated_rank_is_unbiased() -> None:
    """The mean of 1 / mrr, which is the estimated rank, is the rank among all items."""
    n_items, n_drawn = 1000, 50
    for rank in (1, 7, 300):
        lists, _ = simulate(rank, n_items, n_drawn, 4000, seed=rank)
        call: dict[str, Any] = {"sampled_from": n_items, "correct": "rank", "per_user": True}
        found = 1 / fastrec.evaluate(lists, [[0]] * 4000, "mrr", **call).per_user["mrr"]
        assert abs(found.mean() - rank) <= 5 * found.std() / math.sqrt(4000) + 1e-9


# Groups, weights, batches, threads


@pytest.mark.parametrize("correct", ["none", "rank"])
def test_batches_merge_to_the_same_bits(correct: str) -> None:
    case = draw_case(11, n_users=60)
    groups, weights = {"half": np.arange(60) % 2}, np.arange(60) % 3 + 0.5
    settings: dict[str, Any] = {"negatives": 8, "seed": 5, "correct": correct, "per_user": True}
    report = fastrec.evaluate_model(**case, metrics=RANKED, groups=groups, user_weight=weights, n_threads=1, **settings)
    again = fastrec.evaluate_model(**case, metrics=RANKED, groups=groups, user_weight=weights, n_threads=2, **settings)
    parts = [fastrec.Evaluator(RANKED, n_items=N_ITEMS, **settings) for _ in range(2)]
    for part, rows in zip(parts, (np.arange(25), np.arange(25, 60)), strict=True):
        sides: dict[str, Any] = {name: [case[name][row] for row in rows] for name in ("truth", "exclude")}
        sides["item_ids"] = case["item_ids"]
        own = {"groups": {"half": groups["half"][rows]}, "user_weight": weights[rows]}
        part.update_model(case["model"], **sides, users=rows, **own)
    merged = parts[0].merge(fastrec.Evaluator.from_bytes(parts[1].to_bytes())).result()
    for other in (again, merged):
        assert mean_bits(dict(other.estimates)) == mean_bits(dict(report.estimates))
        assert user_bits(other) == user_bits(report)
        assert group_bits(other) == group_bits(report)
        assert other.settings == report.settings
        assert other.warnings == report.warnings


def test_evaluators_of_other_samples_do_not_merge() -> None:
    settings: dict[str, Any] = {"negatives": 8, "seed": 5}
    one = fastrec.Evaluator("recall@3", n_items=9, **settings)
    for other in ({"negatives": 9}, {"seed": 6}, {"sample": "popularity"}, {"correct": "rank"}):
        with pytest.raises(fastrec.InputError, match=f"merge needs equal settings, but {next(iter(other))} is"):
            one.merge(fastrec.Evaluator("recall@3", n_items=9, **{**settings, **other}))
    with pytest.raises(fastrec.InputError, match="merge needs equal settings"):
        fastrec.Evaluator("recall@3", n_items=9).merge(one)


def test_popularity_of_two_histories_does_not_merge() -> None:
    scores, truth = np.random.default_rng(0).random((4, 6)), {user: [user] for user in range(2)}
    parts = []
    for history in ({0: [1, 2, 3]}, {0: [2, 3, 4]}):
        part = fastrec.Evaluator("recall@3", n_items=6, negatives=2, sample="popularity", history=history)
        part.update_model(scores, truth, users=[0, 1] if not parts else [2, 3], user_ids=[0, 1, 2, 3])
        parts.append(part)
    with pytest.raises(fastrec.InputError, match="history"):
        parts[0].merge(parts[1])


# Marks


def reports(**more: Any) -> dict[str, fastrec.Report]:
    case = draw_case(12, n_users=40)
    other = np.random.default_rng(13).random(case["model"].shape)
    models = {"a": case["model"], "b": other}
    if "sampled_from" in more:
        lists = {name: np.argsort(-scores)[:, :9] for name, scores in models.items()}
        return {
            name: fastrec.evaluate(own, case["truth"], RANKED, per_user=True, **more) for name, own in lists.items()
        }
    call: dict[str, Any] = {"negatives": 8, "seed": 5, "per_user": True, **more}
    sides = {name: case[name] for name in ("truth", "exclude", "item_ids")}
    return {name: fastrec.evaluate_model(model, metrics=RANKED, **sides, **call) for name, model in models.items()}


@pytest.mark.parametrize(
    ("more", "mark"),
    [
        (
            {},
            "sampled: ranks are among 8 items drawn uniformly for each user (seed 5) and relevant ones, not among all",
        ),
        ({"correct": "rank"}, "sampled: estimates (correct=rank) of the whole catalogue, from 8 items drawn"),
        ({"sample": "popularity"}, "sampled: ranks are among 8 items drawn by popularity for each user (seed 5)"),
        ({"sampled_from": 50}, "sampled: ranks are among samples of a catalogue of 50 items, not among all"),
    ],
)
def test_everything_that_people_read_has_the_mark(more: dict[str, Any], mark: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fastrec.FastrecWarning)  # a chosen sample is no reason to warn
        warnings.filterwarnings("ignore", "exclude removes")
        made = reports(**more)
    report = made["a"]
    report.save(tmp_path / "report.npz")
    loaded = fastrec.load(tmp_path / "report.npz")
    compared = fastrec.compare(made)
    for own in (report, loaded, compared):
        assert mark in repr(own)
        assert mark in own.to_markdown()
        assert mark in str(own.to_html())
        assert mark in str(own.to_dict()["warnings"])
        assert mark in str(own.to_json())
        assert mark.partition("(")[0] in own.to_latex()
    assert mean_bits(dict(loaded.estimates)) == mean_bits(dict(report.estimates))
    assert loaded.settings == report.settings
    own = {"sampled_from": 50} if "sampled_from" in more else {"negatives": 8}
    assert loaded.settings.items() >= own.items()
    about = "size of the catalogue that lists hold" if "sampled_from" in more else "items drawn for each user, in place"
    assert about in str(report.to_html())


def test_sampled_and_full_reports_are_not_compared() -> None:
    sampled = reports()["a"]
    case = draw_case(12, n_users=40)
    full = fastrec.evaluate_model(**case, metrics=RANKED, per_user=True)
    assert "sampled" not in repr(full)
    with pytest.raises(
        fastrec.InputError, match=r"but a is of items drawn for each user and full of the whole catalogue$"
    ):
        fastrec.compare({"a": sampled, "full": full})
    with pytest.raises(fastrec.InputError, match="same settings, but seed is 5 in a and 6 in other"):
        fastrec.compare({"a": sampled, "other": reports(seed=6)["a"]})


# Bad input

SCORES, TRUTH = np.random.default_rng(0).random((3, 6)), [[1], [2], [3]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"negatives": 0}, "negatives must be an integer from 1 to 2^53, found 0"),
        ({"negatives": 2.5}, "negatives must be an integer from 1 to 2^53, found 2.5"),
        ({"negatives": True}, "negatives must be an integer from 1 to 2^53, found True"),
        ({"negatives": 3, "seed": -1}, "seed must be an integer from 0 to 2^63 - 1, found -1"),
        ({"negatives": 3, "seed": 2**63}, "seed must be an integer from 0 to 2^63 - 1"),
        ({"negatives": 3, "sample": "random"}, "sample must be one of uniform, popularity; found 'random'"),
        ({"negatives": 3, "correct": "bias"}, "correct must be one of none, rank; found 'bias'"),
        ({"sample": "popularity"}, "sample='popularity' needs negatives=..."),
        ({"seed": 2}, "seed=2 needs negatives=..."),
        ({"correct": "rank"}, "correct='rank' needs lists that hold a sample: negatives=... or sampled_from=..."),
        (
            {"negatives": 3, "sample": "popularity", "correct": "rank"},
            "correct='rank' needs uniform samples: leave out sample='popularity'",
        ),
    ],
)
def test_wrong_arguments_raise(given: dict[str, Any], message: str) -> None:
    with pytest.raises(fastrec.InputError, match=re.escape(message)):
        fastrec.evaluate_model(SCORES, TRUTH, "recall@3", **given)


def test_models_and_lists_take_their_own_argument() -> None:
    with pytest.raises(fastrec.InputError, match="pass one of them"):
        fastrec.Evaluator("recall@3", negatives=5, sampled_from=9)
    message = r"negatives=5 draws items of a model; lists that hold a sample go with sampled_from=\.\.\."
    with pytest.raises(fastrec.InputError, match=message):
        fastrec.Evaluator("recall@3", negatives=5).update([[1]], [[1]])
    message = r"sampled_from=9 is about lists that hold a sample; to draw items of a model pass negatives=\.\.\."
    with pytest.raises(fastrec.InputError, match=message):
        fastrec.Evaluator("recall@3", n_items=6, sampled_from=9).update_model(SCORES, TRUTH)


@pytest.mark.parametrize(
    "metric",
    ["map@3", "err(max_gain=1)@3", "r_precision", "precision", "ndcg(ideal=list_at_k)@3", "map(denominator=hits)@3"],
)
def test_metrics_that_are_no_sums_have_no_estimate(metric: str) -> None:
    assert fastrec.evaluate_model(SCORES, TRUTH, metric, negatives=3)  # of the sampled lists
    with pytest.raises(
        fastrec.MetricError,
        match=f"{re.escape(metric.partition('(')[0])}.*so sampled lists give no estimate of it: .* or correct='none'$",
    ):
        fastrec.evaluate_model(SCORES, TRUTH, metric, negatives=3, correct="rank")


@pytest.mark.parametrize("metric", ["mcc@3", "accuracy@3", "limited_auc@3", "gini@3", "item_coverage@3"])
def test_metrics_that_read_the_sampled_items_have_no_estimate(metric: str) -> None:
    with pytest.raises(
        fastrec.MetricError, match=r"so sampled lists give no estimate of it: leave the metric out, or correct='none'$"
    ):
        fastrec.evaluate_model(SCORES, TRUTH, metric, negatives=3, correct="rank")


SIZED = [
    "mcc@3",
    "accuracy@3",
    "specificity",
    "fallout@2",
    "limited_auc@3",
    "utility(d=1)@3",
    "serendipity(expected=rank)@3",
]


@pytest.mark.parametrize("metric", SIZED)
def test_metrics_of_users_that_read_the_size_of_the_catalogue_need_all_items(metric: str) -> None:
    use = "use limited_auc(unseen=list_only), or " if metric.startswith("limited_auc") else ""
    end = re.escape(f", but the lists hold a sample of it: {use}leave the metric out")
    match = f"^{re.escape(metric)} reads the size of the catalogue{end}$"
    with pytest.raises(fastrec.MetricError, match=match):
        fastrec.evaluate_model(SCORES, TRUTH, ["recall@3", metric], negatives=3, history=TRUTH)
    with pytest.raises(fastrec.MetricError, match=match):
        fastrec.evaluate([[1, 2]], [[2]], metric, sampled_from=9, n_items=9, history=TRUTH[:1])


def test_metrics_of_sampled_lists_that_read_no_size_or_are_of_all_lists() -> None:
    scores = np.random.default_rng(0).random((400, 1000))  # a model without any skill
    metrics = ["limited_auc(unseen=list_only)", "item_coverage", "gini@10", "shannon_entropy(normalize=n_items)@10"]
    found = fastrec.evaluate_model(scores, [[0]] * 400, metrics, negatives=20)
    assert found["limited_auc(unseen=list_only)"] == pytest.approx(0.5, abs=0.04)
    assert found["item_coverage"] > 0.99
    assert fastrec.evaluate_model(scores, [[0]] * 400, "limited_auc")["limited_auc"] == pytest.approx(0.5, abs=0.04)


def test_own_metrics_on_arrays_that_read_the_size_need_all_items() -> None:
    from fastrec.metrics.declaration import DECLARED

    @fastrec.ranking_metric(range=(0, None), source="test", name="half_hits")
    def half_hits(s: Any) -> Any:
        """Half of the hits."""
        return s.hits / 2

    @fastrec.ranking_metric(range=(0, None), source="test", name="odd_hits")
    def odd_hits(s: Any) -> Any:
        """Whether hits are odd."""
        return np.mod(s.hits, 2)

    @fastrec.ranking_metric(range=(0, None), source="test", name="share_of_all")
    def share_of_all(s: Any) -> Any:
        """Hits per item of the catalogue."""
        return np.mod(s.hits, 2) / s.n_items

    try:
        found = fastrec.evaluate_model(SCORES, TRUTH, ["half_hits@2", "hits@2"], negatives=3, correct="rank")
        assert found["half_hits@2"] == pytest.approx(found["hits@2"] / 2)
        with pytest.raises(fastrec.MetricError, match="odd_hits@2 has a formula on arrays"):
            fastrec.evaluate_model(SCORES, TRUTH, "odd_hits@2", negatives=3, correct="rank")
        assert "odd_hits@2" in fastrec.evaluate_model(SCORES, TRUTH, "odd_hits@2", negatives=3)
        with pytest.raises(fastrec.MetricError, match=r"^share_of_all@2 reads the size of the catalogue"):
            fastrec.evaluate_model(SCORES, TRUTH, "share_of_all@2", negatives=3)
    finally:
        for name in ("half_hits", "odd_hits", "share_of_all"):
            DECLARED["lists"].pop(name, None)


def test_estimates_take_gains_below_0_as_0() -> None:
    truth = [{0: -1.0, 1: 2.0, 5: -3.0}, {2: -1.0, 3: 1.0}]
    zeros = [{item: max(gain, 0.0) for item, gain in own.items()} for own in truth]
    call: dict[str, Any] = {"metrics": ["cg@12", "dcg@12"], "negatives": 2, "correct": "rank", "min_gain": "any"}
    scores = np.random.default_rng(0).random((2, 12))
    found, wanted = (fastrec.evaluate_model(scores, own, **call) for own in (truth, zeros))
    assert dict(found) == dict(wanted) and found["cg@12"] > 0


def test_hit_rate_of_several_relevant_items_has_no_estimate() -> None:
    message = "hit_rate@3 has estimates for users with one relevant item only, found 2 of user 1"
    with pytest.raises(fastrec.MetricError, match=message):
        fastrec.evaluate_model(SCORES, [[1], [2, 3], [4]], "hit_rate@3", negatives=2, correct="rank")


def test_lists_that_contradict_the_size_of_the_catalogue_raise() -> None:
    with pytest.raises(fastrec.InputError, match="n_items=40 and sampled_from=50 are both the size of the catalogue"):
        fastrec.evaluate([[1, 2]], [[2]], "recall@1", sampled_from=50, n_items=40)
    with pytest.raises(fastrec.InputError, match=r"recs of user 1 have 3 items, more than sampled_from=2"):
        fastrec.evaluate([[1], [1, 2, 3]], [[1], [2]], "recall@1", sampled_from=2)
    message = r"recs of user 0 have 2 items outside the truth, but sampled_from=3 leaves 1 beside the 2 of the truth"
    with pytest.raises(fastrec.InputError, match=message):
        fastrec.evaluate([[1, 2, 3]], [[1, 9]], "recall@1", sampled_from=3, correct="rank")
    message = "recs of user 0 have no item outside the truth, which tells nothing about the ranks among sampled_from=9"
    with pytest.raises(fastrec.InputError, match=message):
        fastrec.evaluate([[1]], [[1]], "recall@1", sampled_from=9, correct="rank")
    with pytest.raises(fastrec.InputError, match="lists have places without an item: leave out duplicates='miss'"):
        fastrec.evaluate([[1, 2]], [[1]], "recall@1", sampled_from=9, correct="rank", duplicates="miss")
    assert fastrec.evaluate([[1, 2, 3]], [[1]], "recall@1", sampled_from=99_999_999, correct="rank")["recall@1"] == 1.0


def test_popularity_in_batches_needs_a_history() -> None:
    evaluator = fastrec.Evaluator("recall@3", n_items=6, negatives=2, sample="popularity")
    with pytest.raises(fastrec.InputError, match=r"sample='popularity' in batches needs .* history=\.\.\. or a column"):
        evaluator.update_model(SCORES, TRUTH)
    message = "sample='popularity' found no item of the model with a popularity above 0"
    with pytest.raises(fastrec.InputError, match=message):
        fastrec.evaluate_model(SCORES, {0: []}, "recall@3", negatives=2, sample="popularity", no_truth="zero")

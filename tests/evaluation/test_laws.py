"""Changes that must not change a bit: names of items, order of users, division of the work, other metrics."""

import copy
import math
import pickle
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse

import fastrec
from fastrec.evaluation.state import State
from fastrec.metrics.calls import parse
from fastrec.runtime.launcher import SMALL_WORK
from support import strategies
from support.bits import Bits, group_bits, mean_bits, number_bits, user_bits
from support.known import OF_ITEMS
from support.list_calls import CI, FAR, MATRIX, Ask, flat, for_kind, random_log, recs_of, truth_of, write
from support.strategies import MAX_ID, Log

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

N_USERS = 700  # more than a block of the kernels
N_ITEMS = 100
KINDS = ["plain", "integer"]
LOGS = {kind: random_log(kind, N_USERS, seed=11) for kind in KINDS}
TEXTS = {kind: [ask.text for ask in for_kind(kind)] for kind in KINDS}
FEW = {kind: TEXTS[kind][::13] for kind in KINDS}
GROUPS: dict[str, list[Any]] = {
    "plan": ["free", "paid", "trial"] * N_USERS,
    "cohort": [2023, 2024, 2024, 2025] * N_USERS,
}
WEIGHTS = np.random.default_rng(7).choice([0.1, 1.0, 2.5], N_USERS)
OF_LISTS = [metric for metric in fastrec.catalogue() if metric["kind"] == "ranking" and metric["name"] not in OF_ITEMS]
RANGES: dict[str, Any] = {
    metric["name"]: (-math.inf if metric["range"][0] is None else metric["range"][0], metric["range"][1])
    for metric in OF_LISTS
}
OF_K_RANKS = ("f_beta", "f1", "mean_precision", "mean_recall", "unjudged", "bpm", "nerr")  # formulas that divide by k


def groups_of(users: slice | Any) -> dict[str, Any]:
    return {name: np.array(labels[:N_USERS])[users] for name, labels in GROUPS.items()}


def evaluate(kind: str, recs: Any = None, truth: Any = None, **call: Any) -> fastrec.Report:
    """Evaluate the whole matrix on the log of a kind, or on another form of it."""
    recs = recs_of(LOGS[kind]) if recs is None else recs
    truth = truth_of(LOGS[kind]) if truth is None else truth
    return fastrec.evaluate(recs, truth, TEXTS[kind], n_items=N_ITEMS, per_user=True, **call)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def plainly(kind: str) -> fastrec.Report:
    """The values that every law is compared with."""
    return evaluate(kind)


def assert_same(found: fastrec.Report, expected: fastrec.Report, order: Any = slice(None)) -> None:
    """Check for the same means, and the same values of the users, which come in `order` in the expected report."""
    assert mean_bits(found.estimates) == mean_bits(expected.estimates)
    assert user_bits(found) == user_bits(expected, order)
    assert found.users == expected.users


# Items and users

SCATTER = 0x9E3779B97F4A7C15


def same_slot() -> list[int]:
    """Return ids with products that start alike after multiplication with the golden ratio: the worst case of a simple
    hash."""
    inverse = pow(SCATTER, -1, 2**64)
    ids = (inverse * low % 2**64 for low in range(1, 2**20))
    return [item for item, _ in zip((item for item in ids if item <= MAX_ID), range(4000), strict=False)]


RELABELLINGS: dict[str, Callable[[int], Any]] = {
    "shifted": lambda item: item + 5,
    "scattered": lambda item: item * SCATTER % (2**61 - 1),
    "from the top": lambda item: MAX_ID - item,
    "same low bits": lambda item: item << 40,
    "same hash": same_slot().__getitem__,
    "negated order": lambda item: 1000 - item,
    "texts": lambda item: f"item {item}",
    "bytes": lambda item: f"item {item}".encode(),
    "awkward texts": lambda item: chr(0x10000 + item) + "\0" * (item % 3),
}


@pytest.mark.thorough(except_for="plain-(texts|scattered)")
@pytest.mark.parametrize("relabelling", RELABELLINGS)
def test_items_may_be_called_anything(kind: str, plainly: fastrec.Report, relabelling: str) -> None:
    rename = RELABELLINGS[relabelling]
    (items, indptr), (held, held_indptr, gains) = recs_of(LOGS[kind]), truth_of(LOGS[kind])
    names, held_names = [rename(i) for i in items.tolist()], [rename(i) for i in held.tolist()]
    assert_same(evaluate(kind, (names, indptr), (held_names, held_indptr, gains)), plainly)


def test_long_lists_of_ids_with_the_same_hash() -> None:
    ids = same_slot()
    recs, truth = [list(range(3000))], [list(range(1, 4000, 3))]
    expected = fastrec.evaluate(recs, truth, ["ndcg", "map", "recall@100"])
    found = fastrec.evaluate([[ids[i] for i in recs[0]]], [[ids[i] for i in truth[0]]], ["ndcg", "map", "recall@100"])
    assert mean_bits(found.estimates) == mean_bits(expected.estimates)


@pytest.mark.thorough(except_for="plain")
def test_the_order_of_users_does_not_matter(kind: str, plainly: fastrec.Report) -> None:
    order = np.random.default_rng(1).permutation(N_USERS)
    log = LOGS[kind]
    moved = Log([log.recs[u] for u in order], [log.truth[u] for u in order])
    found = evaluate(kind, recs_of(moved), truth_of(moved), user_weight=WEIGHTS[order], groups=groups_of(order))
    expected = evaluate(kind, user_weight=WEIGHTS, groups=groups_of(slice(None)))
    assert_same(found, expected, order)
    assert group_bits(found) == group_bits(expected)
    assert_same(evaluate(kind, recs_of(moved), truth_of(moved)), plainly, order)


def test_the_order_of_the_truth_does_not_matter(kind: str, plainly: fastrec.Report) -> None:
    turned = [rows[::-1] for rows in LOGS[kind].truth]
    assert_same(evaluate(kind, truth=truth_of(Log([], turned))), plainly)


# Division of the work


@pytest.mark.thorough(except_for="^(plain-False|True-False)$")
@pytest.mark.parametrize("weighted", [False, True])
@CI
@given(data=st.data())
def test_any_split_and_any_order_of_merging(kind: str, weighted: bool, data: st.DataObject) -> None:
    log = LOGS[kind]

    def call(users: slice) -> dict[str, Any]:
        ids = np.arange(N_USERS)[users]
        return {"user_ids": ids, "groups": groups_of(users)} | ({"user_weight": WEIGHTS[users]} if weighted else {})

    def evaluator() -> fastrec.Evaluator:
        return fastrec.Evaluator(FEW[kind], n_items=N_ITEMS, per_user=True)

    whole = evaluator()
    whole.update(recs_of(log), truth_of(log), **call(slice(None)))
    edges = sorted(data.draw(st.lists(st.integers(0, N_USERS), max_size=6)))
    parts: list[fastrec.Evaluator] = []
    for start, end in zip([0, *edges], [*edges, N_USERS], strict=True):
        if not parts or data.draw(st.booleans(), label="in an evaluator of its own"):
            parts.append(evaluator())
        part = Log(log.recs[start:end], log.truth[start:end])
        parts[-1].update(recs_of(part), truth_of(part), **call(slice(start, end)))
    if data.draw(st.booleans(), label="with one that saw nobody"):
        parts.append(evaluator())
    found, expected = strategies.merged(data, parts).result(), whole.result()
    assert found.user_ids is not None
    assert_same(found, expected, found.user_ids)
    assert group_bits(found) == group_bits(expected)
    assert found.data == expected.data


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    """Return enough rows to run in parallel; one user has half of them, and so needs a table of another size."""
    draw = np.random.default_rng(2)
    lists = [draw.permutation(300)[: draw.integers(0, 200)] for _ in range(4000)]
    lists[1700] = draw.permutation(500_000)[:400_000]
    held = [draw.permutation(300)[: draw.integers(0, 30)] for _ in range(4000)]
    held[1700] = draw.permutation(500_000)[:5000]
    items, indptr = np.concatenate(lists).astype(np.int32), np.cumsum([0, *map(len, lists)])
    truth, truth_indptr = np.concatenate(held).astype(np.int32), np.cumsum([0, *map(len, held)])
    gains = draw.choice([0.0, 1.0, 2.0, 3.0, 4.0], len(truth))
    labels, weights = draw.integers(0, 5, 4000), draw.choice([0.0, 1.0, 3.3], 4000)
    assert len(items) + len(truth) > SMALL_WORK
    return {
        "plain": {"recs": (items, indptr), "truth": (truth, truth_indptr)},
        "integer": {"recs": (items, indptr), "truth": (truth, truth_indptr, gains)},
        "users": {"groups": labels, "user_weight": weights},
        "wide": {"recs": (items.astype(np.int64), indptr), "truth": (truth, truth_indptr)},
    }


def on_threads(large: dict[str, Any], kind: str, form: str, n_threads: int, **call: Any) -> list[Bits]:
    texts = [text for text in FEW[kind] if "ideal=k" not in text]
    report = fastrec.evaluate(**large[form], metrics=texts, n_items=10**6, per_user=True, n_threads=n_threads, **call)
    return [mean_bits(report.estimates), user_bits(report), group_bits(report)]


@pytest.mark.thorough
def test_any_number_of_threads(kind: str, large: dict[str, Any]) -> None:
    one = on_threads(large, kind, kind, 1)
    one_weighted = on_threads(large, kind, kind, 1, **large["users"])
    for n_threads in (2, 3, 7, 8):
        assert on_threads(large, kind, kind, n_threads) == one
        assert on_threads(large, kind, kind, n_threads, **large["users"]) == one_weighted


@pytest.mark.thorough
def test_wide_ids_on_many_rows(large: dict[str, Any]) -> None:
    assert on_threads(large, "plain", "wide", 2) == on_threads(large, "plain", "plain", 1)


# Forms of the data


def lists_of(log: Log) -> list[list[int]]:
    return [[item for item, _ in rows] for rows in log.truth]


def padded(rows: list[list[int]], dtype: Any = np.int64) -> Any:
    out = np.full((len(rows), max(map(len, rows)) + 1), -1, dtype)
    for row, items in zip(out, rows, strict=True):
        row[: len(items)] = items
    return out


def falling(items: list[int]) -> list[float]:
    """Return scores that keep a list in its order."""
    return [float(-rank) for rank in range(len(items))]


def csr(rows: list[list[int]], data: Iterable[Iterable[float]]) -> Any:
    items, indptr = flat(rows)
    values = np.array([value for row in data for value in row], float)
    return sparse.csr_matrix((values, items, indptr), shape=(len(rows), N_ITEMS))


def shuffled(log: Log) -> tuple[Any, Any, Any]:
    """Return the lists in another order, with scores that restore the first one."""
    draw = np.random.default_rng(4)
    orders = [draw.permutation(len(items)) for items in log.recs]
    items, indptr = flat([[items[at] for at in order] for items, order in zip(log.recs, orders, strict=True)])
    return items, indptr, -np.concatenate(orders).astype(float)


LIST_FORMS: dict[str, Callable[[Log], Any]] = {
    "int32": lambda log: flat(log.recs, np.int32),
    "int8": lambda log: flat(log.recs, np.int8),
    "uint64": lambda log: flat(log.recs, np.uint64),
    "int32 pointers": lambda log: (recs_of(log)[0], recs_of(log)[1].astype(np.int32)),
    "ragged": lambda log: fastrec.Ragged(*recs_of(log)),
    "lists": lambda log: log.recs,
    "tuples": lambda log: [tuple(items) for items in log.recs],
    "arrays": lambda log: [np.array(items, np.int64) for items in log.recs],
    "padded": lambda log: padded(log.recs),
    "padded int16": lambda log: padded(log.recs, np.int16),
    "csr": lambda log: csr(log.recs, map(falling, log.recs)),
    "scored": shuffled,
    "scored dicts": lambda log: [dict(zip(items, falling(items), strict=True)) for items in log.recs],
}
TRUTH_FORMS: dict[str, Callable[[Log], Any]] = {
    "int32": lambda log: (truth_of(log)[0].astype(np.int32), *truth_of(log)[1:]),
    "uint8": lambda log: (truth_of(log)[0].astype(np.uint8), *truth_of(log)[1:]),
    "dicts": lambda log: [dict(rows) for rows in log.truth],
    "csr": lambda log: csr(lists_of(log), ([gain for _, gain in rows] for rows in log.truth)),
    "float32 gains": lambda log: (*truth_of(log)[:2], truth_of(log)[2].astype(np.float32)),
    "int8 gains": lambda log: (*truth_of(log)[:2], truth_of(log)[2].astype(np.int8)),
}
PLAIN_TRUTH_FORMS: dict[str, Callable[[Log], Any]] = {
    "no gains": lambda log: truth_of(log)[:2],
    "ragged": lambda log: fastrec.Ragged(*truth_of(log)[:2]),
    "lists": lists_of,
    "sets": lambda log: [set(items) for items in lists_of(log)],
    "padded": lambda log: padded(lists_of(log)),
}


@pytest.mark.thorough(except_for="^plain-(csr|ragged|scored dicts|padded)$")
@pytest.mark.parametrize("form", LIST_FORMS)
def test_every_form_of_lists(kind: str, plainly: fastrec.Report, form: str) -> None:
    assert_same(evaluate(kind, LIST_FORMS[form](LOGS[kind])), plainly)


@pytest.mark.thorough(except_for="^plain-(csr|dicts)$")
@pytest.mark.parametrize("form", TRUTH_FORMS)
def test_every_form_of_truth(kind: str, plainly: fastrec.Report, form: str) -> None:
    assert_same(evaluate(kind, truth=TRUTH_FORMS[form](LOGS[kind])), plainly)


@pytest.mark.thorough(except_for="sets|no gains")
@pytest.mark.parametrize("form", PLAIN_TRUTH_FORMS)
def test_truth_without_gains_has_gain_one(form: str) -> None:
    assert_same(evaluate("plain", truth=PLAIN_TRUTH_FORMS[form](LOGS["plain"])), evaluate("plain"))


def test_dicts_are_matched_by_key(kind: str, plainly: fastrec.Report) -> None:
    log = LOGS[kind]
    order = np.random.default_rng(9).permutation(N_USERS).tolist()
    recs = {f"u{u}": log.recs[u] for u in order if log.recs[u]}
    truth = {f"u{u}": dict(log.truth[u]) for u in reversed(order) if log.truth[u]}
    report = evaluate(kind, recs, truth)
    assert report.user_ids is not None
    users = [int(name[1:]) for name in report.user_ids.tolist()]
    assert users == [
        *(u for u in reversed(order) if log.truth[u]),
        *(u for u in order if log.recs[u] and not log.truth[u]),
    ]
    assert mean_bits(report.estimates) == mean_bits(plainly.estimates)
    assert user_bits(report) == user_bits(plainly, users)


def test_gains_of_one_beside_other_gains() -> None:
    """A user's value does not depend on whether the truth of another user has gains."""
    texts = [text for text in TEXTS["plain"] if "ideal=k" not in text]
    recs, truth = LOGS["plain"].recs, LOGS["plain"].truth
    alone = fastrec.evaluate(recs, list(map(dict, truth)), texts, n_items=N_ITEMS, per_user=True)
    beside = fastrec.evaluate([*recs, [1]], [*map(dict, truth), {1: 2.0}], texts, n_items=N_ITEMS, per_user=True)
    assert user_bits(beside, slice(-1)) == user_bits(alone)


# Other metrics in the call


@pytest.mark.thorough
def test_a_metric_is_the_same_alone_and_among_others(kind: str, plainly: fastrec.Report) -> None:
    recs, truth = recs_of(LOGS[kind]), truth_of(LOGS[kind])
    for text in FEW[kind]:
        alone = fastrec.evaluate(recs, truth, text, n_items=N_ITEMS, per_user=True)
        name = parse(text).text
        assert mean_bits(alone.estimates)[name] == mean_bits(plainly.estimates)[name]
        assert number_bits(alone.per_user[name]) == number_bits(plainly.per_user[name])


@pytest.mark.thorough
def test_keeping_values_or_groups_changes_no_mean(kind: str, plainly: fastrec.Report) -> None:
    recs, truth = recs_of(LOGS[kind]), truth_of(LOGS[kind])
    bare = fastrec.evaluate(recs, truth, TEXTS[kind], n_items=N_ITEMS)
    assert mean_bits(bare.estimates) == mean_bits(plainly.estimates)
    grouped = evaluate(kind, groups=groups_of(slice(None)), user_ids=np.arange(N_USERS))
    assert_same(grouped, plainly)


def test_one_group_of_all_is_the_whole(kind: str, plainly: fastrec.Report) -> None:
    report = evaluate(kind, groups=["all"] * N_USERS)
    assert group_bits(report) == {"group=all": mean_bits(plainly.estimates)}


@pytest.mark.thorough
@pytest.mark.parametrize("duplicates", ["first", "miss"])
def test_policies_for_duplicates_without_any(kind: str, plainly: fastrec.Report, duplicates: str) -> None:
    report = evaluate(kind, duplicates=duplicates)
    assert_same(report, plainly)
    assert (report.data["duplicates_in_recs"], report.data["duplicates_in_truth"]) == (0, 0)


def uses_k_alone(ask: Ask) -> bool:
    """Return whether the formula divides by k, or fills k positions."""
    return ask.name in OF_K_RANKS or ask.options.get("denominator") == "k" or ask.options.get("ideal") == "k"


def test_a_cutoff_past_the_end_of_every_list_cuts_nothing(kind: str) -> None:
    asks = [ask for ask in for_kind(kind) if ask.k is None and not uses_k_alone(ask)]
    pairs = {ask.text: [write(ask.name, ask.options, k) for k in (FAR, 2**31 - 1)] for ask in asks}
    texts = [text for text, cut in pairs.items() for text in (text, *cut)]
    recs, truth = recs_of(LOGS[kind]), truth_of(LOGS[kind])
    report = fastrec.evaluate(recs, truth, texts, n_items=N_ITEMS, per_user=True)
    for text, cut in pairs.items():
        for other in cut:
            assert number_bits(report.per_user[other]) == number_bits(report.per_user[text]), other
            assert number_bits(report[other]) == number_bits(report[text])


# Bounds and exactness


def test_every_value_is_within_its_range(kind: str, plainly: fastrec.Report) -> None:
    for name, values in plainly.per_user.items():
        low, high = RANGES[parse(name).metric.name]
        counted = values[~np.isnan(values)]
        for value in (*counted.tolist(), *([plainly[name]] if len(counted) else [])):
            assert low <= value <= (math.inf if high is None else high), name


def is_a_mean(text: str) -> bool:
    return "average=pooled" not in text and "average=means" not in text


def half_a_last_digit(value: float) -> Fraction:
    return Fraction(math.ulp(value)) / 2


def test_means_are_exact(kind: str, plainly: fastrec.Report) -> None:
    """Sums of values in [-1, 1] are exact to 2^-64 of each value, all other sums are exact in total."""
    for name, values in plainly.per_user.items():
        if not is_a_mean(name) or not plainly.estimates[name].users:
            continue
        counted = [Fraction(value) for value in values.tolist() if not math.isnan(value)]
        exact = sum(counted, Fraction(0)) / len(counted)
        low, high = RANGES[parse(name).metric.name]
        if low >= -1 and high is not None and high <= 1:
            assert abs(Fraction(plainly[name]) - exact) <= Fraction(1, 2**60) + half_a_last_digit(plainly[name])
        else:
            assert plainly[name] == float(exact), name


@pytest.mark.thorough
def test_weighted_means_are_exact(kind: str) -> None:
    """The products of weight and value are rounded, and no later step is."""
    report = evaluate(kind, user_weight=WEIGHTS)
    for name, values in report.per_user.items():
        if is_a_mean(name) and report.estimates[name].users:
            counted = ~np.isnan(values)
            total = sum(map(Fraction, (WEIGHTS * values)[counted].tolist()))
            assert report[name] == float(total / sum(map(Fraction, WEIGHTS[counted].tolist()))), name


def test_pooled_means_are_correctly_rounded(kind: str, plainly: fastrec.Report) -> None:
    for k in (1, 3, 10, FAR):
        hits = sum(map(Fraction, counted_values(plainly, f"hits@{k}")))
        n_users = len(counted_values(plainly, f"hits@{k}"))
        assert plainly[f"precision(average=pooled)@{k}"] == float(hits / (k * n_users))


def counted_values(report: fastrec.Report, name: str) -> list[float]:
    return [value for value in report.per_user[name].tolist() if not math.isnan(value)]


def test_the_standard_error_of_small_values() -> None:
    """A large catalogue makes small values with even smaller squares."""
    n_items, wrong = 10**9, [0, 1, 5, 2]
    report = fastrec.evaluate([[1, *range(2, 2 + n)] for n in wrong], [[1]] * 4, ["fallout"], n_items=n_items)
    values = [n / (n_items - 1) for n in wrong]
    spread = math.fsum((value - math.fsum(values) / 4) ** 2 for value in values)
    assert report.std_error("fallout") == pytest.approx(math.sqrt(spread / 12), rel=1e-9, abs=0)
    assert report["fallout"] == pytest.approx(math.fsum(values) / 4, rel=1e-9, abs=0)


SPREAD_TEXTS = ["mrr", "precision@10", "ndcg", "map", "cg", "dcg", "arhr", "rbp"]


def test_equal_values_have_no_spread() -> None:
    """Exact up to the rounding of squares: 2^-53 of the value, under a square root."""
    report = fastrec.evaluate([[9, 8, 1, 2]] * 1000, [{1: 7.3, 2: 0.1}] * 1000, SPREAD_TEXTS)
    for name, estimate in report.estimates.items():
        assert 0 <= estimate.std_error <= 2.0**-26 * estimate.mean / math.sqrt(999), name


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_extreme_gains(scale: float) -> None:
    gains = [{1: 3.0, 2: 1.0, 7: 2.0}, {4: 1.0, 9: 5.0}, {5: 2.0}]
    recs = [[1, 2, 3], [4, 5, 6], [5, 4]]
    texts = ["cg", "dcg", "dcg(discount=log2_flat2)@2", "ndcg", "ndcg@2", "ndcg(ideal=list)"]
    small = fastrec.evaluate(recs, gains, texts, per_user=True)
    scaled = [{item: gain * scale for item, gain in own.items()} for own in gains]
    large = fastrec.evaluate(recs, scaled, texts, per_user=True)
    for name, estimate in small.estimates.items():
        factor = 1.0 if name.startswith("ndcg") else scale
        assert large[name] == pytest.approx(estimate.mean * factor, rel=1e-14, abs=0), name
        assert large.std_error(name) == pytest.approx(estimate.std_error * factor, rel=1e-13, abs=0), name
        exact = sum(map(Fraction, large.per_user[name].tolist())) / 3
        assert large[name] == pytest.approx(float(exact), rel=2.0**-52, abs=0)


def test_sums_of_numbers_of_every_size() -> None:
    """Neither the largest nor the smallest of the addends is lost, whichever comes first."""
    sizes = [1e300, 1.0, 1e-300, 3e-308, 1e16, 1e300, 7.0] * 50
    recs, truth = [[1]] * len(sizes), [{1: size} for size in sizes]
    mean = fastrec.evaluate(recs, truth, ["cg"])["cg"]
    assert mean == float(sum(map(Fraction, sizes)) / len(sizes))
    assert fastrec.evaluate(recs, truth[::-1], ["cg"])["cg"] == mean


def test_a_sum_past_the_largest_double_is_refused_by_name() -> None:
    with pytest.raises(fastrec.InputError, match="cg of user 1 is too large for a double"):
        fastrec.evaluate([[1, 2], [1, 2]], [{1: 1.0}, {1: 1.5e308, 2: 1.5e308}], ["cg"])


# Leave one out


@CI
@given(length=st.integers(1, 12), held=st.integers(1, 14), k=st.integers(1, 13), gain=st.sampled_from([1.0, 2.0, 0.25]))
def test_one_relevant_item(length: int, held: int, k: int, gain: float) -> None:
    """At rank j: ndcg is 1 / log2(j + 1), mrr 1 / j, and recall is hit_rate."""
    report = fastrec.evaluate(
        [list(range(1, length + 1))], [{held: gain}], ["ndcg", "mrr", "map", "arhr", "recall", "hit_rate"], k=k
    )
    found = held <= min(length, k)
    discount = 1 / math.log2(held + 1)
    assert report[f"ndcg@{k}"] == pytest.approx(discount if found else 0.0, rel=2.0**-52)
    for name in ("mrr", "map", "arhr"):
        assert report[f"{name}@{k}"] == (1 / held if found else 0.0)
    assert report[f"recall@{k}"] == report[f"hit_rate@{k}"] == float(found)


@CI
@given(log=strategies.logs(), k=strategies.cutoffs(2**31 - 1))
def test_identities_between_metrics(log: Log, k: int | None) -> None:
    assume(log.recs)
    at = "" if k is None else f"@{k}"
    texts = [
        "f1",
        "f_beta(beta=1)",
        "f_beta(beta=0)",
        "precision",
        "dcg(discount=[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])",
    ]
    texts += ["cg", "fallout", "specificity", "hit_rate", "hits"]
    report = fastrec.evaluate(
        recs_of(log), truth_of(log), [f"{text}{at}" for text in texts], n_items=1000, per_user=True
    )
    values = [report.per_user[f"{text}{at}"] for text in texts]
    assert number_bits(values[0]) == number_bits(values[1])
    np.testing.assert_array_equal(values[2], values[3])
    np.testing.assert_array_equal(values[4], values[5])
    counted = ~np.isnan(values[6]) & np.array([bool(items) for items in log.recs])
    np.testing.assert_allclose((values[6] + values[7])[counted], 1.0, rtol=1e-15)
    np.testing.assert_array_equal(values[8], np.minimum(values[9], 1))


def test_the_matrix_is_large_enough_to_mean_something() -> None:
    assert len({ask.name for ask in MATRIX}) == len(OF_LISTS)
    assert all(len(FEW[kind]) > 50 for kind in KINDS)


# One evaluator in several threads


@pytest.mark.parametrize("rows", [False, True], ids=["lists", "rows"])
def test_threads_that_share_an_evaluator(monkeypatch: pytest.MonkeyPatch, rows: bool) -> None:
    make: Any = fastrec.ScoreEvaluator if rows else fastrec.Evaluator
    shared, add_up = make("ndcg@3", per_user=True, n_threads=1), State.add

    def add_up_slowly(*arguments: Any) -> None:
        time.sleep(0.001)  # in which other threads continue
        add_up(*arguments)

    def add(worker: int) -> None:
        for batch in range(10):
            user = [1000 * worker + batch]
            if rows:
                shared.update([1, 0, 1], [0.5, 0.7, 0.1 * worker], [0, 3], user_ids=user)
            else:
                shared.update([[1, 2, worker + 3]], [[2, 4]], user_ids=user)

    monkeypatch.setattr(State, "add", add_up_slowly)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, range(6)))
    report = shared.result()
    assert report.users["total"] == report.users["evaluated"] == len(report.user_ids) == 60
    assert report["ndcg@3"] == pytest.approx(report.per_user["ndcg@3"].mean(), abs=1e-12)
    again = make("ndcg@3", per_user=True, n_threads=1)
    again.merge(shared)
    assert again.result().to_json() == report.to_json()


class SlowLock:
    """Lock that lets other threads run after each release."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()
        time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_evaluators_that_merge_each_other_do_not_wait_for_ever() -> None:
    one, other = (fastrec.Evaluator("mrr") for _ in range(2))
    one._lock, other._lock = SlowLock(), SlowLock()

    def merge(pair: tuple[fastrec.Evaluator, fastrec.Evaluator]) -> None:
        for _ in range(5):
            pair[0].merge(pair[1])

    threads = [threading.Thread(target=merge, args=[pair], daemon=True) for pair in ((one, other), (other, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda kept: pickle.loads(pickle.dumps(kept))])
def test_a_copy_of_an_evaluator_is_another(copied: Any) -> None:
    template = fastrec.Evaluator("recall@1", per_user=True)
    for start in ({}, {"dan": [1]}):
        template.update(start, start) if start else None
        before = template.result().to_json()
        first, second = copied(template), copied(template)
        first.update({"ann": [1], "bob": [2]}, {"ann": [1], "bob": [2]})
        second.update({"cy": [9]}, {"cy": [1]})
        report = first.result()
        assert [*report.user_ids] == [*start, "ann", "bob"]
        assert len(report.per_user["recall@1"]) == report.users["total"] == 2 + len(start)
        assert template.result().to_json() == before

"""Exactness at every size: more rows, users and pairs than 32, 53 or 64 bits count, long users and empty ones.

Tests that take gigabytes or minutes run only if FASTREC_TEST_SIZE is "full", as in `.ci/full exact_at_size`.
"""

import copy
import ctypes
import itertools
import math
import mmap
import os
import tempfile
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastrec
from support import score_oracle, strategies
from support.bits import group_bits, mean_bits, number_bits

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

ALL = os.environ.get("FASTREC_TEST_SIZE") == "full"
full = pytest.mark.skipif(not ALL, reason="takes gigabytes or minutes: FASTREC_TEST_SIZE=full")
LIST_METRICS = ["hits@3", "recall@3", "ndcg@3", "precision(average=pooled)@3", "f1(average=means)@3", "cg"]
ROW_METRICS = ["gauc", "gauc(weight=pairs)", "auc", "average_precision", "ks", "log_loss", "rmse(average=user)"]


def lists_evaluator() -> fastrec.Evaluator:
    evaluator = fastrec.Evaluator(LIST_METRICS)
    truth = [{1: 2.0, 9: 1.0}, {4: 1e-300}, {8: 1e300, 7: 1.0}]
    evaluator.update([[1, 2, 3], [5, 4], [7, 8, 9]], truth, groups=["a", "b", "a"])
    return evaluator


def scores_evaluator() -> fastrec.ScoreEvaluator:
    evaluator = fastrec.ScoreEvaluator(ROW_METRICS)
    labels, scores = [1, 0, 1, 0, 0, 1, 1], [0.9, 0.9, 0.3, 0.1, 0.8, 0.7, 0.2]
    evaluator.update(labels, scores, [0, 3, 7], groups=["a", "b"])
    return evaluator


# Counts


@pytest.mark.parametrize("make", [lists_evaluator, scores_evaluator])
def test_counts_past_every_word(make: Any) -> None:
    """2^55 times the same users give the same means to the last bit, exact counts, and an error that shrinks as it
    should."""
    once, many = make(), make()
    for _ in range(55):
        many.merge(copy.deepcopy(many))
    few, all_of_them = once.result(), type(many).from_bytes(many.to_bytes()).result()
    for name, estimate in all_of_them.estimates.items():
        assert number_bits(estimate.mean) == number_bits(few[name]), name
        assert estimate.users == few.estimates[name].users << 55
        if not math.isnan(few.std_error(name)) and estimate.users:
            shrunk = few.std_error(name) * 2.0**-27.5
            assert shrunk / 2 < estimate.std_error <= shrunk or few.std_error(name) == 0, name
    assert all_of_them.users == {name: count << 55 for name, count in few.users.items()}
    counted = {name: value for name, value in few.data.items() if isinstance(value, int)}
    assert {name: all_of_them.data[name] for name in counted} == {name: n << 55 for name, n in counted.items()}
    assert [e.mean for e in all_of_them.groups["group"]["a"].values()] == pytest.approx(
        [e.mean for e in few.groups["group"]["a"].values()], rel=0, abs=0, nan_ok=True
    )


@pytest.mark.parametrize("n_positive", [31_623, pytest.param(95_000_000, marks=full)])
@pytest.mark.parametrize("distinct", [1 << 20, 7])
def test_a_user_of_many_pairs(n_positive: int, distinct: int) -> None:
    """One user has 10^9 pairs, or more than 2^53, with few ties and with many, beside a user with one pair."""
    n = 2 * n_positive
    scores = (np.arange(n + 2, dtype=np.uint32) * np.uint32(2_654_435_761) >> np.uint32(8)) % np.uint32(distinct)
    labels = (np.arange(n + 2) & 1).astype(np.int8)
    won = np.zeros(distinct, np.int64), np.zeros(distinct, np.int64)
    for label in (0, 1):
        won[label][:] = np.bincount(scores[:n][labels[:n] == label], minlength=distinct)
    below = np.concatenate([[0], np.cumsum(won[0])])[:-1].tolist()
    twice = sum(p * (2 * b + t) for p, b, t in zip(won[1].tolist(), below, won[0].tolist(), strict=True))
    own, pairs = Fraction(twice, 2 * n_positive**2), n_positive**2
    assert pairs > (10**9 if n_positive < 10**6 else 2**53)
    other = Fraction(1) if scores[n + 1] > scores[n] else Fraction(int(scores[n + 1] == scores[n]), 2)
    scores = scores.astype(np.float32)
    metrics = ["gauc(weight=equal)", "gauc(weight=pairs)", "gauc"]
    report = fastrec.evaluate_scores(labels, scores, [0, n, n + 2], metrics, per_user=True)
    assert report.per_user["gauc"].tolist() == [float(own), float(other)]
    close = 2 * math.ulp(0.5)  # the weighted sums use users' values as doubles
    assert abs(Fraction(report["gauc(weight=equal)"]) - (own + other) / 2) <= close
    assert abs(Fraction(report["gauc(weight=pairs)"]) - (pairs * own + other) / (pairs + 1)) <= close
    assert abs(Fraction(report["gauc"]) - (n * own + 2 * other) / (n + 2)) <= close
    if n_positive < 10**6:
        assert fastrec.auc(labels[:n], scores[:n]) == float(own)


# Users


@pytest.mark.parametrize("n", [300_000, pytest.param(10_000_000, marks=full)])
def test_a_long_user(n: int) -> None:
    """Every third item of the list is relevant, so the metrics have closed forms."""
    items = np.random.default_rng(0).permutation(n).astype(np.int64) + (2**63 - n)
    held, k = items[2::3], n // 3 * 3
    recs, truth = (items, [0, 0, n, n]), (np.append(held[::-1], held[:1]), [0, 0, len(held), len(held) + 1])
    metrics = ["map", "hits", "precision", "mrr", "arhr", f"recall@{k}", "ndcg", "dcg"]
    report = fastrec.evaluate(recs, truth, metrics, no_recs="skip")
    ranks = range(3, k + 1, 3)
    dcg = math.fsum(1 / math.log2(rank + 1) for rank in ranks)
    exact = {"map": Fraction(1, 3), "hits": Fraction(n // 3), "precision": Fraction(n // 3, n), "mrr": Fraction(1, 3)}
    exact |= {f"recall@{k}": Fraction(1), "dcg": Fraction(dcg)}
    exact["ndcg"] = Fraction(dcg / math.fsum(1 / math.log2(rank + 1) for rank in range(1, n // 3 + 1)))
    exact["arhr"] = Fraction(math.fsum(1 / rank for rank in ranks))
    for name, value in exact.items():
        assert report.estimates[name].users == 1
        # within a user n addends are added one after the other, each with an error of half a last digit
        assert abs(Fraction(report[name]) - value) <= (n // 3 + 2) * 2.0**-53 * value, name


@pytest.mark.parametrize("n", [300_000, pytest.param(10_000_000, marks=full)])
def test_a_long_user_of_rows(n: int) -> None:
    draw = np.random.default_rng(1)
    scores, labels = draw.integers(0, n // 3, n), (draw.random(n) < 0.4).astype(np.int8)
    n_pos = int(labels.sum())
    exact = Fraction(score_oracle.twice_won(labels.tolist(), scores.tolist()), 2 * n_pos * (n - n_pos))
    metrics = ["gauc", "gauc(weight=equal)", "auc"]
    found = fastrec.evaluate_scores(labels, scores.astype(np.float32), [0, n], metrics)
    assert found["auc"] == found["gauc(weight=equal)"] == float(exact)
    assert abs(found["gauc"] - float(exact)) <= math.ulp(0.25)  # the product with the weight is rounded


@pytest.mark.thorough
def test_ten_million_empty_users() -> None:
    n = 10_000_000
    indptr = np.zeros(n + 2, np.int64)
    indptr[-1] = 1
    one = (np.array([7]), indptr)
    report = fastrec.evaluate(one, one, ["ndcg", "hits"], no_truth="zero")
    assert report["ndcg"] == report["hits"] == 1 / (n + 1)
    assert report.users == {"total": n + 1, "evaluated": n + 1, "no_truth": n, "no_recs": 0}
    report = fastrec.evaluate(one, (np.array([8, 7]), np.concatenate([[0], indptr[1:] + 1])), ["recall"])
    assert (report["recall"], report.estimates["recall"].users) == (0.5, 2)
    rows = fastrec.evaluate_scores([1, 0], [0.5, 0.25], np.concatenate([indptr[:-1], [2]]), ["gauc", "mae"])
    assert (rows["gauc"], rows.users["no_rows"], rows.users["total"]) == (1.0, n, n + 1)


def test_the_largest_ids_of_users_and_items() -> None:
    top = strategies.MAX_ID
    users = np.array([2**64 - 1, 2**64 - 2, 0, 2**63], np.uint64)
    recs = np.array([[top, top - 1], [top - 1, top], [0, 1], [1, 0]], np.uint64)
    truth = np.array([[top], [top], [0], [0]], np.uint64)
    report = fastrec.evaluate(recs, truth, "mrr", user_ids=users, per_user=True)
    assert report.user_ids is not None
    assert report.user_ids.tolist() == users.tolist()
    assert report.per_user["mrr"].tolist() == [1.0, 0.5, 1.0, 0.5]
    evaluator = fastrec.Evaluator("mrr")
    evaluator.update(recs, truth, user_ids=users)
    again = fastrec.Evaluator.from_bytes(evaluator.to_bytes())
    with pytest.raises(fastrec.InputError, match=str(2**64 - 1)):
        again.update(recs[:1], truth[:1], user_ids=users[:1])
    with pytest.raises(fastrec.InputError, match=r"must not exceed 2\*\*63 - 1"):
        fastrec.evaluate(recs + np.uint64(1), truth, "mrr")


# Means


def many_users(n: int) -> tuple[Any, Any]:
    """Return lists of five, with gains from 1e-300 to 1e300."""
    draw = np.random.default_rng(3)
    items = draw.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :5].copy()
    held = draw.permuted(np.tile(np.arange(8), (n, 1)), axis=1)[:, :3].copy()
    gains = draw.choice([1e-300, 1e-17, 1.0, 3.0, 7.1, 1e17, 1e300], held.size)
    return items, (held.reshape(-1), np.arange(n + 1) * 3, gains)


def test_means_of_many_users_are_exact_in_any_order_and_cut() -> None:
    """Means of values in [0, 1] are exact to 2^-60, all others to the last digit, with the same bits in any order of
    users."""
    n = 20_000
    items, (held, indptr, gains) = many_users(n)
    within, beyond = ["ndcg", "map@3", "mrr", "recall@2", "precision@3"], ["cg", "dcg", "dcg(discount=log2_flat2)@3"]
    report = fastrec.evaluate(items, (held, indptr, gains), [*within, *beyond], per_user=True)
    for name, values in report.per_user.items():
        exact = sum(map(Fraction, values.tolist())) / n
        if name in within:
            assert abs(Fraction(report[name]) - exact) <= Fraction(1, 2**60) + Fraction(math.ulp(report[name])) / 2
        else:
            assert report[name] == float(exact)
    order = np.random.default_rng(4).permutation(n)
    groups = np.arange(n) % 3
    cuts = [0, 1, 512, 513, 7000, n]
    chunks = list(itertools.pairwise(cuts))
    evaluators = [fastrec.Evaluator([*within, *beyond], n_threads=at + 1) for at in range(2)]
    for evaluator, turn in zip(evaluators, (1, -1), strict=True):
        for first, last in chunks[::turn]:
            users = order[first:last] if turn == 1 else np.arange(first, last)
            rows = (users[:, None] * 3 + np.arange(3)).reshape(-1)
            truth = (held[rows], np.arange(len(users) + 1) * 3, gains[rows])
            evaluator.update(items[users], truth, groups=groups[users])
    one, other = (evaluator.result() for evaluator in evaluators)
    assert mean_bits(one.estimates) == mean_bits(other.estimates) == mean_bits(report.estimates)
    assert group_bits(one) == group_bits(other)


# More than 2^31 rows


def repeated(block: Any, times: int) -> Any:
    """Map one block many times in a row, in the memory of one: the same pages of a file, mapped again and again."""
    size = block.nbytes
    assert size % mmap.PAGESIZE == 0
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    no_reserve, fixed = 0x4000, 0x10
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve
    start = libc.mmap(None, size * times, 0, anonymous, -1, 0)
    with tempfile.TemporaryFile() as file:
        file.write(block.tobytes())
        file.flush()
        for at in range(times):
            place = libc.mmap(start + at * size, size, mmap.PROT_READ, mmap.MAP_SHARED | fixed, file.fileno(), 0)
            assert place == start + at * size
    memory = (ctypes.c_byte * (size * times)).from_address(start)
    weakref.finalize(memory, libc.munmap, start, size * times)
    out = np.ctypeslib.as_array(memory).view(block.dtype)
    out.flags.writeable = False
    return out


USERS_OF_BLOCK = 1 << 10
ROWS_OF_USER = 1 << 12
LARGE = [(1 << 9) + 3] if ALL else [3]  # blocks of 2^22 rows


def block_of_lists() -> tuple[Any, Any, Any]:
    """Return lists of ROWS_OF_USER items, and a truth of two items each; one of the two is listed."""
    draw = np.random.default_rng(5)
    lists = np.stack([draw.permutation(ROWS_OF_USER) for _ in range(USERS_OF_BLOCK)]).astype(np.int32)
    held = np.stack([lists[:, 0], np.full(USERS_OF_BLOCK, 2**31 - 1)], axis=1).astype(np.int32)
    held[1::2, 0] = lists[1::2, 6]
    return lists.reshape(-1), held.reshape(-1), np.arange(USERS_OF_BLOCK + 1) * ROWS_OF_USER


@pytest.mark.parametrize("times", LARGE)
def test_offsets_of_lists(times: int) -> None:
    """One call with pointers past 2^31 gives the result of one block to the last bit, and the counts of all."""
    items, held, indptr = block_of_lists()
    metrics = ["ndcg", "mrr", "hits", "map@100", "hit_rate@1", "precision(average=pooled)@10"]
    n_users = USERS_OF_BLOCK * times
    recs = repeated(items, times), np.arange(n_users + 1) * ROWS_OF_USER
    assert not ALL or len(recs[0]) > 2**31
    report = fastrec.evaluate(recs, (np.tile(held, times), np.arange(n_users + 1) * 2), metrics)
    once = fastrec.evaluate((items, indptr), (held, np.arange(USERS_OF_BLOCK + 1) * 2), metrics)
    assert [report[name] for name in metrics] == [once[name] for name in metrics]
    assert (report["mrr"], report["hit_rate@1"]) == (float((1 + Fraction(1, 7)) / 2), 0.5)
    assert report.data["rec_rows"] == ROWS_OF_USER * n_users
    assert report.users["evaluated"] == n_users


@pytest.mark.parametrize("times", LARGE)
def test_offsets_of_rows(times: int) -> None:
    """The same for rows: positives are above all but the last of the negatives of their user."""
    scores = np.tile(np.arange(ROWS_OF_USER, dtype=np.float32), USERS_OF_BLOCK)
    labels = (scores >= ROWS_OF_USER - 101).astype(np.int8)
    labels.reshape(-1, ROWS_OF_USER)[:, -1] = 0
    n_users = USERS_OF_BLOCK * times
    indptr = np.arange(n_users + 1) * ROWS_OF_USER
    report = fastrec.evaluate_scores(
        repeated(labels, times), repeated(scores / np.float32(ROWS_OF_USER), times), indptr, ["gauc", "brier", "mrr"]
    )
    n_negative = ROWS_OF_USER - 100
    assert report["gauc"] == float(Fraction(n_negative - 1, n_negative))
    assert report["mrr"] == 0.5
    own = [Fraction(score, ROWS_OF_USER) - label for score, label in enumerate(labels[:ROWS_OF_USER].tolist())]
    assert abs(Fraction(report["brier"]) - sum(gap * gap for gap in own) / ROWS_OF_USER) <= Fraction(1, 2**52)
    assert report.data == {"rows": ROWS_OF_USER * n_users, "positive_rows": 100 * n_users}
    assert report.users["total"] == n_users


@pytest.mark.parametrize("times", LARGE)
def test_rows_in_batches(times: int) -> None:
    """A constant block again and again, in one evaluator, gives the same means to the last bit, and all counts."""
    items, held, indptr = block_of_lists()
    lists = fastrec.Evaluator(["ndcg", "hits", "map@100"])
    rows = fastrec.ScoreEvaluator(["auc", "gauc", "rmse"])
    labels, scores = (items % 7 == 0).view(np.int8), np.sin(items, dtype=np.float32)
    first: list[Any] = []
    for at in range(times):
        lists.update((items, indptr), (held, np.arange(USERS_OF_BLOCK + 1) * 2))
        rows.update(labels, scores, indptr)
        if at == 0:
            first = [evaluator.result() for evaluator in (lists, rows)]
    for evaluator, once in zip((lists, rows), first, strict=True):
        report = evaluator.result()
        assert [report[name] for name in report] == [once[name] for name in report]
        assert report.users["total"] == USERS_OF_BLOCK * times
        name = "rows" if evaluator is rows else "rec_rows"
        assert report.data[name] == len(items) * times
        assert not ALL or report.data[name] > 2**31

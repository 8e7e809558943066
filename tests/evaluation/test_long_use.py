"""A process that calls again and again: nothing grows, nothing is left behind, and parts add up to the whole."""

import os
import random

import numpy as np
import pytest

import fastrec
from support.processes import run

CALLS = int(os.environ.get("FASTREC_TEST_CALLS", "1200"))  # .ci/full asks for 10,000

# Calls of many shapes, in an order that a seed decides; every shape is about equally frequent.
MIXED_USE = """
import gc, os, random, sys, threading, time, tracemalloc, warnings
import fastrec
warnings.simplefilter("ignore")
rng, chance = np.random.default_rng(0), random.Random(0)

def lists():
    size = chance.choice([1, 7, 300, 6000])
    recs = np.argsort(rng.random((size, 30)), axis=1)[:, :chance.choice([1, 5, 10])]
    return recs, rng.integers(0, 30, (size, 1))

def rows():
    size = chance.choice([2, 50, 40_000])
    return rng.random(size) < 0.3, rng.random(size).astype(chance.choice([np.float32, np.float64])), size

def about(size):
    groups = [None, np.arange(size) % 3, {"a": np.arange(size) % 2}]
    return {"groups": chance.choice(groups), "user_weight": chance.choice([None, rng.random(size) + 0.1])}

def evaluate_lists():
    recs, truth = lists()
    report = fastrec.evaluate(
        recs, truth, ["ndcg", "recall", "mrr"], k=[1, chance.choice([3, 8])], per_user=chance.random() < 0.5,
        n_threads=chance.choice([1, 2, 3]), **about(len(recs)),
    )
    report.to_json(), repr(report)

def evaluate_rows():
    labels, scores, size = rows()
    indptr = [0, size // 2, size]
    fastrec.evaluate_scores(labels, scores, indptr, ["gauc", "auc", "ndcg@3", "log_loss"], **about(2)).to_json()

def evaluate_keys():
    labels, scores, size = rows()
    keys = [f"u{i % 40}" for i in range(min(size, 500))]
    fastrec.evaluate_scores(labels[:500], scores[:500], metrics="gauc", user_ids=keys)

def evaluate_dicts():
    fastrec.evaluate({f"u{i}": [f"i{i}", "x"] for i in range(50)}, {f"u{i}": ["x"] for i in range(60)}, "mrr")

def errors():
    recs, truth = lists()
    for wrong in (
        lambda: fastrec.evaluate(np.zeros((len(recs), 2), int), truth, "recall"),
        lambda: fastrec.evaluate(recs, truth[:-1], "recall"),
        lambda: fastrec.evaluate(recs, truth, f"nothing{chance.random()}"),
        lambda: fastrec.auc([1, 0], [np.nan, 0.5]),
        lambda: fastrec.Evaluator.from_bytes(b"no state"),
    ):
        try:
            wrong()
        except fastrec.FastrecError:
            pass
        else:
            raise AssertionError

def curves():
    labels, scores, size = rows()
    labels[:2] = [True, False]
    weights = chance.choice([None, rng.random(size) + 0.1])
    fastrec.roc_curve(labels, scores, sample_weight=weights)
    fastrec.pr_curve(labels, scores, sample_weight=weights)
    fastrec.auc(labels, scores, sample_weight=weights)
    fastrec.bounded_auc(labels, scores)
    fastrec.confusion_matrix(labels, scores, [0.2, 0.7])

def compare():
    recs, truth = lists()
    both = {"a": recs, "b": recs[:, ::-1]}
    systems = {name: fastrec.evaluate(own, truth, "mrr", per_user=True) for name, own in both.items()}
    test = chance.choice(["randomization", "bootstrap"])
    fastrec.compare(systems, test=test, n_rounds=200, n_threads=2).to_markdown()

def evaluator():
    parts = [fastrec.Evaluator(["ndcg@5"], per_user=True) for _ in range(2)]
    for part in parts:
        recs, truth = lists()
        part.update(recs, truth)
    fastrec.Evaluator.from_bytes(parts[0].merge(parts[1]).to_bytes()).result()

def score_evaluator():
    parts = [fastrec.ScoreEvaluator(["auc", "ks"]) for _ in range(2)]
    for part in parts:
        labels, scores = rows()[:2]
        part.update(labels, np.asarray(scores, np.float64))
    fastrec.ScoreEvaluator.from_bytes(parts[0].merge(parts[1]).to_bytes()).result()

def ties_and_seen():
    recs, truth = lists()
    indptr = np.arange(len(recs) + 1) * recs.shape[1]
    scores = rng.integers(0, 3, recs.size).astype(float)
    seen = recs.ravel()[:1], np.minimum(np.arange(len(recs) + 1), 1)
    ties = chance.choice(["expected", "best", "id_asc"])
    fastrec.evaluate((recs.ravel(), indptr, scores), truth, "ndcg@3", ties=ties, exclude=seen)

def interval():
    recs, truth = lists()
    if len(recs) > 1:
        fastrec.evaluate(recs, truth, "recall", per_user=True).interval("recall", method="bootstrap", n_rounds=100)

def explained():
    recs, truth = lists()
    fastrec.explain("ndcg@3", like="ranx")
    fastrec.evaluate(recs, truth, ["ndcg@3"], like="ranx")

def in_parallel():
    many(n_threads=2)

SHAPES = [in_parallel, evaluate_lists, evaluate_rows, evaluate_keys, evaluate_dicts, errors, curves, compare, evaluator,
          score_evaluator, ties_and_seen, interval, explained]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def left():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(os.listdir("/proc/self/task"))
"""

GROWTH = """
for shape in SHAPES * 40:  # everything loaded, caches of plans and metrics filled
    shape()
before, memory = left(), []
tracemalloc.start()
def objects():
    gc.collect()
    return np.array([sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]])
for call in range(CALLS // 3):
    chance.choice(SHAPES)()
first = objects()
for call in range(CALLS // 3):
    chance.choice(SHAPES)()
grown = objects() - first
tracemalloc.stop()
for call in range(CALLS - 2 * (CALLS // 3)):
    chance.choice(SHAPES)()
    memory.append(resident())
# The lowest of each third: freed memory is not given back at once, and a large call is a peak.
parts = [min(part) for part in np.array_split(memory, 3)]
print(left() == before, *grown, parts[2] - parts[1])
"""


@pytest.mark.thorough
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not report the memory of a process")
def test_nothing_grows_and_nothing_is_left():
    result = run(MIXED_USE + f"CALLS = {CALLS}\n" + GROWTH, timeout=300 + CALLS, NUMBA_NUM_THREADS="2")
    assert result.returncode == 0, result.stderr
    same, objects, numbers, pages = result.stdout.split()
    assert same == "True", "files and threads"
    assert int(objects) < 100 + CALLS // 30, "objects: measured about 50 more; one per call would be 400"
    assert int(numbers) < (32 << 10) + 16 * CALLS // 3, "bytes of objects and arrays: measured 15,000 more"
    assert int(pages) < 4 << 20, "bytes of memory of all libraries: 4 kB per call at 10,000 calls, 30 kB at 1,200"


# Parts


def bits(report):
    return report.to_json(), [values.tobytes() for values in report.per_user.values()]


N_USERS = 1000
RNG = np.random.default_rng(3)
RECS = np.argsort(RNG.random((N_USERS, 40)), axis=1)[:, :10]
TRUTH = np.argsort(RNG.random((N_USERS, 40)), axis=1)[:, :3]
GAINS = RNG.integers(1, 5, TRUTH.shape).astype(float)
WEIGHTS = RNG.random(N_USERS) + 0.01
INDPTR = np.cumsum([0, *RNG.integers(0, 9, N_USERS)])
LABELS = RNG.random(INDPTR[-1]) < 0.4
SCORES = RNG.integers(0, 300, INDPTR[-1]) / 300  # ties within users and between them
ROW_WEIGHTS = RNG.random(INDPTR[-1]) + 0.1


def about(users, weighted):
    groups = {"third": users % 3, "name": np.array(["a", "b"])[users % 2]}
    return {"user_ids": users, "groups": groups, "user_weight": WEIGHTS[users] if weighted else None}


def make_lists(weighted):
    return fastrec.Evaluator(["ndcg(gain=exp2)@5", "map@10", "mrr", "recall@3"], per_user=True, n_threads=1)


def update_lists(evaluator, users, weighted):
    indptr = np.arange(len(users) + 1) * TRUTH.shape[1]
    truth = TRUTH[users].ravel(), indptr, GAINS[users].ravel()
    evaluator.update(RECS[users], truth, **about(users, weighted))


def make_scores(weighted):
    metrics = ["gauc", "auc", "average_precision", "log_loss", "ks", *([] if weighted else ["ndcg@3"])]
    return fastrec.ScoreEvaluator(metrics, per_user=True, n_threads=1)


def update_scores(evaluator, users, weighted):
    rows = np.concatenate([np.arange(INDPTR[user], INDPTR[user + 1]) for user in users])
    indptr = np.cumsum([0, *(INDPTR[users + 1] - INDPTR[users])])
    weights = ROW_WEIGHTS[rows] if weighted else None
    evaluator.update(LABELS[rows], SCORES[rows], indptr, sample_weight=weights, **about(users, weighted))


KINDS = {"lists": (make_lists, update_lists), "scores": (make_scores, update_scores)}


@pytest.mark.thorough(except_for="lists-True")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_updates_and_merges_in_any_order_are_one_call(kind, weighted):
    make, update = KINDS[kind]
    chance = random.Random(f"{kind} {weighted}")
    waiting, open_ = [np.array([user]) for user in range(N_USERS)], []
    chance.shuffle(waiting)
    while waiting or len(open_) > 1:
        do = chance.random()
        if waiting and (do < 0.5 or not open_):
            if not open_ or chance.random() < 0.3:
                open_.append(make(weighted))
            update(chance.choice(open_), waiting.pop(), weighted)
        elif len(open_) > 1 and (do < 0.8 or not waiting):
            one, other = chance.sample(open_, 2)
            open_.remove(other)
            one.merge(other)
        elif chance.random() < 0.1:
            at = chance.randrange(len(open_))
            open_[at] = type(open_[at]).from_bytes(open_[at].to_bytes(), n_threads=1)
    found = open_[0].result()
    order = found.user_ids
    whole = make(weighted)
    update(whole, order, weighted)  # users in the order of their first batches, which the per-user values follow
    assert sorted(order) == list(range(N_USERS))
    assert bits(found) == bits(whole.result())
    other = make(weighted)
    update(other, np.arange(N_USERS), weighted)
    assert found.to_json() == other.result().to_json(), "means do not depend on the order of users"

"""Real ratings and a real TREC run from the folder in FASTREC_TEST_DATA; without it these tests skip."""

import csv
import math
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import fastrec
from fastrec.metrics.calls import parse
from support import oracle
from support.trec import TREC, read_trec

sparse = pytest.importorskip("scipy.sparse")

FOLDER = os.environ.get("FASTREC_TEST_DATA")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="FASTREC_TEST_DATA names no folder with real data")
LENGTH = 50

METRICS = [
    "ndcg@10",
    "ndcg(gain=exp2)@10",
    "ndcg(ideal=list)",
    "dcg(discount=log2_flat2)@20",
    "recall@20",
    "recall(average=pooled)@20",
    "precision@5",
    "map@10",
    "map(denominator=n_rel)@50",
    "mrr",
    "arhr@10",
    "hit_rate@10",
    "f1@10",
    "f_beta(beta=2, average=means)@10",
    "r_precision",
    "rbp(p=0.9)@20",
    "err(max_gain=5)@10",
    "precision(min_gain=4)@10",
    "limited_auc@50",
    "mcc@10",
]


def read_ratings():
    """Return train and held-out ratings: the last fifth of each user's, by time. Users and items count from 0."""
    with open(Path(FOLDER) / "ml-latest-small" / "ratings.csv", encoding="utf-8", newline="") as file:
        rows = [
            (int(r["userId"]), int(r["movieId"]), float(r["rating"]), int(r["timestamp"])) for r in csv.DictReader(file)
        ]
    items = {item: code for code, item in enumerate(sorted({row[1] for row in rows}))}
    by_user = defaultdict(list)
    for user, item, rating, time in rows:
        by_user[user].append((time, items[item], rating))
    train, held = [], []
    for user in sorted(by_user):
        ordered = sorted(by_user[user])
        cut = len(ordered) - len(ordered) // 5
        train.append([(item, rating) for _, item, rating in ordered[:cut]])
        held.append([(item, rating) for _, item, rating in ordered[cut:]])
    return train, held, len(items)


def best_lists(scores, train):
    """Return the LENGTH best unseen items of each user and their scores; smaller ids come first on equal scores."""
    lists, values = [], []
    for given, seen in zip(scores, train, strict=True):
        row = given.copy()
        row[[item for item, _ in seen]] = -np.inf
        best = np.lexsort((np.arange(len(row)), -row))[:LENGTH]
        lists.append(best.tolist())
        values.append(row[best].tolist())
    return lists, values


@pytest.fixture(scope="module")
def logs():
    """Held-out truth and the lists of two recommenders: popularity, and item-to-item neighbours."""
    train, held, n_items = read_ratings()
    users = np.repeat(np.arange(len(train)), [len(row) for row in train])
    items = np.array([item for row in train for item, _ in row])
    seen = sparse.csr_array((np.ones(len(items)), (users, items)), shape=(len(train), n_items))
    counts = np.asarray(seen.sum(axis=0)).reshape(-1)
    norms = sparse.diags_array(1 / np.sqrt(np.maximum(counts, 1)))
    cosine = norms @ (seen.T @ seen) @ norms
    neighbours = best_lists((seen @ cosine).toarray(), train)
    popularity = best_lists(np.tile(counts, (len(train), 1)), train)
    return held, {"neighbours": neighbours, "popularity": popularity}, n_items


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["popularity", "neighbours"])
def test_real_ratings_against_the_oracle(logs, name):
    held, systems, n_items = logs
    lists, scores = systems[name]
    indptr = np.arange(len(lists) + 1) * LENGTH
    recs = (np.concatenate(lists), indptr, np.concatenate(scores))
    truth = [dict(row) for row in held]
    report = fastrec.evaluate(recs, truth, METRICS, n_items=n_items, ties="id_asc", per_user=True)
    for text in METRICS:
        call = parse(text)
        options = {key: value for key, value in call.options if value is not None}
        if call.min_gain is not None:
            options["min_gain"] = call.min_gain
        wanted = oracle.evaluate(
            lists, held, call.metric.name, k=call.k, options=options, n_items=n_items, scores=scores, ties="id_asc"
        )
        assert report[text] == pytest.approx(wanted.value, rel=1e-12, abs=1e-15), text
        assert report.std_error(text) == pytest.approx(wanted.std_error, rel=1e-9, abs=1e-12), text
        ours = [None if math.isnan(value) else value for value in report.per_user[text].tolist()]
        assert [value is None for value in ours] == [value is None for value in wanted.per_user], text
        found = [value for value in ours if value is not None]
        assert found == pytest.approx([v for v in wanted.per_user if v is not None], rel=1e-12, abs=1e-15), text


def test_neighbours_beat_popularity(logs):
    held, systems, _ = logs
    truth = [dict(row) for row in held]
    means = {name: fastrec.evaluate(lists, truth, "ndcg@10")["ndcg@10"] for name, (lists, _) in systems.items()}
    assert means["neighbours"] > means["popularity"] > 0.01


# A run and judgements of TREC, and the output of trec_eval for each topic


TREC |= {f"P_{k}": f"precision@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
for cutoff in (5, 10, 15, 20, 30, 100, 200, 500, 1000):
    TREC[f"relative_P_{cutoff}"] = f"precision(denominator=min_k_n_rel)@{cutoff}"
TREC |= {f"recall_{k}": f"recall@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
TREC |= {f"ndcg_cut_{k}": f"ndcg@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
TREC |= {f"map_cut_{k}": f"map(denominator=n_rel)@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
TREC |= {f"success_{k}": f"hit_rate@{k}" for k in (1, 5, 10)}


def test_trec_eval_prints_the_same_per_topic():
    run, judged, printed = read_trec()
    truth = {topic: judged[topic] for topic in run}
    report = fastrec.evaluate(dict(run), truth, list(TREC.values()), ties="id_desc", per_user=True)
    compared = 0
    for at, topic in enumerate(report.user_ids.tolist()):
        for measure, text in TREC.items():
            if measure in printed[topic]:
                assert report.per_user[text][at] == pytest.approx(float(printed[topic][measure]), abs=5.1e-5), measure
                compared += 1
    assert compared >= 3 * 90

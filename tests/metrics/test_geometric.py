"""Geometric means over users."""

import math

import pytest

import fastrec
from support import oracle
from support.list_calls import check_estimate, check_user_values, random_log, recs_of, truth_of

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

METRICS = {"map@10": {}, "ndcg@3": {}, "recall": {"denominator": "min_k_n_rel"}, "mrr": {}, "bpref": {}}


@pytest.mark.parametrize("kind", ["plain", "graded"])
@pytest.mark.parametrize("no_truth", ["skip", "zero"])
@pytest.mark.parametrize("no_recs", ["skip", "zero"])
def test_geometric_means_are_those_of_the_oracle(kind: str, no_truth: str, no_recs: str) -> None:
    log = random_log(kind, 300, seed=5)
    weights = [0.5 + (user % 7) for user in range(300)]
    texts = {}
    for text, options in METRICS.items():
        name, _, k = text.partition("@")
        inside = "".join(f"{key}={value}, " for key, value in options.items())
        texts[f"{name}({inside}mean=geometric)" + (f"@{k}" if k else "")] = name, options, int(k) if k else None
    for own in (None, weights):
        call = {"no_truth": no_truth, "no_recs": no_recs}
        found = fastrec.evaluate(recs_of(log), truth_of(log), list(texts), per_user=True, user_weight=own, **call)
        for text, (name, options, k) in texts.items():
            wanted = oracle.evaluate(
                log.recs, log.truth, name, k=k, options=options | {"mean": "geometric"}, weights=own, **call
            )
            check_estimate(found.estimates[text], wanted, text)
            check_user_values(found.per_user[text], wanted, text)


def test_parts_merge_to_the_same_bits() -> None:
    log = random_log("plain", 64, seed=2)
    truth = [dict(rows) for rows in log.truth]
    whole = fastrec.evaluate(log.recs, truth, "map(mean=geometric)@5")
    parts = [fastrec.Evaluator("map(mean=geometric)@5") for _ in range(2)]
    for at, part in enumerate(parts):
        part.update(log.recs[at * 32 : (at + 1) * 32], truth[at * 32 : (at + 1) * 32])
    merged = fastrec.Evaluator.from_bytes(parts[1].to_bytes()).merge(parts[0]).result()
    assert merged.to_dict() == whole.to_dict()
    assert merged["map(mean=geometric)@5"] == whole["map(mean=geometric)@5"] > 0


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("hits(mean=geometric)", "hits has values outside 0 to 1, so it has no geometric mean"),
        ("recall(average=pooled, mean=geometric)", "recall is no mean of users' values, so it has no geometric mean"),
        ("ndpm(mean=geometric)", "ndpm leaves out users by a rule of its own, so it has no geometric mean"),
        ("ordered_pair_accuracy(average=pooled, mean=geometric)", "accuracy is no mean of users' values"),
        ("map(mean=median)", "mean=median must be geometric"),
    ],
)
def test_metrics_without_a_geometric_mean(metric: str, why: str) -> None:
    with pytest.raises(fastrec.MetricError, match=why):
        fastrec.evaluate([[1]], [[1]], metric)


def test_trec_eval_has_them_under_its_names() -> None:
    recs, truth = {"a": ["x", "y"], "b": ["x"]}, {"a": {"y": 1, "x": 0}, "b": {"x": 1}}
    report = fastrec.evaluate(recs, truth, ["gm_map", "gm_bpref"], like="trec_eval")
    assert report["gm_map"] == pytest.approx(math.sqrt(0.5), rel=1e-15)
    assert report["gm_bpref"] == pytest.approx(math.sqrt(1e-5), rel=1e-15)


def test_ties_count_with_the_expected_value_of_each_user() -> None:
    recs, truth = [{1: 0.5, 2: 0.5}, {1: 1.0}], [[1], [1]]
    report = fastrec.evaluate(recs, truth, "mrr(mean=geometric)", ties="expected")
    assert report["mrr(mean=geometric)"] == pytest.approx(math.sqrt(0.75), rel=1e-15)

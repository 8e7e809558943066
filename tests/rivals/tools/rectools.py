"""Answers of RecTools, under our names, with its options as it writes them.

It takes two tables: recommendations with user, item and rank, and interactions with user and item. Ranks are positions
in the list. Interactions have no grades, so every row of the truth is relevant, even with grade 0; RecTools does not
read the weight column of its tables, which is there too. Only the size of the catalogue counts.
"""

import importlib.metadata
import json
import math
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import pandas as pd
import rectools.metrics
from rectools import Columns
from rectools.metrics import (
    MAP,
    MCC,
    MRR,
    NDCG,
    PAP,
    Accuracy,
    F1Beta,
    HitRate,
    PartialAUC,
    Precision,
    Recall,
    calc_metrics,
)

SKIPPED = {"rows": "RecTools evaluates lists, and has no metrics of labelled rows"}


def metrics_of(ks):
    """Return names and metrics."""
    found = {}
    for k in ks:
        found |= {
            f"precision@{k}": Precision(k=k),
            f"precision(r_precision=True)@{k}": Precision(k=k, r_precision=True),
            f"recall@{k}": Recall(k=k),
            f"f_beta@{k}": F1Beta(k=k),
            f"f_beta(beta=2)@{k}": F1Beta(k=k, beta=2),
            f"f_beta(beta=0.5)@{k}": F1Beta(k=k, beta=0.5),
            f"hit_rate@{k}": HitRate(k=k),
            f"accuracy@{k}": Accuracy(k=k),
            f"mcc@{k}": MCC(k=k),
            f"map@{k}": MAP(k=k),
            f"map(divide_by_k=True)@{k}": MAP(k=k, divide_by_k=True),
            f"ndcg@{k}": NDCG(k=k),
            f"ndcg(log_base=3)@{k}": NDCG(k=k, log_base=3),
            f"ndcg(divide_by_achievable=True)@{k}": NDCG(k=k, divide_by_achievable=True),
            f"mrr@{k}": MRR(k=k),
            f"partial_auc@{k}": PartialAUC(k=k),
            f"pap@{k}": PAP(k=k),
            f"partial_auc(insufficient_handling=exclude)@{k}": PartialAUC(k=k, insufficient_handling="exclude"),
            f"pap(insufficient_handling=exclude)@{k}": PAP(k=k, insufficient_handling="exclude"),
        }
    return found


def tables_of(case):
    """Return recommendations and interactions."""
    reco = [
        (int(user), item, rank, score)
        for user, rows in case["recs"].items()
        for rank, (item, score) in enumerate(rows, start=1)
    ]
    interactions = [
        (int(user), int(item), grade) for user, held in case["truth"].items() for item, grade in held.items()
    ]
    return (
        pd.DataFrame(reco, columns=[Columns.User, Columns.Item, Columns.Rank, Columns.Score]),
        pd.DataFrame(interactions, columns=[Columns.User, Columns.Item, Columns.Weight]),
    )


def ask(case, failures):
    """Return all metrics in one call or, if that fails, one by one."""
    reco, interactions = tables_of(case)
    metrics, catalog = metrics_of(case["ks"]), range(case["n_items"])
    values = {}
    try:
        values = calc_metrics(metrics, reco=reco, interactions=interactions, catalog=catalog)
    except Exception:  # noqa: BLE001 - which metric it was is asked next
        for name, metric in metrics.items():
            try:
                values |= calc_metrics({name: metric}, reco=reco, interactions=interactions, catalog=catalog)
            except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
                failures[f"{case['kind']}: {name}: {type(error).__name__}: {error}"] += 1
    return {name: float(value) if math.isfinite(value) else None for name, value in values.items()}


def main():
    """Answer the cases on standard input."""
    given, failures = json.load(sys.stdin), Counter()
    values = {case["name"]: ask(case, failures) for case in given["lists"]}
    answer = {
        "versions": {package: importlib.metadata.version(package) for package in ("rectools", "pandas", "numpy")},
        "values": values,
        "names": sorted(rectools.metrics.__all__),
        "skipped": SKIPPED | {what: f"in {count} cases" for what, count in sorted(failures.items())},
    }
    print(json.dumps(answer))


main()

"""Answers of RecBole: its `Collector`, with scores of all items as from its trainer, and its `Evaluator`.

RecBole evaluates a model, not lists: every user of the truth has a score for every item. So a list becomes the scores
of its items, above those of irrelevant fillers (as many as the largest cut-off), above all others; relevant items
outside the list are never reached. Items get numbers from 1 as in its data sets, in which a token becomes a number; 0
is padding, at minus infinity. Items with a grade above 0 are relevant.

Rows become candidates for the ranking metrics: each user's own rows, with all other items at minus infinity. By default
numbers are rounded to four places (`metric_decimal_place`); here to fifteen.
"""

import json
import math
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import recbole
import torch
from recbole.evaluator import Collector, Evaluator
from recbole.evaluator.register import metrics_dict

RANKING = ["Hit", "MRR", "MAP", "Recall", "NDCG", "Precision"]
OURS = {"hit": "hit_rate", "logloss": "log_loss"}
ABSENT = {
    "tied": "equal scores are in no defined order: torch.topk",
    "no_recs": "every user of the truth has scores",
    "judged_alone": "every user of the truth has scores",
    "duplicates": "a matrix of scores has each item once",
    "outside": "the users are those of the truth",
}
ROW_KS = (1, 3)


def evaluate(metrics, topk, collect):
    """Return the values of `Evaluator` for what `collect` gives to a `Collector`, under our names."""
    config = {
        "metrics": metrics,
        "topk": list(topk),
        "eval_args": {"mode": "full"},
        "device": "cpu",
        "metric_decimal_place": 15,
        "LABEL_FIELD": "label",
    }
    collector = Collector(config)
    collect(collector)
    try:
        found = Evaluator(config).evaluate(collector.get_data_struct())
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        if len(metrics) == 1:
            return dict.fromkeys(names_of(metrics[0], topk), f"{type(error).__name__}: {error}")
        parts = (evaluate([metric], topk, collect) for metric in metrics)
        return {name: value for part in parts for name, value in part.items()}
    values = {}
    for name, value in found.items():
        metric, at, k = name.partition("@")
        values[OURS.get(metric, metric) + at + k] = None if math.isnan(value) else float(value)
    return values


def names_of(metric, topk):
    """Return the names of the numbers of a metric of RecBole."""
    name = OURS.get(metric.lower(), metric.lower())
    return [f"{name}@{k}" for k in topk] if metric in RANKING else [name]


def evaluate_ranking(metrics, topk, scores, positives):
    """Collect scores with a row per user; `positives` are the relevant items as (row, item)."""
    users, items = (torch.tensor([pair[at] for pair in positives], dtype=torch.long) for at in (0, 1))
    return evaluate(metrics, topk, lambda collector: collector.eval_batch_collect(scores, None, users, items))


def ask_lists(case):
    """Return the top-k metrics, of users with a list."""
    width = max(case["ks"])
    known = {item for recs in case["recs"].values() for item, _ in recs}
    known |= {int(item) for held in case["truth"].values() for item in held}
    number = {item: at for at, item in enumerate(sorted(known), start=1)}
    lowest = min(0.0, *(score for recs in case["recs"].values() for _, score in recs))
    scores = torch.full((len(case["recs"]), 1 + len(known) + width), lowest - 2)
    scores[:, 0] = -torch.inf
    scores[:, 1 + len(known) :] = lowest - 1 + torch.arange(width) / -2.0 / width
    positives = []
    for row, (user, recs) in enumerate(case["recs"].items()):
        for item, score in recs:
            scores[row, number[item]] = score
        positives += [(row, number[int(item)]) for item, grade in case["truth"].get(user, {}).items() if grade > 0]
    return evaluate_ranking(RANKING, case["ks"], scores, positives)


def ask_rows(case):
    """Return GAUC and, without ties, the top-k metrics of each user's rows; the others of all rows."""
    labels, scores = case["labels"], case["scores"]
    values = {}
    if case["kind"] not in ("graded_rows", "negatives"):  # it leaves out users without truth
        matrix, positives = candidates(case)
        values.update(evaluate_ranking(["GAUC"], ROW_KS, matrix, positives))
        if case["kind"] not in ("tied_rows", "equal_scores"):
            values.update(evaluate_ranking(RANKING, ROW_KS, matrix, positives))
    metrics = ["MAE", "RMSE"] + ([] if case["kind"] == "graded_rows" else ["AUC", "LogLoss"])
    predictions = torch.tensor(scores).unsqueeze(-1)
    truth = torch.tensor(labels, dtype=torch.float32).unsqueeze(-1)
    values.update(evaluate(metrics, ROW_KS, lambda collector: collector.eval_collect(predictions, truth)))
    return values


def candidates(case):
    """Return scores of users and items (the nth row of a user is item n), and the relevant items."""
    users = {user: at for at, user in enumerate(dict.fromkeys(case["users"]))}
    counts = [0] * len(users)
    matrix = torch.full((len(users), 1 + len(case["users"])), -torch.inf)
    positives = []
    for user, label, score in zip(case["users"], case["labels"], case["scores"], strict=True):
        row = users[user]
        counts[row] += 1
        matrix[row, counts[row]] = score
        if label > 0:
            positives.append((row, counts[row]))
    return matrix[:, : max(max(counts) + 1, *ROW_KS)], positives


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"recbole": recbole.__version__, "torch": torch.__version__},
            "values": {
                **{case["name"]: ask_lists(case) for case in given["lists"] if case["kind"] not in ABSENT},
                **{case["name"]: ask_rows(case) for case in given["rows"]},
            },
            "skipped": {
                **ABSENT,
                "tied_rows": "equal scores are in no defined order, except in GAUC and over all rows",
                "gauc": "of lists: it takes the scores of all items",
                "weights": "metrics of rows take none",
            },
            "names": sorted(metrics_dict),
        }
    )
)

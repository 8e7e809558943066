"""Answers of LensKit, from `lenskit.metrics.RunAnalysis`: the means of its `list_summary`.

Lists and truth become its collections of item lists, with users and items unchanged and grades as the field "rating".
Metrics that fail run apart from the others, because one failure ends the whole run. Of scored rows it has the errors;
each row is its own item. The values of `global_metrics` are kept as "ndcg(global_metrics)@3", and of rows as
"rmse(global_metrics)".
"""

import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import lenskit
import structlog
from lenskit.data import ItemList, ItemListCollection
from lenskit.metrics import DCG, MAE, NDCG, RBP, RMSE, Hit, LogRankWeight, Precision, Recall, RecipRank, RunAnalysis
from lenskit.metrics.ranking import AveragePrecision

USUAL = LogRankWeight(offset=1)
GROUPS = (
    {
        "hit_rate": (Hit, {}),
        "precision": (Precision, {}),
        "recall": (Recall, {}),
        "mrr": (RecipRank, {}),
        "ndcg": (NDCG, {}),
        "ndcg(weight=LogRankWeight(offset=1))": (NDCG, {"weight": USUAL}),
        "dcg": (DCG, {}),
        "dcg(weight=LogRankWeight(offset=1))": (DCG, {"weight": USUAL}),
        "rbp": (RBP, {}),
        "rbp(patience=0.5)": (RBP, {"patience": 0.5}),
    },
    {"rbp(normalize=True)": (RBP, {"normalize": True})},
    {"map": (AveragePrecision, {})},
    {
        "ndcg(gain=rating)": (NDCG, {"gain": "rating"}),
        "ndcg(gain=rating, weight=LogRankWeight(offset=1))": (NDCG, {"gain": "rating", "weight": USUAL}),
    },
    {
        "dcg(gain=rating)": (DCG, {"gain": "rating"}),
        "dcg(gain=rating, weight=LogRankWeight(offset=1))": (DCG, {"gain": "rating", "weight": USUAL}),
    },
)
ALSO_GLOBAL = ("precision", "recall", "ndcg")


def collections(case):
    """Return the lists, and the truth."""
    recs = {
        int(user): ItemList(item_ids=[item for item, _ in pairs], scores=[score for _, score in pairs], ordered=True)
        for user, pairs in case["recs"].items()
    }
    truth = {
        int(user): ItemList(item_ids=[int(item) for item in held], rating=[float(grade) for grade in held.values()])
        for user, held in case["truth"].items()
    }
    return ItemListCollection.from_dict(recs, "user_id"), ItemListCollection.from_dict(truth, "user_id")


def ask_lists(case, group):
    """Return a group of metrics at every cut-off, and without one."""
    analysis = RunAnalysis()
    for k in (*case["ks"], None):
        for name, (metric, options) in group.items():
            analysis.add_metric(metric(k, **options), label=name + at(k))
    result = analysis.measure(*collections(case))
    values = dict(result.list_summary()["mean"])
    for name in ALSO_GLOBAL:
        for k in case["ks"] if name in group else ():
            values[f"{name}(global_metrics){at(k)}"] = result.global_metrics()[name + at(k)]
    return {name: number(value) for name, value in values.items()}


def at(k):
    """Return the cut-off at the end of a name."""
    return "" if k is None else f"@{k}"


def ask_rows(case):
    """Return errors of predictions."""
    predicted, truth = {}, {}
    for user in sorted(set(case["users"])):
        own = [row for row, of in enumerate(case["users"]) if of == user]
        predicted[user] = ItemList(item_ids=own, scores=[case["scores"][row] for row in own])
        truth[user] = ItemList(item_ids=own, rating=[float(case["labels"][row]) for row in own])
    analysis = RunAnalysis()
    analysis.add_metric(RMSE(), label="rmse")
    analysis.add_metric(MAE(), label="mae")
    result = analysis.measure(
        ItemListCollection.from_dict(predicted, "user_id"), ItemListCollection.from_dict(truth, "user_id")
    )
    values = dict(result.list_summary()["mean"])
    values.update({f"{name}(global_metrics)": result.global_metrics()[name] for name in ("rmse", "mae")})
    return {name: number(value) for name, value in values.items()}


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    warnings.simplefilter("ignore")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    given = json.load(sys.stdin)
    values, errors = {}, Counter()
    for case in given["lists"]:
        found = values.setdefault(case["name"], {})
        for group in GROUPS:
            try:
                found.update(ask_lists(case, group))
            except (ValueError, ZeroDivisionError, KeyError, TypeError, IndexError) as error:
                errors[case["kind"], f"{next(iter(group))}: {type(error).__name__}: {error}"] += 1
    values.update({case["name"]: ask_rows(case) for case in given["rows"]})
    skipped = {}
    for (kind, text), count in errors.items():
        skipped[kind] = "; ".join([*filter(None, [skipped.get(kind)]), f"{text} in {count} cases"])
    names = sorted({*lenskit.metrics.__all__, "AveragePrecision"})
    answer = {"versions": {"lenskit": lenskit.__version__}, "values": values, "skipped": skipped, "names": names}
    print(json.dumps(answer))


main()

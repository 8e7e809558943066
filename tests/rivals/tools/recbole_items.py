"""Answers of RecBole for its metrics of items, from its `Evaluator`, for lists that all have the largest cut-off.

Its lists are a matrix of items, and its number of items counts the padding id 0: n_items + 1 here. By default numbers
are rounded to four places (`metric_decimal_place`); here to fifteen.
"""

import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import recbole
import torch
from recbole.evaluator import Evaluator
from recbole.evaluator.collector import DataStruct
from recbole.evaluator.register import metrics_dict

OURS = {
    "itemcoverage": "item_coverage",
    "averagepopularity": "popularity",
    "giniindex": "gini",
    "shannonentropy": "shannonentropy",
    "tailpercentage": "tailpercentage",
}
NOT_FULL = ("unequal", "single")


def ask(case):
    """Return every metric at every cut-off."""
    config = {
        "metrics": ["ItemCoverage", "AveragePopularity", "GiniIndex", "ShannonEntropy", "TailPercentage"],
        "topk": case["ks"],
        "metric_decimal_place": 15,
        "tail_ratio": 0.1,
    }
    data = DataStruct()
    data.set("rec.items", torch.tensor([[item for item, _ in pairs] for pairs in case["recs"].values()]))
    data.set("data.num_items", case["n_items"] + 1)
    data.set("data.count_items", Counter(item for items in case["history"].values() for item in items))
    found = Evaluator(config).evaluate(data)
    return {OURS[name.partition("@")[0]] + "@" + name.partition("@")[2]: float(value) for name, value in found.items()}


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"recbole": recbole.__version__, "torch": torch.__version__},
            "values": {case["name"]: ask(case) for case in given["items"] if case["kind"] not in NOT_FULL},
            "skipped": dict.fromkeys(NOT_FULL, "its lists are a matrix, all equally long"),
            "names": sorted(metrics_dict),
        }
    )
)

"""Answers of WarpRec for its metrics of items, from its classes, for lists that all have the largest cut-off.

Its metrics read a row of scores per user of the truth and a count of users per item: the items of a list come first, in
their order, and those of the user's history are at minus infinity. Values are float32.
"""

import importlib.metadata
import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import torch
from warprec.evaluation.metrics import bias, coverage, debiased, diversity, novelty
from warprec.evaluation.propensity import build_propensity
from warprec.utils.registry import metric_registry

NAMES = {
    "Gini": "gini",
    "ShannonEntropy": "shannon_entropy",
    "ItemCoverage": "item_coverage",
    "ARP": "popularity",
    "APLT": "aplt",
    "ACLT": "aclt",
    "EPC": "epc",
    "EFD": "efd",
    "PopRSP": "rsp",
    "PopREO": "reo",
    "SRecall": "srecall",
    "IPSRecall": "ips_recall",
    "SNIPSRecall": "snips_recall",
    "IPSDCG": "ips_dcg",
    "SNIPSDCG": "snips_dcg",
}
CLASSES = {name: one for module in (bias, coverage, debiased, diversity, novelty) for name, one in vars(module).items()}
ABSENT = {
    "unequal": "its lists are the first k of all items",
    "single": "its lists are the first k of all items",
    "repeated": "its training data are a matrix of users and items",
    "cold": "every user is in its training data",
    "seen_again": "it never recommends items of the history",
}


def scores_of(case, users):
    """Return scores of all items, and which are relevant."""
    preds = torch.full((len(users), case["n_items"]), -1.0)
    ground = torch.zeros_like(preds)
    for row, user in enumerate(users):
        preds[row, [item - 1 for item in case["history"][user]]] = -torch.inf
        for item, score in case["recs"][user]:
            preds[row, item - 1] = score
        ground[row, [int(item) - 1 for item in case["truth"][user]]] = 1.0
    return preds, ground


def options_of(case):
    """Return what its evaluator gives to every metric."""
    counts = Counter(item for items in case["history"].values() for item in items)
    labels = [[float(x in row["category"]) for x in "abcd"] for row in case["items"].values()]
    interactions = torch.tensor([float(counts[item]) for item in range(1, case["n_items"] + 1)])
    return {
        "num_users": len(case["history"]),
        "num_items": case["n_items"],
        "item_interactions": interactions,
        "propensity": build_propensity(interactions.numpy()),
        "feature_lookup": torch.tensor(labels),
    }


def head_of(case):
    """Return the items of its short head: where counts are equal, the order of a sort decides."""
    return sorted((bias.PopRSP(k=1, **options_of(case)).short_head + 1).tolist())


def ask(case):
    """Return every metric at every cut-off."""
    users = [user for user in case["recs"] if user in case["truth"]]
    preds, ground = scores_of(case, users)
    options, values = options_of(case), {}
    for k in case["ks"]:
        top = torch.topk(preds, k, dim=1).indices
        blocks = {
            "ground": ground,
            "binary_relevance": ground,
            "valid_users": (ground > 0).any(dim=1).float(),
            f"top_{k}_indices": top,
            f"top_{k}_binary_relevance": torch.gather(ground, 1, top),
        }
        for name, ours in NAMES.items():
            metric = CLASSES[name](k=k, **options)
            metric.update(preds, user_indices=torch.arange(len(users)), **blocks)
            found = metric.compute()[name]
            value = float(found[~torch.isnan(found)].mean() if isinstance(found, torch.Tensor) else found)
            values[f"{ours}@{k}"] = None if value != value else value  # noqa: PLR0124 - NaN
    return values


given = json.load(sys.stdin)
asked = [case for case in given["items"] if case["kind"] not in ABSENT]
print(
    json.dumps(
        {
            "versions": {name: importlib.metadata.version(name) for name in ("warprec", "torch")},
            "values": {case["name"]: ask(case) for case in asked},
            "heads": {case["name"]: head_of(case) for case in asked},
            "skipped": ABSENT,
            "names": sorted(metric_registry.list_registered()),
        }
    )
)

"""Answers of LensKit for its metrics of exposure and popularity, from `RunAnalysis`, and of its functions of lists.

The history becomes its data set, with repeated rows; its catalogue has n_items items. Rank-biased overlap and entropy
of categories are functions of one list there; their means over users are kept.
"""

import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import lenskit
import numpy as np
import pandas as pd
import structlog
from lenskit.data import DatasetBuilder, ItemList, ItemListCollection
from lenskit.metrics import LogRankWeight, RunAnalysis
from lenskit.metrics.ranking import ExposureGini, ListGini, MeanPopRank, entropy, rank_biased_entropy
from lenskit.metrics.reranking import rank_biased_overlap


def lists_of(pairs):
    """Return an ordered list of items."""
    return ItemList(item_ids=[item for item, _ in pairs], scores=[score for _, score in pairs], ordered=True)


def dataset_of(case):
    """Return the history as a data set."""
    rows = [(int(user), item) for user, items in case["history"].items() for item in items]
    builder = DatasetBuilder()
    frame = pd.DataFrame(rows, columns=["user_id", "item_id"])
    builder.add_entities("item", list(range(1, case["n_items"] + 1)))
    builder.add_interactions(
        "event",
        frame.assign(number=range(len(frame))),
        entities=["user", "item"],
        missing="insert",
        allow_repeats=True,
        default=True,
    )
    return builder.build()


def ask(case):
    """Return every metric at every cut-off."""
    data, labels = dataset_of(case), "abcd"
    matrix = np.array([[float(x in row["category"]) for x in labels] for row in case["items"].values()])
    matrix /= matrix.sum(axis=1, keepdims=True)
    recs = {int(user): lists_of(pairs) for user, pairs in case["recs"].items()}
    analysis = RunAnalysis()
    for k in case["ks"]:
        n_items = case["n_items"]
        analysis.add_metric(ListGini(k, items=n_items), label=f"gini@{k}")
        analysis.add_metric(ExposureGini(k, items=n_items), label=f"exposure_gini@{k}")
        logs = ExposureGini(k, items=n_items, weight=LogRankWeight())
        analysis.add_metric(logs, label=f"exposure_gini(weight=LogRankWeight())@{k}")
        for count in ("users", "interactions"):
            option = "" if count == "users" else "(count=interactions)"
            analysis.add_metric(MeanPopRank(data, n=k, count=count), label=f"popularity{option}@{k}")
    empty = {user: ItemList(item_ids=[], rating=[]) for user in recs}
    result = analysis.measure(
        ItemListCollection.from_dict(recs, "user_id"), ItemListCollection.from_dict(empty, "user_id")
    )
    values = dict(result.list_summary()["mean"]) | dict(result.global_metrics())
    others = {int(user): lists_of(pairs) for user, pairs in case["reference"].items()}
    for k in case["ks"]:
        pairs = [(others[user][:k], own[:k]) for user, own in recs.items()]
        values[f"rbo@{k}"] = np.mean([rank_biased_overlap(*pair, n=k) for pair in pairs])
        rows = [(own, matrix[own.ids() - 1]) for own in recs.values()]
        values[f"category_entropy@{k}"] = np.mean([entropy(*row, n=k) for row in rows])
        values[f"rank_biased_entropy@{k}"] = np.mean([rank_biased_entropy(*row, n=k) for row in rows])
    return {name: None if value != value else float(value) for name, value in values.items()}  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    warnings.simplefilter("ignore")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    given, values, errors = json.load(sys.stdin), {}, Counter()
    for case in given["items"]:
        try:
            values[case["name"]] = ask(case)
        except (ValueError, ZeroDivisionError, KeyError, TypeError, IndexError) as error:
            errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    names = sorted({*lenskit.metrics.__all__, *lenskit.metrics.ranking.__all__, *lenskit.metrics.reranking.__all__})
    versions = {"lenskit": lenskit.__version__}
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

"""Answers of recommenders for its metrics of diversity, novelty, serendipity and coverage, from its pandas functions.

They have no cut-off, so the lists are cut first. Lists with items of the user's history raise there. The vectors are
its features of items; "intra_list_diversity(item_sim_measure=item_cooccurrence_count)" is its default without them.
"""

import importlib.metadata
import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import numpy as np
import pandas as pd
from recommenders.evaluation import python_evaluation as evaluation

COLUMNS = {"col_user": "userID", "col_item": "itemID"}


def ask(case, k):
    """Return every metric of the lists cut at k."""
    rows = [
        (int(user), item, float(str(item) in case["truth"].get(user, {})))
        for user, own in case["recs"].items()
        for item, _ in own[:k]
    ]
    recs = pd.DataFrame(rows, columns=["userID", "itemID", "relevance"])
    pairs = recs[["userID", "itemID"]]
    past = [(int(user), item) for user, items in case["history"].items() for item in items]
    train = pd.DataFrame(past, columns=["userID", "itemID"])
    vectors = [(int(item), np.array(row["features"], dtype=float)) for item, row in case["items"].items()]
    features = pd.DataFrame(vectors, columns=["itemID", "features"])
    by_features = {"item_feature_df": features, "item_sim_measure": "item_feature_vector", **COLUMNS}
    relevant = {"col_relevance": "relevance"}
    return {
        "shannon_entropy": evaluation.distributional_coverage(train, pairs, **COLUMNS),
        "catalog_coverage": evaluation.catalog_coverage(train, pairs, **COLUMNS),
        "novelty": evaluation.novelty(train, pairs, **COLUMNS),
        "intra_list_diversity": evaluation.diversity(train, pairs, **by_features) if k > 1 else np.nan,
        "serendipity": evaluation.serendipity(train, recs, **by_features, **relevant),
    }


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    warnings.simplefilter("ignore")
    given, values, errors = json.load(sys.stdin), {}, Counter()
    for case in given["items"]:
        try:
            values[case["name"]] = {
                f"{name}@{k}": number(value) for k in case["ks"] for name, value in ask(case, k).items()
            }
        except Exception as error:  # noqa: BLE001 - it raises no narrower one
            errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    versions = {name: importlib.metadata.version(name) for name in ("recommenders", "pandas", "numpy")}
    own = (name for name, one in vars(evaluation).items() if getattr(one, "__module__", "") == evaluation.__name__)
    names = sorted(name for name in own if name.islower() and not name.startswith("_"))
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

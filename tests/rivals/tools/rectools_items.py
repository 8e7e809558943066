"""Answers of RecTools for its metrics of items and histories, under our names, with its options as it writes them.

Tables are as in `rectools.py`, with the history as previous interactions and all items as the catalogue. Hamming
distances are those of the vectors; the labels of items are not asked.
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
    AvgRecPopularity,
    CatalogCoverage,
    CoveredUsers,
    Intersection,
    IntraListDiversity,
    MeanInvUserFreq,
    PairwiseHammingDistanceCalculator,
    Serendipity,
    SufficientReco,
    calc_metrics,
)


def metrics_of(ks, distances):
    """Return names and metrics."""
    found = {}
    for k in ks:
        found |= {
            f"popularity@{k}": AvgRecPopularity(k=k),
            f"popularity(normalize=True)@{k}": AvgRecPopularity(k=k, normalize=True),
            f"novelty@{k}": MeanInvUserFreq(k=k),
            f"item_coverage@{k}": CatalogCoverage(k=k),
            f"item_coverage(normalize=True)@{k}": CatalogCoverage(k=k, normalize=True),
            f"serendipity@{k}": Serendipity(k=k),
            f"intra_list_diversity@{k}": IntraListDiversity(k=k, distance_calculator=distances),
            f"overlap@{k}": Intersection(k=k),
            f"user_coverage@{k}": CoveredUsers(k=k),
            f"sufficient_reco@{k}": SufficientReco(k=k),
        }
    return found


def table_of(lists):
    """Return recommendations."""
    rows = [(int(user), *pair) for user, pairs in lists.items() for pair in numbered(pairs)]
    return pd.DataFrame(rows, columns=[Columns.User, Columns.Item, Columns.Rank])


def numbered(pairs):
    """Return items with ranks."""
    return [(item, rank) for rank, (item, _) in enumerate(pairs, start=1)]


def pairs_of(held):
    """Return interactions."""
    return pd.DataFrame(
        [(int(user), int(item)) for user, items in held.items() for item in items],
        columns=[Columns.User, Columns.Item],
    )


def ask(case):
    """Return all metrics."""
    features = pd.DataFrame.from_dict({int(item): row["features"] for item, row in case["items"].items()}, "index")
    values = calc_metrics(
        metrics_of(case["ks"], PairwiseHammingDistanceCalculator(features)),
        reco=table_of(case["recs"]),
        interactions=pairs_of(case["truth"]),
        prev_interactions=pairs_of(case["history"]),
        catalog=range(case["n_items"]),
        ref_reco={"reference": table_of(case["reference"])},
    )
    named = {name.removesuffix("_reference"): value for name, value in values.items()}
    return {name: float(value) if math.isfinite(value) else None for name, value in named.items()}


def main():
    """Answer the cases on standard input."""
    given, failures, values = json.load(sys.stdin), Counter(), {}
    for case in given["items"]:
        try:
            values[case["name"]] = ask(case)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
            failures[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in failures.items()}
    versions = {package: importlib.metadata.version(package) for package in ("rectools", "pandas", "numpy")}
    names = sorted(rectools.metrics.__all__)
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

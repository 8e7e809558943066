"""Answers of Evidently for its metrics of ranking data, from its `Report`: one for all metrics and cut-offs of a case.

Lists are rows with their rank as the prediction, relevance as the target and the vector of the item in columns. The
history is its additional data.
"""

import importlib.metadata
import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import evidently.metrics
import pandas as pd
from evidently import DataDefinition, Dataset, Recsys, Report
from evidently.metrics import Diversity, Novelty, Personalization, PopularityBiasMetric, Serendipity

COLUMNS = ["x", "y", "z"]
DEFINITION = DataDefinition(ranking=[Recsys(recommendations_type="rank")], numerical_columns=COLUMNS)


def metrics_of(ks):
    """Return names and metrics."""
    found = {}
    for k in ks:
        found |= {
            f"popularity@{k}": PopularityBiasMetric(k=k),
            f"popularity(normalize_arp=True)@{k}": PopularityBiasMetric(k=k, normalize_arp=True),
            f"item_coverage@{k}": PopularityBiasMetric(k=k, metric="coverage"),
            f"gini@{k}": PopularityBiasMetric(k=k, metric="gini"),
            f"novelty@{k}": Novelty(k=k),
            f"diversity@{k}": Diversity(k=k, item_features=COLUMNS),
            f"serendipity@{k}": Serendipity(k=k, item_features=COLUMNS),
            f"personalization@{k}": Personalization(k=k),
        }
    return found


def data_of(case):
    """Return the lists and the history."""
    rows = [
        (int(user), item, rank, int(str(item) in case["truth"].get(user, {})), *case["items"][str(item)]["features"])
        for user, own in case["recs"].items()
        for rank, (item, _) in enumerate(own, start=1)
    ]
    past = [
        (int(user), item, *case["items"][str(item)]["features"])
        for user, items in case["history"].items()
        for item in items
    ]
    lists = pd.DataFrame(rows, columns=["user_id", "item_id", "prediction", "target", *COLUMNS])
    return (
        Dataset.from_pandas(lists, data_definition=DEFINITION),
        Dataset.from_pandas(pd.DataFrame(past, columns=["user_id", "item_id", *COLUMNS])),
    )


def ask(case):
    """Return all metrics."""
    metrics = metrics_of(case["ks"])
    lists, history = data_of(case)
    snapshot = Report(list(metrics.values())).run(lists, additional_data={"current_train_data": history})
    found = [own["value"] for own in snapshot.dict()["metrics"]]
    named = dict(zip(metrics, found, strict=True))
    return {name: None if value != value else float(value) for name, value in named.items()}  # noqa: PLR0124 - NaN


def main():
    """Answer the cases on standard input."""
    warnings.simplefilter("ignore")
    given, values, errors = json.load(sys.stdin), {}, Counter()
    for case in given["items"]:
        try:
            values[case["name"]] = ask(case)
        except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
            errors[case["kind"], f"{type(error).__name__}: {str(error)[:200]}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    versions = {name: importlib.metadata.version(name) for name in ("evidently", "pandas", "numpy")}
    names = sorted(name for name, one in vars(evidently.metrics).items() if "recsys" in getattr(one, "__module__", ""))
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

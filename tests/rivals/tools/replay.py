"""Answers of RePlay, from the classes of `replay.metrics`.

Lists and truth become pandas rows with unchanged users and items. The metrics read no grades, so every row of the truth
is relevant. Polars input is asked too, as "ndcg(input=polars)@3", and dicts of lists, as "ndcg(input=dict)@3": only
dicts can hold an empty list, and they leave items of one score in their order. Its RocAuc orders only the pairs within
the first k.
"""

import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import importlib.metadata

import pandas as pd
import polars as pl
from replay import metrics

NAMES = {
    "hit_rate": metrics.HitRate,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
    "map": metrics.MAP,
    "mrr": metrics.MRR,
    "ndcg": metrics.NDCG,
    "roc_auc": metrics.RocAuc,
}


def rows(case):
    """Return columns of the lists and columns of the truth."""
    recs = [(int(user), item, score) for user, pairs in case["recs"].items() for item, score in pairs]
    truth = [
        (int(user), int(item), float(grade)) for user, held in case["truth"].items() for item, grade in held.items()
    ]
    return tuple(
        dict(zip(("query_id", "item_id", "rating"), map(list, zip(*found, strict=True)), strict=True))
        for found in (recs, truth)
    )


def dicts(case):
    """Return lists of (item, score), and lists of items."""
    recs = {int(user): [(item, score) for item, score in pairs] for user, pairs in case["recs"].items()}
    return recs, {int(user): [int(item) for item in held] for user, held in case["truth"].items()}


def ask(case):
    """Return every metric at every cut-off, for each kind of input."""
    recs, truth = rows(case)
    inputs = {
        "": (pd.DataFrame(recs), pd.DataFrame(truth)),
        "(input=polars)": (pl.DataFrame(recs), pl.DataFrame(truth)),
        "(input=dict)": dicts(case),
    }
    values = {}
    for option, given in inputs.items():
        for name, metric in NAMES.items():
            for text, value in metric(case["ks"])(*given).items():
                values[f"{name}{option}@{text.partition('@')[2]}"] = number(value)
    return values


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    warnings.simplefilter("ignore", metrics.base_metric.MetricDuplicatesWarning)
    given = json.load(sys.stdin)
    values, errors = {}, Counter()
    for case in given["lists"]:
        try:
            values[case["name"]] = ask(case)
        except (ValueError, ZeroDivisionError, TypeError, pl.exceptions.PolarsError) as error:
            errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    skipped["rows"] = "it takes no scored rows"
    versions = {name: importlib.metadata.version(name) for name in ("replay-rec", "pandas", "polars")}
    names = sorted(name for name, one in vars(metrics).items() if isinstance(one, type))
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

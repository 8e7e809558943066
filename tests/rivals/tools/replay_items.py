"""Answers of RePlay for its metrics of items and histories: pandas, polars as "(input=polars)" and dicts.

The history is its train. CategoricalDiversity reads one category in each row of the lists, so items of several
categories are not asked. Novelty is asked as it is, 1 - the share of items that the user has already.
"""

import importlib.metadata
import json
import sys
import warnings
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import pandas as pd
import polars as pl
from replay import metrics

COLUMNS = ("query_id", "item_id", "rating")


def ask(case):
    """Return every metric at every cut-off, for each kind of input."""
    values = {}
    recs, base = ({int(user): list(map(tuple, own)) for user, own in case[x].items()} for x in ("recs", "reference"))
    train = {int(user): items for user, items in case["history"].items()}
    for option, make in {"": pd.DataFrame, "(input=polars)": pl.DataFrame, "(input=dict)": None}.items():
        lists, others = (table(x, make) if make else x for x in (recs, base))
        past = table({user: [(item, 1.0) for item in own] for user, own in train.items()}, make) if make else train
        found = {
            "item_coverage": metrics.Coverage(case["ks"])(lists, past),
            "novelty": metrics.Surprisal(case["ks"])(lists, past),
            "unexpectedness": metrics.Unexpectedness(case["ks"])(lists, others),
            "share_of_new": metrics.Novelty(case["ks"])(lists, past),
        }
        if case["kind"] != "categories":
            found["category_coverage"] = metrics.CategoricalDiversity(case["ks"])(categorised(case, recs, make))
        for name, own in found.items():
            for text, value in own.items():
                values[f"{name}{option}@{text.partition('@')[2]}"] = number(value)
    return values


def table(lists, make):
    """Return rows."""
    rows = [(user, *pair) for user, own in lists.items() for pair in own]
    return make(dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True)))


def categorised(case, recs, make):
    """Return lists with the category of each item, as a dict or a table."""
    lists = {
        user: [("abcd".index(case["items"][str(item)]["category"][0]), score) for item, score in own]
        for user, own in recs.items()
    }
    if make is None:
        return lists
    rows = [(user, *pair) for user, own in lists.items() for pair in own]
    return make(dict(zip(("query_id", "category_id", "rating"), map(list, zip(*rows, strict=True)), strict=True)))


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    warnings.simplefilter("ignore", metrics.base_metric.MetricDuplicatesWarning)
    given, values, errors = json.load(sys.stdin), {}, Counter()
    for case in given["items"]:
        try:
            values[case["name"]] = ask(case)
        except (ValueError, ZeroDivisionError, TypeError, pl.exceptions.PolarsError) as error:
            errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    versions = {name: importlib.metadata.version(name) for name in ("replay-rec", "pandas", "polars")}
    names = sorted(name for name, one in vars(metrics).items() if isinstance(one, type))
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

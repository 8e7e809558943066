"""Answers of recmetrics, from its functions, which take lists of lists: each list cut at k, and k as the length.

Popularities are the numbers of users who have an item in the history. The vectors of the items are a frame.
"""

import importlib.metadata
import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import pandas as pd
import recmetrics


def ask(case, k):
    """Return every metric at a cut-off, or why it raises."""
    lists = [[item for item, _ in pairs[:k]] for pairs in case["recs"].values()]
    users = dict(Counter(item for items in case["history"].values() for item in set(items)))
    features = pd.DataFrame.from_dict({int(item): row["features"] for item, row in case["items"].items()}, "index")
    catalogue = list(range(case["n_items"]))
    return {
        "novelty": lambda: recmetrics.novelty(lists, users, len(case["history"]), k)[0],
        "personalization": lambda: recmetrics.personalization(lists),
        "intra_list_similarity": lambda: recmetrics.intra_list_similarity(lists, features),
        "prediction_coverage": lambda: recmetrics.prediction_coverage(lists, catalogue),
    }


def main():
    """Answer the cases on standard input."""
    given, values, failures = json.load(sys.stdin), {}, Counter()
    for case in given["items"]:
        found = values.setdefault(case["name"], {})
        for k in case["ks"]:
            for name, function in ask(case, k).items():
                try:
                    value = float(function())
                    found[f"{name}@{k}"] = None if value != value else value  # noqa: PLR0124 - NaN
                except (ValueError, KeyError, ZeroDivisionError) as error:
                    failures[f"{case['kind']}: {name}: {type(error).__name__}"] += 1
    own = vars(recmetrics.metrics).items()
    names = sorted(
        name for name, one in own if getattr(one, "__module__", "") == "recmetrics.metrics" and name[0] != "_"
    )
    answer = {
        "versions": {name: importlib.metadata.version(name) for name in ("recmetrics", "numpy", "scikit-learn")},
        "values": values,
        "skipped": {what: f"in {count} cases" for what, count in sorted(failures.items())},
        "names": names,
    }
    print(json.dumps(answer))


main()

"""Answers of rexmex, from its functions of lists of lists: each list cut at k, and k as the number of items.

Popularities are the numbers of users who have an item in the history. Row i of the matrix of vectors is item i.
"""

import importlib.metadata
import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import numpy as np
from rexmex.metrics import coverage, ranking


def ask(case, k):
    """Return every metric at a cut-off."""
    lists = [[item for item, _ in pairs[:k]] for pairs in case["recs"].values()]
    users = Counter(item for items in case["history"].values() for item in set(items))
    features = np.array([[0.0] * 3, *(case["items"][str(item)]["features"] for item in range(1, case["n_items"] + 1))])
    possible = [list(map(int, case["truth"])), list(range(1, case["n_items"] + 1))]
    pairs = [(int(user), item) for user, own in case["recs"].items() for item, _ in own[:k]]
    return {
        "novelty": lambda: ranking.novelty(lists, dict(users), len(case["history"]), k),
        "personalization": lambda: ranking.personalization(lists),
        "intra_list_similarity": lambda: ranking.intra_list_similarity(lists, features),
        "item_coverage": lambda: coverage.item_coverage(possible, pairs),
        "user_coverage": lambda: coverage.user_coverage(possible, pairs),
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
                except (ValueError, KeyError, IndexError, ZeroDivisionError) as error:
                    failures[f"{case['kind']}: {name}: {type(error).__name__}"] += 1
    modules = (coverage, ranking)
    names = sorted(
        name
        for module in modules
        for name, one in vars(module).items()
        if getattr(one, "__module__", "") == module.__name__ and not name.startswith("_")
    )
    answer = {
        "versions": {name: importlib.metadata.version(name) for name in ("rexmex", "numpy", "scikit-learn")},
        "values": values,
        "skipped": {what: f"in {count} cases" for what, count in sorted(failures.items())},
        "names": names,
    }
    print(json.dumps(answer))


main()

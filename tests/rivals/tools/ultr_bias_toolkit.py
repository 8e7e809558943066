"""Answers of ultr-bias-toolkit: its intervention harvesting by pivot and by adjacent ranks."""

import importlib.metadata
import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import pandas as pd
from ultr_bias_toolkit.bias.intervention_harvesting import AdjacentChainEstimator, PivotEstimator

METHODS = {"pivot": PivotEstimator, "adjacent": AdjacentChainEstimator}
PACKAGES = ("ultr-bias-toolkit", "pandas", "numpy")


def main():
    """Answer the cases on standard input."""
    given, values, failures = json.load(sys.stdin), {}, Counter()
    for case in given["positions"]:
        found = values.setdefault(case["name"], {})
        frame = pd.DataFrame(case["rows"], columns=["click", "position", "query_id", "doc_id"])
        for name, estimator in METHODS.items():
            try:
                curve = estimator()(frame)
            except IndexError as error:
                failures[f"{case['kind']}: {name}: {type(error).__name__}"] += 1
                continue
            for rank, number in zip(curve["position"].tolist(), curve["examination"].tolist(), strict=True):
                found[f"{name}@{rank}"] = number if abs(number) < float("inf") else None
    answer = {
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "values": values,
        "skipped": {what: f"in {count} cases" for what, count in sorted(failures.items())},
        "names": sorted(METHODS),
    }
    print(json.dumps(answer))


main()

"""Answers of recommenders, from the pandas functions of `recommenders.evaluation.python_evaluation`.

Lists and truth become its two frames of rows, with integers unchanged and grades as ratings; an empty list has no row.
`map(k=...)` and `map_at_k` are two functions there, kept as "map(k=3)" and "map@3".
"""

import json
import sys
from collections import Counter

sys.path.pop(0)  # this folder, with files named like the tools

import importlib.metadata

import pandas as pd
from recommenders.evaluation import python_evaluation as evaluation

AT_K = {
    "precision": evaluation.precision_at_k,
    "recall": evaluation.recall_at_k,
    "r_precision": evaluation.r_precision_at_k,
    "map": evaluation.map_at_k,
}
OF_ROWS = {"rmse": evaluation.rmse, "mae": evaluation.mae}
OF_BINARY_ROWS = {"auc": evaluation.auc, "log_loss": evaluation.logloss}


def frames_of_lists(case):
    """Return the rows of the truth and those of the lists."""
    truth = [
        (int(user), int(item), float(grade)) for user, held in case["truth"].items() for item, grade in held.items()
    ]
    recs = [(int(user), item, score) for user, pairs in case["recs"].items() for item, score in pairs]
    return (
        pd.DataFrame(truth, columns=["userID", "itemID", "rating"]),
        pd.DataFrame(recs, columns=["userID", "itemID", "prediction"]),
    )


def ask_lists(case):
    """Return every metric at every cut-off."""
    truth, recs = frames_of_lists(case)
    values = {}
    for k in case["ks"]:
        for name, function in AT_K.items():
            values[f"{name}@{k}"] = function(truth, recs, k=k)
        values[f"map(k={k})"] = evaluation.map(truth, recs, k=k)
        values[f"ndcg@{k}"] = evaluation.ndcg_at_k(truth, recs, k=k)
        for score_type in ("raw", "exp"):
            values[f"ndcg(score_type={score_type})@{k}"] = evaluation.ndcg_at_k(truth, recs, k=k, score_type=score_type)
    return values


def ask_rows(case):
    """Return errors and, if there are exactly two classes, metrics of classes; each row is its own item."""
    items = range(len(case["users"]))
    truth = pd.DataFrame({"userID": case["users"], "itemID": items, "rating": case["labels"]})
    predicted = pd.DataFrame({"userID": case["users"], "itemID": items, "prediction": case["scores"]})
    functions = OF_ROWS if case["kind"] == "graded_rows" else OF_ROWS | OF_BINARY_ROWS
    return {name: function(truth, predicted) for name, function in functions.items()}


def number(value):
    """Return a value for JSON: NaN is null."""
    return None if value != value else float(value)  # noqa: PLR0124 - NaN


def main():
    """Ask for every case."""
    given = json.load(sys.stdin)
    values, errors = {}, Counter()
    for ask, cases in ((ask_lists, given["lists"]), (ask_rows, given["rows"])):
        for case in cases:
            try:
                values[case["name"]] = {name: number(value) for name, value in ask(case).items()}
            except (ValueError, ZeroDivisionError, KeyError, TypeError) as error:
                errors[case["kind"], f"{type(error).__name__}: {error}"] += 1
    skipped = {kind: f"{text} in {count} cases" for (kind, text), count in errors.items()}
    versions = {name: importlib.metadata.version(name) for name in ("recommenders", "pandas", "scikit-learn")}
    own = (name for name, one in vars(evaluation).items() if getattr(one, "__module__", "") == evaluation.__name__)
    names = sorted(name for name in own if name.islower() and not name.startswith("_"))
    print(json.dumps({"versions": versions, "values": values, "skipped": skipped, "names": names}))


main()

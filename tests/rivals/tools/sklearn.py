"""Answers of scikit-learn. `ndcg_score` and `dcg_score` get lists as rows of scores of all items."""

import json
import math
import sys
from functools import partial
from pathlib import Path

sys.path.pop(0)  # this folder, with files named like the tools
sys.path.append(str(Path(__file__).resolve().parent.parent))

import sklearn
from cases import ROW_EDGES as EDGES
from sklearn import metrics

OF_ROWS = tuple(f"sklearn.metrics.{name}" for name in ("_classification", "_ranking", "_regression"))


def both_classes(labels):
    return 0 < sum(labels) < len(labels)


def questions(case):
    """Return {metric: function of it} over all rows, those of rankings as the mean over users."""
    labels, scores, weights = case["labels"], case["scores"], case["weights"]
    classes = [score >= 0.5 for score in scores]
    is_edge = case["kind"] in EDGES
    asked = {}
    if case["kind"] not in ("graded_rows", "low_labels", "targets"):
        if both_classes(labels) or is_edge:
            asked["auc"] = lambda: metrics.roc_auc_score(labels, scores)
            asked["auc(max_fpr=0.5)"] = lambda: metrics.roc_auc_score(labels, scores, max_fpr=0.5)
            asked["balanced_accuracy(threshold=0.5)"] = lambda: metrics.balanced_accuracy_score(labels, classes)
            asked["weighted auc"] = lambda: metrics.roc_auc_score(labels, scores, sample_weight=weights)
        asked["average_precision"] = lambda: metrics.average_precision_score(labels, scores)
        asked["weighted average_precision"] = lambda: metrics.average_precision_score(
            labels, scores, sample_weight=weights
        )
        asked["log_loss"] = lambda: metrics.log_loss(labels, scores, labels=[0, 1])
        asked["brier"] = lambda: metrics.brier_score_loss(labels, scores)
        for name, function in (
            ("precision", metrics.precision_score),
            ("recall", metrics.recall_score),
            ("f1", metrics.f1_score),
        ):
            asked[f"{name}(threshold=0.5)"] = partial(function, labels, classes, zero_division=0)
        asked["accuracy(threshold=0.5)"] = lambda: metrics.accuracy_score(labels, classes)
        asked["mcc(threshold=0.5)"] = lambda: metrics.matthews_corrcoef(labels, classes)
        asked["cohen_kappa(threshold=0.5)"] = lambda: metrics.cohen_kappa_score(labels, classes)
        asked["hamming(threshold=0.5)"] = lambda: metrics.hamming_loss(labels, classes)
    asked["mae"] = lambda: metrics.mean_absolute_error(labels, scores)
    asked["mse"] = lambda: metrics.mean_squared_error(labels, scores)
    asked["rmse"] = lambda: metrics.root_mean_squared_error(labels, scores)
    asked["mape"] = lambda: metrics.mean_absolute_percentage_error(labels, scores)
    if len(set(labels)) > 1 or is_edge:
        asked["r2"] = lambda: metrics.r2_score(labels, scores)
    return asked | rankings(case)


def rankings(case):
    """Return `ndcg_score` and `dcg_score` user by user, because they need as many rows for each user."""
    users = sorted(set(case["users"]))
    rows = [[at for at, user in enumerate(case["users"]) if user == own] for own in users]
    if any(len(own) < 2 for own in rows) and case["kind"] not in EDGES:
        return {}

    def mean(function, k):
        found = [
            function([[case["labels"][at] for at in own]], [[case["scores"][at] for at in own]], k=k) for own in rows
        ]
        return sum(found) / len(found)

    return {
        name + ("" if k is None else f"@{k}"): partial(mean, function, k)
        for k in (1, 3, None)
        for name, function in (("ndcg", metrics.ndcg_score), ("dcg", metrics.dcg_score))
    }


def answer(case):
    """Return the number of each metric; None is NaN, and a string is an error. Only edges have either."""
    found = {}
    for name, question in questions(case).items():
        try:
            value = float(question())
        except ValueError as error:
            if case["kind"] not in EDGES:
                raise
            found[name] = f"ValueError: {error}"
        else:
            found[name] = value if math.isfinite(value) else None
    return found


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"scikit-learn": sklearn.__version__},
            "values": {case["name"]: answer(case) for case in given["rows"]},
            "names": sorted(
                name for name in metrics.__all__ if getattr(getattr(metrics, name), "__module__", "") in OF_ROWS
            ),
            "skipped": {"lists": "scikit-learn ranks scored rows, and has no lists"},
        }
    )
)

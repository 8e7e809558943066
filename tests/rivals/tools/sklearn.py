"""Answers of scikit-learn. `ndcg_score` and `dcg_score` get lists as rows of scores of all items."""

import json
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import sklearn
from sklearn import metrics

OF_ROWS = tuple(f"sklearn.metrics.{name}" for name in ("_classification", "_ranking", "_regression"))


def both_classes(labels):
    return 0 < sum(labels) < len(labels)


def ask_rows(case):
    """Return metrics over all rows, those of rankings as the mean over users."""
    labels, scores, weights = case["labels"], case["scores"], case["weights"]
    values = {}
    if case["kind"] != "graded_rows":
        if both_classes(labels):
            values["auc"] = metrics.roc_auc_score(labels, scores)
            values["auc(max_fpr=0.5)"] = metrics.roc_auc_score(labels, scores, max_fpr=0.5)
            values["balanced_accuracy(threshold=0.5)"] = metrics.balanced_accuracy_score(
                labels, [score >= 0.5 for score in scores]
            )
            values["weighted auc"] = metrics.roc_auc_score(labels, scores, sample_weight=weights)
        values["average_precision"] = metrics.average_precision_score(labels, scores)
        values["weighted average_precision"] = metrics.average_precision_score(labels, scores, sample_weight=weights)
        values["log_loss"] = metrics.log_loss(labels, scores, labels=[0, 1])
        values["brier"] = metrics.brier_score_loss(labels, scores)
        classes = [score >= 0.5 for score in scores]
        for name, function in (
            ("precision", metrics.precision_score),
            ("recall", metrics.recall_score),
            ("f1", metrics.f1_score),
        ):
            values[f"{name}(threshold=0.5)"] = function(labels, classes, zero_division=0)
        values["accuracy(threshold=0.5)"] = metrics.accuracy_score(labels, classes)
        values["mcc(threshold=0.5)"] = metrics.matthews_corrcoef(labels, classes)
        values["cohen_kappa(threshold=0.5)"] = metrics.cohen_kappa_score(labels, classes)
        values["hamming(threshold=0.5)"] = metrics.hamming_loss(labels, classes)
    values["mae"] = metrics.mean_absolute_error(labels, scores)
    values["mse"] = metrics.mean_squared_error(labels, scores)
    values["rmse"] = metrics.root_mean_squared_error(labels, scores)
    values["mape"] = metrics.mean_absolute_percentage_error(labels, scores)
    if len(set(labels)) > 1:
        values["r2"] = metrics.r2_score(labels, scores)
    values.update(rankings(case))
    return values


def rankings(case):
    """Return `ndcg_score` and `dcg_score` user by user, because they need as many rows for each user."""
    values = {}
    users = sorted(set(case["users"]))
    rows = [[at for at, user in enumerate(case["users"]) if user == own] for own in users]
    if any(len(own) < 2 for own in rows):
        return values
    for k in (1, 3, None):
        at = "" if k is None else f"@{k}"
        for name, function in (("ndcg", metrics.ndcg_score), ("dcg", metrics.dcg_score)):
            found = [
                function([[case["labels"][at] for at in own]], [[case["scores"][at] for at in own]], k=k)
                for own in rows
            ]
            values[name + at] = float(sum(found) / len(found))
    return values


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"scikit-learn": sklearn.__version__},
            "values": {
                case["name"]: {name: float(value) for name, value in ask_rows(case).items()} for case in given["rows"]
            },
            "names": sorted(
                name for name in metrics.__all__ if getattr(getattr(metrics, name), "__module__", "") in OF_ROWS
            ),
            "skipped": {"lists": "scikit-learn ranks scored rows, and has no lists"},
        }
    )
)

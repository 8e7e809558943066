"""Answers of TorchMetrics: its retrieval metrics over lists and rows, its classification and regression over rows.

A retrieval metric takes flat tensors `preds`, `target`, `indexes` and knows only scored rows. So a list becomes its
rows, with the grade in the truth as target or 0: relevant items outside the list vanish, and so do users without rows.
Only nDCG takes grades; the others reject them, so targets are `grade > 0`. Users are `indexes`, which are 64-bit
integers; items are not passed at all. Values are computed in float32, as always there.

The effect of ties is defined for nDCG and for the area under the ROC curve. The other metrics take the first rows of
`topk` or `argsort` in any order, which differs between processors, so they are not asked.
"""

import json
import math
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import torch
import torchmetrics
from torchmetrics import classification, regression, retrieval

CUT = {
    "precision": retrieval.RetrievalPrecision,
    "recall": retrieval.RetrievalRecall,
    "hit_rate": retrieval.RetrievalHitRate,
    "mrr": retrieval.RetrievalMRR,
    "map": retrieval.RetrievalMAP,
    "ndcg": retrieval.RetrievalNormalizedDCG,
    "fallout": retrieval.RetrievalFallOut,
    "gauc": retrieval.RetrievalAUROC,
}
UNCUT = {**CUT, "r_precision": retrieval.RetrievalRPrecision}
DEFINED_FOR_TIES = ("ndcg", "gauc")  # of CUT and UNCUT, the second only without a cut-off
VARIANTS = [  # of all; options of one metric follow
    {},
    {"empty_target_action": "skip"},
    {"empty_target_action": "pos"},
    {"empty_target_action": "neg"},
]
VARIANTS_OF = {"precision": [{"adaptive_k": True}], "gauc": [{"max_fpr": 0.5}]}
DEFAULT_ACTION = {"fallout": "pos"}  # the others have neg

BINARY = {
    "auc": classification.BinaryAUROC,
    "auc(max_fpr=0.5)": lambda: classification.BinaryAUROC(max_fpr=0.5),
    "average_precision": classification.BinaryAveragePrecision,
    "ece": classification.BinaryCalibrationError,
    "ece(n_bins=5)": lambda: classification.BinaryCalibrationError(n_bins=5),
    "ece(norm=l2)": lambda: classification.BinaryCalibrationError(norm="l2"),
    "ece(norm=max)": lambda: classification.BinaryCalibrationError(norm="max"),
    "eer": classification.BinaryEER,
    "log_auc": classification.BinaryLogAUC,
    "recall_at_fixed_precision(min_precision=0.5)": lambda: classification.BinaryRecallAtFixedPrecision(0.5),
    "precision_at_fixed_recall(min_recall=0.5)": lambda: classification.BinaryPrecisionAtFixedRecall(0.5),
    "sensitivity_at_specificity(min_specificity=0.5)": lambda: classification.BinarySensitivityAtSpecificity(0.5),
    "specificity_at_sensitivity(min_sensitivity=0.5)": lambda: classification.BinarySpecificityAtSensitivity(0.5),
    "cohen_kappa(threshold=0.5)": classification.BinaryCohenKappa,
    "hamming(threshold=0.5)": classification.BinaryHammingDistance,
    "accuracy(threshold=0.5)": classification.BinaryAccuracy,
    "precision(threshold=0.5)": classification.BinaryPrecision,
    "recall(threshold=0.5)": classification.BinaryRecall,
    "specificity(threshold=0.5)": classification.BinarySpecificity,
    "f1(threshold=0.5)": classification.BinaryF1Score,
    "f_beta(beta=2.0, threshold=0.5)": lambda: classification.BinaryFBetaScore(beta=2.0),
    "mcc(threshold=0.5)": classification.BinaryMatthewsCorrCoef,
    "precision(threshold=0.99)": lambda: classification.BinaryPrecision(threshold=0.99),
}
ERRORS = {
    "mae": regression.MeanAbsoluteError,
    "mse": regression.MeanSquaredError,
    "rmse": lambda: regression.MeanSquaredError(squared=False),
    "mape": regression.MeanAbsolutePercentageError,
    "r2": regression.R2Score,
}


def named(name, options, k=None):
    """Return the name of a kept value: `name(option=value)@k`."""
    text = ", ".join(f"{option}={value}" for option, value in options.items())
    return name + (f"({text})" if text else "") + ("" if k is None else f"@{k}")


def ask_retrieval(preds, target, indexes, ks, *, tied):
    """Return every retrieval metric, without a cut-off and at each one, with each option that changes values."""
    preds, target, indexes = torch.tensor(preds), torch.tensor(target), torch.tensor(indexes)
    binary, values = (target > 0).long(), {}
    for k in (None, *ks):
        for name, metric in (UNCUT if k is None else CUT).items():
            if tied and (name not in DEFINED_FOR_TIES or (name == "gauc" and k is not None)):
                continue
            for options in [*VARIANTS, *VARIANTS_OF.get(name, [])]:
                if options.get("empty_target_action") == DEFAULT_ACTION.get(name, "neg"):
                    continue
                if k is None and "adaptive_k" in options:
                    continue  # without a cut-off it changes nothing
                call = metric(**options) if k is None else metric(top_k=k, **options)
                own = target if name == "ndcg" else binary
                values[named(name, options, k)] = answer(lambda call=call, own=own: call(preds, own, indexes=indexes))
    return values


def ask_lists(case):
    """Return metrics of lists, as their rows."""
    rows = [
        (score, case["truth"].get(user, {}).get(str(item), 0), int(user))
        for user, recs in case["recs"].items()
        for item, score in recs
    ]
    preds, target, indexes = zip(*rows, strict=True)
    return ask_retrieval(preds, target, indexes, case["ks"], tied=case["kind"] == "tied")


def answer(question):
    """Return a value, without the threshold that may come with it; None is NaN, and a string is an error."""
    try:
        found = question()
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    value = (found[0] if isinstance(found, tuple) else found).item()
    return value if math.isfinite(value) else None


def ask_rows(case):
    """Return metrics over all rows, and retrieval metrics with users as queries."""
    labels, scores = case["labels"], case["scores"]
    values = ask_retrieval(scores, labels, case["users"], (1, 3), tied=case["kind"] == "tied_rows")
    preds, target = torch.tensor(scores), torch.tensor(labels)
    if case["kind"] != "graded_rows":
        values.update({name: answer(lambda metric=metric: metric()(preds, target)) for name, metric in BINARY.items()})
    several = len(set(labels)) > 1  # R2Score is infinite, or fails, for equal targets
    errors = {name: metric for name, metric in ERRORS.items() if several or name != "r2"}
    for name, metric in errors.items():
        values[name] = answer(lambda metric=metric: metric()(preds, target.float()))
    return values


given = json.load(sys.stdin)
print(
    json.dumps(
        {
            "versions": {"torchmetrics": torchmetrics.__version__, "torch": torch.__version__},
            "values": {
                **{case["name"]: ask_lists(case) for case in given["lists"]},
                **{case["name"]: ask_rows(case) for case in given["rows"]},
            },
            "names": sorted({*retrieval.__all__, *classification.__all__, *regression.__all__}),
            "skipped": {
                "tied": "equal scores are in no defined order, except in nDCG and the uncut area under the ROC curve",
                "tied_rows": "equal scores are in no defined order, except in nDCG, in the uncut area under the ROC "
                "curve, and over all rows",
                "log_loss": "not in TorchMetrics",
                "weights": "metrics of rows take none",
            },
        }
    )
)

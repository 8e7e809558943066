"""What each tool can do, and what it rests on: `field_features.py TOOL DISTRIBUTION`, in the environment of the tool.

A claim is a name of the tool's public interface, `module:attribute`, with `(argument)` if it rests on an argument. The
script imports the module, looks the names up, and prints the version and the claims as JSON. Claims of `DOCUMENTED`
need packages that the environment lacks: Spark, torch. It imports nothing of this project.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import sys
from typing import Any

FEATURES = {  # name in the table of claims -> words for the head of a column
    "users": "values per user",
    "spread": "error or interval",
    "tests": "tests of differences",
    "ties": "rule for ties",
    "empty": "rule for empty users",
    "parts": "batches, merged",
    "files": "files",
    "spark": "Spark",
    "rows": "AUC of rows",
    "gauc": "AUC per user",
    "catalogue": "catalogue, novelty",
    "diversity": "diversity",
    "policy": "counterfactual",
    "model": "runs a model",
}
RECOMMENDERS, RETRIEVAL = "recommenders.evaluation.python_evaluation", "torchmetrics.retrieval"
CLAIMS = {
    "fastrec": {
        "users": "fastrec:evaluate(per_user)",
        "spread": "fastrec:Report.interval",
        "tests": "fastrec:compare(test)",
        "ties": "fastrec:evaluate(ties)",
        "empty": "fastrec:evaluate(no_truth)",
        "parts": "fastrec:Evaluator.merge",
        "files": "fastrec:evaluate_files",
        "spark": "fastrec.spark:evaluate",
        "rows": "fastrec:evaluate_scores",
        "gauc": "fastrec:gauc",
        "catalogue": "fastrec:evaluate(items)",
        "diversity": "fastrec:evaluate(no_features)",
        "policy": "fastrec:policy_value",
        "model": "fastrec:evaluate_model",
    },
    "ranx": {
        "users": "ranx:evaluate(return_mean)",
        "spread": "ranx:evaluate(return_std)",
        "tests": "ranx:compare(stat_test)",
        "empty": "ranx:evaluate(make_comparable)",
        "files": "ranx:Run.from_parquet",
    },
    "pytrec-eval-terrier": {
        "users": "pytrec_eval:RelevanceEvaluator.evaluate",
        "files": "pytrec_eval:parse_run",
    },
    "ir-measures": {
        "users": "ir_measures:iter_calc",
        "files": "ir_measures:read_trec_run",
    },
    "rectools": {
        "users": "rectools.metrics:NDCG.calc_per_user",
        "catalogue": "rectools.metrics:CatalogCoverage",
        "diversity": "rectools.metrics:IntraListDiversity",
        "model": "rectools.model_selection:cross_validate",
    },
    "recommenders": {
        "rows": f"{RECOMMENDERS}:auc",
        "catalogue": f"{RECOMMENDERS}:catalog_coverage",
        "diversity": f"{RECOMMENDERS}:diversity",
    },
    "replay-rec": {
        "users": "replay.metrics:PerUser",
        "spread": "replay.metrics:ConfidenceInterval",
        "catalogue": "replay.metrics:Coverage",
        "diversity": "replay.metrics:CategoricalDiversity",
    },
    "recbole": {
        "parts": "recbole.evaluator.collector:Collector.eval_batch_collect",
        "rows": "recbole.evaluator.metrics:AUC",
        "gauc": "recbole.evaluator.metrics:GAUC",
        "catalogue": "recbole.evaluator.metrics:ItemCoverage",
        "model": "recbole.trainer:Trainer.evaluate",
    },
    "torchmetrics": {
        "users": f"{RETRIEVAL}:RetrievalPrecision(aggregation)",
        "spread": "torchmetrics.wrappers:BootStrapper",
        "empty": f"{RETRIEVAL}:RetrievalPrecision(empty_target_action)",
        "parts": "torchmetrics:Metric.merge_state",
        "rows": "torchmetrics.classification:BinaryAUROC",
        "gauc": f"{RETRIEVAL}:RetrievalAUROC",
    },
    "scikit-learn": {
        "ties": "sklearn.metrics:ndcg_score(ignore_ties)",
        "rows": "sklearn.metrics:roc_auc_score",
    },
}
DOCUMENTED = {
    "recommenders": {"spark": "recommenders.evaluation.spark_evaluation:SparkRankingEvaluation"},
    "replay-rec": {
        "parts": "replay.metrics.torch_metrics_builder:TorchMetricsBuilder",
        "spark": "replay.metrics:Metric.__call__(recommendations)",
    },
}


def check(claim: str) -> None:
    """Raise an error unless the installed packages have the name, and it takes the argument."""
    path, _, argument = claim.removesuffix(")").partition("(")
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if argument and argument not in inspect.signature(found).parameters:
        raise TypeError(f"{path} takes no {argument}")


def main() -> None:
    """Print the claims of a tool, all of them checked."""
    tool, distribution = sys.argv[1:3]
    for claim in CLAIMS[tool].values():
        check(claim)
    print("\n" + json.dumps({"version": importlib.metadata.version(distribution), "checked": CLAIMS[tool]}))


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, with files named like packages
    main()

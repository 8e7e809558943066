"""Evaluation of Spark data frames on their cluster."""

from fastrec.clusters.spark import SparkReport
from fastrec.clusters.spark_lists import evaluate, evaluate_files
from fastrec.clusters.spark_logs import ctr_by_rank, policy_value, position_bias
from fastrec.clusters.spark_rows import bounded_auc, evaluate_scores

__all__ = [
    "SparkReport",
    "bounded_auc",
    "ctr_by_rank",
    "evaluate",
    "evaluate_files",
    "evaluate_scores",
    "policy_value",
    "position_bias",
]

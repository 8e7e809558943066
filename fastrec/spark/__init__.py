"""Evaluation of Spark data frames on their cluster."""

from fastrec.spark.evaluation import SparkReport, bounded_auc, evaluate, evaluate_scores
from fastrec.spark.files import evaluate_files
from fastrec.spark.policy import policy_value
from fastrec.spark.positions import ctr_by_rank, position_bias

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

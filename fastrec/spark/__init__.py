"""Evaluation of Spark data frames on their cluster."""

from fastrec.spark.evaluation import SparkReport, bounded_auc, evaluate, evaluate_scores
from fastrec.spark.policy import policy_value

__all__ = ["SparkReport", "bounded_auc", "evaluate", "evaluate_scores", "policy_value"]

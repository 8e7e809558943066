"""Evaluation of Spark data frames on their cluster."""

from fastrec.spark.evaluation import SparkReport, bounded_auc, evaluate, evaluate_scores

__all__ = ["SparkReport", "bounded_auc", "evaluate", "evaluate_scores"]

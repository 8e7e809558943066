"""Evaluation of users that lie on a cluster: Spark data frames, evaluated where they are."""

from fastrec.spark.job import SparkReport, bounded_auc, evaluate, evaluate_scores

__all__ = ["SparkReport", "bounded_auc", "evaluate", "evaluate_scores"]

"""Evaluation of Ray datasets on their cluster: tasks of Ray pack users, and other tasks evaluate them."""

from fastrec.clusters.ray import evaluate

__all__ = ["evaluate"]

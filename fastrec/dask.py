"""Evaluation of Dask data frames on their cluster: Dask moves packets of users, and tasks evaluate them."""

from fastrec.clusters.dask import evaluate

__all__ = ["evaluate"]

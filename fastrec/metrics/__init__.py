"""Every metric, one file per family, each declared once."""

from fastrec.metrics import exposure, items, lists, ratings, rows, thresholds, weighted

__all__ = ["exposure", "items", "lists", "ratings", "rows", "thresholds", "weighted"]

"""Every metric, one file per family, each declared once."""

from fastrec.metrics import exposure, items, lists, ratings, rows, weighted

__all__ = ["exposure", "items", "lists", "ratings", "rows", "weighted"]

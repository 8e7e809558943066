"""Every metric, one file per family, each declared once."""

from fastrec.metrics import exposure, items, judged, lists, ranks, ratings, rows, thresholds, weighted

__all__ = ["exposure", "items", "judged", "lists", "ranks", "ratings", "rows", "thresholds", "weighted"]

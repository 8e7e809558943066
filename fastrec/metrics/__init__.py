"""Every metric, one file per family, each declared once."""

from fastrec.metrics import lists, ratings, rows

__all__ = ["lists", "ratings", "rows"]

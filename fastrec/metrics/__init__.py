"""Every metric, one file per family, each declared once."""

from fastrec.metrics import errors, ranking, scores

__all__ = ["errors", "ranking", "scores"]

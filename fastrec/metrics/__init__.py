"""Every metric, one file per family, each declared once."""

from fastrec.metrics import (
    exposure,
    graded,
    items,
    judged,
    lists,
    ranks,
    ratings,
    rows,
    subtopics,
    thresholds,
    user_models,
    weighted,
)

__all__ = [
    "exposure",
    "graded",
    "items",
    "judged",
    "lists",
    "ranks",
    "ratings",
    "rows",
    "subtopics",
    "thresholds",
    "user_models",
    "weighted",
]

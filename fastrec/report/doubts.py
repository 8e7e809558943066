"""Warnings about the data of an evaluation, drawn from its counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["NOTES", "NO_TRUTH", "doubts"]


NOTES = (
    ("no_truth", "without a relevant item", ("no_truth", "one_class")),
    ("no_recs", "without a list", ("no_recs",)),
    ("no_negatives", "without a negative row", ("one_class",)),
    ("constant_scores", "with equal scores only", ()),
    ("no_rows", "without rows", ()),
)
NO_TRUTH = "the truth has no rows: there is nothing to compare the lists with"
NO_ROWS = "the input has no rows: there is nothing to evaluate"


def doubts(data: Mapping[str, Any]) -> list[str]:
    """Return a warning if the counts of the data suggest that the numbers mean nothing."""
    if data.get("truth_rows") == 0:
        return [NO_TRUTH]
    if data.get("rows") == 0:
        return [NO_ROWS]
    # Without a shared user no item is shared either: name only the cause.
    if data.get("truth_users_with_recs") == 0:
        return ["no user with truth has a list: do the user ids match?"]
    if data.get("truth_items_in_recs") == 0:
        return ["no truth item is in its user's list: do the ids match?"]
    return []

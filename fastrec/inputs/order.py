"""What may have been meant to order lists: a second look at columns that nobody named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

__all__ = ["are_disordered", "hint_of_order", "hint_of_sides", "likely_orders"]

Array = np.ndarray[Any, Any]
# what tools and people call such columns, without regard to case and signs between words
RANKS = frozenset(("rank", "ranks", "ranking", "position"))
SCORES = frozenset(
    (
        "score",
        "scores",
        "pred",
        "preds",
        "prediction",
        "predictions",
        "predicted",
        "predictedscore",
        "predictedrating",
        "rating",
        "relevance",
        "est",
        "similarity",
    )
)


def likely_orders(found: Iterable[Any], used: Collection[Any]) -> Iterator[tuple[str, str]]:
    """Columns that are called like ranks or scores, and are not used as something else: (role, name)."""
    for name in found:
        spelled = "".join(filter(str.isalnum, str(name).lower()))
        if name not in used and spelled in RANKS | SCORES:
            yield "rank" if spelled in RANKS else "score", name


def are_disordered(role: str, values: Array, indptr: Array) -> bool:
    """Whether ranks fall, or scores rise, from one row of a user to the next; the rows of users stand end to end."""
    if len(values) < 2:
        return False
    wrong = values[1:] < values[:-1] if role == "rank" else values[1:] > values[:-1]
    ends = indptr[(indptr > 0) & (indptr < len(values))] - 1  # between users nothing is wrong
    wrong[ends] = False
    return bool(wrong.any())


def hint_of_order(role: str, name: str) -> str:
    """What to say where such a column tells another order than the rows."""
    return (
        "no column of recs is called 'rank' or 'score': lists are in the order of their rows, which is not that of the "
        f"column {name!r}; name it as the {role} if it is what orders them"
    )


def hint_of_sides(recs: Collection[Any], truth: Collection[Any]) -> list[str]:
    """What to say where the lists have gains, and what is held out has ranks or scores."""
    orders = [name for name in ("rank", "score") if name in truth]
    if "gain" not in recs or "gain" in truth or not orders or {"rank", "score"} & {*recs}:
        return []
    return [f"recs have a column 'gain', and truth has a column {orders[0]!r}: have the two been swapped?"]

"""The sides of an evaluation of lists: what a call passes as rows of users and items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["SIDES", "SideKind", "spoken"]


class SideKind(NamedTuple):
    """A side: the name of its argument, and what the numbers beside its items are."""

    name: str
    numbers: str  # in messages, of the third array of a tuple, or the values of a dict {user: {item: number}}
    has_users: bool = False  # whether its users are evaluated; rows of other users on other sides are left out
    is_ordered: bool = False  # by ranks or scores, best item first


SIDES = {
    side.name: side
    for side in (
        SideKind("recs", "scores", has_users=True, is_ordered=True),
        SideKind("truth", "gains", has_users=True),
        SideKind("exclude", "scores"),
        SideKind("history", "scores"),
        SideKind("reference", "scores", is_ordered=True),
    )
}


def spoken(names: Iterable[str]) -> str:
    """Return names in a sentence: "recs, truth and history"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last

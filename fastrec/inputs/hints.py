"""Hints about unused columns that may be meant to grade the truth or to hold users."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import MinGain
from fastrec.exceptions import Argument, Text
from fastrec.inputs.arrays import FlatSide

Array = np.ndarray[Any, Any]
# usual names of columns, regardless of case and of characters between words
USERS = frozenset(("user", "users", "userid", "uid", "customer", "customerid", "member", "memberid", "visitorid"))
GAINS = frozenset(
    ("gain", "gains", "rating", "ratings", "stars", "score", "scores", "relevance", "rel", "grade", "grades")
)
# of columns that mark the relevant rows of a log of impressions
MARKS = frozenset(("label", "labels", "relevant", "click", "clicks", "clicked"))


def are_gapless(ranks: Array, lengths: Array) -> bool:
    """Return True if minimum and maximum show that the distinct ranks of all lists run from 1, or from 0."""
    lowest = int(ranks.min(initial=1))
    return lowest in (0, 1) and int(ranks.max(initial=0)) - lowest < int(lengths.min(initial=len(ranks)))


def users_with_gaps(ranks: Array, indptr: Array) -> Array:
    """Return the positions of users with distinct ranks that do not run from 1, or from 0, without a gap."""
    having = np.flatnonzero(np.diff(indptr))
    first, last = (limit.reduceat(ranks, indptr[having]).astype(np.int64) for limit in (np.minimum, np.maximum))
    gapless = ((first == 0) | (first == 1)) & (last - first < np.diff(indptr)[having])
    return np.asarray(having[~gapless])


def around_gap(ranks: list[int]) -> str:
    """Return the ranks around the first gap of a list as a string."""
    gaps = (at for at in range(1, len(ranks)) if ranks[at] - ranks[at - 1] > 1)
    first = next(gaps, 1) - 1 if ranks[0] in (0, 1) else 0
    before, after = ["..."] * (first > 0), ["..."] * (len(ranks) > first + 3)
    return ", ".join([*before, *map(str, ranks[first : first + 3]), *after])


def numbers_of_lists(recs: FlatSide, truth: FlatSide, min_gain: MinGain | None) -> dict[str, Callable[[], Array]]:
    """Return the numbers that a tool may not take: see `fastrec.metrics.recipe.Recipe.warnings`."""
    lengths, known = np.diff(recs.indptr), np.diff(truth.indptr)
    least = min_gain if isinstance(min_gain, float) else 0.0

    def tied_lengths() -> Array:
        users, scores = np.repeat(np.arange(len(lengths)), lengths), np.asarray(recs.extra)
        order = np.lexsort((scores, users))
        same = (np.diff(users) == 0) & (scores[order[1:]] == scores[order[:-1]])
        return np.asarray(lengths[users[1:][same]])

    def relevant() -> Array:
        largest = np.maximum.reduceat(truth.gains, truth.indptr[:-1][known > 0])[lengths[known > 0] > 0]
        return np.where(largest >= least, largest, 0.0)

    numbers = {"gains": lambda: truth.gains, "judged": lambda: known[lengths > 0], "relevant": relevant}
    if recs.extra is not None:
        numbers |= {"scores": lambda: np.asarray(recs.extra), "ties": tied_lengths}
    return numbers | ({} if min_gain is None else {"level": relevant})


def hints_of_ties(tool: str, items: Array) -> Iterator[str]:
    """Yield a hint if a tool orders tied items as strings, and these integers are in another order as numbers."""
    if tool and len(items) and len(str(items.min())) < len(str(items.max())):
        found = (
            f"some scores are equal, and {tool} orders their items as strings; these are integers, ordered as numbers"
        )
        yield f"{found}: pass strings (in files: JSON lines, Parquet or TREC)"


def plain_name(name: Any) -> str:
    """Return the name of a column in lower case, without the characters between words."""
    return "".join(filter(str.isalnum, str(name).lower()))


class LeftOpen(NamedTuple):
    """Questions that the columns in use leave open."""

    order: bool  # no column orders the lists, so they keep row order
    gain: bool  # no column has gains, though some metric uses them
    sides: bool  # no argument names gains, so the two sides may be swapped


def hints_of_columns(
    recs: Collection[Any],
    truth: Collection[Any],
    used: Collection[Any],
    left: LeftOpen,
    has_gains: Callable[[str], bool],
) -> Iterator[str]:
    """Yield hints about columns that no argument names.

    `has_gains` tells whether a column of the truth holds numbers or booleans, not all 1. It is called for likely
    columns only, because reading values takes time.
    """
    swapped = _hint_of_sides(recs, truth) if left.order and left.sides else []
    yield from swapped
    if left.gain and not swapped:
        likely = (name for name in truth if name not in used and plain_name(name) in GAINS | MARKS and has_gains(name))
        if (name := next(likely, None)) is not None:
            found = f"truth has an unused column {name!r}: all gains are 1, each row is relevant; pass "
            gain, least = Argument("gain", (name,)), Argument("min_gain", (...,))
            doubt = "; or are the two swapped?" if left.order and name == "score" else ""
            aims = " to use it as the gain, and ", " as the least gain of a relevant item"
            yield Text(found, gain, aims[0], least, aims[1], doubt)


def hints_of_rows(found: Collection[Any], used: Collection[Any]) -> list[str]:
    """Return a hint about a column of a log without users that may hold them."""
    likely = [name for name in found if name not in used and plain_name(name) in USERS]
    if "user_id" in found or len(likely) != 1:
        return []
    text = f"the log has no column 'user_id', so rows are taken as independent, but column {likely[0]!r} may hold users"
    return [Text(text, ": pass ", Argument("user", (likely[0],)), " to use it")]


def marks_rows(name: Any) -> bool:
    """Return whether a column has a usual name of marks: all are 1 where a program keeps only relevant rows."""
    return plain_name(name) in MARKS


def _hint_of_sides(recs: Collection[Any], truth: Collection[Any]) -> list[str]:
    """Return a hint if only the truth has ranks, or if the lists have gains and the truth has ranks or scores.

    Scores alone do not tell: those in a truth may be ratings.
    """
    orders = [name for name in ("rank", "score") if name in truth]
    if "gain" in truth or not orders or {"rank", "score"} & {*recs}:
        return []
    if "gain" in recs:
        return [f"recs has a column 'gain' and truth has a column {orders[0]!r}: are the two swapped?"]
    if "rank" in truth:
        return ["truth has a column 'rank' and recs has none: are the two swapped?"]
    return []

"""What the first rows of lists suggest: that an unused column should order them, or that ranks are wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, FastrecError, Text
from fastrec.inputs.arrow import Frame, is_numeric, read_numbers
from fastrec.inputs.findings.evidence import MOST, Evidence

Array = np.ndarray[Any, Any]
FIRST_ROWS = 100_000  # that are looked at
MOST_COLUMNS = 20  # of wider lists none is looked at: one of them alone will hardly differ within lists
MANY_REPEATS = 100  # rows with an item that an earlier row has
RANKS = frozenset(("rank", "ranks", "ranking", "position"))  # usual names in logs of slates

# usual names of columns, regardless of case and of characters between words
USERS = frozenset(("user", "users", "userid", "uid", "customer", "customerid", "member", "memberid", "visitorid"))
GAINS = frozenset(
    ("gain", "gains", "rating", "ratings", "stars", "score", "scores", "relevance", "rel", "grade", "grades")
)
# of columns that mark the relevant rows of a log of impressions
MARKS = frozenset(("label", "labels", "relevant", "click", "clicks", "clicked"))


class FirstRows(NamedTuple):
    """Readers of the first rows of lists."""

    ids: Callable[[], Sequence[Array]]  # of users and items, or of slates: an integer for each row
    numbers: Callable[[Sequence[Any]], Mapping[Any, Array]]  # of those columns that hold finite numbers only, float64


def rows_of_frame(frame: Frame, *ids: Array) -> FirstRows:
    """Return readers of a data frame; `ids` have an integer for each of its rows."""

    def numbers(columns: Sequence[Any]) -> dict[Any, Array]:
        found: dict[Any, Array] = {}
        head = frame.head(FIRST_ROWS) if columns else frame
        for column in columns:
            with contextlib.suppress(FastrecError):
                if is_numeric(values := head.read(column)):
                    found[column] = read_numbers(values, column).astype(np.float64)[:FIRST_ROWS]
        return finite(found)

    return FirstRows(lambda: [own[:FIRST_ROWS] for own in ids], numbers)


def finite(numbers: Mapping[Any, Array]) -> dict[Any, Array]:
    """Return the columns without infinite and missing numbers."""
    return {name: own for name, own in numbers.items() if np.isfinite(own).all()}


class _Lists:
    """The first rows, those of a user together."""

    def __init__(self, users: Array) -> None:
        self.order = np.argsort(users, kind="stable")
        users = users[self.order]
        self.starts = np.flatnonzero(np.append(True, users[1:] != users[:-1])) if len(users) else np.zeros(0, np.int64)
        self.lengths = np.diff(np.append(self.starts, len(users)))
        self.total = int((self.lengths > 1).sum())
        self.within = np.ones(len(users), bool)  # rows that follow another of their user
        self.within[self.starts] = False

    def having(self, steps: Array) -> int:
        """Return the number of users with one of these steps from a row to the next."""
        marks = np.zeros(len(self.order), bool)
        marks[1:] = steps
        marks &= self.within
        return int(np.logical_or.reduceat(marks, self.starts).sum()) if len(marks) else 0

    def order_by(self, values: Array) -> Array:
        """Return the positions of rows by user and value."""
        users = np.repeat(np.arange(len(self.starts)), self.lengths)
        order: Array = np.lexsort((values, users))
        return order

    def are_ranks(self, values: Array) -> bool:
        """Return whether most users have the numbers from 1, or from 0, on."""
        ordered = values[self.order_by(values)]
        wrong = np.diff(ordered) != 1
        wrong[self.starts[(self.lengths > 1) & ~np.isin(ordered[self.starts], (0, 1))]] = True
        return self.total - self.having(wrong) > MOST * self.total


def evidence_of_columns(
    columns: Sequence[Any], used: Collection[Any], role: str, name: str | None, rows: FirstRows
) -> Iterator[Evidence]:
    """Yield evidence that lists should be in another order.

    Lists are ordered by the column `name` in this role; None: by their rows.
    """
    unused = [column for column in columns if column not in used and column != name]
    other = next((one for one in ("rank", "score") if one != role and one in unused), None)
    if name is not None and other is not None:
        yield from _evidence_against(rows, role, name, other)
    if name is None and 0 < len(unused) <= MOST_COLUMNS:
        yield from _evidence_of_order(rows, unused)


def _evidence_of_order(rows: FirstRows, unused: Sequence[Any]) -> Iterator[Evidence]:
    """Yield evidence that the only column that differs within lists should order them, in place of their rows."""
    found = []
    if not (numbers := rows.numbers(unused)):
        return
    users, items = rows.ids()
    lists = _Lists(users)
    for name, own in numbers.items():
        steps = np.diff(own[lists.order])
        if lists.having(steps != 0) <= MOST * lists.total or np.isin(own, (0, 1)).all():
            continue
        role = "rank" if lists.are_ranks(own[lists.order]) else "score"
        rises = (own == np.floor(own)).all() and not lists.having(steps < 0)  # as numbers of rows, and times
        if role == "rank" or not (rises or _may_describe_items(items, own)):
            found.append((role, str(name), lists.having(steps < 0 if role == "rank" else steps > 0)))
    if len(found) == 1:
        ((role, name, wrong),) = found
        yield Evidence("order_by_rows", wrong, lists.total, (), (role, name))


def _may_describe_items(items: Array, values: Array) -> bool:
    """Return whether a column has one value for each item, as a price, a count or another id has.

    Fractions of items that hardly repeat may as well be scores.
    """
    order = np.lexsort((values, items))
    again = np.diff(items[order]) == 0
    differs = again & (np.diff(values[order]) != 0)
    return not differs.any() and bool(again.sum() >= MANY_REPEATS or (values == np.floor(values)).all())


def _evidence_against(rows: FirstRows, role: str, name: str, other: str) -> Iterator[Evidence]:
    """Yield evidence that ranks and scores disagree."""
    numbers = rows.numbers([name, other])
    if len(numbers) > 1 and (lists := _Lists(rows.ids()[0])).total:
        values = [numbers[column][lists.order] for column in (name, other)]
        ranks, scores = values if role == "rank" else values[::-1]
        wrong = lists.having(np.diff(scores[lists.order_by(ranks)]) > 0)
        yield Evidence("rank_against_score", wrong, lists.total, (), f"the {role}s")


def evidence_of_slates(columns: Sequence[Any], used: Collection[Any], rows: FirstRows) -> Iterator[Evidence]:
    """Yield evidence that unused columns have ranks of slates in another order than the rows.

    Names tell: the values of ranks in rows of any order, and those of arms of which each slate has all, are alike.
    """
    unused = [column for column in columns if column not in used and plain_name(column) in RANKS]
    for name, own in rows.numbers(unused).items() if unused else ():
        lists = _Lists(rows.ids()[0])
        yield Evidence("slates_by_rows", lists.having(np.diff(own[lists.order]) < 0), lists.total, (), str(name))


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

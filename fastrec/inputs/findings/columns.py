"""What the first rows of lists suggest: that an unused column should order or split them, or that ranks are wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.inputs.arrow import Frame, is_numeric, read_numbers
from fastrec.inputs.findings.evidence import MOST, Evidence

__all__ = ["FIRST_ROWS", "FirstRows", "evidence_of_columns", "evidence_of_slates", "rows_of_frame"]

Array = np.ndarray[Any, Any]
FIRST_ROWS = 100_000  # that are looked at
FEW_ROWS = 2_000  # that are looked at before all others
FEW_STEPS = 10  # from a row to the next of one list: fewer may fall by chance
MOST_COLUMNS = 20  # of wider lists none is looked at: one of them alone will hardly differ within lists


class FirstRows(NamedTuple):
    """Readers of the first rows of lists, which are called only if something may be found."""

    ids: Callable[[], Sequence[Array]]  # of users and items, or of slates: an integer for each row
    numbers: Callable[[Sequence[Any]], Mapping[Any, Array]]  # of those columns that hold numbers only, float64
    codes: Callable[[Sequence[Any]], Mapping[Any, Array]]  # an integer for each row, which tells values apart


def rows_of_frame(frame: Frame, *ids: Array) -> FirstRows:
    """Return readers of a data frame; `ids` have an integer for each of its rows."""

    def numbers(columns: Sequence[Any]) -> dict[Any, Array]:
        head, found = frame.head(FIRST_ROWS) if columns else frame, {}
        for column in columns:
            with contextlib.suppress(FastrecError):
                if is_numeric(values := head.read(column)):
                    found[column] = read_numbers(values, column).astype(np.float64)[:FIRST_ROWS]
        return found

    def codes(columns: Sequence[Any]) -> dict[Any, Array]:
        head = frame.head(FIRST_ROWS)
        texts = {name: [*map(str, head.read(name, nulls=True).to_pylist()[:FIRST_ROWS])] for name in columns}
        return {name: np.unique(np.array(own, object), return_inverse=True)[1] for name, own in texts.items()}

    return FirstRows(lambda: [own[:FIRST_ROWS] for own in ids], numbers, codes)


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
    """Yield evidence that lists should be in another order, or are several.

    Lists are ordered by the column `name` in this role; None: by their rows.
    """
    unused = [column for column in columns if column not in used and column != name]
    few = unused if len(unused) <= MOST_COLUMNS else []
    other = next((one for one in ("rank", "score") if one != role and one in unused), None)
    if name is None:
        yield from _evidence_of_order(rows, few)
    elif other is not None:
        yield from _evidence_against(rows, role, name, other)
    if name is not None and role == "score" and few:
        yield from _evidence_of_parts(rows, few, name)


def _finite(numbers: Mapping[Any, Array]) -> dict[Any, Array]:
    return {name: own for name, own in numbers.items() if np.isfinite(own).all()}


def _evidence_of_order(rows: FirstRows, unused: Sequence[Any]) -> Iterator[Evidence]:
    """Yield evidence that the only column that differs within lists should order them, in place of their rows."""
    found = []
    if not (numbers := _finite(rows.numbers(unused))):
        return
    users, items = rows.ids()
    lists = _Lists(users)
    for name, own in numbers.items():
        values = own[lists.order]
        rises = (np.diff(own) >= 0).all() and (own == np.floor(own)).all()  # as numbers of rows, and times
        if rises or np.isin(own, (0, 1)).all():
            continue
        if lists.having(np.diff(values) != 0) > MOST * lists.total:
            role = "rank" if lists.are_ranks(values) else "score"
            if role == "rank" or (own != np.floor(own)).any() or _are_apart(items, own)[1]:
                found.append((role, name, lists.having(np.diff(values) < 0 if role == "rank" else np.diff(values) > 0)))
    if len(found) == 1:
        ((role, name, wrong),) = found
        yield Evidence("order_by_rows", wrong, lists.total, (), (role, name))


def _are_apart(items: Array, values: Array) -> tuple[bool, bool]:
    """Return whether items have several rows, and whether some of them have several values of a column there.

    If they have not, the column may describe the items: another id, a count, a category.
    """
    order = np.lexsort((values, items))
    same = np.diff(items[order]) == 0
    return bool(same.any()), bool((same & (np.diff(values[order]) != 0)).any())


def _evidence_against(rows: FirstRows, role: str, name: str, other: str) -> Iterator[Evidence]:
    """Yield evidence that ranks and scores disagree."""
    numbers = _finite(rows.numbers([name, other]))
    lists = _Lists(rows.ids()[0])
    if len(numbers) > 1 and lists.total:
        values = [numbers[column][lists.order] for column in (name, other)]
        ranks, scores = values if role == "rank" else values[::-1]
        wrong = lists.having(np.diff(scores[lists.order_by(ranks)]) > 0)
        yield Evidence("rank_against_score", wrong, lists.total, (), f"the {role}s")


def _evidence_of_parts(rows: FirstRows, unused: Sequence[Any], name: str) -> Iterator[Evidence]:
    """Yield evidence that scores start anew wherever an unused column changes, unless it follows from items."""
    if (scores := rows.numbers([name]).get(name)) is None:
        return
    users, items = rows.ids()
    for n_rows in (FEW_ROWS, len(users)):
        lists = _Lists(users[:n_rows])
        rises = np.diff(scores[:n_rows][lists.order]) > 0
        if (wrong := lists.having(rises)) <= MOST * lists.total:
            yield from (Evidence("several_lists", 0, lists.total, (), ("column", column)) for column in unused)
            return
    for column, own in rows.codes(unused).items():
        inside = lists.within[1:] & (np.diff(own[lists.order]) == 0)
        again, apart = _are_apart(items, own)
        is_split = inside.sum() >= FEW_STEPS and not (rises & inside).any() and (apart or not again)
        yield Evidence("several_lists", wrong if is_split else 0, lists.total, (), ("column", column))


def evidence_of_slates(columns: Sequence[Any], used: Collection[Any], rows: FirstRows) -> Iterator[Evidence]:
    """Yield evidence that unused columns have ranks of slates in another order than the rows."""
    unused = [column for column in columns if column not in used]
    if not (numbers := _finite(rows.numbers(unused if len(unused) <= MOST_COLUMNS else []))):
        return
    lists = _Lists(rows.ids()[0])
    for name, own in numbers.items():
        values = own[lists.order]
        if lists.are_ranks(values):
            yield Evidence("slates_by_rows", lists.having(np.diff(values) < 0), lists.total, (), name)

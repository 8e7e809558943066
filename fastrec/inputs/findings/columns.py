"""What the first rows of lists suggest: that an unused column should order them, or that ranks and scores disagree."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.inputs.arrow import Frame, is_numeric, read_numbers
from fastrec.inputs.findings.evidence import MOST, Evidence

__all__ = ["FIRST_ROWS", "columns_to_look_at", "evidence_of_columns", "evidence_of_frame", "evidence_of_slates"]

Array = np.ndarray[Any, Any]
FIRST_ROWS = 100_000  # that are looked at
MOST_COLUMNS = 20  # of wider lists none is looked at: one of them alone will hardly differ within lists


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


def columns_to_look_at(columns: Sequence[Any], used: Collection[Any], role: str, name: str | None) -> list[Any]:
    """Return the columns of lists to read for `evidence_of_columns`: none if nothing can be found.

    Lists are ordered by the column `name` in this role; None: by their rows.
    """
    if name is None:
        unused = [column for column in columns if column not in used]
        return unused if len(unused) <= MOST_COLUMNS else []
    other = next((one for one in ("rank", "score") if one not in (role, name) and one in columns), None)
    return [] if other is None or other in used else [name, other]


def evidence_of_frame(
    frame: Frame, users: Array, items: Array, used: Collection[Any], role: str, name: str | None
) -> Iterator[Evidence]:
    """Yield evidence of the first rows of lists about the column that should order them.

    `users` and `items` have an integer for each row; the column `name` orders the lists in its role, or none does.
    """
    numbers = numbers_of_frame(frame, columns_to_look_at(frame.columns, used, role, name))
    if numbers:
        yield from evidence_of_columns(users[:FIRST_ROWS], items[:FIRST_ROWS], numbers, role, name)


def numbers_of_frame(frame: Frame, columns: Collection[Any]) -> dict[Any, Array]:
    """Return the first rows of those columns that hold numbers, float64."""
    head, numbers = frame.head(FIRST_ROWS) if columns else frame, {}
    for column in dict.fromkeys(columns):
        with contextlib.suppress(FastrecError):
            if is_numeric(values := head.read(column)):
                numbers[column] = read_numbers(values, column).astype(np.float64)[:FIRST_ROWS]
    return numbers


def evidence_of_slates(slates: Array, numbers: Mapping[Any, Array]) -> Iterator[Evidence]:
    """Yield evidence that unused columns have ranks of slates in another order than the rows."""
    lists = _Lists(slates)
    for name, own in numbers.items():
        values = own[lists.order]
        if lists.are_ranks(values):
            yield Evidence("slates_by_rows", lists.having(np.diff(values) < 0), lists.total, (), name)


def evidence_of_columns(
    users: Array, items: Array, numbers: Mapping[Any, Array], role: str, name: str | None
) -> Iterator[Evidence]:
    """Yield evidence that lists should be in another order.

    `users` and `items` have an integer for each of the first rows, and `numbers` those of the float64 columns to look
    at that hold numbers only.
    """
    lists, numbers = _Lists(users), {one: own for one, own in numbers.items() if np.isfinite(own).all()}
    if name is None:
        yield from _evidence_of_order(lists, items, numbers)
    elif len(numbers) > 1 and lists.total:
        values = [numbers[name][lists.order], *(own[lists.order] for one, own in numbers.items() if one != name)]
        ranks, scores = values if role == "rank" else values[::-1]
        wrong = lists.having(np.diff(scores[lists.order_by(ranks)]) > 0)
        yield Evidence("rank_against_score", wrong, lists.total, (), f"the {role}s")


def _evidence_of_order(lists: _Lists, items: Array, numbers: Mapping[Any, Array]) -> Iterator[Evidence]:
    """Yield evidence that the only column that differs within lists should order them, in place of their rows."""
    found = []
    for name, own in numbers.items():
        values = own[lists.order]
        rises = (np.diff(own) >= 0).all() and (own == np.floor(own)).all()  # as numbers of rows, and times
        if rises or np.isin(own, (0, 1)).all():
            continue
        if lists.having(np.diff(values) != 0) > MOST * lists.total:
            role = "rank" if lists.are_ranks(values) else "score"
            if role == "rank" or not _describes_items(items, own):
                found.append((role, name, lists.having(np.diff(values) < 0 if role == "rank" else np.diff(values) > 0)))
    if len(found) == 1:
        ((role, name, wrong),) = found
        yield Evidence("order_by_rows", wrong, lists.total, (), (role, name))


def _describes_items(items: Array, values: Array) -> bool:
    """Return whether a column has whole numbers, one for each item: another id, or a count."""
    if not (values == np.floor(values)).all():
        return False
    order = np.lexsort((values, items))
    return not ((np.diff(items[order]) == 0) & (np.diff(values[order]) != 0)).any()

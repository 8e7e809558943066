"""Popularity of items, in a history or in a column of items, and the values of items that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import counted, some_names
from fastrec.exceptions import Argument, InputError, MetricError, Place
from fastrec.inputs.items import Categories, ItemTable
from fastrec.items.history import HistoryCounts
from fastrec.items.slots import Slots
from fastrec.items.sums import cuts_of, group_cutoffs, sum_rows, sum_values
from fastrec.metrics.statistics import UnseenRule
from fastrec.segments import segments_of_counts

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
USUAL = "popularity"
SEGMENT, TAIL = "segment", "tail"
HEAD = np.array([0.8])  # share of the interactions
BOTH = (
    f"popularity is the column {USUAL!r} of items, not a count of history: name it with the option column={USUAL}, or "
    "leave the column out"
)
REPLACES = "; it replaces the counts of history: drop or rename it if it is something else"
MAX_POPULARITY = 1e150  # popularity; squares and ratios of such numbers are doubles


class Popularity:
    """The popularity of the items of a batch: that of a history, or of a column of the table of items."""

    def __init__(
        self, counts: HistoryCounts | None, table: ItemTable | None, n_users: int | None, used: set[str]
    ) -> None:
        self._counts, self._table, self._n_users, self._used = counts, table, n_users, used

    def column(self, column: str | None) -> str | None:
        """Return the column of items that holds the popularity; None if the history does."""
        if column is not None:
            return column
        has_usual = self._table is not None and USUAL in self._table.columns
        return USUAL if has_usual or self._counts is None else None

    @property
    def is_given(self) -> bool:
        """Whether the call has a history or the usual column."""
        return self._counts is not None or (self._table is not None and USUAL in self._table.columns)

    def known(self, column: str | None, kind: str, instead: str = "") -> tuple[Array, Array]:
        """Return items, int64 (n,), and their numbers of users or rows, float64 (n,), all above 0.

        `instead` names another column that would do, for the error.
        """
        name = self.column(column)
        if name is None:
            assert self._counts is not None and self._counts.codes is not None
            self._used.add("counts")
            if not self._counts.n_rows:
                raise InputError("history has no rows, so no item has a popularity")
            return self._counts.codes, (self._counts.users if kind == "users" else self._counts.rows).astype(np.float64)
        if self._table is None:
            raise InputError(f"items column {name!r} needs ", Argument("items", (...,)))
        if column is None and name not in self._table.columns:
            wanted = f" has no column {name!r}{instead}: add one, or pass "
            raise InputError(Place("items"), wanted, Argument("history", (...,)), f"; {self._table.columns_like(name)}")
        numbers = self._table.numbers(name)
        mend = REPLACES if column is None and self._counts is not None else ""
        if (wrong := (numbers < 0) | (numbers == math.inf)).any():
            raise InputError(f"items column {name!r} must hold numbers from 0, found {numbers[wrong][0]}{mend}")
        if (wrong := (numbers > MAX_POPULARITY) | ((numbers > 0) & (numbers < 1 / MAX_POPULARITY))).any():
            limits = f"0 or numbers from {1 / MAX_POPULARITY} to {MAX_POPULARITY}"
            raise InputError(f"items column {name!r} must hold {limits}, found {numbers[wrong][0]}{mend}")
        assert self._table.codes is not None
        seen = numbers > 0
        if not seen.any():
            raise InputError(f"items column {name!r} must hold a number above 0, found none{mend}")
        return self._table.codes[seen], numbers[seen]

    def total(self, column: str | None, kind: str, counts: Array) -> float:
        """Return the number that a popularity is a share of: all users, or all rows."""
        if kind == "rows":
            return math.fsum(counts)
        found = self._n_users if self.column(column) is not None else None
        self._used.add("counts" if found is None else "n_users")
        if found is None:
            found = None if self._counts is None else self._counts.n_users
        if found is None:
            raise MetricError(
                "needs the number of users behind the popularity: ",
                Argument("n_users", (...,)),
                " or ",
                Argument("history", (...,)),
            )
        if counts.max(initial=0.0) > found:
            mend = REPLACES if column is None and self._counts is not None and self.column(None) is not None else ""
            most = f"{found}; found {counts.max()}{mend}"
            raise InputError(f"the popularity must be at most the number of users, {most}")
        return float(found)

    def in_table(self, slots: Slots) -> Array:
        """Return which slots have an item of the table of items."""
        assert self._table is not None and self._table.codes is not None
        return slots.mark(self._table.codes)

    def head(self) -> Array:
        """Return the items of the head: the most popular ones, up to 80 % of all rows, ties together."""
        items, counts = self.known(None, "rows", f" or {SEGMENT!r}")
        head: Array = items[segments_of_counts(counts, HEAD) == 0]
        return head


def _scaled(
    known: Popularity, slots: Slots, scale: str, column: str | None, kind: str, unseen: str
) -> tuple[Array, Array]:
    """Return the scaled popularity of each slot, and which slots are seen."""
    items, counts = known.known(column, kind)
    one = 1.0
    if scale == "share":
        total = known.total(column, kind, counts)
        counts, one = counts / total, 1 / total
    elif scale == "max":
        largest = counts.max(initial=0.0)
        counts, one = counts / largest, 1 / largest
    elif scale == "percentile":
        ascending = np.sort(counts)
        low, high = (np.searchsorted(ascending, np.append(counts, 1.0), side) for side in ("left", "right"))
        ranks = (low + high + 1) / 2 / max(len(ascending), 1)
        counts, one = ranks[:-1], float(ranks[-1])
    found = slots.spread(items, counts, 0.0)
    seen = found > 0
    return np.where(seen, found, one if unseen == "one" else 0.0), seen


def refuse_unknown(sides: BatchSides, known: Array) -> None:
    """Raise InputError for items of the lists that the table of items lacks."""
    without = sides.rows_without(known, [None])
    if len(without):
        spelled = sides.names.item(int(sides.slots.items(without[:1])[0]))
        raise InputError(f"items lacks {counted(len(np.unique(without)), 'item')} of the lists, such as item {spelled}")


def note_unseen(sides: BatchSides, column: str | None) -> None:
    """Count the rows of lists with an item that has no popularity."""
    sides.note_rows_without(sides.popularity.known(column, "users")[0])


def _check_unseen(sides: BatchSides, keys: Sequence[Any]) -> None:
    """Raise InputError for items without popularity within k, if the measure of a key asks for it."""
    known, slots = sides.popularity, sides.slots
    policies = {key[0][-2:]: None for key in keys if isinstance(key[0][-1], UnseenRule)}
    for column, unseen in policies:
        note_unseen(sides, column)
        if column is None and sides.counts is not None and known.column(None) is not None:
            sides.hints.append(BOTH)
        if unseen.policy == "error":
            seen = slots.mark(known.known(column, "users")[0])
        elif unseen.is_strict and known.column(column) is not None:
            seen = known.in_table(slots)
        else:
            continue
        cutoffs = [key[-1] for key in keys if key[0][-2:] == (column, unseen)]
        without = sides.rows_without(seen, cutoffs)
        if len(without):
            spelled = sides.names.item(int(slots.items(without[:1])[0]))
            found = f"found {counted(len(np.unique(without)), 'item')} of the lists, such as item {spelled},"
            if not unseen.is_strict:
                raise InputError(found, " without a popularity, and ", Argument("unseen", ("error",)))
            choice = Argument("unseen", ("zero", "one", "drop"))
            raise InputError(found, " that items lacks; choose what such an item counts with ", choice)


def _information(known: Popularity, slots: Slots, share: str, base: Any, norm: str, column: str, unseen: str) -> Array:
    """Return -log of the share of each slot."""
    items, counts = known.known(column, share)
    total = known.total(column, share, counts)
    if total < 1:  # the logarithm of the total is below 0
        lacks = unseen == "one" and (slots.spread(items, counts, 0.0)[slots.of_rows] == 0).any()
        if norm == "max" or lacks:
            wanted = " must add up to at least 1 for unseen=one and normalize=max, found "
            raise InputError(Place("items", known.column(column)), wanted, total)
    values = _logarithms(counts, total, base)
    other = {"one": _log(total, base), "max": values.max(initial=0.0)}.get(unseen, 0.0)
    largest = _log(total, base) if norm == "max" else 1.0
    found: Array = slots.spread(items, values, other) / (largest or 1.0)
    return found


def _logarithms(counts: Array, total: float, base: Any) -> Array:
    """Return log(total / count) of each count, NaN for 0, by Python's logarithm: NumPy's differs between processors."""
    distinct, at = np.unique(counts, return_inverse=True)
    values = [_log(total / count, base) if count > 0 else math.nan for count in distinct.tolist()]
    return np.array(values, np.float64)[at]


def _log(number: float, base: Any) -> float:
    if number <= 0:
        return 0.0
    if base == "e":
        return math.log(number)
    return math.log2(number) if base == 2 else math.log(number) / math.log(base)


def _values(measure: Sequence[Any], sides: BatchSides) -> Array:
    """Return the values of the slots of a batch that a measure names, float64 (n_slots,)."""
    name, *options = measure
    known, slots = sides.popularity, sides.slots
    if name == "popularity":
        scale, kind, column, unseen = options
        return _scaled(known, slots, scale, column, kind, unseen.policy)[0]
    if name == "seen":
        kind, column = options
        return _scaled(known, slots, "count", column, kind, "zero")[1].astype(np.float64)
    if name == "information":
        share, base, norm, column, unseen = options
        return _information(known, slots, share, base, norm, column, unseen.policy)
    if name == "rarity":  # 1 - the share of users
        column, unseen = options
        return 1.0 - _scaled(known, slots, "share", column, "users", unseen.policy)[0]
    assert name == "tail"
    return _tail(sides, *options)


def table_of_segments(sides: BatchSides, column: str | None) -> ItemTable | None:
    """Return the table of items if it has the segments of items; None if these are head and tail by popularity."""
    table = sides.items
    if column is not None and table is None:
        raise MetricError(f"column={column} needs ", Argument("items", (...,)))
    return table if table is not None and (column is not None or SEGMENT in table.columns) else None


def has_tail(table: ItemTable) -> bool:
    """Return whether the segments of a table have a tail."""
    return _has_tail(table.categories(SEGMENT), TAIL)


def _has_tail(segments: Categories, label: str) -> bool:
    """Return whether an item has the label of the tail; an item without a segment is in the tail, too."""
    return label in map(str, segments.names) or (label == TAIL and bool(_without_label(segments).any()))


def _without_label(segments: Categories) -> Array:
    found: Array = np.diff(segments.indptr) == 0
    return found


def _tail(sides: BatchSides, column: str | None, label: str) -> Array:
    """Return 1 for slots of the tail: with this label, or not in the head of the most popular items."""
    slots, table = sides.slots, table_of_segments(sides, column)
    if table is not None:
        assert table.codes is not None
        segments = table.categories(column or SEGMENT)
        spelled = list(map(str, segments.names))
        in_tail = _without_label(segments) * 1.0
        if not _has_tail(segments, label):
            wrong = f" has no item with the label {label!r} of the tail; labels: {some_names(spelled) or 'none'}"
            raise InputError(Place("items", column or SEGMENT), wrong)
        if label in spelled:
            rows = np.repeat(np.arange(len(table.ids)), np.diff(segments.indptr))
            in_tail[rows[segments.codes == spelled.index(label)]] = 1.0
        found = slots.spread(table.codes, in_tail, math.nan)
        refuse_unknown(sides, ~np.isnan(found))
        return np.asarray(found)
    if label not in ("head", TAIL):
        raise InputError(f"without a column of segments, tail must be 'head' or 'tail', found {label!r}")
    head = sides.popularity.head()
    note_unseen(sides, None)
    of_tail = float(label == TAIL)
    tail: Array = slots.spread(head, np.full(len(head), 1.0 - of_tail), of_tail)
    return tail


def fill_popularity(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill sums along each list of values that follow from popularity; keys are (measure, cut-off)."""
    _check_unseen(sides, keys)
    measures = list(dict.fromkeys(measure for measure, _ in keys))
    cuts, at = cuts_of([k for _, k in keys])
    values = np.stack([_values(measure, sides) for measure in measures], axis=1)
    slots, indptr = sides.slots.of_rows, sides.recs.indptr
    sums = sum_values(slots, indptr, cuts, values, sides.n_threads)
    for nth, (measure, _) in enumerate(keys):
        out[nth] = sums[measures.index(measure), at[nth]]


def fill_history(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill the mean share of users over the rows of the user's history; keys are (column,)."""
    history, known = sides.read_history(), sides.popularity
    for nth, (column,) in enumerate(keys):
        items, counts = known.known(column, "users")
        slots = Slots.of(history.items)
        values = slots.spread(items, counts / known.total(column, "users", counts), 0.0)
        cuts, _ = cuts_of([None])
        sums = sum_values(slots.of_rows, history.indptr, cuts, values[:, None], sides.n_threads)
        out[nth] = sums[0, 0] / np.maximum(np.diff(history.indptr), 1)


def fill_hits(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill sums over relevant items of a value times the weight of the rank; keys are (measure, weight, gain, k)."""
    _check_unseen(sides, keys)
    for (measure, weight, least), wanted, cuts, at in group_cutoffs(keys):
        values = np.where(sides.is_hit(least), _values_of_rows(measure, sides), 0.0)
        out[wanted] = sum_rows(values, sides.recs.indptr, cuts, weight, sides.n_threads)[at]


def fill_ranks(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill sums over the list of a value times the weight of the rank; keys are (measure, weight, k)."""
    _check_unseen(sides, keys)
    for (measure, weight), wanted, cuts, at in group_cutoffs(keys):
        values = _values_of_rows(measure, sides)
        out[wanted] = sum_rows(values, sides.recs.indptr, cuts, weight, sides.n_threads)[at]


def _values_of_rows(measure: tuple[Any, ...], sides: BatchSides) -> Array:
    """Return the value of each row of the lists."""
    name, *options = measure
    of_rows = sides.slots.of_rows
    if name == "rare":
        return _rare(sides, *options)
    if name == "surprise":
        return _surprise(sides, *options)
    found: Array = _values(measure, sides)[of_rows]
    return found


def _rare(sides: BatchSides, column: str | None, k: int | None) -> Array:
    """Return 1 for rows of items with fewer users than the k-th most popular item, else 0."""
    slots, recs = sides.slots, sides.recs
    note_unseen(sides, column)
    items, counts = sides.popularity.known(column, "users")
    falling = np.sort(counts)[::-1]
    found = slots.spread(items, counts, 0.0)[slots.of_rows]
    lengths = np.repeat(np.diff(recs.indptr), np.diff(recs.indptr)) if k is None else np.full(len(found), k)
    limits = falling[np.minimum(lengths, len(falling)) - 1] if len(falling) else np.zeros(len(found))
    rare: Array = ((found < limits) | (found == 0)).astype(np.float64)
    return rare


def _surprise(sides: BatchSides, column: str | None, n_items: float) -> Array:
    """Return how far rows rank above their popularity, in shares of the catalogue."""
    slots, recs = sides.slots, sides.recs
    note_unseen(sides, column)
    items, counts = sides.popularity.known(column, "users")
    by = n_items - np.searchsorted(np.unique(-counts), -counts)
    found = slots.spread(items, by, 0.0)[slots.of_rows]
    surprise: Array = np.maximum((n_items + 1 - recs.ranks - found) / n_items, 0.0)
    return surprise

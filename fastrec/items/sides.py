"""The sides of a batch of lists, and what metrics of items, histories and propensities read of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastrec.exceptions import Argument
from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.items import ItemTable
from fastrec.inputs.lists import Lists
from fastrec.inputs.users import Users, spelled_labels
from fastrec.items.history import HistoryCounts
from fastrec.items.listed import ListsAndTruth
from fastrec.items.popularity import Popularity
from fastrec.items.propensities import Propensities
from fastrec.items.sampled import SampledRanks
from fastrec.items.slots import Slots
from fastrec.items.sums import order_items

Array = np.ndarray[Any, Any]


@dataclass(kw_only=True, eq=False)
class BatchSides(ListsAndTruth):
    """The sides of a batch of lists, and what follows from them when something asks for it."""

    users: Users
    lists: Lists  # as kernels get them: of a model only the items of the truth
    no_recs: str
    copies_are_misses: bool
    history: FlatSide | None = None
    exclude: FlatSide | None = None
    reference: FlatSide | None = None
    logged: FlatSide | None = None
    subtopics: FlatSide | None = None
    items: ItemTable | None = None
    counts: HistoryCounts | None = None  # of the items of the whole history
    catalogue: ItemTable | None = None  # `items`, if its rows are all items that lists may have
    n_users: int | None = None  # behind the popularity of `items`
    examination: Array | None = None
    n_drawn_from: Array | None = None  # int64 (n_users,): items that samples of a model could have
    sampled_from: int | None = None  # the size of the catalogue that lists hold a sample of
    used: set[str] = field(default_factory=set)  # what all batches share and was read, as digests name it
    noted: dict[str, int] = field(default_factory=dict)  # counts for the report
    hints: list[str] = field(default_factory=list)  # lines for the warnings of the report

    def note(self, name: str, count: int) -> None:
        """Count something for the report. Several metrics may count the same; one may look at more columns."""
        self.noted[name] = max(count, self.noted.get(name, 0))

    @functools.cached_property
    def slots(self) -> Slots:
        """The slots of the items of the lists."""
        miss, first = (Argument("duplicates", (way,)) for way in ("miss", "first"))
        later = ", later copies are places without an item, which metrics of items cannot value: use "
        gaps = "gaps between ranks are places without an item in this tool, which metrics of items cannot value"
        why = ("with ", miss, later, first) if self.copies_are_misses else (gaps, ": number the ranks without gaps")
        return Slots.of(self.recs.items, why)

    @functools.cached_property
    def popularity(self) -> Popularity:
        """The popularity of items."""
        return Popularity(self.counts, self.items, self.n_users, self.used)

    @functools.cached_property
    def propensities(self) -> Propensities:
        """The propensities of the rows of the truth."""
        return Propensities(self)

    @functools.cached_property
    def sampled_ranks(self) -> SampledRanks:
        """The ranks of relevant items among those that were drawn."""
        return SampledRanks(self)

    @functools.cached_property
    def item_labels(self) -> Array | None:
        """The names of the items, None if these are numbers."""
        strings = self.names.strings
        return None if strings is None else spelled_labels(strings, np.arange(len(strings)))

    def read_items(self) -> ItemTable:
        """Return the table of items, which the metric has asked for."""
        assert self.items is not None
        return self.items

    def read_history(self, *, ordered: bool = True) -> FlatSide:
        """Return the history, with the items of each user in ascending order, so that sums have the same bits.

        Counts the users without a history for the report.
        """
        assert self.history is not None
        self.note("users_without_history", int(np.count_nonzero(np.diff(self.history.indptr) == 0)))
        return order_items(self.history, self.n_threads) if ordered else self.history

    def note_rows_without(self, items: Array) -> None:
        """Count the rows of lists, of models only the first items, and those with none of some items."""
        seen = self.slots.mark(items)
        n_unseen = 0 if seen.all() else int(np.count_nonzero(~seen[self.slots.of_rows]))
        self.note("rec_rows_unseen", n_unseen)
        self.note("rec_rows_searched", len(self.slots.of_rows))

    def rows_without(self, known: Array, cutoffs: Sequence[int | None]) -> Array:
        """Return the slots of rows of the lists, within the largest cut-off, that are not known."""
        slots = self.slots
        if known.all():
            return np.zeros(0, np.int64)
        unknown = ~known[slots.of_rows]
        if None not in cutoffs and unknown.any():
            unknown &= self.recs.ranks <= max(k for k in cutoffs if k is not None)
        found: Array = slots.of_rows[unknown]
        return found

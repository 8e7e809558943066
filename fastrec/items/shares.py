"""Shares of exposure: how much of it the segments or providers of items get."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import counted
from fastrec.exceptions import MetricError, Place, shown
from fastrec.inputs.ids import Ids, Strings
from fastrec.inputs.items import ItemTable
from fastrec.inputs.ragged import chosen_rows
from fastrec.inputs.users import alike, as_labels
from fastrec.inputs.values import arrow_of
from fastrec.items.exposure import Effects, Exposure, Key
from fastrec.metrics.declaration import LISTS, Call, Metric
from fastrec.metrics.directions import Direction, Kind
from fastrec.metrics.statistics import ListStatistics, Over

Array = np.ndarray[Any, Any]


class Entries(NamedTuple):
    """The labels of some items: one row per item and label."""

    item: Array  # position of the item
    label: Array
    weight: Array  # 1 / the labels of the item
    has_label: Array  # bool, of each item


class Labelled:
    """A column of the table of items that holds one label or several, which share the exposure of an item equally."""

    def __init__(self, table: ItemTable, column: str, sep: str | None = None) -> None:
        found = table.categories(column)
        if sep is not None and found.names and isinstance(found.names[0], str):
            found = table.categories(column, sep)
        self.column, self.names = column, found.names
        self._ids, self._codes, self._indptr = labels_of_ids(table.ids), found.codes, found.indptr
        self._order = np.argsort(self._ids, kind="stable")
        self._latest: tuple[Exposure, Key, int, Array] | None = None

    def of_exposure(self, exposure: Exposure, key: Key) -> Array:
        """Return the share of each label in the exposure, float64 (n_labels,); NaN without exposure."""
        if self._latest is None or self._latest[:3] != (exposure, key, exposure.n_lists):
            ids, counts = exposure.lists_by_item(key)
            entries = self._entries(ids)
            without = ids[(counts > 0) & ~entries.has_label].tolist()
            if without:
                found = (
                    f" has no value for {counted(len(without), 'item')} of the lists, such as item {shown(without[0])}"
                )
                raise MetricError(Place("items", self.column), found)
            self._latest = exposure, key, exposure.n_lists, self._shares(entries, counts)
        return self._latest[3]

    def of_rows(self, ids: Ids, rows: Array) -> Array:
        """Return the share of each label in numbers of rows by item; items without a label are left out."""
        return self._shares(self._entries(labels_of_ids(ids)), rows)

    def _entries(self, ids: Array) -> Entries:
        mine, theirs = alike([self._ids, ids])
        at = np.minimum(np.searchsorted(mine, theirs, sorter=self._order), max(len(mine) - 1, 0))
        rows = self._order[at]
        places, ends = chosen_rows(self._indptr, np.where(mine[rows] == theirs, rows, -1))
        lengths = np.diff(ends)
        item = np.repeat(np.arange(len(ids)), lengths)
        return Entries(item, self._codes[places], 1.0 / np.repeat(lengths, lengths), lengths > 0)

    def _shares(self, entries: Entries, counts: Array) -> Array:
        parts = np.bincount(entries.label, counts[entries.item] * entries.weight, len(self.names))
        total = math.fsum(parts)
        return parts / total if total else np.full(len(parts), math.nan)

    def effects(self, exposure: Exposure, key: Key, gradient: Array) -> Effects:
        """Return the effects of lists on a function of the shares; `gradient`, float64 (n_labels,), is its gradient."""
        ids, counts = exposure.lists_by_item(key)
        entries, shares = self._entries(ids), self.of_exposure(exposure, key)
        values = np.bincount(entries.item, gradient[entries.label] * entries.weight, len(ids))
        scale = exposure.n_lists / (float(counts.sum()) or 1.0)
        own = scale * (values - math.fsum(gradient * shares))
        return Effects(np.append(0.0, own), np.arange(1, len(own) + 1), key[0])

    def calls_of_shares(self, k: int) -> Iterator[Call]:
        """Yield a metric for each label: its share of exposure."""
        for nth, name in enumerate(self.names):
            value, gradient = itemgetter(nth), np.arange(len(self.names)) == nth
            yield self._call(f"share({self.column}={name})", "none", k, value, partial(_constant, gradient * 1.0))

    def calls_of_concentration(self, k: int) -> Iterator[Call]:
        """Yield the sum of the squared shares of all labels, and their Gini index."""
        yield self._call(f"hhi({self.column})", "lower", k, _squares, partial(np.multiply, 2.0))
        yield self._call(f"provider_gini({self.column})", "lower", k, _gini, _gini_gradient)

    def _call(
        self, name: str, better: Kind, k: int, value: Callable[[Array], float], gradient: Callable[[Array], Array]
    ) -> Call:
        """Return a metric that is a function of the shares; metrics may live longer than the labels."""
        labelled: Labelled = weakref.proxy(self)

        def formula(s: ListStatistics) -> Over:
            key: Key = s.cutoff, "one"
            return s.over_lists(
                lambda own: float(value(labelled.of_exposure(own, key))),
                "one",
                lambda own: labelled.effects(own, key, gradient(labelled.of_exposure(own, key))),
            )

        return Call(Metric(name, formula, (0.0, 1.0), name, "", Direction(better), True, LISTS), (), k)  # noqa: FBT003


def _constant(gradient: Array, _: Array) -> Array:
    return gradient


def _squares(shares: Array) -> float:
    return math.fsum(shares * shares)


def _gini(shares: Array) -> float:
    n = len(shares)
    return math.fsum(np.sort(shares) * (2 * np.arange(1, n + 1) - n - 1)) / n


def _gini_gradient(shares: Array) -> Array:
    n, ascending = len(shares), np.sort(shares)
    low, high = (np.searchsorted(ascending, shares, side) for side in ("left", "right"))
    gradient: Array = (low + high - n) / n  # twice the mid-rank - n - 1
    return gradient


def labels_of_ids(ids: Ids) -> Array:
    """Return ids as an array of integers or strings."""
    if isinstance(ids, Strings):
        return as_labels(ids.values.take(arrow_of(ids.codes)).to_pylist())
    return as_labels(ids.tolist()) if ids.dtype == object else ids

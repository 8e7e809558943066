"""Slots of items: small integers, so that arrays can hold a value per item."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import Argument, InputError
from fastrec.inputs.ragged import read_only
from fastrec.kernels import items as kernels
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]
MAX_GAP = 4  # unused slots per row, from which on ids are numbered again
MIN_SLOTS = 1 << 16


class Slots(NamedTuple):
    """The slot of each row, and the items that have slots."""

    of_rows: Array  # int32 or int64 (n_rows,)
    n: int
    ids: Array | None  # int64 (n,): the item of each slot; None: an item is its own slot

    @classmethod
    def of(cls, items: Array, without_item: tuple[str | Argument, ...] = ()) -> Slots:
        """Give slots to the distinct items of rows: themselves if they are small.

        `without_item` is the error message if a place has no item.
        """
        largest = int(items.view(f"u{items.dtype.itemsize}").max(initial=0))  # negative ones are the largest
        if largest > np.iinfo(items.dtype).max:
            raise InputError(*without_item)
        size = largest + 1 if len(items) else 0
        if size <= max(MIN_SLOTS, MAX_GAP * len(items)):
            return cls(items, size, None)
        wide = read_only(items.astype(np.int64, copy=False))
        slots, room = np.empty(len(items), np.int64), MIN_SLOTS
        while True:
            found = np.empty(room, np.int64)
            table = np.full(2 * room, -1)
            n = call(kernels.number_items, wide, table, slots, found, work=8 * len(items))
            if n >= 0:
                return cls(slots, n, found[:n])
            room *= 4

    def find(self, items: Array) -> Array:
        """Return the slots of other items, int64 (n,); -1 for those without one."""
        if self.ids is None:
            return np.where((items >= 0) & (items < self.n), items, -1).astype(np.int64)
        order = np.argsort(self.ids)
        at = np.searchsorted(self.ids[order], items)
        at[at == self.n] = 0
        found: Array = np.where(self.ids[order[at]] == items, order[at], -1) if self.n else np.full(len(items), -1)
        return found

    def spread(self, items: Array, values: Array, other: float) -> Array:
        """Return the value of each slot, (n, ...), from the values of items; `other` for slots of further items."""
        slots = self.find(items)
        out = np.full((self.n, *values.shape[1:]), other, values.dtype)
        out[slots[slots >= 0]] = values[slots >= 0]
        return out

    def mark(self, items: Array) -> Array:
        """Return which slots have one of some items."""
        return self.spread(items, np.ones(len(items), bool), False)  # noqa: FBT003

    def items(self, slots: Array) -> Array:
        """Return the items of slots."""
        return slots if self.ids is None else self.ids[slots]

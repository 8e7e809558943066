"""How many users and rows a history has of each item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.inputs.arrays import RawSide, read_lists
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.column_names import Columns
from fastrec.inputs.frames import read_frame
from fastrec.inputs.ids import Ids, encode_strings, kind_of_ids, spell
from fastrec.inputs.ragged import read_only
from fastrec.items.slots import Slots
from fastrec.kernels import items as kernels
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


class HistoryCounts(NamedTuple):
    """Users and rows of each item of a history."""

    ids: Ids
    users: Array  # int64 (n_items,): a user counts once, however often the item is there
    rows: Array  # int64 (n_items,)
    n_users: int  # with at least one row
    n_rows: int
    codes: Array | None = None  # the items in the numbering of the lists, once lists are read

    @classmethod
    def read(cls, history: Any, columns: Columns, n_threads: int) -> HistoryCounts:
        """Count the items of all users of a history in any of its forms."""
        if isinstance(history, HistoryCounts):
            return history
        opened = open_foreign(history, "history")
        if isinstance(opened, Frame):
            return cls.of(read_frame(opened._replace(name="history"), columns, n_threads))
        return cls.of(read_lists(opened, "history"))

    @classmethod
    def joined(cls, parts: Sequence[HistoryCounts]) -> HistoryCounts:
        """Return the counts of several histories without users in common."""
        having = [own for own in parts if own.n_rows] or parts[:1]
        if len(having) == 1:
            return having[0]
        ids, codes = np.unique(np.concatenate([own.ids for own in having]), return_inverse=True)
        columns = ([getattr(own, name) for own in having] for name in ("users", "rows"))
        users, rows = (np.bincount(codes, weights=np.concatenate(own)).astype(np.int64) for own in columns)
        return cls(ids, users, rows, sum(own.n_users for own in having), sum(own.n_rows for own in having))

    @classmethod
    def of(cls, side: RawSide) -> HistoryCounts:
        """Count the items of the users of a side."""
        strings: Any = None
        if kind_of_ids(side.items) in ("none", "integers"):
            items = side.items if isinstance(side.items, np.ndarray) and len(side.items) else np.zeros(0, np.int64)
        else:
            (items,), strings = encode_strings([side.items])
        if strings is None and items.min(initial=0) < 0:
            raise InputError(f"history: item ids must not be negative, found {items.min()}")
        slots = Slots.of(items.astype(np.int64, copy=False))
        users, rows, latest = np.zeros(slots.n, np.int64), np.zeros(slots.n, np.int64), np.full(slots.n, -1)
        given = read_only(slots.of_rows.astype(np.int64, copy=False)), read_only(side.indptr)
        call(kernels.count_users, *given, users, rows, latest, work=4 * len(items))
        known = np.flatnonzero(rows)
        ids = slots.items(known)
        if strings is not None:
            ids = np.fromiter(spell(strings, ids), object, len(ids))
        n_users = int(np.count_nonzero(np.diff(side.indptr)))
        return cls(ids, users[known], rows[known], n_users, len(items))

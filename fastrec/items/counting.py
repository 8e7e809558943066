"""The exposure of the items of a batch: counts of lists by item, in threads."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.checks import counted
from fastrec.exceptions import Argument, InputError
from fastrec.inputs.ragged import chosen_rows, longest_row, read_only
from fastrec.inputs.users import spelled_labels
from fastrec.items.exposure import Exposure, Key, fixed_weights
from fastrec.items.sums import cuts_of
from fastrec.kernels import exposure as kernels
from fastrec.runtime.launcher import launch

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]
ROWS_PER_TABLE = 1 << 20  # from which on a thread with a table of its own pays


def collect_exposure(
    sides: BatchSides, _: float, keys: tuple[Any, ...], n_threads: int
) -> Iterator[tuple[Any, Exposure]]:
    """Yield the exposure of a batch, over all users and for each group."""
    users = sides.users
    if users.weights is not None:
        raise InputError(
            Argument("user_weight"), " does not apply to metrics of the exposure of items: lists count once"
        )
    n_users = sides.recs.n_users
    batch = _Batch(sides, keys, n_threads)
    yield None, batch.count(np.arange(n_users))
    for codes in users.groups:
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for members in np.split(order, starts[1:]) if len(order) else ():
            yield users.keys[codes[members[0]] - 1], batch.count(members)


class _Batch:
    """The lists of a batch, by the slots of their items."""

    def __init__(self, sides: BatchSides, keys: tuple[Key, ...], n_threads: int) -> None:
        self._slots = sides.slots
        self._indptr = sides.recs.indptr
        self._names, self._strings = sides.names, sides.names.strings
        self._keys, self._n_threads = keys, n_threads
        self._known: Array | None = None
        self._outside: Array | None = None  # slots of items that the catalogue lacks
        self._n_known = 0
        if sides.catalogue is not None:
            assert sides.catalogue.codes is not None
            self._outside = ~self._slots.mark(sides.catalogue.codes)
        if any(weight == "history" for _, weight in keys):
            assert sides.counts is not None and sides.counts.codes is not None
            sides.used.add("counts")
            sides.note_rows_without(sides.counts.codes)
            self._known, self._n_known = self._slots.mark(sides.counts.codes), len(sides.counts.codes)

    def count(self, users: Array) -> Exposure:
        """Return the exposure of the lists of some users."""
        lengths = np.diff(self._indptr)[users]
        n_lists = int(np.count_nonzero(lengths))
        if lengths.sum() >= self._slots.n:
            counts, own = _Counter(self._slots.of_rows, self._indptr, users, self._slots.n, self._n_threads), None
        else:  # few rows: tables of all slots would cost more than they hold
            rows, indptr = chosen_rows(self._indptr, users)
            own, of_rows = np.unique(self._slots.of_rows[rows], return_inverse=True)
            counts = _Counter(of_rows, indptr, np.arange(len(users)), len(own), 1)
        found = counts.of(self._keys)
        if self._known is not None:
            shown = self._known if own is None else self._known[own]
            for nth, key in enumerate(self._keys):
                if key[1] == "history":
                    found[nth, 0] = found[nth, 0] * shown
        held = np.flatnonzero(
            functools.reduce(np.logical_or, (one > 0 for one in found.values()), np.zeros(counts.n, bool))
        )
        held_slots = held if own is None else own[held]
        ids = self._slots.items(held_slots)
        if self._outside is not None and self._outside[held_slots].any():
            self._refuse(ids[self._outside[held_slots]])
        order = np.argsort(ids, kind="stable")
        ids = ids[order] if self._strings is None else spelled_labels(self._strings, ids[order])
        return Exposure(
            self._keys, ids, {name: one[held[order]] for name, one in found.items()}, n_lists, self._n_known
        )

    def _refuse(self, items: Array) -> None:
        raise InputError(
            f"found {counted(len(items), 'item')} of the lists, such as item {self._names.item(int(items[0]))}, that ",
            Argument("items"),
            ", the catalogue, lacks: add what it lacks, or give its size as ",
            Argument("n_items", (...,)),
        )


class _Counter(NamedTuple):
    """Counts of the slots of the lists of some users."""

    of_rows: Array
    indptr: Array
    users: Array
    n: int
    n_threads: int

    def of(self, keys: Sequence[Key]) -> dict[tuple[int, int], Array]:
        """Return the numbers of all slots under each key; see `Exposure`."""
        found: dict[tuple[int, int], Array] = {}
        for weight in dict.fromkeys("one" if own == "history" else own for _, own in keys):
            names = ("one", "history") if weight == "one" else (weight,)
            at = [nth for nth, key in enumerate(keys) if key[1] in names]
            cuts, columns = cuts_of([keys[nth][0] for nth in at])
            tables = [self.table(cuts)] if weight == "one" else self._by_step(cuts, weight)
            if weight != "length":
                for table in tables:
                    np.cumsum(table, axis=1, out=table)
            for step, table in enumerate(tables):
                found |= {(nth, step): table[:, column] for nth, column in zip(at, columns, strict=True)}
        return found

    def _by_step(self, cuts: Array, weight: Any) -> list[Array]:
        """Return sums of weights, in two steps."""
        weights = read_only(fixed_weights(weight, longest_row(self.indptr)))
        table = self.table(cuts, weights, weight == "length")
        return [table[:, :, 0], table[:, :, 1]]

    def table(self, cuts: Array, *weights: Any) -> Array:
        """Return the table that a kernel fills, in threads with a table each."""
        rows = int(np.diff(self.indptr)[self.users].sum())
        n_parts = min(self.n_threads, max(1, rows // ROWS_PER_TABLE))
        edges = len(self.users) * np.arange(n_parts + 1) // n_parts
        kernel, dtype = (kernels.add_weights, np.int64) if weights else (kernels.count_lists, np.int32)
        tables = np.zeros((n_parts, self.n, len(cuts), 2) if weights else (n_parts, self.n, len(cuts)), dtype)
        given = *map(read_only, (edges, self.of_rows, self.indptr, self.users, cuts)), *weights, tables
        launch(kernel, n_parts, *given, work=rows + len(self.users), n_threads=self.n_threads)
        total: Array = tables[0].astype(np.int64, copy=False)
        for own in tables[1:]:
            total += own
        return total

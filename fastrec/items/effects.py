"""Effects of users' lists on metrics of the exposure of items, from which standard errors follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.inputs.users import alike
from fastrec.items.exposure import Effects, Exposure
from fastrec.items.sums import AT_ONCE, cuts_of, launch_users, sum_rows
from fastrec.kernels import exposure as kernels

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]


class Walk(NamedTuple):
    """Metrics of one cut-off whose values depend on the same levels of items, by their row of the result."""

    levels: Array
    k: int | None
    rows: list[int]


def add_effects(
    exposure: Exposure,
    effects: Mapping[int, Effects],
    sides: BatchSides,
    users: Array,
    out: Array,
    n_threads: int,
) -> None:
    """Write the effects of the lists of some users into rows of out, float64 (n_rows, n_users), by row."""
    codes = _codes(exposure, sides)
    plain = {row: own for row, own in effects.items() if own.weight == "one"}
    if plain:
        _add_plain(plain, codes, sides, users, out, n_threads)
    for row, own in effects.items():
        if row not in plain:
            _add_weighted(own, codes, sides, users, out[row], n_threads)


def _codes(exposure: Exposure, sides: BatchSides) -> Array:
    """Return the items of an exposure in the numbering of a batch; -1 for items that it lacks."""
    ids = exposure.ids
    if sides.item_labels is None:
        return ids
    mine, known = alike([ids, sides.item_labels])
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, mine, sorter=order), len(known) - 1)
    found: Array = np.where(known[order[at]] == mine, order[at], -1)
    return found


def _add_plain(
    effects: Mapping[int, Effects], codes: Array, sides: BatchSides, users: Array, out: Array, n_threads: int
) -> None:
    slots, indptr = sides.slots, sides.recs.indptr
    walks = list(_walks(effects))
    n_levels = max(len(own.values) for own in effects.values())
    levels = np.zeros((len(walks), slots.n), np.uint16 if n_levels <= 1 << 16 else np.int32)
    values, offsets = np.zeros((len(walks), n_levels, AT_ONCE)), np.zeros((len(walks), AT_ONCE))
    rows = np.full((len(walks), AT_ONCE), -1)
    for nth, walk in enumerate(walks):
        levels[nth] = slots.spread(codes, walk.levels, 0)
        for column, row in enumerate(walk.rows):
            own = effects[row]
            rows[nth, column], offsets[nth, column] = row, 0.0 if own.by_length else own.offset
            values[nth, : len(own.values), column] = own.values
    cuts = np.array([cuts_of([walk.k])[0][0] for walk in walks])
    given = map(read_only, (slots.of_rows, indptr, users, cuts, levels, values, offsets, rows))
    work = len(slots.of_rows) * len(walks)
    launch_users(kernels.add_effects, len(users), *given, out, work=work, n_threads=n_threads)
    for row, own in effects.items():
        if own.by_length:
            lengths = np.minimum(np.diff(indptr)[users], cuts_of([own.k])[0][0])
            out[row, users] = np.where(lengths > 0, own.offset + out[row, users] / np.sqrt(np.maximum(lengths, 1)), 0.0)


def _walks(effects: Mapping[int, Effects]) -> Iterator[Walk]:
    """Yield metrics that one walk over the lists serves; the longest first, which brings the lists into the cache."""
    together: dict[tuple[int, int | None], list[int]] = {}
    for row, own in effects.items():
        together.setdefault((id(own.levels), own.k), []).append(row)
    for (_, k), rows in sorted(together.items(), key=lambda item: cuts_of([item[0][1]])[0][0], reverse=True):
        for first in range(0, len(rows), AT_ONCE):
            yield Walk(effects[rows[0]].levels, k, rows[first : first + AT_ONCE])


def _add_weighted(own: Effects, codes: Array, sides: BatchSides, users: Array, out: Array, n_threads: int) -> None:
    slots, indptr = sides.slots, sides.recs.indptr
    values = own.values[slots.spread(codes, own.levels, 0)][slots.of_rows]
    cuts, _ = cuts_of([own.k])
    out[users] = own.offset + sum_rows(values, indptr, cuts, own.weight, n_threads)[0][users]

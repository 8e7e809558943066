"""Pairs of listed items with different gains, and how many of them are in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.pairs import pairs_of_users
from fastrec.items.listed import ListsAndTruth
from fastrec.metrics.program import UNCUT

Array = np.ndarray[Any, Any]


def _pairs(sides: ListsAndTruth, cutoff: int | None, least: float) -> Array:
    """Return the pairs of each list within a cut-off, as `count_pairs_of_users` writes them; no ranks are tied."""
    recs = sides.recs
    within = recs.ranks <= (UNCUT if cutoff is None else cutoff)
    lengths = np.bincount(recs.users[within], minlength=recs.n_users)
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    gains = np.where(sides.is_hit(least), np.maximum(sides.gains_of_rows, 0.0), 0.0)
    return pairs_of_users(indptr, gains[within], -recs.ranks[within], None)


def fill(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill numbers of pairs; a key has which of them ("right", "all"), a cut-off and the `min_gain` of the formula."""
    known: dict[tuple[Any, ...], Array] = {}
    for nth, (what, cutoff, least) in enumerate(keys):
        if (cutoff, least) not in known:
            known[cutoff, least] = _pairs(sides, cutoff, least)
        right, _, pairs, _ = known[cutoff, least]
        out[nth] = right if what == "right" else pairs

"""Pairs of listed items with different gains, and how many of them are in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.rows import pairs_of_users
from fastrec.inputs.slots import BatchSides
from fastrec.items.sums import is_hit
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import provider
from fastrec.metrics.ranks import PAIRS

Array = np.ndarray[Any, Any]


def _pairs(sides: BatchSides, cutoff: int | None, least: float) -> Array:
    """Return the pairs of each list within a cut-off, as `count_pairs_of_users` writes them; no ranks are tied."""
    recs = sides["recs"]
    within = recs.ranks <= (UNCUT if cutoff is None else cutoff)
    lengths = np.bincount(recs.users[within], minlength=recs.n_users)
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    gains = np.where(is_hit(sides, least), np.maximum(sides["gains of rows"], 0.0), 0.0)
    return pairs_of_users(indptr, gains[within], -recs.ranks[within], None)


@provider(PAIRS, sides=["recs", "truth"], by_part=True)
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill numbers of pairs; a key has which of them ("right", "all"), a cut-off and the `min_gain` of the formula."""
    known: dict[tuple[Any, ...], Array] = {}
    for nth, (what, cutoff, least) in enumerate(keys):
        if (cutoff, least) not in known:
            known[cutoff, least] = _pairs(sides, cutoff, least)
        right, _, pairs, _ = known[cutoff, least]
        out[nth] = right if what == "right" else pairs

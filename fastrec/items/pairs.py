"""Pairs of listed items with different gains, and how many of them are in the right order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.ragged import longest_row, read_only
from fastrec.inputs.slots import BatchSides
from fastrec.items.sums import UNCUT, gains_of_hits
from fastrec.kernels import pairs as kernels
from fastrec.metrics.providers import provider
from fastrec.metrics.ranks import PAIRS
from fastrec.runtime.compiler import Entry

Array = np.ndarray[Any, Any]
STEPS_PER_ROW = 64
_count_pairs = Entry(kernels.count_pairs_of_users, "count_pairs_of_lists")


def _pairs(sides: BatchSides, cutoff: int | None, least: float) -> Array:
    """Return the pairs of each list within a cut-off, int64 (3, n_users): in the right order, 0, and all of them."""
    recs = sides["recs"]
    within = recs.ranks <= (UNCUT if cutoff is None else cutoff)
    users, ranks = recs.users[within], recs.ranks[within]
    indptr = np.append(0, np.cumsum(np.bincount(users, minlength=recs.n_users))).astype(np.int64)
    order = np.lexsort((-ranks, users))  # the kernel takes rows by ascending score
    gains = gains_of_hits(sides, least)[within][order]
    ones, longest = np.ones(len(order), np.int64), longest_row(indptr)
    spare, sums = (np.empty(longest), np.empty(longest, np.int64)), np.zeros((3, recs.n_users), np.int64)
    count = _count_pairs.suited_to(STEPS_PER_ROW * len(order))
    count(read_only(indptr), gains, read_only(-ranks[order].astype(np.float64)), ones, spare, sums)
    return sums


@provider(PAIRS, sides=["recs", "truth"])
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill numbers of pairs; a key has which of them ("right", "all"), a cut-off and the `min_gain` of the formula."""
    known: dict[tuple[Any, ...], Array] = {}
    for nth, (what, cutoff, least) in enumerate(keys):
        if (cutoff, least) not in known:
            known[cutoff, least] = _pairs(sides, cutoff, least)
        right, _, pairs = known[cutoff, least]
        out[nth] = right if what == "right" else pairs

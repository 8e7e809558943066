"""Statistics of lists that tell items judged not relevant from items that nobody judged."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import BatchSides
from fastrec.kernels import judgements as kernels
from fastrec.metrics.judged import PROVIDER
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant, provider
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

Array = np.ndarray[Any, Any]


@functools.cache
def _entry(name: str) -> Entry:
    return Entry(getattr(kernels, name), name, allocates=False)


def _kinds(gains: Array, least: float) -> Array:
    """Return the kind of each row of the lists, int8, by the gain of its item; NaN is an item that the truth lacks."""
    kinds = np.where(np.isnan(gains), kernels.UNKNOWN, np.where(gains < 0, kernels.POOLED, kernels.NOT_RELEVANT))
    kinds[is_relevant(gains, least)] = kernels.RELEVANT
    return kinds.astype(np.int8)


def _judged(sides: BatchSides, least: float) -> kernels.JudgedLists:
    recs, truth = sides["recs"], sides["truth"]
    relevant = is_relevant(truth.gains, least)
    others = ~relevant & (truth.gains >= 0)
    counts = (np.bincount(truth.users[own], minlength=truth.n_users).astype(np.int64) for own in (relevant, others))
    arrays = (_kinds(sides["gains of rows"], least), np.asarray(recs.indptr, np.int64), *counts)
    return kernels.JudgedLists(*map(read_only, arrays))


@provider(PROVIDER, sides=["recs", "truth"])
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel, a cut-off, a parameter and the `min_gain` of the formula."""
    known: dict[float, kernels.JudgedLists] = {}
    for nth, (name, cutoff, parameter, least) in enumerate(keys):
        if least not in known:
            known[least] = _judged(sides, least)
        judged = known[least]
        limit = UNCUT if cutoff is None else cutoff
        run = _entry(name).suited_to(len(judged.kinds), judged, limit, parameter, out[nth], 0, 0)
        over_users(functools.partial(run, judged, limit, parameter, out[nth]), len(judged.n_rel), sides["n_threads"])

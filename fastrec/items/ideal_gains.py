"""Statistics of the gains of lists against those of the best order."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import BatchSides
from fastrec.items.sums import gains_of_hits
from fastrec.kernels import ideal_gains as kernels
from fastrec.metrics.graded import PROVIDER
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant, provider
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

Array = np.ndarray[Any, Any]


@functools.cache
def _entry(name: str) -> Entry:
    return Entry(getattr(kernels, name), name, allocates=False)


def _graded(sides: BatchSides, least: float) -> kernels.GradedLists:
    recs, truth = sides["recs"], sides["truth"]
    relevant = is_relevant(truth.gains, least) & (truth.gains > 0)
    users, gains = truth.users[relevant], truth.gains[relevant]
    too_large = np.isinf(np.bincount(users, gains, truth.n_users))
    if too_large.any():
        raise MetricError(f"needs gains whose sum is a double: those of user {int(too_large.argmax())} are too large")
    indptr = np.append(0, np.cumsum(np.bincount(users, minlength=truth.n_users))).astype(np.int64)
    ideals = gains[np.lexsort((-gains, users))]
    arrays = (gains_of_hits(sides, least), np.asarray(recs.indptr, np.int64), ideals, indptr)
    return kernels.GradedLists(*map(read_only, arrays))


@provider(PROVIDER, sides=["recs", "truth"])
def fill(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel, a cut-off and the `min_gain` of the formula."""
    known: dict[float, kernels.GradedLists] = {}
    for nth, (name, cutoff, least) in enumerate(keys):
        if least not in known:
            known[least] = _graded(sides, least)
        given = known[least], UNCUT if cutoff is None else cutoff, out[nth]
        run = _entry(name).suited_to(8 * (len(known[least].gains) + len(known[least].ideals)), *given, 0, 0)
        over_users(functools.partial(run, *given), sides["recs"].n_users, sides["n_threads"])

"""Statistics of lists that tell items judged not relevant from items that nobody judged."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.items.listed import ListsAndTruth, discounts_of_ranks, longest_of, starts_among
from fastrec.items.sums import keep_short
from fastrec.kernels import judgements as kernels
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def _judged(sides: ListsAndTruth, least: float) -> kernels.JudgedLists:
    truth, listed, gains = sides.truth, sides.listed_rows, sides.gains_of_truth
    relevant = sides.relevant_rows(least)
    kinds = np.full(len(gains), kernels.RELEVANT, np.int8)
    if not relevant.all():
        others = np.where(gains < 0, np.int8(kernels.POOLED), np.int8(kernels.NOT_RELEVANT))
        kinds = np.where(relevant, kinds, others)
    of_kinds = (kinds == kind for kind in (kernels.RELEVANT, kernels.NOT_RELEVANT))
    counts = (np.diff(starts_among(chosen, truth.indptr)) for chosen in of_kinds)
    own = sides.of_events(kinds)
    arrays = (listed.counts, sides.ranks_of_events, own, listed.n_rec, *counts, np.zeros(1))
    return kernels.JudgedLists(*map(read_only, arrays))


@keep_short
def _powers(p: float, longest: int) -> Array:
    powers: Array = read_only(np.multiply.accumulate(np.append(1.0, np.full(longest, p))))
    return powers


def _weights(name: str, parameters: tuple[float, ...], judged: kernels.JudgedLists) -> Array:
    """Return the weights of ranks that a kernel reads."""
    if name == "sum_residual":
        return _powers(parameters[0], longest_of(judged.n_rec))
    return discounts_of_ranks(longest_of(judged.n_rec)) if name == "sum_by_misses" else judged.weights


def fill(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel, its parameters and the formula's `min_gain`."""
    known = functools.cache(functools.partial(_judged, sides))
    for (name, parameters, least), values in zip(keys, out, strict=True):
        judged = known(least)
        judged = judged._replace(weights=_weights(name, parameters, judged))
        call(getattr(kernels, name), judged, np.array(parameters), values, work=len(values))

"""What a user's list has in common with the user's history and with another list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.inputs.arrays import FlatSide
from fastrec.inputs.ragged import read_only
from fastrec.items.sums import cuts_of, find_places, launch_users, rank_biased_overlap, sum_rows
from fastrec.kernels.items import count_places
from fastrec.metrics.program import UNCUT

if TYPE_CHECKING:
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]


def _lengths(side: FlatSide, k: int | None) -> Array:
    """Return the lengths of the lists within k."""
    return np.minimum(np.diff(side.indptr), UNCUT if k is None else k)


def _common(places: Array, side: FlatSide, cutoffs: Sequence[int | None], limited: bool, n_threads: int) -> Array:  # noqa: FBT001
    """Return how many items within each cut-off have a place, up to the same cut-off if `limited`."""
    cuts, at = cuts_of(cutoffs)
    limits = cuts if limited else np.full(len(cuts), UNCUT)
    counts = np.empty((len(cuts), side.n_users))
    given = *map(read_only, (places, side.indptr, cuts, limits)), counts
    launch_users(count_places, side.n_users, *given, work=len(places) * len(cuts), n_threads=n_threads)
    found: Array = counts[at]
    return found


def fill_history(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill the rows of the user's history, ("rows",), or how many items within k are in it, ("common", k)."""
    recs, history = sides.recs, sides.read_history(ordered=False)
    common = [nth for nth, key in enumerate(keys) if key[0] == "common"]
    if common:
        places = find_places(recs, history, sides.n_threads)
        cutoffs = [keys[nth][1] for nth in common]
        out[common] = _common(places, recs, cutoffs, False, sides.n_threads)  # noqa: FBT003
    out[[nth for nth, key in enumerate(keys) if key[0] == "rows"]] = np.diff(history.indptr)


def fill_reference(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill lengths of the reference, ("n", k), common items, ("common", k), or rank-biased overlap, ("rbo", ...)."""
    recs, reference, n_threads = sides.recs, sides.reference, sides.n_threads
    assert reference is not None
    places = find_places(recs, reference, n_threads)
    common = [nth for nth, key in enumerate(keys) if key[0] == "common"]
    if common:
        out[common] = _common(places, recs, [keys[nth][1] for nth in common], True, n_threads)  # noqa: FBT003
    for nth, (kind, *options) in enumerate(keys):
        if kind == "n":
            out[nth] = _lengths(reference, options[0])
        elif kind == "rbo":
            p, form, k = options
            lengths = np.stack([_lengths(recs, k), _lengths(reference, k)])
            out[nth] = rank_biased_overlap(places, recs.indptr, lengths, p, form, k, n_threads)


def fill_hits(sides: BatchSides, keys: Sequence[Any], out: Array) -> None:
    """Fill the relevant items within k that are not in the reference; keys are (min_gain, k)."""
    recs, n_threads = sides.recs, sides.n_threads
    assert sides.reference is not None
    outside = find_places(recs, sides.reference, n_threads) == 0
    for nth, (least, k) in enumerate(keys):
        cuts, _ = cuts_of([k])
        out[nth] = sum_rows((outside & sides.is_hit(least)) * 1.0, recs.indptr, cuts, "one", n_threads)[0]

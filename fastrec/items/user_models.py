"""Statistics of users who read their lists downwards, and of lists against their ideal."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrec.inputs.ragged import read_only
from fastrec.inputs.slots import BatchSides
from fastrec.items.sums import gains_of_hits, is_hit, rank_biased_overlap
from fastrec.kernels import user_models as kernels
from fastrec.metrics.program import UNCUT
from fastrec.metrics.providers import is_relevant, provider
from fastrec.metrics.user_models import COMPATIBILITY, MODELS
from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import over_users

Array = np.ndarray[Any, Any]
_expect_gain = Entry(kernels.expect_gain, "expect_gain", allocates=False)


@provider(MODELS, sides=["recs", "truth"])
def fill_models(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill gains per rank; a key has the kind of a user model, its parameter, max_gain, cut-off, depth, `min_gain`."""
    indptr = np.asarray(sides["recs"].indptr, np.int64)
    known: dict[float, Array] = {}
    for nth, (kind, parameter, largest, cutoff, depth, least) in enumerate(keys):
        if least not in known:
            known[least] = gains_of_hits(sides, least)
        limits = (UNCUT if limit is None else limit for limit in (cutoff, depth))
        model = kernels.UserModel(kind, parameter, largest, *limits)
        given = read_only(known[least]), read_only(indptr), model, out[nth]
        run = _expect_gain.suited_to(8 * len(known[least]), *given, 0, 0)
        over_users(functools.partial(run, *given), sides["recs"].n_users, sides["n_threads"])


def _ideal_places(sides: BatchSides, least: float) -> tuple[Array, Array]:
    """Return the place of each row of the lists in the ideal list of its user, 0 for misses, and the ideals' lengths.

    The ideal list has the relevant items by falling gain, and equal gains in the order of the list.
    """
    recs, truth = sides["recs"], sides["truth"]
    relevant, hits = is_relevant(truth.gains, least), np.flatnonzero(is_hit(sides, least))
    levels, of_all = np.unique(
        np.concatenate([-sides["gains of rows"][hits], -truth.gains[relevant]]), return_inverse=True
    )
    wanted = recs.users[hits] * len(levels) + of_all[: len(hits)]
    known = np.sort(truth.users[relevant] * len(levels) + of_all[len(hits) :])
    above = np.searchsorted(known, wanted) - np.searchsorted(known, recs.users[hits] * len(levels))
    order = np.argsort(wanted, kind="stable")  # rows of a user are by rank, so this keeps the order of the list
    earlier = np.empty(len(hits), np.int64)
    earlier[order] = np.arange(len(hits)) - np.searchsorted(wanted[order], wanted[order])
    places = np.zeros(len(recs.items), np.int64)
    places[hits] = 1 + above + earlier
    return places, np.bincount(truth.users[relevant], minlength=truth.n_users)


@provider(COMPATIBILITY, sides=["recs", "truth"])
def fill_compatibility(sides: BatchSides, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill overlaps with ideal lists; a key has p, whether to divide by the best overlap, a cut-off, `min_gain`."""
    recs = sides["recs"]
    for nth, (p, is_normalized, cutoff, least) in enumerate(keys):
        places, n_rel = _ideal_places(sides, least)
        n_rec = np.minimum(np.diff(recs.indptr), UNCUT if cutoff is None else cutoff)
        lengths = np.stack([n_rec, n_rel])
        found, depths = rank_biased_overlap(places, recs.indptr, lengths, p, "truncated", None, sides["n_threads"])
        if is_normalized:
            deepest = lengths.max(axis=0)
            best = depths.weights[n_rel] + n_rel * (depths.harmonic[deepest] - depths.harmonic[n_rel])
            found = np.minimum(np.divide(found * depths.weights[deepest], best, out=found, where=best > 0), 1.0)
            in_place = np.bincount(recs.users[places == recs.ranks], minlength=recs.n_users)
            found[(n_rel > 0) & (np.minimum(in_place, n_rec) == n_rel)] = 1.0  # without the rounding of sums
        out[nth] = found

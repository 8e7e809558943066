"""Statistics of the gains and judgements of a user's own list and truth, filled for some users at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fastrec.exceptions import MetricError
from fastrec.inputs.ragged import read_only
from fastrec.inputs.rows import pairs_of_users
from fastrec.items.listed import ListsAndTruth, discounts_of_ranks, longest_of, starts_among
from fastrec.items.sums import MAX_DEPTH, group_cutoffs, keep_short
from fastrec.kernels import ideal_gains as kernels
from fastrec.kernels import judgements as judged
from fastrec.kernels import user_models
from fastrec.kernels.runs import two_sum
from fastrec.metrics.program import UNCUT
from fastrec.runtime.launcher import call

Array = np.ndarray[Any, Any]


def fill_ideal_gains(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel and the `min_gain` of the formula."""
    for (name, least), values in zip(keys, out, strict=True):
        call(getattr(kernels, name), *sides.ideal_sums(least), values, work=2 * len(values))


def fill_orders(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill the number of relevant items, or of their levels of gain; a key has "n_rel" or "levels", and `min_gain`."""
    for (name, least), row in zip(keys, out, strict=True):
        lists, sums = sides.ideal_sums(least)
        row[:] = lists.n_rel if name == "n_rel" else np.minimum(sums.levels[sums.starts], lists.n_rel)


def fill_compatibility(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill overlaps with ideal lists; a key has a cut-off, p, whether to divide by the best overlap, `min_gain`."""
    lengths = sides.listed_rows.n_rec, np.diff(sides.truth.indptr)

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        p, is_normalized, least = key
        lists = sides.graded_lists(least, math.nan)
        given = lists, _depths(p, longest_of(*lengths)), is_normalized, cutoffs, found
        call(kernels.overlap_with_ideal, *given, work=len(lists.ranks) * (1 + len(cutoffs)))

    _fill_by_cutoffs(keys, out, fill_one)


@keep_short
def _depths(p: float, deepest: int) -> kernels.DepthWeights:
    if deepest > MAX_DEPTH:
        raise MetricError(f"takes lists and cut-offs up to {MAX_DEPTH:,}, found {deepest:,}")
    powers = np.array([math.pow(p, d) for d in range(deepest)])
    terms = powers / np.arange(1, deepest + 1)
    sums = np.append(0.0, np.cumsum(terms))
    rest = np.append(0.0, np.cumsum(two_sum(sums[:-1], terms)[1]))
    return kernels.DepthWeights(*map(read_only, (sums, rest, np.append(0.0, np.cumsum(powers)))))


def _judged(sides: ListsAndTruth, least: float) -> judged.JudgedLists:
    truth, listed, gains = sides.truth, sides.listed_rows, sides.gains_of_truth
    relevant = sides.relevant_rows(least)
    kinds = np.full(len(gains), judged.RELEVANT, np.int8)
    if not relevant.all():
        others = np.where(gains < 0, np.int8(judged.POOLED), np.int8(judged.NOT_RELEVANT))
        kinds = np.where(relevant, kinds, others)
    of_kinds = (kinds == kind for kind in (judged.RELEVANT, judged.NOT_RELEVANT))
    counts = (np.diff(starts_among(chosen, truth.indptr)) for chosen in of_kinds)
    own = sides.of_events(kinds)
    arrays = (listed.counts, sides.ranks_of_events, own, listed.n_rec, *counts, np.zeros(1))
    return judged.JudgedLists(*map(read_only, arrays))


@keep_short
def _powers(p: float, longest: int) -> Array:
    powers: Array = read_only(np.multiply.accumulate(np.append(1.0, np.full(longest, p))))
    return powers


def _weights(name: str, parameters: tuple[float, ...], lists: judged.JudgedLists) -> Array:
    """Return the weights of ranks that a kernel reads."""
    if name == "sum_residual":
        return _powers(parameters[0], longest_of(lists.n_rec))
    return discounts_of_ranks(longest_of(lists.n_rec)) if name == "sum_by_misses" else lists.weights


def fill_judgements(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill statistics; a key has the name of a kernel, its parameters and the formula's `min_gain`."""
    known = functools.cache(functools.partial(_judged, sides))
    for (name, parameters, least), values in zip(keys, out, strict=True):
        lists = known(least)
        lists = lists._replace(weights=_weights(name, parameters, lists))
        call(getattr(judged, name), lists, np.array(parameters), values, work=len(values))


def _pairs(sides: ListsAndTruth, cutoff: int | None, least: float) -> Array:
    """Return the pairs of each list within a cut-off, as `count_pairs_of_users` writes them; no ranks are tied."""
    recs = sides.recs
    within = recs.ranks <= (UNCUT if cutoff is None else cutoff)
    lengths = np.bincount(recs.users[within], minlength=recs.n_users)
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int64)
    gains = np.where(sides.is_hit(least), np.maximum(sides.gains_of_rows, 0.0), 0.0)
    return pairs_of_users(indptr, gains[within], -recs.ranks[within], None)


def fill_pairs(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill numbers of pairs; a key has which of them ("right", "all"), a cut-off and the `min_gain` of the formula."""
    known: dict[tuple[Any, ...], Array] = {}
    for nth, (what, cutoff, least) in enumerate(keys):
        if (cutoff, least) not in known:
            known[cutoff, least] = _pairs(sides, cutoff, least)
        right, _, pairs, _ = known[cutoff, least]
        out[nth] = right if what == "right" else pairs


def fill_user_models(sides: ListsAndTruth, keys: Sequence[tuple[Any, ...]], out: Array) -> None:
    """Fill gains per rank; a key has a cut-off, a kind of user model, its parameter, max_gain, depth and `min_gain`."""

    def fill_one(key: tuple[Any, ...], cutoffs: Array, found: Array) -> None:
        kind, parameter, largest, depth, least = key
        goal = Fraction(parameter) * Fraction(largest)
        exact = float(goal), float(goal - Fraction(float(goal)))
        model = user_models.UserModel(kind, parameter, largest, exact, UNCUT if depth is None else depth)
        lists = sides.graded_lists(least, 0.0)
        call(user_models.expect_gain, lists, model, cutoffs, found, work=8 * len(lists.ranks) + found.size)

    _fill_by_cutoffs(keys, out, fill_one)


def _fill_by_cutoffs(
    keys: Sequence[tuple[Any, ...]], out: Array, fill: Callable[[tuple[Any, ...], Array, Array], None]
) -> None:
    """Fill the statistics of keys (cut-off, *others) by calls fill(others, ascending cut-offs, their own rows)."""
    for cuts, at, position in _by_others(tuple(keys)):
        key = tuple(keys[at[0]][1:])
        if position is None:
            fill(key, cuts, out[at[0] : at[-1] + 1])
            continue
        found = np.empty((len(cuts), out.shape[1]))
        fill(key, cuts, found)
        out[list(at)] = found[list(position)]


@functools.lru_cache(maxsize=64)
def _by_others(keys: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Array, tuple[int, ...], tuple[int, ...] | None], ...]:
    """Group keys (cut-off, *others) by their others.

    Return their ascending cut-offs, their rows, and the cut-off of each row; None if rows and cut-offs correspond one
    to one. Keys that are equal share a result, which therefore has none of their values but the cut-offs.
    """
    found: list[tuple[Array, tuple[int, ...], tuple[int, ...] | None]] = []
    for _, at, cuts, position in group_cutoffs([(*others, cutoff) for cutoff, *others in keys]):
        is_plain = [at[0] + nth for nth in position] == at
        found.append((read_only(cuts), tuple(at), None if is_plain else tuple(position)))
    return tuple(found)

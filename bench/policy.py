"""Time values of a policy against a loop that reads the same rows, and against Open Bandit Pipeline if installed."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from bench.measure import Turns, compact
from bench.scored import Promise

Array = np.ndarray[Any, Any]

LENGTH = 10  # rows of a slate
BLOCKS = 64  # of slates, distributed over the threads
MAX_RIVAL_ROWS = 1_000_000  # the checks of the rival take minutes for more


class Slates(NamedTuple):
    """A log of slates of one length."""

    rewards: Array
    pscore: Array
    new_pscore: Array
    indptr: Array


def make_slates(n_rows: int) -> Slates:
    """Return slates of ten rows; a tenth of the rewards is 1."""
    rng = np.random.default_rng(8)
    n = max(1, n_rows // LENGTH) * LENGTH
    pscore = rng.uniform(0.3, 0.6, n)
    weights = rng.uniform(0.5, 1.5, n)
    rewards = (rng.random(n) < 0.1).astype(np.float64)
    return Slates(rewards, pscore, pscore * weights, np.arange(0, n + 1, LENGTH))


@njit(parallel=True, nogil=True, error_model="numpy")
def _read(rewards, pscore, new_pscore, indptr):
    """Add all values by index, on all threads: the loop that anyone would write."""
    n_slates = len(indptr) - 1
    totals = np.zeros(BLOCKS)
    for b in prange(BLOCKS):
        total = 0.0
        for s in range(b * n_slates // BLOCKS, (b + 1) * n_slates // BLOCKS):
            for t in range(indptr[s], indptr[s + 1]):
                total += rewards[t] + pscore[t] + new_pscore[t]
        totals[b] = total
    return totals.sum()


def compare_policy(n_rows: int, rounds: int) -> list[Promise]:
    """Time estimators of the value of a policy."""
    import fastrec

    log = make_slates(n_rows)

    def estimate(*names: str) -> Callable[[], Any]:
        return lambda: fastrec.policy_value(*log, estimator=list(names))

    calls: dict[str, Callable[[], Any]] = {
        "read": functools.partial(_read, *log),
        "iips": estimate("iips"),
        "rips": estimate("rips"),
        "sniips": estimate("sniips"),
        "three": estimate("iips", "rips", "sips"),
        "numpy": functools.partial(value_in_numpy, log),
    }
    turns = Turns(calls, rounds)
    took = {name: f"{turns.median(name) * 1e3:.3g} ms" for name in turns.seconds}
    what = f"{compact(len(log.rewards))} rows in slates of {LENGTH}"
    promised = [
        (f"policy_value(iips), {what} / loop over the rows", "iips", "read", 2.0),
        ("policy_value(rips) / loop over the rows", "rips", "read", None),
        ("policy_value(sniips), with its error / loop over the rows", "sniips", "read", None),
        ("policy_value(iips, rips, sips) / loop over the rows", "three", "read", None),
        ("policy_value(iips) with error, weights and checks / the value alone in NumPy", "iips", "numpy", None),
    ]
    rows = [Promise(name, turns.ratio(own, other), limit, None, took[own]) for name, own, other, limit in promised]
    return [*rows, *_compare_rival(min(n_rows, MAX_RIVAL_ROWS), max(1, rounds // 3))]


def value_in_numpy(log: Slates) -> float:
    """Return the value alone."""
    return float((log.rewards * log.new_pscore / log.pscore).sum()) / (len(log.indptr) - 1)


def _compare_rival(n_rows: int, rounds: int) -> list[Promise]:
    """Time Open Bandit Pipeline, whose value has no error and whose checks need pandas."""
    if importlib.util.find_spec("obp") is None:
        return []
    import fastrec

    log = make_slates(n_rows)
    theirs = rival(log)
    ours = fastrec.policy_value(*log).value
    if not math.isclose(theirs(), ours, rel_tol=1e-9):
        raise AssertionError("the value differs from that of Open Bandit Pipeline")
    turns = Turns({"ours": lambda: fastrec.policy_value(*log), "theirs": theirs}, rounds)
    name = f"policy_value(iips), {compact(len(log.rewards))} rows / SlateIndependentIPS of Open Bandit Pipeline"
    return [Promise(name, turns.ratio("ours", "theirs"), 0.2, None, f"theirs {turns.median('theirs') * 1e3:.3g} ms")]


def rival(log: Slates) -> Callable[[], float]:
    """Return a call of the other tool."""
    from obp.ope import SlateIndependentIPS

    n = len(log.rewards)
    given = {
        "slate_id": np.repeat(np.arange(n // LENGTH), LENGTH),
        "position": np.tile(np.arange(LENGTH), n // LENGTH),
        "reward": log.rewards,
        "pscore_item_position": log.pscore,
        "evaluation_policy_pscore_item_position": log.new_pscore,
    }
    return lambda: float(SlateIndependentIPS(len_list=LENGTH).estimate_policy_value(**given))


def check(n_rows: int = 1_000) -> None:
    """Raise AssertionError unless the value equals that of NumPy."""
    import fastrec

    log = make_slates(n_rows)
    if not math.isclose(fastrec.policy_value(*log).value, value_in_numpy(log), rel_tol=1e-9):
        raise AssertionError("the value differs from that of NumPy")

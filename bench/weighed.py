"""Benchmarks of tests by resampling, against a loop that only adds up as many values, and against NumPy.

`loop` sums all differences once per round, with rounds in parallel, without fastmath. NumPy draws signs or users round
by round, as anyone would write it; its time is scaled up from fewer rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

from bench.measure import Turns
from bench.scored import Promise

Array = np.ndarray[Any, Any]
FEW = 100  # NumPy runs one round in this many


@njit(parallel=True, nogil=True, error_model="numpy")
def _loop(values, n_rounds):
    sums = np.empty(n_rounds)
    for r in prange(n_rounds):
        total = 0.0
        for i in range(len(values)):
            total += values[i]
        sums[r] = total
    return sums


def flip_in_numpy(differences: Array, n_rounds: int) -> Array:
    """Return sums with random signs."""
    rng = np.random.default_rng(0)
    signs = (rng.integers(0, 2, len(differences), dtype=np.int8) for _ in range(n_rounds))
    return np.array([np.where(sign, differences, -differences).sum() for sign in signs])


def draw_in_numpy(differences: Array, n_rounds: int) -> Array:
    """Return sums of users drawn with replacement."""
    rng = np.random.default_rng(0)
    n = len(differences)
    return np.array([differences[rng.integers(0, n, n)].sum() for _ in range(n_rounds)])


def run_test(differences: Array, test: str, n_rounds: int) -> Any:
    """Run the test of fastrec."""
    from fastrec.report import significance
    from fastrec.runtime.limits import resolve_threads

    n_threads = resolve_threads(None)
    return significance.run_test(differences, test, level=0.95, n_rounds=n_rounds, seed=0, n_threads=n_threads)


def compare_resampling(n_users: int, n_rounds: int, turns: int) -> list[Promise]:
    """Time sign flips and the bootstrap of one metric."""
    differences = np.random.default_rng(1).normal(size=n_users)
    few = max(1, n_rounds // FEW)
    took = Turns(
        {
            "loop": lambda: _loop(differences, n_rounds),
            "flips": lambda: run_test(differences, "randomization", n_rounds),
            "bootstrap": lambda: run_test(differences, "bootstrap", n_rounds),
            "NumPy flips": lambda: flip_in_numpy(differences, few),
            "NumPy bootstrap": lambda: draw_in_numpy(differences, few),
        },
        turns,
    )
    what = f"{n_rounds:,} rounds, {n_users:,} users: "
    seconds = {name: f"{took.median(name):.3g} s" for name in took.seconds}
    found = []
    for name, words, target in (("flips", "sign flips", 3.0), ("bootstrap", "bootstrap", 8.0)):
        note = f"{seconds[name]} / {seconds['loop']}"
        found.append(Promise(f"{what}{words} / loop that adds as many", took.ratio(name, "loop"), target, note=note))
        share = took.ratio(name, f"NumPy {name}", few / n_rounds)
        found.append(Promise(f"{what}{words} / a NumPy loop", share, 1 / 20))
    return found

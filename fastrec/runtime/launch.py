"""Kernel calls on one thread or several.

Threads are our own: two threading layers of Numba can end the process, workqueue if two Python threads launch at once,
GNU OpenMP if a forked child launches. Small inputs run in one bin.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import Entry
from fastrec.runtime.threads import import_late, run_in_threads

__all__ = ["SMALL_ROWS", "STEPS_PER_LAUNCH", "Kernel", "launch_tasks", "run_bins"]


SMALL_ROWS = 500_000  # below, a parallel launch costs more than it saves
STEPS_PER_LAUNCH = 1 << 27  # per thread; between launches a call can be interrupted and reports progress


class Kernel(NamedTuple):
    """The place and variant of a kernel that runs one bin."""

    module: str
    name: str
    variant: str

    def entry(self) -> Entry:
        """Return the kernel as Python calls it."""
        return _entry(self)


@functools.cache
def _entry(kernel: Kernel) -> Entry:
    function = getattr(import_late(kernel.module), kernel.name)
    return Entry(function, f"{kernel.name}-{kernel.variant}")


def launch_tasks(kernel: Kernel, arguments: tuple[Any, ...], n_tasks: int, steps: int, n_threads: int) -> None:
    """Run all tasks by a kernel that runs the tasks between two edges. `steps` is the work of all tasks."""
    n_bins = 1 if steps < SMALL_ROWS else min(n_threads, n_tasks)
    at_once = max(n_bins, n_tasks * n_bins * STEPS_PER_LAUNCH // max(steps, 1))
    for first in range(0, n_tasks, at_once):
        n_now = min(at_once, n_tasks - first)
        edges = first + n_now * np.arange(n_bins + 1) // n_bins
        run_bins(kernel, (*arguments, edges), n_bins, steps * n_now // n_tasks)


def run_bins(kernel: Kernel, arguments: tuple[Any, ...], n_bins: int, steps: int) -> None:
    """Run all bins side by side, by a kernel that takes arguments and a bin."""
    run = kernel.entry().suited_to(steps, *arguments, 0)
    run_in_threads(lambda at: run(*arguments, at), range(n_bins), n_bins)

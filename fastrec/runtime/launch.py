"""Runs kernels on one thread or several, whatever the process has been through.

One place owns every parallel call, because two threading layers of Numba end the process when used at the wrong time:
workqueue aborts when two Python threads launch, GNU OpenMP when a forked child does. On workqueue and in forked
children the bins run in threads of our own, small inputs in one bin.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastrec.runtime.compiler import Entry, Helper
from fastrec.runtime.threads import run_in_threads, uninterrupted, was_forked

__all__ = ["SMALL_ROWS", "STEPS_PER_LAUNCH", "Kernel", "launch_tasks", "run_bins"]


SMALL_ROWS = 500_000  # below, a parallel launch costs more than it saves
NO_DRIVER = np.uint64(0)  # bins run one after another
STEPS_PER_LAUNCH = 1 << 27  # of each thread; between launches a call can be interrupted and reports progress


class BinKernel(Entry):
    """A kernel that takes arguments and a bin; called with a driver, the arguments in a tuple, and a range of bins."""

    def interpreted(self, _driver: np.uint64, arguments: tuple[Any, ...], first: int, last: int) -> None:
        """Run bins first..last-1, one after another, in Python."""
        for at in range(first, last):
            super().interpreted(*arguments, at)

    def _compiled_from(self) -> Callable[..., Any]:
        from numba import config

        if config.DISABLE_JIT:
            return lambda *call: self.interpreted(*call)  # noqa: PLW0108 - Numba takes no methods
        from fastrec.runtime.parallel import bins_of

        function: Callable[..., Any] = bins_of(Helper(self._function))
        return function


class Kernel(NamedTuple):
    """A kernel for one signature, which runs one bin."""

    module: str
    name: str
    variant: str

    def entry(self) -> BinKernel:
        """The kernel as Python calls it."""
        return _entry(*self)


@functools.cache
def _entry(module: str, name: str, variant: str) -> BinKernel:
    return BinKernel(getattr(importlib.import_module(module), name), f"{name}-{variant}")


def launch_tasks(kernel: Kernel, arguments: tuple[Any, ...], n_tasks: int, steps: int, n_threads: int) -> None:
    """Run a kernel that does the tasks between two edges, on all tasks; `steps` is the work of all of them."""
    n_bins = 1 if steps < SMALL_ROWS else min(n_threads, n_tasks)
    at_once = max(n_bins, n_tasks * n_bins * STEPS_PER_LAUNCH // max(steps, 1))
    for first in range(0, n_tasks, at_once):
        n_now = min(at_once, n_tasks - first)
        edges = first + n_now * np.arange(n_bins + 1) // n_bins
        run_bins(kernel, (*arguments, edges), n_bins, steps * n_now // n_tasks)


def run_bins(kernel: Kernel, arguments: tuple[Any, ...], n_bins: int, steps: int) -> None:
    """Run all bins, by the driver if there are several."""
    entry = kernel.entry()
    run = entry.suited_to(steps, NO_DRIVER, arguments, 0, n_bins)
    if n_bins > 1 and run == entry.compiled and _may_launch():
        _, driver = _parallel_driver()
        run(driver, arguments, 0, n_bins)
    else:
        run_in_threads(lambda at: run(NO_DRIVER, arguments, at, at + 1), range(n_bins), n_bins)


@functools.cache
def _parallel_driver() -> tuple[Any, np.uint64]:
    """Return the compiled driver, to keep its memory, and the address of its code, which runs bins side by side."""

    def load() -> tuple[Any, np.uint64]:
        from fastrec.runtime.parallel import DRIVER, run_side_by_side

        entry = Entry(run_side_by_side, "run_side_by_side", parallel=True)
        compiled = entry.dispatcher(NO_DRIVER, NO_DRIVER, 0).overloads[DRIVER]
        # takes the locks of the compiler, which no fork may find held
        return compiled, np.uint64(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    return uninterrupted(load)


def _may_launch() -> bool:
    """Whether the driver may be launched from here and now."""
    import numba

    if was_forked() or numba.config.DISABLE_JIT:
        return False
    try:
        numba.get_num_threads()  # starts the threading layer, so that it has a name
    except ValueError:  # the one that is asked for cannot be loaded
        return False
    return str(numba.threading_layer()) != "workqueue"

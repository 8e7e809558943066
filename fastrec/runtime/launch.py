"""Kernel calls on one thread or several, on every threading layer and after forks.

Every parallel call goes through this module, because two threading layers of Numba can end the process: workqueue if
two Python threads launch at once, GNU OpenMP if a forked child launches. On workqueue and in forked children, bins run
in threads of our own. Small inputs run in one bin.
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
NO_DRIVER = np.uint64(0)  # in place of the address of the parallel driver: bins run one after another
STEPS_PER_LAUNCH = 1 << 27  # per thread; between launches a call can be interrupted and reports progress


class BinKernel(Entry):
    """A kernel that takes arguments and a bin. A call passes a driver, a tuple of arguments, and a range of bins."""

    def interpreted(self, _driver: np.uint64, arguments: tuple[Any, ...], first: int, last: int) -> None:
        """Run bins first..last-1 one after another in Python."""
        for at in range(first, last):
            super().interpreted(*arguments, at)

    def _compiled_from(self) -> Callable[..., Any]:
        from numba import config

        if config.DISABLE_JIT:
            return lambda *call: self.interpreted(*call)  # noqa: PLW0108 - Numba takes no methods
        from fastrec.runtime.parallel import bin_runner

        function: Callable[..., Any] = bin_runner(Helper(self._function))
        return function


class Kernel(NamedTuple):
    """The place and variant of a kernel that runs one bin."""

    module: str
    name: str
    variant: str

    def entry(self) -> BinKernel:
        """Return the kernel as Python calls it."""
        return _entry(self)


@functools.cache
def _entry(kernel: Kernel) -> BinKernel:
    function = getattr(importlib.import_module(kernel.module), kernel.name)
    return BinKernel(function, f"{kernel.name}-{kernel.variant}")


def launch_tasks(kernel: Kernel, arguments: tuple[Any, ...], n_tasks: int, steps: int, n_threads: int) -> None:
    """Run all tasks by a kernel that runs the tasks between two edges. `steps` is the work of all tasks."""
    n_bins = 1 if steps < SMALL_ROWS else min(n_threads, n_tasks)
    at_once = max(n_bins, n_tasks * n_bins * STEPS_PER_LAUNCH // max(steps, 1))
    for first in range(0, n_tasks, at_once):
        n_now = min(at_once, n_tasks - first)
        edges = first + n_now * np.arange(n_bins + 1) // n_bins
        run_bins(kernel, (*arguments, edges), n_bins, steps * n_now // n_tasks)


def run_bins(kernel: Kernel, arguments: tuple[Any, ...], n_bins: int, steps: int) -> None:
    """Run all bins: several by the parallel driver if it may be launched, else in threads of our own."""
    entry = kernel.entry()
    run = entry.suited_to(steps, NO_DRIVER, arguments, 0, n_bins)
    if n_bins > 1 and run == entry.compiled and _may_launch():
        _, driver = _parallel_driver()
        run(driver, arguments, 0, n_bins)
    else:
        run_in_threads(lambda at: run(NO_DRIVER, arguments, at, at + 1), range(n_bins), n_bins)


@functools.cache
def _parallel_driver() -> tuple[Any, np.uint64]:
    """Return the compiled parallel driver, whose memory must last, and the address of its code."""

    def load() -> tuple[Any, np.uint64]:
        from fastrec.runtime.parallel import DRIVER, run_side_by_side

        entry = Entry(run_side_by_side, "run_side_by_side", parallel=True)
        compiled = entry.dispatcher(NO_DRIVER, NO_DRIVER, 0).overloads[DRIVER]
        # This takes locks of the compiler, which must not be held during a fork.
        return compiled, np.uint64(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    return uninterrupted(load)


def _may_launch() -> bool:
    """Return whether this process may launch the parallel driver."""
    import numba

    if was_forked() or numba.config.DISABLE_JIT:
        return False
    try:
        numba.get_num_threads()  # starts the threading layer, whose name is then known
    except ValueError:  # the layer that the user chose cannot be loaded
        return False
    return str(numba.threading_layer()) != "workqueue"

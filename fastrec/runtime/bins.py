"""Kernels that run bin by bin, one after another or side by side."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fastrec.runtime.compiler import Entry, Helper
from fastrec.runtime.threads import uninterrupted

__all__ = ["NO_DRIVER", "BinKernel", "parallel_driver"]


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
        from fastrec.runtime.drivers import bins_of

        function: Callable[..., Any] = bins_of(Helper(self._function))
        return function


NO_DRIVER = np.uint64(0)  # runs bins one after another


def parallel_driver() -> np.uint64:
    """Return the address of the code that runs bins side by side, compiled by the first call."""
    return _driver()[1]


@functools.cache
def _driver() -> tuple[Any, np.uint64]:
    """The compiled driver, whose memory lasts as long as this object, and the address of its code."""

    def load() -> tuple[Any, np.uint64]:
        from fastrec.runtime.drivers import DRIVER, run_side_by_side

        entry = Entry(run_side_by_side, "run_side_by_side", parallel=True)
        compiled = entry.dispatcher(NO_DRIVER, NO_DRIVER, 0).overloads[DRIVER]
        # it takes the locks of the compiler, which a fork may not find held
        return compiled, np.uint64(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))

    return uninterrupted(load)

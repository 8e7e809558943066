"""What a process keeps: freed memory for later arrays, and modules, which are never garbage."""

from __future__ import annotations

import contextlib
import gc
import sys

import numpy as np

KEPT_BYTES = 31 << 20  # below the 32 MB up to which glibc raises its threshold
_n_kept = 0


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for later arrays: getting new memory from the system is slow.

    glibc maps each block above a threshold, and unmaps it when it is freed. Freeing a mapped block raises the threshold
    to its size, up to 32 MB on 64-bit systems, for the rest of the process. The block here is never written to, so it
    takes no room. Environment variables such as `MALLOC_MMAP_THRESHOLD_` switch this off.
    """
    with contextlib.suppress(MemoryError):  # little address space may be left
        np.empty(KEPT_BYTES, np.uint8)


def keep_modules() -> None:
    """Exempt all objects of now from garbage collection, and again once more modules are loaded.

    For processes that collect garbage after each short piece of work: to look at all that modules hold takes longer
    than many such pieces. Garbage of now is collected first.
    """
    global _n_kept  # noqa: PLW0603 - of this process
    if len(sys.modules) > _n_kept:
        gc.collect()
        gc.freeze()
        _n_kept = len(sys.modules)

"""The memory that the C library keeps."""

from __future__ import annotations

import contextlib

import numpy as np

__all__ = ["keep_freed_memory"]

KEPT_BYTES = 31 << 20  # below the 32 MB up to which glibc raises its threshold


def keep_freed_memory() -> None:
    """Let glibc keep freed memory for later arrays: getting new memory from the system is slow.

    glibc maps each block above a threshold, and unmaps it when it is freed. Freeing a mapped block raises the threshold
    to its size, up to 32 MB on 64-bit systems, for the rest of the process. The block here is never written to, so it
    takes no room. Environment variables such as `MALLOC_MMAP_THRESHOLD_` switch this off.
    """
    with contextlib.suppress(MemoryError):  # little address space may be left
        np.empty(KEPT_BYTES, np.uint8)

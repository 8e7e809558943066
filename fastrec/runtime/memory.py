"""Memory of this process."""

from __future__ import annotations

import contextlib

import numpy as np

__all__ = ["keep_freed_memory"]

KEPT_BYTES = 31 << 20  # below the 32 MB up to which glibc raises its threshold


def keep_freed_memory() -> None:
    """Let the C library keep freed memory for later arrays: the system takes long to give new memory.

    glibc asks the system for each block that is larger than any it has freed so far, and gives it back at once. After
    this, it does so only above 31 MB. Nothing is written to this block, so it takes no room. It takes as long as a
    system call, and changes nothing with other C libraries.
    """
    with contextlib.suppress(MemoryError):  # little address space may be left
        np.empty(KEPT_BYTES, np.uint8)

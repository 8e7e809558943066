"""How files are read: threads, memory, a folder for temporary files, the format, and who watches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from fastrec.runtime.limits import control_groups

Path = str | os.PathLike[str]
Progress = Callable[[int, int], Any]
Watch = Callable[[str, int, int], Any]  # called with the stage, its rows that are done, and all its rows
SHARE_OF_BATCH = 0.4  # of the memory
PACKED_SHARE, MIN_PACKED_BYTES, MAX_PACKED_BYTES = 16, 1 << 22, 1 << 26  # of rows that are packed at once
BYTES_PER_ROW = 256  # that the evaluation of a batch takes per row
COPIES_OF_STRINGS = 16  # of the strings of a batch, while it is evaluated
MIN_BATCH, MAX_BATCH = 1 << 16, 1 << 21
MIN_BATCH_OF_STRINGS = 1 << 11  # rows


class Resources(NamedTuple):
    """How files are read: limits, who watches, and the format."""

    memory: int | None = None  # bytes; half of the machine's by default
    temp_directory: Path | None = None  # by default that of the system
    n_threads: int | None = None
    watch: Watch = lambda *_: None
    input_format: Any = "auto"  # its name, or a `Format` for all text

    def limit(self) -> int:
        """Return the limit of memory, in bytes."""
        return self.memory if self.memory is not None else installed_memory() // 2

    def of_packing(self) -> int:
        """Return the bytes of rows to pack at once, of which there are several copies."""
        return min(max(self.limit() // PACKED_SHARE, MIN_PACKED_BYTES), MAX_PACKED_BYTES)

    def batch_rows(self, text: float = 0.0) -> int:
        """Return the rows of one side to evaluate at once, if a row has `text` bytes of strings on all sides."""
        room = int(SHARE_OF_BATCH * self.limit())
        wanted = min(max(room // BYTES_PER_ROW, MIN_BATCH), MAX_BATCH)
        return min(wanted, max(int(room / (BYTES_PER_ROW + COPIES_OF_STRINGS * text)), MIN_BATCH_OF_STRINGS))


def installed_memory() -> int:
    """Return the bytes of memory that this process may use, limited by the machine and by control groups."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [1 << 33]
    for group in control_groups("memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            with contextlib.suppress(OSError, ValueError):  # no such file, "max"
                limits.append(int((group / name).read_text()))
    return min(limits)

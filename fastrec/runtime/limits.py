"""Limits of this process: the control groups of Linux, of version 1 and 2, and the size of its address space."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["NO_MEMORY", "address_space_left", "check_space", "control_groups"]

OWN_GROUPS, CONTROL_GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# bytes of address space that packages take where they are imported and used on a few rows, libraries and threads;
# where there is less they end the process, or fail with errors of the dynamic loader
SPACE = {"pyarrow": 400_000_000, "duckdb": 900_000_000, "pandas": 400_000_000, "polars": 500_000_000}
ALSO_IMPORTED = {"duckdb": ("duckdb", "pyarrow")}
NO_MEMORY = "the system gives this process no more; try fewer threads, a smaller memory=, or a higher `ulimit -v`"


def control_groups(controller: str) -> Iterator[Path]:
    """Folders of the groups whose controller, such as "cpu" or "memory", limits this process: its own, then those
    around it. None where the system has no such groups.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for _, controllers, own in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if not controllers or controller in controllers.split(","):  # version 2 has no names there
            root = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS
            path = PurePosixPath(own.lstrip("/"))
            yield from (root / part for part in (path, *path.parents))


def address_space_left() -> int | None:
    """Bytes of address space that this process may still take under `ulimit -v`; None without such a limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, AttributeError, OSError, ValueError, IndexError):
        return None
    return max(0, limit - pages * resource.getpagesize())


def check_space(package: str, what: str) -> None:
    """Raise MemoryError where a package, if imported, would end the process for want of address space.

    `what` is the feature that needs it, as the subject of the message.
    """
    new = [name for name in ALSO_IMPORTED.get(package, (package,)) if name in SPACE and name not in sys.modules]
    left = address_space_left()
    if left is None or left >= (needed := sum(SPACE[name] for name in new)):
        return
    raise MemoryError(
        f"{what} needs about {needed // 10**6:,} MB of address space for {' and '.join(new)}, but `ulimit -v` leaves "
        f"{left // 10**6:,} MB: raise the limit (`ulimit -v unlimited`); to limit memory, use memory= or a control "
        "group"
    )

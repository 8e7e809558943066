"""Limits of this process: the control groups of Linux, of version 1 and 2, and the size of its address space."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["address_space_left", "control_groups"]

OWN_GROUPS, CONTROL_GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


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

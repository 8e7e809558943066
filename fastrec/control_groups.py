"""The control groups of Linux, of version 1 and 2, that limit what this process may use of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

__all__ = ["control_groups"]

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

"""Limits of this process: threads, memory, address space, and the control groups of Linux (versions 1 and 2)."""

from __future__ import annotations

import functools
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fastrec.checks import whole_number
from fastrec.exceptions import Argument, InputError, InputTypeError, Text, shown, warn

OWN_GROUPS, CONTROL_GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
# bytes of address space that packages take when they are imported and used on a few rows, libraries and threads
# included; with less they end the process, or fail with errors of the dynamic loader
SPACE = {"pyarrow": 400_000_000, "pandas": 400_000_000, "polars": 500_000_000}
# bytes of address space to compile kernels; LLVM took 420 MB, and ends the process if it gets none
MIN_SPACE_TO_COMPILE = 1 << 30
SPACE_PER_THREAD = 1 << 27  # bytes of address space for a stack and an arena of `malloc`
MAX_THREADS = 1 << 20
UNLIMITED = 1 << 30
MIN_MEMORY = 64_000_000


def control_groups(controller: str) -> Iterator[Path]:
    """Yield the folders of the groups that limit this process by a controller, such as "cpu" or "memory".

    Its own group comes first, then the groups around it. A system without groups yields none.
    """
    try:
        lines = OWN_GROUPS.read_text().splitlines()
    except OSError:
        return
    for _, controllers, own in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if not controllers or controller in controllers.split(","):  # version 2 names none
            root = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS
            path = PurePosixPath(own.lstrip("/"))
            yield from (root / part for part in (path, *path.parents))


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads to use: the argument, else FASTREC_NUM_THREADS, else what the machine grants.

    A limit of the address space reduces it.
    """
    number, left = _wanted_threads(n_threads), address_space_left()
    return number if left is None else max(1, min(number, (left - MIN_SPACE_TO_COMPILE) // SPACE_PER_THREAD))


def _wanted_threads(n_threads: int | None) -> int:
    if n_threads is not None:
        number = whole_number(n_threads)
        if number is None:
            raise InputTypeError(Argument("n_threads"), f" must be an integer, found {shown(n_threads)}")
        if not 1 <= number <= MAX_THREADS:
            raise InputError(
                Argument("n_threads"), f" must be at least 1 and at most {MAX_THREADS:,}, found {shown(number)}"
            )
        return number
    wanted = os.environ.get("FASTREC_NUM_THREADS")
    if wanted is not None:
        if not (number := _number(wanted)) or number > MAX_THREADS:
            raise InputError(f"FASTREC_NUM_THREADS must be an integer from 1 to {MAX_THREADS:,}, found {wanted!r}")
        return number
    openmp = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # the first is for the outermost level
    return max(1, min(_processors(), _number(openmp) or UNLIMITED, _quota()))


def _number(text: str) -> int | None:
    """Return the integer that a string of at most 9 digits gives, or None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _processors() -> int:
    """Return the number of processors that this process may run on, or that Numba's setting names."""
    if wanted := _number(os.environ.get("NUMBA_NUM_THREADS", "")):
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _quota() -> int:
    """Return the number of processors that control groups grant to this process; Numba reads its affinity only."""
    granted = [processors for group in control_groups("cpu") if (processors := _granted(group)) is not None]
    return min(granted, default=UNLIMITED)


def _granted(group: Path) -> int | None:
    """Return the number of processors that a control group grants, rounded up; None for all."""
    try:
        if (limit := group / "cpu.max").exists():
            quota, period = map(int, limit.read_text().split())
        else:
            quota, period = (int((group / name).read_text()) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        return max(1, math.ceil(quota / period)) if quota >= 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # "max", no such file
        return None


def read_size(size: int | str | None) -> int | None:
    """Return bytes, given as a number or as a string such as "4GB" or "512 MiB"."""
    if size is None:
        return None
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) ?([kmgt]?)(i?)b?", str(size).strip().lower())
    unit = 1024 if found is not None and found[3] else 1000
    n_bytes = int(float(found[1]) * unit ** " kmgt".index(found[2] or " ")) if found is not None else 0
    if isinstance(size, bool) or n_bytes < MIN_MEMORY:
        raise InputError(Argument("memory"), f" must be a size of at least 64 MB, such as '4GB', found {size!r}")
    return n_bytes


def address_space_left() -> int | None:
    """Return the bytes of address space that `ulimit -v` leaves to this process; None without such a limit."""
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
    """Raise MemoryError if the address space is too small to import a package, which could end the process.

    `what` is the feature that needs the package, as the subject of the message.
    """
    left, needed = address_space_left(), 0 if package in sys.modules else SPACE.get(package, 0)
    if left is None or left >= needed:
        return
    why = (
        f"{what} needs about {needed // 10**6:,} MB of address space for {package}, but `ulimit -v` leaves "
        f"{left // 10**6:,} MB: raise the limit (`ulimit -v unlimited`); to limit memory, use "
    )
    raise MemoryError(Text(why, Argument("memory", (...,)), " or a control group"))


def may_compile() -> bool:
    """Return whether kernels may be compiled: no setting of Numba and no limit of memory forbids it."""
    return not (_is_told_to_interpret() or _is_space_short())


def _is_told_to_interpret() -> bool:
    """Return whether Numba is told to compile nothing."""
    loaded = getattr(sys.modules.get("numba"), "config", None)
    told = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return bool(getattr(loaded, "DISABLE_JIT", told))


def _is_space_short() -> bool:
    """Return whether the limit of the address space leaves too little to compile; warn once if so."""
    left = address_space_left()
    if left is None or left >= MIN_SPACE_TO_COMPILE:
        return False
    _warn_of_space()
    return True


@functools.cache
def _warn_of_space() -> None:
    line = (
        "the limit of the address space (ulimit -v) leaves too little to compile kernels, which takes "
        f"{MIN_SPACE_TO_COMPILE >> 20:,} MB: Python runs them, with the same values but slowly; raise the limit"
    )
    warn([line])

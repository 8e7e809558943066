"""Runs kernels on one thread or several, whatever the process has been through.

One place owns every parallel call, because two threading layers of Numba end the process when used at the wrong time:
workqueue aborts when two Python threads launch, GNU OpenMP when a forked child does. On workqueue and in forked
children the bins run in threads of our own, small inputs in one bin.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from fastrec.control_groups import address_space_left, control_groups
from fastrec.exceptions import InputError, InputTypeError, shown, whole_number
from fastrec.kernels.jit import MIN_SPACE, NO_DRIVER, Bins, parallel_driver
from fastrec.kernels.opcodes import BLOCK, DIGITS, N_FACTS
from fastrec.kernels.ranking import Program, Totals, Users
from fastrec.threads import run_in_threads, was_forked

__all__ = ["Kernel", "Source", "launch", "launch_tasks", "resolve_threads"]

Array = np.ndarray[Any, Any]
MOST_THREADS = 1 << 20
SPACE_PER_THREAD = 1 << 27  # bytes of address space
SMALL_ROWS = 500_000  # below, a parallel launch costs more than it saves
STEPS_PER_LAUNCH = 1 << 27  # of each thread; between launches a call can be interrupted and reports progress
HEAVY_ROWS = 1 << 17  # a block whose table outgrows the second cache costs this much more per row
HEAVY_FACTOR = 6


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads to use: as asked, else FASTREC_NUM_THREADS, else what the machine grants this process.

    Under a limit of the address space fewer: each thread reserves a stack and an arena of `malloc`.
    """
    number, left = _wanted_threads(n_threads), address_space_left()
    return number if left is None else max(1, min(number, (left - MIN_SPACE) // SPACE_PER_THREAD))


def _wanted_threads(n_threads: int | None) -> int:
    if n_threads is not None:
        number = whole_number(n_threads)
        if number is None:
            raise InputTypeError(f"n_threads must be a whole number, found {shown(n_threads)}")
        if not 1 <= number <= MOST_THREADS:
            raise InputError(f"n_threads must be at least 1 and at most {MOST_THREADS:,}, found {shown(number)}")
        return number
    wanted = os.environ.get("FASTREC_NUM_THREADS")
    if wanted is not None:
        if not (number := _number(wanted)) or number > MOST_THREADS:
            raise InputError(f"FASTREC_NUM_THREADS must be a whole number from 1 to {MOST_THREADS:,}, found {wanted!r}")
        return number
    openmp = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # the first is that of the outermost level
    return max(1, min(_processors(), _number(openmp) or 1 << 30, _quota()))


def _number(text: str) -> int | None:
    """The whole number that a text of at most 9 digits is."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _processors() -> int:
    """Processors that this process may run on, or fewer if Numba is told so."""
    if wanted := _number(os.environ.get("NUMBA_NUM_THREADS", "")):
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def _quota() -> int:
    """Processors that the control groups around this process grant; Numba looks at the affinity alone."""
    granted = [processors for group in control_groups("cpu") if (processors := _granted(group)) is not None]
    return min(granted, default=1 << 30)


def _granted(group: Path) -> int | None:
    """Processors that a control group grants, a part of one as one; None for all."""
    try:
        if (limit := group / "cpu.max").exists():
            quota, period = map(int, limit.read_text().split())
        else:
            quota, period = (int((group / name).read_text()) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
        return max(1, math.ceil(quota / period)) if quota >= 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # "max", no such file
        return None


class Kernel(NamedTuple):
    """A kernel for one signature, which runs one bin."""

    module: str
    name: str
    variant: str

    def entry(self) -> Bins:
        """The kernel as Python calls it."""
        return _entry(*self)


@functools.cache
def _entry(module: str, name: str, variant: str) -> Bins:
    return Bins(getattr(importlib.import_module(f"fastrec.kernels.{module}"), name), f"{name}-{variant}")


class Source(Protocol):
    """Users and their rows, in the form that a kernel takes."""

    @property
    def n_users(self) -> int:
        """Users."""

    def rows_before(self, users: Array) -> Array:
        """Rows of all users before each of the given ones."""

    def part(self, first: int, last: int) -> Source:
        """Users first..last-1."""

    def kernel(self) -> Kernel:
        """The kernel for this form and its dtypes."""

    def arguments(self) -> tuple[Any, ...]:
        """The leading arguments of the kernel."""

    def scratch(self, program: Program, blocks: Array, n_bins: int) -> tuple[Any, Any]:
        """Working memory for the largest block; pages that no block touches are never backed by memory."""


def launch(
    source: Source, program: Program, users: Users, stored: Array, n_groups: int, blocks: Array, n_threads: int
) -> Totals:
    """Evaluate some blocks of users and return the totals of all bins."""
    rows = block_rows(source, blocks)
    n_bins = 1 if int(rows.sum()) < SMALL_ROWS or len(blocks) < 2 else min(n_threads, len(blocks))
    totals = new_totals(program, stored, n_groups, n_bins)
    bins = fill_bins(blocks, rows, n_bins)
    arguments = (*source.arguments(), program, users, totals, *source.scratch(program, blocks, n_bins), *bins)
    n_users = min(len(blocks) * BLOCK, source.n_users)
    _run_bins(source.kernel(), arguments, n_bins, int(rows.sum()) + n_users * len(program.ops))
    return totals


def launch_tasks(kernel: Kernel, arguments: tuple[Any, ...], n_tasks: int, steps: int, n_threads: int) -> None:
    """Run a kernel that does the tasks between two edges, on all tasks; `steps` is the work of all of them."""
    n_bins = 1 if steps < SMALL_ROWS else min(n_threads, n_tasks)
    at_once = max(n_bins, n_tasks * n_bins * STEPS_PER_LAUNCH // max(steps, 1))
    for first in range(0, n_tasks, at_once):
        n_now = min(at_once, n_tasks - first)
        edges = first + n_now * np.arange(n_bins + 1) // n_bins
        _run_bins(kernel, (*arguments, edges), n_bins, steps * n_now // n_tasks)


def _run_bins(kernel: Kernel, arguments: tuple[Any, ...], n_bins: int, steps: int) -> None:
    """Run all bins, by the driver if there are several."""
    entry = kernel.entry()
    run = entry.suited_to(steps, NO_DRIVER, arguments, 0, n_bins)
    if n_bins > 1 and run == entry.compiled and _may_launch():
        run(parallel_driver(), arguments, 0, n_bins)
    else:
        run_in_threads(lambda at: run(NO_DRIVER, arguments, at, at + 1), range(n_bins), n_bins)


def _may_launch() -> bool:
    """Whether the driver may be launched from here and now."""
    import numba

    if was_forked() or numba.config.DISABLE_JIT:
        return False
    try:
        numba.get_num_threads()  # starts the threading layer, so that it has a name
    except ValueError:  # the one that is asked for cannot be loaded
        return False
    return str(numba.threading_layer()) != "workqueue"


def block_rows(source: Source, blocks: Array) -> Array:
    """Rows in each block."""
    first = blocks * BLOCK
    last = np.minimum(first + BLOCK, source.n_users)
    rows: Array = source.rows_before(last) - source.rows_before(first)
    return rows


def fill_bins(blocks: Array, rows: Array, n_bins: int) -> tuple[Array, Array]:
    """Share blocks out so that bins cost about the same: heavy ones first, then runs of neighbours."""
    if n_bins == 1:
        return blocks, np.array([0, len(blocks)])
    # a block with a user too large for the caches costs more per row
    costs = rows + (HEAVY_FACTOR - 1) * np.maximum(rows - HEAVY_ROWS, 0) + BLOCK
    target = costs.sum() / n_bins
    heavy = np.flatnonzero(costs > target / 4)
    light = np.flatnonzero(costs <= target / 4)
    members: list[list[Array]] = [[] for _ in range(n_bins)]
    load = np.zeros(n_bins)
    for block in heavy[np.argsort(-costs[heavy], kind="stable")]:
        least = int(load.argmin())
        members[least].append(blocks[block : block + 1])
        load[least] += costs[block]
    room = np.maximum(costs.sum() / n_bins - load, 0)
    edges = np.cumsum(room) / room.sum() * costs[light].sum() if room.sum() > 0 else np.zeros(n_bins)
    cuts = np.searchsorted(np.cumsum(costs[light]), edges[:-1])
    for own, run in zip(members, np.split(blocks[light], cuts), strict=True):
        own.append(run)
    runs = [np.sort(np.concatenate(own)) for own in members]
    return np.concatenate(runs), np.cumsum([0, *map(len, runs)])


def new_totals(program: Program, stored: Array, n_groups: int, n_bins: int) -> Totals:
    return Totals(
        fixed=np.zeros((n_bins, n_groups + 1, len(program.fixed_rows), 6), np.int64),
        general=np.zeros((n_bins, n_groups + 1, len(program.general_rows), 2, DIGITS), np.int64),
        counts=np.zeros((n_bins, n_groups + 1, len(program.min_gains), 4), np.int64),
        facts=np.zeros((n_bins, N_FACTS), np.int64),
        errors=np.zeros((n_bins, 3), np.int64),
        stored=stored,
    )

"""Runs kernels on one thread or several, whatever the process has been through.

One place owns every parallel call, because two threading layers of Numba end the process when used at the wrong time:
workqueue aborts when two Python threads launch, GNU OpenMP when a forked child does. Small inputs and forked children
take the serial twin; on workqueue it runs in threads of our own.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np

from fastrec.exceptions import InputError, InputTypeError, whole_number
from fastrec.kernels import ranking
from fastrec.kernels.jit import as_function, entry
from fastrec.kernels.opcodes import BLOCK, DIGITS
from fastrec.kernels.ranking import SLOTS_PER_ID, SMALL_TABLE, Log, Program, Scratch, Totals, Users
from fastrec.ragged import longest_row

__all__ = ["launch", "resolve_threads", "run_in_threads"]

Array = np.ndarray[Any, Any]
SMALL_ROWS = 500_000  # below, a parallel launch costs more than it saves, and its driver would have to be compiled
HEAVY_ROWS = 1 << 17  # a block whose table outgrows the second cache costs this much more per row
HEAVY_FACTOR = 6


class _Process:
    """What this process has been through."""

    forked = False


def _after_fork_in_child() -> None:
    _Process.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads to use: as asked, else FASTREC_NUM_THREADS, else what the machine grants this process."""
    if n_threads is not None:
        number = whole_number(n_threads)
        if number is None:
            raise InputTypeError(f"n_threads must be a whole number, found {n_threads!r}")
        if number < 1:
            raise InputError(f"n_threads must be at least 1, found {n_threads}")
        return number
    wanted = os.environ.get("FASTREC_NUM_THREADS")
    if wanted is not None:
        if not (wanted.isascii() and wanted.isdigit()) or int(wanted) < 1:
            raise InputError(f"FASTREC_NUM_THREADS must be a whole number of at least 1, found {wanted!r}")
        return int(wanted)
    openmp = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(int(numba.config.NUMBA_NUM_THREADS), int(openmp) if openmp.isdigit() else 1 << 30, _quota()))


@functools.cache
def _quota() -> int:
    """Processors that a control group grants; Numba looks at the affinity alone."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            quota, period = file.read().split()
        return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        return 1 << 30


@functools.cache
def _serial(ids: str, *, graded: bool) -> Any:
    """The compiled kernel for one kind of ids and truth; each has one signature."""
    return entry(ranking.evaluate_bin, f"evaluate_bin-{ids}-{_truth(graded)}")


@functools.cache
def _parallel(ids: str, *, graded: bool) -> Any:
    """The driver that runs that kernel on all bins at once."""
    return entry(ranking.evaluate_bins, f"evaluate_bins-{ids}-{_truth(graded)}", parallel=True)


def _truth(graded: bool) -> str:  # noqa: FBT001 - a name for one flag
    return "graded" if graded else "plain"


def _may_launch() -> bool:
    """Whether a parallel kernel may be launched from here and now."""
    if _Process.forked:
        return False
    numba.get_num_threads()  # starts the threading layer, so that it has a name
    return str(numba.threading_layer()) != "workqueue"


def launch(
    log: Log,
    gains: Array | None,
    program: Program,
    users: Users,
    stored: Array,
    n_groups: int,
    blocks: Array,
    n_threads: int,
) -> Totals:
    """Evaluate some blocks of users and return the totals of all bins."""
    rows = block_rows(log, blocks)
    graded = gains is not None
    n_bins = 1 if int(rows.sum()) < SMALL_ROWS or len(blocks) < 2 else min(n_threads, len(blocks))
    totals = new_totals(program, stored, n_groups, n_bins)
    scratch = new_scratch(log, program, blocks, n_bins, graded=graded)
    ordered, starts = fill_bins(blocks, rows, n_bins)
    ids = str(log.rec_items.dtype)
    serial = _serial(ids, graded=graded)
    if n_bins > 1 and _may_launch():
        function = as_function(serial, log, gains, program, users, totals, scratch, ordered, 0)
        _parallel(ids, graded=graded)(function, log, gains, program, users, totals, scratch, ordered, starts)
        return totals

    def run_bin(at: int) -> None:
        serial(log, gains, program, users, totals, scratch, ordered[starts[at] : starts[at + 1]], at)

    run_in_threads(run_bin, range(n_bins), n_bins)
    return totals


def run_in_threads(work: Callable[[int], Any], tasks: range, n_threads: int) -> list[Any]:
    """Do all tasks, in threads made for this call alone: none outlives it, none is lost by a fork."""
    if n_threads == 1 or len(tasks) <= 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(min(n_threads, len(tasks))) as pool:
        return list(pool.map(work, tasks))


def block_rows(log: Log, blocks: Array) -> Array:
    """Rows of lists and truth in each block."""
    first = blocks * BLOCK
    last = np.minimum(first + BLOCK, len(log.rec_indptr) - 1)
    rows: Array = log.rec_indptr[last] - log.rec_indptr[first] + log.truth_indptr[last] - log.truth_indptr[first]
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
        facts=np.zeros((n_bins, 3), np.int64),
        errors=np.zeros((n_bins, 3), np.int64),
        stored=stored,
    )


def new_scratch(log: Log, program: Program, blocks: Array, n_bins: int, *, graded: bool) -> Scratch:
    """Working memory for the largest block; pages that no block touches are never backed by memory."""
    first = blocks * BLOCK
    last = np.minimum(first + BLOCK, len(log.rec_indptr) - 1)
    n_truth = int((log.truth_indptr[last] - log.truth_indptr[first]).max()) if program.find else 0
    n_list = longest_row(log.rec_indptr) if program.find else 0
    n_ids = n_list + longest_row(log.truth_indptr) if program.find else 0
    slots = 1 << max(SMALL_TABLE, (SLOTS_PER_ID * n_ids - 1).bit_length() if n_ids > ranking.SMALL_ROWS else 0)
    n_events = n_truth + BLOCK
    rows = np.empty((n_bins, program.n_rows, BLOCK))
    rows[:, : len(program.constants)] = program.constants[:, None]
    return Scratch(
        table=np.zeros((n_bins, slots), np.int32),
        base=np.ones(n_bins, np.int64),
        positions=np.empty((n_bins, n_events), np.int32),
        sources=np.empty((n_bins, n_events), np.int32),
        marks=np.empty((n_bins, n_list + 1), np.int32),
        status=np.zeros((n_bins, BLOCK), np.int64),
        rows=rows,
        bits=rows.view(np.int64),
        ranks=np.empty((n_bins, 2, n_events), np.int32),
        gains=np.empty((n_bins, 2, n_events if graded else 0)),
        bounds=np.zeros((n_bins, 2, 4, BLOCK + 1), np.int64),
        counts=np.empty((n_bins, len(program.cutoffs), BLOCK), np.int64),
        sums=np.zeros((n_bins, 3, n_events)),
    )

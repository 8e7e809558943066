"""Kernel runs over blocks of users, balanced between threads."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fastrec.kernels.codes import BLOCK, CASCADE, DIGITS, N_DATA_COUNTS, SERIES
from fastrec.kernels.lists import Task, UserArrays
from fastrec.kernels.program import Program, deepest_read
from fastrec.kernels.sums import Totals
from fastrec.runtime.launch import SMALL_ROWS, Kernel, run_bins

__all__ = ["KernelInput", "launch"]


Array = np.ndarray[Any, Any]
HEAVY_ROWS = 1 << 17  # from here on, the table of a block outgrows the second cache and a row costs more
HEAVY_FACTOR = 6


class KernelInput(Protocol):
    """Users and their rows, in the form that a kernel takes."""

    @property
    def n_users(self) -> int:
        """The number of users."""

    def rows_before(self, users: Array) -> Array:
        """Return the number of rows of all users before each given user."""

    def tied_steps(self, k: int) -> int:
        """Return the most steps of a sum over the ranks within k that each tied row may take."""

    def part(self, first: int, last: int) -> KernelInput:
        """Return the users first..last-1."""

    def kernel(self) -> Kernel:
        """Return the kernel for this form and its dtypes."""

    def arguments(self) -> tuple[Any, ...]:
        """Return the leading arguments of the kernel."""

    def scratch(self, program: Program, n_groupings: int, blocks: Array, n_bins: int) -> tuple[Any, Any]:
        """Return working memory for the largest block. Pages that no block touches take no memory."""


def launch(
    source: KernelInput,
    program: Program,
    users: UserArrays,
    stored: Array,
    n_groups: int,
    blocks: Array,
    n_threads: int,
) -> Totals:
    """Evaluate some blocks of users and return the totals of all bins."""
    if n_groups == len(users.groups) == 1 and users.groups.min() == 1:  # the sums of this group are those of all users
        everyone = users._replace(groups=users.groups[:0])
        return _of_one_group(launch(source, program, everyone, stored, 0, blocks, n_threads))
    rows = block_rows(source, blocks)
    n_users = min(len(blocks) * BLOCK, source.n_users)
    of_ties = _steps_of_ties(source, program)
    # a sum costs about as much as a row
    is_small = max(int(rows.sum()), n_users * program.n_general, of_ties) < SMALL_ROWS
    n_bins = 1 if is_small or len(blocks) < 2 else min(n_threads, len(blocks))
    totals = new_totals(program, stored, n_groups, n_bins)
    bins = fill_bins(blocks, rows, n_bins)
    scratch, tie_scratch = source.scratch(program, len(users.groups), blocks, n_bins)
    arguments = (*source.arguments(), Task(program, users, totals, scratch, *bins), tie_scratch)
    run_bins(source.kernel(), arguments, n_bins, int(rows.sum()) + n_users * len(program.ops) + of_ties)
    return totals


def _steps_of_ties(source: KernelInput, program: Program) -> int:
    """Return the work of means over orders of ties that takes more than a step per row."""
    codes, kinds = program.ops[:, 0], program.ops[:, 2]
    at = np.flatnonzero((codes == SERIES) & (kinds == CASCADE)) if program.expected else ()
    return sum(source.tied_steps(int(deepest_read(program, int(each)))) for each in at)


def _of_one_group(totals: Totals) -> Totals:
    """Return totals of all users as those of a group, too."""
    fixed, general, counts = (np.repeat(own, 2, axis=1) for own in (totals.fixed, totals.general, totals.counts))
    return totals._replace(fixed=fixed, general=general, counts=counts)


def block_rows(source: KernelInput, blocks: Array) -> Array:
    """Return the number of rows in each block."""
    first = blocks * BLOCK
    last = np.minimum(first + BLOCK, source.n_users)
    rows: Array = source.rows_before(last) - source.rows_before(first)
    return rows


def fill_bins(blocks: Array, rows: Array, n_bins: int) -> tuple[Array, Array]:
    """Distribute blocks so that bins cost about the same: heavy blocks first, then ranges of neighbours."""
    if n_bins == 1:
        return blocks, np.array([0, len(blocks)])
    # a block with a user that does not fit into the caches costs more per row
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
        fixed=np.zeros((n_bins, n_groups + 1, program.n_fixed, 6), np.int64),
        general=np.zeros((n_bins, n_groups + 1, program.n_general, 2, DIGITS), np.int64),
        counts=np.zeros((n_bins, n_groups + 1, len(program.min_gains), 4), np.int64),
        data_counts=np.zeros((n_bins, N_DATA_COUNTS), np.int64),
        errors=np.zeros((n_bins, 3), np.int64),
        stored=stored,
    )

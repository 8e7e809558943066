"""Runs of row programs over blocks of users, on one thread or several."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrec.evaluation.sources import Source, SourceRows
from fastrec.inputs.ragged import read_only
from fastrec.kernels.codes import BLOCK, CASCADE, SERIES
from fastrec.kernels.hits import BlockHits
from fastrec.kernels.program import Program, deepest_read, pack
from fastrec.kernels.row_programs import Memory, Sizes, Tables, UserNumbers, memory_of, run_block
from fastrec.kernels.sums import Totals, size_of_totals, totals_of
from fastrec.kernels.users import evaluate_users
from fastrec.runtime.launcher import launch

Array = np.ndarray[Any, Any]


def launch_program(
    source: SourceRows,
    users: UserNumbers,
    edges: Array,
    stored: Array,
    n_groups: int,
    work: int,
    n_threads: int,
    offset: int,
) -> Totals:
    """Run a program over users, and return the totals of all tasks, each of its fields with a row per task.

    Task t takes the blocks edges[t]..edges[t + 1]-1. The values of the first user go to column `offset` of `stored`.
    """
    groups = users.groups
    if n_groups == len(groups) == 1 and groups.min() == 1:  # the sums of this group are those of all users
        everyone = users._replace(groups=groups[:0])
        return _of_one_group(launch_program(source, everyone, edges, stored, 0, work, n_threads, offset))
    program, n_tasks, is_tied = source.program, len(edges) - 1, source.longest > 0
    sizes = n_groups, program.n_fixed, program.n_general, len(program.min_gains)
    totals = np.zeros((n_tasks, size_of_totals(*sizes)), np.int64)
    n_gains, n_tied = (source.n_events if own else 0 for own in (program.graded, is_tied))
    of_memory = Sizes(
        program.n_rows, len(program.cutoffs), len(groups), source.n_events, n_gains, n_tied, source.longest
    )
    hits = BlockHits(
        np.empty((n_tasks, 4, BLOCK), np.int64),
        *(np.empty((n_tasks, 2, source.n_events) if own else 0, np.int32) for own in (True, is_tied)),
    )
    tables = Tables(*pack(program, n_groups, offset), np.array(of_memory))
    kinds = zip(memory_of(of_memory), (np.int64, np.int32, np.float64), strict=True)
    memory = Memory(*(np.zeros((n_tasks, size), kind) for size, kind in kinds))  # pages that no block touches take none
    only_read = UserNumbers(*map(read_only, users)), Tables(*map(read_only, tables))
    steps = source.find, run_block, read_only(edges), hits, source.rows
    launch(evaluate_users, n_tasks, *steps, *only_read, memory, totals, stored, work=work, n_threads=n_threads)
    found = [totals_of(each, stored, offset, *sizes) for each in totals]
    errors, data_counts, fixed, general, counts = map(np.stack, list(zip(*found, strict=True))[:5])
    return Totals(errors, data_counts, fixed, general, counts, stored, offset)


def steps_of_ties(program: Program, source: Source) -> int:
    """Return the work of means over orders of ties that takes more than a step per row."""
    codes, kinds = program.ops[:, 0], program.ops[:, 2]
    at = np.flatnonzero((codes == SERIES) & (kinds == CASCADE)) if program.expected else ()
    return sum(int(np.minimum(source.tied(), deepest_read(program, int(each))).sum()) for each in at)


def _of_one_group(totals: Totals) -> Totals:
    """Return totals of all users as those of a group, too."""
    fixed, general, counts = (np.repeat(own, 2, axis=1) for own in (totals.fixed, totals.general, totals.counts))
    return totals._replace(fixed=fixed, general=general, counts=counts)

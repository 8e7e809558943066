"""The interpreter of row programs: each operation computes a row of values for a block of users."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .codes import (
    ADD,
    ADD_UP,
    ANY_HIT,
    BLANK,
    CASCADE,
    CHECK,
    COUNTED,
    CUMULATIVE,
    DIVIDE,
    FIRST,
    FROM_CUT_LIST,
    FROM_TRUTH,
    GIVEN,
    GIVEN_AT,
    HITS,
    HITS_AT,
    INCLUDED,
    LAST,
    LOGARITHM,
    MINIMUM,
    MULTIPLY,
    N_LISTED,
    N_REC,
    N_REL,
    N_RELEVANT,
    OUT_OF_LIMITS,
    PRECISION,
    READ,
    READ_MEAN,
    READ_PAIRS,
    READ_SORTED,
    SELECT,
    SERIES,
    SORT_GAINS,
    SORTED_SERIES,
    SORTED_START,
    SQUARE_ROOT,
    START,
    SUBTRACT,
    TIED,
    WEIGHT,
)
from .gains import map_gain
from .hits import sort_descending
from .jit import njit
from .sums import add_row, has_no_zero
from .ties import (
    Cut,
    Series,
    expected_series,
    find_cuts,
    find_tied_users,
    read_expected_any,
    read_expected_hits,
    read_expected_hits_at,
    read_expected_over_hits,
    read_expected_series,
    share_of_pairs,
)

Array = np.ndarray[Any, Any]


class Program(NamedTuple):
    """A row program and its tables; `fastrec.metrics.program` writes it."""

    ops: Array  # int64 (n_ops, 5)
    condition_ops: Array  # int64 (n_conditions + 1,): the operations of each condition
    min_gains: Array  # float64 (n_conditions,): the gain from which an item is relevant, 0 for any gain > 0, -1 for any
    cutoffs: Array  # int64 (n_cutoffs,), ascending
    bucket: Array  # int32 (longest rank + 2,): the first cut-off that includes a rank
    weights: Array  # float64 (n_weight_tables, longest rank + 1): weight of rank r at [r], 0 at [0]
    ideals: Array  # float64 (n_weight_tables, longest ideal + 1): the ideal (IDCG) of i items of gain 1 at [i]
    gain_maps: Array  # float64 (n_gain_maps, 2): kind, parameter
    gain_tables: Array  # float64 (n_gain_tables, longest table)
    constants: Array  # float64 (n_constants,): fill the first rows
    limits: Array  # float64 (n_limits, 2)
    n_fixed: int  # sums of values within [-1, 1]; they are numbered first
    n_general: int  # sums of any values
    stored_rows: Array  # int64 (n_stored, 3): row, condition, whether the policies of the call apply to it
    n_rows: int
    depth: int  # ranks whose order some operation reads
    find: bool  # find hits, or use given rows only
    n_items: int  # size of the catalogue
    policies: Array  # int64 (n_conditions, 2): for users without truth, and for users with truth but no list
    expected: bool  # tied rows count with their mean over all orders
    refuse_ties: bool  # a metric has no closed form for tied scores
    graded: bool  # reads gains of the truth


INTEGERS = ("ops", "condition_ops", "cutoffs", "bucket", "stored_rows", "policies")
FLOATS = ("min_gains", "weights", "ideals", "gain_maps", "gain_tables", "limits", "constants")
SCALARS = ("n_fixed", "n_general", "n_rows", "depth", "find", "n_items", "expected", "refuse_ties", "graded")
N_GROUPS, OFFSET = 0, 1  # of the scalars: groups of users, and the column of the first user among stored values
N_SCALARS, N_TABLES = 2 + len(SCALARS), len(INTEGERS) + len(FLOATS)  # and N_GROUPS, OFFSET


def pack(program: Program, n_groups: int, offset: int) -> tuple[Array, Array]:
    """Return the tables of a program in two arrays, of integers and of floats; the former begin with all shapes."""
    scalars = [n_groups, offset, *(int(getattr(program, name)) for name in SCALARS)]
    tables = [getattr(program, name) for name in (*INTEGERS, *FLOATS)]
    shapes = [size for table in tables for size in (len(table), table.shape[-1] if table.ndim > 1 else 1)]
    integers, floats = tables[: len(INTEGERS)], tables[len(INTEGERS) :]
    return (
        np.concatenate([scalars, shapes, *map(np.ravel, integers)], dtype=np.int64),
        np.concatenate([np.ravel(table) for table in floats], dtype=np.float64),
    )


@njit
def rows_at(values, at, n, width):
    """Return a table of a program, and where the next one starts."""
    return values[at : at + n * width].reshape((n, width)), at + n * width


@njit
def program_of(integers, floats):
    """Return the program whose tables `pack` packed."""
    shape = integers[N_SCALARS : N_SCALARS + 2 * N_TABLES].reshape((N_TABLES, 2))
    ops, at = rows_at(integers, np.int64(N_SCALARS + 2 * N_TABLES), shape[0, 0], shape[0, 1])
    condition_ops, at = integers[at : at + shape[1, 0]], at + shape[1, 0]
    cutoffs, at = integers[at : at + shape[2, 0]], at + shape[2, 0]
    bucket, at = integers[at : at + shape[3, 0]], at + shape[3, 0]
    stored_rows, at = rows_at(integers, at, shape[4, 0], shape[4, 1])
    policies, at = rows_at(integers, at, shape[5, 0], shape[5, 1])
    weights, begin = rows_at(floats, shape[6, 0], shape[7, 0], shape[7, 1])
    ideals, begin = rows_at(floats, begin, shape[8, 0], shape[8, 1])
    gain_maps, begin = rows_at(floats, begin, shape[9, 0], shape[9, 1])
    gain_tables, begin = rows_at(floats, begin, shape[10, 0], shape[10, 1])
    limits, begin = rows_at(floats, begin, shape[11, 0], shape[11, 1])
    return Program(
        ops,
        condition_ops,
        floats[: shape[6, 0]],
        cutoffs,
        bucket,
        weights,
        ideals,
        gain_maps,
        gain_tables,
        floats[begin:],
        limits,
        integers[2],
        integers[3],
        stored_rows,
        integers[4],
        integers[5],
        integers[6] > 0,
        integers[7],
        policies,
        integers[8] > 0,
        integers[9] > 0,
        integers[10] > 0,
    )


class Block(NamedTuple):
    """A block of users under one condition: their events, and working memory.

    The events are the hits of these users, in rank order; an event of rank 0 opens each user.
    """

    first: int  # the first user
    n: int  # users
    indptr: Array  # int64 (n_users + 1,): of the truth
    given: Array  # float64 (n_given, n_users)
    events: Array  # float64 (n_given_of_events, n_events), see `fastrec.kernels.row_programs.UserNumbers`
    last: Array  # int32 or int64 (n_given_cutoffs + 1, n_users), likewise
    ranks: Array  # int32 (n_events,)
    gains: Array  # float64 (n_events,)
    bounds: Array  # int64 (4, BLOCK + 1): START, N_RELEVANT, N_LISTED, SORTED_START
    counts: Array  # int64 (n_cutoffs + 1, BLOCK): hits within each cut-off; the last row is room for HITS_AT
    sums: Array  # float64 (3, n_events): running sums, sorted gains, their running sums
    status: Array  # int64 (BLOCK,)
    rows: Array  # float64 (n_rows, BLOCK or more)


# Loops over events avoid branches at the first event of a user, which could not be predicted (see
# `fastrec.kernels.listed.Listed`). Only `gain_series` has one, for graded truth: gains of these events are not set.
# Weights of rank 0 are 0.


@njit
def rank_series(kind, ranks, weights, sums, n_events):
    """Write running sums, over the hits of each user, of terms that depend on the ranks."""
    total, nth = 0.0, 0
    for e in range(n_events):
        is_hit, weight = ranks[e] > 0, weights[ranks[e]]
        nth = (nth if is_hit else 0) + is_hit
        if kind == PRECISION:
            total = (total if is_hit else 0.0) + nth / max(ranks[e], 1)
        else:
            total = weight if kind == LAST or nth <= 1 else total
        sums[e] = total


@njit
def gain_series(series, ranks, gains, graded, sums, n_events):
    """Write running sums, over the hits of each user, of terms that depend on ranks and gains; without these, of 1."""
    total = 0.0
    survival = 1.0
    plain = 0.0 if graded else map_gain(1.0, series.gain_map, series.tables)
    for e in range(n_events):
        rank = ranks[e]
        if rank == 0 and graded:
            total, survival = 0.0, 1.0
        else:
            gain = map_gain(gains[e], series.gain_map, series.tables) if graded else plain
            total, survival = (total, survival) if rank > 0 else (0.0, 1.0)
            total += survival * gain * series.weights[rank]
            survival *= (1.0 - gain) if series.kind == CASCADE and rank > 0 else 1.0
        sums[e] = total


@njit
def weight_series(ranks, weights, sums, half, n_events):
    """Write running sums of kind WEIGHT, which most metrics use.

    `half` is where a user starts near the middle: two independent sums hide the latency of additions.
    """
    total, other, both = 0.0, 0.0, min(half, n_events - half)
    for e in range(both):
        rank, second = np.uint64(ranks[e]), np.uint64(ranks[half + e])
        total = (0.0 if rank == 0 else total) + weights[rank]
        other = (0.0 if second == 0 else other) + weights[second]
        sums[e], sums[half + e] = total, other
    for e in range(both, half):
        total = (0.0 if ranks[e] == 0 else total) + weights[ranks[e]]
        sums[e] = total
    for e in range(half + both, n_events):
        other = (0.0 if ranks[e] == 0 else other) + weights[ranks[e]]
        sums[e] = other


@njit
def sort_gains(block, gains, source, cutoff, min_gain):
    """Sort each user's gains in descending order, from the truth, the list or the first ranks of the list."""
    bounds, sorted_gains = block.bounds, block.sums[1]
    end = 0
    for i in range(block.n):
        start = end
        bounds[SORTED_START, i] = start
        if source == FROM_TRUTH:
            for j in range(block.indptr[block.first + i], block.indptr[block.first + i + 1]):
                if gains[j] > 0 and gains[j] >= min_gain:
                    sorted_gains[end] = gains[j]
                    end += 1
        else:
            for j in range(bounds[START, i] + 1, bounds[START, i + 1]):
                if source != FROM_CUT_LIST or block.ranks[j] <= cutoff:
                    sorted_gains[end] = block.gains[j]
                    end += 1
        sort_descending(sorted_gains[start:end])
    bounds[SORTED_START, block.n] = end


@njit
def sorted_series(sorted_gains, starts, n, weights, gain_map, tables, sums):
    """Write running sums of mapped gains x weights over the sorted gains of each user."""
    for i in range(n):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += map_gain(sorted_gains[j], gain_map, tables) * weights[j - starts[i] + 1]
            sums[j] = total


@njit
def read_sorted(sums, starts, limits, out, n):
    """Read the running sum of each user after limits[i] gains, or after all of them."""
    for i in range(n):
        length = min(starts[i + 1] - starts[i], np.int64(limits[i]))
        out[i] = sums[starts[i] + length - 1] if length > 0 else 0.0


@njit
def count_within(ranks, start, limits, counts, n):
    """Count hits within the first limits[i] ranks."""
    i, hits = -1, 0
    for e in range(start[n]):
        is_hit = ranks[e] > 0
        i += not is_hit
        hits = (hits if is_hit else 0) + (is_hit & (ranks[e] <= np.int64(limits[i])))
        counts[i] = hits


@njit
def hits_at(op, is_counted, program, block, n_tied, ties):
    """Write the hits within limits and a cut-off; `is_counted` says that those within the limits are known."""
    cutoff, limits, out = program.cutoffs[op[2]], block.rows[op[3]], block.rows[op[1]]
    within, counts = block.counts[len(program.cutoffs)], block.counts[op[2]]
    if not is_counted:
        count_within(block.ranks, block.bounds[START], limits, within, block.n)
    for i in range(block.n):
        out[i] = min(within[i], counts[i])
    if ties is not None:
        read_expected_hits_at(cutoff, block.bounds, limits, n_tied, ties, out)


@njit
def combine(code, x, y, out, n):
    """Apply an arithmetic operation to two rows."""
    if code == ADD:
        for i in range(n):
            out[i] = x[i] + y[i]
    elif code == SUBTRACT:
        for i in range(n):
            out[i] = x[i] - y[i]
    elif code == MULTIPLY:
        for i in range(n):
            out[i] = x[i] * y[i]
    elif code == DIVIDE:
        for i in range(n):
            quotient = x[i] / y[i] + (y[i] - y[i])  # NaN, which is rejected, if y is a sum that has overflowed
            out[i] = 0.0 if x[i] == 0.0 and y[i] == 0.0 else quotient
    elif code == MINIMUM:
        for i in range(n):
            out[i] = min(x[i], y[i])
    elif code == SELECT:
        for i in range(n):
            value = y[i]  # loaded in any case, so that the compiler does several at a time
            out[i] = value if x[i] != 0.0 else 0.0
    elif code == BLANK:
        for i in range(n):
            out[i] = y[i] if x[i] != 0.0 else np.nan


@njit
def fill_from_whole(values, out, n):
    """Write integers as a row."""
    for i in range(n):
        out[i] = values[i]


@njit
def fill_status(status, highest, out, n):
    """Write 1 for users with a status of at most `highest`, else 0."""
    for i in range(n):
        out[i] = 1.0 if status[i] <= highest else 0.0


@njit
def read_sums(sums, start, counts, out, n):
    """Read the running sum of each user after its first counts[i] hits."""
    for i in range(n):
        out[i] = sums[np.uint64(start[i] + counts[i])]


@njit
def read_means(sums, start, counts, out, n):
    """Read the running sum of each user after its first counts[i] hits, divided by counts[i]."""
    for i in range(n):
        out[i] = sums[start[i] + counts[i]] / counts[i] if counts[i] > 0 else 0.0


@njit
def read_pairs(sums, bounds, counts, cutoff, out, n):
    """Read the share of the pairs of hits and other items within a cut-off that are in the right order."""
    for i in range(n):
        listed = min(cutoff, bounds[N_LISTED, i])
        out[i] = share_of_pairs(counts[i], listed, sums[bounds[START, i] + counts[i]])


@njit
def fill_any(counts, out, n):
    """Write 1 for users with a hit, else 0."""
    for i in range(n):
        out[i] = 1.0 if counts[i] > 0 else 0.0


@njit
def series_of(program, kind, weight, gain_map, deepest):
    """Return a running sum, given the numbers of its tables."""
    weights, cumulative = program.weights[weight], program.ideals[weight]
    return Series(kind, weights, cumulative, program.gain_maps[gain_map], program.gain_tables, deepest)


@njit
def deepest_read(program, at):
    """Return the largest cut-off of the reads that follow a series."""
    deepest, at = np.int64(0), at + 1
    while at < len(program.ops) and (READ <= program.ops[at, 0] <= READ_PAIRS):
        deepest = max(deepest, program.cutoffs[program.ops[at, 2]])
        at += 1
    return deepest


@njit
def start_series(series, block, n_tied, ties, graded):
    """Write the running sums of a series over the hits of each user."""
    n_events, sums = block.bounds[START, block.n], block.sums[0]
    if series.kind == WEIGHT:
        weight_series(block.ranks, series.weights, sums, block.bounds[START, block.n // 2], n_events)
    elif series.kind == PRECISION or series.kind == FIRST or series.kind == LAST:
        rank_series(series.kind, block.ranks, series.weights, sums, n_events)
    elif graded or series.kind == CASCADE:
        gain_series(series, block.ranks, block.gains, graded, sums, n_events)
    if ties is not None:
        expected_series(series, block.bounds, n_tied, ties, block.gains, graded, block.sums)


@njit
def read_events(code, cutoff, series, program, block, ties, graded, out):
    """Write a row from the events of a block: a value of the hits within a cut-off."""
    n, bounds, counts, sums = block.n, block.bounds, block.counts[cutoff], block.sums
    if code == READ:
        read_sums(sums[0], bounds[START], counts, out, n)
    elif code == HITS:
        fill_from_whole(counts, out, n)
    elif code == ANY_HIT:
        fill_any(counts, out, n)
    elif code == READ_PAIRS:
        read_pairs(sums[0], bounds, counts, program.cutoffs[cutoff], out, n)
    else:
        read_means(sums[0], bounds[START], counts, out, n)
    if ties is not None:
        cut = Cut(ties.cuts[cutoff], program.cutoffs[cutoff], ties.n_cuts[cutoff])
        if code == READ:
            read_expected_series(series, cut, bounds, ties, block.gains, graded, sums, out)
        elif code == HITS:
            read_expected_hits(cut, bounds, ties, out)
        elif code == ANY_HIT:
            read_expected_any(cut, bounds, ties, out)
        else:
            read_expected_over_hits(code, cut, bounds, ties, series.cumulative, sums[0], out)


@njit
def read_block(code, a, b, program, block, out):
    """Write a row from the counts, status or given values of users, or from other rows."""
    n, rows = block.n, block.rows
    if code <= N_REL:
        fill_from_whole(block.bounds[N_LISTED] if code == N_REC else block.bounds[N_RELEVANT], out, n)
    elif code <= INCLUDED:
        fill_status(block.status, 1 if code == COUNTED else 0, out, n)
    elif code == GIVEN:
        given = block.given[a, block.first : block.first + n]
        for i in range(n):
            out[i] = given[i]
    elif code == GIVEN_AT:
        values, last = block.events[a], block.last[b, block.first : block.first + n]
        for i in range(n):
            out[i] = values[np.uint64(last[i])]
    elif code == CUMULATIVE:
        table = program.ideals[a]
        for i in range(n):
            out[i] = table[np.uint64(rows[b, i])]
    elif code == SQUARE_ROOT:
        for i in range(n):
            out[i] = np.sqrt(rows[a, i])
    elif code == LOGARITHM:
        for i in range(n):
            out[i] = math.log(rows[a, i])
    else:
        combine(code, rows[a], rows[b], out, n)


@njit
def read_gains(op, condition, program, block, gains):
    """Sort gains, sum them up, or read a row from their sums."""
    code, a, b, sums = op[0], op[2], op[3], block.sums
    starts = block.bounds[SORTED_START]
    if code == SORT_GAINS:
        sort_gains(block, gains, a, program.cutoffs[b], program.min_gains[condition])
    elif code == SORTED_SERIES:
        tables = program.gain_tables
        sorted_series(sums[1], starts, block.n, program.weights[a], program.gain_maps[b], tables, sums[2])
    else:
        read_sorted(sums[2], starts, block.rows[a], block.rows[op[1]], block.n)


@njit
def first_beyond(values, limits, n):
    """Return the position of the first value that is not within limits, or -1."""
    low, high = limits[0], limits[1]
    for i in range(n):
        if not (low <= values[i] <= high):
            return i
    return -1


@njit
def run_program(condition, program, block, gains, ties, room):
    """Run the operations of one condition over a block of users; return False on an error.

    `gains` is None, or has those of the truth. `ties` is None, or the tie blocks of the events; users with ties that
    matter then get expected values. `room` is a `SumRoom`.
    """
    graded, n_tied, series, errors = gains is not None, np.int64(0), series_of(program, WEIGHT, 0, 0, 0), room.errors
    last_mask, is_full, last_limits = np.int64(-1), True, np.int64(-1)  # most sums have the same mask
    if ties is not None:
        if program.expected:
            n_tied = find_tied_users(block.bounds, block.gains, graded, program.depth, ties, block.n)
        if n_tied > 0 and program.refuse_ties:
            errors[0] = TIED
            errors[1] = block.first + ties.users[0]
            return False
        find_cuts(program.cutoffs, block.bounds, block.counts, n_tied, ties)
    for at in range(program.condition_ops[condition], program.condition_ops[condition + 1]):
        op = program.ops[at]
        code, a, b, out = op[0], op[2], op[3], block.rows[op[1]]
        if code == ADD_UP:
            if b != a and b != last_mask:
                last_mask, is_full = b, has_no_zero(block.rows[b, : block.n])
            if not add_row(block.rows, block.n, op, b != a and not is_full, room, block.first):
                return False
        elif code == SERIES:
            series = series_of(program, a, b, op[4], deepest_read(program, at))
            start_series(series, block, n_tied, ties, graded)
        elif code == READ or code == HITS or code == ANY_HIT or code == READ_MEAN or code == READ_PAIRS:
            read_events(code, a, series, program, block, ties, graded, out)
        elif code == HITS_AT:
            hits_at(op, b == last_limits, program, block, n_tied, ties)
        elif code == CHECK:
            outside = first_beyond(block.rows[a], program.limits[b], block.n)
            if outside >= 0:
                errors[0] = OUT_OF_LIMITS
                errors[1] = block.first + outside
                errors[2] = b
                return False
        elif SORT_GAINS <= code <= READ_SORTED:
            if gains is not None:
                read_gains(op, condition, program, block, gains)
        else:
            read_block(code, a, b, program, block, out)
        last_limits = b if code == HITS_AT else np.int64(-1)
    return True

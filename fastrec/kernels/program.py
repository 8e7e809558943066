"""The interpreter of row programs: what a formula asks of a block of users, a row of values for each step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import (
    ADD,
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
    HITS,
    HITS_AT_N_REL,
    INCLUDED,
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
    SELECT,
    SERIES,
    SORT_GAINS,
    SORTED_SERIES,
    SORTED_START,
    SQUARE_ROOT,
    START,
    TIED,
    WEIGHT,
)
from fastrec.kernels.gains import map_gain
from fastrec.kernels.hits import sort_descending
from fastrec.kernels.ties import (
    expected_series,
    find_cuts,
    find_tied_users,
    read_expected_any,
    read_expected_hits,
    read_expected_hits_at_n_rel,
    read_expected_mean_precision,
    read_expected_series,
)
from fastrec.runtime.compiler import helper

__all__ = ["Program", "run_program"]


Array = np.ndarray[Any, Any]


class Program(NamedTuple):
    """What to compute; see `fastrec.metrics.program` for how it is written."""

    ops: Array  # int64 (n_ops, 5)
    view_ops: Array  # int64 (n_views + 1,): the operations of each view
    min_gains: Array  # float64 (n_views,): the gain from which an item is relevant, 0 for any gain > 0, -1 for any
    cutoffs: Array  # int64 (n_cutoffs,), ascending
    bucket: Array  # int32 (longest rank + 2,): the first cut-off that a rank is within
    weights: Array  # float64 (n_weight_tables, longest rank + 1): weight of rank r at [r], 0 at [0]
    ideals: Array  # float64 (n_weight_tables, longest ideal + 1): cumulative weights
    gain_maps: Array  # float64 (n_gain_maps, 2): kind, parameter
    gain_tables: Array  # float64 (n_gain_tables, longest table)
    constants: Array  # float64 (n_constants,): fill the first rows
    limits: Array  # float64 (n_limits, 2)
    fixed_rows: Array  # int64 (n_fixed,): rows to sum that stay within [-1, 1]
    general_rows: Array  # int64 (n_general,): rows to sum with any values
    stored_rows: Array  # int64 (n_stored, 3): row, view, whether the policies of the call rule it
    n_rows: int
    find: bool  # find hits, or work on given rows only
    n_items: int  # size of the catalogue
    lowest: int  # 0, or -1 where ranks of a list have been blanked out by negative ids
    policies: Array  # int64 (n_views, 2): for users without truth, and with truth but without a list
    expected: bool  # tied rows count with their mean over all orders
    refuse_ties: bool  # a metric has no closed form for tied scores


@helper
def rank_series(kind, ranks, weights, sums, n_events):
    """Running sums over the hits of each user of what follows from their ranks."""
    total = 0.0
    nth = 0
    for e in range(n_events):
        rank = ranks[e]
        if rank == 0:
            total = 0.0
            nth = 0
        else:
            nth += 1
            if kind == PRECISION:
                total += nth / rank
            elif nth == 1:
                total = weights[rank]
        sums[e] = total


@helper
def gain_series(kind, ranks, gains, weights, gain_map, tables, sums, n_events):
    """Running sums over the hits of each user of what follows from their ranks and gains."""
    total = 0.0
    survival = 1.0
    for e in range(n_events):
        rank = ranks[e]
        if rank == 0:
            total = 0.0
            survival = 1.0
        else:
            gain = map_gain(gains[e], gain_map, tables)
            total += survival * gain * weights[rank]
            if kind == CASCADE:
                survival *= 1.0 - gain
        sums[e] = total


@helper
def weight_series(ranks, weights, sums, n_events):
    """The series of kind WEIGHT, which most metrics use."""
    total = 0.0
    for e in range(n_events):
        rank = ranks[e]
        total = (0.0 if rank == 0 else total) + weights[rank]
        sums[e] = total


@helper
def sort_gains(sorted_gains, bounds, ranks, event_gains, truth_indptr, gains, first, n, source, cutoff, min_gain):
    """Each user's gains in descending order, from the truth, the list or the first ranks of the list."""
    end = 0
    for i in range(n):
        start = end
        bounds[SORTED_START, i] = start
        if source == FROM_TRUTH:
            for j in range(truth_indptr[first + i], truth_indptr[first + i + 1]):
                if gains[j] > 0 and gains[j] >= min_gain:
                    sorted_gains[end] = gains[j]
                    end += 1
        else:
            for j in range(bounds[START, i] + 1, bounds[START, i + 1]):
                if source != FROM_CUT_LIST or ranks[j] <= cutoff:
                    sorted_gains[end] = event_gains[j]
                    end += 1
        sort_descending(sorted_gains[start:end])
    bounds[SORTED_START, n] = end


@helper
def sorted_series(sorted_gains, starts, n, weights, gain_map, tables, sums):
    """Running sums of mapped gains x weights over the sorted gains of each user."""
    for i in range(n):
        total = 0.0
        for j in range(starts[i], starts[i + 1]):
            total += map_gain(sorted_gains[j], gain_map, tables) * weights[j - starts[i] + 1]
            sums[j] = total


@helper
def read_sorted(sums, starts, limits, out, n):
    """The running sum of each user after limits[i] gains, or after all of them."""
    for i in range(n):
        length = min(starts[i + 1] - starts[i], np.int64(limits[i]))
        out[i] = sums[starts[i] + length - 1] if length > 0 else 0.0


@helper
def hits_at_n_rel(ranks, start, n_rel, cutoff, out, n):
    """Hits within the first n_rel ranks and within the cut-off."""
    for i in range(n):
        limit = min(n_rel[i], cutoff)
        hits = 0
        for j in range(start[i] + 1, start[i + 1]):
            hits += ranks[j] <= limit
        out[i] = hits


@helper
def combine(code, x, y, out, n):
    """Arithmetic on two rows."""
    if code == ADD:
        for i in range(n):
            out[i] = x[i] + y[i]
    elif code == MULTIPLY:
        for i in range(n):
            out[i] = x[i] * y[i]
    elif code == DIVIDE:
        for i in range(n):
            quotient = x[i] / y[i]
            out[i] = 0.0 if x[i] == 0.0 and y[i] == 0.0 else quotient
    elif code == MINIMUM:
        for i in range(n):
            out[i] = min(x[i], y[i])
    elif code == SELECT:
        for i in range(n):
            out[i] = y[i] if x[i] != 0.0 else 0.0
    elif code == BLANK:
        for i in range(n):
            out[i] = y[i] if x[i] != 0.0 else np.nan


@helper
def fill_from_whole(values, out, n):
    """Whole numbers as a row."""
    for i in range(n):
        out[i] = values[i]


@helper
def fill_status(status, highest, out, n):
    """1 for users whose status is at most `highest`, else 0."""
    for i in range(n):
        out[i] = 1.0 if status[i] <= highest else 0.0


@helper
def read_sums(sums, start, counts, out, n):
    """The running sum of each user after its first counts[i] hits."""
    for i in range(n):
        out[i] = sums[start[i] + counts[i]]


@helper
def read_means(sums, start, counts, out, n):
    """The same, divided by that number of hits."""
    for i in range(n):
        out[i] = sums[start[i] + counts[i]] / counts[i] if counts[i] > 0 else 0.0


@helper
def fill_any(counts, out, n):
    """1 for users with a hit, else 0."""
    for i in range(n):
        out[i] = 1.0 if counts[i] > 0 else 0.0


@helper
def run_program(
    condition,
    truth_indptr,
    gains,
    program,
    given,
    ranks,
    event_gains,
    bounds,
    counts,
    sums,
    status,
    rows,
    ties,
    first,
    n,
    errors,
):
    """Run the operations of one view over a block of users; False on an error.

    `ties` is None, or the tie blocks of the events: then users with ties that matter get expected values.
    """
    kind, weight, gain_map, n_tied, graded = WEIGHT, np.int64(0), np.int64(0), np.int64(0), gains is not None
    if ties is not None:
        if program.expected:
            n_tied = find_tied_users(bounds, event_gains, graded, ties, n)
        if n_tied > 0 and program.refuse_ties:
            errors[0] = TIED
            errors[1] = first + ties.users[0]
            return False
        find_cuts(program.cutoffs, bounds, counts, n_tied, ties)
    for at in range(program.view_ops[condition], program.view_ops[condition + 1]):
        op = program.ops[at]
        code, a, b, c = op[0], op[2], op[3], op[4]
        out = rows[op[1]]
        if code == READ:
            read_sums(sums[0], bounds[START], counts[a], out, n)
            if ties is not None:
                read_expected_series(
                    kind,
                    ties.cuts[a],
                    program.cutoffs[a],
                    bounds,
                    ties.n_cuts[a],
                    ties,
                    event_gains,
                    graded,
                    program.gain_maps[gain_map],
                    program.gain_tables,
                    program.weights[weight],
                    program.ideals[weight],
                    sums,
                    out,
                )
        elif code == HITS:
            fill_from_whole(counts[a], out, n)
            if ties is not None:
                read_expected_hits(ties.cuts[a], program.cutoffs[a], bounds, ties.n_cuts[a], ties, out)
        elif code == ANY_HIT:
            fill_any(counts[a], out, n)
            if ties is not None:
                read_expected_any(ties.cuts[a], program.cutoffs[a], bounds, ties.n_cuts[a], ties, out)
        elif code == READ_MEAN:
            read_means(sums[0], bounds[START], counts[a], out, n)
            if ties is not None:
                cut, harmonic = ties.cuts[a], program.ideals[weight]
                read_expected_mean_precision(
                    cut, program.cutoffs[a], bounds, ties.n_cuts[a], ties, harmonic, sums[0], out
                )
        elif code <= N_REL:
            fill_from_whole(bounds[N_LISTED] if code == N_REC else bounds[N_RELEVANT], out, n)
        elif code <= INCLUDED:
            fill_status(status, 1 if code == COUNTED else 0, out, n)
        elif code == GIVEN:
            for i in range(n):
                out[i] = given[a, first + i]
        elif code == HITS_AT_N_REL:
            hits_at_n_rel(ranks, bounds[START], bounds[N_RELEVANT], program.cutoffs[a], out, n)
            if ties is not None:
                read_expected_hits_at_n_rel(program.cutoffs[a], bounds, bounds[N_RELEVANT], n_tied, ties, out)
        elif code == SERIES:
            kind, weight, gain_map = a, b, c
            weights, n_events = program.weights[b], bounds[START, n]
            if a == WEIGHT:
                weight_series(ranks, weights, sums[0], n_events)
            elif a == PRECISION or a == FIRST:
                rank_series(a, ranks, weights, sums[0], n_events)
            elif gains is not None:
                tables = program.gain_tables
                gain_series(a, ranks, event_gains, weights, program.gain_maps[c], tables, sums[0], n_events)
            if ties is not None:
                expected_series(
                    a,
                    bounds,
                    n_tied,
                    ties,
                    event_gains,
                    graded,
                    program.gain_maps[c],
                    program.gain_tables,
                    weights,
                    program.ideals[b],
                    sums,
                )
        elif code == CUMULATIVE:
            table = program.ideals[a]
            for i in range(n):
                out[i] = table[np.uint64(rows[b, i])]
        elif code == SQUARE_ROOT:
            for i in range(n):
                out[i] = np.sqrt(rows[a, i])
        elif code == CHECK:
            low, high = program.limits[b, 0], program.limits[b, 1]
            for i in range(n):
                if not (low <= rows[a, i] <= high):
                    errors[0] = OUT_OF_LIMITS
                    errors[1] = first + i
                    errors[2] = b
                    return False
        elif code >= ADD:
            combine(code, rows[a], rows[b], out, n)
        elif gains is not None:
            starts, tables = bounds[SORTED_START], program.gain_tables
            if code == SORT_GAINS:
                cutoff, least = program.cutoffs[b], program.min_gains[condition]
                sort_gains(sums[1], bounds, ranks, event_gains, truth_indptr, gains, first, n, a, cutoff, least)
            elif code == SORTED_SERIES:
                sorted_series(sums[1], starts, n, program.weights[a], program.gain_maps[b], tables, sums[2])
            else:
                read_sorted(sums[2], starts, rows[a], out, n)
    return True

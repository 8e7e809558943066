"""Lists against truth: find each user's hits once, then run a row program over blocks of users.

Arrays in, arrays out; everything index-like was checked before. A kernel and its helpers share this file, because an
edited helper elsewhere would leave a stale compiled caller.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import (
    ADD,
    ANY_HIT,
    BLANK,
    BLOCK,
    CASCADE,
    CHECK,
    COUNTED,
    CUMULATIVE,
    DIVIDE,
    DUPLICATE_REC,
    DUPLICATE_TRUTH,
    ERROR,
    FACT_HITS,
    FACT_LISTED,
    FACT_RELEVANT,
    FINE,
    FIRST,
    FROM_CUT_LIST,
    FROM_TRUTH,
    GENERAL_SCALE,
    GIVEN,
    HITS,
    HITS_AT_N_REL,
    INCLUDED,
    JUDGED,
    LISTED,
    MINIMUM,
    MULTIPLY,
    N_LISTED,
    N_NO_RECS,
    N_NO_TRUTH,
    N_REC,
    N_REL,
    N_RELEVANT,
    NAN,
    NEGATIVE_REC,
    NEGATIVE_TRUTH,
    OUT_OF_LIMITS,
    OUT_OF_RANGE,
    OVERFLOW,
    PRECISION,
    READ,
    READ_MEAN,
    SELECT,
    SERIES,
    SKIP,
    SMALL_CATALOGUE,
    SORT_GAINS,
    SORTED_SERIES,
    SORTED_START,
    SQUARE_ROOT,
    START,
    TIED,
    USER_NO_RECS,
    USER_NO_TRUTH,
    WEIGHT,
    ZERO,
)
from fastrec.kernels.gains import map_gain
from fastrec.kernels.ties import (
    Ties,
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

Array = np.ndarray[Any, Any]

GOLDEN = 0x9E3779B97F4A7C15
SMALL_TABLE = 13  # log2 of the slots that serve lists and truth of up to SMALL_ROWS ids together
SMALL_ROWS = 512
SLOTS_PER_ID = 4  # for more ids
LARGEST_BASE = 2**31 - 2
LARGEST_FIXED = 1.0 + 1e-9  # a ratio may round past its bound
MAGNITUDE = 0x7FFFFFFFFFFFFFFF  # the bits of a double but for its sign
MOST_BINADES = 20  # between values whose squares have no bit below the digits of `add_fixed`, see `add_many`

FEW_HITS = 24  # up to here hits are put in rank order by insertion
TOO_MANY_STEPS = 16  # steps per id before a user's ids are hashed again with another multiplier


class Log(NamedTuple):
    """Lists and truth in CSR form; users are the same on both sides."""

    rec_items: Array  # int32 (n_rec_rows,), in rank order; or twice as many, the halves of int64
    rec_indptr: Array  # int64 (n_users + 1,)
    truth_items: Array  # as rec_items (n_truth_rows,)
    truth_indptr: Array  # int64 (n_users + 1,)
    wide: bool  # ids are int64; one kernel takes both, as all else in it is the same


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


class Users(NamedTuple):
    """What is known of users besides their items."""

    groups: Array  # int32 (n_groupings, n_users): 1-based group of each user in each grouping
    given: Array  # float64 (n_given, n_users)


class Totals(NamedTuple):
    """What comes out, one set per bin so that threads never share a line."""

    fixed: Array  # int64 (bins, n_groups + 1, n_fixed, 6)
    general: Array  # int64 (bins, n_groups + 1, n_general, 2, DIGITS)
    counts: Array  # int64 (bins, n_groups + 1, n_views, 4)
    facts: Array  # int64 (bins, 3)
    errors: Array  # int64 (bins, 3): code, user, detail
    stored: Array  # float64 (n_stored, n_users)


class TieScratch(NamedTuple):
    """Working memory for tie blocks, one set per bin; see `fastrec.kernels.ties`."""

    above: Array  # int32 (bins, 2, n_events): of events found, of events kept by a view
    tied: Array  # int32 (bins, 2, n_events)
    users: Array  # int32 (bins, BLOCK)
    cuts: Array  # int32 (bins, n_cutoffs, 3, BLOCK)
    n_cuts: Array  # int64 (bins, n_cutoffs)
    products: Array  # float64 (bins, longest list + 1)


class Scratch(NamedTuple):
    """Working memory, one set per bin; see `fastrec.evaluation.run`.

    The hits of a block of users are its events, in rank order, with a rank 0 to open each user.
    """

    table: Array  # int32 (bins, slots), zeros
    base: Array  # int64 (bins,), ones: what the positions of the next user are counted from in the table
    positions: Array  # int32 (bins, n_events)
    sources: Array  # int32 (bins, n_events)
    marks: Array  # int32 (bins, longest list + 1)
    status: Array  # int64 (bins, BLOCK), zeros
    rows: Array  # float64 (bins, n_rows, BLOCK), constants filled in
    bits: Array  # int64: `rows` as bits
    ranks: Array  # int32 (bins, 2, n_events): events found, events kept by a view
    gains: Array  # float64 (bins, 2, n_events), or no events where truth has no gains
    bounds: Array  # int64 (bins, 2, 4, BLOCK + 1): START, N_RELEVANT, N_LISTED, SORTED_START
    counts: Array  # int64 (bins, n_cutoffs, BLOCK)
    sums: Array  # float64 (bins, 3, n_events): running sums, sorted gains, their running sums


@helper
def slot_of(item, multiplier, shift):
    """Multiply-shift hashing: the top bits of the product."""
    return (np.uint64(item) * multiplier) >> shift


@helper
def first_negative(row):
    """Position of the first id below 0."""
    at = 0
    while row[at] >= 0:
        at += 1
    return at


@helper
def index_list(row, lowest, table, base, multiplier, shift):
    """Put positions of `row` into the hash table as base + position; returns (code, position).

    A slot below `base` is free: it belongs to an earlier user, so the table is never cleared between users. What is
    rare (a step to the next slot) carries the checks, what is done for every id is as little as can be.
    """
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    free_below = np.int32(base)
    steps_left = TOO_MANY_STEPS * (len(row) + 64)
    signs = np.int64(0)
    for j in range(len(row)):
        item = row[j]
        signs |= item
        slot = slot_of(item, multiplier, shift)
        while table[slot] >= free_below:
            if row[np.uint64(table[slot] - free_below)] == item:
                if item < 0:
                    return NEGATIVE_REC, first_negative(row)
                return DUPLICATE_REC, j
            slot = (slot + one) & top
            steps_left -= 1
            if steps_left < 0:
                return -1, j
        table[slot] = np.int32(base + j)
    if signs < 0 and lowest == 0:
        return NEGATIVE_REC, first_negative(row)
    return FINE, 0


@helper
def probe_truth(row, held, table, base, multiplier, shift, positions, sources):
    """Look up the truth in the table over the list; returns (code, truth position, hits).

    A found or new truth item takes its slot over as base + len(row) + position, so a second copy is seen.
    """
    n = len(row)
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    free_below = np.int32(base)
    steps_left = TOO_MANY_STEPS * (n + len(held) + 64)
    signs = np.int64(0)
    hits = 0
    for i in range(len(held)):
        item = held[i]
        signs |= item
        slot = slot_of(item, multiplier, shift)
        while table[slot] >= free_below:
            at = np.int64(table[slot] - free_below)
            if at < n:
                if row[np.uint64(at)] == item:
                    positions[hits] = np.int32(at + 1)
                    sources[hits] = np.int32(i)
                    hits += 1
                    break
            elif held[np.uint64(at - n)] == item:
                if item < 0:
                    return NEGATIVE_TRUTH, first_negative(held), 0
                return DUPLICATE_TRUTH, i, 0
            slot = (slot + one) & top
            steps_left -= 1
            if steps_left < 0:
                return -1, i, 0
        table[slot] = np.int32(base + n + i)
    if signs < 0:
        return NEGATIVE_TRUTH, first_negative(held), 0
    return FINE, 0, hits


@helper
def order_by_rank(positions, sources, hits, n, marks):
    """Sort `positions` ascending and `sources` along with them."""
    if hits <= FEW_HITS:
        for i in range(1, hits):
            position = positions[i]
            source = sources[i]
            j = i
            while j > 0 and positions[j - 1] > position:
                positions[j] = positions[j - 1]
                sources[j] = sources[j - 1]
                j -= 1
            positions[j] = position
            sources[j] = source
        return
    for p in range(n + 1):
        marks[p] = -1
    for i in range(hits):
        marks[positions[i]] = sources[i]
    i = 0
    for p in range(n + 1):
        if marks[p] >= 0:
            positions[i] = np.int32(p)
            sources[i] = marks[p]
            i += 1


@helper
def sort_descending(values):
    """In place: insertion for few, heap sort for many (no quadratic case)."""
    n = len(values)
    if n <= 32:
        for i in range(1, n):
            value = values[i]
            j = i
            while j > 0 and values[j - 1] < value:
                values[j] = values[j - 1]
                j -= 1
            values[j] = value
        return
    for root in range(n // 2 - 1, -1, -1):
        sink(values, root, n)
    for end in range(n - 1, 0, -1):
        smallest = values[0]
        values[0] = values[end]
        values[end] = smallest
        sink(values, 0, end)


@helper
def sink(values, root, n):
    """Let values[root] sink in a heap whose smallest value is at the top."""
    value = values[root]
    child = 2 * root + 1
    while child < n:
        if child + 1 < n and values[child + 1] < values[child]:
            child += 1
        if values[child] >= value:
            break
        values[root] = values[child]
        root = child
        child = 2 * root + 1
    values[root] = value


@helper
def find_hits(row, held, lowest, table, base, positions, sources):
    """Ranks of the truth items in `row`; returns (code, position, hits, base for the next user)."""
    rows = len(row) + len(held)
    bits = SMALL_TABLE
    if rows > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * rows:
            bits += 1
    slots = table[: 1 << bits]
    shift = np.uint64(64 - bits)
    multiplier = np.uint64(GOLDEN)
    while True:
        if base + rows > LARGEST_BASE:
            for slot in range(len(table)):
                table[slot] = 0
            base = np.int64(1)
        code, position = index_list(row, lowest, slots, base, multiplier, shift)
        hits = 0
        if code == FINE:
            code, position, hits = probe_truth(row, held, slots, base, multiplier, shift, positions, sources)
        base += rows
        if code != -1:
            return code, position, hits, base
        # ids that crowd under one multiplier spread under another; it must be odd to keep all bits
        multiplier = (multiplier * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)) | np.uint64(1)


@helper
def find_hits_of_user(log, u, lowest, table, base, positions, sources):
    """The same for the list and the truth of a user."""
    first, last = log.rec_indptr[u], log.rec_indptr[u + 1]
    held_first, held_last = log.truth_indptr[u], log.truth_indptr[u + 1]
    if log.wide:
        row = log.rec_items[2 * first : 2 * last].view(np.int64)
        held = log.truth_items[2 * held_first : 2 * held_last].view(np.int64)
        return find_hits(row, held, lowest, table, base, positions, sources)
    row, held = log.rec_items[first:last], log.truth_items[held_first:held_last]
    return find_hits(row, held, lowest, table, base, positions, sources)


@helper
def rank_in_blocks(ranks, above, first, last):
    """Ranks of a user's events when the relevant rows of each tie block come first."""
    for e in range(first, last):
        ranks[e] = ranks[e - 1] + 1 if e > first and above[e] == above[e - 1] else above[e] + 1


@helper
def loosest(min_gains):
    """The gain that rows must be above to be relevant to some view: 0, or -1 where one takes any gain."""
    least = 0.0
    for view in range(len(min_gains)):
        least = min(least, min_gains[view])
    return least


@helper
def collect_block(log, list_blocks, gains, first, last, program, scratch, ties, at, ranks, event_gains, bounds, errors):
    """Write down the hits of users first..last-1 that are relevant to some view; False on an error."""
    positions, sources, table = scratch.positions[at], scratch.sources[at], scratch.table[at]
    # what changes with every user stays in registers: bins share cache lines
    base = scratch.base[at]
    not_relevant = loosest(program.min_gains)
    n_events = 0
    for u in range(first, last):
        i = u - first
        held_from = log.truth_indptr[u]
        n_list, n_held = log.rec_indptr[u + 1] - log.rec_indptr[u], log.truth_indptr[u + 1] - held_from
        code, position, hits, base = find_hits_of_user(log, u, program.lowest, table, base, positions, sources)
        if code != FINE:
            errors[0] = code
            errors[1] = u
            errors[2] = position
            return False
        order_by_rank(positions, sources, hits, n_list, scratch.marks[at])
        bounds[START, i] = n_events
        ranks[n_events] = 0
        n_events += 1
        n_rel = n_held
        kept = hits
        if gains is None:
            for j in range(hits):
                ranks[n_events + j] = positions[j]
            n_events += hits
        else:
            held_gains = gains[held_from : log.truth_indptr[u + 1]]
            n_rel = 0
            for j in range(n_held):
                n_rel += held_gains[j] > not_relevant
            kept = 0
            for j in range(hits):
                gain = held_gains[sources[j]]
                if gain > not_relevant:
                    ranks[n_events] = positions[j]
                    event_gains[n_events] = gain
                    n_events += 1
                    kept += 1
        if list_blocks is not None:
            above, tied = ties.above[at, 0], ties.tied[at, 0]
            for e in range(n_events - kept, n_events):
                above[e] = list_blocks[0, log.rec_indptr[u] + ranks[e] - 1]
                tied[e] = list_blocks[1, log.rec_indptr[u] + ranks[e] - 1]
            rank_in_blocks(ranks, above, n_events - kept, n_events)
        bounds[N_RELEVANT, i] = n_rel
        bounds[N_LISTED, i] = n_list
        if n_list + n_rel - kept > program.n_items:
            errors[0] = SMALL_CATALOGUE
            errors[1] = u
            errors[2] = n_list + n_rel - kept
            return False
    bounds[START, last - first] = n_events
    scratch.base[at] = base
    return True


@helper
def filter_block(ranks, event_gains, ties, at, expected, bounds, truth_indptr, gains, first, n, min_gain):
    """Copy the events found (row 0) whose gain is above 0 and at least `min_gain` to the events kept (row 1).

    `ties` is None or a `TieScratch`. Where no rule decides, the events kept come first in their blocks again.
    """
    e = 0
    for i in range(n):
        bounds[1, START, i] = e
        ranks[1, e] = 0
        e += 1
        for j in range(bounds[0, START, i] + 1, bounds[0, START, i + 1]):
            if event_gains[0, j] > 0 and event_gains[0, j] >= min_gain:
                ranks[1, e] = ranks[0, j]
                event_gains[1, e] = event_gains[0, j]
                if ties is not None:
                    ties.above[at, 1, e] = ties.above[at, 0, j]
                    ties.tied[at, 1, e] = ties.tied[at, 0, j]
                e += 1
        if ties is not None:
            if expected:
                rank_in_blocks(ranks[1], ties.above[at, 1], bounds[1, START, i] + 1, e)
        n_rel = 0
        for j in range(truth_indptr[first + i], truth_indptr[first + i + 1]):
            n_rel += gains[j] > 0 and gains[j] >= min_gain
        bounds[1, N_RELEVANT, i] = n_rel
        bounds[1, N_LISTED, i] = bounds[0, N_LISTED, i]
    bounds[1, START, n] = e


@helper
def count_hits(ranks, n_events, bucket, counts, n):
    """Hits of each user within each cut-off."""
    n_cutoffs = len(counts)
    for c in range(n_cutoffs):
        for i in range(n):
            counts[c, i] = 0
    last = np.int32(len(bucket) - 1)
    i = -1
    for e in range(n_events):
        rank = ranks[e]
        if rank == 0:
            i += 1
        else:
            c = bucket[min(rank, last)]
            if c < n_cutoffs:
                counts[c, i] += 1
    for c in range(1, n_cutoffs):
        for i in range(n):
            counts[c, i] += counts[c - 1, i]


@helper
def judge_users(n_rel, n_rec, truth_indptr, rules, status, counts, groups, first, n, errors):
    """Which policy rules each user: 0 none, 1 counted as 0, 2 counted as NaN, 3 left out; counts them all.

    The columns of the counts are N_EVALUATED, N_NAN, N_NO_TRUTH, N_NO_RECS.
    """
    tally = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    for i in range(n):
        reason = 0
        policy = -1
        if n_rel[i] == 0:
            reason = N_NO_TRUTH
            policy = rules[0]
            if policy == JUDGED:
                judged = truth_indptr[first + i + 1] > truth_indptr[first + i]
                policy = ZERO if judged and (n_rec[i] > 0 or rules[1] != SKIP) else SKIP
            if policy == LISTED:
                policy = ZERO if n_rec[i] > 0 else SKIP
        elif n_rec[i] == 0:
            reason = N_NO_RECS
            policy = rules[1]
        if policy == ERROR:
            errors[0] = USER_NO_TRUTH if reason == N_NO_TRUTH else USER_NO_RECS
            errors[1] = first + i
            return False
        status[i] = 0 if policy == -1 else 1 if policy == ZERO else 2 if policy == NAN else 3
        one = (status[i] < 2, status[i] == 2, reason == N_NO_TRUTH, reason == N_NO_RECS)
        tally = (tally[0] + one[0], tally[1] + one[1], tally[2] + one[2], tally[3] + one[3])
        for g in range(len(groups)):
            for column in range(4):
                counts[groups[g, first + i], column] += one[column]
    for column in range(4):
        counts[0, column] += tally[column]
    return True


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
    view,
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
    for at in range(program.view_ops[view], program.view_ops[view + 1]):
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
                cutoff, least = program.cutoffs[b], program.min_gains[view]
                sort_gains(sums[1], bounds, ranks, event_gains, truth_indptr, gains, first, n, a, cutoff, least)
            elif code == SORTED_SERIES:
                sorted_series(sums[1], starts, n, program.weights[a], program.gain_maps[b], tables, sums[2])
            else:
                read_sorted(sums[2], starts, rows[a], out, n)
    return True


@helper
def add_fixed(row, first, last, total):
    """Add values in [-1, 1] and their squares in three 32-bit digits each: exact, in any order.

    Returns how many values are outside that range, or no numbers.
    """
    base = 4294967296.0
    high, low, lowest = np.int64(0), np.int64(0), np.int64(0)
    high2, low2, lowest2 = np.int64(0), np.int64(0), np.int64(0)
    outside = np.int64(0)
    for i in range(first, last):
        outside += not (abs(row[i]) <= LARGEST_FIXED)
    if outside > 0:
        return outside
    for i in range(first, last):
        value = row[i]
        scaled = value * base
        whole = np.int64(scaled)
        rest = (scaled - whole) * base
        part = np.int64(rest)
        high += whole
        low += part
        lowest += np.int64((rest - part) * base)
        scaled = value * value * base
        whole = np.int64(scaled)
        rest = (scaled - whole) * base
        part = np.int64(rest)
        high2 += whole
        low2 += part
        lowest2 += np.int64((rest - part) * base)
    total[0] += high
    total[1] += low
    total[2] += lowest
    total[3] += high2
    total[4] += low2
    total[5] += lowest2
    return outside


@helper
def first_outside(row):
    """Position of the first value that is not within [-1, 1]."""
    i = 0
    while abs(row[i]) <= LARGEST_FIXED:
        i += 1
    return i


@helper
def add_digits(mantissa, exponent, digits):
    """Add mantissa * 2^exponent to base 2^32 digits (Neal 2015); carries wait until the sum is read."""
    at = exponent + GENERAL_SCALE
    digit = at >> 5
    shift = np.uint64(at & 31)
    magnitude = np.uint64(abs(mantissa))
    low = (magnitude & np.uint64(0xFFFFFFFF)) << shift
    high = (magnitude >> np.uint64(32)) << shift
    sign = np.int64(1) if mantissa >= 0 else np.int64(-1)
    digits[digit] += sign * np.int64(low & np.uint64(0xFFFFFFFF))
    digits[digit + 1] += sign * np.int64((low >> np.uint64(32)) + (high & np.uint64(0xFFFFFFFF)))
    digits[digit + 2] += sign * np.int64(high >> np.uint64(32))


@helper
def add_general(value, bits, total):
    """Add any finite value and its square; False for NaN and infinities."""
    if value == 0.0:
        return True
    exponent = (bits >> 52) & 0x7FF
    if exponent == 0x7FF:
        return False
    fraction = bits & 0xFFFFFFFFFFFFF
    mantissa = fraction | (np.int64(1) << 52) if exponent > 0 else fraction
    exponent = max(exponent, 1) - 1075
    add_digits(mantissa if bits >= 0 else -mantissa, exponent, total[0])
    # the square, of the fraction in (0, 2) so that it neither overflows nor vanishes
    scaled = mantissa * 2.220446049250313e-16
    square = scaled * scaled
    add_digits(np.int64(square * 4503599627370496.0), 2 * (exponent + 52) - 52, total[1])
    return True


@helper
def add_many(row, bits, n, scaled, digits, total):
    """Add values of similar size and their squares, many at a time; False, and nothing added, if they are not."""
    largest, smallest = np.int64(0), np.int64(MAGNITUDE)
    for i in range(n):
        magnitude = bits[i] & MAGNITUDE
        largest = max(largest, magnitude)
        smallest = min(smallest, magnitude if magnitude > 0 else np.int64(MAGNITUDE))
    if largest == 0:
        return True
    exponent = (largest >> 52) - 1022  # all values are below 2^exponent
    if abs(exponent) > 512 or (largest >> 52) - (smallest >> 52) > MOST_BINADES:
        return False
    # a value is at least 2^-21 of that: its last bit is worth 2^-73 and that of its square 2^-94 or more
    scale = math.ldexp(1.0, -int(exponent))
    for i in range(n):
        scaled[i] = row[i] * scale
    for d in range(6):
        digits[d] = 0
    add_fixed(scaled, 0, n, digits)
    for d in range(3):
        add_digits(digits[d], exponent - 32 * (d + 1), total[0])
        add_digits(digits[3 + d], 2 * exponent - 32 * (d + 1), total[1])
    return True


@helper
def add_rows(fixed_rows, general_rows, groups, fixed, general, rows, bits, first, n, errors, spare):
    """Add the rows of a block to the sums of all users and of each group; False on an overflow.

    `spare` is None, or float64 (BLOCK,) and int64 (6,) to add the rows of all users many at a time.
    """
    for g in range(-1, len(groups)):  # -1 for all users: the whole block at once, else one user at a time
        step = n if g < 0 else 1
        for i in range(0, n, step):
            group = 0 if g < 0 else groups[g, first + i]
            for j in range(len(fixed_rows)):
                row = rows[fixed_rows[j]]
                if add_fixed(row, i, i + step, fixed[group, j]) > 0:
                    errors[0] = OUT_OF_RANGE
                    errors[1] = first + first_outside(row)
                    errors[2] = j
                    return False
            for j in range(len(general_rows)):
                r = general_rows[j]
                if spare is not None:
                    if g < 0 and add_many(rows[r], bits[r], n, spare[0], spare[1], general[0, j]):
                        continue
                for u in range(i, i + step):
                    if not add_general(rows[r, u], bits[r, u], general[group, j]):
                        errors[0] = OVERFLOW
                        errors[1] = first + u
                        errors[2] = j
                        return False
    return True


@helper
def store_rows(stored_rows, stored, view, rows, status, first, n):
    """Per-user values of one view, NaN where the user was not counted."""
    for j in range(len(stored_rows)):
        if stored_rows[j, 1] == view:
            row = rows[stored_rows[j, 0]]
            out = stored[j, first : first + n]
            for i in range(n):
                out[i] = np.nan if status[i] >= 2 and stored_rows[j, 2] else row[i]


@helper
def add_facts(n_rel, n_rec, n_events, n, facts):
    """What the report says of the data: relevant items, those found, users with both sides."""
    facts[FACT_HITS] += n_events - n
    for i in range(n):
        facts[FACT_RELEVANT] += n_rel[i]
        if n_rel[i] > 0 and n_rec[i] > 0:
            facts[FACT_LISTED] += 1


@helper
def ties_of(scratch, at, which):
    """The tie blocks of the events found, or of those kept by a view."""
    return Ties(
        scratch.above[at, which],
        scratch.tied[at, which],
        scratch.users[at],
        scratch.cuts[at],
        scratch.n_cuts[at],
        scratch.products[at],
    )


@helper
def evaluate_view(view, ties, truth_indptr, gains, program, users, totals, scratch, at, which, first, n):
    """Count users and run the operations of one view on its events; False on an error."""
    errors, status, bounds = totals.errors[at], scratch.status[at], scratch.bounds[at, which]
    ranks, counts = scratch.ranks[at, which], scratch.counts[at]
    if program.find:
        count_hits(ranks, bounds[START, n], program.bucket, counts, n)
        rules, people = program.policies[view], totals.counts[at, :, view]
        known = (bounds[N_RELEVANT], bounds[N_LISTED], truth_indptr)
        if not judge_users(*known, rules, status, people, users.groups, first, n, errors):
            return False
        if view == 0:
            add_facts(bounds[N_RELEVANT], bounds[N_LISTED], bounds[START, n], n, totals.facts[at])
    event_gains, rows, sums = scratch.gains[at, which], scratch.rows[at], scratch.sums[at]
    if not run_program(
        view,
        truth_indptr,
        gains,
        program,
        users.given,
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
        return False
    store_rows(program.stored_rows, totals.stored, view, rows, status, first, n)
    return True


@helper
def add_block(program, users, totals, scratch, at, first, n, spare):
    """Add the rows of a block to the sums of bin `at`; False on an overflow."""
    rows, bits, fixed, general = scratch.rows[at], scratch.bits[at], totals.fixed[at], totals.general[at]
    errors = totals.errors[at]
    return add_rows(
        program.fixed_rows, program.general_rows, users.groups, fixed, general, rows, bits, first, n, errors, spare
    )


def evaluate_bin(log, list_blocks, gains, program, users, totals, scratch, tie_scratch, blocks, starts, at):
    """Evaluate the users of blocks[starts[at]:starts[at + 1]] into bin `at` of the totals, or leave an error there.

    `tie_scratch` and `list_blocks` are None, or a `TieScratch` and int32 (2, n_rec_rows) where scores of a list are
    tied: how many rows have a higher score, how many have this one.
    """
    n_users = len(log.rec_indptr) - 1
    ranks, event_gains, bounds = scratch.ranks[at], scratch.gains[at], scratch.bounds[at]
    for b in blocks[starts[at] : starts[at + 1]]:
        first = b * BLOCK
        last = min(first + BLOCK, n_users)
        n = last - first
        if program.find:
            found = (ranks[0], event_gains[0], bounds[0])
            if not collect_block(
                log, list_blocks, gains, first, last, program, scratch, tie_scratch, at, *found, totals.errors[at]
            ):
                return
        for view in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch for plain truth
                if program.min_gains[view] > loosest(program.min_gains):
                    which = 1
                    least = program.min_gains[view]
                    expected, indptr = program.expected, log.truth_indptr
                    filter_block(ranks, event_gains, tie_scratch, at, expected, bounds, indptr, gains, first, n, least)
            if list_blocks is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            if not evaluate_view(
                view, ties, log.truth_indptr, gains, program, users, totals, scratch, at, which, first, n
            ):
                return
        if not add_block(program, users, totals, scratch, at, first, n, None):
            return

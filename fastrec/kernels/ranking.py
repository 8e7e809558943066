"""Lists against truth: find each user's hits once, then run a row program over blocks of users.

Arrays in, arrays out; everything index-like was checked before. A kernel and its helpers share this file, because an
edited helper elsewhere would leave a stale compiled caller.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange

from fastrec.kernels.jit import helper
from fastrec.kernels.opcodes import (
    ADD,
    BLOCK,
    CHECK,
    COUNTED,
    CUMULATIVE,
    DIVIDE,
    DUPLICATE_REC,
    DUPLICATE_TRUTH,
    ERROR,
    EXP2,
    FACT_CATALOGUE,
    FACT_HITS,
    FACT_LISTED,
    FACT_RELEVANT,
    FINE,
    FIRST,
    FROM_CUT_LIST,
    FROM_TRUTH,
    GAIN_WEIGHT,
    GENERAL_SCALE,
    GIVEN,
    HITS,
    HITS_AT_N_REL,
    INCLUDED,
    LINEAR,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    N_EVALUATED,
    N_NAN,
    N_NO_RECS,
    N_NO_TRUTH,
    N_REC,
    N_REL,
    NAN,
    NEGATIVE_REC,
    NEGATIVE_TRUTH,
    OUT_OF_LIMITS,
    OVERFLOW,
    PRECISION,
    READ,
    SELECT,
    SERIES,
    SORT_GAINS,
    SORTED_SERIES,
    SQUARE_ROOT,
    SUBTRACT,
    TABLE,
    USER_NO_RECS,
    USER_NO_TRUTH,
    WEIGHT,
)

Array = np.ndarray[Any, Any]

GOLDEN = 0x9E3779B97F4A7C15
SMALL_TABLE = 13  # log2 of the slots that serve lists and truth of up to SMALL_ROWS ids together
SMALL_ROWS = 512
SLOTS_PER_ID = 4  # for more ids
LARGEST_BASE = 2**31 - 2
FEW_HITS = 24  # up to here hits are put in rank order by insertion
TOO_MANY_STEPS = 16  # steps per id before a user's ids are hashed again with another multiplier


class Log(NamedTuple):
    """Lists and truth in CSR form; users are the same on both sides."""

    rec_items: Array  # int32 or int64 (n_rec_rows,), in rank order
    rec_indptr: Array  # int64 (n_users + 1,)
    truth_items: Array  # as rec_items (n_truth_rows,)
    truth_indptr: Array  # int64 (n_users + 1,)


class Program(NamedTuple):
    """What to compute; see `fastrec.statistics` for how it is written."""

    ops: Array  # int64 (n_ops, 5)
    view_ops: Array  # int64 (n_views + 1,): the operations of each view
    min_gains: Array  # float64 (n_views,): the gain from which an item is relevant, 0 for any gain > 0
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
    stored_rows: Array  # int64 (n_stored, 2): row, view
    n_rows: int
    find: bool  # find hits, or work on given rows only
    lowest: int  # smallest id allowed in a list: 0, or -1 where ranks have been blanked out
    no_truth: int  # policies
    no_recs: int


class Users(NamedTuple):
    """What is known of users besides their items."""

    groups: Array  # int32 (n_groupings, n_users): 1-based group of each user in each grouping
    given: Array  # float64 (n_given, n_users)


class Totals(NamedTuple):
    """What comes out, one set per bin so that threads never share a line."""

    fixed: Array  # int64 (bins, n_groups + 1, n_fixed, 4)
    general: Array  # int64 (bins, n_groups + 1, n_general, 2, DIGITS)
    counts: Array  # int64 (bins, n_groups + 1, n_views, 4)
    facts: Array  # int64 (bins, 4)
    errors: Array  # int64 (bins, 4): code, user, detail, detail
    stored: Array  # float64 (n_stored, n_users)


class Events(NamedTuple):
    """The hits of a block of users in rank order; a rank 0 opens each user."""

    ranks: Array  # int32 (n_events,)
    gains: Array  # float64 (n_events,)
    start: Array  # int64 (BLOCK + 1,)
    counts: Array  # int32 (n_cutoffs, BLOCK): hits within each cut-off
    n_rel: Array  # int64 (BLOCK,)
    n_rec: Array  # int64 (BLOCK,)
    sums: Array  # float64 (n_events,): the running sum of the latest series
    sorted_gains: Array  # float64 (n_sorted,)
    sorted_start: Array  # int64 (BLOCK + 1,)
    sorted_sums: Array  # float64 (n_sorted,)


class Scratch(NamedTuple):
    """Working memory, one set per bin; see `fastrec.launcher`."""

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
    bounds: Array  # int64 (bins, 2, 4, BLOCK + 1): start, n_rel, n_rec, sorted start
    counts: Array  # int32 (bins, n_cutoffs, BLOCK)
    sums: Array  # float64 (bins, 3, n_events): running sums, sorted gains, their running sums


@helper
def slot_of(item, multiplier, shift):
    """Multiply-shift hashing: the top bits of the product."""
    return (np.uint64(item) * multiplier) >> shift


@helper
def index_list(row, lowest, table, base, multiplier, shift):
    """Put positions of `row` into the hash table as base + position; returns (code, position).

    A slot below `base` is free: it belongs to an earlier user, so the table is never cleared between users.
    """
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    steps = 0
    for j in range(len(row)):
        item = row[j]
        if item < 0:
            if item < lowest:
                return NEGATIVE_REC, j
            continue  # a blanked-out rank
        slot = slot_of(item, multiplier, shift)
        while table[slot] >= base:
            if row[np.uint64(table[slot] - base)] == item:
                return DUPLICATE_REC, j
            slot = (slot + one) & top
            steps += 1
        table[slot] = np.int32(base + j)
        if steps > TOO_MANY_STEPS * (len(row) + 64):
            return -1, j
    return FINE, 0


@helper
def probe_truth(row, held, table, base, multiplier, shift, positions, sources):
    """Look up the truth in the table over the list; returns (code, truth position, hits).

    A found or new truth item takes its slot over as base + len(row) + position, so a second copy is seen.
    """
    n = len(row)
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    steps = 0
    hits = 0
    for i in range(len(held)):
        item = held[i]
        if item < 0:
            return NEGATIVE_TRUTH, i, 0
        slot = slot_of(item, multiplier, shift)
        while table[slot] >= base:
            at = np.int64(table[slot] - base)
            if at < n:
                if row[np.uint64(at)] == item:
                    positions[hits] = np.int32(at + 1)
                    sources[hits] = np.int32(i)
                    hits += 1
                    break
            elif held[np.uint64(at - n)] == item:
                return DUPLICATE_TRUTH, i, 0
            slot = (slot + one) & top
            steps += 1
        table[slot] = np.int32(base + n + i)
        if steps > TOO_MANY_STEPS * (n + len(held) + 64):
            return -1, i, 0
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
def map_gain(gain, gain_map, tables):
    """The gain of a grade; see the kinds of gain map."""
    kind = gain_map[0]
    if kind == LINEAR:
        return gain
    if kind == TABLE:
        return tables[np.int64(gain_map[1]), np.int64(gain)]
    grown = 2.0**gain - 1.0
    return grown if kind == EXP2 else grown / 2.0 ** gain_map[1]


@helper
def find_hits(row, held, lowest, table, bases, at, positions, sources):
    """Ranks of the truth items in `row`; returns (code, position, hits)."""
    rows = len(row) + len(held)
    bits = SMALL_TABLE
    if rows > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * rows:
            bits += 1
    slots = table[: 1 << bits]
    shift = np.uint64(64 - bits)
    multiplier = np.uint64(GOLDEN)
    while True:
        base = bases[at]
        if base + rows > LARGEST_BASE:
            for slot in range(len(table)):
                table[slot] = 0
            base = np.int64(1)
        bases[at] = base + rows
        code, position = index_list(row, lowest, slots, base, multiplier, shift)
        hits = 0
        if code == FINE:
            code, position, hits = probe_truth(row, held, slots, base, multiplier, shift, positions, sources)
        if code != -1:
            return code, position, hits
        multiplier = multiplier * np.uint64(6364136223846793005) + np.uint64(1442695040888963406)


@helper
def collect_block(log, gains, first, last, lowest, scratch, at, events, facts, errors):
    """Fill `events` with the hits of users first..last-1 whose gain is positive; False on an error."""
    positions, sources, table = scratch.positions[at], scratch.sources[at], scratch.table[at]
    n_events = 0
    for u in range(first, last):
        i = u - first
        row = log.rec_items[log.rec_indptr[u] : log.rec_indptr[u + 1]]
        held_from = log.truth_indptr[u]
        held = log.truth_items[held_from : log.truth_indptr[u + 1]]
        code, position, hits = find_hits(row, held, lowest, table, scratch.base, at, positions, sources)
        if code != FINE:
            errors[0] = code
            errors[1] = u
            errors[2] = position
            return False
        order_by_rank(positions, sources, hits, len(row), scratch.marks[at])
        events.start[i] = n_events
        events.ranks[n_events] = 0
        n_events += 1
        n_rel = len(held)
        kept = hits
        if gains is None:
            for j in range(hits):
                events.ranks[n_events + j] = positions[j]
            n_events += hits
        else:
            held_gains = gains[held_from : log.truth_indptr[u + 1]]
            n_rel = 0
            for j in range(len(held)):
                n_rel += held_gains[j] > 0
            kept = 0
            for j in range(hits):
                gain = held_gains[sources[j]]
                if gain > 0:
                    events.ranks[n_events] = positions[j]
                    events.gains[n_events] = gain
                    n_events += 1
                    kept += 1
        events.n_rel[i] = n_rel
        events.n_rec[i] = len(row)
        facts[FACT_CATALOGUE] = max(facts[FACT_CATALOGUE], len(row) + n_rel - kept)
    events.start[last - first] = n_events
    return True


@helper
def filter_block(source, target, log, gains, first, n, min_gain):
    """Copy the events of `source` whose gain is at least `min_gain`."""
    e = 0
    for i in range(n):
        target.start[i] = e
        target.ranks[e] = 0
        e += 1
        for j in range(source.start[i] + 1, source.start[i + 1]):
            if source.gains[j] >= min_gain:
                target.ranks[e] = source.ranks[j]
                target.gains[e] = source.gains[j]
                e += 1
        n_rel = 0
        for j in range(log.truth_indptr[first + i], log.truth_indptr[first + i + 1]):
            n_rel += gains[j] >= min_gain
        target.n_rel[i] = n_rel
        target.n_rec[i] = source.n_rec[i]
    target.start[n] = e


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
                counts[c, i] += np.int32(1)
    for c in range(1, n_cutoffs):
        for i in range(n):
            counts[c, i] += counts[c - 1, i]


@helper
def judge_users(n_rel, n_rec, rules, status, counts, groups, first, n, errors):
    """Which policy rules each user: 0 none, 1 counted as 0, 2 counted as NaN, 3 left out; counts them all."""
    for i in range(n):
        reason = 0
        policy = -1
        if n_rel[i] == 0:
            reason = N_NO_TRUTH
            policy = rules[0]
        elif n_rec[i] == 0:
            reason = N_NO_RECS
            policy = rules[1]
        if policy == ERROR:
            errors[0] = USER_NO_TRUTH if reason == N_NO_TRUTH else USER_NO_RECS
            errors[1] = first + i
            return False
        status[i] = 0 if policy == -1 else 1 if policy == 1 else 2 if policy == NAN else 3
        add_count(counts, groups, first + i, reason, status[i])
    return True


@helper
def add_count(counts, groups, u, reason, status):
    """Count a user in all its groups."""
    for g in range(-1, len(groups)):
        group = counts[0] if g < 0 else counts[groups[g, u]]
        if reason != 0:
            group[reason] += 1
        if status < 2:
            group[N_EVALUATED] += 1
        elif status == 2:
            group[N_NAN] += 1


@helper
def series(kind, ranks, gains, weights, gain_map, tables, sums, n_events):
    """Running sums over the hits of each user, from its first hit on."""
    total = 0.0
    nth = 0
    survival = 1.0
    for e in range(n_events):
        rank = ranks[e]
        if rank == 0:
            total = 0.0
            nth = 0
            survival = 1.0
        elif kind == GAIN_WEIGHT:
            total += map_gain(gains[e], gain_map, tables) * weights[rank]
        elif kind == PRECISION:
            nth += 1
            total += nth / rank
        elif kind == FIRST:
            nth += 1
            if nth == 1:
                total = weights[rank]
        else:
            stop = map_gain(gains[e], gain_map, tables)
            total += survival * stop * weights[rank]
            survival *= 1.0 - stop
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
def sort_gains(events, log, gains, first, n, source, cutoff, min_gain):
    """Each user's gains in descending order, from the truth, the list or the first ranks of the list."""
    end = 0
    for i in range(n):
        start = end
        events.sorted_start[i] = start
        if source == FROM_TRUTH:
            for j in range(log.truth_indptr[first + i], log.truth_indptr[first + i + 1]):
                if gains[j] > 0 and gains[j] >= min_gain:
                    events.sorted_gains[end] = gains[j]
                    end += 1
        else:
            for j in range(events.start[i] + 1, events.start[i + 1]):
                if source != FROM_CUT_LIST or events.ranks[j] <= cutoff:
                    events.sorted_gains[end] = events.gains[j]
                    end += 1
        sort_descending(events.sorted_gains[start:end])
    events.sorted_start[n] = end


@helper
def sorted_series(events, n, weights, gain_map, tables):
    """Running sums of mapped gains x weights over the sorted gains of each user."""
    for i in range(n):
        total = 0.0
        start = events.sorted_start[i]
        for j in range(start, events.sorted_start[i + 1]):
            total += map_gain(events.sorted_gains[j], gain_map, tables) * weights[j - start + 1]
            events.sorted_sums[j] = total


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
    elif code == SUBTRACT:
        for i in range(n):
            out[i] = x[i] - y[i]
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
    elif code == MAXIMUM:
        for i in range(n):
            out[i] = max(x[i], y[i])
    elif code == SELECT:
        for i in range(n):
            out[i] = y[i] if x[i] != 0.0 else 0.0


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
def run_program(view, log, gains, program, users, events, status, rows, first, n, errors):
    """Run the operations of one view over a block of users; False on an error."""
    for at in range(program.view_ops[view], program.view_ops[view + 1]):
        op = program.ops[at]
        code, a, b, c = op[0], op[2], op[3], op[4]
        out = rows[op[1]]
        if code == READ:
            read_sums(events.sums, events.start, events.counts[a], out, n)
        elif code == HITS:
            fill_from_whole(events.counts[a], out, n)
        elif code <= N_REL:
            fill_from_whole(events.n_rec if code == N_REC else events.n_rel, out, n)
        elif code <= INCLUDED:
            fill_status(status, 1 if code == COUNTED else 0, out, n)
        elif code == GIVEN:
            for i in range(n):
                out[i] = users.given[a, first + i]
        elif code == HITS_AT_N_REL:
            hits_at_n_rel(events.ranks, events.start, events.n_rel, program.cutoffs[a], out, n)
        elif code == SERIES:
            n_events = events.start[n]
            if a == WEIGHT:
                weight_series(events.ranks, program.weights[b], events.sums, n_events)
            else:
                weights, gain_map = program.weights[b], program.gain_maps[c]
                series(
                    a,
                    events.ranks,
                    events.gains,
                    weights,
                    gain_map,
                    program.gain_tables,
                    events.sums,
                    n_events,
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
            if code == SORT_GAINS:
                sort_gains(events, log, gains, first, n, a, program.cutoffs[b], program.min_gains[view])
            elif code == SORTED_SERIES:
                sorted_series(events, n, program.weights[a], program.gain_maps[b], program.gain_tables)
            else:
                read_sorted(events.sorted_sums, events.sorted_start, rows[a], out, n)
    return True


@helper
def add_fixed(row, first, last, total):
    """Add values in [-1, 1] and their squares as pairs of 32-bit digits: exact, in any order."""
    high = np.int64(0)
    low = np.int64(0)
    high2 = np.int64(0)
    low2 = np.int64(0)
    for i in range(first, last):
        scaled = row[i] * 4294967296.0
        whole = np.int64(scaled)
        high += whole
        low += np.int64((scaled - whole) * 4294967296.0)
        scaled2 = row[i] * row[i] * 4294967296.0
        whole2 = np.int64(scaled2)
        high2 += whole2
        low2 += np.int64((scaled2 - whole2) * 4294967296.0)
    total[0] += high
    total[1] += low
    total[2] += high2
    total[3] += low2


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
def add_rows(fixed_rows, general_rows, groups, fixed, general, rows, bits, first, n, errors):
    """Add the rows of a block to the sums of all users and of each group; False on an overflow."""
    for j in range(len(fixed_rows)):
        add_fixed(rows[fixed_rows[j]], 0, n, fixed[0, j])
    for j in range(len(general_rows)):
        r = general_rows[j]
        for i in range(n):
            if not add_general(rows[r, i], bits[r, i], general[0, j]):
                errors[0] = OVERFLOW
                errors[1] = first + i
                errors[2] = j
                return False
    for g in range(len(groups)):
        for i in range(n):
            group = groups[g, first + i]
            for j in range(len(fixed_rows)):
                add_fixed(rows[fixed_rows[j]], i, i + 1, fixed[group, j])
            for j in range(len(general_rows)):
                r = general_rows[j]
                add_general(rows[r, i], bits[r, i], general[group, j])
    return True


@helper
def store_rows(stored_rows, stored, view, rows, status, first, n):
    """Per-user values of one view, NaN where the user was not counted."""
    for j in range(len(stored_rows)):
        if stored_rows[j, 1] == view:
            row = rows[stored_rows[j, 0]]
            out = stored[j, first : first + n]
            for i in range(n):
                out[i] = np.nan if status[i] >= 2 else row[i]


@helper
def events_of(scratch, at, which):
    """The events of a bin: 0 those found, 1 those that a view keeps."""
    bounds = scratch.bounds[at, which]
    return Events(
        scratch.ranks[at, which],
        scratch.gains[at, which],
        bounds[0],
        scratch.counts[at],
        bounds[1],
        bounds[2],
        scratch.sums[at, 0],
        scratch.sums[at, 1],
        bounds[3],
        scratch.sums[at, 2],
    )


@helper
def add_facts(n_rel, n_rec, n_events, n, facts):
    """What the report says of the data: relevant items, those found, users with both sides."""
    facts[FACT_HITS] += n_events - n
    for i in range(n):
        facts[FACT_RELEVANT] += n_rel[i]
        if n_rel[i] > 0 and n_rec[i] > 0:
            facts[FACT_LISTED] += 1


def evaluate_bin(log, gains, program, users, totals, scratch, blocks, at):
    """Evaluate the users of `blocks` into bin `at` of the totals, or leave an error there."""
    n_users = len(log.rec_indptr) - 1
    facts, errors, status, rows = totals.facts[at], totals.errors[at], scratch.status[at], scratch.rows[at]
    found = events_of(scratch, at, 0)
    kept = events_of(scratch, at, 1)
    for b in blocks:
        first = b * BLOCK
        last = min(first + BLOCK, n_users)
        n = last - first
        if program.find:
            if not collect_block(log, gains, first, last, program.lowest, scratch, at, found, facts, errors):
                return
        for view in range(len(program.min_gains)):
            events = found
            if gains is not None:  # alone in its condition, so that Numba drops the branch for plain truth
                if program.min_gains[view] > 0.0:
                    filter_block(found, kept, log, gains, first, n, program.min_gains[view])
                    events = kept
            if program.find:
                count_hits(events.ranks, events.start[n], program.bucket, events.counts, n)
                n_rel, n_rec, counts = events.n_rel, events.n_rec, totals.counts[at, :, view]
                rules = (program.no_truth, program.no_recs)
                if not judge_users(n_rel, n_rec, rules, status, counts, users.groups, first, n, errors):
                    return
                if view == 0:
                    add_facts(n_rel, n_rec, events.start[n], n, facts)
            if not run_program(view, log, gains, program, users, events, status, rows, first, n, errors):
                return
            store_rows(program.stored_rows, totals.stored, view, rows, status, first, n)
        fixed, general, bits = totals.fixed[at], totals.general[at], scratch.bits[at]
        fixed_rows, general_rows = program.fixed_rows, program.general_rows
        if not add_rows(fixed_rows, general_rows, users.groups, fixed, general, rows, bits, first, n, errors):
            return


evaluate_bin_inside = helper(evaluate_bin)


def evaluate_parallel(log, gains, program, users, totals, scratch, blocks, bin_starts):
    """All bins at once, each on a thread of its own."""
    for at in prange(len(bin_starts) - 1):
        own = blocks[bin_starts[at] : bin_starts[at + 1]]
        evaluate_bin_inside(log, gains, program, users, totals, scratch, own, at)

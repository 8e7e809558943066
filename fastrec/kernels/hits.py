"""Items of a user's list that are in the user's truth: a hash table of the list, probed by the truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import DUPLICATE_REC, DUPLICATE_TRUTH, FINE, NEGATIVE_REC, NEGATIVE_TRUTH
from fastrec.runtime.compiler import helper

__all__ = ["Scratch", "TieScratch", "find_hits_of_user", "order_by_rank", "sort_descending"]


Array = np.ndarray[Any, Any]
GOLDEN = 0x9E3779B97F4A7C15
SMALL_TABLE = 13  # log2 of the slots for a list and a truth with up to SMALL_ROWS ids together
SMALL_ROWS = 512
SLOTS_PER_ID = 4  # slots per id if there are more ids
MAX_BASE = 2**31 - 2
FEW_HITS = 24  # up to this many hits are sorted by insertion
TOO_MANY_STEPS = 16  # steps per id; beyond, a user's ids are hashed again with another multiplier


class ListArrays(NamedTuple):
    """Lists and truth in CSR form; users are the same on both sides."""

    rec_items: Array  # int32 (n_rec_rows,), in rank order; or twice as many, the halves of int64
    rec_indptr: Array  # int64 (n_users + 1,)
    truth_items: Array  # as rec_items (n_truth_rows,)
    truth_indptr: Array  # int64 (n_users + 1,)
    wide: bool  # ids are int64; one kernel takes both widths, because all else in it is the same
    lengths: Array  # int64 (n_users,) of whole lists whose further items are not in the truth; else empty
    hit_starts: Array  # int64 (n_users,) if the hits are known, as in `fastrec.kernels.listed.Listed`; else empty
    hit_counts: Array  # int64 (n_users,), likewise
    hit_ranks: Array  # int32 (n_hits,), likewise
    hit_sources: Array  # int32 (n_hits,), likewise


class TieScratch(NamedTuple):
    """Working memory for tie blocks, one set per bin; see `fastrec.kernels.ties`."""

    above: Array  # int32 (bins, 2, n_events): of events found, of events kept under a condition
    tied: Array  # int32 (bins, 2, n_events)
    users: Array  # int32 (bins, BLOCK)
    cuts: Array  # int32 (bins, n_cutoffs, 3, BLOCK)
    n_cuts: Array  # int64 (bins, n_cutoffs)
    products: Array  # float64 (bins, 2, longest list + 1)


class Scratch(NamedTuple):
    """Working memory, one set per bin; see `fastrec.evaluation.run`.

    The events of a block of users are their hits, in rank order; an event of rank 0 opens each user.
    """

    table: Array  # int32 (bins, slots), zeros
    base: Array  # int64 (bins,), ones: added to the positions of the next user in the table
    positions: Array  # int32 (bins, n_events)
    sources: Array  # int32 (bins, n_events)
    marks: Array  # int32 (bins, longest list + 1)
    status: Array  # int64 (bins, BLOCK), zeros
    rows: Array  # float64 (bins, n_rows, BLOCK or more), constants filled in
    ranks: Array  # int32 (bins, 2, n_events): events found, events kept under a condition
    gains: Array  # float64 (bins, 2, n_events), or no events if the truth has no gains
    bounds: Array  # int64 (bins, 2, 4, BLOCK + 1): START, N_RELEVANT, N_LISTED, SORTED_START
    counts: Array  # int64 (bins, n_cutoffs + 1, BLOCK): hits within each cut-off; the last row is for those beyond
    sums: Array  # float64 (bins, 3, n_events): running sums, sorted gains, their running sums
    masked: Array  # float64 (bins, BLOCK): values under a mask
    run_ends: Array  # int64 (bins, n_groupings, BLOCK), see `fastrec.kernels.sums.find_runs`
    digits: Array  # int64 (bins, 6): of a sum


@helper
def slot_of(item, multiplier, shift):
    """Return the slot of an item by multiply-shift hashing: the top bits of the product."""
    return (np.uint64(item) * multiplier) >> shift


@helper
def first_negative(row):
    """Return the position of the first id below 0."""
    at = 0
    while row[at] >= 0:
        at += 1
    return at


@helper
def index_list(row, lowest, table, base, multiplier, shift):
    """Put positions of `row` into the hash table as base + position; return (code, position).

    A slot below `base` is free: it belongs to an earlier user, so the table is never cleared between users. The rare
    step to the next slot carries the checks, so that the work for every id stays small.
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
def probe_truth(row, truth, table, base, multiplier, shift, positions, sources):
    """Look up the truth in the table over the list; return (code, truth position, hits).

    Each truth item, found or new, writes base + len(row) + position to its slot, so that a second copy is detected.
    """
    n = len(row)
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    free_below = np.int32(base)
    steps_left = TOO_MANY_STEPS * (n + len(truth) + 64)
    signs = np.int64(0)
    hits = 0
    for i in range(len(truth)):
        item = truth[i]
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
            elif truth[np.uint64(at - n)] == item:
                if item < 0:
                    return NEGATIVE_TRUTH, first_negative(truth), 0
                return DUPLICATE_TRUTH, i, 0
            slot = (slot + one) & top
            steps_left -= 1
            if steps_left < 0:
                return -1, i, 0
        table[slot] = np.int32(base + n + i)
    if signs < 0:
        return NEGATIVE_TRUTH, first_negative(truth), 0
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
    """Sort values in place: by insertion if they are few, else by heap sort, which is never quadratic."""
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
    """Let values[root] sink in a heap that has its smallest value at the top."""
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
def find_hits(row, truth, lowest, table, base, positions, sources):
    """Find the ranks of the truth items in `row`; return (code, position, hits, base for the next user)."""
    rows = len(row) + len(truth)
    bits = SMALL_TABLE
    if rows > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * rows:
            bits += 1
    slots = table[: 1 << bits]
    shift = np.uint64(64 - bits)
    multiplier = np.uint64(GOLDEN)
    while True:
        if base + rows > MAX_BASE:
            for slot in range(len(table)):
                table[slot] = 0
            base = np.int64(1)
        code, position = index_list(row, lowest, slots, base, multiplier, shift)
        hits = 0
        if code == FINE:
            code, position, hits = probe_truth(row, truth, slots, base, multiplier, shift, positions, sources)
        base += rows
        if code != -1:
            return code, position, hits, base
        # ids that crowd under one multiplier spread under another; it must be odd to keep all bits
        multiplier = (multiplier * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)) | np.uint64(1)


@helper
def find_hits_of_user(lists, u, lowest, table, base, positions, sources, marks):
    """Call `find_hits` for the list and the truth of user u, and order the hits by rank, unless they are known."""
    if len(lists.hit_counts) > 0:
        at, hits = lists.hit_starts[u], lists.hit_counts[u]
        for nth in range(hits):
            positions[nth], sources[nth] = lists.hit_ranks[at + nth], lists.hit_sources[at + nth]
        return FINE, 0, hits, base
    first, last = lists.rec_indptr[u], lists.rec_indptr[u + 1]
    held_first, held_last = lists.truth_indptr[u], lists.truth_indptr[u + 1]
    if lists.wide:
        row = lists.rec_items[2 * first : 2 * last].view(np.int64)
        truth = lists.truth_items[2 * held_first : 2 * held_last].view(np.int64)
        code, position, hits, base = find_hits(row, truth, lowest, table, base, positions, sources)
    else:
        row, truth = lists.rec_items[first:last], lists.truth_items[held_first:held_last]
        code, position, hits, base = find_hits(row, truth, lowest, table, base, positions, sources)
    order_by_rank(positions, sources, hits, last - first, marks)
    return code, position, hits, base

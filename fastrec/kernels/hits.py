"""Items of a user's list that are in the user's truth: a hash table of the list, probed by the truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import (
    ABOVE,
    BLOCK,
    COUNT,
    DUPLICATE_REC,
    DUPLICATE_TRUTH,
    FINE,
    FIRST_EVENT,
    LISTED_ROWS,
    NEGATIVE_REC,
    NEGATIVE_TRUTH,
    RANK,
    RELEVANT,
    SOURCE,
    TIED_ROWS,
    UNFINISHED,
)
from .jit import njit, prange

Array = np.ndarray[Any, Any]
GOLDEN = 0x9E3779B97F4A7C15
SMALL_TABLE = 13  # log2 of the slots for a list and a truth with up to SMALL_ROWS ids together
SMALL_ROWS = 512
SLOTS_PER_ID = 4  # slots per id if there are more ids
MAX_BASE = 2**31 - 2
FEW_HITS = 24  # up to this many hits are sorted by insertion
TOO_MANY_STEPS = 16  # steps per id; beyond, a user's ids are hashed again with another multiplier
CROWDED = -1  # the code for that


@njit(forceinline=True)
def slot_of(item, multiplier, shift):
    """Return the slot of an item by multiply-shift hashing: the top bits of the product."""
    return (np.uint64(item) * multiplier) >> shift


@njit
def first_negative(row):
    """Return the position of the first id below 0."""
    at = 0
    while row[at] >= 0:
        at += 1
    return at


@njit(forceinline=True)
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
                return CROWDED, j
        table[slot] = np.int32(base + j)
    if signs < 0 and lowest == 0:
        return NEGATIVE_REC, first_negative(row)
    return FINE, 0


@njit(forceinline=True)
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
                return CROWDED, i, 0
        table[slot] = np.int32(base + n + i)
    if signs < 0:
        return NEGATIVE_TRUTH, first_negative(truth), 0
    return FINE, 0, hits


@njit(forceinline=True)
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


@njit
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


@njit
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


@njit(forceinline=True)
def bits_of_table(n_ids):
    """Return log2 of the slots of a hash table for a list and a truth of n_ids rows together."""
    bits = SMALL_TABLE
    if n_ids > SMALL_ROWS:
        while (1 << bits) < SLOTS_PER_ID * n_ids:
            bits += 1
    return bits


@njit(forceinline=True)
def find_hits(row, truth, lowest, table, base, positions, sources):
    """Find the ranks of the truth items in `row`; return (code, position, hits, base for the next user)."""
    rows = len(row) + len(truth)
    bits = bits_of_table(rows)
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
        if code != CROWDED:
            return code, position, hits, base
        # ids that crowd under one multiplier spread under another; it must be odd to keep all bits
        multiplier = (multiplier * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)) | np.uint64(1)


def size_of_scratch(n_rec: int, n_rel: int) -> int:
    """Return the working memory, in numbers of int32, for lists of up to n_rec and truth of up to n_rel rows."""
    bits: int = bits_of_table(n_rec + n_rel)
    return n_rec + 1 + 2 * n_rel + (1 << bits) + 1


@njit(forceinline=True)
def write_events(at, positions, sources, hits, events):
    """Write the events of a user from `at` on: one of rank 0, then the hits."""
    events[RANK, at] = 0
    for j in range(hits):
        events[RANK, at + 1 + j] = positions[j]
        events[SOURCE, at + 1 + j] = sources[j]


@njit(forceinline=True)
def rank_in_blocks(ranks, above, first, last):
    """Write the ranks of a user's events as if the relevant rows of each tie block came first."""
    for e in range(first, last):
        ranks[e] = ranks[e - 1] + 1 if e > first and above[e] == above[e - 1] else above[e] + 1


@njit(forceinline=True)
def look_up_ties(tie_blocks, list_start, positions, hits, at, events, ties):
    """Write how many rows of the list have a higher score than each hit, and how many the same, from `at` on.

    The hits take the first ranks of their tie blocks: lists of a model hold some rows of the whole lists only.
    """
    if ties is not None:
        for j in range(hits):
            ties[ABOVE, at + j] = tie_blocks[0, list_start + positions[j] - 1]
            ties[TIED_ROWS, at + j] = tie_blocks[1, list_start + positions[j] - 1]
        rank_in_blocks(events[RANK], ties[ABOVE], at, at + hits)


@njit(forceinline=True)
def write_places(places, at, truth_start, sources, hits):
    """Write where hits are among the rows of the truth from `at` on, if asked for."""
    if places is not None:
        for j in range(hits if len(places) > 0 else 0):
            places[at + j] = truth_start + sources[j]


@njit
def find_hits_of_users(users, sides, tie_blocks, lowest, longest, out, scratch):
    """Find the hits of users first..last-1; return (code, user, position) of the first rows at fault.

    `users` is (first, last, the user of column 0 of the spans, the first event). `longest` has the most rows of a list
    and of a truth. `scratch` int32 keeps the hash table from call to call; at first it is 0.
    """
    recs, indptr, truth, truth_indptr = sides
    spans, events, ties, places = out
    first, last, origin, at = users
    sources_from = longest[0] + 1 + longest[1]
    marks, positions = scratch[: longest[0] + 1], scratch[longest[0] + 1 : sources_from]
    sources = scratch[sources_from : sources_from + longest[1]]
    table = scratch[sources_from + longest[1] : len(scratch) - 1]
    base = max(np.int64(scratch[len(scratch) - 1]), np.int64(1))
    fault = (np.int64(FINE), np.int64(0), np.int64(0))
    for u in range(first, last):
        row, wanted = recs[indptr[u] : indptr[u + 1]], truth[truth_indptr[u] : truth_indptr[u + 1]]
        code, position, hits, base = find_hits(row, wanted, lowest, table, base, positions, sources)
        if code != FINE:
            if fault[0] == FINE:
                fault = (np.int64(code), np.int64(u), np.int64(position))
            hits = 0
        order_by_rank(positions, sources, hits, len(row), marks)
        write_events(at, positions, sources, hits, events)
        at += 1
        i = u - origin
        spans[FIRST_EVENT, i], spans[COUNT, i] = at, hits
        spans[RELEVANT, i], spans[LISTED_ROWS, i] = len(wanted), len(row)
        look_up_ties(tie_blocks, indptr[u], positions, hits, at, events, ties)
        write_places(places, at, truth_indptr[u], sources, hits)
        at += hits
    scratch[len(scratch) - 1] = base
    return fault


class BlockHits(NamedTuple):
    """The hits of one block of users after another in the memory of each task, see `fastrec.inputs.hits.Hits`."""

    spans: Array  # int64 (n_tasks, 4, BLOCK)
    events: Array  # int32 (n_tasks, 2, n_events)
    ties: Array  # int32 as events, rows ABOVE and TIED_ROWS; or (0,) without tied scores


class ListRows(NamedTuple):
    """Lists and truth of users, and working memory; see `find_top_hits`."""

    recs: Array
    indptr: Array
    truth: Array
    truth_indptr: Array
    tie_blocks: Array
    lengths: Array  # int64 (n_users,), the lengths of lists of which some rows are known, or empty
    lowest: int
    n_rec: int  # the most rows of a list
    n_rel: int  # the most rows of a truth
    scratch: Array  # int32 (n_tasks, size_of_scratch(n_rec, n_rel)), 0 at first


@njit
def row_of(rows, t):
    """Return row t, or None for an array without rows, as the one value of a tuple: functions must return no arrays.

    Numba drops branches that the dimensions of an argument rule out, and in what is called all that None rules out.
    """
    if rows.ndim > 1:
        return (rows[t],)
    return (None,)


@njit(cache=True)
def find_block_hits(t, b, hits, totals, rows):
    """Find the hits of block b of users in the memory of task t; see `fastrec.kernels.users.evaluate_users`."""
    if totals[t, 0] != FINE:
        return
    totals[t, 0] = UNFINISHED
    spans, (ties,) = hits.spans[t], row_of(hits.ties, t)
    sides = rows.recs, rows.indptr, rows.truth, rows.truth_indptr
    first, last = b * BLOCK, min(b * BLOCK + BLOCK, len(rows.indptr) - 1)
    users, out = (first, last, first, np.int64(0)), (spans, hits.events[t], ties, None)
    longest = rows.n_rec, rows.n_rel
    fault = find_hits_of_users(users, sides, rows.tie_blocks, rows.lowest, longest, out, rows.scratch[t])
    totals[t, 0], totals[t, 1], totals[t, 2] = fault
    if len(rows.lengths) > 0:
        for u in range(first, last):
            spans[LISTED_ROWS, u - first] = rows.lengths[u]


class KnownRows(NamedTuple):
    """The known hits of users; see `fastrec.inputs.hits.Hits`."""

    spans: Array
    events: Array


@njit(cache=True)
def copy_block_hits(t, b, hits, totals, rows):  # noqa: ARG001 - as `find_block_hits`
    """Copy the known hits of block b of users, whose events touch each other, into the memory of task t."""
    spans, events = hits.spans[t], hits.events[t]
    first, last = b * BLOCK, min(b * BLOCK + BLOCK, rows.spans.shape[1])
    begin = rows.spans[FIRST_EVENT, first] - 1
    for u in range(first, last):
        for s in range(4):
            spans[s, u - first] = rows.spans[s, u]
        spans[FIRST_EVENT, u - first] -= begin
    for e in range(begin, rows.spans[FIRST_EVENT, last - 1] + rows.spans[COUNT, last - 1]):
        events[RANK, e - begin], events[SOURCE, e - begin] = rows.events[RANK, e], rows.events[SOURCE, e]


@njit(parallel=True, cache=True)
def find_top_hits(
    first, last, edges, recs, indptr, truth, truth_indptr, lowest, longest, spans, events, places, faults, scratch
):
    """Find the items of each user's list that are in the user's truth: the hits, in the order of their ranks.

    Task t takes users edges[t]..edges[t + 1]-1. `recs`, `truth` : int32 or int64 (n_rows,), ids of the lists in rank
    order, and of the truth; user u has those from indptr[u] to indptr[u + 1]. With `lowest` -1, ids below 0 are places
    without an item; with 0 they are at fault, as an id that stands twice is. `longest` has the most rows of a list and
    of a truth.

    Writes `spans`, `events` and `places`, see `fastrec.inputs.hits.Hits`; and `faults`, int64 (n_tasks, 3): the code,
    user and position of the first fault. Users at fault have no hits. `scratch` : int32 (n_tasks, size_of_scratch),
    all 0.
    """
    for task in prange(first, last):
        t = np.int64(task)
        users = edges[t], edges[t + 1], np.int64(0), truth_indptr[edges[t]] - truth_indptr[0] + edges[t]
        sides, out = (recs, indptr, truth, truth_indptr), (spans, events, None, places)
        fault = find_hits_of_users(users, sides, None, lowest, longest, out, scratch[t])
        faults[t, 0], faults[t, 1], faults[t, 2] = fault

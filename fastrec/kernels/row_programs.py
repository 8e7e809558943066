"""Evaluation of a block of users: run a row program over their hits, and add up its values.

The programs compute DCG, IDCG and all other metrics of ranks; `fastrec.kernels.program` has their operations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import (
    ABOVE,
    BLOCK,
    COUNT,
    ERROR,
    FINE,
    FIRST_EVENT,
    JUDGED,
    LISTED,
    LISTED_ROWS,
    N_LISTED,
    N_NO_RECS,
    N_NO_TRUTH,
    N_RELEVANT,
    NAN,
    RANK,
    RELEVANT,
    SKIP,
    SMALL_CATALOGUE,
    SOURCE,
    START,
    TIED_ROWS,
    UNFINISHED,
    UNREAD,
    USER_NO_RECS,
    USER_NO_TRUTH,
    ZERO,
)
from .hits import rank_in_blocks, row_of
from .jit import njit
from .program import N_GROUPS, OFFSET, Block, program_of, run_program
from .sums import SumRoom, add_data_counts, find_runs, store_rows, totals_of
from .ties import Ties

Array = np.ndarray[Any, Any]
PADDING = 8  # values between rows: loads wait for stores to addresses that differ by a multiple of 4096 bytes


class UserNumbers(NamedTuple):
    """What a program reads of users, beside their hits."""

    indptr: Array  # int64 (n_users + 1,), where the rows of the truth of each user start among `gains`
    gains: Array  # float64 (1, n_truth_rows), or (0,) if all rows of the truth have the gain 1
    groups: Array  # int32 (n_groupings, n_users), the group of each user in each grouping, from 1
    given: Array  # float64 (n_given, n_users), numbers of users
    of_events: Array  # float64 (n_given_of_events, n_events), numbers of events
    last_events: Array  # int32 or int64 (n_given_cutoffs + 1, n_users), the last event within each cut-off, of all


class Tables(NamedTuple):
    """A program."""

    integers: Array  # int64, see `fastrec.kernels.program.pack`
    floats: Array  # float64, likewise
    sizes: Array  # int64 (7,), see `Sizes`


class Memory(NamedTuple):
    """Working memory of all tasks, see `memory_of`."""

    wide: Array  # int64 (n_tasks, n)
    narrow: Array  # int32 (n_tasks, n)
    floats: Array  # float64 (n_tasks, n)


class UserEvents(NamedTuple):
    """The hits of a block of users, see `fastrec.kernels.hits.BlockHits`, and the rows of the truth of all."""

    spans: Array
    events: Array
    ties: Array | None
    indptr: Array


class Scratch(NamedTuple):
    """Working memory for one block of users after another, under one condition after another."""

    status: Array  # int64 (BLOCK,)
    rows: Array  # float64 (n_rows, BLOCK + PADDING), constants filled in
    gains: Array  # float64 (n_gains,)
    bounds: Array  # int64 (4, BLOCK + 1): START, N_RELEVANT, N_LISTED, SORTED_START
    counts: Array  # int64 (n_cutoffs + 1, BLOCK)
    sums: Array  # float64 (3, n_events)
    masked: Array  # float64 (BLOCK,)
    run_ends: Array  # int64 (n_groupings, BLOCK)
    digits: Array  # int64 (6,)


class Sizes(NamedTuple):
    """What decides about the size of working memory."""

    n_rows: int  # of the program
    n_cutoffs: int
    n_groupings: int
    n_events: int  # the most of any block, or rows of its truth if these have gains
    n_gains: int  # as many, or 0 without gains
    n_tied: int  # as many, or 0 without tied scores
    longest: int  # one more than the rows of the longest list with tied scores, or 0


def memory_of(sizes: Sizes) -> tuple[int, int, int]:
    """Return how many int64, int32 and float64 the working memory of a task takes."""
    wide = (6 + sizes.n_cutoffs + sizes.n_groupings) * (BLOCK + 1) + 6 + sizes.n_cutoffs
    narrow = sizes.n_events + 2 * sizes.n_tied + (1 + 3 * sizes.n_cutoffs) * BLOCK
    rows = sizes.n_rows * (BLOCK + PADDING) + BLOCK
    return wide, narrow, rows + sizes.n_gains + 3 * sizes.n_events + 2 * sizes.longest


@njit
def sizes_of(own):
    """Return the sizes that an array holds."""
    return Sizes(own[0], own[1], own[2], own[3], own[4], own[5], own[6])


@njit
def scratch_for(sizes, wide, floats):
    """Return working memory for one block after another."""
    n_counts, n, width = sizes.n_cutoffs + 1, sizes.n_events, BLOCK + PADDING
    first = BLOCK + 4 * (BLOCK + 1)
    groups = first + n_counts * BLOCK
    rows = floats[: sizes.n_rows * width].reshape((sizes.n_rows, width))
    sums, masked = sizes.n_rows * width, sizes.n_rows * width + 3 * n
    return Scratch(
        wide[:BLOCK],
        rows,
        floats[masked + BLOCK : masked + BLOCK + sizes.n_gains],
        wide[BLOCK:first].reshape((4, BLOCK + 1)),
        wide[first:groups].reshape((n_counts, BLOCK)),
        floats[sums:masked].reshape((3, n)),
        floats[masked : masked + BLOCK],
        wide[groups : groups + sizes.n_groupings * BLOCK].reshape((sizes.n_groupings, BLOCK)),
        wide[groups + sizes.n_groupings * BLOCK :][:6],
    )


@njit
def ties_for(sizes, wide, narrow, floats, ties):
    """Return working memory for the tie blocks of a block of users, or None without ties."""
    if ties is None:
        return None
    n, m, c = sizes.n_events, sizes.n_tied, sizes.n_cutoffs
    cuts, end = n + 2 * m + BLOCK, len(floats)
    return Ties(
        narrow[n : n + m],
        narrow[n + m : n + 2 * m],
        narrow[n + 2 * m : cuts],
        narrow[cuts : cuts + c * 3 * BLOCK].reshape((c, 3, BLOCK)),
        wide[len(wide) - c :],
        floats[end - 2 * sizes.longest :].reshape((2, sizes.longest)),
    )


@njit
def is_relevant(gain, min_gain):
    """Return whether a row with a gain is relevant: with `min_gain` 0 above 0, with -1 any row is."""
    return gain > min_gain if min_gain <= 0.0 else gain >= min_gain


@njit
def count_relevant(gains, min_gain):
    """Count the rows of a user that are relevant."""
    found = 0
    for j in range(len(gains)):
        found += is_relevant(gains[j], min_gain)
    return found


@njit
def check_catalogue(users, gains, program, first, n, errors):
    """Return whether no list and truth of a block of users hold more items than the catalogue; else write an error.

    Rows of the truth are counted that are relevant under some condition.
    """
    spans, n_items, most = users.spans, program.n_items, np.int64(0)
    for i in range(n):
        most = max(most, spans[LISTED_ROWS, i] + spans[RELEVANT, i] - spans[COUNT, i])
    for i in range(n if most > n_items else 0):
        n_rel, hits = spans[RELEVANT, i], spans[COUNT, i]
        if gains is not None:
            least, start = least_gain(program.min_gains), spans[FIRST_EVENT, i]
            own = gains[users.indptr[first + i] : users.indptr[first + i + 1]]
            n_rel, hits = count_relevant(own, least), np.int64(0)
            for e in range(start, start + spans[COUNT, i]):
                hits += is_relevant(own[users.events[SOURCE, e]], least)
        if spans[LISTED_ROWS, i] + n_rel - hits > n_items:
            errors[0], errors[1], errors[2] = SMALL_CATALOGUE, first + i, spans[LISTED_ROWS, i] + n_rel - hits
            return False
    return True


@njit
def all_events(users, n, bounds):
    """Return the ranks of the events of a block of users where they are, and how many; write their bounds."""
    spans = users.spans
    for i in range(n):
        bounds[START, i] = spans[FIRST_EVENT, i] - 1
        bounds[N_RELEVANT, i] = spans[RELEVANT, i]
        bounds[N_LISTED, i] = spans[LISTED_ROWS, i]
    return users.events[RANK], spans[FIRST_EVENT, n - 1] + spans[COUNT, n - 1]


@njit
def keep_events(min_gain, users, gains, span, ranks, scratch, tied, expected):
    """Write the events of a block of users that are relevant, and return how many.

    With expected values for ties, the relevant rows of a tie block come first in it.
    """
    events, spans, e = users.events, users.spans, np.int64(0)
    for i in range(span[1]):
        u, start = span[0] + i, e
        scratch.bounds[START, i] = e
        ranks[e] = 0
        e += 1
        n_rel = spans[RELEVANT, i]
        if gains is not None:
            n_rel = count_relevant(gains[users.indptr[u] : users.indptr[u + 1]], min_gain)
        for j in range(spans[FIRST_EVENT, i], spans[FIRST_EVENT, i] + spans[COUNT, i]):
            if gains is not None:
                gain = gains[users.indptr[u] + events[SOURCE, j]]
                if not is_relevant(gain, min_gain):
                    continue
                scratch.gains[e] = gain
            ranks[e] = events[RANK, j]
            if tied is not None:
                tied.above[e] = users.ties[ABOVE, j]
                tied.tied[e] = users.ties[TIED_ROWS, j]
            e += 1
        if tied is not None:
            if expected:
                rank_in_blocks(ranks, tied.above, start + 1, e)
        scratch.bounds[N_RELEVANT, i] = n_rel
        scratch.bounds[N_LISTED, i] = spans[LISTED_ROWS, i]
    return e


@njit
def take_events(min_gain, users, gains, span, ranks, scratch, tied, expected):
    """Return the ranks of the events of a block of users that are relevant, and how many; write their bounds.

    They are where they were found, or else, with gains or tied scores, in `ranks`.
    """
    if gains is None:
        if tied is None:
            return all_events(users, span[1], scratch.bounds)
    return ranks, keep_events(min_gain, users, gains, span, ranks, scratch, tied, expected)


@njit
def count_hits(ranks, n_events, bucket, counts, n):
    """Count the hits of each user within each cut-off; the last of the counts is without one."""
    for c in range(len(counts)):
        for i in range(n):
            counts[c, i] = 0
    last = np.int32(len(bucket) - 1)
    i = -1
    for e in range(n_events):
        is_hit = ranks[e] > 0
        i += not is_hit
        counts[bucket[min(ranks[e], last)], i] += is_hit
    for c in range(1, len(counts)):
        for i in range(n):
            counts[c, i] += counts[c - 1, i]


@njit
def judge_users(condition, block, policies, totals, groups):
    """Write the policy for each user and count users; return False on an error.

    0: none, 1: counted as 0, 2: counted as NaN, 3: left out. The columns of the counts are N_EVALUATED, N_NAN,
    N_NO_TRUTH, N_NO_RECS.
    """
    first, status, n_rel, n_rec = block.first, block.status, block.bounds[N_RELEVANT], block.bounds[N_LISTED]
    rules, counts, errors = policies[condition], totals.counts[:, condition], totals.errors
    tally = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
    for i in range(block.n):
        reason = 0
        policy = -1
        if n_rel[i] == 0 and rules[0] != UNREAD:
            reason = N_NO_TRUTH
            policy = rules[0]
            if policy == JUDGED:
                judged = block.indptr[first + i + 1] > block.indptr[first + i]
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


@njit
def least_gain(min_gains):
    """Return the smallest of the gains from which rows are relevant under some condition, or 0 if all are above."""
    least = 0.0
    for condition in range(len(min_gains)):
        least = min(least, min_gains[condition])
    return least


@njit(cache=True)
def run_block(t, b, edges, hits, users, tables, memory, totals, stored):
    """Run a program for block b of users, whose hits are in the memory of task t; see `evaluate_users`."""
    if totals[t, 0] != FINE:
        return
    totals[t, 0] = UNFINISHED
    integers, (ties,), (gains,) = tables.integers, row_of(hits.ties, t), row_of(users.gains, 0)
    wide, narrow, floats = memory.wide[t], memory.narrow[t], memory.floats[t]
    sizes = sizes_of(tables.sizes)
    tied = ties_for(sizes, wide, narrow, floats, ties)
    program, scratch = program_of(integers, tables.floats), scratch_for(sizes, wide, floats)
    n_groups, n_conditions = integers[N_GROUPS], len(program.min_gains)
    own = totals_of(totals[t], stored, integers[OFFSET], n_groups, program.n_fixed, program.n_general, n_conditions)
    if b == edges[t]:
        for r in range(len(program.constants)):
            scratch.rows[r, :] = program.constants[r]
    first, n = b * BLOCK, min(BLOCK, len(users.indptr) - 1 - b * BLOCK)
    found = UserEvents(hits.spans[t], hits.events[t], ties, users.indptr)
    if program.find and not check_catalogue(found, gains, program, first, n, own.errors):
        return
    of_sums = SumRoom(
        users.groups, scratch.run_ends, own.fixed, own.general, own.errors, scratch.masked, scratch.digits
    )
    find_runs(users.groups, first, n, scratch.run_ends)
    ranks, n_events = narrow[: sizes.n_events], np.int64(0)
    for condition in range(n_conditions):
        if program.find and (condition == 0 or program.graded):  # without gains, conditions have the same hits
            least, span = program.min_gains[condition], (first, n)
            ranks, n_events = take_events(least, found, gains, span, ranks, scratch, tied, program.expected)
            scratch.bounds[START, n] = n_events
            count_hits(ranks, n_events, program.bucket, scratch.counts, n)
        room = scratch.gains, scratch.bounds, scratch.counts, scratch.sums, scratch.status, scratch.rows
        block = Block(first, n, users.indptr, users.given, users.of_events, users.last_events, ranks, *room)
        if program.find and not judge_users(condition, block, program.policies, own, users.groups):
            return
        if program.find and condition == 0:
            add_data_counts(block.bounds[N_RELEVANT], block.bounds[N_LISTED], n_events, n, own.data_counts)
        if not run_program(condition, program, block, gains, tied, of_sums):
            return
        store_rows(program.stored_rows, stored, condition, block.rows, block.status, first + own.offset, n)
    totals[t, 0] = FINE

"""Evaluation of lists against the truth: find each user's hits once, then run a row program over blocks of users.

Arrays in, arrays out; the caller has checked everything that is used as an index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import (
    BLOCK,
    ERROR,
    FINE,
    JUDGED,
    LISTED,
    N_LISTED,
    N_NO_RECS,
    N_NO_TRUTH,
    N_RELEVANT,
    NAN,
    SKIP,
    SMALL_CATALOGUE,
    START,
    UNREAD,
    USER_NO_RECS,
    USER_NO_TRUTH,
    ZERO,
)
from fastrec.kernels.hits import find_hits_of_user
from fastrec.kernels.program import Block, Program, run_program
from fastrec.kernels.sums import SumRoom, Totals, add_data_counts, find_runs, store_rows
from fastrec.kernels.ties import Ties
from fastrec.runtime.compiler import helper, inlined

Array = np.ndarray[Any, Any]


class UserArrays(NamedTuple):
    """Groups and given values of users, and of the events of `fastrec.kernels.listed.Listed`."""

    groups: Array  # int32 (n_groupings, n_users): 1-based group of each user in each grouping
    given: Array  # float64 (n_given, n_users)
    events: Array  # float64 (n_given_of_events, n_events)
    last: (
        Array  # int32 or int64 (n_given_cutoffs + 1, n_users): the last event of each user within each cut-off, of all
    )


class Task(NamedTuple):
    """A program, its users and blocks, and the arrays that take the results."""

    program: Program
    users: UserArrays
    totals: Totals
    scratch: Any  # `fastrec.kernels.hits.Scratch`, or `fastrec.kernels.positives.ScoreScratch`
    blocks: Array  # int64 (n_blocks,), grouped by bin
    starts: Array  # int64 (n_bins + 1,): where the blocks of each bin start


class Span(NamedTuple):
    """The users of a block, and the bin that lends its memory to them."""

    at: int
    first: int
    n: int


@helper
def rank_in_blocks(ranks, above, first, last):
    """Write the ranks of a user's events as if the relevant rows of each tie block came first."""
    for e in range(first, last):
        ranks[e] = ranks[e - 1] + 1 if e > first and above[e] == above[e - 1] else above[e] + 1


@helper
def loosest(min_gains):
    """Return the gain that rows must exceed to be relevant under some condition: 0, or -1 if one takes any gain."""
    least = 0.0
    for condition in range(len(min_gains)):
        least = min(least, min_gains[condition])
    return least


@inlined
def keep_relevant(ranks, event_gains, start, positions, sources, hits, gains, not_relevant):
    """Write a user's hits with a gain above `not_relevant` as events from `start` on; return how many."""
    kept = 0
    for j in range(hits):
        gain = gains[sources[j]]
        if gain > not_relevant:
            ranks[start + kept] = positions[j]
            event_gains[start + kept] = gain
            kept += 1
    return kept


@inlined
def count_above(gains, limit):
    """Count the gains above a limit."""
    found = 0
    for j in range(len(gains)):
        found += gains[j] > limit
    return found


@inlined
def place_in_blocks(ranks, above, tied, tie_blocks, list_start, first, last):
    """Look up the tie blocks of events first..last-1, and rank the events as if they came first in their blocks."""
    for e in range(first, last):
        above[e] = tie_blocks[0, list_start + ranks[e] - 1]
        tied[e] = tie_blocks[1, list_start + ranks[e] - 1]
    rank_in_blocks(ranks, above, first, last)


@helper
def fail(errors, code, user, detail):
    """Write an error for Python to read; return False, for the caller to return."""
    errors[0] = code
    errors[1] = user
    errors[2] = detail
    return False


@helper
def copy_known(lists, n_items, scratch, span, errors):
    """Write the known hits of a span of users, whose events touch each other; return False on an error."""
    first, last, bounds, ranks = span.first, span.first + span.n, scratch.bounds[span.at, 0], scratch.ranks[span.at, 0]
    begin, end = lists.hit_starts[first] - 1, lists.hit_starts[last - 1] + lists.hit_counts[last - 1]
    most = np.int64(0)
    for i in range(span.n):
        u = first + i
        n_rel, n_list = lists.truth_indptr[u + 1] - lists.truth_indptr[u], lists.rec_indptr[u + 1] - lists.rec_indptr[u]
        bounds[START, i], bounds[N_RELEVANT, i], bounds[N_LISTED, i] = lists.hit_starts[u] - 1 - begin, n_rel, n_list
        most = max(most, n_list + n_rel - lists.hit_counts[u])
    bounds[START, span.n] = end - begin
    for e in range(end - begin):
        ranks[e] = lists.hit_ranks[begin + e]
    for i in range(span.n if most > n_items else 0):
        n_ids = bounds[N_LISTED, i] + bounds[N_RELEVANT, i] - lists.hit_counts[first + i]
        if n_ids > n_items:
            return fail(errors, SMALL_CATALOGUE, first + i, n_ids)
    return True


@helper
def collect_block(lists, tie_blocks, gains, program, scratch, ties, span, errors):
    """Write the hits of a span of users that are relevant under some condition; return False on an error."""
    at = span.at
    positions, sources, table, marks = scratch.positions[at], scratch.sources[at], scratch.table[at], scratch.marks[at]
    ranks, event_gains, bounds = scratch.ranks[at, 0], scratch.gains[at, 0], scratch.bounds[at, 0]
    # values that change with every user stay in registers, because bins share cache lines
    base = scratch.base[at]
    not_relevant = loosest(program.min_gains)
    n_events = 0
    for i in range(span.n):
        u = span.first + i
        truth_from, truth_to = lists.truth_indptr[u], lists.truth_indptr[u + 1]
        n_rows, n_rel = lists.rec_indptr[u + 1] - lists.rec_indptr[u], truth_to - truth_from
        n_list = n_rows if len(lists.lengths) == 0 else lists.lengths[u]
        code, position, hits, base = find_hits_of_user(lists, u, program.lowest, table, base, positions, sources, marks)
        if code != FINE:
            return fail(errors, code, u, position)
        bounds[START, i] = n_events
        ranks[n_events] = 0
        n_events += 1
        if gains is None:
            for j in range(hits):
                ranks[n_events + j] = positions[j]
        else:
            own = gains[truth_from:truth_to]
            n_rel = count_above(own, not_relevant)
            hits = keep_relevant(ranks, event_gains, n_events, positions, sources, hits, own, not_relevant)
        n_events += hits
        if tie_blocks is not None:
            above, tied = ties.above[at, 0], ties.tied[at, 0]
            place_in_blocks(ranks, above, tied, tie_blocks, lists.rec_indptr[u], n_events - hits, n_events)
        bounds[N_RELEVANT, i] = n_rel
        bounds[N_LISTED, i] = n_list
        if n_list + n_rel - hits > program.n_items:
            return fail(errors, SMALL_CATALOGUE, u, n_list + n_rel - hits)
    bounds[START, span.n] = n_events
    scratch.base[at] = base
    return True


@helper
def filter_block(scratch, ties, expected, indptr, gains, span, min_gain):
    """Copy the events found (row 0) with a gain above 0 and at least `min_gain` to the events kept (row 1).

    `ties` is None or a `TieScratch`. With expected values for ties, the events kept come first in their blocks again.
    """
    at = span.at
    ranks, event_gains, bounds = scratch.ranks[at], scratch.gains[at], scratch.bounds[at]
    e = 0
    for i in range(span.n):
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
        for j in range(indptr[span.first + i], indptr[span.first + i + 1]):
            n_rel += gains[j] > 0 and gains[j] >= min_gain
        bounds[1, N_RELEVANT, i] = n_rel
        bounds[1, N_LISTED, i] = bounds[0, N_LISTED, i]
    bounds[1, START, span.n] = e


@helper
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


@helper
def judge_users(block, rules, counts, groups, errors):
    """Write the policy for each user and count users; return False on an error.

    0: none, 1: counted as 0, 2: counted as NaN, 3: left out. The columns of the counts are N_EVALUATED, N_NAN,
    N_NO_TRUTH, N_NO_RECS.
    """
    first, status, n_rel, n_rec = block.first, block.status, block.bounds[N_RELEVANT], block.bounds[N_LISTED]
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


@helper
def ties_of(scratch, at, which):
    """Return the tie blocks of the events found, or of those kept under a condition."""
    return Ties(
        scratch.above[at, which],
        scratch.tied[at, which],
        scratch.users[at],
        scratch.cuts[at],
        scratch.n_cuts[at],
        scratch.products[at],
    )


@helper
def block_of(scratch, users, indptr, span, which):
    """Return a span of users with the events found, or with those kept under a condition."""
    at = span.at
    return Block(
        span.first,
        span.n,
        indptr,
        users.given,
        users.events,
        users.last,
        scratch.ranks[at, which],
        scratch.gains[at, which],
        scratch.bounds[at, which],
        scratch.counts[at],
        scratch.sums[at],
        scratch.status[at],
        scratch.rows[at],
    )


@helper
def evaluate_condition(condition, task, block, gains, ties, at):
    """Count users and run the operations of one condition on its events; return False on an error."""
    program, totals, scratch = task.program, task.totals, task.scratch
    errors, general = totals.errors[at], totals.general[at]
    groups, run_ends, masked, digits = task.users.groups, scratch.run_ends[at], scratch.masked[at], scratch.digits[at]
    room = SumRoom(groups, run_ends, totals.fixed[at], general, errors, masked, digits)
    if condition == 0 and len(groups) > 0:
        find_runs(groups, block.first, block.n, run_ends)
    if program.find:
        bounds, n_events = block.bounds, block.bounds[START, block.n]
        if condition == 0 or gains is not None:  # else conditions have the same hits
            count_hits(block.ranks, n_events, program.bucket, block.counts, block.n)
        rules, people = program.policies[condition], totals.counts[at, :, condition]
        if not judge_users(block, rules, people, groups, errors):
            return False
        if condition == 0:
            add_data_counts(bounds[N_RELEVANT], bounds[N_LISTED], n_events, block.n, totals.data_counts[at])
    if not run_program(condition, program, block, gains, ties, room):
        return False
    store_rows(program.stored_rows, totals.stored, condition, block.rows, block.status, block.first, block.n)
    return True


def evaluate_bin(lists, tie_blocks, gains, task, tie_scratch, at):
    """Evaluate the users of the blocks of bin `at` into its totals, or write an error there.

    With tied scores, `tie_scratch` is a `TieScratch` and `tie_blocks` is int32 (2, n_rec_rows): how many rows of the
    list have a higher score, and how many this one. Otherwise both are None.
    """
    program, scratch, indptr = task.program, task.scratch, lists.truth_indptr
    n_users = len(lists.rec_indptr) - 1
    for b in task.blocks[task.starts[at] : task.starts[at + 1]]:
        span = Span(at, b * BLOCK, min(BLOCK, n_users - b * BLOCK))
        if program.find:
            errors = task.totals.errors[at]
            if gains is None and tie_blocks is None and len(lists.hit_counts) > 0:
                if not copy_known(lists, program.n_items, scratch, span, errors):
                    return
            elif not collect_block(lists, tie_blocks, gains, program, scratch, tie_scratch, span, errors):
                return
        for condition in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch for plain truth
                if program.min_gains[condition] > loosest(program.min_gains):
                    which = 1
                    least = program.min_gains[condition]
                    filter_block(scratch, tie_scratch, program.expected, indptr, gains, span, least)
            if tie_blocks is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            block = block_of(scratch, task.users, indptr, span, which)
            if not evaluate_condition(condition, task, block, gains, ties, at):
                return

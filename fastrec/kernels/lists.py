"""Lists against truth: find each user's hits once, then run a row program over blocks of users.

Arrays in, arrays out; everything index-like was checked before.
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
    USER_NO_RECS,
    USER_NO_TRUTH,
    ZERO,
)
from fastrec.kernels.hits import find_hits_of_user, order_by_rank
from fastrec.kernels.program import run_program
from fastrec.kernels.sums import add_data_counts, add_rows, store_rows
from fastrec.kernels.ties import (
    Ties,
)
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]


class Users(NamedTuple):
    """What is known of users besides their items."""

    groups: Array  # int32 (n_groupings, n_users): 1-based group of each user in each grouping
    given: Array  # float64 (n_given, n_users)


@helper
def rank_in_blocks(ranks, above, first, last):
    """Ranks of a user's events when the relevant rows of each tie block come first."""
    for e in range(first, last):
        ranks[e] = ranks[e - 1] + 1 if e > first and above[e] == above[e - 1] else above[e] + 1


@helper
def loosest(min_gains):
    """The gain that rows must be above to be relevant to some view: 0, or -1 where one takes any gain."""
    least = 0.0
    for condition in range(len(min_gains)):
        least = min(least, min_gains[condition])
    return least


@helper
def collect_block(
    lists, list_blocks, gains, first, last, program, scratch, ties, at, ranks, event_gains, bounds, errors
):
    """Write down the hits of users first..last-1 that are relevant to some view; False on an error."""
    positions, sources, table = scratch.positions[at], scratch.sources[at], scratch.table[at]
    # what changes with every user stays in registers: bins share cache lines
    base = scratch.base[at]
    not_relevant = loosest(program.min_gains)
    n_events = 0
    for u in range(first, last):
        i = u - first
        held_from = lists.truth_indptr[u]
        n_list, n_held = lists.rec_indptr[u + 1] - lists.rec_indptr[u], lists.truth_indptr[u + 1] - held_from
        code, position, hits, base = find_hits_of_user(lists, u, program.lowest, table, base, positions, sources)
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
            held_gains = gains[held_from : lists.truth_indptr[u + 1]]
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
                above[e] = list_blocks[0, lists.rec_indptr[u] + ranks[e] - 1]
                tied[e] = list_blocks[1, lists.rec_indptr[u] + ranks[e] - 1]
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
def evaluate_condition(condition, ties, truth_indptr, gains, program, users, totals, scratch, at, which, first, n):
    """Count users and run the operations of one view on its events; False on an error."""
    errors, status, bounds = totals.errors[at], scratch.status[at], scratch.bounds[at, which]
    ranks, counts = scratch.ranks[at, which], scratch.counts[at]
    if program.find:
        count_hits(ranks, bounds[START, n], program.bucket, counts, n)
        rules, people = program.policies[condition], totals.counts[at, :, condition]
        known = (bounds[N_RELEVANT], bounds[N_LISTED], truth_indptr)
        if not judge_users(*known, rules, status, people, users.groups, first, n, errors):
            return False
        if condition == 0:
            add_data_counts(bounds[N_RELEVANT], bounds[N_LISTED], bounds[START, n], n, totals.data_counts[at])
    event_gains, rows, sums = scratch.gains[at, which], scratch.rows[at], scratch.sums[at]
    if not run_program(
        condition,
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
    store_rows(program.stored_rows, totals.stored, condition, rows, status, first, n)
    return True


@helper
def add_block(program, users, totals, scratch, at, first, n, spare):
    """Add the rows of a block to the sums of bin `at`; False on an overflow."""
    rows, bits, fixed, general = scratch.rows[at], scratch.bits[at], totals.fixed[at], totals.general[at]
    errors = totals.errors[at]
    return add_rows(
        program.fixed_rows, program.general_rows, users.groups, fixed, general, rows, bits, first, n, errors, spare
    )


def evaluate_bin(lists, list_blocks, gains, program, users, totals, scratch, tie_scratch, blocks, starts, at):
    """Evaluate the users of blocks[starts[at]:starts[at + 1]] into bin `at` of the totals, or leave an error there.

    `tie_scratch` and `list_blocks` are None, or a `TieScratch` and int32 (2, n_rec_rows) where scores of a list are
    tied: how many rows have a higher score, how many have this one.
    """
    n_users = len(lists.rec_indptr) - 1
    ranks, event_gains, bounds = scratch.ranks[at], scratch.gains[at], scratch.bounds[at]
    for b in blocks[starts[at] : starts[at + 1]]:
        first = b * BLOCK
        last = min(first + BLOCK, n_users)
        n = last - first
        if program.find:
            found = (ranks[0], event_gains[0], bounds[0])
            if not collect_block(
                lists, list_blocks, gains, first, last, program, scratch, tie_scratch, at, *found, totals.errors[at]
            ):
                return
        for condition in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch for plain truth
                if program.min_gains[condition] > loosest(program.min_gains):
                    which = 1
                    least = program.min_gains[condition]
                    expected, indptr = program.expected, lists.truth_indptr
                    filter_block(ranks, event_gains, tie_scratch, at, expected, bounds, indptr, gains, first, n, least)
            if list_blocks is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            if not evaluate_condition(
                condition, ties, lists.truth_indptr, gains, program, users, totals, scratch, at, which, first, n
            ):
                return
        if not add_block(program, users, totals, scratch, at, first, n, None):
            return

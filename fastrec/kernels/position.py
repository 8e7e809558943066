"""Clicks and impressions by rank: counts of rows, users and (query, item) pairs, and the curves fitted to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .list_order import sort_ids
from .resampling import STEP, random_word

Array = np.ndarray[Any, Any]
LANES = 4  # tables of counts that rows take in turn: the next row need not wait for the last write to its cell

# what an entry of a query and a rank is made of
CTR, PIVOT, ADJACENT = range(3)


# Rows


@njit
def count_range(clicks, ranks, counts, first, last):
    """Count rows first..last-1 by rank and click; return the highest rank, or -1 - the row of one outside."""
    highest = 0
    n_ranks = counts.shape[1]
    for i in range(first, last):
        rank = ranks[i]
        if not 1 <= rank <= n_ranks:
            return -1 - i
        highest = max(highest, rank)
        counts[i & (LANES - 1), rank - 1, clicks[i]] += 1
    return highest


@njit(parallel=True, cache=True)
def count_ranks(first, last, clicks, ranks, counts, highest, edges):
    """Count rows edges[t]..edges[t + 1]-1 by rank and click in counts[t], (LANES, n_ranks, 2), for t in first..last-1.

    highest[t] gets the highest rank, or -1 - the row of the first rank outside 1..n_ranks.
    """
    for task in prange(first, last):
        at = np.int64(task)
        highest[at] = count_range(clicks, ranks, counts[at], edges[at], edges[at + 1])


@njit(allocates=True)
def add_some_users(keys, clicks, indptr, sums, first, last):
    """Do as `add_users` does for users first..last-1."""
    own = np.zeros((len(sums), 2), np.int64)
    for u in range(first, last):
        for i in range(indptr[u], indptr[u + 1]):
            own[keys[i], 0] += 1
            own[keys[i], 1] += clicks[i]
        for i in range(indptr[u], indptr[u + 1]):
            key = keys[i]
            n = own[key, 0]
            if n == 0:
                continue
            c = own[key, 1]
            sums[key, 0] += n
            sums[key, 1] += c
            sums[key, 2] += 1
            sums[key, 3] += n * n
            sums[key, 4] += n * c
            sums[key, 5] += c * c
            own[key, 0] = 0
            own[key, 1] = 0


@njit(parallel=True, cache=True)
def add_users(first, last, keys, clicks, indptr, edges, sums):
    """Add the rows of users by key: those of users edges[p]..edges[p + 1]-1 into sums[p], for parts first..last-1.

    Columns of `sums`, (n_parts, n_keys, 6): impressions n, clicks c, users, and sums over users of n^2, n c and c^2.
    """
    for part in prange(first, last):
        own = np.int64(part)
        add_some_users(keys, clicks, indptr, sums[own], edges[own], edges[own + 1])


# Cells: the rows of a pair (query, item) at one rank


@njit(allocates=True)
def cells_of_pairs(packed, indptr, n_ranks, lengths, cells, first, last):
    """Count the rows of pairs first..last-1 by rank."""
    own = np.zeros((n_ranks, 2), np.int64)
    longest = 0
    for p in range(first, last):
        longest = max(longest, indptr[p + 1] - indptr[p])
    size = min(longest, n_ranks)
    seen = np.empty(size, np.int64)
    order = np.empty(size, np.int64)
    spare = np.empty(size, np.int64)
    for p in range(first, last):
        n = 0
        for i in range(indptr[p], indptr[p + 1]):
            rank = packed[i] >> 1
            if own[rank, 0] == 0:
                seen[n] = rank
                n += 1
            own[rank, 0] += 1
            own[rank, 1] += packed[i] & 1
        sort_ids(order, spare, seen[:n])
        for j in range(n):
            rank = seen[order[j]]
            at = indptr[p] + j
            cells[0, at] = rank
            cells[1, at] = own[rank, 0]
            cells[2, at] = own[rank, 1]
            own[rank, 0] = 0
            own[rank, 1] = 0
        lengths[p] = n


@njit(parallel=True, cache=True)
def count_cells(first, last, packed, indptr, n_ranks, lengths, cells, edges):
    """Count rows by rank: the cells of pair p into cells[:, indptr[p]:], ascending by rank, and their number.

    That is for pairs edges[t]..edges[t + 1]-1 of tasks first..last-1. Rows are 2 (rank - 1) + click. Rows of `cells`:
    rank - 1, impressions, clicks. `lengths`, int64 (n_pairs,), gets the number of cells.
    """
    for task in prange(first, last):
        at = np.int64(task)
        cells_of_pairs(packed, indptr, n_ranks, lengths, cells, edges[at], edges[at + 1])


@njit
def move_range(starts, order, indptr, cells, moved, first, last):
    """Copy the cells of pairs order[first:last]."""
    for p in range(first, last):
        start = starts[order[p]]
        for j in range(indptr[p + 1] - indptr[p]):
            for row in range(3):
                moved[row, indptr[p] + j] = cells[row, start + j]


@njit(parallel=True, cache=True)
def move_cells(first, last, starts, order, indptr, cells, moved, edges):
    """Copy the cells of pairs `order`, which start at `starts`, to where `indptr` has them in `moved`, int64 (3, n).

    That is for pairs order[edges[t]:edges[t + 1]] of tasks first..last-1.
    """
    for task in prange(first, last):
        at = np.int64(task)
        move_range(starts, order, indptr, cells, moved, edges[at], edges[at + 1])


class PairCells(NamedTuple):
    """Cells of pairs, by query, item and rank."""

    queries: Array  # int64 (n_queries + 1,): where the pairs of each query begin
    indptr: Array  # int64 (n_pairs + 1,): where the cells of each pair begin
    ranks: Array  # int64 (n_cells,): rank - 1
    shown: Array  # int64 (n_cells,)
    clicked: Array  # int64 (n_cells,)


@njit
def steps_of(clicked, shown, scale):
    """Return a share in steps of 1 / scale."""
    return np.int64(np.float64(clicked) / np.float64(shown) * scale + 0.5)


@njit(cache=True)
def fill_entries(cells, method, scale, slots, indptr, ranks, entries):
    """Write what each query adds to each rank: entries[indptr[q]:indptr[q + 1]], with their ranks.

    Columns: clicks and impressions, for CTR; else the share of clicks here and at the rank compared with, each in steps
    of 1 / scale, of the items that the query has at both; and the number of these items. `slots` (n_ranks,) holds -1.
    """
    queries, pointers, of_cells, shown_at, clicked_at = cells
    n = 0
    for q in range(len(queries) - 1):
        start = n
        for p in range(queries[q], queries[q + 1]):
            first = pointers[p]
            for at in range(first, pointers[p + 1]):
                rank = of_cells[at]
                clicked, shown = clicked_at[at], shown_at[at]
                here, there = clicked, shown
                if method != CTR:
                    other = first if method == PIVOT else max(at - 1, first)
                    if rank == 0:
                        other = at
                    elif of_cells[other] != (0 if method == PIVOT else rank - 1):
                        continue
                    here = steps_of(clicked, shown, scale)
                    there = steps_of(clicked_at[other], shown_at[other], scale)
                own = slots[rank]
                if own < start:  # the first cell of the query at this rank
                    own = n
                    slots[rank] = own
                    ranks[own] = rank
                    entries[own, 0] = entries[own, 1] = entries[own, 2] = 0
                    n += 1
                entries[own, 0] += here
                entries[own, 1] += there
                entries[own, 2] += 1
        indptr[q + 1] = n


# Fits, with a weight for each query


@njit
def draw_sample(seed, nth, drawn):
    """Write how often each query is drawn, with replacement, as many as there are; `nth` is the round."""
    n = np.uint64(len(drawn))
    counter = seed + np.uint64(nth) * n * np.uint64(STEP)
    for j in range(len(drawn)):
        drawn[j] = 0
    for _ in range(len(drawn)):
        word = random_word(counter)
        counter += np.uint64(STEP)
        drawn[((word >> np.uint64(32)) * n) >> np.uint64(32)] += 1


@njit(parallel=True, cache=True)
def draw_queries(first, last, seed, start, drawn):
    """Write how often round start + t draws each query to drawn[t], int64 (n_queries,), for t in first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        draw_sample(seed, start + at, drawn[at])


@njit
def weigh_sample(indptr, ranks, entries, drawn, sums):
    """Add the entries of queries, each as often as it is drawn: into sums (n_ranks, 3)."""
    for q in range(len(drawn)):
        weight = drawn[q]
        if weight == 0:
            continue
        for at in range(indptr[q], indptr[q + 1]):
            for column in range(3):
                sums[ranks[at], column] += weight * entries[at, column]


@njit(parallel=True, cache=True)
def weigh_entries(first, last, indptr, ranks, entries, drawn, sums):
    """Add the entries of queries, each drawn[t, q] times: into sums[t] (n_ranks, 3), for tasks t in first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        weigh_sample(indptr, ranks, entries, drawn[at], sums[at])


class Trials(NamedTuple):
    """What expectation maximisation reads of cells: those with impressions that were not clicked."""

    queries: Array  # int64 (n_queries + 1,): where the pairs of each query begin
    indptr: Array  # int64 (n_pairs + 1,): where the cells of each pair begin
    ranks: Array  # int32 (n_cells,): rank - 1
    missed: Array  # int32 or int64 (n_cells,): impressions without a click
    clicks: Array  # float64 (n_pairs,): clicks, and 1
    views: Array  # float64 (n_pairs,): impressions, and 2


@njit
def expect_block(trials, drawn, attraction, examination, own, first, last):
    """Run a round of expectation maximisation over queries first..last-1."""
    queries, indptr, ranks, missed, clicks, views = trials
    for r in range(len(own)):
        own[r] = 0.0
    for q in range(first, last):
        if drawn[q] == 0:
            continue
        for p in range(queries[q], queries[q + 1]):
            attractive = attraction[p]
            weight = drawn[q] * (1.0 - attractive)
            unseen = 0.0
            for at in range(indptr[p], indptr[p + 1]):
                rank = np.uint32(ranks[at])  # a signed index would take a quarter more time
                examined = examination[rank]
                share = missed[at] / (1.0 - examined * attractive)
                unseen += share * (1.0 - examined)
                own[rank] += weight * (share * examined)
            attraction[p] = (clicks[p] + unseen * attractive) / views[p]


@njit(parallel=True, cache=True)
def expect(first, last, queries, indptr, ranks, missed, clicks, views, drawn, attraction, examination, sums, edges):
    """Run a round of expectation maximisation over the blocks first..last-1 of queries; see `Trials`.

    It updates the attraction of the pairs, and writes to sums[b] (n_ranks,) how many impressions of block b without a
    click are expected to be examined. Block b has queries edges[b]..edges[b + 1]-1. The blocks are fixed, so that
    threads do not change the order of sums. Copies of a query that is drawn several times are queries of their own,
    with one attraction.
    """
    for block in prange(first, last):
        trials, b = Trials(queries, indptr, ranks, missed, clicks, views), np.int64(block)
        expect_block(trials, drawn, attraction, examination, sums[b], edges[b], edges[b + 1])


@njit(allocates=True)
def fit_sample(trials, drawn, entries, n_rounds, examination, edges):
    """Run all rounds of expectation maximisation with queries that are drawn so often."""
    n_ranks = len(examination)
    attraction, known, own = np.full(len(trials.indptr) - 1, 0.5), np.full(n_ranks, 0.5), np.empty(n_ranks)
    for _ in range(n_rounds):
        for r in range(n_ranks):
            examination[r] = 1.0 + entries[r, 0]
        for b in range(len(edges) - 1):
            expect_block(trials, drawn, attraction, known, own, edges[b], edges[b + 1])
            for r in range(n_ranks):
                examination[r] += own[r]
        for r in range(n_ranks):
            examination[r] = known[r] = examination[r] / (2.0 + entries[r, 1])


@njit(parallel=True, cache=True)
def fit_samples(
    first, last, queries, indptr, ranks, missed, clicks, views, drawn, entries, n_rounds, examination, edges
):
    """Write the chance that each rank is examined to examination[t], float64 (n_ranks,), for tasks t in first..last-1.

    That is after rounds of expectation maximisation with query q drawn drawn[t, q] times, whose entries have the sums
    entries[t] (n_ranks, 3). The blocks between `edges` are those of `expect`.
    """
    for task in prange(first, last):
        trials, at = Trials(queries, indptr, ranks, missed, clicks, views), np.int64(task)
        fit_sample(trials, drawn[at], entries[at], n_rounds, examination[at], edges)

"""Clicks and impressions by rank: counts of rows, users and (query, item) pairs, and the curves fitted to them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.list_order import sort_by_id
from fastrec.kernels.resampling import STEP, random_word
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
LANES = 4  # tables of counts that rows take in turn: the next row need not wait for the last write to its cell

# what an entry of a query and a rank is made of
CTR, PIVOT, ADJACENT = range(3)


# Rows


def count_ranks(clicks, ranks, counts, first, last):
    """Count rows first..last-1 by rank and click: into counts (LANES, n_ranks, 2); return the highest rank.

    For the first rank outside 1..n_ranks, return -1 - its row.
    """
    highest = 0
    n_ranks = counts.shape[1]
    for i in range(first, last):
        rank = ranks[i]
        if not 1 <= rank <= n_ranks:
            return -1 - i
        highest = max(highest, rank)
        counts[i & (LANES - 1), rank - 1, clicks[i]] += 1
    return highest


def add_users(keys, clicks, indptr, sums, first, last):
    """Add the rows of users first..last-1, by key: into sums (n_keys, 6).

    Columns: impressions n, clicks c, users, and the sums over users of n^2, n c and c^2.
    """
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


# Cells: the rows of a pair (query, item) at one rank


def count_cells(packed, indptr, n_ranks, lengths, cells, first, last):
    """Count the rows of pairs first..last-1 by rank: the cells of pair p into cells[:, indptr[p]:], ascending by rank.

    Rows are 2 (rank - 1) + click. Rows of `cells`: rank - 1, impressions, clicks. `lengths` gets the number of cells.
    """
    own = np.zeros((n_ranks, 2), np.int64)
    longest = 0
    for p in range(first, last):
        longest = max(longest, indptr[p + 1] - indptr[p])
    size = min(longest, n_ranks)
    seen = np.empty(size, np.int64)
    order = np.empty(size, np.int64)
    spare = np.empty(size, np.int64)
    none = np.empty(size)
    for p in range(first, last):
        n = 0
        for i in range(indptr[p], indptr[p + 1]):
            rank = packed[i] >> 1
            if own[rank, 0] == 0:
                seen[n] = rank
                n += 1
            own[rank, 0] += 1
            own[rank, 1] += packed[i] & 1
        sort_by_id(order, spare, seen[:n], none)
        for j in range(n):
            rank = seen[order[j]]
            at = indptr[p] + j
            cells[0, at] = rank
            cells[1, at] = own[rank, 0]
            cells[2, at] = own[rank, 1]
            own[rank, 0] = 0
            own[rank, 1] = 0
        lengths[p] = n


def move_cells(starts, order, indptr, cells, moved, first, last):
    """Copy the cells of pairs order[first:last], which start at `starts`, to where `indptr` has them."""
    for p in range(first, last):
        start = starts[order[p]]
        for j in range(indptr[p + 1] - indptr[p]):
            for row in range(3):
                moved[row, indptr[p] + j] = cells[row, start + j]


class PairCells(NamedTuple):
    """Cells of pairs, by query, item and rank."""

    queries: Array  # int64 (n_queries + 1,): where the pairs of each query begin
    indptr: Array  # int64 (n_pairs + 1,): where the cells of each pair begin
    ranks: Array  # int64 (n_cells,): rank - 1
    shown: Array  # int64 (n_cells,)
    clicked: Array  # int64 (n_cells,)


@helper
def add_entry(entries, slots, ranks, n, start, rank, here, there):
    """Add to the entry of a rank of the query whose entries begin at `start`; return the number of all entries."""
    at = slots[rank]
    if at < start:
        at = n
        slots[rank] = at
        ranks[at] = rank
        entries[at] = 0
        n += 1
    entries[at, 0] += here
    entries[at, 1] += there
    entries[at, 2] += 1
    return n


@helper
def steps_of(clicked, shown, scale):
    """Return a share in steps of 1 / scale."""
    return np.int64(np.float64(clicked) / np.float64(shown) * scale + 0.5)


def fill_entries(cells, method, scale, slots, indptr, ranks, entries):
    """Write what each query adds to each rank: entries[indptr[q]:indptr[q + 1]], with their ranks.

    Columns: clicks and impressions, for CTR; else the share of clicks here and at the rank compared with, each in steps
    of 1 / scale, of the items that the query has at both; and the number of these items. `slots` (n_ranks,) holds -1.
    """
    n = 0
    for q in range(len(cells.queries) - 1):
        start = n
        for p in range(cells.queries[q], cells.queries[q + 1]):
            first = cells.indptr[p]
            for at in range(first, cells.indptr[p + 1]):
                rank = cells.ranks[at]
                clicked, shown = cells.clicked[at], cells.shown[at]
                if method == CTR:
                    n = add_entry(entries, slots, ranks, n, start, rank, clicked, shown)
                    continue
                other = first if method == PIVOT else max(at - 1, first)
                if rank == 0:
                    other = at
                elif cells.ranks[other] != (0 if method == PIVOT else rank - 1):
                    continue
                here = steps_of(clicked, shown, scale)
                there = steps_of(cells.clicked[other], cells.shown[other], scale)
                n = add_entry(entries, slots, ranks, n, start, rank, here, there)
        indptr[q + 1] = n


# Fits, with a weight for each query


def draw_queries(seed, nth, drawn):
    """Write how often each query is drawn, with replacement, as many as there are; `nth` is the round."""
    n = np.uint64(len(drawn))
    counter = seed + np.uint64(nth) * n * np.uint64(STEP)
    for j in range(len(drawn)):
        drawn[j] = 0
    for _ in range(len(drawn)):
        word = random_word(counter)
        counter += np.uint64(STEP)
        drawn[((word >> np.uint64(32)) * n) >> np.uint64(32)] += 1


def weigh_entries(indptr, ranks, entries, drawn, sums):
    """Add the entries of queries, each as often as it is drawn: into sums (n_ranks, 3)."""
    for q in range(len(drawn)):
        weight = drawn[q]
        if weight == 0:
            continue
        for at in range(indptr[q], indptr[q + 1]):
            for column in range(3):
                sums[ranks[at], column] += weight * entries[at, column]


class Trials(NamedTuple):
    """What expectation maximisation reads of cells: those with impressions that were not clicked."""

    queries: Array  # int64 (n_queries + 1,): where the pairs of each query begin
    indptr: Array  # int64 (n_pairs + 1,): where the cells of each pair begin
    ranks: Array  # int32 (n_cells,): rank - 1
    missed: Array  # int32 or int64 (n_cells,): impressions without a click
    clicks: Array  # float64 (n_pairs,): clicks, and 1
    views: Array  # float64 (n_pairs,): impressions, and 2


def expect(trials, drawn, attraction, examination, sums, edges, first, last):
    """Run a round of expectation maximisation over the blocks first..last-1 of queries.

    It updates the attraction of the pairs, and writes to sums[b] (n_ranks,) how many impressions of block b without a
    click are expected to be examined. The blocks are fixed, so that threads do not change the order of sums. Copies of
    a query that is drawn several times are queries of their own, with one attraction.
    """
    for b in range(first, last):
        own = sums[b]
        for r in range(len(own)):
            own[r] = 0.0
        for q in range(edges[b], edges[b + 1]):
            if drawn[q] == 0:
                continue
            for p in range(trials.queries[q], trials.queries[q + 1]):
                attractive = attraction[p]
                weight = drawn[q] * (1.0 - attractive)
                unseen = 0.0
                for at in range(trials.indptr[p], trials.indptr[p + 1]):
                    rank = np.uint32(trials.ranks[at])  # a signed index would take a quarter more time
                    examined = examination[rank]
                    share = trials.missed[at] / (1.0 - examined * attractive)
                    unseen += share * (1.0 - examined)
                    own[rank] += weight * (share * examined)
                attraction[p] = (trials.clicks[p] + unseen * attractive) / trials.views[p]

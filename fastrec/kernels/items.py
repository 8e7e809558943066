"""Values of the items of lists: sums along each list, counts of users, and places in other lists.

Items are *slots*, small integers. Kernels that take tasks first..last-1 write what belongs to users
edges[task]..edges[task + 1]-1 of each task.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .jit import njit, prange
from .list_order import find, longest_row, sort_ids

Array = np.ndarray[Any, Any]
FEW_ITEMS = 48
FEW_KNOWN = 64  # items of a row; more are looked up in their order, by halving
WORDS = 16  # of 64 bits, one for each hash of an item
GOLDEN = 0x9E3779B97F4A7C15


@njit
def sum_values_of_users(items, indptr, cuts, values, sums, first, last):
    """Write the sums of some users.

    Four sums in registers cost little more than one; a loop over them would cost twice as much.
    """
    for u in range(first, last):
        one, two, three, four = 0.0, 0.0, 0.0, 0.0
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                slot = items[at]
                one += values[slot, 0]
                two += values[slot, 1]
                three += values[slot, 2]
                four += values[slot, 3]
                at += 1
            sums[0, c, u] = one
            sums[1, c, u] = two
            sums[2, c, u] = three
            sums[3, c, u] = four


@njit(parallel=True, cache=True)
def sum_values(first, last, edges, items, indptr, cuts, values, sums):
    """Sum four values of each slot, (n_slots, 4), along lists up to the cut-offs: into sums (4, n_cuts, n_users)."""
    for task in prange(first, last):
        sum_values_of_users(items, indptr, cuts, values, sums, edges[task], edges[np.int64(task) + 1])


@njit
def sum_rows_of_users(values, indptr, cuts, weights, sums, first, last):
    """Write the sums of some users."""
    for u in range(first, last):
        total = 0.0
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                total += values[at] * weights[at - indptr[u]]
                at += 1
            sums[c, u] = total


@njit(parallel=True, cache=True)
def sum_rows(first, last, edges, values, indptr, cuts, weights, sums):
    """Sum values of rows (n_rows,), times the weight of their rank, up to the cut-offs: into sums (n_cuts, n_users)."""
    for task in prange(first, last):
        sum_rows_of_users(values, indptr, cuts, weights, sums, edges[task], edges[np.int64(task) + 1])


@njit(cache=True)
def count_users(items, indptr, users, rows, latest):
    """Count the users and the rows of each slot. `latest` holds -1 for each slot."""
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            slot = items[at]
            rows[slot] += 1
            if latest[slot] != u:
                latest[slot] = u
                users[slot] += 1


@njit(allocates=True)
def order_items_of_users(items, indptr, ordered, first, last):
    """Write the items of some users in ascending order."""
    n_items = longest_row(indptr, first, last)
    order, spare = np.empty(n_items, np.int64), np.empty(n_items, np.int64)
    for u in range(first, last):
        row = items[indptr[u] : indptr[u + 1]]
        if len(row) > FEW_ITEMS:
            sort_ids(order, spare, row)
            for i in range(len(row)):
                ordered[indptr[u] + i] = row[order[i]]
            continue
        for i in range(len(row)):  # insertion: a merge sort of few items costs more
            at = indptr[u] + i
            while at > indptr[u] and ordered[at - 1] > row[i]:
                ordered[at] = ordered[at - 1]
                at -= 1
            ordered[at] = row[i]


@njit(parallel=True, cache=True)
def order_items(first, last, edges, items, indptr, ordered):
    """Write the items of each user in ascending order to ordered (n_rows,)."""
    for task in prange(first, last):
        order_items_of_users(items, indptr, ordered, edges[task], edges[np.int64(task) + 1])


class Lookup(NamedTuple):
    """Working memory to look up items of a row."""

    order: Array  # int64 (longest row,)
    spare: Array  # int64 (longest row,)
    present: Array  # uint64 (WORDS,): a bit for each hash of an item


@njit(allocates=True)
def new_lookup(longest):
    """Return working memory for rows up to a length."""
    return Lookup(np.empty(longest, np.int64), np.empty(longest, np.int64), np.empty(WORDS, np.uint64))


@njit(forceinline=True)
def find_all(items, row, lookup, found, places):
    """Write the positions of the items that a row holds, and their places in the row; return how many there are."""
    n, n_found, present = len(row), 0, lookup.present
    if n > FEW_KNOWN:
        sort_ids(lookup.order, lookup.spare, row)
    for word in range(WORDS):
        present[word] = 0
    multiplier, low, one = np.uint64(GOLDEN), np.uint64(63), np.uint64(1)
    for i in range(n):
        bit = np.uint64(row[i]) * multiplier >> np.uint64(54)  # of WORDS * 64
        present[bit >> np.uint64(6)] |= one << (bit & low)
    for j in range(len(items)):
        item = items[j]
        bit = np.uint64(item) * multiplier >> np.uint64(54)
        if present[bit >> np.uint64(6)] >> (bit & low) & one == 0:
            continue
        at = -1
        if n > FEW_KNOWN:
            at = find(item, row, lookup.order, n)
        else:
            for i in range(n):
                if row[i] == item:
                    at = i
                    break
        if at >= 0:
            found[n_found], places[n_found] = j, at
            n_found += 1
    return n_found


@njit(allocates=True)
def find_places_of_users(items, indptr, others, others_indptr, places, first, last):
    """Write the ranks of the items of some users."""
    lookup, longest = new_lookup(longest_row(others_indptr, first, last)), longest_row(indptr, first, last)
    found, at = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for u in range(first, last):
        start, end = indptr[u], indptr[u + 1]
        known = others[others_indptr[u] : others_indptr[u + 1]]
        n_found = find_all(items[start:end], known, lookup, found, at)
        places[start:end] = 0
        for i in range(n_found):
            places[start + found[i]] = at[i] + 1


@njit(parallel=True, cache=True)
def find_places(first, last, edges, items, indptr, others, others_indptr, places):
    """Write the rank of each item in the other list of its user to places, int64 (n_rows,): from 1, 0 without one."""
    for task in prange(first, last):
        find_places_of_users(items, indptr, others, others_indptr, places, edges[task], edges[np.int64(task) + 1])


@njit
def count_places_of_users(places, indptr, cuts, limits, counts, first, last):
    """Write the counts of some users."""
    for u in range(first, last):
        for c in range(len(cuts)):
            found = 0.0
            for at in range(indptr[u], min(indptr[u] + cuts[c], indptr[u + 1])):
                found += 1 <= places[at] <= limits[c]
            counts[c, u] = found


@njit(parallel=True, cache=True)
def count_places(first, last, edges, places, indptr, cuts, limits, counts):
    """Count rows up to each cut-off with a place from 1 to the limit beside it: into counts (n_cuts, n_users)."""
    for task in prange(first, last):
        count_places_of_users(places, indptr, cuts, limits, counts, edges[task], edges[np.int64(task) + 1])


class Depths(NamedTuple):
    """Weights of the depths of two lists."""

    p: float
    powers: Array  # p^d, for d from 0
    harmonic: Array  # sums of p^(j - 1) / j for j <= d
    weights: Array  # sums of p^(j - 1) for j <= d
    deepest: int  # the depth to look at; -1: the end of the longer list


@njit(allocates=True)
def overlap_of_users(places, indptr, lengths, depths, form, out, first, last):
    """Write the rank-biased overlap of some users."""
    most = 0
    for u in range(first, last):
        most = max(most, lengths[0, u], lengths[1, u])
    new = np.zeros(most + 1, np.int64)  # items in common from each depth on
    for u in range(first, last):
        long, short = max(lengths[0, u], lengths[1, u]), min(lengths[0, u], lengths[1, u])
        if short == 0:
            continue
        new[: long + 1] = 0
        for at in range(lengths[0, u]):
            place = places[indptr[u] + at]
            if 1 <= place <= lengths[1, u]:
                new[max(at + 1, place)] += 1
        common, common_short, total = 0, 0, 0.0
        for d in range(1, long + 1):
            common += new[d]
            total += depths.powers[d] * common / d
            if d == short:
                common_short = common
            if form == 0 and d > short:
                total += depths.powers[d] * common_short * (d - short) / (short * d)
        p = depths.p
        if form == 0:
            rest = (common - common_short) / long + common_short / short
            out[u] = (1 - p) / p * total + rest * depths.powers[long]
        elif form == 1:
            out[u] = (1 - p) / p * (total - common * (p * depths.harmonic[long] + math.log1p(-p)))
        else:
            end = long if depths.deepest < 0 else max(depths.deepest, long)
            beyond = common * (depths.harmonic[end] - depths.harmonic[long])
            out[u] = (total / p + beyond) / depths.weights[end]


@njit(parallel=True, cache=True)
def rank_biased_overlap(first, last, edges, places, indptr, lengths, p, powers, harmonic, weights, deepest, form, out):
    """Write the rank-biased overlap of users with two lists to out (n_users,).

    Forms: 0 extrapolated, 1 at least, 2 truncated. `places` are ranks in the other list; `lengths` (2, n_users) are
    those of both lists within the cut-off. The other arguments are those of `Depths`.
    """
    for task in prange(first, last):
        depths = Depths(p, powers, harmonic, weights, deepest)
        overlap_of_users(places, indptr, lengths, depths, form, out, edges[task], edges[np.int64(task) + 1])


@njit(cache=True)
def number_items(items, table, slots, found):
    """Number distinct items in the order in which they first occur, by hashing; return how many there are.

    `table` holds -1, and has a power of 2 of entries, twice as many as there may be items.
    """
    mask = np.uint64(len(table) - 1)
    n = 0
    for at in range(len(items)):
        item = items[at]
        place = (np.uint64(item) * np.uint64(GOLDEN) >> np.uint64(20)) & mask
        while table[place] >= 0 and found[table[place]] != item:
            place = (place + np.uint64(1)) & mask
        if table[place] < 0:
            if 2 * (n + 1) > len(table) or n == len(found):
                return -1
            found[n] = item
            table[place] = n
            n += 1
        slots[at] = table[place]
    return n

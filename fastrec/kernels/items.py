"""Values of the items of lists: sums along each list, counts of users, and places in other lists.

Items are *slots*, small integers. Each function works on a range of users, so that ranges can run in threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.list_order import find, longest_row, sort_by_id

Array = np.ndarray[Any, Any]
FEW_ITEMS = 48


def sum_values(items, indptr, cuts, values, sums, first, last):
    """Sum four values of each slot, (n_slots, 4), along each list up to the cut-offs: into sums (4, n_cuts, n_users).

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


def sum_rows(values, indptr, cuts, weights, sums, first, last):
    """Sum values of rows (n_rows,), times the weight of their rank, up to the cut-offs: into sums (n_cuts, n_users)."""
    for u in range(first, last):
        total = 0.0
        at = indptr[u]
        for c in range(len(cuts)):
            end = min(indptr[u] + cuts[c], indptr[u + 1])
            while at < end:
                total += values[at] * weights[at - indptr[u]]
                at += 1
            sums[c, u] = total


def count_users(items, indptr, users, rows, latest):
    """Count the users and the rows of each slot. `latest` holds -1 for each slot."""
    for u in range(len(indptr) - 1):
        for at in range(indptr[u], indptr[u + 1]):
            slot = items[at]
            rows[slot] += 1
            if latest[slot] != u:
                latest[slot] = u
                users[slot] += 1


def order_items(items, indptr, ordered, first, last):
    """Write the items of each user in ascending order."""
    n_items = longest_row(indptr, first, last)
    order = np.empty(n_items, np.int64)
    spare = np.empty(n_items, np.int64)
    none = np.empty(n_items)
    for u in range(first, last):
        row = items[indptr[u] : indptr[u + 1]]
        if len(row) > FEW_ITEMS:
            sort_by_id(order, spare, row, none)
            for i in range(len(row)):
                ordered[indptr[u] + i] = row[order[i]]
            continue
        for i in range(len(row)):  # insertion: a merge sort of few items costs more
            at = indptr[u] + i
            while at > indptr[u] and ordered[at - 1] > row[i]:
                ordered[at] = ordered[at - 1]
                at -= 1
            ordered[at] = row[i]


def find_places(items, indptr, others, others_indptr, places, first, last):
    """Write the rank of each item in the other list of its user, from 1; 0 if it is not there."""
    n_others = longest_row(others_indptr, first, last)
    order = np.empty(n_others, np.int64)
    spare = np.empty(n_others, np.int64)
    none = np.empty(n_others)
    for u in range(first, last):
        known = others[others_indptr[u] : others_indptr[u + 1]]
        sort_by_id(order, spare, known, none)
        for at in range(indptr[u], indptr[u + 1]):
            places[at] = find(items[at], known, order, len(known)) + 1


def count_places(places, indptr, cuts, limits, counts, first, last):
    """Count rows up to each cut-off with a place from 1 to the limit beside it: into counts (n_cuts, n_users)."""
    for u in range(first, last):
        for c in range(len(cuts)):
            found = 0.0
            for at in range(indptr[u], min(indptr[u] + cuts[c], indptr[u + 1])):
                found += 1 <= places[at] <= limits[c]
            counts[c, u] = found


class Depths(NamedTuple):
    """Weights of the depths of two lists."""

    p: float
    powers: Array  # p^d, for d from 0
    harmonic: Array  # sums of p^(j - 1) / j for j <= d
    weights: Array  # sums of p^(j - 1) for j <= d
    deepest: int  # the depth to look at; -1: the end of the longer list


def rank_biased_overlap(places, indptr, lengths, depths, form, out, first, last):
    """Write the rank-biased overlap of users with two lists; forms: 0 extrapolated, 1 at least, 2 truncated.

    `places` are ranks in the other list; `lengths` (2, n_users) are those of both lists within the cut-off.
    """
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


def number_items(items, table, slots, found):
    """Number distinct items in the order in which they first occur, by hashing; return how many there are.

    `table` holds -1, and has a power of 2 of entries, twice as many as there may be items.
    """
    mask = np.uint64(len(table) - 1)
    n = 0
    for at in range(len(items)):
        item = items[at]
        place = (np.uint64(item) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) & mask
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

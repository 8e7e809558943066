"""Grouping of rows by user, in their order, without sorting all rows.

Rows first go to *buckets*, few enough to write to all of them at once, then to their places within the bucket, which
fits a cache. Task t of a driver works on the rows, buckets or users edges[t]..edges[t + 1]-1. What it writes depends on
the rows alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import njit, prange
from .list_order import longest_row, sort_ids

Array = np.ndarray[Any, Any]

SECOND_MULTIPLIER = 0xD6E8FEB86659FD93  # keys of one bucket agree in the top bits of the first product
LANES = 64  # rows compared together
TOO_MANY_STEPS = 8  # per key of a bucket; more mean that the keys were chosen to collide
WIDE_RANKS = 4  # ranks that spread over more places per row are sorted


@njit
def scan_range(keys, first, last):
    """Count the rows whose key differs from the row before, and those whose key is lower; return the key range, too."""
    lowest = keys[first]
    highest = keys[first]
    rows = keys[max(first, 1) : last]
    before = keys[max(first, 1) - 1 : last - 1]
    changes = np.int64(0)
    falls = np.int64(0)
    for i in range(len(rows)):
        changes += np.int64(rows[i] != before[i])
        falls += np.int64(rows[i] < before[i])
        lowest = min(lowest, rows[i])
        highest = max(highest, rows[i])
    return changes, falls, lowest, highest


@njit(parallel=True, cache=True)
def scan_keys(first, last, keys, found, edges):
    """Write counts of rows of tasks first..last-1 to `found`, int64 (n_tasks, 4), and their lowest and highest key.

    They count the rows whose key differs from the row before, and those whose key is lower.
    """
    for task in prange(first, last):
        at = np.int64(task)
        found[at, 0], found[at, 1], found[at, 2], found[at, 3] = scan_range(keys, edges[at], edges[at + 1])


@njit(allocates=True)
def mark_range(codes, indptr, n_codes, is_first, start, stop):
    """Write whether each row of users start..stop-1 is the first of its user with its code."""
    last_users = np.full(n_codes + 1, -1, np.int64)
    for user in range(start, stop):
        for row in range(indptr[user], indptr[user + 1]):
            code = np.uint64(codes[row] + 1)
            is_first[row] = last_users[code] != user
            last_users[code] = user


@njit(parallel=True, cache=True)
def mark_first_rows(first, last, codes, indptr, n_codes, is_first, edges):
    """Write whether each row is the first of its user with its code, int8 (n_rows,), for users of tasks first..last-1.

    Codes are int32, from -1 to n_codes - 1.
    """
    for task in prange(first, last):
        at = np.int64(task)
        mark_range(codes, indptr, n_codes, is_first, edges[at], edges[at + 1])


@njit(cache=True)
def write_places(is_chosen, places):
    """Write the positions of the chosen rows, and the number of rows."""
    at = np.uint64(0)
    for row in range(len(is_chosen)):
        places[at] = row
        at += np.uint64(is_chosen[row])
    places[at] = len(is_chosen)


@njit
def changes_of_range(keys, changes, at, first, last):
    """Write the positions at which a key of a range of rows differs from the one before, from `at` on."""
    for start in range(max(first, 1), last, LANES):
        end = min(start + LANES, last)
        rows = keys[start:end]
        before = keys[start - 1 : end - 1]
        n = np.int64(0)
        for i in range(len(rows)):
            n += np.int64(rows[i] != before[i])
        if n > 0:
            for i in range(len(rows)):
                if rows[i] != before[i]:
                    changes[at] = start + i
                    at += 1


@njit(parallel=True, cache=True)
def write_changes(first, last, keys, changes, places, edges):
    """Write the positions at which a key differs from the one before to `changes`, for rows of tasks first..last-1.

    Those of task t begin at places[t].
    """
    for task in prange(first, last):
        at = np.int64(task)
        changes_of_range(keys, changes, places[at], edges[at], edges[at + 1])


@njit
def buckets_of_range(keys, lowest, multiplier, shift, buckets, counts, first, last):
    """Write the bucket of each row and count the rows of each bucket."""
    lowest = np.uint64(lowest)
    multiplier = np.uint64(multiplier)
    shift = np.uint64(shift)
    rows = keys[first:last]
    own = buckets[first:last]
    for i in range(len(rows)):
        bucket = ((np.uint64(rows[i]) - lowest) * multiplier) >> shift
        own[i] = bucket
        counts[bucket] += 1


@njit(parallel=True, cache=True)
def count_buckets(first, last, keys, lowest, multiplier, shift, buckets, counts, edges):
    """Write the bucket, uint16, of each row of tasks first..last-1.

    Count the rows of task t and bucket b in counts[t, b].
    """
    for task in prange(first, last):
        at = np.int64(task)
        buckets_of_range(keys, lowest, multiplier, shift, buckets, counts[at], edges[at], edges[at + 1])


@njit
def scatter_range(values, buckets, places, out, first, last):
    """Write each value to the next place of its bucket."""
    rows = values[first:last]
    own = buckets[first:last]
    for i in range(len(rows)):
        bucket = np.uint64(own[i])
        place = places[bucket]
        places[bucket] = place + 1
        out[np.uint64(place)] = rows[i]


@njit(parallel=True, cache=True)
def scatter(first, last, values, buckets, places, out, edges):
    """Write the value of each row of tasks first..last-1 to the next place of its bucket: to out[places[t, b]] on."""
    for task in prange(first, last):
        at = np.int64(task)
        scatter_range(values, buckets, places[at], out, edges[at], edges[at + 1])


@njit
def distances_of_range(keys, lowest, codes, counts, first, last):
    """Number the keys of a range of rows by their distance from the lowest, and count the rows of each key."""
    lowest = np.uint64(lowest)
    rows = keys[first:last]
    own = codes[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i]) - lowest
        own[i] = code
        counts[code] += 1


@njit(parallel=True, cache=True)
def number_dense(first, last, keys, lowest, codes, counts, edges):
    """Write the distance of each key from the lowest, for rows of tasks first..last-1, and count the rows of each key.

    `counts` are int64 (n_tasks, span), or (1, span) for tasks that share no key.
    """
    for task in prange(first, last):
        at = np.int64(task)
        distances_of_range(keys, lowest, codes, counts[min(at, len(counts) - 1)], edges[at], edges[at + 1])


@njit
def number_bucket(keys, codes, counts, ids, table, shift, start):
    """Number the distinct keys of one bucket from `start` in order of appearance.

    Returns how many there are, or -1 if the keys collide too often.
    """
    top = np.uint64(len(table) - 1)
    one = np.uint64(1)
    multiplier = np.uint64(SECOND_MULTIPLIER)
    shift = np.uint64(shift)
    for slot in range(len(table)):
        table[slot] = -1
    steps_left = TOO_MANY_STEPS * (len(keys) + 64)
    distinct = 0
    for i in range(len(keys)):
        slot = (np.uint64(keys[i]) * multiplier) >> shift
        while table[slot] >= 0 and ids[np.uint64(table[slot])] != keys[i]:
            slot = (slot + one) & top
            steps_left -= 1
            if steps_left < 0:
                return -1
        if table[slot] < 0:
            table[slot] = distinct
            ids[distinct] = keys[i]
            counts[distinct] = 0
            distinct += 1
        own = np.int64(table[slot])
        codes[i] = start + own
        counts[np.uint64(own)] += 1
    return distinct


@njit(allocates=True)
def number_buckets(keys, starts, codes, counts, ids, distinct, first, last):
    """Number the distinct keys of buckets first..last-1, up to one whose keys collide too often."""
    largest = 1
    for bucket in range(first, last):
        largest = max(largest, starts[bucket + 1] - starts[bucket])
    table = np.empty(4 * largest, np.int32)
    for bucket in range(first, last):
        start = starts[bucket]
        end = starts[bucket + 1]
        size = 2
        shift = 63
        while size < 2 * (end - start):
            size *= 2
            shift -= 1
        rows = slice(start, end)
        distinct[bucket] = number_bucket(keys[rows], codes[rows], counts[rows], ids[rows], table[:size], shift, start)
        if distinct[bucket] < 0:
            return


@njit(parallel=True, cache=True)
def number_sparse(first, last, keys, starts, codes, counts, ids, distinct, edges):
    """Number the distinct keys of each bucket of tasks first..last-1 from the bucket's first row on.

    `counts` takes the rows of each number, `ids` its key, and `distinct` the number of distinct keys of a bucket, or -1
    if the keys of one collide too often.
    """
    for task in prange(first, last):
        at = np.int64(task)
        number_buckets(keys, starts, codes, counts, ids, distinct, edges[at], edges[at + 1])


@njit
def places_of_range(codes, places, targets, first, last):
    """Give each row of a range the next place of its code."""
    rows = codes[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i])
        place = places[code]
        places[code] = place + 1
        own[i] = place


@njit(parallel=True, cache=True)
def place_rows(first, last, codes, places, targets, edges):
    """Give each row of tasks first..last-1 the next place of its code. Tasks share no code."""
    for task in prange(first, last):
        at = np.int64(task)
        places_of_range(codes, places, targets, edges[at], edges[at + 1])


@njit
def ranks_of_range(codes, ranks, lowest, starts, counts, taken, targets, first, last):
    """Give each row of a range the place of its rank; return whether ranks go on from `lowest` without a gap."""
    rows = codes[first:last]
    place_of = ranks[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i])
        place = np.uint64(place_of[i]) - np.uint64(lowest)  # very large if the rank is below the lowest
        if place >= np.uint64(counts[code]):
            return False
        target = np.uint64(starts[code]) + place
        if taken[target]:
            return False
        taken[target] = True
        own[i] = target
    return True


@njit(parallel=True, cache=True)
def place_by_rank(first, last, codes, ranks, lowest, starts, counts, taken, targets, fits, edges):
    """Write the target of each row of tasks first..last-1: the place of its rank among the rows of its user.

    `starts` and `counts` are the first place and the rows of each code, and `taken`, bool (n_rows,), is False.
    fits[t] gets whether the ranks of task t are distinct, and go from `lowest` on without a gap.
    """
    for task in prange(first, last):
        at = np.int64(task)
        start, stop = edges[at], edges[at + 1]
        fits[at] = ranks_of_range(codes, ranks, lowest, starts, counts, taken, targets, start, stop)


@njit
def move_range(values, targets, out, first, last):
    """Write each value of a range to its place."""
    rows = values[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        out[np.uint64(own[i])] = rows[i]


@njit(parallel=True, cache=True)
def move(first, last, values, targets, out, edges):
    """Write the value of each row of tasks first..last-1 to its place."""
    for task in prange(first, last):
        at = np.int64(task)
        move_range(values, targets, out, edges[at], edges[at + 1])


@njit
def copy_some(values, starts, indptr, out, first, last):
    """Fill the rows of users first..last-1."""
    for u in range(first, last):
        target = out[indptr[u] : indptr[u + 1]]
        source = values[starts[u] : starts[u] + len(target)]
        for i in range(len(target)):
            target[i] = source[i]


@njit(parallel=True, cache=True)
def copy_blocks(first, last, values, starts, indptr, out, edges):
    """Fill out[indptr[u]:indptr[u + 1]] with the values from starts[u] on, for users u of tasks first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        copy_some(values, starts, indptr, out, edges[at], edges[at + 1])


@njit
def first_unranked(ranks, indptr, first, last):
    """Return the first of users first..last-1 whose ranks do not rise strictly, or -1."""
    for u in range(first, last):
        row = ranks[indptr[u] : indptr[u + 1]]
        falls = np.int64(0)
        for i in range(1, len(row)):
            falls += np.int64(row[i] <= row[i - 1])
        if falls > 0:
            return u
    return -1


@njit(parallel=True, cache=True)
def find_unranked(first, last, ranks, indptr, found, edges):
    """Write to found[t] the first user whose ranks do not rise strictly, or -1, for tasks t in first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        found[at] = first_unranked(ranks, indptr, edges[at], edges[at + 1])


@njit
def order_ranks(ranks, order, spare, marks):
    """Write positions by ascending rank to `order`: ranks close together are marked, others are sorted."""
    n = len(ranks)
    if n == 0:
        return
    lowest = np.int64(ranks[0])
    highest = np.int64(ranks[0])
    for i in range(n):
        lowest = min(lowest, np.int64(ranks[i]))
        highest = max(highest, np.int64(ranks[i]))
    span = np.uint64(highest) - np.uint64(lowest)  # unsigned, so the difference is right even if it overflows int64
    if span >= np.uint64(WIDE_RANKS * n):
        sort_ids(order, spare, ranks)
        return
    width = np.int64(span) + 1
    for at in range(width):
        marks[at] = -1
    for i in range(n):
        place = np.int64(ranks[i]) - lowest
        if marks[place] >= 0:  # two rows share a rank: any order that keeps them together will do
            sort_ids(order, spare, ranks)
            return
        marks[place] = i
    found = 0
    for at in range(width):
        if marks[at] >= 0:
            order[found] = marks[at]
            found += 1


@njit(allocates=True)
def order_some(ranks, indptr, items, out, first, last):
    """Write the items of users first..last-1 by ascending rank; return (user, rank) of a repeated rank, or (-1, 0)."""
    longest = longest_row(indptr, first, last)
    order = np.empty(longest, np.int64)
    spare = np.empty(longest, np.int64)
    marks = np.empty(WIDE_RANKS * longest + 1, np.int64)
    for u in range(first, last):
        start = indptr[u]
        row = ranks[start : indptr[u + 1]]
        order_ranks(row, order, spare, marks)
        for i in range(len(row)):
            if i > 0 and row[order[i]] == row[order[i - 1]]:
                return u, np.int64(row[order[i]])
            out[start + i] = items[start + order[i]]
    return -1, np.int64(0)


@njit(parallel=True, cache=True)
def order_users(first, last, ranks, indptr, items, out, twice, edges):
    """Write the items of each user of tasks first..last-1 by ascending rank.

    `twice`, int64 (n_tasks, 2), gets the user and rank of a repeated rank, or -1 and 0.
    """
    for task in prange(first, last):
        at = np.int64(task)
        twice[at, 0], twice[at, 1] = order_some(ranks, indptr, items, out, edges[at], edges[at + 1])

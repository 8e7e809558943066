"""Grouping of rows by user, in their order, without sorting all rows.

Rows first go to *buckets*, few enough to write to all of them at once, then to their places within the bucket, which
fits a cache. Each function works on a range of rows, buckets or users, so that ranges can run in threads. The output
of a range depends on the rows alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.list_order import longest_row, sort_by_id
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]

SECOND_MULTIPLIER = 0xD6E8FEB86659FD93  # keys of one bucket agree in the top bits of the first product
LANES = 64  # rows compared together
TOO_MANY_STEPS = 8  # per key of a bucket; more mean that the keys were chosen to collide
WIDE_RANKS = 4  # ranks that spread over more places per row are sorted


class KeyEdges(NamedTuple):
    """Edges of parts, looked up by cells of equal width from the first edge on."""

    edges: Array  # int64: the least key of each part but the first, ascending
    lowest: Any  # the first edge
    shift: Any  # the width of a cell is 2 ** shift
    starts: Array  # int64 (n_cells + 1,): number of edges not above the least key of each cell, then that of all edges


def scan_keys(keys, first, last):
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


def mark_first_rows(codes, indptr, last_users, is_first):
    """Write whether each row is the first of its user with its code. Codes begin at -1.

    The first row is that at `indptr[0]`. `last_users` is -1 for each code.
    """
    row = 0
    for user in range(len(indptr) - 1):
        for _ in range(indptr[user + 1] - indptr[user]):
            code = np.uint64(codes[row] + 1)
            is_first[row] = last_users[code] != user
            last_users[code] = user
            row += 1


def write_places(is_chosen, places):
    """Write the positions of the chosen rows, and the number of rows."""
    at = np.uint64(0)
    for row in range(len(is_chosen)):
        places[at] = row
        at += np.uint64(is_chosen[row])
    places[at] = len(is_chosen)


def write_changes(keys, changes, at, first, last):
    """Write the positions at which a key differs from the one before to `changes`, from `at` on."""
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


def count_buckets(keys, lowest, multiplier, shift, buckets, counts, first, last):
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


def scatter(values, buckets, places, out, first, last):
    """Write each value to the next place of its bucket."""
    rows = values[first:last]
    own = buckets[first:last]
    for i in range(len(rows)):
        bucket = np.uint64(own[i])
        place = places[bucket]
        places[bucket] = place + 1
        out[np.uint64(place)] = rows[i]


def find_parts(keys, known, parts, counts):
    """Write the part of each key, which is the number of edges not above it, and count the rows of each part."""
    lowest, shift, edges, starts = np.int64(known.lowest), np.uint64(known.shift), known.edges, known.starts
    last_cell = np.uint64(len(starts) - 2)
    for i in range(len(keys)):
        key = np.int64(keys[i])
        part = np.int64(0)
        if key >= lowest:
            cell = min((np.uint64(key) - np.uint64(lowest)) >> shift, last_cell)
            part, end = starts[cell], starts[cell + np.uint64(1)]
            while part < end:  # some edges are within the cell
                middle = (part + end) >> 1
                if edges[middle] <= key:
                    part = middle + 1
                else:
                    end = middle
        parts[i] = part
        counts[part] += 1


def number_dense(keys, lowest, codes, counts, first, last):
    """Number the keys of a dense range by their distance from the lowest, and count the rows of each key."""
    lowest = np.uint64(lowest)
    rows = keys[first:last]
    own = codes[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i]) - lowest
        own[i] = code
        counts[code] += 1


@helper
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


def number_sparse(keys, starts, codes, counts, ids, distinct, first, last):
    """Number the distinct keys of each bucket from the bucket's first row on; return False if keys collide too often.

    `counts` takes the rows of each number, `ids` its key, and `distinct` the number of distinct keys of a bucket.
    """
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
            return False
    return True


def place_rows(codes, places, targets, first, last):
    """Give each row the next place of its code."""
    rows = codes[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i])
        place = places[code]
        places[code] = place + 1
        own[i] = place


class Groups(NamedTuple):
    """Places of the rows of each user."""

    starts: Array  # by code: the first place
    counts: Array  # by code: the rows


def place_by_rank(codes, ranks, lowest, groups, taken, targets, first, last):
    """Give each row the place of its rank.

    Returns False unless ranks are distinct and go from `lowest` on without a gap.
    """
    rows = codes[first:last]
    place_of = ranks[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        code = np.uint64(rows[i])
        place = np.uint64(place_of[i]) - np.uint64(lowest)  # very large if the rank is below the lowest
        if place >= np.uint64(groups.counts[code]):
            return False
        target = np.uint64(groups.starts[code]) + place
        if taken[target]:
            return False
        taken[target] = True
        own[i] = target
    return True


def move(values, targets, out, first, last):
    """Write each value to its place."""
    rows = values[first:last]
    own = targets[first:last]
    for i in range(len(rows)):
        out[np.uint64(own[i])] = rows[i]


def copy_blocks(values, starts, indptr, out, first, last):
    """Fill the rows of users with the values that begin at `starts`."""
    for u in range(first, last):
        target = out[indptr[u] : indptr[u + 1]]
        source = values[starts[u] : starts[u] + len(target)]
        for i in range(len(target)):
            target[i] = source[i]


def find_unranked(ranks, indptr, first, last):
    """Return the first user from `first` on whose ranks do not rise strictly, or -1."""
    for u in range(first, last):
        row = ranks[indptr[u] : indptr[u + 1]]
        falls = np.int64(0)
        for i in range(1, len(row)):
            falls += np.int64(row[i] <= row[i - 1])
        if falls > 0:
            return u
    return -1


@helper
def order_ranks(ranks, order, spare, none, marks):
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
        sort_by_id(order, spare, ranks, none)
        return
    width = np.int64(span) + 1
    for at in range(width):
        marks[at] = -1
    for i in range(n):
        place = np.int64(ranks[i]) - lowest
        if marks[place] >= 0:  # two rows share a rank: any order that keeps them together will do
            sort_by_id(order, spare, ranks, none)
            return
        marks[place] = i
    found = 0
    for at in range(width):
        if marks[at] >= 0:
            order[found] = marks[at]
            found += 1


def order_users(ranks, indptr, items, out, first, last):
    """Write the items of each user by ascending rank; return (user, rank) of a repeated rank, or (-1, 0)."""
    longest = longest_row(indptr, first, last)
    order = np.empty(longest, np.int64)
    spare = np.empty(longest, np.int64)
    none = np.empty(longest)
    marks = np.empty(WIDE_RANKS * longest + 1, np.int64)
    for u in range(first, last):
        start = indptr[u]
        row = ranks[start : indptr[u + 1]]
        order_ranks(row, order, spare, none, marks)
        for i in range(len(row)):
            if i > 0 and row[order[i]] == row[order[i - 1]]:
                return u, np.int64(row[order[i]])
            out[start + i] = items[start + order[i]]
    return -1, np.int64(0)

"""Preparation of lists before evaluation: order by score, items to exclude, duplicates.

Only calls that need it run these kernels. Task t of a driver works on users edges[t]..edges[t + 1]-1; indptr, int64
(n_users + 1,), says where the rows of each user are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import BEST, FINE, ID_ASC, ID_DESC, REFUSE, WORST
from .hits import GOLDEN, MAX_BASE, bits_of_table, index_list
from .jit import VARIANT, njit, prange

Array = np.ndarray[Any, Any]
IDS_AT_ONCE = 16  # items that are sorted by insertion
RUN = (
    8 if VARIANT == "kernels" else 128
)  # scores to order by comparing all pairs: compiled code compares many at a time


@njit
def sort_positions(order, spare, n, scores, ids, gains, ties):
    """Sort positions 0..n-1 into `order` by a stable merge sort, which is never quadratic.

    A higher score comes first, then the gain that the rule for ties puts first, then the lower id, if there are ids, or
    with ID_DESC the higher one. A function for that would count references to arrays whenever it compares positions.
    """
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            left = start
            right = middle
            for at in range(start, end):
                take_right = left >= middle
                if left < middle and right < end:
                    a, b = order[right], order[left]
                    if scores[a] != scores[b]:
                        take_right = scores[a] > scores[b]
                    elif ties == ID_DESC:
                        take_right = ids[a] > ids[b]
                    elif ties == WORST and gains[a] != gains[b]:
                        take_right = gains[a] < gains[b]
                    elif ties == BEST and gains[a] != gains[b]:
                        take_right = gains[a] > gains[b]
                    else:
                        take_right = len(ids) > 0 and ids[a] < ids[b]
                if take_right:
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2


@njit
def sort_ids(order, spare, row):
    """Write the positions of a row by ascending id, equal ids in the order of the row, by a merge sort."""
    n, width = len(row), IDS_AT_ONCE
    for start in range(0, n, IDS_AT_ONCE):
        for i in range(start, min(start + IDS_AT_ONCE, n)):
            at = i
            while at > start and row[order[at - 1]] > row[i]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = i
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for at in range(start, end):
                if right < end and (left >= middle or row[order[right]] < row[order[left]]):
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2


@njit
def find(item, row, order, n):
    """Return the position of an id in a row whose positions are ordered by id, or -1."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) // 2
        if row[order[middle]] < item:
            low = middle + 1
        else:
            high = middle
    if low < n and row[order[low]] == item:
        return order[low]
    return -1


@njit
def find_all(items, row, order, places):
    """Write what `find` returns for each of some items in a whole row, without its counts of references to arrays."""
    n = len(row)
    for i in range(len(items)):
        low = 0
        high = n
        while low < high:
            middle = (low + high) // 2
            if row[order[middle]] < items[i]:
                low = middle + 1
            else:
                high = middle
        places[i] = order[low] if low < n and row[order[low]] == items[i] else -1


@njit
def falls_strictly(scores):
    """Return whether each score is larger than the next."""
    for i in range(1, len(scores)):
        if not scores[i - 1] > scores[i]:
            return False
    return True


@njit
def longest_row(indptr, first, last):
    """Return the length of the longest row of users first..last-1."""
    longest = 0
    for u in range(first, last):
        longest = max(longest, indptr[u + 1] - indptr[u])
    return longest


@njit
def first_unordered(indptr, scores, start, stop):
    """Return the first of users start..stop-1 whose scores do not fall strictly, or -1."""
    for u in range(start, stop):
        if not falls_strictly(scores[indptr[u] : indptr[u + 1]]):
            return u
    return -1


@njit(parallel=True, cache=True)
def find_unordered(first, last, indptr, scores, found, edges):
    """Write to `found[t]` the first user whose scores do not fall strictly, or -1, for tasks t in first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        found[at] = first_unordered(indptr, scores, edges[at], edges[at + 1])


class ListSide(NamedTuple):
    """Lists or truth."""

    items: Array  # int32 or int64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    values: Array  # float64 (n_rows,): scores or gains


@njit
def count_higher(scores, order):
    """Order few scores by how many are higher, equal ones in the order of the list; return whether some are equal."""
    n = len(scores)
    pairs = np.int64(0)
    for i in range(n):
        own = scores[i]
        higher = np.int32(0)
        for j in range(n):
            higher = np.int32(higher + np.int32(scores[j] > own))
        order[np.uint64(higher)] = i
        pairs += np.int64(higher)
    if pairs == n * (n - 1) // 2:
        return False
    for i in range(n):
        own = scores[i]
        before = np.int32(0)
        for j in range(i):
            before = np.int32(before + np.int32(scores[j] >= own))
        for j in range(i + 1, n):
            before = np.int32(before + np.int32(scores[j] > own))
        order[np.uint64(before)] = i
    return True


@njit
def merge_runs(order, spare, scores, first):
    """Merge ordered runs of `first` positions each, and then the longer ones, until all positions are in order."""
    n = len(scores)
    width = first
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(start + 2 * width, n)
            left = start
            right = middle
            for at in range(start, end):
                if right < end and (left >= middle or scores[order[right]] > scores[order[left]]):
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2


@njit
def order_scores(scores, order, spare):
    """Write positions by descending score, equal ones in the order of the list; return whether some are equal.

    Runs of RUN scores are ordered by counting, and then merged.
    """
    n = len(scores)
    if n <= RUN:
        return count_higher(scores, order)
    for start in range(0, n, RUN):
        end = min(start + RUN, n)
        count_higher(scores[start:end], order[start:end])
        for i in range(start, end):
            order[i] += start
    merge_runs(order, spare, scores, RUN)
    for i in range(1, n):
        if scores[order[i]] == scores[order[i - 1]]:
            return True
    return False


@njit
def copy_list(source, target):
    """Write a list that is in order to its place."""
    for i in range(len(source)):
        target[i] = source[i]


@njit
def write_gains(gains, places, out):
    """Write the gain at each place, 0 at -1."""
    for i in range(len(out)):
        out[i] = gains[places[i]] if places[i] >= 0 else 0.0


@njit(allocates=True)
def order_some(recs, truth, ties, out, ordered, start, stop):
    """Order the lists of users start..stop-1; return how many have ties, and user and positions of a refused tie.

    The other arguments are those of `order_lists`.
    """
    items, indptr, scores = recs
    n_list = longest_row(indptr, start, stop)
    n_truth = longest_row(truth.indptr, start, stop)
    order = np.empty(n_list, np.int64)
    spare = np.empty(max(n_list, n_truth), np.int64)
    by_id = np.empty(n_truth, np.int64)
    gains = np.zeros(n_list)
    tied = 0
    for u in range(start, stop):
        row = items[indptr[u] : indptr[u + 1]]
        own = scores[indptr[u] : indptr[u + 1]]
        target = out[indptr[u] : indptr[u + 1]]
        n = len(row)
        if falls_strictly(own):
            copy_list(row, target)
            if len(ordered) > 0:
                copy_list(own, ordered[indptr[u] : indptr[u + 1]])
            continue
        if order_scores(own, order, spare):
            tied += 1
            if ties == REFUSE:
                for i in range(1, n):
                    if own[order[i]] == own[order[i - 1]]:
                        return tied, u, order[i - 1], order[i]
            if ties == WORST or ties == BEST:
                row_of_truth = truth.items[truth.indptr[u] : truth.indptr[u + 1]]
                sort_ids(by_id, spare, row_of_truth)
                find_all(row, row_of_truth, by_id, spare)
                write_gains(truth.values[truth.indptr[u] : truth.indptr[u + 1]], spare, gains[:n])
            if ties == WORST or ties == BEST or ties == ID_ASC or ties == ID_DESC:
                sort_positions(order, spare, n, own, row, gains, ties)
        for i in range(n):
            target[i] = row[order[i]]
        if len(ordered) > 0:
            for i in range(n):
                ordered[indptr[u] + i] = own[order[i]]
    return tied, -1, 0, 0


@njit(parallel=True, cache=True)
def order_lists(first, last, items, indptr, scores, truth_items, truth_indptr, gains, ties, out, ordered, found, edges):
    """Write lists of tasks first..last-1 in descending order of their scores to `out`, as items (n_rows,).

    `ordered`, float64 (n_rows,), takes the scores in that order, unless it is empty. `found`, int64 (n_tasks, 4), takes
    how many lists have ties, and the user and two positions of a refused tie, or -1, 0, 0.
    """
    for task in prange(first, last):
        recs, truth, at = ListSide(items, indptr, scores), ListSide(truth_items, truth_indptr, gains), np.int64(task)
        tied, user, a, b = order_some(recs, truth, ties, out, ordered, edges[at], edges[at + 1])
        found[at, 0], found[at, 1], found[at, 2], found[at, 3] = tied, user, a, b


@njit
def count_blocks(indptr, scores, blocks, start_user, stop_user):
    """Write the blocks of users start_user..stop_user-1."""
    for u in range(start_user, stop_user):
        start = indptr[u]
        for i in range(indptr[u] + 1, indptr[u + 1] + 1):
            if i == indptr[u + 1] or scores[i] != scores[start]:
                for j in range(start, i):
                    blocks[0, j] = start - indptr[u]
                    blocks[1, j] = i - start
                start = i


@njit(parallel=True, cache=True)
def find_blocks(first, last, indptr, scores, blocks, edges):
    """Write to `blocks`, int32 (2, n_rows), how many rows of the user have a higher score, and how many the same score.

    That is for users of tasks first..last-1. Rows are in descending order of their scores.
    """
    for task in prange(first, last):
        at = np.int64(task)
        count_blocks(indptr, scores, blocks, edges[at], edges[at + 1])


@njit(allocates=True)
def mark_some_excluded(items, indptr, exclude, exclude_indptr, keep, start, stop):
    """Mark the excluded items of users start..stop-1."""
    n_exclude = longest_row(exclude_indptr, start, stop)
    order = np.empty(n_exclude, np.int64)
    spare = np.empty(n_exclude, np.int64)
    places = np.empty(longest_row(indptr, start, stop), np.int64)
    for u in range(start, stop):
        known = exclude[exclude_indptr[u] : exclude_indptr[u + 1]]
        sort_ids(order, spare, known)
        find_all(items[indptr[u] : indptr[u + 1]], known, order, places)
        for i in range(indptr[u + 1] - indptr[u]):
            keep[indptr[u] + i] = places[i] < 0


@njit(parallel=True, cache=True)
def mark_excluded(first, last, items, indptr, exclude, exclude_indptr, keep, edges):
    """Clear `keep`, bool (n_rows,), at items that are excluded for their user, for users of tasks first..last-1."""
    for task in prange(first, last):
        at = np.int64(task)
        mark_some_excluded(items, indptr, exclude, exclude_indptr, keep, edges[at], edges[at + 1])


@njit(allocates=True)
def mark_some_copies(items, indptr, values, keep, first_user, stop_user):
    """Mark the copies of users first_user..stop_user-1."""
    n_list = longest_row(indptr, first_user, stop_user)
    order = np.empty(n_list, np.int64)
    spare = np.empty(n_list, np.int64)
    bits = bits_of_table(n_list)
    table, base = np.zeros(1 << bits, np.int32), np.int64(1)
    for u in range(first_user, stop_user):
        start = indptr[u]
        row = items[start : indptr[u + 1]]
        if base + len(row) > MAX_BASE:
            table[:] = 0
            base = np.int64(1)
        code, _ = index_list(row, -1, table, base, np.uint64(GOLDEN), np.uint64(64 - bits))
        base += len(row)
        if code == FINE:  # hashing takes a tenth of the time of sorting, and most lists have no copies
            continue
        sort_ids(order, spare, row)
        original = 0
        for i in range(1, len(row)):
            if row[order[i]] == row[order[original]]:
                keep[start + order[i]] = False
                if len(values) > 0:
                    values[start + order[original]] = max(values[start + order[original]], values[start + order[i]])
            else:
                original = i


@njit(parallel=True, cache=True)
def mark_copies(first, last, items, indptr, values, keep, edges):
    """Clear `keep`, bool (n_rows,), at later copies of an item of the same user, for users of tasks first..last-1.

    The first copy takes the largest of their `values`, float64 (n_rows,), unless there are none.
    """
    for task in prange(first, last):
        at = np.int64(task)
        mark_some_copies(items, indptr, values, keep, edges[at], edges[at + 1])

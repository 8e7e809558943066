"""Preparation of lists before evaluation: order by score, items to exclude, duplicates.

Only calls that need it run these kernels. Each function works on a range of users, so that ranges can run in threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import BEST, ID_ASC, ID_DESC, REFUSE, WORST
from fastrec.runtime.compiler import helper

Array = np.ndarray[Any, Any]
RUN = 128  # scores that are ordered by counting, which compares all pairs, but many at a time
RUN_INTERPRETED = 8  # Python compares one pair at a time


@helper
def comes_before(a, b, scores, ids, gains, ties):
    """Return whether position a must come before the earlier position b; ids, if any, order equal gains."""
    if scores[a] != scores[b]:
        return scores[a] > scores[b]
    if ties == ID_DESC:
        return ids[a] > ids[b]
    if ties == WORST and gains[a] != gains[b]:
        return gains[a] < gains[b]
    if ties == BEST and gains[a] != gains[b]:
        return gains[a] > gains[b]
    return len(ids) > 0 and ids[a] < ids[b]


@helper
def sort_positions(order, spare, n, scores, ids, gains, ties):
    """Sort positions 0..n-1 into `order` by a stable merge sort, which is never quadratic."""
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
                take_right = right < end and (
                    left >= middle or comes_before(order[right], order[left], scores, ids, gains, ties)
                )
                if take_right:
                    spare[at] = order[right]
                    right += 1
                else:
                    spare[at] = order[left]
                    left += 1
        for i in range(n):
            order[i] = spare[i]
        width *= 2


@helper
def sort_by_id(order, spare, row, none):
    """Sort positions of `row` by ascending id, equal ids in the order of the list."""
    n = len(row)
    for i in range(n):
        none[i] = 0.0
    sort_positions(order, spare, n, none, row, none, ID_ASC)


@helper
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


@helper
def falls_strictly(scores):
    """Return whether each score is larger than the next."""
    for i in range(1, len(scores)):
        if not scores[i - 1] > scores[i]:
            return False
    return True


@helper
def longest_row(indptr, first, last):
    """Return the length of the longest row of users first..last-1."""
    longest = 0
    for u in range(first, last):
        longest = max(longest, indptr[u + 1] - indptr[u])
    return longest


def find_unordered(indptr, scores, first, last):
    """Return the first user from `first` on whose scores do not fall strictly, or -1."""
    for u in range(first, last):
        if not falls_strictly(scores[indptr[u] : indptr[u + 1]]):
            return u
    return -1


class ListSide(NamedTuple):
    """Lists or truth."""

    items: Array  # int32 or int64 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)
    values: Array  # float64 (n_rows,): scores or gains


@helper
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


@helper
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


@helper
def order_scores(scores, order, spare, run):
    """Write positions by descending score, equal ones in the order of the list; return whether some are equal.

    Runs of `run` scores are ordered by counting, and then merged.
    """
    n = len(scores)
    if n <= run:
        return count_higher(scores, order)
    for start in range(0, n, run):
        end = min(start + run, n)
        count_higher(scores[start:end], order[start:end])
        for i in range(start, end):
            order[i] += start
    merge_runs(order, spare, scores, run)
    for i in range(1, n):
        if scores[order[i]] == scores[order[i - 1]]:
            return True
    return False


@helper
def copy_list(source, target):
    """Write a list that is in order to its place."""
    for i in range(len(source)):
        target[i] = source[i]


def order_lists(recs, truth, ties, run, out, ordered, first, last):
    """Write each list in descending order of its scores to `out`.

    Return how many lists have ties, and (user, position, position) of a refused tie. `ordered` takes the scores in
    that order, unless it is empty. `run` is RUN or, in Python, RUN_INTERPRETED.
    """
    items, indptr, scores = recs
    n_list = longest_row(indptr, first, last)
    n_truth = longest_row(truth.indptr, first, last)
    order = np.empty(n_list, np.int64)
    spare = np.empty(max(n_list, n_truth), np.int64)
    by_id = np.empty(n_truth, np.int64)
    none = np.empty(max(n_list, n_truth))
    gains = np.zeros(n_list)
    tied = 0
    for u in range(first, last):
        row = items[indptr[u] : indptr[u + 1]]
        own = scores[indptr[u] : indptr[u + 1]]
        target = out[indptr[u] : indptr[u + 1]]
        n = len(row)
        if falls_strictly(own):
            copy_list(row, target)
            if len(ordered) > 0:
                copy_list(own, ordered[indptr[u] : indptr[u + 1]])
            continue
        if order_scores(own, order, spare, run):
            tied += 1
            if ties == REFUSE:
                for i in range(1, n):
                    if own[order[i]] == own[order[i - 1]]:
                        return tied, u, order[i - 1], order[i]
            if ties == WORST or ties == BEST:
                row_of_truth = truth.items[truth.indptr[u] : truth.indptr[u + 1]]
                sort_by_id(by_id, spare, row_of_truth, none)
                for i in range(n):
                    at = find(row[i], row_of_truth, by_id, len(row_of_truth))
                    gains[i] = truth.values[truth.indptr[u] + at] if at >= 0 else 0.0
            if ties == WORST or ties == BEST or ties == ID_ASC or ties == ID_DESC:
                sort_positions(order, spare, n, own, row, gains, ties)
        for i in range(n):
            target[i] = row[order[i]]
        if len(ordered) > 0:
            for i in range(n):
                ordered[indptr[u] + i] = own[order[i]]
    return tied, -1, 0, 0


def find_blocks(indptr, scores, blocks, first, last):
    """Count for each row the rows of its user with a higher score, and those with the same score.

    Rows are in descending order of their scores.
    """
    for u in range(first, last):
        start = indptr[u]
        for i in range(indptr[u] + 1, indptr[u + 1] + 1):
            if i == indptr[u + 1] or scores[i] != scores[start]:
                for j in range(start, i):
                    blocks[0, j] = start - indptr[u]
                    blocks[1, j] = i - start
                start = i


def mark_excluded(items, indptr, exclude, exclude_indptr, keep, first, last):
    """Clear `keep` where a list has an item that is excluded for its user."""
    n_exclude = longest_row(exclude_indptr, first, last)
    order = np.empty(n_exclude, np.int64)
    spare = np.empty(n_exclude, np.int64)
    none = np.empty(n_exclude)
    for u in range(first, last):
        known = exclude[exclude_indptr[u] : exclude_indptr[u + 1]]
        sort_by_id(order, spare, known, none)
        for i in range(indptr[u], indptr[u + 1]):
            keep[i] = find(items[i], known, order, len(known)) < 0


def mark_copies(items, indptr, values, keep, first, last):
    """Clear `keep` at later copies of an item of the same user; the first copy takes the largest of their values."""
    n_list = longest_row(indptr, first, last)
    order = np.empty(n_list, np.int64)
    spare = np.empty(n_list, np.int64)
    none = np.empty(n_list)
    for u in range(first, last):
        start = indptr[u]
        row = items[start : indptr[u + 1]]
        sort_by_id(order, spare, row, none)
        original = 0
        for i in range(1, len(row)):
            if row[order[i]] == row[order[original]]:
                keep[start + order[i]] = False
                if len(values) > 0:
                    values[start + order[original]] = max(values[start + order[original]], values[start + order[i]])
            else:
                original = i

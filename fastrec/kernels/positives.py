"""Positions of the positive rows of a user: rows with a higher score and with the same, counted or sorted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import (
    COUNT,
    EXPECTED,
    FINE,
    FIRST_EVENT,
    INPUT,
    LISTED_ROWS,
    OUTSIDE,
    REFUSE,
    RELEVANT,
    SMALL_CATALOGUE,
    TIED,
)
from .jit import njit
from .list_order import sort_positions
from .sorting import fill_keys

Array = np.ndarray[Any, Any]
UNIT, NOTHING = np.int32(3), np.int32(0)  # not 1, so that LLVM adds under a mask instead of making it numbers
LANES = 32  # rows are padded to a multiple of this
MAX_COUNTED = 192  # a larger class is sorted: counting costs its size times the rows
RADIX_BITS = 11
DIGITS_OF_RADIX = 1 << RADIX_BITS
SHORT_USER = 4  # rows
ROWS_CHECKED = 1 << 15  # at once: enough for long loops, few enough to be in the cache when they are used


class ScoreLog(NamedTuple):
    """Labels and scores of all users, end to end, and what is asked of them."""

    labels: Array  # int8 or float64 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    bits: Array  # uint32 or uint64 (n_rows,): the scores as bits
    indptr: Array  # int64 (n_users + 1,)
    ids: Array  # int64 (n_rows,): to break ties by id, else empty
    bars: Array  # as labels (n_conditions + 1,): the smallest positive label under each condition, and under any
    statistics: Array  # int64 (n_statistics, STATISTIC_WIDTH): kind, parameter, condition
    parameters: Array  # float64
    ties: int  # the rule for equal scores
    walk: bool  # whether statistics need the order of all rows
    n_items: int  # size of the catalogue


class Outcomes(NamedTuple):
    """What is written for a block of users, see `fastrec.inputs.hits.Hits`, and the statistics of all."""

    first: int  # the first user of the block
    spans: Array  # int64 (4, BLOCK)
    ranks: Array  # int32 (n_events,)
    sources: Array  # int32 (n_events,)
    above: Array  # int32 (n_events,)
    tied: Array  # int32 (n_events,)
    facts: Array  # float64 (n_statistics, n_users)


class ScoreScratch(NamedTuple):
    """Working memory for one user after another."""

    padded: Array  # as scores (longest row + LANES,): the scores of a user, or of the negatives
    chosen: Array  # as padded: the scores of one class, or of the positives
    terms: Array  # float64 (2, longest row / 2 + 8)
    places: Array  # int32 (3, longest row + 1): rows of one class, `above` and `tied` of each
    marks: Array  # int32 (longest row + 2, at least DIGITS_OF_RADIX)
    keys: Array  # as bits (2, longest row that is sorted)
    order: Array  # int32 (2, longest row that is sorted)


@njit
def within(values, limits):
    """Return whether all values are within limits and none is NaN."""
    low, high = limits[0], limits[1]
    outside = False
    for j in range(len(values)):
        outside |= not (low <= values[j] <= high)
    return not outside


@njit
def choose(labels, scores, bar, chosen, places):
    """Write scores and positions of the positive rows; return how many there are."""
    n = 0
    for j in range(len(labels)):
        chosen[np.uint64(n)] = scores[j]
        places[np.uint64(n)] = np.int32(j)
        n += labels[j] >= bar
    return n


@njit
def count_positives(labels, bar):
    """Count the positive rows of a user."""
    n = np.int32(0)
    for j in range(len(labels)):
        n = np.int32(n + np.int32(labels[j] >= bar))
    return np.int64(n)


@njit
def split(labels, scores, bar, positives, negatives):
    """Write the scores of the rows of each class."""
    n = 0
    for j in range(len(labels)):
        score = scores[j]
        positives[np.uint64(n)] = score
        negatives[np.uint64(j - n)] = score
        n += labels[j] >= bar


@njit
def pad(scores, padded):
    """Copy a row and pad it; return its new length."""
    n = len(scores)
    for j in range(n):
        padded[j] = scores[j]
    return fill_up(padded, n)


@njit
def fill_up(padded, n):
    """Pad a row of n scores with NaN, which is neither smaller than a score nor equal; return its new length."""
    length = (n + LANES - 1) // LANES * LANES
    for j in range(n, length):
        padded[j] = np.nan
    return length


@njit
def count_both(row, chosen, n):
    """Sum over the chosen scores the rows below each and the rows not above it.

    Each pass over the rows serves two scores.
    """
    total = np.int64(0)
    chosen[n] = np.nan
    for first in range(0, n, 2):
        a, b = chosen[first], chosen[first + 1]
        found = np.int32(0)
        for j in range(len(row)):
            x = row[j]
            found = np.int32(found + (UNIT if x < a else NOTHING))
            found = np.int32(found + (UNIT if x <= a else NOTHING))
            found = np.int32(found + (UNIT if x < b else NOTHING))
            found = np.int32(found + (UNIT if x <= b else NOTHING))
        total += np.int64(found)
    return total // np.int64(UNIT)


@njit
def count_each(row, chosen, n, n_rows, above, tied):
    """Count for each chosen score the rows above it and the rows that share it, two scores per pass."""
    chosen[n] = np.nan
    for first in range(0, n, 2):
        a, b = chosen[first], chosen[first + 1]
        below_a, below_b, upto_a, upto_b = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for j in range(len(row)):
            x = row[j]
            below_a = np.int32(below_a + np.int32(x < a))
            upto_a = np.int32(upto_a + np.int32(x <= a))
            below_b = np.int32(below_b + np.int32(x < b))
            upto_b = np.int32(upto_b + np.int32(x <= b))
        above[first], tied[first] = n_rows - upto_a, upto_a - below_a
        above[first + 1], tied[first + 1] = n_rows - upto_b, upto_b - below_b


@njit
def order_events(places, n, n_rows, marks, out, start):
    """Write a user's events in the order of their tie blocks; `places` holds row, above and tied of each."""
    for j in range(n_rows + 1):
        marks[j] = 0
    for i in range(n):
        marks[places[1, i] + 1] += np.int32(1)
    for j in range(1, n_rows + 1):
        marks[j] += marks[j - 1]
    for i in range(n):
        own = places[1, i]
        at = np.uint64(start) + np.uint64(marks[own])
        marks[own] += np.int32(1)
        out.sources[at], out.above[at], out.tied[at] = places[0, i], own, places[2, i]


@njit
def radix_sort(keys, order, marks, n):
    """Sort n keys and their rows stably by digits, lowest first; return which of the two copies holds them."""
    source = 0
    if n < 2:
        return source
    mask = np.uint64(DIGITS_OF_RADIX - 1)
    for shift in range(0, 8 * keys.itemsize, RADIX_BITS):
        low = np.uint64(shift)
        for d in range(DIGITS_OF_RADIX):
            marks[d] = 0
        for j in range(n):
            marks[(np.uint64(keys[source, j]) >> low) & mask] += np.int32(1)
        if marks[(np.uint64(keys[source, 0]) >> low) & mask] == n:
            continue  # all keys share this digit
        place = np.int32(0)
        for d in range(DIGITS_OF_RADIX):
            size = marks[d]
            marks[d] = place
            place = np.int32(place + size)
        target = 1 - source
        for j in range(n):
            key = keys[source, j]
            digit = (np.uint64(key) >> low) & mask
            at = np.uint64(marks[digit])
            marks[digit] += np.int32(1)
            keys[target, at] = key
            order[target, at] = order[source, j]
        source = target
    return source


@njit
def sort_rows(labels, scores, bits, ids, ties, keys, order, marks):
    """Sort rows of a user from the largest score to the smallest, equal ones by the rule for ties.

    Returns the copy to read.
    """
    n = len(scores)
    if ties in (EXPECTED, INPUT, REFUSE):
        fill_keys(bits, keys[0])
        for j in range(n):
            keys[0, j] = ~keys[0, j]
            order[0, j] = np.int32(j)
        return radix_sort(keys, order, marks, n)
    sort_positions(order[0], order[1], n, scores, ids, labels, ties)
    return 0


@njit
def events_of_order(order, labels, scores, bar, out, first):
    """Write the events of a user whose rows are sorted, from `first` on.

    Returns whether a positive row shares its score with another row.
    """
    n, e, start, shared = len(order), first, 0, False
    for i in range(1, n + 1):
        if i == n or scores[order[i]] != scores[order[start]]:
            for j in range(start, i):
                if labels[order[j]] >= bar:
                    out.ranks[e], out.sources[e] = np.int32(j + 1), order[j]
                    out.above[e], out.tied[e] = np.int32(start), np.int32(i - start)
                    e += 1
                    shared = shared or i - start > 1
            start = i
    return shared


@njit(forceinline=True)
def collect_user(log, span, bar, memory, out, first):
    """Write the events of one user from `first` on; return how many, and whether the rule refuses its ties."""
    labels, scores, places, ties = log.labels[span], log.scores[span], memory.places, log.ties
    n = len(scores)
    n_events = choose(labels, scores, bar, memory.chosen, places[0])
    if n_events <= MAX_COUNTED:
        count_each(memory.padded[: pad(scores, memory.padded)], memory.chosen, n_events, n, places[1], places[2])
        order_events(places, n_events, n, memory.marks, out, first)
        shared = False
        for e in range(first, first + n_events):
            shared = shared or out.tied[e] > 1
            out.ranks[e] = out.above[e] + 1
        if not shared or ties == EXPECTED:
            return n_events, False
    bits, ids = log.bits[span], log.ids[span] if len(log.ids) > 0 else log.ids
    copy = sort_rows(labels, scores, bits, ids, ties, memory.keys, memory.order, memory.marks)
    shared = events_of_order(memory.order[copy, :n], labels, scores, bar, out, first)
    return n_events, shared and ties == REFUSE


@njit(forceinline=True)
def check_ahead(log, limits, checked, stop, end):
    """Check rows from `checked` on, some users ahead.

    Returns the end of the checked rows, or -1 if one is outside the limits of labels and scores.
    """
    if checked >= stop:
        return checked
    fresh = slice(checked, max(stop, min(checked + ROWS_CHECKED, end)))
    if within(log.labels[fresh], limits[0]) and within(log.scores[fresh], limits[1]):
        return fresh.stop
    return np.int64(-1)


@njit
def count_short_users(log, limits, ranked, out, first_user, last_user):
    """Do as `collect_scores` for users with few rows each, whose positives are counted only.

    Return False, to have it done there, if they have more rows, or one is refused. Loops over the few rows of a user
    would end at random, so the first rows of each are counted without a branch.
    """
    if ranked is not None:
        return False
    first, end, bar = log.indptr[first_user], log.indptr[last_user], log.bars[len(log.bars) - 1]
    spans = out.spans
    if first == end or end - first > SHORT_USER * (last_user - first_user):
        return False
    if not (within(log.labels[first:end], limits[0]) and within(log.scores[first:end], limits[1])):
        return False
    longest = np.int64(0)
    for u in range(first_user, last_user):
        row, stop = log.indptr[u], log.indptr[u + 1]
        n_rel = np.int64(0)
        for j in range(SHORT_USER):
            n_rel += (row + j < stop) & (log.labels[np.uint64(min(row + j, end - 1))] >= bar)
        for at in range(row + SHORT_USER, stop):
            n_rel += log.labels[at] >= bar
        i = u - out.first
        spans[FIRST_EVENT, i], spans[COUNT, i], spans[RELEVANT, i], spans[LISTED_ROWS, i] = i + 1, 0, n_rel, stop - row
        out.ranks[i] = 0
        longest = max(longest, stop - row)
    return longest <= log.n_items


@njit
def collect_scores(log, limits, ranked, memory, out, first_user, last_user):
    """Write the positives of users in rank order, or only their number.

    Return (code, user, number of rows) of the first user at fault. Rows are checked
    here, some users ahead, which saves a separate pass over memory.
    """
    bar, spans = log.bars[len(log.bars) - 1], out.spans
    checked, end, at = log.indptr[first_user], log.indptr[last_user], np.int64(0)
    for u in range(first_user, last_user):
        span = slice(log.indptr[u], log.indptr[u + 1])
        checked = check_ahead(log, limits, checked, span.stop, end)
        n_rows = span.stop - span.start
        if checked < 0:
            return np.int64(OUTSIDE), u, np.int64(0)
        out.ranks[at] = 0
        at += 1
        refused, hits = False, np.int64(0)
        if ranked is None:
            n_rel = count_positives(log.labels[span], bar)
        else:
            n_rel, refused = collect_user(log, span, bar, memory, out, at)
            hits = np.int64(n_rel)
        if refused or n_rows > log.n_items:
            return np.int64(TIED if refused else SMALL_CATALOGUE), u, n_rows
        i = u - out.first
        spans[FIRST_EVENT, i], spans[COUNT, i], spans[RELEVANT, i], spans[LISTED_ROWS, i] = at, hits, n_rel, n_rows
        at += hits
    return np.int64(FINE), np.int64(0), np.int64(0)


@njit
def twice_won(labels, scores, bar, positives, chosen, padded):
    """Return twice the pairs won by a user's positives, comparing each row of the smaller class with the larger."""
    negatives = np.int64(len(scores)) - positives
    if positives == 0 or negatives == 0:
        return np.int64(0)
    split(labels, scores, bar, chosen, padded)
    if positives <= negatives:
        return count_both(padded[: fill_up(padded, negatives)], chosen, positives)
    return 2 * positives * negatives - count_both(chosen[: fill_up(chosen, positives)], padded, negatives)


@njit
def twice_won_in_order(order, labels, scores, bar):
    """Return twice the pairs won by a user's positives, whose rows are sorted by descending score.

    Each negative loses to the positives above it, and half to those of its tie.
    """
    twice, above, hits, others = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    score = scores[order[0]]
    for j in range(len(order)):
        row = np.uint64(order[j])
        if scores[row] != score:
            score = scores[row]
            twice += others * (2 * above + hits)
            above += hits
            hits, others = np.int64(0), np.int64(0)
        positive = np.int64(labels[row] >= bar)
        hits += positive
        others += 1 - positive
    return twice + others * (2 * above + hits)


@njit
def all_equal(scores):
    """Return whether all scores of a user are equal."""
    for j in range(1, len(scores)):
        if scores[j] != scores[0]:
            return False
    return True

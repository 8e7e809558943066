"""Scored, labelled rows: rank each user's positives, without sorting where that is faster, then go on as for lists.

What a positive needs is how many rows of its user have a higher score (`above`) and how many the same (`tied`). Both
are counted by comparing it with every row, many at a time, while the counted class is small; other users are sorted.
Counts are whole numbers, so the pairs won are exact.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.kernels.codes import (
    ABSOLUTES,
    BELOW,
    BIN_BITS,
    BLOCK,
    BRIER,
    CONSTANT,
    ENTROPY,
    EXPECTED,
    FACT_CONSTANT,
    FACT_NO_NEGATIVES,
    FACT_NO_POSITIVES,
    FACT_NO_ROWS,
    FALSE_POSITIVES,
    FIRST_ORDER_FACT,
    GAP,
    GAPS,
    INPUT,
    KOLMOGOROV,
    N_LISTED,
    N_RELEVANT,
    NEGATIVES,
    OUTSIDE,
    POSITIVES,
    QUANTILE_GAPS,
    REFUSE,
    SCORES,
    SMALL_CATALOGUE,
    SQUARES,
    START,
    STEP,
    TIED,
    TRAPEZOID,
    TRUE_POSITIVES,
    TWICE_WON,
    WEIGHTS,
)
from fastrec.kernels.list_order import sort_positions
from fastrec.kernels.ranking import add_block, evaluate_view, filter_block, rank_in_blocks, ties_of
from fastrec.runtime.compiler import helper, inlined

Array = np.ndarray[Any, Any]

UNIT, NOTHING = np.int32(3), np.int32(0)  # where not 1, LLVM adds under a mask and does not make numbers of the mask
MANY_TO_ONE = 4  # negatives to a positive from which pairs of positives cost less than leaving them out
LANES = 32  # rows are padded to a multiple of this
MOST_COUNTED = 192  # a larger class is sorted: counting costs its size times the rows
MOST_ROWS = 1 << 27  # of a user whose pairs are counted: 4 * UNIT * rows is less than 2^31
FEW_EVENTS = 24  # up to here events are put in order by comparing all of them
RADIX_BITS = 11
NARROW_BITS = 9  # of a digit where there are fewer rows than digits
SPLIT = 2.0**27 + 1  # times it, a double falls apart into two halves of its digits
NO_SUM = (0.0, 0.0, 0.0)
LOG_SERIES = 1e-3  # below, the series of the logarithm is exact and nothing cancels
DIGITS_OF_RADIX = 1 << RADIX_BITS
ROWS_CHECKED = 1 << 15  # at once: many enough for long loops, few enough to be still at hand when they are used


class ScoreLog(NamedTuple):
    """Rows of all users, end to end."""

    labels: Array  # int8 or float64 (n_rows,)
    scores: Array  # float32 or float64 (n_rows,)
    bits: Array  # uint32 or uint64 (n_rows,): the same as bits
    indptr: Array  # int64 (n_users + 1,)


class Extra(NamedTuple):
    """What is asked of rows."""

    ids: Array  # int64 (n_rows,): what breaks ties by id, else empty
    label_limits: Array  # as labels (2,): the smallest and the largest that may be
    score_limits: Array  # as scores (2,)
    bars: Array  # as labels (n_views + 1,): the label from which a row is positive in each view, and in any
    facts: Array  # int64 (n_facts, FACT_WIDTH): kind, parameter, view, row to fill
    parameters: Array  # float64
    ties: int
    walk: bool  # whether facts need the order of all rows


class ScoreScratch(NamedTuple):
    """Working memory, one set per bin; the first fields are those of `fastrec.kernels.ranking.Scratch`."""

    status: Array
    rows: Array
    bits: Array
    ranks: Array
    gains: Array
    bounds: Array
    counts: Array
    sums: Array
    padded: Array  # as scores (bins, longest row + LANES): the scores of a user, or of the negatives
    chosen: Array  # the same of one class, or of the positives
    scaled: Array  # float64 (bins, BLOCK)
    digits: Array  # int64 (bins, 6)
    terms: Array  # float64 (bins, 2, longest row / 2 + 8)
    places: Array  # int32 (bins, 3, longest row + 1): rows of one class, `above` and `tied` of each
    marks: Array  # int32 (bins, longest row + 2, at least DIGITS_OF_RADIX)
    packed: Array  # uint64 (bins, 2, longest row whose pairs are counted by sorting)
    keys: Array  # as bits (bins, 2, longest row that is sorted)
    order: Array  # int32 (bins, 2, longest row that is sorted)


@helper
def within(values, limits):
    """Whether all values are within limits, and none is NaN."""
    low, high = limits[0], limits[1]
    outside = False
    for j in range(len(values)):
        outside |= not (low <= values[j] <= high)
    return not outside


@helper
def choose(labels, scores, bar, chosen, places):
    """Scores and positions of the positive rows; how many there are."""
    n = 0
    for j in range(len(labels)):
        chosen[np.uint64(n)] = scores[j]
        places[np.uint64(n)] = np.int32(j)
        n += labels[j] >= bar
    return n


@helper
def count_positives(labels, bar):
    """Positive rows of a user."""
    n = np.int32(0)
    for j in range(len(labels)):
        n = np.int32(n + np.int32(labels[j] >= bar))
    return np.int64(n)


@helper
def pick(labels, scores, bar, positives):
    """Scores of the positive rows."""
    n = 0
    for j in range(len(labels)):
        positives[np.uint64(n)] = scores[j]
        n += labels[j] >= bar


@helper
def split(labels, scores, bar, positives, negatives):
    """Scores of the rows of either class."""
    n = 0
    for j in range(len(labels)):
        score = scores[j]
        positives[np.uint64(n)] = score
        negatives[np.uint64(j - n)] = score
        n += labels[j] >= bar


@helper
def pad(scores, padded):
    """Copy a row and fill it up; returns its length."""
    n = len(scores)
    for j in range(n):
        padded[j] = scores[j]
    return fill_up(padded, n)


@helper
def fill_up(padded, n):
    """Fill a row of n scores up with NaN, which is neither smaller than anything nor equal; returns its length."""
    length = (n + LANES - 1) // LANES * LANES
    for j in range(n, length):
        padded[j] = np.nan
    return length


@helper
def count_both(row, chosen, n):
    """Sum over the chosen scores of the rows below each and of the rows not above it, two scores at a time."""
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


@helper
def count_each(row, chosen, n, n_rows, above, tied):
    """For each chosen score the rows above it and the rows that share it, two scores at a time."""
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


@helper
def order_events(places, n, n_rows, marks, labels, above, tied, gains):
    """Write the events of a user in the order of their blocks; `places` holds row, above and tied of each."""
    few = n <= FEW_EVENTS
    if few:
        order_few(places[1], n, marks)
    else:
        for j in range(n_rows + 1):
            marks[j] = 0
        for i in range(n):
            marks[places[1, i] + 1] += np.int32(1)
        for j in range(1, n_rows + 1):
            marks[j] += marks[j - 1]
    for i in range(n):
        own = places[1, i]
        at = np.uint64(marks[i if few else own])
        if not few:
            marks[own] += np.int32(1)
        above[at] = own
        tied[at] = places[2, i]
        if len(gains) > 0:
            gains[at] = labels[places[0, i]]


@helper
def order_few(values, n, places):
    """The place of each value among all in ascending order, by comparing each with those before: nothing to guess."""
    for i in range(n):
        own = values[i]
        place = np.int32(0)
        for j in range(i):
            upto = np.int32(values[j] <= own)
            place = np.int32(place + upto)
            places[j] = np.int32(places[j] + np.int32(1 - upto))
        places[i] = place


@helper
def sort_key(score, bits, top):
    """A number that is the smaller the larger the score is, 0.0 and -0.0 alike; `top` is the highest of the bits."""
    own = np.uint64(0) if score == 0 else np.uint64(bits)
    return own if own & top else (top - np.uint64(1)) ^ own


@helper
def fill_keys(scores, bits, keys, order):
    """Keys that sort a row from its largest score to its smallest."""
    top = np.uint64(1) << np.uint64(8 * keys.itemsize - 1)
    for j in range(len(scores)):
        keys[j] = sort_key(scores[j], bits[j], top)
        order[j] = np.int32(j)


@helper
def pack_rows(labels, scores, bits, bar, packed):
    """Keys counted from the smallest, with the class of the row as the lowest bit; how many bits the keys take."""
    top = np.uint64(1) << np.uint64(8 * bits.itemsize - 1)
    lowest, highest = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(0)
    for j in range(len(scores)):
        key = sort_key(scores[j], bits[j], top)
        lowest, highest = min(lowest, key), max(highest, key)
        packed[j] = key
    n_bits = 0
    while n_bits < 64 and (highest - lowest) >> np.uint64(n_bits) > np.uint64(0):
        n_bits += 1
    for j in range(len(scores)):
        packed[j] = ((packed[j] - lowest) << np.uint64(1)) | np.uint64(labels[j] >= bar)
    return n_bits


@helper
def sort_packed(packed, n, n_bits, marks):
    """Sort n packed rows by their keys, digit by digit; returns which copy of the two holds them."""
    widest = RADIX_BITS if n >= DIGITS_OF_RADIX else NARROW_BITS
    passes = (n_bits + widest - 1) // widest
    if passes == 0:
        return 0
    width = (n_bits + passes - 1) // passes
    size = 1 << width
    mask = np.uint64(size - 1)
    for nth in range(passes):
        source, target = packed[nth % 2], packed[1 - nth % 2]
        shift = np.uint64(1 + nth * width)
        for d in range(size):
            marks[d] = 0
        for j in range(n):
            marks[(source[j] >> shift) & mask] += np.int32(1)
        place = np.int32(0)
        for d in range(size):
            digits = marks[d]
            marks[d] = place
            place = np.int32(place + digits)
        for j in range(n):
            row = source[j]
            digit = (row >> shift) & mask
            at = marks[digit]
            marks[digit] = np.int32(at + np.int32(1))
            target[np.uint64(at)] = row
    return passes % 2


@helper
def count_won(packed, n):
    """Twice the pairs won by positives: each negative loses to those above it, and half to those of its block."""
    twice, above, hits, others = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    one = np.uint64(1)
    key = packed[0] >> one
    for j in range(n):
        if packed[j] >> one != key:
            key = packed[j] >> one
            twice += others * (2 * above + hits)
            above += hits
            hits, others = np.int64(0), np.int64(0)
        positive = np.int64(packed[j] & one)
        hits += positive
        others += 1 - positive
    return twice + others * (2 * above + hits)


@helper
def radix_sort(keys, order, marks, n):
    """Stable sort of n keys and their rows by digits, lowest first; returns which copy of the two holds them."""
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


@helper
def sort_rows(labels, scores, bits, ids, ties, keys, order, marks):
    """Rows of a user from the largest score to the smallest, equal ones by the rule; returns the copy to read."""
    n = len(scores)
    if ties in (EXPECTED, INPUT, REFUSE):
        fill_keys(scores, bits, keys[0], order[0])
        return radix_sort(keys, order, marks, n)
    sort_positions(order[0], order[1], n, scores, ids, labels, ties)
    return 0


@helper
def events_of_order(order, labels, scores, bar, ranks, above, tied, gains):
    """Write the events of a user whose rows are in order; returns whether two rows of one score count."""
    n = len(order)
    n_events = 0
    start = 0
    shared = False
    for i in range(1, n + 1):
        if i == n or scores[order[i]] != scores[order[start]]:
            for j in range(start, i):
                if labels[order[j]] >= bar:
                    ranks[n_events] = np.int32(j + 1)
                    above[n_events] = np.int32(start)
                    tied[n_events] = np.int32(i - start)
                    if len(gains) > 0:
                        gains[n_events] = labels[order[j]]
                    n_events += 1
                    shared = shared or i - start > 1
            start = i
    return shared


@inlined
def collect_user(
    labels, scores, bits, ids, ties, bar, chosen, padded, places, marks, keys, order, ranks, above, tied, gains
):
    """Write the events of one user; returns how many, and whether ties are refused."""
    n = len(scores)
    n_events = choose(labels, scores, bar, chosen, places[0])
    counted = n_events <= MOST_COUNTED
    if counted:
        count_each(padded[: pad(scores, padded)], chosen, n_events, n, places[1], places[2])
        order_events(places, n_events, n, marks, labels, above, tied, gains)
        shared = False
        for e in range(n_events):
            shared = shared or tied[e] > 1
            ranks[e] = above[e] + 1
        if not shared or ties == EXPECTED:
            if shared:
                rank_in_blocks(ranks, above, 0, n_events)
            return n_events, False
    else:
        shared = True
    if shared:
        copy = sort_rows(labels, scores, bits, ids, ties, keys, order, marks)
        shared = events_of_order(order[copy, :n], labels, scores, bar, ranks, above, tied, gains)
        if ties == EXPECTED:
            rank_in_blocks(ranks, above, 0, n_events)
    return n_events, shared and ties == REFUSE


@helper
def collect_scores(log, extra, first, last, n_items, scratch, ties, at, errors):
    """Write down the positives of users first..last-1 in rank order, or only how many; False on an error.

    Rows are checked here, some users ahead: that takes no pass of its own over memory.
    """
    ranks, gains, bounds = scratch.ranks[at, 0], scratch.gains[at, 0], scratch.bounds[at, 0]
    bar = extra.bars[len(extra.bars) - 1]
    # one by one: all of the scratch, handed over for each user, costs as much as the user
    chosen, padded, places = scratch.chosen[at], scratch.padded[at], scratch.places[at]
    marks, keys, order = scratch.marks[at], scratch.keys[at], scratch.order[at]
    n_events = 0
    checked = log.indptr[first]
    for u in range(first, last):
        span = slice(log.indptr[u], log.indptr[u + 1])
        if checked < span.stop:
            fresh = slice(checked, max(span.stop, min(checked + ROWS_CHECKED, log.indptr[last])))
            checked = fresh.stop
            if not (within(log.labels[fresh], extra.label_limits) and within(log.scores[fresh], extra.score_limits)):
                errors[0] = OUTSIDE
                errors[1] = u
                return False
        n_rows = log.indptr[u + 1] - log.indptr[u]
        i = u - first
        bounds[START, i] = n_events
        ranks[n_events] = 0
        n_events += 1
        refused = False
        if ties is None:
            n_rel = count_positives(log.labels[span], bar)
        else:
            n_rel, refused = collect_user(
                log.labels[span],
                log.scores[span],
                log.bits[span],
                extra.ids[span] if len(extra.ids) > 0 else extra.ids,
                extra.ties,
                bar,
                chosen,
                padded,
                places,
                marks,
                keys,
                order,
                ranks[n_events:],
                ties.above[at, 0, n_events:],
                ties.tied[at, 0, n_events:],
                gains[n_events:],
            )
            n_events += n_rel
        if refused or n_rows > n_items:
            errors[0] = TIED if refused else SMALL_CATALOGUE
            errors[1] = u
            errors[2] = n_rows
            return False
        bounds[N_RELEVANT, i] = n_rel
        bounds[N_LISTED, i] = n_rows
    bounds[START, last - first] = n_events
    return True


@helper
def weight_of(weights, j):
    """The weight of a row, 1 without weights."""
    if weights is None:
        return 1.0
    else:
        return weights[j]


@helper
def log(x):
    """The natural logarithm of a number that is not negative."""
    return math.log(x) if x > 0.0 else -np.inf


@helper
def sum_over_rows(kind, parameter, labels, scores, weights, bar):
    """One sum over the rows of a user; see the kinds of facts."""
    total = 0.0
    n = len(scores)
    if kind == WEIGHTS:
        for j in range(n):
            total += weight_of(weights, j)
    elif kind == POSITIVES:
        for j in range(n):
            total += weight_of(weights, j) if labels[j] >= bar else 0.0
    elif kind == NEGATIVES:
        for j in range(n):
            total += 0.0 if labels[j] >= bar else weight_of(weights, j)
    elif kind == SCORES:
        for j in range(n):
            total += weight_of(weights, j) * np.float64(scores[j])
    elif kind == BRIER:
        for j in range(n):
            gap = np.float64(scores[j]) - (1.0 if labels[j] >= bar else 0.0)
            total += weight_of(weights, j) * (gap * gap)
    elif kind == TRUE_POSITIVES:
        for j in range(n):
            total += weight_of(weights, j) if labels[j] >= bar and scores[j] >= parameter else 0.0
    elif kind == BELOW:
        for j in range(n):
            total += weight_of(weights, j) if scores[j] < parameter else 0.0
    elif kind == FALSE_POSITIVES:
        for j in range(n):
            total += weight_of(weights, j) if not (labels[j] >= bar) and scores[j] >= parameter else 0.0
    else:
        for j in range(n):
            clipped = min(max(np.float64(scores[j]), parameter), 1.0 - parameter)
            total -= weight_of(weights, j) * log(clipped if labels[j] >= bar else 1.0 - clipped)
    return total


@helper
def sum_pairs(first, second, n):
    """The sums of n terms each, halves onto halves: many at a time, in an order that is always the same."""
    while n > 8:
        half = (n + 1) // 2
        low, high, low2, high2 = first[: n - half], first[half:n], second[: n - half], second[half:n]
        for j in range(n - half):
            low[j] += high[j]
            low2[j] += high2[j]
        n = half
    for j in range(n, 8):
        first[j] = 0.0
        second[j] = 0.0
    return sum_eight(first), sum_eight(second)


@helper
def sum_eight(terms):
    """Eight terms, halves onto halves."""
    even, odd = (terms[0] + terms[4]) + (terms[2] + terms[6]), (terms[1] + terms[5]) + (terms[3] + terms[7])
    return even + odd


@helper
def sum_errors(labels, scores, weights, terms):
    """Sums of squared and of absolute differences over the rows of a user."""
    n = len(scores)
    half = n // 2
    squares, absolutes = terms[0], terms[1]
    scores2, labels2 = scores[half:], labels[half:]
    for j in range(half):  # two rows become one term: half as much to write down and to add
        gap = np.float64(scores[j]) - np.float64(labels[j])
        other = np.float64(scores2[j]) - np.float64(labels2[j])
        weight, weight2 = weight_of(weights, j), weight_of(weights, half + j)
        squares[j] = gap * gap * weight + other * other * weight2
        absolutes[j] = abs(gap) * weight + abs(other) * weight2
    if n > 2 * half:
        gap = np.float64(scores[n - 1]) - np.float64(labels[n - 1])
        squares[half] = gap * gap * weight_of(weights, n - 1)
        absolutes[half] = abs(gap) * weight_of(weights, n - 1)
    return sum_pairs(squares, absolutes, n - half)


@helper
def error_facts(view, log, weights, extra, first, n, terms, rows):
    """Fill the rows of squared and absolute differences, both in one pass."""
    squares, absolutes = -1, -1
    for f in range(len(extra.facts)):
        if extra.facts[f, 2] == view:
            squares = extra.facts[f, 3] if extra.facts[f, 0] == SQUARES else squares
            absolutes = extra.facts[f, 3] if extra.facts[f, 0] == ABSOLUTES else absolutes
    if squares < 0 and absolutes < 0:
        return
    for i in range(n):
        span = slice(log.indptr[first + i], log.indptr[first + i + 1])
        if weights is None:
            sums = sum_errors(log.labels[span], log.scores[span], None, terms)
        else:
            sums = sum_errors(log.labels[span], log.scores[span], weights[span], terms)
        if squares >= 0:
            rows[squares, i] = sums[0]
        if absolutes >= 0:
            rows[absolutes, i] = sums[1]


@helper
def bin_of(score, bins):
    """The bin of a probability among equally wide ones, from b / bins to below (b + 1) / bins, the last one closed."""
    b = min(np.int64(np.float64(score) * bins), bins - 1)
    if score < b / bins:  # the product was rounded up
        return b - 1
    return b + 1 if b + 1 < bins and score >= (b + 1) / bins else b


@helper
def sum_gaps(kind, parameter, labels, scores, weights, bar):
    """Sum of w (s - y) in one of equally wide bins, or the sum over bins of its absolute value."""
    bins = np.int64(parameter) >> BIN_BITS if kind == GAP else np.int64(parameter)
    wanted = np.int64(parameter) & ((1 << BIN_BITS) - 1)
    total = 0.0
    for b in range(wanted if kind == GAP else 0, wanted + 1 if kind == GAP else bins):
        gap = 0.0
        for j in range(len(scores)):
            if bin_of(scores[j], bins) == b:
                gap += weight_of(weights, j) * (np.float64(scores[j]) - (1.0 if labels[j] >= bar else 0.0))
        total += gap if kind == GAP else abs(gap)
    return total


@helper
def entropy(positives, negatives):
    """Cross entropy of always predicting the base rate, times the rows."""
    rows = positives + negatives
    if positives == 0.0 or negatives == 0.0:
        return 0.0
    # the logarithm of a share near 1 has all its digits only as that of what is missing
    if positives < negatives:
        return -(positives * log(positives / rows) + negatives * math.log1p(-positives / rows))
    return -(positives * math.log1p(-negatives / rows) + negatives * log(negatives / rows))


@helper
def fact_of_rows(kind, parameter, labels, scores, weights, bar):
    """A fact that does not depend on the order of rows."""
    if kind == GAP or kind == GAPS:
        return sum_gaps(kind, parameter, labels, scores, weights, bar)
    if kind == ENTROPY:
        positives = sum_over_rows(POSITIVES, 0.0, labels, scores, weights, bar)
        return entropy(positives, sum_over_rows(NEGATIVES, 0.0, labels, scores, weights, bar))
    return sum_over_rows(kind, parameter, labels, scores, weights, bar)


@helper
def area_of_block(kind, hits, others, more_hits, more_others):
    """What a block adds to the area under precision-recall, in units of positives.

    `hits` and `others` are the positives and negatives above it, the rest its own. Davis & Goadrich (2006) move
    between two points as if positives and negatives were spread evenly over the block.
    """
    if more_hits == 0.0:
        return 0.0
    after = (hits + more_hits) / (hits + more_hits + others + more_others)
    if kind == STEP:
        return more_hits * after
    if kind == TRAPEZOID:
        before = hits / (hits + others) if hits + others > 0.0 else after
        return more_hits * (before + after) / 2.0
    rows, new = hits + others, more_hits + more_others
    if rows == 0.0:
        return more_hits * (more_hits / new)
    share = new / rows
    factor = log_series(share) if share < LOG_SERIES else math.log1p(share) / share
    return more_hits * ((1.0 - factor) * (more_hits / new) + factor * (hits / rows))


@helper
def log_series(x):
    """The first terms of log(1 + x) / x."""
    return 1.0 + x * (-1 / 2 + x * (1 / 3 + x * (-1 / 4 + x * (1 / 5 + x * (-1 / 6)))))


@helper
def distance(positives, negatives, hits, others):
    """Distance of the two distributions after some positives and negatives."""
    return abs(hits / positives - others / negatives)


@helper
def fact_of_events(kind, above, tied, first, last, n_rows, n_rel):
    """A fact of the order of an unweighted user, from the blocks that hold positives."""
    if kind == CONSTANT:
        return 1.0 if last > first and tied[first] == n_rows else 0.0
    if kind == TWICE_WON:
        return np.float64(twice_of_events(above, tied, first, last, n_rows))
    negatives = n_rows - n_rel
    value = 0.0
    e = first
    while e < last:
        stop = e + 1
        while stop < last and above[stop] == above[e]:
            stop += 1
        hits, c = e - first, stop - e
        others = above[e] - hits
        more = tied[e] - c
        if kind == KOLMOGOROV:
            if negatives > 0:
                total, rest = np.float64(n_rel), np.float64(negatives)
                value = max(value, distance(total, rest, hits, others))
                value = max(value, distance(total, rest, hits + c, others + more))
        else:
            value += area_of_block(kind, np.float64(hits), np.float64(others), np.float64(c), np.float64(more))
        e = stop
    return value


@helper
def twice_of_events(above, tied, first, last, n_rows):
    """Twice the pairs won by the positives: the rows below each and half of those that share its score."""
    lost = np.int64(0)
    for e in range(first, last):
        lost += 2 * np.int64(above[e]) + np.int64(tied[e])
    n = np.int64(last - first)
    # pairs within the class and each row with itself: n^2 in all, whatever the scores
    return 2 * n * n_rows - lost - n * n


@helper
def one_score(order, scores, weights):
    """1 if all rows that have weight have the same score, else 0."""
    first = -1
    for j in range(len(order)):
        if weight_of(weights, order[j]) > 0.0:
            if first >= 0 and scores[order[j]] != scores[order[first]]:
                return 0.0
            first = j
    return 1.0 if first >= 0 else 0.0


@helper
def fact_of_order(kind, parameter, order, labels, scores, weights, bar):
    """A fact of the order of a user whose rows are sorted, with weights."""
    n = len(order)
    positives = sum_over_rows(POSITIVES, 0.0, labels, scores, weights, bar)
    negatives = sum_over_rows(NEGATIVES, 0.0, labels, scores, weights, bar)
    if kind == CONSTANT:
        return one_score(order, scores, weights)
    if kind == QUANTILE_GAPS:
        return sum_quantile_gaps(parameter, order, labels, scores, weights, bar)
    hits, others = 0.0, 0.0
    value = 0.0
    start = 0
    for i in range(1, n + 1):
        if i == n or scores[order[i]] != scores[order[start]]:
            more_hits, more_others = 0.0, 0.0
            for j in range(start, i):
                if labels[order[j]] >= bar:
                    more_hits += weight_of(weights, order[j])
                else:
                    more_others += weight_of(weights, order[j])
            if kind == TWICE_WON:
                # a negative wins nothing: each loses to the positives above it, and half to those of its block
                value += more_others * (2.0 * hits + more_hits)
            elif kind == KOLMOGOROV:
                if positives > 0.0 and negatives > 0.0:
                    value = max(value, distance(positives, negatives, hits + more_hits, others + more_others))
            else:
                value += area_of_block(kind, hits, others, more_hits, more_others)
            hits += more_hits
            others += more_others
            start = i
    return value


@helper
def sum_quantile_gaps(parameter, order, labels, scores, weights, bar):
    """Sum over bins of |sum of w (s - y)|; rows from the smallest score, tied ones in the bin of the first."""
    bins = np.int64(parameter)
    n = len(order)
    total = NO_SUM
    for j in range(n):
        total = added(total, weight_of(weights, order[j]))
    value, gap, before = 0.0, 0.0, NO_SUM
    current = np.int64(0)
    stop = n
    while stop > 0:
        start = stop - 1
        while start > 0 and scores[order[start - 1]] == scores[order[stop - 1]]:
            start -= 1
        own = bin_of_weight(before, total, bins)
        if own != current:
            value += abs(gap)
            gap = 0.0
            current = own
        for j in range(start, stop):
            row = order[j]
            gap += weight_of(weights, row) * (np.float64(scores[row]) - (1.0 if labels[row] >= bar else 0.0))
            before = added(before, weight_of(weights, row))
        stop = start
    return value + abs(gap)


@helper
def bin_of_weight(before, total, bins):
    """The whole part of before * bins / total, bins - 1 at most; both are sums in parts, so no rounding decides."""
    if not 0.0 < total[0] < math.inf:
        return np.int64(0)
    nearest = np.int64(math.floor(before[0] / total[0] * np.float64(bins) + 0.5))
    if nearest > 0 and not reaches(before, total, bins, nearest):
        nearest -= 1
    return min(nearest, bins - 1)


@helper
def reaches(before, total, bins, cut):
    """Whether before * bins >= total * cut."""
    exponent = -math.frexp(total[0])[1]
    gap = NO_SUM
    for at in range(len(before)):
        gap = add_product(gap, math.ldexp(before[at], exponent), np.float64(bins))
        gap = add_product(gap, math.ldexp(total[at], exponent), -np.float64(cut))
    return gap[0] + (gap[1] + gap[2]) >= 0.0


@helper
def added(parts, value):
    """A sum in three parts: the second holds what the first was rounded by, the third what the second was."""
    first, rest = two_sum(parts[0], value)
    second, rest = two_sum(parts[1], rest)
    return first, second, parts[2] + rest


@helper
def two_sum(one, other):
    """The rounded sum, and what it was rounded by."""
    whole = one + other
    new = whole - one
    return whole, (one - (whole - new)) + (other - new)


@helper
def add_product(parts, one, other):
    """Add the product of two numbers of moderate size, and what it is rounded by."""
    whole = one * other
    one_high, other_high = SPLIT * one, SPLIT * other
    one_high -= one_high - one
    other_high -= other_high - other
    one_low, other_low = one - one_high, other - other_high
    rest = one_low * other_low - (((whole - one_high * other_high) - one_low * other_high) - one_high * other_low)
    return added(added(parts, whole), rest)


@helper
def twice_won(labels, scores, bar, positives, chosen, padded):
    """Twice the pairs won by a user's positives, by comparing each row of the smaller class with the larger class."""
    negatives = np.int64(len(scores)) - positives
    if positives == 0 or negatives == 0:
        return np.int64(0)
    if positives * MANY_TO_ONE <= negatives:
        # few pairs stand within the class, and they win half, whatever the scores
        length = pad(scores, padded)  # first, so that it is in memory by the time it is read as vectors
        pick(labels, scores, bar, chosen)
        return count_both(padded[:length], chosen, positives) - positives * positives
    split(labels, scores, bar, chosen, padded)
    if positives <= negatives:
        return count_both(padded[: fill_up(padded, negatives)], chosen, positives)
    return 2 * positives * negatives - count_both(chosen[: fill_up(chosen, positives)], padded, negatives)


@helper
def twice_won_in_order(labels, scores, bits, bar, packed, marks):
    """The same by sorting; -1 if scores are too far apart to be packed with their classes."""
    n = np.int64(len(scores))
    n_bits = pack_rows(labels, scores, bits, bar, packed[0])
    if n_bits == 64:
        return np.int64(-1)
    return count_won(packed[sort_packed(packed, n, n_bits, marks)], n)


@helper
def all_equal(scores):
    """Whether a user has one score only."""
    for j in range(1, len(scores)):
        if scores[j] != scores[0]:
            return False
    return True


@helper
def asks_order(view, extra):
    """Whether a view asks for facts that follow from the order of rows."""
    for f in range(len(extra.facts)):
        if extra.facts[f, 0] >= FIRST_ORDER_FACT and extra.facts[f, 2] == view:
            return True
    return False


@helper
def order_facts(view, log, weights, extra, first, n, scratch, ties, at, which, rows):
    """Fill the rows of facts that follow from the order of rows."""
    bar = extra.bars[view]
    bounds = scratch.bounds[at, which]
    for i in range(n):
        span = slice(log.indptr[first + i], log.indptr[first + i + 1])
        labels, scores, bits = log.labels[span], log.scores[span], log.bits[span]
        n_rows = len(scores)
        won = np.int64(-1)
        if ties is None and not extra.walk:
            positives = positives_of(view, extra, bounds, labels, i)
            if min(positives, n_rows - positives) <= MOST_COUNTED and n_rows <= MOST_ROWS:
                won = twice_won(labels, scores, bar, positives, scratch.chosen[at], scratch.padded[at])
            else:
                won = twice_won_in_order(labels, scores, bits, bar, scratch.packed[at], scratch.marks[at])
        copy = -1
        if extra.walk or (ties is None and won < 0):
            copy = sort_rows(
                labels, scores, bits, labels, EXPECTED, scratch.keys[at], scratch.order[at], scratch.marks[at]
            )
        for f in range(len(extra.facts)):
            kind, parameter = extra.facts[f, 0], extra.parameters[extra.facts[f, 1]]
            if kind < FIRST_ORDER_FACT or extra.facts[f, 2] != view:
                continue
            if copy >= 0:
                order = scratch.order[at, copy, :n_rows]
                if weights is None:
                    value = fact_of_order(kind, parameter, order, labels, scores, None, bar)
                else:
                    value = fact_of_order(kind, parameter, order, labels, scores, weights[span], bar)
            elif ties is not None:
                above, tied = ties.above[at, which], ties.tied[at, which]
                events = (bounds[START, i] + 1, bounds[START, i + 1])
                value = fact_of_events(kind, above, tied, events[0], events[1], n_rows, bounds[N_RELEVANT, i])
            elif kind == TWICE_WON:
                value = np.float64(won)
            else:
                value = 1.0 if n_rows > 0 and all_equal(scores) else 0.0
            rows[extra.facts[f, 3], i] = value


@helper
def positives_of(view, extra, bounds, labels, i):
    """Positive rows of a user: counted before where all metrics mean the same rows."""
    if len(extra.bars) == 2:
        return bounds[N_RELEVANT, i]
    return count_positives(labels, extra.bars[view])


@helper
def row_facts(view, log, weights, extra, first, n, bounds, rows):
    """Fill the rows of facts that are sums over the rows of a user."""
    for f in range(len(extra.facts)):
        kind, parameter = extra.facts[f, 0], extra.parameters[extra.facts[f, 1]]
        if kind >= FIRST_ORDER_FACT or kind == SQUARES or kind == ABSOLUTES or extra.facts[f, 2] != view:
            continue
        out = rows[extra.facts[f, 3]]
        for i in range(n):
            span = slice(log.indptr[first + i], log.indptr[first + i + 1])
            labels, scores = log.labels[span], log.scores[span]
            if weights is None:
                if kind == WEIGHTS:
                    out[i] = len(scores)
                elif kind == POSITIVES:
                    out[i] = positives_of(view, extra, bounds, labels, i)
                elif kind == NEGATIVES:
                    out[i] = len(scores) - positives_of(view, extra, bounds, labels, i)
                else:
                    out[i] = fact_of_rows(kind, parameter, labels, scores, None, extra.bars[view])
            else:
                out[i] = fact_of_rows(kind, parameter, labels, scores, weights[span], extra.bars[view])


@helper
def add_classes(bounds, log, first, n, facts):
    """Count the users that have no rows or one class only."""
    for i in range(n):
        n_rows, n_rel = bounds[N_LISTED, i], bounds[N_RELEVANT, i]
        facts[FACT_NO_ROWS] += n_rows == 0
        facts[FACT_NO_POSITIVES] += n_rows > 0 and n_rel == 0
        facts[FACT_NO_NEGATIVES] += n_rows > 0 and n_rel == n_rows
        if 0 < n_rel < n_rows:
            facts[FACT_CONSTANT] += all_equal(log.scores[log.indptr[first + i] : log.indptr[first + i + 1]])


def evaluate_score_bin(log, weights, extra, gains, program, users, totals, scratch, tie_scratch, blocks, starts, at):
    """Evaluate the users of blocks[starts[at]:starts[at + 1]] into bin `at` of the totals, or leave an error there.

    `weights` is None or float64 (n_rows,); `gains` is None where all relevant rows are worth the same, else the labels;
    `tie_scratch` is None where the ranks of positives are not needed.
    """
    n_users = len(log.indptr) - 1
    rows = scratch.rows[at]
    for b in blocks[starts[at] : starts[at + 1]]:
        first = b * BLOCK
        last = min(first + BLOCK, n_users)
        n = last - first
        if not collect_scores(log, extra, first, last, program.n_items, scratch, tie_scratch, at, totals.errors[at]):
            return
        for view in range(len(program.min_gains)):
            which = 0
            if gains is not None:  # alone in its condition, so that Numba drops the branch
                if program.min_gains[view] > 0.0:
                    which = 1
                    ranks, event_gains, bounds = scratch.ranks[at], scratch.gains[at], scratch.bounds[at]
                    least, expected = program.min_gains[view], program.expected
                    filter_block(
                        ranks, event_gains, tie_scratch, at, expected, bounds, log.indptr, gains, first, n, least
                    )
            if view == 0:
                add_classes(scratch.bounds[at, which], log, first, n, totals.facts[at])
            row_facts(view, log, weights, extra, first, n, scratch.bounds[at, which], rows)
            error_facts(view, log, weights, extra, first, n, scratch.terms[at], rows)
            if asks_order(view, extra):
                order_facts(view, log, weights, extra, first, n, scratch, tie_scratch, at, which, rows)
            if tie_scratch is not None:
                ties = ties_of(tie_scratch, at, which)
            else:
                ties = None
            if not evaluate_view(view, ties, log.indptr, gains, program, users, totals, scratch, at, which, first, n):
                return
        if not add_block(program, users, totals, scratch, at, first, n, (scratch.scaled[at], scratch.digits[at])):
            return

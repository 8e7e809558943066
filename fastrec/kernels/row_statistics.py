"""Statistics of a user's scored rows: sums, errors, calibration, areas, and distances of distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .codes import (
    ABSOLUTES,
    BELOW,
    BIN_BITS,
    BRIER,
    CONSTANT,
    COUNT,
    DIFFER,
    ENTROPY,
    EXPECTED,
    FALSE_POSITIVES,
    FIRST_EVENT,
    FIRST_ORDER_STATISTIC,
    GAP,
    GAPS,
    KOLMOGOROV,
    LAST_ORDER_STATISTIC,
    NEGATIVES,
    POSITIVES,
    QUANTILE_GAPS,
    RELATIVE,
    RELEVANT,
    ROOT,
    SCORES,
    SQUARES,
    SUM,
    TARGETS,
    TRUE_POSITIVES,
    TWICE_WON,
    UNEXPLAINED,
    WEIGHTS,
)
from .jit import njit
from .positives import MAX_COUNTED, all_equal, count_positives, sort_rows, twice_won, twice_won_in_order
from .runs import NO_SUM, add_product, added, area_of_run, distance, entropy, log, weight_of
from .targets import sum_of_relative_errors, sum_of_targets, targets_differ, unexplained_share

Array = np.ndarray[Any, Any]
LEAST_PRODUCT = 2.0**-900  # of probabilities of at least 2^-52: none becomes subnormal, and loses digits
MAX_ROWS = 1 << 27  # of a user whose pairs are counted: 4 * UNIT * rows stays below 2^31


@njit
def sum_over_rows(kind, parameter, labels, scores, weights, bar):
    """Return one sum over the rows of a user; `fastrec.kernels.codes` lists the kinds of statistics."""
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
        total = cross_entropy(parameter, labels, scores, weights, bar)
    return total


@njit
def cross_entropy(clip, labels, scores, weights, bar):
    """Return the cross entropy of scores, each clipped to [clip, 1 - clip].

    Without weights, it is the logarithm of the product of many probabilities: faster, and rounded less often.
    """
    total, product = 0.0, 1.0
    for j in range(len(scores)):
        clipped = min(max(np.float64(scores[j]), clip), 1.0 - clip)
        probability = clipped if labels[j] >= bar else 1.0 - clipped
        if weights is None:
            product *= probability
            if product < LEAST_PRODUCT:
                total -= log(product)
                product = 1.0
        else:
            total -= weights[j] * log(probability)
    return total - log(product)


@njit
def sum_pairs(first, second, n):
    """Return the sums of two sets of n terms, halves added to halves: many at a time, always in the same order."""
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


@njit
def sum_eight(terms):
    """Return the sum of eight terms, halves added to halves."""
    even, odd = (terms[0] + terms[4]) + (terms[2] + terms[6]), (terms[1] + terms[5]) + (terms[3] + terms[7])
    return even + odd


@njit
def sum_errors(labels, scores, weights, terms):
    """Return the sums of squared and of absolute differences over the rows of a user."""
    n = len(scores)
    half = n // 2
    squares, absolutes = terms[0], terms[1]
    scores2, labels2 = scores[half:], labels[half:]
    for j in range(half):  # two rows become one term, which halves the writes and additions
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


@njit
def error_statistics(condition, log, weights, out, terms, first, last):
    """Write squared and absolute differences of users first..last-1, both in one pass."""
    squares, absolutes = -1, -1
    for f in range(len(log.statistics)):
        if log.statistics[f, 2] == condition:
            squares = f if log.statistics[f, 0] == SQUARES else squares
            absolutes = f if log.statistics[f, 0] == ABSOLUTES else absolutes
    if squares < 0 and absolutes < 0:
        return
    for u in range(first, last):
        span = slice(log.indptr[u], log.indptr[u + 1])
        if weights is None:
            sums = sum_errors(log.labels[span], log.scores[span], None, terms)
        else:
            sums = sum_errors(log.labels[span], log.scores[span], weights[span], terms)
        if squares >= 0:
            out.facts[squares, u] = sums[0]
        if absolutes >= 0:
            out.facts[absolutes, u] = sums[1]


@njit
def bin_of(score, bins):
    """Return the bin of a probability among equally wide ones.

    Bin b goes from b / bins to below (b + 1) / bins; the last one includes 1.
    """
    b = min(np.int64(np.float64(score) * bins), bins - 1)
    if score < b / bins:  # the product was rounded up
        return b - 1
    return b + 1 if b + 1 < bins and score >= (b + 1) / bins else b


@njit
def sum_gaps(kind, parameter, labels, scores, weights, bar):
    """Return the sum of w (s - y) in one of equally wide bins, or the sum of its absolute values over bins."""
    if kind == GAPS and np.int64(parameter) >> BIN_BITS != SUM:
        return norm_of_gaps(parameter, labels, scores, weights, bar)
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


@njit
def norm_of_gaps(parameter, labels, scores, weights, bar):
    """Return the mean or the largest gap of equally wide bins, where a gap is the mean of s - y in the bin."""
    norm, bins = np.int64(parameter) >> BIN_BITS, np.int64(parameter) & ((1 << BIN_BITS) - 1)
    total, rows = 0.0, 0.0
    for b in range(bins):
        gap, weight = 0.0, 0.0
        for j in range(len(scores)):
            if bin_of(scores[j], bins) == b:
                gap += weight_of(weights, j) * (np.float64(scores[j]) - (1.0 if labels[j] >= bar else 0.0))
                weight += weight_of(weights, j)
        total = joined_gaps(norm, total, gap, weight)
        rows += weight
    return finished_gaps(norm, total, rows)


@njit
def joined_gaps(norm, total, gap, weight):
    """Return the total of a norm with the gap of one more bin, which is a sum over the rows of the bin."""
    if norm == SUM:
        return total + abs(gap)
    if not weight > 0.0:
        return total
    share = gap / weight
    return total + weight * (share * share) if norm == ROOT else max(total, min(abs(share), 1.0))


@njit
def finished_gaps(norm, total, rows):
    """Return the norm of the gaps of all bins."""
    if norm != ROOT:
        return total
    return min(math.sqrt(total / rows), 1.0) if rows > 0.0 else 0.0


@njit
def statistic_of_rows(kind, parameter, labels, scores, weights, bar):
    """Return a statistic that does not depend on the order of rows."""
    if kind == GAP or kind == GAPS:
        return sum_gaps(kind, parameter, labels, scores, weights, bar)
    if kind == RELATIVE:
        return sum_of_relative_errors(parameter, labels, scores, weights)
    if kind == DIFFER:
        return targets_differ(labels, weights)
    if kind == UNEXPLAINED:
        return unexplained_share(labels, scores, weights)
    if kind == TARGETS:
        return sum_of_targets(parameter, labels, weights)
    if kind == ENTROPY:
        positives = sum_over_rows(POSITIVES, 0.0, labels, scores, weights, bar)
        return entropy(positives, sum_over_rows(NEGATIVES, 0.0, labels, scores, weights, bar))
    return sum_over_rows(kind, parameter, labels, scores, weights, bar)


@njit
def statistic_of_events(kind, above, tied, n_rows, n_rel):
    """Return a statistic of the order of an unweighted user's rows.

    It is computed from the tie blocks that hold positives.
    """
    last = len(above)
    if kind == CONSTANT:
        return 1.0 if last > 0 and tied[0] == n_rows else 0.0
    if kind == TWICE_WON:
        return np.float64(twice_of_events(above, tied, n_rows))
    negatives = n_rows - n_rel
    value = 0.0
    e = 0
    while e < last:
        stop = e + 1
        while stop < last and above[stop] == above[e]:
            stop += 1
        hits, c = e, stop - e
        others = above[e] - hits
        more = tied[e] - c
        if kind == KOLMOGOROV:
            if negatives > 0:
                total, rest = np.float64(n_rel), np.float64(negatives)
                value = max(value, distance(total, rest, hits, others))
                value = max(value, distance(total, rest, hits + c, others + more))
        else:
            value += area_of_run(kind, np.float64(hits), np.float64(others), np.float64(c), np.float64(more))
        e = stop
    return value


@njit
def twice_of_events(above, tied, n_rows):
    """Return twice the pairs won by the positives: the rows below each and half of those that share its score."""
    lost = np.int64(0)
    for e in range(len(above)):
        lost += 2 * np.int64(above[e]) + np.int64(tied[e])
    n = np.int64(len(above))
    # pairs within the class and each row with itself: n^2 in all, whatever the scores
    return 2 * n * n_rows - lost - n * n


@njit
def one_score(order, scores, weights):
    """Return 1 if all rows with weight have the same score, else 0."""
    first = -1
    for j in range(len(order)):
        if weight_of(weights, order[j]) > 0.0:
            if first >= 0 and scores[order[j]] != scores[order[first]]:
                return 0.0
            first = j
    return 1.0 if first >= 0 else 0.0


@njit
def statistic_of_order(kind, parameter, order, labels, scores, weights, bar):
    """Return a statistic of the order of a user's sorted rows, with weights."""
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
                # each negative loses to the positives above it, and half to those of its block
                value += more_others * (2.0 * hits + more_hits)
            elif kind == KOLMOGOROV:
                if positives > 0.0 and negatives > 0.0:
                    value = max(value, distance(positives, negatives, hits + more_hits, others + more_others))
            else:
                value += area_of_run(kind, hits, others, more_hits, more_others)
            hits += more_hits
            others += more_others
            start = i
    return value


@njit
def sum_quantile_gaps(parameter, order, labels, scores, weights, bar):
    """Return a norm of the gaps of bins, by default the sum over bins of |sum of w (s - y)|.

    Bins take rows from the smallest score up; tied rows are in the bin of the first.
    """
    norm, bins = np.int64(parameter) >> BIN_BITS, np.int64(parameter) & ((1 << BIN_BITS) - 1)
    n = len(order)
    total = NO_SUM
    for j in range(n):
        total = added(total, weight_of(weights, order[j]))
    value, gap, weight, before = 0.0, 0.0, 0.0, NO_SUM
    current = np.int64(0)
    stop = n
    while stop > 0:
        start = stop - 1
        while start > 0 and scores[order[start - 1]] == scores[order[stop - 1]]:
            start -= 1
        own = bin_of_weight(before, total, bins)
        if own != current:
            value = joined_gaps(norm, value, gap, weight)
            gap, weight = 0.0, 0.0
            current = own
        for j in range(start, stop):
            row = order[j]
            gap += weight_of(weights, row) * (np.float64(scores[row]) - (1.0 if labels[row] >= bar else 0.0))
            weight += weight_of(weights, row)
            before = added(before, weight_of(weights, row))
        stop = start
    return finished_gaps(norm, joined_gaps(norm, value, gap, weight), total[0])


@njit
def bin_of_weight(before, total, bins):
    """Return the integer part of before * bins / total, at most bins - 1.

    Both are sums in parts, so that rounding never decides the bin.
    """
    if not 0.0 < total[0] < math.inf:
        return np.int64(0)
    nearest = np.int64(math.floor(before[0] / total[0] * np.float64(bins) + 0.5))
    if nearest > 0 and not reaches(before, total, bins, nearest):
        nearest -= 1
    return min(nearest, bins - 1)


@njit
def reaches(before, total, bins, cut):
    """Return whether before * bins >= total * cut."""
    exponent = -math.frexp(total[0])[1]
    gap = NO_SUM
    for at in range(len(before)):
        gap = add_product(gap, math.ldexp(before[at], exponent), np.float64(bins))
        gap = add_product(gap, math.ldexp(total[at], exponent), -np.float64(cut))
    return gap[0] + (gap[1] + gap[2]) >= 0.0


@njit
def asks_order(condition, log):
    """Return whether a condition has statistics that follow from the order of rows."""
    for f in range(len(log.statistics)):
        kind = log.statistics[f, 0]
        if FIRST_ORDER_STATISTIC <= kind <= LAST_ORDER_STATISTIC and log.statistics[f, 2] == condition:
            return True
    return False


@njit
def order_statistics(condition, log, weights, ranked, memory, out, first, last):
    """Write the statistics of users first..last-1 that follow from the order of rows."""
    bar = log.bars[condition]
    for u in range(first, last):
        span = slice(log.indptr[u], log.indptr[u + 1])
        labels, scores, bits = log.labels[span], log.scores[span], log.bits[span]
        n_rows, won, copy = len(scores), np.int64(-1), -1
        positives = positives_of(condition, log, out, u)
        is_short = min(positives, n_rows - positives) <= MAX_COUNTED and n_rows <= MAX_ROWS
        if ranked is None and is_short and not log.walk:
            won = twice_won(labels, scores, bar, positives, memory.chosen, memory.padded)
        elif log.walk or ranked is None:
            copy = sort_rows(labels, scores, bits, labels, EXPECTED, memory.keys, memory.order, memory.marks)
        for f in range(len(log.statistics)):
            kind, parameter = log.statistics[f, 0], log.parameters[log.statistics[f, 1]]
            if not FIRST_ORDER_STATISTIC <= kind <= LAST_ORDER_STATISTIC or log.statistics[f, 2] != condition:
                continue
            if copy >= 0:
                order = memory.order[copy, :n_rows]
                if weights is None and kind == TWICE_WON:
                    value = float(twice_won_in_order(order, labels, scores, bar))
                elif weights is None:
                    value = statistic_of_order(kind, parameter, order, labels, scores, None, bar)
                else:
                    value = statistic_of_order(kind, parameter, order, labels, scores, weights[span], bar)
            elif ranked is not None:
                above, tied = kept_blocks(labels, bar, positives, out, u, memory.places)
                value = statistic_of_events(kind, above, tied, n_rows, positives)
            elif kind == TWICE_WON:
                value = np.float64(won)
            else:
                value = 1.0 if n_rows > 0 and all_equal(scores) else 0.0
            out.facts[f, u] = value


@njit(forceinline=True)
def kept_blocks(labels, bar, positives, out, u, places):
    """Return the tie blocks of the events of a user that are positive under a condition."""
    start, count = out.spans[FIRST_EVENT, u - out.first], out.spans[COUNT, u - out.first]
    if positives == count:
        return out.above[start : start + count], out.tied[start : start + count]
    kept = 0
    for e in range(start, start + count):
        if labels[out.sources[e]] >= bar:
            places[1, kept], places[2, kept] = out.above[e], out.tied[e]
            kept += 1
    return places[1, :kept], places[2, :kept]


@njit(forceinline=True)
def positives_of(condition, log, out, u):
    """Return the number of a user's positive rows; it is known if all metrics share one condition."""
    if len(log.bars) == 2:
        return out.spans[RELEVANT, u - out.first]
    return count_positives(log.labels[log.indptr[u] : log.indptr[u + 1]], log.bars[condition])


@njit
def row_statistics(condition, log, weights, out, first, last):
    """Write the statistics of users first..last-1 that are sums over their rows."""
    for f in range(len(log.statistics)):
        kind, parameter = log.statistics[f, 0], log.parameters[log.statistics[f, 1]]
        if FIRST_ORDER_STATISTIC <= kind <= LAST_ORDER_STATISTIC or kind == SQUARES or kind == ABSOLUTES:
            continue
        if log.statistics[f, 2] != condition:
            continue
        facts = out.facts[f]
        if weights is None:
            if kind == WEIGHTS:
                for u in range(first, last):
                    facts[u] = log.indptr[u + 1] - log.indptr[u]
                continue
        for u in range(first, last):
            span = slice(log.indptr[u], log.indptr[u + 1])
            labels, scores = log.labels[span], log.scores[span]
            if weights is None:
                if kind == POSITIVES:
                    facts[u] = positives_of(condition, log, out, u)
                elif kind == NEGATIVES:
                    facts[u] = len(scores) - positives_of(condition, log, out, u)
                else:
                    facts[u] = statistic_of_rows(kind, parameter, labels, scores, None, log.bars[condition])
            else:
                facts[u] = statistic_of_rows(kind, parameter, labels, scores, weights[span], log.bars[condition])

"""Expected values over all orders of tied items, in closed form (McSherry & Najork 2008; blocks of equal scores).

A block has `above` rows before it, and `tied` rows, some of them relevant: consecutive events with the same `above`.
An event is a hit of a user, in rank order, the relevant ones of a block first; event 0 opens the user. A block is
whole within a cut-off k if above + tied <= k. A block that k cuts has min(tied, k - above) ranks, its slots, within k.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import CASCADE, FIRST, GAIN_WEIGHT, PRECISION, READ_MEAN, START
from .gains import map_gain
from .jit import njit

Array = np.ndarray[Any, Any]


class Ties(NamedTuple):
    """The tie blocks of a block of users."""

    above: Array  # int32 (n_events,): rows with a higher score
    tied: Array  # int32 (n_events,): rows with this score
    users: Array  # int32 (BLOCK,): tied users (the order of ties matters for them), then any values
    cuts: Array  # int32 (n_cutoffs, 3, BLOCK): for each tied user with a block that a cut-off cuts, the user, the first
    # event of the block and its relevant rows
    n_cuts: Array  # int64 (n_cutoffs,): how many of these users there are
    products: Array  # float64 (2, longest row + 1): working memory of `cascade_in_slots`


class Series(NamedTuple):
    """A running sum over the hits of each user, with the tables of its terms."""

    kind: int
    weights: Array  # float64 (longest rank + 1,): weight of rank r at [r], 0 at [0]
    cumulative: Array  # float64 (longest ideal + 1,): sums of these
    gain_map: Array  # float64 (2,): kind, parameter
    tables: Array  # float64 (n_gain_tables, longest table)
    deepest: int  # the largest cut-off at which it is read


class Cut(NamedTuple):
    """The tie blocks that a cut-off cuts, at most one per user."""

    blocks: Array  # int32 (3, BLOCK): the user, the first event of the block, its relevant rows
    cutoff: int
    n: int


@njit
def block_end(above, e, end):
    """Return one past the last event of the block of event e."""
    stop = e + 1
    while stop < end and above[stop] == above[e]:
        stop += 1
    return stop


@njit
def find_tied_users(bounds, gains, graded, depth, ties, n):
    """Write users with a block in which order matters: its rows are not all relevant with the same gain.

    Metrics do not read the order of blocks beyond `depth` ranks.
    """
    found = 0
    for i in range(n):
        e = bounds[START, i] + 1
        end = bounds[START, i + 1]
        while e < end and ties.above[e] < depth:
            stop = e + 1
            if ties.tied[e] > 1:
                stop = block_end(ties.above, e, end)
                matters = stop - e < ties.tied[e]
                if graded:
                    for j in range(e + 1, stop):
                        matters = matters or gains[j] != gains[e]
                if matters:
                    ties.users[found] = i
                    found += 1
                    break
            e = stop
    return found


@njit
def is_even(first, stop, tied, gains, gained):
    """Return whether the order of a block does not matter: its rows are all relevant, with the same gain if it counts.

    Sums then add its rows one by one, as those of users without ties do: with the same bits.
    """
    if stop - first < tied:
        return False
    if gained:
        for e in range(first + 1, stop):
            if gains[e] != gains[first]:
                return False
    return True


@njit
def precision_in_slots(above, tied, slots, c, hits_above, harmonic):
    """Return the part of a block's expected sum of precisions that its first `slots` ranks hold."""
    if tied == 1:
        return (hits_above + 1.0) / (above + 1.0)
    share = (c - 1.0) / (tied - 1.0)
    spread = harmonic[np.uint64(above + slots)] - harmonic[np.uint64(above)]
    return c / tied * (slots * share + (1.0 + hits_above - (above + 1.0) * share) * spread)


@njit
def weight_in_slots(above, tied, slots, total, cumulative):
    """Return the expected gain x weight that the first `slots` ranks of a block hold.

    `total` is the gain of all its rows.
    """
    return total / tied * (cumulative[np.uint64(above + slots)] - cumulative[np.uint64(above)])


@njit
def first_in_slots(above, tied, slots, c, weights, cumulative):
    """Return the expected weight of the first relevant rank of a block, if within the first `slots`."""
    if c == tied:
        return weights[np.uint64(above + 1)]
    if c == 1:  # every rank is as likely as the next
        return (cumulative[np.uint64(above + slots)] - cumulative[np.uint64(above)]) / tied
    chance = c / tied
    value = 0.0
    for j in range(1, min(tied - c + 1, slots) + 1):
        value += chance * weights[np.uint64(above + j)]
        chance *= (tied - j - c + 1.0) / (tied - j) if tied > j else 0.0
    return value


@njit
def cascade_in_slots(above, tied, slots, first, stop, gains, series, products):
    """Return the expected reciprocal rank at which a user who reaches the block stops within its first `slots` ranks.

    Of the rows so far in random order, goes_on[m] is the mean probability to go on after m of them, a mean elementary
    symmetric polynomial, and stops[m] that of stopping at the next one. Rows without gain come first, then the others
    one by one. All terms are at least 0, so no digits cancel.
    """
    goes_on, stops = products[0], products[1]
    for m in range(slots):
        goes_on[m] = 1.0
        stops[m] = 0.0
    size = tied - (stop - first)
    for e in range(first, stop):
        gain = map_gain(gains[e], series.gain_map, series.tables)
        rest = 1.0 - gain
        size += 1
        if size < slots:
            goes_on[size] = goes_on[size - 1] * rest
        for m in range(min(slots, size) - 1, 0, -1):
            stops[m] = (stops[m] * (size - 1 - m) + stops[m - 1] * m * rest + goes_on[m] * gain) / size
            goes_on[m] = goes_on[m] * ((size - m) / size) + goes_on[m - 1] * (m / size) * rest
        stops[0] = (stops[0] * (size - 1) + gain) / size
    value = 0.0
    for m in range(slots):
        value += stops[m] * series.weights[np.uint64(above + m + 1)]
    return value


@njit
def find_cuts(cutoffs, bounds, counts, n_tied, ties):
    """Write the blocks of tied users that each cut-off cuts.

    For other users, the hits within the cut-off end with a whole block, or there are none.
    """
    for c in range(len(cutoffs)):
        users, first, relevant = ties.cuts[c, 0], ties.cuts[c, 1], ties.cuts[c, 2]
        found = 0
        for at in range(n_tied):
            i = ties.users[at]
            e = bounds[START, i] + counts[c, i]  # the last event within the cut-off
            users[found] = i
            cut = np.int64(ties.above[e]) + np.int64(ties.tied[e]) > cutoffs[c]
            found += cut & (counts[c, i] > 0)
        ties.n_cuts[c] = found
        for at in range(found):
            i = users[at]
            start = bounds[START, i]
            e = start + counts[c, i]
            stop = block_end(ties.above, e, bounds[START, i + 1])
            while e - 1 > start and ties.above[e - 1] == ties.above[e]:
                e -= 1
            first[at] = e
            relevant[at] = stop - e


@njit(forceinline=True)
def gain_of_block(first, stop, gains, gained, series):
    """Return the gain of a block's relevant rows, or their number if gains do not count."""
    if not gained:
        return np.float64(stop - first)
    total = 0.0
    for e in range(first, stop):
        total += map_gain(gains[e], series.gain_map, series.tables)
    return total


@njit
def expected_weights(series, bounds, n_tied, ties, gains, gained, sums):
    """Write running sums of gain x weight of tied users.

    The last event of a block takes the expected sum up to its end.
    """
    last = np.int64(len(series.cumulative) - 1)  # past the largest cut-off nothing is read
    for at in range(n_tied):
        i = ties.users[at]
        e, end = bounds[START, i] + 1, bounds[START, i + 1]
        total = 0.0
        while e < end:
            above, tied = np.int64(ties.above[e]), np.int64(ties.tied[e])
            stop = block_end(ties.above, e, end)
            slots = min(tied, last - above)
            if is_even(e, stop, tied, gains, gained):
                for j in range(slots):
                    gain = map_gain(gains[e], series.gain_map, series.tables) if gained else 1.0
                    total += gain * series.weights[np.uint64(above + 1 + j)]
                    sums[e + j] = total
            elif slots > 0:
                total += weight_in_slots(
                    above, tied, slots, gain_of_block(e, stop, gains, gained, series), series.cumulative
                )
            sums[stop - 1] = total
            e = stop


@njit
def read_expected_weights(series, cut, ties, gains, gained, sums, out):
    """Read the expected sum of gain x weight within a cut-off, for users with a cut block."""
    for at in range(cut.n):
        first = np.int64(cut.blocks[1, at])
        above, tied = np.int64(ties.above[first]), np.int64(ties.tied[first])
        stop, slots = first + cut.blocks[2, at], cut.cutoff - above
        if is_even(first, stop, tied, gains, gained):
            out[cut.blocks[0, at]] = sums[first + slots - 1]
            continue
        gain = gain_of_block(first, stop, gains, gained, series)
        out[cut.blocks[0, at]] = sums[first - 1] + weight_in_slots(above, tied, slots, gain, series.cumulative)


@njit
def expected_precisions(bounds, n_tied, ties, harmonic, sums):
    """Write running sums of precision at hits of tied users.

    The last event of a block takes the expected sum up to its end.
    """
    last = np.int64(len(harmonic) - 1)
    for at in range(n_tied):
        i = ties.users[at]
        start, end = bounds[START, i], bounds[START, i + 1]
        e = start + 1
        total = 0.0
        while e < end:
            above, tied = np.int64(ties.above[e]), np.int64(ties.tied[e])
            stop = block_end(ties.above, e, end)
            slots = min(tied, last - above)
            hits_above = np.float64(e - start - 1)
            if stop - e == tied:  # the order does not matter
                for j in range(slots):
                    total += (hits_above + 1.0 + j) / (above + 1.0 + j)
                    sums[e + j] = total
            elif slots > 0:
                total += precision_in_slots(above, tied, slots, np.float64(stop - e), hits_above, harmonic)
            sums[stop - 1] = total
            e = stop


@njit
def read_expected_precisions(cut, bounds, ties, harmonic, sums, out):
    """Read the expected sum of precisions at hits within a cut-off, for users with a cut block."""
    for at in range(cut.n):
        i, first = cut.blocks[0, at], np.int64(cut.blocks[1, at])
        above, tied = np.int64(ties.above[first]), np.int64(ties.tied[first])
        c, hits_above = np.float64(cut.blocks[2, at]), np.float64(first - bounds[START, i] - 1)
        if cut.blocks[2, at] == tied:  # the order does not matter
            out[i] = sums[first + cut.cutoff - above - 1]
            continue
        out[i] = sums[first - 1] + precision_in_slots(above, tied, cut.cutoff - above, c, hits_above, harmonic)


@njit
def expected_first(series, bounds, n_tied, ties, sums):
    """Write expected weights of the rank of the first hit of tied users; only their first block matters."""
    last = np.int64(len(series.cumulative) - 1)  # past the largest cut-off nothing is read
    for at in range(n_tied):
        i = ties.users[at]
        e, end = bounds[START, i] + 1, bounds[START, i + 1]
        above, tied = np.int64(ties.above[e]), np.int64(ties.tied[e])
        if above < last:
            c = block_end(ties.above, e, end) - e
            value = first_in_slots(above, tied, min(tied, last - above), c, series.weights, series.cumulative)
            for j in range(e, end):
                sums[j] = value


@njit
def read_expected_first(series, cut, bounds, ties, out):
    """Read the expected weight of the rank of the first hit within a cut-off.

    This applies to users whose first block the cut-off cuts.
    """
    for at in range(cut.n):
        i, first = cut.blocks[0, at], np.int64(cut.blocks[1, at])
        if first == bounds[START, i] + 1:
            above, tied = np.int64(ties.above[first]), np.int64(ties.tied[first])
            out[i] = first_in_slots(
                above, tied, cut.cutoff - above, np.int64(cut.blocks[2, at]), series.weights, series.cumulative
            )


@njit
def expected_cascade(series, bounds, n_tied, ties, gains, sums, ends):
    """Write running expected reciprocal ranks at which a user stops.

    `ends` takes the chance to get past each block.
    """
    for at in range(n_tied):
        i = ties.users[at]
        start, end = bounds[START, i], bounds[START, i + 1]
        e = start + 1
        total = 0.0
        survival = 1.0
        ends[start] = survival
        while e < end:
            above, tied = np.int64(ties.above[e]), np.int64(ties.tied[e])
            stop = block_end(ties.above, e, end)
            slots = min(tied, series.deepest - above)
            even = is_even(e, stop, tied, gains, True)  # noqa: FBT003
            if not even and slots > 0:
                total += survival * cascade_in_slots(above, tied, slots, e, stop, gains, series, ties.products)
            for j in range(e, stop):
                gain = map_gain(gains[j], series.gain_map, series.tables)
                if even and j - e < slots:
                    total += survival * gain * series.weights[np.uint64(above + 1 + j - e)]
                    sums[j] = total
                survival *= 1.0 - gain
            sums[stop - 1] = total
            ends[stop - 1] = survival
            e = stop


@njit
def read_expected_cascade(series, cut, ties, gains, sums, ends, out):
    """Read the expected reciprocal rank at which a user stops within a cut-off, for users with a cut block."""
    for at in range(cut.n):
        first = np.int64(cut.blocks[1, at])
        above, tied = np.int64(ties.above[first]), np.int64(ties.tied[first])
        stop, slots = first + cut.blocks[2, at], cut.cutoff - above
        if is_even(first, stop, tied, gains, True):  # noqa: FBT003
            out[cut.blocks[0, at]] = sums[first + slots - 1]
            continue
        out[cut.blocks[0, at]] = sums[first - 1] + ends[first - 1] * cascade_in_slots(
            above, tied, slots, first, stop, gains, series, ties.products
        )


@njit
def expected_series(series, bounds, n_tied, ties, gains, graded, sums):
    """Write the running sums of one series for tied users; sums[0] takes them, sums[2] is working memory."""
    if series.kind == PRECISION:
        expected_precisions(bounds, n_tied, ties, series.cumulative, sums[0])
    elif series.kind == CASCADE:
        if graded:
            expected_cascade(series, bounds, n_tied, ties, gains, sums[0], sums[2])
    elif series.kind == FIRST:
        expected_first(series, bounds, n_tied, ties, sums[0])
    else:
        expected_weights(series, bounds, n_tied, ties, gains, graded and series.kind == GAIN_WEIGHT, sums[0])


@njit
def read_expected_series(series, cut, bounds, ties, gains, graded, sums, out):
    """Read the expected sum of one series within a cut-off, for users with a cut block; keep others."""
    if series.kind == PRECISION:
        read_expected_precisions(cut, bounds, ties, series.cumulative, sums[0], out)
    elif series.kind == FIRST:
        read_expected_first(series, cut, bounds, ties, out)
    elif series.kind == CASCADE:
        if graded:
            read_expected_cascade(series, cut, ties, gains, sums[0], sums[2], out)
    else:
        read_expected_weights(series, cut, ties, gains, graded and series.kind == GAIN_WEIGHT, sums[0], out)


@njit
def read_expected_hits(cut, bounds, ties, out):
    """Read the expected hits within a cut-off, for users with a cut block; keep others."""
    for at in range(cut.n):
        i, first = cut.blocks[0, at], np.int64(cut.blocks[1, at])
        slots = cut.cutoff - np.int64(ties.above[first])
        out[i] = (first - bounds[START, i] - 1) + cut.blocks[2, at] * slots / ties.tied[first]


@njit
def read_expected_any(cut, bounds, ties, out):
    """Read the chance of a hit within a cut-off, for users whose first block it cuts; keep others."""
    for at in range(cut.n):
        i, first = cut.blocks[0, at], np.int64(cut.blocks[1, at])
        if first == bounds[START, i] + 1:
            tied = np.int64(ties.tied[first])
            slots = cut.cutoff - np.int64(ties.above[first])
            miss = 1.0
            for j in range(cut.blocks[2, at]):
                miss *= max(np.int64(0), tied - slots - j) / (tied - j)
            out[i] = 1.0 - miss


@njit
def read_expected_hits_at(cutoff, bounds, limits, n_tied, ties, out):
    """Read the expected hits within the first limits[i] ranks and within a cut-off, for tied users."""
    for at in range(n_tied):
        i = ties.users[at]
        e, end = bounds[START, i] + 1, bounds[START, i + 1]
        limit = min(np.int64(limits[i]), cutoff)
        hits = 0.0
        while e < end and ties.above[e] < limit:
            stop = block_end(ties.above, e, end)
            tied = np.int64(ties.tied[e])
            hits += (stop - e) * min(tied, limit - ties.above[e]) / tied
            e = stop
        out[i] = hits


@njit
def share_of_pairs(hits, listed, ranks):
    """Return the share of the pairs (hit, other listed item) with the hit above; hits have this sum of ranks."""
    pairs = hits * (listed - hits)
    above = ranks - hits * (hits + 1) / 2  # the j-th hit has as many other items above it as its rank is above j
    return (pairs - above) / pairs if pairs > 0 else 0.0


@njit
def read_expected_over_hits(code, cut, bounds, ties, harmonic, sums, out):
    """Read the expected value of a function of the hits within a cut-off, for users with a cut block; keep others."""
    for at in range(cut.n):
        i, first = cut.blocks[0, at], np.int64(cut.blocks[1, at])
        above, tied, c = np.int64(ties.above[first]), np.int64(ties.tied[first]), np.int64(cut.blocks[2, at])
        hits_above, slots = first - bounds[START, i] - 1, cut.cutoff - above
        if code == READ_MEAN and c == tied:  # the order does not matter
            out[i] = sums[first + slots - 1] / (hits_above + slots)
            continue
        out[i] = mean_over_hits(code, (above, tied, slots, c), hits_above, sums[first - 1], harmonic)


@njit
def value_with_hits(code, x, above, slots, hits_above, before, harmonic):
    """Return the mean of a value over orders with x hits in the slots of a block."""
    if code != READ_MEAN:
        return share_of_pairs(hits_above + x, above + slots, before + x * (above + (slots + 1) / 2))
    if hits_above + x == 0:
        return 0.0
    inside = 0.0
    if x > 0:
        inside = precision_in_slots(above, slots, slots, np.float64(x), np.float64(hits_above), harmonic)
    return (before + inside) / (hits_above + x)


@njit
def mean_over_hits(code, block, hits_above, before, harmonic):
    """Return the mean of a value over the number x of hits in the slots of a block: (above, tied, slots, hits).

    x has the hypergeometric distribution.
    """
    above, tied, slots, c = block
    low, high = max(np.int64(0), slots - (tied - c)), min(c, slots)
    mode = min(max(((slots + 1) * (c + 1)) // (tied + 2), low), high)
    value = 0.0
    norm = 0.0
    for side in range(2):  # from the mode downwards, then upwards: chances relative to that of the mode
        chance = 1.0
        x = mode
        while low <= x <= high and chance > 0.0:
            if x != mode or side == 0:
                norm += chance
                value += chance * value_with_hits(code, x, above, slots, hits_above, before, harmonic)
            if side == 0:
                chance *= (x * (tied - c - slots + x)) / ((c - x + 1.0) * (slots - x + 1.0))
                x -= 1
            else:
                chance *= ((c - x) * np.float64(slots - x)) / ((x + 1.0) * (tied - c - slots + x + 1.0))
                x += 1
    return value / norm

"""Ranks of items by the scores of a model over a whole catalogue, without sorting it.

A row holds the scores of one user for all items. Items that are not listed for the user get NaN, which compares false
with everything. Callers pass a copy of the scores: the kernels write to it. A peak is the highest score of a group of
items; groups share no item, so a score that n peaks reach is one that n items reach.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .codes import ID_ASC
from .draws import Draw, draw_uniform, draw_weighted, random_start
from .jit import njit
from .list_order import sort_positions

__all__ = ["Draw", "FirstItems", "ItemRows", "Ranked", "ScoredBlock", "Sides", "visit_block"]

Array = np.ndarray[Any, Any]
CHUNK = 64  # scores compared at a time with the threshold of a selection
COUNTED_AT_ONCE = 2048  # scores that stay in the first cache while all relevant items are counted
FEW_WANTED = 2  # up to this many relevant items are counted without looking at peaks
PEAKS_PER_RANK = 4  # at most: the buffers of the first items hold them


class ItemRows(NamedTuple):
    """Items of users as columns of the scores, -1 for items that the model lacks."""

    columns: Array  # int32 (n_rows,)
    indptr: Array  # int64 (n_users + 1,)


class ScoredBlock(NamedTuple):
    """The scores of a block of users."""

    scores: Array  # float32 or float64 (n, n_items)
    users: Array  # int64 (n,): their users among the rows of items


class Ranked(NamedTuple):
    """What is found for users and relevant items."""

    above: Array  # int32 (n_relevant,): items with a higher score; -1 for a relevant item that is not listed
    tied: Array  # int32 (n_relevant,): items with the same score, itself included
    before: Array  # int32 (n_relevant,): tied items in columns before its own
    lengths: Array  # int64 (n_users,): listed items
    excluded: Array  # int64 (n_users,): items that were not listed because they are excluded
    others: Array  # int64 (n_users,): items outside the truth that could be drawn; 0 if none are drawn


class FirstItems(NamedTuple):
    """The first items of users, the best first."""

    columns: Array  # int32 (n_users, k)
    scores: Array  # as the scores (n_users, k)
    lengths: Array  # int64 (n_users,): how many there are


class Sides(NamedTuple):
    """Items of users."""

    relevant: ItemRows
    exclude: ItemRows
    candidates: ItemRows  # all that may be listed


class RowMemory(NamedTuple):
    """Working memory for the row of one user."""

    wanted: Array  # as the scores (n_items,): of relevant items
    at: Array  # int64 (n_items,): their rows
    above: Array  # int64 (n_items,)
    tied: Array  # int64 (n_items,)
    peaks: Array  # as the scores (a multiple of CHUNK,): of a depth; (0,) if it is not far below the number of items
    first_peaks: Array  # as `peaks`, of k
    top: Array  # as the scores (4 k + CHUNK,)
    items: Array  # int64 (4 k + CHUNK,): columns of these
    pool: Array  # int64 (n_items + drawn items,): columns that may be drawn; (0,) if none are drawn
    tree: Array  # int64 (n_items + 1,): of weights; (1,) without any


@njit
def count_nan(row):
    """Count the scores that are NaN."""
    count = np.int32(0)
    for i in range(len(row)):
        count = np.int32(count + np.int32(row[i] != row[i]))
    return count


@njit
def drop_items(row, columns, first, last):
    """Remove items from a row; return how many were listed."""
    dropped = 0
    for j in range(first, last):
        column = columns[j]
        if column >= 0 and row[column] == row[column]:
            row[column] = np.nan
            dropped += 1
    return dropped


@njit
def take_out(row, columns, first, last, spare, places):
    """Move listed items of a row to spare memory, each once; return how many."""
    n = 0
    for j in range(first, last):
        column = columns[j]
        if column >= 0 and row[column] == row[column]:
            spare[n] = row[column]
            places[n] = column
            n += 1
            row[column] = np.nan
    return n


@njit
def put_back(row, spare, places, n):
    """List only the first n items in spare memory."""
    for i in range(len(row)):
        row[i] = np.nan
    for i in range(n):
        row[places[i]] = spare[i]


@njit
def keep_items(row, columns, first, last, spare, places):
    """Remove all other items from a row; return how many are left."""
    kept = take_out(row, columns, first, last, spare, places)
    put_back(row, spare, places, kept)
    return kept


@njit
def keep_sample(row, user, relevant, draw, memory, ranked):
    """Remove all items from a row but those of the truth and a sample of the others; return how many are left."""
    spare, places, pool = memory.wanted, memory.at, memory.pool
    kept = take_out(row, relevant.columns, relevant.indptr[user], relevant.indptr[user + 1], spare, places)
    found = 0
    for i in range(len(draw.columns)):
        column = draw.columns[i]
        if row[column] == row[column] and (len(draw.weights) == 0 or draw.weights[column] > 0):
            pool[found] = column
            found += 1
    n, start = min(draw.n, found), random_start(draw.seed, draw.rows[user])
    if len(draw.weights) == 0:
        draw_uniform(pool, found, n, start)
    else:
        draw_weighted(pool, found, n, draw.weights, memory.tree, start)
    for j in range(n):
        spare[kept] = row[pool[j]]
        places[kept] = pool[j]
        kept += 1
    put_back(row, spare, places, kept)
    ranked.others[user] = found
    return kept


@njit
def list_items(row, user, sides, draw, memory, ranked):
    """Remove the items that are not listed for a user, and count."""
    candidates, exclude = sides.candidates, sides.exclude
    listed = len(row)
    if len(candidates.indptr) > 1:
        first, last = candidates.indptr[user], candidates.indptr[user + 1]
        listed = keep_items(row, candidates.columns, first, last, memory.wanted, memory.at)
    dropped = 0
    if len(exclude.indptr) > 1:
        dropped = drop_items(row, exclude.columns, exclude.indptr[user], exclude.indptr[user + 1])
    listed -= dropped
    if draw.n > 0:
        listed = keep_sample(row, user, sides.relevant, draw, memory, ranked)
    ranked.lengths[user] = listed
    ranked.excluded[user] = dropped


@njit
def comes_first(score, item, other_score, other_item):
    """Return whether an item comes before another: a higher score, or the same score and a lower column."""
    return score > other_score or (score == other_score and item < other_item)


@njit
def select(scores, items, n, k):
    """Move the first k of n items to the front, in any order, by quickselect; return the lowest score of these."""
    low, high = 0, n - 1
    while low < high:
        # anywhere in between: in the middle, scores that fall and then rise would have their lowest one
        pivot = low + ((((low + 31 * high) * 40503 & 0xFFFF) * (high - low)) >> 16)
        score, item = scores[pivot], items[pivot]
        i, j = low, high
        while i <= j:
            while comes_first(scores[i], items[i], score, item):
                i += 1
            while comes_first(score, item, scores[j], items[j]):
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                items[i], items[j] = items[j], items[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            break
    lowest = scores[0]
    for i in range(1, k):
        lowest = min(lowest, scores[i])
    return lowest


@njit
def count_peaks(n_ranks, n_items):
    """Return how many peaks tell what is beyond the first ranks; 0 if they would tell too little."""
    n = -(-PEAKS_PER_RANK * n_ranks // CHUNK) * CHUNK
    return n if 2 * n <= n_items else 0


@njit
def find_peaks(row, peaks):
    """Find the highest score of the items in each column modulo the number of peaks."""
    n = len(peaks)
    peaks[:] = -np.inf
    for first in range(0, len(row), n):
        part = row[first : first + n]
        for i in range(len(part)):
            peaks[i] = max(peaks[i], part[i])  # NaN is not above


@njit
def bound_of_peaks(row, k, peaks, scores, items):
    """Return a score that at least k items reach, or -inf."""
    find_peaks(row, peaks)
    for i in range(len(peaks)):
        scores[i] = peaks[i]
        items[i] = i
    return select(scores, items, len(peaks), k)


@njit
def gather_top(row, k, peaks, scores, items):
    """Write the first k listed items of a row to the front of the buffers, in any order; return how many there are.

    The buffers hold 4 k + CHUNK items. Items that reach a bound are added without branches. Each time the buffers are
    full, the bound rises above the score of the k-th item so far: as columns ascend, later items of that score come
    after it.
    """
    found = 0
    bound = bound_of_peaks(row, k, peaks, scores, items) if len(peaks) > 0 else row.dtype.type(-np.inf)
    for at in range(0, len(row), CHUNK):
        part = row[at : at + CHUNK]
        count = np.int32(0)
        for i in range(len(part)):
            count = np.int32(count + np.int32(part[i] >= bound))
        if count > 0:
            for i in range(len(part)):
                scores[found] = part[i]
                items[found] = at + i
                found += int(part[i] >= bound)
            if found >= len(scores) - CHUNK:
                bound = np.nextafter(select(scores, items, found, k), row.dtype.type(np.inf))
                found = k
    if found > k:
        select(scores, items, found, k)
        found = k
    return found


@njit
def count_relevant(row, wanted, n, above, tied):
    """Count the items above each wanted score, and those with it."""
    for j in range(n):
        above[j] = 0
        tied[j] = 0
    for first in range(0, len(row), COUNTED_AT_ONCE):
        part = row[first : first + COUNTED_AT_ONCE]
        for j in range(n):
            score = wanted[j]
            higher, same = np.int32(0), np.int32(0)
            for i in range(len(part)):
                higher = np.int32(higher + np.int32(part[i] > score))
                same = np.int32(same + np.int32(part[i] == score))
            above[j] += higher
            tied[j] += same


@njit
def count_before(row, column):
    """Count the items with the score of an item that come before it."""
    before = 0
    for i in range(column):
        before += row[i] == row[column]
    return before


@njit
def read_relevant(row, columns, first, last, wanted, at, above):
    """Read the scores of relevant items once each; return how many are listed. Others get -1."""
    n = 0
    for j in range(first, last):
        column = columns[j]
        above[j] = -1
        if column >= 0 and row[column] == row[column]:
            wanted[n] = row[column]
            at[n] = j
            above[j] = 0
            n += 1
            row[column] = np.nan  # so that a second copy is not listed
    for i in range(n):
        row[columns[at[i]]] = wanted[i]
    return n


@njit
def count_above(scores, score):
    """Count the scores above a score."""
    count = np.int32(0)
    for i in range(len(scores)):
        count = np.int32(count + np.int32(scores[i] > score))
    return count


@njit
def leave_out_low(wanted, at, n, peaks, depth, ranked):
    """Give the relevant items that `depth` peaks are above ranks beyond `depth`; return how many remain.

    Each peak is another item, so these items have at least `depth` items above them.
    """
    kept = 0
    for i in range(n):
        if count_above(peaks, wanted[i]) < depth:
            wanted[kept] = wanted[i]
            at[kept] = at[i]
            kept += 1
        else:
            put_beyond(at[i], depth + i - kept, ranked)
    return kept


@njit
def put_beyond(row, above, ranked):
    """Give a relevant item a rank of its own, which no other item has."""
    ranked.above[row] = above
    ranked.tied[row] = 1
    ranked.before[row] = 0


@njit
def rank_relevant(row, user, relevant, depth, memory, ranked):
    """Rank the relevant items of a user. Ranks beyond `depth` only need to be beyond it, and distinct."""
    wanted, at, above, tied = memory.wanted, memory.at, memory.above, memory.tied
    first, last = relevant.indptr[user], relevant.indptr[user + 1]
    listed = n = read_relevant(row, relevant.columns, first, last, wanted, at, ranked.above)
    if n > FEW_WANTED and len(memory.peaks) > 0:
        find_peaks(row, memory.peaks)
        n = leave_out_low(wanted, at, n, memory.peaks, depth, ranked)
    count_relevant(row, wanted, n, above, tied)
    beyond = listed - n
    for j in range(n):
        if beyond > 0 and above[j] >= depth:  # its own rank may be that of an item that was left out
            put_beyond(at[j], depth + beyond, ranked)
            beyond += 1
            continue
        ranked.above[at[j]] = above[j]
        ranked.tied[at[j]] = tied[j]
        ranked.before[at[j]] = count_before(row, relevant.columns[at[j]]) if tied[j] > 1 else 0


@njit
def list_top(row, user, k, memory, first_items):
    """Write the first k items of a user, the best first; return how many there are."""
    n = gather_top(row, k, memory.first_peaks, memory.top, memory.items)
    order = memory.at
    sort_positions(order, memory.above, n, memory.top, memory.items, memory.top, ID_ASC)
    for j in range(n):
        first_items.columns[user, j] = memory.items[order[j]]
        first_items.scores[user, j] = memory.top[order[j]]
    first_items.lengths[user] = n


@njit(allocates=True)
def row_memory(scores, depth, k, draw):
    """Allocate the working memory for rows of these scores."""
    n_items, dtype = scores.shape[1], scores.dtype
    return RowMemory(
        np.empty(n_items, dtype),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(n_items, np.int64),
        np.empty(count_peaks(depth, n_items), dtype),
        np.empty(count_peaks(k, n_items), dtype),
        np.empty(4 * k + CHUNK, dtype),
        np.empty(4 * k + CHUNK, np.int64),
        np.empty(n_items + min(draw.n, n_items) if draw.n > 0 else 0, np.int64),
        np.empty(len(draw.weights) + 1, np.int64),
    )


@njit(cache=True, allocates=True)
def visit_block(block, sides, draw, depth, k, ranked, first_items):
    """Rank the relevant items of a block of users, and list the first k items, if k is above 0.

    With a draw, the relevant items are those of the truth. Return the position of a user with a NaN among the scores,
    or -1.
    """
    scores, users, memory = block.scores, block.users, row_memory(block.scores, depth, k, draw)
    for i in range(len(scores)):
        row, user = scores[i], users[i]
        if count_nan(row) > 0:
            return i
        list_items(row, user, sides, draw, memory, ranked)
        if len(sides.relevant.indptr) > 1:
            rank_relevant(row, user, sides.relevant, depth, memory, ranked)
        if k > 0:
            list_top(row, user, k, memory, first_items)
    return -1

"""Sort of rows by score, over all users: radix sort into buckets, and runs of equal scores."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.inputs.columns import SCORES, refuse_nan
from fastrec.inputs.ragged import read_only
from fastrec.kernels import sorting as kernels
from fastrec.runtime.launcher import call, launch
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
SMALL_ROWS = 1 << 17  # fewer are counted in one chunk
FEW_ROWS = 1 << 15  # fewer are sorted in one piece: they fit the L2 cache
N_BUCKETS = 256  # enough that a bucket of 100M rows fits a cache, few enough to write to all at the same time
N_WIDE_BUCKETS = 512  # of rows of 16 bytes
ROWS_PER_BUCKET = 1 << 14  # at least: each bucket takes some calls of Python
NOTHING = np.empty(0, np.uint64)
NO_CODES = np.empty(0, np.int32)
DIGIT_BITS = 31  # of weights that are added as integers


class Form(NamedTuple):
    """Layout of floats of one width, and how many leading bits name a bin: 7 or 8 after the exponent."""

    bits: Any
    infinity: int
    bin_bits: int


FORMS = {
    4: Form(np.uint32, 0x7F80_0000, 16),
    8: Form(np.uint64, 0x7FF0_0000_0000_0000, 20),
}


class Runs(NamedTuple):
    """Distinct scores, ascending, and the rows (int64) or weights (float64) of both classes at each."""

    scores: Array
    positives: Array
    negatives: Array
    positive_squares: Array  # sums of squared weights
    negative_squares: Array
    positive_rows: int
    negative_rows: int


class ScoredRows(NamedTuple):
    """Checked rows: labels 0 or 1 as int8, scores float32 or float64, weights float32, float64 or None."""

    labels: Array
    scores: Array
    weights: Array | None


# Order


class Buckets(NamedTuple):
    """Where each chunk of rows writes its share of each bucket; buckets ascend."""

    cuts: Array  # chunk c holds rows cuts[c]:cuts[c + 1]
    shift: int  # key k belongs to bucket `bucket_of[k >> shift]`
    bucket_of: Array
    places: Array  # (chunks, buckets)
    edges: Array  # bucket b fills edges[b]:edges[b + 1]
    n_below: int  # rows with a score below 0: no bucket has scores on both sides of 0

    def parts(self) -> list[slice]:
        """Return the rows of each bucket."""
        return list(itertools.starmap(slice, itertools.pairwise(self.edges.tolist())))


def plan_buckets(scores: Array, n_threads: int, n_buckets: int = N_BUCKETS) -> Buckets:
    """Return buckets of about equally many rows, given by their scores; raise InputError for a NaN."""
    form, n = FORMS[scores.itemsize], len(scores)
    few = n < FEW_ROWS
    bin_bits = 1 if few else min(form.bin_bits, n.bit_length() - 4)  # far fewer bins than rows
    shift = 8 * scores.itemsize - bin_bits
    n_chunks = 1 if n < SMALL_ROWS else n_threads
    cuts = chunks_of(n, n_chunks)
    counts, has_nan = np.zeros((n_chunks, 1 << bin_bits), np.int64), np.empty(n_chunks, np.bool_)
    given = (read_only(scores.view(form.bits)), NO_CODES, cuts, form.infinity, shift, counts, has_nan)
    launch(kernels.count_bins, n_chunks, *given, work=8 * n, n_threads=n_chunks)
    if has_nan.any():
        refuse_nan(scores, SCORES)
    total = counts.sum(axis=0)
    before = np.cumsum(total) - total
    bucket = before // max(n // n_buckets, 1 if few else ROWS_PER_BUCKET)
    middle = len(bucket) // 2
    bucket[middle:] += n + 1  # so that no bucket has scores on both sides of 0
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    shares = np.add.reduceat(counts, starts, axis=1)
    sizes = shares.sum(axis=0)
    ends = np.cumsum(sizes)
    edges = np.concatenate([[0], ends])
    return Buckets(
        cuts=cuts,
        shift=shift,
        bucket_of=np.repeat(np.arange(len(starts), dtype=np.uint16), np.diff(starts, append=len(bucket))),
        places=np.ascontiguousarray(ends - sizes + np.cumsum(shares, axis=0) - shares),
        edges=read_only(edges),
        n_below=int(edges[np.searchsorted(starts, middle)]),
    )


def chunks_of(n: int, n_chunks: int) -> Array:
    """Return where chunks of rows begin, and their number: int64 (n_chunks + 1,)."""
    return read_only(n * np.arange(n_chunks + 1) // n_chunks)


def sort_in_buckets(
    labels: Array, scores: Array, n_threads: int, payload: Array = NOTHING, values: Array = NOTHING
) -> tuple[Array, Buckets]:
    """Return checked rows, sorted by bucket, as `key << 1 | label`; raise InputError for a NaN score.

    Keys take as many bytes as scores. `payload`, if any, gets the values of rows in their order, or their numbers.
    """
    form = FORMS[scores.itemsize]
    keys = np.empty(len(scores), form.bits)
    buckets = plan_buckets(scores, n_threads, N_WIDE_BUCKETS if len(payload) else N_BUCKETS)
    n_chunks, parts = len(buckets.places), buckets.parts()
    columns = map(read_only, (scores.view(form.bits), labels.view(np.int8), NO_CODES, values))
    given = (*columns, buckets.cuts, buckets.shift, buckets.bucket_of, buckets.places, keys, payload)
    launch(kernels.scatter, n_chunks, *given, work=8 * len(keys), n_threads=n_chunks)

    def sort(at: int) -> None:
        if len(payload):
            _sort_pairs(keys[parts[at]], payload[parts[at]])
        else:
            keys[parts[at]].sort()

    run_in_threads(sort, range(len(parts)), n_threads)
    return keys, buckets


def _sort_pairs(keys: Array, payload: Array) -> None:
    """Sort keys in place, and put their payload in the same order.

    The keys of a bucket are close together, so a key less the lowest usually leaves room for its position in one
    number. Sorting numbers is several times faster than sorting positions.
    """
    room, lowest = np.uint64(len(keys).bit_length()), keys.min(initial=np.iinfo(keys.dtype).max)
    if int(keys.max(initial=lowest) - lowest) >> (64 - int(room)):
        order = np.argsort(keys)
        keys[:] = keys.take(order)
    else:
        numbered = (keys - lowest).astype(np.uint64) << room | np.arange(len(keys), dtype=np.uint64)
        numbered.sort()
        keys[:] = (numbered >> room) + lowest
        order = (numbered & ((np.uint64(1) << room) - np.uint64(1))).view(np.int64)
    payload[:] = payload.take(order)  # unlike an index, it lets other threads run


def scores_of(keys: Array, *, below: bool) -> Array:
    """Return the scores of keys without their top bit, which is 0 for scores below 0, as float64."""
    scores: Array = (~keys if below else keys).view(f"f{keys.itemsize}").astype(np.float64)
    return scores


def pairs_of_rows(labels: Array, scores: Array, n_threads: int) -> Array:
    """Return twice the ordered pairs that each checked row is in, a tied one counting half: int64 (n,)."""
    rows, pairs = np.empty(len(scores), np.uint64), np.empty(len(scores), np.int64)
    keys, buckets = sort_in_buckets(labels, scores, n_threads, rows)
    parts = buckets.parts()
    positives = np.array([np.count_nonzero(keys[part] & 1) for part in parts], np.int64)
    below, above = np.cumsum(np.diff(buckets.edges) - positives), np.cumsum(positives[::-1])[::-1]

    def write(at: int) -> None:
        own, before = keys[parts[at]], below[at - 1] if at else np.int64(0)
        given = read_only(own), read_only(rows[parts[at]]), before, above[at], pairs, np.zeros((2, 3), np.int64)
        call(kernels.write_pairs, *given, work=8 * len(own))

    run_in_threads(write, range(len(parts)), n_threads)
    return pairs


# Runs of rows without weights


def bucket_runs(keys: Array, *, below: bool) -> tuple[Array, Array, Array]:
    """Return scores, positives and negatives of the runs in one sorted bucket."""
    scores, is_last = keys >> 1, np.ones(len(keys), np.bool_)
    is_last[:-1] = scores[1:] != scores[:-1]
    ends = np.flatnonzero(is_last)
    positives = np.diff(np.cumsum(keys & 1, dtype=np.int64).take(ends), prepend=0)
    return scores_of(scores.take(ends), below=below), positives, np.diff(ends, prepend=-1) - positives


def plain_runs(scores: Array, positives: Array, negatives: Array) -> Runs:
    """Return runs of rows with weight 1."""
    return Runs(scores, positives, negatives, positives, negatives, int(positives.sum()), int(negatives.sum()))


def merged_runs(first: Runs, second: Runs) -> Runs:
    """Merge runs of ascending scores."""
    columns = [np.concatenate(both) for both in zip(first[:3], second[:3], strict=True)]
    order = np.argsort(columns[0], kind="stable")  # which merges two ascending parts in one pass
    scores, positives, negatives = (column[order] for column in columns)
    starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
    return plain_runs(scores[starts], np.add.reduceat(positives, starts), np.add.reduceat(negatives, starts))


# Runs of rows with weights


def scale_of(weights: Array) -> float:
    """Return the power of 2 that scales the largest weight to about 1, so that no product overflows."""
    return math.ldexp(1.0, min(1023, -math.frexp(float(weights.max()))[1])) if len(weights) else 1.0


def exact_sums(weights: Array, ends: Array) -> tuple[list[int], int]:
    """Return the sums of the weights before each end as integers, and e: they are in steps of 2^e."""
    left, exponent, sums = weights.astype(np.float64), int(np.frexp(weights.max(initial=0))[1]), [0] * len(ends)
    while left.any():
        exponent -= DIGIT_BITS
        digits = np.floor(np.ldexp(left, -exponent))
        left -= np.ldexp(digits, exponent)
        before = np.concatenate(([0], np.cumsum(digits.astype(np.int64))))
        sums = [(high << DIGIT_BITS) + low for high, low in zip(sums, before[ends].tolist(), strict=True)]
    return sums, exponent


def weighted_runs(rows: ScoredRows, n_threads: int) -> Runs:
    """Return the runs of rows with weights, scaled by a power of 2, without runs whose weights are then 0.

    Rows are sorted by (score, label, weight), so sums over them do not depend on the order of the input.
    """
    assert rows.weights is not None
    scale, weights = scale_of(rows.weights), np.empty(len(rows.weights))
    values = rows.weights.astype(np.float64, copy=False).view(np.uint64)
    keys, buckets = sort_in_buckets(rows.labels, rows.scores, n_threads, weights.view(np.uint64), values)
    parts = [part for part in buckets.parts() if part.start < part.stop]

    def runs_in(at: int) -> tuple[Array, Array, Array]:
        own, ordered = keys[parts[at]], _with_sorted_ties(keys[parts[at]], weights[parts[at]]) * scale
        scores, negative = own >> 1, (own & 1 ^ 1).astype(np.int64)
        starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        n = len(starts)
        runs = np.repeat(np.arange(n), np.diff(starts, append=len(scores))) + n * negative
        sums = np.concatenate([np.bincount(runs, values, 2 * n).reshape(2, n) for values in (ordered, ordered**2)])
        kept = np.flatnonzero(sums[0] + sums[1])
        known = scores_of(scores.take(starts.take(kept)), below=parts[at].start < buckets.n_below)
        return known, sums.take(kept, axis=1), np.bincount(negative, ordered > 0, 2)

    scores, sums, sizes = zip(*run_in_threads(runs_in, range(len(parts)), n_threads), strict=True)
    return Runs(np.concatenate(scores), *np.concatenate(sums, axis=1), *np.sum(sizes, axis=0).astype(np.int64).tolist())


def _with_sorted_ties(keys: Array, payload: Array) -> Array:
    """Sort the payloads of equal keys, which follow each other, in place; return all."""
    is_next = keys[1:] == keys[:-1]
    if is_next.any():
        is_tied = np.append(False, is_next) | np.append(is_next, False)
        tied = payload[is_tied]
        payload[is_tied] = tied[np.lexsort((tied, keys[is_tied]))]
    return payload

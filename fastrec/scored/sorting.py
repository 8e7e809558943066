"""Sort of rows by score, over all users: radix sort into buckets, and runs of equal scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, RowNumber
from fastrec.inputs.columns import SCORES
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
DIGIT_BITS = 31  # of weights that are added as integers
BUCKETS_AT_ONCE = 8  # per thread: this many buckets keep their runs until they are added up


class Form(NamedTuple):
    """Layout of floats of one width, and how many leading bits name a bin: 7 or 8 after the exponent."""

    bits: Any
    floats: Any
    sign: int
    infinity: int
    width: int
    bin_bits: int


FORMS = {
    4: Form(np.uint32, np.float32, 1 << 31, 0x7F80_0000, 32, 16),
    8: Form(np.uint64, np.float64, 1 << 63, 0x7FF0_0000_0000_0000, 64, 20),
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
    n_below: int  # buckets of scores below 0

    def scatter(self, driver: Callable[..., None], columns: Sequence[Array], out: Sequence[Array]) -> None:
        """Move rows to their buckets by a kernel like `scatter`, a thread for each chunk."""
        given = (*columns, self.cuts, self.shift, self.bucket_of, self.places, *out)
        launch(driver, len(self.places), *given, work=8 * len(columns[0]), n_threads=len(self.places))

    def parts(self) -> list[slice]:
        """Return the rows of each bucket."""
        return list(itertools.starmap(slice, itertools.pairwise(self.edges.tolist())))


def plan_buckets(bits: Array, form: Form, n_threads: int, n_buckets: int = N_BUCKETS) -> Buckets:
    """Return buckets of about equally many rows, given by their scores; raise InputError for a NaN."""
    n = len(bits)
    few = n < FEW_ROWS
    bin_bits = 1 if few else min(form.bin_bits, n.bit_length() - 4)  # far fewer bins than rows
    shift = form.width - bin_bits
    n_chunks = 1 if n < SMALL_ROWS else n_threads
    cuts = chunks_of(n, n_chunks)
    counts, found = np.zeros((n_chunks, 1 << bin_bits), np.int64), np.empty(n_chunks, np.int64)
    given = (bits, cuts, form.infinity, shift, counts, found)
    launch(kernels.count_bins, n_chunks, *given, work=8 * n, n_threads=n_chunks)
    refuse_found(found, cuts)
    total = counts.sum(axis=0)
    before = np.cumsum(total) - total
    bucket = before // max(n // n_buckets, 1 if few else ROWS_PER_BUCKET)
    middle = len(bucket) // 2
    bucket[middle:] += n + 1  # so that no bucket has scores on both sides of 0
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    shares = np.add.reduceat(counts, starts, axis=1)
    sizes = shares.sum(axis=0)
    ends = np.cumsum(sizes)
    return Buckets(
        cuts=cuts,
        shift=shift,
        bucket_of=np.repeat(np.arange(len(starts), dtype=np.uint16), np.diff(starts, append=len(bucket))),
        places=np.ascontiguousarray(ends - sizes + np.cumsum(shares, axis=0) - shares),
        edges=read_only(np.concatenate([[0], ends])),
        n_below=int(np.searchsorted(starts, middle)),
    )


def chunks_of(n: int, n_chunks: int) -> Array:
    """Return where chunks of rows begin, and their number: int64 (n_chunks + 1,)."""
    return read_only(n * np.arange(n_chunks + 1) // n_chunks)


def refuse_found(found: Array, cuts: Array) -> None:
    """Reject the first NaN that was found in a chunk; `found` is relative to the start of the chunk, or -1."""
    for start, at in zip(cuts.tolist(), found.tolist(), strict=False):
        if at >= 0:
            raise InputError(SCORES, " must not be NaN, found NaN", RowNumber.at(start + at))


def keys_in_buckets(labels: Array, scores: Array, n_threads: int) -> tuple[Array, Buckets]:
    """Return rows as `key << 1 | label` by bucket, unsorted within buckets. Keys take as many bytes as scores."""
    form = FORMS[scores.itemsize]
    bits, classes = read_only(scores.view(form.bits)), read_only(labels.view(np.int8))
    buckets, keys = plan_buckets(bits, form, n_threads), np.empty(len(bits), form.bits)
    buckets.scatter(kernels.scatter, (bits, classes), (keys,))
    return keys, buckets


def _scores_of(keys: Array, form: Form) -> Array:
    """Return the scores of keys (uint64, changed in place) as float64."""
    sign = np.uint64(form.sign)
    below = keys < sign
    np.subtract(keys, sign, out=keys, where=~below)
    np.subtract(np.uint64(2 * form.sign - 1), keys, out=keys, where=below)
    scores: Array = keys.astype(form.bits, copy=False).view(form.floats).astype(np.float64, copy=False)
    return scores


# Runs of rows without weights


def bucket_runs(keys: Array, form: Form, *, below: bool) -> tuple[Array, Array, Array]:
    """Return scores, positives and negatives of the runs in one sorted bucket."""
    scores = np.empty(len(keys), np.uint64)
    positives, negatives = np.empty((2, len(keys)), np.int64)
    n = call(kernels.write_runs, read_only(keys), scores, positives, negatives, work=8 * len(keys))
    found = scores[:n].copy()
    if not below:
        found += np.uint64(form.sign)
    return _scores_of(found, form), positives[:n].copy(), negatives[:n].copy()


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


def weighted_runs(rows: ScoredRows, n_threads: int) -> Iterator[Runs]:
    """Yield the runs of rows with weights, bucket by bucket, scores ascending.

    Rows are sorted by (score, label, weight), so sums over them do not depend on the order of the input.
    """
    assert rows.weights is not None
    scale = scale_of(rows.weights)
    weights = rows.weights.astype(np.float64, copy=False).view(np.uint64)
    keys, payload, buckets = _pairs_in_buckets(rows.labels, rows.scores, weights, n_threads)
    form = FORMS[rows.scores.itemsize]

    def runs_in(part: slice) -> Runs:
        ordered = _sort_pairs(keys[part], payload[part])
        signed = _with_sorted_ties(keys[part], ordered).view(np.float64)  # weights with the label as their sign
        columns = np.empty((4, part.stop - part.start))
        scores = np.empty(part.stop - part.start, np.uint64)
        sizes = np.zeros(2, np.int64)
        given = (keys[part], signed, scale, scores, columns, sizes)
        n = call(kernels.write_weighted_runs, *given, work=8 * len(signed))
        return Runs(_scores_of(scores[:n], form), *columns[:, :n], *sizes[::-1].tolist())

    parts = buckets.parts()
    step = BUCKETS_AT_ONCE * n_threads
    for start in range(0, len(parts), step):
        group = range(start, min(start + step, len(parts)))
        yield from run_in_threads(lambda at: runs_in(parts[at]), group, n_threads)


def _pairs_in_buckets(labels: Array, scores: Array, values: Array, n_threads: int) -> tuple[Array, Array, Buckets]:
    """Return keys and payloads of rows by bucket, unsorted within buckets; see `kernels.scatter_pairs`."""
    form = FORMS[scores.itemsize]
    bits, classes = read_only(scores.view(form.bits)), read_only(labels.view(np.int8))
    buckets = plan_buckets(bits, form, n_threads, N_WIDE_BUCKETS)
    keys, payload = np.empty((2, len(bits)), np.uint64)
    buckets.scatter(kernels.scatter_pairs, (bits, classes, read_only(values)), (keys, payload))
    return keys, payload, buckets


def pairs_of_rows(labels: Array, scores: Array, n_threads: int) -> Array:
    """Return twice the ordered pairs that each checked row is in, a tied one counting half: int64 (n,)."""
    keys, payload, buckets = _pairs_in_buckets(labels, scores, np.empty(0, np.uint64), n_threads)
    pairs, parts = np.empty(len(keys), np.int64), buckets.parts()
    positives = np.array([np.count_nonzero(payload[part] >> kernels.LABEL_BIT) for part in parts], np.int64)
    below, above = np.cumsum(np.diff(buckets.edges) - positives), np.cumsum(positives[::-1])[::-1]

    def count(at: int) -> None:
        part = parts[at]
        ordered = _sort_pairs(keys[part], payload[part])
        given = (keys[part], ordered, below[at - 1] if at else np.int64(0), above[at], pairs)
        call(kernels.write_pairs_of_rows, *given, work=8 * len(ordered))

    run_in_threads(count, range(len(parts)), n_threads)
    return pairs


def _sort_pairs(keys: Array, payload: Array) -> Array:
    """Sort keys in place, and return their payload in the same order.

    The keys of a bucket are close together, so a key less the lowest usually leaves room for its position in one
    number. Sorting numbers is several times faster than sorting positions.
    """
    room, lowest = np.uint64(len(keys).bit_length()), keys.min(initial=~np.uint64(0))
    if int(keys.max(initial=lowest) - lowest) >> (64 - int(room)):
        order = np.argsort(keys)
        keys[:] = keys.take(order)
    else:
        numbered = (keys - lowest) << room | np.arange(len(keys), dtype=np.uint64)
        numbered.sort()
        keys[:] = (numbered >> room) + lowest
        order = (numbered & ((np.uint64(1) << room) - np.uint64(1))).view(np.int64)
    return payload.take(order)  # unlike an index, it lets other threads run


def _with_sorted_ties(keys: Array, payload: Array) -> Array:
    """Sort the payloads of equal keys, which follow each other, in place; return all."""
    is_next = keys[1:] == keys[:-1]
    if is_next.any():
        is_tied = np.append(False, is_next) | np.append(is_next, False)
        tied = payload[is_tied]
        payload[is_tied] = tied[np.lexsort((tied, keys[is_tied]))]
    return payload


def joined_runs(parts: Iterator[Runs]) -> Runs:
    """Join neighbouring weighted runs, without runs of weight 0."""
    found = list(parts)
    columns = [np.concatenate(column) for column in list(zip(*found, strict=True))[:5]]
    kept = (columns[1] > 0) | (columns[2] > 0)
    columns = columns if kept.all() else [column[kept] for column in columns]
    scores, positives, negatives, positive_squares, negative_squares = columns
    return Runs(
        scores,
        positives,
        negatives,
        positive_squares,
        negative_squares,
        sum(part.positive_rows for part in found),
        sum(part.negative_rows for part in found),
    )

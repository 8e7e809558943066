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
    n = len(first.scores) + len(second.scores)
    scores = np.empty(n)
    positives, negatives = np.empty((2, n), np.int64)
    given = (kernels.Merged(*map(read_only, runs[:3])) for runs in (first, second))
    size = call(kernels.merge_runs, *given, kernels.Merged(scores, positives, negatives), work=8 * n)
    return plain_runs(scores[:size].copy(), positives[:size].copy(), negatives[:size].copy())


# Runs of rows with weights


def _fits_float32(weights: Array) -> bool:
    """Return whether every weight is a float32; usually the first block of rows decides."""
    if weights.dtype == np.float32:
        return True
    block = 1 << 16
    with np.errstate(over="ignore", under="ignore"):
        return all(
            bool((part.astype(np.float32) == part).all())
            for part in (weights[at : at + block] for at in range(0, len(weights), block))
        )


def scale_of(weights: Array) -> float:
    """Return the power of 2 that scales the largest weight to about 1, so that no product overflows."""
    return math.ldexp(1.0, min(1023, -math.frexp(float(weights.max()))[1])) if len(weights) else 1.0


def weighted_runs(rows: ScoredRows, n_threads: int) -> Iterator[Runs]:
    """Yield the runs of rows with weights, bucket by bucket, scores ascending.

    Rows are sorted by (score, label, weight), so sums over them do not depend on the order of the input.
    """
    assert rows.weights is not None
    scale = scale_of(rows.weights)
    narrow = rows.scores.dtype == np.float32 and _fits_float32(rows.weights)
    form, shift = FORMS[rows.scores.itemsize], 32 if narrow else 0
    keys, payload, buckets = (_scatter_narrow if narrow else _scatter_wide)(rows, n_threads)

    def runs_in(part: slice) -> Runs:
        if narrow:
            keys[part].sort()
            signed = keys[part].view(np.float32)  # every second one is a weight with the label as its sign
        else:
            signed = _sort_pairs(keys[part], payload[part]).view(np.float64)
        columns = np.empty((4, part.stop - part.start))
        scores = np.empty(part.stop - part.start, np.uint64)
        sizes = np.zeros(2, np.int64)
        given = (keys[part], shift, signed, 2 if narrow else 1, scale, scores, columns, sizes)
        n = call(kernels.write_weighted_runs, *given, work=8 * len(signed))
        return Runs(_scores_of(scores[:n], form), *columns[:, :n], *sizes[::-1].tolist())

    parts = buckets.parts()
    step = BUCKETS_AT_ONCE * n_threads
    for start in range(0, len(parts), step):
        group = range(start, min(start + step, len(parts)))
        yield from run_in_threads(lambda at: runs_in(parts[at]), group, n_threads)


def _scatter_narrow(rows: ScoredRows, n_threads: int) -> tuple[Array, Array, Buckets]:
    """Scatter float32 scores with float32 weights: a row is one number of key, label and weight."""
    assert rows.weights is not None
    form = FORMS[4]
    bits, labels = read_only(rows.scores.view(np.uint32)), read_only(rows.labels.view(np.int8))
    weights = read_only(rows.weights.astype(np.float32, copy=False).view(np.uint32))
    buckets = plan_buckets(bits, form, n_threads)
    keys = np.empty(len(bits), np.uint64)
    buckets.scatter(kernels.scatter_narrow, (bits, labels, weights), (keys,))
    return keys, keys, buckets


def _scatter_wide(rows: ScoredRows, n_threads: int) -> tuple[Array, Array, Buckets]:
    """Scatter all other rows: keys, and separate weights with the label as their sign."""
    assert rows.weights is not None
    form = FORMS[rows.scores.itemsize]
    bits, labels = read_only(rows.scores.view(form.bits)), read_only(rows.labels.view(np.int8))
    weights = read_only(rows.weights.astype(np.float64, copy=False).view(np.uint64))
    buckets = plan_buckets(bits, form, n_threads, N_WIDE_BUCKETS)
    keys, payload = np.empty((2, len(bits)), np.uint64)
    buckets.scatter(kernels.scatter_wide, (bits, labels, weights), (keys, payload))
    return keys, payload, buckets


def _sort_pairs(keys: Array, payload: Array) -> Array:
    """Sort keys in place, and return their payload in the same order, ascending for equal keys.

    The keys of a bucket are close together, so a key minus the lowest usually leaves room for its position in one
    number. Sorting numbers is several times faster than sorting positions. Spare bits hold the start of the payload.
    """
    if not len(keys):
        return payload
    lowest = int(keys.min())
    room = (len(keys) - 1).bit_length()
    spare = min(64 - (int(keys.max()) - lowest).bit_length(), 63) - room
    if spare >= 0:
        call(kernels.number_rows, keys, payload, np.uint64(lowest), spare, room, work=8 * len(keys))
        keys.sort()
    else:
        order = np.argsort(keys)
        payload = payload[order]
        keys[:] = keys[order]
        lowest = spare = room = 0
    taken = np.empty_like(payload)
    starts, ends = np.empty((2, len(keys) // kernels.SHORT_TIE + 1), np.int64)
    given = (keys, np.uint64(lowest), spare, room, payload, taken, starts, ends)
    n_long = call(kernels.take_rows, *given, work=8 * len(keys))
    for start, end in zip(starts[:n_long].tolist(), ends[:n_long].tolist(), strict=True):
        taken[start:end].sort()
    return taken


def joined_runs(parts: Iterator[Runs]) -> Runs:
    """Join neighbouring weighted runs, without runs of weight 0."""
    found = list(parts)
    columns = [np.concatenate(column) for column in list(zip(*found, strict=True))[:5]]
    kept = (columns[1] > 0) | (columns[2] > 0)
    scores, positives, negatives, positive_squares, negative_squares = (column[kept] for column in columns)
    return Runs(
        scores,
        positives,
        negatives,
        positive_squares,
        negative_squares,
        sum(part.positive_rows for part in found),
        sum(part.negative_rows for part in found),
    )

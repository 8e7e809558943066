"""What needs the order of all rows: AUC and its error, exact or bounded, mergeable; curves and where they cross.

Everything follows from *runs*: the distinct scores in ascending order, with the rows or weights of both classes at
each. A run is one threshold, so tied rows are never told apart, whatever their order.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np

from fastrec.checks import MAX_COUNT, whole_number
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.inputs.columns import check_classes, check_floats, check_lengths, check_scores, refuse_nan
from fastrec.inputs.ragged import read_only
from fastrec.kernels import runs as kernels
from fastrec.runtime.compiler import Entry
from fastrec.runtime.launch import resolve_threads
from fastrec.runtime.threads import run_in_threads
from fastrec.runtime.turns import Shared, in_turn

__all__ = [
    "AucTest",
    "BoundedAuc",
    "CurveComparison",
    "PrCurve",
    "RocCurve",
    "ScoreHistogram",
    "ScoreRuns",
    "auc",
    "auc_of_rows",
    "auc_test",
    "bounded_auc",
    "break_even_point",
    "compare_curves",
    "pr_curve",
    "quantile_bins",
    "roc_curve",
]

Array = np.ndarray[Any, Any]
Interpolation = Literal["step", "trapezoid", "davis_goadrich"]

STEPS_PER_ROW = 8
SMALL_ROWS = 1 << 17  # fewer are sorted at once, on one thread: they fit the caches
N_BUCKETS = 256  # enough that a bucket of 100M rows fits a cache, few enough to write to all at once
N_WIDE_BUCKETS = 512  # of rows of 16 bytes
BUCKETS_AT_ONCE = 8  # for each thread: the runs of this many are kept until they are added up
LOG_SERIES = 1e-3  # below, a series has more digits than the logarithm
KEYS_AT_ONCE = 1 << 10  # rows whose keys are made in one loop: they stay in the first cache
BLOCK = 1 << 20  # rows turned into float32 at a time
ROUNDING = 2.0**-53  # two values in [0, 1], each rounded to the nearest double, move apart by no more
SUM_ROUNDING = 2.0**-51  # for each row at most, relative: two sums of weights and their quotient
DIGIT_BITS = 31  # of weights that are added up as whole numbers
EQUAL = 1e-12  # curves no further apart than this are equal: what is left is rounding
MOST_COUNTED = 1 << 40  # rows of which kernels count pairs in two words


class _Form(NamedTuple):
    """How floats of one width are laid out, and how many leading bits name a bin: 7 or 8 after the exponent."""

    bits: Any
    floats: Any
    sign: int
    infinity: int
    width: int
    bin_bits: int


_FORMS = {
    4: _Form(np.uint32, np.float32, 1 << 31, 0x7F80_0000, 32, 16),
    8: _Form(np.uint64, np.float64, 1 << 63, 0x7FF0_0000_0000_0000, 64, 20),
}


class Runs(NamedTuple):
    """Distinct scores, ascending, and what both classes hold at each: rows (int64), or weights (float64)."""

    scores: Array
    positives: Array
    negatives: Array
    positive_squares: Array  # sums of squared weights
    negative_squares: Array
    positive_rows: int
    negative_rows: int


class Rows(NamedTuple):
    """Checked rows: labels 0 or 1 as int8, scores float32 or float64, weights float32 or float64 or none."""

    labels: Array
    scores: Array
    weights: Array | None


@functools.cache
def _entry(name: str, variant: str) -> Entry:
    return Entry(getattr(kernels, name), f"{name}-{variant}")


def _kernel(name: str, variant: object, n_rows: int) -> Any:
    """The kernel, suited to so many rows."""
    return _entry(name, str(variant)).suited_to(STEPS_PER_ROW * n_rows)


def _block(form: _Form) -> Array:
    """Room for the keys of some rows."""
    return np.empty(KEYS_AT_ONCE, form.bits)


# Order


class _Buckets(NamedTuple):
    """Where each chunk of rows writes its share of each bucket; buckets ascend."""

    cuts: list[int]  # chunk c holds rows cuts[c]:cuts[c + 1]
    shift: int
    bucket_of: Array  # of each bin
    places: Array  # (chunks, buckets)
    edges: list[int]  # bucket b fills edges[b]:edges[b + 1]
    n_below: int  # buckets of scores below 0

    def in_chunks(self, work: Callable[[slice, Array], Any]) -> None:
        """Call `work(rows, places)` for all chunks at once."""
        chunks = [slice(*cut) for cut in zip(self.cuts, self.cuts[1:], strict=False)]
        run_in_threads(lambda at: work(chunks[at], self.places[at]), range(len(chunks)), len(chunks))

    def parts(self) -> list[slice]:
        return [slice(*cut) for cut in zip(self.edges, self.edges[1:], strict=False)]


def _plan_buckets(bits: Array, form: _Form, n_threads: int, n_buckets: int = N_BUCKETS) -> _Buckets:
    n = len(bits)
    small = n < SMALL_ROWS
    bin_bits = 1 if small else min(form.bin_bits, n.bit_length() - 4)  # far fewer bins than rows
    shift = form.width - bin_bits
    n_chunks = 1 if small else n_threads
    cuts = [n * at // n_chunks for at in range(n_chunks + 1)]
    counts = np.zeros((n_chunks, 1 << bin_bits), np.int64)
    count = _kernel("count_bins", form.width, n)

    def count_chunk(at: int) -> int:
        return int(count(bits[cuts[at] : cuts[at + 1]], form.infinity, shift, counts[at], _block(form)))

    _refuse_found(run_in_threads(count_chunk, range(n_chunks), n_chunks), cuts)
    total = counts.sum(axis=0)
    before = np.cumsum(total) - total
    bucket = before // max(n // n_buckets, 1)
    middle = len(bucket) // 2
    bucket[middle:] += n + 1  # no bucket has scores on both sides of 0
    starts = np.flatnonzero(np.diff(bucket, prepend=-1))
    shares = np.add.reduceat(counts, starts, axis=1)
    sizes = shares.sum(axis=0)
    ends = np.cumsum(sizes)
    return _Buckets(
        cuts=cuts,
        shift=shift,
        bucket_of=np.repeat(np.arange(len(starts), dtype=np.uint16), np.diff(starts, append=len(bucket))),
        places=np.ascontiguousarray(ends - sizes + np.cumsum(shares, axis=0) - shares),
        edges=[0, *ends.tolist()],
        n_below=int(np.searchsorted(starts, middle)),
    )


def _refuse_found(found: list[int], cuts: list[int]) -> None:
    """An error for the first NaN, if a chunk starting at one of `cuts` met one."""
    for start, at in zip(cuts, found, strict=False):
        if at >= 0:
            raise InputError(f"scores must not be NaN, found NaN at row {start + at}")


def _sorted_keys(labels: Array, scores: Array, n_threads: int) -> tuple[Array, _Buckets]:
    """Rows as `key << 1 | label`, by bucket and not yet sorted within: as many bytes as the scores."""
    form = _FORMS[scores.itemsize]
    bits, classes = read_only(scores.view(form.bits)), read_only(labels.view(np.int8))
    buckets = _plan_buckets(bits, form, n_threads)
    keys = np.empty(len(bits), form.bits)
    scatter = _kernel("scatter", form.width, len(bits))
    buckets.in_chunks(
        lambda rows, places: scatter(
            bits[rows], classes[rows], buckets.shift, buckets.bucket_of, places, keys, _block(form)
        )
    )
    return keys, buckets


def _in_buckets(work: Callable[[slice], Any], buckets: _Buckets, n_threads: int) -> list[Any]:
    parts = buckets.parts()
    return run_in_threads(lambda at: work(parts[at]), range(len(parts)), n_threads)


def _scores_of(keys: Array, form: _Form) -> Array:
    """The scores that keys (uint64, changed by this) stand for, as float64."""
    sign = np.uint64(form.sign)
    below = keys < sign
    np.subtract(keys, sign, out=keys, where=~below)
    np.subtract(np.uint64(2 * form.sign - 1), keys, out=keys, where=below)
    scores: Array = keys.astype(form.bits, copy=False).view(form.floats).astype(np.float64, copy=False)
    return scores


# Runs of rows without weights


def _bucket_runs(keys: Array, form: _Form, *, below: bool) -> tuple[Array, Array, Array]:
    """Scores, positives and negatives of the runs in one sorted bucket."""
    scores = np.empty(len(keys), np.uint64)
    positives, negatives = np.empty((2, len(keys)), np.int64)
    n = _kernel("write_runs", form.width, len(keys))(keys, scores, positives, negatives)
    found = scores[:n].copy()
    if not below:
        found += np.uint64(form.sign)
    return _scores_of(found, form), positives[:n].copy(), negatives[:n].copy()


def _count_runs(labels: Array, scores: Array, n_threads: int) -> Runs:
    """The runs of rows without weights."""
    form = _FORMS[scores.itemsize]
    keys, buckets = _sorted_keys(labels, scores, n_threads)
    middle = buckets.edges[buckets.n_below]

    def sort_bucket(part: slice) -> tuple[Array, Array, Array]:
        keys[part].sort()
        return _bucket_runs(keys[part], form, below=part.start < middle)

    parts = _in_buckets(sort_bucket, buckets, n_threads)
    return _plain_runs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _plain_runs(scores: Array, positives: Array, negatives: Array) -> Runs:
    """Runs of rows that each weigh 1."""
    return Runs(scores, positives, negatives, positives, negatives, int(positives.sum()), int(negatives.sum()))


def _merged(first: Runs, second: Runs) -> Runs:
    n = len(first.scores) + len(second.scores)
    scores = np.empty(n)
    positives, negatives = np.empty((2, n), np.int64)
    merge = _kernel("merge_runs", "plain", n)
    size = merge(*map(read_only, first[:3]), *map(read_only, second[:3]), scores, positives, negatives)
    return _plain_runs(scores[:size].copy(), positives[:size].copy(), negatives[:size].copy())


# Runs of rows with weights


def _fits_float32(weights: Array) -> bool:
    """Whether every weight is a float32; the first block mostly tells."""
    if weights.dtype == np.float32:
        return True
    block = 1 << 16
    with np.errstate(over="ignore", under="ignore"):
        return all(
            bool((part.astype(np.float32) == part).all())
            for part in (weights[at : at + block] for at in range(0, len(weights), block))
        )


def _scale_of(weights: Array) -> float:
    """The power of 2 that brings the largest weight to about 1, so that no product overflows."""
    return math.ldexp(1.0, min(1023, -math.frexp(float(weights.max()))[1])) if len(weights) else 1.0


def _weighted_runs(rows: Rows, n_threads: int) -> Iterator[Runs]:
    """The runs of rows with weights, bucket by bucket, scores ascending.

    Rows are put in the order (score, label, weight), so sums over them do not depend on how they came in.
    """
    assert rows.weights is not None
    scale = _scale_of(rows.weights)
    narrow = rows.scores.dtype == np.float32 and _fits_float32(rows.weights)
    form, shift = _FORMS[rows.scores.itemsize], 32 if narrow else 0
    keys, payload, buckets = (_scatter_narrow if narrow else _scatter_wide)(rows, n_threads)
    write = _kernel("write_weighted_runs", "narrow" if narrow else "wide", len(keys))

    def runs_in(part: slice) -> Runs:
        if narrow:
            keys[part].sort()
            signed = keys[part].view(np.float32)  # every second is a weight, with the label for its sign
        else:
            signed = _sort_pairs(keys[part], payload[part]).view(np.float64)
        columns = np.empty((4, part.stop - part.start))
        scores = np.empty(part.stop - part.start, np.uint64)
        sizes = np.zeros(2, np.int64)
        n = write(keys[part], shift, signed, 2 if narrow else 1, scale, scores, *columns, sizes)
        return Runs(_scores_of(scores[:n], form), *columns[:, :n], *sizes[::-1].tolist())

    parts = buckets.parts()
    step = BUCKETS_AT_ONCE * n_threads
    for start in range(0, len(parts), step):
        group = range(start, min(start + step, len(parts)))
        yield from run_in_threads(lambda at: runs_in(parts[at]), group, n_threads)


def _scatter_narrow(rows: Rows, n_threads: int) -> tuple[Array, Array, _Buckets]:
    """float32 scores with weights that are float32: a row is one number of key, label and weight."""
    assert rows.weights is not None
    form = _FORMS[4]
    bits, labels = read_only(rows.scores.view(np.uint32)), read_only(rows.labels.view(np.int8))
    weights = read_only(rows.weights.astype(np.float32, copy=False).view(np.uint32))
    buckets = _plan_buckets(bits, form, n_threads)
    keys = np.empty(len(bits), np.uint64)
    scatter = _kernel("scatter_narrow", "plain", len(bits))
    buckets.in_chunks(
        lambda at, places: scatter(
            bits[at], labels[at], weights[at], buckets.shift, buckets.bucket_of, places, keys, _block(form)
        )
    )
    return keys, keys, buckets


def _scatter_wide(rows: Rows, n_threads: int) -> tuple[Array, Array, _Buckets]:
    """All other rows: keys, and beside them weights with the label for their sign."""
    assert rows.weights is not None
    form = _FORMS[rows.scores.itemsize]
    bits, labels = read_only(rows.scores.view(form.bits)), read_only(rows.labels.view(np.int8))
    weights = read_only(rows.weights.astype(np.float64, copy=False).view(np.uint64))
    buckets = _plan_buckets(bits, form, n_threads, N_WIDE_BUCKETS)
    keys, payload = np.empty((2, len(bits)), np.uint64)
    scatter = _kernel("scatter_wide", form.width, len(bits))
    buckets.in_chunks(
        lambda at, places: scatter(
            bits[at], labels[at], weights[at], buckets.shift, buckets.bucket_of, places, keys, payload, _block(form)
        )
    )
    return keys, payload, buckets


def _sort_pairs(keys: Array, payload: Array) -> Array:
    """Sort keys in place; their payload in the same order, and ascending for equal keys.

    The keys of a bucket are close together, so a key less the lowest mostly leaves room for its position in one
    number, and numbers sort several times faster than positions do. What room is left takes the start of the payload.
    """
    if not len(keys):
        return payload
    lowest = int(keys.min())
    room = (len(keys) - 1).bit_length()
    spare = min(64 - (int(keys.max()) - lowest).bit_length(), 63) - room
    if spare >= 0:
        _kernel("number_rows", "plain", len(keys))(keys, payload, np.uint64(lowest), spare, room)
        keys.sort()
    else:
        order = np.argsort(keys)
        payload = payload[order]
        keys[:] = keys[order]
        lowest = spare = room = 0
    taken = np.empty_like(payload)
    starts, ends = np.empty((2, len(keys) // kernels.SHORT_TIE + 1), np.int64)
    n_long = _kernel("take_rows", "plain", len(keys))(
        keys, np.uint64(lowest), spare, room, payload, taken, starts, ends
    )
    for start, end in zip(starts[:n_long].tolist(), ends[:n_long].tolist(), strict=True):
        taken[start:end].sort()
    return taken


# Values


class _Pairs(NamedTuple):
    """A range of scores: its ordered pairs, twice, those of ties once; its positives and negatives."""

    twice: int
    positives: int
    negatives: int


def _joined_pairs(parts: list[_Pairs]) -> _Pairs:
    """The pairs of neighbouring ranges, scores ascending."""
    twice = positives = negatives = 0
    for part in parts:
        twice += part.twice + 2 * part.positives * negatives
        positives += part.positives
        negatives += part.negatives
    return _Pairs(twice, positives, negatives)


def _whole(high: int, low: int) -> int:
    return (int(high) << kernels.LOW_BITS) + int(low)


def _count_pairs(positives: Array, negatives: Array) -> tuple[int, int]:
    """Pairs in the right order, twice, and pairs of equal scores, from counts by ascending score."""
    if int(positives.sum()) + int(negatives.sum()) > MOST_COUNTED:  # merging alone makes so many rows
        own, others = positives.astype(object), negatives.astype(object)
        return int((own * (2 * np.cumsum(others) - others)).sum()), int((own * others).sum())
    add = _kernel("sum_pairs", "plain", len(positives))
    high, low, tied_high, tied_low = add(read_only(positives), read_only(negatives))
    return _whole(high, low), _whole(tied_high, tied_low)


def _pairs_of_counts(positives: Array, negatives: Array) -> _Pairs:
    return _Pairs(_count_pairs(positives, negatives)[0], int(positives.sum()), int(negatives.sum()))


def _auc_of_pairs(pairs: _Pairs) -> float:
    n_pairs = pairs.positives * pairs.negatives
    return pairs.twice / (2 * n_pairs) if n_pairs else math.nan


def _auc_of_sums(sums: Array) -> float:
    """AUC from the sums of `sum_weighted_pairs`."""
    negatives, positives, twice = (sums[0::2] + sums[1::2]).tolist()
    if not (positives > 0 and negatives > 0):
        return math.nan
    return float(min(1.0, twice / (2 * positives * negatives)))


def _standardised(partial: Any, max_fpr: Any) -> float:
    """McClish's correction: 1/2 for chance, 1 for a perfect order."""
    least = max_fpr * max_fpr / 2
    return float(min(1, (1 + (partial - least) / (max_fpr - least)) / 2))


def _partial_of_blocks(parts: list[_Pairs], runs_of: Callable[[int], Runs], max_fpr: float) -> float:
    """Standardised area up to `max_fpr`, exact; the one range of scores that the limit cuts is asked for its runs."""
    total = _joined_pairs(parts)
    if not total.positives * total.negatives:
        return math.nan
    room = Fraction(max_fpr) * total.negatives
    twice = Fraction(0)
    above = 0
    for at in reversed(range(len(parts))):
        part = parts[at]
        if part.negatives > room:
            twice += _twice_area_in(runs_of(at), room, above)
            break
        twice += part.twice + 2 * part.negatives * above
        room -= part.negatives
        above += part.positives
    return _standardised(twice / (2 * total.positives * total.negatives), Fraction(max_fpr))


def _twice_area_in(runs: Runs, room: Fraction, above: int) -> Fraction:
    """Twice the area under the points of these runs for the first `room` negatives, with `above` positives before."""
    falls = np.cumsum(runs.negatives[::-1])
    cut = len(falls) - int(np.searchsorted(falls, math.floor(room), side="right"))  # this run is cut
    whole = _pairs_of_counts(runs.positives[cut:], runs.negatives[cut:])
    above_cut = above + whole.positives
    width = room - whole.negatives
    rise = Fraction(int(runs.positives[cut - 1]), int(runs.negatives[cut - 1]))
    return whole.twice + 2 * whole.negatives * above + width * (2 * above_cut + width * rise)


def _partial_of_weights(runs: Runs, max_fpr: float) -> float:
    """Standardised area up to `max_fpr` of weighted runs."""
    fpr, tpr = _cumulated(runs.negatives), _cumulated(runs.positives)
    if not (fpr[-1] > 0 and tpr[-1] > 0):
        return math.nan
    fpr, tpr = fpr / fpr[-1], tpr / tpr[-1]
    stop = int(np.searchsorted(fpr, max_fpr, side="right"))
    if stop < len(fpr):
        share = (max_fpr - fpr[stop - 1]) / (fpr[stop] - fpr[stop - 1])
        last = tpr[stop - 1] + share * (tpr[stop] - tpr[stop - 1])
        fpr, tpr = np.append(fpr[:stop], max_fpr), np.append(tpr[:stop], last)
    return _standardised(float((np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum()) / 2, max_fpr)


def _cumulated(values: Array) -> Array:
    """What stands at or above each score, scores descending, beginning with nothing."""
    return np.concatenate([np.zeros(1, values.dtype), np.cumsum(values[::-1])])


def auc_of_rows(
    labels: Array, scores: Array, weights: Array | None = None, *, max_fpr: float | None = None, n_threads: int = 1
) -> float:
    """`auc` of checked rows that are at hand all at once: no runs are kept.

    Parameters
    ----------
    labels : array (n,), int8 or bool
        0 or 1.
    scores : array (n,), float32 or float64, contiguous
    weights : array (n,), float32 or float64, finite and at least 0, optional
    max_fpr : float in (0, 1), optional
    n_threads : int

    Raises
    ------
    InputError
        If a score is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrec.scored.curves import auc_of_rows
    >>> auc_of_rows(np.array([0, 1], np.int8), np.array([0.25, 0.5]))
    1.0
    """
    if weights is not None:
        return _weighted_auc(Rows(labels, scores, weights), max_fpr, n_threads)
    form = _FORMS[scores.itemsize]
    keys, buckets = _sorted_keys(labels, scores, n_threads)
    count = _kernel("count_pairs", form.width, len(keys))

    def sort_and_count(part: slice) -> _Pairs:
        keys[part].sort()
        high, low, positives = count(keys[part])
        return _Pairs(_whole(high, low), int(positives), part.stop - part.start - int(positives))

    counted = _in_buckets(sort_and_count, buckets, n_threads)
    if max_fpr is None:
        return _auc_of_pairs(_joined_pairs(counted))
    parts = buckets.parts()

    def runs_of(at: int) -> Runs:
        return _plain_runs(*_bucket_runs(keys[parts[at]], form, below=at < buckets.n_below))

    return _partial_of_blocks(counted, runs_of, max_fpr)


def _weighted_auc(rows: Rows, max_fpr: float | None, n_threads: int) -> float:
    if max_fpr is not None:
        return _partial_of_weights(_joined_runs(_weighted_runs(rows, n_threads)), max_fpr)
    sums = np.zeros(6)
    add = _kernel("sum_weighted_pairs", "plain", len(rows.scores))
    for runs in _weighted_runs(rows, n_threads):
        add(read_only(runs.positives), read_only(runs.negatives), sums)
    return _auc_of_sums(sums)


def _joined_runs(parts: Iterator[Runs]) -> Runs:
    """Neighbouring weighted runs as one, without those that weigh nothing."""
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


class ScoreRuns:
    """The order of all rows seen so far: exact, mergeable, the same bits for any split of rows and order of merging.

    Without weights it holds the distinct scores with whole numbers of positives and negatives, so it stays as small
    as the scores are few. With weights it holds the rows: sums of floats depend on their order, and only all rows
    together can be put in the one order (score, label, weight) in which they are added.

    Parameters
    ----------
    weighted : bool
        Whether rows come with weights. Rows of weight 0 count for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrec.scored.curves import ScoreRuns
    >>> one, other = ScoreRuns(), ScoreRuns()
    >>> one.add(np.array([0, 1], np.int8), np.array([0.2, 0.7]))
    >>> other.add(np.array([1, 0], np.int8), np.array([0.7, 0.9], np.float32))
    >>> one.merge(other)
    >>> one.auc()
    0.5
    """

    def __init__(self, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self._levels: list[Runs] = []  # each at least twice as long as the next
        self._rows: list[Rows] = []
        self._joined: Runs | None = None

    def add(self, labels: Array, scores: Array, weights: Array | None = None, *, n_threads: int = 1) -> None:
        """Add checked rows: labels (n,) 0 or 1 as int8 or bool, scores (n,) float32 or float64, weights if weighted.

        Rows with weights are copied, so the caller's arrays may be used again.
        """
        if not len(labels):
            return
        self._joined = None
        if not self.weighted:
            self._push(_count_runs(labels, scores, n_threads))
            return
        assert weights is not None
        refuse_nan(scores, "scores")
        kept = weights > 0
        self._rows.append(Rows(labels[kept].view(np.int8), scores[kept], weights[kept]))

    def merge(self, other: ScoreRuns) -> None:
        """Add what another state has seen."""
        assert self.weighted == other.weighted
        self._joined = None
        self._rows += other._rows
        for runs in list(other._levels):
            self._push(runs)

    def pack(self) -> dict[str, Array]:
        """Everything seen, as arrays."""
        if not self.weighted:
            return {name: getattr(self.runs(), name) for name in ("scores", "positives", "negatives")}
        if not self._rows:
            return {}
        columns = [np.concatenate(column) for column in zip(*self._rows, strict=True)]
        return dict(zip(("labels", "scores", "weights"), columns, strict=True))

    @classmethod
    def unpack(cls, arrays: dict[str, Array], *, weighted: bool) -> ScoreRuns:
        """The inverse of `pack`."""
        state = cls(weighted=weighted)
        if len({len(column) for column in arrays.values()}) > 1:
            raise InputError("sorted rows are wanted, found columns of different lengths")
        if arrays:
            _check_unpacked(arrays, weighted=weighted)
        if weighted and arrays:
            state._rows.append(Rows(arrays["labels"], arrays["scores"], arrays["weights"]))
        elif not weighted and len(arrays["scores"]):
            state._levels.append(_plain_runs(arrays["scores"], arrays["positives"], arrays["negatives"]))
        return state

    def _push(self, runs: Runs) -> None:
        """Merge with neighbours of about the same size, so that n additions cost log n merges of a score."""
        levels = list(self._levels)
        while levels and len(levels[-1].scores) < 2 * len(runs.scores):
            runs = _merged(levels.pop(), runs)
        self._levels = [*levels, runs]  # at once: nothing is lost by an interrupt

    def runs(self, *, n_threads: int = 1) -> Runs:
        """All distinct scores, ascending, with their rows or weights; weights are scaled by a power of 2."""
        if self._joined is None:
            self._joined = self._joined_rows(n_threads) if self.weighted else self._joined_levels()
        return self._joined

    def _joined_levels(self) -> Runs:
        levels = list(self._levels)
        while len(levels) > 1:
            levels.append(_merged(levels.pop(), levels.pop()))
        self._levels = levels
        return levels[0] if levels else _plain_runs(np.empty(0), *np.empty((2, 0), np.int64))

    def _joined_rows(self, n_threads: int) -> Runs:
        if not self._rows:
            return _plain_runs(*np.empty((3, 0)))
        rows = Rows(*(np.concatenate(column) for column in zip(*self._rows, strict=True)))
        self._rows = [rows]
        return _joined_runs(_weighted_runs(rows, n_threads))

    def auc(self, max_fpr: float | None = None) -> float:
        """Area under the ROC curve; see `auc`."""
        runs = self.runs()
        if max_fpr is not None and max_fpr < 1:
            if self.weighted:
                return _partial_of_weights(runs, max_fpr)
            pairs = _pairs_of_counts(runs.positives, runs.negatives)
            return _partial_of_blocks([pairs], lambda _: runs, max_fpr)
        if not self.weighted:
            return _auc_of_pairs(_pairs_of_counts(runs.positives, runs.negatives))
        sums = np.zeros(6)
        add = _kernel("sum_weighted_pairs", "plain", len(runs.scores))
        add(read_only(runs.positives), read_only(runs.negatives), sums)
        return _auc_of_sums(sums)

    def auc_std_error(self) -> float:
        """Standard error of the AUC of independent rows (DeLong, DeLong & Clarke-Pearson 1988).

        A row's *placement* is the share of the other class that it is ordered right against, ties counting half.
        The variance is var(placements of positives) / P + var(placements of negatives) / N, the variances divided
        by P - 1 and N - 1. With weights w each term is P / (P - 1) * sum w^2 (placement - auc)^2 / (sum w)^2, P
        being the rows of the class that have a weight.

        NaN if a class has fewer than two rows.
        """
        runs = self.runs()
        area = self.auc()
        if min(runs.positive_rows, runs.negative_rows) < 2 or math.isnan(area):
            return math.nan
        below = np.cumsum(runs.negatives) - runs.negatives
        above = np.cumsum(runs.positives[::-1])[::-1] - runs.positives
        n_negatives, n_positives = runs.negatives.sum(), runs.positives.sum()
        of_positives = (below + runs.negatives / 2) / n_negatives - area
        of_negatives = (above + runs.positives / 2) / n_positives - area
        spread = (runs.positive_squares * of_positives**2).sum() / n_positives / n_positives
        other_spread = (runs.negative_squares * of_negatives**2).sum() / n_negatives / n_negatives
        m, n = runs.positive_rows, runs.negative_rows
        return math.sqrt(float(spread * (m / (m - 1)) + other_spread * (n / (n - 1))))

    def average_precision(self, interpolation: Interpolation = "step") -> float:
        """Area under the precision-recall curve; 0 without positives.

        Parameters
        ----------
        interpolation : how precision runs between two thresholds.
            ``step``: it has the value of the lower threshold (scikit-learn). ``trapezoid``: on a straight line,
            starting at recall 0 with the precision of the first threshold (Spark; too high). ``davis_goadrich``:
            false positives grow in proportion to true ones (Davis & Goadrich 2006; in closed form Keilwagen 2014).
        """
        return _precision_area(self.runs(), interpolation)

    def ks(self) -> float:
        """Largest distance of the two classes' distribution functions (Kolmogorov, Smirnov); NaN for one class."""
        runs = self.runs()
        positives, negatives = _cumulated(runs.positives), _cumulated(runs.negatives)
        if not (positives[-1] > 0 and negatives[-1] > 0):
            return math.nan
        distance = np.abs(positives / positives[-1] - negatives / negatives[-1])
        if self.weighted:
            return float(distance.max())
        at = int(distance.argmax())
        p, n, n_positives, n_negatives = (
            int(count) for count in (positives[at], negatives[at], positives[-1], negatives[-1])
        )
        return abs(p * n_negatives - n * n_positives) / (n_positives * n_negatives)

    def ece_quantile(self, bins: int) -> float:
        """Expected calibration error in bins of about equal weight: sum over bins of ``|sum w (p - y)| / sum w``.

        Rows in ascending score order are cut where their weight passes each multiple of the whole over ``bins``; a
        block of ties goes whole to the bin in which its first row falls. NaN without rows.
        """
        runs = self.runs()
        if not len(runs.scores):
            return math.nan
        weights = runs.positives + runs.negatives
        own = self._bins_of_rows(bins) if self.weighted else quantile_bins(weights, np.arange(len(weights)), bins)
        starts = np.flatnonzero(np.diff(own, prepend=-1)).tolist()
        excess = runs.scores * weights - runs.positives
        parts = (abs(float(excess[start:end].sum())) for start, end in zip(starts, [*starts[1:], None], strict=True))
        return math.fsum(parts) / float(weights.sum())

    def _bins_of_rows(self, bins: int) -> Array:
        """The bin of each distinct score, by the weights of single rows: those of `runs` are rounded."""
        ((_, scores, weights),) = self._rows  # `runs` has joined them
        order = np.argsort(scores, kind="stable")
        ordered = scores[order]
        assert weights is not None
        return quantile_bins(weights[order], np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]), bins)


def quantile_bins(weights: Array, starts: Array, bins: int) -> Array:
    """Bins of equal weight, int64 (n_blocks,): the whole part of (weight before a block) * bins / (weight of all).

    `weights` are those of rows in ascending order of score, `starts` the first row of each block of tied scores. No
    rounding decides: where a block begins near a cut, whole numbers of Python do.
    """
    if weights.dtype.kind == "f":
        before = np.concatenate(([0.0], np.cumsum(weights, dtype=np.float64)))
        places = before[starts] / before[-1] * bins
        near = np.abs(places - np.rint(places)) <= places * (len(weights) + 1) * SUM_ROUNDING
        own: Array = np.minimum(places.astype(np.int64), bins - 1)
        exact = _exact_sums(weights, np.append(starts[near], len(weights))) if near.any() else [0]
        own[near] = [min(sum_before * bins // exact[-1], bins - 1) for sum_before in exact[:-1]]
        return own
    before = np.cumsum(weights) - weights
    of_blocks: Array = before[starts] * bins // weights.sum()
    return of_blocks


def _exact_sums(weights: Array, ends: Array) -> list[int]:
    """The sums of the weights before some rows, in steps that are the same for all of them."""
    left = weights.astype(np.float64)
    exponent = int(np.frexp(left.max())[1])
    sums = [0] * len(ends)
    while left.any():
        exponent -= DIGIT_BITS
        digits = np.floor(np.ldexp(left, -exponent))
        left -= np.ldexp(digits, exponent)
        before = np.concatenate(([0], np.cumsum(digits.astype(np.int64))))
        sums = [(high << DIGIT_BITS) + low for high, low in zip(sums, before[ends].tolist(), strict=True)]
    return sums


def _check_unpacked(arrays: dict[str, Array], *, weighted: bool) -> None:
    """An error for columns such as `ScoreRuns.pack` never gives: kernels trust their types, order and signs."""
    floats = ("float32", "float64")
    kinds = {"labels": ("int8",), "scores": floats, "weights": floats}
    if not weighted:
        kinds = {"scores": ("float64",), "positives": ("int64",), "negatives": ("int64",)}
    for name, allowed in kinds.items():
        column = arrays[name]
        if column.ndim != 1 or str(column.dtype) not in allowed:
            raise InputError(f"{name} of sorted rows must be {' or '.join(allowed)}, found {column.dtype}")
    if weighted:
        labels, weights = arrays["labels"], arrays["weights"]
        right = ((labels == 0) | (labels == 1)).all() and ((weights > 0) & np.isfinite(weights)).all()
        right = right and not np.isnan(arrays["scores"]).any()
    else:
        scores = arrays["scores"]
        right = (scores[1:] > scores[:-1]).all() and not np.isnan(scores).any()
        counts = np.stack((arrays["positives"], arrays["negatives"]))
        right = right and (counts >= 0).all() and counts.sum(dtype=np.float64) < MAX_COUNT
    if not right:
        raise InputError("sorted rows are wanted, found others")


def _precision_area(runs: Runs, interpolation: Interpolation) -> float:
    """Area under the precision-recall curve of runs."""
    hits, misses = _cumulated(runs.positives), _cumulated(runs.negatives)
    if not hits[-1] > 0:
        return 0.0
    if interpolation == "step":
        return _step_area(hits, misses)
    new_hits, new = np.diff(hits), np.diff(hits + misses)
    rows = (hits + misses)[1:]
    precision = hits[1:] / rows
    if interpolation == "trapezoid":
        precision = (precision + np.concatenate([precision[:1], precision[:-1]])) / 2
    else:
        precision = _mean_precision(hits, rows, new_hits, new)
    return float((new_hits * precision).sum() / hits[-1])


def _step_area(hits: Array, misses: Array) -> float:
    """Sum over thresholds of precision times the rise of recall, from cumulated counts that begin with nothing.

    Thresholds without a new hit add nothing and are left out, so thinning a curve does not change a bit.
    """
    new_hits = np.diff(hits)
    rises = new_hits > 0
    hits_there = hits[1:][rises]
    precision = hits_there / (hits_there + misses[1:][rises])
    return float((new_hits[rises] * precision).sum() / hits[-1]) if len(precision) else 0.0


def _mean_precision(hits: Array, rows: Array, new_hits: Array, new: Array) -> Array:
    """Mean precision between thresholds while false positives grow in proportion to true ones.

    With the share x of new rows and L = log(1 + x) / x it is (1 - L) * new hits / new rows + L * precision before.
    """
    mean = new_hits / new  # before the first threshold there is nothing: x is infinite
    before = (rows - new)[1:]
    share = new[1:] / before
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(share < LOG_SERIES, _log_series(share), np.log1p(share) / share)
    mean[1:] = (1 - log) * mean[1:] + log * (hits[1:-1] / before)
    return mean


def _log_series(x: Array) -> Array:
    """The first terms of log(1 + x) / x."""
    return 1 + x * (-1 / 2 + x * (1 / 3 + x * (-1 / 4 + x * (1 / 5 + x * (-1 / 6)))))


# Input


def _read_rows(labels: Any, scores: Any, sample_weight: Any = None) -> Rows:
    """Checked rows, but for NaN scores: what puts them in order finds those, without a pass of its own."""
    classes, numbers = check_classes(labels), check_floats(scores, "scores")
    check_lengths(classes, numbers, "scores")
    return Rows(classes, numbers, None if sample_weight is None else _read_weights(sample_weight, classes))


def _read_weights(sample_weight: Any, labels: Array) -> Array:
    """Weights as float32 or float64, of any size: they are scaled before they are multiplied."""
    weights = check_floats(sample_weight, "sample_weight")
    check_lengths(labels, weights, "sample_weight")
    if not len(weights):
        return weights
    least, largest = float(weights.min()), float(weights.max())
    if not (least >= 0 and largest < math.inf):
        at = int((~((weights >= 0) & (weights < math.inf))).argmax())
        raise InputError(f"sample_weight must be finite and at least 0, found {weights[at]} at row {at}")
    if largest == 0:
        raise InputError("sample_weight must not be 0 for every row")
    return weights


def _read_max_fpr(max_fpr: Any) -> float | None:
    """The limit, or none if it is the whole range."""
    if max_fpr is None:
        return None
    try:
        limit = float(max_fpr)
    except (TypeError, ValueError):
        raise InputTypeError(f"max_fpr must be a number, found {shown(max_fpr)}") from None
    except OverflowError:
        limit = math.inf
    if not 0 < limit <= 1:
        raise InputError(f"max_fpr must be above 0 and at most 1, found {shown(max_fpr)}")
    return limit if limit < 1 else None


def _no_threads_if_small(n: int, n_threads: int | None) -> int:
    """Threads to use for n rows."""
    threads = resolve_threads(n_threads)
    return 1 if n < SMALL_ROWS else threads


def auc(
    labels: Any, scores: Any, *, sample_weight: Any = None, max_fpr: float | None = None, n_threads: int | None = None
) -> float:
    """Area under the ROC curve: P(score of a positive > score of a negative) + 1/2 P(equal).

    Without weights it is counted in whole numbers and divided once, so it is the double nearest to the exact value,
    for any number of rows and threads. With weights, rows are added in the order (score, label, weight) with the
    errors of the additions kept: the same bits for any order of the rows and number of threads.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Higher is more likely positive; compared in their own precision. Other numbers are converted. Infinities are
        scores like others, -0.0 equals 0.0.
    sample_weight : array (n,), optional
        Finite, at least 0, not all 0.
    max_fpr : float in (0, 1], optional
        Only the area up to this false positive rate, standardised so that chance is 1/2 and a perfect order 1
        (McClish 1989).
    n_threads : int, optional
        Threads; all that the process may use by default.

    Returns
    -------
    float
        In [0, 1]; NaN if only one class has rows (or weight), or there are no rows. No warning is given.

    Raises
    ------
    InputError, InputTypeError
        Labels other than 0 and 1, NaN scores, lengths that differ, weights that are negative, infinite, NaN or all 0.

    Notes
    -----
    Bamber 1975; Hanley & McNeil 1982. Tied rows are one threshold, so a tied pair counts half. Needs memory for one
    more copy of the scores; with weights, for three to five.

    Examples
    --------
    >>> from fastrec.scored.curves import auc
    >>> auc([0, 1, 0, 1, 1], [3, 2, 2, 2, 1])
    0.16666666666666666
    """
    limit = _read_max_fpr(max_fpr)
    rows = _read_rows(labels, scores, sample_weight)
    threads = _no_threads_if_small(len(rows.labels), n_threads)
    return auc_of_rows(*rows, max_fpr=limit, n_threads=threads)


# Two models


class AucTest(NamedTuple):
    """What `auc_test` found; p_value is two-sided."""

    auc_a: float
    auc_b: float
    difference: float
    std_error: float
    z: float
    p_value: float


def auc_test(labels: Any, scores_a: Any, scores_b: Any) -> AucTest:
    """Test whether two models have the same AUC on the same rows (DeLong, DeLong & Clarke-Pearson 1988).

    Each row's placement (the share of the other class that it is ordered right against, ties counting half) is
    compared between the models; ``var = var(differences of positives) / P + var(differences of negatives) / N``,
    with the variances divided by P - 1 and N - 1. Rows are taken to be independent of each other: rows of one user
    are not, and then the error is too small.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores_a, scores_b : array (n,), float32 or float64
        Scores of two models for the same rows; each is compared with itself only, so scales may differ.

    Returns
    -------
    AucTest
        ``auc_a``, ``auc_b``, ``difference`` (a - b), its ``std_error``, ``z`` and the two-sided ``p_value`` of the
        normal distribution. If the error is exactly 0 (all differences equal, as for two models with the same
        order), equal AUCs give z = 0 and p = 1, others z = +-inf and p = 0. Error, z and p are NaN if a class has
        fewer than two rows, everything if it has none.

    Raises
    ------
    InputError, InputTypeError
        Labels other than 0 and 1, NaN scores, lengths that differ.

    Examples
    --------
    >>> from fastrec.scored.curves import auc_test
    >>> test = auc_test([0, 0, 0, 1, 1, 1], [0.1, 0.4, 0.2, 0.3, 0.8, 0.9], [0.6, 0.4, 0.2, 0.1, 0.3, 0.7])
    >>> round(test.difference, 4), round(test.std_error, 4), round(test.p_value, 4)
    (0.4444, 0.2485, 0.0736)
    """
    classes = check_classes(labels)
    positive = classes == 1
    n_positives = int(positive.sum())
    n_negatives = len(classes) - n_positives
    placements = []
    for name, values in (("scores_a", scores_a), ("scores_b", scores_b)):
        scores = check_scores(values, name)
        check_lengths(classes, scores, name)
        placements.append(_twice_placements(positive, scores))
    if not n_positives * n_negatives:
        return AucTest(*[math.nan] * 6)
    first, second = (int(each[positive].sum()) for each in placements)
    pairs = 2 * n_positives * n_negatives
    areas = first / pairs, second / pairs, (first - second) / pairs
    if min(n_positives, n_negatives) < 2:
        return AucTest(*areas, math.nan, math.nan, math.nan)
    differences = placements[0] - placements[1]
    variance = _variance(differences[positive], 2 * n_negatives) / n_positives
    variance += _variance(differences[~positive], 2 * n_positives) / n_negatives
    std_error = math.sqrt(variance)
    z = 0.0 if first == second else areas[2] / std_error if std_error > 0 else math.copysign(math.inf, first - second)
    return AucTest(*areas, std_error, z, 2 * NormalDist().cdf(-abs(z)))


def _twice_placements(positive: Array, scores: Array) -> Array:
    """Rows of the other class ordered right against each row, those tied with it counting half, all twice; int64."""
    order = np.argsort(scores)
    ranked = scores[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(ranked), 1), bool), ranked[1:] != ranked[:-1]]))
    sizes = np.diff(starts, append=len(ranked))
    passed = np.concatenate([[0], np.cumsum(positive[order])])
    before = np.repeat(passed[starts], sizes), np.repeat(starts, sizes)
    after = np.repeat(passed[starts + sizes], sizes), np.repeat(starts + sizes, sizes)
    twice_positives = before[0] + after[0]
    twice_negatives = before[1] + after[1] - twice_positives
    out = np.empty(len(scores), np.int64)
    out[order] = np.where(positive[order], twice_negatives, 2 * int(passed[-1]) - twice_positives)
    return out


def _variance(values: Array, unit: int) -> float:
    """Sample variance of whole numbers in a unit; exactly 0 if all are equal."""
    if values.min() == values.max():
        return 0.0
    return float(np.var(values / unit, ddof=1))


# Bounded


class BoundedAuc(NamedTuple):
    """The exact AUC lies within ``bound`` of ``auc``."""

    auc: float
    bound: float


class ScoreHistogram(Shared):
    """The order of all rows seen so far by the leading bits of their scores: mergeable, small, with a certified bound.

    Rows are counted by class and by the first ``bits`` bits of the float32 score, in the order of the scores (sign
    and exponent take 9 of them): scores within about 1 part in 2^(bits - 9) may share a bin, wherever they lie.
    Pairs in different bins are ordered for certain, pairs in one bin count half.

    Parameters
    ----------
    bits : int
        16 to 22. The counts take 2^(bits + 4) bytes, of which only bins that occur are backed by memory.

    Raises
    ------
    InputError, InputTypeError
        ``bits`` is not a whole number from 16 to 22.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrec.scored.curves import ScoreHistogram
    >>> seen = ScoreHistogram(16)
    >>> seen.add(np.array([0, 1, 0, 1], np.int8), np.array([0.1, 0.2, 0.7, 0.7001]))
    >>> seen.auc(), round(seen.error_bound, 12)
    (0.625, 0.125)
    """

    def __init__(self, bits: int = 22) -> None:
        super().__init__()
        number = whole_number(bits)
        if number is None:
            raise InputTypeError(f"bits must be a whole number, found {shown(bits)}")
        if not 16 <= number <= 22:
            raise InputError(f"bits must be from 16 to 22, found {shown(number)}")
        self.bits = number
        self._counts = np.zeros(2 << number, np.int64)
        self._span = np.array([1 << number, 0])  # the lowest bin that holds a row, and the one after the highest

    @in_turn
    def add(self, labels: Array, scores: Array, *, n_threads: int = 1) -> None:
        """Add checked rows: labels (n,) 0 or 1 as int8 or bool, scores (n,) float32 or float64, contiguous.

        Raises
        ------
        InputError
            If a score is NaN. After that, or an interrupt, every call says that the state cannot be used any more.
        """
        n = len(labels)
        cuts = [n * at // n_threads for at in range(n_threads + 1)]
        states = [(self._counts, self._span)]
        states += [(np.zeros(len(self._counts), np.int64), self._span.copy()) for _ in cuts[2:]]

        def count_chunk(at: int) -> int:
            return self._count(labels[cuts[at] : cuts[at + 1]], scores[cuts[at] : cuts[at + 1]], *states[at])

        with self._changing():
            _refuse_found(run_in_threads(count_chunk, range(n_threads), n_threads), cuts)
            for counts, span in states[1:]:
                self._join(counts[2 * span[0] : 2 * span[1]], span)

    def _count(self, labels: Array, scores: Array, counts: Array, span: Array) -> int:
        """Count rows; where a NaN stands, or -1. Rounding to float32 keeps the order of float64 scores."""
        form = _FORMS[4]
        count = _kernel("count_classes_by_bin", "plain", len(labels))
        keys = _block(form)
        for start in range(0, len(labels), BLOCK):
            with np.errstate(over="ignore", under="ignore"):
                block = scores[start : start + BLOCK].astype(np.float32, copy=False)
            bits, classes = read_only(block.view(np.uint32)), read_only(labels[start : start + BLOCK].view(np.int8))
            at = count(bits, classes, form.infinity, 32 - self.bits, counts, span, keys)
            if at >= 0:
                return start + int(at)
        return -1

    def _join(self, counts: Array, span: Array) -> None:
        """Add counts of the bins in span[0]:span[1]."""
        if span[0] < span[1]:
            self._counts[2 * span[0] : 2 * span[1]] += counts
            self._span = np.array([min(self._span[0], span[0]), max(self._span[1], span[1])])

    def _occupied(self) -> Array:
        return self._counts[2 * self._span[0] : 2 * self._span[1]]

    def merge(self, other: ScoreHistogram) -> None:
        """Add what another histogram of as many bits has seen."""
        if self.bits != other.bits:
            raise InputError(f"histograms must have the same bits to be merged, found {self.bits} and {other.bits}")
        with self._with(other), self._changing():
            self._join(other._occupied(), other._span)

    @in_turn
    def pack(self) -> dict[str, Array]:
        """The bins that occur, int64 and ascending, and the rows of both classes in each."""
        counts = self._occupied().reshape(-1, 2)
        occurring = np.flatnonzero(counts.any(axis=1))
        negatives, positives = counts[occurring].T
        return {"bins": occurring + self._span[0], "negatives": negatives, "positives": positives}

    @in_turn
    def add_bins(self, bins: Array, negatives: Array, positives: Array) -> None:
        """Add the rows of both classes in some bins, each bin once: what `pack` of a histogram of as many bits gave."""
        if not len(bins):
            return
        with self._changing():
            self._counts[2 * bins] += negatives
            self._counts[2 * bins + 1] += positives
            self._span = np.array([min(self._span[0], bins.min()), max(self._span[1], bins.max() + 1)])

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the bins that occur."""
        with self._turn.held():
            return {"bits": self.bits, "span": self._span.copy(), "counts": self._occupied().copy(), "torn": self._torn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put the bins back in their places."""
        self.__init__(state["bits"])  # type: ignore[misc]
        self._join(state["counts"], state["span"])
        self._torn = state["torn"]

    @in_turn
    def estimate(self) -> BoundedAuc:
        """AUC with pairs inside a bin counting half, and how far the exact AUC can be from it; NaN for one class."""
        counts = self._occupied().reshape(-1, 2)
        counts = counts[counts.any(axis=1)]
        negatives, positives = np.ascontiguousarray(counts.T)
        n_pairs = int(positives.sum()) * int(negatives.sum())
        if not n_pairs:
            return BoundedAuc(math.nan, math.nan)
        twice, tied = _count_pairs(positives, negatives)
        # both this and the exact AUC were rounded once
        return BoundedAuc(twice / (2 * n_pairs), tied / (2 * n_pairs) + ROUNDING if tied else 0.0)

    def auc(self) -> float:
        """AUC with pairs inside a bin counting half."""
        return self.estimate().auc

    @property
    def error_bound(self) -> float:
        """The exact AUC is within this of `auc()`: half the share of pairs that are inside a bin."""
        return self.estimate().bound


def bounded_auc(labels: Any, scores: Any, *, bits: int = 22, n_threads: int | None = None) -> BoundedAuc:
    """AUC from a histogram of the scores, several times faster than `auc`, with a bound on its error.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Of any range; bins are relative, see `ScoreHistogram`.
    bits : int
        16 to 22: the bound halves with each. On scores spread evenly over [0, 1], with labels that do not depend on
        them, it is about 2^(8 - bits) / 6: 2e-5 for 22 bits.
    n_threads : int, optional
        Threads; all that the process may use by default.

    Returns
    -------
    BoundedAuc
        ``auc`` and ``bound``: the exact AUC is within ``bound`` of ``auc``, whatever the data. Both NaN for one class.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import bounded_auc
    >>> bounded_auc([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4])
    BoundedAuc(auc=0.75, bound=0.0)
    """
    rows = _read_rows(labels, scores)
    seen = ScoreHistogram(bits)
    seen.add(rows.labels, rows.scores, n_threads=_no_threads_if_small(len(rows.labels), n_threads))
    return seen.estimate()


# Curves


@dataclass(frozen=True, eq=False)
class RocCurve:
    """Points of a ROC curve by descending threshold; unpacks into ``fpr, tpr, thresholds``.

    A point holds the rates of rows with ``score >= threshold``; the first has threshold inf and no rows.
    ``false_positives`` and ``true_positives`` are the numerators of the rates: rows, or weights in a common unit.
    """

    fpr: Array
    tpr: Array
    thresholds: Array
    false_positives: Array
    true_positives: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.fpr, self.tpr, self.thresholds))

    @property
    def area(self) -> float:
        """Area by the trapezoidal rule: the AUC. Without weights in whole numbers, so the same bits as `auc`."""
        new_positives, new_negatives = np.diff(self.true_positives)[::-1], np.diff(self.false_positives)[::-1]
        if self.true_positives.dtype.kind == "i":
            return _auc_of_pairs(_pairs_of_counts(new_positives, new_negatives))
        return float((np.diff(self.fpr) * (self.tpr[1:] + self.tpr[:-1])).sum()) / 2 if len(self.fpr) > 1 else math.nan


@dataclass(frozen=True, eq=False)
class PrCurve:
    """Points of a precision-recall curve by ascending threshold; unpacks into ``precision, recall, thresholds``.

    A point holds the values of rows with ``score >= threshold``; a last point, precision 1 and recall 0, has no
    threshold. ``true_positives`` and ``false_positives`` are rows, or weights in a common unit.
    """

    precision: Array
    recall: Array
    thresholds: Array
    true_positives: Array
    false_positives: Array

    def __iter__(self) -> Iterator[Array]:
        return iter((self.precision, self.recall, self.thresholds))

    @property
    def area(self) -> float:
        """Area under the steps: the average precision; 0 without positives."""
        return _step_area(self.true_positives[::-1], self.false_positives[::-1])


def _read_runs(labels: Any, scores: Any, sample_weight: Any) -> Runs:
    rows = _read_rows(labels, scores, sample_weight)
    seen = ScoreRuns(weighted=rows.weights is not None)
    threads = _no_threads_if_small(len(rows.labels), None)
    seen.add(*rows, n_threads=threads)
    return seen.runs(n_threads=threads)


def _share(part: Array) -> Array:
    """Cumulated counts over the whole, which is last; NaN if that is 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray(part / part[-1])


def roc_curve(labels: Any, scores: Any, *, sample_weight: Any = None, thin: bool = False) -> RocCurve:
    """Points of the ROC curve: false and true positive rate at every distinct score, in scikit-learn's order.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Tied rows are one threshold.
    sample_weight : array (n,), optional
        Finite, at least 0, not all 0; rows of weight 0 give no threshold.
    thin : bool
        Leave out points on a straight line between their neighbours. Without weights this is decided in whole numbers
        and the area stays exactly the same; with weights only points inside level or upright pieces are left out.

    Returns
    -------
    RocCurve
        ``fpr``, ``tpr``, ``thresholds`` (float64, descending, the first inf), and ``.area``. A rate is NaN if its class
        has no rows.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import roc_curve
    >>> fpr, tpr, thresholds = curve = roc_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.35, 0.1])
    >>> curve.area
    0.75
    """
    runs = _read_runs(labels, scores, sample_weight)
    false, true = _cumulated(runs.negatives), _cumulated(runs.positives)
    thresholds = np.concatenate([[math.inf], runs.scores[::-1]])
    if thin:
        kept = _corners(false, true)
        false, true, thresholds = false[kept], true[kept], thresholds[kept]
    return RocCurve(_share(false), _share(true), thresholds, false, true)


def _corners(across: Array, up: Array) -> Array:
    """Which points of a rising line do not lie straight between their neighbours; the ends always."""
    kept = np.ones(len(across), bool)
    right, rise = np.diff(across), np.diff(up)
    if across.dtype.kind == "i":
        if max(int(across[-1]), int(up[-1])) >= 1 << 31:
            right, rise = right.astype(object), rise.astype(object)  # products pass 2^62
        kept[1:-1] = right[1:] * rise[:-1] != right[:-1] * rise[1:]
    else:
        level = (rise[1:] == 0) & (rise[:-1] == 0)
        upright = (right[1:] == 0) & (right[:-1] == 0)
        kept[1:-1] = ~(level | upright)
    return kept


def pr_curve(labels: Any, scores: Any, *, sample_weight: Any = None, thin: bool = False) -> PrCurve:
    """Points of the precision-recall curve at every distinct score, in scikit-learn's order.

    Parameters
    ----------
    labels, scores, sample_weight
        As for `roc_curve`.
    thin : bool
        Of points with the same recall keep the first and the last, which keeps the area exactly the same.

    Returns
    -------
    PrCurve
        ``precision`` and ``recall``, with a last point (1, 0) that has no threshold, ``thresholds`` (float64,
        ascending), and ``.area``. Recall is NaN without positives, but for the last point.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import pr_curve
    >>> precision, recall, thresholds = curve = pr_curve([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> precision.round(3).tolist(), recall.tolist(), thresholds.tolist()
    ([0.5, 0.667, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0], [0.1, 0.35, 0.4, 0.8])
    >>> round(curve.area, 4)
    0.8333
    """
    runs = _read_runs(labels, scores, sample_weight)
    false, true = _cumulated(runs.negatives), _cumulated(runs.positives)
    kept = np.ones(len(true), bool)
    if thin:
        kept[2:-1] = (true[2:-1] != true[1:-2]) | (true[2:-1] != true[3:])
    false, true, thresholds = false[kept], true[kept], runs.scores[::-1][kept[1:]]
    precision, recall = np.ones(len(true)), _share(true)
    precision[1:] = true[1:] / (true + false)[1:]
    recall[0] = 0.0
    return PrCurve(*(np.ascontiguousarray(each[::-1]) for each in (precision, recall, thresholds, true, false)))


def break_even_point(labels: Any, scores: Any, *, sample_weight: Any = None) -> float:
    """Precision at the threshold where recall equals it: among the P highest rows, P being the positives.

    If rows are tied where the P highest end, hits are expected in proportion, which is the mean over all orders of
    the tied rows: the expected R-precision.

    Parameters
    ----------
    labels, scores, sample_weight
        As for `roc_curve`; with weights, rows up to the weight of all positives.

    Returns
    -------
    float
        In [0, 1]; NaN without positives.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec.scored.curves import break_even_point
    >>> break_even_point([1, 0, 1, 0, 0], [0.9, 0.8, 0.8, 0.8, 0.1])
    0.6666666666666666
    """
    runs = _read_runs(labels, scores, sample_weight)
    hits = _cumulated(runs.positives)
    if not hits[-1] > 0:
        return math.nan
    rows = hits + _cumulated(runs.negatives)
    at = int(np.searchsorted(rows, hits[-1]))  # the first threshold with as many rows as positives
    before, after = hits[at - 1].item(), hits[at].item()
    size, room = (rows[at] - rows[at - 1]).item(), (hits[-1] - rows[at - 1]).item()
    return float((before * size + room * (after - before)) / (size * hits[-1].item()))


class CurveComparison(NamedTuple):
    """Which of two curves lies above the other, and the points (x, y) where they change places."""

    dominates: Literal["first", "second", "neither", "equal"]
    crossings: Array  # (n, 2)


def compare_curves(first: RocCurve | PrCurve, second: RocCurve | PrCurve) -> CurveComparison:
    """Whether one curve is nowhere below the other, or where they cross.

    ROC curves are lines between their points; a curve that dominates is the better one at every false positive rate
    and for every cost of errors (Provost & Fawcett 2001). Precision-recall curves are steps, whose area is the
    average precision. Curves no further apart than 1e-12 count as equal.

    Parameters
    ----------
    first, second : two RocCurve or two PrCurve
        Of any rows, each with both classes (ROC) or with a positive (precision-recall).

    Returns
    -------
    CurveComparison
        ``dominates``: ``"first"`` if it is nowhere below and somewhere above, ``"second"`` likewise, ``"equal"``, or
        ``"neither"`` if they cross. ``crossings``: float64 (n, 2), (fpr, tpr) or (recall, precision) where the
        other curve takes the lead, in ascending order; where both jump, the middle of what the jumps share.

    Raises
    ------
    InputTypeError
        If the curves are not of one kind.
    InputError
        If a curve has no rates, because a class has no rows.

    Examples
    --------
    >>> from fastrec.scored.curves import compare_curves, roc_curve
    >>> labels = [1, 0, 0, 1]
    >>> constant = roc_curve(labels, [1, 1, 1, 1])
    >>> compare_curves(roc_curve(labels, [4, 2, 1, 3]), constant).dominates
    'first'
    >>> compare_curves(roc_curve(labels, [4, 3, 2, 1]), constant)
    CurveComparison(dominates='neither', crossings=array([[0.5, 0.5]]))
    """
    for name, curve in (("first", first), ("second", second)):
        if not isinstance(curve, (RocCurve, PrCurve)):
            raise InputTypeError(f"the {name} curve must be a RocCurve or a PrCurve, found a {type(curve).__name__}")
        if any(len(values) < 2 or np.isnan(values).any() for values in list(curve)[:2]):
            raise InputError(f"the {name} curve has no rates: a class has no rows")
    if isinstance(first, RocCurve) and isinstance(second, RocCurve):
        return _compare_lines(first, second)
    if isinstance(first, PrCurve) and isinstance(second, PrCurve):
        return _compare_steps(first, second)
    raise InputTypeError(f"the curves must be of one kind, found {type(first).__name__} and {type(second).__name__}")


def _compare_lines(first: RocCurve, second: RocCurve) -> CurveComparison:
    """ROC curves never fall, so along fpr + tpr they are functions, whose value is tpr - fpr."""
    along = np.unique(np.concatenate([first.fpr + first.tpr, second.fpr + second.tpr]))
    heights, other = (np.interp(along, each.fpr + each.tpr, each.tpr - each.fpr) for each in (first, second))
    gap = heights - other
    crossings = []
    for before, after, at in _changes(gap):
        share = gap[before] / (gap[before] - gap[after]) if after == before + 1 else 1.0
        start = before if after == before + 1 else at
        end = after if after == before + 1 else at
        x = along[start] + share * (along[end] - along[start])
        y = heights[start] + share * (heights[end] - heights[start])
        crossings.append(((x - y) / 2, (x + y) / 2))
    return _comparison(gap, crossings)


def _compare_steps(first: PrCurve, second: PrCurve) -> CurveComparison:
    """Precision is a function of recall: up to each recall, that of the highest threshold which reaches it."""
    levels = np.unique(np.concatenate([first.recall, second.recall]))[1:]
    values, other = (_steps_at(each, levels) for each in (first, second))
    gap = values - other
    crossings = []
    for _, after, at in _changes(gap):
        low = max(min(each[at], each[after]) for each in (values, other))
        high = min(max(each[at], each[after]) for each in (values, other))
        crossings.append((levels[at], (low + high) / 2))
    return _comparison(gap, crossings)


def _steps_at(curve: PrCurve, levels: Array) -> Array:
    """Precision of the highest threshold whose recall is at least each level."""
    recall, precision = curve.recall[::-1], curve.precision[::-1]
    return precision[np.minimum(np.searchsorted(recall, levels - EQUAL), len(recall) - 1)]


def _changes(gap: Array) -> list[tuple[int, int, int]]:
    """Where a gap changes its sign: the last place with the old one, the first with the new one, the last before it."""
    signs = np.sign(np.where(np.abs(gap) > EQUAL, gap, 0.0))
    places = np.flatnonzero(signs)
    turns = np.flatnonzero(signs[places][1:] != signs[places][:-1])
    return [(int(places[turn]), int(places[turn + 1]), int(places[turn + 1]) - 1) for turn in turns]


def _comparison(gap: Array, crossings: list[tuple[float, float]]) -> CurveComparison:
    above, below = bool((gap > EQUAL).any()), bool((gap < -EQUAL).any())
    dominates: Literal["first", "second", "neither", "equal"]
    dominates = ("neither" if below else "first") if above else ("second" if below else "equal")
    return CurveComparison(dominates, np.array(crossings, np.float64).reshape(-1, 2))

"""Mergeable counts of rows by score, and the metrics that follow: areas, distances, calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError
from fastrec.inputs.columns import refuse_nan
from fastrec.kernels.runs import distance
from fastrec.metrics.intervals import NO_ERROR, RowError, welch_degrees
from fastrec.scored.areas import (
    Interpolation,
    Pairs,
    auc_of_pairs,
    cumulative,
    pairs_of_counts,
    placement_variances,
    precision_area,
    squared_pairs,
)
from fastrec.scored.influence import (
    BatchRows,
    effects_on_auc,
    error_of_rows,
    factor_for,
    pairs_of_scores,
    slopes_of_auc,
    slopes_of_precision,
    spare_bits,
    squares_by_class,
    values_of_rows,
)
from fastrec.scored.keys import SortedKeys, sort_rows
from fastrec.scored.partial import CurvePart, area_of_part, log_area, slopes_of_part
from fastrec.scored.points import CumulativeRows, equal_error_rate, rate_where
from fastrec.scored.sorting import (
    Runs,
    ScoredRows,
    exact_sums,
    merged_runs,
    pairs_of_rows,
    plain_runs,
    scale_of,
    weighted_runs,
)

Array = np.ndarray[Any, Any]
SUM_ROUNDING = 2.0**-51  # relative bound per row: two sums of weights and their quotient
STRATEGIES = ("uniform", "quantile")


class BinSums(NamedTuple):
    """Sums over the rows in each bin of scores, in ascending order; bins without rows are left out.

    Sums of weights are in multiples of `unit`, a power of 2.
    """

    unit: float  # 1 without weights
    numbers: Array  # int64: of the bin, from 0
    lowest: Array  # score
    highest: Array
    weights: Array  # of all rows: int64 counts, or float64 sums of weights
    positives: Array  # of positive rows, likewise
    squares: Array  # of squared weights
    scores: Array  # of w s
    gaps: Array  # of w (s - y)

    def distance(self, norm: str) -> float:
        """Return a norm of the distances between the mean score and the share of positives; NaN without rows.

        Their mean over rows (`l1`), the root of their mean square (`l2`), or the largest (`max`).
        """
        if not len(self.numbers):
            return math.nan
        rows = float(self.weights.sum())
        if norm == "l1":
            return math.fsum(np.abs(self.gaps)) / rows
        shares = np.minimum(np.abs(self.gaps / self.weights), 1.0)
        return float(shares.max()) if norm == "max" else math.sqrt(math.fsum(self.weights * shares**2) / rows)


class ScoreCounts:
    """Counts of all rows so far by score: exact, mergeable, the same bits for any split of rows and order of merging.

    Without weights it holds the distinct scores with integer counts of positives and negatives, so few distinct scores
    need little memory. With weights it holds the rows. Sums of floats depend on their order, and the order (score,
    label, weight) needs all rows together.

    Parameters
    ----------
    weighted : bool
        Whether rows have weights. Rows of weight 0 count for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fastrec.scored.score_counts import ScoreCounts
    >>> one, other = ScoreCounts(), ScoreCounts()
    >>> one.add(np.array([0, 1], np.int8), np.array([0.2, 0.7]))
    >>> other.add(np.array([1, 0], np.int8), np.array([0.7, 0.9], np.float32))
    >>> one.merge(other)
    >>> one.auc()
    0.5
    """

    def __init__(self, *, weighted: bool = False) -> None:
        self.weighted = weighted
        self._levels: list[Runs] = []  # each at least twice as long as the next
        self._sorted: SortedKeys | None = None  # in place of levels: the rows of one batch
        self._rows: list[ScoredRows] = []
        self._joined: Runs | None = None
        self._pairs: Pairs | None = None  # of all rows, which several numbers need
        self._pair_table: Array | None = None  # of the rows of each score
        self._slopes: dict[Hashable, tuple[Array, float] | None] = {}  # of metrics, with the factor of their integers

    def add(self, labels: Array, scores: Array, weights: Array | None = None, *, n_threads: int = 1) -> None:
        """Add checked rows: labels (n,) 0 or 1 as int8 or bool, scores (n,) float32 or float64, weights if weighted."""
        if not len(labels):
            return
        self._joined = self._pairs = self._pair_table = None
        self._slopes = {}
        if not self.weighted:
            self._take(sort_rows(labels, scores, n_threads), n_threads)
            return
        assert weights is not None
        refuse_nan(scores, "scores")
        kept = weights > 0
        self._rows.append(ScoredRows(labels[kept].view(np.int8), scores[kept], weights[kept]))

    @classmethod
    def of_rows(cls, labels: Array, scores: Array, weights: Array | None = None, *, n_threads: int = 1) -> ScoreCounts:
        """Return the counts of checked rows, as `add` takes them; raise InputError for a NaN score."""
        state = cls(weighted=weights is not None)
        state.add(labels, scores, weights, n_threads=n_threads)
        return state

    @classmethod
    def of_keys(cls, keys: SortedKeys) -> ScoreCounts:
        """Return the counts of rows without weights, whose scores are counted when a number needs that."""
        state = cls()
        state._sorted = keys if len(keys.keys) else None
        return state

    def merge(self, other: ScoreCounts) -> None:
        """Add the rows of another state."""
        assert self.weighted == other.weighted
        self._joined = self._pairs = self._pair_table = None
        self._slopes = {}
        self._rows += other._rows
        rows, levels = other._sorted, list(other._levels)  # before a state merges itself
        if rows is not None:
            self._take(rows)
        for runs in levels:
            self._push(runs)

    def pack(self) -> dict[str, Array]:
        """Return the state as arrays."""
        if not self.weighted:
            return {name: getattr(self.runs(), name) for name in ("scores", "positives", "negatives")}
        if not self._rows:
            return {}
        columns = [np.concatenate(column) for column in zip(*self._rows, strict=True)]
        return dict(zip(("labels", "scores", "weights"), columns, strict=True))

    @classmethod
    def unpack(cls, arrays: dict[str, Array], *, weighted: bool) -> ScoreCounts:
        """Restore a state from the arrays of `pack`."""
        state = cls(weighted=weighted)
        if weighted and not arrays:
            return state
        columns = _check_unpacked(arrays, weighted=weighted)
        if weighted:
            state._rows.append(ScoredRows(*columns))
        elif len(columns[0]):
            state._levels.append(plain_runs(*columns))
        return state

    def _take(self, rows: SortedKeys, n_threads: int = 1) -> None:
        """Add rows: those of a first batch are kept as they are, which takes fewer bytes than counts by score."""
        if self._sorted is None and not self._levels:
            self._sorted = rows
        else:
            self._push(rows.runs(n_threads), n_threads)

    def _push(self, runs: Runs, n_threads: int = 1) -> None:
        """Merge runs with neighbours of about the same size, so that n additions merge each score log n times."""
        levels = list(self._levels) if self._sorted is None else [self._sorted.runs(n_threads)]
        while levels and len(levels[-1].scores) < 2 * len(runs.scores):
            runs = merged_runs(levels.pop(), runs)
        self._levels, self._sorted = [*levels, runs], None  # one statement: an interrupt loses nothing

    def runs(self, *, n_threads: int = 1) -> Runs:
        """Return all distinct scores, ascending, with their rows or weights; weights are scaled by a power of 2."""
        if self._joined is None:
            self._joined = self._joined_rows(n_threads) if self.weighted else self._joined_levels(n_threads)
        return self._joined

    def _joined_levels(self, n_threads: int) -> Runs:
        if self._sorted is not None:
            return self._sorted.runs(n_threads)
        levels = list(self._levels)
        while len(levels) > 1:
            levels.append(merged_runs(levels.pop(), levels.pop()))
        self._levels = levels
        return levels[0] if levels else plain_runs(np.empty(0), *np.empty((2, 0), np.int64))

    def _joined_rows(self, n_threads: int) -> Runs:
        if not self._rows:
            return plain_runs(*np.empty((3, 0)))
        rows = ScoredRows(*(np.concatenate(column) for column in zip(*self._rows, strict=True)))
        self._rows = [rows]
        return weighted_runs(rows, n_threads) if len(rows.scores) else plain_runs(*np.empty((3, 0)))

    def auc(self, max_fpr: float | None = None) -> float:
        """Return the area under the ROC curve; see `auc`."""
        if max_fpr is not None and max_fpr < 1:
            return self.part_of_auc("fpr", 0.0, max_fpr, "mcclish")
        return auc_of_pairs(self.pairs())

    def pairs(self) -> Pairs:
        """Return the pairs of all rows, which are kept until rows are added."""
        if self._pairs is None:
            if self._sorted is None:
                runs = self.runs()
                self._pairs = pairs_of_counts(runs.positives, runs.negatives)
            else:
                self._pairs = self._sorted.pairs()
        return self._pairs

    def auc_error(self) -> RowError:
        """Return the standard error of the AUC of independent rows (DeLong, DeLong & Clarke-Pearson 1988).

        A row's *placement* is the share of the other class that it is ordered correctly against, ties counting half.
        The variance is var(placements of positives) / P + var(placements of negatives) / N, with the variances divided
        by P - 1 and N - 1. With weights w each term is P / (P - 1) * sum w^2 (placement - auc)^2 / (sum w)^2, where P
        counts the rows of the class with a weight above 0. The degrees of freedom are those of a sum of two variances,
        of P - 1 and N - 1 degrees (Satterthwaite 1946; Brunner & Munzel 2000).

        NaN if a class has fewer than two rows.
        """
        pairs, area = self.pairs(), self.auc()
        sizes = pairs.negatives, pairs.positives
        if self.weighted:
            sizes = self.runs().negative_rows, self.runs().positive_rows
        if math.isnan(area) or min(sizes) < 2:
            return NO_ERROR
        if self.weighted:
            squares = squares_by_class(self.runs(), slopes_of_auc(self.runs(), area))
            variances = [square * n / (n - 1) for square, n in zip(squares, sizes, strict=True)]
        else:
            exact = self._sorted.squared_pairs() if self._sorted else squared_pairs(*self.runs()[1:3])
            variances = list(map(float, placement_variances(pairs.twice, exact, sizes)))
        degrees = welch_degrees(variances[1], sizes[1] - 1, variances[0], sizes[0] - 1)
        return RowError(math.sqrt(sum(variances)), degrees, min(sizes))

    def auc_effects(self, rows: BatchRows) -> Array | None:
        """Return the effects of users' rows on the AUC, to first order (n_users,); None if it is NaN."""
        if self.weighted:
            return self._effects("auc", self.auc, slopes_of_auc, rows)
        pairs = self.pairs()
        if not pairs.positives * pairs.negatives:
            return None
        shift = spare_bits(pairs.positives + pairs.negatives)
        return effects_on_auc(self.pairs_of_users(rows, shift), shift, rows.classes, pairs)

    def pairs_of_users(self, rows: BatchRows, shift: int = 0) -> Array:
        """Return twice the pairs that the rows of each user are in: int64 (n_users,), in steps of `2 ** shift`.

        A pair counts for each of its two rows, a tied one half. What a row counts is rounded to such a step.
        """
        if not self.weighted and sum(self.pairs()[1:]) == len(rows.scores):  # all rows: no need to look them up
            pairs = pairs_of_rows(rows.positive, rows.scores, rows.n_threads)
            return rows.sums((pairs + (1 << shift - 1)) >> shift if shift else pairs)
        if self._pair_table is None:
            self._pair_table = pairs_of_scores(self.runs(n_threads=rows.n_threads), shift)
        return rows.sums(values_of_rows(self.runs().scores, self._pair_table, 1.0, rows))

    def precision_effects(self, rows: BatchRows) -> Array | None:
        """Return the effects of users' rows on average precision by steps; None without a positive row."""
        return self._effects("average_precision", self.average_precision, slopes_of_precision, rows)

    def precision_error(self) -> RowError:
        """Return the standard error of average precision by steps of independent rows (delta method)."""
        runs = self.runs()
        if runs.positive_rows == 0:
            return NO_ERROR
        return error_of_rows(runs, slopes_of_precision(runs, self.average_precision()))

    def _effects(
        self,
        name: Hashable,
        value: Callable[[], float],
        slopes_of: Callable[[Runs, float], Array | None],
        rows: BatchRows,
    ) -> Array | None:
        """Return the effects of users' rows on a metric from its slopes, which are kept until rows are added."""
        if name not in self._slopes:
            runs, area = self.runs(n_threads=rows.n_threads), value()
            no_value = runs.positive_rows == 0 or math.isnan(area)
            slopes = None if no_value else slopes_of(runs, area)
            self._slopes[name] = None if slopes is None else (slopes * self.scale, factor_for(slopes, runs))
        table = self._slopes[name]
        return None if table is None else rows.sums(values_of_rows(self.runs().scores, *table, rows)) / table[1]

    @property
    def scale(self) -> float:
        """The factor of weights in `runs`."""
        self.runs()  # joins all rows
        weights = self._rows[0].weights if self._rows else None
        return 1.0 if weights is None else scale_of(weights)

    def average_precision(self, interpolation: Interpolation = "step") -> float:
        """Return the area under the precision-recall curve; 0 without positives.

        Parameters
        ----------
        interpolation : how precision changes between two thresholds.
            ``step``: it has the value of the lower threshold (scikit-learn). ``trapezoid``: on a straight line,
            starting at recall 0 with the precision of the first threshold (Spark; overestimates). ``davis_goadrich``:
            false positives grow in proportion to true ones (Davis & Goadrich 2006; in closed form Keilwagen 2014).
        """
        return precision_area(self.runs(), interpolation)

    def ks(self) -> float:
        """Return the largest distance of the classes' distributions (Kolmogorov, Smirnov); NaN for one class."""
        runs = self.runs()
        positives, negatives = cumulative(runs.positives), cumulative(runs.negatives)
        if not (positives[-1] > 0 and negatives[-1] > 0):
            return math.nan
        distances = distance(positives[-1], negatives[-1], positives, negatives)
        if self.weighted:
            return float(distances.max())
        at = int(distances.argmax())
        p, n, n_positives, n_negatives = (
            int(count) for count in (positives[at], negatives[at], positives[-1], negatives[-1])
        )
        return abs(p * n_negatives - n * n_positives) / (n_positives * n_negatives)

    def part_of_auc(self, *of: Any) -> float:
        """Return the area under a part of the ROC curve, given by the fields of `CurvePart`; NaN for one class."""
        return area_of_part(self.runs(), CurvePart(*of))

    def effects_on_part(self, rows: BatchRows, *of: Any) -> Array | None:
        """Return the effects of users' rows on that area, to first order (n_users,); None for one class."""
        return self._effects(
            ("part", *of), lambda: self.part_of_auc(*of), lambda runs, _: slopes_of_part(runs, CurvePart(*of)), rows
        )

    def error_of_part(self, *of: Any) -> RowError:
        """Return the standard error of that area for independent rows (delta method)."""
        slopes = slopes_of_part(self.runs(), CurvePart(*of))
        return NO_ERROR if slopes is None else error_of_rows(self.runs(), slopes)

    def log_auc(self, min_fpr: float, max_fpr: float, interpolation: str) -> float:
        """Return the mean true positive rate over the logarithm of the false positive rate; NaN for one class."""
        return log_area(self.runs(), min_fpr, max_fpr, interpolation)

    def rate_where(self, name: str, other: str, limit: float) -> float:
        """Return the largest value of a rate at thresholds where another one is at least the limit."""
        return rate_where(self._curve(), name, other, limit)

    def eer(self, interpolation: str) -> float:
        """Return the equal error rate; NaN for one class."""
        return equal_error_rate(self._curve(), interpolation)

    def _curve(self) -> CumulativeRows:
        runs = self.runs()
        tp, fp = cumulative(runs.positives), cumulative(runs.negatives)
        exact = self._exact_sums if self.weighted else lambda at: np.stack([tp, fp], axis=1)[[*at, -1]].tolist()
        return CumulativeRows(tp, fp, runs.positive_rows + runs.negative_rows, exact)

    def _exact_sums(self, places: Array) -> list[tuple[int, int]]:
        """Return the weights of positive and negative rows at or above places of the curve, and of all, as integers."""
        ((labels, scores, weights),) = self._rows  # `runs` has joined all rows
        assert weights is not None
        known = self.runs().scores
        last = len(known) + 1  # the place from which all rows count
        keys = last - np.searchsorted(known, scores, side="right") + labels * np.int64(last + 1)  # negatives first
        order = np.argsort(keys)
        ends = np.searchsorted(keys[order], np.add.outer([0, last + 1], [*places, last]), side="right").ravel()
        sums, _ = exact_sums(weights[order], ends)
        n = len(places) + 1
        return [(tp - sums[n - 1], fp) for fp, tp in zip(sums[:n], sums[n:], strict=True)]

    def ece(self, bins: int, strategy: str, norm: str = "l1") -> float:
        """Return the calibration error in bins of the scores; see `BinSums.distance`."""
        return self.bin_sums(bins, strategy).distance(norm)

    def bin_sums(self, bins: int, strategy: str) -> BinSums:
        """Return sums over the rows in bins of their scores.

        Parameters
        ----------
        strategy : which scores are in a bin.
            ``uniform``: bin b has the scores in [b / bins, (b + 1) / bins), the last one also 1. ``quantile``: rows in
            ascending score order are cut where their weight passes each multiple of the total weight divided by
            ``bins``. All rows of a tie go to the bin of its first row.
        """
        runs = self.runs()
        rows = runs.positives + runs.negatives
        squares = rows if not self.weighted else runs.positive_squares + runs.negative_squares
        numbers, starts, ends = self._find_bins(rows, bins, strategy)
        sums = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            part = slice(start, end)
            scores = runs.scores[part] * rows[part]
            gap = (scores - runs.positives[part]).sum()
            sums.append((rows[part].sum(), runs.positives[part].sum(), squares[part].sum(), scores.sum(), gap))
        columns = zip(*sums, strict=True) if sums else [()] * 5
        return BinSums(1 / self.scale, numbers, runs.scores[starts], runs.scores[ends - 1], *map(np.array, columns))

    def _find_bins(self, rows: Array, bins: int, strategy: str) -> tuple[Array, Array, Array]:
        """Return the numbers of the bins that have rows, and where their distinct scores begin and end."""
        n = len(rows)
        if strategy == "uniform":
            starts = np.searchsorted(self.runs().scores, np.arange(1, bins) / bins)
            starts, ends = np.r_[0, starts], np.r_[starts, n]
            full = np.flatnonzero(ends > starts)
            return full, starts[full], ends[full]
        if not n:
            return (np.zeros(0, np.int64),) * 3
        first_rows = np.arange(n)
        if self.weighted:  # from the weights of single rows: those of `runs`, which has joined all rows, are rounded
            ((_, scores, weights),) = self._rows
            assert weights is not None
            order = np.argsort(scores)
            rows, first_rows = weights[order], np.searchsorted(scores[order], self.runs().scores)
        own = _quantile_bins(rows, first_rows, bins)
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        return own[starts], starts, np.r_[starts[1:], n]


def _quantile_bins(weights: Array, starts: Array, bins: int) -> Array:
    """Return bins of equal weight, int64 (n_ties,): floor((weight before a tie) * bins / (total weight)).

    `weights` are of rows in ascending order of score, `starts` are the first rows of ties (single rows included).
    Rounding never decides: if a tie begins near a cut, Python's integers decide.
    """
    if weights.dtype.kind == "f":
        before = np.concatenate(([0.0], np.cumsum(weights, dtype=np.float64)))
        places = before[starts] / before[-1] * bins
        near = np.abs(places - np.rint(places)) <= places * (len(weights) + 1) * SUM_ROUNDING
        own: Array = np.minimum(places.astype(np.int64), bins - 1)
        exact, _ = exact_sums(weights, np.append(starts[near], len(weights))) if near.any() else ([0], 0)
        own[near] = [min(sum_before * bins // exact[-1], bins - 1) for sum_before in exact[:-1]]
        return own
    before = np.cumsum(weights) - weights
    of_blocks: Array = before[starts] * bins // weights.sum()
    return of_blocks


def _check_unpacked(arrays: dict[str, Array], *, weighted: bool) -> list[Array]:
    """Return the columns of `ScoreCounts.pack`, or reject others: kernels trust their types, order and signs."""
    floats = ("float32", "float64")
    kinds = {"labels": ("int8",), "scores": floats, "weights": floats}
    if not weighted:
        kinds = {"scores": ("float64",), "positives": ("int64",), "negatives": ("int64",)}
    if kinds.keys() - arrays.keys():
        raise InputError(f"sorted rows must have {', '.join(kinds)}, found {', '.join(arrays) or 'nothing'}")
    columns = [arrays[name] for name in kinds]
    for (name, allowed), column in zip(kinds.items(), columns, strict=True):
        if column.ndim != 1 or str(column.dtype) not in allowed:
            raise InputError(f"{name} of sorted rows must be {' or '.join(allowed)}, found {column.dtype}")
    if len(set(map(len, columns))) > 1:
        raise InputError("expected sorted rows, found columns of different lengths")
    if weighted:
        labels, scores, weights = columns
        right = ((labels == 0) | (labels == 1)).all() and ((weights > 0) & np.isfinite(weights)).all()
    else:
        scores, *counts = columns
        right = (scores[1:] > scores[:-1]).all() and all((count >= 0).all() for count in counts)
        right = right and np.sum(counts, dtype=np.float64) < 2.0**63
    if not right or np.isnan(scores).any():
        raise InputError("expected sorted rows with valid labels, weights and counts, found other rows")
    return columns

"""Bins of scored rows: their mean scores, the share of positives with its interval, and the calibration error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import check_choice, check_min_gain, whole_number
from fastrec.exceptions import InputError, RowNumber, shown
from fastrec.inputs.arrow import refuse_other_indexes
from fastrec.inputs.columns import LABELS, check_classes, check_lengths, check_numbers, check_row_weights, check_scores
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.users import encode_keys
from fastrec.metrics.intervals import wilson
from fastrec.scored.auc import no_threads_if_small
from fastrec.scored.clusters import USERS, RowsByUser, effective_rows
from fastrec.scored.score_counts import STRATEGIES, BinSums, ScoreCounts

Array = np.ndarray[Any, Any]
Floats = NDArray[np.float64]
MAX_BINS = 1 << 20


class RowsToBin(NamedTuple):
    """Checked rows: labels 0 or 1, scores in [0, 1], weights or None, codes of users or None."""

    labels: Array
    scores: Array
    weights: Array | None
    users: Array | None

    def take(self, chosen: Array) -> RowsToBin:
        """Return some of the rows."""
        return RowsToBin(*(None if column is None else column[chosen] for column in self))  # type: ignore[arg-type]


class Binned(NamedTuple):
    """Numbers of the bins that have rows, in ascending order of scores; the last entry of each is that of all rows.

    Only `numbers`, `lower` and `upper` have no such entry.
    """

    numbers: Array  # int64, from 0
    lower: Floats  # edge, or lowest score
    upper: Floats
    rows: Array  # int64 counts, or float64 sums of weights
    mean_score: Floats
    mean_label: Floats
    low: Floats  # interval of the mean label
    high: Floats
    users: Array | None  # int64; None without users
    ece: float


def check_bins(bins: Any, strategy: Any) -> int:
    """Return the number of bins."""
    check_choice("strategy", strategy, STRATEGIES)
    number = whole_number(bins)
    if number is None or not 1 <= number <= MAX_BINS:
        raise InputError(f"bins must be an integer from 1 to {MAX_BINS:,}, found {shown(bins)}")
    return number


def read_rows_to_bin(
    labels: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    user_ids: Any = None,
    row_groups: Any = None,
    min_gain: Any = None,
) -> RowsToBin:
    """Check rows whose scores are probabilities; of `row_groups` only the index, see `read_row_groups`."""
    of_rows = {"labels": labels, "scores": scores, "sample_weight": sample_weight, "user_ids": user_ids}
    refuse_other_indexes({**of_rows, "row_groups": row_groups})
    positive, values = _read_labels(labels, min_gain), check_scores(scores)
    check_lengths(positive, values, "scores")
    outside = (values < 0) | (values > 1)
    if outside.any():
        at = int(outside.argmax())
        raise InputError("scores must lie in [0, 1] to be calibrated, found ", str(values[at]), RowNumber.at(at))
    n = len(values)
    weights = None if sample_weight is None else check_row_weights(sample_weight, n)
    if not (n if weights is None else weights.any()):
        raise InputError("labels must have at least one row with weight, found none")
    users = None if user_ids is None else encode_keys(user_ids, n).codes
    return RowsToBin(positive, values, weights, users)


def _read_labels(labels: Any, min_gain: Any) -> Array:
    """Return which rows are positive, as int8."""
    least = check_min_gain(min_gain)
    if least is None:
        return check_classes(labels)
    numbers = check_numbers(labels, LABELS).astype(np.float64)
    if not np.isfinite(numbers).all():
        at = int((~np.isfinite(numbers)).argmax())
        raise InputError(LABELS, f" must be finite, found {numbers[at]}", RowNumber.at(at))
    return (numbers >= least).view(np.int8)


def bin_rows(rows: RowsToBin, bins: int, strategy: str, level: float, n_threads: int | None = None) -> Binned:
    """Return the bins of rows, of which at least one has weight."""
    threads = no_threads_if_small(len(rows.labels), n_threads)
    counts = ScoreCounts.of_rows(rows.labels, rows.scores, rows.weights, n_threads=threads)
    sums = counts.bin_sums(bins, strategy)
    table = None if rows.users is None else _sums_of_users(rows, sums, threads)
    return _binned(sums, bins, strategy, level, table)


def bin_counts(counts: ScoreCounts, bins: int, level: float, table: Array | None) -> Binned:
    """Return uniform bins of the counts of rows by score; `table` is of `user_sums_by_bin`."""
    sums = counts.bin_sums(bins, "uniform")
    return _binned(sums, bins, "uniform", level, None if table is None else table[[*sums.numbers.tolist(), -1]])


def user_sums_by_bin(rows: RowsByUser, scores: Array, groups: Array, n_groups: int, bins: int, threads: int) -> Array:
    """Return the tables by group and uniform bin of rows; `groups` has the number of each row's group."""
    bin_of = np.searchsorted(np.arange(1, bins) / bins, scores, side="right")
    return rows.tables(bin_of, bins, groups, n_groups, threads)


def _sums_of_users(rows: RowsToBin, sums: BinSums, n_threads: int) -> Array:
    """Return sums over users by bin that has rows."""
    assert rows.users is not None
    grouping = group_rows(rows.users, n_threads)
    labels, scores = grouping.take(rows.labels), grouping.take(rows.scores)
    weights = None if rows.weights is None else grouping.take(rows.weights)
    bin_of = np.maximum(np.searchsorted(sums.lowest, scores, side="right") - 1, 0)  # rows of weight 0 may lie below
    own, nothing = RowsByUser(labels, weights, grouping.indptr), np.zeros(len(labels), np.int64)
    (table,) = own.tables(bin_of, len(sums.numbers), nothing, 1, n_threads)
    return np.asarray(table)


def _binned(sums: BinSums, bins: int, strategy: str, level: float, table: Array | None) -> Binned:
    rows, positives, scores, squares = (
        np.append(column, column.sum()) for column in (sums.weights, sums.positives, sums.scores, sums.squares)
    )
    mean_score, mean_label = scores / rows, positives / rows
    weighted = rows.dtype.kind == "f"
    if table is None and not weighted:
        low, high = wilson(positives, rows, level)
    else:
        sizes = rows.astype(np.float64) ** 2 / squares
        if table is not None:
            sizes = np.minimum(sizes, effective_rows(table, weighted=weighted))
        low, high = wilson(mean_label * sizes, sizes, level)
    if weighted:
        rows = rows * sums.unit
    is_uniform = strategy == "uniform"
    return Binned(
        numbers=sums.numbers,
        lower=sums.numbers / bins if is_uniform else sums.lowest,
        upper=(sums.numbers + 1) / bins if is_uniform else sums.highest,
        rows=rows,
        mean_score=mean_score,
        mean_label=mean_label,
        low=low,
        high=high,
        users=None if table is None else table[:, USERS].astype(np.int64),
        ece=sums.distance("l1"),
    )

"""Area under the ROC curve of arrays of labels and scores, and a test of the difference between two."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastrec.exceptions import InputError, InputTypeError, RowNumber, shown
from fastrec.inputs.arrow import refuse_other_indexes
from fastrec.inputs.columns import (
    LABELS,
    SAMPLE_WEIGHT,
    SCORES,
    check_classes,
    check_floats,
    check_lengths,
    check_scores,
)
from fastrec.metrics.errors import root
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.areas import placement_variances, sum_of_squares
from fastrec.scored.score_counts import ScoreCounts
from fastrec.scored.sorting import SMALL_ROWS, ScoredRows, pairs_of_rows

Array = np.ndarray[Any, Any]
SMALLEST_SHARE = 1e-300  # of a weight in the largest; below, weights that are scaled to about 1 lose digits
ROWS_PER_SUM = 1 << 14  # small parts stay in the L2 cache, and their squares add up in 63 bits


# Input


def read_rows(labels: Any, scores: Any, sample_weight: Any = None) -> ScoredRows:
    """Check rows, except for NaN scores: the sort finds those without an extra pass."""
    refuse_other_indexes({LABELS: labels, SCORES: scores, SAMPLE_WEIGHT: sample_weight})
    classes, numbers = check_classes(labels), check_floats(scores, SCORES)
    check_lengths(classes, numbers, "scores")
    return ScoredRows(classes, numbers, None if sample_weight is None else _read_weights(sample_weight, classes))


def _read_weights(sample_weight: Any, labels: Array) -> Array:
    """Return weights as float32 or float64, of any size: they are scaled before they are multiplied."""
    weights = check_floats(sample_weight, SAMPLE_WEIGHT)
    check_lengths(labels, weights, "sample_weight")
    if not len(weights):
        return weights
    least, largest = float(weights.min()), float(weights.max())
    if not (least >= 0 and largest < math.inf):
        at = int((~((weights >= 0) & (weights < math.inf))).argmax())
        raise InputError(SAMPLE_WEIGHT, f" must be finite and at least 0, found {weights[at]}", RowNumber.at(at))
    if largest == 0:
        raise InputError("sample_weight must not be 0 for every row")
    if least == 0:
        least = float(weights[weights > 0].min())
    if least < largest * SMALLEST_SHARE:
        found = f"found {least:g} and {largest:g}"
        raise InputError(SAMPLE_WEIGHT, f" above 0 must be at least {SMALLEST_SHARE:g} of the largest, {found}")
    return weights


def _read_max_fpr(max_fpr: Any) -> float | None:
    """Return the limit, or None for the whole range."""
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


def no_threads_if_small(n: int, n_threads: int | None) -> int:
    """Return the number of threads to use for n rows."""
    threads = resolve_threads(n_threads)
    return 1 if n < SMALL_ROWS else threads


def auc(
    labels: Any, scores: Any, *, sample_weight: Any = None, max_fpr: float | None = None, n_threads: int | None = None
) -> float:
    """Return the area under the ROC curve: P(score of a positive > score of a negative) + 1/2 P(equal).

    Without weights, pairs are counted in integers and divided once: the result is the double nearest to the exact
    value, for any number of rows and threads. With weights, rows are added in the order (score, label, weight): the
    bits are the same for any order of the rows and number of threads.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Higher is more likely positive. Scores are compared in their own precision; other numbers are converted.
        Infinities are scores like others, -0.0 equals 0.0.
    sample_weight : array (n,), optional
        Finite, at least 0, not all 0; those above 0 at least 1e-300 of the largest.
    max_fpr : float in (0, 1], optional
        Only the area up to this false positive rate, standardised so that chance is 1/2 and a perfect order 1
        (McClish 1989).
    n_threads : int, optional
        Threads; by default all that the process may use.

    Returns
    -------
    float
        In [0, 1]; NaN, without a warning, if there are no rows or only one class has rows (or weight).

    Raises
    ------
    InputError, InputTypeError
        For labels other than 0 and 1, NaN scores, different lengths, and weights that are negative, infinite, NaN or
        all 0.

    Notes
    -----
    Bamber 1975; Hanley & McNeil 1982. Tied rows are one threshold, so a tied pair counts half. The call needs
    memory for one more copy of the scores; of float64, with `max_fpr` for some seven, with weights for some fourteen.

    Examples
    --------
    >>> from fastrec import auc
    >>> auc([0, 1, 0, 1, 1], [3, 2, 2, 2, 1])
    0.16666666666666666
    """
    limit = _read_max_fpr(max_fpr)
    rows = read_rows(labels, scores, sample_weight)
    threads = no_threads_if_small(len(rows.labels), n_threads)
    return ScoreCounts.of_rows(*rows, n_threads=threads).auc(limit)


# Two models


class AucTest(NamedTuple):
    """Result of `auc_test`; p_value is two-sided."""

    auc_a: float
    auc_b: float
    difference: float
    std_error: float
    z: float
    p_value: float


def auc_test(labels: Any, scores_a: Any, scores_b: Any) -> AucTest:
    """Test whether two models have the same AUC on the same rows (DeLong, DeLong & Clarke-Pearson 1988).

    The test compares each row's placement between the models: the share of the other class that the row is ordered
    correctly against, ties counting half. ``var = var(differences of positives) / P + var(differences of negatives)
    / N``, with the variances divided by P - 1 and N - 1. Rows are assumed to be independent. Rows of one user are not,
    and then the error is too small.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores_a, scores_b : array (n,), float32 or float64
        Scores of two models for the same rows. Scores of different models are never compared, so scales may differ.

    Returns
    -------
    AucTest
        ``auc_a``, ``auc_b``, ``difference`` (a - b), its ``std_error``, ``z`` and the two-sided ``p_value`` of the
        normal distribution. If the error is exactly 0 (all differences equal, as for two models with the same
        order), equal AUCs give z = 0 and p = 1, others z = +-inf and p = 0. Error, z and p are NaN if a class has
        fewer than two rows; all values are NaN if it has none.

    Raises
    ------
    InputError, InputTypeError
        For labels other than 0 and 1, NaN scores, and different lengths.

    Examples
    --------
    >>> from fastrec import auc_test
    >>> test = auc_test(
    ...     [0, 0, 0, 1, 1, 1],
    ...     [0.1, 0.4, 0.2, 0.3, 0.8, 0.9],
    ...     [0.6, 0.4, 0.2, 0.1, 0.3, 0.7],
    ... )
    >>> round(test.difference, 4), round(test.std_error, 4), round(test.p_value, 4)
    (0.4444, 0.2485, 0.0736)
    """
    refuse_other_indexes({LABELS: labels, "scores_a": scores_a, "scores_b": scores_b})
    classes = check_classes(labels)
    threads = no_threads_if_small(len(classes), None)
    models = {"scores_a": scores_a, "scores_b": scores_b}
    for name, values in models.items():
        models[name] = check_scores(values, name)
        check_lengths(classes, models[name], name)
    own, other = (pairs_of_rows(classes, scores, threads) for scores in models.values())
    n_positives = int(np.count_nonzero(classes))
    sizes = len(classes) - n_positives, n_positives
    if not all(sizes):
        return AucTest(*[math.nan] * 6)
    twice = [_exact_sum(pairs, np.sum) // 2 for pairs in (own, other)]  # each pair counts for both of its rows
    size, apart = 2 * sizes[0] * sizes[1], twice[0] - twice[1]
    areas = twice[0] / size, twice[1] / size, apart / size
    if min(sizes) < 2:
        return AucTest(*areas, math.nan, math.nan, math.nan)
    squares = [_exact_sum((own - other)[classes == label], sum_of_squares) for label in (0, 1)]
    std_error = root(*sum(placement_variances(apart, squares, sizes)).as_integer_ratio())
    z = 0.0 if apart == 0 else areas[2] / std_error if std_error > 0 else math.copysign(math.inf, apart)
    return AucTest(*areas, std_error, z, math.erfc(abs(z) / math.sqrt(2)))


def _exact_sum(values: Array, of: Callable[[Array], int]) -> int:
    """Return the exact sum of a function of parts of integers between -2^40 and 2^40."""
    return sum(int(of(part)) for part in np.array_split(values, len(values) // ROWS_PER_SUM + 1))

"""Scores of several classes per row: areas under ROC curves, and log loss."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import check_choice
from fastrec.exceptions import InputError, InputTypeError, RowNumber, shown_number, warn
from fastrec.inputs.arrow import refuse_other_indexes
from fastrec.inputs.columns import check_lengths, check_row_weights, refuse_rounded, refuse_rounded_list
from fastrec.inputs.ragged import as_array
from fastrec.scored.auc import no_threads_if_small
from fastrec.scored.classes import as_classes, encode_classes
from fastrec.scored.keys import auc_of_rows

Array = np.ndarray[Any, Any]
AVERAGES = ("macro", "weighted", "micro", "none")
SCHEMES = ("ovr", "ovo")
COLUMNS = "the columns of scores"
DECIMALS = range(2, 10)  # of rounded probabilities; more are as good as exact
LOOSEST = 0.05  # that rounding may take from the sum of a row: with more, the loss tells little of the exact scores


class _ClassRows(NamedTuple):
    """Checked rows: the position of the class of each row, scores (n, C), weights or None."""

    codes: Array
    scores: Array
    weights: Array | None
    n_threads: int = 1

    def weight_of(self, chosen: Array) -> float:
        """Return the number of rows at positions, or the sum of their weights."""
        return float(len(chosen)) if self.weights is None else math.fsum(self.weights[chosen].tolist())

    def auc(self, at: int, chosen: Array | None = None) -> float:
        """Return the area of a class against the others among chosen rows, by default all; NaN without one of both."""
        labels, scores, weights = self.codes == at, self.scores[:, at], self.weights
        if chosen is not None:
            labels, scores = labels[chosen], scores[chosen]
            weights = None if weights is None else weights[chosen]
        if not len(labels):
            return math.nan
        return auc_of_rows(labels.view(np.int8), np.ascontiguousarray(scores), weights, n_threads=self.n_threads)


def multiclass_auc(
    labels: Any,
    scores: Any,
    *,
    classes: Any = None,
    scheme: str = "ovr",
    average: str = "macro",
    sample_weight: Any = None,
    n_threads: int | None = None,
) -> Any:
    """Return the area under the ROC curve of several classes, as a mean over classes or over pairs of classes.

    Parameters
    ----------
    labels : array (n,) of integers, bools or strings
        The class of each row.
    scores : array (n, C) of numbers
        The score of each class, higher if more likely. Only their order in a column counts: they need not add to 1.
    classes : array (C,), optional
        The class of each column. Default: the columns of a data frame if one is the name of a label and they are not
        0, 1, 2, ...; else the sorted classes of `labels`, which then must be C.
    scheme : "ovr" or "ovo"
        ``"ovr"``: one versus the rest, the area of each class against all others (Provost & Domingos 2001). ``"ovo"``:
        one versus one, for each pair of classes the mean of the areas of each against the other, in the rows of the two
        (Hand & Till 2001); it does not depend on how frequent classes are.
    average : "macro", "weighted", "micro" or "none"
        ``"macro"``: the mean over classes or pairs. ``"weighted"``: weighted by the rows of the class, or of both
        classes of a pair. Only of ``"ovr"``: ``"micro"``, one area of all scores and whether they are of the row's
        class, and ``"none"``, float64 (C,).
    sample_weight : array (n,) of numbers, optional
        Each weight is 0, or from 1e-100 to 1e100.
    n_threads : int, optional

    Returns
    -------
    float, or float64 (C,)
        Equal scores count as half. Classes without rows, or without rows of others, have no area: they are NaN in
        ``"none"`` and left out of means; a mean over none is NaN.

    Raises
    ------
    InputError, InputTypeError
        If a label is not in `classes`, a score is NaN, or shapes differ.

    Examples
    --------
    >>> scores = [
    ...     [0.7, 0.2, 0.1],
    ...     [0.2, 0.5, 0.3],
    ...     [0.3, 0.4, 0.3],
    ...     [0.1, 0.6, 0.3],
    ... ]
    >>> fastrec.multiclass_auc(["a", "b", "c", "c"], scores, average="none").round(
    ...     4
    ... ).tolist()
    [1.0, 0.6667, 0.75]
    >>> round(fastrec.multiclass_auc(["a", "b", "c", "c"], scores, scheme="ovo"), 4)
    0.8333
    """
    check_choice("scheme", scheme, SCHEMES)
    check_choice("average", average, AVERAGES if scheme == "ovr" else AVERAGES[:2])
    rows = _read(labels, scores, classes, sample_weight, n_threads)
    if average == "micro":
        return _micro(rows)
    n_classes = rows.scores.shape[1]
    if scheme == "ovo":
        return _mean(list(_pairs(rows)), average)
    found = [(rows.auc(at), rows.weight_of(np.flatnonzero(rows.codes == at))) for at in range(n_classes)]
    return np.array([area for area, _ in found]) if average == "none" else _mean(found, average)


def _pairs(rows: _ClassRows) -> Iterator[tuple[float, float]]:
    """Yield the mean area of each pair of classes, and the weight of its rows."""
    members = [np.flatnonzero(rows.codes == at) for at in range(rows.scores.shape[1])]
    for one, other in itertools.combinations(range(len(members)), 2):
        chosen = np.concatenate([members[one], members[other]])
        yield (rows.auc(one, chosen) + rows.auc(other, chosen)) / 2, rows.weight_of(chosen)


def _micro(rows: _ClassRows) -> float:
    n, n_classes = rows.scores.shape
    labels = rows.codes[:, None] == np.arange(n_classes)
    weights = None if rows.weights is None else np.repeat(rows.weights, n_classes)
    if not n:
        return math.nan
    return auc_of_rows(labels.ravel().view(np.int8), rows.scores.ravel(), weights, n_threads=rows.n_threads)


def _mean(found: list[tuple[float, float]], average: str) -> float:
    """Return the mean of areas, equally or by their weights, without those that are NaN."""
    known = [(area, weight if average == "weighted" else 1.0) for area, weight in found if not math.isnan(area)]
    whole = math.fsum(weight for _, weight in known)
    return math.fsum(area * weight for area, weight in known) / whole if known else math.nan


def multiclass_log_loss(labels: Any, scores: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Return the cross entropy of the probabilities of several classes, in nats.

    The sum of -w ln p over the sum of w, where p is the probability of the row's class, clipped to [eps, 1 - eps] with
    the machine epsilon of float32 or float64 scores (float32 for float16), as in `log_loss` of two classes.

    Parameters
    ----------
    labels : array (n,) of integers, bools or strings
        The class of each row.
    scores : array (n, C) of numbers
        The probability of each class, from 0 to 1. Each row must add to 1, but for the root of the machine epsilon.
        Scores rounded to 2 or more decimals may miss 1 by half a unit of the last decimal per class, at most by 0.05,
        with a warning. They are taken as they are: no row is scaled to 1, and a probability rounded to 0 is clipped.
    classes : array (C,), optional
        The class of each column. Default: the columns of a data frame if one is the name of a label and they are not
        0, 1, 2, ...; else the sorted classes of `labels`, which then must be C.
    sample_weight : array (n,) of numbers, optional
        Each weight is 0, or from 1e-100 to 1e100.

    Returns
    -------
    float
        NaN without rows.

    Raises
    ------
    InputError, InputTypeError
        If a label is not in `classes`, a score is no probability, a row does not add to 1, or shapes differ.

    Examples
    --------
    >>> scores = [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]
    >>> round(
    ...     fastrec.multiclass_log_loss(
    ...         ["a", "c"], scores, classes=["a", "b", "c"]
    ...     ),
    ...     12,
    ... )
    0.458145365937
    """
    rows = _read(labels, scores, classes, sample_weight, 1)
    _check_probabilities(rows.scores)
    eps = float(np.finfo(rows.scores.dtype).eps)
    own = rows.scores[np.arange(len(rows.codes)), rows.codes].astype(np.float64)
    losses = [-math.log(p) for p in np.clip(own, eps, 1 - eps).tolist()]  # NumPy's logarithm differs between processors
    if rows.weights is None:
        return math.fsum(losses) / len(losses) if losses else math.nan
    whole = math.fsum(rows.weights.tolist())
    return math.fsum(map(float.__mul__, rows.weights.tolist(), losses)) / whole if whole else math.nan


def _read(labels: Any, scores: Any, classes: Any, sample_weight: Any, n_threads: int | None) -> _ClassRows:
    """Check rows and the classes of columns."""
    refuse_other_indexes({"labels": labels, "scores": scores, "sample_weight": sample_weight}, frames=True)
    own, table = as_classes(labels, "labels"), _read_scores(scores)
    check_lengths(own, table, "scores")
    names, what = _classes_of_columns(own, _labels_of_columns(scores), classes)
    if len(names) != table.shape[1]:
        hint = ": pass classes= with the class of each column" if classes is None else ""
        raise InputError(f"scores have {table.shape[1]} columns, but {what} have {len(names)} classes{hint}")
    codes = _positions(own, names, "classes" if what == "labels" else what)
    weights = None if sample_weight is None else check_row_weights(sample_weight, len(own))
    return _ClassRows(codes, table, weights, no_threads_if_small(len(own), n_threads))


def _labels_of_columns(scores: Any) -> list[Any]:
    """Return the labels of the columns of a data frame; [] for 0, 1, 2, ... and for other forms."""
    found = getattr(scores, "column_names" if hasattr(type(scores), "column_names") else "columns", None)
    labels = [] if found is None else list(found)
    return [] if labels == list(range(len(labels))) else labels


def _classes_of_columns(labels: Array, columns: list[Any], classes: Any) -> tuple[Array, str]:
    """Return the class of each column of scores, and what gives it: an argument, or the columns themselves."""
    if classes is not None:
        names = as_classes(classes, "classes")
        if names.tolist() != columns and len(names) == len(columns) and set(names.tolist()) == set(columns):
            raise InputError("classes has the columns of scores in another order: leave it out, or pass to_numpy()")
        return names, "classes"
    distinct = np.unique(labels)
    if {*columns, *map(str, columns)}.isdisjoint([*distinct.tolist(), *map(str, distinct.tolist())]):
        return distinct, "labels"
    return as_classes(columns, COLUMNS), COLUMNS


def _read_scores(scores: Any) -> Array:
    table = as_array(scores, "scores")
    if table.ndim != 2 or not table.shape[1]:
        raise InputError(f"scores must have a row per label and a column per class, found shape {table.shape}")
    if table.dtype.kind not in "iuf":
        raise InputTypeError(f"scores must hold numbers, found dtype {table.dtype}")
    if table.dtype.kind in "iu":
        refuse_rounded(table.reshape(-1), "scores", "position")
    refuse_rounded_list(scores, table, "scores", "position")
    single = table.dtype.kind == "f" and table.dtype.itemsize <= 4
    table = np.ascontiguousarray(table, dtype=np.float32 if single else np.float64)
    wrong = np.isnan(table).any(axis=1)
    if wrong.any():
        raise InputError("scores must not be NaN, found NaN", RowNumber.at(int(wrong.argmax())))
    return table


def _positions(labels: Array, names: Array, what: str) -> Array:
    """Return the position of each label among the classes."""
    if not len(labels):
        return np.zeros(0, np.int64)
    distinct, codes = encode_classes(names, labels, f"{what} and labels")
    places = np.full(len(distinct), -1)
    places[codes[: len(names)]] = np.arange(len(names))
    if len(np.unique(codes[: len(names)])) < len(names):
        raise InputError(f"{what} must differ, found one twice")
    own: Array = places[codes[len(names) :]]
    if (own < 0).any():
        at = int((own < 0).argmax())
        mend = "" if what == "classes" else ": pass classes= with the class of each column"
        raise InputError(f"labels must be in {what}, found {labels[at]!r}", RowNumber.at(at), mend)
    return own


def _check_probabilities(table: Array) -> None:
    outside = ~((table >= 0) & (table <= 1)).all(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise InputError(f"scores must be probabilities from 0 to 1, found {table[at].tolist()}", RowNumber.at(at))
    sums, slack = table.sum(axis=1, dtype=np.float64), math.sqrt(np.finfo(table.dtype).eps)
    if not (np.abs(sums - 1) > slack).any():
        return
    exact = table.astype(np.float64)
    digits = next((d for d in DECIMALS if (np.round(exact, d).astype(table.dtype) == table).all()), math.inf)
    off = np.abs(sums - 1) - slack - min(table.shape[1] / 2 * 10.0**-digits, LOOSEST)  # half a unit per class
    at = int((off > 0).argmax() if (off > 0).any() else off.argmax())
    if off[at] > 0:
        raise InputError(f"scores of a row must add to 1, found {shown_number(sums[at])}", RowNumber.at(at))
    how = f"scores are rounded to {digits} decimals, and a row adds to {round(float(sums[at]), int(digits))}"
    warn([f"{how}: the loss is that of the rounded scores, which are not scaled to 1"])

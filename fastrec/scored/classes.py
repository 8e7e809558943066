"""Tables of classes: precision, recall and F of each of several classes, and their averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import is_whole
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.inputs.arrow import refuse_other_indexes
from fastrec.inputs.columns import check_lengths, check_row_weights
from fastrec.inputs.ragged import as_array
from fastrec.inputs.users import number_codes
from fastrec.metrics import confusion as formulas
from fastrec.metrics.statistics import ratio
from fastrec.runtime.threads import once
from fastrec.scored.confusion import SHOWN, check_beta, divided, more_rows
from fastrec.show.numbers import rate, shown_count
from fastrec.show.tables import Table
from fastrec.show.text import text_lines

Array = np.ndarray[Any, Any]
Floats = NDArray[np.float64]
MAX_CELLS = 1 << 28  # of a matrix of classes: 2 GB
AVERAGES = ("macro", "micro", "weighted", "none")


class ClassCounts:
    """Rows counted by true and predicted class, as returned by `count_classes`.

    Attributes
    ----------
    classes : array (C,), sorted
        The classes that occur in labels or predictions.
    tp, fp, fn, support : int64 (C,), float64 sums of weights with `sample_weight`
        Rows per class. ``tp``: rows of the class that are predicted as it. ``fp``: rows of other classes that are
        predicted as it. ``fn``: rows of the class that are predicted as another. ``support``: tp + fn.
    pairs : (true, predicted, count)
        The pairs of classes that occur, as positions in `classes`, and their numbers of rows.

    Methods average over classes by

    - `macro`: the mean over the classes that occur in labels or predictions;
    - `micro`: one value from the counts pooled over classes, which is the accuracy;
    - `weighted`: the mean weighted by support;
    - `none`: no mean, float64 (C,).

    A class with a denominator of 0 has the value `zero_division` (0, 1 or nan); nan leaves it out of the means. A mean
    over no classes has this value, too.

    Examples
    --------
    >>> fastrec.count_classes(
    ...     ["cat", "cat", "dog", "eel"], ["cat", "dog", "dog", "dog"]
    ... )
    class     precision  recall      f1  support
    cat          1.0000  0.5000  0.6667        2
    dog          0.3333  1.0000  0.5000        1
    eel          0.0000  0.0000  0.0000        1
    macro        0.4444  0.5000  0.3889        4
    weighted     0.5833  0.5000  0.4583        4
    accuracy 0.5000
    """

    def __init__(self, classes: Array, true: Array, predicted: Array, count: Array) -> None:
        def total(of: Array, where: Array) -> Array:
            # bincount adds in float64, which is exact for counts below 2^53
            return np.bincount(of[where], count[where], len(classes)).astype(count.dtype, copy=False)

        right = true == predicted
        self.classes = classes
        self.pairs = true, predicted, count
        self.tp = total(true, right)
        self.fp = total(predicted, ~right)
        self.fn = total(true, ~right)
        self.support = self.tp + self.fn

    @once
    def matrix(self) -> Array:
        """Rows of each true class (first axis) predicted as each class (second axis), (C, C).

        Raises
        ------
        InputError : if it has more than 2^28 cells; `pairs` holds the same counts without the zeros.
        """
        n = len(self.classes)
        if n * n > MAX_CELLS:
            raise InputError(
                f"a matrix of {n:,} x {n:,} classes would take {n * n * 8 / 1e9:,.1f} GB: use `pairs`, which holds the "
                "counts that are not 0"
            )
        true, predicted, count = self.pairs
        matrix = np.zeros((n, n), count.dtype)
        matrix[true, predicted] = count
        return matrix

    def precision(self, average: str = "macro", zero_division: float = 0.0) -> Any:
        """Return the share of the rows predicted as a class that are of it: tp / (tp + fp)."""
        return self._averaged(formulas.precision, average, zero_division)

    def recall(self, average: str = "macro", zero_division: float = 0.0) -> Any:
        """Return the share of the rows of a class that are predicted as it: tp / (tp + fn)."""
        return self._averaged(formulas.recall, average, zero_division)

    def f_beta(self, beta: float = 1.0, average: str = "macro", of: str = "classes", zero_division: float = 0.0) -> Any:
        """Return the weighted harmonic mean of precision and recall (van Rijsbergen 1979, ch. 7), beta from 0 to 1000.

        `of="classes"`: the mean of the classes' own values, (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp).
        `of="means"`: (1 + beta^2) P R / (beta^2 P + R) of the averages P of precision and R of recall, 0 if both
        are 0. Publications call either one macro F1; the second is never smaller (Opitz & Burst 2019).
        """
        if of not in ("classes", "means"):
            raise InputError(f"of must be classes or means, found {shown(of)}")
        if of == "means" and average == "none":
            raise InputError("of='means' needs an average: macro, micro or weighted")
        square = check_beta(beta) ** 2
        if of == "classes":
            return self._averaged(lambda cells: formulas.f_beta(cells, square), average, zero_division)
        p, r = self.precision(average, zero_division), self.recall(average, zero_division)
        return float(ratio(*formulas.f_of_rates(p, r, square)))

    def accuracy(self, zero_division: float = 0.0) -> float:
        """Return the share of the rows with a correct prediction."""
        return _total_share(self.tp, self.support, zero_division)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict per class: class, precision, recall, f1, support, tp, fp, fn; plain Python values."""
        columns = {
            "class": self.classes,
            "precision": self.precision("none"),
            "recall": self.recall("none"),
            "f1": self.f_beta(average="none"),
            "support": self.support,
            "tp": self.tp,
            "fp": self.fp,
            "fn": self.fn,
        }
        return [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]

    def _averaged(
        self, formula: Callable[[formulas.CountedCells], formulas.Share], average: str, zero_division: float
    ) -> Any:
        _check_average(average)
        share = formula(formulas.CountedCells(self.tp, self.fp, self.fn))
        if average == "micro":
            return _total_share(*share, zero_division)
        values = divided(share, zero_division)
        if average == "none":
            return values
        weights = np.where(np.isnan(values), 0.0, self.support if average == "weighted" else 1.0)
        return _total_share(weights * np.nan_to_num(values), weights, zero_division)

    def __repr__(self) -> str:
        """Return an aligned table of the classes and their means."""
        names = ["precision", "recall", "f1"]
        rows = [
            [str(row["class"]), *(rate(row[name]) for name in names), shown_count(row["support"])]
            for row in self.to_rows()[:SHOWN]
        ]
        total = shown_count(self.support.sum().item())
        means = [
            [name, rate(self.precision(name)), rate(self.recall(name)), rate(self.f_beta(average=name)), total]
            for name in ("macro", "weighted")
        ]
        lines = text_lines(Table("", ["class", *names, "support"], [*rows, *means]))
        lines[len(rows) + 1 : len(rows) + 1] = more_rows(len(self.classes), "classes")
        return "\n".join([*lines, f"accuracy {rate(self.accuracy())}"])


def count_classes(labels: Any, predictions: Any, *, sample_weight: Any = None) -> ClassCounts:
    """Count rows by true and predicted class, for precision, recall and F of several classes.

    Parameters
    ----------
    labels : array (n,) of integers, bools or strings
        The true class of each row.
    predictions : array (n,) of the same kind
        The predicted class.
    sample_weight : array (n,) of numbers, optional
        Rows are weighted instead of counted; each weight is 0, or from 1e-100 to 1e100.

    Returns
    -------
    ClassCounts
        `classes`, `tp`, `fp`, `fn`, `support`, `matrix`, and `precision()`, `recall()`, `f_beta()`, `accuracy()`.
        `classes` includes the classes of rows of weight 0.

    Raises
    ------
    InputTypeError
        If classes are neither integers nor strings, or strings in one argument and integers in the other.
    InputError
        If lengths differ, or a weight is negative or not finite.

    Examples
    --------
    >>> counts = fastrec.count_classes([0, 1, 2, 2], [0, 2, 2, 2])
    >>> counts.matrix.tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 2]]
    >>> counts.recall("none").tolist(), counts.accuracy()
    ([1.0, 0.0, 1.0], 0.75)
    >>> round(counts.f_beta(), 12), round(counts.f_beta(of="means"), 12)
    (0.6, 0.606060606061)
    """
    refuse_other_indexes({"labels": labels, "predictions": predictions, "sample_weight": sample_weight})
    true, predicted = _as_classes(labels, "labels"), _as_classes(predictions, "predictions")
    check_lengths(true, predicted, "predictions")
    weights = None if sample_weight is None else check_row_weights(sample_weight, len(true))
    classes, codes = _encode(true, predicted)
    return ClassCounts(classes, *_count_pairs(codes[: len(true)], codes[len(true) :], weights, len(classes)))


def _check_average(average: Any) -> None:
    if not isinstance(average, str) or average not in AVERAGES:
        raise InputError(f"average must be one of {', '.join(AVERAGES)}, found {shown(average)}")


def _total_share(part: Array, whole: Array, zero_division: Any) -> float:
    """Return the ratio of the sums over all classes."""
    return float(divided((part.sum(keepdims=True), whole.sum(keepdims=True)), zero_division)[0])


# Classes


def _as_classes(values: Any, name: str) -> Array:
    """Return classes as a 1-D array of integers, bools or (object) strings."""
    array = _one_kind(values, name) if isinstance(values, (list, tuple)) else as_array(values, name)
    if array.ndim != 1:
        raise InputError(f"{name} must be 1-D, found shape {array.shape}")
    if array.dtype == object:
        array = _one_kind(array.tolist(), name)
    if array.dtype.kind == "T":
        return array.astype(object)
    if not len(array) and array.dtype.kind == "f":  # NumPy's type of empty lists
        return np.zeros(0, np.int64)
    if array.dtype.kind not in "iubUO":
        raise InputTypeError(f"{name} must be integers or strings, found dtype {array.dtype}")
    return array


def _one_kind(values: Iterable[Any], name: str) -> Array:
    """Return an array of all integers, all bools or all strings; NumPy would turn a mixture into strings."""
    values = list(values)
    kinds = set(map(type, values))
    if all(issubclass(kind, str) for kind in kinds):
        strings = np.empty(len(values), object)
        strings[:] = values
        return strings
    if kinds <= {bool, np.bool_}:
        return np.array(values, np.bool_)
    if all(map(is_whole, kinds)):
        lowest, highest = min(values), max(values)
        if lowest < -(2**63) or highest >= 2 ** (63 if lowest < 0 else 64):
            raise InputError(f"{name} must fit 64 bits, found {shown(max(values, key=abs))}")
        return np.array(values, np.uint64 if highest >= 2**63 else np.int64)
    if all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        raise InputError(f"{name} must be 1-D, found rows of several values")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise InputTypeError(f"{name} must be all integers or all strings, found {names}")


def _encode(labels: Array, predictions: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the sorted classes of both, and the position of each row's class in them, labels first."""
    if not len(labels):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    are_strings = [array.dtype.kind in "UO" for array in (labels, predictions)]
    if are_strings[0] != are_strings[1]:
        found = " and ".join("strings" if is_string else "integers" for is_string in are_strings)
        raise InputTypeError(f"labels and predictions must be of one kind, found {found}")
    if are_strings[0]:
        values = labels.tolist() + predictions.tolist()
        names = sorted(set(values))
        position = {name: at for at, name in enumerate(names)}
        return np.array(names, np.str_), np.fromiter(map(position.__getitem__, values), np.int64, len(values))
    lowest, highest = min(int(labels.min()), int(predictions.min())), max(int(labels.max()), int(predictions.max()))
    if highest >= 2**63 and lowest < 0:
        raise InputError(f"labels and predictions must fit 64 bits together, found {lowest} and {highest}")
    if highest >= 2**63:
        return np.unique(np.concatenate([labels, predictions], dtype=np.uint64, casting="unsafe"), return_inverse=True)
    codes, classes = number_codes(np.concatenate([labels, predictions], dtype=np.int64, casting="unsafe"))
    are_bools = labels.dtype == predictions.dtype == np.bool_
    return classes.astype(np.bool_ if are_bools else np.int64), codes


def _count_pairs(
    true: NDArray[np.int64], predicted: NDArray[np.int64], weights: Floats | None, n_classes: int
) -> tuple[Array, Array, Array]:
    """Return the sorted pairs of classes that occur, and the rows or the weight of each."""
    row_of, pairs = number_codes(true * n_classes + predicted)
    count = np.bincount(row_of, weights, len(pairs))
    occurs, n = count > 0, max(n_classes, 1)
    return pairs[occurs] // n, pairs[occurs] % n, count[occurs]

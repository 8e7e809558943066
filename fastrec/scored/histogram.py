"""Histogram of scores with a fixed number of bins: bounds on the area under the ROC curve in little memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import whole_number
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.inputs.columns import SCORES, check_numbers, check_whole, refuse_nan
from fastrec.inputs.ragged import read_only
from fastrec.kernels.sorting import count_classes_by_bin
from fastrec.runtime.launcher import launch
from fastrec.runtime.shared import Shared, synchronized
from fastrec.scored.areas import ROUNDING, pairs_won
from fastrec.scored.auc import no_threads_if_small, read_rows
from fastrec.scored.sorting import FORMS, chunks_of

Array = np.ndarray[Any, Any]
MAX_ROWS = 2**53  # of a class in a bin


# Bounded


class BoundedAuc(NamedTuple):
    """An approximate AUC; the exact AUC is within ``bound`` of ``auc``."""

    auc: float
    bound: float


class ScoreHistogram(Shared):
    """Counts of all rows so far by the leading bits of their scores: mergeable, small, with a certified bound.

    A row is counted by its class and its bin: the first ``bits`` bits of its float32 score, of which sign and exponent
    take 9. Bins are in the order of the scores. Scores within about 1 part in 2^(bits - 9) may share a bin, at any
    magnitude. The order of pairs in different bins is certain; pairs in one bin count half.

    Parameters
    ----------
    bits : int
        16 to 22. The counts take 2^(bits + 4) bytes of address space; only bins that occur take memory.

    Raises
    ------
    InputError, InputTypeError
        If ``bits`` is not an integer from 16 to 22.

    Examples
    --------
    >>> from fastrec import ScoreHistogram
    >>> seen = ScoreHistogram(16)
    >>> seen.add([0, 1, 0, 1], [0.1, 0.2, 0.7, 0.7001])
    >>> seen.auc(), round(seen.error_bound, 12)
    (0.625, 0.125)
    """

    def __init__(self, bits: int = 22) -> None:
        super().__init__()
        number = whole_number(bits)
        if number is None:
            raise InputTypeError(f"bits must be an integer, found {shown(bits)}")
        if not 16 <= number <= 22:
            raise InputError(f"bits must be from 16 to 22, found {shown(number)}")
        self.bits = number
        self._counts = np.zeros(2 << number, np.int64)
        self._span = np.array([1 << number, 0])  # the lowest bin with a row, and the bin after the highest

    def add(self, labels: Any, scores: Any, *, n_threads: int | None = 1) -> None:
        """Add rows.

        Parameters
        ----------
        labels, scores : array (n,)
            As for `bounded_auc`.
        n_threads : int, optional
            Threads; None for all that the process may use.

        Raises
        ------
        InputError, InputTypeError
            As for `bounded_auc`. After a NaN score, or an interrupt, the state is unusable and every call raises an
            error; after other errors it is as before.
        """
        rows = read_rows(labels, scores)
        self._add(rows.labels, rows.scores, no_threads_if_small(len(rows.labels), n_threads))

    @synchronized
    def _add(self, labels: Array, scores: Array, n_threads: int) -> None:
        """Add checked rows: labels (n,) 0 or 1 as int8, scores (n,) float32 or float64, contiguous."""
        counts, spans = self._counts[None], self._span[None]
        if n_threads > 1:
            counts = np.zeros((n_threads, len(self._counts)), np.int64)
            spans = np.tile([1 << self.bits, 0], (n_threads, 1))
        cuts, has_nan = chunks_of(len(labels), n_threads), np.empty(n_threads, np.bool_)
        columns = read_only(labels.view(np.int8)), read_only(scores)
        given = (*columns, cuts, FORMS[4].infinity, 32 - self.bits, counts, spans, has_nan)
        with self._changing():
            launch(count_classes_by_bin, n_threads, *given, work=8 * len(labels), n_threads=n_threads)
            if has_nan.any():
                refuse_nan(scores, SCORES)
            if n_threads > 1:
                first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
                self._counts[2 * first : 2 * last] += counts[:, 2 * first : 2 * last].sum(axis=0)
                self._widen(first, last)

    def _widen(self, first: int, last: int) -> None:
        """Take note that bins of first:last have rows."""
        self._span = np.array([min(self._span[0], first), max(self._span[1], last)])

    def _occupied(self) -> Array:
        return self._counts[2 * self._span[0] : 2 * self._span[1]]

    def merge(self, other: ScoreHistogram) -> None:
        """Add the counts of another histogram with the same bits."""
        if not isinstance(other, ScoreHistogram):
            raise InputTypeError(f"merge takes a ScoreHistogram, found {type(other).__name__}")
        if self.bits != other.bits:
            raise InputError(f"histograms must have the same bits to be merged, found {self.bits} and {other.bits}")
        with self._both_locked(other):
            self._add_bins(*other.pack().values())

    @synchronized
    def pack(self) -> dict[str, Array]:
        """Return the bins that occur, int64 and ascending, and the rows of both classes in each."""
        counts = self._occupied().reshape(-1, 2)
        occurring = np.flatnonzero(counts.any(axis=1))
        negatives, positives = counts[occurring].T
        return {"bins": occurring + self._span[0], "negatives": negatives, "positives": positives}

    def add_bins(self, bins: Array, negatives: Array, positives: Array) -> None:
        """Add the rows of both classes in distinct bins, as returned by `pack` of a histogram with the same bits.

        Raises
        ------
        InputError, InputTypeError
            If these are not integers in arrays of one length, bins are not distinct or not from 0 to 2^bits - 1, or
            counts are negative. The state is as before then.
        """
        given = {"bins": bins, "negatives": negatives, "positives": positives}
        columns = {name: check_whole(check_numbers(own, name), name, "hold integers") for name, own in given.items()}
        lengths = list(map(len, columns.values()))
        if len(set(lengths)) > 1:
            raise InputError(f"bins, negatives and positives must have the same length, found {lengths}")
        for name, own in columns.items():
            last = (1 << self.bits) - 1 if name == "bins" else MAX_ROWS
            wrong = (own < 0) | (own > last)
            if wrong.any():
                raise InputError(f"{name} must be from 0 to {last:,}, found {own[wrong.argmax()]:,}")
        if len(np.unique(columns["bins"])) < lengths[0]:
            raise InputError("bins must hold each bin once, found one twice")
        self._add_bins(*(own.astype(np.int64) for own in columns.values()))

    @synchronized
    def _add_bins(self, bins: Array, negatives: Array, positives: Array) -> None:
        if not len(bins):
            return
        with self._changing():
            self._counts[2 * bins] += negatives
            self._counts[2 * bins + 1] += positives
            self._widen(bins.min(), bins.max() + 1)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: the bins that occur."""
        return {"bits": self.bits, **self.pack()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the bins."""
        self.__init__(state["bits"])  # type: ignore[misc]
        self._add_bins(state["bins"], state["negatives"], state["positives"])

    @synchronized
    def estimate(self) -> BoundedAuc:
        """Return the AUC with pairs inside a bin counting half, and a bound on its error; NaN for one class."""
        counts = self._occupied().reshape(-1, 2)
        counts = counts[counts.any(axis=1)]
        negatives, positives = np.ascontiguousarray(counts.T)
        n_pairs = int(positives.sum()) * int(negatives.sum())
        if not n_pairs:
            return BoundedAuc(math.nan, math.nan)
        twice, tied = pairs_won(positives, negatives)
        # both this value and the exact AUC are rounded once
        return BoundedAuc(twice / (2 * n_pairs), tied / (2 * n_pairs) + ROUNDING if tied else 0.0)

    def auc(self) -> float:
        """Return the AUC with pairs inside a bin counting half."""
        return self.estimate().auc

    @property
    def error_bound(self) -> float:
        """Bound on the distance of the exact AUC from `auc()`: half the share of pairs inside a bin."""
        return self.estimate().bound


def bounded_auc(labels: Any, scores: Any, *, bits: int = 22, n_threads: int | None = None) -> BoundedAuc:
    """Compute the AUC from a histogram of the scores, several times faster than `auc`, with a bound on its error.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for a negative one.
    scores : array (n,), float32 or float64
        Of any range; bins are relative, see `ScoreHistogram`.
    bits : int
        16 to 22; each bit halves the bound. For scores spread evenly over [0, 1] and independent labels, it is about
        2^(9 - bits) / 6: 2e-5 for 22 bits.
    n_threads : int, optional
        Threads; by default all that the process may use.

    Returns
    -------
    BoundedAuc
        ``auc`` and ``bound``: the exact AUC is within ``bound`` of ``auc`` for any data. Both are NaN for one class.

    Raises
    ------
    InputError, InputTypeError
        As for `auc`.

    Examples
    --------
    >>> from fastrec import bounded_auc
    >>> bounded_auc([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4])
    BoundedAuc(auc=0.75, bound=0.0)
    """
    seen = ScoreHistogram(bits)
    seen.add(labels, scores, n_threads=n_threads)
    return seen.estimate()

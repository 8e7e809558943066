"""Statistics of a user's scored, labelled rows, as formulas of metrics read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastrec.kernels import codes as op
from fastrec.metrics.confusion import SummedCells
from fastrec.metrics.intervals import RowError
from fastrec.metrics.statistics import Measure, Over, Ratio, Row, Statistics, over

# accumulators of all rows, see `fastrec.evaluation.accumulators`
SCORE_COUNTS = "score_counts"  # counts of rows by distinct score
GRADED_ROWS = "graded_rows"  # the rows themselves, with any labels
TARGET_SUMS = "target_sums"  # exact sums of targets and errors
_CELLS = (op.TRUE_POSITIVES, op.FALSE_POSITIVES, op.BELOW)
_AREAS = {"step": op.STEP, "trapezoid": op.TRAPEZOID, "davis_goadrich": op.DAVIS_GOADRICH}
_NORMS = {"l1": op.SUM, "l2": op.ROOT, "max": op.LARGEST}


class RowStatistics(Statistics):
    """Statistics of each user's scored, labelled rows: float rows, one number per user.

    y is 1 for a positive row and 0 for others, w is the weight of a row, s its score; sums run over a user's rows.
    """

    __slots__ = ("one_class",)

    def __init__(self, one_class: str, value_of: Callable[[Row], Row] = lambda row: row) -> None:
        super().__init__(value_of)
        self.one_class = one_class

    def _statistic(self, kind: int, parameter: float = 0.0) -> Row:
        return self._value_of(Row(("fact", kind, float(parameter))))

    @property
    def rows(self) -> Row:
        """Sum of w: the number of rows if rows have no weights."""
        return self._statistic(op.WEIGHTS)

    @property
    def positives(self) -> Row:
        """Sum of w y."""
        return self._statistic(op.POSITIVES)

    @property
    def negatives(self) -> Row:
        """Sum of w (1 - y)."""
        return self._statistic(op.NEGATIVES)

    @property
    def twice_won(self) -> Row:
        """Twice the number of pairs (positive, negative) with the higher score on the positive; ties count half."""
        return self._statistic(op.TWICE_WON)

    @property
    def constant(self) -> Row:
        """1 if all scores are equal, else 0."""
        return self._statistic(op.CONSTANT)

    @property
    def score_sum(self) -> Row:
        """Sum of w s."""
        return self._statistic(op.SCORES)

    @property
    def log_loss_sum(self) -> Row:
        """Sum of -w (y log s + (1 - y) log(1 - s)), s clipped to [eps, 1 - eps] of float32 or float64."""
        return self._statistic(op.LOG_LOSS)

    @property
    def brier_sum(self) -> Row:
        """Sum of w (s - y)^2."""
        return self._statistic(op.BRIER)

    @property
    def squares(self) -> Row:
        """Sum of w (s - label)^2."""
        return self._statistic(op.SQUARES)

    @property
    def absolutes(self) -> Row:
        """Sum of w |s - label|."""
        return self._statistic(op.ABSOLUTES)

    def relative_errors(self, least: float) -> Row:
        """Return the sum of w |s - label| / max(|label|, least)."""
        return self._statistic(op.RELATIVE, least)

    @property
    def differ(self) -> Row:
        """1 if two labels of the user's rows differ, else 0."""
        return self._statistic(op.DIFFER)

    @property
    def unexplained(self) -> Row:
        """Sum of w (s - label)^2 over the sum of w (label - mean label of the user)^2; 0 if all labels are equal."""
        return self._statistic(op.UNEXPLAINED)

    def targets(self, power: int) -> Row:
        """Return the sum of w label^power, for a power up to 2."""
        return self._statistic(op.TARGETS, power)

    @property
    def entropy(self) -> Row:
        """Sum of w times the entropy of the user's base rate."""
        return self._statistic(op.ENTROPY)

    def cells(self, threshold: float) -> SummedCells:
        """Return the confusion matrix of the prediction s >= threshold; `below` counts the rows under it."""
        tp, fp, below = (self._statistic(kind, threshold) for kind in _CELLS)
        return SummedCells(tp, fp, self.positives, self.negatives, below, self.rows)

    def gap(self, nth: int, bins: int) -> Row:
        """Return the sum of w (s - y) in the nth of equally wide bins of [0, 1]."""
        return self._statistic(op.GAP, nth + (bins << op.BIN_BITS))

    def gaps(self, bins: int, strategy: str, norm: str = "l1") -> Row:
        """Return the sum over bins of |sum of w (s - y)|; bins are equally wide (`uniform`) or full (`quantile`).

        With the norm `l2` it is the root of the mean square of the gaps of bins, with `max` the largest of them, where
        the gap of a bin is its sum over its weight.
        """
        kind = op.GAPS if strategy == "uniform" else op.QUANTILE_GAPS
        return self._statistic(kind, bins + (_NORMS[norm] << op.BIN_BITS))

    def average_precision_sum(self, interpolation: str) -> Row:
        """Return the area under the precision-recall curve, times the positives."""
        return self._statistic(_AREAS[interpolation])

    @property
    def largest_distance(self) -> Row:
        """Largest distance between the distributions of the scores of positives and negatives."""
        return self._statistic(op.KOLMOGOROV)

    def ratio(self, numerator: Row, denominator: Row) -> Ratio:
        """Return a ratio of sums over all rows; a user's own value is the ratio of its rows."""
        own = self.where(denominator / denominator, numerator / denominator)
        return Ratio(over, (numerator, denominator), own, self.rows / self.rows)

    def over_all_rows(self, value: Measure, std_error: Callable[[Any], RowError] | None = None, **more: Any) -> Over:
        """Return a metric that needs the order of all rows; users have no own value unless `each` is given."""
        own = more.pop("each", self.where(0.0, 0.0))
        return Over(SCORE_COUNTS, value, std_error, own, self.rows / self.rows, **more)

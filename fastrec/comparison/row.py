"""One row of a comparison: a metric, a system and its baseline."""

from __future__ import annotations

import math
from typing import NamedTuple

from fastrec.metrics.directions import Kind, Verdict

__all__ = ["ComparisonRow", "reverse"]


REVERSE: dict[Verdict | None, Verdict] = {"better": "worse", "worse": "better"}


class ComparisonRow(NamedTuple):
    """Comparison of one metric between a system and a baseline.

    metric, system, baseline : names.
    mean, baseline_mean : over the compared users.
    difference : mean - baseline_mean; for a metric with a target the difference of the distances to it, see `compare`.
    low, high : interval of the difference.
    p_value : two-sided: the probability of a difference at least as large if the true one is 0.
    p_corrected : p_value corrected for all rows of the table.
    wins, ties, losses : users for whom the system is better, as good and worse. All are None for a ratio of sums and
        for a number of all lists together, such as `gini`; wins and losses are None for a metric without a direction.
    users : users compared.
    unpaired : users counted on one side only; ``missing`` leaves them out or counts them as 0 on the other side.
    detectable : the smallest true difference that the test would find significant with 80 % power.
    grouping, group : the segment; None for all users.
    direction, target : which values are better: "higher", "lower", "target" (nearer to the number ``target``), "none".
    verdict : "better", "worse" or "not clear", by the direction and the corrected p-value; None without either.
    """

    metric: str
    system: str
    baseline: str
    mean: float
    baseline_mean: float
    difference: float
    low: float
    high: float
    p_value: float
    p_corrected: float
    wins: int | None
    ties: int | None
    losses: int | None
    users: int
    unpaired: int
    detectable: float
    grouping: str | None = None
    group: str | int | None = None
    direction: Kind = "higher"
    target: float | None = None
    verdict: Verdict | None = None

    @property
    def relative(self) -> float:
        """Relative difference, difference / baseline_mean.

        It is NaN if the baseline mean is not above 0, the mean is below 0, or the metric has a target: then the
        difference is between distances to it.
        """
        if self.target is not None or not (self.baseline_mean > 0 and self.mean >= 0):
            return math.nan
        return self.difference / self.baseline_mean


def reverse(row: ComparisonRow) -> ComparisonRow:
    """Return the same comparison with system and baseline exchanged."""
    return row._replace(
        system=row.baseline,
        baseline=row.system,
        mean=row.baseline_mean,
        baseline_mean=row.mean,
        difference=-row.difference,
        low=-row.high,
        high=-row.low,
        wins=row.losses,
        losses=row.wins,
        verdict=REVERSE.get(row.verdict, row.verdict),
    )

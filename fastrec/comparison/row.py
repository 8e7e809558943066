"""One row of a comparison: a metric, a system and its baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fastrec.metrics.directions import Kind, Verdict
from fastrec.report.estimates import Estimate
from fastrec.show.numbers import one_figure

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
    detectable : the smallest true difference that the test would find significant with the given power, at the level of
        the row's step in the correction. NaN if all users differ by the same amount, or none does.
    grouping, group : the segment; None for all users.
    direction, target : which values are better: "higher", "lower", "target" (nearer to the number ``target``), "none".
    verdict : "better", "worse" or "not clear", by the direction and the corrected p-value; None without either.
    std_error : of the difference.
    p_floor : the smallest p-value that the test can give for so many users and rounds; 0 without a limit.
    note : that no user differs, that few do, or that the interval excludes 0 while the corrected p-value is not
        significant.
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
    std_error: float = math.nan
    p_floor: float = 0.0
    note: str = ""

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


def means_of(
    rows: Iterable[ComparisonRow], estimates: Mapping[str, Mapping[str, Estimate]]
) -> tuple[dict[tuple[str, str], float], bool]:
    """Return the mean of each system by (system, metric), and whether some differ between pairs.

    Pairs may share different users. Where the means of a metric differ, those of all systems are replaced by the means
    over the users of each system, NaN if they are not known.
    """
    found: dict[tuple[str, str], set[float]] = {}
    for row in rows:
        found.setdefault((row.system, row.metric), set()).add(row.mean)
        found.setdefault((row.baseline, row.metric), set()).add(row.baseline_mean)
    several = {metric for (_, metric), own in found.items() if len(set(map(one_figure, own))) > 1}
    means = {key: next(iter(own)) for key, own in found.items()}
    for name, metric in means:
        if metric in several:
            known = estimates.get(name, {}).get(metric)
            means[name, metric] = math.nan if known is None else known.mean
    return means, bool(several)

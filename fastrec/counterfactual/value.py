"""Result of `policy_value`: an estimate with its interval, and how far its weights can be trusted."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastrec._version import __version__
from fastrec.checks import counted
from fastrec.counterfactual.estimators import ESTIMATORS
from fastrec.counterfactual.sums import SMALLEST_WEIGHT, SlateSums
from fastrec.exceptions import InputError, InputTypeError, shown
from fastrec.kernels import weights as kernels
from fastrec.report.estimates import Estimate, with_intervals
from fastrec.report.plain import plain_document
from fastrec.show.charts import line_chart
from fastrec.show.numbers import DASH, figures, one_figure, shown_count
from fastrec.show.plots import draw_values
from fastrec.show.shown import Exported
from fastrec.show.tables import Chart, Lead, Section, Table, warning_lines, with_notes

MIN_SLATES = 30  # fewer say little about their weights
MAX_Z = 5.0  # standard errors between the mean weight and 1
MIN_GAP = 0.01  # between the mean weight and 1
MIN_USERS = 20
MIN_SLATES_OF_ERROR = 20  # with fewer, 94 % of the intervals that cover less than 93 % of true values warn
MIN_SHARE, MIN_SIZE = 0.01, 10  # of the weights, and the effective sample size, below which few weights decide


class PolicyResult(Exported):
    """Forms that one result and several have in common."""

    _title = "Value of a policy"

    @abstractmethod
    def _results(self) -> list[PolicyEstimate]:
        """Return the results, one per estimator."""

    def plot(self, ax: Any = None) -> Any:
        """Draw the values with their 95 % intervals, one estimator below the other; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes to draw on; by default new ones.

        Returns
        -------
        The axes.
        """
        return draw_values(self.to_rows(), ax)

    def _printed(self) -> list[Table]:
        return printed(self._results())

    def _tables(self) -> list[Table]:
        return _all_tables(self._results())

    def _lead(self) -> Lead:
        warnings = list(dict.fromkeys(line for one in self._results() for line in one.warnings))
        return Lead(warnings=warnings, notes=[f"fastrec {__version__}"])

    def _sections(self) -> list[Section]:
        return _all_sections(self._results())


@dataclass(frozen=True, repr=False)
class PolicyEstimate(PolicyResult):
    """Result of `policy_value`: what one estimator says that a policy would have earned.

    Attributes
    ----------
    estimator : its name.
    value : the estimate; NaN without slates, and where all weights that it divides by are 0.
    std_error : its standard error over slates, or over users; NaN with fewer than two of them.
    users, slates, rows, empty_slates : how many there are; users is None without users.
    weights : the number of weights: one per row; for sips and snsips one per slate.
    effective_sample_size : (sum of w)^2 / sum of w^2, of the weights in use: so many equal weights would say as much.
    mean_weight, max_weight : the mean and the largest of the weights before a clip. The mean must be near 1.
    mean_weight_error : standard error of the mean weight over slates; with users times the root of slates per user, as
        if all slates of a user were alike.
    clip, clipped : the largest weight, and the number of rows whose weight it cut.
    baseline : the `PolicyEstimate` of ``baseline_pscore``; None without.
    difference : the value less that of the baseline, an `Estimate` with an error of its own; None without.
    warnings : reasons to doubt the value.

    Examples
    --------
    >>> fastrec.policy_value(
    ...     [1, 0, 0, 1], [0.5, 0.5, 0.25, 0.5], [0.5, 0.25, 0.5, 0.75], [0, 2, 4]
    ... )
    estimator   value     95 % interval  mean weight  largest  ESS
    iips       1.2500  -1.9266 – 4.4266       1.2500   2.0000  3.3
    2 slates, 4 rows; values are per slate
    """

    estimator: str
    value: float
    std_error: float
    users: int | None
    slates: int
    rows: int
    empty_slates: int
    weights: int
    effective_sample_size: float
    mean_weight: float
    mean_weight_error: float
    max_weight: float
    clip: float | None
    clipped: int
    baseline: PolicyEstimate | None
    difference: Estimate | None
    warnings: tuple[str, ...]
    _sums: SlateSums = field(init=False, compare=False)

    @property
    def unit(self) -> str:
        """What the value is the mean of: "slate", or "row" for ips, snips and dr."""
        return self._sums.estimator.unit

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return Student's interval: value - t * std_error, value + t * std_error.

        The degrees of freedom of t are the number of slates, or of users, less 1. The ends are NaN without an error,
        and where all slates earn the same: rewards may have any size, so nothing tells how far off the value is.

        >>> low, high = fastrec.policy_value(
        ...     [1, 0, 1], [0.5] * 3, [0.5] * 3, estimator="ips"
        ... ).interval()
        >>> round(low, 4), round(high, 4)
        (-0.7676, 2.1009)
        """
        return _estimate(self.value, self.std_error, self._sums).interval(level)

    def merge(self, other: PolicyEstimate) -> PolicyEstimate:
        """Return the result over the slates of both: the same bits as one call with all slates.

        With users, no user may be in both. Results keep no ids, so this is not checked.

        Parameters
        ----------
        other : result of the same estimator and clip, over other slates

        Returns
        -------
        PolicyEstimate

        Raises
        ------
        InputTypeError
            If ``other`` is no PolicyEstimate.
        InputError
            If estimators or clips differ, or only one has users, or a baseline.

        Examples
        --------
        >>> monday, tuesday = (
        ...     fastrec.policy_value([r], [0.5], [0.25], estimator="ips")
        ...     for r in (1, 0)
        ... )
        >>> monday.merge(tuesday).value
        0.25
        """
        if not isinstance(other, PolicyEstimate):
            raise InputTypeError(f"merge takes a PolicyEstimate, found {shown(other)}")
        own, others = (self.estimator, self.clip), (other.estimator, other.clip)
        if own != others:
            raise InputError(f"merge needs the same estimator and clip, found {own} and {others}")
        for name in ("users", "baseline"):
            if (getattr(self, name) is None) != (getattr(other, name) is None):
                raise InputError(f"both results must have {name}, or neither, to be merged")
        return value_of(self._sums.add(other._sums))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict: the attributes, with the 95 % interval as "low" and "high", and the "unit"."""
        low, high = self.interval()
        names: tuple[str, ...] = ("estimator", "value", "std_error")
        counts = ("users", "slates", "rows", "empty_slates", "weights")
        rest = ("effective_sample_size", "mean_weight", "mean_weight_error", "max_weight", "clip", "clipped")
        row = {name: getattr(self, name) for name in names} | {"low": low, "high": high, "unit": self.unit}
        row |= {name: getattr(self, name) for name in (*counts, *rest)}
        names, found = ("difference", "difference_error", "difference_low", "difference_high"), self.difference
        numbers = [None] * len(names) if found is None else [found.mean, found.std_error, *found.interval()]
        baseline = {"baseline": None if self.baseline is None else self.baseline.value}
        return [row | baseline | dict(zip(names, numbers, strict=True))]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1); NaN is None."""
        return plain_document({**self.to_rows()[0], "warnings": self.warnings})

    def _results(self) -> list[PolicyEstimate]:
        return [self]


class PolicyEstimates(PolicyResult, dict[str, PolicyEstimate]):
    """Results of `policy_value` for several estimators: a dict by name, in the order of the call.

    Examples
    --------
    >>> given = (
    ...     [1, 0, 0, 1],
    ...     [0.5, 0.5, 0.25, 0.5],
    ...     [0.5, 0.25, 0.5, 0.75],
    ...     [0, 2, 4],
    ... )
    >>> fastrec.policy_value(*given, estimator=["iips", "sniips"])
    estimator   value     95 % interval  mean weight  largest  ESS
    iips       1.2500  -1.9266 – 4.4266       1.2500   2.0000  3.3
    sniips     1.0833   0.2010 – 1.9657       1.2500   2.0000  3.3
    2 slates, 4 rows; values are per slate
    """

    __repr__ = Exported.__repr__

    def merge(self, other: PolicyEstimates) -> PolicyEstimates:
        """Return the results over the slates of both; see `PolicyEstimate.merge`. Both need the same estimators.

        >>> one, two = (
        ...     fastrec.policy_value([r], [0.5], [0.25], estimator=["ips", "snips"])
        ...     for r in (1, 0)
        ... )
        >>> one.merge(two)["snips"].value
        0.5
        """
        if not isinstance(other, PolicyEstimates):
            raise InputTypeError(f"merge takes PolicyEstimates, found {shown(other)}")
        if list(self) != list(other):
            raise InputError(f"merge needs results of the same estimators, found {list(self)} and {list(other)}")
        return PolicyEstimates((name, one.merge(other[name])) for name, one in self.items())

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the values."""
        return tuple(line for one in self.values() for line in one.warnings)

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dict per estimator, as `PolicyEstimate.to_rows`."""
        return [row for one in self.values() for row in one.to_rows()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON (schema 1): "estimates" and "warnings"; NaN is None."""
        return plain_document({"estimates": self.to_rows(), "warnings": self.warnings})

    def _results(self) -> list[PolicyEstimate]:
        return list(self.values())


def estimates_of(sums: Iterable[SlateSums]) -> PolicyEstimates:
    """Return the results that follow from sums, by name."""
    return PolicyEstimates((one.name, value_of(one)) for one in sums)


def _estimate(value: float, error: float, sums: SlateSums) -> Estimate:
    """Return a value with its error and Student's degrees of freedom."""
    return Estimate(value, error, sums.units if sums.by_user else 0, max(sums.units - 1, 0))


def value_of(sums: SlateSums) -> PolicyEstimate:
    """Return the result that follows from sums."""
    found = sums.numbers()
    rows, clipped, empty = (sums.counts[at] for at in (kernels.COUNT_ROWS, kernels.COUNT_CLIPPED, kernels.COUNT_EMPTY))
    result = PolicyEstimate(
        estimator=sums.name,
        value=found.value,
        std_error=found.std_error,
        users=sums.units if sums.by_user else None,
        slates=sums.slates,
        rows=rows,
        empty_slates=empty,
        weights=sums.weights,
        effective_sample_size=found.effective_sample_size,
        mean_weight=found.mean_weight,
        mean_weight_error=found.mean_weight_error,
        max_weight=sums.largest if sums.weights else math.nan,
        clip=sums.clip,
        clipped=clipped,
        baseline=None if sums.baseline is None else value_of(sums.baseline),
        difference=None if sums.baseline is None else _estimate(*sums.difference(), sums),
        warnings=(),
    )
    object.__setattr__(result, "_sums", sums)  # no argument: it decides all others
    object.__setattr__(result, "warnings", tuple(_doubts(result, sums, found.effective_slates)))
    return result


def _doubts(found: PolicyEstimate, sums: SlateSums, effective_slates: float) -> list[str]:
    """Return reasons to doubt a result."""
    unit, lines = "slates" if found.users is None else "users", list[str]()
    if found.std_error == 0:
        lines.append(
            f"{found.estimator}: no {unit[:-1]} differs from the value, so nothing tells how far off it is: no interval"
        )
    if found.baseline is not None and found.difference is not None:
        lines += [f"baseline: {line}" for line in found.baseline.warnings]
        if found.difference.std_error == 0:
            lines.append(
                f"{found.estimator}: no {unit[:-1]} differs between the policies: no interval of the difference"
            )
    if sums.has_vanished:
        return [
            *lines,
            f"{found.estimator}: all weights are below {SMALLEST_WEIGHT:g}: too small to be squared, for errors",
        ]
    if found.users is not None and found.users < MIN_USERS:
        few = "only one user" if found.users == 1 else f"fewer than {MIN_USERS} users: the interval may be too narrow"
        lines.append(f"{found.estimator}: {few}")
    if found.slates < MIN_SLATES:
        return lines
    gap, margin = found.mean_weight - 1, MAX_Z * found.mean_weight_error
    if abs(gap) > max(MIN_GAP, margin):
        why = "large, or the new policy shows what the log never does"
        if gap > 0:
            why = "small, or those of the new policy too large"
        lines.append(
            f"{found.estimator}: the mean weight is {one_figure(found.mean_weight)}, more than {MAX_Z:g} standard "
            f"errors ({one_figure(found.mean_weight_error)}) from 1: logged propensities are too {why}"
        )
    least = max(MIN_SIZE, MIN_SHARE * found.weights)
    if found.effective_sample_size < least:
        unit = "slates" if sums.estimator.is_whole else "rows"
        lines.append(
            f"{found.estimator}: few weights decide: the effective sample size is "
            f"{found.effective_sample_size:,.1f} of {found.weights:,} {unit}; the interval may be too narrow"
        )
    elif effective_slates < MIN_SLATES_OF_ERROR:
        lines.append(
            f"{found.estimator}: few slates decide about the error: squares of weights, or of what slates earn, are "
            f"worth {effective_slates:,.1f} equal ones of {found.slates:,}; the interval may be too narrow"
        )
    return lines


# Tables


def printed(results: Sequence[PolicyEstimate], *, warned: bool = True) -> list[Table]:
    """Return tables of results, a row per estimator, that fit 80 columns, with notes below."""
    is_clipped = any(one.clip is not None for one in results)
    head = [
        "estimator",
        "value",
        "95 % interval",
        "mean weight",
        "largest",
        "ESS",
        *(["clipped"] if is_clipped else []),
    ]
    rows = [
        [
            one.estimator,
            *_with_interval(one.value, one.interval()),
            one_figure(one.mean_weight),
            one_figure(one.max_weight),
            _size(one),
            *([shown_count(one.clipped)] if is_clipped else []),
        ]
        for one in results
    ]
    lines = [*_notes(results), *(_warnings_of(results) if warned else [])]
    return with_notes([Table("", head, rows, 1), *_differences(results)], lines)


def _differences(results: Sequence[PolicyEstimate]) -> list[Table]:
    """Return the table of differences to a baseline, if there is one."""
    rows = [
        [
            one.estimator,
            one_figure(baseline.value),
            *_with_interval(own.mean, own.interval()),
            one_figure(own.std_error),
        ]
        for one in results
        if (baseline := one.baseline) is not None and (own := one.difference) is not None
    ]
    head = ["estimator", "baseline", "difference", "95 % interval", "standard error"]
    return [Table("Difference to the baseline", head, rows)] if rows else []


def _warnings_of(results: Sequence[PolicyEstimate]) -> list[str]:
    return [line for one in results for line in warning_lines(one.warnings)]


def _with_interval(value: float, ends_of_value: tuple[float, float]) -> tuple[str, str]:
    text, *ends = figures(value, value, *ends_of_value)
    return text, DASH if DASH in ends else f"{ends[0]} {DASH} {ends[1]}"


def _size(found: PolicyEstimate) -> str:
    size = found.effective_sample_size
    return DASH if math.isnan(size) else f"{size:,.1f}"


def _notes(results: Sequence[PolicyEstimate]) -> list[str]:
    """Return lines on what the values are, over how many slates, and on what was clipped; all are of one log."""
    if not results:
        return []
    first = results[0]
    per_row = [one.estimator for one in results if one.unit == "row"]
    per = "slate"
    if per_row:
        per = "row" if len(per_row) == len(results) else f"slate, those of {', '.join(per_row)} per row"
    users = "" if first.users is None else f"{counted(first.users, 'user')}, "
    lines = [f"{users}{shown_count(first.slates)} slates, {shown_count(first.rows)} rows; values are per {per}"]
    if first.empty_slates:
        lines.append(f"slates without rows, which earn 0: {shown_count(first.empty_slates)}")
    if first.clip is not None:
        lines.append(f"weights above {first.clip:g} count as {first.clip:g}; clipped: rows with such a weight")
    return lines


def _all_tables(results: Sequence[PolicyEstimate]) -> list[Table]:
    """Return the values, and what is known of the weights."""
    values = Table(
        "Values",
        ["estimator", "value", "95 % interval", "standard error", "mean over", "slates", "rows"],
        [
            [one.estimator, *_with_interval(one.value, one.interval()), one_figure(one.std_error), *_counts(one)]
            for one in results
        ],
        n_narrow=3,
    )
    return with_notes([values, *_differences(results), _of_weights(results)], _warnings_of(results))


def _counts(found: PolicyEstimate) -> list[str]:
    return [f"{found.unit}s", shown_count(found.slates), shown_count(found.rows)]


def _of_weights(results: Sequence[PolicyEstimate]) -> Table:
    head = ["estimator", "weights", "effective sample size", "mean weight, ± 95 %", "largest", "clip", "clipped rows"]
    weights = with_intervals([Estimate(one.mean_weight, one.mean_weight_error, one.slates)] for one in results)
    rows = [
        [
            one.estimator,
            shown_count(one.weights),
            _size(one),
            *weight,
            one_figure(one.max_weight),
            DASH if one.clip is None else f"{one.clip:g}",
            shown_count(one.clipped),
        ]
        for one, weight in zip(results, weights, strict=True)
    ]
    return Table("Weights", head, rows, n_narrow=3)


def _all_sections(results: Sequence[PolicyEstimate]) -> list[Section]:
    """Return the sections of a page: values with a chart, weights, definitions."""
    values, *differences, weights = _all_tables(results)
    charts = []
    for unit in dict.fromkeys(one.unit for one in results):
        title, own = f"Value per {unit}, with 95 % intervals", [one for one in results if one.unit == unit]
        points = [(one.value, *one.interval()) for one in own]
        drawn = line_chart(title, [one.estimator for one in own], points, "estimator", joined=False)
        charts.append(Chart(title, drawn))
    estimators = {one.estimator: ESTIMATORS[one.estimator] for one in results}
    formulas = [[name, own.formula, own.source] for name, own in estimators.items()]
    definitions = Table("Estimators", ["estimator", "value", "source"], formulas, 3)
    return [
        Section("Values", [values, *differences], charts if len(results) > 1 else []),
        Section("Weights", [weights._replace(notes=[])]),
        Section("Definitions", [definitions], lines=["w is the weight of a row, r its reward, q its prediction"]),
    ]

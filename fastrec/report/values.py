"""The numbers of an evaluation: means, intervals, groups, values of users."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import check_choice, check_level, is_number, listed_in_order, whole_number
from fastrec.exceptions import Argument, InputError, shown
from fastrec.report.doubts import describe_one_class, doubts
from fastrec.report.estimates import ByMetric, Effects, Estimate
from fastrec.report.plain import with_rest
from fastrec.report.plans import NAN_POLICIES, known_calls, values_of_settings, with_effects_of_settings
from fastrec.report.row_digests import Digest

Label = str | int
INTERVALS = ("standard", "bootstrap")
MAX_ROUNDS = 10**7
MAX_SEED = 2**64 - 1
SLACK = 1e-9  # of means, as their sums were rounded in different orders


def check_resampling(level: Any, n_rounds: Any, seed: Any) -> dict[str, Any]:
    """Return the checked level of an interval, and rounds and seed of resampling, as Python numbers by name."""
    checked: dict[str, Any] = {"level": check_level(level)}
    for name, value, least, most in (("n_rounds", n_rounds, 1, MAX_ROUNDS), ("seed", seed, 0, MAX_SEED)):
        number = whole_number(value)
        if number is None or not least <= number <= most:
            raise InputError(Argument(name), f" must be an integer from {least} to {most}, found {shown(value)}")
        checked[name] = number
    return checked


class ReportValues(Mapping[str, float]):
    """The numbers of a report, without any output."""

    def __init__(
        self,
        *,
        estimates: Mapping[str, Estimate],
        users: dict[str, int],
        data: dict[str, int | float],
        settings: dict[str, object],
        groups: Mapping[str, Mapping[Label, Mapping[str, Estimate]]],
        per_user: Mapping[str, NDArray[np.float64]] | None,
        user_ids: NDArray[Any] | None,
        fastrec_version: str,
        labels: Mapping[str, NDArray[Any]] | None = None,
        effects: Effects | None = None,
        warnings: Iterable[str] | None = None,
        digest: Digest | None = None,
    ) -> None:
        names = cast(Mapping[str, str], settings.get("names", {}))
        self.estimates = ByMetric(estimates, names)
        self.users = users
        self.data = data
        self.settings = settings
        self.groups = {
            grouping: {label: ByMetric(with_rest(estimates), names) for label, estimates in by_label.items()}
            for grouping, by_label in groups.items()
        }
        self._per_user = None if per_user is None else ByMetric(per_user, names)
        self.user_ids = user_ids
        self.labels = dict(labels or {})
        self.effects = dict(effects or {})
        self.fastrec_version = fastrec_version
        self.digest = digest
        self._warnings = doubts(data) if warnings is None else list(warnings)
        self._clips: dict[float, bool] = {}  # of the scores of rows, see `note_clips`

    # A Mapping compares values, and NaN differs from itself. Reports compare by identity instead.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __getitem__(self, name: str) -> float:
        """Return the mean of a metric, given in any spelling.

        >>> import fastrec
        >>> report = fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["ndcg@2"])
        >>> report["ndcg(gain=linear)@2"] == report["ndcg@2"]
        True
        >>> "recall@2" in report
        False
        """
        return self.estimates[name].mean

    def __iter__(self) -> Iterator[str]:
        """Iterate over the canonical names of metrics, in the order of the call."""
        return iter(self.estimates)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self.estimates)

    @property
    def per_user(self) -> dict[str, NDArray[np.float64]]:
        """Each user's value of each metric: {metric: float64 (n_users,)}, NaN for users not counted.

        >>> import fastrec
        >>> recs, truth = [[1, 2, 3], [4, 5, 6]], [[2, 9], []]
        >>> fastrec.evaluate(recs, truth, ["precision@2"], per_user=True).per_user[
        ...     "precision@2"
        ... ]
        array([0.5, nan])
        """
        if self._per_user is None:
            raise InputError("per-user values were not kept: use evaluate(..., per_user=True)")
        return self._per_user

    @property
    def has_values(self) -> bool:
        """Whether the values of users were kept."""
        return self._per_user is not None

    def name_of(self, name: str) -> str:
        """Return the canonical name of a metric, given in any spelling.

        >>> import fastrec
        >>> fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["ndcg@2"]).name_of(
        ...     "ndcg( gain=linear )@2"
        ... )
        'ndcg@2'
        """
        wanted = self.estimates[name]
        return next(text for text, estimate in self.estimates.items() if estimate is wanted)

    def std_error(self, name: str) -> float:
        """Return the standard error of a metric's mean over users; NaN for fewer than two users.

        >>> import fastrec
        >>> recs, truth = [[1, 2, 3], [4, 5, 6]], [[2, 9], [4, 5]]
        >>> fastrec.evaluate(recs, truth, ["precision@2"]).std_error("precision@2")
        0.25
        """
        return self.estimates[name].std_error

    def interval(
        self, name: str, level: float = 0.95, method: str = "standard", *, n_rounds: int = 10_000, seed: int = 0
    ) -> tuple[float, float]:
        """Return the confidence interval of a metric over users.

        ``method="standard"`` is `Estimate.interval`: Student's, or Wilson's for values that are all 0 or 1, cut to the
        range of the metric. For a ratio of sums, such as a pooled metric or `gauc`, the standard error is that of the
        delta method. ``method="bootstrap"`` draws users with replacement ``n_rounds`` times (Efron 1979) and takes
        expanded percentiles (Hesterberg 2015), which may be too narrow below 20 users. It needs per-user values, and a
        metric that is their plain mean. A seed gives the same bits for any number of threads.

        >>> import fastrec
        >>> recs, truth = [[1, 2, 3], [4, 5, 6]], [[2, 9], [4, 5]]
        >>> low, high = fastrec.evaluate(recs, truth, ["precision@2"]).interval(
        ...     "precision@2", level=0.8
        ... )
        >>> round(low, 3), round(high, 3)
        (0.0, 1.0)
        """
        check_choice("method", method, INTERVALS)
        if method == "standard":
            return self.estimates[name].interval(level)
        if not self.is_mean(name):
            why = f"not a plain mean of users' values, which the bootstrap needs{why_no_mean(self, name)}"
            raise InputError(f"{self.name_of(name)} is {why}")
        from fastrec.report.significance import run_test
        from fastrec.runtime.limits import resolve_threads

        values = self.per_user[name]
        options = check_resampling(level, n_rounds, seed)
        # without a width, values that are all 0 have an interval of one point, as other equal values do
        found = run_test(values[~np.isnan(values)], "bootstrap", n_threads=resolve_threads(None), width=0.0, **options)
        return found.low, found.high

    def is_mean(self, name: str) -> bool:
        """Return whether a metric is the plain mean of the values of its users. The report must have kept these.

        A metric with another definition, such as a pooled one, is none even if the numbers agree by chance. Neither is
        a mean weighted by ``user_weight``.

        >>> import fastrec
        >>> metrics = ["recall@2", "recall(average=pooled)@2"]
        >>> report = fastrec.evaluate(
        ...     [[1, 2], [3]], [[1], [3, 4]], metrics, per_user=True
        ... )
        >>> [report.is_mean(name) for name in metrics]
        [True, False]
        """
        declared = values_of_settings(known_calls([self.name_of(name)]), self.settings).values()
        if self.settings.get("weighted") or not all(value.is_mean_of_users for value in declared):
            return False
        return is_plain_mean(self.per_user[name], self[name])

    def quantiles(self, at: Iterable[float] = (0.1, 0.5, 0.9)) -> dict[str, dict[float, float]]:
        """Return quantiles of the values of users, {metric: {share: value}}: 0.5 is the median.

        Users whom a metric does not count have no value. Weights of users have no effect. Between two users the
        quantile is linear (type 7 of Hyndman & Fan 1996, the default of NumPy). NaN if no user has a finite value, and
        for a metric that is no number of users, such as `gini`. The report must have kept the values of users.

        Parameters
        ----------
        at : shares of users from 0 to 1.

        >>> import fastrec
        >>> recs, truth = [[1, 2], [3, 4], [5, 6]], [[1], [3, 4], [9]]
        >>> fastrec.evaluate(recs, truth, "recall@1", per_user=True).quantiles(
        ...     [0.25, 0.5]
        ... )
        {'recall@1': {0.25: 0.25, 0.5: 0.5}}
        """
        shares = _shares(at)
        effects = with_effects_of_settings(known_calls(self.per_user), self.settings)
        found: dict[str, dict[float, float]] = {}
        for metric, values in self.per_user.items():
            known = values[np.isfinite(values)]
            missing = metric in effects or not len(known)
            own = np.full(len(shares), np.nan) if missing else np.quantile(known, shares)
            found[metric] = dict(zip(shares, own.tolist(), strict=True))
        return found

    @property
    def row_groupings(self) -> list[str]:
        """The groupings of rows, not of users, in `groups`: a user with rows in several segments counts in each.

        >>> import fastrec
        >>> labels, scores, users, devices = (
        ...     [1, 0, 1, 0],
        ...     [0.9, 0.2, 0.4, 0.6],
        ...     [1, 1, 2, 2],
        ...     ["tv", "web", "tv", "tv"],
        ... )
        >>> named = {"device": devices}
        >>> report = fastrec.evaluate_scores(
        ...     labels, scores, metrics="auc", user_ids=users, row_groups=named
        ... )
        >>> (
        ...     report.row_groupings,
        ...     {
        ...         device: own["auc"].mean
        ...         for device, own in report.groups["device"].items()
        ...     },
        ... )
        (['device'], {'tv': 0.5, 'web': nan})
        """
        return list(cast(list[str], self.settings.get("row_groupings", [])))

    @property
    def warnings(self) -> list[str]:
        """Reasons to doubt the numbers, a sentence each; usually empty.

        The list has every `FastrecWarning` that the call gave. Every output and copy of the report has it too.

        >>> import fastrec
        >>> fastrec.evaluate([[1, 2, 3]], [[2, 9]], ["hits"]).warnings
        []
        """
        return list(self._warnings)


def _shares(at: Any) -> list[float]:
    """Return the checked shares of quantiles."""
    wanted = [at] if is_number(at) else listed_in_order(at, "at")
    for share in wanted:
        if not is_number(share) or not 0 <= share <= 1:
            raise InputError(Argument("at"), f" must be shares of users from 0 to 1, found {shown(share)}")
    return [float(share) for share in wanted]


def is_plain_mean(values: NDArray[np.float64], mean: float) -> bool:
    """Return whether a number is the mean of values (n_users,), NaN left out."""
    counted = values[~np.isnan(values)]
    if len(counted) == 0:
        return math.isnan(mean)
    return math.isclose(counted.mean(), mean, rel_tol=SLACK, abs_tol=SLACK * float(np.abs(counted).max()))


def why_no_mean(report: ReportValues, name: str) -> str:
    """Return the end of an error: the setting that makes a metric differ from the mean of its users' values."""
    if math.isnan(report[name]):
        policies = [f"{policy}='nan'" for policy in NAN_POLICIES if report.settings.get(policy) == "nan"]
        makers = " and ".join(policies)
        if not policies and (one_class := describe_one_class(report.data)):
            return f"; its mean is NaN, as {one_class}"
        return f"; its mean is NaN, as {makers} makes it" if policies else "; its mean is NaN"
    return "; its mean is weighted by user_weight" if report.settings.get("weighted") else ""


def parts_of(report: ReportValues) -> dict[str, Any]:
    """Return the arguments that make a report."""
    names = ("estimates", "users", "data", "settings", "groups", "user_ids", "fastrec_version", "labels", "effects")
    values = report.per_user if report.has_values else None
    return {name: getattr(report, name) for name in (*names, "warnings", "digest")} | {"per_user": values}

"""Checks that numbers read from bytes can come from an evaluation: ranges, errors, means of users' values."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fastrec.checks import counted
from fastrec.exceptions import FastrecError, InputError, shown
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import Call
from fastrec.metrics.plan import Asked, Plan, Value, make_plan

__all__ = [
    "NAN_POLICIES",
    "SLACK",
    "Claims",
    "check_range",
    "known_calls",
    "nan_is_asked",
    "plain_of_settings",
    "reading_size",
    "sides_of_settings",
    "values_of_settings",
    "with_effects_of_settings",
]

NAN_POLICIES = ("no_truth", "no_recs", "no_history", "one_class")  # policies on users that can make a mean NaN
SLACK = 1e-9  # of bounds and means, as their sums were rounded in different orders
MIN_SLACK = 1e-15  # sums of values within [-1, 1] have no smaller steps
SLACK_OF_ERRORS = 1e-6  # standard errors lose half their digits if values are nearly equal


class Claim(Protocol):
    """The estimate of a metric."""

    @property
    def mean(self) -> float: ...
    @property
    def std_error(self) -> float: ...
    @property
    def users(self) -> int: ...


class Summary(NamedTuple):
    """Values of users: how many, their mean and its standard error, and the bounds of any weighted mean."""

    users: int
    mean: float
    std_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Claims:
    """The numbers of a report or a state, and the settings they must agree with.

    calls : the metrics of fastrec itself, by name.
    plain : those of them that are the plain mean of the values of users.
    with_effects : those whose values are the metric plus the effect of the user's list, any finite number.
    """

    calls: Mapping[str, Call]
    plain: frozenset[str]
    with_effects: frozenset[str]
    n_users: int
    weighted: bool
    estimates: Mapping[str, Claim]
    groups: Mapping[str, Mapping[Any, Mapping[str, Claim]]]
    values: Mapping[str, NDArray[np.float64]]
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    nan_is_asked: bool = False  # a policy makes means NaN
    is_estimated: bool = False  # from sampled lists: estimates may lie outside the ranges of metrics

    def check(self) -> None:
        """Raise InputError if no evaluation gives such numbers."""
        for grouping in self.labels.keys() & self.groups.keys():
            _check_labels(grouping, self.labels[grouping], self.groups[grouping])
        for where, estimates in self._parts():
            for name, claim in estimates.items():
                call = None if self.is_estimated else self.calls.get(name)
                _check_claim(f"{name}{where}", claim, call, self.n_users)
        for name, values in self.values.items():
            if name in self.with_effects:
                if np.isinf(values).any():
                    raise InputError(f"{name} of users must be finite, found {values[np.isinf(values)][0]}")
            elif name in self.calls and not self.is_estimated:
                _check_values(self.calls[name], values)
        if self.n_users:  # rows that belong to nobody have no values of users
            for name in self.plain:
                self._check_plain(name)

    def _parts(self) -> Iterator[tuple[str, Mapping[str, Claim]]]:
        """Yield all estimates, each after the words that locate them in an error."""
        yield "", self.estimates
        for grouping, by_label in self.groups.items():
            for label, estimates in by_label.items():
                where = f" of group {shown(label)} of {shown(grouping)}"
                yield where, estimates
                rests = {name: getattr(own, "rest", None) for name, own in estimates.items()}
                yield f" of the rest{where}", {name: rest for name, rest in rests.items() if rest is not None}

    def _check_plain(self, name: str) -> None:
        """Check that means are those of the values, and that each group and its rest make up all users."""
        whole = self.estimates[name]
        values = self.values.get(name)
        largest = 0.0 if values is None else float(np.nanmax(np.abs(values), initial=0.0))
        if math.isinf(largest) and math.isfinite(whole.mean):
            raise InputError(f"{name} is {whole.mean}, but users have infinite values of it")
        if values is not None and math.isfinite(largest):
            (found,) = _summarize(values, np.zeros(len(values), np.int64), 1)
            self._check_mean(name, whole, found, largest)
        for grouping, by_label in self.groups.items():
            known = self._summarize_labels(values, grouping) if values is not None and math.isfinite(largest) else {}
            for label, estimates in by_label.items():
                if name not in estimates:
                    continue
                own = estimates[name]
                where = f"{name} of group {shown(label)} of {shown(grouping)}"
                if not self.weighted:
                    _check_share(where, whole, own, getattr(own, "rest", None))
                if label in known:
                    self._check_mean(where, own, known[label], largest)

    def _check_mean(self, name: str, claim: Claim, found: Summary, largest: float) -> None:
        """Check that a claim follows from the values of its users, up to rounding of values up to `largest`."""
        if math.isnan(claim.mean):
            if found.users and not self.nan_is_asked and not self.weighted:
                raise InputError(f"{name} has no mean, but a value for {counted(found.users, 'user')}")
            return
        if found.users == 0:
            raise InputError(f"{name} is {claim.mean}, but no user has a value of it")
        slack = SLACK * largest + MIN_SLACK
        if self.weighted:
            if not found.low - slack <= claim.mean <= found.high + slack:
                raise InputError(f"{name} is {claim.mean}, but no weights of users give this mean of their values")
            return
        if claim.users != found.users:
            raise InputError(
                f"{name} counts {counted(claim.users, 'user')}, but has a value for {counted(found.users, 'user')}"
            )
        if not math.isclose(claim.mean, found.mean, rel_tol=SLACK, abs_tol=slack):
            raise InputError(f"{name} is {claim.mean}, but the mean of its users' values is {found.mean}")
        slack = SLACK_OF_ERRORS * largest + MIN_SLACK
        if found.users > 1 and not math.isclose(
            claim.std_error, found.std_error, rel_tol=SLACK_OF_ERRORS, abs_tol=slack
        ):
            raise InputError(
                f"{name} has the standard error {claim.std_error}, but that of its users' values is {found.std_error}"
            )

    def _summarize_labels(self, values: NDArray[np.float64], grouping: str) -> dict[Any, Summary]:
        """Return a summary of the values per label, for labels that users have."""
        labels = self.labels.get(grouping)
        if labels is None:
            return {}
        known: dict[Any, int] = {}
        codes = np.array([known.setdefault(label, len(known)) for label in labels.tolist()], np.int64)
        return dict(zip(known, _summarize(values, codes, len(known)), strict=True))


def known_calls(names: Iterable[str]) -> dict[str, Call]:
    """Return the metrics of fastrec itself among these names.

    Custom metrics are left out, as their declaration may differ in the process that computed them.
    """
    found = {}
    for name in names:
        try:
            call = parse(name)
        except FastrecError:
            continue
        if call.metric.builtin and call.text == name:
            found[name] = call
    return found


def nan_is_asked(settings: Mapping[str, Any], calls: Iterable[Call]) -> bool:
    """Return whether a policy, of all metrics or of one, makes means NaN although users have values."""
    own = (policy for call in calls for policy in (call.no_truth, call.no_recs, dict(call.options).get("no_history")))
    return "nan" in (*(settings.get(policy) for policy in NAN_POLICIES), *own)


def plain_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics that are the plain mean of the values of users, under the settings of a report."""
    return frozenset(name for name, value in values_of_settings(calls, settings).items() if value.is_plain)


def with_effects_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics whose values of users are effects of their lists on the number of all lists."""
    return frozenset(name for name, value in values_of_settings(calls, settings).items() if value.has_effects)


def values_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> dict[str, Value]:
    """Return how metrics are evaluated under the settings of a report. Metrics that lack a setting are left out."""
    return {name: plan.values[0] for name, plan in _plans(calls, settings)}


def sides_of_settings(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the sides that metrics read. Metrics that lack a setting are left out."""
    return {name: plan.reads[calls[name].text] for name, plan in _plans(calls, settings)}


def reading_size(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> frozenset[str]:
    """Return the metrics that read the size of the catalogue. Metrics that lack a setting are left out."""
    return frozenset(name for name, plan in _plans(calls, settings) if plan.reads_size)


def _plans(calls: Mapping[str, Call], settings: Mapping[str, Any]) -> Iterator[tuple[str, Plan]]:
    """Yield the plan of each metric that has all its settings."""
    asked = Asked(
        n_items=settings.get("n_items"),
        expected=settings.get("ties") == "expected",
        one_class=settings.get("one_class", "drop"),
    )
    for name, call in calls.items():
        with contextlib.suppress(FastrecError):  # the metric needs a setting that is missing
            yield name, make_plan((call,), asked)


def _check_labels(grouping: str, labels: NDArray[Any], groups: Mapping[Any, Any]) -> None:
    """Check that each user is in an existing group."""
    unknown = next((label for label in dict.fromkeys(labels.tolist()) if label not in groups), None)
    if unknown is not None:
        raise InputError(
            f"a user is in group {shown(unknown)} of {shown(grouping)}, which has the groups {shown(list(groups))}"
        )


def check_range(name: str, mean: float, call: Call) -> None:
    """Raise InputError for a mean outside the declared range of the metric. NaN passes."""
    low, high = call.metric.range
    if mean < low - SLACK or (high is not None and mean > high + SLACK):
        raise InputError(f"{name} must be {_range(low, high)}, found {mean}")


def _range(low: float, high: float | None) -> str:
    return f"at least {low:g}" if high is None else f"from {low:g} to {high:g}"


def _check_claim(name: str, claim: Claim, call: Call | None, n_users: int) -> None:
    if claim.std_error < 0:
        raise InputError(f"the standard error of {name} must be at least 0, found {claim.std_error}")
    if claim.users > n_users:
        raise InputError(f"{name} counts {counted(claim.users, 'user')}, but there are only {n_users:,}")
    if call is not None:
        check_range(name, claim.mean, call)


def _check_values(call: Call, values: NDArray[np.float64]) -> None:
    low, high = call.metric.range
    wrong = values < low - SLACK
    if high is not None:
        wrong |= values > high + SLACK
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(f"{call.text} of user {at} must be {_range(low, high)}, found {values[at]}")


def _summarize(values: NDArray[np.float64], codes: NDArray[np.int64], n: int) -> list[Summary]:
    """Return a summary of the values of the users of each code from 0 to n - 1, NaN left out."""
    counted = ~np.isnan(values)
    values, codes = values[counted], codes[counted]
    users = np.bincount(codes, minlength=n)
    scale = float(np.abs(values).max(initial=0.0)) or 1.0  # keeps sums and squares within the range of a double
    unit = values / scale
    at_least_1, low, high = np.maximum(users, 1), np.full(n, np.inf), np.full(n, -np.inf)
    means = np.bincount(codes, unit, n) / at_least_1
    means += np.bincount(codes, unit - means[codes], n) / at_least_1  # adds back what plain summing lost
    squares = np.bincount(codes, (unit - means[codes]) ** 2, n)
    errors = np.sqrt(squares / (np.maximum(users - 1, 1) * at_least_1))
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    return list(map(Summary, *(each.tolist() for each in (users, means * scale, errors * scale, low, high))))


def _check_share(name: str, whole: Claim, own: Claim, rest: Claim | None) -> None:
    """Check that a group and the rest of the users make up all users, if the rest is known."""
    if rest is None or not rest.users or any(map(math.isnan, (whole.mean, own.mean, rest.mean))):
        return
    total, parts = whole.users * whole.mean, (own.users * own.mean, rest.users * rest.mean)
    slack = SLACK * max(map(abs, (total, *parts))) + MIN_SLACK * whole.users
    if own.users + rest.users != whole.users or not abs(sum(parts) - total) <= slack:
        raise InputError(
            f"{name} and the users outside it do not add up to the {counted(whole.users, 'user')} "
            f"with the mean {whole.mean}"
        )

"""Values of the same users under two systems, as pairs."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fastrec.checks import counted, is_whole
from fastrec.comparison.row import ComparisonRow
from fastrec.exceptions import Argument, InputError, MetricError, Text
from fastrec.inputs.users import NO_LABEL, alike
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import Call
from fastrec.report.estimates import NOBODY, Estimate
from fastrec.report.plans import known_calls, reading_size, values_of_settings, with_effects_of_settings
from fastrec.report.report import Report
from fastrec.report.significance import (
    UNKNOWN,
    pair_differences,
    run_test,
    student_test,
)
from fastrec.report.values import why_no_mean

Array = np.ndarray[Any, Any]
NO_MEAN = "is not a plain mean of users' values, which compare needs"
PLAIN_MEAN_OPTIONS = {"average": "user", "weight": "equal"}  # options that make a metric such a mean
NO_VALUES = "has no values per user, which compare needs"
NO_ERROR = "is a number of all {} together without a known standard error, which compare needs"
NO_EFFECTS = "has no values per user in a report made from batches, which compare needs: evaluate all lists in one call"
NO_EFFECTS_OF_ROWS = (
    "has no effects of users in a report made from batches, which compare needs: evaluate all rows in one call"
)
OTHER_ROWS = "is a number of all rows together, which can be compared only if the same users count in all reports"
NO_SLOPE = "has no known effects of users in one of the reports, such as where a ratio is 0 / 0"
NO_RANKS = "has effects of users' rows and no values of users, whose ranks "
OTHER_LISTS = (
    "is a number of all lists together, which can be compared only if the same users have lists in all reports: select "
    "these users"
)
NOT_WITHIN = "its values per user are effects on the number of all lists together, not on that of a group"
OTHER_GROUPS = (
    "only means of users' values are compared there: users without a label in one report have one in another, so "
    "groups of the reports hold other users"
)
NO_USER_DIFFERS = "no user differs"
FEW_USERS = 20  # that differ
SAME_DIFFERENCE = "all users differ by the same amount: the p-value takes it for certain, the interval does not"
FEW_DIFFER = f"fewer than {FEW_USERS} users differ: the interval may be too narrow"
KINDS = {"i": "integers", "u": "integers", "U": "strings"}


class PairedValues:
    """Values of users under each system, all in the same order of users."""

    def __init__(self, systems: Mapping[str, Report], settings: Mapping[str, Any], n_threads: int) -> None:
        self._systems, self._settings, self._n_threads = systems, settings, n_threads
        self._places = dict(zip(systems, _places(systems), strict=True))
        self._n_users = 1 + max(int(places.max(initial=-1)) for places in self._places.values())
        self._inside: dict[tuple[str | None, Any], Array] = {}  # (grouping, group) -> its users
        self._regrouped: set[str] = set()  # groupings where users without a label in one report have one in another
        self._values = functools.lru_cache(maxsize=len(systems))(self._values_of)

    def _values_of(self, system: str, metric: str, grouping: str | None = None) -> Array:
        """Return the value of each user, NaN for users without one: of metrics of all rows, effects that stand for it.

        The effects are on the number of all rows, or on that of the user's group in a grouping.
        """
        values, report = np.full(self._n_users, math.nan), self._systems[system]
        own = report.effects[metric][grouping] if metric in report.effects else report.per_user[metric]
        values[self._places[system]] = own
        return values

    def segments(self) -> dict[str | None, list[tuple[str | None, Any]]]:
        """Return the groupings that all reports have, and the groups of each."""
        first, *others = self._systems.values()
        found: dict[str | None, list[tuple[str | None, Any]]] = {}
        for name in first.labels:
            if all(name in other.labels for other in others):
                labels, codes = self._join_labels(name)
                order = np.argsort(codes, kind="stable")
                ends = np.searchsorted(codes[order], np.arange(len(labels) + 1))
                found[name] = [(name, label) for label in labels]
                parts = np.split(order, ends)[1:-1]  # users without a label come first
                self._inside |= dict(zip(found[name], parts, strict=True))
        return found

    def _join_labels(self, grouping: str) -> tuple[list[str | int], Array]:
        """Return the groups, and the group of each user, which must be the same in all reports that know it."""
        labels, codes = _encode_labels([report.labels[grouping] for report in self._systems.values()], grouping)
        joined = np.full(self._n_users, -1)
        for (name, places), own in zip(self._places.items(), codes, strict=True):
            other = (own >= 0) & (joined[places] >= 0) & (joined[places] != own)
            if other.any():
                at = int(other.argmax())
                raise InputError(
                    f"user {_id_of(self._systems[name], at)!r} is in group {labels[own[at]]!r} of {grouping} "
                    f"in {name}, but in {labels[joined[places][at]]!r} in another report"
                )
            joined[places[own >= 0]] = own[own >= 0]
        if any((joined[places[own < 0]] >= 0).any() for places, own in zip(self._places.values(), codes, strict=True)):
            self._regrouped.add(grouping)
        if (joined >= 0).all():
            return labels, joined
        spelled = [*map(str, labels), NO_LABEL]  # as in reports
        order = sorted(range(len(spelled)), key=spelled.__getitem__)
        return [spelled[at] for at in order], np.argsort(order)[joined]

    def row(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> ComparisonRow:
        """Return a row, its p-value not yet corrected."""
        where = metric, system, baseline, grouping, group
        found = self._numbers_of_ratio(*where) if self._is_ratio(metric) else self._numbers_of_mean(*where)
        direction = parse(metric).metric.direction
        return ComparisonRow(
            metric=metric,
            system=system,
            baseline=baseline,
            p_corrected=found["p_value"],
            detectable=math.nan,  # depends on the rank of the p-value
            grouping=grouping,
            group=group,
            direction=direction.kind,
            target=direction.target,
            **found,
        )

    def _is_ratio(self, metric: str) -> bool:
        """Return whether a metric is a ratio of sums with a target, even one that equals a mean over users."""
        call = parse(metric)
        if call.metric.direction.target is None or self.is_of_all_rows(metric):
            return False
        return not (call.needs_users and all(report.is_mean(metric) for report in self._systems.values()))

    def is_of_all_rows(self, metric: str) -> bool:
        """Return whether a metric is a number of all rows together, and all reports have the effects of users on it."""
        return all(metric in report.effects for report in self._systems.values())

    def is_of_all_lists(self, metric: str) -> bool:
        """Return whether a metric is a number of all lists together, and its values are the effects of users' lists."""
        return any(_has_effects(report, metric) for report in self._systems.values())

    def why_not_within(self, metric: str, grouping: str | None) -> str:
        """Return why a metric cannot be compared within the groups of a grouping; empty if it can."""
        if grouping is None:
            return ""
        is_of_rows = self.is_of_all_rows(metric)
        if is_of_rows and not all(grouping in report.effects[metric] for report in self._systems.values()):
            return NOT_WITHIN
        if not is_of_rows and self.is_of_all_lists(metric):
            return NOT_WITHIN
        return OTHER_GROUPS if grouping in self._regrouped and (is_of_rows or self._is_ratio(metric)) else ""

    def _have_same_lists(self, metric: str) -> bool:
        """Return whether the same users have a list in all reports."""
        first, *others = (~np.isnan(self._values_of(system, metric)) for system in self._systems)
        return all(np.array_equal(first, other) for other in others)

    def why_not(self, metric: str) -> str:
        """Return why a metric cannot be compared; empty if it can."""
        try:
            call = parse(metric)
        except MetricError:
            return "is not declared here, so it is unknown which values are better: call ranking_metric first"
        sizes = {name: report.settings.get("n_items") for name, report in self._systems.items()}
        if len(set(sizes.values())) > 1 and any(_reads_size(report, metric) for report in self._systems.values()):
            return Text("reads ", Argument("n_items"), f", which differs: {listed_names(sizes)}")
        if self.is_of_all_rows(metric):
            why = self._why_no_number(metric) or self._why_no_effects(metric)
        elif any(_has_influence(report, metric) for report in self._systems.values()):
            why = NO_EFFECTS_OF_ROWS
        elif not call.needs_users and all(np.isnan(own.per_user[metric]).all() for own in self._systems.values()):
            why = NO_VALUES
        else:
            why = self._why_no_ratio(metric) if self._is_ratio(metric) else self._why_no_mean(metric)
        if why:
            return why
        if self._settings["missing"] == "zero" and call.metric.is_good_at_zero:
            zero = Argument("missing", ("zero",))
            return Text("may be best at 0, so ", zero, " would give missing users a good value")
        return ""

    def _why_no_number(self, metric: str) -> str:
        unknown = next((own for own in self._systems.values() if math.isnan(own[metric])), None)
        return "" if unknown is None else f"has no value in one of the reports{why_no_mean(unknown, metric)}"

    def _why_no_effects(self, metric: str) -> str:
        if self._settings["test"] == "wilcoxon":
            return Text(NO_RANKS, Argument("test", ("wilcoxon",)), " compares: choose another test")
        if any(np.isnan(self._values_of(system, metric)).all() for system in self._systems):
            return NO_SLOPE
        return "" if self._have_same_lists(metric) else OTHER_ROWS

    def _why_no_ratio(self, metric: str) -> str:
        if any(len(places) < self._n_users for places in self._places.values()):
            return "is a ratio of sums, which can be compared only if all reports have the same users"
        return self._why_no_number(metric)

    def _why_no_mean(self, metric: str) -> str:
        if (report := next((own for own in self._systems.values() if not own.is_mean(metric)), None)) is not None:
            return _why_not_in(report, metric)
        return OTHER_LISTS if self.is_of_all_lists(metric) and not self._have_same_lists(metric) else ""

    def _numbers_of_ratio(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> dict[str, Any]:
        """Return the numbers of a row for a ratio of sums with a target, from its two estimates."""
        ours, theirs = (self._estimate(name, metric, grouping, group) for name in (system, baseline))
        unpaired = abs(ours.users - theirs.users)
        self._check_paired(unpaired, metric, system, baseline)
        target = parse(metric).metric.direction.target
        differences, _ = pair_differences(np.array([ours.mean]), np.array([theirs.mean]), target)
        difference = float(differences[0])
        users, level = min(ours.users, theirs.users), self._settings["level"]
        return {
            "mean": ours.mean,
            "baseline_mean": theirs.mean,
            "difference": difference,
            **student_test(difference, ours.std_error + theirs.std_error, users, level)._asdict(),
            **dict.fromkeys(("wins", "ties", "losses")),
            "users": users,
            "unpaired": unpaired,
        }

    def _estimate(self, system: str, metric: str, grouping: str | None, group: str | int | None) -> Estimate:
        return estimate_in(self._systems[system], metric, grouping, group)

    def _numbers_of_mean(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> dict[str, Any]:
        """Return the numbers of a row for a mean of users' values, or of their distances to a target."""
        where = (metric, grouping) if self.is_of_all_rows(metric) else (metric,)
        ours, theirs = self._values(system, *where), self._values(baseline, *where)
        if grouping is not None:
            inside = self._inside[grouping, group]
            ours, theirs = ours[inside], theirs[inside]
        counted, counted_there = ~np.isnan(ours), ~np.isnan(theirs)
        unpaired = int(np.count_nonzero(counted != counted_there))
        self._check_paired(unpaired, metric, system, baseline)
        used = counted | counted_there if self._settings["missing"] == "zero" else counted & counted_there
        if self.is_of_all_rows(metric) and unpaired:  # a number of the group has no known effects on one side
            used = np.zeros_like(counted)
        ours, theirs = np.nan_to_num(ours[used]), np.nan_to_num(theirs[used])
        direction = parse(metric).metric.direction
        target = direction.target
        if self.is_of_all_rows(metric):
            known = [self._estimate(name, metric, grouping, group).mean for name in (system, baseline)]
            ours, theirs = (_distances(own, mean, target) for own, mean in zip((ours, theirs), known, strict=True))
            target = None
        differences, magnitude = pair_differences(ours, theirs, target)
        wins, ties, losses = (int(np.count_nonzero(np.sign(differences) == way * direction.sign)) for way in (1, 0, -1))
        found: dict[str, int | None] = {"wins": wins, "ties": ties, "losses": losses}
        if not direction.sign:
            found |= {"wins": None, "losses": None}
        options: dict[str, Any] = {name: self._settings[name] for name in ("level", "n_rounds", "seed")}
        low, high = parse(metric).metric.limits
        # effects of rows and lists are no values within the range
        is_of_all = self.is_of_all_lists(metric) or self.is_of_all_rows(metric)
        options |= {"n_threads": self._n_threads, "magnitude": magnitude, "width": high - low}
        tested = run_test(differences, self._settings["test"], **options)
        means = _means(ours, theirs, differences, target)
        if self.is_of_all_rows(metric) and self._has_no_error(metric, system, baseline, grouping, group):
            tested = UNKNOWN
        if is_of_all and tested.std_error == 0:
            tested = tested._replace(low=math.nan, high=math.nan)
        if is_of_all:
            found = dict.fromkeys(found)  # no user has such a number, only an effect on it
            # the numbers of the reports, without the rounding of the means
            mean, mean_there = (self._estimate(name, metric, grouping, group).mean for name in (system, baseline))
            apart = float(
                _distances(mean, mean, direction.target) - _distances(mean_there, mean_there, direction.target)
            )
            difference = 0.0 if len(differences) and not differences.any() else apart
            means = {"mean": mean, "baseline_mean": mean_there, "difference": difference}
        return {
            **means,
            **tested._asdict(),
            **found,
            "users": len(differences),
            "unpaired": unpaired,
            "note": _note_of(differences, is_student=self._settings["test"] == "t"),
        }

    def _has_no_error(
        self, metric: str, system: str, baseline: str, grouping: str | None, group: str | int | None
    ) -> bool:
        """Return whether a class has rows of fewer than two users, so that effects do not show how a metric varies."""
        known = (self._estimate(name, metric, grouping, group) for name in (system, baseline))
        return any(math.isnan(one.std_error) for one in known)

    def _check_paired(self, unpaired: int, metric: str, system: str, baseline: str) -> None:
        if unpaired and self._settings["missing"] == "error":
            raise InputError(
                f"{metric}: only one of {system} and {baseline} counts {counted(unpaired, 'user')}; ",
                Argument("missing", ("drop",)),
                " leaves such users out, ",
                Argument("missing", ("zero",)),
                " counts them as 0",
            )


def _note_of(differences: Array, *, is_student: bool) -> str:
    """Return a note on the interval of a difference, where many users are equal or all differ alike."""
    n, n_differ = len(differences), int(np.count_nonzero(differences))
    if not n_differ:
        return NO_USER_DIFFERS if n else ""
    if is_student and n > 1 and (differences == differences[0]).all():
        return SAME_DIFFERENCE
    return FEW_DIFFER if n_differ < FEW_USERS and 2 * n_differ < n else ""


def _means(ours: Array, theirs: Array, differences: Array, target: float | None) -> dict[str, float]:
    """Return the means of users' values, and their difference, or that of the distances to a target."""
    mean, mean_there = (float(values.mean()) if len(values) else math.nan for values in (ours, theirs))
    difference = 0.0
    if len(differences) == 0 or (differences.any() and target is None):
        difference = mean - mean_there
    elif differences.any():
        difference = float(np.abs(ours - target).mean()) - float(np.abs(theirs - target).mean())
    return {"mean": mean, "baseline_mean": mean_there, "difference": difference}


def _reads_size(report: Report, metric: str) -> bool:
    """Return whether the value of a metric depends on the size of the catalogue."""
    return metric in reading_size(known_calls([metric]), report.settings)


def _why_not_in(report: Report, metric: str) -> str:
    """Return why a metric that is no mean of users' values in a report cannot be compared."""
    if _has_effects(report, metric) and _lacks_values(report, metric):
        return NO_EFFECTS
    if _is_without_error(report, metric):
        return NO_ERROR.format("rows" if "rows" in report.data else "lists") + _plain_form(parse(metric))
    return f"{NO_MEAN}{_plain_form(parse(metric))}{why_no_mean(report, metric)}"


def _distances(effects: Any, mean: float, target: float | None) -> Any:
    """Return the effects on the distance of a metric to its target, from those on the metric."""
    return effects if target is None else abs(mean - target) + math.copysign(1, mean - target) * (effects - mean)


def _has_effects(report: Report, metric: str) -> bool:
    """Return whether the values of users are the number of all lists plus the effect of the user's list."""
    return metric in with_effects_of_settings(known_calls([metric]), report.settings)


def _has_influence(report: Report, metric: str) -> bool:
    """Return whether a metric follows from the order of all rows, and users' rows have known effects on it."""
    value = values_of_settings(known_calls([metric]), report.settings).get(metric)
    return value is not None and value.over is not None and value.over.influence is not None


def _is_without_error(report: Report, metric: str) -> bool:
    """Return whether a metric is a number of all lists or rows together that has no standard error."""
    value = values_of_settings(known_calls([metric]), report.settings).get(metric)
    if value is None or value.has_effects:
        return False
    of_ratio = value.ratio is not None and not value.ratio.std_error
    return of_ratio or (value.over is not None and value.over.std_error is None)


def _lacks_values(report: Report, metric: str) -> bool:
    """Return whether the values of users were not found, as those of some metrics take the lists a second time."""
    return math.isfinite(report[metric]) and bool(np.isnan(report.per_user[metric]).all())


def _plain_form(call: Call) -> str:
    """Return a hint at the options that make a metric a plain mean of users' values; empty if it has none."""
    own = {name: value for name, value in PLAIN_MEAN_OPTIONS.items() if name in call.metric.options}
    options = dict(call.options) | own
    plain = replace(call, options=tuple(options.items()))
    return f"; {plain.text}, another metric, can be compared" if plain != call else ""


def _places(systems: Mapping[str, Report]) -> list[Array]:
    """Return for each report the places of its users among all users in order of ids, or by position without ids."""
    reports = list(systems.values())
    without = [name for name, report in systems.items() if report.user_ids is None]
    if len(without) == len(systems):
        sizes = {name: len(next(iter(report.per_user.values()))) for name, report in systems.items()}
        if len(set(sizes.values())) > 1:
            raise InputError(f"without user_ids, reports must have the same users, found {listed_names(sizes)}")
        return [np.arange(size) for size in sizes.values()]
    if without:
        raise InputError(f"users are paired by id, but the report of {without[0]} has no user_ids")
    ids = alike([report.user_ids for report in reports if report.user_ids is not None])
    if all(np.array_equal(ids[0], other) for other in ids[1:]) and ids[0].dtype != object:
        order = np.argsort(ids[0], kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return [places] * len(ids)
    kinds = {name: _kind_of_ids(own) for name, own in zip(systems, ids, strict=True)}
    if len(set(kinds.values())) > 1:
        raise InputError(f"users are paired by id, but ids are {listed_names(kinds)}")
    if any(own.dtype == object for own in ids):
        known = sorted(
            {user for own in ids for user in own.tolist()}, key=lambda user: (type(user).__name__, repr(user))
        )
        place = {user: at for at, user in enumerate(known)}
        codes = [np.array([place[user] for user in own.tolist()], np.int64) for own in ids]
    else:
        joined = np.unique(np.concatenate(ids), return_inverse=True)[1]
        codes = _split_like(joined, ids)
    shared = functools.reduce(np.intersect1d, codes)
    if len(shared) == 0:
        examples = listed_names(
            {name: repr(own[:1].tolist()[0]) if len(own) else "none" for name, own in zip(systems, ids, strict=True)}
        )
        raise InputError(f"no user is in all reports: do the ids match? The first are {examples}")
    return codes


def _kind_of_ids(ids: Array) -> str:
    """Return what ids are; an array of objects may hold integers or strings that no other array holds exactly."""
    if ids.dtype != object:
        return KINDS.get(ids.dtype.kind, "objects")
    types = {str if isinstance(user, str) else int if is_whole(type(user)) else object for user in ids.tolist()}
    return {int: "integers", str: "strings"}.get(types.pop(), "objects") if len(types) == 1 else "objects"


def estimate_in(report: Report, metric: str, grouping: str | None, group: str | int | None) -> Estimate:
    """Return the estimate of a report over all users or in a group of a comparison.

    The report may have no users in the group, or the label as an integer or its text, see `_encode_labels`.
    """
    if grouping is None or group is None:
        return report.estimates[metric]
    by_label, text = report.groups[grouping], str(group)
    number = int(text) if text.removeprefix("-").isdecimal() else text
    label = next((label for label in (group, text, number) if label in by_label), None)
    return NOBODY if label is None else by_label[label][metric]


def _encode_labels(labels: Sequence[Array], grouping: str) -> tuple[list[str | int], list[Array]]:
    """Return all labels in order, and the label of each user of each report as its place there; -1 without one.

    A report with a user without a label has its integers as strings, see `spell_labels`. They are integers again if
    those of another report are.
    """
    present = [own != NO_LABEL if own.dtype.kind in "UO" else np.ones(len(own), bool) for own in labels]
    known = [own[has] for own, has in zip(labels, present, strict=True)]
    if any(own.dtype.kind in "iu" for own in labels):
        known = [own if has.all() else _as_integers(own) for own, has in zip(known, present, strict=True)]
    elif any(own.dtype.kind == "O" and not has.all() for own, has in zip(labels, present, strict=True)):
        known = list(map(_as_integers, known))
    kinds = {KINDS.get(own.dtype.kind, "objects") for own in known if len(own)}
    if len(kinds) > 1 or "objects" in kinds:
        raise InputError(f"the labels of groups[{grouping!r}] must be all integers or all strings")
    filled = [own for own in known if len(own)] or known[:1]
    distinct, joined = np.unique(np.concatenate(alike(filled)), return_inverse=True)
    codes = [np.full(len(own), -1) for own in labels]
    for own, has, part in zip(codes, present, _split_like(joined, known), strict=True):
        own[has] = part
    return distinct.tolist(), codes


def _as_integers(labels: Array) -> Array:
    """Return labels as integers if all are, or are the text of one; else as they are."""
    texts = np.array([str(label) for label in labels.tolist()], str)
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return numbers if (numbers.astype(str) == texts).all() else labels


def _split_like(joined: Array, parts: Iterable[Array]) -> list[Array]:
    """Split an array into pieces as long as `parts`."""
    return np.split(joined, np.cumsum([len(part) for part in parts])[:-1])


def listed_names(found: Mapping[str, Any]) -> str:
    """Return the value of each system, for a message."""
    return ", ".join(f"{value} in {name}" for name, value in found.items())


def _id_of(report: Report, position: int) -> Any:
    return position if report.user_ids is None else report.user_ids[position : position + 1].tolist()[0]

"""The state of an evaluator: exact sums that add and merge in any order, and the estimates they give."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fastrec.evaluation.accumulators import (
    Accumulator,
    AccumulatorKey,
    GroupKey,
    find_accumulator,
)
from fastrec.evaluation.exact import as_fraction, combined_error, mean_and_error, weighted_mean_and_error
from fastrec.exceptions import Argument, GroupingName, InputError, MetricError, Text, shown
from fastrec.inputs.row_groups import check_apart, refuse_many
from fastrec.inputs.users import NO_LABEL
from fastrec.kernels import codes as op
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.dual import slopes
from fastrec.metrics.intervals import kish_size
from fastrec.metrics.plan import Plan
from fastrec.metrics.statistics import Over, Ratio
from fastrec.metrics.traces import Value
from fastrec.report.archive import pack_integers, unpack_integers
from fastrec.report.estimates import Estimate, IntervalKind
from fastrec.report.row_digests import NO_ROWS, Digest, add_digests, read_digest

Array = np.ndarray[Any, Any]
NO_VARIANCE = 2.0**-24  # of the mean: what the rounding of squares may leave of the deviation of equal values
EQUAL = 2**45  # weights are equal if the effective number of users is theirs but for a part of this
FEW_USERS = 20  # with a value other than the most frequent one
FEW_ROWS = 10  # of a class
FEW_HITS = "few users with a hit: the interval may be too narrow"
FEW_VALUES = "few users differ: the interval may be too narrow"


class EffectSums:
    """Exact sums of the effects of users' lists or rows on a metric, and of their squares."""

    def __init__(self) -> None:
        self.total, self.squares = 0, 0
        self.classes: list[int] = []

    def add(self, sums: Iterable[int], classes: Iterable[int]) -> None:
        """Add the sums of a batch, in steps of 2^-GENERAL_SCALE; with rows also how many users have each class."""
        total, squares = sums
        self.total += total
        self.squares += squares
        self.classes = [one + other for one, other in itertools.zip_longest(self.classes, classes, fillvalue=0)]

    def std_error(self, n: int) -> float:
        """Return the standard error of the metric of n users; NaN if fewer than two of them have rows of a class."""
        if self.classes and min(self.classes) < 2:
            return math.nan
        return mean_and_error(n, self.total, self.squares, op.GENERAL_SCALE)[1]


class SegmentSums(NamedTuple):
    """Sums over the users of some segments of rows, see `Outcome`."""

    keys: list[GroupKey]
    totals: Array
    counts: Array


class State:
    """Sums over all users and over each group.

    All sums are integers, so the result has the same bits for any order of adding and merging.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.n_users = 0
        self._groups: dict[GroupKey, int] = {}
        self.row_groupings: list[str] = []  # the groupings of rows: a user may be in several of their groups
        self._labels: dict[tuple[str, str], str | int] = {}  # by grouping and label as a string, see `check_groups`
        self._totals = np.zeros((1, len(plan.scales), 2), dtype=object)
        self._counts = np.zeros((1, len(plan.min_gains), 4), np.int64)
        self.data_counts = np.zeros(op.N_DATA_COUNTS, np.int64)
        self.digest: Digest | None = NO_ROWS  # of the truth or the labels; None if it is unknown
        self.accumulators: dict[AccumulatorKey, Accumulator] = {}
        self.effects: dict[GroupKey | None, dict[int, EffectSums]] = {}  # by position of the metric, by a second pass
        self.n_reviewed = 0  # users in this pass

    @property
    def groups(self) -> list[GroupKey]:
        """Groups by grouping, in the order of the first batch. The order of labels does not depend on the batches."""
        if not self._groups:
            return []
        place = {grouping: nth for nth, grouping in enumerate(dict.fromkeys(grouping for grouping, _ in self._groups))}
        return sorted(self._groups, key=lambda key: (place[key[0]], isinstance(key[1], str), key[1]))

    def check_groups(self, groups: Collection[GroupKey], of_rows: Collection[str] = ()) -> None:
        """Raise InputError for groups that contradict those before; `of_rows` are the groupings of rows among them.

        A document could not tell labels apart such as 1 and "1" of one grouping.
        """
        new: dict[tuple[str, str], str | int] = {}
        for grouping, label in groups:
            text = grouping, str(label)
            known = self._labels[text] if text in self._labels else new.setdefault(text, label)
            if known != label and grouping not in of_rows and {(grouping, NO_LABEL)} & {*groups, *self._groups}:
                raise InputError(
                    "groups[",
                    GroupingName(grouping),
                    f"] has the labels {shown(known)} and {shown(label)}, as labels are strings in a batch with a user "
                    "without one: give every user a label, by the column in the truth, or by ",
                    Argument("by", (...,)),
                    " as a data frame of users or {user: label}",
                )
            if known != label:
                argument, whose = ("row_groups", "rows") if grouping in of_rows else ("groups", "users")
                raise InputError(
                    f"{argument}[",
                    GroupingName(grouping),
                    f"] has the labels {shown(known)} and {shown(label)}, two groups of one name: make the "
                    f"labels of all {whose} integers, or all strings",
                )
        names = {grouping for grouping, _ in groups}.difference(of_rows)
        check_apart(names.union(grouping for grouping, _ in self._groups).difference(self.row_groupings), of_rows)
        check_apart(names, self.row_groupings)
        for name in of_rows:
            keys = {key for key in itertools.chain(self._groups, groups) if key[0] == name}
            refuse_many(Text("row_groups[", GroupingName(name), "]"), len(keys))

    def add(self, n_users: int, totals: Array, counts: Array, data_counts: Array, groups: list[GroupKey]) -> None:
        """Add the sums of a batch, as in `Outcome`, whose groups 1, 2, ... are `groups`."""
        rows = [0, *(self._places(groups) if groups else ())]
        self._totals[rows] += totals
        self._counts[rows] += counts
        self.data_counts = self.data_counts + data_counts
        self.n_users += n_users
        self.effects, self.n_reviewed = {}, 0

    def add_segments(self, segments: Iterable[SegmentSums]) -> None:
        """Add the sums of the segments of the rows of a batch that was added."""
        for own in segments:
            self._know_row_groupings(name for name, _ in own.keys)
            at = self._places(own.keys)
            self._totals[at] += own.totals
            self._counts[at] += own.counts

    def merge(self, other: State) -> None:
        """Add the sums of another state with the same plan."""
        rows = len(other._groups) + 1  # the arrays grow ahead of the groups
        self.add(other.n_users, other._totals[:rows], other._counts[:rows], other.data_counts, list(other._groups))
        self._know_row_groupings(other.row_groupings)
        self.accumulate(other.accumulators.items(), other.digest)

    def accumulate(self, found: Iterable[tuple[AccumulatorKey, Accumulator]], digest: Digest | None = NO_ROWS) -> None:
        """Add accumulators of a batch or of another state, and the digest of its rows."""
        self.digest = add_digests(self.digest, digest)
        for key, own in found:
            if key not in self.accumulators:
                self.accumulators[key] = self._empty(key.kind, key.condition, own.weighted)
            self.accumulators[key].merge(own)

    def _empty(self, kind: str, condition: int, weighted: bool = False) -> Accumulator:  # noqa: FBT001, FBT002 - as in every kind
        """Return an accumulator without users."""
        return find_accumulator(kind).empty(self.plan.keys_of(kind, condition), weighted)

    def _places(self, groups: list[GroupKey]) -> list[int]:
        """Return the rows of groups in the arrays, new ones for groups that are new."""
        known = len(self._groups)
        rows = [self._groups.setdefault(key, len(self._groups) + 1) for key in groups]
        new = itertools.islice(self._groups, known, None)
        self._labels |= {(grouping, str(label)): label for grouping, label in new}
        self._totals = _grown(self._totals, len(self._groups) + 1)
        self._counts = _grown(self._counts, len(self._groups) + 1)
        return rows

    def _know_row_groupings(self, names: Iterable[str]) -> None:
        self.row_groupings = list(dict.fromkeys([*self.row_groupings, *names]))

    def pack(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the state as a document of plain data, and arrays."""
        rows = len(self._groups) + 1
        at = {key: row - 1 for key, row in self._groups.items()}
        document = {
            "users": self.n_users,
            "groups": list(self._groups),
            "facts": self.data_counts.tolist(),
            "sums": self.plan.sums_digest,
            "digest": self.digest and self.digest._asdict(),
            "row_groupings": self.row_groupings,
        }
        arrays = {"counts": self._counts[:rows], **pack_integers(self._totals[:rows])}
        listed: list[Any] = []
        for key, own in self.accumulators.items():
            arrays |= {f"accumulators_{len(listed)}_{part}": array for part, array in own.pack().items()}
            listed.append([key.kind, key.condition, None if key.group is None else at[key.group], own.weighted])
        return document | {"accumulators": listed}, arrays

    @classmethod
    def unpack(cls, plan: Plan, document: dict[str, Any], arrays: dict[str, Array]) -> State:
        """Undo `pack`, for the same plan."""
        if document["sums"] != plan.sums_digest:
            raise InputError("this version computes its metrics differently, or has other metrics of the same name")
        state = cls(plan)
        state.digest = read_digest(document["digest"])
        groups: list[GroupKey] = [(grouping, label) for grouping, label in document["groups"]]
        of_rows = document["row_groupings"]
        state.check_groups(groups, of_rows)
        totals = unpack_integers(arrays, (len(groups) + 1, len(plan.scales), 2))
        counts = arrays["counts"].astype(np.int64, casting="safe")
        if counts.shape != (len(groups) + 1, len(plan.min_gains), 4):
            raise InputError(f"expected counts of {len(groups)} groups, found shape {counts.shape}")
        state.add(int(document["users"]), totals, counts, np.array(document["facts"], np.int64), groups)
        state._know_row_groupings(of_rows)
        parts: dict[str, dict[str, Array]] = {}
        for name, array in arrays.items():
            if name.startswith("accumulators_"):
                _, at, part = name.split("_", 2)
                parts.setdefault(at, {})[part] = array
        for nth, (kind, condition, row, weighted) in enumerate(document["accumulators"]):
            key = AccumulatorKey(kind, condition, None if row is None else groups[row])
            own = parts.get(str(nth), {})
            state.accumulators[key] = find_accumulator(kind).unpack(own, plan.keys_of(kind, condition), weighted)
        return state

    def count_of_call(self, column: int) -> int:
        """Return the number of users in a column of the counts, for the `min_gain` and the policies of the call."""
        return int(self._counts[0, 0, column])

    def count(self, column: int) -> int:
        """Return the number of users in a column of the counts, for the `min_gain` of the call.

        If no metric reads a truth, return the number for the first metric.
        """
        condition = 0 if self.plan.reads_relevance else self.plan.values[0].condition
        return int(self._counts[0, condition, column])

    def part(self, group: GroupKey | None = None) -> GroupSums:
        """Return the sums over all users, or over a group."""
        row = 0 if group is None else self._groups[group]
        accumulators = {}
        for kind, condition, _ in self.plan.accumulators:
            if (key := AccumulatorKey(kind, condition, group)) in self.accumulators:
                accumulators[kind, condition] = self.accumulators[key]
            elif self.n_users == 0:
                accumulators[kind, condition] = self._empty(kind, condition)
        effects = self.effects.get(group, {}) if self.n_reviewed == self.n_users else {}
        return GroupSums(self.plan, self._totals[row], self._counts[row], accumulators, effects)

    def rest(self, group: GroupKey) -> GroupSums:
        """Return the sums over all users outside a group. Accumulators are not kept for them."""
        row = self._groups[group]
        return GroupSums(self.plan, self._totals[0] - self._totals[row], self._counts[0] - self._counts[row], {})


class GroupSums(NamedTuple):
    """Sums over some users, and the estimates they give."""

    plan: Plan
    totals: Array
    counts: Array
    accumulators: Mapping[tuple[str, int], Accumulator]  # by kind and condition
    effects: Mapping[int, EffectSums] = {}  # by position of the metric

    def estimate(self, value: Value) -> Estimate:
        """Return the estimate of a metric."""
        try:
            found = self._estimate(value)
        except MetricError as error:
            raise MetricError(value.call.text, ": ", error.text) from error
        if self.plan.is_estimated:  # from samples: estimates may lie outside the range
            return found
        return found._replace(range=value.call.metric.limits)

    def n_users(self, value: Value) -> int:
        """Return the number of users who count in a metric over all lists or rows."""
        return int(self._sum(self.plan.position(value, 0)))

    def _estimate(self, value: Value) -> Estimate:
        if value.over is not None:
            return self._over(value, value.over)
        if value.ratio is not None:
            return self._ratio(value, value.ratio)
        counts = self.counts[value.condition]
        n = int(counts[op.N_EVALUATED])
        if counts[op.N_NAN]:
            return Estimate(math.nan, math.nan, n + int(counts[op.N_NAN]))
        if value.combined is not None:
            of_geometric: IntervalKind = "student" if value.call.mean is None else "log"
            (mean, error), degrees = self._combined(value, n), self._degrees(value, n)
            return Estimate(mean, _without_noise(error, mean, degrees), n, degrees, of_geometric)
        return self._mean(value, n)

    def _mean(self, value: Value, n: int) -> Estimate:
        """Return the estimate of a mean of the values of n users."""
        first = self.plan.position(value, 0)
        if self.plan.weighted:
            weight, second = self.plan.weight_position(value), self.plan.position(value, 1)
            sums = tuple(self._sum(*at) for at in ((weight,), (weight, 1), (first,), (second,), (first, 1)))
            return self._of_mean(value, n, *weighted_mean_and_error(n, *sums), sums)
        (total, squares), unit = self.totals[first], 1 << self.plan.scales[first]
        found = mean_and_error(n, total, squares, self.plan.scales[first])
        return self._of_mean(value, n, *found, (n * unit, n * unit, total, total, squares), unit)

    def _of_mean(
        self, value: Value, n: int, mean: float, error: float, sums: tuple[Any, ...], unit: int = 1
    ) -> Estimate:
        """Return the estimate of a mean of n values v with weights w, from the sums of w, w^2, w v, w^2 v and w^2 v^2.

        The sums are exact numbers, times a unit.
        """
        low, high = (-math.inf, math.inf) if self.plan.is_estimated else value.call.metric.limits
        # the squares of weights are rounded
        have_equal_weights = (n * unit * sums[1] - sums[0] * sums[0]) * EQUAL <= sums[0] * sums[0]
        kind: IntervalKind = "student"
        if low >= 0 and high <= 1 and have_equal_weights and sums[3] == sums[4]:  # v = v^2
            kind = "wilson"
        elif _without_noise(error, mean, self._degrees(value, n)) == 0:
            kind = "one value"
        is_doubtful = kind == "student" and n > 1 and _users_in_effect(sums, unit, high) < FEW_USERS
        note = self._note_of_few(value) if is_doubtful else ""
        return Estimate(mean, error, n, self._degrees(value, n), kind, note=note)

    def _note_of_few(self, value: Value) -> str:
        return FEW_HITS if "truth" in self.plan.reads[value.call.text] else FEW_VALUES

    def _degrees(self, value: Value, n: int) -> float:
        """Return the degrees of freedom of an error over n users; with weights n is their effective number."""
        if not self.plan.weighted:
            return float(n - 1)
        weight = self.plan.weight_position(value)
        return kish_size(self._sum(weight), self._sum(weight, 1)) - 1

    def _over(self, value: Value, over: Over) -> Estimate:
        found = self.accumulators.get((over.accumulator, value.condition))
        users = self.n_users(value)
        is_spoilt = value.call.metric.family is LISTS and self.counts[value.condition][op.N_NAN]
        if found is None or is_spoilt:
            return Estimate(math.nan, math.nan, users)
        at = next((at for at, own in enumerate(self.plan.values) if own is value), -1)
        if at in self.effects:
            sums = self.effects[at]
            error, degrees = sums.std_error(users), self._degrees(value, users)
            few, least, what = FEW_USERS, min(sums.classes, default=FEW_USERS), "users with rows"
        elif over.std_error is None:
            return Estimate(over.value(found), math.nan, users)
        else:
            (error, degrees, least), few, what = over.std_error(found), FEW_ROWS, "rows"
        is_doubtful = least < few and error > 0
        note = f"fewer than {few} {what} of a class: the interval may be too narrow" if is_doubtful else ""
        return Estimate(over.value(found), error, users, degrees, note=note)

    def _ratio(self, value: Value, ratio: Ratio) -> Estimate:
        """Return a ratio, a function of sums that scaling all of them does not change, and its standard error."""
        size = len(ratio.rows)
        at = [self.plan.position(value, nth) for nth in range(len(value.sums))]
        n = int(self._sum(at[-1]))
        if value.call.metric.family is LISTS and (n_nan := int(self.counts[value.condition][op.N_NAN])):
            return Estimate(math.nan, math.nan, n + n_nan)
        if n == 0 or (ratio.spoils is not None and self._sum(at[-2])):
            return Estimate(math.nan, math.nan, n)
        means = [self._sum(at[i]) / n for i in range(size)]
        exact = ratio.exact
        found = None if exact is None else self.accumulators.get((exact.accumulator, value.condition))
        if exact is None or found is None:
            mean, has_error = float(ratio.function(*means)), ratio.std_error
        else:
            mean, has_error = exact.value(found), ratio.std_error and exact.is_steady(found)
        if not has_error or n == 1 or not math.isfinite(mean):
            return Estimate(mean, math.nan, n)
        pairs = dict(zip(itertools.combinations(range(size), 2), at[size:-1], strict=False))
        scale = Fraction(n, n - 1) / (n * n)
        covariance = [[Fraction(0)] * size for _ in range(size)]
        for i, j in itertools.combinations_with_replacement(range(size), 2):
            product = self._sum(at[i], 1) if i == j else self._sum(pairs[i, j])
            covariance[i][j] = covariance[j][i] = (product - n * means[i] * means[j]) * scale
        degrees = self._degrees(value, n)
        error = _without_noise(combined_error(ratio.function, means, covariance), mean, degrees)
        if ratio.is_mean:  # its sums are those of w v, w and w^2 v
            sums = tuple(self._sum(*of) for of in ((at[1],), (at[1], 1), (at[0],), (at[2],), (at[0], 1)))
            return self._of_mean(value, n, mean, error, sums)
        is_doubtful = error > 0 and kish_size(self._sum(at[0]), self._sum(at[0], 1)) < FEW_USERS
        return Estimate(mean, error, n, degrees, note=self._note_of_few(value) if is_doubtful else "")

    def slopes(self, value: Value) -> tuple[float, list[float], list[float]] | None:
        """Return a ratio, the means of its sums over the users who count, and its slopes in them; None without any."""
        mean, _, n, *_ = self.estimate(value)
        if value.ratio is None or not math.isfinite(mean):
            return None
        means = [self._sum(self.plan.position(value, nth)) / n for nth in range(len(value.ratio.rows))]
        found = slopes(value.ratio.function, means)
        return None if found is None else (mean, list(map(float, means)), list(map(float, found)))

    def _sum(self, position: int, moment: int = 0) -> Fraction:
        return as_fraction(self.totals[position, moment], self.plan.scales[position])

    def _combined(self, value: Value, n: int) -> tuple[float, float]:
        """Return a function of means, and its standard error by the delta method."""
        assert value.combined is not None
        size = len(value.combined.rows)
        weight = Fraction(n)
        if self.plan.weighted:
            weight = self._sum(self.plan.weight_position(value))
        if n == 0 or weight == 0:
            return math.nan, math.nan
        means = [self._sum(self.plan.position(value, i)) / weight for i in range(size)]
        mean = float(value.combined.function(*means))
        if n == 1:
            return mean, math.nan
        spread = self._spread(value, means, n)
        scale = Fraction(n, n - 1) / (weight * weight)
        covariance = [[each * scale for each in line] for line in spread]
        return mean, combined_error(value.combined.function, means, covariance)

    def _spread(self, value: Value, means: list[Fraction], n: int) -> list[list[Fraction]]:
        """Return the sums over users of w^2 (a - mean of a) (b - mean of b) for all pairs of the value's rows."""
        size = len(means)
        at = [self.plan.position(value, nth) for nth in range(len(value.sums))]
        squares = Fraction(n)
        cross = [self._sum(at[i]) for i in range(size)]
        if self.plan.weighted:
            weight = self.plan.weight_position(value)
            squares = self._sum(weight, 1)
            cross = [self._sum(at[size + i]) for i in range(size)]
        pairs = dict(zip(itertools.combinations(range(size), 2), at[len(at) - size * (size - 1) // 2 :], strict=True))
        spread = [[Fraction(0)] * size for _ in range(size)]
        for i, j in itertools.combinations_with_replacement(range(size), 2):
            product = self._sum(at[i], 1) if i == j else self._sum(pairs[i, j])
            centred = product - means[i] * cross[j] - means[j] * cross[i] + means[i] * means[j] * squares
            spread[i][j] = spread[j][i] = centred
        return spread


def _without_noise(error: float, mean: float, degrees: float) -> float:
    """Return an error, or 0 for what rounding of squares may leave of the error of equal values."""
    return 0.0 if error * math.sqrt(degrees + 1) <= NO_VARIANCE * abs(mean) else error


def _users_in_effect(sums: tuple[Any, ...], unit: int, high: float) -> float:
    """Return a lower bound of the number of users with a value other than 0, or other than the highest value.

    With weights w and values v it is (sum of w (v - end))^2 / sum of (w (v - end))^2 for both ends. `sums` are the
    exact sums of w, w^2, w v, w^2 v and w^2 v^2, times a unit.
    """
    weight, weight_squares, total, cross, squares = sums
    sizes = []
    for end in {Fraction(0), Fraction(high if high < math.inf else 0)}:
        factor: Any = end.numerator if end.denominator == 1 else end  # integers are faster
        part, whole = total - factor * weight, squares - factor * (2 * cross - factor * weight_squares)
        sizes.append(float(part * part / (whole * unit)) if whole > 0 else 0.0)
    return min(sizes)


def _grown(array: Array, rows: int) -> Array:
    """Return the array with at least `rows` rows, new rows zero."""
    if len(array) >= rows:
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger

"""Plan of a call: the sums, checks and row programs that the formulas of its metrics need."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from fastrec.checks import MinGain
from fastrec.exceptions import InputError, MetricError, shown
from fastrec.kernels import codes as op
from fastrec.kernels.program import Program
from fastrec.metrics.declaration import LISTS, ROWS, Call, Changes
from fastrec.metrics.geometric import geometric_mean, refuse_geometric
from fastrec.metrics.program import ConditionRows, Extent, Writer, counts_all, is_linear, vanishes
from fastrec.metrics.providers import Provided, find_provider
from fastrec.metrics.row_statistics import SCORE_COUNTS, RowStatistics
from fastrec.metrics.sampled import OF_ALL_HITS, arrays_refused, of_whole_catalogue
from fastrec.metrics.statistics import (
    Combined,
    ListStatistics,
    Over,
    Ratio,
    Row,
    Statistics,
    UntraceableError,
    Values,
    constant,
)
from fastrec.metrics.sums import ANY_SIZE, Check, Sum, SumList, program_of_sums, rows_of_condition
from fastrec.metrics.traces import ArrayFormula, Condition, Traced, Value
from fastrec.policies import CORRECT, NO_RECS, NO_TRUTH, ONE_CLASS
from fastrec.runtime.threads import once

Array = np.ndarray[Any, Any]


class Policies(NamedTuple):
    """Which users count."""

    no_truth: str
    no_recs: str


ANY_GAIN = -1.0  # stands for min_gain="any" in kernels, which then see no gains below 0
UNREAD = "unread"  # stands for the policy no_truth of metrics that read no truth
INCLUDED, COUNTED = Row(("included",)), Row(("counted",))
WEIGHT = Row(("given", 0))
MAX_KEPT_WEIGHTS = 1_000_000  # 8 MB: a plan keeps no program with larger tables


class Accumulated(NamedTuple):
    """What an accumulator of a state must collect: its kind, the position of its condition, keys of metrics."""

    kind: str
    condition: int
    keys: tuple[Hashable, ...]


class Asked(NamedTuple):
    """What determines a plan, besides the metrics."""

    min_gain: MinGain | None = None
    n_items: int | None = None
    weighted: bool = False
    per_user: bool = False
    expected: bool = False  # tied rows count with their mean over all orders
    one_class: str = ONE_CLASS.default
    no_recs_given: bool = True  # else metrics have defaults of their own
    item_policies: tuple[tuple[str, str], ...] = ()  # that the call gives
    correct: str = CORRECT.default  # how lists that hold samples estimate metrics of the whole catalogue


def make_plan(calls: tuple[Call, ...], asked: Asked) -> Plan:
    """Return the plan for these metrics, cached because most programs ask for the same metrics repeatedly."""
    return _make_plan(calls, asked, Changes.n)


@functools.lru_cache(maxsize=64)
def _make_plan(calls: tuple[Call, ...], asked: Asked, _changes: int) -> Plan:
    return Plan(calls, asked)


class Plan:
    """Everything that follows from the metrics of a call, before any data is read."""

    def __init__(self, calls: tuple[Call, ...], asked: Asked) -> None:
        self.calls = calls
        self.asked = asked
        self.weighted, self.per_user = asked.weighted, asked.per_user
        self.is_estimated = asked.correct != CORRECT.default  # from sampled lists
        self.reads_size: list[str] = []  # metrics; without any, a small table of items is no error
        self._limits = [(math.inf, "")]  # the largest gain that is no error, by metric
        traced = [self._trace(call) for call in calls]
        self.max_gain, self.limited_by = min(self._limits)
        self.reads = {call.text: own.sides for call, own in zip(calls, traced, strict=True)}
        self.filled = {call.text: own.filled for call, own in zip(calls, traced, strict=True)}
        self.sides = frozenset().union(*self.reads.values(), *self.filled.values())
        self.of_order = [call.text for call, own in zip(calls, traced, strict=True) if own.is_of_order]
        self.of_all = [call for call, own in zip(calls, traced, strict=True) if counts_all(own.rows)]
        self.askers = {row.key[1]: call.text for call, own in zip(calls, traced, strict=True) for row in own.provided}
        self.key_askers = {row.key: call.text for call, own in zip(calls, traced, strict=True) for row in own.provided}
        self.provided = sorted(self.key_askers, key=lambda key: list(self.askers).index(key[1]))  # by provider
        self.places = Provided.of(self.provided)
        conditions = [self._condition(call, own) for call, own in zip(calls, traced, strict=True)]
        self.conditions = {call.text: own for call, own in zip(calls, conditions, strict=True)}
        self._conditions = list(dict.fromkeys([Condition(_least_gain(asked.min_gain)), *conditions]))
        self.min_gains = [condition.min_gain for condition in self._conditions]
        self.not_linear: list[str] = []
        self.direct, self.arrays = SumList(), SumList()
        self.formulas: list[ArrayFormula] = []
        self._stored: list[tuple[int, Row]] = [(0, COUNTED)] * len(calls) if asked.per_user else []
        self._unruled: set[int] = set()  # stored rows that policies of the call do not turn into NaN
        self.weight_sums: tuple[int, ...] = ()
        if asked.weighted:
            every = range(len(self.min_gains))
            self.weight_sums = self.direct.add(*(Sum(v, _where(COUNTED, WEIGHT), "user_weight") for v in every))
        self.values = [
            self._plan(at, call, self._conditions.index(condition), own)
            for at, (call, condition, own) in enumerate(zip(calls, conditions, traced, strict=True))
        ]
        self.has_effects = any(value.has_effects for value in self.values)
        self.has_influence = any(value.has_influence for value in self.values)
        self.kept = list(range(len(calls))) if asked.per_user else []  # of the stored rows, as values of users
        self.shares = self._keep_shares() if asked.per_user else {}
        self.accumulators = self._accumulated(traced)
        self.writers = {graded: self._write(graded=graded) for graded in (False, True)}
        of_estimates = (key[4] for key in self.provided if key[1] == OF_ALL_HITS)
        gains = [gain for gain in (*self.writers[True].gains, *of_estimates) if isinstance(gain, tuple)]
        self.gain_tables = [gain for gain in gains if gain[0] != "stop"]
        named = (call.text for call in calls if ("ideal", "k") in call.options)
        self.needs_plain = next(named, "ideal=k") if self.writers[True].has_plain_ideal else None
        self.counts_any_gain = min(self.min_gains) < 0
        self.tells_grades = bool(self.gain_tables) or any(gain > 1 for gain in self.min_gains)
        self.needs_gains = self.tells_grades or bool(gains)
        self.array_writer = Writer([ConditionRows(0.0, *rows_of_condition(self.arrays, 0, []))], graded=False)
        self._position = self.direct.places()
        self._array_position = {i: len(self._position) + at for i, at in self.arrays.places().items()}
        self.scales = self.direct.scales() + self.arrays.scales()
        self._kept_program: tuple[tuple[Extent, Policies, bool], Program] | None = None

    def _condition(self, call: Call, traced: Traced) -> Condition:
        """Return the condition of a metric, by its own options or by those of the call."""
        min_gain = self.asked.min_gain if call.min_gain is None else call.min_gain
        unread = _is_unread(traced.sides)
        no_recs = call.no_recs
        if no_recs is None and not self.asked.no_recs_given and call.metric.family is LISTS:
            no_recs = call.metric.no_recs or ("skip" if unread else None)
        return Condition(_least_gain(min_gain), UNREAD if unread else call.no_truth, no_recs)

    def _accumulated(self, traced: list[Traced]) -> list[Accumulated]:
        """Return what accumulators must collect, for metrics or for providers, each kind once per condition."""
        keys: dict[tuple[str, int], dict[Hashable, None]] = {}
        for value, own in zip(self.values, traced, strict=True):
            if value.over is not None:
                keys.setdefault((value.over.accumulator, value.condition), {})[value.over.key] = None
            if value.ratio is not None and value.ratio.exact is not None:
                keys.setdefault((value.ratio.exact.accumulator, value.condition), {})[None] = None
            for _, name, *key in (row.key for row in own.provided):
                if (collects := find_provider(name).collects) is not None:
                    kind, wanted = collects(tuple(key))
                    keys.setdefault((kind, value.condition), {})[wanted] = None
        return [Accumulated(*where, tuple(keys[where])) for where in sorted(keys)]

    def keys_of(self, kind: str, condition: int) -> tuple[Hashable, ...]:
        """Return what an accumulator of a kind and condition collects."""
        return next((own.keys for own in self.accumulators if own[:2] == (kind, condition)), ())

    def position(self, value: Value, nth: int) -> int:
        """Return the position of a sum of a value among all totals."""
        table = self._array_position if value.on_arrays else self._position
        return table[value.sums[nth]]

    def check_grades(self, gains: Array, name: str) -> None:
        """Raise an error for gains that the metrics cannot take."""
        if self.max_gain < np.inf and gains.max() > self.max_gain:
            whose = f"{self.limited_by}'s max_gain = {self.max_gain}"
            raise InputError(name, f" must not exceed {whose}, found {gains.max()}")
        if not (self.needs_plain or self.gain_tables):
            return
        relevant = gains[gains > 0]
        if self.needs_plain and (relevant != 1.0).any():
            other = relevant[relevant != 1.0][0]
            raise MetricError(
                f"{self.needs_plain} takes only truth without gains (or gains of 1), found a gain of {other}"
            )
        for table in self.gain_tables:
            wrong = (relevant != np.floor(relevant)) | (relevant >= len(table))
            if wrong.any():
                raise InputError(
                    f"a gain table of {len(table)} takes grades 0, 1, ..., {len(table) - 1}; found {relevant[wrong][0]}"
                )

    @once
    def sums_digest(self) -> str:
        """Digest that is equal for plans with the same meaning of totals, in any process and version."""
        lists = [[(e.condition, e.row.identity, e.fixed) for e in sums.sums] for sums in (self.direct, self.arrays)]
        named = [formula.call.text for formula in self.formulas]
        return hashlib.sha256(repr((lists, named, self._conditions, self.scales)).encode()).hexdigest()

    @property
    def depth(self) -> int | None:
        """The rank up to which metrics read the order of hits; None if they read all of it."""
        return self.writers[False].depth

    @functools.cached_property
    def reads_popularity(self) -> bool:
        """Whether a metric reads the popularity of items."""
        return any("popularity" in sides for sides in self.reads.values())

    @functools.cached_property
    def reads_relevance(self) -> bool:
        """Whether a metric is about relevant items or positive rows, and not about lists alone."""
        return any(not sides or sides & {"truth", "rows"} for sides in self.reads.values())

    @functools.cached_property
    def needs(self) -> frozenset[str]:
        """What metrics of scored rows need, as `Metric.needs` names it."""
        return frozenset().union(*(call.metric.needs for call in self.calls))

    @functools.cached_property
    def needs_targets(self) -> bool:
        """Whether all metrics compare targets with predictions, so that none needs labels."""
        return all("targets" in call.metric.needs for call in self.calls)

    @functools.cached_property
    def needs_classes(self) -> Call | None:
        """A metric that needs labels of 0 or 1, as no min_gain says which are positive; None if there is none."""
        if self.asked.min_gain is not None:
            return None
        needs = {"classes", "probabilities"}
        return next((call for call in self.calls if call.metric.needs & needs and call.min_gain is None), None)

    @functools.cached_property
    def needs_checked_rows(self) -> bool:
        """Whether a provider or an accumulator needs rows without faults, before kernels find these."""
        of_provider = any(not find_provider(name).is_trusted for name in self.askers)
        return of_provider or any(accumulated.kind != SCORE_COUNTS for accumulated in self.accumulators)

    @functools.cached_property
    def n_stored(self) -> int:
        """Number of rows that the kernel stores per user."""
        return len(self._stored)

    @functools.cached_property
    def largest_cutoff(self) -> int:
        """The largest cut-off of the metrics; 0 without any."""
        return max((call.k for call in self.calls if call.k is not None), default=0)

    def without_truth(self) -> list[str]:
        """Return the metrics that read neither truth nor scored rows; a constant reads nothing."""
        return [text for text, sides in self.reads.items() if _is_unread(sides)]

    def weight_position(self, value: Value) -> int:
        """Return the position of the sum of weights of the users who count in a metric."""
        if value.over is not None:
            return self.position(value, 1)
        if value.ratio is not None:
            return self.position(value, -2 if value.ratio.spoils is None else -3)
        return self._position[self.weight_sums[value.condition]]

    def _trace(self, call: Call) -> Traced:
        """Call the formula on rows or, if it is not traceable, on ones to record which rows it reads."""
        statistics = self.statistics_of(call)
        try:
            result = call.evaluate(statistics)
            if isinstance(statistics, ListStatistics):
                self.reads_size += [call.text] * statistics.reads_size
                self._limits.append((statistics.max_gain, call.metric.name))
                result = of_whole_catalogue(result, statistics.min_gain) if self.is_estimated else result
        except UntraceableError as error:
            if call.metric.family is ROWS:
                raise MetricError(
                    f"the formula of {call.text} must be arithmetic on statistics, found {error}: a provider of "
                    "statistics may compute anything"
                ) from None
            if self.is_estimated:
                raise arrays_refused(call.text) from None
            return self._record(call)
        except MetricError as error:
            raise MetricError(call.text, " ", error.text) from None
        if call.metric.family is ROWS and not isinstance(result, (Ratio, Over)):
            statistics = RowStatistics(self.asked.one_class)
            result = statistics.mean(_as_row(result, call), statistics.rows / statistics.rows)
        if isinstance(result, Combined):
            return Traced(result, result.rows)
        if isinstance(result, Ratio):
            refused = None if result.refused is None else result.refused[0]
            more = [row for row in (result.spoils, result.among, refused) if row is not None]
            return Traced(result, (*result.rows, result.each, result.counted, *more))
        if isinstance(result, Over):
            return Traced(result, (result.each, result.counted))
        row = _as_row(result, call)
        return Traced(row, (row,))

    def _plan(self, position: int, call: Call, condition: int, traced: Traced) -> Value:
        """Plan the sums of a metric."""
        result = traced.result
        if call.mean is not None:
            return self._plan_geometric(position, call, condition, traced)
        if result is None:
            return self._plan_arrays(position, call, condition, traced.rows)
        if call.metric.family is LISTS and (traced.is_of_order or not all(map(is_linear, traced.rows))):
            self.not_linear.append(call.text)
        if isinstance(result, (Ratio, Over)):
            if call.metric.family is LISTS:
                result = _under_policies(result)
            return self._plan_rows(position, call, condition, result)
        weight = _where(COUNTED, WEIGHT)
        if isinstance(result, Combined):
            row = _where(INCLUDED, result.function(*result.rows))
            rows = tuple(_where(COUNTED, row) for row in result.rows)
            value = Value(call, condition, result, self.direct.add(*self._combined_sums(call, condition, rows, weight)))
        else:
            row = _where(INCLUDED, result)
            value = Value(call, condition, None, self.direct.add(*self._mean_sums(call, condition, row, weight)))
            if not call.metric.builtin and not self.is_estimated:
                self.direct.checks.append(_check(call, condition, row))
        if self.per_user:
            self._stored[position] = (condition, row)
        return value

    def _plan_geometric(self, position: int, call: Call, condition: int, traced: Traced) -> Value:
        """Plan a geometric mean; the values of users stay as they are."""
        refuse_geometric(call, traced.result, is_estimated=self.is_estimated)
        if traced.is_of_order or not is_linear(traced.result):
            self.not_linear.append(call.text)
        row = _where(INCLUDED, traced.result)
        combined = geometric_mean(row)
        rows = tuple(Row(op.SELECT, (COUNTED, logarithm)) for logarithm in combined.rows)
        sums = self._combined_sums(call, condition, rows, _where(COUNTED, WEIGHT))
        if self.per_user:
            self._stored[position] = (condition, row)
        return Value(call, condition, combined, self.direct.add(*sums))

    def statistics_of(self, call: Call, value_of: Callable[[Row], Any] | None = None) -> Statistics:
        """Return what the formula of a call reads: rows, or what `value_of` makes of them."""
        more = {} if value_of is None else {"value_of": value_of}
        if call.metric.family is ROWS:
            return RowStatistics(self.asked.one_class, **more)
        min_gain = self.asked.min_gain if call.min_gain is None else call.min_gain
        policies = dict(self.asked.item_policies) | ({} if call.no_recs is None else {"no_recs": call.no_recs})
        return ListStatistics(call.k, self.asked.n_items, _least_gain(min_gain), policies=policies, **more)

    def _plan_rows(self, position: int, call: Call, condition: int, result: Ratio | Over) -> Value:
        """Plan a metric that decides which users count; one of scored rows does so whatever the policies."""
        if self.per_user:
            self._stored[position] = (condition, result.each)
            if call.metric.family is ROWS:
                self._unruled.add(position)
        low, high = call.metric.range
        if not call.metric.builtin and low <= 0 and (high is None or high >= 0):
            self.direct.checks.append(_check(call, condition, Row(op.SELECT, (result.counted, result.each))))
        weights = [Sum(condition, Row(op.MULTIPLY, (WEIGHT, result.counted)), "user_weight")] if self.weighted else []
        if isinstance(result, Over):
            counted = Sum(condition, result.counted, call.text, fixed=True)
            return Value(call, condition, None, self.direct.add(counted, *weights), over=result)
        if result.refused is not None:
            row, message = result.refused
            self.direct.checks.append(Check(condition, row, 0.0, 0.0, call.text, message))
        rows = self._weighted(result.rows)
        pairs = [Row(op.MULTIPLY, pair) for pair in itertools.combinations(rows, 2)] if result.std_error else []
        spoils = [] if result.spoils is None else [result.spoils]
        sums = [*(Sum(condition, row, call.text) for row in (*rows, *pairs)), *weights]
        sums += [Sum(condition, row, call.text, fixed=True) for row in (*spoils, result.counted)]
        return Value(call, condition, None, self.direct.add(*sums), ratio=result)

    def _keep_shares(self) -> dict[str, list[int]]:
        """Keep what each user adds to the sums of ratios of scored rows, and whether the user counts, in this order.

        Return the rows among the kept ones, by metric. The effects of users on these ratios follow from them.
        """
        found: dict[str, list[int]] = {}
        known: dict[tuple[int, Hashable], int] = {}
        for value in self.values:
            ratio = value.ratio
            if ratio is None or value.is_mean_of_users or not ratio.std_error or value.call.metric.family is not ROWS:
                continue
            found[value.call.text] = own = []
            for row in (*self._weighted(ratio.rows), ratio.counted):
                key = value.condition, row.identity
                if key not in known:
                    known[key] = len(self.kept)
                    self.kept.append(len(self._stored))
                    self._unruled.add(len(self._stored))
                    self._stored.append((value.condition, row))
                own.append(known[key])
        return found

    def _weighted(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        return tuple(Row(op.MULTIPLY, (WEIGHT, row)) for row in rows) if self.weighted else rows

    def _mean_sums(self, call: Call, condition: int, row: Row, weight: Row) -> list[Sum]:
        """Return the sums for a mean over users: v; weighted: w v and w^2 v. Kernels add squares, too."""
        low, high = call.metric.range
        fixed = low >= -1.0 and high is not None and high <= 1.0 and not self.is_estimated
        if not self.weighted:
            return [Sum(condition, row, call.text, fixed=fixed)]
        weighted = Row(op.MULTIPLY, (weight, row))
        return [Sum(condition, each, call.text) for each in (weighted, Row(op.MULTIPLY, (weight, weighted)))]

    def _combined_sums(self, call: Call, condition: int, rows: tuple[Row, ...], weight: Row) -> list[Sum]:
        """Return the sums for a function of means: rows, w^2 x row if weighted, then products of pairs."""
        wanted = rows
        if self.weighted:
            rows = tuple(Row(op.MULTIPLY, (weight, row)) for row in rows)
            wanted = (*rows, *(Row(op.MULTIPLY, (weight, row)) for row in rows))
        pairs = [Row(op.MULTIPLY, pair) for pair in itertools.combinations(rows, 2)]
        return [Sum(condition, row, call.text) for row in (*wanted, *pairs)]

    def _record(self, call: Call) -> Traced:
        asked: dict[Hashable, Row] = {}

        def record(row: Row) -> Any:
            asked[row.identity] = row
            return np.full(2, row.key[1] if row.key[0] == "constant" else 1.0).view(Values)

        statistics = self.statistics_of(call, record)
        call_on_arrays(call, statistics, 2)
        if isinstance(statistics, ListStatistics) and statistics.reads_size:
            self.reads_size.append(call.text)
        self._limits.append((statistics.max_gain, call.metric.name))
        return Traced(None, tuple(asked.values()))

    def _plan_arrays(self, position: int, call: Call, condition: int, asked: tuple[Row, ...]) -> Value:
        """Plan a formula on arrays, which reads some rows."""
        if any(not is_linear(row) or _depends_on_order(row) for row in asked):
            self.not_linear.append(call.text)
        start = len(self._stored)
        self._stored += [(condition, row) for row in (*asked, INCLUDED, COUNTED)]
        leaves = tuple((row.identity, start + i) for i, row in enumerate(asked))
        weight, given = (Row(("given", 2 * len(self.formulas) + i)) for i in range(2))
        self.formulas.append(ArrayFormula(call, position, leaves, start + len(asked), start + len(asked) + 1))
        self.arrays.checks.append(_check(call, 0, given))
        sums = self._mean_sums(call, 0, given, weight)
        return Value(call, condition, None, self.arrays.add(*sums), on_arrays=True)

    def _write(self, *, graded: bool) -> Writer:
        conditions = [
            ConditionRows(min_gain, *rows_of_condition(self.direct, i, self._stored))
            for i, min_gain in enumerate(self.min_gains)
        ]
        return Writer(conditions, graded=graded, expected=self.asked.expected, provided=self.places)

    def program(self, extent: Extent, policies: Policies, *, graded: bool) -> Program:
        """Return the kernel's program for data of this extent. The last one is kept, if its tables are small."""
        key, kept = (extent, policies, graded), self._kept_program  # read once: other threads may replace it
        if kept is not None and kept[0] == key:
            return kept[1]
        program = self._program(extent, policies, graded=graded)
        if program.weights.size + program.ideals.size <= MAX_KEPT_WEIGHTS:
            self._kept_program = key, program
        return program

    def _program(self, extent: Extent, policies: Policies, *, graded: bool) -> Program:
        writer = self.writers[graded]
        stored = [
            (writer.row_number(condition, row), condition, at not in self._unruled)
            for at, (condition, row) in enumerate(self._stored)
        ]
        return Program(
            **writer.arrays(extent),
            **self.direct.sizes(),
            stored_rows=np.array(stored, np.int64).reshape(-1, 3),
            find=True,
            n_items=self.asked.n_items if self.reads_size and self.asked.n_items else ANY_SIZE,
            policies=np.array(
                [
                    (
                        _code_of(self._harmless(nth, own.no_truth or policies.no_truth)),
                        NO_RECS.code(self._harmless(nth, own.no_recs or policies.no_recs)),
                    )
                    for nth, own in enumerate(self._conditions)
                ],
                np.int64,
            ),
            expected=self.asked.expected,
            refuse_ties=self.asked.expected and bool(self.not_linear),
        )

    def _harmless(self, condition: int, policy: str) -> str:
        """Return a policy, but no error for a condition that only counts users."""
        used = any(value.condition == condition for value in self.values)
        return policy if used or policy != "error" else "skip"

    def statistics(self, *, graded: bool) -> tuple[Array, Array]:
        """Return the statistics of scored rows, int64 (n_statistics, STATISTIC_WIDTH), and their parameters."""
        return self.writers[graded].statistics()

    def array_program(self) -> Program:
        """Return the program that sums the values of formulas on arrays."""
        return program_of_sums(self.arrays, self.array_writer)

    def __reduce__(self) -> Any:
        """Pickle the arguments of the plan: formulas of means are nested functions, which cannot be pickled."""
        return make_plan, (self.calls, self.asked)


def _code_of(no_truth: str) -> int:
    return op.UNREAD if no_truth == UNREAD else NO_TRUTH.code(no_truth)


def _is_unread(sides: AbstractSet[str]) -> bool:
    """Return whether a metric with these sides reads neither truth nor scored rows; a constant reads no side."""
    return bool(sides) and sides.isdisjoint(("truth", "rows"))


def _least_gain(min_gain: MinGain | None) -> float:
    """Return the least gain of a relevant item, as kernels encode it."""
    return ANY_GAIN if min_gain == "any" else min_gain or 0.0


def call_on_arrays(call: Call, statistics: Statistics, n_users: int) -> Array:
    """Return the values of a formula that runs on arrays, one per user."""
    try:
        with np.errstate(all="ignore"):
            values = np.asarray(call.evaluate(statistics))
    except MetricError as error:
        raise MetricError(call.text, " ", error.text) from None
    if values.dtype.kind not in "fiub" or values.shape not in ((), (n_users,)):
        found = f"shape {values.shape} of {values.dtype} for {n_users} users"
        raise MetricError(f"the formula of {call.text} must return one number per user, found {found}")
    return values.astype(float)


def _depends_on_order(row: Row) -> bool:
    return not is_linear(Row(op.MULTIPLY, (row, row)))


def _as_row(result: Any, call: Call) -> Row:
    if isinstance(result, Row):
        return result
    if isinstance(result, (int, float, np.integer, np.floating)):
        return constant(float(result))
    raise MetricError(f"the formula of {call.text} must return one number per user, found {shown(result)}")


def _under_policies(result: Ratio | Over) -> Ratio | Over:
    """Return a metric of lists in which a user counts as the policies of the call say, or as its formula says."""
    ruled, own = COUNTED - INCLUDED, Row(op.SELECT, (INCLUDED, result.counted))
    if isinstance(result, Over):  # users without a list add nothing to the exposure of items
        return result._replace(counted=ruled + own if "truth" in result.sides else own)
    ruled = ruled if result.among is None else Row(op.SELECT, (result.among, ruled))
    counted = ruled + own
    valued = own if result.rows[-1] is result.counted else counted  # a mean over users: others count 0
    rows = (counted if row is result.counted else Row(op.SELECT, (valued, row)) for row in result.rows)
    each = Row(op.BLANK, (counted, Row(op.SELECT, (INCLUDED, result.each))))
    return result._replace(rows=tuple(rows), each=each, counted=counted)


def _where(mask: Row, row: Row) -> Row:
    """Return the row with 0 for users outside the mask; without hits, most rows are 0 there anyway."""
    return row if vanishes(row) else Row(op.SELECT, (mask, row))


def _check(call: Call, condition: int, row: Row) -> Check:
    low, high = call.metric.range
    slack = 1e-9  # a ratio may exceed its bound by rounding
    largest = float(np.finfo(float).max)
    return Check(condition, row, low - slack, largest if high is None else high + slack, call.text)

"""The whole surface on one screen: check, plan, run, report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from fastrec._version import __version__
from fastrec.engine import Failure, KernelError, Log, Outcome, Plan, Policies, evaluate_log, make_plan
from fastrec.exceptions import FastrecWarning, InputError, InputTypeError, MetricError, whole_number
from fastrec.inputs.prepare import DUPLICATES_CHOICES, TIES_CHOICES, Prepared, Settings, prepare
from fastrec.inputs.users import SeenUsers, check_groups, check_weights
from fastrec.kernels import opcodes as op
from fastrec.launcher import resolve_threads
from fastrec.ragged import longest_row
from fastrec.registry import expand
from fastrec.report import Estimate, Report
from fastrec.state import State

__all__ = ["Evaluator", "evaluate", "warmup"]

Array = np.ndarray[Any, Any]
Ties = Literal["expected", "input", "worst", "best", "id_asc", "id_desc", "error"]
Empty = Literal["skip", "zero", "nan", "error"]
Duplicates = Literal["error", "first", "miss"]
MOST_ROWS_OF_USER = 2**30  # positions within a user are 32-bit numbers
EMPTY_CHOICES = ("skip", "zero", "nan", "error")


def evaluate(
    recs: Any,
    truth: Any,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    per_user: bool = False,
    groups: Any = None,
    user_weight: Any = None,
    user_ids: Any = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    ties: Ties = "expected",
    no_truth: Empty = "skip",
    no_recs: Empty = "zero",
    duplicates: Duplicates = "error",
    n_threads: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Report:
    """Evaluate recommended lists against held-out truth: all metrics and cut-offs from one pass.

    Parameters
    ----------
    recs : the recommended lists, best item first
        ``(items, indptr)`` with the list of user u in ``items[indptr[u]:indptr[u + 1]]``; ``(items, indptr, scores)``
        (each list is then ordered by its scores); a `Ragged`; a 2-D integer array, -1 padding the ends of rows; a
        SciPy CSR matrix (its data are scores); one list per user; or a dict {user: list} or {user: {item: score}}.
        Items are integers up to 2^63 - 1 (int32 and int64 arrays are not copied) or texts.
    truth : the relevant items, in the same forms and for the same users
        The third array, or the data of a CSR matrix, are gains; without them every item has gain 1. Dicts are
        matched by key with ``recs``, never by position.
    metrics : texts such as ``"ndcg@10"`` or ``"map(denominator=n_rel)@100"``
        By default ndcg, recall, precision, map, mrr and hit_rate. `fastrec.catalogue` lists them all.
    k : cut-offs for the metrics that have none of their own
    per_user : keep the value of every user, float64, NaN where the user was not counted
    groups : one label per user, or a dict {name: labels}: mean, standard error and users per label
    user_weight : weight of each user in means, finite and not negative
    user_ids : a label per user, for `Report.user_ids` and error messages; each once
    min_gain : the gain from which an item is relevant; by default any gain above 0
    n_items : size of the catalogue, for the metrics that need it
    exclude : items that a user has seen, in the forms of ``recs``: dropped from the lists, the gap closed
    ties : what decides between equal scores: ``input``, ``worst``, ``best`` (by gain), ``id_asc``, ``id_desc``;
        ``error`` and, for now, ``expected`` refuse them
    no_truth : users without relevant items: ``skip``, ``zero`` (count as 0), ``nan``, ``error``
    no_recs : users with relevant items and an empty list, likewise
    duplicates : an item twice in a list: ``error``, ``first`` (later copies are dropped, the gap closed), ``miss``
        (later copies keep their rank as misses); in the truth copies are an error, or merged (largest gain)
    n_threads : threads to use; by default what the machine grants. The result has the same bits for any number.
    progress : called as progress(users done, users)

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong; both say what was found, what was wanted, and where.
    MetricError
        If a metric or option is unknown; it names the nearest one.

    Examples
    --------
    >>> report = fastrec.evaluate([[1, 2, 3], [4, 5, 6]], [[1, 3], [6]], ["ndcg", "recall"], k=[1, 3])
    >>> {name: round(report[name], 4) for name in report}
    {'ndcg@1': 0.5, 'ndcg@3': 0.7099, 'recall@1': 0.25, 'recall@3': 1.0}
    """
    evaluator = Evaluator(
        metrics,
        k=k,
        per_user=per_user,
        min_gain=min_gain,
        n_items=n_items,
        ties=ties,
        no_truth=no_truth,
        no_recs=no_recs,
        duplicates=duplicates,
        n_threads=n_threads,
    )
    evaluator.update(
        recs,
        truth,
        user_ids=user_ids,
        groups=groups,
        user_weight=user_weight,
        exclude=exclude,
        progress=progress,
    )
    return evaluator._report(copy=False, stacklevel=3)  # noqa: SLF001 - spares a copy of per-user values


class Evaluator:
    """Evaluates users batch by batch, on one machine or many; batches add up and merge in any order.

    A user comes whole in one batch. The sums kept are exact, so the result has the same bits for any cut of the
    users into batches, any order of merging and any number of threads. Arguments are those of `evaluate`. An
    evaluator serves one thread at a time; threads of one's own have one each, merged at the end.

    Examples
    --------
    >>> first = fastrec.Evaluator(["recall@2"])
    >>> first.update([[1, 2]], [[2, 9]])
    >>> second = fastrec.Evaluator(["recall@2"])
    >>> second.update([[3, 4]], [[4]])
    >>> first.merge(second).result()["recall@2"]
    0.75
    """

    def __init__(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        k: int | Iterable[int] | None = None,
        per_user: bool = False,
        min_gain: float | None = None,
        n_items: int | None = None,
        ties: Ties = "expected",
        no_truth: Empty = "skip",
        no_recs: Empty = "zero",
        duplicates: Duplicates = "error",
        n_threads: int | None = None,
    ) -> None:
        _check_choice("ties", ties, TIES_CHOICES)
        _check_choice("no_truth", no_truth, EMPTY_CHOICES)
        _check_choice("no_recs", no_recs, EMPTY_CHOICES)
        _check_choice("duplicates", duplicates, DUPLICATES_CHOICES)
        self._calls = tuple(expand(metrics, k))
        self._settings: dict[str, Any] = {
            "min_gain": _check_min_gain(min_gain),
            "n_items": _check_n_items(n_items),
            "ties": ties,
            "no_truth": no_truth,
            "no_recs": no_recs,
            "duplicates": duplicates,
        }
        self._n_threads = resolve_threads(n_threads)
        self._per_user = bool(per_user)
        self._state: State | None = None
        self._facts: dict[str, int] = {}
        self._values: list[Array] = []
        self._users: list[Array] = []
        self._seen = SeenUsers()
        self._plan(weighted=False)  # a metric that lacks something says so now

    def update(
        self,
        recs: Any,
        truth: Any,
        *,
        user_ids: Any = None,
        groups: Any = None,
        user_weight: Any = None,
        exclude: Any = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        """Add a batch of users. An error leaves what was added before as it is.

        With ``user_ids`` (or dicts) a user who comes in a second batch is an error. Batches must agree in whether
        they have ids and weights.
        """
        if progress is not None and not callable(progress):
            raise InputTypeError(f"progress must be callable, found {progress!r}")
        rules = self._settings
        settings = Settings(rules["ties"], rules["duplicates"], self._n_threads)
        prepared = prepare(recs, truth, exclude, user_ids, settings)
        n_users = len(prepared.log.rec_indptr) - 1
        codes, keys = check_groups(groups, n_users)
        weights = check_weights(user_weight, n_users)
        users = prepared.names.users
        self._check_batch(weights, users)
        plan = self._plan(weighted=weights is not None)
        _check_sizes(plan, prepared.log)
        policies = Policies(rules["no_truth"], rules["no_recs"])
        try:
            outcome = evaluate_log(plan, policies, prepared.log, codes, weights, self._n_threads, progress)
        except KernelError as error:
            raise _explain(error.failure, error.metric, prepared, rules["n_items"]) from None
        self._keep(plan, outcome, keys, users, prepared)

    def _plan(self, *, weighted: bool) -> Plan:
        return make_plan(
            self._calls,
            min_gain=self._settings["min_gain"],
            n_items=self._settings["n_items"],
            weighted=weighted,
            per_user=self._per_user,
        )

    def _check_batch(self, weights: Array | None, users: Array | None) -> None:
        if self._state is None:
            return
        if self._state.plan.weighted != (weights is not None):
            raise InputError("user_weight must be given in every update or in none")
        if bool(self._users) != (users is not None):
            raise InputError("user_ids must be given in every update or in none")
        if users is not None and (again := self._seen.find(users)) is not None:
            raise InputError(f"user {again!r} was in an earlier update: a user comes whole in one")

    def _keep(self, plan: Plan, outcome: Outcome, keys: Any, users: Array | None, prepared: Prepared) -> None:
        """Everything went well: only now the state changes."""
        if self._state is None:
            self._state = State(plan)
        self._state.add(outcome, keys)
        log = prepared.log
        facts = {"rec_rows": len(log.rec_items), "truth_rows": len(log.truth_items), **prepared.facts}
        self._facts = {name: self._facts.get(name, 0) + count for name, count in facts.items()}
        if outcome.per_user is not None:
            self._values.append(outcome.per_user)
        if users is not None:
            self._users.append(users.copy())
            self._seen.add(users)

    def merge(self, other: Evaluator) -> Evaluator:
        """Add what another evaluator with the same metrics and settings has seen; returns this one."""
        if not isinstance(other, Evaluator):
            raise InputTypeError(f"merge takes an Evaluator, found {type(other).__name__}")
        if other is self:
            raise InputError("an Evaluator cannot be merged with itself: its users would count twice")
        for name, mine, theirs in self._differences(other):
            if mine != theirs:
                raise InputError(f"merge needs equal settings, but {name} is {mine!r} here and {theirs!r} there")
        if other._state is None:
            return self
        if self._state is None:
            self._state = State(other._state.plan)
        elif self._state.plan.weighted != other._state.plan.weighted:
            raise InputError("merge needs user_weight on both sides or on none")
        elif bool(self._users) != bool(other._users):
            raise InputError("merge needs user_ids on both sides or on none")
        if (again := self._seen.common(other._seen)) is not None:
            raise InputError(f"user {again!r} is on both sides: a user comes whole in one update")
        self._state.merge(other._state)
        self._facts = {name: self._facts.get(name, 0) + count for name, count in other._facts.items()}
        self._values = [*self._values, *other._values]
        self._users = [*self._users, *other._users]
        self._seen.merge(other._seen)
        return self

    def _differences(self, other: Evaluator) -> Iterator[tuple[str, Any, Any]]:
        yield "metrics", [call.text for call in self._calls], [call.text for call in other._calls]
        yield "formulas", [c.metric.formula for c in self._calls], [c.metric.formula for c in other._calls]
        yield "per_user", self._per_user, other._per_user
        for name, value in self._settings.items():
            yield name, value, other._settings[name]

    def result(self) -> Report:
        """The report on all users so far; more may be added afterwards."""
        return self._report(copy=True, stacklevel=3)

    def _report(self, *, copy: bool, stacklevel: int) -> Report:
        state = self._state if self._state is not None else State(self._plan(weighted=False))
        report = Report(
            estimates={value.call.text: Estimate(*state.estimate(value)) for value in state.plan.values},
            users=self._count_users(state),
            data=self._describe_data(state),
            settings={**self._settings, "weighted": state.plan.weighted},
            groups=_estimate_groups(state),
            per_user=self._join_values(state.n_users, copy=copy),
            user_ids=_join_ids(self._users),
            fastrec_version=__version__,
        )
        for line in report.warnings:
            warnings.warn(line, FastrecWarning, stacklevel=stacklevel)
        return report

    def _count_users(self, state: State) -> dict[str, int]:
        return {
            "total": state.n_users,
            "evaluated": state.count(op.N_EVALUATED) + state.count(op.N_NAN),
            "no_truth": state.count(op.N_NO_TRUTH),
            "no_recs": state.count(op.N_NO_RECS),
        }

    def _describe_data(self, state: State) -> dict[str, Any]:
        facts = [int(fact) for fact in state.facts]
        relevant = facts[op.FACT_RELEVANT]
        held = state.n_users - state.count(op.N_NO_TRUTH)
        names = ("rec_rows", "truth_rows", "excluded_items", "duplicates_in_recs", "duplicates_in_truth")
        counts = {name: self._facts.get(name, 0) for name in names}
        return {
            **counts,
            "truth_rows_not_relevant": counts["truth_rows"] - relevant,
            "truth_users_with_recs": facts[op.FACT_LISTED] / held if held else float("nan"),
            "truth_items_in_recs": facts[op.FACT_HITS] / relevant if relevant else float("nan"),
        }

    def _join_values(self, n_users: int, *, copy: bool) -> dict[str, Array] | None:
        if not self._per_user:
            return None
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values, axis=1)]
        values = self._values[0] if self._values else np.zeros((len(self._calls), n_users))
        return {call.text: row.copy() if copy else row for call, row in zip(self._calls, values, strict=True)}


def _estimate_groups(state: State) -> dict[str, dict[str | int, dict[str, Estimate]]]:
    groups: dict[str, dict[str | int, dict[str, Estimate]]] = {}
    for grouping, label in state.groups:
        estimates = {v.call.text: Estimate(*state.estimate(v, (grouping, label))) for v in state.plan.values}
        groups.setdefault(grouping, {})[label] = estimates
    return groups


def _join_ids(parts: Sequence[Array]) -> Array | None:
    if not parts:
        return None
    if len({part.dtype.kind for part in parts}) > 1:
        return np.concatenate([part.astype(object) for part in parts])
    return np.concatenate(parts)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}; found {value!r}")


def _check_min_gain(min_gain: Any) -> float | None:
    if min_gain is None:
        return None
    if isinstance(min_gain, bool) or not isinstance(min_gain, (int, float, np.integer, np.floating)):
        raise InputTypeError(f"min_gain must be a number, found {min_gain!r}")
    try:
        value = float(min_gain)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"min_gain must be finite and above 0, found {min_gain!r}")
    return value


def _check_n_items(n_items: Any) -> int | None:
    if n_items is None:
        return None
    number = whole_number(n_items)
    if number is None:
        raise InputTypeError(f"n_items must be a whole number, found {n_items!r}")
    if not 1 <= number <= 2**53:
        raise InputError(f"n_items must be from 1 to 2**53, found {n_items}")
    return number


def _check_sizes(plan: Plan, log: Log) -> None:
    """Users and gains that are too large, and gains that the asked metrics cannot take."""
    lists, held = longest_row(log.rec_indptr), longest_row(log.truth_indptr)
    if lists + held > MOST_ROWS_OF_USER:
        raise InputError(f"a list and a truth hold at most {MOST_ROWS_OF_USER} items, found {lists} and {held}")
    if len(log.truth_items):
        _check_grades(plan, np.ones(1) if log.gains is None else log.gains)


def _check_grades(plan: Plan, gains: Array) -> None:
    """Gains that the asked metrics cannot take."""
    if gains.max() > plan.max_gain:
        raise InputError(f"truth gains must not exceed err's max_gain = {plan.max_gain}, found {gains.max()}")
    if not (plan.needs_plain or plan.gain_tables):
        return
    relevant = gains[gains > 0]
    if plan.needs_plain and (relevant != 1.0).any():
        other = relevant[relevant != 1.0][0]
        raise MetricError(f"{plan.needs_plain} takes truth without gains (or gains of 1) only, found a gain of {other}")
    for table in plan.gain_tables:
        wrong = (relevant != np.floor(relevant)) | (relevant >= len(table))
        if wrong.any():
            raise InputError(
                f"a gain table of {len(table)} takes grades 0, 1, ..., {len(table) - 1}; found {relevant[wrong][0]}"
            )


def _explain(failure: Failure, metric: str, prepared: Prepared, n_items: int | None) -> InputError:
    """The error for what a kernel found, with the names of users and items."""
    code, user, at = failure
    log, names = prepared.log, prepared.names
    who = names.user(user)
    if code in (op.DUPLICATE_REC, op.NEGATIVE_REC):
        item = log.rec_items[log.rec_indptr[user] + at]
        if code == op.DUPLICATE_REC:
            return InputError(
                f"recs of user {who}: item {names.item(item)} stands twice, the second time at rank {at + 1}; "
                "duplicates='first' or 'miss' would accept it"
            )
        return InputError(f"recs of user {who}: item ids must not be negative, found {item} at rank {at + 1}")
    if code in (op.DUPLICATE_TRUTH, op.NEGATIVE_TRUTH):
        item = log.truth_items[log.truth_indptr[user] + at]
        if code == op.DUPLICATE_TRUTH:
            return InputError(
                f"truth of user {who}: item {names.item(item)} stands twice; duplicates='first' or 'miss' would merge"
            )
        return InputError(f"truth of user {who}: item ids must not be negative, found {item} at position {at}")
    if code == op.USER_NO_TRUTH:
        return InputError(f"user {who} has no relevant item, and no_truth='error'")
    if code == op.USER_NO_RECS:
        return InputError(f"user {who} has no list, and no_recs='error'")
    if code == op.SMALL_CATALOGUE:
        return InputError(f"n_items = {n_items} is too small: list and truth of user {who} hold {at} items")
    if code in (op.OUT_OF_LIMITS, op.OUT_OF_RANGE):
        return InputError(f"{metric} of user {who} is not a number within the range that the metric declares")
    return InputError(f"{metric} of user {who} is too large for a double")


def warmup() -> None:
    """Compile every kernel now, into the disk cache if there is one.

    For images that are built once and started often, and before a fork: `fastrec warmup` in the shell, or
    `fastrec.warmup()`. It takes up to a minute the first time.
    """
    users = 4096
    lists = np.arange(users * 100) % 100
    for dtype in (np.int32, np.int64):
        for n_users in (1, users):
            items = lists[: n_users * 100].astype(dtype)
            indptr = np.arange(n_users + 1) * 100
            for gains in ((), (np.full(len(items), 2.0),)):
                evaluate((items, indptr), (items, indptr, *gains))
        scored = (items, indptr, np.zeros(len(items)))
        evaluate(scored, (items, indptr), ties="best", duplicates="first", exclude=(items[:0], indptr * 0))

"""The protocol of an evaluation of lists, rows or models: prepare, add, second pass, report.

`prepare` checks and reads a batch and changes nothing. `add` adds a prepared batch to the sums. `second_pass` looks at
a batch again once all are added, if `needs_second_pass`. `report` gives the numbers of the users so far. Evaluations of
parts of the users merge.
"""

from __future__ import annotations

import copy
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from fastrec._version import __version__
from fastrec.checks import MinGain, some_names, with_article
from fastrec.evaluation.accumulators import GroupKey, find_accumulator
from fastrec.evaluation.engine import Outcome
from fastrec.evaluation.seen_users import SeenUsers
from fastrec.evaluation.state import GroupSums, State
from fastrec.evaluation.tools import values_by_metric, warnings_of_tool
from fastrec.exceptions import Argument, InputError, MetricError, Text, joined, one_line, shown
from fastrec.inputs.column_names import Columns
from fastrec.inputs.findings.evidence import NO_COMMON_ID, NO_LIST, Evidence, add_evidence, findings_of, read_evidence
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.lists import AboutUsers
from fastrec.inputs.users import Users, check_keys, check_saved_ids, join_ids, pack_ids, unpack_ids
from fastrec.metrics.calls import expand
from fastrec.metrics.declaration import FAMILIES, Call, Changes
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.metrics.recipe import DEFAULT_POLICIES
from fastrec.metrics.recipes import find_recipe
from fastrec.policies import CORRECT, ITEM_POLICIES, ONE_CLASS, POLICIES
from fastrec.report.archive import pack_labels, read_archive, unpack_labels, write_archive
from fastrec.report.doubts import describe_sample, doubts, doubts_of_groups, doubts_of_items
from fastrec.report.estimates import NOBODY, Effects, Estimate, GroupEstimate
from fastrec.report.report import Report, record
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.threads import run_in_threads

Array = np.ndarray[Any, Any]
DERIVED = {"popularity": ("history", "items"), "propensity": ("items", "logged")}  # what gives them, by name
STATE_FORMAT = 2  # of the bytes of `to_bytes`
ROWS_OF_THREADS = 1 << 20
MAX_RULES_KEPT = 256
MAX_ROWS_OF_USER = 2**30  # positions within a user are 32-bit numbers


def about_users(given: Mapping[str, Any], ordered_by: str = "rank") -> AboutUsers:
    """Return the arguments of a call about users: ids, groups, weights, columns; none for those that it lacks."""
    named = {name: given[name] for name in Columns._fields if given.get(name) is not None}
    columns = Columns(**named, ordered_by=ordered_by)
    if not named:
        return AboutUsers(given.get("user_ids"), given.get("groups"), given.get("user_weight"), columns)
    labels = read_user_labels(columns.by, columns.user)
    tables = {"item": given.get("items"), "user": labels}
    pairs = ((role, getattr(table, role, None), getattr(columns, role)) for role, table in tables.items())
    elsewhere = tuple(
        role for role, own, name in pairs if isinstance(own, str) and isinstance(name, str) and own == name
    )
    columns = columns if labels is None else columns._replace(by=None)
    return AboutUsers(given.get("user_ids"), given.get("groups"), given.get("user_weight"), columns, labels, elsewhere)


class Wanted(NamedTuple):
    """The metrics of a call, with the policies of the tool in `like`."""

    calls: list[Call]
    policies: dict[str, str]  # the default if the call passes none
    min_gain: MinGain | None  # likewise
    like: dict[str, Any]  # "like", the name of the tool, and "names", {its name: metric}; empty without `like`

    def fill(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return the policies that a call takes, checked, with defaults for those that are None."""
        asked = {name: given[name] for name in POLICIES if name in given}
        for name, value in asked.items():
            if value is not None or name not in self.policies:
                POLICIES[name].check(value)
        return {name: self.policies[name] if value is None else value for name, value in asked.items()}


def wanted_metrics(
    family: str, like: str | None, metrics: str | Iterable[str] | None, k: Any, min_gain: MinGain | None
) -> Wanted:
    """Return the metrics of lists or of rows that the arguments of a call name."""
    if like is None:
        return Wanted(expand(metrics, k, FAMILIES[family]), DEFAULT_POLICIES, None, {})
    recipe = find_recipe(like)
    calls = recipe.translate(metrics, k, family, min_gain)
    names = {name: call.text for name, call in calls.items() if name != call.text}
    return Wanted(
        list({call.text: call for call in calls.values()}.values()),
        recipe.policies,
        recipe.min_gain,
        {"like": recipe.name, "names": names}
        | ({} if recipe.rank_gaps == "close" else {"rank_gaps": recipe.rank_gaps}),
    )


class Rules(NamedTuple):
    """What the metrics and options of a call say, checked before any data is read."""

    calls: tuple[Call, ...]
    like: Mapping[str, Any]  # as in `Wanted`
    settings: Mapping[str, Any]
    per_user: bool
    no_recs_given: bool = True
    n_users: int | None = None


_rules_kept: dict[Hashable, Rules] = {}  # of the last calls


def rules_of(read: Callable[[Any, Mapping[str, Any]], Rules], metrics: Any, options: Mapping[str, Any]) -> Rules:
    """Return what `read` makes of metrics and options; it is kept for later calls with the same ones."""
    try:
        key = (read, Changes.n, _key_of(metrics), *((name, _key_of(value)) for name, value in options.items()))
        kept = _rules_kept.get(key)
    except TypeError:  # an iterator, or an option that is no key
        return read(metrics, options)
    if kept is None:
        kept = read(metrics, options)
        if len(_rules_kept) >= MAX_RULES_KEPT:
            _rules_kept.clear()
        _rules_kept[key] = kept
    return kept


def _key_of(value: Any) -> Hashable:
    """Return a key that tells equal values of different types apart; raise TypeError for an iterator."""
    if isinstance(value, list | tuple):
        return (type(value), *map(_key_of, value))
    if isinstance(value, Iterator):
        raise TypeError
    return type(value), value


class Evaluation(ABC):
    """An evaluation in batches: a plan, a state, a report. One thread at a time may change it."""

    evaluator: ClassVar[str]  # the public class of its kind, as `to_bytes` names it

    def __init__(self, rules: Rules, n_threads: int | None) -> None:
        self.is_torn = False  # between an old and a new state
        self.calls, self.per_user, self._no_recs_given = rules.calls, rules.per_user, rules.no_recs_given
        self.like, self.settings = copy.deepcopy(rules.like), {**rules.settings}  # callers may change those of reports
        self.n_threads = resolve_threads(n_threads)
        self._part = False
        self._plans: dict[tuple[bool, bool], Plan] = {}
        self._forget()
        self.plan(weighted=False)  # raises at once if a metric lacks an argument

    def _forget(self) -> None:
        """Remove all users."""
        self.state: State | None = None
        self.data_counts: dict[str, int] = {}
        self._evidence: dict[tuple[str, Any], Evidence] = {}  # by code and detail
        self._values: list[Array] = []
        self._users: list[Array] = []
        self._labels: dict[str, list[Array]] = {}
        self._seen = SeenUsers()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Mark the evaluation as torn until the block ends without an error."""
        self.is_torn = True
        yield
        self.is_torn = False

    def reset(self) -> None:
        """Forget all users and keep the metrics and settings."""
        with self.changing():
            self._forget()

    def as_part(self) -> Self:
        """Make this the evaluation of one part of the data, and return it: see `Evaluator.as_part`."""
        self._part = True
        return self

    def plan(self, *, weighted: bool, per_user: bool | None = None) -> Plan:
        """Return the plan of the metrics, for users with weights or without."""
        key = weighted, self.per_user if per_user is None else per_user
        if key not in self._plans:
            rules = self.settings
            asked = Asked(
                min_gain=rules["min_gain"],
                n_items=rules["n_items"],
                weighted=weighted,
                per_user=key[1],
                expected=rules["ties"] == "expected",
                one_class=rules.get("one_class", ONE_CLASS.default),
                no_recs_given=self._no_recs_given,
                item_policies=tuple((name, rules[name]) for name in ITEM_POLICIES if name in rules),
                correct=rules.get("correct", CORRECT.default),
            )
            self._plans[key] = make_plan(self.calls, asked)
        return self._plans[key]

    @property
    def reads_sides(self) -> bool:
        """Whether a provider or an accumulator reads the rows themselves."""
        plan = self.plan(weighted=False)
        return bool(plan.provided) or plan.needs_checked_rows

    def _check_sides(self, known: AbstractSet[str], derived: AbstractSet[str] = frozenset()) -> None:
        """Raise MetricError for a metric that reads a side which the call lacks.

        Kernels derive some sides from others, as lists from scored rows. Providers and accumulators cannot read these.
        """
        plan = self.plan(weighted=False)
        if plan.sides <= known and not plan.accumulators:
            return
        missing: dict[tuple[str, ...], list[str]] = {}
        for value in plan.values:
            text = value.call.text
            others = plan.filled[text] | (find_accumulator(value.over.accumulator).sides if value.over else frozenset())
            lacking = (plan.reads[text] - known - derived) | (others - known - {"users"})
            if lacking & derived:
                raise MetricError(f"{text} reads more of lists than scored rows tell: fastrec.evaluate takes lists")
            for side in sorted(lacking):
                missing.setdefault(DERIVED.get(side, (side,)), []).append(text)
        if missing:
            needs = (
                Text(
                    f"{some_names(texts)} {'needs' if len(texts) == 1 else 'need'} ",
                    joined((Text(Argument(name, (...,))) for name in names), " or "),
                )
                for names, texts in missing.items()
            )
            raise MetricError(joined(needs, "; "))

    def _check_batch(self, users: Users) -> None:
        if self.state is None:
            return
        if self.state.plan.weighted != (users.weights is not None):
            raise InputError("user_weight must be given in every update or in none")
        self.state.check_groups(users.keys)
        if self._part:
            return
        if bool(self._users) != (users.ids is not None):
            raise InputError("user_ids must be given in every update or in none")
        if users.ids is None:
            return
        check_keys({"earlier batches": self._seen.some(), "this one": users.ids[:1].tolist()})
        if (again := self._seen.find(users.ids)) is not None:
            raise InputError(f"user {shown(again)} was in an earlier update: pass all rows of a user in one update")

    def _keep(self, plan: Plan, outcome: Outcome, users: Users, data_counts: dict[str, int]) -> State:
        """Add the outcome of a batch that had no error. Only here the state changes."""
        if self.state is None:
            self.state = State(plan)
        self.state.add(*outcome[:4], users.keys)
        self.data_counts = _added(self.data_counts, data_counts)
        if outcome.per_user is not None:
            self._values.append(outcome.per_user if users.order is None else outcome.per_user[:, users.order])
            for name, labels in users.labels().items():
                self._labels.setdefault(name, []).append(labels)
        if users.ids is not None and not self._part:
            self._users.append(users.ids.copy() if users.order is None else users.ids[users.order])
            self._seen.add(users.ids)
        return self.state

    def _move_users(self, order: Array) -> None:
        """Report users in another order: the i-th is that at position `order[i]`."""
        if (order[1:] > order[:-1]).all():
            return
        if self._values:
            self._values = [np.concatenate(self._values, axis=1)]
            for row in self._values[0]:
                row[:] = row[order]
        for kept in (self._labels, {"": self._users}):
            for name, parts in kept.items():
                if (joined := join_ids(parts)) is not None:
                    kept[name][:] = [joined[order]]

    def merge(self, other: Self) -> None:
        """Add the users of another evaluation with the same metrics and settings."""
        for name, mine, theirs in self._differences(other):
            if mine != theirs:
                raise InputError(
                    f"merge needs equal settings, but {name} is {shown(mine)} here and {shown(theirs)} there"
                )
        if other.state is None:
            return
        self._check_kind(other)
        if self.state is not None:
            if self.state.plan.weighted != other.state.plan.weighted:
                raise InputError("merge needs user_weight on both sides or on none")
            if bool(self._users) != bool(other._users):
                raise InputError("merge needs user_ids on both sides or on none")
            check_keys({"this evaluator": self._seen.some(), "the other": other._seen.some()})
            self.state.check_groups(other.state.groups, other.state.row_groupings)
        if (again := self._seen.common(other._seen)) is not None:
            raise InputError(f"user {shown(again)} is on both sides: pass all rows of a user in one update")
        with self.changing():
            self.state = State(other.state.plan) if self.state is None else self.state
            self.state.merge(other.state)
            self.data_counts = _added(self.data_counts, other.data_counts)
            self._values = [*self._values, *other._values]
            for name, labels in other._labels.items():
                self._labels.setdefault(name, []).extend(labels)
            self._users = [*self._users, *other._users]
            self._evidence = add_evidence(self._evidence, other._evidence.values())
            self._seen.merge(other._seen)
            self._take_kind(other)

    def _differences(self, other: Evaluation) -> Iterator[tuple[str, Any, Any]]:
        yield "metrics", [call.text for call in self.calls], [call.text for call in other.calls]
        yield "formulas", [c.metric.formula for c in self.calls], [c.metric.formula for c in other.calls]
        yield "per_user", self.per_user, other.per_user
        for name in {**self.settings, **other.settings}:
            yield name, self.settings.get(name), other.settings.get(name)
        if self.plan(weighted=False).conditions != other.plan(weighted=False).conditions:
            yield "whether the call gives no_recs", self._no_recs_given, other._no_recs_given
        theirs = other._kind_of_batches()
        yield from ((name, mine, theirs[name]) for name, mine in self._kind_of_batches().items() if name in theirs)

    def _kind_of_batches(self) -> Mapping[str, bool | str]:
        """Return what all batches have in common; empty before the first batch."""
        return {}

    @abstractmethod
    def _check_kind(self, other: Self) -> None:
        """Raise InputError if the batches of another evaluator are of another kind."""

    def _more_settings(self) -> dict[str, Any]:
        """Return the settings of the report that batches give."""
        return {}

    def _described(self) -> dict[str, Any]:
        """Return more fields for the document of `to_bytes`."""
        return {}

    @abstractmethod
    def _take_kind(self, other: Self) -> None:
        """Require the next batches to be of the same kind as those of another evaluator."""

    def to_bytes(self) -> bytes:
        """Return the state as bytes for `from_bytes`."""
        document: dict[str, Any] = {
            "state": STATE_FORMAT,
            "kind": self.evaluator,
            "fastrec": __version__,
            "metrics": [call.text for call in self.calls],
            "settings": self.settings,
            "like": self.like,
            "per_user": self.per_user,
            "no_recs_given": self._no_recs_given,
            "batches": self._kind_of_batches(),
            "facts": self.data_counts,
            "evidence": list(self._evidence.values()),
            **self._described(),
        }
        arrays = pack_ids(join_ids(self._users))
        if self.state is not None:
            document["weighted"] = self.state.plan.weighted
            document["seen"], more = self.state.pack()
            arrays |= more
            if self.per_user:
                arrays["per_user"] = np.concatenate(self._values, axis=1)
                document["labelled"], more = pack_labels(self._join_labels(self.state.n_users))
                arrays |= more
        stream = io.BytesIO()
        write_archive(stream, "evaluator", document, arrays, small=True)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, n_threads: int | None = None) -> Self:
        """Return the evaluation that `to_bytes` wrote."""
        try:
            document, arrays = read_archive(io.BytesIO(data), "evaluator")
            found = document["kind"], document["state"]
        except MemoryError:
            raise
        except Exception as error:  # a damaged archive can fail in the zip, an array, the JSON or the content
            raise InputError(f"not the state of an evaluator: {error}") from error
        if found[0] != cls.evaluator:
            raise InputError(f"the bytes are those of {with_article(str(found[0]))}: use {found[0]}.from_bytes")
        if found[1] != STATE_FORMAT:
            raise InputError(
                f"the state has format {found[1]} of fastrec {one_line(document['fastrec'])}, this version reads "
                f"format {STATE_FORMAT}"
            )
        try:
            make: Callable[..., Self] = cls  # evaluations take metrics and options
            evaluation = make(
                document["metrics"], per_user=document["per_user"], n_threads=n_threads, **document["settings"]
            )
            evaluation.restore(document, arrays)
        except (MetricError, MemoryError):
            raise
        except Exception as error:
            raise InputError(f"not a state that this version reads: {error}") from error
        return evaluation

    def restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take over the state in a document and arrays."""
        self.like, self._no_recs_given = document["like"], document["no_recs_given"]
        self._plans.clear()
        self.data_counts = {str(name): int(count) for name, count in document["facts"].items()}
        self._evidence = add_evidence({}, map(read_evidence, document["evidence"]))
        if "seen" not in document:
            return
        self.state = State.unpack(self.plan(weighted=document["weighted"]), document["seen"], arrays)
        wanted = self.state.n_users
        if (ids := check_saved_ids(unpack_ids(arrays, wanted))) is not None:
            self._users = [ids]
            self._seen.add(ids)
        if self.per_user:
            values, shape = arrays["per_user"], (len(self.state.plan.kept), wanted)
            if values.dtype != np.float64 or values.shape != shape:
                raise InputError(f"values of users must be float64 {shape}, found {values.dtype} {values.shape}")
            self._values = [values]
            labels = unpack_labels(document["labelled"], arrays, wanted)
            self._labels = {name: [own] for name, own in labels.items()}

    @property
    @abstractmethod
    def needs_second_pass(self) -> bool:
        """Whether the standard error of a metric needs a second pass over all batches."""

    @abstractmethod
    def add(self, prepared: Any, progress: Callable[[int, int], Any] | None) -> Any:
        """Add a batch that `prepare` of an evaluation with the same settings returned.

        Return what was read of it, which spares `second_pass` to read it again.
        """

    @abstractmethod
    def second_pass(self, prepared: Any, read: Any = None) -> None:
        """Look at a batch a second time; does nothing unless `needs_second_pass`.

        All batches must be seen again after the last was added, in the same order. `read` is what `add` returned.
        """

    @abstractmethod
    def check_all(self) -> None:
        """Raise InputError for a fault that only all batches together can have."""

    def _estimates(self, state: State) -> dict[str, Estimate]:
        users = state.part()
        return {value.call.text: self._estimate(users, value) for value in state.plan.values}

    def report(
        self, *, copied: bool = False, silent: Collection[str] = (), ids_match: bool = False, is_part: bool = False
    ) -> Report:
        """Return the report on all users so far.

        Parameters
        ----------
        copied : copy the values of users, as more users may follow
        silent : lines that are no warnings
        ids_match : whether other reports of the call show that ids of lists and truth match
        is_part : whether the users are some of those of a report
        """
        if not is_part:
            self.check_all()
        state = self.state if self.state is not None else State(self.plan(weighted=False))
        data, counts = self._describe_data(state), self._count_users(state)
        marks = describe_sample(self.settings)
        groups, estimates = self._estimate_groups(state) if state.groups else {}, self._estimates(state)
        found, doubt = findings_of(self._evidence.values()), []
        hidden = {NO_COMMON_ID, *([] if data.get("rec_rows") else [NO_LIST])}
        if state.plan.reads_relevance:
            by_code = {finding.code: finding.text for finding in reversed(found)}
            ids = f" ({by_code[NO_COMMON_ID]})" if NO_COMMON_ID in by_code and "ids_differ" not in by_code else ""
            doubt = [f"{line}{ids}" for line in doubts(data, ids_match=ids_match)]
        lines = [
            *marks,
            *doubt,
            *doubts_of_items({**self.data_counts, **data}, counts["total"] - counts.get("no_truth", 0)),
            *doubts_of_groups({name: own for name, own in groups.items() if name not in state.row_groupings}),
            *(finding.text for finding in found if finding.code not in hidden),
        ]
        if self.like:
            numbers = {"values": lambda: values_by_metric(estimates, groups)}
            lines += warnings_of_tool(self.like, self.calls, self.settings["ties"], numbers)
        report = Report(
            estimates=estimates,
            users=counts,
            data=data,
            settings={**self.settings, **self._more_settings(), "weighted": state.plan.weighted, **self.like},
            groups=groups,
            per_user=self._join_values(state.n_users, copied=copied) if self.per_user else None,
            effects=self._effects(state) if self.per_user else None,
            user_ids=join_ids(self._users),
            fastrec_version=__version__,
            labels=self._join_labels(state.n_users) if self._labels else None,
            warnings=[],
            digest=state.digest,
        )
        if lines:
            record(report, lines, silent=(*marks, *silent))
        return report

    def _estimate(self, users: GroupSums, value: Any) -> Estimate:
        return users.estimate(value)

    def _estimate_groups(self, state: State) -> dict[str, dict[str | int, dict[str, Estimate]]]:
        def estimate(key: GroupKey) -> dict[str, Estimate]:
            own, rest = state.part(key), None if key[0] in state.row_groupings else state.rest(key)
            return {
                value.call.text: GroupEstimate(
                    *self._estimate(own, value), rest=NOBODY if rest is None else self._estimate(rest, value)
                )
                for value in state.plan.values
            }

        groups: dict[str, dict[str | int, dict[str, Estimate]]] = {}
        large = self.data_counts.get("rows", 0) >= ROWS_OF_THREADS  # the order of scored rows takes long
        keys = state.groups
        found = run_in_threads(lambda at: estimate(keys[at]), range(len(keys)), self.n_threads if large else 1)
        for (grouping, label), own in zip(keys, found, strict=True):
            groups.setdefault(grouping, {})[label] = own
        return groups

    @abstractmethod
    def _count_users(self, state: State) -> dict[str, int]:
        """Return the counts of users by treatment: counted, without truth, and so on."""

    @abstractmethod
    def _describe_data(self, state: State) -> dict[str, Any]:
        """Return counts of rows and shares of the data."""

    def _describe_accumulators(self, state: State) -> dict[str, float]:
        """Return what accumulators over all users tell about the data."""
        if not state.accumulators:
            return {}
        found: dict[str, list[tuple[float, Any]]] = {}
        for (kind, condition, group), own in state.accumulators.items():
            if group is None:
                found.setdefault(kind, []).append((state.plan.min_gains[condition], own))
        described: dict[str, float] = {}
        for kind in sorted(found):
            if (describe := find_accumulator(kind).describe) is not None:
                described |= describe(found[kind])
        return described

    def _join_labels(self, n_users: int) -> dict[str, Array]:
        """Return the label of each user by grouping, without groupings that some batches lack."""
        joined = {name: join_ids(parts) for name, parts in self._labels.items()}
        return {name: labels for name, labels in joined.items() if labels is not None and len(labels) == n_users}

    def _join_values(self, n_users: int, *, copied: bool) -> dict[str, Array]:
        values = self._kept(n_users)[: len(self.calls)]
        return {call.text: row.copy() if copied else row for call, row in zip(self.calls, values, strict=True)}

    def _kept(self, n_users: int) -> Array:
        """Return what is kept of users, as `Plan.kept` says."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values, axis=1)]
        return self._values[0] if self._values else np.zeros((len(self.calls), n_users))

    def _effects(self, state: State) -> Effects | None:  # noqa: ARG002 - of evaluators of scored rows
        """Return the effects of users on metrics that are no means of users' values."""
        return None


def _added(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of counts by name; batches may lack names of others."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in dict.fromkeys([*counts, *more])}


def refuse_arrays(**arguments: Any) -> None:
    """Raise InputError for arrays passed with a data frame, which needs names of columns instead."""
    wanted = {"indptr": "user", "user_ids": "user", "item_ids": "item", "groups": "by", "row_groups": "row_by"}
    for name, value in arguments.items():
        if value is not None:
            where = f"for a data frame, {wanted[name]}=... names the column"
            raise InputError(f"{name} goes with labels and scores, but scores is None; {where}")

"""The base of evaluators of lists and of rows: arguments, batches, merging, states, reports."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, Self

import numpy as np

from fastrec._version import __version__
from fastrec.checks import MinGain, check_flag, some_names, with_article
from fastrec.evaluation.accumulators import SCORE_COUNTS, GroupKey, find_accumulator
from fastrec.evaluation.engine import Outcome
from fastrec.evaluation.state import GroupSums, State
from fastrec.evaluation.tools import values_by_metric, warnings_of_tool
from fastrec.exceptions import Argument, InputError, InputTypeError, MetricError, Text, joined, one_line, shown
from fastrec.inputs.column_names import Columns
from fastrec.inputs.findings.evidence import NO_COMMON_ID, NO_LIST, Evidence, add_evidence, findings_of, read_evidence
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.lists import AboutUsers
from fastrec.inputs.packed import pack_ids, unpack_ids
from fastrec.inputs.users import SeenUsers, Users, check_keys, check_saved_ids, join_ids
from fastrec.metrics.calls import expand
from fastrec.metrics.declaration import FAMILIES, Call
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.metrics.providers import find_provider
from fastrec.metrics.recipe import DEFAULT_POLICIES
from fastrec.metrics.recipes import find_recipe
from fastrec.policies import CORRECT, ITEM_POLICIES, ONE_CLASS, POLICIES
from fastrec.report.archive import pack_labels, read_archive, unpack_labels, write_archive
from fastrec.report.doubts import describe_sample, doubts, doubts_of_groups, doubts_of_items
from fastrec.report.estimates import NOBODY, Effects, Estimate, GroupEstimate
from fastrec.report.report import Report, record
from fastrec.runtime.limits import resolve_threads
from fastrec.runtime.shared import Shared, synchronized
from fastrec.runtime.threads import run_in_threads, uninterrupted

Array = np.ndarray[Any, Any]
DERIVED = {"popularity": ("history", "items"), "propensity": ("items", "logged")}  # what gives them, by name
STATE_FORMAT = 2  # of the bytes of `to_bytes`
ROWS_OF_THREADS = 1 << 20
MAX_ROWS_OF_USER = 2**30  # positions within a user are 32-bit numbers


def about_users(given: Mapping[str, Any], ordered_by: str = "rank") -> AboutUsers:
    """Return the arguments of a call about users: ids, groups, weights, columns."""
    columns = Columns(**{name: given[name] for name in Columns._fields if name in given}, ordered_by=ordered_by)
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


class BaseEvaluator(Shared, ABC):
    """The base of evaluators of lists and of scored rows: a plan, a state, a report."""

    _remedy = "call reset() and update it again"

    def __init__(
        self,
        wanted: Wanted,
        settings: dict[str, Any],
        *,
        per_user: bool,
        n_threads: int | None,
        no_recs_given: bool = True,
    ) -> None:
        super().__init__()
        self._calls = tuple(wanted.calls)
        self._like = wanted.like
        self._settings = settings
        self._n_threads = resolve_threads(n_threads)
        self._per_user = check_flag("per_user", per_user)
        self._part = False
        self._no_recs_given = no_recs_given
        self._forget()
        self._plan(weighted=False)  # raises at once if a metric lacks an argument

    def _forget(self) -> None:
        """Remove all users."""
        self._state: State | None = None
        self._data_counts: dict[str, int] = {}
        self._evidence: dict[tuple[str, Any], Evidence] = {}  # by code and detail
        self._values: list[Array] = []
        self._users: list[Array] = []
        self._labels: dict[str, list[Array]] = {}
        self._seen = SeenUsers()

    def reset(self) -> None:
        """Forget all users and keep the metrics and settings, for example before the next epoch.

        After `reset`, an interrupted evaluator can be used again.

        Examples
        --------
        >>> evaluator = fastrec.Evaluator("recall@1")
        >>> for epoch in [[[1], [2]], [[1], [3]]]:
        ...     evaluator.update(epoch, [[1], [3]])
        ...     print(evaluator.result()["recall@1"])
        ...     evaluator.reset()
        0.5
        1.0
        """
        with self._locked(), self._changing():
            self._forget()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the call: min_gain, n_items and the policies."""
        return dict(self._settings)

    def as_part(self) -> Self:
        """Make this the evaluator of one part of the data, and return it. The caller must keep each user in one part.

        Its memory then does not grow with users or rows. It keeps no user ids, so it does not notice a user who comes
        twice. It does not keep the order of all rows, which `add_order` adds. Rows without users are summed one by
        one, so that the sums do not depend on the split into parts.
        """
        self._part = True
        return self

    def _plan(self, *, weighted: bool, per_user: bool | None = None) -> Plan:
        rules = self._settings
        asked = Asked(
            min_gain=rules["min_gain"],
            n_items=rules["n_items"],
            weighted=weighted,
            per_user=self._per_user if per_user is None else per_user,
            expected=rules["ties"] == "expected",
            one_class=rules.get("one_class", ONE_CLASS.default),
            no_recs_given=self._no_recs_given,
            item_policies=tuple((name, rules[name]) for name in ITEM_POLICIES if name in rules),
            correct=rules.get("correct", CORRECT.default),
        )
        return make_plan(self._calls, asked)

    @property
    def _reads_sides(self) -> bool:
        """Whether a provider or an accumulator reads the rows themselves."""
        return bool(self._plan(weighted=False).provided) or self._reads_rows_unchecked

    @property
    def _reads_rows_unchecked(self) -> bool:
        """Whether a provider or an accumulator needs rows without faults before kernels find these."""
        plan = self._plan(weighted=False)
        of_provider = any(not find_provider(name).is_trusted for name in plan.askers)
        return of_provider or any(own.kind != SCORE_COUNTS for own in plan.accumulators)

    def _check_sides(self, known: AbstractSet[str], derived: AbstractSet[str] = frozenset()) -> None:
        """Raise MetricError for a metric that reads a side which the call lacks.

        Kernels derive some sides from others, as lists from scored rows. Providers and accumulators cannot read these.
        """
        plan = self._plan(weighted=False)
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
        if self._state is None:
            return
        if self._state.plan.weighted != (users.weights is not None):
            raise InputError("user_weight must be given in every update or in none")
        self._state.check_groups(users.keys)
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
        if self._state is None:
            self._state = State(plan)
        self._state.add(outcome, users.keys)
        self._data_counts = _added(self._data_counts, data_counts)
        if outcome.per_user is not None:
            self._values.append(outcome.per_user if users.order is None else outcome.per_user[:, users.order])
            for name, labels in users.labels().items():
                self._labels.setdefault(name, []).append(labels)
        if users.ids is not None and not self._part:
            self._users.append(users.ids.copy() if users.order is None else users.ids[users.order])
            self._seen.add(users.ids)
        return self._state

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

    def _merge(self, other: Self) -> None:
        """Add the users of another evaluator with the same metrics and settings."""
        if type(other) is not type(self):
            raise InputTypeError(f"merge takes {with_article(type(self).__name__)}, found {type(other).__name__}")
        if other is self:
            raise InputError(
                f"{with_article(type(self).__name__)} cannot be merged with itself: its users would count twice"
            )
        with self._both_locked(other):
            self._merge_whole(other)

    def _merge_whole(self, other: Self) -> None:
        for name, mine, theirs in self._differences(other):
            if mine != theirs:
                raise InputError(
                    f"merge needs equal settings, but {name} is {shown(mine)} here and {shown(theirs)} there"
                )
        if other._state is None:
            return
        self._check_kind(other)
        if self._state is not None:
            if self._state.plan.weighted != other._state.plan.weighted:
                raise InputError("merge needs user_weight on both sides or on none")
            if bool(self._users) != bool(other._users):
                raise InputError("merge needs user_ids on both sides or on none")
            check_keys({"this evaluator": self._seen.some(), "the other": other._seen.some()})
            self._state.check_groups(other._state.groups, other._state.row_groupings)
        if (again := self._seen.common(other._seen)) is not None:
            raise InputError(f"user {shown(again)} is on both sides: pass all rows of a user in one update")
        with self._changing():
            self._state = State(other._state.plan) if self._state is None else self._state
            self._state.merge(other._state)
            self._data_counts = _added(self._data_counts, other._data_counts)
            self._values = [*self._values, *other._values]
            for name, labels in other._labels.items():
                self._labels.setdefault(name, []).extend(labels)
            self._users = [*self._users, *other._users]
            self._evidence = add_evidence(self._evidence, other._evidence.values())
            self._seen.merge(other._seen)
            self._take_kind(other)

    def _differences(self, other: BaseEvaluator) -> Iterator[tuple[str, Any, Any]]:
        yield "metrics", [call.text for call in self._calls], [call.text for call in other._calls]
        yield "formulas", [c.metric.formula for c in self._calls], [c.metric.formula for c in other._calls]
        yield "per_user", self._per_user, other._per_user
        for name in {**self._settings, **other._settings}:
            yield name, self._settings.get(name), other._settings.get(name)
        if self._plan(weighted=False).conditions != other._plan(weighted=False).conditions:
            yield "whether the call gives no_recs", self._no_recs_given, other._no_recs_given
        theirs = other._kind_of_batches()
        yield from ((name, mine, theirs[name]) for name, mine in self._kind_of_batches().items() if name in theirs)

    def _kind_of_batches(self) -> Mapping[str, bool | str]:
        """Return what all batches have in common; empty before the first batch."""
        return {}

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

    @synchronized
    def to_bytes(self) -> bytes:
        """Return the state as bytes, from which `from_bytes` makes an equal evaluator on any machine.

        The bytes are a compressed archive of numbers and strings, without code. They have the names of metrics only,
        so register custom metrics before reading them. Reading the bytes elsewhere and merging gives the same result,
        to the last bit, as evaluating everything in one place. With metrics of the exposure of items the bytes grow
        with the distinct items of the lists: before compression the id and 8 bytes per cut-off for each, in all and in
        each group.

        Raises
        ------
        InputError
            If user ids are neither strings nor integers.
        """
        document: dict[str, Any] = {
            "state": STATE_FORMAT,
            "kind": type(self).__name__,
            "fastrec": __version__,
            "metrics": [call.text for call in self._calls],
            "settings": self._settings,
            "like": self._like,
            "per_user": self._per_user,
            "no_recs_given": self._no_recs_given,
            "batches": self._kind_of_batches(),
            "facts": self._data_counts,
            "evidence": list(self._evidence.values()),
            **self._described(),
        }
        arrays = pack_ids(join_ids(self._users))
        if self._state is not None:
            document["weighted"] = self._state.plan.weighted
            document["seen"], more = self._state.pack()
            arrays |= more
            if self._per_user:
                arrays["per_user"] = np.concatenate(self._values, axis=1)
                document["labelled"], more = pack_labels(self._join_labels(self._state.n_users))
                arrays |= more
        stream = io.BytesIO()
        write_archive(stream, "evaluator", document, arrays, small=True)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, n_threads: int | None = None) -> Self:
        """Return the evaluator that `to_bytes` wrote, with its metrics, settings and state.

        Raises
        ------
        InputError
            If the bytes are damaged or changed, from another kind of evaluator, or from a version that differs.
        MetricError
            If a metric is not registered in this process.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InputTypeError(f"from_bytes takes the bytes of to_bytes, found {type(data).__name__}")
        return uninterrupted(
            lambda: cls._from_archive(data, n_threads)
        )  # what a handler of signals raises is no error of data

    @classmethod
    def _from_archive(cls, data: bytes, n_threads: int | None) -> Self:
        try:
            document, arrays = read_archive(io.BytesIO(data), "evaluator")
            found = document["kind"], document["state"]
        except MemoryError:
            raise
        except Exception as error:  # a damaged archive can fail in the zip, an array, the JSON or the content
            raise InputError(f"not the state of an evaluator: {error}") from error
        if found[0] != cls.__name__:
            raise InputError(f"the bytes are those of {with_article(str(found[0]))}: use {found[0]}.from_bytes")
        if found[1] != STATE_FORMAT:
            raise InputError(
                f"the state has format {found[1]} of fastrec {one_line(document['fastrec'])}, this version reads "
                f"format {STATE_FORMAT}"
            )
        try:
            evaluator = cls(
                document["metrics"], per_user=document["per_user"], n_threads=n_threads, **document["settings"]
            )
            evaluator._like = document["like"]
            evaluator._no_recs_given = document["no_recs_given"]
            evaluator._restore(document, arrays)
        except (MetricError, MemoryError):
            raise
        except Exception as error:
            raise InputError(f"not a state that this version reads: {error}") from error
        return evaluator

    def _restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take over the state in a document and arrays."""
        self._data_counts = {str(name): int(count) for name, count in document["facts"].items()}
        self._evidence = add_evidence({}, map(read_evidence, document["evidence"]))
        if "seen" not in document:
            return
        self._state = State.unpack(self._plan(weighted=document["weighted"]), document["seen"], arrays)
        wanted = self._state.n_users
        if (ids := check_saved_ids(unpack_ids(arrays, wanted))) is not None:
            self._users = [ids]
            self._seen.add(ids)
        if self._per_user:
            values, shape = arrays["per_user"], (len(self._state.plan.kept), wanted)
            if values.dtype != np.float64 or values.shape != shape:
                raise InputError(f"values of users must be float64 {shape}, found {values.dtype} {values.shape}")
            self._values = [values]
            labels = unpack_labels(document["labelled"], arrays, wanted)
            self._labels = {name: [own] for name, own in labels.items()}

    def _check_all(self) -> None:
        """Raise InputError for a fault that only all batches together can have."""

    def _estimates(self, state: State) -> dict[str, Estimate]:
        users = state.part()
        return {value.call.text: self._estimate(users, value) for value in state.plan.values}

    def result(self) -> Report:
        """Return the report on all users so far. More users may follow."""
        return self._report(copied=True)

    @synchronized
    def _report(
        self, *, copied: bool, silent: Collection[str] = (), ids_match: bool = False, is_part: bool = False
    ) -> Report:
        if not is_part:
            self._check_all()
        state = self._state if self._state is not None else State(self._plan(weighted=False))
        data, counts = self._describe_data(state), self._count_users(state)
        marks = describe_sample(self._settings)
        groups, estimates = self._estimate_groups(state), self._estimates(state)
        found, doubt = findings_of(self._evidence.values()), []
        hidden = {NO_COMMON_ID, *([] if data.get("rec_rows") else [NO_LIST])}
        if state.plan.reads_relevance:
            by_code = {finding.code: finding.text for finding in reversed(found)}
            ids = f" ({by_code[NO_COMMON_ID]})" if NO_COMMON_ID in by_code and "ids_differ" not in by_code else ""
            doubt = [f"{line}{ids}" for line in doubts(data, ids_match=ids_match)]
        lines = [
            *marks,
            *doubt,
            *doubts_of_items({**self._data_counts, **data}, counts["total"] - counts.get("no_truth", 0)),
            *doubts_of_groups({name: own for name, own in groups.items() if name not in state.row_groupings}),
            *(finding.text for finding in found if finding.code not in hidden),
            *warnings_of_tool(
                self._like, self._calls, self._settings["ties"], {"values": lambda: values_by_metric(estimates, groups)}
            ),
        ]
        report = Report(
            estimates=estimates,
            users=counts,
            data=data,
            settings={**self._settings, **self._more_settings(), "weighted": state.plan.weighted, **self._like},
            groups=groups,
            per_user=self._join_values(state.n_users, copied=copied),
            effects=self._effects(state),
            user_ids=join_ids(self._users),
            fastrec_version=__version__,
            labels=self._join_labels(state.n_users),
            warnings=[],
            digest=state.digest,
        )
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
        large = self._data_counts.get("rows", 0) >= ROWS_OF_THREADS  # the order of scored rows takes long
        keys = state.groups
        found = run_in_threads(lambda at: estimate(keys[at]), range(len(keys)), self._n_threads if large else 1)
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

    def _join_values(self, n_users: int, *, copied: bool) -> dict[str, Array] | None:
        if not self._per_user:
            return None
        values = self._kept(n_users)[: len(self._calls)]
        return {call.text: row.copy() if copied else row for call, row in zip(self._calls, values, strict=True)}

    def _kept(self, n_users: int) -> Array:
        """Return what is kept of users, as `Plan.kept` says."""
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values, axis=1)]
        return self._values[0] if self._values else np.zeros((len(self._calls), n_users))

    def _effects(self, state: State) -> Effects | None:  # noqa: ARG002 - of evaluators of scored rows
        """Return the effects of users on metrics that are no means of users' values; None if they are not kept."""
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

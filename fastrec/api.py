"""The whole surface on one screen: check, plan, run, report."""

from __future__ import annotations

import io
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, cast

import numpy as np

from fastrec._version import __version__
from fastrec.checks import (
    COUNT,
    check_choice,
    check_flag,
    check_form,
    check_progress,
    is_number,
    listed_in_order,
    one_of,
    whole_number,
    with_article,
)
from fastrec.evaluation.engine import KernelError, Outcome, evaluate_source
from fastrec.evaluation.row_rules import check_grades, check_row_metrics, check_values, collect_runs, make_source
from fastrec.evaluation.sources import ListSource
from fastrec.evaluation.state import FORM as SEEN
from fastrec.evaluation.state import Part, RunKey, State
from fastrec.exceptions import FastrecError, InputError, InputTypeError, MetricError, one_line, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.frames import Columns, read_user_labels, refuse_columns
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.hints import HINT, Example, Hint
from fastrec.inputs.lists import (
    DUPLICATES_CHOICES,
    RANK_GAPS,
    TIES,
    AboutUsers,
    Lists,
    Names,
    Prepared,
    Settings,
    prepare,
)
from fastrec.inputs.rows import Rows, label_users, one_by_one, read_frame, read_rows
from fastrec.inputs.users import SeenUsers, User, check_saved_ids, is_hashable, join_ids
from fastrec.kernels import codes as op
from fastrec.metrics.declaration import DEFAULT_SCORE_METRICS, NO_RECS_CHOICES, NO_TRUTH_CHOICES, Call, MinGain, expand
from fastrec.metrics.plan import Asked, Failure, Plan, Policies, make_plan
from fastrec.metrics.recipes import DEFAULT_POLICIES, find_recipe
from fastrec.report.archive import pack_ids, pack_labels, read_archive, unpack_ids, unpack_labels, write_archive
from fastrec.report.report import NO_TRUTH, Estimate, GroupEstimate, Report, doubts, record
from fastrec.report.soundness import Claims, nan_is_asked
from fastrec.runtime.compiler import Entry
from fastrec.runtime.launch import resolve_threads
from fastrec.runtime.turns import Shared, in_turn
from fastrec.segments import split_truth

if TYPE_CHECKING:
    from fastrec.scored.curves import ScoreRuns

__all__ = [
    "Evaluator",
    "ScoreEvaluator",
    "evaluate",
    "evaluate_by_items",
    "evaluate_scores",
    "gauc",
    "mae",
    "mse",
    "rmse",
    "warmup",
]

Array = np.ndarray[Any, Any]
Ties = Literal["expected", "input", "worst", "best", "id_asc", "id_desc", "error"]
NoRecs = Literal["skip", "zero", "nan", "error"]
NoTruth = Literal["skip", "zero", "nan", "error", "judged", "listed"]
Duplicates = Literal["error", "first", "miss"]
OneClass = Literal["drop", "half", "zero", "nan", "error"]
STATE_FORMAT = 2  # of what to_bytes writes
MAX_ROWS_OF_USER = 2**30  # positions within a user are 32-bit numbers
POLICY_CHOICES = {
    "ties": tuple(TIES),
    "no_truth": NO_TRUTH_CHOICES,
    "no_recs": NO_RECS_CHOICES,
    "duplicates": DUPLICATES_CHOICES,
}
HEAD = {"kind": one_of(("Evaluator", "ScoreEvaluator")), "state": COUNT, "fastrec": str}  # of any version
FORM = {  # of the document of `to_bytes`
    "metrics": [str],
    "settings": dict,
    "like": {"like?": str, "names?": {str: str}, "rank_gaps?": one_of(RANK_GAPS)},
    "per_user": bool,
    "batches": {str: bool},
    "facts": {str: COUNT},
    "hints?": [HINT],
    "labelled?": [str],
    "weighted?": bool,
    "seen?": SEEN,
}
OF_EVALUATOR = ("k", "per_user", "min_gain", "n_items", "like", *POLICY_CHOICES, "n_threads")
OF_USERS = ("user_ids", "groups", "user_weight", "exclude")
ONE_CLASS_CHOICES = ("drop", "half", "zero", "nan", "error")


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
    min_gain: MinGain | None = None,
    n_items: int | None = None,
    exclude: Any = None,
    user: str | None = None,
    item: str | None = None,
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    by: Any = None,
    like: str | None = None,
    ties: Ties | None = None,
    no_truth: NoTruth | None = None,
    no_recs: NoRecs | None = None,
    duplicates: Duplicates | None = None,
    n_threads: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Report:
    """Evaluate recommended lists against held-out truth: all metrics and cut-offs from one pass.

    Parameters
    ----------
    recs : the recommended lists, best item first
        ``(items, indptr)`` with the list of user u in ``items[indptr[u]:indptr[u + 1]]``; ``(items, indptr, scores)``
        (each list is then ordered by its scores); a `Ragged`; a 2-D integer array, -1 padding the ends of rows; a
        SciPy CSR matrix (its data are scores); one list per user; an Arrow array of lists; a dict {user: list} or
        {user: {item: score}}; or a data frame of pandas, Polars, PyArrow or whatever else exports Arrow data, or a
        list of Spark rows: one row per user and item, or one per user with columns of lists. Items are integers up to
        2^63 - 1 or texts. Arrays of int32 and int64 are not copied, and must not be changed while the call runs.
    truth : the relevant items, in the same forms and for the same users
        The third array, or the data of a CSR matrix, are gains; without them every item has gain 1. Dicts and data
        frames are matched by user with ``recs``, never by position. Keys of dicts are integers or texts, of one type on
        all sides; tuples and the like match, too, but cannot be saved.
    metrics : texts such as ``"ndcg@10"`` or ``"map(denominator=n_rel)@100"``
        By default ndcg, recall, precision, map, mrr and hit_rate. `fastrec.catalogue` lists them all.
    k : cut-offs for the metrics that have none of their own
    per_user : keep the value of every user, float64, NaN where the user was not counted
    groups : one label per user, or a dict {name: labels}: mean, standard error and users per label
    user_weight : weight of each user in means, finite and not negative; with data frames the name of a column
    user_ids : a label per user, for `Report.user_ids` and error messages; each once
    min_gain : the gain from which an item is relevant; by default any gain above 0; ``"any"``: every row of the truth
        is relevant, whatever its gain, and gains below 0 are taken as 0
    n_items : size of the catalogue, for the metrics that need it
    exclude : items that a user has seen, in the forms of ``recs``: dropped from the lists, the gap closed
    user, item, rank, score, gain : names of the columns of data frames; by default ``user_id``, ``item_id`` and, where
        there are such, ``rank``, else ``score``, which order the lists, and ``gain``. Without a rank or a score lists
        are in the order of their rows, without gains all are 1; `Report.data` says which it was, and a warning names
        a column that is called like a rank or a score and tells another order than the rows
    by : the column of data frames, or several, to group users by: what ``groups`` is to arrays; or labels by user:
        {user: label}, as ``dict(zip(users, segment_users(history, users)))`` gives, {grouping: {user: label}}, or a
        data frame of users, of which each further column is a grouping. The labels are all integers or all texts, and
        become texts; users without one are in the group ``"(none)"``
    like : a tool, such as ``"trec_eval"``: ``metrics`` are named as there, and computed as it does; its policies for
        ties and users hold where the next four arguments are not given, and its ``min_gain``; `explain` names
        the tools
    ties : what decides between equal scores: ``expected``, the default (nothing: the mean over all orders of tied
        items, in closed form), ``input``, ``worst``, ``best`` (by gain), ``id_asc``, ``id_desc``, or ``error``
    no_truth : users without relevant items, with a list or without: ``skip``, the default, ``zero`` (count as 0),
        ``nan``, ``error``; ``judged``: 0 for those with rows in the truth (and, under ``no_recs="skip"``, a list), the
        others are left out; ``listed``: 0 for those with a list, the others are left out
    no_recs : users with relevant items and an empty list: ``zero``, the default, ``skip``, ``nan``, ``error``
    duplicates : an item twice in a list: ``error``, the default, ``first`` (later copies are dropped, the gap closed),
        ``miss`` (later copies keep their rank as misses); in the truth copies are an error, or merged (largest gain)
    n_threads : threads to use; by default what the machine grants. The result has the same bits for any number.
    progress : called as progress(users done, users)

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong; both say what was found, what was wanted, and where: rows and positions counted from 0.
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
        like=like,
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
        user=user,
        item=item,
        rank=rank,
        score=score,
        gain=gain,
        by=by,
        progress=progress,
    )
    return evaluator._report(copied=False)  # noqa: SLF001 - spares a copy of per-user values


def evaluate_by_items(
    recs: Any, truth: Any, segments: Any, metrics: str | Iterable[str] | None = None, **options: Any
) -> dict[str, Report]:
    """Evaluate lists once per segment of items, where only the items of that segment count as relevant.

    Lists stay as they are: a list full of popular items has no hits in the tail. Users without a relevant item in a
    segment are treated there as ``no_truth`` says.

    Parameters
    ----------
    recs, truth, metrics : as in `evaluate`
    segments : {item: label}, as from `segment_items`; items that are not in it count in no segment
    **options : any other argument of `evaluate` but ``progress``; ``ties`` not ``"best"`` or ``"worst"``

    Returns
    -------
    {label: Report}
        In the order in which labels first stand in ``segments``.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`.

    Examples
    --------
    >>> segments = {1: "head", 2: "tail", 4: "tail"}
    >>> reports = fastrec.evaluate_by_items([[1, 2], [1, 3]], [[1, 2], [4]], segments, "recall@2")
    >>> {label: report["recall@2"] for label, report in reports.items()}
    {'head': 1.0, 'tail': 0.5}
    """
    if not (isinstance(segments, Mapping) and len(segments)):
        raise InputTypeError(f"segments must be a dict {{item: label}} with items, found {shown(segments)}")
    if not all(map(is_hashable, segments.values())):
        raise InputTypeError("the labels of segments must be texts or integers")
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        metrics = listed_in_order(metrics, "metrics")
    if isinstance(options.get("k"), Iterator):
        options["k"] = list(options["k"])
    for name in set(options) - {*OF_EVALUATOR, *OF_USERS, *Columns._fields}:
        raise InputTypeError(f"evaluate_by_items takes no argument {name!r}")
    given = {name: value for name, value in options.items() if name in OF_EVALUATOR}
    evaluators = {label: Evaluator(metrics, **given) for label in dict.fromkeys(segments.values())}
    first = next(iter(evaluators.values()))
    if (ties := first.settings["ties"]) in ("best", "worst"):
        raise InputError(f"ties={ties!r} looks at gains, which differ from segment to segment")
    columns = Columns(**{name: options[name] for name in Columns._fields if name in options})
    user_ids, groups, user_weight, exclude = map(options.get, OF_USERS)
    about = _about(columns, user_ids, groups, user_weight)
    prepared = first._prepare(recs, truth, exclude, about)  # noqa: SLF001 - once for all
    for evaluator, part in zip(evaluators.values(), split_truth(prepared, segments), strict=True):
        evaluator._add(part, None)  # noqa: SLF001 - of the same rules
    # a segment may well have nothing that is relevant: only a truth without rows is warned of
    silent = (NO_TRUTH,) if len(prepared.log.truth_items) else ()
    return {label: evaluator._report(copied=False, silent=silent) for label, evaluator in evaluators.items()}  # noqa: SLF001


def _about(columns: Columns, user_ids: Any, groups: Any, user_weight: Any) -> AboutUsers:
    """What was passed about users: ids, groups and weights."""
    labels = read_user_labels(columns.by, columns.user)
    columns = columns if labels is None else columns._replace(by=None)
    return AboutUsers(user_ids, groups, user_weight, columns, labels)


class _Wanted(NamedTuple):
    """Metrics as they were asked for."""

    calls: list[Call]
    policies: dict[str, str]  # where the call does not say them
    min_gain: MinGain | None  # likewise
    like: dict[str, Any]  # "like", the tool whose names these are, and "names", {name: metric}; empty without

    def fill(self, **given: str | None) -> dict[str, str]:
        """The policies of the call, checked."""
        for name, value in given.items():
            if value is not None:
                check_choice(name, value, POLICY_CHOICES[name])
        return {name: self.policies[name] if value is None else value for name, value in given.items()}


def _want(
    kind: str, like: str | None, metrics: str | Iterable[str] | None, k: Any, min_gain: MinGain | None
) -> _Wanted:
    """The metrics of lists or of rows that are meant."""
    if like is None:
        usual = DEFAULT_SCORE_METRICS if kind == "rows" else None
        return _Wanted(expand(metrics, k, usual), DEFAULT_POLICIES, None, {})
    recipe = find_recipe(like)
    calls = recipe.translate(metrics, k, kind, min_gain)
    names = {name: call.text for name, call in calls.items() if name != call.text}
    return _Wanted(
        list({call.text: call for call in calls.values()}.values()),
        recipe.policies,
        recipe.min_gain,
        {"like": recipe.name, "names": names}
        | ({} if recipe.rank_gaps == "close" else {"rank_gaps": recipe.rank_gaps}),
    )


class _Evaluating(Shared, ABC):
    """What evaluators of lists and of scored rows share: a plan, a state that adds up, a report."""

    _way_on = "reset() forgets it"

    def __init__(self, wanted: _Wanted, settings: dict[str, Any], *, per_user: bool, n_threads: int | None) -> None:
        super().__init__()
        self._calls = tuple(wanted.calls)
        self._like = wanted.like
        self._settings = settings
        self._n_threads = resolve_threads(n_threads)
        self._per_user = check_flag("per_user", per_user)
        self._part = False
        self._forget()
        self._plan(weighted=False)  # a metric that lacks something says so now

    def _forget(self) -> None:
        """Hold no users."""
        self._state: State | None = None
        self._facts: dict[str, int] = {}
        self._hints: dict[str, Hint] = {}  # by text: each once, in order
        self._values: list[Array] = []
        self._users: list[Array] = []
        self._labels: dict[str, list[Array]] = {}
        self._seen = SeenUsers()

    def reset(self) -> None:
        """Forget all users, and keep the metrics and settings: the next epoch begins.

        An evaluator that was interrupted can be used again after it.

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
        with self._turn.held(), self._changing():
            self._forget()

    @property
    def settings(self) -> dict[str, Any]:
        """The rules of the call: min_gain, n_items and the policies."""
        return dict(self._settings)

    def as_part(self) -> Self:
        """Make this the evaluator of a part of data that someone cuts who knows that each user is whole in one place.

        What it keeps then does not grow with users or rows: no ids of users (a user who comes twice goes unnoticed),
        nor the order of all rows, which `add_order` brings. Rows without users are summed one by one, so that the sums
        do not depend on the cut. Returns this evaluator.
        """
        self._part = True
        return self

    def _plan(self, *, weighted: bool) -> Plan:
        rules = self._settings
        asked = Asked(
            min_gain=rules["min_gain"],
            n_items=rules["n_items"],
            weighted=weighted,
            per_user=self._per_user,
            expected=rules["ties"] == "expected",
            one_class=rules.get("one_class", "drop"),
        )
        return make_plan(self._calls, asked)

    def _check_batch(self, users: User) -> None:
        if self._state is None:
            return
        if self._state.plan.weighted != (users.weights is not None):
            raise InputError("user_weight must be given in every update or in none")
        self._state.check_groups(users.keys)
        if self._part:
            return
        if bool(self._users) != (users.ids is not None):
            raise InputError("user_ids must be given in every update or in none")
        if users.ids is not None and (again := self._seen.find(users.ids)) is not None:
            raise InputError(f"user {shown(again)} was in an earlier update: a user comes whole in one")

    def _keep(self, plan: Plan, outcome: Outcome, users: User, facts: dict[str, int]) -> State:
        """Everything went well: only now the state changes."""
        if self._state is None:
            self._state = State(plan)
        self._state.add(outcome, users.keys)
        self._facts = {name: self._facts.get(name, 0) + count for name, count in facts.items()}
        if outcome.per_user is not None:
            self._values.append(outcome.per_user if users.order is None else outcome.per_user[:, users.order])
            for name, labels in users.labels().items():
                self._labels.setdefault(name, []).append(labels)
        if users.ids is not None and not self._part:
            self._users.append(users.ids.copy() if users.order is None else users.ids[users.order])
            self._seen.add(users.ids)
        return self._state

    def _merge(self, other: Self) -> None:
        """Add what another evaluator with the same metrics and settings has seen."""
        if type(other) is not type(self):
            raise InputTypeError(f"merge takes {with_article(type(self).__name__)}, found {type(other).__name__}")
        if other is self:
            raise InputError(
                f"{with_article(type(self).__name__)} cannot be merged with itself: its users would count twice"
            )
        with self._with(other):
            self._merge_whole(other)

    def _merge_whole(self, other: Self) -> None:
        for name, mine, theirs in self._differences(other):
            if mine != theirs:
                raise InputError(
                    f"merge needs equal settings, but {name} is {shown(mine)} here and {shown(theirs)} there"
                )
        if other._state is None:
            return
        if self._state is not None:
            if self._state.plan.weighted != other._state.plan.weighted:
                raise InputError("merge needs user_weight on both sides or on none")
            if bool(self._users) != bool(other._users):
                raise InputError("merge needs user_ids on both sides or on none")
            self._state.check_groups(other._state.groups)
        if (again := self._seen.common(other._seen)) is not None:
            raise InputError(f"user {shown(again)} is on both sides: a user comes whole in one update")
        with self._changing():
            self._state = State(other._state.plan) if self._state is None else self._state
            self._state.merge(other._state)
            self._facts = {name: self._facts.get(name, 0) + count for name, count in other._facts.items()}
            self._values = [*self._values, *other._values]
            for name, labels in other._labels.items():
                self._labels.setdefault(name, []).extend(labels)
            self._users = [*self._users, *other._users]
            self._add_hints(other._hints.values())
            self._seen.merge(other._seen)
            self._take_kind(other)

    def _add_hints(self, hints: Iterable[Hint]) -> None:
        self._hints |= {hint.text: hint.joined(self._hints.get(hint.text)) for hint in hints}

    def _differences(self, other: _Evaluating) -> Iterator[tuple[str, Any, Any]]:
        yield "metrics", [call.text for call in self._calls], [call.text for call in other._calls]
        yield "formulas", [c.metric.formula for c in self._calls], [c.metric.formula for c in other._calls]
        yield "per_user", self._per_user, other._per_user
        for name, value in self._settings.items():
            yield name, value, other._settings[name]
        theirs = other._kind_of_batches()
        yield from ((name, mine, theirs[name]) for name, mine in self._kind_of_batches().items() if name in theirs)

    def _kind_of_batches(self) -> dict[str, bool]:
        """What all batches have in common; empty before the first."""
        return {}

    @abstractmethod
    def _take_kind(self, other: Self) -> None:
        """Batches are from now on of the kind of another evaluator's."""

    @in_turn
    def to_bytes(self) -> bytes:
        """Everything seen so far, to be sent or kept: `from_bytes` makes an equal evaluator of it, on any machine.

        The bytes are a compressed archive of numbers and text, without code. Metrics are kept by name: those of one's
        own must be registered where the bytes are read. Reading them elsewhere and merging gives the same bits as
        evaluating everything in one place.

        Raises
        ------
        InputError
            If users have ids that are neither texts nor integers.
        """
        document: dict[str, Any] = {
            "state": STATE_FORMAT,
            "kind": type(self).__name__,
            "fastrec": __version__,
            "metrics": [call.text for call in self._calls],
            "settings": self._settings,
            "like": self._like,
            "per_user": self._per_user,
            "batches": self._kind_of_batches(),
            "facts": self._facts,
            "hints": list(self._hints.values()),
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
        """The evaluator that `to_bytes` was called on, with its metrics, settings and everything it has seen.

        Raises
        ------
        InputError
            If the bytes are damaged, of another kind of evaluator, or of a version that computes otherwise.
        MetricError
            If a metric is not known here.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InputTypeError(f"from_bytes takes what to_bytes gave, bytes, found {type(data).__name__}")
        try:
            document, arrays = read_archive(io.BytesIO(data), "evaluator")
            check_form(document, HEAD, "the state")
            found = document["kind"], document["state"]
        except Exception as error:  # a damaged archive can fail in the zip, an array, the text or the content
            raise InputError(f"not the state of an evaluator: {error}") from error
        if found[0] != cls.__name__:
            raise InputError(f"holds {with_article(str(found[0]))}: use {found[0]}.from_bytes")
        if found[1] != STATE_FORMAT:
            raise InputError(
                f"a state of format {found[1]}, of fastrec {one_line(document['fastrec'])}; this version reads "
                f"{STATE_FORMAT}"
            )
        try:
            check_form(document, FORM, "the state")
            evaluator = cls(
                document["metrics"], per_user=document["per_user"], n_threads=n_threads, **document["settings"]
            )
            evaluator._like = document["like"]
            evaluator._restore(document, arrays)
            evaluator._check_values()
        except MetricError:
            raise
        except Exception as error:
            raise InputError(f"not a state that this version reads: {error}") from error
        return evaluator

    def _restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take over what another evaluator has seen."""
        self._facts = {str(name): int(count) for name, count in document["facts"].items()}
        self._add_hints(
            Hint(str(text), str(counted), None if example is None else Example(*example))
            for text, counted, example in document.get("hints", ())
        )
        if "seen" not in document:
            return
        self._state = State.unpack(self._plan(weighted=document["weighted"]), document["seen"], arrays)
        wanted = self._state.n_users
        if (ids := check_saved_ids(unpack_ids(arrays, wanted))) is not None:
            self._users = [ids]
            self._seen.add(ids)
        if self._per_user:
            values, shape = arrays["per_user"], (len(self._calls), wanted)
            if values.dtype != np.float64 or values.shape != shape:
                raise InputError(f"values of users must be float64 {shape}, found {values.dtype} {values.shape}")
            self._values = [values]
            labels = unpack_labels(document.get("labelled", ()), arrays, wanted)
            self._labels = {name: [own] for name, own in labels.items()}

    def _check_values(self) -> None:
        """Refuse sums that contradict the values of users that came with them."""
        state = self._state
        if state is None or not self._per_user:
            return
        calls = {call.text: call for call in self._calls}
        Claims(
            calls=calls,
            plain=frozenset(value.call.text for value in state.plan.values if value.is_plain),
            n_users=state.n_users,
            weighted=state.plan.weighted,
            estimates=self._estimates(state),
            groups=_estimate_groups(state),
            values=self._join_values(state.n_users, copied=False) or {},
            labels=self._join_labels(state.n_users),
            nan_is_asked=nan_is_asked(self._settings, self._calls),
        ).check()

    def _estimates(self, state: State) -> dict[str, Estimate]:
        return {value.call.text: self._estimate(state.part(), value) for value in state.plan.values}

    def result(self) -> Report:
        """The report on all users so far; more may be added afterwards."""
        return self._report(copied=True)

    @in_turn
    def _report(self, *, copied: bool, silent: Collection[str] = ()) -> Report:
        state = self._state if self._state is not None else State(self._plan(weighted=False))
        data = self._describe_data(state)
        lines = [*doubts(data), *(hint.line(data) for hint in self._hints.values())]
        report = Report(
            estimates=self._estimates(state),
            users=self._count_users(state),
            data=data,
            settings={**self._settings, "weighted": state.plan.weighted, **self._like},
            groups=_estimate_groups(state),
            per_user=self._join_values(state.n_users, copied=copied),
            user_ids=join_ids(self._users),
            fastrec_version=__version__,
            labels=self._join_labels(state.n_users),
            warnings=[],
        )
        record(report, lines, silent=silent)
        return report

    def _estimate(self, users: Part, value: Any) -> Estimate:
        return Estimate(*users.estimate(value))

    @abstractmethod
    def _count_users(self, state: State) -> dict[str, int]:
        """Users by what became of them."""

    @abstractmethod
    def _describe_data(self, state: State) -> dict[str, Any]:
        """What was seen in the data."""

    def _join_labels(self, n_users: int) -> dict[str, Array]:
        """The label of each user; a grouping that some batches lack has none."""
        joined = {name: join_ids(parts) for name, parts in self._labels.items()}
        return {name: labels for name, labels in joined.items() if labels is not None and len(labels) == n_users}

    def _join_values(self, n_users: int, *, copied: bool) -> dict[str, Array] | None:
        if not self._per_user:
            return None
        if len(self._values) > 1:
            self._values = [np.concatenate(self._values, axis=1)]
        values = self._values[0] if self._values else np.zeros((len(self._calls), n_users))
        return {call.text: row.copy() if copied else row for call, row in zip(self._calls, values, strict=True)}


class Evaluator(_Evaluating):
    """Evaluates users batch by batch, on one machine or many; batches add up and merge in any order.

    A user comes whole in one batch. The sums kept are exact, so the result has the same bits for any cut of the
    users into batches, any order of merging and any number of threads. Arguments are those of `evaluate`. An
    evaluator serves one thread at a time and others wait: threads of one's own have one each, merged at the end.

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
        min_gain: MinGain | None = None,
        n_items: int | None = None,
        like: str | None = None,
        ties: Ties | None = None,
        no_truth: NoTruth | None = None,
        no_recs: NoRecs | None = None,
        duplicates: Duplicates | None = None,
        n_threads: int | None = None,
    ) -> None:
        wanted = _want("lists", like, metrics, k, min_gain)
        policies = wanted.fill(ties=ties, no_truth=no_truth, no_recs=no_recs, duplicates=duplicates)
        for call in wanted.calls:
            if call.metric.kind == "scores":
                raise MetricError(
                    f"{call.text} takes scored, labelled rows: fastrec.evaluate_scores(labels, scores, ...)"
                )
        settings: dict[str, Any] = {
            "min_gain": _check_min_gain_of_lists(wanted.min_gain if min_gain is None else min_gain),
            "n_items": _check_n_items(n_items),
            **policies,
        }
        super().__init__(wanted, settings, per_user=per_user, n_threads=n_threads)

    def update(
        self,
        recs: Any,
        truth: Any,
        *,
        user_ids: Any = None,
        groups: Any = None,
        user_weight: Any = None,
        exclude: Any = None,
        user: str | None = None,
        item: str | None = None,
        rank: str | None = None,
        score: str | None = None,
        gain: str | None = None,
        by: Any = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        """Add a batch of users. An error leaves what was added before as it is.

        So does an interrupt, but for the moment in which the batch is added up: after one in there every call but
        `reset` says that this evaluator cannot be used.

        With ``user_ids`` (or dicts, or data frames) a user who comes in a second batch is an error. Batches must agree
        in whether they have ids and weights.
        """
        check_progress(progress)
        columns = Columns(user=user, item=item, rank=rank, score=score, gain=gain, by=by)
        about = _about(columns, user_ids, groups, user_weight)
        self._add(self._prepare(recs, truth, exclude, about), progress)

    @property
    def _rank_gaps(self) -> str:
        """What becomes of gaps between ranks, which the tool says whose names these are."""
        return cast("str", self._like.get("rank_gaps", "close"))

    def _differences(self, other: _Evaluating) -> Iterator[tuple[str, Any, Any]]:
        yield from super()._differences(other)
        yield "rank_gaps", self._rank_gaps, cast("Evaluator", other)._rank_gaps  # noqa: SLF001 - this class's own

    def _prepare(self, recs: Any, truth: Any, exclude: Any, about: AboutUsers) -> Prepared:
        """A batch as the engine takes it."""
        rules = self._settings
        settings = Settings(
            rules["ties"],
            rules["duplicates"],
            self._n_threads,
            self._rank_gaps,
            graded=rules["min_gain"] != "any",
        )
        return prepare(recs, truth, exclude, about, settings)

    @in_turn
    def _add(self, prepared: Prepared, progress: Callable[[int, int], Any] | None) -> None:
        """Add a batch that was prepared under the same rules."""
        rules = self._settings
        log, users, names, facts, hints = prepared
        self._check_batch(users)
        plan = self._plan(weighted=users.weights is not None)
        if log.gains is not None and plan.counts_any_gain:
            log = log._replace(gains=np.maximum(log.gains, 0.0))
        _check_sizes(plan, log)
        if log.gains is None and plan.needs_gains:
            log = log._replace(gains=np.ones(len(log.truth_items)))
        policies = Policies(rules["no_truth"], rules["no_recs"])
        try:
            outcome = evaluate_source(
                plan, policies, ListSource(*log), users.groups, users.weights, self._n_threads, progress
            )
        except KernelError as error:
            raise _explain(error, plan, names, rules, log) from None
        with self._changing():
            self._keep(plan, outcome, users, {"truth_rows": len(log.truth_items), **facts})
            self._add_hints(hints)

    def merge(self, other: Evaluator) -> Evaluator:
        """Add what another evaluator with the same metrics and settings has seen; returns this one."""
        self._merge(other)
        return self

    def _take_kind(self, other: Evaluator) -> None:
        """Batches of lists are of one kind."""

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
        orders = ("rec_rows_by_rank", "rec_rows_by_score", "rec_rows_by_place")
        changes = ("excluded_items", "duplicates_in_recs", "duplicates_in_truth")
        names = ("rec_rows", *orders, "rec_lists_with_gaps", "truth_rows", "truth_rows_with_gains", *changes)
        counts = {name: self._facts.get(name, 0) for name in names}
        return {
            **counts,
            "truth_rows_not_relevant": counts["truth_rows"] - relevant,
            "truth_users_with_recs": facts[op.FACT_LISTED] / held if held else float("nan"),
            "truth_items_in_recs": facts[op.FACT_HITS] / relevant if relevant else float("nan"),
        }


def evaluate_scores(
    labels: Any,
    scores: Any = None,
    indptr: Any = None,
    metrics: str | Iterable[str] | None = None,
    *,
    k: int | Iterable[int] | None = None,
    user_ids: Any = None,
    item_ids: Any = None,
    sample_weight: Any = None,
    per_user: bool = False,
    groups: Any = None,
    user_weight: Any = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    label: str | None = None,
    score: str | None = None,
    by: Any = None,
    min_gain: float | None = None,
    n_items: int | None = None,
    like: str | None = None,
    ties: Ties | None = None,
    no_truth: NoTruth | None = None,
    one_class: OneClass = "drop",
    n_threads: int | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Report:
    """Evaluate scored, labelled rows, such as an impression log: everything per user, grouped and over all rows.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for others; or grades, of which ``min_gain`` says from where on a row is positive, and
        which the graded metrics of lists take as gains; or targets, for mae, mse and rmse. Or, alone, a data frame as
        in `evaluate`: one row per label, or one per user with columns of lists.
    scores : array (n,), float32 or float64 (other numbers are converted)
        Predictions. Infinities are scores like others, NaN is an error, -0.0 equals 0.0.
    indptr : integers (n_users + 1,), optional
        The rows of user u are ``indptr[u]:indptr[u + 1]``. As all arrays it must not be changed while the call runs.
    metrics : texts such as ``"gauc"``, ``"auc"``, ``"ndcg@10"`` or ``"precision(threshold=0.5)"``
        By default auc, gauc, average_precision, log_loss, calibration and ndcg@10; without users those that need none,
        and with ``sample_weight`` no ndcg, which takes none. Metrics of lists rank each user's rows by their scores.
    k : cut-offs for the metrics of lists that have none of their own
    user_ids : with ``indptr`` one label per user; without it one key per row, rows in any order, or a tuple of several
        such arrays where a user is a combination of keys. Without both, only metrics over all rows can be had.
    item_ids : array (n,), for ``ties='id_asc'`` and ``'id_desc'``
    sample_weight : array (n,), weights of rows, finite and not negative; metrics of lists take none
    per_user : keep the value of every user, float64, NaN where a user has none
    groups, user_weight : as in `evaluate`; where ``user_ids`` are keys of rows, one entry per row that agrees within a
        user. A user's weight multiplies the weights of the user's rows, and the weight in gauc.
    user, item, label, score, by : names of the columns of a data frame, ``user`` one or several that make a user
        together; by default ``label``, ``score`` and, where there is such, ``user_id``. ``sample_weight`` and
        ``user_weight`` are then names of columns too. ``by`` may also hold labels by user, as in `evaluate`.
    min_gain : the label from which a row is positive
    n_items : size of the catalogue, for the metrics of lists that need it
    like : as in `evaluate`
    ties : order of rows with equal scores in the metrics of lists: ``expected``, the default (the mean over all orders,
        in closed form), ``input``, ``worst``, ``best``, ``id_asc``, ``id_desc``, or ``error``. Curve metrics (auc,
        gauc, average_precision, ks) take equal scores as one threshold, whatever it says.
    no_truth : users without a positive row, in the metrics of lists: ``skip``, the default, ``zero``, ``nan``,
        ``error``, or ``judged`` and ``listed``: 0 for those with rows, left out without
    one_class : users with one class only, in gauc: ``drop``, ``half``, ``zero``, ``nan``, ``error``
    n_threads, progress : as in `evaluate`

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong; both say what was found, what was wanted, and where: rows and positions counted from 0.
    MetricError
        If a metric or option is unknown, or a metric cannot be had from these arguments.

    Examples
    --------
    >>> labels, scores = [1, 0, 1, 1, 0, 1, 0, 0, 1], [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6]
    >>> report = fastrec.evaluate_scores(labels, scores, [0, 5, 9], ["gauc", "auc", "ndcg@3"])
    >>> {name: round(report[name], 4) for name in report}
    {'gauc': 0.5926, 'auc': 0.575, 'ndcg@3': 0.6585}
    """
    wanted: dict[str, Any] = {"metrics": metrics, "k": k}
    if metrics is None and like is None:
        labels = open_foreign(labels, "the frame") if scores is None else labels
        of_frame = user is not None or by is not None or (isinstance(labels, Frame) and labels.has("user_id"))
        has_users = of_frame if scores is None else indptr is not None or user_ids is not None
        wanted = usual_of_rows(k, has_users=has_users, weighted=sample_weight is not None)
    evaluator = ScoreEvaluator(
        **wanted,
        per_user=per_user,
        min_gain=min_gain,
        n_items=n_items,
        like=like,
        ties=ties,
        no_truth=no_truth,
        one_class=one_class,
        n_threads=n_threads,
    )
    evaluator.update(
        labels,
        scores,
        indptr,
        user_ids=user_ids,
        item_ids=item_ids,
        sample_weight=sample_weight,
        groups=groups,
        user_weight=user_weight,
        user=user,
        item=item,
        label=label,
        score=score,
        by=by,
        progress=progress,
    )
    return evaluator._report(copied=False)  # noqa: SLF001 - spares a copy of per-user values


def usual_of_rows(k: Any, *, has_users: bool, weighted: bool) -> dict[str, Any]:
    """Metrics of scored rows, where none are named, and their cut-offs: those that these rows can have."""
    calls = expand(None, k, DEFAULT_SCORE_METRICS)
    had = [call for call in calls if has_users or not call.needs_users]
    return {"metrics": [call.text for call in had if not (weighted and call.metric.kind == "ranking")]}


def gauc(
    labels: Any,
    scores: Any,
    indptr: Any,
    *,
    weight: Literal["impressions", "positives", "negatives", "pairs", "equal"] = "impressions",
    one_class: OneClass = "drop",
    constant: Literal["half", "drop"] = "half",
    sample_weight: Any = None,
    n_threads: int | None = None,
) -> float:
    """Grouped AUC: the weighted mean of the AUCs of users, as a float; see the metric `gauc` for the arguments.

    `evaluate_scores` gives the same with its standard error, every user's AUC and the counts of users left out.

    Examples
    --------
    >>> round(fastrec.gauc([1, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], [0, 2, 5]), 12)
    1.0
    """
    metric = f"gauc(weight={weight}, constant={constant})"
    report = evaluate_scores(
        labels, scores, indptr, metric, sample_weight=sample_weight, one_class=one_class, n_threads=n_threads
    )
    return report[metric]


def _over_rows(metric: str, targets: Any, predictions: Any, **options: Any) -> float:
    """A metric of targets and predictions, which errors call so."""
    try:
        return evaluate_scores(targets, predictions, metrics=metric, **options)[metric]
    except FastrecError as error:
        message = re.sub(r"\blabel(s?)\b", r"target\1", re.sub(r"\bscore(s?)\b", r"prediction\1", str(error)))
        raise type(error)(message) from None


def mae(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Mean absolute error over all rows, as a float; see the metric `mae`.

    >>> fastrec.mae([4.0, 2.0], [3.5, 3.0])
    0.75
    """
    return _over_rows("mae", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def mse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Mean squared error over all rows, as a float; see the metric `mse`.

    >>> fastrec.mse([4.0, 2.0], [3.5, 3.0])
    0.625
    """
    return _over_rows("mse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def rmse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Root of the mean squared error over all rows, as a float; see the metric `rmse`.

    >>> round(fastrec.rmse([4.0, 2.0], [3.5, 3.0]), 12)
    0.790569415042
    """
    return _over_rows("rmse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


class ScoreEvaluator(_Evaluating):
    """Evaluates scored, labelled rows batch by batch; batches add up and merge in any order.

    A user comes whole in one batch. The sums kept are exact, and metrics over the order of all rows (auc,
    average_precision, ks) keep sorted runs of distinct scores, so the result has the same bits for any cut of the
    users into batches, any order of merging and any number of threads. Arguments are those of `evaluate_scores`. An
    evaluator serves one thread at a time and others wait: threads of one's own have one each, merged at the end.

    Examples
    --------
    >>> first = fastrec.ScoreEvaluator(["auc"])
    >>> first.update([1, 0], [0.9, 0.2])
    >>> second = fastrec.ScoreEvaluator(["auc"])
    >>> second.update([1, 0], [0.1, 0.5])
    >>> first.merge(second).result()["auc"]
    0.5
    """

    def __init__(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        k: int | Iterable[int] | None = None,
        per_user: bool = False,
        min_gain: float | None = None,
        n_items: int | None = None,
        like: str | None = None,
        ties: Ties | None = None,
        no_truth: NoTruth | None = None,
        one_class: OneClass = "drop",
        n_threads: int | None = None,
    ) -> None:
        wanted = _want("rows", like, metrics, k, min_gain)
        policies = wanted.fill(ties=ties, no_truth=no_truth)
        for call in wanted.calls:
            if call.min_gain == "any":
                raise MetricError(f"{call.text} is for lists: it would make every scored row positive")
        check_choice("one_class", one_class, ONE_CLASS_CHOICES)
        settings: dict[str, Any] = {
            "min_gain": _check_min_gain(min_gain),
            "n_items": _check_n_items(n_items),
            **policies,
            "one_class": one_class,
        }
        super().__init__(wanted, settings, per_user=per_user, n_threads=n_threads)

    def _forget(self) -> None:
        super()._forget()
        self._grouped: bool | None = None
        self._row_weights: bool | None = None

    @in_turn
    def update(
        self,
        labels: Any,
        scores: Any = None,
        indptr: Any = None,
        *,
        user_ids: Any = None,
        item_ids: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        user_weight: Any = None,
        user: str | Sequence[str] | None = None,
        item: str | None = None,
        label: str | None = None,
        score: str | None = None,
        by: Any = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> None:
        """Add a batch of users. An error leaves what was added before as it is.

        So does an interrupt, but for the moment in which the batch is added up: after one in there every call but
        `reset` says that this evaluator cannot be used.

        With ``user_ids`` a user who comes in a second batch is an error. Batches must agree in whether they have
        users, ids and weights.
        """
        check_progress(progress)
        rules = self._settings
        of_users = read_user_labels(by, user)
        columns = Columns(user=user, item=item, label=label, score=score, by=None if of_users is not None else by)
        if scores is None:
            _refuse_arrays(indptr=indptr, user_ids=user_ids, item_ids=item_ids, groups=groups)
            rows = read_frame(
                labels,
                columns,
                sample_weight=sample_weight,
                user_weight=user_weight,
                with_items=rules["ties"] in ("id_asc", "id_desc"),
                n_threads=self._n_threads,
            )
        else:
            if hasattr(labels, "columns"):
                raise InputError("scores must be left out where labels is a data frame; metrics are passed by name")
            refuse_columns(columns, "labels is not a data frame that stands alone, without scores")
            rows = read_rows(
                labels,
                scores,
                indptr,
                user_ids=user_ids,
                item_ids=item_ids,
                sample_weight=sample_weight,
                groups=groups,
                user_weight=user_weight,
                n_threads=self._n_threads,
            )
        if of_users is not None:
            rows = label_users(rows, of_users)
        if self._part and not rows.grouped:
            rows = one_by_one(rows)
        self._check_rows(rows)
        users = rows.users
        self._check_batch(users)
        plan = self._plan(weighted=users.weights is not None)
        check_row_metrics(plan, rows, rules["ties"])
        source = make_source(plan, rows, TIES[rules["ties"]])
        try:
            outcome = evaluate_source(
                plan,
                Policies(rules["no_truth"], "zero"),
                source,
                users.groups,
                users.weights,
                self._n_threads,
                progress,
            )
        except KernelError as error:
            check_values(plan, rows)  # what is wrong with the rows themselves comes first
            raise _explain(error, plan, Names(users.ids, None), rules, None) from None
        runs = [] if self._part else list(collect_runs(plan, rows, self._n_threads))
        with self._changing():
            state = self._keep(plan, outcome, users, {"rows": len(rows.scores)})
            state.add_runs(runs)
            self._grouped, self._row_weights = rows.grouped, rows.weights is not None

    @property
    def ordered_calls(self) -> list[str]:
        """The metrics that need the order of all rows."""
        return [value.call.text for value in self._plan(weighted=False).values if value.over_rows is not None]

    @property
    def ordered(self) -> dict[int, float]:
        """The views whose metrics need the order of all rows, and the label from which a row is positive there."""
        plan = self._plan(weighted=False)
        return {value.view: plan.min_gains[value.view] for value in plan.values if value.over_rows is not None}

    @in_turn
    def add_order(self, found: Iterable[tuple[RunKey, ScoreRuns]]) -> None:
        """Add the sorted rows of views and groups that an evaluator of a part leaves out."""
        assert self._part and self._state is not None
        with self._changing():
            self._state.add_runs(found)

    @property
    def needs_targets(self) -> bool:
        """Whether all metrics compare numbers with predictions, and none needs labels."""
        return all(call.metric.needs == "targets" for call in self._calls)

    def _check_rows(self, rows: Rows) -> None:
        """Batches must be of one kind."""
        if self._state is None or self._grouped is None:
            return
        if self._grouped != rows.grouped:
            raise InputError("users (indptr or user_ids) must be given in every update or in none")
        if self._row_weights != (rows.weights is not None):
            raise InputError("sample_weight must be given in every update or in none")

    def merge(self, other: ScoreEvaluator) -> ScoreEvaluator:
        """Add what another evaluator with the same metrics and settings has seen; returns this one."""
        self._merge(other)
        return self

    def _take_kind(self, other: ScoreEvaluator) -> None:
        if self._grouped is None:
            self._grouped, self._row_weights = other._grouped, other._row_weights

    def _kind_of_batches(self) -> dict[str, bool]:
        if self._grouped is None or self._row_weights is None:
            return {}
        return {"having users": self._grouped, "having sample_weight": self._row_weights}

    def _restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        super()._restore(document, arrays)
        if kind := document["batches"]:
            self._grouped, self._row_weights = kind["having users"], kind["having sample_weight"]

    def _estimate(self, users: Part, value: Any) -> Estimate:
        mean, error, n_users = users.estimate(value)
        if self._grouped is False:  # sums over rows that belong to nobody know nothing of their spread
            error, n_users = (error if value.over_rows is not None else math.nan), 0
        return Estimate(mean, error, n_users)

    def _count_users(self, state: State) -> dict[str, int]:
        facts = [0 if self._grouped is False else int(fact) for fact in state.facts]
        total = 0 if self._grouped is False else state.n_users
        if self.needs_targets:
            no_rows = facts[op.FACT_NO_ROWS]
            return {"total": total, "evaluated": total - no_rows, "no_rows": no_rows}
        return {
            "total": total,
            "evaluated": state.count(op.N_EVALUATED) + state.count(op.N_NAN) if total else 0,
            "no_truth": facts[op.FACT_NO_POSITIVES],
            "no_negatives": facts[op.FACT_NO_NEGATIVES],
            "constant_scores": facts[op.FACT_CONSTANT],
            "no_rows": facts[op.FACT_NO_ROWS],
        }

    def _describe_data(self, state: State) -> dict[str, Any]:
        rows = {"rows": self._facts.get("rows", 0)}
        if all(call.metric.needs == "targets" for call in self._calls):
            return rows
        return {**rows, "positive_rows": int(state.facts[op.FACT_RELEVANT])}


def _estimate_groups(state: State) -> dict[str, dict[str | int, dict[str, Estimate]]]:
    groups: dict[str, dict[str | int, dict[str, Estimate]]] = {}
    for grouping, label in state.groups:
        own, rest = state.part((grouping, label)), state.rest((grouping, label))
        groups.setdefault(grouping, {})[label] = {
            value.call.text: GroupEstimate(*own.estimate(value), rest=Estimate(*rest.estimate(value)))
            for value in state.plan.values
        }
    return groups


def _refuse_arrays(**arguments: Any) -> None:
    """Arrays that cannot go with a data frame, whose columns have names."""
    wanted = {"indptr": "user", "user_ids": "user", "item_ids": "item", "groups": "by"}
    for name, value in arguments.items():
        if value is not None:
            raise InputError(
                f"{name} goes with labels and scores, but scores is None; of a data frame, {wanted[name]}=... names "
                "the column"
            )


def _check_min_gain_of_lists(min_gain: Any) -> MinGain | None:
    if isinstance(min_gain, str):
        if min_gain != "any":
            raise InputTypeError(f"min_gain must be a number or 'any', found {shown(min_gain)}")
        return "any"
    return _check_min_gain(min_gain)


def _check_min_gain(min_gain: Any) -> float | None:
    if min_gain is None:
        return None
    if not is_number(min_gain):
        raise InputTypeError(f"min_gain must be a number, found {shown(min_gain)}")
    try:
        value = float(min_gain)
    except OverflowError:
        value = math.inf
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"min_gain must be finite and above 0, found {shown(min_gain)}")
    return value


def _check_n_items(n_items: Any) -> int | None:
    if n_items is None:
        return None
    number = whole_number(n_items)
    if number is None:
        raise InputTypeError(f"n_items must be a whole number, found {shown(n_items)}")
    if not 1 <= number <= 2**53:
        raise InputError(f"n_items must be from 1 to 2**53, found {shown(n_items)}")
    return number


def _check_sizes(plan: Plan, log: Lists) -> None:
    """Users and gains that are too large, and gains that the asked metrics cannot take."""
    lists, held = log.longest
    if lists + held > MAX_ROWS_OF_USER:
        raise InputError(f"a list and a truth hold at most {MAX_ROWS_OF_USER} items, found {lists} and {held}")
    if len(log.truth_items):
        check_grades(plan, np.ones(1) if log.gains is None else log.gains, "truth gains")


def _explain(error: KernelError, plan: Plan, names: Names, rules: dict[str, Any], log: Lists | None) -> InputError:
    """The error for what a kernel found, with the names of users and items."""
    (code, user, at), metric = error.failure, error.metric
    who = names.user(user)
    if log is not None and (wrong := _explain_item(error.failure, who, names, log)) is not None:
        return wrong
    if code == op.TIED:
        return _explain_tie(who, plan, rules["ties"])
    if code == op.USER_NO_TRUTH:
        return InputError(f"user {who} has no relevant item, and no_truth='error'")
    if code == op.USER_NO_RECS:
        return InputError(f"user {who} has no list, and no_recs='error'")
    if code == op.SMALL_CATALOGUE:
        return InputError(f"n_items = {rules['n_items']} is too small: list and truth of user {who} hold {at} items")
    if code == op.OUT_OF_LIMITS and " " in metric:
        return InputError(f"user {who} {metric}")
    if code in (op.OUT_OF_LIMITS, op.OUT_OF_RANGE):
        return InputError(f"{metric} of user {who} is not a number within the range that the metric declares")
    return InputError(f"{metric} of user {who} is too large for a double")


def _explain_tie(who: str, plan: Plan, ties: str) -> InputError:
    if ties == "error":
        return InputError(f"user {who} has a relevant item whose score another item shares, and ties='error'")
    return MetricError(
        f"{plan.not_linear[0]} has no closed form for its mean over orders of tied scores, which user {who} has; say "
        "what decides between them with ties='input', 'worst', 'best', 'id_asc' or 'id_desc'"
    )


def _explain_item(failure: Failure, who: str, names: Names, log: Lists) -> InputError | None:
    """The error for an item that stands twice, or is negative."""
    code, user, at = failure
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
    return None


def warmup(what: str = "all", *, progress: Callable[[int, int], Any] | None = None) -> None:
    """Compile kernels now, into the disk cache if there is one.

    For images that are built once and started often, and before a fork: `fastrec warmup` in the shell, or
    `fastrec.warmup()`. It takes some 40 seconds of a processor the first time. Without it a process interprets small
    inputs at first, which gives the same bits, and compiles when there is enough work.

    Parameters
    ----------
    what : "lists" for recommended lists, "scores" for scored rows, or "all": these and what sorts frames and files
    progress : called as `progress(done, total)` before the first kernel and after each
    """
    check_choice("what", what, list(_WARMUPS))
    check_progress(progress)
    Entry.eager = True
    tasks = [task for part in _WARMUPS[what] for task in part()]
    for done, task in enumerate(tasks):
        if progress is not None:
            progress(done, len(tasks))
        task()
    if progress is not None:
        progress(len(tasks), len(tasks))


def _warm_up_lists() -> list[Callable[[], Any]]:
    """Calls that compile the kernels of lists: one takes ids of either width, those that put lists right one each."""
    items, indptr = np.arange(4096 * 100) % 100, np.arange(4097) * 100
    narrow = items.astype(np.int32)
    plain, graded = (narrow, indptr), (narrow, indptr, np.full(len(items), 2.0))
    right: dict[str, Any] = {"duplicates": "first", "exclude": (items[:0], indptr * 0)}
    tasks: list[Callable[[], Any]] = [partial(evaluate, plain, truth) for truth in (plain, graded)]
    for ids in (narrow, items):
        scored = (ids, indptr, np.zeros(len(items)))
        tasks += [partial(evaluate, scored, (ids, indptr), ties=ties, **right) for ties in ("best", "expected")]
    return tasks


def _warm_up_scores() -> list[Callable[[], Any]]:
    """Calls that compile the kernels of scored rows, of either width."""
    rows, indptr = np.arange(4096 * 100) % 100, np.arange(4097) * 100
    tasks: list[Callable[[], Any]] = []
    for dtype in (np.float32, np.float64):
        scores = np.linspace(0, 1, len(rows), dtype=dtype)
        tasks.append(partial(evaluate_scores, rows < 5, scores, indptr))
        tasks.append(partial(evaluate_scores, rows / 2, scores, metrics=["mae", "rmse"]))
    return tasks


def _warm_up_grouping() -> list[Callable[[], Any]]:
    """Calls that compile what puts the rows of users together."""
    return [_group_everything]


def _group_everything() -> None:
    """Group rows of dense keys and of others, ids and ranks of either width."""
    rows = np.arange(1 << 16)
    users, ranks = rows % 512, rows // 512
    narrow = users.astype(np.int32)
    for keys in (narrow, users, narrow << 20, users << 40):
        grouping = group_rows(keys, 1)
        for items in (rows.astype(np.int32), rows):
            for own in (ranks, ranks * -1000):  # without gaps and with
                grouping.take_by_rank(items, own, 1)
                grouping.take_by_rank(items, own.astype(np.int32), 1)
        grouping.take(rows.astype(np.int8))
    for width in (np.int32, np.int64):
        blocks = group_rows(np.repeat(users[::-1], 64).astype(width), 1)
        blocks.take(np.repeat(rows, 64).astype(width))


_WARMUPS = {
    "lists": (_warm_up_lists,),
    "scores": (_warm_up_scores,),
    "all": (_warm_up_lists, _warm_up_scores, _warm_up_grouping),
}

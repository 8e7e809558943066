"""The evaluator of lists against truth, in batches."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastrec.arguments import calls
from fastrec.arguments.options import options_of
from fastrec.checks import check_n_items, check_progress
from fastrec.evaluation.accumulators import collect
from fastrec.evaluation.clicks import check_examination
from fastrec.evaluation.digests import (
    COLUMN,
    EXAMINATION,
    HISTORY,
    N_USERS,
    ReadColumns,
    check_same,
    check_type_of_ids,
    digest_of_column,
    digest_of_counts,
    digest_of_curve,
)
from fastrec.evaluation.engine import KernelError, evaluate_source
from fastrec.evaluation.evaluators import (
    DERIVED,
    BaseEvaluator,
    about_users,
    wanted_metrics,
)
from fastrec.evaluation.faults import explain_fault
from fastrec.evaluation.list_rules import (
    check_min_gain_of_lists,
    check_n_users,
    check_sizes,
    history_of_one_batch,
    item_policies,
    largest_cutoff,
    length_up_to,
    with_shared,
)
from fastrec.evaluation.sampled import (
    SampledSide,
    check_catalogue,
    check_lengths,
    read_sampling,
    refuse_setting,
    sample_of,
    used_by,
)
from fastrec.evaluation.sources import ListSource
from fastrec.evaluation.state import State
from fastrec.evaluation.tools import tool_rules
from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.arrays import FlatSide, find_tied_user
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.findings.evidence import FEW_LISTS, add_evidence, remark
from fastrec.inputs.history import HistoryCounts
from fastrec.inputs.items import ItemTable, read_items, read_once
from fastrec.inputs.lists import (
    AboutUsers,
    Lists,
    Names,
    Prepared,
    Settings,
    known_items,
    prepare,
)
from fastrec.inputs.row_digests import digest_of_truth
from fastrec.inputs.sides import UNJUDGED, joined_exclude
from fastrec.inputs.slots import BatchSides
from fastrec.kernels import codes as op
from fastrec.metrics.calls import of_lists_instead
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.plan import Plan, Policies
from fastrec.metrics.providers import register_later
from fastrec.metrics.recipes import order_of
from fastrec.metrics.sampled import SAMPLED
from fastrec.metrics.sums import Failure
from fastrec.runtime.limits import read_size
from fastrec.runtime.shared import synchronized

if TYPE_CHECKING:
    from fastrec.evaluation.models import ModelParts, Reads, Working
    from fastrec.inputs.models import ModelCall

Array = np.ndarray[Any, Any]
SIDE_OPTIONS = "exclude reference logged subtopics"  # options of each batch: rows of its users
COLUMN_OPTIONS = "user item rank score gain propensity logged_rank subtopic item_sep by"  # and names of their columns
register_later(functools.partial(importlib.import_module, "fastrec.evaluation.item_rules"))


class Evaluator(BaseEvaluator):
    """An evaluator of lists in batches, on one machine or many. Evaluators merge in any order.

    All rows of a user must be in one batch. The sums are exact, so the result has the same bits for any split of the
    users into batches, any order of merging and any number of threads. Standard errors that need the lists a second
    time, as of ``gini``, are missing: `evaluate` has them. The constructor takes the settings of `evaluate`, and
    `Evaluator.update` its data. An evaluator serves one thread at a time; other threads wait. For parallel updates, use
    one evaluator per thread and merge them at the end.

    Examples
    --------
    >>> first = fastrec.Evaluator(["recall@2"])
    >>> first.update([[1, 2]], [[2, 9]])
    >>> second = fastrec.Evaluator(["recall@2"])
    >>> second.update([[3, 4]], [[4]])
    >>> first.merge(second).result()["recall@2"]
    0.75
    """

    @options_of(
        (calls.evaluate, "k per_user min_gain n_items items history n_users unseen no_history no_features examination"),
        (calls.evaluate, "like ties no_truth no_recs duplicates"),
        (calls.evaluate_model, "negatives seed sample"),
        (calls.evaluate, "sampled_from correct n_threads"),
    )
    def __init__(self, metrics: str | Iterable[str] | None = None, **given: Any) -> None:
        """Make an evaluator without users.

        Parameters
        ----------
        metrics : as in `evaluate`
        """
        min_gain = given["min_gain"]
        wanted = wanted_metrics("lists", given["like"], metrics, given["k"], min_gain)
        policies = wanted.fill(given)
        for call in wanted.calls:
            if call.metric.family is not LISTS:
                raise MetricError(f"{call.text} {call.metric.family.entry}{of_lists_instead(call.metric)}")
        self._items = None if given["items"] is None else read_items(given["items"])
        is_counted = isinstance(given["history"], HistoryCounts)  # engines pass the rows with each batch
        self._history = None if is_counted else read_once(given["history"], "history")
        self._counts_of_history: HistoryCounts | None = given["history"] if is_counted else None
        settings: dict[str, Any] = {
            "min_gain": check_min_gain_of_lists(wanted.min_gain if min_gain is None else min_gain),
            "n_items": self._count_items(check_n_items(given["n_items"])),
            **policies,
            **item_policies(given),
            **read_sampling(given, wanted.calls),
        }
        self._n_users = check_n_users(given["n_users"])
        self._examination = check_examination(given["examination"])
        self._known_digests: dict[str, str] = {}
        super().__init__(
            wanted,
            settings,
            per_user=given["per_user"],
            n_threads=given["n_threads"],
            no_recs_given=given["no_recs"] is not None,
        )

    def _forget(self) -> None:
        super()._forget()
        self._used: frozenset[str] = frozenset()  # the sides that were read, and the columns of items
        self._merged: dict[str, str] = {}  # the digests of merged evaluators
        self._exclude: str | None = None  # whether batches exclude items: "none", "history", "unjudged", "given"
        self._type_of_ids: dict[str, bool] = {}  # of items, if they are kept
        self._longest = 0  # list, unless a shorter one reaches all cut-offs

    @options_of((calls.evaluate, f"user_ids groups user_weight {SIDE_OPTIONS} {COLUMN_OPTIONS} progress"))
    def update(self, recs: Any, truth: Any = None, **given: Any) -> None:
        """Add a batch of users. If a batch fails, the evaluator keeps its state.

        This also holds for an interrupt, except in the moment when the batch is added to the sums. After an interrupt
        in that moment, every call but `reset` raises an error.

        With ``user_ids`` (or dicts, or data frames) a user in a second batch is an error. Either all batches have ids
        or none, and the same holds for weights.

        Parameters
        ----------
        recs, truth : as in `evaluate`
        """
        check_progress(given["progress"])
        self._add(self._prepare(self._sides(recs, truth, given), given), given["progress"])

    @options_of(
        (calls.evaluate_model, "users user_ids item_ids candidates user_bias item_bias"),
        (calls.evaluate_model, f"groups user_weight {SIDE_OPTIONS} {COLUMN_OPTIONS} progress"),
    )
    def update_model(self, model: Any, truth: Any = None, **given: Any) -> None:
        """Add a batch of users whose lists are all items, as a model scores them; see `fastrec.evaluate_model`.

        A function as the model needs an evaluator with ``n_items``. The evaluator's ``negatives``, ``seed``, ``sample``
        and ``correct`` hold for all batches. A standard error that needs the lists a second time is missing, as with
        `update`.

        Parameters
        ----------
        model, truth : as in `fastrec.evaluate_model`

        Examples
        --------
        >>> evaluator = fastrec.Evaluator("mrr")
        >>> evaluator.update_model(
        ...     np.array([[0.1, 0.9, 0.5], [0.3, 0.2, 0.1]]), [[2], [0]]
        ... )
        >>> evaluator.result()["mrr"]
        0.75
        """
        from fastrec.evaluation.models import Working
        from fastrec.inputs.models import read_call

        check_progress(given["progress"])
        n_items = self._settings["n_items"] if callable(model) else None
        working = Working(None, whole=False, reviewed=False, progress=given["progress"])
        for batch in self._prepare_model(read_call(model, {**given, "n_items": n_items}), truth, given, working):
            self._add(batch, None)

    @options_of((calls.evaluate, f"user_ids groups user_weight {COLUMN_OPTIONS} progress"))
    def update_sides(self, sides: Mapping[str, Any], **given: Any) -> None:
        """Add a batch of users as {name: side}, for engines that move the rows of all sides by user.

        Unlike `update`, it takes ``history`` with each batch: the rows of these users.
        """
        check_progress(given["progress"])
        self._add(self._prepare(sides, given), given["progress"])

    def _sides(self, recs: Any, truth: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the sides of a batch by name."""
        if self._state is not None and self._state.n_users and self._history_is_by_position:
            raise history_of_one_batch("found a second batch")
        named = {name: given.get(name) for name in ("exclude", "reference", "logged", "subtopics")}
        return {"recs": recs, "truth": truth, "history": self._history, **named}

    @functools.cached_property
    def _history_is_by_position(self) -> bool:
        """Whether users are matched with the history by position, not by id."""
        if self._history is None or isinstance(self._history, Mapping):
            return False
        return not isinstance(open_foreign(self._history, "history"), Frame)

    def _differences(self, other: BaseEvaluator) -> Iterator[tuple[str, Any, Any]]:
        yield from super()._differences(other)
        mine, theirs = self._like, other._like  # noqa: SLF001 - of the same base
        yield "rank_gaps", mine.get("rank_gaps", "close"), theirs.get("rank_gaps", "close")
        yield "ordered_by", order_of(mine.get("like")), order_of(theirs.get("like"))

    def _prepare(self, sides: Mapping[str, Any], given: Mapping[str, Any]) -> Prepared:
        """Return a batch in the form that the engine takes."""
        refuse_setting("negatives", self._settings)
        if self._items is None:
            check_catalogue(self._settings)
        passed, excluded = with_shared(sides)
        self._check_passed(passed)
        about = about_users(given, order_of(self._like.get("like")))
        rules = self._rules_of_sides(only_judged=excluded == UNJUDGED)
        prepared = prepare(passed, about, rules, self._items, self._count_history(about))
        check_lengths(prepared.lists, self._settings, prepared.names)
        return prepared._replace(exclude=excluded)

    def _prepare_model(self, call: ModelCall, truth: Any, given: Mapping[str, Any], working: Working) -> ModelParts:
        """Return the users of a model in the form that the engine takes."""
        from fastrec.evaluation.models import ModelParts

        refuse_setting("sampled_from", self._settings)
        passed, excluded = with_shared(self._sides((), truth, given))
        if excluded == UNJUDGED:
            instead = Argument("candidates", (...,))
            raise InputError(Argument("exclude", (UNJUDGED,)), " is for lists: pass the items to rank as ", instead)
        self._check_passed(passed)
        del passed["recs"]
        about = about_users({**given, "user_ids": None})
        known = known_items(self._items, self._count_history(about))
        working = working._replace(exclude=excluded)
        return ModelParts(call, passed, about, self._rules_of_sides(), known, self._reads_of_model, working)

    def _rules_of_sides(self, *, only_judged: bool = False) -> Settings:
        """Return the options for preparing lists."""
        rules = self._settings
        return Settings(
            rules["ties"],
            rules["duplicates"],
            self._n_threads,
            min_gain=rules["min_gain"],
            checked=self._reads_sides,
            by_kernels=not self._reads_rows_unchecked,
            logged="propensity" if self._examination is None else "logged_rank",
            only_judged=only_judged,
            **tool_rules(self._like, self._calls, rules["ties"]),
        )

    def _check_passed(self, passed: Mapping[str, Any]) -> None:
        """Raise MetricError for a metric that reads a side which the call lacks, InputError for ranks it lacks."""
        if self._examination is not None and "logged" not in passed:
            raise InputError(Argument("examination"), " needs ", Argument("logged", (...,)), ", the ranks of clicks")
        known = {*passed, SAMPLED, *(() if self._items is None else ("items",))}
        self._check_sides(known | {name for name, others in DERIVED.items() if known.intersection(others)})

    @property
    def _reads_of_model(self) -> Reads:
        """What the metrics read of the lists of a model."""
        from fastrec.evaluation.models import Reads

        plan = self._plan(weighted=False)
        sample = sample_of(self._settings)
        if plan.is_estimated:  # from the ranks of all relevant items
            return Reads(None, 0, sample)
        cutoffs = {value.call.k for value in plan.values if plan.filled[value.call.text] or value.over is not None}
        depth = None if self._settings["ties"] == "error" else plan.depth  # ties of all relevant items are errors
        if not cutoffs:
            return Reads(depth, 0, sample)
        by_gain = self._settings["ties"] in ("best", "worst")  # the first items then depend on the truth
        listed = None if None in cutoffs or by_gain else max(k for k in cutoffs if k is not None)
        return Reads(depth, listed, sample)

    def _count_history(self, about: AboutUsers) -> HistoryCounts | None:
        """Return the counts of the items of the whole history, if a metric reads them."""
        asked = self._reads_popularity or self._settings.get("sample") == "popularity"
        if self._history is not None and self._counts_of_history is None and asked:
            self._counts_of_history = HistoryCounts.read(self._history, about.columns, self._n_threads)
        return self._counts_of_history

    def _digests(self, used: Iterable[str]) -> dict[str, str]:
        """Return digests of the sides that metrics read and that all parts of an evaluation share."""
        found = {}
        for name in used:
            if name == N_USERS:
                found[name] = str(self._n_users)
            elif name == EXAMINATION and self._examination is not None:
                found[name] = self._digest(name, digest_of_curve, self._examination)
            elif name == "counts" and self._counts_of_history is not None:
                found[HISTORY] = self._digest(HISTORY, digest_of_counts, self._counts_of_history)
            elif name.startswith(COLUMN) and self._items is not None:
                found[name] = self._digest(name, digest_of_column, self._items, name.removeprefix(COLUMN))
        return found

    def _digest(self, name: str, find: Callable[..., str], *side: Any) -> str:
        if name not in self._known_digests:
            self._known_digests[name] = find(*side)
        return self._known_digests[name]

    @property
    def _shared_sides(self) -> dict[str, str]:
        """The digests of the sides of this evaluator and of those merged into it."""
        return self._merged | self._digests(self._used)

    def _check_kind(self, other: Self) -> None:
        mine, theirs = self._state, other._state
        whole = mine is not None and theirs is not None and min(mine.n_users, theirs.n_users) > 0
        check_same(self._shared_sides, other._shared_sides, whole=whole)
        if whole and self._history is other._history and self._history_is_by_position:
            raise history_of_one_batch("found it in both evaluators")

    @property
    def _reads_popularity(self) -> bool:
        """Whether a metric reads the popularity of items in the whole history."""
        return self._plan(weighted=False).reads_side("popularity")

    @property
    def _needs_review(self) -> bool:
        """Whether the standard error of a metric needs a second pass over the lists."""
        return any(value.has_effects for value in self._plan(weighted=False).values)

    @property
    def _has_hits(self) -> bool:
        """Whether a list has had a relevant item."""
        return self._state is not None and self._state.data_counts[op.COUNT_HITS] > 0

    def _count_items(self, n_items: int | None) -> int | None:
        """Return `n_items`, by default the number of rows of `items`; raise if it is smaller."""
        if self._items is None:
            return n_items
        known = len(self._items.ids)
        if n_items is not None and n_items < known:
            raise InputError(
                Argument("n_items"), f" must be at least {known}, the number of rows of ", Argument("items")
            )
        return known if n_items is None else n_items

    @synchronized
    def _add(self, prepared: Prepared, progress: Callable[[int, int], Any] | None) -> BatchSides:
        """Add a batch that was prepared with the same settings, and return what was read of it."""
        rules = self._settings
        lists, users, names, data_counts, evidence = prepared[:5]
        self._check_batch(users)
        plan = self._plan(weighted=users.weights is not None)
        type_of_ids = self._check_ids(plan, names, lists)
        judged = lists.gains  # providers also see gains below 0, whatever other metrics count
        if lists.gains is not None and plan.counts_any_gain:
            lists = lists._replace(gains=np.maximum(lists.gains, 0.0))
        check_sizes(plan, lists)
        if lists.gains is None and (plan.tells_grades or (plan.needs_gains and lists.blocks is not None)):
            lists = lists._replace(gains=np.ones(len(lists.truth_items)))
        if plan.of_order and rules["ties"] == "expected":  # kernels reject only ties that can change hits
            own = prepared.recs is None
            user = find_tied_user(lists.blocks, lists.rec_indptr) if own else prepared.tied_user
            if user is not None:
                raise explain_fault(KernelError(Failure(op.TIED, user, 0)), plan, names, rules, lists)
        policies = Policies(rules["no_truth"], rules["no_recs"])
        sides = self._sides_of(prepared, lists if judged is None else lists._replace(gains=judged))
        try:
            outcome = evaluate_source(plan, policies, ListSource(*lists), sides, users, self._n_threads, progress)
        except KernelError as error:
            n_rows = None if self._items is None else len(self._items.ids)
            raise explain_fault(error, plan, names, rules, lists, n_rows) from None
        found = collect(plan.accumulators, sides, plan.min_gains, self._n_threads)
        if self._merged:
            check_same(self._merged, self._digests(sides.used), whole=False)
        truth = prepared.truth if self._per_user else None  # comparisons need both; without values it costs too much
        digest = truth and digest_of_truth(truth, names.strings, users.ids, self._n_threads)
        with self._changing():
            self._used |= sides.used
            self._type_of_ids = type_of_ids
            self._exclude = joined_exclude(self._exclude, prepared.exclude)
            counts = {"truth_rows": len(lists.truth_items), **data_counts, **sides.noted}
            self._keep(plan, outcome, users, counts).accumulate(found, digest)
            self._evidence = add_evidence(self._evidence, [*evidence, *map(remark, sides.hints)])
            self._longest = max(self._longest, length_up_to(largest_cutoff(self._calls), lists))
        return sides

    def _check_ids(self, plan: Plan, names: Names, lists: Lists) -> dict[str, bool]:
        """Return the type of the ids of items, if a metric keeps them over batches; raise for a second type."""
        if not plan.accumulators or not len(lists.rec_items):
            return self._type_of_ids
        return check_type_of_ids(self._type_of_ids, names.strings)

    def _sides_of(self, prepared: Prepared, lists: Lists) -> BatchSides:
        """Return the sides that providers and accumulators read."""
        others = prepared.sides
        sides = BatchSides(
            {name: side.read_only() if isinstance(side, FlatSide) else side for name, side in others.items()},
            recs=(prepared.recs or FlatSide(lists.rec_items, lists.rec_indptr, None)).read_only(),
            truth=FlatSide(lists.truth_items, lists.truth_indptr, lists.gains).read_only(),
            users=prepared.users,
            names=prepared.names,
            n_threads=self._n_threads,
            n_users=self._n_users,
            no_recs=self._settings["no_recs"],
            lowest=lists.lowest,
            **{"copies are misses": self._settings["duplicates"] == "miss"},
            catalogue=self._catalogue(prepared),
            examination=self._examination,
            sampled=SampledSide(lists, prepared.others, self._settings, prepared.names),
        )
        sides.used |= used_by(sample_of(self._settings), sides)
        if (table := sides.get("items")) is not None:
            sides["items"] = table._replace(columns=ReadColumns(table.columns, sides.used))
        return sides

    def _catalogue(self, prepared: Prepared) -> ItemTable | None:
        """Return the table of items if its rows are the catalogue of a metric that reads its size."""
        table = prepared.sides.get("items")
        is_whole = table is not None and len(table.ids) == self._settings["n_items"]
        return table if is_whole and self._plan(weighted=prepared.users.weights is not None).reads_size else None

    @synchronized
    def _review(self, prepared: Prepared, sides: BatchSides | None = None) -> None:
        """Look at a batch a second time, for the standard errors of metrics of the exposure of items.

        All batches must be reviewed after the last was added, in the same order.
        """
        state = self._state
        if state is None or not self._needs_review:
            return
        batch = sum(own.shape[1] for own in self._values) and state.n_reviewed
        from fastrec.evaluation.list_effects import find_effects_on_exposure  # most calls need none

        with self._changing():
            lists, order = prepared.lists, prepared.users.order
            sides = self._sides_of(prepared, lists) if sides is None else sides
            found = find_effects_on_exposure(state, sides, self._n_threads, per_user=self._per_user)
            for at, values in found.items():
                self._join_values(state.n_users, copied=False)
                self._values[0][at, batch : batch + len(values)] = values if order is None else values[order]

    def merge(self, other: Evaluator) -> Evaluator:
        """Add the users of another evaluator with the same metrics and settings, and return this evaluator.

        Columns of `items`, the counts of the items of `history` and `n_users` must be the same if a metric reads them.
        """
        self._merge(other)
        return self

    def _take_kind(self, other: Evaluator) -> None:
        self._merged |= other._shared_sides
        self._exclude = joined_exclude(self._exclude, other._exclude)
        self._type_of_ids = self._type_of_ids or other._type_of_ids
        self._longest = max(self._longest, other._longest)

    def _kind_of_batches(self) -> dict[str, bool]:
        return self._type_of_ids

    def _described(self) -> dict[str, Any]:
        return {"sides": self._shared_sides, "exclude": self._exclude, "longest": self._longest}

    def _restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        super()._restore(document, arrays)
        self._merged = document["sides"]
        self._exclude = document["exclude"]
        self._longest = int(document["longest"])
        self._type_of_ids = dict(document["batches"])

    def _more_settings(self) -> dict[str, Any]:
        return {} if self._exclude is None else {"exclude": self._exclude}

    def _count_users(self, state: State) -> dict[str, int]:
        return {
            "total": state.n_users,
            "evaluated": state.count(op.N_EVALUATED) + state.count(op.N_NAN),
            "no_truth": state.count(op.N_NO_TRUTH),
            "no_recs": state.count(op.N_NO_RECS),
        }

    def _describe_data(self, state: State) -> dict[str, Any]:
        data_counts = state.data_counts.tolist()
        relevant = data_counts[op.COUNT_RELEVANT]
        with_truth = state.n_users - state.count_of_call(op.N_NO_TRUTH)
        orders = ("rec_rows_by_rank", "rec_rows_by_score", "rec_rows_by_place")
        changes = ("excluded_items", "duplicates_in_recs", "duplicates_in_truth")
        names = ("rec_rows", *orders, "rec_lists_with_gaps", "truth_rows", "truth_rows_with_gains", *changes)
        counts = {name: self._data_counts.get(name, 0) for name in names}
        counts |= {name: self._data_counts[name] for name in NOTED if name in self._data_counts}
        if 0 < self._longest < largest_cutoff(self._calls) and state.n_users >= FEW_LISTS:
            counts["longest_list"] = self._longest
        return {
            **counts,
            **self._describe_accumulators(state),
            "truth_rows_not_relevant": counts["truth_rows"] - relevant,
            "truth_users_with_recs": data_counts[op.COUNT_LISTED] / with_truth if with_truth else float("nan"),
            "truth_items_in_recs": data_counts[op.COUNT_HITS] / relevant if relevant else float("nan"),
        }


# counts that only calls with such metrics or sides have
NOTED = (
    *("duplicates_in_reference", "rec_rows_unseen", "users_without_history", "rec_rows_without_features"),
    *("users_without_subtopics", "truth_rows_in_history", "truth_rows_in_exclude"),
    *("users_short_of_negatives", "truth_rows_not_scored", "exclude_rows_not_scored"),
)


def evaluate_model_at_once(evaluator: Evaluator, call: ModelCall, truth: Any, given: Mapping[str, Any]) -> None:
    """Add all users of a model, for both passes; arguments as in `evaluate_model`. A failure may leave some added."""
    from fastrec.evaluation.models import Working

    check_progress(given["progress"])
    reviewed = evaluator._needs_review  # noqa: SLF001 - of this module
    working = Working(read_size(given["memory"]), whole=True, reviewed=reviewed, progress=given["progress"])
    parts = evaluator._prepare_model(call, truth, given, working)  # noqa: SLF001
    kept = []
    for part in parts:
        sides = evaluator._add(part, None)  # noqa: SLF001
        if reviewed and not parts.made_again:
            kept.append((part, sides))
    for part, known in ((part, None) for part in parts) if parts.made_again else kept:
        evaluator._review(part, known)  # noqa: SLF001
    evaluator._move_users(parts.order)  # noqa: SLF001


def evaluate_at_once(evaluator: Evaluator, sides: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Add all users in one batch, read once for both passes; arguments as in `update_sides`."""
    check_progress(given.get("progress"))
    prepared = evaluator._prepare(sides, given)  # noqa: SLF001
    read = evaluator._add(prepared, given.get("progress"))  # noqa: SLF001
    evaluator._review(prepared, read)  # noqa: SLF001 - does nothing unless a metric needs it


def review(evaluator: Evaluator, sides: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Read a batch again, for standard errors; arguments as in `update_sides`."""
    evaluator._review(evaluator._prepare(sides, given))  # noqa: SLF001 - of this module


def take_counts(evaluator: Evaluator, count: Callable[[], HistoryCounts]) -> None:
    """Count the items of the whole history if a metric reads them, for an engine that passes the rows in batches."""
    if evaluator._reads_popularity:  # noqa: SLF001 - of this module
        evaluator._counts_of_history = count()  # noqa: SLF001


def reads_popularity(options: Mapping[str, Any]) -> bool:
    """Return whether a metric of an evaluator with these options reads the popularity of items in a history."""
    return Evaluator(**options)._reads_popularity  # noqa: SLF001 - of this module

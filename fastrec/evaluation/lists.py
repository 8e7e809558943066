"""The evaluation of lists against truth, in batches; of a model, whose lists are ranked, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fastrec.arguments import pick
from fastrec.checks import MinGain, check_flag, check_n_items, check_progress
from fastrec.evaluation.accumulators import collect
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
from fastrec.evaluation.faults import explain_fault
from fastrec.evaluation.list_rules import (
    check_examination,
    check_min_gain_of_lists,
    check_n_users,
    check_sizes,
    history_of_one_batch,
    item_policies,
    length_up_to,
    with_shared,
)
from fastrec.evaluation.protocol import (
    DERIVED,
    Evaluation,
    Rules,
    about_users,
    rules_of,
    wanted_metrics,
)
from fastrec.evaluation.sampled import (
    check_catalogue,
    check_lengths,
    read_sampling,
    refuse_setting,
    refuse_size,
    sample_of,
    used_by_draws,
)
from fastrec.evaluation.sources import ListSource
from fastrec.evaluation.state import State
from fastrec.evaluation.tools import tool_rules
from fastrec.exceptions import Argument, InputError, MetricError
from fastrec.inputs.arrays import FlatSide, find_tied_user
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.findings.evidence import FEW_LISTS, add_evidence, remark
from fastrec.inputs.items import ItemTable, read_items, read_once
from fastrec.inputs.lists import (
    AboutUsers,
    Lists,
    Names,
    Prepared,
    Settings,
    prepare,
)
from fastrec.inputs.sides import UNJUDGED, joined_exclude
from fastrec.kernels import codes as op
from fastrec.metrics.calls import of_lists_instead
from fastrec.metrics.declaration import LISTS
from fastrec.metrics.plan import Plan, Policies
from fastrec.metrics.recipes import order_of
from fastrec.metrics.sampled import SAMPLED
from fastrec.metrics.sums import Failure
from fastrec.policies import (
    Correct,
    Duplicates,
    NoFeatures,
    NoHistory,
    NoRecs,
    NoTruth,
    Sample,
    Ties,
    Unseen,
)
from fastrec.report.row_digests import digest_of_truth
from fastrec.runtime.limits import read_size

if TYPE_CHECKING:
    from fastrec.evaluation.models import ModelParts, Reads, Working
    from fastrec.inputs.models import ModelCall
    from fastrec.items.history import HistoryCounts
    from fastrec.items.sides import BatchSides

Array = np.ndarray[Any, Any]


def _read_rules(metrics: Any, options: Mapping[str, Any]) -> Rules:
    """Check metrics of lists and the options of a call."""
    min_gain = options["min_gain"]
    wanted = wanted_metrics("lists", options["like"], metrics, options["k"], min_gain)
    policies = wanted.fill(options)
    for call in wanted.calls:
        if call.metric.family is not LISTS:
            raise MetricError(f"{call.text} {call.metric.family.entry}{of_lists_instead(call.metric)}")
    settings: dict[str, Any] = {
        "min_gain": check_min_gain_of_lists(wanted.min_gain if min_gain is None else min_gain),
        "n_items": check_n_items(options["n_items"]),
        **policies,
        **item_policies(options),
        **read_sampling(options),
    }
    return Rules(
        tuple(wanted.calls),
        wanted.like,
        settings,
        check_flag("per_user", options["per_user"]),
        options["no_recs"] is not None,
        check_n_users(options["n_users"]),
    )


class ListEvaluation(Evaluation):
    """An evaluation of lists in batches; `Evaluator` is its public form."""

    evaluator = "Evaluator"

    def __init__(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        k: int | Iterable[int] | None = None,
        per_user: bool = False,
        min_gain: MinGain | None = None,
        n_items: int | None = None,
        items: Any = None,
        history: Any = None,
        n_users: int | None = None,
        unseen: Unseen | None = None,
        no_history: NoHistory | None = None,
        no_features: NoFeatures | None = None,
        examination: Sequence[float] | None = None,
        like: str | None = None,
        ties: Ties | None = None,
        no_truth: NoTruth | None = None,
        no_recs: NoRecs | None = None,
        duplicates: Duplicates | None = None,
        negatives: int | None = None,
        seed: int = 1,
        sample: Sample = "uniform",
        sampled_from: int | None = None,
        correct: Correct = "none",
        n_threads: int | None = None,
    ) -> None:
        """Make an evaluation without users; settings as those of `Evaluator`."""
        options = pick(ListEvaluation.__init__, locals())
        for name in ("items", "history", "examination", "n_threads"):  # no part of the rules
            del options[name]
        rules = rules_of(_read_rules, metrics, options)
        self._items = None if items is None else read_items(items)
        self._history: Any = None
        self.counts_of_history: HistoryCounts | None = None
        if history is not None:
            from fastrec.items.history import HistoryCounts

            if isinstance(history, HistoryCounts):  # engines pass the rows with each batch
                self.counts_of_history = history
            else:
                self._history = read_once(history, "history")
        self._n_users = rules.n_users
        self._examination = None if examination is None else check_examination(examination)
        self._known_digests: dict[str, str] = {}
        super().__init__(rules._replace(settings=self._with_size(rules.settings)), n_threads)
        if self._is_sampled:
            refuse_size(self.plan(weighted=False))

    def _forget(self) -> None:
        super()._forget()
        self._used: frozenset[str] = frozenset()  # the sides that were read, and the columns of items
        self._merged: dict[str, str] = {}  # the digests of merged evaluators
        self._exclude: str | None = None  # whether batches exclude items: "none", "history", "unjudged", "given"
        self._type_of_ids: dict[str, bool] = {}  # of items, if they are kept
        self._longest = 0  # list, unless a shorter one reaches all cut-offs

    def update(self, sides: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Add a batch of users as {name: side}; arguments as in `Evaluator.update_sides`, None for those left out."""
        check_progress(given.get("progress"))
        self.add(self.prepare(sides, given), given.get("progress"))

    def update_model(self, model: Any, truth: Any, given: Mapping[str, Any]) -> None:
        """Add a batch of users of a model; arguments as in `Evaluator.update_model`."""
        from fastrec.evaluation.models import Working
        from fastrec.inputs.models import read_call

        check_progress(given["progress"])
        n_items = self.settings["n_items"] if callable(model) else None
        working = Working(None, whole=False, reviewed=False, progress=given["progress"])
        for batch in self.prepare_model(read_call(model, {**given, "n_items": n_items}), truth, given, working):
            self.add(batch, None)

    def evaluate(self, sides: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Add all users in one batch, read once for both passes; arguments as in `update`."""
        if (progress := given.get("progress")) is not None:
            check_progress(progress)
        prepared = self.prepare(sides, given)
        read = self.add(prepared, progress)
        if self.needs_second_pass:
            self.second_pass(prepared, read)

    def evaluate_model(self, call: ModelCall, truth: Any, given: Mapping[str, Any]) -> None:
        """Add all users of a model, for both passes; arguments as in `fastrec.evaluate_model`.

        A failure may leave some users added.
        """
        from fastrec.evaluation.models import Working

        check_progress(given["progress"])
        reviewed = self.needs_second_pass
        working = Working(read_size(given["memory"]), whole=True, reviewed=reviewed, progress=given["progress"])
        parts = self.prepare_model(call, truth, given, working)
        kept = []
        for part in parts:
            sides = self.add(part, None)
            if reviewed and not parts.made_again:
                kept.append((part, sides))
        for part, known in ((part, None) for part in parts) if parts.made_again else kept:
            self.second_pass(part, known)
        self._move_users(parts.order)

    def sides(self, recs: Any, truth: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the sides of a batch by name, with the history of the constructor."""
        if self.state is not None and self.state.n_users and self._history_is_by_position:
            raise history_of_one_batch("found a second batch")
        named = {name: given.get(name) for name in ("exclude", "reference", "logged", "subtopics")}
        return {"recs": recs, "truth": truth, "history": self._history, **named}

    @property
    def _is_sampled(self) -> bool:
        """Whether lists hold a sample of the catalogue."""
        return "correct" in self.settings

    @functools.cached_property
    def _history_is_by_position(self) -> bool:
        """Whether users are matched with the history by position, not by id."""
        if self._history is None or isinstance(self._history, Mapping):
            return False
        return not isinstance(open_foreign(self._history, "history"), Frame)

    def _differences(self, other: Evaluation) -> Iterator[tuple[str, Any, Any]]:
        yield from super()._differences(other)
        mine, theirs = self.like, other.like
        yield "rank_gaps", mine.get("rank_gaps", "close"), theirs.get("rank_gaps", "close")
        yield "ordered_by", order_of(mine.get("like")), order_of(theirs.get("like"))

    def prepare(self, sides: Mapping[str, Any], given: Mapping[str, Any]) -> Prepared:
        """Return a batch in the form that the engine takes."""
        if self._is_sampled:
            refuse_setting("negatives", self.settings)
            if self._items is None:
                check_catalogue(self.settings)
        passed, excluded = with_shared(sides)
        self._check_passed(passed)
        about = about_users(given, order_of(self.like["like"]) if self.like else "rank")
        rules = self._rules_of_sides(only_judged=excluded == UNJUDGED)
        prepared = prepare(passed, about, rules, self._known_items(about))
        if self._is_sampled:
            check_lengths(prepared.lists, self.settings, prepared.names)
        return prepared._replace(exclude=excluded)

    def prepare_model(self, call: ModelCall, truth: Any, given: Mapping[str, Any], working: Working) -> ModelParts:
        """Return the users of a model in the form that the engine takes."""
        from fastrec.evaluation.models import ModelParts

        refuse_setting("sampled_from", self.settings)
        passed, excluded = with_shared(self.sides((), truth, given))
        if excluded == UNJUDGED:
            instead = Argument("candidates", (...,))
            raise InputError(Argument("exclude", (UNJUDGED,)), " is for lists: pass the items to rank as ", instead)
        self._check_passed(passed)
        del passed["recs"]
        about = about_users({**given, "user_ids": None})
        known = self._known_items(about)
        working = working._replace(exclude=excluded)
        return ModelParts(call, passed, about, self._rules_of_sides(), known, self._reads_of_model, working)

    def _rules_of_sides(self, *, only_judged: bool = False) -> Settings:
        """Return the options for preparing lists."""
        rules = self.settings
        return Settings(
            rules["ties"],
            rules["duplicates"],
            self.n_threads,
            min_gain=rules["min_gain"],
            checked=self.reads_sides,
            by_kernels=not self.plan(weighted=False).needs_checked_rows,
            logged="propensity" if self._examination is None else "logged_rank",
            only_judged=only_judged,
            **(tool_rules(self.like, self.calls, rules["ties"]) if self.like else {}),
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

        plan = self.plan(weighted=False)
        sample = sample_of(self.settings)
        if plan.is_estimated:  # from the ranks of all relevant items
            return Reads(None, 0, sample)
        cutoffs = {value.call.k for value in plan.values if plan.filled[value.call.text] or value.over is not None}
        depth = None if self.settings["ties"] == "error" else plan.depth  # ties of all relevant items are errors
        if not cutoffs:
            return Reads(depth, 0, sample)
        by_gain = self.settings["ties"] in ("best", "worst")  # the first items then depend on the truth
        listed = None if None in cutoffs or by_gain else max(k for k in cutoffs if k is not None)
        return Reads(depth, listed, sample)

    def _known_items(self, about: AboutUsers) -> dict[str, Any]:
        """Return the items, and the counts of those of the whole history if a metric reads them, by name."""
        is_missing = self._history is not None and self.counts_of_history is None
        if is_missing and (self.reads_popularity or self.settings.get("sample") == "popularity"):
            from fastrec.items.history import HistoryCounts

            self.counts_of_history = HistoryCounts.read(self._history, about.columns, self.n_threads)
        known = {"items": self._items, "counts": self.counts_of_history}
        return {name: value for name, value in known.items() if value is not None}

    def _digests(self, used: Iterable[str]) -> dict[str, str]:
        """Return digests of the sides that metrics read and that all parts of an evaluation share."""
        found = {}
        for name in used:
            if name == N_USERS:
                found[name] = str(self._n_users)
            elif name == EXAMINATION and self._examination is not None:
                found[name] = self._digest(name, digest_of_curve, self._examination)
            elif name == "counts" and self.counts_of_history is not None:
                found[HISTORY] = self._digest(HISTORY, digest_of_counts, self.counts_of_history)
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
        mine, theirs = self.state, other.state
        whole = mine is not None and theirs is not None and min(mine.n_users, theirs.n_users) > 0
        check_same(self._shared_sides, other._shared_sides, whole=whole)
        if whole and self._history is other._history and self._history_is_by_position:
            raise history_of_one_batch("found it in both evaluators")

    @property
    def reads_popularity(self) -> bool:
        """Whether a metric reads the popularity of items in the whole history."""
        return self.plan(weighted=False).reads_popularity

    @property
    def needs_second_pass(self) -> bool:
        """Whether the standard error of a metric needs a second pass over the lists."""
        return self.plan(weighted=False).has_effects

    @property
    def has_hits(self) -> bool:
        """Whether a list has had a relevant item."""
        return self.state is not None and self.state.data_counts[op.COUNT_HITS] > 0

    def _with_size(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return settings with `n_items`, by default the number of rows of `items`; raise if it is smaller."""
        n_items = settings["n_items"]
        if self._items is None:
            return settings
        known = len(self._items.ids)
        if n_items is not None and n_items < known:
            raise InputError(
                Argument("n_items"), f" must be at least {known}, the number of rows of ", Argument("items")
            )
        return {**settings, "n_items": known if n_items is None else n_items}

    def add(self, prepared: Prepared, progress: Callable[[int, int], Any] | None) -> BatchSides | None:
        """Add a batch that was prepared with the same settings, and return what was read of it besides by kernels."""
        rules = self.settings
        lists, users, names, data_counts, evidence = prepared[:5]
        self._check_batch(users)
        plan = self.plan(weighted=users.weights is not None)
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
        used, sides = used_by_draws(rules, prepared.sides) if "sample" in rules else set[str](), None
        if plan.provided or plan.accumulators:
            sides = self._sides_of(prepared, lists if judged is None else lists._replace(gains=judged), used)
        try:
            outcome = evaluate_source(plan, policies, ListSource(*lists), sides, users, self.n_threads, progress)
        except KernelError as error:
            n_rows = None if self._items is None else len(self._items.ids)
            raise explain_fault(error, plan, names, rules, lists, n_rows) from None
        found = collect(plan.accumulators, sides, plan.min_gains, self.n_threads) if sides is not None else []
        if self._merged:
            check_same(self._merged, self._digests(used), whole=False)
        noted, hints = ({}, []) if sides is None else (sides.noted, sides.hints)
        truth = prepared.truth if self.per_user else None  # comparisons need both; without values it costs too much
        digest = truth and digest_of_truth(truth, names.strings, users.ids, self.n_threads)
        with self.changing():
            self._used |= used
            self._type_of_ids = type_of_ids
            self._exclude = joined_exclude(self._exclude, prepared.exclude)
            counts = {"truth_rows": len(lists.truth_items), **data_counts, **noted}
            self._keep(plan, outcome, users, counts).accumulate(found, digest)
            self._evidence = add_evidence(self._evidence, [*evidence, *map(remark, hints)])
            self._longest = max(self._longest, length_up_to(plan.largest_cutoff, lists))
        return sides

    def _check_ids(self, plan: Plan, names: Names, lists: Lists) -> dict[str, bool]:
        """Return the type of the ids of items, if a metric keeps them over batches; raise for a second type."""
        if not plan.accumulators or not len(lists.rec_items):
            return self._type_of_ids
        return check_type_of_ids(self._type_of_ids, names.strings)

    def _sides_of(self, prepared: Prepared, lists: Lists, used: set[str]) -> BatchSides:
        """Return the sides that providers and accumulators read; they note in `used` what all batches share."""
        from fastrec.items.sides import BatchSides  # most calls read none

        others: dict[str, Any] = {
            name: side.read_only() if isinstance(side, FlatSide) else side for name, side in prepared.sides.items()
        }
        if (table := others.get("items")) is not None:
            others["items"] = table._replace(columns=ReadColumns(table.columns, used))
        return BatchSides(
            **others,
            recs=(prepared.recs or FlatSide(lists.rec_items, lists.rec_indptr, None)).read_only(),
            truth=FlatSide(lists.truth_items, lists.truth_indptr, lists.gains).read_only(),
            users=prepared.users,
            names=prepared.names,
            n_threads=self.n_threads,
            n_users=self._n_users,
            no_recs=self.settings["no_recs"],
            lowest=lists.lowest,
            lists=lists,
            copies_are_misses=self.settings["duplicates"] == "miss",
            catalogue=self._catalogue(prepared),
            examination=self._examination,
            n_drawn_from=prepared.others,
            sampled_from=self.settings.get("sampled_from"),
            used=used,
        )

    def _catalogue(self, prepared: Prepared) -> ItemTable | None:
        """Return the table of items if its rows are the catalogue of a metric that reads its size."""
        table = prepared.sides.get("items")
        is_whole = table is not None and len(table.ids) == self.settings["n_items"]
        return table if is_whole and self.plan(weighted=prepared.users.weights is not None).reads_size else None

    def second_pass(self, prepared: Prepared, sides: BatchSides | None = None) -> None:
        """Look at a batch a second time, for the standard errors of metrics of the exposure of items."""
        state = self.state
        if state is None or not self.needs_second_pass:
            return
        batch = sum(own.shape[1] for own in self._values) and state.n_reviewed
        from fastrec.evaluation.list_effects import find_effects_on_exposure  # most calls need none

        with self.changing():
            lists, order = prepared.lists, prepared.users.order
            sides = self._sides_of(prepared, lists, set()) if sides is None else sides
            found = find_effects_on_exposure(state, sides, self.n_threads, per_user=self.per_user)
            for at, values in found.items():
                self._join_values(state.n_users, copied=False)
                self._values[0][at, batch : batch + len(values)] = values if order is None else values[order]

    def check_all(self) -> None:
        """Find nothing: each batch was checked."""

    def _take_kind(self, other: Self) -> None:
        self._merged |= other._shared_sides
        self._exclude = joined_exclude(self._exclude, other._exclude)
        self._type_of_ids = self._type_of_ids or other._type_of_ids
        self._longest = max(self._longest, other._longest)

    def _kind_of_batches(self) -> dict[str, bool]:
        return self._type_of_ids

    def _described(self) -> dict[str, Any]:
        return {"sides": self._shared_sides, "exclude": self._exclude, "longest": self._longest}

    def restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take over the state in a document and arrays."""
        super().restore(document, arrays)
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
        counts = {name: self.data_counts.get(name, 0) for name in names}
        counts |= {name: self.data_counts[name] for name in NOTED if name in self.data_counts}
        if 0 < self._longest < state.plan.largest_cutoff and state.n_users >= FEW_LISTS:
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

"""The evaluation of scored, labelled rows, in batches."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from fastrec.arguments import pick
from fastrec.checks import check_flag, check_min_gain, check_n_items, check_progress
from fastrec.evaluation.accumulators import (
    USERS_BY_BIN,
    Accumulator,
    AccumulatorKey,
    GroupKey,
    collect,
)
from fastrec.evaluation.effects import GroupEffects, add_group_effects
from fastrec.evaluation.engine import KernelError, evaluate_source
from fastrec.evaluation.faults import explain_fault
from fastrec.evaluation.protocol import Evaluation, Rules, refuse_arrays, rules_of, wanted_metrics
from fastrec.evaluation.row_effects import effects_in_segments, effects_on_ratios, find_effects_on_order
from fastrec.evaluation.row_rules import (
    check_classes_for,
    check_no_users_needed,
    check_reads_scores,
    check_row_metrics,
    check_values,
    clips_of,
    has_grades,
    make_source,
)
from fastrec.evaluation.row_segments import CutRows, Segmented, SegmentError, evaluate_segments, over_segments
from fastrec.evaluation.state import GroupSums, State
from fastrec.evaluation.tools import warnings_of_tool
from fastrec.exceptions import GroupingName, InputError, InputTypeError, MetricError, shown
from fastrec.inputs.column_names import Columns, refuse_columns
from fastrec.inputs.columns import LABELS, SAMPLE_WEIGHT, SCORES
from fastrec.inputs.findings.evidence import add_evidence, remark
from fastrec.inputs.frames import read_user_labels
from fastrec.inputs.lists import Names
from fastrec.inputs.row_groups import check_apart
from fastrec.inputs.rows import ROWS_WITHOUT_USERS, Rows, RowSides, label_users, one_by_one, read_frame, read_rows
from fastrec.kernels import codes as op
from fastrec.metrics.calls import expand
from fastrec.metrics.declaration import LISTS, ROWS
from fastrec.metrics.plan import Accumulated, Policies
from fastrec.metrics.row_statistics import SCORE_COUNTS
from fastrec.policies import BY_ID, TIES, NoTruth, OneClass, Ties
from fastrec.report.estimates import Effects, Estimate
from fastrec.report.report import Report, note_clips
from fastrec.report.row_digests import digest_of_rows

if TYPE_CHECKING:
    from fastrec.scored.score_counts import ScoreCounts

Array = np.ndarray[Any, Any]
ACCUMULATED = (SCORE_COUNTS, 0)  # of the condition of the call, that of its `min_gain`
OF_USERS = (USERS_BY_BIN, 0)
TYPE_OF_SCORES = "the type of scores"  # of all batches
WEIGHED, IN_SEGMENTS = "rows of some weight", "rows in segments"  # counts of a batch


def usual_of_rows(k: Any, *, has_users: bool, weighted: bool) -> list[str]:
    """Return the default metrics of scored rows with their cut-offs.

    Without users, metrics that need users are left out. With weights of rows, metrics of lists are left out.
    """
    calls = expand(None, k, ROWS)
    possible = [call for call in calls if has_users or not call.needs_users]
    return [call.text for call in possible if not (weighted and call.metric.family is LISTS)]


def _read_rules(metrics: Any, options: Mapping[str, Any]) -> Rules:
    """Check metrics of rows and the options of a call."""
    wanted = wanted_metrics("rows", options["like"], metrics, options["k"], options["min_gain"])
    policies = wanted.fill(options)
    for call in wanted.calls:
        if call.min_gain == "any":
            raise MetricError(f"{call.text} is for lists: in scored rows it would make every row positive")
    settings: dict[str, Any] = {
        "min_gain": check_min_gain(options["min_gain"]),
        "n_items": check_n_items(options["n_items"]),
        **policies,
    }
    check_reads_scores(wanted.calls, settings["n_items"])
    return Rules(tuple(wanted.calls), wanted.like, settings, check_flag("per_user", options["per_user"]))


class RowEvaluation(Evaluation):
    """An evaluation of scored rows in batches; `ScoreEvaluator` is its public form."""

    evaluator = "ScoreEvaluator"

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
        """Make an evaluation without users; settings as those of `ScoreEvaluator`."""
        options = pick(RowEvaluation.__init__, locals())
        del options["n_threads"]
        super().__init__(rules_of(_read_rules, metrics, options), n_threads)
        self._keeping: Literal["no", "possible", "needed"] = "no"
        self._keeps_users = False
        if self.ordered_calls:  # load it now: a child that is forked during an import waits for ever for its lock
            import fastrec.scored.score_counts  # noqa: F401

    def _forget(self) -> None:
        super()._forget()
        self._grouped: bool | None = None
        self._row_weights: bool | None = None
        self._score_type: str | None = None  # None before the first row
        self._has_grades = False
        self._clips: dict[float, bool] = {}  # see `clips_of`
        self._of_order: list[Effects] = []  # of the batches of the second pass

    def update(self, labels: Any, scores: Any, indptr: Any, given: Mapping[str, Any]) -> None:
        """Add a batch of users; arguments as in `ScoreEvaluator.update`, None for those left out."""
        rows = self.prepare(labels, scores, indptr, given)
        self.add(one_by_one(rows) if self._part and not rows.grouped else rows, given.get("progress"))

    def evaluate(self, rows: Rows, progress: Callable[[int, int], Any] | None) -> None:
        """Add checked rows of all users, and run the second pass if a metric needs it."""
        cuts = self.add(rows, progress, at_once=True)
        self.check_all()
        self.second_pass(rows, cuts)

    def prepare(self, labels: Any, scores: Any, indptr: Any, given: Mapping[str, Any], *, alone: bool = False) -> Rows:
        """Check and read rows; arguments as in `update`. `alone`: rows without users are users of their own."""
        rows = self._read(labels, scores, indptr, given)
        if not alone or rows.grouped:
            return rows
        check_no_users_needed(self.plan(weighted=False))
        return one_by_one(rows)._replace(grouped=True)

    def _read(self, labels: Any, scores: Any, indptr: Any, given: Mapping[str, Any]) -> Rows:
        check_progress(given.get("progress"))
        by = given.get("by")
        of_users = read_user_labels(by, given.get("user"))
        by_columns = {"by": None if of_users is not None else by, "row_by": given.get("row_by")}
        columns = Columns(**{name: given.get(name) for name in ("user", "item", "label", "score")}, **by_columns)
        if scores is None:
            arrays = ("user_ids", "item_ids", "groups", "row_groups")
            refuse_arrays(indptr=indptr, **{name: given.get(name) for name in arrays})
            rows = read_frame(
                labels,
                columns,
                sample_weight=given.get("sample_weight"),
                user_weight=given.get("user_weight"),
                with_items=self.settings["ties"] in BY_ID,
                n_threads=self.n_threads,
            )
        else:
            if hasattr(labels, "columns"):
                raise InputError(
                    SCORES, " must be left out if ", LABELS, " is a data frame; pass metrics by name, metrics=..."
                )
            refuse_columns(columns, "labels is not a data frame passed without scores")
            names = ("user_ids", "item_ids", "sample_weight", "groups", "user_weight", "row_groups")
            arrays_of_rows = {name: given.get(name) for name in names}
            rows = read_rows(labels, scores, indptr, **arrays_of_rows, n_threads=self.n_threads)
        return rows if of_users is None else label_users(rows, of_users)

    def add(self, rows: Rows, progress: Callable[[int, int], Any] | None, *, at_once: bool = False) -> list[CutRows]:
        """Evaluate checked rows and add their sums. `at_once`: they are all rows, and a second pass may follow.

        Return the cuts of rows into segments that the second pass takes.
        """
        rules, users = self.settings, rows.users
        self._check_rows(rows)
        self._check_batch(users)
        self._check_segments(rows)
        self._check_sides({"rows"}, derived={"recs", "truth"})
        plan = self.plan(weighted=users.weights is not None)
        check_row_metrics(plan, rows, rules["ties"])
        source, sides = make_source(plan, rows, TIES.code(rules["ties"])), RowSides(rows)
        try:
            outcome = evaluate_source(
                plan,
                Policies(rules["no_truth"], "zero"),
                source,
                sides,
                users,
                self.n_threads,
                progress,
            )
        except KernelError as error:
            check_values(plan, rows)  # errors in the rows themselves come first
            raise explain_fault(error, plan, Names(users.ids, None), rules, None) from None
        kinds = [key for key in plan.accumulators if not (self._part and key[0] == SCORE_COUNTS)]
        if self._keeps_counts(rows):
            kept = [ACCUMULATED] + [OF_USERS] * (self._keeps_users and rows.grouped)
            kinds += [Accumulated(*key, ()) for key in kept if key not in [own[:2] for own in kinds]]
        is_reviewed = at_once and rows.grouped and self.needs_second_pass
        found = collect(kinds, sides, plan.min_gains, self.n_threads)
        segmented = self._evaluate_segments(rows, kinds, keep_cuts=is_reviewed)
        warnings: list[str] = []
        if self.like:
            numbers = {"scores": rows.scores, "gains": rows.labels, "lengths": np.diff(rows.indptr)}
            numbers_of = {name: functools.partial(np.asarray, own) for name, own in numbers.items()}
            warnings = warnings_of_tool(self.like, self.calls, rules["ties"], numbers_of)
        digest = digest_of_rows(rows, self.n_threads, in_order=not self._part) if self.per_user else None
        with self.changing():
            self._evidence = add_evidence(self._evidence, map(remark, warnings))
            state = self._keep(plan, outcome, users, _count_rows(rows))
            state.accumulate(found, digest)
            state.add_segments(segmented.sums)
            state.accumulate(segmented.accumulators)
            self._grouped, self._row_weights = rows.grouped, rows.weights is not None
            self._score_type = rows.scores.dtype.name if len(rows.scores) else self._score_type
            self._note_clips(clips_of(source))
        return segmented.cuts

    def _note_clips(self, clips: Mapping[float, bool]) -> None:
        """Add those of a batch, see `clips_of`."""
        for eps, clipped in clips.items():
            self._clips[eps] = clipped or self._clips.get(eps, False)

    def _check_segments(self, rows: Rows) -> None:
        """Raise InputError for segments that contradict the groups of this batch or of those before."""
        if not rows.segments and not rows.users.keys:
            return
        state = State(self.plan(weighted=False)) if self.state is None else self.state
        keys, names = [key for own in rows.segments for key in own.keys], [own.name for own in rows.segments]
        check_apart((grouping for grouping, _ in rows.users.keys), names)
        state.check_groups([*rows.users.keys, *keys], names)

    def _evaluate_segments(self, rows: Rows, kinds: list[Accumulated], *, keep_cuts: bool) -> Segmented:
        """Evaluate the segments of rows."""
        if not rows.segments:
            return Segmented([], [], [])
        plan = self.plan(weighted=rows.users.weights is not None, per_user=False)
        step = None if rows.grouped else 1 if self._part else ROWS_WITHOUT_USERS
        try:
            return evaluate_segments(plan, rows, self.settings, kinds, step, self.n_threads, keep_cuts=keep_cuts)
        except SegmentError as found:
            error = explain_fault(found.error, plan, Names(rows.users.ids, None), self.settings, None)
            grouping, label = found.key
            raise type(error)(error.text, f", among the rows with {shown(label)} in ", GroupingName(grouping)) from None

    def keep_score_counts(self, *, needed: bool, users: bool) -> Self:
        """Keep the counts of rows by score, whatever the metrics are, for `score_counts`; return the evaluation.

        needed : reject labels other than 0 and 1, if no `min_gain` says which are positive. Else there are no counts.
        users : keep sums over users by bin of scores too, for `users_by_bin`.
        """
        import fastrec.scored.score_counts  # noqa: F401 - as in `__init__`

        self._keeping, self._keeps_users = "needed" if needed else "possible", users
        return self

    def _keeps_counts(self, rows: Rows) -> bool:
        """Return whether to keep the counts of a batch."""
        if self._keeping == "no" or self.settings["min_gain"] is not None:
            return self._keeping != "no"
        if self._keeping == "needed":
            check_classes_for("curves", rows)
        self._has_grades |= bool(len(rows.labels)) and (has_grades(rows.labels) or bool(rows.labels.min() < 0))
        return not self._has_grades

    @property
    def score_counts(self) -> dict[GroupKey | None, ScoreCounts]:
        """The counts of rows by score, of all rows and of each group; empty if they are not kept."""
        return self._kept_for_pages(ACCUMULATED)

    @property
    def users_by_bin(self) -> dict[GroupKey | None, Array]:
        """The sums over users by bin of scores, likewise, as tables of `scored.clusters`."""
        return {group: own.table for group, own in self._kept_for_pages(OF_USERS).items()}

    def _kept_for_pages(self, kind: tuple[str, int]) -> dict[GroupKey | None, Any]:
        if self.state is None or self._has_grades or self._keeping == "no":
            return {}
        found = {key.group: own for key, own in self.state.accumulators.items() if key[:2] == kind}
        return {group: found[group] for group in (None, *self.state.groups) if group in found}

    @property
    def needs_second_pass(self) -> bool:
        """Whether the standard error of a metric over the order of all rows needs a second pass over the rows."""
        return self._grouped is not False and self.plan(weighted=False).has_influence

    def second_pass(self, rows: Rows, cuts: list[CutRows] | None = None) -> None:
        """Look at a batch a second time, for the effects of users on metrics over the order of all rows.

        `cuts` are what `add` returned.
        """
        state = self.state
        if state is None or not self.needs_second_pass:
            return
        self.check_all()
        with self.changing():
            self._of_order = self._of_order if state.n_reviewed else []
            if found := find_effects_on_order(state, rows, self.n_threads, per_user=self.per_user):
                self._of_order.append(found)
            add_group_effects(state, over_segments(rows, cuts or [], self._effects_in, self.n_threads))

    def _effects_in(self, rows: Rows, n_threads: int) -> list[GroupEffects]:
        """Return the effects of the rows of some segments."""
        assert self.state is not None
        return effects_in_segments(self.state, rows, n_threads)

    def _is_reviewed(self, state: State) -> bool:
        """Return whether the second pass has seen all users."""
        return self.needs_second_pass and state.n_reviewed == state.n_users > 0

    def _effects(self, state: State) -> Effects | None:
        found = effects_on_ratios(state, self._kept(state.n_users), self._join_labels(state.n_users))
        if self._of_order and self._is_reviewed(state):
            for metric, by in self._of_order[0].items():
                parts = {grouping: [batch[metric][grouping] for batch in self._of_order] for grouping in by}
                found[metric] = {grouping: np.concatenate(own) for grouping, own in parts.items()}
        return found

    def _more_settings(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.plan(weighted=False).has_influence:
            found["units"] = "users" if self.state is not None and self._is_reviewed(self.state) else "rows"
        if self.state is not None and self.state.row_groupings:
            found["row_groupings"] = list(self.state.row_groupings)
        if self._row_weights:
            found["row_weights"] = True
        return found

    @property
    def ordered_calls(self) -> list[str]:
        """The metrics that need the order of all rows."""
        return [
            value.call.text
            for value in self.plan(weighted=False).values
            if value.over is not None and value.over.accumulator == SCORE_COUNTS
        ]

    @property
    def ordered(self) -> dict[int, float]:
        """The conditions of metrics that need the order of all rows: {condition: smallest positive label}."""
        plan = self.plan(weighted=False)
        return {
            value.condition: plan.min_gains[value.condition]
            for value in plan.values
            if value.over is not None and value.over.accumulator == SCORE_COUNTS
        }

    def add_order(self, found: Iterable[tuple[AccumulatorKey, Accumulator]]) -> None:
        """Add the score counts of conditions and groups that the evaluator of a part leaves out."""
        assert self._part and self.state is not None
        with self.changing():
            self.state.accumulate(found)

    @property
    def has_only_builtin_metrics(self) -> bool:
        """Whether no metric is the caller's own."""
        return all(call.metric.builtin for call in self.calls)

    @property
    def needs_targets(self) -> bool:
        """Whether all metrics compare targets with predictions, so that none needs labels."""
        return self.plan(weighted=False).needs_targets

    def _check_rows(self, rows: Rows) -> None:
        """Raise an error if only some batches have users or weights, or if their scores are of two types."""
        if self.state is None or self._grouped is None:
            return
        kinds = self._score_type, rows.scores.dtype.name
        if len(rows.scores) and None not in kinds and kinds[0] != kinds[1]:
            mend = "batches that are evaluated together must have the same type of scores"
            raise InputTypeError(SCORES, f" hold {kinds[1]}, but {kinds[0]} in earlier batches: {mend}")
        if self._grouped != rows.grouped:
            raise InputError("users (indptr or user_ids) must be given in every update or in none")
        if self._row_weights != (rows.weights is not None):
            raise InputError("sample_weight must be given in every update or in none")

    def check_all(self) -> None:
        """Raise InputError if all rows of all batches have weight 0, as those of one batch may."""
        counts = self.data_counts
        if self._row_weights and counts["rows"] and not counts[WEIGHED]:
            raise InputError(SAMPLE_WEIGHT, " must not be 0 for all rows")

    def report(self, **how: Any) -> Report:
        """Return the report on all users so far, with the predictions that were clipped."""
        report = super().report(**how)
        if self._clips:
            note_clips(report, self._clips)
        return report

    def _check_kind(self, other: Self) -> None:
        """Find nothing: `_differences` tells of other kinds."""

    def _take_kind(self, other: Self) -> None:
        self._note_clips(other._clips)
        self._has_grades |= other._has_grades
        self._score_type = self._score_type or other._score_type
        if self._grouped is None:
            self._grouped, self._row_weights = other._grouped, other._row_weights

    def _kind_of_batches(self) -> dict[str, bool | str]:
        if self._grouped is None or self._row_weights is None:
            return {}
        of_scores = {} if self._score_type is None else {TYPE_OF_SCORES: self._score_type}
        return {"having users": self._grouped, "having sample_weight": self._row_weights, **of_scores}

    def _described(self) -> dict[str, Any]:
        return {"clips": list(self._clips.items()), "has_grades": self._has_grades}

    def restore(self, document: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Take over the state in a document and arrays."""
        super().restore(document, arrays)
        self._clips, self._has_grades = dict(document["clips"]), bool(document["has_grades"])
        if kind := document["batches"]:
            self._grouped, self._row_weights = kind["having users"], kind["having sample_weight"]
            self._score_type = kind.get(TYPE_OF_SCORES)

    def _estimate(self, users: GroupSums, value: Any) -> Estimate:
        found = users.estimate(value)
        if self._grouped is False:  # without users, sums over rows do not give their spread
            error, note = (math.nan, "") if value.over is None else (found.std_error, found.note)
            return found._replace(std_error=error, users=0, kind="student", note=note)
        return found

    def _count_users(self, state: State) -> dict[str, int]:
        data_counts = [0 if self._grouped is False else count for count in state.data_counts.tolist()]
        total = 0 if self._grouped is False else state.n_users
        if self.needs_targets:
            no_rows = data_counts[op.COUNT_NO_ROWS]
            return {"total": total, "evaluated": total - no_rows, "no_rows": no_rows}
        return {
            "total": total,
            "evaluated": state.count(op.N_EVALUATED) + state.count(op.N_NAN) if total else 0,
            "no_truth": data_counts[op.COUNT_NO_POSITIVES],
            "no_negatives": data_counts[op.COUNT_NO_NEGATIVES],
            "constant_scores": data_counts[op.COUNT_CONSTANT],
            "no_rows": data_counts[op.COUNT_NO_ROWS],
        }

    def _describe_data(self, state: State) -> dict[str, Any]:
        n = self.data_counts.get("rows", 0)
        found = {"rows": n}
        if not self.needs_targets:
            found["positive_rows"] = int(state.data_counts[op.COUNT_RELEVANT])
        for name, count in self.data_counts.items():
            kind, bracket, grouping = name.partition("(")
            if kind == IN_SEGMENTS and count < n:
                found[f"rows_in_no_segment{bracket}{grouping}"] = n - count
        return found


def _count_rows(rows: Rows) -> dict[str, int]:
    """Return the counts of a batch that its evaluator adds up."""
    counts = {"rows": len(rows.scores)}
    counts |= {f"{IN_SEGMENTS}({own.name})": own.n_labelled for own in rows.segments}
    return counts if rows.weights is None else {**counts, WEIGHED: int(np.count_nonzero(rows.weights))}

"""Checks of rows against metrics, rows in the form that the engine takes, and score counts of all rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.evaluation.sources import Scores
from fastrec.exceptions import Argument, InputError, MetricError, RowNumber
from fastrec.inputs.columns import LABELS, SCORES, refuse_nan
from fastrec.inputs.grouping import group_rows
from fastrec.inputs.rows import INT8, Rows, RowSides
from fastrec.kernels import codes as op
from fastrec.metrics.calls import DEFAULT_K, make_call
from fastrec.metrics.declaration import DECLARED, LISTS, Call
from fastrec.metrics.plan import Asked, Plan, make_plan
from fastrec.policies import BY_ID

if TYPE_CHECKING:
    from fastrec.evaluation.accumulators import Collected, GroupKey, Keys
    from fastrec.scored.score_counts import ScoreCounts

Array = np.ndarray[Any, Any]
SOME_ITEMS = 1000  # stand for a catalogue whose size the call does not give


def check_row_metrics(plan: Plan, rows: Rows, ties: str) -> None:
    """Raise an error for rows that the metrics cannot take: labels, weights, missing users or items."""
    lists = [call for call in plan.calls if call.metric.family is LISTS]
    if not rows.grouped:
        _check_without_users(plan)
    if lists and rows.weights is not None:
        names = ", ".join(call.text for call in lists)
        raise MetricError(f"sample_weight weighs rows, but metrics of lists have no weights of rows: leave out {names}")
    if lists and ties in BY_ID and rows.items is None:
        items, item = Argument("item_ids", (...,)), Argument("item", (...,))
        others = ", or in a frame or a file the name of their column as "
        raise InputError(Argument("ties", (ties,)), " needs items: pass ", items, others, item)
    if lists and len(rows.labels):
        plan.check_grades(rows.labels, LABELS)
    if rows.labels.dtype != np.int8:  # kernels check labels below 0 and above 1, not between
        _check_classes(plan, rows)


def check_reads_scores(calls: Sequence[Call], n_items: int | None) -> None:
    """Raise MetricError for a metric of lists that no scores of a log change; plain counts may be so."""
    uncut = tuple(call for call in calls if call.takes_cutoff and call.metric.direction.kind != "none")
    plan = make_plan(uncut, Asked(n_items=n_items or SOME_ITEMS))
    for call in plan.of_all:
        ways = f"{replace(call, k=DEFAULT_K).text} counts the first {DEFAULT_K} rows of each user"
        if (twin := DECLARED["rows"].get(call.metric.name)) is not None:
            same = {name: value for name, value in call.options if twin.options.get(name) == call.metric.options[name]}
            ways += f", {make_call(twin, {**same, 'threshold': 0.5}, None).text} the rows with a score of at least 0.5"
        raise MetricError(f"{call.text} without a cut-off counts all rows of a user, whatever their scores: {ways}")


def check_values(plan: Plan, rows: Rows) -> None:
    """Raise the error for a label or a score that kernels reject; see `_limits`."""
    refuse_nan(rows.as_passed(rows.scores), SCORES)
    _check_classes(plan, rows)
    for call in plan.calls:
        if "probabilities" in call.metric.needs:
            _check_probabilities(call, rows)
    if "targets" in plan.needs:
        _check_predictions(rows)


def check_no_users_needed(plan: Plan) -> None:
    """Raise InputError for a metric that needs users."""
    for value in plan.values:
        if value.call.needs_users:
            raise InputError(f"{value.call.text} needs users: pass indptr, or user_ids with one id per row")


def _check_without_users(plan: Plan) -> None:
    check_no_users_needed(plan)
    if plan.per_user:
        raise InputError("per_user=True needs users: pass indptr, or user_ids with one id per row")


def _check_classes(plan: Plan, rows: Rows) -> None:
    if plan.needs_classes is not None:
        check_classes_for(plan.needs_classes.text, rows)


def check_classes_for(what: str, rows: Rows) -> None:
    """Raise an error unless labels are 0 or 1."""
    labels = rows.labels
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        at = int(wrong.argmax())
        raise InputError(
            LABELS,
            f" must be 0 or 1 for {what}, found {labels[at]}",
            RowNumber.at(rows.where(at)),
            "; ",
            Argument("min_gain", (...,)),
            " says from which label on a row is positive",
        )


def _check_probabilities(call: Call, rows: Rows) -> None:
    scores = rows.scores
    if len(scores) and not (scores.min() >= 0 and scores.max() <= 1):
        at = int(((scores < 0) | (scores > 1)).argmax())
        row, hint = (
            RowNumber.at(rows.where(at)),
            "; choose metrics that take any score, such as auc or average_precision",
        )
        raise InputError(SCORES, f" must be probabilities for {call.text}, found {scores[at]}", row, hint)


def _check_predictions(rows: Rows) -> None:
    scores = rows.scores
    if len(scores) and not (np.isfinite(scores.min()) and np.isfinite(scores.max())):
        at = int((~np.isfinite(scores)).argmax())
        raise InputError(f"predictions must be finite, found {scores[at]}", RowNumber.at(rows.where(at)))


def clips_of(source: Scores) -> dict[float, bool]:
    """Return {eps: whether a score is outside [eps, 1 - eps]} if a metric clips scores to it; eps is of their dtype."""
    clips = source.parameters[source.statistics[:, 0] == op.LOG_LOSS]
    if not len(clips) or not len(source.scores):
        return {}
    eps = float(clips[0])
    return {eps: bool(source.scores.min() < eps or source.scores.max() > 1 - eps)}


def make_source(plan: Plan, rows: Rows, ties: int) -> Scores:
    """Return the rows in the form that kernels take, with the statistics to compute."""
    labels = _wide_enough(max(plan.min_gains), rows.labels)
    rank = plan.writers[True].reads_truth or bool(np.isin(plan.statistics(graded=True)[0][:, 0], _FROM_POSITIVES).any())
    # one pass over the positives serves labels of 0 and 1; with other gains, each condition has its own positives
    graded = rank and bool(len(labels)) and (plan.needs_gains or (plan.needs_classes is None and has_grades(labels)))
    statistics, parameters = plan.statistics(graded=graded)
    parameters[statistics[:, 0] == op.LOG_LOSS] = np.finfo(rows.scores.dtype).eps
    label_limits, score_limits = _limits(plan, labels.dtype, rows.scores.dtype)
    bars = [_bar(least, labels.dtype) for least in plan.min_gains]
    ids = np.zeros(0, np.int64)
    if ties in (op.ID_ASC, op.ID_DESC):
        if rows.items is None:  # no metric of lists is asked for, and kernels must not look for ids
            ties = op.INPUT
        else:
            ids = rows.items
    return Scores(
        labels=labels,
        scores=rows.scores,
        indptr=rows.indptr,
        weights=rows.weights,
        ids=ids,
        graded=graded,
        statistics=statistics,
        parameters=parameters,
        label_limits=label_limits,
        score_limits=score_limits,
        bars=np.array([*bars, min(bars) if rank else bars[0]], labels.dtype),
        ties=ties,
        rank=rank,
    )


_FROM_POSITIVES = (op.STEP, op.TRAPEZOID, op.DAVIS_GOADRICH, op.KOLMOGOROV)


def _wide_enough(largest: float, labels: Array) -> Array:
    """Return the labels in a type that can represent a `min_gain`."""
    wide = labels.dtype == np.int8 and largest > np.iinfo(np.int8).max
    return labels.astype(np.float64) if wide else labels


def has_grades(labels: Array) -> bool:
    """Return whether any positive label is not 1."""
    return bool(labels.max() > 1 or (labels.dtype.kind == "f" and ((labels > 0) & (labels != 1)).any()))


def _limits(plan: Plan, labels: Any, scores: Any) -> tuple[Array, Array]:
    """Return the ranges of labels and of scores that the metrics take."""
    ends: tuple[float, float] = (INT8.min, INT8.max) if labels == np.int8 else (-np.inf, np.inf)
    if plan.needs_classes is not None:
        ends = (0, 1)
    largest = float(np.finfo(scores).max) if "targets" in plan.needs else np.inf
    bounds = (0.0, 1.0) if "probabilities" in plan.needs else (-largest, largest)
    return np.array(ends, labels), np.array(bounds, scores)


def _bar(least: float, dtype: Any) -> float:
    """Return the smallest label of this dtype that is above 0 and at least `least`."""
    if dtype == np.int8:
        return max(1, int(np.ceil(least)))
    smallest = float(np.finfo(dtype).smallest_subnormal)
    bar = dtype.type(max(least, smallest))
    return float(bar if float(bar) >= least else np.nextafter(bar, dtype.type(np.inf)))


def collect_score_counts(sides: RowSides, least: float, _: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield the score counts of all rows of a batch, and of the rows of each group."""
    rows = sides.rows
    from fastrec.scored.score_counts import ScoreCounts

    positive, weights = positive_rows(rows, least)
    yield None, ScoreCounts.of_rows(positive, rows.scores, weights, n_threads=n_threads)
    yield from score_counts_by_group(rows, least, n_threads)


def collect_graded_rows(sides: RowSides, _: float, __: Keys, n_threads: int) -> Iterator[Collected]:
    """Yield all rows of a batch with their labels, and the rows of each group."""
    from fastrec.scored.pairs import GradedRows

    rows, weights, lengths = sides.rows, weights_of(sides.rows), np.diff(sides.rows.indptr)
    columns = rows.labels, rows.scores, weights
    yield None, GradedRows.of(*columns)
    for codes in rows.users.groups:
        by_group = group_rows(np.repeat(codes, lengths), n_threads)
        labels, scores, own = (None if column is None else by_group.take(column) for column in columns)
        assert labels is not None and scores is not None
        edges = itertools.pairwise(by_group.indptr.tolist())
        for code, (start, stop) in zip(by_group.ids.tolist(), edges, strict=True):
            at = slice(start, stop)
            yield rows.users.keys[code - 1], GradedRows.of(labels[at], scores[at], None if own is None else own[at])
        for code in np.setdiff1d(codes, by_group.ids).tolist():  # groups whose users have no rows
            yield rows.users.keys[code - 1], GradedRows(weighted=weights is not None)


def score_counts_by_group(rows: Rows, least: float, n_threads: int) -> Iterator[tuple[GroupKey, ScoreCounts]]:
    """Yield the score counts of the rows of each group of users."""
    for codes in rows.users.groups if len(rows.indptr) > 1 else ():
        first, last = int(codes.min()), int(codes.max())
        of_rows = np.repeat(codes - np.int32(first), np.diff(rows.indptr))
        found = score_counts_by_code(rows, of_rows, last - first + 1, least, n_threads)
        yield from zip(rows.users.keys[first - 1 : last], found, strict=True)


def score_counts_by_code(rows: Rows, codes: Array, n_codes: int, least: float, n_threads: int) -> list[ScoreCounts]:
    """Return the score counts of the rows of each code from 0 on; rows of code -1 are left out."""
    from fastrec.scored.keys import MAX_CODES, sort_by_code  # loaded only here, as lists do not need it
    from fastrec.scored.score_counts import ScoreCounts

    (positive, weights), scores = positive_rows(rows, least), rows.scores
    if weights is None and n_codes <= MAX_CODES:
        return list(map(ScoreCounts.of_keys, sort_by_code(codes, positive, scores, n_codes, n_threads)))
    by_code = group_rows(codes, n_threads)
    positive, scores = by_code.take(positive), by_code.take(scores)
    if weights is None:
        codes = np.repeat(by_code.ids, np.diff(by_code.indptr))
        return list(map(ScoreCounts.of_keys, sort_by_code(codes, positive, scores, n_codes, n_threads)))
    weights = by_code.take(weights)
    found = [ScoreCounts(weighted=True) for _ in range(n_codes)]
    edges = by_code.indptr.tolist()
    for code, start, end in zip(by_code.ids.tolist(), edges, edges[1:], strict=False):
        if code >= 0:
            found[code].add(positive[start:end], scores[start:end], weights[start:end])
    return found


def positive_rows(rows: Rows, least: float) -> tuple[Array, Array | None]:
    """Return which rows have at least a label, and the weights of rows, which include those of their users.

    The first may be a view of the labels.
    """
    labels, weights = _wide_enough(least, rows.labels), weights_of(rows)
    bar = _bar(least, labels.dtype)
    if bar == 1 and labels.dtype == np.int8 and labels.min(initial=0) >= 0 and labels.max(initial=0) <= 1:
        return labels.view(np.bool_), weights  # comparing many rows takes new memory, which the system gives slowly
    return labels >= np.asarray(bar, labels.dtype), weights


def weights_of(rows: Rows) -> Array | None:
    """Return the weights of rows, which include those of their users."""
    weights = rows.weights
    if rows.users.weights is not None:
        of_rows = np.repeat(rows.users.weights, np.diff(rows.indptr))
        weights = of_rows if weights is None else weights * of_rows
    return weights

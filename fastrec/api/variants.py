"""Variants of the calls: curves, segments of items, first items, compared models, and single numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastrec.api.calls import evaluate, evaluate_model, evaluate_scores
from fastrec.arguments import options_of, pick
from fastrec.checks import check_n_items, check_progress, listed_in_order, whole_number
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.protocol import about_users
from fastrec.exceptions import InputError, MetricError, renaming, shown
from fastrec.inputs.items import read_items
from fastrec.policies import OneClass
from fastrec.report.doubts import NO_TRUTH
from fastrec.report.report import Report
from fastrec.runtime.limits import read_size, resolve_threads
from fastrec.segments import check_segments, reads_judgements, split_truth

if TYPE_CHECKING:
    from fastrec.comparison.comparison import Comparison, Correction, Test
    from fastrec.scored.curves import InterpolatedPrCurve

__all__ = [
    "compare_scores",
    "evaluate_by_items",
    "gauc",
    "interpolated_pr_curve",
    "mae",
    "mse",
    "rmse",
    "top_items",
]

Array = np.ndarray[Any, Any]


RATINGS = {"labels": "targets", "label": "target", "scores": "predictions", "score": "prediction"}  # of mae, mse, rmse


@options_of(
    (evaluate, "groups user_weight user_ids min_gain exclude"),
    (evaluate, "user item rank score gain propensity logged_rank subtopic item_sep by"),
    (evaluate, "ties no_truth no_recs duplicates n_threads progress"),
)
def interpolated_pr_curve(
    recs: Any,
    truth: Any,
    levels: int = 11,
    *,
    rounding: Literal["up", "nearest"] = "up",
    **options: Any,
) -> InterpolatedPrCurve:
    """Return the mean precision of lists at levels of recall: the metric `iprec_at_recall` at each level.

    `plot_pr` draws the curve, and `Report.to_html(curves=[...])` shows it.

    Parameters
    ----------
    recs, truth : as in `evaluate`
    levels : number of levels from 0 to 1, at equal distances, from 2 to 1001; trec_eval has 11, COCO 101
    rounding : how the number of hits that reach a level is rounded, as in the metric

    Returns
    -------
    InterpolatedPrCurve
        ``precision``, ``recall``, ``low``, ``high``, ``users``, ``groups`` and ``.area``, the mean of the precisions.

    Raises
    ------
    InputError, InputTypeError
        As `evaluate`.

    Examples
    --------
    >>> precision, recall = fastrec.interpolated_pr_curve([[7, 1, 2]], [[1, 2]], 3)
    >>> precision.round(4).tolist(), recall.tolist()
    ([0.6667, 0.6667, 0.6667], [0.0, 0.5, 1.0])
    """
    from fastrec.report.list_curves import curve_of_report, metrics_of_levels

    metrics = metrics_of_levels(levels, rounding)
    return curve_of_report(evaluate(recs, truth, list(metrics), **options), metrics)


@options_of(
    (evaluate, "k per_user groups user_weight user_ids min_gain n_items exclude items history"),
    (evaluate, "n_users unseen no_history no_features examination reference logged subtopics"),
    (evaluate, "user item rank score gain propensity logged_rank subtopic item_sep by"),
    (evaluate, "like ties no_truth no_recs duplicates n_threads"),
)
def evaluate_by_items(
    recs: Any,
    truth: Any,
    segments: Any,
    metrics: str | Iterable[str] | None = None,
    **options: Any,
) -> dict[str, Report]:
    """Evaluate lists once per segment of items; only the items of that segment count as relevant.

    Lists stay as they are: a list full of popular items has no hits in the tail. Items of the truth in other segments
    count as judged, not relevant; ``Report.data`` counts the rows of the segment. ``no_truth`` applies in each segment
    to users without a relevant item there. ``ties`` must not be ``"best"`` or ``"worst"``. A metric that reads no truth
    is an error: it has one value for all segments.

    Parameters
    ----------
    recs, truth, metrics : as in `evaluate`
    segments : {item: label}, as from `segment_items`; other items count in no segment

    Returns
    -------
    {label: Report}
        In the order in which labels first occur in ``segments``.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`.

    Examples
    --------
    >>> segments = {1: "head", 2: "tail", 4: "tail"}
    >>> reports = fastrec.evaluate_by_items(
    ...     [[1, 2], [1, 3]], [[1, 2], [4]], segments, "recall@2"
    ... )
    >>> {label: report["recall@2"] for label, report in reports.items()}
    {'head': 1.0, 'tail': 0.5}
    """
    check_segments(segments)
    if isinstance(metrics, Iterable) and not isinstance(metrics, str):
        metrics = listed_in_order(metrics, "metrics")
    if options["items"] is not None:
        options["items"] = read_items(options["items"], options["item"])
    if isinstance(options["k"], Iterator):
        options["k"] = list(options["k"])
    settings = pick(ListEvaluation.__init__, options)
    evaluations = {label: ListEvaluation(metrics, **settings) for label in dict.fromkeys(segments.values())}
    first = next(iter(evaluations.values()))
    if (ties := first.settings["ties"]) in ("best", "worst"):
        raise InputError(f"ties={ties!r} orders items by gain, and gains differ from segment to segment")
    if unread := first.plan(weighted=False).without_truth():
        raise MetricError(
            f"{unread[0]} reads no truth, so it has one value for all segments: fastrec.evaluate gives it"
        )
    judged = reads_judgements(first.plan(weighted=False), first.settings["no_truth"])
    prepared = first.prepare(first.sides(recs, truth, options), options)
    for evaluation, part in zip(evaluations.values(), split_truth(prepared, segments, judged=judged), strict=True):
        evaluation.add(part, None)
        evaluation.second_pass(part)
    # a segment may well have no relevant item: warn only if the whole truth has no rows
    rules: Any = {"silent": (NO_TRUTH,) if len(prepared.lists.truth_items) else ()}
    rules["ids_match"] = any(evaluation.has_hits for evaluation in evaluations.values())
    return {label: evaluation.report(**rules) for label, evaluation in evaluations.items()}


@options_of(
    (evaluate_model, "users user_ids item_ids candidates user_bias item_bias n_items"),
    "exclude",
    (evaluate_model, "user item memory n_threads progress"),
)
def top_items(model: Any, k: int, *, exclude: Any = None, **options: Any) -> tuple[Array, Array, Array]:
    """Return the k items with the highest scores of each user of a model, exactly.

    Items with equal scores come in the order of their columns. Users have fewer than k items if fewer are left.

    Parameters
    ----------
    model : as in `evaluate_model`
    k : the number of items, at least 1
    exclude : items that a user has seen, in the forms of ``truth`` in `evaluate`; they are not listed

    Returns
    -------
    items : array, int64 or strings
        The items of all users, end to end.
    indptr : int64 (n_users + 1,)
        The items of row i, or of row ``users[i]``, are ``items[indptr[i]:indptr[i + 1]]``.
    scores : float32 or float64, as long as the items

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong.

    Examples
    --------
    >>> scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.3, 0.1]])
    >>> items, indptr, found = fastrec.top_items(scores, 2, exclude=[[1], []])
    >>> items.tolist(), indptr.tolist(), found.tolist()
    ([2, 0, 0, 1], [0, 2, 4], [0.5, 0.1, 0.3, 0.3])
    """
    from fastrec.evaluation.models import find_top
    from fastrec.inputs.models import read_call

    number = whole_number(k)
    if number is None or number < 1:
        raise InputError(f"k must be an integer of at least 1, found {shown(k)}")
    check_progress(options["progress"])
    options["n_items"] = check_n_items(options["n_items"])
    sides = {} if exclude is None else {"exclude": exclude}
    about = about_users({**options, "user_ids": None})
    memory, n_threads = read_size(options["memory"]), resolve_threads(options["n_threads"])
    return find_top(read_call(model, options), number, sides, about, n_threads, options["progress"], memory)


@options_of(
    (evaluate_scores, "k user_ids item_ids sample_weight groups user_weight user item label score by"),
    (evaluate_scores, "min_gain n_items like ties no_truth one_class n_threads"),
)
def compare_scores(
    labels: Any,
    scores: Any,
    metrics: str | Iterable[str] | None = None,
    *,
    indptr: Any = None,
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    level: float = 0.95,
    n_rounds: int = 10_000,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
    **options: Any,
) -> Comparison:
    """Compare models that scored the same labelled rows: which is better on this log, and how surely.

    All models are evaluated on the same rows and compared by `compare`, user by user, overall and by group. Rows of one
    user are alike, so users are the units of all intervals and tests (clustered: Obuchowski 1997 for auc, the delta
    method for ratios of sums). Tests that take rows as independent report differences that are not there. Without
    users, every row is a user of its own. The error of auc is then that of DeLong et al. (1988), but for the divisor:
    n - 1 of all rows, in place of those of each class.

    Parameters
    ----------
    labels : as in `evaluate_scores`; or a data frame, whose columns `scores` then names
    scores : {name: array (n,)}, the scores of each model for the rows; or {name: name of a column}
    metrics, indptr : as in `evaluate_scores`
    baseline, test, correction, level, n_rounds, seed : as in `compare`. With metrics of all rows together, ``test``
        works with the effects of users' rows, so that it is the same test to first order; ``wilcoxon`` leaves them out.
        One user has no interval and no p-value (NaN). Users of ``user_weight`` 0 count as users, with no effect.
    progress : called as progress(rows of the comparison done, rows)

    Returns
    -------
    Comparison
        A row per metric and pair of models. `Comparison.left_out` names the metrics without a known error.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `evaluate_scores` and `compare`.

    Examples
    --------
    >>> labels, users = [1, 0] * 6, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    >>> new = [0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.5, 0.6, 0.9, 0.1, 0.8, 0.2]
    >>> old = [0.6, 0.5, 0.7, 0.8, 0.4, 0.9, 0.1, 0.6, 0.7, 0.3, 0.5, 0.4]
    >>> found = fastrec.compare_scores(
    ...     labels, {"new": new, "old": old}, "auc", user_ids=users, baseline="old"
    ... )
    >>> row = found.rows[0]
    >>> row.mean, row.baseline_mean, row.difference, row.users
    (0.9722222222222222, 0.4305555555555556, 0.5416666666666666, 6)
    """
    from fastrec.comparison.compare import compare  # most calls need none
    from fastrec.evaluation.row_reports import check_models, reports_of_models

    labels = check_models(labels, scores)
    if metrics is not None and not isinstance(metrics, str):
        metrics = listed_in_order(metrics, "metrics")
    reports = reports_of_models(labels, scores, indptr, metrics, options)
    return compare(
        reports, baseline, None, test, correction, level, n_rounds, seed, options["n_threads"], progress=progress
    )


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
    """Return the grouped AUC as a float: the weighted mean of the AUCs of users; NaN if no user counts.

    `evaluate_scores` gives the same value with its standard error, the AUC of each user and counts of users left out.

    Parameters
    ----------
    labels, scores, indptr, one_class, sample_weight, n_threads : as in `evaluate_scores`
    weight, constant : as in the metric `gauc`

    Examples
    --------
    >>> round(
    ...     fastrec.gauc([1, 0, 1, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5], [0, 2, 5]), 12
    ... )
    1.0
    """
    metric = f"gauc(weight={weight}, constant={constant})"
    report = evaluate_scores(
        labels, scores, indptr, metric, sample_weight=sample_weight, one_class=one_class, n_threads=n_threads
    )
    return report[metric]


def _over_rows(metric: str, targets: Any, predictions: Any, **options: Any) -> float:
    """Return a metric of targets and predictions; errors use these names."""
    with renaming(lambda name: RATINGS.get(str(name), name)):
        return evaluate_scores(targets, predictions, metrics=metric, **options)[metric]


def mae(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the mean absolute error over all rows: sum of w |prediction - target| / sum of w.

    Targets and predictions are finite numbers (n,), weights are as in `evaluate_scores`. Without rows it is NaN.

    >>> fastrec.mae([4.0, 2.0], [3.5, 3.0])
    0.75
    """
    return _over_rows("mae", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def mse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the mean squared error over all rows: sum of w (prediction - target)^2 / sum of w; see `mae`.

    >>> fastrec.mse([4.0, 2.0], [3.5, 3.0])
    0.625
    """
    return _over_rows("mse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def rmse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the root mean squared error over all rows, the square root of `mse`; see `mae`.

    Squares are doubles: that of an error below 1e-162 is 0, and an error above 1e154 raises InputError.

    >>> round(fastrec.rmse([4.0, 2.0], [3.5, 3.0]), 12)
    0.790569415042
    """
    return _over_rows("rmse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)

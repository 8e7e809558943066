"""The functions that evaluate: one call, one report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastrec.arguments import calls
from fastrec.arguments.options import implements, options_in, options_of, pick
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
    "evaluate",
    "evaluate_by_items",
    "evaluate_model",
    "evaluate_scores",
    "gauc",
    "interpolated_pr_curve",
    "mae",
    "mse",
    "rmse",
    "top_items",
]

Array = np.ndarray[Any, Any]


SETTINGS = tuple(name for name in options_in(ListEvaluation.__init__) if name in options_in(calls.evaluate))
RATINGS = {"labels": "targets", "label": "target", "scores": "predictions", "score": "prediction"}  # of mae, mse, rmse


@implements(calls.evaluate)
def evaluate(recs: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **options: Any) -> Report:
    """Evaluate recommended lists against held-out truth: all metrics and cut-offs from one pass.

    Parameters
    ----------
    recs : the recommended lists, best item first
        One of:

        - ``(items, indptr)``, with the list of user u in ``items[indptr[u]:indptr[u + 1]]``
        - ``(items, indptr, scores)``; scores order each list
        - a `Ragged`, a 2-D integer array padded with -1 at the ends of rows, or an Arrow array of lists
        - a SciPy CSR matrix; its data are scores
        - one list per user
        - a dict {user: list} or {user: {item: score}}
        - a data frame of pandas, Polars, PyArrow or another library that exports Arrow data, or a list of Spark rows:
          one row per user and item, or one per user with columns of lists

        Items are integers up to 2^63 - 1 or strings. Arrays of int32 and int64 are not copied; do not change them
        during the call.
    truth : the relevant items, in the same forms and for the same users
        The third array, or the data of a CSR matrix, holds gains; without them every item has gain 1. Dicts and data
        frames are matched with ``recs`` by user, never by position. Dict keys are integers or strings, the same type on
        every side. Tuples also match, but such a report cannot be saved. Metrics that read no truth need none.
    metrics : strings such as ``"ndcg@10"`` or ``"map(denominator=n_rel)@100"``
        Default: ndcg, recall, precision, map, mrr and hit_rate, at 10 without ``k``. `fastrec.catalogue` lists all.

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong. Messages say what was found, what was expected, and where; rows and positions count
        from 0.
    MetricError
        If a metric or option is unknown; the message names the nearest one.

    Examples
    --------
    >>> report = fastrec.evaluate(
    ...     [[1, 2, 3], [4, 5, 6]], [[1, 3], [6]], ["ndcg", "recall"], k=[1, 3]
    ... )
    >>> {name: round(report[name], 4) for name in report}
    {'ndcg@1': 0.5, 'ndcg@3': 0.7099, 'recall@1': 0.25, 'recall@3': 1.0}

    Lists that hold a relevant item and a sample of 2 of the other 100 items. The relevant item of the second user is
    under one of the two, so the estimate of its rank is 51:

    >>> lists, truth = [[1, 2, 3], [4, 5, 6]], [[1], [5]]
    >>> report = fastrec.evaluate(
    ...     lists, truth, "mrr", sampled_from=101, correct="rank", per_user=True
    ... )
    >>> 1 / report.per_user["mrr"]
    array([ 1., 51.])
    """
    if options["items"] is not None:
        options["items"] = read_items(options["items"], options["item"])
    evaluation = ListEvaluation(metrics, **{name: options[name] for name in SETTINGS})
    evaluation.evaluate(evaluation.sides(recs, truth, options), options)
    return evaluation.report()


@options_of(
    (calls.evaluate, "groups user_weight user_ids min_gain exclude"),
    (calls.evaluate, "user item rank score gain propensity logged_rank subtopic item_sep by"),
    (calls.evaluate, "ties no_truth no_recs duplicates n_threads progress"),
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
    (calls.evaluate, "k per_user groups user_weight user_ids min_gain n_items exclude items history"),
    (calls.evaluate, "n_users unseen no_history no_features examination reference logged subtopics"),
    (calls.evaluate, "user item rank score gain propensity logged_rank subtopic item_sep by"),
    (calls.evaluate, "like ties no_truth no_recs duplicates n_threads"),
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


@implements(calls.evaluate_model)
def evaluate_model(model: Any, truth: Any = None, metrics: str | Iterable[str] | None = None, **options: Any) -> Report:
    """Evaluate a model over its whole catalogue: every item that is not excluded is in the list of every user.

    The report is that of `evaluate` for these lists with their scores and ``n_items``. They are not made: metrics with
    cut-offs need the first items, and others the ranks of relevant items, which are counted. Only metrics of items and
    histories make lists of all items, without a cut-off or under ``ties="best"`` or ``"worst"``: for some users at a
    time, as ``memory`` allows, and sorted. A standard error that needs these lists again scores all users again,
    unless ``memory`` can keep the lists. Where `evaluate` rejects all tied scores, a model is rejected for those that
    matter: for metrics of items under ``ties="expected"`` among the first items, under ``ties="error"`` of a relevant
    item.

    With ``negatives=``, lists hold a sample of the catalogue, as in many publications: the user's items in the truth,
    ranked among a few drawn items. Sample only to compare with such numbers. All items are scored all the same, so
    sampling saves no time, it adds variance, and it may order models in another way than full rankings (Krichene &
    Rendle 2020). ``correct=`` estimates the metrics of the whole catalogue from such lists. The report says that it is
    of samples wherever it is shown.

    Scores are computed in blocks of users whose size depends only on the number of items, the type of scores, and
    whether metrics need lists of all items. With threadpoolctl (the extra ``models``), each block is multiplied by one
    thread, so the report has the same bits for any number of threads; without it, BLAS uses its own threads, and
    products may then depend on their number. Products also depend on the BLAS library and on the positions of users in
    blocks, which follow from the rows of the model that the call evaluates, whatever ``memory``.

    Parameters
    ----------
    model : what scores all items for a user
        One of:

        - ``(user_factors, item_factors)``, arrays (n_users, d) and (n_items, d), float32 or float64 (other numbers are
          converted); the scores are their products
        - ``(X, B)``, matrices (n_users, m) and (m, n_items), at least one of them sparse; the scores are their product
          (two arrays are factors, and an error if the second is square, unless it is symmetric)
        - a 2-D array of scores (n_users, n_items); a memory map is read in blocks
        - data frames of pandas in place of these arrays: their index and columns are the default of ``user_ids`` and
          ``item_ids``, unless they are 0, 1, 2, ...; the columns of X are items if B is square
        - a function that takes an integer array of rows and returns scores (len(rows), ``n_items``); the main thread
          calls it for one block after the other, a second time if the lists of all items are made again, and it may
          return the same memory each time; without ``users`` and ``user_ids``, its rows are those of ``truth``

        Infinite scores order items; NaN raises an error, and so do finite factors whose product is not finite.
    truth : the relevant items of each row of the model, as in `evaluate`
        Arrays and lists are matched by position, dicts and data frames by ``user_ids``.
    metrics : as in `evaluate`

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`.

    Examples
    --------
    >>> users, items = (
    ...     np.array([[1.0, 0.0], [0.0, 1.0]]),
    ...     np.array([[0.9, 0.1], [0.5, 0.8], [0.1, 0.7]]),
    ... )
    >>> report = fastrec.evaluate_model(
    ...     (users, items), [[1], [2]], ["recall@1", "mrr"], exclude=[[0], []]
    ... )
    >>> report["recall@1"], report["mrr"]
    (0.5, 0.75)

    A sample of one item for each user:

    >>> fastrec.evaluate_model(
    ...     (users, items), [[1], [2]], "recall@1", negatives=1, seed=7
    ... )
    metric      mean    95 % interval  users
    recall@1  0.5000  0.0945 – 0.9055      2
    2 of 2 users counted
    lists in the order of their scores; all gains 1
    warning: sampled: ranks are among 1 item drawn uniformly for each user (seed 7) and relevant ones, not among all
    """
    from fastrec.inputs.models import read_call

    if options["items"] is not None:
        options["items"] = read_items(options["items"], options["item"])
    options["n_items"] = check_n_items(options["n_items"])
    call = read_call(model, options)
    if options["items"] is None and options["n_items"] is None:
        options["n_items"] = call.n_items
    evaluation = ListEvaluation(metrics, **pick(ListEvaluation.__init__, options))
    evaluation.evaluate_model(call, truth, options)
    return evaluation.report()


@options_of(
    (calls.evaluate_model, "users user_ids item_ids candidates user_bias item_bias n_items"),
    "exclude",
    (calls.evaluate_model, "user item memory n_threads progress"),
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


@implements(calls.evaluate_scores)
def evaluate_scores(
    labels: Any,
    scores: Any = None,
    indptr: Any = None,
    metrics: str | Iterable[str] | None = None,
    **options: Any,
) -> Report:
    """Evaluate scored, labelled rows, such as an impression log: per user, grouped and over all rows.

    Parameters
    ----------
    labels : array (n,), bool, integers or floats
        1 for a positive row, 0 for others. Or grades: rows with at least ``min_gain`` are positive, and graded metrics
        of lists use grades as gains. Or targets, for mae, mse and rmse. Or, alone, a data frame as in `evaluate`: one
        row per label, or one per user with columns of lists.
    scores : array (n,), float32 or float64 (other numbers are converted)
        Predictions. Metrics of their order take infinities, NaN raises an error, -0.0 equals 0.0.
    indptr : integers (n_users + 1,), optional
        The rows of user u are ``indptr[u]:indptr[u + 1]``. Do not change this or other arrays during the call.
    metrics : strings such as ``"gauc"``, ``"auc"``, ``"ndcg@10"`` or ``"precision(threshold=0.5)"``
        Default: auc, gauc, average_precision, log_loss, calibration and ndcg@10. Without users, the default keeps the
        metrics that need no users. With ``sample_weight``, it leaves out ndcg, which takes no weights. Metrics of lists
        rank the rows of each user by score.

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError, MetricError
        As `evaluate`; also if a metric cannot be computed from these arguments.

    Examples
    --------
    >>> labels, scores = (
    ...     [1, 0, 1, 1, 0, 1, 0, 0, 1],
    ...     [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6],
    ... )
    >>> report = fastrec.evaluate_scores(
    ...     labels, scores, [0, 5, 9], ["gauc", "auc", "ndcg@3"]
    ... )
    >>> {name: round(report[name], 4) for name in report}
    {'gauc': 0.5926, 'auc': 0.575, 'ndcg@3': 0.6585}
    """
    from fastrec.evaluation.row_reports import report_of_rows  # lists need none

    return report_of_rows(labels, scores, indptr, metrics, options)


@options_of(
    (calls.evaluate_scores, "k user_ids item_ids sample_weight groups user_weight user item label score by"),
    (calls.evaluate_scores, "min_gain n_items like ties no_truth one_class n_threads"),
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

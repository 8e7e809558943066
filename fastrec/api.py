"""The functions that evaluate: one call, one report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from fastrec.checks import listed_in_order
from fastrec.evaluation.evaluators import (
    OF_USERS,
    POLICY_CHOICES,
    Duplicates,
    NoRecs,
    NoTruth,
    OneClass,
    Ties,
    about_users,
)
from fastrec.evaluation.lists import Evaluator
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import FastrecError, InputError, InputTypeError, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.frames import Columns
from fastrec.inputs.users import is_hashable
from fastrec.metrics.declaration import MinGain
from fastrec.report.doubts import NO_TRUTH
from fastrec.report.report import Report
from fastrec.segments import split_truth

__all__ = ["evaluate", "evaluate_by_items", "evaluate_scores", "gauc", "mae", "mse", "rmse"]


Array = np.ndarray[Any, Any]
OF_EVALUATOR = ("k", "per_user", "min_gain", "n_items", "like", *POLICY_CHOICES, "n_threads")


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
        every side. Tuples also match, but such a report cannot be saved.
    metrics : strings such as ``"ndcg@10"`` or ``"map(denominator=n_rel)@100"``
        Default: ndcg, recall, precision, map, mrr and hit_rate, at 10 without ``k``. `fastrec.catalogue` lists all.
    k : cut-offs for the metrics without a cut-off of their own
    per_user : keep the value of every user, as float64, NaN for users that are not counted
    groups : one label per user, or a dict {name: labels}; the report has mean, standard error and users per label
    user_weight : weight of each user in means, 0 or from 1e-100 to 1e100; with data frames the name of a column
    user_ids : a distinct label per user, for `Report.user_ids` and error messages
    min_gain : the gain from which an item is relevant; default: any gain above 0. ``"any"``: every row of the truth is
        relevant, whatever its gain, and gains below 0 count as 0
    n_items : size of the catalogue, for the metrics that need it
    exclude : items that a user has seen, in the forms of ``recs``; they are removed from the lists and the gaps closed
    user, item, rank, score, gain : names of the columns of data frames
        Defaults: ``user_id``, ``item_id`` and, if present, ``gain``, and ``rank`` or else ``score``, which order the
        lists. Without rank and score, lists keep the order of rows; without gains, all gains are 1. `Report.data` says
        which applied. A warning names an unused column with a name like a rank or a score that implies another order.
    by : column or columns of data frames to group users by, or labels by user
        Columns do for data frames what ``groups`` does for arrays. Labels by user are {user: label}, such as
        ``dict(zip(users, segment_users(history, users)))``, {grouping: {user: label}}, or a data frame of users in
        which each further column is a grouping. Labels are all integers or all strings, and become strings. Users
        without a label form the group ``"(none)"``.
    like : a tool, such as ``"trec_eval"``; `explain` lists the tools
        ``metrics`` have their names in that tool and are computed as it does. Its values of ``min_gain``, ``ties``,
        ``no_truth``, ``no_recs`` and ``duplicates`` apply where the call does not give them.
    ties : order of items with equal scores
        ``expected`` (default): the mean over all orders, in closed form. ``input``: the given order. ``worst`` and
        ``best``: by gain. ``id_asc`` and ``id_desc``: by id. ``error``: raise.
    no_truth : users without relevant items, with a list or without
        ``skip`` (default): leave the user out. ``zero``: count the user as 0. ``nan``: make the mean NaN. ``error``:
        raise. ``judged``: 0 for users with rows in the truth (and, under ``no_recs="skip"``, a list), leave out the
        others. ``listed``: 0 for users with a list, leave out the others.
    no_recs : users with relevant items and an empty list: ``zero`` (default), ``skip``, ``nan``, ``error``
    duplicates : an item twice in a list
        ``error`` (default): raise. ``first``: drop later copies and close the gaps. ``miss``: later copies keep their
        ranks, as misses. Copies in the truth raise an error under ``error``, else they are merged (largest gain).
    n_threads : threads to use; default: all that the machine grants. The number does not change the bits.
    progress : called as progress(users done, users)

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
    """Evaluate lists once per segment of items; only the items of that segment count as relevant.

    Lists stay as they are: a list full of popular items has no hits in the tail. ``no_truth`` applies in each segment
    to users without a relevant item there.

    Parameters
    ----------
    recs, truth, metrics : as in `evaluate`
    segments : {item: label}, as from `segment_items`; other items count in no segment
    **options : any other argument of `evaluate` except ``progress``; ``ties`` must not be ``"best"`` or ``"worst"``

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
    >>> reports = fastrec.evaluate_by_items([[1, 2], [1, 3]], [[1, 2], [4]], segments, "recall@2")
    >>> {label: report["recall@2"] for label, report in reports.items()}
    {'head': 1.0, 'tail': 0.5}
    """
    if not (isinstance(segments, Mapping) and len(segments)):
        raise InputTypeError(f"segments must be a dict {{item: label}} with items, found {shown(segments)}")
    if not all(map(is_hashable, segments.values())):
        raise InputTypeError("the labels of segments must be strings or integers")
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
        raise InputError(f"ties={ties!r} orders items by gain, and gains differ from segment to segment")
    columns = Columns(**{name: options[name] for name in Columns._fields if name in options})
    user_ids, groups, user_weight, exclude = map(options.get, OF_USERS)
    about = about_users(columns, user_ids, groups, user_weight)
    prepared = first._prepare(recs, truth, exclude, about)  # noqa: SLF001 - once for all
    for evaluator, part in zip(evaluators.values(), split_truth(prepared, segments), strict=True):
        evaluator._add(part, None)  # noqa: SLF001 - of the same rules
    # a segment may well have no relevant item: warn only if the whole truth has no rows
    silent = (NO_TRUTH,) if len(prepared.lists.truth_items) else ()
    return {label: evaluator._report(copied=False, silent=silent) for label, evaluator in evaluators.items()}  # noqa: SLF001


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
    k : cut-offs for the metrics of lists without a cut-off of their own
    user_ids : with ``indptr`` one label per user; without it one key per row, rows in any order
        A tuple of several such arrays makes each combination of keys a user. Without ``indptr`` and ``user_ids``, only
        metrics over all rows are available.
    item_ids : array (n,), for ``ties='id_asc'`` and ``'id_desc'``
    sample_weight : array (n,), weights of rows, 0 or from 1e-100 to 1e100; metrics of lists take none
    per_user : keep the value of every user, as float64, NaN for users without one
    groups, user_weight : as in `evaluate`; if ``user_ids`` are keys of rows, one entry per row, equal for all rows of a
        user. The weight of a user multiplies the weights of the user's rows, and the weight in gauc.
    user, item, label, score, by : names of the columns of a data frame
        Several names in ``user`` make a user together. Defaults: ``label``, ``score`` and, if present, ``user_id``.
        With a data frame, ``sample_weight`` and ``user_weight`` are names of columns, too. ``by`` may also be labels by
        user, as in `evaluate`.
    min_gain : the label from which a row is positive
    n_items : size of the catalogue, for the metrics of lists that need it
    like : as in `evaluate`
    ties : order of rows with equal scores in the metrics of lists
        ``expected`` (default), ``input``, ``worst``, ``best``, ``id_asc``, ``id_desc`` or ``error``, as in `evaluate`.
        Curve metrics (auc, gauc, average_precision, ks) always treat equal scores as one threshold.
    no_truth : users without a positive row, in the metrics of lists
        ``skip`` (default), ``zero``, ``nan`` or ``error``, as in `evaluate`. ``judged`` and ``listed``: count users
        with rows as 0, and leave out users without rows.
    one_class : users with one class only, in gauc: ``drop`` (default), ``half``, ``zero``, ``nan``, ``error``
    n_threads, progress : as in `evaluate`

    Returns
    -------
    Report

    Raises
    ------
    InputError, InputTypeError
        If an argument is wrong. Messages say what was found, what was expected, and where; rows and positions count
        from 0.
    MetricError
        If a metric or option is unknown, or a metric cannot be computed from these arguments.

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
    """Return the grouped AUC as a float: the weighted mean of the AUCs of users. See the metric `gauc` for arguments.

    `evaluate_scores` gives the same value with its standard error, the AUC of each user and counts of users left out.

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
    """Return a metric of targets and predictions; errors use these names."""
    try:
        return evaluate_scores(targets, predictions, metrics=metric, **options)[metric]
    except FastrecError as error:
        message = re.sub(r"\blabel(s?)\b", r"target\1", re.sub(r"\bscore(s?)\b", r"prediction\1", str(error)))
        raise type(error)(message) from None


def mae(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the mean absolute error over all rows; see the metric `mae`.

    >>> fastrec.mae([4.0, 2.0], [3.5, 3.0])
    0.75
    """
    return _over_rows("mae", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def mse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the mean squared error over all rows; see the metric `mse`.

    >>> fastrec.mse([4.0, 2.0], [3.5, 3.0])
    0.625
    """
    return _over_rows("mse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)


def rmse(targets: Any, predictions: Any, *, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Return the root mean squared error over all rows; see the metric `rmse`.

    >>> round(fastrec.rmse([4.0, 2.0], [3.5, 3.0]), 12)
    0.790569415042
    """
    return _over_rows("rmse", targets, predictions, sample_weight=sample_weight, n_threads=n_threads)

"""The functions that evaluate: one call, one report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastrec.checks import (
    listed_in_order,
)
from fastrec.exceptions import FastrecError, InputError, InputTypeError, shown
from fastrec.inputs.arrow import Frame, open_foreign
from fastrec.inputs.frames import Columns
from fastrec.inputs.users import is_hashable
from fastrec.metrics.declaration import MinGain
from fastrec.report.doubts import NO_TRUTH
from fastrec.report.report import Report
from fastrec.segments import split_truth

if TYPE_CHECKING:
    pass
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
    about = about_users(columns, user_ids, groups, user_weight)
    prepared = first._prepare(recs, truth, exclude, about)  # noqa: SLF001 - once for all
    for evaluator, part in zip(evaluators.values(), split_truth(prepared, segments), strict=True):
        evaluator._add(part, None)  # noqa: SLF001 - of the same rules
    # a segment may well have nothing that is relevant: only a truth without rows is warned of
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

"""Evaluation of Spark data frames on their cluster: the bits of one machine, and the driver collects no rows of users.

Tasks pack rows into packets by user, and Spark moves packets so that all rows of a user meet
(`fastrec.engines.packets`). There each partition becomes one row, the state of an evaluator, and the driver merges
these states (`fastrec.engines.job`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastrec.arguments.calls import RowSettings, SparkListOptions, SparkRowOptions
from fastrec.arguments.groups import RowColumnNames
from fastrec.arguments.signature import pick, takes
from fastrec.engines.job import Job, error_of
from fastrec.engines.lists import plan_lists, settings_of_tasks
from fastrec.engines.side import check_partitions, check_ties, or_usual, user_columns
from fastrec.evaluation.rows import ScoreEvaluator, usual_of_rows
from fastrec.exceptions import MetricError
from fastrec.inputs.column_names import Columns
from fastrec.inputs.row_groups import check_apart
from fastrec.report.report import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fastrec.scored.histogram import BoundedAuc
from fastrec.spark.score_counts import BINNED, BINS, count_bins, order_of_rows
from fastrec.spark.side import (
    FrameSide,
    collect,
    count_history,
    pack_sides,
    read_column,
    running_python,
    states_of,
    values_of_users,
)

__all__ = ["SparkReport", "bounded_auc", "evaluate", "evaluate_scores"]


Batch = Any  # pyarrow.RecordBatch
Array = np.ndarray[Any, Any]


class SparkReport(Report):
    """A report with a Spark data frame for the values of users, if `per_user` was set."""

    def __init__(self, report: Report, values: DataFrame | None) -> None:
        super().__init__(**report._parts() | {"per_user": None, "user_ids": None, "labels": None})  # noqa: SLF001 - of its base
        self._frame = values

    @property
    def per_user(self) -> Any:
        """A Spark data frame with the columns of users and a float64 column per metric, null where `Report` has NaN.

        Spark computes it at its use, like any other: `cache()` the evaluated data frames if they are costly to compute.
        """
        return super().per_user if self._frame is None else self._frame


@takes(SparkListOptions)
def evaluate(
    recs: DataFrame,
    truth: DataFrame | None = None,
    metrics: str | Iterable[str] | None = None,
    **given: Unpack[SparkListOptions],
) -> SparkReport:
    """Evaluate recommended lists in Spark data frames against held-out truth: `fastrec.evaluate` on a cluster.

    Parameters
    ----------
    recs, truth : data frames with one row per user and item, or one row per user with columns of lists
        Users and items are integers or strings. Spark rows have no order: lists with one row per item need a column of
        ranks or scores, and ``ties='input'`` needs columns of lists. A warning names an unused column of numbers in the
        truth with a name like a gain (``rating``). Unlike `fastrec.evaluate` it looks at the type only, as reading the
        values would take another Spark job. Metrics that read no truth need none. With ``per_user``,
        `SparkReport.per_user` is a data frame.
    metrics : as in `fastrec.evaluate`

    Returns
    -------
    SparkReport
        Has the bits of `fastrec.evaluate` on the same rows, for any partitions. If the order of rows matters, as in
        sums of fractional gains of items with equal scores or of the numbers of a user's history, rows are in the
        order of the items.

    Raises
    ------
    InputError, InputTypeError, MetricError
        As in `fastrec.evaluate`, also for faults that a task finds; without row numbers, as Spark rows have no order.
    MissingExtraError
        If PySpark or PyArrow is not installed; the extra ``spark`` installs both.

    Examples
    --------
    >>> report = fastrec.spark.evaluate(
    ...     recs, truth, ["ndcg@10", "recall@20"], by="plan"
    ... )  # doctest: +SKIP
    >>> report["ndcg@10"]  # doctest: +SKIP
    0.3214
    """
    n_partitions = check_partitions(given["n_partitions"])
    plan = plan_lists((recs, truth), metrics, given, FrameSide.open, collect, count_history)
    packed = pack_sides(plan.sides, plan.job, n_partitions)
    plan.job.merge(states_of(packed, plan.job), plan.evaluator)
    report = plan.report()
    values = values_of_users(packed, plan.job, report, plan.sides["recs"]) if given["per_user"] else None
    return SparkReport(report, values)


@takes(SparkRowOptions)
def evaluate_scores(
    log: DataFrame,
    metrics: str | Iterable[str] | None = None,
    **given: Unpack[SparkRowOptions],
) -> SparkReport:
    """Evaluate a Spark data frame of scored, labelled rows: `fastrec.evaluate_scores` on a cluster.

    Metrics of the order of all rows (auc, average_precision, ks) are exact: Spark counts the positive and negative rows
    of each distinct score, and the driver merges these counts, 24 bytes per distinct score. If that is too much, leave
    these metrics out and use `bounded_auc`.

    Parameters
    ----------
    log : a data frame with one row per label, or one row per user with columns of lists
        ``ties='input'`` needs columns of lists. With ``per_user``, `SparkReport.per_user` is a data frame.
    metrics : as in `fastrec.evaluate_scores`

    Returns
    -------
    SparkReport
        Has the bits of `fastrec.evaluate_scores`, for any partitions, for counts, pairs and lists. Sums of numbers, as
        in log_loss, depend in the last bit on the order in which the rows of a user are added: here it is the order of
        (score, label, weight). Rows without users are added exactly and rounded once. The intervals of auc and
        average_precision take rows as independent, and the report says so: the cluster passes the rows only once.

    Raises
    ------
    InputError, InputTypeError, MetricError, MissingExtraError
        As in `evaluate`.

    Examples
    --------
    >>> report = fastrec.spark.evaluate_scores(
    ...     log, ["auc", "gauc"], label="clicked"
    ... )  # doctest: +SKIP
    >>> report["auc"]  # doctest: +SKIP
    0.7421
    """
    columns = Columns(**pick(RowColumnNames, given), by=given["by"], row_by=given["row_by"])
    check_apart(columns.groupings(), columns.row_groupings())
    side = FrameSide.open("log", log)
    keys = user_columns(side, columns)
    weights = {name: given[name] for name in ("sample_weight", "user_weight")}
    options = settings_of_tasks(RowSettings, metrics, given)
    if metrics is None and given["like"] is None:
        weighted = weights["sample_weight"] is not None
        options |= {"metrics": usual_of_rows(options["k"], has_users=bool(keys), weighted=weighted), "k": None}
    values = or_usual(columns.score, "score"), or_usual(columns.label, "label")
    arguments = {**pick(RowColumnNames, given), "by": given["by"], "row_by": columns.row_groupings() or None}
    n_partitions = check_partitions(given["n_partitions"])
    job = Job(ScoreEvaluator, options, {**arguments, **weights}, keys, given["n_threads"])
    needs_items = ScoreEvaluator(**options).settings["ties"] in ("id_asc", "id_desc")
    others = [or_usual(columns.item, "item_id")] if needs_items or columns.item is not None else []
    of_rows = columns.row_groupings()
    side = side.having([*values, *job.keys, *columns.groupings(), *of_rows, *others, *weights.values()])
    evaluator = job.check({"log": side.all_columns()}, per_user=given["per_user"])
    assert isinstance(evaluator, ScoreEvaluator)
    if any(name is not None for name in weights.values()) and evaluator.ordered:
        raise MetricError(
            f"{', '.join(evaluator.ordered_calls)}: with weights, counts cannot give the order of all rows; "
            "leave out the weights or these metrics, or collect the rows on one machine: "
            "fastrec.evaluate_scores(log.toArrow())"
        )
    if side.is_long(values[0]):
        check_ties(evaluator, FrameSide.engine)
        job = job._replace(order=(*values, *([] if weights["sample_weight"] is None else [weights["sample_weight"]])))
    job = job._replace(empty={"log": side.empty})
    packed = pack_sides({"log": side}, job, n_partitions) if job.keys else side.frame
    job.merge(states_of(packed, job), evaluator)
    if evaluator.ordered:
        evaluator.add_order(order_of_rows(side, values, columns.groupings(), of_rows, evaluator.ordered))
    report = evaluator.result()
    return SparkReport(report, values_of_users(packed, job, report, side) if given["per_user"] else None)


def bounded_auc(log: DataFrame, *, label: str = "label", score: str = "score", bits: int = 22) -> BoundedAuc:
    """Return the AUC of all rows of a Spark data frame and a bound on its error: `fastrec.bounded_auc` on a cluster.

    Spark counts rows by the leading bits of their scores. Memory does not grow with their number; nothing is sorted.

    Parameters
    ----------
    log : a data frame with one row per label
    label, score : names of the columns with labels, 0 or 1, and scores
    bits : as in `fastrec.bounded_auc`

    Returns
    -------
    BoundedAuc
        ``auc`` and ``bound``, with the bits of `fastrec.bounded_auc`; both NaN if all rows have one class.

    Raises
    ------
    InputError, InputTypeError, MissingExtraError
        As in `evaluate`.

    Examples
    --------
    >>> fastrec.spark.bounded_auc(log, label="clicked")  # doctest: +SKIP
    BoundedAuc(auc=0.7421, bound=2.1e-05)
    """
    side = FrameSide.open("log", log).having([label, score])

    from pyspark.sql import functions

    from fastrec.scored.histogram import ScoreHistogram

    whole = ScoreHistogram(bits)
    for name in (label, score):
        read_column(side.all_columns(), name)

    def count(batches: Iterator[Batch]) -> Iterator[Batch]:
        return count_bins(batches, (label, score), bits)

    sums = [functions.sum(name).alias(name) for name in BINNED[1:]]
    counted = side.selected().mapInArrow(count, BINS).groupBy("bins", "error", "message").agg(*sums)
    with running_python(log.sparkSession):
        found = counted.toArrow()
    errors = found.filter(found.column("error").is_valid())
    if errors.num_rows:
        raise error_of(*(errors.column(name)[0].as_py() for name in ("error", "message")))
    whole.add_bins(*(found.column(name).to_numpy() for name in BINNED))
    return whole.estimate()

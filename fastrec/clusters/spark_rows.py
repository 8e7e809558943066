"""Scored, labelled rows in Spark data frames, evaluated on their cluster, and counts of their scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.api import calls
from fastrec.api.evaluators import ScoreEvaluator
from fastrec.arguments import options_of, pick
from fastrec.clusters.calls import TASK_OPTIONS, frames, spark_tasks
from fastrec.clusters.job import Job, check_errors, without_rows
from fastrec.clusters.lists import settings_of_tasks
from fastrec.clusters.packets import BATCH_BYTES, Batch, Table, tables_of
from fastrec.clusters.side import check_partitions, check_ties, or_usual, user_columns
from fastrec.clusters.spark import FrameSide, SparkReport, column_of, report_of, running_python, selected, start_task
from fastrec.evaluation.accumulators import AccumulatorKey
from fastrec.evaluation.rows import RowEvaluation, usual_of_rows
from fastrec.exceptions import FastrecError, MetricError
from fastrec.inputs.arrow import Frame, read_numbers
from fastrec.inputs.column_names import Columns
from fastrec.inputs.row_groups import check_apart
from fastrec.metrics.row_statistics import SCORE_COUNTS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fastrec.scored.histogram import BoundedAuc
    from fastrec.scored.score_counts import ScoreCounts

BINNED = ("bins", "negatives", "positives")
BINS = ", ".join([*(f"{name} bigint" for name in BINNED), "error string", "message string"])


@options_of(
    (calls.evaluate_scores, "k"),
    "sample_weight",
    (calls.evaluate_scores, "per_user"),
    (frames, "user_weight"),
    (calls.evaluate_scores, "user item label score"),
    (frames, "by"),
    "row_by",
    (calls.evaluate_scores, "min_gain n_items like ties no_truth one_class"),
    (spark_tasks, TASK_OPTIONS),
)
def evaluate_scores(
    log: DataFrame,
    metrics: str | Iterable[str] | None = None,
    *,
    sample_weight: str | None = None,
    row_by: str | Sequence[str] | None = None,
    **given: Any,
) -> SparkReport:
    """Evaluate a Spark data frame of scored, labelled rows: `fastrec.evaluate_scores` on a cluster.

    Metrics of the order of all rows (auc, average_precision, ks) are exact: Spark counts the positive and negative rows
    of each distinct score, and the driver gets these counts, about 80 bytes per distinct score. If that is too much,
    leave these metrics out and use `bounded_auc`.

    Parameters
    ----------
    log : a data frame with one row per label, or one row per user with columns of lists
        ``ties='input'`` needs columns of lists. With ``per_user``, `SparkReport.per_user` is a data frame.
    metrics : as in `fastrec.evaluate_scores`
    sample_weight : name of the column with the weights of rows
        With weights, metrics of the order of all rows are not available.
    row_by : name of the column, or several, to segment rows by

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
    columns = Columns(**{name: given[name] for name in ("user", "item", "label", "score", "by")}, row_by=row_by)
    check_apart(columns.groupings(), columns.row_groupings())
    side = FrameSide.open("log", log)
    keys = user_columns(side, columns)
    weights = {"sample_weight": sample_weight, "user_weight": given["user_weight"]}
    options = settings_of_tasks(RowEvaluation.__init__, metrics, given)
    if metrics is None and given["like"] is None:
        weighted = sample_weight is not None
        options |= {"metrics": usual_of_rows(options["k"], has_users=bool(keys), weighted=weighted), "k": None}
    values = or_usual(columns.score, "score"), or_usual(columns.label, "label")
    arguments = {**pick(ScoreEvaluator.update, given), **weights, "row_by": columns.row_groupings() or None}
    n_partitions = check_partitions(given["n_partitions"])
    job = Job(RowEvaluation, options, arguments, keys, given["n_threads"])
    needs_items = RowEvaluation(**options).settings["ties"] in ("id_asc", "id_desc")
    others = [or_usual(columns.item, "item_id")] if needs_items or columns.item is not None else []
    of_rows = columns.row_groupings()
    side = side.having([*values, *job.keys, *columns.groupings(), *of_rows, *others, *weights.values()])
    evaluation = job.check({"log": side.all_columns()}, per_user=given["per_user"])
    assert isinstance(evaluation, RowEvaluation)
    if any(name is not None for name in weights.values()) and evaluation.ordered:
        raise MetricError(
            f"{', '.join(evaluation.ordered_calls)}: with weights, counts cannot give the order of all rows; "
            "leave out the weights or these metrics, or collect the rows on one machine: "
            "fastrec.evaluate_scores(log.toArrow())"
        )
    if side.is_long(values[0]):
        check_ties(evaluation, FrameSide.engine)
        job = job._replace(order=(*values, *([] if sample_weight is None else [sample_weight])))
    job = job._replace(empty={"log": side.empty})
    job.merge(FrameSide.run([side], job, Job.states, n_partitions), evaluation)
    if evaluation.ordered:
        evaluation.add_order(_order_of_rows(side, values, columns, evaluation.ordered))
    return report_of(evaluation.report(), [side], job, given)


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
    from pyspark.sql import functions

    from fastrec.scored.histogram import ScoreHistogram

    side, histogram = FrameSide.open("log", log).having([label, score]), ScoreHistogram(bits)
    for name in (label, score):
        _read_column(side.all_columns(), name)

    def count(batches: Iterator[Batch]) -> Iterator[Batch]:
        return _count_bins(batches, (label, score), bits)

    sums = [functions.sum(name).alias(name) for name in BINNED[1:]]
    rows = selected(side).mapInArrow(count, BINS).groupBy("bins", "error", "message").agg(*sums)
    with running_python(log.sparkSession):
        counts = rows.toArrow()
    check_errors(counts.filter(counts.column("error").is_valid()).to_pylist())
    histogram.add_bins(*(counts.column(name).to_numpy() for name in BINNED))
    return histogram.estimate()


def _count_bins(batches: Iterable[Batch], values: tuple[str, str], bits: int) -> Iterator[Batch]:
    """Yield the bins of a histogram of the scores of a partition, or the error found in it."""
    import pyarrow as pa

    from fastrec.scored.histogram import ScoreHistogram

    start_task()
    histogram = ScoreHistogram(bits)
    try:
        for table in tables_of(batches, BATCH_BYTES):
            histogram.add(*(_read_column(table, name) for name in values))
        rows = pa.table(histogram.pack())
    except FastrecError as error:
        rows = pa.Table.from_pylist([without_rows(error)])
    columns = [(name, pa.int64()) for name in BINNED] + [(name, pa.string()) for name in ("error", "message")]
    yield from pa.concat_tables([pa.schema(columns).empty_table(), rows], promote_options="default").to_batches()


def _order_of_rows(
    side: FrameSide, values: tuple[str, str], columns: Columns, conditions: Mapping[int, float]
) -> Iterator[tuple[AccumulatorKey, ScoreCounts]]:
    """Yield the score counts of all rows, and of the groups of each grouping of users or rows."""
    from fastrec.scored.score_counts import ScoreCounts

    yield from ((AccumulatorKey(SCORE_COUNTS, condition, None), ScoreCounts()) for condition in conditions)
    of_rows = columns.row_groupings()
    for nth, grouping in enumerate([*columns.groupings(), *of_rows] or [None]):
        rows = _count_scores(side, values, grouping, conditions, of_rows=grouping in of_rows)
        counted = rows.orderBy("label", "score").toArrow()
        codes = counted.column("label").combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        edges = np.flatnonzero(np.diff(codes, prepend=-2, append=-2)).tolist()
        for start, end in itertools.pairwise(edges):
            part = counted.slice(start, end - start)
            label, n_rows = part.column("label")[0].as_py(), part.column("rows").to_numpy()
            for condition in conditions:
                positives = part.column(f"positives{condition}").to_numpy()
                arrays = {"scores": part.column("score").to_numpy(), "positives": positives}
                counts = ScoreCounts.unpack({**arrays, "negatives": n_rows - positives}, weighted=False)
                if grouping is not None and not (label is None and grouping in of_rows):
                    yield AccumulatorKey(SCORE_COUNTS, condition, (grouping, label)), counts
                if nth == 0:
                    yield AccumulatorKey(SCORE_COUNTS, condition, None), counts


def _count_scores(
    side: FrameSide, values: tuple[str, str], grouping: str | None, conditions: Mapping[int, float], *, of_rows: bool
) -> DataFrame:
    """Return the rows of each label and score, and the positive ones of each condition. `of_rows`: groups of rows."""
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    own = functions.lit(None).cast("string") if grouping is None else column_of(grouping)
    columns = [own.alias("label"), *map(column_of, values)]
    if not side.is_long(values[0]):
        whole = () if of_rows else columns[:1]
        columns = [*whole, functions.inline(functions.arrays_zip(*columns[len(whole) :]))]
    rows = side.frame.select(*columns).toDF("label", "score", "value")
    rows = rows.select(_spelled(rows, "label"), col("score").cast("double"), col("value").cast("double"))
    counts = [
        functions.count_if((col("value") > 0) & (col("value") >= least)).alias(f"positives{condition}")
        for condition, least in conditions.items()
    ]
    return rows.groupBy("label", "score").agg(functions.count("*").alias("rows"), *counts)


def _spelled(rows: DataFrame, name: str) -> Column:
    """Return a column of labels, booleans and dates as the strings that fastrec makes of them."""
    from pyspark.sql import functions
    from pyspark.sql.types import IntegralType, StringType

    kind = rows.schema[name].dataType
    if isinstance(kind, IntegralType | StringType):
        return functions.col(name)
    spelled = functions.col(name).cast("string")
    return (functions.initcap(spelled) if kind.simpleString() == "boolean" else spelled).alias(name)


def _read_column(table: Table, name: str) -> Any:
    """Read a column of numbers of a log."""
    column = Frame("log", table.column_names, table.column).read(name)
    return read_numbers(column, f"log column {name!r}")

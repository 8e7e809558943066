"""Counts of scores on a cluster, exact or in bins, for metrics of the order of all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.engines.job import without_rows
from fastrec.engines.packets import BATCH_BYTES, tables_of
from fastrec.evaluation.accumulators import SCORE_COUNTS, AccumulatorKey
from fastrec.exceptions import FastrecError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from fastrec.scored.score_counts import ScoreCounts
from fastrec.spark.side import FrameSide, column_of, read_column, running_python, start_task

__all__ = ["BINNED", "BINS", "count_bins", "order_of_rows"]


Batch = Any  # pyarrow.RecordBatch
BINNED = ("bins", "negatives", "positives")
BINS = ", ".join([*(f"{name} bigint" for name in BINNED), "error string", "message string"])
COUNT_TYPES = {"scores": np.float64, "positives": np.int64, "negatives": np.int64}
COUNTS = "condition int, scores binary, positives binary, negatives binary"


def count_bins(batches: Iterable[Batch], values: tuple[str, str], bits: int) -> Iterator[Batch]:
    """Yield the bins of a histogram of the scores of a partition, or the error found in it."""
    import pyarrow as pa

    from fastrec.scored.histogram import ScoreHistogram

    start_task()
    histogram = ScoreHistogram(bits)
    try:
        for table in tables_of(batches, BATCH_BYTES):
            labels, scores = (read_column(table, name) for name in values)
            histogram.add(labels, scores)
    except FastrecError as error:
        empty = dict.fromkeys(BINNED, pa.nulls(1, pa.int64()))
        yield pa.record_batch(empty | {name: [text] for name, text in without_rows(error).items()})
        return
    bins = {name: pa.array(values) for name, values in histogram.pack().items()}
    no_error = dict.fromkeys(("error", "message"), pa.nulls(len(bins["bins"]), pa.string()))
    yield pa.record_batch(bins | no_error)


def order_of_rows(
    side: FrameSide,
    values: tuple[str, str],
    of_users: Sequence[str],
    of_rows: Sequence[str],
    conditions: Mapping[int, float],
) -> Iterator[tuple[AccumulatorKey, ScoreCounts]]:
    """Yield the score counts of all rows, and of the groups of each grouping of users or rows."""
    from fastrec.scored.score_counts import ScoreCounts

    yield from ((AccumulatorKey(SCORE_COUNTS, condition, None), ScoreCounts()) for condition in conditions)
    for nth, grouping in enumerate([*of_users, *of_rows] or [None]):
        with running_python(side.frame.sparkSession):
            counted = _count_scores(side, values, grouping, conditions, of_rows=grouping in of_rows).collect()
        for found in counted:
            columns = {name: np.frombuffer(found[name], kind) for name, kind in COUNT_TYPES.items()}
            counts = ScoreCounts.unpack(columns, weighted=False)
            if grouping is not None and not (found.label is None and grouping in of_rows):
                yield AccumulatorKey(SCORE_COUNTS, found.condition, (grouping, found.label)), counts
            if nth == 0:
                yield AccumulatorKey(SCORE_COUNTS, found.condition, None), counts


def _count_scores(
    side: FrameSide, values: tuple[str, str], grouping: str | None, conditions: Mapping[int, float], *, of_rows: bool
) -> DataFrame:
    """Return the score counts of each partition, a row for each condition and group. `of_rows`: groups of rows."""
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
    counted = rows.groupBy("label", "score").agg(functions.count("*").alias("rows"), *counts)
    label = counted.schema["label"].dataType.simpleString()
    return counted.mapInArrow(lambda batches: _sorted_counts(batches, list(conditions)), f"label {label}, {COUNTS}")


def _spelled(rows: DataFrame, name: str) -> Column:
    """Return a column of labels, booleans and dates as the strings that fastrec makes of them."""
    from pyspark.sql import functions
    from pyspark.sql.types import IntegralType, StringType

    kind = rows.schema[name].dataType
    if isinstance(kind, IntegralType | StringType):
        return functions.col(name)
    spelled = functions.col(name).cast("string")
    return (functions.initcap(spelled) if kind.simpleString() == "boolean" else spelled).alias(name)


def _sorted_counts(batches: Iterable[Batch], conditions: Sequence[int]) -> Iterator[Batch]:
    """Yield score counts, in the order of the scores, a row for each condition and label."""
    import pyarrow as pa

    for table in tables_of(batches, BATCH_BYTES):
        ordered = table.sort_by([("label", "ascending"), ("score", "ascending")]).combine_chunks()
        labels = ordered.column("label").combine_chunks()
        codes = labels.dictionary_encode().indices.fill_null(0).to_numpy()
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
            part = ordered.slice(start, end - start)
            rows, scores = part.column("rows").to_numpy(), part.column("score").to_numpy()
            for condition in conditions:
                positives = part.column(f"positives{condition}").to_numpy()
                found = {"scores": scores, "positives": positives, "negatives": rows - positives}
                yield pa.record_batch(
                    {
                        "label": labels.slice(start, 1),
                        "condition": pa.array([condition], pa.int32()),
                        **{name: pa.array([found[name].astype(kind).tobytes()]) for name, kind in COUNT_TYPES.items()},
                    }
                )

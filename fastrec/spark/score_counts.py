"""The order of all rows on a cluster: bins of scores, and counts of each score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.exceptions import FastrecError
from fastrec.spark.packets import BATCH_BYTES, tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fastrec.evaluation.state import ScoreCountsKey
    from fastrec.scored.score_counts import ScoreCounts
from fastrec.spark.side import FrameSide, batches_by_rows, column_of, keep_code_on_this_node, read_column, without_rows

__all__ = ["BINNED", "BINS", "count_bins", "order_of_rows"]


Batch = Any  # pyarrow.RecordBatch
BINNED = ("bins", "negatives", "positives")
BINS = ", ".join([*(f"{name} bigint" for name in BINNED), "error string", "message string"])
RUN_TYPES = {"scores": np.float64, "positives": np.int64, "negatives": np.int64}
RUNS = "view int, scores binary, positives binary, negatives binary"


def count_bins(batches: Iterable[Batch], values: tuple[str, str], bits: int) -> Iterator[Batch]:
    """The bins of a histogram of the scores of a partition, or the error that was met."""
    import pyarrow as pa

    from fastrec.inputs.columns import check_classes, check_floats
    from fastrec.scored.histogram import ScoreHistogram

    keep_code_on_this_node()
    seen = ScoreHistogram(bits)
    try:
        for table in tables_of(batches, BATCH_BYTES):
            labels, scores = (read_column(table, name) for name in values)
            seen.add(check_classes(labels), check_floats(scores, "scores"))
    except FastrecError as error:
        empty = dict.fromkeys(BINNED, pa.nulls(1, pa.int64()))
        yield pa.record_batch(empty | {"error": [type(error).__name__], "message": [without_rows(str(error))]})
        return
    bins = {name: pa.array(values) for name, values in seen.pack().items()}
    texts = dict.fromkeys(("error", "message"), pa.nulls(len(bins["bins"]), pa.string()))
    yield pa.record_batch(bins | texts)


def order_of_rows(
    side: FrameSide, values: tuple[str, str], groupings: Sequence[str], conditions: Mapping[int, float]
) -> Iterator[tuple[ScoreCountsKey, ScoreCounts]]:
    """The positive and negative rows of each distinct score, for all rows and for the groups of each grouping."""
    from fastrec.scored.score_counts import ScoreCounts

    yield from (((condition, None), ScoreCounts()) for condition in conditions)
    for nth, grouping in enumerate(groupings or [None]):
        with batches_by_rows(side.frame.sparkSession):
            counted = _count_scores(side, values, grouping, conditions).collect()
        for found in counted:
            columns = {name: np.frombuffer(found[name], kind) for name, kind in RUN_TYPES.items()}
            runs = ScoreCounts.unpack(columns, weighted=False)
            if grouping is not None:
                yield (found.condition, (grouping, found.label)), runs
            if nth == 0:
                yield (found.condition, None), runs


def _count_scores(
    side: FrameSide, values: tuple[str, str], grouping: str | None, conditions: Mapping[int, float]
) -> DataFrame:
    """Sorted runs of the scores of each partition, a row for each view and group."""
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    own = functions.lit(None).cast("string") if grouping is None else column_of(grouping)
    columns = [own.alias("label"), *map(column_of, values)]
    if not side.is_long(values[0]):
        columns = [columns[0], functions.inline(functions.arrays_zip(*columns[1:]))]
    rows = side.frame.select(*columns).toDF("label", "score", "value")
    rows = rows.select("label", col("score").cast("double"), col("value").cast("double"))
    counts = [
        functions.count_if((col("value") > 0) & (col("value") >= least)).alias(f"positives{condition}")
        for condition, least in conditions.items()
    ]
    counted = rows.groupBy("label", "score").agg(functions.count("*").alias("rows"), *counts)
    label = counted.schema["label"].dataType.simpleString()
    return counted.mapInArrow(lambda batches: _sorted_runs(batches, list(conditions)), f"label {label}, {RUNS}")


def _sorted_runs(batches: Iterable[Batch], conditions: Sequence[int]) -> Iterator[Batch]:
    """Counts of scores, in the order of the scores, a row for each view and label."""
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
                        "view": pa.array([condition], pa.int32()),
                        **{name: pa.array([found[name].astype(kind).tobytes()]) for name, kind in RUN_TYPES.items()},
                    }
                )

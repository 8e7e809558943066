"""Benchmarks of Spark on this machine: `python -m bench.spark [--users N] [--json FILE]`.

One session on all processors, with workers that have done the work before. It computes the same 30 values by fastrec
on Spark, by Spark SQL with window functions, and by fastrec on this machine, after a check of equal values: of rows in
Spark's memory, and of rows in Parquet files, in any order. Spark SQL sorts both sides of its join: the truth is larger
than those that it sends to all tasks by default (10 MB).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import cases, rivals
from bench.frames import evaluate
from bench.measure import Others, Spread, Turns, describe_machine, memory, reset_peak_memory
from bench.report import SPARK_RESULTS
from bench.run import Row, to_text

METRICS = rivals.names_of("ndcg recall precision map mrr hit_rate")
LENGTH = 100
PARTITIONS = 8
BY_SCORE, BY_RANK = "a row per item with its score", "a row per item with its rank"
IN_ANY_ORDER = "Parquet in any order"
HANDED = "Spark handing the lists alone to an empty Python function"
NAMES = {"user": "user", "item": "item"}


class OtherProcesses(Others):
    """Number of processors that other processes use, not counting those that Spark started."""

    @staticmethod
    def read() -> tuple[float, float, float]:
        """Return seconds of the clock, of all processors at work, and of this process with all that it started."""
        import psutil

        clock, busy, _ = Others.read()
        own = psutil.Process()
        times = [process.cpu_times() for process in [own, *own.children(recursive=True)]]
        return clock, busy, sum(time.user + time.system for time in times)


def start(more: Mapping[str, str] | None = None) -> Any:
    """Return a session on all processors, with some more settings."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        **(more or {}),
    }
    builder = SparkSession.builder.master("local[*]").appName("bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def cached(session: Any, table: Any, folder: Path) -> Any:
    """Return rows in Spark's memory, read from a file: Spark would plan with the rows of a table of this process."""
    import pyarrow.parquet as pq

    path = folder / f"cached{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path)
    frame = session.read.parquet(str(path)).repartition(2 * session.sparkContext.defaultParallelism).cache()
    frame.count()
    return frame


def with_scores(recs: Any) -> Any:
    """Return rows with a score in place of a rank."""
    import polars as pl

    return recs.select("user", "item", score=-pl.col("rank").cast(pl.Float32))


def as_lists(frame: Any) -> Any:
    """Return one row per user, with the items by rank."""
    import polars as pl

    order = ["user", "rank"] if "rank" in frame.columns else ["user"]
    return frame.sort(order).group_by("user", maintain_order=True).agg(pl.col("item"))


def query(recs: Any, truth: Any) -> Callable[[], dict[str, float]]:
    """Return the same query in Spark SQL: windows that rank rows and number hits, a join, a row per user, means."""
    from pyspark.sql import Window, functions
    from pyspark.sql.functions import col, lit, when

    ideals = np.cumsum(1 / np.log2(np.arange(max(rivals.CUTOFFS)) + 2)).tolist()
    ideal = functions.array(*map(lit, ideals))
    if "rank" not in recs.columns:
        by_score = Window.partitionBy("user").orderBy(functions.desc("score"))
        recs = recs.withColumn("rank", functions.row_number().over(by_score))
    by_rank = Window.partitionBy("user").orderBy("rank")
    hits = recs.join(truth, ["user", "item"]).withColumn("nth", functions.row_number().over(by_rank))
    hits = hits.withColumns({"discount": 1 / functions.log2(col("rank") + 1), "precision": col("nth") / col("rank")})
    sums = [functions.min("rank").alias("first")]
    for k in rivals.CUTOFFS:
        within = col("rank") <= k
        sums += [
            functions.count_if(within).alias(f"hits@{k}"),
            functions.sum(when(within, col("discount")).otherwise(0.0)).alias(f"dcg@{k}"),
            functions.sum(when(within, col("precision")).otherwise(0.0)).alias(f"precision_sum@{k}"),
        ]
    held = truth.groupBy("user").agg(functions.count("*").alias("n_rel"))
    table = held.join(hits.groupBy("user").agg(*sums), "user", "left")
    means = []
    for k in rivals.CUTOFFS:
        found, place = col(f"hits@{k}"), functions.least(col("n_rel"), lit(k)).cast("int")
        values = {
            f"ndcg@{k}": col(f"dcg@{k}") / functions.element_at(ideal, place),
            f"recall@{k}": found / col("n_rel"),
            f"precision@{k}": found / k,
            f"map@{k}": col(f"precision_sum@{k}") / place,
            f"mrr@{k}": when(col("first") <= k, 1 / col("first")).otherwise(0.0),
            f"hit_rate@{k}": (found > 0).cast("double"),
        }
        means += [functions.avg(functions.coalesce(value, lit(0.0))).alias(name) for name, value in values.items()]
    return lambda: table.agg(*means).first().asDict()


def hand_over(frame: Any, *, is_long: bool) -> Callable[[], Any]:
    """Return a call that hands all rows to a Python function that only counts them, in the batches of fastrec."""
    from fastrec.clusters.spark import BATCH_LIMIT, NO_LIMIT

    conf = frame.sparkSession.conf

    def count(batches: Any) -> Any:
        import pyarrow as pa

        yield pa.record_batch({"rows": [sum(batch.num_rows for batch in batches)]})

    def collect() -> Any:
        if is_long:
            conf.set(BATCH_LIMIT, NO_LIMIT)
        found = frame.mapInArrow(count, "rows long").collect()
        conf.unset(BATCH_LIMIT)
        return found

    return collect


def collect_and_evaluate(recs: Any, truth: Any) -> Any:
    """Collect all rows on the driver, and evaluate them there."""
    return evaluate(recs.toArrow(), truth.toArrow())


def compare(session: Any, n_users: int, rounds: int, folder: Path) -> list[Row]:
    """Time fastrec on Spark against Spark SQL, handing over the rows, and this machine alone, for rows and lists."""
    import fastrec.spark

    recs, truth = rivals.polars_frames(cases.make_log(n_users, LENGTH))
    n_rows, cores = len(recs), session.sparkContext.defaultParallelism
    scored = with_scores(recs)
    forms = {
        BY_SCORE: (scored, truth),
        BY_RANK: (recs, truth),
        "columns of lists": (as_lists(recs), as_lists(truth)),
    }
    rows = []
    for form, (own_recs, own_truth) in forms.items():
        tables = own_recs.to_arrow(), own_truth.to_arrow()
        on_spark = [cached(session, table, folder) for table in tables]
        calls: dict[str, Callable[[], Any]] = {
            "spark": functools.partial(fastrec.spark.evaluate, *on_spark, METRICS, **NAMES),
            "frame": functools.partial(evaluate, *tables),
            "driver": functools.partial(collect_and_evaluate, *on_spark),
            "handed over": hand_over(on_spark[0], is_long=form != "columns of lists"),
        }
        if form != "columns of lists":
            calls["SQL"] = query(*on_spark)
            rivals.check_equal("Spark SQL", calls["SQL"](), dict(calls["frame"]()))
        if dict(calls["spark"]()) != dict(calls["frame"]()):
            raise AssertionError("fastrec gives other bits on Spark")
        turns = Turns(calls, rounds, OtherProcesses)
        rows += lines(turns, f"{n_users} users x {LENGTH}, {form}", n_rows, cores)
        for frame in on_spark:
            frame.unpersist()
    return rows


def compare_files(session: Any, n_users: int, rounds: int, folder: Path) -> list[Row]:
    """Time fastrec on Spark against Spark SQL on Parquet files, whose rows are shuffled."""
    import fastrec.spark

    log = rivals.polars_frames(cases.make_log(n_users, LENGTH))
    recs, truth = (frame.sample(fraction=1, shuffle=True, seed=1) for frame in log)
    cores = session.sparkContext.defaultParallelism
    rows = []
    for form, own in {BY_SCORE: with_scores(recs), BY_RANK: recs}.items():
        paths = [write(session, table, folder / name) for name, table in {"recs": own, "truth": truth}.items()]
        calls: dict[str, Callable[[], Any]] = {
            "spark": functools.partial(fastrec.spark.evaluate_files, *paths, METRICS, **NAMES),
            "SQL": query(*(session.read.parquet(str(path)) for path in paths)),
        }
        rivals.check_equal("Spark SQL", calls["SQL"](), dict(calls["spark"]()))
        turns = Turns(calls, rounds, OtherProcesses)
        rows += lines(turns, f"{n_users} users x {LENGTH}, {form}, {IN_ANY_ORDER}", len(recs), cores)
        for path in paths:
            shutil.rmtree(path)
    return rows


def write(session: Any, table: Any, path: Path) -> Path:
    """Write rows to a folder of Parquet files, and return the path."""
    table.write_parquet(path.with_suffix(".parquet"))
    session.read.parquet(str(path.with_suffix(".parquet"))).repartition(PARTITIONS).write.parquet(str(path))
    return path


def lines(turns: Turns, what: str, n_rows: int, cores: int) -> list[Row]:
    """Return the rows of one form of the data: its promises, and times that explain them."""
    took = {name: turns.median(name) for name in turns.seconds}
    rate = f"{n_rows / took['spark'] / cores / 1e6:.3g}M rows/s per core"
    rows = [Row(f"{what}: fastrec.spark", turns.each("spark", 1.0), "s", note=rate)]
    others = {"driver": "toArrow() to the driver and evaluate there", "handed over": HANDED}
    others = {name: other for name, other in others.items() if name in took}
    if "SQL" in took:
        bar = 0.3 if what.endswith(IN_ANY_ORDER) else 0.25
        note = f"{took['spark']:.3g} s / {took['SQL']:.3g} s"
        rows.append(Row(f"{what}: fastrec.spark / Spark SQL", turns.ratio("spark", "SQL"), "x", bar, note=note))
    if what.endswith(BY_SCORE):
        others = {"frame": "evaluate on rows in Python's memory: what crossing into Python costs"} | others
    for name, other in others.items():
        note = f"{took['spark']:.3g} s / {took[name]:.3g} s"
        rows.append(Row(f"{what}: fastrec.spark / {other}", turns.ratio("spark", name), "x", note=note))
    return rows


def measure_driver(session: Any, n_users: int) -> list[Row]:
    """Measure how much more memory the driver's Python needs for ten times the users."""
    import fastrec.spark

    peaks = []
    for users in (n_users // 10, n_users):
        recs, truth = (
            session.range(users).selectExpr("id AS user", f"explode(sequence(1, {length})) AS item", "item AS rank")
            for length in (LENGTH, 9)
        )
        before = 0
        for _ in range(2):
            reset_peak_memory()
            before = memory(peak=False)
            fastrec.spark.evaluate(recs, truth, METRICS, **NAMES, n_partitions=PARTITIONS)
        peaks.append((memory(peak=True) - before) / 1e6)
    note = f"{peaks[0]:.3g} MB for {n_users // 10} users"
    return [Row(f"memory that the driver needs more for {n_users} users", Spread.of([peaks[1]]), "MB", 20, note=note)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and write the JSON; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write the results there ({SPARK_RESULTS.name})")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        session = start({"spark.sql.warehouse.dir": folder})
        rows = compare(session, options.users, options.rounds, Path(folder))
        rows += compare_files(session, options.users, options.rounds, Path(folder))
        rows += measure_driver(session, options.users)
    print(to_text(rows))
    if options.json is not None:
        machine = describe_machine()
        machine["versions"] |= {"spark": session.version}
        result = {"schema": 1, "quick": options.users < 200_000, **machine, "rows": [row.to_dict() for row in rows]}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    session.stop()
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""Benchmarks of files: whole processes from start to exit, against DuckDB and Polars computing only one metric.

Files are Parquet. fastrec computes 30 values with all checks; the others compute only NDCG@10, without checks.
"""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

from bench import cases
from bench.measure import Spread, Turns, run_python
from bench.scored import Promise

LENGTH = 100
SPARE_MEMORY = 400e6
LIBRARIES = ("duckdb", "polars", "pyarrow")
FASTREC = """
import sys, fastrec
metrics = ["ndcg", "recall", "precision", "map", "mrr", "hit_rate"]
print(fastrec.evaluate_files(sys.argv[1], sys.argv[2], metrics, k=[1, 5, 10, 20, 100])["ndcg@10"])
"""
DUCKDB = """
import sys, duckdb
print(duckdb.connect().execute('''
with truth as (select user_id, item_id from read_parquet($2)),
held as (select user_id, least(count(*), 10) as n from truth group by user_id),
ideal as (select n, sum(1 / log2(n + 1)) over (order by n) as ideal from range(1, 11) as r(n)),
found as (
    select user_id, sum(1 / log2(rank + 1)) as dcg
    from read_parquet($1) join truth using (user_id, item_id) where rank <= 10 group by user_id
)
select avg(coalesce(dcg, 0) / ideal) from held join ideal using (n) left join found using (user_id)
''', sys.argv[1:3]).fetchone()[0])
"""
POLARS = """
import sys, polars as pl
recs, truth = (pl.scan_parquet(path) for path in sys.argv[1:3])
found = recs.filter(pl.col("rank") <= 10).join(truth, on=["user_id", "item_id"]).group_by("user_id").agg(
    dcg=(1 / (pl.col("rank") + 1).log(2)).sum()
)
ideals = pl.LazyFrame({"n": range(1, 11)}, schema={"n": pl.UInt32}).with_columns(
    ideal=(1 / (pl.col("n") + 1).log(2)).cum_sum()
)
held = truth.group_by("user_id").agg(n=pl.len().clip(0, 10)).join(ideals, on="n")
print(held.join(found, on="user_id", how="left").select((pl.col("dcg").fill_null(0) / pl.col("ideal")).mean())
      .collect().item())
"""
IMPORTS = "import numpy, numba, duckdb"
STREAM = """
import json, sys, time
import fastrec
start = time.perf_counter()
report = fastrec.evaluate_files(sys.argv[1], sys.argv[2], ["ndcg@10", "recall@10"], memory=int(sys.argv[3]),
                                temp_directory=sys.argv[4])
with open("/proc/self/status") as status:  # the peak since this program began; other counters include earlier memory
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([time.perf_counter() - start, peak, report["ndcg@10"]]))
"""


def write_files(folder: Path, n_users: int, kind: str) -> list[str]:
    """Write lists and truth as Parquet: "sorted" by user, "shuffled", or "texts": shuffled with string ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    log = cases.make_log(n_users, LENGTH)
    rng = np.random.default_rng(2)
    paths = []
    for name, items, indptr in (("recs", log.rec_items, log.rec_indptr), ("truth", log.truth_items, log.truth_indptr)):
        sizes = np.diff(indptr)
        users = np.repeat(np.arange(n_users), sizes)
        columns: dict[str, Any] = {"user_id": users, "item_id": items.astype(np.int64)}
        if name == "recs":
            columns["rank"] = np.arange(len(items)) - np.repeat(indptr[:-1], sizes) + 1
        if kind != "sorted":
            order = rng.permutation(len(items))
            columns = {column: values[order] for column, values in columns.items()}
        if kind == "texts":
            for column in ("user_id", "item_id"):
                columns[column] = np.char.add(column[0], np.char.zfill(columns[column].astype("U"), 9))
        path = folder / f"{name}-{kind}-{n_users}.parquet"
        pq.write_table(pa.table(columns), path)
        paths.append(str(path))
    return paths


def compare_files(folder: Path, n_users: int, rounds: int) -> list[Promise]:
    """Time whole processes on Parquet files, after a check that their values are equal."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return []
    rows = []
    for kind, target in (("sorted", 1.5), ("shuffled", 1.0), ("texts", 1.0)):
        paths = write_files(folder, n_users, kind)
        codes = {"fastrec": FASTREC, "DuckDB": DUCKDB} | ({} if kind == "sorted" else {"Polars": POLARS})
        values = [float(run_python(code, *paths)[1]) for code in codes.values()]
        if not np.allclose(values, values[0], rtol=1e-9):
            raise AssertionError(f"{kind}: NDCG@10 is {dict(zip(codes, values, strict=True))}")
        turns = Turns({name: functools.partial(run_python, code, *paths) for name, code in codes.items()}, rounds)
        best = min((name for name in codes if name != "fastrec"), key=turns.median)
        note = ", ".join(f"{name} {turns.median(name):.3g} s" for name in codes)
        what = f"Parquet, {n_users} users x {LENGTH} rows, {kind}: 30 values / {best}, NDCG@10 alone"
        rows.append(Promise(what, turns.ratio("fastrec", best), target, None, note))
    paths = write_files(folder, max(1, n_users // 10), "sorted")
    turns = Turns(
        {
            "fastrec": functools.partial(run_python, FASTREC, *paths),
            "imports": functools.partial(run_python, IMPORTS),
        },
        rounds,
    )
    note = f"{turns.median('fastrec') * 1e3:.3g} ms / {turns.median('imports') * 1e3:.3g} ms"
    what = f"Parquet, {max(1, n_users // 10)} users x {LENGTH} rows, sorted / importing numpy, numba and duckdb"
    rows.append(Promise(what, turns.ratio("fastrec", "imports"), 3.0, None, note))
    return rows


def write_large(folder: Path, n_rows: int) -> list[str]:
    """Write shuffled lists of 100 and a truth of 5 rows for each user, with DuckDB."""
    import duckdb

    n_users = n_rows // LENGTH
    paths = [str(folder / f"large-{name}-{n_rows}.parquet") for name in ("recs", "truth")]
    with duckdb.connect() as con:
        con.execute("SET preserve_insertion_order = false")
        for path, size, step in zip(paths, (LENGTH, 5), (1, 7), strict=True):
            rows, prime = n_users * size, 2_147_483_647
            con.execute(
                f"COPY (SELECT (i * {prime} % {rows}) // {size} AS user_id, "
                f"(i * {prime} % {rows}) % {size} * {step} * 1009 + 17 AS item_id, "
                f"CAST((i * {prime} % {rows}) % {size} + 1 AS INTEGER) AS rank FROM range({rows}) AS r(i)) "
                f"TO '{path}'"
            )
    return paths


def stream_files(folder: Path, n_rows: int, memory: int) -> list[Promise]:
    """Measure peak memory and time per row for files eight times as large as `memory`, and for half of their rows."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return []
    took = {}
    for rows in (n_rows // 2, n_rows):
        paths = write_large(folder, rows)
        seconds, peak, _ = json.loads(run_python(STREAM, *paths, str(memory), str(folder))[1])
        took[rows] = seconds
        for path in paths:
            Path(path).unlink()
    linear = took[n_rows] / took[n_rows // 2] / 2
    rate = n_rows / took[n_rows] / 1e6
    what = f"{n_rows} shuffled rows under memory={memory}"
    slope, share = Spread.of([linear]), Spread.of([peak / (memory + SPARE_MEMORY)])
    return [
        Promise(f"{what}: time per row / with half the rows", slope, 1.3, None, f"{rate:.3g}M rows/s"),
        Promise(f"{what}: peak memory / (memory + 400 MB)", share, 1.0, None, f"{peak / 1e6:.0f} MB"),
    ]

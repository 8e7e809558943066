"""Benchmarks of data frames in memory: the same 30 values from Polars and PyArrow frames, and by hand in Polars.

The times include all work on a frame: reading its columns, matching users, grouping rows and ordering them by rank.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from typing import Any

import numpy as np

from bench import cases, rivals
from bench.measure import Turns
from bench.scored import Promise

METRICS = rivals.names_of("ndcg recall precision map mrr hit_rate")
LENGTH = 100
TARGETS = {"sorted": 0.2, "shuffled": 0.5}


def evaluate(recs: Any, truth: Any) -> Any:
    """Evaluate frames with fastrec, with all checks."""
    import fastrec

    return fastrec.evaluate(recs, truth, METRICS, user="user", item="item")


def shuffle(frame: Any) -> Any:
    """Return a Polars frame with its rows in another order."""
    return frame.sample(fraction=1, shuffle=True, seed=1).rechunk()


def compare_frames(n_users: int, rounds: int) -> list[Promise]:
    """Time frames of integers, sorted by user and shuffled, against hand-written Polars, after a check of values."""
    if importlib.util.find_spec("polars") is None:
        print("frames: left out, polars is not installed", file=sys.stderr)
        return []
    log = cases.make_log(n_users, LENGTH)
    frames = rivals.polars_frames(log._replace(rec_items=log.rec_items.astype(np.int64)))
    rows = []
    for order, target in TARGETS.items():
        recs, truth = frames if order == "sorted" else map(shuffle, frames)
        theirs = rivals.polars_query(recs, truth, METRICS)
        calls = {
            "by hand": theirs,
            "Polars": functools.partial(evaluate, recs, truth),
            "PyArrow": functools.partial(evaluate, recs.to_arrow(), truth.to_arrow()),
        }
        for name in ("Polars", "PyArrow"):
            rivals.check_equal(f"{name}, {order}", theirs(), dict(calls[name]()))
        turns = Turns(calls, rounds)
        for name in ("Polars", "PyArrow"):
            note = f"{turns.median(name) * 1e3:.3g} ms / {turns.median('by hand') * 1e3:.3g} ms"
            what = f"a {name} frame, {n_users} users x {LENGTH} rows, ints, {order} / hand-written Polars"
            rows.append(Promise(what, turns.ratio(name, "by hand"), target, None, note))
    return rows


def compare_grouping(n_rows: int, rounds: int) -> list[Promise]:
    """Time grouping shuffled rows and one of their columns, against sorting only the keys."""
    from fastrec.inputs.grouping import group_rows
    from fastrec.runtime.limits import resolve_threads

    rng = np.random.default_rng(4)
    users = rng.integers(0, max(1, n_rows // LENGTH), n_rows)
    wide = rng.integers(0, 2**62, int(users.max()) + 1)[users]
    column, threads = rng.random(n_rows), resolve_threads(None)
    turns = Turns(
        {
            "sort": lambda: np.sort(wide),
            "dense": lambda: group_rows(users, threads).take(column),
            "wide": lambda: group_rows(wide, threads).take(column),
        },
        rounds,
    )
    rows = []
    for name in ("dense", "wide"):
        note = f"{turns.median(name) / n_rows * 1e9:.3g} / {turns.median('sort') / n_rows * 1e9:.3g} ns per row"
        what = f"{n_rows} shuffled rows, {name} ids: group them and a column / np.sort of the ids"
        rows.append(Promise(what, turns.ratio(name, "sort"), None, None, note))
    return rows


def compare_numbering(n_rows: int, rounds: int) -> list[Promise]:
    """Time numbers for shuffled strings of ten characters against those of other libraries, without reading them."""
    if any(importlib.util.find_spec(name) is None for name in ("duckdb", "polars", "pyarrow")):
        return []
    import duckdb
    import polars as pl
    import pyarrow as pa
    from pyarrow import compute

    from fastrec.inputs.strings import number_column
    from fastrec.runtime.limits import resolve_threads

    numbers = np.random.default_rng(5).integers(0, max(1, n_rows // LENGTH), n_rows)
    strings = compute.utf8_lpad(pa.array(numbers).cast(pa.string()), 10, "u")
    column, series = pa.chunked_array([strings]), pl.Series(strings)
    table, threads = pa.table({"name": strings}), resolve_threads(None)
    con = duckdb.connect()
    con.register("names", table)

    def encode_in_duckdb() -> Any:
        con.execute("CREATE OR REPLACE TYPE name AS ENUM (SELECT DISTINCT name FROM names)")
        return con.sql("SELECT enum_code(CAST(name AS name)) AS code FROM names").fetchnumpy()

    ours, others = "numbering", ("PyArrow's dictionary_encode", "Polars' categoricals", "DuckDB's enums")
    calls = [column.dictionary_encode, lambda: series.cast(pl.Categorical), encode_in_duckdb]
    turns = Turns({ours: lambda: number_column(column, threads), **dict(zip(others, calls, strict=True))}, rounds)
    rows = []
    for other in others:
        note = f"{turns.median(ours) / n_rows * 1e9:.3g} / {turns.median(other) / n_rows * 1e9:.3g} ns per row"
        what = f"{n_rows} strings, {n_rows // LENGTH} of them distinct: number them / {other}"
        rows.append(Promise(what, turns.ratio(ours, other), 1.0, None, note))
    return rows

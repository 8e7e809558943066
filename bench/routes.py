"""Benchmarks of input forms: the same 30 values from lists, arrays, frames and files of 10^5 and 10^7 rows.

The times include all work on a form, in a process that has done it before.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import cases, frames, rivals
from bench.files import LENGTH, LIBRARIES, Work, write_lists
from bench.measure import Spread, Turns

METRICS = rivals.names_of("ndcg recall precision map mrr hit_rate")


def measure_routes(folder: Path, n_rows: int, rounds: int) -> dict[str, Spread]:
    """Return the seconds of each input form for this number of rows of lists."""
    if any(importlib.util.find_spec(name) is None for name in LIBRARIES):
        return {}
    import fastrec

    n_users = max(1, n_rows // LENGTH)
    log = cases.make_log(n_users, LENGTH)
    recs, truth = rivals.polars_frames(log._replace(rec_items=log.rec_items.astype(np.int64)))
    dicts = [as_dict(*log.recs), as_dict(*log.truth)]
    works = (Work("sorted", "parquet", n_users), Work("shuffled", "parquet", n_users), Work("shuffled", "csv", n_users))
    by_user, shuffled, csv = (write_lists(folder, work)[1:] for work in works)
    files = functools.partial(fastrec.evaluate_files, metrics=METRICS)
    calls: dict[str, Callable[[], Any]] = {
        "`evaluate` on dicts of lists": lambda: fastrec.evaluate(*dicts, METRICS),
        "`evaluate` on arrays with pointers": lambda: fastrec.evaluate(log.recs, log.truth, METRICS),
        "`evaluate` on a frame grouped by user": lambda: frames.evaluate(recs, truth),
        "`evaluate` on a frame in any order": functools.partial(
            frames.evaluate, frames.shuffle(recs), frames.shuffle(truth)
        ),
        "`evaluate_files` on Parquet grouped by user": lambda: files(*by_user),
        "`evaluate_files` on Parquet in any order": lambda: files(*shuffled),
        "`evaluate_files` on CSV": lambda: files(*csv),
    }
    turns = Turns(calls, rounds)
    return {name: turns.each(name, 1.0) for name in calls}


def as_dict(items: Any, indptr: Any) -> dict[int, list[int]]:
    """Return {user: items} of flat arrays."""
    return {user: part.tolist() for user, part in enumerate(np.split(items, indptr[1:-1]))}

"""The same calls under pytest-benchmark: `pytest bench`, with FASTREC_BENCH_USERS users in place of 5,000."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from bench import cases, floor
from bench.run import evaluate

N_USERS = int(os.environ.get("FASTREC_BENCH_USERS", "5000"))


@pytest.fixture(scope="module")
def log() -> cases.Log:
    """Lists of 100."""
    return cases.make_log(N_USERS, 100)


def test_floor(benchmark: Any, log: cases.Log) -> None:
    """Reading everything by index."""
    assert benchmark(floor.index, log) > 0


def test_means(benchmark: Any, log: cases.Log) -> None:
    """30 means."""
    assert benchmark(evaluate, log)["recall@100"] > 0


def test_per_user(benchmark: Any, log: cases.Log) -> None:
    """30 values per user."""
    report = benchmark(evaluate, log, per_user=True)
    assert len(report.per_user["ndcg@10"]) == N_USERS


def test_wide_ids(benchmark: Any, log: cases.Log) -> None:
    """int64 ids up to 2^62."""
    assert benchmark(evaluate, cases.widen(log))["recall@100"] == evaluate(log)["recall@100"]


def test_one_value(benchmark: Any, log: cases.Log) -> None:
    """ndcg@10 alone."""
    assert benchmark(evaluate, log, ["ndcg"], [10])["ndcg@10"] == evaluate(log)["ndcg@10"]


def test_short_lists(benchmark: Any) -> None:
    """Lists of 20."""
    assert benchmark(evaluate, cases.make_log(N_USERS, 20))["recall@20"] > 0


def test_small_call(benchmark: Any) -> None:
    """One user, three items."""
    indptr = np.array([0, 3])
    log = cases.Log(np.array([1, 2, 3]), indptr, np.array([1, 5, 3]), indptr)
    assert benchmark(evaluate, log)["hit_rate@1"] == 1

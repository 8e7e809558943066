"""The same calls under pytest-benchmark: `pytest bench`. FASTREC_BENCH_USERS sets the number of users, else 5,000."""

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
    """Return lists of 100."""
    return cases.make_log(N_USERS, 100)


def test_floor(benchmark: Any, log: cases.Log) -> None:
    """Read everything by index."""
    assert benchmark(floor.index, log) > 0


def test_means(benchmark: Any, log: cases.Log) -> None:
    """Compute 30 means."""
    assert benchmark(evaluate, log)["recall@100"] > 0


def test_per_user(benchmark: Any, log: cases.Log) -> None:
    """Compute 30 values per user."""
    report = benchmark(evaluate, log, per_user=True)
    assert len(report.per_user["ndcg@10"]) == N_USERS


def test_wide_ids(benchmark: Any, log: cases.Log) -> None:
    """Evaluate int64 ids up to 2^62."""
    assert benchmark(evaluate, cases.widen(log))["recall@100"] == evaluate(log)["recall@100"]


def test_one_value(benchmark: Any, log: cases.Log) -> None:
    """Compute only ndcg@10."""
    assert benchmark(evaluate, log, ["ndcg"], [10])["ndcg@10"] == evaluate(log)["ndcg@10"]


def test_short_lists(benchmark: Any) -> None:
    """Evaluate lists of 20."""
    assert benchmark(evaluate, cases.make_log(N_USERS, 20))["recall@20"] > 0


def test_small_call(benchmark: Any) -> None:
    """Evaluate one user with three items."""
    indptr = np.array([0, 3])
    log = cases.Log(np.array([1, 2, 3]), indptr, np.array([1, 5, 3]), indptr)
    assert benchmark(evaluate, log)["hit_rate@1"] == 1

"""Compilation of kernels before the first call needs them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastrec.api.calls import evaluate, evaluate_model, evaluate_scores
from fastrec.checks import check_choice, check_progress
from fastrec.counterfactual.policy import policy_value
from fastrec.counterfactual.position import ctr_by_rank, position_bias
from fastrec.inputs.grouping import ROWS_TO_COUNT, group_rows
from fastrec.runtime.code_folder import remove_other_code
from fastrec.runtime.launcher import Launcher

__all__ = ["warmup"]


def warmup(what: str = "all", *, progress: Callable[[int, int], Any] | None = None) -> None:
    """Compile kernels now, into the disk cache if there is one.

    Call it (in the shell: `fastrec warmup`) in images that are built once and started often, and before a fork. The
    first time takes some minutes of processor time. Without it, a process first interprets small inputs, which
    gives the same bits, and compiles when there is enough work. The code of other versions is removed.

    Parameters
    ----------
    what : "lists" for recommended lists and models, "scores" for scored rows, "logs" for clicks by rank, position bias
        and values of policies, or "all": these, and the kernels that sort frames and files
    progress : called as `progress(done, total)` before the first kernel and after each

    Raises
    ------
    InputError
        If ``what`` is none of these.
    """
    check_choice("what", what, list(_WARMUPS))
    check_progress(progress)
    remove_other_code()
    Launcher.way = "compiled"
    tasks = [task for part in _WARMUPS[what] for task in part()]
    for done, task in enumerate(tasks):
        if progress is not None:
            progress(done, len(tasks))
        task()
    if progress is not None:
        progress(len(tasks), len(tasks))


def _warm_up_lists() -> list[Callable[[], Any]]:
    """Return calls that compile the kernels of lists, with and without repairs, for ids and scores of either width."""
    items, indptr = np.arange(4096 * 100) % 100, np.arange(4097) * 100
    narrow = items.astype(np.int32)
    plain, graded = (narrow, indptr), (narrow, indptr, np.full(len(items), 2.0))
    right: dict[str, Any] = {"duplicates": "first", "exclude": (items[:0], indptr * 0)}
    tasks: list[Callable[[], Any]] = [partial(evaluate, plain, truth) for truth in (plain, graded)]
    for ids in (narrow, items):
        tasks.append(partial(evaluate, (ids, indptr), (ids, indptr), per_user=True))
        scored = (ids, indptr, np.zeros(len(items)))
        tasks += [partial(evaluate, scored, (ids, indptr), ties=ties, **right) for ties in ("best", "expected")]
        tasks.append(partial(evaluate, (ids, indptr, np.zeros(len(items), np.float32)), (ids, indptr), ties="best"))
    for dtype in (np.float32, np.float64):
        tasks.append(partial(evaluate_model, np.zeros((1, 100), dtype), [[0]]))
    return tasks


def _warm_up_scores() -> list[Callable[[], Any]]:
    """Return calls that compile the kernels of scored rows, for scores of either width."""
    rows, indptr = np.arange(4096 * 100) % 100, np.arange(4097) * 100
    tasks: list[Callable[[], Any]] = []
    for dtype in (np.float32, np.float64):
        scores = np.linspace(0, 1, len(rows), dtype=dtype)
        tasks.append(partial(evaluate_scores, rows < 5, scores, indptr))
        tasks.append(partial(evaluate_scores, rows < 5, scores, indptr, ["auc"], row_groups=rows % 7))
        tasks.append(partial(evaluate_scores, rows / 2, scores, metrics=["mae", "rmse"]))
        tasks += [partial(evaluate_scores, own, scores, indptr, ["mae"], per_user=True) for own in (rows < 5, rows / 2)]
    return tasks


def _warm_up_grouping() -> list[Callable[[], Any]]:
    """Return the call that compiles the kernels that group rows by user."""
    return [_group_everything]


def _group_everything() -> None:
    """Group rows with dense and sparse keys, with ids and ranks of either width."""
    rows = np.arange(1 << 16)
    users, ranks = rows % 512, rows // 512
    narrow = users.astype(np.int32)
    for keys in (narrow, users, narrow << 20, users << 40):
        grouping = group_rows(keys, 1)
        for items in (rows.astype(np.int32), rows):
            for own in (ranks, ranks * -1000):  # without gaps and with
                grouping.take_by_rank(items, own, 1)
                grouping.take_by_rank(items, own.astype(np.int32), 1)
        grouping.take(rows.astype(np.int8))
    many = np.arange(ROWS_TO_COUNT + 1) * 7919 % 100_003  # too many rows to group by counting
    for width in (np.int32, np.int64):
        group_rows(many.astype(width), 1).take(many)
        blocks = group_rows(np.repeat(users[::-1], 64).astype(width), 1)
        blocks.take(np.repeat(rows, 64).astype(width))


def _warm_up_logs() -> list[Callable[[], Any]]:
    """Return calls that compile the kernels of logs of clicks, for ranks of either width."""
    rows = np.arange(1 << 10)
    clicks, ids, sure = rows % 2, rows % 64, np.ones(len(rows))
    tasks: list[Callable[[], Any]] = []
    for dtype in (np.int32, np.int64):
        ranks = (rows % 3 + 1).astype(dtype)
        tasks.append(partial(ctr_by_rank, clicks, ranks, user_ids=ids))
        tasks.append(partial(_bound, clicks, ranks, ids))
    tasks.append(partial(policy_value, clicks, sure, sure, estimator="sniips"))  # its errors add values, too
    return tasks


def _bound(clicks: Any, ranks: Any, ids: Any) -> None:
    """Compute curves of position bias and their intervals."""
    for method in ("pivot", "em"):
        position_bias(clicks, ranks, ids, ids, method=method, n_samples=2).interval()


_WARMUPS = {
    "lists": (_warm_up_lists,),
    "scores": (_warm_up_scores,),
    "logs": (_warm_up_logs,),
    "all": (_warm_up_lists, _warm_up_scores, _warm_up_logs, _warm_up_grouping),
}

"""Clicks by rank, position bias and the value of a policy in Spark data frames: tasks count, and the driver adds."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from fastrec.arguments import options_of
from fastrec.checks import check_level
from fastrec.clusters.calls import TASK_OPTIONS, spark_tasks
from fastrec.clusters.packets import Table, from_bytes, to_bytes
from fastrec.clusters.side import check_partitions, or_usual, states_of_side, user_columns
from fastrec.clusters.spark import FrameSide
from fastrec.counterfactual import policy
from fastrec.counterfactual.counts import count_pairs, join_pairs, join_tables
from fastrec.counterfactual.impressions import Impressions, read_impressions
from fastrec.counterfactual.logged import ROLES, check_clip, check_estimators, read_logged
from fastrec.counterfactual.position import bias_settings, tables_by_rank
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.counterfactual.sums import SlateSums
from fastrec.counterfactual.value import PolicyEstimate, PolicyEstimates, estimates_of
from fastrec.exceptions import Argument, InputError, renaming, warn
from fastrec.inputs.arrow import Frame
from fastrec.inputs.column_names import Columns
from fastrec.inputs.columns import LABELS
from fastrec.inputs.users import as_labels
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.clusters import MOMENTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def ctr_by_rank(
    log: DataFrame,
    *,
    level: float = 0.95,
    label: str | None = None,
    rank: str | None = None,
    user: str | Sequence[str] | None = None,
    row_by: str | Sequence[str] | None = None,
) -> CtrByRank:
    """Count impressions and clicks by rank on a cluster, as `fastrec.ctr_by_rank` does, with the same bits.

    Parameters
    ----------
    log : data frame with one row per impression
    level : level of the intervals
    label, rank : names of the columns of clicks and ranks; default: ``label`` and ``rank``
    user : name of the column of users, or several; default: ``user_id``, if present
    row_by : name of the column with groups of rows, or several

    Returns
    -------
    CtrByRank

    Raises
    ------
    InputError, InputTypeError
        If labels are not 0 or 1, ranks are not integers from 1, or a column is missing.

    Examples
    --------
    >>> fastrec.spark.ctr_by_rank(log, rank="position").ratio[0]  # doctest: +SKIP
    0.3
    """
    level = check_level(level)
    side, columns = FrameSide.open("log", log), Columns(user=user, rank=rank, label=label, row_by=row_by)
    keys = user_columns(side, columns)

    def count(table: Table, n_threads: int | None) -> bytes:
        counts, groups = tables_by_rank(_read(table, columns, {}), resolve_threads(n_threads))
        by_name = {name: [(key, own.tolist()) for key, own in by.items()] for name, by in groups.items()}
        return json.dumps([counts.tolist(), by_name]).encode()

    parts = []
    side = side.having([*_values(columns), *keys, *columns.row_groupings()])
    for counts, groups in map(json.loads, states_of_side(side, keys, count)):
        arrays = {name: {key: _table(own) for key, own in by} for name, by in groups.items()}
        parts.append((_table(counts), arrays))
    return CtrByRank(*join_tables(parts), level, by_user=bool(keys))


def position_bias(
    log: DataFrame,
    *,
    query: str | None = None,
    item: str | None = None,
    label: str | None = None,
    rank: str | None = None,
    method: str = "pivot",
    n_rounds: int | None = None,
    level: float = 0.95,
    n_samples: int | None = None,
    seed: int = 0,
    n_threads: int | None = None,
) -> PositionBias:
    """Estimate position bias on a cluster, as `fastrec.position_bias` does, with the same bits.

    Tasks count the rows of each query, item and rank. The driver collects these counts and fits the curve.

    Parameters
    ----------
    log : data frame with one row per impression
    query, item : names of the columns of queries and items; default: ``query_id`` and ``item_id``
    label, rank : names of the columns of clicks and ranks; default: ``label`` and ``rank``
    method, n_rounds, level, n_samples, seed : as in `fastrec.position_bias`
    n_threads : threads of the driver

    Returns
    -------
    PositionBias

    Raises
    ------
    InputError, InputTypeError
        As in `fastrec.position_bias`.

    Examples
    --------
    >>> fastrec.spark.position_bias(log, rank="position").curve[1]  # doctest: +SKIP
    0.6
    """
    settings, threads = bias_settings(method, n_rounds, level, n_samples, seed), resolve_threads(n_threads)
    columns = Columns(rank=rank, label=label)
    keys = {"query": or_usual(query, "query_id"), "item": or_usual(item, "item_id")}

    def count(table: Table, n_threads: int | None) -> bytes:
        import pyarrow as pa

        counts = count_pairs(_read(table, columns, keys), resolve_threads(n_threads)).columns()
        return to_bytes(pa.record_batch({name: pa.array(values) for name, values in counts.items()}))

    parts = []
    side = FrameSide.open("log", log).having([*_values(columns), *keys.values()])
    for counts in map(from_bytes, states_of_side(side, (keys["query"],), count)):
        parts.append({name: as_labels(counts.column(name).to_pylist()) for name in keys})
        parts[-1] |= {name: counts.column(name).to_numpy() for name in ("rank", "impressions", "clicks")}
    return PositionBias(join_pairs(parts, threads), settings, threads)


def _values(columns: Columns) -> list[str]:
    """Return the columns of clicks and ranks."""
    return [or_usual(columns.label, "label"), or_usual(columns.rank, "rank")]


def _read(table: Table, columns: Columns, keys: dict[str, str]) -> Impressions:
    """Read impressions; an error about clicks names their column."""
    label, _ = _values(columns)
    with renaming(lambda name: f"log column {label!r}" if str(name) == str(LABELS) else name):
        return read_impressions(Frame("log", table.column_names, table.column), None, {}, None, columns, keys)


def _table(rows: list[list[int]]) -> Any:
    """Return a table by rank from JSON."""
    return np.array(rows, np.int64).reshape(-1, MOMENTS)


@overload
def policy_value(log: DataFrame, *, estimator: str = "iips", **given: Any) -> PolicyEstimate: ...


@overload
def policy_value(log: DataFrame, *, estimator: list[str] | tuple[str, ...], **given: Any) -> PolicyEstimates: ...


@options_of(
    (policy.policy_value, "clip predictions baseline_pscore"),
    "pscore new_pscore",
    (policy.policy_value, "reward slate rank user"),
    (spark_tasks, TASK_OPTIONS),
)
def policy_value(
    log: DataFrame,
    *,
    estimator: str | list[str] | tuple[str, ...] = "iips",
    pscore: str | None = None,
    new_pscore: str | None = None,
    **given: Any,
) -> PolicyEstimate | PolicyEstimates:
    """Estimate what a new policy would have earned, from a Spark data frame: `fastrec.policy_value` on a cluster.

    Parameters
    ----------
    log : a data frame with a row per shown item
    estimator : as in `fastrec.policy_value`
        Slates need ranks, as Spark rows have no order.
    pscore : name of the column of logged propensities; default: ``pscore``
    new_pscore : name of the column of those of the new policy; default: ``new_pscore``

    Returns
    -------
    PolicyEstimate, or PolicyEstimates, a dict by name, if ``estimator`` is a list
        Has the bits of `fastrec.policy_value` on the same rows, for any partitions.

    Raises
    ------
    InputError, InputTypeError, MissingExtraError
        As in `fastrec.policy_value`, also for faults that a task finds; without row numbers.

    Examples
    --------
    >>> fastrec.spark.policy_value(
    ...     log, estimator="rips", rank="position"
    ... ).value  # doctest: +SKIP
    0.3214
    """
    predictions, rank = given["predictions"], given["rank"]
    names, alone = check_estimators(estimator, predictions)
    limit = check_clip(given["clip"])
    named = {"reward": given["reward"], "pscore": pscore, "new_pscore": new_pscore, "rank": rank}
    side = FrameSide.open("log", log)
    there = side.columns
    optional = {"slate": given["slate"], "user": given["user"], "baseline_pscore": given["baseline_pscore"]}
    for role, own in optional.items():
        named[role] = ROLES[role] if own is None and ROLES[role] in there else own
    slates, user, baseline = (named[role] for role in optional)
    if slates is not None and rank is None and ROLES["rank"] not in there:
        raise InputError("log needs a column of ranks, as Spark rows have no order: name it by ", Argument("rank"))
    numbers = [or_usual(named[role], ROLES[role]) for role in ("reward", "pscore", "new_pscore")]
    numbers += [*(predictions or ()), *([] if slates is None else [or_usual(rank, ROLES["rank"])])]
    numbers += [] if baseline is None else [baseline]
    ids = [name for name in (user, slates) if name is not None]
    side = side.having([*numbers, *ids])
    columns = {role: named[role] for role in ("reward", "slate", "rank", "user")}

    def add(table: Table, n_threads: int | None) -> bytes:
        rows, threads = Frame("log", table.column_names, table.column), resolve_threads(n_threads)
        pscores = named["pscore"], named["new_pscore"]
        logged = read_logged(rows, *pscores, None, predictions, None, columns, threads, None, baseline)
        return json.dumps([one.to_plain() for one in policy.sums_of(logged, names, limit, threads)]).encode()

    states = states_of_side(side, tuple(ids[:1]), add, check_partitions(given["n_partitions"]), given["n_threads"])
    sums = ([SlateSums.from_plain(own) for own in json.loads(state)] for state in states)
    found = estimates_of(functools.reduce(lambda one, other: list(map(SlateSums.add, one, other)), sums))
    warn(found.warnings)
    return found[names[0]] if alone else found

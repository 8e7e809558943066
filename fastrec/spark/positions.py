"""Clicks by rank and position bias of Spark data frames: Spark counts, and the driver collects only counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrec.checks import check_level
from fastrec.counterfactual.counts import check_keys, join_pairs, table_by_rank
from fastrec.counterfactual.position import bias_settings
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.engines.side import or_usual, user_columns
from fastrec.exceptions import InputError, InputTypeError
from fastrec.inputs.arrow import read_labels
from fastrec.inputs.column_names import Columns
from fastrec.inputs.impressions import MAX_RANK
from fastrec.inputs.rows import encode_labels
from fastrec.inputs.users import as_labels
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.clusters import MOMENTS
from fastrec.spark.side import FrameSide, column_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ctr_by_rank", "position_bias"]

Array = np.ndarray[Any, Any]


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
    users = user_columns(side, columns)
    keys = {f"user{nth}": name for nth, name in enumerate(users)}
    groups = {f"by{nth}": name for nth, name in enumerate(columns.row_groupings())}
    rows = _checked(side, columns, keys, groups)
    table = next(_tables(rows, list(keys), None, 0))[1]
    tables: dict[str, dict[Any, Array]] = {}
    for role, name in groups.items():
        found = dict(_tables(rows, list(keys), role, len(table)))
        tables[name] = {label: found[label] for label in sorted(found)}
    return CtrByRank(table, tables, level, by_user=bool(keys))


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

    Spark counts the rows of each query, item and rank. The driver collects these counts and fits the curve.

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
    keys = {"query": or_usual(query, "query_id"), "item": or_usual(item, "item_id")}
    rows = _checked(FrameSide.open("log", log), Columns(rank=rank, label=label), keys, {})
    found = rows.groupBy("query", "item", "rank").agg(*_counts()).toArrow()
    columns = {"rank": "rank", "impressions": "n", "clicks": "c"}
    numbers = {name: found.column(own).to_numpy() for name, own in columns.items()}
    ids = {name: as_labels(found.column(name).to_pylist()) for name in keys}
    return PositionBias(join_pairs([ids | numbers], threads), settings, threads)


def _checked(side: FrameSide, columns: Columns, keys: Mapping[str, str], groups: Mapping[str, str]) -> DataFrame:
    """Return checked rows, with columns named by role."""
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    names = {"label": or_usual(columns.label, "label"), "rank": or_usual(columns.rank, "rank"), **keys, **groups}
    side = side.having(names.values())
    for name in names.values():
        if name not in side.empty.column_names:
            side.as_frame().read(name)  # raises
    for role in keys:
        if not side.is_long(names[role]) or not side.kind_of_ids(names[role]):
            found = side.empty.schema.field(names[role]).type
            raise InputTypeError(f"log column {names[role]!r} must hold integers or strings, found {found}")
    rows = side.frame.select(*(column_of(name).alias(role) for role, name in names.items()))
    label, rank = col("label").cast("double"), col("rank").cast("double")
    wrong = {
        "label": (label.isin(0.0, 1.0), "must be 0 or 1"),
        "rank": (
            (rank >= 1) & (rank <= MAX_RANK) & (functions.floor(rank) == rank),
            f"must be integers from 1 to {MAX_RANK:,}",
        ),
        **{role: (col(role).isNotNull(), "must have no null") for role in keys},
    }
    outside = [
        functions.min(functions.when(~functions.coalesce(own, functions.lit(False)), _spelled(role))).alias(role)  # noqa: FBT003
        for role, (own, _) in wrong.items()
    ]
    (first,) = rows.select(*outside).collect()
    for role, (_, form) in wrong.items():
        if first[role] is not None:
            raise InputError(f"log column {names[role]!r} {form}, found {first[role]}")
    others = [col(role) for role in (*keys, *groups)]
    return rows.select(label.cast("bigint").alias("label"), rank.cast("bigint").alias("rank"), *others)


def _spelled(role: str) -> Any:
    from pyspark.sql import functions

    return functions.coalesce(functions.col(role).cast("string"), functions.lit("null"))


def _counts() -> list[Any]:
    from pyspark.sql import functions

    return [functions.count(functions.lit(1)).alias("n"), functions.sum("label").alias("c")]


def _tables(rows: DataFrame, users: Sequence[str], group: str | None, n_ranks: int) -> Iterator[tuple[Any, Array]]:
    """Yield the label of each group, None for all rows, and its table by rank."""
    from pyspark.sql import functions
    from pyspark.sql.functions import col

    own = [] if group is None else [group]
    rows = rows if group is None else rows.where(col(group).isNotNull())
    counted = rows.groupBy(*own, "rank", *users).agg(*_counts())
    names = ["n", "c"]
    if users:
        names = [f"m{nth}" for nth in range(MOMENTS)]
        sums = [col("n"), col("c"), functions.lit(1), col("n") * col("n"), col("n") * col("c"), col("c") * col("c")]
        of_users = [functions.sum(one).alias(name) for name, one in zip(names, sums, strict=True)]
        counted = counted.groupBy(*own, "rank").agg(*of_users)
    found = counted.toArrow()
    ranks = found.column("rank").to_numpy()
    numbers = np.stack([found.column(name).to_numpy().astype(np.int64) for name in names], axis=1)
    if group is None:
        yield None, table_by_rank(ranks, numbers, int(ranks.max(initial=0)))
        return
    keys, _ = encode_labels(read_labels(found.column(group), f"log column {group!r}"), group, len(ranks))
    distinct, codes = np.unique(keys.codes, return_inverse=True)
    check_keys(len(distinct), n_ranks)
    for nth, label in enumerate(keys.name_of(distinct).tolist()):
        yield label, table_by_rank(ranks[codes == nth], numbers[codes == nth], n_ranks)

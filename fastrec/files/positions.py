"""Clicks by rank and position bias of a log on disk, of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fastrec.counterfactual.counts import count_pairs, join_pairs, join_tables
from fastrec.counterfactual.impressions import Impressions, read_impressions
from fastrec.counterfactual.position import tables_by_rank
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.files.columns import ImpressionColumns, users_of
from fastrec.files.job import FileJob
from fastrec.files.reader import TableReader
from fastrec.files.resources import Path, Resources
from fastrec.files.rows import map_log
from fastrec.inputs.column_names import Columns
from fastrec.runtime.limits import resolve_threads

T = TypeVar("T")


def ctr_of_file(
    path: Path,
    columns: ImpressionColumns,
    level: float,
    resources: Resources,
) -> CtrByRank:
    """Return the `ctr_by_rank` of a file."""
    parts, log = _map_impressions(path, columns, resources, tables_by_rank)
    return CtrByRank(*join_tables(parts), level, by_user=bool(users_of(log.names)))


def bias_of_file(
    path: Path,
    columns: ImpressionColumns,
    settings: Mapping[str, Any],
    resources: Resources,
) -> PositionBias:
    """Return the `position_bias` of a file, with settings of `bias_settings`."""
    threads = resolve_threads(resources.n_threads)
    parts, _ = _map_impressions(path, columns, resources, lambda rows, n: count_pairs(rows, n).columns())
    return PositionBias(join_pairs(parts, threads), settings, threads)


def _map_impressions(
    path: Path, columns: ImpressionColumns, resources: Resources, count: Callable[[Impressions, int], T]
) -> tuple[list[T], TableReader]:
    """Return the counts of rows, or of parts of them; with users, unless they are of queries and items."""
    threads = resolve_threads(resources.n_threads)
    keys = () if columns.query is None else ("query", "item")

    def work(rows: Any, names: Mapping[str, str]) -> T:
        users, groups = [names[role] for role in users_of(names)], list(columns.groupings)
        named = Columns(user=users or None, rank=names["rank"], label=names["label"], row_by=groups or None)
        return count(read_impressions(rows, None, {}, None, named, {role: names[role] for role in keys}), threads)

    return map_log(FileJob.open({"log": path}, columns, resources), work)

"""Clicks by rank and position bias of a log on disk, of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrec.counterfactual.counts import count_pairs, join_pairs, join_tables
from fastrec.counterfactual.position import tables_by_rank
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.files.columns import ImpressionColumns, users_of
from fastrec.files.job import FileJob
from fastrec.files.resources import Path, Resources
from fastrec.files.rows import map_log
from fastrec.inputs.column_names import Columns
from fastrec.inputs.impressions import Impressions, read_impressions
from fastrec.runtime.limits import resolve_threads


def ctr_of_file(
    path: Path,
    columns: ImpressionColumns,
    level: float,
    resources: Resources,
) -> CtrByRank:
    """Return the `ctr_by_rank` of a file."""
    job = FileJob.open({"log": path}, columns, resources)
    threads = resolve_threads(resources.n_threads)
    by_user: set[bool] = set()

    def count(rows: Any, names: Mapping[str, str]) -> Any:
        by_user.add(bool(users_of(names)))
        return tables_by_rank(_read(rows, names, columns), threads)

    parts, _ = map_log(job, count)
    return CtrByRank(*join_tables(parts), level, by_user=True in by_user)


def bias_of_file(
    path: Path,
    columns: ImpressionColumns,
    settings: Mapping[str, Any],
    resources: Resources,
) -> PositionBias:
    """Return the `position_bias` of a file, with settings of `bias_settings`."""
    job = FileJob.open({"log": path}, columns, resources)
    threads = resolve_threads(resources.n_threads)

    def count(rows: Any, names: Mapping[str, str]) -> Any:
        keys = {role: names[role] for role in ("query", "item")}
        return count_pairs(_read(rows, names, columns, keys), threads).columns()

    parts, _ = map_log(job, count)
    return PositionBias(join_pairs(parts, threads), settings, threads)


def _read(
    rows: Any, names: Mapping[str, str], columns: ImpressionColumns, keys: Mapping[str, str] | None = None
) -> Impressions:
    """Return the rows of a table, with users unless `keys` name the columns of other ids."""
    users = [names[role] for role in users_of(names)]
    groups = list(columns.groupings) or None
    named = Columns(user=users or None, rank=names["rank"], label=names["label"], row_by=groups)
    return read_impressions(rows, None, {}, None, named, keys or {})

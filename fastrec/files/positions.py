"""Clicks by rank and position bias of a log on disk, of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastrec.counterfactual.counts import count_pairs, join_pairs, join_tables
from fastrec.counterfactual.position import tables_by_rank
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.files.columns import ImpressionColumns, users_of
from fastrec.files.job import FileJob
from fastrec.files.resources import Path, Resources, Watch
from fastrec.files.rows import map_log
from fastrec.inputs.column_names import Columns
from fastrec.inputs.impressions import Impressions, read_impressions
from fastrec.runtime.limits import resolve_threads

__all__ = ["bias_of_file", "ctr_of_file"]


def ctr_of_file(
    path: Path,
    columns: ImpressionColumns,
    level: float,
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
) -> CtrByRank:
    """Return the `ctr_by_rank` of a file."""
    job = FileJob.open({"log": path}, columns, resources, watch, input_format)
    threads = resolve_threads(resources.n_threads)
    by_user: set[bool] = set()

    def count(rows: Any) -> Any:
        read = _read(rows, {})
        by_user.add(bool(read.keys))
        return tables_by_rank(read, threads)

    parts, _ = map_log(job, ("rank", "label"), count)
    table, groups = join_tables(parts)
    named = {name: groups[f"row_by{nth}"] for nth, name in enumerate(columns.groupings)}
    return CtrByRank(table, named, level, by_user=True in by_user)


def bias_of_file(
    path: Path,
    columns: ImpressionColumns,
    settings: Mapping[str, Any],
    resources: Resources,
    watch: Watch = lambda *_: None,
    *,
    input_format: str = "auto",
) -> PositionBias:
    """Return the `position_bias` of a file, with settings of `bias_settings`."""
    job = FileJob.open({"log": path}, columns, resources, watch, input_format)
    threads = resolve_threads(resources.n_threads)
    keys = {"query": "user", "item": "item"}
    parts, _ = map_log(job, ("rank", "label"), lambda rows: count_pairs(_read(rows, keys), threads).columns())
    return PositionBias(join_pairs(parts, threads), settings, threads)


def _read(rows: Any, keys: Mapping[str, str]) -> Impressions:
    """Return the rows of a table whose columns are named by role; `keys` are columns of ids other than users."""
    users, groups = users_of(rows.column_names), [name for name in rows.column_names if name.startswith("row_by")]
    columns = Columns(user=list(users) or None, rank="rank", label="label", row_by=groups or None)
    return read_impressions(rows, None, {}, None, columns, keys)

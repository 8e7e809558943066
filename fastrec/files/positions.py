"""Clicks by rank and position bias of a log on disk, of any size: DuckDB counts, and only counts reach Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fastrec.counterfactual.counts import check_keys, join_pairs, table_by_rank
from fastrec.counterfactual.result import CtrByRank, PositionBias
from fastrec.exceptions import InputError
from fastrec.files.columns import ImpressionColumns
from fastrec.files.database import run
from fastrec.files.formats.base import quoted
from fastrec.files.job import FileJob, numbers_sql, roles_of_log
from fastrec.files.labels import typed_labels
from fastrec.files.resources import Path, Resources, Watch
from fastrec.files.tables import File, check_groupings, first_where, label_sql, labels_are_strings
from fastrec.inputs.impressions import MAX_RANK
from fastrec.inputs.users import as_labels
from fastrec.runtime.limits import resolve_threads
from fastrec.scored.clusters import MOMENTS

__all__ = ["bias_of_file", "ctr_of_file"]

Array = np.ndarray[Any, Any]
COUNTS = "count(*) AS n, CAST(sum(label) AS BIGINT) AS c"
MOMENTS_OF_USERS = ", ".join(
    f"CAST({of} AS BIGINT) AS m{nth}" for nth, of in enumerate(("sum(n)", "sum(c)", "count(*)", *(
        f"sum({product})" for product in ("n * n", "n * c", "c * c")
    )))
)  # fmt: skip


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
    with job.database(roles_of_log) as loaded:
        con, file = loaded.con, loaded.files["log"]
        _check_rows(con, file)
        by = columns.groupings
        check_groupings(loaded.files, by)
        users = [role for role in file.names if role.startswith("user")]
        ids = [f"CAST(t.{quoted(role)} AS {loaded.ids[role]}) AS {quoted(role)}" for role in users]
        labels = [f"{label_sql(file, f'by{nth}')} AS by{nth}" for nth in range(len(by))]
        picked = ", ".join([*ids, *labels, *numbers_sql(file, ("rank", "label"))])
        rows = f"(SELECT {picked} FROM log AS t)"
        _, table = next(_tables(con, rows, users, None))
        tables: dict[str, dict[Any, Array]] = {}
        for nth, name in enumerate(by):
            found = dict(_tables(con, rows, users, f"by{nth}", len(table)))
            spelled = list(found)
            names = as_labels(spelled) if labels_are_strings(con, [file], f"by{nth}") else typed_labels(spelled)
            tables[name] = dict(sorted(zip(names.tolist(), found.values(), strict=True), key=lambda pair: pair[0]))
        return CtrByRank(table, tables, level, by_user=bool(users))


def _tables(
    con: Any, rows: str, users: Sequence[str], group: str | None, n_ranks: int | None = None
) -> Iterator[tuple[Any, Array]]:
    """Yield the label of each group, None for all rows, and its table by rank."""
    own = [group] if group is not None else []
    there = f" WHERE {group} IS NOT NULL" if group is not None else ""
    inner = ", ".join([*own, "rank", *map(quoted, users)])
    sql = f"SELECT {inner}, {COUNTS} FROM {rows}{there} GROUP BY {inner}"
    if users:
        outer = ", ".join([*own, "rank"])
        sql = f"SELECT {outer}, {MOMENTS_OF_USERS} FROM ({sql}) GROUP BY {outer}"
    columns = run(con, f"{sql} ORDER BY {', '.join([*own, 'rank'])}").fetchnumpy()
    counts = [f"m{nth}" for nth in range(MOMENTS)] if users else ["n", "c"]
    ranks = np.asarray(columns["rank"], np.int64)
    numbers = np.stack([np.asarray(columns[name], np.int64) for name in counts], axis=1)
    if group is None:
        yield None, table_by_rank(ranks, numbers, int(ranks.max(initial=0)))
        return
    labels = np.asarray(columns[group], object)
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(labels), 1), bool), labels[1:] != labels[:-1]]))
    check_keys(len(starts), n_ranks or 0)
    for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(labels)], strict=True):
        yield labels[first], table_by_rank(ranks[first:last], numbers[first:last], n_ranks or 0)


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
    with job.database(lambda _: ((), ("query", "item"))) as loaded:
        con, file = loaded.con, loaded.files["log"]
        _check_rows(con, file)
        ids = [f"CAST(t.{role} AS {loaded.ids[role]}) AS {role}" for role in ("query", "item")]
        picked = ", ".join([*ids, *numbers_sql(file, ("rank", "label"))])
        sql = f"SELECT query, item, rank, {COUNTS} FROM (SELECT {picked} FROM log AS t) GROUP BY query, item, rank"
        found = run(con, sql).fetchnumpy()
    names = {"query": "query", "item": "item", "rank": "rank", "n": "impressions", "c": "clicks"}
    threads = resolve_threads(resources.n_threads)
    counts = join_pairs([{name: np.asarray(found[own]) for own, name in names.items()}], threads)
    return PositionBias(counts, settings, threads)


def _check_rows(con: Any, file: File) -> None:
    """Raise unless labels are 0 or 1 and ranks are from 1 to `MAX_RANK`."""
    wanted = {
        "label": ("CAST(label AS DOUBLE) NOT IN (0, 1)", "must be 0 or 1"),
        "rank": (
            f"CAST(CAST(rank AS DOUBLE) AS BIGINT) NOT BETWEEN 1 AND {MAX_RANK}",
            f"must be integers from 1 to {MAX_RANK:,}",
        ),
    }
    for role, (wrong, form) in wanted.items():
        first, found = first_where(con, file, role, wrong)
        if first is not None:
            raise InputError(file.at(role), f" {form}, found {found} in {file.place(first)}")

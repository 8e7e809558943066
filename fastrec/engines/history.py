"""Users and rows of each item of a history, counted in partitions that have all rows of their users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fastrec.engines.job import Job, error_of, without_rows
from fastrec.exceptions import FastrecError
from fastrec.inputs.arrow import read_ids
from fastrec.inputs.column_names import Columns
from fastrec.inputs.history import HistoryCounts

__all__ = ["count_items", "join_counts"]

Batch = Any  # pyarrow.RecordBatch
ALL = "n_users"  # of a part, in its first row


def count_items(job: Job, item: str, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield a row per item of each part of a partition: its users and rows, and the users of the part."""
    import pyarrow as pa

    for tables in job.tables(batches):
        try:
            found = HistoryCounts.read(tables["history"], Columns(user=job.keys[0], item=item), 1)
        except FastrecError as error:
            raise error_of(**without_rows(error)) from None
        if len(found.users):
            of_part = np.zeros(len(found.users), np.int64)
            of_part[0] = found.n_users
            yield pa.record_batch({"item": pa.array(found.ids), "users": found.users, "rows": found.rows, ALL: of_part})


def join_counts(parts: Any, item: str) -> HistoryCounts:
    """Return the sums of what `count_items` yielded in all partitions, given as an Arrow table."""
    if not parts.num_rows:
        none = np.zeros(0, np.int64)
        return HistoryCounts(none, none, none, 0, 0)
    n_users, n_rows = (int(np.sum(parts.column(name).to_numpy())) for name in (ALL, "rows"))
    found = parts.group_by("item").aggregate([("users", "sum"), ("rows", "sum")])
    users, rows = (found.column(f"{name}_sum").to_numpy().astype(np.int64) for name in ("users", "rows"))
    ids = read_ids(found.column("item"), f"history column {item!r}")
    return HistoryCounts(ids, users, rows, n_users, n_rows)

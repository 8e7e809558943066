"""Logs in files."""

from pathlib import Path

import numpy as np
import pytest

LISTS = "user_id,item_id\n1,5\n1,6\n2,7\n"
TRUTH = "user_id,item_id\n1,6\n2,7\n"


def lists(side):
    """Return the items of each user."""
    return [items for items, *_ in side]


def ranked_lists(first=0, n_users=40, n_items=6, seed=1):
    """Return lists of users from the first on."""
    pa, rng = pytest.importorskip("pyarrow"), np.random.default_rng(seed)
    users = np.repeat(np.arange(first, first + n_users), n_items)
    items = np.concatenate([rng.permutation(30)[:n_items] for _ in range(n_users)])
    return pa.table({"user_id": users, "item_id": items, "rank": np.tile(np.arange(1, n_items + 1), n_users)})


STRANGE = [
    '"; DROP TABLE x; --',
    "item;id, 'of' the \"shop\"",
    "rang\u00a0№",
    "[score]",
    "rowid",
    "c0",
]
duckdb = pytest.importorskip("duckdb")


def write_large(folder: Path, n_rows: int) -> list[Path]:
    """Write shuffled lists of about 20, and a truth."""
    users = n_rows // 20
    tables = {
        "recs": f"SELECT hash(i) % {users} AS user_id, i AS item_id, hash(i) / 1e19 AS score FROM range({n_rows}) r(i)",
        "truth": f"SELECT i AS user_id, i AS item_id FROM range({users}) r(i)",
    }
    with duckdb.connect() as con:
        for name, select in tables.items():
            con.execute(f"COPY ({select}) TO '{folder / name}.parquet'")
    return [folder / f"{name}.parquet" for name in tables]

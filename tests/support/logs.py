"""Logs in files."""

from itertools import pairwise
from pathlib import Path

import pytest

LISTS = "user_id,item_id\n1,5\n1,6\n2,7\n"
TRUTH = "user_id,item_id\n1,6\n2,7\n"


def rows(side):
    """Return [(items, ...) of each user] as plain lists."""
    values = [array.tolist() for array in (side[0], *side[2:])]
    bounds = side[1].tolist()
    return [tuple(column[start:end] for column in values) for start, end in pairwise(bounds)]


def lists(side):
    return [items[0] for items in rows(side)]


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

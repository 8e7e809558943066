"""Columns of any name: names that differ only in case, empty and double names, with the same values on every route."""

import itertools
import json
import random
import re

import numpy as np
import pytest

import fastrec
from fastrec import InputError, evaluate_files
from fastrec.files import job
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

METRICS = ["ndcg@3", "recall@1", "mrr"]


def by_every_route(monkeypatch, *paths, **options):
    """Evaluate files in memory without a database if possible, with one, and sorted on disk by one."""
    yield "whole", evaluate_files(*paths, METRICS, **options)
    with monkeypatch.context() as patch:
        patch.setattr(job, "COPIES", 1 << 60)
        yield "streamed", evaluate_files(*paths, METRICS, **options)


def write(path, format_, names, rows):
    """Write a table; return the path as a string."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if format_ == "parquet":
        arrays = [pa.array([row[at] for row in rows]) for at in range(len(names))]
        pq.write_table(pa.Table.from_arrays(arrays, names=list(names)), path, row_group_size=5)
    elif format_ == "jsonl":
        path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    else:
        quoted = (",".join('"' + str(value).replace('"', '""') + '"' for value in row) for row in [names, *rows])
        path.write_bytes("".join(line + "\n" for line in quoted).encode())
    return str(path)


@pytest.mark.parametrize("format_", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize(
    "names",
    [
        ["user_id", "item_id", "rank", "Rank", "rank_1", "Rank_1", "gain"],
        ["c0", "", "c1", "c2", "c6", "C3", "c4"],
        ["User_Id", "user_id", "RANK", "rank", "Rank", "gain", "Gain"],
        ["é", "É", " ", "a.b", "a", '"\n', "'; /~$*,{"],
    ],
)
def test_every_route_reads_the_same_columns_whatever_their_names(tmp_path, monkeypatch, names, format_):
    """Each column orders the lists in another way, so that a wrong column shows; `fuzz.columns` draws more names."""
    rng, folder = random.Random(2), tmp_path
    user, item, rank, gain, *others = names
    recs = {u: rng.sample(range(9), 5) for u in range(6)}
    truth = {u: {i: rng.randint(1, 3) for i in rng.sample(range(9), 3)} for u in recs}
    rows = []
    for u, items in recs.items():
        more = [rng.sample(range(1, 6), 5) for _ in others]
        rows += [[u, i, place, 0, *(column[place - 1] for column in more)] for place, i in enumerate(items, 1)]
    rng.shuffle(rows)
    sides = {"recs": rows, "truth": [[u, i, 0, g, 7, 7, 7] for u in truth for i, g in truth[u].items()]}
    for side, values in sides.items():
        for nth in range(2):  # files of a folder with columns in another order, except for CSV
            order = list(range(7))
            if format_ != "csv":
                rng.shuffle(order)
            own = [[row[at] for at in order] for row in values[nth::2]]
            write(folder / side / f"{nth}.{format_}", format_, [names[at] for at in order], own)
    expected = fastrec.evaluate(recs, truth, METRICS)
    options = {"user": user, "item": item, "rank": rank, "gain": gain, "input_format": format_}
    for route, report in by_every_route(monkeypatch, folder / "recs", folder / "truth", **options):
        assert [report[name] for name in METRICS] == [expected[name] for name in METRICS], route


def test_files_of_several_schemas_keep_the_order_of_their_rows(tmp_path, monkeypatch):
    """Files with names that differ only in case are read by their own schemas; lists in the order of rows stay so."""
    rng, n = np.random.default_rng(1), 30_000
    users, items = rng.integers(0, 50, n), np.arange(n)
    for nth, part in enumerate(np.array_split(np.arange(n), 7)):
        columns = {"item_id": items[part], "ITEM_ID": -items[part], "user_id": users[part], "x": items[part]}
        kept = sorted(columns, reverse=nth % 3 == 0)
        (tmp_path / "recs").mkdir(exist_ok=True)
        table = pa.table({name: columns[name] if name != "x" or nth != 2 else ["y"] * len(part) for name in kept})
        pq.write_table(table, tmp_path / "recs" / f"{nth}.parquet", row_group_size=500)
    recs = {user: items[users == user].tolist() for user in range(50)}
    truth = {user: rng.choice(recs[user], 3, replace=False).tolist() for user in recs}
    pairs = [(user, item) for user in truth for item in truth[user]]
    write(tmp_path / "truth", "parquet", ["user_id", "item_id"], pairs)
    expected = fastrec.evaluate(recs, truth, METRICS)
    for route, report in by_every_route(monkeypatch, tmp_path / "recs", tmp_path / "truth"):
        assert [report[name] for name in METRICS] == [expected[name] for name in METRICS], route


@pytest.mark.parametrize("ending", ["parquet", "arrow", "arrows"])
def test_a_field_of_a_nested_column_is_not_a_column(tmp_path, monkeypatch, ending):
    """Parquet gives the field b of a column a the same name as a column "a.b"."""
    for order in itertools.permutations(["a", "a.b", "user_id"]):
        columns = {"a": [{"b": 1, "user_id": 9}] * 2, "a.b": [2, 1], "user_id": [1, 1], "item_id": [5, 6]}
        recs = write_table({name: columns[name] for name in (*order, "item_id")}, tmp_path / f"recs.{ending}")
        truth = write(tmp_path / "truth", "parquet", ["user_id", "item_id"], [(1, 6)])
        for route, report in by_every_route(monkeypatch, recs, truth, rank="a.b"):
            assert report["recall@1"] == 1.0, (route, order)


def test_a_key_twice_in_an_object_of_json_lines(tmp_path):
    for name in ("User_Id", "user_id"):
        path = tmp_path / "recs.jsonl"
        path.write_text('{"User_Id": 1, "user_id": 2, "item_id": 5}\n{"item_id": 1, "item_id": 2, "user_id": 1}\n')
        with pytest.raises(InputError, match=re.escape("line 2: duplicate key in an object")):
            evaluate_files(path, path, METRICS, user=name, by="User_Id" if name == "user_id" else "user_id")

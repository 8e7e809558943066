"""The same rows give the same bits on every route: frames, and files of each format, whole or in parts on disk."""

import json

import numpy as np
import pytest

from fastrec import evaluate, evaluate_files
from fastrec.files import job
from support.tables import write_table

pa = pytest.importorskip("pyarrow")

METRICS = ["ndcg", "recall", "map", "mrr", "hit_rate"]
CUTOFFS = [1, 3, 10]
OPTIONS = {"metrics": METRICS, "k": CUTOFFS, "per_user": True}
FORMS = ("parquet", "csv", "csv.gz", "csv.zst", "jsonl", "arrow", "arrows", "feather")
FILES = [f"{form}, {way}" for form in FORMS for way in ("whole", "in parts")]
FRAMES = ["PyArrow", "PyArrow dictionaries", "pandas", "Polars"]
TREC = ["trec, whole", "trec, in parts"]
KINDS = ["integers", "strings", "tied scores"]


def make_tables(kind):
    """Return lists with scores, some lists longer than others, and truth, with rows in any order."""
    rng = np.random.default_rng(KINDS.index(kind))
    lengths = rng.integers(1, 300, 12)
    users = np.repeat(np.arange(12), lengths)
    items = np.concatenate([rng.permutation(400)[:n] for n in lengths])
    scores = rng.integers(0, 40, len(users)) / 8 if kind == "tied scores" else rng.permutation(len(users)) / 1024
    held = [(user, item) for user in range(1, 14) for item in rng.permutation(400)[:5]]
    order = rng.permutation(len(users))
    truth_users, truth_items = np.array(held)[rng.permutation(len(held))].T

    def ids(values, letter):
        return [f"{letter}{value}" for value in values.tolist()] if kind == "strings" else values

    recs = {"user_id": ids(users[order], "u"), "item_id": ids(items[order], "item "), "score": scores[order]}
    return pa.table(recs), pa.table({"user_id": ids(truth_users, "u"), "item_id": ids(truth_items, "item ")})


def write_as_trec(table, path):
    is_run = "score" in table.column_names
    line = "{user_id} Q0 {item_id} 1 {score} x\n" if is_run else "{user_id} 0 {item_id} 1\n"
    path.write_text("".join(line.format(**row) for row in table.to_pylist()))
    return str(path)


def in_frames(route, tables):
    if route == "PyArrow dictionaries":
        tables = [pa.table({name: table[name].dictionary_encode() for name in table.column_names}) for table in tables]
    elif route == "pandas":
        pytest.importorskip("pandas")
        tables = [table.to_pandas() for table in tables]
    elif route == "Polars":
        tables = map(pytest.importorskip("polars").from_arrow, tables)
    return evaluate(*tables, **OPTIONS)


def in_files(route, tables, folder):
    form, way = route.split(", ")
    write = write_as_trec if form == "trec" else write_table
    paths = [write(table, folder / f"{name}.{form}") for name, table in zip(("recs", "truth"), tables, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        if way == "in parts":
            patch.setattr(job, "COPIES", 10**9)
        return evaluate_files(*paths, **OPTIONS, memory="64MB" if way == "in parts" else None)


def plain(report):
    """Return everything that a report says, numbers as their bits."""
    users = [str(user) for user in report.user_ids.tolist()]
    order = np.argsort(users)
    values = {name: report.per_user[name][order].view(np.int64).tolist() for name in report}
    document = json.loads(report.to_json())
    for words in ("settings", "data", "digest"):  # TREC files have strings as ids, and always gains
        document.pop(words, None)
    return {"users": sorted(users), "values": values, "document": document}


@pytest.mark.parametrize("kind", KINDS)
def test_every_pair_of_routes_has_the_same_bits(tmp_path, kind):
    tables = make_tables(kind)
    wanted = plain(in_frames(FRAMES[0], tables))
    for route in FRAMES[1:]:
        assert plain(in_frames(route, tables)) == wanted, route
    for route in FILES if kind == "strings" else FILES + TREC:  # which has no blanks in ids
        assert plain(in_files(route, tables, tmp_path)) == wanted, route

"""Folders of many small files: each is opened once, and gives the bits of one file with all rows."""

import collections
import gzip
import itertools
import json

import numpy as np
import pytest

import fastrec
from fastrec.files import job, parquet, resources
from fastrec.files.contents import SMALL, Contents
from support.bits import mean_bits
from support.opens import counting_opens

pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
pq = pytest.importorskip("pyarrow.parquet")

N_FILES, USERS_PER_FILE = 200, 20
LISTS, LOG = ["ndcg@10", "recall@5", "mrr"], ["auc", "gauc", "log_loss"]


def write_packed(table, path):
    with gzip.open(path, "wb") as stream:
        csv.write_csv(table, stream)


WRITERS = {
    "parquet": pq.write_table,
    "arrow": feather.write_feather,
    "csv": csv.write_csv,
    "csv.gz": write_packed,
}


def parts(seed, rows_per_user, *, spelled=False):
    """Yield a table of the rows of some users for each file."""
    rng = np.random.default_rng(seed)
    for nth in range(N_FILES):
        users = np.repeat(np.arange(USERS_PER_FILE) + nth * USERS_PER_FILE, rows_per_user)
        items = np.concatenate([rng.permutation(40)[:rows_per_user] for _ in range(USERS_PER_FILE)])
        if spelled:
            users, items = (np.char.add("ü", own.astype(str)) for own in (users, items))
        columns = {"user_id": users, "item_id": items, "score": rng.random(len(users))}
        yield pa.table({**columns, "label": rng.integers(0, 2, len(users))})


def write(folder, form, tables):
    folder.mkdir()
    for nth, table in enumerate(tables):
        WRITERS[form](table, folder / f"part-{nth:05}.{form}")
    return folder


def once():
    return collections.Counter({f"part-{nth:05}": 1 for nth in range(N_FILES)})


def by_part(opens):
    return collections.Counter({name.partition(".")[0]: number for name, number in opens.items()})


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("spelled", [False, True], ids=["integers", "strings"])
def test_each_of_many_files_of_lists_is_opened_once(tmp_path, form, spelled):
    lists = list(parts(1, 12, spelled=spelled))
    truth = [own.select(["user_id", "item_id"]) for own in parts(2, 3, spelled=spelled)]
    recs_folder, truth_folder = write(tmp_path / "recs", form, lists), write(tmp_path / "truth", form, truth)
    with counting_opens(recs_folder) as of_recs, counting_opens(truth_folder) as of_truth:
        found = fastrec.evaluate_files(recs_folder, truth_folder / "*", LISTS, n_threads=2)
    assert by_part(of_recs) == by_part(of_truth) == once()
    columns = {"user": "user_id", "item": "item_id"}
    wanted = fastrec.evaluate(pa.concat_tables(lists), pa.concat_tables(truth), LISTS, **columns, score="score")
    assert mean_bits(found.estimates) == mean_bits(wanted.estimates)


@pytest.mark.parametrize("spelled", [False, True], ids=["integers", "strings"])
@pytest.mark.parametrize("shared", [0, 1 << 30], ids=["threads", "one thread"])
@pytest.mark.parametrize("many", [0, 1 << 20], ids=["numbered", "plain"])
def test_runs_of_row_groups_are_read_as_one_table(tmp_path, monkeypatch, spelled, shared, many):
    """Groups of 1 to 70 rows, and none, in runs of at most 50, in threads or not."""
    monkeypatch.setattr(parquet, "MIN_PIECE", 50)
    monkeypatch.setattr(parquet, "ROWS_PER_PIECE", 50)
    monkeypatch.setattr(parquet, "MIN_SHARED", shared)
    monkeypatch.setattr(parquet, "MANY_STRINGS", many)
    whole = pa.concat_tables(list(parts(1, 12, spelled=spelled))[:10])
    order, sizes = np.random.default_rng(4).permutation(len(whole)), [1, 70, 0, 0, 20, 3, 0, 49, 51, 0]
    folder, at = tmp_path / "recs", 0
    folder.mkdir()
    for nth, size in enumerate(itertools.cycle(sizes)):
        own = whole.take(order[at : at + size])
        pq.write_table(own, folder / f"part-{nth:05}.parquet", row_group_size=1 + nth % 30)
        at += size
        if at >= len(whole):
            break
    truth = pa.concat_tables(list(parts(2, 3, spelled=spelled))[:10]).select(["user_id", "item_id"])
    pq.write_table(truth, tmp_path / "truth.parquet")
    monkeypatch.setattr(job, "open_database", None)  # whatever is read by DuckDB fails
    found = fastrec.evaluate_files(folder, tmp_path / "truth.parquet", LISTS, n_threads=3)
    wanted = fastrec.evaluate(whole, truth, LISTS, user="user_id", item="item_id", score="score")
    assert mean_bits(found.estimates) == mean_bits(wanted.estimates)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_each_of_many_files_of_a_log_is_opened_once(tmp_path, form):
    tables = list(parts(3, 12))
    folder = write(tmp_path / "log", form, tables)
    with counting_opens(folder) as opens:
        found = fastrec.evaluate_files(folder, None, LOG)
    assert by_part(opens) == once()
    log = pa.concat_tables(tables)
    wanted = fastrec.evaluate_scores(log, metrics=LOG, label="label", score="score", user="user_id")
    assert mean_bits(found.estimates) == mean_bits(wanted.estimates)


@pytest.mark.parametrize(("form", "of_database"), [("csv", 1), ("jsonl", 2), ("run", 1)])
def test_files_that_a_database_reads_are_opened_once_more_than_it_opens_them(tmp_path, form, of_database):
    """A few rows of CSV, as DuckDB reads them as fast, JSON lines and TREC runs."""
    rows = [(user, item, 1 / (2 + item)) for user in range(9) for item in range(3)]
    lines = {
        "csv": ["user_id,item_id,score", *("{},{},{}".format(*row) for row in rows)],
        "jsonl": [json.dumps(dict(zip(("user_id", "item_id", "score"), row, strict=True))) for row in rows],
        "run": ["{} Q0 {} 1 {} own".format(*row) for row in rows],
    }[form]
    folder = tmp_path / "recs"
    folder.mkdir()
    head, lines = (lines[:1], lines[1:]) if form == "csv" else ([], lines)
    for nth in range(9):
        (folder / f"{nth}.{form}").write_text("\n".join([*head, *lines[3 * nth : 3 * nth + 3], ""]))
    truth = tmp_path / "truth.csv"
    truth.write_text("user_id,item_id\n0,0\n8,1\n")
    with counting_opens(folder) as opens:
        found = fastrec.evaluate_files(folder, truth, ["mrr", "hit_rate@1"])
    assert dict(found) == {"mrr": 0.75, "hit_rate@1": 0.5}
    assert {*opens.values()} == {1 + of_database}


def test_parquet_with_labels_of_users_is_opened_up_to_three_times_more(tmp_path):
    """By DuckDB, which may open a file in several threads."""
    lists = [own.drop_columns("label") for own in parts(1, 12)]
    folder = write(tmp_path / "recs", "parquet", lists)
    users = tmp_path / "users.csv"
    users.write_text("user_id,plan\n" + "".join(f"{user},{user % 3}\n" for user in range(N_FILES * USERS_PER_FILE)))
    truth = tmp_path / "truth.parquet"
    pq.write_table(lists[0].select(["user_id", "item_id"]), truth)
    with counting_opens(folder) as opens:
        found = fastrec.evaluate_files(folder, truth, LISTS, users=users, by="plan")
    assert len(found.groups["plan"]) == 3
    assert max(by_part(opens).values()) <= 4


def test_files_that_would_fill_the_memory_are_opened_again(tmp_path, monkeypatch):
    folder = write(tmp_path / "log", "parquet", parts(3, 12))
    monkeypatch.setattr(resources, "SHARE_OF_CONTENTS", 1 / (1 << 12))
    with counting_opens(folder) as opens:
        found = fastrec.evaluate_files(folder, None, LOG, memory="64MB", n_threads=1)
    assert {*by_part(opens).values()} == {1, 3}
    monkeypatch.undo()
    wanted = fastrec.evaluate_files(folder, None, LOG)
    assert mean_bits(found.estimates) == mean_bits(wanted.estimates)


def test_contents_keep_small_files_up_to_their_room(tmp_path):
    sizes = {"a": 600, "b": 500, "c": 400, "large": SMALL + 1, "none": 0}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(name[:1].encode() * size)
    contents = Contents(1000)
    for _ in range(2):
        for name, size in sizes.items():
            with contents.open(str(tmp_path / name)) as stream:
                assert stream.read() == name[:1].encode() * size
    assert [name for name in sizes if contents.kept(str(tmp_path / name)) is not None] == ["a", "c"]
    contents.forget()
    with contents.open(str(tmp_path / "c")) as stream:
        assert stream.read() == b"c" * 400
    assert contents.kept(str(tmp_path / "c")) is None

"""Parquet cut by user, in memory or on disk: the same bits, the same errors, nothing left behind."""

import os

import numpy as np
import pytest

import fastrec
from fastrec.files import job, lists, parts
from fastrec.files import rows as log_files
from fastrec.files.columns import ListColumns
from fastrec.files.opened import open_files
from fastrec.files.parquet import find_plain
from fastrec.files.resources import Resources
from fastrec.inputs.grouping import KeyParts
from tests.support.log_files import LOG, LOGS_IN_MEMORY, everything, log_of

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

LISTS = ["ndcg@5", "map", "gini@5", "mrr"]


def noting(real, seen):
    """Return a function that cuts as another does, and notes the number of parts, or None if in doubt."""

    def cut(*given, **options):
        found = real(*given, **options)
        seen.append(None if found is None else int(np.count_nonzero(found._sizes)))
        return found

    return cut


@pytest.fixture
def cut(monkeypatch):
    """Cut everything, into some ten parts; return what was cut: the number of parts each time, None if in doubt."""
    seen = []

    def begin(n_parts=10):
        monkeypatch.setattr(job, "COPIES", 1 << 40)
        monkeypatch.setattr(job, "cut_by_user", noting(parts.cut_by_user, seen))
        monkeypatch.setattr(parts, "_n_parts", lambda *_: n_parts)
        monkeypatch.setattr(parts, "MIN_PIECE", 500)
        monkeypatch.setattr(parts, "MAX_PIECE", 500)
        monkeypatch.setattr(parts, "ROWS_PER_SAMPLE", 7)
        return seen

    return begin


@pytest.fixture
def cut_in_memory(monkeypatch):
    """Cut shuffled lists and logs in memory, into some ten parts; return what was cut, as `cut` does."""
    seen = []

    def begin(rows=600):
        for module in (lists, log_files):
            monkeypatch.setattr(module, "cut_in_memory", noting(parts.cut_in_memory, seen))
        monkeypatch.setattr(parts, "PIECE_IN_MEMORY", 500)
        monkeypatch.setattr(lists, "ROWS_TO_EVALUATE", rows)
        monkeypatch.setattr(log_files, "ROWS_TO_GROUP", rows)
        return seen

    return begin


def rows_of_lists(users):
    """Return lists with tied scores, and truth, in any order."""
    draw = np.random.default_rng(4)
    recs, truth = np.repeat(users, 20), np.repeat(users[::2], 5)
    items = np.concatenate([draw.permutation(60)[:20] for _ in users])
    held = np.concatenate([draw.permutation(60)[:5] for _ in users[::2]])
    order, of_truth = draw.permutation(len(recs)), draw.permutation(len(truth))
    return (
        pa.table({"user_id": recs[order], "item_id": items[order], "score": draw.integers(0, 6, len(recs)) / 4}),
        pa.table({"user_id": truth[of_truth], "item_id": held[of_truth], "gain": draw.integers(0, 3, len(truth))}),
    )


def write(folder, *tables):
    paths = [os.fspath(folder / f"{name}.parquet") for name, _ in zip(("recs", "truth"), tables, strict=False)]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, row_group_size=1300)
    return paths


@pytest.mark.parametrize(
    "users",
    [
        np.arange(300),
        np.arange(300) * 7 - 900,
        np.concatenate([np.arange(200), np.arange(100) + 2**40]),  # wide after narrow row groups
        np.arange(300) + 2**62,
        np.array([5, 6]),
    ],
    ids=["dense", "negative", "wide", "large", "one"],
)
@pytest.mark.parametrize("ties", ["input", "expected"])
def test_lists(tmp_path, cut, users, ties):
    paths = write(tmp_path, *rows_of_lists(users))
    metrics = LISTS if ties == "input" else ["ndcg@5", "map"]
    ask = {"metrics": metrics, "ties": ties, "per_user": True, "n_items": 60}
    whole = fastrec.evaluate_files(*paths, **ask)
    seen = cut()
    assert everything(fastrec.evaluate_files(*paths, **ask, temp_directory=tmp_path)) == everything(whole)
    assert seen == [len(np.unique(users)) if len(users) < 10 else 10]
    assert sorted(os.listdir(tmp_path)) == ["recs.parquet", "truth.parquet"]


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    "users",
    [np.arange(300) * 7 - 900, np.concatenate([np.arange(200), np.arange(100) + 2**40]), np.array([5, 6])],
    ids=["spread", "wide", "two"],
)
def test_lists_in_memory(tmp_path, cut_in_memory, users, n_threads):
    paths = write(tmp_path, *rows_of_lists(users))
    ask = {"metrics": LISTS, "ties": "input", "per_user": True, "n_items": 60, "n_threads": n_threads}
    whole = fastrec.evaluate_files(*paths, **ask)
    stages = []
    seen = cut_in_memory(600 if len(users) > 2 else 10)
    found = fastrec.evaluate_files(*paths, **ask, progress=lambda *given: stages.append(given))
    assert everything(found) == everything(whole)
    n_rows = sum(pq.read_metadata(path).num_rows for path in paths)
    assert seen == [min(n_rows // 600, 256) if len(users) > 2 else 2]
    assert stages == sorted(stages) and stages[-1] == (n_rows, n_rows)


def test_what_is_not_cut_in_memory(tmp_path, cut_in_memory):
    """Rows by user stay in place; the popularity of items in the history follows from all its rows."""
    recs, truth = rows_of_lists(np.arange(300))
    ordered = [table.take(pa.compute.sort_indices(table["user_id"])) for table in (recs, truth)]
    (tmp_path / "sorted").mkdir()
    paths, by_user = write(tmp_path, recs, truth), write(tmp_path / "sorted", *ordered)
    history = os.fspath(tmp_path / "history.parquet")
    pq.write_table(truth.select(["user_id", "item_id"]), history)
    seen = cut_in_memory()
    fastrec.evaluate_files(*by_user, "mrr", ties="input")
    assert seen == [None]
    fastrec.evaluate_files(*paths, "popularity@5", ties="input", history=history)
    assert seen == [None]
    fastrec.evaluate_files(*paths, "mrr", ties="input")
    assert seen == [None, (len(recs) + len(truth)) // 600]


@pytest.mark.parametrize("fault", ["null", "tie", "negative item"])
def test_faults_in_memory_are_found_by_duckdb(tmp_path, cut_in_memory, fault):
    recs, truth = rows_of_lists(np.arange(300) * 3)
    at = 4321
    if fault == "null":
        items = recs["item_id"].to_pylist()
        items[at] = None
        recs = recs.set_column(1, "item_id", pa.array(items, pa.int64()))
    elif fault == "negative item":
        items = recs["item_id"].to_pylist()
        items[at] = -5
        recs = recs.set_column(1, "item_id", pa.array(items, pa.int64()))
    paths = write(tmp_path, recs, truth)
    ask = {"ties": "error" if fault == "tie" else "input"}
    with pytest.raises(fastrec.FastrecError) as whole:
        fastrec.evaluate_files(*paths, "mrr", **ask)
    cut_in_memory()
    with pytest.raises(fastrec.FastrecError) as found:
        fastrec.evaluate_files(*paths, "mrr", **ask)
    assert (type(found.value), str(found.value)) == (type(whole.value), str(whole.value))


def test_subtopics(tmp_path, cut):
    users = np.arange(300) * 7 - 900
    recs, truth = rows_of_lists(users)
    draw = np.random.default_rng(6)
    topics = truth.select(["user_id", "item_id"]).append_column("subtopic", pa.array(draw.integers(0, 3, len(truth))))
    paths, covering = write(tmp_path, recs, truth), os.fspath(tmp_path / "subtopics.parquet")
    pq.write_table(topics.take(draw.permutation(len(topics))), covering, row_group_size=700)
    ask = {"metrics": ["alpha_ndcg@5", "err_ia@5", "map_ia"], "ties": "id_asc", "per_user": True}
    whole = fastrec.evaluate_files(*paths, **ask, subtopics=covering)
    assert whole["map_ia"] > 0
    seen = cut()
    found = fastrec.evaluate_files(*paths, **ask, subtopics=covering, temp_directory=tmp_path)
    assert everything(found) == everything(whole)
    assert seen == [10]


def test_logs(tmp_path, cut):
    draw = np.random.default_rng(5)
    log = pa.table(
        {
            "user_id": draw.integers(0, 400, 6000),
            "label": draw.random(6000) < 0.3,
            "score": np.round(draw.random(6000), 2).astype(np.float32),
        }
    )
    (path,) = write(tmp_path, log)
    whole = fastrec.evaluate_files(path, metrics=LOG, per_user=True)
    seen = cut()
    assert everything(fastrec.evaluate_files(path, metrics=LOG, per_user=True)) == everything(whole)
    assert seen == [10]


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", LOGS_IN_MEMORY)
@pytest.mark.parametrize(
    "users",
    [np.arange(300) * 7 - 900, np.concatenate([np.arange(200), np.arange(100) + 2**40]), np.array([5, 6])],
    ids=["spread", "wide", "two"],
)
def test_a_log_cut_in_memory_has_the_bits_of_one_read_whole(tmp_path, cut_in_memory, users, kind, n_threads):
    draw = np.random.default_rng(7)
    n = 6000
    columns = log_of(users[draw.integers(0, len(users), n)], draw)
    (path,) = write(tmp_path, pa.table(columns))
    metrics = [name for name in LOG if name != "ndcg@3" or kind != "weights"]
    ask = {"metrics": metrics, "per_user": True, "n_threads": n_threads, **LOGS_IN_MEMORY[kind]}
    whole = fastrec.evaluate_files(path, **ask)
    stages = []
    seen = cut_in_memory(600 if len(users) > 2 else 10)
    found = fastrec.evaluate_files(path, **ask, progress=lambda *given: stages.append(given))
    assert everything(found) == everything(whole)
    assert found.to_json() == whole.to_json()
    assert seen == [10 if len(users) > 2 else 2]
    assert stages == sorted(stages) and stages[-1] == (n, n)


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.int16, np.int64])
def test_a_log_by_any_integers_is_grouped(tmp_path, cut_in_memory, kind):
    """The ids of users keep their type in Parquet."""
    draw = np.random.default_rng(9)
    users = (draw.integers(0, 200, 6000) - (0 if np.dtype(kind).kind == "u" else 100)).astype(kind)
    log = {"user_id": users, "label": draw.random(6000) < 0.3, "score": draw.random(6000)}
    (path,) = write(tmp_path, pa.table(log))
    whole = fastrec.evaluate_files(path, metrics=LOG, per_user=True)
    seen = cut_in_memory()
    found = fastrec.evaluate_files(path, metrics=LOG, per_user=True)
    assert everything(found) == everything(whole) and found.user_ids.dtype == whole.user_ids.dtype
    assert seen == [10]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_user_has_most_rows_of_a_log(tmp_path, cut_in_memory, n_threads):
    draw = np.random.default_rng(11)
    users = np.where(draw.random(6000) < 0.8, 150, draw.integers(0, 300, 6000))
    (path,) = write(
        tmp_path, pa.table({"user_id": users, "label": draw.random(6000) < 0.3, "score": draw.random(6000)})
    )
    ask = {"metrics": LOG, "per_user": True, "n_threads": n_threads}
    whole = fastrec.evaluate_files(path, **ask)
    seen = cut_in_memory()
    assert everything(fastrec.evaluate_files(path, **ask)) == everything(whole)
    assert 2 <= seen[0] < 10


@pytest.mark.parametrize("route", ["in memory", "on disk"])
def test_users_of_a_log_ascend(tmp_path, cut_in_memory, cut, route):
    """Also those of a part whose rows are by user in another order."""
    draw = np.random.default_rng(12)
    users = np.append(draw.permutation(np.arange(6000) % 200), np.repeat(np.arange(1010, 1000, -1), 60))
    n = len(users)
    (path,) = write(tmp_path, pa.table({"user_id": users, "label": draw.random(n) < 0.3, "score": draw.random(n)}))
    seen = cut_in_memory() if route == "in memory" else cut()
    found = fastrec.evaluate_files(path, metrics=["gauc", "auc"], per_user=True)
    assert found.user_ids.tolist() == [*range(200), *range(1001, 1011)]
    arrays = fastrec.evaluate_scores(pq.read_table(path).sort_by("user_id"), metrics=["gauc", "auc"], per_user=True)
    assert everything(found) == everything(arrays)
    assert seen[0] > 5


@pytest.mark.parametrize("fault", ["score", "label", "null"])
def test_faults_of_logs_in_memory_are_found_by_duckdb(tmp_path, cut_in_memory, fault):
    draw = np.random.default_rng(10)
    columns = {"user_id": draw.integers(0, 300, 6000), "label": draw.integers(0, 2, 6000), "score": draw.random(6000)}
    if fault == "score":
        columns["score"][4321] = np.nan
    elif fault == "label":
        columns["label"][4321] = 2
    table = pa.table(columns)
    if fault == "null":
        table = table.set_column(1, "label", pa.array([None if at == 4321 else 1 for at in range(6000)], pa.int64()))
    (path,) = write(tmp_path, table)
    with pytest.raises(fastrec.InputError) as whole:
        fastrec.evaluate_files(path, metrics=["auc"])
    seen = cut_in_memory()
    with pytest.raises(fastrec.InputError) as found:
        fastrec.evaluate_files(path, metrics=["auc"])
    assert str(found.value) == str(whole.value) and "4322" in str(whole.value)
    assert seen == [None if fault == "null" else 10]


def test_a_file_gives_the_columns_that_memory_gives(tmp_path):
    draw = np.random.default_rng(13)
    kinds = {"user_id": np.int64, "item_id": np.int32, "score": np.float32, "rank": np.int16}
    columns = {name: draw.integers(-9, 9, 5000).astype(kind) for name, kind in kinds.items()}
    path = os.fspath(tmp_path / "recs.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=1300)
    (plain,) = find_plain(open_files({"recs": path}, ListColumns(rank="rank"), "auto")).values()
    ranges = KeyParts(np.array([-3, 0, 5]))
    spill = parts._Spill(os.fspath(tmp_path), plain)
    tables = [parts._Table(plain, store, ranges) for store in (parts._Kept(plain), spill)]
    for table in tables:
        for group in (2, 0, 3, 1):
            table.cut(group, 500)
        assert table.arrange().tolist() == np.bincount(np.digitize(columns["user_id"], [-3, 0, 5])).tolist()
    for part in range(4):
        assert tables[0].read(part).equals(tables[1].read(part))
        wanted = columns["item_id"][np.digitize(columns["user_id"], [-3, 0, 5]) == part]
        assert tables[0].column("item", part).tolist() == wanted.tolist()
    spill.close()


def test_a_user_with_most_rows_is_left_to_duckdb(tmp_path, cut, monkeypatch):
    users = np.append(np.arange(50), np.repeat(np.arange(50, 52), 1))
    recs, truth = rows_of_lists(users)
    many = pa.table({"user_id": np.full(4000, 7), "item_id": np.arange(1000, 5000), "score": np.zeros(4000)})
    paths = write(tmp_path, pa.concat_tables([recs, many]), truth)
    whole = fastrec.evaluate_files(*paths, metrics=["ndcg@5"], per_user=True)
    seen = cut()
    monkeypatch.setattr(parts, "BYTES_PER_ROW", 100_000)
    found = fastrec.evaluate_files(*paths, metrics=["ndcg@5"], per_user=True, memory="120MB")
    assert everything(found) == everything(whole)
    assert seen == [None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([None, *range(5999)]),
        pa.array([-1, *range(5999)]),
        pa.array([f"i{n}" for n in range(6000)]),
        pa.array([0, 0, *range(5998)]),
    ],
    ids=["null", "negative", "strings", "twice"],
)
def test_faults_are_those_of_other_ways(tmp_path, cut, column):
    users = np.repeat(np.arange(300), 20)
    table = pa.table({"user_id": users, "item_id": column, "score": np.arange(6000.0)})
    truth = table.slice(20, 3000).select(["user_id", "item_id"])
    paths = write(tmp_path, table, truth)

    def outcome():
        try:
            return everything(fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True))
        except fastrec.FastrecError as error:
            return str(error)

    whole = outcome()
    cut()
    assert outcome() == whole


def test_too_many_parts_are_left_to_duckdb(tmp_path, cut):
    paths = write(tmp_path, *rows_of_lists(np.arange(300)))
    whole = fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)
    seen = cut(parts.MAX_PARTS + 1)
    assert everything(fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)) == everything(whole)
    assert seen == [None]


def test_most_parts(tmp_path, cut):
    paths = write(tmp_path, *rows_of_lists(np.arange(900)))
    whole = fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)
    seen = cut(parts.MAX_PARTS)
    assert everything(fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)) == everything(whole)
    assert seen == [parts.MAX_PARTS]


def test_a_full_disk_is_told_as_by_duckdb(tmp_path, cut, monkeypatch):
    paths = write(tmp_path, *rows_of_lists(np.arange(300)))
    whole = fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)
    seen = cut()
    monkeypatch.setattr(parts._Spill, "_check", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    assert everything(fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)) == everything(whole)
    assert seen == [None]


def test_progress_counts_rows(tmp_path, cut):
    paths = write(tmp_path, *rows_of_lists(np.arange(300)))
    told = []
    cut()
    fastrec.evaluate_files(*paths, metrics=["mrr"], progress=lambda *what: told.append(what))
    assert told[0] == (0, 6750) and told[-1] == (6750, 6750)
    assert told == sorted(told) and len(told) > 5


@pytest.mark.parametrize("fault", ["label", "twice"])
def test_a_fault_of_the_last_user_is_told_as_by_other_ways(tmp_path, cut, fault):
    users = np.repeat(np.arange(300), 20)
    columns = {"user_id": users, "score": np.linspace(0, 1, 6000)}
    if fault == "label":
        tables = [pa.table({**columns, "label": np.append(np.arange(5999) % 2, 2)})]
        metrics = ["log_loss"]
    else:
        recs = pa.table({**columns, "item_id": np.append(np.arange(5999) % 20, 0)})
        tables, metrics = [recs, recs.slice(0, 5000).select(["user_id", "item_id"])], ["mrr"]
    paths = write(tmp_path, *tables)

    def message():
        with pytest.raises(fastrec.InputError) as caught:
            fastrec.evaluate_files(*paths, metrics=metrics)
        return str(caught.value)

    whole = message()
    seen = cut()
    assert message() == whole.replace(" in row 6000", "")  # rows that were streamed have no numbers
    assert seen == [10]


def test_an_empty_row_group_is_cut(tmp_path, cut):
    recs, truth = rows_of_lists(np.arange(300))
    paths = write(tmp_path, recs, truth)
    with pq.ParquetWriter(paths[0], recs.schema) as writer:
        for table in (recs.slice(0, 3000), recs.slice(0, 0), recs.slice(3000)):
            writer.write_table(table)
    whole = fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)
    seen = cut()
    assert everything(fastrec.evaluate_files(*paths, metrics=["mrr"], per_user=True)) == everything(whole)
    assert seen == [10]


@pytest.mark.parametrize("error", [OSError, ValueError])
def test_an_error_of_progress_reaches_the_caller(tmp_path, cut, error):
    paths = write(tmp_path, *rows_of_lists(np.arange(300)))
    cut()

    def progress(done, _):
        if done:
            raise error("stop here")

    with pytest.raises(error, match=r"^stop here$"):
        fastrec.evaluate_files(*paths, metrics=["mrr"], progress=progress)


def test_segments_by_integers_are_cut(tmp_path, cut):
    draw = np.random.default_rng(6)
    columns = {"user_id": draw.integers(0, 400, 6000), "label": draw.random(6000) < 0.3, "score": draw.random(6000)}
    (path,) = write(tmp_path, pa.table({**columns, "position": draw.integers(1, 5, 6000)}))
    ask = {"metrics": ["auc", "log_loss"], "row_by": "position"}
    whole = fastrec.evaluate_files(path, **ask)
    cut()
    found = fastrec.evaluate_files(path, **ask)
    assert found.to_json() == whole.to_json()


@pytest.mark.parametrize("route", ["whole", "cut", "sorted", "csv"])
@pytest.mark.parametrize("metrics", [["auc", "gauc", "log_loss", "ece"], ["log_loss"]])
@pytest.mark.parametrize("weight", [0.5, 0.0])
def test_weights_that_most_parts_lack(tmp_path, cut, monkeypatch, route, metrics, weight):
    """Only one user has weight, or none."""
    draw = np.random.default_rng(3)
    users = np.repeat(np.arange(300), 20)
    numbers = {"label": draw.integers(0, 2, len(users)), "score": draw.integers(1, 20, len(users)) / 20}
    log = {"user_id": users, **numbers, "weight": np.where(users == 150, weight, 0.0)}
    (path,) = write(tmp_path, pa.table(log))
    ask = {"metrics": metrics, "label": "label", "sample_weight": "weight", "per_user": True}
    whole = fastrec.evaluate_files(path, **ask) if weight else None
    if route == "csv":
        path = os.fspath(tmp_path / "log.csv")
        rows = zip(*(log[name].tolist() for name in log), strict=True)
        (tmp_path / "log.csv").write_text("\n".join([",".join(log), *(",".join(map(str, row)) for row in rows)]))
    seen = cut() if route != "whole" else None
    if route == "sorted":
        monkeypatch.setattr(job, "cut_by_user", lambda *_: None)
    if route in ("sorted", "csv"):
        monkeypatch.setattr(Resources, "batch_rows", lambda *_: 500)
    if weight:
        assert everything(fastrec.evaluate_files(path, **ask)) == everything(whole)
    else:
        with pytest.raises(fastrec.InputError, match=r"(parquet|csv): column 'weight': weights must not be 0 for all"):
            fastrec.evaluate_files(path, **ask)
    if route == "cut":
        assert seen == [10]

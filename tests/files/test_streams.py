"""Files that do not fit in memory: put into parts on disk, with the same bits; batches that hold users whole."""

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrec
from fastrec.evaluation.lists import ListEvaluation
from fastrec.evaluation.rows import RowEvaluation
from fastrec.files import job, resources
from fastrec.files.columns import ListColumns, RowColumns, TooLargeError
from fastrec.files.job import _read_batches
from fastrec.files.lists import evaluate_lists
from fastrec.files.opened import open_files
from fastrec.files.partitions import RowPartitions
from fastrec.files.reader import TableReader
from fastrec.files.resources import Resources
from fastrec.files.rows import evaluate_log
from fastrec.inputs.strings import hashes_of
from fastrec.runtime.limits import MIN_MEMORY
from support.bits import group_bits, mean_bits, user_bits
from support.logs import ranked_lists, write_large
from support.tables import write_table

pa = pytest.importorskip("pyarrow")
compute = pytest.importorskip("pyarrow.compute")
csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")

LOG_METRICS = ["auc", "gauc", "ndcg@3", "log_loss", "average_precision", "rmse(average=user)", "brier"]


# Parts


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Draw tables of users and numbered rows."""
    texts = st.sampled_from(["a", "", "é", "\U0001f600", "\uffff", "z" * 40])
    user = draw(st.sampled_from([st.integers(-3, 6), texts]))
    kind = pa.string() if isinstance(draw(user), str) else pa.int64()
    found = {}
    for name in draw(st.sampled_from([["recs"], ["recs", "truth"], ["recs", "truth", "exclude"]])):
        users = draw(st.lists(user, max_size=25))
        found[name] = pa.table({"user": pa.array(users, kind), "row": np.arange(len(users))})
    return found


@settings(deadline=None)
@given(tables(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 200))
def test_parts_hold_users_whole_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, drawn: dict[str, Any], n_batches: int, n_rows: int, n_bytes: int
) -> None:
    limits: Any = SimpleNamespace(of_packing=lambda: n_bytes, limit=lambda: 1 << 40)
    partitions = RowPartitions(str(tmp_path_factory.mktemp("parts")), ["user"], n_batches, limits)
    for name, rows in drawn.items():
        partitions.add(name, rows.to_batches(max_chunksize=4), lambda _: None)
    read = list(partitions.batches(n_rows, drawn))
    batches = [
        {
            name: pa.concat_tables([rows.slice(0, 0), *(pa.table(own).cast(rows.schema) for own in part[name])])
            for name, rows in drawn.items()
        }
        for part in read
    ]
    for name, rows in drawn.items():
        parts = [batch[name].cast(rows.schema) for batch in batches]
        assert pa.concat_tables([rows.slice(0, 0), *parts]).sort_by("row").equals(rows)
        for batch in batches:
            for user in set(batch[name]["user"].to_pylist()):
                of_user = compute.equal(batch[name]["user"], user)
                assert batch[name].filter(of_user)["row"].to_pylist() == sorted(
                    batch[name].filter(of_user)["row"].to_pylist()
                )
    users = [{user for table in batch.values() for user in table.column("user").to_pylist()} for batch in batches]
    assert all(users)
    assert sum(map(len, users)) == len(set().union(*users))


def test_a_string_has_one_hash_whatever_is_beside_it() -> None:
    texts = pa.array(["", "a", None, "z" * 20, ""])
    alone = [
        hashes_of(texts.slice(at, 1).cast(kind))[0] for at, kind in enumerate((pa.string(), pa.large_string()) * 2)
    ]
    assert hashes_of(texts).tolist()[:4] == alone and hashes_of(texts)[4] == alone[0]
    assert hashes_of(pa.array([""]))[0] == alone[0]


# The same bits


def stream_everything(monkeypatch: pytest.MonkeyPatch, batch_rows: int) -> None:
    """Let nothing fit in memory from here on, and make batches small."""
    monkeypatch.setattr(job, "COPIES", 1 << 40)
    monkeypatch.setattr(resources, "MIN_BATCH", batch_rows)
    monkeypatch.setattr(resources, "MAX_BATCH", batch_rows)


def assert_same(found: Any, expected: Any) -> None:
    one, other = found.report, expected.report
    assert mean_bits(one.estimates) == mean_bits(other.estimates)
    assert not one.has_values or user_bits(one) == user_bits(other)
    assert group_bits(one) == group_bits(other)
    assert list(one.groups) == list(other.groups)
    assert (one.users, one.data) == (other.users, other.data)
    for name in ("users", "groups"):
        columns = getattr(found, name), getattr(expected, name)
        assert list(columns[0]) == list(columns[1])
        assert all(columns[0][key].tolist() == columns[1][key].tolist() for key in columns[1])


def write_lists(folder: Path) -> dict[str, str]:
    """Write lists and truth, of which some users are on one side only."""
    sides = {"recs": ranked_lists(n_users=300, n_items=20), "truth": ranked_lists(40, 300, 6).drop_columns("rank")}
    return {name: write_table(side, folder / f"{name}.parquet") for name, side in sides.items()}


@pytest.mark.parametrize("users", [(), ("user",), ("user", "page")])
def test_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, users: tuple[str, ...]) -> None:
    draw = np.random.default_rng(3)
    n = 5000
    columns = {
        "user": draw.integers(0, 200, n),
        "page": np.array(["home", "search", "é"])[draw.integers(0, 3, n)],
        "label": (draw.random(n) < 0.3).astype(np.int8),
        "score": np.round(draw.random(n), 2).astype(np.float32),
    }
    columns["plan"] = columns["user"] % 4
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=1000)
    # sums over rows without users are rounded at the cuts between rows; their order does not matter
    metrics = LOG_METRICS if users else ["auc", "average_precision"]
    wanted = RowColumns(users=users, by=("plan",) if users else ())

    def evaluate() -> Any:
        def make(_: bool) -> RowEvaluation:
            return RowEvaluation(metrics, per_user=bool(users))

        return evaluate_log(make, {"log": path}, wanted, Resources(temp_directory=tmp_path))

    whole = evaluate()
    stream_everything(monkeypatch, 333)
    assert_same(evaluate(), whole)
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_stages_count_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_lists(tmp_path)
    n_rows = 300 * 26
    told: list[tuple[str, int, int]] = []

    def watch(*what: Any) -> None:
        told.append(what)

    evaluate_lists(lambda _: ListEvaluation(["mrr"]), paths, ListColumns(), Resources(watch=watch))
    assert told == [("evaluating", 0, n_rows), ("evaluating", n_rows, n_rows)]
    told.clear()
    stream_everything(monkeypatch, 500)
    evaluate_lists(lambda _: ListEvaluation(["mrr"]), paths, ListColumns(), Resources(watch=watch))
    stages = {stage: [done for name, done, _ in told if name == stage] for stage, _, _ in told}
    assert list(stages) == ["partitioning", "evaluating"]
    assert 300 * 20 in stages["partitioning"]  # the next file begins here
    assert len(stages["evaluating"]) > 5 and stages["evaluating"][-1] == n_rows
    assert all(done == sorted(done) for done in stages.values())
    assert {total for _, _, total in told} == {n_rows}


@pytest.mark.parametrize("streamed", [False, True])
def test_progress_counts_rows_that_are_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    paths = write_lists(tmp_path)
    if streamed:
        stream_everything(monkeypatch, 500)
    told: list[tuple[int, int]] = []
    fastrec.evaluate_files(paths["recs"], paths["truth"], ["mrr"], progress=lambda *what: told.append(what))
    assert told[0] == (0, 300 * 26) and told[-1] == (300 * 26, 300 * 26)
    assert told == sorted(told) and (len(told) > 5) == streamed


# Memory

UNDER_A_LIMIT = """
import json, sys
import fastrec
report = fastrec.evaluate_files(*sys.argv[1:3], ["recall@2", "ndcg@10"], memory=int(sys.argv[3]))
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([peak, [value.hex() for value in (report["recall@2"], report["ndcg@10"])]]))
"""


def peak_of(paths: list[Path], memory: int) -> tuple[int, list[str]]:
    """Return the peak memory of a process, and its values."""
    command = [sys.executable, "-c", UNDER_A_LIMIT, *map(str, paths), str(memory)]
    environment = os.environ | {"PYTHONPATH": str(Path(fastrec.__file__).parents[1])}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    peak, values = json.loads(found.stdout)
    return peak, values


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_files_eight_times_as_large_as_the_memory(tmp_path: Path) -> None:
    memory = MIN_MEMORY
    (tmp_path / "small").mkdir()
    peak_of_few, _ = peak_of(write_large(tmp_path / "small", 400_000), memory)  # Python, packages, compiled code
    paths = write_large(tmp_path, 8 * memory // 24)  # three columns of 8 bytes
    peak, streamed = peak_of(paths, memory)
    peak_of_whole, whole = peak_of(paths, 1 << 40)
    assert streamed == whole
    assert peak - peak_of_few < 3 * memory < 8 * memory < peak_of_whole - peak_of_few


@pytest.mark.thorough
def test_many_threads_read_in_little_memory(tmp_path: Path) -> None:
    recs, truth = write_large(tmp_path, 4_000_000)
    report = fastrec.evaluate_files(recs, truth, ["mrr"], memory=MIN_MEMORY, n_threads=64)
    assert report.data["rec_rows"] == 4_000_000


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
def test_a_full_disk_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = write_lists(tmp_path)
    stream_everything(monkeypatch, 50)

    def on_a_full_disk(*given: Any) -> RowPartitions:
        made = RowPartitions(*given)
        made._path = "/dev/full"
        return made

    monkeypatch.setattr(job, "RowPartitions", on_a_full_disk)
    with pytest.raises(fastrec.FastrecError, match=f"temporary files is full: {re.escape(str(tmp_path))}.*--temp-dir"):
        fastrec.evaluate_files(paths["recs"], paths["truth"], ["mrr"], temp_directory=tmp_path)


def test_nothing_is_left_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"user_id": [1, 1, 2], "item_id": [5, 5, 6]})
    for name in ("recs", "truth"):
        pq.write_table(table.slice(0, 3 if name == "recs" else 1), tmp_path / name)
    stream_everything(monkeypatch, 2)
    with pytest.raises(fastrec.InputError, match="user 1: item 5"):
        evaluate_lists(
            lambda _: ListEvaluation(["mrr"]),
            {"recs": tmp_path / "recs", "truth": tmp_path / "truth"},
            ListColumns(),
            Resources(temp_directory=tmp_path),
        )
    assert sorted(os.listdir(tmp_path)) == ["recs", "truth"]


# Long strings, and highly compressed files


def long_texts(n_rows: int, characters: int) -> Any:
    """Return lists of 100 with ids of one length."""
    rows = np.arange(n_rows)
    columns = {"user_id": rows // 100, "item_id": rows}
    return pa.table(
        {name: compute.utf8_lpad(pa.array(ids).cast("string"), characters, "0") for name, ids in columns.items()}
    )


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("form", ["parquet", "csv.gz"])
def test_long_texts_keep_to_the_memory(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"lists.{form}"
    table = long_texts(150_000, 500)
    if form == "parquet":
        pq.write_table(table, path)
    else:
        with gzip.open(path, "wb", 1) as stream:
            csv.write_csv(table, stream)
    peak, values = peak_of([path, path], 100_000_000)
    assert peak <= 500_000_000
    _, whole = peak_of([path, path], 1 << 40)
    assert values == whole


def test_texts_that_are_longer_than_a_sample_says(tmp_path: Path) -> None:
    """Reading stops when the strings are too long, and the files are streamed."""
    rows = np.arange(40_000)
    lengths = np.where(rows % 10_000 < 5_000, 1, 400)
    texts = [f"{row:05}".ljust(length, "x") for row, length in zip(rows.tolist(), lengths.tolist(), strict=True)]
    table = pa.table({"user_id": [f"u{row // 10}" for row in rows.tolist()], "item_id": texts})
    path = tmp_path / "lists.parquet"
    pq.write_table(table, path, row_group_size=10_000)
    opened = open_files({"recs": path}, ListColumns(), "auto")
    reader = TableReader(opened["recs"])
    size = reader.size
    assert size.text < table.nbytes / 4
    with pytest.raises(TooLargeError):
        _read_batches(reader, size.n_bytes)
    assert sum(map(len, _read_batches(reader, 1 << 40))) == 40_000

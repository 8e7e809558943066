"""Logs in Parquet that are sorted by user: read without a column of users, with the bits of logs read whole."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from fastrec.files import parts, sorted_logs
from fastrec.files import rows as log_files
from tests.support.log_files import LOG, LOGS_IN_MEMORY, everything, log_of

pa = pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
pq = pytest.importorskip("pyarrow.parquet")

N = 6000
USERS = {
    "many rows": np.repeat(np.arange(60) * 7 - 20, 100),
    "wide": np.repeat([-4, 5, 2**50], [2000, 3995, 5]),
    "one": np.zeros(N, np.int64),
    "some have one row": np.sort(np.random.default_rng(1).integers(0, 400, N)),
}


def rows_of(users: Any) -> dict[str, Any]:
    return log_of(users, np.random.default_rng(7))


def write(folder: Path, columns: dict[str, Any], n_files: int = 1) -> str:
    """Write a log to some files, in row groups that end in the middle of users; return their pattern."""
    table = pa.table(columns)
    if n_files > 1:
        pq.write_table(table.slice(0, 0), folder / "log-.parquet")  # no rows, before all others
        pq.write_table(table.slice(0, 0), folder / "log-1-.parquet")
    for at in range(n_files):
        part = table.slice(N * at // n_files, N * (at + 1) // n_files - N * at // n_files)
        pq.write_table(part, folder / f"log-{at}.parquet", row_group_size=1300)
    return os.fspath(folder / "log-*.parquet")


@pytest.fixture
def by_user(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Read logs of few rows by user, in small pieces; return what was read, None in doubt."""
    seen: list[Any] = []

    def note(*given: Any) -> Any:
        seen.append(None)
        seen[-1] = found = sorted_logs.read_sorted(*given)
        return found

    monkeypatch.setattr(log_files, "read_sorted", note)
    monkeypatch.setattr(log_files, "ROWS_TO_GROUP", 600)
    monkeypatch.setattr(parts, "FIRST_ROWS", 10)
    monkeypatch.setattr(sorted_logs, "ROWS_PER_PIECE", 170)
    return seen


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("kind", LOGS_IN_MEMORY)
@pytest.mark.parametrize("users", USERS)
def test_a_sorted_log_has_the_bits_of_one_read_whole(
    tmp_path: Path, by_user: list[Any], users: str, kind: str, n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path, rows_of(USERS[users]), n_files=n_threads)
    metrics = [name for name in LOG if name != "ndcg@3" or kind != "weights"]
    ask: dict[str, Any] = {"metrics": metrics, "per_user": True, "n_threads": n_threads, **LOGS_IN_MEMORY[kind]}
    stages: list[Any] = []
    found = fastrec.evaluate_files(log, **ask, progress=lambda *given: stages.append(given))
    n_readings = 1 + (users == "wide" and n_threads == 1)  # its first rows look narrow
    assert len(by_user) == n_readings
    assert isinstance(by_user[-1], sorted_logs.SortedLog)
    assert stages == sorted(stages) and stages[-1] == (N, N)
    monkeypatch.setattr(log_files, "ROWS_TO_GROUP", N)
    whole = fastrec.evaluate_files(log, **ask)
    assert everything(found) == everything(whole)
    assert found.to_json() == whole.to_json()
    assert len(by_user) == n_readings


@pytest.mark.parametrize("kind", [np.uint8, np.uint32, np.int16, np.int64])
def test_a_sorted_log_by_any_integers(tmp_path: Path, by_user: list[Any], kind: Any, monkeypatch: Any) -> None:
    users = np.repeat(np.arange(60), 100) - (0 if np.dtype(kind).kind == "u" else 30)
    log = write(tmp_path, rows_of(users.astype(kind)))
    found = fastrec.evaluate_files(log, metrics=LOG, per_user=True)
    assert isinstance(by_user[-1], sorted_logs.SortedLog)
    monkeypatch.setattr(log_files, "ROWS_TO_GROUP", N)
    whole = fastrec.evaluate_files(log, metrics=LOG, per_user=True)
    assert everything(found) == everything(whole) and found.user_ids.dtype == whole.user_ids.dtype


OTHERS = {
    "descending": np.repeat(np.arange(60)[::-1], 100),
    "mixed": np.repeat(np.random.default_rng(0).permutation(60), 100),
    "twice": np.tile(np.repeat(np.arange(30), 100), 2),
    "one later": np.where(np.arange(N) == 4000, 3, np.repeat(np.arange(60), 100)),
}


@pytest.mark.parametrize("users", OTHERS)
def test_logs_whose_users_do_not_ascend_are_read_whole(tmp_path: Path, by_user: list[Any], users: str) -> None:
    columns = rows_of(OTHERS[users])
    log = write(tmp_path, columns)
    found = fastrec.evaluate_files(log, metrics=LOG, per_user=True)
    assert by_user == [None]
    table = pa.table({name: columns[name] for name in ("user_id", "label", "score")})
    arrays = fastrec.evaluate_scores(table, metrics=LOG, per_user=True)
    assert everything(found) == everything(arrays)


@pytest.mark.parametrize("fault", ["score", "label", "null", "null user"])
def test_faults_of_sorted_logs_are_found_by_duckdb(
    tmp_path: Path, by_user: list[Any], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = rows_of(USERS["many rows"])
    if fault == "score":
        columns["score"][4321] = np.nan
    elif fault == "label":
        columns["label"] = columns["label"].astype(np.int64)
        columns["label"][4321] = 2
    else:
        name = "label" if fault == "null" else "user_id"
        columns[name] = pa.array([None if at == 4321 else own for at, own in enumerate(columns[name].tolist())])
    log = write(tmp_path, columns)
    with pytest.raises(fastrec.InputError, match="4322") as found:
        fastrec.evaluate_files(log, metrics=["auc"])
    assert len(by_user) == 1
    monkeypatch.setattr(log_files, "ROWS_TO_GROUP", N)
    with pytest.raises(fastrec.InputError) as whole:
        fastrec.evaluate_files(log, metrics=["auc"])
    assert str(found.value) == str(whole.value)

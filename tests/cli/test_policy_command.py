"""`fastrec policy-value`: logs of slates in files."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest

import fastrec
from support.command_line import run_fastrec

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("click")

from fastrec.files import job, resources  # noqa: E402 - needs DuckDB

NAMES = ["ips", "snips", "sips", "iips", "rips", "snsips", "sniips", "snrips", "dr", "cascade_dr"]
PREDICTED = ["--predictions", "q", "q_new"]
ALL = [*(text for name in NAMES for text in ("-e", name)), *PREDICTED]


@pytest.fixture(autouse=True)
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    rows = [
        {
            "slate_id": f"s{slate}",
            "rank": rank,
            "reward": float(rng.random() < 0.3),
            "pscore": rng.uniform(0.2, 1),
            "new_pscore": rng.uniform(0, 1),
            "q": rng.random(),
            "q_new": rng.random(),
        }
        for slate in range(60)
        for rank in range(1, rng.randint(1, 4) + 1)
    ]
    rng.shuffle(rows)
    found = pd.DataFrame(rows)
    found.to_parquet("log.parquet")
    found.to_csv("log.csv", index=False)
    found.to_json("log.jsonl", orient="records", lines=True, double_precision=15)
    return found


def run(*arguments: str, text: str | None = None) -> Any:
    return run_fastrec("policy-value", *arguments, text=text)


def document(*arguments: str, text: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--format", "json", text=text)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("path", ["log.parquet", "log.csv"])
def test_files_give_the_bits_of_frames(path: str, frame: Any) -> None:
    wanted = fastrec.policy_value(frame, estimator=NAMES, predictions=("q", "q_new"), clip=2.5)
    assert document(path, *ALL, "--clip", "2.5") == wanted.to_dict()


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
def test_streams_give_the_bits_of_frames(frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of whole slates, kept on disk."""
    monkeypatch.setattr(job, "COPIES", 1 << 40)
    batches = []
    monkeypatch.setattr(resources.Resources, "batch_rows", lambda *_: 20)
    plain = job.RowPartitions.batches
    monkeypatch.setattr(
        job.RowPartitions, "batches", lambda *given: (batches.append(1) or one for one in plain(*given))
    )
    wanted = fastrec.policy_value(frame, estimator=NAMES, predictions=("q", "q_new"))
    assert document("log.csv", *ALL) == wanted.to_dict()
    assert len(batches) > 2


@pytest.mark.filterwarnings("ignore::fastrec.exceptions.FastrecWarning")
@pytest.mark.parametrize("has_slates", [True, False])
@pytest.mark.parametrize("streamed", [True, False])
def test_users_and_a_baseline_have_the_bits_of_frames(
    streamed: bool, has_slates: bool, frame: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = frame.assign(member=frame["slate_id"].str[1:].astype(int) % 13, old=frame["q"])
    frame = frame if has_slates else frame.drop(columns=["slate_id", "rank"])
    frame.to_csv("log.csv", index=False)
    if streamed:
        monkeypatch.setattr(job, "COPIES", 1 << 40)
        monkeypatch.setattr(resources.Resources, "batch_rows", lambda *_: 20)
    wanted = fastrec.policy_value(frame, user="member", baseline_pscore="old", estimator=NAMES[:8])
    assert wanted["ips"].users == 13 and wanted["ips"].difference is not None
    names = [text for name in NAMES[:8] for text in ("-e", name)]
    assert document("log.csv", *names, "--user-col", "member", "--baseline-pscore-col", "old") == wanted.to_dict()


def test_other_columns_and_standard_input(frame: Any) -> None:
    renamed = frame.rename(columns={name: f"my {name}" for name in frame.columns})
    options = ["--slate-col", "my slate_id", "--rank-col", "my rank", "--reward-col", "my reward"]
    options += ["--pscore-col", "my pscore", "--new-pscore-col", "my new_pscore"]
    text = renamed.to_csv(index=False)
    assert document("-", *options, text=text) == document("log.parquet")


def test_without_slates_each_row_is_one(frame: Any) -> None:
    frame.drop(columns=["slate_id", "rank"]).to_csv("rows.csv", index=False)
    found = document("rows.csv")["estimates"][0]
    assert found["slates"] == found["rows"] == len(frame)


def test_every_format_is_written() -> None:
    table = run("log.parquet", "-e", "iips", "-e", "snrips", "--clip", "3")
    assert table.exit_code == 0, table.stderr
    assert "weights above 3 count as 3; clipped: rows with such a weight" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80
    for ending in ("txt", "json", "csv", "md", "html", "tex"):
        arguments = ["-e", "iips", "-e", "snrips", "--clip", "3", "-o", f"out.{ending}", "--title", "A value"]
        assert run("log.parquet", *arguments).exit_code == 0
    assert Path("out.txt").read_text() == table.stdout
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert [row["estimator"] for row in rows] == ["iips", "snrips"]
    assert "<h1>A value</h1>" in Path("out.html").read_text()


def test_a_warning_is_printed(frame: Any) -> None:
    frame.assign(new_pscore=frame["pscore"], pscore=frame["pscore"] / 2).to_csv("twice.csv", index=False)
    result = run("twice.csv")
    assert result.exit_code == 0
    assert "fastrec: warning: iips: the mean weight is 2.0000" in result.stderr


@pytest.mark.parametrize("whole", [True, False])
def test_ranks_with_another_name(whole: bool, frame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if not whole:
        monkeypatch.setattr(job, "COPIES", 1 << 40)
    renamed = frame.rename(columns={"rank": "position"})
    renamed.to_csv("log.csv", index=False)
    renamed.to_parquet("log.parquet")
    for path in ("log.csv", "log.parquet"):
        result = run(path, "-e", "rips")
        assert result.exit_code == 0
        assert "so slates keep row order, but column 'position' implies another for 3" in result.stderr
        assert "pass --rank-col position to use it" in " ".join(result.stderr.split())
        assert "position" not in run(path, "-e", "iips").stderr
        assert "position" not in run(path, "-e", "rips", "--rank-col", "position").stderr


FAULTS = {
    "no file": (["nothing.csv"], "nothing.csv: no such file"),
    "no column": (["log.csv", "--pscore-col", "p"], "no column 'p'", "--pscore-col names the column of logged"),
    "one column": (["log.csv", "--user-col", "reward,rank"], "no column 'reward,rank'", "--user-col names the column"),
    "no users": (["log.csv", "--user-col", "who"], "no column 'who'", "--user-col names the column of users"),
    "no slates": (["log.csv", "--slate-col", "session"], "no column 'session'", "--slate-col names the column"),
    "an unknown estimator": (["log.csv", "-e", "dm"], "--estimator must be one of ips, snips"),
    "no predictions": (["log.csv", "-e", "dr"], "dr needs --predictions"),
    "a clip of 0": (["log.csv", "--clip", "0"], "--clip must be above 0"),
    "a bad propensity": (["zero.csv"], "zero.csv: column 'pscore' must be a probability above 0", "found 0 in row 4"),
    "a missing reward": (["missing.csv"], "missing.csv: column 'reward' must not be null, found null in row 3"),
    "a repeated rank": (["twice.csv"], "twice.csv: column 'rank' holds rank 1 twice in slate 's"),
    "overwriting": (["log.csv", "-o", "log.csv"], "log.csv would overwrite log.csv"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_one_line(name: str, frame: Any) -> None:
    zero, missing = frame.copy(), frame.copy()
    zero.loc[3, "pscore"] = 0
    missing.loc[2, "reward"] = None
    zero.to_csv("zero.csv", index=False)
    missing.to_csv("missing.csv", index=False)
    frame.assign(rank=1).to_csv("twice.csv", index=False)
    arguments, *messages = FAULTS[name]
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("fastrec: error: ")
    assert all(message in result.stderr for message in messages), result.stderr
    assert result.stderr.count("\n") == 1

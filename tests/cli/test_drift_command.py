"""`fastrec drift`: files of lists in the order of time."""

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

pytest.importorskip("click")

from fastrec.files import job, resources

USERS, ITEMS = range(30), range(20)
OPTIONS = ["-k", "3", "--history", "train.csv", "--items", "shop.csv", "--by", "segment", "--provider", "brand"]
DAYS = ["day1.csv", "day2.csv", "day3.csv"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(1)
    for day in DAYS:
        rows = [f"{u},{i},{rank}" for u in USERS for rank, i in enumerate(rng.sample(ITEMS, rng.randint(0, 5)), 1)]
        rng.shuffle(rows)
        Path(day).write_text("\n".join(["user_id,item_id,rank", *rows, ""]))
    past = [f"{u},{rng.choice(ITEMS)}" for u in USERS for _ in range(4)]
    Path("train.csv").write_text("\n".join(["user_id,item_id", *past, ""]))
    shop = [f"{i},{'head' if i < 5 else 'tail'},b{i % 4},{'AB'[i % 2]}" for i in ITEMS]
    Path("shop.csv").write_text("\n".join(["item_id,segment,brand,category", *shop, ""]))


def run(*arguments: str, text: str | None = None) -> Any:
    return run_fastrec("drift", *arguments, text=text)


def document(*arguments: str, text: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--format", "json", text=text)
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def lists_of(path: str) -> dict[int, list[int]]:
    rows = sorted(csv.DictReader(io.StringIO(Path(path).read_text())), key=lambda row: int(row.get("rank", 0)))
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(int(row["user_id"]), []).append(int(row["item_id"]))
    return dict(sorted(found.items()))


def test_files_give_the_same_as_dicts() -> None:
    shop = {int(row.pop("item_id")): row for row in csv.DictReader(io.StringIO(Path("shop.csv").read_text()))}
    logs = {day.removesuffix(".csv"): lists_of(day) for day in DAYS}
    wanted = fastrec.drift(logs, k=3, history=lists_of("train.csv"), items=shop, by="segment", provider="brand")
    assert document(*DAYS, *OPTIONS) == wanted.to_dict()
    renamed = [f"{name}={day}" for name, day in zip("cab", DAYS, strict=True)]
    assert [log["log"] for log in document(*renamed, *OPTIONS)["logs"]] == ["c", "a", "b"]


def test_streamed_files_give_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = document(*DAYS, *OPTIONS)
    monkeypatch.setattr(job, "COPIES", 1 << 40)
    monkeypatch.setattr(resources, "MIN_BATCH", 40)
    monkeypatch.setattr(resources, "MAX_BATCH", 40)
    assert document(*DAYS, *OPTIONS) == whole


def test_forms_and_columns_of_files() -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    pc = pytest.importorskip("pyarrow.csv")
    wanted = document(*DAYS, "-k", "3", "--n-items", "20")
    for day in DAYS:
        pq.write_table(pc.read_csv(day), day.replace(".csv", ".parquet"))
    assert document(*(day.replace(".csv", ".parquet") for day in DAYS), "-k", "3", "--n-items", "20") == wanted
    assert document("day1=-", *DAYS[1:], "-k", "3", "--n-items", "20", text=Path("day1.csv").read_text()) == wanted
    for day in DAYS:
        Path(day).write_text(Path(day).read_text().replace("user_id,item_id,rank", "who,what,place"))
    named = ["--user-col", "who", "--item-col", "what", "--rank-col", "place"]
    assert document(*DAYS, "-k", "3", "--n-items", "20", *named) == wanted


def test_ids_that_are_strings_in_some_files_only() -> None:
    Path("day2.csv").write_text(Path("day1.csv").read_text() + "new,x7,1\n")
    found = document("day1.csv", "day2.csv", "-k", "3")["steps"][0]
    same = document("day1.csv", "b=day1.csv", "-k", "3")["steps"][0]
    assert found["users"] == same["users"] > 0
    assert 0 < found["exposure_shift"] < 0.05
    assert found["overlap"] == same["overlap"]


def test_every_format_is_written() -> None:
    table = run(*DAYS, *OPTIONS)
    assert table.exit_code == 0, table.stderr
    assert "day1 to day2" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80
    for ending in ("txt", "json", "csv", "md", "html", "tex"):
        assert run(*DAYS, *OPTIONS, "-o", f"out.{ending}", "--title", "A loop").exit_code == 0
    assert Path("out.txt").read_text() == table.stdout
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert {row["kind"] for row in rows} == {"level", "change", "step", "trend", "share"}
    assert "<h1>A loop</h1>" in Path("out.html").read_text()
    assert Path("out.md").read_text().startswith("# A loop")
    assert run(*DAYS, *OPTIONS, "--html", "page.html").stdout == table.stdout
    assert Path("page.html").exists()


FAULTS = {
    "one log": (["day1.csv", "-k", "3"], "drift needs two logs or more, in the order of time; found 1"),
    "a pattern": (["day?.csv", "-k", "3"], "found 1: day?.csv is a pattern, read as one log; write it without quotes"),
    "a folder": ([".", "-k", "3"], "found 1: . is a folder, read as one log; name its files"),
    "no cut-off": (DAYS, "Missing option '-k'"),
    "no file": (["day1.csv", "day9.csv", "-k", "3"], "day9.csv: no such file"),
    "one name": (["day1.csv", "x/../day1.csv", "-k", "3"], "two systems have the name 'day1'"),
    "no items": ([*DAYS, "-k", "3", "--by", "segment"], "--by needs --items"),
    "no column": ([*DAYS, "-k", "3", "--items", "shop.csv", "--provider", "shop"], "shop.csv has no column 'shop'"),
    "few items": ([*DAYS, "-k", "3", "--n-items", "6"], "is too small"),
    "not ranked": (["day1.csv", "train.csv", "-k", "3", "--rank-col", "rank"], "train.csv: no column 'rank'"),
    "overwriting": ([*DAYS, "-k", "3", "-o", "day1.csv"], "day1.csv would overwrite day1.csv"),
    "saving": ([*DAYS, "-k", "3", "-o", "x.fastrec"], "a drift has no format with the ending .fastrec"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_one_line(name: str) -> None:
    arguments, message = FAULTS[name]
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("fastrec: error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_errors_name_the_log_and_no_option_that_drift_lacks() -> None:
    Path("copies.csv").write_text("user_id,item_id,rank\n1,5,1\n1,5,2\n")
    Path("tied.csv").write_text("user_id,item_id,score\n1,5,0.5\n1,6,0.5\n")
    copies = run("day1.csv", "copies.csv", "-k", "3").stderr
    assert "error: copies: " in copies and "drop it: no argument of drift would accept it" in copies
    tied = run("new=tied.csv", "day1.csv", "-k", "1").stderr
    assert "error: new: " in tied and "choose an order with ranks in place of scores" in tied
    assert "--ties" not in tied and "--duplicates" not in copies

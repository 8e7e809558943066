"""`fastrec ctr` and `fastrec position-bias`: logs of impressions in files."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import fastrec
from support.command_line import run_fastrec

pytest.importorskip("pyarrow")
pytest.importorskip("click")

from fastrec.files import job
from fastrec.files.columns import ImpressionColumns
from fastrec.files.positions import bias_of_file, ctr_of_file
from fastrec.files.resources import Resources

NAMED = ["--label-col", "click", "--rank-col", "position"]
KEYS = ["--query-col", "q", "--item-col", "i"]
Columns = Mapping[str, list[Any]]


def log_of(seed: int, n: int = 600) -> dict[str, list[Any]]:
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        rank, item = rng.randint(1, 5), rng.randint(0, 7)
        device = rng.choice(["app", "web", "tv", None])
        rows.append((int(rng.random() < 0.8 / rank), rank, f"é{rng.randint(0, 9)}", item, rng.randint(0, 40), device))
    names = ("click", "position", "q", "i", "user_id", "device")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Columns:
    monkeypatch.chdir(tmp_path)
    columns = log_of(1)
    write("log.csv", columns)
    return columns


def write(path: str, columns: Columns) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([list(columns), *zip(*columns.values(), strict=True)])


def run(*arguments: str, text: str | None = None) -> Any:
    return run_fastrec(*arguments, text=text)


def ok(*arguments: str, text: str | None = None) -> str:
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


def counted(columns: Columns, **options: Any) -> fastrec.CtrByRank:
    pandas = pytest.importorskip("pandas")
    return fastrec.ctr_by_rank(pandas.DataFrame(columns), label="click", rank="position", **options)


def fitted(columns: Columns, **options: Any) -> fastrec.PositionBias:
    return fastrec.position_bias(columns["click"], columns["position"], columns["q"], columns["i"], **options)


def test_numbers_are_those_of_the_functions(log: Columns) -> None:
    found = json.loads(ok("ctr", "log.csv", *NAMED, "--row-by", "device", "--level", "0.9", "--format", "json"))
    assert found == counted(log, row_by="device", level=0.9).to_dict()
    for method in ("ctr", "pivot", "adjacent", "em"):
        found = json.loads(ok("position-bias", "log.csv", *NAMED, *KEYS, "--method", method, "--format", "json"))
        assert found == fitted(log, method=method).to_dict()
    given = ["--method", "em", "--rounds", "3", "--samples", "20", "--seed", "4", "--level", "0.5"]
    found = json.loads(ok("position-bias", "log.csv", *NAMED, *KEYS, *given, "--format", "json"))
    assert found == fitted(log, method="em", n_rounds=3, n_samples=20, seed=4, level=0.5).to_dict()


def test_every_format_of_files(log: Columns) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(log)
    frame.to_parquet("log.parquet")
    frame.to_json("log.jsonl", orient="records", lines=True)
    frame[:250].to_parquet("part1.parquet")
    frame[250:].to_parquet("part2.parquet")
    counts, bias = counted(log, row_by="device").to_json(), fitted(log).to_json()
    for path in ("log.csv", "log.parquet", "log.jsonl", "part*.parquet"):
        columns = ImpressionColumns("click", "position", groupings=("device",))
        assert ctr_of_file(path, columns, 0.95, Resources()).to_json() == counts, path
        keys = ImpressionColumns("click", "position", query="q", item="i")
        assert bias_of_file(path, keys, fitted(log).settings, Resources()).to_json() == bias, path
    text = Path("log.csv").read_text(encoding="utf-8")
    assert ok("ctr", "-", *NAMED, text=text) == ok("ctr", "log.csv", *NAMED)


def test_files_that_do_not_fit_in_memory(log: Columns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "COPIES", 10**9)
    columns = ImpressionColumns("click", "position", groupings=("device",))
    limits = Resources(memory=64_000_000)
    assert ctr_of_file("log.csv", columns, 0.95, limits).to_json() == counted(log, row_by="device").to_json()


def test_without_users(log: Columns) -> None:
    write("plain.csv", {name: log[name] for name in ("click", "position", "device")})
    found = json.loads(ok("ctr", "plain.csv", *NAMED, "--row-by", "device", "--format", "json"))
    plain = {name: log[name] for name in ("click", "position", "device")}
    assert found == counted(plain, row_by="device").to_dict()
    assert found["settings"]["interval"] == "wilson"
    two = json.loads(ok("ctr", "log.csv", *NAMED, "--user-col", "user_id", "--user-col", "q", "--format", "json"))
    assert two == counted(log, user=["user_id", "q"]).to_dict()


def test_an_empty_log(log: Columns) -> None:
    write("empty.csv", {name: [] for name in log})
    assert "rank" in ok("ctr", "empty.csv", *NAMED)
    assert json.loads(ok("position-bias", "empty.csv", *NAMED, *KEYS, "--format", "json"))["rows"] == []
    assert ok("ctr", "empty.csv", *NAMED, "--format", "csv") == "\n"


def test_outputs(log: Columns) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    assert max(map(len, ok("ctr", "log.csv", *NAMED, "--row-by", "device").splitlines())) <= 80
    ok("ctr", "log.csv", *NAMED, "--plot", "a.png", "--html", "a.html", "-o", "a.csv", "--title", "Monday")
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    assert "Monday" in Path("a.html").read_text(encoding="utf-8")
    assert Path("a.csv").read_text().startswith("grouping,group,rank,impressions,clicks,ratio,low,high,std_error,users")
    ok("position-bias", "log.csv", *NAMED, *KEYS, "-o", "b.tex", "--samples", "0")
    assert "tabular" in Path("b.tex").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ctr", "log.csv"], "log.csv: no column 'label'"),
        (["ctr", "log.csv", "--label-col", "click"], "--rank-col names the column of ranks"),
        (["ctr", "log.csv", *NAMED, "--row-by", "country"], "--row-by names columns of groups"),
        (["position-bias", "log.csv", *NAMED], "--query-col names the column of queries"),
        (["position-bias", "log.csv", *NAMED, "--query-col", "q"], "--item-col names the column of items"),
        (["position-bias", "log.csv", *NAMED, *KEYS, "--rounds", "3"], "--rounds is an option of method 'em'"),
        (
            ["ctr", "log.csv", "--label-col", "position", "--rank-col", "position"],
            "'position': labels must be 0 or 1",
        ),
        (["ctr", "log.csv", "--label-col", "click", "--rank-col", "click"], "must be integers from 1 to 1,000,000"),
        (["ctr", "log.csv", *NAMED, "--plot", "x.doc"], "the name must end in .png, .pdf or .svg"),
        (["ctr", "log.csv", *NAMED, "-o", "x.fastrec"], "a curve has no format with the ending .fastrec"),
        (["ctr", "none.csv"], "none.csv: no such file"),
    ],
)
def test_errors(log: Columns, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr

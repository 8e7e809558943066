"""Pages of logs: the curves that `fastrec evaluate --html` draws by itself."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrec
from support.command_line import Done, run_fastrec

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

Columns = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def log(n: int = 2_000) -> Columns:
    draw = np.random.default_rng(3)
    users = draw.integers(0, 100, n)
    scores = draw.random(n).round(3)
    return {
        "user_id": users,
        "label": (draw.random(n) < scores).astype(np.int64),
        "score": scores,
        "plan": np.array(["free", "paid"])[users % 2],
        "position": draw.integers(1, 6, n),
    }


def write(columns: Columns, name: str = "log.parquet") -> None:
    pq.write_table(pa.table(columns), name)


def run(*arguments: str) -> Done:
    return run_fastrec("evaluate", *arguments)


def page_of(*arguments: str) -> str:
    result = run("log.parquet", *arguments, "--html", "page.html")
    assert result.exit_code == 0, result.stderr
    return Path("page.html").read_text(encoding="utf-8")


def titles(page: str) -> list[str]:
    return re.findall(r"<h2>([^<]+)", page)


def test_a_page_has_all_curves() -> None:
    columns = log()
    write(columns)
    page = page_of("--by", "plan", "-m", "auc,ece,average_precision")
    curves = ["Curves", "Calibration", "Calibration by plan", "Clicks by rank"]
    assert titles(page) == ["Metrics", "Segments", *curves, "Definitions", "Settings", "Data"]
    pair = columns["label"], columns["score"]
    report = fastrec.evaluate_scores(*pair, metrics=["auc", "average_precision", "ece"])
    assert f"ROC curve, area {report['auc']:.4f}" in page
    assert f"average precision {report['average_precision']:.4f}, base rate {pair[0].mean():.4f}" in page
    assert f"ECE {report['ece']:.4f}" in page and "2,000 rows of 100 users, 15 uniform bins" in page
    expected = fastrec.calibration_curve(*pair, bins=15, row_groups={"plan": columns["plan"]})
    for own in expected.groups["plan"].values():
        assert f"{own.calibration:.4f}" in page
    clicks = fastrec.ctr_by_rank(columns["label"], columns["position"], user_ids=columns["user_id"])
    assert all(f"<td>{ratio:.4f}" in page for ratio in clicks.ratio)


def calibration_of(page: str) -> list[str]:
    """Return the tables and notes of the sections on calibration."""
    sections = [part.split("<h2>")[1] for part in page.split("<section") if "<h2>Calibration" in part]
    return [re.sub("<svg.*?</svg>", "", part, flags=re.DOTALL) for part in sections]


@pytest.mark.parametrize("options", [(), ("--memory", "64MB"), ("--weight-col", "w")])
def test_calibration_on_pages_takes_users_as_clusters(options: tuple[str, ...]) -> None:
    columns = log(400_000 if "--memory" in options else 3_000)
    draw = np.random.default_rng(2)
    n = len(columns["label"])
    columns |= {"device": draw.choice(["tv", "web"], n), "w": draw.choice([0.0, 0.3, 1.7], n)}
    columns["comment"] = np.array(["a long text, so that the file is large " * 3] * 8)[columns["user_id"] % 8]
    write(columns)
    page = page_of("--by", "plan", "--row-by", "device", "-m", "log_loss", "--item-col", "comment", *options)
    weight = columns["w"] if "--weight-col" in options else None
    groups = {name: columns[name] for name in ("plan", "device")}
    given = {"row_groups": groups, "user_ids": columns["user_id"], "sample_weight": weight}
    found = fastrec.calibration_curve(columns["label"], columns["score"], bins=15, **given)
    expected = fastrec.evaluate_scores([0, 1], [0.1, 0.2], metrics="auc").to_html(curves=[found])
    assert expected is not None
    assert calibration_of(page) == calibration_of(expected)
    assert len(calibration_of(page)) == 3 and page.count("users as clusters") == 3
    assert "independent" not in "".join(calibration_of(page))


def test_calibration_without_users_takes_rows_as_independent() -> None:
    columns = log(2_000)
    del columns["user_id"]
    write(columns)
    (section,) = calibration_of(page_of("--row-by", "plan", "-m", "log_loss"))[:1]
    assert "rows are taken as independent" in section and "clusters" not in section


@pytest.mark.parametrize("metrics", ["log_loss", "ndcg@3", "gauc"])
def test_curves_do_not_depend_on_the_metrics(metrics: str) -> None:
    write(log())
    assert titles(page_of("-m", metrics))[1:4] == ["Curves", "Calibration", "Clicks by rank"]


def test_streams_give_the_page_of_files_in_memory() -> None:
    columns = log(400_000)
    columns["comment"] = np.array(["a long text, so that the file is large " * 3] * 8)[columns["user_id"] % 8]
    write(columns)
    options = ("--by", "plan", "--item-col", "comment", "-m", "log_loss", "--about", "date=today")
    assert page_of(*options, "--memory", "64MB") == page_of(*options, "--memory", "4GB")


def test_labels_of_users_name_the_groups() -> None:
    columns = log()
    plan = columns.pop("plan")
    write(columns)
    users, at = np.unique(columns["user_id"], return_index=True)
    write({"user_id": users, "plan": plan[at]}, "users.parquet")
    assert "Calibration by plan" in titles(page_of("--by", "plan", "--users", "users.parquet"))


def test_graded_labels_and_ratings_have_no_curves() -> None:
    columns = log()
    columns["label"] *= np.random.default_rng(0).integers(1, 4, len(columns["label"]))
    write(columns)
    assert titles(page_of("-m", "ndcg@3"))[:2] == ["Metrics", "Definitions"]
    assert titles(page_of("-m", "auc", "--min-gain", "2"))[:4] == ["Metrics", "Curves", "Calibration", "Definitions"]
    ratings = page_of("--target-col", "label", "--prediction-col", "score")
    assert titles(ratings)[:2] == ["Metrics", "Definitions"]


def test_a_page_says_why_a_chart_is_missing() -> None:
    columns = log()
    columns["score"] = 4 * columns["score"] - 1
    columns["position"] -= 1
    write(columns)
    page = page_of("-m", "auc")
    assert re.search(r"No chart of calibration: scores are from -1 to 2\.9\d*, so they are not probabilities", page)
    assert re.search("No clicks by rank: .*position.* must be integers from 1", page)
    assert "No clicks by rank: rows have weights, which" in page_of("-m", "auc", "--weight-col", "user_id")
    columns["position"] = np.array(["top", "end"])[columns["position"] % 2]
    write(columns)
    assert re.search("No clicks by rank: .*position", page_of("-m", "auc"))
    columns["label"][:] = 0
    write(columns)
    assert "No ROC curve: all rows are of one class." in page_of("-m", "auc")


def test_weights_and_one_class() -> None:
    columns = log(300) | {"w": np.tile([1.0, 0.0, 2.5], 100)}
    write(columns)
    page = page_of("-m", "ece", "--weight-col", "w")
    found = fastrec.calibration_curve(columns["label"], columns["score"], bins=15, sample_weight=columns["w"])
    assert f"ECE {found.ece:.4f}" in page
    assert f"weight of all rows {columns['w'].sum():,.6g}" in page


def test_other_outputs_need_no_curves() -> None:
    write(log())
    result = run("log.parquet", "-m", "log_loss", "--format", "json")
    assert "curves" not in json.loads(result.stdout)
    printed = run("log.parquet", "-m", "log_loss", "--format", "html")
    assert "<h2>Curves" in printed.stdout

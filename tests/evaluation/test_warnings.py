"""Every warning of a call is in its result, in every form and copy of it."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import fastrec
from fastrec.exceptions import FastrecWarning
from support.command_line import run_fastrec

pa = pytest.importorskip("pyarrow")

# without a column called rank or score the lists have the order of the rows, which `pred` contradicts
RECS = pa.table({"user_id": [1, 1, 1, 2, 2], "item_id": [5, 6, 7, 7, 8], "pred": [0.1, 0.2, 0.3, 0.8, 0.9]})
TRUTH = pa.table({"user_id": [1, 2], "item_id": [7, 8]})
ORDER = "recs has no column 'rank' or 'score'"
START = "recs has no column"  # up to its first quote, which some forms escape
NO_ITEM = "no truth item is in its user's list"


def given(call: Any) -> tuple[Any, list[str]]:
    """Return the result of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert all(warning.filename == __file__ for warning in caught)  # they point at the caller
    return result, [str(warning.message) for warning in caught if issubclass(warning.category, FastrecWarning)]


def write(folder: Path, recs: Any = RECS, truth: Any = TRUTH, kind: str = "csv") -> list[Path]:
    from pyarrow import csv, parquet

    paths = [folder / f"{name}.{kind}" for name in ("recs", "truth")]
    for table, path in zip((recs, truth), paths, strict=True):
        csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    return paths


def merged() -> fastrec.Report:
    first, other = fastrec.Evaluator("mrr"), fastrec.Evaluator("mrr")
    first.update([[1]], [[1]], user_ids=[9])
    other.update(RECS, TRUTH)
    return first.merge(fastrec.Evaluator.from_bytes(other.to_bytes())).result()


CALLS = {
    "frames": lambda _: fastrec.evaluate(RECS, TRUTH, "mrr"),
    "csv": lambda folder: fastrec.evaluate_files(*write(folder), "mrr"),
    "parquet": lambda folder: fastrec.evaluate_files(*write(folder, kind="parquet"), "mrr"),
    "streamed": lambda folder: fastrec.evaluate_files(*write(folder), "mrr", memory="64MB"),
    "merged": lambda _: merged(),
    "items": lambda _: fastrec.evaluate_by_items(RECS, TRUTH, {7: "a", 8: "a"}, "mrr")["a"],
}


@pytest.fixture
def report(tmp_path: Path) -> fastrec.Report:
    return given(lambda: fastrec.evaluate(RECS, TRUTH, "mrr", per_user=True))[0]


@pytest.mark.parametrize("way", CALLS)
def test_what_is_warned_of_is_in_the_report(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "streamed":
        monkeypatch.setattr("fastrec.files.job.COPIES", 10**9)
    report, lines = given(lambda: CALLS[way](tmp_path))
    assert len(lines) == 1 and lines[0].startswith(ORDER)
    assert report.warnings == lines


def test_why_ids_do_not_match_is_in_the_report(tmp_path: Path) -> None:
    recs = pa.table({"user_id": [1], "item_id": ["A"]})
    paths = write(tmp_path, recs, pa.table({"user_id": [1], "item_id": ["a"]}))
    report, lines = given(lambda: fastrec.evaluate_files(*paths, "mrr"))
    assert len(lines) == 2 and lines[0].startswith(NO_ITEM) and "upper and lower case" in lines[1]
    assert report.warnings == lines


def test_ids_match_if_another_segment_has_hits() -> None:
    recs, truth, segments = {1: [1, 2], 2: [3, 4]}, {1: [1], 2: [9]}, {1: "a", 9: "b"}
    reports, lines = given(lambda: fastrec.evaluate_by_items(recs, truth, segments, "mrr"))
    assert (lines, [report.warnings for report in reports.values()]) == ([], [[], []])
    reports, lines = given(lambda: fastrec.evaluate_by_items(recs, {1: [8], 2: [9]}, {8: "a", 9: "b"}, "mrr"))
    shown = "(item ids look like 1 in recs and 8 in truth)"
    assert len(lines) == 2 and reports["a"].warnings == [f"{NO_ITEM}: do the ids match? {shown}"]


@pytest.mark.parametrize("exclude", [{1: [1], 2: [3]}, "history"])
def test_a_truth_that_was_excluded_is_a_warning_of_its_own(exclude: Any) -> None:
    truth = {1: [1], 2: [3]}
    call: dict[str, Any] = {"exclude": exclude, "history": truth}
    _, lines = given(lambda: fastrec.evaluate({1: [1, 2], 2: [3, 4]}, truth, "mrr", **call))
    assert lines[:-1] == [
        f"{NO_ITEM}: exclude removed 2 rows of the lists; does it hold the truth, or do the ids not match?"
    ]
    assert lines[-1].startswith("exclude removes 2 of the 2 relevant rows of the truth")
    _, lines = given(lambda: fastrec.evaluate({1: [1], 2: [3]}, truth, "mrr", **call))
    assert lines[0].startswith("no user with truth has a list: exclude removed 2 rows of the lists; ")


def test_every_form_of_a_report_has_its_warnings(report: fastrec.Report, tmp_path: Path) -> None:
    (line,) = report.warnings
    assert report.to_dict()["warnings"] == [line]
    assert json.loads(report.to_json())["warnings"] == [line]
    assert f"warning: {line}" in repr(report).splitlines()
    assert START in report.to_markdown() and START in report.to_latex()
    for page in (report._repr_html_(), report.to_html()):
        assert page is not None and f"warning: {START}" in page
    report.save(tmp_path / "report")
    loaded, lines = given(lambda: fastrec.load(tmp_path / "report"))
    assert loaded.warnings == [line] and lines == []
    assert report.with_groups({}).warnings == [line]


def test_a_report_without_warnings_has_none() -> None:
    report, lines = given(lambda: fastrec.evaluate([[1]], [[1]], "mrr"))
    assert report.warnings == lines == report.to_dict()["warnings"] == []
    assert "warning" not in report.to_markdown() + report.to_latex()


def test_a_comparison_has_the_warnings_of_its_reports(report: fastrec.Report) -> None:
    other = fastrec.evaluate({1: [7], 2: [8]}, {1: [7, 9], 2: [8]}, "mrr", per_user=True)
    found, lines = given(lambda: fastrec.compare({"new": report, "old": other}, n_rounds=10))
    assert lines[0].startswith("the truth differs") and [line[:6] for line in lines[1:]] == ["no row"]
    assert list(found.warnings) == [f"new: {report.warnings[0]}", *lines]
    assert found.to_dict()["warnings"] == list(found.warnings)
    for line in found.warnings:
        assert f"warning: {line}" in repr(found).splitlines()
    for text in (found._repr_html_(), found.to_html(), found.to_markdown(), found.to_latex()):
        assert text is not None and text.count("warning: ") == 3


def test_an_explanation_has_the_warnings_of_its_data() -> None:
    found, lines = given(lambda: fastrec.explain("mrr@2", RECS, TRUTH, like=["ranx", "rectools"]))
    assert len(lines) == 1 and lines[0].startswith(ORDER)
    assert list(found.warnings) == found.to_dict()["warnings"] == lines
    for text in (repr(found), found._repr_html_(), found.to_markdown()):
        assert text.count("warning: ") == 1
    assert fastrec.explain("mrr@2").warnings == ()


@pytest.mark.parametrize("format_", ["json", "table", "md", "csv"])
def test_the_command_line_says_each_once(format_: str, tmp_path: Path) -> None:
    recs, truth = map(str, write(tmp_path))
    done = run_fastrec("evaluate", recs, truth, "-m", "mrr", "--format", format_)
    assert done.exit_code == 0 and done.stderr.count(ORDER) == 1
    if format_ == "json":
        assert json.loads(done.stdout)["warnings"][0].startswith(ORDER)
    systems = [f"a={recs}", f"b={recs}", "--truth", truth, "-m", "mrr", "--format", format_]
    done = run_fastrec("compare", *systems)
    assert done.exit_code == 0 and re.findall(rf"\b.*: {ORDER}", done.stderr) == [f"fastrec: warning: a, b: {ORDER}"]


def test_no_module_warns_past_the_reports() -> None:
    """Only one module gives warnings; other ways lose them."""
    package = Path(fastrec.__file__).parent
    found = [path.name for path in package.rglob("*.py") if re.search(r"warnings\.warn\(", path.read_text())]
    assert found == ["exceptions.py"]
    callers = [path.name for path in package.rglob("*.py") if re.search(r"(?<![.\w])warn\(", path.read_text())]
    about_speed, of_values = ["limits.py"], ["policy.py", "spark_logs.py"]
    assert sorted(callers) == sorted(["compare.py", "exceptions.py", *about_speed, *of_values, "report.py"])

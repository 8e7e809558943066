"""Files that the command line writes and reads back: formats by ending, saved reports, standard input."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

import fastrec
from support.command_line import run_fastrec

pytest.importorskip("pyarrow")
pytest.importorskip("click")

from fastrec.cli import output

LISTS = "user_id,item_id,rank\n1,10,1\n1,11,2\n2,10,2\n2,12,1\n3,10,1\n"
OTHER = "user_id,item_id,rank\n1,11,1\n1,10,2\n2,10,1\n2,12,2\n3,10,1\n"
TRUTH = "user_id,item_id,gain,country\n1,10,1,NL\n2,10,3,BE\n4,12,2,NL\n"
LOG = "user_id,label,score\n1,1,.9\n1,0,.8\n2,0,.8\n2,1,.7\n"
ENDINGS = ("txt", "json", "csv", "md", "html", "tex", "trec", "fastrec")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with lists of two systems, their truth and a log."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fastrec.__file__).parents[1]))  # for separate processes
    for name, text in {"a.csv": LISTS, "b.csv": OTHER, "truth.csv": TRUTH, "log.csv": LOG}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(*arguments, text=None):
    """Run the command in this process, with a string as standard input."""
    return run_fastrec(*arguments, text=text)


def good(*arguments, text=None):
    result = run(*arguments, text=text)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def assert_fails(message, *arguments, text=None):
    """Check for exit code 2, one line that holds the message, and no output."""
    before = sorted(os.listdir())
    result = run(*arguments, text=text)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.stderr
    assert message in result.stderr
    assert sorted(os.listdir()) == before


# Formats by ending


def is_format(name):
    """Return whether a file holds the format that its name promises."""
    if name.endswith(".fastrec"):
        return len(fastrec.load(name)) > 0
    text = Path(name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        return json.loads(text) != {}
    if name.endswith(".csv"):
        return len(list(csv.DictReader(io.StringIO(text)))) > 0
    if name == "why.md":
        return text.startswith("**ndcg@2")
    begins = {".html": "<!doctype html>", ".tex": r"\begin{tabular}", ".md": "| ", ".trec": "num_q "}
    start = next((begin for ending, begin in begins.items() if name.endswith(ending)), "")
    return text.startswith(start) and ("─" in text) == name.endswith(".txt")


@pytest.mark.thorough(except_for="html|json")
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_ending_says_the_format(ending):
    compared = ("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv")
    commands = {
        "report": ("evaluate", "a.csv", "truth.csv", "--by", "country"),
        "again": ("report", "kept"),
        **({} if ending in ("fastrec", "trec") else {"comparison": compared}),
        **({"why": ("explain", "ndcg@2", "a.csv", "truth.csv")} if ending in ("txt", "json", "md") else {}),
    }
    good(*commands["report"], "--save", "kept")
    for name, arguments in commands.items():
        metrics = [] if arguments[0] in ("explain", "report") else ["-m", "ndcg@2,mrr"]
        assert good(*arguments, *metrics, "-o", f"{name}.{ending.upper()}") == ""
        os.rename(f"{name}.{ending.upper()}", f"{name}.{ending}")
        assert is_format(f"{name}.{ending}"), name
        if ending in ("html", "tex"):
            assert good(*arguments, *metrics, "--format", ending) == Path(f"{name}.{ending}").read_text()


def test_another_ending_is_an_error():
    evaluate = ("evaluate", "a.csv", "truth.csv", "-m", "mrr")
    known = "end the name in .txt, .json, .csv, .md, .html, .tex, .trec or .fastrec, or give --format"
    for name in ("report.pdf", "report.htm", "report.json.gz", "report.npz"):
        assert_fails(known, *evaluate, "-o", name)
    assert_fails("end the name in .txt, .json or .md", "explain", "mrr", "-o", "why.html")
    compare = ("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv")
    assert_fails("a comparison has no format with the ending .fastrec", *compare, "-o", "all.fastrec")
    good(*evaluate, "-o", "report.pdf", "--format", "json")
    assert json.loads(Path("report.pdf").read_text())["schema"] == 1
    good(*evaluate, "-o", "plain")
    assert Path("plain").read_text() == good(*evaluate)


def test_only_a_saved_report_has_its_ending():
    evaluate, compare = ("evaluate", "a.csv", "truth.csv", "-m", "mrr"), ("compare", "a.csv", "b.csv")
    message = "only a saved report ends in .fastrec: leave out --format to save one, or end the name in"
    for form, ending in (("json", ".json"), ("table", ".txt")):
        assert_fails(f"-o p.FASTREC: {message} {ending}", *evaluate, "-o", "p.FASTREC", "--format", form)
    message = "-o p.fastrec: only a saved report ends in .fastrec: end the name in .csv"
    assert_fails(message, *compare, "--truth", "truth.csv", "-o", "p.fastrec", "--format", "csv")
    message = "-o p.fastrec: only a saved report ends in .fastrec: end the name in .md"
    assert_fails(message, "explain", "mrr", "-o", "p.fastrec", "--format", "md")


@pytest.mark.thorough
def test_titles_of_pages():
    evaluate = ("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--title", "Spring & summer")
    good(*evaluate, "-o", "a.html")
    good(*evaluate, "--html", "b.html", "--save", "c.fastrec")
    good("report", "c.fastrec", "-o", "c.html", "--title", "Spring & summer")
    good("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv", "--title", "Spring & summer", "-o", "d.html")
    for name in "abcd":
        assert "<h1>Spring &amp; summer</h1>" in Path(f"{name}.html").read_text(encoding="utf-8")
    assert good(*evaluate, "--format", "md").startswith("# Spring & summer\n\n| metric")
    compared = good("compare", "a.csv", "b.csv", "--truth", "truth.csv", "--title", "Spring & summer", "--format", "md")
    assert compared.startswith("# Spring & summer\n\n|")
    result = run(*evaluate, "-o", "a.json")
    assert result.exit_code == 0 and is_format("a.json")
    assert result.stderr.startswith("fastrec: --title has no effect: only pages and Markdown have a title")


def facts_of(name):
    """Return the facts at the head of a page."""
    text = Path(name).read_text(encoding="utf-8")
    return dict(re.findall("<dt>([^<]*)<dd>([^<]*)", text.partition("<dl class=about>")[2].partition("</dl>")[0]))


def test_facts_at_the_head_of_pages():
    compare = ("compare", "a=a.csv", "truth=b.csv", "--truth", "truth.csv", "-m", "mrr")
    before = datetime.now().astimezone().date().isoformat()
    good(*compare, "-o", "c.html", "--about", "data=a & b=c")
    facts = facts_of("c.html")
    assert before <= facts.pop("date") <= datetime.now().astimezone().date().isoformat()
    assert facts == {"a": "a.csv", "truth": "b.csv", "--truth": "truth.csv", "data": "a &amp; b=c"}
    good("compare", "date=a.csv", "b=b.csv", "--truth", "truth.csv", "-m", "mrr", "-o", "d.html")
    facts = facts_of("d.html")
    assert before <= facts["date"] <= datetime.now().astimezone().date().isoformat()
    assert facts["system date"] == "a.csv"
    given = ("evaluate", "-", "truth.csv", "-m", "mrr@1", "--exclude", "b.csv", "--about", "date=2026-01-31")
    good(*given, "--html", "e.html", "--save", "e.fastrec", text=LISTS)
    assert facts_of("e.html") == {
        "date": "2026-01-31",
        "RECS": "standard input",
        "TRUTH": "truth.csv",
        "exclude": "b.csv",
    }
    pages = [good("report", "e.fastrec", "--format", "html", "--about", "date=2026-01-31") for _ in range(2)]
    assert pages[0] == pages[1]
    Path("r.html").write_text(pages[0], encoding="utf-8")
    assert facts_of("r.html") == {"date": "2026-01-31", "FILE": "e.fastrec"}
    assert "<dl" not in fastrec.load("e.fastrec").to_html()
    assert_fails("expected a name and a text, as in \"data=MovieLens 25M\", found 'x'", *compare, "--about", "x")
    said = run(*compare, "--about", "a=b").stderr
    assert said.startswith("fastrec: --about has no effect: only pages have facts (--html page.html, -o page.html)\n")


def test_tables_for_papers():
    compare = ("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv", "-m", "mrr", "--test", "t", "--paper")
    evaluate = ("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--paper")
    reports = {
        name: fastrec.evaluate_files(f"{name}.csv", "truth.csv", "mrr", per_user=True, rank="rank") for name in "ab"
    }
    found = fastrec.compare(reports, test="t")
    assert good(*compare, "--format", "md") == found.to_markdown(form="paper") + "\n"
    good(*compare, "-o", "p.tex", "--html", "p.html")
    assert Path("p.tex").read_text(encoding="utf-8") == found.to_latex(form="paper") + "\n"
    assert good(*evaluate, "--format", "md", "--title", "t") == f"# t\n\n{reports['a'].to_markdown(form='paper')}\n"
    for command in (compare, evaluate):
        message = "--paper is for Markdown and LaTeX: add -o table.md, -o table.tex or --format md"
        assert_fails(message, *command)
        assert_fails(message, *command, "-o", "p.json")


def test_names_that_are_no_file_of_that_format():
    evaluate = ("evaluate", "a.csv", "truth.csv", "-m", "mrr")
    assert [f".{ending}" for ending in ENDINGS] == [*output.FORMATS]
    for ending in (*output.ENDINGS, ".TXT", ".TEX"):
        message = f"x{ending}: a saved report cannot end in {ending.lower()}: use .fastrec, or -o FILE{ending.lower()}"
        assert_fails(message, *evaluate, "--save", f"x{ending}")
        with pytest.raises(fastrec.InputError, match=r"use \.fastrec, or call (to_\w+|str) to write "):
            fastrec.evaluate([[1]], [[1]], "mrr").save(f"x{ending}")
        assert not os.path.exists(f"x{ending}")
    assert_fails("-o .json: expected a name before the ending", *evaluate, "-o", ".json")
    for option in ("--output", "--save", "--html", "--per-user"):
        assert_fails(f"{option}: expected a file name, found an empty name", *evaluate, option, "")
    for option in ("--save", "--html"):
        assert_fails(f"{option}: expected a file name, found standard output", *evaluate, option, "-")
    assert good(*evaluate, "-o", "-") == good(*evaluate)
    assert good(*evaluate, "-o", "-", "--format", "csv").startswith("metric,mean,")


# Saved reports


@pytest.mark.parametrize("how", [("--save", "r.npz"), ("-o", "r.fastrec"), ("--save", "r")])
def test_a_saved_report_is_printed_again(how):
    evaluate = ("evaluate", "a.csv", "truth.csv", "-m", "ndcg@2,mrr", "--by", "country")
    good(*evaluate, *how)
    for format_ in ("table", "csv", "md", "tex"):
        assert good("report", how[1], "--format", format_) == good(*evaluate, "--format", format_)
    again, once = (json.loads(good(*call, "--format", "json")) for call in (("report", how[1]), evaluate))
    assert again | {"digest": None} == once  # which only reports with values of users have
    kept = fastrec.load(how[1])
    assert kept.per_user["mrr"].tolist() == [1.0, 0.5, pytest.approx(float("nan"), nan_ok=True), 0.0]
    assert kept.labels["country"].tolist() == ["NL", "BE", "(none)", "NL"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fastrec.evaluate([[1, 2], [3]], [[1], [4]], ["ndcg@2"], groups={"plan": [0, 1]}),
        lambda: fastrec.evaluate({"a": [1]}, {"a": [1]}, "mrr", like="trec_eval"),
        lambda: fastrec.evaluate_scores([1, 0, 1], [0.5, 0.2, 0.7]),
        lambda: fastrec.evaluate_scores([1, 0, 1], [0.5, 0.2, 0.7], [0, 2, 3], ["gauc", "ndcg@2"]),
        lambda: fastrec.evaluate_scores([1, 0, 1], [0.5, 0.2, 0.7], metrics="mae"),
        lambda: fastrec.evaluate([[1, 2]], [[2]], "mrr"),
    ],
)
def test_reports_of_python_are_printed(make):
    report = make()
    report.save("r.fastrec")
    assert json.loads(good("report", "r.fastrec", "--format", "json")) == json.loads(report.to_json())
    assert next(iter(report)) in good("report", "r.fastrec")
    assert next(iter(report)) in good("report", "r.fastrec", "--format", "md")


def test_a_metric_that_was_declared_elsewhere_is_printed():
    program = """
import fastrec
@fastrec.ranking_metric(range=(0, None), higher_is_better=True, source="here")
def own_hits(s):
    \"\"\"Hits of one's own.\"\"\"
    return s.hits
fastrec.evaluate([[1]], [[1]], "own_hits").save("own.fastrec")
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "own_hits" in good("report", "own.fastrec")


def test_gates_of_a_saved_report():
    good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--save", "r.fastrec")
    assert run("report", "r.fastrec", "--fail-under", "mrr=0.4").exit_code == 0
    result = run("report", "r.fastrec", "--fail-under", "mrr=0.6")
    assert result.exit_code == 1 and "mrr = 0.5, expected at least 0.6" in result.stderr
    assert_fails("'ndcg@3' is not in this report", "report", "r.fastrec", "--fail-under", "ndcg@3=1")
    assert_fails("would overwrite", "report", "r.fastrec", "-o", "r.fastrec")


def test_files_that_are_no_report():
    Path("cut.fastrec").write_bytes(b"PK\x03\x04 and no more")
    for name in ("a.csv", "cut.fastrec"):
        assert_fails(f"{name} is not a readable fastrec report", "report", name)
    assert_fails("no such file", "report", "none.fastrec")
    assert_fails("cut.fastrec is not a readable fastrec report", "compare", "a=cut.fastrec", "b=cut.fastrec")


def test_a_log_is_saved_with_its_users_if_it_has_any():
    good("evaluate", "log.csv", "-m", "auc,gauc(weight=equal)", "--save", "users.fastrec")
    assert fastrec.load("users.fastrec").per_user["gauc(weight=equal)"].tolist() == [1.0, 0.0]
    Path("rows.csv").write_text(LOG.replace("user_id", "session"))
    good("evaluate", "rows.csv", "-m", "auc", "--save", "rows.fastrec")
    assert not fastrec.load("rows.fastrec").has_values
    assert "auc" in good("report", "rows.fastrec")
    assert_fails("rows.fastrec: the report has no values per user", "compare", "a=rows.fastrec", "b=rows.fastrec")


def test_users_of_several_columns_are_saved():
    good("evaluate", "log.csv", "-m", "gauc", "--user-col", "user_id", "--user-col", "label", "--save", "x.fastrec")
    saved = fastrec.load("x.fastrec")
    assert all(len(user) == 2 for user in saved.user_ids) and len(set(saved.user_ids)) == saved.users["total"]


def test_saved_reports_are_compared():
    for name in "ab":
        good("evaluate", f"{name}.csv", "truth.csv", "-m", "ndcg@2,mrr", "--by", "country", "--save", f"{name}.fastrec")
    files = ("--truth", "truth.csv", "-m", "ndcg@2,mrr", "--by", "country")
    for format_ in ("table", "json", "md"):
        both = good("compare", "a=a.fastrec", "b=b.fastrec", "--format", format_)
        assert both == good("compare", "a=a.csv", "b=b.csv", *files, "--format", format_)
        assert both == good("compare", "a=a.fastrec", "b=b.csv", *files, "--format", format_)
    one = json.loads(good("compare", "a=a.fastrec", "b=b.fastrec", "-m", "mrr", "--format", "json"))
    assert {row["metric"] for row in one["rows"]} == {"mrr"}
    gate = ("compare", "a=a.fastrec", "b=b.fastrec", "--baseline", "a", "--fail-if-worse")
    of_few = run(*gate, "mrr")
    assert of_few.exit_code == 2
    assert "--fail-if-worse mrr cannot fail: its p-value is at least" in of_few.stderr
    assert run(*gate, "mrr", "--test", "t").exit_code == 0
    assert_fails("'hits' is not in this report", *gate, "hits")
    assert_fails("a.fastrec: 'map' is not in this report", "compare", "a=a.fastrec", "b=b.csv", *files[:2], "-m", "map")
    assert_fails("--ties is for files to evaluate", *gate[:3], "--ties", "best")
    assert_fails("--truth is for files to evaluate", *gate[:3], "--truth", "truth.csv")
    assert_fails("a.fastrec is a saved report, not rows", "evaluate", "a.fastrec", "truth.csv")
    other = ("compare", "a=a.fastrec", "b=b.csv", *files, "--no-truth", "zero")
    assert_fails("no_truth is 'skip' in a and 'zero' in b", *other)


# Standard input


@pytest.mark.parametrize("form", ["csv", "jsonl", "gzip", "trec"])
def test_rows_are_piped_in(form):
    wanted = json.loads(good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--format", "json"))["metrics"]
    rows = list(csv.DictReader(io.StringIO(LISTS)))
    typed = [{name: int(value) for name, value in row.items()} for row in rows]
    run_lines = [f"{row['user_id']} Q0 {row['item_id']} {row['rank']} {-int(row['rank'])} x" for row in rows]
    text = {
        "csv": LISTS,
        "jsonl": "".join(json.dumps(row) + "\n" for row in typed),
        "gzip": gzip.compress(LISTS.encode()),
        "trec": "\n".join(run_lines),
    }[form]
    found = json.loads(good("evaluate", "-", "truth.csv", "-m", "mrr", "--format", "json", text=text))
    assert found["metrics"] == wanted
    assert "standard-input" not in json.dumps(found)


def test_any_one_side_is_piped_in():
    wanted = good("evaluate", "a.csv", "truth.csv", "-m", "mrr,ndcg@2")
    assert good("evaluate", "a.csv", "-", "-m", "mrr,ndcg@2", text=TRUTH) == wanted
    assert good("evaluate", "-", "-m", "gauc", text=LOG) == good("evaluate", "log.csv", "-m", "gauc")
    ratings = LOG.replace("label", "target").replace("score", "prediction")
    assert "rmse" in good("evaluate", "-", "--target-col", "target", "--input-format", "csv", text=ratings)
    seen = good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--exclude", "-", text="user_id,item_id\n2,12\n")
    assert "1 item removed by exclude" in seen
    plans = "user_id,plan\n1,free\n2,paid\n4,free\n"
    assert "paid" in good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--by", "plan", "--users", "-", text=plans)
    files = good("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv", "-m", "mrr")
    assert good("compare", "a=-", "b=b.csv", "--truth", "truth.csv", "-m", "mrr", text=LISTS) == files
    assert good("compare", "a=a.csv", "b=b.csv", "--truth", "-", "-m", "mrr", text=TRUTH) == files
    why = good("explain", "mrr", "a.csv", "truth.csv", "--like", "ranx")
    assert good("explain", "mrr", "-", "truth.csv", "--like", "ranx", text=LISTS) == why


def test_a_page_is_no_saved_report():
    good("compare", "a=a.csv", "b=b.csv", "--truth", "truth.csv", "-m", "mrr", "-o", "page.html")
    takes = "; Report.save writes such reports, and --save or -o FILE.fastrec on the command line"
    assert_fails(f"page.html is not a readable fastrec report: it is an HTML page{takes}", "report", "page.html")
    assert_fails(f"a.csv is not a readable fastrec report: it is not a saved report{takes}", "report", "a.csv")


def test_labels_of_users_need_a_column():
    wanted = "--users has labels of users, but no column of them is named: add --by NAME"
    for arguments in (("evaluate", "a.csv"), ("compare", "a=a.csv", "b=b.csv", "--truth")):
        assert_fails(wanted, *arguments, "truth.csv", "-m", "mrr", "--users", "truth.csv")
    assert_fails(wanted, "evaluate", "log.csv", "-m", "gauc", "--users", "truth.csv")


def test_a_saved_report_is_piped_in():
    good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--save", "r.fastrec")
    saved = Path("r.fastrec").read_bytes()
    assert good("report", "-", text=saved) == good("report", "r.fastrec")
    assert_fails("standard input is not a readable fastrec report", "report", "-", text="none")


def test_what_is_wrong_with_standard_input():
    evaluate = ("evaluate", "-", "truth.csv", "-m", "mrr")
    assert_fails("RECS and TRUTH are both -", "evaluate", "-", "-", text=LISTS)
    assert_fails("TRUTH and --exclude are both -", "evaluate", "a.csv", "-", "--exclude", "-", text=LISTS)
    assert_fails("standard input: the file is empty", *evaluate, text="")
    assert_fails("standard input: no column 'item_id'", *evaluate, text="user_id,sku\n1,2\n")
    assert_fails("standard input: not a Parquet file", *evaluate, "--input-format", "parquet", text=LISTS)
    assert_fails("standard input: neither Parquet, Arrow nor text", *evaluate, text=b"\xff\xfe\x00")
    for form in ("table", "json"):
        result = run(*evaluate, "--format", form, text="user_id,item_id,rank\n71,10,1\n")
        assert result.exit_code == 0 and "user ids look like 71 in recs and " in result.stderr
        assert "standard-input" not in result.stderr + result.stdout


def test_nothing_of_standard_input_is_left(tmp_path):
    evaluate = ("evaluate", "-", "truth.csv", "-m", "mrr", "--temp-dir", tmp_path / "own")
    (tmp_path / "own").mkdir()
    good(*evaluate, text=LISTS)
    assert run(*evaluate, text="user_id\n").exit_code == 2
    assert os.listdir(tmp_path / "own") == []


@pytest.mark.thorough
def test_a_pipe_of_two_processes():
    command = f"cat a.csv | {sys.executable} -m fastrec evaluate - truth.csv -m mrr --format csv"
    piped = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=300)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout == good("evaluate", "a.csv", "truth.csv", "-m", "mrr", "--format", "csv")
    closed = subprocess.run(
        ["sh", "-c", command.partition("| ")[2] + " <&-"], capture_output=True, text=True, check=False, timeout=300
    )
    assert closed.returncode == 2 and closed.stderr.count("\n") == 1 and "standard input" in closed.stderr


# The format of trec_eval

RUN = "q1 Q0 d1 1 3.0 x\nq1 Q0 d2 2 2.0 x\nq1 Q0 d3 3 1.0 x\nq10 Q0 d9 1 1.0 x\n"
QRELS = "q1 0 d1 0\nq1 0 d2 1\nq10 0 d9 1\nq11 0 d1 1\n"
VERSION_10 = ("iprec_at_recall_", "11pt_avg")  # the reference output rounds numbers of documents as version 10 does


def test_lines_of_trec_eval(folder):
    (folder / "run.txt").write_text(RUN)
    (folder / "qrels.txt").write_text(QRELS)
    files = ("evaluate", "run.txt", "qrels.txt", "--like", "trec_eval", "-m", "map,gm_map,P_5,ndcg")
    lines = good(*files, "--format", "trec", "--per-user", "queries.trec")
    assert lines == (
        "num_q                 \tall\t2\n"
        "map                   \tall\t0.7500\n"
        "gm_map                \tall\t0.7071\n"
        "P_5                   \tall\t0.2000\n"
        "ndcg                  \tall\t0.8155\n"
    )
    values = {"q1": ("0.5000", "0.2000", "0.6309"), "q10": ("1.0000", "0.2000", "1.0000")}
    assert (folder / "queries.trec").read_text() == "".join(
        f"{measure:<22}\t{query}\t{value}\n"
        for query, own in values.items()
        for measure, value in zip(("map", "P_5", "ndcg"), own, strict=True)
    )
    good(*files, "-o", "values.trec")
    assert (folder / "values.trec").read_text() == lines
    plain = good("evaluate", "run.txt", "qrels.txt", "-m", "mrr", "--no-recs", "skip", "--format", "trec")
    assert plain.splitlines()[1] == "mrr                   \tall\t0.7500"


def test_lines_of_users_have_values_of_users_alone(folder):
    (folder / "run.csv").write_text("user_id,item_id,rank\na,1,1\na,2,2\n")
    (folder / "truth.csv").write_text("user_id,item_id\na,1\n")
    metrics = ("-m", "mrr,gini@2,mrr(mean=geometric)", "--n-items", "9", "--per-user", "users.trec")
    good("evaluate", "run.csv", "truth.csv", *metrics)
    assert (folder / "users.trec").read_text() == "mrr                   \ta\t1.0000\n"


def test_the_format_of_trec_eval_holds_no_blanks(folder):
    (folder / "run.csv").write_text("user_id,item_id,rank\na b,1,1\n")
    (folder / "truth.csv").write_text("user_id,item_id\na b,1\n")
    message = "the format of trec_eval cannot hold user 'a b': it is empty or has white space"
    assert_fails(message, "evaluate", "run.csv", "truth.csv", "-m", "mrr", "--per-user", "users.trec")
    assert not (folder / "users.trec").exists()


def test_measures_in_the_format_of_trec_eval_have_no_blanks(folder):
    files = ("evaluate", "a.csv", "truth.csv", "-m", "ndcg(gain=binary, discount=log2_flat2)@2")
    lines = good(*files, "--format", "trec", "--per-user", "users.trec").splitlines()
    lines += (folder / "users.trec").read_text().splitlines()
    assert all(len(line.split()) == 3 for line in lines) and len(lines) > 3
    (name,) = {line.split()[0] for line in lines} - {"num_q"}
    assert [*json.loads(good("evaluate", "a.csv", "truth.csv", "-m", name, "--format", "json"))["metrics"]] == [
        files[4]
    ]


@pytest.mark.parametrize("option", ["--by", "--row-by", "--user-col"])
def test_names_of_columns_with_commas_are_several_options(folder, option):
    (folder / "log.csv").write_text("user_id,c,d,label,score\n1,a,b,1,.9\n1,a,b,0,.8\n")
    (folder / "lists.csv").write_text("user_id,item_id,c\n1,10,a\n")
    (folder / "relevant.csv").write_text("user_id,item_id,my d\n1,10,a\n")
    assert_fails(
        f"'c, d'{' to group by' * (option == '--by')}; for several pass {option} c {option} d\n",
        "evaluate",
        "log.csv",
        "-m",
        "auc",
        option,
        "c, d",
    )
    if option == "--by":
        neither = "neither lists.csv nor relevant.csv has the column"
        says = f"{neither} 'c,my d' to group by; for several pass --by c --by 'my d'\n"
        assert_fails(says, "evaluate", "lists.csv", "relevant.csv", "-m", "mrr", option, "c,my d")
        assert_fails("--users adds a file", "evaluate", "lists.csv", "relevant.csv", "-m", "mrr", option, "c,e")
        with pytest.raises(fastrec.InputError, match=r"'c,d' to group by; for several pass by=\['c', 'd'\]$"):
            fastrec.evaluate_files("log.csv", metrics="auc", by="c,d")


@pytest.mark.skipif("FASTREC_TEST_DATA" not in os.environ, reason="FASTREC_TEST_DATA names no folder with real data")
def test_the_lines_of_a_real_run_are_those_of_trec_eval(folder):
    data = Path(os.environ["FASTREC_TEST_DATA"]) / "trec_eval"
    (folder / "run.txt").write_bytes((data / "results.test").read_bytes())
    (folder / "qrels.txt").write_bytes((data / "qrels.test").read_bytes())
    files = ("evaluate", "run.txt", "qrels.txt", "--like", "trec_eval", "-m", "all_trec", "--format", "trec")
    found = {*good(*files, "--per-user", "queries.trec").splitlines()}
    found |= {*(folder / "queries.trec").read_text().splitlines()}
    printed = {*(data / "out.test.aq").read_text().splitlines()}
    assert {line for line in found - printed if not line.startswith(VERSION_10)} == set()
    left_out = {line.split()[0] for line in printed - found if not line.startswith(VERSION_10)}
    counts = {"num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"}
    assert left_out == {*counts, "rbp", "relstring", "runid", "utility"}

"""The command line: its output from real files, on both streams, and its exit codes."""

import contextlib
import csv
import html
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fastrec
from fastrec.cli import compare as cli_compare
from fastrec.cli import draw, group
from fastrec.cli import options as cli_options
from fastrec.cli.program import program
from fastrec.demo import ACCURACY, CATALOGUE, evaluate_demo, write_demo
from fastrec.exceptions import LONGEST, Argument, Text
from support.arrays import area_of_trapezoids
from support.command_line import run_fastrec
from support.pages import Page

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("click")
Console = pytest.importorskip("rich.console").Console

# One relevant item per user, at rank 1 and at rank 2; user 3 has a list and no truth, user 4 truth and no list.
LISTS = "user_id,item_id,rank\n1,10,1\n1,11,2\n2,10,2\n2,12,1\n3,10,1\n"
TRUTH = "user_id,item_id,gain,country\n1,10,1,NL\n2,10,3,BE\n4,12,2,NL\n"
SECOND = 1 / math.log2(3)  # the discount of rank 2
INTERVAL = r"(?: ±[0-9.]+| \([0-9.]+ – [0-9.]+\))?"  # after a mean


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder with the two files in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fastrec.__file__).parents[1]))  # for separate processes
    (tmp_path / "recs.csv").write_text(LISTS)
    (tmp_path / "truth.csv").write_text(TRUTH)
    return tmp_path


def run(*arguments):
    """Run the command in this process."""
    return run_fastrec(*arguments)


def evaluate(*arguments):
    return run("evaluate", "recs.csv", "truth.csv", *arguments)


def means(*arguments):
    """Return the means that a successful evaluation prints as JSON."""
    result = run("evaluate", *arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return {name: found["mean"] for name, found in json.loads(result.stdout)["metrics"].items()}


def command(*arguments, **options):
    """Run the command in a separate process."""
    return subprocess.run(
        [sys.executable, "-m", "fastrec", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def assert_fails(result, message, *, folder=None, files=("recs.csv", "truth.csv")):
    """Check for exit code 2, no standard output, one line on standard error, and no file left behind."""
    assert result.stdout == ""
    assert result.stderr.startswith("fastrec: error: ") and result.stderr.endswith("\n")
    assert result.stderr.count("\n") == 1
    assert re.search(message, result.stderr), result.stderr
    code = result.exit_code if hasattr(result, "exit_code") else result.returncode
    assert code == 2
    if folder is not None:
        assert sorted(os.listdir(folder)) == sorted(files)


# Values


def test_hand_worked_values(folder):
    found = means("recs.csv", "truth.csv", "-m", "ndcg@10,recall@1", "-m", "mrr@2")
    assert found == {"ndcg@10": pytest.approx((1 + SECOND) / 3), "recall@1": 1 / 3, "mrr@2": 0.5}


@pytest.mark.thorough
def test_policies_reach_the_evaluation(folder):
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--no-recs", "skip") == {"mrr": 0.75}
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--no-truth", "zero") == {"mrr": 0.375}
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--min-gain", "2") == {"mrr": 0.25}
    (folder / "judged.csv").write_text("user_id,item_id,gain\n1,10,0\n2,10,3\n")
    assert means("recs.csv", "judged.csv", "-m", "mrr") == {"mrr": 0.5}
    assert means("recs.csv", "judged.csv", "-m", "mrr", "--min-gain", "any") == {"mrr": 0.75}
    assert means("recs.csv", "judged.csv", "-m", "mrr", "--like", "rectools") == {"mrr": 0.75}
    assert means("recs.csv", "judged.csv", "-m", "mrr", "--like", "rectools", "--min-gain", "1") == {"mrr": 0.5}
    assert "min_gain=any" in evaluate("-m", "mrr", "--like", "rectools").stdout
    assert means("recs.csv", "truth.csv", "-m", "accuracy@1", "--n-items", "4", "--no-recs", "skip") == {
        "accuracy@1": 0.75
    }


def test_seen_items_are_taken_out(folder):
    (folder / "seen.csv").write_text("user_id,item_id\n2,12\n7,10\n")
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--exclude", "seen.csv") == {"mrr": pytest.approx(2 / 3)}


def test_duplicates(folder):
    (folder / "recs.csv").write_text("user_id,item_id\n1,11\n1,11\n1,10\n")
    assert_fails(evaluate(), "user 1: item 11 appears twice", folder=folder)
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--duplicates", "first", "--no-recs", "skip") == {"mrr": 0.5}
    found = means("recs.csv", "truth.csv", "-m", "mrr", "--duplicates", "miss", "--no-recs", "skip")
    assert found == {"mrr": pytest.approx(1 / 3)}


def test_errors_name_the_items_of_the_files(folder):
    (folder / "recs.csv").write_text("user_id,item_id\nann,tea\nann,mug\nann,tea\n")
    (folder / "truth.csv").write_text("user_id,item_id\nann,tea\n")
    assert_fails(evaluate(), "user 'ann': item 'tea' appears twice", folder=folder)


def test_ties_of_text_ids_follow_their_bytes(folder):
    (folder / "recs.csv").write_text("user_id,item_id,score\na,Z,1\na,é,1\na,b,1\n")
    (folder / "truth.csv").write_text("user_id,item_id\na,b\n")
    for ties, mrr in (("id_asc", 1 / 2), ("id_desc", 1 / 2), ("input", 1 / 3), ("best", 1), ("worst", 1 / 3)):
        assert means("recs.csv", "truth.csv", "-m", "mrr", "--ties", ties) == {"mrr": pytest.approx(mrr)}
    (folder / "truth.csv").write_text("user_id,item_id\na,é\n")
    assert means("recs.csv", "truth.csv", "-m", "mrr", "--ties", "id_desc") == {"mrr": 1}
    assert_fails(evaluate("--ties", "error"), "items 'Z' and 'é' have the same score", folder=folder)


def make_log(rng, n_users=200, n_items=50, length=20):
    """Return lists with scores, and graded truth, as flat arrays in shuffled order."""
    users = np.repeat(np.arange(n_users), length)
    items = np.concatenate([rng.permutation(n_items)[:length] for _ in range(n_users)])
    scores = rng.random(len(items))
    truth = rng.random((n_users, n_items)) < 0.1
    truth_users, truth_items = np.nonzero(truth)
    gains = rng.integers(0, 4, len(truth_users))
    shuffled, mixed = rng.permutation(len(items)), rng.permutation(len(truth_items))
    recs = {"user_id": users[shuffled], "item_id": items[shuffled], "score": scores[shuffled]}
    return recs, {"user_id": truth_users[mixed], "item_id": truth_items[mixed], "gain": gains[mixed]}


def as_dicts(recs, truth):
    """Return the same log as dictionaries, with users and items as in the files."""
    lists, relevant = {}, {}
    for user, item, score in zip(*(column.tolist() for column in recs.values()), strict=True):
        lists.setdefault(user, {})[item] = score
    for user, item, gain in zip(*(column.tolist() for column in truth.values()), strict=True):
        relevant.setdefault(user, {})[item] = gain
    return lists, relevant


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("text_ids", [False, True])
def test_files_give_what_arrays_give(folder, kind, text_ids):
    recs, truth = make_log(np.random.default_rng(4))
    metrics = ["ndcg@10", "ndcg(gain=exp2)@5", "recall@20", "map", "mrr@10"]
    expected = fastrec.evaluate(*as_dicts(recs, truth), metrics)
    if text_ids:
        recs, truth = (
            columns | {name: np.char.add("x00", columns[name].astype(str)) for name in ("user_id", "item_id")}
            for columns in (recs, truth)
        )
    for name, columns in (("r", recs), ("t", truth)):
        if kind == "parquet":
            pq.write_table(pa.table(columns), f"{name}.parquet")
        else:
            with open(f"{name}.csv", "w", newline="") as stream:
                csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    found = means(f"r.{kind}", f"t.{kind}", *(part for metric in metrics for part in ("-m", metric)))
    assert found == pytest.approx(dict(expected), abs=1e-12)


def test_cut_offs_and_commas_in_brackets(folder):
    found = means(
        "recs.csv",
        "truth.csv",
        "-m",
        "ndcg(gain=[0, 1, 3, 7], ideal=list),recall@3",
        "-m",
        "hits",
        "-k",
        "1, 2",
        "-k",
        "5",
    )
    name = "ndcg(gain=[0, 1, 3, 7], ideal=list)"
    assert list(found) == [f"{name}@1", f"{name}@2", f"{name}@5", "recall@3", "hits@1", "hits@2", "hits@5"]


def test_default_metrics(folder):
    assert list(means("recs.csv", "truth.csv")) == [
        f"{name}@10" for name in ("ndcg", "recall", "precision", "map", "mrr", "hit_rate")
    ]


def test_named_columns(folder):
    name = '"; DROP TABLE x; --'
    pq.write_table(pa.table({name: [1, 1], "it em": [5, 6], "place": [2, 1], "rank": [1, 2]}), "r.parquet")
    pq.write_table(pa.table({name: [1], "it em": [5], "stars": [4], "a;b": ["[red]"]}), "t.parquet")
    columns = ("--user-col", name, "--item-col", "it em", "--rank-col", "place", "--gain-col", "stars")
    assert means("r.parquet", "t.parquet", "-m", "mrr,dcg", *columns) == {
        "mrr": 0.5,
        "dcg": pytest.approx(4 * SECOND),
    }
    result = run("evaluate", "r.parquet", "t.parquet", "-m", "mrr", *columns, "--by", "a;b")
    assert result.exit_code == 0
    assert "[red]" in result.stdout and "a;b" in result.stdout


# Formats


def test_the_table_for_people(folder):
    sized = evaluate("-m", "item_coverage@2,mrr", "--n-items", "99", "--by", "country").stdout
    assert "item_coverage@2 depends on the number of users of a group" in sized
    result = evaluate("-m", "mrr@10,hits", "--by", "country")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["metric", "mean", "95", "%", "interval", "users"]
    assert re.fullmatch(r"mrr@10 +0\.5000 +0\.0000 – 1\.0000 +3", lines[2])
    assert any(re.fullmatch(r"BE +1 +0\.5000 +1\.0000", line) for line in lines)
    assert any(
        re.fullmatch(r"NL +2 +0\.5000 \(0\.0945 – 0\.9055\) +0\.5000 \(0\.0000 – 6\.8531\)", line) for line in lines
    )
    assert lines[-7:] == [
        "3 of 4 users evaluated",
        "1 without a relevant item, left out",
        "1 without a list, counted as 0",
        "5 rows of lists, 3 of truth",
        "the longest list has 2 items: places after it are misses",
        "lists in the order of their ranks; gains as given",
        "66.7 % of the relevant items are in the lists",
    ]
    assert "(none)" not in result.stdout
    assert "\x1b" not in result.stdout
    assert max(map(len, lines)) <= 80


def test_json(folder):
    result = evaluate("-m", "mrr", "--by", "country", "--format", "json")
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert found["schema"] == 1
    assert found["fastrec"] == fastrec.__version__
    few = "few users with a hit: the interval may be too narrow"
    of_all = {"mean": 0.5, "std_error": pytest.approx(math.sqrt(1 / 12)), "users": 3, "degrees": 2, "kind": "student"}
    of_all |= {"range": [0, 1], "note": few, "low": 0, "high": 1}
    assert found["metrics"] == {"mrr": of_all}
    assert found["users"] == {"total": 4, "evaluated": 3, "no_truth": 1, "no_recs": 1}
    rest = of_all | {"std_error": pytest.approx(0.5), "users": 2, "degrees": 1, "kind": "wilson", "note": ""}
    rest |= {"low": pytest.approx(0.0945, abs=1e-4), "high": pytest.approx(0.9055, abs=1e-4)}  # of one hit of two
    one = of_all | {"std_error": None, "users": 1, "degrees": 0, "note": "", "low": None, "high": None, "rest": rest}
    assert found["groups"]["country"]["BE"] == {"mrr": one}
    assert found["settings"]["no_recs"] == "zero"
    assert {"data", "groups"} <= set(found)


def test_csv(folder):
    rows = list(csv.DictReader(io.StringIO(evaluate("-m", "mrr,hits", "--by", "country", "--format", "csv").stdout)))
    gap = ["difference", "difference_low", "difference_high"]
    assert list(rows[0]) == ["metric", "mean", "std_error", "low", "high", "users", "note", "grouping", "group", *gap]
    assert [(row["metric"], row["mean"], row["grouping"], row["group"]) for row in rows[:4]] == [
        ("mrr", "0.5", "", ""),
        ("hits", repr(2 / 3), "", ""),
        ("mrr", "", "country", "(none)"),
        ("hits", "", "country", "(none)"),
    ]


def test_markdown(folder):
    (folder / "truth.csv").write_text(TRUTH.replace("NL", "N|L"))
    lines = evaluate("-m", "mrr", "--by", "country", "--format", "md").stdout.splitlines()
    assert lines[:3] == [
        "| metric | mean | 95 % interval | users |",
        "| --- | ---: | ---: | ---: |",
        "| mrr | 0.5000 | 0.0000 – 1.0000 | 3 |",
    ]
    assert "| N\\|L | mrr | 0.5000 | 0.0945 – 0.9055 | 2 | 0.0000 | – |" in lines


@pytest.mark.thorough(except_for="json")
@pytest.mark.parametrize("name", ["out.json", "out.csv", "out.md", "out.txt"])
def test_output_files(folder, name):
    result = evaluate("-m", "mrr", "-o", name)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    text = (folder / name).read_text()
    ending = name.partition(".")[2]
    assert text == evaluate("-m", "mrr", "--format", "table" if ending == "txt" else ending).stdout
    assert sorted(os.listdir(folder)) == sorted([name, "recs.csv", "truth.csv"])
    evaluate("-m", "mrr", "-o", name, "--format", "json")
    assert json.loads((folder / name).read_text())["schema"] == 1


def test_a_device_as_output(folder):
    assert evaluate("-o", os.devnull).exit_code == 0
    assert not os.path.isfile(os.devnull)


@pytest.mark.parametrize("name", ["users.csv", "users.PARQUET"])
def test_values_of_each_user(folder, name):
    result = evaluate("-m", "mrr,ndcg@10", "--by", "country", "--per-user", name)
    assert result.exit_code == 0
    if name.endswith("csv"):
        with open(name, newline="") as stream:
            rows = list(csv.reader(stream))
        assert rows[0] == ["user_id", "country", "mrr", "ndcg@10"]
        assert rows[1:] == [
            ["1", "NL", "1", "1"],
            ["2", "BE", "0.5", repr(SECOND)],
            ["3", "(none)", "", ""],
            ["4", "NL", "0", "0"],
        ]
    else:
        table = pq.read_table(name)
        assert table["user_id"].to_pylist() == [1, 2, 3, 4]
        assert table["ndcg@10"].to_pylist() == [1.0, pytest.approx(SECOND), None, 0.0]


def test_a_warning_when_nothing_matches(folder):
    (folder / "truth.csv").write_text("user_id,item_id\n1,99\n2,98\n")
    result = evaluate("-m", "mrr", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["metrics"]["mrr"]["mean"] == 0
    lines = result.stderr.splitlines()
    shown = "(item ids look like 10 in recs and 98 in truth)"
    assert lines == [f"fastrec: warning: no truth item is in its user's list: do the ids match? {shown}"]


# Thresholds


@pytest.mark.parametrize(
    ("thresholds", "code"),
    [
        (["mrr=0.5"], 0),
        (["mrr=0.51"], 1),
        (["mrr=.5", "recall@1=.9", "map(denominator=n_rel)@3=.9"], 1),
        (["map( denominator = n_rel )@3=0.1", "ndcg(gain=linear)@10=.1"], 0),
        (["recall@1=-1"], 0),
    ],
)
def test_fail_under(folder, thresholds, code):
    options = [part for threshold in thresholds for part in ("--fail-under", threshold)]
    result = evaluate("-m", "mrr,recall@1,map(denominator=n_rel)@3,ndcg@10", "-o", "out.json", *options)
    assert result.exit_code == code
    assert (folder / "out.json").exists()
    if code:
        assert re.match(r"fastrec: \S+ = 0\.\d+, expected at least 0\.\d+\n", result.stderr)


def test_a_mean_that_does_not_exist_is_under_every_threshold(folder):
    (folder / "truth.csv").write_text("user_id,item_id,gain\n1,10,0\n")
    result = evaluate("-m", "mrr", "--fail-under", "mrr=0")
    assert result.exit_code == 1
    assert "mrr has no value, expected at least 0.0" in result.stderr
    assert "–" in result.stdout


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "ndgc@10"], "unknown metric 'ndgc'; did you mean 'ndcg'"),
        (["-m", "ndcg(gian=exp2)@10"], "no option 'gian'"),
        (["-m", "ndcg@0"], "cut-off"),
        (["-m", ","], "-m names no metric"),
        (["-m", "ndcg(gain=[0,1@10"], "cannot read"),
        (["-m", "err@10"], "max_gain"),
        (["-m", "accuracy@10"], "needs the size of the catalogue: --n-items"),
        (["-k", "5,x"], "expected integers of at least 1"),
        (["-k", "0"], "expected integers of at least 1"),
        (["-k", "9" * 5000], "expected integers of at least 1"),
        (["-k", ""], "expected integers of at least 1"),
        (["--ties", "random"], "--ties"),
        (["--format", "xml"], "--format"),
        (["--threads", "0"], "--threads"),
        (["--n-items", "-1"], "--n-items"),
        (["--min-gain", "x"], "--min-gain.*expected a number, or any, found 'x'"),
        (["--min-gain", "-1"], "--min-gain must be finite and above 0"),
        (["--colour"], "No such option"),
        (["--fail-if-worse", "mrr"], r"'?--fail-if-worse'?\. It is an option of: fastrec compare\.$"),
        (["more"], "unexpected extra argument"),
        (["--user-col", "user"], r"recs\.csv: no column 'user' \(did you mean 'user_id'\?\)"),
        (["--gain-col", "stars"], r"truth\.csv: no column 'stars'; its columns are 'user_id'"),
        (["--by", "state"], "neither recs.csv nor truth.csv has the column 'state'"),
        (["--exclude", "seen.csv"], r"seen\.csv: no such file"),
        (["-m", "ndcg@10,auc"], "auc is a metric of scored rows: give a LOG and leave out TRUTH"),
        (["--label-col", "x"], "--label-col is for a LOG: leave out TRUTH"),
        (["--prediction-col", "x"], "--prediction-col is for a LOG"),
        (["--one-class", "half"], "--one-class is for a LOG"),
        (["--weight-col", "x"], "--weight-col is for a LOG"),
        (["--curves", "c.json"], "--curves is for a LOG"),
        (["--fail-under", "ndcg@10"], "expected a metric and a number"),
        (["--fail-under", "ndcg(gain=exp2)"], "expected a metric and a number"),
        (["--fail-under", "ndcg@10=nan"], "expected a metric and a number"),
        (["--fail-under", "ndcg@11=0.1"], r"ndcg@11: the metric is not evaluated, only ndcg@10, recall@10"),
        (["--fail-under", "ndgc@10=0.1"], "unknown metric 'ndgc'"),
        (["-o", "none/out.json"], "the folder .* does not exist"),
        (["-o", "."], "is a folder"),
        (["-o", "./recs.csv"], r"\./recs\.csv would overwrite recs\.csv"),
        (["--per-user", "users.xlsx"], r"must end in \.csv, \.parquet or \.trec"),
        (["--per-user", "truth.csv"], r"would overwrite truth\.csv"),
        (["-o", "a.csv", "--per-user", "a.csv"], r"would overwrite a\.csv"),
    ],
)
def test_wrong_usage_is_one_line(folder, arguments, message):
    assert_fails(evaluate("-o", "out.json", *arguments), message, folder=folder)


BAD_LISTS = {
    "empty": ("", "the file is empty"),
    "zeros": ("user_id,item_id\n1,010\n", "item ids cannot be matched"),
    "text": (
        "user_id,item_id\nu1,10\n",
        "user ids cannot be matched: truth.csv: column 'user_id' holds integers",
    ),
    "floats": ("user_id,item_id\n1,10.0\n", "write ids as integers"),
    "null": ("user_id,item_id\n1,\n", r"column 'item_id' must not be null, found null in row 1"),
    "short": ("user_id,item_id\n1\n", "line 2: 2 columns expected, 1 found"),
    "rank": ("user_id,item_id,rank\n1,10,1\n1,11,1\n", "holds a rank twice for one user"),
    "score": ("user_id,item_id,score\n1,10,high\n", "found 'high' in row 1"),
    "binary": ("\0\1\2", "neither Parquet, Arrow nor text"),
    "escape": ("user_id,item_id,score\n1,10,\x1b[31m\n", r"\\x1b\[31m"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_bad_files_are_one_line(folder, name):
    content, message = BAD_LISTS[name]
    (folder / "recs.csv").write_text(content)
    assert_fails(evaluate("-o", "out.json", "--per-user", "users.csv"), message, folder=folder)


def test_bad_and_missing_parquet_files(folder):
    pq.write_table(pa.table({"user_id": [1], "item_id": [1]}), "recs.parquet")
    whole = (folder / "recs.parquet").read_bytes()
    (folder / "recs.parquet").write_bytes(whole[:-5])
    assert_fails(run("evaluate", "recs.parquet", "truth.csv"), r"recs\.parquet: cannot be read as Parquet: ")
    pq.write_table(pa.table({"user_id": ["1"], "item_id": [1]}), "recs.parquet")
    pq.write_table(pa.table({"user_id": [1], "item_id": [1]}), "truth.parquet")
    assert_fails(run("evaluate", "recs.parquet", "truth.parquet"), "user ids must be of one type")
    assert_fails(run("evaluate", "gone.parquet", "truth.csv"), r"gone\.parquet: no such file")
    assert_fails(run("evaluate", "recs.parquet"), r"no column 'label'; .* lists need a second file, TRUTH")
    assert_fails(run("evaluate"), r"Missing argument 'RECS\|LOG'")


def test_an_output_that_fails_late_leaves_nothing(folder, monkeypatch):
    monkeypatch.setattr(
        "fastrec.cli.evaluate.write_report", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    assert_fails(evaluate("-o", "out.json"), "No space left on device", folder=folder)


# Scored logs

# Users 1 and 2 have AUC 2/3 and 1/2; user 3 has no positive row. The rows of a user are not consecutive.
LOG = """user_id,item_id,label,score,country,position,w
2,21,1,.9,BE,1,1
1,11,1,.9,NL,1,2
1,12,0,.8,NL,1,1
2,22,0,.8,BE,1,1
1,13,1,.7,NL,2,1
1,14,1,.6,NL,2,1
2,23,0,.7,BE,2,1
2,24,1,.6,BE,2,3
1,15,0,.5,NL,2,1
3,31,0,.5,NL,1,1
"""
RATINGS = "user_id,stars,guess,target,prediction\n1,5,4.5,1,1\n1,3,3.5,1,1\n2,4,4,1,1\n2,1,3,1,2\n"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """An empty current folder with a scored log and a file of ratings in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(fastrec.__file__).parents[1]))
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "ratings.csv").write_text(RATINGS)
    return tmp_path


def assert_log_fails(result, message, *, folder=None):
    assert_fails(result, message, folder=folder, files=("log.csv", "ratings.csv"))


def column_of(name, text=LOG):
    return [row[name] for row in csv.DictReader(io.StringIO(text))]


def test_a_scored_log(logs):
    found = means("log.csv", "-m", "gauc,gauc(weight=equal),auc,ndcg@3")
    arrays = [1, 0, 1, 1, 0, 1, 0, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6, 0.5], [0, 5, 9, 10]
    assert found == dict(fastrec.evaluate_scores(*arrays, ["gauc", "gauc(weight=equal)", "auc", "ndcg@3"]))
    assert found["gauc"] == pytest.approx((5 * 2 / 3 + 4 / 2) / 9)


def test_policies_of_a_log_reach_the_evaluation(logs):
    assert means("log.csv", "-m", "gauc(weight=equal)", "--one-class", "half") == {
        "gauc(weight=equal)": pytest.approx(5 / 9)
    }
    assert means("log.csv", "-m", "mrr", "--no-truth", "zero") == {"mrr": pytest.approx(2 / 3)}
    assert means("log.csv", "-m", "accuracy@1", "--n-items", "10") == {"accuracy@1": pytest.approx(0.85)}
    labels, scores = ([float(text) for text in column_of(name)] for name in ("label", "score"))
    weights = [float(text) for text in column_of("w")]
    assert means("log.csv", "-m", "auc", "--weight-col", "w") == {
        "auc": fastrec.auc(labels, scores, sample_weight=weights)
    }


def test_graded_labels(logs):
    (logs / "log.csv").write_text(LOG.replace("11,1,", "11,3,").replace("24,1,", "24,3,"))
    assert means("log.csv", "-m", "gauc", "--min-gain", "2")["gauc"] == pytest.approx((5 * 1 + 4 * 0) / 9)
    assert means("log.csv", "-m", "dcg@1") == {"dcg@1": 2.0}
    result = run("evaluate", "log.csv", "-m", "ndcg,auc")
    assert_log_fails(
        result,
        r"log\.csv: column 'label': labels must be 0 or 1 for auc, found 3 in row 2; --min-gain says",
        folder=logs,
    )


def test_several_user_columns_make_a_user(logs):
    options = ("-m", "gauc", "--user-col", "user_id", "--user-col", "position", "--by", "position")
    result = run("evaluate", "log.csv", *options, "--format", "json", "--per-user", "users.csv")
    found = json.loads(result.stdout)
    assert found["users"]["total"] == 5
    assert found["metrics"]["gauc"]["mean"] == pytest.approx((2 * 1 + 2 * 1 + 3 * 1 + 2 * 0) / 9)
    assert found["groups"]["position"]["2"]["gauc"]["mean"] == pytest.approx(3 / 5)
    lines = (logs / "users.csv").read_text().splitlines()
    assert lines == ['"user_id","position","gauc"', "1,1,1", "1,2,1", "2,1,1", "2,2,0", "3,1,"]
    result = run("evaluate", "log.csv", "-m", "gauc", "--by", "position")
    assert_log_fails(result, "log.csv: column 'position' must agree within a user, .* as row_groups or --row-by")


def test_values_of_each_user_of_a_log(logs):
    (logs / "log.csv").write_text(re.sub(r"(?m)^(\d),", r"u\1,", LOG))
    run("evaluate", "log.csv", "-m", "gauc,log_loss(average=user)", "--by", "country", "--per-user", "users.parquet")
    table = pq.read_table("users.parquet")
    assert table.column_names == ["user_id", "country", "gauc", "log_loss(average=user)"]
    assert table["user_id"].to_pylist() == ["u1", "u2", "u3"]
    assert table["country"].to_pylist() == ["NL", "BE", "NL"]
    assert table["gauc"].to_pylist() == [pytest.approx(2 / 3), 0.5, None]


def test_a_log_without_users(logs):
    (logs / "log.csv").write_text(LOG.replace("user_id", "session"))
    assert list(means("log.csv")) == ["auc", "average_precision", "log_loss", "calibration"]
    lines = run("evaluate", "log.csv", "-m", "auc").stdout.splitlines()
    assert lines[0].split() == ["metric", "mean", "95", "%", "interval"]
    assert lines[-1] == "10 rows (5 positive)"
    assert run("evaluate", "log.csv", "-m", "auc", "--format", "md").stdout.startswith("| metric | mean | 95 % int")
    for options, message in (
        (["-m", "auc,gauc"], r"no column 'user_id'; .*; gauc needs users: --user-col names"),
        (["-m", "ndcg@3"], r"ndcg@3 needs users: --user-col names their column"),
        (["-m", "mae(average=user)"], r"mae\(average=user\) needs users"),
        (["--by", "country"], "--by needs users"),
        (["--per-user", "users.csv"], "--per-user needs users"),
        (["--fail-under", "gauc=0.5"], r"gauc: the metric is not evaluated, only auc, average_precision"),
    ):
        assert_log_fails(run("evaluate", "log.csv", *options), message, folder=logs)


def test_the_table_of_a_log_for_people(logs):
    result = run("evaluate", "log.csv", "--by", "country")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:8]] == [
        *("auc", "gauc", "average_precision", "log_loss", "calibration", "ndcg@10")
    ]
    assert lines[-3:] == [
        "10 rows (5 positive) of 3 users",
        "1 without a positive row, left out of metrics of lists",
        "1 with rows of one class only, left out of gauc",
    ]
    assert any(re.match(r"BE +1 +0\.5000", line) for line in lines)
    assert (
        "1 with rows of one class only, counted as 0.5 in gauc"
        in run("evaluate", "log.csv", "--one-class", "half").stdout
    )


def test_cut_offs_of_the_usual_metrics(logs):
    assert list(means("log.csv", "-k", "2,3"))[-2:] == ["ndcg@2", "ndcg@3"]
    assert list(means("log.csv", "--weight-col", "w"))[-1] == "calibration"


def test_ties_by_id_in_a_log(logs):
    text = "user_id,label,score,sku,item_id\na,0,1,x,2\na,1,1,B,3\na,0,1,é,1\n"
    (logs / "log.csv").write_text(text)
    for options, mrr in (
        (["--ties", "id_asc", "--item-col", "sku"], 1),
        (["--ties", "id_desc", "--item-col", "sku"], 1 / 3),
        (["--ties", "id_asc"], 1 / 3),
        (["--ties", "id_desc"], 1),
        (["--ties", "input"], 1 / 2),
        ([], 11 / 18),
    ):
        assert means("log.csv", "-m", "mrr", *options) == {"mrr": pytest.approx(mrr)}
    assert_log_fails(run("evaluate", "log.csv", "-m", "mrr", "--ties", "error"), "user 'a' .* --ties error")
    (logs / "log.csv").write_text(text.replace("item_id", "item"))
    result = run("evaluate", "log.csv", "-m", "mrr", "--ties", "id_asc")
    assert_log_fails(result, r"no column 'item_id' .*; --ties id_asc needs items: --item-col names their column")


def test_ratings(logs):
    found = means("ratings.csv", "--target-col", "stars", "--prediction-col", "guess")
    assert found == {"mae": 0.75, "rmse": pytest.approx(math.sqrt(1.125)), "mse": 1.125}
    assert means("ratings.csv", "--target-col", "target", "-m", "mae(average=user)") == {"mae(average=user)": 0.25}
    assert means("ratings.csv", "--prediction-col", "prediction", "-m", "mae") == {"mae": 0.25}
    lines = run("evaluate", "ratings.csv", "--target-col", "stars", "--prediction-col", "guess").stdout.splitlines()
    assert lines[-1] == "4 rows of 2 users"
    assert "auc" in means("ratings.csv", "--target-col=stars", "--prediction-col=guess", "-mauc", "--min-gain=4")
    for options, message in (
        (["--target-col", "nope"], "no column 'nope'.*; --target-col names the column of true ratings"),
        (["--prediction-col", "nope"], "no column 'nope'.*; --prediction-col names"),
        (["--target-col", "stars", "--label-col", "x"], "labels and scores, or targets and predictions"),
        (["--target-col", "stars", "-m", "auc"], "column 'stars': targets must be 0 or 1 for auc, found 5 in row 1"),
    ):
        assert_log_fails(run("evaluate", "ratings.csv", *options), message, folder=logs)


@pytest.mark.parametrize("name", ["curves.json", "curves.CSV"])
def test_curves(logs, name):
    result = run("evaluate", "log.csv", "-m", "auc,average_precision", "--format", "json", "--curves", name)
    assert result.exit_code == 0, result.stderr
    metrics = json.loads(result.stdout)["metrics"]
    if name.endswith("json"):
        found = json.loads((logs / name).read_text(), parse_constant=pytest.fail)
        assert found["schema"] == 1
        assert found["roc"]["area"] == metrics["auc"]["mean"]
        assert found["pr"]["area"] == metrics["average_precision"]["mean"]
        assert found["roc"]["threshold"][0] == "Infinity" and found["pr"]["threshold"][-1] is None
        roc, pr = found["roc"], found["pr"]
    else:
        rows = list(csv.DictReader(io.StringIO((logs / name).read_text())))
        assert list(rows[0]) == ["curve", "threshold", "fpr", "tpr", "recall", "precision"]
        roc, pr = (
            {axis: [float(row[axis]) for row in rows if row["curve"] == curve] for axis in axes}
            for curve, axes in (("roc", ("fpr", "tpr")), ("pr", ("recall", "precision")))
        )
    assert area_of_trapezoids(roc["tpr"], roc["fpr"]) == pytest.approx(metrics["auc"]["mean"], abs=1e-12)
    recall, precision = np.array(pr["recall"]), np.array(pr["precision"])
    area = (-np.diff(recall) * precision[:-1]).sum()
    assert area == pytest.approx(metrics["average_precision"]["mean"], abs=1e-12)


def test_curves_of_graded_weighed_and_lacking_classes(logs):
    (logs / "log.csv").write_text(LOG.replace("11,1,", "11,3,"))
    result = run("evaluate", "log.csv", "-m", "ndcg", "--curves", "c.json")
    assert_log_fails(
        result, r"column 'label': labels must be 0 or 1 for curves, found 3.* in row 2; --min-gain", folder=logs
    )
    options = ("--min-gain", "2", "--weight-col", "w", "-m", "auc", "--format", "json", "--curves", "c.json")
    result = run("evaluate", "log.csv", *options)
    area = json.loads((logs / "c.json").read_text())["roc"]["area"]
    assert area == pytest.approx(json.loads(result.stdout)["metrics"]["auc"]["mean"], abs=1e-12)
    (logs / "log.csv").write_text("label,score\n0,.1\n0,.2\n")
    result = run("evaluate", "log.csv", "-m", "auc", "--curves", "c.json")
    assert result.exit_code == 0
    assert result.stderr == "fastrec: warning: log.csv: all rows are of one class, so --curves lack rates\n"
    assert json.loads((logs / "c.json").read_text())["roc"]["area"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", "fpr"], "needs the option threshold"),
        (["-m", "auc@10"], "it takes no cut-off"),
        (["--label-col", "clicked"], r"no column 'clicked'; .*labels and scores \(--label-col, --score-col\)"),
        (["--score-col", "scor"], r"no column 'scor' \(did you mean 'score'\?\).*; --score-col names the column"),
        (["--user-col", "user"], r"no column 'user' \(did you mean 'user_id'\?\)"),
        (["--weight-col", "weight"], "no column 'weight'"),
        (["--weight-col", "w", "-m", "auc,ndcg@3"], "--weight-col weighs rows, but .* leave out ndcg@3"),
        (["--by", "state"], "no column 'state'"),
        (["--score-col", "country"], "column 'country' must hold numbers, found 'BE' in row 1"),
        (["--rank-col", "position"], "--rank-col is for lists: give TRUTH"),
        (["--gain-col", "label"], "--gain-col is for lists"),
        (["--exclude", "log.csv"], "--exclude is for lists"),
        (["--duplicates", "miss"], "--duplicates is for lists"),
        (["--no-recs", "zero"], "--no-recs is for lists"),
        (["--curves", "c.xlsx"], r"--curves c\.xlsx: the name must end in \.csv or \.json"),
        (["--curves", "./out.json"], r"would overwrite out\.json"),
        (["--curves", "no/c.json"], "the folder .* does not exist"),
        (["-m", "gauc", "--one-class", "error"], "user 3 has rows of one class only"),
        (["-m", "mrr", "--no-truth", "error"], "user 3 has no relevant item"),
        (["-m", "err(max_gain=1)", "--label-col", "position"], "column 'position': labels must not exceed"),
        (["-m", "brier", "--score-col", "position"], "column 'position': scores must be probabilities .* in row 5"),
        (["--fail-under", "auc=high"], "expected a metric and a number"),
    ],
)
def test_wrong_usage_with_a_log_is_one_line(logs, arguments, message):
    assert_log_fails(run("evaluate", "log.csv", "-o", "out.json", *arguments), message, folder=logs)


def test_usual_metrics_on_scores_that_are_no_probabilities_say_what_to_name(logs):
    (logs / "other.csv").write_text((logs / "log.csv").read_text())
    words = "choose metrics that take any score, such as auc or average_precision"
    for command in (("compare", "log.csv", "other.csv"), ("evaluate", "log.csv")):
        result = run(*command, "--score-col", "position")
        assert result.exit_code == 2 and result.stderr.endswith(f"for log_loss, found 2.0 in row 5; {words}\n")
    assert run("evaluate", "log.csv", "--score-col", "position", "-m", "auc,average_precision").exit_code == 0


def test_rows_are_counted_as_in_the_file(logs):
    lines = LOG.splitlines(keepends=True)
    assert lines[9].startswith("1,15,0,.5")  # data row 9, the fifth of user 1
    for old, new, options, message in (
        ("15,0,.5", "15,0,5", ["-m", "log_loss"], "column 'score': scores must be .* found 5.0 in row 9"),
        ("15,0,", "15,7,", ["-m", "gauc"], "column 'label': labels must be .* found 7 in row 9"),
        ("15,0,", "15,,", ["-m", "gauc"], r"column 'label' must not be null, found null in row 9"),
        ("15,0,.5", "15,0,nan", ["-m", "gauc"], "column 'score': scores must not be NaN, found NaN in row 9"),
        ("2,1\n3,", "2,-1\n3,", ["-m", "auc", "--weight-col", "w"], "column 'w': weights must be .* in row 9"),
    ):
        assert old in LOG
        (logs / "log.csv").write_text(LOG.replace(old, new))
        assert_log_fails(run("evaluate", "log.csv", *options), message)


def test_a_log_under_a_threshold(logs):
    result = run("evaluate", "log.csv", "-m", "gauc", "--fail-under", "gauc=0.9")
    assert result.exit_code == 1
    assert re.match(r"fastrec: gauc = 0\.59\d+, expected at least 0\.9\n", result.stderr)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_logs_give_what_arrays_give(logs, kind):
    rng = np.random.default_rng(5)
    n = 3000
    users, positions = rng.integers(0, 200, n), rng.integers(1, 4, n)
    labels, scores = (rng.random(n) < 0.3).astype(np.int8), rng.integers(1, 40, n).astype(np.float32) / 40
    columns = {"u": users, "position": positions, "clicked": labels, "p": scores}
    if kind == "parquet":
        pq.write_table(pa.table(columns), "l.parquet")
    else:
        with open("l.csv", "w", newline="") as stream:
            csv.writer(stream).writerows([list(columns), *zip(*map(np.ndarray.tolist, columns.values()), strict=True)])
    metrics = ["gauc", "auc", "ndcg@2", "precision(threshold=0.5, average=user)", "log_loss", "map"]
    expected = fastrec.evaluate_scores(labels, scores, user_ids=(users, positions), metrics=metrics)
    named = ("--label-col", "clicked", "--score-col", "p", "--user-col", "u", "--user-col", "position")
    found = means(f"l.{kind}", *named, *(part for metric in metrics for part in ("-m", metric)))
    assert found == pytest.approx(dict(expected), abs=1e-12)


@pytest.mark.thorough
def test_a_log_in_a_process_of_its_own(logs):
    result = command("evaluate", "log.csv", "-m", "gauc", "--format", "csv", "--curves", "c.csv")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("metric,mean,std_error,low,high,users,note\ngauc,0.59259259")
    assert (logs / "c.csv").read_text().startswith("curve,threshold,fpr,tpr,recall,precision\nroc,inf,0.0,0.0,,\n")


# Metrics


def test_the_list_of_metrics():
    result = run("metrics")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    lists, rows = result.stdout.split("\nScored rows\n")
    assert lists.startswith("Lists\n")
    for metric in fastrec.catalogue():
        shown = {"ranking": lists, "scores": rows}[metric["kind"]]
        assert len(re.findall(rf"^{metric['name']} ", shown, re.MULTILINE)) == 1
    assert "k* | min_k_n_rec" in result.stdout
    assert "0.8*" in result.stdout
    assert "required" in result.stdout


def test_one_metric():
    for name in ("ndcg", "ndcg(gain=exp2)@10"):
        result = run("metrics", name)
        assert result.exit_code == 0
        assert result.stdout.startswith("ndcg\n")
        assert ">>> " in result.stdout and "truth_uncut" in result.stdout and "0 to 1, higher" in result.stdout


def test_a_name_with_two_metrics():
    shown = run("metrics", "precision").stdout
    assert len(re.findall(r"^precision$", shown, re.MULTILINE)) == 2
    assert "h / k" in shown and "TP / (TP + FP)" in shown
    shown = run("metrics", "precision(threshold=0.5)").stdout
    assert shown.count("van Rijsbergen") == 1 and "TP / (TP + FP)" in shown
    assert "h / k" in run("metrics", "precision@5").stdout
    listed = json.loads(run("metrics", "mcc", "--format", "json").stdout)
    assert [metric["kind"] for metric in listed] == ["ranking", "scores"]
    assert json.loads(run("metrics", "auc", "--format", "json").stdout)["kind"] == "scores"


def test_an_unknown_metric():
    assert_fails(run("metrics", "ndgc"), "unknown metric 'ndgc'; did you mean 'ndcg'")


def test_metrics_as_json():
    listed = json.loads(run("metrics", "--format", "json").stdout)
    assert [metric["name"] for metric in listed] == [metric["name"] for metric in fastrec.catalogue()]
    one = json.loads(run("metrics", "rbp", "--format", "json").stdout)
    assert one == next(metric for metric in listed if metric["name"] == "rbp")
    assert one["options"]["p"]["default"] == 0.8


# Demo, warm-up, program


def test_help_is_complete_and_in_words_of_the_command_line():
    assert "..." not in run("--help").stdout.partition("Commands:")[2]  # cut descriptions
    shown = " ".join(run("evaluate", "--help").stdout.split())
    for text in (
        "column in --logged with",
        "column of subtopics in --subtopics;",
        "column popularity of --items counts",
    ):
        assert text in shown
    assert "as from fastrec position-bias" in shown and "with factors 512 MiB" in shown
    assert "with factors" not in run("drift", "--help").stdout


def test_the_demo(folder):
    result = run("demo", "--users", "60", "--seed", "3", "-o", "my demo")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    tables = ["history", "items", "neighbours", "popularity", "truth"]
    assert sorted(os.listdir("my demo")) == ["comparison.html", *(f"{name}.parquet" for name in tables)]
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "Two recommenders of a made-up shop" in Path("my demo/comparison.html").read_text(encoding="utf-8")
    assert "\nndcg@10 by segment\n" in result.stdout
    for title in ("accuracy", "catalogue", "segment"):
        assert re.search(rf"^{title} +popularity +neighbours +difference$", result.stdout, re.MULTILINE)
    for metric in ("ndcg@10", "item_coverage@10", "gini@10", "novelty@10"):
        assert re.search(rf"^{metric}( +[0-9][0-9.]+{INTERVAL}){{2}} +[+-][0-9.]+\*?$", result.stdout, re.MULTILINE)
    text = " ".join(result.stdout.split())
    for metric in ("item_coverage@10", "gini@10"):  # without a mark
        assert f"{metric}: is a number of all lists together" in text
    shown = result.stdout.partition("Next, try:\n")[2].replace("\\\n", "")
    commands = [line.strip() for line in shown.splitlines()]
    assert len(commands) == 4
    assert commands[0].startswith("fastrec evaluate 'my demo/neighbours.parquet' 'my demo/truth.parquet' ")
    for command in commands:
        assert run(*shlex.split(command)[1:]).exit_code == 0, command
    truth = pq.read_table("my demo/truth.parquet")
    assert truth.column_names == ["user_id", "item_id", "gain", "segment"]
    assert set(truth["gain"].to_pylist()) <= {1, 2, 3, 4, 5}
    assert pq.read_table("my demo/history.parquet").column_names == ["user_id", "item_id"]
    shop = pq.read_table("my demo/items.parquet")
    assert shop.column_names == ["item_id", "category"] and len(shop) == 2000
    lists = pq.read_table("my demo/popularity.parquet")
    assert lists.column_names == ["user_id", "item_id", "rank", "score"]
    assert set(lists["rank"].to_pylist()) == set(range(1, 51))


def numbers_of_terminal(shown):
    """Return the means and the difference, with its mark, of each metric and segment that the demo prints."""
    number = rf"(-?[0-9][0-9.]*){INTERVAL}"
    line = rf"^(\S+)(?: +[0-9,]+)? +{number} +{number} +([+-]?[0-9.]+\*?)$"
    return {name: tuple(numbers) for name, *numbers in re.findall(line, shown, re.MULTILINE)}


def numbers_of_page(text):
    """Return the same numbers of a page: of metrics that are not compared only the means."""
    page = Page(text)
    (head, *rows), (_, *segments) = (page.tables[f"Differences to popularity{by}"] for by in ("", " by segment"))
    found = {}
    for row in (dict(zip(head, row, strict=True)) for row in rows):
        mark = "" if "not clear" in row["verdict"] else "*"
        found[row["metric"]] = row["baseline mean"], row["mean"], row["difference"] + mark
    (_, *metrics), *means = page.tables["Systems by accuracy and catalogue"]
    for metric, *both in zip(metrics, *(own[1:] for own in means), strict=True):
        found.setdefault(metric, tuple(mean.partition(" ")[0] for mean in both))
    return found, {
        group: gap + ("" if "not clear" in verdict else "*")
        for group, metric, _, verdict, gap, *_ in segments
        if metric == ACCURACY[0]
    }


def assert_same_numbers(shown, page):
    printed, (overall, segments) = numbers_of_terminal(shown), numbers_of_page(page)
    assert set(overall) == {*ACCURACY, *CATALOGUE} and segments
    assert {name: printed[name][: len(numbers)] for name, numbers in overall.items()} == overall
    assert {group: printed[group][2] for group in segments} == segments
    assert set(printed) == {*overall, *segments}


def test_the_demo_prints_the_numbers_of_its_page(folder):
    """One of these users has no list of the neighbours, so novelty is compared over the 299 others."""
    shown = run("demo", "--users", "300").stdout
    assert "267 to 299 users compared; up to 1 user counted on one side only (missing=drop)" in shown
    assert_same_numbers(shown, Path("fastrec-demo/comparison.html").read_text(encoding="utf-8"))


def test_the_demo_prints_the_numbers_of_its_page_if_all_metrics_lack_users(folder):
    """Each recommender lacks lists of its own users, which count in no metric: each mean is of the shared users."""
    paths = write_demo("shop", n_users=300)
    for name, every in {"popularity": 7, "neighbours": 5}.items():
        lists = pq.read_table(paths[name])
        pq.write_table(lists.filter(pa.array(lists["user_id"].to_numpy() % every > 0)), paths[name])
    sides = {"history": paths["history"], "items": paths["items"], "by": "segment"}
    names = ("popularity", "neighbours")
    reports = {
        name: fastrec.evaluate_files(
            paths[name], paths["truth"], [*ACCURACY, *CATALOGUE], **sides, no_recs="skip", per_user=True
        )
        for name in names
    }
    found = fastrec.compare(reports, "popularity")
    assert all(row.unpaired for row in found.rows)
    console = Console(file=io.StringIO(), width=100)
    draw.draw_demo(console, reports, found, paths)
    shown = console.file.getvalue()
    assert_same_numbers(shown, found.to_html())
    for row in found.segments["segment"]:
        if row.metric == ACCURACY[0] and row.users:
            means = tuple(f"{mean:.4f}" for mean in (row.baseline_mean, row.mean))
            assert numbers_of_terminal(shown)[row.group][:2] == means
            assert re.search(rf"^{row.group} +{row.users} ", shown, re.MULTILINE)


def test_the_demo_again_gives_the_same(folder):
    for name in ("a", "b"):
        assert run("demo", "--users", "30", "--output", name).exit_code == 0
    for name in os.listdir("a"):
        first, second = Path("a", name), Path("b", name)
        assert (
            pq.read_table(first).equals(pq.read_table(second))
            if name.endswith(".parquet")
            else first.read_bytes() == second.read_bytes()
        )


@pytest.mark.thorough
def test_the_demo_tells_its_recommenders_apart(folder):
    run("demo", "--users", "1500")
    found = {
        name: means(f"fastrec-demo/{name}.parquet", "fastrec-demo/truth.parquet", "-m", "ndcg@10,recall@20")
        for name in ("popularity", "neighbours")
    }
    assert found["neighbours"]["ndcg@10"] > 1.3 * found["popularity"]["ndcg@10"] > 0.1
    assert found["neighbours"]["recall@20"] > 1.05 * found["popularity"]["recall@20"]
    reports = evaluate_demo({path.stem: str(path) for path in Path("fastrec-demo").glob("*.parquet")})
    popular, neighbours = reports["popularity"], reports["neighbours"]
    assert popular["item_coverage@10"] < 0.03 and neighbours["item_coverage@10"] > 0.5
    assert popular["gini@10"] > 0.99 and neighbours["gini@10"] < 0.95
    assert neighbours["novelty@10"] > 1.5 + popular["novelty@10"]


def test_the_demo_where_a_file_is_in_the_way(folder):
    assert_fails(run("demo", "--users", "50", "-o", "recs.csv"), "recs.csv", folder=folder)
    assert_fails(run("demo", "--users", "0"), "--users", folder=folder)


@pytest.mark.thorough
def test_warmup():
    result = run("warmup")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_version_and_help():
    assert run("--version").stdout == f"fastrec {fastrec.__version__}\n"
    for arguments in (["--help"], ["evaluate", "--help"], ["metrics", "-h"]):
        result = run(*arguments)
        assert result.exit_code == 0 and result.stdout.startswith("Usage: fastrec")
    examples = [line for line in run("evaluate", "--help").stdout.splitlines() if line.startswith("  fastrec ")]
    assert len(examples) == 5
    result = run()
    assert result.exit_code == 2 and result.stdout == "" and "Commands:" in result.stderr
    assert_fails(run("evalute"), "No such command 'evalute'")


def test_help_imports_nothing_slow():
    code = (
        "import sys; sys.argv = ['fastrec', '--help']\n"
        "from fastrec.cli.program import main\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules, sep='\\n')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numba", "duckdb", "rich", "pyarrow", "pandas", "polars"} & set(found.stdout.split())


def test_a_column_may_have_an_empty_name(tmp_path):
    (tmp_path / "recs.jsonl").write_text('{"user_id": 1, "": 5, "item_id": 6}\n{"user_id": 1, "": 6, "item_id": 5}\n')
    (tmp_path / "truth.jsonl").write_text('{"user_id": 1, "": 5, "item_id": 5}\n')
    (tmp_path / "log.jsonl").write_text(
        '{"": 0.75, "score": 0.25, "label": 1}\n{"": 0.25, "score": 0.75, "label": 0}\n'
    )
    for files, option, metric in ((("recs", "truth"), "--item-col", "mrr"), (("log",), "--score-col", "auc")):
        paths = [str(tmp_path / f"{name}.jsonl") for name in files]
        result = run("evaluate", *paths, option, "", "-m", metric, "--format", "json")
        assert json.loads(result.stdout)["metrics"][metric]["mean"] == 1.0


# Processes


def test_a_file_that_is_not_there_leaves_standard_output_open(tmp_path):
    code = (
        "from fastrec.cli.program import program\n"
        "try: program(['report', 'absent.fastrec'])\n"
        "except SystemExit as end: print('ended with', end.code)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert found.stdout == "ended with 2\n"
    assert found.stderr == "fastrec: error: absent.fastrec: no such file\n"


@pytest.mark.thorough
def test_a_process_of_its_own(folder):
    result = command(
        "evaluate",
        "recs.csv",
        "truth.csv",
        "-m",
        "mrr",
        "--format",
        "csv",
        env=os.environ | {"FORCE_COLOR": "1"},
    )
    assert result.returncode == 0
    assert result.stderr == ""
    assert result.stdout.startswith("metric,mean,std_error,low,high,users,note\nmrr,0.5,")
    assert_fails(command("evaluate", "recs.csv", "gone.csv"), r"gone\.csv: no such file", folder=folder)
    result = command("evaluate", "recs.csv", "truth.csv", "--fail-under", "mrr@10=0.9")
    assert result.returncode == 1
    assert "\x1b" not in result.stdout + result.stderr


def test_a_reader_that_goes_away(folder):
    result = subprocess.run(
        f"{sys.executable} -m fastrec metrics --format json | head -c 1; echo ${{PIPESTATUS[0]}}",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stderr == ""
    assert result.stdout in ("[141\n", "[0\n")  # 0 if all of it fits into the pipe


def test_a_full_disk(folder):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "fastrec", "metrics"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (result.returncode, result.stderr) == (2, "fastrec: error: No space left on device\n")


def in_shell(*words):
    """Start the command like a shell, with streams that may be closed."""
    command = " ".join([shlex.quote(sys.executable), "-m", "fastrec", *words])
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.thorough(except_for="absent")
@pytest.mark.skipif(not os.path.exists("/bin/sh"), reason="no shell here")
@pytest.mark.parametrize(
    ("words", "streams", "code"),
    [
        ("evaluate recs.csv truth.csv -m mrr -o out.json", ">&-", 0),
        ("evaluate recs.csv truth.csv -m mrr -o out.json", "2>&-", 0),
        ("evaluate recs.csv truth.csv -m mrr -o out.json", "<&- >&- 2>&-", 0),
        ("evaluate recs.csv truth.csv -m mrr", ">&-", 0),
        ("evaluate recs.csv truth.csv -m mrr", "2>&-", 0),
        ("evaluate recs.csv truth.csv -m mrr --fail-under mrr=2", ">&-", 1),
        ("evaluate recs.csv truth.csv -m mrr --fail-under mrr=2", "2>&-", 1),
        ("evaluate recs.csv truth.csv -m mrr --fail-under mrr=2", "2>/dev/full", 1),
        ("evaluate recs.csv absent.csv -m mrr", "2>&-", 2),
        ("evaluate recs.csv absent.csv -m mrr", "2>/dev/full", 2),
        ("evaluate recs.csv truth.csv -m nothing", "<&- >&- 2>&-", 2),
        ("evaluate recs.csv truth.csv -m mrr", ">/dev/full 2>/dev/full", 2),
        ("--version", ">&-", 0),
        ("", "2>&-", 2),
    ],
)
def test_streams_that_are_closed_or_full(folder, words, streams, code):
    if "/dev/full" in streams and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    found = in_shell(words, streams)
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr and "Exception" not in found.stderr
    wanted = ["out.json"] if "-o" in words else []
    assert sorted(os.listdir(folder)) == [*wanted, "recs.csv", "truth.csv"]
    if wanted:
        assert json.loads((folder / "out.json").read_text())["metrics"]["mrr"]["users"] == 3
    if (words[-3:], streams, code) == ("mrr", "2>&-", 0):
        assert found.stdout.startswith("metric")


HOSTILE_LABELS = ["\x1b[31mred", "a\tb", "\x07", "plain é"]


@pytest.fixture
def hostile(folder):
    labels = {"user_id": [1, 2, 3, 4], "item_id": [10, 10, 10, 10], "country": HOSTILE_LABELS}
    pq.write_table(pa.table(labels), folder / "hostile.parquet")
    return "evaluate", "recs.csv", "hostile.parquet", "-m", "mrr", "--by", "country"


@pytest.mark.thorough
def test_labels_reach_a_pipe_as_they_are(hostile):
    found = command(*hostile, "--format", "csv")
    groups = [row["group"] for row in csv.DictReader(io.StringIO(found.stdout))]
    assert sorted(groups) == ["", *sorted(HOSTILE_LABELS)]
    assert run(*hostile, "--format", "csv", "-o", "out.csv").exit_code == 0
    assert Path("out.csv").read_text() == found.stdout


@pytest.mark.thorough(except_for="table")
@pytest.mark.parametrize("form", ["csv", "md", "json", "table"])
def test_labels_do_not_steer_a_terminal(hostile, form):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fastrec", *hostile, "--format", form],
        env=os.environ | {"TERM": "dumb", "COLUMNS": "80"},
        stdout=theirs,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(theirs)
        shown = read_to_the_end(ours)
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode().replace("\r\n", "\n")
    assert not set(text) & {"\x1b", "\x07", "\t"}
    assert re.search(r"\\(x1b|u001b)\\?\[31m\\?red", text) and ("plain é" in text or form == "json")


def read_to_the_end(terminal):
    """Return everything that a program showed on a terminal."""
    shown = b""
    with contextlib.suppress(OSError):  # Linux reports the end of a terminal so
        while part := os.read(terminal, 1 << 16):
            shown += part
    return shown


def test_a_terminal_without_the_signs(folder):
    result = command("evaluate", "recs.csv", "truth.csv", "-m", "mrr", env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert result.returncode == 0
    assert "0.0000 ? 1.0000" in result.stdout


STREAMED = """
from fastrec.cli import program
from fastrec.files import job
job.COPIES = 1 << 40  # nothing fits in memory
program.main()
"""


@pytest.mark.thorough
def test_a_terminal_shows_how_far_it_is(folder):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", STREAMED, "evaluate", "recs.csv", "truth.csv", "--format", "csv"],
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = read_to_the_end(ours)
        assert process.stdout.read().startswith(b"metric,mean,")
    os.close(ours)
    assert process.returncode == 0
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()))
    assert max(map(len, lines)) == 80
    assert any(re.fullmatch(r". evaluating \d:\d\d:\d\d ━+ 8 of 8 rows.*", line) for line in lines)
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l")  # the cursor is back
    assert shown.endswith(b"\x1b[2K")  # and the line empty


def test_the_pace_of_rows():
    assert group._pace(0, 999, None, None) == "0 of 999 rows"
    assert group._pace(12_345_678, 1_234_567_890, 6_543_210, 186.8) == "12.3M of 1.2G rows, 6.5M/s, 0:03:07 left"
    longest = group._pace(999_900_000, 999_900_000, 999_900, 86_399)
    assert len(f"* evaluating 0:00:00 ---- {longest}") <= 80


# Names of another tool


def test_names_and_policies_of_another_tool(folder):
    (folder / "run.csv").write_text("user_id,item_id,score\nu1,b,0.5\nu1,a,0.5\nu1,c,0.4\nu2,a,0.9\nu2,d,0.1\n")
    (folder / "qrels.csv").write_text("user_id,item_id,gain\nu1,b,1\nu1,c,2\nu2,d,1\nu3,a,1\nu2,a,0\n")
    files = ("run.csv", "qrels.csv")
    assert means(*files, "--like", "trec_eval", "-m", "map_cut_2,P_2", "--ties", "id_asc") == {
        "map(denominator=n_rel)@2": (1 / 4 + 1 / 2) / 2,
        "precision@2": 0.5,
    }
    assert means(*files, "--like", "trec_eval", "-m", "recip_rank") == {"mrr": 0.75}  # b before a
    assert means(*files, "--like", "trec_eval", "-m", "recip_rank", "--no-recs", "zero") == {"mrr": 0.5}
    table = run("evaluate", *files, "--like", "trec_eval", "-m", "map_cut_2", "--fail-under", "map_cut_2=0.9")
    assert "map_cut_2 is map(denominator=n_rel)@2, ties=id_desc," in " ".join(table.stdout.split())
    assert table.exit_code == 1 and "map_cut_2 = 0.5, expected at least 0.9" in table.stderr


def test_the_metrics_of_a_log_as_another_tool_has_them(folder):
    (folder / "log.csv").write_text("user_id,label,score\n1,1,0.9\n1,0,0.8\n1,0,0.7\n2,0,0.3\n2,1,0.4\n")
    assert means("log.csv", "--like", "recbole", "-m", "gauc,hit_rate@1") == {
        "gauc(weight=positives)": 1.0,
        "hit_rate@1": 1.0,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--like", "rectol"], "did you mean 'rectools'"),
        (["--like", "rectools", "-m", "mcc@3"], "cannot reproduce mcc@3 of RecTools"),
        (["--like", "ranx", "-m", "map@3", "--fail-under", "map@5=1"], "the metric is not evaluated, only map@3"),
    ],
)
def test_what_another_tool_does_not_have(folder, arguments, message):
    result = evaluate(*arguments)
    assert result.exit_code == 2 and message in result.stderr


def test_explain_definitions():
    result = run("explain", "ndcg@10", "--like", "rectools", "--like", "lenskit")
    assert result.exit_code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["rectools", "binary*", "log2", "k*", "any*"] in rows
    assert ["lenskit", "binary*", "log2_flat2*", "truth", "any*"] in rows
    assert ["lenskit", "input*", "listed*", "skip*"] in rows  # columns without room follow in a second table
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_explain_on_files(folder):
    result = run("explain", "ndcg@2", "recs.csv", "truth.csv", "--like", "spark", "--format", "json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    ours, spark = (document["sides"][tool]["estimate"]["mean"] for tool in ("fastrec", "spark"))
    assert ours == pytest.approx((1 + SECOND) / 3) and spark == pytest.approx((1 + SECOND) / 4)
    assert document["sides"]["spark"]["steps"] == {"gain": 0.0, "ties": 0.0, "no_truth": spark - ours}
    assert [user["user"] for user in document["sides"]["spark"]["users"]] == [3]
    table = run("explain", "ndcg@2", "recs.csv", "truth.csv", "--like", "spark", "--show-users", "1")
    assert "spark: the users that matter most, of 1 with another value" in table.stdout


def test_explain_a_log_with_columns_and_policies(folder):
    Path("log.csv").write_text("u,clicked,p\n1,1,0.9\n1,0,0.5\n2,0,0.4\n")
    columns = ("--user-col", "u", "--label-col", "clicked", "--score-col", "p")
    result = run("explain", "gauc", "log.csv", *columns, "--like", "torchmetrics", "-o", "why.md")
    assert result.exit_code == 0, result.stderr
    text = Path("why.md").read_text(encoding="utf-8")
    assert "| torchmetrics | equal* | zero* |" in text and "| torchmetrics | 0.5000 | -0.5000 | 2 |" in text
    held = run("explain", "gauc", "log.csv", *columns, "--one-class", "zero", "--like", "torchmetrics")
    assert "one_class=zero" in held.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ndgc@3",), "unknown metric 'ndgc'; did you mean 'ndcg'?"),
        (("auc", "--like", "implicit"), "it fills lists up to k"),
        (("ndcg@3", "none.csv", "truth.csv"), "none.csv"),
        (("ndcg@3", "--format", "csv"), "'csv' is not one of 'table', 'json', 'md'"),
        (("ndcg@3", "-o", "why.csv"), "an explanation has no format with the ending .csv"),
        (("ndcg@3", "recs.csv", "truth.csv", "--label-col", "x"), "--label-col is for a LOG"),
        (("ndcg@3", "recs.csv", "truth.csv", "-o", "recs.csv", "--format", "md"), "would overwrite"),
    ],
)
def test_explain_says_what_is_wrong(folder, arguments, message):
    result = run("explain", *arguments)
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.fixture
def two_systems(folder):
    """Write forty users with one item each; `good` has it at rank 1, `bad` at rank 2, for every fifth at rank 1."""
    users = range(40)
    (folder / "held.csv").write_text("user_id,item_id,plan\n" + "".join(f"{u},1,{'ab'[u % 2]}\n" for u in users))
    lines = {"good": ["1", "2"], "bad": ["2", "1"]}
    for name, items in lines.items():
        rows = [
            f"{u},{item},{rank}" for u in users for rank, item in enumerate(items if u % 5 else ["1", "2"], start=1)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["user_id,item_id,rank", *rows]))
    return ("compare", "good=good.csv", "bad=bad.csv", "--truth", "held.csv", "-m", "mrr,hit_rate@1")


def test_compare_is_that_of_python(two_systems):
    result = run(*two_systems, "--by", "plan", "--format", "json", "--seed", "3", "--test", "bootstrap")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    reports = {
        name: fastrec.evaluate_files(f"{name}.csv", "held.csv", ["mrr", "hit_rate@1"], per_user=True, by="plan")
        for name in ("good", "bad")
    }
    assert document == fastrec.compare(reports, test="bootstrap", seed=3).to_dict()
    assert document["rows"][0]["difference"] == pytest.approx(-0.4)
    assert [row["group"] for row in document["segments"]["plan"]] == ["a", "b", "a", "b"]


@pytest.mark.parametrize("change", ["rewritten", "another file"])
def test_compared_systems_have_the_same_truth(two_systems, folder, monkeypatch, change):
    def evaluate_and_change(*arguments, **options):
        found = evaluate_any(*arguments, **options)
        held = folder / "held"
        (held / ("1.csv" if change == "rewritten" else "2.csv")).write_text("user_id,item_id,plan\n99,1,a\n")
        return found

    (folder / "held").mkdir()
    (folder / "held.csv").rename(folder / "held" / "1.csv")
    evaluate_any = cli_compare.evaluate_any
    monkeypatch.setattr(cli_compare, "evaluate_any", evaluate_and_change)
    result = run(*(argument.removesuffix(".csv") if argument == "held.csv" else argument for argument in two_systems))
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr == "fastrec: error: held: changed while it was read; evaluate it when it is complete\n"


def test_compare_tables(two_systems):
    result = run(*two_systems, "--by", "plan")
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "difference bad - good, by plan" in result.stdout and "0.0002*" in result.stdout
    markdown = run(*two_systems, "--baseline", "good", "--format", "md").stdout
    assert "| mrr | -0.4000 |" in markdown and "**difference bad - good**\n\n| metric |" in markdown
    rows = list(csv.DictReader(io.StringIO(run(*two_systems, "--format", "csv").stdout)))
    assert rows[0]["wins"] == "0" and rows[0]["losses"] == "32"


def test_compared_means_are_those_of_the_users_that_are_compared(folder):
    """One user has no list of `some`, which does not count against it: the means are those of the compared users."""
    (folder / "held.csv").write_text("user_id,item_id\n1,1\n2,1\n3,1\n")
    (folder / "all.csv").write_text("user_id,item_id,rank\n1,1,1\n2,1,1\n3,2,1\n")
    (folder / "some.csv").write_text("user_id,item_id,rank\n1,1,1\n2,2,1\n2,1,2\n")
    options = ("--truth", "held.csv", "-m", "mrr", "--no-recs", "skip")
    shown = run("compare", "all=all.csv", "some=some.csv", *options).stdout
    assert re.search(r"^mrr +1\.0000 +0\.7500", shown, re.MULTILINE) and "-0.2500" in shown
    assert "2 users compared; up to 1 user counted on one side only (missing=drop)" in shown
    assert "mrr has values for 3 users in 'all', 2 in 'some'" in shown
    (folder / "few.csv").write_text("user_id,item_id,rank\n1,2,1\n1,1,2\n3,1,1\n")
    shown = run("compare", "all=all.csv", "some=some.csv", "few=few.csv", *options).stdout
    assert "means over the users of each pair" in shown and "1 to 2 users compared" in shown
    assert re.search(r"^mrr +few +all +0\.7500 \(0\.\d+ – 1\.0000\) +0\.5000 +2$", shown, re.MULTILINE)
    assert re.search(r"^mrr +few +some +0\.5000 +1\.0000 +1$", shown, re.MULTILINE)


def test_counts_of_users_name_their_metrics(folder):
    """User 4 has no relevant item, and a list of only one system: mrr leaves the user out, the others may count 0."""
    (folder / "held.csv").write_text("user_id,item_id\n1,1\n2,1\n3,1\n")
    (folder / "all.csv").write_text("user_id,item_id\n1,1\n2,1\n3,1\n4,1\n")
    (folder / "some.csv").write_text("user_id,item_id\n1,1\n2,2\n")
    metrics = "mrr,hit_rate(no_truth=listed)@1,hits(no_truth=listed)@1"
    command = ("compare", "all.csv", "some.csv", "--truth", "held.csv", "-m", metrics, "--no-recs", "skip")
    lines = run(*command, "--format", "md").stdout.replace("\\", "").splitlines()
    assert [line for line in lines if "values for" in line] == [
        "- mrr has values for 3 users in 'all', 2 in 'some'",
        "- hit_rate(no_truth=listed)@1, hits(no_truth=listed)@1 have values for 4 users in 'all', 2 in 'some'",
    ]


def test_pairs_of_different_users_with_the_same_means_are_shown_by_pair(folder):
    (folder / "held.csv").write_text("user_id,item_id\n1,1\n2,1\n3,1\n")
    for name, users in (("all", "123"), ("first", "12"), ("last", "23")):
        (folder / f"{name}.csv").write_text("user_id,item_id\n" + "".join(f"{user},1\n" for user in users))
    command = ("compare", "all.csv", "first.csv", "last.csv", "--truth", "held.csv", "-m", "mrr", "--no-recs")
    assert "means over the users of each pair" in run(*command, "skip", "--baseline", "all").stdout
    zero = run(*command, "zero").stdout
    assert "means over the users" not in zero and re.search(r"^mrr +1\.0000.* +0\.6667", zero, re.MULTILINE)


def test_why_a_metric_is_left_out_speaks_of_options(folder):
    log = "user_id,label,score\n1,1,0.9\n1,0,0.2\n2,1,0.4\n2,0,0.3\n"
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text(log)
    command = ("compare", "a.csv", "b.csv", "-m", "mrr,log_loss(average=user)", "--missing", "zero")
    shown = " ".join(run(*command).stdout.split())
    assert "may be best at 0, so --missing zero would give missing users a good value" in shown


def test_only_metrics_that_are_asked_for_are_shown(two_systems):
    for name in ("good", "bad"):
        assert (
            run("evaluate", f"{name}.csv", "held.csv", "-m", "mrr,ndcg@2", "--save", f"{name}.fastrec").exit_code == 0
        )
    shown = run("compare", "good=good.fastrec", "bad=bad.fastrec", "-m", "ndcg@2").stdout
    assert "ndcg@2" in shown and "mrr" not in shown


def test_pages(two_systems):
    assert run(*two_systems, "--html", "both.html").exit_code == 0
    page = Path("both.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "bad" in page and "-0.4000" in page
    assert run("evaluate", "good.csv", "held.csv", "-m", "mrr", "--html", "one.html").exit_code == 0
    assert "1.0000" in Path("one.html").read_text(encoding="utf-8")
    over = run(*two_systems, "--html", "bad.csv")
    assert over.exit_code == 2 and "would overwrite" in over.stderr


def test_compare_fails_if_worse(two_systems):
    worse = run(*two_systems, "--baseline", "good", "--fail-if-worse", "mrr")
    assert worse.exit_code == 1 and "bad is worse than good: mrr -0.4000" in worse.stderr
    assert run(*two_systems, "--baseline", "bad", "--fail-if-worse", "mrr").exit_code == 0


@pytest.mark.parametrize(
    ("rounds", "metric", "why"),
    [
        (10, "mrr", "its p-value is at least 0.0909, as 32 of 40 users differ; take more --rounds or --test t"),
        (
            30,
            "recall@1",
            "its p-value is at least 0.0323, as 32 of 40 users differ, before the correction for 3 rows; take more",
        ),
    ],
)
def test_a_gate_that_cannot_fail_is_no_pass(two_systems, rounds, metric, why):
    gate = ("-m", metric, "--baseline", "bad", "--fail-if-worse", "mrr")  # the other system is better
    blind = run(*two_systems, *gate, "--rounds", rounds)
    assert blind.exit_code == 2 and "no row can be significant: --test randomization gives p-values" in blind.stderr
    assert f"fastrec: --fail-if-worse mrr cannot fail: {why}" in " ".join(blind.stderr.split())
    assert run(*two_systems, *gate, "--rounds", rounds, "--test", "t").exit_code == 0
    assert run(*two_systems, *gate, "--rounds", 100).exit_code == 0


def test_a_gate_does_not_judge_systems_with_different_truth(two_systems):
    """Unless it is told to: the truth of the saved report has another item of one user."""
    held = Path("held.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    user, rest = held[1].split(",", 1)
    Path("other.csv").write_text(f"{held[0]}{user},z{rest}{''.join(held[2:])}", encoding="utf-8")
    assert run("evaluate", "good.csv", "other.csv", "-m", "mrr", "--save", "good.fastrec").exit_code == 0
    gate = ("compare", "good.fastrec", "bad.csv", "--truth", "held.csv", "-m", "mrr")
    assert run(*gate).exit_code == 0
    told = run(*gate, "--fail-if-worse", "mrr")
    assert told.exit_code == 2 and "the truth of good and bad differ" in told.stderr and not told.stdout
    judged = run(*gate, "--fail-if-worse", "mrr", "--different-truth")
    assert judged.exit_code in (0, 1) and "the truth of good and bad differ" in judged.stderr


def test_of_two_systems_the_first_is_the_baseline_and_files_name_them(two_systems):
    """Without NAME= a system has the name of its file; with two systems, a gate needs no --baseline."""
    options = ("--truth", "held.csv", "-m", "mrr", "--fail-if-worse", "mrr")
    worse = run("compare", "good.csv", "./bad.csv", *options)
    assert worse.exit_code == 1 and "bad is worse than good: mrr -0.4000" in worse.stderr
    assert run("compare", "bad.csv", "good.csv", *options).exit_code == 0
    assert "of two systems, the first" in " ".join(run("compare", "--help").stdout.split())


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("run.bm25.txt", "run.tfidf.txt"), ["run.bm25", "run.tfidf"]),
        (("a.new.csv", "a.csv.gz"), ["a.new", "a"]),
        (("date=1/recs.csv", "date=2=recs.csv"), ["recs", "date"]),
        (("date=1/*.csv", "day=date=1/recs.csv"), ["*", "day"]),
        (("date=1", "v1.5", "monday.FASTREC"), ["date=1", "v1.5", "monday"]),
    ],
)
def test_a_system_without_a_name_is_called_as_its_file(folder, paths, names):
    (folder / "date=1").mkdir()
    (folder / "date=1" / "recs.csv").write_text(LISTS)
    systems = cli_options.read_systems(None, None, paths)
    assert list(systems) == names
    assert systems[names[0]] == paths[0]


def test_a_path_with_an_equals_sign_is_read(folder):
    (folder / "date=1").mkdir()
    (folder / "date=1" / "new.csv").write_text(LISTS)
    result = run("compare", "date=1/new.csv", "old=recs.csv", "--truth", "truth.csv", "-m", "mrr", "--format", "json")
    assert (result.exit_code, json.loads(result.stdout)["rows"][0]["system"]) == (0, "old"), result.stderr


def test_what_two_systems_share_is_warned_of_once(two_systems):
    for name in ("good", "bad"):
        text = Path(f"{name}.csv").read_text().replace("user_id,item_id,rank", "user_id,item_id,pred")
        Path(f"{name}.csv").write_text(text)
    Path("held.csv").write_text("user_id,item_id,stars\n" + "".join(f"{u},1,{u % 3}\n" for u in range(40)))
    warnings = run("compare", "good.csv", "bad.csv", *two_systems[3:]).stderr.splitlines()
    (shared,) = [line for line in warnings if "'stars'" in line]
    assert shared.startswith("fastrec: warning: good, bad: truth has an unused column 'stars'")
    assert "--gain-col stars to use it as the gain, and --min-gain as the least gain" in shared


def test_messages_speak_of_options(folder):
    """Errors and warnings of the library name arguments of Python, which the command line does not have."""
    for arguments, words in (
        (["--no-truth", "error"], "user 3 has no relevant item, and --no-truth error"),
        (["--ties", "error", "--rank-col", "rank"], None),
        (["--user-col", "user"], "(did you mean 'user_id'?); its columns are 'user_id', 'item_id', 'rank'; --user-col"),
        (["--user-col", "user"], "--user-col names the column of users in all files: rename it in one of them if they"),
        (["--gain-col", "stars"], "--gain-col names the column of gains"),
        (["-m", "zzz"], "of them: fastrec metrics)"),
    ):
        result = evaluate(*arguments)
        assert not re.search(r"\b[a-z_]+=(\.\.\.|')|fastrec\.", result.stderr)
        assert words is None or words in result.stderr
    (folder / "recs.csv").write_text("user_id,item_id\n1,10\n1,10\n")
    assert "--duplicates first or miss would accept it" in evaluate().stderr
    (folder / "graded.csv").write_text("user_id,item_id,stars\n1,10,3\n2,10,1\n")
    (folder / "gaps.csv").write_text("user_id,item_id,rank\n1,10,1\n1,11,3\n")
    shown = " ".join(run("explain", "mrr", "gaps.csv", "graded.csv", "--like", "rectools").stdout.split())
    assert "rectools any* input* keep*" in shown and "pass --gain-col stars to use it as the gain" in shown
    assert "lists need --truth FILE" in run("compare", "recs.csv", "truth.csv").stderr
    assert "lists need a second file, TRUTH" in run("evaluate", "recs.csv").stderr


def test_files_speak_of_options_and_saved_reports_of_arguments(folder):
    """All formats have the words of standard error; a saved report is also for Python."""
    (folder / "graded.csv").write_text("user_id,item_id,stars\n1,10,3\n2,10,1\n")
    lists, words = (
        ("recs.csv", "graded.csv", "-m", "mrr"),
        "pass --gain-col stars to use it as the gain, and --min-gain",
    )
    commands = {
        "evaluate": ("evaluate", *lists, "--save", "kept.fastrec"),
        "report": ("report", "kept.fastrec"),
        "compare": ("compare", "recs.csv", "other=kept.fastrec", "--truth", *lists[1:]),
    }
    for name, command in commands.items():
        for shown in ("md", "json", "html"):
            result = run(*command, "--format", shown, "--html", "page.html")
            assert result.exit_code == 0, result.stderr
            page = html.unescape((folder / "page.html").read_text())
            for text in (result.stderr, html.unescape(result.stdout).replace("\\", ""), page):
                assert words in text and "gain='stars'" not in text, (name, shown)
    assert "pass gain='stars' to use it as the gain" in fastrec.load("kept.fastrec").warnings[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (Text(Argument("n_threads"), " must be at least 1"), "--threads must be at least 1"),
        (Text(Argument("k", (5,)), " has no effect"), "-k 5 has no effect"),
        (
            Text(Argument("like", ("ranx",)), " asks for mrr, so ", Argument("min_gain", (2,)), " cannot"),
            "--like ranx asks for mrr, so --min-gain 2 cannot",
        ),
        (Text(Argument("ties", ("input", "worst", "id_asc"))), "--ties input, worst or id_asc"),
        (Text("or ", Argument("min_gain", (...,)), " as the least"), "or --min-gain as the least"),
        (Text("pass ", Argument("gain", ("it's",))), "pass --gain-col 'it'\"'\"'s'"),
        (Text(Argument("segments"), " must be a dict"), "segments must be a dict"),  # no option
        ("""its columns are "my label='x'", 'gain=...'""", """its columns are "my label='x'", 'gain=...'"""),
        ("label='x'/recs.csv: no such file", "label='x'/recs.csv: no such file"),
        ("ndcg(gain=exp2, min_gain=3)@10: user ties='error'", "ndcg(gain=exp2, min_gain=3)@10: user ties='error'"),
    ],
)
def test_only_the_words_of_the_library_become_options(text, shown):
    assert group.in_options(text) == shown


def test_numbers_of_resampling_are_refused_as_options(folder):
    for option, value in (("--seed", "-1"), ("--level", "1.5"), ("--rounds", "0")):
        result = run("compare", "a=recs.csv", "b=recs.csv", "--truth", "truth.csv", option, value)
        assert result.exit_code == 2 and result.stderr.startswith(f"fastrec: error: {option} must ")


def test_a_cut_off_without_effect_is_an_error(folder):
    message = "-k 5 has no effect: ndcg@10 has its own cut-off; leave out one of them"
    assert_fails(evaluate("-m", "ndcg@10,mrr@3", "-k", "5"), message, folder=folder)
    assert_fails(evaluate("-m", "ndcg@10", "-k", "5", "--like", "ranx"), message)
    assert set(means("recs.csv", "truth.csv", "-m", "ndcg@10,mrr", "-k", "5")) == {"ndcg@10", "mrr@5"}
    assert means("recs.csv", "truth.csv", "-k", "10") == means("recs.csv", "truth.csv")
    assert "ndcg(gain=binary)@10" in means("recs.csv", "truth.csv", "--like", "recommenders", "-k", "10")
    (folder / "ratings.csv").write_text("target,prediction\n1,2\n")
    ratings = run("evaluate", "ratings.csv", "--target-col", "target", "-k", "5")
    assert "-k 5 has no effect: no metric here takes a cut-off" in ratings.stderr and ratings.exit_code == 2


def test_long_names_are_cut_and_tools_list_all_they_have(folder):
    for arguments in (["-m", "x" * 9000, "--like", "ranx"], ["-m", "mrr", "--fail-under", f"{'x' * 9000}=1"]):
        result = evaluate(*arguments)
        assert result.exit_code == 2 and len(result.stderr) < LONGEST + 100 and " … " in result.stderr
    from fastrec.metrics.recipes import RECIPES

    for name, recipe in RECIPES.items():
        if recipe.lists:
            assert evaluate("-m", "qqqqqq", "--like", name).stderr.endswith(f"known: {', '.join(recipe.lists)}\n"), name
    assert evaluate("--like", "qqqqqq").stderr.endswith(f"known: {', '.join(RECIPES)}\n")


def test_messages_are_wrapped_at_a_terminal(folder):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fastrec", "evaluate", "recs.csv", "truth.csv", "--user-col", "user"],
        env=os.environ | {"TERM": "xterm", "COLUMNS": "40"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = read_to_the_end(ours).decode()
    os.close(ours)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown[shown.index("fastrec: error") :]).split("\r\n")
    assert process.returncode == 2 and max(map(len, lines)) <= 40
    assert lines[0] == "fastrec: error: recs.csv: no column" and lines[1].startswith("  'user' (did you mean")


def test_compare_does_not_pass_what_cannot_be_told(folder):
    for name in ("a", "b", "held"):
        (folder / f"{name}.csv").write_text("user_id,item_id\n1,1\n")
    arguments = ("compare", "a=a.csv", "b=b.csv", "--truth", "held.csv", "-m", "mrr", "--baseline", "a")
    result = run(*arguments, "--fail-if-worse", "mrr")
    assert result.exit_code == 2 and "b and a share 1 user, too few for a test" in result.stderr
    assert run(*arguments).exit_code == 0


def test_compare_logs(folder):
    for name, scores in (("a", (0.9, 0.1)), ("b", (0.1, 0.9))):
        lines = [f"{user},{label},{scores[1 - label]}" for user in range(12) for label in (0, 1)]
        (folder / f"{name}.csv").write_text("\n".join(["user_id,label,score", *lines]))
    result = run(
        "compare", "a=a.csv", "b=b.csv", "-m", "gauc(weight=equal)", "--user-col", "user_id", "--format", "json"
    )
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"][0]["difference"] == -1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("good=good.csv",), "two systems or more"),
        (("=good.csv", "bad=bad.csv"), "expected a name and a file"),
        (("-", "bad.csv"), "expected a name and a file, as in new=recs.parquet, found '-'"),
        (("good.csv", "good=bad.csv"), "two systems have the name 'good': give each its own, as in new=bad.csv"),
        (("a=good.csv", "a=bad.csv"), "two systems have the name 'a'"),
        (("a=good.csv", "b=bad.csv", "c=bad.csv", "--fail-if-worse", "mrr"), "needs --baseline"),
        (("a=good.csv", "b=bad.csv", "--baseline", "c"), "--baseline c is not one of the systems a, b"),
        (("a=good.csv", "b=none.csv"), "none.csv"),
        (("a=good.csv", "b=bad.csv", "-o", "bad.csv"), "would overwrite"),
        (("a=good.csv", "b=bad.csv", "--level", "2"), "level must lie between 0 and 1"),
        (("a=good.csv", "b=bad.csv", "--baseline", "a", "--fail-if-worse", "recall@3"), "recall@3"),
    ],
)
def test_compare_says_what_is_wrong(two_systems, arguments, message):
    result = run("compare", *arguments, "--truth", "held.csv", "-m", "mrr")
    assert result.exit_code == 2 and message in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", sorted(program.commands))
def test_help_fits_in_80_columns(command):
    """This includes examples, so that a terminal does not break lines that people paste."""
    help_text = run(command, "--help").stdout
    assert "Usage: fastrec" in help_text
    assert [line for line in help_text.splitlines() if len(line) > 80] == []

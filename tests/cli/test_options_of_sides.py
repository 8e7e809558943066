"""Items, histories and references on the command line."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import fastrec
from support.command_line import run_fastrec
from support.side_metrics import register

FILES = {
    "recs.csv": "user_id,item_id,rank\n1,10,1\n1,11,2\n2,11,1\n2,10,2\n",
    "other.csv": "user_id,item_id,rank\n1,11,1\n1,12,2\n2,12,1\n2,10,2\n",
    "truth.csv": "user_id,item_id\n1,11\n2,10\n",
    "seen.csv": "user_id,item_id\n1,10\n2,11\n2,11\n9,10\n",
    "shop.csv": "item_id,price\n10,0.5\n11,2\n12,4\n",
    "log.csv": "user_id,item_id,score,label\n1,10,0.5,1\n1,11,0.25,0\n2,10,0.5,0\n2,11,0.75,1\n",
}
SIDES = ["--items", "shop.csv", "--history", "seen.csv", "--reference", "other.csv"]
ASKED = ["-m", "own_price,own_repeats,own_first"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    register(monkeypatch)
    for name, text in FILES.items():
        Path(name).write_text(text)


def run(*arguments: str, text: str | None = None) -> Any:
    return run_fastrec(*arguments, text=text)


def means(*arguments: str, text: str | None = None) -> dict[str, float]:
    result = run(*arguments, "--format", "json", text=text)
    assert result.exit_code == 0, result.stderr
    return {name: found["mean"] for name, found in json.loads(result.stdout)["metrics"].items()}


def test_evaluate() -> None:
    wanted = {"own_price": 2.5, "own_repeats": pytest.approx(1.015), "own_first": 0.25}
    assert means("evaluate", "recs.csv", *SIDES, *ASKED) == wanted
    assert means("evaluate", "recs.csv", "truth.csv", *SIDES, "-m", "own_price,mrr") == {"own_price": 2.5, "mrr": 0.5}
    seen = ["--history", "seen.csv", "--exclude", "history"]
    assert means("evaluate", "recs.csv", "truth.csv", *seen, "-m", "mrr") == {"mrr": 1.0}
    own = ["--user-col", "user_id", "--item-col", "item_id", "--rank-col", "rank"]
    assert means("evaluate", "recs.csv", *SIDES, *ASKED, *own) == wanted


def test_propensities() -> None:
    Path("clicks.csv").write_text("user_id,item_id,p,at\n1,11,0.5,2\n2,10,0.8,1\n")
    asked = ["-m", "ips@2,ips(clip=0.6)@2"]
    own = ["--logged", "clicks.csv", "--propensity-col", "p"]
    wanted = {"ips@2": pytest.approx((2 + 1.25) / 2), "ips(clip=0.6)@2": pytest.approx((1 / 0.6 + 1.25) / 2)}
    assert means("evaluate", "recs.csv", "truth.csv", *own, *asked) == wanted
    assert means("evaluate", "recs.csv", "clicks.csv", "--logged", "truth", *own[2:], *asked) == wanted
    ranks = ["--logged", "truth", "--logged-rank-col", "at", "--examination", "0.8,0.5"]
    assert means("evaluate", "recs.csv", "clicks.csv", *ranks, *asked) == wanted
    shown = run("evaluate", "recs.csv", "clicks.csv", *ranks, *asked).stdout
    assert "(clip=0.6) effective sample size 1.9600, largest weight 57.1 % of their sum" in shown
    both = run("compare", "a=recs.csv", "b=other.csv", "--truth", "truth.csv", *own, "-m", "snips@1")
    assert both.exit_code == 0 and "snips@1" in both.stdout
    explained = run("explain", "ips@2", "recs.csv", "truth.csv", *own)
    assert explained.exit_code == 0 and "1.6250" in explained.stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "ips@2 needs --items or --logged"),
        (["--logged", "truth"], "name their column with --propensity-col or --logged-rank-col"),
        (["--logged", "truth", "--propensity-col", "p"], "truth.csv: no column 'p'"),
        (["--logged", "truth", "--examination", "1,x"], "expected numbers, as in 1,0.6,0.4, found '1,x'"),
    ],
)
def test_wrong_propensities(given: list[str], message: str) -> None:
    result = run("evaluate", "recs.csv", "truth.csv", *given, "-m", "ips@2")
    assert result.exit_code == 2 and message in result.stderr


def test_subtopics() -> None:
    covering = "user_id,item_id,topic\n1,11,1\n1,11,2\n1,12,3\n2,10,1\n"
    Path("topics.csv").write_text(covering)
    Path("wide.csv").write_text("user_id,item_id\n1,11\n1,12\n2,10\n")
    asked, own = ["-m", "strecall,alpha_dcg@2"], ["--subtopics", "topics.csv", "--subtopic-col", "topic"]
    wanted = {"subtopic_recall": pytest.approx((2 / 3 + 1) / 2), "alpha_dcg@2": pytest.approx(1.5 / math.log2(3))}
    assert means("evaluate", "recs.csv", "wide.csv", *own, *asked) == wanted
    assert means("evaluate", "recs.csv", "wide.csv", "--subtopics", "-", *own[2:], *asked, text=covering) == wanted
    both = run("compare", "a=recs.csv", "b=other.csv", "--truth", "wide.csv", *own, "-m", "alpha_ndcg@1")
    assert both.exit_code == 0 and "denominator=ideal" in both.stdout
    explained = run("explain", "strecall@1", "recs.csv", "wide.csv", *own)
    assert explained.exit_code == 0, explained.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "subtopic_recall needs --subtopics"),
        (["--subtopics", "truth.csv"], "subtopics has no numbers, only items: name their column with --subtopic-col"),
        (["--subtopics", "truth.csv", "--subtopic-col", "p"], "truth.csv: no column 'p'"),
        (["--subtopics", "none.csv"], "none.csv: no such file"),
    ],
)
def test_wrong_subtopics(given: list[str], message: str) -> None:
    result = run("evaluate", "recs.csv", "truth.csv", *given, "-m", "strecall")
    assert result.exit_code == 2 and message in result.stderr


@pytest.mark.parametrize("name", ["--items", "--history", "--reference"])
def test_standard_input(name: str) -> None:
    given = SIDES.copy()
    file, given[given.index(name) + 1] = given[given.index(name) + 1], "-"
    assert means("evaluate", "recs.csv", *given, *ASKED, text=FILES[file])["own_price"] == 2.5
    broken = run("evaluate", "recs.csv", *given, *ASKED, text="x\n1\n")
    assert broken.exit_code == 2
    assert "standard input: no column" in broken.stderr


def test_lists_from_standard_input_without_truth() -> None:
    found = means("evaluate", "-", "--items", "shop.csv", "-m", "own_price", text=FILES["recs.csv"])
    assert found == {"own_price": 2.5}


def test_lists_without_truth_or_sides() -> None:
    @fastrec.ranking_metric(range=(0, None), source="ours")
    def own_length(s: Any) -> Any:
        """Length of the list."""
        return s.n_rec

    assert means("evaluate", "recs.csv", "-m", "own_length@10") == {"own_length@10": 2.0}
    assert means("evaluate", "log.csv", "-m", "own_length") == {"own_length": 2.0}


def test_compare() -> None:
    result = run("compare", "a=recs.csv", "b=other.csv", *SIDES[:4], "-m", "own_price,own_repeats", "--format", "json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert {row["metric"]: row["difference"] for row in rows} == {"own_price": 2.75, "own_repeats": pytest.approx(-1.0)}
    excluding = ["--history", "seen.csv", "--exclude", "history", "-m", "mrr"]
    assert run("evaluate", "recs.csv", "truth.csv", "--save", "a.fastrec", *excluding).exit_code == 0
    assert run("compare", "a.fastrec", "recs.csv", "--truth", "truth.csv", *excluding).exit_code == 0
    result = run("compare", "a.fastrec", "recs.csv", "--truth", "truth.csv", "-m", "mrr")
    assert result.exit_code == 2 and "exclude is 'history' in a and 'none' in recs" in result.stderr


def test_explain() -> None:
    arguments = ["truth.csv", "--history", "seen.csv", "--exclude", "history", "--like", "ranx", "--format", "json"]
    result = run("explain", "mrr", "recs.csv", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert '"mean": 1.0' in result.stdout
    alone = run("explain", "own_price", "recs.csv", "--items", "shop.csv", "--format", "json")
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert '"mean": 2.5' in alone.stdout


FAULTS = {
    "of a log": (["log.csv", "-m", "auc", "--history", "seen.csv"], "--history is for lists: give TRUTH"),
    "items of a log": (["log.csv", "-m", "own_price", "--items", "shop.csv"], "--items is for lists: give TRUTH"),
    "of a metric of the truth": (["recs.csv", "-m", "mrr", "--items", "shop.csv"], "--items is for lists: give TRUTH"),
    "a wrong option": (
        ["recs.csv", "-m", "gini(zero=exclude)@2", "--items", "shop.csv"],
        "error: gini has no option 'zero'; did you mean 'zeros'?",
    ),
    "a wrong value": (
        ["recs.csv", "-m", "novelty(unseen=fst)@2", "--history", "seen.csv"],
        "error: novelty: unseen=fst must be zero or one or max or drop or error",
    ),
    "a wrong number": (
        ["recs.csv", "-m", "rbo(p=1)@2", "--reference", "other.csv"],
        "error: rbo: p=1 must be a number above 0 and below 1",
    ),
    "a wrong name": (["recs.csv", "-m", "noveltie@2", "--items", "shop.csv"], "did you mean 'novelty'?"),
    "a name of rows": (["recs.csv", "-m", "calibration", "--items", "shop.csv"], "for lists there is miscalibration"),
    "a wrong name of a tool": (
        ["recs.csv", "-m", "miuf@2", "--history", "seen.csv", "--like", "recbole"],
        "RecBole has no metric 'miuf@2'; known: precision, ",
    ),
    "no history": (["recs.csv", "truth.csv", "-m", "mrr", "--exclude", "history"], "--exclude history needs --history"),
    "no side": (["recs.csv", "-m", "own_repeats"], "own_repeats needs --history"),
    "no ids": (
        ["recs.csv", "--items", "shop.csv", "-m", "own_price", "--item-col", "sku"],
        "no column 'sku'",
    ),
    "no column": (["recs.csv", "--items", "seen.csv", "-m", "own_price"], "seen.csv: column 'item_id' must have each"),
    "no file": (["recs.csv", "--reference", "none.csv", "-m", "own_first"], "none.csv: no such file"),
    "two inputs": (["-", "--items", "-", "-m", "own_price"], "are both -"),
    "an output": (["recs.csv", "--items", "shop.csv", "-m", "own_price", "-o", "shop.csv"], "shop.csv"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault: str) -> None:
    arguments, says = FAULTS[fault]
    result = run("evaluate", *arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert says in result.stderr
    assert Path("shop.csv").read_text() == FILES["shop.csv"]


def test_policies_of_items() -> None:
    """Users without a list count only where the metric reads the truth, as in Python."""
    Path("more.csv").write_text("user_id,item_id\n1,11\n2,10\n3,10\n")
    asked = ["-m", "repeat_ratio,recall,popularity", "-k", "2", "--history", "seen.csv"]
    found = means("evaluate", "recs.csv", "more.csv", *asked)
    assert found == {"repeat_ratio@2": 0.5, "recall@2": pytest.approx(2 / 3), "popularity@2": 1.5}
    given = means("evaluate", "recs.csv", "more.csv", *asked, "--no-recs", "zero")
    assert given["repeat_ratio@2"] == 0.5  # the user has no history either
    assert given["popularity@2"] == 1.0
    shop = ["--items", "prices.csv", "-m", "popularity@2", "--n-users", "9"]
    Path("prices.csv").write_text("item_id,popularity\n10,4\n")
    refused = run("evaluate", "recs.csv", *shop)
    assert (
        refused.exit_code == 2 and "choose what such an item counts with --unseen zero, one or drop" in refused.stderr
    )
    assert means("evaluate", "recs.csv", *shop, "--unseen", "drop") == {"popularity@2": 4.0}
    history = ["--history", "few.csv", "-m", "repeat_ratio@2"]
    Path("few.csv").write_text("user_id,item_id\n1,10\n")
    assert means("evaluate", "recs.csv", *history) == {"repeat_ratio@2": 0.5}
    assert means("evaluate", "recs.csv", *history, "--no-history", "zero") == {"repeat_ratio@2": 0.25}


def test_faults_of_metrics_in_calls() -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("gini(zero=exclude)@2", {"items": "shop.csv"}, "gini has no option 'zero'; did you mean 'zeros'"),
        ("rbo(p=1)@2", {"reference": "other.csv"}, "rbo: p=1 must be a number above 0 and below 1"),
    ]
    for metric, sides, says in cases:
        with pytest.raises(fastrec.MetricError, match=re.escape(says)):
            fastrec.evaluate_files("recs.csv", None, metric, **sides)


def test_explain_finds_lists_by_the_name_of_a_tool() -> None:
    alone = run("explain", "sufficient_reco@2", "recs.csv", "--like", "rectools", "--rank-col", "rank")
    assert (alone.exit_code, alone.stderr) == (0, "")

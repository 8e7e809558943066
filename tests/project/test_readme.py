"""The README is short and its numbers are current; the tables of other tools are true. Its examples run as doctests."""

import math
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import fastrec
from fastrec.metrics.declaration import known_metrics

ROOT = Path(__file__).parents[2]
GAUC_OF_TOOLS = tomllib.loads((ROOT / "scripts" / "website" / "gauc_of_tools.toml").read_text(encoding="utf-8"))[
    "number"
]

# Users with AUC 2/3 (5 rows, 3 positive) and 1/2 (4 rows, 2 positive); 2 rows, all negative; 3 rows, all positive
LABELS = [1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1]
SCORES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3, 0.7, 0.2, 0.1]
INDPTR = [0, 5, 9, 11, 14]
AUC_OF_USERS = (2 / 3, 1 / 2)
WEIGHTS = {"impressions": (5, 4, 2, 3), "positives": (3, 2, 0, 3), "equal": (1, 1, 1, 1)}
ONE_CLASS = {"left out": None, "0.5": 0.5, "0": 0.0, "NaN": math.nan}


def averaged(weight, one_class):
    """Return the mean of the users' AUCs, by the words of the table."""
    value = ONE_CLASS[one_class]
    values = AUC_OF_USERS if value is None else (*AUC_OF_USERS, value, value)
    weights = WEIGHTS[weight][: len(values)]
    return sum(w * auc for w, auc in zip(weights, values, strict=True)) / sum(weights)


@pytest.mark.parametrize("number", GAUC_OF_TOOLS, ids=lambda number: f"{number['tool']} {number['name']}")
def test_the_gauc_of_a_tool_is_what_the_table_says(number):
    assert set(number) == {"tool", "name", "weight", "one_class", "call", "note"}
    if not number["call"]:
        assert number["note"], "why it is not available"
        return
    found = fastrec.evaluate_scores(LABELS, SCORES, INDPTR, number["call"])[number["call"]]
    assert found == pytest.approx(averaged(number["weight"], number["one_class"]), abs=1e-12, nan_ok=True)


def test_the_notes_on_gauc_name_metrics_and_arguments_that_exist():
    calls = [call for number in GAUC_OF_TOOLS for call in re.findall(r"`(gauc\(.*?\))`", number["note"])]
    assert len(calls) >= 2
    for call in calls:
        fastrec.evaluate_scores(LABELS, SCORES, INDPTR, call, user_weight=[1, 2, 0, 1])
    # torchmetrics with empty_target_action="skip": 0 without negatives, left out without positives
    call = "gauc(weight=equal, one_class=zero)"
    found = fastrec.evaluate_scores(LABELS, SCORES, INDPTR, call, user_weight=[1, 1, 0, 1])[call]
    assert found == pytest.approx(sum(AUC_OF_USERS) / 3, abs=1e-12)


def test_the_number_of_tests_is_current(request):
    collected = request.session.testscollected
    if collected < 10_000:
        pytest.skip("only a part of the tests runs")
    stated = re.search(r"runs about ([\d,]+) tests", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert abs(collected / int(stated[1].replace(",", "")) - 1) < 0.1


TOOLS = "RecTools LensKit Elliot RePlay recommenders RecBole Evidently WarpRec recmetrics rexmex RecPack RankSys LibRec"
TOOLS += " ClayRS FairRankTune rsdiv"


def test_the_table_of_tools_has_every_metric_of_items():
    kinds = tomllib.loads((ROOT / "scripts" / "website" / "items_of_tools.toml").read_text(encoding="utf-8"))["kind"]
    homes = ("fastrec.metrics.items", "fastrec.metrics.exposure", "fastrec.metrics.weighted")
    known = [metric.name for metric in known_metrics() if metric.formula.__module__ in homes]
    assert sorted(name for kind in kinds for name in kind["ours"]) == sorted(known)
    assert {tool for tool in TOOLS.split() if any(tool in kind["theirs"] for kind in kinds)} == set(TOOLS.split())


def test_numbers_and_tables_are_current():
    script = [sys.executable, str(ROOT / "scripts" / "write_docs.py"), "--check"]
    result = subprocess.run(script, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 180


def test_each_command_is_one_line():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for marker in ("<!-- demo command -->", "<!-- test command -->"):
        block = text.split(marker)[1].split("```")[1]
        assert len(block.removeprefix("sh").strip().splitlines()) == 1

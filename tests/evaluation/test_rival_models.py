"""Reports of models equal the kept answers of other tools on the same factors."""

import numpy as np
import pytest

import fastrec
from support.rivals import agrees, cases, run

KEPT = {tool: run.load_golden(f"{tool}_models") for tool in ("implicit", "rectools")}
CASES = pytest.mark.parametrize("case", cases.model_cases(), ids=lambda case: case["name"])


@pytest.mark.parametrize("tool", KEPT)
def test_the_cases_are_those_that_were_asked(tool):
    assert run.digest(run.all_cases(None, f"{tool}_models")) == KEPT[tool]["cases"]


def model_of(case):
    return np.array(case["users"], np.float32), np.array(case["items"], np.float32)


def check_same(report, values):
    assert values
    for name, value in values.items():
        found = report[report.settings["names"].get(name, name)]
        assert agrees(found, value, 1e-9), (name, found, value)


@CASES
def test_implicit_gives_the_same_numbers_for_its_model(case):
    metrics = ["precision", "map", "ndcg"]
    call = {"k": case["ks"], "exclude": case["train"], "like": "implicit"}
    check_same(
        fastrec.evaluate_model(model_of(case), case["truth"], metrics, **call), KEPT["implicit"]["values"][case["name"]]
    )


@CASES
@pytest.mark.parametrize("viewed", [False, True])
def test_rectools_gives_the_same_numbers_for_its_model(case, viewed):
    """Users without seen items are unknown to the tool."""
    known = [user for user, seen in enumerate(case["train"]) if seen]
    truth, seen = ([case[side][user] for user in known] for side in ("truth", "train"))
    metrics = ["precision", "recall", "map", "ndcg", "mrr", "hit_rate"]
    call = {"users": known, "k": case["ks"], "exclude": None if viewed else seen, "like": "rectools"}
    kept = KEPT["rectools"]["values"][case["name"]]
    values = {name.replace("(viewed)", ""): value for name, value in kept.items() if ("(viewed)" in name) == viewed}
    check_same(fastrec.evaluate_model(model_of(case), truth, metrics, **call), values)

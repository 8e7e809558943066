"""Reports of models equal the kept answers of other tools on the same factors."""

import numpy as np
import pytest

import fastrec
from support.rivals import agrees, cases, run

KEPT = run.load_golden("implicit_models")


def test_the_cases_are_those_that_were_asked():
    assert run.digest(run.all_cases(None, "implicit_models")) == KEPT["cases"]


@pytest.mark.parametrize("case", cases.model_cases(), ids=lambda case: case["name"])
def test_implicit_gives_the_same_numbers_for_its_model(case):
    model = np.array(case["users"], np.float32), np.array(case["items"], np.float32)
    metrics = ["precision", "map", "ndcg"]
    report = fastrec.evaluate_model(model, case["truth"], metrics, k=case["ks"], exclude=case["train"], like="implicit")
    for name, value in KEPT["values"][case["name"]].items():
        found = report[report.settings["names"].get(name, name)]
        assert agrees(found, value, 1e-9), (name, found, value)

"""Position bias against the kept answers of ultr-bias-toolkit and PyClick: every number, or the reason."""

import math
from collections import Counter
from typing import Any

import pytest

import fastrec
from support.rivals import cases, run

CASES = {case["name"]: case for case in cases.position_cases()}
KEPT = run.load_golden("ultr_bias_toolkit")
SESSIONS = {case["name"]: case for case in cases.session_cases()}
KEPT_SESSIONS = run.load_golden("pyclick")


def test_the_cases_are_those_that_were_asked() -> None:
    assert KEPT["cases"] == run.digest(run.all_cases(None, "ultr_bias_toolkit"))
    assert KEPT_SESSIONS["cases"] == run.digest(run.all_cases(None, "pyclick"))
    assert set(KEPT_SESSIONS["values"]) == set(SESSIONS)


def test_curves_are_those_of_the_tool() -> None:
    """The tool gives 0 where a rank has no click to compare with, and leaps over ranks that nothing connects."""
    found: Counter[str] = Counter()
    for name, case in CASES.items():
        answers = KEPT["values"][name]
        for method in ("pivot", "adjacent"):
            curve = fastrec.position_bias(*map(list, zip(*case["rows"], strict=True)), method=method, n_samples=0).curve
            for at, ours in enumerate(curve.tolist()):
                theirs = answers.get(f"{method}@{at + 1}", math.nan)
                if math.isnan(ours):
                    known = theirs is None or not math.isnan(theirs)
                    found[f"{method} unknown, {'a number there' if known else 'absent there'}"] += 1
                elif at == 0:
                    assert ours == 1
                else:
                    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12), (name, method, at + 1)
                    found[method] += 1
    assert found["pivot"] > 300
    assert found["adjacent"] > 250
    # declined by name: AdjacentChainEstimator gives numbers behind a gap
    assert found["adjacent unknown, a number there"] > 50


def test_the_leap_of_the_tool() -> None:
    """Ranks 1 to 3 and 4 to 6 never share an item, so no number there can be right."""
    leaps = 0
    for name, case in CASES.items():
        if case["kind"] != "apart":
            continue
        curve = fastrec.position_bias(*map(list, zip(*case["rows"], strict=True)), method="adjacent").curve
        assert all(map(math.isnan, curve[3:])), name
        leaps += sum(f"adjacent@{rank}" in KEPT["values"][name] for rank in (5, 6))
    assert leaps >= 60


@pytest.mark.parametrize("case", SESSIONS.values(), ids=list(SESSIONS))
def test_the_model_of_positions_is_that_of_pyclick(case: dict[str, Any]) -> None:
    """PyClick gives 1/2 for a rank without rows, which is the click in two impressions that it adds."""
    answers = KEPT_SESSIONS["values"][case["name"]]
    rows = [
        (click, rank, query, item) for query, shown in case["sessions"] for rank, (item, click) in enumerate(shown, 1)
    ]
    found = fastrec.position_bias(*map(list, zip(*rows, strict=True)), method="em", n_samples=0).examination
    assert found is not None
    assert len(answers) == 10
    for rank in range(1, 11):
        theirs = answers[f"em@{rank}"]
        if rank <= len(found):
            assert found[rank - 1] == pytest.approx(theirs, rel=1e-9), rank
        else:
            assert theirs == 0.5, rank

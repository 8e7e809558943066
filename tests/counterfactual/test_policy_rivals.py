"""`fastrec.policy_value` against the kept answers of Open Bandit Pipeline from `tests/rivals/run.py obp`."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import fastrec
from support.rivals import cases, run

GOLDEN = run.load_golden("obp")
CASES = {case["name"]: case for case in cases.slate_cases()}
LAMBDA = 1.5  # of the tool's clips
TOLERANCE = 1e-9
OF_SLATES = ("sips", "iips", "rips", "snsips", "sniips", "snrips")
# Values of the tool that are faults; each has a test below
DECLINED = ("snips clipped", "cascade_dr shuffled", *(f"{name} {end}" for name in OF_SLATES for end in ("low", "high")))
RAGGED = ("snsips",)  # the tool weighs slates by their lengths there


def value_of(case: dict[str, Any], name: str, **options: Any) -> fastrec.PolicyEstimate:
    """Our answer, from the propensity of each row given those before it."""
    slates, action = np.array(case["slate_id"]), np.array(case["action"])
    q_hat, share = np.array(case["q_hat"]), np.array(case["action_dist"])
    predictions = q_hat[np.arange(len(action)), action], (q_hat * share).sum(axis=1)
    given = [np.array(case[column]) for column in ("reward", "pscore", "new_pscore")]
    indptr = np.searchsorted(slates, np.arange(slates.max() + 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastrec.FastrecWarning)
        return fastrec.policy_value(*given, indptr, estimator=name, predictions=predictions, **options)


def test_kept_answers_are_of_these_cases() -> None:
    assert GOLDEN["cases"] == run.digest(run.all_cases(None, "obp")), "made from other cases: run tests/rivals/run.py"
    assert set(GOLDEN["values"]) == set(CASES)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_every_number_of_the_tool_is_reproduced(case: dict[str, Any]) -> None:
    compared = 0
    for key, theirs in GOLDEN["values"][case["name"]].items():
        if key in DECLINED or (case["kind"] == "ragged" and key in RAGGED):
            continue
        name, _, clipped = key.partition(" ")
        ours = value_of(case, name, clip=LAMBDA if clipped else None).value
        assert ours == pytest.approx(theirs, rel=TOLERANCE, abs=TOLERANCE), key
        compared += 1
    assert compared >= 5


def test_the_tool_has_no_other_estimators_of_slates() -> None:
    known = {"SlateCascadeDoublyRobust", "SlateStandardIPS", "SlateIndependentIPS", "SlateRewardInteractionIPS"}
    known |= {f"SelfNormalized{name}" for name in known - {"SlateCascadeDoublyRobust"}}
    assert set(GOLDEN["names"]) == known | {"SlateOffPolicyEvaluation", "SlateRegressionModel"}


# Faults of the tool


@pytest.mark.parametrize("nth", range(3))
def test_the_tool_ignores_the_clip_of_snips(nth: int) -> None:
    theirs = GOLDEN["values"][f"single-{nth}"]
    assert theirs["snips clipped"] == theirs["snips"]
    ours = value_of(CASES[f"single-{nth}"], "snips", clip=LAMBDA)
    assert ours.clipped > 0
    assert abs(ours.value - theirs["snips"]) > 1e-3


@pytest.mark.parametrize("nth", range(3))
def test_the_tool_needs_sorted_rows_and_does_not_check(nth: int) -> None:
    theirs = GOLDEN["values"][f"full-{nth}"]
    assert abs(theirs["cascade_dr shuffled"] - theirs["cascade_dr"]) > 1e-3
    pd = pytest.importorskip("pandas")
    case = CASES[f"full-{nth}"]
    columns = {name: case[name] for name in ("slate_id", "position", "reward", "pscore", "new_pscore")}
    q_hat, share = np.array(case["q_hat"]), np.array(case["action_dist"])
    predicted = {"q": q_hat[np.arange(len(q_hat)), case["action"]], "q_new": (q_hat * share).sum(axis=1)}
    frame = pd.DataFrame(columns | predicted).sample(frac=1, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastrec.FastrecWarning)
        ours = fastrec.policy_value(frame, rank="position", predictions=("q", "q_new"), estimator="cascade_dr")
    assert ours.value == pytest.approx(theirs["cascade_dr"], rel=TOLERANCE)


@pytest.mark.parametrize(("nth", "name"), list(itertools.product(range(3), ("snsips", "sniips", "snrips"))))
def test_intervals_of_the_tool_ignore_the_divisor(nth: int, name: str) -> None:
    """Where every reward is 1, a self-normalised value of three rows is 3 whatever the weights are."""
    theirs = GOLDEN["values"][f"constant-{nth}"]
    assert theirs[f"{name} high"] - theirs[f"{name} low"] > 0.5
    ours = value_of(CASES[f"constant-{nth}"], name)
    assert (ours.value, ours.std_error) == (pytest.approx(3.0, rel=1e-15), 0.0)


@pytest.mark.parametrize("nth", range(3))
def test_snsips_of_the_tool_weighs_slates_by_their_lengths(nth: int) -> None:
    case, theirs = CASES[f"ragged-{nth}"], GOLDEN["values"][f"ragged-{nth}"]["snsips"]
    slates = np.array(case["slate_id"])
    own = np.array(case["new_pscore"]) / np.array(case["pscore"])
    joint = np.array([own[slates == slate].prod() for slate in slates])
    mean_over_rows = joint.mean()  # each slate as often as it has rows
    assert theirs == pytest.approx((joint * case["reward"]).sum() / mean_over_rows / len(set(slates)), rel=TOLERANCE)
    mean_over_slates = np.mean([own[slates == slate].prod() for slate in set(slates)])
    assert value_of(case, "snsips").value == pytest.approx(theirs * mean_over_rows / mean_over_slates, rel=TOLERANCE)

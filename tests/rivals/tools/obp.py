"""Answers of Open Bandit Pipeline: its estimators of slates, and those of single rows.

It takes joint propensities of whole slates (`pscore`), of rows at their position (`pscore_item_position`), and of rows
up to a position (`pscore_cascade`): here all three follow from the propensity of each row given the rows before it.
"""

import importlib.metadata
import json
import sys

sys.path.pop(0)  # this folder, with files named like the tools

import numpy as np
from obp import ope

SLATES = {
    "sips": "SlateStandardIPS",
    "iips": "SlateIndependentIPS",
    "rips": "SlateRewardInteractionIPS",
    "snsips": "SelfNormalizedSlateStandardIPS",
    "sniips": "SelfNormalizedSlateIndependentIPS",
    "snrips": "SelfNormalizedSlateRewardInteractionIPS",
}
SEED, LAMBDA, ROUNDS = 12345, 1.5, 200


def columns_of(case):
    """Return the arguments for slates; products run along each slate."""
    slates = np.array(case["slate_id"])
    given = {name: np.array(case[name]) for name in ("slate_id", "position", "action", "reward")}
    for name, prefix in (("pscore", ""), ("new_pscore", "evaluation_policy_")):
        own = np.array(case[name])
        running, joint = np.ones(len(own)), np.ones(len(own))
        for slate in np.unique(slates):
            running[slates == slate] = np.cumprod(own[slates == slate])
            joint[slates == slate] = np.prod(own[slates == slate])
        given |= {
            f"{prefix}pscore": joint,
            f"{prefix}pscore_item_position": own,
            f"{prefix}pscore_cascade": running,
        }
    return given


def of_slates(case):
    """Return the values of a log of slates."""
    given = columns_of(case)
    found = {}
    for name, title in SLATES.items():
        estimator = getattr(ope, title)(len_list=case["len_list"])
        found[name] = estimator.estimate_policy_value(**given)
        if case["kind"] == "constant":
            ends = estimator.estimate_interval(**given, n_bootstrap_samples=ROUNDS, random_state=SEED)
            found |= {f"{name} low": ends["95.0% CI (lower)"], f"{name} high": ends["95.0% CI (upper)"]}
    if case["kind"] == "ragged":  # cascade-dr takes slates of one length
        return found
    estimator = ope.SlateCascadeDoublyRobust(len_list=case["len_list"], n_unique_action=case["n_actions"])
    given |= {"q_hat": np.array(case["q_hat"]).ravel()}
    given |= {"evaluation_policy_action_dist": np.array(case["action_dist"]).ravel()}
    found["cascade_dr"] = estimator.estimate_policy_value(**given)
    n = len(case["reward"])
    order = np.random.RandomState(SEED).permutation(n)
    size = case["n_actions"]
    spread = {"q_hat", "evaluation_policy_action_dist"}
    shuffled = {k: v.reshape(n, size)[order].ravel() if k in spread else v[order] for k, v in given.items()}
    found["cascade_dr shuffled"] = estimator.estimate_policy_value(**shuffled)
    return found


def of_rows(case):
    """Return the values of a log of single rows."""
    action = np.array(case["action"])
    given = {
        "reward": np.array(case["reward"]),
        "action": action,
        "pscore": np.array(case["pscore"]),
        "action_dist": np.array(case["action_dist"])[:, :, None],
        "estimated_rewards_by_reg_model": np.array(case["q_hat"])[:, :, None],
    }
    return {
        "ips": ope.InverseProbabilityWeighting().estimate_policy_value(**given),
        "ips clipped": ope.InverseProbabilityWeighting(lambda_=LAMBDA).estimate_policy_value(**given),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given),
        "snips clipped": ope.SelfNormalizedInverseProbabilityWeighting(lambda_=LAMBDA).estimate_policy_value(**given),
        "dr": ope.DoublyRobust().estimate_policy_value(**given),
        "dr clipped": ope.DoublyRobust(lambda_=LAMBDA).estimate_policy_value(**given),
    }


def main():
    """Answer the cases on standard input."""
    given = json.load(sys.stdin)
    values = {case["name"]: (of_rows if case["kind"] == "single" else of_slates)(case) for case in given["slates"]}
    answer = {
        "versions": {name: importlib.metadata.version(name) for name in ("obp", "numpy", "scikit-learn")},
        "values": {name: {key: float(value) for key, value in own.items()} for name, own in values.items()},
        "skipped": {},
        "names": sorted(name for name in ope.__all__ if "Slate" in name),
    }
    print(json.dumps(answer))


main()

"""Values of policies on random logs of slates, against the oracle; some logs have hostile values.

`scripts/fuzz --target policy` runs it for long, `test_fuzz` for a few seconds.
"""

import json
import math
import random
from typing import Any

import numpy as np

import fastrec
from fastrec.counterfactual.estimators import ESTIMATORS
from fuzz.calls import Finding
from support import policy_oracle
from support.policy_logs import check, flat
from support.policy_oracle import Row, Slate

__all__ = ["Finding", "describe", "run_case"]

NAMES = list(ESTIMATORS)
REWARDS = [0.0, 1.0, -1.0, 0.25, 1e-30, -1e-30, 1e30, -1e30, 5e-324]
SHARES = [1.0, 0.5, 0.25, 1e-3, 1e-9]
ODD: list[Any] = [math.nan, math.inf, -math.inf, -1.0, -0.5, 2.0, 1e300, 1e77, 0.0, -0.0, 5e-324, "x", None, 10**400]
ODD += [[0.5], b"x", 1j, True, "0.5"]


def draw_slates(r: random.Random) -> list[Slate]:
    """Draw slates; most logs have usual values, others sizes of every kind."""
    wild, longest = r.random() < 0.3, r.choice([0, 1, 2, 3, 6])

    def number() -> float:
        return r.choice(REWARDS) * r.random() if wild else r.choice([0.0, 1.0, r.uniform(-1, 1)])

    def share(least: float) -> float:
        return r.choice(SHARES) if wild else r.uniform(least, 1)

    def row() -> Row:
        return Row(number(), share(0.02), r.choice([0.0, share(0.0), share(0.0)]), number(), number())

    return [[row() for _ in range(r.randint(0, longest))] for _ in range(r.choice([0, 1, 2, 3, 8, 15]))]


def draw_case(seed: int) -> tuple[list[Slate], float | None, bool, random.Random]:
    """Return a log, a clip, whether to add a hostile value, and what else is random."""
    r = random.Random(seed)
    return draw_slates(r), r.choice([None, None, r.uniform(0.1, 4)]), r.random() < 0.2, r


def describe(seed: int) -> str:
    """Return the log of a seed for a replay."""
    slates, clip, is_hostile, _ = draw_case(seed)
    return "\n".join([f"clip {clip}, hostile: {is_hostile}", *map(str, slates)])


def run_case(seed: int) -> bool:
    """Compare all estimators of one log; return whether there was a value."""
    slates, clip, is_hostile, r = draw_case(seed)
    try:
        if is_hostile:
            return run_hostile(slates, clip, r)
        found = fastrec.policy_value(**flat(slates), estimator=NAMES, clip=clip)
        for name in NAMES:
            try:
                check(found[name], policy_oracle.policy_value(name, slates, clip))
            except AssertionError as error:
                raise Finding("wrong value", f"{name}: {error}") from None
        check_order(slates, clip, found, r)
    except Finding:
        raise
    except Exception as error:
        raise Finding("foreign error", repr(error)) from error
    return bool(slates)


def check_order(slates: list[Slate], clip: float | None, found: dict[str, Any], r: random.Random) -> None:
    """Raise `Finding` if another order of slates, or merging, changes a bit."""
    other = list(slates)
    r.shuffle(other)
    cut = r.randint(0, len(other))
    first, second = (
        fastrec.policy_value(**flat(part), estimator=NAMES, clip=clip) for part in (other[:cut], other[cut:])
    )
    for name in NAMES:
        if json.dumps(first[name].merge(second[name]).to_dict()) != json.dumps(found[name].to_dict()):
            raise Finding("wrong value", f"{name}: merging changes {found[name].to_dict()}")


def run_hostile(slates: list[Slate], clip: float | None, r: random.Random) -> bool:
    """Call with a hostile value: an error of fastrec, or a value if the value happens to be valid."""
    given = flat(slates)
    name = r.choice(["rewards", "pscore", "new_pscore", "indptr"])
    values = given[name].tolist()
    if values:
        values[r.randrange(len(values))] = r.choice(ODD)
    else:
        values = r.choice(ODD)
    try:
        found = fastrec.policy_value(**{**given, name: values}, estimator=r.choice(NAMES), clip=clip)
    except fastrec.FastrecError:
        return False
    numbers = np.array([found.value, found.max_weight])
    if np.isinf(numbers).any():
        raise Finding("wrong value", f"{name}={values} gives {found.to_dict()}")
    return True

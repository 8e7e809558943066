"""Batches of users with ids of several types, against a set in plain Python: each user is counted once or is an error.

All users of an evaluator have ids of one type.

`scripts/fuzz --target users` runs it for long, `test_fuzz` for a few seconds.
"""

import copy
import pickle
import random
from typing import Any, NamedTuple

import numpy as np

import fastrec
from fuzz.calls import Finding

__all__ = ["Finding", "describe", "run_case"]

INTEGERS = [-(2**63) - 1, -(2**63), -2, -1, 0, 1, 2, 3, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
POOLS: list[list[Any]] = [
    [*INTEGERS, 2**64, 2**70],
    ["", "a", "b", "b\0", "b\0\0", "\0", "1", "ü", "a" * 40],
    [b"a", b"b", b"b\0", b"1"],
    [(1,), (1, "a"), (2**63, "a"), ("b\0",)],
]
WIDTHS = [np.int8, np.int32, np.int64, np.uint8, np.uint32, np.uint64]


class Step(NamedTuple):
    """Step: an update with ids in a form, or a merge, a way through bytes or a copy."""

    action: str
    which: int
    other: int
    ids: list[Any]
    form: str


def draw_step(r: random.Random, pools: list[list[Any]]) -> Step:
    pool = r.choice(pools)
    ids = r.sample(pool, r.randint(0, min(4, len(pool))))
    action = r.choice(["update"] * 5 + ["merge", "bytes", "copy", "pickle"])
    return Step(action, r.randrange(3), r.randrange(3), ids, r.choice(["list", "dict", "array", "objects", "scalars"]))


def draw_case(seed: int) -> tuple[bool, list[Step]]:
    """Whether users have scored rows, and the steps."""
    r = random.Random(seed)
    pools = POOLS if r.random() < 0.2 else [r.choice(POOLS)]
    return r.random() < 0.4, [draw_step(r, pools) for _ in range(r.randint(3, 12))]


def describe(seed: int) -> str:
    scored, steps = draw_case(seed)
    return "\n".join([f"scored rows: {scored}", *map(str, steps)])


def as_given(step: Step) -> tuple[Any, list[Any]]:
    """Return the ids in the form of a step, and their values there; a fixed width drops NULs at the end."""
    if step.form == "array" and step.ids and all(isinstance(user, int) for user in step.ids):
        for width in WIDTHS:
            if all(np.iinfo(width).min <= user <= np.iinfo(width).max for user in step.ids):
                return np.array(step.ids, width), step.ids
    if step.form == "array" and step.ids and all(isinstance(user, str) for user in step.ids):
        given = np.array(step.ids)
        return given, given.tolist()
    array = np.empty(len(step.ids), object)
    array[:] = step.ids
    if step.form == "objects":
        return array, step.ids
    if step.form == "scalars":
        kinds: dict[type, Any] = {int: lambda user: np.int64(user) if abs(user) < 2**63 else user, str: np.str_}
        return [kinds.get(type(user), lambda same: same)(user) for user in step.ids], step.ids
    return step.ids, step.ids


def update(evaluator: Any, step: Step, given: Any, *, scored: bool) -> None:
    n = len(given)
    if scored:
        evaluator.update([1, 0] * n, [0.5, 0.25] * n, np.arange(n + 1) * 2, user_ids=given)
    elif step.form == "dict":
        lists = {user: [1] for user in given}
        evaluator.update(lists, lists)
    else:
        evaluator.update([[1]] * n, [[1]] * n, user_ids=given)


def are_of_one_type(ids: list[Any]) -> bool:
    return len(set(map(type, ids))) <= 1


def run_case(seed: int) -> bool:
    """Do the steps of a seed; return whether any user was accepted. Raise `Finding`."""
    scored, steps = draw_case(seed)
    kind = fastrec.ScoreEvaluator if scored else fastrec.Evaluator
    open_: list[Any] = [kind("gauc" if scored else "recall@1", per_user=seed % 2 == 0) for _ in range(3)]
    held: list[list[Any]] = [[], [], []]
    for at, step in enumerate(steps):
        one, mine = open_[step.which], held[step.which]
        given, ids = as_given(step)
        right, after = True, list(mine)
        try:
            if step.action == "update":
                right, after = not set(mine) & set(ids) and len(set(ids)) == len(ids), [*mine, *ids]
                right &= are_of_one_type(after)
                update(one, step, given, scored=scored)
            elif step.action == "merge":
                theirs = held[step.other]
                right = step.which != step.other and not set(mine) & set(theirs)
                after = [*mine, *theirs]
                right &= are_of_one_type(after)
                one.merge(open_[step.other])
            elif step.action == "bytes":
                right = all(isinstance(user, str | int) for user in mine)
                open_[step.which] = kind.from_bytes(one.to_bytes())
            else:
                open_[step.which] = copy.copy(one) if step.action == "copy" else pickle.loads(pickle.dumps(one))
        except fastrec.FastrecError as error:
            if right:
                raise Finding("wrong value", f"step {at}, {step}, is refused: {error}") from error
            after = mine
        except Exception as error:
            raise Finding("foreign error", f"step {at}, {step}: {type(error).__name__}: {error}") from error
        else:
            if not right:
                raise Finding("wrong value", f"step {at}, {step}, is taken; held {mine}")
        held[step.which] = after
        found = open_[step.which].result()
        seen = [] if found.user_ids is None else found.user_ids.tolist()
        if found.users["total"] != len(after) or seen != after:
            raise Finding("wrong value", f"after step {at}, {step}: {seen} for {after}")
    return any(held)

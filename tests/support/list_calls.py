"""Calls of `evaluate` and their expected results: every metric of lists, random logs, checks."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, settings

import fastrec
from fastrec.metrics.declaration import COMMON_OPTIONS
from support import oracle
from support.known import OF_ITEMS
from support.strategies import Log

FAR = 50  # past the end of every list here
CUTOFFS = [None, 1, 3, 10, FAR]
MIN_GAINS = [None, 2.0]
NUMBERS: dict[str, list[Any]] = {"beta": [0.5, 1.0, 2.0], "p": [0.8, 0.5], "max_gain": [4.0, 5.5]}
NUMBERS |= {
    "a": [1.0],
    "b": [-1.0],
    "c": [0.5],
    "d": [0.0, 0.25],
    "multiple": [1.0, 0.3, 2.0],
    "t": [1.0, 2.5],
    "level": [0.1, 0.5],
    "depth": [30.0],
}
TABLES: dict[str, list[Any]] = {
    "gain": [(0.0, 1.0, 3.0, 7.0, 15.0), (0.0, 0.0, 2.0, 2.0, 9.5)],
    "discount": [(1.0, 0.5, 0.5, 0.1)],
}
# explaining a failure takes many times as long as finding and shrinking it
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink]
CI = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=30,
    phases=PHASES,
    suppress_health_check=list(HealthCheck),
)


class Ask(NamedTuple):
    """Metric in the form for both sides."""

    text: str
    name: str
    options: dict[str, Any]
    k: int | None

    def allowed(self, kind: str) -> bool:
        """Return whether the metric takes truth of this kind."""
        has_table = isinstance(self.options.get("gain"), tuple)
        needs_plain = self.options.get("ideal") == "k" and self.options.get("gain") != "binary"
        return not (kind == "graded" and has_table) and not (kind != "plain" and needs_plain)


def samples(name: str, option: dict[str, Any]) -> list[Any]:
    """Return every choice of an option, and a few of its numbers or tables."""
    values: list[Any] = list(option["choices"])
    if option["kind"].endswith("table"):
        values += TABLES[name]
    if option["kind"].endswith("number"):
        values += NUMBERS[name]
    return values


def write(name: str, options: dict[str, Any], k: int | None) -> str:
    """Return the string of a metric, with its defaults."""
    inside = ", ".join(f"{key}={list(value) if isinstance(value, tuple) else value}" for key, value in options.items())
    return f"{name}({inside})" + ("" if k is None else f"@{k}")


def matrix() -> list[Ask]:
    asks = []
    for metric in (
        metric for metric in fastrec.catalogue() if metric["kind"] == "ranking" and metric["name"] not in OF_ITEMS
    ):
        own = {name: option for name, option in metric["options"].items() if name not in COMMON_OPTIONS}
        choices = [samples(name, option) for name, option in own.items()]
        for values, k, min_gain in itertools.product(itertools.product(*choices), CUTOFFS, MIN_GAINS):
            options = dict(zip(own, values, strict=True))
            if options.get("model", "patience") != "patience" and options["p"] != NUMBERS["p"][0]:
                continue  # without effect, as t is below
            if options.get("model", "goal") != "goal" and options["t"] != NUMBERS["t"][0]:
                continue
            if min_gain is not None:
                options["min_gain"] = min_gain
            asks.append(Ask(write(metric["name"], options, k), metric["name"], options, k))
    return asks


MATRIX = matrix()


def flat(rows: Sequence[Sequence[Any]], dtype: Any = np.int64) -> tuple[Any, Any]:
    """Return rows one after the other, and their pointers."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return np.array([value for row in rows for value in row], dtype), indptr


def recs_of(log: Log) -> tuple[Any, Any]:
    return flat(log.recs)


def truth_of(log: Log) -> tuple[Any, Any, Any]:
    items, indptr = flat([[item for item, _ in rows] for rows in log.truth])
    return items, indptr, flat([[gain for _, gain in rows] for rows in log.truth], np.float64)[0]


def same(found: float, expected: float | None) -> bool:
    """Return whether two values are equal to twelve digits, or both missing."""
    if expected is None or math.isnan(expected):
        return math.isnan(found)
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)


def same_error(found: float, expected: oracle.Result) -> bool:
    """Compare like `same`; fastrec adds up rounded squares, so a variance near 0 has fewer digits."""
    if expected.std_error is None or math.isnan(expected.std_error) or same(found, expected.std_error):
        return same(found, expected.std_error)
    largest = max(abs(value) for value in expected.per_user if value is not None)
    return abs(found**2 - expected.std_error**2) <= 1e-15 * largest**2 + 2.0**-64


def check_estimate(found: fastrec.Estimate, expected: oracle.Result, what: str) -> None:
    assert same(found.mean, expected.value), f"{what}: mean {found.mean}, expected {expected.value}"
    assert same_error(found.std_error, expected), f"{what}: std_error {found.std_error}, {expected.std_error}"
    assert found.users == expected.users, f"{what}: users {found.users}, expected {expected.users}"


def check_user_values(found: Any, expected: oracle.Result, what: str) -> None:
    assert len(found) == len(expected.per_user), what
    for user, (mine, theirs) in enumerate(zip(found.tolist(), expected.per_user, strict=True)):
        assert same(mine, theirs), f"{what}: user {user} has {mine}, expected {theirs}"


def for_kind(kind: str) -> list[Ask]:
    return [ask for ask in MATRIX if ask.allowed(kind)]


def of_sampled_lists(texts: Iterable[str]) -> list[str]:
    """Leave out metrics that read the size of the catalogue, which lists that hold a sample do not take."""
    sized = re.compile(r"accuracy|fallout|limited_auc(?!.*list_only)|mcc|specificity|utility.*d=0\.25")
    return [text for text in texts if not sized.match(text)]


def random_log(kind: str, n_users: int, seed: int) -> Log:
    """Draw users with short, long and no lists, and few, many or no relevant items."""
    draw = np.random.default_rng(seed)
    gains = {
        "plain": [1.0],
        "integer": [0.0, 1.0, 2.0, 3.0, 4.0, -1.0],
        "graded": [0.5, 1.0, 2.25, 3.0, 0.0, -2.0],
    }
    recs, truth = [], []
    for _ in range(n_users):
        recs.append(draw.permutation(60)[: draw.choice([0, 2, 10, 12, 40])].tolist())
        held = draw.permutation(60)[: draw.choice([0, 1, 3, 10, 45])].tolist()
        truth.append([(item, float(draw.choice(gains[kind]))) for item in held])
    return Log(recs, truth)

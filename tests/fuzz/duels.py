"""Comparisons of two models on random logs against plain Python; some calls are wrong.

The effect of a user on a metric is its slope in the weight of the user's rows, found by a complex step: each metric is
a few lines of arithmetic with complex weights. `scripts/fuzz --target duels` runs it for long.
"""

import cmath
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import fastrec
from fuzz.calls import Finding
from support.interval_oracle import student

__all__ = ["Finding", "describe", "run_case"]

STEP = 1e-30  # of the imaginary part: its square vanishes
EXACT = 1e-9
MAX_SIGNS = 10  # users whose signs are all tried here
OF_ORDER = ("auc", "average_precision")  # without an interval if a class has rows of fewer than two users
WITHOUT_LIMIT = ("log_loss", "calibration", "normalized_entropy")  # of their range
Weights = Sequence[complex]


class Row(NamedTuple):
    label: int
    one: float
    other: float
    user: int
    weight: float


class Case(NamedTuple):
    """A log, the weight and the group of each user, and how it is passed; `fault` is what is wrong, if anything."""

    rows: list[Row]
    user_weights: dict[int, float] | None
    groups: dict[int, str] | None
    has_weights: bool
    form: str
    metrics: list[str]
    n_threads: int
    fault: str


def draw_case(seed: int) -> Case:
    r = random.Random(seed)
    n, n_users = r.choice([1, 2, 3, 6, 12, 24]), r.choice([1, 2, 3, 5, 9])
    levels, rate = r.choice([2, 4, 1000]), r.choice([0.0, 0.2, 0.5, 0.8])
    has_weights = r.random() < 0.4

    def score() -> float:
        return 0.02 + 0.96 * r.randrange(levels) / levels

    users = [r.choice([3, 1, 4, -7, 10**12, 9, 2, 6, 5][:n_users]) for _ in range(n)]
    rows = [
        Row(int(r.random() < rate), score(), score(), user, r.choice([0.0, 0.5, 1.0, 3.0]) if has_weights else 1.0)
        for user in users
    ]
    weights = {user: r.choice([0.0, 1.0, 2.5]) for user in {*users}} if r.random() < 0.3 else None
    groups = {user: r.choice("ab") for user in {*users}} if r.random() < 0.4 else None
    form = r.choice(["keys", "indptr", "frame", "rows"])
    if form == "rows":  # each is a user of its own
        weights = groups = None
    metrics = r.sample([*METRICS, "gauc"], r.randint(1, len(METRICS) + 1))
    fault = r.choice(["nan", "short", "text", "baseline", "one", "label", "metric"]) if r.random() < 0.15 else ""
    return Case(rows, weights, groups, has_weights, form, metrics, r.randint(1, 3), fault)


def describe(seed: int) -> str:
    case = draw_case(seed)
    return "\n".join([str(case._replace(rows=[])), *map(str, case.rows)])


def run_case(seed: int) -> bool:
    """Compare one log; return whether it was not refused."""
    case = draw_case(seed)
    try:
        try:
            found = compared(case)
        except fastrec.FastrecError as error:
            if not (case.fault or is_undefined(case)):
                raise AssertionError(f"refused: {error}") from None
            return False
        assert not case.fault, f"accepted, though {case.fault} is wrong"
        check(case, found)
    except AssertionError as error:
        raise Finding("wrong value", str(error)) from None
    except Exception as error:
        raise Finding("foreign error", repr(error)) from error
    return True


def compared(case: Case) -> fastrec.Comparison:
    """Call `compare_scores` with the log of a case."""
    rows = sorted(case.rows, key=lambda row: row.user) if case.form == "indptr" else case.rows
    labels, scores = np.array([row.label for row in rows]), [np.array([row[at] for row in rows]) for at in (1, 2)]
    models: Any = {"a": scores[0], "b": scores[1]}
    metrics, baseline, log = list(case.metrics), "a", labels
    users = np.array([row.user for row in rows])
    ids, firsts = np.unique(users, return_index=True)
    options: dict[str, Any] = {"sample_weight": np.array([row.weight for row in rows])} if case.has_weights else {}
    of_users = [("user_weight", case.user_weights), ("groups", case.groups)]
    per = ids if case.form == "indptr" else users  # one value per user, or one per row
    options |= {name: np.array([own[key] for key in per.tolist()]) for name, own in of_users if own is not None}
    if case.fault == "nan":
        scores[1][0] = math.nan
    elif case.fault == "short":
        models["b"] = scores[1][:-1]
    elif case.fault == "text":
        models["b"] = ["x"] * len(rows)
    elif case.fault == "baseline":
        baseline = "c"
    elif case.fault == "one":
        del models["b"]
    elif case.fault == "label":
        labels[0] = 2
    elif case.fault == "metric":
        metrics.append("ndgc@5")
    if case.form == "indptr":
        options["indptr"] = np.append(firsts, len(rows))
    elif case.form == "keys":
        options["user_ids"] = users
    elif case.form == "frame" and not case.fault:
        pandas = __import__("pandas")
        columns = {"label": labels, "x": scores[0], "y": scores[1], "user_id": users}
        named = {"sample_weight": "w", "user_weight": "v", "groups": "g"}
        columns |= {named[name]: own for name, own in options.items()}
        given = {"by" if name == "groups" else name: named[name] for name in options}
        log, models, options = pandas.DataFrame(columns), {"a": "x", "b": "y"}, given
    elif case.form == "frame":
        options["user_ids"] = users
    return fastrec.compare_scores(log, models, metrics, baseline=baseline, n_threads=case.n_threads, **options)


def usable(case: Case) -> list[str]:
    """Return the metrics of a case that a log of its form has."""
    return [metric for metric in case.metrics if not (metric == "gauc" and case.form == "rows")]


def is_undefined(case: Case) -> bool:
    """Return whether a call is rightly refused: for rows without weight, users, or any metric with a value."""
    if case.has_weights and not any(row.weight for row in case.rows):
        return True
    if len(usable(case)) < len(case.metrics):
        return True
    return all(expected(case, metric, case.rows) is None for metric in case.metrics)


# The metrics, with complex weights of rows


def auc(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    rows = list(zip(labels, scores, weights, strict=True))
    won: complex = 0
    for (one, score, weight), (two, below, own) in itertools.product(rows, rows):
        if one == 1 and two == 0:
            won += weight * own * ((score > below) + 0.5 * (score == below))
    positive = sum(weight for label, _, weight in rows if label)
    return won / positive / (sum(weights) - positive)


def average_precision(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    found: complex = 0
    for label, score, weight in zip(labels, scores, weights, strict=True):
        if label and weight:
            above = [at for at, own in enumerate(scores) if own >= score]
            found += weight * sum(weights[at] for at in above if labels[at]) / sum(weights[at] for at in above)
    return found / sum(weight for label, weight in zip(labels, weights, strict=True) if label)


def log_loss(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    losses = [-math.log(own if label else 1 - own) for label, own in zip(labels, scores, strict=True)]
    return ratio(weights, losses, [1.0] * len(labels))


def ratio(weights: Weights, above: Sequence[float], below: Sequence[float]) -> complex:
    over, under = (sum(weight * own for weight, own in zip(weights, values, strict=True)) for values in (above, below))
    return over / under


def brier(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    squares = [(own - label) ** 2 for label, own in zip(labels, scores, strict=True)]
    return ratio(weights, squares, [1.0] * len(labels))


def calibration(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    return ratio(weights, scores, [float(label) for label in labels])


def normalized_entropy(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    rate = ratio(weights, [float(label) for label in labels], [1.0] * len(labels))
    return log_loss(labels, scores, weights) / -(rate * cmath.log(rate) + (1 - rate) * cmath.log(1 - rate))


def precision(labels: Sequence[int], scores: Sequence[float], weights: Weights) -> complex:
    chosen = [float(own >= 0.5) for own in scores]
    return ratio(weights, [own * label for own, label in zip(chosen, labels, strict=True)], chosen)


METRICS: dict[str, Callable[[Sequence[int], Sequence[float], Weights], complex]] = {
    "auc": auc,
    "average_precision": average_precision,
    "log_loss": log_loss,
    "brier": brier,
    "calibration": calibration,
    "normalized_entropy": normalized_entropy,
    "precision(threshold=0.5)": precision,
}


def gauc(rows: Sequence[Row], at: int, weights: Weights) -> complex:
    over: complex = 0
    under: complex = 0
    for user in sorted({row.user for row in rows}):
        own = [(row, weight) for row, weight in zip(rows, weights, strict=True) if row.user == user and row.weight]
        if len({row.label for row, _ in own}) == 2:
            total = sum(weight for _, weight in own)
            area = auc([row.label for row, _ in own], [row[at] for row, _ in own], [row.weight for row, _ in own])
            over, under = over + total * area, under + total
    return over / under


def expected(case: Case, metric: str, rows: Sequence[Row]) -> dict[str, Any] | None:
    """Return the numbers of the comparison of b with a on some rows; None if a value or its slope is undefined."""
    factors = case.user_weights or {}
    if case.form == "rows":
        rows = [row._replace(user=nth) for nth, row in enumerate(rows)]
    weights = [row.weight * factors.get(row.user, 1.0) for row in rows]
    users = sorted({row.user for row in rows if row.weight})
    labels = [row.label for row in rows]
    if metric == "gauc":
        users = [user for user in users if len({row.label for row in rows if row.user == user and row.weight}) == 2]

    def value(at: int, own: Weights) -> complex:
        return gauc(rows, at, own) if metric == "gauc" else METRICS[metric](labels, [row[at] for row in rows], own)

    means, effects = [], []
    try:
        for at in (2, 1):
            mean = value(at, weights).real
            slopes = []
            for user in users:
                steps = [
                    own * (1 + STEP * 1j) if row.user == user else complex(own)
                    for row, own in zip(rows, weights, strict=True)
                ]
                slopes.append(value(at, steps).imag / STEP)
            sign = math.copysign(1, mean - 1) if metric == "calibration" else 1.0
            means.append(mean)
            effects.append([sign * len(users) * slope for slope in slopes])
    except (ZeroDivisionError, ValueError):
        return None
    if not all(map(math.isfinite, means)):
        return None
    apart = [abs(mean - 1) if metric == "calibration" else mean for mean in means]
    differences = [(apart[0] - apart[1]) + one - two for one, two in zip(*effects, strict=True)]
    return {
        "mean": means[0],
        "baseline_mean": means[1],
        "difference": apart[0] - apart[1],
        "users": len(users),
        "differences": differences,
        "users_of_class": min(
            len({row.user for row, own in zip(rows, weights, strict=True) if own and bool(row.label) is positive})
            for positive in (False, True)
        ),
    }


def check(case: Case, found: fastrec.Comparison) -> None:
    """Raise AssertionError unless all rows of a comparison are as expected, and no metric is missing."""
    check_rows(case, found.rows, case.rows, found.left_out)
    for rows in found.segments.values():
        assert case.groups is not None, "a segment that was not asked for"
        for group in sorted({*case.groups.values()}):
            own = [row for row in case.rows if case.groups[row.user] == group]
            check_rows(case, [row for row in rows if row.group == group], own, None)


def check_rows(case: Case, found: Sequence[Any], rows: Sequence[Row], left_out: Any) -> None:
    by_metric = {row.metric: row for row in found}
    for metric in case.metrics:
        wanted, row = expected(case, metric, rows), by_metric.get(metric)
        if wanted is None:
            assert row is None or math.isnan(row.mean) or math.isnan(row.low), f"{metric} has a value"
        elif row is None:
            assert left_out is None, f"{metric} is left out: {left_out.get(metric)}"
        else:
            check_row(metric, row, wanted)


def check_row(metric: str, row: Any, wanted: dict[str, Any]) -> None:
    for name in ("mean", "baseline_mean", "difference", "users"):
        assert close(getattr(row, name), wanted[name], 1.0), f"{name} of {metric} is {getattr(row, name)}: {wanted}"
    differences = wanted["differences"]
    if len(differences) < 2:
        assert math.isnan(row.low), f"{metric} of one user has an interval"
        return
    if metric in OF_ORDER and wanted["users_of_class"] < 2:
        assert math.isnan(row.low) and math.isnan(row.p_value), f"{metric} of a class of one user has an interval"
        return
    if metric == "calibration" and min(abs(row.mean - 1), abs(row.baseline_mean - 1)) < EXACT:
        return  # the distance to 1 has no slope there
    mean, n = math.fsum(differences) / len(differences), len(differences)
    error = math.sqrt(math.fsum((own - mean) ** 2 for own in differences) / (n - 1) / n)
    scale = max(map(abs, differences)) + 1
    width = math.inf if metric in WITHOUT_LIMIT else 1.0
    if error > EXACT * scale:
        ends = student(wanted["difference"], error, n - 1, (-width, width))
        for end, own in zip((row.low, row.high), ends, strict=True):
            assert close(end, own, scale), f"an end of {metric} is {end}, not {own}"
    else:
        assert math.isnan(row.low) or row.low <= row.difference <= row.high, f"{metric}: {row}"
    if n <= MAX_SIGNS:
        sums = [
            abs(math.fsum(sign * own for sign, own in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=n)
        ]
        near = EXACT * scale * n
        as_large = sum(own >= sums[0] - near for own in sums) / len(sums)
        larger = sum(own >= sums[0] + near for own in sums) / len(sums)
        low = as_large if sums[0] > near else 1.0
        assert larger - EXACT <= row.p_value <= low + EXACT, f"p of {metric} is {row.p_value}, not {as_large}"


def close(found: float, wanted: float, scale: float) -> bool:
    return abs(found - wanted) <= EXACT * max(scale, abs(wanted))

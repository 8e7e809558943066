"""Random uses of reports: comparisons, intervals, files, segments and explanations, valid and invalid.

Plain Python gives the expected results; lists, rows and oracle are those of `fuzz.calls`.
`scripts/fuzz --target reports` runs them by the thousand, `test_fuzz` for a few seconds.
"""

import copy
import itertools
import json
import math
import pickle
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import fastrec
from fuzz.calls import (
    EITHER,
    EQUAL,
    OF_LISTS,
    REFUSED,
    Arguments,
    Case,
    Draw,
    Finding,
    draw_asks,
    draw_pool,
    menu,
    one_in,
    run,
    set_up,
    shown,
)
from fuzz.calls import lists_case as evaluation_of_lists
from fuzz.calls import scores_case as evaluation_of_rows
from support.explanations import names_of

VALUES = [0.0, 0.0, 0.1, 0.2, 0.3, 1 / 3, 1 - 2 / 3, 0.5, 1.0, 1.0, 2.0, 7.0]
EXTREMES = [0.0, 5e-324, 1e-310, 1e-300, 1.0, 1 + 2**-52, 2.0**60, 1e300]
ROUNDED = 2.0**-39  # of the largest value: larger differences are not rounding
TINY = 1e-322  # a few of the smallest positive numbers
TESTS = ["randomization", "bootstrap", "t", "wilcoxon"]
CORRECTIONS = ["holm", "bonferroni", "bh", "none"]


# Comparisons


def draw_systems(r: Draw, asked: Draw) -> dict[str, fastrec.Report]:
    """Draw reports on the same users or on some of them, with any values or those of a metric of lists."""
    n_users = r.choice([0, 1, 2, 3, 5, 9, 14, 40])
    ids = r.choice([None, r.sample(range(-20, 60), n_users), [f"ü{at}" for at in r.sample(range(60), n_users)]])
    labels = r.choice(
        [None, [r.choice(["a", "b", ""]) for _ in range(n_users)], [r.choice([1, 2]) for _ in range(n_users)]]
    )
    names = r.sample(["a", "b", "<b>", "ü\n", "=1+1", "c\x1b[31m", "$%_&"], r.choice([2, 2, 3]))
    make = r.choice([systems_of_values, systems_of_shares, systems_of_lists])(r, asked, n_users)
    found = {}
    for name in names:
        users = list(range(n_users))
        if ids is not None and n_users and one_in(r, 3):
            users = r.sample(users, r.randint(1, n_users))
        about: Arguments = {} if ids is None else {"user_ids": [ids[user] for user in users]}
        about |= {} if labels is None else {"groups": {"g": [labels[user] for user in users]}}
        found[name] = make(users, about)
    return found


Make = Callable[[list[int], Arguments], fastrec.Report]


def systems_of_values(r: Draw, _: Draw, n_users: int) -> Make:
    pool = r.choice([VALUES, VALUES, EXTREMES])
    metrics = ["mae(average=user)", "rmse(average=user)"] if pool is VALUES else ["mae(average=user)"]

    def make(users: list[int], about: Arguments) -> fastrec.Report:
        values = r.choices(pool, k=len(users))
        rows: Arguments = {"labels": [0.0] * len(users), "scores": values}
        if "user_ids" not in about:
            rows["indptr"] = range(len(users) + 1)
        return fastrec.evaluate_scores(**rows, metrics=metrics, per_user=True, **about)

    return make


def systems_of_shares(r: Draw, _: Draw, __: int) -> Make:
    """Draw users with one positive row each; its score is then their calibration: a metric with a target."""

    def make(users: list[int], about: Arguments) -> fastrec.Report:
        rows: Arguments = {"labels": [1] * len(users), "scores": r.choices(VALUES, k=len(users))}
        if "user_ids" not in about:
            rows["indptr"] = range(len(users) + 1)
        metrics = ["calibration(average=user)", "calibration"]
        return fastrec.evaluate_scores(**rows, metrics=metrics, per_user=True, **about)

    return make


def systems_of_lists(r: Draw, asked: Draw, n_users: int) -> Make:
    asks = draw_asks(asked, OF_LISTS["integer"])
    pool = draw_pool(r, 8)
    truth = [{item: r.choice([0, 1, 2, 3]) for item in r.sample(pool, r.randint(0, 4))} for _ in range(n_users)]
    no_truth = asked.choice(["skip", "zero", "nan"])

    def make(users: list[int], about: Arguments) -> fastrec.Report:
        recs = [r.sample(pool, r.randint(0, 6)) for _ in users]
        held = [truth[user] for user in users]
        metrics = [ask.text for ask in asks]
        return fastrec.evaluate(recs, held, metrics, per_user=True, n_items=10**4, no_truth=no_truth, **about)

    return make


def compare_case(r: Draw, asked: Draw) -> Case:
    systems = draw_systems(r, asked)
    arguments: Arguments = {
        "reports": systems,
        "baseline": r.choice([None, None, *systems]),
        "test": r.choice(TESTS),
        "correction": r.choice(CORRECTIONS),
        "level": r.choice([0.5, 0.9, 0.95, 0.999]),
        "n_rounds": r.choice([1, 99, 1024, 20_000]),
        "seed": r.choice([0, 1, 2**63]),
        "missing": r.choice(["drop", "drop", "zero"]),
        "n_threads": r.choice([None, 1, 2, 3]),
    }
    # `compare` rejects reports without a common user or a common plain mean; its own tests check that
    return Case(fastrec.compare, arguments, EITHER, lambda found: check_comparison(found, arguments))


def values_of(report: fastrec.Report, metric: str) -> dict[Any, float]:
    values = report.per_user[metric].tolist()
    users = range(len(values)) if report.user_ids is None else report.user_ids.tolist()
    return dict(zip(users, values, strict=True))


def check_comparison(found: fastrec.Comparison, arguments: Arguments) -> None:
    systems, missing = arguments["reports"], arguments["missing"]
    for row in found.all_rows():
        ours, theirs = (values_of(systems[name], row.metric) for name in (row.system, row.baseline))
        users = [user for user in {**ours, **theirs} if row.grouping is None or label_of(systems, user) == row.group]
        pairs = [(ours.get(user, math.nan), theirs.get(user, math.nan)) for user in users]
        pairs = [pair for pair in pairs if not all(map(math.isnan, pair))]
        whole = [pair for pair in pairs if not any(map(math.isnan, pair))]
        assert row.unpaired == len(pairs) - len(whole), row
        if row.ties is None:  # ratios of sums drop nothing: all reports have the same users
            whole = pairs
        used = whole if missing == "drop" else [tuple(0.0 if math.isnan(v) else v for v in pair) for pair in pairs]
        check_row(row, used, arguments)
    for rows in (found.rows, *found.segments.values()):
        wanted = corrected([row.p_value for row in rows], arguments["correction"])
        same_or_near([row.p_corrected for row in rows], wanted)
    check_shown(found)


def label_of(systems: dict[str, fastrec.Report], user: Any) -> Any:
    for report in systems.values():
        users = range(len(report.labels["g"])) if report.user_ids is None else report.user_ids.tolist()
        if user in users:
            return report.labels["g"][list(users).index(user)].item()
    raise AssertionError(user)


def check_row(row: fastrec.ComparisonRow, pairs: list[Any], arguments: Arguments) -> None:
    assert row.users == len(pairs), row
    if not pairs:
        assert math.isnan(row.mean) and math.isnan(row.difference) and math.isnan(row.p_value), row
        return
    target = Fraction(0 if row.target is None else row.target)
    far = abs if row.direction == "target" else Fraction
    exact = [far(Fraction(a) - target) - far(Fraction(b) - target) for a, b in pairs]
    sizes = [max(*map(abs, pair), float(target)) for pair in pairs]
    near = ROUNDED * max(sizes) + TINY
    if row.ties is None:
        means = [sum(map(Fraction, values)) / len(pairs) for values in zip(*pairs, strict=True)]
        exact = [abs(means[0] - target) - abs(means[1] - target)]
    for found, wanted in (
        (row.mean, [Fraction(a) for a, _ in pairs]),
        (row.baseline_mean, [Fraction(b) for _, b in pairs]),
        (row.difference, exact),
    ):
        assert abs(found - float(sum(wanted) / len(wanted))) <= near, (row, found)
    check_verdict(row, arguments["level"])
    if row.ties is None:
        assert (len(pairs) < 2 and math.isnan(row.p_value)) or 0 <= row.p_value <= 1, row
        return
    check_counts(row, exact, [ROUNDED * size for size in sizes])
    if len(pairs) < 2:
        assert math.isnan(row.p_value), row
        return
    assert 0 <= row.p_value <= 1, row
    if row.note == "no user differs":
        low, high = fastrec.metrics.calls.parse(row.metric).metric.range
        end = math.nan if high is None else (1 - ((1 - arguments["level"]) / 2) ** (1 / len(pairs))) * (high - low)
        same_or_near([row.low, row.high], [-end, end])
    elif row.std_error == 0 and math.isnan(row.low):
        assert fastrec.metrics.calls.parse(row.metric).metric.range[1] is None, row
    elif arguments["test"] == "bootstrap":
        assert min(exact) - near <= row.low <= row.high <= max(exact) + near, row
    else:
        assert row.low - near <= row.difference <= row.high + near, row
    if arguments["test"] == "randomization" and 2 ** len(pairs) <= min(arguments["n_rounds"], 1024):
        check_signs(row.p_value, exact, near)


def check_counts(row: fastrec.ComparisonRow, exact: list[Any], roundings: list[float]) -> None:
    """Users with a better value win and users with a worse one lose; without a direction only ties are counted."""
    way = fastrec.metrics.calls.parse(row.metric).metric.direction.sign
    doubtful = sum(0 < abs(d) <= rounding for d, rounding in zip(exact, roundings, strict=True))
    if way == 0:
        assert row.direction == "none" and row.wins is row.losses is None, row
        equal = sum(d == 0 for d in exact)
        assert equal <= row.ties <= equal + doubtful, row
        return
    for found, sign in ((row.wins, way), (row.losses, -way)):
        sure = sum(sign * d > rounding for d, rounding in zip(exact, roundings, strict=True))
        assert sure <= found <= sure + doubtful, row
    assert row.wins + row.ties + row.losses == len(exact), row


def check_verdict(row: fastrec.ComparisonRow, level: float) -> None:
    """The better system is nearer to a target, lower for an error metric, otherwise higher."""
    if math.isnan(row.p_corrected) or row.direction == "none":
        assert row.verdict is None, row
    elif row.p_corrected > 1 - level + 1e-9 or row.difference == 0:
        assert row.verdict == "not clear", row
    elif row.p_corrected < 1 - level - 1e-9:
        assert row.verdict == ("better" if (row.difference > 0) == (row.direction == "higher") else "worse"), row


def check_signs(p_value: float, differences: Sequence[Fraction], near: float) -> None:
    """Bound the share of all signs with a sum as large, whether or not sums equal up to rounding count."""
    total = abs(sum(differences))
    sums = [abs(sum(way * d for way, d in zip(ways, differences, strict=True))) for ways in every_sign(differences)]
    slack = Fraction(near) * 4 * len(differences)
    least, most = (sum(found >= total + step for found in sums) / len(sums) for step in (slack, -slack))
    assert least - 1e-12 <= p_value <= most + 1e-12, (p_value, least, most)


def every_sign(differences: Sequence[Fraction]) -> Any:
    return itertools.product((1, -1), repeat=len(differences))


def corrected(p_values: list[float], how: str) -> list[float]:
    """Correct p-values by the definitions of Holm (1979) and of Benjamini & Hochberg (1995)."""
    known = sorted(p for p in p_values if not math.isnan(p))
    n = len(known)

    def one(p: float) -> float:
        if math.isnan(p) or how == "none":
            return p
        if how == "bonferroni":
            return min(1.0, n * p)
        if how == "holm":
            return min(1.0, max((n - at) * own for at, own in enumerate(known) if own <= p))
        return min(1.0, *(n / (at + 1) * own for at, own in enumerate(known) if own >= p))

    return [one(p) for p in p_values]


def same_or_near(found: list[float], wanted: list[float]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (math.isnan(a) and math.isnan(b)) or abs(a - b) <= 1e-12, (found, wanted)


def check_shown(found: Any) -> None:
    """Check that every form of a report or a comparison is available, and holds nothing that JSON cannot."""
    json.loads(found.to_json(), parse_constant=lambda name: 1 / 0)
    texts = [repr(found), found._repr_html_(), found.to_markdown(), found.to_latex(), found.to_html()]
    assert all(text and "\x1b" not in text for text in texts), texts
    rows = found.to_rows()
    for kind in ("pandas", "polars", "pyarrow"):
        assert len(found.to_frame(kind)) == len(rows), kind


# One report


def report_case(r: Draw, asked: Draw) -> Case:
    case = r.choice([evaluation_of_lists, evaluation_of_rows])(r, asked)
    level, rounds, seed = r.choice([0.5, 0.95]), r.choice([1, 500]), r.choice([0, 7])

    def use(**arguments: Any) -> fastrec.Report:
        report = case.function(**arguments)
        check_copies(report)
        check_shown(report)
        for name in report:
            check_intervals(report, name, level, n_rounds=rounds, seed=seed)
        return report

    return case._replace(function=use)


def check_copies(report: fastrec.Report) -> None:
    copies = [pickle.loads(pickle.dumps(report)), copy.deepcopy(report)]
    if report.user_ids is None or report.user_ids.dtype != object:  # ids of several columns cannot be saved
        folder = Path(tempfile.mkdtemp(prefix="fuzz-reports-"))
        report.save(folder / "report")
        (file,) = folder.iterdir()
        copies.append(fastrec.load(file))
        shutil.rmtree(folder)
    for other in copies:
        assert other.to_json() == report.to_json(), (other, report)
        assert other.has_values == report.has_values, other
        if report.has_values:
            assert list(other.per_user) == list(report.per_user)
            for name, values in report.per_user.items():
                np.testing.assert_array_equal(other.per_user[name], values)


def check_intervals(report: fastrec.Report, name: str, level: float, **options: int) -> None:
    low, high = report.interval(name, level)
    assert math.isnan(low) or low <= report[name] <= high, (name, low, high)
    if not report.has_values or not report.is_mean(name):
        return
    values = report.per_user[name]
    values = values[~np.isnan(values)]
    low, high = report.interval(name, level, "bootstrap", **options)
    if len(values) < 2:
        assert math.isnan(low) and math.isnan(high), (name, low, high)
        return
    near = ROUNDED * float(np.abs(values).max()) + TINY
    assert values.min() - near <= low <= high <= values.max() + near, (name, low, high)


# Segments


def users_case(r: Draw, _: Draw) -> Case:
    pool = r.choice([list(range(8)), [2**62 + at for at in range(8)], [f"ü{at}" for at in range(8)]])
    history, users = r.choices(pool, k=r.choice([0, 1, 5, 30])), r.choices(pool, k=r.choice([0, 1, 8]))
    cuts = sorted(r.sample([1 / 4, 1 / 3, 1 / 2, 2 / 3, 0.9], r.randint(1, 3)))
    names = [f"s{at}" for at in range(len(cuts) + 1)]

    def check(found: Any) -> None:
        counts = sorted(map(history.count, set(history)))
        limits = [counts[math.ceil(Fraction(cut).limit_denominator(10**6) * len(counts)) - 1] for cut in cuts if counts]
        for user, label in zip(users, found.tolist(), strict=True):
            own = history.count(user)
            assert label == (names[sum(own > limit for limit in limits)] if own else "none"), (user, label)

    forms = [list, tuple, np.array]
    given = {"history": r.choice(forms)(history), "user_ids": r.choice(forms)(users), "names": names, "shares": cuts}
    # an empty array of NumPy has floats
    return Case(fastrec.segment_users, given, EQUAL if history and users else EITHER, check, len(users))


def items_case(r: Draw, _: Draw) -> Case:
    pool = r.choice([list(range(8)), [2**62 + at for at in range(8)], [f"ü{at}" for at in range(8)]])
    history = r.choices(pool, r.choices([1, 2, 9], k=len(pool)), k=r.choice([0, 1, 5, 30]))
    cuts = sorted(r.sample([1 / 4, 1 / 2, 0.8, 0.9], r.randint(1, 3)))
    names = [f"s{at}" for at in range(len(cuts) + 1)]

    def check(found: Any) -> None:
        assert set(found) == set(history)
        for item, label in found.items():
            more = sum(history.count(other) > history.count(item) for other in history)
            assert label == names[sum(more >= cut * len(history) - 1e-9 for cut in cuts)], (item, label)

    given = {"history": r.choice([list, tuple])(history), "names": names, "shares": cuts}
    return Case(fastrec.segment_items, given, EQUAL, check, len(history))


def without_warnings(report: fastrec.Report) -> dict[str, Any]:
    """Return the document of a report; a segment of items with other ids than the lists is no reason to warn.

    Its digest is that of the gains of all items, which are 0 in the truth of one segment here.
    """
    document: dict[str, Any] = report.to_dict()
    del document["warnings"], document["digest"]
    return document


def by_items_case(r: Draw, asked: Draw) -> Case:
    asks = draw_asks(asked, OF_LISTS["integer"])
    name = r.choice([int, str])
    pool = list(map(name, draw_pool(r, 10)))
    n_users = r.choice([1, 2, 6])
    recs = [r.sample(pool, r.randint(0, 8)) for _ in range(n_users)]
    truth = [{item: r.choice([0, 1, 3]) for item in r.sample(pool, r.randint(0, 6))} for _ in range(n_users)]
    segments = {item: r.choice(["head", "tail", "ü<b>"]) for item in r.sample(pool, r.randint(1, 10))}
    options: Arguments = {
        "metrics": [ask.text for ask in asks],
        "n_items": 10**4,
        "no_truth": asked.choice(["skip", "zero", "nan", "judged", "listed"]),
        "per_user": True,
        "groups": r.choice([None, [r.choice([1, 2]) for _ in range(n_users)]]),
        "user_weight": r.choice([None, [r.choice([0.5, 2.0]) for _ in range(n_users)]]),
    }

    def check(found: Any) -> None:
        assert set(found) == set(segments.values())
        for label, report in found.items():
            part = [{item: gain for item, gain in own.items() if segments.get(item) == label} for own in truth]
            judged = [dict.fromkeys(own, 0) | kept for own, kept in zip(truth, part, strict=True)]
            wanted = fastrec.evaluate(recs, judged, **options)
            document, rows = without_warnings(wanted), fastrec.evaluate(recs, part, **options).data
            document["data"] |= {name: rows[name] for name in rows if name.startswith("truth_rows")}
            assert without_warnings(report) == document, label
            for metric, values in wanted.per_user.items():
                np.testing.assert_array_equal(report.per_user[metric], values)

    # without a truth, strings and integers cannot be told apart
    verdict = EQUAL if any(truth) else EITHER
    return Case(
        fastrec.evaluate_by_items, {"recs": recs, "truth": truth, "segments": segments, **options}, verdict, check
    )


# Explanations


NAMES = list(names_of("lists"))


def explain_case(r: Draw, asked: Draw) -> Case:
    tool, name = asked.choice(NAMES)
    pool = draw_pool(r, 12)
    recs, truth = {}, {}
    for user in r.sample(range(100), r.choice([1, 3, 10])):
        if not one_in(r, 8):
            recs[user] = {item: r.choice([0.0, 1.0, 2.0, r.random()]) for item in r.sample(pool, r.randint(0, 8))}
        if not one_in(r, 8):
            truth[user] = {item: r.choice([0, 1, 2, 3]) for item in r.sample(pool, r.randint(0, 5))}
    options = {"n_items": 30}
    arguments = {"metric": name, "recs": recs, "truth": truth, "like": tool, "n_users": 1000, **options}

    def check(why: Any) -> None:
        theirs = why.sides[tool]
        if theirs.estimate is not None:
            report = fastrec.evaluate(recs, truth, name, like=tool, per_user=True, **options)
            assert repr(theirs.estimate) == repr(report.estimates[theirs.metric]), tool
        if theirs.estimate is not None and why.ours.estimate is not None and "metric" not in why.differing:
            gap = theirs.estimate.mean - why.ours.estimate.mean
            steps = math.fsum(step for step in theirs.steps.values() if not math.isnan(step))
            assert math.isnan(gap) or abs(steps - gap) <= 1e-12, (steps, gap)
        json.loads(why.to_json(), parse_constant=lambda name: 1 / 0)
        assert repr(why) and why.to_markdown()

    return Case(fastrec.explain, arguments, EITHER, check)


# Faults of a call


WRONG: dict[str, list[Any]] = {
    "reports": [None, {}, [], {"a": 1, "b": 2}, "x", {1: None, 2: None}],
    "baseline": ["nope", 3, [], b"a"],
    "test": ["x", 3, None, []],
    "correction": ["x", 3, None, []],
    "level": [0, 1, -1, 1.5, float("nan"), "a", None, [], 1j],
    "n_rounds": [0, -1, 2.5, "a", None, 10**9, True, []],
    "seed": [-1, 2.5, "a", None, 2**70, []],
    "missing": ["x", 3, None, []],
    "history": [None, 3, {"a": 1}, "abc", [[1]], [1.5], [1, "a"], [None], object()],
    "names": [None, 3, "abc", ["none", "b"], [1, 2], ["a"], ["a", "a"], []],
    "shares": [None, 3, "abc", [2.0], [0.0], [-1.0], [float("nan")], ["a"], [0.5, 0.5]],
    "segments": [None, {}, [], "x", {1.5: "a"}, {1: 2}, {None: "a"}, {(1, 2): "a"}],
    "like": ["nope", 3, b"x", [3], {}],
    "n_users": [-1, 2.5, "a", None],
    "metric": ["", 3, None, "nope", [], "ndcg@0"],
}


def spoil(r: Draw, case: Case) -> Case:
    """Return the call with one invalid argument."""
    names = [name for name in WRONG if name in case.arguments]
    if not names:
        return case
    name = r.choice(names)
    given = case.arguments | {name: r.choice(WRONG[name])}
    # a history of one type may meet no users, and one user may never reach the invalid argument
    verdict = EITHER if name in ("names", "history", "segments", "n_users", "like") else REFUSED
    return case._replace(arguments=given, verdict=verdict, check=lambda found: None, why=name)


# Running


MAKE = [
    compare_case,
    compare_case,
    compare_case,
    report_case,
    report_case,
    users_case,
    items_case,
    by_items_case,
    explain_case,
]


def draw_case(seed: int) -> Case:
    """Return the case of a seed."""
    r = random.Random(seed)
    case = r.choice(MAKE)(r, menu(seed, r))
    return spoil(r, case) if one_in(r, 4) else case


def run_case(seed: int) -> bool:
    """Make the call of a seed; return whether it gave a value. Raise `Finding` for a forbidden result."""
    return run(draw_case(seed), interpreted=False)


def describe(seed: int) -> str:
    """Return the call of a seed for a replay."""
    return shown(draw_case(seed), interpreted=False)


__all__ = ["Finding", "describe", "draw_case", "run_case", "set_up"]

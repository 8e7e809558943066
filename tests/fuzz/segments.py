"""Random segments of rows against the oracle: each has what its rows alone would have.

Requests, rows and expected results are those of `fuzz.calls`. Rows have users or none, weights, groups and ties. Labels
are of several types, in arrays and in data frames of every library; some are missing. Rows come at once, or in batches
of evaluators that merge. Some calls are wrong. `scripts/fuzz --target segments` runs them by the thousand.
"""

import datetime as dt
import math
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl

import fastrec
from fuzz.calls import (
    EITHER,
    EQUAL,
    REFUSED,
    Arguments,
    Case,
    Draw,
    Finding,
    ScoresCall,
    check_report,
    draw_scores,
    menu,
    one_in,
    run,
    set_up,
    shown,
)
from fuzz.frames import build
from support import row_calls, score_oracle
from support.frames import FORMS
from support.list_calls import Ask
from support.oracle import Result
from support.row_calls import Form, Rows
from support.strategies import ScoredLog

__all__ = ["Finding", "describe", "run_case", "set_up"]

ROUTES = ["arrays", "arrays", "frame", "batches"]
POOLS: list[list[Any]] = [
    ["x", "y", "z"],
    ["", "é", "a b", "1", "nul\0"],
    [1, 2, 3],
    [0, -5, 2**40, 2**62],
    ["only"],
    [f"label {at}" for at in range(40)],
]


def unless_cut(form: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a form of labels, which leaves those as they are that NumPy's fixed widths cut: NUL at the end."""
    return lambda labels: labels if any(str(label).endswith("\0") for label in labels) else form(labels)


WHOLE: list[Callable[[Any], Any]] = [  # forms of labels of which none is missing
    list,
    tuple,
    lambda labels: pd.Series(labels, index=range(7, 7 + len(labels))),  # Series of other indexes are refused
    lambda labels: pd.Series(labels, index=range(7, 7 + len(labels)), dtype="category"),
    lambda labels: np.array(labels, object),
    unless_cut(pl.Series),
    unless_cut(np.array),
    unless_cut(lambda labels: np.repeat(labels, 2)[::2]),
]
PARTIAL: list[Callable[[Any], Any]] = [list, tuple, iter, lambda labels: np.array([*labels, None], object)[:-1]]
NO_LABELS: dict[str, Callable[[list[Any]], Any]] = {
    "too few": lambda labels: labels[:-1],
    "too many": lambda labels: [*labels, labels[-1]],
    "floats": lambda labels: [0.5] * len(labels),
    "NaN": lambda labels: [math.nan] * len(labels),
    "two types": lambda labels: [*labels, "1", 1][2:],
    "days": lambda labels: [dt.date(2020, 1, 1)] * len(labels),
    "lists": lambda labels: [[1]] * len(labels),
    "two columns": lambda labels: np.zeros((len(labels), 2), int),
    "one string": lambda _: "device",
    "no name": lambda labels: {3: labels},
    "too few of one": lambda labels: {"device": labels, "place": labels[1:]},
}
PLAIN = Form("indptr")
LIMITS = {"min_fpr", "max_fpr", "min_tpr", "max_tpr"}  # of a part of a curve
UNFIT = ("pandas", "Spark rows")  # which turn integers with missing ones into floats; which have no types


class Asked(NamedTuple):
    """What a call asks for."""

    expect: ScoresCall
    labels: dict[str, list[list[Any]]]  # of the rows of each user, by grouping
    asks: list[Ask]
    has_users: bool
    reviewed: bool  # errors of metrics over the order of rows are over users


# Expected results


def is_ordered(ask: Ask) -> bool:
    """Return whether a metric over all rows has an error over users only by a second pass."""
    return ask.name in ("auc", "average_precision") and score_oracle.is_of_rows(ask.name, ask.options)


def wanted_of(asked: Asked, ask: Ask, rows: Rows) -> Result:
    """Return what some rows alone would have."""
    expect = asked.expect._replace(rows=rows)
    wanted = expect(ask, None)
    if asked.has_users and (asked.reviewed or not is_ordered(ask)):
        return wanted
    error: float | None = math.nan
    if is_ordered(ask) and ask.options.get("average", "row") == "row":
        alone = expect._replace(rows=one_by_one(rows))
        error = alone(ask, None).std_error  # NaN unless the metric has one
        if ask.name == "auc" and error is not None and not math.isnan(error) and not set(ask.options) & LIMITS:
            error = error_of_delong(ask, alone)
    elif asked.has_users:
        error = wanted.std_error
    return wanted._replace(std_error=error, users=wanted.users if asked.has_users else 0)


def one_by_one(rows: Rows) -> Rows:
    """Return each row as a user of its own, with the weight of its user."""
    factors = [1.0] * len(rows.log.labels) if rows.weights is None else rows.weights
    weights = [[1.0] * len(own) for own in rows.log.labels] if rows.sample_weight is None else rows.sample_weight
    product = [[[factor * weight] for weight in own] for factor, own in zip(factors, weights, strict=True)]
    labels, scores = ([[value] for own in column for value in own] for column in (rows.log.labels, rows.log.scores))
    return Rows(ScoredLog(labels, scores), sample_weight=[own for of_user in product for own in of_user])


def error_of_delong(ask: Ask, alone: ScoresCall) -> float:
    """Return the error of the area of independent rows (DeLong et al. 1988), from all pairs."""
    limit = ask.options.get("min_gain", alone.rules["min_gain"])
    log, weights = alone.rows.log, alone.rows.sample_weight
    assert weights is not None
    rows = [
        (score_oracle.is_positive(label, limit), score, weight)
        for (label,), (score,), (weight,) in zip(log.labels, log.scores, weights, strict=True)
        if weight
    ]
    area, variance = alone(ask, None).value, 0.0
    for own, sign in ((1.0, 1), (0.0, -1)):
        mine, others = ([row for row in rows if (row[0] == own) is same] for same in (True, False))
        total = math.fsum(weight for *_, weight in others)
        spread = 0.0
        for _, score, weight in mine:
            won = math.fsum(
                other * (0.5 if score == theirs else sign * (score - theirs) > 0) for _, theirs, other in others
            )
            spread += weight**2 * (won / total - area) ** 2
        variance += len(mine) / (len(mine) - 1) * spread / math.fsum(weight for *_, weight in mine) ** 2
    return math.sqrt(variance)


def check(report: Any, asked: Asked) -> None:
    """Check the estimates of all rows, and of each segment."""
    rows = asked.expect.rows
    if asked.has_users and asked.reviewed:
        check_report(report, asked.asks, len(rows.log.labels), rows.groups, asked.expect, per_user=False)
    of_rows = {name: [label for own in of_users for label in own] for name, of_users in asked.labels.items()}
    named = [name for name, own in of_rows.items() if any(label is not None for label in own)]
    assert sorted(report.row_groupings) == sorted(named), (report.row_groupings, named)
    for name in named:
        labels = sorted({label for label in of_rows[name] if label is not None})
        found = report.groups[name]
        assert list(found) == labels and [*map(type, found)] == [*map(type, labels)], (name, list(found), labels)
        for label in labels:
            inside = rows._replace(segments=asked.labels[name]).inside(label)
            for ask in asked.asks:
                text = fastrec.metrics.calls.parse(ask.text).text
                what = f"{ask.text} of {name} = {label!r}"
                row_calls.check_estimate(found[label][text], wanted_of(asked, ask, inside), what)


# Calls


def draw_labels(r: Draw, rows: Rows) -> dict[str, list[list[Any]]]:
    names = r.choice([["row_group"], ["device"], ["device", "ü"]])
    found = {}
    for name in names:
        pool = r.choice(POOLS)
        choices = [*pool, None, None] if one_in(r, 2) else pool
        found[name] = [r.choices(choices, k=len(own)) for own in rows.log.labels]
    return found


def as_labels(r: Draw, labels: Sequence[Any]) -> Any:
    """Return labels of rows in a random form."""
    return r.choice(WHOLE if len(labels) and None not in labels else PARTIAL)(list(labels))


def without_users(asks: list[Ask]) -> list[Ask]:
    """Return the metrics that need no users."""
    return [
        ask
        for ask in asks
        if score_oracle.is_of_rows(ask.name, ask.options)
        and ask.name != "gauc"
        and ask.options.get("average", "row") == "row"
    ]


def draw_case(seed: int) -> tuple[Case, bool]:
    """Return the case of a seed, and whether to interpret kernels."""
    r = random.Random(seed)
    interpreted = one_in(r, 4)
    rows, asks, types, rules = draw_scores(r, menu(seed, r))
    route, alone = r.choice(ROUTES), one_in(r, 3) and bool(without_users(asks))
    by_keys = ["integers", "texts", "keys"]
    kind = r.choice(by_keys if route == "frame" else [*by_keys, "indptr"])
    width = r.choice([np.float32, np.float64])
    form = Form(kind, width, np.dtype(r.choice(types)))
    if alone or kind != "indptr" or route == "batches":
        rows = rows.of([user for user, own in enumerate(rows.log.labels) if own])
    if alone:
        asks = without_users(asks)
        rows = rows._replace(weights=None, groups=None)
    rows = row_calls.rounded(rows, form)
    asked = Asked(ScoresCall(rows, form, rules), draw_labels(r, rows), asks, not alone, route != "batches")
    options: Arguments = {"metrics": [ask.text for ask in asks], "n_threads": r.choice([None, 1, 2, 3]), **rules}
    case = {"arrays": arrays_case, "frame": frame_case, "batches": batches_case}[route](r, asked, options)
    return case, interpreted


def arguments_of(asked: Asked, users: Sequence[int] | None = None) -> tuple[Arguments, dict[str, Any]]:
    """Return the arguments for some users, and the labels of their rows by grouping, in the order of the rows."""
    everyone = asked.expect.rows
    rows = everyone if users is None else everyone.of(users)
    chosen = range(len(everyone.log.labels)) if users is None else users
    given, _ = row_calls.arguments(rows, asked.expect.form)
    labels = {name: [label for user in chosen for label in of_users[user]] for name, of_users in asked.labels.items()}
    if asked.expect.form.form != "indptr":
        order = row_calls.interleaved([len(own) for own in rows.log.labels])
        labels = {name: [own[at] for at in order] for name, own in labels.items()}
    if not asked.has_users:
        given = {name: own for name, own in given.items() if name in ("labels", "scores", "sample_weight", "item_ids")}
    given.pop("row_groups", None)
    return {name: own for name, own in given.items() if own is not None}, labels


def arrays_case(r: Draw, asked: Asked, options: Arguments) -> Case:
    given, labels = arguments_of(asked)
    dressed = {name: as_labels(r, own) for name, own in labels.items()}
    row_groups: Any = dressed if list(dressed) != ["row_group"] or one_in(r, 2) else dressed["row_group"]
    verdict, why = EQUAL, "as it should be"
    whole = [own for own in labels.values() if None not in own]
    if one_in(r, 6) and whole and len(whole[0]) > 2:
        verdict, why = REFUSED, r.choice(list(NO_LABELS))
        row_groups = NO_LABELS[why](whole[0])
    given |= {"row_groups": row_groups, **options}
    return Case(fastrec.evaluate_scores, given, verdict, lambda report: check(report, asked), why=why)


def frame_case(r: Draw, asked: Asked, options: Arguments) -> Case:
    given, labels = arguments_of(asked)
    library = r.choice([name for name in FORMS if not name.startswith(UNFIT)])
    table: dict[str, Any] = {"label": given["labels"], "score": given["scores"]}
    users = given.get("user_ids")
    if users is not None:
        keys = users if isinstance(users, tuple) else (users,)
        table |= {f"u{nth}": own for nth, own in enumerate(keys)}
        options = {"user": [f"u{nth}" for nth in range(len(keys))], **options}
    for name, column in (("sample_weight", "w"), ("user_weight", "importance"), ("groups", "group")):
        if name in given:
            table[column] = given[name]
            options = {"by" if name == "groups" else name: column, **options}
    if "item_ids" in given:
        table["item_id"] = given["item_ids"]
    table |= labels
    names = list(labels)
    row_by: Any = names[0] if len(names) == 1 and one_in(r, 2) else names
    verdict, why = EQUAL, "as it should be"
    if any(own.count(None) == len(own) for own in labels.values()):
        verdict, why = EITHER, "a column without a value, which has no type"
    elif one_in(r, 8):
        verdict, why = REFUSED, "column"
        row_by = r.choice([["no such column"], [*names, "score"], 3, [names[0], None]])
    frame = build(FORMS[library], table)

    def checked(report: Any) -> None:
        if verdict == EQUAL:
            check(report, asked)

    return Case(fastrec.evaluate_scores, {"labels": frame, "row_by": row_by, **options}, verdict, checked, why=why)


def batches_case(r: Draw, asked: Asked, options: Arguments) -> Case:
    """Return a call that adds batches of users to a few evaluators, and merges these in any order."""
    users = list(range(len(asked.expect.rows.log.labels)))
    r.shuffle(users)
    cuts = sorted(r.choices(range(len(users) + 1), k=r.randint(0, 3)))
    batches = []
    for first, last in zip([0, *cuts], [*cuts, len(users)], strict=True):
        given, labels = arguments_of(asked, sorted(users[first:last]))
        given |= {"user_ids": other_users(given["user_ids"], first)} if "user_ids" in given else {}
        batches.append(given | {"row_groups": {name: as_labels(r, own) for name, own in labels.items()}})
    places, travels, backwards = [r.randrange(2) for _ in batches], one_in(r, 2), one_in(r, 2)

    def evaluate(**settings: Any) -> fastrec.Report:
        evaluators = [fastrec.ScoreEvaluator(**settings) for _ in range(2)]
        for place, batch in zip(places, batches, strict=True):
            evaluators[place].update(**batch)
        if travels:
            evaluators = [pickle.loads(pickle.dumps(own)) for own in evaluators]
        one, other = reversed(evaluators) if backwards else evaluators
        return one.merge(other).result()

    return Case(evaluate, options, EQUAL, lambda report: check(report, asked))


def other_users(ids: Any, first: int) -> Any:
    """Return ids that no batch has that begins with another user."""
    if isinstance(ids, tuple):
        return (other_users(ids[0], first), *ids[1:])
    return [f"{first} {one}" if isinstance(one, str) else one + 10**6 * first for one in ids]


def run_case(seed: int) -> bool:
    """Make the call of a seed; return whether it gave a value. Raise `Finding` for a forbidden result."""
    return run(*draw_case(seed))


def describe(seed: int) -> str:
    """Return the call of a seed for a replay."""
    return shown(*draw_case(seed))

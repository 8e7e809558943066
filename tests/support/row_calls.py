"""Calls of `evaluate_scores` and their expected results: every metric of rows, orders, forms."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import fastrec
import fastrec.evaluation.lists  # these two register the statistics that plans read
import fastrec.evaluation.rows
from fastrec.metrics.calls import parse
from fastrec.metrics.declaration import COMMON_OPTIONS
from fastrec.metrics.plan import Asked, Plan, make_plan
from support import score_oracle
from support.known import COUNTS_ALL, OF_ITEMS, OF_JUDGEMENTS
from support.list_calls import NUMBERS, TABLES, Ask, flat, same, write
from support.oracle import Result
from support.strategies import ScoredLog

CUTOFFS = [None, 1, 2, 4, 50]
MIN_GAINS = [None, 2.0]
SAMPLES: dict[str, list[Any]] = NUMBERS | {
    "threshold": [0.5, 0.3, -3.0],
    "bins": [15, 4, 49],
    "min_fpr": [None, 0.2],
    "max_fpr": [None, 0.3, 0.9],
    "min_tpr": [None, 0.4],
    "max_tpr": [None, 0.8],
    "at": [0.5, 0.9, 1.0],
    "eps": [2.0**-52, 0.5],
}
ORDERS = ["input", "worst", "best", "id_asc", "id_desc"]
FORMS = ["indptr", "integers", "texts", "keys"]


def samples(name: str, option: dict[str, Any]) -> list[Any]:
    """Return every choice of an option, and a few of its numbers or tables."""
    values: list[Any] = list(option["choices"])
    if option["kind"].endswith("table"):
        values += TABLES[name]
    if option["kind"] == "number":
        values += SAMPLES[name]
    return values


def asks_of(metric: dict[str, Any]) -> list[Ask]:
    own = {name: option for name, option in metric["options"].items() if name not in COMMON_OPTIONS}
    choices = [samples(name, option) for name, option in own.items()]
    cutoffs = CUTOFFS if metric["kind"] == "ranking" else [None]
    min_gains = [None] if metric["name"] in score_oracle.ERRORS else MIN_GAINS
    asks = []
    for values, k, min_gain in itertools.product(itertools.product(*choices), cutoffs, min_gains):
        if k is None and metric["kind"] == "ranking" and metric["name"] in COUNTS_ALL:
            continue  # an error: no score changes them
        options = {name: value for name, value in zip(own, values, strict=True) if value is not None}
        if min_gain is not None:
            options["min_gain"] = min_gain
        if not score_oracle.allows(metric["name"], options):
            continue
        asks.append(Ask(write(metric["name"], options, k), metric["name"], options, k))
    return asks


def is_of_rows(ask: Ask) -> bool:
    return score_oracle.is_of_rows(ask.name, ask.options)


def plan_of(ask: Ask) -> Plan:
    return make_plan((parse(ask.text),), Asked(n_items=100))


NOT_OF_ROWS = {*OF_ITEMS, *OF_JUDGEMENTS}
MATRIX = [ask for metric in fastrec.catalogue() if metric["name"] not in NOT_OF_ROWS for ask in asks_of(metric)]
RANKED = [ask for ask in MATRIX if not is_of_rows(ask) and not any(plan_of(ask).filled.values())]
OF_ROWS = [ask for ask in MATRIX if is_of_rows(ask)]


def refuses_ties(ask: Ask) -> bool:
    """Return whether the metric has no closed form for its mean over orders of tied rows."""
    return bool(plan_of(ask).not_linear)


def takes(ask: Ask, labels: str, scores: str, min_gain: float | None = None) -> bool:
    """Return whether the metric takes labels and scores of these kinds."""
    if not is_of_rows(ask):
        return ask.allowed("plain" if labels == "binary" else labels)
    if ask.name in score_oracle.ERRORS:
        return scores != "any"
    if ask.options.get("one_class") == "error":
        return False
    if labels != "binary" and min_gain is None and "min_gain" not in ask.options:
        return False
    if ask.name in score_oracle.PROBABILITIES:
        return scores == "unit"
    return scores != "any" or ask.name != "calibration"


class Rows(NamedTuple):
    """All data of the rows of each user."""

    log: ScoredLog
    weights: list[float] | None = None
    groups: list[str] | None = None
    sample_weight: list[list[float]] | None = None
    item_ids: list[list[Any]] | None = None
    segments: list[list[str | None]] | None = None

    def inside(self, segment: str) -> "Rows":
        """Return the rows with a label, of the users who have any."""
        assert self.segments is not None
        places = [[at for at, label in enumerate(own) if label == segment] for own in self.segments]

        def some(rows: Any) -> Any:
            return None if rows is None else [[own[at] for at in each] for own, each in zip(rows, places, strict=True)]

        log = ScoredLog(some(self.log.labels), some(self.log.scores))
        of_rows = {name: some(getattr(self, name)) for name in ("sample_weight", "item_ids", "segments")}
        return self._replace(log=log, **of_rows).of([user for user, own in enumerate(places) if own])

    def of(self, users: Sequence[int]) -> "Rows":
        def some(rows: Any) -> Any:
            return None if rows is None else [rows[u] for u in users]

        log = ScoredLog(some(self.log.labels), some(self.log.scores))
        return Rows(log, *map(some, self[1:]))


class Form(NamedTuple):
    """Form of the rows in a call."""

    form: str = "indptr"
    scores: Any = np.float64
    labels: Any = np.float64


def rounded(rows: Rows, form: Form) -> Rows:
    """Return the rows with the scores as their type holds them."""
    with np.errstate(over="ignore"):
        scores = [np.array(own, np.float64).astype(form.scores).tolist() for own in rows.log.scores]
    return rows._replace(log=ScoredLog(rows.log.labels, scores))


def interleaved(lengths: Sequence[int]) -> Any:
    """Return an order of all rows that mixes users and keeps the rows of each in order."""
    owners = np.random.default_rng(1).permutation(np.repeat(np.arange(len(lengths)), lengths))
    order = np.empty(len(owners), np.int64)
    order[np.argsort(owners, kind="stable")] = np.arange(len(owners))
    return order


def keys_of(form: str, n_users: int) -> list[Any]:
    """Return ascending user ids."""
    if form == "integers":
        return [7 * u for u in range(n_users)]
    if form == "texts":
        return [f"user {u:04}" for u in range(n_users)]
    return [(u // 3, "abc"[u % 3]) for u in range(n_users)]


def arguments(rows: Rows, form: Form) -> tuple[dict[str, Any], list[Any] | None]:
    """Return the arguments of a call and the ids of the users in it."""
    lengths = [len(own) for own in rows.log.labels]
    of_rows: dict[str, Any] = {
        "labels": flat(rows.log.labels, np.float64)[0].astype(form.labels),
        "scores": flat(rows.log.scores, np.float64)[0].astype(form.scores),
        "sample_weight": None if rows.sample_weight is None else flat(rows.sample_weight, np.float64)[0],
        "item_ids": None if rows.item_ids is None else [item for own in rows.item_ids for item in own],
        "row_groups": None if rows.segments is None else [label for own in rows.segments for label in own],
    }
    of_users = {"groups": rows.groups, "user_weight": rows.weights}
    if form.form == "indptr":
        return of_rows | of_users | {"indptr": flat(rows.log.labels)[1]}, None
    order = interleaved(lengths)
    owners = np.repeat(np.arange(len(lengths)), lengths)[order]
    keys = keys_of(form.form, len(lengths))
    of_rows = {name: None if rows is None else np.asarray(rows)[order] for name, rows in of_rows.items()}
    of_users = {name: None if own is None else np.asarray(own)[owners] for name, own in of_users.items()}
    by_row: Any = [keys[u] for u in owners]
    if form.form == "keys":
        by_row = ([first for first, _ in by_row], [second for _, second in by_row])
    return of_rows | of_users | {"user_ids": by_row}, keys


def expect(rows: Rows, ask: Ask, form: Form, **call: Any) -> Result:
    eps = float(np.finfo(form.scores).eps)
    own = {"sample_weight": rows.sample_weight, "weights": rows.weights, "item_ids": rows.item_ids}
    return score_oracle.evaluate(
        rows.log.labels, rows.log.scores, ask.name, k=ask.k, options=ask.options, eps=eps, **own, **call
    )


def same_error(found: float, expected: Result) -> bool:
    """Compare to twelve digits; fastrec adds up rounded squares, so a variance near 0 has fewer digits."""
    if expected.std_error is None or math.isnan(expected.std_error):
        return math.isnan(found)
    largest = max(1.0, abs(expected.value), *(abs(v) for v in expected.per_user if v is not None))
    return same(found, expected.std_error) or abs(found**2 - expected.std_error**2) <= 1e-13 * largest**2


def check_estimate(found: fastrec.Estimate, expected: Result, what: str) -> None:
    assert same(found.mean, expected.value), f"{what}: mean {found.mean}, expected {expected.value}"
    assert found.users == expected.users, f"{what}: users {found.users}, expected {expected.users}"
    assert same_error(found.std_error, expected), f"{what}: std_error {found.std_error}, {expected.std_error}"

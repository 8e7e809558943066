"""Random calls, one per seed: arrays of every form, options and metric strings, valid and invalid.

A valid call must give the value of the naive oracle, an invalid one a fastrec error, and nothing else ever.
`scripts/fuzz` runs them by the million, `test_fuzz` for a few seconds.
"""

import array
import collections
import functools
import math
import random
import re
import types
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import fastrec
from fastrec.evaluation import protocol
from fastrec.inputs import hits as lists_and_rows
from fastrec.runtime import launcher
from fastrec.runtime.launcher import Launcher
from support import list_calls, oracle, row_calls, score_oracle, strategies
from support.list_calls import Ask, flat
from support.oracle import Result
from support.row_calls import ORDERS, Form, Rows, refuses_ties, takes
from support.strategies import Log, ScoredLog

EQUAL, REFUSED, EITHER = "equal", "refused", "either"
Arguments = dict[str, Any]
Draw = random.Random


class Finding(Exception):  # noqa: N818 - what was found, which may be an error or none
    """Forbidden result of a call: `kind` is "wrong value" or "foreign error"."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Case(NamedTuple):
    """Call, its expected result, and the check of its value."""

    function: Callable[..., Any]
    arguments: Arguments
    verdict: str
    check: Callable[[Any], None]
    n_users: int = 0
    why: str = "as it should be"


def one_in(r: Draw, n: int) -> bool:
    return r.randrange(n) == 0


# The same values in other arrays


class Subclass(np.ndarray):
    """Array that is a subclass of NumPy's."""


def at_odd_bytes(values: Any) -> Any:
    out = np.empty(values.nbytes + 1, np.uint8)[1:].view(values.dtype)
    out[:] = values
    return out


def read_only(values: Any) -> Any:
    out = values.copy()
    out.flags.writeable = False
    return out


def broadcast(values: Any) -> Any:
    constant = len(values) and (values == values[0]).all()
    return np.broadcast_to(values[:1], values.shape) if constant else values


ARRAYS: list[Callable[[Any], Any]] = [
    lambda a: a,
    read_only,
    lambda a: np.repeat(a, 2)[::2],
    lambda a: a[::-1].copy()[::-1],
    lambda a: np.stack([a, a], axis=1)[:, 0],
    lambda a: a.astype(a.dtype.newbyteorder()),
    at_odd_bytes,
    lambda a: a.view(Subclass),
    broadcast,
    lambda a: a.tolist(),
    lambda a: tuple(a.tolist()),
    lambda a: memoryview(read_only(a)) if a.dtype.char in array.typecodes else a,
    lambda a: array.array(a.dtype.char, a.tolist()) if a.dtype.char in array.typecodes else a,
]
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]


def dress(r: Draw, values: Any, *, any_type: bool = True) -> Any:
    """Return the same numbers in another type, layout or container."""
    values = np.asarray(values)
    if any_type and r.random() < 0.6:
        values = in_type(values, np.dtype(r.choice(INTEGERS if values.dtype.kind in "iu" else [*FLOATS, *INTEGERS])))
    return r.choice(ARRAYS)(values)


def in_type(values: Any, dtype: Any) -> Any:
    """Return the values in this type if it holds them all."""
    with np.errstate(all="ignore"):
        if values.dtype.kind == "f" and dtype.kind in "iu" and not (np.abs(values) < 2**31).all():
            return values
        converted = values.astype(dtype)
        same = len(values) == 0 or (converted.astype(object) == values.astype(object)).all()
    return converted if same else values


# Logs


def draw_pool(r: Draw, size: int) -> list[int]:
    """Return distinct ids of one kind, as in `strategies.id_pools`."""
    start, step = r.choice([(0, 1), (0, 1), (strategies.MAX_ID, -1), (r.randrange(1000), r.choice(STEPS))])
    if step * size > strategies.MAX_ID:
        step = strategies.MAX_ID // size
    return [start + at * step for at in range(size)]


STEPS = [2, 3, 10, 2**4, 2**16, 2**16 + 1, 2**31 - 1, 2**32, 2**32 + 1, 2**58]


def some(r: Draw, pool: Sequence[int], most: int, *, copies: bool) -> list[int]:
    n = r.randint(0, most)
    return r.choices(pool, k=n) if copies else r.sample(pool, min(n, len(pool)))


class Size(NamedTuple):
    users: int
    items: int
    longest: int


def draw_size(r: Draw, longest: int) -> Size:
    """Draw mostly few users and rows; at times more users than a block holds, or more rows than small tables hold."""
    chance = r.random()
    if chance < 0.002:
        return Size(r.randint(513, 1100), 9, 3)
    if chance < 0.004 and longest > 6:
        return Size(r.randint(1, 2), 1500, 900)
    return Size(r.choice([0, 1, 1, 2, 2, 3, 4, 6]), r.choice([1, 2, 3, 12, 24]), longest)


def draw_log(r: Draw, size: Size, gains: Sequence[float], *, copies: bool) -> Log:
    pool = draw_pool(r, size.items)
    recs, truth = [], []
    for _ in range(size.users):
        own = some(r, pool, size.longest, copies=copies)
        held = r.choice([own[:3], [], own, *[some(r, pool, size.longest, copies=copies)] * 4])
        if not copies:
            held = list(dict.fromkeys(held))
        recs.append(own)
        truth.append([(item, r.choice(gains)) for item in held])
    return Log(recs, truth)


NAMES: list[Callable[[int], Any]] = [
    *[int] * 4,
    lambda item: f"{item:020}",
    lambda item: f"é{item:020}\0",
    lambda item: f"{item:020}".encode(),
]


# Lists in the forms that a call accepts


def side_as_tuple(r: Draw, rows: list[list[Any]], extra: list[list[float]] | None) -> Any:
    items, indptr = flat(rows, object)
    whole = bool(rows) and all(isinstance(item, int) for item in items.tolist())
    out = (dress(r, items.astype(np.int64)) if whole else items, dress(r, indptr))
    return out if extra is None else (*out, dress(r, flat(extra, np.float64)[0]))


class LyingList(list[Any]):
    """List that claims to be longer than it is."""

    def __len__(self) -> int:
        return super().__len__() * 1000 + 1


class LyingDict(dict[Any, Any]):
    """Dict that claims to be longer than it is."""

    def __len__(self) -> int:
        return super().__len__() * 1000 + 1


class FrameOfUser(list[Any]):
    """Object that looks like a data frame, but does not iterate over its rows."""

    columns = ("item_id",)


def side_as_rows(r: Draw, rows: list[list[Any]], extra: list[list[float]] | None) -> Any:
    if extra is not None:
        if any(len(set(row)) < len(row) for row in rows):
            return side_as_tuple(r, rows, extra)
        of_user = r.choice([dict, dict, LyingDict])
        return [of_user(zip(row, own, strict=True)) for row, own in zip(rows, extra, strict=True)]
    kind = r.choice(
        [
            list,
            tuple,
            LyingList,
            collections.deque,
            lambda row: np.array(row, object if row and not isinstance(row[0], int) else "i8"),
        ]
    )
    return [kind(row) for row in rows]


def side_as_matrix(r: Draw, rows: list[list[Any]], extra: list[list[float]] | None) -> Any:
    if extra is not None or any(not isinstance(item, int) for row in rows for item in row):
        return side_as_rows(r, rows, extra)
    out = np.full((len(rows), max(map(len, rows), default=0) + r.randint(0, 2)), -1)
    for own, row in zip(out, rows, strict=True):
        own[: len(row)] = row
    return r.choice([out, np.asfortranarray(out), np.repeat(out, 2, axis=0)[::2], read_only(out)])


def side_as_csr(r: Draw, rows: list[list[Any]], extra: list[list[float]] | None) -> Any:
    if extra is None or any(not isinstance(item, int) for row in rows for item in row):
        return side_as_rows(r, rows, extra)
    items, indptr = flat(rows)
    return types.SimpleNamespace(indptr=indptr, indices=items, data=flat(extra, float)[0], shape=(len(rows), 1))


def side_as_ragged(r: Draw, rows: list[list[Any]], extra: list[list[float]] | None) -> Any:
    if extra is not None:
        return side_as_tuple(r, rows, extra)
    return fastrec.Ragged(*side_as_tuple(r, rows, None)) if rows and rows[0] else side_as_rows(r, rows, extra)


SIDES = [side_as_tuple, side_as_tuple, side_as_tuple, side_as_rows, side_as_matrix, side_as_csr, side_as_ragged]


# Checks against the oracle


def check_report(
    report: Any,
    asks: list[Ask],
    n_users: int,
    groups: Any,
    expect: Callable[[Ask, Sequence[int] | None], Result],
    *,
    per_user: bool,
) -> None:
    """Check means, standard errors, counts, values of users and of groups."""
    of_lists = isinstance(expect, ListsCall)
    check = list_calls.check_estimate if of_lists else row_calls.check_estimate
    assert report.users["total"] == n_users, (report.users, n_users)
    members: dict[Any, list[int]] = {}
    for user, label in enumerate([] if groups is None else groups):
        if label is not None:
            members.setdefault(label, []).append(user)
    if groups is not None:
        assert set(report.groups.get("group", {})) == set(members), (report.groups, members)
    for ask in asks:
        name = fastrec.metrics.calls.parse(ask.text).text
        whole = expect(ask, None)
        check(report.estimates[name], whole, ask.text)
        if per_user:
            list_calls.check_user_values(report.per_user[name], whole, ask.text)
        for label, users in members.items():
            check(report.groups["group"][label][name], expect(ask, users), f"{ask.text} of group {label}")


def check_sane(report: Any) -> None:
    """Check a report on input that the oracle does not judge: numbers, or nothing."""
    if not isinstance(report, fastrec.Report):
        return
    assert all(count >= 0 for count in report.users.values()), report.users
    assert all(type(estimate.mean) is float for estimate in report.estimates.values()), report.estimates
    report.to_dict()


class ListsCall(NamedTuple):
    """Log, and the rules for the oracle."""

    log: Log
    scores: list[list[float]] | None
    seen: list[list[int]] | None
    weights: list[float] | None
    ties: str
    duplicates: str
    rules: Arguments

    def of(self, users: Sequence[int]) -> "ListsCall":
        """Return the same case for some users, in this order."""

        def some(rows: Any) -> Any:
            return None if rows is None else [rows[user] for user in users]

        log = Log(some(self.log.recs), some(self.log.truth))
        return ListsCall(log, some(self.scores), some(self.seen), some(self.weights), *self[4:])

    def __call__(self, ask: Ask, users: Sequence[int] | None) -> Result:
        recs, truth = (own := self if users is None else self.of(users)).log.recs, own.log.truth
        call = {"k": ask.k, "options": ask.options, "exclude": own.seen, "weights": own.weights, **self.rules}
        if own.scores is not None and self.ties == "expected":
            return score_oracle.evaluate_lists(recs, truth, own.scores, ask.name, **call)
        more = {"ties": self.ties, "scores": own.scores} if own.scores is not None else {}
        return oracle.evaluate(recs, truth, ask.name, duplicates=self.duplicates, **more, **call)


KINDS = {"plain": [1.0], "integer": strategies.INTEGER_GAINS, "graded": strategies.GAINS}
OF_LISTS = {kind: [ask for ask in list_calls.MATRIX if ask.allowed(kind)] for kind in KINDS}
TIED = {kind: [ask for ask in asks if not refuses_ties(ask)] for kind, asks in OF_LISTS.items()}
POLICIES = ["skip", "zero", "nan", "judged", "listed"]
WEIGHTS = [1.0, 0.5, 2.0, 3.25, 0.0, 1e-3, 1e3]


def draw_asks(r: Draw, asks: Sequence[Ask]) -> list[Ask]:
    return r.sample(asks, min(len(asks), r.choice([1, 1, 1, 2, 3, 5])))


MENUS = 400  # a stretch of seeds draws from this many requests, because planning costs more than evaluating
STRETCH = 40_000


def menu(seed: int, r: Draw) -> Draw:
    """Draw a request: metrics and their rules."""
    return random.Random(f"menu {seed // STRETCH} {r.randrange(MENUS)}")


def draw_users(r: Draw, n_users: int) -> Arguments:
    """Per-user arguments; the caller draws groups, ids and weights."""
    labels = r.choice([["a", "b"], [3, -4], ["", "é"], [2**62, 0]])
    ids: Any = r.choice(
        [None, None, range(n_users), [f"u{u}" for u in range(n_users)], [2**62 + u for u in range(n_users)]]
    )
    return {"user_ids": ids, "groups": r.choice([None, None, r.choices(labels, k=n_users)])}


def spaced(r: Draw, text: str) -> str:
    """Return the same metric with other white space and order."""
    return text if r.random() < 0.8 else f"  {text} ".replace("(", " ( ").replace("@", "@ ").replace("=", "= ")


class Lists(NamedTuple):
    """Request, its lists, and the arguments of their users."""

    expect: ListsCall
    asks: list[Ask]
    about: Arguments
    options: Arguments
    gains: list[list[float]] | None


def draw_lists(r: Draw, asked: Draw) -> Lists:
    kind = asked.choice(list(KINDS))
    ties = asked.choice(["expected", *ORDERS])
    tied = ties == "expected" and asked.random() < 0.7
    asks = draw_asks(asked, (TIED if tied else OF_LISTS)[kind])
    rules: Arguments = {
        "min_gain": asked.choice([None, None, 0.75, 2.0]),
        "n_items": asked.choice([10**4, 10**9 + 7]),
        "no_truth": asked.choice(POLICIES),
        "no_recs": asked.choice(POLICIES[:3]),
    }
    kept = one_in(asked, 2)
    scored = tied or (ties != "expected" and one_in(r, 2))
    duplicates = "error" if tied else r.choice(["error", "error", "first", "miss"])
    log = draw_log(r, draw_size(r, 4 if tied else 12), KINDS[kind], copies=duplicates != "error")
    if tied and sum(map(len, log.recs)) > 30:
        scored = tied = False
    scores = [r.choices(strategies.SCORES, k=len(items)) for items in log.recs] if scored else None
    seen = None
    if one_in(r, 4):
        seen = [[*r.sample(items, r.randint(0, len(items))), *r.choice([[], [987_654_321]])] for items in log.recs]
    weights = r.choice([None, None, r.choices(WEIGHTS, k=len(log.recs))])
    gains = None if kind == "plain" and one_in(r, 2) else [[gain for _, gain in rows] for rows in log.truth]
    options = {
        "metrics": [spaced(r, ask.text) for ask in asks],
        "ties": ties,
        "duplicates": duplicates,
        "per_user": kept,
        "n_threads": r.choice([None, 1, 1, 2, 3, 8, np.int8(2), 10**6]),
        **rules,
    }
    expect = ListsCall(log, scores, seen, weights, ties, duplicates, rules)
    return Lists(expect, asks, draw_users(r, len(log.recs)), options, gains)


def lists_case(r: Draw, asked: Draw) -> Case:
    expect, asks, about, options, gains = draw_lists(r, asked)
    log, scores, seen, weights = expect[:4]
    name = r.choice(NAMES)
    rows = [[name(item) for item in items] for items in log.recs]
    held = [[name(item) for item, _ in pairs] for pairs in log.truth]
    out = None if seen is None else [[name(item) for item in items] for items in seen]
    if one_in(r, 8) and about["user_ids"] is not None:  # as dicts, matched by key
        keys = about.pop("user_ids")
        forms = [side_as_rows(r, rows, scores), side_as_rows(r, held, gains), None if out is None else out]
        if not any(isinstance(form, tuple) for form in forms):
            recs, truth, out = (None if form is None else dict(zip(keys, form, strict=True)) for form in forms)
        else:
            recs, truth = r.choice(SIDES)(r, rows, scores), r.choice(SIDES)(r, held, gains)
    else:
        recs, truth = r.choice(SIDES)(r, rows, scores), r.choice(SIDES)(r, held, gains)
        out = None if out is None else r.choice(SIDES)(r, out, None)
    arguments = {
        "recs": recs,
        "truth": truth,
        "exclude": out,
        "user_weight": None if weights is None else dress(r, np.array(weights, float)),
        **about,
        **options,
    }
    n_users, groups, per_user = len(log.recs), about["groups"], options["per_user"]
    return Case(
        fastrec.evaluate,
        arguments,
        EQUAL,
        lambda report: check_report(report, asks, n_users, groups, expect, per_user=per_user),
        n_users,
    )


# Scored rows


class ScoresCall(NamedTuple):
    rows: Rows
    form: Form
    rules: Arguments

    def __call__(self, ask: Ask, users: Sequence[int] | None) -> Result:
        rows = self.rows if users is None else self.rows.of(users)
        return row_calls.expect(rows, ask, self.form, **self.rules)


def draw_rows(r: Draw, labels: str, scores: str, longest: int) -> Rows:
    chance = r.random()
    n_users = r.choice([0, 1, 1, 2, 3, 5]) if chance > 0.002 else r.randint(513, 1100)
    pool = strategies.SCORE_POOLS[scores]
    log = ScoredLog([], [])
    for _ in range(n_users):
        n = r.randint(0, longest if n_users < 6 else 3)
        some_scores = r.sample(pool, r.choice([1, 2, 3, len(pool)]))
        log.scores.append(r.choices(some_scores, k=n))
        log.labels.append(r.choices(r.choice([strategies.LABELS[labels]] * 3 + [[1.0], [0.0]]), k=n))
    return Rows(
        log,
        r.choice([None, None, r.choices(WEIGHTS, k=n_users)]),
        r.choice([None, None, r.choices(["a", "b"], k=n_users)]),
    )


TYPES = {"binary": [bool, "i1", "i8", "u2", "f4", "f8"], "integer": ["i1", "i8", "f4", "f8"], "graded": ["f4", "f8"]}
ROW_WEIGHTS = [1.0, 0.5, 2.0, 3.25, 0.0, 2.0**-10, 1000.0]


@functools.cache
def asks_of(labels: str, scores: str, min_gain: float | None, order: str) -> list[Ask]:
    """Return the metrics of rows, or of ranks in an order, that accept such labels and scores."""
    if order == "rows":
        return [ask for ask in row_calls.OF_ROWS if takes(ask, labels, scores, min_gain)]
    taken = [ask for ask in row_calls.RANKED if takes(ask, labels, scores)]
    return [ask for ask in taken if not refuses_ties(ask)] if order == "expected" else taken


def draw_scores(r: Draw, asked: Draw) -> tuple[Rows, list[Ask], list[str], Arguments]:
    """Rows, their request, the possible types of their labels, and the rules of oracle and call."""
    of_rows = asked.random() < 0.6
    labels, scores = asked.choice(list(strategies.LABELS)), asked.choice(list(strategies.SCORE_POOLS))
    ties = asked.choice(["expected", *ORDERS])
    rules: Arguments = {"min_gain": asked.choice([None, None, 1.0, 2.25])}
    asks = draw_asks(asked, asks_of(labels, scores, rules["min_gain"], "rows" if of_rows else ties))
    rows = draw_rows(r, labels, scores, 4 if ties == "expected" and not of_rows else 10)
    if of_rows:
        rules["ties"] = ties  # which has no effect here
        rules["one_class"] = asked.choice(["drop", "half", "zero", "nan"])
        if any(rows.log.labels) and one_in(r, 3):
            weights = [r.choices(ROW_WEIGHTS, k=len(own)) for own in rows.log.labels]
            next(own for own in weights if own)[0] = 1.0  # only weights of 0 are an error
            rows = rows._replace(sample_weight=weights)
    else:
        rules |= {"ties": ties, "n_items": asked.choice([5000, 10**9 + 7]), "no_truth": asked.choice(POLICIES)}
        if ties.startswith("id"):
            kind, lengths = r.choice([int, str]), map(len, rows.log.labels)
            rows = rows._replace(item_ids=[[kind(1000 + at) for at in r.sample(range(n), n)] for n in lengths])
    return rows, asks, TYPES[labels], rules


def scores_case(r: Draw, asked: Draw) -> Case:
    rows, asks, types, rules = draw_scores(r, asked)
    kept = one_in(asked, 2)
    form = Form(r.choice(row_calls.FORMS), r.choice([np.float32, np.float64]), np.dtype(r.choice(types)))
    if form.form != "indptr":
        rows = rows.of([user for user, own in enumerate(rows.log.labels) if own])
    if one_in(r, 3):
        rows = rows._replace(segments=[r.choices(["x", "y", "z", None], k=len(own)) for own in rows.log.labels])
    rows = row_calls.rounded(rows, form)
    arguments, _ = row_calls.arguments(rows, form)
    for name in ("labels", "scores", "sample_weight", "indptr"):
        if arguments.get(name) is not None:
            arguments[name] = dress_rows(r, arguments[name], name)
    arguments |= {
        "metrics": [spaced(r, ask.text) for ask in asks],
        "per_user": kept,
        "n_threads": r.choice([None, 1, 1, 2, 3, 8]),
        **rules,
    }
    expect = ScoresCall(rows, form, rules)
    n_users = len(rows.log.labels)

    def check(report: Any) -> None:
        check_report(report, asks, n_users, rows.groups, expect, per_user=kept)
        check_segments(report, asks, expect)

    return Case(fastrec.evaluate_scores, arguments, EQUAL, check, n_users)


def check_segments(report: Any, asks: list[Ask], expect: ScoresCall) -> None:
    """Check the estimates of each segment of rows: those of its rows alone."""
    found = report.groups.get("row_group", {})
    labels = [label for own in expect.rows.segments or [] for label in own if label is not None]
    assert set(found) == set(labels), (found, labels)
    for label in dict.fromkeys(labels):
        alone = expect._replace(rows=expect.rows.inside(label))
        for ask in asks:
            name = fastrec.metrics.calls.parse(ask.text).text
            row_calls.check_estimate(found[label][name], alone(ask, None), f"{ask.text} of segment {label}")


def dress_rows(r: Draw, values: Any, name: str) -> Any:
    """Keep the type of the scores, which decides how far from 0 and 1 probabilities are clipped."""
    if name == "scores":
        return r.choice(ARRAYS[:9])(np.asarray(values))
    return dress(r, values, any_type=name != "labels")


# Functions of flat columns


def draw_columns(r: Draw) -> tuple[Any, Any, Any, Arguments]:
    """Draw labels, scores and weights of at most a few rows, and the last three as arguments of a call."""
    n = r.choice([0, 1, 2, 3, 8, 14]) if r.random() > 0.004 else 3000
    labels = np.array(r.choices([0, 1], k=n), np.int8)
    with np.errstate(over="ignore"):
        scores = np.array(r.choices(strategies.SCORES, k=n), r.choice(["f4", "f8"]))
    weights = None
    if n and one_in(r, 3):
        weights = np.array([1.0, *r.choices(ROW_WEIGHTS, k=n - 1)])
    given = {"labels": dress(r, labels), "scores": r.choice(ARRAYS[:9])(scores)}
    given["sample_weight"] = None if weights is None else dress(r, weights)
    return labels, scores, weights, given


def close(found: float, expected: Any, within: float = 1e-12) -> None:
    if expected is None:
        assert math.isnan(found), found
    else:
        assert abs(found - float(expected)) <= within * max(1.0, abs(float(expected))), (found, float(expected))


def auc_case(r: Draw, _: Draw) -> Case:
    labels, scores, weights, given = draw_columns(r)
    limit = r.choice([None, None, 0.1, 0.5, 1.0])

    def check(found: float) -> None:
        if len(labels) > 100 and (weights is not None or limit is not None):
            assert math.isnan(found) or -1e-9 <= found <= 1 + 1e-9
        elif len(labels) > 100:
            n_pos = int(labels.sum())
            won = score_oracle.twice_won(labels.tolist(), scores.tolist())
            close(found, Fraction(won, 2 * n_pos * (len(labels) - n_pos)))
        else:
            rows = score_oracle.rows_of(
                labels.tolist(), scores.tolist(), None if weights is None else weights.tolist(), float
            )
            close(found, score_oracle.auc(rows, max_fpr=limit or 1), 1e-9 if weights is not None else 1e-12)

    return Case(fastrec.auc, {**given, "max_fpr": limit, "n_threads": r.choice([None, 1, 2, 3])}, EQUAL, check)


def curve_case(r: Draw, _: Draw) -> Case:
    _, _, _, given = draw_columns(r)
    function = r.choice([fastrec.roc_curve, fastrec.pr_curve, fastrec.bounded_auc, fastrec.break_even_point])
    if function in (fastrec.bounded_auc, fastrec.break_even_point):
        given.pop("sample_weight")
    if function is fastrec.bounded_auc:
        given["bits"] = r.choice([16, 16, 17])
    return Case(function, given, EITHER, lambda found: None)


def confusion_case(r: Draw, _: Draw) -> Case:
    labels, scores, weights, given = draw_columns(r)
    thresholds = r.choices(strategies.SCORES, k=r.choice([1, 2, 5, 40]))
    own = None if weights is None else weights.tolist()
    rows = score_oracle.rows_of(labels.tolist(), scores.tolist(), own, float)

    def check(found: Any) -> None:
        for at, threshold in enumerate(thresholds if len(labels) < 100 else ()):
            wanted = list(map(float, score_oracle.counts_at(rows, threshold)))
            counts = [float(getattr(found, name)[at]) for name in ("tp", "fp", "fn", "tn")]
            assert all(map(list_calls.same, counts, wanted)), (threshold, counts, wanted)

    return Case(fastrec.confusion_matrix, {**given, "thresholds": thresholds}, EQUAL, check)


CLASSES: list[list[Any]] = [
    [0, 1],
    [3],
    [-(2**63), 0, 2**63 - 1],
    [5, 6, 9, -4, 100],
    ["a", "b", "ab", "ä"],
    [True, False],
]


def classes_case(r: Draw, _: Draw) -> Case:
    classes, n = r.choice(CLASSES), r.choice([0, 1, 5, 12])
    labels, predictions = r.choices(classes, k=n), r.choices(classes, k=n)

    def check(found: Any) -> None:
        assert found.classes.tolist() == sorted({*labels, *predictions})
        for at, name in enumerate(found.classes.tolist()):
            assert found.tp[at] == sum(a == b == name for a, b in zip(labels, predictions, strict=True))
            assert found.fp[at] == sum(b == name != a for a, b in zip(labels, predictions, strict=True))

    forms = [list, tuple, np.array, lambda values: read_only(np.array(values))]
    given = {"labels": r.choice(forms)(labels), "predictions": r.choice(forms)(predictions)}
    return Case(fastrec.count_classes, given, EQUAL, check)


# Faults of a call


def masked(values: Any) -> Any:
    return np.ma.masked_array(values, mask=[True] * len(values))


NO_ARRAYS: list[Callable[[Any], Any]] = [  # of no column at all
    lambda a: a.astype(complex),
    masked,
    lambda a: np.zeros(len(a), "M8[s]"),
    lambda a: np.array(["x"] * len(a)),
    lambda a: np.array([None] * len(a), object),
    lambda a: np.array([(1, 2.0)] * len(a), "i4,f8"),
    lambda a: a[:, None] if len(a) != 1 else a.reshape(1, 1),
    lambda a: [[1], [2, 3]],
    lambda a: 7,
    lambda a: object(),
    lambda a: np.array(5),
    lambda a: a.astype("V8"),
    lambda a: b"bytes",
    lambda a: [2**70] * max(1, len(a)),
    lambda a: [[]] * max(1, len(a)),
    lambda a: a.astype(np.clongdouble),
    lambda a: [np.zeros(2)] * max(1, len(a)),
    lambda a: [{}] * max(1, len(a)),
]
NO_IDS: list[Callable[[Any], Any]] = [
    *NO_ARRAYS[:3],
    *NO_ARRAYS[4:13],
    lambda a: a.astype(float),
    lambda a: a > 0,
    lambda a: a * np.nan,
    lambda a: np.array([2**63] * len(a), np.uint64),
    lambda a: [-(2**63) - 1] * len(a),
    lambda a: [*a.tolist()[:-1], True],
    lambda a: [*a.tolist(), "x"],
    lambda a: [*a.tolist()[:-1], None],
    lambda a: [*a.tolist()[:-1], float("nan")],
]
NO_NUMBERS: list[Callable[[Any], Any]] = [
    *NO_ARRAYS,
    lambda a: np.append(a[1:], np.nan),
    lambda a: a.astype(np.longdouble),
    lambda a: np.append(a, 1.0),
    lambda a: a[:-1],
    lambda a: np.full(len(a), 2**53 + 1),
    lambda a: np.full(len(a), 2**64 - 1, np.uint64),
]


def spoil_pointers(r: Draw, pointers: Any) -> tuple[Any, bool]:
    """Return wrong pointers, and whether the call must reject them."""
    wrong = pointers.astype(object)
    at = r.randrange(len(wrong))
    kind = r.randrange(5)
    if kind == 0:
        return r.choice(NO_ARRAYS)(pointers), True
    if kind == 1:
        return r.choice([lambda a: a * 1.0, lambda a: a > 0, lambda a: a[:0], lambda a: a * np.nan])(pointers), True
    if kind == 2:
        return r.choice([wrong[:-1], np.append(wrong, wrong[-1]), np.append(wrong, 0)]), True
    values = [wrong[at] + 1, wrong[at] - 1, -1, 2**31, 2**32 + 1, 2**62, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 10**6]
    wrong[at] = r.choice(values)
    plain = wrong.tolist()
    same = len(plain) == len(pointers) and plain[0] == 0 and plain[-1] == pointers[-1] and plain == sorted(plain)
    spoilt = wrong.tolist()
    if kind == 4 and max(plain) < 2**63:
        spoilt = np.array(plain, np.int64)
    elif kind == 4 and min(plain) >= 0:
        spoilt = np.array(plain, np.uint64)
    return spoilt, not same


WRONG: dict[str, list[Any]] = {
    "k": [0, -1, 2**31, 2**63, 2.5, "a", float("nan"), b"1", [1, 0], [[1]], [None], object(), 1j],
    "n_items": [0, -1, 2**53 + 1, 1.5, "a", True, float("nan"), [], np.array([1, 2]), 10**400, 1j],
    "min_gain": [0, -1, float("nan"), float("inf"), "all", True, [], 1j, 10**400, np.array([1.0, 2.0])],
    "ties": ["x", 3, [], b"input", np.array(["input", "best"]), {}, True, "INPUT", "input\0"],
    "no_truth": ["x", 3, [], b"skip", 1.5],
    "no_recs": ["x", 3, "judged", []],
    "one_class": ["x", 3, None, []],
    "duplicates": ["x", 3, [], "last"],
    "n_threads": [0, -1, 2.5, "2", float("nan"), True, [], np.array([1, 2]), -(2**70)],
    "progress": [3, "x", []],
    "like": ["nope", 3, [], b"trec_eval"],
    "metrics": [3, [3], [None], "", "@", "ndcg@", [b"ndcg"], {"ndcg@0": 1}, 1.5, ["ndcg", 2]],
    "user": ["x", 3],
    "item": ["x", 3],
    "score": ["x", 3],
    "by": ["x", 3, ["x"]],
}
OF_USERS: dict[str, list[Callable[[int], Any]]] = {
    "user_weight": [
        lambda n: [1.0] * (n + 1),
        lambda n: [-1.0] * max(1, n),
        lambda n: [float("nan")] * max(1, n),
        lambda n: [float("inf")] * max(1, n),
        lambda n: [1e101] * max(1, n),
        lambda n: [1e-101] * max(1, n),
        lambda n: [[1.0]] * max(1, n),
        lambda n: "x",
        lambda n: {} if n else 3.0,  # {user: weight}
        lambda n: [1j] * max(1, n),
        lambda n: masked([1.0] * max(1, n)),
        lambda n: [None] * max(1, n),
        lambda n: 3.0,
    ],
    "groups": [
        lambda n: ["a"] * (n + 1),
        lambda n: [1.5] * max(1, n),
        lambda n: [None] * max(1, n),
        lambda n: [[]] * max(1, n),
        lambda n: 3,
        lambda n: "x",
        lambda n: {"a"},
        lambda n: {1: ["a"] * n},
        lambda n: {"a": ["x"] * (n + 1)},
        lambda n: masked(["a"] * max(1, n)),
        lambda n: [("a",)] * max(1, n),
        lambda n: np.array([1 + 2j] * max(1, n)),
        lambda n: [np.array([1, 2])] * max(1, n),
        lambda n: {"a": None},
    ],
    "user_ids": [
        lambda n: ["a"] * (n + 2),
        lambda n: [0.5 + at for at in range(n + 1)],
        lambda n: [[]] * max(1, n),
        lambda n: "x",
        lambda n: {1},
        lambda n: 3,
        lambda n: masked([1] * max(1, n)),
        lambda n: [np.array([1, 2])] * max(1, n),
        lambda n: np.zeros((n + 1, 2), int),
    ],
}
COLUMNS = {"labels", "scores", "sample_weight"}


def spoil(r: Draw, case: Case) -> Case:
    """Return the call with one argument that is wrong, or may be."""
    given = dict(case.arguments)
    kind = r.choice(["option", "option", "users", "array", "array", "array", "metric", "swap"])
    if kind == "metric" and "metrics" in given:
        given["metrics"] = draw_text(r)
        return case._replace(arguments=given, verdict=EITHER, check=check_sane, why="a random metric")
    if kind == "users" and "metrics" in given:
        name = r.choice(list(OF_USERS))
        given[name] = r.choice(OF_USERS[name])(case.n_users)
        of_rows = case.function is fastrec.evaluate_scores
        return case._replace(arguments=given, verdict=EITHER if of_rows else REFUSED, check=check_sane, why=name)
    if kind == "option":
        names = [name for name in WRONG if name in given or (name in ("k", "progress", "like") and "metrics" in given)]
        if names:
            name = r.choice(names)
            given[name] = r.choice(WRONG[name])
            return case._replace(arguments=given, verdict=REFUSED, check=check_sane, why=name)
    if kind == "swap":
        name, other = r.choice(list(given)), r.choice(list(given))
        given[name] = given[other]
        return case._replace(arguments=given, verdict=EITHER, check=check_sane, why=f"{name} is {other}")
    if case.function is fastrec.evaluate:
        return spoil_side(r, case, given)
    return spoil_column(r, case, given)


def spoil_side(r: Draw, case: Case, given: Arguments) -> Case:
    """Replace one array of a side that is a tuple."""
    name = r.choice(["recs", "truth", "exclude"])
    side = given[name]
    if isinstance(side, (list, dict)) and side:
        return spoil_row(r, case, given, name)
    if not isinstance(side, tuple) or len(side) < 2:
        return case
    parts = [np.asarray(part) for part in side]
    at = r.randrange(len(parts))
    must = True
    if at == 1:
        parts[at], must = spoil_pointers(r, parts[at].astype(np.int64))
    elif at == 2:
        parts[at] = r.choice(NO_NUMBERS)(parts[at].astype(float))
        must = len(side[2]) > 0
    elif parts[0].dtype.kind in "iu":
        parts[at] = r.choice(NO_IDS)(parts[at].astype(np.int64))
        must = len(side[0]) > 0
    else:
        return case
    given[name] = tuple(parts)
    return case._replace(arguments=given, verdict=REFUSED if must else EITHER, check=check_sane, why=f"{name}[{at}]")


def spoil_row(r: Draw, case: Case, given: Arguments, name: str) -> Case:
    """Replace the items of one user."""
    given[name] = side = given[name].copy()
    user = r.choice(list(side)) if isinstance(side, dict) else r.randrange(len(side))
    make, must = r.choice([(FrameOfUser, True), (set, name == "recs"), (list, False)])
    if make is list:
        side[user] = r.choice([3, "x", None, 1.5, masked([1]), (item for item in [1]), np.array(1)])
        must = True
    else:
        side[user] = make(side[user])
    why = f"{name} of a user"
    return case._replace(arguments=given, verdict=REFUSED if must else EITHER, check=check_sane, why=why)


def spoil_column(r: Draw, case: Case, given: Arguments) -> Case:
    names = [name for name in ("labels", "scores", "sample_weight", "indptr") if given.get(name) is not None]
    if not names:
        return case
    name = r.choice(names)
    values = np.asarray(given[name])
    if name == "indptr":
        given[name], must = spoil_pointers(r, values.astype(np.int64))
    else:
        if values.dtype.kind not in "iufb":
            return case
        given[name] = r.choice(NO_NUMBERS)(values.astype(float))
        must = len(values) > 0 and case.function is not fastrec.count_classes
    return case._replace(arguments=given, verdict=REFUSED if must else EITHER, check=check_sane, why=name)


# Metric strings


METRICS = fastrec.catalogue()
NUMBERS = [
    "0",
    "-1",
    "1",
    "0.5",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1_0",
    "2**3",
    "1e-320",
    "99999999999999999999",
    "٣",
    "0x1",
]


def draw_value(r: Draw, option: dict[str, Any]) -> str:
    table = f"[{', '.join(r.choice(NUMBERS[:8]) for _ in range(r.randint(0, 4)))}]"
    return r.choice([*option["choices"], *r.sample(NUMBERS, 3), table, "", "[", "none", "any", "(1)", "é"])


def draw_text(r: Draw) -> Any:
    """Draw metric strings by a grammar, some with a few changed characters."""
    metric = r.choice(METRICS)
    names = r.sample(list(metric["options"]), r.randint(0, min(3, len(metric["options"]))))
    inside = ", ".join(f"{name}={draw_value(r, metric['options'][name])}" for name in names)
    text = metric["name"] + (f"({inside})" if inside or one_in(r, 6) else "")
    text += r.choice(
        ["", "", "@10", "@1", "@2147483647", "@2147483648", "@0", "@-1", "@x", "@1.5", "@ 3", "@1@2", "@²"]
    )
    while one_in(r, 3):
        at = r.randint(0, len(text))
        text = (
            text[:at]
            + r.choice(["", "(", ")", "=", ",", "@", " ", "\0", "é", "[", "]", "\n", "1", "'"])
            + text[at + r.randint(0, 2) :]
        )
    return r.choice([text, [text], [text, "ndcg"], (text, text)])


# Running


def set_up() -> None:
    """Prepare a process that does nothing else: keep plans, as planning costs more than a small evaluation."""
    protocol.make_plan = functools.lru_cache(4 * MENUS)(protocol.make_plan)


CASES: list[tuple[float, Callable[[Draw, Draw], Case]]] = [
    (0.5, lists_case),
    (0.82, scores_case),
    (0.88, auc_case),
    (0.92, curve_case),
    (0.96, confusion_case),
    (1.0, classes_case),
]


def draw_case(seed: int) -> tuple[Case, bool]:
    """Return the case of a seed, and whether to interpret kernels."""
    r = random.Random(seed)
    interpreted = one_in(r, 4)  # interpreted kernels also check every index
    chance = r.random()
    case = next(make for below, make in CASES if chance < below)(r, menu(seed, r))
    if one_in(r, 2):
        case = spoil(r, case)
    return case, interpreted


def run_case(seed: int) -> bool:
    """Make the call of a seed; return whether it gave a value. Raise `Finding` for a forbidden result."""
    return run(*draw_case(seed))


def run(case: Case, interpreted: bool) -> bool:
    """Make a call, and compare it with its expected result."""
    way, small = Launcher.way, launcher.SMALL_WORK
    Launcher.way = "interpreted" if interpreted else "compiled"
    if not interpreted:
        launcher.SMALL_WORK = lists_and_rows.SMALL_WORK = 8  # few rows run on several threads too
    try:
        found = case.function(**case.arguments)
    except fastrec.FastrecError as error:
        if case.verdict == EQUAL:
            raise Finding("wrong value", f"valid input was refused: {error}") from error
        return False
    except Exception as error:
        raise Finding("foreign error", f"{type(error).__name__}: {error} ({case.why})") from error
    finally:
        Launcher.way = way
        launcher.SMALL_WORK = lists_and_rows.SMALL_WORK = small
    if case.verdict == REFUSED:
        raise Finding("wrong value", f"a wrong {case.why} was taken")
    try:
        case.check(found)
    except AssertionError as error:
        raise Finding("wrong value", str(error)) from error
    return True


def describe(seed: int) -> str:
    """Return the call of a seed for a replay."""
    return shown(*draw_case(seed))


def shown(case: Case, interpreted: bool) -> str:
    lines = [f"{case.function.__name__}, {'interpreted' if interpreted else 'compiled'}, {case.verdict}: {case.why}"]
    lines += [f"  {name} = {value!r}" for name, value in case.arguments.items()]
    return re.sub(r" at 0x[0-9a-fA-F]+|unnamed_relation_\w+", "", "\n".join(lines))

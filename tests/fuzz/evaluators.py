"""Evaluators used in any order: made, updated with good and bad batches, merged, copied, sent as bytes and read.

They hold at all times what the naive oracle computes for the same users. `scripts/fuzz --target evaluators` runs them
for long, `test_fuzz` for a few seconds.
"""

import copy
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import fastrec
from fastrec.runtime.launcher import Launcher
from fuzz import calls as fuzz_calls
from fuzz.calls import KINDS, OF_LISTS, POLICIES, TIED, WEIGHTS, Draw, Finding, ListsCall, ScoresCall, one_in, set_up
from support import row_calls, strategies
from support.list_calls import Ask, same
from support.row_calls import ORDERS, Form, Rows
from support.strategies import Log, ScoredLog

__all__ = ["Evaluators", "Finding", "describe", "of_machine", "run_case", "set_up"]

STEPS = 30
EXAMPLES = 20  # of a seed
draws = st.integers(0, 2**64 - 1).map(Draw)  # Hypothesis chooses the steps, and a number that determines the rest


class Batch(NamedTuple):
    """Users for the oracle: lists with truth, or scored rows."""

    log: Log | ScoredLog
    extra: list[Any] | None  # scores of lists, weights of rows
    ids: list[int]
    weights: list[float] | None
    labels: list[str | None]

    def __add__(self, other: Any) -> "Batch":
        def joined(mine: Any, theirs: Any) -> Any:
            return None if mine is None or theirs is None else [*mine, *theirs]

        own: Any = [joined(*both) for both in zip(vars(self.log).values(), vars(other.log).values(), strict=True)]
        return Batch(type(self.log)(*own), *(joined(*both) for both in zip(self[1:], other[1:], strict=True)))


class Held(NamedTuple):
    """Evaluator and its batches; the list of batches grows with it."""

    evaluator: Any
    batches: list[Batch]

    @property
    def ids(self) -> set[int]:
        return {user for batch in self.batches for user in batch.ids}


class Settings(NamedTuple):
    """Common settings of all evaluators of a run."""

    scored: bool  # rows with scores, not lists
    kind: str
    asks: list[Ask]
    rules: dict[str, Any]
    options: dict[str, Any]
    ties: str
    extra: bool
    weighted: bool
    with_ids: bool
    form: Form


def draw_settings(r: Draw) -> Settings:
    scored = one_in(r, 2)
    ties = r.choice(["expected", *ORDERS])
    extra, min_gain = one_in(r, 2), r.choice([None, None, 2.0])
    rules: dict[str, Any] = {"min_gain": min_gain, "n_items": 10**4, "no_truth": r.choice(POLICIES)}
    options: dict[str, Any] = {"ties": ties, "per_user": one_in(r, 2), "n_threads": r.choice([None, 1, 2, 3])}
    if not scored:
        kind = r.choice(list(KINDS))
        tied = extra and ties == "expected"
        rules["no_recs"] = r.choice(["skip", "zero", "nan"])
        options["duplicates"] = "error" if tied else r.choice(["error", "first", "miss"])
        asks = fuzz_calls.draw_asks(r, (TIED if tied else OF_LISTS)[kind])
    else:
        kind = r.choice(["binary", "integer"])
        of_rows = extra or one_in(r, 2)
        if not of_rows and ties.startswith("id"):
            ties = options["ties"] = "input"
        asks = fuzz_calls.draw_asks(r, fuzz_calls.asks_of(kind, "unit", min_gain, "rows" if of_rows else ties))
        rules = {"min_gain": min_gain, "one_class": r.choice(["drop", "half", "zero", "nan"])} if of_rows else rules
        if not of_rows:
            rules["ties"] = ties
    form = Form("indptr", r.choice([np.float32, np.float64]))
    return Settings(scored, kind, asks, rules, options | rules, ties, extra, one_in(r, 2), one_in(r, 2), form)


class Evaluators(RuleBasedStateMachine):
    """Machine of such steps. Each step is checked by itself, and only through public methods."""

    held = Bundle("held")
    steps = 0

    @initialize(r=draws)
    def choose(self, r: Draw) -> None:
        self.settings = draw_settings(r)
        self.pool = fuzz_calls.draw_pool(r, 12)
        self.next_id = 0
        # most calls of so few users are interpreted anyway; here both ways are equally likely
        self.interpreted = one_in(r, 4)

    def call(self, function: Callable[[], Any]) -> Any:
        """Return the result of a call, with compiled or interpreted kernels as drawn."""
        Evaluators.steps += 1
        way, Launcher.way = Launcher.way, "interpreted" if self.interpreted else "compiled"
        try:
            return function()
        except fastrec.FastrecError:
            raise
        except Exception as error:
            raise Finding("foreign error", f"{type(error).__name__}: {error}") from error
        finally:
            Launcher.way = way

    def make(self) -> Any:
        kind = fastrec.ScoreEvaluator if self.settings.scored else fastrec.Evaluator
        return kind([ask.text for ask in self.settings.asks], **self.settings.options)

    @rule(target=held, r=draws)
    def a_new_one(self, r: Draw) -> Held:
        one = Held(self.call(self.make), [])
        for _ in range(r.choice([0, 1, 1, 2])):
            self.add(one, r)
        return one

    def draw_batch(self, r: Draw) -> Batch:
        own, n_users = self.settings, r.choice([0, 1, 2, 3, 3, 5])
        extra: list[Any] | None = None
        log: Log | ScoredLog
        if own.scored:
            rows = fuzz_calls.draw_rows(r, own.kind, "unit", 4)
            users = list(range(min(n_users, len(rows.log.labels))))
            log = row_calls.rounded(rows.of(users), own.form).log
            n_users = len(users)
            if own.extra:
                extra = [r.choices([1.0, 0.5, 3.25, 2.0**-10], k=len(labels)) for labels in log.labels]
        else:
            longest = 4 if own.extra and own.ties == "expected" else 12
            copies = own.options["duplicates"] != "error"
            log = fuzz_calls.draw_log(r, fuzz_calls.Size(n_users, 12, longest), KINDS[own.kind], copies=copies)
            if own.extra:
                extra = [r.choices(strategies.SCORES, k=len(items)) for items in log.recs]
        self.next_id += n_users
        return Batch(
            log,
            extra,
            list(range(self.next_id - n_users, self.next_id)),
            r.choices(WEIGHTS, k=n_users) if own.weighted else None,
            r.choices(["a", "b", "ü"], k=n_users) if one_in(r, 2) else [None] * n_users,
        )

    def arguments(self, r: Draw, batch: Batch) -> dict[str, Any]:
        about = {
            "user_ids": batch.ids if self.settings.with_ids else None,
            "groups": None if None in batch.labels or not batch.labels else batch.labels,
            "user_weight": batch.weights,
        }
        if isinstance(batch.log, ScoredLog):
            rows = Rows(batch.log, None, None, batch.extra)
            given, _ = row_calls.arguments(rows, self.settings.form)
            return given | about
        recs = fuzz_calls.side_as_tuple(r, batch.log.recs, batch.extra)
        held = [[item for item, _ in rows] for rows in batch.log.truth]
        truth = fuzz_calls.side_as_tuple(r, held, [[gain for _, gain in rows] for rows in batch.log.truth])
        return {"recs": recs, "truth": truth, **about}

    def add(self, one: Held, r: Draw) -> None:
        batch = self.draw_batch(r)
        given = self.arguments(r, batch)
        self.call(lambda: one.evaluator.update(**given))
        one.batches.append(batch)

    @rule(one=held, r=draws)
    def add_more(self, one: Held, r: Draw) -> None:
        self.add(one, r)
        self.check(one)

    @rule(one=held, r=draws)
    def add_what_is_wrong(self, one: Held, r: Draw) -> None:
        batch = self.draw_batch(r)
        given = self.arguments(r, batch)
        flaw = r.choice(list(FLAWS))
        if not FLAWS[flaw](given, len(batch.ids), self.settings, one):
            return
        self.refused(one, lambda: one.evaluator.update(**given), flaw)

    def refused(self, one: Held, function: Callable[[], Any], why: str) -> None:
        """Check for a fastrec error that leaves the evaluator unchanged."""
        before = one.evaluator.to_bytes()
        try:
            self.call(function)
        except fastrec.FastrecError:
            after = one.evaluator.to_bytes()
            if unzipped(after) != unzipped(before):
                raise Finding("wrong value", f"a refused update or merge ({why}) left something behind") from None
            return
        raise Finding("wrong value", f"taken: {why}")

    @rule(one=held, other=held)
    def merge(self, one: Held, other: Held) -> None:
        if one.evaluator is other.evaluator or (self.settings.with_ids and one.ids & other.ids):
            self.refused(one, lambda: one.evaluator.merge(other.evaluator), "the same users twice")
            return
        before = unzipped(other.evaluator.to_bytes())
        self.call(lambda: one.evaluator.merge(other.evaluator))
        one.batches.extend(other.batches)
        if unzipped(other.evaluator.to_bytes()) != before:
            raise Finding("wrong value", "merging changed the other one")
        self.check(one)

    @rule(target=held, one=held)
    def send(self, one: Held) -> Held:
        again = self.call(lambda: type(one.evaluator).from_bytes(one.evaluator.to_bytes()))
        if unzipped(again.to_bytes()) != unzipped(one.evaluator.to_bytes()):
            raise Finding("wrong value", "other bytes after a journey")
        sent = Held(again, list(one.batches))
        self.check(sent)
        if self.settings.with_ids and one.ids:
            self.refused(sent, lambda: again.merge(one.evaluator), "the same users after a journey")
        return sent

    @rule(target=held, one=held, deep=st.booleans())
    def copy(self, one: Held, deep: bool) -> Held:
        duplicate = copy.deepcopy if deep else lambda evaluator: pickle.loads(pickle.dumps(evaluator))
        return Held(self.call(lambda: duplicate(one.evaluator)), list(one.batches))

    @rule(one=held)
    def ask(self, one: Held) -> None:
        self.check(one)

    def check(self, one: Held) -> None:
        """Check that its results are those of the oracle for all its batches."""
        report = self.call(one.evaluator.result)
        own = self.settings
        empty: Any = ScoredLog([], []) if own.scored else Log([], [])
        everything = Batch(empty, [] if own.extra else None, [], [] if own.weighted else None, [])
        for batch in one.batches:
            everything += batch
        expect: Callable[[Ask, Sequence[int] | None], Any]
        if isinstance(everything.log, ScoredLog):
            rows = Rows(everything.log, everything.weights, None, everything.extra)
            expect = ScoresCall(rows, own.form, own.rules)
        else:
            duplicates = own.options["duplicates"]
            expect = ListsCall(
                everything.log, everything.extra, None, everything.weights, own.ties, duplicates, own.rules
            )
        asks = own.asks
        if report.settings.get("units") == "rows":  # no second pass: the oracle's error of areas is that over users
            asks = [ask for ask in asks if ask.name not in ("auc", "average_precision")]
        try:
            for ask in own.asks:
                found = report.estimates[fastrec.metrics.calls.parse(ask.text).text]
                assert same(found.mean, expect(ask, None).value), f"{ask.text}: mean {found.mean}"
            fuzz_calls.check_report(
                report,
                asks,
                len(everything.ids),
                everything.labels,
                expect,
                per_user=own.options["per_user"],
            )
            if own.with_ids and everything.ids:
                assert report.user_ids.tolist() == everything.ids
        except AssertionError as error:
            raise Finding("wrong value", str(error)) from error


def unzipped(data: bytes) -> Any:
    """Return the contents of an archive; its bytes also hold the time."""
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# Faults of a batch: each changes the arguments, and returns whether it could


def spoil_array(name: str, at: int, value: Any) -> Callable[..., bool]:
    """Replace the last entry of a column."""

    def flaw(given: dict[str, Any], n_users: int, own: Settings, one: Held) -> bool:
        column = given.get(name)
        if isinstance(column, tuple):
            if len(column) <= at:
                return False
            parts = [np.asarray(part) for part in column]
            if not len(parts[at]) or parts[at].dtype == object:
                return False
            parts[at] = np.append(parts[at][:-1], value)
            given[name] = tuple(parts)
            return True
        if column is None or not len(column):
            return False
        given[name] = np.append(np.asarray(column)[:-1], value)
        return True

    return flaw


def wrong_users(name: str, make: Callable[[int], Any]) -> Callable[..., bool]:
    def flaw(given: dict[str, Any], n_users: int, own: Settings, one: Held) -> bool:
        given[name] = make(n_users)
        return True

    return flaw


def user_again(given: dict[str, Any], n_users: int, own: Settings, one: Held) -> bool:
    if not (own.with_ids and n_users and one.ids):
        return False
    given["user_ids"] = [*given["user_ids"][1:], min(one.ids)]
    return True


def other_kind(name: str) -> Callable[..., bool]:
    """Add weights or ids if earlier batches had none, or remove them."""

    def flaw(given: dict[str, Any], n_users: int, own: Settings, one: Held) -> bool:
        given[name] = (
            None if given[name] is not None else [1.0 if name == "user_weight" else at for at in range(n_users)]
        )
        return bool(one.batches)

    return flaw


FLAWS: dict[str, Callable[..., bool]] = {
    "a pointer past the end": spoil_array("recs", 1, 10**6),
    "a pointer of rows past the end": spoil_array("indptr", 0, 2**40),
    "a negative id": spoil_array("recs", 0, -7),
    "a NaN score": spoil_array("recs", 2, math.nan),
    "an infinite gain": spoil_array("truth", 2, math.inf),
    "a row's NaN score": spoil_array("scores", 0, math.nan),
    "an infinite label": spoil_array("labels", 0, math.inf),
    "a negative weight of a row": spoil_array("sample_weight", 0, -1.0),
    "too many weights": wrong_users("user_weight", lambda n: [1.0] * (n + 1)),
    "too many labels": wrong_users("groups", lambda n: ["a"] * (n + 1)),
    "labels that are floats": wrong_users("groups", lambda n: [0.5] * (n + 1)),
    "ids that repeat": wrong_users("user_ids", lambda n: [1] * (n + 2)),
    "a user of an earlier batch": user_again,
    "weights or none": other_kind("user_weight"),
    "ids or none": other_kind("user_ids"),
}


def run_case(number: int) -> int:
    """Run the machine from a seed; return the number of steps done. Raise `Finding`."""
    start = Evaluators.steps
    machine = seed(number)(type("Seeded", (Evaluators,), {}))
    run_state_machine_as_test(machine, settings=of_machine(EXAMPLES))
    return Evaluators.steps - start


def of_machine(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=[Phase.generate],  # shrinking a failure takes minutes, and says little more than its steps
        suppress_health_check=list(HealthCheck),
    )


def describe(number: int) -> str:
    """Return how to see the run: Hypothesis prints the steps of a run that fails."""
    return f"{EXAMPLES} runs of the machine, seed {number}"

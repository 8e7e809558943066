"""Evaluators and histograms that several threads use at once, and that forked children then use.

Threads update, merge, copy, pickle and read two shared objects; each thread has its own program. At any time an
object must hold only whole batches, and the first ones of each thread. A child continues with its copy, or gets an
error that its parent was changing the object. Nothing waits for ever.

The programs depend only on the seed; the order of the threads does not.

`scripts/fuzz --target threads` runs it for long, `test_fuzz` for a few seconds.
"""

import copy
import faulthandler
import os
import pickle
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import fastrec
from fastrec.evaluation.state import State
from fastrec.scored.histogram import ScoreHistogram
from fuzz.calls import Finding, set_up

__all__ = ["Finding", "describe", "run_case", "set_up"]

BATCHES = 8
EXTRA = BATCHES  # the batch for copies and children: it must show nowhere else
SECONDS = 120  # for a child, which may load the compiler on a busy machine; a case may take twice as long
DUPLICATES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda one: pickle.loads(pickle.dumps(one)),
    "bytes": lambda one: type(one).from_bytes(one.to_bytes()),
}


class Step(NamedTuple):
    """Step of a thread with one shared object, or with both."""

    action: str
    at: int
    batch: int = -1


class Case(NamedTuple):
    """Kind of the shared objects, and a program for each thread."""

    kind: str
    with_ids: bool
    per_user: bool
    n_threads: int
    programs: list[list[Step]]

    def make(self) -> Any:
        if self.kind == "histogram":
            return ScoreHistogram(16)
        options = {"per_user": self.per_user, "n_threads": self.n_threads}
        if self.kind == "lists":
            return fastrec.Evaluator(["recall@1", "ndcg@2"], **options)
        return fastrec.ScoreEvaluator(["gauc", "auc", "log_loss"], **options)

    def add(self, one: Any, batch: int) -> None:
        """Add a batch of 2^batch users or pairs of rows that no other batch has."""
        users = np.arange(2**batch, 2 ** (batch + 1))
        if self.kind == "histogram":
            scores = np.concatenate([users / 1024, users * 37 % 1024 / 1024])
            one.add(np.repeat(np.array([0, 1], np.int8), len(users)), scores, n_threads=self.n_threads)
            return
        about: dict[str, Any] = {"user_ids": users} if self.with_ids else {}
        about["groups"] = ["even" if user % 2 == 0 else "odd" for user in users.tolist()]
        if self.kind == "lists":
            one.update([[user % 3, 7] for user in users.tolist()], [[user % 5] for user in users.tolist()], **about)
        else:
            labels, scores = np.tile([1, 0, 1], len(users)), np.repeat(users / 1024, 3)
            scores[1::3] = 0.25
            one.update(labels, scores, np.arange(len(users) + 1) * 3, **about)

    def look(self, one: Any) -> tuple[int, Any]:
        """Return how many users or pairs of rows an object has seen, and all its results."""
        if self.kind == "histogram":
            packed = one.pack()
            return int(packed["negatives"].sum()), {name: column.tolist() for name, column in packed.items()}
        report = one.result()
        columns: list[Any] = [report.per_user[name].tolist() for name in report] if self.per_user else []
        columns += [report.labels["group"].tolist()] if self.per_user and "group" in report.labels else []
        columns += [] if report.user_ids is None else [report.user_ids.tolist()]
        return report.users["total"], (report.to_dict(), sorted(map(repr, zip(*columns, strict=True))))


class Run:
    """Shared objects of a case while its threads work."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.shared = [case.make() for _ in range(2)]
        self.known: dict[int, Any] = {}  # results of batches, by their bits
        self.errors: list[BaseException] = []

    def check(self, one: Any, least: int = 0) -> int:
        """Return the batches that an object has, as bits; check that they are whole and include those of `least`."""
        seen, found = self.case.look(one)
        if seen not in self.known:
            alone = self.case.make()
            for batch in bits(seen):
                self.case.add(alone, batch)
            self.known[seen] = self.case.look(alone)[1]
        if found != self.known[seen]:
            raise Finding("wrong value", f"torn: {found} where batches {bits(seen)} give {self.known[seen]}")
        if least & ~seen:
            raise Finding("wrong value", f"batches {bits(least & ~seen)} are lost, found {bits(seen)}")
        for program in self.case.programs:
            for at in range(2):
                own = [seen >> step.batch & 1 for step in program if step.batch >= 0 and step.at == at]
                if own != sorted(own, reverse=True):
                    raise Finding("wrong value", f"a later batch of a thread came before an earlier one: {bits(seen)}")
        return seen

    def use(self, one: Any, seen: int) -> None:
        """Continue with an object that no other thread has."""
        self.case.add(one, EXTRA)
        if self.check(one) != seen | 1 << EXTRA:
            raise Finding("wrong value", "a copy changes by itself")

    def follow(self, program: list[Step]) -> None:
        """Run the program of a thread."""
        least = [0, 0]  # batches that the thread knows are there
        try:
            for step in program:
                self.take(step, least)
                time.sleep(0)
        except BaseException as error:  # noqa: BLE001 - raised by the main thread
            self.errors.append(error)

    def take(self, step: Step, least: list[int]) -> None:
        one, other = self.shared[step.at], self.shared[1 - step.at]
        if step.action == "update":
            self.case.add(one, step.batch)
            least[step.at] |= 1 << step.batch
        elif step.action == "absorb":
            alone = self.case.make()
            self.case.add(alone, step.batch)
            one.merge(alone)
            least[step.at] |= 1 << step.batch
        elif step.action == "look":
            least[step.at] |= self.check(one, least[step.at])
        elif step.action == "join":
            both = copy.copy(one)
            if merged(both, other):
                self.use(both, self.check(both, least[0] | least[1]))
        elif step.action == "merge":
            merged(one, other)
        elif step.action == "fork":
            self.fork(least)
        else:
            twin = DUPLICATES[step.action](one)
            self.use(twin, self.check(twin, least[step.at]))

    def fork(self, least: list[int]) -> None:
        """Let a child use the shared objects."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            faulthandler.dump_traceback_later(SECONDS - 10, file=writing)
            try:
                for one, of_one in zip(self.shared, least, strict=True):
                    self.inherit(one, of_one)
            except BaseException as error:  # noqa: BLE001 - shown by the parent
                kind = error.kind if isinstance(error, Finding) else "foreign error"
                os.write(writing, f"{kind}\n{type(error).__name__}: {error}"[:2000].encode())
            finally:
                os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as pipe:
            kind, _, text = pipe.read().partition("\n")
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == -signal.SIGALRM:
            raise Finding("hang", f"a forked child waits for ever: {kind}\n{text}")
        if kind or code:
            raise Finding(kind or "crash", f"in a forked child, status {code}: {text}")

    def inherit(self, one: Any, least: int) -> None:
        """Run the work of a child."""
        try:
            seen = self.check(one, least)
        except fastrec.FastrecError as error:
            if "incomplete" not in str(error) or "fork" not in str(error):
                raise
            for call in (lambda: self.case.add(one, EXTRA), lambda: self.case.make().merge(one)):
                with refused():
                    call()
            if self.case.kind == "histogram":
                return
            one.reset()
            seen = self.check(one)
        for name, duplicate in DUPLICATES.items():
            if name != "bytes" or self.case.kind != "histogram":
                self.use(duplicate(one), seen)
        alone = self.case.make()
        alone.merge(one)
        self.use(alone, seen)
        self.use(one, seen)


def merged(one: Any, other: Any) -> bool:
    """Merge, and return whether that was possible: ids of users tell what was merged before."""
    try:
        one.merge(other)
    except fastrec.InputError as error:
        if "on both sides" not in str(error):
            raise
        return False
    return True


@contextmanager
def refused() -> Iterator[None]:
    """Check that the block raises an error, because it uses an object that is not whole."""
    try:
        yield
    except fastrec.FastrecError:
        return
    raise Finding("wrong value", "what is not whole was used")


def bits(seen: int) -> list[int]:
    return [batch for batch in range(seen.bit_length()) if seen >> batch & 1]


def draw_case(seed: int) -> Case:
    r = random.Random(seed)
    kind = r.choice(["lists", "lists", "rows", "histogram"])
    with_ids = kind != "histogram" and r.random() < 0.5
    actions = ["look", "copy", "deepcopy", "pickle", "join", "fork"]
    actions += ["bytes"] * (kind != "histogram") + ["merge"] * with_ids
    programs: list[list[Step]] = [[] for _ in range(r.randint(2, 4))]
    for batch in r.sample(range(BATCHES), BATCHES):
        r.choice(programs).append(Step(r.choice(["update", "update", "absorb"]), r.randrange(2), batch))
    for _ in range(r.randint(6, 16)):
        program = r.choice(programs)
        program.insert(r.randint(0, len(program)), Step(r.choice(actions), r.randrange(2)))
    return Case(kind, with_ids, r.random() < 0.5, r.choice([1, 1, 2]), programs)


def describe(seed: int) -> str:
    case = draw_case(seed)
    return "\n".join([str(case._replace(programs=[])), *map(str, case.programs)])


def stopping(whole: Callable[..., Any]) -> Callable[..., Any]:
    """Make a change during which other threads often run."""

    def half(*arguments: Any, **options: Any) -> Any:
        time.sleep(random.choice([0, 0, 1e-5, 1e-3]))
        found = whole(*arguments, **options)
        time.sleep(random.choice([0, 0, 1e-5, 1e-3]))
        return found

    return half


@contextmanager
def many_turns() -> Iterator[None]:
    """Switch threads all the time, in the middle of changes too."""
    owners: list[tuple[Any, str]] = [(State, "add"), (State, "merge"), (ScoreHistogram, "_add")]
    before = [getattr(owner, name) for owner, name in owners]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for (owner, name), whole in zip(owners, before, strict=True):
        setattr(owner, name, stopping(whole))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        for (owner, name), whole in zip(owners, before, strict=True):
            setattr(owner, name, whole)


def run_case(seed: int) -> bool:
    """Run the programs of a seed. Raise `Finding`."""
    warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)  # Python 3.12 warns of a fork beside threads
    case = draw_case(seed)
    run = Run(case)
    threads = [threading.Thread(target=run.follow, args=(program,), daemon=True) for program in case.programs]
    with many_turns():
        for thread in threads:
            thread.start()
        end = time.monotonic() + 2 * SECONDS
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise Finding("hang", f"threads wait for ever; others failed with {run.errors}")
    for error in run.errors:
        if isinstance(error, Finding):
            raise error
        raise Finding("foreign error", f"{type(error).__name__}: {error}") from error
    added = [[step for step in program if step.batch >= 0] for program in case.programs]
    for at, one in enumerate(run.shared):
        run.check(one, sum(1 << step.batch for steps in added for step in steps if step.at == at))
    return True

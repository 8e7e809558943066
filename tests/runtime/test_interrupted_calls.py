"""Ctrl-C in a program: a long call stops soon, and an evaluator is whole, or says that it is not."""

import signal
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fastrec
from fastrec.evaluation import engine
from fastrec.runtime import launcher
from support.processes import run

WAIT = 10  # seconds; the promise is one second, but other programs may use the machine
PACKAGE = Path(fastrec.__file__).parent
KEEPERS = {
    str(PACKAGE / name)
    for name in (
        "api/evaluators.py",
        "evaluation/protocol.py",
        "evaluation/state.py",
        "scored/score_counts.py",
        "scored/histogram.py",
        "inputs/users.py",
    )
}

# A call of any length, with its kernels loaded.
LONG_CALL = """
import os, signal, threading, time
from fastrec.report.significance import run_test
n_users = 2_000_000
items, indptr = np.tile(np.arange(5, dtype=np.int32), n_users), np.arange(n_users + 1) * 5
metrics = [f"{name}@{k}" for name in ("ndcg", "recall", "map") for k in range(1, 201)]
labels, scores = np.arange(n_users * 5) % 7 < 2, np.arange(n_users * 5) * 1e-3 % 1
odd, users = items * 2 + 1, (np.arange(n_users * 4) * 0.7 % 1).reshape(-1, 4)
report = fastrec.evaluate((items, indptr), (odd, indptr), "recall", per_user=True)
evaluator = fastrec.Evaluator("mrr", n_threads=2)
def call(n, times):
    lists = items[:n * 5], indptr[:n + 1]
    CALL
call(200_000, 100)
"""
# Prints how long after an interrupt a call ended that has far more work.
INTERRUPTED = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
def tell():
    told.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
told, timer = [], threading.Timer(0.5, tell)
timer.start()
try:
    call(n_users, 10**7)
except KeyboardInterrupt:
    print(time.monotonic() - told[0])
timer.join()
while threading.active_count() > 1 and time.monotonic() < told[0] + 20:  # a thread has ended work before it is gone
    time.sleep(0.01)
assert threading.active_count() == 1
print(few(), evaluator.result()["mrr"] > -1 or not evaluator.result().users["total"])
"""
CALLS = {
    "evaluate": "fastrec.evaluate(lists, lists, metrics, n_threads=1)",
    "evaluate_scores": "fastrec.evaluate_scores(labels[:n * 5], scores[:n * 5], lists[1], metrics, n_threads=2)",
    "compare": "run_test(scores[:n], 'randomization', level=0.95, n_rounds=times, seed=0, n_threads=2)",
    "interval": "report.interval('recall', method='bootstrap', n_rounds=times)",
    "evaluate_model": "fastrec.evaluate_model((users[:n], users[:5000]), (items[:n], indptr[:n + 1] // 5), 'mrr')",
    "update": "[evaluator.update(lists, lists) for _ in range(times // 100)]",
}


@pytest.mark.thorough(except_for="^(update|compare|evaluate_model)")
@pytest.mark.parametrize("call", CALLS)
def test_a_long_call_stops(call):
    result = run(LONG_CALL.replace("CALL", CALLS[call]) + INTERRUPTED)
    assert result.returncode == 0, result.stderr
    latency, value, sound = result.stdout.split()
    assert float(latency) < WAIT
    assert (value, sound) == ("0.5", "True")


# Interrupts the first calls of a process again and again: as soon as one of these modules is being imported.
FIRST_CALLS = """
import signal, sys, threading
seen = ["fastrec.api", "fastrec.metrics", *COMPILER, "pyarrow", "pyarrow.lib"]
class Interrupt(BaseException):
    pass
def interrupt(*_):
    if armed and seen and seen[0] in sys.modules:
        armed.clear()  # so that no other comes while this one is handled
        told.append(seen.pop(0))
        raise Interrupt
signal.signal(signal.SIGALRM, interrupt)
told, waited, armed = [], 0, []
while True:
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        armed.append(True)
        value = many(n_threads=2)["ndcg@10"]
        table = fastrec.load.__module__ and fastrec.evaluate([[1, 2]], [[2]], "mrr").to_frame("pyarrow")
        armed.clear()
        break
    except Interrupt:
        waited += threading.active_count() > 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(value, table.num_rows, len(told) > 5, waited > 0)
"""


LOADER = ["fastrec.kernels.jit", "llvmlite", "llvmlite.binding"]
COMPILER = ["numba", "numba.core.types", "numba.core.typing", "numba.core.cpu", "numba.cpython", "numba.parfors"]


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers on this system")
@pytest.mark.parametrize("warm", [False, True])
def test_an_interrupt_while_modules_are_imported_or_kernels_compiled(tmp_path, warm):
    """The interrupt takes effect at once, without waiting for the compiler, and the next call works."""
    if warm:
        assert run("many(n_threads=2)", FASTREC_CACHE_DIR=str(tmp_path)).returncode == 0
    code = FIRST_CALLS.replace("COMPILER", repr([*LOADER, *([] if warm else COMPILER)]))
    result = run(code, FASTREC_CACHE_DIR=str(tmp_path), NUMBA_NUM_THREADS="2")
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["1.0", "1", "True", "True"]


# Prints the share of a call in its longest stretch without handling a signal: signals come all the time, and Python
# handles them between launches of kernels.
PIECES = """
heeded = []
signal.signal(signal.SIGALRM, lambda *_: heeded.append(time.monotonic()))
start = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
call(n_users, 1000)
signal.setitimer(signal.ITIMER_REAL, 0)
end = time.monotonic()
print(np.diff([start, *heeded, end]).max() / (end - start))
"""


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms on this system")
@pytest.mark.parametrize("call", ["evaluate", "evaluate_scores", "compare"])
def test_no_stretch_of_a_long_call_is_long(call):
    """Each of these is ten launches of one thread or more: measured stretches were about a twentieth of the call, under
    any load."""
    result = run(LONG_CALL.replace("CALL", CALLS[call].replace("n_threads=2", "n_threads=1")) + PIECES)
    assert result.returncode == 0, result.stderr
    assert float(result.stdout) < 1 / 5


def test_a_launch_is_short_however_short_the_lists(monkeypatch):
    def launches(metrics, n_threads):
        done = []
        fastrec.evaluate(*[(items, indptr)] * 2, metrics, n_threads=n_threads, progress=lambda *at: done.append(at))
        return len(done)

    items, indptr = np.zeros(20_000, np.int32), np.arange(20_001)
    monkeypatch.setattr(engine, "STEPS_PER_PART", 100_000)
    few, many = launches(["mrr"], 1), launches([f"ndcg@{k}" for k in range(1, 41)], 1)
    assert 1 <= few < many, (few, many)
    assert launches([f"ndcg@{k}" for k in range(1, 41)], 4) < many


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
def test_rounds_in_pieces_have_the_same_bits(monkeypatch, test):
    rng = np.random.default_rng(0)
    lists, truth = rng.integers(0, 9, (3_000, 3)), rng.integers(0, 9, (3_000, 2))
    systems = {
        name: fastrec.evaluate(own, truth, "mrr", per_user=True, duplicates="first")
        for name, own in (("a", lists), ("b", lists[:, ::-1].copy()))
    }

    def compare(n_threads):
        return fastrec.compare(systems, test=test, n_rounds=1_000, seed=7, n_threads=n_threads).rows

    whole = compare(1)
    for steps in (1, 200_000, 1_000_000):
        monkeypatch.setattr(launcher, "WORK_PER_LAUNCH", steps)
        assert compare(1) == compare(2) == whole


# An interrupt at every line


class InterruptAt:
    """Raise KeyboardInterrupt at the n-th line that runs where state is kept, from 0, if there are so many."""

    def __init__(self, n):
        self.left = n

    def __call__(self, frame, event, argument):
        return self._at_line if frame.f_code.co_filename in KEEPERS else None

    def _at_line(self, frame, event, argument):
        if event == "line":
            self.left -= 1
            if self.left == -1:
                raise KeyboardInterrupt
        return self._at_line


def interrupted_at(n, work):
    """Return whether the work was interrupted before its end."""
    before = sys.gettrace()
    sys.settrace(InterruptAt(n))
    try:
        work()
    except KeyboardInterrupt:
        return True
    else:
        return False
    finally:
        sys.settrace(before)


def lists_evaluator():
    return fastrec.Evaluator(["ndcg@2", "mrr"], per_user=True, n_threads=1)


def scores_evaluator():
    return fastrec.ScoreEvaluator(["gauc", "auc", "ndcg@2"], n_threads=1)


def update_lists(evaluator, batch):
    groups, ids = [f"g{batch}", "all"], [10 * batch, 10 * batch + 1]
    evaluator.update(
        [[1, 2, 3], [4, 5]], [[2], [4, batch]], user_ids=ids, groups=groups, user_weight=[1.0, 0.5 + batch]
    )


def update_scores(evaluator, batch):
    n_rows = 5 if batch else 20  # scores of a small batch are kept beside those of a large one
    labels, scores = np.arange(n_rows) % 3 == 0, np.linspace(0, 1, n_rows) / (batch + 1)
    evaluator.update(labels, scores, [0, 3, n_rows], user_ids=[10 * batch, 10 * batch + 1], groups=["a", f"g{batch}"])


KINDS = {"lists": (lists_evaluator, update_lists), "scores": (scores_evaluator, update_scores)}


def with_batches(kind, *batches):
    make, update = KINDS[kind]
    evaluator = make()
    for batch in batches:
        update(evaluator, batch)
    return evaluator


def seen(evaluator):
    """Return everything it offers; None if it says that it is not whole."""
    if not evaluator._is_torn():
        return evaluator.result().to_json(), evaluator.to_bytes()
    copy = type(evaluator)(["mrr"])
    for call in (evaluator.result, evaluator.to_bytes, partial(evaluator.merge, copy), partial(copy.merge, evaluator)):
        with pytest.raises(
            fastrec.FastrecError, match=r"interrupted during an update.*incomplete: call reset\(\) and update it again$"
        ):
            call()
    return None


def merge(kind, evaluator):
    evaluator.merge(with_batches(kind, 2, 3))


CHANGES = {
    "update": (lambda kind, evaluator: KINDS[kind][1](evaluator, 2), (2,)),
    "merge": (merge, (2, 3)),
    "result": (lambda kind, evaluator: evaluator.result(), ()),
}


@pytest.mark.thorough(except_for="lists-(update|result)")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_anywhere_it_is_whole_or_says_that_it_is_not(kind, change):
    do, added = CHANGES[change]
    start = with_batches(kind, 0, 1).to_bytes()
    make = KINDS[kind][0]
    before, after = seen(with_batches(kind, 0, 1)), seen(with_batches(kind, 0, 1, *added))
    do(kind, with_batches(kind, 0, 1))  # with compiled kernels, and parsed metrics
    found, n = [], 0
    while True:
        evaluator = type(make()).from_bytes(start) if n % 2 else with_batches(kind, 0, 1)
        if not interrupted_at(n, lambda evaluator=evaluator: do(kind, evaluator)):
            break
        state = seen(evaluator)
        found.append("torn" if state is None else {before: "before", after: "after"}.get(state))
        n += 1
    assert None not in found, f"neither the old state nor the new after line {found.index(None)}"
    assert ("torn" in found) == (change != "result")


WITH_POLARS = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # programs in the background ignore it
import polars
from fastrec.runtime.threads import run_in_threads
for after in (0.2, 0.5, 0.5):  # the handler of Polars lets the first one end a wait
    start = time.monotonic()
    try:
        threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        run_in_threads(lambda _: time.sleep(0.1), range(200), 2)
    except KeyboardInterrupt:
        print(round(time.monotonic() - start, 1))
"""


def test_an_interrupt_ends_waiting_where_polars_is_imported() -> None:
    pytest.importorskip("polars")
    seconds = [float(line) for line in run(WITH_POLARS).stdout.split()]
    assert len(seconds) == 3
    assert max(seconds) < 5, "200 tasks of 0.1 s in two threads take 10"
